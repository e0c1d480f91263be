"""The error texts that BEHAVIOUR and BAD_INPUT quote, word for word (decision 12).

Each id names its section. After each error the next gradient is right.
"""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient


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
    """A rule beside a captured Variable named vv, differentiated."""
    v = tf.Variable(3.0, name="vv")
    return lambda: gradient(custom(lambda a: (a * v, rule)), tf.constant(1.0))


def of_old_variable():
    with tf.compat.v1.variable_scope("behaviour_texts", use_resource=False):
        v = tf.compat.v1.get_variable("old", initializer=tf.constant(3.0))
    return custom(lambda a: (a * v, lambda dy, variables=None: (dy, [dy])))(tf.constant(1.0))


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
        "BAD_INPUT 1 for 2",
        ValueError,
        "`my_fn`: grad_fn returned 1 gradient, my_fn has 2 differentiable inputs (a, b)",
        with_two_inputs(lambda dy: dy),
    ),
    (
        "BAD_INPUT 3 for 2",
        ValueError,
        "`my_fn`: grad_fn returned 3 gradients, my_fn has 2 differentiable inputs (a, b)",
        with_two_inputs(lambda dy: (dy, dy, dy)),
    ),
    (
        "BAD_INPUT shape",
        ValueError,
        "gradient 0 of `my_fn` has shape (3,), input `a` has shape (2,)",
        with_rule(lambda dy: tf.ones([3])),
    ),
    (
        "BAD_INPUT 2 for 1 output",
        TypeError,
        "my_fn: grad_fn must accept 1 output gradient",
        called(lambda a: (a, lambda dy, more: dy)),
    ),
    (
        "BAD_INPUT y alone",
        TypeError,
        "my_fn must return (output, grad_fn), got Tensor",
        called(lambda a: a * 2.0),
    ),
    (
        "BAD_INPUT not callable",
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
        "'variables', since function uses variables: [<tg.Variable 'vv:0' shape=() dtype=float32, "
        "numpy=3.0>]",
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


def on_a_tape(use):
    """A program with an unused tape of its own."""
    return lambda: use(tf.GradientTape())


def inside(use):
    """A program inside the context of its tape."""

    def program():
        with tf.GradientTape() as tape:
            use(tape)

    return program


def enter(tape):
    with tape:
        raise AssertionError("the tape was entered")


def stop_after_exit(tape):
    with tape:
        pass
    with tape.stop_recording():
        raise AssertionError("recording was stopped")


def stop(tape):
    with tape.stop_recording():
        raise AssertionError("recording was stopped")


def twice(tape):
    x = tf.constant(2.0)
    with tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


def asked(targets, sources, **options):
    """gradient(targets(x, y), sources(x, y)) for y = x*x at [1, 2]."""

    def program():
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        tape.gradient(targets(x, y), sources(x, y), **options)

    return program


def y(x, y):
    return y


def x(x, y):
    return x


NOT_A_TENSOR = "not tf.Tensor or tf.Variable or ExtensionType"
NO_DTYPE = "Cannot convert the argument `type_value`: None to a TensorFlow DType."

TAPES = [
    (
        "2.1 twice",
        RuntimeError,
        "A non-persistent GradientTape can only be used to compute one "
        "set of gradients (or jacobians)",
        on_a_tape(twice),
    ),
    (
        "2.1 never entered",
        RuntimeError,
        "A non-persistent GradientTape can only be used to "
        "compute one set of gradients (or jacobians)",
        on_a_tape(lambda tape: tape.gradient(tf.constant(1.0), tf.constant(1.0))),
    ),
    (
        "2.1 re-enter",
        ValueError,
        "Tape is still recording, This can happen if you try to re-enter an already-active tape.",
        inside(enter),
    ),
    (
        "2.1 watch 1.0",
        ValueError,
        f"Passed in object 1.0 of type 'float', {NOT_A_TENSOR}",
        inside(lambda tape: tape.watch(1.0)),
    ),
    (
        "2.1 watch array",
        ValueError,
        f"of type 'ndarray', {NOT_A_TENSOR}",
        inside(lambda tape: tape.watch(np.ones(2))),
    ),
    (
        "BAD_INPUT watch array",
        TypeError,
        "watch needs a Tensor; wrap the value in constant()",
        inside(lambda tape: tape.watch(np.ones(2))),
    ),
    (
        "2.1 target None",
        TypeError,
        "Argument `target` should be a list or nested structure of "
        "Tensors, Variables or CompositeTensors to be differentiated, but received None.",
        asked(lambda x, y: None, x),
    ),
    ("2.1 None among targets", TypeError, NO_DTYPE, asked(lambda x, y: [y, None], x)),
    ("2.1 sources None", TypeError, NO_DTYPE, asked(y, lambda x, y: None)),
    ("2.1 None among sources", TypeError, NO_DTYPE, asked(y, lambda x, y: [x, None])),
    ("2.1 None in a dict", TypeError, NO_DTYPE, asked(y, lambda x, y: {"a": None, "b": x})),
    (
        "2.1 unconnected",
        ValueError,
        "Unknown value for unconnected_gradients: 'nope'",
        asked(y, x, unconnected_gradients="nope"),
    ),
    (
        "2.1 unconnected None",
        ValueError,
        "Unknown value for unconnected_gradients: None",
        asked(y, x, unconnected_gradients=None),
    ),
    (
        "2.1 stop before",
        RuntimeError,
        "Trying to stop recording a tape which is not recording.",
        on_a_tape(stop),
    ),
    ("2.1 stop after", ValueError, "Tape is not recording.", on_a_tape(stop_after_exit)),
    (
        "2.1 reset outside",
        ValueError,
        "Tape is not recording.",
        on_a_tape(lambda tape: tape.reset()),
    ),
    (
        "2.1 None upstream",
        ValueError,
        "Attempt to convert a value (None)",
        asked(y, x, output_gradients=[None]),
    ),
    (
        "BAD_INPUT cotangent",
        ValueError,
        "output_gradients[0] has shape (3,), target has shape (2,)",
        asked(y, x, output_gradients=tf.ones(3)),
    ),
    (
        "2.1 cotangent",
        tf.errors.InvalidArgumentError,
        "output_gradients[0] has shape (3,)",
        asked(y, x, output_gradients=tf.ones(3)),
    ),
    (
        "BAD_INPUT too few",
        ValueError,
        "2 targets, 1 output gradient",
        asked(lambda x, y: [y, y], x, output_gradients=[tf.ones(2)]),
    ),
    (
        "BAD_INPUT float target",
        TypeError,
        "target is float, not a Tensor; did the function leave the library?",
        asked(lambda x, y: 4.0, x),
    ),
    (
        "BAD_INPUT array source",
        TypeError,
        "source must be a Tensor or Variable, got numpy.ndarray",
        asked(y, lambda x, y: np.ones(2)),
    ),
    (
        "2.2 eager",
        RuntimeError,
        "tf.gradients is not supported when eager execution is enabled. "
        "Use tf.GradientTape instead",
        lambda: tf.gradients(tf.constant(1.0), tf.constant(1.0)),
    ),
]


def vector():
    return tf.constant([1.0, 2.0])


def assign(initial, value):
    return lambda: tf.Variable(initial, name="w").assign(value)


TENSORS = [
    (
        "2.4 None",
        ValueError,
        "Attempt to convert a value (None) with an unsupported type",
        lambda: tf.constant(None),
    ),
    (
        "2.4 None to Python",
        TypeError,
        "Attempt to convert a value (None)",
        lambda: tf.constant(None),
    ),
    (
        "1.3 object",
        ValueError,
        "Attempt to convert a value (<built-in function print>)",
        lambda: tf.constant(print),
    ),
    (
        "2.4 float as int",
        TypeError,
        "Cannot convert 1.5 to EagerTensor of dtype int32",
        lambda: tf.constant(1.5, dtype=tf.int32),
    ),
    ("2.4 cast to None", TypeError, "None", lambda: tf.cast(vector(), None)),
    (
        "2.4 iterate",
        TypeError,
        "Cannot iterate over a scalar tensor.",
        lambda: list(tf.constant(1.0)),
    ),
    ("2.4 hash", TypeError, "use tensor.ref()", lambda: hash(vector())),
    ("2.4 hash of a Variable", TypeError, ".ref()", lambda: hash(tf.Variable(1.0))),
    (
        "2.4 assign",
        ValueError,
        "Cannot assign value to variable ' w:0': Shape mismatch",
        assign([1.0, 2.0], [1.0]),
    ),
    (
        "BAD_INPUT assign shapes",
        ValueError,
        "shape (2,), and the assigned value shape (3,)",
        assign([1.0, 2.0], [1.0, 2.0, 3.0]),
    ),
    ("BAD_INPUT None operand", TypeError, "unsupported operand", lambda: vector() + None),
    ("BAD_INPUT None on the left", TypeError, "unsupported operand", lambda: None * vector()),
    ("BAD_INPUT names both", TypeError, "NoneType", lambda: vector() - None),
    (
        "BAD_INPUT object",
        TypeError,
        "dtype=object; call .astype(float)",
        lambda: tf.constant(np.array([1.0, 2.0], object)),
    ),
    ("BAD_INPUT string", TypeError, "string dtype", lambda: tf.constant(np.array(["a"]))),
    (
        "BAD_INPUT structured",
        TypeError,
        "structured dtype; pass its fields separately",
        lambda: tf.constant(np.zeros(1, [("a", "f4")])),
    ),
    (
        "BAD_INPUT longdouble",
        TypeError,
        "longdouble is not supported",
        lambda: tf.constant(np.ones(1, np.longdouble)),
    ),
    (
        "BAD_INPUT datetime64",
        TypeError,
        "datetime64",
        lambda: tf.constant(np.array(["2020"], "M8[D]")),
    ),
    ("BAD_INPUT ragged", ValueError, "inhomogeneous shape", lambda: tf.constant([[1], [1, 2]])),
    (
        "BAD_INPUT max",
        ValueError,
        "max of an empty axis has no identity",
        lambda: tf.reduce_max(tf.zeros([0])),
    ),
    ("BAD_INPUT index", IndexError, "out of bounds", lambda: vector()[5]),
    ("BAD_INPUT float index", IndexError, "got float", lambda: vector()[1.0]),
    ("BAD_INPUT mask", IndexError, "boolean index", lambda: vector()[[True, False, True]]),
    (
        "BAD_INPUT broadcast",
        ValueError,
        "add: shapes (2,) and (3,) do not broadcast",
        lambda: vector() + tf.ones(3),
    ),
    (
        "BAD_INPUT reshape",
        ValueError,
        "shape (3,) (3 elements) to a tensor of shape (2,) (2 elements)",
        lambda: tf.reshape(vector(), (3,)),
    ),
    ("BAD_INPUT two -1", ValueError, "-1", lambda: tf.reshape(vector(), (-1, -1))),
    ("BAD_INPUT item", TypeError, "where()", lambda: vector().__setitem__(0, 5.0)),
    (
        "BAD_INPUT int power",
        ValueError,
        "integers to negative integer powers",
        lambda: tf.constant(2) ** -1,
    ),
]


@pytest.mark.parametrize(
    ("error", "words", "program"),
    [pytest.param(*case[1:], id=case[0]) for case in RULES + TAPES + TENSORS],
)
def test_quoted_words(error, words, program):
    """The section is in the id; the class is one that users of both libraries catch."""
    with pytest.raises(error, match=re.escape(words)):
        program()
    assert_next_gradient_is_right()


def watch_an_integer():
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(1))


def gradient_of_a_late_target():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(x * x, x) is None


def gradient_inside():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        assert tape.gradient(x**3, x).numpy() == 12.0


@pytest.mark.parametrize(
    ("words", "program"),
    [
        pytest.param(
            "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.int32",
            watch_an_integer,
            id="1.5 and BAD_INPUT watch(int tensor)",
        ),
        pytest.param(
            "target was computed after the tape closed",
            gradient_of_a_late_target,
            id="BAD_INPUT ops after the tape closed",
        ),
        pytest.param("significantly less efficient", gradient_inside, id="2.1 inside ctx"),
    ],
)
def test_quoted_warnings(words, program):
    """The section is in the id."""
    with pytest.warns(tf.errors.TapeWarning, match=re.escape(words)):
        program()
    assert_next_gradient_is_right()


def test_where_the_rule_is_written_is_said():
    """Decision 3 and issue: the message names the rule's source file and line."""
    programs = [with_rule(lambda dy: tf.ones([3])), with_two_inputs(lambda dy: dy)]
    for program in programs:
        with pytest.raises(ValueError, match=r"test_behaviour_texts\.py\", line \d+"):
            program()
    with pytest.raises(TypeError, match=r"test_behaviour_texts\.py\", line \d+"):
        called(lambda a: (a, lambda dy, more: dy))()
    assert_next_gradient_is_right()


def test_bypass_says_which_rule_which_tape_and_why():
    """Decision 5."""
    w = tf.constant(3.0)

    @tf.custom_gradient
    def bypassed(x):
        return x * w, lambda dy: dy * 100.0

    words = r"`bypassed` is not used on a tape that watches none of its arguments, only .*captured"
    with tf.GradientTape() as tape:
        tape.watch(w)
        with pytest.warns(tf.CustomGradientWarning, match=words) as caught:
            y = bypassed(tf.constant(2.0))
    assert float(tape.gradient(y, w)) == 2.0
    assert caught[0].filename == __file__
