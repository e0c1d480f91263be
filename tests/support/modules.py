"""The list of all modules, docs/modules.md: ``python -m tests.support.modules`` writes it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/modules.md"
HEAD = """# Modules

All modules by package, with the first sentence of each. [architecture.md](architecture.md) says
what packages are for. `python -m tests.support.modules` writes this page.
"""


def listing() -> str:
    """Return the text of the page."""
    return HEAD + "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    kernels = ROOT / "kernels"
    tops = ROOT / "tinygrad_cg", kernels / "tinygrad_cg_frontend", kernels / "tinygrad_cg_kernels"
    for top in tops:
        for folder in [top, *sorted(path for path in top.rglob("*") if path.is_dir())]:
            files = sorted(path for path in folder.glob("*.py") if path.stem != "__init__")
            if not files:
                continue
            yield f"\n## {folder.relative_to(ROOT)}\n"
            for path in files:
                yield f"- `{path.stem}`: {_first_sentence(path)}"


def _first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(listing(), encoding="utf-8")
