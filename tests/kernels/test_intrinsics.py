"""Rows of intrinsics: what each means in Python, and what it is in compiled code."""

import inspect
import itertools

import numba
import numpy as np
import pytest

from tests.support.bits import assert_same_bits
from tinygrad_cg_frontend import Intrinsic, Mark, Untranslatable, translate_formula
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import intrinsics, machine, numba_backend, views
from tinygrad_cg_kernels.runtime import tile_intrinsics as tiles
from tinygrad_cg_kernels.runtime.formulas import KERNELS

pytestmark = pytest.mark.quick
ROWS = {
    name: row
    for name, row in vars(intrinsics).items()
    if isinstance(row, Intrinsic) and not isinstance(row, Mark)
}
VALUES = [0.0, -0.0, 1.5, -2.25, 1e-3, 3e20, np.inf, -np.inf, np.nan, 5e-324, 0.1]
OTHERS = {  # rows that take more than floats
    "like": lambda x, y: intrinsics.like(0.1, x),
    "by_width": lambda x, y: intrinsics.by_width(x, (0.1, 0.2), (0.3, 0.4))[1],
    "bits": lambda x, y: x * intrinsics.like(intrinsics.bits(y) & 15, x),
    "from_bits": lambda x, y: intrinsics.from_bits(intrinsics.bits(x)),
    "polynomial": lambda x, y: intrinsics.polynomial(x, (0.1, -0.7, 1e-3, 0.5)),
    "estrin": lambda x, y: intrinsics.estrin(x, (0.1, -0.7, 1e-3, 0.5, 2.0, 0.3, 0.25, -0.1)),
}


def by_row(name):
    """A function of three floats that calls a row."""
    row, other = ROWS[name], OTHERS.get(name)
    if other is not None:
        return lambda x, y, z: other(x, y)
    count = len(inspect.signature(row.meaning).parameters)
    return (lambda x, y, z: row(x), lambda x, y, z: row(x, y), lambda x, y, z: row(x, y, z))[
        count - 1
    ]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_a_row_means_in_python_what_numba_makes_of_it(name, dtype):
    with np.errstate(all="ignore"):
        values = [np.dtype(dtype).type(value) for value in VALUES]
        function = by_row(name)
        numba_backend.register_helpers()
        build.jitable(OTHERS.get(name, function))
        numba_backend.register_helpers()
        compiled = numba.njit(error_model="numpy")(function)
        for operands in itertools.islice(itertools.product(values, repeat=3), 0, None, 7):
            meant, result = function(*operands), compiled(*operands)
            same = operands[0] == operands[1] or np.isnan(operands[:2]).any()
            if same and name in ("largest_number", "smallest_number"):
                continue  # it means nothing, or may be either zero
            assert_same_bits(np.asarray([result], dtype), np.asarray([meant], dtype))


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_not_for_what_its_rule_excludes(name):
    numba_backend.register_helpers()
    function = ROWS[name]
    count = len(inspect.signature(function.meaning).parameters)
    with pytest.raises((Untranslatable, ValueError, IndexError)):
        translate_formula(by_row(name), "f", ("c128",) * 3, KERNELS, machine.processor())
    names = ", ".join("xyz"[:count])
    call = eval(f"lambda {names}: row({names})", {"row": function})
    with pytest.raises(numba.core.errors.TypingError):
        numba.njit(call).compile((numba.types.unicode_type,) * count)


def test_views_mean_in_python_what_they_are():
    x = np.arange(6.0)
    assert views.vector(views.address_of(x) + 8, 2, np.float64).tolist() == [1, 2]
    assert views.section(x, 2, 3).tolist() == views.span(x, 16, 3).tolist() == [2, 3, 4]
    table = np.array([x.ctypes.data, x.ctypes.data + 8, 16, 8])
    fixed = views.layout(table.ctypes.data, 0, 2, (x.dtype, (x.dtype,)))
    row, value = views.operands(fixed, 1, 2, (x.dtype, (x.dtype,)))
    assert (row.tolist(), value) == ([2, 3], 2)
    assert views.take((row, value), 1) == (3, 2)
    views.put((row, value), views.into(0), 1, 7.0)
    assert x[3] == 7
    assert [np.ndim(part) for part in views.parts((row, value), 0, 1)] == [1, 0]


def sums_of_products(step):
    """A function of two sums of three products, four lanes each."""

    def add_up(x, starts, y, out, places):
        tile = tiles.stack_array(8, x.dtype)
        tiles.clear_tile(tile, 2, 4)
        for k in range(3):
            tiles.add_products(tile, 2, 4, x, starts, k, step, y, 4 * k)
        tiles.store_tile(tile, 2, 4, out, places)

    return add_up


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8"])
@pytest.mark.parametrize("step", [0, 1])
def test_tiles_mean_in_python_what_numba_makes_of_them(step, dtype):
    x, y = np.arange(1, 12).astype(dtype), np.arange(3, 15).astype(dtype)
    starts, places = np.array([2, 0]), np.array([5, 0])
    numba_backend.register_helpers()
    function, results = build.jitable(sums_of_products(step)), []
    numba_backend.register_helpers()
    for add_up in (function, numba.njit(function)):
        results.append(np.zeros(10, dtype))
        add_up(x, starts, y, results[-1], places)
    factors = [[x[start + k + step * np.arange(4)] for k in range(3)] for start in starts]
    products = [(part * y.reshape(3, 4)).sum(0) for part in factors]
    np.testing.assert_array_equal(results[0], [*products[1], 0, *products[0], 0])
    np.testing.assert_array_equal(results[1], results[0])


@pytest.mark.parametrize("dtype", ["complex128", "float64"])
def test_tiles_are_refused(dtype):
    """A complex tile, and one whose size is a variable."""
    numba_backend.register_helpers()

    def clear(x, rows):
        tile = tiles.stack_array(8, x.dtype)
        tiles.clear_tile(tile, 2 if dtype == "complex128" else rows, 4)

    with pytest.raises(numba.core.errors.TypingError):
        numba.njit(clear)(np.zeros(1, dtype), 2)
