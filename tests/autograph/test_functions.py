"""Functions with Python's control flow give under `function` what they give eagerly."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.autograph.functions import CASES
from tests.support.compiled import unfused


def tensors(args):
    return [tf.constant(one) if isinstance(one, float) else one for one in args]


def value_and_gradients(f, args):
    watched = [one for one in args if tf.is_tensor(one)]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = f(*args)
    found = tape.gradient(y, watched, unconnected_gradients="zero")
    return np.asarray(y), [np.asarray(one) for one in found]


def test_there_are_sixty():
    assert len({f.__name__ for f, _ in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_values_and_gradients_are_those_of_eager_runs(case):
    f, calls = case
    for call in calls:
        args = tensors(call)
        value, gradients = value_and_gradients(f, args)
        compiled = unfused(f)
        found = np.asarray(compiled(*args))
        assert found.dtype == value.dtype
        np.testing.assert_allclose(found, value, rtol=2e-6)
        again, others = value_and_gradients(compiled, args)
        np.testing.assert_allclose(again, value, rtol=2e-6)
        for one, other in zip(others, gradients, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5)
