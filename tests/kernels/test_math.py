"""Every scalar function, through its elementwise kernel, against NumPy.

How far off the elementary ones may be is in `test_accuracy.py`.
"""

from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest

from tests.support.references import reference, takes
from tinygrad_cg._core.primitive import OPS
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise

REALS, FLOATS, COMPLEX = "fd", "efd", "FD"
INTEGRAL = "bhilBHIL"
MORE = {  # integers besides int64, and bool, where loops of their own serve them
    **dict.fromkeys(("add", "multiply", "maximum", "minimum"), "?" + INTEGRAL),
    **dict.fromkeys(("subtract", "square"), INTEGRAL),
    **dict.fromkeys(("equal", "where", "logical_not", "logical_and"), "?"),
    **dict.fromkeys(("logical_or", "logical_xor"), "?"),
    **dict.fromkeys(("absolute", "sign", "clip"), "i"),
    **dict.fromkeys(("floor_divide", "remainder"), "biB"),
    "negative": "bhi",
    # Functions of reals take int64 as float64: tried on some, since each choice is compiled.
    **dict.fromkeys(("exp", "log", "log2", "log10", "sqrt", "divide", "logaddexp", "hypot"), "l"),
    **dict.fromkeys(("arctan2", "erf", "erfc", "lgamma", "digamma", "sinc"), "l"),
    "power": "bi",
}


class Row(NamedTuple):
    """What a record says of a scalar function: its kernel's kind, operands, dtypes, reference."""

    kind: str
    inputs: int
    codes: str
    reference: Any


def row(record):
    complex_too = COMPLEX if takes(record, complex) else ""
    whole = MORE.get(record.name, "") + ("" if record.kernel.kind == "float" else "l")
    codes = whole + FLOATS + complex_too if takes(record, float) else INTEGRAL
    return Row(record.kernel.kind, len(record.inputs), codes, reference(record))


TABLE = {
    name: row(record)
    for name, record in OPS.items()
    if record.kernel is not None
    and getattr(record.kernel, "function", None) is getattr(elementary, name, record)
}
OF_REALS = [name for name in TABLE if "d" in TABLE[name].codes]
POSITIVE = (
    *("log", "log2", "log10", "sqrt", "rsqrt", "power", "xlogy"),
    *("lgamma", "digamma", "polygamma", "zeta", "erfcinv"),
)


def kernel(name):
    return OPS[name].kernel


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
        elif TABLE[name].kind == "float" and OPS[name].vjp[k] is None:  # an order
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
    dtype = np.dtype("d" if "d" in TABLE[name].codes else "l")
    check(name, operands(name, dtype, (0, 3)))
    check(name, operands(name, dtype, (2, 3, 5)))
    arrays = operands(name, dtype, (6, 8))
    check(name, [array[::-2, 1::3] for array in arrays])
    check(name, [np.asfortranarray(array) for array in arrays])
    check(name, [array[:1] for array in arrays[:1]] + [array[:, :1] for array in arrays[1:]])
    for array in arrays:
        array.flags.writeable = False
    check(name, arrays)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 5e-324, -5e-324, 1e-310, 1e-40, 1e300]
SPECIAL += [-1e300, 709.7, 710.0, -745.2, 88.7, 89.0, -104.0, -150.0, -175.5, -176.5, -200.0]
SPECIAL += [-1100.0, -1417.5, -1419.0, 1e22, 0.5, -0.5, 1.5, 2.5, 1e-8]


@pytest.mark.parametrize("code", REALS)
@pytest.mark.parametrize("name", [name for name in OF_REALS if TABLE[name][1] == 1])
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
        is_number = ~np.isnan(want)
        signs = [np.signbit(result[is_number].astype(code)) for result in (got, want)]
        assert (signs[0] == signs[1]).all()


@pytest.mark.parametrize("code", REALS)
@pytest.mark.parametrize("name", [name for name in OF_REALS if TABLE[name][1] == 2])
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
def test_quadrants_of_large_arguments(code):
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
    for index in (0, 1):
        operands = [a.copy(), b.copy()]
        power(*operands, out=operands[index])
        np.testing.assert_array_equal(operands[index], got)
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


def test_rsqrt_of_a_complex_zero():
    """As NumPy: Numba's own complex division raises there."""
    result = OPS["rsqrt"].kernel(np.array([0j, 4.0, 1j]))
    assert result[0].real == np.inf
    np.testing.assert_allclose(result[1:], [0.5, np.sqrt(0.5) * (1 - 1j)], rtol=1e-15)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_products_of_complex_numbers_have_numpys_bits(dtype):
    """Not contracted: the product of a number and its conjugate is real."""
    rng = np.random.default_rng(0)
    z, w = (rng.normal(size=1000) + 1j * rng.normal(size=1000) for _ in range(2))
    z, w = z.astype(dtype), w.astype(dtype)
    multiply = OPS["multiply"].kernel
    np.testing.assert_array_equal(multiply(z, z.conj()).imag, 0)
    products = z.real * w.real - z.imag * w.imag, z.real * w.imag + z.imag * w.real
    np.testing.assert_array_equal(multiply(z, w).real, products[0])
    np.testing.assert_array_equal(multiply(z, w).imag, products[1])


ARCS = ("sin", "cos", "tan", "sinh", "cosh", "tanh")


def same_parts(got, expected):
    """Whether both are NaN, equal with the sign of zeros, or close."""
    close = np.abs(got - expected) <= 1e-6 * np.abs(expected)
    zero = (expected == 0) & (got == 0) & (np.signbit(got) == np.signbit(expected))
    both = np.isnan(got) & np.isnan(expected)
    return both | zero | ((got == expected) | close) & (expected != 0)


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_functions_at_zeros_infinities_and_nan(dtype):
    """As NumPy, which follows Annex G of the C standard."""
    points = [0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan]
    x = np.array([complex(a, b) for a in points for b in points], dtype)
    for name in (*ARCS, "sqrt", "exp", "log", "log2", "log10"):
        for prefix in ("", "arc") if name in ARCS else ("",):
            function = Elementwise(name, getattr(elementary, prefix + name), 1, "float")
            with np.errstate(all="ignore"):
                got, expected = function(x), getattr(np, prefix + name)(x)
                right = same_parts(got.real, expected.real) & same_parts(got.imag, expected.imag)
            assert right.all(), (prefix + name, x[~right], got[~right], expected[~right])


@pytest.mark.parametrize("dtype", ["complex128", "complex64"])
def test_complex_functions_overflow_where_their_results_do(dtype):
    """cosh(x + i) is finite for x a little beyond the logarithm of the largest number."""
    largest = np.log(np.finfo(dtype).max)
    x = np.array([largest + 0.3 + 0.8j, -largest - 0.3 + 0.8j], dtype)
    root = np.array([complex(0, np.finfo(dtype).max), complex(np.finfo(dtype).max, 1)], dtype)
    for name, at in (("sinh", x), ("cosh", x), ("exp", x), ("sin", 1j * x), ("sqrt", root)):
        got = Elementwise(name, getattr(elementary, name), 1, "float")(at)
        np.testing.assert_allclose(got, getattr(np, name)(at), 1e-6)
        assert np.isfinite(got).all()


def test_complex_logarithms_near_the_unit_circle():
    x = np.array([1 + 1e-5j, 1e-9 + 1j, 0.6 + 0.8j, np.exp(2j)])
    with mpmath.workprec(200):
        exact = np.array([complex(mpmath.log(mpmath.mpc(value))) for value in x])
        exact_1p = np.array([complex(mpmath.log(1 + mpmath.mpc(value))) for value in x * 1e-7])
    log = Elementwise("log", elementary.log, 1, "float")
    log1p = Elementwise("log1p", elementary.log1p, 1, "float")
    np.testing.assert_allclose(log(x).real, exact.real, 1e-15)
    np.testing.assert_allclose(log1p(x * 1e-7).real, exact_1p.real, 1e-15)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_both_parts_of_a_complex_one_minus_square(dtype):
    """A product (1 - x) (1 + x) of complex numbers loses small imaginary parts."""
    x = np.array([1e-10 + 1e-15j, 1 + 1e-9j, 1e-3 - 2j, 1 - 1e-4 + 1e-12j], dtype)
    with mpmath.workprec(200):
        exact = np.array([complex(1 - mpmath.mpc(complex(value)) ** 2) for value in x])
    result = Elementwise("one_minus_square", elementary.one_minus_square, 1, "float")(x)
    rtol = 4 * np.finfo(dtype).eps
    np.testing.assert_allclose(result.real, exact.real, rtol)
    np.testing.assert_allclose(result.imag, exact.imag, rtol)


def test_complex_powers_of_zeros_and_ones():
    power = Elementwise("power", elementary.power, 2)
    x = np.array([0, 0, 0, 0, 2 - 1j, complex(0, np.inf)])
    y = np.array([1 + 1j, 1j, -1, 0, 3, 1])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(power(x, y)[:5], np.power(x, y)[:5])
    assert power(x, y)[5] == complex(0, np.inf)


def test_the_sign_of_a_complex_infinity():
    sign = Elementwise("sign", elementary.sign, 1)
    x = np.array([complex(0, np.inf), complex(-np.inf, 1), complex(np.inf, np.inf)])
    np.testing.assert_array_equal(sign(x), np.sign(x))
