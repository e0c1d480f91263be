"""Custom gradients to draw, and how to find things in a picture."""

import numpy as np

import tinygrad_cg as tf


@tf.custom_gradient
def wrapped(x):
    def grad_fn(dy):
        @tf.custom_gradient
        def slope(x):
            def curvature(ddy):
                return 6 * x * ddy

            return 3 * x**2, curvature

        return dy * slope(x)

    return x**3, grad_fn


@tf.custom_gradient
def decorated(x):
    @tf.custom_gradient
    def grad_fn(dy):
        def grad_grad_fn(ddy):
            return 3 * x**2 * ddy

        return 3 * x**2 * dy, grad_grad_fn

    return x**3, grad_fn


def nested(op):
    """The picture of a gradient under another tape."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = op(x)
            z = tf.square(y)
        g = inner.gradient(z, x)
    return tf.show(z, g)


def third_order():
    """The picture of two gradients under another tape: examples/third_order.svg."""
    x = tf.constant(0.5)
    with tf.GradientTape() as first:
        first.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as third:
                third.watch(x)
                y = tf.tanh(x)
            d1 = third.gradient(y, x)
        d2 = second.gradient(d1, x)
    return tf.show(y, d1, d2, dtype=False)


class Dense(tf.Module):
    """A layer."""

    def __init__(self, inputs, outputs, activation):
        super().__init__()
        self.w = tf.Variable(np.full((inputs, outputs), 1 / inputs, "f"))
        self.b = tf.Variable(np.zeros(outputs, "f"))
        self.activation = activation

    def __call__(self, x):
        return self.activation(x @ self.w + self.b)


class Network(tf.Module):
    """Three layers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = Dense(4, 8, tf.tanh), Dense(8, 8, tf.nn.relu)
        self.third = Dense(8, 2, lambda x: x)

    def __call__(self, x):
        return self.third(self.second(self.first(x)))


def network():
    """The picture of a network and a step of its optimizer: examples/network.svg."""
    net, sgd = Network(), tf.optimizers.SGD(0.1)
    x, target = tf.ones((5, 4)), tf.zeros((5, 2))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(tf.square(net(x) - target))
    variables = net.trainable_variables
    sgd.apply(tape.gradient(loss, variables), variables)
    return tf.show(loss, tape, sgd, dtype=False)


def find(picture, operation=None, name=None):
    """The one item with this operation, or name."""
    items = [
        item
        for item in picture.items
        if operation in (None, item.operation) and name in (None, item.name)
    ]
    assert len(items) == 1, items
    return items[0]


def frame(picture, name):
    (group,) = [frame for frame in picture.frames if frame.name == name]
    return group


def constants(item):
    return [operand.title for operand in item.operands if operand.kind == "constant"]


def groups(picture, kind):
    return [group for group in picture.groups if group.kind == kind]
