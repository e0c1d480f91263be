"""The memory of compiled programs: who shares it, what is kept, and that nobody ever notices."""

import gc
import weakref
from functools import partial

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

import tinygrad_cg as tf
from tests.support import op_cases
from tests.support.graph_cases import (
    apply,
    arrays_for,
    assert_same,
    parameter,
    perceptron,
    random_graph,
)
from tests.support.orders import run_in_threads
from tests.support.peaks import peak_bytes
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._function.codegen import buffers
from tinygrad_cg._function.codegen.buffers import (
    LINE,
    MAX_ARRAY_BYTES,
    MAX_BYTES,
    Scratch,
    Span,
    offsets,
)
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg._function.graph.values import FuncGraph
from tinygrad_cg_kernels.runtime import memory

FLOAT64 = np.dtype(np.float64)
RNG = np.random.default_rng(3)


def sorts(size: int, count: int = 2) -> FuncGraph:
    """Kernels between operations on whole arrays: each needs an array that nobody else sees."""
    x = value = parameter((size,))
    for _ in range(count):
        value = apply("sort", apply("exp", apply("negative", value)), axis=-1, descending=False)
    return FuncGraph([x], [value])


# Places ------------------------------------------------------------------------------------------

spans = st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 300)).map(
    lambda span: Span("v0", (span[2],), FLOAT64, span[0], span[0] + span[1])
)


@settings(deadline=None, database=None)
@drawn(st.lists(spans, max_size=12))
def test_arrays_that_are_used_together_do_not_overlap(arrays):
    starts, size = offsets(arrays)
    for i, (array, start) in enumerate(zip(arrays, starts, strict=True)):
        assert start % LINE == 0
        assert start + array.size <= size
        for other, there in zip(arrays[:i], starts, strict=False):
            if array.first <= other.last and other.first <= array.last:
                assert start + array.size <= there or there + other.size <= start
    assert size <= sum(array.size for array in arrays)


def test_arrays_one_after_the_other_share_memory():
    arrays = [Span(f"v{i}", (100 + i,), FLOAT64, 2 * i, 2 * i + 1) for i in range(9)]
    assert offsets(arrays) == ([0] * 9, arrays[-1].size)


# What is kept ------------------------------------------------------------------------------------


def test_a_program_keeps_one_set_of_its_small_arrays():
    program, x = build(sorts(100)), [RNG.normal(size=100)]
    assert program.scratch.size == 832
    first = program.scratch.take()
    assert all(buffer.ctypes.data % LINE == 0 for buffer in first)
    assert not np.may_share_memory(first[0], program.scratch.take()[0])
    program.scratch.give(first)
    program(x)
    assert program.scratch.take()[0] is first[0]


def test_large_arrays_are_not_kept():
    assert build(sorts(MAX_ARRAY_BYTES // 8)).scratch is not None
    assert build(sorts(MAX_ARRAY_BYTES // 8 + 1)).scratch is None
    many = FuncGraph([x := parameter((MAX_ARRAY_BYTES // 8,))], [])
    powers = [apply("exp", apply("multiply", x, x))]
    for _ in range(MAX_BYTES // MAX_ARRAY_BYTES):
        powers.append(apply("exp", powers[-1]))
    many.outputs = [apply("sort", power, axis=-1, descending=False) for power in powers]
    assert build(many).scratch is None


def test_what_is_kept_is_freed_with_the_program_and_by_clear_cache():
    program, x = build(sorts(100)), [RNG.normal(size=100)]
    program(x)
    memory = weakref.ref((kept := program.scratch.take())[0])
    program.scratch.give(kept)
    del kept
    buffers.clear()
    assert memory() is None
    program(x)
    memory = weakref.ref((kept := program.scratch.take())[0])
    program.scratch.give(kept)
    del kept, program
    gc.collect()
    assert memory() is None


# What is lent ------------------------------------------------------------------------------------


@pytest.fixture
def lent(monkeypatch):
    """Keep the memory of arrays from 800,000 bytes on; what is kept, as it is now."""
    monkeypatch.setattr(memory, "MIN_KEPT_BYTES", 800_000)
    monkeypatch.setattr(memory, "_kept", {})
    return lambda: [piece for pieces in memory._kept.values() for _, piece in pieces]


def test_large_arrays_use_the_memory_of_the_call_before(lent):
    size = 100_000
    graph, x = sorts(size, 4), [RNG.normal(size=size)]
    program = build(graph)
    first = program(x)
    (piece,) = lent()
    assert_same(program, graph, [-x[0]])
    assert any(buffer is piece for buffer in lent())
    assert not any(np.may_share_memory(piece, buffer) for buffer in first)


def test_a_view_of_an_array_keeps_its_memory_from_being_used_again(lent):
    """The transposed matrix is read after another one of its size has been made."""
    x = parameter((400, 300))
    transposed = apply("transpose", apply("exp", x), perm=(1, 0))
    second = apply("sin", apply("sort", apply("cos", x), axis=-1, descending=False))
    graph = FuncGraph([x], [apply("matmul", transposed, second)])
    program = build(graph)
    for _ in range(3):
        assert_same(program, graph, arrays_for(graph, RNG), 100)


# Nobody notices ----------------------------------------------------------------------------------


@pytest.fixture
def dirty(monkeypatch):
    """Have the arrays that are kept full of NaN at the beginning of each call."""
    take = Scratch.take

    def spoiled(self):
        arrays = take(self)
        for array in arrays:
            array.reshape(-1).view(np.uint8)[:] = 255
        return arrays

    monkeypatch.setattr(Scratch, "take", spoiled)


@pytest.mark.usefixtures("dirty")
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_of_the_call_before(seed):
    rng = np.random.default_rng(seed)
    graphs = [
        sorts(50, 4),
        perceptron(4, (5, 6, 3)),
        random_graph(lambda n: int(rng.integers(n)), (4, 5), 12),
    ]
    for graph in graphs:
        program = build(graph)
        for _ in range(3):
            arrays = arrays_for(graph, rng)
            before = program(arrays)
            copies = [array.copy() for array in before]
            with np.errstate(all="ignore"):
                assert_same(program, graph, arrays_for(graph, rng), 100)
            for array, copy in zip(before, copies, strict=True):
                np.testing.assert_array_equal(array, copy)


def test_callers_with_threads_of_their_own():
    @tf.function
    def program(x):
        return tf.sort(tf.exp(tf.sort(tf.exp(-x))))

    inputs = [tf.constant(RNG.normal(size=3000)) for _ in range(4)]
    wanted = [np.sort(np.exp(np.sort(np.exp(-x.numpy())))) for x in inputs]

    def is_right(x, expected):
        return all(np.allclose(program(x), expected, 1e-12) for _ in range(100))

    pairs = zip(inputs, wanted, strict=True)
    assert run_in_threads(*[partial(is_right, *pair) for pair in pairs]) == [True] * 4


def test_a_program_that_calls_itself_and_an_operation_that_keeps_its_operand():
    kept, deeper = [], []

    @tf.primitive("KeepsAndCalls", shape=lambda x: (x.shape, x.dtype), replace=True)
    def keeps(x):
        kept.append(x)
        if len(kept) < 3:
            deeper.append(program(tf.constant(np.full(4, float(len(kept))))))
        return np.array(x)

    @tf.function
    def program(x):
        return tf.sort(keeps(tf.exp(x)) + tf.sort(tf.sin(x)) * 2.0)

    x = np.zeros(4)
    np.testing.assert_allclose(program(tf.constant(x)), np.ones(4))
    for level, result in zip((2.0, 1.0), deeper, strict=True):
        np.testing.assert_allclose(result, np.full(4, np.exp(level) + 2 * np.sin(level)))
    for _ in range(3):
        program(tf.constant(np.full(4, 7.0)))
    for level, operand in zip((0.0, 1.0, 2.0), kept, strict=False):
        np.testing.assert_allclose(operand, np.full(4, np.exp(level)))


def test_after_an_error():
    @tf.primitive("Refuses", shape=lambda x: (x.shape, x.dtype), replace=True)
    def refuses(x):
        if x[0] > 5:
            raise ArithmeticError("too large")
        return np.array(x)

    @tf.function
    def program(x):
        return refuses(tf.sort(tf.exp(x))) + 1.0

    good = tf.constant([0.0, 1.0, -1.0])
    expected = program(good).numpy()
    with pytest.raises(ArithmeticError, match="too large"):
        program(tf.constant([3.0, 4.0, 5.0]))
    np.testing.assert_array_equal(program(good), expected)


def test_residuals_of_a_tape_are_its_own():
    @tf.function
    def program(x):
        return tf.reduce_sum(tf.exp(tf.sort(tf.exp(x))))

    def value_and_tape(value):
        x = tf.constant(value)
        tape = tf.GradientTape()
        with tape:
            tape.watch(x)
            y = program(x)
        return x, y, tape

    values = [RNG.normal(size=30) for _ in range(3)]
    calls = [value_and_tape(value) for value in values]
    for value, (x, y, tape) in zip(values, calls, strict=True):
        wanted = np.exp(np.exp(value)) * np.exp(value)
        np.testing.assert_allclose(tape.gradient(y, x), wanted, 1e-12)


@pytest.mark.parametrize("start", range(4))
def test_a_result_that_is_not_declared_a_view_is_an_array_of_its_own(start):
    names = [name for name in op_cases.names() if not OPS[name].aliases]
    for name in names[start::4]:
        for example in op_cases.examples(name)[:2]:
            operands = [np.asarray(operand) for operand in example.operands]
            results = OPS[name].run(*operands, **example.params)
            for result in results if isinstance(results, (list, tuple)) else [results]:
                assert not any(np.may_share_memory(result, operand) for operand in operands), name


# How much memory ---------------------------------------------------------------------------------


def test_arrays_between_small_and_large_are_freed_after_their_last_use():
    size = 100_000
    program, x = build(sorts(size, 4)), [RNG.normal(size=size)]
    assert program.scratch is None
    assert peak_bytes(lambda: program(x)) < 3.1 * x[0].nbytes


def test_a_value_and_its_gradient_are_one_kernel_without_temporaries():
    """The rule of log1pexp, one pass that reads x and writes the gradient."""

    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    @tf.function
    def value_and_gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(log1pexp(x))
        return y, tape.gradient(y, x)

    for size in (1_000, 1_000_000):
        x = tf.constant(RNG.normal(size=size))
        _call, kernel = value_and_gradient.kernels(x)
        assert kernel.count("def kernel_") == 1 + kernel.count("def kernel_0_far")
        assert kernel.count("for left in range(first, last, 1024):") == 1
        assert peak_bytes(lambda x=x: value_and_gradient(x)) < 8 * size + 20_000


def test_a_model_needs_little_besides_its_gradients():
    """The perceptron of the benchmarks: activations of its batch, the large ones shared."""
    graph = perceptron(128, (784, 256, 10))
    program, arrays = build(graph), arrays_for(graph, RNG)
    outputs = sum(array.nbytes for array in program(arrays))
    activations = 128 * 256 * arrays[0].itemsize
    assert peak_bytes(lambda: program(arrays)) < outputs + 4 * activations
