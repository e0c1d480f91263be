"""Custom gradients to draw, and how to find things in a picture."""

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


def find(picture, operation=None, name=None):
    """The one item with this operation, or name."""
    found = [
        item
        for item in picture.items
        if operation in (None, item.operation) and name in (None, item.name)
    ]
    assert len(found) == 1, found
    return found[0]


def frame(picture, name):
    (found,) = [one for one in picture.frames if one.name == name]
    return found
