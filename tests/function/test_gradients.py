"""Gradients of compiled functions: tapes, transformations and rules, outside and inside."""

import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import orders, same, unfused
from tests.support.orders import custom_gradient_warnings
from tests.support.rules import doubled_rule, log1pexp
from tinygrad_cg._function.tracing.function import Function

X = np.array([0.5, -1.0, 2.0])
W = np.random.default_rng(0).normal(size=(3, 4))


def chain(x):
    return tf.reduce_sum(tf.tanh(tf.exp(0.3 * x) * tf.sin(x)) ** 2)


def network(x):
    hidden = tf.nn.relu(tf.linalg.matvec(tf.constant(W.T), x)) + tf.math.log(1 + x[0] ** 2)
    return tf.reduce_logsumexp(hidden) + tf.reduce_max(x) * hidden[1]


def tape_inside(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(doubled_rule(x * x))
    return tf.reduce_sum(tape.gradient(y, x) ** 2) + y


FUNCTIONS = [
    *(chain, network, tape_inside, log1pexp, doubled_rule, tf.recompute_grad(chain)),
    lambda x: tf.reduce_sum(tf.recompute_grad([tf.exp, tf.sin, doubled_rule])(x)),
    lambda x: tf.reduce_sum(tf.hessian(chain)(x) ** 2),
    lambda x: tf.reduce_sum(tf.vmap(lambda row: log1pexp(row) * x)(x)),
    lambda x: tf.reduce_sum(tf.jvp(doubled_rule, [x], [x])[1]),
    lambda x: x,
    lambda x: tf.constant(X) * 1.0,
    lambda x: tf.stop_gradient(x) * x,
]
EACH = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: getattr(f, "__name__", "f"))


@EACH
def test_tapes_outside(function):
    x = tf.constant(X)
    compiled = unfused(function)
    for _ in range(2):
        for count in range(3):
            same(orders(compiled, x, count), orders(function, x, count))


@EACH
def test_tapes_inside(function):
    x = tf.constant(X)
    for count in range(3):
        compiled = unfused(lambda x, count=count: orders(function, x, count))
        same(compiled(x), orders(function, x, count))


@EACH
def test_tapes_inside_and_outside(function):
    x = tf.constant(X)
    compiled = unfused(
        lambda x: [derivative for derivative in orders(function, x, 1) if derivative is not None][
            -1
        ]
    )
    eager = lambda x: [
        derivative for derivative in orders(function, x, 1) if derivative is not None
    ][-1]
    same(orders(compiled, x, 2), orders(eager, x, 2))


@EACH
def test_transformations(function):
    x = tf.constant(X)
    compiled = unfused(function)

    def total(f):
        return lambda x: tf.reduce_sum(f(x))

    for transform in (tf.grad, tf.value_and_grad, tf.hessian, tf.jacobian):
        same(transform(total(compiled))(x), transform(total(function))(x))
        same(unfused(transform(total(function)))(x), transform(total(function))(x))
        same(unfused(transform(total(compiled)))(x), transform(total(function))(x))
    same(tf.hvp(total(compiled))(x, x), tf.hvp(total(function))(x, x))
    same(unfused(tf.hvp(total(compiled)))(x, x), tf.hvp(total(function))(x, x))
    same(tf.jvp(compiled, [x], [x]), tf.jvp(function, [x], [x]))
    same(unfused(lambda x: tf.jvp(compiled, [x], [x]))(x), tf.jvp(function, [x], [x]))
    rows = tf.constant(np.stack([X, 2 * X]))
    same(tf.vmap(compiled)(rows), tf.vmap(function)(rows))
    same(unfused(tf.vmap(compiled))(rows), tf.vmap(function)(rows))
    same(tf.vmap(tf.grad(total(compiled)))(rows), tf.vmap(tf.grad(total(function)))(rows))


def test_the_sweep_of_a_tape_runs_compiled():
    f = unfused(lambda x: tf.reduce_sum(tf.sin(x) * x))
    x = tf.constant(X)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = f(x)
    first = tape.gradient(y, x)
    same(first, tf.constant(np.cos(X) * X + np.sin(X)))
    same(tape.gradient(y, x), first)
    same(tape.gradient(y, x, output_gradients=tf.constant(2.0, tf.float64)), first * 2.0)
    (traced,) = f._programs.values()
    (gradient,) = traced._gradients.values()
    assert gradient._parts is not None
    assert gradient.pullback.cache_size == 0


def test_what_is_dear_is_kept_and_what_is_cheap_computed_again():
    w = tf.constant(np.ones((4, 4)))
    f = unfused(lambda x: tf.reduce_sum(tf.tanh(tf.matmul(tf.exp(x), w)) ** 2))
    x = tf.constant(np.full((4, 4), 0.1))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    tape.gradient(y, x)
    (traced,) = f._programs.values()
    (gradient,) = traced._gradients.values()
    forward = [
        v.primitive.name for v in gradient.parts.forward_outputs.graph.values() if v.primitive
    ]
    backward = [
        v.primitive.name for v in gradient.parts.backward_outputs.graph.values() if v.primitive
    ]
    assert forward.count("matmul") == 1
    assert backward.count("matmul") == 1
    assert {"tanh", "exp"} <= set(backward)
    assert "sum" not in backward


def test_several_outputs_some_of_them_unused():
    def f(x, n):
        return {"a": x * x, "n": n + 1, "b": (tf.reduce_sum(x**3), x, None)}

    x, n = tf.constant(X), tf.constant(3)

    def gradients(function):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            results = function(x, n)
        b = results["b"]
        return [
            tape.gradient(results["a"], x),
            tape.gradient([results["a"], b[0]], x),
            tape.gradient(b[1], x),
            tape.gradient(b[0], [x, n]),
            tape.gradient(results["n"], x),
        ]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(gradients(unfused(f)), gradients(f))


def test_the_same_tensor_twice_and_some_that_nobody_watches():
    def f(x, y, z):
        return tf.reduce_sum(x * x * y * z)

    x, z = tf.constant(X), tf.constant(2 * X)

    def gradients(function):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x, x, z)
            first = tape.gradient(y, [x, z])
        return first, outer.gradient(first[0], x)

    same(gradients(unfused(f)), gradients(f))


def test_captured_tensors_and_variables():
    c, v = tf.constant(X), tf.Variable(2 * X)
    frozen = tf.Variable(3 * X, trainable=False)

    def f(x):
        return tf.reduce_sum(x * c**2 * v**3 * frozen)

    def gradients(function):
        x = tf.constant(X)
        with tf.GradientTape() as outer:
            outer.watch([x, c])
            with tf.GradientTape() as tape:
                tape.watch([x, c])
                y = function(x)
            first = tape.gradient(y, [x, c, v, frozen])
            assert [variable is v for variable in tape.watched_variables()] == [True]
        return y, first, outer.gradient(first[:3], [x, c, v])

    compiled = unfused(f)
    same(gradients(compiled), gradients(f))
    v.assign(X)
    same(gradients(compiled), gradients(f))
    with tf.GradientTape() as tape:
        tape.watch(c)
        y = compiled(tf.constant(X))
    same(tape.gradient(y, c), 2 * tf.constant(X) * c * v**3 * frozen)


def test_a_variable_assigned_before_the_gradient_had_its_value():
    v = tf.Variable(3.0)
    f = unfused(lambda x: x * v * v)

    def gradients(function):
        v.assign(3.0)
        x = tf.constant(2.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            v.assign(100.0)
            first = tape.gradient(y, [x, v])
        return y, first, outer.gradient(first, [x, v])

    same(gradients(f), gradients(f.python_function))
    assert v.numpy() == 100.0


def test_a_training_step():
    def step(w, b, x, y, rate):
        with tf.GradientTape() as tape:
            error = tf.linalg.matvec(x, w) + b - y
            loss = tf.reduce_mean(error**2)
        dw, db = tape.gradient(loss, [w, b])
        w.assign_sub(rate * dw)
        b.assign_sub(rate * db)
        return loss

    rng = np.random.default_rng(1)
    x, y = tf.constant(rng.normal(size=(20, 3))), tf.constant(rng.normal(size=20))
    results = []
    for function in (step, unfused(step)):
        w, b = tf.Variable(np.zeros(3)), tf.Variable(np.float64(0))
        losses = [function(w, b, x, y, rate) for rate in (0.1, 0.05, 0.1)]
        results.append([*losses, w.value(), b.value()])
    same(*results)


def test_assigning_under_a_tape_happens_once():
    count, total = tf.Variable(0.0), tf.Variable(0.0)

    @unfused
    def f(x):
        count.assign_add(1.0)
        total.assign(count * 2.0)
        return x * x * count

    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        first = tape.gradient(y, x)
    second = outer.gradient(first, x)
    assert (first.numpy(), second.numpy()) == (6.0, 2.0)
    assert (count.numpy(), total.numpy()) == (1.0, 2.0)


def test_a_rule_that_assigns_does_so_at_the_gradient():
    calls = tf.Variable(0.0, trainable=False)

    @tf.custom_gradient
    def counted(x):
        def grad(dy, variables=None):
            calls.assign_add(1.0)
            return dy * 5.0 * calls

        return x * 1.0, grad

    f = unfused(lambda x: counted(x) * 2.0)
    x = tf.constant(1.0)
    for expected in (1.0, 2.0):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        assert calls.numpy() == expected - 1
        assert tape.gradient(y, x).numpy() == 10.0 * expected
        assert calls.numpy() == expected


def test_which_rule_serves_is_decided_for_each_tape():
    c = tf.constant(3.0)

    @tf.custom_gradient
    def scaled(x):
        return x * c, lambda dy: dy * 100.0

    f = unfused(scaled)

    def gradients(function):
        x = tf.constant(2.0)
        with tf.GradientTape() as of_c, tf.GradientTape() as of_x:
            of_c.watch(c)
            of_x.watch(x)
            y = function(x)
        return of_c.gradient(y, c), of_x.gradient(y, x)

    with custom_gradient_warnings():
        same(gradients(f), gradients(scaled))
    assert gradients(f)[1].numpy() == 100.0


def test_custom_gradients_around_functions():
    v = tf.Variable(2.0)
    inner = unfused(lambda x: x * v)

    @tf.custom_gradient
    def f(x):
        y = inner(x)

        def grad(dy, variables=None):
            assert variables == [v] or [variable is v for variable in variables] == [True]
            return dy * 7.0, [dy * 11.0]

        return y, grad

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [gradient.numpy() for gradient in tape.gradient(y, [x, v])] == [7.0, 11.0]


def test_a_rule_in_compiled_code():
    rule = unfused(lambda dy, x: dy * tf.cos(x) * 3.0)

    @tf.custom_gradient
    def f(x):
        return tf.sin(x), lambda dy: rule(dy, x)

    eager = tf.custom_gradient(lambda x: (tf.sin(x), lambda dy: dy * tf.cos(x) * 3.0))
    x = tf.constant(X)
    same(orders(f, x, 3), orders(eager, x, 3))
    same(orders(unfused(f), x, 3), orders(eager, x, 3))


def test_in_a_default_graph():
    f = unfused(lambda x: x**3)
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        y = f(x)
        (first,) = tf.gradients(y, x)
        assert first.numpy() == 12.0
        assert tf.gradients(first, x)[0].numpy() == 12.0


def test_a_target_computed_after_the_tape_closed():
    f = unfused(lambda x: x * 2.0)
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * 3.0
    with pytest.warns(match="after the tape closed"):
        assert tape.gradient(f(y), x) is None


def test_stop_recording():
    f = unfused(lambda x: x * x)
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = f(x)
        z = y * x
    assert tape.gradient(z, x).numpy() == 9.0


def test_complex_numbers():
    def f(z):
        return tf.abs(tf.exp(z) * z) ** 2

    z = tf.constant(np.array([1 + 2j, 0.5 - 1j]))
    compiled = unfused(f)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(z)
        result, other = f(z), compiled(z)
    same(tape.gradient(other, z), tape.gradient(result, z))


def test_gradients_are_functions_that_do_not_warn():
    f = unfused(lambda x, n: x**n)
    x = tf.constant(2.0)
    for n in (2, 3):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, n)
        assert tape.gradient(y, x).numpy() == n * 2.0 ** (n - 1)
    assert isinstance(f, Function)


# Forward mode inside ---------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
@pytest.mark.parametrize("second", [lambda ddy, x: ddy * tf.cos(x) * 3.0, lambda ddy, x: 7.0 * ddy])
def test_a_compiled_rule_in_forward_mode(second):
    """Its own rule is its transpose, or is not: then its operations count."""

    @tf.custom_gradient
    def rule(dy, x):
        return dy * tf.cos(x) * 3.0, lambda ddy: (second(ddy, x), -3.0 * ddy * dy * tf.sin(x))

    def with_rule(rule):
        return tf.custom_gradient(lambda x: (tf.sin(x), lambda dy: rule(dy, x)))

    f, eager, x = with_rule(unfused(rule)), with_rule(rule), tf.constant(X)
    for _ in range(2):
        same(tf.jvp(f, [x], [x]), tf.jvp(eager, [x], [x]))
        same(tf.linearize(f, x)[1](x), tf.linearize(eager, x)[1](x))
        same(orders(f, x, 2), orders(eager, x, 2))


def test_a_rule_that_is_not_linear_is_refused_in_compiled_forward_mode_too():
    @tf.custom_gradient
    def clipped(x):
        return tf.exp(x), lambda dy: tf.clip_by_value(dy, -0.1, 0.1)

    x = tf.constant(X)
    for function in (clipped, unfused(clipped)):
        for way in (lambda f: f, unfused):
            with pytest.raises(TypeError, match="is not linear"):
                way(lambda x, f=function: tf.jvp(f, [x], [x])[1])(x)


def test_a_rule_with_a_rule_that_is_not_its_transpose():
    @tf.custom_gradient
    def op(x):
        @tf.custom_gradient
        def grad_fn(dy):
            return 3 * x**2 * dy, lambda ddy: 1000.0 * ddy

        return x**3, grad_fn

    x = tf.constant(X)
    tangent = lambda x: tf.jvp(op, [x], [tf.ones_like(x)])[1]
    same(unfused(tangent)(x), tangent(x))
    same(unfused(tf.vmap(tangent))(tf.stack([x, x])), tf.vmap(tangent)(tf.stack([x, x])))


def test_programs_run_again_what_is_to_be_recomputed():
    w = tf.constant(np.random.default_rng(0).normal(size=(4, 4)))

    def layers(x):
        return tf.tanh(tf.tanh(x @ w) @ w)

    kept, gradients, x = [], [], tf.constant(np.linspace(-1.0, 1.0, 12).reshape(3, 4))
    for function in (layers, tf.recompute_grad(layers)):
        program = unfused(lambda x, function=function: tf.reduce_sum(function(function(x))))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        gradients.append(tape.gradient(y, x))
        (compiled,) = program._programs.values()
        (gradient,) = compiled._gradients.values()
        kept.append(len(gradient.parts.forward_outputs.graph.outputs) - 1)
    same(gradients[1], gradients[0])
    assert kept == [4, 1]  # products; the second call's operand
