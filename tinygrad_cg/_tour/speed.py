"""Part five: timings of tapes and programs, of NumPy by hand, and of other libraries."""

from collections.abc import Callable

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._core.tracking import track
from tinygrad_cg._tour import peers
from tinygrad_cg._tour.console import heading, say, table
from tinygrad_cg._tour.custom_rules import log1pexp, softplus
from tinygrad_cg._tour.logistic import LogisticProblem, differentiate, make_loss
from tinygrad_cg._tour.timing import medians

SIZES = (1, 1_000, 1_000_000)
SECONDS_A_ROW = 0.4


def by_tape(x) -> tuple:
    """Return value and gradient of the documents' function, summed, as a user writes it."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(log1pexp(x))
    return y, tape.gradient(y, x)


def by_hand(x: np.ndarray) -> tuple:
    """Return the same in NumPy, derived on paper."""
    e = np.exp(x)
    return np.log(1 + e).sum(), 1 - 1 / (1 + e)


def newton_by_hand(problem: LogisticProblem) -> tuple:
    """Return loss, gradient and Hessian of the logistic model in NumPy, derived on paper."""
    inputs, labels = problem.fitted.inputs, problem.fitted.labels
    margins = inputs @ problem.start
    shrunk = np.exp(-np.abs(margins))
    chances = np.where(margins >= 0, 1.0, shrunk) / (1 + shrunk)
    losses = np.maximum(margins, 0) + np.log1p(shrunk) - labels * margins
    value = losses.mean() + (problem.ridge * problem.start**2).sum() / 2
    gradient = inputs.T @ (chances - labels) / labels.size + problem.ridge * problem.start
    weights = chances * (1 - chances) / labels.size
    return value, gradient, (inputs.T * weights) @ inputs + np.diag(problem.ridge)


def newton_by_tape(problem: LogisticProblem) -> tuple:
    """Return the same from tapes."""
    return differentiate(make_loss(problem, softplus), problem.start)


def newton_by_function(problem: LogisticProblem) -> Callable[[], tuple]:
    """Return a compiled program that gives the same."""
    loss, point = make_loss(problem, softplus), tf.constant(problem.start)

    @tf.function
    def run(weights):
        return *tf.value_and_grad(loss)(weights), tf.hessian(loss)(weights)

    return lambda: run(point)


def row(name: str, functions: dict[str, Callable[[], tuple]], columns: list[str]) -> list[str]:
    """Check that all give NumPy's numbers, then time them in turns; give a cell for each column."""
    for function in functions.values():
        for result, expected in zip(function(), functions["NumPy"](), strict=True):
            np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-7)
    taken = medians(functions, SECONDS_A_ROW, rounds=1000)
    cells = [f"{taken[column] * 1e6:.1f}" if column in taken else "-" for column in columns]
    return [name, *cells, f"{taken['NumPy'] / taken['function']:.2f}"]


def show(problem: LogisticProblem) -> None:
    heading("5. How long it takes")
    random, rows = np.random.default_rng(0), []
    others = dict(track(peers.installed(), "libraries loaded"))
    columns = ["function", "tapes", "NumPy", *others]
    compiled = tf.function(by_tape)
    for size in SIZES:
        x = random.normal(size=size)
        point = tf.constant(x)
        functions = {
            "function": lambda t=point: compiled(t),
            "tapes": lambda t=point: by_tape(t),
            "NumPy": lambda a=x: by_hand(a),
            **{name: make(x) for name, make in others.items()},
        }
        rows.append(row(f"value and gradient, n = {size:,}", functions, columns))
    width = problem.start.size
    functions = {
        "function": newton_by_function(problem),
        "tapes": lambda: newton_by_tape(problem),
        "NumPy": lambda: newton_by_hand(problem),
    }
    rows.append(row(f"a Newton step, {width} x {width} Hessian", functions, columns))
    table(("microseconds", *columns, "ratio"), rows)
    say(
        """The function is sum(log(1 + exp(x))), in float64; a Newton step takes
        loss, gradient and Hessian. Times are medians of rounds in turn; all values were
        compared first. NumPy runs formulas derived by hand, tapes derive them at each run, and
        `function` compiles a program once for each signature. The ratio is NumPy's time divided
        by the time of `function`: above 1, `function` is faster."""
    )
    if others:
        say(
            f"""Other libraries are those installed here ({", ".join(others)}), in the way that
            each runs fastest: JAX by jit, TensorFlow by tf.function."""
        )
    say("`python -m benchmarks`, in the source tree, measures against other libraries.")
