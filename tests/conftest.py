"""What all tests share.

Kernels are compiled once and then come from the library's own disk cache, so the folder it
uses by default (or TINYGRAD_CG_CACHE_DIR) is deliberately left alone here: a second run of
the tests compiles nothing.
"""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tinygrad_cg import _ops
from tinygrad_cg_kernels.runtime import threads, tiers

_ops.load_all()  # before tests are collected: processes that share them have them in one order

# The first example of a property may compile a kernel, and the machine may have other work, so
# nothing is timed; derandomised, so that a run of the tests gives the same result each time.
settings.register_profile(
    "tinygrad_cg",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tinygrad_cg")

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or processes that tests start compile modules
gc.set_threshold(20_000, 20, 20)  # by default a tenth of the time to compile goes to its passes

LONGEST = (
    *("kernels/test_frontend", "cuda/test_on_device", "kernels/test_translation"),
    *("function/test_numba_cache", "function/test_numba_operations", "function/test_numba_code"),
    *("ops/test_ops", "function/test_fused", "function/test_operations", "function/test_fuse"),
    *("kernels/test_math", "kernels/test_reduce", "function/test_spellings", "check/test_check"),
    *("spellings/test_numpy_functions", "kernels/test_compile", "kernels/test_assembly"),
    *("kernels/test_memory", "kernels/test_accuracy", "core/test_scale", "tour/test_tour"),
)
"""The files that take longest with an empty cache, in the order in which they begin."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest files first, so that no worker is left with one of them at the end."""
    tests = Path(__file__).parent
    first = {tests / f"{name}.py": index for index, name in enumerate(LONGEST)}
    items.sort(key=lambda item: first.get(item.path, len(first)))


@pytest.fixture(scope="module", autouse=True)
def collect_little():
    """Leave what earlier files made out of the garbage collector's passes.

    Many tests ask for a full pass, which takes .2 s over all that pytest and Numba hold.
    """
    gc.collect()
    gc.freeze()


def pytest_runtest_setup() -> None:
    """Wait for optimized code that earlier tests began.

    Otherwise tests of what is compiled, of memory and of threads would depend on other tests.
    """
    tiers.wait()


@pytest.fixture
def restore_threads():
    """Set the number of threads back after a test that changes it."""
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)
