"""Derivatives of array functions in the style of code for Numba, and of random ones."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._array_code import splitting

from ..support.array_programs import HEAD, check, disagreement, interpreted
from .functions import CASES, heat, reloaded


def is_float(x):
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def replaced(value, floats):
    """A value with other floats in it."""
    if isinstance(value, tuple):
        return tuple(replaced(item, floats) for item in value)
    return next(floats) if is_float(value) else value


def floats_of(value):
    if isinstance(value, tuple):
        return [x for item in value for x in floats_of(item)]
    return [value] if is_float(value) else []


def total(results, sin, total_of):
    results = results if isinstance(results, tuple) else (results,)
    return sum(total_of(sin(y + float(k))) for k, y in enumerate(results))


@pytest.mark.parametrize(("function", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_values_gradients_and_hessian_vector_products(function, args):
    differentiated = tf.differentiable(function)
    floats = floats_of(args)
    rng = np.random.default_rng(1)
    ways = [[rng.normal(size=np.shape(x)) for x in floats] for _ in range(2)]

    def plain(xs):
        copies = replaced(args, iter([np.copy(x) if np.ndim(x) else float(x) for x in xs]))
        results = function(*copies)
        return total(copies[-1] if results is None else results, np.sin, np.sum)

    def program(*xs):
        return total(differentiated(*replaced(args, iter(xs))), tf.sin, tf.reduce_sum)

    def moved(h, way):
        return [x + h * d for x, d in zip(floats, way, strict=True)]

    def limit(f, way, h=1e-3):
        """A derivative along a direction, by differences of order four."""

        def slope(h):
            return (f(moved(h, way)) - f(moved(-h, way))) / (2 * h)

        return (4 * slope(h / 2) - slope(h)) / 3

    def along(gradients, way):
        return sum(np.sum(g.numpy() * d) for g, d in zip(gradients, way, strict=True))

    point = [tf.constant(x, tf.float64) for x in floats]
    tangents = [tf.constant(d, tf.float64) for d in ways[0]]
    gradient = tf.grad(program, tuple(range(len(point))))
    gradients, products = tf.jvp(gradient, tuple(point), tuple(tangents))
    value, forward = tf.jvp(program, tuple(point), tuple(tangents))
    assert float(value) == pytest.approx(plain(floats), rel=1e-11)
    assert float(forward) == pytest.approx(limit(plain, ways[0]), rel=1e-6, abs=1e-7)
    assert along(gradients, ways[0]) == pytest.approx(float(forward), rel=1e-10, abs=1e-11)

    def second(h):
        """The derivative along both directions, by differences of values."""
        steps = [
            (x, y, plain([v + h * (x * d + y * e) for v, d, e in zip(floats, *ways, strict=True)]))
            for x in (1, -1)
            for y in (1, -1)
        ]
        return sum(x * y * value for x, y, value in steps) / (4 * h * h)

    h = 2e-3
    expected = (4 * second(h / 2) - second(h)) / 3
    assert along(products, ways[1]) == pytest.approx(expected, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("function", "args"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_gradients_do_not_depend_on_chunks(function, args, monkeypatch):
    floats = [tf.constant(x, tf.float64) for x in floats_of(args)]

    def gradients():
        differentiated = tf.differentiable(function)

        def program(*xs):
            return total(differentiated(*replaced(args, iter(xs))), tf.sin, tf.reduce_sum)

        return tf.grad(program, tuple(range(len(floats))))(*floats)

    with interpreted():
        monkeypatch.setattr(splitting, "MIN_ROUNDS", 10**6)
        whole = gradients()
        monkeypatch.setattr(splitting, "MIN_ROUNDS", 2)
        monkeypatch.setattr(splitting, "CHUNK", 3)
        chunks = gradients()
    for x, y in zip(chunks, whole, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * np.max(np.abs(y), initial=0.0))


def test_what_a_gradient_saves():
    u = np.linspace(0.0, 1.0, 20) ** 2
    with interpreted():  # a second difference instead of three elements, and no stored quotient
        assert tf.differentiable(heat).stack_bytes(u, 3, 0.2) == 8 * 3 * 18
        assert tf.differentiable(reloaded).stack_bytes(u, 4) == 8 * 3 * 18


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_that_are_compiled(seed):
    problem = disagreement(seed)
    assert problem is None or problem.startswith("refused"), problem


@pytest.mark.parametrize("first", range(100, 300, 20))
def test_random_programs_that_python_runs(first):
    with interpreted():
        problems = {seed: disagreement(seed) for seed in range(first, first + 20)}
    wrong = {k: p for k, p in problems.items() if p is not None and not p.startswith("refused")}
    assert not wrong
    assert sum(p is not None for p in problems.values()) < 8


def test_an_array_without_tangent_is_saved_where_another_has_one():
    source = f"""{HEAD}
def program(a, b, x, y, n):
    u = a.copy()
    w = np.zeros_like(a)
    s = x * y
    k = n
    for i1 in range(5):
        for i2 in range(i1 % 3 + 1):
            for i3, e4 in enumerate(w):
                s += e4 * a[i3] * 0.2
                if w[3] < 0.69:
                    return math.sin((math.tanh(x) + s)) + np.sum(u * u) + s * 0.5
                y = math.tanh(math.cos(s))
                x = math.tanh((math.atan(a[(i1 + 5) % 5]) + min((s - x), y)))
            y = math.tanh(y)
            for i5 in range(5):
                s = np.dot(w, w) * 0.2
                u = np.sin(u) + b * math.tanh(b[-4])
                w += w * w[2] * 0.3
        u = np.where(u > 0.1, b, u * 0.5)
    k -= 1
    x += 0.5 * math.tanh(math.cos(s))
    v6 = np.ones_like(a)
    for i7 in range(5):
        v6[i7] = math.tanh(w[(i7 + 0) % 5])
    u = v6
    return u[k % 5] + np.sum(u * u) + s * 0.5
"""
    with interpreted():
        assert check(source, 40317) is None
