"""Declarations of arguments: what passes, and what errors say."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises
from tinygrad_cg._core.kinds import COMPLEX, INTEGERS, REAL
from tinygrad_cg._ops import validation

pytestmark = pytest.mark.quick

INVALID = tf.errors.InvalidArgumentError


def test_counts_have_a_least_value():
    assert validation.as_count("f", "k", np.int64(0)) == 0
    assert validation.as_count("f", "k", 2, 2) == 2
    assert_raises(INVALID, "f: k must not be negative, got -1", validation.as_count, "f", "k", -1)
    assert_raises(INVALID, "f: k must be at least 2, got 1", validation.as_count, "f", "k", 1, 2)
    assert_raises(TypeError, "f: k must be an integer", validation.as_count, "f", "k", 1.5)


def test_choices_are_listed():
    assert validation.as_choice("f", "mode", "b", ("a", "b")) == "b"
    words = "f: mode must be one of 'a', 'b' or None, got 'c'"
    assert_raises(INVALID, words, validation.as_choice, "f", "mode", "c", ("a", "b", None))
    words = "f: norm must be one of None, got 'ortho'"
    assert_raises(INVALID, words, validation.as_choice, "f", "norm", "ortho", (None,))


def test_shapes_have_names():
    x, y = tf.ones([2, 3]), tf.ones([5, 3])
    sizes = validation.check_shapes("f", {"x": (x, "rows size"), "y": (y, "others size")})
    assert sizes == {"rows": 2, "size": 3, "others": 5}
    assert validation.check_shapes("f", {"x": (tf.ones([4, 2, 3]), "... 2 n")}) == {"n": 3}
    assert validation.check_shapes("f", {"x": (x, "rows size")}, rows=2)["size"] == 3
    assert validation.check_shapes("f", {"x": (tf.ones([]), "")}) == {}


@pytest.mark.parametrize(
    ("operands", "known", "words"),
    [
        ({"x": ([2, 3], "rows")}, {}, "x must have shape (rows,); got (2, 3)"),
        ({"x": ([3], "... rows size")}, {}, "x must have shape (..., rows, size); got (3,)"),
        ({"x": ([2, 3], "n n")}, {}, "x must have shape (n, n); got (2, 3)"),
        ({"x": ([2, 3], "rows 2")}, {}, "x must have shape (rows, 2); got (2, 3)"),
        ({"x": ([2, 3], "rows n")}, {"n": 4}, "x must have shape (rows, n = 4); got (2, 3)"),
        (
            {"x": ([2, 3], "rows size"), "y": ([3, 3], "rows size")},
            {},
            "x must have shape (rows, size), y must have shape (rows, size); got (2, 3) and (3, 3)",
        ),
    ],
)
def test_shapes_that_do_not_fit(operands, known, words):
    tensors = {name: (tf.ones(shape), axes) for name, (shape, axes) in operands.items()}
    assert_raises(INVALID, re.escape(f"f: {words}"), validation.check_shapes, "f", tensors, **known)


def test_kinds_are_those_of_records():
    x = tf.ones([2])
    validation.check_kind("f", "x", x, REAL)
    assert_raises(
        INVALID, "f: x must be integers, got float32", validation.as_integers, "f", "x", x
    )
    words = "f: x must be complex numbers, got float32; cast it"
    check = validation.check_kind
    assert_raises(TypeError, words, check, "f", "x", x, COMPLEX, "cast it", TypeError)
    assert validation.as_integers("f", "x", [1]).dtype == tf.int32
    assert_raises(INVALID, "must be integers", check, "f", "x", x, INTEGERS)


def test_one_shape_and_broadcasting():
    x, y = tf.ones([2]), tf.ones([2, 1])
    validation.check_same_shape("f", "x", x, "y", x)
    words = re.escape("f: x must have the shape of y, (2, 1), got (2,)")
    assert_raises(INVALID, words, validation.check_same_shape, "f", "x", x, "y", y)
    validation.check_broadcast("f", "x", (1, 3), (2, 3))
    words = re.escape("f: x of shape (2, 3) does not broadcast to shape (1, 3)")
    assert_raises(INVALID, words, validation.check_broadcast, "f", "x", (2, 3), (1, 3))
    words = re.escape("f: shapes (4,) and (3,) do not broadcast")
    assert_raises(INVALID, words, validation.check_broadcast, "f", "x", (4,), (3,))
