"""All libraries give the same values and gradients of layers, and the table has a row each."""

import sys

import pytest

from benchmarks import layers

pytestmark = pytest.mark.filterwarnings("ignore")  # those of other libraries


@pytest.mark.parametrize("layer", layers.LAYERS, ids=lambda layer: layer.name)
def test_results_agree(layer):
    assert next(iter(layers.runs(layer))) == layers.EAGER.name


def test_main(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["layers", "28 x 28, 1 to", "embedding", "--quick"])
    layers.main()
    printed = capsys.readouterr().out
    assert "convolution, 28 x 28, 1 to 16" in printed
    assert "embedding, 2,048 of 1,000 x 64" in printed
