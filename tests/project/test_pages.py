"""Every Python block of the README and of docs/ runs, and prints what is shown under it."""

import json
import re
import runpy
import textwrap
import tomllib
from importlib.util import find_spec
from operator import attrgetter
from pathlib import Path

import numpy as np
import pytest

import tinygrad_cg as tf

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FRAGMENTS = {DOCS / "architecture.md"}  # it shows pieces of the library's own source
PAGES = {
    path.relative_to(ROOT).as_posix().removesuffix(".md"): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", *sorted({*DOCS.rglob("*.md")} - FRAGMENTS))
}
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
BLOCKS = [
    pytest.param(*block, id=f"{name}-{index}")
    for name, text in PAGES.items()
    for index, block in enumerate(BLOCK.findall(text))
]


def test_blocks_were_found():
    assert len(BLOCKS) == sum(text.count("```python") for text in PAGES.values())
    assert len(BLOCKS) >= 30


def test_pieces_of_the_source_are_as_they_stand_there():
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "tinygrad_cg").rglob("*.py"))
    for path in FRAGMENTS:
        pieces = re.findall(r"^( *)```python\n(.*?)^ *```", path.read_text("utf-8"), re.M | re.S)
        assert pieces
        for _, piece in pieces:
            assert textwrap.dedent(piece) in source, piece


def test_the_site_has_each_page_once():
    """As ``mkdocs build --strict`` checks, which ``.ci/run`` calls; other pages are generated."""
    settings = (DOCS / "site/mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"""^ +- (?:[\w ":.]+: )?([\w/]+\.md)$""", settings, re.M)
    written = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert len(listed) == len({*listed})
    assert written <= {*listed}
    assert PROJECT["urls"]["Repository"] in settings
    assert PROJECT["urls"]["Documentation"] in settings


def test_questions_have_short_answers_and_pages_are_short():
    answers = BLOCK.findall(PAGES["docs/faq"])
    assert PAGES["docs/faq"].count("\n### ") == len(answers) == 25
    for source, _ in answers:
        lines = [line for line in source.splitlines() if line and not line.startswith("import")]
        assert len(lines) <= 8, source
    prose = {name: re.sub(r"```.*?```", "", text, flags=re.S) for name, text in PAGES.items()}
    long = {name for name, text in prose.items() if len(text.split()) > 1500}
    assert long <= {"docs/frontend", "docs/modules"}


def test_modules_that_pages_tell_to_run_are_there():
    commands = {
        command for text in PAGES.values() for command in re.findall(r"python3? -m ([\w.]+)", text)
    }
    assert len(commands) > 8
    for name in commands - {"venv"}:
        assert find_spec(name) is not None, name


def test_the_readme_is_one_page():
    assert PAGES["README"].count("\n") <= 110
    assert len(BLOCK.findall(PAGES["README"])) >= 2


@pytest.mark.parametrize(("source", "shown"), BLOCKS)
def test_block(source, shown, tmp_path, capsys):
    if "from scipy" in source:
        pytest.importorskip("scipy")
    if "from dask" in source:
        pytest.importorskip("distributed", reason="the extra dask brings it")
    script = tmp_path / "block.py"
    script.write_text(source, encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__" if "__main__" in source else None)
    assert capsys.readouterr().out == shown


SHOWN = [block.values for block in BLOCKS if "Write it like this:" in block.values[1]]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


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
        closed = arguments + ")" * (arguments.count("(") - arguments.count(")"))
        args = eval(f"(lambda *args, **options: args)({closed})", space)
        report = tf.check_gradients(space[name], *args, order=3)
        assert {row.verdict for row in report.rows} == {"ok"}, report


def test_documents_show_corrected_code():
    assert len(SHOWN) >= 2
    assert len(list(cells_with_code())) >= 1


def test_the_names_in_the_table_are_there():
    section = PAGES["docs/reference/names"].split("## Names")[1].split("\n## ")[0]
    names = re.findall(r"`([\w.]+)`", section)
    assert len(names) > 20
    for name in names:
        assert attrgetter(name)(tf) is not None, name


def test_each_link_has_a_target():
    count = 0
    for name, text in PAGES.items():
        folder = (ROOT / name).parent
        for link in re.findall(
            r'(?:(?:src|href)="|\]\()([^")\s]+)', re.sub(r"```.*?```", "", text)
        ):
            target, _, anchor = link.partition("#")
            if target.startswith("http"):
                assert name != "README", f"{link}: .ci/readme.py makes the links absolute"
                continue
            target = folder / target if target else ROOT / f"{name}.md"
            assert target.exists(), (name, link)
            if anchor:
                heads = re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
                slugs = {
                    re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-") for head in heads
                }
                assert anchor in slugs, (name, link)
            count += 1
    assert count >= 30
