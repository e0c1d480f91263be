"""What is read as an array, in every namespace: lists that hold tensors, and masked arrays."""

import operator

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tinygrad_cg import keras

_SHAPED_ALIKE = {
    *("add_n", "accumulate_n", "astype", "cast", "block", "from_dlpack"),
    *("broadcast_arrays", "meshgrid"),
    "timestamp",  # the time is another at each call
}


def _gradients(call, read):
    """Return the floating results of ``call(a list of tensors)``, and their gradients."""
    parts = [tf.constant(np.array([0.6, 0.2])), tf.constant(np.array([0.1, 0.7]))]
    with tf.GradientTape() as tape:
        tape.watch(parts)
        results = tf.nest.flatten(call(read([parts[0], 2 * parts[1]])))
        floats = [result for result in results if tf.is_tensor(result) and result.dtype.kind == "f"]
    slopes = tape.gradient(floats, parts) if floats else []
    return [
        tensor.numpy() for tensor in (*floats, *(slope for slope in slopes if slope is not None))
    ]


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
        gradients = _gradients(call, list)
        assert len(gradients) == len(expected), name
        for gradient, other in zip(gradients, expected, strict=True):
            np.testing.assert_array_equal(gradient.ravel(), other.ravel(), err_msg=name)
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


JOINED = """
v, 1.0, 4
2:5, v
0:1:5j, v, -1:1:3j
10, 4:0:-2
[v, v]
v[:2], numpy.float32([1]), True
"0,2", v, w
"1,2", v, w
"0,2,0", v[:2], w[:2]
"-1", k, k
"0,3,1", v, w
"0,3,-1", v, w
7
""".strip().splitlines()


@pytest.mark.parametrize("key", JOINED)
@pytest.mark.parametrize("name", ["r_", "c_"])
def test_what_is_joined_in_brackets(name, key):
    arrays = {
        "v": np.array([0.5, -1.0, 2.0]),
        "w": np.array([3.0, 1.0, 4.0]),
        "k": np.arange(12.0).reshape(2, 3, 2),
    }
    case = f"np.{name}[{key}]"
    try:
        expected = eval(case, arrays | {"np": np, "numpy": np})
    except ValueError:
        with pytest.raises(ValueError, match="concatenate"):
            eval(case, arrays | {"np": tnp, "numpy": np})
        return
    tensors = {name: tf.constant(value) for name, value in arrays.items()}
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(tensors)
        result = eval(case, tensors | {"np": tnp, "numpy": np})
        total = tf.reduce_sum(tf.cast(result, tf.float64))
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected)
    for name, tensor in tensors.items():
        slope = tape.gradient(total, tensor)
        assert (slope is None) == (name not in key)


@pytest.mark.quick
def test_brackets_refuse_what_is_no_directive():
    for key in ("r", "1,2,3,4"):
        with pytest.raises(ValueError, match="up to three integers"):
            tnp.r_[key, [1.0]]
    with pytest.raises(ValueError, match="nothing to join"):
        tnp.c_[()]


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: tnp.moveaxis(x, [0, 0], [0, 1]), "must name equally many axes, each axis once"),
        (lambda x: tnp.moveaxis(x, 0, [0, 1]), "must name equally many axes, each axis once"),
        (lambda x: tnp.cumulative_sum(x), "need an axis, except in 1-D"),
        (lambda x: tnp.linalg.multi_dot([x]), "at least two arrays"),
    ],
)
def test_arguments_that_do_not_fit(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.ones((2, 3)))


def test_cross_products_of_vectors_in_the_plane():
    """They are vectors of space whose third element is 0; NumPy has them, though deprecated."""
    plane, space = np.array([[1.0, 2.0], [-0.5, 3.0]]), np.array([[1.0, -1.0, 2.0]])

    def in_space(x):
        return x if x.shape[1] == 3 else tnp.concatenate([x, tf.zeros_like(x[:, :1])], 1)

    def total(a, b):
        return tnp.sum(tnp.cross(a, b) ** 2)

    for a, b in ((plane, plane[::-1]), (plane, space), (space, plane)):
        results = tf.value_and_grad(total, (0, 1))(a, b)
        expected = tf.value_and_grad(lambda a, b: total(in_space(a), in_space(b)), (0, 1))(a, b)
        for part, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
            np.testing.assert_allclose(part, other, rtol=1e-12)
    assert tnp.cross(plane[0], plane[1]).shape == ()
    with pytest.raises(ValueError, match="must have 3 elements"):
        tnp.linalg.cross(plane, plane)


@pytest.mark.quick
def test_shapes_have_the_originals_methods():
    shape = tf.zeros([2, 3, 4]).shape
    assert (shape[1:].as_list(), shape[:-1].rank, shape[-1]) == ([3, 4], 2, 4)
    assert isinstance(operator.add(shape[:-1], (7,)), tf.TensorShape)
    assert operator.add(shape, [1]).num_elements() == 24
    assert operator.add([5], shape[:1]).as_list() == [5, 2]
    assert shape.concatenate([9]) == (2, 3, 4, 9)
    partial = tf.TensorShape([None, 3, None])
    assert (partial.is_fully_defined(), partial.num_elements()) == (False, None)
    assert shape.is_compatible_with(partial)
    assert not shape.is_compatible_with([2, 3])
    assert shape.is_subtype_of(partial)
    assert not partial.is_subtype_of(shape)
    assert partial.merge_with([2, None, None]) == (2, 3, None)
    assert shape.with_rank(3) is shape.with_rank_at_least(1) is shape.with_rank_at_most(3) is shape
    for call in (
        lambda: shape.with_rank(2),
        lambda: shape.with_rank_at_least(4),
        lambda: shape.with_rank_at_most(2),
        lambda: shape.assert_same_rank([2]),
        lambda: shape.merge_with([2, 3, 5]),
        partial.assert_is_fully_defined,
    ):
        with pytest.raises(ValueError, match=r"Shapes? "):
            call()


@pytest.mark.quick
def test_handles_and_initializers_of_variables():
    v = tf.Variable(3.0)
    assert v.initializer is None
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v.handle)
        y = v * v
    assert float(tape.gradient(y, v)) == 6.0
    assert tnp.__array_api_version__ == np.__array_api_version__
