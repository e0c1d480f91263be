"""plot_derivatives: a function and its derivatives as curves, with references."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.conversion import convert, is_tensor
from .._ops.creation import constant
from .._transforms.functional import elementwise_grad

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
) -> Any:
    """Draw an elementwise function and its first derivatives on one matplotlib figure.

    Parameters
    ----------
    f:
        A function of one tensor, elementwise: ``f(x)[i]`` depends on ``x[i]`` alone.
    low, high, points, dtype:
        Where it is evaluated: ``points`` equally spaced numbers of this dtype.
    order:
        The highest derivative. Each is the derivative of the one before, by reverse mode, so
        rules inside `f` serve as they do under nested tapes.
    references:
        The expected curves, as functions of a NumPy array: of `f`, of its first derivative
        and so on; None leaves one out. They are dashed; the legend has the largest
        difference where both are finite.
    axes:
        Matplotlib axes to draw on; by default a new figure's.

    Returns the figure. Points where a curve is not finite are marked on the lower edge. Needs
    matplotlib, ``pip install tinygrad_cg[plot]``: ImportError without. Raises ValueError for an
    empty interval, a negative order, or too many references.
    """
    _check(f, low, high, order, references, points)
    try:
        from matplotlib import pyplot
    except ImportError:
        words = "plot_derivatives needs matplotlib: pip install 'tinygrad_cg[plot]'"
        raise ImportError(words) from None
    if axes is None:
        _, axes = pyplot.subplots(figsize=(7.0, 4.2), layout="constrained")
    x = np.linspace(low, high, points).astype(dtype)
    derivative = f
    for n in range(order + 1):
        colour = COLOURS[n % len(COLOURS)]
        y = _values(f, derivative, x, n)
        label = _label(n)
        reference = references[n] if n < len(references) else None
        if reference is not None:
            expected = np.broadcast_to(np.asarray(reference(x)), x.shape)
            both = np.isfinite(y) & np.isfinite(expected)
            worst = np.max(np.abs(y - expected)[both], initial=0.0)
            label += f", off by at most {worst:.1e}"
            axes.plot(x, expected, label=f"reference of {_label(n)}", zorder=3, **REFERENCE)
        axes.plot(x, y, color=colour, linewidth=2.0, label=label)
        missing = x[~np.isfinite(y)]
        if missing.size:
            height = np.full(missing.shape, 0.02 + 0.03 * n)
            style = {"color": colour, "transform": axes.get_xaxis_transform()}
            axes.plot(missing, height, "|", label=f"{_label(n)} is not finite", **style)
        derivative = elementwise_grad(derivative)
    axes.set_xlabel("x")
    name = getattr(f, "__name__", "")
    axes.set_title("" if name == "<lambda>" else name)
    axes.grid(alpha=0.3)
    axes.legend()
    return axes.figure


def _check(f: Any, low: Any, high: Any, order: Any, references: Any, points: Any) -> None:
    if not callable(f):
        raise TypeError(f"plot_derivatives: f must be a function, got {type(f).__name__}")
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
