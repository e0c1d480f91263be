"""Outside code (NumPy, Python on values) under every transform, at orders 1 and 2."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.orders import run_in_threads
from tests.support.outside_code import KINDS, array_cubic, array_jvp, array_vjp, cubic, on_values

MATRIX = np.array([[3.0, 1.0], [1.0, 2.0]])
INVERSE = np.linalg.inv(MATRIX)
B, WAY = tf.constant([[1.0, 2.0], [1.0, 0.5]], tf.float64)
POINT = tf.constant([0.7, -1.2, 1.9], tf.float64)
TANGENT = tf.constant([0.3, -1.0, 0.4], tf.float64)


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error", tf.errors.CustomGradientWarning)
        yield


# The example of docs/tutorials/outside_solvers.md -------------------------------------------------


def solve_again(b: Any) -> Any:
    return solve(b)


@tf.custom_derivatives(
    vjp=lambda dy, b: solve_again(dy), jvp=lambda way, b: solve_again(way), beyond="differentiate"
)
def solve(b):
    return tf.constant(np.linalg.solve(MATRIX, b.numpy()))


def energy(b):
    return tf.reduce_sum(solve(b) ** 4)


HESSIAN = INVERSE.T @ np.diag(12 * (INVERSE @ B.numpy()) ** 2) @ INVERSE


@pytest.mark.quick
def test_the_solver_of_readme():
    assert_allclose(tf.jacobian(solve)(B), INVERSE, rtol=1e-12)
    assert_allclose(tf.jacobian(solve, mode="forward")(B), INVERSE, rtol=1e-12)
    assert_allclose(tf.hessian(energy)(B), HESSIAN, rtol=1e-10)
    with tf.GradientTape() as tape:
        tape.watch(B)
        y = solve(B)
    assert_allclose(tape.jacobian(y, B), INVERSE, rtol=1e-12)


def test_the_solver_of_readme_in_batches_and_compiled():
    batch = tf.stack([B, WAY])
    assert_allclose(tf.vmap(solve)(batch), batch.numpy() @ INVERSE, rtol=1e-12)
    assert_allclose(tf.vmap(tf.hessian(energy))(batch)[0], HESSIAN, rtol=1e-10)
    for compiled in (tf.function, unfused):
        program = compiled(solve)
        for b in (B, WAY, 2 * B):
            assert_allclose(program(b), INVERSE @ b.numpy(), rtol=1e-12)
        assert_allclose(tf.jacobian(program)(B), INVERSE, rtol=1e-12)
        assert_allclose(compiled(tf.jacobian(solve))(B), INVERSE, rtol=1e-12)
        assert_allclose(compiled(tf.hessian(energy))(B), HESSIAN, rtol=1e-10)
        assert_allclose(tf.hessian(compiled(energy))(B), HESSIAN, rtol=1e-10)
        assert_allclose(tf.hvp(compiled(energy))(B, WAY), HESSIAN @ WAY.numpy(), rtol=1e-10)


@pytest.mark.quick
@pytest.mark.parametrize("kind", KINDS)
def test_forward_accumulators(kind):
    f = KINDS[kind]()
    if "rules in NumPy" in kind:
        warnings.simplefilter("ignore", tf.errors.CustomGradientWarning)
    with tf.autodiff.ForwardAccumulator(POINT, TANGENT) as accumulator:
        y = f(POINT)
    expected = array_jvp(TANGENT.numpy(), POINT.numpy())
    assert_allclose(accumulator.jvp(y), expected, rtol=1e-9)


# How often code is called ----------------------------------------------------------------------


def counted(function: Callable[..., Any]) -> tuple[Callable[..., Any], list]:
    calls: list = []

    @functools.wraps(function)
    def call(*args):
        calls.append(args)
        return function(*args)

    return call, calls


@pytest.mark.quick
def test_a_declared_jvp_is_called_once_for_one_product():
    jvp, jvps = counted(on_values(array_jvp))
    vjp, vjps = counted(on_values(array_vjp))
    f = tf.custom_derivatives(on_values(array_cubic), vjp=vjp, jvp=jvp)
    expected = array_jvp(TANGENT.numpy(), POINT.numpy())
    assert_allclose(tf.jvp(f, (POINT,), (TANGENT,))[1], expected, rtol=1e-12)
    assert (len(jvps), len(vjps)) == (1, 0)
    with tf.autodiff.ForwardAccumulator(POINT, TANGENT) as accumulator:
        y = f(POINT)
    assert_allclose(accumulator.jvp(y), expected, rtol=1e-12)
    assert (len(jvps), len(vjps)) == (2, 0)
    slope, slopes = counted(lambda x: np.cos(x.numpy()))
    tangent = tf.jvp(tf.custom_derivatives(tf.sin, slope), (POINT,), (TANGENT,))[1]
    assert_allclose(tangent, np.cos(POINT) * TANGENT.numpy(), rtol=1e-12)
    assert len(slopes) == 1


@pytest.mark.quick
@pytest.mark.parametrize("compiled", [tf.function, unfused])
def test_a_program_calls_the_code_at_each_call(compiled):
    code, calls = counted(lambda x: x**2)
    program = compiled(lambda x: 3.0 * tf.numpy_function(code, [2.0 * x], tf.float64))
    for k in range(4):
        assert_allclose(program(k * POINT), 12 * k**2 * POINT.numpy() ** 2, rtol=1e-12)
        assert len(calls) == k + 1
        assert_allclose(calls[-1][0], 2.0 * k * POINT.numpy())


@pytest.mark.parametrize("compiled", [tf.function, unfused])
def test_a_recorded_program_calls_the_code_at_each_call(compiled):
    code, calls = counted(np.sin)
    slope, slopes = counted(np.cos)

    @tf.custom_gradient
    def sine(x):
        y = tf.numpy_function(code, [x], tf.float64)
        return y, lambda dy: dy * tf.numpy_function(slope, [x], tf.float64)

    program = compiled(lambda x: sine(x) ** 2)
    for k in range(1, 4):
        x = tf.constant(0.3 * k, tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = program(x)
        assert len(calls) == k
        assert_allclose(tape.gradient(y, x), np.sin(0.6 * k), rtol=1e-12)
        assert len(calls) == k
        assert_allclose(slopes[-1][0], 0.3 * k, rtol=1e-12)
    assert len(slopes) <= 4  # one more, to learn the shape


@pytest.mark.quick
def test_stateful_code_is_called_in_order_and_never_left_out():
    log: list = []

    def note(name):
        return lambda x: log.append((name, float(x)))

    @tf.function
    def program(x):
        assert tf.numpy_function(note("a"), [x], []) == []
        tf.py_function(note("b"), [x * 2.0], [])
        tf.numpy_function(lambda x: log.append("pure") or x, [x], tf.float32, stateful=False)
        tf.numpy_function(note("c"), [x], [])
        return x + 1.0

    for k in range(3):
        log.clear()
        assert float(program(tf.constant(float(k)))) == k + 1
        events = [event for event in log if event != "pure"]
        assert events == [("a", k), ("b", 2 * k), ("c", k)]
        assert log.count("pure") == (k == 0)  # to learn its shape, and never again


def test_code_without_operands_gives_the_next_value_at_each_call():
    values = iter(range(10))
    program = tf.function(lambda: tf.numpy_function(lambda: float(next(values)), [], tf.float32))
    assert [float(program()) for _ in range(4)] == [0.0, 1.0, 2.0, 3.0]


def test_calls_in_a_batch_are_one_for_each_example():
    code, calls = counted(np.cumsum)
    batch = np.arange(6.0).reshape(3, 2)
    result = tf.vmap(lambda x: tf.numpy_function(code, [x], tf.float64))(batch)
    assert_allclose(result, np.cumsum(batch, 1))
    assert [array.shape for (array,) in calls] == [(2,)] * 3
    empty = tf.vmap(lambda x: tf.numpy_function(np.cumsum, [x], tf.float64))(np.zeros((0, 2)))
    assert (empty.shape, empty.dtype) == ((0, 2), np.float64)


# The two functions -----------------------------------------------------------------------------


@pytest.mark.quick
def test_results_of_numpy_function():
    def both(x, y):
        x += 1  # a copy
        return x, [1, 2], float(y)

    results = tf.numpy_function(both, [POINT, 2.5], [tf.float64, tf.int32, tf.float32])
    assert isinstance(results, list)
    assert [result.dtype for result in results] == [np.float64, np.int32, np.float32]
    assert_allclose(results[0], POINT.numpy() + 1)
    assert results[2].numpy() == 2.5
    assert_allclose(POINT, [0.7, -1.2, 1.9])
    total = tf.numpy_function(func=np.sum, inp=[POINT], Tout=tf.float64, stateful=False, name="sum")
    assert total.shape == ()
    assert isinstance(tf.numpy_function(np.sum, [POINT], [tf.float64]), list)
    view = tf.numpy_function(lambda x: x.T, [tf.ones((2, 3))], tf.float32)
    assert view.shape == (3, 2)


@pytest.mark.quick
@pytest.mark.parametrize("call", [tf.numpy_function, tf.py_function])
def test_wrong_arguments_and_results(call):
    with pytest.raises(TypeError, match="func must be callable, got int 3"):
        call(3, [POINT], tf.float32)
    with pytest.raises(TypeError, match=r"inp must be a list.*write \[x\]"):
        call(np.sin, POINT, tf.float32)
    for wrap in (lambda f: f, tf.function):
        run = wrap(lambda x: call(lambda x: x * 2, [x], tf.float32))
        with pytest.raises(
            TypeError, match=r"output 0 of the function is float64, but Tout declares float32"
        ):
            run(POINT)
        run = wrap(lambda x: call(lambda x: (x, x), [x], tf.float64))
        with pytest.raises(ValueError, match=r"returned 2 results, Tout has 1"):
            run(POINT)
        run = wrap(lambda x: call(lambda x: None, [x], tf.float64))
        with pytest.raises(TypeError, match=r"output 0 of the function is None"):
            run(POINT)

    def fails(x):
        raise KeyError("own")

    with pytest.raises(KeyError, match="own") as caught:
        tf.function(lambda x: call(fails, [x], tf.float64))(POINT)
    assert "to find the shapes" in caught.value.__notes__[0]


def test_shapes_that_change_between_calls_of_a_program():
    program = tf.function(lambda x: tf.numpy_function(lambda x: x[x > 0], [x], tf.float64) * 2.0)
    assert_allclose(program(POINT), [1.4, 3.8])
    assert_allclose(program(2 * POINT), [2.8, 7.6])
    with pytest.raises(ValueError, match=r"returned float64\(1,\), and float64\(2,\) when"):
        program(-POINT)
    assert_allclose(program(POINT), [1.4, 3.8])


def test_a_program_made_before_its_arguments_are_known():
    program = tf.function(lambda x: tf.numpy_function(np.linalg.inv, [x], tf.float64))
    concrete = program.get_concrete_function(tf.TensorSpec((1, 1), tf.float64))
    assert_allclose(concrete(tf.constant([[4.0]], tf.float64)), [[0.25]])
    with pytest.raises(np.linalg.LinAlgError):
        concrete(tf.zeros((1, 1), tf.float64))


@pytest.mark.quick
def test_numpy_function_has_no_gradient_and_says_so():
    def f(x):
        return tf.reduce_sum(x + tf.numpy_function(np.sin, [x], tf.float64))

    with tf.GradientTape() as tape:
        tape.watch(POINT)
        y = tf.numpy_function(np.sin, [POINT], tf.float64)
    assert tape.gradient(y, POINT) is None
    for run in (lambda: tf.grad(f)(POINT), lambda: tf.jvp(f, (POINT,), (TANGENT,))):
        with pytest.warns(
            tf.errors.CustomGradientWarning, match="Derivatives do not see these values"
        ):
            run()


def test_variables_in_py_function():
    weight = tf.Variable(2.0)

    def f(x):
        return tf.py_function(lambda x: weight * x, [x], tf.float32)

    with tf.GradientTape() as tape:
        y = f(tf.constant(3.0))
    assert tape.gradient(y, weight).numpy() == 3.0
    program = tf.function(f)
    assert program(tf.constant(3.0)).numpy() == 6.0
    weight.assign(5.0)
    assert program(tf.constant(3.0)).numpy() == 15.0


def test_python_floats_and_numbers_are_operands():
    @tf.custom_derivatives(vjp=lambda dy, x, y: (dy * float(y), dy * float(x)))
    def product(x, y):
        return tf.constant(float(x) * float(y))

    program = tf.function(product)
    assert program(2.0, 3.0).numpy() == 6.0
    assert program(tf.constant(4.0), 0.5).numpy() == 2.0
    assert tf.grad(lambda x: program(x, 0.5))(4.0).numpy() == 0.5
    assert tf.vmap(product, (0, None))(tf.constant([1.0, 2.0]), 3.0).numpy().tolist() == [3.0, 6.0]


# Rules in NumPy --------------------------------------------------------------------------------


def test_forward_mode_of_a_rule_in_numpy():
    """Its transpose is found by unit vectors; for complex numbers, too."""
    matrix = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])

    @tf.custom_gradient
    def apply(x):
        y = tf.constant(matrix @ x.numpy())
        return y, lambda dy: tf.constant(matrix.T @ dy.numpy())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tangent = tf.jvp(apply, (POINT,), (TANGENT,))[1]
        assert_allclose(tangent, matrix @ TANGENT.numpy(), rtol=1e-12)
        assert_allclose(tf.linearize(apply, POINT)[1](TANGENT), matrix @ TANGENT.numpy())
    factor = 2.0 - 3.0j
    scale = tf.custom_derivatives(
        lambda z: tf.constant(factor * z.numpy()),
        vjp=lambda dy, z: tf.constant(np.conj(factor) * dy.numpy()),
    )
    z = tf.constant([1.0 + 2.0j, 0.5j])
    assert_allclose(tf.jvp(scale, (z,), (1j * z,))[1], 1j * factor * z.numpy(), rtol=1e-12)


def test_a_rule_in_numpy_that_is_not_linear_is_refused():
    f = tf.custom_derivatives(
        lambda x: tf.constant(2.0 * x.numpy()),
        vjp=lambda dy, x: tf.constant(np.clip(2.0 * dy.numpy(), -1, 1)),
    )
    for run in (lambda: tf.jvp(f, (POINT,), (TANGENT,)), lambda: tf.linearize(f, POINT)):
        with pytest.raises(tf.errors.NotLinearError, match="is not linear in its upstream"):
            run()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_rounding_leaves_of_a_gradient_that_is_zero_is_linear(dtype):
    @tf.custom_gradient
    def unchanged_by(p, s):
        def rule(dy):
            terms = dy * 1e5 * tf.cos(p)
            return terms, tf.reduce_sum(terms * 1.1 * 1.3) - tf.reduce_sum(terms * 1.3 * 1.1)

        return 1e5 * tf.sin(p) + 0.0 * s, rule

    p = tf.constant(np.linspace(-1, 2, 5), dtype)
    s = tf.constant(1.3, dtype)
    assert_allclose(tf.jvp(lambda s: unchanged_by(p, s), (s,), (s,))[1], np.zeros(5), atol=0.1)
    wrong = tf.custom_gradient(lambda p, s: (p * s, lambda dy: (dy * s, 1e-6 * dy * dy)))
    with pytest.raises(tf.errors.NotLinearError):
        tf.jvp(lambda s: wrong(p[0], s), (s,), (s,))


def test_values_of_a_captured_tensor():
    def scaled(w):
        @tf.custom_derivatives(vjp=lambda dy, x: tf.constant(w.numpy() * dy.numpy()))
        def f(x):
            return tf.constant(w.numpy() * x.numpy())

        return f

    for wrap in (tf.vmap, lambda f: tf.function(tf.vmap(f))):
        assert_allclose(wrap(lambda w: scaled(w)(2.0 * w))(POINT), 2.0 * POINT.numpy() ** 2)
        slopes = wrap(lambda w: tf.grad(scaled(w))(2.0 * w))(POINT)
        assert_allclose(slopes, POINT)


def unit_vectors(calls: list) -> int:
    return sum(np.count_nonzero(dy) == 1 for dy in calls)


def test_an_elementwise_kernel_needs_no_unit_vectors():
    """Its Jacobian is diagonal, so one call with ones tells the tangent of a rule in NumPy."""
    times = tf.primitive("OutsideTimes", lambda x, y: x * y, elementwise=True, replace=True)
    pulled: list = []

    @tf.RegisterGradient("OutsideTimes", replace=True)
    def rule(op, dy):
        pulled.append(dy.numpy())
        x, y = op.inputs
        return tf.constant(dy.numpy() * y.numpy()), tf.constant(dy.numpy() * x.numpy())

    warnings.simplefilter("ignore", tf.errors.CustomGradientWarning)
    other = tf.constant([2.0, 3.0, 5.0], tf.float64)
    for f in (times, unfused(times)):
        pulled.clear()
        tangent = tf.jvp(f, (POINT, other), (TANGENT, POINT))[1]
        assert_allclose(tangent, TANGENT.numpy() * other.numpy() + POINT.numpy() ** 2, rtol=1e-12)
        assert unit_vectors(pulled) == 0
    pulled.clear()
    scalar, few = tf.constant(2.0, tf.float64), tf.constant(3.0, tf.float64)
    tangent = tf.jvp(times, (POINT, scalar), (TANGENT, few))[1]  # broadcast: not diagonal
    assert_allclose(tangent, TANGENT.numpy() * 2 + 3 * POINT.numpy(), rtol=1e-12)
    assert unit_vectors(pulled) == 3


def test_tangents_of_py_function_are_one_more_call():
    python, calls = counted(cubic)

    def f(x):
        return tf.py_function(python, [x], tf.float64)

    xs = tf.stack([POINT, 2 * POINT])
    result = tf.vmap(lambda x: tf.jvp(f, (x,), (TANGENT,))[1])(xs)
    assert_allclose(result[1], array_jvp(TANGENT.numpy(), 2 * POINT.numpy()), rtol=1e-12)
    assert len(calls) == 4


@pytest.mark.quick
def test_several_outputs_and_integers_of_py_function():
    def f(x, k):
        return tf.py_function(lambda x, k: (x * tf.cast(k, tf.float32), k + 1), [x, k], DTYPES)

    three, x = tf.constant(3), tf.constant(2.0)
    for call in (f, tf.function(f)):
        product, following = call(x, three)
        assert (product.numpy(), following.numpy(), following.dtype) == (6.0, 4, np.int32)
        assert tf.grad(lambda x, call=call: call(x, three)[0])(x).numpy() == 3.0
        assert tf.jvp(lambda x, call=call: call(x, three)[0], (x,), (1.0,))[1].numpy() == 3.0
    products, followings = tf.vmap(f, (0, None))(tf.constant([1.0, 2.0]), three)
    assert (products.numpy().tolist(), followings.numpy().tolist()) == ([3.0, 6.0], [4, 4])


DTYPES = [tf.float32, tf.int32]


def test_a_result_that_the_code_keeps_stays_as_it_is():
    kept = tf.constant([1.0, 2.0, 3.0])
    x = tf.ones(3)
    program = tf.function(lambda x: tf.py_function(lambda x: kept, [x], tf.float32))
    summed = tf.function(lambda x: tf.py_function(lambda x: kept, [x], tf.float32) + x)
    for _ in range(3):
        assert program(x).numpy().tolist() == [1.0, 2.0, 3.0]
        assert summed(x).numpy().tolist() == [2.0, 3.0, 4.0]
    assert kept.numpy().tolist() == [1.0, 2.0, 3.0]


def test_threads_call_the_code_once_for_each_call():
    calls: list = []
    program = tf.function(
        lambda x: tf.numpy_function(lambda x: calls.append(1) or x + 1, [x], tf.float64)
    )
    run_in_threads(*[lambda: [program(POINT) for _ in range(20)]] * 3)
    assert 60 <= len(calls) <= 62  # those that trace at the same time learn the shape each


def test_numpy_function_reads_variables_at_each_call():
    weight = tf.Variable(3.0)
    program = tf.function(lambda: tf.numpy_function(np.square, [weight], tf.float32))
    assert program().numpy() == 9.0
    weight.assign(5.0)
    assert program().numpy() == 25.0


def test_a_second_derivative_that_numpy_loses_warns():
    """The rule is right at the first order only, and says so at the second."""

    @tf.custom_gradient
    def sine(x):
        y = tf.numpy_function(np.sin, [x], tf.float64)
        return y, lambda dy: dy * tf.numpy_function(np.cos, [x], tf.float64)

    assert_allclose(tf.grad(lambda x: tf.reduce_sum(sine(x)))(POINT), np.cos(POINT))
    with pytest.warns(tf.errors.CustomGradientWarning, match=r"`sine`.*numpy_function"):
        tf.hessian(lambda x: tf.reduce_sum(sine(x)))(POINT)


class Counting:
    """A function with state: the number of its call times the square of x."""

    def __init__(self):
        self.calls = 0.0

    def __call__(self, x):
        self.calls += 1.0
        return self.calls * x * x


def drawing(x):
    """Return x times random numbers."""
    return tf.random.normal(x.shape, dtype=x.dtype) * x


def tangent(function):
    return lambda x: tf.jvp(function, (x,), (x,))


@pytest.mark.parametrize(
    ("transform", "derivative"),
    [
        (tf.function, tf.grad),
        (tf.function, tf.jacobian),
        (tf.vmap, tf.grad),
        (tf.vmap, tf.jacobian),
        (tf.vmap, tangent),
    ],
)
@pytest.mark.parametrize("code", [Counting(), drawing], ids=["state", "random"])
def test_a_derivative_of_code_that_returns_other_values_is_an_error(code, transform, derivative):
    outside = transform(lambda x: tf.py_function(code, [x], tf.float64))
    x = tf.constant([1.0, 2.0, 3.0], tf.float64)
    assert outside(x).shape == (3,)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="other values: it draws random numbers"
    ):
        derivative(lambda x: tf.reduce_sum(outside(x)))(x)
