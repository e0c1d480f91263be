"""Drawings as PDF: one page of vectors, in fonts that every reader of PDF has, or its own.

After ISO 32000-1, "Document management: Portable document format" (PDF 1.4 is enough here).
"""

from __future__ import annotations

from .drawing import Box, Drawing, Step, Style, rectangle
from .embedding import SIZE, EmbeddedFont, stream
from .fonts import BOLD, PLAIN, SYMBOL, runs, text_width

POINTS = 0.75  # in a pixel of SVG
OPERATORS = {"M": "m", "L": "l", "C": "c", "Z": "h"}
FONTS = {PLAIN: "F1", BOLD: "F2", SYMBOL: "F3"}


class PdfCanvas:
    """Writes a drawing as PDF; ``document()`` is the file's content."""

    def __init__(
        self, width: float, height: float, title: str, scale: float = 1.0, embed: bool = False
    ):
        scale *= POINTS
        self.width, self.height = width * scale, height * scale
        self.title = title
        # y is downwards in drawings, and upwards in PDF
        self.parts = [f"{scale:.5f} 0 0 {-scale:.5f} 0 {self.height:.3f} cm"]
        self.opacities: list[float] = [1.0]
        self.own = {bold: EmbeddedFont(bold) for bold in (False, True)} if embed else {}

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
        width = text_width(text, size, bold)
        x -= {"start": 0.0, "middle": width / 2, "end": width}[anchor]
        try:
            shown = self._own(text, size, bold, width) if self.own else _standard(text, size, bold)
        except ValueError as error:
            which = "DejaVu Sans" if self.own else "the standard fonts of PDF"
            raise ValueError(
                f"Picture.pdf: the letter {error} is in none of {which}: give "
                "it another name with names={...}, or save the picture as .svg"
            ) from None
        self.parts.append(f"/G0 gs BT {_colour(colour)} rg 1 0 0 -1 {x:.2f} {y:.2f} Tm")
        self.parts += [*shown, "ET"]

    def _own(self, text: str, size: float, bold: bool, width: float) -> list[str]:
        """Return the operators for a text in an embedded font, as wide as in Helvetica."""
        codes, wide = self.own[bold].encode(text)
        size *= SIZE
        narrow = 100_000 * width / (wide * size) if wide else 100.0
        return [f"/{'F2' if bold else 'F1'} {size:.2f} Tf {narrow:.2f} Tz <{codes.hex()}> Tj"]

    def begin(self, kind: str, hover: str) -> None:
        """Do nothing: a PDF has no text under the pointer."""

    def end(self) -> None:
        """Do nothing."""

    def document(self) -> bytes:
        first = 5  # the number of the first font's object
        numbers = [first + i for i in range(len(FONTS))]
        fonts = [
            (
                f"<< /Type /Font /Subtype /Type1 /BaseFont /{name}"
                f"{'' if name == SYMBOL else ' /Encoding /WinAnsiEncoding'} >>"
            ).encode("ascii")
            for name in FONTS
        ]
        if self.own:
            numbers, fonts = [], []
            for font in self.own.values():
                numbers.append(first + len(fonts))
                fonts += font.objects(numbers[-1])
        named = " ".join(
            f"/{short} {number} 0 R" for short, number in zip(FONTS.values(), numbers, strict=False)
        )
        states = " ".join(
            f"/G{i} << /ca {one} /CA {one} >>" for i, one in enumerate(self.opacities)
        )
        objects = [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            (
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {self.width:.2f} {self.height:.2f}] "
                f"/Contents 4 0 R /Resources << /Font << {named} >> /ExtGState << {states} >> >> >>"
            ).encode("ascii"),
            stream("\n".join(self.parts).encode("ascii")),
            *fonts,
            b"<< /Title <feff" + self.title.encode("utf-16-be").hex().encode() + b"> >>",
        ]
        data = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"
        offsets = []
        for number, one in enumerate(objects, 1):
            offsets.append(len(data))
            data += b"%d 0 obj\n%b\nendobj\n" % (number, one)
        start, count = len(data), len(objects) + 1
        table = b"xref\n0 %d\n0000000000 65535 f \n" % count
        table += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info %d 0 R >>\n" % (count, count - 1)
        return data + table + trailer + b"startxref\n%d\n%%%%EOF\n" % start


def _standard(text: str, size: float, bold: bool) -> list[str]:
    """Return the operators for a text in the standard fonts."""
    return [f"/{FONTS[name]} {size} Tf <{codes.hex()}> Tj" for name, codes, _ in runs(text, bold)]


def _colour(colour: str) -> str:
    return " ".join(f"{int(colour[i : i + 2], 16) / 255:.3f}" for i in (1, 3, 5))


def pdf_bytes(drawing: Drawing, title: str, scale: float, embed: bool = False) -> bytes:
    """Return a PDF document of a drawing, with its fonts if `embed`."""
    canvas = PdfCanvas(drawing.width, drawing.height, title, scale, embed)
    drawing.draw(canvas)
    return canvas.document()
