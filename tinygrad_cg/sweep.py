"""The reverse sweep: from targets back to sources, along the nodes of one tape.

Rules call operations, and these go through the door like any others, so a sweep is recorded
by every tape that is active while it runs: that is all there is to higher orders.
"""

from __future__ import annotations

from collections.abc import Collection
from heapq import heappop, heappush
from typing import Any

import numpy as np

from .levels import Node, Token, find, is_alive, state
from .ops.creation import zeros
from .ops.elementwise import add
from .ops.reductions import reduce_sum
from .ops.shape import broadcast_to, cast, reshape
from .primitive import part
from .tensor import Tensor


def sweep(
    token: Token, seeds: list[tuple[Node, Tensor]], wanted: Collection[Node]
) -> tuple[dict[Node, Tensor], list[Node]]:
    """Gradients of the seeded nodes by the `wanted` ones; and all nodes that were visited.

    Nodes are taken in the order of their serial numbers, latest first, so each has received
    all of its upstream gradient when its rule runs. Un-broadcasting, casting and adding up
    happen here and nowhere else.
    """
    gradients = _Gradients(token)
    for node, seed in seeds:
        gradients.add(node, seed)
    visited = []
    heap, totals = gradients.heap, gradients.totals
    while heap:
        node: Any = heappop(heap)[1]
        dy = totals[node] if node in wanted else totals.pop(node)
        visited.append(node)
        if node.rule is part:
            gradients.add_part(node.inputs[0], node.saved, dy)
            continue
        if type(dy) is list:
            dy = [
                zeros(*aval) if one is None else one
                for one, aval in zip(dy, node.shape, strict=True)
            ]
        for operand, gradient in zip(node.inputs, node.rule(node, dy), strict=True):
            if operand is not None and gradient is not None:
                gradients.add(operand, gradient)
    return totals, visited


class _Gradients:
    """The upstream gradients collected so far, and the nodes still to visit."""

    def __init__(self, token: Token):
        self.token = token
        self.totals: dict[Any, Any] = {}
        self.heap: list[tuple[int, Node]] = []
        self.unrecorded = state.frame is None
        self.owned: set[Node] = set()  # totals that live in a buffer of the sweep's own

    def add(self, node: Any, gradient: Tensor) -> None:
        if self.token not in node.group:
            node = find(node, self.token)
            if node is None:
                return
        data = gradient._data
        if data.shape != node.shape:
            gradient = fit_shape(gradient, node.shape)
            data = gradient._data
        if data.dtype is not node.dtype and data.dtype != node.dtype:
            gradient = cast(gradient, node.dtype)
        totals = self.totals
        total = totals.get(node)
        if total is None:
            totals[node] = gradient
            if node.rule is not None:
                heappush(self.heap, (-node.serial, node))
        elif node in self.owned:
            add.primitive.run(total._data, gradient._data, out=total._data)  # type: ignore
        else:
            totals[node] = add(total, gradient)
            if self.unrecorded:
                self.owned.add(node)

    def add_part(self, whole: Any, index: int, gradient: Tensor) -> None:
        parts = self.totals.get(whole)
        if parts is None:
            parts = self.totals[whole] = [None] * len(whole.shape)
            heappush(self.heap, (-whole.serial, whole))
        parts[index] = gradient


def fit_shape(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo broadcasting: sum over the axes that were repeated (or repeat what was summed)."""
    found = gradient._data.shape
    extra = len(found) - len(shape)
    if extra < 0 or np.prod(found, dtype=np.int64) < np.prod(shape, dtype=np.int64):
        return broadcast_to(gradient, shape)
    axes = [*range(extra)]
    axes += [i + extra for i, size in enumerate(shape) if size == 1 != found[i + extra]]
    total = reduce_sum(gradient, axes) if axes else gradient
    return reshape(total, shape) if total._data.shape != shape else total


def release(visited: list[Node]) -> None:
    """Free what the nodes of finished tapes hold, though their tensors may live on."""
    group = None
    finished = False
    for node in visited:
        if node.group is not group:
            group = node.group
            finished = not is_alive(group)
        if finished:
            node.inputs, node.rule, node.saved = (), None, None
