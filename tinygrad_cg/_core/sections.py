"""The reader of the library's files of data: texts, each below a line with its `[name]`."""

from __future__ import annotations

import re
from pathlib import Path

_COMMENT = re.compile(r"^#.*\n", re.MULTILINE)
_HEADER = re.compile(r"^\[([A-Za-z_][\w .,:;-]*)\]\n", re.MULTILINE)


def read_sections(module: str) -> dict[str, str]:
    """Return the sections of the file of data of a module, which is given by its own file."""
    text = Path(module).with_suffix(".txt").read_text(encoding="utf-8")
    _, *parts = _HEADER.split(_COMMENT.sub("", text))
    return {name: body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
