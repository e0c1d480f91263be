"""Programs that are loops, compared with the same programs run eagerly, to second order."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import recurrences
from tests.support.compiled import unfused
from tinygrad_cg._function.tracing import compiled
from tinygrad_cg.keras import ops

RNG = np.random.default_rng(7)


def normal(*shape):
    return RNG.normal(size=shape)


XS = normal(7, 3, 4)


def lstm(w, u, b):
    """Return what an LSTM of 5 units makes of a batch of 3."""
    return recurrences.lstm(w, u, b, tf.constant(XS))


OBSERVED = np.cumsum(normal(9)) + normal(9)


def kalman(noise):
    """Return the log likelihood of a walk with a velocity, by the logarithms of three variances."""
    move = tf.constant([[1.0, 1.0], [0.0, 1.0]], tf.float64)
    look = tf.constant([[1.0, 0.0]], tf.float64)
    variances = tf.exp(noise)

    def step(carry, y):
        mean, cov, total = carry
        mean = tf.linalg.matvec(move, mean)
        cov = move @ cov @ tf.transpose(move) + tf.linalg.diag(variances[:2])
        residual = y - mean[0]
        spread = cov[0, 0] + variances[2]
        gain = cov[:, 0] / spread
        total = total - 0.5 * (tf.math.log(spread) + residual**2 / spread)
        cov = cov - gain[:, None] * (look @ cov)
        return (mean + gain * residual, cov, total), None

    start = tf.zeros((2,), tf.float64), tf.eye(2, dtype=tf.float64), tf.constant(0.0, tf.float64)
    return ops.scan(step, start, tf.constant(OBSERVED))[0][2]


def adaptive_steps(rates):
    """Return the end of a pendulum with friction, by steps whose size an error estimate decides."""

    def slope(y):
        return tf.stack([y[1], -rates[0] * tf.sin(y[0]) - rates[1] * y[1]])

    def step(t, y, size):
        size = tf.minimum(size, 1.0 - t)
        k1 = slope(y)
        k2 = slope(y + 0.5 * size * k1)
        k3 = slope(y + 0.75 * size * k2)
        new = y + size * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        k4 = slope(new)
        error = size * (-5.0 * k1 + 6.0 * k2 + 8.0 * k3 - 9.0 * k4) / 72.0
        ratio = tf.reduce_max(tf.abs(error)) / 1e-4
        factor = tf.clip_by_value(0.9 * tf.maximum(ratio, 1e-12) ** (-1.0 / 3.0), 0.2, 5.0)
        accepted = ratio <= 1.0
        t = tf.where(accepted, t + size, t)
        return t, tf.where(accepted, new, y), size * factor

    start = (
        tf.constant(0.0, tf.float64),
        tf.constant([1.0, 0.0], tf.float64),
        tf.exp(rates[0]) * 0.05,
    )
    t, y, _ = tf.while_loop(lambda t, y, size: t < 1.0, step, start, maximum_iterations=200)
    return y[0] * y[1] + t


def newton(x):
    """Return the sum of the cube roots of 2 x, by steps until they are small."""

    def step(y, change):
        new = y - (y**3 - 2.0 * x) / (3.0 * y * y)
        return new, tf.reduce_max(tf.abs(new - y))

    start = tf.ones_like(x) + 0.1 * x, tf.constant(1.0, tf.float64)
    return tf.reduce_sum(tf.while_loop(lambda y, change: change > 1e-9, step, start)[0])


def leapfrog(q, p):
    """Return the energy and the position of a path of Hamiltonian Monte Carlo."""

    def potential(q):
        return tf.reduce_sum(0.25 * q**4 - tf.cos(q)) + 0.1 * q[0] * q[1]

    slope = tf.grad(potential)

    def step(i, carry):
        q, p = carry
        p = p - 0.05 * slope(q)
        q = q + 0.1 * p
        return q, p - 0.05 * slope(q)

    q, p = ops.fori_loop(0, 6, step, (q, p))
    return potential(q) + 0.5 * tf.reduce_sum(p * p) + tf.reduce_sum(q)


SEEN = np.array([0, 2, 1, 1, 0, 2, 2])


def markov(transitions, emissions):
    """Return the log likelihood of what a hidden Markov model shows, by the forward algorithm."""
    moves, shows = tf.nn.log_softmax(transitions), tf.nn.log_softmax(emissions)

    def step(state, seen):
        return tf.reduce_logsumexp(state[:, None] + moves, 0) + tf.gather(shows, seen, axis=1)

    start = tf.gather(shows, SEEN[0], axis=1)
    return tf.reduce_logsumexp(tf.foldl(step, tf.constant(SEEN[1:]), start))


PROGRAMS = {
    lstm: (0.4 * normal(4, 20), 0.4 * normal(5, 20), 0.1 * normal(20)),
    kalman: (np.array([-1.0, -2.0, 0.3]),),
    leapfrog: (normal(3), normal(3)),
    markov: (normal(4, 4), normal(4, 3)),
    adaptive_steps: (np.array([9.0, 0.5]),),
    newton: (np.array([0.5, 2.0, 7.0]),),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_compiled_loops_are_what_they_are_eagerly(program):
    arguments = [tf.constant(value) for value in PROGRAMS[program]]
    ways = [tf.cos(argument) for argument in arguments]

    def gradient(*arguments):
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            y = program(*arguments)
        return y, *tape.gradient(y, arguments)

    def second(*arguments):  # reverse of reverse
        with tf.GradientTape() as tape:
            tape.watch(arguments)
            _, *gradients = gradient(*arguments)
            product = sum(tf.reduce_sum(g * way) for g, way in zip(gradients, ways, strict=True))
        return tape.gradient(product, arguments)

    def mixed(*arguments):  # forward of reverse
        with tf.autodiff.ForwardAccumulator(arguments, tuple(ways)) as accumulator:
            y, *gradients = gradient(*arguments)
        return accumulator.jvp([y, *gradients])

    for run, program_of in ((gradient, tf.function), (second, unfused), (mixed, unfused)):
        results, expected = program_of(run)(*arguments), run(*arguments)
        for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
            scale = np.abs(other).max() + 1e-9
            np.testing.assert_allclose(result, other, rtol=1e-8, atol=1e-9 * scale)
    _, *first = gradient(*arguments)
    near = [argument + 1e-6 * way for argument, way in zip(arguments, ways, strict=True)]
    far = [argument - 1e-6 * way for argument, way in zip(arguments, ways, strict=True)]
    slope = (float(program(*near)) - float(program(*far))) / 2e-6
    product = sum(float(tf.reduce_sum(g * way)) for g, way in zip(first, ways, strict=True))
    assert product == pytest.approx(slope, rel=1e-5, abs=1e-7)


STEPS = tf.constant(normal(120, 4))
RATES = tf.constant(normal(4))


def advanced(h, x):
    return tf.tanh(h * RATES + x)


def by_while_loop(h, xs):
    return tf.while_loop(lambda i, h: i < 120, lambda i, h: (i + 1, advanced(h, xs[i])), (0, h))[1]


def by_fori_loop(h, xs):
    return ops.fori_loop(0, 120, lambda i, h: advanced(h, xs[i]), h)


def by_scan(h, xs):
    return ops.scan(lambda h, x: (advanced(h, x), None), h, xs)[0]


def by_fold(h, xs):
    return tf.foldl(advanced, xs, h)


def by_rows(h, xs):
    for x in xs:
        h = advanced(h, x)
    return h


def by_tensor(h, xs):
    for i in tf.range(tf.shape(xs)[0]):
        h = advanced(h, xs[i])
    return h


def by_condition(h, xs):
    """Python knows the number, so it unrolls the loop as well."""
    i = tf.constant(0)
    while i < 120:
        h = advanced(h, xs[i])
        i += 1
    return h


def by_range(h, xs):
    for i in range(120):
        h = advanced(h, xs[i])
    return h


def by_list(h, xs):
    """Python unrolls it, and it is a loop again where the program turns out to be long."""
    kept = []
    for i in range(120):
        h = advanced(h, xs[i])
        kept.append(None)
    return h


def loops_of(function, *arguments):
    """Return the loops of a program: their lengths, their directions, and what a round does."""
    values = tf.function(function).graph(*arguments).values()
    bodies = [value.params["loop"].body for value in values if "loop" in value.params]
    return [
        (body.length, body.reverse, body.constants, body.carries, str(body.graph))
        for body in bodies
    ]


def gradient_of(source):
    def squares(h, xs):
        return tf.reduce_sum(source(h, xs) ** 2)

    return tf.value_and_grad(squares, (0, 1))


SOURCES = by_while_loop, by_fori_loop, by_scan, by_fold, by_rows, by_tensor, by_range


def test_all_ways_to_write_a_loop_give_the_same_program(monkeypatch):
    monkeypatch.setattr(compiled, "MAX_OPERATIONS", 100)
    h = tf.constant(normal(4))
    expected = loops_of(by_scan, h, STEPS)
    assert len(expected) == 1
    for source in (*SOURCES, by_list, by_condition):
        assert loops_of(source, h, STEPS) == expected, source.__name__
    gradients = [gradient_of(source) for source in (by_scan, *SOURCES)]
    expected = loops_of(gradients[0], h, STEPS)
    assert [reverse for _, reverse, *_ in expected] == [False, True]
    for gradient in gradients[1:]:
        assert loops_of(gradient, h, STEPS) == expected


def test_a_map_is_a_loop_without_variables():
    def mapped(xs):
        return tf.map_fn(lambda x: advanced(2.0 * x, x), xs)

    def scanned(xs):
        return ops.scan(lambda _, x: (None, advanced(2.0 * x, x)), None, xs)[1]

    ((length, _, _, carries, _),) = loops = loops_of(mapped, STEPS)
    assert (length, carries) == (120, 0)
    assert loops == loops_of(scanned, STEPS)
