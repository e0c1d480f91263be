"""Pictures of patterns and colourings."""

import sys

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.fixture(autouse=True)
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    yield pyplot
    pyplot.close("all")


def shown(figure):
    (image,) = figure.axes[0].images
    return np.asarray(image.get_array())


ARROW = np.eye(9) + (np.arange(9) == 0) + (np.arange(9) == 0)[:, None] > 0


def test_a_pattern():
    figure = tf.show_sparsity(ARROW[:, :8])
    np.testing.assert_array_equal(shown(figure).mean(-1) < 1, ARROW[:, :8])
    assert figure.axes[0].get_title() == "9 x 8, 23 entries"


@pytest.mark.parametrize("mode", ["forward", "reverse", "both", "symmetric"])
def test_entries_of_one_product_have_one_color(mode, pyplot):
    symmetric = mode == "symmetric"
    coloring = tf.hessian_coloring(ARROW) if symmetric else tf.jacobian_coloring(ARROW, mode)
    _, axes = pyplot.subplots()
    figure = tf.show_sparsity(coloring, axes)
    assert figure is axes.figure
    assert axes.get_title() == f"9 x 9, 25 entries\n{coloring.count} products, {mode}"
    picture = shown(figure)
    entries = picture[coloring.pattern.rows(), coloring.pattern.indices]
    colors = {tuple(color): set() for color in entries}
    for color, number in zip(entries, coloring.products(), strict=True):
        colors[tuple(color)].add(int(number))
    assert sorted(colors.values(), key=min) == [{k} for k in range(coloring.count)]


def test_a_large_pattern_is_drawn_in_blocks():
    n = 5_000
    pattern = tf.SparsityPattern.of((np.arange(n + 1), np.arange(n), (n, n)))
    picture = shown(tf.show_sparsity(pattern))
    assert picture.shape == (715, 715, 3)
    np.testing.assert_array_equal(picture.mean(-1) < 1, np.eye(715) > 0)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="show_sparsity needs matplotlib"):
        tf.show_sparsity(ARROW)
