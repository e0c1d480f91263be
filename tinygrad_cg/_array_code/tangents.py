"""Forward mode: the program of a program's values and tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .activity import Thing, varied
from .program import (
    Array,
    ArrayProgram,
    Block,
    Carry,
    Fill,
    For,
    If,
    LoadElement,
    Merge,
    Number,
    Op,
    Pop,
    PopArray,
    Push,
    PushArray,
    Statement,
    Store,
    While,
    fixed,
    zero,
)
from .scalar_operations import OpBuilder, Operands, scaled


def partial(program: ArrayProgram, position: int) -> ArrayProgram:
    """Return the program of the derivatives of a program's outputs by one of its numbers."""
    source = program.inputs[position]
    tangents = _Tangents(program, [source])
    tangents.of[source] = fixed(source.type, 1.0)  # type: ignore[union-attr]
    return tangents.program(False)


def tangent(program: ArrayProgram, wanted: Sequence[bool], values: bool = True) -> ArrayProgram:
    """Return the program that has tangents of the wanted inputs as further inputs.

    It gives the outputs, if `values` are wanted, and the tangents of those that are floats.
    """
    sources = [x for x, flag in zip(program.inputs, wanted, strict=True) if flag]
    return _Tangents(program, sources).program(values)


class _Tangents:
    def __init__(self, program: ArrayProgram, sources: Sequence[Thing]):
        self.primal = program
        self.sources = sources
        self.active = varied(program, sources)
        self.of: dict[Thing, Thing] = {}

    def program(self, values: bool) -> ArrayProgram:
        p = self.primal
        result = replace(p, inputs=[*p.inputs], outputs=[], scratch=[*p.scratch], body=[])
        for x in self.sources:
            if x not in self.of:
                self.of[x] = _like(x)
                result.inputs.append(self.of[x])
        inputs = set(p.inputs)
        scratch = [x for x in p.scratch if x in self.active and x not in inputs]
        for array in scratch:
            self.of[array] = _like(array)
            result.scratch.append(self.of[array])  # type: ignore[arg-type]
        block = result.body
        for x in p.inputs:
            if isinstance(x, Array) and x in self.active and x not in self.of:
                self.of[x] = _like(x)
                result.scratch.append(self.of[x])  # type: ignore[arg-type]
                block.append(Fill(self.of[x], zero(x)))  # type: ignore[arg-type]
        block += self.block(p.body)
        outputs = [x for x in p.outputs if x.is_float]
        result.outputs = [*(p.outputs if values else ())]
        for x in outputs:
            result.outputs.append(self.output(x, result))
        return result

    def output(self, x: Thing, result: ArrayProgram) -> Thing:
        if x in self.of:
            return self.of[x]
        if isinstance(x, Number):
            return zero(x)
        zeros = _like(x)
        result.scratch.append(zeros)  # type: ignore[arg-type]
        result.body.append(Fill(zeros, zero(x)))  # type: ignore[arg-type]
        return zeros

    def dot(self, value: Number) -> Number:
        """Return the tangent of a number."""
        return self.of.get(value) or zero(value)  # type: ignore[return-value]

    def block(self, block: Block) -> Block:
        result: Block = []
        for statement in block:
            self.statement(statement, result)
        return result

    def statement(self, statement: Statement, block: Block) -> None:
        b = OpBuilder(block)
        match statement:
            case Op():
                block.append(statement)
                self.op(b, statement)
            case LoadElement(out, array, index):
                block.append(statement)
                if array in self.active:
                    self.of[out] = tangent_of = Number(out.type, f"{out.hint}_dot")
                    block.append(LoadElement(tangent_of, self.array(array), index))
            case Store(array, index, value, adds):
                block.append(statement)
                if array in self.active and not (adds and value not in self.of):
                    moved = b.cast(self.dot(value), array.element)
                    block.append(Store(self.array(array), index, moved, adds))
            case Fill(array, value):
                block.append(statement)
                if array in self.active:
                    block.append(Fill(self.array(array), zero(array)))
            case Push(values):
                dots = tuple(self.dot(value) for value in values if value.is_float)
                block.append(Push((*values, *dots)))
            case Pop(outs):
                dots = tuple(Number(out.type, f"{out.hint}_dot") for out in outs if out.is_float)
                self.of |= zip([out for out in outs if out.is_float], dots, strict=True)
                block.append(Pop((*outs, *dots)))
            case PushArray(array):
                block.append(statement)
                if array in self.of:
                    block.append(PushArray(self.array(array)))
            case PopArray(array):
                if array in self.of:
                    block.append(PopArray(self.array(array)))
                block.append(statement)
            case If():
                block.append(self.branch(statement))
            case For() | While():
                block.append(self.loop(statement))
            case _:
                block.append(statement)

    def array(self, array: Array) -> Array:
        return self.of[array]  # type: ignore[return-value]

    def op(self, b: OpBuilder, op: Op) -> None:
        if op.out not in self.active:
            return
        total: Number | None = None
        operands = Operands(op, lambda value: value)
        for position, arg in enumerate(op.args):
            if arg in self.of and arg.is_float:
                part = scaled(b, op, position, self.dot(arg), operands)
                if part is not None:
                    total = part if total is None else b.add(total, part)
        if total is not None:
            self.of[op.out] = b.cast(total, op.out.type)

    def branch(self, statement: If) -> If:
        then, otherwise = self.block(statement.then), self.block(statement.otherwise)
        result = If(statement.test, then, otherwise, [*statement.merges])
        for merge in statement.merges:
            if merge.then in self.of or merge.otherwise in self.of:
                self.of[merge.out] = out = Number(merge.out.type, f"{merge.out.hint}_dot")
                sides = self.dot(merge.then), self.dot(merge.otherwise)
                result.merges.append(Merge(out, *sides))
        return result

    def loop(self, statement: For | While) -> For | While:
        carried = [c for c in statement.carries if c.inside.is_float and c.inside in self.active]
        for carry in carried:
            for value in (carry.inside, carry.out):
                self.of[value] = Number(value.type, f"{value.hint}_dot")
        body = self.block(statement.body)
        carries = [*statement.carries]
        for c in carried:
            ends = self.dot(c.init), self.dot(c.result)
            carries.append(Carry(self.dot(c.inside), *ends, self.dot(c.out)))
        result = replace(statement, body=body, carries=carries)
        if isinstance(result, While):
            result.before = self.block(result.before)
        return result


def _like(thing: Thing) -> Thing:
    if isinstance(thing, Array):
        return Array(thing.element, thing.shape, f"{thing.hint}_dot")
    return Number(thing.type, f"{thing.hint}_dot")
