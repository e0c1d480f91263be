"""Plans for operands that are broadcast: flat rows, or tiles of three dimensions."""

import itertools
from functools import lru_cache
from math import prod
from typing import NamedTuple

from tinygrad_cg_kernels.loops.tiles import BUFFER
from tinygrad_cg_kernels.runtime.promotion import broadcast_shapes

STACKED = 64  # with fewer columns, several rows make up one loop
TILE = (16, 64)  # rows and columns of a tile, if an operand is transposed

FLAT = {(1, ()), (2, ()), (2, (0,)), (2, (1,)), (3, ()), (3, (1, 2))}
"""The number of contiguous operands, and which are single values, for which there are flat kernels.
Kernels for other choices would take longer to compile than they save."""

Shape = tuple[int, ...]
Layouts = tuple[tuple[Shape, Shape], ...]


class LoopPlan(NamedTuple):
    """The plan for operands of given shapes and strides."""

    shape: Shape
    """The result's."""
    flat: bool
    """Whether operands are rows of all elements, or else tiles (see `tiles.find_rows`)."""
    values: Shape
    """Which operands have one value in each row."""
    sizes: Shape
    """The numbers in a kernel's table after the addresses, without those of the outputs."""
    units: int
    """The number of elements or tiles."""
    views: tuple[Shape, ...] = ()
    """The shapes to which operands and the output are reshaped, if there are outer dimensions."""
    outer: Shape = ()
    """The leading dimensions of the views, over which Python loops."""


def _is_contiguous(shape: Shape, strides: Shape, itemsize: int) -> bool:
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != itemsize:
            return False
        itemsize *= size
    return True


@lru_cache(maxsize=4096)
def plan(itemsizes: Shape, *flat_layouts: Shape) -> LoopPlan:
    """Return the plan for operands; `flat_layouts` has the shape and strides of each in turn.

    ValueError if they cannot be broadcast.
    """
    layouts = tuple(zip(flat_layouts[::2], flat_layouts[1::2], strict=True))
    shape = broadcast_shapes(*[sizes for sizes, _ in layouts])
    size = prod(shape)
    if size:  # a repeated value is a single value
        layouts = tuple([x if any(x[1]) or prod(x[0]) == 1 else ((), ()) for x in layouts])
    if all(map(_is_contiguous, *zip(*layouts, strict=True), itemsizes)):
        values = tuple(
            k
            for k, (sizes, _) in enumerate(layouts)
            if shape and (prod(sizes) != size or not sizes)
        )
        single = all(prod(layouts[k][0]) == 1 for k in values)
        if single and (len(layouts), values) in FLAT:
            steps = tuple(0 if k in values else itemsize for k, itemsize in enumerate(itemsizes))
            return LoopPlan(shape, True, values, steps, size)
    views, steps = _coalesce(shape, layouts)
    outer, inner_shape = views[-1][:-3], views[-1][-3:]
    tiling, units = _tiling(inner_shape, steps, itemsizes)
    values = tuple(k for k, step in enumerate(steps) if not tiling[6] and not step[2])
    sizes = (*tiling, *itertools.chain(*[(*a, b) for a, b in zip(steps, itemsizes, strict=True)]))
    return LoopPlan(shape, False, values, sizes, units, views, outer)


def _tiling(
    shape: Shape, steps: list[tuple[int, ...]], itemsizes: tuple[int, ...]
) -> tuple[tuple[int, ...], int]:
    """Return the first seven of a kernel's `sizes`, and the number of tiles."""
    n0, n1, n2 = shape
    across = any(
        0 < abs(step) < abs(gap) and abs(gap) != size
        for (_, step, gap), size in zip(steps, itemsizes, strict=True)
    )
    stacked = n2 < STACKED
    if stacked:
        rows, columns = BUFFER // max(n2, 1), n2
    else:
        rows, columns = TILE if across else (max(BUFFER // n2, 1), BUFFER)
    down, right = -(-n1 // rows), -(-n2 // max(columns, 1))
    return (n1, n2, rows, columns, down, right, int(stacked)), n0 * down * right


def _coalesce(shape: Shape, layouts: Layouts) -> tuple[tuple[Shape, ...], list[Shape]]:
    """Merge dimensions; return the shapes of operands and output, and each operand's last steps.

    There are at least three dimensions, and steps of the last three. The step is 0 where an operand
    repeats. Neighbouring dimensions are merged if each operand either steps through both as one or
    repeats along both, so reshaping an operand to its merged shape gives a view.
    """
    padded = []
    for sizes, strides in layouts:
        missing = len(shape) - len(sizes)
        padded.append(((1,) * missing + sizes, (0,) * missing + strides))
    merged: list[tuple[int, list[tuple[int, int]]]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        here = [(sizes[axis], strides[axis]) for sizes, strides in padded]
        if merged and all(map(_mergeable, merged[-1][1], here)):
            before = [count for count, _ in merged[-1][1]]
            larger = [(n * count, step) for n, (count, step) in zip(before, here, strict=True)]
            merged[-1] = (merged[-1][0] * size, larger)
        else:
            merged.append((size, here))
    lead = (1,) * max(3 - len(merged), 0)
    operands = [[run[k] for _, run in merged] for k in range(len(layouts))]
    views = [lead + tuple(count for count, _ in runs) for runs in operands]
    steps = [(0,) * len(lead) + tuple(s if n > 1 else 0 for n, s in runs) for runs in operands]
    return (*views, lead + tuple(size for size, _ in merged)), [strides[-3:] for strides in steps]


def _mergeable(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    (outer_size, outer_step), (size, step) = outer, inner
    if size == 1 or outer_size == 1:
        return size == outer_size
    return outer_step == size * step
