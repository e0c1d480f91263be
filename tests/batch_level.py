"""A small batch level, to test what the design promises to every transformation.

The library has none of its own yet. This one knows elementwise operations and, by the batching
rules in their records, all others; the batch is always the first axis of the physical tensor.
"""

from tinygrad_cg import levels
from tinygrad_cg.levels import Level
from tinygrad_cg.ops.shape import broadcast_to, reshape
from tinygrad_cg.primitive import apply
from tinygrad_cg.tensor import Aval, Tensor


class BatchTensor(Tensor):
    """A tensor for each element of a batch: `shape` is that of one element."""

    __slots__ = ("level", "physical")

    def __init__(self, physical, level, record=None):
        data = physical._data
        super().__init__(Aval(data.shape[1:], data.dtype), record)
        self.physical = physical
        self.level = level

    def _with_record(self, record):
        return BatchTensor(self.physical, self.level, record)


class Batch(Level):
    def __init__(self, size):
        self.size = size

    def process(self, primitive, inputs, params):
        if not any(self._is_mine(tensor) for tensor in inputs):
            return apply(primitive, inputs, params)
        if primitive.kind != "elementwise":
            params = primitive.batch(params, self.size)
        if primitive.kind in ("elementwise", "contraction") or primitive.name == "broadcast_to":
            physical = self._aligned(primitive, inputs, params)
        else:
            physical = [self._repeated(tensor) for tensor in inputs]
        return BatchTensor(apply(primitive, tuple(physical), params), self)

    def _aligned(self, primitive, inputs, params):
        """Operands that broadcast: the batch axis stands before the axes of all of them."""
        core = primitive.core if len(primitive.core) == len(inputs) else (0,) * len(inputs)
        ranks = [len(one._data.shape) - last for one, last in zip(inputs, core, strict=True)]
        rank = max(ranks)
        if primitive.name == "broadcast_to":
            rank = len(params["shape"]) - 1
        return [
            self._physical(tensor, rank + last) for tensor, last in zip(inputs, core, strict=True)
        ]

    def _repeated(self, tensor):
        if self._is_mine(tensor):
            return tensor.physical
        return broadcast_to(tensor, (self.size, *tensor.shape))

    def _is_mine(self, tensor):
        return isinstance(tensor, BatchTensor) and tensor.level is self

    def _physical(self, tensor, rank):
        if not self._is_mine(tensor):
            return tensor
        shape = tensor._data.shape
        if len(shape) == rank:
            return tensor.physical
        return reshape(tensor.physical, (self.size, *(1,) * (rank - len(shape)), *shape))


def vmap(function, batched):
    """`function` of each slice of `batched` along its first axis, all at once."""
    level = Batch(batched.shape[0])
    levels.push(level)
    try:
        out = function(BatchTensor(batched, level))
    finally:
        levels.remove(level)
    return out.physical if isinstance(out, BatchTensor) else out
