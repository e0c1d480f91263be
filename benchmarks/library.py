"""The work, written once: each library adds its names, its derivatives and its arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import SHORT, STEPS

Program = Callable[..., tuple]
LOOPS = frozenset({"multiplications", "constant_multiplications", "recurrence"})


class Library:
    """One library in one mode: a piece of work is an attribute, from arrays to a tuple of them."""

    lacks: frozenset[str] = frozenset()
    """Programs that are not measured: for what compiles, loops that it would unroll."""

    # Under these names a library gives its functions of arrays,
    exp: Any
    log: Any
    sin: Any
    cos: Any
    tanh: Any
    sum: Any
    mean: Any
    relu: Any
    softplus: Any
    matvec: Any

    def __init__(self) -> None:
        self.log1pexp = self.value_and_grads(lambda x: self.sum(self.custom(x)))
        self.second_order = self.value_and_grads(lambda x: self.sum(self.log1pexp(x)[1]))
        products = self.value_and_grads(self._products)
        self.products_twice = self.value_and_grads(lambda x: self.sum(products(x)[1]))
        self.chain = self.value_and_grads(self._chain)
        self.multiplications = self.value_and_grads(self._multiplications)
        self.constant_multiplications = self.value_and_grads(self._constant_multiplications)
        self.recurrence = self.value_and_grads(self._recurrence)
        self.rosenbrock = self.value_and_grads(self._rosenbrock)
        self.cross_entropy = self.value_and_grads(self.mean_cross_entropy)
        self.perceptron = self.value_and_grads(self._perceptron, 4)

    # and so its derivatives, the functions whose rules differ, and its ways with arrays.

    def value_and_grads(self, function: Callable[..., Any], count: int = 1) -> Program:
        """Return a function's value, and its gradients by the first `count` arguments."""
        raise NotImplementedError

    def custom(self, x: Any) -> Any:
        """Return log(1 + exp(x)), whose rule is dy * (1 - 1 / (1 + exp(x)))."""
        raise NotImplementedError

    def mean_cross_entropy(self, logits: Any, labels: Any) -> Any:
        """Return the mean over rows of logsumexp(row) - row[label]."""
        raise NotImplementedError

    def hessian(self, function: Callable[..., Any], x: Any) -> Any:
        """Return the matrix of second derivatives at x."""
        raise NotImplementedError

    def hvp(self, function: Callable[..., Any], x: Any, v: Any) -> Any:
        """Return the product of that matrix and a vector, without the matrix."""
        raise NotImplementedError

    def jacobian(self, function: Callable[..., Any], x: Any) -> Any:
        """Return the matrix of first derivatives at x."""
        raise NotImplementedError

    def array(self, values: np.ndarray, wanted: bool) -> Any:
        """Return the library's own array; `wanted` if gradients by it are."""
        raise NotImplementedError

    def compiled(self, program: Program) -> Program:
        """Return the program as it is called in this mode."""
        return program

    def finished(self, results: tuple) -> tuple:
        """Return the results, when they have been computed."""
        return results

    # The work

    def _chain(self, x):
        return self.sum(self.cos(self.exp(self.tanh(self.sin(x)))))

    def _multiplications(self, x):
        y = x
        for _ in range(STEPS):
            y = y * x
        return y

    def _products(self, x):
        y = x
        for _ in range(SHORT):
            y = y * x
        return self.sum(y)

    def _constant_multiplications(self, x, factor):
        y = x
        for _ in range(STEPS):
            y = y * factor
        return y

    def _recurrence(self, w, h):
        for _ in range(STEPS):
            h = self.tanh(h * w)
        return self.sum(h)

    def _rosenbrock(self, x):
        return self.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def _perceptron(self, w1, b1, w2, b2, x, labels):
        hidden = self.relu(x @ w1 + b1)
        return self.mean_cross_entropy(hidden @ w2 + b2, labels)

    def rosenbrock_hessian(self, x):
        return (self.hessian(self._rosenbrock, x),)

    def logistic_hvp(self, w, v, x, labels):
        def loss(w):
            margins = self.matvec(x, w)
            return self.mean(self.softplus(margins) - labels * margins)

        return (self.hvp(loss, w, v),)

    def layer_jacobian(self, x, w):
        return (self.jacobian(lambda x: self.tanh(self.matvec(w, x)), x),)
