"""`python -m benchmarks.gpu_bandwidth`: the share of a GPU's bandwidth that large operations reach.

Arrays have 2^28 elements of float32, or 2^N with `--log2 N`. GB/s are the bytes of the operands and
of the result, each counted once, over the median time by the GPU's clock. PyTorch runs the same on
the same GPU, if it is installed.
"""

import argparse
import importlib
import importlib.util
import statistics
from collections.abc import Callable
from typing import Any

REPEATS = 5  # runs between two events, and times to take the median of

OPERATIONS: dict[str, tuple[int, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "x + 1": (2, lambda tf, x: x + 1.0, lambda torch, x: x + 1.0),
    "x + x": (2, lambda tf, x: x + x, lambda torch, x: x + x),
    "exp": (2, lambda tf, x: tf.exp(x), lambda torch, x: torch.exp(x)),
    "tanh": (2, lambda tf, x: tf.tanh(x), lambda torch, x: torch.tanh(x)),
    "sin": (2, lambda tf, x: tf.sin(x), lambda torch, x: torch.sin(x)),
    "sum": (1, lambda tf, x: tf.reduce_sum(x), lambda torch, x: x.sum()),
    "sums of columns": (1, lambda tf, x: tf.reduce_sum(x, 0), lambda torch, x: x.sum(0)),
    "sums of rows": (1, lambda tf, x: tf.reduce_sum(x, 1), lambda torch, x: x.sum(1)),
    "transpose * 2": (
        2,
        lambda tf, x: tf.transpose(x) * 2.0,
        lambda torch, x: x.T.contiguous() * 2,
    ),
    "softmax of rows": (2, lambda tf, x: tf.nn.softmax(x), lambda torch, x: x.softmax(1)),
    "cumsum of rows": (2, lambda tf, x: tf.cumsum(x, 1), lambda torch, x: x.cumsum(1)),
    "cumsum of columns": (2, lambda tf, x: tf.cumsum(x, 0), lambda torch, x: x.cumsum(0)),
}
"""By name: how many arrays an operation reads and writes, and the operation in both libraries."""


def seconds(run: Callable[[], Any], library: Any) -> float:
    """Return the median time of a call, after one that compiles."""
    run()
    times = []
    for _ in range(REPEATS):
        begin, end = library.cuda.Event(), library.cuda.Event()
        begin.record()
        for _ in range(REPEATS):
            run()
        end.record()
        end.synchronize()
        times.append(library.cuda.get_elapsed_time(begin, end) * 1e-3 / REPEATS)
    return statistics.median(times)


def main() -> None:
    """Measure and print a line for each operation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log2", type=int, default=28, help="of the number of elements")
    chosen = parser.parse_args()
    import tinygrad_cg as tf
    from tinygrad_cg._core import devices

    shape = 1 << chosen.log2 // 2, 1 << (chosen.log2 + 1) // 2
    x, library = tf.ones(shape).gpu(), devices.library()
    torch: Any = importlib.import_module("torch") if importlib.util.find_spec("torch") else None
    y = None if torch is None else torch.ones(shape, device="cuda")
    copy = library.empty(shape, "f")
    size = 4 << chosen.log2
    rate = 2e-9 * size / seconds(lambda: copy.__setitem__(slice(None), x._data), library)
    print(f"{'GB/s':<20}{'ours':>8}{'torch':>8}\n{'copy, by CuPy':<20}{rate:8,.0f}")
    for name, (passes, ours, theirs) in OPERATIONS.items():
        times = [seconds(lambda ours=ours: ours(tf, x), library)]
        if y is not None:
            times.append(seconds(lambda theirs=theirs: theirs(torch, y), library))
        print(f"{name:<20}" + "".join(f"{passes * size / t * 1e-9:8,.0f}" for t in times))


if __name__ == "__main__":
    main()
