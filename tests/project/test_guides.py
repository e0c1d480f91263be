"""Programs written for TensorFlow run with this library's import alone changed, same numbers.

``guides/NAME.txt`` is what ``examples/guides/NAME.py`` printed in TensorFlow 2.21.
"""

import re
import runpy
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {  # the relative error allowed: float32, or float64
    "deq": 1e-8,
    "flows": 1e-5,
    "gaussian_process": 1e-8,
    "gradient_reversal": 1e-5,
    "gumbel_softmax": 1e-5,
    "kalman": 1e-8,
    "lstm": 1e-5,
    "maml": 1e-5,
    "pinn_kdv": 1e-8,
    "revnet": 1e-5,
    "vq_vae": 1e-5,
    "wgan_gp": 1e-5,
}
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def program(name):
    return ROOT / "examples" / "guides" / f"{name}.py"


def assert_as_tensorflow(name, printed):
    """Compare words exactly, numbers up to an error and to a unit of the last decimal."""
    expected = (ROOT / "tests" / "project" / "guides" / f"{name}.txt").read_text("utf-8")
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    result, wanted = NUMBER.findall(printed), NUMBER.findall(expected)
    assert len(wanted) >= 8
    for number, other in zip(result, wanted, strict=True):
        decimals = len(other.partition("e")[0].partition(".")[2])
        unit = 1.01 * 10.0**-decimals if decimals else 0.0
        assert float(number) == pytest.approx(float(other), rel=PROGRAMS[name], abs=unit), printed


def test_every_program_is_run():
    assert {path.stem for path in (ROOT / "examples" / "guides").glob("*.py")} == set(PROGRAMS)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_tensorflows(name, capsys):
    text = program(name).read_text("utf-8")
    assert re.findall(r"^(?:import|from) (\S+)", text, re.M) == ["numpy", "tinygrad_cg"]
    runpy.run_path(str(program(name)))
    assert_as_tensorflow(name, capsys.readouterr().out)


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs TensorFlow")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run_in_tensorflow(name, tmp_path):
    text = program(name).read_text("utf-8")
    path = tmp_path / f"{name}.py"
    path.write_text(text.replace("import tinygrad_cg as tf", "import tensorflow as tf"), "utf-8")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=True)
    assert_as_tensorflow(name, done.stdout)
