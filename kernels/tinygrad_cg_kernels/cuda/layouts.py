"""Shapes and steps of operands that broadcast, with as few dimensions as they allow."""

from functools import lru_cache
from math import prod
from typing import NamedTuple


class Layout(NamedTuple):
    """How operands are gone through together."""

    shape: tuple[int, ...]
    """The result's shape."""
    count: int
    """How many elements that is."""
    sizes: tuple[int, ...]
    """The sizes of merged dimensions."""
    steps: tuple[tuple[int, ...], ...]
    """For each operand its steps in elements along these."""
    flat: tuple[bool, ...] | None
    """Where each operand is either a row of all elements (True) or one value (False)."""


@lru_cache(maxsize=4096)
def merge(shapes: tuple[tuple[int, ...], ...], steps: tuple[tuple[int, ...], ...]) -> Layout:
    """Return the layout of operands with these shapes and steps; ValueError if none broadcasts."""
    shape = _broadcast(shapes)
    ndim, operands = len(shape), range(len(shapes))
    wide = [
        (0,) * (ndim - len(own))
        + tuple([0 if n == 1 else step for n, step in zip(own, by, strict=True)])
        for own, by in zip(shapes, steps, strict=True)
    ]
    sizes: list[int] = []
    merged: list[list[int]] = [[] for _ in operands]
    for d, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and all(merged[k][-1] == wide[k][d] * size for k in operands):
            sizes[-1] *= size
            for k in operands:
                merged[k][-1] = wide[k][d]
        else:
            sizes.append(size)
            for k in operands:
                merged[k].append(wide[k][d])
    sizes, merged = sizes or [1], [row or [0] for row in merged]
    flat = None
    if len(sizes) == 1 and all(row[0] in (0, 1) for row in merged):
        flat = tuple([row[0] == 1 for row in merged])
    return Layout(shape, prod(shape), tuple(sizes), tuple(map(tuple, merged)), flat)


def _broadcast(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    ndim = max(map(len, shapes))
    aligned = [(1,) * (ndim - len(shape)) + shape for shape in shapes]
    result = []
    for sizes in zip(*aligned, strict=True):
        others = {size for size in sizes if size != 1}
        if len(others) > 1:
            raise ValueError("shapes do not broadcast")
        result.append(others.pop() if others else 1)
    return tuple(result)


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the steps in elements of an array in C order."""
    return tuple([prod(shape[d + 1 :]) for d in range(len(shape))])
