"""Literals are parameters: programs that differ in constants alone share machine code."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.graph_cases import apply, arrays_for, assert_same, number, parameter, total
from tests.support.python import run_python
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg._function.fusion.nodes import LiteralNode, SizeNode
from tinygrad_cg._function.graph.values import FuncGraph
from tinygrad_cg_kernels.runtime import compile as runtime
from tinygrad_cg_kernels.runtime import threads

RNG = np.random.default_rng(0)


def compiled_and_loaded(run):
    """The functions of texts that a call compiles, and those that it finds on the disk, by name."""
    before = len(runtime.compiled), len(runtime.loaded)
    run()
    lists = runtime.compiled[before[0] :], runtime.loaded[before[1] :]
    ours = re.compile(r"run|thread_\d+")
    return tuple([name for name in names if ours.fullmatch(name)] for names in lists)


def steps(count, a, b):
    """A function that does the same with a number of its own at each step."""

    def function(x):
        for k in range(count):
            x = tf.tanh(x * (a + 0.001 * k) + b)
        return x

    return function


PROGRAMS = {
    "elementwise": lambda a, b: lambda x: tf.sin(x * a) + (x - b) / (7 * a),
    "gradient": lambda a, b: tf.value_and_grad(lambda x: tf.reduce_sum(tf.exp(x * a) * b + x**2)),
    "choice": lambda a, b: lambda x: tf.where(x > a, x, b * x),
    "rows": lambda a, b: lambda x: tf.nn.softmax(tf.reshape(x, (2, -1)) * a + b),
    "steps": lambda a, b: steps(40, a, b),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [6, 2 * threads.MIN_BLOCKED])
def test_programs_that_differ_in_constants_compile_once(name, dtype, n):
    x = tf.constant(RNG.normal(size=n).astype(dtype))
    first, second = [PROGRAMS[name](*some) for some in ((0.1, 0.6), (0.3, -1.9))]
    held = tf.function(first)
    held(x)
    other = tf.function(second)
    assert compiled_and_loaded(lambda: other(x)) == ([], [])
    for result, function in ((held, first), (other, second)):
        pairs = zip(tf.nest.flatten(result(x)), tf.nest.flatten(function(x)), strict=True)
        for part, expected in pairs:
            tolerance = 1e-12 if dtype == np.float64 else 1e-4
            np.testing.assert_allclose(part, expected, tolerance, tolerance)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint16, np.uint64])
def test_integers(dtype):
    x = tf.constant(np.arange(9).astype(dtype))
    biggest = np.iinfo(dtype).max
    held = tf.function(lambda x: tf.where(x * dtype(3) > dtype(5), x, dtype(biggest)))
    np.testing.assert_array_equal(held(x), np.array([biggest, biggest, *range(2, 9)], dtype))
    other = tf.function(lambda x: tf.where(x * dtype(2) > dtype(9), x, dtype(biggest - 1)))
    assert compiled_and_loaded(lambda: other(x)) == ([], [])
    np.testing.assert_array_equal(other(x), np.array([*[biggest - 1] * 5, *range(5, 9)], dtype))


def test_numbers_of_several_dtypes_keep_their_bits():
    narrow, wide = np.float32(0.1), 0.1
    x, n, m = parameter((5,)), parameter((5,), np.float32), parameter((5,), np.int16)
    graph = FuncGraph(
        [x, n, m],
        [
            apply("multiply", x, number(wide)),
            apply("multiply", n, number(narrow, np.float32)),
            apply("add", m, number(-1234, np.int16)),
            apply("multiply", x, number(np.nextafter(wide, 1))),
            apply("add", n, number(1e-45, np.float32)),
            apply("add", x, number(5e-324)),
        ],
    )
    program = build(graph)
    ones = [np.ones(5), np.zeros(5, np.float32), np.zeros(5, np.int16)]
    ones[1][0] = 1
    results = program(ones)
    expected = [wide, narrow, -1234, np.nextafter(wide, 1), np.float32(1e-45), 1]
    places = [0, 0, 0, 0, 1, 0]
    assert [result[k] for result, k in zip(results, places, strict=True)] == expected
    assert_same(program, graph, arrays_for(graph, RNG))


def test_long_runs_of_scalars():
    """A thousand steps of one element, each with numbers of its own: a line for each operation."""
    lengths = []
    for count in (300, 600):
        x, row = parameter(()), parameter((7,))
        y = x
        for k in range(count):
            y = apply("tanh", apply("add", apply("multiply", y, number(0.9 + k / 1e4)), x))
        early = apply("multiply", number(0.35), x)
        outputs = [y, apply("multiply", row, early), apply("multiply", row, number(0.9 + 7 / 1e4))]
        graph = FuncGraph([x, row], outputs)
        program = build(graph)
        assert_same(program, graph, arrays_for(graph, RNG))
        lengths.append(len(program.sources[1]))
    assert lengths[1] < 2.1 * lengths[0]


def test_steps_with_numbers_of_their_own_share_a_kernel():
    def texts(count):
        x = y = parameter((64,))
        for k in range(count):
            y = apply("tanh", apply("multiply", y, number(0.5 + k / 1e4)))
        program = build(FuncGraph([x], [y]))
        return sum(len(text) for text in set(program.sources[1:]))

    assert texts(2000) < 1.1 * texts(1000)


def test_another_process_loads_what_differs_in_constants_alone(tmp_path):
    code = """
import sys
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import compile as runtime
rate = float(sys.argv[1])
f = tf.function(tf.grad(lambda x: tf.reduce_sum(tf.exp(x * rate) - rate / 3)))
f(tf.constant([1.0, 2.0]))
print(runtime.compiled.count("run"), runtime.loaded.count("run"))
"""
    outputs = []
    for rate in ("0.1", "0.025"):
        done = run_python("-c", code, rate, TINYGRAD_CG_CACHE_DIR=str(tmp_path))
        outputs.append(done.stdout.split())
    assert outputs == [["1", "0"], ["0", "1"]]


# Texts -------------------------------------------------------------------------------------------


def test_the_call_says_what_the_numbers_are():
    x = tf.constant(RNG.normal(size=5))
    call, kernel = tf.function(lambda x: tf.sin(x * 0.375) - 2.5).kernels(x)
    assert "# segment_0: literals_float64[" in call
    assert "] = 0.375" in call
    assert "] = 2.5" in call
    assert "0.375" not in kernel
    assert "2.5" not in kernel
    n = 2 * threads.MIN_BLOCKED
    call, kernel = tf.function(lambda x: tf.sin(x * 0.375)).kernels(tf.constant(RNG.normal(size=n)))
    assert "# split_0_0: literals_float64[" in call
    assert "] = 0.375" in call
    assert "0.375" not in kernel


def test_all_positions_in_the_call_are_those_of_the_kernels():
    x = tf.constant(RNG.normal(size=5).astype(np.float32))
    call, kernel = tf.function(lambda x: (x * 0.375 - 2.5) / 3.5).kernels(x)
    literals = dict(re.findall(r"(literals_float32\[\d+\]) = ([\d.]+)", call))
    assert sorted(literals.values()) == ["0.375", "2.5", "3.5"]
    assert all(f" = {place}\n" in kernel for place in literals)


@pytest.mark.parametrize(
    ("name", "value", "in_text"),
    [
        ("multiply", 0.1, False),
        ("add", 2.0, False),
        ("multiply", -1.0, True),
        ("subtract", 1.0, True),
        ("add", np.inf, True),
        ("divide", 4.0, True),  # it multiplies instead
        ("divide", 3.0, False),
        ("maximum", 0.1, True),
        ("arctan2", 0.1, True),
    ],
)
def test_numbers_in_texts(name, value, in_text):
    x = parameter((8,))
    graph = FuncGraph([x], [apply(name, x, number(value))])
    program = build(graph)
    assert ("literals_float64" in program.sources[1]) == (not in_text)
    assert_same(program, graph, arrays_for(graph, RNG))


def test_divisors_of_few_elements_may_be_sizes():
    x = parameter((8,))
    graph = FuncGraph([x], [apply("divide", total(apply("square", x)), number(4.0))])
    program = build(graph)
    assert "literals_float64" in program.sources[1]
    assert_same(program, graph, arrays_for(graph, RNG))


def test_numbers_that_follow_from_shapes_are_in_no_text():
    size = SizeNode(1, np.dtype(np.int64))
    assert not size.in_text
    assert size.written() is size
    literal = LiteralNode(0.5, np.dtype(np.float64))
    assert not literal.in_text
    assert literal.written().in_text
