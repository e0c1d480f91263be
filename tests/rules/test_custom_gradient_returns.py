"""docs/behaviour.md 1.2 and 1.3, decision 3: what a rule and its function may return."""

import collections
import pickle
import re
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, gradient, numbers

pytestmark = pytest.mark.quick

Pair = collections.namedtuple("Pair", ["left", "right"])


def two_inputs(returned):
    """a * b, with a rule that returns returned(10 dy, 20 dy)."""

    @tf.custom_gradient
    def my_fn(a, b):
        return a * b, lambda dy: returned(10.0 * dy, 20.0 * dy)

    return my_fn


def one_input(returned):
    """2 a, with a rule that returns returned(dy)."""

    @tf.custom_gradient
    def my_fn(a):
        return a * 2.0, returned

    return my_fn


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(lambda a, b: (a, b), id="tuple"),
        pytest.param(lambda a, b: [a, b], id="list"),
        pytest.param(lambda a, b: ((a,), [b]), id="nested"),
        pytest.param(lambda a, b: {"z": b, "a": a}, id="dict, keys sorted"),
        pytest.param(lambda a, b: Pair(a, b), id="namedtuple"),
    ],
)
def test_returned_structures_are_flattened(returned):
    """1.2."""
    a, b = tf.constant(2.0), tf.constant(3.0)
    assert gradient(two_inputs(returned), a, b) == [10.0, 20.0]


@pytest.mark.parametrize("returned", [lambda dy: dy, lambda dy: (dy,), lambda dy: [dy]])
def test_one_input_takes_a_bare_gradient(returned):
    """1.2."""
    assert gradient(one_input(returned), tf.constant(2.0)) == [1.0]


@pytest.mark.parametrize(
    ("returned", "count"),
    [
        pytest.param(lambda a, b: a, 1, id="bare tensor"),
        pytest.param(lambda a, b: None, 1, id="None"),
        pytest.param(lambda a, b: tf.stack([a, b]), 1, id="stacked"),
        pytest.param(lambda a, b: (a,), 1, id="short tuple"),
        pytest.param(lambda a, b: (), 0, id="empty tuple"),
        pytest.param(lambda a, b: (a, b, a), 3, id="long tuple"),
        pytest.param(lambda a, b: [a, [b, a, b]], 4, id="long nested"),
    ],
)
def test_wrong_count_for_two_inputs(returned, count):
    """1.2 and 4.1: a ValueError at gradient() that names the function and its inputs."""
    a, b = tf.constant(2.0), tf.constant(3.0)
    words = f"expected to return 2 gradients, but returned {count} instead"
    with pytest.raises(ValueError, match=words) as caught:
        gradient(two_inputs(returned), a, b)
    assert "my_fn" in str(caught.value)
    assert "(a, b)" in str(caught.value)
    assert_next_gradient_is_right()


def test_generator_counts_as_one_leaf():
    """1.2."""
    function = two_inputs(lambda a, b: (entry for entry in (a, b)))
    with pytest.raises(ValueError, match=r"expected to return.*gradients"):
        gradient(function, tf.constant(2.0), tf.constant(3.0))
    assert_next_gradient_is_right()


@pytest.mark.parametrize("empty", [[], ()])
def test_empty_return_for_one_input(empty):
    """1.2."""
    with pytest.raises(ValueError, match="return 1 gradients, but returned 0 instead"):
        gradient(one_input(lambda dy: empty), tf.constant(2.0))
    assert_next_gradient_is_right()


def test_none_entry():
    """1.2: None for that input, zeros where asked for."""
    function = two_inputs(lambda a, b: (None, b))
    a, b = tf.constant(2.0), tf.constant([3.0, 4.0])
    assert gradient(function, a, b) == [None, [20.0, 20.0]]
    zeros = gradient(function, a, b, unconnected_gradients="zero")
    assert zeros == [0.0, [20.0, 20.0]]
    connected = gradient(function, a, b, unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert connected == [0.0, [20.0, 20.0]]


def test_none_propagates_up_the_chain():
    """1.2: z=f(x*x) gives None, z+x gives 1.0."""
    function = one_input(lambda dy: None)
    assert gradient(lambda x: function(x * x), tf.constant(3.0)) == [None]
    assert gradient(lambda x: function(x * x) + x, tf.constant(3.0)) == [1.0]


@pytest.mark.parametrize(
    "value", [5.0, 5, np.float32(5.0), np.float64(5.0), np.array(5.0, np.float32)]
)
def test_python_and_numpy_numbers_become_tensors(value):
    """1.2, decision 3: the gradient is a Tensor of the input's dtype."""
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = one_input(lambda dy: value)(x)
    result = tape.gradient(y, x)
    assert isinstance(result, tf.Tensor)
    assert result.dtype == x.dtype
    assert float(result) == 5.0


def test_numpy_array_is_accepted_and_constant_at_higher_orders():
    """4.1."""
    function = one_input(lambda dy: np.array([5.0, 6.0], np.float32))
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        slope = inner.gradient(y, x)
    assert isinstance(slope, tf.Tensor)
    assert numbers(slope) == [5.0, 6.0]
    assert outer.gradient(slope, x) is None


def test_returned_numpy_array_is_not_aliased():
    """5.2: what the rule returned may change afterwards."""
    kept = np.array([5.0, 6.0], np.float32)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = one_input(lambda dy: kept)(x)
    result = tape.gradient(y, x)
    kept[:] = 0.0
    assert numbers(result) == [5.0, 6.0]


def test_indexed_slices_are_accepted():
    """1.2: densified, also when summed with another path."""

    def slices(dy):
        return tf.IndexedSlices(
            values=tf.constant([[1.0, 2.0], [3.0, 4.0]]),
            indices=tf.constant([2, 2]),
            dense_shape=tf.constant([3, 2]),
        )

    function = one_input(slices)
    x = tf.constant([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    dense = [[0.0, 0.0], [0.0, 0.0], [4.0, 6.0]]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = function(x)
        total = tf.reduce_sum(y) + tf.reduce_sum(x)
    assert tf.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == dense
    summed = tf.convert_to_tensor(tape.gradient(total, x)).numpy()
    assert summed.tolist() == (np.array(dense) + 1.0).tolist()


@pytest.mark.parametrize(
    ("value", "returned", "shape"),
    [
        pytest.param([1.0, 2.0], lambda dy: tf.ones([3]), (3,), id="(3,) for (2,)"),
        pytest.param([1.0, 2.0], lambda dy: tf.reshape(dy, [1, 2]), (1, 2), id="(1,2) for (2,)"),
        pytest.param([1.0, 2.0], lambda dy: tf.ones([1]), (1,), id="(1,) for (2,)"),
        pytest.param(1.0, lambda dy: tf.ones([1]), (1,), id="(1,) for ()"),
        pytest.param([1.0, 2.0], lambda dy: np.ones((2, 2), np.float32), (2, 2), id="numpy"),
        pytest.param([1.0, 2.0], lambda dy: tf.ones([0]), (0,), id="(0,) for (2,)"),
    ],
)
def test_wrong_shape(value, returned, shape):
    """Decision 3 and 4.1: the function, argument, both shapes, and where the rule is."""
    x = tf.constant(value)
    words = f"of `my_fn` returned a gradient of shape {shape} for input `a`, which has shape "
    words += str(tuple(x.shape))
    with pytest.raises(ValueError, match=re.escape(words)) as caught:
        gradient(one_input(returned), x)
    assert "test_custom_gradient_returns.py" in str(caught.value)
    assert_next_gradient_is_right()


def test_wrong_shape_names_the_second_argument():
    """Decision 3."""
    function = two_inputs(lambda a, b: (tf.reduce_sum(a), tf.ones([2, 3])))
    words = re.escape("a gradient of shape (2, 3) for input `b`, which has shape (3,)")
    with pytest.raises(ValueError, match=words):
        gradient(function, tf.constant(1.0), tf.constant([1.0, 2.0, 3.0]))
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("shape", "axes"), [((2, 1), "1"), ((3,), "0"), ((1, 3), "0"), ((1, 1), r"0, 1")]
)
def test_forgotten_unbroadcast_names_the_axes_to_sum(shape, axes):
    """1.2: [2,3] for a [2,1] input; decision 3: the text says which axes to sum over."""

    @tf.custom_gradient
    def my_fn(a, b):
        return a + b, lambda dy: (dy, dy)

    with pytest.raises(ValueError, match=rf"(?s)of shape \(2, 3\).*sum.*{axes}"):
        gradient(my_fn, tf.ones(shape), tf.ones([2, 3]))
    assert_next_gradient_is_right()


def test_wrong_shape_is_found_whether_or_not_something_consumes_it():
    """1.2: the original notices only if another op meets the gradient."""
    function = one_input(lambda dy: tf.ones([2]))
    for chained in (function, lambda x: function(x * 2.0), lambda x: function(x) + x):
        with pytest.raises(
            ValueError, match=r"of shape \(2,\) for input `a`, which has shape \(3,\)"
        ):
            gradient(chained, tf.constant([1.0, 2.0, 3.0]))
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a: (a * 2.0, lambda dy: tf.reduce_sum(dy) * 2.0), id="0-d tensor"),
        pytest.param(lambda a: (a * 2.0, lambda dy: 6.0), id="float"),
        pytest.param(lambda a: (a * 2.0, lambda dy: np.float32(6.0)), id="numpy scalar"),
    ],
)
def test_scalar_for_a_larger_input_is_broadcast_with_a_warning(function):
    """Decision 3."""
    x = tf.constant([1.0, 2.0, 3.0])
    with pytest.warns(tf.CustomGradientWarning, match=r"\(3,\)"):
        assert gradient(tf.custom_gradient(function), x) == [[6.0, 6.0, 6.0]]


def test_lossy_dtype_is_cast_with_a_warning():
    """Decision 3: float64 for a float32 input."""

    @tf.custom_gradient
    def lossy(a):
        return a * 2.0, lambda dy: tf.constant([0.1, 1e-12], dtype=tf.float64)

    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = lossy(x)
    with pytest.warns(tf.CustomGradientWarning, match="float64") as caught:
        result = tape.gradient(y, x)
    assert "lossy" in str(caught[0].message)
    assert result.dtype == tf.float32
    assert result.numpy().tolist() == [np.float32(0.1), np.float32(1e-12)]


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
@pytest.mark.parametrize("second_path", [False, True])
def test_dtype_is_cast_before_accumulating(second_path):
    """4.1: the result must not depend on whether a second path exists."""
    function = one_input(lambda dy: tf.constant([1.0 + 2.0**-30, 1.0], dtype=tf.float64))
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x) - x if second_path else function(x)
    result = tape.gradient(y, x)
    assert result.dtype == tf.float32
    assert numbers(result) == ([0.0, 0.0] if second_path else [1.0, 1.0])


def test_integer_gradient_is_cast_with_a_warning():
    """Decision 3: its fractions are lost; zeros and Python's numbers are silent."""
    for run in (lambda f: f, tf.function):

        @tf.custom_gradient
        def truncated(a):
            return a * 2.0, lambda dy: tf.cast(dy * 2.0, tf.int32)

        words = (
            "rule of `truncated` returned a gradient of dtype int32 for input `a`, which is float32"
        )
        with pytest.warns(tf.CustomGradientWarning, match=words):
            slope = tf.grad(run(lambda x, f=truncated: f(x) * 0.7))(1.0)
        assert (slope.dtype, float(slope)) == (tf.float32, 1.0)
        for silent in (lambda dy: tf.zeros_like(dy, tf.int32), lambda dy: np.zeros((), int)):
            assert float(tf.grad(run(one_input(silent)))(1.0)) == 0.0
        assert float(tf.grad(run(one_input(lambda dy: 2)))(1.0)) == 2.0


def test_widening_cast_is_silent():
    """Decision 3: float32 for a float64 input loses nothing."""
    x = tf.constant([1.0, 2.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = one_input(lambda dy: tf.constant([0.5, 0.25]))(x)
    result = tape.gradient(y, x)
    assert result.dtype == tf.float64
    assert numbers(result) == [0.5, 0.25]


# 1.3: what the function returns.


def returning(result):
    @tf.custom_gradient
    def my_fn(x):
        return result(x)

    return my_fn


@pytest.mark.parametrize(
    ("value", "result", "words"),
    [
        (1.0, lambda x: x * 2.0, r"must return \(output, grad_fn\), got .*Tensor"),
        ([1.0, 2.0], lambda x: x * 2.0, r"must return \(output, grad_fn\), got .*Tensor"),
        (1.0, lambda x: None, r"must return \(output, grad_fn\), got None"),
        (
            1.0,
            lambda x: (x, lambda dy: dy, 1),
            r"must return \(output, grad_fn\), got 3 values",
        ),
        (1.0, lambda x: (x,), r"must return \(output, grad_fn\), got 1 value"),
        (1.0, lambda x: (x, 3), "grad_fn must be callable, got int"),
        (1.0, lambda x: (x, None), "grad_fn must be callable, got None"),
        (1.0, lambda x: (x, x), "grad_fn must be callable, got .*Tensor"),
    ],
)
@pytest.mark.parametrize("recording", [False, True])
def test_malformed_result_of_the_function(value, result, words, recording):
    """1.3 and 4.1: refused when called forward, tape or not, naming the function."""
    x = tf.constant(value)
    my_fn = returning(result)
    call = (lambda: gradient(my_fn, x)) if recording else (lambda: my_fn(x))
    error = ValueError if "value" in words else TypeError
    with pytest.raises(error, match=words) as caught:
        call()
    assert "my_fn" in str(caught.value)
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("output", "expected"),
    [(4.0, 4.0), (np.float32(4.0), 4.0), (np.array([4.0, 5.0], np.float32), [4.0, 5.0])],
)
def test_python_and_numpy_outputs_are_converted(output, expected):
    """1.3."""
    function = returning(lambda x: (output, lambda dy: tf.reduce_sum(dy) * 3.0))
    result = function(tf.constant(1.0))
    assert isinstance(result, tf.Tensor)
    assert numbers(result) == expected
    upstream = np.size(output) * 3.0
    assert gradient(function, tf.constant(1.0)) == [upstream]


def test_empty_output():
    """1.3: `()` is ok."""
    assert returning(lambda x: ((), lambda: 0.0))(tf.constant(1.0)) == ()


def test_none_in_an_output_structure_has_no_upstream():
    """Decision 10."""
    seen = []

    def result(x):
        def grad(*dys):
            seen.append(len(dys))
            return dys[0] * 5.0 + dys[1] * 7.0

        return (x, None, {"b": x, "a": None}), grad

    function = returning(result)
    output = function(tf.constant(2.0))
    assert output[1] is None
    assert output[2]["a"] is None
    assert gradient(lambda x: function(x)[0] + function(x)[2]["b"], tf.constant(2.0)) == [12.0]
    assert seen == [2, 2]


def test_variable_as_output_is_read_and_not_counted_as_used():
    """1.3: the read happens outside, so the rule needs no `variables`."""
    v = tf.Variable(3.0)
    function = returning(lambda x: (v, lambda dy: dy * 5.0))
    result = function(tf.constant(1.0))
    assert isinstance(result, tf.Tensor)
    assert float(result) == 3.0
    assert gradient(function, tf.constant(1.0)) == [5.0]


def test_input_as_output_gets_the_rule():
    """1.3 and 4.1: an output that aliases the input."""
    function = returning(lambda x: (x, lambda dy: dy * 5.0))
    x = tf.constant([1.0, 2.0])
    assert function(x) is not x
    assert gradient(function, x) == [[5.0, 5.0]]
    assert gradient(lambda x: function(x) + x, x) == [[6.0, 6.0]]


# 1.2, the bug of the original that the shape check finds: silu(x, beta) with beta of shape [2].


def silu_with(reduce_beta):
    """x * sigmoid(beta x), with the gradient of beta left to reduce_beta."""

    def silu(x, beta):
        s = tf.sigmoid(beta * x)

        def grad(dy):
            dbeta = dy * x * x * s * (1.0 - s)
            return dy * s * (1.0 + beta * x * (1.0 - s)), reduce_beta(dbeta)

        return x * s, grad

    return silu


SILU_ARGUMENTS = ([[1.0, 2.0], [3.0, 4.0]], [0.5, 1.5])


def gradient_of_beta(silu):
    x, beta = (tf.constant(value) for value in SILU_ARGUMENTS)
    return gradient(tf.custom_gradient(silu), x, beta)[1]


def test_silu_with_the_right_sum():
    """1.2: [1.57732, 0.22017]."""
    right = gradient_of_beta(silu_with(lambda dbeta: tf.reduce_sum(dbeta, axis=0)))
    assert right == pytest.approx([1.57732, 0.22017], abs=5e-6)


def test_silu_of_the_original_returns_a_scalar():
    """1.2: 1.79749; decision 3: broadcast as the original would go on to do, and said so."""
    with pytest.warns(tf.CustomGradientWarning, match="silu"):
        wrong = gradient_of_beta(silu_with(tf.reduce_sum))
    assert wrong == pytest.approx([1.79749, 1.79749], abs=5e-6)


def test_silu_without_a_sum_is_told_the_axis():
    """Decision 3."""
    words = r"(?s)of shape \(2, 2\) for input `beta`, which has shape \(2,\).*sum.*0"
    with pytest.raises(ValueError, match=words):
        gradient_of_beta(silu_with(lambda dbeta: dbeta))
    assert_next_gradient_is_right()


@pytest.mark.parametrize(
    "returned",
    [
        pytest.param(lambda dy: "text", id="str"),
        pytest.param(lambda dy: object(), id="object"),
        pytest.param(lambda dy: {1.0}, id="set"),
        pytest.param(lambda dy: (entry for entry in [dy]), id="generator"),
        pytest.param(lambda dy: abs, id="function"),
        pytest.param(lambda dy: np.array([1.0, None], object), id="object array"),
        pytest.param(lambda dy: np.array(["a", "b"]), id="string array"),
        pytest.param(lambda dy: np.ones(2, np.longdouble), id="longdouble"),
    ],
)
def test_what_is_no_gradient(returned):
    """1.2, other returns: a TypeError at gradient(), whatever else leads to the input."""

    @tf.custom_gradient
    def my_fn(x):
        return x * 2.0, returned

    for function in (my_fn, lambda x: my_fn(x) + x, lambda x: my_fn(x * 3.0)):
        with pytest.raises(TypeError):
            gradient(function, tf.constant([1.0, 2.0]))
        assert_next_gradient_is_right()


@pytest.mark.parametrize(
    ("returned", "count"),
    [([1.0, 2.0], 2), ([[1.0, 2.0]], 2), ([[1.0], [2.0], []], 2), ([[]], 0), ((1, (2, 3)), 3)],
)
def test_a_list_of_numbers_is_several_gradients(returned, count):
    """1.2: flattened, also where the input is a vector of as many elements."""

    @tf.custom_gradient
    def my_fn(x):
        return x * 2.0, lambda dy: returned

    words = f"expected to return 1 gradients, but returned {count} instead."
    with pytest.raises(ValueError, match=words):
        gradient(my_fn, tf.constant([1.0, 2.0]))
    assert_next_gradient_is_right()


def test_variable_and_narrower_dtypes_as_gradients():
    """1.2 and decision 3: whatever holds numbers becomes a Tensor of the input's dtype."""
    words = "returned a gradient of dtype int64 for input `x`, which is float32"
    for value in (tf.Variable([5.0, 6.0]), np.array([5, 6]), tf.constant([5, 6], tf.int64)):

        @tf.custom_gradient
        def f(x, value=value):
            return x * 2.0, lambda dy: value

        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            slope = tape.gradient(y, x)
        assert [words in str(warning.message) for warning in caught] == [True] * (
            value.dtype == np.int64
        )
        assert isinstance(slope, tf.Tensor)
        assert (slope.dtype, numbers(slope)) == (tf.float32, [5.0, 6.0])


# Fields ---------------------------------------------------------------------------------------


def test_errors_and_warnings_carry_what_they_say():
    @tf.custom_gradient
    def f(x, y):
        def rule(dy):
            return dy

        return tf.reduce_sum(x * y), rule

    x, y = tf.constant([[1.0, 2.0]]), tf.constant([3.0, 4.0])
    with pytest.raises(tf.errors.GradientCountError) as count:
        tf.grad(f)(x, y)
    error = count.value
    assert isinstance(error, ValueError)
    assert (error.function, error.expected, error.returned) == ("f", 2, 1)
    assert list(error.names) == ["x", "y"]
    assert error.line[0] == __file__

    @tf.custom_gradient
    def g(x):
        return x * 2.0, lambda dy: tf.ones((3, 1, 2))

    with pytest.raises(tf.errors.GradientShapeError) as shape:
        tf.grad(lambda x: tf.reduce_sum(g(x)))(x)
    error = shape.value
    assert (error.function, error.index, error.label) == ("g", 0, "input `x`")
    assert (error.expected, error.returned) == ((1, 2), (3, 1, 2))
    assert (error.axes, error.remedy) == ([0], "reduce_sum(gradient, axis=[0])")
    assert pickle.loads(pickle.dumps(error)).expected == (1, 2)
    turned = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: tf.transpose(dy)))
    with pytest.raises(tf.errors.GradientShapeError, match=r"fits: transpose\(gradient\)") as shape:
        tf.grad(lambda x: tf.reduce_sum(turned(x)))(x)
    assert (shape.value.axes, shape.value.remedy) == ([], "transpose(gradient)")

    h = tf.custom_gradient(lambda x: (x * 2.0, lambda dy: 1.0))
    with pytest.warns(tf.CustomGradientWarning) as warned:
        tf.grad(lambda x: tf.reduce_sum(h(x)))(x)
    assert (warned[0].message.kind, warned[0].message.line[0]) == ("scalar", __file__)

    cube = tf.custom_gradient(lambda x: (x**3, lambda dy: dy * 3 * x**2), max_order=1)
    with pytest.raises(tf.errors.DerivativeOrderError) as order:
        tf.grad(tf.grad(cube))(1.0)
    assert (order.value.order, order.value.max_order) == (2, 1)

    with pytest.raises(tf.errors.NotLinearError), tf.autodiff.ForwardAccumulator(x, x):
        tf.custom_gradient(lambda x: (x * 2.0, lambda dy: dy * dy))(x)


def test_a_rule_without_return_is_warned_of_once():
    @tf.custom_gradient
    def forgets(x):
        def grad(dy):
            def inner():
                return dy

            inner()

        return x * x, grad

    with pytest.warns(
        tf.errors.CustomGradientWarning,
        match=r"rule of `forgets` has no `return`, so the gradient .* `x` is None",
    ):
        assert gradient(forgets, tf.constant(3.0)) == [None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gradient(forgets, tf.constant(3.0)) == [None]


def test_a_rule_that_says_that_there_is_no_gradient_is_right():
    @tf.custom_gradient
    def by_return(x):
        def grad(dy):
            return None

        return x * x, grad

    by_lambda = tf.custom_gradient(lambda x: (x * x, lambda dy: None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for f in (by_return, by_lambda):
            assert gradient(f, tf.constant(3.0)) == [None]


def test_a_missing_return_is_named_where_several_gradients_are_due():
    @tf.custom_gradient
    def forgets(x, y):
        def grad(dy):
            _ = dy * y

        return x * y, grad

    with pytest.raises(ValueError, match="grad_fn has no `return`: it returned None"):
        gradient(lambda x: forgets(x, 2.0 * x), tf.constant(3.0))
