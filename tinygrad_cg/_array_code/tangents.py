"""Forward mode: the program of a program's tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from . import program as ir
from .program import Thing
from .scalar_operations import OpBuilder, scaled


def partial(program: ir.ArrayProgram, position: int) -> ir.ArrayProgram:
    """Return the program of the derivatives of a program's outputs by one of its numbers."""
    source = program.inputs[position]
    tangents = _Tangents(program, [source])
    assert isinstance(source, ir.Number)
    tangents.numbers[source] = ir.fixed(source.type, 1.0)
    return tangents.program()


def tangent(program: ir.ArrayProgram, wanted: Sequence[int]) -> ir.ArrayProgram:
    """Return the program of the tangents of the outputs that are floats.

    It has tangents of the inputs at the wanted positions as further inputs.
    """
    return _Tangents(program, [program.inputs[k] for k in wanted]).program()


class _Tangents:
    def __init__(self, program: ir.ArrayProgram, sources: Sequence[Thing]):
        self.primal = program
        self.sources = sources
        self.active = ir.varied(program, sources)
        self.numbers: dict[ir.Number, ir.Number] = {}
        self.arrays: dict[ir.Array, ir.Array] = {}

    def program(self) -> ir.ArrayProgram:
        p = self.primal
        result = replace(p, inputs=[*p.inputs], outputs=[], scratch=[*p.scratch], body=[])
        for x in self.sources:
            if x not in self.numbers:
                result.inputs.append(self.new(x))
        for array in p.scratch:
            if array in self.active and array not in p.inputs:
                result.scratch.append(self.new(array))
        for x in p.inputs:
            if isinstance(x, ir.Array) and x in self.active and x not in self.arrays:
                self.arrays[x] = result.add_zeros(x, f"{x.hint}_dot")
        result.body += self.block(p.body)
        result.outputs = [self.output(x, result) for x in p.outputs if x.is_float]
        return result

    def new(self, thing: Any) -> Any:
        """Return the tangent of a number or an array, which has none yet."""
        own = replace(thing, hint=f"{thing.hint}_dot")
        tangents: dict[Any, Any] = self.arrays if isinstance(thing, ir.Array) else self.numbers
        tangents[thing] = own
        return own

    def output(self, x: Thing, result: ir.ArrayProgram) -> Thing:
        if isinstance(x, ir.Number):
            return self.dot(x)
        return self.arrays.get(x) or result.add_zeros(x, f"{x.hint}_dot")

    def dot(self, value: ir.Number) -> ir.Number:
        return self.numbers.get(value) or ir.zero(value)

    def block(self, block: ir.Block) -> ir.Block:
        result: ir.Block = []
        for statement in block:
            self.statement(statement, result)
        return result

    def statement(self, statement: ir.Statement, block: ir.Block) -> None:
        b = OpBuilder(block)
        if not isinstance(statement, (ir.Push, ir.Pop, ir.If, ir.For)):
            block.append(statement)
        match statement:
            case ir.Op():
                self.op(b, statement)
            case ir.LoadElement(out, array, index):
                if array in self.active:
                    block.append(ir.LoadElement(self.new(out), self.arrays[array], index))
            case ir.Store(array, index, value, adds):
                if array in self.active and not (adds and value not in self.numbers):
                    moved = b.cast(self.dot(value), array.element)
                    b.store(self.arrays[array], index, moved, adds)
            case ir.Fill(array):
                if array in self.active:
                    block.append(ir.Fill(self.arrays[array], ir.zero(array)))
            case ir.Push(values):
                dots = tuple(self.dot(value) for value in values if value.is_float)
                block.append(ir.Push((*values, *dots)))
            case ir.Pop(outs):
                block.append(ir.Pop((*outs, *(self.new(out) for out in outs if out.is_float))))
            case ir.If() | ir.For():
                block.append(self.nested(statement))

    def op(self, b: OpBuilder, op: ir.Op) -> None:
        if op.out not in self.active:
            return
        total: ir.Number | None = None
        for position, arg in enumerate(op.args):
            if arg in self.numbers and arg.is_float:
                part = scaled(b, op, position, self.dot(arg), lambda value: value)
                if part is not None:
                    total = part if total is None else b.op("add", total, part)
        if total is not None:
            self.numbers[op.out] = b.cast(total, op.out.type)

    def nested(self, statement: ir.If | ir.For) -> ir.Statement:
        """Return a branch or a loop with the tangents of what it merges or carries."""
        for value in ir.bound(statement):
            if value.is_float and value in self.active:
                self.new(value)
        result, parts = ir.with_blocks(statement, self.block), ir.parts_of(statement)
        still = self.numbers.keys().isdisjoint
        moved = [x for x in parts if not still(ir.operands(x) + ir.bound(x))]
        own = [ir.rebuilt(x, self.dot, self.new) for x in moved]
        return replace(result, **{statement.parts: [*parts, *own]})
