"""Programs in Numba's CUDA simulator, which has to be chosen before Numba is imported."""

import json
import os
import subprocess
import sys
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
        [sys.executable, "-W", "error", "-m", module, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
