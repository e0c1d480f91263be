"""Programs in Numba's CUDA simulator, which has to be chosen before Numba is imported."""

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

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


PAUSE = 2e-5  # seconds


def spare_threads() -> None:
    """Have the simulator take less time: for most kernels nine tenths of it went to its threads.

    The threads of a block that never wait for each other are one thread of Python, one turn after
    another. Where they wait, the simulator looks what they do without a pause, and so takes the
    processor from those that work: it waits a moment before it looks again. A shared array is one
    array for all threads of a block: see `shared_array`.
    """
    from numba.cuda.simulator.kernel import (  # pyright: ignore[reportMissingImports]
        BlockManager,
        BlockThread,
        Dim3,
    )
    from numba.cuda.simulator.kernelapi import (  # pyright: ignore[reportMissingImports]
        FakeCUDAShared,
    )

    look, run_together, waiting = BlockThread.is_alive, BlockManager.run, WeakKeyDictionary()

    def is_alive(thread: Any) -> bool:
        time.sleep(PAUSE)
        return look(thread)

    class Turns(BlockThread):
        def syncthreads(self) -> None:
            raise RuntimeError("these threads were taken for ones that never wait")

    def run(block: Any, grid_point: Any, *arguments: Any) -> None:
        kernel = block._f
        if kernel not in waiting:
            waiting[kernel] = _waits(kernel, set())
        if waiting[kernel]:
            return run_together(block, grid_point, *arguments)

        def take_turns() -> None:
            width, height, _ = block._block_dim
            for point in np.ndindex(*block._block_dim):
                thread.threadIdx = index = Dim3(*point)
                thread.thread_id = index.x + width * (index.y + height * index.z)
                kernel(*arguments)

        thread: Any = Turns(take_turns, block, grid_point, (0, 0, 0), block._debug)
        thread.start()
        thread.join()
        if thread.exception:
            raise thread.exception[0].with_traceback(thread.exception[1])
        return None

    BlockThread.is_alive, BlockManager.run = is_alive, run
    FakeCUDAShared.array = shared_array


def shared_array(shared: Any, shape: Any, dtype: np.dtype) -> np.ndarray:
    """Return the shared array of the line that calls this, which the first thread creates.

    The simulator's own function looks for it and then adds it, so that two threads at the same time
    had an array each, and read numbers that nobody had written.
    """
    frame = sys._getframe(1)
    line = frame.f_code.co_filename, frame.f_lineno
    return shared._allocations.setdefault(line, np.empty(shape, dtype))


def _waits(function: Any, seen: set[int]) -> bool:
    """Return whether a function, or one that it calls, names what makes threads wait."""
    if type(function).__name__ == "FakeCUDAKernel":
        function = function.fn
    if not isinstance(function, FunctionType) or id(function) in seen:
        return False
    seen.add(id(function))
    names = function.__code__.co_names
    if any(name.startswith("sync") for name in names):
        return True
    called = [function.__globals__.get(name) for name in names]
    called += [cell.cell_contents for cell in function.__closure__ or ()]
    return any(_waits(function, seen) for function in called)


if __name__ == "__main__":
    del sys.argv[0]
    spare_threads()
    from tinygrad_cg_kernels.cuda import adapter

    adapter.THREADS = int(os.environ.get("SIMULATED_THREADS", "4"))
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
