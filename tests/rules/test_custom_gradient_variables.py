"""docs/behaviour.md 1.7 and decision 19: Variables used by a custom gradient."""

import re

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers


def times(v, rule):
    """x * v with v captured, and the given rule."""

    @tf.custom_gradient
    def f(x):
        return x * v, rule

    return f


def tape_over(f, x, v, *, watch=True, **options):
    """Gradients of f(x) for x and v."""
    with tf.GradientTape(**options) as tape:
        if watch:
            tape.watch(x)
        y = f(x)
    return numbers(tape.gradient(y, [x, v]))


def accepting(form, seen):
    """A rule of each form that `variables` may be taken in; it notes what it got."""

    def give(dy, variables):
        seen.append(variables)
        return dy * 10.0, [dy * 77.0]

    def default(dy, variables=None):
        return give(dy, variables)

    def required(dy, variables):
        return give(dy, variables)

    def keyword_only(dy, *, variables=None):
        return give(dy, variables)

    def star(*dys, variables=None):
        return give(dys[0], variables)

    def options(dy, **kw):
        return give(dy, kw["variables"])

    forms = (default, required, keyword_only, star, options)
    return {rule.__name__: rule for rule in forms}[form]


@pytest.mark.parametrize("form", ["default", "required", "keyword_only", "star", "options"])
def test_forms_that_take_variables(form):
    """1.7: `variables` is a list of the same objects."""
    seen = []
    v = tf.Variable(3.0)
    f = times(v, accepting(form, seen))
    assert tape_over(f, tf.constant(2.0), v) == [10.0, 77.0]
    (variables,) = seen
    assert isinstance(variables, list)
    assert len(variables) == 1
    assert variables[0] is v


@pytest.mark.parametrize("recording", [False, True])
@pytest.mark.parametrize(
    "rule",
    [lambda dy: dy, lambda *dys: dys[0], lambda dy, scale=1.0: dy, lambda dy, *, a=1: dy],
)
def test_rule_that_does_not_take_variables(rule, recording):
    """1.7: a TypeError at call time, tape or not."""
    v = tf.Variable(3.0, name="vv")
    f = times(v, rule)
    words = r"grad_fn must accept.*keyword argument 'variables', since function uses variables"
    x = tf.constant(2.0)
    call = (lambda: tape_over(f, x, v)) if recording else (lambda: f(x))
    with pytest.raises(TypeError, match=words) as caught:
        call()
    assert "vv:0" in str(caught.value)
    assert_next_gradient_is_right()


def test_variables_is_not_passed_when_none_is_captured():
    """1.7: the default stays, and **kw stays empty."""
    seen = []

    @tf.custom_gradient
    def with_default(x):
        def grad(dy, variables="untouched"):
            seen.append(variables)
            return dy * 10.0

        return x * 2.0, grad

    @tf.custom_gradient
    def with_options(x):
        def grad(dy, **kw):
            seen.append(kw)
            return dy * 10.0

        return x * 2.0, grad

    assert gradient(with_default, tf.constant(1.0)) == [10.0]
    assert gradient(with_options, tf.constant(1.0)) == [10.0]
    assert seen == ["untouched", {}]


@pytest.mark.parametrize(
    "grad_vars", [lambda dy: [dy * 77.0], lambda dy: (dy * 77.0,), lambda dy: [77.0]]
)
def test_grad_vars_may_be_a_list_or_a_tuple(grad_vars):
    """1.7 and decision 11."""
    v = tf.Variable(3.0)
    f = times(v, lambda dy, variables: (dy * 10.0, grad_vars(dy)))
    assert tape_over(f, tf.constant(2.0), v) == [10.0, 77.0]


def test_none_in_grad_vars():
    """1.7."""
    v = tf.Variable(3.0)
    f = times(v, lambda dy, variables: (dy * 10.0, [None]))
    assert tape_over(f, tf.constant(2.0), v) == [10.0, None]


@pytest.mark.parametrize("count", [0, 2, 3])
def test_wrong_number_of_grad_vars(count):
    """1.7."""
    v = tf.Variable(3.0)
    f = times(v, lambda dy, variables: (dy * 10.0, [dy] * count))
    words = "Must return gradient for each variable from @custom_gradient grad_fn."
    with pytest.raises(ValueError, match=re.escape(words)):
        tape_over(f, tf.constant(2.0), v)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "returned", [lambda dy: dy, lambda dy: None, lambda dy: (dy,), lambda dy: (dy, [dy], dy)]
)
def test_result_that_is_no_pair(returned):
    """1.7: with captured Variables a rule returns (grad_xs, grad_vars)."""
    v = tf.Variable(3.0)
    f = times(v, lambda dy, variables: returned(dy))
    with pytest.raises((TypeError, ValueError), match="return a pair"):
        tape_over(f, tf.constant(2.0), v)
    assert_next_gradient_is_right()


def test_wrong_shape_of_a_variable_gradient():
    """Decision 3 holds for Variables too."""
    v = tf.Variable([3.0, 4.0], name="weights")
    f = times(v, lambda dy, variables: (tf.reduce_sum(dy), [tf.ones([3])]))
    with pytest.raises(ValueError, match=r"(?s)shape \(3,\).*shape \(2,\)") as caught:
        tape_over(f, tf.constant(2.0), v)
    assert "weights" in str(caught.value)
    assert_next_gradient_is_right()


@pytest.mark.parametrize("empty", [[], ()])
def test_no_positional_arguments(empty):
    """1.7: ([], [g]) or ((), [g])."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f():
        return v * 2.0, lambda dy, variables: (empty, [dy * 77.0])

    with tf.GradientTape() as tape:
        y = f()
    assert float(tape.gradient(y, v)) == 77.0


def test_variables_come_in_creation_order():
    """1.7: whatever the order of reading."""
    first, second, third = (tf.Variable(value) for value in (1.0, 2.0, 3.0))
    seen = []

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables):
            seen.extend(variables)
            return dy, [dy * 1.0, dy * 2.0, dy * 3.0]

        return x * third * first * second * third, grad

    with tf.GradientTape() as tape:
        y = f(tf.constant(1.0))
    assert numbers(tape.gradient(y, [third, first, second])) == [3.0, 1.0, 2.0]
    assert [v is w for v, w in zip(seen, (first, second, third), strict=True)] == [True] * 3


@pytest.mark.parametrize("watched", [False, True])
def test_non_trainable_variable_is_not_captured(watched):
    """1.7: no `variables` needed; even if explicitly watched it gets None."""
    v = tf.Variable(3.0, trainable=False)
    f = times(v, lambda dy: dy * 10.0)
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        if watched:
            tape.watch(v)
        y = f(x)
    assert numbers(tape.gradient(y, [x, v])) == [10.0, None]


def test_captured_although_the_tape_does_not_watch_accessed_variables():
    """1.7: grad_fn gets it; the gradient of v is None."""
    seen = []
    v = tf.Variable(3.0)
    f = times(v, accepting("default", seen))
    gradients = tape_over(f, tf.constant(2.0), v, watch_accessed_variables=False)
    assert gradients == [10.0, None]
    assert seen[0][0] is v


def test_variable_created_inside_counts():
    """1.7."""
    created = []

    @tf.custom_gradient
    def f(x):
        if not created:
            created.append(tf.Variable(3.0))

        def grad(dy, variables=None):
            [only] = variables or []
            assert only is created[0]
            return dy * 10.0, [dy * 77.0]

        return x * created[0], grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert numbers(tape.gradient(y, [x, created[0]])) == [10.0, 77.0]


def test_assign_only_counts_as_access():
    """1.7: v.assign_add in f."""
    v = tf.Variable(3.0)
    seen = []

    @tf.custom_gradient
    def f(x):
        v.assign_add(1.0)

        def grad(dy, variables=None):
            seen.append(variables)
            return dy * 10.0, [None]

        return x * 2.0, grad

    assert tape_over(f, tf.constant(2.0), v) == [10.0, None]
    assert seen[0][0] is v
    assert float(v) == 4.0


def test_arguments_unwatched_but_variable_captured():
    """1.7: the custom rule is used, v gets 77.0."""
    v = tf.Variable(3.0)
    f = times(v, accepting("default", []))
    assert tape_over(f, tf.constant(2.0), v, watch=False) == [None, 77.0]


def test_nested_custom_functions_give_the_list_to_the_outer_rule():
    """1.7: the inner rule is not called."""
    v = tf.Variable(3.0)
    calls = []

    @tf.custom_gradient
    def inner(x):
        def grad(dy, variables=None):
            calls.append("inner")
            return dy, [dy]

        return x * v, grad

    @tf.custom_gradient
    def outer(x):
        def grad(dy, variables=None):
            calls.append("outer")
            [only] = variables or []
            assert only is v
            return dy * 100.0, [dy * 7.0]

        return inner(x) * 2.0, grad

    assert tape_over(outer, tf.constant(2.0), v) == [100.0, 7.0]
    assert calls == ["outer"]


def cube(x):
    return x**3, lambda dy: dy * 3 * x**2


def test_variable_as_argument_to_every_order():
    """1.7: f receives the Variable itself; x**3 at 3: 27, 27, 18."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        assert x is v
        return cube(x)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = f(v)
        slope = inner.gradient(y, v)
    assert numbers([y, slope, outer.gradient(slope, v)]) == [27.0, 27.0, 18.0]


def test_variable_as_argument_is_not_among_variables_though_captured_too():
    """1.7."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(x):
        return x * v, lambda dy: dy * 10.0

    with tf.GradientTape() as tape:
        y = f(v)
    assert float(tape.gradient(y, v)) == 10.0


def test_variable_in_a_dict_mixed_with_a_captured_one():
    """1.7."""
    weight, bias, captured = tf.Variable(2.0), tf.Variable(3.0), tf.Variable(4.0)
    seen = []

    @tf.custom_gradient
    def f(parameters):
        assert parameters["w"] is weight

        def grad(dy, variables=None):
            seen.extend(variables or ())
            return [dy * 1.0, dy * 2.0], [dy * 3.0]

        return parameters["w"] * captured + parameters["b"], grad

    with tf.GradientTape() as tape:
        y = f({"w": weight, "b": bias})
    assert numbers(tape.gradient(y, [bias, weight, captured])) == [1.0, 2.0, 3.0]
    assert len(seen) == 1
    assert seen[0] is captured


def test_linear_poly_of_the_documentation():
    """1.7: poly [2,3,4], dx [1,1,1], dweights [6,3]."""
    weights = tf.Variable([1.0, 1.0])

    @tf.custom_gradient
    def linear_poly(x):
        poly = weights[1] * x + weights[0]

        def grad_fn(dpoly, variables):
            grad_xs = dpoly * weights[1]
            assert variables[0] is weights
            dy_dw = dpoly * tf.stack([x**1, x**0])
            return grad_xs, [tf.reduce_sum(tf.reshape(dy_dw, [2, -1]), axis=1)]

        return poly, grad_fn

    x = tf.constant([1.0, 2.0, 3.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        poly = linear_poly(x)
    assert numbers(poly) == [2.0, 3.0, 4.0]
    assert numbers(tape.gradient(poly, x)) == [1.0, 1.0, 1.0]
    assert numbers(tape.gradient(poly, weights)) == [6.0, 3.0]


def test_second_order_with_a_captured_variable():
    """1.7: y=v*v*x at x=2, v=3: 18, 9, 12, [None, 6], [6, 4]."""
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v * v, [dy * 2 * v * x]

        return v * v * x, grad

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        gx, gv = inner.gradient(y, [x, v])
    assert numbers([y, gx, gv]) == [18.0, 9.0, 12.0]
    assert numbers(outer.gradient(gx, [x, v])) == [None, 6.0]
    assert numbers(outer.gradient(gv, [x, v])) == [6.0, 4.0]


def test_variable_assigned_between_forward_and_gradient():
    """4.1: the gradient is at the recorded value when the rule closed over a read."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def square(x):
        value = v.read_value()
        return x * value * value, lambda dy, variables: (dy, [dy * 2.0 * x * value])

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        y = square(x)
    v.assign(50.0)
    assert float(tape.gradient(y, v)) == 6.0


# Decision 19.

NOT_RESOURCE = (
    "All variables used by `f` with @custom_gradient must be `ResourceVariable`s. "
    "Ensure that no `variable_scope` is created with `use_resource=False`."
)


@pytest.mark.parametrize("recording", [False, True])
def test_variable_that_is_no_resource_is_refused(recording):
    """Decision 19."""
    with tf.compat.v1.variable_scope("old", use_resource=False):
        v = tf.compat.v1.get_variable("w_refused", initializer=tf.constant(3.0))
    f = times(v, accepting("default", []))
    x = tf.constant(2.0)
    call = (lambda: tape_over(f, x, v)) if recording else (lambda: f(x))
    with pytest.raises(TypeError, match=re.escape(NOT_RESOURCE)):
        call()
    assert_next_gradient_is_right()


def test_variable_of_a_resource_scope_is_accepted():
    """Decision 19: the document's condition, fulfilled."""
    with tf.compat.v1.variable_scope("new", use_resource=True):
        v = tf.compat.v1.get_variable("w_accepted", initializer=tf.constant(3.0))
    f = times(v, accepting("default", []))
    assert tape_over(f, tf.constant(2.0), v) == [10.0, 77.0]


def test_get_variable_inside_the_function():
    """The documents: 'Variables (that are not part of the inputs), i.e. get_variable'."""
    seen = []

    @tf.custom_gradient
    def f(x):
        with tf.compat.v1.variable_scope("inside", reuse=tf.compat.v1.AUTO_REUSE):
            w = tf.compat.v1.get_variable("w_inside", initializer=tf.constant(3.0))

        def grad(dy, variables=None):
            seen.extend(variables or ())
            return dy * w, [dy * x * 1.0]

        return x * w, grad

    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(y) == 6.0
    assert float(tape.gradient(y, x)) == 3.0
    assert len(seen) == 1


def test_numbers_taken_from_a_variable_are_read_through_its_door():
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x):
        return x * float(v), lambda dy: dy

    with pytest.raises(TypeError, match="grad_fn must accept keyword argument 'variables'"):
        f(tf.constant(1.0))


def test_rule_of_a_branch_that_captures_a_variable():
    """1.7: `variables` is passed only at the calls that read one."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def f(x, captures):
        def grad(dy, variables=None):
            slopes = (dy * 10.0, None)
            return (slopes, [dy * 77.0]) if variables else slopes

        return x * v if captures else x * 2.0, grad

    for captures, expected in ((True, 77.0), (False, None), (True, 77.0)):
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x, captures)
        assert numbers(tape.gradient(y, [x, v])) == [10.0, expected]


def test_second_order_of_a_square_with_a_captured_variable():
    """1.7 at second order: y = (x v**3)**2 at x=2, v=3."""
    v, x = tf.Variable(3.0), tf.constant(2.0)

    @tf.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            return dy * v**3, [3.0 * dy * x * v**2]

        return x * v**3, grad

    with tf.GradientTape(persistent=True) as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x) ** 2
        gx, gv = inner.gradient(y, [x, v])
    assert numbers([y, gx, gv]) == [2916.0, 2916.0, 5832.0]
    assert numbers(outer.gradient(gx, [x, v])) == [1458.0, 5832.0]
    assert numbers(outer.gradient(gv, [x, v])) == [5832.0, 9720.0]


def test_one_variable_as_two_arguments():
    """1.7: both gradients, summed."""
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def f(a, b):
        return a * b, lambda dy: (dy * 10.0, dy * 100.0)

    with tf.GradientTape() as tape:
        y = f(v, v)
    assert numbers(tape.gradient(y, v)) == 110.0


def test_tape_and_custom_gradient_inside_a_function_with_a_variable():
    """1.7 and 1.14: a tape of the function's own around another custom gradient."""
    v = tf.Variable(2.0)

    @tf.custom_gradient
    def inner(x):
        return x * v, lambda dy, variables=None: (dy * 3.0, [dy * 4.0])

    @tf.custom_gradient
    def outer(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        slope = tape.gradient(y, x)
        return y * slope, lambda dy, variables=None: (dy * 5.0, [dy * 6.0])

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outer(x)
    assert numbers([y, tape.gradient(y, [x, v])]) == [6.0, [5.0, 6.0]]


def test_rule_that_reads_a_variable_of_its_own():
    """1.7: a Variable read in the rule only is no input, but has a second-order gradient."""
    v, x = tf.Variable(2.0), tf.constant(1.0)

    @tf.custom_gradient
    def f(x):
        return x * 2.0, lambda dy: dy * v

    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        slope = inner.gradient(y, x)
    assert numbers(slope) == 2.0
    assert numbers(outer.gradient(slope, [x, v])) == [None, 1.0]


def with_scratch(x):
    """(2x + 1)**2, by a Variable that the function makes for itself."""
    scratch = tf.Variable(tf.zeros_like(x))
    scratch.assign(x * 2.0)
    scratch.assign_add(tf.ones_like(x))
    return scratch * scratch, lambda dy: dy * 4.0 * (2.0 * x + 1.0)


def test_a_scratch_variable_needs_no_variables_parameter():
    """1.7: what f makes for itself is no input of it."""
    f = tf.custom_gradient(with_scratch)
    assert float(f(tf.constant(3.0))) == 49.0
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        first = inner.gradient(y, x)
    assert (float(y), float(first), float(outer.gradient(first, x))) == (49.0, 28.0, 8.0)


def test_a_scratch_variable_inside_functions_around_it_and_with_max_order():
    """1.7: it is no input of the functions around f either."""
    inside = tf.custom_gradient(with_scratch, max_order=2)

    @tf.custom_gradient
    def outside(x):
        y = inside(x)
        return y * 1.0, lambda dy: dy * 4.0 * (2.0 * x + 1.0)

    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = outside(x)
    assert float(tape.gradient(y, x)) == 28.0


def test_a_scratch_variable_does_not_hide_others():
    """1.7: a Variable from elsewhere needs its gradient."""
    w = tf.Variable(2.0, name="w")

    @tf.custom_gradient
    def f(x):
        scratch = tf.Variable(1.0)
        return x * scratch * w, lambda dy: dy

    with pytest.raises(TypeError, match=r"'w:0'.*keyword argument 'variables'") as caught:
        f(tf.constant(1.0))
    assert "Variable:0" not in str(caught.value)


def test_a_variable_that_is_kept_is_no_scratch_at_the_next_call():
    """1.7: then its gradient would be missing."""
    kept = []

    @tf.custom_gradient
    def f(x):
        if not kept:
            kept.append(tf.Variable(2.0))
        return x * kept[0], lambda dy: dy

    f(tf.constant(1.0))
    with pytest.raises(TypeError, match="keyword argument 'variables'"):
        f(tf.constant(1.0))
