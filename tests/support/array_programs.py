"""Random functions over arrays, and whether their derivatives are right.

``python -m tests.support.array_programs COUNT FIRST`` checks COUNT of them, from seed FIRST on.
Python runs their programs; with a third argument, ``compiled``, they are compiled.
Each is compared with itself run by Python; its gradient with the tangent program, and with
differences; its Hessian-vector product with reverse over forward, and with differences; both with
those of loops with checkpoints.
"""

from __future__ import annotations

import linecache
import math
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg._array_code import running

SIZE = 5
"""Elements of each array argument."""
MAX_DEPTH = 3
"""Statements inside one another."""
STEEPEST = 1e10
"""Gradients of more times the value have no differences of float64: such programs are chaotic."""
HEAD = """
def bent(x, y, k=2):
    if x > y:
        return x * math.sin(y)
    for _ in range(k):
        if y > 1.5:
            return y
        y = y + 0.25 * math.cos(x * y)
    return y * 0.5


def smooth_in_place(v, x):
    for q in range(1, len(v)):
        v[q] += 0.3 * math.tanh(v[q - 1]) * x
    v[0] *= 0.9


def turned(v, x):
    out = np.empty_like(v)
    for q in range(len(v)):
        out[len(v) - 1 - q] = math.sin(v[q]) * x
    return out


def joined(v, x):
    out = np.empty(len(v) + len(x))
    out[: len(v)] = v
    out[len(v) :] = x
    return out


def paired(v, x):
    for q in range(len(v)):
        if v[q] * x > 0.3:
            return v[q] * x, math.cos(v[q])
    return x, 0.5


def both(v, x):
    return v[1] * x, np.sum(v * v) * 0.1

"""


class Writer:
    """Writes the source of one function."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indices: list[str] = []
        self.floats = ["x", "y", "s"]
        self.integers = ["k"]
        self.arrays = ["u", "w"]
        self.count = 0

    def source(self) -> str:
        """Return functions, the last of which is `program`."""
        self.line(1, "u = a.copy()")
        self.line(1, "w = np.zeros_like(a)" if self.chance(0.2) else "w = a * b")
        self.line(1, "s = 0" if self.chance(0.2) else "s = x * y")
        self.line(1, "k = n")
        if self.chance(0.4):
            self.line(1, "m = np.outer(a, b)")
            self.arrays.append("m[1]")
            self.arrays.append("m[:, 2]")
        self.block(1, self.random.randint(3, 6))
        self.line(1, self.result())
        return HEAD + "\ndef program(a, b, x, y, n):\n" + "\n".join(self.lines) + "\n"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def result(self) -> str:
        return f"return {self.expression()} + np.sum(u * {self.pick(('w', 'u', 'b'))}) + s * 0.5"

    def pick(self, items: Any) -> str:
        return self.random.choice(list(items))

    def new(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    # Expressions ------------------------------------------------------------------------------

    def index(self) -> str:
        kind = self.random.random()
        if self.indices and kind < 0.5:
            return f"({self.pick(self.indices)} + {self.random.randint(0, 6)}) % {SIZE}"
        if kind < 0.65:
            return str(-self.random.randint(1, SIZE))
        if kind < 0.8:
            return f"k % {SIZE}" if self.chance(0.5) else f"-(k % {SIZE}) - 1"
        return str(self.random.randint(0, SIZE - 1))

    def element(self) -> str:
        return f"{self.pick((*self.arrays, 'a', 'b'))}[{self.index()}]"

    def expression(self, depth: int = 0) -> str:
        kind = self.random.random()
        if depth > 2 or kind < 0.2:
            return self.pick(self.floats)
        if kind < 0.45:
            return self.element()
        if kind < 0.5:
            return f"{self.random.uniform(-1, 1):.2f}"
        inner = self.expression(depth + 1)
        if kind < 0.62:
            return f"math.{self.pick(('sin', 'cos', 'tanh', 'atan'))}({inner})"
        other = self.expression(depth + 1)
        if kind < 0.82:
            return f"({inner} {self.pick('+-*')} {other})"
        if kind < 0.87:
            return f"({inner} / (1.5 + {other} ** 2))"
        if kind < 0.91:
            return f"bent({inner}, {other})" if self.chance(0.7) else f"bent({other}, y=0.3, k=1)"
        if kind < 0.95:
            return f"({inner} if {self.test()} else {other})"
        return f"{self.pick(('max', 'min'))}({inner}, {other})"

    def bounded(self) -> str:
        return f"math.tanh({self.expression()})"

    def test(self) -> str:
        kind = self.random.random()
        if kind < 0.5:
            return f"{self.element()} {self.pick('<>')} {self.random.uniform(-0.8, 0.8):.2f}"
        if kind < 0.7 and self.indices:
            return f"{self.pick(self.indices)} % 2 == {self.random.randint(0, 1)}"
        if kind < 0.85:
            return f"k > {self.random.randint(0, 4)} and {self.element()} < 0.4"
        return f"{self.pick(self.floats)} < {self.random.uniform(-0.5, 0.9):.2f}"

    # Statements -------------------------------------------------------------------------------

    def block(self, depth: int, count: int, loop: bool = False) -> None:
        known = [*self.floats], [*self.integers], [*self.arrays]
        for _ in range(count):
            self.statement(depth, loop)
        self.floats, self.integers, self.arrays = known

    def statement(self, depth: int, loop: bool) -> None:
        kinds: list[Any] = [
            (4, self.assign), (4, self.store), (2, self.augment_element), (2, self.slices),
            (2, self.whole), (1, self.swap), (1, self.temporary), (1, self.call),
            (1, self.count_up), (1, self.define), (0.7, self.alias), (0.4, self.pair),
            (0.7, self.varying), (0.7, self.forms),
        ]  # fmt: skip
        if depth <= MAX_DEPTH:
            kinds += [(3, self.branch), (4, self.loop), (1, self.while_loop)]
            kinds += [(1, self.stencil), (1, self.over_rows), (0.5, self.carried_pair)]
        if loop:
            kinds.append((1, self.jump))
        if depth > 1:
            kinds.append((0.3, self.leave))
        weights = [weight for weight, _ in kinds]
        self.random.choices([kind for _, kind in kinds], weights)[0](depth)

    def assign(self, depth: int) -> None:
        name = self.pick(x for x in self.floats if x not in ("a", "b"))
        if self.chance(0.5):
            self.line(depth, f"{name} = {self.bounded()}")
        else:
            self.line(depth, f"{name} {self.pick('+-')}= 0.5 * {self.bounded()}")

    def define(self, depth: int) -> None:
        name = self.new("t")
        self.line(depth, f"{name} = {self.bounded()}")
        self.floats.append(name)

    def store(self, depth: int) -> None:
        self.line(depth, f"{self.pick(self.arrays)}[{self.index()}] = {self.bounded()}")

    def augment_element(self, depth: int) -> None:
        operator = self.pick(("+=", "-=", "*="))
        self.line(depth, f"{self.pick(self.arrays)}[{self.index()}] {operator} {self.bounded()}")

    def slices(self, depth: int) -> None:
        pairs = (
            ("[1:]", "[:-1]"), ("[:-1]", "[1:]"), ("[::2]", "[2:]"), ("[::-1]", "[:]"),
            ("[1:4]", "[-3:]"), ("[3:0:-1]", "[2:5]"), ("[:k % 3]", "[:k % 3]"),
        )  # fmt: skip
        target, source = self.random.choice(pairs)
        own, other = self.pick(self.arrays), self.pick(self.arrays)
        factor = f"math.cos({self.expression()})"
        self.line(depth, f"{own}{target} {self.pick(('=', '='))} {other}{source} * {factor}")

    def whole(self, depth: int) -> None:
        own, other = self.pick("uw"), self.pick("uwab")
        forms = (
            f"{own} = np.sin({own}) + {other} * {self.bounded()}",
            f"{own} *= {self.bounded()}",
            f"{own}[:] = {other} * {self.bounded()} + {own}[::-1]",
            f"{own} = {other} * 0.7",
            f"{own} += {other} * {other}[{self.index()}] * 0.3",
            f"{own} = np.where({own} > 0.1, {other}, {own} * 0.5)",
            f"{own} = {other}.copy()",
            f"{own}[:] = 0.5 * {own} - {own}.sum() * 0.1",
        )
        self.line(depth, self.pick(forms))

    def swap(self, depth: int) -> None:
        self.line(depth, "u, w = w, u")

    def temporary(self, depth: int) -> None:
        name, i = self.new("v"), self.new("i")
        self.line(depth, f"{name} = np.{self.pick(('empty', 'zeros', 'ones'))}_like(a)")
        self.line(depth, f"for {i} in range({SIZE}):")
        self.indices.append(i)
        self.line(depth + 1, f"{name}[{i}] = {self.bounded()}")
        self.indices.pop()
        if self.chance(0.5):
            self.line(depth, f"{self.pick('uw')} = {name}")
        else:
            self.arrays.append(name)

    def call(self, depth: int) -> None:
        forms = (
            f"smooth_in_place({self.pick(self.arrays)}, {self.bounded()})",
            f"{self.pick('uw')} = turned({self.pick(self.arrays)}, {self.bounded()})",
            f"s, x = both({self.pick(self.arrays)}, {self.bounded()})",
            f"x, y = paired({self.pick(self.arrays)}, {self.bounded()})",
            f"s = np.dot({self.pick(self.arrays)}, {self.pick(self.arrays)}) * 0.2",
            f"y = {self.pick(self.arrays)}.mean() + {self.pick(self.arrays)}.max() * 0.3",
        )
        self.line(depth, self.pick(forms))

    def alias(self, depth: int) -> None:
        name, own, other = self.new("z"), self.pick(self.arrays), self.pick("uw")
        forms = (f"{own}", f"{own}[::-1]", f"{own} if {self.test()} else {other}")
        if self.chance(0.3):
            self.line(depth, f"{other} = {self.pick(forms)}")
            return
        self.line(depth, f"{name} = {self.pick(forms)}")
        self.arrays.append(name)

    def pair(self, depth: int) -> None:
        name = self.new("p")
        self.line(depth, f"{name} = ({self.bounded()}, {self.pick(self.arrays)})")
        if self.chance(0.5):
            self.line(depth, f"if {self.test()}:")
            self.line(depth + 1, f"{name} = ({self.bounded()}, {self.pick(self.arrays)})")
        self.line(depth, f"{self.pick(('x', 'y', 's'))} = {name}[0] * {name}[1][{self.index()}]")

    def count_up(self, depth: int) -> None:
        self.line(depth, self.pick(("k += 1", "k = k // 2 + 1", "k = (k * 3 + 1) % 7", "k -= 1")))

    def branch(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1, self.random.randint(1, 2))
        if self.chance(0.5):
            self.line(depth, "else:")
            self.block(depth + 1, self.random.randint(1, 2))

    def loop(self, depth: int) -> None:
        i = self.new("i")
        bounds = [
            f"{SIZE}",
            "n",
            "k % 4",
            f"1, {SIZE}",
            f"{SIZE - 1}, -1, -1",
            "0, 5, 2",
            "4, 0, -2",
        ]
        bounds += [f"{other} % 3 + 1" for other in self.indices]
        self.line(depth, f"for {i} in range({self.pick(bounds)}):")
        self.body(depth, i)

    def body(self, depth: int, index: str) -> None:
        self.indices.append(index)
        self.block(depth + 1, self.random.randint(1, 3), loop=True)
        self.indices.pop()

    def while_loop(self, depth: int) -> None:
        i = self.new("j")
        self.line(depth, f"{i} = 0")
        tests = (f"{i} < 3", f"{i} < n and {self.element()} < 0.9", f"{self.element()} ** 2 < 0.8")
        self.line(depth, f"while {self.pick(tests)}:")
        self.line(depth + 1, f"{i} += 1")
        self.line(depth + 1, f"if {i} > 4:")
        self.line(depth + 2, "break")
        self.body(depth, i)

    def stencil(self, depth: int) -> None:
        i, name = self.new("i"), self.pick("uw")
        offsets = self.random.sample((-1, 0, 1), 2)
        left, right = (f"{i} + {k}" if k >= 0 else f"{i} - {-k}" for k in offsets)
        value = f"0.4 * {name}[{left}] * math.cos({self.pick('uwab')}[{right}])"
        self.line(depth, f"for {i} in range(1, {SIZE - 1}):")
        self.line(depth + 1, f"{name}[{i}] {self.pick(('=', '+='))} {value}")

    def over_rows(self, depth: int) -> None:
        i, value = self.new("i"), self.new("e")
        over = self.pick((f"enumerate({self.pick(self.arrays)})", "enumerate(b)"))
        self.line(depth, f"for {i}, {value} in {over}:")
        self.line(depth + 1, f"s += {value} * a[{i}] * 0.2")
        self.body(depth, i)

    def varying(self, depth: int) -> None:
        """Write arrays whose sizes depend on a loop's index."""
        name, other = self.new("g"), self.pick((*self.arrays, "a"))
        size = f"{self.pick(self.indices)} + 1" if self.indices else "n + 1"
        forms = (
            f"np.full({size}, {self.bounded()})",
            f"np.zeros({size}) + {other}[{self.index()}]",
            f"np.sin({other}[{self.pick(self.indices) if self.indices else 'n'} % {SIZE} :])",
            f"joined({other}[: k % {SIZE}], {self.pick('ab')}[:1])",
        )
        self.line(depth, f"{name} = {self.pick(forms)}")
        self.line(depth, f"{name}[0] *= {self.bounded()}")
        self.line(depth, f"s += 0.2 * np.sum({name} * {name})")

    def forms(self, depth: int) -> None:
        own, other = self.pick((*self.arrays, "a")), self.pick("ab")
        forms = (
            f"np.sum(np.cumsum({own}) * {other})",
            f"np.sum(np.diag({own}) @ {other})",
            f"np.sum(np.stack(({own}, {other}))[:, {self.random.randint(0, SIZE - 1)}])",
            f"{own}[np.argmax({other})]",
            f"np.sinc({self.bounded()})",
            "x * np.searchsorted(np.linspace(-0.5, 0.5, n + 2), y)",
        )
        self.line(depth, f"y = 0.3 * {self.pick(forms)}")

    def carried_pair(self, depth: int) -> None:
        name, i = self.new("q"), self.new("i")
        self.line(depth, f"{name} = ({self.pick(self.floats)}, {self.bounded()})")
        self.line(depth, f"for {i} in range({self.pick(('n', '3'))}):")
        self.line(depth + 1, f"{name} = ({name}[1] * 0.5, math.sin({name}[0]))")
        self.body(depth, i)
        self.line(depth, f"s += {name}[0] * {name}[1]")

    def jump(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:")
        if self.chance(0.4):
            self.block(depth + 1, 1)
        self.line(depth + 1, self.pick(("break", "continue")))

    def leave(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.line(depth + 1, self.result())


@contextmanager
def interpreted() -> Iterator[None]:
    """Run programs by Python instead of compiling them: small ones are much faster then."""

    def interpret(source: Any, _signature: Any) -> Any:
        lines = source.text.splitlines()
        hints = ("noalias", "wide_vectors")  # for the compiler
        namespace: dict[str, Any] = {}
        exec("\n".join(x for x in lines if not any(hint in x for hint in hints)), namespace)

        def run(*arrays: np.ndarray) -> bool:
            return namespace["run"](*[array.reshape(-1) for array in arrays])

        return SimpleNamespace(run=run, owner=None)

    service = running.service
    running.service = SimpleNamespace(TextSource=service.TextSource, compile=interpret)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        running.service = service


def program(source: str, name: str) -> Any:
    """Return the function `program` of a source."""
    filename = f"<array program {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"np": np, "math": math}
    exec(compile(source, filename, "exec"), namespace)
    return namespace["program"]


def arguments(seed: int) -> tuple:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=SIZE) * 0.7, rng.normal(size=SIZE) * 0.7
    return a, b, float(rng.normal()), float(rng.normal()), int(rng.integers(0, 4))


def _close(x: float, y: float, relative: float) -> bool:
    return abs(x - y) <= relative * max(1.0, abs(x), abs(y))


def _is_derivative(function: Any, expected: float, relative: float) -> bool:
    """Return whether differences of some step agree with a derivative."""
    for h in (1e-3, 1e-4, 1e-5, 1e-6):
        coarse = (function(h) - function(-h)) / (2 * h)
        fine = (function(h / 2) - function(-h / 2)) / h
        if _close((4 * fine - coarse) / 3, expected, relative):
            return True
    return False


def disagreement(seed: int, second: bool = True) -> str | None:
    """Return what disagrees for a seed; "refused" for programs outside of the subset."""
    source = Writer(seed).source()
    return check(source, seed, second)


def check(source: str, seed: int, second: bool = True) -> str | None:
    """Return what disagrees for a source."""
    plain = program(source, f"{seed}")
    *floats, n = arguments(seed)
    f = tf.differentiable(plain)
    expected = float(plain(*[np.copy(x) if np.ndim(x) else x for x in floats], n))
    try:
        value = float(f(*floats, n))
    except tf.errors.UnsupportedCodeError as error:
        return f"refused: {error}"
    if not math.isfinite(expected):
        return None if not math.isfinite(value) else f"value {value}, Python's is {expected}"
    if not _close(value, expected, 1e-10):
        return f"value {value}, Python's is {expected}"
    rng = np.random.default_rng(seed)
    ways = [[tf.constant(rng.normal(size=np.shape(x)), tf.float64) for x in floats] for _ in "12"]
    point = [tf.constant(x, tf.float64) for x in floats]

    def of_floats(*xs: Any) -> Any:
        return f(*xs, n)

    gradient = tf.grad(of_floats, (0, 1, 2, 3))

    def along(gradients: Any, way: Any) -> Any:
        return sum(tf.reduce_sum(g * d) for g, d in zip(gradients, way, strict=True))

    def at(h: float) -> list[Any]:
        return [x + h * d.numpy() for x, d in zip(floats, ways[0], strict=True)]

    first = float(along(gradient(*point), ways[0]))
    forward = float(tf.jvp(of_floats, tuple(point), tuple(ways[0]))[1])
    if not _close(first, forward, 1e-9):
        return f"gradient {first}, tangent {forward}"
    depth = 1 + seed % 3
    again = tf.differentiable(plain, checkpoint=depth)
    of_segments = tf.grad(lambda *xs: again(*xs, n), (0, 1, 2, 3))
    rerun = float(along(of_segments(*point), ways[0]))
    if not _close(rerun, first, 1e-13):
        return f"gradient {first}, with checkpoint={depth} {rerun}"
    if abs(first) > STEEPEST * max(1.0, abs(value)):
        return None
    if not _is_derivative(lambda h: float(plain(*at(h), n)), first, 1e-5):
        return f"gradient {first} is not the limit of differences"
    if not second:
        return None
    products = tf.jvp(gradient, tuple(point), tuple(ways[0]))[1]
    product = float(along(products, ways[1]))
    rerun = float(along(tf.jvp(of_segments, tuple(point), tuple(ways[0]))[1], ways[1]))
    if not _close(rerun, product, 1e-12):
        return f"Hessian-vector product {product}, with checkpoint={depth} {rerun}"

    def directional(*xs: Any) -> Any:
        return tf.jvp(of_floats, xs, tuple(ways[1]))[1]

    other = float(along(tf.grad(directional, (0, 1, 2, 3))(*point), ways[0]))
    if not _close(product, other, 1e-8):
        return f"forward over reverse {product}, reverse over forward {other}"

    def moved(h: float) -> float:
        xs = [tf.constant(x, tf.float64) for x in at(h)]
        return float(along(gradient(*xs), ways[1]))

    if not _is_derivative(moved, product, 1e-5):
        return f"Hessian-vector product {product} is not the limit of differences"
    return None


def main(count: int, first: int) -> None:
    wrong = refused = 0
    for seed in range(first, first + count):
        try:
            problem = disagreement(seed)
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
        if problem is None:
            continue
        if problem.startswith("refused"):
            refused += 1
        else:
            wrong += 1
        print(seed, problem, flush=True)
    print(
        f"{count} programs from seed {first}: {wrong} disagree, {refused} are refused", flush=True
    )


if __name__ == "__main__":
    if "compiled" in sys.argv:
        main(int(sys.argv[1]), int(sys.argv[2]))
    else:
        with interpreted():
            main(int(sys.argv[1]), int(sys.argv[2]))
