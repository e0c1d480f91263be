"""The reverse sweep: from targets back to sources, along the nodes of one tape.

Rules call operations, and these go through the door like any others, so a sweep is recorded
by every tape that is active while it runs: that is all there is to higher orders.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from heapq import heappop, heappush, heappushpop
from math import inf
from typing import Any

import numpy as np
from numpy import ndarray

from .._core import devices
from .._core.devices import GPU, home
from .._core.kinds import is_differentiable
from .._core.levels import Token, is_alive, state
from .._core.record import (
    LARGE,
    Expired,
    Node,
    adding_rules,
    expired,
    find,
    find_tokens,
    new_tensor,
    part,
    run_recorded,
    watched_since,
    with_wholes,
)
from .._core.tensor import Aval, Tensor, operations
from .._ops.creation import fill_zeros, ones_like
from .._ops.elementwise import add
from .._ops.reductions import sum_to_shape
from .._ops.shape import cast, identity, repeat
from ..errors import TapeWarning, warn
from .observer import run_sweep

Explainer = Callable[[Token, Any, list, bool], str]

FEW = 1000  # elements, for which memory of their own costs less than a look at what they share

MIN_IN_PLACE_BYTES = 2**17
"""A smaller sum is a new array, which takes less time than a kernel that adds in place."""


def differentiate(
    token: Token,
    targets: list,
    upstream: Sequence | None,
    sources: list,
    stopped: Sequence = (),  # tensors to take as constants
    transposes: bool = False,  # transpose a rule, which does not raise the order
    explain: Explainer = lambda *_: "",  # explains in warnings why a gradient is None
) -> tuple:
    """Return the gradient by each source (None where unconnected), and the nodes visited."""
    seeds, unrecorded, nodes = [], [], []
    for i, target in enumerate(targets):
        node = target._rec
        if node is not None and token not in node.group:
            node = find(node, token)
        gradient = None if upstream is None else upstream[i]
        if node is not None:
            seeds.append((node, _seed(target, gradient)))
        elif is_differentiable(target._data.dtype):
            unrecorded.append((target, gradient))
    for source in sources:
        node = source._rec
        if node is not None and token not in node.group:
            node = find(node, token)
        nodes.append(node)
    constants = {find(tensor._rec, token) for tensor in stopped} if stopped else ()
    wanted = nodes if len(nodes) == 1 else set(nodes)
    if state.frame is None and not token.asks:
        totals, visited = sweep(token, seeds, wanted, constants)
    else:
        totals, visited = run_sweep(sweep, token, seeds, wanted, constants, transposes)
    # one source is the commonest, and a map takes three times as long
    results = [totals.get(nodes[0])] if len(nodes) == 1 else list(map(totals.get, nodes))
    for target, gradient in unrecorded:
        _add_unrecorded(token, target, gradient, sources, results, explain)
    if devices.array_types:
        results = _bring_home(sources, results)
    return results, visited


NEVER_ENTERED = (
    "this tape recorded nothing, because it was never entered: compute the target in the block "
    "`with tf.GradientTape() as tape:`"
)


def _bring_home(sources: list, gradients: list) -> list:
    """Return each gradient on the device of its source.

    Only single values move: rules that return another gradient elsewhere are refused when they run.
    """
    results = []
    for gradient, source in zip(gradients, sources, strict=True):
        if gradient is not None and not type(gradient._data) is type(source._data) is not Aval:
            device, wanted = devices.elsewhere(gradient, source)
            gradient = gradient if device is None else operations.to_device(gradient, wanted)
        results.append(gradient)
    return results


def differentiate_once(
    token: Token, targets: list, upstream: Sequence | None, sources: list
) -> list:
    """Return the gradients of `differentiate`, the last ones that are asked of this tape."""
    results, visited = differentiate(token, targets, upstream, sources)
    token.alive = False
    release(visited)
    return results


def _add_unrecorded(
    token: Token, target: Any, gradient: Any, sources: list, results: list, explain: Explainer
) -> None:
    """Add the gradient of a target without a record, which depends on itself alone."""
    positions = [i for i, source in enumerate(sources) if source is target]
    for i in positions:
        total, seed = results[i], _seed(target, gradient)
        results[i] = seed if total is None else add(total, seed)
    _refuse_example(target, token)
    if positions or token.silent:
        return
    if not token.entered:
        warn(f"{NEVER_ENTERED}; its gradient is None", TapeWarning)
        return
    is_late = _is_expired(target._rec, token)
    reason = explain(token, target, sources, is_late)
    if is_late:
        warn(
            "target was computed after the tape closed (or in a thread where it does not "
            "record), so it has no gradient: compute it inside the tape's context"
            + (f". {reason}" if reason else ""),
            TapeWarning,
        )
    elif reason:
        warn(f"GradientTape.gradient: target has no gradient, because {reason}", TapeWarning)


def _refuse_example(target: Any, token: Token) -> None:
    """Raise an error for an example of a batch: an outer tape has recorded the physical tensor."""
    if any(find(whole._rec, token) for whole in with_wholes(getattr(target, "physical", None))):
        raise TypeError(
            "a tape outside vmap cannot give the gradient of one example inside, since it "
            "records only the whole batch: enter the tape inside the function that vmap "
            "runs, or take the gradient of the result of vmap"
        )


def _is_expired(record: Any, token: Token) -> bool:
    """Return whether a tensor without a node for `token` was computed from one that has one."""
    pending: list[tuple[Any, float]] = [(record, inf)]  # with the serial number of what used it
    seen = set()
    while pending:
        entry, consumer = pending.pop()
        while entry is not None and entry not in seen:
            seen.add(entry)
            if type(entry) is Expired:
                if token in entry.tokens:
                    return True
            elif token in entry.group:
                if entry.rule is not None or watched_since(entry, token) < consumer:
                    return True
                seen.remove(entry)  # it was watched too late for this use
                break
            else:
                pending += [(operand, entry.serial) for operand in entry.inputs]
            entry = entry.next
    return False


_ones: dict[tuple[tuple[int, ...], np.dtype], np.ndarray] = {}  # of one element, read-only


def gradients_of_call(
    function: Callable[[list], Sequence],
    arguments: Sequence,
    wanted: Sequence[int],
    dys: Sequence,
    silent: bool = False,
    inside: Callable[[list], AbstractContextManager] = nullcontext,
) -> list:
    """Return the gradients of what ``function(arguments)`` returns by the `wanted` arguments.

    `dys` has an upstream gradient for each output; zeros stand for no gradient. The sweep runs in
    ``inside(arguments)``. If the tape is `silent`, values may be taken without a warning.
    """
    arguments = list(arguments)
    for i in wanted:
        arguments[i] = identity(arguments[i])
    sources, token = [arguments[i] for i in wanted], Token()
    token.silent = silent
    outputs = run_recorded(token, sources, function, arguments)
    pairs = zip(outputs, dys, strict=True)
    pairs = [pair for pair in pairs if is_differentiable(pair[0]._data.dtype)]
    with inside(arguments):
        gradients = differentiate_once(
            token, [output for output, _ in pairs], [dy for _, dy in pairs], sources
        )
    return fill_zeros(sources, gradients)


def _seed(target: Any, gradient: Any) -> Tensor:
    if gradient is None:
        data = target._data
        if devices.array_types and home(target) == GPU:
            return ones_like(target)
        key = data.shape, data.dtype
        ones = _ones.get(key)
        if ones is None:
            if data.shape not in ((), (1,)):
                return ones_like(target)
            ones = _ones[key] = np.ones(*key)
            ones.flags.writeable = False
        seed = new_tensor()
        seed._data = ones
        seed._rec = None
        return seed
    if devices.array_types and not gradient._data.ndim:
        has_values = type(gradient._data) is not Aval and type(target._data) is not Aval
        if has_values:  # a single value moves; traced values are where the program runs
            gradient = operations.to_device(gradient, home(target))
    if gradient.dtype != target.dtype:
        gradient = cast(gradient, target.dtype)
    shape = target._data.shape
    return repeat(gradient, shape) if gradient._data.shape != shape else gradient


def sweep(
    token: Token,
    seeds: Iterable[tuple[Node, Tensor]],
    wanted: Collection[Node | None],
    stopped: Collection[Node | None] = (),
    run: Callable[[Node, Any], Iterable] | None = None,
) -> tuple[dict[Any, Any], list[Node]]:
    """Return gradients of the seeded nodes by the `wanted` ones; and all nodes that were visited.

    Nodes are taken in the order of their serial numbers, latest first, so each has received
    all of its upstream gradient when its rule runs, through `run` if that is given. `stopped`
    nodes are taken as constants. Un-broadcasting, casting and adding up happen here and nowhere
    else.
    """
    totals: dict[Any, Any] = {}
    visited: list[Node] = []
    owned: set[Node] = set()  # nodes whose totals are in arrays that the sweep alone owns
    fresh: Any = None  # the array that the latest rule made for the sweep alone
    latest: Any = None  # of the nodes whose rules are to run, the one with the highest serial
    heap: list[tuple[int, Any]] = []  # the others
    pending: Iterable[tuple[Any, Any]] = seeds
    consumer: float = inf  # the serial number of the node whose operands are pending
    has_large, has_gpu = token.large, bool(devices.array_types)
    while True:
        for node, gradient in pending:
            if node is None or gradient is None:
                continue
            if token not in node.group:
                node = find(node, token)
                if node is None:
                    continue
            ready = node.rule is not None
            # a leaf counts for what was computed since it was watched
            if not ready:  # then `saved` says since when, where tapes watched it later
                since = node.serial
                if node.saved:
                    since = node.saved.get(token, since)
                if since > consumer:
                    continue
            data = gradient._data
            if data.shape != node.shape:
                gradient = sum_to_shape(gradient, node.shape)
            if data.dtype is not node.dtype and data.dtype != node.dtype:
                gradient = cast(gradient, node.dtype)
            total = totals.get(node)
            if total is not None:
                if type(data) is not ndarray or data.size <= FEW or state.frame is not None:
                    totals[node] = add(total, gradient)
                else:
                    totals[node] = _add_up(node, total, gradient, owned)
                continue
            totals[node] = gradient
            if fresh is not None and gradient._data is fresh:
                owned.add(node)
            if ready:
                if latest is None:
                    latest = node
                elif latest.serial < node.serial:
                    heappush(heap, (-latest.serial, latest))
                    latest = node
                else:
                    heappush(heap, (-node.serial, node))
        if latest is None:
            return totals, visited
        node = latest
        latest = heappop(heap)[1] if heap else None
        dy: Any = totals[node] if node in wanted else totals.pop(node)
        fresh = None
        if node in stopped:
            pending = ()
            continue
        visited.append(node)
        consumer = node.serial
        if node.rule is part:
            joint: Any = node.inputs[0]
            if _is_first_part(node, joint, dy, totals):
                if latest is not None:
                    heappush(heap, (-latest.serial, latest))
                latest = heappushpop(heap, (-joint.serial, joint))[1]
            pending = ()
        else:
            if type(dy) is list:  # with zeros for the outputs that nothing depends on
                with devices.on_device_of(_some(dy)):
                    dy = fill_zeros(node.shape, dy)
            if has_gpu and home(_some(dy)) == GPU:
                outer, state.device = state.device, GPU  # what rules make of numbers is there, too
                try:  # quicker than a with block
                    gradients = node.rule(node, dy) if run is None else run(node, dy)
                finally:
                    state.device = outer
            elif run is not None:
                gradients = run(node, dy)
            elif node.rule in adding_rules and state.frame is None:
                if _adds_to_total(token, node, dy, totals, owned):
                    pending = ()
                    continue
                gradients = node.rule(node, dy)
                fresh = gradients[0]._data
            elif has_large and (large := _large_rule(node, dy)) is not None:
                gradient = total = data = gradients = None
                pending = ()  # what they refer to is freed before the rule makes more
                mine = [dy._data] if node in owned and node not in wanted else []
                gradients = large(node, dy, mine)
                fresh = mine[0] if mine else None
            else:
                gradients = node.rule(node, dy)
            inputs = node.inputs
            count = len(inputs)
            if count == 1 and type(gradients) is tuple and len(gradients) == 1:  # quicker than zip
                pending = ((inputs[0], gradients[0]),)
            elif count == 2 and type(gradients) is tuple and len(gradients) == 2:
                pending = ((inputs[0], gradients[0]), (inputs[1], gradients[1]))
            else:
                pending = zip(inputs, gradients, strict=True)


def _some(dy: Any) -> Tensor:
    """Return an upstream gradient, or the first of the gradients of several outputs."""
    return next(each for each in dy if each is not None) if type(dy) is list else dy


def _large_rule(node: Node, dy: Any) -> Any:
    """Return the variant of a rule for large arrays; None if `dy` is small or there is none."""
    data = None if type(dy) is list else dy._data
    if type(data) is not ndarray or data.nbytes < LARGE:
        return None
    return getattr(node.rule, "large", None)


def _add_up(node: Node, total: Tensor, gradient: Tensor, owned: set[Node]) -> Tensor:
    """Return the sum; in place if the total is in an array of the sweep's own (`owned`).

    Repeated elements are added to a new array: kernels write in place where operands are alike.
    """
    alike = gradient._data.flags.c_contiguous
    if node in owned and alike and total._data.nbytes >= MIN_IN_PLACE_BYTES:
        add.primitive.run(total._data, gradient._data, out=total._data)
        return total
    owned.add(node)
    return add(total, gradient)


def _adds_to_total(token: Token, node: Any, dy: Tensor, totals: dict, owned: set[Node]) -> bool:
    """Add the gradient of a part to that of the whole in place; False if the sweep cannot."""
    whole = node.inputs[0]
    if whole is not None and token not in whole.group:
        whole = find(whole, token)
    if whole not in owned or (whole.rule is None and watched_since(whole, token) > node.serial):
        return False
    total, data = totals[whole]._data, dy._data
    is_alike = type(data) is ndarray and data.dtype == total.dtype
    return is_alike and adding_rules[node.rule](total, data, node.saved)


def _is_first_part(node: Node, joint: Any, dy: Tensor, totals: dict) -> bool:
    """Hand an output's gradient to the node of all; return whether it is its first."""
    parts: Any = totals.get(joint)
    first = parts is None
    if first:
        parts = totals[joint] = [None] * len(joint.shape)
    total = parts[node.saved]  # there may be several parts for one output: see user_ops
    parts[node.saved] = dy if total is None else add(total, dy)
    return first


def release(visited: list[Node], gradients: Iterable[Tensor | None] = ()) -> None:
    """Free what the nodes of a finished tape hold, unless another living tape needs it.

    Also remove the marks of expired tapes from unrecorded gradients.
    """
    for gradient in gradients:
        if gradient is None or type(gradient._rec) is not Expired:
            continue
        for token in gradient._rec.tokens:
            if token.alive:
                break
        else:
            gradient._rec = None
    group: Any = None
    gone: Any = None  # another group without a living tape
    finished = False
    for node in reversed(visited):
        if node.group is not group:
            group = node.group
            finished = len(group) == 1 or not is_alive(group)
        if finished:
            for operand in node.inputs:
                if operand is None:
                    continue
                if operand.next is None:
                    other = operand.group
                    if other is group or other is gone:
                        continue
                    if not is_alive(other):
                        gone = other
                        continue
                if node.next is None or type(node.next) is Expired:
                    # tapes other than these know the operand, and may ask
                    node.next = expired(find_tokens(node.next) | find_tokens(operand))
            node.inputs, node.rule, node.saved = (), None, None
