"""What the front end is told: of the functions that it may read, and of the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Library(Protocol):
    """The functions that may be translated, and what is known of them."""

    def owns(self, function: Callable) -> bool:
        """Return whether a function's source may be read."""
        ...

    def has_formulas(self, module: str) -> bool:
        """Return whether functions of a module are formulas, which take and return numbers.

        Programs call formulas that were optimised before, and kernels have long ones apart.
        """
        ...

    def version(self, function: Callable, kind: Any) -> Callable:
        """Return the version of a function for its first argument's type, or the function.

        It raises Unsupported where there is none for such numbers.
        """
        ...

    def is_changed(self, file: str) -> bool:
        """Return whether a file is another one than was imported."""
        ...


class Processor(NamedTuple):
    """The processor that code is for, and how many threads may compile."""

    vector_bits: int
    fuses: bool
    """Whether it multiplies and adds in one instruction."""
    cores: int

    @property
    def wide(self) -> str:
        """LLVM's attributes of functions of whole vectors."""
        bits = self.vector_bits
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
