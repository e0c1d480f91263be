"""Errors of arguments name the function, the argument and the remedy."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_raises

pytestmark = pytest.mark.quick

INVALID = tf.errors.InvalidArgumentError


MATRIX = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda: tf.broadcast_to([1.0], (-1,)), INVALID, r"broadcast_to: .*negative.*\(-1,\)"),
        (lambda: tf.zeros([-1]), INVALID, r"zeros: .*negative.*\(-1,\)"),
        (lambda: tf.ones([2, -3]), INVALID, r"ones: .*negative.*\(2, -3\)"),
        (lambda: tf.fill([-1], 1.0), INVALID, r"fill: .*negative"),
        (lambda: tf.constant(1.0, shape=[-1]), INVALID, "constant: .*negative"),
        (lambda: tf.eye(-1), INVALID, "eye: .*negative, got -1"),
        (lambda: tf.eye(2, -1), INVALID, "eye: columns .*negative, got -1"),
        (lambda: tf.range(tf.constant([1, 2])), INVALID, r"range: stop .*scalar.*\(2,\)"),
        (lambda: tf.range(0, 5, [1]), INVALID, r"range: step .*scalar.*\(1,\)"),
        (lambda: tf.range(0.0, np.nan), INVALID, "range: .*finite"),
        (lambda: tf.range("a"), TypeError, "unsupported type"),
        (lambda: tf.linspace([0.0, 1.0], [1.0, 2.0, 3.0], 3), INVALID, r"linspace: .*\(2,\)"),
        (lambda: tf.constant(2**70), OverflowError, f"{2**70} does not fit into int64"),
        (lambda: tf.constant([1, 2**70]), OverflowError, f"{2**70} does not fit into int64"),
        (lambda: tf.constant([1.0]) * 10**400, OverflowError, "too large for float32.*inf"),
        (lambda: 10**400 + tf.constant([1.0]), OverflowError, "too large for float32.*inf"),
        (lambda: tf.constant([1.0]) ** 10**400, OverflowError, "too large for float32"),
        (lambda: tf.constant([1], tf.int8) + 300, OverflowError, "300 does not fit into int8"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0], [0], [1]]), INVALID, "tensordot: .*3 parts"),
        (lambda: tf.tensordot(MATRIX, MATRIX, 5), INVALID, "tensordot: axes is 5.*2 dimensions"),
        (lambda: tf.tensordot(MATRIX, MATRIX, -1), INVALID, "tensordot: axes is -1"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0, 1], [0]]), INVALID, "tensordot: .*equally"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [[0, 0], [0, 1]]), INVALID, "tensordot: .*once"),
        (lambda: tf.tensordot(MATRIX, MATRIX, "a"), TypeError, "tensordot: axes .*integer"),
        (lambda: tf.tensordot(MATRIX, MATRIX, [["a"], [0]]), TypeError, "tensordot: .*integer"),
        (lambda: tf.linalg.matvec(MATRIX, [1.0, 2.0], True, True), INVALID, "matvec: transpose"),
        (lambda: tf.matmul(MATRIX, MATRIX, True, adjoint_a=True), INVALID, "matmul: transpose"),
    ],
)
def test_errors_name_function_argument_and_remedy(function, error, words):
    assert_raises(error, words, function)
