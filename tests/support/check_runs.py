"""Random checks of right derivatives: none may be called wrong.

``python -m tests.support.check_runs COUNT [FIRST]`` draws operations of the registry and
compositions of them, as they are and as custom gradients, with arguments of sizes from 1e-40 to
1e8, whole ones, zeros and confident logits among them, in float32 and float64. It prints each
report that calls something wrong, with the number that draws it again, and how many there were.
Derivatives that are infinite or NaN where they have a value are counted by themselves, and so are
rules that raise the error that is documented for a singular matrix.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import tinygrad_cg as tf
from tests.support.check_faults import composition, draw, function_of, ruled
from tinygrad_cg._check import GradientReport


def _logits(rng: np.random.Generator) -> tuple[str, Callable, list[np.ndarray]]:
    """A loss of confident logits."""
    sigma = 10.0 ** rng.uniform(0.0, 2.5)
    x, other = [sigma * rng.normal(size=(3, 5)) for _ in range(2)]
    labels = np.eye(5)[rng.integers(5, size=3)]
    soft, log = tf.nn.softmax, tf.nn.log_softmax
    losses = {
        "log softmax": lambda x: log(x),
        "cross-entropy": lambda x: -tf.reduce_sum(labels.astype(x.dtype.name) * log(x), -1),
        "entropy": lambda x: -tf.reduce_sum(soft(x) * log(x), -1),
        "divergence": lambda x: tf.reduce_sum(
            soft(x) * (log(x) - log(other.astype(x.dtype.name))), -1
        ),
        "logsumexp": lambda x: tf.reduce_logsumexp(x, -1),
    }
    name = str(rng.choice(list(losses)))
    return f"{name} at {sigma:.3g}", losses[name], [x]


def _operation(rng: np.random.Generator) -> tuple[str, Callable, list[np.ndarray]]:
    example = draw(rng)
    operands = [np.asarray(example.operands[i], np.float64) for i in example.real()]
    kind, scale = str(rng.choice(("as drawn", "scaled", "mixed", "whole", "zeros"))), 1.0
    if example.primitive.name == "eig":  # of others, errors of rounding may be larger than values
        kind = "as drawn"
    if kind == "scaled":
        scale = 10.0 ** rng.uniform(-40.0, 8.0)
        operands = [scale * one for one in operands]
    elif kind == "mixed":
        operands = [one * 10.0 ** rng.uniform(-12.0, 4.0, one.shape) for one in operands]
    elif kind == "whole":
        operands = [np.round(one) for one in operands]
    elif kind == "zeros":
        operands = [one * rng.integers(2, size=one.shape) for one in operands]
    return f"{example.primitive.name} ({kind}, {scale:.3g})", function_of(example), operands


def _composition(rng: np.random.Generator) -> tuple[str, Callable, list[np.ndarray]]:
    scale = 10.0 ** rng.uniform(-2.0, 1.0)
    return "a composition", composition(rng), [scale * rng.normal(size=6) for _ in range(2)]


def run(seed: int) -> tuple[str, GradientReport | None]:
    """Return what was checked, and its report; None where the function is not defined."""
    rng = np.random.default_rng([14, seed])
    drawn = (_operation, _operation, _logits, _composition)[seed % 4]
    name, function, operands = drawn(rng)
    dtype = str(rng.choice(("float32", "float64")))
    if rng.integers(2):
        function = ruled(function)
    tensors = [tf.constant(one.astype(dtype)) for one in operands]
    order = int(rng.integers(1, 3))
    try:
        values = tf.nest.flatten(function(*tensors))
    except (ValueError, ArithmeticError):  # not positive definite, say
        return name, None
    if not all(np.isfinite(np.asarray(one)).all() for one in values):
        return name, None  # beyond the domain, or too large
    full = sum(one.size for one in operands) < 10 and not rng.integers(4)
    report = tf.check_gradients(function, *tensors, order=order, seed=seed, full=full)
    return f"{name}, {dtype}", report


def main(count: int, first: int = 0) -> int:
    """Print what was called wrong in `count` runs; return how many there were."""
    wrong = not_finite = singular = 0
    with np.errstate(all="ignore"):
        for seed in range(first, first + count):
            name, report = run(seed)
            if report is None or report.ok:
                continue
            rows = [row for row in report.rows if row.false]
            false = {row.verdict for row in rows}
            if false == {"not finite"}:  # a true word: a derivative overflows on the way
                not_finite += 1
                print(f"{seed}: {name}: not finite", flush=True)
            elif rows and all("MatrixError" in row.detail for row in rows):
                singular += 1
                print(f"{seed}: {name}: singular", flush=True)
            else:
                wrong += 1
                print(f"{seed}: {name}\n{report}\n", flush=True)
    others = f"{not_finite} not finite in the arguments' dtype, {singular} of singular matrices"
    print(f"{count} runs, {wrong} called wrong, {others}")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(*map(int, sys.argv[1:3]))))
