"""Random functions of the front end's grammar, to compare what it makes of them with Numba.

``python -m tests.support.random_functions 0 1000`` tries the functions of a thousand seeds, and
prints how many were compared, how many the front end refused, and the first text that differs.
"""

import ctypes
import random
import sys
from collections.abc import Callable
from typing import Any
from unittest import mock

import numba
import numpy as np
from numba.cpython import numbers

from tinygrad_cg_frontend import Untranslatable
from tinygrad_cg_kernels.runtime import generated, numba_backend, service, signatures
from tinygrad_cg_kernels.runtime.locks import no_collection
from tinygrad_cg_kernels.runtime.service import TextSource

HELPERS = """
from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.intrinsics import inlined, outlined, wide_vectors

ZEROS = 0.0, 1.0
NEGATIVE_ZEROS = -0.0, 1.0


@jitable
def choose(test, a, b):
    inlined()
    if test:
        return a
    return b


@jitable
def pair(a, b):
    outlined()
    return a - b, b
"""
HEAD = f"""
import math

import numpy as np

from tinygrad_cg_kernels.runtime.intrinsics import bits, from_bits, like, polynomial
from {generated.load(HELPERS).__name__} import NEGATIVE_ZEROS, ZEROS, choose, pair
"""
PARAMETERS = {"x": "f64", "y": "f32", "n": "i64", "m": "u8", "s": "i32"}
"""The arrays that are read, and the types of their elements."""
RESULTS = {"fs": "f64", "gs": "f32", "ks": "i64", "ts": "b1"}
"""The arrays that are written, by which all variables are seen."""
SIZE = 8
CASTS = {"f64": "np.float64", "f32": "np.float32", "i64": "np.int64", "b1": "np.bool_"}
CASTS |= {"i32": "np.int32", "u8": "np.uint8", "u64": "np.uint64"}
FORMS = {
    "i64": [
        *("{} + {}", "{} - {}", "{} * {}", "{} & {}", "{} | {}", "{} ^ {}", "{} // (({} & 7) + 1)"),
        *("{} % (({} & 7) - 9)", "{} << ({} & 15)", "{} >> ({} & 63)", "min({}, {})"),
        *("max({}, {})", "{} + m[{} & 7]"),
    ],
    "f64": ["{} + {}", "{} - {}", "{} * {}", "{} / {}", "{} % {}", "min({}, {})", "max({}, {})"],
}
FORMS["f32"] = FORMS["f64"]
"""What operators make of two values, by their type."""
CALLS = {
    "f64": [
        *("math.sqrt({})", "math.exp({})", "np.sqrt({})", "math.sin({})", "abs({})", "(-{})"),
        *("polynomial({}, (0.5, 2.0))", "from_bits(bits({}))", "like(0.1, {})"),
    ],
    "f32": ["abs({})", "(-{})", "np.sqrt({})", "like(0.1, {})"],
    "i64": ["abs({} >> 1)", "(-{})", "(~{})"],
}
FLOATS = [0.0, -0.0, 1.5, -2.25, 1e-3, 3e8, np.inf, np.nan]
INTEGERS = [0, 1, -1, 7, -8, 255, 2**31, -(2**63)]


def function(lines: list[str], helpers: str = "") -> str:
    """Return the text of a function of these lines."""
    arguments = ", ".join([*PARAMETERS, *RESULTS, "sizes"])
    return "\n".join([HEAD, helpers, f"\ndef run({arguments}):", *lines, "    return True", ""])


class Writer:
    """Writes one function."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.indent = 1
        self.loops = 0
        self.variables: dict[str, str] = {}
        self._counters = 0

    def text(self) -> str:
        for k, kind in enumerate(("f64", "f64", "f32", "i64", "i64", "b1")):
            self.write(f"v{k} = {self.expression(kind, 2)}")
            self.variables[f"v{k}"] = kind
        for _ in range(self.random.randint(2, 5)):
            self.statement()
        for array, kind in RESULTS.items():
            names = [name for name, own in self.variables.items() if own == kind]
            for k, name in enumerate(names):
                self.write(f"{array}[{k}] = {name}")
        return function(self.lines)

    def write(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def block(self, head: str, count: int) -> None:
        self.write(head)
        self.indent += 1
        for _ in range(count):
            self.statement()
        self.indent -= 1

    # statements

    def statement(self) -> None:
        deep = self.indent > 3
        kinds = [self.assign, self.assign, self.augment, self.swap, self.unpack]
        kinds += [] if deep else [self.branch, self.counted, self.repeated, self.elements]
        self.random.choice(kinds)()

    def target(self) -> tuple[str, str]:
        name = self.random.choice(list(self.variables))
        return name, self.variables[name]

    def assign(self) -> None:
        name, kind = self.target()
        narrower = {"i64": ["i64", "i64", "i32"]}
        self.write(f"{name} = {self.expression(self.random.choice(narrower.get(kind, [kind])), 3)}")

    def augment(self) -> None:
        name, kind = self.target()
        if kind == "b1":
            self.write(f"{name} {self.random.choice('&|^')}= {self.expression(kind, 2)}")
        else:
            self.write(f"{name} {self.random.choice('+-*')}= {self.expression(kind, 2)}")

    def swap(self) -> None:
        first, second = ("v0", "v1") if self.random.random() < 0.5 else ("v3", "v4")
        self.write(f"{first}, {second} = {second}, {first}")

    def unpack(self) -> None:
        kind, names = self.random.choice([("f64", "v0, v1"), ("i64", "v3, v4")])
        a, b = self.expression(kind, 2), self.expression(kind, 2)
        self.write(f"{names} = pair({a}, {b})")

    def branch(self) -> None:
        self.block(f"if {self.expression('b1', 2)}:", self.random.randint(1, 2))
        if self.random.random() < 0.3:
            self.block(f"elif {self.expression('b1', 2)}:", 1)
        if self.random.random() < 0.5:
            self.block("else:", 1)

    def fresh(self) -> str:
        self._counters += 1
        return f"c{self._counters}"

    def counted(self) -> None:
        name = self.fresh()
        bounds = self.random.choice(["3", "np.uintp(3)", "1, 6, 2", "5, 0, -2", "sizes[0] - 5"])
        self.write(f"for {name} in range({bounds}):")
        self.indent += 1
        self.statement()
        if self.random.random() < 0.4:
            self.write(f"if {self.expression('b1', 1)}:")
            self.write(f"    {self.random.choice(['break', 'continue'])}")
        self.write(f"v3 += np.int64({name})")
        self.indent -= 1

    def repeated(self) -> None:
        name = self.fresh()
        self.write(f"{name} = 0")
        self.write(f"while {name} < 3 and {self.expression('b1', 1)}:")
        self.indent += 1
        self.write(f"{name} += 1")
        self.statement()
        self.indent -= 1

    def elements(self) -> None:
        """A loop over elements, that reads and writes an array."""
        name = self.fresh()
        self.write(f"for {name} in range(np.uintp(sizes[0])):")
        array, kind = self.random.choice([("x", "f64"), ("y", "f32"), ("n", "i64")])
        value = f"{array}[{name}]"
        self.write(f"    {array}[{name}] = {self.operation(kind, value, self.leaf(kind))}")

    # expressions

    def expression(self, kind: str, depth: int) -> str:
        if depth == 0:
            return self.leaf(kind)
        choose = self.random.random()
        if choose < 0.15:
            return self.leaf(kind)
        if choose < 0.25:
            test = self.expression("b1", depth - 1)
            parts = [self.expression(kind, depth - 1) for _ in range(2)]
            form = self.random.choice(["({1} if {0} else {2})", "choose({0}, {1}, {2})"])
            return form.format(test, *parts)
        if choose < 0.3:
            return f"({self.expression(kind, depth - 1)}, 1)[0]"
        if kind == "b1":
            return self.test(depth)
        if choose < 0.45:
            return self.converted(kind, depth)
        if choose < 0.6:
            return self.call(kind, depth)
        return self.operation(kind, *[self.expression(kind, depth - 1) for _ in range(2)])

    def leaf(self, kind: str) -> str:
        names = [name for name, own in self.variables.items() if own == kind]
        if names and self.random.random() < 0.5:
            return self.random.choice(names)
        arrays = [name for name, own in PARAMETERS.items() if own == kind]
        if arrays and self.random.random() < 0.6:
            return f"{self.random.choice(arrays)}[{self.random.choice(['0', '2', '-1', '-3'])}]"
        if kind == "b1":
            return self.random.choice(["True", "False", "(n[1] > 2)", "(x[1] < 0.5)"])
        if kind in ("f64", "f32"):
            number = self.random.choice(["0.0", "-1.5", "0.1", "1e300", "3.0", "-0.0"])
            return number if kind == "f64" else f"np.float32({number.replace('300', '30')})"
        number = self.random.choice(["0", "1", "3", "-7", "100", "2147483647"])
        if kind == "i64":
            return number
        return f"{CASTS[kind]}({self.random.choice(['n[0]', 'n[1]', 'n[-2]'])})"

    def operation(self, kind: str, a: str, b: str) -> str:
        if kind not in FORMS:
            return f"{CASTS[kind]}({self.operation('i64', f'np.int64({a})', f'np.int64({b})')})"
        return f"({self.random.choice(FORMS[kind]).format(a, b)})"

    def call(self, kind: str, depth: int) -> str:
        return self.random.choice(CALLS.get(kind, ("{}",))).format(self.expression(kind, depth - 1))

    def converted(self, kind: str, depth: int) -> str:
        """Return a value of another type, cast. Floats that do not fit have no integer."""
        if kind in ("f64", "f32"):
            other = self.random.choice(["f64", "f32", "i64", "i32", "u8"])
            return f"{CASTS[kind]}({self.expression(other, depth - 1)})"
        if self.random.random() < 0.2:
            return f"{CASTS[kind]}(np.int64(np.float64({self.expression('i64', 1)} & 1023) / 3.0))"
        other = self.random.choice(["i64", "i32", "u8", "b1", "u64"])
        return f"{CASTS[kind]}({self.expression(other, depth - 1)})"

    def test(self, depth: int) -> str:
        choose = self.random.random()
        if choose < 0.25:
            word = self.random.choice(["and", "or"])
            return f"({self.expression('b1', depth - 1)} {word} {self.expression('b1', depth - 1)})"
        if choose < 0.35:
            return f"(not {self.expression('b1', depth - 1)})"
        if choose < 0.45:
            mark = self.random.choice("&|^")
            return f"({self.expression('b1', depth - 1)} {mark} {self.expression('b1', depth - 1)})"
        kind = self.random.choice(["f64", "f32", "i64", "i32"])
        order = self.random.choice(["<", "<=", ">", ">=", "==", "!="])
        a, b = (self.expression(kind, depth - 1) for _ in range(2))
        if choose > 0.9:
            return f"({a} {order} {b} {order} {self.expression(kind, 1)})"
        return f"({a} {order} {b})"


def operands(seed: int) -> list[np.ndarray]:
    """Return arrays for a function: what it reads, what it writes, sizes."""
    rng = np.random.default_rng(seed)
    arrays = []
    with np.errstate(all="ignore"):
        for kind in PARAMETERS.values():
            special = FLOATS if kind[0] == "f" else INTEGERS
            usual = rng.normal(size=SIZE) * 10 if kind[0] == "f" else rng.integers(-9, 99, SIZE)
            chosen = np.where(rng.uniform(size=SIZE) < 0.3, rng.permutation(special), usual)
            arrays.append(chosen.astype(_dtype(kind)))
    arrays += [np.zeros(SIZE, _dtype(kind)) for kind in RESULTS.values()]
    return [*arrays, np.array([SIZE], np.int64)]


def _dtype(kind: str) -> np.dtype:
    return np.dtype("?" if kind == "b1" else f"{kind[0]}{int(kind[1:]) // 8}")


SIGNATURE = signatures.program([(operand.dtype, 1) for operand in operands(0)[:-1]])


def by_front_end(text: str) -> Callable:
    """Return the function `run` of a text; Untranslatable where the front end refuses it."""
    source = TextSource(text, "run")
    request = service._Request(source, SIGNATURE, source.key(SIGNATURE))
    return service._by_front_end(request, lambda: None).run


def by_numba(text: str) -> Callable:
    """Return the function `run` of a text as Numba compiles it, products and sums rounded each.

    Signed integers wrap around, as they do in the front end: Numba's own flags leave it undefined.
    The function is called at its address, because Numba takes long for functions that unpack ten
    arrays.
    """
    python = TextSource(text, "run").python()
    numba_backend.register_helpers()
    flags = numba_backend.FLAGS | {"_nrt": "np.empty" in text}  # counts references to new arrays
    del flags["fastmath"]
    with mock.patch.object(numba_backend, "FLAGS", flags):
        dispatcher = numba_backend.kernel(python, "run", no_cpython_wrapper=True)
    kinds = tuple(numba.typeof(operand) for operand in operands(0))
    with mock.patch.object(numbers, "_int_arith_flags", return_value=[]), no_collection():
        dispatcher.compile(kinds)
    generated.clear()
    compiled = dispatcher.overloads[kinds]
    address = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_int64] * (2 + 7 * len(kinds)))(address)

    def run(*arrays: np.ndarray, owner: Any = dispatcher) -> bool:
        result, error = ctypes.c_bool(), ctypes.c_void_p()
        words = [ctypes.addressof(result), ctypes.addressof(error)]
        for x in arrays:  # without an owner of the memory
            words += [0, 0, x.size, x.itemsize, x.ctypes.data, *x.shape, *x.strides]
        assert call(*words) == 0
        return result.value

    return run


def differences(text: str, seed: int, count: int = 3) -> list[str]:
    """Return an array in which the front end's function and Numba's differ, and the text.

    They are compared on so many arrays, which depend on the seed.
    """
    runs = by_front_end(text), by_numba(text)
    for k in range(count):
        results = []
        for run in runs:
            arrays = operands(3 * seed + k)
            assert run(*arrays) is True
            results.append(arrays)
        for name, mine, its in zip([*PARAMETERS, *RESULTS], *results, strict=False):
            if not same_bits(mine, its):
                return [name, f"{mine} {its}", text]
    return []


def same_bits(first: np.ndarray, other: np.ndarray) -> bool:
    if first.dtype.kind != "f":
        return bool((first == other).all())
    nan = np.isnan(first)
    word = f"i{first.itemsize}"
    return bool(
        (nan == np.isnan(other)).all() and (first.view(word) == other.view(word))[~nan].all()
    )


def main(first: int, count: int) -> None:
    compared, refused = 0, []
    for seed in range(first, first + count):
        try:
            different = differences(Writer(seed).text(), seed)
        except Untranslatable as error:
            refused.append(f"{seed}: {error}")
            continue
        compared += 1
        if different:
            print(seed, *different, sep="\n")
            sys.exit(1)
    print(f"{compared} functions have Numba's bits, {len(refused)} were refused", *refused[:5])


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
