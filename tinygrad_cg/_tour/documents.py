"""Part one: the examples of the custom gradient documents, where NaN becomes 1.0."""

import tinygrad_cg as tf
from tinygrad_cg._tour.console import heading, number, say, table
from tinygrad_cg._tour.custom_rules import derivative, log1pexp, naive_log1pexp, softplus

ORDERS = range(4)


@tf.custom_gradient
def bar(x, y):
    """Return the documents' function of two arguments."""

    def grad(upstream):
        return upstream * y, upstream * x

    return x * y, grad


def gradient_in_graph(function, value: float):
    """Return the gradient as the documents ask for it: tf.gradients, inside a Graph."""
    with tf.Graph().as_default():
        x = tf.constant(value)
        return tf.gradients(function(x), x)[0]


def orders(function, value: float) -> list[str]:
    """Return the function and its derivatives at a point, each as text."""
    return [number(derivative(function, order)(tf.constant(value))) for order in ORDERS]


def show() -> None:
    heading("1. A gradient that was NaN")
    naive, ruled = (gradient_in_graph(f, 100.0) for f in (naive_log1pexp, log1pexp))
    say(
        """This is the first example in the documentation of tf.custom_gradient and
        keras.ops.custom_gradient:"""
    )
    say(
        f"""log(1 + exp(x)) at x = 100, float32: exp overflows, and the gradient by the
        chain rule, inf / inf, is {number(naive)}. With the documents' custom rule,
        dy * (1 - 1 / (1 + e)), it is {number(ruled)}."""
    )
    functions = (naive_log1pexp, log1pexp, softplus)
    names = ("as written", "the documents' rule", "a rule for every order")
    rows = [
        (f"{name}, x = {point:g}", *orders(function, point))
        for point in (1.0, 100.0)
        for name, function in zip(names, functions, strict=True)
    ]
    table(("log(1 + exp(x))", *("value" if n == 0 else f"order {n}" for n in ORDERS)), rows)
    say(
        """Order 2 differentiates the rule. The documents' rule is right at order 1, but its
        derivative is 0 * inf. The operations in the rule of the third function, softplus,
        cannot overflow: dy * sigmoid(x). Part 4 uses it."""
    )
    x, y = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = bar(x, y)
    say("Two arguments need two gradients: z = bar(x, y) is x * y.")
    by_x, by_y = (number(tape.gradient(z, source)) for source in (x, y))
    rows = [("z", number(z)), ("tape.gradient(z, x)", by_x), ("tape.gradient(z, y)", by_y)]
    table(("x = 2, y = 3", "value"), rows)
