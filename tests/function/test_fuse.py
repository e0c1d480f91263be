"""Compiled programs compute what the interpreter computes, in few kernels and little memory."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

import tinygrad_cg as tf
from tests.support import op_cases
from tests.support.graph_cases import (
    apply,
    arrays_for,
    assert_same,
    chain,
    constant,
    cross_entropy,
    layer_norm,
    log1pexp,
    number,
    of_call,
    parameter,
    perceptron,
    random_graph,
    rosenbrock,
    total,
)
from tests.support.peaks import peak_bytes
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg._function.graph.values import FuncGraph, operation
from tinygrad_cg_kernels.runtime import threads

RNG = np.random.default_rng(7)


def check(graph: FuncGraph, kernels: int | None = None, scale: float = 1):
    program = build(graph)
    assert_same(program, graph, arrays_for(graph, RNG), scale)
    if kernels is not None:
        assert program.kernels == kernels, "\n".join(program.sources)
    return program


# Every operation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(12))
def test_elementwise_operations(start):
    """Each in one of the two dtypes, and several in a program, since compiling takes its time."""
    names = [name for name in op_cases.names() if op_cases.is_elementwise(OPS[name])]
    inputs, outputs, arrays = [], [], []
    for index, name in enumerate(names[start::12]):
        for example in op_cases.examples(name)[:3]:
            operands = [np.asarray(value) for value in example.cast(("f4", "f8")[index % 2])]
            values = [parameter(operand.shape, operand.dtype) for operand in operands]
            outputs.append(operation(OPS[name], values, example.params))
            inputs += values
            arrays += operands
    graph = FuncGraph(inputs, outputs)
    assert_same(build(graph), graph, arrays)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_other_operations(dtype):
    for name in op_cases.names():
        if op_cases.is_elementwise(OPS[name]) or OPS[name].kind == "reduction":
            continue
        for example in op_cases.examples(name):
            operands = [np.asarray(operand) for operand in example.cast(dtype)]
            graph = of_call(OPS[name], operands, example.params)
            assert_same(build(graph), graph, operands)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "bool"])
def test_reductions(dtype):
    inputs, outputs, arrays = [], [], []
    for name in op_cases.names():
        if OPS[name].kind != "reduction":
            continue
        for example in op_cases.examples(name):
            operands = [np.asarray(operand) for operand in example.cast(dtype)]
            values = [parameter(operand.shape, operand.dtype) for operand in operands]
            try:
                outputs.append(operation(OPS[name], values, example.params))
                OPS[name].run(*operands, **example.params)
            except TypeError:  # an operation that refuses the dtype
                del outputs[-1:]
                continue
            inputs += values
            arrays += operands
    graph = FuncGraph(inputs, outputs)
    assert_same(build(graph), graph, arrays)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "complex128"])
def test_dtypes_that_are_not_fused(dtype):
    x = parameter((3, 4), dtype)
    graph = FuncGraph([x], [total(apply("multiply", apply("exp", x), x), (1,))])
    program = build(graph)
    assert program.kernels == 0
    assert_same(program, graph, arrays_for(graph, RNG), 100)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty(shape):
    x = parameter(shape)
    graph = FuncGraph([x], [total(apply("exp", x)), apply("add", x, number(1)), total(x, (0,))])
    check(graph, 0)


# Workloads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 7, 5000, 100_003])
def test_value_and_gradient_share_a_pass(n, dtype):
    check(log1pexp(n, dtype), kernels=0 if n == 1 else 1)


@pytest.mark.parametrize("n", [3, 1500, 70_000])
def test_chain(n):
    check(chain(n), 1)


def test_far_arguments_of_sines():
    graph = chain(3000)
    x = 1e9 * RNG.normal(size=3000)
    x[:1024] = 1
    assert_same(build(graph), graph, [x], 1e3)


@pytest.mark.parametrize("shape", [(5, 7), (3, 2500), (4096, 50)])
def test_rows(shape):
    check(cross_entropy(*shape), 1)
    check(layer_norm(*shape), 1, 10)


@pytest.mark.parametrize(("shape", "kernels"), [((60, 3), 1), ((500, 3), 2), ((500, 40), 1)])
def test_functions_of_numbers_per_row(shape, kernels):
    """Vectors of an exponential are rows if these are many and short."""
    x = parameter(shape)
    check(FuncGraph([x], [apply("exp", total(apply("square", x), (1,)))]), kernels)


@pytest.mark.parametrize("n", [2, 3, 40, 2100, 70_001])
def test_neighbours(n):
    check(rosenbrock(n))


@pytest.mark.parametrize(
    ("shape", "shared"),
    [((6, 5), True), ((40, 3000), False), ((9000, 20), False), ((9000, 130), True)],
)
def test_products_with_a_matrix_share_a_pass(shape, shared):
    """A Hessian-vector product of logistic regression: one kernel, or three calls of BLAS.

    On one thread, the latter take a third of the time for 5,000 x 20.
    """
    rows, columns = shape
    x, w, v = parameter(shape), parameter((columns,)), parameter((columns, 1))
    p = apply("sigmoid", apply("matvec", x, w))
    slope = apply("reshape", apply("matmul", x, v), shape=(rows,))
    part = apply("multiply", apply("multiply", p, apply("subtract", number(1), p)), slope)
    graph = FuncGraph([x, w, v], [apply("matvec", apply("transpose", x, perm=(1, 0)), part)])
    program = check(graph, 1, 100)
    assert (".dot" not in program.sources[0]) == shared


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_forms_of_products(dtype):
    x, row, column = parameter((4, 3), dtype), parameter((1, 4), dtype), parameter((3, 1), dtype)
    transposed = apply("transpose", x, perm=(1, 0))
    graph = FuncGraph(
        [x, row, column],
        [
            apply("matmul", row, x),
            apply("matmul", x, column),
            apply("matmul", apply("reshape", column, shape=(1, 3)), transposed),
            apply("matmul", transposed, apply("reshape", row, shape=(4, 1))),
            apply("matmul", transposed, x),
        ],
    )
    assert check(graph).kernels
    for size in ((1, 3), (3, 1), (1, 1)):
        y, other = parameter(size, dtype), parameter((size[1],), dtype)
        check(
            FuncGraph(
                [y, other], [apply("matvec", y, other), apply("matvec", y, apply("exp", other))]
            )
        )


def test_parts_of_a_concatenation_are_read_by_other_operations():
    x, y = parameter((4, 3)), parameter((3, 3))
    part = apply("sin", x)
    rows = apply("concatenate", part, apply("cos", x), axis=0)
    columns = apply("concatenate", part, apply("exp", x), axis=1)
    graph = FuncGraph([x, y], [rows, apply("matmul", part, y), columns])
    assert check(graph, 1).sources[0].count("run_") == 1  # the kernel has written the rows


def test_neighbours_without_temporaries():
    program = check(rosenbrock(50), 2)
    assert program.sources[0].count("empty") == 2  # the outputs


def test_operations_between_kernels():
    check(perceptron(6, (5, 4, 3)))


# Shapes and slices -------------------------------------------------------------------------------


def test_outputs_are_arrays_of_their_own():
    x = parameter((4,))
    y = apply("exp", x)
    row = apply("reshape", y, shape=(1, 4))
    check(FuncGraph([x], [x, x, y, y, row, number(3), apply("identity", x)]))


def test_no_inputs():
    check(FuncGraph([], [apply("exp", number(1))]))


_PRODUCTS = [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 0, 4), (4, 5)), ((6, 2, 3, 4), (2, 4, 5))]
_PRODUCTS += [((3, 0), (0, 5)), ((3, 4), (2, 4, 5)), ((70, 80), (80, 90)), ((4, 70, 64), (64, 64))]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shapes", _PRODUCTS)
def test_products_of_arrays_in_any_order(shapes, dtype):
    """Programs write products to their own arrays; operands come in any order in memory."""
    left, right = (RNG.normal(size=shape).astype(dtype) for shape in shapes)
    product = tf.function(lambda x, y: tf.tanh(tf.matmul(x, y)))

    def orders(x):
        padded = np.zeros((*x.shape, 2), dtype)
        padded[..., 0] = x
        return [x, np.swapaxes(np.swapaxes(x, -1, -2).copy(), -1, -2), padded[..., 0], x[::-1]]

    for x in orders(left):
        for y in orders(right):
            expected = np.tanh(np.matmul(x, y))
            tolerance = 8 * (3 + x.shape[-1]) * np.finfo(dtype).eps
            np.testing.assert_allclose(product(x, y).numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize(
    "shapes", [((3, 4), (4,)), ((3, 4), (5, 4)), ((5, 3, 4), (4,)), ((4, 3, 4), (4, 4))]
)
def test_products_with_vectors(shapes):
    x, y = (RNG.normal(size=shape) for shape in shapes)
    product = tf.function(lambda x, y: tf.tanh(tf.linalg.matvec(x, y)))
    expected = np.tanh(np.matmul(x, y[..., None])[..., 0])
    np.testing.assert_allclose(product(x, y).numpy(), expected, 1e-13)


def test_products_of_infinities_warn_of_nothing():
    x = np.array([[np.inf, 1.0], [0.0, 1e300]])
    program = tf.function(lambda x: tf.matmul(x, tf.matmul(x, x)))
    with np.errstate(all="raise"):
        result = program(x).numpy()
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(result, x @ (x @ x))


def test_operations_on_constants_run_once():
    table, x = constant(RNG.normal(size=(40, 50))), parameter((40, 10))
    part = apply("getitem", table, key=(slice(None), slice(5, 15)))
    transposed = apply("transpose", table, perm=(1, 0))
    graph = FuncGraph([x], [apply("add", x, part), part, apply("matmul", transposed, x)])
    program = check(graph)
    assert "run_" not in program.sources[0]
    assert program.sources[0].count(".dot") == 1  # the product
    arrays = arrays_for(graph, RNG)
    assert not np.may_share_memory(program(arrays)[1], program(arrays)[1])


def test_strided_parts():
    x = parameter((30, 40))
    parts = [apply("getitem", x, key=(slice(None), slice(n, n + 20))) for n in (0, 7)]
    transposed = apply("transpose", parts[1], perm=(1, 0))
    check(FuncGraph([x], [apply("multiply", *parts), apply("exp", transposed), parts[0]]))


@pytest.mark.parametrize(
    ("shape", "key"),
    [
        ((6, 96), (slice(None), slice(32, 64))),
        ((6, 96), (slice(None), slice(0, 40))),
        ((3, 4, 80), (slice(None), slice(None), slice(40, None))),
        ((5, 7, 20), (slice(None), slice(2, 5))),
        ((1, 200), (slice(None), slice(-100, None))),
    ],
)
def test_columns_are_read_in_place(shape, key):
    """By elementwise operations, reductions of rows and of columns, and an output."""
    x = parameter(shape)
    sine = apply("sin", x)
    part = apply("getitem", x, key=key)
    other = apply("getitem", sine, key=key)
    product = apply("multiply", part, apply("tanh", other))
    axes = range(len(shape))
    rows, columns = total(product, axes[-1:]), total(apply("square", part), axes[:-1])
    centred = apply("subtract", product, total(product, axes[-1:], keepdims=True))
    program = check(FuncGraph([x], [product, other, rows, columns, centred]))
    assert "getitem" not in program.sources[0]
    check(FuncGraph([x], [part]))


def test_columns_that_large_kernels_read(restore_threads):
    threads.set_num_threads(2)
    x = parameter((4096, 128))
    parts = [apply("getitem", x, key=(slice(None), slice(k, k + 64))) for k in (0, 64)]
    outputs = [apply("multiply", apply("tanh", parts[0]), parts[1])]
    check(FuncGraph([x], [*outputs, total(outputs[0], [1])]), kernels=1)


def test_few_columns_are_copied():
    x = parameter((50, 12))
    part = apply("getitem", x, key=(slice(None), slice(3, 6)))
    check(FuncGraph([x], [apply("sin", part)]))


def test_strided_and_read_only_inputs():
    graph = log1pexp(6)
    program = build(graph)
    for x in (RNG.normal(size=12)[::2], RNG.normal(size=6)[::-1], np.broadcast_to(0.5, (6,))):
        assert_same(program, graph, [x])


def test_misaligned_inputs():
    graph = log1pexp(6)
    data = np.frombuffer(bytearray(6 * 8 + 1), np.float64, 6, 1)
    assert_same(build(graph), graph, [data])


def test_operands_that_repeat_in_the_middle():
    x, y = parameter((2, 3, 4)), parameter((2, 1, 4))
    check(FuncGraph([x, y], [apply("multiply", apply("exp", x), y)]))


def test_rows_and_columns_of_two_kinds():
    x, row, wide = parameter((4, 3, 5)), parameter((4, 1, 1)), parameter((4, 3, 1))
    y = apply("add", apply("multiply", x, row), wide)
    check(FuncGraph([x, row, wide], [y, total(y, (1, 2)), total(y, (2,))]))


def test_scalars_from_totals():
    x = parameter((300,))
    scale = apply("divide", number(1), total(apply("square", x)))
    y = apply("multiply", x, apply("tanh", scale))
    program = check(FuncGraph([x], [y, total(y), apply("getitem", y, key=(3,))]))
    assert program.kernels == 2


def test_special_values():
    x = parameter((6,))
    graph = FuncGraph(
        [x], [apply("log", x), apply("relu", x), apply("divide", number(1), x), total(x)]
    )
    array = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0])
    logarithm, relu, inverse, total_found = build(graph)([array])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(logarithm, np.log(array))
        np.testing.assert_array_equal(inverse, 1 / array)
    np.testing.assert_array_equal(relu, [0, 0, np.inf, 0, np.nan, 1])
    assert np.isnan(total_found)


def test_float32_stays_float32():
    x = parameter((1000,), np.float32)
    program = check(chain(1000, np.float32))
    assert not any("float64" in source for source in program.sources[1:])
    assert build(FuncGraph([x], [total(x)]))([np.ones(1000, np.float32)])[0].dtype == np.float32


def test_long_chains_are_cut():
    x = y = parameter((64,))
    for _ in range(250):
        y = apply("tanh", apply("add", y, number(0.01)))
    program = check(FuncGraph([x], [y]))
    assert 10 <= program.kernels <= 20


def test_long_programs_repeat_themselves():
    """What compiles is no longer for twice as many steps."""
    texts = []
    for steps in (200, 400):
        x, w = parameter((50,)), parameter((50,))
        values = [x]
        for _ in range(steps):
            values.append(apply("tanh", apply("multiply", values[-1], w)))
        back = apply("broadcast_to", number(1), shape=(50,))
        for y in reversed(values[1:]):
            back = apply("multiply", back, apply("subtract", number(1), apply("square", y)))
            back = apply("multiply", back, w)
        program = check(FuncGraph([x, w], [values[-1], back]), None, 10)
        texts.append(sum(len(text) for text in set(program.sources[1:])))
    assert texts[1] < 1.2 * texts[0]


def test_deep_scalar_programs():
    """Of several dtypes; what was computed early is used late, and with a kernel."""
    texts = []
    for steps in (150, 300):
        x, n, row = parameter(()), parameter((), np.float32), parameter((7,))
        values = [x]
        for step in range(steps):
            y = apply("add", apply("multiply", values[-1], number(0.5)), x)
            if step % 3 == 0:
                n = apply("multiply", n, number(0.9, np.float32))
                y = apply("where", apply("greater", n, number(0, np.float32)), y, n)
            values.append(y)
        back = apply("multiply", total(row), values[0])
        for y in reversed(values):
            back = apply("subtract", apply("multiply", back, number(0.7)), y)
        inputs = [values[0], row]
        inputs += [value for value in FuncGraph([], [back]).values() if value.primitive is None]
        inputs = [value for value in dict.fromkeys(inputs) if value.array is None]
        outputs = [back, values[20], apply("multiply", row, values[40])]
        program = check(FuncGraph(inputs, outputs), 1)
        texts.append(len(program.sources[1]))
    assert texts[1] < 2.1 * texts[0]


@pytest.mark.parametrize(
    ("columns", "are_short"), [(8, False), (24, True), (25, False), (32, False)]
)
def test_rows_of_few_vectors_are_marked(columns, are_short):
    """Of float64, 8 to a vector: LLVM's loops take four vectors a round."""
    source = "".join(check(layer_norm(40, columns)).sources[1:])
    assert ("short_rows()" in source) == are_short


# Threads and memory ------------------------------------------------------------------------------


def test_the_same_bits_on_any_number_of_threads(restore_threads):
    before = threads.get_num_threads()
    graphs = [chain(200_000), cross_entropy(3000, 60), layer_norm(9000, 30)]
    for graph in graphs:
        program, arrays = build(graph), arrays_for(graph, RNG)
        results = []
        for count in {1, before}:
            threads.set_num_threads(count)
            results.append(program(arrays))
        for result, other in zip(results[0], results[-1], strict=True):
            np.testing.assert_array_equal(result, other)


def test_no_temporary_of_the_size_of_the_data():
    n = 1_000_000
    program, x = build(log1pexp(n)), [np.zeros(n)]
    assert peak_bytes(lambda: program(x)) < program(x)[1].nbytes * 1.01 + 100_000


# Random graphs -----------------------------------------------------------------------------------


@settings(max_examples=6, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@drawn(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 9), st.integers(3, 20))
def test_random_graphs(seed, rows, columns, steps):
    rng = np.random.default_rng(seed)
    graph = random_graph(lambda n: int(rng.integers(n)), (rows, columns), steps)
    with np.errstate(all="ignore"):
        assert_same(build(graph), graph, arrays_for(graph, rng), 100)


def test_a_derivative_is_stored_in_place_of_what_it_is_computed_from():
    """Between the kernels lies a product: gelu needs its input, ndtr and density without this."""

    @tf.function
    def f(x, w):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.gelu(x) @ w
        return y, tape.gradient(y, x, y)

    x, w = [tf.constant(RNG.normal(size=(300, 300))) for _ in range(2)]
    call = f.get_concrete_function(x, w).kernels[0]
    assert call.count(" = empty(") + call.count(" = large(") == 5, call  # 2 products, 2 results
    y, gradient = f(x, w)
    np.testing.assert_allclose(y, tf.nn.gelu(x).numpy() @ w.numpy())
    with tf.GradientTape() as tape:
        tape.watch(x)
        eager = tf.nn.gelu(x) @ w
    np.testing.assert_allclose(gradient, tape.gradient(eager, x, eager))
