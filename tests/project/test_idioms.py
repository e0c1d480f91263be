"""Each row of the tables in docs/coming_from runs, in the other library too where that is there."""

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs/coming_from"
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
PAGES = {name: text for name, text in TEXTS.items() if "_" not in name}  # others have no idioms
MODULES = {  # what a page's other library needs
    "tensorflow": ("tensorflow",),
    "keras": ("keras",),
    "autograd": ("autograd", "scipy"),
    "jax": ("jax",),
    "pytorch": ("torch",),
}


def rows(text):
    """Yield the three cells of each row of a table of idioms: there, here, and what it gives."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 3 and "`" in cells[1]:
            yield [" \n".join(re.findall(r"`(.+?)`(?:<br>|$)", cell)) for cell in cells]


def value_of(code, space):
    """Run the lines of a cell, and return the value of the last one."""
    *before, last = re.sub(r"^\.\.\. ?", "    ", code, flags=re.M).rsplit("\n", 1)
    if "; " in last:
        head, last = last.rsplit("; ", 1)
        before.append(head)
    exec("\n".join(before), space)
    return eval(last.strip(), space)


def numbers(value):
    """Return a value as what is compared and shown: arrays, in lists, or plain objects."""
    if isinstance(value, (list, tuple)):
        return [numbers(part) for part in value]
    if value is None or isinstance(value, (bool, str, type)):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    return np.asarray(value)


def shown(value):
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    if isinstance(value, np.ndarray):
        if value.dtype == bool or value.dtype.kind in "iu":
            return re.sub(r"\s+", " ", str(value))
        rounded = np.round(value.astype(complex if value.dtype.kind == "c" else float), 4) + 0.0
        return re.sub(r"\s+", " ", str(float(rounded) if rounded.ndim == 0 else rounded))
    return str(value)


def assert_same(results, wanted, where):
    if isinstance(wanted, list):
        assert len(results) == len(wanted), where
        for number, other in zip(results, wanted, strict=True):
            assert_same(number, other, where)
    elif isinstance(wanted, np.ndarray):
        np.testing.assert_allclose(results, wanted, rtol=1e-5, atol=1e-6, err_msg=str(where))
    else:
        assert results == wanted, where


def test_there_is_a_page_for_each_library():
    assert PAGES.keys() == MODULES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_each_row_gives_what_it_says(name):
    """The page's first block makes the names that its rows use."""
    text = PAGES[name]
    setup = re.findall(r"^```python\n(.*?)^```\n", text, re.M | re.S)[0]
    count = 0
    for _, here, gives in rows(text):
        space = {}
        exec(setup, space)
        assert shown(numbers(value_of(here, space))) == gives, (name, here)
        count += 1
    assert count >= 12, name


@pytest.mark.parametrize("name", PAGES)
def test_the_other_library_gives_the_same(name):
    """Its names come from the page's block for it, and ours are there, too."""
    if not all(map(find_spec, MODULES[name])):
        pytest.skip(f"needs {', '.join(MODULES[name])}")
    text = PAGES[name]
    setup = re.findall(r"^```python\n(.*?)^```\n", text, re.M | re.S)[0]
    theirs = re.findall(r"^```py\n(.*?)^```\n", text, re.M | re.S)[0]
    for there, here, _ in rows(text):
        ours, other = {}, {}
        exec(setup, ours)
        exec(theirs, other)
        result, wanted = value_of(here, ours), value_of(there, other)
        assert_same(numbers(result), numbers(wanted), (name, there, here))
