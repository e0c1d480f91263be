"""Drawings as SVG: one text that needs no other file, font or program."""

from __future__ import annotations

from html import escape

from .drawing import TITLE, Box, Canvas, Drawing, Step, Style
from .fonts import text_width

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"


class SvgCanvas(Canvas):
    """A canvas that writes SVG: the `parts` of a document."""

    def __init__(self) -> None:
        self.parts: list[str] = []

    def path(self, steps: list[Step], style: Style) -> None:
        data = " ".join(
            kind + " ".join(f"{coordinate:.1f}" for coordinate in at) for kind, at in steps
        )
        self.parts.append(f'<path d="{data}" {_attributes(style)}/>')

    def box(self, box: Box, radius: float, style: Style) -> None:
        x, y, width, height = box
        self.parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius:.1f}" {_attributes(style)}/>'
        )

    def dot(self, x: float, y: float, radius: float, style: Style) -> None:
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" {_attributes(style)}/>')

    def text(
        self, x: float, y: float, text: str, size: float, colour: str, bold: bool, anchor: str
    ) -> None:
        weight = ' font-weight="bold"' if bold else ""
        alignment = "" if anchor == "start" else f' text-anchor="{anchor}"'
        width = text_width(text, size, bold)  # of Helvetica; wider fonts are condensed to it
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}"{weight}{alignment} fill="{colour}" '
            f'textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
        )

    def begin(self, kind: str, hover: str) -> None:
        self.parts.append(f'<g class="{kind}"><title>{escape(hover)}</title>')

    def end(self) -> None:
        self.parts.append("</g>")


def _attributes(style: Style) -> str:
    attributes = f'fill="{style.fill or "none"}"'
    if style.fill and style.opacity < 1:
        attributes += f' fill-opacity="{style.opacity}"'
    if style.line:
        attributes += f' stroke="{style.line}" stroke-width="{style.width}"'
    if style.line and style.dashes:
        attributes += f' stroke-dasharray="{style.dashes}"'
    return attributes


def svg_text(drawing: Drawing, title: str, scale: float) -> str:
    """Return an SVG document of a drawing."""
    width, height, canvas = drawing.width, drawing.height, SvgCanvas()
    drawing.draw(canvas)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width * scale:.0f}" '
        f'height="{height * scale:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'font-family="{FONT}" font-size="{TITLE}" role="img">\n'
        f"<title>{escape(title)}</title>\n" + "\n".join(canvas.parts) + "\n</svg>\n"
    )
