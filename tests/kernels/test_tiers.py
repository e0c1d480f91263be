"""Kernels in two forms: the one that is compiled first, and the better one."""

import copy
import io
import os
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.primitive import OPS, public_function
from tinygrad_cg._core.tensor import Tensor
from tinygrad_cg_kernels.loops import tiles
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.reduce import combine, narrow, softmax
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import objects, progress
from tinygrad_cg_kernels.runtime.entries import Blocks
from tinygrad_cg_kernels.runtime.native import kernels, tiers
from tinygrad_cg_kernels.runtime.threads import THRESHOLD

pytestmark = pytest.mark.skipif(not objects.supported, reason="Numba compiles the kernels here")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))


@pytest.fixture(autouse=True)
def only_first_forms(monkeypatch):
    """No work is enough for a better form."""
    monkeypatch.setattr(tiers, "ENOUGH", 2**62)
    monkeypatch.setattr(tiers, "ENOUGH_HEAVY", 2**62)


def made(name):
    """A kernel that nobody has used."""
    known = OPS[name].kernel
    return Elementwise(known.name, known.function, known.inputs, known.kind)


def owner_of(kernel):
    (owner,) = (one for key, one in kernel.dispatchers.items() if key[0] in ("flat", "tiles"))
    return owner


LONG = ["sin", "cos", "tan", "power", "log2", "log10", "lgamma", "digamma", "erfc", "erfinv"]
LONG += ["erfcinv", "logaddexp"]
"""Operations of long formulas."""
BRANCHING = ["bessel_j", "bessel_y", "bessel_iv", "bessel_k", "fresnel_cos", "spence_derivative"]
BRANCHING += ["zeta", "polygamma", "igamma", "betainc", "dawson_derivative", "bessel_i"]
BRANCHING += ["gamma_transport", "sinc_derivative", "expint"]
"""Operations whose formulas have many branches."""


def values(inputs, count, dtype):
    """Operands of random bits, among them numbers that are not finite, and of usual numbers."""
    info, rng = np.finfo(dtype), np.random.default_rng(0)
    word = f"i{info.bits // 8}"
    some = rng.integers(-(2 ** (info.bits - 1)), 2 ** (info.bits - 1), count, word).view(dtype)
    usual = rng.uniform(-9, 9, count).astype(dtype)
    whole = np.concatenate([some, usual, usual / 100])
    return [rng.permutation(whole) for _ in range(inputs)]


def assert_same_bits(found, expected):
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    bits = np.dtype(f"i{expected.itemsize}")
    np.testing.assert_array_equal(found[~nan].view(bits), expected[~nan].view(bits))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*LONG, "xlogy"])
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_forms_have_the_same_bits(name, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "BLOCK", kernels.BLOCK._replace(long=0))
    kernel = made(name)
    given = values(kernel.inputs, THRESHOLD, dtype)
    first = kernel(*given)
    owner = owner_of(kernel)
    assert owner.better.code is None
    kernels.supply(owner, every=True)
    assert owner.better.code is not None
    assert_same_bits(kernel(*given), first)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", BRANCHING)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_forms_of_branching_formulas_have_the_same_bits(name, dtype):
    kernel, rng = made(name), np.random.default_rng(0)
    usual = [rng.uniform(one.low, one.high, 10_000) for one in OPS[name].samples]
    some = values(kernel.inputs, 100, dtype)
    pairs = zip(usual, some, strict=True)
    given = [np.concatenate([one, other]).astype(dtype) for one, other in pairs]
    given = [np.broadcast_to(one, (10, one.size)) for one in given]
    first = kernel(*given)
    owner = owner_of(kernel)
    assert owner.better.code is None
    kernels.supply(owner, every=True)
    assert owner.better.code is not None
    assert_same_bits(kernel(*given), first)


def test_small_and_large_arrays_have_the_same_bits_where_loops_are_not_vectorised():
    kernel = made("expint")
    x = np.concatenate([*values(1, 20_000, "float64"), np.linspace(-50, 50, 20_000)])
    together = kernel(x)
    one_by_one = np.concatenate([kernel(part) for part in np.array_split(x, 8)])
    assert_same_bits(one_by_one, together)


def test_the_better_form_comes_with_work(monkeypatch):
    kernel = made("lgamma")
    x = np.random.default_rng(0).uniform(0.1, 9, (400, 400)).T
    first = kernel(x)
    better = owner_of(kernel).better
    monkeypatch.setattr(better, "enough", 4 * x.size)
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


def test_short_formulas_have_one_form():
    kernel = made("add")
    kernel(*[np.ones(THRESHOLD)] * 2)
    assert owner_of(kernel).better is None


def small_owner(kernel):
    (owner,) = (one for key, one in kernel.dispatchers.items() if key[0] == "small")
    return owner


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_forms_of_small_kernels_have_the_same_bits(name, dtype, monkeypatch):
    monkeypatch.setattr(kernels, "OBJECTS", kernels.OBJECTS._replace(long=0))
    kernel = made(name)
    given = values(kernel.inputs, 1000, dtype)
    first = kernel(*given)
    better = small_owner(kernel).code.better
    assert better is not None
    assert better.code is None
    while better.thread is None:
        assert kernel(*given) is not None
    better.thread.join()
    assert better.code is not None
    assert_same_bits(kernel(*given), first)


def test_a_small_kernel_asks_for_its_better_form_once():
    kernel, x = made("sin"), np.linspace(-3, 3, 100)
    first = kernel(x)
    better = small_owner(kernel).code.better
    calls = 1
    while better.thread is None:
        np.testing.assert_array_equal(kernel(x), first)
        calls += 1
    assert tiers.CALLS <= calls <= tiers.CALLS + 2
    better.thread.join()
    far = np.array([1e9, 2e200])  # a part that was not needed before
    np.testing.assert_array_equal(kernel(far), made("sin")(far))
    again, before = made("sin"), len(build.loaded)  # as in another process
    np.testing.assert_array_equal(again(x), first)
    assert small_owner(again).code.better is None
    assert "sin_small" in build.loaded[before:]


def of_tensors(kernel):
    """The public function of an operation, with this kernel."""
    return public_function(
        OPS[kernel.name],
        kernel=kernel.small_kernel,
        otherwise=lambda x: Tensor(kernel(np.asarray(x))),
    )


@pytest.mark.parametrize("convert", [np.asarray, tf.constant])
def test_operations_have_the_better_forms_of_small_kernels(convert):
    kernel, x = made("sin"), convert(np.linspace(-3, 3, 100))
    sin = of_tensors(kernel)
    first = sin(x)
    better = small_owner(kernel).code.better
    for _ in range(tiers.CALLS + 2):
        np.testing.assert_array_equal(sin(x), first)
    better.thread.join()
    assert better.code is not None
    np.testing.assert_array_equal(sin(x), first)


def test_the_first_form_serves_where_there_are_no_more_threads(monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    kernel, x = made("sin"), np.linspace(-3, 3, 100)
    first = kernel(x)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(3 * tiers.CALLS):
        np.testing.assert_array_equal(kernel(x), first)
    assert small_owner(kernel).code.better.code is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_compiles_what_the_parent_had_not_begun(monkeypatch):
    kernel, x = made("sin"), np.linspace(-3, 3, 100)
    kernel(x)
    better = small_owner(kernel).code.better
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: None)  # as if it waited
        for _ in range(tiers.CALLS):
            kernel(x)
    assert better.thread is not None
    child = os.fork()
    if not child:
        try:
            for _ in range(tiers.CALLS + 1):
                kernel(x)
            better.thread.join(60)
        finally:
            os._exit(better.code is None)
    assert os.waitpid(child, 0)[1] == 0


LINKED = []


def test_the_search_for_rows_is_compiled_when_there_is_much_to_do(monkeypatch):
    monkeypatch.setattr(tiles, "_owner", None)
    kernel = made("add")
    x = np.random.default_rng(0).uniform(size=(300, 300))
    first = kernel(x, x.T)
    LINKED.append(tiles._owner)  # kernels go on to call it
    better = tiles._owner.better
    assert better.thread is None
    monkeypatch.setattr(better, "enough", 10 * x.size)
    while better.thread is None:
        np.testing.assert_array_equal(kernel(x, x.T), first)
    better.thread.join()
    np.testing.assert_array_equal(kernel(x, x.T), first)
    np.testing.assert_array_equal(first, x + x.T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_both_forms_of_kernels_of_narrow_rows_have_the_same_bits(name, dtype):
    finish = getattr(narrow, f"_{name}")
    kernel = Ranged(f"{name}_narrow", narrow._core, 2, (finish,))
    x = np.random.default_rng(0).normal(0, 9, (5000, 7)).astype(dtype)
    x[0], x[1, 2], x[2, 3] = -np.inf, np.nan, np.inf
    width = 1 if name == "logsumexp" else 7
    first, second = np.empty((5000, width), dtype), np.empty((5000, width), dtype)
    kernel((x, first), (7, width), 5000, x.size)
    (owner,) = kernel.dispatchers.values()
    assert owner.better.code is None
    kernels.supply(owner, every=True)
    kernel((x, second), (7, width), 5000, x.size)
    assert_same_bits(second, first)


ROWS = {
    "softmax": softmax.softmax,
    "log_softmax": softmax.log_softmax,
    "logsumexp": softmax.logsumexp,
    "log_softmax_grad": softmax.log_softmax_grad,
}
"""Functions of rows that have long formulas, and sums that vectors put together."""


def run_rows(kernel, name, arrays, width):
    rows = arrays[0].size // width
    result = (rows,) if name == "logsumexp" else (rows, width)
    out = np.empty(result, arrays[0].dtype)
    step = width * out.itemsize
    sizes = (width, step, 1, width, out.itemsize) if name == "logsumexp" else (width,)
    kernel((*arrays, out), sizes, rows, out.size)
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_both_forms_of_kernels_of_rows_have_the_same_bits(name, dtype):
    kernel = copy.copy(ROWS[name].kernels["rows"])
    kernel.blocks = Blocks(name, kernel.blocks.template)
    rng, first = np.random.default_rng(0), {}
    operands = {}
    for width in (1, 2, 5, 8, 17, 31, 33, 64, 100, 127, 1000, 1024, 1025, 3001):
        x = rng.normal(0, 9, (12, width)).astype(dtype)
        x[0], x[1, width // 2], x[2, -1], x[3, 0] = -np.inf, np.nan, np.inf, -0.0
        operands[width] = [x, x] if name.endswith("grad") else [x]
        first[width] = run_rows(kernel, name, operands[width], width)
    (owner,) = kernel.blocks.owners.values()
    assert owner.better.code is None
    kernels.supply(owner, every=True)
    assert owner.better.code is not None
    for width, arrays in operands.items():
        assert_same_bits(run_rows(kernel, name, arrays, width), first[width])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_forms_of_small_logsumexp_have_the_same_bits(dtype):
    kernel = softmax.LogSumExp()
    rng = np.random.default_rng(0)
    given = [rng.normal(0, 9, size).astype(dtype) for size in (1, 3, 17, 100, 1000, 2000)]
    first = [kernel(x, (0,)) for x in given]
    (owner,) = kernel._small.entries.owners.values()
    better = owner.code.better
    assert better.code is None
    better.finish()
    for x, found in zip(given, first, strict=True):
        assert_same_bits(kernel(x, (0,)), found)


def test_sums_alone_have_one_form():
    kernel = Ranged("sum_rows", combine.rows_core, 5, (combine.sum_row,))
    x, out = np.ones((3, 5)), np.empty(3)
    kernel((x, out), (5, 40, 1, 5, 8), 3, 15)
    (owner,) = kernel.dispatchers.values()
    assert owner.better is None


def test_nothing_is_said_of_a_better_form(monkeypatch):
    """Nobody waits for it. Who asks for it does: `kernels.supply` with `every`."""
    stream = io.StringIO()
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "1")
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "_row", progress._Row())
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    kernel = made("lgamma")
    kernel(*values(kernel.inputs, THRESHOLD, "float64"))
    assert stream.getvalue().startswith("tinygrad_cg: compiling 1 kernel ... ")
    said = stream.getvalue()
    better = owner_of(kernel).better
    better.begin()
    better.thread.join()
    assert better.code is not None
    assert stream.getvalue() == said
