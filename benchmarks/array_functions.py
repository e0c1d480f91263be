"""Functions over arrays, written in loops as for `numba.njit`, and arguments for them: `CASES`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


def n_body(x, m):
    energy = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d2 = 1e-4
            for k in range(3):
                d2 += (x[i, k] - x[j, k]) ** 2
            energy -= m[i] * m[j] / math.sqrt(d2)
    return energy


def edge_filter(image):
    n, m = image.shape
    out = np.zeros((n, m))
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            gx = image[i - 1, j + 1] + 2 * image[i, j + 1] + image[i + 1, j + 1]
            gx -= image[i - 1, j - 1] + 2 * image[i, j - 1] + image[i + 1, j - 1]
            gy = image[i + 1, j - 1] + 2 * image[i + 1, j] + image[i + 1, j + 1]
            gy -= image[i - 1, j - 1] + 2 * image[i - 1, j] + image[i - 1, j + 1]
            out[i, j] = math.sqrt(gx * gx + gy * gy + 1e-3)
    return np.sum(out)


def heat(u, conductivity, target, steps):
    v = u.copy()
    w = u.copy()
    for _ in range(steps):
        for i in range(1, len(v) - 1):
            w[i] = v[i] + conductivity[i] * (v[i - 1] - 2.0 * v[i] + v[i + 1])
        v, w = w, v
    loss = 0.0
    for i in range(len(v)):
        loss += (v[i] - target[i]) ** 2
    return loss


def wave(start, speed, steps):
    n, m = start.shape
    u = np.zeros((steps + 1, n, m))
    u[0], u[1] = start, start
    misfit = 0.0
    for t in range(1, steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1]
                change = speed[i, j] ** 2 * (around - 4.0 * u[t, i, j])
                u[t + 1, i, j] = 2.0 * u[t, i, j] - u[t - 1, i, j] + change
        misfit += u[t + 1, n // 2, m // 2] ** 2
    return misfit


def thomas(a, b, c, d):
    n = len(d)
    cp, dp = np.empty(n), np.empty(n)
    cp[0], dp[0] = c[0] / b[0], d[0] / b[0]
    for i in range(1, n):
        scale = b[i] - a[i] * cp[i - 1]
        cp[i] = c[i] / scale
        dp[i] = (d[i] - a[i] * dp[i - 1]) / scale
    x = np.empty(n)
    x[n - 1] = dp[n - 1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return np.sum(x * x)


def soft_dtw(x, y, gamma):
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), 1e6)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            a, b, c = table[i - 1, j], table[i, j - 1], table[i - 1, j - 1]
            low = min(a, b, c)
            total = math.exp((low - a) / gamma) + math.exp((low - b) / gamma)
            total += math.exp((low - c) / gamma)
            table[i, j] = (x[i - 1] - y[j - 1]) ** 2 + low - gamma * math.log(total)
    return table[n, m]


def hmm_forward(start, move, emit, seen):
    n = len(start)
    alpha, new = np.empty(n), np.empty(n)
    for j in range(n):
        alpha[j] = start[j] * emit[j, seen[0]]
    likelihood = 0.0
    for t in range(1, len(seen)):
        total = 0.0
        for j in range(n):
            s = 0.0
            for i in range(n):
                s += alpha[i] * move[i, j]
            new[j] = s * emit[j, seen[t]]
            total += new[j]
        likelihood += math.log(total)
        for j in range(n):
            alpha[j] = new[j] / total
    return likelihood


def matrix_product(a, b):
    n, k, m = a.shape[0], a.shape[1], b.shape[1]
    c = np.zeros((n, m))
    for i in range(n):
        for p in range(k):
            for j in range(m):
                c[i, j] += a[i, p] * b[p, j]
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += c[i, j] ** 2
    return total


def kalman(z, dt, q, r):
    x, v = z[0], 0.0
    p00, p01, p11 = 1.0, 0.0, 1.0
    likelihood = 0.0
    for k in range(1, len(z)):
        x += dt * v
        p00 += dt * (2.0 * p01 + dt * p11) + q * dt**3 / 3.0
        p01 += dt * p11 + q * dt**2 / 2.0
        p11 += q * dt
        s = p00 + r
        residual = z[k] - x
        likelihood -= 0.5 * (math.log(s) + residual**2 / s)
        k0, k1 = p00 / s, p01 / s
        x += k0 * residual
        v += k1 * residual
        p11 -= k1 * p01
        p01 *= 1.0 - k0
        p00 *= 1.0 - k0
    return likelihood


def kernel_density(points, samples, width):
    likelihood = 0.0
    for i in range(len(points)):
        density = 0.0
        for j in range(len(samples)):
            z = (points[i] - samples[j]) / width
            density += math.exp(-0.5 * z * z)
        likelihood += math.log(density / (len(samples) * width))
    return likelihood


class Case(NamedTuple):
    """A function, and its arguments."""

    name: str
    function: Callable[..., Any]
    data: Callable[[np.random.Generator], tuple]

    def arguments(self) -> tuple:
        """Return the arguments, the same on every run."""
        return self.data(np.random.default_rng(0))


CASES = (
    Case("n-body, 100", n_body, lambda r: (r.normal(size=(100, 3)), r.uniform(0.5, 2, 100))),
    Case("edge filter, 128 x 128", edge_filter, lambda r: (r.normal(size=(128, 128)),)),
    Case(
        "heat equation, 256, 100 steps",
        heat,
        lambda r: (r.normal(size=256), r.uniform(0.1, 0.4, 256), r.normal(size=256), 100),
    ),
    Case(
        "wave equation, 64 x 64, 50 steps",
        wave,
        lambda r: (r.normal(size=(64, 64)), r.uniform(0.3, 0.6, (64, 64)), 50),
    ),
    Case(
        "Thomas solve, 1,000",
        thomas,
        lambda r: (*r.normal(size=(1, 1_000)), r.uniform(3, 5, 1_000), *r.normal(size=(2, 1_000))),
    ),
    Case("soft DTW, 100 x 100", soft_dtw, lambda r: (*r.normal(size=(2, 100)), 0.5)),
    Case(
        "HMM forward, 16 states, 200 steps",
        hmm_forward,
        lambda r: (
            r.dirichlet(np.ones(16)),
            r.dirichlet(np.ones(16), 16),
            r.dirichlet(np.ones(8), 16),
            r.integers(0, 8, 200),
        ),
    ),
    Case("matrix product, 64 x 64", matrix_product, lambda r: tuple(r.normal(size=(2, 64, 64)))),
    Case("Kalman filter, 500 steps", kalman, lambda r: (r.normal(size=500), 0.1, 0.5, 0.7)),
    Case(
        "kernel density, 100 of 300",
        kernel_density,
        lambda r: (r.normal(size=100), r.normal(size=300), 0.3),
    ),
)
"""Add a function here, and its equivalents to `array_functions_jax` and `array_functions_torch`."""
