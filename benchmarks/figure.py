"""Time against size: one program in every library, eager and compiled, both axes logarithmic."""

import importlib
from pathlib import Path
from typing import Any

from benchmarks import THREADS
from benchmarks.peers import Peer
from benchmarks.work import Work

matplotlib: Any = importlib.import_module("matplotlib")
matplotlib.use("agg")
pyplot: Any = importlib.import_module("matplotlib.pyplot")

COLOURS = {
    "tinygrad_cg": "#c0392b",
    "jax": "#7d3c98",
    "torch": "#ca6f1e",
    "tensorflow": "#b7950b",
    "autograd": "#1e8449",
    "numpy": "#566573",
}
"""By package: a library is drawn alike in both panels."""


def draw(measured: dict[Work, dict[Peer, float]], path: Path) -> None:
    """Draw the rows that are given, which differ in size alone, into a file."""
    peers = {peer for times in measured.values() for peer in times}
    same = {"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9}
    matplotlib.rcParams.update(same)
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4.6), sharey=True, layout="constrained")
    for panel, compiled, title in zip(panels, (False, True), ("Eager", "Compiled"), strict=True):
        shown = {peer for peer in peers if peer.compiles == compiled or peer.package == "numpy"}
        _panel(panel, measured, shown)
        panel.set_title(title, loc="left", fontweight="bold")
    panels[0].set_ylabel("microseconds a call")
    figure.suptitle(
        "Value and gradient of sum(log(1 + exp(x))), a custom gradient: float64, "
        f"{THREADS} thread{'s' * (THREADS > 1)} each",
        x=0.01,
        ha="left",
    )
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)
    pyplot.close(figure)


def _panel(panel: Any, measured: dict[Work, dict[Peer, float]], shown: set[Peer]) -> None:
    ends = []
    for peer in shown:
        points = [(work.size, times[peer]) for work, times in measured.items() if peer in times]
        sizes, taken = zip(*sorted(points), strict=True)
        ours = peer.package == "tinygrad_cg"
        panel.loglog(
            sizes,
            [seconds * 1e6 for seconds in taken],
            color=COLOURS.get(peer.package, "#2471a3"),
            linewidth=2.8 if ours else 1.3,
            linestyle="--" if peer.package == "numpy" else "-",
            marker="o",
            markersize=4 if ours else 2.5,
            zorder=3 if ours else 2,
        )
        ends.append((taken[0] * 1e6, peer))
    _labels(panel, ends)
    panel.set_xlabel("elements")
    panel.set_xticks(sorted({work.size for work in measured}))
    panel.minorticks_off()
    panel.grid(which="major", color="#dddddd", linewidth=0.6)
    panel.spines[["top", "right"]].set_visible(False)


def _labels(panel: Any, ends: list[tuple[float, Peer]]) -> None:
    """Return names at the lines' left ends, moved apart where they would meet."""
    distance, last = 1.7, 0.0
    for taken, peer in sorted(ends, key=lambda end: end[0]):
        last = max(taken, last * distance)
        panel.annotate(
            _label(peer),
            (1, last),
            xytext=(-8, 0),
            textcoords="offset points",
            ha="right",
            va="center",
            color=COLOURS.get(peer.package, "#2471a3"),
            fontweight="bold" if peer.package == "tinygrad_cg" else "normal",
            annotation_clip=False,
        )
    panel.set_xlim(left=4e-4)


def _label(peer: Peer) -> str:
    """Return what the panel's title leaves to be said."""
    return peer.package if peer.mode in ("eager", "compiled") else peer.name
