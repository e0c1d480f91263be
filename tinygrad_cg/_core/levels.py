"""What records: the stack of levels of each thread, and the nodes that tensors carry.

A *level* is whatever wants to see operations: a tape, or a transformation (a batch, a trace,
a forward accumulator) that changes how they are carried out. Each thread has one stack of
them, innermost last. A tape is only a token: the record itself hangs from the tensors, so
what nobody can reach any more is freed at once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

NOTHING: frozenset[Token] = frozenset()
next_serial = itertools.count(1).__next__
watch_lock = threading.Lock()


def _renew_lock() -> None:
    global watch_lock
    watch_lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # another thread may hold it at the fork, for ever
    os.register_at_fork(after_in_child=_renew_lock)


class Token:
    """The identity of one recording of one tape, from its first operation to its reset.

    ``alive`` turns False when the tape is gone, ``paused`` is True while it does not record
    on purpose, ``everything`` marks a graph: it records operations on unwatched tensors too.
    For a ``natural`` one custom gradients are the operations inside, and their rules nothing.
    ``asks`` says that rules which it recorded ask which sweep runs them, ``noted`` are the sweeps
    that it recorded, if any (see `observer`).
    """

    __slots__ = ("alive", "asks", "everything", "natural", "noted", "paused")

    def __init__(self, everything: bool = False, natural: bool = False):
        self.alive = True
        self.paused = False
        self.asks = False
        self.noted: Any = None
        self.everything = everything
        self.natural = natural


class Level:
    """A transformation: it carries operations out in a way of its own.

    `process` runs with the level itself and all inner ones switched off, and returns the
    output tensor, or the list of them for a primitive with several outputs.
    """

    holds_values = False  # whether only this level can compute with the tensors that it made

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        raise TypeError(f"{type(self).__name__} does not define process()")

    def custom_call(self, call: Any, inputs: Any, outputs: Any) -> list:
        """The outputs of a custom gradient anew, for this level and those below it (see calls).

        As in `process`, this level and all inner ones are switched off.
        """
        raise TypeError(f"{type(self).__name__} does not define custom_call()")

    def custom_called(self, call: Any, function: Any, args: tuple, kwargs: dict) -> None:
        """A custom gradient was called so, before `custom_call` gets its inputs and outputs."""


class Node:
    """How one tensor came to be, as far as the tapes in `group` are concerned.

    `inputs` are the nodes of the operands (None for an operand that nobody watches), `rule`
    maps this node and the upstream gradient to the gradients of the operands, `saved` holds
    its residuals. A leaf, that is a watched tensor, has no rule. `next` leads to the nodes of
    the same tensor for other tapes. The node of an operation with several outputs has a list
    of their Avals for its `shape`, and stands behind a `part` for each of them.
    """

    __slots__ = ("dtype", "group", "inputs", "next", "rule", "saved", "serial", "shape")

    def __init__(
        self,
        group: frozenset[Token],
        inputs: tuple[Node | None, ...],
        rule: Callable[[Node, Any], Iterable] | None,
        saved: Any,
        shape: Any,
        dtype: np.dtype,
        following: Node | Late | None = None,
    ):
        self.group = group
        self.inputs = inputs
        self.rule = rule
        self.saved = saved
        self.shape = shape
        self.dtype = dtype
        self.next: Node | Late | None = following
        self.serial = next_serial()


class _NoTapes(frozenset):
    """No tapes: an object of its own, so that it `is` never the group of a frame."""


class Late:
    """Marks a tensor computed from recorded ones when their tapes no longer recorded.

    It stands where a node would, records nothing, and lets a tape say why it has no gradient.
    """

    __slots__ = ("late",)
    group: frozenset[Token] = _NoTapes()
    next = None

    def __init__(self, late: frozenset[Token]):
        self.late = late


def late_for(tokens: Iterable[Token]) -> Late | None:
    """A mark for those of `tokens` that may still ask, and do not pause on purpose."""
    late = frozenset([token for token in tokens if token.alive and not token.paused])
    return Late(late) if late else None


def late_tokens(record: Node | Late | None) -> frozenset[Token]:
    """All tapes that know of the tensor, as nodes or as a mark."""
    tokens = NOTHING
    while record is not None:
        tokens |= record.late if type(record) is Late else record.group
        record = record.next
    return tokens


def find(record: Any, token: Token) -> Node | None:
    """The node that `token`'s tape has for the tensor whose record this is."""
    while record is not None:
        if token in record.group:
            return record
        record = record.next
    return None


class Frame:
    """One level of the stack, together with what operations need to know of those below.

    `top` is the level itself and `outer` the frame below it. `group` are the tapes on top of
    the stack, down to the transformation `level`, if there is one, whose frame is `lower`'s
    neighbour above. `everything` are those of the tapes that record unwatched tensors too,
    `alone` is the group if there are none of these: an operand whose record is for exactly
    this group needs no further look. `natural` are those for which rules are nothing.
    """

    __slots__ = (
        *("alone", "everything", "group", "level", "lower"),
        *("natural", "outer", "selected", "top"),
    )

    def __init__(
        self,
        top: Token | Level | None,
        outer: Frame | None,
        group: frozenset[Token],
        everything: frozenset[Token],
        level: Level | None,
        lower: Frame | None,
        natural: frozenset[Token] = NOTHING,
    ):
        self.natural = natural
        self.top = top
        self.outer = outer
        self.group = group
        self.everything = everything
        self.level = level
        self.lower = lower
        self.alone = None if everything else group
        self.selected: dict[frozenset[Token], frozenset[Token]] | None = None

    def active(self, group: frozenset[Token]) -> frozenset[Token]:
        """Those of `group` that record here; equal sets are one object, so `is` is enough."""
        known = self.selected
        if known is None or len(known) > 64:
            known = self.selected = {}
        found = known.get(group)
        if found is None:
            found = group & self.group
            if found == self.group:
                found = self.group
            known[group] = found
        return found

    def resolve(
        self, records: Iterable[Node | Late | None]
    ) -> tuple[frozenset[Token], tuple[Node | None, ...]]:
        """The tapes that record an operation on these operands, and the nodes they need."""
        group = self.everything
        records = tuple(records)
        for record in records:
            while record is not None:
                group = group | self.active(record.group)
                record = record.next
        group = self.active(group)
        return group, tuple(narrow(record, group) for record in records)


def narrow(record: Any, group: frozenset[Token]) -> Node | None:
    """Drop leading nodes of other tapes: holding them would hold their whole history."""
    while record is not None and record.group.isdisjoint(group):
        record = record.next
    return record


class State(threading.local):
    """What one thread records. `frame` is the innermost of its levels."""

    base: Any = None  # the graph that each thread starts in, if eager execution is disabled

    def __init__(self) -> None:
        self.frame: Any = None
        self.listeners: list[Any] = []  # told of Variables that are read or assigned
        self.graphs: list[Any] = []  # the default graphs, innermost last
        self.rules: list[Any] = []  # the definitions whose rules are running, innermost last
        self.overrides: dict[int, Any] = {}  # values that Variables have in this thread alone
        self.sweep: Any = None  # the innermost sweep that runs, where anybody may ask for it
        self.observers: tuple[Any, ...] = ()  # are told of passes (see observer)
        self.tangents = 0  # how many are being computed, one inside the other, while observed
        self.draws: Any = None  # what gives random numbers here, in the generator's place
        self.base_graph = base = State.base
        if base is not None:
            self.frame = add_level(None, base._token)
            self.listeners.append(base)
            self.graphs.append(base)


QUIET = Frame(None, None, NOTHING, NOTHING, None, None)
"""Nothing records, on purpose: `Late` is not marked."""


def add_level(frame: Frame | None, level: Any) -> Frame:
    if type(level) is not Token:
        return Frame(level, frame, NOTHING, NOTHING, level, frame)
    group = frozenset((level,))
    everything = group if level.everything else NOTHING
    natural = group if level.natural else NOTHING
    if frame is None or frame is QUIET:
        return Frame(level, frame, group, everything, None, None, natural)
    everything |= frame.everything
    natural |= frame.natural
    return Frame(level, frame, frame.group | group, everything, frame.level, frame.lower, natural)


def quiet_frame() -> Frame:
    """A frame on which all can be computed that can be now, and nothing records."""
    frame = QUIET
    for level in stack(state.frame):
        if isinstance(level, Level) and level.holds_values:
            frame = add_level(frame, level)
    return frame


def stack(frame: Frame | None) -> list[Token | Level]:
    """The levels from the outermost to that of `frame`."""
    found: list[Token | Level] = []
    while frame is not None:
        if frame.top is not None:
            found.append(frame.top)
        frame = frame.outer
    return found[::-1]


def push(level: Token | Level) -> None:
    """Make `level` the innermost of this thread."""
    state.frame = add_level(state.frame, level)


def remove(level: Token | Level) -> int:
    """Take `level` off the stack, wherever it is; returns how many are above, for `insert`."""
    above = []
    frame = state.frame
    while frame is not None and frame.top is not level:
        above.append(frame.top)
        frame = frame.outer
    if frame is None:
        raise ValueError(
            "Tape is not recording. At least not in this thread: leave it, and ask it for "
            "gradients while it records, in the thread that entered it."
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
        """A Variable is about to be read."""

    def variable_assigned(self, variable: Any) -> None:
        """A Variable is about to be assigned."""

    def variable_created(self, variable: Any) -> None:
        """A Variable has been made."""


def remove_listener(listener: Any) -> None:
    """Take `listener` itself, where it came last, off this thread's stack."""
    listeners = state.listeners
    for place in range(len(listeners) - 1, -1, -1):
        if listeners[place] is listener:
            del listeners[place]
            return


def watch_tensor(tensor: Any, token: Token) -> None:
    """Make `tensor` (or a Variable) a leaf of `token`'s tape from here on."""
    with watch_lock:
        known = tensor._rec
        if known is not None and known.next is None and not is_alive(known.group):
            known = None  # of a past tape alone
        if known is not None:
            record = known
            while record is not None:
                if token in record.group:
                    return
                record = record.next
            while known is not None and not is_alive(known.group):
                known = known.next  # what only tapes of the past recorded
            if known is not None:
                tensor._rec = _with_leaf(known, token)
                return
        frame = state.frame
        if frame is not None and frame.top is token and len(frame.group) == 1:
            group = frame.group
        else:
            group = frozenset((token,))
        data = tensor._data
        tensor._rec = Node(group, (), None, None, data.shape, data.dtype)


def _with_leaf(record: Any, token: Token) -> Node:
    """`record` with a leaf for `token` too, which holds for what is recorded from now on.

    One leaf serves all tapes that watch the tensor; for those that came later than the leaf
    `saved` has the serial number from which on they do.
    """
    last = record
    while True:
        if last.rule is None:
            alive = [other for other in last.group if other.alive]
            since = (
                {other: last.saved.get(other, last.serial) for other in alive} if last.saved else {}
            )
            last.saved = since | {token: next_serial()}
            group = frozenset((*alive, token))
            frame = state.frame
            last.group = frame.group if frame is not None and frame.group == group else group
            return record
        if last.next is None or type(last.next) is Late:
            break
        last = last.next
    last.next = Node(frozenset((token,)), (), None, None, last.shape, last.dtype, last.next)
    return record


def watched_since(leaf: Node, token: Token) -> int:
    """The serial number from which on `token`'s tape watches a leaf."""
    return leaf.saved.get(token, leaf.serial) if leaf.saved else leaf.serial


def forget_dead(tensor: Any) -> None:
    """Drop what only tapes of the past know of `tensor` (or a Variable)."""
    with watch_lock:
        record = tensor._rec
        while record is not None:
            if is_alive(record.late if type(record) is Late else record.group):
                break
            record = record.next
        tensor._rec = record


def is_alive(group: frozenset[Token]) -> bool:
    """Whether any of these tapes may still ask for a gradient."""
    for token in group:  # noqa: SIM110 (any() takes three times as long)
        if token.alive:
            return True
    return False
