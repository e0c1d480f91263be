"""What a tape watches, and when (docs/behaviour.md 2.1 and 4.2)."""

import warnings
from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import run_in_a_thread, run_in_threads, values

pytestmark = pytest.mark.quick


def names(tape):
    return [variable.name for variable in tape.watched_variables()]


def test_watch_nested():
    """2.1: watch takes lists and dictionaries."""
    a, b, c = tf.constant(2.0), tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as tape:
        tape.watch({"first": a, "rest": [b, (c,)]})
        y = a * b * c
    assert values(tape.gradient(y, [a, b, c])) == [12.0, 8.0, 6.0]


def test_late_watch():
    """2.1: a late watch only affects later ops: z=y*x gives 4.0."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
        z = y * x
    assert tape.gradient(z, x).numpy() == 4.0


def test_watching_twice():
    """2.1: a watch that is repeated changes nothing."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.watch(x)
        z = y * x
    assert tape.gradient(z, x).numpy() == 12.0


def test_watched_intermediate_keeps_its_history():
    """2.1: intermediates as sources: watching one does not cut it from its inputs."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.watch(y)
        z = y * y
    assert values(tape.gradient(z, [x, y])) == [32.0, 8.0]


def test_watch_after_exit():
    """4.2, watch after close: accepted; the tape may be entered again."""
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    with tape:
        pass
    tape.watch(x)
    with tape:
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_watch_before_entering():
    """2.1, watch before enter: the original's AttributeError is not copied."""
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    tape.watch(x)
    with tape:
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0


def test_watching_is_local_to_the_tape():
    """2.1: what one tape watches is nothing to another."""
    x = tf.constant(3.0)
    with tf.GradientTape() as outer, tf.GradientTape() as inner:
        inner.watch(x)
        y = x * x
    with pytest.warns(
        tf.errors.TapeWarning, match="`x` was never watched by this tape, only by another"
    ):
        assert outer.gradient(y, x) is None
    assert inner.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize(
    ("thing", "kind"),
    [(1.0, "float"), (np.ones(2), "ndarray"), (None, "NoneType"), ("x", "str")],
    ids=["float", "ndarray", "None", "str"],
)
@pytest.mark.parametrize("nested", [False, True])
def test_watch_of_what_is_no_tensor(thing, kind, nested):
    """2.1 and 4.2: the original's ValueError, which is a TypeError too (decision 12)."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        with pytest.raises(TypeError, match="watch needs a tensor") as caught:
            tape.watch([x, thing] if nested else thing)
        tape.watch(x)
        y = x * x
    assert isinstance(caught.value, ValueError)
    assert f"of type '{kind}', not tf.Tensor or tf.Variable" in str(caught.value)
    assert "Passed in object" in str(caught.value)
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint8", "bool"])
def test_watch_of_integers(dtype):
    """4.2, watch(int tensor): the original's warning; its gradient is None."""
    n, x = tf.constant(np.ones((), dtype)), tf.constant(3.0)
    with tf.GradientTape() as tape:
        words = "The dtype of the watched tensor must be floating .*got .*" + dtype
        with pytest.warns(tf.errors.TapeWarning, match=words):
            tape.watch(n)
        tape.watch(x)
        y = x * tf.cast(n, tf.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.TapeWarning)
        assert values(tape.gradient(y, [x, n])) == [1.0, None]


def test_integer_target():
    """4.2: an integer-valued target gives None."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x * x, tf.int32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tf.errors.TapeWarning)
        assert tape.gradient(y, x) is None


def test_trainable_variables_only():
    """2.1: a non-trainable Variable is not watched by itself; an explicit watch works."""
    v, frozen = tf.Variable(2.0, name="v"), tf.Variable(3.0, trainable=False, name="frozen")
    with tf.GradientTape() as tape:
        y = v * frozen
    assert names(tape) == ["v:0"]
    assert values(tape.gradient(y, [v, frozen])) == [3.0, None]
    with tf.GradientTape() as tape:
        tape.watch(frozen)
        y = v * frozen
    assert sorted(names(tape)) == ["frozen:0", "v:0"]
    assert values(tape.gradient(y, [v, frozen])) == [3.0, 2.0]


class TestWatchedVariables:
    """2.1: watched_variables."""

    def test_before_entering(self):
        assert tf.GradientTape().watched_variables() == ()

    def test_order_of_construction(self):
        a = tf.Variable(1.0, name="a")
        b = tf.Variable(2.0, name="b")
        c = tf.Variable(3.0, name="c")
        with tf.GradientTape() as tape:
            y = c * a + b * a
        watched = tape.watched_variables()
        assert isinstance(watched, tuple)
        assert [variable.name for variable in watched] == ["a:0", "b:0", "c:0"]
        assert watched[0] is a
        assert values(tape.gradient(y, watched)) == (5.0, 1.0, 1.0)
        assert names(tape) == ["a:0", "b:0", "c:0"]

    def test_each_once(self):
        v = tf.Variable(2.0, name="v")
        with tf.GradientTape() as tape:
            tape.watch(v)
            _ = v * v + v
        assert names(tape) == ["v:0"]

    def test_reading_watches(self):
        v, w = tf.Variable(2.0, name="v"), tf.Variable(2.0, name="w")
        with tf.GradientTape() as tape:
            read = v.read_value()
            y = read * w.value()
        assert names(tape) == ["v:0", "w:0"]
        assert values(tape.gradient(y, [v, w])) == [2.0, 2.0]

    def test_not_after_exit(self):
        v = tf.Variable(2.0)
        with tf.GradientTape() as tape:
            pass
        _ = v * v
        assert tape.watched_variables() == ()


class TestThreads:
    """2.1: a tape is local to its thread."""

    def test_ops_of_another_thread(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = run_in_a_thread(lambda: x * x)
        assert y.numpy() == 9.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tf.errors.TapeWarning)
            assert tape.gradient(y, x) is None

    def test_variables_read_by_another_thread(self):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            run_in_a_thread(lambda: v * v)
        assert tape.watched_variables() == ()

    def test_gradient_on_another_thread(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert run_in_a_thread(lambda: tape.gradient(y, x)).numpy() == 6.0

    def test_many_at_once(self):
        def program(number):
            x = tf.constant(float(number))
            for _ in range(50):
                with tf.GradientTape() as outer:
                    outer.watch(x)
                    with tf.GradientTape() as inner:
                        inner.watch(x)
                        y = x * x * x
                    first = inner.gradient(y, x)
                second = outer.gradient(first, x)
            return values([first, second])

        results = run_in_threads(*[partial(program, number) for number in range(4)])
        assert results == [[3.0 * n * n, 6.0 * n] for n in range(4)]


class TestWarningsNameTheLine:
    """A warning points at the line of the user's program that it is about."""

    def only_warning(self, caught):
        (warning,) = caught
        assert warning.category is tf.errors.TapeWarning
        return warning

    def test_of_watch(self):
        with tf.GradientTape() as tape, pytest.warns(tf.errors.TapeWarning) as caught:
            tape.watch(tf.constant(1))
        assert self.only_warning(caught).filename == __file__

    def test_of_an_integer_source(self):
        x, n = tf.constant(3.0), tf.constant(1)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        with pytest.warns(tf.errors.TapeWarning) as caught:
            tape.gradient(y, [x, n])
        assert self.only_warning(caught).filename == __file__

    def test_of_an_expired_target(self):
        x = tf.constant(3.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
        y = x * x
        with pytest.warns(tf.errors.TapeWarning) as caught:
            tape.gradient(y, x)
        assert self.only_warning(caught).filename == __file__

    def test_of_a_persistent_gradient_inside(self):
        x = tf.constant(3.0)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x
            with pytest.warns(tf.errors.TapeWarning) as caught:
                tape.gradient(y, x)
        assert self.only_warning(caught).filename == __file__


def test_watching_late_does_not_reach_back_though_another_tape_watched():
    a, b = tf.constant(2.0), tf.constant(5.0)
    with tf.GradientTape() as first, tf.GradientTape(persistent=True) as second:
        first.watch(a)
        second.watch(b)
        y = a * b
        second.watch(a)
        z = y * a
    assert second.gradient(y, a) is None
    assert second.gradient(z, a).numpy() == 10.0
    assert second.gradient(z, b).numpy() == 4.0
    assert first.gradient(z, a).numpy() == 20.0
