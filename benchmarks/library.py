"""The work, written once: each library adds its names, its derivatives and its arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import SHORT, STEPS

Program = Callable[..., tuple]
UNROLLED = frozenset({"multiplications", "constant_multiplications"})
LOOPS = UNROLLED | {"recurrence", "lstm", "newton", "adaptive", "kalman_hessian"}
NESTED = frozenset({"decorated_twice", "wrapped_twice"})
FACTORS = tuple(1.0 + 0.01 * k for k in range(10))
RATE = 0.1  # of a training step
TOLERANCE = 1e-20  # of the square of a change
END = 1.0 - 1e-12  # of a time


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
    softmax: Any
    matvec: Any
    where: Any

    # and so its derivatives, the functions whose rules differ, and its ways with arrays.

    value_and_grads: Callable[..., Program]
    """Of ``(function, count=1)``: its value, and its gradients by the first `count` arguments."""
    custom: Callable[[Any], Any]
    """Of x: log(1 + exp(x)), whose rule is dy * (1 - 1 / (1 + exp(x)))."""
    decorated: Callable[[Any], Any]
    """Of x: x**3, whose rule 3 * x**2 * dy has as its own rule the derivative by dy alone."""
    wrapped: Callable[[Any], Any]
    """Of x: x**3, in whose rule the slope 3 * x**2 has a rule of its own."""
    mean_cross_entropy: Callable[[Any, Any], Any]
    """Of ``(logits, labels)``: the mean over rows of logsumexp(row) - row[label]."""
    hessian: Callable[[Callable[..., Any], Any], Any]
    """Of ``(function, x)``: the matrix of second derivatives at x."""
    hvp: Callable[[Callable[..., Any], Any, Any], Any]
    """Of ``(function, x, v)``: the product of that matrix and a vector, without the matrix."""
    jacobian: Callable[[Callable[..., Any], Any], Any]
    """Of ``(function, x)``: the matrix of first derivatives at x."""
    take: Callable[[Any, Any], Any]
    """Of ``(x, rows)``: the rows of x with these indices."""
    array: Callable[[np.ndarray, bool], Any]
    """Of ``(values, wanted)``: the library's own array; `wanted` if gradients by it are."""

    def __init__(self) -> None:
        self.log1pexp = self.value_and_grads(lambda x: self.sum(self.custom(x)))
        self.second_order = self.value_and_grads(lambda x: self.sum(self.log1pexp(x)[1]))
        products = self.value_and_grads(self._products)
        self.products_twice = self.value_and_grads(lambda x: self.sum(products(x)[1]))
        self.chain = self.value_and_grads(self._chain)
        self.multiplications = self.value_and_grads(self._multiplications)
        self.constant_multiplications = self.value_and_grads(self._constant_multiplications)
        self.recurrence = self.value_and_grads(self._recurrence)
        self.lstm = self.value_and_grads(self._lstm, 3)
        self.newton = self.value_and_grads(self._newton)
        self.adaptive = self.value_and_grads(self._adaptive)
        self.rosenbrock = self.value_and_grads(self._rosenbrock)
        self.cross_entropy = self.value_and_grads(self.mean_cross_entropy)
        self.perceptron = self.value_and_grads(self._perceptron, 4)
        self.forty_operations = self.value_and_grads(self._forty_operations)
        self.attention = self.value_and_grads(self._attention, 3)
        self.decorated_twice = self._second_derivative(lambda x: self.decorated(x) ** 2)
        self.wrapped_twice = self._second_derivative(lambda x: self.wrapped(x) ** 2)

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

    def _lstm(self, w, u, b, xs, start):
        carry = start, start
        for k in range(len(xs)):
            carry = self._cell(w, u, b, carry, xs[k])
        return self.sum(carry[0] ** 2)

    def _cell(self, w, u, b, carry, x):
        h, c = carry
        gates, width = x @ w + h @ u + b, h.shape[1]
        parts = [gates[:, k * width : (k + 1) * width] for k in range(4)]
        input_gate, forget_gate, output_gate = [
            0.5 * self.tanh(0.5 * part) + 0.5 for part in parts[:3]
        ]
        c = forget_gate * c + input_gate * self.tanh(parts[3])
        return output_gate * self.tanh(c), c

    def _newton(self, x, y, change):
        while change > TOLERANCE:
            y, change = self._nearer(x, y)
        return self.sum(y)

    def _nearer(self, x, y):
        new = y - (y**3 - x) / (3.0 * y * y)
        return new, self.sum((new - y) ** 2)

    def _adaptive(self, rates, axes, y):
        """Return what is left of a pendulum, by steps whose size an estimate of errors decides."""
        t, size = self._first_step(rates)
        while t < END:
            t, y, size = self._stepped(rates, axes, t, y, size)
        return self.sum(y**2)

    def _first_step(self, rates):
        return 0.0 * rates[0], 0.1 * self.exp(-rates[1])

    def _stepped(self, rates, axes, t, y, size):
        """Return time, state and step after Bogacki and Shampine's method of order 3."""

        def slope(y):
            return axes[0] * y[1] - axes[1] * (rates[0] * self.sin(y[0]) + rates[1] * y[1])

        size = self.where(size < 1.0 - t, size, 1.0 - t)
        k1 = slope(y)
        k2 = slope(y + 0.5 * size * k1)
        k3 = slope(y + 0.75 * size * k2)
        new = y + size * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0
        error = size * (-5.0 * k1 + 6.0 * k2 + 8.0 * k3 - 9.0 * slope(new)) / 72.0
        ratio = 1e10 * self.sum(error**2)
        factor = 0.9 * self.exp(self.log(ratio + 1e-8) / -6.0)
        factor = self.where(factor < 5.0, factor, 5.0 + 0.0 * factor)
        accepted = ratio <= 1.0
        t, y = self.where(accepted, t + size, t), self.where(accepted, new, y)
        return t, y, size * factor

    def kalman_hessian(self, noise, ys, move, turned, noises):
        def likelihood(noise):
            return self._kalman(noise, ys, move, turned, noises)

        return (self.hessian(likelihood, noise),)

    def _kalman(self, noise, ys, move, turned, noises):
        """Return the log likelihood of a filter by the logarithms of three variances."""
        variances = self.exp(noise)
        carry = 0.0 * noises[0, 0], noises[0] + noises[1], 0.0 * variances[2]
        for k in range(len(ys)):
            carry = self._filtered(variances, move, turned, noises, carry, ys[k])
        return carry[2]

    def _filtered(self, variances, move, turned, noises, carry, y):
        mean, cov, total = carry
        mean = self.matvec(move, mean)
        cov = move @ cov @ turned + variances[0] * noises[0] + variances[1] * noises[1]
        residual, spread = y - mean[0], cov[0, 0] + variances[2]
        gain = cov[:, 0] / spread
        total = total - 0.5 * (self.log(spread) + residual**2 / spread)
        return mean + gain * residual, cov - gain[:, None] * cov[:1], total

    def _rosenbrock(self, x):
        return self.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    def _perceptron(self, w1, b1, w2, b2, x, labels):
        hidden = self.relu(x @ w1 + b1)
        return self.mean_cross_entropy(hidden @ w2 + b2, labels)

    def _second_derivative(self, function: Callable[..., Any]) -> Program:
        first = self.value_and_grads(lambda x: self.sum(function(x)))
        return self.value_and_grads(lambda x: self.sum(first(x)[1]))

    def _forty_operations(self, x):
        y = x
        for factor in FACTORS:
            y = self.sin(y * factor) + self.exp(-y)
        return self.sum(y)

    def _attention(self, queries, keys, values):
        scores = (queries @ keys) * queries.shape[-1] ** -0.5  # a column is a key
        return self.sum((self.softmax(scores) @ values) ** 2)

    def elementwise(self, x):
        return (self.cos(self.exp(self.tanh(self.sin(x)))),)

    def perceptron_step(self, w1, b1, w2, b2, x, labels):
        loss, *gradients = self.perceptron(w1, b1, w2, b2, x, labels)
        pairs = zip((w1, b1, w2, b2), gradients, strict=True)
        return loss, *(parameter - RATE * gradient for parameter, gradient in pairs)

    def products_200(self, x):
        return (self._powers(x, 100),)

    def products_1000(self, x):
        return (self._powers(x, 500),)

    def _powers(self, x, count):
        y = x
        for _ in range(count):
            y = y * x
            y = y * 0.999
        return y

    def rosenbrock_hessian(self, x):
        return (self.hessian(self._rosenbrock, x),)

    def logistic_hvp(self, w, v, x, labels):
        def loss(w):
            margins = self.matvec(x, w)
            return self.mean(self.softplus(margins) - labels * margins)

        return (self.hvp(loss, w, v),)

    def layer_jacobian(self, x, w):
        return (self.jacobian(lambda x: self.tanh(self.matvec(w, x)), x),)
