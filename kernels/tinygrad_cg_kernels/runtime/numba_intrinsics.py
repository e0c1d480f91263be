"""Numba's intrinsics, made from the front end's rows: LLVM's text inside Numba's functions."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import infer, infer_global, make_intrinsic_template
from numba.extending import NativeValue, box, models, register_model, unbox

from tinygrad_cg_frontend import (
    INTEGERS,
    NOTHING,
    PARTS,
    Array,
    Intrinsic,
    IRValue,
    Mark,
    Record,
    Static,
    Untranslatable,
    Writer,
    leaf_types,
    rebuilt,
)
from tinygrad_cg_kernels.runtime import machine

NUMBA = {"f64": types.float64, "f32": types.float32, "b1": types.boolean}
NUMBA |= {"c128": types.complex128, "c64": types.complex64}
NUMBA |= {name: getattr(types, f"{'u' * (name[0] == 'u')}int{name[1:]}") for name in INTEGERS}
"""Numba's types of numbers, by the names in the front end."""
NAMES = {kind: name for name, kind in NUMBA.items()}


class _Object(types.Type):
    """The type of Python objects, given by their addresses."""

    def __init__(self) -> None:
        super().__init__("python_object")


class _Known(types.Type):
    """The type of a static value that Numba has no type for."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(f"known({id(value)})")


OBJECT = _Object()
register_model(_Object)(models.OpaqueModel)
register_model(_Known)(models.OpaqueModel)
unbox(_Object)(lambda kind, thing, context: NativeValue(thing))
box(_Object)(lambda kind, value, context: value)

TUPLE: Any = types.BaseTuple  # each of its subclasses can be iterated


def _translated_type(kind: Any) -> Any:
    """Return the front end's type for a type of Numba's."""
    if kind in NAMES:
        return NAMES[kind]
    if isinstance(kind, types.IntegerLiteral):
        return "i64"
    if isinstance(kind, types.Array):
        return Array(NAMES[kind.dtype])
    if isinstance(kind, TUPLE):
        return tuple(map(_translated_type, kind))
    if isinstance(kind, types.DType | types.NumberClass):
        return Static(np.dtype(str(kind.dtype)))
    if isinstance(kind, _Known):
        return Static(kind.value)
    if isinstance(kind, types.NoneType):
        return NOTHING.type
    if kind == OBJECT:
        return "object"
    raise Untranslatable(f"a value of type {kind}")


def numba_type(kind: Any) -> Any:
    """Return Numba's type for a type of the front end."""
    if isinstance(kind, str):
        return OBJECT if kind == "object" else NUMBA[kind]
    if isinstance(kind, Record):
        return types.NamedUniTuple(NUMBA[kind[0]], len(kind), kind.cls)
    if isinstance(kind, Array):
        return types.Array(NUMBA[kind.element], 1, "C")
    if isinstance(kind, tuple):
        return types.BaseTuple.from_types(list(map(numba_type, kind)))
    return types.void if kind == NOTHING.type else _Known(kind.value)


class _TextInstruction(ir.Instruction):
    """Lines of LLVM's text, inserted as one instruction without a value."""

    def __init__(self, block: Any, lines: list[str]) -> None:
        super().__init__(block, ir.VoidType(), "text", [])
        self.lines = lines

    def descr(self, buf: list[str]) -> None:
        buf.append("\n".join(self.lines).lstrip())


_POINTER = ir.IntType(8).as_pointer()
_LLVM = {"double": ir.DoubleType(), "float": ir.FloatType(), "ptr": _POINTER, "void": ir.VoidType()}
_LLVM |= {f"i{width}": ir.IntType(width) for width in (1, 8, 16, 32, 64)}


def _llvm(kind: str) -> Any:
    """Return a type by its text, for example "float" or "<8 x float>"."""
    if not kind.startswith("<"):
        return _LLVM[kind]
    count, _, element = kind[1:-1].partition(" x ")
    return ir.VectorType(_LLVM[element], int(count))


_LIBDEVICE = {"maxnum": "fmax", "minnum": "fmin"}  # other functions have LLVM's names there
_number = itertools.count().__next__


class _NumbaBody(Writer):
    """Writes an intrinsic into a Numba function; without a builder, it only finds the type."""

    def __init__(self, builder: Any = None) -> None:
        super().__init__(machine.fuses(), f"i{_number()}.")
        self._builder = builder
        self._on_device = builder is not None and builder.module.triple.startswith("nvptx")

    def declare(self, name: str, text: str) -> None:
        if self._builder is None:
            return
        result, _, rest = text.partition(" @")
        kinds = [_llvm(kind) for kind in rest[rest.index("(") + 1 : -1].split(", ") if kind]
        function = ir.FunctionType(_llvm(result), kinds)
        cgutils.get_or_insert_function(self._builder.module, function, name)

    def declare_object(self, name: str) -> None:
        if self._builder is not None and name not in self._builder.module.globals:
            ir.GlobalVariable(self._builder.module, ir.IntType(8), name)

    def interleave(self) -> None:
        """Mark the loops of the function so far."""
        if self._builder is None:
            return
        module = self._builder.module
        name = ir.MetaDataString(module, "llvm.loop.interleave.count")
        wish = module.add_metadata([name, ir.Constant(ir.IntType(32), self.INTERLEAVED)])
        for block in _latches(self._builder.function):
            loop = module.add_metadata([wish])
            loop.operands = (loop, wish)  # metadata of loops refers to itself
            block.terminator.set_metadata("llvm.loop", loop)

    def call_intrinsic(self, name: str, *values: IRValue, flags: str = "") -> str:
        """Call an LLVM function. On a GPU, call NVIDIA's: its compiler knows few of LLVM's."""
        if not self._on_device or name == "fma":
            return super().call_intrinsic(name, *values, flags=flags)
        if name in ("maximum", "minimum"):
            return self._extreme(name == "maximum", *values).text
        return self.library(f"__nv_{_LIBDEVICE.get(name, name)}", *values).text

    def remainder(self, x: IRValue, y: IRValue) -> IRValue:
        """Return C's fmod. NVIDIA's compiler computes `frem` by a quotient, which is inexact."""
        return self.library("__nv_fmod", x, y) if self._on_device else super().remainder(x, y)

    def _extreme(self, largest: bool, x: IRValue, y: IRValue) -> IRValue:
        """Return IEEE's maximum or minimum: nan if one is, and 0.0 is above -0.0."""
        word, kind = f"i{x.type[1:]}", "double" if x.type == "f64" else "float"
        a, b = (self.emit(f"bitcast {kind} {operand.text} to {word}") for operand in (x, y))
        both = self.emit(f"{'and' if largest else 'or'} {word} {a}, {b}")
        equal = self.emit(f"bitcast {word} {both} to {kind}")
        operands = f"{kind} {x.text}, {y.text}"
        choose = self.emit(f"fcmp {'ogt' if largest else 'olt'} {operands}")
        picked = self.emit(f"select i1 {choose}, {kind} {x.text}, {kind} {y.text}")
        same, unordered = (self.emit(f"fcmp {test} {operands}") for test in ("oeq", "uno"))
        chosen = self.emit(f"select i1 {same}, {kind} {equal}, {kind} {picked}")
        total = self.emit(f"fadd {operands}")
        text = self.emit(f"select i1 {unordered}, {kind} {total}, {kind} {chosen}")
        return IRValue(x.type, text)

    def insert(self) -> None:
        """Insert the lines into the function."""
        if self._slots:
            with self._builder.goto_entry_block():
                self._builder._insert(_TextInstruction(self._builder.block, self._slots))
        if self.lines:
            self._builder._insert(_TextInstruction(self._builder.block, self.lines))


def _latches(function: Any) -> Iterator[Any]:
    """Return the latches of a function's loops. Its first block may still lack a branch."""
    done: set[Any] = set()
    for block in function.blocks:
        if block not in done:
            yield from _closing_blocks(block, frozenset(), done)


def _closing_blocks(block: Any, path: frozenset, done: set) -> Iterator[Any]:
    """Yield the blocks reachable from this one that branch back to a block on the path."""
    path |= {block}
    done.add(block)
    for target in block.terminator.operands if block.is_terminated else ():
        if target in path:
            yield block
        elif isinstance(target, ir.Block) and target not in done:
            yield from _closing_blocks(target, path, done)


def _array_view(context: Any, builder: Any, kind: types.Array, *array: Any) -> Any:
    from numba.np import arrayobj  # imported late: it takes a tenth of the time to start

    return arrayobj.make_array(kind)(context, builder, *array)


def _unpacked(context: Any, builder: Any, kind: Any, value: Any) -> IRValue:
    """Return the front end's value for a value of Numba's."""
    own = _translated_type(kind)
    if isinstance(kind, types.IntegerLiteral):
        return IRValue(own, str(kind.literal_value))
    if isinstance(kind, TUPLE):
        parts = [
            _unpacked(context, builder, part, builder.extract_value(value, k))
            for k, part in enumerate(kind)
        ]
        return IRValue(own, tuple(parts))
    if own == "object":
        value = builder.ptrtoint(value, ir.IntType(64))
    if isinstance(own, Array):
        view = _array_view(context, builder, kind, value)
        return IRValue(own, view.data.get_reference(), view.nitems.get_reference())
    if isinstance(own, str) and own in PARTS:
        both = (builder.extract_value(value, k).get_reference() for k in range(2))
        return IRValue(own, tuple(both))
    return IRValue(own, value.get_reference() if isinstance(own, str) else None)


def _packed(context: Any, builder: Any, kind: Any, value: IRValue) -> Any:
    """Return Numba's value, of a given type, for a value of the front end."""
    own = value.type
    if isinstance(kind, TUPLE):
        parts = [_packed(context, builder, *pair) for pair in zip(kind, value.text, strict=True)]
        return context.make_tuple(builder, kind, parts)
    if own == "object":
        return builder.inttoptr(_operand("i64", value.text), context.get_value_type(kind))
    if isinstance(own, Array):
        from numba.np import arrayobj

        view = _array_view(context, builder, kind)
        data = ir.FormattedConstant(view.data.type, value.text)
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        size = context.get_constant(types.intp, size)
        arrayobj.populate_array(view, data, [_operand("i64", value.size)], [size], size, None)
        return view._getvalue()
    if isinstance(own, Static):
        return context.get_dummy_value()
    if own in PARTS:
        part = context.get_value_type(NUMBA[PARTS[own]])
        number = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for k, text in enumerate(value.text):
            number = builder.insert_value(number, ir.FormattedConstant(part, text), k)
        return number
    return ir.FormattedConstant(context.get_value_type(kind), value.text)


def _operand(kind: str, text: str) -> Any:
    return ir.FormattedConstant(_LLVM[kind], text)


def _example(kind: Any) -> IRValue:
    """Return a placeholder for a value of a Numba type, for type inference."""
    if isinstance(kind, types.IntegerLiteral):
        return IRValue("i64", str(kind.literal_value))
    own = _translated_type(kind)
    return rebuilt(own, ["poison"] * len(leaf_types(own)))


def _definition(row: Intrinsic) -> Any:
    """Return the function by which Numba types calls of a row, and generates their code."""

    def generate(context, builder, signature, arguments):
        if isinstance(row, Mark):
            _set_attributes(builder.function, row.attributes)
            return context.get_dummy_value()
        pairs = zip(signature.args, arguments, strict=True)
        values = [_unpacked(context, builder, *pair) for pair in pairs]
        body = _NumbaBody(builder)
        result = row.emit(body, *values)
        body.insert()
        return _packed(context, builder, signature.return_type, result)

    def typed(typingctx: Any, *arguments: Any) -> Any:
        try:
            result = row.emit(_NumbaBody(), *map(_example, arguments))
        except (Untranslatable, KeyError, TypeError, IndexError):
            return None  # the row does not take these types
        return numba_type(result.type)(*arguments), generate

    parameters = inspect.signature(row.meaning).parameters.values()
    first = inspect.Parameter("typingctx", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    typed.__signature__ = inspect.Signature([first, *parameters])  # Numba looks at it
    return typed


def _set_attributes(function: Any, attributes: tuple[str, ...]) -> None:
    for name in attributes:
        if name != "noalias":
            # llvmlite's own `add` refuses attributes that have a value.
            set.add(function.attributes, name)
            continue
        for argument in function.args:
            if isinstance(argument.type, ir.PointerType):
                argument.add_attribute("noalias")


_count = 0  # of the rows that are registered


def register_rows() -> None:
    """Register the rows that Numba does not know yet."""
    global _count
    new, _count = Intrinsic.rows[_count:], len(Intrinsic.rows)
    for row in new:
        template = make_intrinsic_template(row, _definition(row), row.meaning.__name__)
        infer(template)
        infer_global(row, types.Function(template))
