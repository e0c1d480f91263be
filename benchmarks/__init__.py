"""Benchmarks against other libraries: `python -m benchmarks`, or pytest with this folder.

Every library gets the same number of threads. Most of them read it once, when they are
imported, so it is set here, before anything else.
"""

import os

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
LENGTH = 1_000  # multiplications in a chain

for variable in (
    "TINYGRAD_CG_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
):
    os.environ[variable] = str(THREADS)
if THREADS == 1:  # JAX has no variable of its own for this
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
