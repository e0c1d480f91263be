"""Tables of compiled kernels, by dtypes. A kernel is compiled on first use."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from tinygrad_cg_frontend import Array, Unsupported, name_of
from tinygrad_cg_kernels.runtime import service, signatures
from tinygrad_cg_kernels.runtime.compile import CompileError
from tinygrad_cg_kernels.runtime.promotion import no_kernel


class Entries(dict[Any, Any]):
    """The compiled forms of one operation, by a key of dtypes. Missing ones are compiled.

    Parameters
    ----------
    name : the operation's name in errors.
    compiled : ``compiled(*key)`` returns the entry, and the object that owns its code.

    `owners` has the owners of the code, by the same keys.
    """

    def __init__(self, name: str, compiled: Callable[..., tuple[Any, Any]]) -> None:
        super().__init__()
        self.name = name
        self.owners: dict[Any, Any] = {}
        self._compiled = compiled

    def __missing__(self, key: Any) -> Any:
        with service.lock:  # replacing an owner would free code that another thread uses
            if key not in self:
                try:
                    entry, owner = self._compiled(*key)
                except (CompileError, Unsupported) as error:
                    dtypes = [part for part in key if isinstance(part, np.dtype)]
                    raise TypeError(no_kernel(self.name, *dtypes[:1])) from error
                self.owners[key] = owner
                self[key] = entry
            return self[key]

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.owners.clear()


class Blocks(Entries):
    """The addresses of an operation's block kernels.

    ``template(*key)`` returns the name and the function of a kernel.
    """

    def __init__(
        self, name: str, template: Callable[..., tuple[str, Callable]], cached: bool = True
    ) -> None:
        def compiled(*key: Any) -> service.Entry:
            title, function = template(*key)
            source = service.KernelSource(function, title, cached)
            return service.compile(source, signatures.BLOCKS)

        super().__init__(name, compiled)
        self.template = template


def compile_together(*several: tuple[Blocks, tuple]) -> None:
    """Compile kernels on all cores. Each is given by an operation's table and a key."""
    named = [blocks.template(*key) for blocks, key in several]
    sources = [service.KernelSource(function, title) for title, function in named]
    with service.compile_batch((source, signatures.BLOCKS) for source in sources):
        for entries, key in several:
            entries[key]


def array_type(dtype: np.dtype) -> Array:
    """Return the type of aligned and contiguous arrays of a dtype."""
    return Array(name_of(dtype))


def numbers(count: int) -> tuple[str, ...]:
    """Return the type of a tuple of `count` unsigned sizes or steps."""
    return ("u64",) * count


class ByDtype:
    """A kernel with one entry per dtype. ``arguments(dtype)`` returns its argument types."""

    def __init__(
        self, function: Callable, name: str, arguments: Callable[[np.dtype], tuple[Any, ...]]
    ) -> None:
        self.name = name
        source = service.KernelSource(function, name)
        self.entries = Entries(
            name,
            lambda dtype: service.compile(source, signatures.arrays(*arguments(dtype))),
        )

    def __call__(self, dtype: np.dtype, *operands: Any) -> None:
        """Run on operands, which have exactly the types of ``arguments(dtype)``."""
        self.entries[dtype,](*operands)


@cache
def words(dtype: np.dtype) -> tuple[np.dtype, int]:
    """Return an unsigned dtype of the same bits as `dtype`, and how many make up one element.

    Kernels that only copy use it, so they are compiled at most four times.
    """
    size = min(dtype.itemsize, 8)
    return np.dtype(f"u{size}"), dtype.itemsize // size
