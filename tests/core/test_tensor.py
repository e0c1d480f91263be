"""Conversion to tensors, and their attributes (docs/behaviour.md 2.4, decisions 1 and 18)."""

import copy
import operator
import pickle
import re

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1, "int32"),
        (-1, "int32"),
        (True, "bool"),
        (1.0, "float32"),
        (1j, "complex128"),
        (2**40, "int64"),
        (2**31 - 1, "int32"),
        (2**31, "int64"),
        (-(2**31), "int32"),
        ([1, 2.0], "float32"),
        ([1, 2], "int32"),
        ([1, 2**40], "int64"),
        ([True, False], "bool"),
        ([[1.0, 2.0], [3.0, 4.0]], "float32"),
        ([], "float32"),
        ((1.5, 2), "float32"),
        (np.float64(1), "float64"),
        (np.float32(1), "float32"),
        (np.int64(1), "int64"),
        (np.ones(2), "float64"),
        (np.ones(2, np.int8), "int8"),
        (np.arange(3), "int64"),
        ([np.float64(1), np.float64(2)], "float64"),
        ([np.ones(2), np.ones(2)], "float64"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("make", ["constant", "convert_to_tensor"])
def test_default_dtypes(make, value, dtype):
    """2.4, defaults: Python's numbers are int32 and float32, arrays keep their dtype."""
    tensor = getattr(tf, make)(value)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), np.array(value))


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (1, "float32", 1.0),
        (1.5, "float64", 1.5),
        ([1, 2], tf.float64, [1.0, 2.0]),
        (np.ones(2), "float32", [1.0, 1.0]),
        (np.arange(2), np.float32, [0.0, 1.0]),
        (3, tf.int64, 3),
        (np.int64(3), "int32", 3),
    ],
    ids=repr,
)
def test_asked_for_dtypes(value, dtype, expected):
    """2.4: constant(value, dtype)."""
    tensor = tf.constant(value, dtype=dtype)
    assert tensor.dtype == dtype
    np.testing.assert_array_equal(tensor.numpy(), expected)


def test_shape_asked_for():
    """2.4: constant(value, shape=...) fills, or reshapes."""
    assert tf.constant(2.0, shape=(2, 2)).numpy().tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).numpy().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("value", [1.5, [1.5, 2.0], 1.0])
def test_a_float_is_no_integer(value):
    """2.4: constant(1.5, dtype=int32)."""
    with pytest.raises(TypeError, match="Cannot convert"):
        tf.constant(value, dtype=tf.int32)


def test_same_object():
    """2.4: constant(t), convert_to_tensor(t), cast(t, same) are t; identity is not."""
    t = tf.constant([1.0, 2.0])
    assert tf.constant(t) is t
    assert tf.convert_to_tensor(t) is t
    assert tf.cast(t, tf.float32) is t
    assert tf.identity(t) is not t
    assert tf.identity(t).numpy().tolist() == [1.0, 2.0]


def test_list_of_tensors():
    """2.4: a list that holds tensors is stacked, and its gradient flows."""
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.convert_to_tensor([x, 2.0 * x, 1.0])
    assert y.numpy().tolist() == [3.0, 6.0, 1.0]
    assert tape.gradient(y, x).numpy() == 3.0


class TestPromotion:
    """Decision 1."""

    @pytest.mark.parametrize(
        ("dtype", "scalar", "expected"),
        [
            ("float32", 2, "float32"),
            ("float32", 2.0, "float32"),
            ("float64", 2.0, "float64"),
            ("float32", True, "float32"),
            ("int32", 2, "int32"),
            ("int64", 2, "int64"),
            ("uint8", 2, "uint8"),
            ("int32", 2.0, "float32"),
            ("int64", 2.0, "float32"),
            ("float32", np.float64(2), "float32"),
            ("float32", np.int64(2), "float32"),
            ("int32", np.int64(2), "int32"),
            ("int32", np.float64(2), "float32"),
        ],
        ids=repr,
    )
    def test_scalars_are_weak(self, dtype, scalar, expected):
        t = tf.constant(np.array([1, 3], dtype))
        for result in (t * scalar, scalar * t, tf.multiply(t, scalar), tf.multiply(scalar, t)):
            assert isinstance(result, tf.Tensor)
            assert result.dtype == expected
            assert result.numpy().tolist() == [1 * int(scalar), 3 * int(scalar)]

    def test_numbers_have_the_precision_of_the_scalars_that_they_meet(self):
        wide, tiny = np.float64(0.1), 1e-100
        assert tf.add(wide, 0.2).numpy() == 0.1 + 0.2
        assert tf.maximum(tiny, np.float64(0)).numpy() == tiny
        assert tf.where(np.bool_(True), 0.3, wide).numpy() == 0.3
        assert tf.stack([wide, 0.2]).numpy().tolist() == [0.1, 0.2]
        assert tf.add(1j, 0.2).numpy() == 0.2 + 1j
        assert tf.keras.ops.linspace([0.1], [0.7], 2, dtype="float64").numpy().tolist() == [
            [0.1],
            [0.7],
        ]
        assert tf.add(np.float32(1), 0.2).dtype == "float32"
        assert tf.add(np.int64(1), 0.2).dtype == "float32"
        assert tf.add(np.float16(1), 0.2).dtype == "float32"

    @pytest.mark.parametrize(
        "function",
        [
            tf.math.divide_no_nan,
            tf.math.xlog1py,
            lambda x, y: tf.nn.sigmoid_cross_entropy_with_logits(y, x),
            lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x),
            lambda x, y: tf.nn.log_poisson_loss(x, y),
            lambda x, y: tf.nn.bias_add(x[None], y),
            lambda x, y: tf.linspace(x, y, 5),
            lambda x, y: tf.keras.losses.mean_squared_error(y, x),
            lambda x, y: tf.keras.ops.append(x, y),
            lambda x, y: tf.keras.ops.fmax(x, y),
            lambda x, y: tf.keras.ops.isin(x, y),
            lambda x, y: tf.keras.ops.dot(x, y),
            lambda x, y: tf.keras.ops.layer_normalization(x, y),
            lambda x, y: tf.keras.ops.full_like(x, y),
            lambda x, y: tf.keras.ops.geomspace(x, y, 4),
            lambda x, y: tf.keras.ops.vstack([x, y]),
            lambda x, y: tf.keras.ops.cdist(x[None], [y] if isinstance(y, list) else y[None]),
        ],
    )
    def test_lists_have_the_precision_of_the_tensors_that_they_meet(self, function):
        x, y = tf.constant(np.array([0.1, 0.7])), [0.3, 0.7]
        expected = function(x, tf.constant(np.array(y))).numpy()
        result = function(x, y)
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(result, expected, rtol=1e-15)

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("float32", "float64", "float64"),
            ("int32", "float32", "float32"),
            ("int64", "float32", "float32"),
            ("int64", "float64", "float64"),
            ("int32", "int64", "int64"),
            ("uint8", "int32", "int32"),
            ("bool", "float32", "float32"),
            ("float32", "float32", "float32"),
        ],
    )
    def test_tensors(self, first, second, expected):
        a, b = np.array([1, 1], first), np.array([1, 0], second)
        pairs = [
            (tf.constant(a), tf.constant(b)),
            (tf.constant(b), tf.constant(a)),
            (tf.constant(a), b),
            (b, tf.constant(a)),
            (tf.Variable(a), tf.constant(b)),
        ]
        for left, right in pairs:
            result = left + right
            assert isinstance(result, tf.Tensor)
            assert result.dtype == expected
            assert result.numpy().tolist() == [2, 1]

    def test_zero_dimensional_tensors_and_arrays_are_not_weak(self):
        t = tf.constant([1.0, 2.0])
        assert (t * tf.constant(2.0, dtype=tf.float64)).dtype == tf.float64
        assert (t * np.array(2.0)).dtype == tf.float64

    @pytest.mark.parametrize(
        ("first", "second", "expected"),
        [
            ("int32", "int32", "float64"),
            ("int64", "int32", "float64"),
            ("float32", "int64", "float32"),
            ("float32", "float64", "float64"),
        ],
    )
    def test_true_division(self, first, second, expected):
        result = tf.constant(np.array([1], first)) / tf.constant(np.array([2], second))
        assert result.dtype == expected
        assert result.numpy().tolist() == [0.5]

    def test_gradients_keep_the_dtype_of_their_source(self):
        x = tf.constant([1.0, 2.0])
        y = tf.constant([3.0, 4.0], dtype=tf.float64)
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = x * y
        dx, dy = tape.gradient(z, [x, y])
        assert (z.dtype, dx.dtype, dy.dtype) == (tf.float64, tf.float32, tf.float64)
        assert dx.numpy().tolist() == [3.0, 4.0]
        assert dy.numpy().tolist() == [1.0, 2.0]

    def test_reductions_of_integers(self):
        """Each namespace keeps the conventions of its own library."""
        n = tf.constant([1, 2])
        assert tf.reduce_mean(n).dtype == tf.int32
        assert tf.reduce_mean(n).numpy() == 1
        assert tf.numpy.mean(n).dtype == tf.float64
        assert tf.numpy.mean(n).numpy() == 1.5


class TestRepr:
    """Decision 18."""

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (6.0, "<tg.Tensor: shape=(), dtype=float32, numpy=6.0>"),
            (6, "<tg.Tensor: shape=(), dtype=int32, numpy=6>"),
            (True, "<tg.Tensor: shape=(), dtype=bool, numpy=True>"),
            (
                [1.0, 2.0],
                "<tg.Tensor: shape=(2,), dtype=float32, numpy=array([1., 2.], dtype=float32)>",
            ),
            (np.ones(1), "<tg.Tensor: shape=(1,), dtype=float64, numpy=array([1.])>"),
            (
                [[1, 2], [3, 4]],
                "<tg.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]],"
                " dtype=int32)>",
            ),
        ],
        ids=["float", "int", "bool", "vector", "float64", "matrix"],
    )
    def test_tensor(self, value, text):
        assert repr(tf.constant(value)) == text

    def test_variable(self):
        v = tf.Variable([1.0, 2.0], name="w")
        text = "<tg.Variable 'w:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>"
        assert repr(v) == text
        assert (
            repr(tf.Variable(3.0)) == "<tg.Variable 'Variable:0' shape=() dtype=float32, numpy=3.0>"
        )

    def test_string(self):
        assert str(tf.constant(1.5)) == "tg.Tensor(1.5, shape=(), dtype=float32)"


class TestShapeAndDtype:
    """2.4: `x.shape == (3,)`, `x.dtype == 'float32'` and their attributes."""

    def test_shape(self):
        shape = tf.constant([[1.0, 2.0]]).shape
        assert shape == (1, 2)
        assert shape == [1, 2] or shape.as_list() == [1, 2]
        assert (shape.rank, shape.ndims, len(shape), shape[1]) == (2, 2, 2, 2)
        assert shape.num_elements() == 2
        assert list(shape) == [1, 2]
        assert tf.constant(1.0).shape == ()

    def test_dtype(self):
        t = tf.constant([1.0])
        assert t.dtype == "float32"
        assert t.dtype == tf.float32
        assert t.dtype == np.float32
        assert t.dtype.name == "float32"

    def test_ndim(self):
        assert tf.constant([[1.0]]).ndim == 2
        assert tf.constant(1.0).ndim == 0


class TestPythonProtocols:
    """2.4: what Python does with a tensor."""

    def test_unhashable(self):
        """4.5: tensor as dict key: TypeError that names `.ref()`."""
        t = tf.constant(1.0)
        with pytest.raises(TypeError, match=r"unhashable.*\.ref\(\)"):
            hash(t)
        with pytest.raises(TypeError, match=r"\.ref\(\)"):
            dict.fromkeys([t])

    def test_ref(self):
        t, same_value = tf.constant(1.0), tf.constant(1.0)
        counts = {t.ref(): 1}
        assert counts[t.ref()] == 1
        assert same_value.ref() not in counts
        assert t.ref().deref() is t

    def test_equality_is_elementwise(self):
        t = tf.constant([1.0, 2.0])
        assert (t == tf.constant([1.0, 3.0])).numpy().tolist() == [True, False]
        assert (t != 1.0).numpy().tolist() == [False, True]
        assert (t == t).dtype == tf.bool

    def test_comparisons(self):
        t = tf.constant([1.0, 2.0, 3.0])
        assert (t > 2.0).numpy().tolist() == [False, False, True]
        assert (t >= 2.0).numpy().tolist() == [False, True, True]
        assert operator.gt(2.0, t).numpy().tolist() == [True, False, False]
        assert (t <= [1, 1, 3]).numpy().tolist() == [True, False, True]

    def test_iteration(self):
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            first, second = x
            y = first * second
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 1.0]
        assert [row.shape for row in tf.ones((3, 2))] == [(2,)] * 3

    def test_scalars_have_no_length(self):
        with pytest.raises(TypeError, match=r"scalar tensor\. .* write \[x\]"):
            list(tf.constant(1.0))
        with pytest.raises(TypeError, match="Scalar tensor has no `len"):
            len(tf.constant(1.0))
        assert len(tf.ones((3, 2))) == 3

    def test_errors_of_conversions_name_the_call(self):
        v, x = tf.constant([1.0, 2.0]), tf.constant(2.0)
        for words, call in {
            "float(v) needs a single number, a tensor of shape (), got shape": lambda: float(v),
            "int(v) needs a single number, a tensor of shape (), got": lambda: int(v),
            "range(v) needs an integer tensor of shape (), got shape (2,)": lambda: range(v),
            "range(x) needs an integer tensor of shape (), got shape () and dtype float32: cast": (
                lambda: range(x)
            ),
        }.items():
            with pytest.raises(TypeError, match=f"^{re.escape(words)}"):
                call()

    def test_numbers(self):
        assert float(tf.constant(1.5)) == 1.5
        assert int(tf.constant(1.5)) == 1
        assert complex(tf.constant(1.5)) == 1.5 + 0j
        assert [1, 2, 3][tf.constant(1)] == 2
        assert bool(tf.constant(True))
        assert not tf.constant(0.0)
        with pytest.raises(TypeError):
            float(tf.constant([1.5, 2.0]))
        with pytest.raises(ValueError, match="ambiguous"):
            bool(tf.constant([True, False]))

    def test_format(self):
        assert f"{tf.constant(1.5):.3f} {tf.constant(2)}" == "1.500 2"
        assert f"{tf.constant(1.25)}" == "1.25"
        for x in (tf.constant([1.0, 2.0]), tf.Variable([1.0, 2.0])):
            assert f"{x:>80}" == str(x).rjust(80)
            with pytest.raises(
                TypeError, match=r"'\.2f' is for single numbers.*shape \(2,\): use np"
            ):
                f"{x:.2f}"

    def test_item_assignment(self):
        """4.5: a TypeError that names the functional way."""
        t = tf.constant([1.0, 2.0])
        with pytest.raises(TypeError, match=r"does not support item assignment.*where"):
            t[0] = 5.0
        assert t.numpy().tolist() == [1.0, 2.0]

    def test_augmented_assignment_rebinds(self):
        """4.5: b+=1 after exp(b) was recorded: the gradient belongs to the old value."""
        x = tf.constant([0.0, 0.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            b = x * 1.0
            old = b
            y = tf.exp(b)
            b += 1.0
        assert old.numpy().tolist() == [0.0, 0.0]
        assert b.numpy().tolist() == [1.0, 1.0]
        assert tape.gradient(y, x).numpy().tolist() == [1.0, 1.0]

    def test_copies(self):
        """4.4: deepcopy of result; pickle of array."""
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        assert copy.deepcopy(y).numpy().tolist() == [1.0, 4.0]
        assert copy.copy(y).numpy().tolist() == [1.0, 4.0]
        restored = pickle.loads(pickle.dumps(y))
        assert isinstance(restored, tf.Tensor)
        assert restored.dtype == y.dtype
        assert restored.numpy().tolist() == [1.0, 4.0]
        assert pickle.loads(pickle.dumps(x.numpy())).tolist() == [1.0, 2.0]
        assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]

    def test_operators(self):
        a, b = tf.constant([7.0, 8.0]), tf.constant([2.0, 4.0])
        results = {
            "+": a + b,
            "-": a - b,
            "*": a * b,
            "/": a / b,
            "//": a // b,
            "%": a % b,
            "**": a**b,
            "neg": -a,
            "abs": abs(-a),
            "r-": 1.0 - a,
            "r/": 14.0 / a,
            "r**": 2.0**b,
        }
        assert {name: result.numpy().tolist() for name, result in results.items()} == {
            "+": [9.0, 12.0],
            "-": [5.0, 4.0],
            "*": [14.0, 32.0],
            "/": [3.5, 2.0],
            "//": [3.0, 2.0],
            "%": [1.0, 0.0],
            "**": [49.0, 4096.0],
            "neg": [-7.0, -8.0],
            "abs": [7.0, 8.0],
            "r-": [-6.0, -7.0],
            "r/": [2.0, 1.75],
            "r**": [4.0, 16.0],
        }

    def test_matmul(self):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        assert (a @ a).numpy().tolist() == [[7.0, 10.0], [15.0, 22.0]]


def test_truth_of_several_elements():
    with pytest.raises(ValueError, match="where"):
        bool(tf.constant([1.0, 2.0]))
