"""A scalar function with several results -> a kernel that writes all of them in one pass."""

from collections.abc import Callable
from math import prod
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from tinygrad_cg_kernels.loops.engine import SPLIT, Elementwise
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.compile import jitable, make_array, scalar, vector, wide_vectors
from tinygrad_cg_kernels.runtime.dtypes import BOOL, INT64, computing, real
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.generated import apart, outlined
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.objects import PLAIN, data_address


def _pointers(context, builder, kinds, arrays, place):
    """Where the elements of a tuple of arrays are; a 0-d array stands for all of its value."""
    for k, kind in enumerate(kinds):
        array = make_array(kind)(context, builder, builder.extract_value(arrays, k))
        yield kind.dtype, builder.gep(array.data, [place if kind.ndim else place.type(0)])


@intrinsic
def take(typingctx, arrays, i):
    """The elements at place i of a tuple of arrays."""
    result: Any = types.BaseTuple.from_types([kind.dtype for kind in arrays])

    def generate(context, builder, signature, arguments):
        pointers = _pointers(context, builder, signature.args[0], *arguments)
        values = [context.unpack_value(builder, dtype, pointer) for dtype, pointer in pointers]
        return context.make_tuple(builder, signature.return_type, values)

    return result(arrays, types.intp), generate


@intrinsic
def put(typingctx, arrays, i, values):
    """Write a tuple of values to place i of a tuple of arrays."""

    def generate(context, builder, signature, arguments):
        kinds, _, given = signature.args
        places = _pointers(context, builder, kinds, *arguments[:2])
        for k, (dtype, pointer) in enumerate(places):
            value = builder.extract_value(arguments[2], k)
            value = context.cast(builder, value, given[k], dtype)
            context.pack_value(builder, dtype, value, pointer)
        return context.get_dummy_value()

    return types.void(arrays, types.intp, values), generate


@jitable
def _run(f, arrays, outs):
    outlined()
    apart()
    for i in range(np.uintp(outs[0].size)):
        put(outs, i, f(*take(arrays, i)))


def _direct(f: Callable) -> Callable:
    def direct(arrays, outs):
        wide_vectors()
        _run(f, arrays, outs)

    return direct


def _block(
    f: Callable, dtypes: list[np.dtype], inputs: int, scalars: tuple[int, ...]
) -> Callable | None:
    """The same as a function of addresses and a count; None for more than four arrays."""
    type_a, type_b, type_c, type_d = (*dtypes, *dtypes[:1])[:4]
    see_a, see_b = (scalar if k in scalars else vector for k in range(2))

    def one_to_two(a, b, c, d, n):
        _run(f, (see_a(a, n, type_a),), (vector(b, n, type_b), vector(c, n, type_c)))

    def one_to_three(a, b, c, d, n):
        outs = (vector(b, n, type_b), vector(c, n, type_c), vector(d, n, type_d))
        _run(f, (see_a(a, n, type_a),), outs)

    def two_to_two(a, b, c, d, n):
        arrays = (see_a(a, n, type_a), see_b(b, n, type_b))
        _run(f, arrays, (vector(c, n, type_c), vector(d, n, type_d)))

    known = {(1, 2): one_to_two, (1, 3): one_to_three, (2, 2): two_to_two}
    return known.get((inputs, len(dtypes) - inputs))


def _probe(f: Callable, inputs: int) -> Callable:
    return (lambda x: f(x), lambda x, y: f(x, y), lambda x, y, z: f(x, y, z))[inputs - 1]


class Pointwise:
    """A function of numbers made into an array kernel, whether it returns a number or a tuple.

    Parameters
    ----------
    name : what errors, tracebacks and cache files call it.
    function : the scalar function, which Numba can compile.
    inputs : how many numbers it takes, 1 to 3.

    Operands broadcast; integers and bool become float64 first. Of one result, as `Elementwise`.
    Of a tuple, a list of fresh C-contiguous arrays, all written in one pass: floats in the dtype
    of the operands, integers as int64, truths as bool. Up to four arrays in all are shared
    among threads; operands with gaps are copied.
    """

    def __init__(self, name: str, function: Callable, inputs: int) -> None:
        self.name, self.inputs = name, inputs
        self.one = Elementwise(name, function, inputs, "float")
        self._scalar = build.scalar_function(function)
        self._cached = build.is_ours(function)
        self._single = False  # whether it is known to return a number
        self._results: dict[np.dtype, tuple[np.dtype, ...] | None] = {}
        self._quick: dict[np.dtype, tuple[Callable, tuple[np.dtype, ...]]] = {}
        self._dispatcher: Any = None
        self._entries: dict[Any, Callable] = {}
        self._blocks: dict[Any, tuple[int, Any] | None] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def result_dtypes(self, *dtypes: np.dtype) -> tuple[np.dtype, ...] | None:
        """The dtypes of several results for operands of these dtypes; None for a single one."""
        dtype = self.one.result_dtype(*dtypes)
        if dtype not in self._results:
            self._results[dtype] = self._inferred(dtype)
        return self._results[dtype]

    def _inferred(self, dtype: np.dtype) -> tuple[np.dtype, ...] | None:
        kinds = (numba.from_dtype(computing(dtype)),) * self.inputs
        probe = numba.njit(**build.FLAGS)(_probe(self._scalar, self.inputs))
        try:
            probe.compile(kinds)
        except (NumbaError, AttributeError):
            return None  # `Elementwise` says what is wrong
        returned = probe.overloads[kinds].signature.return_type
        if not isinstance(returned, types.BaseTuple):
            self._single = True
            return None
        if not len(returned):
            raise TypeError(f"{self.name}: the kernel returned an empty tuple: return numbers")
        return tuple([self._dtype_of(one, dtype) for one in returned])

    def _dtype_of(self, kind: types.Type, dtype: np.dtype) -> np.dtype:
        if isinstance(kind, types.Boolean):
            return BOOL
        if isinstance(kind, types.Integer):
            return INT64
        if isinstance(kind, types.Float):
            return real(dtype)
        if isinstance(kind, types.Complex):
            return np.result_type(dtype, np.complex64)
        raise TypeError(
            f"{self.name}: the kernel returned {kind} among its results: return numbers"
        )

    def __call__(self, *arrays: np.ndarray) -> Any:
        """An array, or a list of them where the function returns a tuple."""
        if self._single:
            return self.one(*arrays)
        first = arrays[0]
        dtype, shape = first.dtype, first.shape
        found = self._quick.get(dtype)
        if found is not None and first.size < SPLIT:
            for array in arrays:
                if array.dtype is not dtype or array.shape != shape:
                    break
                if array.flags.num & PLAIN != PLAIN:
                    break
            else:
                enter, results = found
                outs = [np.empty(shape, result) for result in results]
                enter(tuple([x.ravel() for x in arrays]), tuple([out.ravel() for out in outs]))
                return outs
        return self._slow(arrays)

    def _slow(self, arrays: tuple[np.ndarray, ...]) -> Any:
        results = self.result_dtypes(*[array.dtype for array in arrays])
        if results is None:
            return self.one(*arrays)
        try:
            shape = np.broadcast_shapes(*[array.shape for array in arrays])
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ValueError(f"{self.name}: shapes {shapes} do not broadcast") from None
        outs = [empty(shape, computing(dtype)) for dtype in results]
        if outs[0].size:
            loop = computing(self.one.result_dtype(*[array.dtype for array in arrays]))
            operands = [_operand(array, shape, loop) for array in arrays]
            self._fill(operands, [out.reshape(-1) for out in outs])
        return [cast(out, dtype) for out, dtype in zip(outs, results, strict=True)]

    def _fill(self, operands: list[np.ndarray], outs: list[np.ndarray]) -> None:
        """Run the loop over flat arrays, on several threads where that pays."""
        arrays = [*operands, *outs]
        scalars = tuple(k for k, array in enumerate(operands) if not array.ndim)
        dtypes, size = [array.dtype for array in arrays], outs[0].size
        if size >= SPLIT and threads.get_num_threads() > 1:
            block = self._block(dtypes, scalars)
            if block is not None and threads.worth(block[0], size):
                steps = [array.itemsize * threads.BLOCK * array.ndim for array in arrays]
                threads.split(block[0], [*map(data_address, arrays)], steps, size)
                return
        self._entry(dtypes, scalars)(tuple(operands), tuple(outs))

    def _entry(self, dtypes: list[np.dtype], scalars: tuple[int, ...]) -> Callable:
        key = (*dtypes, scalars)
        if key not in self._entries:
            kinds = [
                build.array_type(dtype, int(k not in scalars)) for k, dtype in enumerate(dtypes)
            ]
            if self._dispatcher is None:
                direct, name = _direct(self._scalar), f"{self.name}_several"
                self._dispatcher = build.kernel(direct, name, self._cached, nogil=True)
            pair: list[Any] = [
                types.BaseTuple.from_types(group)
                for group in (kinds[: self.inputs], kinds[self.inputs :])
            ]
            self._entries[key] = build.entry(self._dispatcher, *pair)
            loop = dtypes[0]
            results = self._results.get(loop)
            if results is not None and not scalars:
                self._quick[loop] = self._entries[key], results
        return self._entries[key]

    def _block(self, dtypes: list[np.dtype], scalars: tuple[int, ...]) -> tuple[int, Any] | None:
        key = (*dtypes, scalars)
        if key not in self._blocks:
            block = _block(self._scalar, dtypes, self.inputs, scalars)
            name = f"{self.name}_several_block"
            self._blocks[key] = block and build.block_address(block, name, self._cached)
        return self._blocks[key]


def _operand(array: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An operand as its loop takes it: flat, or 0-d for one value beside several."""
    if array.size == 1 != prod(shape):
        return np.require(array.reshape(()), dtype, "A")
    return np.require(np.broadcast_to(array, shape), dtype, ("C", "A")).reshape(-1)
