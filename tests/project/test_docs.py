"""The pages of docs/: citations have a target, paths exist, and nothing outside is cited."""

import re
from pathlib import Path

import pytest

from tests.support import modules

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
DECISIONS = "".join(path.read_text() for path in sorted((ROOT / "docs/behaviour").glob("*.md")))
SOURCES = [
    path
    for room in ("tinygrad_cg", "kernels", "tests", "benchmarks", "examples")
    for path in (ROOT / room).rglob("*.py")
    if path != Path(__file__)
]


def test_each_cited_section_and_decision_exists():
    sections = set(re.findall(r"^#+ (\d(?:\.\d+)?)", DECISIONS, re.MULTILINE))
    decisions = {int(number) for number in re.findall(r"^(\d+)\. \*\*", DECISIONS, re.MULTILINE)}
    assert decisions == set(range(1, 26))
    sections |= {f"0.{number}" for number in decisions}
    for path in SOURCES:
        text = path.read_text()
        for cited in re.findall(r'(?:behaviour\.md |""")((?:\d\.\d+(?:, and |, | and )?)+)', text):
            for number in re.findall(r"\d\.\d+", cited):
                assert number in sections, (path, cited)
        for number in re.findall(r"[dD]ecision (\d+)", text):
            assert int(number) in decisions, (path, number)


def test_no_document_outside_the_repository_is_cited():
    outside = re.compile(r"\b(BEHAVIOUR|BAD_INPUT|HOUSE|PERFORMANCE|DESIGN)(\.md)?\b|\.\./shared")
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")]
    for path in [*SOURCES, *pages]:
        assert not outside.search(path.read_text()), path


def test_the_list_of_modules_is_complete():
    """``python -m tests.support.modules`` writes it."""
    assert modules.PAGE.read_text(encoding="utf-8") == modules.listing()
    assert not re.search(r"`: *$", modules.listing(), re.MULTILINE)  # each has a sentence


def test_each_path_in_the_architecture_exists():
    text = (ROOT / "docs/architecture.md").read_text()
    library = ROOT / "tinygrad_cg"
    homes = (ROOT, library, library / "_function", ROOT / "kernels/tinygrad_cg_kernels")
    paths = {path for path in re.findall(r"`([\w./*]+)`", text) if "/" in path or ".py" in path}
    assert len(paths) > 60
    for path in paths:
        assert any([*home.glob(path.rstrip("/"))] for home in homes), path
    assert text.count("\n") <= 350
