"""The steps of an executable's call: the arrays that each uses, and when their memory is free."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .buffers import KEPT, SMALL, Scratch, Span, offsets


class CallStep(NamedTuple):
    """Lines of the call that belong together.

    `uses` are the arrays that they name, `makes` those of them that they bind to a new object.
    """

    lines: tuple[str, ...]
    uses: tuple[str, ...]
    makes: tuple[str, ...] = ()


class Steps:
    """Steps that compute arrays from arrays, each array under a name of its own."""

    def __init__(self) -> None:
        self.steps: list[CallStep] = []
        self._empty: dict[str, tuple[int, tuple[int, ...], np.dtype]] = {}  # made for kernels
        self._views: dict[str, Iterable[str]] = {}  # by name, what it may be a view of
        self._shown: set[str] = set()  # to operations that may keep them

    def add(self, *lines: str, uses: Iterable[str], makes: Iterable[str] = ()) -> None:
        """Add a step that writes elements of some arrays, or makes arrays."""
        self.steps.append(CallStep(lines, tuple(uses), tuple(makes)))

    def empty(self, name: str, shape: tuple[int, ...], dtype: np.dtype, line: str) -> None:
        """Add a step that makes an array which kernels fill."""
        self._empty[name] = len(self.steps), shape, dtype
        self.add(line, uses=[name], makes=[name])

    def operation(
        self, name: str, line: str, operands: Sequence[str], views: bool, keeps: bool
    ) -> None:
        """Add a step that runs an operation on arrays.

        The result may be a view of its operands, or it may keep them, and who knows for how long.
        """
        self.add(line, uses=[name, *operands], makes=[name])
        if views:
            self._views[name] = operands
        if keeps:
            self._shown.update(operands)

    def finish(
        self, results: Sequence[str], returned: set[str]
    ) -> tuple[list[str], Scratch | None]:
        """Return the lines of the call, with its return, and the small arrays that it keeps.

        `results` are the expressions of what it returns, `returned` the arrays in them.
        """
        for name, operands in reversed(self._views.items()):
            self._shown.update(operands if name in self._shown else ())
        last: dict[str, int] = {}  # by name the last step that uses it, in the order of first uses
        for k, step in enumerate(self.steps):
            last.update(dict.fromkeys(step.uses, k))
        last.update(dict.fromkeys(returned, len(self.steps)))
        lives = dict(last)
        for name, operands in reversed(self._views.items()):
            for one in operands:  # in use as long as a view of it
                lives[one] = max(lives[one], lives[name])
        inner = [
            Span(name, shape, dtype, step, lives[name])
            for name, (step, shape, dtype) in self._empty.items()
            if name not in returned | self._shown
        ]
        small = [one for one in inner if one.size <= SMALL]
        kept = small if small and offsets(small)[1] <= KEPT else []
        lines = self._lines(last, {one.name for one in kept})
        result = ", ".join(results)
        if not kept:
            return [*lines, f"return [{result}]"], None
        names = ", ".join(one.name for one in kept)
        lines = ["scratch = take()", f"{names}, = scratch", *lines]
        return [*lines, f"results = [{result}]", "give(scratch)", "return results"], Scratch(kept)

    def _lines(self, last: dict[str, int], kept: set[str]) -> list[str]:
        """Return the lines, and after its last use the release of each array that a step made."""
        made = {name for step in self.steps for name in step.makes} - kept
        unused: dict[int, list[str]] = {}
        for name, k in last.items():
            if name in made and k + 1 < len(self.steps):
                unused.setdefault(k, []).append(name)
        skipped = {self._empty[name][0] for name in kept}
        lines: list[str] = []
        for k, step in enumerate(self.steps):
            lines += () if k in skipped else step.lines
            lines += [f"del {', '.join(unused[k])}"] if k in unused else []
        return lines
