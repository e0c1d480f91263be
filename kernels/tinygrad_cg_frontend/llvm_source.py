"""LLVM's text with what it takes to compile it, and the levels at which that is done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

UNOPTIMISED, HEAVY, SUMS, AS_WRITTEN, WITHOUT_LOOPS, LEVEL, FORMULAS = -3, -2, -1, 0, 1, 2, 3
"""Levels of optimisation: for text that is soon replaced (its variables become registers, and
little else is done); for such text that computes for long before it is; for such text with loops
that say themselves whether they are vectors; for text that was written by hand; for functions whose
loops are few rounds (no vectors, nothing unrolled); for loops; for the formulas of elementary
functions. The last takes a quarter more time than the one before; it made no loop quicker, and sin
and tanh by a fifth."""


class LLVMSource(NamedTuple):
    """The text of a module, those of modules that are linked in, and LLVM's level for it.

    The code of `parts` is joined to its own: these call each other.
    """

    text: str
    linked: Sequence[str] = ()
    level: int = LEVEL
    parts: Sequence[LLVMSource] = ()
    job: Any = None
    """What another core has begun: it is called for the code, and `is_over` once that is there."""

    @property
    def size(self) -> int:
        return sum(map(len, self.linked), len(self.text))


Begin = Callable[[LLVMSource], LLVMSource]
"""Has another core compile a module, and returns the source of which it does."""
