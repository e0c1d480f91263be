"""The texts of errors in custom gradients, word for word (decision 12) (docs/behaviour.md).

Each id names its section. After each error the next gradient is right.
"""

import re

import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient

pytestmark = pytest.mark.quick


def custom(result):
    """A custom gradient my_fn(a), whatever `result` makes of its argument."""

    @tf.custom_gradient
    def my_fn(a):
        return result(a)

    return my_fn


def with_rule(rule):
    """A doubling my_fn(a) with this rule, differentiated at [1, 2]."""
    return lambda: gradient(custom(lambda a: (a * 2.0, rule)), tf.constant([1.0, 2.0]))


def with_two_inputs(returned):
    """A product my_fn(a, b) whose rule returns `returned(dy)`, differentiated."""

    @tf.custom_gradient
    def my_fn(a, b):
        return a * b, returned

    return lambda: gradient(my_fn, tf.constant(1.0), tf.constant(2.0))


def called(result, value=1.0):
    """my_fn called forward, with no tape."""
    return lambda: custom(result)(tf.constant(value))


def with_variable(rule):
    """A rule with a captured Variable named vv, differentiated."""
    v = tf.Variable(3.0, name="vv")
    return lambda: gradient(custom(lambda a: (a * v, rule)), tf.constant(1.0))


def of_old_variable():
    with tf.compat.v1.variable_scope("error_texts", use_resource=False):
        v = tf.compat.v1.get_variable("old", initializer=tf.constant(3.0))
    return custom(lambda a: (a * v, lambda dy, variables=None: (dy, [dy])))(tf.constant(1.0))


@tf.custom_gradient
def power(x, n):
    return x**n, lambda dy: dy * n * x ** (n - 1)


RULES = [
    (
        "1.2 count",
        ValueError,
        "custom_gradient function expected to return 2 gradients, but returned 1 instead.",
        with_two_inputs(lambda dy: dy),
    ),
    (
        "1.2 None",
        ValueError,
        "expected to return 2 gradients, but returned 1 instead.",
        with_two_inputs(lambda dy: None),
    ),
    (
        "1.2 none of one",
        ValueError,
        "expected to return 1 gradients, but returned 0 instead.",
        with_rule(lambda dy: []),
    ),
    (
        "4.1 1 for 2",
        ValueError,
        "the rule of `my_fn` returned 1 gradient, but `my_fn` has 2 inputs (a, b)",
        with_two_inputs(lambda dy: dy),
    ),
    (
        "4.1 an integer input has no gradient",
        ValueError,
        "`power` has 2 inputs (x, n). Return one gradient for each input, or None if",
        lambda: tf.grad(power)(2.0, 3),
    ),
    (
        "4.1 3 for 2",
        ValueError,
        "the rule of `my_fn` returned 3 gradients, but `my_fn` has 2 inputs (a, b)",
        with_two_inputs(lambda dy: (dy, dy, dy)),
    ),
    (
        "4.1 shape",
        ValueError,
        "the rule of `my_fn` returned a gradient of shape (3,) for input `a`, which has shape (2,)",
        with_rule(lambda dy: tf.ones([3])),
    ),
    (
        "4.1 2 for 1 output",
        TypeError,
        "my_fn: the rule must take 1 argument, the upstream gradient of the output of `my_fn`",
        called(lambda a: (a, lambda dy, more: dy)),
    ),
    (
        "4.1 y alone",
        TypeError,
        "my_fn must return (output, grad_fn), got Tensor",
        called(lambda a: a * 2.0),
    ),
    (
        "4.1 not callable",
        TypeError,
        "grad_fn must be callable, got int",
        called(lambda a: (a, 3)),
    ),
    (
        "1.3 scalar alone",
        TypeError,
        "Cannot iterate over a scalar tensor.",
        called(lambda a: a * 2.0),
    ),
    (
        "1.3 vector of 2 alone",
        TypeError,
        "unsupported callable",
        called(lambda a: a * 2.0, [1.0, 2.0]),
    ),
    (
        "1.3 three",
        ValueError,
        "too many values to unpack (expected 2)",
        called(lambda a: (a, lambda dy: dy, 1)),
    ),
    ("1.3 None", TypeError, "cannot unpack non-iterable NoneType object", called(lambda a: None)),
    ("1.3 grad_fn None", TypeError, "unsupported callable", called(lambda a: (a, None))),
    (
        "1.7 variables",
        TypeError,
        "@tf.custom_gradient grad_fn must accept keyword argument "
        "'variables', since function uses variables: [...]",
        with_variable(lambda dy: dy),
    ),
    (
        "1.7 wrong length",
        ValueError,
        "Must return gradient for each variable from @custom_gradient grad_fn.",
        with_variable(lambda dy, variables=None: (dy, [])),
    ),
    (
        "1.7 no pair",
        TypeError,
        "Cannot iterate over a scalar tensor.",
        with_variable(lambda dy, variables=None: dy),
    ),
    (
        "decision 19",
        TypeError,
        "All variables used by `my_fn` with @custom_gradient must be "
        "`ResourceVariable`s. Ensure that no `variable_scope` is created with "
        "`use_resource=False`.",
        of_old_variable,
    ),
]


@pytest.mark.parametrize(
    ("start", "program"),
    [
        ("my_fn must return (output, grad_fn), got Tensor of shape (3,): add the rule,",
         called(lambda a: a * 2.0, [1.0, 2.0, 3.0])),
        ("my_fn must return (output, grad_fn), and grad_fn must be callable, got Tensor: ",
         called(lambda a: (a, a))),
        ("my_fn: the rule must take 0 arguments, an upstream gradient for each output of `my_fn`, "
         "but the rule takes 1: my_fn returned no tensor", called(lambda a: (None, lambda dy: dy))),
        ("`my_fn` uses 1 variable (vv:0), so its rule must return a pair, ",
         with_variable(lambda dy, variables=None: dy * tf.ones(3))),
    ],
)  # fmt: skip
def test_words_that_fit_another_mistake_are_absent(start, program):
    with pytest.raises(TypeError, match=f"^{re.escape(start)}"):
        program()


@pytest.mark.parametrize(
    ("error", "words", "program"),
    [pytest.param(*case[1:], id=case[0]) for case in RULES],
)
def test_quoted_words(error, words, program):
    """The section is in the id; the class is one that users of both libraries catch."""
    with pytest.raises(error, match=re.escape(words)):
        program()
    assert_next_gradient_is_right()


def test_where_the_rule_is_written_is_said():
    """Decision 3: the message names the rule's source file and line."""
    programs = [with_rule(lambda dy: tf.ones([3])), with_two_inputs(lambda dy: dy)]
    for program in programs:
        with pytest.raises(ValueError, match=r"test_error_texts\.py\", line \d+"):
            program()
    with pytest.raises(TypeError, match=r"test_error_texts\.py\", line \d+"):
        called(lambda a: (a, lambda dy, more: dy))()
    assert_next_gradient_is_right()


def test_bypass_says_which_rule_which_tape_and_why():
    """Decision 5."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def bypassed(x):
        return x * w, lambda dy: dy * 100.0

    words = (
        r"`bypassed` is not used: a tape watches only tensors that .*captured, not its arguments"
    )
    with tf.GradientTape() as tape:
        tape.watch(w)
        with pytest.warns(tf.CustomGradientWarning, match=words) as caught:
            y = bypassed(tf.constant(2.0))
    assert float(tape.gradient(y, w)) == 2.0
    assert caught[0].filename == __file__


def test_exceptions_of_rules_carry_a_note():
    """Which function's rule it was, and where that stands: in each mode, once for each rule."""

    @tf.custom_gradient
    def broken(x):
        def grad_fn(dy):
            raise ZeroDivisionError("boom")

        return x * x, grad_fn

    @tf.custom_gradient
    def around(x):
        return broken(x), lambda dy: tf.grad(lambda x: tf.reduce_sum(broken(x)))(x) * dy

    op = tf.primitive("NoteOnErrors", lambda x: x * 1.0, replace=True)
    tf.RegisterGradient("NoteOnErrors", replace=True)(lambda use, dy: use.inputs[3])
    x = tf.constant([1.0, 2.0])

    def slope(f):
        return tf.grad(lambda x: tf.reduce_sum(f(x)))

    line = broken.__wrapped__.__code__.co_firstlineno + 2
    expected = f'In the gradient function of `broken` (File "{__file__}", line {line})'
    for run in (slope(broken), tf.function(slope(broken)), tf.vmap(slope(broken))):
        with pytest.raises(ZeroDivisionError, match="boom") as raised:
            run(x[None])
        assert raised.value.__notes__ == [expected]
    with pytest.raises(ZeroDivisionError) as raised:
        tf.jvp(broken, (x,), (x,))
    assert raised.value.__notes__ == [expected]
    with pytest.raises(ZeroDivisionError) as raised:
        slope(around)(x)
    assert raised.value.__notes__[0] == expected
    assert "`around`" in raised.value.__notes__[1]
    with pytest.raises(IndexError) as raised:
        slope(op)(x)
    assert "of `NoteOnErrors` (File" in raised.value.__notes__[0]


@pytest.mark.parametrize("persistent", [False, True])
def test_a_tape_that_a_rule_enters_and_does_not_leave(persistent):
    """2.1: it warns, once for each rule, and the next gradients are right."""
    kept = []

    @tf.custom_gradient
    def forgetful(x):
        def grad_fn(dy):
            tape = tf.GradientTape(persistent)
            kept.append(tape.__enter__())
            return dy * 2.0 * x

        return x * x, grad_fn

    x = tf.constant([1.0, 2.0])

    def loss(x):
        return tf.reduce_sum(forgetful(x))

    words = "the rule of `forgetful` entered a GradientTape, .* and did not leave it.*with tf.Grad"
    with pytest.warns(tf.errors.CustomGradientWarning, match=words):
        assert gradient(forgetful, x) == [[2.0, 4.0]]
    assert tf.grad(loss)(x).numpy().tolist() == [2.0, 4.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x**3)
    assert tape.gradient(y, x).numpy().tolist() == [3.0, 12.0]
    for open_tape in reversed(kept):
        open_tape.__exit__(None, None, None)
    assert_next_gradient_is_right()
