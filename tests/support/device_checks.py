"""Checks of a device, named: `CHECKS`, each of which yields cases for `device_sweep`.

A check says something in words, or raises an error.
"""

import copy
import gc
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tests.cuda.on_device.test_programs import (
    chain,
    columns,
    layer_norm,
    moves,
    normalise,
    scalars,
    totals,
    transposes,
)
from tests.support import device_cases
from tests.support.compiled import orders
from tests.support.device_cases import Case, Differs, compare, differ, fit, operand, there
from tinygrad_cg._core import devices
from tinygrad_cg.errors import ResourceExhaustedError

CHECKS: dict[str, Callable[[], Iterator[Case]]] = {}
GRAPHS = "TINYGRAD_CG_CUDA_GRAPHS"


def check(function: Callable[[], Iterator[Case]]) -> Callable[[], Iterator[Case]]:
    CHECKS[function.__name__] = function
    return function


def on_device() -> Any:
    return tf.device(device_cases.DEVICE)


def require(truth: Any, words: str) -> None:
    if not truth:
        raise Differs(words)


# Programs ----------------------------------------------------------------------------------------


def layers(x):
    def standardise(x):
        x = x - tf.reduce_mean(x, 0)
        return x / tf.sqrt(tf.reduce_mean(x * x, 0) + 1e-3)

    return tf.reduce_sum(standardise(tf.tanh(standardise(x))) ** 2 * x), tf.reduce_max(x * x)


def cross_entropy(x):
    labels = tf.argmax(x, 1)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.sin(x))
    return tf.reduce_mean(losses)


def perceptron(x):
    """The loss of a perceptron whose weights follow from its inputs."""
    w = tf.matmul(x, x, transpose_a=True) / (10.0 * x.shape[0])
    hidden = tf.nn.relu(x @ w + tf.reduce_mean(x, 0))
    return cross_entropy(tf.tanh(hidden @ w[:, :5]))


def loop(x):
    def step(i, y):
        return i + 1, tf.sin(y) * 1.5 + x * 0.1

    return tf.while_loop(lambda i, y: (i < 30) & (tf.reduce_max(y) < 100.0), step, (0, x))[1]


def newton(x):
    y = x
    while tf.reduce_max(tf.abs(y * y - x)) > 1e-3:
        y = 0.5 * (y + x / y)
    for i in tf.range(3):
        y = y + tf.cast(i, y.dtype) * x
    return y


def scans(x):
    first = tf.scan(lambda a, row: tf.tanh(a * 0.5 + row), x, tf.zeros_like(x[0]))
    return first, tf.foldl(lambda a, row: a * 0.9 + row, x), tf.cumsum(x, 1), tf.cumsum(x, 0)


def lookups(x):
    i = tf.argsort(x[:, 0], stable=True)
    return tf.gather(x, i) * 2.0, tf.math.unsorted_segment_sum(x, i % 3, 3), tf.one_hot(i, 9)


def total(function: Callable) -> Callable:
    return lambda x: sum(
        tf.reduce_sum(y * y) for y in tf.nest.flatten(function(x)) if y.dtype.kind == "f"
    )


def double(function: Callable) -> Callable:
    return tf.grad(lambda x: tf.reduce_sum(tf.grad(total(function))(x) ** 2))


PROGRAMS = [chain, layers, totals, normalise, columns, moves, transposes, layer_norm, scalars]
PROGRAMS += [cross_entropy, perceptron, lookups]


def error_on_cpu(function: Callable, points: list[np.ndarray], k: int) -> float:
    """Return the largest error of a program's result on the CPU, by float64.

    A sum that cancels loses digits on any device, and the numbers of two differ by that.
    """
    results = [
        [tf.nest.flatten(function(tf.constant(x.astype(dtype))))[k].numpy() for x in points]
        for dtype in "fd"
    ]
    return float(np.nanmax(np.abs(np.subtract(*results))))


def five_calls(function: Callable, shape: tuple, dtype: str, order: int) -> str:
    """Call a program with and without graphs five times each: numbers of the CPU, equal bits."""
    compiled, results, notes = {}, {}, []
    points = [operand(shape, dtype) for _ in range(5)]
    for chosen in ("0", "1"):
        os.environ[GRAPHS] = chosen
        try:
            compiled[chosen] = tf.function(function)
            results[chosen] = [tf.nest.flatten(compiled[chosen](there(x))) for x in points]
        finally:
            del os.environ[GRAPHS]
    for point, plain, graph in zip(points, results["0"], results["1"], strict=True):
        wanted = tf.nest.flatten(function(tf.constant(point)))
        for k, (want, result, other) in enumerate(zip(wanted, plain, graph, strict=True)):
            same = result.numpy().tobytes() == other.numpy().tobytes()
            require(same, f"with graphs: other bits, {other.numpy()}, not {result.numpy()}"[:300])
            try:
                differ(result, want, order)
            except Differs:
                if dtype == "d":
                    raise
                differ(result, want, order, allowed=4 * error_on_cpu(function, points, k))
    for text in compiled["1"].kernels(there(points[0])):
        notes += [
            part.strip() for part in str(text).splitlines() if "launch" in part and "#" in part
        ]
    return "; ".join(notes)[:150]


def of_programs(functions: list, shape: tuple, dtypes: str = "fd") -> Iterator[Case]:
    for function in functions:
        for dtype in dtypes:
            for part, change in (("value", lambda f: f), ("gradient", lambda f: tf.grad(total(f)))):
                name = f"{function.__name__} {dtype} {shape} {part}"
                order = 0 if part == "value" else 1
                yield name, partial(five_calls, change(function), shape, dtype, order)
        name = f"{function.__name__} d {shape} second gradient"
        yield name, partial(five_calls, double(function), shape, "d", 2)


CHECKS["small_programs"] = lambda: of_programs(PROGRAMS[::2], (6, 5))
CHECKS["more_programs"] = lambda: of_programs(PROGRAMS[1::2], (6, 5))
CHECKS["large_programs"] = lambda: of_programs(PROGRAMS[::2], fit((1000, 333)), "f")
CHECKS["more_large_programs"] = lambda: of_programs(PROGRAMS[1::2], fit((1000, 333)), "f")


@check
def loop_programs() -> Iterator[Case]:
    return of_programs([loop, newton, scans], (6, 5))


# Gradients ---------------------------------------------------------------------------------------


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


@tf.custom_gradient
def inner(x):
    return tf.sin(x), lambda dy: dy * tf.cos(x)


@tf.custom_gradient
def middle(x):
    return x * inner(x), lambda dy: dy * (inner(x) + x * tf.cos(x))


@tf.custom_gradient
def nested(x):
    y = middle(x) * log1pexp(x)
    return (
        y,
        lambda dy: (
            dy
            * (
                middle(x) * tf.sigmoid(x)
                + tf.grad(lambda x: tf.reduce_sum(middle(x)))(x) * log1pexp(x)
            )
        ),
    )


@check
def custom_gradients() -> Iterator[Case]:
    special = np.array([0.0, 100.0, -100.0, 1.0, -3.0, 80.0])
    for function in (log1pexp, inner, middle, nested):
        for points in (special, operand((1000,), "d"), operand((10**6,), "d")):
            for dtype in "fd":
                for name, call in ("eager", function), ("function", tf.function(function)):
                    x = points.astype(dtype)
                    count = 2 if points is special else 3
                    levels = lambda n: list(range(n))
                    run = partial(compare, partial(orders, call, count=count), x, orders=levels)
                    yield f"{function.__name__} {dtype} {x.shape} {name}", run


@check
def transforms() -> Iterator[Case]:
    x = operand((7, 5), "d")
    f = total(nested)
    for name, run in {
        "jvp": lambda x: tf.jvp(nested, (x,), (x * 2.0,)),
        "vmap": tf.vmap(lambda row: tf.grad(f)(row)),
        "hessian": lambda x: tf.hessian(f)(x[0]),
        "jacobian": lambda x: tf.jacobian(lambda v: tf.nn.softmax(v))(x[0]),
        "while": lambda x: tf.grad(lambda x: tf.reduce_sum(loop(x)))(x),
    }.items():
        yield name, partial(compare, run, x, orders=lambda n: [2] * n)


@check
def user_primitives() -> Iterator[Case]:
    from tests.cuda.on_device import test_user_primitives as module

    for name, test in vars(module).items():
        if name.startswith("test_") and test.__code__.co_argcount == 0:
            yield name, test
    for name in module.SCALARS:
        yield name, partial(module.test_derivatives_from_the_source_of_a_function_of_numbers, name)


# Other libraries, threads and streams ------------------------------------------------------------


def of_torch() -> str:
    try:
        import torch  # pyright: ignore[reportMissingImports]
    except ImportError:
        return "SKIPPED: torch is not installed"
    x = there(operand((1000, 333), "f"))
    t = torch.from_dlpack(x)
    np.testing.assert_array_equal((t * 2).cpu().numpy(), x.numpy() * 2)
    for source in (t * 2, t.T, (t * 2)[::3, 5:], t.half(), (t > 1), t.long(), t[:0]):
        for taken in (tf.constant(source), tf.experimental.dlpack.from_dlpack(source)):
            np.testing.assert_array_equal(taken.numpy(), source.cpu().numpy())
            require(taken.device == device_cases.DEVICE, f"is on {taken.device}")
    np.testing.assert_allclose(
        torch.as_tensor(x, device="cuda").sum().item(), x.numpy().sum(), 1e-4
    )
    side, late = torch.cuda.Stream(), torch.zeros(10**6, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(10**8)
        late += 7
        taken = tf.constant(late) + 0.0
    require((taken.numpy() == 7).all(), "an array was read before torch's stream had written it")
    y = tf.matmul(x, x, transpose_b=True)
    product = torch.from_dlpack(y).clone()
    np.testing.assert_array_equal(product.cpu().numpy(), y.numpy())
    return f"torch {torch.__version__}"


def of_jax() -> str:
    try:
        import jax  # pyright: ignore[reportMissingImports]
    except ImportError:
        return "SKIPPED: jax is not installed"
    if all(device.platform == "cpu" for device in jax.devices()):
        return f"SKIPPED: jax {jax.__version__} has no GPU here: {jax.devices()}"
    x = there(operand((1000, 333), "f"))
    j = jax.numpy.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(j * 2), x.numpy() * 2)
    for source in (j * 2, j.T, j[:0], (j * 9).astype("int32"), j.astype("float16"), j[3]):
        for taken in (tf.constant(source), tf.experimental.dlpack.from_dlpack(source)):
            np.testing.assert_array_equal(taken.numpy(), np.asarray(source))
            require(taken.device == device_cases.DEVICE, f"is on {taken.device}")
    late = jax.jit(lambda a, k: (a @ a @ a @ a @ a)[0] * 0 + k)
    a = jax.numpy.ones((4096, 4096)) / 4096
    late(a, 1.0).block_until_ready()
    taken = tf.constant(late(a, 7.0)).numpy()
    require((taken == 7).all(), "an array was read before JAX's stream had written it")
    return f"jax {jax.__version__}"


@check
def dlpack() -> Iterator[Case]:
    yield "torch", of_torch
    yield "jax", of_jax


def in_threads(count: int, own_streams: bool) -> str:
    library, wrong = devices.library(), []
    compiled = tf.function(tf.grad(total(columns)))
    points = [operand((300, 70), "f") for _ in range(count)]
    wanted = [tf.grad(total(columns))(tf.constant(x)) for x in points]

    def run(k: int) -> None:
        try:
            stream = library.cuda.Stream(non_blocking=True) if own_streams else None
            for n in range(20):
                with stream or on_device():
                    result = (compiled if n % 2 else tf.grad(total(columns)))(there(points[k]))
                    copied = result.numpy()
                differ(result, wanted[k], 1)
                require((copied == result.numpy()).all(), "values changed after they were read")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return f"{count} threads"


@check
def threads() -> Iterator[Case]:
    yield "default stream", partial(in_threads, 2, False)
    yield "a stream of each thread", partial(in_threads, 2, True)


# Memory ------------------------------------------------------------------------------------------


def out_of_memory(create: Callable) -> str:
    x = there(operand((1000,), "f"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
        try:
            create(x)
        except ResourceExhaustedError as error:
            said = str(error)[:150]
        else:
            raise Differs("memory did not run out")
    differ(tape.gradient(y, x), tf.constant(x.numpy() * 2), 1)
    differ(tf.function(chain)(x), chain(tf.constant(x.numpy())), 1)
    return said


@check
def memory_that_does_not_suffice() -> Iterator[Case]:
    huge = 2**40

    def zeros(x):
        with on_device():
            return tf.zeros((huge,))

    yield "zeros", partial(out_of_memory, zeros)
    spread = lambda x: tf.sin(tf.broadcast_to(x, (2**31, x.shape[0])))
    yield "sin", partial(out_of_memory, spread)
    yield "function", partial(out_of_memory, lambda x: tf.function(spread)(x))


def steps(compiled: bool, graphs: str, count: int) -> str:
    os.environ[GRAPHS] = graphs
    pool = devices.memory_pool()
    try:
        with on_device():
            w = tf.Variable(operand((64, 32), "f", 1.0) - 1)
            b, x = tf.Variable(tf.zeros_like(w[0])), tf.constant(operand((32, 64), "f"))
        optimizer = tf.keras.optimizers.Adam(1e-3)

        def step(x):
            with tf.GradientTape() as tape:
                loss = cross_entropy(tf.tanh(x @ w + b))
            optimizer.apply_gradients(zip(tape.gradient(loss, [w, b]), [w, b], strict=True))
            return loss

        run, used, losses = tf.function(step) if compiled else step, [], []
        for k in range(count):
            loss = run(x)
            if k in (count // 2, count - 1):  # 256 numbers are kept, and each step has a new rate
                gc.collect()
                losses.append(float(loss))
                used.append((pool.used_bytes(), getattr(pool, "total_bytes", int)()))
    finally:
        del os.environ[GRAPHS]
    require(used[0][0] + 2**16 >= used[1][0], f"memory used grew: {used}")
    require(used[0][1] * 1.1 + 2**20 >= used[1][1], f"memory of the pool grew: {used}")
    require(losses[1] < losses[0], f"the loss did not fall: {losses}")
    return f"{used[1]} bytes used and kept, loss {losses[0]:.4f} to {losses[1]:.4f}"


@check
def flat_memory() -> Iterator[Case]:
    count = 1000 if device_cases.LARGEST > 1000 else 10
    for compiled, graphs in (True, "0"), (True, "1"), (False, "0"):
        yield f"function {compiled}, graphs {graphs}", partial(steps, compiled, graphs, count)


# Values of many elements -------------------------------------------------------------------------


def same_bits(function: Callable, *arrays: Any) -> str:
    moved = [there(array) for array in arrays]
    bits = [r.numpy().tobytes() for r in tf.nest.flatten(function(*moved))]
    repeats = 20 if device_cases.LARGEST > 1000 else 2
    for k in range(1, repeats):
        others = [r.numpy().tobytes() for r in tf.nest.flatten(function(*moved))]
        require(others == bits, f"repeat {k} has other bits")
    return f"{repeats} equal"


@check
def equal_bits() -> Iterator[Case]:
    x, y = operand((1000, 1000), "f"), operand((10**6,), "f")
    few, many = operand(((10**6,), 3), "f"), operand(((10**6,), 1000), "f")
    gathered = lambda y, i: tf.reduce_sum(tf.gather(y, i) ** 3)
    for name, function, *arrays in [
        ("sums", lambda x: [tf.reduce_sum(x, axis) for axis in (None, 0, 1)], x),
        ("moments", lambda x: [tf.reduce_mean(x), tf.math.reduce_variance(x, 0), tf.norm(x)], x),
        ("softmax", lambda x: [tf.nn.softmax(x), tf.reduce_logsumexp(x)], x),
        ("cumsum", lambda x: [tf.cumsum(x, 0), tf.cumsum(x, 1)], x),
        ("scatter to 3", lambda y, i: tf.math.unsorted_segment_sum(y, i, 3), y, few),
        ("scatter to 1000", lambda y, i: tf.math.unsorted_segment_sum(y, i, 1000), y, many),
        ("gradient of gather", tf.grad(gathered), y, many),
        ("matmul", lambda x: x @ x, x),
        ("sort", lambda x: [tf.sort(x, 0), tf.argsort(x, 1)], x),
        ("program", tf.function(tf.grad(total(columns))), x),
    ]:
        yield name, partial(same_bits, function, *arrays)


def large_sums(spread: float) -> str:
    count = 10**8 if device_cases.LARGEST > 1000 else 1000
    x = np.random.default_rng(1).random(count, np.float32) * np.float32(spread) - np.float32(0.5)
    moved, words = there(x), []
    table = tf.reshape(moved, [-1, 1000])
    for name, result, want in [
        ("sum", tf.reduce_sum(moved), x.sum(dtype="d")),
        ("mean", tf.reduce_mean(moved), x.mean(dtype="d")),
        ("columns", tf.reduce_sum(table, 0), x.reshape(-1, 1000).sum(0, dtype="d")),
        ("rows", tf.reduce_sum(table, 1), x.reshape(-1, 1000).sum(1, dtype="d")),
        ("fused", tf.function(lambda x: tf.reduce_sum(x * 2.0))(moved), 2 * x.sum(dtype="d")),
        ("max", tf.reduce_max(moved), x.max()),
        ("last cumsum", tf.cumsum(moved)[-1], x.sum(dtype="d")),
    ]:
        size = np.abs(x).sum(dtype="d") / np.size(want) / (count if name == "mean" else 1)
        error = float(np.abs(result.numpy() - want).max() / size)
        words.append(f"{name} {error:.0e}")
        limit = 1e-4 if name == "last cumsum" else 2e-6
        require(error < limit, f"{name}: error {error:.1e} of the sum of absolute values")
    return ", ".join(words)


@check
def sums_of_many() -> Iterator[Case]:
    yield "positive", partial(large_sums, 2.0)
    yield "about 0", partial(large_sums, 1.0)


def beyond_32_bits(function: Callable, want: Any) -> str:
    count = 2**31 + 9 if device_cases.LARGEST > 1000 else 1009
    with on_device():
        x = tf.ones((count,), tf.int8)
    result = function(x).numpy()
    wanted = want(count)
    require(np.array_equal(result, wanted), f"{result}, not {wanted}")
    del x
    tf.clear_cache()
    return str(result)[:40]


@check
def more_than_2_to_the_31() -> Iterator[Case]:
    last = np.full(5, 2, np.int8)
    both = lambda x: tf.concat([x[:-1] * np.int8(0), x[-1:]], 0)
    for name, function, want in [
        ("add", lambda x: (x + x)[-5:], lambda n: last),
        ("add 1", lambda x: (x + np.int8(1))[-5:], lambda n: last),
        ("function", tf.function(lambda x: (x * np.int8(3) - x)[-5:]), lambda n: last),
        ("sum", lambda x: tf.reduce_sum(x), lambda n: np.int64(n).astype(np.int8)),
        ("max", tf.reduce_max, lambda n: 1),
        ("count", lambda x: tf.math.count_nonzero(x), lambda n: n),
        ("any", lambda x: tf.reduce_any(x > np.int8(1)), lambda n: False),
        ("argmax", lambda x: tf.argmax(both(x)), lambda n: n - 1),
        ("slice", lambda x: tf.reduce_sum(x[::2][-7:]), lambda n: 7),
        ("gather", lambda x: tf.gather(both(x), [0, len(x) - 1]), lambda n: [0, 1]),
    ]:
        yield name, partial(beyond_32_bits, function, want)


# Random numbers, optimizers, pickling, errors ----------------------------------------------------


def draws_of_the_cpu() -> str:
    from tests.cuda.on_device.test_draws import DRAWS

    count = device_cases.LARGEST + 3
    many = [
        lambda: tf.random.uniform((count,)),
        lambda: tf.random.uniform((count,), -1.0, 3.0, tf.float64),
        lambda: tf.random.uniform((count,), maxval=64, dtype=tf.int32),
        lambda: tf.random.normal((1000,)),
        lambda: tf.nn.dropout(tf.ones((count,)), 0.3),
        lambda: tf.random.shuffle(tf.range(100)),
        lambda: tf.random.categorical(tf.ones((2, 5)), 50),
        lambda: tf.random.Generator.from_seed(3).uniform((1000,)),
    ]
    for k, draw in enumerate([*DRAWS, *many]):
        tf.random.set_seed(k)
        want = draw()
        tf.random.set_seed(k)
        with on_device():
            got = draw()
        try:
            differ(got, want, exact=True)
        except Differs as error:
            raise Differs(f"draw {k}: {error}") from error
    return f"{len(DRAWS) + len(many)} draws"


def dropout_gradient() -> Any:
    def run(x):
        tf.random.set_seed(5)
        return tf.grad(lambda x: tf.reduce_sum(tf.nn.dropout(x, 0.4) ** 2))(x)

    return compare(run, operand((1000, 333), "f"), exact=True)


@check
def random_numbers() -> Iterator[Case]:
    yield "draws", draws_of_the_cpu
    yield "dropout", dropout_gradient


def optimize(name: str, compiled: bool) -> float:
    start, x = operand((40, 30), "f") - 1, operand((30, 40), "f")  # `fit` cuts both
    results = []
    for move in (tf.constant, there):
        w, data = tf.Variable(move(start)), move(x)
        optimizer = getattr(tf.keras.optimizers, name)(0.01)

        def step(x, w=w, optimizer=optimizer):
            with tf.GradientTape() as tape:
                loss = cross_entropy(tf.tanh(x @ w))
            optimizer.apply_gradients([(tape.gradient(loss, w), w)])
            return loss

        run = tf.function(step) if compiled else step
        losses = [run(data) for _ in range(5)]
        results.append([*losses, w + 0.0])
    return max(differ(got, want, 2) for want, got in zip(*results, strict=True))


@check
def optimizers() -> Iterator[Case]:
    names = [name for name in dir(tf.keras.optimizers) if name[0].isupper() and name != "Optimizer"]
    for name in names:
        for compiled in (False, True):
            yield f"{name} {'function' if compiled else 'eager'}", partial(optimize, name, compiled)


def pickled() -> str:
    x = there(operand((30, 20), "f"))
    v = tf.Variable(x)
    for value in (x, v, tf.transpose(x)[::2]):
        loaded = pickle.loads(pickle.dumps(value))
        require(loaded.device == "cpu", f"loaded on {loaded.device}")
        np.testing.assert_array_equal(loaded.numpy(), value.numpy())
    copied = copy.deepcopy(v)
    copied.assign_add(np.ones(x.shape, np.float32))
    np.testing.assert_array_equal(copied.numpy(), x.numpy() + 1)
    return f"copies are on {copied.device}"


def late_errors() -> str:
    x, i = there(operand((100,), "f")), there(np.array([0, 100]))
    for function in (tf.gather, tf.function(lambda x, i: tf.gather(x, i) * 2.0)):
        y = function(x, i)
        try:
            y.numpy()
        except IndexError as error:
            said = str(error)
        else:
            raise Differs("an index out of range raised nothing")
        differ(tf.sin(x), tf.sin(tf.constant(x.numpy())))
    return said


@check
def further() -> Iterator[Case]:
    yield "pickling", pickled
    yield "indices out of range", late_errors
