"""Outside code of each kind under each transform, against derivatives in closed form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state
from tests.support.transforms import POINT, SINE, TRANSFORMS, Exact

MATRIX = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, -0.5, 1.0]])
INVERSE = np.linalg.inv(MATRIX)


SOLVE = Exact(
    lambda x: (INVERSE @ x) ** 3,
    lambda x: 3 * (INVERSE @ x)[:, None] ** 2 * INVERSE,
    lambda x: 6 * np.einsum("i,ij,ik->ijk", INVERSE @ x, INVERSE, INVERSE),
)


def sine_by_numpy_function():
    """`numpy_function` has no gradient: rules of rules, each of which calls it, give it one."""

    @tf.custom_gradient
    def slope(dy, x):
        def rule(u):
            both = lambda u, dy, x: (u * np.cos(x), -u * dy * np.sin(x))
            return tf.numpy_function(both, [u, dy, x], [tf.float64, tf.float64])

        return tf.numpy_function(lambda dy, x: dy * np.cos(x), [dy, x], tf.float64), rule

    @tf.custom_gradient
    def sine(x):
        return tf.numpy_function(np.sin, [x], tf.float64), lambda dy: slope(dy, x)

    return sine


def sine_by_py_function():
    def python(x):
        return tf.sin(x) if float(x[0]) > -9.0 else x

    return lambda x: tf.py_function(python, [x], tf.float64)


def sine_by_primitives():
    sine = tf.primitive("TableSine", np.sin, replace=True)
    cosine = tf.primitive("TableCosine", np.cos, replace=True)
    tf.RegisterGradient("TableSine", replace=True)(lambda op, dy: dy * cosine(op.inputs[0]))
    tf.RegisterGradient("TableCosine", replace=True)(lambda op, dy: -dy * sine(op.inputs[0]))
    return sine


def sine_by_partial_derivatives():
    return tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), lambda x: np.cos(x.numpy()), lambda x: -np.sin(x.numpy())
    )


def sine_by_products():
    return tf.custom_derivatives(
        lambda x: np.sin(x.numpy()),
        vjp=[
            lambda dy, x: dy.numpy() * np.cos(x.numpy()),
            lambda dy, way, x: -dy.numpy() * way.numpy() * np.sin(x.numpy()),
        ],
    )


def sine_by_rules_in_numpy(in_numpy: bool) -> Callable[..., Any]:
    """A custom gradient whose rule, and the rule of that, are NumPy code; and its value, too."""

    @tf.custom_gradient
    def slope(dy, x):
        def rule(u):
            return u.numpy() * np.cos(x.numpy()), -u.numpy() * dy.numpy() * np.sin(np.asarray(x))

        return tf.constant(np.asarray(dy) * np.cos(x.numpy())), rule

    @tf.custom_gradient
    def sine(x):
        y = tf.constant(np.sin(x.numpy())) if in_numpy else tf.sin(x)
        return y, lambda dy: slope(dy, x)

    return sine


def sine_by_a_rule_that_branches():
    """A rule of operations, chosen by values: differentiable for what was chosen."""

    @tf.custom_gradient
    def sine(x):
        def rule(dy):
            if float(tf.reduce_sum(x)) > 0.0:
                return dy * tf.cos(x)
            return dy * tf.sin(x + np.pi / 2)

        return tf.sin(x), rule

    return sine


def solve_of_tutorial():
    def solve_again(b: Any) -> Any:
        return solve(b)

    def transposed(b: Any) -> Any:
        return solve_transposed(b)

    @tf.custom_derivatives(
        vjp=lambda dy, b: transposed(dy),
        jvp=lambda way, b: solve_again(way),
        beyond="differentiate",
    )
    def solve(b: Any) -> Any:
        return tf.constant(np.linalg.solve(MATRIX, b.numpy()))

    @tf.custom_derivatives(
        vjp=lambda dy, b: solve_again(dy),
        jvp=lambda way, b: transposed(way),
        beyond="differentiate",
    )
    def solve_transposed(b: Any) -> Any:
        return tf.constant(np.linalg.solve(MATRIX.T, b.numpy()))

    return lambda b: solve(b) ** 3


KINDS: dict[str, tuple[Callable[[], Callable[..., Any]], Exact]] = {
    "numpy_function": (sine_by_numpy_function, SINE),
    "py_function": (sine_by_py_function, SINE),
    "primitive": (sine_by_primitives, SINE),
    "derivatives in NumPy": (sine_by_partial_derivatives, SINE),
    "products in NumPy": (sine_by_products, SINE),
    "rule in NumPy": (lambda: sine_by_rules_in_numpy(False), SINE),
    "value and rule in NumPy": (lambda: sine_by_rules_in_numpy(True), SINE),
    "rule that branches": (sine_by_a_rule_that_branches, SINE),
    "solve of the tutorial": (solve_of_tutorial, SOLVE),
}


# A tape around an accumulator sees the operations of the tangents, here those of the rule of the
# rule: it has no derivative, and there is a warning.
NOT_SEEN = {"numpy_function", "rule in NumPy", "value and rule in NumPy"}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_under_each_transform(kind, transform):
    make, exact = KINDS[kind]
    run, expected = TRANSFORMS[transform]
    if transform == "grad of jvp" and kind in NOT_SEEN:
        with pytest.warns(tf.errors.CustomGradientWarning, match="derivatives do not see them"):
            run(make())(tf.constant(POINT))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.CustomGradientWarning)
        compute = run(make())
        for x in (POINT, 0.3 * POINT):  # a program's first call, and a later one
            result = compute(tf.constant(x))
            assert_allclose(result, expected(exact, x), rtol=1e-9, atol=1e-12)


# Where nobody declared a derivative ------------------------------------------------------------

WITHOUT = {"value", "vmap", "function"}
FIRST = {
    *("grad", "jacobian", "forward jacobian", "vmap of grad", "grad of vmap", "jvp"),
    *("grad of function", "function of grad", "jacobian of function", "function of jacobian"),
    *("jvp of function", "function of jvp", "function of vmap of grad"),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_an_operation_without_a_gradient_is_named(transform):
    sine = tf.primitive("TableBareSine", np.sin, replace=True)
    run, expected = TRANSFORMS[transform]
    if transform in WITHOUT:
        assert_allclose(run(sine)(tf.constant(POINT)), expected(SINE, POINT))
        return
    words = "No gradient defined for operation 'TableBareSine'.*RegisterGradient"
    with pytest.raises(LookupError, match=words):
        run(sine)(tf.constant(POINT))
    assert_clean_state()


PARTIAL = {
    "derivatives": lambda: tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), lambda x: np.cos(x.numpy())
    ),
    "vjp": lambda: tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), vjp=lambda dy, x: dy.numpy() * np.cos(x.numpy())
    ),
    "jvp": lambda: tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), jvp=lambda way, x: way.numpy() * np.cos(x.numpy())
    ),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", PARTIAL)
def test_the_first_derivative_that_is_not_declared_is_named(kind, transform):
    run, expected = TRANSFORMS[transform]
    compute = run(PARTIAL[kind]())
    if transform in WITHOUT | FIRST:
        assert_allclose(compute(tf.constant(POINT)), expected(SINE, POINT), rtol=1e-9)
        return
    words = r"`<lambda>`: the derivative of order 2 was asked for.*Declare the next one"
    with pytest.raises(tf.errors.DerivativeOrderError, match=words):
        compute(tf.constant(POINT))
    assert_clean_state()


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_numpy_function_without_a_rule_warns(transform):
    run, expected = TRANSFORMS[transform]
    compute = run(lambda x: tf.numpy_function(np.sin, [x], tf.float64))
    if transform in WITHOUT:
        assert_allclose(compute(tf.constant(POINT)), expected(SINE, POINT))
        return
    with pytest.warns(tf.errors.CustomGradientWarning, match="numpy_function.*custom_gradient"):
        result = compute(tf.constant(POINT))
    assert not np.any(result)  # as in the original
    assert_clean_state()
