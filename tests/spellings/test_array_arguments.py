"""What is read as an array, in every namespace: lists that hold tensors, and masked arrays."""

import operator

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tinygrad_cg import keras

_SHAPED_ALIKE = {"astype", "cast", "block", "from_dlpack", "broadcast_arrays", "meshgrid"}


def _gradients(call, read):
    """Return the floating results of ``call(a list of tensors)``, and their gradients."""
    parts = [tf.constant(np.array([0.6, 0.2])), tf.constant(np.array([0.1, 0.7]))]
    with tf.GradientTape() as tape:
        tape.watch(parts)
        results = tf.nest.flatten(call(read([parts[0], 2 * parts[1]])))
        found = [one for one in results if tf.is_tensor(one) and one.dtype.kind == "f"]
    slopes = tape.gradient(found, parts) if found else []
    return [one.numpy() for one in (*found, *(one for one in slopes if one is not None))]


@pytest.mark.parametrize("namespace", [tnp, tnp.linalg, keras.ops, tf.math, tf.nn, tf])
def test_lists_of_tensors_stay_on_the_tape(namespace):
    """Issue: `numpy.sum([a, 2 * a])` gave the gradient None, without a warning."""
    checked = 0
    for name in namespace.__all__:
        call = getattr(namespace, name)
        if not callable(call) or isinstance(call, type) or name in _SHAPED_ALIKE:
            continue
        try:
            expected = _gradients(call, tf.stack)
        except Exception:
            continue  # needs other arguments
        if not expected:
            continue
        found = _gradients(call, list)
        assert len(found) == len(expected), name
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.ravel(), other.ravel(), err_msg=name)
        checked += 1
    assert checked >= {"tinygrad_cg.numpy": 110}.get(namespace.__name__, 7)


def test_lists_that_hold_tensors_have_numpys_dtypes():
    single, integers = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    assert tnp.array([single, [3.0, 4.0]]).dtype == np.float64  # the inner list is an array
    assert tnp.array([single[0], 3.0]).dtype == np.float32
    assert tnp.array([integers[0], 0.5]).dtype == np.float64
    assert tnp.array([[integers[0], 2], (3, 4)]).dtype == np.int64
    assert tnp.add([integers[0], 2], 0.5).dtype == np.float64
    np.testing.assert_array_equal(tnp.array([[single[0], 5], [6, single[1]]]), [[1, 5], [6, 2]])


def test_lists_of_tensors_in_all_modes():
    def f(x):
        return tnp.sum(tnp.array([x, x**2, [1.0, 2.0]]) * tnp.exp([x, 2 * x, x]))

    def written_out(x):
        return tf.reduce_sum(tf.stack([x, x**2, [1.0, 2.0]]) * tf.exp(tf.stack([x, 2 * x, x])))

    x = tf.constant(np.array([0.3, -0.4]))
    for transform in (
        tf.grad,
        lambda g: tf.function(tf.grad(g)),
        tf.hessian,
        lambda g: lambda x: tf.jvp(g, (x,), (tf.ones_like(x),))[1],
        lambda g: lambda x: tf.vmap(g)(tf.stack([x, 2 * x])),
    ):
        np.testing.assert_allclose(transform(f)(x), transform(written_out)(x), rtol=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize(
    "call",
    [
        lambda m, x: tnp.mean(m),
        lambda m, x: tnp.mean([m, m]),
        lambda m, x: tnp.add([1.0, np.ma.masked], x),
        lambda m, x: tnp.compress(m > 3, x),
        lambda m, x: tnp.searchsorted(x, m),
        lambda m, x: keras.ops.sum([m, m]),
        lambda m, x: tf.constant([m, m]),
        lambda m, x: tf.Variable(m),
        lambda m, x: tf.where(m > 3, x, x),
        lambda m, x: np.multiply(m, x),
        lambda m, x: x[m > 3],
        lambda m, x: x * m,
        lambda m, x: x * [m, m],
        lambda m, x: m * x,
        lambda m, x: m - x,
        lambda m, x: m**x,
        lambda m, x: m @ x,
        lambda m, x: operator.iadd(m.copy(), x),
        lambda m, x: np.ma.exp(x),
    ],
)
def test_masks_are_refused(call):
    """Issue: the mean of a masked 100 was 50.5, and `masked * tensor` was not recorded."""
    masked = np.ma.masked_array([1.0, 100.0], [False, True])
    with pytest.raises(TypeError, match=r"\.filled\(value\)"):
        call(masked, tf.constant([2.0, 3.0]))


@pytest.mark.quick
def test_masks_of_tensors_can_be_asked_for():
    """Plotting programs ask everything for its mask."""
    x = tf.constant([2.0, np.nan])
    assert not hasattr(x, "_mask")
    assert np.ma.getmask(x) is np.ma.nomask
    np.testing.assert_array_equal(np.ma.masked_invalid(x).mask, [False, True])
    compared = np.ma.array([1.0, 2.0], mask=[0, 1]) < x
    assert compared.tolist() == [True, None]


@pytest.mark.quick
def test_arguments_that_say_where_results_lie():
    """docs/behaviour.md 4.4: there is one device, and tensors are immutable."""
    x = tf.constant([1.0, 2.0])
    assert tnp.asarray(x, copy=False, device="cpu") is x
    assert tnp.asarray(x, copy=True).numpy().tolist() == [1.0, 2.0]
    for call in (
        lambda: tnp.asarray([1.0], copy=False),
        lambda: tnp.asarray(x, dtype=np.float64, copy=False),
        lambda: tnp.zeros(2, device="gpu"),
        lambda: tnp.astype(x, np.float64, device="gpu"),
        lambda: tnp.max(x, where=[True, False]),
        lambda: tnp.std(x, ddof=1, correction=1),
        lambda: tnp.reshape(x, (1, 2), order="Q"),
        lambda: tnp.take(x, 1, mode="else"),
    ):
        with pytest.raises(ValueError, match=r"copy|device|initial|ddof|order|mode"):
            call()
    for call in (lambda: tnp.sum(x, out=x), lambda: x.cumsum(0, None, x)):
        with pytest.raises(TypeError, match="out= is not supported"):
            call()


def test_rows_in_front():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tnp.array([x, x**2], ndmin=3)
    assert y.shape == (1, 2, 2)
    np.testing.assert_array_equal(tape.gradient(y, x), [3.0, 5.0])
