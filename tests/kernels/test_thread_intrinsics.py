"""Intrinsics of threads: in Python, by the front end, and by Numba."""

import ctypes
import re
from functools import partial

import numpy as np
import pytest

from tests.support.orders import run_in_threads
from tests.support.pool_tasks import compiled
from tinygrad_cg_frontend import Intrinsic, IRModule, text_scope
from tinygrad_cg_kernels.runtime import (
    machine,
    numba_backend,
    service,
    signatures,
    thread_intrinsics,
    thread_pool,
)
from tinygrad_cg_kernels.runtime.formulas import KERNELS
from tinygrad_cg_kernels.runtime.service import TextSource

pytestmark = pytest.mark.quick
ROWS = [name for name, row in vars(thread_intrinsics).items() if isinstance(row, Intrinsic)]
HEAD = f"""
from tinygrad_cg_kernels.runtime.objects.fields import word
from tinygrad_cg_kernels.runtime.thread_intrinsics import {", ".join(ROWS)}


def run(at):
"""
LINES = {  # of a function of the address of the words of `memory`
    "load_relaxed": "return load_relaxed(at)",
    "load_acquire": "return load_acquire(at)",
    "load_seq_cst": "return load_seq_cst(at)",
    "store_relaxed": "store_relaxed(at, 7)",
    "store_release": "store_release(at + 8, -7)",
    "add_relaxed": "return add_relaxed(at, 3)",
    "add_acq_rel": "return add_acq_rel(at, -8)",
    "or_acq_rel": "return or_acq_rel(at, 1 << 62)",
    "exchange_seq_cst": "return exchange_seq_cst(at, 1)",
    "compare_exchange_acq_rel": "return compare_exchange_acq_rel(at, 5, 2)",
    "compare_exchange_seq_cst": "return compare_exchange_seq_cst(at, 4, 2)",
    "pause": "pause()",
    "call_kernel": "call_kernel(word(at, 16), at + 24, 1, 2)",
    "integer_of": "return integer_of(word(at, 32))",
    "new_integer": "return new_integer(5)",
    "acquire_lock": "return acquire_lock(word(at, 40), 0)",
    "acquire_lock_timed": "return acquire_lock_timed(word(at, 40), 100, 0)",
    "release_lock": "release_lock(word(at, 40))",
    "current_core": "return current_core() >= -1",
    "thread_number": "return thread_number()",
    "read_cores": "return read_cores(0, 128, at + 64)",
    "choose_cores": "return read_cores(0, 128, at + 64) + choose_cores(0, 128, at + 64)",
    "an operand that is not computed": "return at < 0 and compare_exchange_acq_rel(at, 5, 2)",
    "the other one": "return at > 0 or add_relaxed(at, 1) > 0",
}
IN_COMPILED_CODE = {"release_interpreter": "acquire_interpreter(release_interpreter())"}
THING = 12345  # an int of Python's
ORDERED = re.compile(r"atomic|cmpxchg")
ADDITIONS = 2_000
CONTENDED = f"""
    for k in range({ADDITIONS}):
        add_relaxed(at, 1)
        add_acq_rel(at + 8, 1)
        while not compare_exchange_acq_rel(at + 16, 0, 1):
            pause()
        store_relaxed(at + 24, load_relaxed(at + 24) + 1)
        store_release(at + 16, 0)
    return 0
"""


def text_of(line):
    return f"{HEAD}    {line}\n" + ("" if line.startswith("return") else "    return 0\n")


def ways(line):
    """A function's three ways: in Python, by the front end, and by Numba."""
    source = TextSource(text_of(line), "run")
    entries = [
        service.compile(source, signatures.words(1)),
        numba_backend.compile_by_numba(source.python(), "run", signatures.words(1)),
    ]
    call = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    return source.python(), *[call(address) for address, _ in entries], entries


def memory(kernel):
    """What is at `at`, and what has to last as long."""
    words = np.zeros(24, np.int64)
    table = words[20:]
    words[:6] = 5, 6, kernel, table.ctypes.data, id(THING), thread_pool._taken_lock()
    return words


@pytest.mark.parametrize("name", LINES)
def test_a_row_means_in_python_what_it_is_in_compiled_code(name):
    python, *others, entries = ways(LINES[name])
    kernels = compiled()
    results = []
    for run in (python, *others):
        words = memory(kernels.address("count"))
        result = int(run(words.ctypes.data))
        results.append((result, words[[0, 1, *range(8, 24)]].tolist()))
    assert results[0] == results[1] == results[2]
    assert len(entries) == 2


@pytest.mark.parametrize("name", IN_COMPILED_CODE)
def test_compiled_code_releases_the_interpreter(name):
    _, *others, entries = ways(IN_COMPILED_CODE[name])
    assert [run(0) for run in others] == [0, 0]
    assert len(entries) == 2


def test_each_row_is_tested():
    tested = {*LINES, *IN_COMPILED_CODE, "acquire_interpreter"}
    assert tested >= {*ROWS}
    for name in (*IN_COMPILED_CODE, "acquire_interpreter"):
        row = vars(thread_intrinsics)[name]
        with pytest.raises(NotImplementedError):
            row(*[0] * row.meaning.__code__.co_argcount)


@pytest.mark.parametrize("name", LINES)
def test_an_ordering_is_that_of_the_name(name):
    """LLVM's is called monotonic where C++'s is relaxed."""
    endings = {"relaxed": "monotonic", "acquire": "acquire", "release": "release"}
    endings |= {"acq_rel": "acq_rel", "seq_cst": "seq_cst"}
    for ending, ordering in endings.items():
        if name.endswith(f"_{ending}"):
            scope = text_scope(text_of(LINES[name]))
            module = IRModule(KERNELS, machine.processor(), scope)
            module.function("run", ("i64",))
            (line,) = [line for line in module.text().splitlines() if ORDERED.search(line)]
            assert f" {ordering}" in line


def test_no_update_is_lost():
    """Of three threads, by code of both compilers."""
    source = TextSource(HEAD + CONTENDED, "run")
    entries = [
        service.compile(source, signatures.words(1)),
        numba_backend.compile_by_numba(source.python(), "run", signatures.words(1)),
    ]
    words = np.zeros(4, np.int64)
    runs = [ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(address) for address, _ in entries]
    run_in_threads(*[partial(runs[k % 2], words.ctypes.data) for k in range(3)])
    total = 3 * ADDITIONS
    assert words.tolist() == [total, total, 0, total]
