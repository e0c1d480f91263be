"""An example for each of the functions that are used most: what is typed, and what comes.

Operations, and functions of namespaces, take theirs from `examples.txt`, by the record's name or by
the module and the function's name.
`tests/project/test_examples_of_functions.py` runs them all.
"""

from __future__ import annotations

from .sections import read_sections

EXAMPLES = read_sections(__file__)
HEAD = "\n\nExamples\n--------\n"


def with_example(key: str, doc: str) -> str:
    """Return a docstring with the example of `key`, if there is one."""
    return f"{doc}{HEAD}{EXAMPLES[key]}" if key in EXAMPLES else doc


def without_example(doc: str) -> str:
    """Return a docstring without its example."""
    return doc.partition(HEAD)[0]
