"""The tests of `on_device/` in Numba's simulator: one process for each file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.simulator import SIMULATOR

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((Path(__file__).parent / "on_device").glob("test_*.py"))


@pytest.mark.skipif(sys.platform == "darwin", reason="Numba has no CUDA there")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_in_the_simulator(file):
    environment = os.environ | SIMULATOR
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", str(file)]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, cwd=ROOT
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert not failed, "\n".join([*failed, done.stdout[-8000:]])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr
    assert "no tests ran" not in done.stdout


def test_without_asking_for_a_gpu_nothing_of_it_is_imported():
    program = """
import sys
import tinygrad_cg as tf

x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape, tf.device("/CPU:0"):
    y = tf.reduce_sum(tf.exp(x) * tf.constant([3.0, 4.0]))
tape.gradient(y, x).cpu().numpy()
print(tf.config.list_physical_devices("CPU"))
tf.config.set_visible_devices([], "GPU")
print(tf.config.get_visible_devices("GPU"))
with tf.device("GPU"):
    print(tf.ones(1).device)
tf.function(lambda x: x * 2.0)(x)
found = [name for name in sys.modules if name.startswith(("numba.cuda", "cupy"))]
print(found, [name for name in sys.modules if name.startswith("tinygrad_cg_kernels.cuda")])
"""
    environment = {name: text for name, text in os.environ.items() if "CUDASIM" not in name}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "kernels")])
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    processor = "[PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]"
    assert done.stdout.splitlines() == [processor, "[]", "cpu", "[] []"]


def test_without_a_gpu_errors_say_what_is_missing():
    program = """
import tinygrad_cg as tf
from tinygrad_cg._core import devices

print(tf.config.list_physical_devices("GPU"), tf.config.list_logical_devices("GPU"))
with tf.device("/GPU:0"):  # as in the original with soft placement
    print(tf.ones(1).device)
for move in (lambda x: x.gpu(), lambda x: x.to_device("cuda:0")):
    try:
        move(tf.ones(1))
    except tf.errors.DeviceError as error:
        print(error)
"""
    hidden = {"CUDA_VISIBLE_DEVICES": "", "NUMBA_DISABLE_CUDA": "1"}
    environment = {name: text for name, text in os.environ.items() if "CUDASIM" not in name}
    environment |= hidden | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels")])}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, of_gpu, of_name = done.stdout.splitlines()
    assert lines == ["[] []", "cpu"]
    assert of_gpu.startswith("gpu: there is no device 'gpu:0'. A GPU needs NVIDIA's driver")
    assert 'pip install ".[cuda12]"' in of_name
