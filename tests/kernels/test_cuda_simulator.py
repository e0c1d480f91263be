"""Scalar functions in CUDA device code, as far as Numba's simulator can tell.

The simulator has to be chosen before numba is imported, and there device code runs as Python: so
this looks, in a process of its own, for functions that device code could not use as they are.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.test_math import TABLE

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import json
import sys
import warnings

import numpy as np

warnings.simplefilter("ignore")
from numba import config, cuda
from tinygrad_cg_kernels import elementary

assert config.ENABLE_CUDASIM


def over(f, *operands):
    @cuda.jit
    def of_one(x, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = f(x[i])

    @cuda.jit
    def of_two(x, y, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = f(x[i], y[i])

    @cuda.jit
    def of_three(x, y, z, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = f(x[i], y[i], z[i])

    @cuda.jit
    def of_four(x, y, z, w, out):
        i = cuda.grid(1)
        if i < out.size:
            out[i] = f(x[i], y[i], z[i], w[i])

    out = np.empty_like(operands[0])
    (of_one, of_two, of_three, of_four)[len(operands) - 1][1, 4](*operands, out)
    return out


found = {}
for name, values, dtype in json.load(sys.stdin):
    result = over(getattr(elementary, name), *[np.array(one, dtype) for one in values])
    found[name] = result.astype(float).tolist()
print(json.dumps(found))
"""


ORDERS = ("polygamma", "bessel_i", "bessel_ie")


def operands(name):
    """Three values of each operand, at most four, where the function is defined."""
    kind, inputs, *_ = TABLE[name]
    if kind == "logical":
        return [[True, False, True], [True, True, False]][:inputs], "bool"
    if "d" not in TABLE[name].codes:
        return [[4, -7, 12], [2, 1, 3]][:inputs], "int64"
    x = [0.25, 0.5, 0.75] if name not in (*ORDERS, "arccosh", "zeta") else [1.0, 2.0, 3.0]
    return [x, [0.5, 1.5, 0.75], [2.0, 0.125, 0.5], [1.0, 3.0, -0.5]][:inputs], "float64"


@pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")
def test_device_code_can_use_every_scalar_function():
    cases = {name: operands(name) for name in TABLE if TABLE[name][0] != "select"}
    environment = os.environ | {
        "NUMBA_ENABLE_CUDASIM": "1",
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")]),
    }
    told = json.dumps([[name, *case] for name, case in cases.items()])
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, input=told, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert set(results) == set(cases)
    for name, (values, dtype) in cases.items():
        want = TABLE[name][3](*[np.array(value, dtype) for value in values])
        np.testing.assert_allclose(results[name], want.astype(float), rtol=1e-13, err_msg=name)
