"""ForwardAccumulator: docs/behaviour.md 2.3, 1.15 and decision 7; numbers of TensorFlow 2.21."""

import gc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.composites import fake_fused, nested
from tests.support.orders import (
    assert_clean_state,
    custom_gradient_warnings,
    gradient_function,
    numbers,
    tangent_function,
)
from tests.support.rules import polar
from tinygrad_cg.autodiff import ForwardAccumulator

X = tf.constant([1.0, 2.0])


def pushed(function, x, tangent=1.0):
    """The tangent of function(x), as numbers."""
    x = tf.constant(x) if not tf.is_tensor(x) else x
    with ForwardAccumulator(x, tf.ones_like(x) * tangent) as accumulator:
        y = function(x)
    return numbers(accumulator.jvp(y))


class TestTheDocumentation:
    """2.3, the examples."""

    def test_a_layer(self):
        kernel = tf.Variable([[1.0], [1.0]])
        x, targets = tf.constant([[2.0, 3.0], [1.0, 4.0]]), tf.constant([[1.0], [-1.0]])
        with ForwardAccumulator(kernel, tf.constant([[1.0], [0.0]])) as accumulator:
            loss = tf.reduce_sum((x @ kernel - targets) ** 2)
        assert accumulator.jvp(loss).numpy() == 28.0

    def test_hessian_vector_product(self):
        v = tf.Variable([1.0, 2.0])
        with ForwardAccumulator(v, tf.constant([1.0, 0.0])) as accumulator:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v**3.0)
            backward = tape.gradient(y, v)
        assert numbers([backward, accumulator.jvp(backward)]) == [[3.0, 12.0], [6.0, 0.0]]

    def test_accumulators_nest(self):
        x, unit = tf.constant(2.0), tf.constant(1.0)
        with ForwardAccumulator(x, unit) as outer:
            with ForwardAccumulator(x, unit) as inner:
                y = x**3
            first = inner.jvp(y)
        assert numbers([first, outer.jvp(first), outer.jvp(y)]) == [12.0, 12.0, 12.0]


class TestContexts:
    def test_looking_up_is_repeatable_and_possible_after_the_end(self):
        with ForwardAccumulator(X, X) as accumulator:
            y = X * X
            assert numbers(accumulator.jvp(y)) == [2.0, 8.0]
        assert numbers(accumulator.jvp([y, {"a": X}])) == [[2.0, 8.0], {"a": [1.0, 2.0]}]
        assert numbers(accumulator.jvp(y)) == [2.0, 8.0]

    def test_it_goes_on_when_it_is_entered_again(self):
        accumulator = ForwardAccumulator(X, X)
        with accumulator:
            y = X * X
        between = y * X
        with accumulator:
            z = y * X
        assert numbers(accumulator.jvp([between, z])) == [None, [3.0, 24.0]]
        assert_clean_state()

    def test_it_cannot_be_entered_twice_at_once(self):
        accumulator = ForwardAccumulator(X, X)
        with accumulator, pytest.raises(ValueError, match=r"Accumulator is already recording\."):
            accumulator.__enter__()
        assert_clean_state()

    def test_an_exception_ends_it(self):
        with pytest.raises(ZeroDivisionError), ForwardAccumulator(X, X):
            _ = 1 / 0
        assert_clean_state()

    def test_contexts_that_end_out_of_order(self):
        accumulator, tape = ForwardAccumulator(X, X), tf.GradientTape()
        accumulator.__enter__()
        tape.__enter__()
        tape.watch(X)
        y = X * X
        accumulator.__exit__(None, None, None)
        z = y * X
        tape.__exit__(None, None, None)
        assert numbers(accumulator.jvp([y, z])) == [[2.0, 8.0], None]
        assert numbers(tape.gradient(z, X)) == [3.0, 12.0]
        assert_clean_state()

    def test_what_is_over_leaves_nothing_at_its_primals(self):
        x = tf.constant([1.0])
        for _ in range(20):
            with ForwardAccumulator(x, x) as accumulator:
                _ = x * x
        del accumulator
        gc.collect()
        ForwardAccumulator(x, x)
        count, record = 0, x._rec
        while record is not None:
            count, record = count + 1, record.next
        assert count <= 2


class TestArguments:
    def test_a_primal_twice(self):
        with pytest.raises(ValueError, match=r"Tensor \{\} was specified as a primal multiple"):
            ForwardAccumulator([X, X], [X, X])

    def test_another_dtype(self):
        with pytest.raises(ValueError, match=r"requested dtype float32 for Tensor with dtype fl"):
            ForwardAccumulator(X, tf.constant([1.0, 2.0], dtype="float64"))

    def test_another_shape(self):
        with pytest.raises(ValueError, match=r"tangent has shape \(3,\), its primal \(2,\)"):
            ForwardAccumulator(X, tf.ones(3))

    def test_another_structure(self):
        with pytest.raises(ValueError, match="structure"):
            ForwardAccumulator([X], X)

    @pytest.mark.parametrize("primal", [1.0, np.ones(2), [X, 1.0]], ids=str)
    def test_no_tensor(self, primal):
        with pytest.raises(TypeError, match=r"primal must be a Tensor or Variable.* constant\(\)"):
            ForwardAccumulator(primal, primal)

    def test_an_integer_warns_and_has_no_tangent(self):
        x = tf.constant(3)
        with pytest.warns(tf.errors.TapeWarning, match=r"primal must be floating"):
            accumulator = ForwardAccumulator(x, x)
        with accumulator:
            y = tf.cast(x, "float32") * 2.0
        assert accumulator.jvp(y) is None

    def test_numbers_and_lists_are_tangents(self):
        x = tf.constant(2.0)
        with ForwardAccumulator(x, 1.5) as accumulator:
            y = x * x
        assert accumulator.jvp(y).numpy() == 6.0

    def test_unconnected(self):
        other = tf.constant([[1.0, 2.0]])
        accumulator = ForwardAccumulator(X, X)
        assert accumulator.jvp(other) is None
        zeros = accumulator.jvp([other, X], unconnected_gradients="zero")
        assert numbers(zeros) == [[[0.0, 0.0]], [1.0, 2.0]]
        zeros = accumulator.jvp(other, tf.UnconnectedGradients.ZERO)
        assert numbers(zeros) == [[0.0, 0.0]]
        with pytest.raises(ValueError, match="Unknown value for unconnected_gradients: 'nope'"):
            accumulator.jvp(other, "nope")

    def test_jvp_of_no_tensor(self):
        with pytest.raises(TypeError, match="jvp: needs a Tensor or Variable, got float"):
            ForwardAccumulator(X, X).jvp(1.0)


class TestOperations:
    def test_what_has_no_gradient_has_no_tangent(self):
        for function in (tf.round, tf.argmax, tf.stop_gradient, lambda x: x > 1.0):
            assert pushed(function, [1.5, 2.5]) is None
        assert pushed(tf.sign, [1.5, -2.5]) == [0.0, 0.0]  # as its gradient

    def test_variables_that_are_read_inside(self):
        v = tf.Variable(3.0)
        with ForwardAccumulator(v, tf.constant(2.0)) as accumulator:
            y = v * v
            v.assign(100.0)
        assert accumulator.jvp(y).numpy() == 12.0

    def test_holomorphic_functions(self):
        """jvp(t) is conj(vjp(conj t)), and that is f'(z) t."""
        z = tf.constant([0.4 - 0.3j, -1.0 + 0.7j])
        way = tf.constant([0.2 + 1.0j, 1.5 - 0.4j])
        for function, slope in (
            (lambda z: tf.exp(z) * z, lambda z: np.exp(z) * (1 + z)),
            (lambda z: z**3 / (z + 2.0), lambda z: (3 * z**2 * (z + 2) - z**3) / (z + 2) ** 2),
            (tf.sin, np.cos),
            (lambda z: tf.reduce_prod(z) * z, None),
        ):
            tangent = tf.jvp(function, (z,), (way,))[1].numpy()
            again = tf.linearize(function, z)[1](way).numpy()
            pulled = tf.vjp(function, z)[1](tf.constant(np.conj(way.numpy())))[0].numpy()
            assert_allclose(again, tangent, rtol=1e-12)
            if slope is not None:
                assert_allclose(tangent, slope(z.numpy()) * way.numpy(), rtol=1e-12)
                assert_allclose(np.conj(pulled), tangent, rtol=1e-12)

    def test_complex_to_real(self):
        z, way = tf.constant([0.4 - 0.3j]), tf.constant([0.2 + 1.0j])
        tangent = tf.jvp(lambda z: tf.abs(z) ** 2, (z,), (way,))[1].numpy()
        assert_allclose(tangent, 2 * np.real(np.conj(z.numpy()) * way.numpy()), rtol=1e-12)

    def test_empty_tensors(self):
        assert pushed(lambda x: tf.reduce_sum(x * x), np.zeros((0, 3))) == 0.0
        assert pushed(tf.tanh, np.zeros((0, 3))) == []


class TestCustomGradients:
    """1.15: the original ignores the rules where it can; here they hold (decision 7)."""

    def test_the_rule_is_used(self):
        @tf.custom_gradient
        def fake(x):
            return x * 3.0, lambda dy: 100.0 * dy

        assert pushed(fake, 2.0, 1.5) == 150.0

    @pytest.mark.parametrize("cut", [tf.stop_gradient, lambda x: tf.constant(x.numpy())])
    @pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
    def test_and_where_the_function_has_no_operations(self, cut):
        @tf.custom_gradient
        def fake(x):
            return cut(x) * 3.0, lambda dy: 100.0 * dy

        assert pushed(fake, 2.0, 1.5) == 150.0

    def test_the_transpose_of_a_rule_with_a_rule(self):
        """op2 is 12 dy at 2, whatever op3 claims of it."""
        for factor in (12.0, 1000.0):
            assert pushed(nested(lambda x, d, factor=factor: factor * d), 2.0, 1.5) == 18.0

    def test_forward_over_reverse_is_reverse_over_reverse(self):
        """Example 1: 24000 and 288 at 2, for op(x)**2; example 2, a fake: 1000 for op."""

        def second(function):
            x = tf.constant(2.0)
            with ForwardAccumulator(x, tf.constant(1.0)) as accumulator:
                with tf.GradientTape() as tape:
                    tape.watch(x)
                    y = function(x)
                slope = tape.gradient(y, x)
            return float(accumulator.jvp(slope))

        for factor, expected in ((1000.0, 24000.0), (12.0, 288.0)):
            op = nested(lambda x, d, factor=factor: factor * d)
            assert second(lambda x, op=op: op(x) ** 2) == expected
        assert second(fake_fused) == 1000.0

    @pytest.mark.parametrize(
        ("second", "power", "expected"),
        [
            (lambda x, ddy: 6.0 * x * ddy, 1, 12.0),
            (lambda x, ddy: 6.0 * x * ddy, 2, 480.0),
            (lambda x, ddy: 1000.0 * ddy, 1, 1000.0),
            (lambda x, ddy: 1000.0 * ddy, 2, 16288.0),
        ],
    )
    def test_example_2_with_one_argument(self, second, power, expected):
        """All orders of the modes have the original's numbers, also of a fake second order."""

        @tf.custom_gradient
        def op(x):
            def first_order(dy):
                @tf.custom_gradient
                def slope(x):
                    return 3.0 * x**2, lambda ddy: second(x, ddy)

                return dy * slope(x)

            return x**3, first_order

        x, unit = tf.constant(2.0), tf.constant(1.0)
        f = lambda x: op(x) ** power
        results = [
            outer(lambda x, inner=inner: inner(tf.identity(x)))(x)
            for outer in (gradient_function, lambda f: tangent_function(f, unit))
            for inner in (gradient_function(f), tangent_function(f, unit))
        ]
        assert numbers(results) == [expected] * 4

    @pytest.mark.parametrize(("factor", "expected"), [(12.0, 288.0), (1000.0, 480.0)])
    def test_example_1_reverse_over_forward(self, factor, expected):
        """The tape sees how the tangent was computed: by op3 if that is the transpose, otherwise
        by the operations of op2, whose derivative is the true one. Not in silence (decision 5).
        """
        op = nested(lambda x, d: factor * d)
        x, unit = tf.constant(2.0), tf.constant(1.0)
        with custom_gradient_warnings() as texts:
            tangent = tangent_function(lambda x: op(x) ** 2, unit)
            gradient = gradient_function(lambda x: tangent(tf.identity(x)))(x)
        assert gradient.numpy() == expected
        assert len(texts) == 1
        assert "rule of `grad` is not used: a tape watches only tensors" in texts[0]

    def test_several_outputs_of_which_one_is_used(self):
        @tf.custom_gradient
        def both(x):
            return (x * x, tf.sin(x)), lambda d1, d2: 10.0 * d1 + 100.0 * d2

        assert pushed(lambda x: both(x)[1] * 2.0, 3.0) == 200.0
        assert pushed(lambda x: both(x), 3.0) == [10.0, 100.0]

    def test_keyword_and_integer_inputs(self):
        @tf.custom_gradient
        def scaled(x, power, *, by):
            return x * by, lambda dy: (dy * by * 10.0, None, dy * x)

        x, by = tf.constant(2.0), tf.constant(3.0)
        with ForwardAccumulator([x, by], [tf.constant(1.0), tf.constant(1.0)]) as accumulator:
            y = scaled(x, 2, by=by)
        assert accumulator.jvp(y).numpy() == 32.0

    def test_captured_variables_count(self):
        v = tf.Variable(3.0)

        @tf.custom_gradient
        def scaled(x):
            return x * v, lambda dy, variables: (dy * v, [7.0 * dy])

        x = tf.constant(2.0)
        with ForwardAccumulator([x, v], [tf.constant(1.0), tf.constant(10.0)]) as accumulator:
            y = scaled(x)
        assert accumulator.jvp(y).numpy() == 73.0

    def test_only_a_captured_tensor_moves(self):
        """Decision 5: the number of the operations, and a warning."""
        w = tf.constant(5.0)

        @tf.custom_gradient
        def captures(x):
            return x * w, lambda dy: 100.0 * dy

        with custom_gradient_warnings() as texts, ForwardAccumulator(w, 1.0) as accumulator:
            y = captures(tf.constant(2.0))
        assert accumulator.jvp(y).numpy() == 2.0
        assert len(texts) == 1
        assert "captures" in texts[0]


def clipped(dy):
    return tf.clip_by_value(dy, -1.0, 1.0)


def of_unit_length(dy):
    return dy / tf.norm(dy)


def signed_length(dy):
    """Of degree 1, and odd, but not linear."""
    return tf.sign(dy) * tf.norm(dy)


@pytest.mark.parametrize("change", [clipped, of_unit_length, signed_length, tf.nn.relu, tf.square])
class TestRulesThatAreNotLinear:
    """Decision 7: an error that names the rule, in each kind of forward mode."""

    def refused(self, run):
        with pytest.raises(TypeError, match=r"the rule of `changed` is not linear in its upstre"):
            run()
        assert_clean_state()

    def changed(self, change):
        @tf.custom_gradient
        def changed(x):
            return x * 2.0, change

        return changed

    def test_refused(self, change):
        f = self.changed(change)
        x = tf.constant([0.5, -1.0, 2.0])
        self.refused(lambda: tf.jvp(f, (x,), (x,)))
        self.refused(lambda: tf.linearize(f, x))
        self.refused(lambda: tf.jacobian(f, mode="forward")(x))
        self.refused(lambda: tf.vmap(lambda x: tf.jvp(f, (x,), (x,)))(x[None]))
        self.refused(lambda: tf.jvp(tf.vmap(f), (x[None],), (x[None],)))
        self.refused(lambda: tf.linearize(tf.vmap(f), x[None]))
        self.refused(lambda: tf.vmap(lambda x: tf.linearize(f, x)[1](x))(x[None]))

    def test_reverse_mode_takes_it(self, change):
        x = tf.constant([0.5, -1.0, 2.0])
        upstream = tf.constant([3.0, 0.5, -4.0])
        (gradient,) = tf.vjp(self.changed(change), x)[1](upstream)
        assert numbers(gradient) == numbers(change(upstream))


def test_a_users_operation_with_several_outputs():
    """Its rule sees the outputs: their tangents count at the second order."""
    x = tf.constant([0.3, 1.0], dtype="float64")
    with ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = polar(x)[1]
        slope = tape.gradient(y, x)
    assert_allclose(accumulator.jvp(slope).numpy(), -np.sin(x.numpy()), rtol=1e-12)


PUSHFORWARDS = {
    "jvp": lambda f, x, v: tf.jvp(f, (x,), (v,))[1],
    "linearize": lambda f, x, v: tf.linearize(f, x)[1](v),
}


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function, tf.vmap])
@pytest.mark.parametrize("push", PUSHFORWARDS.values(), ids=PUSHFORWARDS)
def test_a_nan_of_a_rule_is_not_hidden(wrap, push):
    """Reverse mode multiplies first, which gives inf / inf; forward mode divides: 1 / inf is 0."""

    @tf.custom_gradient
    def tanh(x):
        return tf.tanh(x), lambda dy: dy * tf.sinh(x) / tf.cosh(x)

    x, one = tf.constant([0.5, 800.0], tf.float64), tf.constant([1.0, 1.0], tf.float64)
    tangent = wrap(lambda x, v: push(tanh, x, v))
    finite = tangent(tf.constant([0.5, 1.0], tf.float64), one)  # also what a function is traced for
    assert_allclose(finite, np.tanh([0.5, 1.0]))
    assert_allclose(tf.vjp(tanh, x)[1](one)[0], [np.tanh(0.5), np.nan])
    assert_allclose(tangent(x, one), [np.tanh(0.5), np.nan])
    assert_allclose(tangent(x, tf.constant([1.0, 0.0], tf.float64)), [np.tanh(0.5), 0.0])
    masked = wrap(lambda x, v: push(lambda x: tf.where(x < 9.0, tanh(x), x), x, v))
    assert_allclose(masked(x, one), [np.tanh(0.5), 1.0])
