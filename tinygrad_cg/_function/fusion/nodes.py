"""Nodes: the few kinds of value that fusion knows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

TILE = 8
"""Rows of a turned matrix that are made at a time, since memory comes by lines of some elements."""


class Node:
    """A value of a lowered program.

    `kind`, and what `detail` holds:
    "array"     an input, its position; or a constant, the array
    "literal"   a number, itself
    "apply"     a scalar function of operands that broadcast, the function
    "reduce"    a reduction over `axes`, its name; "gather" takes from each row the element at a
                position, which is by row its second operand
    "view"      another shape, in the same order
    "slice"     a range of the operand's elements in order, the first; "pad" is its transpose
    "lookup"    rows of an array, or elements, at the positions in its second operand
    "turn"      rows and columns of each matrix exchanged, how many there are then
    "host"      an operation run on arrays, the graph's value
    """

    __slots__ = ("axes", "detail", "dtype", "kind", "operands", "shape", "size")

    def __init__(
        self,
        kind: str,
        shape: tuple[int, ...],
        dtype: np.dtype,
        operands: Sequence[Node] = (),
        detail: Any = None,
        axes: tuple[int, ...] = (),
    ):
        self.kind = kind
        self.shape = tuple(shape)
        self.dtype = dtype
        self.operands = tuple(operands)
        self.detail = detail
        self.axes = axes
        self.size = prod(self.shape)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.detail!r} {self.dtype}{self.shape}>"


def behind(node: Node) -> Node:
    """The node that a chain of views is of."""
    while node.kind == "view":
        node = node.operands[0]
    return node


class Count(float):
    """A number that follows from sizes: a parameter of a kernel, not part of its text."""

    __slots__ = ()


def literal(number: Any, dtype: np.dtype) -> Node:
    return Node("literal", (), dtype, (), number)


def view(node: Node, shape: tuple[int, ...]) -> Node:
    return node if node.shape == shape else Node("view", shape, node.dtype, (node,))


def cast(node: Node, dtype: np.dtype) -> Node:
    if node.dtype == dtype:
        return node
    return Node("apply", node.shape, dtype, (node,), "cast")


def apply(function: Any, *operands: Node, dtype: np.dtype | None = None) -> Node:
    """A scalar function of operands that broadcast and have the dtypes it wants."""
    shape = np.broadcast_shapes(*[node.shape for node in operands])
    return Node("apply", shape, dtype or operands[-1].dtype, operands, function)


def fold(name: str, x: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    """A reduction of `x`, by kernels of its own where its axes are neither all, nor last, nor
    first."""
    shape = tuple(
        1 if axis in axes else size
        for axis, size in enumerate(x.shape)
        if keepdims or axis not in axes
    )
    if prod(x.shape[axis] for axis in axes) == 1:
        return view(x, shape)
    flat = tuple(size for axis, size in enumerate(x.shape) if axis not in axes)
    return view(Node("reduce", flat, x.dtype, (x,), name, axes), shape)


def pattern(shape: tuple[int, ...], axes: tuple[int, ...]) -> str:
    """Runs of reduced ("r") and kept ("k") axes, those of size 1 apart."""
    runs = ""
    for axis, size in enumerate(shape):
        letter = "r" if axis in axes else "k"
        if size != 1 and not runs.endswith(letter):
            runs += letter
    return runs
