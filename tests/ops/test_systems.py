"""Systems with few diagonals and from LU factors, complex numbers from parts, counts: all modes."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.modes import assert_right_in_all_modes
from tests.support.orders import assert_raises
from tinygrad_cg.errors import InvalidArgumentError
from tinygrad_cg.keras import ops

linalg = tf.linalg
RNG = np.random.default_rng(3)
BANDS = RNG.normal(size=(3, 5)) + np.array([[0.0], [0.5], [0.0]])
RIGHT = RNG.normal(size=(5, 2))
MATRIX = RNG.normal(size=(2, 4, 4))


def dense(bands, lower=True):
    """The triangular matrix whose bands are the main diagonal and its neighbours."""
    count, size = bands.shape
    if lower:
        return sum(np.diag(bands[k, k:], -k) for k in range(count))
    return sum(np.diag(bands[count - 1 - k, : size - k], k) for k in range(count))


@pytest.mark.quick
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_many_and_few_systems_have_the_same_solutions(dtype):
    """Many are eliminated on arrays, few on numbers; both swap rows for larger pivots."""
    kind = np.dtype(dtype)
    bands = RNG.normal(size=(30, 3, 6)).astype(kind)
    bands[::2, 1, 0] = 0  # without a swap this would be a division by 0
    if kind.kind == "c":
        bands = bands + 1j * RNG.normal(size=bands.shape).astype(kind)
        bands[::2, 1, 0] = 0
    right = RNG.normal(size=(30, 6, 2)).astype(kind)
    result = linalg.tridiagonal_solve(bands, right)
    assert result.dtype == kind
    tolerance = 1e-4 if kind in ("float32", "complex64") else 1e-9
    for i in range(3):
        alone = linalg.tridiagonal_solve(bands[i], right[i]).numpy()
        np.testing.assert_allclose(result.numpy()[i], alone, rtol=tolerance / 100)
    matrices = np.stack(
        [np.diag(b[1]) + np.diag(b[0, :-1], 1) + np.diag(b[2, 1:], -1) for b in bands]
    ).astype(kind.char.upper() if kind.kind == "c" else "d")
    expected = np.linalg.solve(matrices, right.astype(matrices.dtype))
    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(
        linalg.tridiagonal_matmul(bands, result).numpy(), right, rtol=0, atol=20 * tolerance
    )


@pytest.mark.quick
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_banded_systems(lower, adjoint):
    bands = BANDS + 1j * BANDS[::-1]
    matrix = dense(bands, lower)
    matrix = matrix.conj().T if adjoint else matrix
    result = linalg.banded_triangular_solve(bands, RIGHT, lower, adjoint).numpy()
    np.testing.assert_allclose(matrix @ result, RIGHT, atol=1e-11)
    many = linalg.banded_triangular_solve(np.stack([bands] * 12), RIGHT, lower, adjoint).numpy()
    np.testing.assert_array_equal(many[7], result)


FUNCTIONS = {
    "sequence": lambda x, y: linalg.tridiagonal_solve(
        [x[0, :-1], x[1], x[2, 1:]], y[:, 0], "sequence"
    ),
    "matrix": lambda x, y: linalg.tridiagonal_solve(
        tf.matmul(x, x, transpose_a=True), tf.transpose(y), "matrix", transpose_rhs=True
    ),
    "product": lambda x, y: linalg.tridiagonal_matmul(x, y) ** 2,
    "upper": lambda x, y: linalg.banded_triangular_solve(x, y, lower=False),
    "adjoint": lambda x, y: linalg.banded_triangular_solve(x, y, adjoint=True),
    "diagonals": lambda x, y: linalg.set_diag(
        linalg.diag(x, k=(-1, 1), align="LEFT_RIGHT") ** 2,
        linalg.diag_part(tf.matmul(y, y, transpose_b=True), k=(-3, -2)),
        k=(-3, -2),
    ),
    "eigenvalues": lambda x, y: linalg.eigh_tridiagonal(x[0], y[:4, 0]),
    "eigenvectors": lambda x, y: (
        linalg.eigh_tridiagonal(x[0], y[:4, 0], False, "i", (1, 2))[1] ** 2
    ),
    "complex": lambda x, y: tf.abs(tf.complex(x[:, :2], y[:3]) ** 2),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_in_all_modes(name):
    assert_right_in_all_modes(FUNCTIONS[name], BANDS, RIGHT)


LU_FUNCTIONS = [
    lambda x, y: linalg.lu_solve(*linalg.lu(x), y),
    lambda x, y: linalg.lu_matrix_inverse(*linalg.lu(x)) * y[0, 0],
    lambda x, y: linalg.lu_reconstruct(*linalg.lu(x)) ** 2 * y[0, 0],
]


@pytest.mark.parametrize("function", LU_FUNCTIONS)
def test_from_lu_factors_in_all_modes(function):
    assert_right_in_all_modes(function, MATRIX, RIGHT[:4])
    assert_right_in_all_modes(function, MATRIX[0], RIGHT[:4])


def test_lu_factors_give_the_matrix_back():
    factors, order = linalg.lu(MATRIX)
    np.testing.assert_allclose(linalg.lu_reconstruct(factors, order), MATRIX, atol=1e-14)
    inverse = linalg.lu_matrix_inverse(factors, order)
    np.testing.assert_allclose(inverse, np.linalg.inv(MATRIX), rtol=1e-11)
    result = linalg.lu_solve(factors, order, RIGHT[:4])
    np.testing.assert_allclose(result, np.linalg.solve(MATRIX, RIGHT[:4]), rtol=1e-10)


def test_eigenvectors_of_tridiagonal_matrices():
    values, vectors = linalg.eigh_tridiagonal(BANDS[0] + 0j, 1j * BANDS[1, 1:], eigvals_only=False)
    matrix = np.diag(BANDS[0] + 0j) + np.diag(1j * BANDS[1, 1:], 1) - np.diag(1j * BANDS[1, 1:], -1)
    np.testing.assert_allclose(
        matrix @ vectors.numpy(), vectors.numpy() * values.numpy(), atol=1e-12
    )
    assert linalg.eigh_tridiagonal([3.0], np.zeros(0, np.float32)).numpy().tolist() == [3.0]


@pytest.mark.quick
def test_complex_numbers_have_the_parts_that_they_are_made_of():
    """Products with 1j would make a NaN of an infinity, and lose the sign of a zero."""
    parts = np.array([[1.0, np.inf], [-np.inf, 2.0], [-0.0, -0.0], [np.nan, 1.0]])
    whole = parts[:, 0] + 1j * np.zeros(4)
    whole.imag, whole.real = parts[:, 1], parts[:, 0]
    for result in (
        tf.complex(parts[:, 0], parts[:, 1]),
        ops.view_as_complex(parts),
        tf.function(tf.complex)(tf.constant(parts[:, 0]), tf.constant(parts[:, 1])),
    ):
        assert result.numpy().tobytes() == whole.tobytes()
    angles = ops.polar(np.array([np.inf, 2.0]), np.array([0.5, np.pi])).numpy()
    assert angles[0] == complex(np.inf, np.inf)
    assert angles[1] == pytest.approx(-2.0)
    assert tf.complex(np.float16(1), np.float16(2)).dtype == tf.complex64
    assert tf.complex(1, 2).dtype == tf.complex128


def test_weights_of_counts_have_gradients():
    counted = [2, 0, 2, 5]
    weights = RNG.normal(size=4)
    assert_right_in_all_modes(lambda w: tf.math.bincount(counted, w, maxlength=4) ** 2, weights)
    assert_right_in_all_modes(
        lambda w: tf.math.confusion_matrix(counted, counted[::-1], 6, w, tf.float64) ** 3, weights
    )
    assert_right_in_all_modes(lambda c, x: tf.math.polyval([c, 2.0, c * c], x), weights, weights)


def test_permutations_are_inverted_where_nothing_has_values():
    x = np.array([[1, 2, 0], [2, 1, 0]])
    expected = np.argsort(x, -1)
    np.testing.assert_array_equal(tf.vmap(tf.math.invert_permutation)(x), expected)
    compiled = tf.function(tf.math.invert_permutation)
    np.testing.assert_array_equal(compiled(tf.constant(x[0])), expected[0])
    assert_raises(InvalidArgumentError, "each of 0 to 2 once", compiled, tf.constant([0, 0, 1]))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("must have shape (..., 3, m)", lambda: linalg.tridiagonal_solve(np.eye(2), np.ones(2))),
        ("sequence of 3", lambda: linalg.tridiagonal_solve([np.ones(2)], np.ones(2), "sequence")),
        (
            "(..., m - 1), got [(1,), (3,), (2,)]",
            lambda: linalg.tridiagonal_matmul([[1], [1, 2, 3], [1, 2]], RIGHT, "sequence"),
        ),
        ("'compact', 'sequence'", lambda: linalg.tridiagonal_matmul(BANDS, RIGHT, "dense")),
        (
            "perturb_singular is not supported",
            lambda: linalg.tridiagonal_solve(BANDS, RIGHT, perturb_singular=True),
        ),
        ("(..., n - 1), got (3,) and (3,)", lambda: linalg.eigh_tridiagonal([1, 2, 3], [1, 2, 3])),
        ("select must be", lambda: linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="b")),
        (
            "two indices from 0 to 1",
            lambda: linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="i", select_range=(1, 2)),
        ),
        (
            "needs a single matrix",
            lambda: linalg.eigh_tridiagonal(
                np.ones((2, 2)), np.ones((2, 1)), select="v", select_range=(0, 1)
            ),
        ),
        ("must have shape (2, 4)", lambda: linalg.lu_solve(MATRIX, [0, 1], RIGHT)),
        ("rhs must have shape (..., n, k)", lambda: linalg.lu_solve(*linalg.lu(MATRIX), RIGHT)),
        ("the lowest and the highest", lambda: linalg.diag_part(MATRIX, k=(1, 0))),
        ("align must be one of", lambda: linalg.diag_part(MATRIX, k=(0, 1), align="LEFT")),
        (
            "must have shape (..., 2, 4); got (2, 3)",
            lambda: linalg.set_diag(MATRIX[0], np.ones((2, 3)), k=(0, 1)),
        ),
        ("have no diagonal 4", lambda: linalg.diag_part(MATRIX, k=(3, 4))),
        ("negative values: -1 at (1,)", lambda: tf.math.bincount([1, -1])),
        ("arr must be integers", lambda: tf.math.bincount([1.5])),
        ("axis must be None or 0", lambda: tf.math.bincount([[1]], axis=1)),
        ("takes no weights", lambda: tf.math.bincount([1], [1.0], binary_output=True)),
        ("weights must have the shape", lambda: tf.math.bincount([1], [1.0, 2.0])),
        ("out of bound", lambda: tf.math.confusion_matrix([1, 2], [0, 1], 2)),
        ("weights must have the shape", lambda: tf.math.confusion_matrix([1], [0], 2, [1.0, 2.0])),
        ("coeffs must be a list", lambda: tf.math.polyval(tf.constant([1.0]), 2.0)),
        ("that increases", lambda: tf.histogram_fixed_width([1.0], [2.0, 2.0])),
        ("contain NaN", lambda: tf.histogram_fixed_width([np.nan], [1.0, 2.0])),
        ("x must be integers", lambda: tf.math.invert_permutation([0.0])),
        ("must have the same length", lambda: tf.required_space_to_batch_paddings([1], [2, 3])),
    ],
)
def test_what_does_not_fit_is_refused(words, call):
    assert_raises(InvalidArgumentError, re.escape(words), call)


def test_complex_parts_are_real():
    assert_raises(TypeError, "must be real numbers", tf.complex, 1j, 2.0)


@pytest.mark.quick
@pytest.mark.parametrize("limits", [{}, {"minlength": 8}, {"maxlength": 2}, {"maxlength": 0}])
@pytest.mark.parametrize("x", [[1, 1, 5, 0], [[1, 0], [2, 2]], [], 3])
def test_counts_are_sums_of_weights_of_1(x, limits):
    weights = np.ones(np.shape(x), np.int32)
    counts = tf.math.bincount(x, **limits)
    assert counts.dtype == tf.int32
    np.testing.assert_array_equal(counts, tf.math.bincount(x, weights, **limits))
    occurs = tf.math.bincount(x, binary_output=True, **limits)
    np.testing.assert_array_equal(occurs, np.minimum(counts, 1))


@pytest.mark.parametrize("shape", [(3, 3), (2, 5), (5, 2), (2, 3, 4), (1, 1)])
def test_each_diagonal_is_that_of_numpy(shape):
    x = RNG.normal(size=shape)
    for turned in (x, np.swapaxes(x, -1, -2)):
        height, width = turned.shape[-2:]
        for k in range(1 - height, width):
            expected = np.diagonal(turned, k, -2, -1)
            np.testing.assert_array_equal(linalg.diag_part(turned, k=k), expected)
            gradient = tf.grad(lambda x, k=k: tf.reduce_sum(linalg.diag_part(x, k=k) ** 2))(turned)
            mask = np.eye(height, width, k, dtype=bool)
            np.testing.assert_array_equal(gradient, np.where(mask, 2 * turned, 0))
