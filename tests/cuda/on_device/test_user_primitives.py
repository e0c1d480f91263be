"""Primitives of a program's own on the simulated device: numbers, gradients, what is refused."""

import math
import sys

import numba
import numpy as np
import pytest
from numba import cuda

import tinygrad_cg as tf
from tests.array_code.scalar_functions import CASES
from tests.support.compiled import orders
from tinygrad_cg.errors import DeviceError


@cuda.jit
def scaled_square(x, out, factor):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] * x[i] * factor


@cuda.jit
def sum_and_difference(x, y, total, difference):
    for i in range(cuda.grid(1), total.size, cuda.gridsize(1)):
        total[i] = x[i] + y[i]
        difference[i] = x[i] - y[i]


def _scaled(name, **options):
    operation = tf.primitive(
        name,
        kernel=lambda x, factor: x * x * factor,
        shape=lambda x, factor: x.shape,
        cuda=scaled_square,
        replace=True,
        **options,
    )

    @tf.RegisterGradient(name, replace=True)
    def _(op, dy):
        return 2 * op.get_attr("factor") * op.inputs[0] * dy

    return operation


def both_devices(function, *arrays):
    """Results on the processor, and on the device, as NumPy's arrays."""
    here = function(*[tf.constant(array) for array in arrays])
    there = function(*[tf.constant(array).gpu() for array in arrays])
    assert {leaf.device for leaf in tf.nest.flatten(there)} == {"gpu:0"}
    return [[leaf.cpu().numpy() for leaf in tf.nest.flatten(part)] for part in (here, there)]


def test_a_cuda_kernel_has_the_gradients_of_the_primitive():
    square = _scaled("CudaSquare")

    def derivatives(x):
        return orders(lambda x: square(x, factor=3.0), x, 2)

    for function in (derivatives, tf.function(derivatives)):
        here, there = both_devices(function, np.arange(600.0))
        np.testing.assert_array_equal(here, there)
        np.testing.assert_array_equal(there[0], 3 * np.arange(600.0) ** 2)


def test_a_cuda_kernel_with_several_results_and_its_configuration():
    operation = tf.primitive(
        "CudaSums",
        kernel=lambda x, y: (x + y, x - y),
        shape=lambda x, y: [x.shape, x.shape],
        cuda=(sum_and_difference, (2, 3)),
        replace=True,
    )
    here, there = both_devices(operation, np.arange(7.0), np.ones(7))
    np.testing.assert_array_equal(here, there)


def test_a_configuration_may_follow_from_the_inputs():
    seen = []

    def configure(x, y):
        seen.append((x.shape, y.dtype))
        return 1, x.shape[0]

    operation = tf.primitive(
        "CudaConfigured",
        kernel=lambda x, y: (x + y, x - y),
        shape=lambda x, y: [x.shape, x.shape],
        cuda=(sum_and_difference, configure),
        replace=True,
    )
    here, there = both_devices(operation, np.arange(4.0), np.ones(4))
    np.testing.assert_array_equal(here, there)
    assert seen == [((4,), np.float64)]


def test_strided_inputs_come_in_order_and_empty_ones_launch_nothing():
    square = _scaled("CudaStrided")
    x = tf.constant(np.arange(12.0).reshape(3, 4)).gpu()
    got = square(tf.transpose(x)[:, 1], factor=1.0)
    np.testing.assert_array_equal(got.cpu().numpy(), np.arange(4.0, 8.0) ** 2)
    assert square(tf.zeros(0).gpu(), factor=1.0).shape == (0,)


def test_a_function_of_numbers_runs_on_both_devices():
    operation = tf.primitive(
        "CudaBell", kernel=lambda x, y: math.exp(-x * y), elementwise=True, replace=True
    )

    @tf.RegisterGradient("CudaBell", replace=True)
    def _(op, dy):
        x, y = op.inputs
        return -y * operation(x, y) * dy, -x * operation(x, y) * dy

    def gradients(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            z = operation(x, y)
        return (z, *tape.gradient(z, [x, y]))

    for function in (gradients, tf.function(gradients)):
        here, there = both_devices(function, np.linspace(0, 1, 6).reshape(2, 3), np.arange(3.0))
        for want, got in zip(here, there, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-15)


def test_a_function_of_numbers_with_several_results():
    operation = tf.primitive(
        "CudaPair", kernel=lambda x: (x * x, x > 0.5), elementwise=True, replace=True
    )
    here, there = both_devices(operation, np.linspace(0, 1, 5))
    for want, got in zip(here, there, strict=True):
        assert want.dtype == got.dtype
        np.testing.assert_array_equal(want, got)


POINTS = {function.__name__: (function, points) for function, points, _ in CASES}
# iteration and calls, a table, arrays, tuples, several branches
SCALARS = ["kepler", "viscosity", "binomial_tree", "of_tuples_and_lists", "incomplete_gamma"]


@pytest.mark.parametrize("name", SCALARS)
def test_derivatives_from_the_source_of_a_function_of_numbers(name):
    function, points = POINTS[name]
    operation = tf.primitive(f"Cuda_{name}", function, elementwise=True, replace=True)
    last = len(points) - 1

    def derivatives(*xs):
        lower = [operation]
        for _ in range(3):
            lower.append(
                lambda *xs, f=lower[-1]: tf.grad(lambda *ys: tf.reduce_sum(f(*ys)), last)(*xs)
            )
        return [f(*xs) for f in lower]

    for function in (derivatives, tf.function(derivatives)):
        here, there = both_devices(function, *map(np.array, points))
        for want, got in zip(here, there, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-300)
    tangents = [np.ones(len(point)) for point in points]
    here, there = both_devices(
        lambda *both: tf.jvp(operation, both[: last + 1], both[last + 1 :]),
        *map(np.array, points),
        *tangents,
    )
    np.testing.assert_allclose(there, here, rtol=1e-12)
    assert operation(tf.constant(points[0][:1]).gpu(), *points[1:]).dtype == tf.float32


def test_arrays_of_a_function_of_numbers_are_in_the_memory_of_a_thread():
    """NVIDIA's compiler has no `np.empty`; the simulator would take it."""
    operation = tf.primitive("CudaTree", POINTS["binomial_tree"][0], elementwise=True, replace=True)
    kernel = operation.primitive.kernel.for_device()
    assert "cuda.local.array(13, np.float64)" in sys.modules[kernel.__module__].__text__


def test_a_kernel_of_numpy_runs_on_copies():
    def clear(x):
        y = np.cumsum(x, axis=0)
        x[...] = 0
        return y

    operation = tf.primitive("CudaNumpy", kernel=clear, replace=True)
    x = tf.constant([1.0, 2.0]).gpu()
    np.testing.assert_array_equal(operation(x).cpu().numpy(), [1.0, 3.0])
    np.testing.assert_array_equal(x.cpu().numpy(), [1.0, 2.0])


def test_what_a_kernel_gives_is_checked():
    x = tf.constant([1.0, 2.0]).gpu()
    host = tf.primitive("CudaHost", kernel=lambda x: np.zeros(2), replace=True)
    with pytest.raises(DeviceError, match=r"CudaHost: its kernel does not run on a GPU.*cuda="):
        host(x)
    compiled = tf.primitive("CudaNjit", kernel=numba.njit(lambda x: x * 2.0), replace=True)
    with pytest.raises(DeviceError, match=r"CudaNjit: its kernel does not run on a GPU.*cuda="):
        compiled(x)
    lacking = tf.primitive("CudaLacking", kernel=lambda x: np.spacing(x), replace=True)
    with pytest.raises(DeviceError, match=r"CudaLacking: its kernel does not run on a GPU.*cuda="):
        lacking(x)
    wrong = tf.primitive(
        "CudaWrong", kernel=lambda x: x + 1, shape=lambda x: (3,), elementwise=True, replace=True
    )
    with pytest.raises(ValueError, match="shape= gives"):
        wrong(x)


@pytest.mark.parametrize("error", [TypeError, AttributeError, NotImplementedError])
def test_mistakes_in_a_kernel_of_numpy_are_not_taken_for_a_missing_one(error):
    def mistaken(x):
        raise error("a mistake of the kernel")

    operation = tf.primitive("CudaMistake", kernel=mistaken, replace=True)
    with pytest.raises(error, match="a mistake of the kernel"):
        operation(tf.ones(2).gpu())


def test_attributes_have_the_names_of_parameters():
    operation = tf.primitive(
        "CudaNames",
        kernel=lambda x, scale: x * x * scale,
        shape=lambda x, scale: x.shape,
        cuda=scaled_square,
        replace=True,
    )
    with pytest.raises(TypeError, match=r"takes \(x, out, factor\), .* attributes \(scale\)"):
        operation(tf.ones(2).gpu(), scale=1.0)


def test_wrong_declarations():
    with pytest.raises(TypeError, match=r"decorate the function with @numba\.cuda\.jit"):
        tf.primitive("CudaBad", kernel=np.sin, shape=lambda x: x.shape, cuda=lambda x, out: None)
    with pytest.raises(TypeError, match=r"pass shape=, a function of the inputs"):
        tf.primitive("CudaBad", kernel=np.sin, cuda=scaled_square)
    with pytest.raises(TypeError, match=r"must be \(blocks, threads\), got 7"):
        tf.primitive("CudaBad", kernel=np.sin, shape=lambda x: x.shape, cuda=(scaled_square, 7))
    with pytest.raises(TypeError, match=r"a pair \(kernel, configuration\), got 3 values"):
        tf.primitive("CudaBad", kernel=np.sin, shape=lambda x: x.shape, cuda=(scaled_square, 1, 1))
