"""Part three: a wrong rule, found by `check_gradients` and drawn by `show`."""

import inspect
import warnings

import tinygrad_cg as tf
from tinygrad_cg._tour.console import code, heading, lines, say


# x**3, with a rule that is right at order 1 and loses a path at order 2; the report shows its text.
@tf.custom_gradient
def op(x):
    @tf.custom_gradient
    def grad_fn(dy):
        def grad_grad_fn(ddy):
            return 3 * x**2 * ddy

        return 3 * x**2 * dy, grad_grad_fn

    return x**3, grad_fn


def show() -> None:
    heading("3. A wrong rule: found, explained, drawn")
    say(
        """Example 1 of part 2 once more, now with the correct derivative with respect to dy.
        Order 1 is right; only order 2 shows the mistake:"""
    )
    code(inspect.getsource(op).replace("\n\n", "\n"))
    say(
        """tf.check_gradients(op, 2.0) compares each order with numerical references,
        explains the mistake, and proposes a correct rule:"""
    )
    lines(str(tf.check_gradients(op, 2.0)))
    say(
        """tf.show(outer, inner) draws the records of two nested tapes: as a picture in a
        notebook, as text elsewhere; .save("path.svg") writes a file. The derivative
        "uses x, but is not differentiated with respect to it": order 2 loses this path."""
    )
    lines(picture())


def picture() -> str:
    """Return what the tapes of a second derivative have recorded, as lines of text."""
    x = tf.constant(2.0)
    with warnings.catch_warnings(), tf.GradientTape() as outer:
        warnings.simplefilter("ignore", tf.CustomGradientWarning)
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.square(op(x))
        gradient = inner.gradient(y, x)
    names = {"outer": outer, "inner": inner, "x": x, "y": y, "gradient": gradient}
    return str(tf.show(outer, inner, names=names))
