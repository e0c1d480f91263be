"""Eight of the programs as users of JAX write them: each trains, prints, and returns its step."""

import importlib
from typing import Any

import numpy as np

from benchmarks.programs.data import labels, layers, normal, uniform

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax


class Adam:
    """The optimizer of Keras, on any tree of arrays."""

    def __init__(self, rate):
        self.rate = rate

    def init(self, parameters):
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        dtype = jax.tree.leaves(zeros)[0].dtype
        return jnp.zeros((), dtype), zeros, zeros

    def update(self, gradients, state, parameters):
        k, first, second = state
        k = k + 1
        first = jax.tree.map(lambda m, g: m + 0.1 * (g - m), first, gradients)
        second = jax.tree.map(lambda v, g: v + 0.001 * (g * g - v), second, gradients)
        rate = self.rate * jnp.sqrt(1 - 0.999**k) / (1 - 0.9**k)
        moved = jax.tree.map(
            lambda p, m, v: (p - rate * m / (jnp.sqrt(v) + 1e-7)).astype(p.dtype),
            parameters,
            first,
            second,
        )
        return moved, (k, first, second)


class Training:
    """Parameters, and a step that improves them."""

    def __init__(self, cost, parameters, rate):
        self.parameters = jax.tree.map(jnp.asarray, parameters)
        optimizer = Adam(rate)
        self.state = optimizer.init(self.parameters)

        @jax.jit
        def train(parameters, state):
            loss, gradients = jax.value_and_grad(cost)(parameters)
            return loss, *optimizer.update(gradients, state, parameters)

        self.train = train

    def step(self):
        loss, self.parameters, self.state = self.train(self.parameters, self.state)
        return loss

    def run(self, count):
        for _ in range(count):
            loss = self.step()
        return loss


def neural_ode():
    intervals, width, batch = 20, 32, 64
    weights = layers(2, width, width, 2)
    start = jnp.asarray(uniform(-2, 2, batch, 2))
    rotated = jnp.stack([0.8 * start[:, 1], -0.8 * start[:, 0]], axis=1)

    def field(y, weights):
        w1, b1, w2, b2, w3, b3 = weights
        return jnp.tanh(jnp.tanh(y @ w1 + b1) @ w2 + b2) @ w3 + b3

    def integrate(slope, state):
        h = 1.0 / intervals

        def moved(state, rate, size):
            return jax.tree.map(lambda s, r: s + size * r, state, rate)

        def body(_, state):
            k1 = slope(state)
            k2 = slope(moved(state, k1, h / 2))
            k3 = slope(moved(state, k2, h / 2))
            k4 = slope(moved(state, k3, h))
            rates = jax.tree.map(lambda a, b, c, d: a + 2 * (b + c) + d, k1, k2, k3, k4)
            return moved(state, rates, h / 6)

        return lax.fori_loop(0, intervals, body, state)

    @jax.custom_vjp
    def solve(y, weights):
        return integrate(lambda y: field(y, weights), y)

    def forward(y, weights):
        end = solve(y, weights)
        return end, (end, weights)

    def backward(residuals, upstream):
        end, weights = residuals

        def backwards(state):
            rate, pull = jax.vjp(field, state[0], weights)
            return -rate, *pull(state[1])

        zeros = jax.tree.map(jnp.zeros_like, weights)
        return integrate(backwards, (end, upstream, zeros))[1:]

    solve.defvjp(forward, backward)

    def cost(weights):
        return jnp.mean(jnp.sum((solve(start, weights) - rotated) ** 2, axis=1))

    training = Training(cost, weights, 1e-2)
    print(f"loss {training.run(30):.6f}")
    return training.step


def hmc():
    chains, rows, columns, leaps, size, draws = 16, 200, 8, 20, 0.03, 50
    x = normal(rows, columns, dtype="float64")
    x, y = jnp.asarray(x), jnp.asarray(labels(x))[:, None]
    momenta = normal(draws, chains, columns, dtype="float64")
    levels = uniform(0, 1, draws, chains, dtype="float64")

    def log_density(w):
        margins = x @ w.T
        fit = jnp.sum(y * margins - jax.nn.softplus(margins), axis=0)
        return fit - 0.5 * jnp.sum(w**2, axis=1)

    slope = jax.grad(lambda w: jnp.sum(log_density(w)))

    @jax.jit
    def draw(start, momentum, level):
        def leap(_, carry):
            w, p = carry
            w = w + size * p
            return w, p + size * slope(w)

        p = momentum + 0.5 * size * slope(start)
        w, p = lax.fori_loop(0, leaps, leap, (start, p))
        p = p - 0.5 * size * slope(w)
        before = log_density(start) - 0.5 * jnp.sum(momentum**2, axis=1)
        after = log_density(w) - 0.5 * jnp.sum(p**2, axis=1)
        accepted = jnp.log(level) < after - before
        w = jnp.where(accepted[:, None], w, start)
        return jnp.mean(accepted.astype(w.dtype)), w

    position = jnp.zeros((chains, columns))

    def step(k=0):
        nonlocal position
        accepted, position = draw(position, momenta[k], levels[k])
        return accepted, position

    total, rate = jnp.zeros(columns), 0.0
    for k in range(draws):
        accepted, w = step(k)
        total, rate = total + jnp.mean(w, axis=0), rate + accepted
    print(f"accepted {rate / draws:.4f}", (np.asarray(total) / draws).round(5).tolist())
    return step


def transformer():
    batch, length, width, heads = 8, 32, 64, 4
    size = width // heads
    qkv, mixing = layers(width, 3 * width)[0], layers(width, width)[0]
    dense = layers(width, 4 * width, width)
    ones, zeros = np.ones(width, "float32"), np.zeros(width, "float32")
    x = jnp.asarray(normal(batch, length, width))
    target = jnp.roll(x, -1, axis=1)
    mask = jnp.tril(jnp.ones((length, length)))

    def normalize(x, scale, offset):
        mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + offset

    def split(x):
        return jnp.transpose(jnp.reshape(x, (batch, length, heads, size)), (0, 2, 1, 3))

    def attention(x, qkv, mixing):
        q, k, v = [split(part) for part in jnp.split(x @ qkv, 3, axis=-1)]
        scores = jnp.where(mask > 0, q @ jnp.swapaxes(k, -1, -2) / size**0.5, -1e9)
        mixed = jnp.transpose(jax.nn.softmax(scores) @ v, (0, 2, 1, 3))
        return jnp.reshape(mixed, (batch, length, width)) @ mixing

    def cost(parameters):
        qkv, mixing, (w1, b1, w2, b2), scales, offsets = parameters
        y = x + attention(normalize(x, scales[0], offsets[0]), qkv, mixing)
        hidden = jax.nn.gelu(normalize(y, scales[1], offsets[1]) @ w1 + b1, approximate=False)
        return jnp.mean((y + hidden @ w2 + b2 - target) ** 2)

    training = Training(cost, (qkv, mixing, dense, [ones, ones], [zeros, zeros]), 1e-3)
    print(f"loss {training.run(30):.6f}")
    return training.step


def learned_optimizer():
    unrolled, tasks, size, width = 10, 8, 10, 16
    weights = layers(2, width, 2)
    matrices, targets = jnp.asarray(normal(tasks, size, size)), jnp.asarray(normal(tasks, size, 1))
    start = jnp.asarray(normal(tasks, size, 1))

    def cost(theta):
        residual = matrices @ (theta + 0.1 * theta**3) - targets
        return jnp.mean(residual**2, axis=(1, 2))

    def total_cost(weights):
        w1, b1, w2, b2 = weights
        theta, momentum, total = start, jnp.zeros_like(start), 0.0
        for _ in range(unrolled):
            gradient = jax.grad(lambda theta: jnp.sum(cost(theta)))(theta)
            features = jnp.concatenate([gradient, momentum], axis=-1)
            out = jnp.tanh(features @ w1 + b1) @ w2 + b2
            step, decay = 0.1 * out[..., :1], jax.nn.sigmoid(out[..., 1:])
            momentum = decay * momentum + (1.0 - decay) * gradient
            theta = theta - 0.02 * momentum - step
            total += jnp.mean(jnp.log1p(cost(theta)))
        return total / unrolled

    training = Training(total_cost, weights, 3e-3)
    print(f"loss {training.run(30):.6f}")
    return training.step


def gaussian_process():
    rows, columns = 150, 3
    points = uniform(-2, 2, rows, columns, dtype="float64")
    values = np.sin(points.sum(axis=1)) + 0.1 * normal(rows, dtype="float64")
    x, y = jnp.asarray(points), jnp.asarray(values)[:, None]

    def cost(parameters):
        log_scales, log_amplitude, log_noise = parameters
        scaled = x / jnp.exp(log_scales)
        squares = jnp.sum((scaled[:, None] - scaled[None]) ** 2, axis=-1)
        noise = jnp.exp(2.0 * log_noise) + 1e-6
        covariance = jnp.exp(2.0 * log_amplitude - 0.5 * squares) + noise * jnp.eye(rows)
        factor = jnp.linalg.cholesky(covariance)
        fit = jnp.sum(y * jax.scipy.linalg.cho_solve((factor, True), y))
        log_det = 2.0 * jnp.sum(jnp.log(jnp.diag(factor)))
        return 0.5 * (fit + log_det + rows * np.log(2 * np.pi))

    training = Training(cost, (np.zeros(columns), np.float64(0.0), np.float64(-1.0)), 5e-2)
    print(f"loss {training.run(30):.6f}", training.parameters[0].round(5).tolist())
    return training.step


def svd():
    rows, columns, rank, penalty = 40, 30, 3, 0.02
    truth = normal(rows, rank, dtype="float64") @ normal(rank, columns, dtype="float64")
    mask = jnp.asarray((uniform(0, 1, rows, columns) < 0.5).astype(np.float64))
    known = mask * jnp.asarray(truth)

    def cost(matrix):
        _, s, _ = jnp.linalg.svd(matrix, full_matrices=False)
        fit = jnp.sum((mask * matrix - known) ** 2)
        return fit + penalty * jnp.sum(jnp.sqrt(s**2 + 1e-6))

    training = Training(cost, 0.1 * normal(rows, columns, dtype="float64"), 5e-2)
    print(f"loss {training.run(50):.6f}", training.parameters[0, :4].round(5).tolist())
    return training.step


def newton_cg():
    rows, columns, rounds = 1000, 50, 10
    data = normal(rows, columns, dtype="float64")
    x, y = jnp.asarray(data), jnp.asarray(labels(data))

    def loss(w):
        margins = x @ w
        return jnp.mean(jax.nn.softplus(margins) - y * margins) + 0.005 * jnp.sum(w**2)

    @jax.jit
    def newton(point):
        value, slope = jax.value_and_grad(loss)(point)

        def body(_, carry):
            step, residual, direction, square = carry
            product = jax.jvp(jax.grad(loss), (point,), (direction,))[1]
            rate = square / (direction @ product)
            step, residual = step + rate * direction, residual - rate * product
            new = residual @ residual
            return step, residual, residual + new / square * direction, new

        start = (jnp.zeros_like(slope), -slope, -slope, slope @ slope)
        step, *_ = lax.fori_loop(0, rounds, body, start)
        return value, jnp.linalg.norm(slope), point + step

    w = jnp.zeros(columns)

    def step():
        nonlocal w
        value, norm, w = newton(w)
        return value, norm

    for _ in range(5):
        value, _ = step()
    print(f"loss {value:.8f}", w[:4].round(6).tolist())
    return step


def sobolev():
    batch, width = 128, 32
    weights = layers(2, width, width, 1)
    x = jnp.asarray(uniform(-1, 1, batch, 2))

    def network(x, weights):
        w1, b1, w2, b2, w3, b3 = weights
        return (jnp.tanh(jnp.tanh(x @ w1 + b1) @ w2 + b2) @ w3 + b3)[0]

    def target(x):
        return jnp.sin(2.0 * x[0]) * jnp.cos(x[1]) + x[0] * x[1]

    def derivatives(function, x):
        """Return a point's value, slope, and second derivatives along each axis."""
        both = jax.value_and_grad(function)
        products = [
            jax.jvp(jax.grad(function), (x,), (e,))[1] @ e for e in jnp.eye(2, dtype=x.dtype)
        ]
        return *both(x), jnp.stack(products)

    wanted, wanted_slope, wanted_curvatures = jax.vmap(lambda x: derivatives(target, x))(x)

    def cost(weights):
        y, slope, curvatures = jax.vmap(lambda x: derivatives(lambda x: network(x, weights), x))(x)
        loss = jnp.mean((y - wanted) ** 2) + jnp.mean((slope - wanted_slope) ** 2)
        return loss + 0.1 * jnp.sum(jnp.mean((curvatures - wanted_curvatures) ** 2, axis=0))

    training = Training(cost, weights, 5e-3)
    print(f"loss {training.run(50):.6f}")
    return training.step


PROGRAMS = {
    function.__name__: function
    for function in (
        gaussian_process,
        hmc,
        learned_optimizer,
        neural_ode,
        newton_cg,
        sobolev,
        svd,
        transformer,
    )
}
