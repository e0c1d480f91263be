"""Parts of kernels that are compiled when they are first called."""

import threading

import numpy as np
import pytest

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops import engine
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import objects, service, store
from tinygrad_cg_kernels.runtime.threads import THRESHOLD

pytestmark = pytest.mark.skipif(not objects.supported, reason="Numba compiles the kernels here")
FAR = [1e15, -3e9, np.inf, np.nan, -0.0, 5e-324]


def compiled(name):
    return [one for one in (*build.compiled, *build.loaded) if one == name]


def values(size, dtype, far):
    x = np.random.default_rng(size).uniform(0.1, 9, size)
    if far:
        x[-(-size // 2) :: 7] = np.resize(FAR, len(x[-(-size // 2) :: 7]))
        x[-1] = 1e15
    with np.errstate(all="ignore"):
        return x.astype(dtype)


def apart_and_whole(name, inputs, kind, monkeypatch):
    """A kernel with parts, and one that is compiled as a whole."""
    make = lambda: Elementwise(name, getattr(elementary, name), inputs, kind)
    apart, whole = make(), make()

    def run_whole(*arrays):
        with monkeypatch.context() as patch:
            patch.setattr(engine, "_SMALL", engine._TILES)
            patch.setattr(engine, "_FLAT", engine._TILES)
            return whole(*arrays)

    return apart, whole, run_whole


@pytest.mark.parametrize(("name", "inputs"), [("sin", 1), ("log2", 1), ("power", 2)])
def test_kernels_have_the_bits_of_whole_ones(name, inputs, monkeypatch):
    dtype = "float64" if name != "log2" else "float32"
    apart, whole, run_whole = apart_and_whole(name, inputs, "float", monkeypatch)
    for far in (False, True):
        for size in (1, 3, 2500, THRESHOLD + 5):
            x = values(size, dtype, far)
            bits = np.dtype(f"i{x.itemsize}")
            number = x[-1:].reshape(())
            for given in [(x,)] if inputs == 1 else [(x, x[::-1].copy()), (x, number), (number, x)]:
                expected = run_whole(*given).view(bits)
                np.testing.assert_array_equal(apart(*given).view(bits), expected)
    for kernel, flat in ((apart, True), (whole, False)):
        for key, owner in kernel.dispatchers.items():
            of_parts = isinstance(getattr(owner, "code", owner), service.CodeOfParts)
            assert of_parts == (flat or key[0] == "small"), key


def test_a_part_is_compiled_once_and_found_in_the_cache():
    for size in (3, THRESHOLD):
        name = f"cos_{'small' if size == 3 else 'flat'}_part"
        kernel = Elementwise("cos", elementary.cos, 1, "float")
        before = len(compiled(name))
        kernel(values(size, float, far=False))
        assert len(compiled(name)) == before
        far = values(size, float, far=True)
        expected = kernel(far)
        assert len(compiled(name)) == before + 1
        kernel(far)
        assert len(compiled(name)) == before + 1
        again, found = Elementwise("cos", elementary.cos, 1, "float"), build.loaded.count(name)
        np.testing.assert_array_equal(again(far), expected)
        assert build.loaded.count(name) == found + (store.cache_folder() is not None)


def test_what_is_written_in_place_is_written_once():
    kernel = Elementwise("sin", elementary.sin, 1, "float")
    for size in (5, 3000, THRESHOLD):
        x = values(size, float, far=True)
        expected = kernel(x)
        out = np.empty_like(x)
        assert kernel(x, out=out) is out
        np.testing.assert_array_equal(out, expected)
        assert kernel(x, out=x) is x
        np.testing.assert_array_equal(x, expected)


def test_threads_that_need_a_part_together_have_right_results():
    kernel = Elementwise("tan", elementary.tan, 1, "float")
    x = values(8 * THRESHOLD, float, far=True)
    kernel(np.ones_like(x))
    results, ready = [], threading.Barrier(4)

    def run():
        ready.wait()
        results.append(kernel(x))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(results) == 4
    expected = Elementwise("tan", elementary.tan, 1, "float")(x[::-1])[::-1]  # by tiles
    for got in results:
        np.testing.assert_array_equal(got, expected)


def test_all_parts_can_be_compiled_beforehand():
    kernel = Elementwise("log10", elementary.log10, 1, "float")
    for size in (3, THRESHOLD):
        kernel(values(size, float, far=False))
    owners = list(kernel.dispatchers.values())
    assert [service.compile_missing(owner, every=True) for owner in owners] == [True, True]
    before = len(build.compiled), len(build.loaded)
    for size in (1, 3, THRESHOLD):
        kernel(values(size, float, far=True))
        kernel(values(size, float, far=False))
    assert (len(build.compiled), len(build.loaded)) == before
    assert not any(service.compile_missing(owner) for owner in owners)
