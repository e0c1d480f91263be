"""Check a built site: each link has a target, and no item of a list is inside a paragraph."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

MARKER = re.compile(r"\n *(?:[-*]|\d+\.) +\S.*")


class Page(HTMLParser):
    """The links of a page, names that links may end with, and markers of lists in paragraphs."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.paragraph: str | None = None
        self.markers: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "p":
            self.paragraph = ""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag in ("a", "link"))):
                self.links.append(value)

    def handle_data(self, data: str) -> None:
        if self.paragraph is not None:
            self.paragraph += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "p" and self.paragraph is not None:
            self.markers += MARKER.findall(self.paragraph)
            self.paragraph = None


def broken(site: Path) -> list[str]:
    """Return a line for each link without a target, and for each list in a paragraph."""
    pages = {path: Page(path) for path in site.resolve().rglob("*.html")}
    lines = []
    for path, page in pages.items():
        lines += [
            f"{path.name}: a list in a paragraph: {marker.strip()}" for marker in page.markers
        ]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            anchors = pages[target].anchors if target in pages else ()
            is_page = target.suffix == ".html"  # fragments of pictures choose a part of them
            if not target.exists() or (fragment and is_page and fragment not in anchors):
                lines.append(f"{path.relative_to(site.resolve())}: {link}")
    return lines


if __name__ == "__main__":
    problems = broken(Path(sys.argv[1]))
    print("\n".join(problems) if problems else "Each link has a target, each list is one.")
    sys.exit(bool(problems))
