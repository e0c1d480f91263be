"""Every Python block of the README runs as it stands and prints what is shown under it."""

import re
import runpy
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?",
    README.read_text(encoding="utf-8"),
    re.DOTALL | re.MULTILINE,
)


def test_blocks_were_found():
    assert len(BLOCKS) == README.read_text(encoding="utf-8").count("```python\n")
    assert len(BLOCKS) >= 5


@pytest.mark.parametrize(("source", "shown"), BLOCKS, ids=range(len(BLOCKS)))
def test_block(source, shown, tmp_path, capsys):
    script = tmp_path / "block.py"
    script.write_text(source, encoding="utf-8")
    runpy.run_path(str(script))
    assert capsys.readouterr().out == shown
