"""The benchmark of memory runs, and all of its programs differ."""

import sys

import numpy as np

import tinygrad_cg as tf
from benchmarks import memory


def test_programs_differ():
    x = tf.constant(np.linspace(0.1, 1, 5))
    texts = {"".join(memory.program(number).kernels(x)[1:]) for number in range(3)}
    assert len(texts) == 3


def test_main(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["memory", "--programs", "2"])
    memory.main()
    printed = capsys.readouterr().out
    assert "2 made, run once and deleted" in printed
    assert "2 held" in printed
