"""The functions of `array_functions` in JAX: whole arrays where rounds are independent, else scans.

A loop of which each round needs the one before it is `lax.scan`, or `lax.fori_loop` with
``.at[].set``, which become scans in reverse mode.
"""

import importlib
from typing import Any

jax: Any = importlib.import_module("jax")
jax.config.update("jax_enable_x64", True)
jnp, lax = jax.numpy, jax.lax


def n_body(x, m):
    rows, columns = jnp.tril_indices(x.shape[0], -1)
    d2 = 1e-4 + jnp.sum((x[rows] - x[columns]) ** 2, axis=1)
    return -jnp.sum(m[rows] * m[columns] / jnp.sqrt(d2))


def edge_filter(image):
    left, right = image[:, :-2], image[:, 2:]
    across = right - left
    gx = across[:-2] + 2 * across[1:-1] + across[2:]
    down = image[2:] - image[:-2]
    gy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return jnp.sum(jnp.sqrt(gx * gx + gy * gy + 1e-3))


def heat(u, conductivity, target, steps):
    def step(_, v):
        change = conductivity[1:-1] * (v[:-2] - 2.0 * v[1:-1] + v[2:])
        return v.at[1:-1].add(change)

    return jnp.sum((lax.fori_loop(0, steps, step, u) - target) ** 2)


def wave(start, speed, steps):
    n, m = start.shape
    squared = speed[1:-1, 1:-1] ** 2

    def step(carry, _):
        before, u = carry
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        change = squared * (around - 4.0 * u[1:-1, 1:-1])
        inner = 2.0 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + change
        new = jnp.zeros_like(u).at[1:-1, 1:-1].set(inner)
        return (u, new), new[n // 2, m // 2]

    _, seen = lax.scan(step, (start, start), None, steps - 1)
    return jnp.sum(seen**2)


def thomas(a, b, c, d):
    def eliminate(carry, row):
        cp, dp = carry
        a, b, c, d = row
        scale = b - a * cp
        carry = c / scale, (d - a * dp) / scale
        return carry, carry

    def substitute(x, row):
        cp, dp = row
        x = dp - cp * x
        return x, x

    zero = jnp.zeros(())
    _, rows = lax.scan(eliminate, (zero, zero), (a.at[0].set(0.0), b, c, d))
    rows = rows[0].at[-1].set(0.0), rows[1]
    _, x = lax.scan(substitute, zero, rows, reverse=True)
    return jnp.sum(x * x)


def soft_dtw(x, y, gamma):
    """By anti-diagonals of the table, whose elements are independent."""
    n, m = x.shape[0], y.shape[0]
    i = jnp.arange(n + 1)

    def step(carry, k):  # of the elements (i, k - i)
        older, last = carry
        j = k - i
        up, corner = jnp.roll(last, 1), jnp.roll(older, 1)
        stacked = jnp.stack([up, last, corner])
        low = jnp.min(stacked, axis=0)
        best = low - gamma * jnp.log(jnp.sum(jnp.exp((low - stacked) / gamma), axis=0))
        cost = (x[jnp.clip(i - 1, 0, n - 1)] - y[jnp.clip(j - 1, 0, m - 1)]) ** 2
        new = jnp.where((i >= 1) & (j >= 1) & (j <= m), cost + best, 1e6)
        return (last, new), None

    first = jnp.full(n + 1, 1e6).at[0].set(0.0)
    second = jnp.full(n + 1, 1e6)
    (_, last), _ = lax.scan(step, (first, second), jnp.arange(2, n + m + 1))
    return last[n]


def hmm_forward(start, move, emit, seen):
    chances = emit.T[seen]

    def step(alpha, chance):
        alpha = (alpha @ move) * chance
        total = jnp.sum(alpha)
        return alpha / total, jnp.log(total)

    return jnp.sum(lax.scan(step, start * chances[0], chances[1:])[1])


def matrix_product(a, b):
    return jnp.sum((a @ b) ** 2)


def kalman(z, dt, q, r):
    def step(carry, z):
        x, v, p00, p01, p11 = carry
        x = x + dt * v
        p00 = p00 + dt * (2.0 * p01 + dt * p11) + q * dt**3 / 3.0
        p01 = p01 + dt * p11 + q * dt**2 / 2.0
        p11 = p11 + q * dt
        s = p00 + r
        residual = z - x
        term = -0.5 * (jnp.log(s) + residual**2 / s)
        k0, k1 = p00 / s, p01 / s
        carry = x + k0 * residual, v + k1 * residual
        return (*carry, p00 * (1.0 - k0), p01 * (1.0 - k0), p11 - k1 * p01), term

    one, zero = jnp.ones(()), jnp.zeros(())
    return jnp.sum(lax.scan(step, (z[0], zero, one, zero, one), z[1:])[1])


def kernel_density(points, samples, width):
    z = (points[:, None] - samples) / width
    density = jnp.sum(jnp.exp(-0.5 * z * z), axis=1)
    return jnp.sum(jnp.log(density / (samples.shape[0] * width)))


def gradient(function, arguments, positions):
    """Return a function of no arguments that computes the gradients by some of the arguments."""
    static = [k for k, x in enumerate(arguments) if isinstance(x, int)]
    compiled = jax.jit(jax.grad(function, positions), static_argnums=static)
    own = [x if isinstance(x, int) else jnp.asarray(x) for x in arguments]
    return lambda: jax.block_until_ready(compiled(*own))
