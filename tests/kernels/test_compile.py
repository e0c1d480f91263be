"""The disk cache, in processes of its own, and what kernels are made of."""

import ast
import gc
import importlib
import linecache
import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock

from tests.support.processes import run_in_child
from tests.support.python import run_python
from tinygrad_cg_frontend import Untranslatable, source_of
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import numba_backend, service, texts
from tinygrad_cg_kernels.runtime import store as disk
from tinygrad_cg_kernels.runtime.formulas import KERNELS as LIBRARY
from tinygrad_cg_kernels.runtime.store import Store

KERNELS = Path(build.__file__).parents[2]

PROGRAM = """
import numpy as np
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.reduce import reduction
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.loops.engine import Elementwise

exp, add = Elementwise("exp", elementary.exp, 1, "float"), Elementwise("add", elementary.add, 2)
sin = Elementwise("sin", elementary.sin, 1, "float")
own = Elementwise("own", lambda x: x * x + 1, 1)
row, large = np.ones(10), np.ones(threads.MIN_BLOCKED)
for x in (np.ones(()), row, np.ones((4, 6))[:, ::2], large):
    exp(x), add(x, x), sin(x), own(x), reduction.sum(x, tuple(range(x.ndim)))
add(row, row.copy(), out=row)
assert own(np.array(2.0)) == 5

def count(names):  # a worker's code is compiled with the pool, but loaded if calls take long enough
    return len([name for name in names if not name.startswith("thread_pool_worker")])

print(count(build.loaded), count(build.compiled))
"""


def run(program: str, **environment: str) -> str:
    """What a program prints, in a process with these variables."""
    return run_python("-W", "error", "-c", program, **environment).stdout.strip()


def files(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_a_second_process_compiles_nothing_and_the_cache_does_not_grow(tmp_path):
    hits, misses = map(int, run(PROGRAM, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).split())
    assert hits == 0
    assert misses > 0
    before = files(tmp_path)
    assert before
    hits, missed = map(int, run(PROGRAM, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).split())
    assert missed == 0
    assert hits == misses
    assert files(tmp_path) == before


SMALL = """
import numpy as np
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.reduce import reduction
from tinygrad_cg_kernels.loops.engine import Elementwise

exp, x = Elementwise("exp", elementary.exp, 1, "float"), np.linspace(0, 1, 50)
assert abs(exp(x) - np.exp(x)).max() < 1e-15
assert abs(reduction.sum(x, (0,)) - x.sum()) < 1e-13
print(len(build.compiled), len(build.loaded))
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A cache folder with what SMALL needs."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(SMALL, TINYGRAD_CG_CACHE_DIR=str(folder)).split()[0] != "0"
    return folder


def test_several_processes_start_at_once_on_an_empty_cache(tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(KERNELS),
        "TINYGRAD_CG_CACHE_DIR": str(tmp_path / "new"),
    }
    command = [sys.executable, "-W", "error", "-c", SMALL]
    started = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    counts = []
    for process in started:
        printed, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
        counts.append([int(word) for word in printed.split()])
    if os.name == "posix":  # one compiles each kernel, the others wait for it
        assert sum(compiled for compiled, _ in counts) == sum(counts[0])
    assert run(SMALL, TINYGRAD_CG_CACHE_DIR=str(tmp_path / "new")).split()[0] == "0"


def folder_of_age(path: Path, days: float, *files: str) -> Path:
    path.mkdir()
    for name in files:
        (path / name).write_text("")
    os.utime(path, (time.time() - days * 86400,) * 2)
    return path


def test_folders_of_older_versions_are_removed(tmp_path):
    recent = [folder_of_age(tmp_path / f"{k:016x}", k / 100, "a.nbi") for k in range(1, 4)]
    young = folder_of_age(tmp_path / f"{7:016x}", 0.5, "a.nbi")
    stale = folder_of_age(tmp_path / f"{8:016x}", 9, "a.nbi", "a.1.nbc")
    others = [
        folder_of_age(tmp_path / "mine", 9, "a.nbi"),
        folder_of_age(tmp_path / f"{9:016x}", 9, "notes.txt"),
    ]
    program = "from tinygrad_cg_kernels.runtime import store\nprint(store.cache_folder())"
    folder = run(program, TINYGRAD_CG_CACHE_DIR=str(tmp_path))
    assert Path(folder).is_dir()
    assert not stale.exists()
    assert all(path.exists() for path in (*recent, young, *others))


def test_no_writable_folder_is_no_error(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    program = (
        "import numpy as np\n"
        "from tinygrad_cg_kernels import elementary\n"
        "from tinygrad_cg_kernels.runtime import store\n"
        "from tinygrad_cg_kernels.loops.engine import Elementwise\n"
        "assert store.cache_folder() is None\n"
        "print(Elementwise('add', elementary.add, 2)(np.ones(()), np.ones(())))\n"
    )
    assert run(program, TINYGRAD_CG_CACHE_DIR=str(blocked / "below")) == "2.0"
    assert blocked.read_text() == "not a folder"


def test_files_that_the_system_refuses_to_look_for_are_not_there():
    store = Store("a name that is too long for a folder" * 20)
    assert not store.has("anything")
    store.write("anything", {}, b"code")
    assert store.read("anything") is None


@pytest.mark.quick
def test_importing_compiles_nothing_and_writes_nothing(tmp_path):
    program = (
        "import tinygrad_cg_kernels\n"
        "from tinygrad_cg_kernels.loops import engine\n"
        "from tinygrad_cg_kernels.reduce import reduction\n"
        "from tinygrad_cg_kernels.move import gather\n"
        "from tinygrad_cg_kernels.linear import matmul\n"
        "from tinygrad_cg_kernels.runtime import threads\n"
        "from tinygrad_cg_kernels import elementary\n"
        "from tinygrad_cg_kernels.loops.engine import Elementwise\n"
        "add = Elementwise('add', elementary.add, 2)\n"
        "print(add.dispatchers, reduction.sum.dispatchers)\n"
    )
    assert run(program, TINYGRAD_CG_CACHE_DIR=str(tmp_path)) == "{} {}"
    assert not files(tmp_path)


@pytest.mark.quick
def test_the_cache_folder_is_named_by_the_sources(monkeypatch, tmp_path):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    folder = disk.cache_folder()
    assert folder is not None
    assert folder.parent == tmp_path
    assert disk.STAMP.startswith(folder.name)
    assert len(disk.STAMP) == 64


def test_the_stamp_covers_all_rooms_and_versions(tmp_path):
    inner = tmp_path / "room" / "inner"
    inner.mkdir(parents=True)
    (inner / "a.py").write_text("x = 1")

    def stamp(version):
        return disk.stamp(disk.digests(tmp_path), tmp_path, version)

    first = stamp("1.0")
    assert stamp("1.0") == first
    assert stamp("2.0") != first
    (inner / "a.py").write_text("x = 2")
    second = stamp("1.0")
    assert second != first
    (inner / "a.py").rename(tmp_path / "room" / "a.py")
    assert stamp("1.0") not in (first, second)
    assert disk._current_stamp() == disk.STAMP


def test_a_function_is_not_read_from_a_file_that_changed_since_it_was_imported(
    tmp_path, monkeypatch
):
    file = tmp_path / "kernels_of_a_test.py"
    file.write_text("def twice(x):\n    return x + x\n\n\ndef half(x):\n    return x / 2\n")
    monkeypatch.setattr(disk, "_sources", disk._sources | disk.digests(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("kernels_of_a_test")
    assert ast.unparse(source_of(module.twice, LIBRARY).body[0]) == "return x + x"
    linecache.clearcache()
    file.write_text("def twice(x):\n    return x + y\n\n\ndef half(x):\n    return x / 3\n")
    with pytest.raises(Untranslatable, match="which has changed"):
        source_of(module.half, LIBRARY)
    file.unlink()
    linecache.clearcache()
    with pytest.raises(Untranslatable):
        source_of(module.half, LIBRARY)


@pytest.mark.quick
def test_kernels_carry_their_name(monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_COMPILER", "llvm")
    add = Elementwise("my_add", elementary.add, 2)
    add(np.ones(3), np.ones(3))
    add(np.ones(3), np.ones(3)[::-1])
    owners = {key[0]: owner for key, owner in add.dispatchers.items()}
    assert set(owners) == {"small", "tiles"}
    assert owners["small"].callable().__name__ == "my_add_small"
    assert {"my_add_small", "my_add_tiles"} <= {*build.compiled, *build.loaded}
    monkeypatch.setenv("TINYGRAD_CG_COMPILER", "numba")
    arcsin, z = Elementwise("my_arcsin", elementary.arcsin, 1), np.ones(3, complex)
    arcsin(z)
    arcsin(z[::-1])
    owners = {key[0]: owner for key, owner in arcsin.dispatchers.items()}
    assert isinstance(owners["small"], numba.core.registry.CPUDispatcher)
    assert owners["small"].py_func.__name__ == "my_arcsin_small"
    assert owners["small"].py_func.__qualname__ == "my_arcsin_small"
    assert isinstance(owners["tiles"], CFunc)
    assert owners["tiles"].__name__ == owners["tiles"].__qualname__ == "my_arcsin_tiles"


def test_a_function_of_the_users_own():
    def cube(x):
        return x * x * x

    @numba.njit
    def halved(x):
        return x / 2

    x = np.array([1.0, 2.0, 3.0])
    for _ in range(2):
        assert Elementwise("cube", cube, 1)(x).tolist() == [1, 8, 27]
        assert Elementwise("halved", halved, 1, "float")(x).tolist() == [0.5, 1, 1.5]
        assert Elementwise("plus", lambda a, b: a + 2 * b, 2)(x, x).tolist() == [3, 6, 9]
    namespace = {}
    exec("def nowhere(x):\n    return x + 1", namespace)
    assert Elementwise("nowhere", namespace["nowhere"], 1)(x).tolist() == [2, 3, 4]


def test_a_function_of_the_users_own_may_use_ours():
    exp, log = elementary.exp, elementary.log
    twice = Elementwise("twice", lambda x: log(exp(x)) * 2, 1, "float")
    np.testing.assert_allclose(twice(np.array([1.0, 2.0])), [2, 4])


def test_a_function_that_numba_cannot_compile():
    broken = Elementwise("broken", lambda x: x.nothing, 1)
    with pytest.raises(TypeError, match="broken: no kernel for dtype float64"):
        broken(np.ones(3))


def test_a_numba_without_entry_points_serves_through_the_dispatcher():
    class Dispatcher:
        def __init__(self):
            self.overloads = {(1,): object()}
            self.compiled = None

        def compile(self, types):
            self.compiled = types

    dispatcher = Dispatcher()
    assert numba_backend.entry(dispatcher, 1) is dispatcher
    assert dispatcher.compiled == (1,)


@pytest.mark.parametrize("left", [b"", b"\x80\x05damaged"], ids=["emptied", "cut"])
def test_damaged_files_in_the_cache_are_made_anew(compiled, tmp_path, left):
    """A full disk or a crash may leave them."""
    shutil.copytree(compiled, tmp_path, dirs_exist_ok=True)
    assert run(SMALL, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).split()[0] == "0"
    for path in tmp_path.rglob("*.code"):
        path.write_bytes(left)
    warned = f"import warnings; warnings.simplefilter('ignore', RuntimeWarning)\n{SMALL}"
    assert run(warned, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).split()[0] != "0"
    assert run(SMALL, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).split()[0] == "0"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("lock", [global_compiler_lock, service.lock], ids=["Numba's", "ours"])
def test_a_child_forked_while_a_thread_compiles_may_compile(lock):
    locked = threading.Event()

    def hold_lock():
        with lock:
            locked.set()
            time.sleep(0.3)

    thread = threading.Thread(target=hold_lock)
    thread.start()
    locked.wait()

    def take_lock():
        with lock:
            pass

    run_in_child(take_lock)
    thread.join()


@pytest.mark.quick
def test_what_numba_compiles_is_not_kept(store):
    """Numba keeps pickles, which run code when they are read."""
    add_one = numba_backend.kernel(lambda x: x + 1.0, "add_one")
    assert numba_backend.entry(add_one, numba.float64)(1.0) == 2.0
    assert not any(path.is_file() for path in disk.cache_folder().rglob("*"))
    for source in disk.PACKAGE.rglob("*.py"):
        assert "pickle" not in source.read_text(encoding="utf-8"), source


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    return Store("kind")


@pytest.mark.quick
def test_a_file_under_another_name_is_not_believed(store):
    """The checksum covers the name: two kernels' files exchanged would compute the other one's."""
    store.write("sin", {"of": "sin"}, b"one")
    store.write("cos", {"of": "cos"}, b"two")
    paths = [store._path(name) for name in ("sin", "cos")]
    contents = [path.read_bytes() for path in paths]
    for path, content in zip(paths, reversed(contents), strict=True):
        path.write_bytes(content)
    for name in ("sin", "cos"):
        with pytest.warns(RuntimeWarning, match="is damaged"):
            assert store.read(name) is None
    store.write("sin", {"of": "sin"}, b"one")
    assert store.read("sin") == ({"of": "sin"}, b"one")


@pytest.mark.quick
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_no_file_is_not_read_and_nothing_is_left_behind(store):
    store.write("sin", {}, b"one")
    path = store._path("sin")
    path.unlink()
    os.mkfifo(path)
    assert store.read("sin") is None
    path.unlink()
    path.mkdir()
    store.write("sin", {}, b"one")  # a folder cannot be replaced by a file
    assert store.read("sin") is None
    assert [path.name for path in path.parent.iterdir()] == [path.name]


@pytest.mark.quick
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system cannot tell")
def test_a_folder_that_others_can_write_to_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path / "shared"))
    monkeypatch.setattr(disk.tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    shared = disk.cache_folder()
    assert shared is not None
    assert shared.stat().st_mode & 0o777 == 0o700
    for function in (disk._is_private, disk._instead_of):
        function.cache_clear()
    shared.chmod(0o777)
    try:
        with pytest.warns(RuntimeWarning, match="others can write"):
            private = disk.cache_folder()
        assert private is not None
        assert tmp_path / "temporary" in private.parents
        assert private.stat().st_mode & 0o077 == 0
    finally:
        for function in (disk._is_private, disk._instead_of):
            function.cache_clear()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_forks_exits_and_exchanged_files():
    """A few of what `python -m tests.support.processes` tries many times."""
    for kind, count in (("forks", "3"), ("exits", "1"), ("files", "2")):
        run_python("-m", "tests.support.processes", kind, count)


def test_generated_code_is_shown_in_tracebacks_while_it_exists():
    divided = texts.define("def divided(x):\n    return 1 / x\n", "example", {}, "divided")
    file = divided.__code__.co_filename
    with pytest.raises(ZeroDivisionError) as raised:
        divided(0)
    assert "return 1 / x" in "".join(traceback.format_exception(raised.value))
    del divided, raised
    gc.collect()
    assert file not in linecache.cache
