"""The parts of a gradient that lead through single results, by the operations' own rules."""

from __future__ import annotations

import ast
import contextlib
import linecache
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.record import nodes_of
from .._core.tensor import Tensor
from .._transforms.tape import GradientTape
from ..errors import users_expression, users_line
from .evaluate import at, run_body
from .observing import ObservingLevel
from .problem import Point, Problem
from .recorder import SourceLine
from .rewrite import line_of, quote, where

MAX_RESULTS = 24  # results of operations to look at
ORDINALS = ("first", "second", "third", "fourth")
MAX_EXAMPLES = 32  # of a batch whose first and last example are looked at


class Share(NamedTuple):
    """The part of a gradient that leads through one result, or through one index of its axis 0.

    `what` names the result by its variable or its operation, `site` is the line that computes it.
    """

    what: str
    site: str
    index: int | None
    gradient: np.ndarray


class Derivation(NamedTuple):
    """A gradient by the operations' own rules, its shares, and the values of named variables."""

    gradient: np.ndarray
    shares: list[Share]
    variables: dict[str, np.ndarray]


class _Results(ObservingLevel):
    """A level that keeps the results of operations that other operations take."""

    def __init__(self) -> None:
        self.taken: dict[int, tuple[str, SourceLine, Tensor]] = {}  # by an expression
        self._computed: dict[int, tuple[str, SourceLine, Any]] = {}
        self._last: dict[SourceLine, int] = {}  # the last result of each line

    def see(self, primitive: Any, inputs: tuple, params: dict, outs: list[Tensor]) -> None:
        for tensor in inputs:
            key = id(tensor._data)
            if key in self._computed and any(nodes_of(tensor._rec)):
                expression, site, _ = self._computed[key]
                self.taken.setdefault(key, (expression, site, tensor))
        site = users_line()[:2]
        expression = users_expression() or f"{primitive.name}(...)"
        for result in outs:
            self._computed[id(result._data)] = expression, site, result._data
            self._last[site] = id(result._data)

    def variable_of(self, data: Any, site: SourceLine) -> str | None:
        """Return the variable that a result is assigned to, if its line shows one."""
        if assigned := re.match(r"(\w+)\s*=(?!=)[^;]*$", line_of(*site)):
            return assigned.group(1) if self._last[site] == id(data) else None
        expression, line = self._computed[id(data)][0], linecache.getline(*site).strip()
        with contextlib.suppress(SyntaxError):
            for statement in ast.parse(line).body if ";" in line else ():
                match statement:
                    case ast.Assign([ast.Name(name)], value) if (
                        ast.get_source_segment(line, value) == expression
                    ):
                        return name
        return None

    def words_for(self, data: Any) -> str:
        """Return words for a result: its variable or expression, and which of its values it is.

        A line has several if it has the expression twice, or runs several times.
        """
        expression, site, _ = self._computed[id(data)]
        twins = [key for key, other in self._computed.items() if other[:2] == (expression, site)]
        place, count = twins.index(id(data)), line_of(*site).count(expression)
        if variable := self.variable_of(data, site):
            return f"`{variable}`"
        if 1 < len(twins) == count <= len(ORDINALS):
            return f"the {ORDINALS[place]} `{expression}`"
        if len(twins) == 1 or count != 1:
            return f"`{expression}`"
        name = self.variable_of(self._computed[self._last[site]][2], site)
        is_assigned = name and self._computed[self._last[site]][0] == expression
        which = f"step {place + 1} of {len(twins)}"
        which = f"the last of {len(twins)} steps" if place + 1 == len(twins) else which
        return f"the value of `{name if is_assigned else expression}` in {which}"

    @property
    def variables(self) -> dict[str, np.ndarray]:
        """Return the values of results by their variables, then of others by their expressions."""
        named = [
            (self.variable_of(data, site) or expression, data)
            for expression, site, data in self._computed.values()
        ]
        return {
            name: np.array(data)
            for name, data in sorted(named, key=lambda pair: not pair[0].isidentifier())
            if "..." not in name and isinstance(data, np.ndarray) and data.dtype.kind == "f"
        }


def derive(
    problem: Problem, point: Point, j: int, upstreams: Sequence[np.ndarray]
) -> list[Derivation]:
    """Return the gradient by source j for each upstream, without the function's own rule."""
    results = _Results()
    with at(problem, point, level=results) as sources:
        with GradientTape(persistent=True) as tape:
            tape.watch(sources)
            (output,) = run_body(problem, sources)
        derivations, variables = [], results.variables
        for upstream in upstreams:
            dy = Tensor(np.asarray(upstream, output.dtype))
            whole = tape.gradient(output, sources[j], dy)
            gradient = np.zeros(point[j].shape) if whole is None else whole._values()
            shares = _shares(tape, results, sources[j], output, dy)
            derivations.append(Derivation(gradient, shares, variables))
    return derivations


def _shares(
    tape: GradientTape, results: _Results, x: Any, output: Tensor, dy: Tensor
) -> list[Share]:
    """Return shares: through named variables first, and through later results before earlier."""
    taken = list(results.taken.values())[-MAX_RESULTS:]
    slopes = tape.gradient(output, [result for _, _, result in taken], dy)
    ranked: list[tuple[int, Share]] = []
    for (_, site, result), slope in zip(taken, slopes, strict=True):
        if slope is None or (part := tape.gradient(result, x, slope)) is None:
            continue
        variable = results.variable_of(result._data, site)
        what = results.words_for(result._data)
        place = quote(site) if variable else where(site)
        ranked.append((0 if variable else 1, Share(what, place, None, part._values())))
        size = result.shape[0] if result.shape else 0
        for index in (size - 1, 0) if variable and 1 < size <= MAX_EXAMPLES else ():
            mask = np.zeros(result.shape, result.dtype)
            mask[index] = 1.0
            part = tape.gradient(result, x, Tensor(mask * slope._values()))
            if part is not None:
                ranked.append((2, Share(what, quote(site), index, part._values())))
    ranked.reverse()
    return [share for _, share in sorted(ranked, key=lambda pair: pair[0])]
