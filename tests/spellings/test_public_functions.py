"""Every public function has a text of its own; NumPy's function of its name is recorded by it."""

import importlib
import inspect
import re
from types import FunctionType

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg import _ops as ops
from tinygrad_cg._ops.namespaces.namespace import spelled
from tinygrad_cg._ops.protocol import ANSWERED_BY_NUMPY, functions, ufuncs

pytestmark = pytest.mark.quick

NAMESPACES = (
    *(
        "",
        "._ops.namespaces.arrays",
        ".math",
        ".linalg",
        ".nn",
        ".bitwise",
        ".random",
        ".dtypes",
        ".numpy",
        ".numpy.random",
    ),
    *(".keras.ops", ".keras.random", ".keras.losses", ".compat.v1", ".contrib.eager"),
)


ops.load_all()
OPERATIONS = {
    name
    for module in vars(ops).values()
    if getattr(module, "__name__", "").startswith(f"{ops.__name__}.")
    for name, value in vars(module).items()
    if callable(value)
}


def public(namespace):
    """The functions that a module offers, by name."""
    module = importlib.import_module(f"tinygrad_cg{namespace}")
    public = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in public.items() if isinstance(value, FunctionType)}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_every_function_says_what_it_does(namespace):
    for name, function in public(namespace).items():
        first = (function.__doc__ or "").split("\n")[0]
        assert first, f"{namespace}.{name} has no text"
        assert not re.search(r"(?<!\w)_[a-z]\w*\(", function.__doc__), (
            f"{namespace}.{name}: private"
        )


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_texts_speak_of_parameters_that_there_are(namespace):
    for name, function in public(namespace).items():
        is_own = function.__module__ == f"tinygrad_cg{namespace}"
        mentioned = set(re.findall(r"(?<!`)`([a-z_]\w*)`(?!`)", function.__doc__ or ""))
        names = OPERATIONS | set(inspect.signature(function).parameters)
        assert not is_own or mentioned <= names, f"{namespace}.{name}: {mentioned - names}"


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (tf.argmax, "largest"),
        (tf.math.argmin, "smallest"),
        (tf.shape, "shape of `input`"),
        (tf.rank, "number of dimensions"),
        (tf.size, "number of elements"),
        (tf.math.log_sigmoid, "logarithm of sigmoid(x)"),
        (tf.math.squared_difference, "(x - y) squared"),
        (tf.math.reciprocal, "1 / x"),
        (tf.math.softplus, "log(1 + exp(features))"),
        (tf.clip_by_value, "`t` limited to [clip_value_min, clip_value_max]"),
        (tf.keras.ops.argmax, "positions (int32)"),
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


def test_a_function_takes_the_text_of_its_operation_in_its_own_names():
    minus = spelled(lambda a, b: tf.subtract(a, b), "minus", tf.subtract)
    assert minus.__doc__.startswith("Return a - b")
    assert "Examples" not in minus.__doc__
    assert (minus.__name__, minus.__qualname__) == ("minus", "minus")

    def own(a):
        """One less than `a`, negated."""
        return tf.subtract(1, a)

    assert spelled(own, "other").__doc__ == "One less than `a`, negated."


def test_each_numpy_function_that_is_spelled_here_is_recorded():
    for name, function in public(".numpy").items():
        theirs = getattr(np, name, None)
        if theirs is not None:
            is_same = (
                theirs in ufuncs if isinstance(theirs, np.ufunc) else theirs in ANSWERED_BY_NUMPY
            )
            assert is_same or functions[theirs] is function
    assert np.linalg.norm in functions
