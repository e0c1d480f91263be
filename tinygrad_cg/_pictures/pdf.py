"""Drawings as PDF: one page of vectors, in fonts that every reader of PDF has.

After ISO 32000-1, "Document management: Portable document format" (PDF 1.4 is enough here).
"""

from __future__ import annotations

import zlib

from .drawing import Box, Drawing, Step, Style, rectangle
from .fonts import BOLD, PLAIN, SYMBOL, runs

POINTS = 0.75  # in a pixel of SVG
OPERATORS = {"M": "m", "L": "l", "C": "c", "Z": "h"}
FONTS = {PLAIN: "F1", BOLD: "F2", SYMBOL: "F3"}


class PdfCanvas:
    """Writes a drawing as PDF; ``document()`` is the file's content."""

    def __init__(self, width: float, height: float, title: str, scale: float = 1.0):
        scale *= POINTS
        self.width, self.height = width * scale, height * scale
        self.title = title
        # y is downwards in drawings, and upwards in PDF
        self.parts = [f"{scale:.5f} 0 0 {-scale:.5f} 0 {self.height:.3f} cm"]
        self.opacities: list[float] = [1.0]

    def path(self, steps: list[Step], style: Style) -> None:
        outline = [" ".join([*(f"{one:.2f}" for one in at), OPERATORS[kind]]) for kind, at in steps]
        if style.fill:
            if style.opacity not in self.opacities:
                self.opacities.append(style.opacity)
            state = self.opacities.index(style.opacity)
            self.parts += [f"/G{state} gs {_colour(style.fill)} rg", *outline, "f"]
        if style.line:
            pen = f"{_colour(style.line)} RG {style.width} w [{style.dashes}] 0 d"
            self.parts += [f"/G0 gs {pen}", *outline, "S"]

    def box(self, box: Box, radius: float, style: Style) -> None:
        self.path(rectangle(box, radius), style)

    def dot(self, x: float, y: float, radius: float, style: Style) -> None:
        self.path(rectangle((x - radius, y - radius, 2 * radius, 2 * radius), radius), style)

    def text(
        self, x: float, y: float, text: str, size: float, colour: str, bold: bool, anchor: str
    ) -> None:
        try:
            parts = list(runs(text, bold))
        except ValueError as error:
            raise ValueError(
                f"Picture.pdf: the letter {error} is in none of the standard fonts of PDF: give "
                "it another name with names={...}, or save the picture as .svg"
            ) from None
        width = sum(width for *_, width in parts) * size / 1000
        x -= {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        self.parts.append(f"/G0 gs BT {_colour(colour)} rg 1 0 0 -1 {x:.2f} {y:.2f} Tm")
        for name, codes, _ in parts:
            self.parts.append(f"/{FONTS[name]} {size} Tf <{codes.hex()}> Tj")
        self.parts.append("ET")

    def begin(self, kind: str, hover: str) -> None:
        """Do nothing: a PDF has no text under the pointer."""

    def end(self) -> None:
        """Do nothing."""

    def document(self) -> bytes:
        fonts = [
            f"<< /Type /Font /Subtype /Type1 /BaseFont /{name}"
            f"{'' if name == SYMBOL else ' /Encoding /WinAnsiEncoding'} >>"
            for name in FONTS
        ]
        first = 5  # the number of the first font's object
        named = " ".join(f"/{short} {first + i} 0 R" for i, short in enumerate(FONTS.values()))
        states = " ".join(
            f"/G{i} << /ca {one} /CA {one} >>" for i, one in enumerate(self.opacities)
        )
        content = zlib.compress("\n".join(self.parts).encode("ascii"))
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {self.width:.2f} {self.height:.2f}] "
                f"/Contents 4 0 R /Resources << /Font << {named} >> /ExtGState << {states} >> >> >>"
            ).encode("ascii"),
            f"<< /Length {len(content)} /Filter /FlateDecode >>\nstream\n".encode("ascii")
            + content
            + b"\nendstream",
            *(font.encode("ascii") for font in fonts),
            b"<< /Title <feff" + self.title.encode("utf-16-be").hex().encode() + b"> >>",
        ]
        data = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
        places = []
        for number, one in enumerate(objects, 1):
            places.append(len(data))
            data += b"%d 0 obj\n%b\nendobj\n" % (number, one)
        start, count = len(data), len(objects) + 1
        table = b"xref\n0 %d\n0000000000 65535 f \n" % count
        table += b"".join(b"%010d 00000 n \n" % place for place in places)
        trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (count, count - 1)
        return data + table + trailer + b"startxref\n%d\n%%%%EOF\n" % start


def _colour(colour: str) -> str:
    return " ".join(f"{int(colour[i : i + 2], 16) / 255:.3f}" for i in (1, 3, 5))


def pdf_bytes(drawing: Drawing, title: str, scale: float) -> bytes:
    """Return a PDF document of a drawing."""
    canvas = PdfCanvas(drawing.width, drawing.height, title, scale)
    drawing.draw(canvas)
    return canvas.document()
