"""LLVM's text with what it takes to compile it, and the levels at which that is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

BASELINE, BASELINE_LONG, OPTIMIZED = 0, 1, 2
"""Levels of optimisation. Baseline code is soon replaced: its variables become registers, and
little else is done. That of a long formula computes for a while before it is replaced: LLVM selects
better instructions for it. All other code is optimized."""


class LLVMSource(NamedTuple):
    """The text of a module, those of modules that are linked in, and LLVM's level for it.

    The code of `parts` is joined to its own: these call each other.
    """

    text: str
    linked: Sequence[str] = ()
    level: int = OPTIMIZED
    parts: Sequence[LLVMSource] = ()
    job: Any = None
    """What another core has begun: it is called for the code, and `is_over` once that is there."""

    @property
    def size(self) -> int:
        return sum(map(len, self.linked), len(self.text))


Begin = Callable[[LLVMSource], LLVMSource]
"""Has another core compile a module, and returns the source of which it does."""
