"""The lines of a program's call: which array is used where, and what becomes of its memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from .buffers import KEPT, SMALL, Scratch, Span, places

_ARRAY = re.compile(r"\b[vx]\d+\b")
_MAKES = re.compile(r"(v\d+, )*v\d+,? = ")


class Steps:
    """Lines that compute arrays from arrays, each under a name of its own."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._empty: dict[str, tuple[int, tuple[int, ...], np.dtype]] = {}
        self._behind: dict[str, list[str]] = {}
        self._shown: set[str] = set()

    def add(self, *lines: str) -> None:
        self.lines += lines

    def empty(self, name: str, shape: tuple[int, ...], dtype: np.dtype, text: str) -> None:
        """A line that makes an array which kernels fill."""
        self._empty[name] = len(self.lines), shape, dtype
        self.lines.append(text)

    def operation(
        self, name: str, text: str, operands: Iterable[str], views: bool, keeps: bool
    ) -> None:
        """A line that runs an operation on whole arrays.

        The result may be a view of its operands, or it may keep them, and who knows for how long.
        """
        self.lines.append(text)
        if views:
            self._behind[name] = list(operands)
        if keeps:
            self._shown.update(operands)

    def finished(self, results: Sequence[str]) -> tuple[list[str], Scratch | None]:
        """The lines of the call, up to its return, and the small arrays that it keeps."""
        returned = set(_ARRAY.findall(" ".join(results)))
        for view, operands in reversed(self._behind.items()):
            self._shown.update(operands if view in self._shown else ())
        last = self._last_uses(returned)
        inner = [
            Span(name, shape, dtype, place, last[name])
            for name, (place, shape, dtype) in self._empty.items()
            if name not in returned | self._shown
        ]
        small = [one for one in inner if one.size <= SMALL]
        kept = small if small and places(small)[1] <= KEPT else []
        lines = self._released(returned, {one.name for one in kept})
        result = ", ".join(results)
        if not kept:
            return [*lines, f"return [{result}]"], None
        names = ", ".join(one.name for one in kept)
        lines = ["scratch = take()", f"{names}, = scratch", *lines]
        return [*lines, f"results = [{result}]", "give(scratch)", "return results"], Scratch(kept)

    def _last_uses(self, returned: set[str]) -> dict[str, int]:
        """By name, the last line that uses an array or a view of it."""
        last: dict[str, int] = {}
        for place, line in enumerate(self.lines):
            last.update(dict.fromkeys(_ARRAY.findall(line), place))
        last.update(dict.fromkeys(returned, len(self.lines)))
        for view, operands in reversed(self._behind.items()):
            for one in operands:
                last[one] = max(last[one], last[view])
        return last

    def _released(self, returned: set[str], kept: set[str]) -> list[str]:
        """The lines, and after its last use the release of each array that one of them made."""
        dropped = {self._empty[name][0] for name in kept}
        made, last = set(), {}
        for place, line in enumerate(self.lines):
            if found := _MAKES.match(line):
                made.update(found[0].removesuffix(" = ").rstrip(",").split(", "))
            last.update(dict.fromkeys(_ARRAY.findall(line), place))
        others = made - returned - kept
        unused: dict[int, list[str]] = {}
        for name, place in last.items():
            if name in others and place + 1 < len(self.lines):
                unused.setdefault(place, []).append(name)
        lines: list[str] = []
        for place, line in enumerate(self.lines):
            lines += [] if place in dropped else [line]
            lines += [f"del {', '.join(unused[place])}"] if place in unused else []
        return lines
