"""The text of a generated kernel as LLVM's intermediate representation.

The text uses a small part of Python: numbers, arrays and tuples, loops over ranges, conditions, and
calls of its own functions and of the kernels' scalar functions. Each function is written down once
for each choice of its arguments' types, with the types that Numba would infer. `Untranslatable`
says that a text uses anything else: it is Numba's then.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import generated, intrinsics, machine, views
from tinygrad_cg_kernels.runtime.native import functions

FLOATS = ("f64", "f32")
MARKS = {intrinsics.wide_vectors, intrinsics.outlined, intrinsics.inlined, views.noalias}
SEVERAL = 3
"""Long formulas in a function from which on they are called, a vector at a time: fewer are inlined,
which is quicker by up to a half and takes longer to compile."""


class Untranslatable(Exception):
    """What a text uses has no translation."""


class Array(NamedTuple):
    """The type of an array."""

    element: str


class Value(NamedTuple):
    """A value of a function under translation.

    `type` is "i64", "f64", ..., an `Array`, or a tuple of types; `text` its operand, of arrays the
    address, of tuples a tuple of values; `size` the operand of an array's size.
    """

    type: Any
    text: Any
    size: str = ""


class _Function(NamedTuple):
    name: str
    result: Any


def name_of(dtype: np.dtype) -> str:
    """Return the name of a dtype's type."""
    kind = {"b": "b", "i": "i", "u": "u", "f": "f"}.get(dtype.kind)
    if kind is None or (kind == "f" and dtype.itemsize not in (4, 8)):
        raise Untranslatable(f"dtype {dtype}")
    return "b1" if kind == "b" else f"{kind}{8 * dtype.itemsize}"


def _llvm(kind: str) -> str:
    """Return a type as values have it; in memory a bool is a byte."""
    return "i1" if kind == "b1" else functions.LLVM[kind]


def _itemsize(kind: str) -> int:
    return 1 if kind == "b1" else int(kind[1:]) // 8


class Module:
    """The translation of a text's functions."""

    def __init__(self, source: str):
        tree = ast.parse(source)
        self.definitions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
        self.namespace = _namespace(tree)
        for name, one in self.namespace.items():
            if one is generated.gather_columns:
                self.definitions[name] = _definition(one)
        self.texts: list[str] = []
        self.declared: dict[str, str] = {}
        self.inlined: dict[str, functions.Function] = {}
        self.called: dict[str, functions.Function] = {}
        self._functions: dict[Any, _Function] = {}

    def function(self, name: str, arguments: tuple[Any, ...]) -> _Function:
        """Return the function for these types, written down now if it is not there."""
        key = name, arguments
        if key not in self._functions:
            symbol = f"{name}_{len(self._functions)}"
            self._functions[key] = _Function(symbol, None)
            body = _Body(self, self.definitions[name], arguments, symbol)
            self._functions[key] = _Function(symbol, body.result)
            self.texts.append(body.text())
        return self._functions[key]

    def declare(self, name: str, text: str) -> str:
        self.declared[name] = text
        return name

    def inline(self, one: functions.Function) -> None:
        """Have a scalar function linked in."""
        self.inlined[one.symbol] = one
        given = ", ".join(functions.LLVM[kind] for kind in one.arguments)
        self.declare(one.symbol, f"{functions.LLVM[one.result]} @{one.symbol}({given})")

    def text(self) -> str:
        """Return the module's text, but for the functions that are inlined."""
        lines = [f"declare {text}" for text in self.declared.values()]
        attributes = []
        for k, one in enumerate(self.called.values()):
            kind = functions.LLVM[one.result]
            given = ", ".join([kind] * len(one.arguments))
            lines.append(f"declare {kind} @{one.symbol}_v1({given}) #{10 + k}")
            variants = []
            for lanes in one.lanes:
                vector = f"<{lanes} x {kind}>"
                vectors = ", ".join([vector] * len(one.arguments))
                lines.append(f"declare {vector} @{one.symbol}_v{lanes}({vectors}) #1")
                marks = "v" * len(one.arguments)
                variants.append(f"_ZGV_LLVM_N{lanes}{marks}_{one.symbol}_v1({one.symbol}_v{lanes})")
            attributes.append(
                f"attributes #{10 + k} = {{ nounwind willreturn memory(none) "
                f'"vector-function-abi-variant"="{",".join(variants)}" }}'
            )
        used = [f"ptr @{one.symbol}_v{k}" for one in self.called.values() for k in one.lanes]
        if used:
            lines.append(
                f"@llvm.compiler.used = appending global [{len(used)} x ptr] "
                f'[{", ".join(used)}], section "llvm.metadata"'
            )
        lines += self.texts
        lines.append(f"attributes #0 = {{ {machine.wide()} }}")
        lines.append("attributes #1 = { nounwind willreturn memory(none) }")
        lines.append(f"attributes #2 = {{ noinline {machine.wide()} }}")
        return "\n".join([*lines, *attributes])


@cache
def _definition(function: Callable) -> ast.FunctionDef:
    """Return the definition of one of our helpers, which is written in the same part of Python."""
    (found,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(found, ast.FunctionDef)
    return found


def _namespace(tree: ast.Module) -> dict[str, Any]:
    """Return what a text imports."""
    found: dict[str, Any] = {}
    for one in tree.body:
        if isinstance(one, ast.Import):
            for name in one.names:
                found[name.asname or name.name] = importlib.import_module(name.name)
        elif isinstance(one, ast.ImportFrom):
            module = importlib.import_module(one.module or "")
            for name in one.names:
                if not hasattr(module, name.name):
                    importlib.import_module(f"{module.__name__}.{name.name}")
                found[name.asname or name.name] = getattr(module, name.name)
    return found


class _Body:
    """One function for one choice of types."""

    def __init__(self, module: Module, tree: ast.FunctionDef, arguments: tuple, symbol: str):
        self.module, self.symbol, self.result = module, symbol, None
        self.lines: list[str] = []
        self.places: list[str] = []  # of variables
        self.variables: dict[str, Any] = {}
        self._count = itertools.count()
        self._blocks = itertools.count()
        self._work: list[str] = []  # memory to be freed
        self._depth = 0  # of loops
        self.ended = False
        self._marks = {self._marked(one) for one in tree.body}
        self.given: list[str] = []
        self.long: list[functions.Function] = []  # formulas, as often as they stand here
        restrict = " noalias" if views.noalias in self._marks else ""
        for argument, kind in zip(tree.args.args, arguments, strict=True):
            name = argument.arg
            if isinstance(kind, Array):
                self.given += [f"ptr{restrict} %{name}.a", f"i64 %{name}.n"]
                self.variables[name] = Value(kind, f"%{name}.a", f"%{name}.n")
            else:
                self.given.append(f"{_llvm(kind)} %{name}.a")
                self._assign(name, Value(kind, f"%{name}.a"))
        for one in tree.body:
            self._statement(one)
        if not self.ended:
            self._return(Value("i64", "0"))

    def _marked(self, statement: ast.stmt) -> Any:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            function = statement.value.func
            if isinstance(function, ast.Name):
                return self.module.namespace.get(function.id)
        return None

    def text(self) -> str:
        result = self._result_type(self.result)
        group = 2 if intrinsics.outlined in self._marks else 0
        given = ", ".join(self.given)
        head = f"define internal {result} @{self.symbol}({given}) #{group} {{"
        lines = [head, "entry:", *self.places, "  br label %start", "start:", *self.lines, "}"]
        text = "\n".join(lines)
        several = len(self.long) > SEVERAL
        for one in self.long:
            text = text.replace(f"@{one.symbol}_long(", f"@{one.symbol}{'_v1' * several}(")
            if several:
                self.module.called[one.symbol] = one
            else:
                self.module.inline(one)
        return text

    def _result_type(self, kind: Any) -> str:
        return _llvm(kind) if isinstance(kind, str) else f"{{ {', '.join(map(_llvm, kind))} }}"

    # Instructions ----------------------------------------------------------------------------

    def _emit(self, text: str) -> str:
        name = f"%t{next(self._count)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _label(self, stem: str) -> str:
        return f"{stem}{next(self._blocks)}"

    def _begin(self, label: str) -> None:
        self.lines.append(f"{label}:")

    def _jump(self, label: str) -> None:
        self.lines.append(f"  br label %{label}")

    def _assign(self, name: str, value: Value) -> None:
        kind, known = value.type, self.variables.get(name)
        if not isinstance(kind, str):  # arrays and tuples are never changed, only bound anew
            self.variables[name] = value
            return
        if known is None or isinstance(known, Value):
            place = f"%v.{name}.{next(self._count)}"
            self.places.append(f"  {place} = alloca {_llvm(kind)}")
            self.variables[name] = known = (kind, place)
        if known[0] != kind:
            raise Untranslatable(f"{name} has two types")
        self.lines.append(f"  store {_llvm(kind)} {value.text}, ptr {known[1]}")

    def _read(self, name: str) -> Value:
        known = self.variables.get(name)
        if known is None:
            raise Untranslatable(f"the name {name}")
        if isinstance(known, Value):
            return known
        kind, place = known
        return Value(kind, self._emit(f"load {_llvm(kind)}, ptr {place}"))

    def _element(self, array: Value, index: Value) -> str:
        """Return the address of an element; negative signed indices count from the end."""
        if not isinstance(array.type, Array) or index.type not in ("i64", "u64"):
            raise Untranslatable("an index")
        text = index.text
        if index.type == "i64" and not text.isdigit():
            below = self._emit(f"icmp slt i64 {text}, 0")
            turned = self._emit(f"add i64 {text}, {array.size}")
            text = self._emit(f"select i1 {below}, i64 {turned}, i64 {text}")
        kind = functions.LLVM[array.type.element]
        return self._emit(f"getelementptr inbounds {kind}, ptr {array.text}, i64 {text}")

    def _load(self, kind: str, address: str) -> Value:
        text = self._emit(f"load {functions.LLVM[kind]}, ptr {address}")
        return Value(kind, self._emit(f"icmp ne i8 {text}, 0") if kind == "b1" else text)

    def _stored(self, value: Value) -> str:
        """Return a value's operand as memory and functions have it."""
        return self._emit(f"zext i1 {value.text} to i8") if value.type == "b1" else value.text

    # Statements ------------------------------------------------------------------------------

    def _statement(self, one: ast.stmt) -> None:
        if self.ended:
            raise Untranslatable("a statement after a return")
        method: Any = getattr(self, f"_on_{type(one).__name__.lower()}", None)
        if method is None:
            raise Untranslatable(type(one).__name__)
        method(one)

    def _on_expr(self, one: ast.Expr) -> None:
        if isinstance(one.value, ast.Constant) or self._marked(one) in MARKS:
            return
        self._value(one.value)

    def _on_assign(self, one: ast.Assign) -> None:
        (target,) = one.targets
        value = self._value(one.value)
        if isinstance(target, ast.Name):
            self._assign(target.id, value)
        elif isinstance(target, ast.Tuple):
            for name, part in zip(target.elts, value.text, strict=True):
                if not isinstance(name, ast.Name):
                    raise Untranslatable("a target")
                self._assign(name.id, part)
        elif isinstance(target, ast.Subscript):
            array = self._value(target.value)
            address = self._element(array, self._value(target.slice))
            value = self._cast(value, array.type.element)
            kind = functions.LLVM[array.type.element]
            self.lines.append(f"  store {kind} {self._stored(value)}, ptr {address}")
        else:
            raise Untranslatable("a target")

    def _on_for(self, one: ast.For) -> None:
        call, target = one.iter, one.target
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise Untranslatable("a loop")
        if call.func.id != "range" or not isinstance(target, ast.Name):
            raise Untranslatable("a loop")
        numbers = [self._value(part) for part in call.args]
        if any(part.type not in ("i64", "u64") for part in numbers):
            raise Untranslatable("a range")
        begin, end, step = Value("i64", "0"), numbers[0], Value("i64", "1")
        if len(numbers) > 1:
            begin, end, *rest = numbers
            step = rest[0] if rest else step
        kind = end.type if len(numbers) == 1 else "i64"
        less = "slt" if kind == "i64" else "ult"
        head, body, exit_ = map(self._label, ("head", "body", "exit"))
        place = f"%c.{next(self._count)}"
        self.places.append(f"  {place} = alloca i64")
        self.lines.append(f"  store i64 {begin.text}, ptr {place}")
        self._jump(head)
        self._begin(head)
        at = self._emit(f"load i64, ptr {place}")
        goes = self._emit(f"icmp {less} i64 {at}, {end.text}")
        self.lines.append(f"  br i1 {goes}, label %{body}, label %{exit_}")
        self._begin(body)
        self._assign(target.id, Value(kind, at))
        self._depth += 1
        for statement in one.body:
            self._statement(statement)
        self._depth -= 1
        again = self._emit(f"load i64, ptr {place}")
        flags = "nsw" if kind == "i64" else "nuw nsw"
        after = self._emit(f"add {flags} i64 {again}, {step.text}")
        self.lines.append(f"  store i64 {after}, ptr {place}")
        self._jump(head)
        self._begin(exit_)

    def _on_if(self, one: ast.If) -> None:
        test = self._truth(self._value(one.test))
        yes, no, end = map(self._label, ("then", "else", "end"))
        self.lines.append(f"  br i1 {test}, label %{yes}, label %{no}")
        self._begin(yes)
        for statement in one.body:
            self._statement(statement)
        returned, self.ended = self.ended, False
        if not returned:
            self._jump(end)
        self._begin(no)
        for statement in one.orelse:
            self._statement(statement)
        if self.ended:
            raise Untranslatable("a return in an else")
        self._jump(end)
        self._begin(end)

    def _on_return(self, one: ast.Return) -> None:
        if one.value is None:
            raise Untranslatable("a return of nothing")
        self._return(self._value(one.value))

    def _return(self, value: Value) -> None:
        if self.result is not None and self.result != value.type:
            raise Untranslatable("two results")
        self.result = value.type
        for place in self._work:
            pointer = self._emit(f"load ptr, ptr {place}")
            free = self.module.declare("PyMem_RawFree", "void @PyMem_RawFree(ptr)")
            self.lines.append(f"  call void @{free}(ptr {pointer})")
        kind = self._result_type(value.type)
        if isinstance(value.type, tuple):
            text = "poison"
            for k, part in enumerate(value.text):
                text = self._emit(f"insertvalue {kind} {text}, {_llvm(part.type)} {part.text}, {k}")
        else:
            text = value.text
        self.lines.append(f"  ret {kind} {text}")
        self.ended = True

    # Expressions -----------------------------------------------------------------------------

    def _value(self, one: ast.expr) -> Value:
        method: Any = getattr(self, f"_of_{type(one).__name__.lower()}", None)
        if method is None:
            raise Untranslatable(type(one).__name__)
        return method(one)

    def _of_constant(self, one: ast.Constant) -> Value:
        if isinstance(one.value, bool):
            return Value("b1", "true" if one.value else "false")
        if isinstance(one.value, int):
            return Value("i64", str(one.value))
        if isinstance(one.value, float):
            return Value("f64", _number(one.value, "f64"))
        raise Untranslatable(f"the constant {one.value!r}")

    def _of_name(self, one: ast.Name) -> Value:
        return self._read(one.id)

    def _of_attribute(self, one: ast.Attribute) -> Value:
        if isinstance(one.value, ast.Name) and one.value.id == "np":
            if one.attr in ("nan", "inf"):
                return Value("f64", _number(getattr(np, one.attr), "f64"))
        elif one.attr == "size":
            return Value("i64", self._value(one.value).size)
        raise Untranslatable(f"the attribute {one.attr}")

    def _of_tuple(self, one: ast.Tuple) -> Value:
        parts = tuple(self._value(part) for part in one.elts)
        return Value(tuple(part.type for part in parts), parts)

    def _of_subscript(self, one: ast.Subscript) -> Value:
        array = self._value(one.value)
        if not isinstance(array.type, Array):
            if isinstance(one.slice, ast.Constant):
                return array.text[one.slice.value]
            raise Untranslatable("an index of a tuple")
        address = self._element(array, self._value(one.slice))
        return self._load(array.type.element, address)

    def _of_unaryop(self, one: ast.UnaryOp) -> Value:
        value = self._value(one.operand)
        if isinstance(one.op, ast.Not):
            return Value("b1", self._emit(f"xor i1 {self._truth(value)}, true"))
        if isinstance(one.op, ast.USub) and value.type in FLOATS:
            return Value(value.type, self._emit(f"fneg {_llvm(value.type)} {value.text}"))
        if isinstance(one.op, ast.USub) and value.type == "i64":
            return Value("i64", self._emit(f"sub i64 0, {value.text}"))
        raise Untranslatable("a sign")

    def _truth(self, value: Value) -> str:
        if value.type == "b1":
            return value.text
        if value.type == "i64":
            return self._emit(f"icmp ne i64 {value.text}, 0")
        raise Untranslatable("a condition")

    def _of_boolop(self, one: ast.BoolOp) -> Value:
        # both are computed: none of them has an effect, or fails
        texts = [self._truth(self._value(part)) for part in one.values]
        total, name = texts[0], "and" if isinstance(one.op, ast.And) else "or"
        for text in texts[1:]:
            total = self._emit(f"{name} i1 {total}, {text}")
        return Value("b1", total)

    def _of_binop(self, one: ast.BinOp) -> Value:
        x, y = self._value(one.left), self._value(one.right)
        symbol = type(one.op).__name__
        if x.type == y.type == "b1" and symbol in ("BitOr", "BitAnd"):
            return Value("b1", self._emit(f"{symbol[3:].lower()} i1 {x.text}, {y.text}"))
        if x.type in FLOATS and y.type in FLOATS:
            kind = "f64" if "f64" in (x.type, y.type) else "f32"
            name = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}.get(symbol)
            if name is not None:
                x, y = self._cast(x, kind), self._cast(y, kind)
                return Value(kind, self._emit(f"{name} {_llvm(kind)} {x.text}, {y.text}"))
        if x.type == y.type == "i64":
            name = {"Add": "add", "Sub": "sub", "Mult": "mul", "BitOr": "or", "BitAnd": "and"}
            if symbol in name:
                return Value("i64", self._emit(f"{name[symbol]} i64 {x.text}, {y.text}"))
            if symbol in ("FloorDiv", "Mod"):
                return self._divided(x.text, y.text, symbol)
        raise Untranslatable(f"{symbol} of {x.type} and {y.type}")

    def _divided(self, x: str, y: str, symbol: str) -> Value:
        """Return a quotient rounded down, or its remainder; divisors are sizes, above 0."""
        rest = self._emit(f"srem i64 {x}, {y}")
        below = self._emit(f"icmp slt i64 {rest}, 0")
        if symbol == "Mod":
            more = self._emit(f"add i64 {rest}, {y}")
            return Value("i64", self._emit(f"select i1 {below}, i64 {more}, i64 {rest}"))
        quotient = self._emit(f"sdiv i64 {x}, {y}")
        less = self._emit(f"sub i64 {quotient}, 1")
        return Value("i64", self._emit(f"select i1 {below}, i64 {less}, i64 {quotient}"))

    def _of_compare(self, one: ast.Compare) -> Value:
        if len(one.ops) > 1:
            raise Untranslatable("a chain of comparisons")
        x, y = self._value(one.left), self._value(one.comparators[0])
        symbol = type(one.ops[0]).__name__.lower()
        if symbol not in ("lt", "lte", "gt", "gte", "eq", "noteq"):
            raise Untranslatable(symbol)
        if x.type in FLOATS and y.type in FLOATS:
            kind = "f64" if "f64" in (x.type, y.type) else "f32"
            x, y = self._cast(x, kind), self._cast(y, kind)
            name = {"lt": "olt", "lte": "ole", "gt": "ogt", "gte": "oge", "eq": "oeq"}
            test = f"fcmp {name.get(symbol, 'une')} {_llvm(kind)}"
        elif x.type in FLOATS and y.type == "i64" and y.text.lstrip("-").isdigit():
            y = self._cast(y, x.type)
            name = {"eq": "oeq", "noteq": "une"}
            if symbol not in name:
                raise Untranslatable("a comparison of a float and an integer")
            test = f"fcmp {name[symbol]} {_llvm(x.type)}"
        elif x.type[0] == y.type[0] == "i" or (x.type == y.type and x.type[0] in "ub"):
            kind = x.type if x.type == y.type else "i64"
            x, y = self._cast(x, kind), self._cast(y, kind)
            sign = "u" if kind[0] in "ub" else "s"
            name = {"lt": "lt", "lte": "le", "gt": "gt", "gte": "ge"}
            word = sign + name[symbol] if symbol in name else {"eq": "eq", "noteq": "ne"}[symbol]
            test = f"icmp {word} {_llvm(kind)}"
        elif x.type[0] in "iub" and y.type == "i64" and y.text == "0" and symbol == "noteq":
            test, y = f"icmp ne {_llvm(x.type)}", Value(x.type, "false" if x.type == "b1" else "0")
        else:
            raise Untranslatable(f"{symbol} of {x.type} and {y.type}")
        return Value("b1", self._emit(f"{test} {x.text}, {y.text}"))

    def _cast(self, value: Value, kind: str) -> Value:
        """Return a number in another type, as an assignment to an element or NumPy's type does."""
        own = value.type
        if own == kind:
            return value
        if not isinstance(own, str):
            raise Untranslatable("a cast of an array")
        x = f"{_llvm(own)} {value.text}"
        to = _llvm(kind)
        if own in FLOATS and kind in FLOATS:
            if value.text.startswith("0x"):
                number = struct.unpack(">d", bytes.fromhex(value.text[2:]))[0]
                with np.errstate(all="ignore"):
                    return Value(kind, _number(number, kind))
            text = self._emit(f"{'fpext' if kind == 'f64' else 'fptrunc'} {x} to {to}")
        elif kind in FLOATS:
            if value.text.lstrip("-").isdigit():
                number = float(int(value.text))
                if int(number) == int(value.text):
                    return Value(kind, _number(number, kind))
            signed = own[0] == "i"
            text = self._emit(f"{'sitofp' if signed else 'uitofp'} {x} to {to}")
        elif kind == "b1":
            if own in FLOATS:
                text = self._emit(f"fcmp une {x}, {_number(0.0, own)}")
            else:
                text = self._emit(f"icmp ne {x}, 0")
        elif own in FLOATS:
            if kind not in ("i64", "i32"):
                raise Untranslatable(f"{kind} of {own}")
            text = self._emit(f"fptosi {x} to {to}")
        elif value.text.lstrip("-").isdigit():
            width = int(kind[1:])
            number = int(value.text) % 2**width
            text = str(number - 2**width if kind[0] == "i" and number >> (width - 1) else number)
        else:
            mine = 1 if own == "b1" else int(own[1:])
            wide = int(kind[1:])
            if mine == wide:
                text = value.text
            else:
                word = "trunc" if mine > wide else "sext" if own[0] == "i" else "zext"
                text = self._emit(f"{word} {x} to {to}")
        return Value(kind, text)

    # Calls -----------------------------------------------------------------------------------

    def _of_call(self, one: ast.Call) -> Value:
        function = one.func
        if isinstance(function, ast.Name) and function.id in self.module.definitions:
            return self._call_own(function.id, [self._value(part) for part in one.args])
        if isinstance(function, ast.Name) and function.id in ("min", "max"):
            return self._extremum(function.id, [self._value(part) for part in one.args])
        target = self._target(function)
        if target in MARKS:
            return Value("i64", "0")
        if target is views.vector:
            address, count = self._value(one.args[0]), self._value(one.args[1])
            pointer = self._emit(f"inttoptr i64 {address.text} to ptr")
            return Value(Array(self._dtype(one.args[2])), pointer, count.text)
        if target is np.empty:
            return self._empty(self._value(one.args[0]), self._dtype(one.args[1]))
        values = [self._value(part) for part in one.args]
        if target is views.section:
            array, start, count = values
            kind = functions.LLVM[array.type.element]
            text = self._emit(f"getelementptr inbounds {kind}, ptr {array.text}, i64 {start.text}")
            return Value(array.type, text, count.text)
        if target is generated.is_contiguous:
            return Value("b1", "true")  # the entry has looked
        if target in (intrinsics.reassociating_add, intrinsics.reassociating_multiply):
            name = "fadd" if target is intrinsics.reassociating_add else "fmul"
            kind = values[0].type
            if kind not in FLOATS or values[1].type != kind:
                raise Untranslatable("a reduction")
            x, y = (part.text for part in values)
            return Value(kind, self._emit(f"{name} reassoc {_llvm(kind)} {x}, {y}"))
        if isinstance(target, type) and issubclass(target, np.generic):
            (value,) = values
            return self._cast(value, name_of(np.dtype(target)))
        return self._call_scalar(target, values)

    def _target(self, function: ast.expr) -> Any:
        if isinstance(function, ast.Name):
            return self.module.namespace.get(function.id)
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            return getattr(self.module.namespace.get(function.value.id), function.attr, None)
        raise Untranslatable("a call")

    def _dtype(self, one: ast.expr) -> str:
        return name_of(np.dtype(self._target(one)))

    def _extremum(self, name: str, values: list[Value]) -> Value:
        x, y = values
        if not x.type == y.type == "i64":
            raise Untranslatable(f"{name} of {x.type} and {y.type}")
        test = self._emit(f"icmp {'slt' if name == 'min' else 'sgt'} i64 {x.text}, {y.text}")
        return Value("i64", self._emit(f"select i1 {test}, i64 {x.text}, i64 {y.text}"))

    def _empty(self, count: Value, kind: str) -> Value:
        """Return a new array, freed when the function returns."""
        if self._depth:
            raise Untranslatable("a new array in a loop")
        size = self._emit(f"mul i64 {count.text}, {_itemsize(kind)}")
        malloc = self.module.declare("PyMem_RawMalloc", "noalias ptr @PyMem_RawMalloc(i64)")
        pointer = self._emit(f"call ptr @{malloc}(i64 {size})")
        place = f"%w.{len(self._work)}"
        self.places.append(f"  {place} = alloca ptr")
        self.places.append(f"  store ptr null, ptr {place}")
        self.lines.append(f"  store ptr {pointer}, ptr {place}")
        self._work.append(place)
        return Value(Array(kind), pointer, count.text)

    def _call_own(self, name: str, values: list[Value]) -> Value:
        kinds = tuple(value.type for value in values)
        function = self.module.function(name, kinds)
        if function.result is None:
            raise Untranslatable("recursion")
        texts = []
        for value in values:
            if isinstance(value.type, Array):
                texts += [f"ptr {value.text}", f"i64 {value.size}"]
            else:
                texts.append(f"{_llvm(value.type)} {value.text}")
        kind = self._result_type(function.result)
        found = self._emit(f"call {kind} @{function.name}({', '.join(texts)})")
        if isinstance(function.result, tuple):
            parts = tuple(
                Value(one, self._emit(f"extractvalue {kind} {found}, {k}"))
                for k, one in enumerate(function.result)
            )
            return Value(function.result, parts)
        return Value(function.result, found)

    def _call_scalar(self, target: Callable, values: list[Value]) -> Value:
        kinds = tuple(value.type for value in values)
        if not callable(target) or not all(isinstance(kind, str) for kind in kinds):
            raise Untranslatable(f"a call of {target}")
        known = functions.find(target, kinds)
        symbol = known.symbol
        if known.is_long:
            self.long.append(known)
            symbol += "_long"
        else:
            self.module.inline(known)
        texts = [f"{functions.LLVM[one.type]} {self._stored(one)}" for one in values]
        found = self._emit(f"call {functions.LLVM[known.result]} @{symbol}({', '.join(texts)})")
        if known.result == "b1":
            found = self._emit(f"icmp ne i8 {found}, 0")
        return Value(known.result, found)


def _number(value: float, kind: str) -> str:
    """Return a float as LLVM writes it: the bits of a double that has its value."""
    if kind == "f32":
        value = float(np.float32(value))
    return "0x" + struct.pack(">d", value).hex().upper()
