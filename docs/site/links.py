"""Check a built site: each link to a page, a picture or a heading of it has a target."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of a page, and the names that links may end with."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif value and (name == "src" or (name == "href" and tag in ("a", "link"))):
                self.links.append(value)


def broken(site: Path) -> list[str]:
    """Return a line for each link without a target."""
    pages = {path: Page(path) for path in site.resolve().rglob("*.html")}
    lines = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            fragment = unquote(parts.fragment)
            anchors = pages[target].anchors if target in pages else ()
            if not target.exists() or (fragment and fragment not in anchors):
                lines.append(f"{path.relative_to(site.resolve())}: {link}")
    return lines


if __name__ == "__main__":
    problems = broken(Path(sys.argv[1]))
    print("\n".join(problems) if problems else "Each link has a target.")
    sys.exit(bool(problems))
