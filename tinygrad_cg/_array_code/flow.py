"""Branches and loops: what they change is merged, or carried from round to round."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import program as ir
from .blocks_of_code import NOTHING, Unassigned, unwrapped
from .expressions_of_code import ExpressionReader, Sides
from .liveness import Names, exits, live_in_loop, rebound, stored
from .scalar_operations import join
from .views import View

MAX_ATTEMPTS = 8
"""Readings of a loop's body until the types of what it carries are known."""
LEAVES, RETURNED, RESULT = "%leaves", "%returned", "%result"
"""The reader's own variables: whether a loop is left, whether the function has returned, what."""


@dataclass
class LoopSource:
    """What a loop goes over: numbers, or elements of an array or of `zipped` ones."""

    bounds: ir.Bounds
    arrays: tuple[View, ...] = ()
    zipped: bool = False
    first: ir.Number | int | None = None
    """The number of the first element, where elements are numbered."""

    def index(self) -> ir.Number:
        """Return the number of a round."""
        start, stop, step = self.bounds
        if step.number > 0:
            return ir.Number("i64", "i", start.low)
        return ir.Number("i64", "i", None if stop.low is None else stop.low + 1)

    def item(self, reader: ExpressionReader, index: ir.Number) -> Any:
        """Return what the loop's target is in a round."""
        items = tuple(reader.item(array, index) for array in self.arrays) or (index,)
        item = items if self.zipped else items[0]
        if self.first is None:
            return item
        return reader.b.op("add", index, self.first) if self.first != 0 else index, item


class FlowReader(ExpressionReader):
    """Reads branches and loops."""

    sides: tuple[Names, list[dict[str, Any]]] | None = None
    """What is read after the branch that is being merged, and the names of its two sides."""

    @abstractmethod
    def statements(self, nodes: Sequence[ast.stmt], live: Names, ends: Names = frozenset()) -> None:
        """Read statements; `live` are the names that are read after them, `ends` after a jump."""

    # Branches ---------------------------------------------------------------------------------

    def branch(self, test: ir.Number, sides: Sides, live: Names, ends: Names) -> None:
        """Read both sides of an `if`, and merge what they assign."""
        before, blocks, envs, node = self.env, ([], []), [], self.node
        for block, statements in zip(blocks, sides, strict=True):
            self.env = dict(before)
            with self.into(block):
                self.statements(statements, live, ends)
            envs.append(self.env)
        self.node = node
        statement = ir.If(test, *blocks)
        self.sides, around = (live | ends, envs), self.sides
        self.env = {}
        for name in dict.fromkeys((*envs[0], *envs[1])):
            values = [env.get(name, Unassigned(name)) for env in envs]
            if name in before and all(value is before[name] for value in values):
                self.env[name] = values[0]
            elif name in live or name in ends or name.startswith("%"):
                self.env[name] = self.merged(statement, name, *values)
        self.sides = around
        self.b.block.append(statement)

    def merged(self, statement: ir.If, name: str, then: Any, otherwise: Any) -> Any:
        """Return what a name stands for after a branch."""
        if then == otherwise:
            return then
        for side, other in ((then, otherwise), (otherwise, then)):
            if isinstance(side, Unassigned) or (name == RESULT and side is NOTHING):
                if isinstance(other, (ir.Number, tuple)):
                    is_number = isinstance(other, ir.Number)
                    pad = ir.zero(other) if is_number else tuple(Unassigned(name) for _ in other)
                    pair = (other, pad) if side is otherwise else (pad, other)
                    return self.merged(statement, name, *pair)
                if isinstance(other, View):
                    if self.is_visible_view(other):
                        return other
                    raise self.refuse(f"{name} is an array in one branch only: assign it in both")
                return other
        if isinstance(then, ir.Number) and isinstance(otherwise, ir.Number):
            kind = join([then.type, otherwise.type])
            with self.into(statement.then):
                then = self.b.cast(then, kind)
            with self.into(statement.otherwise):
                otherwise = self.b.cast(otherwise, kind)
            bounds = then.low is not None and otherwise.low is not None
            low = min(then.low or 0, otherwise.low or 0) if bounds else None
            out = ir.Number(kind, name.strip("%"), low)
            statement.merges.append(ir.Merge(out, then, otherwise))
            self.choices[out] = ir.Op(out, "select", (statement.test, then, otherwise))
            return out
        if isinstance(then, tuple) and isinstance(otherwise, tuple) and len(then) == len(otherwise):
            pairs = zip(then, otherwise, strict=True)
            return tuple(self.merged(statement, name, *pair) for pair in pairs)
        if isinstance(then, View) and isinstance(otherwise, View):
            return self.merged_arrays(statement, name, then, otherwise)
        raise self.refuse(f"{name.strip('%')} is of two kinds after this branch")

    def merged_arrays(self, statement: ir.If, name: str, then: View, otherwise: View) -> View:
        """Return a copy of the array that the branch has chosen."""
        if len(then.shape) != len(otherwise.shape):
            raise self.refuse(f"{name} has two ranks after this branch")
        visible = next((x for x in (then, otherwise) if all(map(self.is_visible, x.shape))), None)
        if visible is None:
            raise self.refuse(f"the shape of {name} is known inside the branch only")
        kind = join([then.type, otherwise.type])
        slot = self.allocate(kind, visible.shape, None, name)
        live, envs = self.sides or (None, [self.env, self.env])
        for view, env in zip((then, otherwise), envs, strict=True):
            self.copied(slot.array, name, view.array, live, env)
        for block, view in ((statement.then, then), (statement.otherwise, otherwise)):
            with self.into(block):
                self.check_shape(slot, view)
                self.assign_elements(slot, view, None)
        return slot

    # Loops ------------------------------------------------------------------------------------

    def loop(self, node: ast.For | ast.While, live: Names) -> bool:
        """Read a loop; return whether it may return from the function."""
        if node.orelse:
            raise self.refuse("`else` of loops is not supported: set a flag before `break`", node)
        returns = exits(ast.Module(node.body, []), (ast.Return,))
        breaks = returns or any(exits(x, (ast.Break,)) for x in node.body)
        source = self.iterated(node) if isinstance(node, ast.For) else None
        if isinstance(source, tuple):
            if breaks or any(exits(x, (ast.Continue,)) for x in node.body):
                raise self.refuse("a loop over a tuple cannot break, continue or return", node)
            assert isinstance(node, ast.For)
            for item in source:
                self.assign(node.target, item)
                self.statements(node.body, live | live_in_loop(node, live))
            return False
        assigned = stored([node]) if isinstance(node, ast.For) else stored(node.body)
        head = live_in_loop(node, live)
        carried = assigned & (head | live)
        names = [name for name in dict.fromkeys((*self.env, *sorted(assigned))) if name in carried]
        flags = [LEAVES] * breaks + [RETURNED, RESULT] * returns
        outer_leaves = self.env.get(LEAVES)
        self.env[LEAVES] = ir.constant(False)
        self.held.append(source.arrays if source is not None else ())
        slots = self.slots(node, [name for name in names if name in self.env], head | live)
        types: dict[str, Any] = {}
        lows: dict[str, int | None] = {}
        for _ in range(MAX_ATTEMPTS):
            env = dict(self.env)
            growing = self.program.scratch, self.program.errors, self.twins, self.b.block
            counts = [len(items) for items in growing]
            statement, again = self.round(node, source, names + flags, types, lows, live, slots)
            if not again:
                break
            self.env = env
            for items, count in zip(growing, counts, strict=True):
                del items[count:]
        else:
            raise self.refuse("the types of variables change in each round", node)
        self.held.pop()
        self.b.block.append(statement)
        self.env.pop(LEAVES)
        if outer_leaves is not None:
            returned = self.env[RETURNED]
            self.env[LEAVES] = self.b.op("or", outer_leaves, returned) if returns else outer_leaves
        return returns

    def slots(
        self, node: ast.For | ast.While, names: Sequence[str], live: Names
    ) -> dict[str, View]:
        """Copy arrays that a loop replaces to memory of their own."""
        slots = {}
        replaced = rebound(node.body)
        for name in names:
            value = self.env[name]
            if isinstance(value, View) and name in replaced:
                slots[name] = self.materialize(value, name)
                self.copied(slots[name].array, name, value.array, live, self.env)
        self.env |= slots
        return slots

    def round(
        self,
        node: ast.For | ast.While,
        source: Any,
        names: Sequence[str],
        types: dict[str, Any],
        lows: dict[str, int | None],
        live: Names,
        slots: dict[str, View],
    ) -> tuple[ir.For | ir.While, bool]:
        """Read a loop's body once; return the loop, and whether types have changed meanwhile."""
        state, head = dict(self.env), live_in_loop(node, live)
        carries: dict[str, ir.Carry] = {}  # by labels: names, and name.0, name.1, ... for tuples
        tuples: dict[str, list[str]] = {}
        for name in names:
            init = self.env.get(name, Unassigned(name))
            if _is_numbers(init):
                types[name] = len(init)
            labels = [name]
            if isinstance(types.get(name), int):  # the length of a tuple
                labels = tuples[name] = [f"{name}.{k}" for k in range(types[name])]
            elif not (
                isinstance(init, (Unassigned, ir.Number)) or (name == RESULT and init is NOTHING)
            ):
                continue
            for label in labels:
                init = _part(self.env, label)
                if not isinstance(init, ir.Number):
                    is_live = name != RESULT and name in head
                    kind = types.get(label) or ("b1" if is_live else None)
                    if kind is None:
                        continue  # known after the first attempt
                    init = ir.fixed(kind, 0)
                kind = types.setdefault(label, init.type)
                init = self.b.cast(init, kind)
                low = lows.setdefault(label, init.low) if kind == "i64" else None
                inside = ir.Number(kind, name.strip("%"), low)
                carries[label] = ir.Carry(inside, init, inside, ir.like(inside))
        self.env |= _joined({label: c.inside for label, c in carries.items()}, tuples)
        before = dict(self.env)
        body: ir.Block = []
        first: ir.Block = []
        test: ir.Number | None = None
        index = ir.Number("i64", "i")
        if isinstance(node, ast.While):
            with self.into(first):
                test = self.test(node.test)
            self.check_test(node, first)
        ends = head | live
        with self.into(body):
            if isinstance(node, ast.For):
                index = source.index()
                self.ranges[index] = source.bounds
                self.assign(node.target, source.item(self, index))
            self.statements(node.body, ends, ends)
            after = self.env
            self.copy_slots(slots, body, ends)
            again = False
            for label, carry in carries.items():
                inside, result = carry.inside, _part(after, label)
                if label == RESULT and result is NOTHING:
                    result = ir.zero(inside)
                if isinstance(result, View) and not isinstance(_part(state, label), ir.Number):
                    raise self.new_in_loop("array", label, node)
                if not isinstance(result, ir.Number):
                    raise self.refuse(f"{label.strip('%')} is of two kinds in this loop", node)
                kind = join([inside.type, result.type])
                if kind != inside.type:
                    types[label], again = kind, True
                    lows.pop(label, None)
                elif inside.low is not None and (result.low is None or result.low < inside.low):
                    lows[label], again = None, True
                carry.result = self.b.cast(result, inside.type)
            for name in names:
                value = after.get(name)
                is_new = value is not before.get(name)
                if isinstance(value, tuple) and is_new:
                    if _is_numbers(value) and name not in types:
                        types[name], again = len(value), True
                        types |= {f"{name}.{k}": part.type for k, part in enumerate(value)}
                    if not _is_numbers(value) or types[name] != len(value):
                        raise self.new_in_loop("tuple", name, node)
                elif name not in carries and name not in types and isinstance(value, ir.Number):
                    types[name], again = value.type, True
                is_read = name in live or name == RESULT
                if is_new and is_read and isinstance(value, View) and name not in slots:
                    raise self.new_in_loop("array", name, node)
        outs = _joined({label: c.out for label, c in carries.items()}, tuples)
        changed = {x for x in stored(node.body) if after.get(x) is not before.get(x)}
        kept = {k: x for k, x in before.items() if k not in changed - {*outs, *slots}}
        self.env = kept | outs | slots  # other names were changed in place
        leaves = carries[LEAVES].result if LEAVES in carries else None
        if isinstance(node, ast.While):
            assert test is not None
            return ir.While(first, test, body, [*carries.values()], leaves), again
        start, stop, step = source.bounds
        return ir.For(index, start, stop, step, body, [*carries.values()], leaves), again

    def new_in_loop(self, kind: str, name: str, node: ast.AST) -> Exception:
        """Return the error for an array or a tuple that no memory outside the loop holds."""
        remedies = {"tuple": "assign its parts to variables"}
        remedy = remedies.get(kind, "allocate it before the loop, and assign to name[...]")
        return self.refuse(
            f"the {kind} {name.strip('%')} is created in this loop and read after it, or in the "
            f"next round: {remedy}",
            node,
        )

    def check_test(self, node: ast.While, block: ir.Block) -> None:
        """Refuse tests that do more than to test: they have no place in the backward sweep."""
        filled = {x.array for x in ir.walk(block) if isinstance(x, ir.Fill)}
        stores = [x for x in ir.walk(block) if isinstance(x, ir.Store) and x.array not in filled]
        named = any(isinstance(x, ast.NamedExpr) for x in ast.walk(node.test))
        if stores or named:
            raise self.refuse(
                "the condition of `while` assigns something: write `while True` with `break`", node
            )

    def copy_slots(self, slots: dict[str, View], body: ir.Block, live: Names) -> None:
        """Copy arrays that a round has replaced to where the next round reads them."""
        for name, slot in slots.items():
            value = self.env[name]
            if not isinstance(value, View) or len(value.shape) != len(slot.shape):
                raise self.refuse(f"{name} is of two kinds in this loop")
        moved = {k: self.env[k] for k, slot in slots.items() if slot != self.env[k]}
        memory = [self.env[name].array for name in slots]
        if len(set(memory)) < len(memory):
            raise self.refuse(
                f"two of {', '.join(slots)} are the same array at the end of a round: copy one: "
                "x = y.copy()"
            )
        changed = {x.array for x in ir.walk(body) if isinstance(x, ir.Store)}
        for name, value in moved.items():
            kin = self.kin(value.array)
            other = self.holder(kin, name, live, self.env)
            if other is not None and not changed.isdisjoint({*kin, slots[name].array}):
                raise self.refuse(
                    f"{name} may share its memory with {other} in the next round, and one of them "
                    f"is written to in this loop: copy it: {name} = {name}.copy()"
                )
        own_slots = {slot.array: slot for slot in slots.values()}
        shapes = [x.shape for name, value in moved.items() for x in (value, slots[name])]
        at_once = all(shape == shapes[0] for shape in shapes) and all(
            value == own_slots.get(value.array, value) for value in moved.values()
        )
        for name, value in moved.items():
            if not at_once and len(moved) > 1 and value.array in own_slots:
                moved[name] = self.materialize(value)
        for name, value in moved.items():
            self.copied(slots[name].array, name, value.array, live, self.env)
        if at_once:
            self.exchange(moved, slots)
        else:
            for name, value in moved.items():
                self.check_shape(slots[name], value)
                self.assign_elements(slots[name], value, None)
        self.env |= {name: slots[name] for name in moved}

    def exchange(self, values: dict[str, View], slots: dict[str, View]) -> None:
        """Copy arrays of one shape to their slots, which may be each other's."""

        def write(index: ir.Index) -> None:
            elements = [value.at(self.b, index) for value in values.values()]
            for name, number in zip(values, elements, strict=True):
                slots[name].put(self.b, index, number)

        if values:
            self.each(next(iter(values.values())).shape, write)

    def iterated(self, node: ast.For) -> Any:
        """Return what a `for` goes over: a range, rows of arrays, or a tuple."""
        call: Any = node.iter
        function = self.callee(call)
        backward = function is reversed and is_range(self.callee(call.args[0]))
        if backward or is_range(function):
            args = call.args[0].args if backward else call.args
            return self.numbered([self.integer(arg) for arg in args], node, backward)
        if function is enumerate or function is zip:
            return self.rows(call, function)
        if function is np.ndindex:
            raise self.refuse("write one loop for each axis", node)
        value = self.kept(self.expression(call))
        if isinstance(value, tuple):
            return value
        if isinstance(value, View) and value.shape:
            return LoopSource((ir.constant(0), value.shape[0], ir.constant(1)), (value,))
        raise self.refuse("loop over range, prange, arrays, enumerate, zip or tuples", node)

    def callee(self, node: ast.expr) -> Any:
        """Return the function that an expression calls; None if it is not a call."""
        return unwrapped(self.expression(node.func)) if isinstance(node, ast.Call) else None

    def numbered(self, args: Sequence[ir.Number], node: ast.For, backward: bool) -> LoopSource:
        """Return what a loop over a range goes over."""
        step = args[2] if len(args) == 3 else ir.constant(1)
        if not isinstance(step, ir.FixedNumber):
            raise self.refuse("the step of a range must be a constant", node)
        if step.number == 0:
            raise self.refuse("the step of a range must not be 0", node)
        start, stop = (ir.constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
        if backward:
            if step.number != 1:
                raise self.refuse("reversed needs a range without a step", node)
            start, stop = (self.b.op("subtract", end, 1) for end in (stop, start))
            step = ir.constant(-1)
        return LoopSource((start, stop, step))

    def rows(self, call: Any, function: Any) -> LoopSource:
        """Return what ``enumerate(array, start)``, of a zip too, or ``zip(arrays)`` goes over."""
        start: Any = None
        args = call.args
        if function is enumerate:
            options = [*args[1:], *[x.value for x in call.keywords if x.arg == "start"]]
            start = self.integer(options[0]) if options else 0
            args = args[:1]
            if args and self.callee(args[0]) is zip:
                function, args = zip, args[0].args
        arrays = tuple(self.kept(self.expression(arg)) for arg in args)
        if not all(isinstance(array, View) and array.shape for array in arrays) or not arrays:
            raise self.refuse(
                "loop over range, arrays, enumerate(array), zip(arrays), or both of these", call
            )
        size = arrays[0].shape[0]
        for array in arrays[1:]:
            size = self.b.op("minimum", size, array.shape[0])
        return LoopSource((ir.constant(0), size, ir.constant(1)), arrays, function is zip, start)


def is_range(function: Any) -> bool:
    """Return whether a function is range or Numba's prange."""
    return function is range or getattr(function, "__name__", "") == "prange"


def _part(env: dict[str, Any], label: str) -> Any:
    """Return the value of a name, or of a part of a tuple: ``name.0``."""
    name, _, place = label.partition(".")
    value = env.get(name)
    return value[int(place)] if place and isinstance(value, tuple) else value


def _joined(numbers: dict[str, ir.Number], tuples: dict[str, list[str]]) -> dict[str, Any]:
    """Return the values of names: numbers, and tuples whose parts are all there."""
    whole = {name: parts for name, parts in tuples.items() if all(x in numbers for x in parts)}
    values = {name: tuple(map(numbers.get, parts)) for name, parts in whole.items()}
    return {label: x for label, x in numbers.items() if "." not in label} | values


def _is_numbers(value: Any) -> bool:
    """Return whether a value is a tuple of numbers."""
    return isinstance(value, tuple) and all(isinstance(part, ir.Number) for part in value)
