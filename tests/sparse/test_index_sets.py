"""The kernels for tables of index sets, against dense matrices of bools."""

import numpy as np
import pytest

from tinygrad_cg_kernels.runtime import service
from tinygrad_cg_kernels.sparse import index_sets as kernels

pytestmark = pytest.mark.quick


def table(dense):
    rows, columns = np.nonzero(dense)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
    return indptr, columns.astype(np.int32)


def assert_is(result, dense):
    for array, expected in zip(result, table(dense), strict=True):
        np.testing.assert_array_equal(array, expected)
    assert (result[0].dtype, result[1].dtype) == (np.int64, np.int32)


def random(height, width, density, seed=0):
    return np.random.default_rng(seed).random((height, width)) < density


@pytest.mark.parametrize("density", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize(("height", "inner", "width"), [(9, 7, 8), (30, 40, 300), (1, 1, 1)])
def test_tables(height, inner, width, density):
    a, b = random(height, inner, density), random(height, inner, 0.3, seed=1)
    c = random(inner, width, density, seed=2)
    assert_is(kernels.merge_rows(table(a), table(b)), a | b)
    product = (b.astype(int) @ c.astype(int)) > 0
    assert_is(kernels.multiply_rows(table(b), table(c), width), product)
    assert_is(kernels.transpose_rows(table(c), width), c.T)
    assert_is(kernels.stack_rows([table(a), table(b)]), np.vstack([a, b]))
    rows = np.random.default_rng(3).integers(-1, height, 50)
    assert_is(kernels.take_rows(table(a), rows), a[rows] & (rows >= 0)[:, None])


def test_long_rows_are_sorted():
    """By transposes, from rows that come in any order."""
    groups = np.zeros((3, 500), bool)
    groups[1] = groups[2, ::2] = True
    members = np.random.default_rng(0).permutation(500)
    shuffled = np.arange(501), members.astype(np.int32)
    result = kernels.multiply_rows(table(groups), shuffled, 500)
    expected = np.zeros((3, 500), bool)
    expected[1] = True
    expected[2, members[::2]] = True
    assert_is(result, expected)
    assert result[0].tolist()[-1] > kernels.SHORT


@pytest.mark.parametrize("rows", [0, 2])
def test_nothing(rows):
    nothing = table(np.zeros((rows, 3), bool))
    assert_is(kernels.merge_rows(nothing, nothing), np.zeros((rows, 3)))
    assert_is(kernels.take_rows(nothing, np.zeros(0, np.int64)), np.zeros((0, 3)))
    assert_is(kernels.transpose_rows(nothing, 3), np.zeros((3, rows)))
    assert_is(kernels.multiply_rows(table(np.zeros((4, rows))), nothing, 3), np.zeros((4, 3)))


def test_the_front_end_compiles_all():
    test_tables(9, 7, 8, 0.5)
    names = ("take_rows", "merge_rows", "multiply_rows", "transpose_rows")
    assert not [line for line in service.fallbacks if any(name in line for name in names)]
