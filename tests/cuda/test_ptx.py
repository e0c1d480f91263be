"""What NVIDIA's compiler takes of the kernels, where it is installed; nothing runs on a GPU."""

import importlib.util
import inspect
import json

import pytest
from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target

from tests.support.python import run_python
from tinygrad_cg_kernels.runtime import intrinsics, numba_intrinsics

NAMES = [
    *("float_maximum", "float_minimum", "largest_number", "smallest_number", "float_floor"),
    *("float_ceil", "float_round", "float_copysign", "float_absolute", "float_fma"),
    "float_remainder",
]


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_device_code_calls_no_intrinsic_that_nvidias_compiler_lacks(name):
    """It refused `llvm.fabs` and others, and computes `frem` by a quotient, inexactly."""
    row = getattr(intrinsics, name)
    count = len(inspect.signature(row.meaning).parameters)
    for kind, size in ((types.float64, ir.DoubleType()), (types.float32, ir.FloatType())):
        signature, generate = numba_intrinsics._definition(row)(None, *[kind] * count)
        module = ir.Module()
        module.triple = "nvptx64-nvidia-cuda"
        declared = ir.FunctionType(size, [size] * count)
        function = ir.Function(module, declared, "device_function")
        builder = ir.IRBuilder(function.append_basic_block())
        builder.ret(generate(cpu_target.target_context, builder, signature, function.args))
        text = str(module)
        assert name == "float_fma" or "llvm." not in text
        assert "frem" not in text


needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="needs the package numba-cuda with NVIDIA's compiler",
)


def told_by(which: str) -> dict:
    done = run_python("-m", "tests.cuda.ptx_cases", which)
    return json.loads(done.stdout.splitlines()[-1])


@needs_compiler
@pytest.mark.parametrize(
    "which", ["elementwise", "reductions", "moves", "programs", "draws", "groups"]
)
def test_nvidias_compiler_takes_every_kernel(which):
    told = told_by(which)
    assert told["refused"] == told["spilled"] == []
    few = which == "draws"
    assert told["compiled"] > (3 if few else 10)
    assert told["launched"] > (3 if few else 10)
    assert told["shuffled"] > 3 or which not in ("reductions", "programs", "groups")


@needs_compiler
def test_the_second_process_finds_compiled_kernels_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    first, second = told_by("disk"), told_by("disk")
    assert first["launched"] == second["launched"] > 12
    assert first["compiled"] > 12
    assert second["compiled"] == 0
