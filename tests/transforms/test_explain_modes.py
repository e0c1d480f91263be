"""tape.explain gives each of its reasons at orders 1 and 2, eagerly, traced and in a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.orders import assert_clean_state

# Reason by reason: the text at order 1 and at order 2 -------------------------------------------


def never_watched_1(x, v):
    with tf.GradientTape() as tape:
        y = x**3
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def never_watched_2(x, v):
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
        g = tape.gradient(y, x)
    assert outer.gradient(g, x) is None
    return outer.explain(g, x)


def before_the_tape_1(x, v):
    y = x**3
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def before_the_tape_2(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x**3
    g = tape.gradient(y, x)
    with tf.GradientTape() as outer:
        outer.watch(x)
    assert outer.gradient(g, x) is None
    return outer.explain(g, x)


def integer_1(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(tf.cast(x**3, tf.int32), tf.float32)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def integer_2(x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
        h = tf.cast(tf.cast(g, tf.int32), tf.float32)
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


def detached_1(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.stop_gradient(x) ** 3
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def detached_2(x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
        h = tf.stop_gradient(g) * 2.0
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


def assigned_1(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x**3)
        y = v * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def assigned_2(x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
        v.assign(g)
        h = v * 2.0
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


def values_1(x, v):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(x.numpy()) ** 3
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def values_2(x, v):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
        h = tf.constant(float(g)) * 2.0
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


def array_1(x, v):
    kept = np.zeros(2, np.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        kept[0] = x
        y = tf.reduce_sum(tf.constant(kept))
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def array_2(x, v):
    kept = np.zeros(2, np.float32)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
        g = tape.gradient(y, x)
        kept[0] = g
        h = tf.reduce_sum(tf.constant(kept))
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


def rule_1(x, v):
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: None

    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = cube(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def rule_2(x, v):
    @tf.custom_gradient
    def slope(x):
        return 3.0 * x**2, lambda dy: None

    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * slope(x)

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        g = tape.gradient(y, x)
    assert outer.gradient(g, x) is None
    return outer.explain(g, x)


def captured_1(x, v):
    @tf.custom_gradient
    def product(w):
        return w * x, lambda dy: dy * x

    w = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([w, x])
        y = product(w)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def captured_2(x, v):
    @tf.custom_gradient
    def product(dy):
        return dy * x, lambda ddy: ddy * x

    with tf.GradientTape(persistent=True) as outer:
        w = tf.constant(2.0)
        outer.watch([w, x])
        with tf.GradientTape() as tape:
            z = tf.constant(1.0)
            tape.watch(z)
            y = z * w
        g = product(tape.gradient(y, z))
    assert outer.gradient(g, x) is None
    return outer.explain(g, x)


REASONS: dict[str, tuple[Callable[..., str], Callable[..., str], str]] = {
    "never watched": (never_watched_1, never_watched_2, "`x` was never watched"),
    "before the tape": (before_the_tape_1, before_the_tape_2, "before the tape records"),
    "integer": (integer_1, integer_2, "has the dtype int32, which has no gradient"),
    "detached": (detached_1, detached_2, "detaches its result"),
    "assigned": (assigned_1, assigned_2, "to the Variable `v`, which is not differentiated"),
    "values": (values_1, values_2, "takes the value"),
    "array": (array_1, array_2, "NumPy array"),
    "rule": (rule_1, rule_2, "returns None for its input `x`"),
    "captured": (captured_1, captured_2, "`product` captures `x`, as `x`"),
}


def eager(explain: Callable[..., str]) -> str:
    return explain(tf.constant(1.5), tf.Variable(0.0))


def traced(explain: Callable[..., str]) -> str:
    said: list[str] = []
    variable = tf.Variable(0.0)

    @unfused
    def program(x: Any) -> Any:
        said.append(explain(x, variable))
        return x

    program(tf.constant(1.5))
    return said[0]


def batched(explain: Callable[..., str]) -> str:
    said: list[str] = []
    variable = tf.Variable(0.0)

    def identity(x: Any) -> Any:
        said.append(explain(x, variable))
        return x

    tf.vmap(identity)(tf.constant([1.5, 2.5]))
    return said[0]


MODES = {"eager": eager, "traced": traced, "batched": batched}
ABSENT = {
    *((reason, mode) for reason in ("values", "array") for mode in ("traced", "batched")),
    ("assigned", "batched"),
}
"""There are no values to take there, and a Variable takes no example of a batch."""
CASES = [
    (reason, order, mode)
    for reason in REASONS
    for order in (1, 2)
    for mode in MODES
    if (reason, mode) not in ABSENT
]


@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
@pytest.mark.parametrize(("reason", "order", "mode"), CASES)
def test_the_reason(reason, order, mode):
    explain = REASONS[reason][order - 1]
    text = MODES[mode](explain)
    assert REASONS[reason][2] in text, text
    assert text.startswith("The gradient of ")
    if "(File" in text:
        first = explain.__code__.co_firstlineno
        line = int(text.rpartition(", line ")[2].split(")")[0])
        assert first < line < first + 22
    assert_clean_state()
