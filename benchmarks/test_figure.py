"""The figure shows each library in its panel."""

import pytest

from benchmarks.peers import PEERS
from benchmarks.work import WORK


def test_figure(tmp_path):
    pytest.importorskip("matplotlib")
    from benchmarks import figure

    works = [work for work in WORK if work.program == "log1pexp" and work.name.endswith("f64")]
    assert len(works) > 5
    made_up = {w: dict.fromkeys(PEERS, 1e-5 + 1e-9 * w.size) for w in works}
    figure.draw(made_up, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert text.count(">tinygrad_cg<") == 2  # eager, and compiled
    for name in ("jax", "jax jit", "torch compile", "tensorflow XLA", "autograd"):
        assert text.count(f">{name}<") == 1, name
