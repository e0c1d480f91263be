"""Convolution and pooling in plain NumPy, one window or tap at a time, for records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinygrad_cg_kernels.linear.conv import Geometry
from tinygrad_cg_kernels.linear.pool import Window


def _taps(padded: np.ndarray, window: Any, out: Any, geometry: Geometry) -> Iterator[tuple]:
    """For each place in the window the view of what stands under it, by groups."""
    for place in np.ndindex(*window):
        index = tuple(
            slice(i * dilation, i * dilation + stride * (count - 1) + 1, stride)
            for i, count, stride, dilation in zip(
                place, out, geometry.strides, geometry.dilations, strict=True
            )
        )
        view = padded[(slice(None), *index)]
        yield place, view.reshape(*view.shape[:3], geometry.groups, -1)


def _pad(x: np.ndarray, geometry: Geometry) -> np.ndarray:
    return np.pad(x, ((0, 0), *geometry.padding, (0, 0)))


def _grouped(x: np.ndarray, groups: int) -> np.ndarray:
    return x.reshape(*x.shape[:-1], groups, -1)


def conv(x: np.ndarray, filters: np.ndarray, geometry: Geometry) -> np.ndarray:
    out = geometry.output_size(x.shape[1:3], filters.shape[:2])
    total: Any = 0
    for place, view in _taps(_pad(x, geometry), filters.shape[:2], out, geometry):
        weights = _grouped(filters[place], geometry.groups)
        total = total + np.einsum("nhwgc,cgo->nhwgo", view, weights)
    return total.reshape(x.shape[0], *out, filters.shape[3])


def conv_input(x: np.ndarray, filters: np.ndarray, geometry: Geometry, size: Any) -> np.ndarray:
    channels = filters.shape[2] * geometry.groups
    padded = np.zeros((x.shape[0], *geometry.padded(size), channels), x.dtype)
    pairs = _taps(padded, filters.shape[:2], x.shape[1:3], geometry)
    for place, view in pairs:
        weights = _grouped(filters[place], geometry.groups)
        view += np.einsum("nhwgo,cgo->nhwgc", _grouped(x, geometry.groups), weights)
    (top, _), (left, _) = geometry.padding
    return padded[:, top : top + size[0], left : left + size[1]]


def conv_filter(x: np.ndarray, y: np.ndarray, geometry: Geometry, window: Any) -> np.ndarray:
    parts = [
        np.einsum("nhwgc,nhwgo->cgo", view, _grouped(y, geometry.groups))
        for _, view in _taps(_pad(x, geometry), window, y.shape[1:3], geometry)
    ]
    return np.reshape(parts, (*window, parts[0].shape[0], y.shape[3]))


def pool(fold: Callable) -> Callable:
    """The map that folds what lies under each window."""

    def reference(x: np.ndarray, window: Window) -> np.ndarray:
        rows, columns = window.output_size(x.shape[-3:-1])
        lines = [
            np.stack([fold(_under(x, window, (i, j))) for j in range(columns)], -2)
            for i in range(rows)
        ]
        return np.stack(lines, -3)

    return reference


def _under(x: np.ndarray, window: Window, place: Any) -> np.ndarray:
    """(..., elements, channels) under one window, less what lies outside the image."""
    index = []
    for i, size, stride, pads in zip(
        place, window.size, window.strides, window.padding, strict=True
    ):
        start = i * stride - pads[0]
        index.append(slice(max(start, 0), start + size))
    part = x[(..., *index, slice(None))]
    return part.reshape(*part.shape[:-3], -1, part.shape[-1])
