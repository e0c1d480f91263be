"""What the front end has to know about the functions it may translate, and the processor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Library(Protocol):
    """The functions that may be translated, and their properties."""

    def owns(self, function: Callable) -> bool:
        """Return whether a function may be translated from its source."""
        ...

    def has_formulas(self, module: str) -> bool:
        """Return whether the functions of a module are formulas, which take and return numbers.

        Programs call formulas that were optimised before. Kernels have long formulas in modules of
        their own.
        """
        ...

    def version(self, function: Callable, kind: Any) -> Callable:
        """Return a function's version for its first argument's type, or the function itself.

        It raises Unsupported if the function has versions, but none for this type.
        """
        ...

    def is_changed(self, file: str) -> bool:
        """Return whether a file has changed since it was imported."""
        ...


class Processor(NamedTuple):
    """The processor that runs the code, and the number of cores that may compile."""

    vector_bits: int
    fuses: bool
    """Whether it multiplies and adds in one instruction."""
    cores: int

    @property
    def wide(self) -> str:
        """LLVM's attributes of functions that use the widest vectors."""
        bits = self.vector_bits
        return f'nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"'
