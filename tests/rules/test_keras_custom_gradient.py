"""docs/behaviour.md 3: keras.ops.custom_gradient with all three upstream conventions."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, numbers
from tinygrad_cg.keras import ops


def log1pexp(make_rule):
    @ops.custom_gradient
    def f(x):
        e = ops.exp(x)

        def slope(upstream):
            return ops.multiply(upstream, 1.0 - 1.0 / ops.add(1, e))

        return ops.log(1 + e), make_rule(slope)

    return f


def optional_upstream(slope):
    """The backend-agnostic form."""

    def grad(*args, upstream=None):
        if upstream is None:
            (upstream,) = args
        return slope(upstream)

    return grad


def positional_upstream(slope):
    """The form for JAX and TensorFlow."""

    def grad(upstream):
        return slope(upstream)

    return grad


def required_upstream(slope):
    """The form for PyTorch."""

    def grad(*args, upstream):
        return slope(upstream)

    return grad


FORMS = [optional_upstream, positional_upstream, required_upstream]


def test_it_is_reachable_by_each_name():
    """Section 3: as attribute after `import tinygrad_cg` too."""
    assert tf.keras.ops.custom_gradient is ops.custom_gradient
    assert tf.keras.ops is ops


@pytest.mark.parametrize("form", FORMS)
def test_gradient_at_100_is_one(form):
    """Section 3: each snippet gives 1.0, and the value stays inf."""
    f = log1pexp(form)
    assert derivative(f, 100.0, 0) == np.inf
    assert derivative(f, 100.0, 1) == 1.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("order", "expected"), [(1, 0.7310586), (2, 0.1966119)])
def test_orders_at_one(form, order, expected):
    """Section 3: second order at 1.0."""
    assert derivative(log1pexp(form), 1.0, order) == pytest.approx(expected, rel=2e-6)


def two_inputs(rule):
    @ops.custom_gradient
    def f(x, y):
        return ops.multiply(x, y), rule(x, y)

    return f


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, y: lambda upstream: (upstream * y, upstream * x),
        lambda x, y: lambda *args, upstream: (upstream * y, upstream * x),
        lambda x, y: lambda *args, upstream: [upstream * args[1], upstream * args[0]],
    ],
)
def test_two_inputs(rule):
    """Section 3: [3, 2]; the keyword-only form gets the inputs."""
    assert gradient(two_inputs(rule), tf.constant(2.0), tf.constant(3.0)) == [3.0, 2.0]


def test_snippet_one_style_gets_one_positional_upstream():
    """Section 3, TensorFlow's column: called with 1 positional."""
    calls = []

    @ops.custom_gradient
    def f(x, y):
        def grad(*args, upstream=None):
            calls.append((len(args), upstream))
            (upstream,) = args
            return upstream * y, upstream * x

        return x * y, grad

    assert gradient(f, tf.constant(2.0), tf.constant(3.0)) == [3.0, 2.0]
    assert calls == [(1, None)]


def test_two_outputs_positional():
    """Section 3: 5.0 (2 positionals)."""

    @ops.custom_gradient
    def f(x):
        def grad(*args, upstream=None):
            first, second = args
            return first * 2.0 + second * 3.0

        return (x * 2.0, x * 3.0), grad

    assert gradient(f, tf.constant(1.0)) == [5.0]


def test_two_outputs_with_a_required_upstream():
    """Section 3, rule 1: a tuple of dys if there are several outputs."""

    @ops.custom_gradient
    def f(x):
        def grad(*args, upstream):
            assert len(args) == 1
            first, second = upstream
            return first * 2.0 + second * 3.0

        return (x * 2.0, x * 3.0), grad

    assert gradient(f, tf.constant(1.0)) == [5.0]
    assert gradient(lambda x: f(x)[1], tf.constant(1.0)) == [3.0]


def test_static_keyword_at_the_call():
    """Section 3: 30.0."""

    @ops.custom_gradient
    def f(x, scale=1.0):
        return x * scale, lambda upstream: upstream * scale * 10.0

    assert gradient(lambda x: f(x, scale=3.0), tf.constant(1.0)) == [30.0]


def test_value_only_is_a_type_error():
    """Section 3 and 1.3."""

    @ops.custom_gradient
    def my_fn(x):
        return x * 2.0

    with pytest.raises(TypeError, match=r"my_fn.*must return \(output, grad_fn\)"):
        my_fn(tf.constant(1.0))
    assert_next_gradient_is_right()


@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: (g,), lambda g: [g]])
@pytest.mark.parametrize("form", FORMS)
def test_bare_tuple_and_list_returns(wrap, form):
    """Section 3: a list gives 10.0."""

    @ops.custom_gradient
    def f(x):
        return x * 2.0, form(lambda upstream: wrap(upstream * 10.0))

    assert gradient(f, tf.constant(1.0)) == [10.0]


def test_wrong_count_keeps_its_words():
    """Section 3, rule 3: all rules of tf.custom_gradient hold."""

    @ops.custom_gradient
    def f(x, y):
        return x * y, lambda *args, upstream: upstream

    with pytest.raises(ValueError, match="expected to return 2 gradients, but returned 1"):
        gradient(f, tf.constant(2.0), tf.constant(3.0))
    assert_next_gradient_is_right()


@pytest.mark.parametrize("form", FORMS)
def test_captured_variable_needs_variables(form):
    """Section 3, rule 3, with 1.7."""
    v = tf.Variable(3.0)

    @ops.custom_gradient
    def f(x):
        return x * v, form(lambda upstream: upstream)

    with pytest.raises(TypeError, match=r"grad_fn must accept.*keyword argument 'variables'"):
        f(tf.constant(1.0))
    assert_next_gradient_is_right()


def test_captured_variable_with_a_required_upstream():
    """Section 3, rule 3, with 1.7."""
    v = tf.Variable(3.0)

    @ops.custom_gradient
    def f(x):
        def grad(*args, upstream, variables=None):
            [only] = variables or []
            assert only is v
            return upstream * v, [upstream * args[0]]

        return x * v, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert numbers(tape.gradient(y, [x, v])) == [3.0, 2.0]


def test_non_trainable_variable_as_argument():
    """Section 3: Keras' own test passes one to the decorated function."""
    state = tf.Variable(3.0, trainable=False)

    @ops.custom_gradient
    def f(x, scale):
        return x * scale, lambda upstream: (upstream * 10.0, None)

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x, state)
    assert float(y) == 6.0
    assert numbers(tape.gradient(y, [x, state])) == [10.0, None]


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda e: ops.add(1, e), [3.0, 5.0]),
        (lambda e: ops.add(e, 1), [3.0, 5.0]),
        (lambda e: ops.multiply(2, e), [4.0, 8.0]),
        (lambda e: ops.subtract(1, e), [-1.0, -3.0]),
        (lambda e: ops.divide(1, e), [0.5, 0.25]),
        (lambda e: 1.0 - 1.0 / e, [0.5, 0.75]),
        (lambda e: ops.log(e), [np.log(2.0), np.log(4.0)]),
        (lambda e: ops.exp(e), [np.exp(2.0), np.exp(4.0)]),
    ],
)
def test_mixed_operands(compute, expected):
    """Section 3, rule 3: Python numbers with tensors keep the tensor's dtype."""
    result = compute(tf.constant([2.0, 4.0]))
    assert result.dtype == tf.float32
    np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6)
