"""Logistic regression by Newton's method, with derivatives from tapes inside tapes."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._tour.measurements import Measurements

RIDGE = 1e-3
TOLERANCE = 1e-9
SHORTEST_STEP = 1e-8
MOST_STEPS = 60


class Examples(NamedTuple):
    """Rows to fit or to judge by, each with a last entry of 1 for the intercept."""

    inputs: np.ndarray
    labels: np.ndarray

    def accuracy(self, weights: np.ndarray) -> float:
        """Return the fraction of rows on the right side of the plane."""
        return float(np.mean((self.inputs @ weights > 0) == self.labels))


class LogisticProblem(NamedTuple):
    """The fit to make: unscaled data in two parts, where to begin, how to penalise."""

    fitted: Examples
    held_out: Examples
    ridge: np.ndarray
    start: np.ndarray


class Derivatives(NamedTuple):
    value: float
    gradient: np.ndarray
    hessian: np.ndarray


class NewtonStep(NamedTuple):
    """The state of Newton's method, and the part of the full step that it takes from here."""

    weights: np.ndarray
    value: float
    decrement: float  # what a full step would gain, if the loss were quadratic
    rate: float

    @property
    def end(self) -> str:
        """Return how the method ended, at a step from which it takes no further one."""
        return "done" if self.decrement < TOLERANCE else "stuck"


def make_problem(data: Measurements) -> LogisticProblem:
    """Hold out every fourth row of each class, and start at the nearest-mean classifier.

    The ridge weighs each feature with its variance, so it does not depend on the units; nor
    does Newton's method, so the data stay as they are.
    """
    random = np.random.default_rng(0)
    held_out = np.zeros(data.labels.size, dtype=bool)
    for label in (0.0, 1.0):
        rows = random.permutation(np.flatnonzero(data.labels == label))
        held_out[rows[: rows.size // 4]] = True
    inputs = np.column_stack([data.measurements, np.ones(data.labels.size)])
    fitted, others = (Examples(inputs[rows], data.labels[rows]) for rows in (~held_out, held_out))
    variances = np.append(np.var(fitted.inputs[:, :-1], axis=0), 1.0)
    ridge = RIDGE * np.where(variances > 0, variances, 1.0)
    return LogisticProblem(fitted, others, ridge, nearest_mean(fitted))


def nearest_mean(part: Examples) -> np.ndarray:
    """Return the plane halfway between the means of the two classes, as weights."""
    negative, positive = (
        part.inputs[part.labels == label, :-1].mean(axis=0) for label in (0.0, 1.0)
    )
    return np.append(positive - negative, (negative @ negative - positive @ positive) / 2)


def make_loss(problem: LogisticProblem, softplus: Callable) -> Callable:
    """Return the mean negative log-likelihood plus ridge, as a function of the weights.

    With `softplus(x)` = log(1 + e^x); which one, is what the tour is about.
    """
    inputs, labels, ridge = map(tf.constant, (*problem.fitted, problem.ridge))

    def loss(weights):
        margins = tf.linalg.matvec(inputs, weights)
        likelihood = tf.reduce_mean(softplus(margins) - labels * margins)
        return likelihood + tf.reduce_sum(ridge * tf.square(weights)) / 2

    return loss


def differentiate(loss: Callable, weights: np.ndarray) -> Derivatives:
    """Return value, gradient and Hessian by nested tapes: a sweep for each row of the Hessian."""
    point = tf.constant(weights)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(point)
        with tf.GradientTape() as inner:
            inner.watch(point)
            value = loss(point)
        gradient = inner.gradient(value, point)
    rows = [
        outer.gradient(gradient, point, output_gradients=tf.constant(direction))
        for direction in np.eye(weights.size)
    ]
    return Derivatives(float(value), gradient.numpy(), np.stack([row.numpy() for row in rows]))


def newton(loss: Callable, weights: np.ndarray) -> Iterator[NewtonStep]:
    """Yield the points of a damped Newton iteration, until a full step would gain nothing.

    Raises FloatingPointError where the loss or a derivative is not finite, or the Hessian is
    singular in floating point.
    """
    for _ in range(MOST_STEPS):
        here = differentiate(loss, weights)
        parts = {"loss": here.value, "gradient": here.gradient, "Hessian": here.hessian}
        bad = [name for name, values in parts.items() if not np.all(np.isfinite(values))]
        if bad:
            raise FloatingPointError(f"not finite: {', '.join(bad)}")
        direction = newton_direction(here)
        slope = float(here.gradient @ direction)
        converged = -slope / 2 < TOLERANCE
        rate = 0.0 if converged else step_size(loss, here, weights, direction)
        yield NewtonStep(weights, here.value, -slope / 2, rate)
        if rate == 0.0:
            return
        weights = weights + rate * direction


def step_size(
    loss: Callable, here: Derivatives, weights: np.ndarray, direction: np.ndarray
) -> float:
    """Halve the step until the loss falls by a quarter of what its slope says; 0.0 if never."""
    slope = float(here.gradient @ direction)
    rate = 1.0
    while rate > SHORTEST_STEP:
        if float(loss(tf.constant(weights + rate * direction))) <= here.value + rate * slope / 4:
            return rate
        rate /= 2
    return 0.0


def newton_direction(here: Derivatives) -> np.ndarray:
    """Solve for the full step, with each unknown in its own unit so that the pivots compare."""
    units = 1 / np.sqrt(np.diag(here.hessian))
    try:
        scaled = np.linalg.solve(here.hessian * np.outer(units, units), units * here.gradient)
    except np.linalg.LinAlgError:
        raise FloatingPointError("the Hessian is singular in floating point") from None
    if here.gradient @ (units * scaled) < 0:
        raise FloatingPointError("the Hessian is not positive in floating point")
    return -units * scaled
