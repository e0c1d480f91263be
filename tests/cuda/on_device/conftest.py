"""Tests on a device: a GPU with `pytest -m cuda`, or Numba's simulator, chosen before Numba is
imported, in the processes that `tests/cuda/test_on_device.py` starts. Elsewhere they are left out.
"""

import os
from pathlib import Path

import pytest

from tests.support.simulator import spare_threads

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mine = [item for item in items if item.path.is_relative_to(HERE)]
    if "cuda" not in config.getoption("-m") and os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
        items[:] = [item for item in items if item not in mine]
        config.hook.pytest_deselected(items=mine)
        return
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        spare_threads()
    from tinygrad_cg._core import devices

    missing = devices.count_gpus() == 0
    for item in mine:
        item.add_marker("cuda")
        if missing:
            item.add_marker(pytest.mark.skip(reason="there is no GPU"))
