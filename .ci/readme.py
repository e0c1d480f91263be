"""The page for package indexes: the README, with the addresses of its links and pictures."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r'(\]\(|(?:src|href)=")(?![a-z]+:|#)([^)"\s]+)')


class ReadmeHook(MetadataHookInterface):
    """Sets `project.readme`; links lead to the repository that `project.urls` names."""

    def update(self, metadata: dict[str, Any]) -> None:
        base = metadata["urls"]["Repository"]
        raw = base.replace("github", "raw.githubusercontent", 1)

        def absolute(match: re.Match[str]) -> str:
            is_picture = match[2].endswith((".svg", ".png"))
            return f"{match[1]}{raw if is_picture else f'{base}/blob'}/main/{match[2]}"

        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": LINK.sub(absolute, text),
        }
