"""What NVIDIA's compiler takes of the kernels, where it is installed; nothing runs on a GPU."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from llvmlite import ir
from numba import types

from tests.support.simulator import ROOT
from tinygrad_cg_kernels.runtime import intrinsics

NAMES = [
    *("float_maximum", "float_minimum", "largest_number", "smallest_number", "float_floor"),
    *("float_ceil", "float_round", "float_copysign", "float_absolute", "float_fma"),
    "float_remainder",
]


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_device_code_calls_no_intrinsic_that_nvidias_compiler_lacks(name):
    """It refused `llvm.fabs` and others; and it computes `frem` by a quotient, inexactly."""
    made = getattr(intrinsics, name)
    for kind, size in ((types.float64, ir.DoubleType()), (types.float32, ir.FloatType())):
        for operands in (1, 2, 3):
            try:
                signature, generate = made._defn(None, *[kind] * operands)
                module = ir.Module()
                module.triple = "nvptx64-nvidia-cuda"
                declared = ir.FunctionType(size, [size] * operands)
                function = ir.Function(module, declared, "device_function")
                builder = ir.IRBuilder(function.append_basic_block())
                builder.ret(generate(None, builder, signature, function.args))
            except TypeError:
                continue  # it takes another number of operands
            text = str(module)
            assert "llvm." not in text
            assert "frem" not in text
            break
        else:
            pytest.fail(f"{name} takes neither 1, 2 nor 3 operands")


@pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None,
    reason="needs the package numba-cuda with NVIDIA's compiler",
)
@pytest.mark.parametrize(
    "which", ["elementwise", "reductions", "moves", "programs", "draws", "groups"]
)
def test_nvidias_compiler_takes_every_kernel(which):
    path = os.pathsep.join([str(ROOT), str(ROOT / "kernels")])
    done = subprocess.run(
        [sys.executable, "-m", "tests.cuda.ptx_cases", which],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["refused"] == []
    few = which == "draws"
    assert told["compiled"] > (3 if few else 10)
    assert told["launched"] > (3 if few else 10) or which in ("reductions", "moves")
    assert told["shuffled"] > 3 or which not in ("reductions", "programs", "groups")
