"""What `tests.support.device_sweep` compares on a device with the CPU: `cases` of a task's name."""

import time
from collections.abc import Callable, Iterator
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tests.support import op_cases
from tinygrad_cg._core.primitive import OPS

DEVICE, LARGEST = "gpu:0", 10**6  # `device_sweep` sets them in each process
ROUNDING = {"e": 1e-2, "f": 2e-5, "F": 2e-5, "d": 1e-10, "D": 1e-10}
FREE = {"eig", "eigh", "svd"}  # the signs and phases of vectors are the library's choice
TERMS = 32  # units of rounding of the largest term, by which a derivative may differ
MAX_SECONDS = 2.0  # that the CPU may take for the values of one case
Case = tuple[str, Callable[[], Any]]  # its name, and what raises an error if something differs
rng = np.random.default_rng(7)


class Differs(AssertionError):
    """A result is not the CPU's."""


def there(x: Any) -> Any:
    return tf.constant(x).to_device(DEVICE)


def differ(got: Any, want: Any, order: int = 0, exact: bool = False, allowed: float = 0.0) -> float:
    """Return the largest error, relative to the value or the median; raise if it is no rounding.

    Errors up to `allowed` do not count.
    """
    part = ("value", "gradient", "second gradient", "third gradient")[min(order, 3)]
    if got is None or want is None:
        if got is not want:
            raise Differs(f"{part}: one of {got} and {want} is None")
        return 0.0
    if (got.device, got.dtype, got.shape) != (DEVICE, want.dtype, want.shape):
        raise Differs(
            f"{part}: {got.dtype}{got.shape} on {got.device}, not {want.dtype}{want.shape}"
        )
    a, b = got.numpy(), want.numpy()
    if exact or a.dtype.kind not in "fc":
        wrong = ~((a == b) | (a != a) & (b != b))
        if wrong.any():
            i = tuple(map(int, np.argwhere(wrong)[0]))
            raise Differs(
                f"{part}: {wrong.sum()} of {a.size} differ, at {i} {a[i]!r}, not {b[i]!r}"
            )
        return 0.0
    finite = np.isfinite(b)
    with np.errstate(all="ignore"):
        same = (a == b) | np.isnan(a) & np.isnan(b)
        sizes = np.abs(np.where(finite, b, 0)).astype(float)
        scale = np.median(sizes[sizes > 0]) if (sizes > 0).any() else 1.0
        errors = np.abs(np.where(finite, a - b, np.inf)) - allowed
        errors = np.where(same | (errors <= 0), 0, errors / (sizes + scale))
    errors = np.where(np.isnan(errors), np.inf, errors)
    worst = float(errors.max(initial=0.0))
    if worst > ROUNDING[b.dtype.char] * 10**order:
        i = tuple(map(int, np.unravel_index(errors.argmax(), errors.shape)))
        count = int((errors > ROUNDING[b.dtype.char] * 10**order).sum())
        raise Differs(
            f"{part}: error {worst:.1e}, {count} of {a.size}, at {i} {a[i]!r}, not {b[i]!r}"
        )
    return worst / float(np.finfo(b.dtype).eps)


def outcome(function: Callable, arrays: Any, move: Callable) -> Any:
    """Return the results of a function of tensors, or the error with which it refuses them."""
    try:
        return tf.nest.flatten(function(*[move(array) for array in arrays]))
    except (ValueError, TypeError, IndexError, ArithmeticError, NotImplementedError) as error:
        return error


def compare(function: Callable, *arrays: Any, orders: Any = None, exact: bool = False) -> Any:
    """Run a function of tensors on both devices; return the largest error in units of rounding."""
    want = outcome(function, arrays, tf.constant)
    if isinstance(want, Exception):
        got = outcome(function, arrays, there)
        if type(got) is not type(want):
            raise Differs(f"the CPU refuses this: {want!r}") from want
        return f"both refuse: {type(want).__name__}: {str(want)[:150]}"
    got = tf.nest.flatten(function(*map(there, arrays)))
    levels = orders(len(want)) if orders else [0] * len(want)
    if len(got) != len(want):
        raise Differs(f"{len(got)} results, not {len(want)}")
    allowed = [rounding_of_terms(want, levels, level) for level in levels]
    exactly = [exact] * len(want)
    return max(map(differ, got, want, levels, exactly, allowed), default=0.0)


def rounding_of_terms(results: list, levels: list[int], level: int) -> float:
    """Return the rounding of the terms of a derivative, which may cancel; 0 for a value.

    The terms are about as large as the largest result of this order and of the order before.
    """
    rounding = 0.0
    for result, other in zip(results, levels, strict=True):
        is_near = level and other in (level - 1, level)
        if is_near and result is not None and result.dtype.kind in "fc":
            x = np.abs(result.numpy())
            largest = float(x[np.isfinite(x)].max(initial=0.0))
            rounding = max(rounding, TERMS * float(np.finfo(x.dtype).eps) * largest)
    return rounding


def squares(tensors: list) -> list:
    """Return the sum of squares of each tensor that has one. Sums of slopes are often exactly 0."""
    tensors = [x for x in tensors if x is not None and x.dtype.kind in "fc"]
    return [tf.reduce_sum(tf.math.real(x * tf.math.conj(x))) for x in tensors]


def two_orders(call: Callable, free: bool = False) -> Callable:
    """Return a function: an operation's results, and two derivatives of sums of squares."""

    def run(*tensors: Any) -> Any:
        sources = [tensor for tensor in tensors if tensor.dtype.kind in "fc"]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as inner:
                inner.watch(sources)
                results = tf.nest.flatten(call(*tensors))
                sums = squares(results)
            first = inner.gradient(sums, sources) if sums and sources else []
            sums = squares(first)
        second = outer.gradient(sums, sources) if sums else []
        run.levels = [0] * len(results) + [1] * len(first) + [2] * len(second)
        parts = [*results, *first, *second]
        return [part * 0 if free and part is not None else part for part in parts]

    return run


def both_orders(call: Callable, *arrays: Any, free: bool = False) -> Any:
    function: Any = two_orders(call, free)
    return compare(function, *arrays, orders=lambda count: function.levels)


def fit(shape: tuple) -> tuple:
    """Return a shape with sizes that suit `LARGEST`."""
    return shape if prod(shape) <= LARGEST else tuple(min(n, isqrt(LARGEST)) for n in shape)


def strided(call: Callable, *xs: Any) -> Any:
    """Call an operation on views of every other column of the transposed operands."""
    return call(*[tf.transpose(x)[::2] if x.shape.rank == 2 else x for x in xs])


# Operations --------------------------------------------------------------------------------------


def own(name: str) -> Iterator[Case]:
    """The examples of an operation: float64 and float32, then the other dtypes."""
    examples = op_cases.examples(name)
    for dtype in "df":
        for example in examples[: 3 if op_cases.is_elementwise(OPS[name]) else 2]:
            yield of_example(example, dtype)


def rest(name: str) -> Iterator[Case]:
    examples = op_cases.examples(name)
    for example in examples[3 if op_cases.is_elementwise(OPS[name]) else 2 :][:5]:
        yield of_example(example, "d")
    for dtype in "eDFilbBH?":
        yield of_example(examples[0], dtype)


def of_example(example: Any, dtype: str) -> Case:
    operands = [
        np.rint(x * 3) if np.dtype(dtype).kind in "iu" and x.dtype.kind == "f" else x
        for x in example.operands
    ]
    operands = example._replace(operands=tuple(operands)).cast(np.dtype(dtype))
    if dtype in "DF":
        operands = [x * (1 + 0.25j) if x.dtype.kind == "c" else x for x in operands]
    free = example.primitive.name in FREE
    name = f"{dtype} {[x.shape for x in operands]} {str(example.params)[:50]}"
    if dtype in "df":
        return name, partial(both_orders, example.call, *operands, free=free)
    return name, partial(
        compare,
        lambda *x: [r * 0 if free else r for r in tf.nest.flatten(example.call(*x))],
        *operands,
    )


AXES = [
    *(((1000,), 0), ((1000, 1000), 0), ((1000, 1000), 1), ((3, 1000, 333), 1), ((1, 10**6), 0)),
    *(((1, 10**6), 1), ((10**6, 1), 0), ((10**6, 1), 1), ((5, 1), 0), ((0, 5), 1), ((5, 0), 1)),
    *(((257, 255), 1), ((33, 1025), 0), ((2, 3, 4, 5000), 2)),
]
SETS = [*AXES, ((1000, 1000), None), ((10**6,), None), ((3, 1000, 333), (0, 2)), ((0, 5), None)]


def op(name: str, **params: Any) -> Callable:
    return lambda *xs: OPS[name](*xs, **params)


REDUCTIONS: dict[str, Callable] = {
    "sum": tf.reduce_sum,
    "mean": tf.reduce_mean,
    "prod": tf.reduce_prod,
    "max": tf.reduce_max,
    "min": tf.reduce_min,
    "logsumexp": tf.reduce_logsumexp,
    "variance": tf.math.reduce_variance,
    "euclidean_norm": tf.math.reduce_euclidean_norm,
    "any": lambda x, axis: tf.reduce_any(x > 1.45, axis),
    "all": lambda x, axis: tf.reduce_all(x > 0.51, axis),
}
LINES: dict[str, Callable] = {
    "argmax": tf.argmax,
    "argmin": tf.argmin,
    "softmax": tf.nn.softmax,
    "log_softmax": tf.nn.log_softmax,
    "cumsum": lambda x, axis: (tf.cumsum(x, axis), tf.cumsum(x, axis, True, True)),
    "cumprod": lambda x, axis: tf.math.cumprod(x, axis),
    "sort": lambda x, axis: tf.sort(x, axis),
    "argsort": lambda x, axis: tf.argsort(x, axis, stable=True),
    "recurrence": lambda x, axis: op(
        "recurrence", axis=axis, reverse=False, exclusive=False, pulls=False
    )(x, x * 0.5),
}
Spec = Any  # shapes of float operands; (shape, size) of indices
square, tall, vector = (1000, 1000), (3, 1000, 333), (10**6,)
geometry = {"strides": 1, "padding": "SAME"}
spd = lambda x: x @ tf.linalg.matrix_transpose(x) + 3.0 * tf.eye(x.shape[-1], dtype=x.dtype)
MOVES: dict[str, list[tuple[Callable, list[Spec]]]] = {
    "gather": [
        (tf.gather, [square, ((5000,), 1000)]),
        (lambda x, i: tf.gather(x, i, axis=1), [square, ((5000,), 1000)]),
        (lambda x, i: tf.gather(x, i, axis=1, batch_dims=1), [square, ((1000, 7), 1000)]),
        (tf.gather, [vector, (vector, 10**6)]),
        (tf.gather, [(20,), (vector, 20)]),
    ],
    "take_along_axis": [
        (lambda x, i, axis=axis: tnp.take_along_axis(x, i, axis), [square, (square, 1000)])
        for axis in (0, 1)
    ],
    "gather_adjoint": [
        (lambda x, i: tf.math.unsorted_segment_sum(x, i, 1000), [vector, (vector, 1000)]),
        (lambda x, i: tf.math.unsorted_segment_sum(x, i, 3), [vector, (vector, 3)]),
        (lambda x, i: tf.math.unsorted_segment_sum(x, i, 1000), [square, ((1000,), 1000)]),
        (lambda x, i: tf.scatter_nd(i[:, None], x, [1000]), [(5000,), ((5000,), 1000)]),
        (lambda x, i: tf.tensor_scatter_nd_add(x, i[:, None], x), [square, ((1000,), 1000)]),
    ],
    "segment_extremum": [
        (lambda x, i: tf.math.unsorted_segment_max(x, i, 1000), [vector, (vector, 1000)]),
    ],
    "getitem": [
        (lambda x: x[::2, ::-3], [square]),
        (lambda x: x[5:, 1] * x[-1, :-5], [square]),
        (lambda x, i: x[:, i], [square, ((300,), 1000)]),
        (lambda x, i: x[i, i], [square, ((300,), 1000)]),
        (lambda x: x[x > 1.0], [square]),
        (lambda x: x.at[::2].add(x[::2] * 2.0), [square]),
    ],
    "transpose": [
        (lambda x, perm=perm: tf.transpose(x, perm) * 2.0, [shape])
        for shape, perm in [
            *((square, (1, 0)), (tall, (2, 0, 1)), (tall, (0, 2, 1)), (tall, (2, 1, 0))),
            *(((7, 33, 65, 5), (3, 1, 0, 2)), ((1, 10**6), (1, 0)), ((31, 33), (1, 0))),
        ]
    ],
    "concatenate": [
        (lambda x, y: tf.concat([x, y, x], 0), [square, square]),
        (lambda x, y: tf.concat([x, tf.transpose(y)], 1), [square, square]),
        (lambda x: tf.concat([x[:0], x, x[1:]], 0), [vector]),
    ],
    "stack": [(lambda x, axis=axis: tf.stack([x, x * 2.0], axis), [square]) for axis in (0, 1, 2)],
    "pad": [
        (lambda x, mode=mode: tf.pad(x, [[1, 2], [3, 0]], mode), [square])
        for mode in ("CONSTANT", "REFLECT", "SYMMETRIC")
    ],
    "reshape": [
        (lambda x: tf.reshape(tf.transpose(x), [-1]), [square]),
        (lambda x: tf.roll(tf.reverse(tf.tile(x, [2, 1]), [1]), 5, 0), [square]),
    ],
    "broadcast_to": [(lambda x: tf.broadcast_to(x, (30, *x.shape)), [(1000, 1)])],
    "cast": [(lambda x: tf.cast(tf.cast(x, "float32"), "float64"), [vector])],
    "matmul": [
        (tf.matmul, [(512, 333), (333, 257)]),
        (tf.matmul, [(8, 64, 32), (8, 32, 65)]),
        (lambda x, y: tf.matmul(x, y, transpose_a=True), [(333, 512), (333, 257)]),
        (lambda x, y: tf.matmul(x[:, ::2], y, transpose_b=True), [(100, 60), (7, 30)]),
        (tf.matmul, [(5, 0), (0, 3)]),
        (lambda x, y: tf.einsum("bij,bjk->ik", x, y), [(8, 64, 32), (8, 32, 65)]),
    ],
    "matvec": [(tf.linalg.matvec, [square, (1000,)])],
    "conv": [
        (lambda x, w: tf.nn.conv2d(x, w, **geometry), [(4, 32, 32, 8), (3, 3, 8, 16)]),
        (lambda x, w: tf.nn.conv2d(x, w, 2, "VALID"), [(4, 33, 32, 8), (5, 3, 8, 16)]),
        (lambda x, w: tf.nn.conv1d(x, w, 1, "SAME"), [(4, 500, 8), (3, 8, 16)]),
        (
            lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
            [(4, 32, 32, 8), (3, 3, 8, 2)],
        ),
    ],
    "max_pool": [(lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), [(4, 33, 32, 8)])],
    "mean_pool": [(lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), [(4, 33, 32, 8)])],
    "fft": [(lambda x: tf.signal.fft(tf.cast(x, "complex128")), [(30, 1000)])],
    "rfft": [(tf.signal.rfft, [(30, 1000)]), (tf.signal.rfft, [(3, 1023)])],
    "cholesky": [(lambda x: tf.linalg.cholesky(spd(x)), [(5, 40, 40)])],
    "solve": [(lambda x, y: tf.linalg.solve(spd(x), y), [(5, 40, 40), (5, 40, 3)])],
    "inverse": [(lambda x: tf.linalg.inv(spd(x)), [(5, 40, 40)])],
    "log_abs_determinant": [(lambda x: tf.linalg.slogdet(spd(x))[1], [(5, 40, 40)])],
    "svdvals": [(lambda x: tf.linalg.svd(x, compute_uv=False), [(3, 30, 20)])],
    "eigvalsh": [(lambda x: tf.linalg.eigvalsh(spd(x)), [(3, 30, 30)])],
    "searchsorted": [(lambda x, y: tf.searchsorted(tf.sort(x), y), [(1000,), vector])],
    "one_hot": [(lambda i: tf.one_hot(i, 100), [((1000,), 100)])],
    "where": [
        (lambda x: tf.where(x > 1.0, x, 0.5), [square]),
        (lambda x: tf.where(x > 1.0), [square]),
        (lambda i: tf.unique_with_counts(i), [(vector, 1000)]),
        (lambda i: tf.math.bincount(i), [(vector, 1000)]),
        (lambda x: tf.histogram_fixed_width(x, [0.0, 2.0], 50), [vector]),
        (lambda x: tf.math.top_k(x, 5), [square]),
    ],
}


def operand(spec: Spec, dtype: str, spread: float = 0.5) -> np.ndarray:
    if spec and isinstance(spec[0], tuple):
        high = spec[1] if LARGEST >= 10**6 else min(spec[1], isqrt(LARGEST))
        return rng.integers(0, high, fit(spec[0]))
    return rng.uniform(1 - spread, 1 + spread, fit(spec)).astype(dtype)


def sizes(name: str) -> Iterator[Case]:
    """Larger operands, views and empty ones."""
    primitive = OPS[name]
    if op_cases.is_elementwise(primitive):
        yield from elementwise_sizes(name)
    for dtype in "fd":
        spread = 1e-3 if "prod" in name else 0.5
        for table, axes in ((REDUCTIONS, SETS), (LINES, AXES)):
            for shape, axis in axes if name in table else ():
                call = partial(table[name], axis=axis)
                x = operand(shape, dtype, spread)
                yield f"{dtype} {x.shape} axis {axis}", partial(both_orders, call, x)
            if name in table:
                x = operand((300, 200), dtype, spread)
                view = partial(strided, partial(table[name], axis=1))
                yield f"{dtype} view", partial(both_orders, view, x)
        for k, (call, specs) in enumerate(MOVES.get(name, ())):
            arrays = [operand(spec, dtype) for spec in specs]
            label = f"{dtype} {[x.shape for x in arrays]} #{k}"
            yield label, partial(both_orders, call, *arrays)
    for dtype in "eilbBF?":
        for table in (REDUCTIONS, LINES):
            for shape, axis in ((1000,), 0), ((300, 400), 0), ((300, 400), 1):
                if name in table:
                    x = operand(shape, "d", 1e-3 if "prod" in name else 0.5)
                    x = (x * (2 if dtype in "ilbB" else 1)).astype(dtype)
                    call = partial(table[name], axis=axis)
                    yield f"{dtype} {x.shape} axis {axis}", partial(compare, call, x)


def elementwise_sizes(name: str) -> Iterator[Case]:
    primitive, most = OPS[name], LARGEST
    count = len(op_cases._split(primitive)[0])
    for dtype in "fd":
        for shape in ((1000,), (LARGEST,), (30, 20), (0, 3)):
            shape = fit(shape)
            if prod(shape) > most:
                shape = (most,)
            example = op_cases.elementwise_example(primitive, rng, (shape,) * count)
            call = partial(strided, example.call) if shape == (30, 20) else example.call
            operands = example.cast(np.dtype(dtype))
            start = time.perf_counter()
            yield f"{dtype} {shape}", partial(both_orders, call, *operands)
            if shape == fit((1000,)):  # how long the CPU takes without compiling
                start = time.perf_counter()
                outcome(two_orders(call), operands, tf.constant)
                each = (time.perf_counter() - start) / prod(shape)
                most = max(10**4, min(LARGEST, int(MAX_SECONDS / each)))
