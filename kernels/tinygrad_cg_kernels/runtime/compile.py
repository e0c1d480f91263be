"""The only module with Numba policy: flags, the cache folder, and how kernels are entered.

A kernel is a Python function built by a template (a function that closes over scalar
functions). It is compiled for explicit signatures, never by the dispatcher's own guess, so
read-only arrays need no second compilation.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

import numba
import numpy as np
from numba import types
from numba.core.ccallback import CFunc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.extending import overload, register_jitable

from tinygrad_cg_kernels.runtime import progress
from tinygrad_cg_kernels.runtime.locks import ForkLock, no_collection

GENERATED = "tinygrad_cg_generated_"
"""The prefix of the names of modules with generated text."""

PACKAGE = Path(__file__).parent.parent


def digests(package: Path) -> dict[Path, bytes]:
    """Return the hashes of all sources under a folder."""
    sources = sorted(path for path in package.rglob("*.*") if path.suffix in (".py", ".ll"))
    return {source: hashlib.sha256(source.read_bytes()).digest() for source in sources}


def stamp(sources: dict[Path, bytes], package: Path, *versions: str) -> str:
    """Return one hash of sources, by their paths in a package and their hashes, and of versions."""
    digest = hashlib.sha256("\0".join(versions).encode())
    for source, own in sources.items():
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(own)
    return digest.hexdigest()


_sources = digests(PACKAGE)
"""The sources as they were when they were imported."""
STAMP = stamp(_sources, PACKAGE, np.__version__)
"""sha256 of the kernels' sources and of NumPy's version. It names the cache folder: the offsets of
fields in NumPy's arrays are compiled in (see `objects`)."""


def is_changed(file: str) -> bool:
    """Return whether a source of ours is another one than was imported: of a later version, say."""
    known = _sources.get(Path(file))
    try:
        return known is not None and hashlib.sha256(Path(file).read_bytes()).digest() != known
    except OSError:
        return True


# Of the fast-math flags only contraction keeps results: reassociation breaks the two-step
# argument reductions, nnan breaks isnan. The numpy error model removes the check (and the
# branch that stops vectorisation) at each division.
FLAGS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
NO_WRAPPER: dict[str, Any] = {"no_cfunc_wrapper": True}
"""For what is called from Python and from other kernels: an entry for C, which Numba makes of
each function by default, takes a sixth of the time."""

compiled: list[str] = []
"""The kernels that this process compiled, in order."""
loaded: list[str] = []
"""Those that it found in the cache."""

_lock = ForkLock()
if hasattr(os, "register_at_fork"):  # Numba's own lock: no other thread may be compiling
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinygrad_cg"


DAY = 24 * 3600.0
KEPT = 3  # folders of other versions that stay, however old
LOCKS = 64  # files by which processes wait for one another
REMOVED = 16  # at most so many are removed by one process
_OURS = re.compile(r"[0-9a-f]{16}")
_OUR_FILE = re.compile(
    rf"\.nb[ic](\.tmp\.\w+)?$|^\d+\.lock$|^{GENERATED}\w+\.(py|used)$|^[0-9a-f]{{32}}\.code$"
)


@cache
def _writable(folder: Path) -> bool:
    """Return whether files can be created in a folder, which is created if needed.

    A new one ends the time of old ones in the same folder.
    """
    try:
        new = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if new:
            _remove_stale(folder)
        elif time.time() - folder.stat().st_mtime > DAY / 24:
            os.utime(folder)  # it is in use
        return True
    except OSError:
        return False


def _remove_stale(folder: Path) -> None:
    """Remove folders of other versions of the kernels that were not used for a day.

    The latest few stay. Should a process still use one that goes, it compiles again.
    """
    others = [
        (one.stat().st_mtime, one)
        for one in folder.parent.iterdir()
        if one != folder and _is_cache(one)
    ]
    others.sort(reverse=True)
    for used, stale in others[KEPT : KEPT + REMOVED]:
        if time.time() - used > DAY:
            shutil.rmtree(stale, ignore_errors=True)


def _is_cache(folder: Path) -> bool:
    """Return whether a folder is one of ours: by its name, and by holding our files alone."""
    if not _OURS.fullmatch(folder.name) or folder.is_symlink() or not folder.is_dir():
        return False
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return all(_OUR_FILE.search(path.name) for path in files)


def cache_folder() -> Path | None:
    """Return the folder of compiled kernels: TINYGRAD_CG_CACHE_DIR, or the user's cache folder.

    Code is run from there, so nobody else may write to it. If others may, it is a folder for the
    user alone among the system's temporary ones. None if it cannot be written: kernels are then
    compiled anew in each process.
    """
    chosen = os.environ.get("TINYGRAD_CG_CACHE_DIR")
    try:
        folder = (Path(chosen) if chosen else _user_cache()) / STAMP[:16]
    except RuntimeError:  # the user has no home
        return None
    if not _writable(folder) or _is_private(folder):
        return folder if _writable(folder) else None
    return _instead_of(folder)


@cache
def _is_private(folder: Path) -> bool:
    """Return whether only this user can write to a folder (where the system can tell)."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        known = folder.stat()
    except OSError:
        return False
    return known.st_uid == os.geteuid() and not known.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _instead_of(folder: Path) -> Path | None:
    """Return a private folder in place of one to which others can write, with a warning."""
    base = Path(tempfile.gettempdir()) / f"tinygrad_cg-{os.geteuid()}"
    private = base / folder.name
    usable = _writable(private) and _is_private(base) and _is_private(private)
    warnings.warn(
        f"tinygrad_cg: the cache folder {folder} belongs to another user, or others can write to "
        f"it, and compiled code is run from there: {private if usable else 'no folder'} is used "
        "instead. Remove the folder, or let TINYGRAD_CG_CACHE_DIR name one of your own",
        RuntimeWarning,
        stacklevel=2,
    )
    return private if usable else None


def read_file(path: Path) -> bytes:
    """Return what is in a file; OSError if it is no regular file, without waiting for a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read()


def is_ours(function: Callable) -> bool:
    """Return whether the STAMP covers this function's source, so that its code may be cached.

    Generated text is covered by the name of its module, see `generated`.
    """
    module = function.__module__ or ""  # None for code made by exec
    return module.partition(".")[0] == __name__.partition(".")[0] or module.startswith(GENERATED)


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes from compiling the same kernel meanwhile: they find it in the cache.

    Processes that start together, as a test run's do, would compile each kernel several times.
    """
    folder = cache_folder()
    if folder is None or fcntl is None:
        yield
        return
    key = hashlib.sha256(name.encode()).digest()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # a file system without locks: compile anyway
            path = folder / f"{key[0] % LOCKS:02}.lock"
            file = stack.enter_context(os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)))
            fcntl.flock(file, fcntl.LOCK_EX)
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)  # also for a child that has the file
        yield


def warn_damaged(path: Path) -> None:
    warnings.warn(
        f"tinygrad_cg: the compiled code in {path} is damaged: it is compiled anew",
        RuntimeWarning,
        stacklevel=2,
    )


def _set_name(function: Callable, name: str) -> Callable:
    """Set the name of a kernel, which tracebacks take."""
    function.__name__ = name
    function.__qualname__ = name
    return function


def kernel(function: Callable, name: str, **flags: Any) -> Any:
    """Return a dispatcher for `function`, lazily compiled, under the project's flags."""
    return numba.njit(**FLAGS, **NO_WRAPPER, **flags)(_set_name(function, name))


BLOCK = types.void(*[types.intp] * 3)
"""What block kernels take: the address of a table, the first unit of work, and how many units. That
is all that the thread splitter knows of a kernel, so one compiled splitter serves every kernel."""


def block_address(function: Callable, name: str, signature: Any = BLOCK) -> tuple[int, Any]:
    """Compile to a C function; its address, and its owner.

    Keep the owner alive while the address is used.
    """
    kind = normalize_signature(signature)
    with progress.compiling(), _lock, no_collection():
        register_helpers()
        owner: Any = CFunc(_set_name(function, name), kind, locals={}, options=dict(FLAGS))
        owner.compile()
    compiled.append(name)
    return owner.address, owner


def array_type(dtype: np.dtype, ndim: int, layout: str = "C") -> types.Array:
    """Return the Numba type of an aligned array, as kernels are compiled for."""
    return types.Array(numba.from_dtype(dtype), ndim, layout)


def entry(dispatcher: Any, *argument_types: types.Type) -> Callable:
    """Compile for these types and return the quickest way in.

    The entry point takes 150 ns where the dispatcher takes 250 to 460, since it checks
    neither dtype, rank nor layout: the caller must have done that. A Numba without the
    attribute serves through the dispatcher itself.
    """
    with progress.compiling(), _lock, no_collection():
        register_helpers()
        dispatcher.compile(argument_types)
    try:
        compiled.append(dispatcher.py_func.__name__)
        return dispatcher.overloads[argument_types].entry_point
    except (AttributeError, KeyError):
        return dispatcher


def call_of(f: Callable, inputs: int) -> Callable:
    """Return a function that calls one which kernels can call, with 1 to 3 numbers."""
    return (lambda x: f(x), lambda x, y: f(x, y), lambda x, y, z: f(x, y, z))[inputs - 1]


def overload_of(function: Callable, kinds: tuple[types.Type, ...]) -> Any:
    """Compile a function of these types for nobody but the caller; Numba's record of it."""
    dispatcher: Any = numba.njit(**FLAGS, **NO_WRAPPER)(function)
    with _lock, no_collection():
        register_helpers()
        dispatcher.compile(kinds)
    return dispatcher.overloads[kinds]


_waiting: deque[Callable[[], Any]] = deque()


def register_helpers() -> None:
    """Tell Numba of helpers and intrinsics, before it first compiles what may use them.

    At import that would take a fifth of the time.
    """
    from tinygrad_cg_kernels.runtime import numba_intrinsics

    numba_intrinsics.register_rows()
    while _waiting:
        _waiting.popleft()()


def jitable(function: Callable) -> Callable:
    """Mark a helper as callable from kernels.

    Kernels close over such functions and never over dispatchers, which would miss the disk cache in
    every process.
    """
    _waiting.append(lambda: register_jitable(**NO_WRAPPER)(function))
    return function


@cache
def outside(function: Callable) -> Callable:
    """Return a helper of float64 as a function of arrays, for calls outside compiled code."""
    register_helpers()
    wide = np.float64
    calls = (
        lambda x: function(wide(x)),
        lambda x, y: function(wide(x), wide(y)),
        lambda x, y, z: function(wide(x), wide(y), wide(z)),
    )
    compiled: Any = numba.njit(**FLAGS)(calls[function.__code__.co_argcount - 1])
    return np.errstate(all="ignore")(np.vectorize(compiled))


def in_float64(formula: Callable) -> dict[Any, Callable]:
    """Return the versions of a function whose formula takes and gives float64."""
    calls = (
        lambda x: np.float32(formula(np.float64(x))),
        lambda x, y: np.float32(formula(np.float64(x), np.float64(y))),
        lambda x, y, z: np.float32(formula(np.float64(x), np.float64(y), np.float64(z))),
    )
    return {types.float64: formula, types.float32: calls[formula.__code__.co_argcount - 1]}


_foreign: set[Callable] = set()


def scalar_function(function: Callable) -> Callable:
    """Return a function as kernels can call it: ours as it is, a user's made known to Numba."""
    if not (is_ours(function) or hasattr(function, "py_func") or function in _foreign):
        _foreign.add(function)
        jitable(function)
    return function


GUARDED: dict[Callable, tuple[Callable, Callable]] = {}
"""Functions right everywhere that are faster where a test holds: the test, and the fast version."""

BY_VALUE: dict[Callable, tuple[Callable, Callable]] = {}
"""Derivatives by an argument and the function's value: a test, and a formula that needs the value
alone and is right where the test holds. Functions of vectors test; a loop that has the function
shares what both compute."""

VERSIONS: dict[Callable, Callable[[Any], Callable | None]] = {}
"""For functions with versions by type: what picks one for the first argument's."""


def has_version(function: Callable, first: Any) -> bool | None:
    """Return whether a function has a version for its first argument's type; None without any."""
    pick = VERSIONS.get(function)
    return None if pick is None else pick(first) is not None


def by_type(stub: Callable, choices: dict[Any, Callable]) -> Callable:
    """Let compiled calls of `stub` take the version for their first argument's type.

    `choices` maps Numba types, or classes of them, to functions with the stub's parameters;
    the first match serves.
    """

    def pick(first: Any) -> Callable | None:
        for key, version in choices.items():
            if first == key or (isinstance(key, type) and isinstance(first, key)):
                return version
        return None

    def unary(x):
        return pick(x)

    def binary(x, y):
        return pick(x)

    def ternary(x, y, z):
        return pick(x)

    VERSIONS[stub] = pick
    chooser = {1: unary, 2: binary, 3: ternary}[stub.__code__.co_argcount]
    options: Any = NO_WRAPPER
    _waiting.append(lambda: overload(stub, options, strict=False)(chooser))
    return stub
