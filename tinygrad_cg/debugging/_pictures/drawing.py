"""Drawings of sketches: boxes, lines and texts, on a canvas: SVG, or a matplotlib figure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import hypot, inf
from typing import NamedTuple

from .fonts import text_width
from .layout import SHADOW, LayeredLayout, Point
from .sketch import Item, Region, Sketch

TITLE, DETAIL, SMALL = 13.0, 11.0, 10.0  # font sizes
COLOURS = ("#0067a3", "#00785a", "#a3417a", "#6b4fa0", "#8a5a00", "#3a7391")  # of tapes
STYLES = {  # fill, line, width of the line, dashes, words of the legend
    "watched": ("#e7f4ec", "#2e7d4f", 1.5, "", "watched tensor"),
    "operation": ("#ffffff", "#5b6770", 1.1, "", "operation"),
    "custom": ("#fff1d0", "#d17b00", 2.0, "", "custom gradient"),
    "bypassed": ("#fdf6e6", "#d17b00", 1.4, "4 3", "rule not used"),
    "constant": ("#f1f2f3", "#d5d8db", 0.6, "", "not watched"),
    "finished": ("#f3f3f3", "#9aa0a6", 1.1, "2 3", "of a finished tape"),
    "update": ("#eef1fb", "#4c5fae", 1.5, "", "update of a Variable"),
    "earlier": ("#f3f3f3", "#5b6770", 1.1, "", "left out"),
}
LINES = {  # colour, width, dashes, words of the legend
    "operand": ("#5b6770", 1.3, "", ""),
    "constant": ("#b4b9be", 0.9, "", ""),
    "captured": ("#b3261e", 1.3, "5 4", "used, but not differentiated"),
    "derivative": ("#6a3fa0", 1.5, "1.5 3", "derivative"),
    "loop": ("#5b6770", 1.3, "7 2.5", "to the next repetition"),
}
ROUND = ("watched", "finished", "constant")
INK, GREY, AMBER, WHITE = "#1f2328", "#57606a", "#9a5a00", "#ffffff"
KAPPA = 0.5523  # the cubic curve nearest to a quarter of a circle

Step = tuple[str, tuple[float, ...]]
"""A step of a path: "M", "L", "C" or "Z", and its coordinates, as in SVG."""
Box = tuple[float, float, float, float]
"""x, y, width and height."""


class Style(NamedTuple):
    """The style of a shape; `opacity` belongs to its filling."""

    fill: str = ""
    line: str = ""
    width: float = 1.0
    dashes: str = ""
    opacity: float = 1.0


class Canvas:
    """A canvas, whose coordinates are pixels from the top left corner."""

    path: Callable[[list[Step], Style], None]
    text: Callable[[float, float, str, float, str, bool, str], None]

    def box(self, box: Box, radius: float, style: Style) -> None:
        self.path(rectangle(box, radius), style)

    def dot(self, x: float, y: float, radius: float, style: Style) -> None:
        self.box((x - radius, y - radius, 2 * radius, 2 * radius), radius, style)

    def begin(self, kind: str, hover: str) -> None:
        """Begin an item, with its text under the pointer if the canvas shows such texts."""

    def end(self) -> None:
        """End an item."""


class Drawing:
    """The drawing of a sketch, `width` by `height` pixels; `draw` puts it on a canvas.

    With `sideways`, layers go from left to right.
    """

    def __init__(self, sketch: Sketch, sideways: bool = False, legend: bool = True):
        self.sketch = sketch
        self.sideways = sideways
        tapes = [frame for frame in sketch.frames if frame.kind == "tape"]
        self.colours: dict[Region | None, str] = {
            frame: COLOURS[i % len(COLOURS)] for i, frame in enumerate(tapes)
        }
        self.layout = LayeredLayout(sketch, self._size, self._heading, sideways, _label_size)
        self.width, self.height = self.layout.width, self.layout.height
        self.key: list[list[tuple[str, str, float]]] = self._key() if legend else []
        self.height += 20.0 * len(self.key) + (8.0 if self.key else 0.0)

    # Sizes -----------------------------------------------------------------------------------

    def _size(self, item: Item) -> tuple[float, float]:
        lines = self._lines(item)
        width = max(text_width(*line) for line in lines) + 14 * len(self.sketch.badges(item))
        height = sum(size + 5 for _, size, _ in lines)
        if item.kind == "constant":
            return width + 16, height + 4
        return max(width + 26, 56.0), height + 9

    def _lines(self, item: Item) -> list[tuple[str, float, bool]]:
        """Return the texts in an item's box, with their sizes, and whether they are bold."""
        if item.kind == "constant":
            return [(text, SMALL, False) for text in (item.title, item.detail) if text]
        others = (item.detail, self.sketch.note(item))
        return [(item.title, TITLE, True), *((text, DETAIL, False) for text in others if text)]

    def _heading(self, frame: Region) -> tuple[float, float]:
        if frame.kind == "repeat":
            return text_width(frame.title, TITLE, True) + 8, 14.0
        width = text_width(frame.title, TITLE if frame.kind == "tape" else DETAIL, True)
        return width + (8 + text_width(frame.detail, DETAIL) if frame.detail else 0.0), 20.0

    def _colour(self, frame: Region) -> str:
        """Return the colour of a tape, or of the tape that something belongs to."""
        return self.colours.get(frame) or self.colours.get(frame.tape, "#57606a")

    # Drawing ---------------------------------------------------------------------------------

    def draw(self, canvas: Canvas) -> None:
        layout = self.layout
        canvas.path(rectangle((0.0, 0.0, self.width, self.height), 0.0), Style(WHITE))
        for frame in self.sketch.frames:
            canvas.box(layout.boxes[frame], 9.0, self._frame_style(frame))
        for source, _, kind, points in layout.paths:
            kind = "constant" if source.kind == "constant" else kind
            self._draw_line(canvas, _smooth(points, self.sideways), kind)
        for _, _, _, points in layout.loops:
            self._draw_line(canvas, _rounded(points), "loop")
        for frame in self.sketch.frames:
            self._draw_title(canvas, frame)
        for item in self.sketch.items:
            self._draw_item(canvas, item)
        for source, target, kind, points in layout.paths:
            if kind == "derivative" and (words := target.derivative_of[source]):
                self._draw_label(canvas, points, words)
        self._draw_key(canvas)

    def _frame_style(self, frame: Region) -> Style:
        colour = self._colour(frame)
        if frame.kind == "tape":
            return Style(colour, colour, 1.6, opacity=0.07)
        if frame.kind == "backward":
            return Style(WHITE, colour, 1.1, "2 3", 0.6)
        if frame.kind == "repeat":
            return Style(WHITE, "#5b6770", 1.0, "6 4", 0.5)
        return Style("#5b6770", "#aab1b8", 0.9, opacity=0.06)

    def _draw_title(self, canvas: Canvas, frame: Region) -> None:
        x, y, width, _ = self.layout.boxes[frame]
        if frame.kind == "repeat":
            canvas.text(x + width - 10, y + 18, frame.title, TITLE, "#333333", True, "end")
            return
        colour, strong = self._colour(frame), frame.kind == "tape"
        size = TITLE if strong else DETAIL
        at = self.layout.title_left(frame)
        canvas.text(at, y + 20, frame.title, size, colour, True, "start")
        if frame.detail:
            at += text_width(frame.title, size, True) + 8
            canvas.text(at, y + 20, frame.detail, DETAIL, colour, False, "start")

    def _draw_item(self, canvas: Canvas, item: Item) -> None:
        x, y, width, height = self.layout.boxes[item]
        style = Style(*STYLES[item.kind][:4])
        radius = height / 2 if item.kind in ROUND else 5.0
        badges = self.sketch.badges(item)
        canvas.begin(item.kind, self._hover(item))
        if item.count > 1:
            canvas.box((x + SHADOW, y + SHADOW, width, height), radius, style)
        canvas.box((x, y, width, height), radius, style)
        middle = x + (width - 14 * len(badges)) / 2
        small = item.kind == "constant"
        base = y + (2.0 if small else 4.5) - 4.2  # so that capitals are centred
        for text, size, bold in self._lines(item):
            base += size + 5
            colour = INK if bold else "#6b747c" if small else GREY
            if text == self.sketch.note(item):
                colour = AMBER
            canvas.text(middle, base, text, size, colour, bold, "middle")
        for i, frame in enumerate(badges):
            at = x + width - 14 * i - 13
            canvas.dot(at, y + height / 2, 5, Style(self._colour(frame)))
        canvas.end()

    def _hover(self, item: Item) -> str:
        """Return the text that a page shows under the pointer."""
        names = [frame.name for frame in self.sketch.tapes(item)]
        recorded = "watched by " if item.kind == "watched" else "recorded by "
        words = [item.title, item.detail, recorded + ", ".join(names) if names else "", item.role]
        return "; ".join(word for word in words if word)

    def _draw_line(self, canvas: Canvas, steps: list[Step], kind: str) -> None:
        colour, width, dashes, _ = LINES[kind]
        canvas.path(steps, Style("", colour, width, dashes))
        if kind != "constant":
            canvas.path(_arrow(steps), Style(colour))

    def _draw_label(self, canvas: Canvas, points: list[Point], words: str) -> None:
        """Write on the line, in the middle of its longest straight part."""
        along = 0 if self.sideways else 1
        best, run = (0.0, points[0], points[0]), points[0]
        for before, after in pairwise(points):
            if abs(after[1 - along] - before[1 - along]) > 0.5:
                run = after
            best = max(best, (abs(after[along] - run[along]), run, after))
        _, (x0, y0), (x1, y1) = best
        if best[0] < 24:  # without a straight part: half way
            (x0, y0), (x1, y1) = points[len(points) // 2 - 1 :][:2]
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        colour, width = LINES["derivative"][0], text_width(words, DETAIL, True)
        behind = rectangle((x - width / 2 - 3, y - 8, width + 6, 16), 4.0)
        canvas.path(behind, Style(WHITE, opacity=0.9))
        canvas.text(x, y + 4, words, DETAIL, colour, True, "middle")

    # The legend ------------------------------------------------------------------------------

    def _key(self) -> list[list[tuple[str, str, float]]]:
        """Return the rows of the legend: what to draw, the words, and where."""
        kinds = dict.fromkeys(item.kind for item in self.sketch.items)
        entries = [(kind, style[4]) for kind, style in STYLES.items() if kind in kinds]
        lines = {kind for *_, kind in self.sketch.edges()}
        lines |= {"loop"} if self.layout.loops else set()
        entries += [(kind, style[3]) for kind, style in LINES.items() if kind in lines and style[3]]
        widths = [text_width(words, DETAIL) + 46 for _, words in entries]
        room = max(self.width - 16, *widths) if widths else inf
        rows: list[list[tuple[str, str, float]]] = [[]]
        x = 16.0
        for (kind, words), width in zip(entries, widths, strict=True):
            if rows[-1] and x + width > room + 16:
                rows.append([])
                x = 16.0
            rows[-1].append((kind, words, x))
            x += width
            self.width = max(self.width, x)
        return rows

    def _draw_key(self, canvas: Canvas) -> None:
        top = self.layout.height
        for row in self.key:
            for kind, words, x in row:
                if kind in STYLES:
                    radius = 6.0 if kind in ROUND else 3.0
                    canvas.box((x, top + 4, 20, 12), radius, Style(*STYLES[kind][:4]))
                else:
                    colour, thick, dashes, _ = LINES[kind]
                    steps = [("M", (x, top + 10)), ("L", (x + 22, top + 10))]
                    canvas.path(steps, Style("", colour, thick, dashes))
                canvas.text(x + 27, top + 14, words, DETAIL, GREY, False, "start")
            top += 20


# Paths -----------------------------------------------------------------------------------------


def _label_size(source: Item, target: Item, kind: str) -> tuple[float, float]:
    words = target.derivative_of.get(source, "") if kind == "derivative" else ""
    return (text_width(words, DETAIL, True) + 6, 18.0) if words else (0.0, 0.0)


def rectangle(box: Box, radius: float) -> list[Step]:
    """Return the outline of a box with round corners, or of a circle."""
    x, y, width, height = box
    r = min(radius, width / 2, height / 2)
    right, bottom, k = x + width, y + height, r * (1 - KAPPA)
    if not r:
        corners = [(right, y), (right, bottom), (x, bottom)]
        return [("M", (x, y)), *(("L", corner) for corner in corners), ("Z", ())]
    return [
        ("M", (x + r, y)),
        ("L", (right - r, y)),
        ("C", (right - k, y, right, y + k, right, y + r)),
        ("L", (right, bottom - r)),
        ("C", (right, bottom - k, right - k, bottom, right - r, bottom)),
        ("L", (x + r, bottom)),
        ("C", (x + k, bottom, x, bottom - k, x, bottom - r)),
        ("L", (x, y + r)),
        ("C", (x, y + k, x + k, y, x + r, y)),
        ("Z", ()),
    ]


def _smooth(points: list[Point], sideways: bool) -> list[Step]:
    """Return a curve through the points, along the layers' direction at each point."""
    steps: list[Step] = [("M", points[0])]
    for (x0, y0), (x1, y1) in pairwise(points):
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        if abs((y0 - y1) if sideways else (x0 - x1)) < 0.5:
            steps.append(("L", (x1, y1)))
        else:
            bend = (x, y0, x, y1) if sideways else (x0, y, x1, y)
            steps.append(("C", (*bend, x1, y1)))
    return steps


def _rounded(points: list[Point], radius: float = 6.0) -> list[Step]:
    """Return straight lines through the points, with round corners."""
    steps: list[Step] = [("M", points[0])]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        near, far = _toward(corner, before, radius), _toward(corner, after, radius)
        steps += [("L", near), ("C", (*corner, *corner, *far))]
    return [*steps, ("L", points[-1])]


def _toward(start: Point, end: Point, distance: float) -> Point:
    """Return the point at a distance from `start`, at most half way to `end`."""
    (x0, y0), (x1, y1) = start, end
    share = min(distance / (hypot(x1 - x0, y1 - y0) or 1.0), 0.5)
    return x0 + share * (x1 - x0), y0 + share * (y1 - y0)


def _arrow(steps: list[Step]) -> list[Step]:
    """Return the head of an arrow at the end of a path."""
    before = steps[-2][1][-2:]
    *control, x, y = steps[-1][1]
    x0, y0 = control[-2:] if control else before
    size = hypot(x - x0, y - y0) or 1.0
    dx, dy = (x - x0) / size * 8.0, (y - y0) / size * 8.0
    left = (x - dx - dy * 0.45, y - dy + dx * 0.45)
    right = (x - dx + dy * 0.45, y - dy - dx * 0.45)
    return [("M", (x, y)), ("L", left), ("L", right), ("Z", ())]
