"""The sparsity patterns of Jacobians and Hessians, found by tracing a function once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tinygrad_cg_kernels.sparse.index_sets import merge_rows, stack_rows, transpose_rows, unit_rows

from .. import nest
from .._core.kinds import is_differentiable, is_exact
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from .._function.tracing.concrete import example
from .._function.tracing.function import Function
from .._function.tracing.signature import FunctionCall, Statics, TensorSpec, has_unknown_sizes
from .._transforms.differentiable import Differentiable, fit_tensors
from .flow_parts import build
from .index_flow import Dependence, IndexFlow
from .sparsity import SparsityPattern


@reads_own_arguments
def jacobian_sparsity(
    f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0, at: Any = None
) -> SparsityPattern:
    """Return the pattern of the Jacobian of `f`: which elements of the result depend on which
    inputs.

    It traces `f` once, like `function`, and computes no derivatives. The pattern holds for all
    values of the arguments: wherever derivatives are finite, no nonzero entry is missing. It may
    contain entries that are zero.

    Parameters
    ----------
    f:
        A function of tensors to tensors of floats, in any structure. Its elements are the rows:
        each tensor in row-major order, one tensor after the other.
    *args:
        The arguments: tensors, arrays, Variables, numbers, nested structures of these, or
        `TensorSpec`s. Only the shapes and dtypes of floats matter. Integers, and tensors and arrays
        that `f` captures, are constants: the pattern holds for their values. Variables that `f`
        reads may change.
    argnums:
        The positional argument of the derivative, or several. Their elements are the
        columns: each tensor in row-major order, one tensor after the other.
    at:
        A value of the differentiated argument (with several `argnums` a tuple of them): the pattern
        at this point, and for the values of all other arguments. It omits entries that are zero
        there because of `where`, branches, maxima, minima and products with 0.

    The pattern of a custom gradient combines the patterns of its function and its rule; if the rule
    cannot be traced, everything depends on everything. The same holds for `differentiable`
    functions, `primitive` without `elementwise`, and Python code in `numpy_function`;
    `declare_sparsity` gives their pattern. Loops of up to 4096 rounds are followed round by round,
    longer loops until the pattern stops growing.

    Raises TypeError for results and arguments that are not floats, ValueError for `argnums` that do
    not fit. Modelled on SparseConnectivityTracer.jl.

    Examples
    --------
    >>> pattern = tf.jacobian_sparsity(lambda x: x[1:] - x[:-1] ** 2, tf.zeros(4))
    >>> pattern
    <SparsityPattern 3 x 4, 6 entries>
    >>> pattern.toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    transform = Differentiable("jacobian_sparsity", f, argnums)
    return Detection(transform, args, {}, at, False).pattern()


@reads_own_arguments
def hessian_sparsity(
    f: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0, at: Any = None
) -> SparsityPattern:
    """Return the pattern of the second derivatives of a scalar function `f`.

    Rows and columns are the elements of the differentiated arguments, in the order of the columns
    of `jacobian_sparsity`, which has the same arguments and errors. The pattern is symmetric. It
    contains the pairs of elements that an operation combines nonlinearly, if the result depends on
    that operation. So the Hessian of a sum contains the pairs within each term.

    Raises ValueError for a result that is not a scalar.

    Examples
    --------
    >>> tf.hessian_sparsity(lambda x: tf.reduce_sum(x[1:] * x[:-1]), tf.zeros(3)).toarray()
    array([[False,  True, False],
           [ True, False,  True],
           [False,  True, False]])
    """
    transform = Differentiable("hessian_sparsity", f, argnums)
    return Detection(transform, args, {}, at, True).pattern()


class Detection:
    """The trace of one function, and what its outputs depend on."""

    def __init__(self, transform: Differentiable, args: tuple, kwargs: dict, at: Any, second: bool):
        self.name = f"{transform.name}: {transform.definition.name}"
        if has_unknown_sizes(args):
            raise ValueError(
                f"{transform.name}: a TensorSpec has an unknown size: a pattern belongs to shapes "
                "that are all known"
            )
        has_values = not any(type(leaf) is TensorSpec for leaf in nest.flatten(args))
        inner, sources = transform.sources(nest.map_structure(example, args))
        flat, at_point = nest.flatten(sources), at is not None
        if at_point:
            points = (at,) if transform.single else at
            flat = fit_tensors(transform, "point `at`", points, tuple(sources), flat)
            flat = [Tensor(x._data) for x in flat]  # each is an object of its own
            sources = nest.pack_sequence_as(sources, flat)
            for number, source in zip(transform.argnums, sources, strict=True):
                inner[number] = source
        f: Any = transform.f
        python = f.python_function if isinstance(f, Function) else f
        statics = f._statics if isinstance(f, Function) else Statics(python, None, None)
        function = Function(python, statics, None, build, True)
        traced = function.get_concrete_function(*inner, **kwargs)._traced
        self.program = traced.program
        self._check_outputs(traced.structure)
        starts = dict(zip(map(id, flat), np.cumsum([0, *[x.size for x in flat]]), strict=False))
        self.columns = sum(x.size for x in flat)

        def state(leaf: Any) -> Dependence:
            array = leaf._data if isinstance(leaf, Tensor) else np.asarray(leaf, np.float64)
            if id(leaf) in starts:
                table = unit_rows(array.size, starts[id(leaf)]) if array.size else None
                return Dependence(table, array if at_point else None)
            is_known = has_values and (at_point or is_exact(array.dtype))
            return Dependence(None, array if is_known else None)

        call = FunctionCall(tuple(inner), kwargs, statics)
        constants = [tensor._data for tensor in self.program.captures]
        constants += [variable._data if at_point else None for variable in self.program.reads]
        states = [*map(state, call.leaves), *[Dependence(None, array) for array in constants]]
        self.flow = IndexFlow(self.columns, second)
        outputs, self.pairs = self.flow.run(self.program.graph, states)
        self.outputs = outputs[: self.program.count]

    def _check_outputs(self, structure: Any) -> None:
        avals = self.program.avals
        if not avals or any(leaf is None for leaf in nest.flatten(structure)):
            raise TypeError(f"{self.name} returned None: return tensors of floats")
        for aval in avals:
            if not is_differentiable(aval.dtype):
                raise TypeError(
                    f"{self.name} returned a tensor of dtype {aval.dtype}, which has no "
                    "derivative: return floats"
                )

    def pattern(self) -> SparsityPattern:
        """Return the pattern of the Jacobian, or of the Hessian for second derivatives."""
        avals = self.program.avals
        if not self.flow.second:
            states = zip(self.outputs, avals, strict=True)
            tables = [x.table or self.flow.empty(prod(aval.shape)) for x, aval in states]
            indptr, indices = stack_rows(tables)
            return SparsityPattern(indptr, indices, (indptr.size - 1, self.columns))
        if len(avals) != 1 or avals[0].shape != ():
            shapes = ", ".join(str(tuple(aval.shape)) for aval in avals)
            raise ValueError(
                f"{self.name} must return one scalar, got shapes {shapes}; reduce the result with "
                "reduce_sum, or use jacobian_sparsity"
            )
        half = self.flow.interactions(self.pairs)
        table = merge_rows(half, transpose_rows(half, self.columns))
        return SparsityPattern(*table, (self.columns, self.columns))
