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


IMAGES = {  # what the rows on convolution and pooling call by name, channels last
    "line": [[[1.0], [5.0], [3.0]]],
    "square": [[[[1.0], [2.0]], [[3.0], [4.0]]]],
    "pair": [[[1.0]], [[10.0]]],  # a filter of width 2
    "wide": [[[[1.0]], [[10.0]]]],  # and one of height 1 as well
}
