"""The windows of convolution and pooling: sizes, steps, padding and layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.conversion import is_tensor
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .shape import expand_dims, squeeze, transpose
from .validation import as_choice, as_shape

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


class ImageLayout:
    """The layout of images: one to three spatial axes, channels last or first.

    `images` gives them as kernels take them, (n, height, width, channels), or with a depth before
    the height; `back` undoes that.
    """

    def __init__(self, name: str, data_format: Any, space: int, most: int = 2):
        if not 1 <= space <= most:
            raise InvalidArgumentError(
                f"{name}: images must have shape (batch, height, width, channels), with one or "
                f"two axes of space: got {space + 2} axes"
            )
        last, first = _FORMATS[space]
        if data_format is not None:
            choices = ("channels_last", "channels_first", last, first)
            as_choice(name, "data_format", data_format, choices)
        self.name, self.space, self.first = name, space, data_format in ("channels_first", first)

    def images(self, x: Tensor) -> Tensor:
        rank = x._data.ndim
        if rank != self.space + 2:
            raise InvalidArgumentError(
                f"{self.name}: images must have {self.space + 2} dimensions: a batch, "
                f"{self.space} of space, and channels; got shape {tuple(x.shape)}"
            )
        if self.first:
            x = transpose(x, (0, *range(2, rank), 1))
        return expand_dims(x, 1) if self.space == 1 else x

    def filters(self, x: Tensor) -> Tensor:
        """Return filters as kernels take them: (height, width, channels of a group, outputs)."""
        return expand_dims(x, 0) if self.space == 1 else x

    def back(self, x: Tensor) -> Tensor:
        if self.space == 1:
            x = squeeze(x, 1)
        rank = x._data.ndim
        return transpose(x, (0, rank - 1, *range(1, rank - 1))) if self.first else x

    def sizes(self, argument: str, value: Any) -> Any:
        """Return a number for each axis: from one for all, one each, or also those for batch and
        channels; None is 1.
        """
        sizes = (1,) if value is None else as_shape(self.name, value)
        sizes = self.inner(sizes, 1, f"{argument} must be 1 for batch and channels, got {value}")
        sizes = sizes * self.space if len(sizes) == 1 else sizes
        if len(sizes) != self.space or min(sizes) < 1:
            raise InvalidArgumentError(
                f"{self.name}: {argument} must be one positive integer, or {self.space} or "
                f"{self.space + 2} of them, got {value}"
            )
        return (1, *sizes) if self.space == 1 else sizes

    def inner(self, entries: tuple, neutral: Any = None, words: str = "") -> tuple:
        """Return the entries for space, of those for all axes if there are as many.

        Raises InvalidArgumentError with `words` unless those for batch and channels are `neutral`.
        """
        if len(entries) != self.space + 2:
            return entries
        others = entries[:2] if self.first else (entries[0], entries[-1])
        if neutral is not None and others != (neutral, neutral):
            raise InvalidArgumentError(f"{self.name}: {words}")
        return entries[2:] if self.first else entries[1:-1]

    def output_shape(self, value: Any) -> tuple[tuple[int, ...], Any]:
        """Return the shape asked for, of all axes or the spatial axes, and its sizes in space."""
        asked = as_shape(self.name, value)
        sizes = self.inner(asked)
        if len(sizes) != self.space or min(sizes) < 0:
            raise InvalidArgumentError(
                f"{self.name}: output_shape must have {self.space} or {self.space + 2} sizes, "
                f"got {value}"
            )
        return asked, (1, *sizes) if self.space == 1 else sizes

    def check_output(self, asked: tuple[int, ...], out: Tensor) -> Tensor:
        """Return `out`, if it has the shape that was asked for of all axes."""
        if len(asked) == out._data.ndim and asked != out._data.shape:
            raise InvalidArgumentError(
                f"{self.name}: output_shape is {asked}, but the batch and the channels of x and "
                f"filters make {tuple(out.shape)}"
            )
        return out

    def padding(
        self, value: Any, size: Sequence[int], reach: Sequence[int], strides: Sequence[int]
    ) -> Any:
        """Return padding before and after, for each axis, from "SAME", "VALID", or pairs.

        Modelled on ``tf.nn.convolution``: SAME makes outputs of ceil(size / stride), and where the
        padding is odd puts one more after. `reach` is how far a window spans.
        """
        if isinstance(value, str):
            if value.upper() == "VALID":
                return ((0, 0),) * len(size)
            if value.upper() == "SAME":
                return tuple(map(_same, size, reach, strides))
            raise InvalidArgumentError(
                f"{self.name}: padding must be 'SAME', 'VALID' or pairs of numbers, got {value!r}"
            )
        pairs = self._pairs(value)
        return ((0, 0), *pairs) if self.space == 1 else pairs

    def _pairs(self, value: Any) -> tuple[tuple[int, ...], ...]:
        rows = np.asarray(value).tolist() if is_tensor(value) else value
        rows = [rows] if isinstance(rows, int) else list(rows)
        pairs = tuple(
            (row, row) if isinstance(row, int) else as_shape(self.name, row) for row in rows
        )
        words = f"batch and channels cannot be padded, got padding {value}"
        pairs = self.inner(pairs, (0, 0), words)
        if len(pairs) != self.space or any(len(pair) != 2 or min(pair) < 0 for pair in pairs):
            raise InvalidArgumentError(
                f"{self.name}: padding must be 'SAME', 'VALID' or {self.space} pairs of numbers "
                f"that are not negative, got {value}"
            )
        return pairs


def _same(size: int, reach: int, stride: int) -> tuple[int, int]:
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2
