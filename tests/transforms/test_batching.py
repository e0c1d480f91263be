"""vmap and vectorized_map (docs/behaviour.md 6.3): a batch is a loop, but for its speed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.op_cases import examples, names
from tests.support.orders import assert_clean_state, numbers, slope
from tests.support.rules import polar
from tinygrad_cg._core.levels import state
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._transforms.batching import vmap
from tinygrad_cg.autodiff import ForwardAccumulator

X = np.random.default_rng(0).normal(size=(4, 3))
W = np.array([0.5, -1.0, 2.0])


def loss(w, x):
    return tf.reduce_sum(tf.tanh(w * x) ** 2)


def gradient(function, w):
    with tf.GradientTape() as tape:
        tape.watch(w)
        y = function(w)
    return tape.gradient(y, w)


def each(function, batched):
    return np.stack([function(tf.constant(row)).numpy() for row in batched])


def test_values():
    w = tf.constant(W)
    result = vmap(lambda x: loss(w, x))(tf.constant(X))
    np.testing.assert_allclose(result.numpy(), each(lambda x: loss(w, x), X))


@pytest.mark.parametrize("weight", [W, W[:1], W[0]], ids=["vector", "one", "scalar"])
def test_tape_inside_gives_a_gradient_for_each_example(weight):
    """Un-broadcasting looks at logical shapes: w's gradients are not summed over the batch."""
    w = tf.constant(weight)

    def per_example(x):
        return gradient(lambda w: loss(w, x), w)

    result = vmap(per_example)(tf.constant(X))
    assert result.shape == (4, *w.shape)
    np.testing.assert_allclose(result.numpy(), each(per_example, X))


def test_tape_outside_records_what_the_batch_did():
    x = tf.constant(X)
    result = gradient(
        lambda w: tf.reduce_sum(vmap(lambda row: loss(w, row))(x)), w := tf.constant(W)
    )
    expected = sum(gradient(lambda w, row=row: loss(w, tf.constant(row)), w).numpy() for row in X)
    np.testing.assert_allclose(result.numpy(), expected)


def test_gradient_of_the_batched_operand():
    x, w = tf.constant(X), tf.constant(W)
    result = gradient(lambda x: tf.reduce_sum(vmap(lambda row: loss(w, row))(x)), x)
    np.testing.assert_allclose(
        result.numpy(), each(lambda row: gradient(lambda row: loss(w, row), row), X)
    )


def test_tapes_inside_and_outside():
    """The derivative, by w, of the squared norms of the gradients of each example."""
    x, w = tf.constant(X), tf.constant(W)

    def penalty(w, row):
        return tf.reduce_sum(gradient(lambda inner: loss(inner * w, row), row * 0.0 + 1.0) ** 2)

    result = gradient(lambda w: tf.reduce_sum(vmap(lambda row: penalty(w, row))(x)), w)
    expected = sum(
        gradient(lambda w, row=row: penalty(w, tf.constant(row)), w).numpy() for row in X
    )
    np.testing.assert_allclose(result.numpy(), expected)


def test_batch_in_batch():
    w = tf.constant(W)
    result = vmap(lambda row: vmap(lambda row: row * row)(row) * w)(tf.constant(X))
    np.testing.assert_allclose(result.numpy(), X * X * W)


def test_custom_gradient_inside_a_batch():
    @tf.custom_gradient
    def doubled(x):
        return x * 1.0, lambda dy: 2.0 * dy

    result = vmap(lambda x: gradient(lambda x: tf.reduce_sum(doubled(x) * x), x))(tf.constant(X))
    np.testing.assert_allclose(result.numpy(), 2.0 * X + X)


def test_level_ends_with_an_exception():
    with pytest.raises(ZeroDivisionError):
        vmap(lambda x: 1 / 0)(tf.constant(X))
    assert state.frame is None
    assert gradient(lambda w: w * w, tf.constant(3.0)).numpy() == 6.0


def test_values_of_one_element_cannot_be_taken():
    with pytest.raises(TypeError, match="no values yet"):
        vmap(lambda x: x.numpy())(tf.constant(X))


# Axes and structures -------------------------------------------------------------------------


class TestAxes:
    A, B = np.arange(24.0).reshape(4, 3, 2), np.arange(12.0).reshape(3, 4)

    @pytest.mark.parametrize(("axis", "dim"), [(0, 0), (1, 1), (-1, 2), (2, 2), (-3, 0)])
    def test_in_axes(self, axis, dim):
        result = vmap(lambda a: tf.reduce_sum(a * a, 0), in_axes=axis)(tf.constant(self.A))
        expected = [np.sum(part**2, 0) for part in np.moveaxis(self.A, dim, 0)]
        assert_array_equal(result.numpy(), expected)

    def test_one_for_each_argument(self):
        f = lambda a, b, c: a[:, 0] * c + b
        result = vmap(f, in_axes=(0, 1, None))(tf.constant(self.A), tf.constant(self.B), 10.0)
        expected = self.A[:, :, 0] * 10.0 + self.B.T
        assert_array_equal(result.numpy(), expected)

    def test_nested_arguments(self):
        def f(p, q):
            return p["a"] * p["b"][0] + q

        p = {"a": tf.constant(self.A[:, :, 0]), "b": [tf.constant(self.B)]}
        result = vmap(f, in_axes=({"a": 0, "b": [1]}, None))(p, 1.0)
        assert_array_equal(result.numpy(), self.A[:, :, 0] * self.B.T + 1.0)

    def test_keyword_arguments_are_batched_first(self):
        result = vmap(lambda x, *, y: x * y)(tf.constant([1.0, 2.0]), y=tf.constant([3.0, 4.0]))
        assert numbers(result) == [3.0, 8.0]

    def test_none_stays_none(self):
        result = vmap(lambda x, y, z: x if y is None else x * 2.0)(tf.constant([1.0]), None, [])
        assert numbers(result) == [1.0]

    def test_what_converts(self):
        assert numbers(vmap(lambda x: x * 2.0)(np.array([1.0, 2.0]))) == [2.0, 4.0]
        assert numbers(vmap(lambda v: v * 2.0)(tf.Variable([1.0, 2.0]))) == [2.0, 4.0]

    @pytest.mark.parametrize(("axis", "shape"), [(0, (4, 3, 2)), (1, (3, 4, 2)), (-1, (3, 2, 4))])
    def test_out_axes(self, axis, shape):
        result = vmap(lambda a: a * 2.0, out_axes=axis)(tf.constant(self.A))
        assert result.shape == shape
        assert_array_equal(result.numpy(), np.moveaxis(self.A * 2.0, 0, axis))

    def test_results_of_all_kinds(self):
        w = tf.constant([5.0, 6.0])

        def f(x):
            return {"twice": x * 2.0, "which": tf.argmax(x), "none": None, "same": (w, 3)}

        x = tf.constant([[1.0, 2.0], [4.0, 3.0], [5.0, 6.0]])
        result = vmap(f)(x)
        assert (numbers(result["twice"]), result["none"]) == ((2.0 * x.numpy()).tolist(), None)
        assert numbers(result["which"]) == [1, 0, 1]
        assert numbers(result["same"]) == [[[5.0, 6.0]] * 3, [3, 3, 3]]
        axes = {"twice": 1, "which": 0, "none": 0, "same": (None, 0)}
        nested = vmap(f, out_axes=axes)(x)
        assert numbers(nested["twice"]) == (2.0 * x.numpy()).T.tolist()
        assert numbers(nested["same"][0]) == [5.0, 6.0]

    @pytest.mark.parametrize("size", [0, 1])
    def test_small_batches(self, size):
        x = tf.constant(np.ones((size, 3)))
        f = lambda x: (tf.reduce_sum(tf.tanh(x)), x[None], tf.grad(loss, 1)(tf.constant(W), x))
        result = vmap(f)(x)
        assert [result.shape for result in result] == [(size,), (size, 1, 3), (size, 3)]
        assert vmap(tf.jacobian(tf.sin))(x).shape == (size, 3, 3)
        assert vmap(tf.jacobian(tf.sin, mode="forward"))(x).shape == (size, 3, 3)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "int32", "bool", "complex64"])
    def test_dtypes(self, dtype):
        x = np.array([[0, 1], [1, 1]]).astype(dtype)
        result = vmap(lambda x: x[::-1])(tf.constant(x))
        assert result.dtype == dtype
        assert_array_equal(result.numpy(), x[:, ::-1])

    def test_batches_in_batches(self):
        a, b = tf.constant([1.0, 2.0, 3.0]), tf.constant([10.0, 20.0])
        outer = vmap(lambda x: vmap(lambda y: x * y + tf.reduce_sum(b))(b))(a)
        assert_array_equal(outer.numpy(), np.outer(a.numpy(), b.numpy()) + 30.0)
        both = vmap(vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))(a, b)
        assert_array_equal(both.numpy(), np.outer(a.numpy(), b.numpy()))
        swapped = vmap(vmap(lambda x: tf.reduce_sum(x**2), 1, 0), 2, 1)(tf.constant(self.A))
        assert_array_equal(swapped.numpy(), np.sum(self.A**2, 0))

    def test_indices_that_differ(self):
        x, i = tf.constant(W), tf.constant([0, 2, 2])
        assert numbers(vmap(lambda i: x[i])(i)) == [0.5, 2.0, 2.0]
        assert numbers(vmap(lambda i: tf.Variable(W)[i])(i)) == [0.5, 2.0, 2.0]
        assert numbers(vmap(lambda r, i: r[i])(tf.constant(X[:3]), i)) == X[[0, 1, 2], i].tolist()
        assert numbers(vmap(lambda i: tf.constant(X)[1, i])(i)) == X[1, [0, 2, 2]].tolist()
        assert numbers(vmap(lambda i: tf.constant(X)[i, [0, 1]])(i)) == X[[0, 2, 2], :2].tolist()
        assert numbers(vmap(lambda i: tf.constant(X)[:, i])(i)) == X[:, [0, 2, 2]].T.tolist()


class TestVectorizedMap:
    def test_structures_and_broadcasting(self):
        elems = {"a": tf.constant([1.0, 2.0]), "b": (tf.constant([[10.0, 20.0]]),)}
        result = tf.vectorized_map(lambda e: e["a"] * e["b"][0], elems)
        assert numbers(result) == [[10.0, 20.0], [20.0, 40.0]]

    @pytest.mark.parametrize("size", [0, 1, 3])
    def test_sizes(self, size):
        assert tf.vectorized_map(lambda x: x * 2.0, tf.ones((size, 2))).shape == (size, 2)

    def test_other_arguments(self):
        result = tf.vectorized_map(tf.square, tf.constant([2.0]), fallback_to_while_loop=False)
        assert numbers(result) == [4.0]

    def test_errors(self):
        with pytest.raises(ValueError, match=r"argument 0\[0\] has 2, argument 0\[1\] has 3"):
            tf.vectorized_map(lambda e: e[0], (tf.ones(2), tf.ones(3)))


class TestErrors:
    def refused(self, kind, match, run):
        with pytest.raises(kind, match=match):
            run()
        assert_clean_state()

    def test_arguments(self):
        x = tf.constant(X)
        for kind, match, run in (
            (ValueError, r"argument 1 has shape \(\), .* pass in_axes=", lambda: vmap(max)(x, 2.0)),
            (ValueError, r"0\['a'\] has shape \(4, 3\), .* axis 3", lambda: vmap(max, 3)({"a": x})),
            (ValueError, r"'k' has shape \(\).*functools\.partial", lambda: vmap(max)(x, k=True)),
            (ValueError, "argument 0 has 4, argument 1 has 3", lambda: vmap(max)(x, tf.ones(3))),
            (ValueError, "no argument is batched", lambda: vmap(max, in_axes=None)(x)),
            (ValueError, "no argument is batched", lambda: vmap(max)()),
            (
                ValueError,
                r"in_axes=\(0, 1\) is for 2 values, but the call passes 1 value:",
                lambda: vmap(max, (0, 1))(x),
            ),
            (
                ValueError,
                r"in_axes=\{'b': 0\} is for the keys \['b'\], but this part has the keys \['a'\]",
                lambda: vmap(max, ({"b": 0},))({"a": x}),
            ),
            (TypeError, "in_axes must be an integer, got str", lambda: vmap(max, "first")(x)),
            (TypeError, "vmap: the argument `f` must be a function, got int", lambda: vmap(3)),
        ):
            self.refused(kind, match, run)

    def test_results(self):
        x = tf.constant(X)
        self.refused(TypeError, "must return tensors, .*, got str", lambda: vmap(lambda x: "a")(x))
        self.refused(
            ValueError, "out_axes is None for a result that", lambda: vmap(tf.sin, 0, None)(x)
        )
        self.refused(ValueError, "axis 2 is out of range", lambda: vmap(tf.sin, 0, 2)(x))
        self.refused(ValueError, "out_axes=", lambda: vmap(tf.sin, 0, (0, 0))(x))

    @pytest.mark.parametrize(
        "take", [float, bool, int, np.asarray, lambda x: x.item(), lambda x: 1.0 if x > 0 else 2.0]
    )
    def test_values_cannot_be_taken(self, take):
        self.refused(TypeError, "no values yet", lambda: vmap(take)(tf.constant(W)))

    def test_a_variable_cannot_be_assigned_an_example(self):
        v = tf.Variable(W)
        for change in (v.assign, v.assign_add, lambda x: v[:].assign(x), tf.Variable):
            self.refused(TypeError, "no values yet", lambda change=change: vmap(change)(X))
        assert_array_equal(v.numpy(), W)

    @pytest.mark.parametrize("stack", [X, W], ids=["vectors", "scalars"])
    def test_a_tensor_that_outlives_its_batch(self, stack):
        """It has no values any more: no number can come of it."""
        kept = []
        vmap(lambda x: kept.append(x) or x)(tf.constant(stack))
        (leaked,) = kept
        ones = tf.constant(np.ones(stack.shape[1:]))
        for use in (
            tf.sin,
            lambda x: x * 2.0,
            lambda x: 2.0 - x,
            lambda x: x + ones,
            lambda x: ones + x,
            lambda x: x > 0,
            tf.identity,
            tf.reduce_sum,
            lambda x: x[None],
            lambda x: tf.reshape(x, (-1,)),
            lambda x: tf.stack([x, x]),
            lambda x: tf.where(ones > 0, x, ones),
            lambda x: vmap(lambda y: x * y)(tf.constant(X)),
            lambda x: tf.grad(lambda y: tf.reduce_sum(x * y))(ones),
        ):
            self.refused(TypeError, "of a vmap was used outside", lambda use=use: use(leaked))
        self.refused(TypeError, "no values yet", lambda: leaked.numpy())
        assert "no value yet" in repr(leaked)

    def test_a_tape_outside_is_not_asked_inside(self):
        w = tf.constant(W)
        tape = tf.GradientTape(persistent=True)

        def inside(x):
            y = tf.reduce_sum(w * x)
            with tape.stop_recording():
                return tape.gradient(y, w)

        def run():
            with tape:
                tape.watch(w)
                vmap(inside)(tf.constant(X))

        self.refused(TypeError, "outside vmap cannot give the gradient of one", run)


# Custom gradients ----------------------------------------------------------------------------


class TestCustomGradients:
    """Through tapes inside, outside and both, and accumulators, against a loop."""

    def agree(self, f, *batched):
        """The gradients of f(w, *examples), by w and by the examples, from inside and outside."""
        w = tf.constant(W)
        tensors = list(map(tf.constant, batched))

        def both(total):
            with tf.GradientTape() as tape:
                tape.watch([w, *tensors])
                y = total()
            gradients = tape.gradient(y, [w, *tensors], unconnected_gradients="zero")
            return [gradient.numpy() for gradient in gradients]

        def loop(g):
            rows = zip(*[tf.unstack(tensor) for tensor in tensors], strict=True)
            return [g(*row) for row in rows]

        outside = both(lambda: tf.reduce_sum(vmap(lambda *row: f(w, *row))(*tensors)))
        expected = both(lambda: tf.reduce_sum(tf.stack(loop(lambda *row: f(w, *row)))))
        for result, other in zip(outside, expected, strict=True):
            assert_allclose(result, other, rtol=1e-12, atol=1e-12)

        def inside(*row):
            return tf.grad(lambda w: tf.reduce_sum(f(w, *row)))(w)

        actual = vmap(inside)(*tensors).numpy()
        assert_allclose(actual, np.stack(loop(inside)), rtol=1e-12, atol=1e-12)
        twice = both(lambda: tf.reduce_sum(vmap(inside)(*tensors) ** 2))
        expected = both(lambda: tf.reduce_sum(tf.stack(loop(inside)) ** 2))
        for result, other in zip(twice, expected, strict=True):
            assert_allclose(result, other, rtol=1e-12, atol=1e-12)
        way = tf.constant(W[::-1].copy())
        with ForwardAccumulator(w, way) as around:
            y = vmap(lambda *row: f(w, *row))(*tensors)
        expected = loop(lambda *row: tf.jvp(lambda w: f(w, *row), (w,), (way,))[1])
        assert_allclose(around.jvp(y).numpy(), np.stack(expected), rtol=1e-12, atol=1e-12)
        within = vmap(lambda *row: tf.jvp(lambda w: f(w, *row), (w,), (way,))[1])(*tensors)
        assert_allclose(within.numpy(), np.stack(expected), rtol=1e-12, atol=1e-12)

    def test_of_batched_and_shared_inputs(self):
        @tf.custom_gradient
        def product(x, w):
            return x * w, lambda dy: (10.0 * dy * w, 100.0 * dy * x)

        self.agree(lambda w, x: product(x, w) * w, X)

    def test_outputs_of_which_one_is_shared(self):
        """The rule's answer for the shared one is that of each example, and not of their sum."""

        @tf.custom_gradient
        def both(x, w):
            return (x * w, w * 1.0), lambda d1, d2: (d1 * w, d1 * x + 10.0 * d2)

        self.agree(lambda w, x: both(x, w)[0] * both(x, w)[1], X)

    def test_an_output_that_does_not_depend_on_the_batched_input(self):
        @tf.custom_gradient
        def passing(x, w):
            return w * 1.0, lambda dy: (5.0 * dy, dy)

        self.agree(lambda w, x: passing(x, w) * w, X)

    def test_a_rule_that_captured_an_example(self):
        def f(w, x):
            @tf.custom_gradient
            def scaled(w, x):
                return w * x, lambda dy: (3.0 * dy * x, dy * w)

            return scaled(w, x)

        self.agree(f, X)

    def test_only_the_rule_sees_the_example(self):
        """The total upstream gradient is all that there is: refused, not guessed."""

        def f(w, x):
            @tf.custom_gradient
            def shared(w):
                return w * 1.0, lambda dy: dy * x

            return shared(w)

        w = tf.constant(W)
        assert_array_equal(vmap(lambda x: tf.grad(lambda w: tf.reduce_sum(f(w, x)))(w))(X), X)
        with pytest.raises(TypeError, match=r"of `shared` are the same for all .* as an argument"):
            tf.grad(lambda w: tf.reduce_sum(vmap(lambda x: f(w, x))(X)))(w)
        assert_clean_state()

    def test_constant_rules(self):
        """A gradient that is the same for all examples counts for each of them."""

        @tf.custom_gradient
        def constant(x, w):
            return x * w, lambda dy: (None, tf.ones_like(w))

        w = tf.constant(W)
        gradient = tf.grad(lambda w: tf.reduce_sum(vmap(lambda x: constant(x, w))(X)))(w)
        assert numbers(gradient) == [4.0, 4.0, 4.0]

    def test_variables_keywords_and_structures(self):
        v = tf.Variable(W * 2.0)

        @tf.custom_gradient
        def f(p, *, k):
            def grad(d_a, d_b, variables):
                return [d_a * k, 2.0 * d_b * k, d_a + d_b], [3.0 * d_a]

            return {"b": p[1] * k, "a": p[0] * v}, grad

        def total(rows):
            with tf.GradientTape() as tape:
                y = rows()
            return tape.gradient(y, v).numpy()

        x, w = tf.constant(X), tf.constant(W)
        result = total(lambda: tf.reduce_sum(vmap(lambda x: f([x, x], k=w)["a"])(x)))
        expected = total(lambda: sum(tf.reduce_sum(f([row, row], k=w)["a"]) for row in x))
        assert_allclose(result, expected)
        self.agree(lambda w, x: f([x, w], k=w)["a"] * f([w, x], k=x)["b"], X)

    def test_recomputed_functions(self):
        self.agree(lambda w, x: tf.recompute_grad(lambda w, x: tf.tanh(w * x))(w, x), X)

    def test_a_rule_with_a_batch_inside(self):
        @tf.custom_gradient
        def squares(x):
            def grad(dy):
                return vmap(lambda d, row: 2.0 * d * row)(dy, x)

            return vmap(lambda row: row * row)(x), grad

        self.agree(lambda w, x: squares(w * x), X)

    def test_several_batched_inputs(self):
        @tf.custom_gradient
        def f(x, y, w):
            return x * y * w, lambda dy: (dy * y * w, 7.0 * dy * x * w, dy * x * y)

        self.agree(lambda w, x, y: f(x, y, w), X, X[::-1].copy())

    def test_scalars_in_and_out(self):
        @tf.custom_gradient
        def f(x, w):
            return tf.reduce_sum(x * w), lambda dy: (dy * w, 2.0 * dy * x)

        self.agree(lambda w, x: f(x, w), X)


# Loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_an_operation_is_carried_out_once_for_a_batch(name, monkeypatch):
    """No operation of the library falls back to a loop over the examples."""
    calls = []
    primitive = OPS[name]
    run = primitive.run

    def counted(*args, **params):
        calls.append(args)
        return run(*args, **params)

    monkeypatch.setattr(primitive, "run", counted)
    for example in examples(name):
        operands = list(map(tf.constant, example.operands))
        for i, operand in enumerate(example.operands):

            def call(operand, i=i, operands=operands, params=example.params):
                return primitive(*operands[:i], operand, *operands[i + 1 :], **params)

            calls.clear()
            vmap(call)(np.stack([operand] * 5))
            assert len(calls) == 1


class TestAUsersOperation:
    """Without a batching rule it is a loop, and right."""

    @pytest.fixture
    def calls(self):
        return []

    @pytest.fixture
    def cube(self, calls):
        def kernel(x, w):
            calls.append(x.shape)
            return x**3 * w

        cube = tf.primitive("batching_cube", kernel, shape=lambda x, w: x.shape, replace=True)

        @tf.RegisterGradient("batching_cube", replace=True)
        def _(op, dy):
            x, w = op.inputs
            return 3.0 * dy * x**2 * w, dy * x**3

        return cube

    def test_values_and_calls(self, cube, calls):
        x, w = tf.constant(np.vstack([X, X[:1]])), tf.constant(W)
        result = vmap(lambda x: cube(x, w))(x)
        assert_allclose(result.numpy(), x.numpy() ** 3 * W, rtol=1e-15)
        assert calls == [(3,)] * 5

    def test_an_empty_batch(self, cube):
        assert vmap(lambda x: cube(x, tf.constant(W)))(tf.ones((0, 3), "float64")).shape == (0, 3)

    def test_gradients(self, cube):
        TestCustomGradients().agree(lambda w, x: cube(x, w) * w, X)

    def test_several_outputs(self):
        TestCustomGradients().agree(lambda w, x: polar(x * w)[0] * polar(w)[1], X)


def test_a_rule_serves_tapes_outside_a_batch_too():

    @tf.custom_gradient
    def tripled(x):
        return x * 1.0, lambda dy: 3.0 * dy

    w, rows = tf.constant([1.0, 2.0]), tf.constant([[1.0, 1.0], [2.0, 2.0]])
    result = slope(lambda w: tf.reduce_sum(tf.vmap(lambda row: tripled(w) * row)(rows)), w)
    assert result.numpy().tolist() == [9.0, 9.0]
    result = slope(lambda w: tf.reduce_sum(tf.vmap(lambda row: tripled(w * row))(rows)), w)
    assert result.numpy().tolist() == [9.0, 9.0]
