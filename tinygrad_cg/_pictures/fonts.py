"""Widths of letters: Helvetica, Helvetica-Bold and Symbol, which every reader of PDF has.

After Adobe's font metrics of the 14 standard fonts, in thousandths of the font size.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

_PLAIN = """
    278 278 355 556 556 889 667 191 333 333 389 584 278 333 278 278 556 556 556 556 556 556
    556 556 556 556 278 278 584 584 584 556 1015 667 667 722 722 667 611 778 722 278 500 667
    556 833 722 778 667 778 722 667 611 722 667 944 667 667 611 278 278 278 469 556 333 556
    556 500 556 556 278 556 556 222 222 500 222 833 556 556 556 556 333 500 278 556 500 722
    500 500 500 334 260 334 584 0 556 0 222 556 333 1000 556 556 333 1000 667 333 1000 0 611 0
    0 222 222 333 333 350 556 1000 333 1000 500 333 944 0 500 667 278 333 556 556 556 556 260
    556 333 737 370 556 584 333 737 333 400 584 333 333 333 556 537 278 333 333 365 556 834
    834 834 611 667 667 667 667 667 667 1000 722 667 667 667 667 278 278 278 278 722 722 778
    778 778 778 778 584 778 722 722 722 722 667 667 611 556 556 556 556 556 556 889 500 556
    556 556 556 278 278 278 278 556 556 556 556 556 556 556 584 611 556 556 556 556 500 556
    500
"""
_BOLD = """
    278 333 474 556 556 889 722 238 333 333 389 584 278 333 278 278 556 556 556 556 556 556
    556 556 556 556 333 333 584 584 584 611 975 722 722 722 722 667 611 778 722 278 556 722
    611 833 722 778 667 778 722 667 611 722 667 944 667 667 611 333 278 333 584 556 333 556
    611 556 611 556 333 611 611 278 278 556 278 889 611 611 611 611 389 556 333 611 556 778
    556 556 500 389 280 389 584 0 556 0 278 556 500 1000 556 556 333 1000 667 333 1000 0 611 0
    0 278 278 500 500 350 556 1000 333 1000 556 333 944 0 500 667 278 333 556 556 556 556 280
    556 333 737 370 556 584 333 737 333 400 584 333 333 333 611 556 278 333 333 365 556 834
    834 834 611 722 722 722 722 722 722 1000 722 667 667 667 667 278 278 278 278 722 722 778
    778 778 778 778 584 778 722 722 722 722 667 667 611 556 556 556 556 556 556 889 556 556
    556 556 556 278 278 278 278 611 611 611 611 611 611 611 584 611 611 611 611 611 556 611
    556
"""
_SYMBOLS = "ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩαβγδεζηθικλμνξοπρςστυφχψω→∂∇∈∏∑\u2212√∞∫≈≠≤≥⋅"
_SYMBOL_CODES = """
    65 66 71 68 69 90 72 81 73 75 76 77 78 88 79 80 82 83 84 85 70 67 89 87 97 98 103 100 101
    122 104 113 105 107 108 109 110 120 111 112 114 86 115 116 117 102 99 121 119 174 182 209
    206 213 229 45 214 165 242 187 185 163 179 215
"""
_SYMBOL_WIDTHS = """
    722 667 603 612 611 611 722 741 333 722 686 889 722 645 722 768 556 592 611 690 763 722
    795 768 631 549 411 494 439 494 603 521 329 549 549 576 521 493 549 549 549 439 603 439
    576 521 549 686 686 987 494 713 713 823 713 549 549 713 274 549 549 549 549 250
"""
MISSING = 600  # the width of a letter that none of the fonts has

PLAIN, BOLD, SYMBOL = "Helvetica", "Helvetica-Bold", "Symbol"
WIDTHS = {  # of the codes 32 to 255 of Windows' Latin alphabet, which PDF calls WinAnsi
    name: dict(enumerate(map(int, table.split()), 32))
    for name, table in ((PLAIN, _PLAIN), (BOLD, _BOLD))
}
CODES = dict(zip(_SYMBOLS, map(int, _SYMBOL_CODES.split()), strict=True))
SYMBOL_WIDTHS = dict(zip(_SYMBOLS, map(int, _SYMBOL_WIDTHS.split()), strict=True))


def letters(text: str, bold: bool = False) -> Iterator[tuple[str, int, float]]:
    """Yield the font, code and width of each letter; the font "" and code -1 if none has it."""
    name = BOLD if bold else PLAIN
    for letter in text:
        try:
            (code,) = letter.encode("cp1252")
        except UnicodeEncodeError:
            code = 0
        if width := WIDTHS[name].get(code):
            yield name, code, width
        elif letter in CODES:
            yield SYMBOL, CODES[letter], SYMBOL_WIDTHS[letter]
        else:
            yield "", -1, MISSING


def runs(text: str, bold: bool = False) -> Iterator[tuple[str, bytes, float]]:
    """Yield the font, the codes and the width of each part of a text that is in one font.

    Raises ValueError for a letter that none of the fonts has.
    """
    found = list(letters(text, bold))
    for letter, (name, _, _) in zip(text, found, strict=True):
        if not name:
            raise ValueError(f"{letter!r} (U+{ord(letter):04X}) in {text!r}")
    for name, group in groupby(found, key=lambda one: one[0]):
        part = list(group)
        yield name, bytes(code for _, code, _ in part), sum(width for *_, width in part)


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the width of a text in Helvetica, and in Arial and Liberation Sans."""
    return sum(width for *_, width in letters(text, bold)) * size / 1000
