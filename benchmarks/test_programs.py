"""Whole programs print what TensorFlow prints, and their benchmark has a row for each."""

import sys

import numpy as np
import pytest

from benchmarks.programs import STEPS, growth, path
from benchmarks.programs.__main__ import IN_JAX, NUMBER, main
from benchmarks.programs.process import OURS, finish, run

RECORDED = {
    name: text.partition("# What TensorFlow 2.21 prints:\n# ")[2]
    for name in STEPS
    if "# What TensorFlow" in (text := path(name).read_text("utf-8"))
}


def test_there_are_16():
    assert len(STEPS) == 16
    assert len(RECORDED) == 10  # the others are guides, which have a test
    assert len(IN_JAX) == 8


def numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("name", RECORDED)
def test_a_program_prints_what_tensorflow_prints(name):
    printed, step = run(OURS, name)
    np.testing.assert_allclose(numbers(printed), numbers(RECORDED[name]), 1e-4, 1.1e-4)
    finish(step())


@pytest.mark.parametrize("name", IN_JAX)
def test_a_program_in_jax_prints_it_too(name):
    pytest.importorskip("jax")
    printed, step = run("jax", name)
    np.testing.assert_allclose(numbers(printed), numbers(RECORDED[name]), 1e-4, 1.1e-4)
    finish(step())


def test_a_guide_has_another_step():
    _, step = run(OURS, "maml")
    finish(step())


def test_main(monkeypatch, capsys):
    arguments = ["programs", "newton_cg", "--rounds", "1", "--seconds", "0.01", "--peers"]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    rows = {name: cells for name, *cells in lines}
    assert len(rows["newton_cg"]) == 4


def test_programs_that_grow(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["growth", "order", "--most", "1"])
    growth.main()
    assert "order of a derivative     1" in capsys.readouterr().out


def test_an_unknown_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["programs", "nothing"])
    with pytest.raises(SystemExit):
        main()
    assert "no program nothing: choose from flows, lstm" in capsys.readouterr().err
