"""Indices out of range: `differentiable` raises IndexError exactly where Python does."""

import linecache
import random
from textwrap import indent

import numpy as np
import pytest

import tinygrad_cg as tf

# Bodies of functions of x (5 elements), m (2 rows, 3 columns), n = 5 and k, and the values of k for
# which all indices are in range, and for which one is not.
CASES = {
    "constant": ("return x[4] + x[-5] + k", (0,), ()),
    "constant beyond": ("return x[5] + k", (), (0,)),
    "constant before": ("return x[-6] + k", (), (0,)),
    "argument": ("return x[k]", (-5, 0, 4), (-6, 5)),
    "row and column": ("return m[k, k + 1]", (-2, 0, 1), (2, -3)),
    "loop": ("s = 0.0\nfor i in range(k):\n    s += x[i]\nreturn s", (-1, 0, 5), (6,)),
    "two arrays": (
        "s = 0.0\nfor i in range(n):\n    s += x[i] * m[0, i % k]\nreturn s",
        (3,),
        (4,),
    ),
    "backward": ("s = 0.0\nfor i in range(k, -1, -1):\n    s += x[i]\nreturn s", (-1, 4), (5,)),
    "step": ("s = 0.0\nfor i in range(0, k, 3):\n    s += x[i]\nreturn s", (6,), (7,)),
    "falling": ("s = 0.0\nfor i in range(n):\n    s += x[k - i]\nreturn s", (4, 0, -1), (5, -2)),
    "triangle": (
        "s = 0.0\nfor i in range(k):\n    for j in range(i + 1):\n        s += x[j]\nreturn s",
        (5,),
        (6,),
    ),
    "no rounds inside": (
        "s = 0.0\nfor i in range(-9, k):\n    for j in range(i):\n        s += x[j]\nreturn s",
        (6, -2),
        (7,),
    ),
    "flat": (
        "y = m.ravel()\ns = 0.0\nfor i in range(2):\n    for j in range(k):\n"
        "        s += y[i * k + j]\nreturn s",
        (0, 3),
        (4,),
    ),
    "in a branch": (
        "s = 0.0\nfor i in range(n):\n    if i < 2:\n        s += x[i + k]\nreturn s",
        (-5, 3),
        (-6, 4),
    ),
    "before a break": (
        "s = 0.0\nfor i in range(9):\n    if i > k:\n        break\n    s += x[i]\nreturn s",
        (4,),
        (5,),
    ),
    "before a return": (
        "for i in range(9):\n    if i == k:\n        return x[i - 1]\n    s = x[i]\nreturn s",
        (1, 5),
        (6,),
    ),
    "while": ("i = 0\ns = 0.0\nwhile i < k:\n    s += x[i]\n    i += 2\nreturn s", (6,), (7,)),
    "no rounds, divided by 0": (
        "s = 0.0\nfor i in range(k):\n    s += x[7 % k]\nreturn s",
        (0, 3),
        (8,),
    ),
    "no rounds outside": (
        "s = 0.0\nfor i in range(k):\n    for j in range(9):\n        s += x[j]\nreturn s",
        (0,),
        (1,),
    ),
    "written": ("y = x * 1.0\ny[k] = 2.0\nreturn y[0] * x[1]", (-5, 4), (-6, 5)),
    "added": ("y = np.zeros(2)\nfor i in range(k):\n    y[i] += x[i]\nreturn y[0]", (2,), (3,)),
    "part": ("y = x[1:4]\nreturn y[k]", (-3, 2), (-4, 3)),
    "row": ("y = m[k]\nreturn y[0]", (-2, 1), (-3, 2)),
    "every other": ("y = x[::-2]\nreturn y[k]", (-3, 2), (-4, 3)),
    "integers": ("y = x[np.array([0, 1]) * k]\nreturn y[1]", (-5, 4), (-6, 5)),
    "tuple": ("y = (x[0], x[1], x[2])\nreturn y[k]", (-3, 2), (-4, 3)),
    "raised before": (
        "s = 0.0\nfor i in range(k):\n    if i > 5:\n        raise IndexError('mine')\n"
        "    s += x[min(i, 4)]\nreturn s",
        (6,),
        (7,),
    ),
}
X, M = np.arange(5.0) ** 2 + 1.0, np.arange(6.0).reshape(2, 3) - 2.5


def function_of(body, name):
    source = f"def indexed(x, m, n, k):\n{indent(body, '    ')}\n"
    filename = f"<indices {name}>"
    linecache.cache[filename] = len(source), None, source.splitlines(keepends=True), filename
    scope = {"np": np}
    exec(compile(source, filename, "exec"), scope)
    return scope["indexed"]


@pytest.mark.quick
@pytest.mark.parametrize("name", CASES)
def test_an_index_out_of_range_is_an_error_and_others_are_not(name):
    body, within, beyond = CASES[name]
    plain = function_of(body, name)
    f = tf.differentiable(plain)
    slope = tf.grad(f, argnums=(0, 1))
    for k in within:
        np.testing.assert_allclose(f(X, M, 5, k), plain(X, M, 5, k), rtol=1e-13)
        gradient = slope(X, M, 5, k)[0]
        step = 1e-6 * np.cos(np.arange(5.0))
        change = plain(X + step, M, 5, k) - plain(X - step, M, 5, k)
        np.testing.assert_allclose(2 * np.sum(gradient * step), change, rtol=1e-6, atol=1e-13)
    for k in beyond:
        with pytest.raises(IndexError):
            plain(X, M, 5, k)
        for call in (f, slope, tf.function(f)):
            with pytest.raises(IndexError, match=r"indexed .*out of range for its axis|mine"):
                call(X, M, 5, k)
        with pytest.raises(IndexError, match=r"indexed .*out of range for its axis|mine"):
            tf.jvp(lambda x, m, k=k: f(x, m, 5, k), (X, M), (X, M))


@pytest.mark.quick
def test_the_first_index_out_of_range_is_named():
    """Checks before a loop have the order of its body, in each process, as the program's text."""
    reads = "".join(f"    s += x[i + {k}]\n" for k in range(6))
    f = function_of(f"s = 0.0\nfor i in range(k):\n{reads}return s", "in order")
    with pytest.raises(IndexError, match=r'indexed \(File "<indices in order>", line 4\)'):
        tf.differentiable(f)(X, M, 5, 9)


class Program:
    """A random function with loops, branches and indices that may be out of range."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = ["n", "k", "len(y)"]
        self.lines = ["s = 0.0"]
        self.block(0)
        self.lines.append("return s + 0.0 * x[0]")

    def number(self, depth=2):
        kind = self.random.choice("nnncpptf" if depth else "nnc")
        if kind == "n":
            return self.random.choice(self.names)
        if kind == "c":
            return str(self.random.randint(-2, 4))
        first, second = self.number(depth - 1), self.number(depth - 1)
        if kind == "p":
            return f"({first} {self.random.choice('+-*')} {second})"
        if kind == "t":
            return f"{self.random.choice(('min', 'max'))}({first}, {second})"
        return f"({first} {self.random.choice(('//', '%'))} {self.random.randint(1, 4)})"

    def block(self, depth):
        for _ in range(self.random.randint(1, 2)):
            self.statement(depth)

    def statement(self, depth):
        kind = self.random.choice("llllbirw" if depth < 3 else "r")
        indented = "    " * depth
        if kind == "l":
            name = f"i{len(self.lines)}"
            ends = [f"range({self.number(1)})", f"range({self.number(1)}, {self.number(1)})"]
            ends += [
                f"range({self.number(1)}, {self.number(1)}, {self.random.choice((-2, -1, 2))})"
            ]
            self.lines.append(f"{indented}for {name} in {self.random.choice(ends)}:")
            self.names.append(name)
            self.block(depth + 1)
            self.names.remove(name)
            if self.random.random() < 0.15:
                self.lines.append(f"{indented}    if {self.number(1)} > {self.number(1)}:")
                self.lines.append(f"{indented}        break")
        elif kind == "b":
            self.lines.append(f"{indented}if {self.number(1)} < {self.number(1)}:")
            self.block(depth + 1)
        elif kind == "w":
            self.lines.append(f"{indented}y[{self.number()}] += s")
        else:
            array = self.random.choice(("x", "y", "x[1:]", "m[1]"))
            self.lines.append(f"{indented}s += {array}[{self.number()}]")


def outcome(call):
    """Return a number; NaN for an IndexError."""
    try:
        return np.asarray(call()).item()
    except IndexError:
        return np.nan


@pytest.mark.parametrize("seed", range(40))
def test_random_functions_raise_where_python_does(seed):
    lines = ["y = m[0] * 1.0", *Program(seed).lines]
    plain = function_of("\n".join(lines), f"random {seed}")
    f = tf.differentiable(plain)
    for n, k in ((3, 0), (5, 1), (2, -1)):
        expected = outcome(lambda n=n, k=k: plain(X, M, n, k))
        result = outcome(lambda n=n, k=k: f(X, M, n, k))
        np.testing.assert_allclose(result, expected, rtol=1e-12, err_msg="\n".join(lines))
        gradient = outcome(lambda n=n, k=k: np.sum(tf.grad(f)(X, M, n, k)))
        assert np.isnan(gradient) == np.isnan(expected), "\n".join(lines)


def pairs(x):
    a = np.zeros(7)
    a[:] = x
    return a.reshape(-1, 2)


@pytest.mark.quick
def test_arrays_of_constant_sizes_keep_all_elements_when_reshaped():
    with pytest.raises(ValueError, match="reshape must keep all elements"):
        tf.differentiable(pairs)(2.0)
