"""What the adapter asks of Numba's CUDA target, as far as that needs no GPU."""

import sys
import warnings

import pytest
from numba import NumbaPerformanceWarning

from tinygrad_cg_kernels.cuda import adapter

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there"),
]


@pytest.fixture
def launched(monkeypatch):
    """The grids and blocks of kernels that are launched, and not run."""
    calls = []

    def call(kernel, arguments, grid, *rest):
        if rest:  # Numba's own target; with numba-cuda the configuration itself
            calls.append((arguments, grid, rest[0]))
        else:
            calls.append((arguments, grid.griddim, grid.blockdim))

    monkeypatch.setattr(type(adapter.device_kernel(write)), "call", call)
    monkeypatch.setattr(adapter, "stream", lambda: 0)
    return calls


def write(x):
    x[0] = 1


def test_launches_of_few_blocks_do_not_warn(launched):
    kernel = adapter.device_kernel(write)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for blocks in (1, 4, 127, 128, 500, 4):
            adapter.launch(kernel, blocks, ["x"])
            adapter.launch(kernel, blocks, ["x"], 32)
    wanted = [(blocks, size) for blocks in (1, 4, 127, 128, 500, 4) for size in (256, 32)]
    assert launched == [(("x",), (blocks, 1, 1), (size, 1, 1)) for blocks, size in wanted]


def test_launches_of_a_users_kernel_warn(launched):
    kernel = adapter.device_kernel(write)
    adapter.launch(kernel, 4, ["x"], 32)  # and leaves what Numba keeps as it is
    adapter.launch(kernel, 128, ["x"], 32)
    with pytest.warns(NumbaPerformanceWarning, match="Grid size 4 "):
        adapter.launch_for_user(kernel, 4, ["x"], 32)
    with pytest.warns(NumbaPerformanceWarning, match="Grid size 2 "):
        adapter.launch_for_user(kernel, (1, 2), ["x"], 32)
    assert [grid for _, grid, _ in launched] == [(4, 1, 1), (128, 1, 1), (4, 1, 1), (1, 2, 1)]
