"""Files of texts that Numba compiles: named by what they hold, found again, limited in size."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.caches import link_kernels
from tests.support.graph_cases import arrays_for, assert_same, chain, log1pexp
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg_kernels.runtime import generated
from tinygrad_cg_kernels.runtime.native import programs

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import sys
from tinygrad_cg_kernels.runtime.native import programs
programs.enabled = False
from tests.support.caches import link_kernels
from tests.support.graph_cases import *
from tinygrad_cg._function.codegen.executable import build
graph = log1pexp(40)
program = build(graph)
assert_same(program, graph, arrays_for(graph, np.random.default_rng(0)))
large = log1pexp(70_000)
assert_same(build(large), large, arrays_for(large, np.random.default_rng(0)))
print(sum(one.stats.cache_hits[key] for one in program.dispatchers for key in one.stats.cache_hits))
"""


@pytest.fixture(autouse=True)
def by_numba(monkeypatch):
    monkeypatch.setattr(programs, "enabled", False)


@pytest.fixture(scope="module")
def kernels():
    """All that the graphs need of the library's own kernels is compiled."""
    for graph in (log1pexp(40), log1pexp(70_000), chain(40), log1pexp(40, np.float32)):
        assert_same(build(graph), graph, arrays_for(graph, np.random.default_rng(0)))


@pytest.fixture
def folder(tmp_path, monkeypatch, kernels):
    link_kernels(tmp_path)
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(generated, "_modules", {})
    return tmp_path


def _process() -> subprocess.Popen:
    paths = [str(ROOT), str(ROOT / "kernels")]
    code = f"import sys; sys.path[:0] = {paths!r}\n{SCRIPT}"
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def _finish(process: subprocess.Popen) -> int:
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return int(out)


def test_a_second_process_compiles_nothing(folder):
    assert _finish(_process()) == 0
    before = {path: path.stat().st_size for path in folder.rglob("*.nb*")}
    assert _finish(_process()) == 1
    after = {path: path.stat().st_size for path in folder.rglob("*.nb*")}
    assert after == before


def test_processes_at_the_same_time(folder):
    for process in [_process(), _process()]:
        _finish(process)
    assert not list(folder.rglob("*.tmp"))


def test_one_text_for_all_sizes(folder):
    for n in (5, 60, 700):
        build(log1pexp(n))
    assert len(list(folder.rglob(f"{generated.PREFIX}*.py"))) == 1


def test_files_are_readable(folder):
    program = build(log1pexp(40))
    (file,) = folder.rglob(f"{generated.PREFIX}*.py")
    assert file.read_text() == program.sources[1]
    assert "logarithm.log1p(exp_" in program.sources[1]
    assert not re.search(r"\b40\b", program.sources[1])


def test_the_oldest_files_go_first(folder, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_LIMIT", "1")
    build(log1pexp(40))
    build(chain(40))
    build(log1pexp(40, np.float32))
    assert len(list(folder.rglob(f"{generated.PREFIX}*.py"))) == 1


def test_clear_cache(folder):
    program = build(log1pexp(40))
    assert list(folder.rglob(f"*/{generated.PREFIX}*.nbi"))
    programs.clear_cache()
    assert not list(folder.rglob(f"{generated.PREFIX}*"))
    graph = log1pexp(40)
    assert_same(program, graph, arrays_for(graph, np.random.default_rng(0)))


def test_another_process_clears_the_cache_meanwhile(folder, monkeypatch):
    load = generated.load

    def load_and_lose(source):
        module = load(source)
        for path in folder.rglob(f"{generated.PREFIX}*"):
            path.unlink()
        return module

    monkeypatch.setattr(generated, "load", load_and_lose)
    for graph in (log1pexp(40), log1pexp(70_000)):
        assert_same(build(graph), graph, arrays_for(graph, np.random.default_rng(0)))


def test_no_folder(monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setattr(generated, "_modules", {})
    graph = log1pexp(30)
    assert_same(build(graph), graph, arrays_for(graph, np.random.default_rng(0)))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the assembly of x86 and GNU names")
def test_loops_are_vectorised_and_call_nothing(monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", "/proc/nowhere")
    monkeypatch.setattr(generated, "_modules", {})
    (dispatcher,) = build(log1pexp(1000)).dispatchers
    (text,) = dispatcher.inspect_asm().values()
    assert not re.search(r"\b(exp|log1p|log|expm1)@?\w*\b\s*$", text, re.MULTILINE)
    if "xmm" in text:
        assert re.search(r"vmulpd|mulpd|vfmadd\w+pd", text)
        assert "vector.memcheck" not in dispatcher.inspect_llvm(dispatcher.signatures[0])
