"""BEHAVIOUR 2.1, 2.2 and 2.4, with BAD_INPUT: what the other files of tests leave.

Numbers are those of TensorFlow 2.21, where its row is not improved upon.
"""

import threading

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers


def upstream(*upstreams, targets=1):
    """The gradient at x = [1, 2] of y = x*x, and of z = 3x, with these output_gradients."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, z = x * x, 3.0 * x
    return numbers(tape.gradient([y, z][:targets], x, output_gradients=list(upstreams)))


def test_numbers_in_a_list_of_upstreams():
    """2.1: one entry for each target, a number is broadcast: [2, 4] for 1.0, [4, 8] for 2.0."""
    assert upstream(1.0) == [2.0, 4.0]
    assert upstream(2.0) == [4.0, 8.0]
    assert upstream(1.0, 1.0, targets=2) == [5.0, 7.0]
    assert upstream(tf.ones(2), 0.0, targets=2) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("upstreams", "targets", "words"),
    [
        ((1.0, 2.0), 1, "1 target, 2 output gradients"),
        ((tf.ones(2), tf.ones(2), tf.ones(2)), 2, "2 targets, 3 output gradients"),
        ((tf.ones(2),), 2, "2 targets, 1 output gradient"),
        ((), 1, "1 target, 0 output gradients"),
    ],
    ids=["2 for 1", "3 for 2", "1 for 2", "0 for 1"],
)
def test_wrong_number_of_upstreams(upstreams, targets, words):
    """BAD_INPUT, both directions: the original ignores what is too much ([2, 4] for 2 for 1)
    and takes ones for what is missing ([5, 7] for 1 for 2)."""
    with pytest.raises(ValueError, match=words):
        upstream(*upstreams, targets=targets)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "given",
    ["text", object(), np.array(["a", "b"]), np.array([1.0, None], object), [[1.0], [1.0, 2.0]]],
    ids=["str", "object", "strings", "object array", "ragged"],
)
def test_upstreams_that_are_no_numbers(given):
    """BAD_INPUT, other cotangents: an error at once."""
    with pytest.raises((TypeError, ValueError)):
        upstream(given)
    assert_next_gradient_is_right()


@pytest.mark.parametrize("given", [np.array([10, 100]), tf.constant([10, 100]), [True, True]])
def test_upstreams_of_integers_are_cast(given):
    """BAD_INPUT: cast to the target's dtype."""
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    slope = tape.gradient(y, x, output_gradients=np.asarray(given))
    assert slope.dtype == tf.float32
    assert numbers(slope) == (np.asarray(given) * [2.0, 4.0]).tolist()


def test_sign_gives_zeros():
    """2.1, non-diff ops: zeros and not None, of the input's shape, at 0 too."""
    assert gradient(tf.sign, tf.constant([-2.0, 0.0, 3.0])) == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    "compare",
    [tf.equal, tf.not_equal, tf.less, tf.less_equal, tf.greater, tf.greater_equal],
    ids=lambda compare: compare.__name__,
)
@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
def test_comparisons_have_no_gradient(compare):
    """2.1, non-diff ops: each comparison, alone and cast to floats."""
    x, y = tf.constant([1.0, 2.0]), tf.constant([2.0, 2.0])
    assert gradient(compare, x, y) == [None, None]
    assert gradient(lambda x, y: tf.cast(compare(x, y), tf.float32), x, y) == [None, None]
    both = gradient(lambda x, y: x * tf.cast(compare(x, y), tf.float32), x, y)
    assert both[0] == compare(x, y).numpy().astype(float).tolist()
    assert both[1] is None


@pytest.mark.parametrize("make", [tf.Variable, tf.constant])
def test_gradient_of_gather_sums_repeated_rows(make):
    """2.1, gather: slices [[1, 1]]*3 at [0, 0, 2], here dense, also beside another path."""
    table = make([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    dense = [[2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]
    rows = [0, 0, 2]
    for function, more in (
        (lambda table: tf.gather(table, rows), 0.0),
        (lambda table: tf.reduce_sum(tf.gather(table, rows)) + tf.reduce_sum(table), 1.0),
    ):
        slope = gradient(function, table)[0]
        assert slope == (np.array(dense) + more).tolist()


def test_an_exception_in_two_tapes():
    """2.1, exception in `with`: both are popped, both gradients work."""
    x = tf.constant(3.0)
    outer, inner = tf.GradientTape(), tf.GradientTape()
    found = []

    def program():
        with outer, inner:
            outer.watch(x)
            inner.watch(x)
            found.append(x * x)
            raise OSError("inside")

    with pytest.raises(OSError, match="inside"):
        program()
    later = x * x * x
    assert numbers([tape.gradient(found[0], x) for tape in (outer, inner)]) == [6.0, 6.0]
    assert later.numpy() == 27.0
    assert_next_gradient_is_right()


def test_leaving_a_tape_on_another_thread():
    """2.1, threads: a tape is left where it was entered; elsewhere it is not recording."""
    x = tf.constant(3.0)
    errors = []
    tape = tf.GradientTape()

    def leave():
        try:
            tape.__exit__(None, None, None)
        except ValueError as error:
            errors.append(str(error))

    with tape:
        tape.watch(x)
        thread = threading.Thread(target=leave)
        thread.start()
        thread.join()
        y = x * x
    assert numbers(tape.gradient(y, x)) == 6.0
    assert [text.partition(" At")[0] for text in errors] == ["Tape is not recording."]
    assert_next_gradient_is_right()


# Variables and conversion.


@pytest.mark.parametrize(
    ("initial", "value"),
    [
        (1, 2**40),
        (1, -(2**40)),
        ([1, 1], [1, 2**40]),
        ([1, 1], np.array([1, 2**40])),
        (1, np.int64(2**40)),
        (np.uint8(1), 300),
        (np.uint8(1), -1),
        (np.int8(1), 128),
        (np.array([1], np.uint8), np.array([300])),
    ],
    ids=repr,
)
@pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
def test_integers_that_a_variable_cannot_hold(method, initial, value):
    """BAD_INPUT, assign of another dtype: cast if that is safe, else ValueError; Law 2.

    The original wraps round: 2**40 becomes 0.
    """
    v = tf.Variable(initial)
    with pytest.raises((ValueError, OverflowError)):
        getattr(v, method)(value)
    np.testing.assert_array_equal(v.numpy(), initial)
    assert_next_gradient_is_right()


def test_integers_that_fit_are_assigned():
    """BAD_INPUT: an array of wider integers is safe where its values fit."""
    v = tf.Variable([1, 1])
    assert v.assign(np.array([2**31 - 1, -(2**31)])).numpy().tolist() == [2**31 - 1, -(2**31)]
    w = tf.Variable(np.array([1, 2], np.uint8))
    assert w.assign([255, 0]).numpy().tolist() == [255, 0]
    assert w.assign(np.array([7, 8])).numpy().tolist() == [7, 8]
    assert w.assign_add([1, 1]).numpy().tolist() == [8, 9]
    assert tf.Variable(np.int64(1)).assign(2**40).numpy() == 2**40


@pytest.mark.parametrize("array", [np.array([1, 2**40]), np.array(2**40), np.array([300, 1])])
def test_arrays_of_integers_that_do_not_fit(array):
    """Law 2: a dtype that is asked for and cannot hold the values is an error, not 0."""
    dtype = "uint8" if array.max() == 300 else "int32"
    for make in (tf.constant, tf.convert_to_tensor, tf.Variable):
        with pytest.raises((ValueError, OverflowError)):
            make(array, dtype=dtype)
    assert_next_gradient_is_right()


HUGE = 1e300


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda: tf.constant([1.0]) * HUGE, id="weak operand"),
        pytest.param(lambda: tf.constant([HUGE]), id="list"),
        pytest.param(lambda: tf.constant(np.array([HUGE]), dtype=tf.float32), id="array"),
        pytest.param(lambda: tf.constant([1.0]) * np.float64(HUGE), id="NumPy scalar"),
        pytest.param(lambda: tf.cast(tf.constant([HUGE], tf.float64), tf.float32), id="cast"),
        pytest.param(lambda: tf.Variable([1.0]).assign([HUGE]), id="assign"),
        pytest.param(lambda: tf.Variable([1.0]).assign(np.array([HUGE])), id="assign an array"),
    ],
)
def test_overflow_in_a_cast_is_silent(program):
    """Decision 16: floating point never warns; as IEEE, and as the original, infinite."""
    with np.errstate(all="warn"):
        result = program()
    assert result.dtype == tf.float32
    assert result.numpy().tolist() == [np.inf]


def test_overflow_in_gradients_is_silent():
    """Decision 16: upstreams and what rules return are cast in silence where they are weak."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: HUGE

    with np.errstate(all="warn"):
        assert gradient(f, tf.constant(1.0)) == [np.inf]
        assert gradient(lambda x: x * 2.0, tf.constant(1.0), output_gradients=HUGE) == [np.inf]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda v: tf.Variable("text"), id="made of text"),
        pytest.param(lambda v: tf.Variable(None), id="made of nothing"),
        pytest.param(lambda v: tf.Variable([[1.0], [1.0, 2.0]]), id="ragged"),
        pytest.param(lambda v: tf.Variable([1.0, 2.0], shape=(3,)), id="another shape"),
        pytest.param(lambda v: tf.Variable(1.0, dtype="text"), id="no dtype"),
        pytest.param(lambda v: v.assign([1.0, 2.0, 3.0]), id="assign shape"),
        pytest.param(lambda v: v.assign(tf.constant([1, 2])), id="assign dtype"),
        pytest.param(lambda v: v.assign([[1.0], [1.0, 2.0]]), id="assign ragged"),
        pytest.param(lambda v: v.assign(np.array([1.0, None], object)), id="assign objects"),
        pytest.param(lambda v: v.assign(np.array(["1", "2"])), id="assign strings"),
        pytest.param(lambda v: v[5].assign(1.0), id="element out of bounds"),
        pytest.param(lambda v: v[0].assign([1.0, 2.0]), id="element shape"),
        pytest.param(lambda v: v[0].assign(None), id="element None"),
        pytest.param(lambda v: v[0].assign(1j), id="element complex"),
        pytest.param(lambda v: v * None, id="operand"),
        pytest.param(lambda v: v + tf.ones(3), id="broadcast"),
        pytest.param(lambda v: v[1.0], id="index"),
        pytest.param(lambda v: hash(v), id="hash"),
        pytest.param(lambda v: float(v), id="float of a vector"),
    ],
)
def test_faulty_uses_of_variables_under_a_tape(program):
    """BAD_INPUT, rows on Variables: the Variable, its tape and the next one are as they were."""
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        before = v * v
        with pytest.raises((TypeError, ValueError, IndexError)):
            program(v)
        y = before + v
    assert numbers(tape.gradient(y, v)) == [7.0, 9.0]
    assert v.numpy().tolist() == [3.0, 4.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda x: tf.constant(1.5, dtype=tf.int32), id="float as int"),
        pytest.param(lambda x: list(x[0]), id="iterate a scalar"),
        pytest.param(lambda x: len(x[0]), id="length of a scalar"),
        pytest.param(lambda x: float(x), id="float of a vector"),
        pytest.param(lambda x: bool(x), id="truth of a vector"),
        pytest.param(lambda x: x.__setitem__(0, 5.0), id="item assignment"),
        pytest.param(lambda x: hash(x), id="hash"),
        pytest.param(lambda x: {x: 1}, id="key of a dict"),
        pytest.param(lambda x: x.__iadd__(None), id="augmented by None"),
        pytest.param(lambda x: x @ tf.ones((3, 3)), id="matmul"),
        pytest.param(lambda x: tf.reshape(x, (1.5,)), id="reshape by a float"),
        pytest.param(lambda x: tf.reshape(x, None), id="reshape by None"),
        pytest.param(lambda x: tf.reduce_sum(x, axis="0"), id="axis of text"),
        pytest.param(lambda x: tf.reduce_sum(x, axis=(0, 0)), id="axis twice"),
        pytest.param(lambda x: tf.cast(x, "nope"), id="cast"),
        pytest.param(lambda x: tf.gather(x, 0.5), id="gather by a float"),
        pytest.param(lambda x: tf.concat([x, tf.constant(1.0)], 0), id="concat a scalar"),
        pytest.param(lambda x: tf.stack([x, x[0]]), id="stack two ranks"),
        pytest.param(lambda x: tf.convert_to_tensor([x, None]), id="list with None"),
        pytest.param(lambda x: tf.convert_to_tensor([x, x[0]]), id="list of two ranks"),
        pytest.param(lambda x: np.add(x, "text"), id="NumPy function of text"),
        pytest.param(lambda x: np.add(x, np.ones(3)), id="NumPy broadcast"),
        pytest.param(lambda x: np.linalg.svd(x), id="NumPy function not recorded"),
    ],
)
def test_faulty_uses_of_tensors_under_a_tape(program):
    """BAD_INPUT, rows on conversion, indexing and shapes: the tape goes on rightly."""
    x = tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        before = x * x
        with pytest.raises((TypeError, ValueError, IndexError, AttributeError)):
            program(x)
        y = before + x
    assert numbers(tape.gradient(y, x)) == [7.0, 9.0]
    assert_next_gradient_is_right()


@pytest.mark.parametrize("index", [2**70, -(2**70), np.array([0.0])], ids=repr)
def test_more_indices_that_are_none(index):
    """BAD_INPUT, float index and out of bounds: IndexError."""
    with pytest.raises(IndexError):
        _ = tf.constant([1.0, 2.0])[index]
    assert_next_gradient_is_right()


@pytest.mark.parametrize("value", [2**70, [2**70], -(2**63) - 1], ids=repr)
def test_integers_that_no_dtype_holds(value):
    """2.4, conversion: an error, never another number."""
    with pytest.raises((OverflowError, ValueError, TypeError)):
        tf.constant(value)
    with pytest.raises((OverflowError, ValueError, TypeError)):
        _ = tf.constant([1, 2]) * value
    assert_next_gradient_is_right()


def test_non_scalar_gradients_with_stop_gradients_and_zero():
    """2.2: [1, 1] with stop_gradients, [3, 1] without; unconnected 'zero' gives [[0, 0]]."""
    with tf.Graph().as_default():
        a = tf.constant([0.0, 0.0])
        b = 2.0 * a
        ys = a + b
        assert numbers(tf.gradients(ys, [a, b], stop_gradients=[a, b])) == [[1.0, 1.0]] * 2
        assert numbers(tf.gradients(ys, [a, b])) == [[3.0, 3.0], [1.0, 1.0]]
        with pytest.raises(TypeError):
            tf.gradients(None, a)
        with pytest.raises(ValueError, match="has shape"):
            tf.gradients(ys, a, grad_ys=tf.ones(3))
        assert numbers(tf.gradients(ys, [a])) == [[3.0, 3.0]]
    assert_next_gradient_is_right()
