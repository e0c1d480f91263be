"""Steps of an executable's call: which arrays each one uses, and when their memory is free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .buffers import MAX_ARRAY_BYTES, MAX_BYTES, Scratch, Span, offsets

Names = Sequence[str]


class Steps:
    """Steps that compute arrays from arrays. Each array has a name of its own.

    A step has lines of code, the names they use, and the names that they bind to a new object.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[Names, Names, Names]] = []
        self._empty: dict[str, tuple[int, tuple[int, ...], np.dtype]] = {}  # that kernels fill
        self._views: dict[str, Names] = {}  # by name, the arrays it may be a view of
        self._shown: set[str] = set()  # arrays that an operation may keep

    def add(self, *lines: str, uses: Names, makes: Names = ()) -> None:
        """Add a step that writes to arrays, or makes arrays."""
        self.steps.append((lines, uses, makes))

    def empty(self, name: str, shape: tuple[int, ...], dtype: np.dtype, line: str) -> None:
        """Add a step that makes an array for kernels to fill."""
        self._empty[name] = len(self.steps), shape, dtype
        self.add(line, uses=[name], makes=[name])

    def operation(self, name: str, line: str, operands: Names, views: bool, keeps: bool) -> None:
        """Add an operation: its result may be a view of operands (`views`), or it may keep them."""
        self.add(line, uses=[name, *operands], makes=[name])
        if views:
            self._views[name] = operands
        if keeps:
            self._shown.update(operands)

    def finish(
        self, results: Names, returned: set[str], keeps: bool
    ) -> tuple[list[str], Scratch | None]:
        """Return the lines of a call, and the arrays it keeps from call to call, if `keeps`.

        `results` are the expressions of the results, which use the names in `returned`.
        """
        for name, operands in reversed(self._views.items()):
            self._shown.update(operands if name in self._shown else ())
        last: dict[str, int] = {}  # the last step that uses each name, in order of first use
        for k, (_, uses, _) in enumerate(self.steps):
            last.update(dict.fromkeys(uses, k))
        last.update(dict.fromkeys(returned, len(self.steps)))
        lives = dict(last)
        for name, operands in reversed(self._views.items()):
            for operand in operands:  # as long as a view of it is in use
                lives[operand] = max(lives[operand], lives[name])
        inner = [
            Span(name, shape, dtype, step, lives[name])
            for name, (step, shape, dtype) in self._empty.items()
            if name not in returned | self._shown
        ]
        small = [span for span in inner if span.size <= MAX_ARRAY_BYTES]
        kept = small if keeps and small and offsets(small)[1] <= MAX_BYTES else []
        lines = self._lines(last, {span.name for span in kept})
        result = ", ".join(results)
        if not kept:
            return [*lines, f"return [{result}]"], None
        names = ", ".join(span.name for span in kept)
        lines = ["scratch = take()", f"{names}, = scratch", *lines]
        return [*lines, f"results = [{result}]", "give(scratch)", "return results"], Scratch(kept)

    def _lines(self, last: dict[str, int], kept: set[str]) -> list[str]:
        """Return the lines, and release each array that a step made after its last use."""
        names = {name for _, _, makes in self.steps for name in makes} - kept
        unused: dict[int, list[str]] = {}
        for name, k in last.items():
            if name in names and k + 1 < len(self.steps):
                unused.setdefault(k, []).append(name)
        skipped = {self._empty[name][0] for name in kept}
        lines: list[str] = []
        for k, (own, _, _) in enumerate(self.steps):
            lines += () if k in skipped else own
            lines += [f"del {', '.join(unused[k])}"] if k in unused else []
        return lines
