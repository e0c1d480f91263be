"""Elementary functions as LLVM's text.

Each scalar function has two forms for given types: its text, to be inlined, and, if the formula is
long, a function of vectors. LLVM vectorises a loop that calls the scalar function by calling the
vector function. Both come from one text, so they give the same bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from tinygrad_cg_frontend.library import Library, Processor
from tinygrad_cg_frontend.llvm_source import LLVMSource
from tinygrad_cg_frontend.module import IRModule
from tinygrad_cg_frontend.sources import source_of
from tinygrad_cg_frontend.values import (
    FLOATS,
    NUMBERS,
    STORED,
    Formula,
    ScalarFunction,
    Untranslatable,
)

LOOP = ", !llvm.loop !"
MIN_LONG_INSTRUCTIONS = 25
"""A formula with at least this many instructions is long: if a loop has several, it calls them."""


def translate_formula(
    function: Callable,
    symbol: str,
    arguments: tuple[str, ...],
    library: Library,
    processor: Processor,
) -> tuple[str, str]:
    """Return the text of a module that defines a scalar function, and the type of its result."""
    module = IRModule(library, processor, whole=True)
    source = source_of(library.version(function, arguments[0]), library)
    compiled = module.function(source, arguments)
    result = compiled.result
    if result not in NUMBERS:
        raise Untranslatable(f"{function.__name__} returns {result}")
    lines, passed = [], []
    for k, name in enumerate(arguments):
        if name == "b1":
            lines.append(f"  %b{k} = icmp ne i8 %x{k}, 0")
        passed.append(f"i1 %b{k}" if name == "b1" else f"{STORED[name]} %x{k}")
    kind = "i1" if result == "b1" else STORED[result]
    lines.append(f"  %result = call {kind} @{compiled.name}({', '.join(passed)})")
    if result == "b1":
        lines.append("  %byte = zext i1 %result to i8")
    lines.append(f"  ret {STORED[result]} {'%byte' if result == 'b1' else '%result'}")
    head = f"define {STORED[result]} @{symbol}({_parameters(arguments)}) {{"
    return "\n".join([module.text(), head, *lines, "}"]), result


def finish_formula(
    text: str, symbol: str, kinds: set[str], guard: tuple[str, ...], processor: Processor
) -> Formula:
    """Return the formula in the text of an optimised module, in which all calls are inlined.

    `kinds` are the types of its arguments and result. `guard` has the symbols of a test and of a
    fast version, if there are any.
    """
    head = re.compile(rf"^define (.*@{re.escape(symbol)}\(.*)\{{$", re.M)
    formula = head.sub(r"define linkonce_odr \1alwaysinline {", text)
    body = formula[formula.index(f"@{symbol}(") :]
    instructions = body[: body.index("\n}")].count("\n  ")
    if len(kinds) > 1 or not kinds <= {*FLOATS} or instructions < MIN_LONG_INSTRUCTIONS:
        return Formula(formula)
    widest = processor.vector_bits // int(min(kinds)[1:])
    return Formula(formula, (widest,) if kinds == {"f64"} else (widest // 2, widest), guard)


def _parameters(arguments: tuple[str, ...]) -> str:
    return ", ".join(f"{STORED[name]} %x{k}" for k, name in enumerate(arguments))


def number_source(function: ScalarFunction, processor: Processor) -> LLVMSource:
    """Return a module with the function of numbers, whose formula is optimised already."""
    kind = STORED[function.result]
    parameters = _parameters(function.arguments)
    lines = [
        f"declare {function.declaration}",
        f"define {kind} @{function.symbol}_v1({parameters}) {processor.wide} {{",
        f"  %result = call {kind} @{function.symbol}({parameters})",
        f"  ret {kind} %result",
        "}",
    ]
    return LLVMSource("\n".join(lines), [function.text], 0)


def vectors_source(
    function: ScalarFunction, guards: Sequence[ScalarFunction], processor: Processor
) -> LLVMSource:
    """Return a module with the functions of vectors, one for each width.

    `guards` are the test and the fast version, if there are any. Each function has a loop over its
    lanes, which LLVM vectorises. The loop must not be unrolled before.
    """
    used = [function, *guards] if len(guards) == 2 else [function]
    lines = [f"declare {formula.declaration}" for formula in used]
    for width in function.lanes:
        lines += _vector_function(used, width, processor.wide)
    for k, line in enumerate(lines):
        if line.endswith(LOOP):
            lines[k] = f"{line}{2 * k}"
            lines.append(f"!{2 * k} = distinct !{{!{2 * k}, !{2 * k + 1}}}")
            lines.append(f'!{2 * k + 1} = !{{!"llvm.loop.unroll.disable"}}')
    return LLVMSource("\n".join(lines), [formula.text for formula in used])


def _vector_function(used: list[ScalarFunction], width: int, attributes: str) -> list[str]:
    """Return the lines of the function of vectors of one width."""
    function, *guards = used
    element, count = STORED[function.result], len(function.arguments)
    kind = f"<{width} x {element}>"
    parameters = ", ".join(f"{kind} %x{k}" for k in range(count))
    lines = [
        f"define {kind} @{function.symbol}_v{width}({parameters}) {attributes} {{",
        "entry:",
        f"  %out = alloca {kind}, align 64",
        "  %flag = alloca i8",
    ]
    for k in range(count):
        lines.append(f"  %in{k} = alloca {kind}, align 64")
        lines.append(f"  store {kind} %x{k}, ptr %in{k}")
    if not guards:
        lines += ["  br label %full", *_lanes("full", "end", function, width)]
    else:
        test, fast = guards
        lines += [
            "  store i8 1, ptr %flag",
            "  br label %test",
            *_lanes("test", "decide", test, width),
            "decide:",
            "  %good = load i8, ptr %flag",
            "  %all = icmp ne i8 %good, 0",
            "  br i1 %all, label %fast, label %full",
            *_lanes("fast", "end", fast, width),
            *_lanes("full", "end", function, width),
        ]
    return [*lines, "end:", f"  %v = load {kind}, ptr %out", f"  ret {kind} %v", "}"]


def _lanes(name: str, then: str, function: ScalarFunction, width: int) -> Iterator[str]:
    """Yield a loop that calls a function for each lane, and stores the results or their `and`."""
    element, result = STORED[function.arguments[0]], STORED[function.result]
    yield f"{name}:"
    yield f"  br label %{name}.loop"
    yield f"{name}.loop:"
    yield f"  %{name}.i = phi i64 [0, %{name}], [%{name}.next, %{name}.loop]"
    arguments = []
    for k in range(len(function.arguments)):
        at = f"%{name}.p{k} = getelementptr inbounds {element}, ptr %in{k}, i64 %{name}.i"
        yield f"  {at}"
        yield f"  %{name}.a{k} = load {element}, ptr %{name}.p{k}"
        arguments.append(f"{element} %{name}.a{k}")
    yield f"  %{name}.r = call {result} @{function.symbol}({', '.join(arguments)})"
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
