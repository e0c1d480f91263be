"""`python -m benchmarks.programs.growth`: time of first and later calls of programs that grow.

Values and gradients of chains of operations, which repeat or are drawn at random; of transformer
blocks one after the other; derivatives of higher orders. Each program runs in two separate
processes, the first with an empty cache of kernels. A first call traces, compiles and runs; its
seconds are elapsed, and of the processor in all threads. Of later calls it is the least, of the
processor.

`python -m benchmarks.programs.growth --one KIND SIZE` is such a process.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf
from benchmarks.compile import OPTIONS
from tinygrad_cg._tour.console import table

BATCH, LENGTH, WIDTH, HEADS = 2, 16, 32, 2
rng = np.random.default_rng(0)
Program = tuple[Callable[..., Any], list[Any]]


def repeated(size: int) -> Program:
    """Return a chain of three operations, again and again, on 100 elements."""

    def chain(x):
        y = x
        for _ in range(size // 3):
            y = tf.sin(y * 1.01) + x
        return tf.reduce_sum(y)

    return tf.value_and_grad(chain), [tf.constant(np.linspace(0.1, 1, 100))]


def random(size: int) -> Program:
    """Return a chain of operations without a pattern, on 100 elements."""
    operations = (
        tf.sin,
        tf.tanh,
        lambda y: y * y,
        lambda y: 1.5 - y,
        lambda y: 0.9 * y,
        lambda y: y / (1.0 + y * y),
    )
    chosen = rng.integers(len(operations), size=size)

    def chain(x):
        y = x
        for k in chosen:
            y = operations[k](y)
        return tf.reduce_sum(y)

    return tf.value_and_grad(chain), [tf.constant(np.linspace(0.1, 1, 100))]


def layers(size: int) -> Program:
    """Return the loss of transformer blocks, by the parameters of each."""
    shapes = (WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)
    parameters = [
        [tf.constant((rng.normal(size=shape) / 8).astype("float32")) for shape in shapes]
        for _ in range(size)
    ]
    x = tf.constant(rng.normal(size=(BATCH, LENGTH, WIDTH)).astype("float32"))

    def normalize(x):
        mean, variance = tf.nn.moments(x, axes=[-1], keepdims=True)
        return (x - mean) * tf.math.rsqrt(variance + 1e-5)

    def heads(x):
        return tf.transpose(tf.reshape(x, (BATCH, LENGTH, HEADS, -1)), (0, 2, 1, 3))

    def block(x, qkv, mixing, w1, w2):
        q, k, v = [heads(part) for part in tf.split(normalize(x) @ qkv, 3, axis=-1)]
        scores = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / 4.0)
        mixed = tf.transpose(scores @ v, (0, 2, 1, 3))
        x = x + tf.reshape(mixed, (BATCH, LENGTH, WIDTH)) @ mixing
        return x + tf.nn.gelu(normalize(x) @ w1) @ w2

    def loss(parameters):
        y = x
        for weights in parameters:
            y = block(y, *weights)
        return tf.reduce_mean(y**2)

    return tf.value_and_grad(loss), [parameters]


def order(size: int) -> Program:
    """Return the derivative, of this order, of a perceptron with two hidden layers; its sum."""
    w1, w2, w3 = [tf.constant(rng.normal(size=s)) for s in ((1, 16), (16, 16), (16, 1))]

    def derivative(x):
        return tf.reduce_sum(tf.tanh(tf.tanh(x @ w1) @ w2) @ w3)

    for _ in range(size):
        derivative = _summed(tf.grad(derivative))
    return derivative, [tf.constant(np.linspace(-1, 1, 100)[:, None])]


def _summed(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: tf.reduce_sum(function(x))


def adapted(size: int) -> Program:
    """Return a meta-gradient through nested steps of gradient descent: tapes as deep."""
    w = [tf.constant(rng.normal(size=s) / 4) for s in ((1, 16), (16, 1))]
    x = tf.constant(np.linspace(-1, 1, 20)[:, None])

    def loss(w):
        return tf.reduce_mean((tf.tanh(x @ w[0]) @ w[1] - tf.sin(x)) ** 2)

    def after_a_step(cost):
        def moved(w):
            slopes = tf.grad(cost)(w)
            return loss([p - 0.1 * g for p, g in zip(w, slopes, strict=True)])

        return moved

    cost = loss
    for _ in range(size):
        cost = after_a_step(cost)
    return tf.value_and_grad(cost), [w]


KINDS = {
    "operations, repeated": (repeated, (10, 100, 1_000, 10_000, 100_000)),
    "operations, random": (random, (10, 100, 1_000, 10_000)),
    "transformer blocks": (layers, (1, 2, 4, 8, 16, 32, 64)),
    "order of a derivative": (order, (1, 2, 3, 4)),
    "depth of adaptation": (adapted, (1, 2, 3, 4)),
}


def measure(kind: str, size: int) -> list[float]:
    """Return seconds of a first call, elapsed and of the processor; the least of later calls."""
    function, arguments = KINDS[kind][0](size)
    function = tf.function(function)
    elapsed, used = time.perf_counter(), time.process_time()
    function(*arguments)
    taken = [time.perf_counter() - elapsed, time.process_time() - used]
    later = []
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end or len(later) < 5:
        start = time.process_time()
        function(*arguments)
        later.append(time.process_time() - start)
    return [*taken, min(later)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.programs.growth", description=__doc__
    )
    parser.add_argument("kinds", nargs="*", help="kinds whose names contain one of these; all")
    parser.add_argument("--most", type=int, default=100_000, metavar="SIZE")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"))
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.one[0], int(chosen.one[1]))))
        return
    rows = []
    for kind, (_, sizes) in KINDS.items():
        if chosen.kinds and not any(name in kind for name in chosen.kinds):
            continue
        for size in sizes:
            if size > chosen.most:
                continue
            print(kind, size, file=sys.stderr)
            command = [sys.executable, "-m", "benchmarks.programs.growth", "--one", kind, str(size)]
            with tempfile.TemporaryDirectory() as folder:
                own = os.environ | OPTIONS | {"TINYGRAD_CG_CACHE_DIR": folder}
                cold, warm = [
                    json.loads(
                        subprocess.run(command, env=own, check=True, capture_output=True).stdout
                    )
                    for _ in range(2)
                ]
            cells = f"{cold[0]:.2f} ({cold[1]:.2f})", f"{warm[0]:.2f} ({warm[1]:.2f})"
            rows.append((kind, f"{size:,}", *cells, f"{warm[2] * 1e6:,.1f}"))
    table(("", "size", "empty cache, s (CPU)", "filled, s (CPU)", "later, us (CPU)"), rows)


if __name__ == "__main__":
    main()
