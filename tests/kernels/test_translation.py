"""The kernels' functions as Numba compiles them, and as they are translated: the same results."""

import ast
import inspect
import linecache
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support.references import takes
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_frontend import Untranslatable, source_of, sources
from tinygrad_cg_kernels.elementary import logarithm, trigonometric
from tinygrad_cg_kernels.loops import rows
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.move import order
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import formulas, generated, service
from tinygrad_cg_kernels.runtime.formulas import KERNELS
from tinygrad_cg_kernels.runtime.threads import MIN_BLOCKED

# Among them they use every line of the translation that elementwise kernels use. The accuracy tests
# try the other formulas.
COMPARED = (
    "absolute add arctan2 bessel_k betainc bitwise_and cbrt clip dawson_derivative divide "
    "divide_unbounded equal erfcinv exp expm1 floor floor_divide gcd greater hypot invert isnan "
    "lcm left_shift lgamma log1p log_sigmoid logical_xor maximum nearest_finite polygamma power "
    "relu remainder round sign sin sinc sinc_derivative sqrt tanh where zeta"
)
FUSED_BY_NUMBA = {"log_sigmoid"}
"""Numba does not round a product whose sum is another statement's either."""
SHARED = {"add", "exp", "sin", "power", "sinc", "where"}  # with a kernel of many elements
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, np.inf, -np.inf, np.nan, 5e-324, 1e-310, 1e300, 2e9, 1e22]


def elementwise() -> list:
    records = [record for record in OPS.values() if record.kind == "elementwise"]
    return [record for record in records if isinstance(record.kernel, Elementwise)]


def operands(count: int, size: int, dtype: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    values = [rng.normal(size=size) * 10 ** rng.uniform(-3, 3, size) for _ in range(count)]
    for k, value in enumerate(values):
        value[: len(SPECIAL) ** 2] = np.resize(
            np.repeat(SPECIAL, len(SPECIAL) ** k), len(SPECIAL) ** 2
        )
    with np.errstate(all="ignore"):
        return [value.astype(dtype) for value in values]


@pytest.mark.parametrize("name", COMPARED.split())
def test_elementwise_kernels_have_numbas_bits(name, monkeypatch):
    """By the kernel of few elements, and for some by that of many."""
    record, original = OPS[name], OPS[name].kernel
    results = []
    for translated in (True, False):
        monkeypatch.setenv("TINYGRAD_CG_COMPILER", "llvm" if translated else "numba")
        kernel = Elementwise(original.name, original.function, original.inputs, original.kind)
        before = len(service.fallbacks)
        for size in (1000, MIN_BLOCKED) if original.name in SHARED else (1000,):
            dtype = "float64" if takes(record, float) else "int64"
            args = operands(original.inputs, size, dtype)
            results.append(kernel(*args))
        if translated:
            assert len(service.fallbacks) == before, service.fallbacks[before:]
    half = len(results) // 2
    for result, other in zip(results[:half], results[half:], strict=True):
        if name in FUSED_BY_NUMBA:
            np.testing.assert_array_max_ulp(result, other, 1)
        else:
            np.testing.assert_array_equal(result, other)
        zeros = result == 0
        np.testing.assert_array_equal(np.signbit(result[zeros]), np.signbit(other[zeros]))


REDUCTIONS = """
import sys
import numpy as np
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_kernels.runtime import service

x, results = np.random.default_rng(0).uniform(0.5, 1.5, (40, 300)), {}
for record in map(OPS.get, sys.argv[2].split()):
    case = next(case for case in record.samples if case.shapes)
    name = next(name for name in ("axis", "axes") if name in case.params)
    for axis in (0, 1):
        chosen = axis if isinstance(case.params[name], int) else (axis,)
        got = record.run(*[x] * len(case.shapes), **{**case.params, name: chosen})
        results[f"{record.name} {axis}"] = got
assert service.fallbacks == [], service.fallbacks
np.savez(sys.argv[1], **results)
"""


# One of each kind of loop.
REDUCED = "sum argmin logsumexp softmax_pull cumprod"


def test_reductions_have_numbas_results(tmp_path):
    """In processes of their own, since machine code is never exchanged."""
    files = []
    for way in ("llvm", "numba"):
        file = str(tmp_path / f"{way}.npz")
        command = [sys.executable, "-c", REDUCTIONS, file, REDUCED]
        environment = os.environ | {"TINYGRAD_CG_COMPILER": way}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        files.append(np.load(file))
    assert len(files[0].files) == 10
    for name in files[0].files:
        np.testing.assert_allclose(files[0][name], files[1][name], rtol=1e-14, err_msg=name)


@pytest.mark.parametrize("dtype", ["f64", "f32"])
def test_scalar_functions_are_translated(dtype):
    before = len(service.fallbacks)
    for record in elementwise():
        if record.kernel.kind == "float":
            formulas.find(record.kernel.function, (dtype,) * record.kernel.inputs)
    assert len(service.fallbacks) == before


COMPLEX = {"log": 1, "tanh": 1, "sqrt": 1, "arccosh": 1, "arctan": 1, "power": 2}


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_have_numbas_numbers(name, monkeypatch):
    kernel = OPS[name].kernel
    rng = np.random.default_rng(0)
    args = [rng.normal(size=300) + 1j * rng.normal(size=300) for _ in range(COMPLEX[name])]
    args[0][:4] = 0, 1, -1j, 1e300
    if name == "power":
        args[1][:100] = np.arange(-50, 50)
    results = []
    for translated in (True, False):
        monkeypatch.setenv("TINYGRAD_CG_COMPILER", "llvm" if translated else "numba")
        before = len(service.fallbacks)
        results.append(Elementwise(name, kernel.function, COMPLEX[name], kernel.kind)(*args))
        assert len(service.fallbacks) == before
    np.testing.assert_allclose(*results, rtol=1e-15)


def test_what_has_no_translation_is_left_to_numba(monkeypatch):
    def refuse(*_):
        raise Untranslatable("a call of f")

    monkeypatch.setattr(service.KernelSource, "translate", refuse)
    monkeypatch.setattr(service.KernelSource, "key", lambda *_: "a key that is not in the store")
    before = len(service.fallbacks)
    kernel = Elementwise("arcsin", OPS["arcsin"].kernel.function, 1)
    assert kernel(np.array([0j, 1j]))[0] == 0
    assert service.fallbacks[before:] == ["arcsin_small: a call of f"]
    assert "arcsin_small" in {*build.compiled, *build.loaded}


@pytest.mark.parametrize(
    ("name", "dtype"), [("erf", "complex64"), ("maximum", "complex128"), ("bitwise_and", "float64")]
)
def test_numbers_that_a_function_is_not_for_compile_nothing(name, dtype, monkeypatch):
    monkeypatch.setattr(service, "numba_backend", None)
    record = OPS[name]
    kernel = Elementwise(name, record.kernel.function, record.kernel.inputs, record.kernel.kind)
    with pytest.raises(TypeError, match=f"{name}: no kernel for dtype {dtype}"):
        kernel(*[np.ones(3, dtype)] * record.kernel.inputs)


def test_a_generated_function_is_read_where_linecache_was_cleared():
    """As a debugger or a notebook may have done between two dtypes."""
    module = generated.load("def twice_and_one(x):\n    return x + x + 1\n")
    kernel = Elementwise("twice_and_one", module.twice_and_one, 1)
    before = len(service.fallbacks)
    for dtype in ("float64", "float32"):
        linecache.clearcache()
        assert kernel(np.ones(3, dtype)).tolist() == [3.0] * 3
    assert service.fallbacks[before:] == []


def test_a_function_without_its_source_is_left_to_numba():
    """As in an installation without source files."""
    namespace = {"__name__": service.__name__}
    exec("def double(table, first, count):\n    pass", namespace)
    with pytest.raises(Untranslatable, match="double, line 1"):
        source_of(namespace["double"], KERNELS)


def test_functions_in_one_line_are_told_apart():
    first, two, three = (lambda x: True), (lambda x: x + 1), (lambda x: x - 1)
    bodies = [ast.unparse(source_of(function, KERNELS).body[0]) for function in (first, two, three)]
    assert bodies == ["return True", "return x + 1", "return x - 1"]


def test_functions_are_read_by_their_lines_as_in_their_files():
    for module in (rows, logarithm, order, trigonometric):
        source = inspect.getsource(module)
        lines = source.splitlines(keepends=True)
        nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, FUNCTIONS)]
        read = 0
        for code in codes(compile(source, module.__file__, "exec")):
            find = sources._lambda if code.co_name == "<lambda>" else sources._definition
            definition = find(lines, code)
            if definition is not None:
                assert ast.dump(definition) in {
                    ast.dump(node) for node in nodes if begins(node, code)
                }
                read += 1
        assert read >= 4


FUNCTIONS = ast.FunctionDef, ast.Lambda


def begins(node, code):
    """Whether a function of a file begins on the line on which its code does."""
    decorators = getattr(node, "decorator_list", [])
    return (
        min([node.lineno, *(decorator.lineno for decorator in decorators)]) == code.co_firstlineno
    )


def codes(code):
    for const in code.co_consts:
        if hasattr(const, "co_code"):
            yield const
            yield from codes(const)


@pytest.mark.parametrize(
    "body",
    [
        *("not (a) and b", "(a or b) and b", "(a) and (b)", "((a) or b) and (b or (a))", "-(a)"),
        *(
            "((a)) if not (b) else ((b), a)",
            "((a) < b) < (a)",
            "(a, (b))",
            "0",
            "((a if b else 1))",
        ),
        *("(lambda c: (c + a))(b)", "(b)[(a)]", "not (not (a) or (b))"),
    ],
)
def test_an_expression_is_read_by_its_ends_or_not_at_all(body):
    text = f"known = {{0: (lambda a, b: {body}), 1: 2}}\n"
    node = sources._lambda([text], next(codes(compile(text, "", "exec"))))
    assert node is None or ast.dump(node.body) == ast.dump(ast.parse(body, mode="eval").body)
