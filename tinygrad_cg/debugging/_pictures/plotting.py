"""Drawings as PDF and PNG, by matplotlib and its fonts."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from .drawing import Canvas, Drawing, Step, Style

POINTS = 0.75  # points in a pixel of SVG
FONT_SCALES = {"normal": 0.86, "bold": 0.82}  # DejaVu Sans is wider than the layout's Helvetica
PNG_DPI = 192  # two dots per pixel of SVG


class FigureCanvas(Canvas):
    """Draws on a matplotlib figure of `width` by `height` pixels, enlarged by `scale`.

    Raises ImportError without matplotlib.
    """

    def __init__(self, width: float, height: float, scale: float):
        try:
            from matplotlib.figure import Figure
            from matplotlib.transforms import Affine2D
        except ImportError:
            raise ImportError(
                "Picture: PDF and PNG need matplotlib: pip install matplotlib; or save "
                "the picture as .svg"
            ) from None
        self.scale = scale * POINTS
        self.figure: Any = Figure((width * self.scale / 72, height * self.scale / 72))
        inches = Affine2D().scale(self.scale / 72, -self.scale / 72)  # in drawings, y points down
        inches.translate(0, height * self.scale / 72)
        self.transform: Any = inches + self.figure.dpi_scale_trans

    def path(self, steps: list[Step], style: Style) -> None:
        from matplotlib import colors, patches
        from matplotlib.path import Path

        codes = {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3}
        codes["Z"] = [Path.CLOSEPOLY]
        points, kinds = [], []
        for kind, at in steps:
            points += zip(at[::2], at[1::2], strict=True) if at else [points[0]]
            kinds += codes[kind]
        dashes = tuple(float(length) / style.width for length in style.dashes.split())
        patch = patches.PathPatch(
            Path(points, kinds),
            facecolor=colors.to_rgba(style.fill, style.opacity) if style.fill else "none",
            edgecolor=style.line or "none",
            linewidth=style.width * self.scale,
            linestyle=(0, dashes) if dashes else "solid",
            capstyle="butt",
            transform=self.transform,
        )
        self.figure.add_artist(patch)

    def text(
        self, x: float, y: float, text: str, size: float, colour: str, bold: bool, anchor: str
    ) -> None:
        weight = "bold" if bold else "normal"
        _check_letters(text, weight)
        self.figure.text(
            *(x, y, text),
            transform=self.transform,
            fontsize=size * self.scale * FONT_SCALES[weight],
            fontfamily="DejaVu Sans",
            fontweight=weight,
            color=colour,
            horizontalalignment={"start": "left", "middle": "center", "end": "right"}[anchor],
            verticalalignment="baseline",
            parse_math=False,
        )


def _check_letters(text: str, weight: str) -> None:
    """Raise ValueError for a letter that the font lacks."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    font = get_font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))
    for letter in text:
        if not font.get_char_index(ord(letter)):
            raise ValueError(
                f"Picture: the font DejaVu Sans lacks the letter {letter!r} (U+{ord(letter):04X}) "
                f"in {text!r}: give it another name with names={{...}}, or save the picture as .svg"
            )


def plotted(drawing: Drawing, title: str, scale: float, kind: str) -> bytes:
    """Return a drawing as a file: of one page with its fonts for "pdf", of pixels for "png"."""
    canvas = FigureCanvas(drawing.width, drawing.height, scale)
    from matplotlib import rc_context

    drawing.draw(canvas)
    file = BytesIO()
    about = {"Title": title} | ({"CreationDate": None} if kind == "pdf" else {})
    with rc_context({"pdf.fonttype": 42}):  # TrueType, which journals ask for
        canvas.figure.savefig(file, format=kind, dpi=PNG_DPI, metadata=about)
    return file.getvalue()
