"""Operations in programs that Numba code calls: all of them, or an error with the name."""

import math

import numba
import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.op_cases import examples, names
from tinygrad_cg._function.fusion.fuse import Fusion
from tinygrad_cg._function.fusion.lower import Lowering
from tinygrad_cg._function.fusion.nodes import OpaqueNode

REFUSED = """
    candidates complement complex_of_pairs determinant_phase eig eigvals expm fft gradient_by_values
    banded_triangular_solve check_limits direction_of_values irfft isotonic_blocks
    limits_of_quotients logm lstsq lu lu_order lu_pivots near_values nextafter pinv rfft sign_bit
    sqrtm tridiagonal_solve weights_of_limits without_limits zero_values
"""
"""Operations without a form in Numba code."""
GROUP = 8
L = tf.linalg


def call_of(example):
    return lambda *tensors: example.call(*tensors)


def has_call(example):
    """Return whether the program of an example has an operation on whole arrays."""
    program = tf.function(call_of(example)).get_concrete_function(
        *map(tf.constant, example.operands)
    )
    return any(isinstance(node, OpaqueNode) for node in Fusion(Lowering(program.graph)).nodes)


CALLED = [
    example
    for name in names()
    if name not in REFUSED.split()
    for example in examples(name)[:1]
    if has_call(example)
]


def same(results, expected, rtol=1e-12):
    for ours, theirs in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        theirs = np.asarray(theirs)
        assert np.shape(ours) == theirs.shape
        assert np.asarray(ours).dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("start", range(0, len(CALLED), GROUP))
def test_values(start):
    group = CALLED[start : start + GROUP]
    sizes = [len(example.operands) for example in group]

    def every(*tensors):
        rest = iter(tensors)
        pairs = zip(group, sizes, strict=True)
        return [example.call(*[next(rest) for _ in range(size)]) for example, size in pairs]

    arrays = [operand for example in group for operand in example.operands]
    program = tf.function(every)
    compiled = program.numba(*arrays)
    same(compiled(*[x if x.ndim else x[()] for x in arrays]), program(*map(tf.constant, arrays)))


@pytest.mark.parametrize("name", REFUSED.split())
def test_others_are_refused_by_name(name):
    for example in examples(name)[:1]:
        program = tf.function(call_of(example))
        label = example.primitive.label or name
        with pytest.raises(tf.errors.UnsupportedCodeError, match=rf"`{label}` is not supported"):
            program.numba(*example.operands)


def unpacked(f, *tensors):
    return tf.reduce_sum(tf.sin(f(*tensors)))


SQUARE = np.cos(np.arange(16.0)).reshape(4, 4) + 3 * np.eye(4)
GRADIENTS = {
    "factors": [
        lambda m: L.cholesky(m @ tf.transpose(m)),
        lambda m: L.cholesky_solve(L.cholesky(m @ tf.transpose(m)), m),
        lambda m: L.eigh(m + tf.transpose(m))[1] ** 2,
        lambda m: L.svd(m)[1],
        lambda m: L.qr(m)[0],
    ],
    "systems": [
        lambda m: L.solve(tf.stack([m, m @ m]), m[:, :2]),
        lambda m: L.triangular_solve(m, m),
        lambda m: L.inv(tf.stack([m, m @ m])),
        L.det,
        lambda m: L.slogdet(m)[1],
    ],
    "products": [
        lambda m: tf.einsum("ij,jk,kl->il", m, m, m),
        lambda m: tf.einsum("aij,akj->aik", *[tf.reshape(m, (4, 2, 2))] * 2),
        lambda m: tf.tensordot(
            tf.reshape(m, (2, 2, 4)), tf.reshape(m, (4, 2, 2)), [[2, 1], [0, 1]]
        ),
        lambda m: tf.nn.conv2d(
            tf.reshape(m, (1, 4, 4, 1)), tf.reshape(m[:2, :2], (2, 2, 1, 1)), 1, "SAME"
        ),
    ],
    "indices": [
        lambda m: tf.gather(m, tf.argsort(m[0])),
        lambda m: tf.scatter_nd(tf.argsort(m[0])[:, None], m, (6, 4)),
        lambda m: tf.math.unsorted_segment_sum(m, tf.argsort(m[0]), 5),
        lambda m: tf.math.top_k(m, 2)[0],
        lambda m: tf.cumsum(tf.sort(m, axis=0), axis=1),
        lambda m: tf.pad(m, [[1, 0], [0, 2]]),
    ],
}


@pytest.mark.parametrize("family", GRADIENTS)
def test_gradients(family):
    program = tf.function(
        tf.value_and_grad(lambda m: sum(unpacked(f, m) for f in GRADIENTS[family]))
    )
    same(program.numba(SQUARE)(SQUARE), program(tf.constant(SQUARE)), 1e-9)


def test_casts():
    program = tf.function(lambda x: (tf.cast(x, tf.int64), tf.cast(x > 0, tf.int32)))
    x = np.array([-1.5, 0.5, 2.5])
    same(program.numba(x)(x), program(tf.constant(x)))


def test_second_order_of_a_determinant():
    program = tf.function(tf.hessian(L.det))
    same(program.numba(SQUARE)(SQUARE), program(tf.constant(SQUARE)), 1e-9)


def test_matrices_that_fail():
    compiled = tf.function(L.cholesky).numba(SQUARE)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        compiled(-SQUARE)
    compiled = tf.function(L.triangular_solve).numba(SQUARE, SQUARE)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        compiled(np.diag([1.0, 0.0, 1.0, 1.0]), SQUARE)
    compiled = tf.function(lambda x, i: tf.gather(x, i)).numba(np.ones(3), np.zeros(1, int))
    with pytest.raises(IndexError, match="out of range"):
        compiled(np.ones(3), np.array([3]))


@tf.differentiable
def length(x, y):
    total = 0.0
    for i in range(1, len(x)):
        total += np.sqrt((x[i] - x[i - 1]) ** 2 + (y[i] - y[i - 1]) ** 2)
    return total


def test_functions_of_differentiable():
    x = np.linspace(0.5, 1.5, 4)
    program = tf.function(tf.value_and_grad(lambda x: length(2 * x, tf.sin(x))))
    same(program.numba(x)(x), program(tf.constant(x)))


def test_kernels_of_users():
    @numba.njit
    def powers(x, exponent):
        out, total = np.empty_like(x), 0.0
        for k in range(len(x)):
            total += x[k] ** exponent
            out[k] = total
        return out

    def step(x, y):
        return math.hypot(x, y), x > y

    summed = tf.primitive("NumbaSums", powers)
    both = tf.primitive("NumbaPair", step, elementwise=True)
    x = np.linspace(0.5, 1.5, 4)
    program = tf.function(lambda x: (summed(x, exponent=2) * 2, *both(x, x[::-1])))
    same(program.numba(x)(x), program(tf.constant(x)))


def test_python_code_is_refused_with_its_line():
    kernel = tf.primitive("NumbaRefused", lambda x: x + 1)

    def looped(x):
        for _ in tf.range(3):
            x = kernel(x) * 2
        return x

    for f, name in (
        (lambda x: kernel(x) * 2, "NumbaRefused"),
        (looped, "NumbaRefused"),
        (lambda x: tf.numpy_function(lambda y: y + 1, [x], tf.float64), "numpy_function"),
        (lambda x: tf.math.real(tf.signal.rfft(x)), "rfft"),
    ):
        message = rf"`{name}` is not supported.* called in .*test_numba_operations.py"
        with pytest.raises(tf.errors.UnsupportedCodeError, match=message):
            tf.function(f).numba(np.ones(2))
    with pytest.raises(ValueError, match=r"`numba` .*need fixed sizes"):
        tf.function(tf.sin).numba(tf.TensorSpec((None,), tf.float64))


def test_a_label_outside_the_classes_is_refused():
    def loss(x, labels):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)

    x, labels = np.zeros((2, 3)), np.array([0, 2])
    compiled = tf.function(loss).numba(x, labels)
    np.testing.assert_allclose(compiled(x, labels), [np.log(3)] * 2)
    for label in (3, -1):
        with pytest.raises(ValueError, match="a label is outside the classes"):
            compiled(x, np.array([0, label]))
