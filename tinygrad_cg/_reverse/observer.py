"""Reverse sweeps as observers see them: the running sweep, the order of what it records.

A sweep that code may ask about is a `Sweep`; the innermost one of a thread is ``state.sweep``.
Tapes note the sweeps that they record, so a node has the order of the sweep that recorded it, as
long as the node lives. If nothing records, observes or asks for the order, no `Sweep` is made.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from .._core.levels import Token, next_serial, stack, state
from .._core.record import Node
from ..errors import users_line

NOTED = 64  # sweeps that one tape remembers, the latest ones


class Sweep:
    """One reverse sweep.

    `token` is the tape that is swept and `outer` the sweep whose rule asked for this one, while
    they run. Afterwards `tape` has ``token.name``, since tokens in a cycle would outlive their
    tapes; it is None for several sweeps that were forgotten. `began` and `ended` are serial
    numbers: the sweep recorded the nodes between them. `began` is 0 if nothing recorded. `order`
    counts the derivatives taken; None if it is no longer known. `transposes` is True if the sweep
    transposes a rule, which does not raise the order. `asked` is the line of the user that asked
    for it, for observers. `target` is the serial number of its only target, 0 for several.
    `results` has pairs of serial numbers: of a source and of its gradient. `pull_back` is the
    function that sweeps, for rules that need derivatives of what is recorded.
    """

    __slots__ = (
        *("asked", "began", "ended", "order", "outer", "pull_back", "results", "tape", "target"),
        *("token", "transposes"),
    )
    ended: int  # set at its end, as are the order and the tape
    order: int | None
    tape: object
    target: int
    results: list[tuple[int, int]]

    def __init__(
        self, pull_back: Any, token: Any, outer: Sweep | None, began: int, transposes: bool
    ):
        self.pull_back = pull_back
        self.token = token
        self.outer = outer
        self.began = began
        self.transposes = transposes
        self.asked: tuple[str, int] | None = None


def run_sweep(
    sweep: Callable[..., tuple],
    token: Token,
    seeds: Collection,
    wanted: Collection,
    stopped: Collection,
    transposes: bool,
) -> tuple:
    """Run ``sweep(token, seeds, wanted, stopped, run)`` as ``state.sweep``, and note it."""
    here = state
    frame, outer, run = here.frame, here.sweep, None
    transposes = transposes or (outer is not None and outer.transposes)
    began = 0 if frame is None else next_serial()
    here.sweep = running = Sweep(sweep, token, outer, began, transposes)
    if here.observers:
        running.asked = users_line()[:2]
        run = _run_observed
    try:
        totals, visited = sweep(token, seeds, wanted, stopped, run)
    finally:
        here.sweep = outer
    if frame is not None and visited and (outer is None or not _is_part(running, visited)):
        running.ended = next_serial()
        running.order = 1 if token.noted is None else _order_of_sweep(token.noted, visited)
        running.target = visited[0].serial if len(seeds) == 1 else 0
        running.results = [
            (source.serial, total._rec.serial)
            for source in wanted
            if source is not None
            and (total := totals.get(source)) is not None
            and type(total._rec) is Node
        ]
        _note(running, frame)
    return totals, visited


def _is_part(sweep: Sweep, visited: list[Node]) -> bool:
    """Return whether a sweep is part of a rule, which recorded all that was swept."""
    outer, sweep.outer = sweep.outer, None
    while outer is not None:
        if 0 < outer.began < visited[-1].serial:
            return True
        outer = outer.outer
    return False


def _note(sweep: Sweep, frame: Any) -> None:
    """Let the tapes of `frame` and of those below it remember a finished sweep."""
    token, sweep.token = sweep.token, None
    if token.name is None:
        token.name = object()
    sweep.tape = token.name
    while frame is not None:
        for token in frame.group:
            noted = token.noted
            if noted is None:
                token.noted = [sweep]
            else:
                noted.append(sweep)
                if len(noted) > NOTED:
                    noted[:2] = [_forget(*noted[:2])]
        frame = frame.lower


def _forget(first: Sweep, second: Sweep) -> Sweep:
    """Return one sweep, of unknown order, that stands for both and all between them."""
    both = Sweep(None, None, None, first.began, False)
    both.ended, both.order, both.tape = second.ended, None, None
    both.target, both.results = 0, []
    return both


def _order_of_sweep(noted: list[Sweep], visited: list[Node]) -> int | None:
    """Return one more than the highest order of `visited` nodes of a tape that noted these."""
    highest = 0
    serials = [node.serial for node in reversed(visited)]
    for sweep in noted:
        first = bisect_left(serials, sweep.began)
        if first < len(serials) and serials[first] < sweep.ended:
            if sweep.order is None:
                return None
            highest = max(highest, sweep.order)
    return highest + 1


def recording_sweeps(node: Node) -> list[Sweep]:
    """Return the noted sweeps that recorded `node`, the innermost last."""
    noted = {sweep for token in node.group for sweep in token.noted or ()}
    sweeps = [sweep for sweep in noted if sweep.began < node.serial < sweep.ended]
    return sorted(sweeps, key=lambda sweep: sweep.began)


def order_of(node: Node) -> int | None:
    """Return the order of the sweep that recorded `node`: 0 for none, None if it is forgotten."""
    sweeps = recording_sweeps(node)
    return sweeps[-1].order if sweeps else 0


# Observers -----------------------------------------------------------------------------------


class Observer:
    """Is told of passes while it stands in ``state.observers``.

    One that is a level, too, and stands on the stack, runs the rules of the sweeps that begin.
    """

    def run_rule(self, call: Callable[[Node, Any], Any], node: Node, dy: Any) -> Any:
        """Run the rule of a node in a sweep: ``call(node, dy)``."""
        return call(node, dy)

    def begin_tangents(self, definition: Any) -> None:
        """Learn that tangents are computed: of a call of `definition`, or None, an operation."""

    def end_tangents(self, began: int) -> None:
        """Learn that tangents have been computed, from the serial number `began` on."""

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


def run_tangents(definition: Any, compute: Callable[..., Any], *args: Any) -> Any:
    """Return ``compute(*args)``, tangents of an operation or of a call, and tell observers."""
    state.tangents += 1
    began = next_serial()
    for observer in state.observers:
        observer.begin_tangents(definition)
    try:
        return compute(*args)
    finally:
        state.tangents -= 1
        for observer in state.observers:
            observer.end_tangents(began)
