"""Loops with products of matrices: in machine code, with the bits of NumPy's own products."""

import sys
from functools import partial

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import orders, same
from tests.support.orders import run_in_threads
from tests.support.python import run_python
from tests.support.recurrences import lstm
from tinygrad_cg._function.codegen import rounds
from tinygrad_cg._function.tracing import loops
from tinygrad_cg.keras import ops
from tinygrad_cg_kernels.runtime import service
from tinygrad_cg_kernels.runtime.objects import ufuncs

RNG = np.random.default_rng(3)


def normal(*shape, dtype="float64"):
    return tf.constant((RNG.normal(size=shape) / shape[-1] ** 0.5).astype(dtype))


@pytest.fixture(autouse=True)
def no_scalars(monkeypatch):
    """Small arrays would be numbers otherwise."""
    monkeypatch.setattr(rounds, "scalarize", lambda *_: None)


def texts(compiled, *arguments):
    """Return how many loops of a function are machine code, and how many programs Python calls."""
    texts = compiled.kernels(*arguments)
    return tuple(sum(f"def {name}(" in text for text in texts) for name in ("rounds", "call"))


def driven_by_python(function, *arguments):
    """Return what a function computes where each round of a loop is a call of a program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "compile_rounds", lambda *_: None)
        compiled = tf.function(function)
        assert texts(compiled, *arguments)[0] == 0
        return compiled(*arguments)


def bits(values):
    return [np.asarray(leaf).tobytes() for leaf in tf.nest.flatten(values)]


def near(results, expected):
    """Check that two structures of tensors are the same but for rounding."""
    tf.nest.assert_same_structure(results, expected)
    for result, other in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        assert result.dtype == other.dtype
        tolerance = 1e-11 if result.dtype == "float64" else 1e-4
        scale = max(np.abs(other).max(initial=0.0), 1e-3)
        np.testing.assert_allclose(result, other, rtol=0, atol=tolerance * scale)


def recurrence(w, u, xs):
    def step(h, x):
        h = tf.tanh(h @ w + x @ u)
        return h, h

    h, hs = ops.scan(step, tf.zeros((xs.shape[1], w.shape[0]), w.dtype), xs)
    return tf.reduce_sum(h * h) + tf.reduce_mean(hs)


def markov(moves, shows):
    """Return the log likelihood of a hidden Markov model, by the forward algorithm."""
    moves = tf.nn.softmax(moves)

    def step(carry, seen):
        state, total = carry
        state = tf.squeeze(state[None] @ moves, 0) * seen
        size = tf.reduce_sum(state)
        return (state / size, total + tf.math.log(size)), None

    start = tf.ones(moves.shape[:1], moves.dtype), tf.zeros((), moves.dtype)
    return ops.scan(step, start, tf.nn.softmax(shows))[0][1]


def kalman(noise, move, look, ys):
    """Return the log likelihood of a Kalman filter, by the logarithms of two variances."""
    count, size = look.shape
    variances = tf.exp(noise)
    unit, wide = tf.eye(count, dtype=ys.dtype), tf.eye(size, dtype=ys.dtype)

    def step(carry, y):
        mean, cov, total = carry
        mean = tf.linalg.matvec(move, mean)
        cov = move @ cov @ tf.transpose(move) + variances[0] * wide
        residual = y - tf.linalg.matvec(look, mean)
        spread = look @ cov @ tf.transpose(look) + variances[1] * unit
        gain = tf.transpose(tf.linalg.solve(spread, look @ cov))
        way = tf.linalg.matvec(tf.linalg.inv(spread), residual)
        total -= 0.5 * (tf.linalg.logdet(spread) + tf.reduce_sum(residual * way))
        return (mean + tf.linalg.matvec(gain, residual), cov - gain @ look @ cov, total), None

    start = tf.zeros((size,), ys.dtype), wide, tf.zeros((), ys.dtype)
    return ops.scan(step, start, ys)[0][2]


def newton(matrix, x):
    """Return the sum of a solution of A y + y**3 / 9 = x, by steps until they are small."""
    matrix = matrix + 2.0 * tf.eye(x.shape[0], dtype=x.dtype)

    def step(y, change):
        slope = matrix + tf.linalg.diag(y * y / 3.0)
        residual = tf.linalg.matvec(matrix, y) + y**3 / 9.0 - x
        change = tf.linalg.solve(slope, residual[:, None])[:, 0]
        return y - change, tf.reduce_max(tf.abs(change))

    start = 0.1 * x, tf.ones((), x.dtype)
    return tf.reduce_sum(tf.while_loop(lambda y, change: change > 1e-9, step, start)[0])


def decomposing(x):
    """Determinants, inverses and solutions of a stack of matrices."""

    def change(x):
        y = x + 3.0 * tf.eye(x.shape[-1], dtype=x.dtype)
        sizes = tf.linalg.det(y) + tf.linalg.logdet(y)
        return tf.sin(tf.linalg.solve(y, x) + tf.linalg.inv(y)) + 0.01 * sizes[..., None, None]

    return tf.reduce_sum(ops.fori_loop(0, 4, lambda i, x: change(x), x))


def in_reverse(w, xs):
    def step(h, x):
        return tf.tanh(h @ tf.transpose(w) + x @ w), h @ w

    h, hs = ops.scan(step, tf.zeros(xs.shape[1:], w.dtype), xs, reverse=True)
    return tf.reduce_sum(h) + tf.reduce_mean(hs * hs)


def again(change):
    """Return a function of a loop variable and more, of five rounds."""
    return lambda x, *more: tf.reduce_sum(ops.fori_loop(0, 5, lambda i, x: change(x, *more), x))


def swapping(x, y):
    pair = ops.fori_loop(0, 5, lambda i, c: (tf.tanh(c[1] @ c[0]), c[0]), (x, y))
    return tf.reduce_sum(pair[0]) + tf.reduce_sum(pair[1])


def mixing(x, w):
    """Operations that move elements: of what products make, and of what they read."""

    def change(x):
        y = tf.concat([x[:, 3:] @ w[3:], tf.reverse(x, [1]) @ w], 0)
        y = tf.roll(tf.transpose(y), 1, 0)[:, ::2] @ y[1::2]
        y = tf.pad(y, [[1, 1], [2, 0]], constant_values=2.0)[1:-1, :-2]
        return tf.sin(y + tf.reverse(tf.tile(x[:1] @ w[:, :2], (6, 3)), [0, 1]))

    return tf.reduce_sum(ops.fori_loop(0, 4, lambda i, x: change(x), x))


def until(x, w):
    def step(x, n):
        return tf.sin(x @ w + 1.0), n + 1

    return tf.reduce_sum(tf.while_loop(lambda x, n: n < 9, step, (x, tf.constant(0)))[0])


def mapped(w, xs):
    return tf.reduce_sum(tf.vmap(in_reverse)(w, xs))


def of_a_transpose(x, w):
    turned = tf.transpose(w)  # outside of the loop
    return tf.reduce_sum(ops.fori_loop(0, 5, lambda i, x: tf.tanh(x @ turned), x))


PROGRAMS = {
    "recurrence": (recurrence, (9, 9), (5, 9), (6, 8, 5)),
    "one row": (recurrence, (33, 33), (33, 33), (6, 1, 33)),
    "lstm": (lstm, (5, 24), (6, 24), (24,), (7, 9, 5)),
    "markov": (markov, (12, 12), (7, 12)),
    "in reverse": (in_reverse, (9, 9), (6, 8, 9)),
    "vmap": (mapped, (3, 9, 9), (3, 5, 8, 9)),
    "while": (until, (7, 9), (9, 9)),
    "a transpose of before": (of_a_transpose, (7, 9), (9, 9)),
    "two that are exchanged": (swapping, (9, 9), (9, 9)),
    "by its transpose": (again(lambda x: tf.sin(x @ tf.transpose(x))), (9, 9)),
    "by itself": (again(lambda x: x @ x), (9, 9)),
    "matrix and vector": (again(lambda x, w: tf.sin(tf.linalg.matvec(w, x))), (12,), (12, 12)),
    "matrix and vectors": (again(lambda x, w: tf.sin(tf.linalg.matvec(w, x))), (5, 12), (12, 12)),
    "stack of both": (again(lambda x, w: tf.sin(tf.linalg.matvec(w, x))), (5, 12), (5, 12, 12)),
    "stack and matrix": (again(lambda x, w: tf.sin(x @ w)), (2, 3, 4, 9), (9, 9)),
    "stacks": (again(lambda x, w: tf.sin(x @ w)), (2, 3, 4, 9), (2, 3, 9, 9)),
    "column and row": (again(lambda x, w: tf.sin(x @ w)), (9, 1), (1, 1)),
    "row and column": (again(lambda x, w: x * tf.sin(x @ w)), (1, 9), (9, 1)),
    "a filter": (kalman, (2,), (5, 5), (3, 5), (6, 3)),
    "equations": (newton, (9, 9), (9,)),
    "decompositions": (decomposing, (4, 3, 3)),
    "moves": (mixing, (6, 6), (6, 6)),
}


BY_LAPACK = {"a filter", "equations", "decompositions"}
CASES = [(name, "float64") for name in PROGRAMS]
CASES += [(name, "float32") for name in PROGRAMS if name not in BY_LAPACK]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_products_in_loops_are_what_they_are_eagerly(name, dtype):
    function, *shapes = PROGRAMS[name]
    operands = [normal(*shape, dtype=dtype) for shape in shapes]
    wanted = tuple(range(len(operands)))
    gradient = tf.value_and_grad(function, wanted)

    def second(*operands):
        gradients = gradient(*operands)[1]
        return sum(tf.reduce_sum(gradient * tf.cos(gradient)) for gradient in gradients)

    refused = len(service.fallbacks)
    for program in (function, gradient, tf.grad(second, wanted)):
        compiled = tf.function(program)
        count, calls = texts(compiled, *operands)
        assert count >= 1
        assert calls == 1 or program is not function
        results = compiled(*operands)
        near(results, program(*operands))
        near(results, driven_by_python(program, *operands))
    assert len(service.fallbacks) == refused  # none is left to Numba


FORMS = {
    "matrices": lambda x, w: (x @ w, w @ w),
    "transposes": lambda x, w: (x @ tf.transpose(w), tf.transpose(x) @ x, tf.transpose(w) @ w),
    "with its transpose": lambda x, w: (x @ tf.transpose(x), w @ tf.transpose(w)),
    "parts": lambda x, w: (x[1:, :5] @ w[2:7], x[::2] @ w, x[:, ::2] @ w[::2, 1:]),
    "a row, a column": lambda x, w: (x[:1] @ w, x @ w[:, :1], x[:1] @ w[:, :1], w[:, :1] @ x[:1]),
    "vectors": lambda x, w: (tf.linalg.matvec(w, x[0]), tf.linalg.matvec(x, w[:, 1])),
    "vectors and a matrix": lambda x, w: (tf.linalg.matvec(w, x),),
}


@pytest.mark.parametrize("size", [3, 9, 40, 130])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_have_the_bits_of_those_between_kernels(form, size, dtype):
    size = max(size, 7) if form == "parts" else size

    def loop(w, h, xs):
        def step(h, x):
            return h - x, (*FORMS[form](x, w), *FORMS[form](h, w))

        return ops.scan(step, h, xs)

    operands = (
        normal(size, size, dtype=dtype),
        *(normal(*s, size, dtype=dtype) for s in ((6,), (3, 6))),
    )
    compiled = tf.function(loop)
    assert texts(compiled, *operands) == (1, 1)
    result = compiled(*operands)
    assert bits(result) == bits(driven_by_python(loop, *operands))
    near(result, loop(*operands))


def test_integers_are_multiplied_as_they_are_eagerly():
    x = tf.constant(RNG.integers(-5, 5, (6, 6)))
    loop = again(lambda x: x @ x)
    compiled = tf.function(loop)
    assert texts(compiled, x) == (1, 1)
    assert int(compiled(x)) == int(loop(x))


def test_no_python_runs_between_rounds():
    counts = []
    for length in (10, 1000):
        xs = normal(length, 4, 9)
        for function in (recurrence, tf.value_and_grad(recurrence, (0, 1))):
            compiled = tf.function(function)
            seen: list = []
            operands = normal(9, 9), normal(9, 9), xs
            compiled(*operands)
            compiled(*operands)
            sys.setprofile(lambda frame, event, _, seen=seen: seen.append((event, frame.f_code)))
            compiled(*operands)
            sys.setprofile(None)
            counts.append(len(seen))
    for few, many in zip(counts[:2], counts[2:], strict=True):
        assert abs(many - few) < 500  # where memory is from, who multiplies, whether threads help


def test_products_of_many_rounds_can_be_interrupted(monkeypatch):
    operands = normal(9, 9), normal(5, 9), normal(7, 8, 5)
    expected = bits(tf.function(recurrence)(*operands))
    monkeypatch.setattr(rounds, "MAX_MULTIPLICATIONS", 1000)  # a round or two at a time
    assert bits(tf.function(recurrence)(*operands)) == expected


def test_loops_without_rounds_or_elements():
    w = normal(5, 5)
    for length in (0, 1):
        h = normal(3, 5)
        loop = lambda h: ops.scan(lambda h, x: (tf.tanh(h @ w), h), h, None, length)  # noqa: B023
        same(tf.function(loop)(h), loop(h))
    for shape in ((0, 5), (3, 5)):
        loop = again(
            lambda h: tf.tanh(h @ tf.zeros((5, 0), "float64") @ tf.zeros((0, 5), "float64"))
        )
        same(tf.function(loop)(normal(*shape)), loop(normal(*shape)))


@pytest.fixture
def compiled(monkeypatch):
    """The functions of the loops that are compiled."""
    compiled = []

    def compile_rounds(*args):
        compiled.append(rounds.compile_rounds(*args))
        return compiled[-1]

    monkeypatch.setattr(loops, "compile_rounds", compile_rounds)
    return compiled


def test_matrices_are_taken_as_they_lie(compiled):
    def loop(w, h):
        return ops.fori_loop(0, 4, lambda i, h: tf.tanh(h @ w), h)

    w, h = RNG.normal(size=(70, 70)) / 8, RNG.normal(size=(9, 70))
    tf.function(loop)(tf.constant(w), tf.constant(h))
    (run,) = compiled
    for matrix in (w, np.asfortranarray(w), w.T, w, np.repeat(w, 2, 1)[:, ::2]):
        expected = h
        for _ in range(4):
            expected = np.tanh(expected @ matrix)
        np.testing.assert_allclose(run([matrix, h])[0], expected, rtol=1e-9)
    assert not np.shares_memory(run([w.T, h])[0], w)


def test_a_matrix_that_is_also_a_result_is_not_taken_transposed(compiled):
    def loop(w, h):
        return ops.scan(lambda h, _: (tf.tanh(h @ w), w), h, None, 3)

    w, h = RNG.normal(size=(8, 8)), RNG.normal(size=(9, 8))
    tf.function(loop)(tf.constant(w), tf.constant(h))
    _, rows = compiled[0]([w.T, h])
    np.testing.assert_array_equal(rows, [w.T] * 3)


def test_without_numpys_loop_python_drives_the_rounds(monkeypatch):
    operands = normal(9, 9), normal(5, 9), normal(7, 8, 5)
    expected = tf.function(recurrence)(*operands)
    monkeypatch.setattr(ufuncs, "inner_loop", lambda *_: None)
    compiled = tf.function(recurrence)
    assert texts(compiled, *operands) == (0, 2)
    assert bits(compiled(*operands)) == bits(expected)


def test_a_singular_matrix_is_the_error_that_it_is_eagerly():
    def counted(x):
        return ops.fori_loop(0, 9, lambda i, x: tf.linalg.inv(x) - 1.0, x)

    def until(x):
        return tf.while_loop(lambda x: x[0, 0] < 1e9, lambda x: (tf.linalg.inv(x) - 1.0,), (x,))

    start = tf.constant([[2.0, 0.0], [0.0, -0.5]], tf.float64) / 3.0
    for loop in (counted, until):
        compiled = tf.function(loop)
        assert texts(compiled, start) == (1, 1)
        singular = tf.constant([[1.0, 2.0], [2.0, 4.0]], tf.float64)
        for run in (loop, compiled):
            with pytest.raises(
                tf.errors.InvalidArgumentError, match=r"inv(erse)?: Singular matrix"
            ):
                run(singular)
    same(tf.function(counted)(start), counted(start))
    nothing = np.full((2, 2), np.nan)
    np.testing.assert_array_equal(tf.function(counted)(tf.constant(nothing)), nothing)


def test_rows_that_are_added_up_are_no_moves():
    def loop(x):
        def change(x):
            return tf.sin(x @ x) + tf.transpose(
                tf.tile(x[:, :1], (1, 9)) @ tf.ones((9, 9), x.dtype)
            )

        return tf.reduce_sum(ops.fori_loop(0, 3, lambda i, x: change(tf.gather(x, ROWS)), x))

    x, w = normal(9, 9), normal(9, 9)
    columns = again(lambda x: tf.tanh(tf.gather(x, ROWS, axis=1) @ w))  # two are read twice
    for program in (loop, tf.grad(loop), columns, tf.grad(columns)):
        near(tf.function(program)(x), program(x))


def test_operations_that_no_loop_can_run_are_called_by_python():
    def loop(x):
        return ops.fori_loop(0, 3, lambda i, x: tf.cumsum(tf.tanh(x @ x)), x)

    x = normal(9, 9)
    compiled = tf.function(loop)
    assert texts(compiled, x) == (0, 2)
    same(compiled(x), loop(x))


def test_threads_run_one_loop_at_the_same_time():
    function = tf.function(recurrence)
    operands = [(normal(9, 9), normal(5, 9), normal(200, 8, 5)) for _ in range(4)]
    expected = [bits(function(*args)) for args in operands]

    def work(args):
        return [bits(function(*args)) for _ in range(20)]

    results = run_in_threads(*[partial(work, args) for args in operands])
    assert results == [[pattern] * 20 for pattern in expected]


_ANOTHER = """
import numpy as np
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import compile as build
from tests.function.test_loop_products import recurrence
a, b, c = (tf.constant(np.sin(np.arange(n) + 1.0).reshape(s)) for n, s in
    ((1600, (40, 40)), (1600, (40, 40)), (3200, (8, 10, 40))))
value = float(tf.function(recurrence)(a, b, c))
print(value, "rounds" in build.compiled, "rounds" in build.loaded)
"""


def test_machine_code_of_another_process_calls_the_loop_of_this_one(tmp_path):
    outputs = [
        run_python(_ANOTHER, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).stdout.split() for _ in range(2)
    ]
    assert outputs[0][0] == outputs[1][0]
    assert [output[1:] for output in outputs] == [["True", "False"], ["False", "True"]]


def test_third_derivatives():
    def function(w):
        return again(lambda x, w: tf.tanh(x @ w))(X, w)

    w = normal(9, 9)
    same(tf.function(lambda w: orders(function, w))(w), orders(function, w), 1e-8)


X = normal(4, 9)
ROWS = np.array([0, 3, 3, 1, 8, 0, 5, 6, 2])
