"""Reductions over any axes against NumPy."""

from itertools import combinations, product

import numpy as np
import pytest

from tinygrad_cg_kernels.reduce import reduction, search, softmax
from tinygrad_cg_kernels.runtime import threads

SHAPE = (3, 4, 2, 5)
AXES = [axes for count in range(5) for axes in combinations(range(4), count)]


def numbers(shape, dtype="d"):
    values = np.random.default_rng(0).uniform(-3, 3, shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * values[..., ::-1]
    return values.astype(dtype)


@pytest.mark.parametrize(("axes", "keepdims"), list(product(AXES, (False, True))))
def test_every_choice_of_axes(axes, keepdims):
    x = numbers(SHAPE)
    for name in ("sum", "prod", "max", "min"):
        got = getattr(reduction, name)(x, axes, keepdims)
        want = getattr(np, name)(x, axis=axes, keepdims=keepdims)
        assert type(got) is np.ndarray
        assert got.shape == np.shape(want)
        assert got.flags.c_contiguous
        assert not np.shares_memory(got, x)
        np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
    for name in ("any", "all"):
        got = getattr(reduction, name)(x > 2, axes, keepdims)
        np.testing.assert_array_equal(
            got, getattr(np, name)(x > 2, axis=axes, keepdims=keepdims), strict=True
        )
    got = softmax.logsumexp(x, axes, keepdims)
    want = np.log(np.sum(np.exp(x), axis=axes, keepdims=keepdims))
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("code", "bhilBHILefdFD?")
def test_every_dtype(code):
    x = numbers((7, 5), code)
    dtype = np.dtype(np.int64) if code == "?" else np.dtype(code)
    for axes in ((0,), (1,), (0, 1)) if code in "dfl" else ((0, 1),):
        for name in ("sum", "prod"):
            got = getattr(reduction, name)(x, axes)
            wide = x.astype("d") if code == "e" else x
            want = np.asarray(getattr(np, name)(wide, axis=axes)).astype(dtype)
            assert got.dtype == dtype == getattr(reduction, name).result_dtype(x.dtype)
            tolerance = {"e": 2e-3, "f": 1e-5, "F": 1e-5}.get(code, 1e-12)
            np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
        for name in ("max", "min") if code not in "FD" else ():
            got = getattr(reduction, name)(x, axes)
            np.testing.assert_array_equal(got, getattr(np, name)(x, axis=axes))
            assert got.dtype == x.dtype


def test_layouts():
    x = numbers((6, 8, 4))
    for view in (x.T, x[::-1], x[:, ::3], np.asfortranarray(x), np.broadcast_to(x[:1], x.shape)):
        for axes in ((0,), (1,), (2,), (0, 2), (0, 1, 2)):
            np.testing.assert_allclose(
                reduction.sum(view, axes), view.sum(axis=axes), rtol=1e-13, atol=1e-13
            )
    frozen = x.copy()
    frozen.flags.writeable = False
    assert reduction.sum(frozen, (0,)).flags.writeable
    assert reduction.sum(x.astype(">f8"), (0, 1, 2)).dtype.isnative


def test_no_axes_copy():
    x = numbers((2, 1))
    for axes, shape in (((), (2, 1)), ((1,), (2,))):
        for _ in range(2):
            got = reduction.sum(x, axes)
            assert got.shape == shape
            got[...] = 0
            assert x.all()
    point = np.array(3.0)
    for _ in range(2):
        assert reduction.sum(point, ()).shape == ()
        assert reduction.max(point, ()) == 3.0


def test_empty_arrays():
    assert reduction.sum(np.zeros((0, 3)), (0,)).tolist() == [0, 0, 0]
    assert reduction.prod(np.zeros((0, 3)), (0, 1)) == 1
    assert reduction.sum(np.zeros((0, 3)), (1,)).shape == (0,)
    assert reduction.all(np.zeros((0,), bool), (0,)) == np.True_
    assert reduction.any(np.zeros((0,), bool), (0,)) == np.False_
    assert reduction.max(np.zeros((0, 3)), (1,)).shape == (0,)
    assert softmax.logsumexp(np.zeros((0, 2)), (0,)).tolist() == [-np.inf, -np.inf]
    assert softmax.log_softmax(np.zeros((0, 2)), 0).shape == (0, 2)
    assert search.argmax(np.zeros((0, 2)), 1).shape == (0,)
    for kernel, axes in ((reduction.max, (0,)), (reduction.min, (0,)), (search.argmax, 0)):
        with pytest.raises(ValueError, match=f"{kernel.name} of an empty axis has no identity"):
            kernel(np.zeros((0, 3)), axes)


def test_nan_propagates():
    x = numbers((300, 40))
    x[150, 7] = np.nan
    for kernel in (reduction.max, reduction.min, reduction.sum, softmax.logsumexp):
        assert np.isnan(kernel(x, (0, 1)))
        assert np.isnan(kernel(x, (0,))).tolist() == [k == 7 for k in range(40)]
    assert search.argmax(x, 0)[7] == 150
    assert search.argmin(x, 1)[150] == 7


@pytest.mark.parametrize("code", "fd")
@pytest.mark.parametrize("size", [1, 2, 9, 17, 128, 129, 300, 1025])
def test_extremes_among_nan_and_infinities(size, code):
    """Wherever they stand: in vectors, in what remains of them, in the first and last row."""
    inf, nan = np.inf, np.nan
    for special in ((nan,), (-inf,), (inf, -inf), (-inf, inf, nan), (nan, inf, nan)):
        for start in {0, size // 2, max(size - len(special), 0)}:
            x = numbers((3, size), code)
            x[1, start : start + len(special)] = special[: size - start]
            for array, axis in ((x, 1), (x.T.copy(), 0)):
                for name in ("max", "min"):
                    got = getattr(reduction, name)(array, (axis,))
                    np.testing.assert_array_equal(got, getattr(np, name)(array, axis), strict=True)
                for name in ("argmax", "argmin"):
                    got = getattr(search, name)(array, axis)
                    np.testing.assert_array_equal(got, getattr(np, name)(array, axis), strict=True)


@pytest.mark.parametrize("code", "dfeiBD")
def test_truth_of_numbers(code):
    """They are looked at as they are, without an array of bools."""
    for size in (1, 9, 1025):
        x = np.zeros((3, size), code)
        x[1, -1] = 0.5 if np.dtype(code).kind in "fc" else 2
        x[2] = np.nan if np.dtype(code).kind in "fc" else 3
        for array, axis in ((x, 1), (x.T.copy(), 0), (x[:, ::2], 1), (x[::-1], 0)):
            for name in ("any", "all"):
                got = getattr(reduction, name)(array, (axis,))
                np.testing.assert_array_equal(got, getattr(np, name)(array, axis), strict=True)
            assert reduction.any(array, (0, 1)).dtype == bool
    large = np.zeros((70, 1000), code)
    assert not reduction.any(large, (0, 1))
    large[35, 500] = 1
    assert reduction.any(large, (0, 1))
    assert not reduction.all(large, (0, 1))


def test_infinities():
    x = np.array([[np.inf, 1.0], [-np.inf, -np.inf], [-np.inf, 2.0]])
    assert softmax.logsumexp(x, (1,)).tolist() == [np.inf, -np.inf, 2.0]
    assert reduction.max(x, (0, 1)) == np.inf
    assert softmax.logsumexp(np.array([1000.0, 1000.0]), (0,)) == 1000 + np.log(2)


def test_sums_are_accurate():
    tenth = np.full(10**6, 0.1, np.float32)
    assert abs(reduction.sum(tenth, (0,)) - 1e5) < 0.05
    column = np.full((10**5, 2), 0.1, np.float32)
    np.testing.assert_allclose(reduction.sum(column, (0,)), 1e4, rtol=1e-5)
    assert reduction.sum(np.ones(4096, np.float16), (0,)) == 4096
    x = np.random.default_rng(0).normal(size=10**6)
    assert abs(reduction.sum(x, (0,)) - np.sum(x.astype("g"))) < 1e-9


def test_integers_wrap():
    assert reduction.sum(np.full(3, 100, np.int8), (0,)).tolist() == 44
    assert reduction.sum(np.full(threads.MIN_BLOCKED * 2, 2**30, np.int32), (0,)) == 0


@pytest.mark.parametrize("axis", range(3))
def test_along_one_axis(axis):
    x = np.round(numbers((5, 6, 7)))
    for code in "dfie":
        y = x.astype(code)
        np.testing.assert_array_equal(search.argmax(y, axis), y.argmax(axis), strict=True)
        np.testing.assert_array_equal(search.argmin(y, axis), y.argmin(axis), strict=True)
    assert search.argmax(x, axis, True).shape == x.max(axis, keepdims=True).shape
    got = softmax.log_softmax(x, axis)
    assert got.flags.c_contiguous
    want = x - np.log(np.exp(x).sum(axis, keepdims=True))
    np.testing.assert_allclose(got, want, rtol=1e-13, atol=1e-14)
    assert softmax.log_softmax(x.astype("e"), axis).dtype == np.float16
    assert softmax.logsumexp(x.astype("i"), (axis,)).dtype == np.float64


@pytest.mark.parametrize("code", ["d", "f", "e", "i"])
@pytest.mark.parametrize("shape", [(3,), (2, 4, 5), (7, 1), (3, 2500), (0, 3), (0, 0)])
def test_cross_entropy(shape, code):
    """The loss has the bits of log_softmax; zeros upstream mask whatever there is in a row."""
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(0, 9, shape)).astype(code)
    labels = np.asarray(rng.integers(max(shape[-1], 1), size=shape[:-1]), np.int32)
    if code != "i" and shape[0] > 3:
        x[0], x[1, -1], x[2, 0] = -np.inf, np.nan, np.inf
    logs, column = softmax.log_softmax(x, x.ndim - 1), (..., None)
    wanted = (
        np.take_along_axis(logs, labels[column], -1)[..., 0] if x.size else np.zeros(shape[:-1])
    )
    np.testing.assert_array_equal(softmax.cross_entropy(x, labels), -wanted)

    dy = np.asarray(rng.normal(size=shape[:-1]), logs.dtype)
    upstream = np.zeros(shape, logs.dtype)
    if x.size:
        np.put_along_axis(upstream, labels[column], -dy[column], -1)
    gradient = softmax.cross_entropy_grad(dy, x, labels)
    assert gradient.dtype == logs.dtype
    wanted = softmax.log_softmax_grad(upstream, logs, x.ndim - 1)
    eps = np.finfo(logs.dtype).eps
    np.testing.assert_allclose(gradient, wanted, 64 * eps, 8 * eps)
    assert not softmax.cross_entropy_grad(np.zeros_like(dy), x, labels).any()


def test_the_same_shape_again_in_another_layout_or_dtype():
    x = np.random.default_rng(5).normal(size=(70, 1000))
    for _ in range(2):  # the first makes ready what the second takes
        for view in (x, x[::-1], np.asfortranarray(x), x.astype(">f8"), x.astype(np.float16)):
            wide = view.astype(np.float64)
            tolerance = 1e-12 if view.dtype.itemsize == 8 else 2e-2
            got = reduction.sum(view, (1,))
            np.testing.assert_allclose(got, wide.sum(1), tolerance, tolerance)
            np.testing.assert_array_equal(
                reduction.max(view, (0,), True), wide.max(0, keepdims=True)
            )


@pytest.mark.parametrize("code", ["f", "d", "F"])
@pytest.mark.parametrize("reduction", [reduction.sum, reduction.prod])
def test_equal_rows_have_equal_results_wherever_they_stand(reduction, code):
    for count, length in product((2, 3, 4, 5, 6, 11, 67), (1, 7, 100, 1030)):
        rows = np.tile(numbers(length, code) / 2, (count, 1))
        result = reduction(rows, (1,))
        assert (result == result[0]).all()
        exact = getattr(np, reduction.name)(rows.astype("D" if code == "F" else "d"), axis=1)
        with np.errstate(under="ignore"):
            np.testing.assert_allclose(result, exact.astype(code), 1e-3, 1e-3)


def test_results_of_one_shape_are_arrays_of_their_own():
    x = np.ones((80, 1000))
    first = reduction.sum(x, (1,))
    second = reduction.sum(2 * x, (1,))
    np.testing.assert_array_equal(first, np.full(80, 1000.0))
    np.testing.assert_array_equal(second, np.full(80, 2000.0))


def test_zero_dimensions():
    x = np.array(2.5)
    assert softmax.logsumexp(x, ()) == 2.5
    assert reduction.any(x, ()).dtype == bool


def test_unsupported_dtypes():
    with pytest.raises(TypeError, match="sum: dtype object is not supported"):
        reduction.sum(np.zeros(2, object), (0,))
    with pytest.raises(TypeError, match="max: no kernel for dtype complex128"):
        reduction.max(np.zeros(2, complex), (0,))
    with pytest.raises(TypeError, match=r"argmax: dtype .* is not supported"):
        search.argmax(np.zeros(2, "g"), 0)
