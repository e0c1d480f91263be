"""Fused programs on the simulated device, against the programs of the CPU."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._function.codegen import device_blocks
from tinygrad_cg._function.codegen.device_target import DeviceExecutable

RNG = np.random.default_rng(0)
MATRIX = RNG.normal(size=(6, 5)).astype(np.float32)
WIDE = RNG.normal(size=(6, 40)).astype(np.float32)
VECTOR = RNG.normal(size=(5,)).astype(np.float32)
LINE = RNG.normal(size=(7,))
LABELS = np.array([1, 0, 4, 2, 3, 3])
WEIGHTS = RNG.normal(size=(5, 4)).astype(np.float32), RNG.normal(size=(4,)).astype(np.float32)


def chain(x):
    return tf.sin(tf.tanh(tf.exp(tf.cos(x)))) * 2.5


def totals(x):
    mean = tf.reduce_mean(x)
    return tf.reduce_sum(x * x), mean, tf.reduce_max(x), x - mean


def prod_min(x):
    return tf.reduce_prod(x), tf.reduce_min(x, axis=-1)


def normalise(x):
    return tf.nn.softmax(x), tf.nn.log_softmax(x), tf.reduce_logsumexp(x, axis=1)


def broadcast(x, v):
    return tf.nn.relu(x + v), x * tf.reduce_sum(x, axis=1, keepdims=True)


def columns(x):
    return tf.reduce_sum(tf.exp(x), axis=0), tf.reduce_sum(x, axis=1), tf.reduce_mean(x, axis=0)


def moves(x):
    return tf.transpose(x) * 2.0, x[1:3] + 1.0, tf.concat([x, x], 0), x[:, 1:3] * 2.0


def transposes(x):
    z = tf.transpose(tf.concat([x] * 7, 1))
    return z * z, tf.reduce_sum(tf.exp(z), 1), tf.reduce_sum(z, 0)


def cross_entropy(x, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)
    return tf.reduce_mean(losses)


def of_rows(x, v):
    return tf.reduce_sum(tf.nn.softmax(tf.tanh(x * v) + v) ** 2)


def network(w, b, x):
    hidden = tf.tanh(x @ w + b)
    return tf.reduce_mean(hidden * hidden)


def log1pexps(x):
    return tf.reduce_sum(tf.math.log1p(tf.exp(x)) * x)


def of_parts(x):
    return tf.reduce_sum(tf.exp(x[2:5]) ** 2) + tf.reduce_sum(x[:3] ** 3)


def lookups(x, i):
    return tf.gather(x, i) * 2.0, tf.one_hot(i, 40) * x


def integers(i, truths):
    counted = tf.cast(truths, tf.float32) * 2.0
    return (
        i * 3 + 1,
        tf.reduce_sum(i),
        tf.reduce_any(truths, axis=1),
        tf.reduce_all(truths),
        counted,
    )


def scalars(x):
    k = (tf.reduce_mean(x) + tf.reduce_max(x)) * 3.0
    return x * k + tf.reduce_sum(x * k, axis=1, keepdims=True), k


def layer_norm(x):
    centred = x - tf.reduce_mean(x, 1, keepdims=True)
    z = centred / tf.sqrt(tf.math.reduce_variance(x, 1, keepdims=True) + 1e-5)
    return tf.reduce_sum(tf.reduce_max(z, axis=1) * tf.reduce_sum(tf.sin(z), axis=1)), z


PROGRAMS = [
    (chain, LINE),
    (totals, LINE),
    (totals, MATRIX),
    (prod_min, MATRIX),
    (prod_min, np.arange(1, 7).reshape(2, 3)),
    (normalise, MATRIX),
    (normalise, np.array([[-np.inf, 0.0], [np.nan, 1.0], [1e300, 1e300]])),
    (broadcast, MATRIX, VECTOR),
    (columns, MATRIX),
    (columns, np.ones((3, 1))),
    (moves, MATRIX),
    (transposes, MATRIX),
    (cross_entropy, MATRIX, LABELS),
    (tf.value_and_grad(cross_entropy), MATRIX, LABELS),
    (tf.grad(of_rows, (0, 1)), MATRIX, VECTOR),
    (tf.value_and_grad(network, (0, 1)), *WEIGHTS, MATRIX),
    (tf.grad(lambda x: tf.reduce_sum(tf.grad(log1pexps)(x))), LINE),
    (tf.grad(of_parts), LINE),
    (lookups, WIDE, LABELS),
    (integers, np.arange(6), MATRIX > 0),
    (scalars, MATRIX),
    (layer_norm, MATRIX),
    (chain, MATRIX.astype(np.float16)),
    (chain, MATRIX + 1j),
    (chain, np.zeros((0, 3))),
]


@pytest.mark.parametrize(("program", "arrays"), [(row[0], row[1:]) for row in PROGRAMS])
def test_programs_give_the_numbers_of_the_cpu_and_the_same_bits_again(program, arrays):
    operands = [tf.constant(array) for array in arrays]
    compiled = tf.function(program)
    wanted = tf.nest.flatten(compiled(*operands))
    results, again = (
        tf.nest.flatten(compiled(*[operand.gpu() for operand in operands])) for _ in range(2)
    )
    for want, got, same in zip(wanted, results, again, strict=True):
        assert got.device == "gpu:0"
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        tolerance = {"e": 2e-3, "f": 5e-6, "F": 5e-6}.get(want.dtype.char, 1e-12)
        got, same = got.cpu().numpy(), same.cpu().numpy()
        np.testing.assert_allclose(got, want.numpy(), rtol=tolerance, atol=tolerance)
        assert got.tobytes() == same.tobytes()


def executable(program, *arrays):
    """The program that runs on arrays of the device."""
    compiled = tf.function(program)
    compiled(*[tf.constant(array).gpu() for array in arrays])
    (executable,) = [
        traced.program.outputs.program
        for traced in compiled._programs.values()
        if traced.device != "cpu"
    ]
    assert isinstance(executable, DeviceExecutable)
    return executable


def test_a_chain_is_one_kernel():
    text = "\n".join(executable(chain, LINE).sources)
    assert text.count("def kernel(") == 1
    assert "while left < n0:" in text


def test_softmax_is_one_kernel_with_shared_memory():
    text = "\n".join(executable(lambda x: tf.nn.softmax(x), MATRIX).sources)
    assert text.count("def kernel(") == 1
    assert "cuda.shared.array(" in text


def test_sizes_and_literals_are_no_part_of_texts():
    first = executable(lambda x: tf.exp(x * 2.5) + 7.25, LINE).sources[1:]
    other = executable(lambda x: tf.exp(x * 0.125) + 31.5, LINE[:3]).sources[1:]
    assert first == other


WHOLE = np.arange(-40, 41, dtype=np.int8)


@pytest.mark.parametrize(
    ("program", "array", "each"),
    [
        (lambda x: x * 3 + 1, WHOLE, 8),
        (lambda x: (x * 2, tf.reduce_max(x)), WHOLE[:10], 8),
        (lambda x: x * tf.reduce_sum(x, 1, keepdims=True), (WIDE * 9).astype("h"), 8),
        (totals, WIDE, 4),
        (columns, WIDE, 4),
        (transposes, MATRIX, 4),
        (tf.grad(of_parts), WIDE[0], 4),
        (totals, WIDE.astype("d"), 2),
    ],
)
def test_values_of_several_elements_are_loaded_at_a_time(program, array, each, monkeypatch):
    """The bits are those of a loop that loads one."""
    text = "\n".join(executable(program, array).sources)
    assert [f"_at_{n} = " in text for n in range(1, 9)] == [n < each for n in range(1, 9)]
    x = tf.constant(array).gpu()
    results = tf.nest.flatten(tf.function(program)(x))
    monkeypatch.setattr(device_blocks, "MAX_REPEATED", 0)
    assert "_at_1" not in "\n".join(executable(program, array).sources)
    for one, other in zip(results, tf.nest.flatten(tf.function(program)(x)), strict=True):
        assert one.numpy().tobytes() == other.numpy().tobytes()


def test_arrays_of_both_devices_are_refused():
    compiled = tf.function(lambda x, y: x + y)
    x = tf.constant(LINE)
    with pytest.raises(TypeError, match="on different devices"):
        compiled(x, x.gpu())
    assert compiled(x.gpu(), tf.constant(2.0, tf.float64)).device == "gpu:0"


def test_indices_outside_are_refused():
    compiled = tf.function(lambda x, i: tf.gather(x, i) * 2.0)
    x = tf.constant(WIDE).gpu()
    compiled(x, tf.constant([0, 1]).gpu())
    with pytest.raises(IndexError, match="gather"):
        compiled(x, tf.constant([0, 6]).gpu()).numpy()


def test_strided_arrays_are_read():
    compiled = tf.function(lambda x: tf.sin(x) * 2.0)
    x = tf.transpose(tf.constant(MATRIX).gpu())
    np.testing.assert_allclose(compiled(x).cpu().numpy(), np.sin(MATRIX.T) * 2, rtol=1e-6)
