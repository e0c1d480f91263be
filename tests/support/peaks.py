"""How much memory a call takes."""

import gc
import tracemalloc
from collections.abc import Callable

from tinygrad_cg_kernels.runtime import memory, tiers


def peak_bytes(run: Callable[[], object]) -> int:
    """Return the most bytes that a call has at once, its result among them.

    It is called once before: nothing is compiled, in this thread or another, while it is measured.
    """
    run()
    tiers.wait()
    gc.collect()
    memory.clear()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = run()
        peak = tracemalloc.get_traced_memory()[1] - before
        del result
        return peak
    finally:
        tracemalloc.stop()
