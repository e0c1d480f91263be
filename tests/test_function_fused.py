"""Fused programs: every operation, document and composite function, with two orders of gradients.

Compiling takes its time, so that each program here holds many of them, and their derivatives.
"""

import inspect

import numpy as np
import pytest

import tinygrad_cg as tf
from tests import test_documents as documents
from tests import test_nested as nested
from tests.composites import FAKE, POINT, TRUE
from tests.op_cases import examples, generator, is_elementwise, names
from tests.test_function_spellings import COMPOSITES
from tinygrad_cg.registry import OPS
from tinygrad_cg_kernels import generated

pytestmark = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def assert_fused_as_eager(cases, tolerance=1e-10):
    """All of `cases`, names with a function and its tensors, as one fused program."""
    functions = [function for _, function, _ in cases]

    def together(tensors):
        return [function(*some) for function, some in zip(functions, tensors, strict=True)]

    tensors = [some for _, _, some in cases]
    found = tf.function(together, jit_compile=True)(tensors)
    for (name, function, some), result in zip(cases, found, strict=True):
        expected = function(*some)
        tf.nest.assert_same_structure(result, expected)
        pairs = zip(tf.nest.flatten(result), tf.nest.flatten(expected), strict=True)
        for place, (one, other) in enumerate(pairs):
            assert (one is None) == (other is None), name
            if one is not None:
                assert (one.dtype, one.shape) == (other.dtype, other.shape), name
                rtol = tolerance if other.dtype.kind not in "fc" else limit(tolerance, other.dtype)
                message = f"{name}, output {place}"
                np.testing.assert_allclose(one, other, rtol, rtol, err_msg=message)


def limit(tolerance, dtype):
    return max(tolerance, 1e3 * np.finfo(dtype).eps)


# Operations ----------------------------------------------------------------------------------


def of_example(example):
    """An operation, and if it has gradients the first ones, and those of their sines' sum."""
    tensors = [tf.constant(operand) for operand in example.operands]
    if example.primitive.recipes is None or not example.real():
        return example.call, tensors
    result = example.run(*example.operands)
    rng = generator(example.primitive)
    weights = tf.constant(np.asarray(rng.normal(size=result.shape)).astype(result.dtype))

    def derivatives(*tensors):
        sources = [tensors[i] for i in example.real()]
        with tf.GradientTape() as outer:
            outer.watch(sources)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                y = example.call(*tensors)
            first = tape.gradient(y, sources, output_gradients=weights)
            parts = [tf.reduce_sum(one * one) for one in first if one is not None]
        return y, first, outer.gradient(parts, sources) if parts else None

    return derivatives, tensors


def of_operations(names):
    return [
        (f"{name} {i}", *of_example(example))
        for name in names
        for i, example in enumerate(examples(name))
        if i in _places(name, len(example.operands))
    ]


def _places(name, count):
    """Which of an operation's examples go into the programs."""
    if is_elementwise(OPS[name]):
        return (0,) if count == 1 else (2,)
    return range(99) if OPS[name].kind == "reduction" else range(2)


ELEMENTWISE = [name for name in names() if is_elementwise(OPS[name])]
OTHERS = [name for name in names() if not is_elementwise(OPS[name])]


@pytest.mark.parametrize("start", range(6))
def test_elementwise_operations(start):
    assert_fused_as_eager(of_operations(ELEMENTWISE[start::6]))


@pytest.mark.parametrize("start", range(4))
def test_other_operations(start):
    assert_fused_as_eager(of_operations(OTHERS[start::4]))


# Documents and composite functions ------------------------------------------------------------


def orders(function, count):
    """A function's value and its derivatives by tapes; None from where there is none."""

    def derivatives(x):
        if not count:
            return [function(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = orders(function, count - 1)(x)
        return [*found, None if found[-1] is None else tape.gradient(found[-1], x)]

    return derivatives


def test_documents():
    functions = {
        "naive": documents.run(documents.NAIVE)["log1pexp"],
        "custom": documents.run(documents.CUSTOM)["log1pexp"],
    }
    for block in documents.KERAS_BLOCKS.values():
        functions[f"Keras {len(functions)}"] = documents.run_keras(block)
    cases = [
        (name, orders(function, 3), [tf.constant(value)])
        for name, function in functions.items()
        for value in (1.0, 100.0)
    ]
    for factor in (12.0, 1000.0):
        op = nested.example_one(factor)
        for name, outer in {"op": lambda y: y, "op**2": lambda y: y**2, "sin": tf.sin}.items():
            function = lambda x, op=op, outer=outer: outer(op(x))  # noqa: E731
            cases.append((f"example one, {name}", orders(function, 3), [tf.constant(2.0)]))
    for name in ("ONE_TRUE", "ONE_FAKE", "TWO_TRUE"):
        op = getattr(nested, name)
        cases.append((f"example two, {name}", orders(op, 3), [tf.constant(2.0)]))
        square = lambda x, op=op: op(x) ** 2  # noqa: E731
        cases.append((f"example two, {name}, squared", orders(square, 2), [tf.constant(2.0)]))
    assert_fused_as_eager(cases)


@pytest.mark.parametrize("start", range(3))
def test_composite_functions(start):
    """The gradient, and that of its product with numbers."""
    x, way = tf.constant(POINT), tf.constant([0.3, -1.2, 0.8], dtype="float64")

    def derivatives(function):
        return lambda x: (tf.value_and_grad(function)(x), tf.hvp(function)(x, way))

    cases = [(name, derivatives(function), [x]) for name, function in (TRUE | FAKE).items()]
    assert_fused_as_eager(cases[start::3])


@pytest.mark.parametrize("start", range(2))
def test_composite_functions_of_matrices(start):
    x = tf.constant(np.random.default_rng(5).normal(size=(4, 3)))

    def derivatives(function):
        def run(x):
            total = lambda x: tf.reduce_sum(tf.sin(function(x)))  # noqa: E731
            return function(x), tf.grad(total)(x), tf.grad(lambda x: total(tf.grad(total)(x)))(x)

        return run

    cases = [(inspect.getsource(one).strip(), derivatives(one), [x]) for one in COMPOSITES]
    assert_fused_as_eager(cases[start::2])


# Sizes ----------------------------------------------------------------------------------------


def test_other_sizes_compile_nothing(monkeypatch):
    """The kernels of one size serve all others, but sizes of 1 and those that threads share."""

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def f(x):
        y = tf.exp(x - tf.reduce_max(x, 1, keepdims=True))
        return tf.reduce_sum(y, 1) + tf.reduce_mean(tf.tanh(x)), y

    def run(shape):
        x = tf.constant(np.random.default_rng(0).normal(size=shape))
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = f(x)
        first = tape.gradient(found, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            wanted = f.python_function(x)
        for one, other in zip([*found, first], [*wanted, tape.gradient(wanted, x)], strict=True):
            np.testing.assert_allclose(one, other, 1e-12, 1e-12)

    run((3, 5))
    made = []
    for name in ("function", "block"):
        make = getattr(generated, name)
        monkeypatch.setattr(
            generated, name, lambda *args, make=make: made.append(args) or make(*args)
        )
    for shape in [(4, 6), (7, 2), (40, 33), (5, 3), (6, 6)]:
        run(shape)
    assert f.cache_size == 6
    assert made == []
    run((400, 300))
    count = len(made)
    run((500, 200))
    assert len(made) == count > 0
