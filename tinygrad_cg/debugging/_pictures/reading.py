"""Read the nodes of tensors into a sketch: who recorded what, and which rules are used."""

from __future__ import annotations

import dis
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType
from typing import Any

import numpy as np

from ..._core.conversion import is_tensor
from ..._core.levels import Token, is_alive
from ..._core.primitive import OPS, label_of
from ..._core.record import (
    Node,
    find,
    held_nodes,
    nodes_of,
    operation_of_rule,
    part,
    residual_names,
    watched_since,
)
from ..._core.tensor import Tensor
from ..._function.tracing import gradient
from ..._reverse.observer import Sweep, order_of, recording_sweeps
from ..._reverse.variable import Variable
from ..._rules.calls import Call
from ..._rules.definition import closure
from ..._rules.outside_runs import OutsideUse
from ..._rules.rebinding import TransformedCall, identity_rule
from ..._rules.user_ops import _PrimitiveCall
from ..._transforms.forward import _no_rule
from ..._transforms.tape import GradientTape
from ...module import Module, _members, _modules
from .groups import group_modules
from .sketch import Item, Region

CONTAINERS = (list, tuple, dict)
ELEMENTS, DEPTH = 100, 3  # larger and deeper containers are not searched for names


def token_of(tape: GradientTape) -> Token | None:
    """Return the token of a tape, also when its gradient has been taken."""
    return tape._token or tape._consumed


def known_nodes(record: Any) -> Iterator[Node]:
    """Yield the nodes of one tensor, without those of forward mode."""
    return (node for node in nodes_of(record) if node.rule is not _no_rule)


def live_nodes(tokens: Iterable[Token]) -> list[Node]:
    """Return all nodes that tapes have recorded and that are still referenced."""
    return [node for node in held_nodes(tokens) if node.rule is not _no_rule]


class UserNames:
    """The user's names for tensors and tapes; the first name found is shown."""

    def __init__(self, spaces: Iterable[Mapping[str, Any]]):
        self.of_node: dict[Node, tuple[str, Any]] = {}
        self.of_token: dict[Token, str] = {}
        self.tapes: list[GradientTape] = []
        self.of_array: dict[int, str] = {}  # by the id of an array that a name keeps alive
        self.of_module: dict[Node, str] = {}  # the paths of the modules that keep Variables
        self.classes: dict[str, str] = {}  # of modules, by their paths
        for space in spaces:
            named = [
                (name, value) for name, value in list(space.items()) if not name.startswith("_")
            ]
            for name, value in sorted(named, key=lambda pair: isinstance(pair[1], CONTAINERS)):
                if name not in ("In", "Out"):
                    self._add(name, value)
        for tape in self.tapes:
            for variable in tape.watched_variables():
                self._add(variable._name, variable)

    def _add(self, name: str, value: Any, depth: int = 0) -> None:
        if isinstance(value, GradientTape):
            token = token_of(value)
            if token is not None:
                self.of_token.setdefault(token, name)
            self.tapes.append(value)
        elif isinstance(value, (Tensor, Variable)):
            self.of_array.setdefault(id(value._data), name)
            for node in known_nodes(value._rec):
                self.of_node.setdefault(node, (name, value))
        elif isinstance(value, np.ndarray):
            self.of_array.setdefault(id(value), name)
        elif isinstance(value, Module):
            for path, variable in value.named_variables.items():
                self._add(f"{name}.{path}", variable)
            for path, module in _modules(name, value):
                self.classes.setdefault(path, type(module).__name__)
                for _, leaf in _members(module):
                    for node in known_nodes(leaf._rec) if isinstance(leaf, Variable) else ():
                        self.of_module.setdefault(node, path)
        elif isinstance(value, CONTAINERS) and depth < DEPTH and len(value) <= ELEMENTS:
            for key, element in list(
                value.items() if isinstance(value, dict) else enumerate(value)
            ):
                self._add(f"{name}[{key!r}]", element, depth + 1)


class RecordWalk:
    """One walk from the roots back through their operands, for all tapes or those `wanted`."""

    def __init__(
        self, roots: Iterable[Node], names: UserNames, wanted: frozenset[Token] = frozenset()
    ):
        self.names = names
        self.wanted = wanted
        self.operands: dict[Node, list[Node]] = {}
        self.users: dict[Node, set[Token]] = {}  # of what is watched: whose operations use it
        self.origins: dict[Node, list[Node]] = {}  # of what is watched: how it was computed
        self._walk(roots)
        self.nodes = sorted(self.operands, key=lambda node: node.serial)
        self.numbers = {token: number for number, token in enumerate(self._tokens())}
        self.items = {node: self._item(node) for node in self.nodes}
        for node, item in self.items.items():
            item.operands = [self.items[source] for source in self.operands[node]]
            if item.kind == "custom":
                item.captured = list(self._find_captured(node, item))
        items = list(self.items.values())
        self.frames = [
            Region("tape", self._name(token), frozenset(item for item in items if i in item.tapes))
            for token, i in self.numbers.items()
        ]
        self._orders()
        self.frames += self._backward_passes()
        owners = {self.items[n]: module for n, module in names.of_module.items() if n in self.items}
        self.frames += group_modules(items, owners, names.classes)
        self.constants: dict[Any, Item] = {}  # by the id of a named array, or of a large one
        for node, item in self.items.items():
            self._add_constants(node, item)

    def all_items(self) -> list[Item]:
        """Return the items, each after its operands."""
        items: dict[Item, None] = {}
        for item in self.items.values():
            items |= dict.fromkeys(
                operand for operand in item.operands if operand.kind == "constant"
            )
            items[item] = None
        return list(items)

    def last_step(self, optimizer: Any, targets: list) -> tuple[list[Item], Region]:
        """Return an item for each Variable of an optimizer's last step, and their frame."""
        serial = self.nodes[-1].serial
        losses = [
            item
            for target in targets
            for node in known_nodes(target._rec)
            if (item := self.items.get(_operation_of(node))) is not None and item.operation
        ]
        updates = []
        for variable in optimizer._stepped:
            items = [self.items[node] for node in known_nodes(variable._rec) if node in self.items]
            if not items:
                continue
            shape, kind = tuple(variable.shape), str(variable.dtype)
            serial += 1
            item = Item("update", "update", shape, kind, serial, name=items[0].name)
            item.derivative_of = dict.fromkeys(losses[:1], "")
            updates.append(item)
        if not updates:
            raise ValueError(
                f"show: the optimizer {optimizer.name} has not updated any Variable of this "
                "picture yet: call its apply_gradients() first, and pass the loss"
            )
        steps = int(optimizer.iterations)
        rate = f"{float(optimizer.learning_rate):.4g}"
        remark = f"learning rate {rate}, {steps:,} step{'s' if steps != 1 else ''} done"
        return updates, Region("step", type(optimizer).__name__, frozenset(updates), remark=remark)

    # Walking ---------------------------------------------------------------------------------

    def _walk(self, roots: Iterable[Node]) -> None:
        pending = [_operation_of(node) for node in roots]
        while pending:
            node = pending.pop()
            if node not in self.operands:
                self.operands[node] = sources = self._sources(node)
                pending += sources
            if not pending:  # met as a leaf first, and later as a result
                for leaf, sources in self.origins.items():
                    if self.operands[leaf] != sources:
                        self.operands[leaf] = sources
                        pending += sources

    def _sources(self, node: Node) -> list[Node]:
        """Return the operands' nodes, as the sweeps of the node's tapes find them."""
        if node.rule is None:  # what is watched was computed, too, on tapes around
            return self.origins.get(node, [])
        sources: dict[Node, None] = {}
        for operand in node.inputs:
            nodes: dict[Node, None] = {}
            for token in sorted(self._group(node), key=id):
                source = find(operand, token)
                if source is None or source.rule is _no_rule:
                    continue
                if source.rule is None and watched_since(source, token) > node.serial:
                    continue
                if source.rule is None:
                    self.users.setdefault(source, set()).add(token)
                nodes[_operation_of(source)] = None
            leaves = [source for source in nodes if source.rule is None]
            if leaves and len(nodes) > len(leaves):
                self.origins[leaves[0]] = [source for source in nodes if source.rule is not None]
                nodes = dict.fromkeys(leaves[:1])
            sources |= nodes
        return list(sources)

    def _tokens(self) -> list[Token]:
        """Return the tapes of the picture, in the order in which they began to watch."""
        began: dict[Token, int] = {}
        for node in self.nodes:
            for token in self._group(node):
                since = watched_since(node, token) if node.rule is None else node.serial
                began[token] = min(since, began.get(token, since))
        return sorted(began, key=lambda token: began[token])

    def _group(self, node: Node) -> frozenset[Token]:
        """Return a node's tapes; for a leaf, the tapes that recorded an operation on it."""
        group = node.group & self.wanted if self.wanted else node.group
        if node.rule is None:
            alive = frozenset([token for token in group if token.alive])
            group = frozenset(self.users.get(node, alive or group))
        return group

    # Items -----------------------------------------------------------------------------------

    def _item(self, node: Node) -> Item:
        kind, operation = ("watched", "") if node in self.origins else _made_by(node)
        multi_output = type(node.shape) is list
        shape, dtype = node.shape[0] if multi_output else (node.shape, node.dtype)
        name, value = self.names.of_node.get(node, ("", None))
        text = ""
        if type(value) is Tensor and type(value._data) is np.ndarray and not value._data.shape:
            text = f"{value._data[()]:.6g}"
        item = Item(kind, operation, tuple(shape), str(dtype), node.serial, name=name, value=text)
        if multi_output:
            names = self.names.of_node.items()
            parts = [
                name for other, (name, _) in names if other.rule is part and other.inputs[0] is node
            ]
            item.name = ", ".join(parts)
        group = self._group(node).union(*map(self._group, self.origins.get(node, ())))
        item.tapes = frozenset([self.numbers[token] for token in group])
        return item

    def _add_constants(self, node: Node, item: Item) -> None:
        """Add the operands that no tape watches, with the values that the rule keeps."""
        before, after = [], []
        saved = _saved_operands(node)
        for i, source in enumerate(node.inputs):
            if source is None:
                side = after if any(operand is not None for operand in node.inputs[:i]) else before
                side.append(self._constant(item, saved.get(i)))
        if item.operation == "power" and -1 in saved:  # the exponent is a number, not an operand
            after.append(self._constant(item, saved[-1]))
        item.operands = list(dict.fromkeys([*before, *item.operands, *after]))

    def _constant(self, item: Item, value: Any) -> Item:
        """Return the item of an unwatched operand; `value` is None if it is not kept."""
        data = value._data if isinstance(value, (Tensor, Variable)) else value
        if isinstance(data, (bool, int, float, complex)):
            data = np.asarray(data)
        if not isinstance(data, np.ndarray):
            return Item("constant", "", (), "", item.serial - 0.5)
        name = self.names.of_array.get(id(data), "")
        key = id(data) if name or data.shape else object()
        constant = self.constants.get(key)
        if constant is None:
            text = "" if data.shape else f"{data[()]:.6g}"
            constant = Item(
                "constant", "", data.shape, str(data.dtype), item.serial - 0.5, value=text
            )
            constant.name = name
            self.constants[key] = constant
        return constant

    def _find_captured(self, node: Node, item: Item) -> Iterator[Item]:
        """Yield the items that a decorated function captures and a tape recorded."""
        if type(node.saved) is not Call:
            return
        for tensor in _find_used(node.saved.definition.function):
            for token in node.group:
                source = find(tensor._rec, token)
                captured = None if source is None else self.items.get(_operation_of(source))
                if captured is not None and captured not in item.operands and captured is not item:
                    yield captured

    # Orders ----------------------------------------------------------------------------------

    def _orders(self) -> None:
        """Set the orders of items and of tapes' gradients, if all are known, and of rules."""
        orders = {node: order_of(node) for node in self.nodes}
        complete = None not in orders.values()
        for node, item in self.items.items():
            item.order = orders[node] if complete else None
            for sweep in recording_sweeps(node):
                if inner := self._swept(sweep):
                    inner.recorders |= {self.frames[number] for number in item.tapes} - {inner}
        for frame in self.frames if complete else ():
            frame.order = 1 + max(item.order or 0 for item in frame.items)
        for item in self.items.values():
            if item.kind == "custom":
                frames = [self.frames[number] for number in sorted(item.tapes)]
                item.serves = [(frame.name, frame.order) for frame in frames]

    def _backward_passes(self) -> list[Region]:
        """Return a frame per recorded sweep, and link derivatives to what they differentiate."""
        recorded: dict[Sweep, list[Item]] = {}
        for node, item in self.items.items():
            for sweep in recording_sweeps(node):
                recorded.setdefault(sweep, []).append(item)
        by_serial = {node.serial: item for node, item in self.items.items()}
        passes = []
        for sweep, items in sorted(recorded.items(), key=lambda entry: entry[0].began):
            if sweep.order is None or sweep.transposes:
                continue
            passes.append(Region("backward", "", frozenset(items), tape=self._swept(sweep)))
            target = by_serial.get(sweep.target)
            for source, result in sweep.results:
                gradient, by = by_serial.get(result), by_serial.get(source)
                if target is not None and by is not None and gradient in items:
                    gradient.derivative_of[target] = _quotient(target.name, by.name)
        return passes

    def _swept(self, sweep: Sweep) -> Region | None:
        """Return the frame of the tape that was swept, if it is in the picture."""
        numbers = (n for token, n in self.numbers.items() if token.name is sweep.tape is not None)
        return next((self.frames[number] for number in numbers), None)

    def _name(self, token: Token) -> str:
        name = self.names.of_token.get(token)
        if name is None:
            return "graph" if token.everything else "a tape"
        return name if "tape" in name.lower() else f"tape {name}"


def _quotient(target: str, source: str) -> str:
    """Return ``dz/dx``, with brackets around longer names; "" without names."""
    if not (target and source):
        return ""
    names = [name if len(name) == 1 else f"({name})" for name in (target, source)]
    return "d{}/d{}".format(*names)


def _saved_operands(node: Node) -> dict[int, Any]:
    """Return the operands' values that a node keeps, by position; a power's exponent at -1."""
    if type(node.saved) is Call:
        return dict(enumerate(node.saved.values or ()))
    primitive = OPS.get(operation_of_rule(node.rule))
    if primitive is None or primitive.vjp is None or len(node.inputs) != len(primitive.inputs):
        return {}
    names = residual_names(
        primitive, sum(1 << i for i, operand in enumerate(node.inputs) if operand)
    )
    values = node.saved if len(names) > 1 else (node.saved,)
    positions = {name: i for i, name in enumerate(primitive.inputs)} | {"exponent": -1}
    return {
        positions[name]: value
        for name, value in zip(names, values, strict=False)
        if name in positions
    }


def _operation_of(node: Node) -> Node:
    """Return the operation's node, for the node of one of its outputs."""
    operation: Any = node.inputs[0] if node.rule is part and node.inputs else node
    return operation


def _made_by(node: Node) -> tuple[str, str]:
    """Return the kind of an item, and the name of the operation."""
    rule, saved = node.rule, node.saved
    if rule is None:
        return "watched" if is_alive(node.group) or not node.group else "finished", ""
    if rule is identity_rule:
        return "bypassed", saved
    if isinstance(saved, (Call, TransformedCall)):
        compiled = type(saved) is TransformedCall and saved.vjp.__module__ == gradient.__name__
        return "operation" if compiled else "custom", saved.definition.name
    if isinstance(saved, _PrimitiveCall):
        return "operation", saved.operation.primitive.name
    if isinstance(saved, OutsideUse):
        return "operation", saved.name
    if type(saved) is tuple and saved and isinstance(saved[0], gradient.Gradient):
        return "operation", saved[0].definition.name
    if name := operation_of_rule(rule):
        return "operation", label_of(name)
    for name, record in OPS.items():
        if any(declared.rule is rule for declared in (record.rules or {}).values()):
            return "operation", name
    return "operation", getattr(rule, "__name__", type(rule).__name__).strip("_")


def _find_used(function: Any) -> Iterator[Any]:
    """Yield the tensors that a function's own code captures, without those of its rule."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return
    read: dict[str, set[str]] = {"LOAD_DEREF": set(), "LOAD_GLOBAL": set()}
    for instruction in dis.get_instructions(code):
        if instruction.opname in read:
            read[instruction.opname].add(instruction.argval)
    values = [value for name, value in closure(function).items() if name in read["LOAD_DEREF"]]
    values += [function.__globals__.get(name) for name in sorted(read["LOAD_GLOBAL"])]
    yield from filter(is_tensor, values)
