"""NumPy's BLAS: its number of threads, and what NumPy itself does not call.

Some matrix products have other bits on other numbers of threads.
"""

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.threads import SingleThread

_PREFIXES, _SUFFIXES = ("scipy_", ""), ("64_", "")  # of the names in NumPy's wheels, and others


def _symbol(library: ctypes.CDLL, name: str) -> Any:
    """Return a function of OpenBLAS, and the type of its integers; None if there is none."""
    for prefix in _PREFIXES:
        for suffix in _SUFFIXES:
            function = getattr(library, f"{prefix}{name}{suffix}", None)
            if function is not None:
                return function, ctypes.c_int64 if suffix else ctypes.c_int
    return None


@cache
def _openblas() -> ctypes.CDLL | None:
    """Return the library that NumPy's products call; None if it is not OpenBLAS.

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
        if _symbol(library, "openblas_set_num_threads"):
            return library
    return None


@cache
def _functions() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return the functions of OpenBLAS that get and set the number of threads."""
    library = _openblas()
    if library is None:
        return None
    (get_number, _), (set_number, _) = (
        _symbol(library, f"openblas_{verb}_num_threads") for verb in ("get", "set")
    )
    get_number.argtypes, get_number.restype = [], ctypes.c_int
    set_number.argtypes, set_number.restype = [ctypes.c_int], None
    return get_number, set_number


@cache
def product(char: str) -> int:
    """Return the address of OpenBLAS's product of float32 ("f") or float64 ("d"); 0 if none."""
    library, name = _openblas(), {"f": "sgemm_", "d": "dgemm_"}.get(char)
    symbol = _symbol(library, name) if library is not None and name else None
    return ctypes.cast(symbol[0], ctypes.c_void_p).value or 0 if symbol else 0


@cache
def triangular_solver(char: str) -> Callable[..., None] | None:
    """Return OpenBLAS's solution of triangular systems for float32 ("f") or float64 ("d").

    ``solve(x, out, lower, turned)`` replaces the right sides `out` (n, columns) of one system;
    `turned` says that the array `x` is the transpose of the matrix. Both are in C order. The result
    is None for another dtype, and without OpenBLAS.
    """
    library, name = _openblas(), {"f": "cblas_strsm", "d": "cblas_dtrsm"}.get(char)
    symbol = _symbol(library, name) if library is not None and name else None
    if symbol is None:
        return None
    function, integer = symbol
    number = ctypes.c_float if char == "f" else ctypes.c_double
    array = [ctypes.c_void_p, integer]
    function.argtypes = [ctypes.c_int] * 5 + [integer] * 2 + [number, *array, *array]
    function.restype = None

    def solve(x: np.ndarray, out: np.ndarray, lower: bool, turned: bool) -> None:
        triangle = _LOWER if lower != turned else _UPPER
        transposed = _TRANSPOSED if turned else _AS_IT_IS
        options = _ROW_MAJOR, _LEFT, triangle, transposed, _ANY_DIAGONAL
        rows, columns = out.shape
        matrix, right = (array.__array_interface__["data"][0] for array in (x, out))
        function(*options, rows, columns, 1.0, matrix, rows, right, columns)

    return solve


_ROW_MAJOR, _LEFT, _UPPER, _LOWER = 101, 141, 121, 122  # CBLAS's numbers
_AS_IT_IS, _TRANSPOSED, _ANY_DIAGONAL = 111, 112, 131


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


MAX_ALONE = 256
"""One thread factorizes a matrix of at most this many rows. Two threads took longer for 100 to 200
rows, and waited for each other for milliseconds next to a busy process."""


def threads_for(rows: int) -> AbstractContextManager[None]:
    """Return a context in which NumPy's BLAS uses one thread, if matrices have few rows."""
    return single_thread if rows <= MAX_ALONE else nullcontext()
