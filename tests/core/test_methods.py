"""Methods that NumPy's arrays have, on tensors and Variables: NumPy's numbers and dtypes."""

import subprocess
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp

CASES = """
x.all()
x.all(1, keepdims=True)
x.any(axis=0)
x.argmax()
x.argmin(1)
x.argpartition(1)[0]
x.argsort(0)
x.astype(float)
x.astype(int)
x.astype("float32", copy=False)
x.choose([x, x + x], mode="clip")
x.clip(2, 5)
x.clip(max=3)
x.compress([True, False, True], 1)
x.compress([True, False, True])
x.conj()
x.conjugate()
x.copy()
x.cumprod(1)
x.cumsum()
x.diagonal(1)
x.dot(x.T)
x.flatten()
x.flatten("F")
x.imag
x.item(1, 2)
x.itemsize
x.max(0)
x.max(initial=9, where=x > 2)
x.mean()
x.mean(1, None, None, True)
x.min(1, keepdims=True)
x.mT
x.nbytes
x.nonzero()
x.prod()
x.ravel(order="F")
x.real
x.repeat(2, axis=1)
x.reshape(-1)
x.reshape(3, -1, order="F")
x.reshape((1, 6), copy=True)
x.round()
x.round(-1)
x.ravel().searchsorted([2, 3])
x.reshape(1, 2, 3).squeeze()
x.std(ddof=1)
x.std(1, where=x > 0)
x.sum()
x.sum(1, keepdims=True)
x.sum(initial=3, where=x > 0)
x.swapaxes(0, 1)
x.take([1, 0], 1)
x.take([7], mode="wrap")
x.tolist()
x.trace()
x.trace(1)
x.transpose(1, 0)
x.var()
x.var(1, ddof=1)
x.T
""".strip().splitlines()
# What differs: in place (fill, put, resize, byteswap, setfield; sort and partition return the
# result), or about memory, which has no place in a tensor.
ABSENT = {
    *("fill", "put", "resize", "byteswap", "setfield", "setflags", "getfield", "view"),
    *("base", "ctypes", "data", "flags", "flat", "strides", "dump", "dumps", "tofile"),
}
REMOVED = {"itemset", "newbyteorder", "ptp", "tostring"}  # NumPy up to 2.2 still lists them
FOR_COMPLEX = (
    "x.co",
    "x.cum",
    "x.diag",
    "x.dot",
    "x.fl",
    "x.imag",
    "x.mean",
    "x.prod",
    "x.re",
    "x.s",
    "x.t",
)
ARRAYS = (
    np.array([[1, 5, 2], [4, 3, 6]], np.uint8),
    np.array([[True, False, True], [True, True, False]]),
    np.array([[1.5, 5.25, 2.0], [4.0, 3.75, 0.5]], np.float32),
    np.array([[1.5, -5.25, 2.0], [4.0, 0.0, -0.5]], np.float64),
    np.array([[1.5 + 1j, 5.25, 2j], [1j, -2.0, 3.0]], np.complex128),
)


def _flat(result):
    return [np.asarray(value) for value in (result if isinstance(result, tuple) else [result])]


@pytest.mark.parametrize("case", CASES)
def test_methods_are_numpys(case):
    """docs/behaviour.md, decision 22: `.mean()` of integers is no integer."""
    compared = 0
    for array in ARRAYS:
        if array.dtype == complex and (not case.startswith(FOR_COMPLEX) or ">" in case):
            continue  # complex numbers have no order
        if array.dtype == bool and "round" in case:
            continue  # NumPy makes float16 of them
        try:
            expected = _flat(eval(case, {"x": array}))
        except (TypeError, IndexError):
            continue  # not for this dtype
        for x in (tf.constant(array), tf.Variable(array, trainable=False)):
            result = _flat(eval(case, {"x": x}))
            assert [result.dtype for result in result] == [value.dtype for value in expected]
            for actual, other in zip(result, expected, strict=True):
                np.testing.assert_allclose(actual, other, rtol=1e-6)
        compared += 1
    assert compared >= 2


@pytest.mark.quick
def test_all_methods_that_make_sense_are_there():
    own = set(dir(tf.constant(0.0)))  # the class has more: names that say what to use instead
    missing = {name for name in dir(np.ndarray) if not name.startswith("_")} - own
    assert missing - REMOVED == ABSENT
    assert "__array_namespace__" in dir(tf.Tensor)


@pytest.mark.quick
def test_sorted_tensors_are_returned():
    """As in JAX: NumPy sorts in place, which tensors cannot be."""
    x = tf.constant([3.0, 1.0, 2.0])
    assert x.sort().numpy().tolist() == [1.0, 2.0, 3.0]
    assert x.partition(1).numpy()[1] == 2.0
    assert x.numpy().tolist() == [3.0, 1.0, 2.0]


@pytest.mark.quick
def test_casts_that_a_rule_forbids():
    x = tf.constant([1.5])
    assert x.astype(np.float64, casting="safe").dtype == np.float64
    with pytest.raises(TypeError, match="float32 cannot be cast to int64 by the rule 'safe'"):
        x.astype(int, casting="safe")


def test_methods_are_differentiated():
    def f(x):
        rows = x.reshape(2, 2).swapaxes(0, 1).round(0) + x.flatten().take([0, 1]).clip(-9, 9)
        spread = x.std() * x.var() + x.ravel().dot(x.copy()) + x.cumsum().prod() * x.mean()
        return rows.squeeze().sum() * spread + x.repeat(2).max() - x.real.min() + x.imag.sum()

    x = tf.constant(np.array([0.3, -0.8, 1.1, 0.45]))
    step = np.array([2e-6, -1e-6, 1e-6, 3e-6])
    for g in (f, lambda x: tf.reduce_sum(tf.grad(f)(x) ** 2)):
        slope = float(tf.reduce_sum(tf.grad(g)(x) * step))
        assert slope == pytest.approx(float(g(x + step / 2) - g(x - step / 2)), rel=1e-5)
    np.testing.assert_allclose(tf.function(tf.grad(f))(x), tf.grad(f)(x), rtol=1e-12)
    np.testing.assert_allclose(tf.vmap(f)(tf.stack([x, 2 * x])), [f(x), f(2 * x)], rtol=1e-12)


@pytest.mark.quick
def test_the_first_call_loads_the_functions():
    program = """
import tinygrad_cg as tf
x = tf.constant([1, 2, 4])
print(x.sum().numpy().dtype, x.compress([0, 1, 1]).numpy(), x.__array_namespace__().__name__)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["int64", "[2", "4]", "tinygrad_cg.numpy"]


@pytest.mark.quick
def test_methods_are_documented_before_they_are_called():
    program = (
        "import tinygrad_cg as tf; print(tf.Tensor.sum.__doc__); print(tf.Variable.mean.__doc__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip()
    assert "None" not in done.stdout.split("\n")


def test_a_function_of_numpy_computes_in_float64():
    """Issue: `grad(np.sin)(1.0)` computed in float32, `tinygrad_cg.numpy.sin(1.0)` in float64."""
    slope = np.cos(1.0)
    for function in (np.sin, tnp.sin):
        for gradient in (
            tf.grad(function)(1.0),
            tf.value_and_grad(function)(1.0)[1],
            tf.vjp(function, 1.0)[1](1.0)[0],
            tf.jvp(function, (1.0,), (1.0,))[1],
            tf.jacobian(function)(1.0),
            tf.grad(tf.grad(tf.grad(function)))(1.0) * -1,
        ):
            assert gradient.dtype == np.float64
            assert float(gradient) == pytest.approx(slope, rel=1e-15)
    norm = tf.grad(tnp.linalg.norm)([3.0, 4.0])
    assert [slope.dtype for slope in norm] == [np.float64] * 2
    assert tf.grad(tf.sin)(1.0).dtype == np.float32
