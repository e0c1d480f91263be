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
        ("The value is asked for.", "is asked for"),
        ("`jvp`, `vjp` and their kin.", "their kin"),
        ("A TypeError for what does not fit.", "what does not fit"),
        ("So many axes.", "so many"),
        ("After ``tf.gather``.", "After tf.f"),
        ("None is returned as it is.", "works as it is"),
        ("A name that is none.", "it is none"),
        ("The loop goes on.", "goes on, mends"),
        ("The shape is that of `x`.", "is that of"),
        ("A rule of your own, checked.", "of its own"),
        ("x is 0, and so is y.", "so does"),
        ("Such a rule is right.", "such a"),
        ("TypeError for anything but a tensor.", "anything but"),
        ("The text stands in a file.", "stands"),
        ("It has to be a constant.", "has to be"),
        ("A loop that a tensor decides.", "a tensor decides"),
        ("Was the product forgotten?", "forgotten?"),
        ("Pass each of them once.", "each of them"),
        ("NaN, as SciPy has it.", "as x has it"),
        ("There is no mode.", "there is no"),
        ("Tensors of one shape.", "one shape"),
    ],
)
def test_a_phrase_is_seen(text, name):
    assert words.COMPILED[name].search(text)
