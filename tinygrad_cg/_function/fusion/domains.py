"""Iteration domains of kernels, and how values are indexed in them, in terms of shapes."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import NamedTuple


class Domain(NamedTuple):
    """The iteration domain of a kernel. Without columns it is flat: one range of elements."""

    size: int
    columns: int = 0


class Access(NamedTuple):
    """The map from an index of the domain to the index of a value.

    `per` says where the value has one number: per "element", "row" or "column" of the domain, or
    "scalar" for all of it. "anywhere" is an array that is read at any index. `shift` is an offset
    in elements.
    """

    per: str
    shift: int = 0


ELEMENT, ROW, COLUMN, SCALAR, ANYWHERE = (
    Access(per) for per in ("element", "row", "column", "scalar", "anywhere")
)


def pattern(shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """Return the runs of reduced ("r") and kept ("k") axes, without axes of size 1."""
    runs = ""
    for axis, size in enumerate(shape):
        letter = "r" if axis in axes else "k"
        if size != 1 and not runs.endswith(letter):
            runs += letter
    return runs


@lru_cache(4096)
def broadcasting(shape: tuple[int, ...], result: tuple[int, ...]) -> tuple[str, int]:
    """Return how an operand broadcasts to a result, and the number of columns of its domain.

    The operand is the "same" as the result, or has "one" element, one per "row" or one per
    "column". Any other way is "mixed".
    """
    padded = (1,) * (len(result) - len(shape)) + shape
    pairs = [(own, size) for own, size in zip(padded, result, strict=True) if size != 1]
    kept = [own == size for own, size in pairs]
    if all(kept):
        return "same", 0
    if not any(kept):
        return "one", 0
    cut = kept.index(not kept[0])
    if kept[cut:].count(kept[0]):
        return "mixed", 0
    columns = prod(size for _, size in pairs[cut:])
    return ("row" if kept[0] else "column"), columns
