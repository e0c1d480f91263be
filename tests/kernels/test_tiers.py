"""Two tiers of kernels: baseline code, which is compiled first, and optimized code."""

import copy
import gc
import io
import os
import threading
import weakref
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.bits import assert_same_bits
from tests.support.processes import run_in_child
from tinygrad_cg._core.primitive import OPS, public_function
from tinygrad_cg._core.tensor import Tensor
from tinygrad_cg_frontend import module
from tinygrad_cg_frontend.llvm_source import BASELINE, BASELINE_LONG
from tinygrad_cg_kernels.linear import conv, pool, windows
from tinygrad_cg_kernels.loops import tiles
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.loops.ranges import Ranged
from tinygrad_cg_kernels.move import gather, order
from tinygrad_cg_kernels.reduce import combine, moments, narrow, reduction, softmax, sums
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import machine, objects, progress, tiers
from tinygrad_cg_kernels.runtime.entries import Blocks
from tinygrad_cg_kernels.runtime.threads import MIN_BLOCKED

pytestmark = pytest.mark.skipif(not objects.supported, reason="Numba compiles the kernels here")


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))


@pytest.fixture(autouse=True)
def only_baseline_code(monkeypatch):
    """No work is enough for optimized code."""
    monkeypatch.setattr(tiers, "TIER_UP_WORK", 2**62)
    monkeypatch.setattr(tiers, "TIER_UP_WORK_LONG", 2**62)


def unused_kernel(name):
    """A kernel that nobody has used."""
    kernel = OPS[name].kernel
    return Elementwise(kernel.name, kernel.function, kernel.inputs, kernel.kind)


def owner_of(kernel):
    (owner,) = (
        dispatcher for key, dispatcher in kernel.dispatchers.items() if key[0] in ("flat", "tiles")
    )
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


def compare_tiers(run, owners):
    """Compare arrays that baseline code gives with those of optimized code, bit by bit."""
    first = run()
    for owner in owners():
        assert tiers.optimized_code(owner).code is None
        tiers.finish(owner)
        assert tiers.optimized_code(owner).code is not None
    for result, expected in zip(run(), first, strict=True):
        if expected.dtype.kind in "fc":
            parts = np.dtype(f"f{expected.real.itemsize}")
            result, expected = (x.reshape(-1).view(parts) for x in (result, expected))
            assert_same_bits(result, expected)
        else:
            np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*LONG, "xlogy"])
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_tiers_have_the_same_bits(name, dtype):
    kernel = unused_kernel(name)
    operands = values(kernel.inputs, MIN_BLOCKED, dtype)
    compare_tiers(lambda: [kernel(*operands)], lambda: [owner_of(kernel)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", BRANCHING)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_tiers_of_branching_formulas_have_the_same_bits(name, dtype):
    kernel, rng = unused_kernel(name), np.random.default_rng(0)
    usual = [rng.uniform(sample.low, sample.high, 10_000) for sample in OPS[name].samples]
    some = values(kernel.inputs, 100, dtype)
    pairs = zip(usual, some, strict=True)
    operands = [np.concatenate([pair, other]).astype(dtype) for pair, other in pairs]
    operands = [np.broadcast_to(operand, (10, operand.size)) for operand in operands]
    compare_tiers(lambda: [kernel(*operands)], lambda: [owner_of(kernel)])


@pytest.mark.parametrize("count", [100, MIN_BLOCKED])
@pytest.mark.parametrize("name", ["betainc", "gamma_transport", "digamma"])
def test_other_cores_compile_long_formulas(name, count, monkeypatch):
    """The formulas that other cores compile are part of the kernel, and have the same bits."""
    operands = values(OPS[name].kernel.inputs, count, "float64")
    expected = unused_kernel(name)(*operands)
    sources, compile_all = [], machine.compile_all
    monkeypatch.setattr(
        machine, "compile_all", lambda some: sources.extend(some) or compile_all(some)
    )
    monkeypatch.setattr(machine, "cores", lambda: 4)
    monkeypatch.setattr(module, "MIN_LONG_CHARACTERS", 1)
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", f"{os.environ['TINYGRAD_CG_CACHE_DIR']}/other")
    assert_same_bits(unused_kernel(name)(*operands), expected)
    level = BASELINE_LONG if count == MIN_BLOCKED else BASELINE
    divided = [source for source in sources if source.parts]
    assert divided
    assert {part.level for source in divided for part in (source, *source.parts)} == {level}


def test_small_and_large_arrays_have_the_same_bits_where_loops_are_not_vectorised():
    kernel = unused_kernel("expint")
    x = np.concatenate([*values(1, 20_000, "float64"), np.linspace(-50, 50, 20_000)])
    together = kernel(x)
    one_by_one = np.concatenate([kernel(part) for part in np.array_split(x, 8)])
    assert_same_bits(one_by_one, together)


def test_optimized_code_comes_with_work(monkeypatch):
    kernel = unused_kernel("lgamma")
    x = np.random.default_rng(0).uniform(0.1, 9, (400, 400)).T
    first = kernel(x)
    optimized = owner_of(kernel).optimized
    monkeypatch.setattr(optimized, "enough", 4 * x.size)
    for _ in range(2):
        kernel(x)
    assert optimized.thread is None
    kernel(x)
    optimized.thread.join()
    assert optimized.code is not None
    np.testing.assert_array_equal(kernel(x), first)
    again = unused_kernel("lgamma")  # as in another process: the optimized code is on disk
    before = len(build.loaded)
    np.testing.assert_array_equal(again(x), first)
    assert owner_of(again).optimized is None
    assert "lgamma_tiles" in build.loaded[before:]


def test_baseline_code_is_on_disk():
    x = np.random.default_rng(0).uniform(0.1, 9, MIN_BLOCKED)
    first = unused_kernel("lgamma")(x)
    again, before = unused_kernel("lgamma"), len(build.loaded)
    np.testing.assert_array_equal(again(x), first)
    assert owner_of(again).optimized is not None
    assert "lgamma_flat" in build.loaded[before:]


def small_owner(kernel):
    (owner,) = (dispatcher for key, dispatcher in kernel.dispatchers.items() if key[0] == "small")
    return owner


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", LONG)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_tiers_of_small_kernels_have_the_same_bits(name, dtype):
    kernel = unused_kernel(name)
    operands = values(kernel.inputs, 1000, dtype)
    first = kernel(*operands)
    optimized = small_owner(kernel).code.optimized
    assert optimized is not None
    assert optimized.code is None
    while optimized.thread is None:
        assert kernel(*operands) is not None
    optimized.thread.join()
    assert optimized.code is not None
    assert_same_bits(kernel(*operands), first)


def test_a_small_kernel_asks_for_its_optimized_code_once():
    kernel, x = unused_kernel("sin"), np.linspace(-3, 3, 100)
    first = kernel(x)
    optimized = small_owner(kernel).code.optimized
    calls = 1
    while optimized.thread is None:
        np.testing.assert_array_equal(kernel(x), first)
        calls += 1
    assert tiers.TIER_UP_CALLS <= calls <= tiers.TIER_UP_CALLS + 2
    optimized.thread.join()
    far = np.array([1e9, 2e200])  # a part that was not needed before
    np.testing.assert_array_equal(kernel(far), unused_kernel("sin")(far))
    again, before = unused_kernel("sin"), len(build.loaded)  # as in another process
    np.testing.assert_array_equal(again(x), first)
    assert small_owner(again).code.optimized is None
    assert "sin_small" in build.loaded[before:]


def test_a_kernel_that_is_deleted_keeps_its_code_until_the_other_thread_has_written_to_it():
    kernel = unused_kernel("sin")
    kernel(np.ones(3))
    optimized = small_owner(kernel).code.optimized
    freed = weakref.ref(small_owner(kernel).code)
    begins, goes_on, compiled = threading.Event(), threading.Event(), optimized._compiled

    def slow():
        begins.set()
        assert goes_on.wait(60)
        return compiled()

    optimized._compiled = slow
    optimized.begin()
    assert begins.wait(60)
    del kernel
    gc.collect()
    assert freed() is not None
    goes_on.set()
    optimized.thread.join()
    gc.collect()
    assert freed() is None


def of_tensors(kernel):
    """The public function of an operation, with this kernel."""
    return public_function(
        OPS[kernel.name],
        kernel=kernel.small_kernel,
        otherwise=lambda x: Tensor(kernel(np.asarray(x))),
    )


@pytest.mark.parametrize("convert", [np.asarray, tf.constant])
def test_operations_have_optimized_codes_of_small_kernels(convert):
    kernel, x = unused_kernel("sin"), convert(np.linspace(-3, 3, 100))
    sin = of_tensors(kernel)
    first = sin(x)
    optimized = small_owner(kernel).code.optimized
    for _ in range(tiers.TIER_UP_CALLS + 2):
        np.testing.assert_array_equal(sin(x), first)
    optimized.thread.join()
    assert optimized.code is not None
    np.testing.assert_array_equal(sin(x), first)


def test_baseline_code_serves_where_there_are_no_more_threads(monkeypatch):
    def refuse(*args):
        raise RuntimeError("can't start new thread")

    kernel, x = unused_kernel("sin"), np.linspace(-3, 3, 100)
    first = kernel(x)
    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(3 * tiers.TIER_UP_CALLS):
        np.testing.assert_array_equal(kernel(x), first)
    assert small_owner(kernel).code.optimized.code is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_compiles_what_the_parent_had_not_begun(monkeypatch):
    kernel, x = unused_kernel("sin"), np.linspace(-3, 3, 100)
    kernel(x)
    optimized = small_owner(kernel).code.optimized
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", lambda thread: None)  # as if it waited
        for _ in range(tiers.TIER_UP_CALLS):
            kernel(x)
    assert optimized.thread is not None

    def compile_it():
        for _ in range(tiers.TIER_UP_CALLS + 1):
            kernel(x)
        optimized.thread.join(60)
        return optimized.code is not None

    run_in_child(compile_it)


LINKED = []


def test_the_search_for_rows_is_compiled_when_there_is_much_to_do(monkeypatch):
    monkeypatch.setattr(tiles, "_owner", None)
    kernel = unused_kernel("add")
    x = np.random.default_rng(0).uniform(size=(300, 300))
    first = kernel(x, x.T)
    LINKED.append(tiles._owner)  # kernels go on to call it
    optimized = tiles._owner.optimized
    assert optimized.thread is None
    monkeypatch.setattr(optimized, "enough", 10 * x.size)
    while optimized.thread is None:
        np.testing.assert_array_equal(kernel(x, x.T), first)
    optimized.thread.join()
    np.testing.assert_array_equal(kernel(x, x.T), first)
    np.testing.assert_array_equal(first, x + x.T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp"])
def test_both_tiers_of_kernels_of_narrow_rows_have_the_same_bits(name, dtype):
    finish = getattr(narrow, f"_{name}")
    kernel = Ranged(f"{name}_narrow", narrow._core, 2, (finish,))
    x = np.random.default_rng(0).normal(0, 9, (5000, 7)).astype(dtype)
    x[0], x[1, 2], x[2, 3] = -np.inf, np.nan, np.inf
    width = 1 if name == "logsumexp" else 7

    def run():
        out = np.empty((5000, width), dtype)
        kernel((x, out), (7, width), 5000, x.size)
        return [out]

    compare_tiers(run, kernel.dispatchers.values)


ROWS = {
    "softmax": softmax.softmax,
    "log_softmax": softmax.log_softmax,
    "logsumexp": softmax.logsumexp,
    "log_softmax_grad": softmax.log_softmax_grad,
    "cross_entropy": softmax.cross_entropy,
    "cross_entropy_grad": softmax.cross_entropy_grad,
}
"""Functions of rows that have long formulas, and sums that vectors put together."""


def run_rows(kernel, name, arrays, width):
    rows = len(arrays[0])
    result = (rows,) if name in ("logsumexp", "cross_entropy") else (rows, width)
    out = np.empty(result, arrays[0].dtype)
    step = width * out.itemsize
    sizes = (width, step, 1, width, out.itemsize) if name == "logsumexp" else (width,)
    kernel((*arrays, out), sizes, rows, out.size)
    return out


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ROWS)
def test_both_tiers_of_kernels_of_rows_have_the_same_bits(name, dtype):
    kernel = copy.copy(ROWS[name].kernels["rows"])
    kernel.blocks = Blocks(name, kernel.blocks.template)
    rng, operands = np.random.default_rng(0), {}
    for width in (1, 2, 5, 8, 17, 31, 33, 64, 100, 127, 1000, 1024, 1025, 3001):
        x = rng.normal(0, 9, (12, width)).astype(dtype)
        x[0], x[1, width // 2], x[2, -1], x[3, 0] = -np.inf, np.nan, np.inf, -0.0
        operands[width] = [x, x] if name.endswith("grad") else [x]
        if name.startswith("cross_entropy"):
            first = [rng.normal(size=12).astype(dtype)] if name.endswith("grad") else []
            operands[width] = [*first, x, rng.integers(width, size=12)]
    compare_tiers(
        lambda: [run_rows(kernel, name, arrays, width) for width, arrays in operands.items()],
        kernel.blocks.owners.values,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_both_tiers_of_small_logsumexp_have_the_same_bits(dtype):
    kernel = softmax.LogSumExp()
    rng = np.random.default_rng(0)
    operands = [rng.normal(0, 9, size).astype(dtype) for size in (1, 3, 17, 100, 1000, 2000)]
    run = lambda: [np.asarray(kernel(x, (0,))) for x in operands]
    compare_tiers(run, kernel._small.entries.owners.values)


SHAPES = [((11, width), (1,)) for width in (1, 2, 7, 8, 17, 33, 64, 100, 127, 512, 1025, 3001)]
SHAPES += [((width, 13), (0,)) for width in (1, 2, 8, 9, 64, 100, 1000, 2049)]
SHAPES += [((40_001,), (0,)), ((3, 40_000), (1,)), ((2000, 50), (0,)), ((2000, 50), (0, 1))]
SHAPES += [((17, 9, 16), (1,)), ((9, 40, 33), (0, 2)), ((5,), (0,)), ((1000,), (0,))]
"""Shapes, and the axes that are reduced: rows, four rows at a time, columns, few and many."""


def again(kernel):
    """A reduction that nobody has used."""
    if isinstance(kernel, reduction.Reduction):
        return reduction.Reduction(
            *(kernel.name, *REDUCTIONS[kernel.name], kernel.identity, kernel.kind, kernel.of_two)
        )
    function = getattr(moments, f"_{kernel.name}")
    row = getattr(moments, f"_{kernel.name}_of_row")
    return moments.Moment(kernel.name, row, function, kernel.identity)


REDUCTIONS = {
    name: tuple(getattr(combine, f"{name}_{form}", None) for form in ("row", "four", "rows"))
    for name in ("sum", "prod", "max", "min", "any", "all")
}


KINDS = [(name, dtype) for name in REDUCTIONS for dtype in ("float64", "float32", "int32", "bool")]
KINDS += [(name, "complex64") for name in ("sum", "prod", "any", "all")]
KINDS += [(name, dtype) for name in ("variance", "norm") for dtype in ("float64", "float32")]


@pytest.mark.parametrize(("name", "dtype"), KINDS)
@pytest.mark.filterwarnings("ignore:.*encountered")
def test_both_tiers_of_reductions_have_the_same_bits(name, dtype, monkeypatch):
    """Sums by vectors have the bits of one order: both forms have these loops, and no others."""
    if name in ("variance", "norm"):
        monkeypatch.setattr(moments, "_squares", sums.Sums("squares", moments._squared_distance))
    kernel = again(getattr(reduction, name, None) or getattr(moments, name))
    rng, operands = np.random.default_rng(0), []
    for shape, axes in SHAPES:
        x = rng.normal(0, 1, shape) * 10.0 ** rng.integers(-3, 4, shape)
        x = np.where(rng.uniform(size=shape) < 0.1, np.copysign(0.0, x), x)
        if dtype == "complex64":
            x = x + 1j * rng.normal(size=shape)
        x = x.astype(dtype)
        operands += [(x, axes), (np.asfortranarray(x), axes), (np.repeat(x, 2, -1)[..., ::2], axes)]
    zeros = np.where(rng.uniform(size=(5, 100)) < 0.5, -0.0, 0.0).astype(dtype)
    operands += [(zeros, (1,)), (zeros, (0,)), (zeros, (0, 1))]
    run = lambda: [np.asarray(kernel(x, axes)) for x, axes in operands]
    owners = lambda: {getattr(owner, "code", owner) for owner in kernel.dispatchers.values()}
    compare_tiers(run, owners)


IMAGES = np.random.default_rng(0).normal(size=(3, 11, 12, 4))
FILTERS = np.random.default_rng(1).normal(size=(3, 3, 4, 5))
INDICES = np.random.default_rng(2).integers(0, 11, IMAGES.shape)
WINDOW = pool.Window((3, 3), (2, 2), ((1, 1), (0, 1)))
ON_ARRAYS = {
    "take_along_axis": (order._take.entries, lambda x: order.take_along_axis(x, INDICES, 1)),
    "scatter_add": (
        gather._run.entries,
        lambda x: gather.scatter_add((20, 12, 4), x.dtype, INDICES[0, :, 0, 0], x[0]),
    ),
    "max_windows": (pool._RANGED["max_pool"].blocks, lambda x: pool.max_pool(x, WINDOW)),
    "mean_windows": (pool._RANGED["mean_pool"].blocks, lambda x: pool.mean_pool(x, WINDOW)),
}
"""The entries of kernels of contiguous arrays, and what calls each."""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ON_ARRAYS)
def test_both_tiers_of_kernels_of_arrays_have_the_same_bits(name, dtype, request):
    entries, call = ON_ARRAYS[name]
    request.addfinalizer(entries.clear)
    entries.clear()
    x = IMAGES.astype(dtype)
    compare_tiers(lambda: [call(x)], entries.owners.values)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_both_tiers_of_sums_over_windows_have_the_same_bits(dtype, monkeypatch):
    kernels, new_kernel = [], windows._kernel.__wrapped__

    def kernel(*key):
        kernels.append(new_kernel(*key))
        return kernels[-1]

    def run():
        results = []
        for groups, weights in ((1, filters), (4, filters[:, :, :1, :4])):
            geometry = conv.Geometry((2, 1), ((1, 1), (0, 2)), (1, 1), groups)
            out = conv.conv(images, weights, geometry)
            results += [out, conv.conv_input(out, weights, geometry, images.shape[1:3])]
            results.append(conv.conv_filter(images, out, geometry, (3, 3)))
        return results

    monkeypatch.setattr(windows, "_kernel", kernel)
    monkeypatch.setattr(conv, "_planned", cache(conv._planned.__wrapped__))
    images, filters = (3 * IMAGES).astype(dtype), (3 * FILTERS).astype(dtype)
    compare_tiers(run, lambda: [owner for k in kernels for owner in k.dispatchers.values()])
    assert len(kernels) >= 3


def test_kernels_of_arrays_count_their_elements(request):
    request.addfinalizer(order._take.entries.clear)
    order._take.entries.clear()
    first = order.take_along_axis(IMAGES, INDICES, 1)
    (owner,) = order._take.entries.owners.values()
    optimized = owner.code.optimized
    optimized.enough = 10 * IMAGES.size
    while optimized.thread is None:
        np.testing.assert_array_equal(order.take_along_axis(IMAGES, INDICES, 1), first)
    optimized.thread.join()
    assert optimized.code is not None
    np.testing.assert_array_equal(order.take_along_axis(IMAGES, INDICES, 1), first)


def test_brief_parts_are_there_from_the_beginning():
    """Numbers that go with arrays need loops of their own, which are compiled with the first."""
    kernel, x = unused_kernel("multiply"), np.linspace(-3, 3, 100)
    before = len(build.compiled)
    np.testing.assert_array_equal(kernel(x, x), x * x)
    np.testing.assert_array_equal(kernel(x, np.array(2.0)), x * 2)
    np.testing.assert_array_equal(kernel(np.array(2.0), x), x * 2)
    assert build.compiled[before:] == ["multiply_small"]
    optimized = small_owner(kernel).code.optimized
    optimized.finish()
    np.testing.assert_array_equal(kernel(x, np.array(2.0)), x * 2)


def test_nothing_is_said_of_optimized_form(monkeypatch):
    """Nobody waits for it. Who asks for it does: `tiers.finish`."""
    stream = io.StringIO()
    monkeypatch.setenv("TINYGRAD_CG_PROGRESS", "1")
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "_row", progress._Row())
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    kernel = unused_kernel("lgamma")
    kernel(*values(kernel.inputs, MIN_BLOCKED, "float64"))
    assert stream.getvalue().startswith("tinygrad_cg: compiling 1 kernel ... ")
    said = stream.getvalue()
    optimized = owner_of(kernel).optimized
    optimized.begin()
    optimized.thread.join()
    assert optimized.code is not None
    assert stream.getvalue() == said
