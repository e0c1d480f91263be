"""Rules that are told what needs gradients, rules for batches, and scratch Variables: each mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.transforms import POINT, SINE, TRANSFORMS


def told_what_needs_gradients():
    """A product with 1, which no tape watches: its rule is told so in each mode."""

    @tf.custom_gradient
    def product(x, y):
        def rule(dy, needs_input_grad):
            assert needs_input_grad == (True, False)
            return dy * tf.cos(x) * y, None

        return tf.sin(x) * y, rule

    unit = tf.constant(1.0, tf.float64)
    return lambda x: product(x, unit)


def the_second_needs_a_gradient():
    @tf.custom_gradient
    def product(y, x):
        def rule(dy, *, needs_input_grad):
            assert needs_input_grad == (False, True)
            return None, dy * tf.cos(x) * y

        return tf.sin(x) * y, rule

    return lambda x: product(tf.ones(x.shape, tf.float64), x)


def registered_and_told():
    sine = tf.primitive("ModesSine", lambda x, y: np.sin(x) * y, replace=True)
    cosine = tf.primitive("ModesCosine", np.cos, replace=True)

    @tf.RegisterGradient("ModesSine", replace=True)
    def first(op, dy):
        assert op.needs_input_grad == (True, False)
        return dy * cosine(op.inputs[0]) * op.inputs[1], None

    @tf.RegisterGradient("ModesCosine", replace=True)
    def second(op, dy):
        assert op.needs_input_grad == (True,)
        return -dy * tf.sin(op.inputs[0])

    return lambda x: sine(x, np.ones(3))


def for_batches():
    f = tf.custom_vmap(tf.sin)
    f.def_vmap(lambda size, batched, x: (tf.cos(x - np.pi / 2), True))
    return f


def for_batches_in_numpy():
    sine = tf.custom_derivatives(
        lambda x: np.sin(x.numpy()), lambda x: np.cos(x.numpy()), lambda x: -np.sin(x.numpy())
    )
    f = tf.custom_vmap(lambda x: sine(x))
    f.def_vmap(lambda size, batched, x: (sine(x), True))
    return f


def scratch_variable_in_the_rule():
    @tf.custom_gradient
    def sine(x):
        def rule(dy):
            total = tf.Variable(0.5, dtype=tf.float64)
            return dy * tf.cos(x) * 2.0 * total

        return tf.sin(x), rule

    return sine


def scratch_variable_in_the_function():
    @tf.custom_gradient
    def sine(x):
        scale = tf.Variable(2.0, dtype=tf.float64)
        return tf.sin(x) * scale / 2.0, lambda dy: dy * tf.cos(x)

    return sine


KINDS: dict[str, Callable[[], Callable[..., Any]]] = {
    "needs_input_grad, the first": told_what_needs_gradients,
    "needs_input_grad, the second": the_second_needs_a_gradient,
    "needs_input_grad of an operation": registered_and_told,
    "custom_vmap": for_batches,
    "custom_vmap of NumPy code": for_batches_in_numpy,
    "scratch Variable in the rule": scratch_variable_in_the_rule,
    "scratch Variable in the function": scratch_variable_in_the_function,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_under_each_transform(kind, transform):
    run, expected = TRANSFORMS[transform]
    compute = run(KINDS[kind]())
    for x in (POINT, 0.3 * POINT):  # a program's first call, and a later one
        result = compute(tf.constant(x))
        assert_allclose(result, expected(SINE, x), rtol=1e-9, atol=1e-12)
