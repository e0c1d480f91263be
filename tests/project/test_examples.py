"""The notebooks are committed as they ran: in order, without errors, with their outputs."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def test_there_are_ten():
    numbers = sorted(int(path.stem.partition("_")[0]) for path in NOTEBOOKS)
    assert numbers == list(range(1, 11))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_ran_from_top_to_bottom(path):
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = [output["output_type"] for cell in cells for output in cell["outputs"]]
    assert "error" not in kinds
    assert len(kinds) >= 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_each_is_small_and_names_no_path_of_its_author(path):
    text = path.read_text(encoding="utf-8")
    assert len(text) < 400_000
    assert not re.search(r"/home/|/root/|/work/|/Users/", text)


def test_pictures_and_notebooks_are_on_pages():
    pages = [path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")]
    links = re.findall(r'(?:src="|]\()(?:\.\./)+(examples[^")]*)', "\n".join(pages))
    assert len(links) >= 7
    for link in links:
        assert (ROOT / link).exists(), link
    for path in NOTEBOOKS:
        assert f"examples/{path.name}" in links
