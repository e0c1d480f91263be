"""Translation of functions, in a small part of Python, to LLVM's intermediate representation.

This part of Python has numbers, arrays of one dimension, tuples, loops, conditions, calls, and
static functions and dtypes. Generated kernels and the library's own kernels are written in it. Each
function is translated once for each choice of its arguments' types, with the types that Numba would
infer. If a function uses anything else, `Untranslatable` is raised, and Numba compiles it.
"""

from __future__ import annotations

import ast
import builtins
import importlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend.intrinsics import (
    Intrinsic,
    Mark,
    inlined,
    noalias,
    outlined,
    short_rows,
    vectorised,
)
from tinygrad_cg_frontend.sources import Source, source_of
from tinygrad_cg_frontend.values import (
    NOTHING,
    PARTS,
    STORED,
    Array,
    IRValue,
    Record,
    ScalarFunction,
    Static,
    Untranslatable,
    constant,
    dtype_of,
    itemsize,
    leaf_types,
    leaves,
    llvm_type,
    name_of,
    rebuilt,
)
from tinygrad_cg_frontend.writer import FloatProduct, Writer, holds, is_harmless

SUM_LOOP = ";sums"
"""Marks the latch of a loop whose sum may be reassociated."""
MAX_INLINED = 3
"""A function inlines its long formulas if there are at most this many, and otherwise calls them a
vector at a time. Inlined formulas are up to twice as fast, and take longer to compile."""


def are_inlined(formulas: int) -> bool:
    """Return whether this many long formulas are inlined into the function that calls them.

    Otherwise it calls vector functions, which test themselves whether a quick formula holds.
    """
    return formulas <= MAX_INLINED


FUNCTIONS = {getattr(math, name): name for name in ("exp", "log", "sin", "cos", "pow", "sqrt")}
FUNCTIONS[np.sqrt] = "sqrt"
"""Functions that LLVM has as intrinsics."""
LIBRARY = {
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cosh", "expm1", "hypot"),
    *("log1p", "sinh", "tan", "tanh"),
}
"""Functions of the module `math` that are called in C's library."""
CASTS = {float: np.float64, int: np.int64, bool: np.bool_}


def text_scope(source: str) -> dict[str, Any]:
    """Return the scope of a text: the builtins, its imports and its functions."""
    scope: dict[str, Any] = dict(vars(builtins))
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.FunctionDef):
            names = tuple(argument.arg for argument in statement.args.args)
            scope[statement.name] = Source(statement.name, names, statement.body, scope)
        elif isinstance(statement, ast.Import):
            for name in statement.names:
                scope[name.asname or name.name] = importlib.import_module(name.name)
        elif isinstance(statement, ast.ImportFrom):
            module = importlib.import_module(statement.module or "")
            for name in statement.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{module.__name__}.{name.name}")
                scope[name.asname or name.name] = getattr(module, name.name)
    return scope


class FunctionBody(Writer):
    """One function of an `IRModule`, for given types of its arguments.

    It may be part of other modules, too, if it `is_shared`; they need the functions `called`.
    """

    def __init__(self, module: Any, source: Source, arguments: tuple, symbol: str):
        super().__init__(fuses=module.find is None and module.processor.fuses)
        self.module: Any = module
        self.symbol, self.result = symbol, None
        self.ended = False
        self.called: list[tuple[Source, tuple]] = []
        self.is_shared = True
        self._interleaved = 0
        self._source = source
        self._variables: dict[str, tuple[Any, list[str]]] = {}
        self._constants: dict[str, IRValue] = {}
        self._values: dict[str, IRValue] = {}  # of variables, which need not be loaded
        self._reads = 0  # operands that were not loaded
        self._unread: set[str] = set()  # stack slots of variables that nothing reads
        self._work: list[str] = []  # memory to be freed
        self._loops: list[tuple[str, str]] = []  # targets of `continue` and `break`
        self._returned: list[str] = []  # stack slots of the result
        self._parameters: list[str] = []
        self._formulas: list[ScalarFunction] = []  # each as often as it is called
        marks = [self._mark(statement) for statement in source.body]
        self.marks = {mark for mark in marks if mark is not None}
        restrict = " noalias" if noalias in self.marks else ""
        for name, kind in zip(source.parameters, arguments, strict=True):
            operands = [f"%{name}.a{k}" for k in range(len(leaf_types(kind)))]
            for leaf, operand in zip(leaf_types(kind), operands, strict=True):
                self._parameters.append(f"{leaf}{restrict if leaf == 'ptr' else ''} {operand}")
            self._assign(name, rebuilt(kind, operands))
        self._run(source.body)
        if not self.ended:
            if self.result is not None:
                raise Untranslatable("a function that may end without a return")
            self._return(IRValue("i64", "0"))
        self.module = None

    def interleave(self) -> None:
        self._interleaved = self.INTERLEAVED

    def _mark(self, node: ast.stmt) -> Any:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Name):
                mark = self._source.scope.get(function.id)
                return mark if isinstance(mark, Mark) else None
        return None

    def declaration(self) -> str:
        return f"declare {self._result_type()} @{self.symbol}({', '.join(self._parameters)})"

    def text(self, module: Any) -> str:
        """Return the text for a module."""
        group = 0
        if outlined in self.marks:
            group = 2
        elif self.marks & {inlined, vectorised} or module.whole:
            group = 3
        parameters, kind = ", ".join(self._parameters), self._result_type()
        head = f"define internal {kind} @{self.symbol}({parameters}) #{group} {{"
        slots = (line for line in self._slots if line.split()[0] not in self._unread)
        lines = [head, "entry:", *slots, "  br label %start", "start:"]
        lines += (line for line in self.lines if not self._is_lost(line))
        lines += ["return:", *self._ending(kind, module), "}"]
        several = not are_inlined(
            sum(formula.is_long and not formula.by_value for formula in self._formulas)
        )
        count = self.INTERLEAVED if several else self._interleaved
        count = 1 if short_rows in self.marks else count
        for k, line in enumerate(lines):
            code, latch, kind = line.partition(" ;latch")
            if latch and module.is_scalar:
                kind = module.loop("vectorize.enable", "i1 false")
            elif latch and count:
                kind = module.loop("interleave.count", f"i32 {count}")
            if latch:
                lines[k] = code + kind
        text = "\n".join(lines)
        for formula in dict.fromkeys(self._formulas):
            if several and formula.is_long:
                text = text.replace(f"@{formula.symbol}(", f"@{formula.symbol}_v1(")
                module.called[formula.symbol] = formula
            else:
                module.inline(formula)
        return text

    def _is_lost(self, line: str) -> bool:
        """Return whether a line stores to a variable that nothing reads."""
        return line.startswith("  store ") and line.rpartition(" ")[2] in self._unread

    def _ending(self, kind: str, module: Any) -> Iterator[str]:
        """Yield the lines that free memory and return the result."""
        for k, slot in enumerate(self._work):
            module.declare("PyMem_RawFree", "void @PyMem_RawFree(ptr)")
            yield f"  %work{k} = load ptr, ptr {slot}"
            yield f"  call void @PyMem_RawFree(ptr %work{k})"
        types = leaf_types(self.result)
        text = "poison"
        for k, (slot, leaf) in enumerate(zip(self._returned, types, strict=True)):
            yield f"  %back{k} = load {leaf}, ptr {slot}"
            if _is_structure(self.result):
                yield f"  %whole{k} = insertvalue {kind} {text}, {leaf} %back{k}, {k}"
                text = f"%whole{k}"
            else:
                text = f"%back{k}"
        yield f"  ret {kind} {text}" if types else "  ret void"

    def _result_type(self) -> str:
        types = leaf_types(self.result)
        if _is_structure(self.result):
            return f"{{ {', '.join(types)} }}"
        return types[0] if types else "void"

    # Variables -------------------------------------------------------------------------------

    def _assign(self, name: str, value: IRValue) -> None:
        if name == "_":  # nothing reads it
            return
        kind, variable = value.type, self._variables.get(name)
        numbers = variable is not None and isinstance(variable[0], str) and value.is_number
        if variable is None or not (numbers or variable[0] == kind):
            slots = [self.slot(leaf) for leaf in leaf_types(kind)]
            variable = self._variables[name] = kind, slots
            self._unread.update(variable[1])
        elif variable[0] != kind:
            if variable[0] != "i64" or kind[0] != "i":  # Numba would make two variables
                raise Untranslatable(f"{name} has two types")
            value = self.cast(value, variable[0])
        for (leaf, operand), slot in zip(leaves(value), variable[1], strict=True):
            self.lines.append(f"  store {leaf} {operand}, ptr {slot}")
        self._values[name] = IRValue(variable[0], value.text, value.size)

    def begin(self, label: str, values: dict[str, IRValue] | None = None) -> None:
        """Begin a block; `values` are variables with the same value on all ways to the block."""
        super().begin(label)
        self._values = {} if values is None else values

    def _read(self, name: str) -> IRValue:
        value = self._values.get(name)
        if value is not None:
            self._reads += len(self._variables[name][1])
            return value
        variable = self._variables.get(name)
        if variable is None:
            if name not in self._constants:
                try:
                    self._constants[name] = constant(self._source.scope[name])
                except KeyError:
                    raise Untranslatable(f"the name {name}") from None
            return self._constants[name]
        kind, slots = variable
        types = leaf_types(kind)
        operands = [
            self.emit(f"load {leaf}, ptr {slot}") for leaf, slot in zip(types, slots, strict=True)
        ]
        self._unread.difference_update(slots)
        value = rebuilt(kind, operands)
        if not self._depth:
            self._values[name] = value
        return value

    # Statements ------------------------------------------------------------------------------

    def _run(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if self.ended:
                return
            _method("on", type(statement))(self, statement)

    def _on_pass(self, node: ast.Pass) -> None:
        pass

    def _on_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant) and self._mark(node) is None:
            self._value(node.value)

    def _on_assign(self, node: ast.Assign) -> None:
        value = self._value(node.value)
        for target in node.targets:
            self._bind(target, value)

    def _bind(self, target: ast.expr, value: IRValue) -> None:
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            for name, part in zip(target.elts, self.parts(value), strict=True):
                self._bind(name, part)
        elif isinstance(target, ast.Subscript):
            array = self._value(target.value)
            if not isinstance(array.type, Array):
                raise Untranslatable("a target")
            if isinstance(target.slice, ast.Slice):
                if target.slice.lower or target.slice.upper or target.slice.step:
                    raise Untranslatable("a slice of an array")
                self._fill(array, value)
            else:
                address = self.element(array, self._value(target.slice))
                self.store(value, array.type.element, address)
        else:
            raise Untranslatable("a target")

    def _fill(self, array: IRValue, value: IRValue) -> None:
        with self._loop(IRValue("u64", "0"), array.size, "1", "u64") as at:
            self.store(value, array.type.element, self.address(array, at))

    def _on_augassign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Subscript):
            array, index = self._value(target.value), self._value(target.slice)
            address = self.element(array, index)
            kind = array.type.element
            total = self._operate(type(node.op).__name__, self.load(kind, address), node.value)
            self.store(total, kind, address)
        elif isinstance(target, ast.Name):
            total = self._operate(type(node.op).__name__, self._read(target.id), node.value)
            self._assign(target.id, total)
        else:
            raise Untranslatable("a target")

    @contextmanager
    def _loop(self, begin: IRValue, end: str, step: str, kind: str) -> Iterator[str]:
        """Write a loop around the code of the `with` block; give the operand of its index."""
        head, body, latch, exit_ = map(self.label, ("head", "body", "latch", "exit"))
        counter = self.slot("i64")
        self.lines.append(f"  store i64 {begin.text}, ptr {counter}")
        self.jump(head)
        self.begin(head)
        first = len(self.lines)
        at = self.emit(f"load i64, ptr {counter}")
        order = "sgt" if step.startswith("-") else "slt" if kind == "i64" else "ult"
        self.branch(self.emit(f"icmp {order} i64 {at}, {end}"), body, exit_)
        self.begin(body)
        self._loops.append((latch, exit_))
        yield at
        self._loops.pop()
        if not self.ended:
            self.jump(latch)
        self.ended = False
        self.begin(latch)
        again = self.emit(f"load i64, ptr {counter}")
        flags = "nsw" if kind == "i64" else "nuw nsw"
        after = self.emit(f"add {flags} i64 {again}, {step}")
        self.lines.append(f"  store i64 {after}, ptr {counter}")
        kind = f" {SUM_LOOP}" if self.module.sums(self.lines[first:]) else ""
        self.lines.append(f"  br label %{head} ;latch{kind}")
        self.begin(exit_)

    def _on_for(self, node: ast.For) -> None:
        call, target = node.iter, node.target
        if not (isinstance(call, ast.Call) and isinstance(target, ast.Name)) or node.orelse:
            raise Untranslatable("a loop")
        if self._static(call.func) is not range:
            raise Untranslatable("a loop")
        numbers = [self.index(self._value(part)) for part in call.args]
        begin, end, step = IRValue("i64", "0"), numbers[0], IRValue("i64", "1")
        if len(numbers) > 1:
            begin, end, *rest = numbers
            step = rest[0] if rest else step
        unsigned = [part.type == "u64" or part.integer is not None for part in numbers]
        kind = "u64" if any(part.type == "u64" for part in numbers) and all(unsigned) else "i64"
        with self._loop(begin, end.text, step.text, kind) as at:
            self._assign(target.id, IRValue(kind, at))
            self._run(node.body)

    def _on_while(self, node: ast.While) -> None:
        if node.orelse:
            raise Untranslatable("a loop")
        head, body, exit_ = map(self.label, ("head", "body", "exit"))
        self.jump(head)
        self.begin(head)
        self.branch(self.truth(self._value(node.test)), body, exit_)
        self.begin(body, self._values)
        self._loops.append((head, exit_))
        self._run(node.body)
        self._loops.pop()
        if not self.ended:
            self.jump(head)
        self.ended = False
        self.begin(exit_)

    def _on_break(self, node: ast.Break) -> None:
        self.jump(self._loops[-1][1])
        self.ended = True

    def _on_continue(self, node: ast.Continue) -> None:
        self.jump(self._loops[-1][0])
        self.ended = True

    def _on_if(self, node: ast.If) -> None:
        test = self.truth(self._value(node.test))
        if test in ("true", "false"):
            self._run(node.body if test == "true" else node.orelse)
            return
        yes, no, end = map(self.label, ("then", "else", "end"))
        self.branch(test, yes, no)
        before, after = self._values, []
        for label, statements in ((yes, node.body), (no, node.orelse)):
            self.begin(label, dict(before))
            self._run(statements)
            if not self.ended:
                self.jump(end)
                after.append(self._values)
            self.ended = False
        self.ended = not after
        if after:
            first, last = after[0], after[-1]
            self.begin(
                end, {name: value for name, value in first.items() if last.get(name) is value}
            )

    def _on_return(self, node: ast.Return) -> None:
        self._return(NOTHING if node.value is None else self._value(node.value))

    def _return(self, value: IRValue) -> None:
        value = self.tuple_value(value)
        if self.result is None:
            self.result = value.type
            self._returned = [self.slot(kind) for kind in leaf_types(value.type)]
        elif self.result != value.type:
            if not (isinstance(self.result, str) and holds(self.result, value)):
                raise Untranslatable("two results")
            value = self.cast(value, self.result)
        for (kind, operand), slot in zip(leaves(value), self._returned, strict=True):
            self.lines.append(f"  store {kind} {operand}, ptr {slot}")
        self.jump("return")
        self.ended = True

    # Expressions -----------------------------------------------------------------------------

    def _value(self, node: ast.expr) -> IRValue:
        return _method("of", type(node))(self, node)

    def _static(self, node: ast.expr) -> Any:
        """Return the value of an expression that is static."""
        kind = self._value(node).type
        if not isinstance(kind, Static):
            raise Untranslatable("a call of a value")
        return kind.value

    def _of_constant(self, node: ast.Constant) -> IRValue:
        return constant(node.value)

    def _of_name(self, node: ast.Name) -> IRValue:
        return self._read(node.id)

    def _of_attribute(self, node: ast.Attribute) -> IRValue:
        value = self._value(node.value)
        kind = value.type
        if isinstance(kind, Static):
            return constant(getattr(kind.value, node.attr))
        if isinstance(kind, Record) and node.attr in kind.cls._fields:
            return value.text[kind.cls._fields.index(node.attr)]
        if isinstance(kind, Array):
            if node.attr == "size":
                return IRValue("i64", value.size)
            if node.attr == "itemsize":
                return IRValue("i64", str(itemsize(kind.element)))
            if node.attr == "dtype":
                return constant(dtype_of(kind.element))
        if value.is_complex and node.attr in ("real", "imag"):
            return self.part(value, int(node.attr == "imag"))
        if isinstance(kind, str) and node.attr == "dtype":
            return constant(dtype_of(kind))
        raise Untranslatable(f"the attribute {node.attr}")

    def _of_tuple(self, node: ast.Tuple) -> IRValue:
        parts = tuple(self._arguments(node.elts))
        return IRValue(tuple(part.type for part in parts), parts)

    def _arguments(self, expressions: list[ast.expr]) -> Iterator[IRValue]:
        for part in expressions:
            if isinstance(part, ast.Starred):
                yield from self.parts(self._value(part.value))
            else:
                yield self._value(part)

    def _table(self, items: Any) -> IRValue:
        self.is_shared = False  # the table is a constant of this module
        return self.module.array(items)

    def _of_subscript(self, node: ast.Subscript) -> IRValue:
        array = self._value(node.value)
        if isinstance(array.type, Static) and isinstance(array.type.value, np.ndarray):
            array = self._table(array.type.value)
        if isinstance(array.type, Array):
            address = self.element(array, self._value(node.slice))
            return self.load(array.type.element, address)
        if isinstance(array.type, Static) and not isinstance(node.slice, ast.Slice):
            index = self._value(node.slice)
            if index.integer is None:
                table = self._table(array.type.value)
                return self.load(table.type.element, self.element(table, index))
        parts = self.parts(array)
        if isinstance(node.slice, ast.Slice):
            ends = [node.slice.lower, node.slice.upper, node.slice.step]
            bounds = [None if end is None else self._value(end).integer for end in ends]
            if any(k is None and end is not None for k, end in zip(bounds, ends, strict=True)):
                raise Untranslatable("a slice of a tuple")
            parts = parts[slice(*bounds)]
            return IRValue(tuple(part.type for part in parts), parts)
        at = self._value(node.slice).integer
        if at is None:
            raise Untranslatable("an index of a tuple")
        return parts[at]

    def _of_unaryop(self, node: ast.UnaryOp) -> IRValue:
        value = self._value(node.operand)
        if isinstance(node.op, ast.Not):
            test = self.truth(value)
            if test in ("true", "false"):
                return IRValue("b1", "false" if test == "true" else "true")
            return IRValue("b1", self.emit(f"xor i1 {test}, true"))
        if isinstance(node.op, ast.USub):
            return self.opposite(value)
        if isinstance(node.op, ast.Invert) and value.type == "i64":
            return IRValue("i64", self.emit(f"xor i64 {value.text}, -1"))
        raise Untranslatable("a sign")

    def _of_boolop(self, node: ast.BoolOp) -> IRValue:
        # `or` stops at the first true operand, `and` at the first false one
        stops = isinstance(node.op, ast.Or)
        word = "or" if stops else "and"
        total = self.truth(self._value(node.values[0]))
        for part in node.values[1:]:
            if total in ("true", "false"):
                if (total == "true") is stops:
                    return IRValue("b1", total)
                total = self.truth(self._value(part))
                continue
            before, more, end = self._label_now, self.label("more"), self.label("end")
            reads = self._reads
            with self.apart() as lines:
                self._label_now = more
                text = self.truth(self._value(part))
            if is_harmless(lines, self._reads - reads):
                self._label_now = before
                self.lines += lines
                total = self.emit(f"{word} i1 {total}, {text}")
                continue
            last = self._label_now
            self.branch(total, *((end, more) if stops else (more, end)))
            self.lines += [f"{more}:", *lines]
            self.jump(end)
            self.begin(end, self._values)
            decided = "true" if stops else "false"
            total = self.emit(f"phi i1 [{decided}, %{before}], [{text}, %{last}]")
        return IRValue("b1", total)

    def _of_ifexp(self, node: ast.IfExp) -> IRValue:
        test = self.truth(self._value(node.test))
        if test in ("true", "false"):
            return self._value(node.body if test == "true" else node.orelse)
        yes, no, end = map(self.label, ("then", "else", "end"))
        before = self._label_now
        arms: list[tuple[list[str], IRValue, str]] = []
        reads = [self._reads]
        for label, part in ((yes, node.body), (no, node.orelse)):
            with self.apart() as lines:
                self._label_now = label
                arms.append((lines, self.tuple_value(self._value(part)), self._label_now))
            reads.append(self._reads)
        kind = self.common(arms[0][1].type, arms[1][1].type)
        for k, (lines, value, label) in enumerate(arms):
            with self.apart() as more:
                value = self.converted(value, kind)
            arms[k] = [*lines, *more], value, label
        x, y = (leaves(value) for _, value, _ in arms)
        if all(is_harmless(arms[k][0], reads[k + 1] - reads[k]) for k in range(2)):
            self._label_now = before
            for lines, _, _ in arms:
                self.lines += lines
            operands = [
                self.emit(f"select i1 {test}, {leaf} {a}, {leaf} {b}")
                for (leaf, a), (_, b) in zip(x, y, strict=True)
            ]
            return rebuilt(kind, operands)
        self.branch(test, yes, no)
        for label, (lines, _, _) in zip((yes, no), arms, strict=True):
            self.lines += [f"{label}:", *lines]
            self.jump(end)
        self.begin(end, self._values)
        operands = [
            self.emit(f"phi {leaf} [{a}, %{arms[0][2]}], [{b}, %{arms[1][2]}]")
            for (leaf, a), (_, b) in zip(x, y, strict=True)
        ]
        return rebuilt(kind, operands)

    def _of_binop(self, node: ast.BinOp) -> IRValue:
        if isinstance(node.op, ast.Pow):
            return self._power(node)
        return self._operate(type(node.op).__name__, self._term(node.left), node.right)

    def _power(self, node: ast.BinOp) -> IRValue:
        if isinstance(node.left, ast.Constant) and isinstance(
            node.right, ast.Constant | ast.UnaryOp
        ):
            return constant(node.left.value ** ast.literal_eval(node.right))
        x, y = self._value(node.left), self._value(node.right)
        if x.type != y.type:
            raise Untranslatable(f"Pow of {x.type} and {y.type}")
        return IRValue(x.type, self.call_intrinsic("pow", x, y))

    def _operate(self, symbol: str, x: IRValue | FloatProduct, right: ast.expr) -> IRValue:
        y = self._term(right)
        if symbol in ("Add", "Sub"):
            return self.add(x, y, symbol)
        return self.operate(symbol, self.whole(x), self.whole(y))

    def _term(self, node: ast.expr) -> IRValue | FloatProduct:
        """Return an operand, or the factors of a product that may be contracted into a sum."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            term = self._term(node.operand)
            if isinstance(term, FloatProduct):
                return FloatProduct(self.opposite(term.x), term.y)
            return self.opposite(term)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self.product(self.whole(self._term(node.left)), self._value(node.right))
        return self._value(node)

    def _of_compare(self, node: ast.Compare) -> IRValue:
        values = [self._value(node.left)]
        if isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            other, own = self._value(node.comparators[0]).type, values[0].type
            same = isinstance(own, Static) and own == other
            return IRValue("b1", "true" if same is isinstance(node.ops[0], ast.Is) else "false")
        total = ""
        for symbol, right in zip(node.ops, node.comparators, strict=True):
            values.append(self._value(right))
            test = self.compare(type(symbol).__name__.lower(), values[-2], values[-1])
            total = test if not total else self.emit(f"and i1 {total}, {test}")
        return IRValue("b1", total)

    # Calls -----------------------------------------------------------------------------------

    def _of_call(self, node: ast.Call) -> IRValue:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "conjugate":
            return self._conjugate(self._value(node.func.value))
        target = self._static(node.func)
        values = list(self._arguments(node.args))
        if node.keywords:
            raise Untranslatable("a keyword argument")
        if isinstance(target, Source):
            return self._call_own(target, values)
        if isinstance(target, Intrinsic):
            return target.emit(self, *values)
        if target in FUNCTIONS:
            return IRValue(values[0].type, self.call_intrinsic(FUNCTIONS[target], *values))
        if getattr(target, "__module__", "") == "math" and target.__name__ in LIBRARY:
            return self.library(target.__name__, *values)
        target = CASTS.get(target, target) if isinstance(target, type) else target
        if isinstance(target, type) and issubclass(target, np.generic):
            (value,) = values
            return self.cast(value, name_of(np.dtype(target)))
        if target in (min, max):
            return self.extremum(target, values)
        if target is abs:
            return self.absolute(*values)
        if target is complex:
            kind = "c64" if {value.type for value in values} == {"f32"} else "c128"
            return IRValue(kind, tuple(self.cast(part, PARTS[kind]).text for part in values))
        if target is len:
            (value,) = values
            if isinstance(value.type, Array):
                return IRValue("i64", value.size)
            return IRValue("i64", str(len(self.parts(value))))
        if target is np.empty:
            return self._empty(values[0], self.dtype(values[1]))
        if target is np.full:
            kind = values[1].type if len(values) == 2 else self.dtype(values[2])
            array = self._empty(values[0], kind)
            self._fill(array, values[1])
            return array
        return self.call_function(target, values)

    def _conjugate(self, value: IRValue) -> IRValue:
        if not value.is_complex:
            raise Untranslatable(f"the conjugate of {value.type}")
        opposite = self.emit(f"fneg {llvm_type(PARTS[value.type])} {value.text[1]}")
        return IRValue(value.type, (value.text[0], opposite))

    def call_function(self, target: Callable, values: list[IRValue]) -> IRValue:
        """Call a Python function of the library."""
        if not callable(target):
            raise Untranslatable(f"a call of {target}")
        numbers = all(value.is_number and not value.is_complex for value in values)
        library = self.module.library
        if numbers and self.module.find and library.has_formulas(target.__module__):
            return self._call_scalar(self.module.find, target, values)
        target = library.version(target, values[0].type if values else None)
        if not library.owns(target):
            raise Untranslatable(f"a call of {target}")
        return self._call_own(source_of(target, library), values)

    def _empty(self, count: IRValue, kind: str) -> IRValue:
        """Return a new array, which is freed when the function returns."""
        if self._loops:
            raise Untranslatable("a new array in a loop")
        size = self.emit(f"mul i64 {count.text}, {itemsize(kind)}")
        self.declare("PyMem_RawMalloc", "noalias ptr @PyMem_RawMalloc(i64)")
        pointer = self.emit(f"call ptr @PyMem_RawMalloc(i64 {size})")
        slot = self.slot("ptr")
        self._slots.append(f"  store ptr null, ptr {slot}")
        self.lines.append(f"  store ptr {pointer}, ptr {slot}")
        self._work.append(slot)
        return IRValue(Array(kind), pointer, count.text)

    def _call_own(self, source: Source, values: list[IRValue]) -> IRValue:
        kinds = tuple(value.type for value in values)
        function = self.module.function(source, kinds)
        self.called.append((source, kinds))
        result = function.result
        if result is None:
            raise Untranslatable("recursion")
        arguments = ", ".join(f"{kind} {text}" for value in values for kind, text in leaves(value))
        types = leaf_types(result)
        if not types:
            self.lines.append(f"  call void @{function.name}({arguments})")
            return NOTHING
        if not _is_structure(result):
            return IRValue(result, self.emit(f"call {types[0]} @{function.name}({arguments})"))
        kind = f"{{ {', '.join(types)} }}"
        returned = self.emit(f"call {kind} @{function.name}({arguments})")
        operands = [self.emit(f"extractvalue {kind} {returned}, {k}") for k in range(len(types))]
        return rebuilt(result, operands)

    def _call_scalar(self, find: Callable, target: Callable, values: list[IRValue]) -> IRValue:
        function = find(target, tuple(value.type for value in values))
        self._formulas.append(function)
        texts = [f"{STORED[value.type]} {self.stored(value)}" for value in values]
        result = self.emit(f"call {STORED[function.result]} @{function.symbol}({', '.join(texts)})")
        if function.result == "b1":
            result = self.emit(f"icmp ne i8 {result}, 0")
        return IRValue(function.result, result)


@cache
def _method(prefix: str, node: type[ast.AST]) -> Callable[[FunctionBody, Any], Any]:
    """Return the method for a class of nodes: `of_...` for expressions, `on_...` for statements."""
    method = getattr(FunctionBody, f"_{prefix}_{node.__name__.lower()}", None)
    if method is None:
        raise Untranslatable(node.__name__)
    return method


def _is_structure(kind: Any) -> bool:
    """Return whether functions return this type as an LLVM structure."""
    return isinstance(kind, tuple) or kind in tuple(PARTS)
