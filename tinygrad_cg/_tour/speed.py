"""Part four: timings against the same mathematics written by hand in NumPy."""

from collections.abc import Callable

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._tour.custom_rules import log1pexp, softplus
from tinygrad_cg._tour.logistic import LogisticProblem, differentiate, make_loss
from tinygrad_cg._tour.printing import heading, say, table
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


def row(name: str, ours: Callable[[], tuple], theirs: Callable[[], tuple]) -> tuple[str, ...]:
    """Check that both give the same numbers, then time them in turns."""
    for mine, other in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(np.asarray(mine), other, rtol=1e-7)
    taken = medians({"ours": ours, "theirs": theirs}, SECONDS_A_ROW, rounds=1000)
    ratio = taken["theirs"] / taken["ours"]
    return (name, *(f"{seconds * 1e6:.1f}" for seconds in taken.values()), f"{ratio:.2f}")


def show(problem: LogisticProblem) -> None:
    heading("4. How long it takes")
    random = np.random.default_rng(0)
    rows = []
    for size in SIZES:
        x = random.normal(size=size)
        point = tf.constant(x)
        name = f"log1pexp, value and gradient, n = {size:,}"
        rows.append(row(name, lambda t=point: by_tape(t), lambda a=x: by_hand(a)))
    width = problem.start.size
    name = f"a Newton step's loss, gradient, {width} x {width} Hessian"
    rows.append(row(name, lambda: newton_by_tape(problem), lambda: newton_by_hand(problem)))
    table(("median of rounds in turn, microseconds", "tapes", "NumPy", "ratio"), rows)
    say(
        """NumPy runs formulas that someone derived on paper; the tapes derive them each time
        they run. Ratios above 1 mean that the tapes were faster. float64, values compared
        before anything was timed. `python -m benchmarks`, in the source tree, measures against
        other libraries."""
    )
