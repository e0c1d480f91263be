"""Random programs of branches, loops, jumps and handlers give the same transformed."""

import importlib.util
import random
import sys

import pytest

from tinygrad_cg.autograph import _convert as convert

NAMES = ("a", "b", "c")
PROGRAMS = 30


class Writer:
    """Writes the text of a function of two arguments."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.loops = 0

    def text(self):
        lines = [line for _ in range(3) for line in self.block(0, False, 1)]
        start = ["def f(x, flag):", "    a, b, c, k = x * 1.0, x + 1.0, 0.25 * x, 1"]
        return "\n".join([*start, *lines, "    return a + 2.0 * b + 3.0 * c", ""])

    def value(self, depth=0):
        draw = self.draw.random()
        if draw < 0.5 or depth > 1:
            return self.draw.choice([*NAMES, "x", "1.0", "-2.0", "0.5"])
        if draw < 0.8:
            return f"({self.value(depth + 1)} {self.draw.choice('+-*')} {self.value(2)}) * 0.5"
        if draw < 0.95:
            test = self.test(depth + 1)
            return f"({self.value(depth + 1)} if {test} else {self.value(depth + 1)})"
        return f"1.0 / {self.value(2)}"  # may raise

    def test(self, depth=0):
        draw = self.draw.random()
        if draw < 0.15:
            return self.draw.choice(["flag", "k % 2", "not flag", "later > 0"])  # may be undefined
        if draw < 0.6 or depth > 1:
            return f"{self.value(2)} {self.draw.choice(['>', '<', '>='])} {self.value(2)}"
        if draw < 0.75:
            return f"-1.0 < {self.value(2)} < 1.0"
        if draw < 0.85:
            return f"not {self.test(depth + 1)}"
        return f"({self.test(depth + 1)} {self.draw.choice(['and', 'or'])} {self.test(depth + 1)})"

    def block(self, depth, in_loop, indent):
        lines = []
        for _ in range(self.draw.randint(1, 3)):
            lines += self.statement(depth, in_loop, indent)
        return lines

    def statement(self, depth, in_loop, indent):
        draw, space = self.draw.random(), "    " * indent
        if depth >= 3 or draw < 0.3:
            return [f"{space}{self.draw.choice([*NAMES, 'later'])} = {self.value()}"]
        if draw < 0.55:
            return [f"{space}if {self.test()}:", *self.blocks(depth, in_loop, indent)]
        if draw < 0.65 and in_loop:
            return [f"{space}if {self.test()}: {self.draw.choice(['break', 'continue'])}"]
        if draw < 0.72:
            return [f"{space}if {self.test()}: return {self.value()}"]
        if draw < 0.82:
            head = f"{space}for k in range({self.draw.randint(0, 3)}):"
            return [head, *self.blocks(depth, True, indent, in_loop)]
        if draw < 0.92:
            self.loops += 1
            count = f"n{self.loops}"
            head = [f"{space}{count} = 0", f"{space}while ({count} := {count} + 1) < 4:"]
            return [*head, *self.blocks(depth, True, indent, in_loop)]
        body = self.block(depth + 1, in_loop, indent + 1)
        handler = f"{space}except ZeroDivisionError: {self.draw.choice(NAMES)} = 1.5"
        last = [f"{space}finally:", f"{space}    later = {self.value(2)}"]
        return [f"{space}try:", *body, handler, *last]

    def blocks(self, depth, in_loop, indent, around=None):
        lines = self.block(depth + 1, in_loop, indent + 1)
        if self.draw.random() < 0.4:
            lines.append("    " * indent + "else:")
            lines += self.block(depth + 1, in_loop if around is None else around, indent + 1)
        return lines


def outcome(f, *args):
    try:
        return repr(f(*args))
    except (ArithmeticError, NameError) as error:
        return type(error), str(error)


@pytest.mark.quick
def test_random_programs_of_python_values(tmp_path):
    kinds = set()
    for seed in range(PROGRAMS):
        path = tmp_path / f"program_{seed}.py"
        path.write_text(Writer(seed).text(), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        transformed = convert.convert(module.f)
        assert transformed is not module.f
        for x in (1.2, -0.7, 0.0):
            for flag in (True, False):
                expected = outcome(module.f, x, flag)
                assert outcome(transformed, x, flag) == expected, path.read_text()
                kinds.add(type(expected) is str or expected[0])
    assert {True, ZeroDivisionError, UnboundLocalError} <= kinds
    assert not any(name.startswith("program_") for name in sys.modules)
