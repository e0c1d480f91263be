"""grad, value_and_grad, elementwise_grad, vjp, jvp, linearize: results, structures, errors."""

import functools
import gc
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tinygrad_cg as tf
from tests.support.orders import assert_clean_state, custom_gradient_warnings, gradient, numbers

X = tf.constant([1.0, 2.0, 3.0])


def cubes(x):
    return tf.reduce_sum(x**3)


class TestGrad:
    def test_values(self):
        assert numbers(tf.grad(cubes)(X)) == [3.0, 12.0, 27.0]
        assert numbers(tf.value_and_grad(cubes)(X)) == [36.0, [3.0, 12.0, 27.0]]

    @pytest.mark.parametrize(
        ("value", "dtype"),
        [(2.0, "float32"), (np.float64(2.0), "float64"), (np.array([2.0]), "float64")],
    )
    def test_python_numbers_and_arrays(self, value, dtype):
        gradient = tf.grad(cubes)(value)
        assert gradient.dtype == dtype
        assert np.all(np.asarray(gradient) == 12.0)
        assert isinstance(gradient, tf.Tensor if type(value) is float else type(value))

    def test_variables(self):
        v, w = tf.Variable([2.0]), tf.Variable(5.0)
        gradients = tf.grad(lambda v, w: tf.reduce_sum(v * v) * w, argnums=(0, 1))(v, w)
        assert numbers(gradients) == [[20.0], 4.0]

    def test_a_variable_that_the_function_reads_is_the_tapes(self):
        v = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            slope = tf.grad(lambda x: x * x * v)(tf.constant(2.0))
        assert numbers([slope, tape.gradient(slope, v)]) == [12.0, 4.0]

    def test_argnums(self):
        def f(x, y, z):
            return tf.reduce_sum(x * y**2 * z)

        args = (X, X + 1.0, 2.0)
        assert numbers(tf.grad(f)(*args)) == [8.0, 18.0, 32.0]
        assert numbers(tf.grad(f, argnums=1)(*args)) == [8.0, 24.0, 48.0]
        assert numbers(tf.grad(f, argnums=-1)(*args)) == 4.0 + 18.0 + 48.0
        gradients = tf.grad(f, argnums=(2, 0))(*args)
        assert isinstance(gradients, tuple)
        assert numbers(gradients) == [70.0, [8.0, 18.0, 32.0]]
        assert len(tf.grad(f, argnums=[1])(*args)) == 1
        assert tf.grad(f, argnums=())(*args) == ()

    def test_structures_and_keywords(self):
        def f(p, *, scale, bias=None):
            assert bias is None
            return tf.reduce_sum(p["w"] * p["b"][0]) * scale

        p = {"w": X, "b": [X * 2.0, tf.ones(2)]}
        gradients = tf.grad(f)(p, scale=3.0)
        assert numbers(gradients) == {"w": [6.0, 12.0, 18.0], "b": [[3.0, 6.0, 9.0], [0.0, 0.0]]}

    def test_arguments_that_are_not_chosen_stay_what_they_are(self):
        def f(x, n, name, options):
            assert (type(n), name, options) == (int, "cube", {"on": None})
            return tf.reduce_sum(x**n)

        assert numbers(tf.grad(f)(X, 3, "cube", {"on": None})) == [3.0, 12.0, 27.0]

    def test_aux(self):
        def f(x):
            return cubes(x), {"twice": x * 2.0, "name": "aux", "none": None}

        gradient, aux = tf.grad(f, has_aux=True)(X)
        assert numbers(gradient) == [3.0, 12.0, 27.0]
        assert (numbers(aux["twice"]), aux["name"], aux["none"]) == ([2.0, 4.0, 6.0], "aux", None)
        (value, aux), gradient = tf.value_and_grad(f, has_aux=True)(X)
        assert numbers([value, gradient]) == [36.0, [3.0, 12.0, 27.0]]

    def test_what_is_not_connected_is_zero(self):
        assert numbers(tf.grad(lambda x: tf.constant(3.0))(X)) == [0.0, 0.0, 0.0]
        assert numbers(tf.grad(lambda x: tf.reduce_sum(tf.stop_gradient(x)))(X)) == [0.0] * 3

    def test_the_argument_itself(self):
        assert numbers(tf.grad(lambda x: x)(3.0)) == 1.0

    def test_empty_arguments(self):
        assert tf.grad(cubes)(tf.ones((0, 3))).shape == (0, 3)

    def test_it_nests(self):
        f = tf.tanh
        for _ in range(3):
            f = tf.grad(f)
        x = 0.3
        t = np.tanh(x)
        assert_allclose(f(x).numpy(), (1 - t**2) * (6 * t**2 - 2), rtol=1e-5)

    def test_the_inner_point_is_not_the_outer_one(self):
        """No confusion of perturbations: d/dx (x d/dy (x + y)) is 1."""
        for inner in (tf.grad, lambda f: lambda y: tf.jvp(f, (y,), (1.0,))[1]):
            for outer in (tf.grad, lambda f: lambda x: tf.jvp(f, (x,), (1.0,))[1]):
                result = outer(lambda x, inner=inner: x * inner(lambda y: x + y)(1.0))(1.0)
                assert result.numpy() == 1.0

    def test_tapes_around_and_inside(self):
        x = tf.constant(2.0)
        assert gradient(tf.grad(lambda x: x**3), x) == [12.0]
        assert numbers(tf.grad(lambda x: _by_tape(lambda x: x**3, x))(x)) == 12.0

    def test_the_name_and_the_docstring_are_the_functions(self):
        assert tf.grad(cubes).__name__ == "cubes"
        assert tf.grad(functools.partial(pow, exp=3))(2.0).numpy() == 12.0

    def test_memory_is_freed(self):
        kept = []

        def f(x):
            y = x**3
            kept.append(weakref.ref(y))
            return y

        gc.disable()
        try:
            value, _ = tf.value_and_grad(f)(2.0)
            assert value.numpy() == 8.0
            del value
            assert kept[0]() is None
        finally:
            gc.enable()

    def test_float16(self):
        gradient = tf.grad(cubes)(tf.cast(X, "float16"))
        assert (gradient.dtype, numbers(gradient)) == ("float16", [3.0, 12.0, 27.0])

    def test_complex_argument(self):
        """The original's convention: conj(dL/dRe - i dL/dIm)."""
        z = tf.constant([1.0 + 2.0j])
        gradient = tf.grad(lambda z: tf.reduce_sum(tf.abs(z) ** 2))(z)
        assert_allclose(gradient.numpy(), [2.0 + 4.0j], rtol=1e-12)


def _by_tape(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


class TestElementwiseGrad:
    def test_values(self):
        assert_allclose(tf.elementwise_grad(tf.tanh)(X).numpy(), 1 - np.tanh(X) ** 2, rtol=1e-5)
        assert numbers(tf.elementwise_grad(tf.elementwise_grad(lambda x: x**3))(X)) == [6, 12, 18]

    def test_structures(self):
        gradients = tf.elementwise_grad(lambda x, y: {"a": x * y, "b": y}, argnums=(0, 1))(X, X)
        assert numbers(gradients) == [[1.0, 2.0, 3.0], [2.0, 3.0, 4.0]]


class TestVjp:
    def test_any_number_of_times(self):
        y, pull = tf.vjp(lambda x, k: {"a": x * k, "b": [k]}, X, 2.0)
        assert numbers(y) == {"a": [2.0, 4.0, 6.0], "b": [2.0]}
        assert numbers(pull({"a": X, "b": [1.0]})) == [[2.0, 4.0, 6.0], 15.0]
        assert numbers(pull({"a": 1.0, "b": [0.0]})) == [[2.0, 2.0, 2.0], 6.0]

    def test_cotangents_are_repeated_and_cast(self):
        _, pull = tf.vjp(lambda x: x * x, X)
        assert numbers(pull(2.0)) == [[4.0, 8.0, 12.0]]
        (gradient,) = pull(np.array([1.0, 0.0, 1.0]))
        assert (gradient.dtype, numbers(gradient)) == ("float32", [2.0, 0.0, 6.0])

    def test_it_is_differentiated(self):
        def f(x):
            return tf.vjp(lambda x: x**3, x)[1](x)[0]

        assert numbers(tf.grad(lambda x: tf.reduce_sum(f(x)))(X)) == [9.0, 36.0, 81.0]

    def test_aux(self):
        _, pull, aux = tf.vjp(lambda x: (x * x, "aux"), X, has_aux=True)
        assert (numbers(pull(1.0)), aux) == ([[2.0, 4.0, 6.0]], "aux")

    def test_complex(self):
        z = tf.constant([1.0 + 2.0j])
        (gradient,) = tf.vjp(lambda z: z * z, z)[1](tf.constant([1.0 + 0.0j]))
        assert_allclose(gradient.numpy(), [2.0 - 4.0j])


class TestForward:
    def test_structures(self):
        f = lambda p, k: {"a": p[0] * k, "b": p[1]}
        y, tangent = tf.jvp(f, ([X, 5.0], 2.0), ([X, 1.0], 10.0))
        assert numbers(y) == {"a": [2.0, 4.0, 6.0], "b": 5.0}
        assert numbers(tangent) == {"a": [12.0, 24.0, 36.0], "b": 1.0}
        again = tf.linearize(f, [X, 5.0], 2.0)[1]([X, 1.0], 10.0)
        assert numbers(again) == numbers(tangent)

    def test_tangents_are_cast(self):
        for way in (np.full(3, 2.0), tf.fill([3], 2)):
            tangent = tf.jvp(lambda x: x * x, (X,), (way,))[1]
            assert (tangent.dtype, numbers(tangent)) == ("float32", [4.0, 8.0, 12.0])
            tangent = tf.linearize(lambda x: x * x, X)[1](way)
            assert (tangent.dtype, numbers(tangent)) == ("float32", [4.0, 8.0, 12.0])

    def test_linearize_runs_the_function_once(self):
        calls = []

        def f(x):
            calls.append(x)
            return tf.sin(x) * x

        y, push = tf.linearize(f, X)
        for way in (X, X * 2.0, X * 0.0):
            expected = (np.cos(X) * X + np.sin(X)) * way
            assert_allclose(push(way).numpy(), expected, rtol=1e-5)
        assert len(calls) == 1
        assert_allclose(y.numpy(), np.sin(X) * X, rtol=1e-6)

    def test_linearize_is_differentiated_by_point_and_tangent(self):
        def f(x, way):
            return tf.linearize(lambda x: x**3, x)[1](way)

        gradients = tf.grad(f, argnums=(0, 1))(2.0, 5.0)
        assert numbers(gradients) == [60.0, 12.0]

    def test_the_argument_itself_and_constants(self):
        for push in (
            lambda f, x, way: tf.jvp(f, (x,), (way,))[1],
            lambda f, x, way: tf.linearize(f, x)[1](way),
        ):
            assert numbers(push(lambda x: x, X, X)) == [1.0, 2.0, 3.0]
            assert numbers(push(lambda x: tf.ones(2), X, X)) == [0.0, 0.0]

    def test_aux(self):
        f = lambda x: (x * x, "aux")
        assert tf.jvp(f, (X,), (X,), has_aux=True)[2] == "aux"
        assert tf.linearize(f, X, has_aux=True)[2] == "aux"


class TestErrors:
    """Each names the transform, the function and the remedy, and leaves a clean state."""

    def refused(self, kind, match, run):
        with pytest.raises(kind, match=match):
            run()
        assert_clean_state()

    @pytest.mark.parametrize("name", ["grad", "value_and_grad", "hessian"])
    def test_outputs_of_scalar_functions(self, name):
        transform = getattr(tf, name)

        def refused(kind, match, f, x=X):
            self.refused(kind, f"{name}: .*{match}", lambda: transform(f)(x))

        def loss(x):
            return x * 2.0

        refused(ValueError, r"loss needs a scalar output, got shape \(3,\); use jacobian", loss)
        refused(TypeError, "function returned None: return a Tensor", lambda x: None)
        refused(TypeError, "compute it with tensors", lambda x: 3.0)
        refused(
            TypeError,
            "returned numpy.float64, not a Tensor; compute it with",
            lambda x: np.float64(3.0),
        )
        refused(TypeError, "dtype int64, which has no derivative", tf.argmax)
        refused(TypeError, "dtype bool, which has no derivative", lambda x: tf.reduce_any(x > 1))
        refused(TypeError, "one scalar, got tuple .*has_aux=True", lambda x: (cubes(x), 1))
        refused(
            TypeError,
            "needs a real output, got complex64: return the real part",
            lambda x: tf.cast(cubes(x), "complex64"),
        )
        refused(TypeError, "needs a real output", tf.reduce_sum, tf.constant([1.0j]))

    @pytest.mark.parametrize("name", ["elementwise_grad", "jacobian"])
    def test_outputs_of_other_functions(self, name):
        transform = getattr(tf, name)
        for f, match in (
            (lambda x: None, "function returned None"),
            (lambda x: (x, 3.0), "returned float, not a Tensor; compute it with tensors"),
            (lambda x: [tf.argmax(x)], "dtype int64, which has no derivative"),
            (lambda x: {"a": tf.cast(x, "complex64")}, "needs a real output, got complex64"),
        ):
            self.refused(TypeError, f"{name}: .*{match}", lambda f=f: transform(f)(X))

    def test_outputs_of_vjp_and_jvp(self):
        for f, match in (
            (lambda x: None, "function returned None"),
            (lambda x: 3.0, "compute it with tensors"),
            (lambda x: (x, tf.argmax(x)), "dtype int64, which has no derivative"),
        ):
            self.refused(TypeError, f"vjp: .*{match}", lambda f=f: tf.vjp(f, X))
            self.refused(TypeError, f"jvp: .*{match}", lambda f=f: tf.jvp(f, (X,), (X,)))
            self.refused(TypeError, f"linearize: .*{match}", lambda f=f: tf.linearize(f, X))

    def test_arguments(self):
        f = tf.reduce_sum
        for x, dtype in ((3, "int32"), (np.arange(3), "int64"), (True, "bool")):
            self.refused(
                TypeError,
                f"grad: argument 0 of .* is of dtype {dtype}.*argnums=",
                lambda x=x: tf.grad(f)(x),
            )
        self.refused(TypeError, "grad: argument 0 of .*convert a value", lambda: tf.grad(f)("a"))
        self.refused(
            TypeError,
            "grad: argument 0 of .*dtype=object",
            lambda: tf.grad(f)(np.array([1.0, None])),
        )
        self.refused(
            ValueError,
            "argnums contains 2, but .* was called with 1",
            lambda: tf.grad(f, argnums=2)(X),
        )
        self.refused(ValueError, "argnums contains 0, but .* called with 0", lambda: tf.grad(f)())
        self.refused(ValueError, "names an argument twice", lambda: tf.grad(f, (0, -1))(X))
        self.refused(TypeError, "argnums must be an integer, got float", lambda: tf.grad(f, 1.5))
        self.refused(
            TypeError, "grad: the argument `f` must be a function, got int", lambda: tf.grad(3)
        )
        self.refused(
            TypeError,
            r"has_aux=True .* must return a pair \(output, aux\), got Tensor",
            lambda: tf.grad(cubes, has_aux=True)(X),
        )

    def test_cotangents(self):
        _, pull = tf.vjp(lambda x: x * x, X)
        _, pull_two = tf.vjp(lambda x: {"a": x, "b": x}, X)
        self.refused(
            ValueError,
            r"vjp: the cotangent has shape \(2,\), but needs shape \(3,\)",
            lambda: pull(tf.ones(2)),
        )
        self.refused(ValueError, r"vjp: the cotangent has shape \(1, 3\)", lambda: pull(X[None]))
        self.refused(ValueError, "vjp: the cotangent has None", lambda: pull(None))
        self.refused(ValueError, "vjp: the cotangent must have the structure", lambda: pull_two(X))
        self.refused(
            ValueError,
            "vjp: the cotangent must have the structure",
            lambda: pull_two({"a": X, "c": X}),
        )
        self.refused(
            TypeError,
            "the cotangent is complex64, .* pass its real part",
            lambda: pull(tf.cast(X, "complex64")),
        )

    def test_tangents(self):
        square = lambda x: x * x
        self.refused(
            ValueError,
            r"jvp: the tangent has shape \(2,\), but needs shape \(3,\)",
            lambda: tf.jvp(square, (X,), (tf.ones(2),)),
        )
        self.refused(
            ValueError,
            "jvp: the tangent must have the structure",
            lambda: tf.jvp(square, (X,), (X, X)),
        )
        push = tf.linearize(square, X)[1]
        for number in (2.0, np.float64(2.0), tf.constant(2.0)):
            needs = r"the tangent has shape \(\), but needs shape \(3,\)"
            self.refused(ValueError, f"jvp: {needs}", lambda t=number: tf.jvp(square, (X,), (t,)))
            self.refused(ValueError, f"linearize: {needs}", lambda t=number: push(t))
        self.refused(ValueError, "jvp: the tangent has None", lambda: tf.jvp(square, (X,), (None,)))
        self.refused(
            TypeError,
            r"jvp: primals must be a tuple .*, got Tensor: write jvp\(f, \(x",
            lambda: tf.jvp(square, X, X),
        )
        self.refused(
            TypeError,
            "the tangent is complex64",
            lambda: tf.linearize(square, X)[1](tf.cast(X, "complex64")),
        )
        self.refused(
            ValueError,
            "linearize: the tangent must have the structure",
            lambda: tf.linearize(square, X)[1](X, X),
        )

    def test_an_exception_in_the_function(self):
        def fails(x):
            raise KeyError("mine")

        for run in (
            lambda: tf.grad(fails)(X),
            lambda: tf.vjp(fails, X),
            lambda: tf.jvp(fails, (X,), (X,)),
            lambda: tf.linearize(fails, X),
            lambda: tf.jacobian(fails)(X),
            lambda: tf.jacobian(fails, mode="forward")(X),
            lambda: tf.hessian(fails)(X),
            lambda: tf.hvp(fails)(X, X),
            lambda: tf.vmap(fails)(X),
        ):
            self.refused(KeyError, "mine", run)

    def test_an_exception_in_a_rule(self):
        @tf.custom_gradient
        def broken(x):
            def grad(dy):
                raise KeyError("mine")

            return x * 2.0, grad

        def f(x):
            return tf.reduce_sum(broken(x))

        for run in (
            lambda: tf.grad(f)(X),
            lambda: tf.vjp(f, X)[1](1.0),
            lambda: tf.jvp(f, (X,), (X,)),
            lambda: tf.linearize(f, X),
            lambda: tf.jacobian(broken)(X),
            lambda: tf.jacobian(broken, mode="forward")(X),
            lambda: tf.hessian(f)(X),
            lambda: tf.vmap(tf.grad(f))(X[None]),
            lambda: tf.grad(lambda x: tf.reduce_sum(tf.vmap(f)(x)))(X[None]),
        ):
            self.refused(KeyError, "mine", run)


class TestLeaks:
    """A value that outlives its transform is a constant; where it was asked for, a warning."""

    def test_of_a_transform(self):
        kept = []

        def f(x):
            kept.append(x * 2.0)
            return tf.reduce_sum(x * x)

        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            tf.grad(f)(x)
        expired = kept[0] * 3.0
        with pytest.warns(tf.errors.TapeWarning, match="target was computed after the tape cl"):
            assert tape.gradient(expired, x) is None
        assert numbers(tf.grad(lambda x: tf.reduce_sum(kept[0] * x))(x)) == [2.0, 4.0]
        assert_clean_state()

    def test_the_tape_still_knows_what_was_recorded_inside(self):
        kept = []
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            tf.grad(lambda x: kept.append(x * 2.0) or tf.reduce_sum(x))(x)
        assert numbers(tape.gradient(kept[0], x)) == [2.0, 2.0]

    @pytest.mark.parametrize("take", [float, np.asarray, lambda x: x.numpy(), lambda x: x.item()])
    def test_values_that_leave_the_library_warn_once_a_line(self, take):
        """docs/behaviour.md, decision 15."""

        def f(x):
            return sum(x * float(take(x)) for _ in range(3))

        with custom_gradient_warnings() as texts:
            assert numbers(tf.grad(f)(2.0)) == 6.0
        assert len(texts) == 1
        assert "the differentiated function `f` takes NumPy or Python values" in texts[0]


@pytest.mark.parametrize("transform", [tf.vjp, tf.linearize])
def test_what_stays_of_a_function_is_what_the_derivative_needs(transform):
    """Neither the function, nor what it captures, nor the arguments."""

    class Data:
        pass

    captured, x = Data(), np.array([1.0, 2.0])
    references = weakref.ref(captured), weakref.ref(x)
    _, derivative = transform(lambda x, default=captured: tf.reduce_sum(x * x), x)
    del captured, x
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    result = derivative(1.0)[0] if transform is tf.vjp else derivative(np.ones(2))
    np.testing.assert_array_equal(result, [2.0, 4.0] if transform is tf.vjp else 6.0)
