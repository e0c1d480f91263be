"""Every elementary function becomes vector instructions in a loop, with no call in it."""

import math as libm
import platform
import re
from functools import cache

import numba
import numpy as np
import pytest
from llvmlite import binding

from tests.support.accuracy import DTYPES, NAMES
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_frontend import Writer
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Pointwise, flat_kernel
from tinygrad_cg_kernels.loops.rows import run
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.entries import array_type
from tinygrad_cg_kernels.runtime.numba_backend import FLAGS, register_helpers
from tinygrad_cg_kernels.runtime.numba_intrinsics import numba_type

pytestmark = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64")
    or not binding.get_host_cpu_features().get("avx2"),
    reason="looks for AVX2's instructions",
)
ADDRESS = re.compile(r"(?:movabsq\s+\$|call\w*\s+)([A-Za-z]\w*)")
INTERFACE = ("Py", "NRT", "numba_", "native")  # of every compiled function with Python
# Loops call these, number by number.
OUT_OF_LINE = {"beta", "betaln", "expint", "fresnel_cos", "fresnel_sin", "gamma", "rgamma"}
PACKED = {
    "float64": re.compile(r"\tv(?:mul|div|f\w*add\d*|sqrt)\w*pd\s.*%[yz]mm"),
    # Some take digits from float64 on the way.
    "float32": re.compile(r"\tv(?:mul|div|f\w*add\d*|sqrt)\w*p[sd]\s.*%[yz]mm"),
}


def unary_loop(f):
    def loop(x, out):
        for i in range(np.uintp(out.size)):
            out[i] = f(x[i])

    return loop


def binary_loop(f):
    def loop(x, y, out):
        for i in range(np.uintp(out.size)):
            out[i] = f(x[i], y[i])

    return loop


@cache
def assembly(f, inputs, dtype):
    """What a simple loop over the function is compiled to, under the flags of all kernels."""
    loop = (unary_loop, binary_loop)[inputs - 1](f)
    signature = (numba_type(array_type(dtype)),) * (inputs + 1)
    register_helpers()
    compiled = numba.njit(**FLAGS)(loop)
    compiled.compile(signature)
    return compiled.inspect_asm(compiled.signatures[0])


def called(text):
    """The functions of other libraries whose address the code takes."""
    return {name for name in ADDRESS.findall(text) if not name.startswith(INTERFACE)}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [name for name in NAMES if name not in OUT_OF_LINE])
def test_a_loop_is_vectorised_and_calls_nothing(name, dtype):
    f = getattr(elementary, name)
    # What a loop takes for a block that passes the test.
    _, fast = elementary.GUARDED.get(f) or elementary.GUARDED_PAIRS.get(f) or (None, f)
    for version in {fast, f} if f in elementary.GUARDED_PAIRS else {fast}:
        text = assembly(version, len(OPS[name].inputs), dtype)
        assert PACKED[dtype.name].search(text)
        assert not called(text)


def test_a_call_would_be_seen():
    text = assembly(jitable(lambda x: libm.sin(x)), 1, DTYPES[0])
    assert called(text) == {"sin"}
    assert not PACKED["float64"].search(text)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_loop_with_several_results_is_vectorised(dtype):
    def powers(x):
        return x * x, elementary.exp(x), x > 0

    kernel = Pointwise("powers", powers, 1)
    kernel(np.ones(3, dtype))
    (owner,) = kernel.dispatchers.values()
    text = owner._library.get_asm_str()
    assert PACKED[dtype.name].search(text)
    assert "exp" not in called(text)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_loop_of_a_kernel_takes_several_vectors_at_a_time(dtype):
    """log divides once: so many divisions follow one another as vectors are in a round."""
    log = elementary.log
    compiled = numba.njit(**FLAGS)(flat_kernel(run, log, log, log, (dtype,), (dtype,)))
    compiled.compile((numba.types.intp,) * 3)
    text = compiled.inspect_asm(compiled.signatures[0])
    divisions = re.findall(r"\tvdivp[sd]\s.*%[yz]mm|^\.\w+:$", text, re.MULTILINE)
    rounds = "".join("d" if "vdiv" in division else " " for division in divisions).split()
    assert max(map(len, rounds)) == Writer.INTERLEAVED
