"""Jacobians by diagonals: the numbers of a sweep for each row, in every structure of the program.

See `_transforms/diagonal.py`, and docs/behaviour.md 2.1.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tinygrad_cg._transforms import diagonal

RNG = np.random.default_rng(0)
MATRIX, OTHER = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 3))
VECTOR, WEIGHTS = RNG.normal(size=4), RNG.normal(size=(4, 2))
INDEX = np.array([2, 0, 2])


@pytest.fixture(autouse=True)
def without_zeros(monkeypatch):
    """Few examples are computed with their zeros, where there are values: not so here."""
    monkeypatch.setattr(diagonal, "MIN_EXAMPLES", 2)


@tf.custom_gradient
def softplus(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def rotated(x):
    """A rule with a product and a sum in it, on vectors."""
    return tf.linalg.matvec(MATRIX, x), lambda dy: tf.linalg.matvec(MATRIX.T, dy)


@tf.custom_gradient
def odd(x):
    """A rule that is no rule: it looks at the upstream gradient."""
    return x * 2.0, lambda dy: tf.where(dy > 0.5, dy * x, dy)


VECTORS = {
    "identity": tf.identity,
    "elementwise": lambda x: tf.exp(tf.sin(x)) * x / (1 + x * x),
    "subtract": lambda x: tf.cos(x) - x * 3.0 - tf.square(x),
    "masked": lambda x: tf.nn.relu(x) + tf.where(x > 0.3, tf.sqrt(abs(x)), 2.0 * x),
    "extrema": lambda x: tf.maximum(x, 0.1) + tf.minimum(x * x, 0.2) + tf.clip_by_value(x, 0, 1),
    "slices": lambda x: x[1:] * x[:-1] - x[::2][:1],
    "differences": lambda x: tf.concat([x[1:] - x[:-1] ** 2, x[:1]], 0),
    "reversed": lambda x: x[::-1] * x,
    "pad": lambda x: tf.pad(tf.sin(x), [[1, 2]]) * 2.0,
    "gather": lambda x: tf.gather(x, INDEX) * 3.0,
    "matvec": lambda x: tf.tanh(tf.linalg.matvec(MATRIX, x)),
    "row": lambda x: tf.tanh(x @ WEIGHTS),
    "column": lambda x: tf.tanh(MATRIX @ tf.expand_dims(x, 1)),
    "outer": lambda x: tf.expand_dims(x, 1) * tf.expand_dims(tf.sin(x), 0),
    "outer product": lambda x: tf.expand_dims(x, 1) @ tf.expand_dims(tf.sin(x), 0),
    "quadratic": lambda x: x * tf.reduce_sum(x * x),
    "softmax": tf.nn.softmax,
    "cumsum": lambda x: tf.cumsum(tf.sin(x)),
    "mean": lambda x: x - tf.reduce_mean(x),
    "reshape": lambda x: tf.transpose(tf.reshape(x, (2, 2))) * tf.reshape(x, (2, 2)),
    "custom": softplus,
    "custom product": rotated,
    "not linear": odd,
    "two layers": lambda x: MATRIX @ tf.sin(tf.linalg.matvec(OTHER, tf.tanh(MATRIX @ x))),
    "many terms": lambda x: sum((tf.numpy.roll(x, k) * float(k) for k in range(1, 4)), tf.sin(x)),
    "cast": lambda x: tf.cast(tf.cast(x, "float32") * 2.0, "float64"),
}
MATRICES = {
    "elementwise": lambda x: tf.sin(x) * 2.0,
    "right": lambda x: tf.tanh(x @ WEIGHTS),
    "left": lambda x: tf.tanh(tf.constant(OTHER) @ x),
    "gram": lambda x: x @ tf.transpose(x),
    "transpose": lambda x: tf.transpose(tf.sin(x)),
    "rows": lambda x: tf.reduce_sum(tf.sin(x), axis=1),
    "columns": lambda x: tf.reduce_sum(tf.sin(x), axis=0, keepdims=True) * 2.0,
    "all": lambda x: tf.expand_dims(tf.reduce_sum(tf.sin(x)), 0) * tf.constant([1.0, 2.0]),
    "softmax": lambda x: tf.nn.softmax(x, axis=1),
    "normalised": lambda x: x / tf.reduce_sum(x * x, axis=1, keepdims=True),
    "bias": lambda x: tf.constant(OTHER) @ x[:, :2] + x[0, :2],
    "flat": lambda x: tf.reshape(x, (12,))[3:9] * 2.0,
    "swapped": lambda x: tf.linalg.matvec(tf.transpose(x), x[:, 0]),
}
CASES = [pytest.param(f, VECTOR, id=f"vector {name}") for name, f in VECTORS.items()]
CASES += [pytest.param(f, MATRIX, id=f"matrix {name}") for name, f in MATRICES.items()]


def by_rows(function, x):
    """The Jacobian by a sweep for each row."""
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x, experimental_use_pfor=False)


def on_tape(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.jacobian(y, x)


def of_sum(jacobian, function):
    """A scalar function of the Jacobian, to differentiate it again."""
    return lambda x: tf.reduce_sum(tf.sin(jacobian(function, x)))


@pytest.mark.parametrize(("function", "at"), CASES)
class TestAgainstRows:
    def test_a_jacobian(self, function, at):
        x = tf.constant(at)
        wanted = by_rows(function, x).numpy()
        for result in (
            on_tape(function, x),
            tf.jacobian(function)(x),
            tf.function(lambda x: on_tape(function, x))(x),
        ):
            assert_allclose(result.numpy(), wanted, rtol=1e-12, atol=1e-14)

    def test_the_gradient_of_a_jacobian(self, function, at):
        x = tf.constant(at)
        wanted = tf.grad(of_sum(by_rows, function))(x).numpy()
        gradient = tf.grad(of_sum(on_tape, function))(x).numpy()
        assert_allclose(gradient, wanted, rtol=1e-10, atol=1e-12)

    def test_a_hessian(self, function, at):
        x = tf.constant(at)

        def total(x):
            return tf.reduce_sum(tf.sin(function(x)))

        wanted = by_rows(tf.grad(total), x).numpy()
        for hessian in (tf.hessian(total), tf.function(tf.hessian(total))):
            assert_allclose(hessian(x).numpy(), wanted, rtol=1e-10, atol=1e-12)

    def test_a_batch_of_jacobians(self, function, at):
        points = tf.constant(np.stack([at, 2 * at, at + 0.5]))
        wanted = np.stack([by_rows(function, x).numpy() for x in points])
        result = tf.vmap(lambda x: on_tape(function, x))(points)
        assert_allclose(result.numpy(), wanted, rtol=1e-12, atol=1e-14)


FORWARD = [case for case in CASES if case.id != "vector not linear"]


@pytest.mark.parametrize(("function", "at"), FORWARD)
def test_columns(function, at):
    x = tf.constant(at)
    wanted = by_rows(function, x).numpy()
    result = tf.jacobian(function, mode="forward")(x)
    assert_allclose(result.numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("name", ["elementwise", "row", "differences", "custom"])
def test_dtypes(name, dtype):
    x = tf.constant(VECTOR.astype(dtype))
    weights = tf.constant(WEIGHTS.astype(dtype))
    function = (lambda x: tf.tanh(x @ weights)) if name == "row" else VECTORS[name]
    result, wanted = on_tape(function, x), by_rows(function, x)
    assert result.dtype == dtype
    assert_allclose(result.numpy(), wanted.numpy(), rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    "function", [tf.math.real, tf.math.imag, abs, lambda z: tf.math.real(z * z)]
)
def test_complex_sources(function):
    z = tf.constant(VECTOR[:3] + 1j * VECTOR[1:])
    assert_allclose(on_tape(function, z).numpy(), by_rows(function, z).numpy(), rtol=1e-13)


def test_several_sources():
    x, w, b = tf.constant(MATRIX), tf.constant(WEIGHTS), tf.constant(WEIGHTS[0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w, b])
        y = tf.nn.relu(x @ w + b)
    jacobians = tape.jacobian(y, [x, w, b])
    wanted = tape.jacobian(y, [x, w, b], experimental_use_pfor=False)
    for jacobian, other in zip(jacobians, wanted, strict=True):
        assert_allclose(jacobian.numpy(), other.numpy(), rtol=1e-13)


def test_a_target_that_is_the_source():
    x = tf.constant(VECTOR)
    assert_array_equal(on_tape(lambda x: x, x).numpy(), np.eye(4))


def test_infinite_slopes_stay_on_the_diagonal():
    """Also where a rule of the user's multiplies by them, and after elements have moved."""

    @tf.custom_gradient
    def root(x):
        return tf.sqrt(x), lambda dy: dy * (0.5 / tf.sqrt(x))

    x = tf.constant([0.0, 0.25, 1.0, 4.0])
    for function in (tf.sqrt, root):
        result = on_tape(function, x).numpy()
        assert_array_equal(result, np.diag([np.inf, 1.0, 0.5, 0.25]))
    result = on_tape(lambda x: root(x)[1:] + root(x)[:3] * 2.0, x).numpy()
    wanted = np.zeros((3, 4))
    wanted[range(3), range(1, 4)] = [1.0, 0.5, 0.25]
    wanted[range(3), range(3)] = [np.inf, 2.0, 1.0]
    assert_array_equal(result, wanted)


def test_a_sum_of_too_many_terms(monkeypatch):
    x = tf.constant(VECTOR)
    wanted = by_rows(VECTORS["many terms"], x).numpy()
    monkeypatch.setattr(diagonal, "MAX_TERMS", 2)
    assert_allclose(on_tape(VECTORS["many terms"], x).numpy(), wanted, rtol=1e-13)


def test_no_array_of_all_rows_is_made(monkeypatch):
    """The layer of a network: one product of the diagonal and the matrix."""
    sizes = []
    run = diagonal.run

    def watched(primitive, inputs, params, size):
        diagonal = run(primitive, inputs, params, size)
        sizes.append((primitive.name, diagonal is not None))
        return diagonal

    monkeypatch.setattr(diagonal, "run", watched)
    on_tape(VECTORS["matvec"], tf.constant(VECTOR))
    assert all(kept for _, kept in sizes), sizes
    assert sizes[-1][0] == "matvec"


def test_an_error_in_a_rule_restores_the_state():
    @tf.custom_gradient
    def broken(x):
        return x * 1.0, lambda dy: tf.linalg.matvec(MATRIX, dy[:3])

    x = tf.constant(VECTOR)
    with pytest.raises(ValueError, match="matvec"):
        on_tape(broken, x)
    assert_array_equal(on_tape(tf.identity, x).numpy(), np.eye(4))
