"""Random checks of right derivatives: none may be called wrong.

``python -m tests.support.check_runs COUNT [FIRST]`` draws operations of the registry and
compositions of them, as they are and as custom gradients, with arguments of sizes from 1e-40 to
1e8, whole ones, zeros and confident logits among them, in float32 and float64. It prints each
report that calls something wrong, with the number that draws it again, and how many there were.
Derivatives that are infinite or NaN where they have a value are counted by themselves, and so are
rules that raise the error that is documented for a singular matrix.

``python -m tests.support.check_runs zeros COUNT [FIRST]`` draws functions that do not change along
an argument, or at all, in float32, float64 and both: every row must be true. ``... digits COUNT``
draws rules that are 1e-8 off where a complex step serves: each must be found.
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
        operands = [scale * operand for operand in operands]
    elif kind == "mixed":
        operands = [
            operand * 10.0 ** rng.uniform(-12.0, 4.0, operand.shape) for operand in operands
        ]
    elif kind == "whole":
        operands = [np.round(operand) for operand in operands]
    elif kind == "zeros":
        operands = [operand * rng.integers(2, size=operand.shape) for operand in operands]
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
    tensors = [tf.constant(operand.astype(dtype)) for operand in operands]
    order = int(rng.integers(1, 3))
    try:
        values = tf.nest.flatten(function(*tensors))
    except (ValueError, ArithmeticError):  # not positive definite, say
        return name, None
    if not all(np.isfinite(np.asarray(value)).all() for value in values):
        return name, None  # beyond the domain, or too large
    full = sum(operand.size for operand in operands) < 10 and not rng.integers(4)
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


# Exact zeros ---------------------------------------------------------------------------------

WEIGHTS = np.array([0.3, -1.2, 0.8, 2.1])
SIZES = {"v": 4, "w": 2, "p": 4, "m": (3, 3), "s": (), "t": ()}  # by the name of an argument


def _like(x):
    return tf.constant(WEIGHTS[: x.shape[0]].astype(x.dtype.name))


def _norm(x):
    return tf.sqrt(tf.reduce_sum(x * x))


def _standard(x):
    centred = x - tf.reduce_mean(x)
    return centred / tf.sqrt(tf.reduce_mean(centred * centred))


def _turn(t):
    c, s = tf.cos(t), tf.sin(t)
    return tf.stack([tf.stack([c, -s]), tf.stack([s, c])])


def _turned(w, t):
    return tf.linalg.matvec(_turn(t), w)


def _turned_diagonal(w, t):
    return _turn(t) @ tf.linalg.diag(tf.stack([w[0], w[0] + 2.0])) @ tf.transpose(_turn(t))


def _share(x):
    return x / tf.reduce_sum(x)


def _spread(x):
    return tf.reduce_sum(tf.exp(-((x[:, None] - x[None, :]) ** 2)))


lse, softmax, log_softmax = tf.reduce_logsumexp, tf.nn.softmax, tf.nn.log_softmax
inv, det = tf.linalg.inv, tf.linalg.det

# The arguments: vectors v, w of normal numbers and p of positive ones, a regular matrix m, numbers
# s > 0 and t. Functions of several ones do not change along s and t.
ZEROS: tuple[Callable, ...] = (
    lambda v, t: softmax(v + t),
    lambda v, t: log_softmax(v + t),
    lambda v, t: lse(v + t) - t,
    lambda v, t: tf.nn.softmax_cross_entropy_with_logits(softmax(_like(v)), v + t),
    lambda v, t: _share(tf.exp(v + t)),
    lambda v, t: tf.math.reduce_variance(v + t),
    lambda v, t: tf.math.reduce_std(v + t),
    lambda v, t: (v + t) - tf.reduce_mean(v + t),
    lambda v, t: (v + t)[1:] - (v + t)[:-1],
    lambda v, t: _spread(v + t),
    lambda p, s: tf.math.log(_share(s * p)),
    lambda p, s: _share(s * p),
    lambda p, s: -tf.reduce_sum(_share(s * p) * tf.math.log(_share(s * p))),
    lambda p, s: s * p / tf.exp(tf.reduce_mean(tf.math.log(s * p))),
    lambda p, s: tf.math.log(s * p[0]) - tf.math.log(s * p[1:]),
    lambda p, s: (s * p[0]) ** 3 / ((s * p[1]) * (s * p[2]) ** 2),
    lambda v, s: tf.math.l2_normalize(s * v),
    lambda v, s: s * v / _norm(s * v),
    lambda v, s: tf.reduce_sum(s * v * _like(v)) / (_norm(s * v) * _norm(_like(v))),
    lambda v, s: _standard(s * v),
    lambda v, s: tf.reduce_sum(tf.abs(s * v)) / _norm(s * v),
    lambda v, s: tf.atan2(s * v[:2], s * v[2:]),
    lambda v, s, t: _standard(s * v + t),
    lambda v, s, t: tf.reduce_mean(_standard(s * v + t) * _like(v)),
    lambda m, s: tf.linalg.solve(s * m, s * tf.ones([3, 1], m.dtype)),
    lambda m, s: det(s * m) / s**3,
    lambda m, s: s * inv(s * m),
    lambda w, t: _norm(_turned(w, t)),
    lambda w, t: tf.reduce_sum(_turned(w, t) ** 2),
    lambda w, t: tf.math.log(tf.reduce_sum(_turned(w, t) ** 2)),
    lambda w, t: det(_turn(t)) * w,
    lambda w, t: tf.linalg.trace(_turned_diagonal(w, t)),
    lambda w, t: _norm(_turned(w, t) - _turned(_like(w), t)),
    lambda w, t: tf.linalg.eigvalsh(_turned_diagonal(w, t)),
    lambda w, t: tf.sqrt((w[0] * tf.cos(t)) ** 2 + (w[0] * tf.sin(t)) ** 2 + w[1] ** 2),
    lambda w, t: tf.abs(tf.complex(w[0], w[1]) * tf.complex(tf.cos(t), tf.sin(t))),
    lambda v: tf.reduce_sum(softmax(v)),
    lambda v: tf.reduce_sum(tf.exp(log_softmax(v))),
    lambda v: tf.sin(v) ** 2 + tf.cos(v) ** 2,
    lambda v: tf.cosh(v) ** 2 - tf.sinh(v) ** 2,
    lambda v: tf.sigmoid(v) + tf.sigmoid(-v),
    lambda v: tf.math.erf(v) + tf.math.erfc(v),
    lambda v: tf.exp(v) * tf.exp(-v),
    lambda v: tf.math.log(tf.exp(v)) - v,
    lambda v: (v + 1.0) ** 2 - v * v - 2.0 * v,
    lambda v: _norm(v / _norm(v)),
    lambda v: tf.reduce_sum(tf.math.l2_normalize(v) ** 2),
    lambda v: tf.reduce_sum(v - tf.reduce_mean(v)),
    lambda v: tf.reduce_mean(_standard(v) ** 2),
    lambda v: tf.nn.softplus(v) - tf.nn.softplus(-v) - v,
    lambda v: tf.tanh(v) ** 2 + 1.0 / tf.cosh(v) ** 2,
    lambda v: tf.asin(v / 5.0) + tf.acos(v / 5.0),
    lambda v: tf.sin(v) * tf.exp(v) - tf.exp(v) * tf.sin(v),
    lambda p: p / p,
    lambda p: tf.atan(p) + tf.atan(1.0 / p),
    lambda p: p**1.5 / (p * tf.sqrt(p)),
    lambda p: tf.math.lgamma(p + 1.0) - tf.math.lgamma(p) - tf.math.log(p),
    lambda m: m @ inv(m),
    lambda m: tf.linalg.solve(m, m),
    lambda m: det(m) * det(inv(m)),
)
AFTER: tuple[Callable, ...] = (  # of the function's result, and its first argument
    lambda y, x: y,
    lambda y, x: tf.sin(y),
    lambda y, x: 1000.0 * y + 0.1,
    lambda y, x: y * tf.exp(0.3 * tf.reduce_mean(x)),
)
DTYPES = ("float32", "float64", "an array and Python floats", "both")


def run_zero(seed: int) -> tuple[str, GradientReport]:
    """Return what was checked of 240 functions that do not change, and its report."""
    rng = np.random.default_rng([36, seed])
    index, after = divmod(seed % (len(ZEROS) * len(AFTER)), len(AFTER))
    round_, inner = seed // (len(ZEROS) * len(AFTER)), ZEROS[index]
    names = inner.__code__.co_varnames[: inner.__code__.co_argcount]
    values = [rng.normal(size=SIZES[name]) for name in names]
    for i, name in enumerate(names):
        values[i] = rng.uniform(0.3, 3.0, SIZES[name]) if name in "ps" else values[i]
        values[i] += 3.0 * np.eye(3) if name == "m" else 0.0
    dtype = DTYPES[(round_ + index + after) % len(DTYPES)]
    arrays: list = [
        np.asarray(value, "float32" if dtype == "float32" else None) for value in values
    ]
    if dtype == "both":
        arrays[0] = arrays[0].astype(np.float32)
    elif dtype != "float32" and dtype != "float64":
        arrays[1:] = map(float, values[1:])

    def function(*args):
        return AFTER[after](inner(*args), args[0])

    checked = ruled(function) if round_ % 3 == 2 else function
    report = tf.check_gradients(checked, *arrays, seed=seed)
    return f"function {index}, {after} after it, {dtype}", report


def check_zeros(count: int, first: int = 0) -> int:
    """Print the checks of which a row is not true; return how many there were."""
    wrong = 0
    for seed in range(first, first + count):
        name, report = run_zero(seed)
        if not report.ok or {row.verdict for row in report.rows} != {"ok"}:
            wrong += 1
            print(f"{seed}: {name}\n{report}\n", flush=True)
    print(f"{count} functions that do not change, {wrong} of which a row is not true")
    return wrong


# Digits --------------------------------------------------------------------------------------

SHARP: tuple[Callable, ...] = (  # functions that have a complex step
    lambda p: tf.sin(p) * p,
    lambda p: tf.exp(-p) / (1.0 + p * p),
    lambda p: tf.math.log(p) ** 2,
    lambda p: tf.tanh(p) + tf.sqrt(p),
    lambda p: tf.reduce_sum(p**3) * p,
    lambda p: tf.cosh(p) / tf.cos(0.3 * p),
    lambda p: tf.atan(p) * tf.exp(p),
    lambda p: _share(tf.exp(p)),
    lambda m: inv(m),
    lambda m: tf.linalg.solve(m, m[:, :1] ** 2),
)


def run_digits(seed: int) -> GradientReport:
    """Return the report of a rule that is 1e-8 more or less than the derivative."""
    rng = np.random.default_rng([8, seed])
    function = SHARP[seed % len(SHARP)]
    size = SIZES[function.__code__.co_varnames[0]]
    x = rng.uniform(0.3, 3.0, size) + (3.0 * np.eye(3) if size == (3, 3) else 0.0)
    factor = 1.0 + rng.choice((-1e-8, 1e-8))
    wrong = ruled(function, lambda gradients, *_: [factor * gradient for gradient in gradients])
    return tf.check_gradients(wrong, x, order=1 + seed % 2, seed=seed)


def check_digits(count: int, first: int = 0) -> int:
    """Print the rules whose error was not found; return how many there were."""
    lost = [seed for seed in range(first, first + count) if run_digits(seed).first_false_order != 1]
    print(f"{count} rules that are 1e-8 off, {len(lost)} not found {lost or ''}")
    return len(lost)


CAMPAIGNS = {"zeros": check_zeros, "digits": check_digits}

if __name__ == "__main__":
    name = sys.argv[1]
    chosen = CAMPAIGNS.get(name, main)
    sys.exit(bool(chosen(*map(int, sys.argv[2 if name in CAMPAIGNS else 1 :][:2]))))
