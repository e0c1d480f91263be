"""plot_derivatives: a function and its derivatives as curves, with references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..._core.conversion import convert, is_tensor
from ..._ops.creation import constant
from ..._ops.validation import check_function
from ..._transforms.functional import elementwise_grad

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8c6d31", "#56b4e9")  # Okabe and Ito

REFERENCE = {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 4))}


def plot_derivatives(
    f: Callable[..., Any],
    low: float,
    high: float,
    order: int = 2,
    references: Sequence[Callable[..., Any] | None] = (),
    points: int = 400,
    dtype: Any = np.float64,
    axes: Any = None,
    panels: bool = False,
    scale: str = "linear",
) -> Any:
    """Draw an elementwise function and its first derivatives on one matplotlib figure.

    Parameters
    ----------
    f:
        A function of one tensor, elementwise: ``f(x)[i]`` depends only on ``x[i]``.
    low, high, points, dtype:
        The points: ``points`` equally spaced numbers of this dtype.
    order:
        The highest derivative. Each is the derivative of the previous curve, by reverse mode, so
        rules inside `f` are used as under nested tapes.
    references:
        The expected curves, as functions of a NumPy array: of `f`, of its first derivative and so
        on; None leaves one out. They are dashed; the legend has the largest difference between
        finite values.
    axes:
        Matplotlib axes to draw on, with `panels` a sequence of ``order + 1``; by default those of
        a new figure.
    panels:
        True for one panel per order, stacked with a shared x axis.
    scale:
        "linear", or "symlog" for a symmetric-log y axis: linear near zero, logarithmic beyond. The
        linear part ends at a hundredth of the top of the smallest curve of a panel, rounded
        to a power of ten, and at least at 1e-12.

    Returns the figure. Points where a curve is not finite are marked on the edge: on the upper edge
    for inf, on the lower edge for -inf and NaN. Needs matplotlib, ``pip install matplotlib``:
    ImportError without. Raises ValueError for an empty interval, a negative order, too many
    references, an unknown scale, or a wrong number of axes.

    >>> figure = tf.plot_derivatives(tf.exp, 0.0, 9.0, order=3, panels=True, scale="symlog")
    """
    _check(f, low, high, order, references, points)
    if scale not in ("linear", "symlog"):
        raise ValueError(f"plot_derivatives: scale must be 'linear' or 'symlog', got {scale!r}")
    try:
        from matplotlib import pyplot
    except ImportError:
        words = "plot_derivatives needs matplotlib: pip install matplotlib"
        raise ImportError(words) from None
    count = order + 1 if panels else 1
    if axes is None:
        size = (7.0, 1.2 + 2.0 * count if panels else 4.2)
        _, axes = pyplot.subplots(count, sharex=True, figsize=size, layout="constrained")
    subplots = list(np.ravel(axes))
    if len(subplots) != count:
        raise ValueError(
            f"plot_derivatives: needs {count} axes ({'one an order' if panels else 'panels=False'})"
            f", got {len(subplots)}"
        )
    x = np.linspace(low, high, points).astype(dtype)
    derivative = f
    largest: list[list[float]] = [[] for _ in subplots]
    for n in range(order + 1):
        subplot = subplots[n] if panels else subplots[0]
        y = _values(f, derivative, x, n)
        expected = None
        if n < len(references) and (reference := references[n]) is not None:
            expected = np.broadcast_to(np.asarray(reference(x)), x.shape)
        _draw(subplot, x, y, expected, n, 0 if panels else n)
        sizes = np.abs(y[np.isfinite(y)]).astype(np.float64)
        largest[n if panels else 0].append(float(np.max(sizes, initial=0.0)))
        derivative = elementwise_grad(derivative)
    for subplot, tops in zip(subplots, largest, strict=True):
        if scale == "symlog":
            least = min([top for top in tops if top > 0], default=1.0)
            exponent = np.round(np.log10(max(least * 1e-2, 1e-12)))
            threshold = 10.0**exponent
            if np.log(threshold) / np.log(10.0) < exponent:  # as matplotlib computes decades
                threshold *= 1 + 1e-12
            subplot.set_yscale("symlog", linthresh=threshold)
            subplot.yaxis.get_major_locator().set_params(numticks=7)
        subplot.grid(alpha=0.3)
        subplot.legend()
    subplots[-1].set_xlabel("x")
    name = getattr(f, "__name__", "")
    subplots[0].set_title("" if name == "<lambda>" else name)
    return subplots[0].figure


def _draw(axes: Any, x: np.ndarray, y: np.ndarray, expected: Any, order: int, row: int) -> None:
    """Draw one curve, its reference, and marks on the edges where it is not finite."""
    colour, label = COLOURS[order % len(COLOURS)], _label(order)
    words = label
    if expected is not None:
        both = np.isfinite(y) & np.isfinite(expected)
        worst = np.max(np.abs(y - expected)[both], initial=0.0)
        words += f", off by at most {worst:.1e}"
        axes.plot(x, expected, label=f"reference of {label}", zorder=3, **REFERENCE)
    axes.plot(x, y, color=colour, linewidth=2.0, label=words)
    bad = ~np.isfinite(y)
    if bad.any():
        inside = 0.035 * row  # so that the marks of several curves do not hide each other
        height = np.where(y[bad] > 0, 1.0 - inside, inside)
        style = {"color": colour, "transform": axes.get_xaxis_transform(), "clip_on": False}
        style |= {"markersize": 9.0, "markeredgewidth": 1.8, "zorder": 4}  # one point is seen, too
        axes.plot(x[bad], height, "|", label=f"{label} is not finite", **style)


def _check(f: Any, low: Any, high: Any, order: Any, references: Any, points: Any) -> None:
    check_function("plot_derivatives", f)
    if not low < high:
        raise ValueError(f"plot_derivatives: low must be below high, got {low} and {high}")
    if not isinstance(order, int) or order < 0:
        raise ValueError(f"plot_derivatives: order must be 0 or more, got {order!r}")
    if not isinstance(points, int) or points < 2:
        raise ValueError(f"plot_derivatives: points must be 2 or more, got {points!r}")
    if len(references) > order + 1:
        raise ValueError(
            f"plot_derivatives: {len(references)} references for {order + 1} curves (f and its "
            f"derivatives to order {order}): pass fewer, or a higher order"
        )


def _values(f: Any, derivative: Any, x: np.ndarray, order: int) -> np.ndarray:
    y = derivative(constant(x))
    if not is_tensor(y) or tuple(y.shape) != x.shape:
        got = f"shape {tuple(y.shape)}" if is_tensor(y) else type(y).__name__
        name = getattr(f, "__name__", "f")
        raise ValueError(
            f"plot_derivatives: {name} must be elementwise, and return a tensor of shape "
            f"{x.shape} here, got {got} (order {order})"
        )
    return convert(y).numpy()


def _label(order: int) -> str:
    return "f" + "'" * order if order <= 3 else f"f^({order})"
