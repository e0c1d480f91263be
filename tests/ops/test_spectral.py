"""Eigenvalues, singular values and functions of matrices: complex, equal values, all modes."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.op_cases import numeric_gradients
from tests.support.orders import assert_raises
from tinygrad_cg._ops import eigenvectors, factorizations, norms
from tinygrad_cg.errors import DerivativeWarning, InvalidArgumentError, MatrixError
from tinygrad_cg_kernels.linear import blas, products

linalg = tf.linalg
RNG = np.random.default_rng(5)
COMPLEX = RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))
TALL = RNG.normal(size=(4, 2)) + 1j * RNG.normal(size=(4, 2))
MIX = RNG.normal(size=(4, 4))
POSITIVE = COMPLEX @ COMPLEX.conj().T + np.eye(3)
TURN = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
EQUAL = TURN @ np.diag([2.0, 2.0, 5.0]) @ TURN.T
WAY = RNG.normal(size=(3, 3))
WAY = WAY + WAY.T


def sizes(x):
    """Squares of sizes, which no phase changes."""
    return tf.math.real(x * tf.math.conj(x))


def mixed(x):
    rows = x.shape[-2]
    return sizes(tf.matmul(tf.cast(tf.constant(MIX[:rows, :rows]), x.dtype), x))


def each(values, *others):
    """All elements in one vector, of complex ones both parts."""
    parts = [values, *others]
    flat = [
        tf.reshape(part, (-1,)) for tensor in parts for part in (tf.math.real(tensor), imag(tensor))
    ]
    return tf.concat(flat, 0)


def imag(x):
    return tf.math.imag(x) if x.dtype.kind == "c" else 0 * x


def factors_of_svd(x):
    values, left, right = linalg.svd(x)
    weights = tf.cast(tf.constant(MIX[0, : values.shape[-1]]), left.dtype)
    return each(values, mixed(left), sizes(tf.matmul(left * weights, linalg.adjoint(right))))


def outside(basis):
    """The projection on what all columns but the first span."""
    return tf.matmul(basis[:, 1:], linalg.adjoint(basis[:, 1:]))


COMPLEX_CASES = [
    (lambda x: each(linalg.eigvalsh(x), mixed(linalg.eigh(x)[1])), POSITIVE),
    (lambda x: each(sizes(linalg.eigvals(x) + 0.5j), mixed(linalg.eig(x)[1])), COMPLEX),
    (factors_of_svd, COMPLEX),
    (factors_of_svd, TALL),
    (factors_of_svd, TALL.T),
    (lambda x: each(*linalg.qr(x)), TALL),
    (lambda x: each(*linalg.qr(x)), TALL.T),
    (lambda x: each(MIX * outside(linalg.qr(x, full_matrices=True)[0])), TALL[:, :1]),
    (lambda x: each(*eigenvectors.lu_factors(x)), TALL),
    (lambda x: each(*eigenvectors.lu_factors(x)), TALL.T),
    (lambda x: each(linalg.cholesky(x)), POSITIVE),
    (lambda x: each(*linalg.slogdet(x)), COMPLEX),
    (lambda x: each(linalg.expm(x)), COMPLEX),
    (lambda x: each(linalg.sqrtm(x), linalg.logm(x)), POSITIVE + 0.3j * WAY),
    (lambda x: each(linalg.pinv(x)), TALL),
    (lambda x: each(linalg.lstsq(x, TALL * 1j)), TALL),
    (lambda x: each(linalg.triangular_solve(x, TALL[:3], lower=False, adjoint=True)), COMPLEX),
    (lambda x: each(linalg.cholesky_solve(x, TALL[:3])), COMPLEX),
    (lambda x: each(norms.matrix_norm(x, "nuc"), norms.matrix_norm(x, 2)), COMPLEX),
]


@pytest.mark.parametrize("case", COMPLEX_CASES, ids=range(len(COMPLEX_CASES)))
def test_complex_derivatives_in_all_modes(case):
    """First order by differences of values, second by those of the first, forward and reverse."""
    function, x = case
    weights = RNG.normal(size=function(tf.constant(x)).shape)
    loss = lambda x: tf.reduce_sum(function(x) * weights)
    slope = tf.grad(loss)
    expected = numeric_gradients(lambda x: loss(tf.constant(x)).numpy(), (x,), [0], 1e-6)[0]
    scale = np.abs(expected).max()
    np.testing.assert_allclose(slope(tf.constant(x)).numpy(), expected, rtol=0, atol=1e-7 * scale)
    way = MIX[: x.shape[0], : x.shape[1]] + 1j * MIX.T[: x.shape[0], : x.shape[1]]
    ahead, behind = (slope(tf.constant(x + step * way)).numpy() for step in (1e-6, -1e-6))
    expected = (ahead - behind) / 2e-6
    scale = np.abs(expected).max()
    _, forward = tf.jvp(slope, (tf.constant(x),), (tf.constant(way),))
    np.testing.assert_allclose(forward.numpy(), expected, rtol=0, atol=1e-6 * scale)
    product = lambda x: tf.reduce_sum(tf.math.real(slope(x) * np.conj(way)))
    reverse = tf.grad(product)(tf.constant(x)).numpy()
    np.testing.assert_allclose(reverse, forward.numpy(), rtol=0, atol=1e-9 * scale)
    batch = tf.constant(np.stack([x, x + 0.01 * way]))
    alone = np.stack([slope(matrix).numpy() for matrix in batch])
    for result in (tf.vmap(slope)(batch), unfused(tf.vmap(slope))(batch)):
        np.testing.assert_allclose(result.numpy(), alone, rtol=0, atol=1e-11 * np.abs(alone).max())


# Equal values ----------------------------------------------------------------------------------

SYMMETRIC_FUNCTIONS = [  # of eigenvalues, and the derivative of each term
    (lambda w: tf.reduce_sum(tf.exp(w)), np.exp),
    (lambda w: tf.reduce_sum(w), np.ones_like),
    (lambda w: tf.reduce_sum(tf.math.log(w)), lambda w: 1 / w),
]


@pytest.mark.quick
@pytest.mark.parametrize("x", [EQUAL, np.eye(3), np.diag([3.0, 1.0, 1.0])])
def test_symmetric_functions_of_equal_values_have_their_gradient(x):
    """Without a warning, which would be an error here."""
    values, vectors = np.linalg.eigh(x)
    for function, derivative in SYMMETRIC_FUNCTIONS:
        expected = vectors @ np.diag(derivative(values)) @ vectors.T
        for factor in (linalg.eigvalsh, lambda x: linalg.eigh(x)[0]):
            gradient = tf.grad(lambda x, f=factor, g=function: g(f(x)))(tf.constant(x))
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=1e-13, atol=1e-13)
    left, values, right = np.linalg.svd(x)
    for factor in (lambda x: linalg.svd(x, compute_uv=False), lambda x: linalg.svd(x)[0]):
        gradient = tf.grad(lambda x, f=factor: tf.reduce_sum(f(x) ** 3))(tf.constant(x))
        np.testing.assert_allclose(gradient.numpy(), left * 3 * values**2 @ right, rtol=1e-12)


@pytest.mark.quick
@pytest.mark.parametrize("factors", [linalg.eigh, linalg.eig, linalg.svd])
def test_the_gradient_of_values_alone_leaves_out_the_rule_of_vectors(factors, monkeypatch):
    """In eager mode and in a trace; the second order needs that rule."""
    calls = []
    for module in (factorizations, eigenvectors):
        whole = module.over_gaps
        monkeypatch.setattr(
            module,
            "over_gaps",
            lambda *args, whole=whole, **params: calls.append(1) or whole(*args, **params),
        )
    x = tf.constant(WAY)
    slope = tf.grad(lambda x: tf.reduce_sum(tf.math.real(factors(x)[0]) ** 3))
    first = slope(x), unfused(slope)(x)
    assert not calls
    np.testing.assert_allclose(first[0], first[1], rtol=1e-12)
    tf.grad(lambda x: tf.reduce_sum(sizes(factors(x)[1]) ** 2))(x)
    assert calls
    calls.clear()
    tf.grad(lambda x: tf.reduce_sum(slope(x) * MIX[:3, :3]))(x)
    assert calls


def test_the_trace_by_eigenvalues_has_no_second_derivative():
    trace = lambda x: tf.reduce_sum(linalg.eigvalsh(x))
    slope = tf.grad(lambda x: tf.reduce_sum(tf.grad(trace)(x) * WAY))
    np.testing.assert_allclose(slope(tf.constant(np.eye(3))).numpy(), np.zeros((3, 3)), atol=1e-13)


def _in_all_modes(function, x, way):
    """Second derivatives along `way`, twice, by mode, and whether a warning came."""
    x, v = tf.constant(x), tf.constant(way)
    gradient = tf.grad(function)
    along = lambda x: tf.reduce_sum(v * gradient(x))
    modes = {
        "reverse over reverse": lambda: tf.reduce_sum(v * tf.grad(along)(x)),
        "hessian": lambda: tf.einsum("ij,ijkl,kl->", v, tf.hessian(function)(x), v),
        "hvp": lambda: tf.reduce_sum(v * tf.hvp(function)(x, v)),
        "function": lambda: tf.reduce_sum(v * tf.function(tf.grad(along))(x)),
        "forward over reverse": lambda: tf.reduce_sum(v * tf.jvp(gradient, (x,), (v,))[1]),
        "reverse over forward": lambda: tf.reduce_sum(
            v * tf.grad(lambda x: tf.jvp(function, (x,), (v,))[1])(x)
        ),
    }
    for mode, run in modes.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield (
                mode,
                float(run()),
                any(warning.category is DerivativeWarning for warning in caught),
            )


SPECTRA = {
    "identity": np.eye(3),
    "zeros": np.zeros((3, 3)),
    "one value": np.diag([1.0, 0.0, 0.0]),
    "nearly equal": np.diag([1.0, 1.0 + 1e-13, 2.0]),
    "equal": EQUAL,
    "of lower rank": np.outer([1.0, 2.0, 3.0], [1.0, 2.0]),
    "different": np.diag([1.0, 2.0, 4.0]) + 0.25,
}


@pytest.mark.parametrize("name", SPECTRA)
def test_second_derivatives_at_equal_values(name):
    """Of the sum of squares of values, which is that of elements: twice the square of the way.

    A tape around a tangent does not know the limits, and warns.
    """
    x = SPECTRA[name]
    rng = np.random.default_rng(0)
    way = rng.normal(size=x.shape)
    of_values = {"svd": lambda x: linalg.svd(x, compute_uv=False)}
    if x.shape == (3, 3):
        way = way + way.T
        of_values |= {"eigvalsh": linalg.eigvalsh, "eigvals": linalg.eigvals}
    for kind, values in of_values.items():
        function = lambda x, values=values: tf.reduce_sum(tf.math.real(values(x) ** 2))
        for mode, derivative, warned in _in_all_modes(function, x, way):
            right = derivative == pytest.approx(2 * (way**2).sum(), rel=1e-6)
            if mode == "reverse over forward" and name != "different":
                assert right or warned, (kind, mode, derivative)
            else:
                assert right, (kind, mode, derivative)
                assert not warned, (kind, mode)


@pytest.mark.parametrize("name", ["equal", "identity", "different"])
@pytest.mark.parametrize("values", [linalg.eigvalsh, lambda x: linalg.svd(x, compute_uv=False)])
def test_two_calls_for_one_matrix_are_two_functions_of_the_same_values(name, values):
    x = tf.constant(SPECTRA[name])
    once = lambda x: (lambda s: tf.reduce_sum(s**2 * tf.cosh(s)))(values(x))
    twice = lambda x: tf.reduce_sum(values(x) ** 2 * tf.cosh(values(x)))
    for derivative in (tf.grad, tf.hessian):
        for mode in (lambda f: f, tf.function):
            expected = derivative(once)(x)
            np.testing.assert_allclose(mode(derivative(twice))(x), expected, rtol=1e-9, atol=1e-9)


def _trace_of_power(x, power):
    product = x
    for _ in range(power - 1):
        product = tf.matmul(product, x)
    return tf.math.real(linalg.trace(product))


def _gram(x):
    return tf.matmul(linalg.adjoint(x), x)


OF_VALUES = {  # functions of values, and the same by products of matrices
    "svd": [
        (lambda s: tf.reduce_sum(s**4), lambda x: _trace_of_power(_gram(x), 2)),
        (
            lambda s: tf.math.log(1.0 + tf.reduce_sum(s**2)) * tf.reduce_sum(s**4),
            lambda x: (
                tf.math.log(1.0 + _trace_of_power(_gram(x), 1)) * _trace_of_power(_gram(x), 2)
            ),
        ),
    ],
    "eigh": [
        (lambda w: tf.reduce_sum(tf.math.real(w**3)), lambda x: _trace_of_power(x, 3)),
        (
            lambda w: tf.reduce_sum(tf.math.real(w**2)) * tf.sin(tf.reduce_sum(tf.math.real(w))),
            lambda x: _trace_of_power(x, 2) * tf.sin(_trace_of_power(x, 1)),
        ),
        (lambda w: tf.math.real(tf.reduce_prod(w)), lambda x: tf.math.real(linalg.det(x))),
    ],
}


def _degenerate(rng, shape, imaginary):
    """A matrix, Hermitian if square, whose values are equal, 0, and near each other."""
    turns = [
        np.linalg.qr(rng.normal(size=(n, n)) + imaginary * rng.normal(size=(n, n)))[0]
        for n in shape
    ]
    if shape[0] == shape[1]:
        turns[1] = turns[0]
    size = min(shape)
    values = rng.choice([0.0, 0.0, 1.0, 1.0, 1.0 + 1e-12, 2.0], size=size)
    x = turns[0][:, :size] * values @ turns[1][:, :size].conj().T
    return (x + x.conj().T) / 2 if shape[0] == shape[1] else x


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_values_have_the_derivatives_of_the_same_by_products(seed):
    """Second derivatives in all modes are right; third ones right, or there is a warning."""
    rng = np.random.default_rng(seed)
    imaginary = 1j * (seed % 2)
    square = seed % 4 < 2
    shape = (3 + seed % 2,) * 2 if square else tuple(rng.permutation([2 + seed // 6, 4]))
    x = _degenerate(rng, shape, imaginary)
    way = rng.normal(size=shape) + imaginary * rng.normal(size=shape)
    dtype = tf.as_dtype(x.dtype)
    kinds = {"svd": lambda x: linalg.svd(x, compute_uv=False)}
    if square:
        way = way + way.conj().T
        kinds |= {"eigvalsh": linalg.eigvalsh, "eigvals": linalg.eigvals}
    x, v = tf.constant(x, dtype), tf.constant(way, dtype)
    along = lambda x: tf.reduce_sum(tf.math.real(tf.math.conj(v) * x))
    derivative = lambda function: lambda x: along(tf.grad(function)(x))
    for kind, values in kinds.items():
        for of_values, of_products in OF_VALUES["svd" if kind == "svd" else "eigh"]:
            function = lambda x, f=of_values, values=values: f(values(x))
            slope = derivative(function)
            second = derivative(slope)
            expected = float(derivative(derivative(of_products))(x))
            with warnings.catch_warnings():
                nothing = abs(expected) < 1e-12  # then all that is known of limits is rounding
                warnings.simplefilter("ignore" if nothing else "error")
                derivatives = {
                    "reverse": second(x),
                    "forward": along(tf.jvp(tf.grad(function), (x,), (v,))[1]),
                    "program": tf.function(second)(x),
                    "batch": tf.vmap(second)(tf.stack([x, x + v]))[0],
                }
            for mode, result in derivatives.items():
                assert float(result) == pytest.approx(expected, rel=1e-6, abs=1e-6), (kind, mode)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                third = float(derivative(second)(x))
            if not caught:
                exact = float(derivative(derivative(derivative(of_products)))(x))
                assert third == pytest.approx(exact, rel=1e-6, abs=1e-6), kind


def test_limits_depend_on_parameters():
    """The derivative of a second derivative by a factor of the function."""

    def curvature(factor):
        function = lambda x: factor * tf.reduce_sum(linalg.eigvalsh(x) ** 2)
        slope = lambda x: tf.reduce_sum(WAY * tf.grad(function)(x))
        return tf.reduce_sum(WAY * tf.grad(slope)(tf.eye(3, dtype=tf.float64)))

    gradient = tf.grad(curvature)(tf.constant(3.0, tf.float64))
    np.testing.assert_allclose(gradient, 2 * (WAY**2).sum(), rtol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: linalg.eigvalsh(x)[-1] ** 2,
        lambda x: (linalg.eigvalsh(x)[1] - 1.0) ** 2,
        lambda x: tf.reduce_sum(linalg.eigvalsh(x) * linalg.eigvalsh(x + 0.0)),
        lambda x: tf.reduce_sum(linalg.eigvalsh(x) * tf.linalg.diag_part(x)),
        lambda x: tf.reduce_sum(tf.abs(linalg.eigvals(x)) ** 2),
        lambda x: tf.reduce_sum(linalg.svd(x, compute_uv=False)[:1] ** 2),
    ],
)
def test_what_has_no_limits_warns(function):
    """It depends on the order of the values, or on the matrix otherwise, or is not holomorphic."""
    slope = lambda x: tf.reduce_sum(WAY * tf.grad(function)(x))
    with pytest.warns(DerivativeWarning, match="limits of quotients"):
        tf.grad(slope)(tf.eye(3, dtype=tf.float64))


@pytest.mark.parametrize("imaginary", [0, 1j])
@pytest.mark.parametrize("rank", range(4))
def test_second_derivatives_of_the_determinant_of_singular_matrices(rank, imaginary):
    """det(x + t w) is a polynomial in t: its coefficients, by its values on the unit circle."""
    rng = np.random.default_rng(rank)
    x, way = (rng.normal(size=(4, 4)) + imaginary * rng.normal(size=(4, 4)) for _ in range(2))
    left, values, right = np.linalg.svd(x)
    x = left[:, :rank] * values[:rank] @ right[:rank]
    points = np.exp(2j * np.pi * np.arange(8) / 8)
    expected = 2 * np.fft.fft([np.linalg.det(x + t * way) for t in points])[2].real / 8
    x, v = tf.constant(x), tf.constant(way)
    along = lambda x: tf.reduce_sum(tf.math.real(tf.math.conj(v) * x))
    slope = lambda x: along(tf.grad(lambda x: tf.math.real(linalg.det(x)))(x))
    for derivative in (along(tf.grad(slope)(x)), tf.jvp(slope, (x,), (v,))[1]):
        np.testing.assert_allclose(derivative, expected, rtol=1e-11, atol=1e-11)


def test_third_derivatives_of_the_determinant_warn_at_singular_matrices():
    det = lambda x: linalg.det(x)
    third = tf.jacobian(tf.hessian(det))
    regular = third(tf.constant(np.diag([1.0, 2.0, 4.0]))).numpy()
    assert (regular[0, 0, 1, 1, 2, 2], regular[0, 1, 1, 2, 2, 0]) == pytest.approx((1.0, 1.0))
    with pytest.warns(DerivativeWarning, match="det: the third derivative"):
        third(tf.constant(np.diag([1.0, 2.0, 1e-12])))


@pytest.mark.quick
def test_what_depends_on_the_choice_of_vectors_warns_and_is_finite():
    weights = tf.constant(MIX[:3, :3])
    for function in (
        lambda x: tf.reduce_sum(linalg.eigh(x)[1] * weights),
        lambda x: tf.reduce_sum(linalg.svd(x)[1] * weights),
        lambda x: tf.reduce_sum(rebuilt(x, tf.exp) * weights),
    ):
        with pytest.warns(DerivativeWarning, match="vectors of equal eigenvalues"):
            gradient = tf.grad(function)(tf.constant(EQUAL)).numpy()
        assert np.isfinite(gradient).all()
    with pytest.warns(DerivativeWarning, match="eigh: the gradient"):
        tf.jvp(lambda x: linalg.eigh(x)[1], (tf.constant(EQUAL),), (tf.constant(WAY),))
    with pytest.warns(DerivativeWarning, match="phase of a complex"):
        tf.grad(lambda x: tf.reduce_sum(tf.math.imag(linalg.eigh(x)[1])))(tf.constant(POSITIVE))
    with pytest.warns(DerivativeWarning, match="complete_basis"):
        tf.grad(lambda x: tf.reduce_sum(linalg.qr(x, True)[0] * MIX))(tf.constant(MIX[:, :2]))


def rebuilt(x, function):
    values, vectors = linalg.eigh(x)
    return tf.matmul(vectors * function(values), linalg.matrix_transpose(vectors))


@pytest.mark.quick
def test_tangents_along_what_keeps_values_equal_do_not_warn():
    way = EQUAL @ EQUAL
    _, tangent = tf.jvp(lambda x: rebuilt(x, tf.exp), (tf.constant(EQUAL),), (tf.constant(way),))
    values, vectors = np.linalg.eigh(EQUAL)
    expected = vectors * (np.exp(values) * values**2) @ vectors.T
    np.testing.assert_allclose(tangent.numpy(), expected, rtol=1e-12, atol=1e-11)


def test_functions_of_matrices_are_right_for_equal_values_and_jordan_blocks():
    jordan = np.array([[2.0, 1.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0]])
    for x in (EQUAL, np.eye(3), jordan):
        for function in (linalg.expm, linalg.logm, linalg.sqrtm):
            loss = lambda x, f=function: tf.reduce_sum(f(x) * WAY)
            expected = numeric_gradients(
                lambda x, f=loss: f(tf.constant(x)).numpy(), (x,), [0], 1e-5
            )[0]
            gradient = tf.grad(loss)(tf.constant(x)).numpy()
            np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
        root = linalg.sqrtm(tf.constant(x))
        np.testing.assert_allclose(tf.matmul(root, root).numpy(), x, rtol=1e-13, atol=1e-13)
        back = linalg.expm(linalg.logm(tf.constant(x))).numpy()
        np.testing.assert_allclose(back, x, rtol=1e-12, atol=1e-12)


def test_functions_of_large_and_of_close_matrices():
    for scale in (1e-8, 1.0, 30.0):
        x = scale * WAY
        values, vectors = np.linalg.eigh(x)
        expected = vectors * np.exp(values) @ vectors.T
        result = linalg.expm(tf.constant(x)).numpy()
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    for scale in (1e-6, 1.0, 1e6):
        x = scale * (WAY @ WAY + np.eye(3))
        values, vectors = np.linalg.eigh(x)
        for function, wanted in ((linalg.sqrtm, np.sqrt), (linalg.logm, np.log)):
            expected = vectors * wanted(values) @ vectors.T
            result = function(tf.constant(x)).numpy()
            np.testing.assert_allclose(
                result, expected, rtol=0, atol=1e-12 * np.abs(expected).max()
            )


@pytest.mark.quick
def test_singular_values_that_are_zero():
    """Norms have the subgradient of least norm; sums of squares their second derivative."""
    low = tf.constant(np.outer([1.0, 2.0, 2.0], [0.6, 0.8]))
    for values in (lambda x: linalg.svd(x, compute_uv=False), lambda x: linalg.svd(x)[0]):
        slope = tf.grad(lambda x, f=values: tf.reduce_sum(f(x) ** 2))
        np.testing.assert_allclose(slope(low).numpy(), 2 * low.numpy(), rtol=1e-13)
    for order in (2, "nuc"):
        gradient = tf.grad(lambda x, o=order: norms.matrix_norm(x, o))(low).numpy()
        np.testing.assert_allclose(gradient, low.numpy() / 3, rtol=1e-13)
    for order in (2, -2, "nuc", "fro"):
        gradient = tf.grad(lambda x, o=order: norms.matrix_norm(x, o))(tf.zeros((2, 2)))
        np.testing.assert_array_equal(gradient.numpy(), np.zeros((2, 2)))
    squares = lambda x: tf.reduce_sum(linalg.svd(x, compute_uv=False) ** 2)
    curvature = tf.hessian(squares)(tf.constant(np.diag([2.0, 1.0, 0.0]))).numpy()
    np.testing.assert_allclose(curvature.reshape(9, 9), 2 * np.eye(9), atol=1e-13)


@pytest.mark.quick
def test_the_determinant_of_singular_matrices_has_a_gradient():
    for dtype in (np.float64, np.complex128):
        x = np.array([[1, 2, 3], [2, 4, 6], [1, 0, 2]], dtype)
        x = x * (1 if dtype is np.float64 else 1 + 1j)
        minors = np.array(
            [
                [
                    (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(x, i, 0), j, 1))
                    for j in range(3)
                ]
                for i in range(3)
            ]
        )
        gradient = tf.grad(lambda x: tf.math.real(linalg.det(x)))(tf.constant(x)).numpy()
        np.testing.assert_allclose(gradient, minors.conj(), rtol=0, atol=1e-13)


# Edges -------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_values_of_other_dtypes_and_batches():
    stack = np.stack([EQUAL, POSITIVE.real]).astype("f")
    values, vectors = linalg.eigh(stack)
    assert (values.dtype, vectors.dtype) == ("float32", "float32")
    np.testing.assert_allclose(values, np.linalg.eigh(stack)[0], rtol=1e-5)
    assert linalg.svd(np.array([[1, 2], [3, 4]]), compute_uv=False).dtype == "float64"
    assert linalg.eigvals(stack).dtype == "complex64"
    assert linalg.eigvalsh(POSITIVE.astype("F")).dtype == "float32"
    assert linalg.slogdet(POSITIVE)[1].dtype == "float64"
    half = linalg.expm(np.zeros((2, 2), np.float16))
    assert half.dtype == "float16"
    np.testing.assert_array_equal(half, np.eye(2))
    nothing = np.zeros((0, 3, 3))
    assert linalg.svd(nothing)[1].shape == (0, 3, 3)
    assert linalg.expm(nothing).shape == linalg.pinv(nothing).shape == (0, 3, 3)


@pytest.mark.quick
def test_pseudo_inverse_and_solution_of_low_rank():
    low = np.outer(MIX[0], MIX[1, :3])
    np.testing.assert_allclose(linalg.pinv(low), np.linalg.pinv(low), atol=1e-13)
    np.testing.assert_allclose(
        linalg.lstsq(low, MIX[:, :1]), np.linalg.lstsq(low, MIX[:, :1])[0], atol=1e-13
    )
    assert int(linalg.matrix_rank(low)) == 1
    assert linalg.matrix_rank(np.stack([low, MIX[:, :3]])).numpy().tolist() == [1, 3]
    assert int(linalg.matrix_rank(MIX, tol=1e3)) == 0
    along = lambda s: linalg.pinv(s * tf.constant(low))
    result = tf.jacobian(along)(tf.constant(2.0, dtype=tf.float64))
    np.testing.assert_allclose(result.numpy(), -np.linalg.pinv(low) / 4, atol=1e-13)


@pytest.mark.quick
def test_norms_of_all_orders():
    x = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
    for order in (0, 0.5, 1, 3, -1, -2, -0.5, np.inf, -np.inf):
        result = norms.vector_norm(x, order, 1)
        np.testing.assert_allclose(result, np.linalg.norm(x, order, axis=1), rtol=1e-13)
    for order in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
        expected = np.linalg.norm(x, order, axis=(1, 0), keepdims=True)
        result = norms.matrix_norm(x, order, (1, 0), True)
        np.testing.assert_allclose(result, expected, rtol=1e-13)
    result = tf.grad(lambda x: norms.vector_norm(x, -np.inf))(tf.constant(x)).numpy()
    np.testing.assert_array_equal(result, [[0, 0, 0], [1, 0, 0]])


@pytest.mark.quick
def test_triangles_of_other_matrices_are_not_read():
    lower = np.tril(WAY)
    np.testing.assert_allclose(
        tf.numpy.linalg.eigvalsh(lower, "L"), np.linalg.eigvalsh(WAY), atol=1e-13
    )
    np.testing.assert_allclose(
        tf.numpy.linalg.eigvalsh(lower.T, "U"), np.linalg.eigvalsh(WAY), atol=1e-13
    )
    big = np.tril(RNG.normal(size=(150, 150))) / 20 + np.eye(150)
    result = linalg.triangular_solve(big + np.triu(big.T, 1), np.eye(150))
    np.testing.assert_allclose(result, np.linalg.inv(big), atol=1e-9)


@pytest.mark.quick
def test_errors_say_what_is_wrong():
    for function in (linalg.eigh, linalg.eig, linalg.expm, linalg.logm, linalg.cholesky):
        assert_raises(InvalidArgumentError, "needs square matrices", function, np.ones((2, 3)))
    for function in (linalg.svd, linalg.qr, linalg.pinv, linalg.lu, linalg.diag_part):
        assert_raises(InvalidArgumentError, "needs matrices in the last two axes", function, [1.0])
    np_linalg = tf.numpy.linalg
    assert_raises(
        InvalidArgumentError,
        r"lstsq: for a matrix of shape \(4, 2\), .*, got \(1,\)",
        linalg.lstsq,
        TALL,
        [1.0],
    )
    assert_raises(
        InvalidArgumentError, "matrix_power: needs square", np_linalg.matrix_power, [2], 2
    )
    assert_raises(InvalidArgumentError, "Invalid norm order 3", np_linalg.norm, MIX, 3)
    assert_raises(InvalidArgumentError, "Invalid norm order 'fro'", np_linalg.norm, [1.0], "fro")
    assert_raises(InvalidArgumentError, "eigh: UPLO must be", np_linalg.eigh, MIX, "X")
    assert_raises(InvalidArgumentError, "qr: mode must be", np_linalg.qr, MIX, "raw")
    assert_raises(InvalidArgumentError, "diag: of several diagonals", linalg.diag, [1.0], k=(0, 1))
    assert_raises(InvalidArgumentError, "have no diagonal 2", linalg.diag_part, np.eye(2), k=2)
    assert_raises(InvalidArgumentError, "set_diag: diagonal 0 has", linalg.set_diag, MIX, [1.0])
    assert_raises(MatrixError, "sqrtm: .* negative number", linalg.sqrtm, [[-1.0]])
    deficient = tf.constant([[1.0, 0.0], [0.0, 0.0]])  # the same zeros by every LAPACK
    with tf.GradientTape() as tape:
        tape.watch(deficient)
        y = linalg.qr(deficient)[1]
    assert_raises(MatrixError, "[Ss]ingular", tape.gradient, y, deficient)


def test_plain_values_warn_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for function in (factorizations.eigh, factorizations.svd, eigenvectors.eig):
            function(np.eye(3))


@pytest.fixture
def two_threads():
    if blas._functions() is None:
        pytest.skip("NumPy has another BLAS")
    before = blas.get_num_threads()
    blas.set_num_threads(2)
    yield
    threads = blas.get_num_threads()
    blas.set_num_threads(before)
    assert threads == 2


def test_few_rows_are_factorized_on_one_thread(monkeypatch, two_threads):
    seen, factorize = [], np.linalg.cholesky
    monkeypatch.setattr(
        np.linalg, "cholesky", lambda x: seen.append(blas.get_num_threads()) or factorize(x)
    )
    for rows in (2, 300):
        linalg.cholesky(np.eye(rows))
    assert seen == [1, 2]


def test_a_product_by_its_own_transpose_is_computed_on_one_thread(monkeypatch, two_threads):
    seen, run = [], products.quiet.run
    monkeypatch.setattr(
        products,
        "quiet",
        SimpleNamespace(run=lambda *args: seen.append(blas.get_num_threads()) or run(*args)),
    )
    for rows in (4, 90, 200):  # BLAS uses one thread, would use two, and shall use two
        x = tf.ones((rows, rows), tf.float64)
        assert tf.matmul(x, x, transpose_b=True).numpy()[0, 0] == rows
    assert seen == [2, 1, 2]


@pytest.mark.parametrize("rows", [5, 70])
def test_the_gradient_of_a_log_determinant_by_cholesky_is_the_inverse(rows):
    x = np.cos(np.arange(rows * rows)).reshape(rows, rows)
    x = x @ x.T + rows * np.eye(rows)

    def log_determinant(x):
        return 2.0 * tf.reduce_sum(tf.math.log(linalg.diag_part(linalg.cholesky(x))))

    np.testing.assert_allclose(tf.grad(log_determinant)(x), np.linalg.inv(x), 1e-12, 1e-14)
    second = tf.grad(lambda x: tf.reduce_sum(tf.grad(log_determinant)(x)))(x)
    ones = np.linalg.inv(x).sum(axis=0)
    np.testing.assert_allclose(second, -np.outer(ones, ones), 1e-9, 1e-12)
