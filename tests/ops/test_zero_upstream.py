"""Decision 21: a zero upstream gives a zero gradient, at every order and in every mode."""

import numpy as np
import pytest

import tinygrad_cg as tf
import tinygrad_cg.numpy as tnp
from tests.support.op_cases import examples, generator, names
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._ops.define import Real

# Points at which some functions have no finite slope.
BAD = [0.0, -0.0, 1.0, -1.0, -3.0, 800.0, -800.0, np.inf, -np.inf, np.nan, 1e300, 1e-320]


UNARY = sorted(
    name
    for name, record in OPS.items()
    if record.kind == "elementwise" and record.vjp and len(record.inputs) == 1 and record.function
)
BINARY = sorted(
    name
    for name, record in OPS.items()
    if record.kind == "elementwise"
    and record.vjp
    and all(record.vjp)
    and len(record.inputs) == 2
    and record.function
)


def good(sample):
    """A point of the interval that a record is tested on."""
    assert isinstance(sample, Real)
    return sample.low + 0.37 * (sample.high - sample.low)


def modes(gradient):
    """The gradient of a function of one vector, in each way in which it can be run."""
    return {
        "eager": gradient,
        "compiled": tf.function(gradient),
        "compiled, one by one": tf.function(gradient, jit_compile=False),
        "batched": lambda x: tf.vmap(gradient)(tf.stack([x, x]))[1],
    }


def along(gradient):
    """The derivative of a gradient along ones, in forward mode."""
    return lambda x: tf.jvp(gradient, (x,), (tf.ones_like(x),))[1]


def check(f, x):
    """Compare gradients of orders 1 and 2 of a masked sum with those at the good points alone."""
    mask = np.arange(len(x)) < 2
    x = tf.constant(x, tf.float64)

    def masked(x):
        return tf.reduce_sum(tf.where(mask, f(x), 0.0))

    def alone(x):
        return tf.reduce_sum(f(x))

    first, second = tf.grad(masked), tf.grad(lambda x: tf.reduce_sum(tf.grad(masked)(x)))
    expected_1 = tf.grad(alone)(x[:2])
    expected_2 = tf.grad(lambda x: tf.reduce_sum(tf.grad(alone)(x)))(x[:2])
    forward = along(first)
    for gradient, expected in ((first, expected_1), (second, expected_2), (forward, expected_2)):
        for name, run in modes(gradient).items():
            got = run(x).numpy()
            np.testing.assert_allclose(got[:2], expected, rtol=1e-9, err_msg=name)
            assert not got[2:].any(), (name, got)  # nan is not 0 either


@pytest.mark.parametrize("name", UNARY)
def test_masked_functions_of_one_operand(name):
    record = OPS[name]
    start = good(record.samples[0])
    check(record.function, [start, start + 1e-3, *BAD])


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("side", [0, 1])
def test_masked_functions_of_two_operands(name, side):
    record = OPS[name]
    points = [good(sample) for sample in record.samples]
    other = points[1 - side]

    def f(x):
        return record.function(x, other) if side == 0 else record.function(other, x)

    check(f, [points[side], points[side] + 1e-3, *BAD])


# What depends on several elements ------------------------------------------------------------

# Contractions add products up. A user's operation has its own rule. The last are themselves
# gradients: of their upstreams the rules of the operations that they belong to tell.
WITHOUT = {"contraction", "control", "elementwise", "user"}
PULLS = {"log_softmax_pull", "recurrence", "softmax_pull"}
SEVERAL = [
    name
    for name in names()
    if OPS[name].rules is not None and OPS[name].kind not in WITHOUT and name not in PULLS
]
OVERFLOWS = {"prod", "cumprod"}  # of numbers of 1e300


def lines(shape):
    """The positions of one element, and of one row along each axis."""
    first = (0,) * len(shape)
    yield first
    for axis in range(len(shape)):
        yield (*first[:axis], slice(None), *first[axis + 1 :])


def masked_derivatives(example, operands, mask, weights):
    """Gradients of a masked sum of squares: of order 1, and of order 2 in both modes."""
    tensors = list(map(tf.constant, operands))
    sources = [tensors[i] for i in example.real()]
    ways = [tf.ones_like(source) for source in sources]
    with tf.autodiff.ForwardAccumulator(sources, ways) as accumulator, tf.GradientTape() as outer:
        outer.watch(sources)
        with tf.GradientTape() as tape:
            tape.watch(sources)
            squares = tf.square(tf.math.real(example.call(*tensors)))
            total = tf.reduce_sum(tf.where(mask, weights * squares, 0.0))
        first = tape.gradient(total, sources, unconnected_gradients="zero")
    second = outer.gradient(first, sources, unconnected_gradients="zero")
    return [tensor.numpy() for tensor in (*first, *second, *accumulator.jvp(first, "zero"))]


def check_masked(example, i, line, bad, good):
    """Spoil a line of an operand, and mask what depends on it: gradients are those without it."""
    moved, spoiled = example.operands[i].copy(), example.operands[i].copy()
    moved[line] += generator(example.primitive).uniform(0.01, 0.02, moved[line].shape)
    spoiled[line] = bad
    results = [
        example.run(*example.operands[:i], operand, *example.operands[i + 1 :])
        for operand in (moved, spoiled)
    ]
    value = example.run(*example.operands)
    mask = (results[0] == value) & (results[1] == value)
    weights = generator(example.primitive).uniform(0.5, 1.5, value.shape)
    key = mask.tobytes()
    if key not in good:
        good[key] = masked_derivatives(example, example.operands, mask, weights)
    operands = (*example.operands[:i], spoiled, *example.operands[i + 1 :])
    derivatives = masked_derivatives(example, operands, mask, weights)
    for actual, expected in zip(derivatives, good[key], strict=True):
        np.testing.assert_allclose(
            actual, expected, rtol=1e-9, atol=1e-12, err_msg=f"{example.params} {line} {bad}"
        )


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")  # NumPy's FFT
def test_masked_lines(name):
    for example in examples(name):
        good = {}
        for i in example.real():
            if example.run(*example.operands).dtype.kind not in "fc":
                continue
            for line in lines(example.operands[i].shape):
                for bad in (np.nan, np.inf, -np.inf, 1e-320, 1e300):
                    if bad != 1e300 or name not in OVERFLOWS:
                        check_masked(example, i, line, bad, good)


COMPOSED = {
    "ptp": tnp.ptp,
    "norm, inf": lambda x, axis: tf.norm(x, np.inf, axis),
    "norm, 3": lambda x, axis: tf.norm(x, 3, axis),
    "deviation": tf.math.reduce_std,
    "layer normalization": lambda x, axis: tf.keras.ops.layer_normalization(x, axis=axis),
    "unit vectors": tf.math.l2_normalize,
    "clipped": lambda x, axis: tf.clip_by_norm(x, 1.0, axis),
    "cumulative logsumexp": tf.math.cumulative_logsumexp,
}


@pytest.mark.parametrize("name", COMPOSED)
def test_masked_rows_of_what_is_composed(name):
    rows = [[np.nan] * 3, [np.nan, 1.0, 2.0], [1.0, np.inf, 2.0], [-np.inf] * 3, [1e308] * 3]
    x = np.array([[0.4, 0.7, 0.3], *rows])

    for axis in (0, 1):

        def f(x, axis=axis):
            y = COMPOSED[name](x, axis)
            y = tf.transpose(y) if axis == 0 and y.ndim == 2 else y
            return tf.where(np.arange(6).reshape(6, *[1] * (y.ndim - 1)) < 1, y, 0.0)

        def first(x, f=f):
            return tf.grad(lambda x: tf.reduce_sum(f(x) ** 2))(x)

        spoiled, alone = (tf.constant(matrix if axis else matrix.T) for matrix in (x, x[[0] * 6]))
        for gradient in (
            first,
            lambda x, first=first: tf.grad(lambda x: tf.reduce_sum(first(x)))(x),
            along(first),
        ):
            np.testing.assert_allclose(gradient(spoiled), gradient(alone), rtol=1e-9)


def test_what_an_upstream_makes_is_not_hidden_in_rows():
    """Of the extremum of a row with nan, of its softmax, and of its products."""
    x = tf.constant([1.0, np.nan, 2.0], tf.float64)
    for f in (tf.reduce_max, tf.nn.softmax, tf.nn.log_softmax, tf.math.cumprod, tf.norm):
        assert np.isnan(tf.grad(lambda x, f=f: tf.reduce_sum(f(x) ** 2))(x)).any()
    upstream = tf.constant([0.0, np.nan, 0.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.math.cumprod(tf.ones_like(x) * x[0])
    assert np.isnan(tape.gradient(y, x, output_gradients=upstream)[0])


@pytest.mark.parametrize("name", UNARY)
def test_tangents_of_what_is_not_moved(name):
    record = OPS[name]
    start = good(record.samples[0])
    x = tf.constant([start, *BAD], tf.float64)
    direction = tf.constant([1.0] + [0.0] * len(BAD), tf.float64)
    _, tangent = tf.jvp(record.function, (x,), (direction,))
    assert np.isfinite(tangent.numpy()[0])
    assert not tangent.numpy()[1:].any()


def test_the_issue_s_example():
    def f(x):
        return tf.reduce_sum(tf.where(x > 0.0, tf.sqrt(x), x))

    assert tf.grad(f)(tf.constant([-1.0, 0.0, 4.0])).numpy().tolist() == [1, 1, 0.25]
    assert tf.function(tf.grad(f))(tf.constant([-1.0, 0.0, 4.0])).numpy().tolist() == [1, 1, 0.25]


@pytest.mark.parametrize("outer", [tf.function, lambda f: f])
def test_norms_at_zero(outer):
    zeros = tf.zeros([3], tf.float64)
    assert outer(tf.grad(tf.norm))(zeros).numpy().tolist() == [0, 0, 0]
    squared = outer(tf.grad(lambda x: tf.norm(x) ** 2))
    assert squared(zeros).numpy().tolist() == [0, 0, 0]
    weights = tf.constant([0.0, 2.0], tf.float64)
    rows = tf.constant([[0.0, 0.0], [3.0, 4.0]], tf.float64)
    weighted = outer(tf.grad(lambda x: tf.reduce_sum(weights * tf.norm(x, axis=1))))
    np.testing.assert_allclose(weighted(rows), [[0, 0], [1.2, 1.6]])
    assert outer(tf.grad(tf.math.reduce_std))(tf.ones([3], tf.float64)).numpy().tolist() == [
        0,
        0,
        0,
    ]
    assert outer(tf.grad(tf.math.reduce_std))(tf.ones([1], tf.float64)).numpy().tolist() == [0]


def test_what_an_upstream_makes_is_not_hidden():
    x = tf.constant([0.0, 4.0], tf.float64)
    assert tf.grad(lambda x: tf.reduce_sum(tf.sqrt(x)))(x).numpy().tolist() == [np.inf, 0.25]
    upstream = tf.constant([np.nan, 1.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.square(x)
    got = tape.gradient(y, x, output_gradients=upstream).numpy()
    assert np.isnan(got[0])
    assert got[1] == 8
    with tf.GradientTape() as tape:  # an infinite upstream times a slope of 0
        tape.watch(x)
        y = tf.sqrt(tf.square(x) * 0.0)
    assert np.isnan(tape.gradient(y, x).numpy()).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tf.math.log(1 + tf.exp(x)),
        lambda x: tf.math.log(1 + 2.0 ** (x / np.log(2.0))),
        lambda x: tf.math.log(2 + tf.math.expm1(x)),
        lambda x: tf.math.log(tf.cosh(x)),
        lambda x: tf.math.log(tf.sinh(x)),
        lambda x: (x**200) ** (1 / 200),
        lambda x: (x**200) ** tf.constant(1 / 200, tf.float64),
        lambda x: tf.sqrt(tf.exp(2 * x)),
        lambda x: tf.math.log1p(tf.exp(x)),
        lambda x: np.log2(tf.exp(x)),
        lambda x: np.log10(tf.exp(x)),
        lambda x: np.cbrt(tf.exp(3 * x)),
        lambda x: tf.asinh(tf.exp(x)),
        lambda x: tf.acosh(tf.exp(x)),
        lambda x: tf.math.xlogy(tf.constant(1.0, tf.float64), tf.exp(x)),
    ],
)
def test_a_slope_that_overflowed_is_not_hidden(f):
    """The upstream gradient is 0 by the same overflow: 0 would be a wrong number."""
    x = tf.constant(1000.0, tf.float64)
    for gradient in (tf.grad(f), tf.function(tf.grad(f))):
        assert np.isnan(gradient(x))


@pytest.mark.parametrize("upstream", [0.0, 1.0])
def test_masks_by_products(upstream):
    """A mask multiplied in, inside a square: the second derivative is that of a constant 0."""
    x = tf.constant([0.0, 4.0], tf.float64)
    mask = tf.constant([0.0, 1.0], tf.float64)

    def f(x):
        return tf.reduce_sum((mask * tf.sqrt(x)) ** 2 * upstream)

    second = tf.grad(lambda x: tf.reduce_sum(tf.grad(f)(x)))
    for run in modes(tf.grad(f)).values():
        np.testing.assert_allclose(run(x), [0, upstream])
    for run in modes(second).values():
        np.testing.assert_allclose(run(x), [0, 0 * upstream], atol=1e-12)


def test_masked_text_of_kernels_stays_short():
    """A finite slope is multiplied as it is."""
    f = tf.function(tf.grad(lambda x: tf.reduce_sum(3.0 * x)))
    assert "multiply_upstream" not in str(f.graph(tf.ones([3])))


@pytest.mark.parametrize(
    ("f", "inner"),
    [
        (lambda x: x**1.5, 4.0),
        (tf.sqrt, 4.0),
        (lambda x: 1.0 / x, 4.0),
        (lambda x: tf.exp(1.0 / x), 4.0),
        (lambda x: tf.math.log(x) * tf.sqrt(x), 4.0),
        (tf.exp, 1.0),
    ],
)
def test_third_derivatives_of_masked_functions_agree_in_all_mixtures_of_modes(f, inner):
    x = tf.constant([inner, 0.0, -1.0, 1000.0], tf.float64)
    mask = np.arange(4) < 1

    def backward(g):
        return tf.grad(lambda x: tf.reduce_sum(g(x)))

    def masked(x):
        return tf.where(mask, f(x), 0.0)

    expected = backward(backward(backward(f)))(x[:1])
    for modes_of_orders in ((along, along, backward), (along, backward, backward)):
        gradient = masked
        for mode in reversed(modes_of_orders):
            gradient = mode(gradient)
        for run in (
            gradient,
            tf.function(gradient),
            along(tf.function(modes_of_orders[1](modes_of_orders[2](masked)))),
        ):
            result = run(x).numpy()
            np.testing.assert_allclose(result[:1], expected, rtol=1e-9)
            assert not result[1:].any()


def test_zeros_of_an_upstream_that_moves_are_no_masks():
    """(x - 1)**2 has upstreams that are zero at 1, and go on from there."""
    x = tf.constant([1.0], tf.float64)

    def f(x):
        return tf.sin(x - 1.0) ** 2 * tf.exp(2.0 * x) / x

    def backward(g):
        return tf.grad(lambda x: tf.reduce_sum(g(x)))

    expected = backward(backward(backward(f)))(x)
    assert abs(expected.numpy()) > 0.1
    for gradient in (along(along(backward(f))), along(backward(along(f))), along(along(along(f)))):
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-9)
        np.testing.assert_allclose(tf.function(gradient)(x), expected, rtol=1e-9)


def test_masked_functions_of_complex_numbers_in_forward_mode():
    x = tf.constant([4.0 + 1j, 0.0], tf.complex128)
    mask = np.array([True, False])

    def first(x):
        return tf.grad(lambda x: tf.reduce_sum(tf.math.real(tf.where(mask, tf.sqrt(x), 0.0))))(x)

    result = along(first)(x).numpy()
    alone = along(tf.grad(lambda x: tf.reduce_sum(tf.math.real(tf.sqrt(x)))))(x[:1])
    np.testing.assert_allclose(result[:1], alone, rtol=1e-9)
    assert result[1] == 0


@pytest.mark.parametrize(
    "f",
    [
        tf.reduce_max,
        tf.reduce_min,
        lambda x: tf.math.segment_max(x, [0, 0, 1])[0],
        lambda x: tf.math.unsorted_segment_min(x, [0, 0, 1], 3)[0],
    ],
)
def test_the_nan_of_an_extremum_shows_in_both_modes(f):
    x = tf.constant([np.nan, 1.0, 2.0], tf.float64)
    first = tf.ones((), tf.float64)
    assert np.isnan(tf.grad(f)(x).numpy()[:2]).all()
    assert np.isnan(tf.jvp(f, (x,), (tf.ones(3, tf.float64),))[1])
    assert np.isnan(tf.linearize(f, x)[1](tf.ones(3, tf.float64)))
    masked = tf.vjp(lambda x: tf.where(False, f(x), first), x)[1](first)[0]
    np.testing.assert_array_equal(masked, np.zeros(3))


@pytest.mark.parametrize("deviation", [tf.math.reduce_std, tnp.std, tnp.nanstd])
def test_derivatives_of_a_deviation_of_zero_are_zero(deviation):
    """|x1 - x2| / 2 has second derivatives of 0 on both sides of 0."""
    x = tf.constant([3.0, 3.0], tf.float64)
    np.testing.assert_array_equal(tf.grad(deviation)(x), np.zeros(2))
    np.testing.assert_array_equal(tf.hessian(deviation)(x), np.zeros((2, 2)))
    np.testing.assert_array_equal(tf.function(tf.hessian(deviation))(x), np.zeros((2, 2)))
