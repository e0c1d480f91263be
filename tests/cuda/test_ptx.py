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


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="needs the package numba-cuda with NVIDIA's compiler",
)
@pytest.mark.parametrize(
    "which", ["elementwise", "reductions", "moves", "programs", "draws", "groups"]
)
def test_nvidias_compiler_takes_every_kernel(which):
    done = run_python("-m", "tests.cuda.ptx_cases", which)
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["refused"] == []
    few = which == "draws"
    assert told["compiled"] > (3 if few else 10)
    assert told["launched"] > (3 if few else 10) or which in ("reductions", "moves")
    assert told["shuffled"] > 3 or which not in ("reductions", "programs", "groups")
