"""The texts of errors of tapes and tensors, word for word (docs/behaviour.md, decision 12).

Each id names its section. After each error the next gradient is right.
"""

import math
import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right

pytestmark = pytest.mark.quick


def on_a_tape(use):
    """A program with an unused tape of its own."""
    return lambda: use(tf.GradientTape())


def inside(use):
    """A program inside the context of its tape."""

    def program():
        with tf.GradientTape() as tape:
            use(tape)

    return program


def enter(tape):
    with tape:
        raise AssertionError("the tape was entered")


def stop_after_exit(tape):
    with tape:
        pass
    with tape.stop_recording():
        raise AssertionError("recording was stopped")


def stop(tape):
    with tape.stop_recording():
        raise AssertionError("recording was stopped")


def twice(tape):
    x = tf.constant(2.0)
    with tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


def asked(targets, sources, **options):
    """gradient(targets(x, y), sources(x, y)) for y = x*x at [1, 2]."""

    def program():
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        tape.gradient(targets(x, y), sources(x, y), **options)

    return program


def y(x, y):
    return y


def x(x, y):
    return x


NOT_A_TENSOR = "not tf.Tensor or tf.Variable or ExtensionType"


NO_DTYPE = "Cannot convert the argument `type_value`: None to a TensorFlow DType."


TAPES = [
    (
        "2.1 twice",
        RuntimeError,
        "A non-persistent GradientTape can only be used to compute one "
        "set of gradients (or jacobians)",
        on_a_tape(twice),
    ),
    (
        "2.1 never entered",
        RuntimeError,
        "A non-persistent GradientTape can only be used to "
        "compute one set of gradients (or jacobians)",
        on_a_tape(lambda tape: tape.gradient(tf.constant(1.0), tf.constant(1.0))),
    ),
    (
        "2.1 re-enter",
        ValueError,
        "Tape is still recording, This can happen if you try to re-enter an already-active tape.",
        inside(enter),
    ),
    (
        "2.1 watch 1.0",
        ValueError,
        f"Passed in object 1.0 of type 'float', {NOT_A_TENSOR}",
        inside(lambda tape: tape.watch(1.0)),
    ),
    (
        "2.1 watch array",
        ValueError,
        f"of type 'ndarray', {NOT_A_TENSOR}",
        inside(lambda tape: tape.watch(np.ones(2))),
    ),
    (
        "4.2 watch array",
        TypeError,
        "watch needs a tensor, got array([1., 1.]): write x = tf.constant(...)",
        inside(lambda tape: tape.watch(np.ones(2))),
    ),
    (
        "2.1 target None",
        TypeError,
        "Argument `target` should be a list or nested structure of "
        "Tensors, Variables or CompositeTensors to be differentiated, but received None.",
        asked(lambda x, y: None, x),
    ),
    ("2.1 None among targets", TypeError, NO_DTYPE, asked(lambda x, y: [y, None], x)),
    ("2.1 sources None", TypeError, NO_DTYPE, asked(y, lambda x, y: None)),
    ("2.1 None among sources", TypeError, NO_DTYPE, asked(y, lambda x, y: [x, None])),
    ("2.1 None in a dict", TypeError, NO_DTYPE, asked(y, lambda x, y: {"a": None, "b": x})),
    (
        "2.1 unconnected",
        ValueError,
        "Unknown value for unconnected_gradients: 'nope'",
        asked(y, x, unconnected_gradients="nope"),
    ),
    (
        "2.1 unconnected None",
        ValueError,
        "Unknown value for unconnected_gradients: None",
        asked(y, x, unconnected_gradients=None),
    ),
    (
        "2.1 stop before",
        RuntimeError,
        "Trying to stop recording a tape which is not recording.",
        on_a_tape(stop),
    ),
    ("2.1 stop after", ValueError, "Tape is not recording.", on_a_tape(stop_after_exit)),
    (
        "2.1 reset outside",
        ValueError,
        "Tape is not recording.",
        on_a_tape(lambda tape: tape.reset()),
    ),
    (
        "2.1 None upstream",
        ValueError,
        "Attempt to convert a value (None)",
        asked(y, x, output_gradients=[None]),
    ),
    (
        "4.2 cotangent",
        ValueError,
        "output_gradients[0] has shape (3,), target has shape (2,)",
        asked(y, x, output_gradients=tf.ones(3)),
    ),
    (
        "2.1 cotangent",
        tf.errors.InvalidArgumentError,
        "output_gradients[0] has shape (3,)",
        asked(y, x, output_gradients=tf.ones(3)),
    ),
    (
        "4.2 too few",
        ValueError,
        "2 targets, 1 output gradient",
        asked(lambda x, y: [y, y], x, output_gradients=[tf.ones(2)]),
    ),
    (
        "4.2 float target",
        TypeError,
        "the `target` of gradient() is float, not a Tensor; compute it with tensors (a tape does "
        "not record float()",
        asked(lambda x, y: 4.0, x),
    ),
    (
        "4.2 array source",
        TypeError,
        "source must be a Tensor or Variable, got numpy.ndarray",
        asked(y, lambda x, y: np.ones(2)),
    ),
    (
        "2.2 eager",
        RuntimeError,
        "tf.gradients is not supported when eager execution is enabled. "
        "Use tf.GradientTape instead",
        lambda: tf.gradients(tf.constant(1.0), tf.constant(1.0)),
    ),
]


def vector():
    return tf.constant([1.0, 2.0])


def assign(initial, value):
    return lambda: tf.Variable(initial, name="w").assign(value)


TENSORS = [
    (
        "2.4 None",
        ValueError,
        "Attempt to convert a value (None) with an unsupported type",
        lambda: tf.constant(None),
    ),
    (
        "2.4 None to Python",
        TypeError,
        "Attempt to convert a value (None)",
        lambda: tf.constant(None),
    ),
    (
        "1.3 object",
        ValueError,
        "Attempt to convert a value (<built-in function print>)",
        lambda: tf.constant(print),
    ),
    (
        "2.4 float as int",
        TypeError,
        "Cannot convert 1.5 to EagerTensor of dtype int32",
        lambda: tf.constant(1.5, dtype=tf.int32),
    ),
    ("2.4 cast to None", TypeError, "None", lambda: tf.cast(vector(), None)),
    (
        "2.4 iterate",
        TypeError,
        "Cannot iterate over a scalar tensor.",
        lambda: list(tf.constant(1.0)),
    ),
    ("2.4 hash", TypeError, "use tensor.ref()", lambda: hash(vector())),
    ("2.4 hash of a Variable", TypeError, ".ref()", lambda: hash(tf.Variable(1.0))),
    (
        "2.4 assign",
        ValueError,
        "Cannot assign value to variable 'w:0': Shape mismatch",
        assign([1.0, 2.0], [1.0]),
    ),
    (
        "4.3 assign shapes",
        ValueError,
        "shape (2,), and the assigned value shape (3,)",
        assign([1.0, 2.0], [1.0, 2.0, 3.0]),
    ),
    ("4.4 None operand", TypeError, "unsupported operand", lambda: vector() + None),
    ("4.4 None on the left", TypeError, "unsupported operand", lambda: None * vector()),
    ("4.4 names both", TypeError, "NoneType", lambda: vector() - None),
    (
        "4.4 object",
        TypeError,
        "dtype=object; call .astype(float)",
        lambda: tf.constant(np.array([1.0, 2.0], object)),
    ),
    ("4.4 string", TypeError, "it holds strings", lambda: tf.constant(np.array(["a"]))),
    (
        "4.4 structured",
        TypeError,
        "structured dtype; pass its fields separately",
        lambda: tf.constant(np.zeros(1, [("a", "f4")])),
    ),
    (
        "4.4 longdouble",
        TypeError,
        "longdouble is not supported",
        lambda: tf.constant(np.ones(1, np.longdouble)),
    ),
    ("4.4 datetime64", TypeError, "datetime64", lambda: tf.constant(np.array(["2020"], "M8[D]"))),
    ("4.4 ragged", ValueError, "inhomogeneous shape", lambda: tf.constant([[1], [1, 2]])),
    (
        "4.5 max",
        ValueError,
        "max of an empty axis has no identity",
        lambda: tf.reduce_max(tf.zeros([0])),
    ),
    ("4.5 index", IndexError, "out of bounds", lambda: vector()[5]),
    ("4.5 float index", IndexError, "got float", lambda: vector()[1.0]),
    ("4.5 mask", IndexError, "boolean index", lambda: vector()[[True, False, True]]),
    (
        "4.5 broadcast",
        ValueError,
        "add: shapes (2,) and (3,) do not broadcast",
        lambda: vector() + tf.ones(3),
    ),
    (
        "4.5 reshape",
        ValueError,
        "shape (3,) to a tensor of shape (2,): 2 elements are not 3",
        lambda: tf.reshape(vector(), (3,)),
    ),
    ("4.5 two -1", ValueError, "-1", lambda: tf.reshape(vector(), (-1, -1))),
    ("4.5 item", TypeError, "where()", lambda: vector().__setitem__(0, 5.0)),
    (
        "4.6 int power",
        ValueError,
        "integers to negative integer powers",
        lambda: tf.constant(2) ** -1,
    ),
]


@pytest.mark.parametrize(
    ("error", "words", "program"), [pytest.param(*case[1:], id=case[0]) for case in TAPES + TENSORS]
)
def test_quoted_words(error, words, program):
    """The section is in the id; the class is one that users of both libraries catch."""
    with pytest.raises(error, match=re.escape(words)):
        program()
    assert_next_gradient_is_right()


def watch_an_integer():
    with tf.GradientTape() as tape:
        tape.watch(tf.constant(1))


def gradient_of_an_expired_target():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(x * x, x) is None


def gradient_inside():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        assert tape.gradient(x**3, x).numpy() == 12.0


@pytest.mark.parametrize(
    ("words", "program"),
    [
        pytest.param(
            "The dtype of the watched tensor must be floating (e.g. tf.float32), got tf.int32",
            watch_an_integer,
            id="1.5 and 4.2 watch(int tensor)",
        ),
        pytest.param(
            "target was computed after the tape closed",
            gradient_of_an_expired_target,
            id="4.2 ops after the tape closed",
        ),
        pytest.param("significantly less efficient", gradient_inside, id="2.1 inside ctx"),
    ],
)
def test_quoted_warnings(words, program):
    """The section is in the id."""
    with pytest.warns(tf.errors.TapeWarning, match=re.escape(words)):
        program()
    assert_next_gradient_is_right()


SQUARE = np.zeros((2, 2))


def tape_of_square(source):
    with tf.GradientTape() as tape:
        y = tf.square(tf.Variable(2.0))
    return tape.gradient(y, source)


NAMED = {  # by the function that is called, though another one raises the error
    "concat: shapes": lambda: tf.concat([np.ones((2, 3)), np.ones((3, 2))], 0),
    "reduce_sum: axis 5": lambda: tf.reduce_sum(SQUARE, 5),
    "reduce_max: max of an empty axis has no identity": lambda: tf.reduce_max(np.zeros(0)),
    "inv: Singular matrix": lambda: tf.linalg.inv(SQUARE),
    "stft: frame_length must be an integer, got str 'a'": lambda: tf.signal.stft(SQUARE, "a", 2),
    "conv2d: images must have shape": lambda: tf.nn.conv2d(SQUARE, SQUARE, 1, "SAME"),
    "max_pool2d: images must have shape": lambda: tf.nn.max_pool2d(SQUARE, 2, 2, "SAME"),
    "fill: sizes in shape": lambda: tf.fill([-3], 1.0),
    "stateless_normal: seed must": lambda: tf.random.stateless_normal([2], 3),
    "softmax_cross_entropy_with_logits: shapes": lambda: tf.nn.softmax_cross_entropy_with_logits(
        labels=np.ones(4), logits=np.ones((2, 3))
    ),
    "cast: Attempt to convert a value ('a')": lambda: tf.cast("a", tf.float32),
    "sin: Attempt to convert a value ('a')": lambda: tf.sin("a"),
    "Adam: learning_rate must be a number or a schedule, got str 'a'": lambda: tf.optimizers.Adam(
        "a"
    ),
    "SGD: learning_rate must be a number or a schedule, got NoneType None": lambda: (
        tf.optimizers.SGD(None)
    ),
    "Adam: learning_rate must be a number or a schedule, got a list: pass Variables to ": lambda: (
        tf.optimizers.Adam([tf.Variable(1.0)], 0.1)
    ),
    "Lion: learning_rate must be a number or a schedule, got Variable": lambda: tf.optimizers.Lion(
        tf.Variable([1.0, 2.0])
    ),
    "Adam() got an unexpected keyword argument 'betas': Adam takes ": lambda: tf.optimizers.Adam(
        0.1, betas=(0.9, 0.99)
    ),
    "zeros: 3 is not a supported dtype: pass sizes as one list": lambda: tf.zeros(2, 3),
    "constant: Cannot convert 1.5 to EagerTensor": lambda: tf.constant(1.5, tf.int32),
    "inv: Singular": lambda: tf.map_fn(tf.linalg.inv, np.zeros((1, 2, 2))),
    "source must be a Tensor or Variable, got str 'a': pass a tensor that the target u": lambda: (
        tape_of_square("a")
    ),
    "matmul: shapes (2, 3) and (2, 3) do not fit: axis -1 of the first (3) and axis -2 of the "
    "second (2) must be equal; they fit if the first is transposed; they "
    "fit if the second is transposed": lambda: tf.matmul(np.ones((2, 3)), np.ones((2, 3))),
    "matmul: shapes (3, 2) and (4, 2) do not fit: axis -1 of the first (2) and axis -2 of the "
    "second (4) must be equal; they fit if the second is transposed": lambda: tf.matmul(
        np.ones((3, 2)), np.ones((4, 2))
    ),
    "matmul: shapes (3, 4) and (3, 2) do not fit: axis -1 of the first (4) and axis -2 of the "
    "second (3) must be equal; they fit if the first is transposed": lambda: (
        tf.ones((3, 4)) @ tf.ones((3, 2))
    ),
    "matmul: shapes (3, 4) and (4, 2) (transposed) do not fit: axis -1 of the first (4) and axis "
    "-2 of the second (2) must be equal; they fit if the second is not transposed": lambda: (
        tf.matmul(np.ones((3, 4)), np.ones((4, 2)), transpose_b=True)
    ),
    "tensordot: axes (1,) of shape (2, 3) and axes (0,) of shape (2, 3) must": lambda: tf.tensordot(
        np.ones((2, 3)), np.ones((2, 3)), 1
    ),
    "solve: for a matrix of shape (2, 2), the right-hand side must have shape (2,) or (..., 2, k), "
    "got (3,)": lambda: tf.linalg.solve(SQUARE, np.ones(3)),
    "solve: for a matrix of shape (2, 2), the right-hand side must have shape (2,) or (..., 2, k), "
    "got ()": lambda: tf.linalg.solve(SQUARE, 1.0),
    "TensorSpec: shape must be a list of sizes or None, got 'a'": lambda: tf.TensorSpec("a"),
    "SGD: only one of": lambda: tf.optimizers.SGD(0.1, clipnorm=1.0, clipvalue=1.0),
    "apply_gradients: each entry must be a pair, (gradient, variable), but entry 0 is Tensor. ": (
        lambda: tf.optimizers.SGD(0.1).apply_gradients((tf.constant(1.0), tf.Variable(1.0)))
    ),
    "apply_gradients: each entry must be a pair, (gradient, variable), but entry 0 is (Variable, "
    "Tensor). The second part must be a tf.Variable": (
        lambda: tf.optimizers.SGD(0.1).apply_gradients([(tf.Variable(1.0), tf.constant(1.0))])
    ),
    "matvec: shapes (3, 2) and (3,) do not fit: axis -1 of the first (2) and axis -1 of the second "
    "(3) must be equal": lambda: tf.linalg.matvec(np.ones((3, 2)), np.ones(3)),
    "matvec: shapes (4, 2, 3) and (4, 2) do not fit: axis -1 of the first (3) and axis -1 of the "
    "second (2)": lambda: tf.linalg.matvec(np.ones((4, 2, 3)), np.ones((4, 2))),
    "matvec: shapes (3,) and (3,) do not fit: the first must be a matrix": lambda: tf.linalg.matvec(
        np.ones(3), np.ones(3)
    ),
    "inv: Singular matrix: use tf.linalg.pinv": lambda: tf.linalg.inv(SQUARE),
    "grad: argnums contains 2, but <lambda> was called with 2 positional arguments: argnums counts "
    "from 0": lambda: tf.grad(lambda x, y: x * y, argnums=2)(1.0, 2.0),
    "value_and_grad: with has_aux=True <lambda> must return a pair (output, aux), got 3 values": (
        lambda: tf.value_and_grad(lambda x: (x, x, x), has_aux=True)(1.0)
    ),
    "vmap: in_axes must be axes, got a tensor: write vmap(f)(x)": lambda: tf.vmap(
        lambda x: x, tf.ones(2)
    ),
    "differentiable: expected a Python function, got sum, which": lambda: tf.differentiable(np.sum),
    "<lambda>: `graph`, `kernels`, `numba` and `cfunc` need fixed sizes, but the "
    "shapes are (None,)": (
        lambda: tf.function(lambda x: x * x).numba(tf.TensorSpec((None,), tf.float64))
    ),
    "program: float16 is not supported in Numba code: pass float32": lambda: tf.function(
        lambda x: x * x
    ).numba(tf.TensorSpec((3,), tf.float16)),
    "cond: a traced tensor chooses the branch, so all branches must return tensors of the same "
    "shape and dtype, but result 0 is float32 of shape (2,) in `false_fn`, float32 of shape ()": (
        lambda: tf.function(lambda x: tf.cond(x > 0, lambda: x, lambda: tf.stack([x, x])))(1.0)
    ),
    "sparse_softmax_cross_entropy_with_logits: labels must be integers, got float32; for "
    "distributions use tf.nn.softmax_cross": lambda: tf.nn.sparse_softmax_cross_entropy_with_logits(
        [0.0, 1.0], SQUARE
    ),
    "CheckpointManager: checkpoint must be a Checkpoint, got int": lambda: (
        tf.train.CheckpointManager(3, "folder", 1)
    ),
    "autograd: a function is expected, got int": lambda: tf.autograd.grad(3),
    "solve: needs square matrices in the last two axes, got shape () inside vmap": lambda: tf.vmap(
        lambda x: tf.linalg.solve(x, SQUARE)
    )(tf.ones(3)),
    "scan: `elems` must be tensors of at least one dimension, got shape (). They come before the "
    "initial state: scan(fn, elems, initializer)": lambda: tf.scan(tf.add, 0.0, SQUARE),
    "map_fn: `elems` must be tensors of at least one dimension, got shape ()": lambda: tf.map_fn(
        tf.sin, 1.0
    ),
    f"dtype: {np.dtype(np.clongdouble)} is not supported; call .astype(np.complex128)": lambda: (
        tf.zeros(2, np.clongdouble)
    ),
    "`sin`: the derivative of order 1 was requested, but none is declared. Write "
    "custom_derivatives(sin, derivative), where": lambda: tf.grad(tf.custom_derivatives(tf.sin))(
        1.0
    ),
    "Using a traced tensor as a Python value is not allowed: <tg.Tensor: shape=(), ": (
        lambda: tf.function(lambda x: tf.constant(float(x * x)))(tf.constant(1.0))
    ),
    "while_loop: body must return a new value for each of loop_vars: expected the structure [*], "
    "where * is a tensor or a number, but body returned [*, *]": lambda: tf.while_loop(
        lambda i: i < 3, lambda i: (i + 1, i), [tf.constant(0)]
    ),
    "the integer 300 does not fit into uint8: choose": lambda: tf.constant(300, tf.uint8),
    "uniform: maxval is missing": lambda: tf.random.uniform([2], dtype=tf.int32),
    "jacobian_sparsity: argnums contains 0, but <lambda> was called with 0 positional arguments: "
    "argnums": lambda: tf.jacobian_sparsity(lambda x: x),
    "module 'tinygrad_cg.nn' has no attribute 'softmaxx': did you mean tf.": lambda: tf.nn.softmaxx,
    "module 'tinygrad_cg' has no attribute 'eq': use tf.equal": lambda: tf.eq,
    "module 'tinygrad_cg.autograd.numpy' has no attribute 'foo'": lambda: tf.autograd.numpy.foo,
    "check_gradients: the argument `f` must be a function, got ndarray: pass the function itself": (
        lambda: tf.check_gradients(SQUARE, 1.0)
    ),
    "transpose: perm must have each of the 2 axes once, such as perm=[1, 0], got 0 (to swap": (
        lambda: tf.transpose(SQUARE, 0, 1)
    ),
    "reshape: cannot give shape (2,) to a tensor of shape (6,): 6 elements are not 2 (several "
    "sizes go into one tuple": lambda: tf.reshape(tf.ones(6), 2, 3),
    "conv2d: the images have 3 channels, but the filters take 4": lambda: tf.nn.conv2d(
        tf.ones((1, 5, 5, 3)), tf.ones((2, 2, 4, 6)), 1, "SAME"
    ),
    "conv2d: images with 4 channels and filters for 2 make 2 groups: the number of outputs must be "
    "a multiple of 2, got 3": lambda: tf.nn.conv2d(
        tf.ones((1, 5, 5, 4)), tf.ones((2, 2, 2, 3)), 1, "SAME"
    ),
    "boolean_mask: mask must be boolean, got int32": lambda: tf.boolean_mask([1.0, 2.0], [1, 0]),
    "matmul: shapes (2,) and (3,) inside vmap do not fit": lambda: tf.vmap(tf.matmul)(
        tf.ones((3, 2)), tf.ones((3, 3))
    ),
    "inside vmap or another transformation, tensors have no values yet: use tensor operations": (
        lambda: tf.vmap(float)(tf.ones(2))
    ),
    "the custom gradient `identity` has no attribute 'defvjp': return the rule": lambda: (
        tf.custom_gradient(identity).defvjp
    ),
    "custom_derivatives: vjp of order 1 must take (dy, *args), where": lambda: (
        tf.custom_derivatives(tf.sin, vjp=lambda dy: dy)
    ),
    "custom_derivatives: jvp of order 2 must take (tangent, tangent, *args), where": lambda: (
        tf.custom_derivatives(tf.sin, jvp=[lambda t, x: t, lambda t, x: t])
    ),
    "differentiable: expected a Python function, got WithCall, which is an object of a class": (
        lambda: tf.differentiable(WithCall())
    ),
    "Checkpoint.write: cannot write /dev/null/c.npz": lambda: tf.train.Checkpoint().write(
        "/dev/null/c"
    ),
}


def identity(x):
    return x, lambda dy: dy


class WithCall:
    def __call__(self, x):
        return x


def test_functions_of_math_are_replaced_by_ours():
    with pytest.raises(TypeError, match=r"Use tf\.math\.sin instead of math\.sin\."):
        tf.function(lambda x: math.sin(x))(tf.constant(1.0))


def test_data_has_no_namespace_of_experiments():
    with pytest.raises(AttributeError, match=r"has no attribute 'experimental': use tf\.data; "):
        _ = tf.data.experimental


@pytest.mark.parametrize("words", NAMED)
def test_errors_name_the_function_that_was_called(words):
    with pytest.raises(Exception, match=rf"^(\[Errno \d+\] )?{re.escape(words)}"):
        NAMED[words]()


def test_an_error_of_the_users_function_keeps_its_words():
    def f(x):
        raise tf.errors.InvalidArgumentError("f: x must be small")

    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^f: x must be small$"):
        tf.map_fn(f, tf.ones(2))
