"""The work in JAX, operation by operation and compiled."""

import importlib
from typing import Any

from benchmarks import STEPS
from benchmarks.library import UNROLLED, Library

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)
jnp = jax.numpy


@jax.custom_vjp
def log1pexp(x):
    return jnp.log(1 + jnp.exp(x))


def forward(x):
    e = jnp.exp(x)
    return jnp.log(1 + e), e


log1pexp.defvjp(forward, lambda e, dy: (dy * (1 - 1 / (1 + e)),))


@jax.custom_vjp
def decorated_gradient(x, dy):
    return 3 * x**2 * dy


@jax.custom_vjp
def slope(x):
    return 3 * x**2


@jax.custom_vjp
def decorated(x):
    return x**3


@jax.custom_vjp
def wrapped(x):
    return x**3


decorated_gradient.defvjp(
    lambda x, dy: (decorated_gradient(x, dy), x), lambda x, ddy: (jnp.zeros_like(x), 3 * x**2 * ddy)
)
slope.defvjp(lambda x: (slope(x), x), lambda x, ddy: (6 * x * ddy,))
decorated.defvjp(lambda x: (decorated(x), x), lambda x, dy: (decorated_gradient(x, dy),))
wrapped.defvjp(lambda x: (wrapped(x), x), lambda x, dy: (dy * slope(x),))


class Eager(Library):
    def __init__(self):
        self.exp, self.log, self.sin, self.cos = jnp.exp, jnp.log, jnp.sin, jnp.cos
        self.where = jnp.where
        self.tanh, self.sum, self.mean, self.matvec = jnp.tanh, jnp.sum, jnp.mean, jnp.matmul
        self.relu, self.softplus, self.softmax = jax.nn.relu, jax.nn.softplus, jax.nn.softmax
        self.custom, self.decorated, self.wrapped = log1pexp, decorated, wrapped
        super().__init__()

    def array(self, values, wanted):
        return jnp.asarray(values)

    def finished(self, results):
        for result in results:
            result.block_until_ready()
        return results

    def value_and_grads(self, function, count=1):
        both = jax.value_and_grad(function, tuple(range(count)))

        def run(*arguments):
            value, gradients = both(*arguments)
            return value, *gradients

        return run

    def take(self, x, rows):
        return x[rows]

    def mean_cross_entropy(self, logits, labels):
        chances = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(chances, labels[:, None], 1))

    def hessian(self, function, x):
        return jax.hessian(function)(x)

    def hvp(self, function, x, v):
        return jax.jvp(jax.grad(function), (x,), (v,))[1]

    def jacobian(self, function, x):
        return jax.jacobian(function)(x)


class Jit(Eager):
    lacks = UNROLLED | {"newton", "adaptive"}  # there is no reverse mode through while_loop

    def _recurrence(self, w, h):
        h, _ = jax.lax.scan(lambda h, _: (jnp.tanh(h * w), None), h, None, STEPS)
        return jnp.sum(h)

    def _lstm(self, w, u, b, xs, start):
        def step(carry, x):
            return self._cell(w, u, b, carry, x), None

        return jnp.sum(jax.lax.scan(step, (start, start), xs)[0][0] ** 2)

    def _kalman(self, noise, ys, move, turned, noises):
        variances = self.exp(noise)

        def step(carry, y):
            return self._filtered(variances, move, turned, noises, carry, y), None

        start = 0.0 * noises[0, 0], noises[0] + noises[1], 0.0 * variances[2]
        return jax.lax.scan(step, start, ys)[0][2]

    def compiled(self, program):
        return jax.jit(program)


MODES = {"eager": Eager, "jit": Jit}
