"""The convolution of ``autograd.scipy.signal``, over chosen axes."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

from ... import numpy as np
from ..numpy._numpy_functions import for_arrays
from .special import real

__all__ = ["convolve"]
__dir__ = __all__.copy


@for_arrays
def convolve(
    A: Any,
    B: Any,
    axes: Sequence[Sequence[int]] | None = None,
    dot_axes: Sequence[Sequence[int]] = ((), ()),
    mode: str = "full",
) -> Any:
    """Return the convolution of two arrays over pairs of axes.

    `axes` has the convolved axes of `A` and of `B`, by default all. Axes in
    `dot_axes` are multiplied and summed, as by ``tensordot``. The result has the remaining axes of
    `A`, then the axes of `B`, then the convolved ones: of size a + b - 1 ("full"), a ("same", the
    middle of these), or abs(a - b) + 1 ("valid", if one array covers the other). Differentiable
    with respect to both arrays, at every order. Raises ValueError for other modes, axes that do not
    fit, and for "valid" where neither array covers the other.
    """
    if mode not in ("full", "same", "valid"):
        raise ValueError(f"convolve: mode must be 'full', 'same' or 'valid', got {mode!r}")
    A, B = real(A), real(B)
    over_a, over_b, dot_a, dot_b = _axes(A, B, axes, dot_axes)
    sizes = [(A.shape[i], B.shape[j]) for i, j in zip(over_a, over_b, strict=True)]
    if mode == "valid":
        if all(a >= b for a, b in sizes):
            swap = False
        elif all(a <= b for a, b in sizes):
            swap = True
        else:
            raise ValueError(
                "convolve: mode='valid' needs one array at least as large as the other along "
                f"all convolved axes, got sizes {sizes}"
            )
    else:
        swap = sum(a - b for a, b in sizes) < 0
    # the larger is cut into windows of the smaller's size, and the smaller turned round
    large, small = (B, A) if swap else (A, B)
    over_large, over_small = (over_b, over_a) if swap else (over_a, over_b)
    if mode != "valid":
        margins = [(0, 0)] * large.ndim
        for i, j in zip(over_large, over_small, strict=True):
            margins[i] = (small.shape[j] - 1,) * 2
        large = np.pad(large, margins)
    letters = iter(ascii_letters)
    names_large, names_small = [[next(letters) for _ in array.shape] for array in (large, small)]
    for i, j in zip(*((dot_b, dot_a) if swap else (dot_a, dot_b)), strict=True):
        names_small[j] = names_large[i]
    operand, convolved = names_large.copy(), []
    for i, j in zip(over_large, over_small, strict=True):
        at, width = operand.index(names_large[i]), small.shape[j]
        starts = np.arange(large.shape[at] - width + 1)
        convolved.append(next(letters))
        large = np.take(large, starts[:, None] + np.arange(width), axis=at)
        operand[at : at + 1] = [convolved[-1], names_small[j]]
        small = np.flip(small, axis=j)
    free_large = [
        letter for letter in names_large if letter in operand and letter not in names_small
    ]
    free_small = [letter for letter in names_small if letter not in operand]
    free = free_small + free_large if swap else free_large + free_small
    equation = "".join([*operand, ",", *names_small, "->", *free, *convolved])
    result = np.einsum(equation, large, small)
    if mode == "same":
        for k, (a, b) in enumerate(sizes, len(free)):
            cut = [slice(None)] * result.ndim
            cut[k] = slice((b - 1) // 2, (b - 1) // 2 + a)
            result = result[tuple(cut)]
    return result


def _axes(A: Any, B: Any, axes: Any, dot_axes: Any) -> list[list[int]]:
    """Return convolved and summed axes of both, not negative; ValueError if they do not fit."""
    if axes is None:
        axes = (range(A.ndim), range(B.ndim))
    pairs = [
        [int(i) + array.ndim if i < 0 else int(i) for i in group]
        for group, array in zip((*axes, *dot_axes), (A, B, A, B), strict=True)
    ]
    for (of_a, other), text in zip((pairs[:2], pairs[2:]), ("axes", "dot_axes"), strict=True):
        if len(of_a) != len(other):
            raise ValueError(
                f"convolve: {text} must have as many axes of A as of B, got {of_a} and {other}"
            )
    for array, used in ((A, pairs[0] + pairs[2]), (B, pairs[1] + pairs[3])):
        if len(set(used)) != len(used) or not all(0 <= i < array.ndim for i in used):
            raise ValueError(
                f"convolve: axes and dot_axes must be different axes of an array of shape "
                f"{tuple(array.shape)}, got {used}"
            )
    return pairs
