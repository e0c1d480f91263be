"""Blocks of a program while a function is read: errors, memory, loops over elements, indices."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._function.graph.values import reach
from ..autograph._names import Names
from ..errors import UnsupportedCodeError, location_of
from . import program as ir
from .scalar_operations import OpBuilder
from .views import (
    Arraylike,
    Axis,
    Lazy,
    View,
    broadcast,
    element,
    element_of,
    whole,
)


@dataclass(frozen=True)
class Known:
    """A value of Python's that is known when a function is read: a module, a function, None."""

    value: Any


def unwrapped(value: Any) -> Any:
    """Return a value of Python's that is known, or what stands for another one."""
    return value.value if isinstance(value, Known) else value


NOTHING = Known(None)
_OUT_OF_RANGE = "an index is out of range for its axis"
IndexCheck = tuple[ir.Number, ir.Number, ir.For | None, ir.Block]
"""The index and the size, the loop that it was taken out of, and the statements."""
Step = Callable[[ir.Index, ir.Numbers], ir.Numbers]
"""What a loop over indices carries, after a round."""
Twin = tuple[ir.Array, ir.Array, str, str]  # a copy, its original, and the names of both
Env = dict[str, Any]  # values by names


def tree(function: Callable[[Any], Any], value: Any) -> Any:
    """Return the results of a function for a value, or for each part of a tuple, in such tuples."""
    if isinstance(value, tuple):
        return tuple(tree(function, item) for item in value)
    return function(value)


def reaches(value: Any, arrays: set[ir.Array]) -> bool:
    """Return whether a value is, or has, one of the arrays."""
    if isinstance(value, tuple):
        return any(reaches(item, arrays) for item in value)
    return isinstance(value, Arraylike) and not arrays.isdisjoint(value.reads)


class BlockReader:
    """What a reader of functions adds to a program, and where."""

    def __init__(self, program: ir.ArrayProgram, function: Any):
        self.program, self.function = program, function
        self.definitions: dict[ir.Number, ir.Op] = {}
        self.b = OpBuilder(program.body, self.definitions)
        self.env: dict[str, Any] = {}  # values by names; "?x" is whether x is assigned, if in doubt
        self.hidden: set[ir.Number] = set()  # values of blocks that are closed
        self.calls: list[Any] = []  # functions that are being read
        self.names: Mapping[str, Any] = {}
        self.node: ast.AST | None = None
        self.choices: dict[ir.Number, ir.Op] = {}  # results of branches
        self.ranges: dict[ir.Number, ir.Bounds] = {}  # of loops' indices
        self.index_checks: dict[ir.Statement, IndexCheck] = {}
        self.checked: set[Any] = set()  # indices, with sizes, that this block has checked
        self.sizes: set[ir.Number] = set()  # inputs, and what follows from these alone
        self.replaced_inputs: list[str] = []
        self.replacements: dict[ir.Array, str] = {}  # memory of what may be an input in Python
        self.twins: list[Twin] = []
        self.held: list[Any] = []  # values that callers and loops hold, besides names
        self.pending: list[Any] = []  # operands of expressions that are being read
        self.frozen: list[tuple[np.ndarray, View]] = []

    @abstractmethod
    def binary(self, name: str, left: Any, right: Any) -> Any:
        """Return an operation on numbers or arrays, by the name of Python's operator."""

    @abstractmethod
    def call(self, function: Any, args: Any, keywords: dict[str, Any]) -> Any:
        """Return the result of a function's body."""

    def refuse(self, what: str, node: ast.AST | None = None) -> UnsupportedCodeError:
        """Return the error for a construct; it says where that is."""
        node = node if hasattr(node, "lineno") else self.node
        text = ""
        if node is not None:
            text = ast.unparse(node).partition("\n")[0]
            text = f", `{text if len(text) <= 60 else text[:57] + '...'}`"
        return UnsupportedCodeError(f"{self.place(node, text)}: {what}")

    def forbid(self, condition: Any, what: str, node: ast.AST | None = None) -> None:
        """Raise the error for a construct if a condition is true."""
        if condition:
            raise self.refuse(what, node)

    def place(self, node: ast.AST | None, text: str = "") -> str:
        """Return the function that is read, and its line."""
        function = self.calls[-1] if self.calls else self.function
        line = getattr(node, "lineno", function.__code__.co_firstlineno)
        return f"{function.__name__} ({location_of(function.__code__.co_filename, line)}{text})"

    def check(self, test: ir.Number, kind: type[Exception], message: str) -> None:
        """Add a check, whose error names the line."""
        if test.number:
            return
        self.program.errors.append((kind, f"{self.place(self.node)}: {message}"))
        self.b.block.append(ir.Require(test, len(self.program.errors)))

    def check_index(self, index: ir.Number, size: ir.Number) -> None:
        """Add a check that an index is in range, unless that is known."""
        key = ir.term_of(index, self.definitions), size
        is_low = index.low is not None and index.low >= 0
        if key in self.checked or (is_low and self.is_below(index, size)):
            return
        self.checked.add(key)
        self.program.errors.append((IndexError, f"{self.place(self.node)}: {_OUT_OF_RANGE}"))
        self.require((index, index), size, len(self.program.errors))

    def require(
        self, ends: Sequence[ir.Number], size: ir.Number, error: int, loop: ir.For | None = None
    ) -> None:
        """Add a check that two ends of a range are indices, unless a loop has no rounds."""
        count, b, (least, most) = len(self.b.block), self.b, ends
        test = b.op("less", most, size)
        if least.low is None or least.low < 0:
            test = b.op("and", b.op("greater_equal", least, b.op("negative", size)), test)
        if loop is not None:
            has_rounds = b.op("less" if loop.step.number > 0 else "greater", loop.start, loop.stop)
            test = b.op("or", b.op("not", has_rounds), test)
        if not test.number:
            require = ir.Require(test, error)
            b.block.append(require)
            self.index_checks[require] = most, size, loop, b.block[count:]

    def check_before(self, loop: ir.For) -> None:
        """Check before a loop what its rounds check of its index, where all of them run."""
        checks = {x for x in ir.walk(loop.body) if isinstance(x, ir.Require)}
        if not (loop.is_counted and self.index_checks.keys() >= checks):
            return
        inside, jump = ir.defined([loop]), loop.step.number
        for require in [x for x in loop.body if x in checks]:
            index, size, earlier, statements = self.index_checks[require]
            base, gap = ir.term_of(index, self.definitions)
            is_inside = size in inside or earlier is not None
            if base is loop.index and not is_inside and abs(jump) == 1:
                loop.body[:] = [x for x in loop.body if x not in statements]
                ends = loop.start, self.b.op("subtract", loop.stop, loop.step)
                ends = [self.b.op("add", x, gap) for x in ends[::jump]]
                self.require(ends, size, require.error, loop)

    def is_below(self, index: ir.Number, size: ir.Number) -> bool:
        """Return whether an index is known to be less than the size of its axis."""
        if index.number is not None and index.number < (size.low or 0):
            return True
        own, gap = ir.term_of(size, self.definitions)
        most = self.bound(index, True, lambda value: value is own)
        base, constant = (own, gap) if most is None else ir.term_of(most, self.definitions)
        return base is own and constant < gap

    def check_equal(self, x: ir.Number, y: ir.Number) -> None:
        if x != y:
            self.check(
                self.b.op("equal", x, y),
                ValueError,
                "the shapes of operands differ; an axis of size 1 is only repeated if `None` or a "
                "constant created it: write a[:, None]",
            )

    def replace_elements(self, target: View, value: View) -> None:
        """Assign an array of the same shape: no axis is repeated."""
        for pair in zip(target.shape, value.shape, strict=True):
            self.check_equal(*pair)
        self.assign_elements(target, value, None)

    @contextmanager
    def into(self, block: ir.Block) -> Iterator[None]:
        """Add statements to another block; their values are hidden afterwards."""
        around, self.b = self.b, OpBuilder(block, self.definitions)
        checked, self.checked = self.checked, {*self.checked}
        count = len(block)
        try:
            yield
        finally:
            self.b, self.checked = around, checked
            for statement in block[count:]:
                self.hidden.update(statement.results())

    def is_visible(self, view: View) -> bool:
        ends = {x for axis in view.axes for x in (axis.start, axis.step)}
        return self.hidden.isdisjoint(ends.union(view.shape))

    def wrap(self, value: Any) -> Any:
        """Return what a value of Python's is in a program."""
        if isinstance(value, (bool, np.bool_)):
            return ir.constant(bool(value))
        if isinstance(value, (int, np.integer)):
            return ir.constant(int(value))
        if isinstance(value, (float, np.floating)):
            is_single = isinstance(value, np.floating) and value.itemsize <= 4
            return ir.fixed("f32" if is_single else "f64", float(value))
        if isinstance(value, tuple):
            return tuple(map(self.wrap, value))
        if isinstance(value, np.ndarray):
            return self.constant_array(value)
        return Known(value)

    def constant_array(self, value: np.ndarray) -> View:
        """Return a global array: an input that the caller does not see."""
        for original, view in self.frozen:
            if original is value:
                return view
        if value.size > 1_000_000 or value.dtype.kind not in "fiub":
            raise self.refuse(f"a global array of dtype {value.dtype} and size {value.size}")
        shape = tuple(map(ir.constant, value.shape))
        array = ir.Array(element_of(value.dtype), shape, "constant")
        self.program.constants.append((array, value.copy()))
        self.frozen.append((value, whole(array)))
        return whole(array)

    def kin(self, array: ir.Array) -> set[ir.Array]:
        """Return the arrays that may be the same one in Python."""
        pairs = [twin[:2] for twin in self.twins]
        return set(reach([array], lambda x: [y for pair in pairs if x in pair for y in pair]))

    def holder(self, arrays: set[ir.Array], but: str, live: Names | None, env: Env) -> str | None:
        """Return the name, other than `but`, by which one of the arrays is still reached."""
        for name, value in env.items():
            if name != but and (live is None or name in live) and reaches(value, arrays):
                return name.strip("%")
        if any(reaches(value, arrays) for value in self.held):
            return "an array of the loop or the caller around"
        return None

    def copied(self, copy: ir.Array, name: str, of: ir.Array, live: Names | None, env: Env) -> None:
        """Note that a name has a copy of what is the same array in Python."""
        kin = self.kin(of)
        other = self.holder(kin, name, live, env)
        if other is not None:
            self.twins += [(copy, array, name, other) for array in kin]
        for array in kin:
            if array in self.program.inputs or array in self.replacements:
                self.replacements[copy] = name

    def changes(self, array: ir.Array, node: ast.AST | None) -> None:
        """Refuse to write to an array where Python would change what is a copy here."""
        if any(isinstance(x, Lazy) and array in x.reads for x in self.pending):
            raise self.refuse(
                f"{array.hint} is written to while an expression that reads it is evaluated: "
                "assign its parts to names first",
                node,
            )
        if any(array is constant_ for constant_, _ in self.program.constants):
            raise self.refuse("a global array is written to: pass it as an argument", node)
        for copy, original, name, other in self.twins:
            if array in (copy, original):
                name = "the result" if name.startswith("%") else name
                raise self.refuse(
                    f"{name} may share its memory with {other} (it is replaced in a loop or a "
                    f"branch), and one of them is written to: copy it before with .copy()",
                    node,
                )
        if array in self.replacements:
            self.replaced_inputs.append(self.replacements[array])

    def evaluated(self, value: Any) -> Any:
        """Return an array without axes as a number."""
        if isinstance(value, Arraylike) and not value.shape:
            return value.at(self.b, ())
        return value

    def kept(self, value: Any) -> Any:
        """Return a value for a name: an expression of arrays is computed now."""
        return tree(lambda x: self.materialize(x) if isinstance(x, Lazy) else x, value)

    def number(self, value: Any, node: ast.AST | None = None) -> ir.Number:
        value = self.evaluated(value)
        self.forbid(not isinstance(value, ir.Number), "a number is expected here", node)
        return value

    def map(self, function: Callable[..., ir.Number], *operands: Any) -> Any:
        """Apply a function of numbers to numbers, or element by element to arrays."""
        for operand in operands:
            if not isinstance(operand, (ir.Number, Arraylike)):
                raise self.refuse("numbers and arrays are expected here")
        arrays = [x for x in operands if not isinstance(x, ir.Number)]
        if not arrays:
            return function(self.b, *operands)
        shape = broadcast([x.shape for x in arrays], self.check_equal)
        kinds = [x if isinstance(x, ir.Number) else ir.Number(x.type) for x in operands]
        errors = len(self.program.errors)
        with self.into([]):  # which nobody keeps
            kind = function(self.b, *kinds).type
        del self.program.errors[errors:]

        def at(b: OpBuilder, index: ir.Index) -> ir.Number:
            return function(b, *[element(b, operand, index) for operand in operands])

        return Lazy(kind, shape, at, frozenset().union(*[x.reads for x in arrays]))

    def allocate(self, kind: str, shape: ir.Index, fill: ir.Number | None, hint: str = "a") -> View:
        """Return a new array; of an undefined content, or filled with a number."""
        sizes = []
        for size in shape:
            if self.is_early(size):
                sizes.append(size)
                continue
            most = self.bound(size, True, self.is_early)
            if size.low is None or size.low < 0:
                test = self.b.op("greater_equal", size, 0)
                self.check(test, ValueError, "negative dimensions are not allowed")
            if most is None:
                raise self.refuse(
                    "the size of a new array depends on an element, or on a number that a loop "
                    "changes: allocate an array of the largest size first, and use a part of it"
                )
            sizes.append(self._of_bounds("maximum", most, ir.constant(0)))
        array = ir.Array(kind, tuple(sizes), hint)
        self.program.scratch.append(array)
        self.b.block.append(ir.Fill(array, fill))
        return View(array, whole(array).axes, tuple(shape))

    def is_early(self, value: ir.Number) -> bool:
        """Return whether a number is known where memory is allocated, before the body."""
        op = self.definitions.get(value)
        if value not in self.sizes and op is not None and all(map(self.is_early, op.args)):
            self.sizes.add(value)
        return value.number is not None or value in self.sizes

    def bound(self, value: ir.Number, upper: bool, is_end: Callable) -> ir.Number | None:
        """Return a bound of an integer that is computed from ends alone; None without one."""
        if value.number is not None or is_end(value):
            return value
        if not upper and value.low is not None:
            return ir.constant(value.low)
        if value in self.ranges:
            start, stop, step = self.ranges[value]
            if upper == (step.number > 0):
                end = self.bound(stop, upper, is_end)
                return end and self._of_bounds("subtract", end, ir.constant(1 if upper else -1))
            return self.bound(start, upper, is_end)
        op = self.definitions.get(value) or self.choices.get(value)
        if op is None:
            return None
        x, y = op.args[-2:] if len(op.args) > 1 else (*op.args, ir.constant(0))
        second = self.bound(y, upper != (op.function == "subtract"), is_end)
        if op.function == "mod":
            if second is None or not upper or y.low is None or y.low < 0:
                return None
            return self._of_bounds("subtract", second, ir.constant(1))
        first, extreme = self.bound(x, upper, is_end), "maximum" if upper else "minimum"
        if first is None or second is None:
            is_enough = op.function in ("minimum", "maximum") and op.function != extreme
            return first or second if is_enough else None
        match op.function:
            case "select":
                return self._of_bounds(extreme, first, second)
            case "multiply":
                is_monotonic = all(z.low is not None and z.low >= 0 for z in (x, y))
            case "floor_divide":
                is_monotonic = y.number is not None and y.number > 0
            case _:
                is_monotonic = op.function in ("add", "subtract", "minimum", "maximum")
        return self._of_bounds(op.function, first, second) if is_monotonic else None

    def _of_bounds(self, function: Any, x: ir.Number, y: ir.Number) -> ir.Number:
        """Compute a bound; the extreme of a number's two sums with constants is known."""
        (base, constant), (other, gap) = (ir.term_of(z, self.definitions) for z in (x, y))
        if base is other and function in ("minimum", "maximum"):
            return x if (constant < gap) == (function == "minimum") else y
        return OpBuilder([], self.definitions).op(function, x, y, hint="n")

    def materialize(self, value: View | Lazy, hint: str = "a") -> View:
        """Return an array in memory of its own."""
        view = self.allocate(value.type, value.shape, None, hint)
        self.each(value.shape, lambda index: view.put(self.b, index, value.at(self.b, index)))
        return view

    def store(self, view: View, value: Any, node: ast.AST | None) -> None:
        if not isinstance(value, (ir.Number, Arraylike)):
            raise self.refuse("only numbers and arrays can be assigned to elements", node)
        self.changes(view.array, node)
        self.assign_elements(view, value, node)

    def assign_elements(self, view: View, value: Any, node: ast.AST | None) -> None:
        if value.type in ir.FLOATS and view.type not in ir.FLOATS:
            remedy = "int(x)" if isinstance(value, ir.Number) else "x.astype(np.int64)"
            raise self.refuse(f"floats are assigned to an array of integers: use {remedy}", node)
        if not isinstance(value, ir.Number):
            if view.array in value.reads and view != value and not self.reads_in_place(value, view):
                value = self.materialize(value)
            broadcast([view.shape, value.shape], self.check_equal)
            if len(value.shape) > len(view.shape):
                raise self.refuse("the value has more axes than its target", node)
        self.each(view.shape, lambda i: view.put(self.b, i, element(self.b, value, i)))

    def reads_in_place(self, value: View | Lazy, view: View) -> bool:
        """Return whether an expression reads an array only at the place that is written."""
        if isinstance(value, View):
            return False
        block: ir.Block = []
        index = tuple(ir.Number("i64", "i", 0) for _ in view.shape)
        with self.into(block):
            value.at(self.b, index[len(index) - len(value.shape) :])
            place = view.place(self.b, index)
        loads = [x for x in block if isinstance(x, ir.LoadElement) and x.array is view.array]
        nested = any(isinstance(x, (ir.For, ir.If)) for x in block)
        return not nested and all(load.index == place for load in loads)

    def each(self, shape: Sequence[ir.Number], write: Callable[[ir.Index], None]) -> None:
        """Add loops over the indices of a shape."""
        self.reduced(shape, (), lambda index, _: write(index) or ())

    def reduced(self, shape: ir.Numbers, inits: Any, step: Step, index: ir.Index = ()) -> Any:
        """Add loops over a shape that carry numbers, and return these."""
        if len(index) == len(shape):
            return step(index, inits)
        size = shape[len(index)]
        if size.number == 1:
            return self.reduced(shape, inits, step, (*index, ir.constant(0)))
        variable, body = ir.Number("i64", "k", 0), []
        insides = [ir.Number(value.type, "sum") for value in inits]
        with self.into(body):
            ends = self.reduced(shape, insides, step, (*index, variable))
            ends = [self.b.cast(end, x.type) for end, x in zip(ends, insides, strict=True)]
        outs = [ir.like(x) for x in insides]
        carries = list(map(ir.Carry, insides, inits, ends, outs))
        self.b.block.append(ir.counting(variable, size, body, carries))
        return outs

    def item(self, view: View, parts: list[Any], node: ast.AST | None = None) -> Any:
        """Return the part of a view as a number, or as an array."""
        return self.evaluated(self.part(view, parts, node))

    def part(self, view: View, parts: list[Any], node: ast.AST | None) -> View:
        """Return the part of a view at integers, slices (tuples), None and Ellipsis."""
        used = sum(not isinstance(part, Known) for part in parts)
        if used > len(view.shape):
            axes = "1 axis" if len(view.shape) == 1 else f"{len(view.shape)} axes"
            raise self.refuse(f"{used} indices for an array of {axes}", node)
        full = (None, None, None)
        missing = [full] * (len(view.shape) - used)
        at = parts.index(Known(...)) if Known(...) in parts else len(parts)
        parts = [*parts[:at], *missing, *parts[at + 1 :]]
        new: list[Axis] = []  # by axes of the view
        shape: list[ir.Number] = []
        for part in parts:
            if isinstance(part, Known):
                shape.append(ir.constant(1))
            elif isinstance(part, tuple):
                start, step, count = self.sliced(part, view.shape[len(new)])
                new.append(Axis(start, step, len(shape)))
                shape.append(count)
            else:
                size = view.shape[len(new)]
                self.check_index(part, size)
                new.append(Axis(self.wrapped(part, size)))
        return View(view.array, tuple(self.compose(old, new) for old in view.axes), tuple(shape))

    def compose(self, old: Axis, new: Sequence[Axis]) -> Axis:
        """Return how memory is indexed by a part of a view."""
        if old.of is None or old.step is None:
            return old
        inner = new[old.of]
        start = self.b.op("add", old.start, self.b.op("multiply", inner.start, old.step), hint="i")
        if inner.step is None:
            return Axis(start)
        return Axis(start, self.b.op("multiply", inner.step, old.step, hint="i"), inner.of)

    def wrapped(self, index: ir.Number, size: ir.Number) -> ir.Number:
        """Return an index that counts from the beginning."""
        if index.low is not None and index.low >= 0:
            return index
        if index.number is not None:
            return self.b.op("add", size, index, hint="i")
        negative = self.b.op("less", index, 0)
        return self.b.op("select", negative, self.b.op("add", index, size), index, hint="i")

    def sliced(self, part: tuple, size: ir.Number) -> tuple[ir.Number, ir.Number, ir.Number]:
        """Return a slice's start, step and number of elements."""
        start, stop, step = part
        step = ir.constant(1) if step is None else step
        self.forbid(step.number is None, "the step of a slice must be a constant")
        jump = step.number
        self.forbid(jump == 0, "the step of a slice must not be 0")
        if start is None and stop is None and jump == 1:
            return ir.constant(0), step, size
        b = self.b

        def clipped(value: ir.Number, low: int, high: ir.Number) -> ir.Number:
            value = self.wrapped(value, size)
            if value.low is None or value.low < low:
                value = b.op("maximum", value, low)
            if value.number == 0 and jump > 0:
                return value
            return b.op("minimum", value, high)

        low, top = (0, size) if jump > 0 else (-1, b.op("subtract", size, 1))
        begin, end = (ir.constant(0), top) if jump > 0 else (top, ir.constant(-1))
        first = begin if start is None else clipped(start, low, top)
        last = end if stop is None else clipped(stop, low, top)
        return first, step, b.op("maximum", b.rounds(first, last, jump), 0, hint="n")
