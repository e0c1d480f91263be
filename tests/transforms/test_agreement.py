"""Forward and reverse mode in each other, finite differences and batches give the same numbers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.composites import FAKE, POINT, TRUE
from tests.support.orders import gradient_function, tangent_function

ALL = TRUE | FAKE
UNITS = [tf.constant(unit) for unit in np.eye(3)]
WAY = tf.constant([0.3, -1.2, 0.8], dtype="float64")
POINTS = POINT + np.array([[0.0, 0.0, 0.0], [0.2, 0.1, -0.3], [-0.1, 0.3, 0.2]])
pytestmark = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def at(function, x):
    """The value where the point is computed from something, so that outer tapes watch it."""
    return function(tf.identity(x))


def reverse_over_reverse(f, x):
    """Row i: the gradient of the i-th element of the gradient."""

    def element(unit):
        return gradient_function(lambda x: tf.reduce_sum(at(gradient_function(f), x) * unit))

    return np.stack([element(unit)(x).numpy() for unit in UNITS])


def forward_over_reverse(f, x):
    """Column j: the tangent of the gradient in the j-th direction."""
    gradient = gradient_function(f)
    columns = [tangent_function(lambda x: at(gradient, x), unit)(x) for unit in UNITS]
    return np.stack([column.numpy() for column in columns], 1)


def reverse_over_forward(f, x):
    return np.stack(
        [
            gradient_function(lambda x, unit=unit: at(tangent_function(f, unit), x))(x).numpy()
            for unit in UNITS
        ]
    )


def forward_over_forward(f, x):
    return np.array(
        [
            [
                tangent_function(lambda x, first=first: at(tangent_function(f, first), x), second)(
                    x
                ).numpy()
                for second in UNITS
            ]
            for first in UNITS
        ]
    )


def central_differences(gradient, x, step=1e-6):
    """Column j: the difference of the gradient along the j-th axis."""
    columns = [(gradient(x + step * unit) - gradient(x - step * unit)) for unit in UNITS]
    return np.stack([column.numpy() for column in columns], 1) / (2 * step)


def assert_close(result, expected, rtol=1e-10):
    scale = np.abs(expected).max(initial=1.0)
    assert_allclose(result, expected, rtol=rtol, atol=rtol * scale)


@pytest.mark.parametrize("name", TRUE)
def test_second_derivatives_agree(name):
    f, x = TRUE[name], tf.constant(POINT)
    expected = reverse_over_reverse(f, x)
    assert_close(forward_over_reverse(f, x), expected)
    assert_close(reverse_over_forward(f, x), expected)
    assert_close(forward_over_forward(f, x), expected)
    assert_close(central_differences(gradient_function(f), x), expected, 1e-7)


@pytest.mark.parametrize("name", FAKE)
def test_second_derivatives_of_fake_rules_agree(name):
    """docs/behaviour.md, decision 7: forward over reverse agrees with reverse over reverse."""
    f, x = FAKE[name], tf.constant(POINT)
    assert_close(forward_over_reverse(f, x), reverse_over_reverse(f, x))


@pytest.mark.parametrize("name", ALL)
def test_functions_agree_with_tapes(name):
    f, x = ALL[name], tf.constant(POINT)
    gradient, second = gradient_function(f)(x).numpy(), reverse_over_reverse(f, x)
    assert_close(tf.grad(f)(x).numpy(), gradient)
    assert_close(tf.jvp(f, (x,), (WAY,))[1].numpy(), gradient @ WAY.numpy())
    assert_close(tf.linearize(f, x)[1](WAY).numpy(), gradient @ WAY.numpy())
    for mode in ("reverse", "forward"):
        assert_close(tf.jacobian(f, mode=mode)(x).numpy(), gradient)
        assert_close(tf.jacobian(tf.grad(f), mode=mode)(x).numpy(), second)
    assert_close(tf.hessian(f)(x).numpy(), second)
    assert_close(tf.hvp(f)(x, WAY).numpy(), WAY.numpy() @ second)
    assert_close(tf.jvp(tf.grad(f), (x,), (WAY,))[1].numpy(), second @ WAY.numpy())


@pytest.mark.parametrize("name", TRUE)
def test_third_derivatives_agree(name):
    f, x = TRUE[name], tf.constant(POINT)

    def on_line(x):
        return tf.hvp(f)(x, WAY)

    third = tf.jacobian(on_line, mode="reverse")(x).numpy()
    assert_close(tf.jacobian(on_line, mode="forward")(x).numpy(), third)
    twice = tangent_function(lambda x: at(tangent_function(tf.grad(f), WAY), x), WAY)
    assert_close(twice(x).numpy(), third @ WAY.numpy())
    assert_close(central_differences(on_line, x), third, 1e-6)


@pytest.mark.parametrize("name", ALL)
def test_batches_are_loops(name):
    """Each way to differentiate inside vmap; and outside, where the batch is one operation."""
    f = ALL[name]
    points, ways = tf.constant(POINTS), tf.constant(POINTS[::-1].copy())

    def total(points):
        return tf.reduce_sum(tf.vmap(f)(points))

    functions = {
        "f": f,
        "gradient": gradient_function(f),
        "tangent": tangent_function(f, WAY),
        "grad": tf.grad(f),
        "hvp": lambda x: tf.hvp(f)(x, WAY),
        "hessian": tf.hessian(f),
        "forward over reverse": tangent_function(tf.grad(f), WAY),
        "by columns": tf.jacobian(tf.grad(f), mode="forward"),
        "linearize": lambda x: tf.linearize(f, x)[1](WAY),
    }
    for function in functions.values():
        expected = np.stack([function(point).numpy() for point in points])
        assert_close(tf.vmap(function)(points).numpy(), expected)
    gradients = np.stack([tf.grad(f)(point).numpy() for point in points])
    assert_close(gradient_function(total)(points).numpy(), gradients)
    assert_close(tf.jvp(total, (points,), (ways,))[1].numpy(), np.sum(gradients * ways.numpy()))
    products = [tf.hvp(f)(*pair).numpy() for pair in zip(points, ways, strict=True)]
    assert_close(tf.hvp(total)(points, ways).numpy(), np.stack(products))


@pytest.mark.parametrize("name", TRUE)
def test_batches_in_gradients_in_batches(name):
    f, points = TRUE[name], tf.constant(POINTS)

    def loss(scale):
        """The gradients, of each example, in a function that is differentiated itself."""
        return tf.reduce_sum(tf.vmap(tf.grad(lambda x: f(x * scale)))(points) ** 2)

    def loop(scale):
        return sum(tf.reduce_sum(tf.grad(lambda x: f(x * scale))(point) ** 2) for point in points)

    scales = tf.constant([0.9, 1.1], dtype="float64")
    expected = np.stack([gradient_function(loop)(scale).numpy() for scale in scales])
    assert_close(tf.vmap(tf.grad(loss))(scales).numpy(), expected)
    assert_close(tf.vmap(tangent_function(loss, tf.constant(1.0, "float64")))(scales), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", [name for name in TRUE if name not in ("a Variable", "layer")])
def test_narrow_dtypes(name, dtype):
    """They stay what they are (those two have float64 data), and linear rules pass for such."""
    f, x, way = TRUE[name], tf.constant(POINT.astype(dtype)), tf.cast(WAY, dtype)
    wide = gradient_function(f)(tf.constant(POINT)).numpy()
    rtol = 1e-5 if dtype == "float32" else 3e-2
    for result in (
        tf.grad(f)(x),
        tf.jacobian(f, mode="forward")(x),
        tf.vmap(tf.grad(f))(x[None])[0],
    ):
        assert result.dtype == dtype
        assert_close(result.numpy().astype("float64"), wide, rtol)
    for tangent in (tf.jvp(f, (x,), (way,))[1], tf.linearize(f, x)[1](way)):
        assert tangent.dtype == dtype
        assert_close(float(tangent), wide @ WAY.numpy(), rtol)
    assert tf.hvp(f)(x, way).dtype == dtype


WEIGHTS, BIAS = np.arange(12.0).reshape(3, 4) / 10 - 0.5, np.array([0.1, -0.2, 0.3, 0.4])
OF_NUMPY = {
    "norm": lambda x: np.linalg.norm(np.tanh(x @ WEIGHTS) + BIAS),
    "einsum": lambda x: np.sum(np.einsum("ij,jk->ik", x, WEIGHTS) ** 2),
    "where": lambda x: np.sum(np.where(x > 0, x**2, np.exp(x))),
    "concatenate": lambda x: np.sum(np.concatenate([x, 2.0 * x]) ** 3),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_numpy_code(name):
    """It runs on arrays and on tensors, in each mode and in batches."""
    f, rng = OF_NUMPY[name], np.random.default_rng(0)
    points, way = rng.normal(size=(3, 5, 3)), rng.normal(size=(5, 3))
    x, step = points[0], 1e-6
    gradient = tf.grad(f)(x)
    slope = (f(x + step * way) - f(x - step * way)) / (2 * step)
    assert_allclose(np.vdot(gradient, way), slope, rtol=1e-7)
    assert_allclose(tf.jvp(f, (x,), (way,))[1], slope, rtol=1e-7)
    ends = [tf.grad(f)(x + sign * step * way) for sign in (1, -1)]
    assert_close(tf.hvp(f)(x, way), (ends[0] - ends[1]) / (2 * step), 1e-7)
    expected = np.stack([tf.grad(f)(point) for point in points])
    assert_close(tf.vmap(tf.grad(f))(points).numpy(), expected)
