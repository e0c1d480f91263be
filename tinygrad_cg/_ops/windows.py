"""The windows of convolution and pooling: sizes, steps, padding and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.conversion import is_tensor
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .define import as_shape
from .shape import expand_dims, squeeze, transpose

LAST = ("NHWC", "NWC", "channels_last")
FIRST = ("NCHW", "NCW", "channels_first")


class ImageLayout:
    """The layout of images: one or two spatial axes, channels last or first.

    `images` gives them as kernels take them, (n, height, width, channels); `back` undoes that.
    """

    def __init__(self, name: str, data_format: Any, space: int):
        if space not in (1, 2):
            raise InvalidArgumentError(
                f"{name}: is for one or two axes of space, between a batch and channels: "
                f"got {space}"
            )
        formats = (None, LAST[2], FIRST[2], LAST[2 - space], FIRST[2 - space])
        if data_format not in formats:
            raise InvalidArgumentError(
                f"{name}: data_format must be one of {formats[1:]}, got {data_format!r}"
            )
        self.name, self.space, self.first = name, space, data_format in FIRST

    def images(self, x: Tensor) -> Tensor:
        rank = x._data.ndim
        if rank != self.space + 2:
            raise InvalidArgumentError(
                f"{self.name}: images must have {self.space + 2} dimensions: a batch, "
                f"{self.space} of space, and channels; got shape {tuple(x.shape)}"
            )
        if self.first:
            x = transpose(x, (0, *range(2, rank), 1))
        return x if self.space == 2 else expand_dims(x, 1)

    def filters(self, x: Tensor) -> Tensor:
        """Return filters as kernels take them: (height, width, channels of a group, outputs)."""
        return x if self.space == 2 else expand_dims(x, 0)

    def back(self, x: Tensor) -> Tensor:
        if self.space == 1:
            x = squeeze(x, 1)
        rank = x._data.ndim
        return transpose(x, (0, rank - 1, *range(1, rank - 1))) if self.first else x

    def pair(self, argument: str, value: Any) -> tuple[int, int]:
        """Return numbers for height and width: from one for both, one each, or all; None is 1."""
        if value is None:
            return 1, 1
        sizes = as_shape(self.name, value)
        if len(sizes) == self.space + 2:
            others, sizes = self._split(sizes)
            if others != (1, 1):
                raise InvalidArgumentError(
                    f"{self.name}: {argument} must be 1 for batch and channels, got {value}"
                )
        sizes = sizes * self.space if len(sizes) == 1 else sizes
        if len(sizes) != self.space or min(sizes) < 1:
            raise InvalidArgumentError(
                f"{self.name}: {argument} must be one positive integer, or {self.space} or "
                f"{self.space + 2} of them, got {value}"
            )
        return (1, sizes[0]) if self.space == 1 else (sizes[0], sizes[1])

    def _split(self, entries: tuple) -> tuple[tuple, tuple]:
        """Split entries for all axes into those for batch and channels, and those for space."""
        if self.first:
            return entries[:2], entries[2:]
        return (entries[0], entries[-1]), entries[1:-1]

    def padding(
        self, value: Any, size: Sequence[int], reach: Sequence[int], strides: Sequence[int]
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return padding before and after, for height and width, from "SAME", "VALID", or pairs.

        After ``tf.nn.convolution``: SAME makes outputs of ceil(size / stride), and where the
        padding is odd puts one more after. `reach` is how far a window spans.
        """
        if isinstance(value, str):
            if value.upper() == "VALID":
                return (0, 0), (0, 0)
            if value.upper() == "SAME":
                down, across = map(_same, size, reach, strides)
                return down, across
            raise InvalidArgumentError(
                f"{self.name}: padding must be 'SAME', 'VALID' or pairs of numbers, got {value!r}"
            )
        pairs = self._pairs(value)
        return ((0, 0), pairs[0]) if self.space == 1 else (pairs[0], pairs[1])

    def _pairs(self, value: Any) -> tuple[tuple[int, int], ...]:
        rows = np.asarray(value).tolist() if is_tensor(value) else value
        rows = [rows] if isinstance(rows, int) else list(rows)
        pairs = tuple(
            (row, row) if isinstance(row, int) else as_shape(self.name, row) for row in rows
        )
        if len(pairs) == self.space + 2:
            others, pairs = self._split(pairs)
            if others != ((0, 0), (0, 0)):
                raise InvalidArgumentError(
                    f"{self.name}: batch and channels cannot be padded, got padding {value}"
                )
        if len(pairs) != self.space or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
            raise InvalidArgumentError(
                f"{self.name}: padding must be 'SAME', 'VALID' or {self.space} pairs of numbers "
                f"that are not negative, got {value}"
            )
        return tuple((pair[0], pair[1]) for pair in pairs)


def _same(size: int, reach: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2
