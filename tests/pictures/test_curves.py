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


def test_marks_stand_on_the_edge_that_the_curve_leaves_by(pyplot):
    def f(x):
        return tf.where(x < 0.0, tf.sqrt(x), tf.where(x > 0.0, 1.0 / (x - 1.0), -tf.exp(x / 0.0)))

    _, axes = pyplot.subplots()
    tf.plot_derivatives(f, -1.0, 1.0, order=0, points=3, axes=axes)
    marks = next(line for line in axes.lines if line.get_label() == "f is not finite")
    places = dict(zip(*marks.get_data(), strict=True))
    assert places == {-1.0: 0.0, 0.0: 0.0, 1.0: 1.0}  # NaN, NaN and inf: the lower, the upper
    figure = tf.plot_derivatives(lambda x: -1.0 / x, -1.0, 1.0, order=1, points=3)
    marks = [line for line in figure.axes[0].lines if "not finite" in str(line.get_label())]
    assert [len(line.get_xdata()) for line in marks] == [1, 1]
    (first,), (second,) = marks[0].get_ydata(), marks[1].get_ydata()
    assert first == 0.0  # -inf
    assert 0.9 < second < 1.0  # inf, next to the edge: a row for each curve


def test_one_panel_an_order(pyplot):
    references = (np.exp, np.exp)
    figure = tf.plot_derivatives(tf.exp, 0.0, 1.0, references=references, points=11, panels=True)
    assert len(figure.axes) == 3
    for n, axes in enumerate(figure.axes):
        labels = [line.get_label() for line in axes.lines]
        assert len(labels) == (2 if n < 2 else 1)
        assert labels[-1].startswith("f" + "'" * n)
        np.testing.assert_allclose(axes.lines[-1].get_ydata(), np.exp(np.linspace(0, 1, 11)))
    assert [bool(axes.get_xlabel()) for axes in figure.axes] == [False, False, True]
    _, panels = pyplot.subplots(2)
    assert tf.plot_derivatives(tf.sin, 0.0, 1.0, order=1, axes=panels, panels=True).axes == [
        *panels
    ]
    with pytest.raises(ValueError, match=r"plot_derivatives: needs 3 axes \(one an order\), got 2"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, axes=panels, panels=True)


def test_a_symmetric_log_axis_shows_curves_of_different_size(pyplot):
    figure = tf.plot_derivatives(lambda x: x**4 * 1e4, -1.0, 1.0, order=1, scale="symlog")
    (axes,) = figure.axes
    assert axes.get_yscale() == "symlog"
    assert axes.yaxis.get_transform().linthresh == 100.0
    linear = tf.plot_derivatives(tf.sin, -1.0, 1.0).axes[0]
    assert linear.get_yscale() == "linear"
    zero = tf.plot_derivatives(lambda x: x * 0.0, -1.0, 1.0, scale="symlog").axes[0]
    assert zero.yaxis.get_transform().linthresh > 0


def test_a_symmetric_log_axis_has_no_tick_in_its_linear_part_but_zero(pyplot):
    figure = tf.plot_derivatives(lambda x: x * 1e5, -1.0, 1.0, order=0, scale="symlog")
    (axes,) = figure.axes
    threshold = axes.yaxis.get_transform().linthresh
    assert threshold == pytest.approx(1000.0)
    ticks = np.abs(axes.get_yticks())
    assert set(ticks[ticks < 999.0]) <= {0.0}


def test_the_mark_of_one_point_can_be_seen(pyplot):
    (axes,) = tf.plot_derivatives(lambda x: 1.0 / x, -1.0, 1.0, order=0, points=401).figure.axes
    (mark,) = [line for line in axes.lines if line.get_marker() == "|"]
    assert list(mark.get_xdata()) == [0.0]
    assert mark.get_markersize() >= 8
    assert mark.get_markeredgewidth() >= 1.5


def test_plot_derivatives_refuses():
    with pytest.raises(ValueError, match="scale must be 'linear' or 'symlog', got 'log'"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, scale="log")
    with pytest.raises(TypeError, match=r"plot_derivatives: .* `f` must be a function, got float"):
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
