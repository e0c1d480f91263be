"""What gradients of `differentiable` cost: time, and memory of the values that they keep.

``python -m tests.support.array_costs`` prints, for ten functions, the time of the gradient's
program by that of the function's, and the bytes of the gradient's stack; both without and with
``checkpoint=True``. Times are the least of many calls, the two kinds of calls in turns.
"""

from __future__ import annotations

import math
import sys
import time
from functools import partial
from typing import Any

import numpy as np

import tinygrad_cg as tf

from ..array_code import functions as f


def wave(u, steps, c):
    v, w = u.copy(), u.copy()
    for _ in range(steps):
        new = np.zeros_like(u)
        for i in range(1, len(u) - 1):
            new[i] = 2.0 * v[i] - w[i] + c * (v[i + 1] - 2.0 * v[i] + v[i - 1])
        w = v
        v = new
    return v


def product(a, b):
    return a @ b


def arguments() -> list[tuple[str, Any, tuple]]:
    """Return the names of ten functions, the functions, and arguments of usual sizes."""
    r, p = f.r, f.p
    seen = np.arange(200) % 8
    return [
        ("n-body", f.n_body_energy, (r(200, 3), p(200))),
        ("edge filter", f.sobel, (r(200, 200),)),
        ("heat", f.heat, (r(500), 200, 0.2)),
        ("wave", wave, (r(500), 200, 0.2)),
        ("Thomas", f.thomas, (r(5000) * 0.3, p(5000) + 1.5, r(5000) * 0.3, r(5000))),
        ("soft DTW", f.soft_dtw, (r(150), r(150), 0.5)),
        ("HMM", f.hmm_forward, (p(8), p(8, 8), p(8, 8), seen)),
        ("matrix product", product, (r(100, 100), r(100, 100))),
        ("Kalman", f.kalman, (r(20000), 0.3, 0.7)),
        ("density", f.kernel_histogram, (r(500), np.linspace(-1, 1, 100), 0.5)),
    ]


def seconds(*calls: Any) -> list[float]:
    """Return the least time of each call; they take turns."""
    for call in calls:
        call()
    least = [math.inf] * len(calls)
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        for k, call in enumerate(calls):
            start = time.perf_counter()
            call()
            least[k] = min(least[k], time.perf_counter() - start)
    return least


def costs(function: Any, args: tuple) -> tuple[list[float], list[int]]:
    """Return times of the programs of function and gradients, and the bytes of stacks."""
    own = [tf.differentiable(function, checkpoint=flag) for flag in (False, True)]
    derivative, operands = own[0]._applied(*own[0]._family_of(args, {}))
    data = derivative.inputs([x.numpy() for x in operands])
    calls = [(derivative.runner, data), *(x._gradient(args, {}) for x in own)]
    return seconds(*(partial(*call) for call in calls)), [x.stack_bytes(*args) for x in own]


def main(names: list[str]) -> None:
    print(f"{'':16}{'time':>8}{'bytes':>12}{'time':>8}{'bytes':>12}")
    ratios = []
    for name, function, args in arguments():
        if names and name not in names:
            continue
        (own, *others), memory = costs(function, args)
        ratios.append([x / own for x in others])
        cells = (f"{x / own:8.2f}{size:12,}" for x, size in zip(others, memory, strict=True))
        print(f"{name:16}{''.join(cells)}", flush=True)
    means = np.exp(np.mean(np.log(ratios), 0))
    print("geometric mean  " + "".join(f"{x:8.2f}{'':12}" for x in means).rstrip())


if __name__ == "__main__":
    main(sys.argv[1:])
