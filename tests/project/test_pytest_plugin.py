"""The pytest plugin: the fixture `gradient_benchmark`, and tracebacks in tests."""

import json
import os
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("-p", "benchmark", "-p", "pytest_tinygrad_cg", "--benchmark-min-rounds=2")
QUICK = ("--benchmark-max-time=0.01", "--benchmark-calibration-precision=1")

PROGRAM = """
import pytest
import numpy as np
import tinygrad_cg as tf

calls = []


def energy(x, w):
    calls.append(None)
    return tf.reduce_sum(tf.sin(x) * w)


@pytest.mark.parametrize("n", [3, 40])
def test_energy(gradient_benchmark, n):
    x = np.linspace(0.0, 1.0, n)
    checked = len(calls)
    result = gradient_benchmark(energy, x, np.ones(n, "float32").astype("float64"))
    expected = {
        "value": np.sin(x).sum(),
        "gradient": np.cos(x),
        "hvp": -np.sin(x) * np.random.default_rng(0).standard_normal(n),
    }[gradient_benchmark.derivative]
    np.testing.assert_allclose(result, expected, rtol=1e-12)


@tf.custom_gradient
def wrong(x):
    return tf.reduce_sum(x * x), lambda dy: 3.0 * dy * x


@pytest.mark.gradient_benchmark(derivatives="gradient")
def test_wrong(gradient_benchmark):
    gradient_benchmark(wrong, tf.constant([1.0, 2.0]))


@pytest.mark.benchmark(group="mine")
@pytest.mark.gradient_benchmark(derivatives=("value", "hvp"), modes="eager")
def test_group(gradient_benchmark):
    gradient_benchmark(lambda x, y: tf.reduce_sum(x["a"] ** 3 * y), {"a": tf.ones((2, 2))}, 2.0,
                       argnums=(0, 1), order=1)


def test_against(gradient_benchmark):
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda dy: dy

    gradient_benchmark(rounded, 1.3, against=lambda x: x)


def test_another(benchmark):
    benchmark(sum, [1])
"""


def run(pytester, monkeypatch, program, *options):
    folders = ROOT, ROOT / "kernels", ROOT / "benchmarks" / "plugin"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))
    for name in [name for name in os.environ if name.startswith("PYTEST_XDIST")]:
        monkeypatch.delenv(name)  # pytest-benchmark times nothing where a worker runs
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(program)
    return pytester.runpytest_subprocess(*options)


def test_a_test_is_timed_for_each_derivative_and_mode(pytester, monkeypatch):
    result = run(
        pytester, monkeypatch, PROGRAM, *OPTIONS, *QUICK, "--benchmark-json=out.json",
        "--benchmark-autosave", "--benchmark-storage=stored",
    )  # fmt: skip
    result.assert_outcomes(passed=12 + 2 + 6 + 1, failed=2)
    result.stdout.fnmatch_lines(["*GradientError*", "*wrong*"])
    benchmarks = {
        benchmark["name"]: benchmark
        for benchmark in json.loads(Path("out.json").read_text())["benchmarks"]
    }
    hvp = benchmarks["test_energy[hvp-compiled-40]"]
    assert hvp["group"] == "test_energy: hvp"
    assert hvp["extra_info"] == {
        "function": "energy",
        "derivative": "hvp",
        "order": 2,
        "mode": "compiled",
        "elements": 40,
        "dtype": "float64",
    }
    assert benchmarks["test_energy[value-eager-3]"]["extra_info"]["order"] == 0
    assert benchmarks["test_group[hvp-eager]"]["group"] == "mine: hvp"
    assert benchmarks["test_group[hvp-eager]"]["extra_info"]["elements"] == 5
    assert benchmarks["test_another"]["group"] is None
    assert not any("wrong" in name for name in benchmarks)
    again = pytester.runpytest_subprocess(
        *OPTIONS, *QUICK, "--benchmark-storage=stored", "--benchmark-compare", "--benchmark-only",
        "-k", "energy and 40",
    )  # fmt: skip
    again.assert_outcomes(passed=6)
    again.stdout.fnmatch_lines(["*benchmark 'test_energy: gradient': 4 tests*", "*(0001*)*"])


COUNTED = """
import tinygrad_cg.test
from tinygrad_cg import constant, reduce_sum, square

calls = []


def check(*args, **kwargs):
    calls.append(kwargs)


tinygrad_cg.test.assert_gradients = check


def test_many(gradient_benchmark):
    gradient_benchmark(lambda x: reduce_sum(square(x)), constant([1.0]), order=3)
    assert calls == [{"order": 3, "against": None}]


def test_without(gradient_benchmark):
    gradient_benchmark(lambda x: reduce_sum(square(x)), constant([1.0]), check=False)
    assert len(calls) == 1
"""


def test_a_gradient_is_checked_once(pytester, monkeypatch):
    result = run(pytester, monkeypatch, COUNTED, *OPTIONS, "--benchmark-disable")
    result.assert_outcomes(passed=12)


UNUSED = """
import sys


def test_nothing():
    assert "tinygrad_cg" not in sys.modules
    assert "benchmark" not in sys.modules


def test_used(gradient_benchmark):
    pass
"""


def test_nothing_is_loaded_or_needed_unless_the_fixture_is_used(pytester, monkeypatch):
    result = run(pytester, monkeypatch, UNUSED, "-p", "pytest_tinygrad_cg")
    result.assert_outcomes(passed=1, errors=6)
    result.stdout.fnmatch_lines(["*'gradient_benchmark' needs pytest-benchmark: pip install*"])


@pytest.mark.parametrize(
    ("mark", "words"),
    [
        ("derivatives='jacobian'", "derivatives must be among ('value', 'gradient', 'hvp')"),
        ("modes=()", "modes must be among ('eager', 'compiled')"),
        ("order=1", "only takes derivatives= and modes="),
    ],
)
def test_wrong_options_are_usage_errors(pytester, monkeypatch, mark, words):
    program = f"""
import pytest

@pytest.mark.gradient_benchmark({mark})
def test_it(gradient_benchmark):
    pass
"""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(program)
    result = pytester.runpytest_inprocess("-p", "pytest_tinygrad_cg")
    assert words in result.stdout.str() + result.stderr.str()
    assert result.ret != 0


FAILING = """
import tinygrad_cg as tf


def test_product():
    tf.grad(lambda x: tf.matmul(x, x))(tf.ones((2, 3)))
"""


def test_tracebacks_of_tests_hide_the_library(pytester, monkeypatch):
    shown = run(pytester, monkeypatch, FAILING, "-p", "pytest_tinygrad_cg").stdout.str()
    assert "tf.grad(lambda x: tf.matmul(x, x))" in shown
    assert "shapes (2, 3) and (2, 3)" in shown
    assert "functional.py" not in shown
    whole = pytester.runpytest_subprocess("-p", "pytest_tinygrad_cg", "--full-trace").stdout.str()
    assert "functional.py" in whole
