"""What is measured: a record for each piece of work, its data, and what its results must be."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

Data = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Work:
    """One row: a program of `library.Library`, by its name, on the arrays that `data` makes.

    Gradients are by the first `wanted` of them.
    """

    name: str
    program: str
    data: Callable[[], Data]
    wanted: int = 1
    size: int = 0
    """Elements, for the rows of one program that differ in nothing else."""


def vector(size: int, dtype: str = "float64") -> Data:
    """Return normal numbers, the same on every run."""
    return (np.random.default_rng(size).normal(size=size).astype(dtype),)


def matrix(rows: int, columns: int) -> Data:
    """Return float32 normal numbers."""
    (numbers,) = vector(rows * columns, "float32")
    return (numbers.reshape(rows, columns),)


def scalars(count: int) -> Data:
    """Return numbers a little above 1, whose products stay small."""
    return (np.array(1.001),) * count


def recurrence(largest: float) -> Data:
    """Return factors and the first state. With `largest` = 1.5, an element of the gradient is
    subnormal in its last 240 rounds; with 1.25, neither states nor gradients die out or saturate.
    """
    return np.array([0.9, 1.05, 1.2, largest]), np.array([0.1, -0.2, 0.3, -0.4])


def sequence(steps: int, batch: int, width: int) -> Data:
    """Return float32 weights and offsets of an LSTM, a batch of sequences, and the first state."""
    rng = np.random.default_rng(width)
    shapes = (width, 4 * width), (width, 4 * width), (4 * width,), (steps, batch, width)
    scales = width**-0.5, width**-0.5, 0.1, 1.0
    arrays = [rng.normal(0, scale, shape) for scale, shape in zip(scales, shapes, strict=True)]
    return *(array.astype("float32") for array in arrays), np.zeros((batch, width), "float32")


def powers(size: int) -> Data:
    """Return numbers, a first guess of their cube roots, and a first change."""
    return np.linspace(0.5, 20.0, size), np.linspace(1.0, 3.0, size), np.array(1.0)


def pendulum() -> Data:
    """Return rates of gravity and friction, the axes, and an angle with its velocity."""
    return np.array([40.0, 0.5]), np.eye(2), np.array([1.0, 0.0])


def walk(steps: int) -> Data:
    """Return logarithms of variances, a noisy walk, and the matrices of its filter."""
    rng = np.random.default_rng(steps)
    ys = np.cumsum(rng.normal(size=steps)) + rng.normal(size=steps)
    move = np.array([[1.0, 1.0], [0.0, 1.0]])
    noises = np.array([[[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 1.0]]])
    return np.array([-1.0, -2.0, 0.3]), ys, move, move.T.copy(), noises


def layer() -> Data:
    """Return an input of 100, and a matrix."""
    rng = np.random.default_rng(0)
    return rng.normal(size=100), rng.normal(size=(100, 100)) / 10


def logits(rows: int, classes: int) -> Data:
    """Return float32 scores and the classes that they are scored by."""
    rng = np.random.default_rng(rows)
    scores = rng.normal(size=(rows, classes)).astype("float32")
    return scores, rng.integers(classes, size=rows)


def perceptron(inputs: int, hidden: int, classes: int, batch: int) -> Data:
    """Return float32 weights and offsets of two layers, a batch of inputs, and its classes."""
    rng = np.random.default_rng(batch)
    shapes = (inputs, hidden), (hidden,), (hidden, classes), (classes,), (batch, inputs)
    scales = inputs**-0.5, 0.1, hidden**-0.5, 0.1, 1.0
    arrays = [rng.normal(0, scale, shape) for scale, shape in zip(scales, shapes, strict=True)]
    return *(array.astype("float32") for array in arrays), rng.integers(classes, size=batch)


def near_one(size: int) -> Data:
    """Return numbers a little above 1."""
    return (np.linspace(1.0, 1.002, size),)


def attention(count: int, width: int) -> Data:
    """Return float32 queries, the columns of keys, and values."""
    rng = np.random.default_rng(count)
    shapes = (count, width), (width, count), (count, width)
    queries, keys, values = (rng.normal(size=shape).astype("float32") for shape in shapes)
    return queries, keys, values


def logistic(rows: int, columns: int) -> Data:
    """Return weights, a direction, a matrix of inputs, and labels of 0 and 1."""
    rng = np.random.default_rng(rows)
    weights, direction = rng.normal(size=(2, columns)) / columns**0.5
    return weights, direction, rng.normal(size=(rows, columns)), rng.integers(2, size=rows) * 1.0


def sized(name: str, program: str, sizes: tuple[int, ...], dtype: str) -> list[Work]:
    """Return the same program on vectors of several sizes."""
    bits = dtype.removeprefix("float")
    return [
        Work(f"{name}, n = {n:,}, f{bits}", program, partial(vector, n, dtype), size=n)
        for n in sizes
    ]


WORK = (
    *sized("log1pexp", "log1pexp", tuple(10**k for k in range(8)), "float64"),
    *sized("log1pexp", "log1pexp", (1_000, 1_000_000), "float32"),
    *sized("log1pexp, twice", "second_order", (1,), "float64"),
    *sized("20 times y = y * x, twice", "products_twice", (1,), "float64"),
    *sized("sin, tanh, exp, cos", "chain", (1_000, 100_000, 10_000_000), "float32"),
    Work("perceptron 784-256-10", "perceptron", partial(perceptron, 784, 256, 10, 128), 4),
    Work("cross-entropy (4096, 1000)", "cross_entropy", partial(logits, 4096, 1000)),
    Work("logistic HVP (10000, 100)", "logistic_hvp", partial(logistic, 10_000, 100)),
    *sized("Rosenbrock gradient", "rosenbrock", (1_000,), "float64"),
    *sized("Rosenbrock Hessian", "rosenbrock_hessian", (100,), "float64"),
    Work("Jacobian of tanh(w x), 100", "layer_jacobian", layer),
    Work("1,000 times y = y * x", "multiplications", partial(scalars, 1)),
    Work("1,000 times y = y * 1.001", "constant_multiplications", partial(scalars, 2)),
    Work("1,000 times h = tanh(h * w)", "recurrence", partial(recurrence, 1.25)),
    Work("1,000 times, subnormal gradient", "recurrence", partial(recurrence, 1.5)),
    Work("LSTM, 100 steps, 32 x 64", "lstm", partial(sequence, 100, 32, 64), 3),
    Work("cube roots by Newton, n = 10", "newton", partial(powers, 10)),
    Work("pendulum, adaptive steps", "adaptive", pendulum),
    Work("Hessian of a filter, 100 steps", "kalman_hessian", partial(walk, 100)),
)
"""Add a row here; libraries that lack its program leave it empty."""

TOLERANCES = {"float32": 2e-4, "float64": 1e-9}


def check(work: Work, wanted: tuple, results: dict[str, tuple]) -> None:
    """Return all must have computed what is wanted, in its precision, before any of them is
    timed.
    """
    for peer, values in results.items():
        for value, right in zip(values, wanted, strict=True):
            result, right = np.asarray(value), np.asarray(right)
            message = f"{peer}: {work.name}"
            assert result.dtype == right.dtype, f"{message}: {result.dtype}, not {right.dtype}"
            near = TOLERANCES[right.dtype.name] * (np.abs(right).max() + 1e-300)
            np.testing.assert_allclose(result, right, rtol=0, atol=near, err_msg=message)
