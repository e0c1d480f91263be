"""check_gradients on rules in the style of research code: verdicts, causes and corrections."""

import re
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.check.test_check import defined, words
from tests.support.research_rules import RESEARCH

MISTAKES = {name: rule for name, rule in RESEARCH.items() if rule.mistake}
ENDINGS = (
    "Write it like this:",
    "Differentiating the operations",
    "This correction is right for these arguments,",
)  # corrected code follows


def cause(finding):
    """What a finding says after the numbers, without lines of the source and the code."""
    text = re.sub(r"^.*? got -?[\w.+-]+\. ?", "", f"{words(finding.text)} ", count=1)
    text = re.sub(
        r"The rule of \S+ \(\S+ is wrong on its own: .*? cause\.|The rule of .*? returns\.",
        "",
        text,
    )
    text = re.sub(r" \(research_rules\.py:\d+(: `.*?`)?\)", "", text)
    for ending in ENDINGS:
        text = text.partition(ending)[0]
    return text.strip()


@pytest.mark.parametrize("name", [name for name in RESEARCH if name not in MISTAKES])
def test_right_rules_are_called_right(name):
    rule = RESEARCH[name]
    report = tf.check_gradients(rule.f, *rule.args, **rule.options)
    assert report.ok, report
    assert report.conclusive, report
    assert all(finding.remark for finding in report.findings), report
    assert report.undecided == []


@pytest.mark.parametrize("name", MISTAKES)
def test_wrong_rules_are_explained(name):
    """The words are those of the table: nothing else is claimed."""
    rule = RESEARCH[name]
    report = tf.check_gradients(rule.f, *rule.args, **rule.options)
    assert report.first_false_order == rule.order, report
    finding = report.findings[0]
    is_said = rule.order > 1 and rule.said in words(finding.text)
    assert is_said or cause(finding) == rule.said, report
    codes = [finding.code for finding in report.findings if finding.code]
    assert bool(codes) is rule.has_code, report
    for code in codes:
        corrected = defined(code, rule.f.__name__, **vars(sys.modules[rule.f.__module__]))
        fixed = tf.check_gradients(corrected, *rule.args, **rule.options)
        assert {row.verdict for row in fixed.rows} == {"ok"}, fixed
        for value, expected in zip(
            tf.nest.flatten(corrected(*map(np.asarray, rule.args))),
            tf.nest.flatten(rule.f(*map(np.asarray, rule.args))),
            strict=True,
        ):
            np.testing.assert_allclose(value, expected, rtol=1e-6)


def test_the_table_is_large_and_its_causes_are_named():
    assert len(MISTAKES) >= 70
    assert len(RESEARCH) - len(MISTAKES) >= 40
    assert sum(bool(rule.said) for rule in MISTAKES.values()) >= 0.9 * len(MISTAKES)
    assert sum(rule.has_code for rule in MISTAKES.values()) >= 0.5 * len(MISTAKES)
