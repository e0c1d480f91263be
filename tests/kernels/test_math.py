"""Every scalar function, through its elementwise kernel, against NumPy.

How far off the elementary ones may be is in `test_accuracy.py`.
"""

import math as python_math
from functools import cache

import numpy as np
import pytest

from tests.support import references as special
from tests.support.references import each
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise

REALS = "fd"
FLOATS = "efd"
INEXACT = "efdFD"
WHOLE = "bhilBHIL"
NUMBERS = WHOLE + INEXACT
ORDERED = "?" + WHOLE + FLOATS


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, np.zeros((), x.dtype))


def log_sigmoid(x):
    return -np.logaddexp(-x, np.zeros((), x.dtype))


def rsqrt(x):
    return np.ones((), x.dtype) / np.sqrt(x)


def xlogy(x, y):
    zero = (x == 0) & ~np.isnan(y)
    return np.where(zero, x.dtype.type(0), x * np.log(np.where(zero, y.dtype.type(1), y)))


def relu(x):
    return np.maximum(x, np.zeros((), x.dtype))


def clip(x, low, high):
    return np.minimum(np.maximum(x, low), high)


# name: (kind, inputs, dtypes it claims, reference); the reference is NumPy's of that name
# unless another is given.
TABLE = {
    "exp": ("float", 1, "l" + INEXACT, np.exp),
    "exp2": ("float", 1, INEXACT, np.exp2),
    "expm1": ("float", 1, REALS, np.expm1),
    "log": ("float", 1, "l" + INEXACT, np.log),
    "log2": ("float", 1, "l" + INEXACT, np.log2),
    "log10": ("float", 1, "l" + INEXACT, np.log10),
    "log1p": ("float", 1, REALS, np.log1p),
    "sinh": ("float", 1, INEXACT, np.sinh),
    "cosh": ("float", 1, INEXACT, np.cosh),
    "tanh": ("float", 1, INEXACT, np.tanh),
    "sigmoid": ("float", 1, REALS, sigmoid),
    "softplus": ("float", 1, REALS, softplus),
    "log_sigmoid": ("float", 1, REALS, log_sigmoid),
    "cbrt": ("float", 1, FLOATS, np.cbrt),
    "rsqrt": ("float", 1, INEXACT, rsqrt),
    "sin": ("float", 1, INEXACT, np.sin),
    "cos": ("float", 1, INEXACT, np.cos),
    "tan": ("float", 1, INEXACT, np.tan),
    "arcsin": ("float", 1, INEXACT, np.arcsin),
    "arccos": ("float", 1, INEXACT, np.arccos),
    "arctan": ("float", 1, INEXACT, np.arctan),
    "arcsinh": ("float", 1, INEXACT, np.arcsinh),
    "arccosh": ("float", 1, INEXACT, np.arccosh),
    "arctanh": ("float", 1, INEXACT, np.arctanh),
    "arctan2": ("float", 2, "l" + FLOATS, np.arctan2),
    "erf": ("float", 1, "l" + FLOATS, each(python_math.erf)),
    "erfc": ("float", 1, "l" + FLOATS, each(python_math.erfc)),
    "erfinv": ("float", 1, FLOATS, each(special.erfinv)),
    "lgamma": ("float", 1, "l" + FLOATS, each(special.lgamma)),
    "digamma": ("float", 1, "l" + FLOATS, each(special.digamma)),
    "polygamma": ("float", 2, FLOATS, each(special.polygamma)),
    "sqrt": ("float", 1, "l" + INEXACT, np.sqrt),
    "negative": ("same", 1, "bhil" + INEXACT, np.negative),
    "square": ("same", 1, NUMBERS, np.square),
    "absolute": ("real", 1, "il" + INEXACT, np.abs),
    "sign": ("same", 1, "il" + INEXACT, np.sign),
    "round": ("same", 1, "l" + FLOATS, np.round),
    "floor": ("same", 1, "l" + FLOATS, np.floor),
    "ceil": ("same", 1, "l" + FLOATS, np.ceil),
    "relu": ("same", 1, "l" + FLOATS, relu),
    "conj": ("same", 1, "dFD", np.conj),
    "real": ("real", 1, "dFD", np.real),
    "imag": ("real", 1, "dFD", np.imag),
    "isnan": ("compare", 1, "l" + INEXACT, np.isnan),
    "isfinite": ("compare", 1, "l" + INEXACT, np.isfinite),
    "isinf": ("compare", 1, "l" + INEXACT, np.isinf),
    "logical_not": ("logical", 1, "?ld", np.logical_not),
    "add": ("same", 2, NUMBERS + "?", np.add),
    "subtract": ("same", 2, NUMBERS, np.subtract),
    "multiply": ("same", 2, NUMBERS + "?", np.multiply),
    "divide": ("float", 2, "l" + INEXACT, np.divide),
    "power": ("same", 2, "bil" + INEXACT, np.power),
    "logaddexp": ("float", 2, "l" + FLOATS, np.logaddexp),
    "hypot": ("float", 2, "l" + FLOATS, np.hypot),
    "xlogy": ("float", 2, FLOATS, xlogy),
    "floor_divide": ("same", 2, "bilB" + FLOATS, np.floor_divide),
    "remainder": ("same", 2, "bilB" + FLOATS, np.remainder),
    "maximum": ("same", 2, ORDERED, np.maximum),
    "minimum": ("same", 2, ORDERED, np.minimum),
    "equal": ("compare", 2, "?l" + INEXACT, np.equal),
    "not_equal": ("compare", 2, "l" + INEXACT, np.not_equal),
    "less": ("compare", 2, "l" + FLOATS, np.less),
    "less_equal": ("compare", 2, "l" + FLOATS, np.less_equal),
    "greater": ("compare", 2, "l" + FLOATS, np.greater),
    "greater_equal": ("compare", 2, "l" + FLOATS, np.greater_equal),
    "logical_and": ("logical", 2, "?ld", np.logical_and),
    "logical_or": ("logical", 2, "?ld", np.logical_or),
    "logical_xor": ("logical", 2, "?ld", np.logical_xor),
    "clip": ("same", 3, "il" + FLOATS, clip),
    "where": ("select", 3, "?l" + INEXACT, np.where),
}


POSITIVE = (
    *("log", "log2", "log10", "sqrt", "rsqrt", "power", "xlogy"),
    *("lgamma", "digamma", "polygamma"),
)


@cache
def kernel(name):
    kind, inputs, *_ = TABLE[name]
    return Elementwise(name, getattr(elementary, name), inputs, kind)


def operands(name, dtype, shape):
    """Arrays in the function's domain, different for each operand."""
    inputs = TABLE[name][1]
    generator = np.random.default_rng(len(name))
    result = []
    for k in range(inputs):
        values = generator.uniform(1, 4.9, shape)
        if dtype.kind in "fc" and name not in POSITIVE:
            values = values * generator.choice([-1.0, 1.0], shape)
        if dtype.kind == "c":
            values = values + 1j * generator.uniform(-2, 2, shape)
        if dtype.kind == "b" or (name == "where" and k == 0):
            result.append(np.asarray(generator.uniform(0, 1, shape) < 0.5))
        elif name == "polygamma" and k == 0:  # the order
            result.append(np.asarray(np.round(values)).astype(dtype))
        elif name == "clip":
            result.append(np.asarray(values + 3 * (k - 1)).astype(dtype))
        else:
            result.append(np.asarray(values).astype(dtype))
    return result


def tolerance(dtype):
    return {"e": 1e-3, "f": 1e-6, "F": 2e-6}.get(dtype.char, 1e-14)


def check(name, arrays):
    got = kernel(name)(*arrays)
    with np.errstate(all="ignore"):
        want = np.asarray(TABLE[name][3](*arrays))
    assert type(got) is np.ndarray
    assert got.dtype == want.dtype == kernel(name).result_dtype(*[a.dtype for a in arrays])
    assert got.shape == want.shape
    assert got.flags.c_contiguous
    assert got.flags.writeable
    np.testing.assert_allclose(got, want, rtol=tolerance(want.dtype), atol=0)


@pytest.mark.parametrize("name", TABLE)
def test_every_dtype(name):
    for code in TABLE[name][2]:
        dtype = np.dtype(code)
        check(name, operands(name, dtype, (40,)))
    check(name, operands(name, np.dtype(TABLE[name][2][-1]), ()))


@pytest.mark.parametrize("name", TABLE)
def test_every_layout(name):
    double = np.dtype("d")
    check(name, operands(name, double, (0, 3)))
    check(name, operands(name, double, (2, 3, 5)))
    arrays = operands(name, double, (6, 8))
    check(name, [array[::-2, 1::3] for array in arrays])
    check(name, [np.asfortranarray(array) for array in arrays])
    check(name, [array[:1] for array in arrays[:1]] + [array[:, :1] for array in arrays[1:]])
    for array in arrays:
        array.flags.writeable = False
    check(name, arrays)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 1e-40, 1e300]
SPECIAL += [-1e300, 709.7, 710.0, -745.2, 88.7, 89.0, -104.0, 1e22, 0.5, -0.5, 1.5, 2.5, 1e-8]


@pytest.mark.parametrize("code", REALS)
@pytest.mark.parametrize("name", [name for name in TABLE if TABLE[name][1] == 1])
def test_special_values_unary(name, code):
    if code not in TABLE[name][2]:
        code = "d"
    with np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(code)
        want = TABLE[name][3](x)
        if name == "sigmoid":
            want = np.exp(x.astype("g") - np.logaddexp(0, x.astype("g"))).astype(code)
            want[x == -np.inf], want[x == np.inf] = 0, 1
    got = kernel(name)(x)
    np.testing.assert_allclose(got, want, rtol=tolerance(x.dtype))
    if name not in ("sign", "relu"):
        known = ~np.isnan(want)
        signs = [np.signbit(result[known].astype(code)) for result in (got, want)]
        assert (signs[0] == signs[1]).all()


@pytest.mark.parametrize("code", REALS)
@pytest.mark.parametrize("name", [name for name in TABLE if TABLE[name][1] == 2])
def test_special_values_binary(name, code):
    if code not in TABLE[name][2]:
        code = "d"
    with np.errstate(all="ignore"):
        values = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 3.0, -3.0]
        values = np.array(values).astype(code)
        x, y = (np.ravel(part) for part in np.meshgrid(values, values))
        want = TABLE[name][3](x, y)
    np.testing.assert_allclose(kernel(name)(x, y), want, rtol=tolerance(x.dtype))


@pytest.mark.parametrize("code", REALS)
def test_turns_of_large_arguments(code):
    x = np.array([1e5, 1e10, -1e22, 3e38] * 300 + [0.5] * 700).astype(code)
    for name in ("sin", "cos", "tan"):
        want = TABLE[name][3](x.astype("d"))
        np.testing.assert_allclose(kernel(name)(x), want, rtol=2 * np.finfo(code).eps)
        point = x[1:2].reshape(())
        np.testing.assert_allclose(kernel(name)(point), want[1], rtol=2 * np.finfo(code).eps)


EDGES = (-2.0, 0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, 1e-42, 1.0, -1.0, 1e300, 1e37)


@pytest.mark.parametrize("code", REALS)
def test_ordinary_powers_do_not_depend_on_what_is_beside_them(code):
    power, rng = kernel("power"), np.random.default_rng(0)
    x, y = rng.uniform(0.1, 5, 3000).astype(code), rng.uniform(-5, 5, 3000).astype(code)
    a, b = x.copy(), y.copy()
    with np.errstate(all="ignore"):
        a[::7] = rng.choice(EDGES, a[::7].size).astype(code)
        b[::5] = rng.choice(EDGES, b[::5].size).astype(code)
        b[1::50] = rng.choice([2, 3, -3, 0.5], 60)
        want = np.power(a, b)
    got = power(a, b)
    np.testing.assert_allclose(got, want, rtol=2 * np.finfo(code).eps)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))
    same = (a == x) & (b == y)
    np.testing.assert_array_equal(got[same], power(x, y)[same])
    for place in (0, 1):
        operands = [a.copy(), b.copy()]
        power(*operands, out=operands[place])
        np.testing.assert_array_equal(operands[place], got)
    exponent = np.array(2.5, code)
    np.testing.assert_array_equal(power(a, exponent), power(a, np.full_like(a, 2.5)))
    np.testing.assert_array_equal(power(exponent, b), power(np.full_like(b, 2.5), b))
    into = a.copy()
    power(into, exponent, out=into)
    np.testing.assert_array_equal(into, power(a, exponent))
    np.testing.assert_array_equal(power(a[::2], b[::2]), got[::2])
    np.testing.assert_array_equal(power(np.tile(a, 60), np.tile(b, 60)), np.tile(got, 60))


def test_integers_wrap_as_in_numpy():
    x, y = np.array([250, 3], np.uint8), np.array([10, 200], np.uint8)
    assert kernel("add")(x, y).tolist() == [4, 203]
    assert kernel("multiply")(x, y).tolist() == [196, 88]
    assert kernel("negative")(np.array([-128], np.int8)).tolist() == [-128]


def test_integer_division_by_zero_gives_zero_and_warns():
    x, zero = np.array([1, -7]), np.array([0, 0])
    for name in ("floor_divide", "remainder"):
        for _ in range(2):
            with pytest.warns(RuntimeWarning, match=f"divide by zero.*{name}"):
                assert kernel(name)(x, zero).tolist() == [0, 0]


def test_integer_to_a_negative_power_is_refused():
    x, y = np.array([2, 3]), np.array([1, -1])
    for _ in range(2):
        with pytest.raises(ValueError, match="power: integers to negative integer powers"):
            kernel("power")(x, y)
    assert kernel("power")(x, np.array([10, 0])).tolist() == [1024, 1]


def test_scalar_functions_mean_numpy_outside_compiled_code():
    x = np.array([0.5, 2.0])
    for name in ("exp", "log", "sin", "sqrt", "absolute", "round", "isnan", "relu"):
        np.testing.assert_array_equal(getattr(elementary, name)(x), TABLE[name][3](x))
    for name, values in (("erfinv", (x / 4,)), ("digamma", (x,)), ("polygamma", (4 * x, x))):
        want = TABLE[name][3](*values)
        np.testing.assert_allclose(getattr(elementary, name)(*values), want, rtol=1e-14)
