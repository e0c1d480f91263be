"""Code of Numba on disk: a second process compiles nothing, and calls no program that changed."""

import math
from collections import namedtuple
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from tests.support.python import run_python
from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime import service

HEAD = """
import os, sys
import numpy as np
from numba import njit, prange
from numba.core import event
import tinygrad_cg as tf

passes = event.RecordingListener()
event.register("numba:run_pass", passes)
constant = float(sys.argv[1])
changed, late = "changed" in sys.argv, "late" in sys.argv
ONE, ROW = tf.TensorSpec((), tf.float64), tf.TensorSpec((5,), tf.float64)

@tf.custom_gradient
def log1pexp(x):
    e = tf.exp(x)
    return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
"""
TAIL = """
print(*results)
print(len(passes.buffer))
"""
CALLERS = """
@tf.function
@tf.value_and_grad
def loss(x):
    return tf.reduce_sum(log1pexp(x)) * constant + (tf.reduce_sum(x) if changed else 0.0)

LARGE = np.full(200_000, constant)
program, number = loss.numba(ROW), tf.function(tf.grad(lambda x: log1pexp(x) * constant)).numba(ONE)
array = tf.function(lambda x: tf.reduce_sum(tf.constant(LARGE) * x)).numba(ONE)
other = tf.function(tf.sin).numba(ONE)

scope = {"njit": njit, "number": number}
exec("@njit\\ndef helper(x):\\n    return number(x)", scope)
helper = scope["helper"]

@njit(cache=True)
def direct(x):
    value, gradient = program(x)
    return value + gradient[0]

@njit(cache=True)
def indirect(x):
    return direct(x) + 1.0

@njit(cache=True, parallel=True)
def parallel(x):
    out = np.empty(len(x))
    for i in prange(len(x)):
        out[i] = number(x[i])
    return out

@njit(cache=True)
def above(x):
    return parallel(x)[0] + 1.0

@njit(cache=True)
def sized(x):
    return array(x)

@njit(cache=True)
def passed(f, x):
    return f(x)

@njit(cache=True)
def last(x):
    return direct(x) + parallel(x)[0] + helper(x[0])

def closure(f):
    @njit(cache=True)
    def caller(x):
        return f(x)
    return caller

x = np.linspace(-1.0, 1.0, 5)
results = [direct(x), indirect(x), *parallel(x)[:2], above(x), sized(0.5), passed(number, 0.5)]
if late:
    results += [closure(number)(0.5), last(x)]
"""


def run(path, *arguments):
    """Return what a file prints in a process of its own: the results, and how much was compiled."""
    *results, passes = run_python(str(path), *arguments).stdout.split()
    return [float(x) for x in results], int(passes)


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path / "cache"))

    def write(text):
        path = tmp_path / "program.py"
        path.write_text(f"{HEAD}{text}{TAIL}")
        return path

    return write


def expected(constant, *others):
    x, e = np.linspace(-1.0, 1.0, 5), np.exp(np.linspace(-1.0, 1.0, 5))
    changed = "changed" in others
    loss = constant * np.sum(np.log1p(e)) + changed * np.sum(x) + constant * e[0] / (1 + e[0])
    slopes = constant * e / (1 + e)
    half = constant * np.exp(0.5) / (1 + np.exp(0.5))
    results = [loss + changed, loss + changed + 1, *slopes[:2], slopes[0] + 1, 1e5 * constant, half]
    return results + [half, loss + changed + 2 * slopes[0]] * ("late" in others)


def test_callers_with_cache(file):
    """The second process compiles nothing; another constant, or another function, is compiled."""
    path = file(CALLERS)
    for arguments, compiles in [
        (("2",), True),
        (("2",), False),
        (("2", "late"), True),  # a caller of callers that were not compiled here
        (("3", "late"), True),
        (("3", "changed", "late"), True),
    ]:
        results, passes = run(path, *arguments)
        np.testing.assert_allclose(results, expected(float(arguments[0]), *arguments[1:]))
        assert bool(passes) == compiles


C_FUNCTIONS = """
slope = tf.function(tf.grad(lambda x: log1pexp(x) * constant)).cfunc(ONE)
results = [slope.ctypes(0.0), tf.function(tf.sin).numba(ONE)(0.5)]
"""


def test_c_functions_and_calls_from_python(file):
    path = file(C_FUNCTIONS)
    for constant, compiles in (("2", True), ("2", False), ("3", True)):
        results, passes = run(path, constant)
        np.testing.assert_allclose(results, [float(constant) / 2, np.sin(0.5)])
        assert bool(passes) == compiles


LOOPS = """
MATRIX = tf.constant(constant * np.eye(3))

@tf.function
@tf.value_and_grad
def looped(x):
    def body(i, y):
        return i + 1, tf.matmul(MATRIX, y)
    _, y = tf.while_loop(lambda i, y: i < 2, body, (tf.constant(0), x[:, None]))
    z = tf.linalg.solve(MATRIX, y) + tf.matmul(MATRIX, y)
    return tf.reduce_sum(tf.cond(x[0] > 0, lambda: z, lambda: 2 * z))

program = looped.numba(tf.TensorSpec((3,), tf.float64))

@njit(cache=True)
def caller(x):
    value, gradient = program(x)
    return value + gradient[0]

results = [caller(np.array([1.0, 2.0, 3.0]))]
"""


def test_loops_and_matrices(file):
    """Addresses of NumPy's loops are those of the process that runs."""
    path = file(LOOPS)
    for constant, compiles in (("2", True), ("2", False), ("3", True)):
        results, passes = run(path, constant)
        c = float(constant)
        np.testing.assert_allclose(results, [(6 + 1) * c**2 * (c + 1 / c)])
        assert bool(passes) == compiles


DERIVATIVES = """
import math
from tinygrad_cg_kernels.runtime import compile as build

FACTOR = constant

@tf.differentiable
@njit
def heat(u):
    v = u.copy()
    for _ in range(3):
        for i in range(1, len(v) - 1):
            v[i] += 0.25 * (v[i - 1] - 2 * v[i] + v[i + 1])
    return constant * np.sum(v * v)

@njit
def scaled(x):
    return FACTOR * x

@tf.primitive("Damped", elementwise=True)
def damped(x):
    total = 0.0
    for k in range(5):
        total += math.sin(x) * scaled(x)
    return total

@tf.primitive("Pair", elementwise=True)
def pair(x):
    return (scaled(x) + 1, x * x) if changed else (scaled(x), x * x)

u = np.array([0.0, 1.0, 0.0, 2.0, 0.0])
first = tf.elementwise_grad(damped)
results = [heat(u), tf.grad(heat)(u)[1], tf.hessian(heat)(u)[1, 1], damped(0.5), first(0.5)]
results += [tf.elementwise_grad(first)(0.5), pair(2.0)[0], tf.function(damped)(tf.constant(0.5))]
results = [float(x) for x in results]
passes.buffer += build.compiled
"""


def test_derivatives_of_loops(file):
    path = file(DERIVATIVES)
    first, passes = run(path, "2")
    assert passes
    assert run(path, "2") == (first, 0)
    third, passes = run(path, "3", "changed")
    assert passes
    np.testing.assert_allclose(third[:6], np.array(first[:6]) * 1.5, rtol=1e-6)
    assert (first[6], third[6]) == (4.0, 7.0)


def test_what_code_depends_on_is_in_its_identity():
    """Of two functions whose code differs, or what it refers to, the identities differ."""
    identity = service.numba_backend().identity_of_operand
    texts = [
        "def f(x): return x + 1",
        "def f(x): return x + 1.0",
        "def f(x): return -x",
        "def f(x, y=1): return x + y",
        "def f(x, y=2): return x + y",
        "a = 1\ndef f(x): return x + a",
        "a = 2\ndef f(x): return x + a",
        "a = np.arange(3)\ndef f(x): return x + a[1]",
        "a = np.arange(4)\ndef f(x): return x + a[1]",
        "a = np.arange(4.0)\ndef f(x): return x + a[1]",
        "a = np.arange(8.0)[::2]\ndef f(x): return x + a[1]",
        "def f(x): return (lambda y: y + 1)(x)",
        "def f(x): return (lambda y: y + 2)(x)",
        "a = 1\n@njit\ndef g(x): return x + a\ndef f(x): return g(x)",
        "a = 2\n@njit\ndef g(x): return x + a\ndef f(x): return g(x)",
        "@njit(fastmath=True)\ndef g(x): return x + 2\ndef f(x): return g(x)",
        "@njit\ndef f(x): return x + 1",
        "def make(c):\n  def f(x): return x + c\n  return f\nf = make(1)",
        "def make(c):\n  def f(x): return x + c\n  return f\nf = make(2)",
        "def f(x): return math.sin(x)",
        "def f(x): return np.sin(x)",
        "P = namedtuple('P', 'a b')\np = P(1, 2)\ndef f(x): return x + p.a",
        "P = namedtuple('P', 'b a')\np = P(1, 2)\ndef f(x): return x + p.a",
    ]
    functions = []
    for text in [*texts, *texts]:
        scope = {"np": np, "math": math, "njit": numba.njit, "namedtuple": namedtuple}
        exec(text, scope)
        functions.append(scope["f"])
    identities = [*map(identity, functions)]
    assert len({*identities}) == len(texts)
    assert identities[: len(texts)] == identities[len(texts) :]


def plain(x):
    return x


@pytest.mark.parametrize("thing", [[1.0], plain, SimpleNamespace(a=1), run_python])
def test_what_has_no_identity_is_not_kept(thing):
    scope = {"thing": thing}
    exec("def f(x): return thing", scope)
    with pytest.raises(Untranslatable):
        service.numba_backend().identity_of_operand(scope["f"])
