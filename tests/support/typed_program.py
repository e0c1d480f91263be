"""A program of a user, with annotations: pyright accepts it in strict mode, and it runs.

`assert_type` fails in pyright where a type is not the one that is named.
"""

# pyright: strict

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tinygrad_cg.keras import ops

Rule = Callable[[tf.Tensor], tf.Tensor]


@tf.custom_gradient
def log1pexp(x: tf.Tensor) -> tuple[tf.Tensor, Rule]:
    e = tf.exp(x)

    def grad(upstream: tf.Tensor) -> tf.Tensor:
        return upstream * (1 - 1 / (1 + e))

    return tf.math.log(1 + e), grad


@tf.custom_gradient(max_order=2)
def clipped(x: tf.Tensor) -> tuple[tf.Tensor, Rule]:
    return tf.identity(x), lambda dy: tf.clip_by_value(dy, -1, 1)


class Scaled:
    def __init__(self) -> None:
        self.factor = tf.Variable(2.0, name="factor")

    @tf.function
    def scale(self, x: tf.Tensor, times: int = 1) -> tf.Tensor:
        return x * self.factor * times

    @tf.custom_gradient
    def double(self, x: tf.Tensor) -> tuple[tf.Tensor, Rule]:
        return 2 * x, lambda dy: 2 * dy


@tf.function
def compiled(x: tf.Tensor, scale: float = 1.0) -> tuple[tf.Tensor, tf.Tensor]:
    return tf.sin(x) * scale, tf.reduce_sum(x, axis=0, keepdims=True)


@tf.function(jit_compile=True)
def loss(w: tf.Tensor) -> tf.Tensor:
    return tf.reduce_sum(tf.tanh(w) ** 2)


def tensors() -> None:
    x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    assert_type(x, tf.Tensor)
    assert_type(tf.exp(x), tf.Tensor)
    assert_type(tf.math.softplus(x), tf.Tensor)
    assert_type(tf.reduce_mean(x, axis=[0, 1], keepdims=True), tf.Tensor)
    assert_type(x + 1, tf.Tensor)
    assert_type(1.0 / x - x**2 @ x, tf.Tensor)
    assert_type(-x, tf.Tensor)
    assert_type(x[0, ..., None], tf.Tensor)
    assert_type(x > 2, tf.Tensor)
    assert_type(x == 2, tf.Tensor)
    assert_type(x.T.sum(axis=0), tf.Tensor)
    assert_type(x.reshape(-1).astype(tf.float64), tf.Tensor)
    assert_type(x.ndim, int)
    assert_type(float(x[0, 0]), float)
    assert_type(tf.split(x, 2), list[tf.Tensor])
    assert_type(tf.where(x > 2, x, 0.0), tf.Tensor)
    assert_type(tf.concat([x, [[1.0, 2.0]]], axis=0), tf.Tensor)
    assert_type(tf.linalg.matmul(x, x, transpose_b=True), tf.Tensor)
    assert_type(tf.nn.softmax_cross_entropy_with_logits(labels=x, logits=x), tf.Tensor)
    assert_type(tf.random.normal((2, 3), seed=1), tf.Tensor)
    assert_type(tf.cast(x, "float64"), tf.Tensor)
    assert_type(tf.zeros((2, 2), tf.int32), tf.Tensor)
    assert_type(tf.einsum("ij,jk->ik", x, x), tf.Tensor)
    assert_type(list(x), list[tf.Tensor])
    assert_type(x.shape.as_list(), list[int])
    assert_type(tf.is_tensor(x), bool)


def namespaces() -> None:
    assert_type(tnp.linspace(0, 1, 5), tf.Tensor)
    assert_type(tnp.linalg.norm([3.0, 4.0]), tf.Tensor)
    assert_type(tnp.mean(np.ones((2, 3)), axis=1), tf.Tensor)
    assert_type(tnp.median([1.0, 2.0, 4.0]), tf.Tensor)
    assert_type(tnp.shape([1, 2]), tuple[int, ...])
    assert_type(ops.relu(tf.constant([-1.0, 1.0])), tf.Tensor)
    assert_type(ops.multiply(2, ops.convert_to_tensor([1.0])), tf.Tensor)
    assert_type(ops.shape(np.ones(3)), tuple[int, ...])


def variables() -> None:
    v = tf.Variable([1.0, 2.0], dtype=tf.float32)
    assert_type(v, tf.Variable)
    assert_type(v * 2, tf.Tensor)
    assert_type(v.assign_add([1.0, 1.0]), tf.Variable)
    assert_type(v[0] + 1, tf.Tensor)
    assert_type(v[0].assign(5.0), tf.Variable)
    assert_type(v.trainable, bool)
    optimizer = tf.optimizers.Adam(learning_rate=0.1)
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(v * v)
    gradients: list[tf.Tensor] = tape.gradient(value, [v])
    optimizer.apply_gradients(zip(gradients, [v], strict=True))
    assert_type(tf.optimizers.SGD(0.1).variables, list[tf.Variable])


def derivatives() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert_type(y, tf.Tensor)
    assert_type(clipped(x), tf.Tensor)
    tape.gradient(y, x, output_gradients=tf.ones_like(y))
    tape.jacobian(y, x)
    assert_type(tape.watched_variables(), tuple[tf.Variable, ...])
    tf.grad(loss)(x)
    tf.value_and_grad(loss)(x)
    tf.hessian(loss)(x)
    value, pull = tf.vjp(loss, x)
    pull(tf.ones_like(value))
    value, tangent = tf.jvp(loss, (x,), (x,))
    value, linear = tf.linearize(loss, x)
    linear(x)
    tf.vmap(log1pexp, in_axes=0)(x)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = tf.sin(x)
    accumulator.jvp(y)
    tf.check_gradients(loss, x)
    assert_type(tf.recompute_grad(loss)(x), tf.Tensor)
    assert_type(tf.stop_gradient(tangent), tf.Tensor)
    with tf.Graph().as_default():
        assert_type(tf.gradients(tf.square(x), [x]), list[Any])


def functions() -> None:
    x = tf.constant([1.0, 2.0])
    assert_type(compiled(x, scale=2.0), tuple[tf.Tensor, tf.Tensor])
    assert_type(loss(x), tf.Tensor)
    assert_type(loss.kernels(x), list[str])
    assert_type(Scaled().scale(x, times=2), tf.Tensor)
    assert_type(Scaled().double(x), tf.Tensor)


PROGRAMS = [tensors, namespaces, variables, derivatives, functions]
