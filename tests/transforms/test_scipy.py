"""SciPy, matplotlib, scikit-learn and xarray as programs call them, with derivatives of ours."""

import numpy as np
import pytest

import tinygrad_cg as tf


def rosenbrock_of_numpy(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock(x):
    return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + tf.square(1.0 - x[:-1]))


EITHER = pytest.mark.parametrize("f", [rosenbrock_of_numpy, rosenbrock])
START = np.array([1.1, 1.2, 1.4])  # the Hessian is positive definite there, as dogleg needs
OF_FIRST_ORDER = ("CG", "BFGS", "L-BFGS-B", "TNC", "SLSQP")
OF_SECOND_ORDER = ("Newton-CG", "dogleg", "trust-ncg", "trust-krylov", "trust-exact")


@EITHER
@pytest.mark.parametrize("method", [*OF_FIRST_ORDER, *OF_SECOND_ORDER, "trust-constr"])
def test_minimize(f, method):
    """All eleven methods that take a gradient end where they end with SciPy's own derivatives."""
    optimize = pytest.importorskip("scipy.optimize")
    ours, theirs = {"jac": tf.grad(f)}, {"jac": optimize.rosen_der}
    if method not in OF_FIRST_ORDER:
        ours["hess"], theirs["hess"] = tf.hessian(f), optimize.rosen_hess
    optimum = optimize.minimize(f, START, method=method, **ours)
    expected = optimize.minimize(optimize.rosen, START, method=method, **theirs)
    assert type(optimum.x) is np.ndarray
    assert optimum.success
    np.testing.assert_allclose(optimum.x, 1.0, atol=2e-3)
    np.testing.assert_allclose(optimum.x, expected.x, atol=1e-5)


@EITHER
def test_minimize_in_other_ways(f):
    optimize = pytest.importorskip("scipy.optimize")
    both = optimize.minimize(tf.value_and_grad(f), START, jac=True)
    product = optimize.minimize(f, START, jac=tf.grad(f), hessp=tf.hvp(f), method="Newton-CG")
    older, *_ = optimize.fmin_l_bfgs_b(f, START, fprime=tf.grad(f))
    for x in (both.x, product.x, older):
        assert type(x) is np.ndarray
        np.testing.assert_allclose(x, 1.0, atol=1e-4)
    assert optimize.check_grad(f, tf.grad(f), START) < 1e-4


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_constraints(method):
    """min x + y on the disk of radius 1 is at -sqrt(1/2), in both."""
    optimize = pytest.importorskip("scipy.optimize")

    def square(x):
        return tf.reduce_sum(x * x)

    def bend(x, v):
        return v[0] * tf.hessian(square)(x)

    options, bent = {}, {}
    if method == "trust-constr":
        options["hess"], bent["hess"] = tf.hessian(tf.reduce_sum), bend
    disk = optimize.NonlinearConstraint(square, -np.inf, 1.0, jac=tf.grad(square), **bent)
    optimum = optimize.minimize(
        *(tf.reduce_sum, np.array([0.3, -0.2]), (), method, tf.grad(tf.reduce_sum)),
        **{"constraints": disk, **options},
    )
    np.testing.assert_allclose(optimum.x, -np.sqrt(0.5), atol=1e-4)


def of_numpy(x):
    return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


def of_ours(x):
    return tf.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


@pytest.mark.parametrize("f", [of_numpy, of_ours])
def test_residuals_and_roots(f):
    optimize = pytest.importorskip("scipy.optimize")
    for method in ("trf", "dogbox", "lm"):
        optimum = optimize.least_squares(f, [2.0, 2.0], jac=tf.jacobian(f), method=method)
        assert type(optimum.x) is type(optimum.jac) is np.ndarray
        np.testing.assert_allclose(optimum.x, 1.0, rtol=1e-8)
    for method in ("hybr", "lm"):
        optimum = optimize.root(f, [2.0, 2.0], jac=tf.jacobian(f), method=method)
        np.testing.assert_allclose(optimum.x, 1.0, rtol=1e-8)
    np.testing.assert_allclose(optimize.fsolve(f, [2.0, 2.0], fprime=tf.jacobian(f)), 1.0)


def test_roots_of_numbers():
    optimize = pytest.importorskip("scipy.optimize")

    def cubic(x):
        return x**3 - 2.0

    first, second = tf.grad(cubic), tf.grad(tf.grad(cubic))
    root = optimize.newton(cubic, 1.0, fprime=first, fprime2=second)
    assert isinstance(root, float)
    np.testing.assert_allclose(root, 2.0 ** (1 / 3), rtol=1e-12)


@pytest.mark.parametrize("stack", [np.stack, tf.stack])
def test_stiff_differential_equations(stack):
    """Van der Pol's equation, whose Jacobian is [[0, 1], [-20 y0 y1 - 1, 10 (1 - y0^2)]]."""
    integrate = pytest.importorskip("scipy.integrate")

    def slope(t, y):
        return stack([y[1], 10.0 * (1.0 - y[0] ** 2) * y[1] - y[0]])

    def by_hand(t, y):
        return np.array([[0.0, 1.0], [-20.0 * y[0] * y[1] - 1.0, 10.0 * (1.0 - y[0] ** 2)]])

    for method in ("Radau", "BDF", "LSODA"):
        options = {"t_span": (0.0, 3.0), "y0": [2.0, 0.0], "method": method}
        solution = integrate.solve_ivp(slope, jac=tf.jacobian(slope, argnums=1), **options)
        expected = integrate.solve_ivp(slope, jac=by_hand, **options)
        assert type(solution.y) is np.ndarray
        np.testing.assert_allclose(solution.y, expected.y, rtol=1e-10)


# Where arrays come back ----------------------------------------------------------------------


def test_arrays_for_arrays():
    """Decision 25: in each transform, in the arguments' structure, and ready to be written to."""
    x = np.array([1.0, 2.0, 3.0])
    f = lambda x: tf.reduce_sum(x**3)
    value, gradient = tf.value_and_grad(f)(x)
    assert type(value) is np.float64
    assert value == 36.0
    output, pullback = tf.vjp(f, x)
    same, push = tf.linearize(f, x)
    first, tangent = tf.jvp(f, (x,), (x,))
    assert [output, same, first] == [36.0] * 3
    assert [type(value) for value in (output, same, first, tangent, push(x))] == [np.float64] * 5
    assert tangent == push(x) == 108.0
    for result in (tf.grad(f)(x), gradient, pullback(1.0)[0], tf.elementwise_grad(tf.exp)(x)):
        assert type(result) is np.ndarray
        result += 1.0
    for result in (tf.hessian(f)(x), tf.jacobian(tf.exp)(x), tf.jacobian(tf.grad(f))(x)):
        assert type(result) is np.ndarray
        assert result.shape == (3, 3)
    np.testing.assert_array_equal(tf.hvp(f)(x, x), 6.0 * x * x)
    tree = {"w": x, "b": [np.float32(2.0), 1.5]}
    result = tf.grad(lambda p: f(p["w"]) * p["b"][0] * p["b"][1])(tree)
    assert type(result["w"]) is np.ndarray
    assert [type(leaf) for leaf in result["b"]] == [np.float32, np.float32]
    (value, aux), result = tf.value_and_grad(lambda x: (f(x), {"x": x}), has_aux=True)(x)
    assert type(value) is np.float64
    assert isinstance(aux["x"], tf.Tensor)
    np.testing.assert_array_equal(result, 3.0 * x * x)
    np.testing.assert_array_equal(x, [1.0, 2.0, 3.0])


def test_tensors_for_tensors_and_where_something_records():
    """Decision 25: nothing is lost under a tape, in a batch, a program or another transform."""
    x, w = np.array([1.0, 2.0]), tf.Variable(np.array([3.0, 4.0]))
    gradient = tf.grad(lambda x: tf.reduce_sum(w * x**2))
    assert isinstance(gradient(tf.constant(x)), tf.Tensor)
    assert isinstance(tf.grad(lambda x: x * x)(3.0), tf.Tensor)
    assert isinstance(tf.grad(lambda v: tf.reduce_sum(v * x))(w), tf.Tensor)
    mixed = tf.grad(lambda x, v: tf.reduce_sum(x * v), argnums=(0, 1))(x, w)
    assert all(isinstance(tensor, tf.Tensor) for tensor in mixed)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(gradient(x))
    assert tape.gradient(total, w).numpy().tolist() == [2.0, 4.0]
    second = tf.grad(lambda v: tf.reduce_sum(tf.grad(lambda x: tf.reduce_sum(v * x**2))(x)))
    np.testing.assert_array_equal(second(np.array([3.0, 4.0])), [2.0, 4.0])
    assert tf.function(gradient)(x).numpy().tolist() == [6.0, 16.0]
    assert tf.vmap(gradient)(x[None]).numpy().tolist() == [[6.0, 16.0]]
    assert type(gradient(x)) is np.ndarray


def test_descent_in_place():
    w = kept = np.array([1.0, 2.0, 3.0])
    expected = w - 0.1 * (2.0 * w)
    w -= 0.1 * tf.grad(lambda w: tf.reduce_sum(w * w))(w)
    assert w is kept
    np.testing.assert_array_equal(w, expected)
    w -= 0.1 * tf.grad(lambda w: tf.reduce_sum(w * w))(tf.constant(w))
    np.testing.assert_allclose(w, expected * 0.8, rtol=1e-15)
    assert w is kept


# Other packages ------------------------------------------------------------------------------


def test_scipy_of_tensors_that_nothing_records():
    """NumPy's functions give SciPy's code arrays; recorded tensors stay on the tape, or refuse."""
    integrate, stats = pytest.importorskip("scipy.integrate"), pytest.importorskip("scipy.stats")
    x = tf.constant(np.array([1.0, 4.0, 2.0, 8.0]))
    np.testing.assert_array_equal(
        integrate.cumulative_trapezoid(x), integrate.cumulative_trapezoid(x.numpy())
    )
    np.testing.assert_array_equal(stats.zscore(x), stats.zscore(x.numpy()))
    with tf.GradientTape() as tape:
        tape.watch(x)
        area = integrate.trapezoid(np.asarray([1.0, 1.0, 1.0, 1.0]) * x)
    if isinstance(area, tf.Tensor):  # as far as SciPy's own code keeps it one
        assert tape.gradient(area, x).numpy().tolist() == [0.5, 1.0, 1.0, 0.5]


def test_matplotlib():
    """Tensors are drawn as their arrays are; `alpha` and `color` need Python's numbers (4.4)."""
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot

    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 1.0, 4.0])
    z = np.arange(9.0).reshape(3, 3)

    def drawn(x, y, z, s):
        figure = pyplot.figure(figsize=(2, 2), dpi=40)
        axes = figure.subplots(2, 4).ravel()
        axes[0].bar(x, y, width=s, yerr=y, bottom=s)
        axes[1].quiver(x, y, y, x)
        axes[2].plot(x, z, linewidth=s)
        axes[2].fill_between(x, y, y + s, where=y > 1.0)
        axes[2].set_xlim(s, x[2])
        axes[4].scatter(x, y, s=y, c=y, vmin=s, alpha=float(s))
        axes[5].hist2d(x, y)
        axes[6].contourf(x, x, z)
        axes[6].errorbar(x, y, yerr=y)
        axes[7].imshow(z, vmin=s, extent=[s, x[0], s, y[2]])
        figure.add_subplot(projection="3d").plot_surface(*np.meshgrid(*[np.arange(3.0)] * 2), z)
        figure.canvas.draw()
        picture = np.asarray(figure.canvas.buffer_rgba()).copy()
        pyplot.close(figure)
        return picture

    args = (x, y, z, np.float64(0.5))
    expected, tensors = drawn(*args), [tf.constant(arg) for arg in args]
    np.testing.assert_array_equal(drawn(*tensors), expected)
    with tf.GradientTape() as tape:  # recorded ones as well
        tape.watch(tensors)
        np.testing.assert_array_equal(drawn(*tensors), expected)


def test_scikit_learn_and_xarray():
    x = np.random.default_rng(0).normal(size=(20, 2))
    y = x @ np.array([1.0, 2.0])
    xarray = pytest.importorskip("xarray")
    source = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(source)
        frame = xarray.DataArray(source, dims=("row", "column"))
        total = np.exp(frame * 2.0).mean("row").sum().data
    np.testing.assert_allclose(tape.gradient(total, source), 2.0 * np.exp(2.0 * x) / 20)
    linear = pytest.importorskip("sklearn.linear_model")
    model = linear.LinearRegression().fit(tf.constant(x), tf.constant(y))
    np.testing.assert_allclose(model.coef_, [1.0, 2.0])
