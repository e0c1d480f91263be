"""The records that tensors carry: nodes of tapes, leaves, and marks of expired tensors.

All nodes are made here, and all tensors that were computed too late are marked here.
"""

from __future__ import annotations

import gc
import inspect
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime.texts import define

from . import devices
from .conversion import FLOAT32, FLOAT64, convert_operands, weak_arrays
from .kinds import is_differentiable
from .levels import NOTHING, Frame, Token, is_alive, next_serial, state
from .tensor import Aval, Tensor

new_tensor = partial(object.__new__, Tensor)


class Node:
    """The record of how one tensor was computed, for the tapes in `group`."""

    __slots__ = ("dtype", "group", "inputs", "next", "rule", "saved", "serial", "shape")

    group: frozenset[Token]
    inputs: tuple[Node | None, ...]  # the nodes of the operands, None for an unwatched one
    # Takes this node and the upstream gradient, returns the gradients of the operands. A leaf (a
    # watched tensor) has no rule.
    rule: Callable[[Node, Any], Iterable] | None
    saved: Any  # the residuals
    shape: Any  # a list of Avals for several outputs, which have a `part` each in front of the node
    dtype: np.dtype
    next: Node | Expired | None  # the nodes of the same tensor for other tapes
    serial: int


new_node = partial(object.__new__, Node)

LARGE = 2**20
"""Bytes of an array that a sweep overwrites if it can: memory that is new has to be read first."""


def make_node(
    group: frozenset[Token],
    inputs: tuple[Any, ...],
    rule: Callable[[Node, Any], Iterable] | None,
    saved: Any,
    shape: Any,
    dtype: np.dtype,
    following: Node | Expired | None = None,
) -> Node:
    """Return a node (a function makes one faster than a class that Python initialises)."""
    node = new_node()
    node.group = group
    node.inputs = inputs
    node.rule = rule
    node.saved = saved
    node.shape = shape
    node.dtype = dtype
    node.next = following
    node.serial = next_serial()
    return node


class _NoTapes(frozenset):
    """No tapes: an object of its own, so that it `is` never the group of a frame."""


class Expired(tuple):
    """Marks a tensor that was computed from recorded ones when their `tokens` recorded no more.

    It stands where a node would, records nothing, and lets a tape say why it has no gradient.
    A tuple of `tokens` alone is what Python makes most quickly; see `new_mark`.
    """

    __slots__ = ()
    group: frozenset[Token] = _NoTapes()
    next = None
    tokens = property(itemgetter(0))


new_mark: Callable[[tuple[frozenset[Token]]], Expired] = partial(tuple.__new__, Expired)


# Reading records -----------------------------------------------------------------------------


def find(record: Any, token: Token) -> Node | None:
    """Return the node that `token`'s tape has for the tensor whose record this is."""
    while record is not None:
        if token in record.group:
            return record
        record = record.next
    return None


def with_wholes(tensor: Any) -> Iterator[Any]:
    """Yield a tensor, and the whole batches that it is an example of, innermost first."""
    while tensor is not None:
        yield tensor
        tensor = getattr(tensor, "physical", None)


def nodes_of(record: Any) -> Iterator[Node]:
    """Yield the nodes of one tensor, one for each group of tapes."""
    while record is not None:
        if type(record) is not Expired:
            yield record
        record = record.next


def is_leaf(node: Node) -> bool:
    """Return whether a node belongs to a watched tensor, not to a computed one."""
    return node.rule is None


def held_nodes(tokens: Iterable[Token]) -> list[Node]:
    """Return all nodes that tapes have recorded and that are still referenced.

    Nobody keeps a list of that, so that it is freed at once: the tapes' tokens are asked for who
    refers to them. It takes a look at all objects of the process, and is for people to read: a list
    of weak references would cost each recorded operation as much again.
    """
    groups = [referrer for referrer in gc.get_referrers(*tokens) if type(referrer) is frozenset]
    if not groups:
        return []
    return [referrer for referrer in gc.get_referrers(*groups) if type(referrer) is Node]


def narrow(record: Any, group: frozenset[Token]) -> Node | None:
    """Drop leading nodes of other tapes: holding them would hold their whole history."""
    while record is not None and record.group.isdisjoint(group):
        record = record.next
    return record


def resolve(
    frame: Frame, records: Sequence[Node | Expired | None]
) -> tuple[frozenset[Token], tuple[Node | None, ...]]:
    """Return the tapes that record an operation on such operands, and the nodes they need."""
    group = frame.everything
    for record in records:
        while record is not None:
            group = group | frame.active(record.group)
            record = record.next
    group = frame.active(group)
    return group, tuple([narrow(record, group) for record in records])


def find_operands(frame: Frame, inputs: Sequence[Tensor]) -> tuple[Any, tuple, int]:
    """Return the tapes that record an operation on `inputs`, the operands' nodes, and a bit mask.

    The mask says which operands these are. Without any the first result is None when there are
    records of other tapes.
    """
    records = [tensor._rec for tensor in inputs]
    alone, group, mask, bit = frame.alone, None, 0, 1
    if alone is not None:
        for record in records:
            if record is not None:
                operand_group = record.group
                if operand_group is not alone:
                    operand_group = frame.shortcuts.get(operand_group)
                if (
                    not operand_group
                    or record.next is not None
                    or (mask and operand_group is not group)
                ):
                    break
                group = operand_group
                mask += bit
            bit += bit
        else:  # all records are for the same tapes: nearly always so
            return (group if mask else alone), tuple(records), mask
    for token in frame.everything:
        for tensor in inputs:
            if is_differentiable(tensor._data.dtype) and find(tensor._rec, token) is None:
                watch_tensor(tensor, token)
    group, nodes = resolve(frame, [tensor._rec for tensor in inputs])
    if not group:
        return None, nodes, 0
    return group, nodes, sum(1 << i for i, node in enumerate(nodes) if node is not None)


# Leaves --------------------------------------------------------------------------------------

watch_lock = threading.Lock()


def _renew_lock() -> None:
    global watch_lock
    watch_lock = threading.Lock()


if hasattr(os, "register_at_fork"):  # another thread may hold it at the fork, for ever
    os.register_at_fork(after_in_child=_renew_lock)


def watch_tensor(tensor: Any, token: Token) -> None:
    """Make `tensor` (or a Variable) a leaf of `token`'s tape from here on."""
    with watch_lock:
        record = tensor._rec
        while record is not None and not is_alive(record.group):
            record = record.next  # of tapes of the past alone
        if record is not None:
            if find(tensor._rec, token) is None:
                tensor._rec = _with_leaf(record, token)
            return
        frame = state.frame
        if frame is not None and frame.top is token and len(frame.group) == 1:
            group = frame.group
        else:
            group = frozenset((token,))
        overrides = state.overrides  # a Variable may have another value here, in another dtype
        data = overrides.get(id(tensor), tensor._data) if overrides else tensor._data
        tensor._rec = make_node(group, (), None, None, data.shape, data.dtype)


def _with_leaf(record: Any, token: Token) -> Node:
    """Return `record` with a leaf for `token` too, which holds for what is recorded from now on.

    One leaf serves all tapes that watch the tensor; for those that came later than the leaf
    `saved` has the serial number from which on they do.
    """
    last = record
    while last.rule is not None and type(last.next) is Node:
        last = last.next
    if last.rule is not None:
        group = frozenset((token,))
        last.next = make_node(group, (), None, None, last.shape, last.dtype, last.next)
        return record
    alive = [other for other in last.group if other.alive]
    last.saved = {other: watched_since(last, other) for other in alive} | {token: next_serial()}
    group = frozenset((*alive, token))
    frame = state.frame
    last.group = frame.group if frame is not None and frame.group == group else group
    return record


def run_recorded(token: Token, sources: Iterable, function: Callable, *args: Any) -> Any:
    """Return ``function(*args)``, recorded on `token`'s tape, which watches `sources`."""
    with token:
        for source in sources:
            watch_tensor(source, token)
        return function(*args)


def watched_since(leaf: Node, token: Token) -> int:
    """Return the serial number from which on `token`'s tape watches a leaf."""
    return leaf.saved.get(token, leaf.serial) if leaf.saved else leaf.serial


def forget_dead(tensor: Any) -> None:
    """Drop what only tapes of the past know of `tensor` (or a Variable)."""
    with watch_lock:
        record = tensor._rec
        while record is not None:
            if is_alive(record.tokens if type(record) is Expired else record.group):
                break
            record = record.next
        tensor._rec = record


# Marks ---------------------------------------------------------------------------------------


def find_tokens(record: Node | Expired | None) -> frozenset[Token]:
    """Return all tapes that know of the tensor, by nodes or by a mark."""
    tokens = NOTHING
    while record is not None:
        tokens |= record.tokens if type(record) is Expired else record.group
        record = record.next
    return tokens


def expired(tokens: Iterable[Token]) -> Expired | None:
    """Return a mark for the `tokens` whose tapes are alive and not paused."""
    asking = frozenset([token for token in tokens if token.alive and not token.paused])
    return new_mark((asking,)) if asking else None


def mark_expired(inputs: Iterable[Tensor], out: Any) -> None:
    """Mark what was computed from recorded tensors and is not recorded itself."""
    results = (out,) if isinstance(out, Tensor) else out
    if len(results) == 1 and results[0]._rec is not None:  # a level below has recorded it
        return
    only: Any = None  # the record of the only recorded operand, as nearly always
    for tensor in inputs:
        if tensor._rec is not None:
            if only is not None or tensor._rec.next is not None:
                mark = expired(NOTHING.union(*[find_tokens(x._rec) for x in inputs]))
                break
            only = tensor._rec
    else:
        mark = only if only is None or type(only) is Expired else new_mark((only.group,))
    if mark is not None:
        for result in results:
            if result._rec is None:
                result._rec = mark


# Nodes ---------------------------------------------------------------------------------------


def attach(out: Tensor, group: frozenset[Token], inputs: tuple, rule: Any, saved: Any) -> None:
    """Record on `out` how it came to be, in front of what other tapes know of it."""
    data = out._data
    node = new_node()
    node.group = group
    node.inputs = inputs
    node.rule = rule
    node.saved = saved
    node.shape = data.shape
    node.dtype = data.dtype
    node.next = out._rec
    node.serial = next_serial()
    out._rec = node


def attach_all(group: Any, inputs: tuple, rule: Any, saved: Any, outs: Sequence[Tensor]) -> None:
    """Record one operation with several outputs: a node of its own, and a part for each output."""
    if not outs:
        return
    avals = [Aval(out._data.shape, out._data.dtype) for out in outs]
    joint = make_node(group, inputs, rule, saved, avals, avals[0].dtype)
    for i, out in enumerate(outs):
        if is_differentiable(avals[i].dtype):
            attach(out, group, (joint,), part, i)


def part(node: Node, dy: Any) -> tuple:
    """Stand for the rule of one of several outputs, whose gradients the sweep collects."""
    raise AssertionError("the sweep collects the parts of a node itself")


def attach_part(out: Tensor, node: Node, i: int) -> Tensor:
    """Return `out`, which a node with several outputs saved, as its output `i` again."""
    shape, dtype = node.shape[i]
    return out._with_record(make_node(node.group, (node,), part, i, shape, dtype, out._rec))


def note_large(group: Iterable[Token]) -> None:
    """Have sweeps of these tapes look for arrays that they can overwrite."""
    for token in group:
        token.large = True


def loose_node(primitive: Any, inputs: tuple, params: dict, out: Any, mask: int) -> Node:
    """Return a node that no tape knows of, to run a rule with.

    Its residuals have the records of `out`, and its inputs are the operands' data.
    """
    if not isinstance(out, list) and out._data.dtype.kind == "c":
        mask |= 1 << len(inputs)  # as when it is recorded
    save, rule, _ = primitive.rules[mask]
    targets: Any = tuple([tensor._data for tensor in inputs])
    saved = save(inputs, params, out)
    if isinstance(out, list):
        avals = [Aval(tensor._data.shape, tensor._data.dtype) for tensor in out]
        return make_node(NOTHING, targets, rule, saved, avals, avals[0].dtype)
    data = out._data
    return make_node(NOTHING, targets, rule, saved, data.shape, data.dtype, out._rec)


def record(frame: Frame | None, primitive: Any, inputs: tuple, params: Any, out: Any) -> None:
    """Record an operation for the tapes of `frame` that watch one of `inputs`."""
    rules = primitive.rules
    if rules is None:
        return
    if frame is None or not frame.group:  # no tapes, or a transformation alone
        mark_expired(inputs, out)
        return
    group, nodes, mask = find_operands(frame, inputs)
    if not mask:
        if group is None:
            mark_expired(inputs, out)
        return
    if not isinstance(out, Tensor):
        save, rule, _ = rules[mask]
        attach_all(group, nodes, rule, save(inputs, params, out), out)
        return
    kind = out._data.dtype.kind
    if kind == "c":
        mask |= 1 << len(inputs)
    elif kind != "f":
        return
    if group and type(out._data) is np.ndarray and out._data.nbytes >= LARGE:
        note_large(group)
    save, rule, attach_fresh = rules[mask]
    following = out._rec or (_expired_operands(inputs, nodes) if None in nodes else None)
    if attach_fresh is not None and following is None and kind == "f":
        attach_fresh(group, *nodes, *inputs, params, out)
    else:
        data, saved = out._data, save(inputs, params, out)
        out._rec = make_node(group, nodes, rule, saved, data.shape, data.dtype, following)


def _expired_operands(inputs: Sequence[Tensor], nodes: tuple) -> Expired | None:
    """Return a mark for operands whose records are only for tapes that no longer record."""
    for tensor, node in zip(inputs, nodes, strict=True):
        if node is None and tensor._rec is not None:
            return expired(find_tokens(tensor._rec))
    return None


# Rules of primitives -------------------------------------------------------------------------


class Rule(NamedTuple):
    """The compiled functions that record an operation, for one set of watched operands."""

    save: Callable[[tuple, Any, Any], Any]  # save(inputs, params, out) picks the residuals
    rule: Callable[[Node, Any], tuple]  # rule(node, dy) calls the gradient functions with them
    # attach(group, *nodes, *operands, params, out) saves, and records the node on the tensor `out`,
    # which has no record yet: in one call, for the commonest operations
    attach: Callable[..., None] | None = None


class CompiledRules(dict):
    """Rules by the bit mask of watched operands, compiled at first use.

    The bit above the operands' bits asks for conjugated residuals (complex numbers).
    """

    def __init__(self, primitive: Any, conjugate: Callable[[Tensor], Tensor]):
        self.primitive = primitive
        self.conjugate = conjugate
        self.attach = _Attachments(self)

    def __missing__(self, mask: int) -> Rule:
        self[mask] = rule = compile_rule(self.primitive, mask, self.conjugate)
        return rule


class _Attachments(dict):
    """The `attach` of each of an operation's rules."""

    def __init__(self, rules: CompiledRules):
        self.rules = rules

    def __missing__(self, mask: int) -> Any:
        self[mask] = attach = self.rules[mask].attach
        return attach


def _leave(name: str, rule: Callable, parameters: tuple[str, ...]) -> Callable:
    return rule


def _never_in_place(rule: Callable, fused: Callable, parameters: tuple[str, ...]) -> None:
    return None


adding_rules: dict[Any, Callable[[np.ndarray, np.ndarray, Any], bool]] = {}
"""What adds to the gradient of the operand in place, by the rule: see `Primitive.add_to`."""

RuleCompiler = Callable[[str, Callable, tuple[str, ...]], Callable]
InPlaceCompiler = Callable[[Callable, Callable, tuple[str, ...]], Callable | None]
fuse_rule: RuleCompiler = _leave
run_in_place: InPlaceCompiler = _never_in_place


def set_rule_compiler(fuse: RuleCompiler, in_place: InPlaceCompiler) -> None:
    """Register the compiler of gradient functions, since the core must not import it.

    `fuse` returns a function that runs a gradient function. `in_place` returns one for large
    arrays: its first argument is a list of the arrays that the sweep owns, then come the operands.
    The list holds the upstream gradient's array if it may be overwritten, and afterwards the
    result's array if the sweep alone owns it.
    """
    global fuse_rule, run_in_place
    fuse_rule, run_in_place = fuse, in_place


def as_operand(value: Any, *others: Any) -> Tensor:
    """Return an operand that a kernel took as it is, as the tensor that a node can save."""
    if type(value) is float or type(value) is int:
        for other in others:
            if type(other) is Tensor:
                tensor = new_tensor()
                tensor._data = weak_arrays[other._data.dtype][value]
                tensor._rec = None
                return tensor
    return convert_operands((value, *others))[0]


_SOURCE = """
def save(a, p, o):
    {operands}, = a
    return {saved}

def rule(n, dy):
    s = n.saved
    {output}
    return {results},

def large(n, dy, mine):
    s = n.saved
    {others}
    {output}
    return {results_in_place},

def attach(group, {nodes}, {operands}, p, o):
    d = o._data
    dtype = d.dtype
    if dtype is not FLOAT32 and dtype is not FLOAT64 and dtype.kind != "f":
        return other(group, {nodes}, {operands}, p, o)
    {convert}
    o._rec = n = new_node()
    n.group = group
    n.inputs = {nodes},
    n.rule = rule
    n.saved = {saved}
    n.shape = d.shape
    n.dtype = dtype
    n.next = None
    n.serial = serial()
"""  # one by one: Python makes a tuple of more than three values to assign at once
_OUTPUT = """if type({0}) is ndarray or isinstance({0}, devices.array_types):
        out = new_tensor()
        out._data, out._rec = {0}, n
    else:
        out = {0}._with_record(n)"""  # a node that held its own output would be a cycle


def compile_rule(primitive: Any, mask: int, conjugate: Callable) -> Rule:
    """Generate the rule for one set of watched operands, which keeps what these need and no more.

    For multiply with both operands watched ``save`` returns ``x, y``, and ``rule`` is
    ``s = n.saved; return f0(dy, s[1]), f1(dy, s[0]),``. Its attribute `large` runs it on large
    arrays, where there is that: the first gradient alone may be in an array of the sweep's.
    """
    names = primitive.inputs
    conjugated = primitive.analytic and mask >> len(names) & 1
    functions: dict[str, Any] = {
        "conj": conjugate,
        "convert": as_operand,
        "FLOAT32": FLOAT32,
        "FLOAT64": FLOAT64,
        "devices": devices,
        "ndarray": np.ndarray,
        "new_node": new_node,
        "new_tensor": new_tensor,
        "serial": next_serial,
        "Tensor": Tensor,
    }
    wanted = _rule_parameters(primitive, mask)
    in_place = None
    for i, parameters in wanted.items():
        vjp = primitive.vjp[i]
        if primitive.kind == "elementwise" and {*parameters} <= {"dy", "out", *names}:
            vjp = fuse_rule(primitive.name, vjp, parameters)
            if i == min(wanted):
                in_place = functions["g"] = run_in_place(primitive.vjp[i], vjp, parameters)
        functions[f"f{i}"] = vjp
    residuals = _residuals(names, wanted)
    used = set(residuals)
    kept = [name for name in names if name in used]
    operands = {name: f"x{i}" for i, name in enumerate(names)}

    def pick(name: str) -> str:
        if name == "out":
            return "(o._data if type(o) is Tensor else o._with_record(None))"
        return operands.get(name) or f"p[{name!r}]"

    def load(name: str) -> str:
        return f"s[{residuals.index(name)}]" if len(residuals) > 1 else "s"

    def give(name: str, i: int) -> str:
        if name == "dy":
            return "dy"
        if name == "shape":
            return f"n.inputs[{i}].shape"
        value = "out" if name == "out" else load(name)
        return f"conj({value})" if conjugated and (name == "out" or name in names) else value

    convert = [
        f"if type({operands[name]}) is not Tensor: {operands[name]} = convert({operands[name]}, "
        f"{', '.join(operands[other] for other in names if other != name)})"
        for name in kept
    ]

    def give_all(i: int) -> str:
        return ", ".join(give(name, i) for name in wanted[i])

    saved = ", ".join(map(pick, residuals))
    source = _SOURCE.format(
        nodes=", ".join(f"n{i}" for i in range(len(names))),
        operands=", ".join(operands.values()),
        saved=f"({saved})" if residuals else "None",
        output=_OUTPUT.format(load("out")) if "out" in used else "",
        convert="\n    ".join(convert),
        results=", ".join(
            f"f{i}({give_all(i)})" if i in wanted else "None" for i in range(len(names))
        ),
        results_in_place=", ".join(
            "None"
            if i not in wanted
            else f"g(mine, {give_all(i)})"
            if i == min(wanted)
            else f"f{i}({give_all(i)})"
            for i in range(len(names))
        ),
        others="mine.clear()" if len(wanted) > 1 else "",  # other gradients read dy
    )

    def other(group: Any, *arguments: Any) -> None:
        """Record a result that is not real as the general way does it."""
        count = len(names)
        inputs = convert_operands(arguments[count : 2 * count])
        record(state.frame, primitive, inputs, *arguments[2 * count :])

    functions["other"] = other
    rule = define(source, f"rule of {primitive.name}", functions, "rule")
    rule.operation = primitive.name
    if in_place is not None:
        rule.large = functions["large"]
    if primitive.add_to is not None:
        adding_rules[rule] = primitive.add_to
    return Rule(functions["save"], rule, functions["attach"])


def _rule_parameters(primitive: Any, mask: int) -> dict[int, tuple[str, ...]]:
    """Return the parameters of the gradient functions that serve, by the operands' positions."""
    return {
        i: tuple(inspect.signature(vjp).parameters)
        for i, vjp in enumerate(primitive.vjp or ())
        if vjp is not None and mask >> i & 1
    }


def residual_names(primitive: Any, mask: int) -> list[str]:
    """Return what a node of `primitive` saves: operands, parameters and "out", by their names.

    One of them is saved as it is, several as a tuple. An operation with a `save` of its own has
    none here.
    """
    return _residuals(primitive.inputs, _rule_parameters(primitive, mask))


def _residuals(names: Sequence[str], wanted: dict[int, tuple[str, ...]]) -> list[str]:
    used = {name for parameters in wanted.values() for name in parameters} - {"dy", "shape"}
    kept = [name for name in names if name in used]
    return kept + sorted(used - {"out", *names}) + ["out"] * ("out" in used)


def operation_of_rule(rule: Any) -> str:
    """Return the name of the operation that a generated rule is of, "" for any other function."""
    return getattr(rule, "operation", "")
