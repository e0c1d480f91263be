"""The listeners of Variables (docs/behaviour.md 6.5 and 1.7).

Reading and assigning tells tapes and running custom gradients, innermost first.
"""

import pytest

import tinygrad_cg as tf
from tests.support.orders import run_in_a_thread

pytestmark = pytest.mark.quick


def recording(body, seen, slots=1):
    """A custom gradient around `body` whose rule notes the variables it is given."""

    @tf.custom_gradient
    def function(x):
        y = body(x)

        def rule(dy, variables=None):
            seen.append(variables)
            return 10.0 * dy, [20.0 * dy for _ in range(slots)]

        return y, rule

    return function


def gradients(function, *sources, watch=(), **options):
    """The gradients of `function(3.0)`, the argument's first, with x watched."""
    x = tf.constant(3.0)
    with tf.GradientTape(**options) as tape:
        tape.watch([x, *watch])
        y = function(x)
    gradients = tape.gradient(y, [x, *sources])
    return [None if gradient is None else gradient.numpy() for gradient in gradients]


@pytest.mark.parametrize(
    "body",
    [
        lambda x, v: x * v,
        lambda x, v: x * v.value(),
        lambda x, v: x * v.read_value(),
        lambda x, v: x * tf.identity(v),
        lambda x, v: x * v[...],
        lambda x, v: (v.assign_add(1.0), x * 1.0)[1],
        lambda x, v: (v.assign(1.0), x * 1.0)[1],
    ],
    ids=["operator", "value", "read_value", "identity", "index", "assign_add", "assign"],
)
class TestHeard:
    """1.7: reads count, and assigning alone counts too."""

    def test_by_the_rule(self, body):
        v, seen = tf.Variable(2.0), []
        results = gradients(recording(lambda x: body(x, v), seen), v)
        assert results == [10.0, 20.0]
        assert len(seen[0]) == 1
        assert seen[0][0] is v

    @pytest.mark.parametrize("with_tape", [False, True])
    def test_at_the_call_tape_or_not(self, body, with_tape):
        """1.7: a rule without `variables` is a TypeError at call time."""
        v = tf.Variable(2.0)

        @tf.custom_gradient
        def function(x):
            return body(x, v), lambda dy: dy

        words = "grad_fn must accept.*keyword argument 'variables'"
        if with_tape:
            with tf.GradientTape(), pytest.raises(TypeError, match=words):
                function(tf.constant(3.0))
        else:
            with pytest.raises(TypeError, match=words):
                function(tf.constant(3.0))

    def test_not_of_what_is_not_trainable(self, body):
        """1.7: no `variables` needed; even if explicitly watched it gets None."""
        v, seen = tf.Variable(2.0, trainable=False), []

        @tf.custom_gradient
        def function(x):
            return body(x, v), lambda dy, variables="none": seen.append(variables) or 10.0 * dy

        assert gradients(function, v, watch=[v]) == [10.0, None]
        assert seen == ["none"]


def test_order_of_creation():
    """1.7: the order of `variables`."""
    a, b, c = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(3.0)
    seen = []
    results = gradients(recording(lambda x: x * c * a * b * a, seen, 3), a, b, c)
    assert results == [10.0, 20.0, 20.0, 20.0]
    assert [variable is own for variable, own in zip(seen[0], (a, b, c), strict=True)] == [True] * 3


def test_made_inside():
    """1.7: a Variable created inside f counts."""
    seen = []
    assert gradients(recording(lambda x: x * tf.Variable(2.0), seen)) == [10.0]
    assert len(seen[0]) == 1


def test_tape_that_does_not_watch_variables():
    """1.7: captured also with watch_accessed_variables=False; its gradient is None."""
    v, seen = tf.Variable(2.0), []
    function = recording(lambda x: x * v, seen)
    assert gradients(function, v, watch_accessed_variables=False) == [10.0, None]
    assert seen[0][0] is v


def test_nested():
    """1.7: the outer rule gets the list, the inner rule is not called."""
    v, outer_seen, inner_seen = tf.Variable(2.0), [], []
    inner = recording(lambda x: x * v, inner_seen)
    outer = recording(lambda x: inner(x) * 5.0, outer_seen)
    assert gradients(outer, v) == [10.0, 20.0]
    assert outer_seen[0][0] is v
    assert inner_seen == []


def test_each_hears_its_own():
    """The inner function's reads reach the outer one, not the other way round."""
    v, w, outer_seen, inner_seen = tf.Variable(2.0), tf.Variable(5.0), [], []
    inner = recording(lambda x: x * v, inner_seen)
    outer = recording(lambda x: w * inner(x) * w, outer_seen, 2)
    assert gradients(outer, v, w) == [10.0, 20.0, 20.0]
    assert [variable is own for variable, own in zip(outer_seen[0], (v, w), strict=True)]
    assert gradients(inner, v, w) == [10.0, 20.0, None]
    assert [len(variables) for variables in inner_seen] == [1]


def test_as_an_argument():
    """1.7: a Variable as argument is not in `variables`, even if captured as well."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def square(x):
        received.append(x)
        return x * v, lambda dy: 7.0 * dy

    received = []
    with tf.GradientTape() as tape:
        y = square(v)
    assert received[0] is v
    assert tape.gradient(y, v).numpy() == 7.0


def test_unwatched_argument():
    """1.7: args unwatched but variable captured: the rule is used, v gets 77."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def function(x):
        return x * v, lambda dy, variables=None: (dy, [77.0 * dy])

    with tf.GradientTape() as tape:
        y = function(tf.constant(3.0))
    assert tape.gradient(y, v).numpy() == 77.0


def test_read_in_the_rule_only():
    """Reads in the rule are no inputs of f: no `variables`, and ordinary second order."""
    v, x = tf.Variable(2.0), tf.constant(3.0)

    @tf.custom_gradient
    def function(x):
        return x * 1.0, lambda dy: dy * v * x

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
    assert first.numpy() == 6.0
    assert [g.numpy() for g in outer.gradient(first, [x, v])] == [2.0, 3.0]


def test_second_order():
    """1.7: y=v*v*x at x=2, v=3: gx=9, gv=12, d gx/d[x,v]=[None,6], d gv/d[x,v]=[6,4]."""
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def function(x):
        y = v * v * x

        def rule(dy, variables=None):
            return dy * v * v, [dy * 2.0 * v * x]

        return y, rule

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        gx, gv = inner.gradient(y, [x, v])
    assert (y.numpy(), gx.numpy(), gv.numpy()) == (18.0, 9.0, 12.0)
    of_gx, of_gv = outer.gradient(gx, [x, v]), outer.gradient(gv, [x, v])
    assert of_gx[0] is None
    assert of_gx[1].numpy() == 6.0
    assert [gradient.numpy() for gradient in of_gv] == [6.0, 4.0]


def test_another_thread_is_not_heard():
    """Point 6: state is per thread."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def function(x):
        run_in_a_thread(v.read_value)
        return x * 1.0, lambda dy: 10.0 * dy

    assert gradients(function, v) == [10.0, None]
