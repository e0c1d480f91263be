"""Programs in Python processes of their own, which find the library and these tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATH = os.pathsep.join([str(ROOT), str(ROOT / "kernels")])


def run_python(
    *command: str, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program, or what the interpreter's arguments say, with variables of the environment.

    One argument is the text of a program. Unless `check` is False it has to end without an error.
    """
    if len(command) == 1:
        command = ("-c", *command)
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": PATH, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0 or not check, done.stdout + done.stderr
    return done
