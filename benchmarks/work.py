"""What is measured: each piece of work, in each library that is installed."""

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks import LENGTH

LIBRARIES = ("tinygrad_cg", "torch", "autograd", "numpy")
INSTALLED = tuple(name for name in LIBRARIES if importlib.util.find_spec(name))


@dataclass(frozen=True)
class Work:
    """One row of the comparison; `function` names the builder in each `with_*` module."""

    name: str
    function: str
    data: np.ndarray

    def build(self, library: str) -> Callable[[], tuple]:
        """The work in one library: a function of no arguments that gives its results, a tuple."""
        return getattr(importlib.import_module(f"benchmarks.with_{library}"), self.function)(
            self.data
        )


def normal(size: int) -> np.ndarray:
    """The same numbers on every run."""
    return np.random.default_rng(size).normal(size=size)


WORK = (
    Work("log1pexp custom gradient, a scalar", "value_and_gradient", np.array(0.3)),
    Work("log1pexp custom gradient, n = 1", "value_and_gradient", normal(1)),
    Work("log1pexp, n = 1, ours compiled", "compiled_value_and_gradient", normal(1)),
    Work("log1pexp, n = 1,000, ours compiled", "compiled_value_and_gradient", normal(1_000)),
    Work("log1pexp custom gradient, n = 1,000", "value_and_gradient", normal(1_000)),
    Work("log1pexp custom gradient, n = 1,000,000", "value_and_gradient", normal(1_000_000)),
    Work(f"{LENGTH:,} multiplications, y = y * x", "chain", np.array(1.001)),
    Work(f"{LENGTH:,} multiplications, y = y * constant", "constant_chain", np.array(1.001)),
    Work("log1pexp, first and second order, n = 1", "second_order", normal(1)),
    Work("Rosenbrock Hessian, n = 100", "rosenbrock_hessian", normal(100)),
    Work(
        "Jacobian of a tanh layer, 100 -> 100",
        "layer_jacobian",
        normal(10_100).reshape(101, 100) / 10,
    ),
)


def check(work: Work, results: dict[str, tuple]) -> None:
    """All libraries must have computed the same before any of them is timed."""
    wanted = results["numpy"]
    for library, values in results.items():
        for value, right in zip(values, wanted, strict=True):
            np.testing.assert_allclose(
                np.asarray(value).squeeze(),
                np.asarray(right).squeeze(),
                rtol=1e-9,
                atol=1e-12,
                err_msg=f"{library}: {work.name}",
            )
