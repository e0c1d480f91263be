"""docs/behaviour.md 1.9 and decision 11: how custom_gradient is applied."""

import functools
import gc
import inspect
import operator
import weakref
from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers, slope

pytestmark = pytest.mark.quick


def double(x):
    """Twice x."""
    return x * 2.0, lambda dy: dy * 10.0


@pytest.mark.parametrize(
    "decorate",
    [
        pytest.param(lambda f: tf.custom_gradient(f), id="ordinary"),
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


def test_rule_that_is_a_bound_method():
    class Doubling:
        def rule(self, dy):
            return 2.0 * dy

        def __call__(self, x):
            return x * 1.0, self.rule

    assert slope(tf.custom_gradient(Doubling()), tf.constant(3.0)).numpy() == 2.0


def test_rule_of_the_same_code_with_other_defaults_is_looked_at_again():
    @tf.custom_gradient
    def f(x, optional):
        def rule(dy, more):
            return dy, None

        rule.__defaults__ = (0.0,) if optional else None
        return x * 1.0, rule

    x = tf.constant(1.0)
    assert slope(lambda x: f(x, True), x).numpy() == 1.0
    with pytest.raises(TypeError, match="must take 1 argument, the upstream gradient"):
        f(x, False)


class Kinds:
    """Rules of each kind that a class can hold: 10 dy, 20 dy, 30 dy, 40 dy."""

    def method(self, dy):
        return dy * 10.0

    @classmethod
    def of_class(cls, dy):
        return dy * 20.0

    @staticmethod
    def static(dy):
        return dy * 30.0

    def __call__(self, dy):
        return dy * 40.0

    def variadic(self, *dys):
        return dys[0] * 50.0

    def with_default(self, dy, scale=60.0):
        return dy * scale

    def with_variables(self, dy, variables=None):
        return dy * 70.0, [dy * 77.0] * len(variables or ())

    def upstream(self, *inputs, upstream):
        return upstream * 80.0

    def two(self, dy, more):
        return dy * 90.0 + more


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(Kinds().method, 10.0, id="bound method"),
        pytest.param(Kinds.of_class, 20.0, id="class method"),
        pytest.param(Kinds.static, 30.0, id="static method"),
        pytest.param(Kinds(), 40.0, id="instance"),
        pytest.param(Kinds().__call__, 40.0, id="bound __call__"),
        pytest.param(Kinds().variadic, 50.0, id="bound, any number"),
        pytest.param(Kinds().with_default, 60.0, id="bound, default"),
        pytest.param(functools.partial(lambda k, dy: dy * k, 5.0), 5.0, id="partial"),
        pytest.param(functools.partial(Kinds().two, more=1.0), 91.0, id="partial of a method"),
        pytest.param(np.negative, -1.0, id="NumPy function"),
        pytest.param(abs, 1.0, id="builtin"),
        pytest.param(operator.methodcaller("__mul__", 7.0), 7.0, id="without a signature"),
        pytest.param(tf.identity, 1.0, id="function of the library"),
    ],
)
@pytest.mark.parametrize("order", ["ordinary", "by keyword", "in a chain"])
def test_a_rule_may_be_any_callable(rule, expected, order):
    """1.3: grad_fn is whatever is callable with one upstream for each output (decision 11)."""

    @tf.custom_gradient
    def f(x):
        return x * 2.0, rule

    call = {
        "ordinary": f,
        "by keyword": lambda x: f(x=x),
        "in a chain": lambda x: f(x * 1.0) * 1.0,
    }[order]
    assert gradient(call, tf.constant(1.0)) == [expected]


def test_bound_rule_with_a_captured_variable():
    """1.7: `variables` of a method."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, Kinds().with_variables

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert numbers(tape.gradient(y, [x, v])) == [70.0, 77.0]


def test_bound_rule_without_variables():
    """1.7: refused when called forward."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, Kinds().method

    with pytest.raises(TypeError, match=r"grad_fn must accept.*keyword argument 'variables'"):
        f(tf.constant(2.0))
    assert_next_gradient_is_right()


def test_bound_rule_with_a_required_upstream():
    """Section 3, rule 1."""

    @tf.keras.ops.custom_gradient
    def f(x):
        return x * 2.0, Kinds().upstream

    assert gradient(f, tf.constant(1.0)) == [80.0]


@pytest.mark.parametrize("rule", [Kinds().method, Kinds.of_class, Kinds(), Kinds().__call__])
def test_bound_rule_that_cannot_take_the_upstreams(rule):
    """Decision 11: two outputs, one upstream: refused when called forward."""

    @tf.custom_gradient
    def my_fn(x):
        return (x * 2.0, x * 3.0), rule

    with pytest.raises(TypeError, match=r"my_fn: the rule.* must take 2 arguments"):
        my_fn(tf.constant(1.0))
    assert_next_gradient_is_right()


def decorated(rule):
    @functools.wraps(rule)
    def wrapper(*args, **kwargs):
        return rule(*args, **kwargs)

    return wrapper


class Residual:
    """Something a rule holds, that can be watched as it goes."""

    factor = 10.0

    def __call__(self, dy):
        return dy * self.factor


def times_factor(residual, dy):
    return dy * residual.factor


@pytest.mark.parametrize(
    "make_rule",
    [
        pytest.param(lambda residual: lambda dy: dy * residual.factor, id="closure"),
        pytest.param(lambda residual: functools.partial(times_factor, residual), id="partial"),
        pytest.param(lambda residual: residual, id="instance"),
        pytest.param(lambda residual: decorated(lambda dy: dy * residual.factor), id="wrapped"),
    ],
)
@pytest.mark.parametrize("recording", [False, True])
def test_memory_of_a_rule_of_any_kind_is_freed(make_rule, recording):
    """1.1: after gradient(), or at once without a tape; the definition keeps no rule."""
    references = []

    @tf.custom_gradient
    def f(x):
        residual = Residual()
        references.append(weakref.ref(residual))
        return x * 2.0, make_rule(residual)

    gc.collect()
    gc.disable()
    try:
        x = tf.constant(1.0)
        assert gradient(f, x) == [10.0] if recording else float(f(x)) == 2.0
        assert references[0]() is None
    finally:
        gc.enable()


def test_each_call_may_bring_a_rule_of_its_own():
    """1.0: the rule is that of the call, though one wrapper stands around all of them."""

    def positional(dy):
        return dy * 3.0

    def by_name(*inputs, upstream):
        return upstream * inputs[0] * 5.0

    def wrong(dy, more):
        return dy

    @tf.custom_gradient
    def f(x, rule):
        return x * 2.0, decorated(rule)

    x = tf.constant(7.0)
    assert gradient(lambda x: f(x, positional), x) == [3.0]
    assert gradient(lambda x: f(x, by_name), x) == [35.0]
    with pytest.raises(
        TypeError, match="the rule `wrong` must take 1 argument, the upstream gradient"
    ):
        f(x, wrong)
    assert gradient(lambda x: f(x, positional), x) == [3.0]
    assert_next_gradient_is_right()
