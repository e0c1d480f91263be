"""Kernels that take objects: arrays, boxes of arrays and Python's numbers, as they are."""

import gc
import sys
import tracemalloc

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops import small
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.reduce import reduction
from tinygrad_cg_kernels.runtime import objects, tiers

pytestmark = pytest.mark.skipif(not objects.supported, reason="objects are not looked at here")

add = Elementwise("add", elementary.add, 2)
multiply = Elementwise("multiply", elementary.multiply, 2)
exp = Elementwise("exp", elementary.exp, 1, "float")
less = Elementwise("less", elementary.less, 2, "compare")
where = Elementwise("where", elementary.where, 3, "select")
FLOATS = ("float64", "float32")
DTYPES = (*FLOATS, "int8", "int64", "uint16", "complex64", "complex128")


def enter(kernel, *args):
    """The small kernel for such arrays, with all its parts."""
    kernel(*args)
    for owner in kernel.dispatchers.values():
        tiers.finish(owner)
    return kernel.small_kernel[0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (0,), (2, 0), (1, 1, 1), (4000,)])
def test_arrays_of_one_shape(shape, dtype):
    x = np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    y = np.asarray(x + 3, dtype)
    got = enter(add, x, y)(x, y)
    assert type(got) is np.ndarray
    assert got.dtype == dtype
    assert got.flags.owndata
    assert got.flags.writeable
    assert got.flags.c_contiguous
    np.testing.assert_array_equal(got, x + y, strict=True)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("value", [2, 0, -0.0, 0.1, -7, 1e-300, 2**24, -1.5])
def test_numbers_beside_arrays(value, dtype):
    x = np.array([1.5, -2.0, 0.0], dtype)
    run = enter(multiply, x, x)
    expected = x * np.array(value, dtype)
    for got in (run(x, value), run(value, x), run(x[:1], value), run(value, x[:1])):
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected[: len(got)])
        np.testing.assert_array_equal(np.signbit(got), np.signbit(expected[: len(got)]))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "value", [True, None, "1", 10**30, 2**53 + 1, np.inf, np.nan, 1j, np.float64(2), [1.0]]
)
def test_what_is_no_number_of_floats_is_refused(value, dtype):
    x = np.ones(3, dtype)
    run = enter(add, x, x)
    assert run(x, value) is None
    assert run(value, x) is None
    assert run(value, value) is None


def test_numbers_beside_float32_must_fit_it():
    x = np.ones(3, np.float32)
    run = enter(add, x, x)
    assert run(x, 1e39) is None
    assert run(x, 2**24 + 1) is None
    assert run(x, 3.4e38)[0] == np.float32(3.4e38)


def test_a_kernel_takes_numbers_from_its_first_call_on():
    kernel = Elementwise("subtract", elementary.subtract, 2)
    x = np.array([1.5, -2.0, 0.0])
    kernel(x, x)
    run = kernel.small_kernel[0]
    np.testing.assert_array_equal(run(x, 2.0), x - 2)
    np.testing.assert_array_equal(kernel(x, np.array(2.0)), x - 2)
    np.testing.assert_array_equal(run(2.0, x), 2 - x)
    np.testing.assert_array_equal(kernel(np.array(2.0), x), 2 - x)


def test_integers_take_no_numbers():
    x = np.arange(3)
    assert enter(add, x, x)(x, 2) is None


def test_scalars_beside_arrays():
    x, ten = np.array([1.0, 2.0, 3.0]), np.array(10.0)
    run = enter(add, x, x)
    assert run(x, ten).tolist() == run(ten, x).tolist() == [11, 12, 13]
    assert run(ten, ten).shape == ()
    assert run(ten, np.ones((1, 1))).shape == (1, 1)
    assert run(np.ones((0, 2)), ten).shape == run(ten, np.ones((0, 2))).shape == (0, 2)


def test_other_layouts_dtypes_and_sizes_are_refused():
    x = np.ones((4, 4))
    run = enter(add, x, x)
    misaligned = np.zeros(33, np.uint8)[1:].view(np.float64)
    others = [x[::2], x.T[:2].T, x[:, :1], x[0], np.ones((4, 4), np.float32), x.astype(">f8")]
    for other in (*others, x.view(np.matrix), np.asfortranarray(np.ones((4, 3)))):
        assert run(other, x) is None
        assert run(x, other) is None
    assert run(misaligned, misaligned) is None
    large = np.ones(small.MAX_SIZE + 1)
    assert run(large, large) is None
    assert run(large[1:], large[1:]).sum() == 2 * small.MAX_SIZE


def test_boxes():
    x = tf.constant([1.0, 2.0])
    run = enter(add, x._data, x._data)
    for got in (run(x, x), run(x, x._data), run(x._data, x), run(x, 1), run(1.0, x)):
        assert type(got) is tf.Tensor
        assert got._rec is None
    variable = tf.Variable([1.0, 2.0])
    assert run(variable, x) is run(x, variable) is None  # reading it tells listeners


def test_results_of_another_dtype():
    x, y = np.array([1.0, 2.0]), np.array([2.0, 1.0])
    got = enter(less, x, y)(x, y)
    assert got.dtype == bool
    assert got.tolist() == [True, False]
    got = enter(where, got, x, y)(got, x, y)
    assert got.tolist() == [1, 1]


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_totals(name, dtype):
    kernel = getattr(reduction, name)
    x = (np.arange(6, dtype=dtype) + 1).reshape(2, 3)
    small_kernel = enter(kernel, x, (0, 1))
    got = small_kernel(x)
    assert got.shape == ()
    assert got.dtype == dtype
    assert got == getattr(np, name)(x)
    assert small_kernel(x[:, ::2]) is None
    assert small_kernel(x[:0]) is None


def test_totals_of_many_elements_have_the_bits_of_the_core():
    rng = np.random.default_rng(0)
    for size in (100, 5000, small.MAX_SIZE):
        x = rng.normal(size=size)
        assert reduction.sum(x, (0,)) == reduction.sum(x[None], (1,))[0]


def test_nothing_is_kept_and_nothing_freed_twice():
    x = tf.constant([1.0, 2.0])
    run = enter(add, x._data, x._data)
    counted = (x, x._data, x._data.dtype, tf.Tensor, None)
    before = [sys.getrefcount(array) for array in counted]
    for _ in range(1000):
        for y in (x, x._data, 2, "no"):
            run(x, y)
    after = [sys.getrefcount(array) for array in counted]
    assert all(abs(a - b) < 50 for a, b in zip(after, before, strict=True))
    gc.collect()
    tracemalloc.start()
    kept = [run(x, x) for _ in range(1000)]
    used = tracemalloc.get_traced_memory()[0]
    del kept
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < used / 10


def test_results_belong_to_the_garbage_collector():
    x = tf.constant([1.0])
    y = enter(add, x._data, x._data)(x, x)
    assert gc.is_tracked(y)
    assert gc.get_referents(y)


def test_without_a_look_at_objects(monkeypatch):
    monkeypatch.setattr(objects, "supported", False)
    alone = Elementwise("add", elementary.add, 2)
    x = np.array([1.0, 2.0])
    for left, right in ((x, x), (x, x[0:1]), (np.array(1.0), x), (x[:, None], x)):
        np.testing.assert_array_equal(alone(left, right), left + right)
    assert alone.small_kernel == [small.refuse]
    assert Elementwise("exp", elementary.exp, 1, "float")(np.zeros(())) == 1
