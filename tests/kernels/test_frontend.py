"""The front end's grammar (docs/frontend.md): constructs and random functions, against Numba."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.random_functions import Writer, by_front_end, differences, function, same_bits
from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime import generated, numba_backend, objects, service, signatures
from tinygrad_cg_kernels.runtime.entries import array_type

pytestmark = pytest.mark.skipif(not objects.supported, reason="arrays lie elsewhere in memory")

HELPERS = """
from tinygrad_cg_kernels.elementary.integrals import E1_NEAR
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import inlined, noalias, number_by_number, outlined
from tinygrad_cg_kernels.runtime.intrinsics import short_rows, vectorised, wide_vectors


@jitable
def half(v):
    inlined()
    return v / like(2.0, v)


@jitable
def first(t):
    outlined()
    return t[0]


@jitable
def fill(a, v):
    \"\"\"A text is nothing.\"\"\"
    vectorised()
    noalias()
    short_rows()
    for j in range(np.uintp(a.size)):
        a[j] = v


@jitable
def sign(v):
    number_by_number()
    if v < 0:
        return -1.0
    if v > 0:
        return 1
    return np.float32(0.5)
"""

CONSTRUCTS = {
    "assignments": """
a = b = x[0]
c, (d, e) = a, (b, n[0])
_, f = pair(d, c)
a += f; b -= c; c *= d; d /= 3.0; e //= 7; e %= 5; e <<= 2; e >>= 1; e &= 6; e |= 1; e ^= 3
fs[0] = a + b + c + d; ks[0] = e; fs[1] += x[1]; ks[1] -= n[1]
""",
    "elements and their casts": """
fs[0] = n[2]; fs[-1] = y[3]; gs[1] = x[2]; ks[2] = m[1]; ts[0] = n[3]; ts[1] = x[3]; gs[:] = x[4]
""",
    "branches": """
if x[0] < 0.0:
    a = 1.0
elif n[0]:
    a = 2.0
else:
    a = 3.0
if x is None: a = -1.0
if not (x is not None): a = -2.0
if 1 < 2:
    fs[0] = a
""",
    "counted loops": """
for j in range(3): ks[0] += j
for j in range(2, 9, 3): ks[1] += j
for j in range(5, -1, -2): ks[2] += j * 10
for k in range(np.uintp(sizes[0])):
    if n[k] < 0: continue
    if n[k] > 90: break
    fs[k] = x[k]
for j in range(sizes[0] - 9): ks[3] = 1
for j in range(n[1] & 3, 4): ks[4] += j
""",
    "loops": """
a = 0
while a < n[0] and a < 20:
    a += 3
    if a == 9: continue
    if a > 14: break
    ks[0] += a
while True:
    break
pass
""",
    "sums of numbers": """
fs[0] = x[0] + y[0]; fs[1] = x[0] - n[0]; fs[2] = y[1] * y[2]; fs[3] = x[1] / x[2]
gs[0] = y[0] / y[3]
ks[0] = n[0] + m[0]; ks[1] = s[0] * s[1]; ks[2] = m[0] - m[1]; fs[5] = s[0] / m[3]
""",
    "integers": """
ks[0] = n[0] // 7; ks[1] = n[0] // -7; ks[2] = n[1] % 7; ks[3] = n[1] % -7; ks[4] = n[2] << 3
ks[5] = n[2] >> 2; ks[6] = (n[3] & 12) | (n[4] ^ 5); ks[7] = ~n[5]
""",
    "remainders of floats": """
fs[0] = x[0] % 3.0; fs[1] = x[1] % -0.5; fs[2] = x[2] % x[3]; gs[0] = y[0] % y[1]
""",
    "powers": "fs[0] = x[0] ** x[1]; fs[1] = 2 ** 10; fs[2] = 2.0 ** -3; gs[0] = y[0] ** y[1]",
    "signs": """
fs[0] = -x[0]; ks[0] = -n[0]; ks[1] = -s[0]; gs[0] = -y[0]; ts[0] = not n[0]
fs[1] = - -x[1]
""",
    "comparisons": """
ts[0] = x[0] < x[1]; ts[1] = x[0] <= y[1]; ts[2] = n[0] > n[1]; ts[3] = n[0] >= 1
ts[4] = x[0] == x[0]; ts[5] = y[0] != y[1]; ts[6] = 0.0 < x[2] < 3.0; ts[7] = s[0] < n[0]
ks[0] = m[0] < 7; ks[1] = x[3] > 1; ks[2] = m[0] == -1; ks[3] = 1 < 2 < 3
""",
    "truths": """
a = x[0] < 1.0; b = n[0] > 0
ts[0] = a and b; ts[1] = a or b; ts[2] = not a; ts[3] = a & b; ts[4] = a | b; ts[5] = a ^ b
ts[6] = n[1] != 0 and 10 // n[1] > 2; ts[7] = a == b
""",
    "conditional expressions": """
fs[0] = x[0] if n[0] > 1 else x[1]; fs[1] = x[0] if n[0] > 1 else 0
fs[2] = y[0] if n[1] > 1 else x[2]
a, b = (x[0], n[0]) if x[1] < 0.0 else (1.0, 2)
fs[3] = a; ks[0] = b; ks[1] = 10 // n[0] if n[0] != 0 else -1
""",
    "tuples": """
t = x[0], n[0], y[0]
fs[0] = t[0]; ks[0] = t[1]; gs[0] = t[-1]; a, b = t[1:]; ks[1] = a; ks[2] = len(t)
u = x[1], x[2], x[3]
fs[1] = E1_NEAR[1]; fs[2] = E1_NEAR[n[0] & 1]; fs[3], fs[4] = pair(*u[:2])
fs[5] = first((x[4], 1)); fs[6] = first(ZEROS); fs[7] = first(NEGATIVE_ZEROS)
""",
    "attributes": """
ks[0] = x.size; ks[1] = y.itemsize; fs[0] = np.empty(1, y.dtype).itemsize; gs[0] = math.pi
fs[1] = x.dtype.type(3) if False else 1.0
""",
    "casts": """
fs[0] = np.float64(n[0]); gs[0] = np.float32(x[0]); ks[0] = np.int8(n[0]); ks[1] = np.uint16(n[1])
ks[2] = np.int64(np.float64(n[2] & 1023) / 3.0); ts[0] = np.bool_(n[0])
ts[1] = bool(x[0]); ks[3] = int(m[0])
fs[1] = float(n[3]); ks[4] = np.int32(n[4]); ks[5] = np.uint8(s[0])
ks[6] = np.intp(s[1]); ks[7] = np.uintp(m[2])
""",
    "complex numbers": """
z = complex(x[0], x[1]); w = complex(y[0], y[1]) + 1j
v = z * w - z / (w + 2.0) + z.conjugate() - 3
fs[0] = v.real; fs[1] = v.imag; fs[2] = abs(z); ts[0] = z == w; ts[1] = z != z; fs[3] = (-w).imag
""",
    "extremes": """
ks[0] = min(n[0], n[1]); ks[1] = max(n[0], n[1], 3); fs[0] = min(x[0], x[1])
fs[1] = max(x[2], x[3])
ks[2] = abs(n[2]); fs[2] = abs(x[4]); gs[0] = max(y[0], y[1])
""",
    "memory": """
a = np.empty(4, np.float64)
b = np.full(3, 2.5)
c = np.full(sizes[0], n[0], np.int64)
fill(a, x[0])
fs[0] = a[3] + b[2]; ks[0] = c[-1]; ks[1] = len(a); a[1] = 7.0; fs[1] = a[1]
""",
    "functions of C and LLVM": """
fs[0] = math.exp(x[0]); fs[1] = math.sqrt(x[1]); fs[2] = np.sqrt(abs(x[2]))
fs[3] = math.atan2(x[3], x[4])
fs[4] = math.tanh(x[5]); fs[5] = math.sin(x[6]); fs[6] = math.hypot(x[0], x[1])
fs[7] = math.log1p(abs(x[2]))
""",
    "calls": """
fs[0] = half(x[0]); gs[0] = half(y[0]); fs[2] = sign(x[1]); fs[3] = sign(n[1])
wide_vectors()
fs[4] = choose(n[0] > 3, x[2], x[3])
""",
    "a variable of 64 bits": """
a = 5
a = s[0]
a = s[1] if n[0] > 0 else a
ks[0] = a
""",
}
REFUSED = {
    "v has two types": ["v = 1\nv = 1.0", "v = x[0]\nv = y[0]", "v = x[0]\nv = 1"],
    "a keyword argument": ["fill(a=x, v=1.0)"],
    "the name nowhere": ["fs[0] = nowhere"],
    "a loop": ["for j in x: pass", "for j in range(3): pass\nelse: pass"],
    "a call of a value": ["x[0]()"],
    "a slice of an array": ["x[1:] = 1.0"],
    "a new array in a loop": ["for j in range(2): a = np.empty(3, np.float64)"],
    "Pow of": ["fs[0] = x[0] ** 2"],
    "a comparison of": ["ts[0] = np.uint64(m[0]) < n[0]"],
    "Dict": ["a = {1: 2}"],
    "Delete": ["del x"],
    "a call of <built-in function print>": ["print(x)"],
    "Div of i64": ["fs[0] = n[0] / n[1]"],
    "either u8 or i64": ["ks[0] = m[0] if n[0] > 1 else 2"],
    "Add of b1 and f64": ["fs[0] = (x[0] < 1.0) + x[0]"],
    "u8 of f64": ["ks[0] = np.uint8(x[0])"],
    "an index of a tuple": ["fs[0] = (x[0], 1)[n[0]]"],
}


def body(text):
    """Lines of a function."""
    return [f"    {line}" for line in text.strip("\n").split("\n")]


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_constructs_have_numbas_bits(name):
    assert differences(function(body(CONSTRUCTS[name]), HELPERS), 0, 15) == []


@pytest.mark.quick
@pytest.mark.parametrize("words", REFUSED)
def test_what_is_refused_and_how(words):
    for lines in REFUSED[words]:
        with pytest.raises(Untranslatable) as raised:
            by_front_end(function(body(lines), HELPERS))
        assert words in str(raised.value)


@settings(max_examples=300)
@given(st.integers(0, 2**32))
def test_random_functions_have_numbas_bits(seed):
    """`python -m tests.support.random_functions` tries as many as one likes."""
    assert differences(Writer(seed).text(), seed) == []


FUSED = """
import numpy as np


def run(a, b, c, d, out):
    for j in range(np.uintp(a.size)):
        out[j] = {}
"""


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "formula",
    [
        *("a[j] * b[j] + c[j]", "c[j] - a[j] * b[j]", "a[j] * b[j] - c[j] * d[j]"),
        *("-(a[j] * b[j]) + c[j]", "a[j] * b[j] * c[j] + d[j]", "(a[j] + b[j]) * c[j] - d[j]"),
        "a[j] * (b[j] * c[j] + d[j]) + b[j]",
    ],
)
def test_products_in_sums_are_rounded_as_numba_rounds_them(formula, dtype):
    """In kernels, where both take a product into the sum of the same expression."""
    template = generated.load(FUSED.format(formula)).run
    signature = signatures.arrays(*[array_type(np.dtype(dtype))] * 5)
    arrays = list(np.random.default_rng(0).normal(size=(5, 99)).astype(dtype))
    service.compile(service.KernelSource(template, "run"), signature).run(*arrays)
    mine = arrays[4].copy()
    numba_backend.compile_by_numba(template, "run", signature)[0](*arrays)
    assert same_bits(mine, arrays[4])
