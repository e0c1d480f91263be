"""Tables of what was compiled: for each choice of dtypes, compiled when it first comes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types
from numba.core.errors import NumbaError

from tinygrad_cg_kernels.runtime.locks import ForkLock
from tinygrad_cg_kernels.runtime.native import kernels
from tinygrad_cg_kernels.runtime.promotion import no_kernel

_lock = ForkLock()


class Entries(dict[Any, Any]):
    """The compiled forms of one operation, by a key of dtypes; what is missing is compiled.

    Parameters
    ----------
    name : what errors call the operation.
    compiled : ``compiled(*key)`` returns the way in, and the object that owns its code.

    `owners` holds what Numba made, by the same keys.
    """

    def __init__(self, name: str, compiled: Callable[..., tuple[Any, Any]]) -> None:
        super().__init__()
        self.name = name
        self.owners: dict[Any, Any] = {}
        self._compiled = compiled

    def __missing__(self, key: Any) -> Any:
        with _lock:  # an owner that another thread replaced would take code in use with it
            if key not in self:
                try:
                    found, owner = self._compiled(*key)
                except NumbaError as error:
                    dtypes = [one for one in key if isinstance(one, np.dtype)]
                    raise TypeError(no_kernel(self.name, *dtypes[:1])) from error
                self.owners[key] = owner
                self[key] = found
            return self[key]

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self.owners.clear()


class Blocks(Entries):
    """The addresses of an operation's block kernels: ``template(*key)`` is a name and a function.

    The target says how they are compiled, see `kernels.CompileTarget`.
    """

    def __init__(
        self,
        name: str,
        template: Callable[..., tuple[str, Callable]],
        cached: bool = True,
        target: kernels.CompileTarget = kernels.CPU,
    ) -> None:
        def compiled(*key: Any) -> tuple[int, Any]:
            title, function = template(*key)
            return target.block(function, title, cached)

        super().__init__(name, compiled)
        self.template, self.target = template, target


def compile_together(*several: tuple[Blocks, tuple]) -> None:
    """Compile kernels, each of an operation for a key of dtypes, on all cores."""
    made = [one.template(*key) for one, key in several]
    with several[0][0].target.together((function, title) for title, function in made):
        for one, key in several:
            one[key]


def numbers(count: int) -> types.UniTuple:
    """Return the type of a tuple of sizes and steps, unsigned, that a kernel takes."""
    return types.UniTuple(types.uintp, count)


class ByDtype:
    """A kernel with one entry for each dtype; `arguments(dtype)` gives the types it takes."""

    def __init__(
        self, function: Callable, name: str, arguments: Callable[[np.dtype], tuple[types.Type, ...]]
    ) -> None:
        self.name = name
        self.entries = Entries(
            name, lambda dtype: kernels.arrays_function(function, name, arguments(dtype))
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
