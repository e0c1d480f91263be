"""Machine code on disk, with checksums. Damaged code is compiled again.

The checksum covers the name, too, so a file in the place of another one counts as damaged.

The name of a file is a hash of the code's name, the processor, and the versions that the code
depends on. The name of the folder is a hash of the sources of the kernels and the front end, and of
NumPy's version (`STAMP`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

import llvmlite
import llvmlite.binding as llvm
import numpy as np

import tinygrad_cg_frontend

PACKAGE = Path(__file__).parent.parent
FRONT_END = Path(tinygrad_cg_frontend.__file__).parent
GENERATED = "tinygrad_cg_generated_"
"""Prefix of the names of modules of generated text."""


def digests(package: Path) -> dict[Path, bytes]:
    """Return the hashes of all source files under a folder."""
    sources = sorted(package.rglob("*.py"))
    return {source: hashlib.sha256(source.read_bytes()).digest() for source in sources}


def stamp(sources: dict[Path, bytes], package: Path, *versions: str) -> str:
    """Return a hash of versions, and of the paths and hashes of a package's sources."""
    digest = hashlib.sha256("\0".join(versions).encode())
    for source, own in sources.items():
        digest.update(source.relative_to(package).as_posix().encode())
        digest.update(own)
    return digest.hexdigest()


_sources = digests(PACKAGE) | digests(FRONT_END)
"""Hashes of the sources at the time of import."""


def _current_stamp() -> str:
    ours = {source: own for source, own in _sources.items() if PACKAGE in source.parents}
    others = {source: own for source, own in _sources.items() if source not in ours}
    return stamp(ours, PACKAGE, np.__version__, stamp(others, FRONT_END))


STAMP = _current_stamp()
"""sha256 of the sources of the kernels and the front end, and of NumPy's version: compiled code
contains the offsets of fields in NumPy's arrays (see `objects`). It names the cache folder."""


def is_changed(file: str) -> bool:
    """Return whether one of our source files has changed since it was imported."""
    digest = _sources.get(Path(file))
    try:
        return digest is not None and hashlib.sha256(Path(file).read_bytes()).digest() != digest
    except OSError:
        return True


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tinygrad_cg"


DAY = 24 * 3600.0
MIN_KEPT_FOLDERS = 3
"""This many folders of other versions are kept, however old they are."""
LOCKS = 64
"""Number of files that processes lock to wait for one another."""
MAX_REMOVED_FOLDERS = 16
"""One process removes at most this many folders."""
_OURS = re.compile(r"[0-9a-f]{16}")
_OUR_FILE = re.compile(
    rf"\.nb[ic](\.tmp\.\w+)?$|^\d+\.lock$|^{GENERATED}\w+\.(py|used)$|^[0-9a-f]{{32}}\.code$"
)


@cache
def _writable(folder: Path) -> bool:
    """Return whether files can be created in a folder, which is created if needed.

    When a folder is created, old folders beside it are removed.
    """
    try:
        new = not folder.exists()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        if new:
            _remove_stale(folder)
        elif time.time() - folder.stat().st_mtime > DAY / 24:
            os.utime(folder)  # marks it as used
        return True
    except OSError:
        return False


def _remove_stale(folder: Path) -> None:
    """Remove folders of other versions that were not used for a day, except the latest few.

    If a process still uses a removed folder, it compiles again.
    """
    others = [
        (path.stat().st_mtime, path)
        for path in folder.parent.iterdir()
        if path != folder and _OURS.fullmatch(path.name)
    ]
    others.sort(reverse=True)
    for used, stale in others[MIN_KEPT_FOLDERS : MIN_KEPT_FOLDERS + MAX_REMOVED_FOLDERS]:
        if time.time() - used > DAY and _is_cache(stale):
            shutil.rmtree(stale, ignore_errors=True)


def _is_cache(folder: Path) -> bool:
    """Return whether a folder contains our files only."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    files = (path for path in folder.rglob("*") if not path.is_dir())
    return all(_OUR_FILE.search(path.name) for path in files)


def cache_folder() -> Path | None:
    """Return the folder of compiled kernels: TINYGRAD_CG_CACHE_DIR, or the user's cache folder.

    Code from this folder is executed, so other users must not be able to write to it. If they can,
    a private folder below the system's temporary folder is used instead. Without a writable folder
    the result is None, and each process compiles its kernels.
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
    """Return whether only this user can write to a folder; True if the system cannot tell."""
    if not hasattr(os, "geteuid"):
        return True
    try:
        status = folder.stat()
    except OSError:
        return False
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@cache
def _instead_of(folder: Path) -> Path | None:
    """Return a private folder to use instead of one to which others can write; warn about it."""
    base = Path(tempfile.gettempdir()) / f"tinygrad_cg-{os.geteuid()}"
    private = base / folder.name
    usable = _writable(private) and _is_private(base) and _is_private(private)
    warnings.warn(
        f"tinygrad_cg: the cache folder {folder} belongs to another user, or others can write to "
        f"it, and compiled code is run from there: {private if usable else 'no folder'} is used "
        "instead. Remove the folder, or set TINYGRAD_CG_CACHE_DIR to your own folder",
        RuntimeWarning,
        stacklevel=2,
    )
    return private if usable else None


def read_file(path: Path) -> bytes:
    """Return a file's content; OSError if it is not a regular file. Never wait for a pipe."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path} is not a regular file")
        return file.read()


@contextlib.contextmanager
def alone(name: str) -> Iterator[None]:
    """Keep other processes from compiling the same kernel meanwhile. They find it in the cache.

    Otherwise, processes that start together (as in a test run) would compile each kernel several
    times.
    """
    folder = cache_folder()
    if folder is None or fcntl is None:
        yield
        return
    key = hashlib.sha256(name.encode()).digest()
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # the file system has no locks: compile anyway
            path = folder / f"{key[0] % LOCKS:02}.lock"
            file = stack.enter_context(os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600)))
            fcntl.flock(file, fcntl.LOCK_EX)
            # a forked child may have the file open
            stack.callback(fcntl.flock, file, fcntl.LOCK_UN)
        yield


def warn_damaged(path: Path) -> None:
    warnings.warn(
        f"tinygrad_cg: the compiled code in {path} is damaged: it is compiled again",
        RuntimeWarning,
        stacklevel=2,
    )


MAGIC = b"tinygrad_cg code 2\n"
DIGEST = hashlib.sha256().digest_size
MAX_BYTES = 256 * 2**20
"""Default limit for the files of one kind: the oldest are removed first."""
HOUR = 3600.0
"""A file that is read is marked as used if its last mark is older than this."""
SIZE_CHECK_INTERVAL = 64
"""A process checks the size of the folder whenever it has written this many files."""


class Store:
    """The files of one kind of code. The least recently used ones are removed."""

    def __init__(self, kind: str):
        self.kind, self._count = kind, 0

    def folder(self) -> Path | None:
        """Return the folder; None if there is no writable one."""
        base = cache_folder()
        return None if base is None else base / self.kind

    def _path(self, name: str) -> Path | None:
        base = self.folder()
        if base is None:
            return None
        return base / f"{_key(name).hex()[:32]}.code"

    def read(self, name: str) -> tuple[dict[str, Any], bytes] | None:
        """Return the fields and the code of a name; None if they are missing or damaged."""
        path = self._path(name)
        if path is None:
            return None
        try:
            data = read_file(path)
        except OSError:
            return None
        content = _unpack(_key(name), data)
        with contextlib.suppress(OSError):
            if content is None:
                warn_damaged(path)
                path.unlink()
            elif time.time() - path.stat().st_mtime > HOUR:
                os.utime(path)  # marks it as used
        return content

    def has(self, name: str) -> bool:
        """Return whether there is a file. It may be damaged."""
        path = self._path(name)
        return path is not None and os.path.exists(path)  # False if the folder cannot be read

    def write(self, name: str, fields: dict[str, Any], code: bytes) -> None:
        """Write fields and code to a file."""
        path = self._path(name)
        if path is None:
            return
        limit = size_limit()
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._count % SIZE_CHECK_INTERVAL:
                _prune(self._files(path.parent), limit)
            self._count += 1
            data = _pack(_key(name), fields, code)
            write_complete(path, lambda file: file.write(data))

    def clear(self) -> None:
        """Delete all files."""
        base = self.folder()
        if base is not None:
            delete(self._files(base))

    @staticmethod
    def _files(base: Path) -> list[Path]:
        return [*base.glob("*.code"), *base.glob("*.tmp")]


@cache
def _machine() -> str:
    """Return everything that code depends on, except the sources."""
    features = llvm.get_host_cpu_features().flatten()
    versions = (llvmlite.__version__, sys.version)
    return "\0".join((*versions, llvm.get_host_cpu_name(), features, ""))


def _key(name: str) -> bytes:
    """Return the hash of a name and of everything that code depends on, except the sources."""
    return hashlib.sha256((_machine() + name).encode()).digest()


def _pack(key: bytes, fields: dict[str, Any], code: bytes) -> bytes:
    text = json.dumps(fields).encode()
    body = len(text).to_bytes(8, "little") + text + code
    return MAGIC + hashlib.sha256(key + body).digest() + body


def _unpack(key: bytes, data: bytes) -> tuple[dict[str, Any], bytes] | None:
    start = len(MAGIC) + DIGEST
    body = data[start:]
    if data[:start] != MAGIC + hashlib.sha256(key + body).digest():
        return None
    size = 8 + int.from_bytes(body[:8], "little")
    return json.loads(body[8:size]), body[size:]


def size_limit() -> int:
    """Return the limit in bytes for files of one kind: TINYGRAD_CG_CACHE_LIMIT."""
    chosen = os.environ.get("TINYGRAD_CG_CACHE_LIMIT") or MAX_BYTES
    try:
        return int(chosen)
    except ValueError:
        raise ValueError(f"TINYGRAD_CG_CACHE_LIMIT={chosen!r} is not a number of bytes") from None


def write_complete(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a file by ``write(file)``, under a temporary name, so others only see it complete."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        delete([Path(temporary)])
        raise


def _prune(paths: Iterable[Path], limit: int) -> None:
    """Delete the least recently used files until the rest is within a limit in bytes."""
    sizes: list[tuple[float, int, Path]] = []
    for path in paths:
        with contextlib.suppress(OSError):
            stat = path.stat()
            sizes.append((stat.st_mtime, stat.st_size, path))
    total = sum(size for _, size, _ in sizes)
    for _, size, path in sorted(sizes):
        if total <= limit:
            break
        total -= size
        delete([path])


def delete(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            path.unlink()
