"""Elementary functions, optimised once per machine, as texts to inline and as vector functions.

Programs call them. Machine code finds them by their symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import llvmlite.binding as llvm

from tinygrad_cg_frontend import (
    Formula,
    Library,
    LLVMSource,
    ScalarFunction,
    Unsupported,
    Untranslatable,
    finish_formula,
    number_source,
    translate_formula,
    vectors_source,
)
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import kinds, machine
from tinygrad_cg_kernels.runtime.locks import at_fork
from tinygrad_cg_kernels.runtime.store import Store, is_changed

ELEMENTARY = "tinygrad_cg_kernels.elementary"

_store = Store("functions")
_functions: dict[str, ScalarFunction] = {}
_loaded: dict[str, machine.MachineCode] = {}
at_fork(after_in_child=_functions.clear)  # no thread of the child optimises them


class Kernels(Library):
    """The kernels' functions, for the front end."""

    def owns(self, function: Callable) -> bool:
        return build.is_ours(function)

    def has_formulas(self, module: str) -> bool:
        return module.startswith(ELEMENTARY)

    def version(self, function: Callable, kind: Any) -> Callable:
        if function not in build.VERSIONS:
            return function
        if not isinstance(kind, str) or kind not in kinds.ANY:
            raise Untranslatable(f"{function.__name__} of {kind}")
        version = build.version_of(function, kind)
        if version is None:
            raise Unsupported(f"{function.__name__} is not for {kind}")
        return version

    def is_changed(self, file: str) -> bool:
        return is_changed(file)


KERNELS = Kernels()


def find(function: Callable, arguments: tuple[str, ...]) -> ScalarFunction:
    """Return a scalar function for types of arguments; Unsupported if it does not take them."""
    symbol = _symbol(function, arguments)
    formula = load(symbol) or _translated(function, symbol, arguments)
    formula.by_value = function in build.BY_VALUE
    return formula


def _symbol(function: Callable, arguments: tuple[str, ...]) -> str:
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    return f"tinygrad_cg.{name}.{'.'.join(arguments)}"


def prepare(function: Callable, arguments: tuple[str, ...]) -> None:
    """Compile a scalar function and its vector functions, for later programs."""
    formula = find(function, arguments)
    if formula.is_long:
        compile_with([formula], [])


def load(symbol: str) -> ScalarFunction | None:
    """Return a function that was translated before, else None."""
    if symbol not in _functions:
        cached = _store.read(symbol)
        if cached is None:
            return None
        fields, _ = cached
        formula = Formula(fields["text"], tuple(fields["lanes"]), tuple(fields["guard"]))
        arguments = tuple(fields["arguments"])
        _functions[symbol] = ScalarFunction(symbol, fields["result"], arguments, lambda: formula)
    return _functions[symbol]


def load_all(symbols: Iterable[str]) -> bool:
    """Make the symbols of functions known to LLVM; False if one was not translated before."""
    called = [load(symbol) for symbol in symbols]
    if None in called:
        return False
    compile_with(filter(None, called), [])
    return True


def compile_with(called: Iterable[ScalarFunction], sources: Sequence[LLVMSource]) -> list[bytes]:
    """Compile modules, and the long functions they call, on all cores; return the modules' code.

    From then on, machine code finds these functions and their vector functions by their symbols.
    """
    new = []
    for formula in called:
        if formula.symbol not in _loaded:
            cached = _store.read(_vectors(formula))
            if cached is None:
                new.append(formula)
            else:
                _announce(formula, cached[1])
    processor = machine.processor()
    own = []
    for formula in new:
        guards = [guard for guard in map(load, formula.formula().guard) if guard is not None]
        own += [number_source(formula, processor), vectors_source(formula, guards, processor)]
    codes = machine.compile_all([*sources, *own])
    forms = iter(codes[len(sources) :])
    for formula, *both in zip(new, forms, forms, strict=True):
        code = machine.joined(both)
        _store.write(_vectors(formula), {}, code)
        _announce(formula, code)
    return codes[: len(sources)]


def _vectors(formula: ScalarFunction) -> str:
    return f"{formula.symbol} vectors"


def _announce(formula: ScalarFunction, code: bytes) -> None:
    loaded = _loaded[formula.symbol] = machine.MachineCode(code)
    for lanes in (1, *formula.lanes):
        form = f"{formula.symbol}_v{lanes}"
        llvm.add_symbol(form, loaded.address(form))


def _translated(function: Callable, symbol: str, arguments: tuple[str, ...]) -> ScalarFunction:
    """Translate a function; another core optimises its formula."""
    processor = machine.processor()
    text, result = translate_formula(function, symbol, arguments, KERNELS, processor)
    guards = (build.GUARDED | build.BY_VALUE).get(function, ())
    symbols = tuple(_symbol(guard, arguments) for guard in guards)

    def formula() -> Formula:
        module = machine.optimised(machine.parsed(LLVMSource(text)), vectors=False)
        kinds = {*arguments, result}
        own = finish_formula(str(module), symbol, kinds, symbols, processor)
        _store.write(symbol, {"result": result, "arguments": arguments, **own._asdict()}, b"")
        return own

    translated = _functions[symbol] = ScalarFunction(
        symbol, result, arguments, machine.Job(formula)
    )
    if {*arguments} == {result}:
        for guard in guards:
            find(guard, arguments)
    return translated
