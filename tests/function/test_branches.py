"""Choices by tensors without a value: values and derivatives are those of eager runs."""

import numpy as np
import pytest

import tinygrad_cg as tf


def values(result):
    return [None if leaf is None else np.array(leaf) for leaf in tf.nest.flatten(result)]


def assert_same(result, expected, tolerance):
    for value, other in zip(values(result), values(expected), strict=True):
        if other is None or value is None:  # a program has zeros where one branch does not depend
            assert value is None or not value.any()
            assert other is None or not other.any()
        else:
            np.testing.assert_allclose(value, other, rtol=tolerance, atol=tolerance)


def chosen(x, w):
    return tf.cond(tf.reduce_sum(x) > 0.5, lambda: tf.exp(x * w), lambda: w * x * x + 1.0)


def tangent(x, w):
    return tf.jvp(chosen, (x, w), (tf.ones_like(x), 0.5 * tf.ones_like(w)))[1]


@pytest.mark.parametrize("run", [chosen, tf.elementwise_grad(chosen, (0, 1)), tangent])
def test_batches_inside_a_choice_that_is_the_same_for_all(run):
    ws = tf.constant([[0.5, 1.0], [2.0, -1.0], [0.25, 4.0]])
    g = tf.vmap(run, (None, 0))
    for point in ([0.75, 1.5], [-1.5, 0.25]):
        x = tf.constant(point)
        assert_same(tf.function(g)(x, ws), g(x, ws), 2e-4)


def test_jacobians_of_a_choice():
    def jacobian(x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = chosen(x, w)
        return tape.jacobian(y, x)

    x, w = tf.constant([0.75, 1.5]), tf.constant([0.5, -0.75])
    assert_same(tf.function(jacobian)(x, w), jacobian(x, w), 1e-5)


# What happens in branches ------------------------------------------------------------------------


def test_variables_are_read_and_assigned_in_the_chosen_branch_alone():
    v, u = tf.Variable([1.0, 2.0]), tf.Variable(3.0)

    def f(x):
        def positive():
            v.assign(v * x)
            return tf.reduce_sum(v) * u

        def negative():
            u.assign_add(1.0)
            return u * x

        return tf.cond(x > 0.0, positive, negative) + tf.reduce_sum(v)

    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return y, tape.gradient(y, [x, v, u], unconnected_gradients="zero")

    for run in (tf.function(gradients), lambda x: gradients(x), tf.function(f)):
        results = []
        for number in (2.0, -2.0):
            v.assign([1.0, 2.0])
            u.assign(3.0)
            results.append((run(tf.constant(number)), v.numpy(), u.numpy()))
        (result, after, kept), (other, same, more) = results
        np.testing.assert_array_equal(after, [2.0, 4.0])
        np.testing.assert_array_equal(same, [1.0, 2.0])
        assert (kept, more) == (3.0, 4.0)
        numbers = [result, other]
        if isinstance(result, tuple):
            numbers = [result[0], other[0]]
            assert_same(result[1], [0.0, np.full(2, 4.0), 6.0], 0)
            assert_same(other[1], [4.0, np.ones(2), -2.0], 0)
        assert [float(y) for y in numbers] == [24.0, -5.0]


def test_gradients_flow_through_recorded_assignments_in_branches():
    v = tf.Variable(1.0)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.experimental.recorded_assignments(restore=True):
                inside = tf.cond(x > 0.0, lambda: v.assign(x * x) * 3.0, lambda: v * x)
                y = inside + v * 10.0
        return y, tape.gradient(y, x)

    for number in (2.0, -2.0):
        x = tf.constant(number)
        assert_same(tf.function(f)(x), f(x), 0)
        assert float(v) == 1.0


def test_branches_read_what_was_assigned_and_recorded_before_them():
    v = tf.Variable([2.0, 3.0], dtype=tf.float64)

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            with tf.experimental.recorded_assignments(restore=True):
                v.assign(x * v)
                tf.cond(x[0] > 0.0, lambda: v.assign_add(x) * 1.0, lambda: v * x)
                y = tf.cond(x[0] > 0.0, lambda: v * v, lambda: v.assign(v * x) * v)
                y = tf.reduce_sum(y * v)
        return y, *tape.gradient(y, [x, v])

    for numbers in ([0.3, 0.2], [-0.3, 0.5]):
        x = tf.constant(numbers, tf.float64)
        assert_same(tf.function(f)(x), f(x), 1e-12)


def test_only_the_chosen_branch_runs():
    calls = []

    def note(name):
        def run(x):
            calls.append(name)
            return np.float32(2.0) * x + len(calls)

        return run

    def f(x):
        return tf.cond(
            x > 0.0,
            lambda: tf.numpy_function(note("one"), [x], tf.float32) * x,
            lambda: tf.numpy_function(note("other"), [x], tf.float32),
        )

    program = tf.function(f)
    program(tf.constant(1.0))
    calls.clear()
    assert float(program(tf.constant(3.0))) == 21.0
    assert calls == ["one"]
    assert float(program(tf.constant(-3.0))) == -4.0
    assert calls == ["one", "other"]


def test_code_that_cannot_be_repeated_runs_once_where_there_is_a_gradient():
    calls = []

    def noisy(x):
        calls.append(0)
        return x + np.float32(len(calls))

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cond(
                x > 0.0,
                lambda: x * tf.stop_gradient(tf.numpy_function(noisy, [x], tf.float32)),
                lambda: x,
            )
        return y, tape.gradient(y, x)

    program = tf.function(f)
    program(tf.constant(1.0))
    calls.clear()
    y, gradient = program(tf.constant(2.0))
    assert len(calls) == 1
    assert (float(y), float(gradient)) == (6.0, 3.0)


def test_what_branches_print_comes_in_order(capfd):
    @tf.function
    def f(x):
        tf.print("before", x)
        y = tf.cond(x > 0.0, lambda: (tf.print("yes"), x)[1], lambda: -x)
        tf.print("after", y)
        return y

    f(tf.constant(1.0))
    capfd.readouterr()
    f(tf.constant(2.0))
    f(tf.constant(-2.0))
    text = "".join(capfd.readouterr())
    assert text.split() == ["before", "2", "yes", "after", "2", "before", "-2", "after", "2"]


def test_random_numbers_in_branches_follow_the_seed():
    def f(x):
        return tf.cond(x > 0.0, lambda: x * tf.random.uniform((3,)), lambda: tf.zeros((3,)))

    program = tf.function(f)
    program(tf.constant(1.0))
    tf.random.set_seed(3)
    first, second = program(tf.constant(1.0)).numpy(), program(tf.constant(1.0)).numpy()
    tf.random.set_seed(3)
    np.testing.assert_array_equal(program(tf.constant(1.0)).numpy(), first)
    assert (first != second).all()


def test_tapes_inside_branches_and_gradients_of_what_was_outside():
    def f(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * x

        def inside():
            with tf.GradientTape() as inner:
                inner.watch(x)
                z = tf.sin(x) * x
            return inner.gradient(z, x)

        return tf.cond(x > 1.0, inside, lambda: tape.gradient(y, x))

    for number in (0.5, 2.0):
        x = tf.constant(number)
        assert_same(tf.function(f)(x), f(x), 1e-6)
        assert_same(tf.function(tf.grad(f))(x), tf.grad(f)(x), 1e-5)


def test_numbers_take_the_dtype_of_the_other_branch():
    f = tf.function(lambda x: tf.cond(x > 0.0, lambda: 1, lambda: x))
    assert f(tf.constant(2.0, tf.float64)).dtype == tf.float64
    g = tf.function(lambda x, n: tf.cond(n > 1.0, lambda: (x * n, None), lambda: (2, None)))
    assert [float(g(tf.constant(2.0), n)[0]) for n in (3.0, 0.5)] == [6.0, 2.0]
    assert g(tf.constant(2.0), 0.5)[1] is None


# Errors ------------------------------------------------------------------------------------------


def test_errors_show_both_branches():
    x = tf.constant([1.0, 2.0])
    total = lambda x: tf.reduce_sum(x) > 0
    cases = [
        (lambda: x, lambda: (x, x), r"`false_fn` returned \(float32\(2,\), float32\(2,\)\), `true"),
        (
            lambda: x[:1],
            lambda: x,
            r"float32 of shape \(2,\) in `false_fn`, float32 of shape \(1,\) in ",
        ),
        (lambda: tf.cast(x, tf.float64), lambda: x, "float64"),
        (lambda: None, lambda: x, "different things"),
    ]
    for branch, other, words in cases:
        with pytest.raises(TypeError, match=words):
            tf.function(lambda y, branch=branch, other=other: tf.cond(total(y), branch, other))(x)
    with pytest.raises(ValueError, match="one value, got a tensor of shape"):
        tf.function(lambda x: tf.cond(x > 0, lambda: x, lambda: x))(x)
    with pytest.raises(TypeError, match="must be an integer"):
        tf.function(lambda x: tf.switch_case(x[0], [lambda: x]))(x)
    with pytest.raises(ValueError, match="give `default`"):
        tf.function(lambda x: tf.case([(x[0] > 0, lambda: x)]))(x)
    with pytest.raises(ValueError, match=r"creates a tf\.Variable"):
        tf.function(lambda x: tf.cond(x[0] > 0, lambda: tf.Variable(1.0) * x, lambda: x))(x)


def test_a_tensor_of_a_branch_does_not_leak():
    kept = []

    @tf.function
    def f(x):
        def inside():
            kept.append(x * x)
            return kept[0]

        return tf.cond(x > 0.0, inside, lambda: x) + kept[0]

    with pytest.raises(tf.errors.InaccessibleTensorError):
        f(tf.constant(2.0))


def test_keras_switch_takes_the_nearest_branch():
    def f(index, x):
        return tf.keras.ops.switch(index, [lambda x: x, tf.sin, lambda x: x * x], x)

    x = tf.constant([1.0, 2.0])
    for run in (f, tf.function(f)):
        results = [run(tf.constant(index), x) for index in (-3, 0, 1, 2, 7)]
        assert_same(results, [x, x, tf.sin(x), x * x, x * x], 1e-6)
    each = tf.function(tf.vmap(f))(tf.constant([7, 1]), x)
    assert_same(each, np.array([1.0, np.sin(2.0)]), 1e-6)


def test_switch_case_and_case_choose_eagerly():
    assert int(tf.switch_case(5, [lambda: 1, lambda: 2])) == 2
    assert int(tf.switch_case(tf.constant(-1), {3: lambda: 1, 0: lambda: 2})) == 1
    assert int(tf.switch_case(0, [(3, lambda: 1), (0, lambda: 2)], default=lambda: 7)) == 2
    assert int(tf.case([(False, lambda: 1), (tf.constant(True), lambda: 2)])) == 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="no predicate"):
        tf.case([(False, lambda: 1)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="exclusive"):
        tf.case([(True, lambda: 1), (True, lambda: 2)], exclusive=True)
    with pytest.raises(ValueError, match="has a number twice"):
        tf.switch_case(0, [(3, lambda: 1), (3, lambda: 2)])
    with pytest.raises(TypeError, match="callable"):
        tf.switch_case(0, [3])
    with pytest.raises(TypeError, match="must be a list of pairs"):
        tf.case([(True, lambda: 1, lambda: 2)])


def test_integers_that_are_known_are_results_of_branches():
    @tf.function
    def f(x):
        first = tf.cond(x > 0.0, lambda: tf.constant(3), lambda: tf.constant(0))
        return tf.cond(tf.equal(first, 0), lambda: (tf.constant(7), x * x), lambda: (first, x))

    assert [float(number) for number in f(tf.constant(2.0))] == [3.0, 2.0]
    assert [float(number) for number in f(tf.constant(-2.0))] == [7.0, 4.0]
