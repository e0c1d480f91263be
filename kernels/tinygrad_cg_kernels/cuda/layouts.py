"""Shapes and steps of operands that are broadcast, with as few dimensions as possible."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.cuda.launches import Place
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes


class DeviceLayout(NamedTuple):
    """The common iteration space of operands: the result's shape, and its number of elements."""

    shape: tuple[int, ...]
    count: int
    sizes: tuple[int, ...]
    """The sizes of merged dimensions, and the steps of each operand along them, in elements."""
    steps: tuple[tuple[int, ...], ...]
    flat: tuple[bool, ...] | None
    """Whether each operand is a row of all elements, or else one value; None if neither."""


def merge(places: Sequence[Place]) -> DeviceLayout:
    """Return the layout of operands; ValueError if they cannot be broadcast."""
    shape = broadcast_shapes(*[place.shape for place in places])
    sizes, merged = _merged(shape, _widened(shape, places))
    flat = None
    if len(sizes) == 1 and all(row[0] in (0, 1) for row in merged):
        flat = tuple([row[0] == 1 for row in merged])
    return DeviceLayout(shape, prod(shape), sizes, merged, flat)


def _widened(shape: tuple[int, ...], places: Sequence[Place]) -> list[tuple[int, ...]]:
    """Return the steps of operands that are broadcast to a shape: 0 where they repeat."""
    return [
        (0,) * (len(shape) - len(place.shape))
        + tuple([step * (n != 1) for n, step in zip(place.shape, place.steps, strict=True)])
        for place in places
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
    """The iteration space of a reduction of operands of a common shape over some dimensions."""

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    """The merged sizes of the kept dimensions, then those of the reduced ones."""
    inner: tuple[int, ...]
    by_columns: bool
    """Whether neighbours in memory belong to different results."""
    operands: tuple[Any, ...]
    """The arguments of kernels for operands."""


def split(places: Sequence[Place], axes: tuple[int, ...]) -> Split:
    """Return the layout of a reduction of operands over `axes`."""
    shape = broadcast_shapes(*[place.shape for place in places])
    wide = _widened(shape, places)
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
    rows = zip(places, outer, along, strict=True)
    operands = tuple([x for place, *steps in rows for x in (place, *steps, place.first)])
    return Split(shape, kept, inner, by_columns, operands)


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


def integers(arguments: Iterable[Any]) -> dict[str, type]:
    """Return the types of indices and positions for a kernel's places and numbers."""
    sizes = [x.size if type(x) is Place else x for x in arguments if type(x) is not tuple]
    if max(sizes) < NARROW:
        return {"index": np.uint32, "place": np.int32}
    return {"index": np.uint64, "place": np.int64}
