"""Outside code of each kind under each transform, against derivatives in closed form."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state
from tests.support.outside_code import CUBIC
from tests.support.outside_code import KINDS as OF_CUBIC
from tests.support.transforms import POINT, SINE, TRANSFORMS, Exact, diagonal

MATRIX = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, -0.5, 1.0]])
INVERSE = np.linalg.inv(MATRIX)


SOLVE = Exact(
    lambda x: (INVERSE @ x) ** 3,
    lambda x: 3 * (INVERSE @ x)[:, None] ** 2 * INVERSE,
    lambda x: 6 * np.einsum("i,ij,ik->ijk", INVERSE @ x, INVERSE, INVERSE),
)


def sine_by_partial_derivatives():
    return tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), lambda x: np.cos(x.numpy()), lambda x: -np.sin(x.numpy())
    )


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


def sine_by_numpy_function():
    sine, cosine, minus_sine = (
        functools.partial(lambda f, x: tf.numpy_function(f, [x], tf.float64), f)
        for f in (np.sin, np.cos, lambda x: -np.sin(x))
    )
    return tf.custom_derivatives(sine, cosine, minus_sine)


FIRST_ROW = np.eye(3)[0]
SQUARES = Exact(
    lambda x: 2 * x**2 + x[0] ** 2 * x,
    lambda x: np.diag(4 * x + x[0] ** 2) + 2 * x[0] * np.outer(x, FIRST_ROW),
    lambda x: (
        diagonal(np.full(3, 4.0))
        + 2 * x[0] * np.einsum("ij,k->ijk", np.eye(3), FIRST_ROW)
        + 2 * x[0] * np.einsum("ik,j->ijk", np.eye(3), FIRST_ROW)
        + 2 * np.einsum("i,j,k->ijk", x, FIRST_ROW, FIRST_ROW)
    ),
)


def squares_by_an_elementwise_kernel():
    """A kernel that takes a batch at once."""
    square = tf.primitive("OutsideSquare", lambda x, y: x * x * y, elementwise=True, replace=True)

    @tf.RegisterGradient("OutsideSquare", replace=True)
    def rule(op, dy):
        x, y = op.inputs
        return 2.0 * x * y * dy, x * x * dy

    return lambda x: square(x, 2.0) + square(x[0], x)


KINDS: dict[str, tuple[Callable[[], Callable[..., Any]], Exact]] = {
    **{name: (make, CUBIC) for name, make in OF_CUBIC.items()},
    "derivatives in NumPy": (sine_by_partial_derivatives, SINE),
    "derivatives by numpy_function": (sine_by_numpy_function, SINE),
    "rule that branches": (sine_by_a_rule_that_branches, SINE),
    "solve of the tutorial": (solve_of_tutorial, SOLVE),
    "elementwise kernel": (squares_by_an_elementwise_kernel, SQUARES),
}


# A tape around an accumulator sees the operations of the tangents, here those of the rule of the
# rule: it has no derivative, and there is a warning.
NOT_SEEN = {"numpy_function", "rules in NumPy", "value and rules in NumPy"}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_under_each_transform(kind, transform):
    make, exact = KINDS[kind]
    run, expected = TRANSFORMS[transform]
    if transform == "grad of jvp" and kind == "primitive":  # the last of its operations has none
        with pytest.raises(LookupError, match=r"No gradient defined .* 'OutsideCubicJvp'"):
            run(make())(tf.constant(POINT))
        return
    if transform == "grad of jvp" and kind in NOT_SEEN:
        with pytest.warns(
            tf.errors.CustomGradientWarning, match="Derivatives do not see these values"
        ):
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
    *("linearize", "vmap of jvp", "jvp of vmap", "function of vmap of jvp"),
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
    words = (
        r"`<lambda>`: the derivative of order 2 was requested.*Declare the derivative of order 2"
    )
    with pytest.raises(tf.errors.DerivativeOrderError, match=words):
        compute(tf.constant(POINT))
    assert_clean_state()


CUBE = Exact(lambda x: x**3, lambda x: np.diag(3 * x**2), lambda x: diagonal(6 * x))


@pytest.mark.parametrize("transform", sorted(WITHOUT | FIRST))
def test_a_registered_gradient_in_numpy(transform):
    """A primitive without a shape rule, whose gradient takes values."""
    cube = tf.primitive("OutsideCube", lambda x: x**3, replace=True)

    @tf.RegisterGradient("OutsideCube", replace=True)
    def rule(op, dy):
        return tf.constant(3 * op.inputs[0].numpy() ** 2 * dy.numpy())

    run, expected = TRANSFORMS[transform]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.CustomGradientWarning)
        result = run(cube)(tf.constant(POINT))
    assert_allclose(result, expected(CUBE, POINT), rtol=1e-9, atol=1e-9)


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
