"""Every code block of the four documents, run as text, with the values the documents show.

The blocks are code samples of the TensorFlow and Keras documentation (Apache License 2.0).
They are kept as they stand in the documents, less the margin that a page puts around code.
Two pages have lost parts of their blocks on the way; RESTORED says what was put back.
"""

import ast
import math

import pytest

import tinygrad_cg as tf
from tests.support.orders import derivative

# tf.custom_gradient of TensorFlow 2.4.
NAIVE = """
def log1pexp(x):
  return tf.math.log(1 + tf.exp(x))
"""
NAIVE_GRADIENT = """
x = tf.constant(100.)
y = log1pexp(x)
dy = tf.gradients(y, x) # Will be NaN when evaluated.
"""
CUSTOM = """
@tf.custom_gradient
def log1pexp(x):
  e = tf.exp(x)
  def grad(dy):
    return dy * (1 - 1 / (1 + e))
  return tf.math.log(1 + e), grad
"""
BAR = """
@tf.custom_gradient
def bar(x, y):
  def grad(upstream):
    dz_dx = y
    dz_dy = x
    return upstream * dz_dx, upstream * dz_dy
  z = x * y
  return z, grad
x = tf.constant(2.0, dtype=tf.float32)
y = tf.constant(3.0, dtype=tf.float32)
with tf.GradientTape(persistent=True) as tape:
  tape.watch(x)
  tape.watch(y)
  z = bar(x, y)
z
<tf.Tensor: shape=(), dtype=float32, numpy=6.0>
tape.gradient(z, x)
<tf.Tensor: shape=(), dtype=float32, numpy=3.0>
tape.gradient(z, y)
<tf.Tensor: shape=(), dtype=float32, numpy=2.0>
"""
NESTED = """
@tf.custom_gradient
def op(x):
  y = op1(x)
  @tf.custom_gradient
  def grad_fn(dy):
    gdy = op2(x, y, dy)
    def grad_grad_fn(ddy):  # Not the 2nd order gradient of op w.r.t. x.
      return op3(x, y, dy, ddy)
    return gdy, grad_grad_fn
  return y, grad_fn
"""
FUSED = """
@tf.custom_gradient
def op_with_fused_backprop(x):
  y, x_grad = fused_op(x)
  def first_order_gradient(dy):
    @tf.custom_gradient
    def first_order_custom(unused_x):
      def second_order_and_transpose(ddy):
        return second_order_for_x(...), gradient_wrt_dy(...)
      return x_grad, second_order_and_transpose
    return dy * first_order_custom(x)
  return y, first_order_gradient
"""

# tf.keras.ops.custom_gradient.
KERAS_AGNOSTIC = """
@ops.custom_gradient
def log1pexp(x):
    e = ops.exp(x)

    def grad(*args, upstream=None):
        if upstream is None:
            (upstream,) = args
        return ops.multiply(upstream, 1.0 - 1.0 / ops.add(1, e))

    return ops.log(1 + e), grad
"""
KERAS_UPSTREAM = """
@ops.custom_gradient
def log1pexp(x):
    e = ops.exp(x)
    def grad(upstream):
        return ops.multiply(upstream, 1.0 - 1.0 / ops.add(1, e))
    return ops.log(1 + e), grad
"""
KERAS_KEYWORD_ONLY = """
@ops.custom_gradient
def log1pexp(x):
    e = ops.exp(x)
    def grad(*args, upstream):
        return ops.multiply(upstream, 1.0 - 1.0 / ops.add(1, e))
    return ops.log(1 + e), grad
"""

# tf.custom_gradient of an earlier release, with damaged blocks.
DAMAGED_NAIVE = """
def log1pexp(x):
return tf.math.log(1 + tf.exp(x))
"""
DAMAGED_CUSTOM = """
def log1pexp(x):
e = tf.exp(x)
return dy * (1 - 1 / (1 + e))
"""

# tf.contrib.eager.custom_gradient, where the custom block has lost its decorator.
CONTRIB_NAIVE = """
def log1pexp(x):
  return tf.log(1 + tf.exp(x))
"""
CONTRIB_UNDECORATED = """
def log1pexp(x):
  e = tf.exp(x)
  def grad(dy):
    return dy * (1 - 1 / (1 + e))
  return tf.log(1 + e), grad
"""

RESTORED = {
    # Lost: the indentation.
    DAMAGED_NAIVE: NAIVE,
    # Lost: the decorator, the indentation, `def grad(dy):` and the last return.
    DAMAGED_CUSTOM: CUSTOM,
    # Lost: the decorator, which that page calls by either of its two names.
    CONTRIB_UNDECORATED: "\n@tf.custom_gradient" + CONTRIB_UNDECORATED,
}
CONTRIB_CUSTOM = RESTORED[CONTRIB_UNDECORATED].replace("@tf.custom", "@tf.contrib.eager.custom")
COMPAT_CUSTOM = CUSTOM.replace("@tf.custom", "@tf.compat.v1.custom")

NAIVE_BLOCKS = {"000": NAIVE, "002 restored": RESTORED[DAMAGED_NAIVE], "003": CONTRIB_NAIVE}
CUSTOM_BLOCKS = {
    "000": CUSTOM,
    "000 compat.v1": COMPAT_CUSTOM,
    "002 restored": RESTORED[DAMAGED_CUSTOM],
    "003 restored": RESTORED[CONTRIB_UNDECORATED],
    "003 restored contrib": CONTRIB_CUSTOM,
}
KERAS_BLOCKS = {
    "001 backend-agnostic": KERAS_AGNOSTIC,
    "001 upstream": KERAS_UPSTREAM,
    "001 keyword-only upstream": KERAS_KEYWORD_ONLY,
}


def by_name(blocks):
    return [pytest.param(block, id=name) for name, block in blocks.items()]


def run(*blocks, **names):
    """The namespace after the blocks, run one after the other."""
    namespace = {"tf": tf, **names}
    for block in blocks:
        exec(block, namespace)
    return namespace


def run_keras(block):
    namespace = run("from tinygrad_cg.keras import ops", block)
    return namespace["log1pexp"]


def run_session(block):
    """Run a block that shows results; give (shown, what it really was) for each."""
    namespace = run()
    shown, pending, results = None, [], []
    for line in block.strip().splitlines():
        if not line.startswith("<tf."):
            pending.append(line)
            continue
        *statements, shown = pending
        exec("\n".join(statements), namespace)
        results.append((line, repr(eval(shown, namespace))))
        pending = []
    assert not pending
    return results


def gradient_at(function, value, order=1):
    """The derivative as tf.gradients gives it, applied `order` times in a graph."""
    with tf.Graph().as_default():
        x = tf.constant(value)
        result = function(x)
        for _ in range(order):
            (result,) = tf.gradients(result, x)
        return float(result)


@pytest.mark.parametrize("naive", by_name(NAIVE_BLOCKS))
def test_naive_gradient_at_100_is_nan(naive):
    with tf.Graph().as_default():
        namespace = run(naive, NAIVE_GRADIENT)
        assert isinstance(namespace["dy"], list)
        assert len(namespace["dy"]) == 1
        assert math.isnan(float(namespace["dy"][0]))
        assert float(namespace["y"]) == math.inf


@pytest.mark.parametrize("custom", by_name(CUSTOM_BLOCKS))
def test_custom_gradient_at_100_is_one(custom):
    with tf.Graph().as_default():
        namespace = run(custom, NAIVE_GRADIENT)
        assert float(namespace["dy"][0]) == 1.0
        assert float(namespace["y"]) == math.inf


@pytest.mark.parametrize("custom", by_name(CUSTOM_BLOCKS))
@pytest.mark.parametrize(
    ("order", "expected"), [(0, 1.3132616), (1, 0.7310586), (2, 0.1966119), (3, -0.0908578)]
)
def test_custom_blocks_at_one_for_each_order(custom, order, expected):
    log1pexp = run(custom)["log1pexp"]
    assert gradient_at(log1pexp, 1.0, order) == pytest.approx(expected, rel=2e-6)


@pytest.mark.parametrize("custom", by_name(CUSTOM_BLOCKS))
def test_custom_blocks_under_a_tape(custom):
    log1pexp = run(custom)["log1pexp"]
    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert float(tape.gradient(y, x)) == 1.0


@pytest.mark.parametrize("damaged", [DAMAGED_NAIVE, DAMAGED_CUSTOM])
def test_damaged_blocks_need_their_restoration(damaged):
    with pytest.raises(IndentationError):
        ast.parse(damaged)
    ast.parse(RESTORED[damaged])


def test_bar_block_shows_the_documents_values():
    results = run_session(BAR)
    assert len(results) == 3
    for shown, actual in results:
        assert actual == shown.replace("<tf.", "<tg.")


@pytest.mark.parametrize("block", by_name(KERAS_BLOCKS))
def test_keras_blocks_give_one_at_100(block):
    log1pexp = run_keras(block)
    x = tf.constant(100.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = log1pexp(x)
    assert float(y) == math.inf
    assert float(tape.gradient(y, x)) == 1.0


@pytest.mark.parametrize("block", by_name(KERAS_BLOCKS))
@pytest.mark.parametrize(
    ("order", "expected"), [(0, 1.3132616), (1, 0.7310586), (2, 0.1966119), (3, -0.0908578)]
)
def test_keras_blocks_at_one_for_each_order(block, order, expected):
    log1pexp = run_keras(block)
    assert gradient_at(log1pexp, 1.0, order) == pytest.approx(expected, rel=2e-6)


@pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")
@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        pytest.param(lambda y: y, [8.0, 12.0, 12.0, 6.0], id="op"),
        pytest.param(lambda y: y * y, [64.0, 192.0, 24000.0], id="op squared"),
    ],
)
def test_nested_block_gives_grad_grad_fn_in_place_of_the_second_order(outer, expected):
    """The block says it: grad_grad_fn is 'not the 2nd order gradient of op w.r.t. x'."""
    op = run(
        NESTED,
        op1=lambda x: x * x * x,
        op2=lambda x, y, dy: 3 * x * x * dy,
        op3=lambda x, y, dy, ddy: 1000 * ddy,
    )["op"]
    for order, value in enumerate(expected):
        assert derivative(lambda x: outer(op(x)), 2.0, order) == pytest.approx(value)


def test_fused_block_as_printed_gives_the_first_order_and_refuses_the_second():
    """`first_order_custom` takes one argument and its rule returns two gradients."""
    op = run(
        FUSED,
        fused_op=lambda x: (x * x * x, 3 * x * x),
        second_order_for_x=lambda _: tf.constant(1.0),
        gradient_wrt_dy=lambda _: tf.constant(1.0),
    )["op_with_fused_backprop"]
    assert derivative(op, 2.0, 0) == 8.0
    assert derivative(op, 2.0, 1) == 12.0
    with pytest.raises(ValueError, match="expected to return 1 gradients, but returned 2"):
        derivative(op, 2.0, 2)
    assert derivative(op, 2.0, 1) == 12.0


def test_fused_block_with_an_additional_argument_controls_the_expected_values():
    """'Additional arguments to the inner function control the expected return values'."""
    block = FUSED.replace("(unused_x)", "(unused_x, dy)").replace("_custom(x)", "_custom(x, dy)")
    block = block.replace("x_grad, second_order_and", "dy * x_grad, second_order_and")
    block = block.replace("dy * first_order_custom", "first_order_custom")
    block = block.replace("_for_x(...)", "_for_x(x, dy, ddy)")
    block = block.replace("_wrt_dy(...)", "_wrt_dy(x_grad, ddy)")
    op = run(
        block,
        fused_op=lambda x: (x * x * x, 3 * x * x),
        second_order_for_x=lambda x, dy, ddy: 6 * x * dy * ddy,
        gradient_wrt_dy=lambda x_grad, ddy: x_grad * ddy,
    )["op_with_fused_backprop"]
    assert [derivative(op, 2.0, order) for order in range(4)] == [8.0, 12.0, 12.0, 6.0]
    assert derivative(lambda x: op(x) * op(x), 2.0, 2) == 480.0
