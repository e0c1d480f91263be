"""Programs in Numba's CUDA simulator, which has to be chosen before Numba is imported."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from greenlet import greenlet

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / folder) for folder in (".", "kernels", "tests/support/stand_ins")]
SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": os.pathsep.join(PATHS)}
"""Variables of a process with Numba's simulator and a stand-in for CuPy.

`simulate` also reads SIMULATED_THREADS, the number of threads in a block: half of them are a warp,
so only with more than the usual 4 can a group have several threads and be smaller than a warp.
"""


def simulate(module: str, *arguments: str) -> Any:
    """Return what a module prints as JSON, run as a program in a process with the simulator."""
    environment = os.environ | SIMULATOR
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", __name__, module, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def spare_threads() -> None:
    """Have the simulator run the threads of a block in turns, each until it waits.

    The simulator starts a thread of the system for each of a block's: waiting for these took nine
    tenths of the time. The order is reversed at each turn, so that a missing `syncthreads` gives
    wrong numbers in one order or the other.
    """
    from numba.cuda.simulator import kernelapi  # pyright: ignore[reportMissingImports]
    from numba.cuda.simulator.kernel import (  # pyright: ignore[reportMissingImports]
        BlockManager,
        BlockThread,
    )

    class ThreadInTurn(BlockThread):
        def __init__(self, *arguments: Any):
            super().__init__(*arguments)
            self.turns = greenlet(self.run)

        def syncthreads(self) -> None:
            self.turns.parent.switch()

    def run(block: Any, grid_point: Any, *arguments: Any) -> None:
        def call() -> None:
            block._f(*arguments)

        points = np.ndindex(*block._block_dim)
        threads = [ThreadInTurn(call, block, grid_point, point, block._debug) for point in points]
        while threads:
            for thread in threads:
                running.append(thread)
                thread.turns.switch()
                running.pop()
                if thread.exception:
                    raise thread.exception[0].with_traceback(thread.exception[1])
            threads = [thread for thread in reversed(threads) if not thread.turns.dead]

    running: list[ThreadInTurn] = []
    BlockManager.run = run
    kernelapi.threading = SimpleNamespace(current_thread=lambda: running[-1])


if __name__ == "__main__":
    del sys.argv[0]
    spare_threads()
    from tinygrad_cg_kernels.cuda import adapter

    adapter.THREADS = int(os.environ.get("SIMULATED_THREADS", "4"))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
