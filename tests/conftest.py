"""What all tests share.

Kernels are compiled once and then come from the library's own disk cache, so the folder it
uses by default (or TINYGRAD_CG_CACHE_DIR) is deliberately left alone here: a second run of
the tests compiles nothing.
"""

import pytest
from hypothesis import settings

from tinygrad_cg_kernels.runtime import threads

# The first example of a property may compile a kernel, so no deadline; derandomised, so that
# a run of the tests gives the same result each time.
settings.register_profile("tinygrad_cg", deadline=None, derandomize=True, database=None)
settings.load_profile("tinygrad_cg")


@pytest.fixture
def restore_threads():
    """Set the number of threads back after a test that changes it."""
    before = threads.get_num_threads()
    yield
    threads.set_num_threads(before)
