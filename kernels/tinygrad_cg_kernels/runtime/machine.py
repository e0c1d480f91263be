"""LLVM modules: they are optimised, loaded, and freed with their owners."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import llvmlite.binding as llvm
from llvmlite.binding import ffi
from llvmlite.binding.newpassmanagers import NewPassManager

from tinygrad_cg_frontend import OPTIMIZED, LLVMSource, Processor
from tinygrad_cg_kernels.runtime.locks import at_fork, inside_llvm

try:
    import resource
except ImportError:  # Windows
    resource = None


def _new_target(level: int, cpu: str = "", features: str = "") -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, codemodel="jitdefault", jit=True
    )


@cache
def _host() -> tuple[str, str]:
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


_own = threading.local()


def _target(level: int = OPTIMIZED) -> Any:
    """Return this thread's target machine for a level. It emits one module at a time."""
    name = f"of_level_{level}"
    if not hasattr(_own, name):
        setattr(_own, name, _new_target(3 if level == OPTIMIZED else level, *_host()))
    return getattr(_own, name)


def cores() -> int:
    """Return how many threads can run at the same time."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@cache
def vector_bits() -> int:
    """Return the width of the processor's vectors."""
    features = llvm.get_host_cpu_features()
    return 512 if features.get("avx512f") else 256 if features.get("avx2") else 128


@cache
def fuses() -> bool:
    """Return whether the processor multiplies and adds in one instruction."""
    return bool(llvm.get_host_cpu_features().get("fma")) or "aarch64" in llvm.get_process_triple()


def processor() -> Processor:
    """Return the processor's properties, for the front end."""
    return Processor(vector_bits(), fuses(), cores())


def optimised(module: Any, vectors: bool = True, level: int = OPTIMIZED) -> Any:
    """Optimise a module in place and return it. Without `vectors` it is not vectorised."""
    options = llvm.create_pipeline_tuning_options()
    options.loop_vectorization = options.slp_vectorization = vectors
    builder = llvm.create_pass_builder(_target(), options)
    passes = builder.getModulePassManager() if level == OPTIMIZED else _few_passes()
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    if type(passes)._dispose is ffi.ObjectRef._dispose:  # an empty method hides the right one
        NewPassManager._dispose(passes)
        passes.detach()
    return module


def _few_passes() -> Any:
    """Return passes that turn variables into registers before functions are inlined."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    return passes


def object_code(module: Any, level: int = OPTIMIZED) -> bytes:
    emit = _unlocked("LLVMPY_TargetMachineEmitToMemory")
    target = _target(level)
    with ffi.OutputString() as error:
        buffer = emit(target, module, 1, error)
        if not buffer:
            raise RuntimeError(f"LLVM made no machine code: {error}")
    try:
        start = ffi.lib.LLVMPY_GetBufferStart(buffer)
        return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


def parsed(source: LLVMSource) -> Any:
    """Return the module of a source, alone in its context."""
    context = llvm.create_context()
    module = llvm.parse_assembly(source.text, context)
    for text in source.linked:
        module.link_in(llvm.parse_assembly(text, context))
    return module


def compile_source(source: LLVMSource) -> bytes:
    """Return the object code of a source. Several threads may compile at the same time."""
    _check_memory()
    with inside_llvm:
        module = optimised(parsed(source), level=source.level)
        return object_code(module, level=source.level)


def compile_all(sources: Sequence[LLVMSource]) -> list[bytes]:
    """Return the object codes of sources, compiled on all cores."""
    several = [(source, *source.parts) for source in sources]
    whole = list(itertools.chain.from_iterable(several))
    new = [k for k, source in enumerate(whole) if source.job is None]
    longest = sorted(new, key=lambda k: (whole[k].level, whole[k].size), reverse=True)
    jobs = {k: Job(partial(compile_source, whole[k])) for k in longest[:-1]}
    codes = {k: compile_source(whole[k]) for k in longest[-1:]}  # this thread compiles the shortest
    codes |= {k: jobs[k]() for k in reversed(jobs)}
    parts = iter(codes[k] if text.job is None else text.job() for k, text in enumerate(whole))
    return [joined([next(parts) for _ in some]) for some in several]


_JOINED = b"tinygrad_cg objects"
"""The first bytes of the code of several modules."""


def joined(codes: Sequence[bytes]) -> bytes:
    """Return several object codes as one."""
    if len(codes) == 1:
        return codes[0]
    sizes = [len(code) for code in codes]
    return b"".join([_JOINED, struct.pack(f"<{1 + len(sizes)}q", len(sizes), *sizes), *codes])


def _objects(data: bytes) -> Iterator[bytes]:
    """Yield the object codes in joined code."""
    if not data.startswith(_JOINED):
        yield data
        return
    at = len(_JOINED)
    (count,) = struct.unpack_from("<q", data, at)
    sizes = struct.unpack_from(f"<{count}q", data, at + 8)
    at += 8 * (1 + count)
    for size in sizes:
        yield from _objects(data[at : at + size])
        at += size


Made = TypeVar("Made")


class Job(Generic[Made]):
    """Work for another core. Calling the job returns the result.

    If no other core has begun the work, the caller does it. So it does with one core, if no more
    threads can start, and after the main thread has ended.
    """

    def __init__(self, job: Callable[[], Made]):
        self._own = cache(job)
        self._begun: Future[Made] | None = None
        others = cores() - 1
        with contextlib.suppress(RuntimeError):
            if others:
                self._begun = _pool(others).submit(job)

    @property
    def is_over(self) -> bool:
        """Whether another core has finished it."""
        return self._begun is not None and self._begun.done()

    def __call__(self) -> Made:
        if self._begun is None or self._begun.cancel():
            return self._own()
        return self._begun.result()


@cache
def _pool(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "tinygrad_cg compiler")


at_fork(after_in_child=_pool.cache_clear)  # a child lacks the pool's threads


def _unlocked(name: str) -> Callable[..., Any]:
    """Return a function of llvmlite's library without llvmlite's lock around it.

    LLVM needs that lock only for modules that share a context.
    """
    function = getattr(ffi.lib, name)
    return getattr(function, "_cfn", function)


TRIM_INTERVAL = 32
"""Unused memory is returned to the system each time this many pieces of machine code were freed.
Most of it was used for compiling, and glibc keeps it."""


class MachineCode:
    """Machine code loaded from object codes that may call each other. Deletion frees it."""

    _freed = itertools.count(1)
    _is_ending = staticmethod(sys.is_finalizing)  # module globals may be gone by then
    optimized: Any = None
    """The optimized code that replaces this code (see `tiers`)."""

    def __init__(self, data: bytes):
        # the engine compiles its empty module: quickly without optimisation
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_target(0))
        for object_file in _objects(data):
            self._engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(object_file))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function or a variable."""
        address = self._engine.get_global_value_address(name)
        if not address:
            raise RuntimeError(f"machine code has no function {name!r}")
        return address

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is None or self._is_ending():  # a stopped thread may hold LLVM's lock
            return
        engine.close()
        if not next(self._freed) % TRIM_INTERVAL:
            give_back()


MIN_FREE_BYTES = 64 * 2**20
"""LLVM may need this much address space for one module, and ends the process if there is less."""


def _check_memory() -> None:
    """Raise MemoryError if a limit of the process leaves LLVM too little memory."""
    if resource is None:
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    with contextlib.suppress(OSError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        if limit - used < MIN_FREE_BYTES:
            raise MemoryError(
                f"compiling needs up to {MIN_FREE_BYTES >> 20} MiB of address space, and the "
                f"limit of the process (ulimit -v, RLIMIT_AS) leaves {max(0, limit - used) >> 20}: "
                "raise it"
            )


@cache
def _malloc_trim() -> Callable[[int], int] | None:
    try:
        return ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # no glibc
        return None


def give_back() -> None:
    """Return unused memory that malloc keeps to the system."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)
