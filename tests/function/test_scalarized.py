"""Loops over small arrays, as code on their elements: what an eager run gives."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._function.codegen import rounds
from tinygrad_cg.keras import ops

RNG = np.random.default_rng(5)


def normal(*shape, dtype="float64"):
    return tf.constant(RNG.normal(size=shape).astype(dtype))


@pytest.fixture
def bodies(monkeypatch):
    """The bodies of loops that became functions of numbers, and None for each that did not."""
    bodies = []
    scalarize = rounds.scalarize

    def scalarized(*args):
        bodies.append(scalarize(*args))
        return bodies[-1]

    monkeypatch.setattr(rounds, "scalarize", scalarized)
    return bodies


def filter_of(x, xs):
    """Products of small matrices, transposes, parts, sums over any axes."""

    def step(carry, x):
        mean, cov = carry
        cov = x[:3] @ cov @ tf.transpose(x[:3]) + tf.linalg.diag(tf.exp(mean))
        gain = cov[:, 0] / tf.reduce_sum(cov, 0)[1]
        mean = tf.linalg.matvec(cov, mean) * gain + tf.concat([x[3, 1:], x[0, :1]], 0)
        return (tf.tanh(mean), tf.tanh(cov)), (cov[1], tf.reduce_max(cov), tf.stack([mean, gain]))

    (mean, cov), rows = ops.scan(step, (x, tf.eye(3, dtype=x.dtype)), xs)
    return tf.reduce_sum(mean) + tf.reduce_sum(cov**2) + sum(map(tf.reduce_sum, rows))


def swapped(x, xs):
    """Variables of the loop that are exchanged, in reverse; one stays, and rows are slices."""

    def step(carry, x):
        a, b, c = carry
        return (b, tf.reverse(a, [0]) * tf.reduce_prod(x[:2, 0]), c), (x[1], c, tf.ones(2), a)

    ends, rows = ops.scan(step, (x, 2.0 * x, x[:1]), xs, reverse=True)
    return sum(
        tf.reduce_sum(tf.sin(tensor)) for tensor in (*ends, *rows) if tensor.dtype == x.dtype
    )


def composed(x, xs):
    """Operations that are compositions of others, over the first axis."""

    def step(carry, x):
        carry = tf.reduce_logsumexp(x[:3] + carry[:, None], 0) + tf.nn.softmax(x[:3], 0)[1]
        return tf.math.log(1.0 + carry**2), tf.reduce_mean(x, 0)

    end, rows = ops.scan(step, x, xs)
    return tf.reduce_sum(end) + tf.reduce_sum(rows)


def walk(x, xs):
    """A loop that a condition ends, with a matrix."""

    def step(i, x, m):
        return i + 1, tf.linalg.matvec(m, x), m @ m / tf.norm(m)

    i, x, _ = tf.while_loop(
        lambda i, x, m: tf.reduce_sum(x * x) < 50.0, step, (0, x, xs[0, :3] + 2.0)
    )
    return tf.reduce_sum(x) * tf.cast(i, x.dtype)


def looked_up(x, xs):
    """Parts of arrays at indices that a round computes: of the loop's, and of a constant."""

    def step(i, carry):
        j = 4 + i * i - 3 * i
        part = tf.gather(xs, j)
        return tf.tanh(carry * tf.gather(carry, 2 - i) + part[1] * tf.gather(xs, j - 5)[0])

    return tf.reduce_sum(ops.fori_loop(0, 3, step, x))


PROGRAMS = filter_of, swapped, composed, walk, looked_up


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda value: value.__name__)
def test_values_and_gradients_are_those_of_eager_runs(program, dtype, bodies):
    x, xs = normal(3, dtype=dtype), normal(5, 4, 3, dtype=dtype)
    run = tf.value_and_grad(program, (0, 1))
    rtol = 1e-10 if dtype == "float64" else 2e-4
    for result, other in zip(
        tf.nest.flatten(tf.function(run)(x, xs)), tf.nest.flatten(run(x, xs)), strict=True
    ):
        assert result.dtype == other.dtype
        np.testing.assert_allclose(result, other, rtol=rtol, atol=rtol)
    assert len(bodies) > 1
    assert all(bodies)


def test_second_derivatives(bodies):
    x, xs = normal(3), normal(5, 4, 3)
    run = tf.hessian(lambda x: filter_of(x, xs))
    np.testing.assert_allclose(tf.function(run)(x), run(x), rtol=1e-9, atol=1e-10)
    assert all(bodies)


def test_integers_and_flags(bodies):
    def program(m, xs):
        def step(carry, x):
            m, seen = carry
            m = m @ x - tf.transpose(m)
            return (m, tf.logical_or(seen, m > 100)), (tf.reduce_any(seen), m[0, 0])

        return ops.scan(step, (m, m > 5), xs)

    m = tf.constant(RNG.integers(-3, 3, (2, 2)))
    xs = tf.constant(RNG.integers(-2, 3, (9, 2, 2)))
    for result, other in zip(
        tf.nest.flatten(tf.function(program)(m, xs)), tf.nest.flatten(program(m, xs)), strict=True
    ):
        assert result.dtype == other.dtype
        np.testing.assert_array_equal(result, other)
    assert all(bodies)


def test_an_index_outside_of_an_array(bodies):
    xs, m = normal(5, 2), normal(2, 2)

    @tf.function
    def program(first, x):
        return ops.fori_loop(
            0, 3, lambda i, x: tf.linalg.matvec(m, x) + tf.gather(xs, first + i), x
        )

    x = normal(2)
    for first in (0, 2, -5, -3):
        expected = x
        for i in range(3):
            expected = tf.linalg.matvec(m, expected) + xs[first + i]
        np.testing.assert_allclose(program(tf.constant(first), x), expected, rtol=1e-12)
    for first in (3, -6, 2**40):
        with pytest.raises(IndexError, match="gather"):
            program(tf.constant(first, tf.int64), x)
    assert all(bodies)


def test_special_values(bodies):
    """Products with zeros are no zeros where the other operand is not finite."""

    def program(x):
        m = tf.constant([[0.0, 1.0], [0.0, -0.0]], tf.float64)
        return ops.fori_loop(0, 2, lambda i, x: m @ x, x)

    x = tf.constant([[np.inf, 1.0, -0.0], [np.nan, -1.0, 5e-324]], tf.float64)
    np.testing.assert_array_equal(tf.function(program)(x), program(x))
    assert all(bodies)


def test_numbers_are_parameters(bodies):
    """Programs that differ in numbers alone have one text."""

    def program(scale):
        m = tf.constant([[0.3 * scale, 1.0], [0.25, 0.0]], tf.float64)
        return tf.function(
            lambda x: ops.fori_loop(0, 3, lambda i, x: tf.linalg.matvec(m, x) * (scale + 2.5), x)
        )

    x = normal(2)
    first, second = [program(scale).kernels(x)[-1] for scale in (0.7, 1.9)]
    assert "def rounds(" in first
    assert first == second
    assert not np.array_equal(program(0.7)(x), program(1.9)(x))
    assert all(bodies)


def test_large_arrays_are_left_to_operations(bodies):
    m = normal(40, 40)
    tf.function(lambda x: ops.fori_loop(0, 2, lambda i, x: m @ x, x))(normal(40, 3))
    assert bodies == [None]


def test_constants_of_a_loop_without_rounds(bodies):
    m, xs = normal(2, 2), tf.zeros((0, 2), tf.float64)
    result = tf.function(lambda x: tf.foldl(lambda x, row: tf.linalg.matvec(m, x) + row, xs, x))(
        normal(2)
    )
    assert result.shape == (2,)


@pytest.mark.parametrize(
    "step",
    [
        lambda x, m: tf.concat([x @ m, x], 1)[:, ::2][:, :3],  # the second part is all of the first
        lambda x, m: tf.transpose(tf.reshape(tf.concat([x, x], 0), [2, 3]))[:, :1][:3, 0][None],
        lambda x, m: tf.tanh(tf.reduce_sum(x @ m, 0, keepdims=True) + x),  # of one row
        lambda x, m: tf.reduce_max(x @ m, 0)[None] * 0.5,
    ],
)
def test_parts_that_are_all_and_reductions_of_one_row(step, bodies):
    x, m = normal(1, 3), normal(3, 3)

    def program(x, m):
        return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, step(x, m)), (0, x))[1]

    np.testing.assert_allclose(tf.function(program)(x, m), program(x, m), rtol=1e-12)
    assert bodies
    assert all(bodies)
