"""Variables (docs/behaviour.md 2.4 and 4.3)."""

import copy
import operator
import pickle

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, numbers, run_in_threads

pytestmark = pytest.mark.quick


def doubled_gradient(v):
    """The gradient of v*v, to see that Variable and tape are in order: 2v."""
    with tf.GradientTape() as tape:
        y = v * v
    return tape.gradient(y, v).numpy().tolist()


class TestConstruction:
    """2.4: names, dtypes, initial values."""

    @pytest.mark.parametrize(
        ("initial", "dtype", "shape"),
        [
            (3.0, "float32", ()),
            (1, "int32", ()),
            ([1.0, 2.0], "float32", (2,)),
            (np.ones((2, 1)), "float64", (2, 1)),
            (True, "bool", ()),
        ],
        ids=repr,
    )
    def test_defaults(self, initial, dtype, shape):
        v = tf.Variable(initial)
        assert isinstance(v, tf.Variable)
        assert v.dtype == dtype
        assert v.shape == shape
        assert v.trainable is True
        np.testing.assert_array_equal(v.numpy(), initial)

    def test_names(self):
        assert tf.Variable(1.0).name == "Variable:0"
        assert tf.Variable(1.0, name="w").name == "w:0"

    def test_dtype_asked_for(self):
        v = tf.Variable(1, dtype=tf.float64)
        assert v.dtype == tf.float64
        assert v.numpy() == 1.0

    def test_callable_initial_value(self):
        v = tf.Variable(lambda: 3.0)
        assert v.numpy() == 3.0
        assert tf.Variable(lambda: tf.ones(2)).numpy().tolist() == [1.0, 1.0]

    def test_from_a_variable_or_tensor(self):
        v = tf.Variable(3.0)
        w = tf.Variable(v)
        w.assign(4.0)
        assert (v.numpy(), w.numpy()) == (3.0, 4.0)
        assert tf.Variable(tf.constant([1.0, 2.0])).numpy().tolist() == [1.0, 2.0]

    def test_nothing_to_start_from(self):
        with pytest.raises(ValueError, match="initial_value"):
            tf.Variable(None)

    def test_not_trainable(self):
        v = tf.Variable(3.0, trainable=False)
        assert v.trainable is False
        with tf.GradientTape() as tape:
            y = v * v
        assert tape.gradient(y, v) is None


class TestReading:
    """2.4: `.numpy() .value() .read_value() .ref()`, operators and functions."""

    def test_values(self):
        v = tf.Variable([1.0, 2.0])
        for read in (v.value(), v.read_value(), tf.convert_to_tensor(v), tf.identity(v)):
            assert isinstance(read, tf.Tensor)
            assert read.numpy().tolist() == [1.0, 2.0]
        assert np.asarray(v).tolist() == [1.0, 2.0]

    @pytest.mark.parametrize(
        "read",
        [
            lambda v: v.value(),
            lambda v: v.read_value(),
            lambda v: tf.convert_to_tensor(v),
            lambda v: tf.identity(v),
            lambda v: v * 1.0,
            lambda v: tf.cast(v, tf.float32),
            lambda v: tf.stack([v, v])[0],
        ],
        ids=["value", "read_value", "convert", "identity", "operator", "cast", "stack"],
    )
    def test_each_way_of_reading_is_recorded(self, read):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            x = read(v)
            y = x * x
        assert tape.gradient(y, v).numpy() == 6.0

    def test_reads_of_one_variable_add_up(self):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = v.value() * v.read_value() + v
        assert tape.gradient(y, v).numpy() == 7.0

    @pytest.mark.parametrize(
        "read",
        [lambda v: tf.convert_to_tensor(v), lambda v: v.value(), lambda v: tf.identity(v)],
        ids=["convert_to_tensor", "value", "identity"],
    )
    def test_what_was_read_is_a_source_of_its_own(self, read):
        """As the original: the gradient by the read tensor leaves out the other reads."""
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            t = read(v)
            y = t * t * v
        by_tensor, by_variable = tape.gradient(y, [t, v])
        assert (by_tensor.numpy(), by_variable.numpy()) == (18.0, 27.0)

    def test_a_read_value_stays(self):
        v = tf.Variable([1.0, 2.0])
        read, array = v.read_value(), v.numpy()
        v.assign([3.0, 4.0])
        v.assign_add([1.0, 1.0])
        assert read.numpy().tolist() == [1.0, 2.0]
        assert array.tolist() == [1.0, 2.0]
        assert v.numpy().tolist() == [4.0, 5.0]

    def test_operators(self):
        v = tf.Variable([3.0, 4.0])
        assert (v + 1.0).numpy().tolist() == [4.0, 5.0]
        assert (1.0 - v).numpy().tolist() == [-2.0, -3.0]
        assert (v**2).numpy().tolist() == [9.0, 16.0]
        assert (-v).numpy().tolist() == [-3.0, -4.0]
        assert (v > 3.0).numpy().tolist() == [False, True]
        assert (np.array([1.0, 2.0], np.float32) * v).numpy().tolist() == [3.0, 8.0]
        assert isinstance(v + v, tf.Tensor)

    def test_python_protocols(self):
        v = tf.Variable([3.0, 4.0])
        assert v[0].numpy() == 3.0
        assert float(tf.Variable(1.5)) == 1.5
        assert (v == v).numpy().tolist() == [True, True]
        assert v.ref() == v.ref()
        assert v.ref() != tf.Variable([3.0, 4.0]).ref()
        assert v.ref().deref() is v
        with pytest.raises(TypeError, match=r"unhashable.*\.ref\(\)"):
            hash(v)

    def test_indexing_is_recorded(self):
        v = tf.Variable([3.0, 4.0])
        with tf.GradientTape() as tape:
            y = v[1] * v[1]
        gradient = tf.convert_to_tensor(tape.gradient(y, v))
        assert gradient.numpy().tolist() == [0.0, 8.0]

    def test_python_max(self):
        """2.4: python `max([v..])` works and yields [None, None, 1.0]."""
        variables = [tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)]
        with tf.GradientTape() as tape:
            largest = max(variables)
            y = largest * 1.0
        gradients = tape.gradient(y, variables)
        assert gradients[:2] == [None, None]
        assert gradients[2].numpy() == 1.0

    def test_python_max_itself_as_the_target(self):
        variables = [tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)]
        with tf.GradientTape() as tape:
            largest = max(variables)
        gradients = tape.gradient(largest, variables)
        assert gradients[:2] == [None, None]
        assert gradients[2].numpy() == 1.0


class TestAssigning:
    """2.4: assign, assign_add, assign_sub, v[0].assign."""

    def test_values(self):
        v = tf.Variable([1.0, 2.0])
        v.assign([3.0, 4.0])
        assert v.numpy().tolist() == [3.0, 4.0]
        v.assign_add([1.0, 1.0])
        assert v.numpy().tolist() == [4.0, 5.0]
        v.assign_sub([2.0, 2.0])
        assert v.numpy().tolist() == [2.0, 3.0]

    @pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
    def test_they_return_a_variable(self, method):
        v = tf.Variable(1.0)
        returned = getattr(v, method)(2.0)
        assert isinstance(returned, tf.Variable)
        assert returned.numpy() == v.numpy()

    def test_one_element(self):
        v = tf.Variable([1.0, 2.0])
        v[0].assign(9.0)
        assert v.numpy().tolist() == [9.0, 2.0]
        v[-1:].assign([7.0])
        assert v.numpy().tolist() == [9.0, 7.0]
        assert doubled_gradient(v) == [18.0, 14.0]

    @pytest.mark.parametrize(
        ("initial", "value", "expected"),
        [
            ([1.0, 2.0], [3, 4], [3.0, 4.0]),
            ([1.0, 2.0], np.array([3, 4]), [3.0, 4.0]),
            ([1.0, 2.0], np.array([3.0, 4.0]), [3.0, 4.0]),
            (1.0, 2, 2.0),
            (1, 2, 2),
            (1, np.int64(2), 2),
        ],
        ids=repr,
    )
    def test_numbers_and_arrays_are_cast_if_that_is_safe(self, initial, value, expected):
        """4.3: assign of another dtype."""
        v = tf.Variable(initial)
        dtype = v.dtype
        v.assign(value)
        assert v.dtype == dtype
        assert v.numpy().tolist() == expected

    @pytest.mark.parametrize(
        ("initial", "value"),
        [
            (1, 1.5),
            (1, 2.0),
            ([1, 2], np.array([1.5, 2.5])),
            (1.0, 1j),
            (1.0, tf.constant(2.0, dtype=tf.float64)),
            (1.0, tf.constant(2)),
            (1, tf.constant(2.0)),
        ],
        ids=["1.5", "2.0", "floats", "complex", "float64 tensor", "int tensor", "float tensor"],
    )
    @pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
    def test_another_dtype(self, method, initial, value):
        """4.3: assign of another dtype: ValueError, and the Variable is as it was."""
        v = tf.Variable(initial)
        with pytest.raises(ValueError, match="dtype"):
            getattr(v, method)(value)
        np.testing.assert_array_equal(v.numpy(), initial)

    @pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, 3.0], 5.0, [[1.0, 2.0]]], ids=repr)
    @pytest.mark.parametrize("method", ["assign", "assign_add", "assign_sub"])
    def test_another_shape(self, method, value):
        """2.4, and 4.3: assign of another shape: ValueError, both shapes."""
        v = tf.Variable([1.0, 2.0], name="w")
        with pytest.raises(ValueError, match=r"(?i)shape") as caught:
            getattr(v, method)(value)
        message = str(caught.value)
        assert "(2,)" in message
        assert str(np.shape(value)) in message
        if method == "assign":
            assert "Cannot assign value to variable 'w:0': Shape mismatch" in message
        assert v.numpy().tolist() == [1.0, 2.0]
        assert doubled_gradient(v) == [2.0, 4.0]

    @pytest.mark.parametrize("value", [None, "text", object()], ids=["None", "str", "object"])
    def test_what_is_no_number(self, value):
        v = tf.Variable(3.0)
        with pytest.raises((TypeError, ValueError)):
            v.assign(value)
        assert doubled_gradient(v) == 6.0

    def test_between_use_and_gradient(self):
        """4.3: 6 at 3, the gradient at the recorded value."""
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = v * v
        v.assign(100.0)
        assert tape.gradient(y, v).numpy() == 6.0
        w = tf.Variable([3.0])
        with tf.GradientTape() as tape:
            y = w * w
            w.assign_add([1.0])
            w[0].assign(7.0)
        assert tape.gradient(y, w).numpy().tolist() == [6.0]

    def test_is_not_differentiated(self):
        """4.3: v.assign(v*2) under the tape; y=v*v gives 12."""
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            v.assign(v * 2.0)
            y = v * v
        assert v.numpy() == 6.0
        assert tape.gradient(y, v).numpy() == 12.0

    def test_augmented_assignment(self):
        """As the original: it would silently turn the Variable into a tensor."""
        v = tf.Variable([1.0, 2.0])
        with pytest.raises(RuntimeError, match=r"Variable.*assign_add"):
            operator.iadd(v, 1.0)
        assert v.numpy().tolist() == [1.0, 2.0]

    def test_item_assignment(self):
        v = tf.Variable([1.0, 2.0])
        with pytest.raises(TypeError, match="assign"):
            v[0] = 5.0
        assert v.numpy().tolist() == [1.0, 2.0]

    def test_a_training_loop(self):
        """2.4: gradient descent by assign_sub."""
        v = tf.Variable([4.0, -2.0])
        for _ in range(60):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(v * v)
            v.assign_sub(0.25 * tape.gradient(loss, v))
        np.testing.assert_allclose(v.numpy(), [0.0, 0.0], atol=1e-6)
        assert v.dtype == tf.float32


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
    """4.3, assign of another dtype: cast if that is safe, else ValueError; 5.1.

    The original wraps round: 2**40 becomes 0.
    """
    v = tf.Variable(initial)
    with pytest.raises((ValueError, OverflowError)):
        getattr(v, method)(value)
    np.testing.assert_array_equal(v.numpy(), initial)
    assert_next_gradient_is_right()


def test_numbers_that_do_not_fit_are_named_as_they_were_passed():
    v = tf.Variable([1, 2])
    for value, what in (([0.5, 1.5], "a list of floats"), (0.5, "the float 0.5")):
        with pytest.raises(ValueError, match=f"assign {what} to .*dtype='float32'"):
            v.assign(value)
    with pytest.raises(ValueError, match=r"assign a value of dtype float64 to .*dtype='float64'"):
        v.assign(np.array([0.5, 1.5]))


def test_integers_that_fit_are_assigned():
    """4.4: an array of wider integers is safe where its values fit."""
    v = tf.Variable([1, 1])
    assert v.assign(np.array([2**31 - 1, -(2**31)])).numpy().tolist() == [2**31 - 1, -(2**31)]
    w = tf.Variable(np.array([1, 2], np.uint8))
    assert w.assign([255, 0]).numpy().tolist() == [255, 0]
    assert w.assign(np.array([7, 8])).numpy().tolist() == [7, 8]
    assert w.assign_add([1, 1]).numpy().tolist() == [8, 9]
    assert tf.Variable(np.int64(1)).assign(2**40).numpy() == 2**40


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
    """4.3, rows on Variables: the Variable, its tape and the next one are as they were."""
    v = tf.Variable([3.0, 4.0])
    with tf.GradientTape() as tape:
        before = v * v
        with pytest.raises((TypeError, ValueError, IndexError)):
            program(v)
        y = before + v
    assert numbers(tape.gradient(y, v)) == [7.0, 9.0]
    assert v.numpy().tolist() == [3.0, 4.0]
    assert_next_gradient_is_right()


def test_adding_from_several_threads_loses_nothing():
    v = tf.Variable(0.0)

    def add():
        for _ in range(500):
            v.assign_add(1.0)

    run_in_threads(*[add] * 4)
    assert float(v) == 2000.0


def test_copies_keep_what_a_variable_is():
    with tf.compat.v1.variable_scope("scope", use_resource=False):
        v = tf.compat.v1.get_variable("v", initializer=1.0)
    for copied in (copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert (copied.name, copied.resource, float(copied)) == ("scope/v:0", False, 1.0)
    with tf.GradientTape():
        part = tf.Variable([1.0, 2.0, 3.0])[0:2]
        assert pickle.loads(pickle.dumps(part)).numpy().tolist() == [1.0, 2.0]


@pytest.mark.quick
def test_a_scope_says_which_names_exist():
    get, scope = tf.compat.v1.get_variable, tf.compat.v1.variable_scope
    with tf.Graph().as_default():
        with scope("scope"):
            v = get("v", (2,))
            with pytest.raises(ValueError, match="scope/v already exists"):
                get("v", (2,))
        with scope("scope", reuse=True):
            assert get("v") is v
            with pytest.raises(ValueError, match=r"specified shape \(3,\) and found shape \(2,\)"):
                get("v", (3,))
            with pytest.raises(ValueError, match="scope/w does not exist"):
                get("w", (2,))


def test_item_assignment_names_the_way():
    with pytest.raises(TypeError, match=r"variable\[index\].assign"):
        tf.Variable([1.0, 2.0])[0] = 5.0
