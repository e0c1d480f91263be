"""What leads through each operation of a function that has a rule, by the operations' own rules."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._core.levels import Level, state
from .._core.primitive import apply
from .._core.record import nodes_of
from .._core.tensor import Tensor
from .._rules.rebinding import rebind_outputs
from .._transforms.tape import GradientTape
from ..errors import users_line
from .problem import CheckedFunction, Point
from .report import where
from .rewrite import line_of

MOST = 40  # results of operations to look at
EXAMPLES = 32  # of a batch, of which the first and the last one are looked at


class Share(NamedTuple):
    """A part of a gradient, and what a rule without it does, in words."""

    words: str
    gradient: np.ndarray


class _Results(Level):
    """A level that keeps the results of operations that other operations take."""

    def __init__(self) -> None:
        self.taken: dict[int, tuple[str, tuple[str, int], Tensor]] = {}
        self._made: dict[int, tuple[str, tuple[str, int], Any]] = {}
        self._last: dict[tuple[str, int], int] = {}  # the last result of each line

    def process(self, primitive: Any, inputs: tuple, params: dict) -> Any:
        for tensor in inputs:
            key = id(tensor._data)
            if key in self._made and any(nodes_of(tensor._rec)):
                operation, site, _ = self._made[key]
                self.taken.setdefault(key, (operation, site, tensor))
        out = apply(primitive, inputs, params)
        for tensor in out if isinstance(out, list) else [out]:
            site = users_line()[:2]
            self._made[id(tensor._data)] = primitive.name, site, tensor._data
            self._last[site] = id(tensor._data)
        return out

    def variable_of(self, result: Tensor, site: tuple[str, int]) -> str | None:
        """Return the variable that a result is assigned to, if that is seen in its line."""
        assigned = re.match(r"(\w+)\s*=[^=;]*$", line_of(*site))
        is_last = self._last[site] == id(result._data)
        return assigned.group(1) if assigned and is_last else None

    def custom_call(self, call: Any, inputs: Sequence, outputs: Sequence) -> list:
        return rebind_outputs(state.frame, call, inputs, outputs)


def shares(
    problem: CheckedFunction, point: Point, j: int, upstreams: Sequence[np.ndarray]
) -> list[tuple[np.ndarray, list[Share]]]:
    """Return the gradient by source j, and what of it leads through results of operations.

    For each upstream, by the rules of the operations that the function is made of, and not by its
    own rule.
    """
    results = _Results()
    with problem.at(point, level=results) as sources:
        with GradientTape(persistent=True) as tape:
            tape.watch(sources)
            (output,) = problem.run_body(sources)
        gradients = []
        for upstream in upstreams:
            dy = Tensor(np.asarray(upstream, output.dtype))
            whole = tape.gradient(output, sources[j], dy)
            gradient = np.zeros(point[j].shape) if whole is None else whole._values()
            parts = _parts(tape, results, sources[j], output, dy, problem.sources[j].name)
            gradients.append((gradient, parts))
    return gradients


def _parts(
    tape: GradientTape, results: _Results, x: Any, output: Tensor, dy: Tensor, name: str
) -> list[Share]:
    """Return shares: what is named by a variable first, and the last results before others."""
    taken = list(results.taken.values())[-MOST:]
    slopes = tape.gradient(output, [result for _, _, result in taken], dy)
    ranked: list[tuple[int, Share]] = []
    for (operation, site, result), slope in zip(taken, slopes, strict=True):
        if slope is None:
            continue
        part = tape.gradient(result, x, slope)
        if part is None:
            continue
        variable = results.variable_of(result, site)
        what = f"`{variable}`" if variable else f"the result of `{operation}`"
        site_text = f"{where(site)}: {line_of(*site)}"
        words = f"It takes {what} for constant ({site_text}): it depends on {name}, too."
        ranked.append((0 if variable else 1, Share(words, part._values())))
        size = result.shape[0] if result.shape else 0
        for index in (size - 1, 0) if 1 < size <= EXAMPLES else ():
            mask = np.zeros(result.shape, result.dtype)
            mask[index] = 1.0
            part = tape.gradient(result, x, Tensor(mask * slope._values()))
            words = (
                f"What leads through index {index} of {what} ({site_text}) is missing: is an "
                "example of a batch left out?"
            )
            if part is not None:
                ranked.append((2, Share(words, part._values())))
    ranked.reverse()
    return [share for _, share in sorted(ranked, key=lambda pair: pair[0])]
