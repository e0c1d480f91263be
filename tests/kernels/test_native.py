"""Generated text as machine code: the translation, vector functions, files, and what is freed."""

import gc
import weakref

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.bits import assert_same_bits
from tests.support.python import run_python
from tinygrad_cg_frontend import BASELINE, OPTIMIZED, Untranslatable
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.runtime import formulas, numba_backend, objects, service, signatures
from tinygrad_cg_kernels.runtime.service import TextSource

HEAD = """
import numpy as np

from tinygrad_cg_kernels.elementary import arithmetic, exponential, logarithm, trigonometric
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.views import gather_columns
from tinygrad_cg_kernels.runtime.intrinsics import (
    noalias, outlined, reassociating_add, reassociating_multiply, reciprocal_divide, wide_vectors
)
from tinygrad_cg_kernels.runtime.views import section, vector
"""
pytestmark = pytest.mark.skipif(not objects.supported, reason="arrays lie elsewhere in memory")


def text(*lines, parameters="x, y", helpers=""):
    """A text with a function of arrays and sizes."""
    body = "\n".join(f"    {line}" for line in (*lines, "return True"))
    return f"{HEAD}\n{helpers}\n\ndef run({parameters}, sizes):\n    wide_vectors()\n{body}\n"


def by_front_end(source, kinds):
    """The function of a text; Untranslatable where the front end refuses it."""
    signature, own = signatures.program(kinds), TextSource(source, "run")
    return service._by_front_end(service._Request(own, signature, own.key(signature)), list).run


def by_numba(source, kinds):
    return numba_backend.compile_by_numba(
        TextSource(source, "run").python(), "run", signatures.program(kinds)
    )[0]


def by_both(source, *arrays):
    """The written arrays, by translation and by Numba, which agree; the last is written."""
    results = []
    kinds = [(array.dtype, array.ndim) for array in arrays]
    sizes = np.array([array.size for array in arrays], np.int64)
    for run in (by_front_end(source, kinds), by_numba(source, kinds)):
        copies = [array.copy() for array in arrays]
        assert run(*copies, sizes) is True
        results.append(copies)
    for mine, its in zip(*results, strict=True):
        np.testing.assert_array_equal(mine, its)
    return results[0][-1]


X = np.array([0.0, -0.0, 1.5, -2.25, np.inf, -np.inf, np.nan, 3e-310])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "formula",
    [
        *("v + v", "v - 1.5", "v * v", "v / 3.0", "-v", "-v + v * 2.0"),
        *("exponential.exp(v)", "logarithm.log(v)", "trigonometric.sin(v)"),
        "arithmetic.multiply_upstream(v, v)",
        "trigonometric.near(v)",
        *("v < 1.0", "v >= 0.0", "v == 1.5", "v != 1.5", "not v < 1.0", "(v < 1.0) | (v > 2.0)"),
        *("np.float32(v)", "np.float64(v)", "np.bool_(v)", "v != 0"),
        *("reassociating_add(v, v)", "reciprocal_divide(v, v + 1.5)"),
    ],
)
def test_formulas_give_the_numbers_of_numba(formula, dtype):
    formula = formula.replace("1.5", f"np.{dtype}(1.5)").replace("2.0", f"np.{dtype}(2.0)")
    x = X.astype(dtype)
    result = np.zeros(x.size, bool if any(c in formula for c in "<>=") else dtype)
    by_both(
        text("for j in range(np.uintp(x.size)):", "    v = x[j]", f"    y[j] = {formula}"),
        x,
        result,
    )


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "bool"])
def test_integers_and_bools(dtype):
    x = np.array([0, 1, 2, 100]).astype(dtype)
    loop = "for j in range(np.uintp(x.size)):"
    for formula in (f"np.{'bool_' if dtype == 'bool' else dtype}(x[j])", "x[j] != 0"):
        by_both(text(loop, f"    y[j] = {formula}"), x, np.zeros(x.size, dtype))
    by_both(text(loop, "    y[j] = np.float64(x[j])"), x, np.zeros(x.size))


def test_loops_conditions_tuples_and_work_arrays():
    helpers = '''
@jitable
def part(x, first, count):
    """Sums of a section."""
    outlined()
    noalias()
    total = 0.0
    rows = section(x, first, count)
    for j in range(np.uintp(count)):
        total = reassociating_add(total, rows[j])
    return total, count
'''
    source = text(
        "work = np.empty(3, np.float64)",
        "parts = 0",
        "for first in range(0, sizes[0], 3):",
        "    count = min(first + 3, sizes[0]) - first",
        "    total, n, = part(x, first, count)",
        "    parts = part(x, first, count)",
        "    if first == 0:",
        "        for j in range(3):",
        "            work[j] = 0.0",
        "    if not first % 2:",
        "        work[first // 3 % 3] = total + parts[0]",
        "    y[-1] = np.float64(n)",
        "    gather_columns(section(y, 0, 3), work, first)",
        helpers=helpers,
    )
    by_both(source, np.arange(8.0), np.zeros(5))


def test_what_is_not_contiguous_is_refused():
    source = text("row = section(x, 0, x.size)", "y[0] = row[0]")
    kinds = [(np.dtype(float), 2), (np.dtype(float), 1)]
    for run in (by_front_end(source, kinds), by_numba(source, kinds)):
        sizes, y = np.zeros(1, np.int64), np.zeros(1)
        assert run(np.ones((3, 4))[:, ::2], y, sizes) is False
        assert y[0] == 0
        assert run(np.ones((3, 4)), y, sizes) is True
        assert y[0] == 1


@pytest.mark.parametrize(
    "line", ["y[0] = x[0] ** 2", "y[0] = {1: 1}[1]", "del x", "v = 1\n    v = 1.0", "print(x)"]
)
def test_what_is_not_translated_is_left_to_numba(line):
    with pytest.raises(Untranslatable):
        by_front_end(text(line), [(np.dtype(float), 1)] * 2)


def test_complex_programs_are_translated():
    f = tf.function(lambda z, w: tf.math.conj(z) * w - z / (w + 1.0) + tf.cast(tf.abs(z), z.dtype))
    z, w = np.array([1j, 2.0 + 1j, -3.0]), np.array([0.5, 1j, 2.0 - 1j])
    before = len(service.fallbacks)
    expected = z.conj() * w - z / (w + 1) + abs(z)
    np.testing.assert_allclose(f(tf.constant(z), tf.constant(w)).numpy(), expected, rtol=1e-15)
    assert len(service.fallbacks) == before


LONG = "exp exp2 expm1 log log2 log10 log1p sinh cosh tanh sin cos tan arcsin arccos arctan"
LONG += " arcsinh arccosh arctanh erf erfc sigmoid softplus cbrt"


@pytest.mark.parametrize("kind", ["f64", "f32"])
@pytest.mark.parametrize("name", LONG.split())
def test_vectors_and_numbers_have_the_same_bits(name, kind):
    """A function called a vector at a time, and inlined: at ordinary, special and far arguments."""
    function = getattr(elementary, name)
    formula = formulas.find(function, (kind,))
    dtype = np.dtype(f"float{kind[1:]}")
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=100), X, rng.normal(size=60) * 1e3, [1e30, 3e38, 1e300]])
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    module = function.__module__.rpartition(".")[2]
    call = f"{module}.{function.__name__}"
    loop = "for j in range(np.uintp(x.size)):"
    alone = text(loop, f"    y[j] = {call}(x[j])").replace(
        "import arithmetic", f"import {module}, arithmetic"
    )
    several = [f"    v{k} = {call}(x[j] * np.{dtype.name}({k + 1}.0))" for k in range(5)]
    many = text(loop, *several, "    y[j] = v0").replace(
        "import arithmetic", f"import {module}, arithmetic"
    )
    results = []
    for source in (alone, many):
        y = np.zeros_like(x)
        kinds = [(dtype, 1)] * 2
        run = by_front_end(source, kinds)
        assert run(x, y, np.zeros(1, np.int64)) is True
        results.append(y)
    assert_same_bits(*results)
    assert formula.lanes or name == "cbrt" or (name, kind) == ("exp2", "f32")  # short: inlined


def test_a_damaged_file_is_compiled_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    source, kinds = text("y[0] = x[0] + 42.0"), [(np.dtype(float), 1)] * 2

    def run():
        monkeypatch.setattr(service, "_live", weakref.WeakValueDictionary())
        function = by_front_end(source, kinds)
        y = np.zeros(1)
        function(np.ones(1), y, np.zeros(1, np.int64))
        return y[0]

    assert run() == 43
    (file,) = tmp_path.rglob("programs/*.code")
    good = file.read_bytes()
    for position in (0, 30, len(good) // 2, len(good) - 1):
        damaged = bytearray(good)
        damaged[position] ^= 0x40
        file.write_bytes(damaged)
        with pytest.warns(RuntimeWarning, match="is damaged: it is compiled again"):
            assert run() == 43
        assert file.read_bytes() == good
    file.write_bytes(good[:-7])
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert run() == 43


def test_the_oldest_files_go_first(tmp_path, monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TINYGRAD_CG_CACHE_LIMIT", "1")
    monkeypatch.setattr(TextSource.store, "_count", 0)
    monkeypatch.setattr("tinygrad_cg_kernels.runtime.store.SIZE_CHECK_INTERVAL", 1)
    for k in range(3):
        by_front_end(text(f"y[0] = x[0] + {k}.25"), [(np.dtype(float), 1)] * 2)
    assert len(list(tmp_path.rglob("programs/*.code"))) == 1


def test_code_that_nobody_holds_is_freed():
    gc.collect()
    before = [*service._live.values()]
    f = tf.function(lambda x: tf.cosh(tf.exp(tf.cosh(tf.exp(x)))))
    np.testing.assert_allclose(f(tf.constant(0.0)), np.cosh(np.exp(np.cosh(1.0))), 1e-6)
    owners = [weakref.ref(value) for value in service._live.values() if value not in before]
    assert owners
    del f
    gc.collect()
    assert any(owner() is None for owner in owners)


def test_a_second_process_compiles_nothing(tmp_path):
    code = """
import tinygrad_cg as tf
from tinygrad_cg_kernels.runtime import compile as build
f = tf.function(tf.grad(lambda x: tf.reduce_sum(tf.exp(x) * tf.sin(x))))
f(tf.constant([1.0, 2.0]))
print(build.compiled.count("run"), build.loaded.count("run"))
"""
    runs = [run_python(code, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).stdout.split() for _ in range(2)]
    assert runs == [["1", "0"], ["0", "1"]]


def test_each_kernel_of_a_text_is_a_module():
    """They call one another, and functions that several of them need."""
    helpers = """
@jitable
def half(x):
    return trigonometric.sin(x) * 0.5

@jitable
def first_part(x, y):
    outlined()
    for i in range(np.uintp(x.size)):
        y[i] = half(x[i])
    return 0

@jitable
def second_part(x, y):
    outlined()
    parts = first_part(x, y)
    for i in range(np.uintp(x.size)):
        y[i] = y[i] + half(y[i])
    return 0
"""
    source = text("parts = second_part(x, y)", helpers=helpers)
    kinds = [(X.dtype, 1)] * 2
    own, signature = TextSource(source, "run"), signatures.program(kinds)
    request = service._Request(own, signature, own.key(signature))
    modules, _ = own.translate(request, {})
    assert len(modules) == 3
    with np.errstate(invalid="ignore"):
        wanted = np.sin(X) * 0.5
        wanted += np.sin(wanted) * 0.5
    np.testing.assert_allclose(by_both(source, X, np.empty_like(X)), wanted, 1e-15)


def test_what_only_calls_kernels_is_baseline_code():
    f = tf.function(lambda x: tf.reduce_sum(tf.exp(x) * 2.0))
    _, source = f.get_concrete_function(tf.zeros(9)).kernels
    signature = signatures.program([(np.dtype(np.float32), 1), (np.dtype(np.float32), 0)])
    own = TextSource(source, "run")
    modules, _ = own.translate(service._Request(own, signature, own.key(signature)), {})
    assert [module.level for module in modules] == [BASELINE, OPTIMIZED]
    assert "@kernel" in modules[0].text
    assert "fmul" not in modules[0].text


@pytest.mark.parametrize("rows", [3, 30_000])
def test_sums_of_columns_in_one_block_and_in_several(rows):
    x = np.arange(2.0 * rows).reshape(rows, 2) % 7
    f = tf.function(lambda x: tf.reduce_sum(x * 2.0, axis=0))
    text = f.get_concrete_function(tf.constant(x)).kernels[-1]
    assert ("gather_columns(v" in text) is (rows > 3)
    np.testing.assert_array_equal(f(tf.constant(x)).numpy(), 2 * x.sum(axis=0))
