"""plot_derivatives: curves of a function, its derivatives and references."""

import re

import numpy as np
import pytest

import tinygrad_cg as tf


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_plot_derivatives(pyplot):
    figure = tf.plot_derivatives(tf.sin, 0.0, 3.0, references=(np.sin, np.cos), points=31)
    (axes,) = figure.axes
    curves = {line.get_label(): line.get_ydata() for line in axes.lines}
    x = np.linspace(0.0, 3.0, 31)
    np.testing.assert_allclose(curves["f''"], -np.sin(x), atol=1e-14)
    np.testing.assert_allclose(curves["reference of f'"], np.cos(x))
    assert any(re.fullmatch(r"f', off by at most \d\.\de-\d\d", label) for label in curves)
    assert len(curves) == 5


def test_plot_derivatives_marks_what_is_not_finite(pyplot):
    _, axes = pyplot.subplots()
    figure = tf.plot_derivatives(tf.sqrt, -1.0, 1.0, order=1, points=5, axes=axes)
    assert figure is axes.figure
    marks = {line.get_label(): line.get_xdata() for line in axes.lines}
    np.testing.assert_array_equal(marks["f is not finite"], [-1.0, -0.5])
    np.testing.assert_array_equal(marks["f' is not finite"], [-1.0, -0.5, 0.0])


def test_plot_derivatives_refuses():
    with pytest.raises(TypeError, match="plot_derivatives: f must be a function, got float"):
        tf.plot_derivatives(1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="low must be below high, got 1"):
        tf.plot_derivatives(tf.sin, 1.0, 0.0)
    with pytest.raises(ValueError, match="order must be 0 or more, got -1"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, order=-1)
    with pytest.raises(ValueError, match="points must be 2 or more, got 1"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, points=1)
    with pytest.raises(ValueError, match="2 references for 1 curves"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, order=0, references=(np.sin, np.cos))
    pytest.importorskip("matplotlib").use("agg")
    with pytest.raises(ValueError, match=r"must be elementwise.*got shape \(\)"):
        tf.plot_derivatives(tf.reduce_sum, 0.0, 1.0)
