"""Intrinsics of threads: atomic operations on words of memory, and calls of C functions.

A word has 8 bytes; its address, a multiple of 8, is an integer. The suffix of a name is the
operation's memory ordering, as in C++: `relaxed` (LLVM's monotonic), `acquire`, `release`,
`acq_rel`, `seq_cst`. In Python, an operation does what it does for a single thread.
"""

import ctypes
import os
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from tinygrad_cg_frontend import Intrinsic, IRValue, address_call, intrinsic, symbol_call

# --- atomic operations --------------------------------------------------------------------


def _word(address: int) -> Any:
    return ctypes.c_int64.from_address(address)


def _atomic(text: str) -> Callable:
    """Return the `Emit` of an instruction whose operands are a pointer and words."""

    def emit(body: Any, address: IRValue, *words: IRValue) -> Any:
        operands = f"ptr {body.pointer(address)}", *(f"i64 {word.text}" for word in words)
        line = text.format(*operands)
        if line.startswith("store"):
            return body.lines.append(f"  {line}")
        return body.emit(line)

    return emit


def _load(ordering: str) -> Intrinsic:
    @intrinsic("word -> word", _atomic(f"load atomic i64, {{0}} {ordering}, align 8"))
    def load(address):
        """Return the word at an address."""
        return _word(address).value

    return load


def _store(ordering: str) -> Intrinsic:
    @intrinsic("word, word ->", _atomic(f"store atomic {{1}}, {{0}} {ordering}, align 8"))
    def store(address, value):
        """Write the word at an address."""
        _word(address).value = value

    return store


def _update(name: str, ordering: str, after: Callable[[int, int], int]) -> Intrinsic:
    """Return the intrinsic that replaces a word by ``after(word, operand)``."""

    @intrinsic("word, word -> word", _atomic(f"atomicrmw {name} {{0}}, {{1}} {ordering}"))
    def update(address, operand):
        """Change the word at an address; return its old value."""
        before = _word(address).value
        _word(address).value = after(before, operand)
        return before

    return update


def _compare_exchange(orderings: str) -> Intrinsic:
    exchange = _atomic(f"cmpxchg {{0}}, {{1}}, {{2}} {orderings}")

    def emit(body: Any, *operands: IRValue) -> IRValue:
        pair = exchange(body, *operands)
        return IRValue("b1", body.emit(f"extractvalue {{ i64, i1 }} {pair}, 1"))

    @intrinsic("word, word, word -> truth", emit)
    def compare_exchange(address, expected, value):
        """Write the word at an address if it is as expected; return whether it was."""
        was_expected = _word(address).value == expected
        if was_expected:
            _word(address).value = value
        return was_expected

    return compare_exchange


load_relaxed, load_acquire, load_seq_cst = map(_load, ("monotonic", "acquire", "seq_cst"))
store_relaxed, store_release = map(_store, ("monotonic", "release"))
add_relaxed = _update("add", "monotonic", lambda word, operand: word + operand)
add_acq_rel = _update("add", "acq_rel", lambda word, operand: word + operand)
or_acq_rel = _update("or", "acq_rel", lambda word, operand: word | operand)
exchange_seq_cst = _update("xchg", "seq_cst", lambda word, operand: operand)
compare_exchange_acq_rel = _compare_exchange("acq_rel monotonic")
"""If the word is not as expected, this is a relaxed load, which orders nothing."""
compare_exchange_seq_cst = _compare_exchange("seq_cst seq_cst")


def _pause(body: Any) -> None:
    processor = llvm.get_process_triple().partition("-")[0]
    if processor in ("x86_64", "i686"):
        body.call("llvm.x86.sse2.pause", "void")
    elif processor in ("aarch64", "arm64"):
        body.call("llvm.aarch64.isb", "void", ("i32", "15"))
    else:
        body.lines.append("  fence seq_cst")


@intrinsic("->", _pause)
def pause():
    """Tell the processor that a loop waits."""


# --- calls of C functions -----------------------------------------------------------------


@intrinsic("word, word, word, word ->", address_call)
def call_kernel(address, table, first, units):
    """Call a block kernel by its address (see `signatures.BLOCKS`)."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)(table, first, units)


def _of_python(rule: str, name: str, result: str = "i64") -> Callable[[Callable], Intrinsic]:
    return intrinsic(rule, symbol_call(name, result))


@_of_python("-> word", "PyEval_SaveThread")
def release_interpreter():
    """Release the interpreter's lock; return the thread's Python state."""
    raise NotImplementedError("Python code needs the lock")


@_of_python("word ->", "PyEval_RestoreThread", "void")
def acquire_interpreter(state):
    """Take the interpreter's lock, for a thread's Python state."""
    raise NotImplementedError("Python code has the lock")


@_of_python("word -> word", "PyLong_AsSsize_t")
def integer_of(thing):
    """Return the value of the Python int at an address."""
    return ctypes.cast(thing, ctypes.py_object).value


@_of_python("word -> word", "PyLong_FromSsize_t")
def new_integer(value):
    """Return the address of a new Python int, with a reference to it."""
    thing = ctypes.py_object(value)
    ctypes.pythonapi.Py_IncRef(thing)
    return id(thing.value)


@_of_python("word, word -> word", "PyThread_acquire_lock", "i32")
def acquire_lock(lock, waits):
    """Take a CPython lock (not the interpreter's lock); return whether that worked."""
    return ctypes.pythonapi.PyThread_acquire_lock(ctypes.c_void_p(lock), waits)


@_of_python("word, word, word -> word", "PyThread_acquire_lock_timed", "i32")
def acquire_lock_timed(lock, microseconds, is_interruptible):
    """Take a lock within some time; return 1 if that worked."""
    arguments = ctypes.c_void_p(lock), ctypes.c_longlong(microseconds), is_interruptible
    return ctypes.pythonapi.PyThread_acquire_lock_timed(*arguments)


@_of_python("word ->", "PyThread_release_lock", "void")
def release_lock(lock):
    """Release a lock."""
    ctypes.pythonapi.PyThread_release_lock(ctypes.c_void_p(lock))


_library = ctypes.CDLL(None) if os.name == "posix" else None
_CORES = ("sched_getcpu", "sched_getaffinity", "sched_setaffinity", "gettid")
has_cores = all(hasattr(_library, name) for name in _CORES)
"""Whether the system has Linux's functions of cores. Without them, these intrinsics return -1."""


def _of_cores(rule: str, name: str) -> Callable[[Callable], Intrinsic]:
    return intrinsic(rule, symbol_call(name, "i32") if has_cores else lambda body, *words: "-1")


def _answer(name: str, *arguments: Any) -> int:
    return getattr(_library, name)(*arguments) if has_cores else -1


@_of_cores("-> word", "sched_getcpu")
def current_core():
    """Return the number of the core that this thread runs on."""
    return _answer("sched_getcpu")


@_of_cores("-> word", "gettid")
def thread_number():
    """Return the system's number of this thread."""
    return _answer("gettid")


@_of_cores("word, word, word -> word", "sched_getaffinity")
def read_cores(thread, size, cores):
    """Write the cores that a thread may use to a set, of `size` bytes at the address `cores`.

    The set has a bit for each core. Thread 0 is this thread. The result is negative on failure.
    """
    return _answer("sched_getaffinity", thread, ctypes.c_size_t(size), ctypes.c_void_p(cores))


@_of_cores("word, word, word -> word", "sched_setaffinity")
def choose_cores(thread, size, cores):
    """Restrict a thread to the cores of a set; return 0 on success."""
    return _answer("sched_setaffinity", thread, ctypes.c_size_t(size), ctypes.c_void_p(cores))
