"""Every Python block of the README runs as it stands and prints what is shown under it."""

import json
import re
import runpy
import textwrap
from operator import attrgetter
from pathlib import Path

import numpy as np
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


SHOWN = [(source, shown) for source, shown in BLOCKS if "Write it like this:" in shown]
NOTEBOOKS = sorted((README.parent / "examples").glob("*.ipynb"))


def cells_with_code():
    """Yield the cells of notebooks that show corrected code, and what they show."""
    for path in NOTEBOOKS:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", ()):
                shown = "".join(output.get("data", {}).get("text/plain", output.get("text", ())))
                if "Write it like this:" in shown:
                    yield "".join(cell["source"]), shown


@pytest.mark.parametrize(("source", "shown"), [*SHOWN, *cells_with_code()])
def test_corrected_code_is_right(source, shown):
    """Each form that is shown is executed, and checked with the arguments of the check above it."""
    _, arguments = re.findall(r"tf\.check_gradients\((\w+(?:\(\w+\))?), (.*?)\)+$", source, re.M)[
        -1
    ]
    codes = re.findall(r"Write it like this:\n\n((?: {7}.*\n?|\n)+)", shown)
    assert len(codes) == shown.count("Write it like this:")
    for code in map(textwrap.dedent, codes):
        space = {"tf": tf, "np": np}
        exec(code, space)
        name = re.findall(r"^def (\w+)", code, re.M)[0]
        point = eval(arguments + ")" * (arguments.count("(") - arguments.count(")")), space)
        report = tf.check_gradients(space[name], point, order=3)
        assert {row.verdict for row in report.rows} == {"true"}, report


def test_documents_show_corrected_code():
    assert len(SHOWN) >= 2
    assert len(list(cells_with_code())) >= 1


def test_the_names_in_the_table_are_there():
    section = README.read_text(encoding="utf-8").split("## Names")[1].split("\n## ")[0]
    names = re.findall(r"`([\w.]+)`", section)
    assert len(names) > 20
    for name in names:
        assert attrgetter(name)(tf) is not None, name
