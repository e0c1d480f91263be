"""Shapes and steps of operands that are broadcast, with as few dimensions as possible."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda.launches import Place
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes


class DeviceLayout(NamedTuple):
    """The common iteration space of operands."""

    shape: tuple[int, ...]
    """The result's shape."""
    count: int
    """The number of elements of the result."""
    sizes: tuple[int, ...]
    """The sizes of merged dimensions."""
    steps: tuple[tuple[int, ...], ...]
    """The steps of each operand along these dimensions, in elements."""
    flat: tuple[bool, ...] | None
    """Whether each operand is a row of all elements, or else one value; None if neither."""


@lru_cache(maxsize=4096)
def merge(shapes: tuple[tuple[int, ...], ...], steps: tuple[tuple[int, ...], ...]) -> DeviceLayout:
    """Return the layout of operands; ValueError if they cannot be broadcast."""
    shape = broadcast_shapes(*shapes)
    sizes, merged = _merged(shape, _widened(shape, shapes, steps))
    flat = None
    if len(sizes) == 1 and all(row[0] in (0, 1) for row in merged):
        flat = tuple([row[0] == 1 for row in merged])
    return DeviceLayout(shape, prod(shape), sizes, merged, flat)


def _widened(
    shape: tuple[int, ...], shapes: Sequence[tuple[int, ...]], steps: Sequence[tuple[int, ...]]
) -> list[tuple[int, ...]]:
    """Return the steps of operands that are broadcast to a shape: 0 where they repeat."""
    return [
        (0,) * (len(shape) - len(own))
        + tuple([0 if n == 1 else step for n, step in zip(own, by, strict=True)])
        for own, by in zip(shapes, steps, strict=True)
    ]


def _merged(
    shape: Sequence[int], steps: Sequence[Sequence[int]]
) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Merge dimensions that all operands step through as one; return the sizes and steps.

    There is at least one dimension.
    """
    dimensions: list[tuple[int, ...]] = []  # for each its size, then the step of each operand
    for size, *own in zip(shape, *steps, strict=True):
        if size == 1:
            continue
        together = bool(dimensions) and dimensions[-1][1:] == tuple([step * size for step in own])
        outer = dimensions.pop()[0] if together else 1
        dimensions.append((outer * size, *own))
    sizes, *merged = zip(*dimensions or [(1, *(0,) * len(steps))], strict=True)
    return sizes, tuple(merged)


class Split(NamedTuple):
    """The iteration space of a reduction of operands over some dimensions."""

    shape: tuple[int, ...]
    """The operands' common shape."""
    kept: tuple[int, ...]
    """The merged sizes of the kept dimensions, then those of the reduced ones."""
    inner: tuple[int, ...]
    kept_steps: tuple[tuple[int, ...], ...]
    inner_steps: tuple[tuple[int, ...], ...]
    by_columns: bool
    """Whether neighbours in memory belong to different results."""

    def operands(self, places: Sequence[Place]) -> Iterator[Any]:
        """Yield the arguments of kernels for operands."""
        for place, *steps in zip(places, self.kept_steps, self.inner_steps, strict=True):
            yield from (place, *steps, place.first)


@lru_cache(maxsize=4096)
def split(
    shapes: tuple[tuple[int, ...], ...], steps: tuple[tuple[int, ...], ...], axes: tuple[int, ...]
) -> Split:
    """Return the layout of a reduction over `axes` of operands with these shapes and steps."""
    shape = broadcast_shapes(*shapes)
    wide = _widened(shape, shapes, steps)
    sides = []
    for is_inner in (False, True):
        chosen = [d for d in range(len(shape)) if (d in axes) == is_inner]
        rows = [[row[d] for d in chosen] for row in wide]
        sides.append(_merged([shape[d] for d in chosen], rows))
    (kept, outer), (inner, along) = sides
    finest = [
        min([abs(step) for step, n in zip(row, sizes, strict=True) if n > 1 and step], default=0)
        for sizes, row in ((kept, outer[0]), (inner, along[0]))
    ]
    by_columns = bool(finest[0]) and (not finest[1] or finest[0] < finest[1])
    return Split(shape, kept, inner, outer, along, by_columns)


_WALK = """
rest = index({index})
for back in range(len({sizes}) - 1):
    d = len({sizes}) - 1 - back
    size = index({sizes}[d])
    k = place(rest % size)
    rest = index(rest // size)
    {moves}
k = place(rest)
{last}"""


def walk(index: str, sizes: str, steps: Sequence[tuple[str, str]], depth: int) -> str:
    """Return statements that advance positions to an index into dimensions of some sizes.

    `steps` names positions and their steps, `integers` types. `depth` is the indentation.
    """
    moves, last = [
        "; ".join(f"{position} = place({position} + k * {step}[{d}])" for position, step in steps)
        for d in ("d", "0")
    ]
    text = _WALK.format(index=index, sizes=sizes, moves=moves, last=last)
    return text.replace("\n", "\n" + "    " * depth).strip()


NARROW = 2**31
"""Below this many elements, indices and positions have 32 bits, whose division is much faster."""


def integers(counts: Iterable[int]) -> dict[str, type]:
    """Return the types of indices and positions for memory and results of some lengths."""
    if max(counts) < NARROW:
        return {"index": np.uint32, "place": np.int32}
    return {"index": np.uint64, "place": np.int64}
