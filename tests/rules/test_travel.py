"""Compiled functions, primitives and closures over them, in other processes: the same numbers."""

import copy
import multiprocessing
import pickle
import subprocess
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import gradient
from tinygrad_cg import autograd

X = np.array([1.0, 2.0, 3.0])


@tf.function
def compiled(x):
    return tf.reduce_sum(x**3)


@tf.primitive("TravelCube")
def cube(x):
    return x**3


named = tf.primitive("TravelSquare", lambda x: x**2, elementwise=True)
named_function = tf.function(lambda x: x * 2.0)


@tf.RegisterGradient("TravelCube")
def of_cube(op, dy):
    return 100.0 * dy * op.inputs[0] ** 2  # tells it from the derivative of x**3


def slope(x):
    """Return numbers of all kinds by objects of this module."""
    return tf.grad(lambda x: compiled(x) + tf.reduce_sum(cube(x)))(x)


class Model:
    factor = 3.0

    @tf.function
    def scaled(self, x):
        return x * self.factor


def by_pickle(value):
    return pickle.loads(pickle.dumps(value))


def by_cloudpickle(value):
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(value))


PICKLERS = pytest.mark.parametrize("travelled", [by_pickle, by_cloudpickle])


@PICKLERS
@pytest.mark.parametrize("name", [compiled, cube, named, named_function, Model.scaled])
def test_what_a_module_has_is_a_name(travelled, name):
    assert travelled(name) is name


@PICKLERS
def test_methods(travelled):
    model = Model()
    model.factor = 5.0
    assert travelled(model.scaled)(2.0).numpy() == 10.0


@PICKLERS
def test_functions_by_value(travelled):
    """With their signature, static arguments and kind of program; programs are made anew."""
    spec = [tf.TensorSpec([None], "float64")]
    there = travelled(tf.function(slope, input_signature=spec))
    np.testing.assert_array_equal(there(tf.constant(X)), 103.0 * X**2)
    with pytest.raises(TypeError):
        there(tf.constant(X, "float32"))
    power = travelled(tf.function(np.power, static_argnums=1, jit_compile=False))
    assert power(tf.constant(3.0), 2).numpy() == 9.0
    assert power.cache_size == 1
    assert power._build is tf.function(slope, jit_compile=False)._build


@PICKLERS
def test_primitives_by_value(travelled):
    """In their own process they are what they were; a ufunc travels by its name."""
    op = tf.primitive("TravelTanh", np.tanh, shape=None, replace=True)
    assert travelled(op) is op
    assert travelled([op, op])[1](tf.constant(0.0)).numpy() == 0.0


def test_closures_by_cloudpickle():
    factor = tf.constant(2.0, "float64")
    local = tf.primitive("TravelLocal", lambda x: x**4, replace=True)
    tf.RegisterGradient("TravelLocal", replace=True)(lambda op, dy: dy * 7.0)

    @tf.function
    def loss(x):
        return tf.reduce_sum(local(x) * factor)

    there = by_cloudpickle(lambda x: (loss(x), tf.grad(loss)(x), tf.hessian(compiled)(x)))
    value, first, second = there(X)
    assert float(value) == 2.0 * np.sum(X**4)
    np.testing.assert_array_equal(first, [14.0] * 3)
    np.testing.assert_allclose(second, np.diag(6.0 * X))
    np.testing.assert_array_equal(by_cloudpickle(tf.grad(loss))(X), first)
    np.testing.assert_allclose(by_cloudpickle(tf.vmap(tf.grad(compiled)))(X[None])[0], 3 * X**2)


# Derivatives ---------------------------------------------------------------------------------


def cubes(x):
    return x**3


def sum_of_cubes(x):
    return tf.reduce_sum(x**3)


def rising(x):
    """Branch on a tensor."""
    if tf.reduce_sum(x) > 0.0:
        return tf.reduce_sum(x**2)
    return tf.reduce_sum(x**3)


class Quadratic:
    factor = 3.0

    def loss(self, x):
        return tf.reduce_sum(x**2) * self.factor

    def ruled(self, x):
        return x * x, lambda dy: dy * 7.0

    slope = tf.grad(loss, argnums=1)
    of_lambda = tf.grad(lambda self, x: tf.reduce_sum(x**2) * self.factor, 1)
    rule = tf.custom_gradient(ruled)


@tf.grad
def decorated(x):
    return tf.reduce_sum(x**2)


named_slope = tf.grad(lambda x: tf.reduce_sum(x**2))
rising_slope = tf.grad(rising)

TRANSFORMED = {
    "grad": lambda: tf.grad(sum_of_cubes),
    "f by keyword": lambda: tf.grad(argnums=0, f=sum_of_cubes),
    "value_and_grad": lambda: tf.value_and_grad(sum_of_cubes),
    "elementwise_grad": lambda: tf.elementwise_grad(cubes),
    "of a ufunc": lambda: tf.elementwise_grad(np.sin),
    "jacobian": lambda: tf.jacobian(cubes, mode="forward"),
    "hessian": lambda: tf.hessian(sum_of_cubes),
    "of a gradient": lambda: tf.jacobian(tf.grad(compiled)),
    "of a batch": lambda: tf.vmap(tf.elementwise_grad(cubes)),
    "recomputed": lambda: tf.recompute_grad(cubes),
    "a chain": lambda: tf.recompute_grad([cubes, cubes]),
    "of what is recomputed": lambda: tf.elementwise_grad(tf.recompute_grad(cubes)),
    "passed through": lambda: tf.elementwise_grad(tf.grad_pass_through(cubes)),
    "compiled": lambda: tf.function(tf.grad(sum_of_cubes)),
    "of a method": lambda: tf.grad(Quadratic().loss),
    "vectorize": lambda: tf.numpy.vectorize(cubes),
    "Keras's vectorize": lambda: tf.keras.ops.vectorize(cubes),
    "autograd's grad": lambda: autograd.grad(sum_of_cubes),
    "autograd's Jacobian": lambda: autograd.jacobian(cubes),
    "autograd's multigrad_dict": lambda: autograd.multigrad_dict(sum_of_cubes),
}


@PICKLERS
@pytest.mark.parametrize("name", TRANSFORMED)
def test_derivatives_are_calls_of_their_transforms(travelled, name):
    """Functions that transforms returned, which are closures, and not found by a name."""
    transformed = TRANSFORMED[name]()
    there = travelled(transformed)
    assert there is not transformed
    for result, expected in zip(
        tf.nest.flatten(there(X)), tf.nest.flatten(transformed(X)), strict=True
    ):
        np.testing.assert_array_equal(result, expected)
    assert copy.copy(transformed) is transformed


@PICKLERS
@pytest.mark.parametrize("name", [decorated, named_slope, Quadratic.of_lambda])
def test_derivatives_of_what_has_no_name_are_names(travelled, name):
    assert travelled(name) is name


@PICKLERS
def test_methods_under_other_names_than_their_functions(travelled):
    """The class has `loss` too, which is another function than `slope`."""
    model = Quadratic()
    model.factor = 5.0
    np.testing.assert_array_equal(travelled(model.slope)(X), 10.0 * X)
    np.testing.assert_array_equal(travelled(model.of_lambda)(X), 10.0 * X)
    assert gradient(travelled(model.rule), tf.constant(X))[0] == [7.0] * 3


def test_what_holds_a_record_is_refused():
    _, pullback = tf.vjp(cubes, X)
    with pytest.raises((pickle.PicklingError, AttributeError), match=r"vjp.<locals>.pullback"):
        pickle.dumps(pullback)
    with pytest.raises(TypeError, match="cannot pickle"):
        pytest.importorskip("cloudpickle").dumps(pullback)
    with pytest.raises((pickle.PicklingError, AttributeError), match="<lambda>"):
        pickle.dumps(tf.grad(lambda x: x))


def test_a_derivative_made_elsewhere_branches_in_a_program():
    """Since a program can make it again, of the transformed function."""
    program = tf.function(lambda x: rising_slope(x))
    for x in (X, -X):
        np.testing.assert_array_equal(program(tf.constant(x)), rising_slope(x))


# Another process, which has none of the names ------------------------------------------------

SENDER = """
import sys
import cloudpickle
import tinygrad_cg as tf

def define(power, slope):
    op = tf.primitive("Sent", lambda x: x ** power, replace=True)

    def gradient(use, dy):
        assert op is not None  # it refers to the operation, as that of exp does
        return dy * slope * use.inputs[0]

    tf.RegisterGradient("Sent", replace=True)(gradient)
    return op

first = define(2, 10.0)
one = cloudpickle.dumps(first)
second = define(3, 20.0)
lost = cloudpickle.dumps(tf.primitive("SentWithout", lambda x: x * 1.0))

@tf.function
def sum_of_both(x):
    assert sum_of_both is not None  # it refers to itself
    return tf.reduce_sum(first(x) + second(x))

two = cloudpickle.dumps((second, sum_of_both, tf.grad(sum_of_both)))
sys.stdout.buffer.write(cloudpickle.dumps((one, two, lost)))
"""


def test_another_process_keeps_kernels_and_gradients_apart():
    """What travels has the kernel and gradient of when it was pickled, whatever has the name."""
    pytest.importorskip("cloudpickle")
    here = tf.primitive("Sent", lambda x: x - 1.0, replace=True)
    tf.RegisterGradient("Sent", replace=True)(lambda op, dy: dy * 0.5)
    done = subprocess.run([sys.executable, "-c", SENDER], capture_output=True, check=True)
    sent, two, lost = pickle.loads(done.stdout)
    first, again = pickle.loads(sent), pickle.loads(sent)
    assert again is first
    x = tf.constant(X)
    assert here(x).numpy().tolist() == [0.0, 1.0, 2.0]
    assert gradient(here, x)[0] == [0.5] * 3
    assert first(x).numpy().tolist() == [1.0, 4.0, 9.0]
    assert gradient(first, x)[0] == [10.0, 20.0, 30.0]
    second, both, slope = pickle.loads(two)
    assert second(x).numpy().tolist() == [1.0, 8.0, 27.0]
    assert gradient(second, x)[0] == [20.0, 40.0, 60.0]
    assert both(x).numpy() == 50.0
    np.testing.assert_allclose(tf.jacobian(tf.grad(second_order(second)))(x), 20.0 * np.eye(3))
    # the first one has the name's gradient as it was when this was pickled, as in its own process
    np.testing.assert_array_equal(slope(X), 40.0 * X)
    assert pickle.loads(pytest.importorskip("cloudpickle").dumps(second)) is second
    with pytest.raises(LookupError, match="No gradient defined for operation 'SentWithout'"):
        tf.grad(lambda x: tf.reduce_sum(pickle.loads(lost)(x)))(x)


def second_order(op):
    return lambda x: tf.reduce_sum(op(x))


def test_pools_of_processes():
    """By name, as multiprocessing has it, and by value with joblib and dask."""
    expected = [103.0 * X**2, 103.0 * (2 * X) ** 2]
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for results in (pool.map(slope, [X, 2 * X]), pool.map(named_function, [151.5, 2.0])):
            for result, other in zip(
                results, expected if results[0].ndim else [303.0, 4.0], strict=True
            ):
                np.testing.assert_allclose(result, other)
        np.testing.assert_allclose(pool.map(tf.grad(sum_of_cubes), [X])[0], 3.0 * X**2)


def local_slope():
    op = tf.primitive("TravelPool", lambda x: x**2, replace=True)
    tf.RegisterGradient("TravelPool", replace=True)(lambda op, dy: 9.0 * dy * op.inputs[0])
    return tf.grad(tf.function(lambda x: tf.reduce_sum(op(x) * 2.0)))


def test_joblib():
    joblib = pytest.importorskip("joblib")
    slope = local_slope()
    with joblib.parallel_config(backend="loky", n_jobs=2):
        results = joblib.Parallel()(joblib.delayed(slope)(x) for x in (X, 2 * X))
    np.testing.assert_array_equal(results, [18.0 * X, 36.0 * X])
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


def test_dask():
    dask = pytest.importorskip("dask")
    slope = local_slope()
    tasks = [dask.delayed(slope)(x) for x in (X, 2 * X)]
    results = dask.compute(*tasks, scheduler="processes", num_workers=1)
    np.testing.assert_array_equal(results, [18.0 * X, 36.0 * X])
