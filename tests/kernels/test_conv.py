"""Convolution and pooling against NumPy, and each map against its transpose."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tinygrad_cg_kernels.linear import conv as convolutions
from tinygrad_cg_kernels.linear import windows as sums
from tinygrad_cg_kernels.linear.conv import Geometry, conv, conv_filter, conv_input
from tinygrad_cg_kernels.linear.pool import (
    Window,
    max_pool,
    max_pool_indices,
    mean_pool,
    mean_pool_adjoint,
)
from tinygrad_cg_kernels.runtime import threads

GEOMETRIES = [
    Geometry(),
    Geometry((2, 3), ((1, 2), (0, 1))),
    Geometry((1, 2), ((2, 2), (1, 1)), (2, 3)),
    Geometry((1, 1), ((1, 1), (1, 1)), (1, 1), 2),
    Geometry((2, 1), ((0, 0), (2, 0)), (1, 2), 4),
]
PRECISION = {"f": 1e-4, "d": 1e-12, "F": 1e-4, "D": 1e-12, "i": 0, "e": 1e-2}


def numbers(*shape, code="d"):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) * (3 if code == "i" else 1)
    return (x + 1j * rng.normal(size=shape) if code in "FD" else x).astype(code)


def windows(x, size, geometry):
    """What lies under each window: (n, rows, columns, channels, height, width)."""
    x = np.pad(x, ((0, 0), *geometry.padding, (0, 0)))
    (down, across), (tall, broad) = geometry.strides, geometry.dilations
    reach = tall * (size[0] - 1) + 1, broad * (size[1] - 1) + 1
    return sliding_window_view(x, reach, (1, 2))[:, ::down, ::across, :, ::tall, ::broad]


def slowly(x, filters, geometry):
    under = windows(x, filters.shape[:2], geometry)
    under = under.reshape(*under.shape[:3], geometry.groups, -1, *under.shape[4:])
    weights = filters.reshape(*filters.shape[:3], geometry.groups, -1)
    out = np.einsum("nxygchw,hwcgo->nxygo", under, weights)
    return out.reshape(*out.shape[:3], -1)


@pytest.mark.parametrize("code", "efdFDi")
@pytest.mark.parametrize("size", [(3, 2), (1, 1)])
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolution_and_its_transposes(geometry, size, code):
    x = numbers(2, 8, 9, 4, code=code)
    filters = numbers(*size, 4 // geometry.groups, 8, code=code)
    out = conv(x, filters, geometry)
    expected = slowly(x.astype("f") if code == "e" else x, filters, geometry)
    assert out.dtype == x.dtype
    np.testing.assert_allclose(out, expected, rtol=PRECISION[code], atol=10 * PRECISION[code])
    if code in "dD":
        y = numbers(*out.shape, code=code)
        product = (out * y).sum()
        for other, back in (
            (x, conv_input(y, filters, geometry, (8, 9))),
            (filters, conv_filter(x, y, geometry, size)),
        ):
            assert back.shape == other.shape
            assert back.flags.c_contiguous
            np.testing.assert_allclose((back * other).sum(), product)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_more_windows_than_one_sum_adds_up(groups):
    geometry = Geometry((1, 1), ((1, 1), (1, 1)), (1, 1), groups)
    x, filters = numbers(3, 70, 60, 4), numbers(3, 3, 4 // groups, 4)
    assert x.size / 4 > 10 * sums.CHUNK
    out = conv(x, filters, geometry)
    np.testing.assert_allclose(out, slowly(x, filters, geometry), atol=1e-12)
    y = numbers(*out.shape)
    back = conv_input(y, filters, geometry, (70, 60)), conv_filter(x, y, geometry, (3, 3))
    np.testing.assert_allclose((back[0] * x).sum(), (out * y).sum())
    np.testing.assert_allclose((back[1] * filters).sum(), (out * y).sum())


@pytest.mark.parametrize("window", [(1, 1), (3, 2), (4, 5)])
@pytest.mark.parametrize("dilations", [(1, 1), (2, 3)])
@pytest.mark.parametrize("strides", [(1, 1), (2, 3), (4, 6)])
def test_strides_and_dilations_leave_out_positions(strides, dilations, window):
    geometry = Geometry(strides, ((0, 3), (4, 0)), dilations)
    x, filters = numbers(1, 11, 13, 2), numbers(*window, 2, 3)
    out = conv(x, filters, geometry)
    np.testing.assert_allclose(out, slowly(x, filters, geometry), atol=1e-12)
    y = numbers(*out.shape)
    back = conv_input(y, filters, geometry, (11, 13)), conv_filter(x, y, geometry, window)
    np.testing.assert_allclose((back[0] * x).sum(), (out * y).sum())
    np.testing.assert_allclose((back[1] * filters).sum(), (out * y).sum())


@pytest.mark.parametrize("code", "fdFi")
@pytest.mark.parametrize(
    ("channels", "outputs", "groups"),
    [*[(3, outputs, 1) for outputs in (1, 4, 9, 16, 17, 40)], (3, 3, 3), (20, 40, 20)],
)
def test_results_do_not_depend_on_threads_or_tiles(channels, outputs, groups, code, monkeypatch):
    x, geometry = numbers(2, 30, 31, channels, code=code), Geometry(groups=groups)
    filters = numbers(3, 3, channels // groups, outputs).astype(code)

    def run():
        out = conv(x, filters, geometry)
        maps = (
            out,
            conv_input(out, filters, geometry, (30, 31)),
            conv_filter(x, out, geometry, (3, 3)),
        )
        return [result.tobytes() for result in maps]

    expected = run()
    with threads.single_thread:
        assert run() == expected
    monkeypatch.setattr(sums, "_tile", lambda dtype, outputs: sums._Tile(2, 4))
    monkeypatch.setattr(convolutions, "_planned", convolutions._planned.__wrapped__)
    assert run() == expected


def test_leading_axes_broadcast():
    x, filters, geometry = numbers(3, 2, 4, 5, 2), numbers(2, 2, 2, 3), Geometry()
    out = conv(x, filters, geometry)
    for row, example in zip(out, x, strict=True):
        np.testing.assert_allclose(row, conv(example, filters, geometry))
    stack = np.stack([filters, 2 * filters, -filters])
    np.testing.assert_allclose(conv(x, stack, geometry)[1], 2 * out[1])
    np.testing.assert_allclose(conv(x[0], stack, geometry)[2], -out[0])
    result = conv_filter(x, out, geometry, (2, 2))
    assert result.shape == (3, 2, 2, 2, 3)


def test_no_images():
    out = conv(numbers(0, 4, 5, 2), numbers(2, 2, 2, 3), Geometry())
    assert out.shape == (0, 3, 4, 3)
    assert conv_input(out, numbers(2, 2, 2, 3), Geometry(), (4, 5)).shape == (0, 4, 5, 2)
    assert not conv_filter(numbers(0, 4, 5, 2), out, Geometry(), (2, 2)).any()


def test_overflow_does_not_warn():
    huge = np.full((1, 3, 3, 2), 1e200)
    assert np.isinf(conv(huge, huge[0, :2, :2, :, None], Geometry())).all()


def test_what_does_not_fit_is_refused():
    x, filters = numbers(1, 3, 3, 2), numbers(2, 2, 2, 3)
    with pytest.raises(ValueError, match=r"a window of \(5, 5\) .* does not fit"):
        conv(x, numbers(5, 5, 2, 1), Geometry())
    with pytest.raises(ValueError, match="do not fit together"):
        conv(x, numbers(2, 2, 3, 1), Geometry())
    with pytest.raises(ValueError, match="do not fit together"):
        conv_input(numbers(1, 3, 3, 3), filters, Geometry(), (3, 3))
    with pytest.raises(ValueError, match="do not fit together"):
        conv_filter(x, numbers(1, 3, 3, 3), Geometry(), (2, 2))
    with pytest.raises(TypeError, match="conv: does not support bool"):
        conv(x > 0, filters > 0, Geometry())


# Pooling -------------------------------------------------------------------------------------

WINDOWS = [
    Window((2, 2), (2, 2)),
    Window((3, 2), (2, 1), ((1, 1), (0, 1))),
    Window((1, 5), (1, 3), ((0, 0), (4, 2))),
]


def under(x, window, fill):
    x = np.pad(x, ((0, 0), *window.padding, (0, 0)), constant_values=fill)
    down, across = window.strides
    return sliding_window_view(x, window.size, (1, 2))[:, ::down, ::across]


@pytest.mark.parametrize("code", "fdil?")
@pytest.mark.parametrize("window", WINDOWS)
def test_the_largest_and_its_index(window, code):
    x = numbers(2, 7, 6, 5, code=code)
    fill = False if code == "?" else -100
    out = max_pool(x, window)
    assert out.dtype == x.dtype
    np.testing.assert_array_equal(out, under(x, window, fill).max((-2, -1)))
    indices = max_pool_indices(x, window).reshape(2, -1, 5)
    results = np.take_along_axis(x.reshape(2, -1, 5), indices, 1)
    np.testing.assert_array_equal(results.reshape(out.shape), out)
    numbered = np.arange(42.0).reshape(1, 7, 6, 1)
    ties = max_pool_indices(np.zeros((1, 7, 6, 1)), window)
    np.testing.assert_array_equal(ties, under(numbered, window, np.inf).min((-2, -1)))


@pytest.mark.parametrize("window", WINDOWS)
def test_means_leave_out_what_is_outside(window):
    x = numbers(2, 7, 6, 5)
    out = mean_pool(x, window)
    np.testing.assert_allclose(out, np.nanmean(under(x, window, np.nan), (-2, -1)))
    y = numbers(*out.shape)
    back = mean_pool_adjoint(y, window, (7, 6))
    np.testing.assert_allclose((back * x).sum(), (y * out).sum())
    assert mean_pool(x.astype("i"), window).dtype == np.float64


def test_nan_is_the_largest():
    x = np.array([1.0, np.nan, 5.0, 2.0, np.inf, np.nan]).reshape(1, 1, 6, 1)
    window = Window((1, 3), (1, 3))
    np.testing.assert_array_equal(max_pool(x, window).ravel(), [np.nan, np.nan])
    assert max_pool_indices(x, window).ravel().tolist() == [1, 5]


def test_pools_that_hold_nothing_are_refused():
    x = numbers(1, 2, 3, 1)
    with pytest.raises(ValueError, match="padding must be less than the window"):
        max_pool(x, Window((2, 2), (1, 1), ((2, 0), (0, 0))))
    with pytest.raises(ValueError, match="images not empty"):
        mean_pool(numbers(1, 0, 3, 1), Window((2, 2), (1, 1), ((1, 1), (0, 0))))
    with pytest.raises(ValueError, match="does not fit"):
        max_pool(x, Window((3, 1), (1, 1)))
    with pytest.raises(ValueError, match=r"gives \(1, 2\), not \(1, 1, 1, 1\)"):
        mean_pool_adjoint(numbers(1, 1, 1, 1), Window((2, 2), (1, 1)), (2, 3))
    with pytest.raises(TypeError, match="complex numbers have no order"):
        max_pool(x.astype("D"), Window((2, 2), (1, 1)))


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("multiple", [1, 2])
def test_each_channel_by_itself(channels, multiple):
    """Few channels are run a line of windows at a time, many a window at a time."""
    for geometry in GEOMETRIES[:3]:
        geometry = geometry._replace(groups=channels)
        x, filters = numbers(2, 8, 9, channels), numbers(3, 2, 1, channels * multiple)
        out = conv(x, filters, geometry)
        np.testing.assert_allclose(out, slowly(x, filters, geometry), atol=1e-12)
        y = numbers(*out.shape)
        back = conv_input(y, filters, geometry, (8, 9)), conv_filter(x, y, geometry, (3, 2))
        np.testing.assert_allclose((back[0] * x).sum(), (out * y).sum())
        np.testing.assert_allclose((back[1] * filters).sum(), (out * y).sum())
