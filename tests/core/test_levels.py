"""The stack of levels and the record behind it (docs/behaviour.md 6.1, 6.2 and 6.6).

Tapes in tapes, producers per tape, long chains, memory, and a state that survives errors.
"""

import contextlib
import math

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state


def derivatives(function, point, order, dtype="float64"):
    """The function's value and its first derivatives, by a tape around each tape."""
    x = tf.constant(point, dtype=dtype)
    with contextlib.ExitStack() as stack:
        tapes = [stack.enter_context(tf.GradientTape()) for _ in range(order)]
        for tape in tapes:
            tape.watch(x)
        results = [function(x)]
        for tape in reversed(tapes):
            results.append(tape.gradient(results[-1], x))
    return [result.numpy().item() for result in results]


class TestTapeInTape:
    """Point 1: the sweep's rules call ops, which come through the same door."""

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    @pytest.mark.parametrize(
        ("function", "point", "expected"),
        [
            (lambda x: x * x * x * x, 2.0, [16.0, 32.0, 48.0, 48.0, 24.0]),
            (lambda x: x**4, 2.0, [16.0, 32.0, 48.0, 48.0, 24.0]),
            (lambda x: 1.0 / x, 2.0, [0.5, -0.25, 0.25, -0.375, 0.75]),
            (lambda x: tf.exp(2.0 * x), 0.5, [math.e * 2**n for n in range(5)]),
            (lambda x: tf.sin(x), 1.0, [math.sin(1.0 + n * math.pi / 2) for n in range(5)]),
            (lambda x: tf.math.log(x), 2.0, [math.log(2.0), 0.5, -0.25, 0.25, -0.375]),
        ],
        ids=["x*x*x*x", "x**4", "1/x", "exp", "sin", "log"],
    )
    def test_to_order_four(self, function, point, expected, dtype):
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        results = derivatives(function, point, 4, dtype)
        np.testing.assert_allclose(results, expected, rtol=tolerance)

    def test_second_order_of_two_inputs(self):
        x, y = tf.constant(2.0), tf.constant(3.0)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch([x, y])
                z = x * x * y
            gx, gy = inner.gradient(z, [x, y])
        rows = [outer.gradient(gx, [x, y]), outer.gradient(gy, [x, y])]
        numbers = [[None if entry is None else entry.numpy() for entry in row] for row in rows]
        assert numbers == [[6.0, 4.0], [4.0, None]]

    def test_the_inner_tape_watches_an_outer_intermediate(self):
        x = tf.constant(2.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            y = x * x
            with tf.GradientTape() as inner:
                inner.watch(y)
                z = y * y * x
            slope = inner.gradient(z, y)
        assert slope.numpy() == 16.0
        assert outer.gradient(slope, x).numpy() == 24.0

    def test_a_tape_opened_while_another_is_paused(self):
        """The paused tape sees a constant: 6, then 36."""
        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with outer.stop_recording():
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = x * x
                slope = inner.gradient(y, x)
            z = x * x * slope
        assert slope.numpy() == 6.0
        assert outer.gradient(z, x).numpy() == 36.0

    def test_pausing_one_of_two(self):
        """Measured on the original: 9, 27, 27, 9."""
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as a, tf.GradientTape(persistent=True) as b:
            a.watch(x)
            b.watch(x)
            with a.stop_recording():
                y = x * x
            first = y * x
            with b.stop_recording():
                y = x * x
            second = y * x
        results = [tape.gradient(y, x).numpy() for y in (first, second) for tape in (a, b)]
        assert results == [9.0, 27.0, 27.0, 9.0]

    def test_leaving_out_of_order(self):
        """Tapes are tokens, no stack of lists: the outer may end first."""
        x = tf.constant(3.0)
        a, b = tf.GradientTape(persistent=True), tf.GradientTape()
        a.__enter__()
        b.__enter__()
        a.watch(x)
        b.watch(x)
        y = x * x
        a.__exit__(None, None, None)
        z = y * x
        b.__exit__(None, None, None)
        assert a.gradient(y, x).numpy() == 6.0
        assert b.gradient(z, x).numpy() == 27.0
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert a.gradient(z, x) is None
        assert_clean_state()


class TestLate:
    """Point 1: 'target was computed after the tape closed' can be told."""

    def test_after_exit(self):
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
        expired = y * y
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert tape.gradient(expired, x) is None
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            gradient = tape.gradient(expired, x, unconnected_gradients="zero")
        assert gradient.numpy() == 0.0
        assert tape.gradient(y, x).numpy() == 6.0

    def test_from_the_source_itself(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert tape.gradient(x * x, x) is None

    def test_from_a_variable(self):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            _ = v * v
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert tape.gradient(v * v, v) is None

    def test_recorded_by_another_tape(self):
        """The first tape's lateness is told also where a second one records."""
        x, w = tf.constant(3.0), tf.constant(4.0)
        with tf.GradientTape() as first:
            first.watch(x)
            y = x * x
        with tf.GradientTape() as second:
            second.watch(w)
            z = y * w
        assert second.gradient(z, w).numpy() == 9.0
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert first.gradient(z, x) is None

    def test_recorded_by_an_outer_tape_that_is_still_open(self):
        """The commonest slip: the inner tape ended, the outer one goes on recording."""
        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = x * x
            z = y * x
        assert outer.gradient(z, x).numpy() == 27.0
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert inner.gradient(z, x) is None

    def test_watched_by_a_third_tape(self):
        """What is late for one tape and recorded by another can be watched like any other."""
        x, w = tf.constant(3.0), tf.constant(4.0)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = x * x
        with tf.GradientTape() as outer:
            outer.watch(w)
            z = y * w
            with tf.GradientTape() as third:
                third.watch(z)
                u = z * z
        assert third.gradient(u, z).numpy() == 72.0
        assert outer.gradient(u, w).numpy() == 648.0
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert inner.gradient(u, x) is None

    def test_what_has_no_connection_is_silent(self):
        x, other = tf.constant(3.0), tf.constant(4.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                paused = x * x
            stopped = tf.stop_gradient(y)
        assert tape.gradient(other, x) is None
        assert tape.gradient(other * other, x) is None
        assert tape.gradient(paused, x) is None
        assert tape.gradient(stopped, x) is None
        assert tape.gradient(y, other) is None

    def test_paused_around_another_tape(self):
        """A tape opened and closed while this one is paused leaves it paused."""
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            with tape.stop_recording():
                with tf.GradientTape() as other:
                    other.watch(x)
                    y = x * x
                assert other.gradient(y, x).numpy() == 6.0
                paused = x * x
        assert tape.gradient(paused, x) is None

    def test_after_a_gradient_that_ended_a_paused_tape(self):
        """The tape has ended: what comes later is late for an outer tape that has, too."""
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                assert tape.gradient(y, x).numpy() == 6.0
        expired = x * x
        with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
            assert outer.gradient(expired, x) is None


class TestProducerPerTape:
    """Point 2 and decision 20."""

    def test_argument_or_captured_tensor(self):
        """With one output: 3.0 for the captured tensor's tape, 100 for the argument's."""
        x, w = tf.constant(3.0), tf.constant(2.0)

        @tf.custom_gradient
        def scaled(x):
            return x * w, lambda dy: 100.0 * dy

        with tf.GradientTape() as captured, tf.GradientTape() as argument:
            captured.watch(w)
            argument.watch(x)
            with pytest.warns(tf.CustomGradientWarning, match="scaled"):
                y = scaled(x)
        assert y.numpy() == 6.0
        assert captured.gradient(y, w).numpy() == 3.0
        assert argument.gradient(y, x).numpy() == 100.0

    def test_both_watched(self):
        """1.8: the rule serves, and the captured tensor gets None."""
        x, w = tf.constant(3.0), tf.constant(2.0)

        @tf.custom_gradient
        def scaled(x):
            return x * w, lambda dy: 100.0 * dy

        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, w])
            y = scaled(x)
        assert tape.gradient(y, x).numpy() == 100.0
        assert tape.gradient(y, w) is None

    def test_inner_operations_stay_on_the_other_tape(self):
        """An intermediate of f is differentiated naturally, by every tape."""
        x = tf.constant(3.0)
        leaked = []

        @tf.custom_gradient
        def square(x):
            y = x * x
            leaked.append(y)
            return y, lambda dy: 100.0 * dy

        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = square(x)
            z = leaked[0] * 2.0
        assert tape.gradient(y, x).numpy() == 100.0
        assert tape.gradient(z, x).numpy() == 12.0
