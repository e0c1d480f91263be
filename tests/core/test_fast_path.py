"""The Python calls that operations, gradients and nested tapes cost, and what is not marked."""

import pickle
import sys
from collections import Counter

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.record import Expired
from tinygrad_cg._ops.reductions import reduce_sum
from tinygrad_cg_kernels.runtime import tiers


def calls(function, *arguments):
    """The names of the Python functions that a call enters, itself included."""
    entered = []

    def note(frame, event, argument):
        if event == "call":
            entered.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return entered


def compile_all(function, *arguments):
    """Call a function until its small kernels are optimized, which a call more might ask for."""
    for _ in range(2 * tiers.TIER_UP_CALLS):
        function(*arguments)
    tiers.wait()


OPERATIONS = {
    "x * y": lambda x, y: x * y,
    "x * 2": lambda x, y: x * 2.0,
    "2 - x": lambda x, y: 2.0 - x,
    "exp": lambda x, y: tf.exp(x),
    "tanh": lambda x, y: tf.tanh(x),
    "divide": lambda x, y: tf.divide(x, y),
    "sum": lambda x, y: reduce_sum(x),
}


@pytest.mark.parametrize("name", list(OPERATIONS))
class TestOneOperation:
    def count(self, name, x, y):
        operation = OPERATIONS[name]
        compile_all(operation, x, y)
        return len(calls(operation, x, y)) - 1

    def test_without_tapes(self, name):
        x, y = tf.constant([0.5, 1.5]), tf.constant([2.0, 3.0])
        assert self.count(name, x, y) == 1

    def test_under_one_tape(self, name):
        x, y = tf.constant([0.5, 1.5]), tf.constant([2.0, 3.0])
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            assert self.count(name, x, y) <= 3

    @pytest.mark.parametrize("order", ["entered, watched", "watched, entered"])
    def test_under_three_tapes_that_record_alike(self, name, order):
        x, y = tf.constant([0.5, 1.5]), tf.constant([2.0, 3.0])
        tapes = [tf.GradientTape() for _ in range(3)]
        with tapes[0], tapes[1], tapes[2]:
            for tape in tapes if order == "entered, watched" else reversed(tapes):
                tape.watch([x, y])
            assert self.count(name, x, y) <= 3

    def test_when_the_inner_tape_is_done(self, name):
        x, y = tf.constant([0.5, 1.5]), tf.constant([2.0, 3.0])
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch([x, y])
                x, y = x * 1.0, y * 1.0
            assert self.count(name, x, y) <= 3

    def test_operands_that_the_outer_tape_alone_watches(self, name):
        x, y = tf.constant([0.5, 1.5]), tf.constant([2.0, 3.0])
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch(x)
                assert self.count(name, x, y) <= 3
                assert self.count(name, y, x) <= 3


def test_unpickled_arrays_and_tensors():
    """Their dtype is not NumPy's own object: each operation took ten times as long."""
    array = pickle.loads(pickle.dumps(np.array([0.5, 1.5], np.float32)))
    assert array.dtype is not np.dtype(np.float32)
    x = tf.constant(array)
    for operand in (x, pickle.loads(pickle.dumps(x)), x + array):
        compile_all(OPERATIONS["x * y"], operand, operand)
        assert len(calls(OPERATIONS["x * y"], operand, operand)) == 2
    variable = pickle.loads(pickle.dumps(tf.Variable(array)))
    assert variable.numpy().dtype is np.dtype(np.float32)
    variable.assign(array)
    assert variable.numpy().dtype is np.dtype(np.float32)


def test_records_of_nested_tapes_are_right():
    x, w = tf.constant(0.5, tf.float64), tf.constant(3.0, tf.float64)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, w])
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * w * x * w  # each tape records other operands
        first = inner.gradient(y, x)
        assert inner.gradient(y, w) is None
    assert first.numpy() == pytest.approx(2 * 0.5 * 9)
    assert outer.gradient(first, x).numpy() == pytest.approx(2 * 9)
    assert outer.gradient(first, w).numpy() == pytest.approx(4 * 0.5 * 3)
    assert outer.gradient(y, w).numpy() == pytest.approx(2 * 0.25 * 3)


def test_a_second_derivative_takes_few_calls_for_each_operation():
    x = tf.constant([1.1])

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x
                for _ in range(20):
                    y = y * x
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    compile_all(second)
    entered = calls(second)
    assert len(entered) < 1000  # of 20 products, 59 operations of their gradient, 195 of its own
    assert Counter(entered)["record"] == 0


class TestMarks:
    """What nobody records is marked for a tape that may still ask, and for no other."""

    def gradient(self, **options):
        x = tf.constant([0.5, 1.5])
        with tf.GradientTape(**options) as tape:
            tape.watch(x)
            y = tf.tanh(x) * x
        return tape.gradient(y, x), tape

    def test_nobody_may_ask(self):
        gradient, _ = self.gradient()
        assert gradient._rec is None

    def test_a_persistent_tape_may(self):
        gradient, tape = self.gradient(persistent=True)
        assert type(gradient._rec) is Expired
        with pytest.warns(tf.errors.TapeWarning, match="after the tape closed"):
            assert tape.gradient(gradient, tf.constant(1.0)) is None

    def test_an_outer_tape_may(self):
        x = tf.constant([0.5, 1.5])
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.tanh(x) * x
        first = inner.gradient(y, x)
        with pytest.warns(tf.errors.TapeWarning, match="after the tape closed"):
            assert outer.gradient(first, x) is None
