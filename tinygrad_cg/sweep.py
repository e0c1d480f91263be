"""The reverse sweep: from targets back to sources, along the nodes of one tape.

Rules call operations, and these go through the door like any others, so a sweep is recorded
by every tape that is active while it runs: that is all there is to higher orders.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from typing import Any

from .levels import Late, Node, Token, find, is_alive, state
from .ops.creation import zeros
from .ops.elementwise import add
from .ops.reductions import reduce_sum
from .ops.shape import broadcast_to, cast, reshape
from .primitive import part
from .tensor import Tensor


def sweep(
    token: Token,
    seeds: Iterable[tuple[Node, Tensor]],
    wanted: Collection[Node | None],
    stopped: Collection[Node | None] = (),
) -> tuple[dict[Any, Any], list[Node]]:
    """Gradients of the seeded nodes by the `wanted` ones; and all nodes that were visited.

    Nodes are taken in the order of their serial numbers, latest first, so each has received
    all of its upstream gradient when its rule runs. `stopped` nodes are taken as constants.
    Un-broadcasting, casting and adding up happen here and nowhere else.
    """
    totals: dict[Any, Any] = {}
    heap: list[tuple[int, Any]] = []
    visited: list[Node] = []
    owned: set[Node] | None = set() if state.frame is None else None
    pending: Iterable[tuple[Any, Any]] = seeds
    while True:
        for node, gradient in pending:
            if node is None or gradient is None:
                continue
            if token not in node.group:
                node = find(node, token)
                if node is None:
                    continue
            data = gradient._data
            if data.shape != node.shape:
                gradient = fit_shape(gradient, node.shape)
            if data.dtype is not node.dtype and data.dtype != node.dtype:
                gradient = cast(gradient, node.dtype)
            total = totals.get(node)
            if total is not None:
                totals[node] = _add_up(node, total, gradient, owned)
            else:
                totals[node] = gradient
                if node.rule is not None:
                    heappush(heap, (-node.serial, node))
        if not heap:
            return totals, visited
        node = heappop(heap)[1]
        dy = totals[node] if node in wanted else totals.pop(node)
        if node in stopped:
            pending = ()
            continue
        visited.append(node)
        if node.rule is part:
            _collect_part(node, dy, totals, heap)
            pending = ()
        else:
            if type(dy) is list:
                dy = _without_gaps(node, dy)
            pending = zip(node.inputs, node.rule(node, dy), strict=True)


def _add_up(node: Node, total: Tensor, gradient: Tensor, owned: set[Node] | None) -> Tensor:
    """The sum; in place once the total lives in a buffer of the sweep's own (`owned`)."""
    if owned is None:
        return add(total, gradient)
    if node in owned:
        add.primitive.run(total._data, gradient._data, out=total._data)  # type: ignore
        return total
    owned.add(node)
    return add(total, gradient)


def _collect_part(node: Node, dy: Tensor, totals: dict, heap: list) -> None:
    """Hand the gradient of one of several outputs to the node that made them all."""
    whole: Any = node.inputs[0]
    parts = totals.get(whole)
    if parts is None:
        parts = totals[whole] = [None] * len(whole.shape)
        heappush(heap, (-whole.serial, whole))
    known = parts[node.saved]  # there may be several parts for one output: see user_ops
    parts[node.saved] = dy if known is None else add(known, dy)


def _without_gaps(node: Node, parts: list) -> list:
    """Zeros for the outputs that nothing depends on."""
    return [
        zeros(*aval) if part is None else part
        for part, aval in zip(parts, node.shape, strict=True)
    ]


def fit_shape(gradient: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Undo broadcasting: sum over the axes that were repeated (or repeat what was summed)."""
    found = gradient._data.shape
    extra = len(found) - len(shape)
    if extra < 0 or any(size != 1 == found[i + extra] for i, size in enumerate(shape)):
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
            for operand in node.inputs:
                if operand is not None and operand.group is not group and node.next is None:
                    node.next = Late(operand.group)  # type: ignore[assignment]
            node.inputs, node.rule, node.saved = (), None, None
