"""Decision 15: values of tensors that only decide what is computed are no lost derivative."""

import logging
import sys
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


def halved(x):
    while float(x) > 1.0:
        x = x * 0.5
    return x * x


def bounded(x):
    while abs(float(x)) - 1 > 0.0:
        x = x * 0.5
    return x * x


def branched(x):
    return x * x if x.numpy() > 1.0 and not x.item() > 9.0 else x


def truthful(x):
    if x:
        x = x * x
    assert x, "zero"
    zero = not x
    return -x if zero else x


def counted(x):
    for _ in range(int(x)):
        x = 2.0 * x
    return x


def chosen(x):
    return x * len([i for i in (1, 2, 3) if i < float(x)])


def formatted(x):
    text = f"{float(x):.2f} {x} {x:.3f}"
    return x * x if text else x


LOGGER = logging.getLogger("test")


def printed(x):
    LOGGER.info("loss %s", float(x))
    sys.stderr.write("{:.3f}".format(x))  # noqa: UP032
    text = "%.3f" % x + "%s %.3f" % (1, float(x))  # noqa: UP031
    assert text
    print(round(float(x), 3), x.numpy(), file=sys.stderr)
    return x * x if str(float(x)) else x


def asked(x):
    assert np.shape(x) == ()
    assert np.allclose(x, x)
    assert np.result_type(x, 1.0) == np.float32
    return x * x * np.size(x) * (1 + np.ndim(x))


def compared(x):
    large = x.numpy() > 1.0
    return x * x * float(large)


@pytest.mark.parametrize(
    ("f", "x", "first", "second"),
    [
        (halved, 3.0, 2 * 3.0 / 16, 2 / 16),
        (bounded, 3.0, 2 * 3.0 / 16, 2 / 16),
        (branched, 3.0, 6.0, 2.0),
        (truthful, 3.0, 6.0, 2.0),
        (counted, 2.0, 4.0, 0.0),
        (chosen, 2.5, 2.0, 0.0),
        (formatted, 3.0, 6.0, 2.0),
        (printed, 3.0, 6.0, 2.0),
        (asked, 3.0, 6.0, 2.0),
        (compared, 3.0, 6.0, 2.0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_no_false_alarm(f, x, first, second):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(tf.grad(f)(x)) == first
        assert float(tf.grad(tf.grad(f))(x)) == second
        if f is halved:
            assert tf.check_gradients(f, x).ok is not False


def test_no_false_alarm_inside_a_rule():
    @tf.custom_gradient
    def square(x):
        def grad(dy):
            return 2 * x * dy if float(x) > 0.0 else 2.0 * x * dy

        return x * x, grad

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(tf.grad(tf.grad(square))(3.0)) == 2.0


def test_no_false_alarm_at_the_order_that_a_rule_serves():
    """Issue: a rule of NumPy code is right at first order, and loses the second."""

    @tf.custom_gradient
    def sine(x):
        return np.sin(x.numpy()), lambda dy: dy * np.cos(x.numpy())

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert float(tf.grad(sine)(0.5)) == pytest.approx(np.cos(0.5), rel=1e-6)
        assert float(tf.jacobian(sine)(0.5)) == pytest.approx(np.cos(0.5), rel=1e-6)
        with tf.GradientTape() as tape:
            x = tf.Variable(0.5)
            y = sine(x)
        assert float(tape.gradient(y, x)) == pytest.approx(np.cos(0.5), rel=1e-6)
    with pytest.warns(tf.CustomGradientWarning, match="takes NumPy or Python values"):
        tf.grad(tf.grad(sine))(0.5)


def test_shapes_have_no_values():
    """Issue: `np.shape(x)` warned, and was an error in a `vmap` or a `function`."""

    def f(x):
        return tf.reduce_sum(x) * np.shape(x)[0] * np.ndim(x) * np.size(x)

    x = tf.constant([1.0, 2.0, 3.0])
    assert float(tf.function(f)(x)) == float(f(x)) == 54.0
    assert tf.vmap(f)(tf.stack([x, x])).numpy().tolist() == [54.0, 54.0]


def copied(x):
    target = np.zeros(())
    np.copyto(target, x)
    return x * target


def multiplied(x):
    while float(x) > 1.0:
        x = x * float(x) ** -2.0
    return x


def walrus(x):
    while (value := float(x)) > 4.0:
        x = x * 0.5
    return x * value


def stored(x):
    scale = float(x)
    return x * scale


def called(x):
    return x * max(float(x), 1.0)


@pytest.mark.parametrize("f", [multiplied, walrus, stored, called, copied])
def test_values_that_are_used_warn_still(f):
    with pytest.warns(tf.CustomGradientWarning, match="takes NumPy or Python values"):
        tf.grad(f)(3.0)


def test_without_the_source_it_warns():
    space = {}
    exec(compile("def f(x):\n    return x if float(x) > 1. else -x", "<no file>", "exec"), space)
    with pytest.warns(tf.CustomGradientWarning, match="takes NumPy or Python values"):
        tf.grad(space["f"])(3.0)
