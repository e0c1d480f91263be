"""Programs in Numba's CUDA simulator, which has to be chosen before Numba is imported."""

import json
import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def simulate(module: str, *arguments: str) -> Any:
    """Return what a module prints as JSON, run as a program in a process with the simulator."""
    environment = os.environ | {
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]),
    }
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


def pause_between_looks() -> None:
    """Have the simulator wait a moment before it looks again at what its threads do.

    It looks without a pause, and so takes the processor from the threads that do the work: in short
    kernels nine tenths of the time.
    """
    from numba.cuda.simulator.kernel import BlockThread  # pyright: ignore[reportMissingImports]

    look = BlockThread.is_alive

    def is_alive(thread: Any) -> bool:
        time.sleep(PAUSE)
        return look(thread)

    BlockThread.is_alive = is_alive


if __name__ == "__main__":
    del sys.argv[0]
    pause_between_looks()
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
