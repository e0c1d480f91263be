"""Tables of calls and what the original library gave for them: ``call -> values dtype``.

Several results are separated by semicolons; `plain` stands where the result is no tensor.
"""

import ast

import numpy as np
import pytest


def rows(table):
    """Each row as (call, results)."""
    return [tuple(row.split(" -> ")) for row in table.strip().splitlines()]


def assert_gives(call, results, names):
    """The call gives the values, of the dtype and shape, that the row says."""
    found = eval(call, names | {"np": np})
    parts = [part.rpartition(" ") for part in results.split("; ")]
    several = found if len(parts) > 1 or isinstance(found, list) else [found]
    for one, (values, _, dtype) in zip(several, parts, strict=True):
        expected = ast.literal_eval(values)
        if dtype == "plain":
            assert one == (tuple(expected) if isinstance(expected, list) else expected)
        else:
            assert one.dtype == dtype
            assert one.shape == np.shape(expected)
            assert np.asarray(one).tolist() == approximately(expected)


def approximately(expected):
    """Nested lists compare number by number; float32 has seven digits."""
    if isinstance(expected, list):
        return [approximately(part) for part in expected]
    return expected if isinstance(expected, bool) else pytest.approx(expected, rel=1e-6, abs=1e-7)
