"""Primitives by name, with kernels and registered gradients of one's own (docs/behaviour.md)."""

import math
from typing import Any

import numba
import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right, derivative, gradient, numbers, slope


def numpy_cube(x):
    return x * x * x


@numba.njit
def compiled_cube(x):
    out = np.empty_like(x)
    for index in np.ndindex(x.shape):
        out[index] = x[index] * x[index] * x[index]
    return out


def scalar_cube(x):
    return x * x * x


def cube_rule(op, grad):
    (x,) = op.inputs
    return 3 * x * x * grad


KERNELS = {
    "NumpyCube": {"kernel": numpy_cube},
    "CompiledCube": {"kernel": compiled_cube},
    "ScalarCube": {"kernel": scalar_cube, "elementwise": True},
}


@pytest.fixture(scope="module")
def cubes():
    """One operation for each kind of kernel, defined when the first test needs them."""
    for name in KERNELS:
        tf.RegisterGradient(name)(cube_rule)
    return {name: tf.primitive(name, **options) for name, options in KERNELS.items()}


@pytest.fixture(params=KERNELS)
def cube(request, cubes):
    return cubes[request.param]


def test_cube_to_every_order(cube):
    """A rule written in operations serves all orders."""
    assert [derivative(cube, 2.0, order) for order in range(4)] == [8.0, 12.0, 12.0, 6.0]
    assert derivative(lambda x: cube(x) ** 2, 2.0, 2) == 480.0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (0, 2)])
def test_shapes_and_dtypes(cube, shape, dtype):
    """0-d, empty and more; the dtype stays."""
    value = (np.arange(np.prod(shape), dtype=dtype) + 1).reshape(shape)
    x = tf.constant(value)
    y = cube(x)
    assert isinstance(y, tf.Tensor)
    assert (y.dtype, y.shape) == (x.dtype, shape)
    np.testing.assert_array_equal(y.numpy(), value**3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cube(x)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), 3 * value**2)


def test_plain_values_are_converted(cube):
    """Numbers, lists and strided arrays."""
    assert numbers(cube(2.0)) == 8.0
    assert numbers(cube([1.0, 2.0])) == [1.0, 8.0]
    assert numbers(cube(np.arange(6.0)[::-2])) == [125.0, 27.0, 1.0]
    assert numbers(cube(np.array([[1.0, 2.0], [3.0, 4.0]]).T)) == [[1.0, 27.0], [8.0, 64.0]]


def polar(x, y):
    return np.sqrt(x * x + y * y), np.arctan2(y, x)


@pytest.fixture(scope="module")
def to_polar():
    """An elementwise operation with two operands and two outputs."""

    @tf.RegisterGradient("ToPolar")
    def rule(op, radius_grad, angle_grad):
        (x, y), (radius, _) = op.inputs, op.outputs
        radial, across = radius_grad / radius, angle_grad / radius**2
        return radial * x - across * y, radial * y + across * x

    return tf.primitive("ToPolar", polar, elementwise=True)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    ("first", "second"),
    [((), ()), ((3,), (3,)), ((2, 3), ()), ((), (4,)), ((2, 1), (3,)), ((0, 3), (3,))],
)
def test_elementwise_kernel_with_several_outputs(to_polar, dtype, first, second):
    """One kernel writes them all; operands broadcast, and dtypes stay."""
    rng = np.random.default_rng(0)
    x = np.asarray(rng.uniform(0.5, 2, first)).astype(dtype)
    y = np.asarray(rng.uniform(0.5, 2, second)).astype(dtype)
    got = to_polar(tf.constant(x), tf.constant(y))
    want = polar(x.astype(np.float64), y.astype(np.float64))
    assert [(result.dtype, result.shape) for result in got] == [(dtype, np.shape(want[0]))] * 2
    tolerance = 4 * np.finfo(dtype).eps
    for result, other in zip(got, want, strict=True):
        np.testing.assert_allclose(result.numpy(), other, rtol=tolerance)


def test_gradients_of_several_elementwise_outputs(to_polar):
    """An upstream gradient for each output, broadcast operands undone, at both orders."""

    def by_operations(x, y):
        return tf.sqrt(x * x + y * y), tf.atan2(y, x)

    def loss(call):
        def value(x, y):
            radius, angle = call(x, y)
            return tf.reduce_sum(radius**2 * tf.sin(angle))

        return value

    x = tf.constant([[0.5], [1.5]], tf.float64)
    y = tf.constant([0.25, 0.75, 1.25], tf.float64)
    for part in range(2):  # the other output is unused: its upstream gradient is 0
        got = gradient(lambda x, y, part=part: to_polar(x, y)[part], x, y)
        want = gradient(lambda x, y, part=part: by_operations(x, y)[part], x, y)
        for result, other in zip(got, want, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-12)
    for argnums in (0, 1):
        slope = tf.grad(loss(to_polar), argnums)(x, y)
        np.testing.assert_allclose(slope, tf.grad(loss(by_operations), argnums)(x, y), rtol=1e-12)

        def energy(x, y, call, argnums=argnums):
            return tf.reduce_sum(tf.grad(loss(call), argnums)(x, y) ** 2)

        got = tf.grad(lambda x, y, f=energy: f(x, y, to_polar), (0, 1))(x, y)
        want = tf.grad(lambda x, y, f=energy: f(x, y, by_operations), (0, 1))(x, y)
        for result, other in zip(got, want, strict=True):
            np.testing.assert_allclose(result, other, rtol=1e-10)


def test_several_elementwise_outputs_of_other_kinds():
    """Integers and truths among them; strided operands; more arrays than threads take; complex."""

    def parts(x):
        integral = np.floor(x)
        return x - integral, int(integral), x < 0

    op = tf.primitive("PartsOf", parts, elementwise=True)
    value = np.linspace(-2, 2, 24, dtype="f").reshape(4, 6).T[::2]
    fraction, integral, below = op(value)
    assert [result.dtype for result in (fraction, integral, below)] == ["float32", "int64", "bool"]
    np.testing.assert_array_equal(integral.numpy(), np.floor(value))
    np.testing.assert_array_equal(fraction.numpy(), value - np.floor(value))
    np.testing.assert_array_equal(below.numpy(), value < 0)
    assert op(3)[0].dtype == "float64"

    @numba.njit
    def all_of(x, y, z):
        return x + y, y + z, z * x

    sums = tf.primitive("SumsOf", all_of, elementwise=True)
    x = np.arange(200_000.0)
    for result, other in zip(sums(x, 2.0, x), (x + 2, x + 2, x * x), strict=True):
        np.testing.assert_array_equal(result.numpy(), other)
    rotated = tf.primitive("Turned", lambda z: (z * 1j, abs(z)), elementwise=True)
    z, size = rotated(np.array([3 + 4j], "F"))
    assert (z.dtype, size.dtype, numbers(size)) == ("complex64", "float32", [5.0])


def test_several_elementwise_outputs_on_threads(to_polar):
    """The same bits on one thread and on all, where the work is shared."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.5, 2, (2, 300_001))
    before = tf.config.threading.get_num_threads()
    results = []
    for count in {1, before}:
        tf.config.threading.set_num_threads(count)
        try:
            results.append([result.numpy() for result in to_polar(x, y)])
        finally:
            tf.config.threading.set_num_threads(before)
        np.testing.assert_allclose(results[-1], polar(x, y), rtol=1e-15)
    np.testing.assert_array_equal(results[0], results[-1])


def test_several_elementwise_outputs_in_a_function(to_polar):
    """A trace knows their shapes and dtypes without a shape rule."""
    x, y = tf.constant([[0.5], [1.5]]), tf.constant([0.25, 0.75, 1.25])
    traced = tf.function(lambda x, y: to_polar(x, y))(x, y)
    for result, other in zip(traced, to_polar(x, y), strict=True):
        assert (result.dtype, result.shape) == (other.dtype, other.shape)
        np.testing.assert_array_equal(result.numpy(), other.numpy())


def test_several_elementwise_outputs_of_bad_kernels():
    x, y = tf.ones([2]), tf.ones([3])
    op = tf.primitive("ShapesApart", lambda x, y: (x, y), elementwise=True)
    with pytest.raises(ValueError, match=r"ShapesApart: shapes \(2,\) and \(3,\) do not broadcast"):
        op(x, y)
    op = tf.primitive("TextAmong", lambda x: (x, "text"), elementwise=True)
    with pytest.raises(TypeError, match=r"TextAmong: the kernel returned .* return numbers"):
        op(x)
    op = tf.primitive("NoneAtAll", lambda x: (), elementwise=True)
    with pytest.raises(TypeError, match="NoneAtAll: the kernel returned an empty tuple"):
        op(x)
    unknown = eval("lambda x: (x, nowhere(x))")
    op = tf.primitive("UnknownName", unknown, elementwise=True)
    with pytest.raises(TypeError, match=r"UnknownName: no kernel for dtype float32: .*nowhere"):
        op(x)


def test_elementwise_kernel_of_two_operands_broadcasts():
    """The scalar function is compiled by the library; its rule has to undo broadcasting."""
    mix = tf.primitive("MixTwo", kernel=lambda x, y: x * x * y, elementwise=True)

    @tf.RegisterGradient("MixTwo")
    def rule(op, grad):
        x, y = op.inputs
        return (
            tf.reduce_sum(2 * x * y * grad, axis=1, keepdims=True) if x.shape else 2 * x * y * grad,
            tf.reduce_sum(x * x * grad, axis=0) if y.shape else x * x * grad,
        )

    x, y = tf.constant([[1.0], [2.0]]), tf.constant([3.0, 4.0, 5.0])
    assert numbers(mix(x, y)) == [[3.0, 4.0, 5.0], [12.0, 16.0, 20.0]]
    assert gradient(mix, x, y) == [[[24.0], [48.0]], [5.0, 5.0, 5.0]]
    a, b = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([a, b])
        with tf.GradientTape() as inner:
            inner.watch([a, b])
            z = mix(a, b)
        slopes = inner.gradient(z, [a, b])
    assert numbers(slopes) == [12.0, 4.0]
    assert numbers([outer.gradient(slope, [a, b]) for slope in slopes]) == [
        [6.0, 4.0],
        [4.0, None],
    ]


def test_what_a_rule_sees():
    """The original's convention: op.inputs, op.outputs, op.get_attr, op.name, op.type."""
    scaled = tf.primitive("ScaledExp", kernel=lambda x, scale=1.0: np.exp(x * scale))
    seen = []

    @tf.RegisterGradient("ScaledExp")
    def rule(op, grad):
        seen.append((op.type, op.name, len(op.inputs), len(op.outputs), op.get_attr("scale")))
        return op.outputs[0] * op.get_attr("scale") * grad

    def at(order):
        return derivative(lambda x: scaled(x, scale=2.0), 0.5, order, "float64")

    expected = [np.e, 2 * np.e, 4 * np.e, 8 * np.e]
    assert [at(order) for order in range(4)] == pytest.approx(expected, rel=1e-12)
    kind, name, inputs, outputs, scale = seen[0]
    assert (kind, inputs, outputs, scale) == ("ScaledExp", 1, 1, 2.0)
    assert name.startswith("ScaledExp")


def test_unknown_attribute_is_named():
    """get_attr of something that the call did not have."""
    op = tf.primitive("WithoutAttribute", kernel=numpy_cube)

    @tf.RegisterGradient("WithoutAttribute")
    def rule(op, grad):
        return grad * op.get_attr("missing")

    with pytest.raises(ValueError, match="missing"):
        gradient(op, tf.constant(2.0))
    assert_next_gradient_is_right()


def test_several_outputs():
    """(op, *grads): one upstream for each output, zeros for one that is not used."""
    parts = tf.primitive("SquareAndCube", kernel=lambda x: (x * x, x * x * x))
    seen = []

    @tf.RegisterGradient("SquareAndCube")
    def rule(op, dsquare, dcube):
        seen.append(numbers([dsquare, dcube]))
        (x,) = op.inputs
        return 2 * x * dsquare + 3 * x * x * dcube

    x = tf.constant(2.0)
    assert numbers(parts(x)) == [4.0, 8.0]
    assert gradient(parts, x) == [16.0]
    assert gradient(lambda x: parts(x)[1], x) == [12.0]
    assert seen == [[1.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize("wrap", [lambda g: g, lambda g: [g], lambda g: (g,)])
def test_bare_list_and_tuple_returns(wrap):
    """One input: the gradient itself, or a sequence of one."""
    name = f"Returns{wrap.__code__.co_firstlineno}{wrap(0)!r}"
    op = tf.primitive(name, kernel=lambda x: x * 2)
    tf.RegisterGradient(name)(lambda op, grad: wrap(grad * 10.0))
    assert gradient(op, tf.constant(1.0)) == [10.0]


def test_none_for_one_input():
    """No gradient for the second input."""
    op = tf.primitive("FirstOnly", kernel=lambda x, y: x * y)
    tf.RegisterGradient("FirstOnly")(lambda op, grad: (grad * op.inputs[1], None))
    assert gradient(op, tf.constant(2.0), tf.constant(3.0)) == [3.0, None]


def test_registering_before_the_primitive_exists():
    """As the original allows."""

    @tf.RegisterGradient("DefinedLater")
    def rule(op, grad):
        return grad * 7.0

    op = tf.primitive("DefinedLater", kernel=lambda x: x * 2)
    assert gradient(op, tf.constant(1.0)) == [7.0]


def test_register_gradient_returns_the_rule():
    """As a decorator it leaves the name bound to the function."""

    def rule(op, grad):
        return grad

    assert tf.RegisterGradient("ReturnsTheRule")(rule) is rule


def test_double_registration_is_a_key_error():
    """It names the operation, and the first rule stays."""
    op = tf.primitive("Twice", kernel=lambda x: x * 2)
    tf.RegisterGradient("Twice")(lambda op, grad: grad * 5.0)
    with pytest.raises(KeyError, match="Twice"):
        tf.RegisterGradient("Twice")(lambda op, grad: grad * 6.0)
    with pytest.raises(KeyError, match="Twice"):
        tf.NotDifferentiable("Twice")
    assert gradient(op, tf.constant(1.0)) == [5.0]


def test_double_definition_is_a_key_error():
    """Two primitives of one name, or one with the name of the library's own."""
    tf.primitive("DefinedTwice", kernel=numpy_cube)
    with pytest.raises(KeyError, match="DefinedTwice"):
        tf.primitive("DefinedTwice", kernel=numpy_cube)
    with pytest.raises(KeyError, match="exp"):
        tf.primitive("exp", kernel=np.exp)
    assert gradient(tf.exp, tf.constant(0.0)) == [1.0]


def test_missing_rule_is_a_lookup_error():
    """The original's words, when a gradient is asked for and not before."""
    op = tf.primitive("NoRule", kernel=numpy_cube)
    x = tf.constant(2.0)
    assert float(op(x)) == 8.0
    words = r"No gradient defined for operation 'NoRule.*' \(op type: NoRule\)"
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, other = op(x), x * x
    with pytest.raises(LookupError, match=words):
        tape.gradient(y, x)
    assert float(tape.gradient(other, x)) == 4.0
    assert_next_gradient_is_right()


def test_not_differentiable_gives_none():
    """tf.NotDifferentiable: no gradient, no error."""
    op = tf.primitive("StepUp", kernel=np.ceil)
    tf.NotDifferentiable("StepUp")
    x = tf.constant(2.5)
    assert float(op(x)) == 3.0
    assert gradient(op, x) == [None]
    assert gradient(lambda x: op(x) * x, x) == [3.0]
    assert gradient(op, x, unconnected_gradients="zero") == [0.0]


@pytest.mark.parametrize("name", [3, None, b"Bytes"])
def test_names_are_strings(name):
    """A clear error at once."""
    with pytest.raises(TypeError, match="string"):
        tf.RegisterGradient(name)
    with pytest.raises(TypeError, match="string"):
        tf.NotDifferentiable(name)
    with pytest.raises(TypeError, match="string"):
        tf.primitive(name, kernel=numpy_cube)


@pytest.mark.parametrize("kernel", [3, 2.5, "numpy"])
def test_kernels_are_callables(kernel):
    """A clear error at once."""
    with pytest.raises(TypeError, match="callable"):
        tf.primitive(f"Kernel{kernel}", kernel=kernel)


def test_rules_are_callables():
    """A clear error at once."""
    register: Any = tf.RegisterGradient("RuleIsNoFunction")
    with pytest.raises(TypeError, match="RegisterGradient decorates a function"):
        register(3)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_wrong_number_of_gradients(count):
    """Two inputs: the error says which operation, and both numbers."""
    op = tf.primitive(f"Count{count}", kernel=lambda x, y: x * y)
    tf.RegisterGradient(f"Count{count}")(lambda op, grad: (grad,) * count)
    with pytest.raises(ValueError, match=rf"(?s)(?=.*Count{count})(?=.*{count})(?=.*2)"):
        gradient(op, tf.constant(2.0), tf.constant(3.0))
    assert_next_gradient_is_right()


def test_wrong_shape_of_a_gradient():
    """Decision 3 holds for registered rules as well: both shapes and the name."""
    op = tf.primitive("WrongShape", kernel=numpy_cube)
    tf.RegisterGradient("WrongShape")(lambda op, grad: tf.ones([3]))
    words = r"(?s)(?=.*WrongShape)(?=.*\(3,\))(?=.*\(2,\))"
    with pytest.raises(ValueError, match=words):
        gradient(op, tf.constant([1.0, 2.0]))
    assert_next_gradient_is_right()


def test_exception_in_the_kernel_or_the_rule():
    """They propagate, and the next gradient is right."""

    def fail(*args):
        raise OSError("kernel")

    op = tf.primitive("FailingKernel", kernel=fail)
    with pytest.raises(OSError, match="kernel"):
        gradient(op, tf.constant(1.0))
    assert_next_gradient_is_right()
    op = tf.primitive("FailingRule", kernel=numpy_cube)
    tf.RegisterGradient("FailingRule")(fail)
    with pytest.raises(OSError, match="kernel"):
        gradient(op, tf.constant(1.0))
    assert_next_gradient_is_right()


def test_kernel_result_is_not_aliased():
    """5.2: a kernel may keep what it returned, and a Tensor is immutable all the same."""
    kept = np.zeros(2)

    def overwrite(x):
        kept[:] = x * 2
        return kept

    op = tf.primitive("Overwrites", kernel=overwrite)
    first = op(tf.constant([1.0, 2.0], dtype=tf.float64))
    second = op(tf.constant([3.0, 4.0], dtype=tf.float64))
    assert numbers([first, second]) == [[2.0, 4.0], [6.0, 8.0]]


def test_primitive_inside_a_custom_gradient_and_a_graph(cube):
    """It is an operation like any other."""

    @tf.custom_gradient
    def f(x):
        y = cube(x)
        return y, lambda dy: dy * y

    assert derivative(f, 2.0, 1) == 8.0
    assert derivative(f, 2.0, 2) == 12.0
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        assert numbers(tf.gradients(cube(x), x)) == [12.0]


def test_primitive_as_a_decorator_of_its_kernel():
    """Without a kernel, primitive(name) waits for one."""

    @tf.primitive("DecoratedHalf")
    def half(x, parts=2):
        return x / parts

    tf.RegisterGradient("DecoratedHalf")(lambda op, grad: grad / op.get_attr("parts"))
    assert numbers(half(tf.constant(3.0), parts=4)) == 0.75
    assert gradient(lambda x: half(x, parts=4), tf.constant(3.0)) == [0.25]


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, times: (times, *x.shape),
        lambda x, times: ((times, *x.shape), x.dtype),
    ],
)
def test_shape_rule(rule):
    """shape(*avals, **attrs) says the result's shape, or its shape and dtype."""
    name = f"Repeat{rule.__code__.co_firstlineno}"
    repeat = tf.primitive(name, kernel=lambda x, times: np.stack([x] * times), shape=rule)
    tf.RegisterGradient(name)(lambda op, grad: tf.reduce_sum(grad, axis=0))
    x = tf.constant([1.0, 2.0])
    assert numbers(repeat(x, times=2)) == [[1.0, 2.0], [1.0, 2.0]]
    assert gradient(lambda x: repeat(x, times=3), x) == [[3.0, 3.0]]


def test_kernel_that_breaks_its_shape_rule():
    """5.1: a clear error and no wrong shape."""
    op = tf.primitive("BreaksItsShape", kernel=lambda x: x[:1], shape=lambda x: x.shape)
    with pytest.raises(ValueError, match=r"(?s)BreaksItsShape.*\(1,\)"):
        op(tf.constant([1.0, 2.0]))
    assert_next_gradient_is_right()


def test_kernel_that_writes_into_its_operand_is_stopped():
    """A Tensor is immutable, for kernels too."""

    def spoil(x):
        x[...] = 0.0
        return x

    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        tf.primitive("Spoils", kernel=spoil)(x)
    assert numbers(x) == [1.0, 2.0]
    same = tf.primitive("ReturnsItsOperand", kernel=lambda x: x)(x)
    assert same is not x
    assert numbers(same) == [1.0, 2.0]


def test_integers_reach_an_elementwise_kernel_as_floats():
    gauss = tf.primitive("ReviewGauss", lambda x: math.exp(-x * x), elementwise=True)
    np.testing.assert_allclose(gauss([0, 1, 2]).numpy(), np.exp([-0.0, -1.0, -4.0]))


def test_a_cell_that_runs_again():
    for factor in (2.0, 3.0):
        op = tf.primitive("ReviewAgain", lambda x, f=factor: x * f, replace=True)

        @tf.RegisterGradient("ReviewAgain", replace=True)
        def rule(op, dy, f=factor):
            return dy * f

        assert slope(op, tf.constant(1.0)).numpy() == factor
    with pytest.raises(KeyError, match="replace=True"):
        tf.primitive("ReviewAgain", np.sin)


def test_what_primitives_refuse():
    with pytest.raises(TypeError, match="name must be a string"):
        tf.primitive(np.sin)
    with pytest.raises(TypeError, match="leave elementwise=True out"):
        tf.primitive("ReviewUfunc", np.tanh, elementwise=True)
    double = tf.primitive("ReviewDouble", lambda x: 2 * x, elementwise=True)
    with pytest.raises(TypeError, match="ReviewDouble: the elementwise kernel takes 1 inputs"):
        double(1.0, 2.0)
    with pytest.raises(TypeError, match="no attributes"):
        double(1.0, n=3)
    scaled = tf.primitive("ReviewScaled", lambda x, factor: x * factor)
    with pytest.raises(TypeError, match="attribute 'factor' is a tensor"):
        scaled(tf.constant(1.0), factor=tf.constant(2.0))
    empty = tf.primitive("ReviewEmpty", lambda x: ())
    with pytest.raises(ValueError, match="returned no arrays"):
        empty(tf.constant(1.0))
    nothing = tf.primitive("ReviewNothing", lambda x: None)
    with pytest.raises(TypeError, match="the kernel returned None, expected an array"):
        nothing(tf.constant(1.0))
    missing = tf.primitive("ReviewMissing", lambda x: math.nonsense(x), elementwise=True)
    with pytest.raises(TypeError, match=r"ReviewMissing: no kernel .*nonsense"):
        missing(1.0)
    typo = tf.primitive("ReviewTypo", lambda x: x.shape[0], elementwise=True)
    with pytest.raises(TypeError, match=r"ReviewTypo: no kernel .*Unknown attribute 'shape'"):
        typo(1.0)


def test_shape_rules_hold_for_elementwise_kernels_and_several_outputs():
    wrong = tf.primitive("ReviewShape", lambda x: 2 * x, shape=lambda x: (99,), elementwise=True)
    with pytest.raises(ValueError, match="ReviewShape: shape= gives"):
        wrong([1.0, 2.0])
    pair = tf.primitive("ReviewPair", lambda x: (x, x[:1]), shape=lambda x: [x.shape, (1,)])
    assert [part.shape for part in pair([1.0, 2.0])] == [(2,), (1,)]
    assert [aval.shape for aval in pair.primitive.abstract(tf.constant([1.0])._data)] == [
        (1,),
        (1,),
    ]
