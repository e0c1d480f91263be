"""Helpers that transformed functions call: whether a tensor decides, and what happens then."""

from __future__ import annotations

import builtins
import functools
import linecache
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np

from .. import nest
from .._core.conversion import convert
from .._core.levels import current_trace, state
from .._core.tensor import Tensor
from .._ops.comparison import equal, logical_and, logical_not, logical_or
from .._ops.shape import stop_gradient
from .._rules.outside_code import numpy_function
from .._rules.user_source import codes_in, compile_tree
from .._transforms.tape import keep_tapes
from ..errors import AutographError, FailedAssertion, location_of
from ._merging import Mismatch, describe, plan, undefined
from ._names import BREAK, CONTINUE, NORMAL
from ._repeatable import is_repeatable
from ._runs import LoopRun, RangeLoopRun, RowsLoopRun, SiteRun, cells_of
from ._side_effects import locations_of
from ._traced import (
    Flow,
    Outcome,
    Range,
    Rows,
    as_tensor,
    choose,
    has_many_rows,
    is_traced,
    trial,
    truth,
    without,
)
from ._transform import factory, region
from ._units import HELPER, INSIDE, Unit


class Helper:
    """The helper of one transformed function; `call` returns the function to call for another."""

    undefined = undefined
    done = Outcome
    locals = staticmethod(builtins.locals)

    def __init__(self, unit: Unit, code: CodeType, names: dict, call: Callable[[Any], Any]):
        self.unit, self.code, self.names, self.call = unit, code, names, call
        self.codes: dict[tuple[int, str], CodeType] = {}

    # Questions -------------------------------------------------------------------------------

    @staticmethod
    def traced(value: Any, flow: Any = 0) -> bool:
        """Return whether a tensor decides: `value`, or an earlier way of leaving."""
        return flow != 0 or is_traced(value)

    def where(self, line: int) -> str:
        text = linecache.getline(self.unit.file, line).strip()
        return f"{location_of(self.unit.file, line)}, in {self.unit.name}: `{text}`"

    def refusal(
        self, line: int, why: str, remedy: str, length_varies: bool = False
    ) -> AutographError:
        """Return the error for code that cannot become part of a program.

        The trace remembers it, in case a handler of the program catches it.
        """
        error = AutographError(f"{why}. {remedy} ({self.where(line)})", line=(self.unit.file, line))
        error.length_varies = length_varies
        level = current_trace()
        if level is not None:
            level.calls.refused = error
        return error

    # Expressions -----------------------------------------------------------------------------

    @staticmethod
    def not_(value: Any) -> Any:
        return logical_not(truth(value, "not")) if is_traced(value) else not value

    def sequence(self, going_on: bool, value: Any, *later: Callable[[], Any]) -> Any:
        """Return `and` or `or` of a traced value and operands that are evaluated if it does not
        decide.
        """
        if not later:
            return value
        first, *rest = later
        if not is_traced(value):
            return self.sequence(going_on, first(), *rest) if bool(value) == going_on else value
        word = "and" if going_on else "or"
        chosen = [lambda: self.sequence(going_on, first(), *rest), lambda: value]
        return self._choose(truth(value, word), chosen if going_on else chosen[::-1], word, None)

    def test(self, going_on: bool, value: Any, *later: Callable[[], Any]) -> Any:
        """Return the same if only the truth value is used."""
        word = "and" if going_on else "or"
        truths = [lambda operand=operand: as_tensor(truth(operand(), word)) for operand in later]
        return self.sequence(going_on, as_tensor(truth(value, word)), *truths)

    @staticmethod
    def combine(going_on: bool, value: Any, *later: Callable[[], Any]) -> Any:
        """Return the same for comparisons, which may all be evaluated."""
        word, function = ("and", logical_and) if going_on else ("or", logical_or)
        truths = [as_tensor(truth(operand(), word)) for operand in later]
        return functools.reduce(function, truths, truth(value, word))

    def choose(self, test: Any, body: Callable, other: Callable, line: int) -> Any:
        """Return the value of a conditional expression whose condition is a tensor."""
        return self._choose(truth(test, "if"), [body, other], "else", line)

    def _choose(self, test: Any, values: list[Callable], word: str, line: int | None) -> Any:
        samples = []
        with trial():
            for value in values:
                with keep_tapes():
                    samples.append(value())
        try:
            kind = plan(*samples)
        except Mismatch as error:
            line = self._line() if line is None else line
            raise self.refusal(
                line,
                f"`{word}` gives {' and '.join(error.args)}, depending on a tensor",
                "Return tensors of the same shape and dtype in both branches, with zeros_like, "
                "cast or broadcast_to",
            ) from None
        return kind.pack(choose(test, values, samples, kind.tensors))

    def _line(self) -> int:
        frame: Any = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename != self.unit.file:
            frame = frame.f_back
        return frame.f_lineno

    def assert_(self, test: Any, message: Callable[[], Any], line: int) -> None:
        """Check the condition, a tensor, at each call of the program."""
        text = message()
        parts = list(text) if isinstance(text, (list, tuple)) else [text]
        shown = [stop_gradient(convert(part)) if is_traced(part) else part for part in parts]
        operands = [part for part in shown if isinstance(part, Tensor)]
        where = self.where(line)

        def check(holds: np.ndarray, *values: np.ndarray) -> tuple[()]:
            if holds:
                return ()
            supply = iter(values)
            said = [str(next(supply)) if isinstance(part, Tensor) else str(part) for part in shown]
            words = " ".join(said) if text is not None else "assertion failed"
            raise FailedAssertion(f"{words} ({where})")

        numpy_function(check, [stop_gradient(truth(test, "assert")), *operands], [], name="assert")

    def refuse_raise(self, error: Any) -> Any:
        """Return the error for a `raise` in a case that a tensor decides."""
        line = self._line()
        refusal = self.refusal(
            line,
            f"`raise` in a branch or loop whose condition is a tensor: whether {error!r} is raised "
            "is only known at run time",
            "Use `assert`, or tf.debugging.assert_..., which check at each call",
        )
        if isinstance(error, BaseException):
            refusal.__cause__ = error
        return refusal

    # Regions ---------------------------------------------------------------------------------

    def enter(self, names: dict, cells: Callable) -> None:
        """Record what this function may change, where somebody watches; called when it begins."""
        if state.watches:
            effects = self.unit.effects
            locations = locations_of(effects, names, cells_of(cells), self.names)
            for watch in state.watches:
                watch.entered(locations, effects)

    def finish(self, flow: Any, result: Any) -> Any:
        """Return the result of a function whose end is reached in some cases only."""
        if isinstance(flow, int):
            return None
        raise self.refusal(
            self.unit.tree.lineno,
            f"`{self.unit.name}` returns {describe(result)} in some cases and None in others, "
            "depending on a tensor",
            "Return a tensor at the end as well",
        )

    def next_round(self, flow: Any, through: Any = None) -> Any:
        """Return the flow at the start of the next round.

        Raise AutographError if the iterable is endless, and only a tensor could end the rounds.
        """
        if type(through) is _Unsized and isinstance(flow, Flow):
            through.rounds += 1
            if through.rounds > _MAX_ROUNDS:
                raise self.refusal(
                    through.line,
                    f"`{type(through.iterable).__name__}` ran more than {_MAX_ROUNDS} "
                    "rounds, and only a tensor can end the loop: Python unrolls it during tracing",
                    "Write `while True:`, which becomes a loop, or loop over a list or tf.range",
                )
        return without(flow, {CONTINUE})

    @staticmethod
    def after_loop(flow: Any) -> Any:
        return without(flow, {BREAK, CONTINUE})

    def function(self, number: int, which: str, cells: dict[str, CellType]) -> Callable:
        """Return a region as a function, compiled at first use."""
        site = self.unit.sites[number]
        code = self.codes.get((number, which))
        if code is None:
            if site.has_yield:
                raise self.refusal(
                    site.line,
                    "`yield` in a branch or loop whose condition is a tensor",
                    "Yield outside of it, or collect results in a tensor",
                )
            tree = region(site, which)
            module = compile_tree(factory([*site.cells, HELPER], tree), self.code)
            code = next(candidate for candidate in codes_in(module) if candidate.co_name == INSIDE)
            code = code.replace(co_name=self.unit.name, co_qualname=self.code.co_qualname)
            self.codes[number, which] = code
        closure = tuple(cells[name] for name in code.co_freevars)
        return FunctionType(code, self.names, self.unit.name, None, closure)

    def if_(self, number: int, names: dict, cells: Callable, test: Any) -> Any:
        """Run an `if` that a tensor decides; return what it assigned."""
        return SiteRun(self, number, names, cells).branch(truth(test, "if"))

    def guard(self, number: int, names: dict, cells: Callable, flow: Any, result: Any) -> Any:
        """Run statements unless an earlier statement has left."""
        run = SiteRun(self, number, names, cells, flow, result)
        number_of = flow.number if isinstance(flow, Flow) else flow
        return run.branch(equal(number_of, NORMAL))

    def while_(self, number: int, names: dict, cells: Callable, *left: Any) -> Any:
        return LoopRun(self, number, names, cells, *left).run()

    @staticmethod
    def iterate(iterable: Any, line: int) -> Any:
        if has_many_rows(iterable):
            return Rows(iterable)
        is_sized = isinstance(iterable, (Range, Tensor)) or hasattr(iterable, "__len__")
        return iterable if is_sized else _Unsized(iterable, line)

    def loops(self, iterable: Any, number: int, names: dict, cells: Callable, *left: Any) -> bool:
        """Return whether a `for` becomes a loop of the program.

        A `for` over the rows of a tensor does if possible. So does one over a range if its rounds
        are all alike. The loop is traced here.
        """
        if isinstance(iterable, Rows):
            level = current_trace()
            refused = level.calls.refused
            try:
                loop = RowsLoopRun(iterable.iterable, self, number, names, cells, *left)
                if type(iterable.iterable) is range and not is_repeatable(loop, self.names):
                    return False
                iterable.result = loop.run()
            except Exception:  # Python's own loop will show it
                level.calls.refused = refused
                return False
            return True
        return isinstance(iterable, Range)

    def for_(self, number: int, names: dict, cells: Callable, iterable: Any, *left: Any) -> Any:
        if isinstance(iterable, Rows):
            return iterable.result
        return RangeLoopRun(iterable, self, number, names, cells, *left).run()


class _Unsized:
    """The iterable of a `for` that may never end."""

    def __init__(self, iterable: Any, line: int):
        self.iterable, self.line = iterable, line
        self.rounds = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable)


_MAX_ROUNDS = 1000


# What stands in for functions of Python ----------------------------------------------------------


def dynamic_range(function: Callable, *arguments: Any, **options: Any) -> Any:
    """Return a range; if a tensor decides its length, one that becomes a loop of the program."""
    names = ("start", "limit", "delta")
    bounds = [*arguments, *[options[name] for name in names if name in options]]
    if not any(map(is_traced, bounds)):
        return function(*arguments, **options)
    if len(bounds) == 1:
        bounds.insert(0, 0)
    start, limit, delta = bounds if len(bounds) > 2 else (*bounds, 1)
    return Range((start, limit, delta), lambda: function(*arguments, **options))


class _Output:
    """Writes to the current standard output of Python."""

    @staticmethod
    def write(text: str) -> int:
        return sys.stdout.write(text)

    @staticmethod
    def flush() -> None:
        sys.stdout.flush()


def show(*values: Any, **options: Any) -> None:
    """Print as Python does; if a value is a traced tensor, print at each call of the program."""
    if not any(is_traced(leaf) for leaf in nest.flatten(values)):
        builtins.print(*values, **options)
        return
    options.pop("flush", None)
    stream = options.pop("file", None)
    options = {key: value for key, value in options.items() if value is not None}
    from .._rules import printing

    printing.print(*values, output_stream=_Output if stream is None else stream, **options)
