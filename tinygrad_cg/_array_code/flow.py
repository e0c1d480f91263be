"""Branches and loops: what they change is merged, or carried from round to round."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import numpy as np

from ..autograph._names import CONTINUE, RETURN, Liveness, Names, jumps, writes
from . import program as ir
from .blocks_of_code import NOTHING, Env, tree, unwrapped
from .expressions_of_code import ExpressionReader
from .scalar_operations import join, low_of
from .views import View

MAX_ATTEMPTS = 8  # readings of a loop's body until the types of what it carries are known
Loop = ast.For | ast.While
Slots = dict[str, View]
Sides = tuple[Sequence[ast.stmt], Sequence[ast.stmt]]
"""The statements of an `if`, where its test is true, and where it is not."""
LEAVES, RETURNED, RESULT = "%leaves", "%returned", "%result"
"""The reader's own variables: whether a loop is left, whether the function has returned, what."""


@dataclass
class LoopSource:
    """What a loop goes over: the bounds of its index, its target in a round, and arrays."""

    bounds: ir.Bounds
    item: Callable[[ir.Number], Any]
    arrays: tuple[View, ...] = ()

    def loop(self) -> ir.For:
        """Return the loop, whose rounds do nothing yet."""
        start, stop, step = self.bounds
        low = start.low if step.number > 0 else stop.low
        if low is not None and step.number < 0:
            low += 1
        return ir.For(ir.Number("i64", "i", low), start, stop, step, [], [])


ENDLESS = LoopSource((ir.constant(0), ir.constant(2**62), ir.constant(1)), lambda index: index)
"""Of a `while`."""


class FlowReader(ExpressionReader):
    sides: tuple[Names, list[Env]] | None = None
    """What is read after the branch that is being merged, and the names of its two sides."""
    liveness = Liveness(())  # of the function that is read

    def statements(self, nodes: Sequence[ast.stmt]) -> None:
        for position, node in enumerate(nodes):
            self.node = node
            rest = nodes[position + 1 :]
            if isinstance(node, ast.If):
                test = self.test(node.test)
                if test.number is not None:
                    chosen = node.body if test.number else node.orelse
                    return self.statements([*chosen, *rest])
                if jumps([node]):
                    sides = [*node.body, *rest], [*node.orelse, *rest]
                    return self.branch(test, sides, self.live_after(nodes[-1]))
                self.branch(test, (node.body, node.orelse), self.liveness.after[id(node)])
            elif isinstance(node, Loop):
                if self.loop(node) and self.env[RETURNED].number is None:
                    sides = [], rest
                    return self.branch(self.env[RETURNED], sides, self.live_after(nodes[-1]))
            elif isinstance(node, ast.Return):
                value = NOTHING if node.value is None else self.visit(node.value)
                self.env[RESULT] = self.kept(value)
                self.env[RETURNED] = self.env[LEAVES] = ir.constant(True)
                return None
            elif isinstance(node, ast.Break):
                self.env[LEAVES] = ir.constant(True)
                return None
            elif isinstance(node, ast.Continue):
                return None
            elif not isinstance(node, ast.Pass):
                self.visit(node)
        return None

    def live_after(self, last: ast.stmt) -> Names:
        """Return the names that may be read after a block, or after a jump out of it."""
        return self.liveness.after[id(last)].union(*self.liveness.exits[id(last)])

    def branch(self, test: ir.Number, sides: Sides, live: Names) -> None:
        """Read both sides of an `if`, and merge what they assign and is read later."""
        before, blocks, envs, node = self.env, ([], []), [], self.node
        for block, statements in zip(blocks, sides, strict=True):
            self.env = dict(before)
            with self.into(block):
                self.statements(statements)
            envs.append(self.env)
        self.node = node
        statement = ir.If(test, *blocks)
        self.sides, around = (live, envs), self.sides
        self.env = {}
        names = dict.fromkeys((*envs[0], *envs[1]))
        in_one = sorted(x for x in envs[0].keys() ^ envs[1].keys() if x[0] not in "?%")
        names |= dict.fromkeys(f"?{name}" for name in in_one)
        for name in names:
            values = [env.get(name, _absent(name, env)) for env in envs]
            if name in before and all(value is before[name] for value in values):
                self.env[name] = values[0]
            elif name.strip("?") in live or (name[0] == "%" and None not in values):
                self.env[name] = self.merged(statement, name, *values)
        self.sides = around
        self.b.block.append(statement)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        test = self.test(node.test)
        if test.number is not None:
            return self.visit(node.body if test.number else node.orelse)
        target, around = ast.Name("%value", ast.Store()), self.node
        sides = [ast.Assign([target], node.body)], [ast.Assign([target], node.orelse)]
        self.branch(test, sides, frozenset({*self.env, target.id}))
        self.node = around
        return self.env.pop(target.id)

    def merged(self, statement: ir.If, name: str, then: Any, otherwise: Any) -> Any:
        """Return what a name stands for after a branch."""
        if then == otherwise:
            return then
        for side, other in ((then, otherwise), (otherwise, then)):
            if side is None or (name == RESULT and side is NOTHING):
                if isinstance(other, (ir.Number, tuple)):
                    pad = (None,) * len(other) if isinstance(other, tuple) else ir.zero(other)
                    pair = (other, pad) if side is otherwise else (pad, other)
                    return self.merged(statement, name, *pair)
                if isinstance(other, View) and not self.is_visible(other):
                    raise self.refuse(f"{name} is an array in one branch only: assign it in both")
                return other
        if isinstance(then, ir.Number) and isinstance(otherwise, ir.Number):
            kind = join([then.type, otherwise.type])
            with self.into(statement.then):
                then = self.b.cast(then, kind)
            with self.into(statement.otherwise):
                otherwise = self.b.cast(otherwise, kind)
            choice = statement.test, then, otherwise
            out = ir.Number(kind, name.strip("?%"), low_of("select", choice))
            statement.merges.append(ir.Merge(out, then, otherwise))
            self.choices[out] = ir.Op(out, "select", choice)
            return out
        if isinstance(then, tuple) and isinstance(otherwise, tuple) and len(then) == len(otherwise):
            pairs = zip(then, otherwise, strict=True)
            return tuple(self.merged(statement, name, *pair) for pair in pairs)
        if isinstance(then, View) and isinstance(otherwise, View):
            return self.merged_arrays(statement, name, then, otherwise)
        raise self.refuse(f"{name.strip('%')} has different types after the two branches")

    def merged_arrays(self, statement: ir.If, name: str, then: View, otherwise: View) -> View:
        """Return a copy of the array that the branch has chosen."""
        if len(then.shape) != len(otherwise.shape):
            raise self.refuse(f"{name} has two ranks after this branch")
        visible = next((x for x in (then, otherwise) if self.hidden.isdisjoint(x.shape)), None)
        if visible is None:
            raise self.refuse(f"the shape of {name} is known inside the branch only")
        kind = join([then.type, otherwise.type])
        slot = self.allocate(kind, visible.shape, None, name)
        live, envs = self.sides or (None, [self.env, self.env])
        for view, env in zip((then, otherwise), envs, strict=True):
            self.copied(slot.array, name, view.array, live, env)
        for block, view in ((statement.then, then), (statement.otherwise, otherwise)):
            with self.into(block):
                self.replace_elements(slot, view)
        return slot

    def loop(self, node: Loop) -> bool:
        """Read a loop; return whether it may return from the function."""
        if node.orelse:
            raise self.refuse("`else` of loops is not supported: set a flag before `break`", node)
        ways = jumps(node.body)
        returns = RETURN in ways
        source = self.iterated(node.iter) if isinstance(node, ast.For) else ENDLESS
        if isinstance(source, tuple):
            self.forbid(ways, "a loop over a tuple cannot break, continue or return", node)
            assert isinstance(node, ast.For)
            for item in source:
                self.assign(node.target, item)
                self.statements(node.body)
            return False
        assigned, head = writes(node), self.liveness.heads[id(node)]
        carried = head.intersection(assigned)
        names = [name for name in dict.fromkeys((*self.env, *sorted(assigned))) if name in carried]
        for name in names:
            if name not in self.env:
                self.env[name], self.env[f"?{name}"] = None, ir.constant(False)
        names += [f"?{name}" for name in names if f"?{name}" in self.env]
        flags = [LEAVES] * bool(ways - {CONTINUE}) + [RETURNED, RESULT] * returns
        outer_leaves = self.env.get(LEAVES)
        self.env[LEAVES] = ir.constant(False)
        self.held.append(source.arrays)
        slots = self.slots(node, names)
        kinds: dict[str, Any] = {}
        for _ in range(MAX_ATTEMPTS):
            env = dict(self.env)
            growing = self.program.scratch, self.program.errors, self.twins, self.b.block
            counts = [len(items) for items in growing]
            statement, again = self.round(node, source, names + flags, kinds, slots)
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

    def slots(self, node: Loop, names: Sequence[str]) -> Slots:
        """Copy arrays that a loop replaces to memory of their own."""
        slots, live = {}, self.liveness.heads[id(node)]
        inner = [child for child in ast.walk(node) if child is not getattr(node, "target", None)]
        changed = {child.target for child in inner if isinstance(child, ast.AugAssign)}  # in place
        replaced = writes([x for x in inner if isinstance(x, ast.Name) and x not in changed])
        for name in names:
            value = self.env[name]
            if isinstance(value, View) and name in replaced:
                slots[name] = self.materialize(value, name)
                self.copied(slots[name].array, name, value.array, live, self.env)
        self.env |= slots
        return slots

    def round(
        self, node: Loop, source: LoopSource, names: Sequence[str], kinds: Env, slots: Slots
    ) -> tuple[ir.For, bool]:
        """Read a loop's body once; return it, and whether the `kinds` of carries have changed."""
        state, carries = dict(self.env), {}  # carries by names, or tuples of them
        for name in names:
            init = self.env[name]
            kind = kinds.get(name, _kind(init))
            if kind is not None:
                carries[name] = self.carry(name, init, kind)
        self.env |= {name: tree(attrgetter("inside"), x) for name, x in carries.items()}
        before = dict(self.env)
        loop = source.loop()
        self.ranges[loop.index] = source.bounds
        if isinstance(node, ast.While):
            with self.into(loop.before):
                loop.test = self.test(node.test)
            stores = ir.arrays_of(loop.before, ir.Store) - ir.arrays_of(loop.before, ir.Fill)
            if stores or any(isinstance(x, ast.NamedExpr) for x in ast.walk(node.test)):
                what = "the condition of `while` assigns something: write `while True` with `break`"
                raise self.refuse(what, node)  # it has no place in the backward sweep
        with self.into(loop.body):
            if isinstance(node, ast.For):
                self.assign(node.target, source.item(loop.index))
            self.statements(node.body)
            after = self.env
            after |= {x: _absent(x, after) for x in names if x not in after}
            self.copy_slots(slots, loop.body, self.liveness.heads[id(node)])
            again = False
            for name in names:
                value = after.get(name)
                is_new = value is not before.get(name)
                kind = _kind(value) if name == RESULT and is_new else None
                has_place = name in slots or isinstance(state.get(name), ir.Number)
                if is_new and isinstance(value, View) and not has_place:
                    raise self.new_in_loop("array", name, node)
                if name in carries:
                    kind = self.carried(name, carries[name], value, node)
                elif kind is None and is_new and isinstance(value, tuple):
                    raise self.new_in_loop("tuple", name, node)
                if kind is not None and kind != before[name]:
                    kinds[name], again = kind, True
        outs = {name: tree(attrgetter("out"), carry) for name, carry in carries.items()}
        changed = {x for x in writes(node.body) if after.get(x) is not before.get(x)}
        kept = {k: x for k, x in before.items() if k not in changed - {*outs, *slots}}
        self.env = kept | outs | slots  # other names were changed in place
        loop.leaves = carries[LEAVES].result if LEAVES in carries else None
        tree(loop.carries.append, tuple(carries.values()))
        self.check_before(loop)
        return loop, again

    def carry(self, name: str, init: Any, kind: Any) -> Any:
        """Return what carries a number, or each number of a tuple, from round to round."""
        if isinstance(kind, tuple):
            inits = init if isinstance(init, tuple) else [init] * len(kind)
            return tuple(self.carry(name, *pair) for pair in zip(inits, kind, strict=True))
        low = kind.low
        if not isinstance(init, ir.Number):
            init, low = ir.zero(kind), low and min(low, 0)
        inside = ir.Number(kind.type, name.strip("%"), low)
        return ir.Carry(inside, self.b.cast(init, kind.type), inside, ir.like(inside))

    def carried(self, name: str, carry: Any, result: Any, node: ast.AST) -> Any:
        """Set what a round hands on, and return the kind that carries it."""
        if isinstance(carry, tuple):
            if not isinstance(result, tuple) or len(result) != len(carry):
                raise self.new_in_loop("tuple", name, node)
            pairs = zip(carry, result, strict=True)
            return tuple(self.carried(name, *pair, node) for pair in pairs)
        inside = carry.inside
        if name == RESULT and result is NOTHING:
            result = ir.zero(inside)
        self.forbid(not isinstance(result, ir.Number), _changes_type(name), node)
        carry.result = self.b.cast(result, inside.type)
        kind = join([inside.type, result.type])
        if kind != inside.type:
            return ir.Number(kind, low=0 if kind == "i64" else None)
        is_bound = inside.low is None or (result.low is not None and result.low >= inside.low)
        return inside if is_bound else ir.Number(kind)

    def new_in_loop(self, kind: str, name: str, node: ast.AST) -> Exception:
        """Return the error for an array or a tuple that no memory outside the loop holds."""
        remedy = "allocate it before the loop, and assign to name[...]"
        if kind == "tuple":
            remedy = "assign its parts to variables"
        return self.refuse(
            f"the {kind} {name.strip('%')} is created in this loop and read after it, or in the "
            f"next round: {remedy}",
            node,
        )

    def copy_slots(self, slots: Slots, body: ir.Block, live: Names) -> None:
        """Copy arrays that a round has replaced to where the next round reads them."""
        for name, slot in slots.items():
            value = self.env[name]
            if not isinstance(value, View) or len(value.shape) != len(slot.shape):
                raise self.refuse(_changes_type(name))
        moved = {k: self.env[k] for k, slot in slots.items() if slot != self.env[k]}
        memory = [self.env[name].array for name in slots]
        if len(set(memory)) < len(memory):
            raise self.refuse(
                f"two of {', '.join(slots)} are the same array at the end of a round: copy one: "
                "x = y.copy()"
            )
        changed = ir.arrays_of(body, ir.Store)
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

        def exchange(index: ir.Index) -> None:
            elements = [value.at(self.b, index) for value in moved.values()]
            for name, number in zip(moved, elements, strict=True):
                slots[name].put(self.b, index, number)

        if at_once and moved:
            self.each(shapes[0], exchange)
        for name, value in moved.items() if not at_once else ():
            self.replace_elements(slots[name], value)
        self.env |= {name: slots[name] for name in moved}

    def iterated(self, over: Any) -> Any:
        """Return what a `for` goes over: a range, rows of arrays, or a tuple."""
        function = self.callee(over)
        backward = function is reversed and is_range(self.callee(over.args[0]))
        if backward or is_range(function):
            return self.numbered(over.args[0] if backward else over, backward)
        if function is enumerate or function is zip:
            return self.rows(over, function)
        self.forbid(function is np.ndindex, "write one loop for each axis")
        value = self.kept(self.visit(over))
        if isinstance(value, View) and value.shape:
            bounds = ir.constant(0), value.shape[0], ir.constant(1)
            return LoopSource(bounds, lambda index: self.item(value, [index]), (value,))
        if isinstance(value, tuple):
            return value
        raise self.refuse("loop over range, prange, arrays, enumerate, zip or tuples")

    def callee(self, node: ast.expr) -> Any:
        """Return the function that an expression calls; None if it is not a call."""
        return unwrapped(self.visit(node.func)) if isinstance(node, ast.Call) else None

    def numbered(self, call: ast.Call, backward: bool) -> LoopSource:
        args = [self.integer(arg) for arg in call.args]
        step = args[2] if len(args) == 3 else ir.constant(1)
        self.forbid(step.number is None, "the step of a range must be a constant")
        self.forbid(step.number == 0, "the step of a range must not be 0")
        start, stop = (ir.constant(0), args[0]) if len(args) == 1 else (args[0], args[1])
        if backward:
            self.forbid(step.number != 1, "reversed needs a range without a step")
            start, stop = (self.b.op("subtract", end, 1) for end in (stop, start))
            step = ir.constant(-1)
        return LoopSource((start, stop, step), lambda index: index)

    def rows(self, call: ast.Call, function: Any) -> LoopSource:
        """Return what ``enumerate(rows, start)`` or ``zip(*rows)`` goes over."""
        parts = [self.iterated(arg) for arg in call.args[: 1 if function is enumerate else None]]
        if not parts or not all(isinstance(part, LoopSource) and part.arrays for part in parts):
            remedy = "loop over a range, an array, or the zip or enumerate of arrays"
            raise self.refuse(remedy, call)
        size = parts[0].bounds[1]
        for part in parts[1:]:
            size = self.b.op("minimum", size, part.bounds[1])
        starts = [*call.args[1:], *[x.value for x in call.keywords if x.arg == "start"]]
        first = self.integer(starts[0]) if starts and function is enumerate else ir.constant(0)

        def item(index: ir.Number) -> tuple:
            items = tuple(part.item(index) for part in parts)
            return items if function is zip else (self.b.op("add", index, first), *items)

        arrays = tuple(array for part in parts for array in part.arrays)
        return LoopSource((ir.constant(0), size, ir.constant(1)), item, arrays)


def is_range(function: Any) -> bool:
    return function is range or getattr(function, "__name__", "") == "prange"


def _kind(value: Any) -> Any:
    """Return a number of the type of a value, or a tuple of them; None for another value."""
    if isinstance(value, tuple):
        kinds = tuple(map(_kind, value))
        return None if None in kinds else kinds
    if value is None:  # unassigned
        return ir.Number("b1")
    return value if isinstance(value, ir.Number) else None


def _changes_type(name: str) -> str:
    return f"{name.strip('%')} changes its type in this loop, for example from a number to an array"


def _absent(name: str, env: dict[str, Any]) -> Any:
    """Return what a name that is not among others is: whether one of these is assigned, or None."""
    return ir.constant(name[1:] in env) if name[0] == "?" else None
