"""Custom gradients that take values (``x.numpy()``, ``float(x)``) in batches and programs."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.orders import assert_clean_state, run_in_threads

X = tf.constant([0.7, -1.2, 1.9], tf.float64)
W = tf.constant([2.0, -0.5, 3.0], tf.float64)


@pytest.fixture(autouse=True)
def ignore_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.CustomGradientWarning)
        yield
    assert_clean_state()


def loop(f: Any, *args: Any) -> np.ndarray:
    """Return f of each example, one after the other."""
    return np.stack([f(*[arg[i] for arg in args]) for i in range(len(args[0]))])


# How often rules are called --------------------------------------------------------------------


def counted() -> tuple[Any, list]:
    calls: list = []

    @tf.custom_gradient
    def cube(x):
        def rule(dy):
            calls.append("before")
            slope = 3.0 * x**2
            product = tf.constant(slope.numpy() * dy.numpy())
            calls.append("after")
            return product

        return x**3, rule

    return cube, calls


@pytest.mark.quick
def test_a_rule_is_called_once_for_each_row():
    cube, calls = counted()
    expected = np.diag(3 * X.numpy() ** 2)
    with tf.GradientTape() as tape:
        tape.watch(X)
        y = cube(X)
    assert_allclose(tape.jacobian(y, X), expected)
    assert calls == ["before", "after"] * 3
    calls.clear()
    assert_allclose(tf.jacobian(cube)(X), expected)
    assert calls == ["before", "after"] * 3
    calls.clear()
    assert_allclose(tf.vmap(tf.grad(cube))(X), np.diag(expected))
    assert calls == ["before", "after"] * 3
    calls.clear()
    xs = tf.stack([X, W])
    assert_allclose(tf.vmap(tf.jacobian(cube))(xs)[1], np.diag(3 * W.numpy() ** 2))
    assert len(calls) == 2 * 6


@pytest.mark.quick
def test_a_program_calls_the_rule_once_for_each_row():
    cube, calls = counted()
    program = unfused(tf.jacobian(cube))
    for x in (X, 2.0 * X, W):
        calls.clear()
        assert_allclose(program(x), np.diag(3 * x.numpy() ** 2))
        assert calls == ["before", "after"] * 3


def test_a_rule_of_operations_is_called_once_for_all_rows():
    calls = []

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: calls.append(dy) or 3.0 * x**2 * dy

    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    assert len(calls) == 1


def test_values_and_rule_of_each_example_are_computed_once():
    calls = []

    @tf.custom_gradient
    def sine(x):
        calls.append("value")
        return tf.constant(np.sin(x.numpy())), lambda dy: dy * tf.cos(x)

    assert_allclose(tf.vmap(sine)(X), np.sin(X))
    assert calls == ["value"] * 3
    assert tf.vmap(sine)(tf.zeros((0, 2))).shape == (0, 2)


def test_an_empty_jacobian():
    cube, _ = counted()
    assert tf.jacobian(cube)(tf.zeros((0,), tf.float64)).shape == (0, 0)


# What a rule captures --------------------------------------------------------------------------


@tf.custom_gradient
def kinked(x):
    """x**2 above 0 and x**3 below, by a rule that decides."""

    def rule(dy):
        return 2.0 * x * dy if float(x) > 0.0 else 3.0 * x**2 * dy

    return tf.where(x > 0.0, x**2, x**3), rule


@pytest.mark.parametrize("wrap", [lambda f: f, unfused])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_rule_that_branches(order, wrap):
    f, above, below = kinked, lambda x: x**2, lambda x: x**3
    for _ in range(order):
        f, above, below = tf.grad(f), tf.grad(above), tf.grad(below)
    expected = [float(above(x) if float(x) > 0.0 else below(x)) for x in X]
    assert_allclose(wrap(tf.vmap(f))(X), expected)
    program = wrap(f)
    for x, value in zip(X, expected, strict=True):
        assert_allclose(program(x), value)


def test_branches_that_capture_different_tensors():
    def pick(x, a, b):
        @tf.custom_gradient
        def f(x, a, b):
            def rule(dy):
                way = a**2 if float(x) > 0.0 else b**3
                return dy * way, None, None

            return x * a**2, rule

        return tf.grad(f)(x, a, b)

    def slopes(x, a, b):
        return tf.stack(tf.grad(pick, (1, 2))(x, a, b))

    a, b = 2.0 * W, W - 1.0
    for wrap in (lambda f: f, unfused):
        assert_allclose(wrap(tf.vmap(pick))(X, a, b), loop(pick, X, a, b))
        assert_allclose(wrap(tf.vmap(slopes))(X, a, b), loop(slopes, X, a, b))
        program = wrap(slopes)
        for i in range(3):
            assert_allclose(program(X[i], a[i], b[i]), slopes(X[i], a[i], b[i]))


class Layer:
    """Its rule finds a tensor that is in no closure, and no argument."""

    weight: Any = None

    @tf.custom_gradient
    def __call__(self, x):
        def rule(dy):
            assert float(x) > -99.0
            return dy * self.weight**2

        return x * self.weight**2, rule


def test_a_tensor_that_an_object_holds():
    layer = Layer()

    def slope(x, w):
        layer.weight = w
        return tf.grad(layer)(x)

    for wrap in (tf.vmap, lambda f: unfused(tf.vmap(f))):
        assert_allclose(wrap(slope)(X, W), W.numpy() ** 2)
        assert_allclose(wrap(tf.grad(slope, 1))(X, W), 2 * W.numpy())


def test_rows_of_a_rule_that_captures_what_an_outer_tape_watches():
    """One dimension more is differentiated than that of the batch."""

    def f(w):
        @tf.custom_gradient
        def scale(x):
            def rule(dy):
                assert dy.numpy().shape == (3,)
                return dy * w**2

            return x * w**2, rule

        return tf.reduce_sum(tf.jacobian(scale)(X))

    assert_allclose(tf.grad(f)(W), 2 * W.numpy())
    assert_allclose(tf.hessian(f)(W), 2 * np.eye(3))
    assert_allclose(unfused(tf.grad(f))(W), 2 * W.numpy())
    assert_allclose(tf.jvp(f, (W,), (X,))[1], 2 * np.sum(W.numpy() * X.numpy()))


def test_captured_variables():
    weight = tf.Variable(W)

    @tf.custom_gradient
    def scale(x):
        def rule(dy, variables):
            assert dy.numpy().shape == (3,)
            return dy * weight**2, [2.0 * weight * x * dy]

        return x * weight**2, rule

    for wrap in (lambda f: f, unfused):
        run = wrap(lambda x: tf.reduce_sum(tf.jacobian(scale)(x)))
        for value in (W, X):
            weight.assign(value)
            with tf.GradientTape() as tape:
                total = run(X)
            assert_allclose(total, np.sum(value.numpy() ** 2))
            assert_allclose(tape.gradient(total, weight), 2 * value.numpy())
    with tf.GradientTape(persistent=True) as tape:
        y = scale(W)
    assert_allclose(tape.jacobian(y, weight), np.diag(2 * W.numpy() * X.numpy()))


def test_a_scratch_variable_in_a_rule():
    @tf.custom_gradient
    def cube(x):
        def rule(dy):
            total = tf.Variable(tf.zeros_like(x))
            for _ in range(int(dy.numpy().size)):
                total.assign_add(x**2 * dy)
            return total.value()

        return x**3, rule

    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    assert_allclose(tf.vmap(tf.grad(lambda x: tf.reduce_sum(cube(x))))(X[:, None])[:, 0], X**2)


# What a rule does ------------------------------------------------------------------------------

TAKES = {
    "numpy": lambda t: tf.constant(t.numpy()),
    "asarray": lambda t: tf.constant(np.asarray(t)),
    "array": lambda t: np.array(t, np.float64),
    "tolist": lambda t: tf.constant(t.tolist(), tf.float64),
    "items": lambda t: tf.stack([tf.constant(element.item(), tf.float64) for element in t]),
    "floats": lambda t: tf.constant([float(element) for element in t], tf.float64),
    "solve": lambda t: tf.constant(np.linalg.solve(np.eye(3), t.numpy())),
    "dlpack": lambda t: tf.constant(np.from_dlpack(t)),
    "bool": lambda t: t if all(bool(element == element) for element in t) else None,
}


@pytest.mark.parametrize("take", TAKES)
def test_each_way_to_take_values(take):
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: 3.0 * x**2 * TAKES[take](dy)

    expected = np.diag(3 * X.numpy() ** 2)
    assert_allclose(tf.jacobian(cube)(X), expected)
    assert_allclose(unfused(tf.jacobian(cube))(X), expected)
    assert_allclose(tf.vmap(tf.jacobian(cube))(tf.stack([X, W]))[0], expected)


def test_a_tape_and_a_program_inside_a_rule():
    square = unfused(lambda x: x**2)

    @tf.custom_gradient
    def cube(x):
        def rule(dy):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(x**3)
                assert y.numpy() > -1e9  # from here on values of one row
                z = y + 0.0 * tf.reduce_sum(square(x))
            return tape.gradient(z, x) * dy

        return x**3, rule

    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    assert_allclose(tf.vmap(tf.jacobian(cube))(tf.stack([X, W]))[1], np.diag(3 * W.numpy() ** 2))
    hessian = tf.hessian(lambda x: tf.reduce_sum(cube(x)))
    assert_allclose(hessian(X), np.diag(6 * X.numpy()))
    assert_allclose(tf.vmap(hessian)(tf.stack([X, W]))[1], np.diag(6 * W.numpy()))


def test_a_custom_gradient_inside_a_rule():
    @tf.custom_gradient
    def scaled(dy, x):
        def rule(u):
            assert u.numpy().shape == (3,)
            return u * 3.0 * x**2, 6.0 * u * x * dy

        assert dy.numpy().shape == (3,)
        return dy * 3.0 * x**2, rule

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: scaled(dy, x)

    hessian = tf.hessian(lambda x: tf.reduce_sum(cube(x) * W))
    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    assert_allclose(hessian(X), np.diag(6 * X.numpy() * W.numpy()))
    assert_allclose(unfused(hessian)(X), np.diag(6 * X.numpy() * W.numpy()))
    assert_allclose(tf.vmap(hessian)(tf.stack([X, W]))[1], np.diag(6 * W.numpy() ** 2))


def test_several_outputs_and_structures():
    @tf.custom_gradient
    def both(pair):
        a, b = pair["a"], pair["b"]

        def rule(da, db):
            return da.numpy() * 2.0 * a + db * b, db.numpy() * a.numpy()

        return {"x": a**2, "y": a * b}, rule

    def f(a, b):
        results = both({"a": a, "b": b})
        return results["x"] + 3.0 * results["y"]

    jacobians = tf.jacobian(f, (0, 1))
    for wrap in (lambda f: f, unfused):
        result = wrap(jacobians)(X, W)
        assert_allclose(result[0], np.diag(2 * X.numpy() + 3 * W.numpy()))
        assert_allclose(result[1], np.diag(3 * X.numpy()))


def test_rows_without_a_gradient():
    @tf.custom_gradient
    def f(x, y):
        return x + y, lambda dy: (dy, dy * 5.0 if float(y) > 0.0 else None)

    for wrap in (lambda f: f, unfused):
        gradients = wrap(tf.vmap(tf.grad(f, (0, 1))))(X, X)
        assert_allclose(gradients[0], np.ones(3))
        assert_allclose(gradients[1], [5.0, 0.0, 5.0])
        assert_allclose(wrap(tf.vmap(tf.grad(f, (0, 1))))(X, -X)[1], [0.0, 5.0, 0.0])


def test_no_row_has_a_gradient():
    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: None if dy.numpy() is not None else dy

    with tf.GradientTape() as tape:
        tape.watch(X)
        y = f(X)
    assert tape.jacobian(y, X) is None


def test_needs_input_grad_and_values():
    asked = []

    @tf.custom_gradient
    def f(x, y):
        def rule(dy, needs_input_grad):
            asked.append(needs_input_grad)
            return dy.numpy() * y.numpy(), None

        return x * y, rule

    assert_allclose(tf.jacobian(f)(X, W), np.diag(W))
    assert asked == [(True, False)] * 3


def test_the_rule_of_keras():
    @tf.keras.ops.custom_gradient
    def cube(x):
        def rule(x, *, upstream):
            return 3.0 * x.numpy() ** 2 * upstream.numpy()

        return x**3, rule

    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    assert_allclose(unfused(tf.jacobian(cube))(X), np.diag(3 * X.numpy() ** 2))


def test_a_limit_of_orders_holds():
    @tf.custom_gradient(max_order=1)
    def cube(x):
        return x**3, lambda dy: tf.constant(3.0 * x.numpy() ** 2 * dy.numpy())

    assert_allclose(tf.jacobian(cube)(X), np.diag(3 * X.numpy() ** 2))
    with pytest.raises(tf.errors.DerivativeOrderError, match="cube"):
        tf.hessian(lambda x: tf.reduce_sum(cube(x)))(X)


@pytest.mark.quick
def test_forward_mode():
    cube, _ = counted()
    expected = 3 * X.numpy() ** 2 * W.numpy()
    for wrap in (lambda f: f, unfused):
        assert_allclose(wrap(lambda x, w: tf.jvp(cube, (x,), (w,))[1])(X, W), expected)
        assert_allclose(tf.jvp(wrap(cube), (X,), (W,))[1], expected)
        pushed = wrap(tf.vmap(lambda x, w: tf.jvp(cube, (x,), (w,))[1]))
        assert_allclose(pushed(X, W), expected)


def test_threads():
    cube, _ = counted()
    jacobian = tf.jacobian(cube)
    jacobians = run_in_threads(*[partial(jacobian, X * float(i)) for i in range(4)])
    for i in range(4):
        assert_allclose(jacobians[i], np.diag(3 * (i * X.numpy()) ** 2))


# Errors ----------------------------------------------------------------------------------------


def test_errors_of_a_rule():
    @tf.custom_gradient
    def wrong(x):
        return x * 2.0, lambda dy: np.zeros(5) * dy.numpy()[0]

    with pytest.raises(
        ValueError, match=r"the rule of `wrong` returned a gradient of shape \(5,\)"
    ):
        tf.jacobian(wrong)(X)
    assert_clean_state()

    @tf.custom_gradient
    def fails(x):
        def rule(dy):
            if dy.numpy()[1]:
                raise KeyError("row 1")
            return dy

        return x * 2.0, rule

    for wrap in (lambda f: f, unfused):
        with pytest.raises(KeyError, match="row 1"):
            wrap(tf.jacobian(fails))(X)
        assert_clean_state()


def test_values_of_a_batch_inside_the_rule_are_refused():
    """It is not the rule that needs a value, but the function that it batches."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: tf.vmap(lambda row: row * float(row))(dy)

    for run in (lambda: tf.jacobian(f)(X), lambda: tf.grad(lambda x: tf.reduce_sum(f(x)))(X)):
        with pytest.raises(TypeError, match="no values yet"):
            run()
        assert_clean_state()


def test_another_branch_of_a_program_uses_an_unknown_tensor():
    """Neither its closure nor the first call told of it: an error, never another number."""
    layer = Layer()

    @tf.custom_gradient
    def f(x):
        def rule(dy):
            return dy * layer.weight if float(x) > 0.0 else dy

        return x, rule

    def slope(x, w):
        layer.weight = w
        return tf.grad(f)(x)

    program = unfused(slope)
    assert_allclose(program(X[1], W[0]), 1.0)
    with pytest.raises(TypeError, match=r"`f` used a tensor that it captures.*as arguments"):
        program(X[0], W[0])
