"""The functions of one translation, and the LLVM modules that contain them."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple

from tinygrad_cg_frontend.intrinsics import ANY_ORDER, drives, number_by_number, outlined
from tinygrad_cg_frontend.library import Library, Processor
from tinygrad_cg_frontend.llvm_source import (
    BASELINE,
    BASELINE_LONG,
    OPTIMIZED,
    LLVMSource,
)
from tinygrad_cg_frontend.sources import Source
from tinygrad_cg_frontend.translate import SUM_LOOP, FunctionBody
from tinygrad_cg_frontend.values import (
    STORED,
    Array,
    IRValue,
    ScalarFunction,
    Untranslatable,
    constant,
)
from tinygrad_cg_frontend.writer import Declarations

MIN_LONG_LINES = 100
"""A function of numbers with at least this many lines takes LLVM long to vectorise."""
MIN_LONG_CHARACTERS = 50_000
"""A block kernel with at least this many characters has long formulas. Computing them takes longer
than LLVM needs to optimize code of single numbers.
"""
_SYMBOL = re.compile(r"@([\w.]+)")
_REORDERED = re.compile(rf" = f(add|mul) reassoc |{ANY_ORDER}")
"""LLVM's flags of reductions whose bits depend on the order."""


_count = itertools.count()
_numbers: dict[Any, int] = {}
"""The numbers in the symbols of the library's functions, by function and types."""
_helpers: dict[Any, FunctionBody] = {}
"""Translated functions of the library that others call, by their symbols."""


class _Function(NamedTuple):
    name: str
    result: Any


class _Contents(NamedTuple):
    """Properties of some lines and of the functions that they call."""

    loops: bool
    reorders: bool
    """Whether they have sums whose terms may be added in any order."""


class IRModule(Declarations):
    """Functions of one translation: of a text, or of the kernels, with the functions they call.

    `scope` is the scope of the text. ``find(function, types)`` returns the kernels' scalar
    functions. Without it, they are translated as well, and a product of two floats is contracted
    into the sum in the same expression. With `whole`, the first function inlines everything it
    calls. A kernel `for_blocks` may compute for long.
    """

    def __init__(
        self,
        library: Library,
        processor: Processor,
        scope: dict[str, Any] | None = None,
        find: Callable[..., ScalarFunction] | None = None,
        whole: bool = False,
        for_blocks: bool = False,
    ):
        super().__init__()
        self.library, self.processor = library, processor
        self.find, self.whole = find, whole
        self._for_blocks = for_blocks
        self.scope = scope or {}
        self.texts: dict[str, str] = {}
        self.outlined: dict[str, str] = {}
        self.inlined: dict[str, ScalarFunction] = {}
        self.called: dict[str, ScalarFunction] = {}
        self.metadata: list[str] = []
        self._functions: dict[Any, _Function] = {}
        self._bodies: dict[str, FunctionBody] = {}  # bodies whose texts are not written yet
        self._apart: dict[str, str] = {}  # declarations of long formulas and sums
        self._sizes: dict[str, int] = {}
        self._called: dict[str, set[str]] = {}
        self._contents: dict[str, _Contents] = {}
        self.level = OPTIMIZED
        """LLVM's level for functions that are not outlined."""
        self.is_scalar = False
        """Whether its loops compute single numbers."""
        self._arrays: dict[int, IRValue] = {}

    def function(self, source: Source | str, arguments: tuple[Any, ...]) -> _Function:
        """Return the function for these types, translated now if needed."""
        if isinstance(source, str):
            source = self.scope[source]
        assert isinstance(source, Source)
        key = id(source.body), id(source.scope), arguments
        if key not in self._functions:
            symbol = self._symbol(key, source)
            is_helper = len(self._functions) > 0
            self._functions[key] = _Function(symbol, None)
            body = self._body(symbol, source, arguments, is_helper)
            self._functions[key] = _Function(symbol, body.result)
            self.declared |= body.declared
            self.texts[symbol] = ""
            self._bodies[symbol] = body
            self.is_scalar |= number_by_number in body.marks
            if drives in body.marks:
                self.level = BASELINE
            if outlined in body.marks:
                self.outlined[symbol] = body.declaration()
            if self.find is None:
                self._look_at(symbol, body, source)
        return self._functions[key]

    def _symbol(self, key: Any, source: Source) -> str:
        """Return a new function's symbol; that of a library's function is the same everywhere."""
        name = source.name.strip("<>")
        if source.scope is self.scope:
            return f"{name}_{len(self._functions)}"
        number = _numbers.get(key)
        if number is None:  # another thread may be here, too
            number = _numbers.setdefault(key, next(_count))
        return f"{name}_{number:04d}"

    def _body(self, symbol: str, source: Source, arguments: tuple, is_helper: bool) -> FunctionBody:
        """Return a translated function. A function that others call is translated for all modules.

        Except if it is of a text, or calls one: the library's sources alone live as long as the
        process (`source_of`).
        """
        key = symbol, self.find is None, self.processor
        body = _helpers.get(key) if is_helper else None
        if body is not None:
            for called in body.called:
                self.function(*called)
            return body
        body = FunctionBody(self, source, arguments, symbol)
        sources = [source, *[called for called, _ in body.called]]
        if is_helper and body.is_shared and all(x.scope is not self.scope for x in sources):
            _helpers[key] = body
        return body

    def _look_at(self, symbol: str, body: FunctionBody, source: Source) -> None:
        """Note what a function contains; long formulas and sums get their own baseline modules."""
        self._contents[symbol] = self._contents_of(body.lines)
        elementary = self.library.has_formulas(source.scope.get("__name__", ""))
        text = "\n".join(body.lines)
        called = {*_SYMBOL.findall(text)}
        size = len(body.lines) + sum(self._sizes.get(symbol, 0) for symbol in called)
        if SUM_LOOP in text or (elementary and size > MIN_LONG_LINES):
            self._apart[symbol] = body.declaration()
        else:
            self._sizes[symbol] = size

    def inline(self, formula: ScalarFunction) -> None:
        """Link a scalar function into the module."""
        self.inlined[formula.symbol] = formula
        self.declare(formula.symbol, formula.declaration)

    def array(self, thing: Any) -> IRValue:
        """Return a constant array with the numbers of an array or a tuple."""
        if id(thing) not in self._arrays:
            items = [constant(item) for item in thing]
            kinds = {item.type for item in items}
            if len(kinds) != 1 or not items[0].is_number:
                raise Untranslatable(f"an index of {thing}")
            kind, name = items[0].type, f"array.{len(self._arrays)}"
            stored = ", ".join(f"{STORED[kind]} {item.text}" for item in items)
            self.texts[name] = (
                f"@{name} = internal constant [{len(items)} x {STORED[kind]}] [{stored}]"
            )
            self._arrays[id(thing)] = IRValue(Array(kind), f"@{name}", str(len(items)))
        return self._arrays[id(thing)]

    def sums(self, lines: list[str]) -> bool:
        """Return whether the lines of a kernel's loop are a sum that LLVM vectorises."""
        if self.find is not None:  # programs have no baseline code
            return False
        contents = self._contents_of(lines)
        return contents.reorders and not contents.loops

    def _contents_of(self, lines: list[str]) -> _Contents:
        text = "\n".join(["", *lines])
        loops, reorders = "\nhead" in text, _REORDERED.search(text) is not None
        for name in _SYMBOL.findall(text):
            called = self._contents.get(name)
            if called is not None:
                loops |= called.loops
                reorders |= called.reorders
        return _Contents(loops, reorders)

    def loop(self, name: str, value: str) -> str:
        """Return the metadata that sets one of LLVM's options for a loop."""
        at = len(self.metadata)
        self.metadata.append(f"!{at} = distinct !{{!{at}, !{at + 1}}}")
        self.metadata.append(f'!{at + 1} = !{{!"llvm.loop.{name}", {value}}}')
        return f", !llvm.loop !{at}"

    def text(self) -> str:
        """Return the module's text, without the scalar functions that are linked in."""
        self._write()
        return self._with_declarations(self.texts.values())

    def baseline(self, symbol: str) -> LLVMSource:
        """Return the text as several modules of similar length, one for each core.

        Loops compute single numbers. Sums are an exception: their order of additions is that of
        vectors, so they are vectorised, in a module of their own.
        """
        long = len(self.text()) >= MIN_LONG_CHARACTERS
        level = BASELINE_LONG if long and self._for_blocks else BASELINE
        main = [symbol]
        used = [*self._called_apart(main)]
        for name in used:  # which grows
            used += self._called_apart([name]) - {*used}
        sums = [name for name in used if SUM_LOOP in self.texts[name]]
        left = [name for name in used if name not in sums]
        own = {name: self._length([name], self._apart) for name in left}
        several = [main, *([] for _ in range(self.processor.cores - 1 - bool(sums)))]
        lengths = [self._length(main, self._apart), *([0] * (len(several) - 1))]
        for name in sorted(own, key=own.__getitem__, reverse=True):
            shortest = lengths.index(min(lengths))
            several[shortest].append(name)
            lengths[shortest] += own[name]
        own, *others = (self._of_baseline(some, symbol, level) for some in (*several, sums) if some)
        return own._replace(parts=others)

    def _of_baseline(self, names: list[str], symbol: str, level: int) -> LLVMSource:
        declared = [self._apart[name] for name in self._called_apart(names)]
        public = [name for name in names if name != symbol]
        text = "\n".join(self._those(self._used(names, self._apart), public))
        level = OPTIMIZED if SUM_LOOP in text else level
        while SUM_LOOP in text:
            text = text.replace(f" {SUM_LOOP}", self.loop("vectorize.enable", "i1 true"), 1)
        return LLVMSource(self._with_declarations([*declared, text]), level=level)

    def _called_apart(self, names: list[str]) -> set[str]:
        """Return the long formulas and sums that functions call, without these functions."""
        own = self._used(names, self._apart)
        symbols = {name for caller in own for name in self._symbols(caller)}
        return (symbols & self._apart.keys()) - {*names}

    def _write(self) -> None:
        """Write the texts of the functions, which needs the optimised formulas."""
        for symbol, body in self._bodies.items():
            self.texts[symbol] = body.text(self)
        self._bodies.clear()

    def parts(self) -> list[str]:
        """Return the text as several modules: one for each outlined function, if that is useful.

        The first module has the functions that call them, for the module's `level`.
        """
        if len(self.outlined) < 2 and self.level == OPTIMIZED:
            return [self.text()]
        self._write()
        parts = []
        for symbol in (None, *self.outlined):
            used = self.texts.keys() - self.outlined.keys()
            if symbol:
                used = self._used([symbol], self.outlined)
            others = [text for name, text in self.outlined.items() if name != symbol]
            parts.append(self._with_declarations([*others, *self._those(used, self.outlined)]))
        return parts

    def _those(self, names: Container[str], public: Container[str] = ()) -> Iterator[str]:
        """Yield the texts of functions. Other modules can call those in `public`."""
        for name, text in self.texts.items():
            if name in names:
                yield text.replace("define internal", "define", 1) if name in public else text

    def _symbols(self, name: str) -> set[str]:
        """Return the symbols in the text of a function."""
        symbols = self._called.get(name)
        if symbols is None:
            symbols = self._called[name] = set(_SYMBOL.findall(self.texts[name]))
        return symbols

    def _length(self, names: list[str], without: Container[str] = ()) -> int:
        """Return the length of functions' texts, including what they call, except `without`."""
        return sum(len(self.texts[name]) for name in self._used(names, without))

    def _used(self, names: list[str], without: Container[str] = ()) -> set[str]:
        """Return functions and everything in this module that they use, except `without`."""
        used, left = {*names}, [*names]
        while left:
            for name in self._symbols(left.pop()):
                if name in self.texts and name not in used and name not in without:
                    used.add(name)
                    left.append(name)
        return used

    def _with_declarations(self, texts: Iterable[str]) -> str:
        lines = list(self.declared.values())
        attributes = []
        for k, formula in enumerate(self.called.values()):
            kind = STORED[formula.result]
            parameters = ", ".join([kind] * len(formula.arguments))
            lines.append(f"declare {kind} @{formula.symbol}_v1({parameters}) #{10 + k}")
            variants = []
            for lanes in formula.lanes:
                vector = f"<{lanes} x {kind}>"
                vectors = ", ".join([vector] * len(formula.arguments))
                lines.append(f"declare {vector} @{formula.symbol}_v{lanes}({vectors}) #1")
                marks = "v" * len(formula.arguments)
                name = formula.symbol
                variants.append(f"_ZGV_LLVM_N{lanes}{marks}_{name}_v1({name}_v{lanes})")
            attributes.append(
                f"attributes #{10 + k} = {{ nounwind willreturn memory(none) "
                f'"vector-function-abi-variant"="{",".join(variants)}" }}'
            )
        used = [
            f"ptr @{formula.symbol}_v{k}" for formula in self.called.values() for k in formula.lanes
        ]
        if used:
            lines.append(
                f"@llvm.compiler.used = appending global [{len(used)} x ptr] "
                f'[{", ".join(used)}], section "llvm.metadata"'
            )
        lines += texts
        wide = self.processor.wide
        lines.append(f"attributes #0 = {{ {wide} }}")
        lines.append("attributes #1 = { nounwind willreturn memory(none) }")
        lines.append(f"attributes #2 = {{ noinline {wide} }}")
        lines.append(f"attributes #3 = {{ alwaysinline {wide} }}")
        return "\n".join([*lines, *attributes, *self.metadata])
