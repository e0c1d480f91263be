"""Python's loops in a program become loops of the program: with the values of eager runs."""

import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import same, two_orders, unfused
from tinygrad_cg._function.tracing import compiled, rolling

RNG = np.random.default_rng(11)
N = 24  # rounds
X, Y = RNG.normal(size=3), RNG.normal(size=(N + 2, 3))
W = RNG.normal(size=(3, 3)) / 2
ARGS = tf.constant(X), tf.constant(Y)


@pytest.fixture
def rolled(monkeypatch):
    """The numbers of loops that programs have become; operation by operation."""
    counts = []

    def roll(graph, shared, build):
        values = rolling.roll(graph, shared, build)
        counts.append(sum(value.primitive is rolling.LOOP for value in values.values()))
        return values

    monkeypatch.setattr(compiled, "rolled", roll)
    monkeypatch.setattr("tinygrad_cg._function.tracing.gradient.rolled", roll)
    return counts


@tf.custom_gradient
def odd(x):
    """A square whose rule is not its derivative."""
    return x * x, lambda dy: dy * 7.0 * tf.cos(x)


def no_order(x, xs):
    for i in range(N):
        x = tf.sin(x) + xs[i * i % N]
    return tf.reduce_sum(x)


def recurrent(x, xs):
    for i in range(N):
        x = tf.tanh(tf.linalg.matvec(W, x) + 0.1 * xs[i])
    return tf.reduce_sum(x * x)


def backwards(x, xs):
    for i in reversed(range(N)):
        x = tf.sin(x * xs[i + 2]) + x
    return tf.reduce_sum(x)


def every_second(x, xs):
    xs = tf.concat([xs, xs], 0)
    for i in range(1, 2 * N, 2):
        x = tf.sin(x) + xs[i] * xs[i][0]
    for i in range(N):
        x = tf.sin(x) * xs[i, 1]
    return tf.reduce_sum(x)


def numbers(x, xs):
    total = tf.zeros((), x.dtype)
    for i in range(N):
        x = tf.cos(x * (1.0 + 1.0 / (i + 1)) + tf.constant(Y[i]))
        total = total + tf.reduce_sum(x) / (i + 2)
    return total


def collected(x, xs):
    states = []
    for i in range(N):
        x = tf.sin(x + xs[i])
        states.append(x)
    return tf.reduce_sum(tf.stack(states) ** 2 * xs[:N]) + tf.reduce_sum(tf.stack(states, 1)[:, 3:])


def two_back(x, xs):
    before, now = x, 2.0 * x
    for i in range(N):
        before, now = now, tf.sin(now) - 0.5 * before * xs[i]
    return tf.reduce_sum(now * before)


def three_back(x, xs):
    states = [x, tf.sin(x), tf.cos(x)]
    for _ in range(N):
        states.append(tf.tanh(states[-3] + states[-1] * x))
    return tf.reduce_sum(states[-1] * states[-4]) + tf.reduce_sum(states[-2])


def twice_over(x, xs):
    """Two loops, of which the second reads what the first has computed, last to first."""
    states = []
    for i in range(N):
        x = tf.sin(x + xs[i])
        states.append(x)
    y = x
    for i in range(N):
        y = tf.cos(y * states[-1 - i])
    return tf.reduce_sum(y)


def own_rule(x, xs):
    for i in range(N):
        x = tf.tanh(odd(x) + xs[i])
    return tf.reduce_sum(x)


def of_matrices(x, xs):
    m = tf.eye(3, dtype=x.dtype)
    for i in range(N):
        m = m @ (W + tf.linalg.diag(xs[i])) / 2.0
    return tf.reduce_sum(tf.linalg.matvec(m, x))


def with_steps(x, xs):
    """Runge and Kutta's method of order 4: stages that are alike in each step."""
    for i in range(N):
        k1 = tf.sin(x)
        k2 = tf.sin(x + 0.05 * k1)
        k3 = tf.sin(x + 0.05 * k2)
        k4 = tf.sin(x + 0.1 * k3)
        x = x + (k1 + 2.0 * k2 + 2.0 * k3 + k4) / 60.0 + 0.01 * xs[i]
    return tf.reduce_sum(x)


def in_place(x, xs):
    """A loop in a loop."""
    for i in range(N):
        for _ in range(3):
            x = tf.sin(x) * xs[i]
        x = x + 1.0
    return tf.reduce_sum(x)


def with_branches(x, xs):
    for i, row in enumerate(xs):
        if tf.reduce_sum(x * row) > 0.0:
            x = tf.sin(x) + row
        elif x[0] > 0.5:
            x = odd(x) * 0.5 - row
        x = x + 0.1 * i
    return tf.reduce_sum(x)


def with_branches_of_pairs(x, xs):
    kept = []
    for row, other in zip(xs, tf.cos(xs), strict=True):
        y = tf.linalg.matvec(W, x) if row[0] > other[0] else x * row
        x = tf.tanh(y + other)
        kept.append(y)
    return tf.reduce_sum(x) + tf.reduce_sum(tf.stack(kept) ** 2)


def with_break(x, xs):
    for row, _ in zip(xs, xs, strict=True):
        x = tf.sin(x) + row
        if tf.reduce_sum(x) > 1.95:
            break
    return tf.reduce_sum(x**2)


def coupled(x, xs):
    """Rounds of which many operations are of one kind."""

    def slope(y):
        return tf.stack([y[1] - y[0], y[0] * y[2] - y[1], y[0] * y[1] - y[2] * xs[0, 0]])

    for _ in range(N):
        k1 = slope(x)
        k2 = slope(x + 0.05 * k1)
        k3 = slope(x + 0.05 * k2)
        x = x + (k1 + 2.0 * k2 + 2.0 * k3 + slope(x + 0.1 * k3)) / 60.0
    return tf.reduce_sum(x)


ALIKE = (
    coupled,
    with_branches,
    with_branches_of_pairs,
    with_break,
    recurrent,
    backwards,
    numbers,
    collected,
    two_back,
    three_back,
    twice_over,
    own_rule,
)
ALIKE += (of_matrices, with_steps, in_place, every_second, no_order)


def assert_close(results, expected, rtol=1e-9):
    same(results, expected, rtol, scaled=rtol)


@pytest.mark.parametrize("program", ALIKE, ids=lambda value: value.__name__)
def test_derivatives_are_those_of_an_eager_run(program, rolled):
    first = tf.value_and_grad(program, (0, 1))
    assert_close(unfused(first)(*ARGS), first(*ARGS))
    assert rolled[-1] >= 2  # there, and back
    assert_close(unfused(two_orders(program))(*ARGS), two_orders(program)(*ARGS))
    assert rolled[-1] >= 3


def test_a_gradient_from_outside_of_the_program(rolled):
    program = unfused(recurrent)
    with tf.GradientTape() as tape:
        tape.watch(ARGS)
        y = program(*ARGS)
    assert_close(tape.gradient(y, ARGS), tf.grad(recurrent, (0, 1))(*ARGS))
    assert rolled == [1, 2]


def test_batches_and_forward_mode(rolled):
    run = lambda x, xs: tf.jvp(recurrent, (x, xs), (tf.cos(x), tf.sin(xs)))
    assert_close(unfused(run)(*ARGS), run(*ARGS))
    batch = tf.stack([ARGS[0], 2.0 * ARGS[0]]), tf.stack([ARGS[1], -ARGS[1]])
    run = tf.vmap(tf.grad(recurrent, (0, 1)))
    assert_close(unfused(run)(*batch), run(*batch))
    assert rolled[0] == 1
    assert rolled[-1] == 2


def test_variables(rolled):
    scale, total = tf.Variable([0.5, 1.5, 1.0], dtype=tf.float64), tf.Variable(0.0)

    def program(x, xs):
        for i in range(N):
            x = tf.sin(x * scale) + xs[i]
            total.assign_add(0.5)
        return tf.reduce_sum(x)

    def run(x, xs):
        with tf.GradientTape() as tape:
            y = program(x, xs)
        return y, tape.gradient(y, scale)

    expected = run(*ARGS)
    total.assign(0.0)
    assert_close(unfused(run)(*ARGS), expected)
    assert float(total) == N / 2
    assert rolled[-1] >= 2


def shapes_change(x, xs):
    for i in range(N):
        x = tf.concat([x, xs[i, :1]], 0)
    return tf.reduce_sum(x**2)


def few_rounds(x, xs):
    for i in range(8):
        x = tf.sin(x) + xs[i]
    return tf.reduce_sum(x)


def numbers_in_branches(x, xs):
    for i in range(N):
        x = tf.sin(x) - 0.01 * i * xs[i] if x[0] > 0.0 else tf.cos(x) + 0.02 * i
    return tf.reduce_sum(x)


def rows_in_branches(x, xs):
    for i in range(N):
        x = tf.sin(x) - xs[i] if x[0] > 0.0 else tf.cos(x) + xs[N - i]
    return tf.reduce_sum(x)


@pytest.mark.parametrize(
    "program",
    [shapes_change, few_rounds, numbers_in_branches, rows_in_branches],
    ids=lambda value: value.__name__,
)
def test_what_is_not_alike_stays_as_it_is(program, rolled):
    run = tf.value_and_grad(program, (0, 1))
    assert_close(unfused(run)(*ARGS), run(*ARGS))
    assert rolled == [0]


def test_random_numbers_and_outside_code_stay_as_they_are(rolled):
    called = []

    def program(x):
        for _ in range(N):
            x = tf.sin(x) + tf.py_function(lambda x: called.append(1) or x, [x], tf.float64)
            x = x + tf.random.normal(x.shape, dtype=x.dtype)
        return x

    function = unfused(program)
    x = tf.constant(X)
    function(x)
    called.clear()
    assert not np.array_equal(function(x), function(x))
    assert len(called) == 2 * N
    assert rolled == [0]


@pytest.mark.parametrize("seed", range(30))
def test_random_loops(seed, rolled):
    """Rounds of random operations, on what the last rounds, slices and numbers give."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(18, 30))
    plan = [
        (int(rng.integers(6)), *map(float, rng.uniform(size=3))) for _ in range(rng.integers(2, 7))
    ]
    lags, keep = rng.integers(1, 4, 3), rng.uniform() < 0.5

    def program(x, xs):
        states, kept = [x, tf.sin(x), 0.5 * x], []
        for i in range(steps):
            y = states[-1]
            for kind, a, b, c in plan:
                other = states[-int(lags[int(3 * a)])]
                y = (
                    tf.sin(y + other),
                    y * other * b,
                    tf.linalg.matvec(W, y) + x,
                    y + xs[i % N],
                    tf.cos(y) / (i + 1.0 + c),
                    tf.nn.softmax(y) * tf.reduce_sum(other),
                )[kind]
            states.append(tf.tanh(y))
            kept.append(y)
        end = tf.reduce_sum(states[-1] * states[-2])
        return end + tf.reduce_sum(tf.stack(kept)[:, 0]) if keep else end

    assert_close(unfused(two_orders(program))(*ARGS), two_orders(program)(*ARGS), 1e-8)
    assert rolled


def test_compiled_programs(monkeypatch):
    """All of it fused: rounds of other operations than elementwise ones become loops."""
    monkeypatch.setattr(compiled, "MAX_OPERATIONS", 100)
    run = tf.value_and_grad(recurrent, (0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for jit_compile in (None, True):
            program = tf.function(run, jit_compile=jit_compile)
            assert_close(program(*ARGS), run(*ARGS))
            (executable,) = program._programs.values()
            assert len(executable.program.graph.values()) < 50


def test_few_rounds_are_a_loop_where_the_program_is_too_long_without(monkeypatch):

    def program(x, xs):
        for i in range(10):
            x = tf.tanh(tf.linalg.matvec(W, x) + 0.1 * xs[i]) + tf.nn.softmax(x)
        return tf.reduce_sum(x * x)

    run = tf.value_and_grad(program, (0, 1))
    lengths = []
    for long in (1000, 60):
        monkeypatch.setattr(compiled, "MAX_OPERATIONS", long)
        compiled_run = tf.function(run)
        assert_close(compiled_run(*ARGS), run(*ARGS))
        (executable,) = compiled_run._programs.values()
        lengths.append(len(executable.program.graph.values()))
    assert lengths[1] < lengths[0] / 2


def test_what_cannot_be_a_loop_is_said(monkeypatch):
    def program(x):
        for i in range(600):
            x = tf.concat([x[1:], tf.reduce_sum(x, keepdims=True)], 0)[: 400 - i // 2]
        return x

    with pytest.warns(tf.errors.FunctionWarning, match="rounds have the same"):
        tf.function(program)(tf.zeros(400))
