"""HIPS autograd's names: the transforms, helpers and densities of `tinygrad_cg.autograd`."""

import math

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg import numpy as tnp
from tinygrad_cg.autograd import (
    builtins,
    checkpoint,
    deriv,
    elementwise_grad,
    extend,
    grad,
    grad_and_aux,
    grad_named,
    hessian,
    hessian_vector_product,
    holomorphic_grad,
    jacobian,
    make_ggnvp,
    make_hvp,
    make_jvp,
    make_jvp_reversemode,
    make_vjp,
    multigrad_dict,
    tensor_jacobian_product,
    value_and_grad,
)
from tinygrad_cg.autograd import numpy as anp
from tinygrad_cg.autograd.extend import defjvp, defvjp, notrace_primitive, primitive
from tinygrad_cg.autograd.misc.fixed_points import fixed_point
from tinygrad_cg.autograd.misc.flatten import flatten, flatten_func
from tinygrad_cg.autograd.misc.optimizers import adam, rmsprop, sgd
from tinygrad_cg.autograd.numpy.numpy_boxes import ArrayBox
from tinygrad_cg.autograd.scipy import integrate, linalg, signal, special, stats
from tinygrad_cg.autograd.test_util import check_grads
from tinygrad_cg.autograd.tracer import Box, getval, isbox

X = np.array([0.3, 1.2, 2.5])


def test_transforms_take_argnum_and_python_floats_as_float64():
    def f(a, b):
        return a**2 * np.sin(b)

    gradients = grad(f, argnum=(0, 1))(2.0, 0.5)
    np.testing.assert_allclose(gradients, (4 * math.sin(0.5), 4 * math.cos(0.5)), rtol=1e-14)
    value, gradient = value_and_grad(f, argnum=1)(2.0, 0.5)
    np.testing.assert_allclose((value, gradient), (f(2.0, 0.5), 4 * math.cos(0.5)), rtol=1e-14)
    np.testing.assert_allclose(grad(grad(np.sin))(1.0), -math.sin(1.0), rtol=1e-14)
    gradient, aux = grad_and_aux(lambda x: (x**3, "aux"))(2.0)
    assert (float(gradient), aux) == (12.0, "aux")
    np.testing.assert_allclose(elementwise_grad(np.exp)(X), np.exp(X), rtol=1e-14)


def test_one_element_in_any_shape_is_a_scalar_and_more_are_an_error():
    np.testing.assert_allclose(grad(lambda x: (x**2).sum().reshape(1, 1))(X), 2 * X)
    with pytest.raises(ValueError, match="scalar"):
        grad(np.exp)(X)


def test_matrices_of_derivatives():
    def f(x):
        return np.sum(np.exp(x) * x[::-1])

    matrix, vector = np.asarray(hessian(f)(X)), np.array([1.0, -2.0, 0.5])
    expected = np.diag(np.exp(X) * X[::-1]) + np.fliplr(np.diag(np.exp(X)))
    expected += np.fliplr(np.diag(np.exp(X))).T
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)
    np.testing.assert_allclose(hessian_vector_product(f)(X, vector), matrix @ vector, rtol=1e-12)
    product, gradient = make_hvp(f)(X)
    np.testing.assert_allclose(product(vector), matrix @ vector, rtol=1e-12)
    np.testing.assert_allclose(gradient, grad(f)(X), rtol=1e-14)
    np.testing.assert_allclose(jacobian(np.exp)(X), np.diag(np.exp(X)), rtol=1e-14)
    pullback, value = make_vjp(lambda a, b: a * b, 1)(2.0, X)
    np.testing.assert_allclose(value, 2 * X)
    np.testing.assert_allclose(pullback(vector), 2 * vector)
    np.testing.assert_allclose(make_jvp(np.exp)(X)(vector)[1], np.exp(X) * vector, rtol=1e-14)


def test_a_primitive_has_the_gradient_that_defvjp_defines():
    @primitive
    def logsumexp(x):
        return np.log(np.sum(np.exp(np.asarray(x))))

    with pytest.raises(TypeError, match="call defvjp"):
        logsumexp(X)
    defvjp(logsumexp, lambda answer, x: lambda g: g * np.exp(x - np.log(np.sum(np.exp(x)))))
    soft = np.exp(X) / np.exp(X).sum()
    np.testing.assert_allclose(grad(logsumexp)(X), soft, rtol=1e-13)
    np.testing.assert_allclose(hessian(logsumexp)(X), np.diag(soft) - np.outer(soft, soft))
    with pytest.raises(TypeError, match="write @primitive"):
        defvjp(np.sin, lambda answer, x: lambda g: g)


def test_flatten_goes_there_and_back():
    value = {"b": [np.arange(6.0).reshape(2, 3), (1.5,)], "a": np.array([7.0, 8.0])}
    flat, unflatten = flatten(value)
    np.testing.assert_array_equal(flat, [7, 8, 0, 1, 2, 3, 4, 5, 1.5])
    back = unflatten(flat)
    assert list(back) == ["a", "b"]
    assert back["b"][0].shape == (2, 3)
    assert isinstance(back["b"][1], tuple)
    with pytest.raises(ValueError, match=r"shape \(9,\)"):
        unflatten(flat[:-1])
    objective, _, start = flatten_func(lambda v: (v["b"][0] ** 2).sum() + v["a"].sum(), value)
    expected = [1, 1, 0, 2, 4, 6, 8, 10, 0]
    np.testing.assert_allclose(grad(objective)(start), expected)
    assert flatten([])[0].shape == (0,)


@pytest.mark.parametrize(
    ("optimizer", "options", "expected"),
    [  # by hand for f = x**2 from 1.0: two steps
        (sgd, {"step_size": 1.0, "mass": 0.75}, (0.5, 0.5 - 0.375 - 0.25)),
        (rmsprop, {"step_size": 0.5, "gamma": 0.5}, None),
        (adam, {"step_size": 0.5}, None),
    ],
)
def test_optimizers_step_and_call_back(optimizer, options, expected):
    seen = []
    optimum = optimizer(
        lambda params, i: grad(lambda p: (p["x"] ** 2).sum())(params),
        {"x": np.array([1.0])},
        lambda params, i, g: seen.append((i, float(params["x"][0]), float(g["x"][0]))),
        num_iters=2,
        **options,
    )
    if optimizer is rmsprop:
        first = 1 - 0.5 * 2 / (math.sqrt(0.5 + 0.5 * 4) + 1e-8)
        mean = 2.5 * 0.5 + 0.5 * (2 * first) ** 2
        expected = (first, first - 0.5 * 2 * first / (math.sqrt(mean) + 1e-8))
    if optimizer is adam:
        first = 1 - 0.5 * 2 / (2 + 1e-8)
        m, v = (0.1 * 2 * first + 0.9 * 0.2) / 0.19, (1e-3 * 4 * first**2 + 0.999 * 4e-3)
        expected = (first, first - 0.5 * m / (math.sqrt(v / (1 - 0.999**2)) + 1e-8))
    assert seen[0] == (0, 1.0, 2.0)
    assert seen[1][0] == 1
    np.testing.assert_allclose((seen[1][1], optimum["x"][0]), expected, rtol=1e-12)


def test_fixed_points_have_the_gradient_of_the_implicit_function():
    def root(a):
        return fixed_point(
            lambda a: lambda x: x - 0.05 * (x**2 - a), a, 10.0, lambda x, y: abs(x - y), 1e-12
        )

    derivatives = [root(2.0), grad(root)(2.0), grad(grad(root))(2.0)]
    np.testing.assert_allclose(derivatives, [2**0.5, 0.5 * 2**-0.5, -0.25 * 2**-1.5], rtol=1e-9)


def test_check_grads_finds_a_wrong_gradient():
    check_grads(lambda x, y: np.sin(x) * y)(X, 2.0)

    @tf.custom_gradient
    def wrong(x):
        return x**2, lambda g: g * x

    with pytest.raises(AssertionError, match="'rev'"):
        check_grads(wrong, modes=["rev"], order=1)(X)


SPECIAL = {
    "digamma": (X,),
    "erf": (X,),
    "erfc": (X,),
    "expit": (X * 100 - 100,),
    "gamma": (np.array([-1.5, -0.5, 0.5, 4.5]),),
    "gammaln": (X,),
    "logit": (X / 3,),
    "beta": (X, X[::-1].copy()),
    "betaln": (X, X[::-1].copy()),
}
SMOOTH = {
    "norm": (("logpdf", "pdf", "cdf", "sf"), (X, 0.5, np.array([0.5, 1.0, 2.0]))),
    "t": (("logpdf", "pdf"), (X, 3.5, 0.5, 2.0)),
    "gamma": (("logpdf", "pdf"), (X, 1.7)),
    "chi2": (("logpdf", "pdf"), (X, 3.0)),
    "beta": (("logpdf", "pdf"), (X / 3, 1.5, 2.5)),
    "dirichlet": (("logpdf", "pdf"), (X / X.sum(), X + 1)),
    "multivariate_normal": (
        ("logpdf", "pdf"),
        (X, X[::-1] / 2, np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 1.5]])),
    ),
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name):
    ours, operands = getattr(special, name), SPECIAL[name]
    check_grads(ours)(*(np.clip(operand, -3, 3) for operand in operands))
    theirs = getattr(pytest.importorskip("scipy.special"), name)
    np.testing.assert_allclose(ours(*operands), theirs(*operands), rtol=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
def test_densities(name):
    functions, operands = SMOOTH[name]
    for function in functions:
        ours = getattr(getattr(stats, name), function)
        if name != "dirichlet":
            check_grads(ours)(*operands)
        else:  # at points off the simplex, as a formula
            check_grads(ours)(operands[0] * 1.1, operands[1])
        theirs = getattr(getattr(pytest.importorskip("scipy.stats"), name), function)
        np.testing.assert_allclose(ours(*operands), theirs(*operands), rtol=1e-11)


POINTS = np.array([0.5, 1.25, 2.75])
NUMBERS_OF_SCIPY = [  # SciPy 1.16's
    (
        special.betainc,
        (POINTS, 2.5, POINTS / 3),
        [0.6367825323508771, 0.6678519092443076, 0.9881359357655337],
    ),
    (
        special.gammainc,
        (POINTS, POINTS[::-1]),
        [0.9809835263276995, 0.6185287719969266, 0.023415616128058484],
    ),
    (
        special.gammaincc,
        (POINTS, POINTS[::-1]),
        [0.019016473672300558, 0.38147122800307387, 0.9765843838719415],
    ),
    (
        special.rgamma,
        ([-1.5, 0.5, 4.5],),
        [0.42314218766081724, 0.5641895835477563, 0.08597174606442],
    ),
    (special.erfcinv, (POINTS / 2,), [0.8134198475976184, 0.3456171147832066, -0.3456171147832066]),
    (special.ndtr, (POINTS - 2,), [0.06680720126885807, 0.2266273523768682, 0.7733726476231317]),
    (special.ndtri, (POINTS / 3,), [-0.967421566101701, -0.2104283942479247, 1.382994127100638]),
    (
        special.log_ndtr,
        ([-50.0, -20.5, -19.5, -3.0, 0.0, 3.0, 10.0],),
        [
            *(-1254.8313611394199, -214.06672896326387, -194.01696577749752, -6.60772622151035),
            *(-0.6931471805599453, -0.0013508099647481925, -7.61985302416047e-24),
        ],
    ),
    (special.i0, (POINTS,), [1.0634833707413234, 1.4304687177218298, 3.9959131072376564]),
    (special.i1, (POINTS,), [0.25789430539089636, 0.7552814183407471, 3.155410138619003]),
    (special.j0, (POINTS,), [0.938469807240813, 0.6459060852712852, -0.1641414278085137]),
    (special.j1, (POINTS,), [0.24226845767487387, 0.5106232603198805, 0.42597230295790234]),
    (special.y0, (POINTS,), [-0.4445187335067066, 0.2582168515945408, 0.44865872156913195]),
    (special.y1, (POINTS,), [-1.4714723926702433, -0.5843640366150082, 0.24601900149738398]),
    (
        stats.beta.cdf,
        (POINTS / 3, 1.5, 2.5),
        [0.19742293764891622, 0.5978163300443842, 0.9960396671677627],
    ),
    (stats.chi2.cdf, (POINTS, 3.0), [0.08110858834532418, 0.25896111118347076, 0.5682029192194136]),
    (
        stats.gamma.cdf,
        (POINTS, 1.7),
        [0.14661115340541117, 0.45321503511260647, 0.8236722555961202],
    ),
    (stats.poisson.cdf, ([-1.0, 0.0, 3.5], 2.5), [0.0, 0.0820849986238988, 0.7575761331330662]),
    (
        stats.t.cdf,
        ([-40.0, -1.5, 0.0, 2.0], 3.5, 0.5, 2.0),
        [4.7053124719146135e-05, 0.19066862678172264, 0.408280399747538, 0.7497509828702453],
    ),
    (
        stats.t.logcdf,
        ([-40.0, -1.5, 0.0, 2.0], 3.5, 0.5, 2.0),
        [-9.964233281403871, -1.657218295999571, -0.8958010863458736, -0.28801415042324063],
    ),
    (
        stats.norm.logcdf,
        ([-60.0, -1.5, 0.0, 8.0], 0.5, 2.0),
        [-461.8607745695348, -1.8410216450092634, -0.913061764811135, -8.842119423938433e-05],
    ),
    (
        stats.norm.logsf,
        ([-60.0, -1.5, 0.0, 80.0], 0.5, 2.0),
        [-2.608640285740964e-201, -0.1727537790234499, -0.5129840754094305, -794.6334302624122],
    ),
]


@pytest.mark.parametrize(
    ("function", "operands", "expected"),
    NUMBERS_OF_SCIPY,
    ids=[f"{row[0].__module__.rpartition('.')[2]}-{row[0].__name__}" for row in NUMBERS_OF_SCIPY],
)
def test_numbers_of_scipy(function, operands, expected):
    operands = [np.array(operand) if isinstance(operand, list) else operand for operand in operands]
    np.testing.assert_allclose(function(*operands), expected, rtol=2e-13)
    if function is stats.poisson.cdf:
        check_grads(lambda mu: function(operands[0], mu))(2.5)
    else:
        check_grads(function)(*operands)


def test_log_ndtr_keeps_the_digits_of_float32():
    x = np.array([-1e5, -40, -20, -13.5, -10.01, -9.99, -5, -1, 0, 1, 5, 12], np.float32)
    result = special.log_ndtr(x)
    assert np.asarray(result).dtype == np.float32
    np.testing.assert_allclose(result, special.log_ndtr(x.astype("d")), rtol=4e-7)
    slopes = [grad(lambda x: np.sum(special.log_ndtr(x)))(x.astype(dtype)) for dtype in "fd"]
    np.testing.assert_allclose(*slopes, rtol=1e-5)


def test_the_distribution_function_of_t_is_smooth_in_the_middle():
    """Its derivatives there are the density's: pdf(0), 0, -(df + 1) / df pdf(0)."""
    df = 4.0  # pdf(0) is 3/8

    def cdf(x):
        return stats.t.cdf(x, df)

    derivatives = [grad(cdf)(0.0), grad(grad(cdf))(0.0), grad(grad(grad(cdf)))(0.0)]
    np.testing.assert_allclose(derivatives, [0.375, 0.0, -1.25 * 0.375], rtol=1e-13, atol=1e-15)


def test_signs_of_gamma():
    np.testing.assert_array_equal(
        special.gammasgn(np.array([-1.5, -0.5, 0.5, -2])), [1, -1, 1, np.nan]
    )


def test_probabilities_of_whole_numbers_and_entropy():
    counts = np.array([0, 3, 7])
    check_grads(lambda mu: stats.poisson.logpmf(counts, mu))(2.5)
    expected = [math.exp(-2.5) * 2.5**k / math.factorial(k) for k in (0, 3, 7)]
    np.testing.assert_allclose(stats.poisson.pmf(counts, 2.5), expected, rtol=1e-13)
    cov = SMOOTH["multivariate_normal"][1][2]
    expected = 0.5 * math.log(np.linalg.det(2 * math.pi * math.e * cov))
    np.testing.assert_allclose(stats.multivariate_normal.entropy(X, cov), expected, rtol=1e-13)


def test_covariances_may_be_numbers_and_diagonals():
    density = stats.multivariate_normal.logpdf
    points = np.arange(6.0).reshape(2, 3) / 3
    full = np.asarray(density(points, X, 2 * np.eye(3)))
    np.testing.assert_allclose(density(points, X, np.full(3, 2.0)), full, rtol=1e-14)
    np.testing.assert_allclose(density(points, X, 2.0), full, rtol=1e-14)
    np.testing.assert_allclose(density(X, 0.0, 4.0), stats.norm.logpdf(X, 0.0, 2.0), rtol=1e-14)
    with pytest.raises(np.linalg.LinAlgError):
        density(points, X, -np.eye(3))


def test_logsumexp_weighs_and_does_not_overflow():
    x = np.array([[1000.0, 1001.0, -np.inf], [1.0, 2.0, 3.0]])
    np.testing.assert_allclose(special.logsumexp(x, axis=1)[0], 1001 + math.log1p(math.exp(-1)))
    weights = np.array([2.0, 0.0, 0.5])
    weighed = special.logsumexp(x, axis=1, b=weights, keepdims=True)
    assert weighed.shape == (2, 1)
    expected = [[1000 + math.log(2)], [math.log(2 * math.e + 0.5 * math.e**3)]]
    np.testing.assert_allclose(weighed, expected, rtol=1e-14)
    check_grads(lambda x, b: special.logsumexp(x, b=b))(X, weights)
    assert np.isnan(special.logsumexp([0.0, 1.0], b=[1.0, -1.0]))


def test_numpy_gives_arrays_for_arrays_and_tensors_for_tensors():
    zeros = anp.zeros(3)
    zeros[1] = 2.0
    assert type(anp.exp(zeros)) is np.ndarray
    assert type(anp.linalg.inv(np.eye(2))) is np.ndarray
    assert anp.ndarray is np.ndarray
    assert anp.seterr is np.seterr
    assert anp.random.RandomState is np.random.RandomState

    def f(x):
        return anp.sum(anp.full(3, x[0]) * anp.array([x[1], 2.0, x[2]])) + anp.linalg.norm([x[0]])

    np.testing.assert_allclose(grad(f)(X), [X[1] + 2 + X[2] + 1, X[0], X[0]], rtol=1e-14)
    assert np.shape(hessian(f)(X)) == (3, 3)
    with pytest.raises(AttributeError, match="absent"):
        anp.absent  # noqa: B018 (a look-up)


def test_draws_are_numpys():
    tnp.random.seed(3)
    draws = [tnp.random.randn(2), tnp.random.rand(), tnp.random.randint(0, 9, 4)]
    again = np.random.RandomState(3)
    expected = [again.randn(2), again.rand(), again.randint(0, 9, 4)]
    for draw, same in zip(draws, expected, strict=True):
        np.testing.assert_array_equal(draw, same)
    assert tnp.random.RandomState is np.random.RandomState
    np.testing.assert_array_equal(
        tnp.random.default_rng(1).normal(size=3), np.random.default_rng(1).normal(size=3)
    )


@pytest.mark.parametrize(
    ("function", "order", "expected"),
    [
        (special.jn, 3, [0.002563729994587244, 0.03686835964979468, 0.26339419351242743]),
        (special.yn, 2, [-5.441370837174267, -1.1931993101785539, -0.2697358113892163]),
        (special.iv, 0.5, [0.5879930867904164, 1.1432089853159881, 3.747788249487948]),
        (special.ive, 2.25, [0.010718578103833051, 0.04394715704282657, 0.08871041827104569]),
    ],
)
def test_bessel_functions_of_an_order(function, order, expected):
    np.testing.assert_allclose(function(order, POINTS), expected, rtol=2e-13)
    check_grads(lambda x: function(order, x))(POINTS)


def test_orders_of_bessel_functions_must_be_whole_where_scipy_says_so():
    np.testing.assert_allclose(special.jn(-3, POINTS), -special.jn(3, POINTS))
    for orders in (0.5, np.array([1.0, 2.5]), 10_001):
        with pytest.raises(ValueError, match="jn: orders must be whole, up to 10000"):
            special.jn(orders, 1.0)


def test_draws_of_the_dirichlet_distribution():
    draws = stats.dirichlet.rvs([1.0, 2.0, 3.0], 4, random_state=7)
    np.testing.assert_array_equal(draws, np.random.RandomState(7).dirichlet([1.0, 2.0, 3.0], 4))
    assert stats.dirichlet.rvs(tf.constant([1.0, 2.0])).shape == (1, 2)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution_over_chosen_axes(mode):
    rng = np.random.default_rng(0)
    images, filters = rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(3, 4, 3, 2))
    axes, dot_axes = ([2, 3], [2, 3]), ([1], [0])
    result = signal.convolve(images, filters, axes, dot_axes, mode)
    swapped = signal.convolve(filters, images, axes, dot_axes[::-1], mode)
    expected = np.zeros((2, 4, 7, 7))
    for i in range(3):
        for j in range(2):
            parts = np.einsum("nchw,cd->ndhw", images, filters[:, :, i, j])
            expected[:, :, i : i + 5, j : j + 6] += parts
    cut = {"full": np.s_[:, :], "same": np.s_[:, :, 1:6, 0:6], "valid": np.s_[:, :, 2:5, 1:6]}
    np.testing.assert_allclose(result, expected[cut[mode]], atol=1e-12)
    if mode == "same":
        assert swapped.shape == (4, 2, 3, 2)
    else:
        np.testing.assert_allclose(swapped, np.swapaxes(result, 0, 1), atol=1e-12)
    x, y = np.array([1.0, 2.0, 0.5]), np.array([0.0, 1.0, 0.5, -1.0])
    if mode != "valid":
        np.testing.assert_allclose(signal.convolve(y, x, mode=mode), np.convolve(y, x, mode))
    check_grads(lambda a, b: signal.convolve(a, b, mode=mode))(x, y)


def test_convolution_checks_its_axes():
    image, row = np.ones((3, 4)), np.ones((2, 5))
    with pytest.raises(ValueError, match="at least as large as the other"):
        signal.convolve(image, row, mode="valid")
    with pytest.raises(ValueError, match="mode must be"):
        signal.convolve(image, row, mode="half")
    with pytest.raises(ValueError, match="as many axes of A as of B"):
        signal.convolve(image, row, axes=([0, 1], [0]))
    with pytest.raises(ValueError, match="different axes of an array of shape"):
        signal.convolve(image, row, axes=([0], [0]), dot_axes=([0], [1]))


def test_linear_algebra_under_scipys_names():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 3)) + 3 * np.eye(3), rng.normal(size=(3, 2))
    positive = a @ a.T
    np.testing.assert_allclose(linalg.sqrtm(positive) @ linalg.sqrtm(positive), positive)
    np.testing.assert_allclose(linalg.expm(linalg.logm(positive)), positive)
    for trans, turned in ((0, np.array), ("T", np.transpose), (2, np.transpose)):
        for lower, triangle in ((True, np.tril), (False, np.triu)):
            x = linalg.solve_triangular(a, b, trans, lower)
            np.testing.assert_allclose(turned(triangle(a)) @ x, b, atol=1e-12)
            check_grads(
                lambda a, b: linalg.solve_triangular(a, b, trans, lower),  # noqa: B023
                order=1,
            )(a, b[:, 0])
    unit = linalg.solve_triangular(a, b, lower=True, unit_diagonal=True)
    np.testing.assert_allclose((np.tril(a, -1) + np.eye(3)) @ unit, b, atol=1e-12)
    upper = linalg.cholesky(np.triu(positive))  # the lower triangle is not read
    np.testing.assert_allclose(upper.T @ upper, positive)
    for lower in (True, False):
        x = linalg.cho_solve(linalg.cho_factor(positive, lower), b)
        np.testing.assert_allclose(positive @ x, b, atol=1e-12)
    small = rng.normal(size=(2, 2))
    x = linalg.solve_sylvester(a, small, b)
    np.testing.assert_allclose(a @ x + x @ small, b, atol=1e-12)
    check_grads(linalg.solve_sylvester)(a, small, b)
    for below, above in ((1, 1), (2, 0)):
        bands = rng.normal(size=(below + above + 1, 4)) + 4 * (
            np.arange(below + above + 1)[:, None] == above
        )
        full = sum(
            np.diag(bands[above - k, max(k, 0) : 4 + min(k, 0)], k)
            for k in range(-below, above + 1)
        )
        right = rng.normal(size=4)
        x = linalg.solve_banded((below, above), bands, right)
        np.testing.assert_allclose(full @ x, right, atol=1e-12)
        check_grads(lambda ab, b: linalg.solve_banded((below, above), ab, b))(  # noqa: B023
            bands, right
        )
    block = linalg.block_diag(a, [1.0, 2.0])
    assert block.shape == (4, 5)
    np.testing.assert_array_equal(block[:3, :3], a)
    np.testing.assert_array_equal(block[3], [0, 0, 0, 1, 2])
    for wrong in (np.ones(2), np.ones((3, 1, 1)), 1.0):
        with pytest.raises(ValueError, match="solve_triangular: b must have 3 rows"):
            linalg.solve_triangular(a, wrong)


def test_solutions_of_differential_equations():
    """SciPy's numbers, to 1e-12; and gradients by the state, the times and parameters."""

    def pendulum(y, t, a):
        return anp.array([y[1], -a * anp.sin(y[0])])

    times, start = np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, 0.2])
    result = integrate.odeint(pendulum, start, times, (2.0,))
    expected = [[1, 0.2], [0.4047145245837089, -1.2472570488980512]]
    expected += [expected[1], [-0.8122142499025892, -0.7939538659420916]]
    np.testing.assert_allclose(result, expected, atol=2e-7)
    back = integrate.odeint(pendulum, result[-1], times[::-1], (2.0,))
    np.testing.assert_allclose(back[-1], start, atol=4e-7)
    check_grads(
        lambda y, end, a: integrate.odeint(
            pendulum, y, np.array([0.0, 1.0]) * end, (a,), rtol=1e-11, atol=1e-11
        )
    )(start, 1.3, 2.0)
    moved = jacobian(lambda t: integrate.odeint(pendulum, start, t, (2.0,)))(times)
    np.testing.assert_allclose(moved[3, :, 3], pendulum(result[3], 2.0, 2.0), atol=1e-6)


def test_differential_equations_that_cannot_be_solved():
    def explode(y, t):
        return y**2

    with pytest.raises(RuntimeError, match=r"odeint: (more than|the state)"):
        integrate.odeint(explode, 1.0, [0.0, 2.0], mxstep=500)
    with pytest.raises(ValueError, match="must ascend or descend"):
        integrate.odeint(explode, 1.0, [0.0, 2.0, 1.0])
    with pytest.raises(ValueError, match="func must return 1 numbers"):
        integrate.odeint(lambda y, t: [1.0, 2.0], 1.0, [0.0, 2.0])


def test_floats_are_float64_in_products_with_vectors_too():
    """They were float32 in `make_vjp`, `make_jvp` and `make_hvp`."""
    pullback, value = make_vjp(lambda x: anp.sin(x) * 0.1)(0.3)
    pushforward = make_jvp(lambda x, y: anp.sin(x) * y)(0.3, 0.1)
    hvp, slope = make_hvp(lambda x: anp.sin(x) * 0.1)(0.3)
    sine, cosine = np.sin(0.3) * 0.1, np.cos(0.3) * 0.1
    results = [value, pullback(1.0), *pushforward(1.0), slope, hvp(1.0)]
    for result, wanted in zip(results, [sine, cosine, sine, cosine, cosine, -sine], strict=True):
        assert result.dtype == np.float64
        assert abs(float(result) - wanted) < 1e-15


def test_complex_gradients_are_those_of_autograd():
    z = np.array([1 + 2j, -0.5 + 0.1j])
    number = z[0]
    np.testing.assert_allclose(grad(lambda z: np.real(z**3))(number), 3 * number**2)
    np.testing.assert_allclose(holomorphic_grad(lambda z: z**3)(number), 3 * number**2)
    np.testing.assert_allclose(grad(lambda z: np.abs(z) ** 2)(number), 2 * np.conj(number))
    np.testing.assert_allclose(value_and_grad(lambda z: anp.sum(np.real(z**2)))(z)[1], 2 * z)
    pull, _ = make_vjp(lambda z: z**2)(z)
    np.testing.assert_allclose(pull(z), 2 * z**2)

    @primitive
    def square(z):
        return z**2

    defvjp(square, lambda out, z: lambda dy: dy * 2 * z)
    pull, _ = make_vjp(square)(z)
    np.testing.assert_allclose(pull(z), 2 * z**2)


def test_more_operators():
    def f(a, b=2.0):
        return anp.sum(a * b**2)

    np.testing.assert_allclose(grad_named(f, "b")(X, X), 2 * X**2)
    with pytest.raises(
        ValueError, match=r"grad_named: argname must be one of \['a', 'b'\], got 'c'"
    ):
        grad_named(f, "c")
    gradients = multigrad_dict(f)(X)
    assert list(gradients) == ["a", "b"]
    np.testing.assert_allclose(gradients["a"], np.full(3, 4.0))
    np.testing.assert_allclose(gradients["b"], 4 * X.sum())
    assert deriv(np.sin)(0.4) == pytest.approx(math.cos(0.4))
    np.testing.assert_allclose(grad(checkpoint(lambda x: anp.sum(x**3)))(X), 3 * X**2)
    np.testing.assert_allclose(tensor_jacobian_product(lambda x: x**2)(X, X), 2 * X**2)
    np.testing.assert_allclose(make_jvp_reversemode(lambda x: x**2)(X)(X), 2 * X**2)
    np.testing.assert_allclose(make_ggnvp(lambda x: x**2)(X)(X), 4 * X**3)
    product = make_ggnvp(lambda x: x**2, lambda y: anp.sum(y**3))(X)(X)
    np.testing.assert_allclose(product, 24 * X**5)


def test_a_primitive_has_the_forward_mode_that_defjvp_defines():
    @primitive
    def product(a, b, k=1):
        return k * a * b

    defjvp(product, "same", lambda g, out, a, b, k=1: k * a * g)
    np.testing.assert_allclose(make_jvp(lambda a: product(a, a, k=3))(X)(X)[1], 6 * X**2)
    np.testing.assert_allclose(grad(lambda a: anp.sum(product(a, a)))(X), 2 * X)
    with pytest.raises(TypeError, match=r'defjvp: each jvpfun must be a function, "same" or None'):
        defjvp(product, 3)


def test_an_argument_without_a_maker_has_no_gradient():
    @primitive
    def product(a, b):
        return a * b

    defvjp(product, lambda out, a, b: lambda g: g * a, argnums=(1,))
    np.testing.assert_allclose(grad(lambda b: anp.sum(product(X, b)))(X), X)
    with pytest.raises(NotImplementedError, match="product has no gradient for argument 0: call"):
        grad(lambda a: anp.sum(product(a, X)))(X)
    steps = notrace_primitive(np.floor)
    np.testing.assert_allclose(grad(lambda x: anp.sum(steps(x) * x))(X), np.floor(X))


def test_builtins_see_the_value_of_a_tensor():
    kinds = []

    def look(x):
        kinds.append((builtins.isinstance(x, float), builtins.isinstance(x, np.ndarray)))
        kinds.append(builtins.type(x))
        return anp.sum(x**2)

    grad(look)(3.0)
    grad(look)(X)
    assert kinds == [(True, False), float, (False, True), np.ndarray]
    assert builtins.isinstance(2, int)
    assert builtins.type([]) is builtins.list


def test_values_of_a_differentiated_function_are_told_from_constants():
    """The names of ``autograd.tracer`` and ``autograd.numpy.numpy_boxes`` that programs import."""
    kinds = []

    def look(x):
        value = getval(x)
        kinds.append((isinstance(x, ArrayBox), isinstance(x, Box), isbox(x), type(value)))
        if not isbox(value) and np.ndim(value):
            value[0] = 7.0  # it is a copy
        return anp.sum(x * getval(x)) if getval(anp.sum(x)) > 0 else anp.sum(x)

    np.testing.assert_array_equal(grad(look)(X), X)
    assert grad(look)(2.0) == 2.0
    assert look(3.0) == 9.0
    assert kinds == [
        *[(True, True, True, kind) for kind in (np.ndarray, np.float64)],
        (False, False, False, float),
    ]
    assert isbox(tf.function(lambda x: getval(x) * x)(tf.constant(2.0)))
    with pytest.raises(AttributeError, match=r"use x\.numpy\(\), or getval\(x\)"):
        grad(lambda x: x._value)(1.0)
    with pytest.raises(ImportError, match=r"VJPNode.*use tf\.GradientTape"):
        exec("from tinygrad_cg.autograd.tracer import VJPNode")


@pytest.mark.parametrize(
    ("name", "remedy"), [("vspace", "tf.nest"), ("defvjp_argnums", "defvjp"), ("Box", "tf.Tensor")]
)
def test_what_extend_lacks_has_a_remedy(name, remedy):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': use {remedy}"):
        getattr(extend, name)


def test_the_answer_of_a_primitive_has_its_gradient():
    """Its body gets arrays, as SciPy's functions need, and its rule is right at every order."""
    kinds = set()

    @primitive
    def exponential(x):
        kinds.add(type(x))
        out = np.empty_like(x)
        out[...] = np.exp(x)
        return out

    defvjp(exponential, lambda answer, x: lambda dy: dy * answer)
    derivative = exponential
    for _ in range(3):
        derivative = grad(derivative)
        np.testing.assert_allclose(derivative(1.0), math.e, 1e-15)
    np.testing.assert_allclose(hessian(lambda x: anp.sum(exponential(x)))(X), np.diag(np.exp(X)))
    assert kinds == {np.ndarray}


def test_a_primitive_takes_functions_and_names():
    @primitive
    def apply(x, function, name, nothing):
        return function(x)

    def maker(answer, x, function, name, nothing):
        def pull(dy):
            slope = np.zeros_like(x)
            slope[:] = np.cos(x)
            return dy * slope

        return pull

    defvjp(apply, maker, None, None, None)
    np.testing.assert_allclose(
        grad(lambda x: anp.sum(apply(x, np.sin, "sine", None)))(X), np.cos(X), 1e-12
    )
