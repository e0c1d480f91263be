"""Sketches as text: Mermaid, for JupyterLab and GitHub, and lines of text."""

from __future__ import annotations

import re
from itertools import cycle

from .drawing import COLOURS, LINES, STYLES
from .sketch import TIMES, Item, Region, Sketch

SHAPES = dict.fromkeys(("watched", "finished", "constant"), ("([", "])")) | {"custom": ("[[", "]]")}


def mermaid_text(text: str) -> str:
    """Return `text` for a label in quotes, with the characters of Mermaid and HTML escaped."""
    return re.sub(rf"[^\w ,.=()·{TIMES}…:+-]", lambda match: f"#{ord(match.group())};", text)


class Flowchart:
    """A Mermaid flowchart of a sketch; `lines` gives its text."""

    def __init__(self, sketch: Sketch, sideways: bool = False):
        self.sketch = sketch
        self.direction = "LR" if sideways else "TB"
        self.names = {item: f"n{i}" for i, item in enumerate(sketch.items)}
        self.frames = {frame: f"f{i}" for i, frame in enumerate(sketch.frames)}

    def lines(self) -> list[str]:
        lines = [f"flowchart {self.direction}", *self._inside(None, "  ")]
        edges = self.sketch.edges()
        for i, (source, target, kind) in enumerate(edges):
            arrow = {"operand": "-->", "captured": "-.->"}.get(kind, "==>")
            if kind == "derivative" and (words := target.derivative_of[source]):
                arrow = f'== "{mermaid_text(words)}" ==>'
            lines.append(f"  {self.names[source]} {arrow} {self.names[target]}")
            if kind != "operand":
                lines.append(f"  linkStyle {i} stroke:{LINES[kind][0]}")
        for source, target, _ in self.sketch.loops():
            lines.append(f'  {self.names[source]} -- "next" --> {self.names[target]}')
        for kind in dict.fromkeys(item.kind for item in self.sketch.items):
            fill, line, width, dashes, _ = STYLES[kind]
            ink = "#6b747c,font-size:11px" if kind == "constant" else "#1f2328"
            style = f"fill:{fill},stroke:{line},stroke-width:{width}px,color:{ink}"
            if dashes:
                style += f",stroke-dasharray:{dashes}"
            lines.append(f"  classDef {kind} {style}")
        tapes = [frame for frame in self.frames if frame.kind == "tape"]
        colours = dict(zip(tapes, cycle(COLOURS), strict=False))
        for frame in self.frames:
            style = "fill:#ffffff80,stroke:#5b6770,stroke-dasharray:6 4,color:#1f2328"
            if frame.kind == "tape":
                colour = colours[frame]
                style = f"fill:{colour}12,stroke:{colour},color:{colour}"
            elif frame.kind == "backward" and frame.tape in colours:
                style = f"fill:#ffffff80,stroke:{colours[frame.tape]},stroke-dasharray:2 3"
            elif frame.kind in ("module", "step"):
                style = "fill:#5b677012,stroke:#aab1b8,color:#57606a"
            lines.append(f"  style {self.frames[frame]} {style}")
        return lines

    def _inside(self, frame: Region | None, indent: str) -> list[str]:
        edges, home = self.sketch.edges(), self.sketch.home
        lines = [indent + self._item(item) for item in self.sketch.items if home[item] is frame]
        for child in self.sketch.frames:
            if child.parent is frame:
                words = f"{child.title}: {child.detail}" if child.detail else child.title
                lines.append(f'{indent}subgraph {self.frames[child]}["{mermaid_text(words)}"]')
                inside = [
                    (source in child.extent, target in child.extent) for source, target, _ in edges
                ]
                if all(begins == ends for begins, ends in inside):  # Mermaid would cut other lines
                    lines.append(f"{indent}  direction {self.direction}")
                lines += self._inside(child, indent + "  ")
                lines.append(f"{indent}end")
        return lines

    def _item(self, item: Item) -> str:
        also = ", ".join(frame.name for frame in self.sketch.badges(item))
        lines = [item.title, item.detail, self.sketch.note(item), f"also {also}" if also else ""]
        label = "<br>".join(mermaid_text(line) for line in lines if line)
        opening, closing = SHAPES.get(item.kind, ("[", "]"))
        return f'{self.names[item]}{opening}"{label}"{closing}:::{item.kind}'


def lines(sketch: Sketch) -> str:
    """Return a line for each item, operands first: what it is, and who recorded it."""
    names: dict[Item, str] = {}
    number = 0
    for item in sketch.items:
        if item.kind in ("constant", "update"):
            names[item] = item.title
            continue
        name = item.name or f"%{number}"
        names[item] = name if name not in names.values() else f"{name}%{number}"
        number += 1
    lines = []
    for frame in sketch.frames:
        if frame.kind == "tape":
            around = f", inside {frame.parent.name}" if frame.parent and frame.parent.name else ""
            lines.append(f"{frame.name}: {frame.detail or 'order unknown'}{around}")
    for item in sketch.items:
        if item.kind != "constant":
            lines += _item_lines(sketch, item, names)
    for frame in sketch.frames:
        if frame.kind != "tape":
            kept = [
                item for item in sketch.items if item in frame.items and item.kind != "constant"
            ]
            remark = f" ({frame.detail})" if frame.detail else ""
            lines.append(f"{frame.title}{remark}: {', '.join(names[item] for item in kept)}")
    return "\n".join(lines)


def _item_lines(sketch: Sketch, item: Item, names: dict[Item, str]) -> list[str]:
    """Return the line of an item, and those of remarks on it."""
    words = ", ".join(frame.name for frame in sketch.tapes(item))
    operands = ", ".join(names[operand] for operand in item.operands)
    if item.kind == "update":
        losses = ", ".join(names[loss] for loss in item.derivative_of)
        return [item.title + (f" by the derivative of {losses}" if losses else "")]
    if item.kind == "earlier":
        lines = [f"{names[item]}: {item.operation}" + (f" on {operands}" if operands else "")]
    elif not item.operation:
        same = f" (the same as {operands})" if operands else ""
        lines = [f"{names[item]}: {item.detail}  {item.kind} by {words}{same}"]
    else:
        call = f"{item.operation}({operands}){item.times}"
        recorded = f"  [{words}]" if words else ""
        lines = [f"{names[item]} = {call}  {item.detail}{recorded}"]
    if item.role:
        lines.append(f"    {item.kind if item.kind == 'custom' else ''} {item.role}".rstrip())
    if item.captured:
        captured = ", ".join(names[source] for source in item.captured)
        lines.append(f"    uses {captured}, but is not differentiated with respect to it")
    for loss, label in item.derivative_of.items():
        lines.append(f"    {f'is {label}' if label else f'is a derivative of {names[loss]}'}")
    return lines
