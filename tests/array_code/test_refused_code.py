"""Programs outside of what `differentiable` reads, and the error that each gives."""

import linecache
import math
from textwrap import dedent, indent

import numpy as np
import pytest

import tinygrad_cg as tf

pytestmark = pytest.mark.quick

GLOBAL = np.arange(3.0)


class Thing:
    size = 2


THING = Thing()
HEAD = """
def pick(a, b, x):
    if x > 0.0:
        return a
    return b

def scale(a):
    a[0] = 2.0 * a[1]
    return a[0]

def endless(x):
    return endless(x - 1.0)

"""
# Body, what the error says; "at once": when it is decorated. Arguments are a, b, x, n.
DECORATED = {
    "list": ("c = [x, 2.0]\nreturn c[0]", r"lists are not supported: use np\.empty"),
    "list comprehension": (
        "return sum([y for y in a])",
        "list comprehensions are not supported: fill an array",
    ),
    "generator": ("return sum(y for y in a)", "write a loop"),
    "dict": ("c = {1: x}\nreturn c[1]", "dictionaries are not supported: use arrays"),
    "dict comprehension": ("c = {k: x for k in range(3)}\nreturn x", "dictionaries"),
    "set": ("c = {x}\nreturn x", "sets are not supported"),
    "try with returns": (
        "try:\n    return 1 / x\nexcept ZeroDivisionError:\n    pass",
        "use an `if` that excludes the error",
    ),
    "try": (
        "try:\n    x = 1 / x\nexcept ZeroDivisionError:\n    x = 0.0\nreturn x",
        "use an `if` that excludes the error",
    ),
    "with": ("with np.errstate():\n    x = 1.0\nreturn x", "`with` is not supported"),
    "inner function": ("def g(y):\n    return y\nreturn g(x)", "define functions outside"),
    "lambda": ("g = lambda y: y\nreturn g(x)", "define functions outside"),
    "class": ("class C:\n    pass\nreturn x", "define classes outside"),
    "f-string": ("c = f'{x}'\nreturn x", "strings are not supported"),
    "yield": ("yield x", "generators are not supported"),
    "global": ("global GLOBAL\nGLOBAL = x\nreturn x", "pass the variable as an argument"),
    "del": ("del n\nreturn x", "is not needed"),
    "match": ("match n:\n    case 1:\n        return x\nreturn x", "use `if` and `elif`"),
    "some paths": ("if x > 0.0:\n    return x", "only some paths"),
    "nothing on some": ("if x > 0.0:\n    return x\nreturn None", "only some paths"),
    "end of a loop": ("for y in a:\n    if y > x:\n        return y", "only some paths"),
}
CALLED = {
    "recursion": ("return endless(x)", "calls itself: write a loop"),
    "size in a loop": (
        "k = 1\nfor i in range(n):\n    x += np.sum(np.zeros(k))\n    k += i\nreturn x",
        "on a number that a loop",
    ),
    "made in a loop": (
        "for i in range(n):\n    c = np.zeros(3)\n    c[0] = x\nreturn c",
        "created in this loop and read after it",
    ),
    "attribute": ("return x * a.nbytes", "no attribute 'nbytes'"),
    "method": ("a.sort()\nreturn a[0]", "the method sort of arrays"),
    "numpy function": ("return np.linalg.svd(a)[0]", "not among the functions"),
    "numpy in Python": ("return np.sum(np.tri(3)) * x", "tri is not among the functions"),
    "tensor operation": ("return tf.reduce_sum(a) * x", "reduce_sum is not .*NumPy or math"),
    "compiled tensor operation": ("return tf.sin(x)", "tinygrad_cg.sin is not .*NumPy or math"),
    "built-in method": ("return x * HELD(x)", "count is not among the functions"),
    "random numbers": (
        "return x * np.random.rand()",
        r"numpy\.random\.(mtrand\.)?rand is not among .* differentiate: write a rule",
    ),
    "few arguments": ("return math.pow(x)", r"missing a required argument: 'y'"),
    "many arguments": ("return math.sin(x, 2.0)", "too many positional arguments"),
    "unknown name": ("return x + missing", "missing is not defined"),
    "unassigned": ("y = x + z\nz = y\nreturn z", "z may have no value, or None, here"),
    "index of floats": ("return a[x]", r"an index must be an integer: use int\(x\)"),
    "two arrays of indices": (
        "c = np.arange(2)\nm = np.outer(a, a)\nreturn np.sum(m[c, c])",
        "may have one array",
    ),
    "index beside an array": (
        "m = np.outer(a, a)\nreturn np.sum(m[0, np.arange(2)])",
        "slices beside it",
    ),
    "writes at indices": (
        "b = a.copy()\nb[np.arange(2)] += x\nreturn b",
        "cannot assign through an array index",
    ),
    "mask": ("return np.sum(a[a > 0.0])", "masks are not supported as indices: write a loop"),
    "too many indices": ("return a[0, 1]", "2 indices for an array of 1 axis"),
    "tuple index": ("c = (a, x)\nreturn c[n]", "a variable can only index a tuple of numbers"),
    "tuple too short": ("c = (x, 2.0)\nreturn c[3]", "out of range for the tuple"),
    "range step": ("s = 0.0\nfor i in range(0, 3, n):\n    s += x\nreturn s", "must be a constant"),
    "range of floats": ("s = 0.0\nfor i in range(x):\n    s += x\nreturn s", r"use int\(x\)"),
    "slice step": ("return np.sum(a[::n])", "the step of a slice must be a constant"),
    "loop else": (
        "for i in range(n):\n    pass\nelse:\n    x = 1.0\nreturn x",
        "`else` of loops",
    ),
    "two kinds": ("y = x\nif n > 1:\n    y = a\nreturn y", "different types after the two"),
    "two ranks": ("y = a\nif n > 1:\n    y = np.outer(a, a)\nreturn y", "two ranks"),
    "float in ints": ("c = np.zeros(3, np.int64)\nc[0] = x\nreturn c[0] * x", r"use int\(x\)"),
    "complex": ("return x * 1j", "complex numbers are not supported"),
    "string": ("return x + 'a'", "numbers and arrays are expected"),
    "truth of an array": ("if a:\n    x = 1.0\nreturn x", "a number is expected"),
    "chained arrays": ("return np.sum(0.0 < a < 1.0)", "a number is expected"),
    "object": ("THING.size = 3\nreturn x", "assign to names and to elements"),
    "in": ("if x in (1.0, 2.0):\n    x = 0.0\nreturn x", "compare with"),
    "is": ("if x is a:\n    x = 0.0\nreturn x", "`is` compares with None only"),
    "import": ("import math\nreturn x", "import it outside"),
    "starred": ("c, *d = (x, x, x)\nreturn c", "for 2 names|name each part"),
    "global written": ("GLOBAL[0] = x\nreturn GLOBAL[0]", "a global array is written to"),
    "walrus": ("while (y := 0.5 * x) > 0.1:\n    x = y\nreturn x", "write `while True`"),
    "test that writes": ("while scale(a) > 3.0:\n    pass\nreturn a[0]", "write `while True`"),
    "value that writes": ("a[0] += scale(a)\nreturn a[0]", "assign it to a name first"),
    "operand that writes": ("c = a * 2.0 + scale(a)\nreturn c[0]", "names first"),
    "alias by branch": (
        "c = a * x\nd = b * x\nif x > 0.0:\n    v = c\nelse:\n    v = d\nv[0] = 5.0\nreturn c[0]",
        "v may share its memory with c",
    ),
    "alias by call": ("c = a * x\nv = pick(c, b, x)\nv[0] = 5.0\nreturn c[0]", "may share"),
    "alias by expression": (
        "c = a * x\nd = b * x\nv = c if x > 0.0 else d\nv[0] = 5.0\nreturn c[0]",
        "may share",
    ),
    "alias by no round": (
        "c = a * x\nv = c\nfor i in range(n):\n    v = v * 2.0\nv[0] = 5.0\nreturn c[0]",
        "v may share its memory with c",
    ),
    "alias in the next round": (
        "c = a * x\nv = b * x\ns = 0.0\n"
        "for i in range(n):\n    c[0] += 1.0\n    s += v[0]\n    v = c\nreturn s",
        "in the next round",
    ),
    "two aliases": (
        "if x > 0.0:\n    v = a\n    w = a\nelse:\n    v = b\n    w = b\nv[0] = 5.0\nreturn w[0]",
        "may share",
    ),
    "iterated": (
        "c = a * x\nw = b * x\ns = 0.0\n"
        "for y in c:\n    s += y\n    c, w = w, c\n    c[1] = 2.0\nreturn s",
        "may share",
    ),
    "reshaped": ("c = a.reshape(3, 1)\nc[0, 0] = x\nreturn a[0]", "share"),
    "raveled": ("d = np.outer(a, b)\nc = d.ravel()\nc[0] = x\nreturn d[0, 0]", "share"),
    "integer power": ("k = n**n\nreturn x * k", r"unknown power: write float\(x\) \*\* n"),
    "argument replaced": ("if x > 0.0:\n    a = a * 2.0\na[0] = x", "replaced"),
}


def function_of(body, name):
    source = f"{HEAD}\ndef refused(a, b, x, n):\n{indent(dedent(body), '    ')}\n"
    filename = f"<refused {name}>"
    linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
    namespace = {
        "np": np,
        "math": math,
        "tf": tf,
        "GLOBAL": GLOBAL,
        "THING": THING,
        "HELD": [1.0].count,
    }
    exec(compile(source, filename, "exec"), namespace)
    return namespace["refused"]


@pytest.mark.parametrize("name", DECORATED)
def test_what_syntax_shows_is_refused_at_decoration(name):
    body, message = DECORATED[name]
    with pytest.raises(tf.errors.UnsupportedCodeError, match=message) as raised:
        tf.differentiable(function_of(body, name))
    assert f'File "<refused {name}>", line ' in str(raised.value)


@pytest.mark.parametrize("name", CALLED)
def test_what_types_show_is_refused_at_the_call(name):
    body, message = CALLED[name]
    f = tf.differentiable(function_of(body, name))
    with pytest.raises(tf.errors.UnsupportedCodeError, match=message) as raised:
        f(np.ones(3), np.ones(3), 0.5, 2)
    assert f'File "<refused {name}>", line ' in str(raised.value)


OF_MATH = [name for name in dir(math) if callable(getattr(math, name)) and name[0] != "_"]


@pytest.mark.parametrize("name", OF_MATH)
def test_a_function_of_math_has_its_derivative_or_is_refused(name):
    x = 1.3 if name == "acosh" else 0.6
    try:
        values = [getattr(math, name)(x + step) for step in (-1e-5, 1e-5)]
    except (TypeError, ValueError):  # it does not take one float
        values = []
    f = tf.differentiable(function_of(f"return math.{name}(x) * 1.0", name))
    args = np.ones(3), np.ones(3)
    try:
        f(*args, x, 2)
    except tf.errors.UnsupportedCodeError:
        return
    gradient = tf.grad(lambda x: f(*args, x, 2))(tf.constant(x, tf.float64))
    expected = (values[1] - values[0]) / 2e-5
    assert float(gradient) == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_arrays_changed_in_place_in_loops_are_read():
    body = "v = a * x\nfor i in range(n):\n    v *= 2.0\n    v += b\nreturn v[:2]"
    result = tf.differentiable(function_of(body, "in place"))(np.ones(3), np.ones(3), 0.5, 2)
    np.testing.assert_allclose(result, [5.0, 5.0])


def test_the_test_of_a_while_loop_shares_no_values_with_its_body():
    body = "s = 0.0\nwhile x * x > 0.1:\n    s += x * x * 3.0\n    x = x * 0.5\nreturn s"
    f = tf.differentiable(function_of(body, "while"))
    gradient = tf.grad(lambda x: f(np.ones(3), np.ones(3), x, 2))(tf.constant(3.0, tf.float64))
    np.testing.assert_allclose(gradient, 2 * 3.0 * 3.0 * (1 + 1 / 4 + 1 / 16 + 1 / 64))


def test_global_arrays_are_read_once():
    f = tf.differentiable(function_of("return x * GLOBAL[1]", "globals"))
    args = np.ones(3), np.ones(3), 0.5, 2
    assert float(f(*args)) == 0.5
    GLOBAL[1] = 7.0
    try:
        assert float(f(*args)) == 0.5
    finally:
        GLOBAL[1] = 1.0


UNASSIGNED = {  # n is 2 where the name has a value, and 0 where it has none
    "branch": ("if n > 1:\n    y = x * x\nreturn y", 4.0),
    "loop": ("for i in range(n):\n    y = x * x\nreturn y", 4.0),
    "index of a loop": ("for i in range(n):\n    pass\nreturn x * i", 2.0),
    "while": ("k = 0\nwhile k < n:\n    k += 1\n    y = x * k\nreturn y", 4.0),
    "read in a later round": (
        "for i in range(3):\n    if i == n - 2:\n        y = x\n    y = y + x\nreturn y",
        8.0,
    ),
    "array": ("if n > 1:\n    y = a\nreturn y.sum() * x", 6.0),
    "array that a loop replaces": (
        "if n > 1:\n    y = a\nfor i in range(2):\n    y = y * x\nreturn y.sum()",
        12.0,
    ),
    "tuple": ("if n > 1:\n    y = x, x * x\nreturn y[1]", 4.0),
    "function": ("if n > 1:\n    f = np.square\nreturn f(x)", 4.0),
    "inner branch": ("if n > 1:\n    y = x\nif n < 1:\n    x = y * x\nreturn x", 2.0),
}


@pytest.mark.parametrize("name", UNASSIGNED)
def test_a_name_without_a_value_on_the_path_that_is_taken_is_an_error(name):
    body, value = UNASSIGNED[name]
    f = tf.differentiable(function_of(body, name))
    arrays = np.ones(3), np.ones(3)
    assert float(f(*arrays, 2.0, 2)) == value
    message = r'refused \(File "<refused .*", line \d+\): [fiy] has no value on this path: assign'
    for call in (f, tf.grad(f, argnums=2)):
        with pytest.raises(UnboundLocalError, match=message):
            call(*arrays, 2.0, 0)
    with pytest.raises(UnboundLocalError, match=message):
        tf.jvp(lambda x: f(*arrays, x, 0), (2.0,), (1.0,))


@pytest.mark.parametrize(
    "body", ["return a[np.argmin(a)] * x", "return np.linalg.inv(m)[0, 0] * x"]
)
def test_short_forms_call_each_other(body):
    f = tf.differentiable(function_of(f"m = np.outer(a, b) + np.eye(3)\n{body}", body[7:20]))
    a, b = np.array([2.0, 1.0, 3.0]), np.array([1.0, 0.5, 0.25])
    expected = 1.0 if "argmin" in body else np.linalg.inv(np.outer(a, b) + np.eye(3))[0, 0]
    np.testing.assert_allclose(f(a, b, 0.5, 2), 0.5 * expected, rtol=1e-12)
