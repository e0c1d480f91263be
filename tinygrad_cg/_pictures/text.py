"""Sketches as text: Mermaid, for JupyterLab and GitHub, and lines of text."""

from __future__ import annotations

import re
from itertools import cycle

from .sketch import TIMES, Item, Region, Sketch
from .svg import CAPTURED, COLOURS, STYLES

SHAPES = {"watched": ("([", "])"), "finished": ("([", "])"), "custom": ("[[", "]]")}


def mermaid_text(text: str) -> str:
    """Return `text` for a label in quotes, with the characters of Mermaid and HTML escaped."""
    return re.sub(rf"[^\w ,.=()·{TIMES}…:+-]", lambda found: f"#{ord(found.group())};", text)


class Flowchart:
    """A Mermaid flowchart of a sketch; `lines` gives its text."""

    def __init__(self, sketch: Sketch):
        self.sketch = sketch
        self.names = {item: f"n{i}" for i, item in enumerate(sketch.items)}
        self.frames = {frame: f"f{i}" for i, frame in enumerate(sketch.frames)}

    def lines(self) -> list[str]:
        found = ["flowchart TB", *self._inside(None, "  ")]
        for i, (source, target, kind) in enumerate(self.sketch.edges()):
            arrow = "-->" if kind == "operand" else "-.->"
            found.append(f"  {self.names[source]} {arrow} {self.names[target]}")
            if kind == "captured":
                found.append(f"  linkStyle {i} stroke:{CAPTURED}")
        for kind in dict.fromkeys(item.kind for item in self.sketch.items):
            fill, line, width, dashes, _ = STYLES[kind]
            style = f"fill:{fill},stroke:{line},stroke-width:{width}px,color:#1f2328"
            if dashes:
                style += f",stroke-dasharray:{dashes}"
            found.append(f"  classDef {kind} {style}")
        colours = cycle(COLOURS)
        for frame in sorted(self.frames, key=lambda frame: frame.kind == "repeat"):
            style = "fill:#ffffff80,stroke:#5b6770,stroke-dasharray:6 4,color:#1f2328"
            if frame.kind == "tape":
                colour = next(colours)
                style = f"fill:{colour}12,stroke:{colour},color:{colour}"
            found.append(f"  style {self.frames[frame]} {style}")
        return found

    def _inside(self, frame: Region | None, indent: str) -> list[str]:
        edges, home = self.sketch.edges(), self.sketch.home
        found = [indent + self._item(item) for item in self.sketch.items if home[item] is frame]
        for child in self.sketch.frames:
            if child.parent is frame:
                words = f"{child.title}: {child.detail}" if child.detail else child.title
                found.append(f'{indent}subgraph {self.frames[child]}["{mermaid_text(words)}"]')
                ends = [(one in child.extent, two in child.extent) for one, two, _ in edges]
                if all(one == two for one, two in ends):  # Mermaid would cut lines at its border
                    found.append(f"{indent}  direction TB")
                found += self._inside(child, indent + "  ")
                found.append(f"{indent}end")
        return found

    def _item(self, item: Item) -> str:
        also = ", ".join(frame.name for frame in self.sketch.badges(item))
        lines = [item.title, item.detail, self.sketch.note(item), f"also {also}" if also else ""]
        label = "<br>".join(mermaid_text(line) for line in lines if line)
        opening, closing = SHAPES.get(item.kind, ("[", "]"))
        return f'{self.names[item]}{opening}"{label}"{closing}:::{item.kind}'


def lines(sketch: Sketch) -> str:
    """Return a line for each item, operands first: what it is, and who recorded it."""
    names: dict[Item, str] = {}
    for item in sketch.items:
        name = item.name or f"%{len(names)}"
        names[item] = name if name not in names.values() else f"{name}%{len(names)}"
    lines = []
    for frame in sketch.frames:
        if frame.kind == "tape":
            around = f", inside {frame.parent.name}" if frame.parent and frame.parent.name else ""
            lines.append(f"{frame.name}: {frame.detail or 'order unknown'}{around}")
    for item in sketch.items:
        words = ", ".join(frame.name for frame in sketch.tapes(item))
        operands = ", ".join(names[one] for one in item.operands)
        if item.kind == "earlier":
            made = f"{names[item]}: {item.operation}" + (f" on {operands}" if operands else "")
        elif not item.operation:
            same = f" (the same as {operands})" if operands else ""
            made = f"{names[item]}: {item.detail}  {item.kind} by {words}{same}"
        else:
            call = f"{item.operation}({operands}){item.times}"
            made = f"{names[item]} = {call}  {item.detail}  [{words}]"
        lines.append(made)
        if item.role:
            lines.append(f"    {item.kind if item.kind == 'custom' else ''} {item.role}".rstrip())
        if item.captured:
            captured = ", ".join(names[one] for one in item.captured)
            lines.append(f"    uses {captured}, and is not differentiated by it")
    for frame in sketch.frames:
        if frame.kind == "repeat":
            inside = ", ".join(name for item, name in names.items() if item in frame.items)
            lines.append(f"{frame.title}: {inside}")
    return "\n".join(lines)
