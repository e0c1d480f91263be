"""custom_vmap: functions with a rule of their own for batches."""

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


def product(calls):
    """sin(a) * b, whose rule notes how it is called."""

    @tf.custom_vmap
    def f(a, b):
        calls.append("one")
        return tf.sin(a) * b

    @f.def_vmap
    def rule(axis_size, in_batched, a, b):
        calls.append((axis_size, tuple(in_batched)))
        return tf.sin(a) * b, True

    return f


A, B = np.array([0.5, 1.0, 1.5]), np.array([2.0, 3.0, 4.0])


def both(axes=(0, 0)):
    """The arguments of a batch, or those of its first example."""
    values = [array if axis == 0 else array[0] for array, axis in zip((A, B), axes, strict=True)]
    return [tf.constant(value, tf.float64) for value in values]


def test_outside_of_a_batch_it_is_the_function():
    calls = []
    a, b = tf.constant(0.5), tf.constant(2.0)
    assert float(product(calls)(a, b=b)) == pytest.approx(2 * np.sin(0.5))
    assert float(tf.grad(product(calls))(a, b)) == pytest.approx(2 * np.cos(0.5))
    assert set(calls) == {"one"}


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize(
    ("axes", "flags"),
    [((0, 0), (True, True)), ((0, None), (True, False)), ((None, 0), (False, True))],
)
def test_inside_a_batch_it_is_the_rule(wrap, axes, flags):
    calls = []
    f = wrap(tf.vmap(product(calls), axes))
    a = A if flags[0] else A[0]
    b = B if flags[1] else B[0]
    np.testing.assert_allclose(f(tf.constant(a), tf.constant(b)), np.sin(a) * b)
    assert calls == [(3, flags)]


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("argnum", [0, 1])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_inside(wrap, argnum, axes, order):
    """Of each example its own, as of the function, also by what is the same for all."""
    calls = []

    def derivative(f):
        for _ in range(order):
            f = tf.grad(f, argnum)
        return f

    a, b = both(axes)
    result = wrap(tf.vmap(derivative(product(calls)), axes))(a, b)
    expected = tf.vmap(derivative(lambda a, b: tf.sin(a) * b), axes)(a, b)
    np.testing.assert_allclose(result, expected, atol=1e-12)
    assert "one" not in calls


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "compiled"])
@pytest.mark.parametrize("argnum", [0, 1])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
@pytest.mark.parametrize("order", [1, 2])
def test_gradients_outside(wrap, argnum, axes, order):
    """By what is the same for all: the sum over the examples."""
    a, b = both(axes)

    def derivative(f):
        def g(a, b):
            return tf.reduce_sum(tf.vmap(f, axes)(a, b) ** 2)

        for _ in range(order):
            g = tf.elementwise_grad(g, argnum)
        return g

    calls = []
    result = wrap(derivative(product(calls)))(a, b)
    expected = derivative(lambda a, b: tf.sin(a) * b)(a, b)
    np.testing.assert_allclose(result, expected, rtol=1e-12)
    assert "one" not in calls


def test_gradients_inside_and_outside_together():
    def loss(f):
        return lambda a, b: tf.reduce_sum(tf.vmap(tf.grad(f), (0, None))(a, b) ** 2)

    a, b = both((0, None))
    calls = []
    for argnum in (0, 1):
        gradient = tf.grad(loss(product(calls)), argnum)(a, b)
        expected = tf.grad(loss(lambda a, b: tf.sin(a) * b), argnum)(a, b)
        np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    assert "one" not in calls


def test_forward_mode_inside_and_outside():
    a, b = both()
    calls = []

    def tangent(f):
        return lambda a, b: tf.jvp(f, (a, b), (b, a))[1]

    expected = np.cos(A) * B * B + np.sin(A) * A
    np.testing.assert_allclose(tf.vmap(tangent(product(calls)))(a, b), expected)
    np.testing.assert_allclose(tangent(tf.vmap(product(calls)))(a, b), expected)
    assert "one" not in calls

    def second(f):
        return lambda a, b: tf.jvp(lambda a: tf.grad(f)(a, b), (a,), (tf.ones_like(a),))[1]

    np.testing.assert_allclose(tf.vmap(second(product(calls)))(a, b), -np.sin(A) * B)
    assert "one" not in calls


def test_jacobians_inside_where_the_rows_are_a_batch_of_their_own():
    calls = []

    @tf.custom_vmap
    def scaled(x, w):
        calls.append("one")
        return x * tf.reduce_sum(x * w)

    @scaled.def_vmap
    def rule(size, batched, x, w):
        calls.append(size)
        return x * tf.reduce_sum(x * w, -1, keepdims=True), True

    xs, w = tf.constant(np.arange(6.0).reshape(2, 3)), tf.constant([1.0, -1.0, 0.5], tf.float64)
    natural = lambda x, w: x * tf.reduce_sum(x * w)
    result = tf.vmap(tf.jacobian(scaled), (0, None))(xs, w)
    np.testing.assert_allclose(result, tf.vmap(tf.jacobian(natural), (0, None))(xs, w))
    total = lambda f: lambda x, w: tf.reduce_sum(f(x, w) ** 2)
    result = tf.vmap(tf.hessian(total(scaled)), (0, None))(xs, w)
    np.testing.assert_allclose(result, tf.vmap(tf.hessian(total(natural)), (0, None))(xs, w))
    assert "one" not in calls


def test_two_batches_ask_once_for_each():
    calls = []
    a = tf.constant(np.arange(6.0).reshape(2, 3))
    b = tf.constant(B)
    f = product(calls)
    result = tf.vmap(tf.vmap(f), (0, None))(a, b)
    np.testing.assert_allclose(result, np.sin(a) * B)
    assert calls == [(3, (True, True))]

    calls.clear()

    @f.def_vmap
    def rule(axis_size, in_batched, a, b):
        calls.append((axis_size, tuple(in_batched)))
        return f(a, b) if axis_size == 3 else tf.sin(a) * b, True

    np.testing.assert_allclose(tf.vmap(tf.vmap(f), (0, None))(a, b), np.sin(a) * B)
    assert calls == [(3, (True, True)), (2, (True, False))]


def test_numpy_code_for_all_examples_at_once():
    """The inner function takes one matrix; the rule a stack of them, with a gradient of its own."""
    calls = []

    def solution(a, b):
        calls.append(a.shape)
        return np.linalg.solve(a, b[..., None])[..., 0]

    solve_arrays = tf.primitive("CustomVmapSolve", solution, shape=lambda a, b: b.shape)

    @tf.RegisterGradient("CustomVmapSolve")
    def _(op, dy):
        a, _ = op.inputs
        db = solve_arrays(tf.linalg.matrix_transpose(a), dy)
        return -db[..., :, None] * op.outputs[0][..., None, :], db

    solve = tf.custom_vmap(lambda a, b: solve_arrays(a, b))

    @solve.def_vmap
    def rule(axis_size, in_batched, a, b):
        if not in_batched[0]:
            a = tf.broadcast_to(a, (axis_size, *a.shape))
        if not in_batched[1]:
            b = tf.broadcast_to(b, (axis_size, *b.shape))
        return solve_arrays(a, b), True

    generator = np.random.default_rng(0)
    a = generator.normal(size=(5, 3, 3)) + 3 * np.eye(3)
    b = generator.normal(size=3)
    result = tf.vmap(solve, (0, None))(tf.constant(a), tf.constant(b))
    np.testing.assert_allclose(
        result, np.linalg.solve(a, np.broadcast_to(b, (5, 3))[..., None])[..., 0]
    )
    assert calls == [(5, 3, 3)]

    def loss(solve):
        return lambda a, b: tf.reduce_sum(solve(a, b) ** 3)

    natural = lambda a, b: tf.linalg.solve(a, b[:, None])[:, 0]
    for argnum in (0, 1):
        gradient = tf.vmap(tf.grad(loss(solve), argnum), (0, None))(tf.constant(a), tf.constant(b))
        expected = tf.vmap(tf.grad(loss(natural), argnum), (0, None))(
            tf.constant(a), tf.constant(b)
        )
        np.testing.assert_allclose(gradient, expected, rtol=1e-9)
    assert all(shape == (5, 3, 3) for shape in calls)


def test_a_custom_gradient_has_its_rule_in_the_batch_too():
    """The rule of the examples' function is not that of its batches: here 10 dy and 100 dy."""

    @tf.custom_gradient
    def of_example(x):
        return x * 1.0, lambda dy: 10.0 * dy

    @tf.custom_gradient
    def of_batch(x):
        return x * 1.0, lambda dy: 100.0 * dy

    f = tf.custom_vmap(of_example)
    f.def_vmap(lambda size, batched, x: (of_batch(x), True))
    x = tf.constant([1.0, 2.0])
    assert float(tf.grad(f)(tf.constant(1.0))) == 10.0
    assert tf.vmap(tf.grad(f))(x).numpy().tolist() == [100.0, 100.0]
    assert tf.grad(lambda x: tf.reduce_sum(tf.vmap(f)(x)))(x).numpy().tolist() == [100.0, 100.0]


def test_structures_integers_statics_and_results_that_are_the_same_for_all():
    @tf.custom_vmap
    def f(parts, mode, count=2):
        return {"sum": parts["x"] + parts["y"], "count": tf.constant(count), "n": parts["n"] * 2}

    seen = []

    @f.def_vmap
    def rule(size, batched, parts, mode, count):
        seen.append((batched, mode, count))
        out = {"sum": parts["x"] + parts["y"], "count": tf.constant(count), "n": parts["n"] * 2}
        return out, {"sum": True, "count": False, "n": True}

    x, n = tf.constant([1.0, 2.0]), tf.constant([3, 4])

    def call(x, n):
        return f({"x": x, "y": 5.0, "n": n}, "mode", count=7)

    result = tf.vmap(call)(x, n)
    assert result["sum"].numpy().tolist() == [6.0, 7.0]
    assert result["count"].numpy().tolist() == [7, 7]
    assert result["n"].numpy().tolist() == [6, 8]
    assert seen == [([{"x": True, "y": False, "n": True}, False, False], "mode", 7)]
    gradient = tf.vmap(lambda x, n: tf.grad(lambda x: call(x, n)["sum"])(x))(x, n)
    assert gradient.numpy().tolist() == [1.0, 1.0]


def test_methods():
    class Scale:
        factor = 3.0

        @tf.custom_vmap
        def f(self, x):
            raise AssertionError("not for batches")

        @f.def_vmap
        def rule(axis_size, in_batched, self, x):
            return x * self.factor, True

    x = tf.constant([1.0, 2.0])
    assert tf.vmap(Scale().f)(x).numpy().tolist() == [3.0, 6.0]


def test_a_function_compiled_inside_of_a_batch():
    calls = []
    f = tf.function(product(calls))
    a, b = both()
    np.testing.assert_allclose(tf.vmap(f)(a, b), np.sin(A) * B)
    np.testing.assert_allclose(tf.vmap(tf.grad(f))(a, b), np.cos(A) * B)


# Errors ---------------------------------------------------------------------------------------


def with_rule(rule):
    f = tf.custom_vmap(lambda x: x * 1.0)
    if rule is not None:
        f.def_vmap(rule)
    return f


@pytest.mark.parametrize(
    ("rule", "error", "words"),
    [
        (None, TypeError, r"has no rule for batches: declare it by `@<lambda>.def_vmap`"),
        (lambda size, batched, x: x, TypeError, r"must return \(out, out_batched\), got"),
        (lambda size, batched, x: (tf.reduce_sum(x), True), ValueError, r"result 0 has shape \(\)"),
        (
            lambda size, batched, x: (x, [True, True]),
            ValueError,
            "1 results, and out_batched for 2",
        ),
    ],
)
def test_rules_that_are_refused(rule, error, words):
    with pytest.raises(error, match=words):
        tf.vmap(with_rule(rule))(tf.constant([1.0, 2.0]))


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="custom_vmap decorates a function, got int"):
        tf.custom_vmap(3)
    with pytest.raises(TypeError, match="must be a function, got int"):
        tf.custom_vmap(lambda x: x).def_vmap(3)


@pytest.mark.parametrize("where", ["tape", "Variable", "forward"])
def test_a_rule_that_captures_what_is_watched_is_refused(where):
    """Its gradient would be lost."""
    w = tf.Variable(2.0) if where == "Variable" else tf.constant(2.0)
    f = with_rule(lambda size, batched, x: (x * w, True))
    x = tf.constant([1.0, 2.0])
    words = "captures a tensor or Variable that is watched: pass it as an argument"
    watching = tf.GradientTape()
    if where == "forward":
        watching = tf.autodiff.ForwardAccumulator(w, tf.constant(1.0))
    elif where == "tape":
        watching.watch(w)
    with watching, pytest.raises(TypeError, match=words):
        tf.vmap(f)(x)
    assert tf.vmap(f)(x).numpy().tolist() == [2.0, 4.0]  # where nobody watches it is a constant


def test_the_explanation_and_repr():
    f = with_rule(lambda size, batched, x: (x, True))
    assert repr(f) == "<<lambda> with a rule for batches>"
    assert repr(with_rule(None)) == "<<lambda> with no rule for batches>"


def counted(function):
    calls = []

    def call(*args):
        calls.append(args)
        return function(*args)

    return call, calls


def in_numpy(jvp, vjp):
    """sin with such products in NumPy, and a rule for batches that calls it."""
    sine = tf.custom_derivatives(lambda x: tf.constant(np.sin(x.numpy())), jvp=jvp, vjp=vjp)
    f = tf.custom_vmap(lambda x: sine(x))
    f.def_vmap(lambda size, batched, x: (sine(x), True))
    return f


WAYS_TO_PUSH = {
    "tangent of each": lambda f, x, t: tf.vmap(lambda x, t: tf.jvp(f, (x,), (t,))[1])(x, t),
    "tangent of all": lambda f, x, t: tf.jvp(tf.vmap(f), (x,), (t,))[1],
    "compiled": lambda f, x, t: tf.function(
        lambda x, t: tf.vmap(lambda x, t: tf.jvp(f, (x,), (t,))[1])(x, t), jit_compile=False
    )(x, t),
}
BATCH = tf.constant(np.linspace(0.1, 1.9, 15).reshape(5, 3))


@pytest.mark.parametrize("way", WAYS_TO_PUSH)
@pytest.mark.parametrize("declares_vjp", [False, True])
def test_a_declared_jvp_serves_all_examples_in_one_call(way, declares_vjp):
    jvp, pushed = counted(lambda way, x: tf.constant(way.numpy() * np.cos(x.numpy())))
    vjp, pulled = counted(lambda dy, x: tf.constant(dy.numpy() * np.cos(x.numpy())))
    f = in_numpy(jvp, vjp if declares_vjp else None)
    result = WAYS_TO_PUSH[way](f, BATCH, 2.0 * BATCH)
    np.testing.assert_allclose(result, 2.0 * BATCH.numpy() * np.cos(BATCH), rtol=1e-12)
    assert (len(pushed), len(pulled)) == (1, 0)


def test_a_declared_vjp_alone_is_called_for_the_elements_of_one_example():
    """Not for those of all examples, 15, though the rule computes them together."""
    vjp, pulled = counted(lambda dy, x: tf.constant(dy.numpy() * np.cos(x.numpy())))
    f = in_numpy(None, vjp)
    result = WAYS_TO_PUSH["tangent of each"](f, BATCH, 2.0 * BATCH)
    np.testing.assert_allclose(result, 2.0 * BATCH.numpy() * np.cos(BATCH), rtol=1e-12)
    pulled_by = [dy.numpy() for dy, _ in pulled if np.count_nonzero(dy) == 5]
    assert len(pulled_by) == 3  # the unit vectors; the others ask whether it is linear
