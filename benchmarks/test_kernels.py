"""Every elementary function and reduction, in each library that has it; compilation is timed
separately.

Where nothing is timed, the smallest size shows that all of it runs.
"""

import pytest

from benchmarks.kernels import DTYPES, FUNCTIONS, LIBRARIES, REDUCTIONS
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._tour.timing import settle
from tinygrad_cg_kernels.loops.engine import Elementwise

SIZES = (100, 10_000, 1_000_000)


@pytest.fixture
def timed(benchmark):
    """Time a call of a kernel on a number of elements, by its better form."""

    def run(group, size, build):
        if benchmark.disabled and size > SIZES[0]:
            pytest.skip("larger than what shows that it runs")
        call = build()
        if call is None:
            pytest.skip("the library has no such function")
        benchmark.group = group
        call() if benchmark.disabled else settle(call)
        benchmark(call)

    return run


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda value: value.name)
def test_function(timed, function, dtype, size, library):
    """Time an elementary function."""
    group = f"{function.name} {dtype} {size}"
    timed(group, size, lambda: function.build(library, size, dtype))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda value: value.name)
def test_reduction(timed, reduction, dtype, size, library):
    """Time a reduction of a vector."""
    group = f"{reduction.name} {dtype} {size}"
    timed(group, size, lambda: reduction.build(library, (size,), 0, dtype))


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("axis", [1, 0])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda value: value.name)
def test_reduction_of_a_matrix(timed, reduction, dtype, axis, library):
    """Time a reduction over an axis of (4096, 1000)."""
    group = f"{reduction.name} {dtype} (4096, 1000) axis {axis}"
    timed(group, 4096 * 1000, lambda: reduction.build(library, (4096, 1000), axis, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda value: value.name)
def test_compiling(benchmark, function, dtype):
    """Time the first call of a kernel that no cache holds."""
    if benchmark.disabled and function is not FUNCTIONS[0]:
        pytest.skip("the first function shows that it runs")
    scalar, data = OPS[function.name].kernel.function, function.data(10, dtype)

    def first_call():
        # A function of a module that is not the kernels' own is not kept on disk.
        versions = (lambda x: scalar(x), lambda x, y: scalar(x, y))
        version = versions[function.operands - 1]
        return Elementwise(function.name, version, function.operands, "float")(*data)

    benchmark.group = f"compile {function.name}"
    benchmark.pedantic(first_call, rounds=1)
