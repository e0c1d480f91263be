"""check_gradients on a table of custom gradients, half of them wrong: verdicts, rows and words."""

import ast
import sys

import pytest

import tinygrad_cg as tf
from tests.check.test_check import defined, words
from tests.support import right_rules, wrong_rules
from tests.support.rule_table import RULES, false_rows
from tinygrad_cg._check import evaluate, operations, setup

assert right_rules
assert wrong_rules  # they fill the table


@pytest.fixture
def evaluations(monkeypatch):
    """A list with an entry for each evaluation of a function in checks; surrogates do not count."""
    calls = []

    def count(function):
        def counted(problem, *args):
            if not getattr(problem.f, "__module__", "").endswith(("surrogates", "elementwise")):
                calls.append(problem.name)
            return function(problem, *args)

        return counted

    for module, name in ((evaluate, "run"), (setup, "run"), (operations, "run_body")):
        monkeypatch.setattr(module, name, count(getattr(module, name)))
    return calls


@pytest.mark.parametrize("name", RULES)
def test_the_report_of_a_rule(name, evaluations):
    rule = RULES[name]
    report = tf.check_gradients(rule.f, *rule.args, **rule.options)
    assert len(evaluations) <= (180 if rule.is_right else 70)
    assert false_rows(report) == set(rule.false), report
    assert report.ok is rule.is_right, report
    assert {row.verdict for row in report.rows if not row.false} <= {"ok", *rule.doubtful}, report
    assert {*rule.doubtful} <= {row.verdict for row in report.rows}, report
    orders = [int(row[0]) for row in rule.false]
    assert report.first_false_order == min(orders, default=None)
    for text in rule.words:
        assert text in words(report), report
    if rule.is_right:
        report.raise_if_wrong()
        assert all(finding.remark for finding in report.findings), report
    else:
        with pytest.raises(
            tf.errors.GradientError, match=f"wrong from order {min(orders)} onwards"
        ):
            report.raise_if_wrong()
        assert not all(finding.remark for finding in report.findings), report
    for code in [finding.code for finding in report.findings if finding.code]:
        assert_code_is_right(code, rule)


def assert_code_is_right(code, rule):
    """Execute code that a report offers, and check it where the rule was checked."""
    (node,) = ast.parse(code).body
    names = (
        [node.name] if isinstance(node, ast.FunctionDef) else [target.id for target in node.targets]
    )
    space = vars(sys.modules[rule.f.__module__])
    corrected = defined(code, names[0], **space)
    report = tf.check_gradients(corrected, *rule.args, **rule.options)
    assert {row.verdict for row in report.rows} == {"ok"}, report


def test_the_table_is_large_enough():
    """120 functions, half of them wrong, and 60 whose cause is named."""
    right = {id(rule.f) for rule in RULES.values() if rule.is_right}
    wrong = {id(rule.f) for rule in RULES.values() if not rule.is_right}
    named = {id(rule.f) for rule in RULES.values() if rule.words and not rule.is_right}
    assert len(right | wrong) >= 120
    assert min(len(right), len(wrong)) >= 55
    assert len(named) >= 60
    at = " ".join(RULES)
    for place in ("zeros", "integers", "kink", "minimum", "maximum", "saturated", "float32"):
        assert place in at
