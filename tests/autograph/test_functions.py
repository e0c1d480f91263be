"""Functions with Python's control flow give under `function` what they give eagerly."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.autograph.functions import CASES
from tests.support.compiled import unfused


def tensors(args):
    return [tf.constant(arg) if isinstance(arg, float) else arg for arg in args]


def value_and_gradients(f, args):
    watched = [arg for arg in args if tf.is_tensor(arg)]
    with tf.GradientTape() as tape:
        tape.watch(watched)
        y = f(*args)
    gradients = tape.gradient(y, watched, unconnected_gradients="zero")
    return np.asarray(y), [np.asarray(gradient) for gradient in gradients]


def test_there_are_sixty():
    assert len({f.__name__ for f, _ in CASES}) == len(CASES) >= 60


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_values_and_gradients_are_those_of_eager_runs(case):
    f, calls = case
    for call in calls:
        args = tensors(call)
        value, gradients = value_and_gradients(f, args)
        compiled = unfused(f)
        result = np.asarray(compiled(*args))
        assert result.dtype == value.dtype
        np.testing.assert_allclose(result, value, rtol=2e-6)
        again, others = value_and_gradients(compiled, args)
        np.testing.assert_allclose(again, value, rtol=2e-6)
        for actual, other in zip(others, gradients, strict=True):
            np.testing.assert_allclose(actual, other, rtol=2e-5)
