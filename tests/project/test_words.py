"""Pages, docstrings, errors and reports keep to plain English: few stiff phrases are left."""

import pytest

from tests.support import words

pytestmark = pytest.mark.quick

LIMIT = 10


def test_few_stiff_phrases_are_left():
    found = words.count()
    assert sum(map(len, found.values())) <= LIMIT, "\n".join(
        f"{name}, {place}: {hit}" for (name, place), hits in found.items() for hit in hits
    )


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The gradient by `x` is 1.", "derivative by x"),
        ("As in the original.", "the original"),
        ("It is no error.", "a negated noun"),
        ("What is returned is checked.", "what as a subject"),
        ("A copy of what is on it.", "a clause without its noun"),
        ("The rule, by which it stands.", "of which"),
        ("Each room has tests.", "room"),
        ("The one is false from order 2 on.", "from order 2 on"),
    ],
)
def test_a_phrase_is_seen(text, name):
    assert words.COMPILED[name].search(text)
