"""The number of threads of NumPy's BLAS: some matrix products have other bits on other numbers."""

import ctypes
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from tinygrad_cg_kernels.runtime.threads import SingleThread

_NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
)


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions of OpenBLAS that get and set the number; None for another BLAS.

    A search in NumPy's extension module finds the libraries that it is linked to, but on Windows,
    where the library lies beside the package.
    """
    core = np._core._multiarray_umath.__file__  # pyright: ignore[reportAttributeAccessIssue]
    beside = Path(np.__file__).parent.with_name("numpy.libs")
    for path in (core, *map(str, beside.glob("*openblas*"))):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for name in _NAMES:
            set_number = getattr(library, name.format("set"), None)
            if set_number is not None:
                get_number = getattr(library, name.format("get"))
                get_number.argtypes, get_number.restype = [], ctypes.c_int
                set_number.argtypes, set_number.restype = [ctypes.c_int], None
                return get_number, set_number
    return None


def get_num_threads() -> int:
    """Return the number of threads of matrix products; 1 if the BLAS is not OpenBLAS."""
    functions = _functions()
    return 1 if functions is None else functions[0]()


def set_num_threads(count: int) -> None:
    """Set the number of threads of matrix products; without effect if the BLAS is not OpenBLAS."""
    functions = _functions()
    if functions is not None:
        functions[1](count)


single_thread = SingleThread(get_num_threads, set_num_threads)
