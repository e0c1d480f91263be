"""Machine code on disk, under names, with checksums: what is damaged is made anew.

The checksum covers the name, too: a file in the place of another one counts as damaged.

A file is named by the hash of its name, the processor, and the versions that its code depends on;
the folder by the kernels' sources (`compile.STAMP`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba

from tinygrad_cg_kernels.runtime import compile as build

MAGIC = b"tinygrad_cg code 2\n"
DIGEST = hashlib.sha256().digest_size
LIMIT = 256 * 2**20
"""Bytes of the files of one kind, by default: the oldest go first."""
HOUR = 3600.0  # after which a file that is read is marked as used
EVERY = 64  # files that a process writes between two looks at how large the folder is


class Store:
    """The files of one kind of code; those that were not used for longest go."""

    def __init__(self, kind: str):
        self.kind, self._count = kind, 0

    def folder(self) -> Path | None:
        """Return the folder; None if none can be written."""
        base = build.cache_folder()
        return None if base is None else base / self.kind

    def _path(self, name: str) -> Path | None:
        base = self.folder()
        if base is None:
            return None
        return base / f"{_key(name).hex()[:32]}.code"

    def read(self, name: str) -> tuple[dict[str, Any], bytes] | None:
        """Return the fields and the code of a name; None if there are none, or they are damaged."""
        path = self._path(name)
        if path is None:
            return None
        try:
            data = build.read_file(path)
        except OSError:
            return None
        found = _unpack(_key(name), data)
        with contextlib.suppress(OSError):
            if found is None:
                build.warn_damaged(path)
                path.unlink()
            elif time.time() - path.stat().st_mtime > HOUR:
                os.utime(path)  # it is in use
        return found

    def has(self, name: str) -> bool:
        """Return whether there is a file, which may be damaged."""
        path = self._path(name)
        return path is not None and os.path.exists(path)  # False where nobody may look

    def write(self, name: str, fields: dict[str, Any], code: bytes) -> None:
        """Keep fields and code."""
        path = self._path(name)
        if path is None:
            return
        limit = size_limit()
        with contextlib.suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._count % EVERY:
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
    """Return what the code depends on, but for the kernels' sources."""
    features = llvm.get_host_cpu_features().flatten()
    versions = (numba.__version__, llvmlite.__version__, sys.version, repr(build.FLAGS))
    return "\0".join((*versions, llvm.get_host_cpu_name(), features, ""))


def _key(name: str) -> bytes:
    """Return the hash of all that a file's code depends on."""
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
    """Return how many bytes of one kind of files may stay: TINYGRAD_CG_CACHE_LIMIT."""
    chosen = os.environ.get("TINYGRAD_CG_CACHE_LIMIT") or LIMIT
    try:
        return int(chosen)
    except ValueError:
        raise ValueError(f"TINYGRAD_CG_CACHE_LIMIT={chosen!r} is not a number of bytes") from None


def write_complete(path: Path, write: Callable[[Any], Any]) -> None:
    """Write a file by `write(file)`, under another name first: other processes see it complete."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        delete([Path(temporary)])
        raise


def _prune(paths: Iterable[Path], limit: int) -> None:
    """Delete the files not used for longest, until all is within a limit in bytes."""
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
