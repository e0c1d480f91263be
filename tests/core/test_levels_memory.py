"""Long chains and memory (docs/behaviour.md 6.1)."""

import contextlib
import gc
import threading
import weakref

import pytest

import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import tiers


def chain(x, length):
    for _ in range(length):
        x = x * 1.00001
    return x


class TestLongChains:
    """Point 1: the sweep loops, never recurses; what is dropped is freed without recursion."""

    @pytest.mark.parametrize("persistent", [False, True])
    def test_100_000_operations(self, persistent):
        x = tf.constant(1.0, dtype=tf.float64)
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y = chain(x, 100_000)
        assert tape.gradient(y, x).numpy() == pytest.approx(1.00001**100_000, rel=1e-9)
        freed = weakref.ref(y)
        del y
        assert freed() is None
        del tape
        nested_run()

    def test_dropped_without_a_gradient(self):
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = chain(x, 100_000)
        del y, tape
        run_unrecorded()

    def test_on_a_thread_with_a_small_stack(self):
        results = []

        def program():
            x = tf.constant(1.0, dtype=tf.float64)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = chain(x, 20_000)
            results.append(tape.gradient(y, x).numpy())

        previous = threading.stack_size(512 * 1024)
        try:
            thread = threading.Thread(target=program)
            thread.start()
        finally:
            threading.stack_size(previous)
        thread.join()
        assert results == [pytest.approx(1.00001**20_000, rel=1e-9)]

    def test_in_a_graph(self):
        x = tf.constant(1.0, dtype=tf.float64)
        with tf.Graph().as_default():
            y = chain(x, 20_000)
            (gradient,) = tf.gradients(y, x)
        assert gradient.numpy() == pytest.approx(1.00001**20_000, rel=1e-9)

    def test_second_order(self):
        x = tf.constant(1.0, dtype=tf.float64)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = chain(x * x, 5_000)
            first = inner.gradient(y, x)
        second = outer.gradient(first, x)
        assert second.numpy() == pytest.approx(2 * 1.00001**5_000, rel=1e-9)


def run_unrecorded():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(x) * x)
    tape.gradient(y, x)


def run_without_a_gradient():
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    return y.shape


def nested_run():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    outer.gradient(first, x)


def persistent_run():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    tape.gradient(y, x)
    tape.gradient(z, [x, y])


def graph_run():
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        y = tf.exp(x) * x
        tf.gradients(y, x)


def custom_run():
    @tf.custom_gradient
    def cube(x):
        square = x * x
        return square * x, lambda dy: 3.0 * square * dy

    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = cube(x)
        first = inner.gradient(y, x)
    outer.gradient(first, x)


def failing_run():
    x = tf.constant([1.0, 2.0])
    with contextlib.suppress(ValueError), tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tf.reshape(y, (3,))


KEPT_VARIABLE = tf.Variable([1.0, 2.0])
KEPT_TENSOR = tf.constant([1.0, 2.0])


def run_over_a_kept_variable():
    with tf.GradientTape() as tape:
        y = KEPT_VARIABLE * KEPT_VARIABLE
    KEPT_VARIABLE.assign_sub(0.0 * tape.gradient(y, KEPT_VARIABLE))


def run_over_a_kept_tensor():
    with tf.GradientTape() as tape:
        tape.watch(KEPT_TENSOR)
        y = KEPT_TENSOR * KEPT_TENSOR
    tape.gradient(y, KEPT_TENSOR)


def graph_run_over_kept_values():
    with tf.Graph().as_default():
        y = KEPT_TENSOR * KEPT_TENSOR + KEPT_VARIABLE
        tf.gradients(y, KEPT_TENSOR)


class TestMemory:
    """Point 1: what nobody can reach is freed at once, by reference counting, in no cycle."""

    @pytest.mark.parametrize(
        "run",
        [
            run_unrecorded,
            run_without_a_gradient,
            nested_run,
            persistent_run,
            graph_run,
            custom_run,
            failing_run,
            run_over_a_kept_variable,
            run_over_a_kept_tensor,
            graph_run_over_kept_values,
        ],
    )
    def test_300_runs_leave_nothing(self, run):
        for _ in range(2 * tiers.TIER_UP_CALLS):
            run()
        tiers.wait()  # now all is compiled
        gc.collect()
        gc.disable()
        try:
            before = len(gc.get_objects())
            for _ in range(300):
                run()
            after = len(gc.get_objects())
        finally:
            gc.enable()
        assert after - before < 150  # a leak would be one object a run, or more

    def test_dead_branches_are_freed_while_the_tape_records(self):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            branch = tf.exp(x) * 2.0
            freed = weakref.ref(branch)
            del branch
            assert freed() is None
            y = x * x
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    def test_residuals_of_an_exit_tape_go_with_the_output(self):
        class Residual:
            """Something that a rule closes over."""

        freed = []

        @tf.custom_gradient
        def double(x):
            residual = Residual()
            freed.append(weakref.ref(residual))
            return 2.0 * x, lambda dy: 2.0 * dy if residual else dy

        x = tf.constant(1.0)
        double(x)
        assert freed[0]() is None
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = double(x)
        assert freed[1]() is not None
        assert tape.gradient(y, x).numpy() == 2.0
        del y
        assert freed[1]() is None


def test_nothing_is_kept_while_a_tape_pauses():
    """A mark for lateness is no record: nothing is attached to what a pause computes."""
    x = tf.constant(3.0)
    with tf.GradientTape() as first:
        first.watch(x)
    expired = x * 2.0
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tape.stop_recording():
            for _ in range(5):
                expired = expired * 1.5
                assert not hasattr(expired._rec, "inputs")
    assert tape.gradient(x * 1.0 if False else x, x).numpy() == 1.0


def test_marks_of_tapes_that_are_gone_do_not_pile_up():
    x, total = tf.constant(2.0), tf.constant(0.0)
    with tf.GradientTape() as outer:
        w = tf.constant(1.0)
        outer.watch(w)
        for _ in range(50):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = x * x
            tape.gradient(y, x)
            total = total + y
    assert len(getattr(total._rec, "late", ())) <= 1
