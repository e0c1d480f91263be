"""LLVM's text, with what is needed to compile it, and the levels of optimisation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

BASELINE, BASELINE_LONG, OPTIMIZED = 0, 1, 2
"""Levels of optimisation. Baseline code is soon replaced, so LLVM only moves its variables to
registers. Baseline code of a long formula runs for longer, so LLVM also selects better
instructions. Code of programs around the calls of kernels runs once per call, so it stays baseline
code. All other code is optimized."""


class LLVMSource(NamedTuple):
    """The text of a module, the texts of modules that are linked in, and LLVM's level.

    `parts` are further modules, which this one calls: their code is joined to its code.
    """

    text: str
    linked: Sequence[str] = ()
    level: int = OPTIMIZED
    parts: Sequence[LLVMSource] = ()
    job: Any = None
    """Another core's compilation of this source. Calling it returns the code."""

    @property
    def size(self) -> int:
        return sum(map(len, self.linked), len(self.text))
