"""Foreign and faulty values as operands (docs/behaviour.md 4.4).

After each error the next gradient is right.
"""

import collections
import pickle
import re

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.fixture(autouse=True)
def next_gradient_is_right():
    """Whatever a test here does, the library works afterwards."""
    yield
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x * x
    assert tape.gradient(y, x).numpy() == 27.0


class Series:
    """A foreign container that gives an array when asked."""

    def __array__(self, dtype=None, copy=None):
        return np.array([1.0, 2.0], dtype=dtype)


RECORD = np.zeros(2, dtype=[("a", "f4"), ("b", "f4")])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.array([1.0, 2.0], dtype=object), r"dtype=object; call \.astype\(float\)"),
        (np.array([1.0, None], dtype=object), "dtype=object"),
        (np.array(["a", "b"]), "it holds strings"),
        (np.array([b"a"]), "it holds strings"),
        (RECORD, "structured dtype; pass .*fields separately"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "datetime64"),
        (np.array([1], dtype="timedelta64[D]"), "timedelta64"),
        (np.ones(2, dtype=np.longdouble), "longdouble .*not supported"),
        (np.longdouble(1), "longdouble .*not supported"),
    ],
    ids=[
        *("object", "object with None", "str", "bytes", "structured", "datetime64"),
        *("timedelta64", "longdouble", "longdouble scalar"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        tf.constant,
        tf.convert_to_tensor,
        tf.Variable,
        lambda array: tf.exp(array),
        lambda array: tf.constant([1.0, 2.0]) * array,
        lambda array: array * tf.constant([1.0, 2.0]),
        lambda array: [array] * tf.ones(1),
    ],
    ids=["constant", "convert", "Variable", "exp", "t*a", "a*t", "[a]*t"],
)
def test_arrays_of_no_numbers(array, words, use):
    with pytest.raises(TypeError, match=words):
        use(array)


def test_longdouble_converted_by_the_user():
    """The remedy that the message names works."""
    wide = np.ones(2, dtype=np.longdouble)
    assert tf.constant(wide.astype(np.float64)).dtype == tf.float64


@pytest.mark.parametrize(
    "use",
    [
        lambda x, other: x + other,
        lambda x, other: other + x,
        lambda x, other: x * other,
        lambda x, other: other / x,
        lambda x, other: x**other,
        lambda x, other: x > other,
    ],
    ids=["x+o", "o+x", "x*o", "o/x", "x**o", "x>o"],
)
@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (None, "NoneType"),
        ("text", "str"),
        ({"a": 1.0}, "dict"),
        ({1.0}, "set"),
        (object(), "object"),
        (print, "builtin_function_or_method"),
    ],
    ids=["None", "str", "dict", "set", "object", "function"],
)
def test_operands_of_no_numbers(use, other, kind):
    """4.4: None operand: TypeError unsupported operand Tensor and NoneType."""
    with pytest.raises(TypeError, match=r"not supported|unsupported") as caught:
        use(tf.constant(1.0), other)
    assert "Tensor" in str(caught.value)
    assert kind in str(caught.value)


@pytest.mark.parametrize(
    "value",
    [None, object(), print, {"a": 1}, {1}],
    ids=["None", "object", "function", "dict", "set"],
)
def test_conversion_of_no_numbers(value):
    """2.4: constant of what is no number; the original's words."""
    with pytest.raises((TypeError, ValueError), match="Attempt to convert a value"):
        tf.constant(value)


def test_equality_with_what_is_no_number_does_not_fail():
    """`==` is asked by Python itself (in lists, in tests): it answers, as `!=` does."""
    t = tf.constant(1.0)
    assert (t == None) is False  # noqa: E711
    assert (t != None) is True  # noqa: E711
    assert t not in [None]


@pytest.mark.parametrize(
    "value",
    [[[1], [1, 2]], [1, [2]], [[1.0], 2.0], [np.ones(2), np.ones(3)]],
    ids=["rows", "depth", "depth last", "arrays"],
)
@pytest.mark.parametrize("use", [tf.constant, tf.Variable, lambda value: tf.ones(2) + value])
def test_ragged_lists(use, value):
    """4.4: ragged nested list: ValueError inhomogeneous shape."""
    with pytest.raises(ValueError, match="inhomogeneous shape"):
        use(value)


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i4"])
def test_big_endian(dtype):
    """4.4: convert to native order."""
    array = np.array([1, 2], dtype=dtype)
    x = tf.constant(array)
    assert x.dtype.isnative
    assert x.dtype == array.dtype.newbyteorder("=")
    assert (x + x).numpy().tolist() == [2, 4]
    y = tf.constant([1.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(y)
        z = y * array
    assert tape.gradient(z, y).numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0)[::-1],
        np.arange(6.0)[::2],
        np.arange(6.0).reshape(2, 3).T,
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6.0).reshape(2, 3)[:, ::-1],
        np.broadcast_to(np.arange(3.0), (2, 3)),
        np.arange(6.0)[1:4],
        np.frombuffer(b"\0" + np.arange(3.0).tobytes(), dtype="f8", offset=1),
        np.arange(6.0).reshape(1, 6)[:, None],
    ],
    ids=[
        *("negative stride", "stride 2", "transposed", "Fortran", "reversed columns"),
        *("broadcast", "slice", "unaligned read-only", "extra axis"),
    ],
)
def test_layouts(array):
    """4.4: negative-stride and transposed (Fortran) inputs; read-only and unaligned."""
    x = tf.constant(array)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) * x + array * x
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_allclose(y.numpy(), np.exp(array) * array + array * array, rtol=1e-12)
    expected = np.exp(array) * (1 + array) + array
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("foreign", "dtype"),
    [
        (np.array([1.0, 2.0]).data, "float64"),
        (Series(), "float64"),
        (np.ma.masked_array([1.0, 2.0]).data, "float64"),
        (np.ones((1, 2)).view(np.recarray), "float64"),
        (range(3), "int32"),
    ],
    ids=["memoryview", "__array__", "masked", "subclass", "range"],
)
def test_foreign_containers(foreign, dtype):
    """What gives an array is taken."""
    expected = np.asarray(foreign)
    tensor = tf.constant(foreign)
    assert tensor.dtype == dtype
    assert tensor.shape == expected.shape
    np.testing.assert_array_equal(tensor.numpy(), expected)
    assert type(tensor.numpy()) is np.ndarray


def test_masked_arrays_would_lose_their_mask():
    """5.1: no wrong number in silence."""
    masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
    with pytest.raises(TypeError, match="mask"):
        tf.constant(masked)


@pytest.mark.parametrize(
    "make",
    [iter, lambda parts: (part for part in parts), collections.deque, tuple, list],
    ids=["iterator", "generator", "deque", "tuple", "list"],
)
@pytest.mark.parametrize("name", ["concat", "stack"])
def test_iterables_to_concatenate(make, name):
    """4.4: generator to concatenate: any iterable is accepted."""
    a, b = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = getattr(tf, name)(make([a, b]), axis=0)
        z = y * y
    assert y.numpy().ravel().tolist() == [1.0, 2.0, 3.0, 4.0]
    da, db = tape.gradient(z, [a, b])
    assert (da.numpy().tolist(), db.numpy().tolist()) == ([2.0, 4.0], [6.0, 8.0])


@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("int32", 2**40),
        ("int32", [2**40, 1]),
        ("uint8", 300),
        ("uint8", [300, 1]),
        ("uint8", -1),
        ("uint8", [-1, 1]),
    ],
    ids=str,
)
def test_integers_that_do_not_fit(dtype, other):
    """5.1: a weak integer that its tensor's dtype cannot hold is no other number."""
    t = tf.constant(np.array([1, 2], dtype))
    with pytest.raises((OverflowError, ValueError)):
        _ = t + other


def test_default_float():
    """4.6: python float input gives the documented default float dtype."""
    assert tf.exp(1.0).dtype == tf.float32
    assert tf.exp([1.0, 2.0]).dtype == tf.float32
    assert tf.reduce_sum([1.0, 2.0]).dtype == tf.float32


@pytest.mark.parametrize("exponent", [-1, [-1, 2], np.int32(-2), tf.constant(-1)], ids=str)
def test_integer_to_a_negative_power(exponent):
    """4.6: int ** negative int: ValueError."""
    with pytest.raises(ValueError, match="negative integer power"):
        _ = tf.constant([2, 3]) ** exponent


def test_float_to_a_negative_power():
    assert (tf.constant([2.0, 4.0]) ** -1).numpy().tolist() == [0.5, 0.25]
    assert (tf.constant([2.0, 4.0]) ** tf.constant(-1)).numpy().tolist() == [0.5, 0.25]


@pytest.mark.parametrize("dtype", ["bfloat16", "float8", "str", "U", "O", "longdouble", "M8[D]"])
def test_dtypes_that_do_not_exist_here(dtype):
    """4.4: bfloat16 is a clear TypeError, as are others that hold no numbers."""
    with pytest.raises(TypeError, match=r"dtype|longdouble|datetime64"):
        tf.constant([1.0], dtype=dtype)
    with pytest.raises(TypeError, match=r"dtype|longdouble|datetime64"):
        tf.cast(tf.constant([1.0]), dtype)


def test_objects_name_the_first_that_is_no_number():
    """4.4: and are not advised to become NaN."""
    odd = np.array([[1.0, 2], ["a", None]], dtype=object)
    for make in (tf.constant, tf.exp, lambda x: tf.ones((2, 2)) + x):
        with pytest.raises(TypeError, match=r"\[1, 0\] is 'a' of type str, not a number") as e:
            make(odd)
        assert "astype" not in str(e.value)
    with pytest.raises(TypeError, match=r"element \[1\] is None of type NoneType"):
        tf.constant([1.0, None])


def test_bfloat16_says_what_to_use():
    """4.4: float32 holds all its values."""
    with pytest.raises(TypeError, match="'bfloat16' is not a supported dtype: use float32"):
        tf.cast(tf.ones(2), "bfloat16")
    with pytest.raises(TypeError, match=r"longdouble is not supported; call .astype\(np.float64\)"):
        tf.constant(np.ones(2, np.longdouble))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    with pytest.raises(TypeError, match=r"bfloat16 is not supported; call .astype\(np.float32\)"):
        tf.constant(np.ones(2, ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    "call",
    [
        *(lambda x: tf.reduce_sum(x, 5), lambda x: np.sum(x, axis=-4), lambda x: x.mean(5)),
        *(lambda x: tf.concat([x, x], 7), lambda x: np.swapaxes(x, 0, 5), lambda x: tf.sort(x, 4)),
        *(
            lambda x: tf.expand_dims(x, 9),
            lambda x: np.fft.fft(x, axis=4),
            lambda x: np.take(x, 0, 4),
        ),
        tf.function(lambda x: tf.nn.softmax(x, 4)),
    ],
)
def test_an_axis_that_is_not_there(call):
    """4.5: a ValueError, an IndexError and NumPy's AxisError."""
    with pytest.raises(tf.errors.AxisError, match="is out of range for a tensor") as raised:
        call(tf.ones((2, 3)))
    for kind in (ValueError, IndexError, np.exceptions.AxisError, tf.errors.InvalidArgumentError):
        assert isinstance(raised.value, kind)
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), tf.errors.AxisError)


def test_products_show_the_shapes_that_were_passed():
    x, v = tf.ones((2, 3)), tf.ones(2)
    for call, words in (
        (lambda: tf.matmul(x, v), "(2, 3) and (2,) do not fit: axis -1 of the first (3) and axis "),
        (lambda: np.ones(4) @ x, "(4,) and (2, 3) do not fit: axis -1 of the first (4) and axis "),
        (lambda: tf.matmul(x, x, True, True), "(2, 3) (transposed) and (2, 3) (transposed) do"),
        (lambda: tf.matmul(x, x.T, True), "axis -1 of the first (2) and axis -2 of the second"),
        (lambda: tf.matmul(x, x), "axis -1 of the first (3) and axis -2 of the second (2) must"),
        (lambda: tf.linalg.matvec(x, tf.ones(3), True), "(2, 3) (transposed) and (3,) do not"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=re.escape(words)):
            call()
