"""Benchmarks against other libraries: `python -m benchmarks`, or pytest with this folder.

Every library gets the same number of threads. Most of them read it once, when they are
imported, so it is set here, before anything else; where the system can, the process keeps to
as many cores, for those that ask nothing else.
"""

import os

THREADS = int(os.environ.get("BENCHMARK_THREADS", "2"))
STEPS = 1_000  # in loops of scalar work
SHORT = 20  # of a loop that is differentiated twice

for variable in (
    "TINYGRAD_CG_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NPROC",  # JAX's
):
    os.environ[variable] = str(THREADS)
# NumPy's BLAS waits for its next product by spinning, for 100 ms as it comes: whoever is measured
# after it would have one core fewer. With 2**18 clock cycles it takes as long as before.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # peers' packages were compiled by pip
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # no notes on what the machine can do
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
