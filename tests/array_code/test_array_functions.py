"""`differentiable`: functions over arrays that are written in loops, and their derivatives."""

import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numba import njit

import tinygrad_cg as tf

A = np.linspace(-1.0, 1.5, 7)
B = np.cos(np.arange(7.0))


@njit
def wave(x):
    if x > 0:
        return math.sin(x) * x
    return math.exp(x)


@njit
def double_sum(a, n):
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(n):
            total += wave(a[i] * j)
    return total


@njit
def swapped_buffers(u, steps):
    v = u.copy()
    for _ in range(steps):
        w = np.empty_like(v)
        w[0], w[-1] = v[0], v[-1]
        for i in range(1, len(v) - 1):
            w[i] = v[i] + 0.1 * v[i] * (v[i - 1] - 2 * v[i] + v[i + 1])
        v, w = w, v
    return v


@njit
def in_place_slices(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = v[1:-1] + 0.1 * v[2:] * (v[:-2] - 2 * v[1:-1])
    return v, v.sum(), (v * v).mean()


@njit
def newton(a):
    x, rounds = a, 0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
        rounds += 1
        if rounds > 50:
            break
    return x, rounds


@njit
def first_above(a, level):
    for i in range(len(a)):
        if a[i] > level:
            return a[i] * a[i]
    return -level


@njit
def warping_distance(x, y):
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), 1e10)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            cost = (x[i - 1] - y[j - 1]) ** 2
            table[i, j] = cost + min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1])
    return table[n, m]


@njit
def pairs(x, steps, dt):
    y, v = x.copy(), np.zeros_like(x)
    for _ in range(steps):
        for i in range(len(y)):
            force = 0.0
            for j in range(len(y)):
                if i != j:
                    gap = y[j] - y[i]
                    force += gap / (gap * gap + 0.1)
            v[i] += dt * force
        for i in range(len(y)):
            y[i] += dt * v[i]
    return np.sum(y * y)


@njit
def products(matrix, x):
    return np.sum((matrix @ x) ** 2) + (matrix.T @ matrix)[0, 1]


@njit
def rotated(a):
    turn = np.array([[math.cos(a[0]), -math.sin(a[0])], [math.sin(a[0]), math.cos(a[0])]])
    return turn @ a[1:3] + np.array([1, a[3]]), turn


@njit
def writes(u, out):
    for i in range(u.shape[0]):
        for j in range(u.shape[1]):
            out[i, j] += u[i, j] ** 2 + np.tanh(u[j, i])


@njit
def numbered_pairs(x, y, first):
    total = 0.0
    for k, (a, b) in enumerate(zip(x, y[::-1]), start=first):  # noqa: B905
        total += k * a * b**2
    for (k, a), b in zip(enumerate(x, 1), y):  # noqa: B905
        total += k * a**3 * b
    return total


MATRIX = np.sin(np.arange(9.0)).reshape(3, 3)
CASES = [
    (double_sum, (A, 3)),
    (swapped_buffers, (A, 4)),
    (in_place_slices, (A, 4)),
    (newton, (2.0,)),
    (first_above, (A, 0.5)),
    (first_above, (A, 50.0)),
    (warping_distance, (A, B[:5])),
    (pairs, (A, 3, 0.1)),
    (products, (MATRIX, A[:3])),
    (rotated, (A,)),
    (writes, (MATRIX, np.ones((3, 3)))),
    (numbered_pairs, (A, B[:5], 3)),
]
IDS = [f"{function.__name__}-{k}" for k, (function, _) in enumerate(CASES)]


def is_float(x):
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def total(function, args):
    """A function of the floats among arguments: the weighted sum of what is float in its result."""
    differentiated = tf.differentiable(function)

    def of_floats(*floats):
        rest = iter(floats)
        results = differentiated(*[next(rest) if is_float(x) else x for x in args])
        results = results if isinstance(results, tuple) else (results,)
        parts = [y for y in results if y.dtype.kind == "f"]
        return sum(tf.reduce_sum(tf.sin(y + float(k))) for k, y in enumerate(parts))

    return of_floats, [tf.constant(x, tf.float64) for x in args if is_float(x)]


def along(function, point, direction, step=1e-3):
    """The derivative along a direction, by differences of order four."""

    def difference(h):
        ends = [[p + s * h * d for p, d in zip(point, direction, strict=True)] for s in (1, -1)]
        return (float(function(*ends[0])) - float(function(*ends[1]))) / (2 * h)

    return (4 * difference(step / 2) - difference(step)) / 3


@pytest.mark.quick
@pytest.mark.parametrize(("function", "args"), CASES, ids=IDS)
def test_values_are_those_of_the_function(function, args):
    copies = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
    expected = function.py_func(*copies)  # Numba's products of matrices need SciPy
    if expected is None:
        expected = copies[-1]
    result = tf.differentiable(function)(*args)
    if not isinstance(expected, tuple):
        result, expected = (result,), (expected,)
    for ours, theirs in zip(result, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.parametrize(("function", "args"), CASES, ids=IDS)
def test_derivatives_to_third_order(function, args):
    f, point = total(function, args)
    rng = np.random.default_rng(3)
    ways = [[tf.constant(rng.normal(size=x.shape)) for x in point] for _ in range(3)]

    def moved(g, way):
        return lambda *xs: sum(
            tf.reduce_sum(part * d)
            for part, d in zip(tf.grad(g, tuple(range(len(xs))))(*xs), way, strict=True)
        )

    first = moved(f, ways[0])
    second = moved(first, ways[1])
    for lower, derivative, way in ((f, first, ways[0]), (first, second, ways[1])):
        expected = along(lower, point, way)
        assert float(derivative(*point)) == pytest.approx(expected, rel=1e-6, abs=1e-7)
        forward = tf.jvp(lower, tuple(point), tuple(way))[1]
        assert float(forward) == pytest.approx(float(derivative(*point)), rel=1e-12, abs=1e-12)
    third = tf.jvp(second, tuple(point), tuple(ways[2]))[1]
    assert float(third) == pytest.approx(along(second, point, ways[2]), rel=1e-5, abs=1e-6)


@pytest.mark.quick
def test_transforms_see_one_operation():
    f = tf.differentiable(pairs)
    gradient = tf.grad(f)(A, 2, 0.1)
    rows = tf.constant(np.stack([A, 2 * A]))
    np.testing.assert_allclose(tf.vmap(lambda x: tf.grad(f)(x, 2, 0.1))(rows)[0], gradient)
    np.testing.assert_allclose(tf.function(lambda x: tf.grad(f)(x, 2, 0.1))(A), gradient)
    hessian = tf.hessian(lambda x: f(x, 2, 0.1))(A)
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-12)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(f))(A, 2, 0.1), f(A, 2, 0.1))
    tf.assert_gradients(lambda x: f(x, 2, 0.1), tf.constant(A))


@pytest.mark.quick
def test_what_is_outside_of_the_subset_is_refused():
    def with_list(x):
        parts = [x, 2 * x]
        return parts[0]

    refused = tf.errors.UnsupportedCodeError
    with pytest.raises(refused, match=r"with_list .*lists are not supported"):
        tf.differentiable(with_list)

    @tf.differentiable
    def grows(x):
        total, size = 0.0, 1
        for i in range(len(x)):
            part = np.zeros(size)
            size += i
            total += x[i] + np.sum(part)
        return total

    with pytest.raises(refused, match="size of a new array depends on an element, or on"):
        grows(A)


@pytest.mark.quick
def test_arrays_that_share_memory_are_refused_where_one_is_written_to():
    square = np.ones((3, 3))
    with pytest.raises(ValueError, match="share memory"):
        tf.differentiable(writes)(square, square)


@tf.differentiable
def roots(a, b):
    total = 0.0
    for x in a:
        total += b * math.sqrt(x)
    return total


def test_a_loss_is_differentiated_for_any_upstream_gradient():
    a, b = tf.constant([0.0, 1.0, 4.0], tf.float64), tf.constant(2.0, tf.float64)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        loss = roots(a, b)
        scaled, lost = 3.0 * loss, 0.0 * loss
    for _ in range(2):
        np.testing.assert_array_equal(tape.gradient(loss, a), [np.inf, 1.0, 0.5])
        np.testing.assert_array_equal(tape.gradient(scaled, a), [np.inf, 3.0, 1.5])
        np.testing.assert_array_equal(tape.gradient(lost, a), [0.0, 0.0, 0.0])
        assert float(tape.gradient(scaled, b)) == 9.0
    assert roots(a, b).numpy() == loss.numpy()


def test_a_gradient_that_is_changed_is_computed_again():
    a = np.array([1.0, 4.0])
    _, pullback = tf.vjp(lambda a: roots(a, 2.0), a)
    (first,) = pullback(np.float64(1.0))
    first[:] = 7.0
    np.testing.assert_array_equal(pullback(np.float64(1.0))[0], [1.0, 0.5])


def test_a_tape_outside_sees_the_gradient_of_a_loss():
    b = tf.constant(2.0, tf.float64)

    def slope(a):
        return tf.reduce_sum(tf.grad(roots)(a, b))

    a = tf.constant([1.0, 4.0], tf.float64)
    np.testing.assert_allclose(tf.grad(slope)(a), [-0.5, -0.0625], rtol=1e-14)
    assert float(tf.grad(lambda b: roots(a, b) ** 2)(b)) == 36.0


def _weighted(x, n, w):
    total = 0.0
    for i in range(len(x)):
        total += w[i] * x[i] ** n
    return total


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("argnums", [0, 2, (2, 0), (-1, 0)])
@pytest.mark.parametrize("wrap", [np.asarray, tf.constant])
def test_a_gradient_without_a_tape_is_that_of_a_tape(dtype, argnums, wrap):
    f = tf.differentiable(_weighted)
    args = wrap(np.array([1.5, -2.0], dtype)), 3, wrap(np.array([0.5, 3.0], dtype))
    for transform in (tf.grad, tf.value_and_grad):
        direct, taped = transform(f, argnums)(*args), transform(lambda *a: f(*a), argnums)(*args)
        for x, y in zip(tf.nest.flatten(direct), tf.nest.flatten(taped), strict=True):
            assert type(x) is type(y)
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)


@pytest.mark.quick
def test_arguments_of_a_gradient_without_a_tape():
    f = tf.differentiable(_weighted)
    x, w = tf.constant([1.5, -2.0]), tf.constant([0.5, 3.0])
    expected = tf.grad(lambda x: f(x, 2, w))(x)
    for argument in (tf.Variable(x), x):
        np.testing.assert_array_equal(tf.grad(f)(argument, 2, w), expected)
        np.testing.assert_array_equal(tf.grad(f)(argument, n=2, w=w), expected)
    np.testing.assert_array_equal(tf.grad(tf.function(f))(x, 2, w), expected)
    np.testing.assert_array_equal(tf.function(tf.grad(f))(x, 2, w), expected)
    curvature = tf.hessian(lambda x: f(x, 2, w))(x)
    np.testing.assert_array_equal(tf.jacobian(tf.grad(f))(x, 2, w), curvature)
    for argnums, message in (
        (1, "argument 1 of .*int"),
        (3, "argnums contains 3"),
        ((0, 0), "twice"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            tf.grad(f, argnums)(x, 2, w)
    with pytest.raises(TypeError, match="one scalar, got tuple"):
        tf.grad(tf.differentiable(lambda x: (x[0] * x[1],)))(x)
    with pytest.raises(ValueError, match="scalar output"):
        tf.grad(tf.differentiable(lambda x: x * x))(x)
    assert tf.grad(tf.differentiable(lambda x: x * x))(2.0).dtype == tf.float32


@pytest.mark.quick
def test_scratch_of_calls_is_not_shared_by_threads_or_results():
    """A call that needs longer stacks than the last one, one that fails, and threads."""

    @tf.differentiable
    def powers(x, n):
        for _ in range(n):
            if x[0] > 100.0:
                raise ValueError("too large")
            x = x * np.cos(x)
        return np.sum(x)

    x = np.random.default_rng(0).normal(size=(64, 5))
    jobs = [(row, n) for row in x for n in (3, 400, 20)]
    expected = [tf.grad(lambda x, n: powers(x, n))(*job) for job in jobs]
    first = tf.grad(powers)(*jobs[0])
    with pytest.raises(ValueError, match="too large"):
        tf.grad(powers)(x[0] + 200, 3)
    with ThreadPoolExecutor(4) as pool:
        results = [*pool.map(lambda job: tf.grad(powers)(*job), jobs)]
    np.testing.assert_array_equal(results, expected)
    np.testing.assert_array_equal(first, expected[0])


@pytest.mark.quick
def test_matrices_without_inverse_are_refused():
    solved = tf.differentiable(lambda a, b: np.linalg.solve(a, b))
    with pytest.raises(np.linalg.LinAlgError, match="solve: the matrix is singular"):
        solved(np.zeros((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match="must be square, with as many rows as b"):
        solved(np.eye(2), np.ones(3))
    with pytest.raises(tf.errors.MatrixError, match="not positive definite"):
        tf.differentiable(lambda a: np.linalg.cholesky(a))(-np.eye(2))


@pytest.mark.quick
@pytest.mark.parametrize("size", [0, 1, 2, 3, 7, 64, 65])
def test_orders_are_stable_and_have_nan_last(size):
    x = np.random.default_rng(size).integers(0, 20, size).astype(float)
    x[x > 17] = np.nan
    order = tf.differentiable(lambda x: np.argsort(x))(x)
    np.testing.assert_array_equal(order, np.argsort(x, kind="stable"))
    np.testing.assert_array_equal(tf.differentiable(lambda x: np.sort(x))(x), np.sort(x))


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [None, float, np.float32, np.int64, bool])
def test_arrays_are_cast_as_numpy_casts_them(dtype):
    x = np.array([1.5, -2.0, 0.0], np.float32)
    cast = tf.differentiable(lambda x: x.astype(dtype))(x)
    np.testing.assert_array_equal(cast, x.astype(dtype), strict=True)


def test_results_that_are_returned_twice_add_up_in_the_gradient():
    f = tf.differentiable(_repeated)
    point = tf.constant([1.0, 2.0], tf.float64)

    def loss(a):
        first, (again, number), own, same = f(a)
        return tf.reduce_sum(first * again + own + 2.0 * same) + number

    np.testing.assert_array_equal(tf.grad(loss)(point), 8.0 * point.numpy() + 4.0)
    np.testing.assert_array_equal(tf.jvp(tf.grad(loss), (point,), (point,))[1], 8.0 * point.numpy())


def _repeated(a):
    b = 2.0 * a
    return b, (b, np.sum(a)), a, a
