"""The functions jacobian, hessian and hvp; and SciPy's minimizer with them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import tinygrad_cg as tf
from tests.support.composites import rosenbrock
from tests.support.orders import assert_clean_state, numbers

pytestmark = pytest.mark.quick

X = tf.constant([1.0, 2.0, 3.0])
MODES = ["reverse", "forward"]


@pytest.mark.parametrize("mode", [None, *MODES])
class TestJacobian:
    def test_values(self, mode):
        w = tf.constant(np.random.default_rng(0).normal(size=(4, 3)))
        jacobian = tf.jacobian(lambda x: tf.tanh(tf.linalg.matvec(w, x)), mode=mode)(X)
        assert jacobian.dtype == X.dtype
        expected = (1 - np.tanh(w.numpy() @ X.numpy()) ** 2)[:, None] * w.numpy()
        assert_allclose(jacobian.numpy(), expected, rtol=1e-5, atol=1e-6)

    def test_structures(self, mode):
        def f(p, q, *, scale):
            return {"o": p["a"] * q * scale, "c": (q, tf.reduce_sum(p["b"]))}

        p = {"a": X, "b": tf.ones((2, 2))}
        jacobians = tf.jacobian(f, argnums=(0, 1), mode=mode)(p, X + 1.0, scale=2.0)
        of_o, (of_q, of_b) = jacobians["o"], jacobians["c"]
        assert_array_equal(of_o[0]["a"].numpy(), np.diag([4.0, 6.0, 8.0]))
        assert_array_equal(of_o[0]["b"].numpy(), np.zeros((3, 2, 2)))
        assert_array_equal(of_o[1].numpy(), np.diag([2.0, 4.0, 6.0]))
        assert_array_equal(of_q[0]["a"].numpy(), np.zeros((3, 3)))
        assert_array_equal(of_q[1].numpy(), np.eye(3))
        assert_array_equal(of_b[0]["b"].numpy(), np.ones((2, 2)))
        assert_array_equal(of_b[1].numpy(), np.zeros(3))

    def test_aux_and_one_run(self, mode):
        calls = []

        def f(x):
            calls.append(x)
            return x * x, "aux"

        jacobian, aux = tf.jacobian(f, has_aux=True, mode=mode)(X)
        assert_array_equal(jacobian.numpy(), np.diag([2.0, 4.0, 6.0]))
        assert (aux, len(calls)) == ("aux", 1)

    def test_the_argument_itself_and_constants(self, mode):
        assert_array_equal(tf.jacobian(lambda x: x, mode=mode)(X).numpy(), np.eye(3))
        jacobian = tf.jacobian(lambda x: tf.ones(2), mode=mode)(X)
        assert_array_equal(jacobian.numpy(), np.zeros((2, 3)))

    @pytest.mark.parametrize("shape", [(), (0,), (1,), (0, 2), (2, 3)])
    def test_shapes(self, mode, shape):
        x = tf.constant(np.random.default_rng(0).normal(size=shape))
        jacobian = tf.jacobian(lambda x: x * x, mode=mode)(x).numpy()
        assert jacobian.shape == (*shape, *shape)
        diagonal = np.diag(2 * x.numpy().ravel()).reshape(jacobian.shape)
        assert_allclose(jacobian, diagonal, rtol=1e-15)

    def test_mixed_dtypes(self, mode):
        wide = tf.constant([1.0, 2.0, 3.0], dtype="float64")
        assert tf.jacobian(lambda x: x * wide, mode=mode)(X).dtype == "float32"
        assert tf.jacobian(lambda x: tf.cast(x, "float16"), mode=mode)(X).dtype == "float32"

    def test_it_nests(self, mode):
        cubes = tf.jacobian(tf.jacobian(lambda x: x**3, mode=mode), mode=mode)(X).numpy()
        expected = np.zeros((3, 3, 3))
        expected[range(3), range(3), range(3)] = 6 * X.numpy()
        assert_array_equal(cubes, expected)

    def test_outer_tapes_record_it(self, mode):
        with tf.GradientTape() as tape:
            tape.watch(X)
            jacobian = tf.jacobian(lambda x: x**3 * tf.reduce_sum(x), mode=mode)(X)
            total = tf.reduce_sum(jacobian)
        # the sum is 3 sum(x**2) sum(x) + 3 sum(x**3)
        x = X.numpy()
        expected = 6 * x * x.sum() + 3 * (x**2).sum() + 9 * x**2
        assert_allclose(tape.gradient(total, X).numpy(), expected, rtol=1e-6)

    def test_inside_a_batch(self, mode):
        points = tf.stack([X, X + 1.0, X * 2.0])
        f = tf.jacobian(lambda x: tf.sin(x) * tf.reduce_sum(x), mode=mode)
        expected = np.stack([f(point).numpy() for point in points])
        assert_allclose(tf.vmap(f)(points).numpy(), expected, rtol=1e-6)


def test_modes_that_there_are_not():
    with pytest.raises(ValueError, match="mode must be 'reverse', 'forward' or None, got 'both'"):
        tf.jacobian(tf.tanh, mode="both")


def test_complex_arguments():
    """The rows are gradients, in their convention; columns are not defined."""
    z = tf.constant([1.0 + 2.0j, 3.0 - 1.0j])
    jacobian = tf.jacobian(lambda z: tf.abs(z) ** 2)(z)
    assert_allclose(jacobian.numpy(), np.diag(2 * z.numpy()), rtol=1e-12)
    with pytest.raises(TypeError, match=r"has a complex argument, .* use mode 'reverse'"):
        tf.jacobian(tf.abs, mode="forward")(z)
    assert_clean_state()


class TestHessian:
    def test_values(self):
        hessian = tf.hessian(lambda x: tf.reduce_sum(x**3) + x[0] * x[1])(X)
        assert numbers(hessian) == [[6.0, 1.0, 0.0], [1.0, 12.0, 0.0], [0.0, 0.0, 18.0]]

    def test_structures(self):
        hessians = tf.hessian(lambda p, y: tf.reduce_sum(p["a"] ** 2 * y), argnums=(0, 1))(
            {"a": X}, X
        )
        assert_array_equal(hessians[0]["a"][0]["a"].numpy(), np.diag([2.0, 4.0, 6.0]))
        assert_array_equal(hessians[0]["a"][1].numpy(), np.diag([2.0, 4.0, 6.0]))
        assert_array_equal(hessians[1][0]["a"].numpy(), np.diag([2.0, 4.0, 6.0]))
        assert_array_equal(hessians[1][1].numpy(), np.zeros((3, 3)))

    def test_aux(self):
        hessian, aux = tf.hessian(lambda x: (tf.reduce_sum(x * x), 7), has_aux=True)(X)
        assert (numbers(hessian), aux) == ((2 * np.eye(3)).tolist(), 7)

    def test_of_a_linear_function(self):
        assert_array_equal(tf.hessian(tf.reduce_sum)(X).numpy(), np.zeros((3, 3)))

    def test_scalars(self):
        assert tf.hessian(lambda x: x**3)(2.0).numpy() == 12.0


class TestHvp:
    def test_structures(self):
        product = tf.hvp(lambda x, y: tf.reduce_sum(x**2 * y), argnums=(0, 1))(X, X, (X, X * 0.0))
        assert numbers(product) == [[2.0, 8.0, 18.0], [2.0, 8.0, 18.0]]
        product = tf.hvp(lambda p, k: tf.reduce_sum(p["a"] ** 3) * k)({"a": X}, 2.0, {"a": X})
        assert numbers(product) == {"a": [12.0, 48.0, 108.0]}

    def test_keyword_arguments_and_plain_vectors(self):
        f = tf.hvp(lambda x, *, scale: tf.reduce_sum(x**3) * scale)
        for vector in ([1.0, 0.0, 1.0], np.array([1.0, 0.0, 1.0])):
            assert numbers(f(X, vector, scale=2.0)) == [12.0, 0.0, 36.0]

    def test_of_a_linear_function(self):
        assert numbers(tf.hvp(tf.reduce_sum)(X, X)) == [0.0, 0.0, 0.0]

    def test_errors(self):
        for kind, match, run in (
            (TypeError, "hvp: pass the function's arguments, and then", lambda f: f(X)),
            (ValueError, r"hvp: the vector has shape \(2,\)", lambda f: f(X, X[:2])),
            (ValueError, r"hvp: the vector has shape \(\)", lambda f: f(X, 1.0)),
            (ValueError, "hvp: the vector must have the structure", lambda f: f(X, (X,))),
            (ValueError, "hvp: .* needs a scalar output", lambda f: tf.hvp(tf.tanh)(X, X)),
        ):
            with pytest.raises(kind, match=match):
                run(tf.hvp(tf.reduce_sum))
            assert_clean_state()


def test_scipy_minimizes_rosenbrock():
    optimize = pytest.importorskip("scipy.optimize")
    start = np.tile([-1.2, 1.0], 50)
    gradient, product = tf.grad(rosenbrock), tf.hvp(rosenbrock)
    optimum = optimize.minimize(
        lambda x: float(rosenbrock(tf.constant(x))),
        start,
        jac=gradient,
        hessp=product,
        method="trust-ncg",
        options={"gtol": 1e-8, "maxiter": 1000},
    )
    assert optimum.success
    assert np.linalg.norm(gradient(optimum.x)) < 1e-8
    hessian = tf.hessian(rosenbrock)(optimum.x)
    assert np.all(np.linalg.eigvalsh(hessian) > 0)
