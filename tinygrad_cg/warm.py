"""`python -m tinygrad_cg.warm`: compile common operations in advance.

For images, clusters and continuous integration: operations, their gradients and the functions that
fused programs call are compiled into the cache folder (TINYGRAD_CG_CACHE_DIR), by several processes
at a time. A machine with the same processor, and the same versions of Python, NumPy and Numba, can
use a copy of the folder.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import formulas, machine, tiers
from tinygrad_cg_kernels.runtime.store import cache_folder

from . import _ops as ops
from ._core.primitive import OPS, Primitive
from ._core.tracking import track
from ._ops.define import Real

__all__ = ["main"]
__dir__ = __all__.copy  # what dir() shows

SHAPES = ((8,), (4, 8), (70_000,))  # small, by rows, and large enough for threads
DTYPES = ("float32", "float64")
LABEL = "operations compiled"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compile the operations named on the command line, by default all; return 0 if that succeeds.

    Parameters
    ----------
    arguments : the command line; None takes ``sys.argv[1:]``.

    ``python -m tinygrad_cg.warm exp add`` compiles two operations. ``--processes 8`` sets the
    number of processes (by default the number of cores), ``--quiet`` prints nothing. An operation
    that does not exist is an error (exit status 2). Code in the cache is not compiled again.
    """
    parser = argparse.ArgumentParser(prog="python -m tinygrad_cg.warm", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="OPERATION", help="by default all")
    parser.add_argument("--processes", type=int, default=machine.cores(), metavar="N")
    parser.add_argument("--quiet", action="store_true", help="print nothing")
    parser.add_argument("--report", action="store_true", help=argparse.SUPPRESS)  # for `_share`
    options = parser.parse_args(arguments)
    ops.load_all()
    kinds = "elementwise", "reduction", "normalisation"
    records = {name: op for name, op in OPS.items() if op.kind in kinds and op.samples}
    if unknown := sorted({*options.names} - {*records}):
        parser.error(
            f"no operation {', '.join(map(repr, unknown))}: choose from {', '.join(records)}"
        )
    if options.processes < 1:
        parser.error(f"--processes must be at least 1, got {options.processes}")
    names = options.names or list(records)
    if not options.quiet:
        where = cache_folder() or "memory only: no cache folder is writable"
        print(f"tinygrad_cg: compiling {len(names)} operations into {where}", file=sys.stderr)
    start, failed = time.perf_counter(), 0
    if options.processes == 1 or len(names) == 1:
        for name in names if options.quiet else track(names, LABEL):
            with _no_progress():
                _warm(records[name])
            if options.report:
                sys.stdout.write(f"{name}\n")  # at once, even if the stream has no buffer
                sys.stdout.flush()
    else:
        failed = _share(names, min(options.processes, len(names)), options.quiet)
    if not options.quiet:
        seconds = time.perf_counter() - start
        state = f"{failed} processes failed" if failed else "done"
        print(f"tinygrad_cg: {state} after {seconds:.0f} s", file=sys.stderr)
    return int(failed > 0)


@contextlib.contextmanager
def _no_progress() -> Iterator[None]:
    """Silence the progress of compilation: this program prints its own."""
    name = "TINYGRAD_CG_PROGRESS"
    chosen = os.environ.get(name)
    os.environ[name] = "0"
    try:
        yield
    finally:
        del os.environ[name]
        if chosen is not None:
            os.environ[name] = chosen


def _share(names: list[str], count: int, quiet: bool) -> int:
    """Divide operations among processes; return how many of these failed.

    Each writes the names of what it has compiled into one pipe.
    """
    command = [sys.executable, "-m", "tinygrad_cg.warm", "--quiet", "--report", "--processes", "1"]
    shares = [names[k::count] for k in range(count)]
    reading, writing = os.pipe()
    running = [subprocess.Popen([*command, *share], stdout=writing) for share in shares]
    os.close(writing)
    with open(reading, encoding="utf-8") as finished:
        for _ in finished if quiet else track(finished, LABEL, len(names)):
            pass
    return sum(process.wait() != 0 for process in running)


def _warm(record: Primitive) -> None:
    """Run an operation and its gradient on arrays of each shape and dtype that it takes."""
    with np.errstate(all="ignore"):
        for dtype in DTYPES:
            for operands, params in _calls(record, dtype):
                try:
                    tensors = [tf.constant(operand) for operand in operands]
                    with tf.GradientTape() as tape:
                        tape.watch(tensors)
                        result = record(*tensors, **params)
                        results = result if isinstance(result, list) else [result]
                        total = [tf.reduce_sum(result) for result in results]
                    tape.gradient(total, tensors)
                except (TypeError, ValueError):  # it is not for this dtype
                    continue
            if record.kind == "elementwise" and record.kernel is not None:
                kind = f"f{np.dtype(dtype).itemsize * 8}"
                try:
                    formulas.prepare(record.kernel.function, (kind,) * len(record.inputs))
                except Exception:  # nor is its scalar function
                    continue
    for owner in getattr(record.kernel, "dispatchers", {}).values():
        tiers.finish(owner)


def _calls(record: Primitive, dtype: str) -> Iterator[tuple[list[np.ndarray], dict[str, Any]]]:
    """Yield operands and parameters: of the shapes above, or from the record's samples."""
    rng = np.random.default_rng(0)
    if all(isinstance(sample, Real) for sample in record.samples):
        pairs = [(sample.low, sample.high) for sample in record.samples]
        for shape in SHAPES:
            operands = [rng.uniform(*pair, shape).astype(dtype) for pair in pairs]
            yield operands, {}
            if len(operands) > 1 and len(shape) == 2:
                yield [operands[0], *[operand[0] for operand in operands[1:]]], {}
                yield [operands[0], *[operand[0, 0] for operand in operands[1:]]], {}
        return
    for case in record.samples:
        if hasattr(case, "shapes"):
            drawn = [rng.uniform(0.5, 1.5, shape).astype(dtype) for shape in case.shapes]
            for position, operand in case.fixed.items():
                drawn[position] = operand
            yield drawn, case.params


if __name__ == "__main__":
    sys.exit(main())
