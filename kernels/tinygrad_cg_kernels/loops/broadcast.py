"""How operands that broadcast together are run: which kernel, over which dimensions."""

import itertools
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from tinygrad_cg_kernels.loops import inner
from tinygrad_cg_kernels.runtime import threads

SPLIT = threads.THRESHOLD
STACKED = 64  # columns below which several rows make one loop
TILE = (16, 64)  # rows and columns at a time where an operand's steps cross

CONTIGUOUS = {
    (1, ()): "flat",
    (2, ()): "flat",
    (2, (0,)): "scalar_x",
    (2, (1,)): "scalar_y",
    (3, ()): "flat",
    (3, (1, 2)): "scalar_yz",
}
"""The variant for contiguous operands, by their number and which of them are scalars."""

Layouts = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]


class Plan(NamedTuple):
    """How operands of some shapes and strides are run."""

    shape: tuple[int, ...]
    variant: str
    views: tuple[tuple[int, ...], ...]
    """What each operand, and last the output, is reshaped to."""
    outer: tuple[int, ...] = ()
    """Leading dimensions of the views that are looped over in Python."""
    sizes: tuple[int, ...] = ()
    """What the general kernel is told of tiles and steps (see `inner`)."""
    units: int = 0
    """How many tiles there are."""
    quick: bool = False
    """Whether the general kernel can be entered without a second look."""


def _is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...], itemsize: int) -> bool:
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != itemsize:
            return False
        itemsize *= size
    return True


@lru_cache(maxsize=4096)
def plan(itemsizes: tuple[int, ...], *flat_layouts: tuple[int, ...]) -> Plan:
    """The plan for operands with these shapes and strides, one after the other.

    ValueError if they do not broadcast.
    """
    layouts = tuple(zip(flat_layouts[::2], flat_layouts[1::2], strict=True))
    shape = np.broadcast_shapes(*[sizes for sizes, _ in layouts])
    sizes = [prod(operand) for operand, _ in layouts]
    size = prod(shape)
    if not shape:
        return Plan(shape, "flat", ((1,),) * (len(layouts) + 1))
    if all(map(_is_contiguous, *zip(*layouts, strict=True), itemsizes)):
        ranks = [len(operand) for operand, _ in layouts]
        scalars = tuple(k for k, count in enumerate(sizes) if count != size or not ranks[k])
        if all(sizes[k] == 1 for k in scalars) and (len(layouts), scalars) in CONTIGUOUS:
            flat = [() if k in scalars else (size,) for k in range(len(layouts))]
            variant = CONTIGUOUS[len(layouts), scalars]
            return Plan(shape, variant, (*flat, (size,)))
    views, steps = _coalesced(shape, layouts)
    outer, inner_shape = views[-1][:-3], views[-1][-3:]
    tiling, units = _tiling(inner_shape, steps, itemsizes)
    once = any(not any(strides) for _, strides in layouts)
    quick = 0 < size < SPLIT and not outer and not once
    sizes = (*tiling, *itertools.chain(*steps))
    return Plan(shape, "general", views, outer, sizes, units, quick)


def _tiling(
    shape: tuple[int, ...], steps: list[tuple[int, ...]], itemsizes: tuple[int, ...]
) -> tuple[tuple[int, ...], int]:
    """The first seven of a kernel's `sizes`, and how many tiles there are."""
    n0, n1, n2 = shape
    across = any(
        0 < abs(step) < abs(gap) and abs(gap) != size
        for (_, step, gap), size in zip(steps, itemsizes, strict=True)
    )
    stacked = n2 < STACKED
    if stacked:
        rows, columns = inner.BUFFER // max(n2, 1), n2
    else:
        rows, columns = TILE if across else (1, inner.BUFFER)
    down, right = -(-n1 // rows), -(-n2 // max(columns, 1))
    return (n1, n2, rows, columns, down, right, int(stacked)), n0 * down * right


def _coalesced(
    shape: tuple[int, ...], layouts: Layouts
) -> tuple[tuple[tuple[int, ...], ...], list[tuple[int, ...]]]:
    """Each operand's and the output's shape, in the fewest dimensions, but at least three.

    With them each operand's last three steps, 0 where it repeats.


    Neighbouring dimensions merge where every operand either steps through both as through
    one or repeats along both, so that reshaping an operand to its merged shape is a view.
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
            whole = [(n * count, step) for n, (count, step) in zip(before, here, strict=True)]
            merged[-1] = (merged[-1][0] * size, whole)
        else:
            merged.append((size, here))
    lead = (1,) * max(3 - len(merged), 0)
    views = [lead + tuple(operands[k][0] for _, operands in merged) for k in range(len(layouts))]
    gone = (0,) * len(lead)
    steps = [
        (*gone, *[step if count > 1 else 0 for count, step in [run[k] for _, run in merged]])
        for k in range(len(layouts))
    ]
    return (
        (*views, lead + tuple(size for size, _ in merged)),
        [operand[-3:] for operand in steps],
    )


def _mergeable(outer: tuple[int, int], inner: tuple[int, int]) -> bool:
    (outer_size, outer_step), (size, step) = outer, inner
    if size == 1 or outer_size == 1:
        return size == outer_size
    return outer_step == size * step
