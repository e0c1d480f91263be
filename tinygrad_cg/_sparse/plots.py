"""Pictures of sparsity patterns and of their colourings, by matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from .colorings import Coloring
from .sparsity import SparsityPattern

_MAX_CELLS = 800  # along an axis of the picture; a larger pattern is drawn in blocks


def show_sparsity(pattern: Any, axes: Any = None) -> Any:
    """Draw a pattern or a colouring: entries of one product have the same colour.

    Parameters
    ----------
    pattern : a `Coloring`, or anything that `SparsityPattern.of` accepts.
    axes : matplotlib axes to draw on; by default those of a new figure.

    Returns the figure. Colours repeat after 20. For a large pattern, each cell of the picture is a
    block of elements and has the colour of one of its entries. Raises ImportError without
    matplotlib.

    Examples
    --------
    >>> arrow = np.eye(9) + (np.arange(9) == 0) + (np.arange(9) == 0)[:, None]
    >>> figure = tf.show_sparsity(tf.jacobian_coloring(arrow))
    """
    try:
        from matplotlib import colormaps, pyplot
    except ImportError:
        words = "show_sparsity needs matplotlib: pip install matplotlib"
        raise ImportError(words) from None
    coloring = pattern if isinstance(pattern, Coloring) else None
    entries = coloring.pattern if coloring is not None else SparsityPattern.of(pattern)
    height, width = entries.shape
    title = f"{height} x {width}, {entries.nnz} entries"
    shades = np.zeros(entries.nnz, int)
    palette = np.array([[0.2, 0.2, 0.2]])
    if coloring is not None:
        strong_first = [*range(0, 20, 2), *range(1, 20, 2)]
        shades, palette = coloring.products(), colormaps["tab20"](strong_first)[:, :3]
        title += f"\n{coloring.count} products, {coloring.mode}"
    size = max(height, width, 1)
    block = -(-size // _MAX_CELLS)
    picture = np.ones((-(-height // block), -(-width // block), 3))
    picture[entries.rows() // block, entries.indices // block] = palette[shades % len(palette)]
    if axes is None:
        _, axes = pyplot.subplots(figsize=(4.5, 4.8), layout="constrained")
    edges = (-0.5, width - 0.5, height - 0.5, -0.5)
    axes.imshow(picture, extent=edges, interpolation="nearest" if block == 1 else "antialiased")
    axes.set(title=title, xlabel="column", ylabel="row")
    axes.locator_params(integer=True)
    return axes.figure
