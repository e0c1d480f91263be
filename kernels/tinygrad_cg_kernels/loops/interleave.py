"""Loops that compute several vectors at a time.

An elementary function is a long chain of steps, each of which waits for the one before, and a
processor looks ahead no farther than three or four such chains. What fills it is the same step
of several vectors, one after the other, before the next step of any. LLVM does so by itself for
short loops alone, so others ask for it.
"""

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tinygrad_cg_kernels.runtime.native.instructions import instruction, written
from tinygrad_cg_kernels.runtime.native.values import FLOATS, NOTHING
from tinygrad_cg_kernels.runtime.views import Into

COUNT = 4
"""Vectors at a time. Of 2, 4, 6 and 8, measured over all elementary functions on an EPYC 9005:
4 takes 0.6 to 0.95 times as long as 1, more gain little and run out of registers."""


def _closing_blocks(block: Any, path: frozenset, done: set) -> Iterator[Any]:
    """Return the blocks, of those reached from this one, that branch back to one before."""
    path |= {block}
    done.add(block)
    for target in block.terminator.operands if block.is_terminated else ():
        if target in path:
            yield block
        elif isinstance(target, ir.Block) and target not in done:
            yield from _closing_blocks(target, path, done)


def _latches(function: Any) -> Iterator[Any]:
    """Return the blocks at the ends of a function's loops.

    Its first block may yet be without a branch.
    """
    done: set[Any] = set()
    for block in function.blocks:
        if block not in done:
            yield from _closing_blocks(block, frozenset(), done)


@intrinsic
def interleave(typingctx, group, outs):
    """Ask LLVM, after a loop with floats as results, for `COUNT` vectors at a time."""
    written = group[outs.position] if isinstance(outs, Into) else outs[0]

    asked = isinstance(written.dtype, types.Float)

    def generate(context, builder, signature, arguments):
        module = builder.module
        for block in _latches(builder.function) if asked else ():
            name = ir.MetaDataString(module, "llvm.loop.interleave.count")
            wish = module.add_metadata([name, ir.Constant(ir.IntType(32), COUNT)])
            loop = module.add_metadata([wish])
            loop.operands = (loop, wish)  # LLVM knows it as a loop's by this
            block.terminator.set_metadata("llvm.loop", loop)
        return context.get_dummy_value()

    return types.void(group, outs), generate


@instruction(interleave)
def _mark_loops(body: Any, group: Any, outs: Any) -> Any:
    if written(body, group, outs)[0].type.element in FLOATS:
        body.interleaved = COUNT
    return NOTHING
