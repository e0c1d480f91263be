"""Passes as others see them: the sweep that runs, the order of what it records, its observers.

A sweep that anybody may ask for is a `Sweep`, the innermost one of a thread is ``state.sweep``.
Tapes that record a sweep note it, so the order of a node is known as long as the node lives:
that of the sweep which recorded it. What runs where nothing records, nobody observes and no rule
asks, does without all of this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any

from .._core.levels import Token, next_serial, stack, state
from .._core.record import Node
from ..errors import users_line

NOTED = 64  # sweeps that one tape remembers, the latest


class Sweep:
    """One reverse sweep.

    `token` is the tape that is swept, `outer` the sweep whose rule asked for this one. `began` and
    `ended` are serial numbers: nodes with one between them were recorded by it. `began` is 0 if
    nothing recorded. `order` counts the derivatives taken, None if that is not known any more.
    `transposes` says that it is no further derivative, but the transpose of a rule. `asked` is
    the user's line that asked for it, for observers.
    """

    __slots__ = ("asked", "began", "ended", "order", "outer", "token", "transposes")

    def __init__(self, token: Token, outer: Sweep | None, transposes: bool):
        self.token = token
        self.outer = outer
        self.transposes = transposes or (outer is not None and outer.transposes)
        self.began = 0 if state.frame is None else next_serial()
        self.ended = 0
        self.order: int | None = None
        self.asked: tuple[str, int] | None = None

    def recorded(self, node: Node) -> bool:
        return self.began < node.serial < self.ended


class Notes:
    """The latest sweeps that one tape recorded. `began` is when the very first of them did."""

    __slots__ = ("began", "sweeps")

    def __init__(self, began: int):
        self.began = began
        self.sweeps: deque[Sweep] = deque(maxlen=NOTED)

    def forgot(self, node: Node) -> bool:
        """Return whether `node` may come from a sweep that is noted no more."""
        return self.began < node.serial < self.sweeps[0].began


def run_sweep(
    sweep: Callable[..., tuple],
    token: Token,
    seeds: Iterable,
    wanted: Collection,
    stopped: Collection,
    transposes: bool,
) -> tuple:
    """Run ``sweep(token, seeds, wanted, stopped, run)`` as ``state.sweep``, and note it."""
    frame, outer = state.frame, state.sweep
    state.sweep = running = Sweep(token, outer, transposes)
    run = None
    if state.observers:
        running.asked = users_line()[:2]
        run = _run_observed
    try:
        totals, visited = sweep(token, seeds, wanted, stopped, run)
    finally:
        state.sweep = outer
    if frame is not None and visited:
        _note(running, frame, visited)
    return totals, visited


def _note(sweep: Sweep, frame: Any, visited: list[Node]) -> None:
    """Let the tapes of `frame` remember a finished sweep, unless it is part of a rule."""
    outer, sweep.outer = sweep.outer, None
    while outer is not None:
        if 0 < outer.began < visited[-1].serial:  # all that was swept was recorded by the rule
            return
        outer = outer.outer
    sweep.ended = next_serial()
    sweep.order = _order_of_sweep(sweep.token, visited)
    while frame is not None:
        for token in frame.group:
            if token.notes is None:
                token.notes = Notes(sweep.began)
            token.notes.sweeps.append(sweep)
        frame = frame.lower


def _order_of_sweep(token: Token, visited: list[Node]) -> int | None:
    """Return one more than the highest order among the nodes that a sweep of `token` visited."""
    notes = token.notes
    if notes is None:
        return 1
    if any(map(notes.forgot, visited)):
        return None
    highest = 0
    serials = [node.serial for node in reversed(visited)]
    for sweep in notes.sweeps:
        first = bisect_left(serials, sweep.began)
        if first < len(serials) and serials[first] < sweep.ended:
            if sweep.order is None:
                return None
            highest = max(highest, sweep.order)
    return highest + 1


def recording_sweeps(node: Node) -> list[Sweep]:
    """Return the noted sweeps that recorded `node`, the innermost last."""
    found = {
        sweep
        for token in node.group
        if token.notes is not None
        for sweep in token.notes.sweeps
        if sweep.recorded(node)
    }
    return sorted(found, key=lambda sweep: sweep.began)


def order_of(node: Node) -> int | None:
    """Return the order of the sweep that recorded `node`.

    0 if it was recorded outside of sweeps, None if so long ago that it is not known any more.
    """
    sweeps = recording_sweeps(node)
    if sweeps:
        return sweeps[-1].order
    forgotten = any(token.notes is not None and token.notes.forgot(node) for token in node.group)
    return None if forgotten else 0


# Observers -----------------------------------------------------------------------------------


class Observer:
    """Is told of passes while it stands in ``state.observers``.

    One that is a level, too, and stands on the stack, runs the rules of the sweeps that begin.
    """

    def run_rule(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Any:
        """Run the rule of a node in a sweep: ``call(node, dy)``."""
        return call(node, dy)

    def end_tangents(self, began: int) -> None:
        """Tangents of one operation or call have been computed, from the serial `began` on."""

    def notice(self, definition: Any, kind: str, message: str) -> bool:
        """Return whether a rule's warning was taken, and is not to be shown."""
        return False

    def detach(self, definition: Any, file: str, line: int) -> bool:
        """Return whether the warning was taken that a rule took values out of a tensor."""
        return False


def _run_observed(node: Node, dy: Any) -> Any:
    """Run the rule of a node for all observers on this thread's stack."""
    call: Any = node.rule
    for level in stack(state.frame):
        if isinstance(level, Observer):
            call = partial(level.run_rule, call)
    return call(node, dy)


def run_tangents(compute: Callable[..., Any], *args: Any) -> Any:
    """Return ``compute(*args)``, tangents of one operation or call, where there are observers."""
    state.tangents += 1
    began = next_serial()
    try:
        return compute(*args)
    finally:
        state.tangents -= 1
        for observer in state.observers:
            observer.end_tangents(began)
