"""Sweeps overwrite large arrays that they made, and no others."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import tinygrad_cg as tf
from tests.support import keepers
from tests.support.python import run_python
from tinygrad_cg._core import record
from tinygrad_cg._function.codegen import fused_rules
from tinygrad_cg._reverse import sweep

SIZE = 2**18  # of which float32 takes 1 MiB
VALUES = np.random.default_rng(0).uniform(0.1, 0.9, SIZE)


def of_columns(x):
    x = tf.reshape(x, (1024, 256))
    mean, variance = tf.nn.moments(x, [0])
    return tf.nn.batch_normalization(x, mean, variance, x[0], x[1], 1e-3)


CHAINS = {
    "sin, tanh, exp, cos": lambda x: tf.cos(tf.exp(tf.tanh(tf.sin(x)))),
    "sigmoid, log, sqrt": lambda x: tf.sqrt(tf.math.log(tf.sigmoid(x) + 1.0)),
    "negative, square": lambda x: -tf.square(-tf.square(x)),
    "twice used": lambda x: tf.exp(x) * tf.sin(x) + tf.exp(tf.exp(x)),
    "same operand": lambda x: tf.exp(x) * tf.exp(x) - tf.sin(x) / x,
    "constants": lambda x: 3.0 * tf.exp(2.0 - tf.sin(x / 3.0)) ** 3,
    "powers": lambda x: tf.exp(x) ** tf.sin(x),
    "shapes": lambda x: tf.exp(tf.reshape(tf.sin(tf.reshape(x, (512, 512))), (SIZE,))),
    "transpose": lambda x: tf.exp(tf.transpose(tf.exp(tf.reshape(x, (512, 512))))),
    "slices": lambda x: tf.exp(tf.sin(x)[1:]) * tf.exp(tf.exp(x)[:-1]),
    "broadcast": lambda x: tf.exp(tf.reduce_mean(tf.exp(x)) * tf.sin(x)),
    "masks": lambda x: tf.exp(tf.where(x > 0.5, tf.exp(x), tf.nn.relu(tf.sin(x)))),
    "casts": lambda x: tf.exp(tf.cast(tf.exp(tf.cast(tf.sin(x), "float64")), x.dtype)),
    "normalized": lambda x: of_columns(tf.exp(x)) ** 3,
    "unlike shapes": lambda x: tf.reshape(x, (512, 512)) * x[:512] / tf.exp(x[:512]) + x[0],
    "parts of numbers": lambda x: tf.math.conj(tf.exp(x)) * tf.math.real(x) + tf.identity(x) * x,
    "products": lambda x: tf.exp(tf.reshape(tf.exp(x), (512, 512)) @ tf.eye(512, dtype=x.dtype)),
}


def gradient(function, x, **options):
    with tf.GradientTape(**options) as tape:
        tape.watch(x)
        y = tf.reduce_sum(function(x))
    return tape.gradient(y, x)


def without(monkeypatch, run):
    """The result where nothing is overwritten."""
    with monkeypatch.context() as context:
        context.setattr(record, "LARGE", 2**60)
        context.setattr(sweep, "LARGE", 2**60)
        return run()


@pytest.fixture
def overwritten(monkeypatch):
    """Collect whether each rule on a large array could overwrite its upstream gradient."""
    reused = []
    call = fused_rules.InPlaceRule.__call__

    def watched(self, owned, *operands):
        array = operands[0]._data
        out = call(self, owned, *operands)
        reused.append(out._data is array)
        del array
        return out

    monkeypatch.setattr(fused_rules.InPlaceRule, "__call__", watched)
    return reused


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CHAINS)
def test_the_same_bits(name, dtype, monkeypatch):
    x = tf.constant(VALUES.astype(dtype))
    result = gradient(CHAINS[name], x)
    wanted = without(monkeypatch, lambda: gradient(CHAINS[name], x))
    assert result.dtype == dtype
    assert_array_equal(result.numpy(), wanted.numpy())
    assert_array_equal(x.numpy(), VALUES.astype(dtype))


def test_a_chain_is_overwritten(overwritten):
    x = tf.constant(VALUES)
    gradient(CHAINS["sin, tanh, exp, cos"], x)
    assert overwritten == [False, True, True, True]  # the first one is the sum's


@pytest.mark.parametrize("function", [lambda x, y: x * y, lambda x, y: x * y[0] + x * y[1]])
def test_others_are_added_to_the_first_of_several_gradients(function, monkeypatch):
    added, run = [], sweep._add_up

    def add_up(node, total, gradient, owned):
        result = run(node, total, gradient, owned)
        added.append(result._data is total._data)
        return result

    monkeypatch.setattr(sweep, "_add_up", add_up)
    x, y = tf.constant(VALUES), tf.constant(VALUES[:8])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.reshape(tf.sin(x), (-1, 8))
        total = tf.reduce_sum(tf.exp(z) + function(z, y))
    tape.gradient(total, [x, y])
    assert added
    assert all(added)


def test_second_order(monkeypatch):
    x = tf.constant(VALUES)

    def second():
        return gradient(lambda x: gradient(CHAINS["sin, tanh, exp, cos"], tf.identity(x)), x)

    assert_array_equal(second().numpy(), without(monkeypatch, second).numpy())


def test_gradients_of_intermediates_stay():
    x = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = tf.sin(x)
        b = tf.exp(a)
        c = tf.tanh(b)
    gradients = tape.gradient(c, [c, b, a, x])
    slopes = 1 - c.numpy() ** 2
    assert_array_equal(gradients[0].numpy(), np.ones(SIZE))
    np.testing.assert_allclose(gradients[1].numpy(), slopes, rtol=1e-12)
    np.testing.assert_allclose(gradients[2].numpy(), slopes * b.numpy(), rtol=1e-12)
    expected = slopes * b.numpy() * np.cos(VALUES)
    np.testing.assert_allclose(gradients[3].numpy(), expected, rtol=1e-12)


def test_output_gradients_stay():
    x, upstream = tf.constant(VALUES), tf.constant(VALUES + 1.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(x))
    first = tape.gradient(y, x, output_gradients=upstream).numpy().copy()
    assert_array_equal(upstream.numpy(), VALUES + 1.0)
    assert_array_equal(tape.gradient(y, x, output_gradients=upstream).numpy(), first)


def test_a_persistent_tape_gives_the_same_twice():
    x = tf.constant(VALUES)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.reduce_sum(CHAINS["sin, tanh, exp, cos"](x))
    first = tape.gradient(y, x)
    copy = first.numpy().copy()
    assert_array_equal(tape.gradient(y, x).numpy(), copy)
    assert_array_equal(first.numpy(), copy)


@pytest.mark.parametrize("tracer", keepers.TRACERS)
def test_what_somebody_keeps_stays(tracer):
    """In a process that something watched while the library was imported, or goes on to watch."""
    done = run_python("-m", "tests.support.keepers", tracer)
    assert done.stdout.endswith("changed: []\n")


def test_what_a_rule_of_the_users_returns_stays():
    mine = tf.constant(VALUES)
    array = VALUES.copy()

    @tf.custom_gradient
    def replaced(x):
        return tf.identity(x), lambda dy: mine

    @tf.custom_gradient
    def by_array(x):
        return tf.identity(x), lambda dy: tf.convert_to_tensor(array)

    x = tf.constant(VALUES)
    for function in (replaced, by_array):
        gradient(lambda x, function=function: function(tf.exp(tf.sin(x))), x)
        assert_array_equal(mine.numpy(), VALUES)
        assert_array_equal(array, VALUES)


def test_one_upstream_gradient_for_two_operands():
    """An addition hands the same tensor to both operands: neither may overwrite it."""
    x = tf.constant(VALUES)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(x) + tf.tanh(x))
    gradient = tape.gradient(y, x).numpy()
    expected = y.numpy() * (np.cos(VALUES) + 1 - np.tanh(VALUES) ** 2)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_while_somebody_observes(monkeypatch):
    x = tf.constant(VALUES)

    def observed():
        with tf.debug_nans():
            return gradient(CHAINS["sin, tanh, exp, cos"], x)

    assert_array_equal(observed().numpy(), without(monkeypatch, observed).numpy())


PARTS = {
    "elements": lambda x: sum(x[i] * x[-i] for i in range(5)),
    "rows and columns": lambda x: x[1] * x[:, 0] + x[2, 1:4] @ tf.exp(x[1:4]),
    "strides and new axes": lambda x: x[::-1, ::2] * x[:, None, -1],
    "a part of a part": lambda x: x[1:][::2][0] * tf.sin(x)[2] + x[1:4][1],
    "arrays of indices": lambda x: x[np.array([0, 0, 3])] * x[1:4] * x[x > 0.5][0],
    "one upstream gradient": lambda x: x + x[0] + x[1] + tf.identity(x),
    "also used whole": lambda x: x[0] * tf.reduce_sum(x**2) + x[1] * x,
    "float32 of it": lambda x: tf.cast(x, "float32")[0] * tf.cast(x[1], "float32"),
    "complex": lambda x: tf.abs(tf.complex(x, x[::-1])[0] * tf.complex(x[1], x[2])),
    "infinite": lambda x: tf.math.log(x - x)[0] * 0.0 + x[0] / (x[1] - x[1]),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("size", [5, 600])
def test_gradients_of_parts_are_added_in_place(name, size, monkeypatch):
    x = tf.constant(np.random.default_rng(size).uniform(0.1, 0.9, (5, size)))
    f = lambda x: PARTS[name](tf.cos(x))
    narrow = lambda x: f(x[:, :5])

    def results():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            middle = tf.sin(x)
            before = middle[0] * 2.0
            tape.watch(middle)
            y = PARTS[name](middle if size == 5 else middle[:, :5]) * before[0]
        gradients = [tape.gradient(y, [x, middle, before]) for _ in range(2)]
        first = tf.grad(lambda x: tf.reduce_sum(narrow(x)))
        second = tf.grad(lambda x: tf.reduce_sum(first(x) ** 2))(x)
        return [*tf.nest.flatten(gradients), first(x), second, tf.jacobian(narrow)(x)]

    mine = results()
    monkeypatch.setattr(sweep, "adding_rules", {})
    for result, expected in zip(mine, results(), strict=True):
        assert_array_equal(result, expected)


@pytest.mark.quick
def test_parts_are_added_without_arrays_of_the_whole(monkeypatch):
    added = []
    adds = sweep._adds_to_total

    def counted(*arguments):
        added.append(adds(*arguments))
        return added[-1]

    monkeypatch.setattr(sweep, "_adds_to_total", counted)
    x = tf.constant(np.arange(1.0, 6.0))
    gradient = tf.grad(lambda x: sum(x[i] ** 2 for i in range(5)))(x)
    assert_array_equal(gradient, 2 * x.numpy())
    assert added == [False, True, True, True, True]
