"""print and the assertions of TensorFlow, eagerly, in programs and in batches."""

import sys

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (tf.constant([1.0, 2.5]), "[1 2.5]"),
        (tf.constant(1 / 3), "0.333333343"),
        (tf.constant(np.pi, tf.float64), "3.1415926535897931"),
        (tf.constant(0.1, tf.float16), "0.0999755859"),
        (tf.range(10), "[0 1 2 ... 7 8 9]"),
        (tf.constant([True, False]), "[1 0]"),
        (tf.constant([[1, 2], [3, 4]]), "[[1 2]\n [3 4]]"),
        (tf.zeros((2, 2, 2)), "[[[0 0]\n  [0 0]]\n\n [[0 0]\n  [0 0]]]"),
        (tf.constant([1e20, np.nan, -np.inf]), "[1e+20 nan -inf]"),
        (tf.Variable(3.0), "3"),
        ([tf.constant(1), "a"], "[1, 'a']"),
        ({"k": tf.constant(2.5)}, "{'k': 2.5}"),
        ((tf.constant(1),), "(1,)"),
        (None, "None"),
    ],
    ids=lambda value: None if not isinstance(value, str) else value[:12],
)
def test_values_look_as_in_the_original(capsys, value, text):
    tf.print("x", value, output_stream=sys.stdout)
    assert capsys.readouterr().out == f"x {text}\n"


def test_streams_separators_and_lengths(capsys, tmp_path):
    tf.print(1, 2, sep="-", end="!\n")
    tf.print(tf.range(10), summarize=-1)
    tf.print(tf.range(10), summarize=2)
    assert capsys.readouterr().err == "1-2!\n[0 1 2 3 4 5 6 7 8 9]\n[0 1 ... 8 9]\n"
    file = tmp_path / "log.txt"
    tf.print("a", output_stream=f"file://{file}")
    tf.print("b", output_stream=f"file://{file}")
    assert file.read_text() == "a\nb\n"
    with pytest.raises(ValueError, match="output_stream must be"):
        tf.print(1, output_stream=3)
    with pytest.raises(TypeError, match=r"unexpected keyword arguments \['ends'\]"):
        tf.print(1, ends="")


def test_a_compiled_function_prints_at_each_call(capsys):
    @tf.function
    def f(x):
        tf.print("x is", x, output_stream=sys.stdout)
        return x * x

    assert [float(f(tf.constant(v))) for v in (1.0, 2.0, 2.0)] == [1.0, 4.0, 4.0]
    assert capsys.readouterr().out == "x is 1\nx is 2\nx is 2\n"


def test_printing_leaves_the_gradient_alone(capsys):
    def loss(x):
        tf.print(x)
        return x**3

    assert float(tf.grad(loss)(2.0)) == 12.0
    np.testing.assert_array_equal(tf.vmap(loss)(tf.constant([1.0, 2.0])), [1, 8])
    assert capsys.readouterr().err == "2\n1\n2\n"


def test_assertions_that_hold_say_nothing():
    check = tf.debugging
    check.assert_near([1.0, np.inf], [1.0 + 1e-7, np.inf])
    check.assert_near(tf.constant([1.0, 2.0]), 1.5, atol=0.5)
    check.assert_equal([[1, 2]], [1, 2])
    check.assert_none_equal([1, 2], 3)
    check.assert_less([1, 2], 3)
    check.assert_less_equal([1, 3], 3)
    check.assert_greater(4.0, [1, 3])
    check.assert_greater_equal([3, 4], 3)
    check.assert_positive([1, 2])
    check.assert_negative([-1.0])
    check.assert_non_negative([0, 2])
    check.assert_non_positive([0, -2])
    check.Assert(tf.constant(True), [1])
    check.assert_scalar(1.0)
    check.assert_rank_at_least([[1]], 1)
    check.assert_rank_in([1], [0, 1])
    check.assert_type(tf.constant([1.0]), "float32")
    x = tf.zeros([2, 3])
    shapes = [
        (x, "NM"),
        (x[0], ("M",)),
        (tf.zeros([4, 5, 3]), (..., "M")),
        (x[0, 0], ()),
        (x, (2, None)),
    ]
    check.assert_shapes(shapes)


@pytest.mark.parametrize(
    ("name", "args", "words"),
    [
        ("assert_near", ([1.0, 2.0], [1.0, 2.1]), r"1 of 2 elements; at \(1,\): x = 2.0, y = 2.09"),
        ("assert_near", ([np.nan], [np.nan]), "x - y"),
        ("assert_equal", ([1, 2], [1, 3]), r"x == y did not hold element-wise.*x = 2, y = 3"),
        ("assert_none_equal", ([1, 2], 2), "x != y"),
        ("assert_less", (3, [4, 3]), "x < y"),
        ("assert_less_equal", (4, [4, 3]), "x <= y"),
        ("assert_greater", (3, 3), "x > y"),
        ("assert_greater_equal", (2, 3), "x >= y"),
        ("assert_positive", ([1, 0],), "x > 0"),
        ("assert_negative", ([0.0],), "x < 0"),
        ("assert_non_negative", ([np.nan],), "x >= 0"),
        ("assert_non_positive", ([1],), "x <= 0"),
        ("assert_equal", ([1, 2], [1, 2, 3]), "do not broadcast"),
        ("Assert", (False, [7]), "assertion failed: 7"),
        ("assert_scalar", ([1.0],), r"must have rank 0. Received rank 1, shape \(1,\)"),
        ("assert_rank_at_least", ([1], 2, "words"), "words assert_rank_at_least: .* at least 2"),
        ("assert_rank_in", ([1], [0, 2]), r"must have rank in \[0, 2\]"),
        ("assert_shapes", ([([1, 2], "N"), ([1], ("N",))],), r"of shape \(1,\) must .*'N': 2"),
        ("assert_shapes", ([([1, 2], (..., 3))],), r"of shape \(2,\)"),
        ("assert_shapes", ([([1, 2], "NM")],), r"of shape \(2,\)"),
    ],
)
def test_assertions_that_fail_say_where(name, args, words):
    with pytest.raises(tf.errors.InvalidArgumentError, match=words):
        getattr(tf.debugging, name)(*args)


def test_a_dtype_is_a_type_error():
    with pytest.raises(TypeError, match="must be of type int32; got float32"):
        tf.debugging.assert_type(1.0, tf.int32)


def test_an_assertion_is_made_at_each_call_of_a_program():
    @tf.function
    def root(x):
        tf.debugging.assert_non_negative(x, message="roots:")
        return tf.sqrt(x)

    assert float(root(tf.constant(4.0))) == 2.0
    with pytest.raises(ValueError, match="roots: assert_non_negative"):
        root(tf.constant(-4.0))
    assert float(root(tf.constant(9.0))) == 3.0
