"""NumPy's functions on tensors: NumPy's own numbers, and derivatives of first and second order.

Each case is run by NumPy on arrays; on tensors through NumPy's protocols, as programs do that
never heard of this library; and as the function of that name in ``tinygrad_cg.numpy``.
"""

import inspect

import numpy
import pytest

import tinygrad_cg as tf
from tests.spellings import test_numpy
from tests.support.spelling_cases import spelled_by_records

RNG = numpy.random.default_rng(7)
SQUARE = numpy.array([[3.0, 1.0, 0.5], [-1.0, 2.5, 0.25], [0.5, -0.5, 2.0]])
VALUES = {
    "x": numpy.array([[0.31, -1.25, 2.4], [1.7, 0.62, -0.8]]),
    "y": numpy.array([[1.1, 0.45, -0.73], [0.29, -2.2, 1.9]]),
    "v": numpy.array([0.7, -1.3, 2.1]),
    "w": numpy.array([1.9, 0.4, -0.6]),
    "p": numpy.array([0.35, 1.15, 2.55, 3.05]),
    "m": SQUARE,
    "s": numpy.stack([SQUARE, numpy.eye(3) - 0.25 * SQUARE]),
    "c": SQUARE @ SQUARE.T,
    "k": RNG.normal(size=(2, 3, 4)),
    "t": numpy.array(1.3),
}
NOTHING = {"numpy": numpy, "nan": numpy.nan, "inf": numpy.inf}

CASES = """
np.add(x, 1)
np.append(x, y)
np.append(x, y, axis=0)
np.apply_along_axis(lambda row: row[0] * row, 1, x)
np.apply_along_axis(lambda row: row[0] * row[1], 0, x)
np.apply_over_axes(np.sum, k * k, [0, 2])
np.atleast_1d(t) * v
np.atleast_2d(v) * w
np.atleast_3d(x) * v
np.atleast_2d(t, v * w)
np.average(x * y)
np.average(x, axis=0, weights=y)
np.average(x, axis=1, weights=v)
np.average(x * y, axis=1, keepdims=True)
np.average(k, (2, 1), numpy.ones((4, 3)), returned=True)
np.bincount([0, 1, 1, 3], weights=p * p)
np.block([[x * x, y], [y, x]])
np.block([v, w * w])
np.block(v)
np.broadcast_arrays(x, v * v)
np.broadcast_to(v * v, (2, 3))
np.choose([0, 1, 0], [v * v, w])
np.choose([0, 3, -1], [v * v, w], mode="clip")
np.clip(x * x, 0.5, 2.0)
np.column_stack([v * v, w])
np.compress([True, False, True], x * x, axis=1)
np.concatenate([x * x, y], axis=1)
np.convolve(p, v)
np.convolve(v, p, "same")
np.convolve(p, v, "valid")
np.copysign(x * x, y)
np.correlate(p, v)
np.correlate(v, p, "full")
np.correlate(p, w[:2], "same")
np.corrcoef(x)
np.cov(x)
np.cov(v, w)
np.cov(x, rowvar=False, bias=True)
np.cov(x, fweights=[1, 2, 1])
np.cov(x, y, aweights=w * w)
np.cov(x, fweights=[1, 0, 3], aweights=w * w, ddof=0)
np.cov(x, aweights=[0.5, 2.0, 1.0], ddof=2)
np.cross(x, y)
np.cross(x, v)
np.cross(x[0], y[1], axis=0)
np.cumulative_prod(v, include_initial=True)
np.cumulative_sum(x * x, axis=1)
np.cumulative_sum(x * x, axis=0, include_initial=True)
np.cumprod(x)
np.cumsum(x * x, axis=1)
np.std(x, axis=1)
np.nansum(x * x, 1, initial=2.0, where=y > -1)
np.nanprod(x, 0, None, None, True, 2.0)
np.nanmax(x * x, 1, initial=-9.0, where=y > -1)
np.nanmin(x * x, 1, initial=0.7, where=y > -1)
np.nanmin(x * x, 0, initial=0.3)
np.nanmean(x * x, 1, where=y > -1)
np.nanvar(x, 1, where=y > -1, correction=0.5, keepdims=True)
np.nanvar(x, mean=0.5 * numpy.ones((1, 1)))
np.nanstd(x * y, 0, None, None, 0.25)
np.logspace(v * v, w, 4, axis=-1)
np.std(x, 1, ddof=1, where=k[0, :2, :3] < 0.8, keepdims=True)
np.std(x, correction=1)
np.sum(x * x, where=y > 0)
np.sum(x * x, 1, initial=2.5)
np.sum(t * t, axis=0)
np.sum(x * y, 0, None, None, True)
np.prod(x, 1, initial=2.0, where=[True, False, True])
np.max(x * x, 1, initial=0.9)
np.max(x * x, initial=-1.0, where=y < 1)
np.min(x * x, 0, None, True, 0.5)
np.min(x * x, 1, initial=9.0, where=y < 0)
np.mean(x * x, 1, where=y > -1)
np.max(t * t, axis=-1)
np.var(x, where=y > -1)
np.var(x, 1, mean=numpy.ones((2, 1)))
np.cumsum(t * t, axis=0)
np.linspace(t * t, 2.0, 3, retstep=True)
np.linspace(v * v, w, 4, endpoint=False, axis=1)
np.expand_dims(x * x, (0, 3))
np.full_like(x, v * v)
np.full_like(x, t * t, shape=(2, 1))
np.concatenate([v * v, w], dtype=numpy.float64)
np.stack([v * v, w], dtype=numpy.float64)
np.take(v * v, [4, -5], mode="wrap")
np.take(v * v, [4, -5], mode="clip")
np.ravel(x * x, order="F")
np.reshape(k * k, (-1, 4), order="F")
np.var(x, ddof=1)
np.deg2rad(x * x)
np.degrees(x * x)
np.delete(x * x, 1, axis=1)
np.delete(x * x, [0, 2])
np.diag(v * v)
np.diag(v * v, -1)
np.diag(m * m, 1)
np.diagflat(x * x)
np.diagonal(k * k, 1, 1, 2)
np.diagonal(m * m)
np.diff(x * x)
np.diff(x * y, 2)
np.diff(x, axis=0, prepend=0.0, append=y)
np.divmod(p * p, 0.4)[1]
np.dot(x, m)
np.dot(v, w)
np.dot(m, v)
np.dot(t, v)
np.dot(x, k.reshape(4, 3, 2))
np.dsplit(k * k, 2)
np.dstack([x * x, y])
np.dstack([v, w * w])
np.ediff1d(x * x)
np.ediff1d(v * v, to_end=t, to_begin=w[:2])
np.extract([[True, False, True], [False, True, False]], x * x)
np.fabs(x * y)
np.flip(x * x)
np.flip(x * x, 1)
np.fliplr(x * x)
np.flipud(x * x)
np.float_power(p, 2.5)
np.fmax(x, y) * x
np.fmin(x, y) * x
np.fmod(p * p, 0.7)
np.fmod(-p * p, 0.7)
np.gradient(p * p)
np.gradient(x * x, axis=1)
np.gradient(x * x)
np.gradient(p * p, 0.5)
np.gradient(p * p, p, edge_order=2)
np.gradient(numpy.arange(4.0) ** 2, p)
np.heaviside(x, 0.5) * y
np.histogram(p * p)[1]
np.histogram(p, 3, range=(0.0, 3.1), weights=p * p)[0]
np.histogram_bin_edges(p * p, 4)
np.hsplit(x * x, [1])
np.hsplit(p * p, 2)
np.hstack([x * x, y])
np.hstack([v, w * w])
np.hypot(x, y)
np.hypot(v, v)
np.inner(x, y)
np.inner(v, w)
np.inner(t, v)
np.insert(x * x, 1, v, axis=0)
np.insert(x * x, [0, 2], y[:, :2], axis=1)
np.insert(v * v, 1, w)
np.insert(v, [3, 0], t)
np.interp([0.1, 0.5, 1.2, 2.7, 9.0], p, p * p)
np.interp(v, [-1.0, 0.0, 3.0], w * w)
np.interp(v, [-1.0, 0.0, 1.0], w * w, -3.0, 4.0)
np.kron(x, y)
np.kron(v, m)
np.ldexp(x * x, 3)
np.linalg.cholesky(c)
np.linalg.cholesky(c, upper=True)
np.linalg.cond(m)
np.linalg.cond(m, -2)
np.linalg.cond(m, "fro")
np.linalg.cross(x, y)
abs(np.linalg.eig(m @ m.T)[0])
np.linalg.eigh(m + m.T)[0]
abs(np.linalg.eigh(m + m.T, "U").eigenvectors)
abs(np.linalg.eigvals(m))
np.linalg.eigvalsh(m + m.T)
np.linalg.lstsq(x.T, m[:, 0])[0]
np.linalg.lstsq(x.T, x.T[:, :1] ** 2)[1]
np.linalg.det(m)
np.linalg.det(s)
np.linalg.diagonal(s * s, offset=1)
np.linalg.inv(m)
np.linalg.inv(s)
np.linalg.matmul(x, m)
np.linalg.matrix_norm(m)
np.linalg.matrix_norm(s, ord=1, keepdims=True)
np.linalg.matrix_power(m, 3)
np.linalg.matrix_power(m, -2)
np.linalg.matrix_power(m * m, 0)
np.linalg.matrix_transpose(k * k)
np.linalg.multi_dot([x, m])
np.linalg.multi_dot([x, m, v])
np.linalg.multi_dot([v, m, m])
np.linalg.norm(x)
np.linalg.norm(x, axis=1)
np.linalg.norm(x, 1, axis=1)
np.linalg.norm(x, 3, 0)
np.linalg.norm(x, inf, 0, True)
np.linalg.norm(x, -inf, 1)
np.linalg.norm(x, -2, 1)
np.linalg.norm(x, -1, 0)
np.linalg.norm(x, 0.5, 0)
np.linalg.norm(m, "nuc")
np.linalg.norm(x, 2)
np.linalg.norm(x, -2)
np.linalg.norm(k, 2, axis=(0, 2), keepdims=True)
np.linalg.norm(k, -2, axis=(2, 0))
np.linalg.norm(v, 2.5)
np.linalg.norm(m, "fro")
np.linalg.norm(m, 1)
np.linalg.norm(m, -inf)
np.linalg.norm(k, axis=(0, 2))
np.linalg.outer(v, w)
np.linalg.pinv(x)
np.linalg.pinv(x.T, rtol=1e-10)
abs(np.linalg.qr(x)[1])
abs(np.linalg.qr(x.T).Q)
abs(np.linalg.qr(x.T, "r"))
abs(np.linalg.qr(x.T, "complete")[0])
np.linalg.slogdet(m)[1]
np.linalg.slogdet(s).logabsdet
np.linalg.solve(m, v)
np.linalg.solve(m, m @ m)
np.linalg.solve(s, x.T)
abs(np.linalg.svd(x)[2])
np.linalg.svd(x, full_matrices=False).S
np.linalg.svd(m, compute_uv=False)
np.linalg.svdvals(x)
np.linalg.tensordot(x, m, axes=1)
np.linalg.tensorinv(m[:, None], ind=2)
np.linalg.tensorsolve(m[:, None], v[:, None])
np.linalg.trace(s * s)
np.linalg.vecdot(x, v)
np.linalg.vector_norm(x)
np.linalg.vector_norm(k, axis=(0, 2), ord=1)
np.logaddexp(x, y)
np.logaddexp(v, v)
np.logaddexp2(x, y)
np.logspace(t, 2.0, 4)
np.matmul(x, m)
np.matrix_transpose(x * x)
np.matvec(m, v)
np.maximum(x, y) * x
np.mean(x * x, axis=1, keepdims=True)
np.median(p * p)
np.median(x * x)
np.median(x * x, axis=1, keepdims=True)
np.meshgrid(v * v, p)
np.meshgrid(v * v, p, sparse=True, indexing="ij")
np.modf(x * x)[0]
np.moveaxis(k * k, 0, -1)
np.moveaxis(k * k, [0, 1], [2, 0])
np.nan_to_num(x * x)
np.nancumprod(np.where(x > 2, nan, x), axis=1)
np.nancumsum(np.where(x > 2, nan, x) ** 2)
np.nanmax(np.where(x > 2, nan, x * y), 1)
np.nanmean(np.where(x > 2, nan, x) ** 2)
np.nanmin(np.where(x > 2, nan, x * y), axis=0)
np.nanprod(np.where(x > 2, nan, x))
np.nanstd(np.where(x > 2, nan, x), axis=1)
np.nansum(np.where(x > 2, nan, x) ** 2, axis=0)
np.nanvar(np.where(x > 2, nan, x), axis=1, ddof=1, keepdims=True)
np.outer(x, v)
np.partition(v * v, [0, 1, 2])
np.percentile(x * x, [20, 55.5], axis=1)
np.percentile(x * x, 35)
np.piecewise(p, [p < 1, p > 2.7], [lambda q: q**3, 5.0, lambda q: q * q])
np.piecewise(v, [v < 0, v > 1], [-1.0, 2.0])
np.piecewise(v, np.stack([v < 0, v > 1]), [-1.0, 2.0])
np.polyadd(v * v, p)
np.polyder(p * p)
np.polyder(p * p, 2)
np.polyint(v * v)
np.polyint(v * v, 2, [1.0, 2.0])
np.polyint(v, 3, w)
np.polymul(v, p)
np.polysub(v * v, p)
np.polyval(v, p)
np.polyval(v, 2.0)
np.ptp(x * y)
np.ptp(x * y, axis=1, keepdims=True)
np.quantile(k * k, 0.3, axis=(0, 2))
np.quantile(k * k, [[0.1, 0.45]], axis=1, keepdims=True)
np.quantile(x * y, t / 4)
np.rad2deg(x * x)
np.radians(x * x)
np.ravel(x * x)
np.reciprocal(x)
np.repeat(x * x, 2)
np.repeat(x * x, [1, 0, 2], axis=1)
np.resize(x * x, (3, 4))
np.roll(x * x, 1)
np.roll(x * x, -4, axis=1)
np.roll(x * x, (1, 2), axis=(0, 1))
np.rollaxis(k * k, 2)
np.rollaxis(k * k, 0, 2)
np.rot90(x * x)
np.rot90(k * k, 3, (1, 2))
np.select([x > 1, x < 0], [x * x, y], 7.0)
np.select([x > 1, x < 0], [x * x, v])
np.setdiff1d(x * x, [0.0])
np.intersect1d(v * 2.0, v * 2.0)
np.intersect1d(x * 2.0, v * 3.0, return_indices=True)
np.quantile(x * x, [0.0, 0.3, 1.0], axis=1, method="inverted_cdf", weights=[1.0, 0.5, 2.0])
np.percentile(x, 40.0, method="inverted_cdf", weights=[[0.0, 1.0, 2.0], [0.5, 3.0, 1.0]])
np.unique(v * v, equal_nan=False)
np.stack([x * x, y], axis=2)
np.swapaxes(k * k, 0, 2)
np.take(x * x, [2, 0], axis=1)
np.tensordot(x, m, axes=([1], [0]))
np.tile(v * v, 2)
np.tile(x * x, (2, 1, 2))
np.trace(m * m)
np.trace(k * k, 1, 2, 1)
np.transpose(k * k, (1, 0, 2))
np.trapezoid(x * x)
np.trapezoid(x * x, dx=0.5, axis=0)
np.trapezoid(x, v * v)
np.trapezoid(x, y, axis=0)
np.tril(m * m)
np.tril(k * k, -1)
np.tril(v * v)
np.trim_zeros(np.concatenate([np.zeros_like(v), v * v]))
np.triu(m * m, 1)
np.union1d(v * v, w)
np.unique(x * x)
np.unique(np.concatenate([x * x, y], 0), axis=0)
np.unique_all(x * x)
np.unique_counts(x * x)
np.unique_inverse(x * x)
np.unique_values(x * x)
np.unwrap(p * p * 2)
np.unwrap(x * x, axis=0, period=1.5)
np.vander(v, 3)
np.vander(v, increasing=True)
np.vdot(x, y)
np.vecdot(x, y)
np.vecdot(x, y, axis=0)
np.vecmat(v, m)
np.vsplit(x * x, 2)
np.vstack([x * x, y])
np.vstack([v * v, w])
np.where(x > 0, x * x, y)
""".strip().splitlines()
# The protocol's alone: methods of universal functions, and parameters that mean nothing.
PROTOCOL = """
np.add.outer(v, w)
np.add.accumulate(x)
np.multiply.accumulate(x, axis=1)
np.add.reduce(x)
np.add.reduce(x, axis=1, keepdims=True)
np.multiply.reduce(x, axis=None)
np.maximum.reduce(x, 1)
np.multiply(x, y, dtype=numpy.float64)
np.square(x, dtype=numpy.float64)
np.sum(x * x, axis=0, out=None)
""".strip().splitlines()
# What has no derivative: values alone.
QUESTIONS = """
np.broadcast_shapes((2, 3), (3,))
np.isin(x, p)
np.angle([1 + 1j, -2.0], deg=True)
np.all(x > 0, 1, keepdims=True)
np.all(x > 0, where=y > 0)
np.angle(x)
np.any(x > 0, 0)
np.any(x > 9, where=y > 0)
np.amax(x)
np.amin(x, 1)
np.argmax(x)
np.argmax(t, axis=0)
np.max([], initial=3.0)
np.max(numpy.array([1, 5, 3]), initial=2, where=numpy.array([True, False, True]))
np.mean([1, 2, 4], where=[True, False, True])
np.sum(numpy.array([True, True]), where=[True, False])
np.sum(numpy.zeros(0), initial=2.0)
np.argpartition(v, 1)
np.bincount([0, 1, 1, 3])
np.ceil(x)
np.divmod(p, 0.4)[0]
np.divmod(7, numpy.array([2, -3]))
np.empty_like(x).shape
np.fix(x * 3)
np.fmax(nan, x)
np.fmax([nan, 1.0, 2.0], w)
np.fmin([nan, 1.0, 2.0], [5.0, nan, 1.0])
np.fmod([5, -5, 7], [3, 3, -4])
np.heaviside([-1.0, 0.0, nan], 0.5)
np.histogram(p, 3)
np.histogram(x, [0.0, 1.0, 3.0], density=True)
np.hypot([inf, 0.0, 1e300, 1e-300], [nan, 0.0, 1e300, 1e-300])
np.isclose(x, y + 1.0)
np.isclose([inf, nan, 1.0], [inf, nan, 1.0 + 1e-9], equal_nan=True)
np.iscomplex([1 + 1j, 2.0])
np.isneginf([-inf, inf, 1.0])
np.isposinf([-inf, inf, 1.0])
np.isreal([1 + 1j, 2.0])
np.linalg.slogdet(m)[0]
np.linalg.matrix_rank(m)
np.linalg.matrix_rank(x * 0)
np.linalg.lstsq(x.T, x.T)[2]
np.linalg.norm(x, 0, 1)
np.logaddexp([inf, -inf, -inf, 1.0, 0.0], [inf, -inf, 2.0, -inf, -50.0])
np.logaddexp2([1, 2], 3)
np.modf([2.75, -2.75, inf, -inf])
np.nan_to_num([nan, inf, -inf, 1.0])
np.nan_to_num([nan, inf, -inf], nan=1.0, posinf=2.0, neginf=3.0)
np.nan_to_num([1, 2])
np.nanmax([nan, 1.0])
np.nansum([1, 2])
np.nanmean([1, 2, nan], where=[True, False, True])
np.nanmax([1, 5, 2], initial=3)
np.nanmax([nan, 1.0, 4.0], initial=3.0, where=[True, True, False])
np.size(x)
np.size(x, 1)
np.size(k, (0, 2))
np.shape(x)
np.sign(x)
np.signbit([-1.0, -0.0, 0.0, 2.0, inf, -inf])
np.signbit(x)
np.linspace(0, 2**40, 4, dtype=int)
np.tri(3, 4, 1)
np.trunc(x * 3)
np.vectorize(lambda a: a * 2)(x)
np.trunc([1, 2])
np.unique(x > 0, return_counts=True)
np.unique([3, 1, 3], return_index=True, return_inverse=True)
np.asanyarray(x)
np.ascontiguousarray(1.5)
np.asfortranarray(x)
np.append([1, 2], 3)
np.copysign([1.0, -2.0], [-0.0, 1.0])
np.fabs([1, -2])
np.float_power(2, [1, 2])
np.hstack([[1], [2.5]])
np.vstack([[1, 2], [3, 4]], dtype=numpy.float32)
np.trace([[1, 2], [3, 4]])
np.diff([True, False, False])
np.vdot([1 + 2j], [3 - 1j])
np.median([1.0, inf, nan])
np.median([-inf, inf, inf, 1])
np.median([3, 1])
np.vecdot([1 + 2j, 1j], [3 - 1j, 1.0])
np.polyder([1, 2, 3])
np.polyint([1, 2, 3])
np.convolve([1, 2], [1, 1, 1])
np.select([[True, False]], [[1, 2]])
np.linalg.det([[1, 2], [3, 4]])
np.linalg.inv([[1, 2], [3, 4]])
np.linalg.solve([[1, 2], [3, 4]], [1, 2])
np.linalg.norm([3, 4])
""".strip().splitlines()
# ... and what only NumPy's own functions answer, on the values.
ANSWERS = """
np.argwhere(x > 0)
np.allclose(x, x)
np.array_equal(x, y)
np.bitwise_and(x > 0, y > 0)
np.invert(x > 0)
np.bitwise_or(x > 0, y > 0)
np.bitwise_xor(x > 0, y > 0)
np.count_nonzero(x > 0)
np.digitize(x, p)
np.equal.outer(v, v)
np.flatnonzero(x > 0)
np.logical_and.reduce(x > 0, axis=1)
np.logical_or.reduce(x > 0, axis=None)
np.nonzero(x > 0)
np.searchsorted(p, x)
""".strip().splitlines()


def flat(value):
    """A result as arrays, whatever it is nested in."""
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in flat(part)]
    return [numpy.asarray(value)]


def evaluate(case, module, values):
    return eval(case, NOTHING | {"np": module} | values)


def constants():
    return {name: tf.constant(value) for name, value in VALUES.items()}


@pytest.mark.filterwarnings("ignore:numpy.fix is deprecated")  # from NumPy 2.5 on
@pytest.mark.parametrize(
    ("case", "module"),
    [(case, numpy) for case in CASES + PROTOCOL + QUESTIONS + ANSWERS]
    + [(case, tf.numpy) for case in CASES + QUESTIONS],
)
def test_values_are_numpys(case, module):
    results = flat(evaluate(case, module, constants()))
    with numpy.errstate(all="ignore"):
        expected = flat(evaluate(case, numpy, VALUES))
    for result, theirs in zip(results, expected, strict=True):
        assert result.dtype == theirs.dtype
        assert result.shape == theirs.shape
        numpy.testing.assert_allclose(result, theirs, rtol=1e-12, atol=1e-12)


def weighted(case, values, weights):
    """One number of all that a case gives; the weights distinguish its parts."""
    parts = evaluate(case, numpy, values)
    parts = parts if isinstance(parts, (tuple, list)) else [parts]
    return sum(tf.reduce_sum(part * weight) for part, weight in zip(parts, weights, strict=True))


def gradients(case, names, values, weights):
    with tf.GradientTape() as tape:
        tape.watch([values[name] for name in names])
        result = weighted(case, values, weights)
    sources = [values[name] for name in names]
    return tape.gradient(result, sources, unconnected_gradients="zero")


def directional(case, names, values, weights, directions):
    """The derivative of the gradients along `directions`, by a tape around a tape."""
    with tf.GradientTape() as outer:
        outer.watch([values[name] for name in names])
        first = gradients(case, names, values, weights)
        total = sum(tf.reduce_sum(g * d) for g, d in zip(first, directions, strict=True))
    sources = [values[name] for name in names]
    return outer.gradient(total, sources, unconnected_gradients="zero")


def moved(values, names, directions, step):
    shift = {n: values[n] + step * d for n, d in zip(names, directions, strict=True)}
    return values | shift


@pytest.mark.parametrize("case", CASES + PROTOCOL)
def test_derivatives(case):
    values = constants()
    code = compile(case, "case", "eval")
    names = [name for name in values if name in code.co_names + inner_names(code)]
    rng = numpy.random.default_rng(3)
    weights = [rng.normal(size=part.shape) for part in flat(evaluate(case, numpy, VALUES))]
    directions = [rng.normal(size=VALUES[name].shape) for name in names]
    step = 1e-6
    ahead, behind = (moved(values, names, directions, sign * step) for sign in (1, -1))

    slope = sum(
        float(tf.reduce_sum(g * d))
        for g, d in zip(gradients(case, names, values, weights), directions, strict=True)
    )
    difference = weighted(case, ahead, weights) - weighted(case, behind, weights)
    assert slope == pytest.approx(float(difference) / (2 * step), rel=1e-6, abs=1e-6)

    second = directional(case, names, values, weights, directions)
    after, before = (gradients(case, names, side, weights) for side in (ahead, behind))
    for second_derivative, high, low in zip(second, after, before, strict=True):
        expected = (high.numpy() - low.numpy()) / (2 * step)
        numpy.testing.assert_allclose(second_derivative.numpy(), expected, rtol=1e-5, atol=1e-5)


def inner_names(code):
    """The names that functions inside a case use."""
    inside = [const for const in code.co_consts if hasattr(const, "co_names")]
    return tuple(name for code in inside for name in code.co_names)


IN_TEST_QUANTILES = {
    *("bartlett", "blackman", "hamming", "hanning", "i0", "kaiser", "nanargmax", "nanargmin"),
    *("nanmedian", "nanpercentile", "nanquantile"),
}


IN_TEST_FITS = {"geomspace", "histogram2d", "histogramdd", "poly", "polydiv", "polyfit"}
IN_TEST_FITS |= {"roots", "setxor1d"}


def test_every_function_is_tried():
    """All functions but those of records, which `test_ops` tries, and of the cases of `test_numpy`.

    Those of several statements, which no row of a table spells, are tried here in any case.
    """
    functions = {name for name in tf.numpy.__all__ if inspect.isfunction(getattr(tf.numpy, name))}
    elsewhere = {case.split("(")[0].removeprefix("np.") for case in test_numpy.CASES}
    names = functions - elsewhere - spelled_by_records("numpy")
    names |= {name for name in functions if _is_of_a_private_module(getattr(tf.numpy, name))}
    assert len(names) > 120
    tried = " ".join(CASES + QUESTIONS)
    for name in names - IN_TEST_QUANTILES - IN_TEST_FITS:
        assert f"np.{name}" in tried, name
    linalg = tf.numpy.linalg
    assert [name for name in linalg.__all__ if f"np.linalg.{name}(" not in tried] == []


def _is_of_a_private_module(value):
    return str(getattr(value, "__module__", "")).startswith("tinygrad_cg.numpy._")


def test_names_of_numpy_that_need_no_gradient_are_its_own():
    """A program that swaps the import finds them; of tensors they answer, or refuse by name."""
    x = tf.constant([[1.0, 2.0], [0.0, 4.0]])
    assert tf.numpy.allclose(x, x + 1e-9)
    assert tf.numpy.array_equal(x, x)
    assert not tf.numpy.isscalar(x)
    assert tf.numpy.ndarray is numpy.ndarray
    assert tf.numpy.issubdtype(tf.numpy.float32, tf.numpy.floating)
    numpy.testing.assert_array_equal(x[tf.numpy.triu_indices(2)], [1, 2, 4])
    numpy.testing.assert_array_equal(tf.numpy.argwhere(x), [[0, 0], [0, 1], [1, 1]])
    with pytest.raises(TypeError, match=r"fill_diagonal is not supported on tensors"):
        tf.numpy.fill_diagonal(x, 0.0)
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        tf.numpy.no_such_name  # noqa: B018
