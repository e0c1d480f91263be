"""The functions of `array_functions` in PyTorch: whole arrays where rounds are independent.

`in_loops` runs a function of `array_functions` itself on tensors of one element.
"""

import ast
import functools
import importlib
import inspect
import os
import types
from typing import Any

import numpy as np

from benchmarks import THREADS

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as in `with_torch`
torch: Any = importlib.import_module("torch")
torch.set_num_threads(THREADS)

_ARRAYS = "empty", "full", "zeros"


def n_body(x, m):
    rows, columns = torch.tril_indices(x.shape[0], x.shape[0], -1)
    d2 = 1e-4 + ((x[rows] - x[columns]) ** 2).sum(1)
    return -(m[rows] * m[columns] / d2.sqrt()).sum()


def edge_filter(image):
    across = image[:, 2:] - image[:, :-2]
    gx = across[:-2] + 2 * across[1:-1] + across[2:]
    down = image[2:] - image[:-2]
    gy = down[:, :-2] + 2 * down[:, 1:-1] + down[:, 2:]
    return (gx * gx + gy * gy + 1e-3).sqrt().sum()


def heat(u, conductivity, target, steps):
    v = u
    inner = conductivity[1:-1]
    for _ in range(steps):
        new = v[1:-1] + inner * (v[:-2] - 2.0 * v[1:-1] + v[2:])
        v = torch.cat((v[:1], new, v[-1:]))
    return ((v - target) ** 2).sum()


def wave(start, speed, steps):
    n, m = start.shape
    before, u = start, start
    squared, misfit = speed[1:-1, 1:-1] ** 2, 0.0
    for _ in range(steps - 1):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        change = squared * (around - 4.0 * u[1:-1, 1:-1])
        inner = 2.0 * u[1:-1, 1:-1] - before[1:-1, 1:-1] + change
        before, u = u, torch.nn.functional.pad(inner, (1, 1, 1, 1))
        misfit = misfit + u[n // 2, m // 2] ** 2
    return misfit


def thomas(a, b, c, d):
    a, b, c, d = a.unbind(), b.unbind(), c.unbind(), d.unbind()
    cp, dp = [c[0] / b[0]], [d[0] / b[0]]
    for i in range(1, len(d)):
        scale = b[i] - a[i] * cp[-1]
        cp.append(c[i] / scale)
        dp.append((d[i] - a[i] * dp[-1]) / scale)
    x = [dp[-1]]
    for i in range(len(d) - 2, -1, -1):
        x.append(dp[i] - cp[i] * x[-1])
    return (torch.stack(x) ** 2).sum()


def soft_dtw(x, y, gamma):
    """By anti-diagonals of the table, whose elements are independent."""
    n, m = len(x), len(y)
    cost = (x[:, None] - y) ** 2
    wall = x.new_full((1,), 1e6)
    older, last = torch.cat((x.new_zeros(1), wall.expand(n))), wall.expand(n + 1)
    for k in range(2, n + m + 1):  # elements (i, k - i)
        low, high = max(1, k - m), min(n, k - 1)
        near = torch.stack((last[low - 1 : high], last[low : high + 1], older[low - 1 : high]))
        best = -gamma * torch.logsumexp(-near / gamma, 0)
        rows = torch.arange(low - 1, high)
        new = cost[rows, k - 2 - rows] + best
        older, last = last, torch.cat((wall.expand(low), new, wall.expand(n - high)))
    return last[n]


def hmm_forward(start, move, emit, seen):
    chances = emit.T[seen].unbind()
    alpha = start * chances[0]
    totals = []
    for chance in chances[1:]:
        alpha = (alpha @ move) * chance
        totals.append(alpha.sum())
        alpha = alpha / totals[-1]
    return torch.stack(totals).log().sum()


def matrix_product(a, b):
    return ((a @ b) ** 2).sum()


def kalman(z, dt, q, r):
    z = z.unbind()
    x, v = z[0], 0.0
    p00, p01, p11 = 1.0, 0.0, 1.0
    likelihood = 0.0
    noise = q * dt**3 / 3.0, q * dt**2 / 2.0, q * dt
    for k in range(1, len(z)):
        x = x + dt * v
        p00 = p00 + dt * (2.0 * p01 + dt * p11) + noise[0]
        p01 = p01 + dt * p11 + noise[1]
        p11 = p11 + noise[2]
        s = p00 + r
        residual = z[k] - x
        likelihood = likelihood - 0.5 * (torch.log(s) + residual**2 / s)
        k0, k1 = p00 / s, p01 / s
        x = x + k0 * residual
        v = v + k1 * residual
        p11 = p11 - k1 * p01
        p01 = p01 * (1.0 - k0)
        p00 = p00 * (1.0 - k0)
    return likelihood


def kernel_density(points, samples, width):
    z = (points[:, None] - samples) / width
    density = torch.exp(-0.5 * z * z).sum(1)
    return torch.log(density / (len(samples) * width)).sum()


def in_loops(function):
    """Return a function in loops whose arrays have tensors of one element as objects."""
    tree = _OutOfPlace().visit(ast.parse(inspect.getsource(function)))
    shapes = {name: functools.partial(getattr(np, name), dtype=object) for name in _ARRAYS}
    names = {"np": types.SimpleNamespace(sum=np.sum, **shapes), "math": torch}
    exec(compile(ast.fix_missing_locations(tree), inspect.getfile(function), "exec"), names)
    return lambda *arguments: names[function.__name__](*map(_elements, arguments))


class _OutOfPlace(ast.NodeTransformer):
    """Writes `x = x + y` for `x += y`, which overwrites a tensor that a gradient needs."""

    def visit_AugAssign(self, node):
        old = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], ast.BinOp(old, node.op, node.value))


def _elements(x):
    """Return an array of the elements of a tensor of floats; anything else as it is."""
    if not isinstance(x, torch.Tensor) or not x.ndim or not x.is_floating_point():
        return x
    return np.fromiter(x.flatten().unbind(), object, x.numel()).reshape(x.shape)


def gradient(function, arguments, positions):
    """Return a function of no arguments that computes the gradients by some of the arguments."""
    own = [x if isinstance(x, int) else torch.as_tensor(x) for x in arguments]
    for k in positions:
        own[k] = torch.tensor(arguments[k], dtype=torch.float64, requires_grad=True)
    wanted = [own[k] for k in positions]
    return lambda: torch.autograd.grad(function(*own), wanted)
