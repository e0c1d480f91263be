"""Fused programs: every operation, document and composite function, with two orders of gradients.

Compiling takes its time, so that each program here holds many of them, and their derivatives.
"""

import inspect

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.function.test_spellings import COMPOSITES
from tests.project import test_documents as documents
from tests.rules import test_nested as nested
from tests.support.compiled import differentiated
from tests.support.composites import FAKE, POINT, TRUE
from tests.support.op_cases import examples, generator, is_elementwise, names
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_kernels.runtime import generated

pytestmark = pytest.mark.filterwarnings("ignore::tinygrad_cg.CustomGradientWarning")


def assert_fused_as_eager(cases, tolerance=1e-10):
    """All of `cases`, names with a function and its tensors, as one fused program."""
    functions = [function for _, function, _ in cases]

    def together(tensors):
        return [function(*some) for function, some in zip(functions, tensors, strict=True)]

    tensors = [some for _, _, some in cases]
    results = tf.function(together, jit_compile=True)(tensors)
    for (name, function, some), result in zip(cases, results, strict=True):
        expected = function(*some)
        tf.nest.assert_same_structure(result, expected)
        pairs = zip(tf.nest.flatten(result), tf.nest.flatten(expected), strict=True)
        for index, (value, other) in enumerate(pairs):
            assert (value is None) == (other is None), name
            if value is not None:
                assert (value.dtype, value.shape) == (other.dtype, other.shape), name
                rtol = tolerance if other.dtype.kind not in "fc" else limit(tolerance, other.dtype)
                message = f"{name}, output {index}"
                np.testing.assert_allclose(value, other, rtol, rtol, err_msg=message)


def limit(tolerance, dtype):
    return max(tolerance, 1e3 * np.finfo(dtype).eps)


# Operations ----------------------------------------------------------------------------------


def of_example(example):
    """An operation, and if it has gradients the first ones, and those of their sines' sum."""
    tensors = [tf.constant(operand) for operand in example.operands]
    if example.primitive.rules is None or not example.real():
        return example.call, tensors
    result = example.run(*example.operands)
    rng = generator(example.primitive)
    weights = tf.constant(np.asarray(rng.normal(size=result.shape)).astype(result.dtype))
    return differentiated(example, weights, lambda y: y * y), tensors


def chosen(name, index):
    """One example of an operation that broadcasts; of a reduction also one by rows or columns."""
    cases = examples(name)
    if is_elementwise(OPS[name]):
        return [cases[0 if len(cases[0].operands) == 1 else 2]]
    if cases[0].params.keys() != {"axis", "keepdims"}:
        return cases[:1]
    axis = index % 2
    return [cases[0], cases[0]._replace(params={"axis": (axis,), "keepdims": bool(axis)})]


def of_operations(names):
    return [
        (f"{name} {example.params}", *of_example(example))
        for index, name in enumerate(names)
        for example in chosen(name, index)
    ]


ELEMENTWISE = [name for name in names() if is_elementwise(OPS[name])]
OTHERS = [name for name in names() if not is_elementwise(OPS[name])]


@pytest.mark.parametrize("start", range(6))
def test_elementwise_operations(start):
    assert_fused_as_eager(of_operations(ELEMENTWISE[start::6]))


@pytest.mark.parametrize("start", range(3))
def test_other_operations(start):
    assert_fused_as_eager(of_operations(OTHERS[start::3]))


# Documents and composite functions ------------------------------------------------------------


def orders(function, count):
    """A function's value and its derivatives by tapes; None from where there is none."""

    def derivatives(x):
        if not count:
            return [function(x)]
        with tf.GradientTape() as tape:
            tape.watch(x)
            derivatives = orders(function, count - 1)(x)
        return [
            *derivatives,
            None if derivatives[-1] is None else tape.gradient(derivatives[-1], x),
        ]

    return derivatives


def of_documents():
    """The documents' functions: of log(1 + exp(x)), and those of nested rules."""
    ordinary = {
        "naive": documents.run(documents.NAIVE)["log1pexp"],
        "custom": documents.run(documents.CUSTOM)["log1pexp"],
    }
    for name, block in documents.KERAS_BLOCKS.items():
        ordinary[name] = documents.run_keras(block)
    ops = {f"example one, {factor}": nested.example_one(factor) for factor in (12.0, 1000.0)}
    ops |= {f"example two, {name}": getattr(nested, name) for name in ("ONE_TRUE", "TWO_TRUE")}
    rules = dict(ops)
    for name, op in ops.items():
        rules[f"{name}, squared"] = lambda x, op=op: op(x) ** 2
        rules[f"{name}, sine"] = lambda x, op=op: tf.sin(op(x))
    return ordinary, rules | {"example two, ONE_FAKE": nested.ONE_FAKE}


def test_documents():
    ordinary, rules = of_documents()
    points = [(ordinary, 1.0), (ordinary, 100.0), (rules, 2.0)]
    cases = [
        (name, orders(function, 3 if value != 2.0 else 2), [tf.constant(value)])
        for functions, value in points
        for name, function in functions.items()
    ]
    assert_fused_as_eager(cases)


def test_documents_with_tapes_outside():
    ordinary, rules = of_documents()
    functions = list((ordinary | rules).values())

    def derivatives(function):
        x, results = tf.constant(1.5), []
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                ys = function(x)
            first = [tape.gradient(y, x) for y in ys]
        for y, slope in zip(ys, first, strict=True):
            second = outer.gradient(slope, x, unconnected_gradients="zero")
            results.append([y.numpy(), slope.numpy(), second.numpy()])
        return results

    def together(x):
        return [function(x) for function in functions]

    compiled = tf.function(together, jit_compile=True)
    expected = derivatives(together)
    for _ in range(2):
        np.testing.assert_allclose(derivatives(compiled), expected, 1e-4)


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
    """The second gradients are in test_spellings: these take long to compile."""
    x = tf.constant(np.random.default_rng(5).normal(size=(4, 3)))

    def derivatives(function):
        return lambda x: (function(x), tf.grad(lambda x: tf.reduce_sum(function(x) ** 2))(x))

    cases = [
        (inspect.getsource(composite).strip(), derivatives(composite), [x])
        for composite in COMPOSITES
    ]
    assert_fused_as_eager(cases[start::2])


# Sizes ----------------------------------------------------------------------------------------


def test_other_sizes_compile_nothing(monkeypatch):
    """The kernels of some sizes serve others, large ones have their own, which threads share."""

    @tf.function(jit_compile=True, input_signature=[tf.TensorSpec([None, None], tf.float64)])
    def f(x):
        y = tf.exp(x) / len(x)
        return tf.reduce_mean(y, 1) + tf.math.reduce_variance(x), y

    def run(shape):
        x = tf.constant(np.random.default_rng(0).normal(size=shape))
        with tf.GradientTape() as tape:
            tape.watch(x)
            results = f(x)
        first = tape.gradient(results, x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            wanted = f.python_function(x)
        for result, other in zip(
            [*results, first], [*wanted, tape.gradient(wanted, x)], strict=True
        ):
            np.testing.assert_allclose(result, other, 1e-12, 1e-12)

    monkeypatch.setattr(generated, "_modules", {})
    run((3, 5))
    texts = set(generated._modules)
    for shape in [(6, 4), (7, 4), (40, 33), (5, 3), (9, 8)]:
        run(shape)
    assert f.cache_size == 6
    assert set(generated._modules) == texts
    f(tf.constant(np.ones((400, 300))))
    texts = set(generated._modules)
    f(tf.constant(np.ones((500, 200))))
    assert set(generated._modules) == texts
