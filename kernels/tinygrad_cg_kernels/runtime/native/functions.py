"""Elementary functions as LLVM's intermediate representation, translated once a machine.

Each scalar function is there in two forms for each choice of types: its text, to be inlined, and,
where it is a long formula, machine code that takes a vector at a time. A loop that calls the scalar
function is vectorised with calls of the vector function. Both are made from one text, so that they
give the same bits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import llvmlite.binding as llvm
from numba.core.errors import TypingError

from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import machine
from tinygrad_cg_kernels.runtime.native.module import scalar_text
from tinygrad_cg_kernels.runtime.native.values import (
    FLOATS,
    NAMES,
    NUMBA,
    STORED,
    Formula,
    Function,
    Untranslatable,
)
from tinygrad_cg_kernels.runtime.store import Store

LOOP = ", !llvm.loop !"
LONG = 25  # instructions: a longer formula is called, where a loop has several

_store = Store("functions")
by_numba: list[str] = []
"""The functions that Numba compiled, and why, in order."""
_found: dict[str, Function] = {}
_loaded: dict[str, machine.Code] = {}
if hasattr(os, "register_at_fork"):  # no other core goes on with what it was at
    os.register_at_fork(after_in_child=_found.clear)


def find(function: Callable, arguments: tuple[str, ...]) -> Function:
    """Return a kernels' function for arguments of these types.

    Raises a NumbaError if it is not for them.
    """
    symbol = _symbol(function, arguments)
    made = load(symbol) or _translated(function, symbol, arguments)
    made.by_value = function in build.BY_VALUE
    return made


def _symbol(function: Callable, arguments: tuple[str, ...]) -> str:
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    return f"tinygrad_cg.{name}.{'.'.join(arguments)}"


def prepare(function: Callable, arguments: tuple[str, ...]) -> None:
    """Compile a kernels' function, and its forms for vectors, for programs to come."""
    made = find(function, arguments)
    if made.is_long:
        compile_with([made], [])


def load(symbol: str) -> Function | None:
    """Return a function that was translated before."""
    if symbol not in _found:
        known = _store.read(symbol)
        if known is None:
            return None
        fields, _ = known
        formula = Formula(fields["text"], tuple(fields["lanes"]), tuple(fields["guard"]))
        arguments = tuple(fields["arguments"])
        _found[symbol] = Function(symbol, fields["result"], arguments, lambda: formula)
    return _found[symbol]


def compile_with(called: Iterable[Function], texts: Sequence[machine.Text]) -> list[bytes]:
    """Return the codes of modules that call long functions, compiled on all cores with these.

    Machine code finds the functions, and their forms for vectors, by their symbols from then on.
    """
    new = []
    for made in called:
        if made.symbol not in _loaded:
            known = _store.read(_vectors(made))
            if known is None:
                new.append(made)
            else:
                fields, codes = known
                _announce(made, codes[: fields["size"]], codes[fields["size"] :])
    own = [text for made in new for text in (_number_text(made), _vectors_text(made))]
    codes = machine.compiled_together([*texts, *own])
    forms = iter(codes[len(texts) :])
    for made, number, vectors in zip(new, forms, forms, strict=True):
        _store.write(_vectors(made), {"size": len(number)}, number + vectors)
        _announce(made, number, vectors)
    return codes[: len(texts)]


def _vectors(made: Function) -> str:
    return f"{made.symbol} vectors"


def _announce(made: Function, *codes: bytes) -> None:
    loaded = _loaded[made.symbol] = machine.Code(*codes)
    for lanes in (1, *made.lanes):
        form = f"{made.symbol}_v{lanes}"
        llvm.add_symbol(form, loaded.address(form))


def _translated(function: Callable, symbol: str, arguments: tuple[str, ...]) -> Function:
    """Return a function whose formula is optimised on another core."""
    try:
        text, own, result = scalar_text(function, arguments)
        given, values = _parameters(arguments)
        lines = ["start:"]
        for name, value in zip(arguments, values, strict=True):
            if name == "b1":
                lines.append(f"  {value}.b = icmp ne i8 {value}, 0")
        passed = [
            f"i1 {value}.b" if name == "b1" else f"{STORED[name]} {value}"
            for name, value in zip(arguments, values, strict=True)
        ]
        kind = "i1" if result == "b1" else STORED[result]
        lines.append(f"  %result = call {kind} @{own}({', '.join(passed)})")
        if result == "b1":
            lines.append("  %byte = zext i1 %result to i8")
        lines.append(f"  ret {STORED[result]} {'%byte' if result == 'b1' else '%result'}")
    except Untranslatable as error:
        by_numba.append(f"{symbol}: {error}")
        text, result, lines = _compiled(function, symbol, arguments)
        given, _ = _parameters(arguments)
    wrapper = [f"define {STORED[result]} @{symbol}({given}) {{", *lines, "}"]
    floats = result in FLOATS and {*arguments, result} == {result}
    guard = (build.GUARDED | build.BY_VALUE).get(function, ()) if floats else ()
    guards = tuple(_symbol(one, arguments) for one in guard)

    def formula() -> Formula:
        found = _plain("\n".join([text, *wrapper]), symbol)
        lanes: tuple[int, ...] = ()
        if floats and _instructions(found, symbol) >= LONG:
            widest = machine.vector_bits() // int(result[1:])
            lanes = (widest,) if result == "f64" else (widest // 2, widest)
        own = Formula(found, lanes, guards if lanes else ())
        _store.write(symbol, {"result": result, "arguments": arguments, **own._asdict()}, b"")
        return own

    made = _found[symbol] = Function(symbol, result, arguments, machine.Job(formula))
    for one in guard:
        find(one, arguments)
    return made


def _parameters(arguments: tuple[str, ...]) -> tuple[str, list[str]]:
    values = [f"%x{k}" for k in range(len(arguments))]
    given = zip(arguments, values, strict=True)
    return ", ".join(f"{STORED[name]} {value}" for name, value in given), values


def _compiled(
    function: Callable, symbol: str, arguments: tuple[str, ...]
) -> tuple[str, str, list[str]]:
    """Return what Numba makes of a function, its result's type, and the lines that call it."""
    names = ", ".join("xyzuvw"[: len(arguments)])
    template = eval(f"lambda {names}: function({names})", {"function": function})
    compiled = build.overload_of(template, tuple(NUMBA[name] for name in arguments))
    result = NAMES.get(compiled.signature.return_type)
    if result is None:
        raise TypingError(f"{symbol} returns {compiled.signature.return_type}")
    kind, own = STORED[result], compiled.fndesc.llvm_func_name
    lines = [
        f"  %result = alloca {kind}",
        "  %error = alloca ptr",
        f'  %status = call i32 @"{own}"(ptr %result, ptr %error, {_parameters(arguments)[0]})',
        f"  %value = load {kind}, ptr %result",
        f"  ret {kind} %value",
    ]
    text = compiled.library.get_llvm_str().replace(" contract ", " ")  # in all forms alike
    module = llvm.parse_assembly(text)
    for one in (*module.functions, *module.global_variables):
        if not one.is_declaration:
            one.linkage = "internal"
    return str(module), result, lines


def _plain(text: str, symbol: str) -> str:
    """Return the text of one function of a module, all that it calls inlined, to be inlined."""
    module = machine.optimised(
        machine.Text(text).parsed(), vectors=False, alone=True, level=machine.FORMULAS
    )
    head = re.compile(rf"^define (.*@{re.escape(symbol)}\(.*)\{{$", re.M)
    return head.sub(r"define linkonce_odr \1alwaysinline {", str(module))


def _instructions(text: str, symbol: str) -> int:
    body = text[text.index(f"@{symbol}(") :]
    return body[: body.index("\n}")].count("\n  ")


def _declaration(one: Function) -> str:
    given = ", ".join(STORED[kind] for kind in one.arguments)
    return f"declare {STORED[one.result]} @{one.symbol}({given})"


def _number_text(made: Function) -> machine.Text:
    """Return a module with a function of numbers. Its formula is optimised already."""
    given, _ = _parameters(made.arguments)
    kind = STORED[made.result]
    lines = [
        _declaration(made),
        f"define {kind} @{made.symbol}_v1({given}) {machine.wide()} {{",
        f"  %result = call {kind} @{made.symbol}({given})",
        f"  ret {kind} %result",
        "}",
    ]
    return machine.Text("\n".join(lines), [made.text], 0)


def _vectors_text(made: Function) -> machine.Text:
    """Return a module with functions of vectors of the widths that there are.

    Each has a loop over its lanes, of which LLVM makes vectors if it does not unroll it first.
    """
    used = [made, *(one for one in map(load, made.formula().guard) if one is not None)]
    lines = [_declaration(one) for one in used]
    if len(used) < 3:
        used = used[:1]
    for width in made.lanes:
        lines += _vector_function(made, width, used)
    for k, line in enumerate(lines):
        if line.endswith(LOOP):
            lines[k] = f"{line}{2 * k}"
            lines.append(f"!{2 * k} = distinct !{{!{2 * k}, !{2 * k + 1}}}")
            lines.append(f'!{2 * k + 1} = !{{!"llvm.loop.unroll.disable"}}')
    return machine.Text("\n".join(lines), [one.text for one in used], machine.FORMULAS)


def _vector_function(made: Function, width: int, used: list[Function]) -> list[str]:
    """Return the lines of the function of vectors of a width."""
    element, count = STORED[made.result], len(made.arguments)
    kind = f"<{width} x {element}>"
    given = ", ".join(f"{kind} %x{k}" for k in range(count))
    lines = [
        f"define {kind} @{made.symbol}_v{width}({given}) {machine.wide()} {{",
        "entry:",
        f"  %out = alloca {kind}, align 64",
        "  %flag = alloca i8",
    ]
    for k in range(count):
        lines.append(f"  %in{k} = alloca {kind}, align 64")
        lines.append(f"  store {kind} %x{k}, ptr %in{k}")
    if len(used) == 1:
        lines += ["  br label %full", *_lanes("full", "end", made, width)]
    else:
        _, test, fast = used
        lines += [
            "  store i8 1, ptr %flag",
            "  br label %test",
            *_lanes("test", "decide", test, width),
            "decide:",
            "  %good = load i8, ptr %flag",
            "  %all = icmp ne i8 %good, 0",
            "  br i1 %all, label %fast, label %full",
            *_lanes("fast", "end", fast, width),
            *_lanes("full", "end", made, width),
        ]
    return [*lines, "end:", f"  %v = load {kind}, ptr %out", f"  ret {kind} %v", "}"]


def _lanes(name: str, then: str, function: Function, width: int) -> Iterator[str]:
    """Yield a loop that calls a function for each lane, and keeps the results, or all of them."""
    element, result = STORED[function.arguments[0]], STORED[function.result]
    yield f"{name}:"
    yield f"  br label %{name}.loop"
    yield f"{name}.loop:"
    yield f"  %{name}.i = phi i64 [0, %{name}], [%{name}.next, %{name}.loop]"
    given = []
    for k in range(len(function.arguments)):
        at = f"%{name}.p{k} = getelementptr inbounds {element}, ptr %in{k}, i64 %{name}.i"
        yield f"  {at}"
        yield f"  %{name}.a{k} = load {element}, ptr %{name}.p{k}"
        given.append(f"{element} %{name}.a{k}")
    yield f"  %{name}.r = call {result} @{function.symbol}({', '.join(given)})"
    if function.result == "b1":
        yield f"  %{name}.known = load i8, ptr %flag"
        yield f"  %{name}.both = and i8 %{name}.known, %{name}.r"
        yield f"  store i8 %{name}.both, ptr %flag"
    else:
        yield f"  %{name}.q = getelementptr inbounds {result}, ptr %out, i64 %{name}.i"
        yield f"  store {result} %{name}.r, ptr %{name}.q"
    yield f"  %{name}.next = add nuw nsw i64 %{name}.i, 1"
    yield f"  %{name}.done = icmp eq i64 %{name}.next, {width}"
    yield f"  br i1 %{name}.done, label %{then}, label %{name}.loop{LOOP}"
