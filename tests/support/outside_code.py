"""Outside code of each kind: one function in NumPy, by all ways to write it and its derivatives."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tests.support.transforms import Exact

IDENTITY = np.eye(3)
CUBIC = Exact(
    lambda x: x * np.sum(x**3),
    lambda x: np.sum(x**3) * IDENTITY + 3 * np.outer(x, x**2),
    lambda x: (
        3 * np.einsum("ij,k->ijk", IDENTITY, x**2)
        + 3 * np.einsum("ik,j->ijk", IDENTITY, x**2)
        + 6 * np.einsum("i,j,jk->ijk", x, x, IDENTITY)
    ),
)
"""x * sum(x**3), and its derivatives."""


def cubic(x):
    return x * tf.reduce_sum(x**3)


def array_cubic(x):
    assert type(x) is np.ndarray
    return x * np.sum(x**3)


def array_vjp(dy, x):
    return np.sum(x**3) * dy + 3 * x**2 * np.sum(dy * x)


def array_jvp(way, x):
    return np.sum(x**3) * way + x * np.sum(3 * x**2 * way)


def array_vjp2(dy, way, x):
    first = np.sum(dy * way) * 3 * x**2 + dy * np.sum(3 * x * x * way)
    return first + np.sum(dy * x) * 6 * x * way


def array_jvp2(way, u, x):
    first = np.sum(3 * x * x * u) * way + u * np.sum(3 * x * x * way)
    return first + x * np.sum(6 * x * way * u)


def on_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays as one of tensors, which asks for their values."""

    @functools.wraps(function)
    def call(*tensors):
        return tf.constant(function(*[np.asarray(tensor.numpy()) for tensor in tensors]))

    return call


def as_operation(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*tensors):
        return tf.numpy_function(function, tensors, tf.float64)

    return call


def by_products(wrap: Callable[..., Any], **products: Any) -> Callable[..., Any]:
    wrapped = {name: [wrap(part) for part in parts] for name, parts in products.items()}
    return tf.custom_derivatives(wrap(array_cubic), **wrapped)


def by_custom_gradients():
    """A rule whose rules are rules, each in arrays."""

    @tf.custom_gradient
    def vjp(dy, x):
        def rule(u):
            second = tf.numpy_function(array_vjp2, [dy, u, x], tf.float64)
            return tf.numpy_function(array_jvp, [u, x], tf.float64), second

        return tf.numpy_function(array_vjp, [dy, x], tf.float64), rule

    @tf.custom_gradient
    def f(x):
        return tf.numpy_function(array_cubic, [x], tf.float64), lambda dy: vjp(dy, x)

    return f


def by_rules_in_numpy(in_numpy):
    """The same with values taken in the rules; or in the function, too."""

    @tf.custom_gradient
    def vjp(dy, x):
        def rule(u):
            dy_, u_, x_ = np.asarray(dy), u.numpy(), x.numpy()
            return tf.constant(array_jvp(u_, x_)), array_vjp2(dy_, u_, x_)

        return tf.constant(array_vjp(dy.numpy(), x.numpy())), rule

    @tf.custom_gradient
    def f(x):
        y = tf.constant(array_cubic(np.asarray(x.numpy()))) if in_numpy else cubic(x)
        return y, lambda dy: vjp(dy, x)

    return f


def by_primitives():
    tf.RegisterGradient("OutsideCubic", replace=True)(lambda op, dy: vjp(dy, *op.inputs))

    @tf.RegisterGradient("OutsideCubicVjp", replace=True)
    def second(op, u):
        dy, x = op.inputs
        return jvp(u, x), vjp2(dy, u, x)

    jvp = tf.primitive("OutsideCubicJvp", array_jvp, replace=True)
    vjp2 = tf.primitive("OutsideCubicVjp2", array_vjp2, replace=True)
    vjp = tf.primitive("OutsideCubicVjp", array_vjp, replace=True)
    return tf.primitive("OutsideCubic", array_cubic, shape=lambda x: x.shape, replace=True)


def by_python():
    def python(x):
        assert isinstance(x, tf.Tensor)
        assert type(x._data) is np.ndarray
        return cubic(x)

    return lambda x: tf.py_function(python, [x], tf.float64)


VJPS, JVPS = [array_vjp, array_vjp2], [array_jvp, array_jvp2]
KINDS = {
    "vjps": lambda: by_products(on_values, vjp=VJPS),
    "jvps": lambda: by_products(on_values, jvp=JVPS),
    "vjps and jvps": lambda: by_products(on_values, vjp=VJPS, jvp=JVPS),
    "vjps of numpy_function": lambda: by_products(as_operation, vjp=VJPS),
    "all of numpy_function": lambda: by_products(as_operation, vjp=VJPS, jvp=JVPS),
    "numpy_function": by_custom_gradients,
    "rules in NumPy": lambda: by_rules_in_numpy(False),
    "value and rules in NumPy": lambda: by_rules_in_numpy(True),
    "py_function": by_python,
    "primitive": by_primitives,
}
