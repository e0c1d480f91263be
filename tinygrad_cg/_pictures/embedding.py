"""Fonts inside a PDF: the letters that a picture needs of DejaVu Sans, which matplotlib brings.

After ISO 32000-1, 9.7 "Composite fonts": the codes in the text are numbers of glyphs.
"""

from __future__ import annotations

import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

FILES = {False: "DejaVuSans.ttf", True: "DejaVuSans-Bold.ttf"}  # by whether it is bold
SIZE = 0.94  # of Helvetica's: then small letters are as high


class EmbeddedFont:
    """One font of a PDF; `encode` collects the letters that `objects` puts into the file."""

    def __init__(self, bold: bool):
        try:
            from fontTools.ttLib import TTFont
            from matplotlib import get_data_path
        except ImportError:
            raise ImportError(
                "Picture.pdf: embed_fonts=True needs matplotlib: pip install 'tinygrad_cg[plot]'"
            ) from None
        path = Path(get_data_path()) / "fonts" / "ttf" / FILES[bold]
        self.file = path.read_bytes()
        self.font: Any = TTFont(BytesIO(self.file))
        self.name = f"TGCGPX+{path.stem}"  # six letters of our choice: a subset
        self.glyphs: dict[int, str] = self.font.getBestCmap()
        self.scale = 1000 / self.font["head"].unitsPerEm
        self.used: dict[int, str] = {}  # letters by the number of their glyph

    def encode(self, text: str) -> tuple[bytes, float]:
        """Return the codes of a text and its width in thousandths of the font size.

        Raises ValueError for a letter that the font has not.
        """
        codes, width = b"", 0.0
        for letter in text:
            glyph = self.glyphs.get(ord(letter))
            if glyph is None:
                raise ValueError(f"{letter!r} (U+{ord(letter):04X}) in {text!r}")
            number = self.font.getGlyphID(glyph)
            self.used.setdefault(number, letter)
            codes += number.to_bytes(2, "big")
            width += self.font["hmtx"][glyph][0] * self.scale
        return codes, width

    def objects(self, first: int) -> list[bytes]:
        """Return the font's five objects of a PDF, the first of which has the number `first`."""
        file = self._subset()
        head, os2, post = self.font["head"], self.font["OS/2"], self.font["post"]
        box = [round(one * self.scale) for one in (head.xMin, head.yMin, head.xMax, head.yMax)]
        heights = [round(one * self.scale) for one in (os2.sTypoAscender, os2.sTypoDescender)]
        order = self.font.getGlyphOrder()
        widths = " ".join(
            f"{number} [{self.font['hmtx'][order[number]][0] * self.scale:.1f}]"
            for number in sorted(self.used)
        )
        return [
            (
                f"<< /Type /Font /Subtype /Type0 /BaseFont /{self.name} /Encoding /Identity-H "
                f"/DescendantFonts [{first + 1} 0 R] /ToUnicode {first + 4} 0 R >>"
            ).encode("ascii"),
            (
                f"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /{self.name} "
                "/CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> "
                f"/FontDescriptor {first + 2} 0 R /CIDToGIDMap /Identity /W [{widths}] >>"
            ).encode("ascii"),
            (
                f"<< /Type /FontDescriptor /FontName /{self.name} /Flags 4 "
                f"/FontBBox [{' '.join(map(str, box))}] /ItalicAngle {post.italicAngle:.0f} "
                f"/Ascent {heights[0]} /Descent {heights[1]} /CapHeight 729 /StemV 90 "
                f"/FontFile2 {first + 3} 0 R >>"
            ).encode("ascii"),
            stream(file, f" /Length1 {len(file)}"),
            stream(self._letters().encode("ascii")),
        ]

    def _subset(self) -> bytes:
        """Return the font file with the outlines of the letters that are used alone."""
        from fontTools import subset

        options = subset.Options()
        options.retain_gids, options.hinting, options.recalc_timestamp = True, False, False
        options.layout_features, options.name_IDs, options.notdef_outline = [], [], True
        options.drop_tables += ["GSUB", "GPOS", "GDEF", "kern", "name", "FFTM", "post", "OS/2"]
        font = subset.load_font(BytesIO(self.file), options)
        one = subset.Subsetter(options)
        one.populate(unicodes=sorted(map(ord, self.used.values())))
        one.subset(font)
        file = BytesIO()
        font.save(file, reorderTables=True)
        return file.getvalue()

    def _letters(self) -> str:
        """Return the table by which a reader finds and copies text."""
        pairs = [
            f"<{number:04x}> <{letter.encode('utf-16-be').hex()}>"
            for number, letter in sorted(self.used.items())
        ]
        blocks = [pairs[i : i + 100] for i in range(0, len(pairs), 100)]
        lines = [
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap",
            "/CIDSystemInfo << /Registry (Adobe) /Ordering (UCS) /Supplement 0 >> def",
            "/CMapName /Adobe-Identity-UCS def /CMapType 2 def",
            "1 begincodespacerange <0000> <ffff> endcodespacerange",
        ]
        for block in blocks:
            lines += [f"{len(block)} beginbfchar", *block, "endbfchar"]
        lines.append("endcmap CMapName currentdict /CMap defineresource pop end end")
        return "\n".join(lines)


def stream(content: bytes, entries: str = "") -> bytes:
    """Return a compressed stream of a PDF."""
    data = zlib.compress(content)
    head = f"<< /Length {len(data)} /Filter /FlateDecode{entries} >>\nstream\n"
    return head.encode("ascii") + data + b"\nendstream"
