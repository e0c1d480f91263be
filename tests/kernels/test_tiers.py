"""Block kernels in two forms: the one that is compiled first, and the better one."""

import numpy as np
import pytest

from tests.kernels.test_translation import operands
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import objects
from tinygrad_cg_kernels.runtime.native import kernels, tiers
from tinygrad_cg_kernels.runtime.threads import THRESHOLD

pytestmark = pytest.mark.skipif(not objects.supported, reason="Numba compiles the kernels here")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))


def made(name):
    """A kernel that nobody has used."""
    known = OPS[name].kernel
    return Elementwise(known.name, known.function, known.inputs, known.kind)


def owner_of(kernel):
    (owner,) = (one for key, one in kernel.dispatchers.items() if key[0] in ("flat", "tiles"))
    return owner


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["lgamma", "digamma", "power", "sin", "xlogy"])
def test_both_forms_have_the_same_bits(name, dtype):
    kernel = made(name)
    given = operands(kernel.inputs, THRESHOLD + 13, dtype)
    first = kernel(*given)
    owner = owner_of(kernel)
    assert owner.better.code is None
    kernels.supply(owner, every=True)
    assert owner.better.code is not None
    bits = np.dtype(f"i{first.itemsize}")
    np.testing.assert_array_equal(kernel(*given).view(bits), first.view(bits))


def test_the_better_form_comes_with_work(monkeypatch):
    kernel = made("lgamma")
    x = np.random.default_rng(0).uniform(0.1, 9, (400, 400)).T
    first = kernel(x)
    better = owner_of(kernel).better
    monkeypatch.setattr(tiers, "ENOUGH", 4 * x.size)
    for _ in range(2):
        kernel(x)
    assert better.thread is None
    kernel(x)
    better.thread.join()
    assert better.code is not None
    np.testing.assert_array_equal(kernel(x), first)
    again = made("lgamma")  # as in another process: the better form is on disk
    before = len(build.loaded)
    np.testing.assert_array_equal(again(x), first)
    assert owner_of(again).better is None
    assert "lgamma_tiles" in build.loaded[before:]


def test_the_first_form_is_on_disk():
    x = np.random.default_rng(0).uniform(0.1, 9, THRESHOLD)
    first = made("lgamma")(x)
    again, before = made("lgamma"), len(build.loaded)
    np.testing.assert_array_equal(again(x), first)
    assert owner_of(again).better is not None
    assert "lgamma_flat" in build.loaded[before:]


@pytest.mark.parametrize("name", ["add", "expint"])
def test_short_formulas_and_those_of_many_branches_have_one_form(name):
    kernel = made(name)
    kernel(*[np.ones(THRESHOLD)] * kernel.inputs)
    assert owner_of(kernel).better is None
