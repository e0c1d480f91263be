"""Notebooks and programs as pages: their code, and what they showed when they ran."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path

COLOURS = re.compile(r"\x1b\[[\d;]*m")


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as Markdown, and its pictures by name."""
    parts, pictures = [], {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, path.stem, pictures))
    note = f"This page is the notebook [examples/{path.name}]"
    note += f"(https://github.com/tinygrad-cg/tinygrad_cg/blob/main/examples/{path.name})."
    return "\n\n".join([*parts, note]) + "\n", pictures


def _shown(output: dict, stem: str, pictures: dict[str, bytes]) -> str:
    data = output.get("data", {"text/plain": output.get("text", "")})
    for kind, ending in (("image/svg+xml", "svg"), ("image/png", "png")):
        if kind in data:
            content, name = "".join(data[kind]), f"{stem}_{len(pictures)}.{ending}"
            pictures[name] = base64.b64decode(content) if ending == "png" else content.encode()
            label = "".join(data.get("text/plain", "")).split("\n")[0][:80] or "figure"
            label = re.sub(r"[^\w ,:.=-]", "", label)
            return f"![{label}]({name})"
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    return f"```text\n{COLOURS.sub('', ''.join(data['text/plain'])).rstrip()}\n```"


def programs(folder: Path) -> str:
    """Return a page with every program of a folder, the first line of its docstring as title."""
    parts = [
        "# Programs as TensorFlow's users write them",
        "Each of these programs runs in TensorFlow too, with its import changed to "
        "`import tensorflow as tf`. Tests compare the numbers.",
    ]
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8").rstrip()
        title = re.match(r'"""([^:.\n]+)', source)
        assert title, f"{path} has no docstring"
        parts += [f"## {title[1]}", f"`examples/guides/{path.name}`", f"```python\n{source}\n```"]
    return "\n\n".join(parts) + "\n"
