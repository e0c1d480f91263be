"""What counts, or finds indices: on the device for operands there, as on the CPU."""

import contextlib

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import devices

numpy, keras = tf.numpy, tf.keras.ops
X = np.array([3.0, 1.0, np.nan, 2.0, 1.0, 0.0, -0.0, np.nan, np.inf, -np.inf])
TABLE = np.array([[0.5, 1.0, 1.0, 7.0], [-2.0, 3.0, np.inf, np.nan]])
KEYS = np.array([[1.0, 0.0, np.nan], [np.inf, 3.0, -9.0]])
FINITE = np.array([3.0, 1.0, 2.0, 1.0, 0.0])
SORTED = np.array([5.0, 4.0, 3.0, 1.5, 1.0])
IDS = np.array([3, 1, 2, 1, 0, 5])
ROWS = np.array([[1, 0, 2], [0, 0, 3], [1, 0, 2]])

CASES = [
    (lambda x: tf.where(x > 1), X),
    (lambda x: tf.where(x), ROWS),
    (lambda x: tf.where(x), np.zeros((2, 0))),
    (lambda x: tf.where(x > 1), np.array(2.0)),
    (lambda x: numpy.where(x > 1), ROWS),
    (numpy.nonzero, ROWS),
    (keras.nonzero, ROWS),
    (lambda x: keras.where(x > 0), ROWS),
    (tf.unique, FINITE),
    (tf.unique_with_counts, IDS),
    (tf.unique_with_counts, np.zeros(0)),
    (lambda x: tf.unique(x, tf.int64), X == 1),
    (lambda x: numpy.unique(x, True, True, True), X),
    (lambda x: numpy.unique(x, True, True, True, equal_nan=False), X),
    (lambda x: numpy.unique(x, True, True, True), X.astype("f")),
    (lambda x: numpy.unique(x, True, True, True), ROWS),
    (lambda x: numpy.unique(x, True, True, True, 0), ROWS),
    (lambda x: numpy.unique(x, True, True, True), FINITE + 1j),
    (lambda x: numpy.unique(x, True, True, True), np.zeros((0, 3))),
    (lambda x: numpy.union1d(x, x[:2]), IDS),
    (lambda x: keras.unique(x, return_counts=True), IDS),
    (lambda x: tf.searchsorted([-1.0, 0.0, 0.0, 2.0, np.inf, np.nan], x), X),
    (lambda x: tf.searchsorted([-1.0, 0.0, 0.0, 2.0], x, "right", tf.int64), X),
    (lambda x: tf.searchsorted(x, KEYS), TABLE),
    (lambda x: tf.searchsorted(x, KEYS, "right"), TABLE),
    (lambda x: tf.searchsorted(x, KEYS[:, :0]), TABLE),
    (lambda x: tf.searchsorted(TABLE[:, :0], x), KEYS),
    (lambda x: numpy.searchsorted(np.array([0, 1, 2]), x), FINITE),
    (lambda x: numpy.searchsorted(numpy.sort(x), x, "right"), X.astype("e")),
    (lambda x: numpy.searchsorted(numpy.sort(x), x), X > 1),
    (lambda x: numpy.searchsorted(numpy.sort(x), x), FINITE + 1j),
    (lambda x: numpy.searchsorted(x, 2, sorter=np.argsort(FINITE)), FINITE),
    (lambda x: numpy.searchsorted(x[:1], x[0]), FINITE),
    (lambda x: keras.digitize(x, [0.0, 1.5]), FINITE),
    (tf.math.bincount, IDS),
    (lambda x: tf.math.bincount(x, minlength=9, maxlength=3), IDS),
    (numpy.bincount, IDS),
    (numpy.bincount, IDS[:0]),
    (lambda x: numpy.bincount(x, minlength=9), IDS),
    (lambda x: numpy.bincount(IDS, x), np.arange(6.0)),
    (lambda x: tf.histogram_fixed_width(x, [0.0, 3.0], 4), FINITE),
    (lambda x: numpy.histogram(x, 4), FINITE),
    (lambda x: numpy.histogram(x, [0.0, 1.0, 3.0]), X),
    (lambda x: numpy.histogram(x, 3, density=True), FINITE),
    (lambda x: numpy.histogram(x, 3, (0.5, 2.5)), FINITE.astype("f")),
    (lambda x: numpy.histogram(x, 3, weights=x), FINITE),
    (lambda x: keras.histogram(x, 4), FINITE),
]


@pytest.mark.parametrize("k", range(len(CASES)))
def test_results_are_those_of_the_cpu_and_beside_the_operands(k):
    function, values = CASES[k]
    results, want = function(tf.constant(values).gpu()), function(tf.constant(values))
    results, want = (
        value if isinstance(value, (list, tuple)) else [value] for value in (results, want)
    )
    assert len(results) == len(want)
    for result, other in zip(results, want, strict=True):
        assert (result.device, other.device) == ("gpu:0", "cpu")
        assert (result.dtype, result.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(result.numpy(), other.numpy())


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (lambda x: tf.reduce_sum(tf.unique(x * x)[0] ** 2), FINITE),
        (lambda x: tf.reduce_sum(numpy.unique(x * x)[1:] ** 2), FINITE),
        (lambda x: tf.reduce_sum(tf.gather_nd(x, tf.where(x > 1)) ** 3), FINITE),
        (
            lambda x: tf.reduce_sum(
                x * 0
                + numpy.histogram(x, numpy.stack([x[4], x[1] + 0.5, x[0]]), density=True)[0][0] ** 2
            ),
            FINITE,
        ),
        (lambda x: tf.reduce_sum(numpy.histogram(x, [0.0, 1.5, 3.0], weights=x)[0] ** 2), FINITE),
        (lambda x: tf.reduce_sum(tf.math.bincount([1, 0, 1, 2, 2], weights=x) ** 2), FINITE),
    ],
)
def test_derivatives_hold(function, values):
    moved, want = tf.constant(values).gpu(), tf.constant(values)
    for _ in range(2):
        results = []
        for x in (moved, want):
            slope = tf.grad(function)(x)
            results.append(slope)
        assert [result.device for result in results] == ["gpu:0", "cpu"]
        np.testing.assert_allclose(results[0].numpy(), results[1].numpy(), 1e-12)
        function = lambda x, first=function: tf.reduce_sum(tf.sin(tf.grad(first)(x)))


def test_what_is_refused_on_the_cpu_is_refused_there():
    x = tf.constant(FINITE).gpu()
    with pytest.raises(ValueError, match="must increase"):
        numpy.histogram(x, [1.0, 0.0])
    with pytest.raises(ValueError, match="negative"):
        numpy.bincount(tf.constant([1, -1]).gpu())
    with pytest.raises(tf.errors.InvalidArgumentError, match="contains negative values"):
        tf.math.bincount(tf.constant([1, -1]).gpu())
    with pytest.raises(tf.errors.InvalidArgumentError, match="the same axes before the last"):
        tf.searchsorted(tf.constant(TABLE).gpu(), x)
    with pytest.raises(ValueError, match="side"):
        numpy.searchsorted(x, x, "middle")


def test_a_check_of_another_stream_is_waited_for(monkeypatch):
    cuda, waits = devices.library().cuda, []
    wait = cuda.runtime.deviceSynchronize
    monkeypatch.setattr(cuda.runtime, "deviceSynchronize", lambda: waits.append(wait()))
    x = tf.range(3.0).gpu()
    for index, count in ((1, 0), (3, 1)):
        with cuda.Stream(non_blocking=True) if count else contextlib.nullcontext():
            y = tf.gather(x, tf.constant([index]).gpu())
        if count:
            with pytest.raises(IndexError, match="index 3 is out of bounds"):
                y.numpy()
        else:
            assert y.numpy().tolist() == [1.0]
        assert len(waits) == count


def test_memory_that_does_not_suffice():
    x = tf.ones((1 << 10,), tf.float64).gpu()
    devices.limit_memory(1 << 10)
    try:
        for name, function in (
            ("unique", lambda: numpy.unique(x)),
            ("searchsorted", lambda: tf.searchsorted([1.0], x)),
        ):
            with pytest.raises(MemoryError, match=f"^{name}: the memory of 'gpu:0'"):
                function()
    finally:
        devices.limit_memory(0)
