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
    source: Any = program.inputs[position]
    tangents = _Tangents(program, [source])
    tangents.dots[source] = ir.fixed(source.type, 1.0)
    return tangents.program()


def tangent(program: ir.ArrayProgram, wanted: Sequence[int]) -> ir.ArrayProgram:
    """Return the program from inputs, and tangents of wanted ones, to tangents of float outputs."""
    return _Tangents(program, [program.inputs[k] for k in wanted]).program()


class _Tangents:
    def __init__(self, program: ir.ArrayProgram, sources: Sequence[Thing]):
        self.primal, self.sources = program, sources
        self.active = ir.varied(program, sources)
        self.dots: dict[Any, Any] = {}  # tangents of numbers and arrays

    def program(self) -> ir.ArrayProgram:
        p = self.primal
        result = replace(p, inputs=[*p.inputs], outputs=[], scratch=[*p.scratch], body=[])
        for x in self.sources:
            if x not in self.dots:
                result.inputs.append(self.new(x))
        for array in p.scratch:
            if array in self.active and array not in p.inputs:
                result.scratch.append(self.new(array))
        for x in p.inputs:
            if isinstance(x, ir.Array) and x in self.active and x not in self.dots:
                self.dots[x] = result.zeros(x, "dot")
        result.body += self.block(p.body)
        outputs = [x for x in p.outputs if x.is_float]
        result.outputs = [self.dots.get(x) or result.zeros(x, "dot") for x in outputs]
        return result

    def new(self, thing: Any) -> Any:
        """Return the tangent of a number or an array, which has none yet."""
        self.dots[thing] = replace(thing, hint=f"{thing.hint}_dot")
        return self.dots[thing]

    def dot(self, value: ir.Number) -> ir.Number:
        return self.dots.get(value) or ir.zero(value)

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
                    block.append(ir.LoadElement(self.new(out), self.dots[array], index))
            case ir.Store(array, index, value, adds):
                if array in self.active and not (adds and value not in self.dots):
                    moved = b.cast(self.dot(value), array.element)
                    b.store(self.dots[array], index, moved, adds)
            case ir.Fill(array):
                if array in self.active:
                    block.append(ir.Fill(self.dots[array], ir.zero(array)))
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
            if arg in self.dots and arg.is_float:
                part = scaled(b, op, position, self.dot(arg), lambda value: value)
                if part is not None:
                    total = part if total is None else b.op("add", total, part)
        if total is not None:
            self.dots[op.out] = b.cast(total, op.out.type)

    def nested(self, statement: ir.If | ir.For) -> ir.Statement:
        """Return a branch or a loop with the tangents of what it merges or carries."""
        for value in statement.bound():
            if value.is_float and value in self.active:
                self.new(value)
        result, parts = statement.with_blocks(self.block), statement.own_parts()
        still = self.dots.keys().isdisjoint
        moved = [x for x in parts if not still(x.operands() + x.bound())]
        own = [x.rebuilt(self.dot, self.new) for x in moved]
        return replace(result, **{statement.parts: [*parts, *own]})
