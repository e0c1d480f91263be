"""Elementary functions as LLVM's intermediate representation, compiled by Numba once a machine.

Each scalar function is there in two forms for each choice of types: its text, to be inlined, and,
where it is a long formula, machine code that takes a vector at a time. A loop that calls the scalar
function is vectorised with calls of the vector function. Both are made from one text, so that they
give the same bits.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba import types
from numba.core.errors import TypingError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import machine
from tinygrad_cg_kernels.runtime.store import Store

LONG = 30  # instructions: a longer formula is called, where a loop has several

KINDS = {
    "f64": types.float64,
    "f32": types.float32,
    "b1": types.boolean,
    **{f"i{width}": getattr(types, f"int{width}") for width in (8, 16, 32, 64)},
    **{f"u{width}": getattr(types, f"uint{width}") for width in (8, 16, 32, 64)},
}
NAMES = {kind: name for name, kind in KINDS.items()}
LLVM = {"f64": "double", "f32": "float", "b1": "i8"}
LLVM |= {name: f"i{name[1:]}" for name in KINDS if name[0] in "iu"}
"""Types by the names that they have here, and as functions pass them."""


class Function(NamedTuple):
    """A scalar function: its symbol, types, text, and the vectors that it is there for."""

    symbol: str
    result: str
    arguments: tuple[str, ...]
    text: str
    lanes: tuple[int, ...]

    @property
    def is_long(self) -> bool:
        return bool(self.lanes)


_store = Store("functions")
_found: dict[Any, Function] = {}
_loaded: dict[str, machine.Code] = {}


def find(function: Callable, arguments: tuple[str, ...]) -> Function:
    """Return a kernels' function for arguments of these types.

    Raises a NumbaError if it is not for them.
    """
    key = function, arguments
    if key not in _found:
        name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
        symbol = f"tinygrad_cg.{name}.{'.'.join(arguments)}"
        made = load(symbol)
        if made is None:
            made, code = _compile(function, symbol, arguments)
            _store.write(symbol, made._asdict(), code)
            _announce(made, code)
        _found[key] = made
    return _found[key]


def load(symbol: str) -> Function | None:
    """Return a function that was compiled before, its machine code ready to be called."""
    known = _store.read(symbol)
    if known is None:
        return None
    fields, code = known
    arguments, lanes = tuple(fields["arguments"]), tuple(fields["lanes"])
    made = Function(fields["symbol"], fields["result"], arguments, fields["text"], lanes)
    _announce(made, code)
    return made


def _announce(made: Function, code: bytes) -> None:
    if code and made.symbol not in _loaded:
        loaded = _loaded[made.symbol] = machine.Code(code)
        for lanes in (1, *made.lanes):
            name = f"{made.symbol}_v{lanes}"
            llvm.add_symbol(name, loaded.address(name))


def _compile(function: Callable, symbol: str, arguments: tuple[str, ...]) -> tuple[Function, bytes]:
    kinds = tuple(KINDS[name] for name in arguments)
    names = ", ".join("xyzuvw"[: len(arguments)])
    template = eval(f"lambda {names}: function({names})", {"function": function})
    compiled = build.overload_of(template, kinds)
    result = NAMES.get(compiled.signature.return_type)
    if result is None:
        raise TypingError(f"{symbol} returns {compiled.signature.return_type}")
    text = _plain(compiled, symbol, arguments, result)
    size = _instructions(text, symbol)
    floats = {"f64", "f32"}
    if size < LONG or not floats.issuperset((*arguments, result)) or len({*arguments, result}) > 1:
        return Function(symbol, result, arguments, text, ()), b""
    widest = machine.vector_bits() // (64 if result == "f64" else 32)
    lanes = (widest,) if result == "f64" else (widest // 2, widest)
    code = machine.object_code(_vector_module(text, symbol, result, len(arguments), lanes))
    return Function(symbol, result, arguments, text, lanes), code


def _plain(compiled: Any, symbol: str, arguments: tuple[str, ...], result: str) -> str:
    """Return the text of a function that takes and returns numbers, all that it calls inlined."""
    own = compiled.fndesc.llvm_func_name
    kind = LLVM[result]
    given = ", ".join(f"{LLVM[name]} %x{k}" for k, name in enumerate(arguments))
    wrapper = f"""
define {kind} @"{symbol}"({given}) {{
  %place = alloca {kind}
  %error = alloca ptr
  %status = call i32 @"{own}"(ptr %place, ptr %error, {given})
  %value = load {kind}, ptr %place
  ret {kind} %value
}}
"""
    module = llvm.parse_assembly(compiled.library.get_llvm_str() + wrapper)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration and one.name != symbol:
            one.linkage = "internal"
    module = llvm.parse_assembly(_contracted(str(machine.optimised(module, vectors=False))))
    function = module.get_function(symbol)
    function.linkage = "linkonce_odr"
    function.add_function_attribute("alwaysinline")
    return str(module)


_NAME = r'%(?:"[^"]*"|[\w.$-]+)'
_OPERAND = rf"(?:{_NAME}|[-+.\w]+)"
_CONTRACT = re.compile(
    rf"^  ({_NAME}) = (fmul|fadd|fsub) contract (double|float) ({_OPERAND}), ({_OPERAND})", re.M
)


def _contracted(text: str) -> str:
    """Return a text with products and sums put together as `contract` allows.

    LLVM would do so later, and not the same way in each place that a function is inlined in: here
    a product that one sum alone uses becomes part of it, by a fused multiplication and addition.
    """
    uses: collections.Counter[str] = collections.Counter()
    products: dict[str, tuple[str, str]] = {}
    kinds: set[str] = set()
    count = itertools.count()

    def change(found: re.Match) -> str:
        name, operation, kind, x, y = found.groups()
        if operation == "fmul":
            products[name] = x, y
            return f"  {name} = fmul {kind} {x}, {y}"
        for product, other in ((x, y), (y, x)):
            if product in products and uses[product] == 2 and product != other:
                break
        else:
            return f"  {name} = {operation} {kind} {x}, {y}"
        a, b = products[product]
        lines = []
        if operation == "fsub":  # of the product, or from it
            sign = f"%negated.{next(count)}"
            lines.append(f"  {sign} = fneg {kind} {a if product == y else other}")
            a, other = (sign, other) if product == y else (a, sign)
        kinds.add(kind)
        suffix = "f64" if kind == "double" else "f32"
        given = f"{kind} {a}, {kind} {b}, {kind} {other}"
        return "\n".join([*lines, f"  {name} = call {kind} @llvm.fma.{suffix}({given})"])

    if not machine.fuses():
        return text.replace(" contract ", " ")
    functions = re.split(r"(?m)^(?=define )", text)
    for k, one in enumerate(functions):
        products.clear()
        uses = collections.Counter(re.findall(_NAME, one))  # each once where it is defined
        functions[k] = _CONTRACT.sub(change, one)
    text = "".join(functions).replace(" contract ", " ")
    for kind, suffix in (("double", "f64"), ("float", "f32")):
        if kind in kinds and f"declare {kind} @llvm.fma.{suffix}(" not in text:
            text += f"\ndeclare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})\n"
    return text


def _instructions(text: str, symbol: str) -> int:
    body = text[text.index(f"@{symbol}(") :]
    return body[: body.index("\n}")].count("\n  ")


def _vector_module(text: str, symbol: str, kind: str, count: int, widths: tuple[int, ...]) -> Any:
    """Return a module with a function of numbers, and of vectors of these widths."""
    element, attributes = LLVM[kind], machine.wide()
    given = ", ".join(f"{element} %x{k}" for k in range(count))
    lines = [
        f"declare {element} @{symbol}({', '.join([element] * count)})",
        f"define {element} @{symbol}_v1({given}) {attributes} {{",
        f"  %r = call {element} @{symbol}({given})",
        f"  ret {element} %r",
        "}",
    ]
    for width in widths:
        vector = f"<{width} x {element}>"
        vectors = ", ".join(f"{vector} %x{k}" for k in range(count))
        lines += [f"define {vector} @{symbol}_v{width}({vectors}) {attributes} {{", "entry:"]
        for k in range(count):
            lines.append(f"  %in{k} = alloca {vector}, align 64")
            lines.append(f"  store {vector} %x{k}, ptr %in{k}")
        lines += [f"  %out = alloca {vector}, align 64", "  br label %loop", "loop:"]
        lines.append("  %i = phi i64 [0, %entry], [%next, %loop]")
        for k in range(count):
            lines.append(f"  %p{k} = getelementptr inbounds {element}, ptr %in{k}, i64 %i")
            lines.append(f"  %a{k} = load {element}, ptr %p{k}")
        call = ", ".join(f"{element} %a{k}" for k in range(count))
        lines += [
            f"  %r = call {element} @{symbol}({call})",
            f"  %q = getelementptr inbounds {element}, ptr %out, i64 %i",
            f"  store {element} %r, ptr %q",
            "  %next = add nuw nsw i64 %i, 1",
            f"  %done = icmp eq i64 %next, {width}",
            "  br i1 %done, label %end, label %loop",
            "end:",
            f"  %v = load {vector}, ptr %out",
            f"  ret {vector} %v",
            "}",
        ]
    module = llvm.parse_assembly("\n".join(lines))
    module.link_in(llvm.parse_assembly(text))
    return machine.optimised(module)
