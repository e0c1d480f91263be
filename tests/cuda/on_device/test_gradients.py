"""Gradients of tensors on a device: they are where their sources are."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import device_runs
from tinygrad_cg_kernels.cuda import kernels
from tinygrad_cg_kernels.cuda.launches import Prepared

FACTOR = tf.constant([10.0, 20.0])


@tf.custom_gradient
def square(x):
    return x * x, lambda dy: FACTOR * 1.0


SQUARES = [
    square,
    tf.custom_derivatives(lambda x: x * x, vjp=lambda dy, x: FACTOR * 1.0),
    tf.primitive("SquareOfTests", kernel=lambda x: x * x, elementwise=True, replace=True),
]
tf.RegisterGradient("SquareOfTests", replace=True)(lambda op, dy: FACTOR * 1.0)


@pytest.mark.parametrize("square", SQUARES, ids=["gradient", "derivatives", "primitive"])
@pytest.mark.parametrize(
    "use",
    [
        lambda square, x: square(x),
        lambda square, x: square(x) + x,
        lambda square, x: x + square(x),
        lambda square, x: square(tf.exp(x)),
        lambda square, x: tf.vmap(square)(tf.stack([x, x])),
    ],
    ids=["alone", "first", "last", "inside", "vmap"],
)
def test_a_rule_that_returns_a_tensor_of_the_other_device(square, use):
    words = (
        r"the rule of `\S+` returned a gradient on 'cpu' for input `x`, which is on 'gpu:0': "
        r"return it with \.gpu\(\) "
        r"\(the rule: .*test_gradients.py"
    )
    x = tf.constant([1.0, 2.0]).gpu()
    with pytest.raises(tf.errors.ArgumentTypeError, match=words):
        tf.grad(lambda x: tf.reduce_sum(use(square, x)))(x)
    assert tf.grad(lambda x: tf.reduce_sum(x * x))(x).numpy().tolist() == [2.0, 4.0]


def test_a_single_value_that_a_rule_returns_goes_along():
    @tf.custom_gradient
    def scale(x, c):
        return x * c, lambda dy: (dy * c, tf.reduce_sum(dy * x))

    x, v = tf.constant([1.0, 2.0]).gpu(), tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(scale(x, v * 2.0))
    gradient = tape.gradient(y, v)
    assert (gradient.device, gradient.numpy()) == ("cpu", 6.0)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, c: x * c,
        tf.custom_derivatives(lambda x, c: x * c, lambda x, c: (c, x)),
        lambda x, c: tf.vmap(lambda x: tf.py_function(lambda x, c: x * c, [x, c], tf.float32))(x),
    ],
    ids=["operation", "derivatives", "py_function"],
)
def test_gradients_of_single_values_that_went_along_come_back(use):
    x, c = tf.constant([1.0, 2.0]).gpu(), tf.constant(2.0)
    gradient = tf.grad(lambda c: tf.reduce_sum(use(x, c)))(c)
    assert (gradient.device, gradient.numpy()) == ("cpu", 3.0)


def test_an_array_that_a_rule_returns_goes_where_its_input_is():
    @tf.custom_gradient
    def move(x):
        return x.gpu(), lambda dy: np.array([3.0, 4.0], np.float32)

    gradient = tf.grad(lambda x: tf.reduce_sum(move(x)))(tf.constant([1.0, 2.0]))
    assert (gradient.device, gradient.numpy().tolist()) == ("cpu", [3.0, 4.0])


def test_a_rule_that_returns_a_gradient_of_a_variable_elsewhere():
    v = tf.Variable([1.0, 2.0])

    @tf.custom_gradient
    def scale(x):
        return x * v.gpu(), lambda dy, variables=None: (dy, [dy * x])

    x = tf.constant([1.0, 2.0]).gpu()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(scale(x))
    words = r"returned a gradient on 'gpu:0' for the variable .* return .*\.cpu\(\)"
    with pytest.raises(tf.errors.ArgumentTypeError, match=words):
        tape.gradient(y, v)


def test_upstream_gradients_are_where_their_targets_are():
    x = tf.constant([1.0, 2.0]).gpu()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = -x
    upstream = np.array([3.0, 4.0], np.float32)
    assert tape.gradient(y, x, upstream).numpy().tolist() == [-3.0, -4.0]
    words = r"output_gradients\[0\] is on 'cpu', its target on 'gpu:0': pass it with \.gpu\(\)"
    for target in (x, y):
        with pytest.raises(tf.errors.ArgumentTypeError, match=words):
            tape.gradient(target, x, tf.constant(upstream))
    assert tape.gradient(y, x, tf.constant(upstream).gpu()).device == "gpu:0"


def test_rules_with_constants_and_variables():
    v = tf.Variable(tf.constant([1.0, 2.0]).gpu())

    @tf.custom_gradient
    def scaled(x):
        def grad(upstream, variables=None):
            return upstream * tf.constant([2.0, 2.0]), [upstream * x for _ in variables]

        return x * v, grad

    x = tf.constant([3.0, 4.0]).gpu()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    by_x, by_v = tape.gradient(y, [x, v])
    assert by_x.numpy().tolist() == [2.0, 2.0]
    assert by_v.numpy().tolist() == [3.0, 4.0]
    assert {by_x.device, by_v.device} == {"gpu:0"}


def test_gradients_go_back_through_transfers():
    x = tf.constant([1.0, 2.0])
    v = tf.Variable(3.0)  # a single value, which goes along
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.exp(x.gpu()) * v).cpu() + tf.reduce_sum(x)
        by_x, by_v = inner.gradient(y, [x, v])
    assert {y.device, by_x.device, by_v.device} == {"cpu"}
    np.testing.assert_allclose(by_x.numpy(), 3 * np.exp([1.0, 2.0]) + 1, 1e-6)
    np.testing.assert_allclose(by_v.numpy(), np.exp([1.0, 2.0]).sum(), 1e-6)
    np.testing.assert_allclose(outer.gradient(by_x, x).numpy(), 3 * np.exp([1.0, 2.0]), 1e-6)


def test_single_values_that_were_computed_go_along():
    w = tf.Variable([1.0, 2.0, 3.0])
    x = tf.constant([1.0, 2.0]).gpu()
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * tf.reduce_mean(w))
    gradient = tape.gradient(y, w)
    assert gradient.device == "cpu"
    assert gradient.numpy().tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("shape", [(), (1,), (3,)])
def test_seeds_and_upstream_gradients(shape):
    x = tf.fill(shape, 2.0).gpu()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = -x
        parts = tf.unstack(tf.stack([x, x * x]))
    gradients = [tape.gradient(y, x), tape.gradient(y, x, tf.constant(3.0)), tape.gradient(x, x)]
    gradients += [tape.gradient(y, x, tf.fill(shape, 3.0).gpu()), tape.gradient(parts[1], x)]
    assert {gradient.device for gradient in gradients} == {"gpu:0"}
    assert [gradient.numpy().ravel()[0] for gradient in gradients] == [-1.0, -3.0, 1.0, -3.0, 4.0]


def test_outputs_that_nothing_depends_on():
    x = tf.constant([[2.0, 1.0], [1.0, 3.0]]).gpu()
    with tf.GradientTape() as tape:
        tape.watch(x)
        values, _ = tf.linalg.eigh(x)
    np.testing.assert_allclose(tape.gradient(values, x).numpy(), np.eye(2), atol=1e-6)


def test_totals_of_many_large_gradients():
    x = tf.ones((1200,)).gpu()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.add_n([x * float(i) for i in range(4)])
    gradient = tape.gradient(y, x)
    assert gradient.device == "gpu:0"
    assert gradient.numpy().tolist() == [6.0] * 1200


class TestVariables:
    def test_assignments(self):
        v = tf.Variable(tf.constant([1.0, 2.0]).gpu())
        before = v.value()
        v.assign([3.0, 4.0])
        v.assign_add(tf.constant([1.0, 1.0]).gpu())
        v.assign_sub(np.array([0.5, 0.5], "f"))
        v[0].assign(9.0)
        v[1].assign_add(1.0)
        assert (v.device, v.numpy().tolist()) == ("gpu:0", [9.0, 5.5])
        assert before.numpy().tolist() == [1.0, 2.0]
        assert v.dtype == np.float32
        with pytest.raises(ValueError, match="Shape mismatch"):
            v.assign([1.0])
        assert repr(v) == repr(tf.Variable([9.0, 5.5]))

    def test_gradients(self):
        with tf.device("GPU"):
            v = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * v)
        assert tape.gradient(y, v).numpy().tolist() == [2.0, 4.0]

    def test_gradients_through_assignments(self):
        w = tf.Variable(tf.constant(1.0).gpu())
        optimizer = tf.optimizers.SGD(0.1)
        with tf.GradientTape() as outer, tf.experimental.recorded_assignments(restore=True):
            with tf.GradientTape() as inner:
                loss = w**2
            optimizer.apply([inner.gradient(loss, w)], [w])
            meta_loss = w**2
        assert float(outer.gradient(meta_loss, w)) == pytest.approx(1.28)
        assert w.device == "gpu:0"


OPTIMIZERS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "global_clipnorm": 1.0},
    "Adam": {"amsgrad": True, "clipnorm": 1.0},
    "AdamW": {},
    "Adamax": {},
    "Adagrad": {"clipvalue": 0.5},
    "RMSprop": {"centered": True, "momentum": 0.5},
    "Adadelta": {},
    "Lion": {"weight_decay": 0.1},
}


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rows_are_normalised_in_one_launch(name, monkeypatch):
    launches, launch = [], Prepared.__call__
    monkeypatch.setattr(Prepared, "__call__", lambda *a: (launches.append(a[0]), launch(*a)))
    function = getattr(tf.nn, name)
    rows = tf.constant([[1.0, -np.inf, 3.0, 2.0, 0.5], [0.0, 4.0, -1.0, 1.0, 2.0]]).gpu()
    long_rows = tf.constant(np.linspace(-2, 2, 39, dtype="f").reshape(3, 13)).gpu()
    for x in (rows, rows[::-1, ::-1], long_rows):
        upstream = tf.cos(tf.where(tf.math.is_finite(x), x, 0.5))
        for long in (100, 1):
            monkeypatch.setattr("tinygrad_cg_kernels.cuda.normalisations.LONG", long)
            monkeypatch.setattr("tinygrad_cg_kernels.cuda.normalisations.ROWS", 1000)
            kernels._made.cache_clear()
            device_runs._implementation.cache_clear()
            results = []
            for place in (lambda x: x, lambda x: x.cpu()):
                z = place(x)
                with tf.GradientTape() as tape:
                    tape.watch(z)
                    launches.clear()
                    y = function(z)
                    count = len(launches)
                results += [(y, count), tape.gradient(y, z, place(upstream)).numpy()]
            (y, count), dx, (want, _), dz = results
            np.testing.assert_allclose(y.numpy(), want.numpy(), 2e-6)
            np.testing.assert_allclose(dx, dz, 1e-5, 1e-6)
            assert count == (1 if long == 100 else 3)


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("within", [None, "GPU"])
def test_optimizers(name, within):
    def train(device, start):
        with tf.device(device):
            optimizer = getattr(tf.optimizers, name)(0.1, **OPTIMIZERS[name])
        v = tf.Variable(start)
        for _ in range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(v - 3.0))
            optimizer.apply_gradients([(tape.gradient(loss, v), v)])
        return v

    start = tf.constant([1.0, 5.0])
    result = train(within, start.gpu())
    assert result.device == "gpu:0"
    np.testing.assert_allclose(result.numpy(), train(None, start).numpy(), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float16"])
@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_pooling_of_other_dtypes(dtype, padding):
    images = (np.random.default_rng(0).normal(size=(2, 5, 4, 3)) * 9).astype(dtype)
    if dtype == "float32":
        images[0, 2, 1], images[1, :3, :3] = np.nan, -np.inf
    x = tf.constant(images)
    for pool in (
        lambda x: tf.nn.max_pool2d(x, 3, 2, padding),
        lambda x: tf.nn.max_pool_with_argmax(x, 3, 2, padding)[1],
        lambda x: tf.nn.avg_pool2d(x, 3, 2, padding),
    ):
        want, result = pool(x), pool(x.gpu())
        assert (result.device, result.dtype, result.shape) == ("gpu:0", want.dtype, want.shape)
        np.testing.assert_allclose(
            result.numpy(), want.numpy(), 1e-3 if dtype == "float16" else 1e-6
        )


@pytest.mark.parametrize("dtype", ["float16", "complex128", "int64"])
def test_convolution_of_other_dtypes(dtype, monkeypatch):
    rng = np.random.default_rng(0)
    x, filters = (
        tf.constant((rng.normal(size=shape) * 3).astype(dtype))
        for shape in ((5, 6, 5, 4), (3, 2, 2, 4))
    )
    want = tf.nn.conv2d(x, filters, (2, 1), "SAME")
    for limit in (2**28, 1):  # all patches at once, and an image at a time
        monkeypatch.setattr("tinygrad_cg_kernels.cuda.images.MAX_PATCH_BYTES", limit)
        result = tf.nn.conv2d(x.gpu(), filters.gpu(), (2, 1), "SAME")
        assert (result.device, result.dtype) == ("gpu:0", want.dtype)
        np.testing.assert_allclose(
            result.numpy(), want.numpy(), 2e-3 if dtype == "float16" else 1e-12
        )


def test_a_batch_of_convolutions():
    rng = np.random.default_rng(0)
    x, filters = (rng.normal(size=shape) for shape in ((3, 1, 4, 4, 2), (3, 2, 2, 2, 3)))

    def loss(x, filters):
        return tf.reduce_sum(tf.nn.conv2d(x, filters, 1, "SAME") ** 2)

    each = tf.vmap(tf.grad(loss, (0, 1)))
    for want, gradient in zip(
        each(tf.constant(x), tf.constant(filters)),
        each(tf.constant(x).gpu(), tf.constant(filters).gpu()),
        strict=True,
    ):
        assert gradient.device == "gpu:0"
        np.testing.assert_allclose(gradient.numpy(), want.numpy(), 1e-12)
