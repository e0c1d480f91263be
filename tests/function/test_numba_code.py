"""Programs that Numba code calls, and C functions: `function(f).numba` and `.cfunc`."""

import ctypes
import inspect
import re

import numba
import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import run_in_threads

ONE = tf.TensorSpec((), tf.float64)
X = np.linspace(-1.0, 1.0, 5)


@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))


def network(w, x):
    return tf.reduce_sum(tf.tanh(tf.matmul(w, x)) ** 2)


def root(a):
    """Return a square root, by Newton's method until it stands still."""

    def improve(x, i):
        return 0.5 * (x + a / x), i + 1

    return tf.while_loop(lambda x, i: (abs(x * x - a) > 1e-12) & (i < 50), improve, (a, 0))[0]


def folded(x):
    """Return a loop over elements whose rounds choose, with a custom gradient inside."""
    total = tf.zeros((), tf.float64)
    for k in tf.range(5):
        if total > 0.5:
            total = total * tf.cos(log1pexp(x[k]))
        else:
            total = total + log1pexp(total * x[k])
            total = total + 0.1
    return total


def powers(x):
    """Return a loop on matrices, with a loop in each round."""
    y = x
    for _ in tf.range(3):
        y = tf.tanh(tf.matmul(y, x)) + tf.linalg.inv(x)
        for k in tf.range(2):
            y = y + tf.cast(k, tf.float64) * tf.transpose(y)
    return tf.reduce_sum(y)


@tf.custom_gradient
def rooted(x):
    """Return a root by a loop; its gradient is a loop as well, which differentiates itself."""
    y = root(x)
    return y, lambda dy: dy * root(x / 4) / x


def chosen(x):
    return tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_sum(x**3), lambda: tf.reduce_prod(x))


def chosen_number(x):
    return tf.cond(x > 0.1, lambda: tf.sin(x), lambda: x * x)


def nested(a):
    def one_round(x, i):
        (y,) = tf.while_loop(lambda y: y > 1, lambda y: (y / 2,), (x * 3,))
        return x + y, i + 1

    return tf.while_loop(lambda x, i: x < 10, one_round, (a, 0))[0]


def stepped(x):
    return tf.reduce_sum(tf.scan(lambda c, e: tf.sin(c) * e, x, initializer=tf.ones((), x.dtype)))


SQUARE = np.cos(np.arange(9.0)).reshape(3, 3) + 3 * np.eye(3)
W = np.cos(np.arange(6.0)).reshape(2, 3)
MATRIX = np.sin(np.arange(12.0)).reshape(3, 4)
CASES = {
    "value and gradient": (tf.value_and_grad(lambda x: tf.reduce_sum(x**3)), (X,)),
    "custom gradient": (tf.value_and_grad(log1pexp), (0.3,)),
    "second order": (tf.grad(tf.grad(log1pexp)), (0.3,)),
    "hessian": (tf.hessian(lambda x: tf.reduce_sum(tf.sin(x)) ** 2), (X,)),
    "hvp": (tf.hvp(lambda x: tf.reduce_sum(tf.exp(x)) ** 2), (X, X[::-1].copy())),
    "network": (tf.value_and_grad(network, (0, 1)), (W, MATRIX)),
    "softmax": (lambda x: tf.nn.softmax(x), (MATRIX,)),
    "while_loop": (tf.value_and_grad(root), (2.0,)),
    "while_loop, second order": (tf.grad(tf.grad(root)), (2.0,)),
    "custom gradients with loops": (tf.grad(tf.grad(rooted)), (2.0,)),
    "loop with a choice": (tf.value_and_grad(folded), (X,)),
    "loops on matrices": (tf.value_and_grad(powers), (SQUARE,)),
    "cond": (tf.hessian(chosen), (X + 1,)),
    "batch of choices": (tf.vmap(tf.grad(chosen_number)), (X,)),
    "loop in a loop": (nested, (2.0,)),
    "scan": (tf.hvp(stepped), (X, X[::-1].copy())),
    "scan, jacobian": (tf.jacobian(tf.grad(stepped)), (X,)),
    "float32": (lambda x: tf.sin(x) * 2, (X.astype(np.float32),)),
    "input and constant": (lambda x: (x, tf.constant(2.0), (x, tf.zeros(2))), (X,)),
}


@pytest.mark.parametrize("case", CASES)
def test_gives_what_the_program_gives(case, monkeypatch):
    f, args = CASES[case]
    if case != "while_loop":  # which has all programs of a loop's gradient
        monkeypatch.setattr("tinygrad_cg._function.codegen.numba_program.ROUNDS", [2**6])
    program = tf.function(f)
    args = [np.float64(x) if isinstance(x, float) else x for x in args]
    compiled = program.numba(*args)
    names = ", ".join(f"x{k}" for k in range(len(args)))
    scope = {"compiled": compiled}
    exec(f"def outer({names}):\n    return compiled({names})", scope)
    results = numba.njit(scope["outer"])(*args)
    expected = program(*map(tf.constant, args))
    for ours, theirs in zip(tf.nest.flatten(results), tf.nest.flatten(expected), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6 if theirs.dtype == tf.float32 else 1e-13)


def test_variables_have_the_values_of_that_moment():
    scale = tf.Variable(2.0, dtype=tf.float64)
    compiled = tf.function(lambda x: x * scale).numba(ONE)
    scale.assign(3.0)
    assert compiled(1.5) == 3.0
    assigns = tf.function(lambda x: scale.assign(x))
    with pytest.raises(tf.errors.UnsupportedCodeError, match="assigns Variables"):
        assigns.numba(ONE)


def test_runs_without_the_interpreter():
    """In several threads at once, none of which has its lock; no object of Python's inside."""
    compiled = tf.function(tf.value_and_grad(log1pexp)).numba(ONE)

    @numba.njit(nogil=True)
    def total(count):
        result = 0.0
        for k in range(count):
            value, slope = compiled(k * 1e-3)
            result += value + slope
        return result

    expected = total(1000)
    assert run_in_threads(*[lambda: total(1000)] * 4) == [expected] * 4
    (text,) = total.inspect_llvm().values()
    body = text.split("define ")[1]
    assert "PyObject" not in body
    assert "PyEval" not in body


def test_small_arrays_inside_a_program_are_on_the_stack():
    """A large block of them is allocated. A cumulative sum allocates a row for itself."""

    def loss(x, size):
        y = x * tf.range(1.0, size + 1.0, dtype=tf.float64)
        for _ in range(3):
            y = tf.reverse(tf.cumsum(tf.sin(y)), [0])
        return tf.reduce_sum(y)

    def allocations(f):
        program = tf.function(f)
        compiled = program.numba(ONE)
        expected = tf.nest.flatten(program(tf.constant(0.3, tf.float64)))
        outer = numba.njit(lambda x: compiled(x))
        np.testing.assert_allclose(tf.nest.flatten(outer(0.3)), expected, rtol=1e-13)
        (text,) = outer.inspect_llvm().values()
        return len(re.findall("call .*@NRT_MemInfo_alloc", text))

    assert allocations(tf.value_and_grad(log1pexp)) == 0
    assert allocations(lambda x: loss(x, 256)) == allocations(lambda x: loss(x, 8)) + 1


def test_data_that_a_program_reads_twice_is_stored_once():
    """Numba copies an array of the program's data for each place in the code that reads it."""
    data = np.random.default_rng(0).standard_normal((2000, 10))

    def size(program):
        @numba.njit
        def outer(w):
            return program(w)

        outer(np.ones(10))
        (text,) = outer.inspect_asm().values()
        return len(text)

    def loss(w):
        return tf.reduce_sum(tf.linalg.matvec(tf.constant(data), w) ** 2)

    once = tf.function(loss).numba(np.ones(10))
    twice = tf.function(tf.value_and_grad(loss)).numba(np.ones(10))
    assert size(twice) < 1.5 * size(once)


def test_loops_in_threads():
    compiled = tf.function(tf.value_and_grad(root)).numba(ONE)

    @numba.njit(nogil=True)
    def total(count):
        result = 0.0
        for k in range(count):
            value, slope = compiled(2.0 + k * 1e-2)
            result += value + slope
        return result

    expected = sum(np.sqrt(2 + k * 1e-2) + 0.5 / np.sqrt(2 + k * 1e-2) for k in range(300))
    results = run_in_threads(*[lambda: total(300)] * 4)
    np.testing.assert_allclose(results, [expected] * 4, rtol=1e-12)


def test_a_round_that_fails_raises():
    def last(x, n):
        for k in tf.range(3):
            x = tf.linalg.inv(x - tf.cast(k, tf.float64) * n)
        return x

    compiled = tf.function(last).numba(SQUARE, SQUARE)
    with pytest.raises(ValueError, match="singular"):
        compiled(np.zeros((3, 3)), SQUARE)


def test_parallel_callers():
    compiled = tf.function(tf.grad(log1pexp)).numba(ONE)

    @numba.njit(parallel=True)
    def slopes(x):
        out = np.empty_like(x)
        for i in numba.prange(len(x)):
            out[i] = compiled(x[i])
        return out

    np.testing.assert_allclose(slopes(X), tf.elementwise_grad(log1pexp)(X), rtol=1e-14)


def test_other_arguments_are_refused():
    compiled = tf.function(lambda x: tf.reduce_sum(x)).numba(X)
    wrong = r"argument 0 is .*expected an array of float64 with 1"
    with pytest.raises(numba.TypingError, match=wrong):
        compiled(X.astype(np.float32))
    with pytest.raises(ValueError, match="must have the shape"):
        compiled(X[:2])
    with pytest.raises(tf.errors.UnsupportedCodeError, match=r"`expm` is not supported"):
        tf.function(tf.linalg.expm).numba(SQUARE)


def test_c_functions():
    slope = tf.function(tf.grad(lambda x: tf.sin(x) * x)).cfunc(ONE)
    assert slope.ctypes(1.0) == pytest.approx(np.sin(1.0) + np.cos(1.0), rel=1e-14)
    assert isinstance(slope.address, int)
    density = tf.function(tf.value_and_grad(lambda x: -tf.reduce_sum(x**4))).cfunc(X)
    pointer = ctypes.POINTER(ctypes.c_double)
    value, gradient = np.empty(1), np.empty(5)
    density.ctypes(*(array.ctypes.data_as(pointer) for array in (X, value, gradient)))
    np.testing.assert_allclose(value[0], -np.sum(X**4), rtol=1e-14)
    np.testing.assert_allclose(gradient, -4 * X**3, rtol=1e-14)


@pytest.mark.quick  # also with Python 3.13, which prints errors that C code hides
@pytest.mark.parametrize("call", [lambda f, x: f(x), tf.check_gradients, tf.vjp])
@pytest.mark.parametrize("transform", [lambda f: f, tf.function, tf.grad])
def test_a_tensor_passed_to_a_function_of_numba_has_a_clear_error(call, transform):
    twice = numba.njit(lambda x: 2.0 * x)
    with pytest.raises(TypeError, match="compiled by Numba do not take tensors: decorate"):
        call(transform(twice), tf.constant(2.0))
    assert inspect.getmembers(tf.ones((2, 2)))  # which reads all attributes
