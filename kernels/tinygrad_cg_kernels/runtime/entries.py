"""Tables of what was compiled: for each choice of dtypes, compiled when it first comes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tinygrad_cg_frontend import Array, Unsupported, name_of
from tinygrad_cg_kernels.runtime import service, signatures
from tinygrad_cg_kernels.runtime.compile import CompileError
from tinygrad_cg_kernels.runtime.promotion import no_kernel


class Entries(dict[Any, Any]):
    """The compiled forms of one operation, by a key of dtypes; what is missing is compiled.

    Parameters
    ----------
    name : what errors call the operation.
    compiled : ``compiled(*key)`` returns the way in, and the object that owns its code.

    `owners` holds what has the code, by the same keys.
    """

    def __init__(self, name: str, compiled: Callable[..., tuple[Any, Any]]) -> None:
        super().__init__()
        self.name = name
        self.owners: dict[Any, Any] = {}
        self._compiled = compiled

    def __missing__(self, key: Any) -> Any:
        with service.lock:  # an owner that another thread replaced would take code in use with it
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

    ``template(*key)`` is a name and a function.
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
    """Compile kernels, each of an operation for a key of dtypes, on all cores."""
    named = [blocks.template(*key) for blocks, key in several]
    sources = [service.KernelSource(function, title) for title, function in named]
    with service.compile_batch((source, signatures.BLOCKS) for source in sources):
        for entries, key in several:
            entries[key]


def array_type(dtype: np.dtype) -> Array:
    """Return the type of an aligned and contiguous array, as kernels take it."""
    return Array(name_of(dtype))


def numbers(count: int) -> tuple[str, ...]:
    """Return the type of a tuple of sizes and steps, unsigned, that a kernel takes."""
    return ("u64",) * count


class ByDtype:
    """A kernel with one entry for each dtype; `arguments(dtype)` gives the types it takes."""

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
        """Run on operands of exactly the types for `dtype`."""
        self.entries[dtype,](*operands)


def words(dtype: np.dtype) -> tuple[np.dtype, int]:
    """Return an unsigned dtype that moves elements of `dtype` as bits, and how many of them it
    takes.

    So a kernel that only copies is compiled at most four times.
    """
    size = min(dtype.itemsize, 8)
    return np.dtype(f"u{size}"), dtype.itemsize // size
