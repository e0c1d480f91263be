"""GradientTape: one gradient, many gradients, entering and leaving (docs/behaviour.md 2.1).

Numbers are the original's, measured on TensorFlow 2.21.
"""

import re
import warnings

import pytest

import tinygrad_cg as tf
from tests.support.orders import run_in_a_thread, values

pytestmark = pytest.mark.quick


def test_first_gradient():
    """2.1: a watched tensor."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    gradient = tape.gradient(y, x)
    assert isinstance(gradient, tf.Tensor)
    assert gradient.dtype == tf.float32
    assert gradient.numpy() == 6.0


def test_unwatched_tensor_has_no_gradient():
    """2.1: None where nothing was watched, with a warning; none for what nobody can watch."""
    x, v = tf.constant(3.0), tf.Variable(3.0, trainable=False)
    w = tf.Variable(3.0)
    for source, words in (
        (x, "`x` was never watched. Call tape.watch() on `x` before `x` is used. If `x` was a Var"),
        (w, "the Variable `w` is None, because the Variable `w` was never read while this tape"),
    ):
        with tf.GradientTape() as tape:
            y = x * x
        words = re.escape(words)
        with pytest.warns(tf.errors.TapeWarning, match=words):
            assert tape.gradient(y, source) is None
    for sources, nothing in ((v, None), ([], [])):
        with tf.GradientTape() as tape:
            y = x * v
        assert tape.gradient(y, sources) == nothing


def test_trainable_variable_is_watched_when_read():
    """2.1: Variables need no watch."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v).numpy() == 6.0


def test_variables_left_unwatched():
    """2.1: watch_accessed_variables=False."""
    v, w = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * w
    (watched,) = tape.watched_variables()
    assert watched is v
    assert values(tape.gradient(y, [v, w])) == [4.0, None]


def test_second_gradient_of_a_plain_tape():
    """2.1, twice, non-persistent."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y, x).numpy() == 6.0
    for _ in range(2):
        words = "A non-persistent GradientTape can only be used to compute one set of gradients"
        with pytest.raises(RuntimeError, match=words):
            tape.gradient(y, x)
    with tf.GradientTape() as fresh:
        fresh.watch(x)
        y = x * x
    assert fresh.gradient(y, x).numpy() == 6.0


def test_gradient_of_a_tape_never_entered():
    """2.1: the same RuntimeError."""
    x = tf.constant(3.0)
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used"):
        tf.GradientTape().gradient(x * x, x)


def test_persistent_tape_gives_many_gradients():
    """2.1: persistent=True."""
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    assert tape.gradient(y, x).numpy() == 6.0
    assert tape.gradient(z, x).numpy() == 108.0
    assert tape.gradient(z, y).numpy() == 18.0
    assert tape.gradient(y, x).numpy() == 6.0


def test_gradient_inside_the_context_ends_a_plain_tape():
    """2.1: gradient inside ctx, non-persistent: later ops are not recorded."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        assert tape.gradient(y, x).numpy() == 6.0
        z = x * y
    with pytest.raises(RuntimeError, match="non-persistent"):
        tape.gradient(z, x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            first = inner.gradient(x * x, x)
            outside = first * x
    assert outer.gradient(outside, x).numpy() == 12.0


def test_gradient_inside_the_context_of_a_persistent_tape():
    """2.1: x**3 at 2 gives 12, 12, 6 with one tape, with a warning that it is recorded."""
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        words = "significantly less efficient"
        with pytest.warns(tf.errors.TapeWarning, match=words):
            first = tape.gradient(y, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", tf.errors.TapeWarning)
            second = tape.gradient(first, x)
    third = tape.gradient(second, x)
    assert values([first, second, third]) == [12.0, 12.0, 6.0]


def test_entering_again_continues():
    """2.1: re-enter after exit: 108.0."""
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    with tape:
        tape.watch(x)
        y = x * x
    with tape:
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0


def test_entering_an_active_tape():
    """2.1: re-enter while active, and the tape is as it was."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(ValueError, match="Tape is still recording"), tape:
            pass
        z = y * y
    assert tape.gradient(z, x).numpy() == 108.0


def test_exception_in_the_block():
    """2.1: the tape is popped, and its gradient still works."""
    x = tf.constant(3.0)
    tape = tf.GradientTape()
    recorded = []

    def block():
        with tape:
            tape.watch(x)
            recorded.append(x * x)
            raise KeyError

    with pytest.raises(KeyError):
        block()
    with tf.GradientTape() as other:
        other.watch(x)
        z = x * x * x
    assert tape.gradient(recorded[0], x).numpy() == 6.0
    assert other.gradient(z, x).numpy() == 27.0


def test_reset_forgets_operations_and_watches():
    """2.1, reset: 2.0 / None."""
    x = tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
        z = x + x
        tape.watch(x)
        w = x + x
    assert tape.gradient(z, x) is None
    assert tape.gradient(y, x) is None
    assert tape.gradient(w, x).numpy() == 2.0


def test_reset_watches_variables_again():
    """2.1, reset: variables are watched again when they are read."""
    v, w = tf.Variable(3.0), tf.Variable(4.0)
    with tf.GradientTape() as tape:
        _ = v * w
        tape.reset()
        assert tape.watched_variables() == ()
        y = v + v
    assert [watched.name for watched in tape.watched_variables()] == [v.name]
    assert values(tape.gradient(y, [v, w])) == [2.0, None]


def test_reset_outside():
    """2.1, reset outside the context."""
    tape = tf.GradientTape()
    with tape:
        pass
    with pytest.raises(ValueError, match="Tape is not recording"):
        tape.reset()
    with pytest.raises(ValueError, match="Tape is not recording"):
        tf.GradientTape().reset()


def test_stop_recording():
    """2.1: None inside; z=y*x at 4 gives 16."""
    x = tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
        z = y * x
    assert tape.gradient(y, x) is None
    assert tape.gradient(z, x).numpy() == 16.0


def test_gradient_inside_stop_recording():
    """2.1: gradient inside stop_recording works, and is not recorded."""
    x = tf.constant(4.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            first = tape.gradient(y, x)
    assert first.numpy() == 8.0
    assert tape.gradient(first, x) is None


def test_stop_recording_outside():
    """2.1: before enter a RuntimeError, after exit a ValueError."""
    tape = tf.GradientTape()
    words = "Trying to stop recording a tape which is not recording"
    with pytest.raises(RuntimeError, match=words), tape.stop_recording():
        pass
    with tape:
        pass
    with pytest.raises(ValueError, match="Tape is not recording"), tape.stop_recording():
        pass


def test_nested_tapes():
    """2.1: the inner gradient inside the outer context: 27, 18."""
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        first = inner.gradient(y, x)
    second = outer.gradient(first, x)
    assert values([first, second]) == [27.0, 18.0]


def test_nested_tapes_over_a_variable():
    """2.1: Variables need no watch."""
    v = tf.Variable(3.0)
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = v * v * v
        first = inner.gradient(y, v)
    assert values([first, outer.gradient(first, v)]) == [27.0, 18.0]


def test_inner_gradient_after_the_outer_context():
    """2.1: None; 4.2: with the warning that the target came too late."""
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
    first = inner.gradient(y, x)
    assert first.numpy() == 27.0
    with pytest.warns(tf.errors.TapeWarning, match="computed after the tape closed"):
        assert outer.gradient(first, x) is None


def test_tapes_side_by_side():
    """2.1: `with a, b:` are independent."""
    x, y = tf.constant(3.0), tf.constant(4.0)
    with tf.GradientTape() as a, tf.GradientTape() as b:
        a.watch(x)
        b.watch(y)
        z = x * y
    assert values(a.gradient(z, [x, y])) == [4.0, None]
    assert values(b.gradient(z, [x, y])) == [None, 3.0]


def test_persistent_outer_tape_with_gradients():
    """2.1: a persistent outer tape differentiates each of several inner gradients."""
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, y])
        with tf.GradientTape() as inner:
            inner.watch([x, y])
            z = x * x * y
        gx, gy = inner.gradient(z, [x, y])
    assert values([gx, gy]) == [12.0, 4.0]
    assert values(outer.gradient(gx, [x, y])) == [6.0, 4.0]
    assert values(outer.gradient(gy, [x, y])) == [4.0, None]


def test_variable_versions():
    """2.1: the gradient is that of the value at the time of reading (4)."""
    v = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = v * v
        v.assign(5.0)
    assert tape.gradient(y, v).numpy() == 4.0
    assert v.numpy() == 5.0


def test_leaving_and_asking_in_another_thread():
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x

        def ask():
            try:
                tape.gradient(y, x)
            except ValueError as error:
                return str(error)
            return None

        assert "not in this thread" in run_in_a_thread(ask)
    assert tape.gradient(y, x).numpy() == 6.0


@pytest.mark.parametrize("persistent", [False, True])
def test_a_tape_that_was_never_entered_says_so(persistent):
    tape = tf.GradientTape(persistent=persistent)
    with pytest.raises(RuntimeError, match="never entered"):
        tape.gradient(tf.constant(1.0), tf.constant(1.0))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("source", [tf.constant(1.0), tf.Variable(1.0)])
def test_a_tape_that_watches_but_was_never_entered_says_so(persistent, source):
    tape = tf.GradientTape(persistent=persistent)
    tape.watch(source)
    y = source * source
    words = "never entered: compute the target in the block `with tf.GradientTape\\(\\) as tape:`"
    assert re.search(words, tape.explain(y, source))
    with pytest.warns(tf.errors.TapeWarning, match=words) as caught:
        assert tape.gradient(y, source) is None
    assert "closed" not in str(caught[0].message)


def test_a_tape_that_watches_before_it_is_entered_differentiates():
    tape, x = tf.GradientTape(), tf.constant(3.0)
    tape.watch(x)
    with tape:
        y = x * x
    z = y * x
    assert "closed" in tape.explain(z, x)
    assert tape.gradient(y, x).numpy() == 6.0
