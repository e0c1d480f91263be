"""Sketches as SVG: one text that needs no other file, font or program."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from .layout import LayeredLayout, Point
from .sketch import Item, Region, Sketch

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
TITLE, DETAIL = 13.0, 11.0  # font sizes
COLOURS = ("#0072b2", "#009e73", "#cc79a7", "#56b4e9", "#7a5195", "#8c6d31")  # of tapes
STYLES = {  # fill, line, width of the line, dashes, words of the legend
    "watched": ("#e7f4ec", "#2e7d4f", 1.5, "", "watched tensor"),
    "operation": ("#ffffff", "#5b6770", 1.1, "", "operation"),
    "custom": ("#fff1d0", "#d17b00", 2.0, "", "custom gradient"),
    "bypassed": ("#fdf6e6", "#d17b00", 1.4, "4 3", "rule not used"),
    "finished": ("#f3f3f3", "#9aa0a6", 1.1, "2 3", "of a finished tape"),
    "earlier": ("#f3f3f3", "#5b6770", 1.1, "", "left out"),
}
NARROW, WIDE = "ijlrtfI.,:;'|!()[]{} ", "mwMWOQG@%—…"
CAPTURED = "#b3261e"


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return about how wide a text is in Helvetica and similar fonts."""
    units = sum(0.31 if one in NARROW else 0.87 if one in WIDE else 0.575 for one in text)
    return units * size * (1.06 if bold else 1.0)


class Drawing:
    """The drawing of a sketch; `text` gives the SVG document."""

    def __init__(self, sketch: Sketch, title: str):
        self.sketch = sketch
        self.title = title
        tapes = [frame for frame in sketch.frames if frame.kind == "tape"]
        self.colours = {frame: COLOURS[i % len(COLOURS)] for i, frame in enumerate(tapes)}
        self.layout = LayeredLayout(sketch, self._size, self._heading)

    def _size(self, item: Item) -> tuple[float, float]:
        lines = self._lines(item)
        width = max(text_width(*line) for line in lines) + 14 * len(self.sketch.badges(item))
        height = sum(size + 5 for _, size, _ in lines) + 9
        return max(width + 26, 56.0), height

    def _lines(self, item: Item) -> list[tuple[str, float, bool]]:
        """Return the texts in an item's box, with their sizes, and whether they are bold."""
        others = (item.detail, self.sketch.note(item))
        return [(item.title, TITLE, True), *((text, DETAIL, False) for text in others if text)]

    def _heading(self, frame: Region) -> tuple[float, float]:
        is_tape = frame.kind == "tape"
        words = f"{frame.title}  {frame.detail}" if is_tape else frame.title
        return text_width(words, TITLE, True) + 8, 20.0 if is_tape else 14.0

    def text(self) -> str:
        layout = self.layout
        parts = [self._frame(frame) for frame in self.sketch.frames]
        parts += [self._edge(points, kind) for _, _, kind, points in layout.paths]
        parts += [self._title(frame) for frame in self.sketch.frames]
        parts += [self._item(item) for item in self.sketch.items]
        legend, width = self._legend()
        width, height = max(layout.width, width), layout.height + 30
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" role="img">\n'
            f"<title>{escape(self.title)}</title>\n"
            "<defs>" + _arrow("operand", "#5b6770") + _arrow("captured", CAPTURED) + "</defs>\n"
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>\n'
            + "\n".join(parts)
            + f'\n<g transform="translate(0 {layout.height:.0f})">\n{legend}\n</g>\n</svg>\n'
        )

    def _frame(self, frame: Region) -> str:
        style = 'fill="#ffffff" fill-opacity="0.5" stroke="#5b6770" stroke-dasharray="6 4"'
        if frame.kind == "tape":
            colour = self.colours[frame]
            style = f'fill="{colour}" fill-opacity="0.07" stroke="{colour}" stroke-width="1.6"'
        return _rectangle(*self.layout.boxes[frame], f'rx="9" {style}')

    def _title(self, frame: Region) -> str:
        x, y, width, _ = self.layout.boxes[frame]
        halo = (
            f'font-size="{TITLE}" paint-order="stroke" stroke="#ffffff" '
            'stroke-opacity="0.6" stroke-width="3"'
        )
        if frame.kind == "repeat":
            at = f'x="{x + width - 10:.1f}" y="{y + 18:.1f}"'
            words = f' font-weight="bold" text-anchor="end" fill="#333">{escape(frame.title)}'
        else:
            at = f'x="{x + 13:.1f}" y="{y + 20:.1f}"'
            words = (
                f' fill="{self.colours[frame]}"><tspan font-weight="bold">{escape(frame.title)}'
                f'</tspan><tspan dx="8" font-size="{DETAIL}">{escape(frame.detail)}</tspan>'
            )
        return f"<text {at} {halo}{words}</text>"

    def _item(self, item: Item) -> str:
        x, y, width, height = self.layout.boxes[item]
        fill, line, thick, dashes, _ = STYLES[item.kind]
        radius = height / 2 if item.kind in ("watched", "finished") else 5
        badges = self.sketch.badges(item)
        parts = [f'<g class="{item.kind}"><title>{escape(self._hover(item))}</title>']
        outline = f'rx="{radius:.1f}" fill="{fill}" stroke="{line}" stroke-width="{thick}"'
        if item.count > 1:
            parts.append(_rectangle(x + 5, y + 5, width, height, outline))
        parts.append(_rectangle(x, y, width, height, outline + _dashed(dashes)))
        middle = x + (width - 14 * len(badges)) / 2
        base = y + 4.5
        for text, points, bold in self._lines(item):
            base += points + 4
            weight = ' font-weight="bold"' if bold else ""
            colour = "#1f2328" if bold else "#57606a"
            if text == self.sketch.note(item):
                colour = "#9a5a00"
            parts.append(
                f'<text x="{middle:.1f}" y="{base:.1f}" font-size="{points}"{weight} '
                f'text-anchor="middle" fill="{colour}">{escape(text)}</text>'
            )
        for i, frame in enumerate(badges):
            parts.append(
                f'<circle cx="{x + width - 14 * i - 13:.1f}" cy="{y + height / 2:.1f}" r="5" '
                f'fill="{self.colours[frame]}"><title>{escape(frame.title)}</title></circle>'
            )
        return "\n".join([*parts, "</g>"])

    def _hover(self, item: Item) -> str:
        """Return the text under the pointer, where the picture stands in a page."""
        names = [frame.name for frame in self.sketch.tapes(item)]
        recorded = "watched by " if item.kind == "watched" else "recorded by "
        words = [item.title, item.detail, recorded + ", ".join(names) if names else "", item.role]
        return "; ".join(word for word in words if word)

    def _edge(self, points: list[Point], kind: str) -> str:
        steps = ["M{:.1f} {:.1f}".format(*points[0])]
        for (x0, y0), (x1, y1) in pairwise(points):
            half = (y0 + y1) / 2
            bend = f"C{x0:.1f} {half:.1f} {x1:.1f} {half:.1f} {x1:.1f} {y1:.1f}"
            steps.append(f"L{x1:.1f} {y1:.1f}" if abs(x0 - x1) < 0.5 else bend)
        colour, dashes = ("#5b6770", "") if kind == "operand" else (CAPTURED, "5 4")
        return (
            f'<path class="{kind}" d="{" ".join(steps)}" fill="none" stroke="{colour}" '
            f'stroke-width="1.3"{_dashed(dashes)} marker-end="url(#{kind})"/>'
        )

    def _legend(self) -> tuple[str, float]:
        kinds = {item.kind for item in self.sketch.items}
        x, parts = 16.0, []
        for kind, (fill, line, thick, dashes, words) in STYLES.items():
            if kind in kinds:
                radius = 6 if kind in ("watched", "finished") else 3
                parts.append(
                    f'<rect x="{x:.1f}" y="4" width="20" height="12" rx="{radius}" fill="{fill}" '
                    f'stroke="{line}" stroke-width="{thick}"{_dashed(dashes)}/>'
                )
                x = _words(parts, x + 26, words)
        if any(kind == "captured" for *_, kind in self.sketch.edges()):
            parts.append(
                f'<path d="M{x:.1f} 10h22" stroke="{CAPTURED}" stroke-width="1.3" '
                'stroke-dasharray="5 4"/>'
            )
            x = _words(parts, x + 28, "used, but not differentiated")
        return "\n".join(parts), x


def _rectangle(x: float, y: float, width: float, height: float, style: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {style}/>'


def _dashed(dashes: str) -> str:
    return f' stroke-dasharray="{dashes}"' if dashes else ""


def _words(parts: list[str], x: float, words: str) -> float:
    parts.append(f'<text x="{x:.1f}" y="14" font-size="{DETAIL}" fill="#57606a">{words}</text>')
    return x + text_width(words, DETAIL) + 18


def _arrow(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{colour}"/></marker>'
    )
