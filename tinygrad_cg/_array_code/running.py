"""Programs compiled, and called with arrays and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import service, signatures

from .kernel_text import FULL, emit
from .program import Array, ArrayProgram, FixedNumber, Number, Op
from .scalar_operations import fold

_DTYPES = {"f64": np.float64, "f32": np.float32, "b1": np.bool_, "i64": np.int64}
_DTYPES |= {"i32": np.int32, "i16": np.int16, "i8": np.int8, "u8": np.uint8, "u16": np.uint16}
_DTYPES |= {"u32": np.uint32, "u64": np.uint64}
FIRST_STACK = 256
"""Numbers that a stack has room for at first."""


def dtype_of(element: str) -> np.dtype:
    return np.dtype(_DTYPES[element])


class Runner:
    """A compiled program: a function from its inputs to its outputs.

    Arrays that the program writes to are copied; all are made contiguous.
    """

    def __init__(self, program: ArrayProgram, written: frozenset[Array]):
        self.program = program
        self.text, self.arrays, self.sizes = emit(program)
        self.written = written
        kinds = []
        for x in self.arrays:
            dtype = dtype_of(x.element if isinstance(x, Array) else x.type)
            kinds.append((dtype, 1))  # elements of all arrays are addressed in one axis
        stacks = [(np.dtype(np.float64), 1), (np.dtype(np.int64), 1), (np.dtype(np.int64), 1)]
        source = service.TextSource(self.text, "run")
        entry = service.compile(source, signatures.program([*kinds, *stacks]))
        self.entry, self.owner = entry.run, entry.owner
        self.capacity = [FIRST_STACK, FIRST_STACK]
        self.constants = {array: np.ascontiguousarray(x) for array, x in program.constants}

    def output_avals(self, inputs: Sequence[Any]) -> list[tuple[tuple[int, ...], np.dtype]]:
        """Return shapes and dtypes of the outputs, from shapes and integers of the inputs."""
        numbers = self._numbers(inputs)
        result = []
        for x in self.program.outputs:
            if isinstance(x, Array):
                result.append((self._shape(x, numbers), dtype_of(x.element)))
            else:
                result.append(((), dtype_of(x.type)))
        return result

    def _numbers(self, inputs: Sequence[Any]) -> dict[Number, Any]:
        """Return the integers and sizes of a call."""
        numbers: dict[Number, Any] = {}
        for x, value in zip(self.program.inputs, inputs, strict=True):
            if isinstance(x, Array):
                numbers |= zip(x.shape, value, strict=True)
            elif not x.is_float:
                numbers[x] = int(value)
        for array, value in self.program.constants:
            numbers |= zip(array.shape, value.shape, strict=True)
        for op in self.program.sizes:
            if isinstance(op, Op):
                values = [x.number if isinstance(x, FixedNumber) else numbers[x] for x in op.args]
                numbers[op.out] = fold(op.function, values)
        return numbers

    def _shape(self, array: Array, numbers: dict[Number, Any]) -> tuple[int, ...]:
        sizes = [x.number if isinstance(x, FixedNumber) else numbers[x] for x in array.shape]
        if any(size < 0 for size in sizes):
            raise ValueError(
                f"{self.program.name}: negative dimensions are not allowed: {tuple(sizes)}"
            )
        return tuple(map(int, sizes))

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the outputs: arrays, and numbers."""
        program = self.program
        pairs = [*zip(program.inputs, inputs, strict=True)]
        numbers = self._numbers([np.shape(v) if isinstance(x, Array) else v for x, v in pairs])
        memory: dict[Array | Number, Any] = {**self.constants}
        for x, value in pairs:
            if isinstance(x, Array):
                memory[x] = np.ascontiguousarray(value)
            elif x.is_float:
                memory[x] = np.full(1, value, dtype_of(x.type))
        originals = {x: memory[x] for x in self.written if x in memory}
        for x in self.arrays:
            if x not in memory:
                shape = self._shape(x, numbers) if isinstance(x, Array) else (1,)
                memory[x] = np.empty(shape, dtype_of(x.element if isinstance(x, Array) else x.type))
        sizes = np.array([numbers[value] for value in self.sizes], np.int64)
        report = np.full(1, FULL)
        while report[0] == FULL:
            memory |= {x: original.copy() for x, original in originals.items()}
            floats, integers = np.empty(self.capacity[0]), np.empty(self.capacity[1], np.int64)
            report[0] = 0
            arguments = [memory[x].reshape(-1) for x in self.arrays]
            self.entry(*arguments, floats, integers, report, sizes)
            if report[0] == FULL:
                self.capacity = [4 * size for size in self.capacity]
        if report[0]:
            kind, message = program.errors[report[0] - 1]
            raise kind(message)
        return [self._output(x, memory, numbers) for x in program.outputs]

    @staticmethod
    def _output(x: Array | Number, memory: dict, numbers: dict) -> Any:
        if isinstance(x, Array):
            return memory[x]
        if isinstance(x, FixedNumber):
            return dtype_of(x.type).type(x.number)
        return memory[x][0]
