"""Random programs of tapes, branches and loops inside each other: compiled ones against eager ones.

``python -m tests.support.flow_programs 400`` compares 400 of them to third order, and prints those
that differ. A second number is the seed of the first program.
"""

import linecache
import random
import sys
import warnings

import numpy as np

import tinygrad_cg as tf
from tinygrad_cg.errors import AutographError

NAMES = ("a", "b", "c")
POINTS = (0.7, -0.4)


class Holder:
    """An object with an attribute that programs assign."""


@tf.custom_gradient
def bent(x):
    return tf.sin(x) * x, lambda dy: tf.cond(x > 0.3, lambda: dy * tf.cos(x), lambda: dy * x)


@tf.custom_gradient
def chosen(x):
    y = tf.cond(x > 0.1, lambda: x * x, lambda: 0.5 * x)
    return y, lambda dy: dy * (x + 1.0)


class Writer:
    """Writes the text of a function of one float64 tensor."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.count = 0
        self.tapes = 0  # around the statement that is written

    def text(self):
        lines = ["def f(x):", "    a, b, c = x, 0.5 * x, x * x", "    o = Holder()"]
        lines += ["    o.h = x + 0.1", "    d = [0.3 * x, x]", "    v.assign(tf.cos(x))"]
        for _ in range(2):
            lines += self.block(1, 0, False)
        end = "    return a + 0.7 * b - 0.3 * c + o.h * 0.2 + d[0] - d[1] * 0.4 + v"
        return "\n".join([*lines, end, ""])

    def fresh(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def expression(self):
        return self.draw.choice([*NAMES, "o.h", "d[0]", "(v + 0.0)", "x"])

    def value(self):
        left, right = self.expression(), self.expression()
        forms = [
            "tf.sin({0}) * {1}",
            "0.5 * {0} + {1} * 0.4",
            "{0} * 0.6 - 0.2",
            "tf.tanh({0} * {1})",
        ]
        forms += ["bent({0})", "0.5 * chosen({0})", "({0} if {1} > 0.2 else {1} * 0.5)"]
        return self.draw.choice(forms).format(left, right)

    def test(self):
        form = self.draw.choice(["{} > 0.1", "{} < 0.4", "{} > 0.0 and {} < 0.8", "not {} > 0.3"])
        return form.format(self.expression(), self.expression())

    def block(self, indent, depth, in_loop):
        lines = []
        for _ in range(self.draw.randint(1, 2)):
            lines += self.statement(indent, depth, in_loop)
        return lines

    def statement(self, indent, depth, in_loop):
        kinds = ["assign", "assign"]
        if depth < 3:
            kinds += ["if", "tape", "tape", "while", "for", "try"]
        if depth and self.tapes == 0:
            kinds += ["return"]
        if in_loop:
            kinds += ["jump"]
        return getattr(self, self.draw.choice(kinds))(indent, depth, in_loop)

    def assign(self, indent, depth, in_loop):
        space, value = "    " * indent, self.value()
        target = self.draw.choice([*NAMES, *NAMES, "o.h", "d[0]", "v"])
        if target == "v":
            return [f"{space}v.{self.draw.choice(['assign', 'assign_sub'])}(0.5 * ({value}))"]
        return [f"{space}{target} = {value}"]

    def jump(self, indent, depth, in_loop):
        jump = self.draw.choice(["break", "continue"])
        return [f"{'    ' * indent}if {self.test()}: {jump}"]

    def return_(self, indent):
        return f"{'    ' * indent}return {self.expression()} * 0.9 + a"

    def finish(self, indent, depth, in_loop):
        return [f"{'    ' * indent}if {self.test()}:", self.return_(indent + 1)]

    def if_(self, indent, depth, in_loop):
        space = "    " * indent
        lines = [f"{space}if {self.test()}:", *self.block(indent + 1, depth + 1, in_loop)]
        if self.draw.random() < 0.6:
            lines += [f"{space}else:", *self.block(indent + 1, depth + 1, in_loop)]
        return lines

    def while_(self, indent, depth, in_loop):
        space, n = "    " * indent, self.fresh("n")
        head = [
            f"{space}{n} = 0",
            f"{space}while {self.test()} and {n} < 3:",
            f"{space}    {n} += 1",
        ]
        return [*head, *self.block(indent + 1, depth + 1, True)]

    def for_(self, indent, depth, in_loop):
        rounds = self.draw.choice(["tf.cast(x * x * 3.0, tf.int32) + 1", "3"])
        head = f"{'    ' * indent}for _ in tf.range({rounds}):"
        return [head, *self.block(indent + 1, depth + 1, True)]

    def try_(self, indent, depth, in_loop):
        space = "    " * indent
        body = self.block(indent + 1, depth + 1, in_loop)
        return [f"{space}try:", *body, f"{space}finally:", *self.assign(indent + 1, depth, False)]

    def tape(self, indent, depth, in_loop):
        """Return a block that a tape or an accumulator records, and the use of its derivative."""
        space, s, t, z, g = "    " * indent, *map(self.fresh, "stzg")
        kind = self.draw.choice(["gradient", "gradient", "variable", "jvp", "nested", "persistent"])
        source = self.draw.choice(NAMES)
        start = [] if kind == "variable" else [f"{space}{s} = {source} * 1.0"]
        by = "v" if kind == "variable" else s
        self.tapes += 1
        inside = self.block(indent + 1 + (kind == "nested"), depth + 1, False)
        self.tapes -= 1
        end = f"{z} = {self.value()} + {self.draw.choice([source, 'o.h', 'd[0]'])} * {source}"
        if kind == "jvp":
            head = f"with tf.autodiff.ForwardAccumulator({s}, tf.ones_like({s})) as {t}:"
            lines = [f"{space}{head}", f"{space}    {source} = {s}", *inside, f"{space}    {end}"]
            lines += [f"{space}{g} = {t}.jvp({z})"]
        elif kind == "nested":
            inner = self.fresh("t")
            lines = [f"{space}with tf.GradientTape() as {t}:", f"{space}    {t}.watch({s})"]
            lines += [f"{space}    with tf.GradientTape() as {inner}:"]
            lines += [f"{space}        {inner}.watch({s})", f"{space}        {source} = {s}"]
            lines += [*inside, f"{space}        {end} * {s} * {s}"]
            lines += [f"{space}    {g}0 = {inner}.gradient({z}, {s})"]
            lines += [f"{space}{g} = {t}.gradient({g}0, {s})"]
        else:
            option = "persistent=True" if kind == "persistent" else ""
            lines = [f"{space}with tf.GradientTape({option}) as {t}:"]
            if kind != "variable":
                lines += [f"{space}    {t}.watch({s})", f"{space}    {source} = {s}"]
            lines += [*inside, f"{space}    {end}" + (" * v" if kind == "variable" else "")]
            lines += [f"{space}{g} = {t}.gradient({z}, {by})"]
        change = f"0.1 * tf.tanh({g})"
        uses = [f"if {g} is not None: {source} = {source} - {change}"]
        uses += [
            f"if {g} is not None: o.h = o.h + {change}",
            f"if {g} is not None: d[0] = d[0] + {change}",
        ]
        uses += [f"for e in [e for e in [{g}] if e is not None]: b = b + 0.1 * tf.tanh(e)"]
        uses += [f"if {g} is not None: v.assign_sub({change})"]
        if kind == "persistent":
            uses = [f"c = c + {change} if {g} is not None else c"]
            target = self.draw.choice([z, "a", "b"])
            again = f"{t}.gradient({target}, {s}, unconnected_gradients='zero')"
            uses[0] += f"\n{space}b = b - 0.1 * tf.tanh({again})"
        return [*start, *lines, space + self.draw.choice(uses)]


for _name in ("if", "while", "for", "try"):
    setattr(Writer, _name, getattr(Writer, f"{_name}_"))
setattr(Writer, "return", Writer.finish)


def program(seed):
    """Return a program, as a function, and its text."""
    text, name = Writer(seed).text(), f"<flow program {seed}>"
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    scope = {"tf": tf, "Holder": Holder, "bent": bent, "chosen": chosen}
    scope["v"] = tf.Variable(0.0, dtype=tf.float64)
    exec(compile(text, name, "exec"), scope)
    return scope["f"], text


def derivatives(f, x, order):
    """Return the value and the derivatives up to an order."""

    def derivative(k, x):
        if not k:
            return f(x) + 0.0 * x
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = derivative(k - 1, x)
        return tape.gradient(y, x, unconnected_gradients="zero")

    return [float(derivative(k, x)) for k in range(order + 1)]


def compare(seed, order=3, points=POINTS):
    """Return what is wrong with a program, "" if nothing is, and its text."""
    f, text = program(seed)
    compiled = tf.function(f)
    for k, point in enumerate(points):
        x = tf.constant(point, tf.float64)
        expected = derivatives(f, x, order if k == 0 else 1)
        try:
            actual = derivatives(compiled, x, order if k == 0 else 1)
        except AutographError as error:
            return f"refused: {error}", text
        except Exception as error:  # whatever it is, it is a finding
            return f"{type(error).__name__}: {error}", text
        if not np.allclose(actual, expected, rtol=1e-6, atol=1e-8, equal_nan=True):
            return f"at {point} it gives {actual} for {expected}", text
    return "", text


def main(count, first):
    warnings.simplefilter("ignore")
    kinds = {"right": 0, "refused": 0, "wrong": 0}
    for seed in range(first, first + count):
        wrong, text = compare(seed)
        kind = "right" if not wrong else "refused" if wrong.startswith("refused") else "wrong"
        kinds[kind] += 1
        if wrong:
            print(f"program {seed}: {wrong}\n{text}", flush=True)
    print(", ".join(f"{n} {kind}" for kind, n in kinds.items()))
    return kinds["wrong"]


if __name__ == "__main__":
    arguments = list(map(int, sys.argv[1:]))
    sys.exit(bool(main(arguments[0], arguments[1] if len(arguments) > 1 else 0)))
