"""BEHAVIOUR 1.9 and decision 11: how custom_gradient is applied."""

import functools
import inspect
from typing import Any

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers


def double(x):
    """Twice x."""
    return x * 2.0, lambda dy: dy * 10.0


@pytest.mark.parametrize(
    "decorate",
    [
        pytest.param(lambda f: tf.custom_gradient(f), id="plain"),
        pytest.param(lambda f: tf.custom_gradient()(f), id="called"),
        pytest.param(lambda f: tf.custom_gradient(f=None)(f), id="f=None"),
        pytest.param(lambda f: tf.custom_gradient(f=f), id="f=f"),
        pytest.param(lambda f: tf.compat.v1.custom_gradient(f), id="compat.v1"),
        pytest.param(lambda f: tf.contrib.eager.custom_gradient(f), id="contrib.eager"),
    ],
)
def test_decorator_forms_and_metadata(decorate):
    """1.9."""
    f = decorate(double)
    assert gradient(f, tf.constant(1.0)) == [10.0]
    assert f.__name__ == "double"
    assert f.__doc__ == "Twice x."
    assert f.__wrapped__ is double
    assert inspect.signature(f) == inspect.signature(double)
    assert type(f).__name__ == "Bind"


@pytest.mark.parametrize("target", [3, "f", 2.5, [double], {}])
def test_decorating_a_non_callable_is_a_type_error_at_once(target):
    """Decision 11."""
    with pytest.raises(TypeError, match="custom_gradient decorates a function"):
        tf.custom_gradient(target)
    assert_next_gradient_is_right()


def test_partial_can_be_decorated():
    """Decision 11."""

    def scaled(x, factor, rule=None):
        return x * factor, lambda dy: dy * factor * rule

    f = tf.custom_gradient(functools.partial(scaled, factor=2.0, rule=5.0))
    assert gradient(f, tf.constant(1.0)) == [10.0]
    first = tf.custom_gradient(functools.partial(lambda a, x: (a * x, lambda dy: dy * 7.0), 2.0))
    assert gradient(first, tf.constant(1.0)) == [7.0]


class Scale:
    """A callable instance with state."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return x * self.factor, lambda dy: dy * self.factor * 5.0


def test_callable_instance_can_be_decorated():
    """Decision 11."""
    assert gradient(tf.custom_gradient(Scale(2.0)), tf.constant(1.0)) == [10.0]


def test_errors_of_a_decorated_partial_or_instance_still_name_it():
    """Decision 11: no AttributeError for a missing __name__ on the way."""
    words = "expected to return 1 gradients, but returned 2"
    f = tf.custom_gradient(functools.partial(lambda x: (x * 2.0, lambda dy: (dy, dy))))
    with pytest.raises(ValueError, match=words):
        gradient(f, tf.constant(1.0))
    assert_next_gradient_is_right()


class Model:
    """Methods with custom gradients."""

    def __init__(self, factor):
        self.factor = factor
        self.w = tf.Variable(factor)

    @tf.custom_gradient
    def f(self, x, y):
        """Self is not an input."""
        return self.factor * x * y, lambda dz: (dz * 10.0 * self.factor, dz * 20.0)

    @staticmethod
    @tf.custom_gradient
    def static(x):
        return x * 2.0, lambda dy: dy * 11.0

    @classmethod
    @tf.custom_gradient
    def of_class(cls, x):
        assert cls is Model
        return x * 2.0, lambda dy: dy * 12.0

    @tf.custom_gradient
    @staticmethod
    def over_static(x):
        return x * 2.0, lambda dy: dy * 13.0

    @tf.custom_gradient
    def layer(self, x):
        def grad(dy, variables=None):
            [only] = variables or []
            assert only is self.w
            return dy * self.w, [dy * x]

        return self.w * x, grad

    @tf.custom_gradient
    def forgetful(self, x):
        return self.w * x, lambda dy: dy


def test_method():
    """1.9: self is not an input, and each instance is its own."""
    first, second = Model(2.0), Model(3.0)
    x, y = tf.constant(1.0), tf.constant(1.0)
    assert gradient(first.f, x, y) == [20.0, 20.0]
    assert gradient(second.f, x, y) == [30.0, 20.0]
    assert first.f.__name__ == "f"
    assert first.f.__doc__ == "Self is not an input."


def test_unbound_method():
    """1.9, decision 4: the instance passed by hand is static."""
    x, y = tf.constant(1.0), tf.constant(1.0)
    assert gradient(lambda x, y: Model.f(Model(2.0), x, y), x, y) == [20.0, 20.0]


@pytest.mark.parametrize("owner", [Model, Model(2.0)])
@pytest.mark.parametrize(("name", "expected"), [("static", 11.0), ("of_class", 12.0)])
def test_static_and_class_methods(owner, name, expected):
    """1.9."""
    assert gradient(getattr(owner, name), tf.constant(1.0)) == [expected]


def test_custom_gradient_over_a_staticmethod():
    """1.9: called on the class, as the original allows."""
    assert gradient(Model.over_static, tf.constant(1.0)) == [13.0]


def test_method_with_a_variable_of_its_own():
    """1.9: needs `variables`."""
    model = Model(3.0)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model.layer(x)
    assert numbers(tape.gradient(y, [x, model.w])) == [3.0, 2.0]
    with pytest.raises(TypeError, match=r"grad_fn must accept.*keyword argument 'variables'"):
        model.forgetful(x)
    assert_next_gradient_is_right()


def test_bind_decorator():
    """1.9: Bind.decorator(d) calls d(f, args, kwargs), bound or not; 6 both times."""
    bind: Any = type(tf.custom_gradient(double))
    calls = []

    @bind.decorator
    def noting(f, args, kwargs):
        calls.append((args, kwargs))
        return f(*args, **kwargs)

    class Foo:
        @noting
        def bar(self, a, b, c):
            return a + b + c

    unbound: Any = Foo.bar
    assert unbound(None, 1, 2, c=3) == 6
    assert Foo().bar(1, 2, c=3) == 6
    assert calls == [((None, 1, 2), {"c": 3}), ((1, 2), {"c": 3})]


def test_rule_with_extra_defaulted_parameters_receives_only_the_upstreams():
    """1.9: def g(b, alpha=-1.0)."""

    @tf.custom_gradient
    def reverse(a):
        def g(b, alpha=-1.0):
            return b * alpha

        return a * 1.0, g

    assert gradient(reverse, tf.constant(2.0)) == [-1.0]


def test_decorated_function_decorated_again_is_refused():
    """The inner decorator took the rule away: what is left is no pair."""
    twice = tf.custom_gradient(tf.custom_gradient(double))
    with pytest.raises(TypeError, match=r"must return \(output, grad_fn\)"):
        twice(tf.constant(1.0))
    assert_next_gradient_is_right()


def test_bind_over_bind_keeps_both():
    """1.9: the outer decorator is applied, to the inner one's result."""
    bind = type(tf.custom_gradient(double))
    thousandfold = bind.decorator(lambda f, args, kwargs: f(*args, **kwargs) * 1000.0)
    f = thousandfold(tf.custom_gradient(double))
    assert numbers(f(tf.constant(1.0))) == 2000.0
    assert gradient(f, tf.constant(1.0)) == [10000.0]
    assert f.__name__ == "double"


def test_the_other_decorators_over_a_custom_gradient():
    """1.10 and 1.11: they are applied as well, in the order in which they stand."""
    runs = []

    @tf.custom_gradient
    def f(x):
        runs.append(1)
        return x * 2.0, lambda dy: dy * 10.0

    x = tf.constant(1.0)
    assert gradient(tf.grad_pass_through(f), x) == [1.0]
    runs.clear()
    assert gradient(tf.recompute_grad(f), x) == [10.0]
    assert len(runs) == 2


def test_attributes_of_the_function_do_not_disturb():
    """Metadata is copied from the function, whatever it carries."""

    def f(x):
        return x * 2.0, lambda dy: dy * 10.0

    f.note = "kept"
    f._function = f._decorated = None
    decorated = tf.custom_gradient(f)
    assert decorated.note == "kept"
    assert gradient(decorated, tf.constant(1.0)) == [10.0]
