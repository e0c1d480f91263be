"""Every Python block of the README runs as it stands and prints what is shown under it."""

import re
import runpy
from operator import attrgetter
from pathlib import Path

import pytest

import tinygrad_cg as tf

README = Path(__file__).resolve().parents[2] / "README.md"
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


def test_the_names_in_the_table_are_there():
    section = README.read_text(encoding="utf-8").split("## Names")[1].split("\n## ")[0]
    names = re.findall(r"`([\w.]+)`", section)
    assert len(names) > 20
    for name in names:
        assert attrgetter(name)(tf) is not None, name
