"""`python -m benchmarks.numba_calls`: programs that Numba code and C call, beside other calls.

A value and a gradient are computed by a program in a loop of Numba code ("compiled"), by a program
of `function` that Python calls, with all threads ("Python") and with one, and by PyTensor's code in
a loop of Numba code, if it is installed. SciPy's `quad` integrates a compiled derivative as a C
function, and one that Python calls. Times are the least of many, each after a call that is not
timed, in microseconds; "least" is the least ratio of another time to that of "compiled", which uses
the thread that calls it.
"""

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._tour.console import table
from tinygrad_cg._tour.logistic import Examples, LogisticProblem, make_loss

COLUMNS = "compiled", "Python", "one thread", "PyTensor"
Calls = dict[str, tuple[Callable[[], Any], int]]
"""By column: what is timed, and how many calls it makes."""


@tf.custom_gradient
def log1pexp(x: tf.Tensor) -> Any:
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def times(calls: Calls, seconds: float) -> dict[str, float]:
    """Return the least time of a call in microseconds, by column, measured in turns."""
    least, threads = dict.fromkeys(calls, float("inf")), tf.get_num_threads()
    for run, _ in calls.values():
        run()
    end = time.perf_counter() + seconds
    while True:
        for column, (run, count) in calls.items():
            tf.set_num_threads(1 if column == "one thread" else threads)
            run()  # brings its data into the cache again
            start = time.perf_counter()
            run()
            least[column] = min(least[column], (time.perf_counter() - start) / count * 1e6)
        tf.set_num_threads(threads)
        if time.perf_counter() > end:
            return least


def loop_of(program: Any, x: Any, count: int) -> Callable[[], float]:
    """Return a function that calls a program `count` times in Numba code."""

    @numba.njit
    def of_arrays(x, count):
        total = 0.0
        for _ in range(count):
            value, gradient = program(x)
            total += value + gradient[0]
        return total

    @numba.njit
    def of_numbers(x, count):
        total = 0.0
        for k in range(count):
            value, slope = program(x + k * 1e-6)
            total += value + slope
        return total

    loop = of_numbers if isinstance(x, float) else of_arrays
    return lambda: loop(x, count)


def calls_of(function: Callable, x: Any, count: int, peer: Any = None) -> Calls:
    """Return the calls of the value and gradient of a function, and of PyTensor's."""
    program = tf.function(tf.value_and_grad(function))
    compiled, tensor = program.numba(np.asarray(x)), tf.constant(x, tf.float64)
    calls: Calls = {"compiled": (loop_of(compiled, x, count), count)}
    calls |= dict.fromkeys(("Python", "one thread"), (lambda: program(tensor), 1))
    if peer is not None:
        calls["PyTensor"] = loop_of(peer, x, count), count
    return calls


def pytensor_log1pexp(is_number: bool) -> Any:
    """Return PyTensor's value and gradient for Numba code; None if it is not installed."""
    try:
        pytensor = importlib.import_module("pytensor")
    except ImportError:
        return None
    x = pytensor.tensor.dscalar() if is_number else pytensor.tensor.dvector()
    value = pytensor.tensor.log(1 + pytensor.tensor.exp(x)).sum()
    outputs = [value, pytensor.grad(value, x)]
    function = pytensor.function([x], outputs, mode="NUMBA").vm.jit_fn

    @numba.njit
    def of_number(x):
        value, slope = function(np.array(x))
        return value.item(), slope.item()

    @numba.njit
    def of_array(x):
        value, gradient = function(x)
        return value.item(), gradient

    return of_number if is_number else of_array


def logistic(examples: int, features: int) -> Callable:
    """Return the tour's loss of a logistic model, for random examples."""
    random = np.random.default_rng(0)
    inputs = random.standard_normal((examples, features))
    part = Examples(inputs, np.round(random.random(examples)))
    return make_loss(LogisticProblem(part, part, np.full(features, 1e-3), part.labels), log1pexp)


def integrals() -> Calls:
    """Return the calls of SciPy's `quad`; none without SciPy."""
    try:
        from scipy import LowLevelCallable
        from scipy.integrate import quad
    except ImportError:
        return {}
    slope = tf.function(tf.grad(lambda x: tf.sin(x * x)))
    compiled = LowLevelCallable(slope.cfunc(tf.TensorSpec((), tf.float64)).ctypes)

    def python(x: float) -> float:
        return float(slope(tf.constant(x, tf.float64)))

    def integral(function: Any) -> float:
        return quad(function, 0.0, 5.0, limit=100)[0]

    assert abs(integral(compiled) - np.sin(25.0)) < 1e-9
    return {"compiled": (lambda: integral(compiled), 1), "Python": (lambda: integral(python), 1)}


def row(name: str, calls: Calls, seconds: float) -> tuple[str, ...]:
    measured = times(calls, seconds)
    others = [measured[column] for column in COLUMNS[1:] if column in measured]
    cells = [f"{measured[column]:.3g}" if column in measured else "" for column in COLUMNS]
    return name, *cells, f"{min(others) / measured['compiled']:.1f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.numba_calls", description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each row")
    seconds = parser.parse_args().seconds
    number, array = pytensor_log1pexp(True), pytensor_log1pexp(False)

    def total(x: tf.Tensor) -> tf.Tensor:
        return tf.reduce_sum(log1pexp(x))

    rows = [
        row("log1pexp, a number", calls_of(log1pexp, 0.5, 1000, number), seconds),
        row("log1pexp, 1 element", calls_of(total, np.full(1, 0.5), 1000, array), seconds),
        row("log1pexp, 1,000", calls_of(total, np.linspace(-3, 3, 1000), 10, array), seconds),
        row("logistic loss, 10,000 x 10", calls_of(logistic(10_000, 10), np.ones(10), 1), seconds),
    ]
    calls = integrals()
    if calls:
        rows.append(row("quad of a derivative", calls, seconds))
    table(("value and gradient, us", *COLUMNS, "least"), rows)


if __name__ == "__main__":
    main()
