"""Programs compiled, and called with arrays and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_kernels.runtime import memory, service, signatures

from .kernel_text import FULL, KernelWriter
from .program import DTYPES, Array, ArrayProgram, FixedNumber, Number
from .scalar_operations import fold

FIRST_STACK = 256  # numbers that each of the two stacks has room for at first
UNUSED = -0x7FF5_3A1C_96E0_8B42  # bits that no program writes to a stack, for `stack_bytes`
MAX_LAYOUTS = 64
MAX_SPARE_BYTES = 2**16  # stacks of at most so many bytes are kept for the next call
FLOAT, INTEGER = np.dtype(np.float64), np.dtype(np.int64)


class Layout(NamedTuple):
    """What calls with inputs of the same shapes and integers share.

    `arguments` are constants, and None for what each call fills in; `results` position, size and
    dtype of arrays that a call allocates; `outputs` position, or number, shape and dtype.
    """

    arguments: list[Any]
    results: list[tuple[int, int, np.dtype]]
    outputs: list[tuple[Any, tuple[int, ...], np.dtype]]
    sizes: np.ndarray


def stored_dtype(x: Array | Number) -> np.dtype:
    """Return the dtype of an array's elements, or of the array that holds a number."""
    return DTYPES[x.element if isinstance(x, Array) else x.type]


class Runner:
    """A compiled program, from inputs, which are copied if it writes to them, to outputs."""

    def __init__(self, program: ArrayProgram):
        self.program = program
        writer = KernelWriter(program)
        self.text, self.arrays, self.sizes = writer.text(), writer.arrays, writer.sizes
        kinds = [(stored_dtype(x), 1) for x in self.arrays]  # elements are addressed in one axis
        stacks = [(FLOAT, 1), (INTEGER, 1), (INTEGER, 1)]
        source = service.TextSource(self.text, "run")
        entry = service.compile(source, signatures.program([*kinds, *stacks]))
        self.entry, self.owner = entry.run, entry.owner
        self.capacity = FIRST_STACK
        flat = [(array, np.ascontiguousarray(x).reshape(-1)) for array, x in program.constants]
        self.constants: dict[Any, np.ndarray] = dict(flat)
        written = program.written
        self.passed = [
            (self.arrays.index(x), place, stored_dtype(x), x in written)
            for place, x in enumerate(program.inputs)
            if isinstance(x, Array) or x.is_float
        ]
        self.layouts: dict[tuple, Layout] = {}
        self.spare: list[list[np.ndarray]] = []  # stacks and reports that are not in use

    def _numbers(self, inputs: Sequence[Any]) -> dict[Number, Any]:
        """Return the integers and sizes of a call."""
        numbers: dict[Any, Any] = {}
        for x, value in zip(self.program.inputs, inputs, strict=True):
            if isinstance(x, Array):
                numbers |= zip(x.shape, value, strict=True)
            elif not x.is_float:
                numbers[x] = int(value)
        for array, value in self.program.constants:
            numbers |= zip(array.shape, value.shape, strict=True)
        for op in self.program.sizes:
            values = [numbers[x] if x.number is None else x.number for x in op.args]
            numbers[op.out] = fold(op.function, values)
        return numbers

    def _shape(self, array: Array | Number, numbers: dict[Number, Any]) -> tuple[int, ...]:
        if isinstance(array, Number):
            return ()
        sizes = [numbers[x] if x.number is None else x.number for x in array.shape]
        if any(size < 0 for size in sizes):
            name = self.program.name
            raise ValueError(f"{name}: negative dimensions are not allowed: {tuple(sizes)}")
        return tuple(map(int, sizes))

    def stack_bytes(self, inputs: Sequence[np.ndarray | int]) -> int:
        """Return the bytes of the stacks that a call writes to."""
        self(inputs)  # which finds out how large they have to be
        own = self._own()
        stacks = [stack.view(np.int64) for stack in own[:2]]
        for stack in stacks:
            stack.fill(UNUSED)
        self.spare.append(own)
        self(inputs)
        used = (np.flatnonzero(stack != UNUSED) for stack in stacks)
        return sum(8 * int(places[-1] + 1) for places in used if places.size)

    def __call__(self, inputs: Sequence[np.ndarray | int]) -> list[np.ndarray]:
        """Return the outputs, numbers as arrays of rank 0."""
        layout = self.layout(tuple([getattr(value, "shape", value) for value in inputs]))
        arguments, copied = layout.arguments.copy(), []
        for position, place, dtype, is_written in self.passed:
            value = np.ascontiguousarray(inputs[place], dtype)
            arguments[position] = value = value if value.ndim == 1 else value.reshape(-1)
            if is_written:
                copied.append((position, value))
        for position, size, dtype in layout.results:
            arguments[position] = memory.empty((size,), dtype)
        try:
            own = self.spare.pop()
        except IndexError:
            own = self._own()
        while True:
            for position, original in copied:
                arguments[position] = original.copy()
            own[2][0] = 0
            self.entry(*arguments, *own, layout.sizes)
            if own[2][0] != FULL:
                break
            self.capacity = 4 * own[0].size
            own = self._own()
        error = int(own[2][0])
        if own[0].nbytes <= MAX_SPARE_BYTES:
            self.spare.append(own)
        if error:
            kind, message = self.program.errors[error - 1]
            raise kind(message)
        return [
            np.full(shape, which.number, dtype)
            if isinstance(which, FixedNumber)
            else arguments[which].reshape(shape)
            for which, shape, dtype in layout.outputs
        ]

    def _own(self) -> list[np.ndarray]:
        """Return stacks and a report."""
        stacks = [memory.empty((self.capacity,), dtype) for dtype in (FLOAT, INTEGER)]
        return [*stacks, np.empty(1, np.int64)]

    def numba_lines(self, key: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
        """Return a call as lines of Numba code, and their globals.

        `key` has the shapes of arrays and floats, and integers. The arrays x0, x1, ... and the
        results have one axis. The result is a tuple.
        """
        layout = self.layout(tuple(key))
        scope: dict[str, Any] = {"kernel": service.numba_callable().run_of(self.text)}
        scope["sizes"] = layout.sizes
        names = [f"array{k}" for k in range(len(self.arrays))]
        constants = zip(names, layout.arguments, strict=True)
        scope |= {name: x for name, x in constants if x is not None}
        lines, again = [], []
        for k, size, dtype in layout.results:
            lines.append(f"array{k} = np.empty({size}, np.dtype({dtype.name!r}))")
        for j, (k, _, _, is_written) in enumerate(self.passed):
            copied = f"array{k} = x{j}{'.copy()' * is_written}"
            (again if is_written else lines).append(copied)
        lines += [f"report, capacity = np.full(1, {FULL}), {FIRST_STACK}"]
        lines += [f"while report[0] == {FULL}:", *[f"    {line}" for line in again]]
        lines += ["    floats, integers = np.empty(capacity), np.empty(capacity, np.int64)"]
        arguments = ", ".join([*names, "floats", "integers", "report", "sizes"])
        lines += ["    report[0] = 0", f"    kernel({arguments})", "    capacity *= 4"]
        for k, (kind, message) in enumerate(self.program.errors):
            scope[f"error{k}"] = kind
            lines += [f"if report[0] == {k + 1}:", f"    raise error{k}({message!r})"]
        results = [
            f"np.full(1, {which.number!r}, np.dtype({dtype.name!r}))"
            if isinstance(which, FixedNumber)
            else f"array{which}.copy()"
            for which, _, dtype in layout.outputs
        ]
        return [*lines, f"return ({', '.join(results)},)"], scope

    def layout(self, key: tuple) -> Layout:
        """Return what is the same in all calls with inputs of some shapes and integers."""
        if key in self.layouts:
            return self.layouts[key]
        if len(self.layouts) >= MAX_LAYOUTS:
            self.layouts.clear()
        numbers = self._numbers(key)
        arguments = [self.constants.get(x) for x in self.arrays]
        for x in self.program.scratch:
            self._shape(x, numbers)
        passed = {position for position, *_ in self.passed}
        own = [k for k, x in enumerate(arguments) if x is None and k not in passed]
        arrays = [(k, self.arrays[k]) for k in own]
        results = [(k, prod(self._shape(x, numbers)), stored_dtype(x)) for k, x in arrays]
        outputs = []
        for x in self.program.outputs:
            which = x if isinstance(x, FixedNumber) else self.arrays.index(x)
            outputs.append((which, self._shape(x, numbers), stored_dtype(x)))
        sizes = np.array([numbers[value] for value in self.sizes], np.int64)
        layout = self.layouts[key] = Layout(arguments, results, outputs, sizes)
        return layout
