"""What stands on every spelling: texts, Python's `round`, NumPy's functions, shared gathers."""

import importlib
import inspect
import re
from types import FunctionType

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._ops.protocol import PLAIN, functions, ufuncs
from tinygrad_cg._spellings import spell

NAMESPACES = (
    *("", ".arrays", ".math", ".linalg", ".nn", ".random", ".dtypes", ".numpy", ".numpy.random"),
    *(".keras.ops", ".keras.random", ".compat.v1", ".contrib.eager"),
)
OPERATIONS = {name for name, value in vars(spell)["_OPERATIONS"].items() if callable(value)}


def public(namespace):
    """The functions that a module offers, by name."""
    module = importlib.import_module(f"tinygrad_cg{namespace}")
    found = {name: getattr(module, name) for name in module.__all__}
    return {name: one for name, one in found.items() if isinstance(one, FunctionType)}


# Texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_says_what_it_does(namespace):
    for name, function in public(namespace).items():
        first = (function.__doc__ or "").split("\n")[0]
        assert first, f"{namespace}.{name} has no text"
        assert not first.startswith("Defined as"), f"{namespace}.{name} has no text of its own"


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_texts_speak_of_parameters_that_there_are(namespace):
    for name, function in public(namespace).items():
        text, made, _ = (function.__doc__ or "").partition("Defined as")
        mentioned = set(re.findall(r"(?<!`)`([a-z_]\w*)`(?!`)", text))
        known = OPERATIONS | set(inspect.signature(function).parameters)
        assert not made or mentioned <= known, f"{namespace}.{name}: {mentioned - known}"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (tf.argmax, "largest"),
        (tf.math.argmin, "smallest"),
        (tf.shape, "shape of `input`"),
        (tf.rank, "How many dimensions"),
        (tf.size, "How many elements"),
        (tf.math.log_sigmoid, "logarithm of sigmoid(x)"),
        (tf.math.squared_difference, "(x - y) squared"),
        (tf.math.reciprocal, "1 / x"),
        (tf.math.softplus, "log(1 + exp(features))"),
        (tf.clip_by_value, "`t` limited to [clip_value_min, clip_value_max]"),
        (tf.keras.ops.argmax, "Positions (int32)"),
        (tf.keras.ops.softmax, "exp(x) / sum(exp(x))"),
        (tf.keras.ops.array, "`x` as a Tensor, cast to `dtype`"),
        (tf.keras.ops.divide, "x1 / x2; float32"),
        (tf.numpy.subtract, "x1 - x2"),
        (tf.numpy.zeros, "float64 by default"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_text_is_that_of_the_function(function, words):
    assert words in function.__doc__.split("\n\n")[0].replace("\n", " ")


def test_a_row_takes_the_text_of_one_operation_alone():
    made = {"__name__": "example", "read": lambda x: x}
    table = """
    plain(a, b) = subtract(a, b)
    keyword(b, a) = subtract(y=a, x=b)
    two(a, b) = negative(subtract(a, b))
    number(a) = subtract(1, a)
    through(a, b) = subtract(read(a), read(b))
    own(a) = subtract(1, a)  # One less
        than `a`, negated.
    """
    spell.spell(made, table, readers=("read",))
    texts = {name: made[name].__doc__ for name in made["__all__"]}
    assert texts["plain"].startswith("a - b")
    assert texts["keyword"].startswith("b - a")
    assert texts["through"].startswith("a - b")
    assert texts["two"] is texts["number"] is None
    assert texts["own"].split("\n") == [
        "One less than `a`, negated.",
        "",
        "Defined as ``subtract(1, a)``, in terms of the library's own operations.",
    ]
    spell.spell(made, table)
    assert made["through"].__doc__ is None


# Python's and NumPy's functions on tensors ------------------------------------------------------


@pytest.mark.parametrize("digits", [None, 0, 1, 2, -1])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_round_keeps_so_many_digits(digits, dtype):
    values = np.array([1.235, -0.25, 27.5, 0.35, np.inf, 115.0], dtype)
    found = round(tf.constant(values), digits)
    np.testing.assert_allclose(found.numpy(), np.round(values, digits or 0), rtol=1e-6)
    assert found.dtype == dtype


def test_round_of_integers_and_of_variables():
    assert round(tf.constant([14, 25, -36]), -1).numpy().tolist() == [10, 20, -40]
    assert round(tf.constant([14, 25]), 3).numpy().tolist() == [14, 25]
    assert round(tf.Variable(2.125, dtype=tf.float64), 2).numpy() == 2.12


def test_round_refuses_digits_that_are_no_number():
    with pytest.raises(TypeError, match="round: ndigits must be an integer, got float"):
        round(tf.constant(1.5), 1.0)


def test_each_numpy_function_that_is_spelled_here_is_recorded():
    for name, function in public(".numpy").items():
        theirs = getattr(np, name, None)
        if theirs is not None:
            known = theirs in ufuncs if isinstance(theirs, np.ufunc) else theirs in PLAIN
            assert known or functions[theirs] is function
    assert np.linalg.norm in functions


def test_norm_is_that_of_numpy():
    values = np.array([[3.0, -4.0], [1.0, 2.0]])
    for options in ({}, {"axis": 1}, {"ord": 1, "axis": 0}, {"ord": np.inf, "axis": 1}):
        found = np.linalg.norm(tf.constant(values), **options)
        np.testing.assert_allclose(found.numpy(), np.linalg.norm(values, **options))
    kept = np.linalg.norm(tf.constant(values), axis=0, keepdims=True)
    assert kept.shape == (1, 2)


# Gather with shared axes; adjoints of indexing --------------------------------------------------


@pytest.mark.parametrize("axis", [1, 2, -1])
def test_gather_that_goes_through_axes_together(axis):
    x = np.arange(24.0).reshape(2, 3, 4)
    indices = np.array([[2, 0], [1, -1]])
    tensor = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        found = tf.gather(tensor, indices, axis=axis, batch_dims=1)
    expected = np.stack([np.take(x[i], indices[i], axis % 3 - 1) for i in range(2)])
    np.testing.assert_array_equal(found.numpy(), expected)
    counts = np.zeros_like(x)
    for i in range(2):
        for one in indices[i]:
            counts[(i, *[slice(None)] * (axis % 3 - 1), one)] += 1
    np.testing.assert_array_equal(tape.gradient(found, tensor).numpy(), counts)


def test_gather_through_no_elements():
    found = tf.gather(tf.ones((0, 3, 2)), np.zeros((0, 4), np.int64), batch_dims=1)
    assert found.shape == (0, 4, 2)


@pytest.mark.parametrize("count", [2, 3, -1])
def test_gather_refuses_axes_that_are_not_shared(count):
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"axes of shapes .* must agree"):
        tf.gather(tf.ones((2, 3, 4)), [[0], [1]], axis=2, batch_dims=count)


@pytest.mark.parametrize(
    "key",
    [
        (np.array([5, -1, 5]),),
        (np.array([[1], [0]]), np.array([2, 2])),
        (np.array([1, 0]), slice(None), np.array([3, 3])),
        (slice(None), np.array([2, 2]), np.array([0, 1])),
        (0, slice(1, 3), np.array([3, 3])),
        (..., np.array([1, 1, 0])),
        (np.array([0, 0]), None, 1),
        (np.arange(6) % 2 == 0, np.array([1, 1, 0])),
        (np.ones((6, 3), bool),),
        (np.array(True),),
        (np.array(False), ...),
        (np.zeros(0, np.int64), np.zeros(0, np.int64)),
        (slice(None, None, -2), ..., 1),
    ],
    ids=str,
)
def test_the_gradient_of_an_index_adds_up_what_repeats(key):
    x = np.random.default_rng(3).normal(size=(6, 3, 4))
    tensor = tf.constant(x)
    weights = np.random.default_rng(4).normal(size=x[key].shape)
    with tf.GradientTape() as tape:
        tape.watch(tensor)
        found = tensor[key]
    expected = np.zeros_like(x)
    np.add.at(expected, key, weights)
    np.testing.assert_array_equal(found.numpy(), x[key])
    gradient = tape.gradient(found, tensor, output_gradients=tf.constant(weights))
    np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-14)
