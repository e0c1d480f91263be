"""Gradient functions that run as one kernel: the numbers of their operations, one by one."""

import inspect
from typing import Any

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.levels import state
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg._core.record import Expired
from tinygrad_cg._function.codegen import fused_rules
from tinygrad_cg._function.codegen.fused_rules import FusedRule
from tinygrad_cg._ops.define import Real


def rules():
    """Every gradient function that is tried, with its operation and operand."""
    for primitive in OPS.values():
        for i, rule in enumerate(primitive.vjp or ()):
            if primitive.kind == "elementwise" and rule is not None:
                names = tuple(inspect.signature(rule).parameters)
                if {*names} <= {"dy", "out", *primitive.inputs} and len(names) <= 3:
                    yield pytest.param(primitive, rule, names, id=f"{primitive.name}-{i}")


def draw(primitive, names, dtype):
    """Operands within the operation's domain, its result, and an upstream gradient."""
    rng = np.random.default_rng(0)
    values = {}
    for name, sample in zip(primitive.inputs, primitive.samples, strict=True):
        assert isinstance(sample, Real)
        values[name] = rng.uniform(sample.low, sample.high, (3, 40)).astype(dtype)
    values["out"] = primitive.run(*values.values())
    values["dy"] = rng.normal(size=(3, 40)).astype(dtype)
    return [tf.constant(values[name]) for name in names]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("primitive", "rule", "names"), list(rules()))
def test_the_kernel_of_a_rule_is_the_rule(primitive, rule, names, dtype):
    operands = draw(primitive, names, dtype)
    expected, fused = rule(*operands), FusedRule(primitive.name, rule, names).function
    for _ in range(2):  # by the kernel, and then by the quick way
        got = fused(*operands)
        assert got.dtype == expected.dtype
        assert got.shape == expected.shape
        accuracy = 1e-12 if dtype == "float64" else 1e-5
        np.testing.assert_allclose(got, expected, rtol=accuracy, atol=accuracy)


@pytest.mark.parametrize("name", ["sin", "cos"])
@pytest.mark.parametrize("far", [1e6, 1e30, np.inf, np.nan])
def test_a_rule_of_a_guarded_function_is_right_for_far_operands(name, far):
    x = np.linspace(-3.0, 3.0, 3000).astype("float32")
    x[1500] = far  # one chunk in three is not near
    dy, x = tf.constant(x[::-1] + np.float32(4.0)), tf.constant(x)
    rule = next(iter(OPS[name].vjp or ()))
    function = fused_rules.fuse(name, rule, ("dy", "x"))
    assert function is not rule
    np.testing.assert_array_equal(function(dy, x), rule(dy, x))


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.parametrize(("primitive", "rule", "names"), list(rules()))
def test_in_place_a_rule_gives_the_same(primitive, rule, names, owned):
    """On large arrays; and it writes to nothing but the upstream gradient, if that is its own."""
    if names[0] != "dy":
        assert fused_rules.run_in_place(rule, rule, names) is None
        return
    operands = draw(primitive, names, "float64")
    plain = fused_rules.fuse(primitive.name, rule, names)
    expected, before = (
        plain(*operands).numpy().copy(),
        [operand.numpy().copy() for operand in operands],
    )
    got = fused_rules.InPlaceRule(rule, plain, names)(
        [operands[0]._data] if owned else [], *operands
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12)
    for operand, values in list(zip(operands, before, strict=True))[owned:]:
        np.testing.assert_array_equal(operand, values)


def test_most_rules_are_one_kernel():
    counts = [
        fused_rules._source(rule, names, np.dtype(np.float64)) is not None
        for _, rule, names in (case.values for case in rules())
    ]
    assert sum(counts) >= 40


def gradient(f, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize("name", ["add", "multiply", "exp", "log", "negative"])
def test_a_rule_that_cannot_fuse_is_called_bare(name):
    primitive = OPS[name]
    called = primitive.rules[2 ** len(primitive.inputs) - 1].rule.__globals__
    assert [called[f"f{i}"] for i in range(len(primitive.vjp))] == list(primitive.vjp)


def test_a_sweep_that_nobody_records_runs_kernels():
    x = tf.constant([0.3, -2.0])
    rule = next(f.fused for f in _functions("tanh") if hasattr(f, "fused"))
    rule.kernels.clear()
    rule.latest[0] = lambda *operands: None
    gradient(tf.tanh, x)
    assert rule.kernels[np.dtype(np.float32)] is not None


def _functions(name):
    """What the residuals' rule of an operation with one operand calls."""
    return list(OPS[name].rules[1].rule.__globals__.values())


def test_a_sweep_that_somebody_records_runs_operations():
    x = tf.constant(0.3, tf.float64)
    rule = next(f.fused for f in _functions("softplus") if hasattr(f, "fused"))
    rule.kernels.clear()
    with tf.GradientTape() as outer:
        outer.watch(x)
        first = gradient(tf.math.softplus, x)
    second = outer.gradient(first, x)
    s = 1 / (1 + np.exp(-0.3))
    np.testing.assert_allclose([first, second], [s, s * (1 - s)], rtol=1e-14)
    assert not rule.kernels


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 0.0, -0.0])
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "sqrt", "relu", "arctan", "absolute"])
def test_special_values(name, value):
    rule: Any = (OPS[name].vjp or (None,))[0]
    names = tuple(inspect.signature(rule).parameters)
    x = np.array([value, 1.0])
    with np.errstate(all="ignore"):
        values = {"x": x, "out": OPS[name].run(x), "dy": np.array([1.0, 2.0])}
    operands = [tf.constant(values[name]) for name in names]
    got, expected = FusedRule(name, rule, names).function(*operands), rule(*operands)
    np.testing.assert_allclose(got, expected, rtol=1e-14)


def test_operands_that_broadcast_and_mixed_dtypes():
    x, y = tf.constant([[1.0], [2.0]], tf.float64), tf.constant([3.0, 4.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.numpy.logaddexp(x, y)
    dx, dy = tape.gradient(z, [x, y])
    s = 1 / (1 + np.exp(np.array([[3.0, 4.0]]) - np.array([[1.0], [2.0]])))
    np.testing.assert_allclose(dx, s.sum(1, keepdims=True), rtol=1e-14)
    np.testing.assert_allclose(dy, (1 - s).sum(0), rtol=1e-14)
    half = tf.constant([0.5], tf.float16)
    np.testing.assert_allclose(gradient(tf.tanh, half), [1 - np.tanh(0.5) ** 2], rtol=1e-2)
    rotated = tf.constant([0.5 + 1j])
    np.testing.assert_allclose(gradient(tf.tanh, rotated), np.conj(1 - np.tanh(0.5 + 1j) ** 2))


def test_results_are_marked_as_expired():
    x = tf.constant([0.5])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.tanh(x)
    first = tape.gradient(y, x)
    assert type(first._rec) is Expired
    with pytest.warns(tf.errors.TapeWarning, match="after the tape closed"):
        assert tape.gradient(first, x) is None


def test_a_trace_that_fails_leaves_no_level():
    def broken(dy, x):
        raise KeyError(tf.exp(x).shape)

    def reduced(dy, x):
        return dy * tf.reduce_sum(x) * x

    with pytest.raises(KeyError):
        fused_rules._source(broken, ("dy", "x"), np.dtype(np.float64))
    assert state.frame is None
    assert fused_rules._source(reduced, ("dy", "x"), np.dtype(np.float64)) is None
    assert state.frame is None


def test_a_trace_restores_the_frame_around_it():
    with tf.GradientTape():
        inside = state.frame
        fused_rules._source(OPS["tanh"].vjp[0], ("dy", "out"), np.dtype(np.float64))
        assert state.frame is inside
