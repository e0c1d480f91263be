"""The elementwise engine: from a scalar function to a kernel over arrays.

There are three kinds of kernel. Small contiguous operands have a kernel that takes Python objects
(`small`). Contiguous operands of one shape, together with single values, are rows of all elements
(`rows`), even if an operand is the output. All other operands are brought into rows tile by tile
(`tiles`); Python loops over dimensions beyond three. The bound kernel is kept for later operands of
the same dtypes, shapes and strides.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinygrad_cg_frontend import Unsupported, name_of
from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops import plans, rows, small, tiles
from tinygrad_cg_kernels.runtime import compile as build
from tinygrad_cg_kernels.runtime import kinds, service, threads, tiers
from tinygrad_cg_kernels.runtime.entries import Blocks
from tinygrad_cg_kernels.runtime.errstate import cast
from tinygrad_cg_kernels.runtime.intrinsics import wide_vectors
from tinygrad_cg_kernels.runtime.memory import empty
from tinygrad_cg_kernels.runtime.objects import ALIGNED, CONTIGUOUS, WRITEABLE
from tinygrad_cg_kernels.runtime.promotion import (
    BOOL,
    FLOAT64,
    INT64,
    is_complex,
    is_exact,
    is_floating,
    is_integer,
    loop_dtype,
    native,
    no_kernel,
    promote,
    real,
)
from tinygrad_cg_kernels.runtime.views import address_of, into, layout, operands

KINDS = ("same", "float", "compare", "logical", "real", "select")
MAX_READY = 4096
"""One kernel keeps bound calls for at most this many layouts of operands."""

_TELLING = re.compile(r"NameError|Untyped|Unknown attribute|nsupported|not defined")
"""Matches the lines of Numba's messages that say what is wrong with a user's function."""


def _is_contiguous(array: np.ndarray) -> bool:
    return array.flags.num & CONTIGUOUS == CONTIGUOUS


# --- block kernels: a loop bound to operands -----------------------------------------------
# The closures of these functions are hashed for the disk cache, as in `small`. If an operand is one
# value throughout a row, its dtype is in a tuple of its own (see `views.operands`).


def flat_kernel(loop: Callable, f: Any, test: Any, fast: Any, ins: tuple, outs: tuple) -> Callable:
    """Return a block kernel of flat operands; the sizes in its table are steps."""
    inputs, arrays = len(ins), len(ins) + len(outs)

    def block(table, first, count):
        wide_vectors()
        group = operands(layout(table, 0, arrays, ins), first, count, ins)
        target = operands(layout(table, inputs, arrays, outs), first, count, outs)
        loop(f, test, fast, group, target, count)

    return block


def in_place_kernel(
    loop: Callable, f: Any, test: Any, fast: Any, ins: tuple, position: int
) -> Callable:
    """Return a block kernel that writes the operand at `position`."""
    arrays = len(ins)

    def block(table, first, count):
        wide_vectors()
        group = operands(layout(table, 0, arrays, ins), first, count, ins)
        loop(f, test, fast, group, into(position), count)

    return block


def tile_kernel(loop: Callable, f: Any, test: Any, fast: Any, ins: tuple, outs: tuple) -> Callable:
    """Return a block kernel whose units are tiles (see `tiles.find_rows`)."""
    inputs, outputs = len(ins), len(outs)
    arrays, space = inputs + outputs, inputs * tiles.BUFFER * tiles.WIDEST // 8

    def block(table, first, count):
        wide_vectors()
        memory = np.empty(2 * arrays + 1 + space, np.int64)  # a table of rows, then buffers
        rows_table = address_of(memory)
        buffers = rows_table + 8 * (2 * arrays + 1)
        for unit in range(first, first + count):
            count_rows = tiles.rows_of(table, inputs, outputs, unit, first, buffers, rows_table)
            columns = memory[2 * arrays]  # this read keeps the memory alive
            sources = layout(rows_table, 0, arrays, ins)
            targets = layout(rows_table, inputs, arrays, outs)
            for r in range(count_rows):
                group = operands(sources, r, columns, ins)
                loop(f, test, fast, group, operands(targets, r, columns, outs), columns)

    return block


class DtypeSignature(NamedTuple):
    """The dtypes of an operation, for given dtypes of its operands."""

    loop: tuple[np.dtype, ...]
    """The dtypes to which operands are cast, in which loops can compute."""
    target: np.dtype
    """The dtype that the loop writes."""
    result: np.dtype
    checked: bool
    """True if operands are checked before the loop runs."""
    exact: bool
    """True if operands and output need no cast."""


class Elementwise:
    """A scalar function made into an array kernel.

    Parameters
    ----------
    name : the name in errors, tracebacks and cache files.
    function : the scalar function, kept for fusion.
    inputs : the number of arrays that it takes, 1 to 4; with 4 there is no small kernel.
    kind : how dtypes behave. "same": the promoted dtype throughout. "float": integers and
        bool become float64 first. "compare": promoted, the result bool. "logical": inputs
        become bool by `!= 0`, the result bool. "real": the result is the real dtype of a
        complex loop. "select": the first input is bool, the others promote.
    guard : a test of the inputs, and a faster version that is right where the test holds; by
        default those of `elementary.GUARDED`.

    Calling it returns a new C-contiguous array, or fills `out`, which may be an input.
    `dispatchers` has the kernels compiled so far. The only element of `small_kernel` is the small
    kernel that served last (see `small`). It returns None for operands that it does not take.
    """

    name: str
    function: Callable
    inputs: int
    kind: str
    small_kernel: list[Callable]

    def __init__(
        self,
        name: str,
        function: Callable,
        inputs: int,
        kind: str = "same",
        guard: tuple[Callable, Callable] | None = None,
    ) -> None:
        if inputs not in (1, 2, 3, 4):
            raise ValueError(f"{name}: an elementwise kernel takes 1 to 4 inputs, not {inputs}")
        if kind not in KINDS:
            raise ValueError(f"{name}: kind {kind!r} is not one of {', '.join(KINDS)}")
        self.name, self.function, self.inputs, self.kind = name, function, inputs, kind
        self._check = elementary.CHECKS.get(function)
        self._scalar = build.scalar_function(function)
        self._guard = guard or elementary.GUARDED.get(function)
        cached = build.is_ours(function)
        self._signatures: dict[tuple[np.dtype, ...], DtypeSignature] = {}
        self._refusals: dict[tuple[np.dtype, ...], str | None] = {}
        self._ready: dict[tuple | None, Callable] = {}
        self._small = small.SmallKernels(name, self._small_kernel, inputs, cached)
        self._blocks = Blocks(name, self._block_kernel, cached)
        self.small_kernel = self._small.latest

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def dispatchers(self) -> dict[Any, Any]:
        """Return the compiled kernels: small ones by dtypes, block kernels by layouts too."""
        return {
            **{("small", *key): owner for key, owner in self._small.entries.owners.items()},
            **self._blocks.owners,
        }

    def __call__(self, *arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Apply the function to arrays, which are broadcast."""
        if out is None and len(arrays) == self.inputs:
            got = self.small_kernel[0](*arrays)
            if got is not None:
                return got
        elif len(arrays) != self.inputs:
            raise TypeError(f"{self.name} takes {self.inputs} arrays, got {len(arrays)}")
        elif out is not arrays[0] and out is not None:
            return self._fill(arrays, out)
        run = self._ready.get(_key(out is None, arrays))
        if run is not None:
            if out is None:
                return run(*arrays)
            if self._is_free(arrays, out):
                run(*arrays)
                return out
        return self._fresh(arrays) if out is None else self._fill(arrays, out)

    # dtypes

    def result_dtype(self, *dtypes: np.dtype) -> np.dtype:
        """Return the dtype of the result for operands of these dtypes."""
        return self._signature(dtypes).result

    def _signature(self, dtypes: tuple[np.dtype, ...]) -> DtypeSignature:
        cached = self._signatures.get(dtypes)
        if cached is not None:
            return cached
        loop = self._loop_dtypes(tuple(native(self.name, dtype) for dtype in dtypes))
        result = BOOL if self.kind in ("compare", "logical") else loop[-1]
        result = real(result) if self.kind == "real" else result
        steps = tuple(loop_dtype(dtype) for dtype in loop)
        checked = self._check is not None and is_integer(loop[0])
        exact = not checked and steps == dtypes and all(d.isnative for d in dtypes)
        cached = DtypeSignature(steps, loop_dtype(result), result, checked, exact)
        self._signatures[dtypes] = cached
        return cached

    def _loop_dtypes(self, dtypes: tuple[np.dtype, ...]) -> tuple[np.dtype, ...]:
        if self.kind == "logical":
            return (BOOL,) * len(dtypes)
        if self.kind == "select":
            return (BOOL,) + (promote(*dtypes[1:]),) * (len(dtypes) - 1)
        dtype = promote(*dtypes)
        if self.kind == "float" and is_exact(dtype):
            dtype = FLOAT64
        return (dtype,) * len(dtypes)

    def check_loop(self, loop: tuple[np.dtype, ...]) -> None:
        """Raise TypeError if the function cannot be computed in these dtypes of a `DtypeSignature`.

        A kernel raises this error when it is compiled. This method is for other ways to compute
        the function, which have to refuse the same dtypes with the same message.
        """
        refusal = self.refusal(loop)
        if refusal is not None:
            raise TypeError(refusal)

    def refusal(self, loop: tuple[np.dtype, ...]) -> str | None:
        """Return why the function cannot be computed in these dtypes; None if it can."""
        if loop not in self._refusals:
            self._refusals[loop] = self._find_refusal(loop)
        return self._refusals[loop]

    def _find_refusal(self, loop: tuple[np.dtype, ...]) -> str | None:
        """Return the error of compiling, or None. Compile the function if nothing else tells."""
        names = tuple(map(name_of, loop))
        if self.kind == "logical":  # whatever the operands are, they become bool
            return None
        if build.is_ours(self.function):
            if self.function in build.VERSIONS:
                version = build.version_of(self.function, names[0])
                return no_kernel(self.name, *loop) if version is None else None
            if not is_complex(loop[-1]):  # functions without versions are for all real numbers
                return None
        try:
            kinds_of = service.result_kinds
            self._compile_or_explain(loop, kinds_of, self._scalar, self.inputs, names)
        except TypeError as error:
            return str(error)
        return None

    # compiling

    def _loops(
        self, dtype: np.dtype, loop: Callable, in_place: bool = False
    ) -> tuple[Callable, ...]:
        """Return a loop, the scalar function, a test and a fast version.

        Without a guard, the loop is `loop`. A loop that works `in_place` cannot compute twice.
        """
        f, guard = self._scalar, self._guard
        pair = self.function in elementary.GUARDED_PAIRS
        if guard is None or (pair and not is_floating(dtype)):
            return loop, f, f, f
        return rows.run_tried if pair and not in_place else rows.run_guarded, f, *guard

    def _small_kernel(self, dtypes: tuple[np.dtype, ...]) -> Callable:
        return small.elementwise(*self._loops(dtypes[0], rows.run_brief), dtypes)

    def _block_kernel(
        self,
        form: str,
        ins: tuple[np.dtype, ...],
        outs: tuple[np.dtype, ...],
        values: tuple[int, ...],
        position: int | None,
    ) -> tuple[str, Callable]:
        """Return the name and the function of a block kernel: "flat" or "tiles"."""
        unguarded = rows.run_noalias if len(outs) > 1 else rows.run
        loops = self._loops(ins[0], unguarded, position is not None)
        kinds = tuple([(kind,) if k in values else kind for k, kind in enumerate(ins)])
        if position is not None:
            kernel = in_place_kernel(*loops, kinds, position)
            return f"{self.name}_in_place", kernel
        if form == "flat":
            return f"{self.name}_flat", flat_kernel(*loops, kinds, outs)
        tiles.prepare()
        return f"{self.name}_tiles", tile_kernel(*loops, kinds, outs)

    def _compile_or_explain(
        self, dtypes: Sequence[np.dtype], compile: Callable, *arguments: Any
    ) -> Any:
        """Return ``compile(*arguments)``; raise TypeError with the reason if that fails."""
        try:
            return compile(*arguments)
        except (
            build.CompileError,
            AttributeError,
            TypeError,
        ) as error:  # AttributeError: of a module in a user's function
            refused = isinstance(error.__cause__, build.CompileError | Unsupported)
            cause = error.__cause__ if refused else error
            if isinstance(cause, TypeError):
                raise
            said = no_kernel(self.name, *dtypes)
            if build.is_ours(self.function):
                raise TypeError(said) from cause
            lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
            telling = [line for line in lines if _TELLING.search(line)]
            reason = telling[0] if telling else " ".join(lines[1:3] or lines)
            raise TypeError(f"{said}: {reason}") from cause

    # running

    def _check_operands(
        self, arrays: tuple[np.ndarray, ...]
    ) -> tuple[DtypeSignature, tuple[np.ndarray, ...]]:
        """Check the operands; return their signature, and aligned operands."""
        signature = self._signature(tuple([array.dtype for array in arrays]))
        if signature.checked and self._check is not None:
            self._check(self.name, *arrays)
        for array in arrays:
            if not array.flags.aligned:
                return signature, tuple([np.require(each, None, "A") for each in arrays])
        return signature, arrays

    def _fresh(self, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the result as a new array."""
        signature, arrays = self._check_operands(arrays)
        if signature.exact and self.inputs < 4:
            dtypes = (*signature.loop, signature.result)
            got = self._compile_or_explain(signature.loop, self._small, arrays, dtypes)
            if got is not None:
                return got
        return self._run(signature, arrays)

    def _run(self, signature: DtypeSignature, arrays: tuple[np.ndarray, ...]) -> np.ndarray:
        """Return the result of a block kernel, for operands that were checked."""
        key = _key("checked" if signature.checked else True, arrays)
        run = self._ready.get(key)
        if run is None:
            if signature.exact:
                run = self._bound(arrays, (signature.target,))
            else:
                run = self._make_converter(
                    signature, tuple(map(np.asarray, arrays, signature.loop))
                )
            if signature.exact or all(map(_is_contiguous, arrays)):
                self._keep_ready(key, run)
        return run(*arrays)

    def _make_converter(
        self, signature: DtypeSignature, converted: tuple[np.ndarray, ...]
    ) -> Callable:
        """Return a function for operands like the original of `converted`: it casts in and out."""
        run = self._bound(converted, (signature.target,))
        loop, result = signature.loop, signature.result

        def run_converted(*arrays: np.ndarray) -> np.ndarray:
            return cast(run(*map(np.asarray, arrays, loop)), result)

        return run_converted

    def _keep_ready(self, key: tuple | None, run: Callable) -> None:
        if key is None:
            return
        if len(self._ready) >= MAX_READY:
            self._ready.clear()
        self._ready[key] = run

    def _plan(self, arrays: tuple[np.ndarray, ...]) -> plans.LoopPlan:
        layouts = [part for array in arrays for part in (array.shape, array.strides)]
        try:
            return plans.plan(tuple([array.itemsize for array in arrays]), *layouts)
        except ValueError:
            shapes = " and ".join(str(array.shape) for array in arrays)
            raise ValueError(f"{self.name}: shapes {shapes} do not broadcast") from None

    def _bound(self, arrays: tuple[np.ndarray, ...], targets: tuple[np.dtype, ...]) -> Callable:
        """Return a function of operands with these layouts, which returns the result or results."""
        plan = self._plan(arrays)
        shape, dtypes = plan.shape, tuple([array.dtype for array in arrays])
        run = self._runner(plan, dtypes, targets)
        if len(targets) > 1:

            def run_multi_output(*arrays: np.ndarray) -> list[np.ndarray]:
                outs = [empty(shape, target) for target in targets]
                run(*arrays, *outs)
                return outs

            return run_multi_output
        target = targets[0]

        def run_one(*arrays: np.ndarray) -> np.ndarray:
            out = empty(shape, target)
            run(*arrays, out)
            return out

        return run_one

    def _runner(
        self,
        plan: plans.LoopPlan,
        dtypes: tuple[np.dtype, ...],
        targets: tuple[np.dtype, ...],
        position: int | None = None,
    ) -> Callable[..., object]:
        """Return a function that runs a plan, on operands and outputs of these dtypes."""
        if not plan.units:
            return lambda *arrays: None
        sizes = (*plan.sizes, *[target.itemsize for target in targets])
        key = "flat" if plan.flat else "tiles", dtypes, targets, plan.values, position
        address = self._compile_or_explain(dtypes, self._blocks.__getitem__, key)
        work = plan.units if plan.flat else int(np.prod(plan.views[-1][-3:]))
        run = threads.bind(address, len(dtypes) + len(targets), sizes, plan.units, work)
        run = tiers.counted(run, self._blocks.owners[key], work)
        if not plan.flat:
            run = tiles.counted(run, work)
        if not plan.outer:
            return run

        def run_outer(*arrays: np.ndarray) -> None:
            views = [
                _once(array).reshape(plan.views[min(k, len(dtypes))])
                for k, array in enumerate(arrays)
            ]
            for index in itertools.product(*map(range, plan.outer)):
                run(*[_at(view, index) for view in views])

        return run_outer

    def check_out(self, out: Any, shape: tuple[int, ...], result: np.dtype) -> None:
        """Raise an error unless a result of a shape and dtype can be written to `out`."""
        if out.shape != shape:
            raise ValueError(f"{self.name}: out has shape {out.shape}, the result {shape}")
        if not np.can_cast(result, out.dtype, "same_kind"):
            raise TypeError(f"{self.name}: out has dtype {out.dtype}, the result {result}")

    def _is_free(self, arrays: tuple[np.ndarray, ...], out: np.ndarray) -> bool:
        """Return whether an output can be written to while other operands are read."""
        if not out.flags.num & WRITEABLE:
            return False
        for array in arrays:
            # two different arrays that own their memory do not overlap
            owners = array.base is None and out.base is None
            if array is not out and not owners and np.may_share_memory(array, out):
                return False
        return True

    def _fill(self, arrays: tuple[np.ndarray, ...], out: np.ndarray) -> np.ndarray:
        """Write the result into an array, which may be an operand."""
        signature, operands = self._check_operands(arrays)
        arrays = tuple(map(np.asarray, operands, signature.loop))
        plan = self._plan(arrays)
        self.check_out(out, plan.shape, signature.result)
        if not out.flags.writeable:
            raise ValueError(f"{self.name}: out is read-only")
        if not out.size:
            return out
        positions = [k for k, array in enumerate(arrays) if array is out]
        if _is_contiguous(out) and out.dtype == signature.target and self._is_free(arrays, out):
            if not positions:
                self._runner(plan, signature.loop, (signature.target,))(*arrays, out)
                return out
            position = positions[0]
            if len(positions) == 1 and plan.flat and position not in plan.values:
                run = self._runner(plan, signature.loop, (), position)
                run(*arrays)
                if signature.exact and position == 0:
                    self._keep_ready(_key(False, arrays), run)
                return out
        np.copyto(out, self._run(signature, operands), casting="same_kind")
        return out


def _key(way: Any, arrays: tuple[np.ndarray, ...]) -> tuple | None:
    """Return the key of a bound kernel; None, which has no kernel, if an array is not aligned.

    `way` is True for a new array, False for in place.
    """
    key: list[Any] = [way]
    for array in arrays:
        if not array.flags.num & ALIGNED:
            return None
        key += (array.dtype, array.shape, array.strides)
    return tuple(key)


def _once(array: np.ndarray) -> np.ndarray:
    """Return an array that repeats one value as a 0-d array; any other array itself."""
    return array if any(array.strides) or not array.size else array[(0,) * array.ndim + (...,)]


def _at(view: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
    """Return the part of a view at leading indices. Dimensions of size 1 are repeated."""
    return view[tuple([i if n > 1 else 0 for i, n in zip(index, view.shape, strict=False)])]


class Pointwise:
    """A user's scalar function made into an array kernel. It may return a number or a tuple.

    Parameters
    ----------
    name : the name in errors, tracebacks and cache files.
    function : the scalar function, which Numba can compile.
    inputs : the number of numbers that it takes, 1 to 3.
    floats : the number of its results, if it is known and all are floats.

    Operands are broadcast; integers and bool become float64 first. A function that returns a number
    behaves as an `Elementwise`. For a tuple, the result is a list of new C-contiguous arrays,
    written in one pass: floats have the dtype of the operands, integers int64, truths bool.
    """

    def __init__(
        self, name: str, function: Callable, inputs: int, floats: int | None = None
    ) -> None:
        self.name, self.inputs, self._floats = name, inputs, floats
        self.single = Elementwise(name, function, inputs, "float")
        self.for_device: Callable[[], Callable] | None = None  # gives another for a GPU
        self._single = False  # whether it is known to return a number
        self._results: dict[np.dtype, tuple[np.dtype, ...] | None] = {}

    def __repr__(self) -> str:
        return f"<kernel {self.name}>"

    @property
    def dispatchers(self) -> dict[Any, Any]:
        """Return the compiled kernels: small ones by dtypes, block kernels by layouts too."""
        return self.single.dispatchers

    def result_dtypes(self, *dtypes: np.dtype) -> tuple[np.dtype, ...] | None:
        """Return the dtypes of several results for these dtypes of operands; None for one."""
        dtype = self.single.result_dtype(*dtypes)
        if dtype not in self._results:
            self._results[dtype] = self._infer(dtype)
        return self._results[dtype]

    def _infer(self, dtype: np.dtype) -> tuple[np.dtype, ...] | None:
        loop = (loop_dtype(dtype),) * self.inputs
        names = tuple(map(name_of, loop))
        try:
            if self._floats is None:
                returned = service.result_kinds(self.single._scalar, self.inputs, names)
            else:
                returned = names[:1] * self._floats if self._floats > 1 else names[0]
        except (build.CompileError, AttributeError):
            return None  # `Elementwise` raises the error
        self.single._refusals[loop] = None
        if not isinstance(returned, tuple):
            self._single = True
            return None
        if not returned:
            raise TypeError(f"{self.name}: the kernel returned an empty tuple: return numbers")
        return tuple([self._dtype_of(name, dtype) for name in returned])

    def _dtype_of(self, kind: str, dtype: np.dtype) -> np.dtype:
        if kind in kinds.BOOLEAN:
            return BOOL
        if kind in kinds.INTEGER:
            return INT64
        if kind in kinds.FLOAT:
            return real(dtype)
        if kind in kinds.COMPLEX:
            return np.result_type(dtype, np.complex64)
        raise TypeError(
            f"{self.name}: the kernel returned {kind} among its results: return numbers"
        )

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Return an array, or a list of them where the function returns a tuple."""
        if self._single:
            return self.single(*arrays)
        key = _key("several", arrays)
        ready = self.single._ready.get(key)
        if ready is not None:
            return ready(*arrays)
        results = self.result_dtypes(*[array.dtype for array in arrays])
        if results is None:
            return self.single(*arrays)
        signature, operands = self.single._check_operands(arrays)
        operands = tuple(map(np.asarray, operands, signature.loop))
        run = self.single._bound(operands, tuple(map(loop_dtype, results)))
        if signature.exact:
            self.single._keep_ready(key, run)
        return [cast(out, dtype) for out, dtype in zip(run(*operands), results, strict=True)]
