"""Scalar function -> kernel over arrays.

`Elementwise` takes the quickest way that its operands allow: a direct kernel for few elements,
loops over contiguous arrays of one shape, with a scalar operand, with one array as input and
output; and for all else a kernel over three strided dimensions, with any further ones looped
over in Python.
"""

import itertools
import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba.core.errors import NumbaError

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops import direct, inner
from tinygrad_cg_kernels.loops.broadcast import Plan
from tinygrad_cg_kernels.loops.broadcast import plan as plan_for
from tinygrad_cg_kernels.loops.ranges import share
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.dtypes import (
    BOOL,
    FLOAT64,
    computing,
    native,
    no_kernel,
    promote,
    real,
)
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.objects import PLAIN, data_address

KINDS = ("same", "float", "compare", "logical", "real", "select")
SPLIT = threads.THRESHOLD
ALIGNED = 0x100
WRITABLE = 0x501  # and writable

IN_PLACE = {"flat": "", "scalar_y": "_scalar_y"}
"""How the variant is called that writes into an operand."""


_TELLING = re.compile(r"NameError|Untyped|Unknown attribute|nsupported|not defined")
"""The lines of Numba's messages that say what is wrong with a user's function."""


def _plain(array: np.ndarray) -> bool:
    return array.flags.num & PLAIN == PLAIN


def _once(array: np.ndarray) -> np.ndarray:
    """The 0-d array of the value that an array repeats; any other array itself."""
    if any(array.strides) or not array.size:
        return array
    return array[(0,) * array.ndim + (...,)]


def _may_overlap(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether two different arrays may share memory: never if both own theirs."""
    return not (x.base is None and y.base is None) and np.may_share_memory(x, y)


# --- the public class -------------------------------------------------------------------


class Signature(NamedTuple):
    """What an operation does with operands of some dtypes."""

    loop: tuple[np.dtype, ...]
    """The dtypes that operands are cast to, as Numba can compute in."""
    target: np.dtype
    """The dtype that the loop writes."""
    result: np.dtype
    checked: bool
    """Whether operands are looked at before the loop runs."""
    exact: bool
    """Whether operands are run as they are, and the output returned as it is."""
    itemsizes: tuple[int, ...]
    entries: dict[str, Callable]
    """The compiled kernels, by variant."""


class Elementwise:
    """A scalar function made into an array kernel.

    Parameters
    ----------
    name : what errors, tracebacks and cache files call it.
    function : the scalar function; kept apart because fusing needs it.
    inputs : how many arrays it takes, 1 to 3.
    kind : how dtypes behave. "same": the promoted dtype throughout. "float": integers and
        bool become float64 first. "compare": promoted, the result bool. "logical": inputs
        become bool by `!= 0`, the result bool. "real": the result is the real dtype of a
        complex loop. "select": the first input is bool, the others promote.

    Calling it gives a fresh C-contiguous array, or fills `out`, which may be an input.
    `dispatchers` holds the Numba dispatcher of each variant in use so far. The one element of
    `direct` is the direct kernel that served last (see `direct`): who calls it must be ready for
    None.
    """

    name: str
    function: Callable
    inputs: int
    kind: str
    dispatchers: dict[str, Any]
    direct: list[Callable]

    def __init__(self, name: str, function: Callable, inputs: int, kind: str = "same") -> None:
        if inputs not in (1, 2, 3):
            raise ValueError(f"{name}: an elementwise kernel takes 1 to 3 inputs, not {inputs}")
        if kind not in KINDS:
            raise ValueError(f"{name}: kind {kind!r} is not one of {', '.join(KINDS)}")
        self.name, self.function, self.inputs, self.kind = name, function, inputs, kind
        self._check = elementary.CHECKS.get(function)
        self._cached = build.is_ours(function)
        self._scalar = build.scalar_function(function)
        self._kernels = self._templates()
        self._signatures: dict[tuple[np.dtype, ...], Signature] = {}
        self._entries: dict[tuple[str, tuple[np.dtype, ...]], Callable] = {}
        self._blocks: dict[tuple[str, tuple[np.dtype, ...]], tuple[int, Any]] = {}
        # by variant, what the fast paths of `__call__` need for a dtype: entry and result
        self._quick: dict[str, dict[np.dtype, tuple[Callable, np.dtype]]] = {
            variant: {} for variant in self._kernels
        }
        self._direct = direct.Directs(name, self._make_direct, inputs)
        self.direct, self.dispatchers = self._direct.latest, self._direct.dispatchers

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    def __call__(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Apply the function to arrays that broadcast together."""
        if out is None and len(arrays) == self.inputs:
            got = self.direct[0](*arrays)
            if got is not None:
                return got
            got = self._large(arrays) if arrays[0].size >= SPLIT else self._general(arrays)
            if got is not None:
                return got
        elif len(arrays) == 2 == self.inputs and out is arrays[0] and self._into_x(*arrays):
            return arrays[0]
        return self._call(arrays, out)

    # dtypes

    def result_dtype(self, *dtypes: np.dtype) -> np.dtype:
        """The dtype of the result for operands of these dtypes."""
        return self._signature(dtypes).result

    def _signature(self, dtypes: tuple[np.dtype, ...]) -> Signature:
        found = self._signatures.get(dtypes)
        if found is not None:
            return found
        loop = self._loop_dtypes(tuple(native(self.name, dtype) for dtype in dtypes))
        result = BOOL if self.kind in ("compare", "logical") else loop[-1]
        result = real(result) if self.kind == "real" else result
        steps = tuple(computing(dtype) for dtype in loop)
        checked = self._check is not None and loop[0].kind in "iu"
        exact = not checked and steps == dtypes and all(d.isnative for d in dtypes)
        itemsizes = tuple(dtype.itemsize for dtype in steps)
        found = Signature(steps, computing(result), result, checked, exact, itemsizes, {})
        self._signatures[dtypes] = found
        return found

    def _loop_dtypes(self, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        if self.kind == "logical":
            return (BOOL,) * len(dtypes)
        if self.kind == "select":
            return (BOOL,) + (promote(*dtypes[1:]),) * (len(dtypes) - 1)
        dtype = promote(*dtypes)
        if self.kind == "float" and dtype.kind in "biu":
            dtype = FLOAT64
        return (dtype,) * len(dtypes)

    # compiling

    def _templates(self) -> dict[str, Callable]:
        """All variants, to be compiled when they are first used."""
        f, guard = self._scalar, elementary.GUARDED.get(self.function)
        run = inner.run_guarded if guard else inner.run_plain
        result = {"general": inner.tile_kernel(self.inputs, run, (f, *(guard or ())))}
        for variant, loop in inner.LOOPS[self.inputs].items():
            arguments = self.inputs + (not variant.startswith("into"))
            if guard:
                loop = inner.GUARDED_LOOPS[variant]
                result[variant] = inner.bind_guarded(loop, f, *guard, arguments)
            else:
                result[variant] = inner.bind(loop, f, arguments)
        return result

    def _make_direct(self, dtypes: tuple[np.dtype, ...]) -> Callable:
        if self.inputs == 1:
            return direct.unary(self._scalar, elementary.GUARDED.get(self.function, ()), dtypes)
        make = direct.binary if self.inputs == 2 else direct.ternary
        return make(self._scalar, self.function in elementary.GUARDED_PAIRS, dtypes)

    def _entry(self, variant: str, signature: Signature) -> Callable:
        """The compiled kernel of a variant."""
        dtypes = _argument_dtypes(variant, signature)
        found = self._entries.get((variant, dtypes))
        if found is None:
            types = _argument_types(variant, dtypes)
            found = self._compiled(dtypes, build.entry, self._dispatcher(variant), *types)
            self._entries[variant, dtypes] = found
        signature.entries[variant] = found
        if signature.exact:
            self._quick[variant][signature.loop[-1]] = (found, signature.result)
        return found

    def _dispatcher(self, variant: str) -> Any:
        found = self.dispatchers.get(variant)
        if found is None:
            name = f"{self.name}_{variant}"
            found = build.kernel(self._kernels[variant], name, self._cached, nogil=True)
            self.dispatchers[variant] = found
        return found

    def _block(self, variant: str, dtypes: tuple[np.dtype, ...]) -> int:
        """The address of a variant's C function, for the thread splitter."""
        found = self._blocks.get((variant, dtypes))
        if found is None:
            guard, places = elementary.GUARDED.get(self.function), inner.SCALARS.get(variant, ())
            if variant == "general":
                run = inner.run_guarded if guard else inner.run_plain
                block = inner.tile_block(run, (self._scalar, *(guard or ())), dtypes)
            elif guard:
                loop = inner.GUARDED_LOOPS[variant]
                block = inner.bind_guarded_block(loop, self._scalar, *guard, dtypes)
            else:
                loop = inner.LOOPS[self.inputs][variant]
                block = inner.bind_block(loop, self._scalar, dtypes, places)
            name = f"{self.name}_{variant}_block"
            found = self._compiled(dtypes, build.block_address, block, name, self._cached)
            self._blocks[variant, dtypes] = found
        return found[0]

    def _compiled(self, dtypes: tuple[np.dtype, ...], compiler: Callable, *arguments: Any) -> Any:
        try:
            return compiler(*arguments)
        except (NumbaError, AttributeError) as error:  # the latter for a module's attribute
            said = no_kernel(self.name, *dtypes[: self.inputs])
            if build.is_ours(self.function):
                raise TypeError(said) from error
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            telling = [line for line in lines if _TELLING.search(line)]
            reason = telling[0] if telling else " ".join(lines[1:3] or lines)
            raise TypeError(f"{said}: {reason}") from error

    # running

    def _call(self, arrays: tuple[np.ndarray, ...], out: np.ndarray | None) -> np.ndarray:
        if len(arrays) != self.inputs:
            raise TypeError(f"{self.name} takes {self.inputs} arrays, got {len(arrays)}")
        signature = self._signature(tuple([array.dtype for array in arrays]))
        if signature.checked and self._check is not None:
            self._check(self.name, *arrays)
        if not signature.exact:
            arrays = tuple(map(np.asarray, arrays, signature.loop))
        for array in arrays:
            if not array.flags.aligned:
                arrays = tuple([np.require(each, None, "A") for each in arrays])
                break
        if out is not None:
            return self._fill(arrays, signature, out)
        if signature.exact:
            dtypes = (*signature.loop, signature.result)
            got = self._compiled(dtypes, self._direct, arrays, dtypes, self._cached)
            if got is not None:
                return got
        return self._fresh(arrays, signature)

    def _plan(self, arrays: tuple[np.ndarray, ...], signature: Signature) -> Plan:
        layouts = [part for array in arrays for part in (array.shape, array.strides)]
        try:
            return plan_for(signature.itemsizes, *layouts)
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ValueError(f"{self.name}: shapes {shapes} do not broadcast") from None

    def _large(self, arrays: tuple[np.ndarray, ...]) -> np.ndarray | None:
        """The quick way for large contiguous operands of dtypes that were seen; None if none."""
        signature = self._signatures.get(tuple([array.dtype for array in arrays]))
        if signature is None or not signature.exact:
            return None
        for array in arrays:
            if array.flags.num & PLAIN != PLAIN:
                return None
        return self._fresh(arrays, signature)

    def _general(self, arrays: tuple[np.ndarray, ...]) -> np.ndarray | None:
        """The quick way through the general kernel, for operands of one dtype; None if none."""
        dtype = arrays[0].dtype
        found = self._quick["general"].get(dtype)
        if found is None:
            return None
        for array in arrays:
            if array.dtype is not dtype or not array.flags.num & ALIGNED:
                return None
        enter, result = found
        layouts = [part for array in arrays for part in (array.shape, array.strides)]
        try:
            plan = plan_for((dtype.itemsize,) * len(arrays), *layouts)
        except ValueError:
            return None
        if not plan.quick:
            return None
        out = np.empty(plan.shape, result)
        views = [array.reshape(shape) for array, shape in zip(arrays, plan.views, strict=False)]
        enter(plan.units, plan.sizes, *views, out.reshape(plan.views[-1]))
        return out

    def _into_x(self, x: np.ndarray, y: np.ndarray) -> bool:
        """The quick way to write into the first of two operands; False if it is none."""
        if y.dtype is not x.dtype or not x.ndim or x.flags.num & WRITABLE != WRITABLE:
            return False
        if not y.ndim:
            found = self._quick["into_x_scalar_y"].get(x.dtype)
        elif x.shape == y.shape and y.flags.num & PLAIN == PLAIN and y is not x:
            found = self._quick["into_x"].get(x.dtype)
        else:
            return False
        if found is None or x.size >= SPLIT or _may_overlap(x, y):
            return False
        found[0](x.ravel(), y.ravel() if y.ndim else y)
        return True

    def _fresh(self, arrays: tuple[np.ndarray, ...], signature: Signature) -> np.ndarray:
        plan = self._plan(arrays, signature)
        if plan.variant == "general" and any(not any(array.strides) for array in arrays):
            once = tuple(map(_once, arrays))  # one value repeated is a scalar operand
            shorter = self._plan(once, signature)
            if shorter.shape == plan.shape:
                arrays, plan = once, shorter
        out = empty(plan.shape, signature.target)
        if out.size:
            self._run(plan, (*arrays, out), signature)
        return cast(out, signature.result)

    def _fill(self, arrays, signature: Signature, out: np.ndarray) -> np.ndarray:
        plan = self._plan(arrays, signature)
        result = signature.result
        if out.shape != plan.shape:
            raise ValueError(f"{self.name}: out has shape {out.shape}, the result {plan.shape}")
        if not np.can_cast(result, out.dtype, "same_kind"):
            raise TypeError(f"{self.name}: out has dtype {out.dtype}, the result {result}")
        if not out.flags.writeable:
            raise ValueError(f"{self.name}: out is read-only")
        direct = _plain(out) and out.dtype == signature.target
        if not out.size or (direct and self._in_place(arrays, signature, plan, out)):
            return out
        if direct and not any(_may_overlap(array, out) for array in arrays):
            self._run(plan, (*arrays, out), signature)
        else:
            np.copyto(out, self._fresh(arrays, signature), casting="same_kind")
        return out

    def _in_place(self, arrays, signature: Signature, plan: Plan, out: np.ndarray) -> bool:
        """Run the variant in which an input is the output; False if there is none."""
        places = [k for k, array in enumerate(arrays) if array is out]
        if len(places) != 1 or signature.loop[places[0]] != signature.target:
            return False
        if any(array is not out and _may_overlap(array, out) for array in arrays):
            return False
        suffix = IN_PLACE.get(plan.variant)
        variant = f"into_{'xyz'[places[0]]}{suffix}"
        if suffix is None or variant not in self._kernels:
            return False
        self._run(plan._replace(variant=variant, views=plan.views[:-1]), arrays, signature)
        return True

    def _run(self, plan: Plan, arguments: tuple[np.ndarray, ...], signature: Signature) -> None:
        variant = plan.variant
        many = arguments[-1].size >= SPLIT and not plan.outer
        several = many and threads.get_num_threads() > 1
        if several and self._split(variant, signature, arguments, plan):
            return
        enter = signature.entries.get(variant) or self._entry(variant, signature)
        views = [
            array if array.shape == shape else array.reshape(shape)
            for array, shape in zip(arguments, plan.views, strict=True)
        ]
        if variant == "general":
            enter = partial(enter, plan.units, plan.sizes)
        if not plan.outer:
            if enter(*views) is False:
                raise AssertionError(f"{self.name}: {variant} refused what was planned for it")
            return
        for index in itertools.product(*map(range, plan.outer)):
            enter(*[_at(view, index) for view in views])

    def _split(self, variant: str, signature: Signature, arguments, plan: Plan) -> bool:
        """Do the work in blocks, on several threads; False if it is too short for that."""
        count = max(array.size for array in arguments)
        address = self._block(variant, _argument_dtypes(variant, signature))
        if not threads.worth(address, count):
            return False
        if variant == "general":
            share(address, arguments, plan.sizes, plan.units, count)
            return True
        scalars = inner.SCALARS.get(variant, ())
        steps = [
            0 if k in scalars else array.itemsize * threads.BLOCK
            for k, array in enumerate(arguments)
        ]
        threads.split(address, [*map(data_address, arguments)], steps, count)
        return True


def _at(view: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """The part of a view at leading indices, along dimensions of size 1 repeated."""
    return view[tuple([i if n > 1 else 0 for i, n in zip(index, view.shape, strict=False)])]


def _argument_dtypes(variant: str, signature: Signature) -> tuple[np.dtype, ...]:
    in_place = variant.startswith("into")
    return signature.loop if in_place else (*signature.loop, signature.target)


def _argument_types(variant: str, dtypes: tuple[np.dtype, ...]) -> list[Any]:
    """The Numba types of a variant's arguments, of which the last is written."""
    rank = 3 if variant == "general" else 1
    layout = "A" if variant == "general" else "C"
    ranks = [0 if k in inner.SCALARS.get(variant, ()) else rank for k in range(len(dtypes))]
    types = [
        build.array_type(dtype, rank, layout if rank else "C")
        for dtype, rank in zip(dtypes[:-1], ranks, strict=False)
    ]
    types.append(build.array_type(dtypes[-1], ranks[-1]))
    return build.tile_types(len(dtypes) - 1) + types if variant == "general" else types
