"""check_gradients: right rules are called right, wrong ones wrong, at the right order, and why."""

import html
import linecache
import re
import warnings

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.check_faults import FAULTS, composition, draw, draw_fault, function_of, ruled
from tests.support.check_rules import (
    RIGHT,
    WRONG,
    Stateful,
    captures,
    cross_entropy,
    cube,
    example_one,
    log1pexp,
    softplus,
    through_numpy,
    verbatim,
    wrong_factor,
    wrong_sign,
)
from tests.support.orders import assert_clean_state, derivative

CHUNKS = 20


def words(text):
    """A text without its line breaks."""
    return " ".join(str(text).split())


def rows(report, order, argument="x", path="x", mode="reverse"):
    matching = [
        row
        for row in report.rows
        if (row.order, row.argument, row.path, row.mode) == (order, argument, path, mode)
    ]
    assert matching, report
    return matching


def code_of(report):
    """The corrected form in a report."""
    return next(finding.code for finding in report.findings if finding.code)


def defined(code, name, file="corrected.py", **names):
    """What a piece of code defines."""
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    space = {"tf": tf, "np": np, **names}
    exec(compile(code, file, "exec"), space)
    return space[name]


# The table -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RIGHT)
def test_right_rules_are_called_right(name):
    case = RIGHT[name]
    report = tf.check_gradients(case.f, *case.args, order=3)
    assert report.ok, report
    assert report.first_false_order is None
    assert {row.verdict for row in report.rows} == {"ok"}, report
    assert {row.order for row in report.rows} == {1, 2, 3}
    assert all(prop.holds for prop in report.properties)
    assert all(rule.first_false_order is None for rule in report.rules)
    report.raise_if_wrong()


@pytest.mark.parametrize("name", WRONG)
def test_wrong_rules_are_called_wrong(name):
    case = WRONG[name]
    report = tf.check_gradients(case.f, *case.args, order=3)
    assert not report.ok
    assert report.first_false_order == case.first, report
    matching = rows(report, case.first, case.argument, case.path)
    assert [row.verdict for row in matching] == [case.verdict], report
    assert words(case.words) in words(report), report
    others = [row for row in report.rows if row.order < case.first]
    assert all(row.verdict == "ok" for row in others), report
    with pytest.raises(tf.errors.GradientError, match=r"wrong from order"):
        report.raise_if_wrong()


def test_the_table_is_large_enough():
    assert len(RIGHT) >= 15
    assert len(WRONG) >= 15


@pytest.mark.parametrize("seed", range(200))
def test_random_faults_are_found(seed):
    rng = np.random.default_rng(seed)
    fault = draw_fault(FAULTS[seed % len(FAULTS)], rng)
    operands = [tf.constant(operand) for operand in fault.operands]
    report = tf.check_gradients(fault.f, *operands, order=2, seed=seed)
    assert report.first_false_order == fault.first, (fault.name, report)
    matching = rows(report, fault.first, fault.argument, fault.path)
    assert all(row.verdict in fault.verdicts for row in matching), (fault.name, report)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_right_rule_is_called_wrong(chunk):
    """1000 random runs: operations of the registry, as they are and as custom gradients."""
    for seed in range(chunk, 1000, CHUNKS):
        rng = np.random.default_rng(10_000 + seed)
        example = draw(rng)
        dtype = ("float64", "float32")[seed // CHUNKS % 2]
        example = example._replace(operands=example.cast(dtype))
        function = function_of(example)
        if rng.integers(2):
            function = ruled(function)
        operands = [tf.constant(example.operands[i]) for i in example.real()]
        report = tf.check_gradients(function, *operands, order=int(rng.integers(1, 3)), seed=seed)
        assert report.ok, (seed, example.primitive.name, report)
        doubtful = [row for row in report.rows if row.verdict != "ok"]
        assert len(doubtful) <= 2, (seed, example.primitive.name, report)


@pytest.mark.parametrize("chunk", range(5))
def test_no_composition_of_right_rules_is_called_wrong(chunk):
    """Operations and custom gradients in and after each other, kinks among them."""
    for seed in range(chunk, 100, 5):
        rng = np.random.default_rng(seed)
        function = composition(rng)
        dtype = ("float64", "float32")[seed % 2]
        x, y = [rng.normal(size=6).astype(dtype) for _ in range(2)]
        report = tf.check_gradients(function, x, y, order=int(rng.integers(1, 4)), seed=seed)
        assert report.ok, (seed, report)


# The documents' examples ---------------------------------------------------------------------


@pytest.mark.quick
def test_example_one_reads_as_it_must():
    report = tf.check_gradients(example_one(1.0), 2.0)
    text = words(report)
    assert "the dependence on dy only; the direct dependence on x is lost" in text
    assert "expected 480, got 288" in text
    (both,) = rows(report, 2, path="both")
    assert (both.value, both.reference) == (pytest.approx(288.0), pytest.approx(480.0))
    (alone,) = rows(report, 2)
    assert (alone.value, alone.verdict) == (None, "detached")
    (upstream,) = rows(report, 2, "dy", "upstream")
    assert (upstream.value, upstream.verdict) == (pytest.approx(12.0), "ok")
    corrected = defined(code_of(report), "op")
    assert [derivative(corrected, 2.0, order) for order in (1, 2, 3)] == [12.0, 12.0, 6.0]
    assert derivative(lambda x: corrected(x) ** 2, 2.0, 2) == 480.0
    assert tf.check_gradients(corrected, 2.0, order=3).ok


@pytest.mark.quick
def test_example_two_reads_as_it_must():
    report = tf.check_gradients(verbatim, 2.0)
    text = words(report)
    assert "returns 2 gradients, and `first_order_custom` has 1 input (unused_x)" in text
    corrected = defined(code_of(report), "verbatim")
    assert [derivative(corrected, 2.0, order) for order in (1, 2, 3)] == [12.0, 12.0, 6.0]
    assert derivative(lambda x: corrected(x) ** 2, 2.0, 2) == 480.0


def test_corrected_forms_are_right():
    """NumPy, and log1pexp at 100: what is printed can be run, and is right."""
    corrected = defined(code_of(tf.check_gradients(through_numpy, 2.0)), "through_numpy")
    assert tf.check_gradients(corrected, 2.0, order=3).ok
    corrected = defined(code_of(tf.check_gradients(log1pexp, 100.0)), "log1pexp")
    report = tf.check_gradients(corrected, 100.0)
    assert {row.verdict for row in report.rows} == {"ok"}


def test_a_gradient_that_was_not_summed():
    @tf.custom_gradient
    def shifted(x, b):
        return x + b, lambda dy: (dy, dy)

    nameless = tf.custom_gradient(lambda x, b: (x + b, lambda dy: (dy, dy)))
    report = tf.check_gradients(nameless, np.ones((2, 3)), np.ones((1, 3)))
    assert "over axes [0]" in words(report)
    report = tf.check_gradients(shifted, np.ones((2, 3)), np.ones((1, 3)))
    assert {row.verdict for row in report.rows} == {"raises"}
    assert "tf.reduce_sum(dy, axis=[0], keepdims=True)" in code_of(report)


def test_adapted_gradients_are_remarks():
    total = tf.custom_gradient(lambda x: (tf.reduce_sum(3.0 * x), lambda dy: 3.0 * dy))
    report = tf.check_gradients(total, np.ones(4))
    assert report.ok
    assert "of `<lambda>` returned a scalar as the gradient of input `x`, so each" in words(report)
    assert {prop.name: prop.holds for prop in report.properties}["shapes and dtypes fit"] is None


def test_a_captured_tensor_is_named_as_the_user_does():
    report = tf.check_gradients(captures, 2.0, 3.0)
    assert "captures w" in words(report)
    assert "inside(x, w)" in code_of(report)


def test_a_bypassed_rule_is_said_to_be_so():
    """Only a captured tensor is watched: the natural gradient, which is right."""

    def function(x):
        @tf.custom_gradient
        def inside(unused):
            return x**2 + unused, lambda dy: 1000.0 * dy

        return inside(tf.constant(np.array(1.0)))

    report = tf.check_gradients(function, np.array(3.0))
    assert report.ok
    (row,) = rows(report, 1)
    assert (row.verdict, row.value) == ("bypassed", pytest.approx(6.0))
    assert "The rule of `inside` is not used" in words(report)


def test_an_all_keyword_call_is_a_remark():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: 2 * x * dy

    report = tf.check_gradients(lambda x: square(x=x), 3.0)
    assert report.ok
    assert "all its tensors by keyword" in words(report)


@pytest.mark.quick
def test_log1pexp_at_100():
    """The first order is right; the second is NaN in float32, not in float64."""
    report = tf.check_gradients(log1pexp, 100.0)
    assert [row.verdict for row in rows(report, 1)] == ["ok"]
    (row,) = rows(report, 2)
    assert row.verdict == "not finite"
    assert np.isnan(row.value)
    assert row.reference == pytest.approx(np.exp(-100.0), rel=1e-6)
    assert "`exp` of 100 overflows" in words(report)
    assert "the derivative of a division by inf is NaN" in words(report)
    (row,) = rows(report, 2, path="both")
    assert row.verdict == "not finite"
    assert row.reference == pytest.approx(2.0)
    large = tf.check_gradients(tf.exp, tf.constant([89.0, 1.0]))  # exp(89) is infinite in float32
    assert "ok" not in {row.verdict for row in rows(large, 1)}
    assert "inconclusive; too large for float32" in words(large)
    assert tf.check_gradients(log1pexp, np.array(100.0)).ok


def test_a_state_is_seen():
    report = tf.check_gradients(Stateful(), 2.0)
    assert not report.ok
    assert "the rule keeps state or draws random numbers" in words(report)


def test_a_random_function_is_not_judged():
    rng = np.random.default_rng(0)
    report = tf.check_gradients(lambda x: x * float(rng.normal()), 2.0)
    assert report.rows == []
    assert not report.ok
    assert "Repeated calls differ: the function draws random numbers or keeps state" in words(
        report
    )


# Parts of a program --------------------------------------------------------------------------


def test_each_rule_is_checked_by_itself():
    report = tf.check_gradients(lambda x: wrong_factor(x) + cube(x), 2.0)
    first_false = {rule.name: rule.first_false_order for rule in report.rules}
    assert first_false == {"wrong_factor": 1, "cube": None}
    assert "On its own, the rule of `wrong_factor` (check_rules.py:" in words(report)


def test_a_rule_of_a_rule_serves_the_second_order():
    report = tf.check_gradients(example_one(2.0), 2.0)
    (rule,) = report.rules
    assert (rule.name, rule.order, rule.first_false_order) == ("grad_fn", 2, 1)
    assert (
        "The rule of `grad_fn` returns a wrong derivative with respect to the upstream gradient"
        in words(report)
    )


def test_numbers_and_arrays_by_keyword_are_not_inputs():
    @tf.custom_gradient
    def scaled(x, eps=1e-5, by=None):
        return by * x / eps, lambda dy: by * dy / eps

    report = tf.check_gradients(lambda x: scaled(x, eps=0.1, by=np.ones(2)), tf.ones(2))
    assert report.ok
    assert [rule.first_false_order for rule in report.rules] == [None], report


def test_forward_mode_is_compared():
    report = tf.check_gradients(softplus, np.array([0.3, -2.0]), modes="forward")
    assert {row.mode for row in report.rows} == {"forward"}
    assert {row.verdict for row in report.rows} == {"ok"}
    report = tf.check_gradients(example_one(1.0), 2.0)
    assert "Failed: forward and reverse mode differ at order 2" in str(report)


def test_unnamed_variables_have_the_names_of_the_function():
    right, wrong = tf.Variable(2.0), tf.Variable(3.0)

    @tf.custom_gradient
    def product(x):
        def grad(dy, variables=None):
            return dy * right * wrong, [dy * x * wrong, dy * x]

        return x * right * wrong, grad

    report = tf.check_gradients(product, 1.5, order=1)
    verdicts = {(row.argument, row.verdict) for row in report.rows}
    assert ("right", "ok") in verdicts
    assert ("wrong", "wrong") in verdicts


def test_variables_count_as_arguments():
    v = tf.Variable([1.0, 2.0], name="v")
    report = tf.check_gradients(lambda x: v * v * x, 3.0)
    assert {row.argument for row in report.rows} == {"x", "v", "dy"}
    assert report.ok
    report = tf.check_gradients(lambda w: tf.stop_gradient(w) * w, v)
    assert [row.verdict for row in rows(report, 1, "w")] == ["detached"]
    assert v.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_variables_of_less_precision(dtype):
    rng = np.random.default_rng(0)
    w = tf.Variable(rng.normal(size=(4, 6)).astype(dtype), name="w")
    x = rng.normal(size=(3, 4)).astype("float32")
    report = tf.check_gradients(lambda x: tf.sin(log1pexp(x @ w)), x)
    assert report.ok, report
    assert {row.verdict for row in report.rows} == {"ok"}, report
    assert w.dtype == dtype

    def wrong(x):
        return tf.sin(wrong_factor(x @ w))

    assert tf.check_gradients(wrong, x).first_false_order == 1


def test_structures():
    def function(inputs, scale=2.0):
        return {"product": inputs["a"] * inputs["b"], "sum": [inputs["a"] * scale]}

    report = tf.check_gradients(function, {"a": 1.5, "b": np.array([1.0, 2.0])})
    assert report.ok
    assert {row.argument for row in report.rows} == {"inputs['a']", "inputs['b']", "dy"}


def test_complex_numbers():
    z = np.array([1 + 2j, 0.3 - 1j])
    assert tf.check_gradients(lambda z: tf.numpy.real(z * tf.numpy.conj(z)), z).ok
    assert tf.check_gradients(lambda z: z * z * z, z).ok

    @tf.custom_gradient
    def unconjugated(z):
        return z * z, lambda dy: dy * 2.0 * z

    for point in (z, z[0], z[:1]):
        for full in (False, True):
            report = tf.check_gradients(unconjugated, point, order=1, full=full)
            assert report.first_false_order == 1
    squared = tf.custom_gradient(
        lambda z: (tf.abs(z) ** 2, lambda dy: tf.cast(2.0 * dy, z.dtype) * z)
    )
    wrong = tf.custom_gradient(
        lambda z: (tf.abs(z) ** 2, lambda dy: tf.cast(2.0 * dy, z.dtype) * tf.math.conj(z))
    )
    for point in (z, z[0], np.array([1.5j, 2.0])):
        for full in (False, True):
            assert tf.check_gradients(squared, point, full=full).ok
            assert tf.check_gradients(wrong, point, full=full).first_false_order == 1


# Kinks and rounding --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "point"),
    [
        pytest.param(lambda x: tf.maximum(x, 0.0), 0.0, id="relu"),
        pytest.param(lambda x: tf.maximum(x, 0.0), np.zeros(4), id="relu of zeros"),
        pytest.param(tf.abs, 0.0, id="abs"),
        pytest.param(tf.reduce_max, np.array([2.0, 2.0, 1.0]), id="ties"),
    ],
)
def test_kinks_are_no_errors(function, point):
    report = tf.check_gradients(function, point)
    assert report.ok
    assert rows(report, 1, report.rows[0].argument)[0].verdict == "kink"
    assert "There is a kink" in words(report)
    with pytest.raises(tf.errors.GradientError):
        tf.assert_gradients(function, point, order=1)


def test_beside_a_kink_there_is_none():
    report = tf.check_gradients(lambda x: tf.maximum(x, 0.0), np.array([1e-5, -1e-6, 1e-9]))
    assert {row.verdict for row in report.rows} == {"ok"}


@pytest.mark.parametrize(
    ("function", "point"),
    [
        pytest.param(log1pexp, np.array(-30.0), id="rounded in steps"),
        pytest.param(log1pexp, np.array(-36.0), id="rounded to a constant"),
        pytest.param(log1pexp, np.float32(-20.0), id="cancels in float32"),
        pytest.param(lambda x: ((1e8 + x) - 1e8) ** 2, np.array(1.3), id="cancels"),
        pytest.param(lambda x: (tf.exp(x) - 1) / x, np.array(1e-7), id="cancels more"),
        pytest.param(
            lambda x: tf.cast(tf.sin(tf.cast(x, tf.float32)), tf.float64) * x,
            np.array([1.3, 0.2]),
            id="float32 inside",
        ),
        pytest.param(lambda x: tf.sin(x) * x, np.array([1.3, 0.2], np.float16), id="float16"),
        pytest.param(lambda x: tf.sin(1e5 * x), np.array(1.3), id="oscillates"),
        pytest.param(lambda x: tf.exp(-x / 1e-8), np.array([1e-8, 2e-8]), id="small scale"),
        pytest.param(tf.exp, 100.0, id="too large for float32"),
        pytest.param(tf.sqrt, 0.0, id="no derivative"),
        pytest.param(tf.norm, np.zeros(3), id="norm at 0"),
        pytest.param(lambda x: (x - 1.0) ** 4, 1.0, id="flat"),
        pytest.param(tf.round, np.array([1.3, 2.2]), id="steps"),
        pytest.param(tf.tanh, 20.0, id="saturated"),
        pytest.param(
            ruled(lambda x: tf.nn.softmax(1e3 * x)), np.array([0.3, -0.4, 0.37]), id="underflows"
        ),
        pytest.param(
            lambda x: tf.sin((1e3 * x) ** 2), np.array([-10.1, 3.3]), id="oscillates wildly"
        ),
        pytest.param(tf.sin, np.zeros((0, 3)), id="empty"),
    ],
)
def test_hard_points_are_not_called_wrong(function, point):
    report = tf.check_gradients(function, point)
    assert report.ok, report
    assert report.rows


@pytest.mark.parametrize("seed", range(20))
def test_networks_with_kinks_everywhere(seed):
    rng = np.random.default_rng(seed)
    first, second = tf.constant(rng.normal(size=(20, 30))), tf.constant(rng.normal(size=30))

    def network(x):
        return tf.linalg.matvec(tf.maximum(x @ first, 0.0), second)

    x = rng.normal(size=(5, 20)).astype(("float64", "float32")[seed % 2])
    report = tf.check_gradients(network, x, seed=seed)
    assert report.ok, report
    assert [row.verdict for row in rows(report, 1)] == ["ok"]


# Cost, and every element ---------------------------------------------------------------------


def test_a_million_inputs_take_a_few_passes():
    calls = []

    def function(x):
        calls.append(None)
        return tf.reduce_sum(tf.sin(x) * x)

    x = np.random.default_rng(0).normal(size=1_000_000)
    report = tf.check_gradients(function, x, order=2)
    assert {row.verdict for row in report.rows} == {"ok"}
    assert len(calls) <= 50


def test_full_compares_every_element():
    @tf.custom_gradient
    def function(x):
        wrong = tf.constant(np.array([0.0, 0.0, 0.1]))
        return x**3, lambda dy: dy * (3 * x**2 + wrong)

    report = tf.check_gradients(function, np.array([1.0, 2.0, 3.0]), order=1, full=True)
    false = [row for row in report.rows if row.index is not None]
    assert [(row.index, row.verdict) for row in false] == [((2,), "wrong")]
    assert (false[0].value, false[0].reference) == (pytest.approx(27.1), pytest.approx(27.0))
    assert "x[2]" in str(report)
    assert tf.check_gradients(cube, np.array([1.0, 2.0, 3.0]), full=True).ok


def test_a_function_that_is_not_defined_everywhere():
    def function(x):
        if float(x) != 2.0:
            raise ValueError("only at 2")
        return x * x

    report = tf.check_gradients(function, np.array(2.0), modes="reverse")
    assert report.ok
    assert rows(report, 1)[0].verdict == "inconclusive"


def test_references_are_named():
    report = tf.check_gradients(tf.sin, np.array(0.3))
    assert rows(report, 1)[0].kind == "complex steps"
    assert rows(report, 2)[0].kind == "central differences"
    report = tf.check_gradients(lambda x: tf.maximum(x, 0.1), np.array(0.3))
    assert rows(report, 1)[0].kind == "central differences"
    assert all(row.uncertainty < 1e-6 for row in report.rows)


# Use -----------------------------------------------------------------------------------------


def test_references_are_named_with_their_rows():
    x = np.array([0.5, -1.5, 2.0])
    text = words(tf.check_gradients(lambda x, y: tf.sin(x) * y, x, 2.0, order=3))
    assert (
        "Order 1 is compared with complex steps (10 digits). Orders 2 and 3 are compared with "
        "central differences (6 digits). A rule must be linear in dy. Then its derivative "
        "with respect to dy, in a direction v, is what the rule returns for dy = v. Rows "
        "`upstream` compare the two (6 digits)."
    ) in text
    clipped = tf.custom_gradient(lambda x: (x * x, lambda dy: tf.clip_by_norm(2 * x * dy, 1.0)))
    report = tf.check_gradients(clipped, x, order=1)
    (row,) = [line.split()[:4] for line in str(report).splitlines() if "linearity  rev" in line]
    assert row == ["1", "x", "linearity", "reverse"]
    assert "the gradient for a sum, or a multiple, of upstream gradients is compared" in words(
        report
    )


def test_an_inconclusive_reference_has_the_digits_that_are_known():
    report = tf.check_gradients(tf.nn.relu, tf.constant([0.0, 1.0]))
    assert report.summary().endswith("except at kinks and in inconclusive rows")
    rows = [row for row in report.rows if row.verdict == "inconclusive"]
    cells = re.findall(r"(\S+) \+- (\S+) ", str(report))
    assert len(cells) == len(rows) > 0
    for row, (reference, error) in zip(rows, cells, strict=True):
        assert abs(float(reference) - row.reference) <= float(error)
        assert len(reference) <= 5


def test_assert_gradients():
    tf.assert_gradients(softplus, np.linspace(-50.0, 50.0, 7))
    tf.test.assert_gradients(cube, 2.0, order=3)
    with pytest.raises(AssertionError, match=r"wrong_sign: wrong from order 1 onwards") as caught:
        tf.assert_gradients(wrong_sign, 2.0, 3.0)
    assert "expected 2, got -2" in words(caught.value)


def test_the_report_as_html():
    report = tf.check_gradients(lambda x: cross_entropy(x, np.eye(3)), np.eye(3))
    text = report._repr_html_()
    assert text.count("<tr>") == len(report.rows) + 1
    assert "<td>ok</td>" in text
    text = tf.check_gradients(through_numpy, 2.0)._repr_html_()
    assert "<pre>" in text
    assert re.search(r"<td>detached</td>", text)
    assert html.escape("<lambda>") in tf.check_gradients(lambda x: x * x, 2.0)._repr_html_()


def test_the_report_as_html_colours_what_is_false():
    report = tf.check_gradients(wrong_sign, 2.0, 3.0)
    text = report._repr_html_()
    coloured = re.findall(r'<tr style="background:#\w+;color:#\w+">(.*?)</tr>', text)
    assert 0 < len(coloured) == sum(row.false for row in report.rows) < len(report.rows)
    verdicts = [row.verdict for row in report.rows if row.false]
    ends = [f"<td>{html.escape(verdict)}</td>" for verdict in verdicts]
    assert all(row.endswith(end) for row, end in zip(coloured, ends, strict=True))
    assert "<tr style" not in tf.check_gradients(lambda x: x * x, 2.0)._repr_html_()


def test_nothing_is_left_behind():
    """No warning, no record, and warnings that come later are still given."""

    @tf.custom_gradient
    def numbers(x):
        return x * 1.0, lambda dy: dy * float(x)

    x = tf.constant(2.0)
    with warnings.catch_warnings(record=True) as caught, tf.GradientTape() as tape:
        warnings.simplefilter("always")
        tape.watch(x)
        tf.check_gradients(example_one(1.0), 2.0)
        tf.check_gradients(numbers, 2.0)
        y = x * x
    assert caught == []
    assert tape.gradient(y, x).numpy() == 4.0
    assert_clean_state()
    with tf.GradientTape() as outer, tf.GradientTape() as tape:
        outer.watch(x)
        tape.watch(x)
        y = numbers(x)
        with pytest.warns(tf.CustomGradientWarning, match="takes NumPy or Python values"):
            tape.gradient(y, x)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: tf.check_gradients(3, 1.0), TypeError, "`f` must be a function, got int"),
        (lambda: tf.check_gradients(tf.sin, 1), TypeError, "no argument with a gradient"),
        (
            lambda: tf.check_gradients(lambda x: x**2, 3),
            TypeError,
            "lambda> got no argument with a",
        ),
        (lambda: tf.check_gradients(lambda x: x**2, "a"), TypeError, "no argument with a gradie"),
        (lambda: tf.check_gradients(tf.sin, 1.0, order=0), ValueError, "order must be at least 1"),
        (lambda: tf.check_gradients(tf.sin, 1.0, order=1.5), TypeError, "order"),
        (lambda: tf.check_gradients(tf.sin, 1.0, modes="sideways"), ValueError, "modes must be"),
        (lambda: tf.check_gradients(lambda x: None, 1.0), TypeError, "returned None"),
        (lambda: tf.check_gradients(lambda x: 3.0, 1.0), TypeError, "returned float, not a Tensor"),
        (lambda: tf.check_gradients(lambda x: x > 0, 1.0), TypeError, "returned no floats"),
        (lambda: tf.check_gradients(lambda x: 1 / 0, 1.0), ZeroDivisionError, "division"),
    ],
)
def test_bad_calls(call, error, match):
    with pytest.raises(error, match=match):
        call()
    assert_clean_state()


@pytest.mark.quick
def test_a_list_of_numbers_is_named_where_the_function_wants_a_tensor():
    """It is a structure of scalars, as everywhere: the error of the function alone puzzles."""
    for f in (lambda x: tf.reduce_sum(x * x), lambda x: x.sum()):
        with pytest.raises((TypeError, AttributeError)) as caught:
            tf.check_gradients(f, [1.0, 2.0])
        (note,) = caught.value.__notes__
        assert note.startswith("check_gradients: argument 0 is a list")
        assert "tf.constant([1.0, 2.0])" in note
    assert tf.check_gradients(lambda x: x[0] * x[1], [1.0, 2.0]).ok
    with pytest.raises(TypeError) as caught:
        tf.check_gradients(lambda x: x + "1", tf.constant([1.0, 2.0]))
    assert not getattr(caught.value, "__notes__", ())


def test_rules_of_variables_are_checked_in_float64():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * 3 * x**2

    for make in (tf.constant, tf.Variable):
        report = tf.check_gradients(cube, make([2.0, 3.0]))
        assert report.ok
        assert not report.findings  # as that its gradient is cast to float32
        assert max(row.error for row in report.rows if row.mode == "reverse") < 1e-8


def test_a_variable_that_a_tape_watches_is_checked_in_float64():
    @tf.custom_gradient
    def cube(x):
        return x**3, lambda dy: dy * 3 * x**2

    x = tf.Variable([2.0, 3.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(x * x)
        report = tf.check_gradients(cube, x)
    assert report.ok
    assert not report.findings
    assert tf.check_gradients(cube, x).findings == []  # the tape is alive
    np.testing.assert_array_equal(tape.gradient(y, x), [4.0, 6.0])


def test_integers_and_missing_arguments_are_named():
    with pytest.raises(TypeError, match=r"pass floats, such as 2.0 or np.array"):
        tf.check_gradients(lambda x: x * x, 2)
    with pytest.raises(TypeError, match="pass floats, such as"):
        tf.check_gradients(lambda x: x * x, np.array([1, 2]))
    with pytest.raises(TypeError) as caught:
        tf.check_gradients(lambda x: x * x)
    assert "pass the function's arguments after it" in caught.value.__notes__[0]
    with pytest.raises(TypeError) as caught:
        tf.check_gradients(lambda x: x * x, np.float32)
    words = "argument 0 is the type float32: pass a value, such as float32(1.0)"
    assert words in caught.value.__notes__[-1]


def test_what_is_infinite_is_shown_for_the_element_that_makes_it_so():
    @tf.custom_gradient
    def entropy(p):
        return tf.math.xlogy(p, p), lambda dy: dy * (tf.math.log(p) + 1.0)

    text = words(tf.check_gradients(entropy, np.array([0.5, 0.0, 0.25])))
    assert "`log` of 0 is infinite" in text
    assert "of 0.5" not in text


def test_words_at_kinks():
    @tf.custom_gradient
    def doubled(x):
        return tf.nn.relu(x), lambda dy: 2.0 * dy

    text = words(tf.check_gradients(doubled, 0.0))
    assert "the value is outside the one-sided slopes, 0 and 1: got 2." in text
    assert "times the correct" not in text
    text = words(tf.check_gradients(doubled, np.array([0.0, 1.0, -1.0])))
    assert "Apart from the kink, it is wrong only at x[1]" in text


def test_a_list_of_numbers_is_one_input_per_number():
    @tf.custom_gradient
    def residual(x):
        x = tf.convert_to_tensor(x)
        return tf.reduce_sum(x**2), lambda dy: 2 * dy * x

    text = " ".join(str(tf.check_gradients(residual, [0.4, -1.1])).split())
    assert "each number is an input. To pass the numbers as one vector, use np.array(...)" in text


def test_what_a_missing_gradient_does_not_hide():
    """A rule that returns None for labels, and detaches another argument, has two findings."""

    @tf.custom_gradient
    def loss(z, labels):
        p = tf.sigmoid(z)
        value = -tf.reduce_sum(labels * tf.math.log(p) + (1 - labels) * tf.math.log(1 - p))
        return value, lambda dy: (dy * (p.numpy() - labels), None)

    report = tf.check_gradients(loss, np.array([0.3, -1.0, 2.0]), np.array([0.0, 1.0, 1.0]))
    first, second = (words(finding.text) for finding in report.findings)
    assert first.startswith("The gradient with respect to labels is None")
    assert "takes NumPy or Python values from a tensor in `p.numpy()`" in second


def test_findings_of_order_1_come_before_errors_of_order_2():
    f = tf.custom_derivatives(
        lambda x: x * 2, vjp=lambda dy, x: dy * 2, jvp=lambda tangent, x: tangent * 3
    )
    report = tf.check_gradients(f, np.array([1.0, 2.0, 3.0]))
    first, second = (words(finding.text) for finding in report.findings)
    assert first.startswith("The gradient of order 1 with respect to x is wrong in forward mode")
    assert second.startswith("Order 2 cannot be computed")
