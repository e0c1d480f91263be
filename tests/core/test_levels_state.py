"""State is per thread and survives errors (docs/behaviour.md 6.6)."""

import contextlib
import os
import threading

import pytest

import tinygrad_cg as tf
from tests.support.orders import (
    assert_clean_state,
    assert_next_gradient_is_right,
    numbers,
    run_in_a_thread,
)
from tests.support.processes import run_in_child
from tinygrad_cg._core.levels import state

pytestmark = pytest.mark.quick


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
        """4.1: custom fn recursing without end: RecursionError, state restored."""

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
            return True

        with tf.GradientTape() as tape:
            tape.watch(x)
            assert run_in_a_thread(fail)
            y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        assert_clean_state()


def test_an_exception_in_two_tapes():
    """2.1, exception in `with`: both are popped, both gradients work."""
    x = tf.constant(3.0)
    outer, inner = tf.GradientTape(), tf.GradientTape()
    products = []

    def program():
        with outer, inner:
            outer.watch(x)
            inner.watch(x)
            products.append(x * x)
            raise OSError("inside")

    with pytest.raises(OSError, match="inside"):
        program()
    outside = x * x * x
    assert numbers([tape.gradient(products[0], x) for tape in (outer, inner)]) == [6.0, 6.0]
    assert outside.numpy() == 27.0
    assert_next_gradient_is_right()


def test_leaving_a_tape_on_another_thread():
    """2.1, threads: a tape is left where it was entered; elsewhere it is not recording."""
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    with tape:
        tape.watch(x)
        with pytest.raises(ValueError, match=r"^Tape is not recording\."):
            run_in_a_thread(lambda: tape.__exit__(None, None, None))
        y = x * x
    assert numbers(tape.gradient(y, x)) == 6.0
    assert_next_gradient_is_right()


def test_a_tape_that_is_forgotten_leaves_the_stack():
    tf.GradientTape(watch_accessed_variables=False).__enter__()
    assert state.frame is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("action", ["watch", "draw"])
def test_forked_child_waits_for_no_lock(action):
    """Another thread may hold a lock at the fork; in the child nobody will ever free it."""
    stop = threading.Event()

    def act():
        if action == "draw":
            tf.random.uniform([2])
            return
        with tf.GradientTape() as tape:
            tape.watch(tf.constant(1.0))

    def keep_acting():
        while not stop.is_set():
            act()

    act()  # loads modules: the locks of an import, which a fork may find held, are Python's
    thread = threading.Thread(target=keep_acting)
    thread.start()
    try:
        for _ in range(10):
            run_in_child(act)
    finally:
        stop.set()
        thread.join()
