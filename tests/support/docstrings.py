"""What examples in docstrings see: the library as `tf`, NumPy as `np`, and an empty folder.

python -m pytest -p tests.support.docstrings --doctest-modules tinygrad_cg
"""

import doctest

import pytest


@pytest.fixture(autouse=True)
def _prepare_examples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(getattr(request.node, "dtest", None), doctest.DocTest):
        import numpy as np

        import tinygrad_cg as tf

        request.getfixturevalue("doctest_namespace").update(tf=tf, np=np)
        monkeypatch.chdir(request.getfixturevalue("tmp_path"))
