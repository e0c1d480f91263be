"""`python -m benchmarks.first`: how long the first use of each operation takes.

Each operation runs in separate processes, with an empty cache of kernels: once on few elements,
once on 100,000. By default such a process has used the addition of arrays of both sizes before, so
that what every operation needs is there; with `--start` it has not: that is the first operation on
a new machine. Times are what the first use takes more than the quickest of the next three, the
least of the rounds, in milliseconds: elapsed, and of the processor in all threads.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg import _ops as ops
from tinygrad_cg._core.primitive import OPS, Primitive
from tinygrad_cg._ops.define import Real
from tinygrad_cg._tour.console import table

SIZES = (1_000, 100_000)
LIMIT = 60.0
"""Milliseconds that a first use may take."""
Times = tuple[float, float]
"""Milliseconds elapsed and of the processor."""


def operations(names: list[str]) -> dict[str, Primitive]:
    """Return the operations that have kernels of their own, or those of these names."""
    kinds = ("elementwise", "reduction", "normalisation")
    records = {
        name: record for name, record in OPS.items() if record.kind in kinds and record.samples
    }
    if unknown := sorted({*names} - {*records}):
        raise SystemExit(f"no operation {', '.join(unknown)}: choose from {', '.join(records)}")
    return {name: records[name] for name in names or records}


def arguments(record: Primitive, size: int, dtype: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return operands of about so many elements, and parameters."""
    rng = np.random.default_rng(0)
    if all(isinstance(sample, Real) for sample in record.samples):
        pairs = [(sample.low, sample.high) for sample in record.samples]
        return [rng.uniform(*pair, size).astype(dtype) for pair in pairs], {}
    case = next(sample for sample in record.samples if hasattr(sample, "shapes"))
    shapes = list(case.shapes)
    if len(shapes) == 1 and shapes[0]:
        rest = shapes[0][1:]
        shapes = [(-(-size // max(int(np.prod(rest)), 1)), *rest)]
    drawn = [rng.uniform(0.5, 1.5, shape).astype(dtype) for shape in shapes]
    for position, operand in case.fixed.items():
        drawn[position] = operand
    return drawn, case.params


def first_use(name: str, size: int, dtype: str, start: bool) -> Times | None:
    """Return what an operation's first use takes; None where it is not for such operands."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TINYGRAD_CG_CACHE_DIR"] = folder
        with multiprocessing.get_context("spawn").Pool(1) as process:
            return process.apply(_measured, (name, size, dtype, start))


def _measured(name: str, size: int, dtype: str, start: bool) -> Times | None:
    ops.load_all()
    record = OPS[name]
    try:
        operands, params = arguments(record, size, dtype)
    except StopIteration:
        return None
    tensors = [tf.constant(operand) for operand in operands]
    if not start:
        for count in SIZES:
            x = tf.ones(count, dtype)
            tf.add(x, x)
    with np.errstate(all="ignore"):
        try:
            first = _time(record, tensors, params)
        except TypeError:
            return None
        later = min(_time(record, tensors, params) for _ in range(3))
    return first[0] - later[0], first[1] - later[1]


def _time(record: Primitive, tensors: list[tf.Tensor], params: dict[str, Any]) -> Times:
    elapsed, used = time.perf_counter(), time.process_time()
    record(*tensors, **params)
    return (time.perf_counter() - elapsed) * 1e3, (time.process_time() - used) * 1e3


def measure(chosen: Iterable[str], rounds: int, dtypes: list[str], start: bool) -> Iterator:
    """Yield each operation's name, and its times by size and dtype."""
    for name in chosen:
        times: dict[tuple[int, str], Times | None] = {}
        for size in SIZES:
            for dtype in dtypes:
                taken = [first_use(name, size, dtype, start) for _ in range(rounds)]
                pairs = [pair for pair in taken if pair is not None]
                least = tuple(map(min, zip(*pairs, strict=True))) if pairs else None
                times[size, dtype] = least
        yield name, times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first", description=__doc__)
    parser.add_argument("names", nargs="*", help="operations; by default all")
    parser.add_argument("--rounds", type=int, default=1, help="processes of each kind")
    parser.add_argument("--dtypes", nargs="+", default=["float64"], metavar="DTYPE")
    parser.add_argument("--start", action="store_true", help="the first operation of all")
    chosen = parser.parse_args()
    ops.load_all()
    rows = []
    measured = measure(operations(chosen.names), chosen.rounds, chosen.dtypes, chosen.start)
    for name, times in measured:
        print(name, file=sys.stderr)
        cells = [f"{pair[0]:.0f} ({pair[1]:.0f})" if pair else "" for pair in times.values()]
        rows.append([name, *cells, max((pair[0] for pair in times.values() if pair), default=0.0)])
    rows.sort(key=lambda row: -row[-1])
    headers = [f"{size:,} {dtype}, ms (CPU)" for size in SIZES for dtype in chosen.dtypes]
    table(["first use", *headers], [row[:-1] for row in rows])
    over = sum(row[-1] > LIMIT for row in rows)
    middle = np.median([row[-1] for row in rows])
    print(f"{len(rows)} operations, median {middle:.0f} ms, {over} over {LIMIT:.0f} ms elapsed.")


if __name__ == "__main__":
    main()
