"""Tapes, accumulators and custom gradients in branches and loops that tensors decide.

Each program of the table gives what it gives eagerly, and so do its derivatives.
"""

from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support import flow_programs

WEIGHT = tf.Variable(1.5)
GLOBAL = None


def ternary(x):
    y = x
    if x > 0.0:
        with tf.GradientTape() as t:
            t.watch(y)
            z = y * y if y > 0.0 else y
        g = t.gradient(z, y)
        if g is not None:
            y = y - 0.1 * g
    return y


def branch(x):
    y = x
    if x > 0.0:
        with tf.GradientTape() as t:
            t.watch(y)
            z = y * y if y > 1.0 else y * 3.0
        g = t.gradient(z, y)
        if g is not None:
            y = y - 0.1 * g
    return y


def loop_in_branch(x):
    y = x
    if x > 0.0:
        with tf.GradientTape() as t:
            t.watch(y)
            z = y
            while z < 10.0:
                z = z * z + 1.0
        g = t.gradient(z, y)
        if g is not None:
            y = y - 0.1 * g
    return y


def range_in_loop(x):
    y = x
    for i in tf.range(tf.cast(x, tf.int32) + 2):
        with tf.GradientTape() as t:
            t.watch(y)
            z = y
            for _j in tf.range(i + 1):
                z = z * y
        g = t.gradient(z, y)
        if g is not None:
            y = y - 0.01 * g
    return y


def break_on_none(x):
    y = x
    while y < 5.0:
        with tf.GradientTape() as t:
            t.watch(y)
            z = y * y if y > 0.0 else -y
        g = t.gradient(z, y)
        if g is None:
            break
        y = y + 0.3 * g * g + 0.2
    return y


def comprehension(x):
    y = x
    if x > -100.0:
        w = x * 2.0
        with tf.GradientTape() as t:
            t.watch([y, w])
            z = y * w if y > 0.0 else y + w
        gs = t.gradient(z, [y, w])
        gs = [g for g in gs if g is not None]
        for g in gs:
            y = y - 0.1 * g
    return y


def item(x):
    d = {"y": x, "n": x * 0.0}
    if x > -100.0:
        with tf.GradientTape() as t:
            t.watch(x)
            z = x * x if x > 0.0 else -x * 3.0
        g = t.gradient(z, x)
        if g is not None:
            d["y"] = d["y"] - 0.1 * g
            d["n"] = d["n"] + 1.0
    return d["y"] + d["n"]


def attribute(x):
    o = SimpleNamespace()
    o.y = x
    if x > -100.0:
        with tf.GradientTape() as t:
            t.watch(x)
            z = x * x if x > 0.0 else -x * 3.0
        g = t.gradient(z, x)
        if g is not None:
            o.y = o.y - 0.1 * g
    return o.y


def train(x):
    WEIGHT.assign(1.5 + 0.0 * x)
    for _i in tf.range(5):
        with tf.GradientTape() as t:
            loss = (WEIGHT * x - 1.0) ** 2 if WEIGHT > 0.0 else -WEIGHT * x
        WEIGHT.assign_sub(0.1 * t.gradient(loss, WEIGHT))
    return WEIGHT + 0.0


def train_while(x):
    WEIGHT.assign(1.5 + 0.0 * x)
    n = 0
    while WEIGHT * x > 0.1 and n < 4:
        with tf.GradientTape() as t:
            loss = WEIGHT * 0.0
            for _i in tf.range(3):
                loss = loss + (WEIGHT * x - 1.0) ** 2 if WEIGHT > 0.0 else loss - WEIGHT * x
        WEIGHT.assign_sub(0.1 * t.gradient(loss, WEIGHT))
        n += 1
    return WEIGHT + 0.0


def nested(x):
    y = x
    if x > -10.0:
        with tf.GradientTape() as t2:
            t2.watch(y)
            with tf.GradientTape() as t1:
                t1.watch(y)
                z = y * y * y if y > 0.0 else y * y
            g = t1.gradient(z, y)
        gg = t2.gradient(g, y)
        y = y + 0.1 * gg
    return y


def nested_loop(x):
    y = x
    for _i in tf.range(3):
        with tf.GradientTape() as t2:
            t2.watch(y)
            with tf.GradientTape() as t1:
                t1.watch(y)
                z, n = y, 0
                while z * z < 5.0 and n < 4:
                    z, n = z * y * 1.5 + 1.0, n + 1
            g = t1.gradient(z, y)
        gg = t2.gradient(g, y)
        if gg is not None:
            y = y + 0.01 * gg
    return y


def jvp(x):
    y = x
    if x > -10.0:
        with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as acc:
            z = y * y if y > 0.0 else y * 3.0
        g = acc.jvp(z)
        if g is not None:
            y = y - 0.1 * g
    return y


def jvp_loop(x):
    y = x
    for _i in tf.range(3):
        with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as acc:
            z = y
            n = 0
            while z * z < 5.0 and n < 4:
                z, n = z * y * 1.5 + 1.0, n + 1
        g = acc.jvp(z)
        if g is not None:
            y = y - 0.1 * g
    return y


def fwd_over_rev(x):
    y = x
    if x > -10.0:
        with tf.autodiff.ForwardAccumulator(y, tf.constant(1.0)) as acc:
            with tf.GradientTape() as t1:
                t1.watch(y)
                z = y * y * y if y > 0.0 else y * y
            g = t1.gradient(z, y)
        gg = acc.jvp(g)
        if gg is not None:
            y = y + 0.1 * gg
    return y


def persistent(x):
    y = x
    if x > -10.0:
        with tf.GradientTape(persistent=True) as t:
            t.watch(y)
            z = y * y if y > 0.0 else -y
            w = tf.sin(z) if z > 1.0 else z * z
        for s in (z, w):
            g = t.gradient(s, y)
            if g is not None:
                y = y - 0.1 * g
    return y


def asked_once(x):
    with tf.GradientTape() as t:
        t.watch(x)
        z = x * x
    y = x
    if x > 0.0:
        y = y - 0.1 * t.gradient(z, x)
    return y


def asked_in_both(x):
    with tf.GradientTape() as t:
        t.watch(x)
        z = x * x if x > 1.0 else -x
    return x - 0.1 * t.gradient(z, x) if x > 0.0 else x + t.gradient(z, x)


@tf.custom_gradient
def branching_rule(x):
    return x * x, lambda dy: tf.cond(x > 0.0, lambda: dy * 2.0 * x, lambda: dy * 7.0)


def branching_rule_in_a_loop(x):
    y = x
    for _i in tf.range(tf.cast(x, tf.int32) + 2):
        y = branching_rule(y) * 0.5
    return y


@tf.custom_gradient
def branching_function(x):
    return tf.cond(x > 0.5, lambda: x * x, lambda: x), lambda dy: dy * 2.0 * x


def branching_function_in_a_loop(x):
    y = x
    for _i in tf.range(tf.cast(x, tf.int32) + 2):
        y = branching_function(y) * 0.5
    return y


def both_in_a_while(x):
    y = x
    n = 0
    while y < 4.0 and n < 4:
        y, n = branching_function(y) * 0.5 + branching_rule(y) + 1.0, n + 1
    return y


def attribute_in_finally(x):
    o = SimpleNamespace()
    o.y = x
    y = x
    try:
        if x > 0.0:
            o.y = x * 2.0
            n = 0
            while o.y < 5.0 and n < 4:
                o.y = o.y * x + 1.0
                n += 1
        else:
            y = o.y * 3.0
    finally:
        y = y * 2.0 + o.y
    return y


def attribute_read_in_a_while(x):
    o = SimpleNamespace()
    o.y = x
    y = x
    if x > 0.0:
        try:
            o.y = x * 2.0
            n = 0
            while y < o.y and n < 4:
                n += 1
                y = y * 1.5 + o.y * 0.1
        finally:
            y = y * 2.0 + o.y
    return y


def attribute_changed_after_a_loop(x):
    o, y, n = SimpleNamespace(k=x * 2.0), x, 0
    while y < 20.0 and n < 5:
        y, n = y * o.k, n + 1
    o.k = x * 100.0
    return y


def closure_changed_after_a_loop(x):
    k, y = x * 2.0, x

    def scaled(y):
        return y * k

    for _ in tf.range(tf.cast(x, tf.int32) + 2):
        y = scaled(y)
    z = tf.while_loop(lambda z: z < 20.0, lambda z: z + k * k + 2.0, (x,))[0]
    k = x * 100.0
    return y + z


def global_changed_after_a_loop(x):
    global GLOBAL
    GLOBAL, y = x * 2.0, x
    for _ in tf.range(tf.cast(x, tf.int32) + 2):
        y = y * GLOBAL
    GLOBAL = None
    return y


def list_changed_after_a_scan(x):
    k = [x * 0.9]
    y = tf.scan(lambda y, e: y * k[0] + e, tf.ones(3), x)[-1]
    k[0] = x * 100.0
    return y


def nested_training_loops(x):
    WEIGHT.assign(0.0 * x + 1.5)
    for i in tf.range(tf.cast(x, tf.int32) + 2):
        if x > -10.0:
            for _ in tf.range(i + 1):
                with tf.GradientTape() as t:
                    loss = (WEIGHT * x - 1.0) ** 2 if WEIGHT > 0.0 else -WEIGHT * x
                WEIGHT.assign_sub(0.1 * t.gradient(loss, WEIGHT))
    return WEIGHT + 0.0


def comprehension_variables_in_cases(x):
    y = x
    if x > 0.0:
        for e in [e for e in [x, None] if e is not None]:
            y = y + e * e
    for e in [e for e in [y] if e is not None]:
        y = y * e
    return y


GROUPS = {
    "branches": (ternary, branch, comprehension, item, attribute, nested, jvp, fwd_over_rev),
    "asked": (persistent, asked_once, asked_in_both, comprehension_variables_in_cases),
    "loops": (loop_in_branch, range_in_loop, break_on_none, jvp_loop, nested_loop),
    "rules": (branching_rule_in_a_loop, branching_function_in_a_loop, both_in_a_while),
    "training": (train, train_while, nested_training_loops),
    "attributes": (attribute_in_finally, attribute_read_in_a_while, attribute_changed_after_a_loop),
    "changed": (
        closure_changed_after_a_loop,
        global_changed_after_a_loop,
        list_changed_after_a_scan,
    ),
}


@pytest.mark.parametrize("group", GROUPS)
def test_programs_give_what_they_give_eagerly(group):
    weights = tf.constant([1.0 + 0.3 * k for k in range(len(GROUPS[group]))])

    def together(x):
        return tf.stack([program(x) for program in GROUPS[group]])

    def jet(f, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        gradient = tape.gradient(y, x, weights, "zero")
        return [*y.numpy(), float(gradient)]

    compiled = tf.function(together)
    for value in (1.3, 0.4, -1.2):
        x = tf.constant(value)
        np.testing.assert_allclose(jet(compiled, x), jet(together, x), rtol=2e-4, atol=1e-5)


def test_random_programs():
    for seed in (2, 5):
        wrong, text = flow_programs.compare(seed, 1, flow_programs.POINTS[:1])
        assert not wrong, text


@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
def test_a_tape_that_records_around_a_branch_is_not_asked_in_it():
    @tf.function
    def f(x):
        y = x
        with tf.GradientTape(persistent=True) as t:
            t.watch(x)
            if x > 0.0:
                w = x * x
                y = y - 0.1 * t.gradient(w, x)
        return y

    with pytest.raises(RuntimeError, match="but its tape records outside"):
        f(tf.constant(1.0))
