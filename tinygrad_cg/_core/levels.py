"""Levels; see there operations, and the stack of them that each thread has.

A *level* is whatever wants to see operations: a tape, or a transformation (a batch, a trace,
a forward accumulator) that changes how they are carried out. Each thread has one stack of
them, innermost last. A tape is only a token: tensors hold the record itself (see `record`),
so a record that is no longer reachable is freed at once.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

NOTHING: frozenset[Token] = frozenset()
next_serial = itertools.count(1).__next__


class _OnStack:
    """Base of tokens and levels: ``with level:`` makes it the innermost of this thread."""

    has_own_values = False  # whether only this level can compute with the tensors that it made
    is_abstract = False  # whether the tensors that it made have no values yet
    row: int | None = None  # the example for which a batch calls code, while it does
    values = True  # False where it takes values of levels below only when it is asked for one

    def __enter__(self) -> Any:
        push(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        remove(self)

    def value_of(self, tensor: Any) -> Any:
        """Return the array to take for the value of a tensor of a level below; None for none."""
        return None


class Token(_OnStack):
    """The identity of one recording of one tape, from its first operation to its reset."""

    alive = True  # False when the tape is gone
    entered = True  # False for a tape that was told what to watch, but never entered
    asks = False  # whether rules that it recorded ask which sweep runs them
    everything = False  # True for a graph: it records operations on unwatched tensors too
    large = False  # whether it recorded arrays that sweeps may overwrite
    name: object = None  # what sweeps of it are noted under (see `observer`)
    natural = False  # for it custom gradients are the operations inside, and their rules nothing
    noted: Any = None  # the sweeps that it recorded
    paused = False  # it does not record, on purpose
    watches = False  # whether its user ever told it, or a Variable that is read, what to watch
    silent = False  # no warning where values are taken from what it recorded
    transposes = False  # it records a rule with random upstream gradients, for its transpose


class Level(_OnStack):
    """A transformation: it carries operations out in a way of its own.

    `process` and `custom_call` run with the level itself and all inner ones switched off. `process`
    returns the output tensor, or the list of them for a primitive with several outputs.
    """

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        raise TypeError(f"{type(self).__name__} does not define process()")

    def custom_call(self, call: Any, inputs: Any, outputs: Any) -> list:
        """Return new outputs of a custom gradient, for this level and the levels below it.

        A level that only watches calls `rebind_outputs` (`_rules/rebinding.py`) for the levels
        below. Batches, accumulators and traces give the call a rule of their own kind.
        """
        raise TypeError(f"{type(self).__name__} does not define custom_call()")

    def custom_called(self, call: Any, function: Any, args: tuple, kwargs: dict) -> None:
        """Note the call of a custom gradient, before `custom_call` returns its outputs."""

    def loop(
        self,
        name: str,
        one_round: Callable[[list, list], tuple[list, list]],
        length: int | None,
        carries: Sequence[Any],
        stacks: Sequence[Any],
        reverse: bool = False,
        lean: bool = False,
    ) -> tuple[list, list]:
        """Return the last carries and the stacked rows of a loop in the program.

        ``one_round(carries, slices)`` returns new carries and rows. Without a length the loop runs
        while the last carry is True. A `lean` loop saves memory at the cost of time.
        """
        raise TypeError(f"{type(self).__name__} does not define loop()")

    def shapes_of(
        self, name: str, rows: Callable[[list, list], list], carries: Sequence[Any], parts: Any
    ) -> list[Any]:
        """Return the shapes and dtypes of what ``rows(carries, slices)`` returns; `parts` has the
        shapes and dtypes of the slices.
        """
        raise TypeError(f"{type(self).__name__} does not define shapes_of()")

    def choose(self, name: str, index: Any, branches: Sequence[tuple[str, Callable]]) -> Any:
        """Return the result of the branch that an index without a value chooses."""
        raise TypeError(f"{type(self).__name__} does not define choose()")

    def unchanged(
        self, name: str, functions: Sequence[Any], unrolls: bool | None = None
    ) -> AbstractContextManager[Any]:
        """Return a context in which functions of a loop or choice must not change Python's objects.

        `unrolls` says of a loop whether it can be unrolled instead; it is None for a choice. The
        context gives a function whose contexts are for calls after it: where a gradient is traced,
        objects hold what they held in the loop.
        """
        return nullcontext(nullcontext)


_NO_GROUPS: dict[frozenset[Token], frozenset[Token]] = {}  # never written to
MOST_GROUPS = 64  # that a frame remembers


class Frame:
    """One level of the stack, together with what operations need to know of those below."""

    top: Token | Level | None  # the level itself
    outer: Frame | None  # the frame below it
    group: frozenset[Token]  # the tapes on top of the stack, down to the transformation `level`
    everything: frozenset[Token]  # tapes of the group that also record unwatched tensors
    level: Level | None  # the innermost transformation, if there is one
    lower: Frame | None  # the frame below the frame of `level`
    natural: frozenset[Token]  # tapes of the group that ignore rules
    transposes: bool  # whether a rule runs with random upstream gradients, for its transpose
    # The group, unless it has tapes that record everything: an operand whose record is for exactly
    # this group needs no further look.
    alone: frozenset[Token] | None
    selected: dict[frozenset[Token], frozenset[Token]]  # the results of `active`
    # `selected`, or empty where there is more to look at: for operands whose records are for tapes
    # that it has together, an operation finds there which of these record.
    shortcuts: dict[frozenset[Token], frozenset[Token]]
    __slots__ = tuple(__annotations__)

    def active(self, group: frozenset[Token]) -> frozenset[Token]:
        """Return the tapes of `group` that record here; equal sets are one object, so `is` compares
        them.
        """
        groups = self.selected
        if not 0 < len(groups) <= MOST_GROUPS:
            groups = self.selected = {self.group: self.group}
            if self.alone is not None:
                self.shortcuts = groups
        active = groups.get(group)
        if active is None:
            active = group & self.group
            groups[group] = active = groups.setdefault(active, active)
        return active

    def shortcut(self, group: frozenset[Token]) -> frozenset[Token] | None:
        """Return `active`, where that is all an operation needs to know; else None."""
        return self.active(group) if self.alone is not None else None


_new_frame = partial(object.__new__, Frame)


def _make_frame(
    top: Any, outer: Any, group: Any, everything: Any, level: Any, lower: Any, natural: Any
) -> Frame:
    frame = _new_frame()
    frame.top = top
    frame.outer = outer
    frame.group = group
    frame.everything = everything
    frame.level = level
    frame.lower = lower
    frame.natural = natural
    frame.transposes = (outer is not None and outer.transposes) or (
        type(top) is Token and top.transposes
    )
    frame.alone = None if everything else group
    frame.selected = frame.shortcuts = _NO_GROUPS
    return frame


class State(threading.local):
    """The state of one thread; `frame` is the innermost of its levels."""

    base: Any = None  # the graph that each thread starts in, if eager execution is disabled
    assigned: dict[int, tuple] | None = None  # Variables as they were before recorded assignments
    refuses_units = False  # whether a transpose by unit vectors raises UnitVectorsNeeded

    def __init__(self) -> None:
        self.frame: Any = None
        self.listeners: list[Any] = []  # told of Variables that are read or assigned
        self.graphs: list[Any] = []  # the default graphs, innermost last
        self.rules: list[Any] = []  # the definitions whose rules are running, innermost last
        self.overrides: dict[int, Any] = {}  # values that Variables have in this thread alone
        self.sweep: Any = None  # the innermost sweep that runs, where anybody may ask for it
        self.observers: tuple[Any, ...] = ()  # are told of passes (see observer)
        self.tangents = 0  # how many are being computed, one inside the other, while observed
        self.draws: Any = None  # what gives random numbers here, instead of the generator
        self.consumed: Any = None  # since when a case is traced, and the tapes it used up
        self.device: str | None = None  # where new tensors are; None is the processor's memory
        self.names = [""]  # what names of new Variables begin with, by name scopes
        self.scopes: list[Any] = []  # of compat.v1.variable_scope
        self.transposed: list[tuple] = []  # the jvps whose transposes are computed
        self.watches: list[Any] = []  # told what functions may change (see autograph._runs)
        self.base_graph = base = State.base
        if base is not None:
            self.frame = add_level(None, base._token)
            self.listeners.append(base)
            self.graphs.append(base)


# Nothing records, on purpose: no marks are made.
UNRECORDED = _make_frame(None, None, NOTHING, NOTHING, None, None, NOTHING)


def add_level(frame: Frame | None, level: Any) -> Frame:
    if type(level) is not Token:
        return _make_frame(level, frame, NOTHING, NOTHING, level, frame, NOTHING)
    group = frozenset((level,))
    everything = group if level.everything else NOTHING
    natural = group if level.natural else NOTHING
    if frame is None or frame is UNRECORDED:
        return _make_frame(level, frame, group, everything, None, None, natural)
    everything |= frame.everything
    natural |= frame.natural
    return _make_frame(
        level, frame, frame.group | group, everything, frame.level, frame.lower, natural
    )


def unrecorded_frame() -> Frame:
    """Return a frame on which all can be computed that can be now, and nothing records."""
    frame = UNRECORDED
    for level in stack(state.frame):
        if level.has_own_values:
            frame = add_level(frame, level)
    return frame


def is_transposing() -> bool:
    """Return whether a rule runs with random upstream gradients, to find its transpose."""
    return state.frame is not None and state.frame.transposes


def run_on(frame: Frame | None, function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, called while `frame` is the innermost one."""
    top, state.frame = state.frame, frame
    try:
        return function(*args)
    finally:
        state.frame = top


def stack(frame: Frame | None) -> list[Token | Level]:
    """Return the levels from the outermost one to the level of `frame`."""
    levels: list[Token | Level] = []
    while frame is not None:
        if frame.top is not None:
            levels.append(frame.top)
        frame = frame.outer
    return levels[::-1]


def tokens_of(levels: Iterable[Any]) -> list[Token]:
    """Return the tokens of the tapes and forward accumulators among levels."""
    tokens = [getattr(level, "_token", level) for level in levels]
    return [token for token in tokens if type(token) is Token]


def current_trace() -> Any:
    """Return the innermost level whose tensors have no values; None where there is none."""
    return next((level for level in reversed(stack(state.frame)) if level.is_abstract), None)


def ask_for_value(tensor: Any, ready: bool = False) -> Any:
    """Return what a level has for the value of a tensor of another level below it; else None.

    With `ready` no level is asked that takes values only where they are asked for.
    """
    for level in reversed(stack(state.frame)):
        if level is tensor.level:
            return None
        if ready and not level.values:
            continue
        value = level.value_of(tensor)
        if value is not None:
            return value
    return None


def push(level: _OnStack) -> None:
    """Make `level` the innermost of this thread."""
    state.frame = add_level(state.frame, level)


def remove(level: _OnStack) -> int:
    """Take `level` off the stack, wherever it is; returns how many are above, for `insert`."""
    above = []
    frame = state.frame
    while frame is not None and frame.top is not level:
        above.append(frame.top)
        frame = frame.outer
    if frame is None:
        raise ValueError(
            "Tape is not recording. At least not in this thread: leave it, and call gradient(), "
            "in the thread that entered it."
        )
    state.frame = _add_again(frame.outer, above)
    return len(above)


def insert(level: Token | Level, depth: int) -> None:
    """Put `level` below the `depth` innermost ones."""
    above = []
    frame = state.frame
    while len(above) < depth and frame is not None and frame.top is not None:
        above.append(frame.top)
        frame = frame.outer
    state.frame = _add_again(add_level(frame, level), above)


def _add_again(frame: Frame | None, above: list) -> Frame | None:
    for level in reversed(above):
        frame = add_level(frame, level)
    return frame


state = State()


class Listener:
    """Is told, while it stands in `state.listeners`, of Variables that are used."""

    __slots__ = ()

    def variable_read(self, variable: Any) -> None:
        """Take note that a Variable is about to be read."""

    def variable_assigned(self, variable: Any) -> None:
        """Take note that a Variable is about to be assigned."""

    def record_kept(self, variable: Any) -> None:
        """Take note that a Variable keeps how what was assigned to it was computed."""

    def variable_created(self, variable: Any) -> None:
        """Take note that a Variable has been made."""


@contextmanager
def before_traces() -> Iterator[None]:
    """Create Variables inside as if before the functions that are being traced.

    A function that creates some in its first call is traced twice.
    """
    listeners = state.listeners
    state.listeners = [
        listener
        for listener in listeners
        if not (isinstance(listener, Level) and listener.is_abstract)
    ]
    try:
        yield
    finally:
        state.listeners = listeners


def remove_listener(listener: Any) -> None:
    """Take `listener` itself, where it came last, off this thread's stack."""
    listeners = state.listeners
    for index in range(len(listeners) - 1, -1, -1):
        if listeners[index] is listener:
            del listeners[index]
            return


def is_alive(group: frozenset[Token]) -> bool:
    """Return whether any of these tapes may still ask for a gradient."""
    for token in group:  # noqa: SIM110 (any() takes three times as long)
        if token.alive:
            return True
    return False
