"""State is per thread and survives errors (DESIGN, 'One door', point 6)."""

import contextlib
import threading

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state


class TestStateSurvives:
    """Point 6: state is per thread and survives exceptions."""

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, RecursionError])
    def test_in_the_block(self, error):
        x = tf.constant(3.0)
        tape, outputs = tf.GradientTape(), []

        def block():
            with tape:
                tape.watch(x)
                outputs.append(x * x)
                raise error

        with pytest.raises(error):
            block()
        assert tape.gradient(outputs[0], x).numpy() == 6.0
        assert_clean_state()

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    @pytest.mark.parametrize("with_tape", [False, True])
    def test_in_f(self, error, with_tape):
        v = tf.Variable(2.0)

        @tf.custom_gradient
        def failing(x):
            _ = x * v
            raise error("in f")

        x = tf.constant(3.0)
        with tf.GradientTape() if with_tape else contextlib.nullcontext() as tape:
            with pytest.raises(error, match="in f"):
                failing(x)
            if tape is not None:
                tape.watch(x)
            y = x * x
        if tape is not None:
            assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()

    def test_in_f_within_f(self):
        """The listeners of the outer custom gradient are in place after the inner failed."""
        v = tf.Variable(2.0)

        @tf.custom_gradient
        def inner(x):
            raise ValueError("inner")

        @tf.custom_gradient
        def outer(x):
            with contextlib.suppress(ValueError):
                inner(x)

            def rule(dy, variables=None):
                seen.append(variables)
                return 10.0 * dy, [20.0 * dy]

            return x * v, rule

        seen = []
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = outer(x)
        dx, dv = tape.gradient(y, [x, v])
        assert (dx.numpy(), dv.numpy()) == (10.0, 20.0)
        assert seen[0][0] is v
        assert_clean_state()

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
    def test_in_the_rule(self, error):
        """Decision 13: a tape whose rule raised reports the same error again."""

        @tf.custom_gradient
        def failing(x):
            def rule(dy):
                raise error("in the rule")

            return x * x, rule

        x = tf.constant(3.0)
        for persistent in (False, True):
            with tf.GradientTape(persistent=persistent) as tape:
                tape.watch(x)
                y = failing(x)
                z = x * x
            for _ in range(2):
                with pytest.raises(error, match="in the rule"):
                    tape.gradient(y, x)
            if persistent:
                assert tape.gradient(z, x).numpy() == 6.0
        assert_clean_state()

    def test_in_a_rule_under_an_outer_tape(self):
        @tf.custom_gradient
        def failing(x):
            def rule(dy):
                raise ValueError("in the rule")

            return x * x, rule

        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = failing(x)
                with pytest.raises(ValueError, match="in the rule"):
                    inner.gradient(y, x)
            z = x * x * x
        assert outer.gradient(z, x).numpy() == 27.0
        assert_clean_state()

    def test_in_an_operation(self):
        x = tf.constant([3.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(ValueError, match="reshape"):
                tf.reshape(x, (3,))
            y = x * x
        assert tape.gradient(y, x).numpy().tolist() == [6.0, 8.0]
        assert_clean_state()

    def test_endless_recursion(self):
        """BAD_INPUT: custom fn recursing without end: RecursionError, state restored."""

        @tf.custom_gradient
        def endless(x):
            return endless(x * 1.0), lambda dy: dy

        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(RecursionError):
                endless(x)
            y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()

    def test_in_stop_recording(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            with pytest.raises(ZeroDivisionError), tape.stop_recording():
                raise ZeroDivisionError
            y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()

    def test_stop_recording_within_itself(self):
        """As the original: the inner one is refused, the outer one ends as it should."""
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tape.stop_recording():
                words = "Tape is not recording"
                with pytest.raises(ValueError, match=words), tape.stop_recording():
                    pass
                paused = x * x
            y = x * x + paused
        assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()

    def test_gradient_that_ends_a_paused_tape(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()

    def test_gradient_within_stop_recording_of_an_inner_tape(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(x)
                y = x * x * x
                with inner.stop_recording():
                    first = inner.gradient(y, x)
        assert first.numpy() == 27.0
        assert outer.gradient(first, x).numpy() == 18.0

    def test_in_a_graph(self):
        with pytest.raises(ValueError, match="within"), tf.Graph().as_default():
            raise ValueError("within")
        with pytest.raises(RuntimeError, match="GradientTape"):
            tf.gradients(tf.constant(1.0), tf.constant(1.0))
        assert_clean_state()

    def test_another_threads_failure(self):
        x = tf.constant(3.0)

        def fail():
            with contextlib.suppress(ValueError), tf.GradientTape():
                raise ValueError
            done.append(True)

        done = []
        with tf.GradientTape() as tape:
            tape.watch(x)
            thread = threading.Thread(target=fail)
            thread.start()
            thread.join()
            y = x * x
        assert done
        assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()
