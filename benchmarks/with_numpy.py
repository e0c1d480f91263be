"""The same numbers in NumPy, by formulas derived on paper."""

import numpy as np

from benchmarks import SHORT, STEPS
from benchmarks.library import FACTORS, RATE, Library


class Jet:
    """A number with its first and second derivatives by some parameters."""

    def __init__(self, value, gradient, hessian):
        self.value, self.gradient, self.hessian = value, gradient, hessian

    @staticmethod
    def parameters(values):
        n = len(values)
        return np.array([Jet(x, np.eye(n)[k], np.zeros((n, n))) for k, x in enumerate(values)])

    def apply(self, value, slope, curvature):
        outer = np.multiply.outer(self.gradient, self.gradient)
        return Jet(value, slope * self.gradient, slope * self.hessian + curvature * outer)

    def _of(self, other):
        return other if isinstance(other, Jet) else self.apply(other, 0.0, 0.0)

    def __add__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._of(other)
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Jet(*[x + y for x, y in pairs])

    def __mul__(self, other):
        if isinstance(other, np.ndarray):
            return NotImplemented
        other = self._of(other)
        outer = np.multiply.outer(self.gradient, other.gradient)
        hessian = self.value * other.hessian + other.value * self.hessian + outer + outer.T
        gradient = self.value * other.gradient + other.value * self.gradient
        return Jet(self.value * other.value, gradient, hessian)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return self * -1.0

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __truediv__(self, other):
        return self * self._of(other) ** -1

    def __rtruediv__(self, other):
        return self**-1 * other

    def __pow__(self, k):
        x = self.value
        return self.apply(x**k, k * x ** (k - 1), k * (k - 1) * x ** (k - 2))

    def __lt__(self, other):
        return self.value < self._of(other).value

    def __le__(self, other):
        return self.value <= other


class ByHand(Library):
    def __init__(self):
        pass  # nothing here is derived

    def array(self, values, wanted):
        return values

    def log1pexp(self, x):
        e = np.exp(x)
        return np.log(1 + e).sum(), 1 - 1 / (1 + e)

    def second_order(self, x):
        gradient = 1 / (1 + np.exp(-x))
        return gradient.sum(), gradient * (1 - gradient)

    def products_twice(self, x):
        power = x ** (SHORT - 1)
        return (SHORT + 1) * (power * x).sum(), SHORT * (SHORT + 1) * power

    def chain(self, x):
        tanh = np.tanh(np.sin(x))
        exp = np.exp(tanh)
        return np.cos(exp).sum(), -np.sin(exp) * exp * (1 - tanh * tanh) * np.cos(x)

    def elementwise(self, x):
        return (np.cos(np.exp(np.tanh(np.sin(x)))),)

    def multiplications(self, x):
        powers = [x]
        for _ in range(STEPS):
            powers.append(powers[-1] * x)
        gradient, upstream = np.zeros(()), np.ones(())
        for power in reversed(powers[:-1]):
            gradient = gradient + upstream * power
            upstream = upstream * x
        return powers[-1], gradient + upstream

    def constant_multiplications(self, x, factor):
        y, gradient = x, np.ones(())
        for _ in range(STEPS):
            y = y * factor
        for _ in range(STEPS):
            gradient = gradient * factor
        return y, gradient

    def recurrence(self, w, h):
        states = [h]
        for _ in range(STEPS):
            states.append(np.tanh(states[-1] * w))
        gradient, upstream = np.zeros_like(w), np.ones_like(h)
        for before, after in zip(states[-2::-1], states[:0:-1], strict=True):
            upstream = upstream * (1 - after * after)
            gradient += upstream * before
            upstream = upstream * w
        return states[-1].sum(), gradient

    def lstm(self, w, u, b, xs, start):
        h, c, kept, width = start, start, [], start.shape[1]
        for x in xs:
            gates = x @ w + h @ u + b
            opened = 1 / (1 + np.exp(-gates[:, : 3 * width]))
            input_gate, forget_gate, output_gate = np.split(opened, 3, axis=1)
            new = np.tanh(gates[:, 3 * width :])
            before, c = c, forget_gate * c + input_gate * new
            kept.append((h, before, input_gate, forget_gate, output_gate, new, np.tanh(c)))
            h = output_gate * np.tanh(c)
        gradients = [np.zeros_like(value) for value in (w, u, b)]
        upstream, along = 2 * h, np.zeros_like(c)
        for x, (earlier, before, input_gate, forget_gate, output_gate, new, tanh) in zip(
            xs[::-1], kept[::-1], strict=True
        ):
            along = along + upstream * output_gate * (1 - tanh * tanh)
            parts = (
                along * new * input_gate * (1 - input_gate),
                along * before * forget_gate * (1 - forget_gate),
                upstream * tanh * output_gate * (1 - output_gate),
                along * input_gate * (1 - new * new),
            )
            gates = np.concatenate(parts, axis=1)
            for total, part in zip(
                gradients, (x.T @ gates, earlier.T @ gates, gates.sum(axis=0)), strict=True
            ):
                total += part
            upstream, along = gates @ u.T, along * forget_gate
        return (h**2).sum(), *gradients

    def adaptive(self, rates, axes, y):
        rates = Jet.parameters(rates)
        value = self._adaptive(rates, axes, y + 0.0 * rates[0])
        return value.value, value.gradient

    def kalman_hessian(self, noise, ys, move, turned, noises):
        return (self._kalman(Jet.parameters(noise), ys, move, turned, noises).hessian,)

    # of jets: what those two are made of
    exp = staticmethod(np.frompyfunc(lambda x: x.apply(*[np.exp(x.value)] * 3), 1, 1))
    sum, matvec = staticmethod(np.sum), staticmethod(np.matmul)

    def log(self, x):
        return x.apply(np.log(x.value), 1 / x.value, -1 / x.value**2)

    def sin(self, x):
        sine = np.sin(x.value)
        return x.apply(sine, np.cos(x.value), -sine)

    def where(self, condition, x, y):
        return x if condition else y

    def newton(self, x, y, change):
        roots = np.cbrt(x)
        return roots.sum(), roots / (3 * x)

    def rosenbrock(self, x):
        rest, away = x[1:] - x[:-1] ** 2, 1.0 - x[:-1]
        gradient = np.zeros_like(x)
        gradient[:-1] = -400.0 * rest * x[:-1] - 2.0 * away
        gradient[1:] += 200.0 * rest
        return (100.0 * rest**2 + away**2).sum(), gradient

    def rosenbrock_hessian(self, x):
        diagonal = np.zeros_like(x)
        diagonal[:-1] = 1200.0 * x[:-1] ** 2 - 400.0 * x[1:] + 2.0
        diagonal[1:] += 200.0
        off_diagonal = np.diag(-400.0 * x[:-1], 1)
        return (np.diag(diagonal) + off_diagonal + off_diagonal.T,)

    def cross_entropy(self, logits, labels):
        rows = np.arange(len(labels))
        shifted = logits - logits.max(axis=1, keepdims=True)
        chances = np.exp(shifted)
        sums = chances.sum(axis=1, keepdims=True)
        loss = (np.log(sums[:, 0]) - shifted[rows, labels]).mean()
        chances /= sums * len(labels)
        chances[rows, labels] -= chances.dtype.type(1 / len(labels))
        return loss, chances

    def perceptron(self, w1, b1, w2, b2, x, labels):
        hidden = np.maximum(x @ w1 + b1, 0)
        loss, upstream = self.cross_entropy(hidden @ w2 + b2, labels)
        below = (upstream @ w2.T) * (hidden > 0)
        return loss, x.T @ below, below.sum(axis=0), hidden.T @ upstream, upstream.sum(axis=0)

    def perceptron_step(self, w1, b1, w2, b2, x, labels):
        loss, *gradients = self.perceptron(w1, b1, w2, b2, x, labels)
        pairs = zip((w1, b1, w2, b2), gradients, strict=True)
        return loss, *(parameter - RATE * gradient for parameter, gradient in pairs)

    def forty_operations(self, x):
        y, gradient = x, np.ones_like(x)
        for factor in FACTORS:
            gradient = gradient * (factor * np.cos(y * factor) - np.exp(-y))
            y = np.sin(y * factor) + np.exp(-y)
        return y.sum(), gradient

    def attention(self, queries, keys, values):
        scale = queries.shape[-1] ** -0.5
        scores = queries @ keys * scale
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        result = weights @ values
        upstream = 2 * result @ values.T
        below = weights * (upstream - (upstream * weights).sum(axis=1, keepdims=True)) * scale
        return (result**2).sum(), below @ keys.T, queries.T @ below, weights.T @ (2 * result)

    def decorated_twice(self, x):  # of x**6, without the path through the x of 3 * x**2
        return (6 * x**5).sum(), 18 * x**4

    def wrapped_twice(self, x):
        return (6 * x**5).sum(), 30 * x**4

    def products_200(self, x):
        return (x**101 * 0.999**100,)

    def products_1000(self, x):
        return (x**501 * 0.999**500,)

    def logistic_hvp(self, w, v, x, labels):
        chances = 1 / (1 + np.exp(-(x @ w)))
        return (x.T @ (chances * (1 - chances) * (x @ v)) / len(labels),)

    def layer_jacobian(self, x, w):
        return ((1 - np.tanh(w @ x) ** 2)[:, None] * w,)


MODES = {"by hand": ByHand}
