"""Jacobians on a tape, `hessians`, compute_gradient (docs/behaviour.md 1.14, 2.1, 2.2)."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state, numbers

X = tf.constant([1.0, 2.0])


def recorded(function, x=X, persistent=False):
    with tf.GradientTape(persistent=persistent) as tape:
        tape.watch(x)
        y = function(x)
    return tape, y


class TestJacobian:
    def test_the_shape_is_the_targets_and_the_sources(self):
        x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        tape, y = recorded(tf.transpose, x)
        jacobian = tape.jacobian(y, x)
        assert jacobian.shape == (3, 2, 2, 3)
        expected = np.einsum("ad,bc->abcd", np.eye(3), np.eye(2))
        assert_array_equal(jacobian.numpy(), expected)

    def test_structures_of_sources(self):
        y = tf.constant([3.0])
        with tf.GradientTape() as tape:
            tape.watch([X, y])
            z = X * y
        jacobians = tape.jacobian(z, {"a": X, "b": [y, X]})
        assert numbers(jacobians) == {"a": [[3, 0], [0, 3]], "b": [[[1], [2]], [[3, 0], [0, 3]]]}

    def test_unconnected(self):
        other = tf.constant([[1.0, 2.0, 3.0]])
        tape, y = recorded(lambda x: x * x, persistent=True)
        assert tape.jacobian(y, other) is None
        zeros = tape.jacobian(y, [other], unconnected_gradients="zero")[0]
        assert_array_equal(zeros.numpy(), np.zeros((2, 1, 3)))
        with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nope'"):
            tape.jacobian(y, other, "nope")

    def test_a_tape_that_is_not_persistent_is_used_up(self):
        tape, y = recorded(lambda x: x * x)
        tape.jacobian(y, X)
        for again in (lambda: tape.jacobian(y, X), lambda: tape.gradient(y, X)):
            with pytest.raises(RuntimeError, match=r"one set of gradients \(or jacobians\)"):
                again()

    def test_without_pfor_a_tape_must_be_persistent(self):
        tape, y = recorded(lambda x: x * x)
        match = r"must be created with persistent=True to compute the jacobian with eager"
        with pytest.raises(RuntimeError, match=match):
            tape.jacobian(y, X, experimental_use_pfor=False)
        tape, y = recorded(lambda x: x * x, persistent=True)
        jacobian = tape.jacobian(y, X, experimental_use_pfor=False)
        assert numbers(jacobian) == [[2.0, 0.0], [0.0, 4.0]]

    @pytest.mark.parametrize("pfor", [True, False])
    def test_hessian_by_the_jacobian_of_a_gradient(self, pfor):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(X)
            with tf.GradientTape() as tape:
                tape.watch(X)
                y = X[0] ** 2 * X[1]
            slope = tape.gradient(y, X)
        jacobian = outer.jacobian(slope, X, experimental_use_pfor=pfor)
        assert numbers(jacobian) == [[4.0, 2.0], [2.0, 0.0]]

    def test_variables_and_other_dtypes(self):
        v = tf.Variable([1.0, 2.0])
        with tf.GradientTape() as tape:
            y = tf.cast(v, "float64") * 3.0
        jacobian = tape.jacobian(y, v)
        assert (jacobian.dtype, numbers(jacobian)) == ("float32", [[3.0, 0.0], [0.0, 3.0]])

    @pytest.mark.parametrize("shape", [(0,), (2, 0)])
    def test_empty_targets_and_sources(self, shape):
        x = tf.ones(shape)
        tape, y = recorded(lambda x: x * x, x, persistent=True)
        assert tape.jacobian(y, x).shape == (*shape, *shape)
        assert tape.jacobian(y, x, experimental_use_pfor=False).shape == (*shape, *shape)

    def test_scalars(self):
        x = tf.constant(3.0)
        tape, y = recorded(lambda x: x * x, x)
        assert tape.jacobian(y, x).numpy() == 6.0

    def test_inside_the_context(self):
        """A persistent tape records its own Jacobian: the tensor of third derivatives."""
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            y = X**3
            with pytest.warns(tf.errors.TapeWarning, match="inside its context"):
                first = tape.jacobian(y, X)
        second = tape.jacobian(first, X).numpy()
        expected = np.zeros((2, 2, 2))
        expected[0, 0, 0], expected[1, 1, 1] = 6.0, 12.0
        assert_array_equal(second, expected)

    @pytest.mark.parametrize("target", [None, 1.0, [X]], ids=str)
    def test_a_target_that_is_not_one_tensor(self, target):
        tape, _ = recorded(lambda x: x * x)
        with pytest.raises(TypeError, match=r"GradientTape\.jacobian: target must be one Tensor"):
            tape.jacobian(target, X)
        with pytest.raises(TypeError, match=r"source must be a Tensor or Variable"):
            tape.jacobian(X, 1.0)

    def test_an_exception_in_a_rule(self):
        @tf.custom_gradient
        def broken(x):
            def grad(dy):
                raise KeyError("mine")

            return x * 1.0, grad

        tape, y = recorded(broken, persistent=True)
        for pfor in (True, False):
            with pytest.raises(KeyError, match="mine"):
                tape.jacobian(y, X, experimental_use_pfor=pfor)
            assert_clean_state()


class TestCustomRules:
    """1.14."""

    def test_of_a_function_with_a_rule(self):
        @tf.custom_gradient
        def cubes(x):
            return tf.reduce_sum(x**3), lambda dy: dy * 3.0 * x**2

        with tf.GradientTape() as outer:
            outer.watch(X)
            tape, y = recorded(lambda x: cubes(x) * x[0])
            slope = tape.gradient(y, X)
        assert (y.numpy(), numbers(slope)) == (9.0, [12.0, 12.0])
        assert numbers(outer.jacobian(slope, X)) == [[12.0, 12.0], [12.0, 12.0]]

    @pytest.mark.parametrize("pfor", [True, False])
    def test_of_a_rule_that_is_not_the_derivative(self, pfor):
        calls = []

        @tf.custom_gradient
        def fake(x):
            return x * 2.0, lambda dy: calls.append(dy) or dy * 10.0 * x

        tape, y = recorded(fake, persistent=True)
        jacobian = tape.jacobian(y, X, experimental_use_pfor=pfor)
        assert numbers(jacobian) == [[10.0, 0.0], [0.0, 20.0]]
        assert len(calls) == (1 if pfor else 2)

    def test_a_rule_in_numpy(self):
        """It is called for each row, since all rows at once have no values."""
        calls = []

        @tf.custom_gradient
        def in_numpy(x):
            return x * 2.0, lambda dy: calls.append(dy) or np.asarray(dy.numpy() * 5.0)

        tape, y = recorded(in_numpy, persistent=True)
        for pfor in (True, False):
            calls.clear()
            jacobian = tape.jacobian(y, X, experimental_use_pfor=pfor)
            assert numbers(jacobian) == [[5.0, 0.0], [0.0, 5.0]]
            assert len(calls) == 2
            assert_clean_state()

    def test_several_outputs_and_variables(self):
        v = tf.Variable([3.0, 4.0])

        @tf.custom_gradient
        def both(x):
            def grad(d1, d2, variables):
                return d1 * 10.0 + d2 * 100.0, [d1 * 7.0]

            return (x * v, tf.sin(x)), grad

        with tf.GradientTape(persistent=True) as tape:
            tape.watch(X)
            first, second = both(X)
        for target, by_x, by_v in ((first, 10.0, 7.0), (second, 100.0, 0.0)):
            for pfor in (True, False):
                jacobians = tape.jacobian(target, [X, v], experimental_use_pfor=pfor)
                assert_array_equal(jacobians[0].numpy(), by_x * np.eye(2))
                assert_array_equal(jacobians[1].numpy(), by_v * np.eye(2))


class TestBatchJacobian:
    def test_values(self):
        x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        tape, y = recorded(lambda x: x * x, x, persistent=True)
        for pfor in (True, False):
            jacobian = tape.batch_jacobian(y, x, experimental_use_pfor=pfor)
            assert numbers(jacobian) == [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]

    def test_more_dimensions(self):
        x = tf.constant(np.random.default_rng(0).normal(size=(4, 2, 3)))
        w = tf.constant(np.random.default_rng(1).normal(size=(3, 5)))
        tape, y = recorded(lambda x: tf.tanh(x @ w), x)
        jacobian = tape.batch_jacobian(y, x).numpy()
        expected = [tf.jacobian(lambda x: tf.tanh(x @ w))(row).numpy() for row in x]
        assert jacobian.shape == (4, 2, 5, 2, 3)
        assert_allclose(jacobian, np.stack(expected), rtol=1e-12, atol=1e-14)

    @pytest.mark.parametrize(
        ("target", "source"), [(X, X[None]), (X[None], X), (X[0], X[None])], ids=str
    )
    def test_rank(self, target, source):
        tape = recorded(lambda x: x * x)[0]
        with pytest.raises(ValueError, match=r"Shape \((2,)?\) must have rank at least 2"):
            tape.batch_jacobian(target, source)

    def test_sizes_of_batches(self):
        with pytest.raises(
            ValueError,
            match=r"Need first dimension of target shape \(\(1, 2\)\) and source shape \(\(2, 2\)",
        ):
            recorded(lambda x: x * x)[0].batch_jacobian(tf.ones((1, 2)), tf.ones((2, 2)))

    @pytest.mark.parametrize("choice", ["none", "zero"])
    def test_unconnected_is_zeros(self, choice):
        tape, y = recorded(lambda x: x * x, tf.ones((2, 3)))
        jacobian = tape.batch_jacobian(y, tf.ones((2, 4)), unconnected_gradients=choice)
        assert_array_equal(jacobian.numpy(), np.zeros((2, 3, 4)))

    @pytest.mark.parametrize("shape", [(1, 0), (0, 2), (0, 0)])
    def test_empty(self, shape):
        x = tf.ones(shape)
        tape, y = recorded(lambda x: x * x, x)
        assert tape.batch_jacobian(y, x).shape == (*shape, shape[1])

    def test_without_pfor_a_tape_must_be_persistent(self):
        tape, y = recorded(lambda x: x * x, X[None])
        with pytest.raises(RuntimeError, match=r"must be created with persistent=True"):
            tape.batch_jacobian(y, X[None], experimental_use_pfor=False)

    def test_other_arguments(self):
        tape, y = recorded(lambda x: x * x, X[None])
        with pytest.raises(TypeError, match=r"batch_jacobian: source must be one Tensor"):
            tape.batch_jacobian(y, [X])


class TestHessians:
    """2.2."""

    def test_values(self):
        with tf.Graph().as_default():
            x = tf.constant([1.0, 2.0])
            hessians = tf.hessians(tf.reduce_sum(x**3) + x[0] * x[1], x)
            other = tf.constant([3.0])
            blocks = tf.hessians(tf.reduce_sum(x**3) * tf.reduce_sum(other**2), [x, other])
            none = tf.hessians(tf.reduce_sum(x**3), [other])
        assert numbers(hessians) == [[[6.0, 1.0], [1.0, 12.0]]]
        assert numbers(blocks) == [[[54.0, 0.0], [0.0, 108.0]], [[18.0]]]
        assert none == [None]

    def test_in_eager_mode(self):
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            tf.hessians(X, X)

    def test_of_a_linear_function(self):
        """Its gradient does not depend on x."""
        with tf.Graph().as_default():
            x = tf.constant([1.0, 2.0])
            assert tf.hessians(tf.reduce_sum(x * 3.0), x) == [None]

    def test_matrices(self):
        with tf.Graph().as_default():
            x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
            (hessian,) = tf.hessians(tf.reduce_sum(x**3), x)
        expected = np.einsum("ab,ac,bd->abcd", 6 * x.numpy(), np.eye(2), np.eye(2))
        assert_array_equal(hessian.numpy(), expected)


class TestComputeGradient:
    """2.3's companion: ``tf.test.compute_gradient``."""

    def test_values(self):
        theoretical, numerical = tf.test.compute_gradient(
            lambda x, y: tf.tanh(x[:, None] * y), [X, tf.constant([0.5, -1.0, 0.1])]
        )
        assert [jacobian.shape for jacobian in theoretical] == [(6, 2), (6, 3)]
        for jacobian, other in zip(theoretical, numerical, strict=True):
            assert jacobian.dtype == other.dtype == np.float32
            assert_allclose(jacobian, other, atol=1e-3)

    def test_a_wrong_rule_is_seen(self):
        @tf.custom_gradient
        def fake(x):
            return x * 2.0, lambda dy: dy * 3.0

        theoretical, numerical = tf.test.compute_gradient(fake, [X], delta=0.25)
        assert_array_equal(theoretical[0], 3.0 * np.eye(2))
        assert_array_equal(numerical[0], 2.0 * np.eye(2))

    def test_empty(self):
        theoretical, numerical = tf.test.compute_gradient(lambda x: x * x, [tf.ones((0, 2))])
        assert theoretical[0].shape == numerical[0].shape == (0, 0)
        theoretical, numerical = tf.test.compute_gradient(tf.reduce_sum, [tf.ones((0, 2))])
        assert theoretical[0].shape == numerical[0].shape == (1, 0)

    def test_errors(self):
        with pytest.raises(TypeError, match="`x` must be a list or tuple"):
            tf.test.compute_gradient(tf.tanh, X)
        with pytest.raises(TypeError, match="cast integers first"):
            tf.test.compute_gradient(tf.tanh, [tf.constant(3)])
