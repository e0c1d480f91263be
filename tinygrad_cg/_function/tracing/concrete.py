"""The result of `get_concrete_function`: a function for arguments of one signature."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tinygrad_cg_kernels.runtime import service

from ... import nest
from ..._core.tensor import ArrayLike, Tensor
from ...errors import ArgumentTypeError, UnsupportedCodeError
from ..graph.values import FuncGraph
from .compiled import OutputMark, Traced
from .signature import FunctionCall, Statics, TensorSpec, check_signature


class ConcreteFunction:
    """One program of a `Function`. Arguments must have its signature."""

    def __init__(self, function: Callable[..., Any], statics: Statics, traced: Traced):
        self._function, self._statics, self._traced = function, statics, traced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = FunctionCall(args, kwargs, self._statics)
        if call.key != self._traced.key:
            raise TypeError(
                f"{self!r} was traced for other arguments: call the function itself, which has a "
                "program for each signature"
            )
        return self._function(*args, **kwargs)

    @property
    def graph(self) -> FuncGraph:
        """Return the graph of the program."""
        return self._traced.program.graph

    @property
    def kernels(self) -> list[str]:
        """Return the source texts of the kernels."""
        return self._traced.program.outputs.sources

    def numba(self) -> Any:
        """Return the program as a function that Numba code calls; see `Function.numba`."""
        return NumbaCalls(self._traced).function()

    def cfunc(self) -> Any:
        """Return the program as a C function; see `Function.cfunc`."""
        return NumbaCalls(self._traced).c_function()

    @property
    def inputs(self) -> list[TensorSpec]:
        """Return the inputs of the graph: arguments, captured tensors, Variables."""
        return [TensorSpec(value.shape, value.dtype) for value in self.graph.inputs]

    def __repr__(self) -> str:
        return f"<program of {self._function!r}>"


class NumbaCalls:
    """A program as functions for Numba code and for C."""

    def __init__(self, traced: Traced):
        from ..codegen.numba_program import NumbaProgram  # which compiles by Numba

        program, name = traced.program, traced.name
        if program.assigned or program.draws:
            what, remedy = "draws random numbers", "pass them as arguments"
            if program.assigned:
                what, remedy = "assigns Variables", "return the values"
            raise UnsupportedCodeError(
                f"{name} {what}, which Numba code does not support: {remedy}"
            )
        self.name, self.outputs, self.structure = name, program.outputs, traced.structure
        graph = program.outputs.graph
        avals = [(value.dtype, value.shape) for value in graph.inputs]
        captured = [*program.captures, *[variable._read() for variable in program.reads]]
        count = len(avals) - len(captured)
        self.arguments = avals[:count]
        values = {count + k: x._data for k, x in enumerate(captured)}
        self.results = [(aval.dtype, aval.shape) for aval in program.avals]
        try:
            self.program = NumbaProgram(name.replace("<lambda>", "program"), graph, values)
        except UnsupportedCodeError as error:
            site = traced.site_of(error.operation)
            where = f". It is called in {site}" if site else ""
            raise UnsupportedCodeError(f"{error}{where}") from None

    def _expressions(self) -> list[str]:
        """Return the expressions of the outputs."""
        texts = []
        for k, (kind, item) in enumerate(self.outputs.steps):
            if kind == 2:
                texts.append(self.program.results[item])
                continue
            shape = self.results[k][1]
            if kind == 0 and item < len(self.arguments):
                texts.append(f"x{item}_.copy()" if shape else f"x{item}_")
                continue
            array = item if kind == 1 else self.program.values[item]
            name = f"constant_{k}"
            self.program.scope[name] = np.ascontiguousarray(array)
            texts.append(f"{name}.copy()" if shape else repr(array.item()))
        return texts

    def function(self) -> Any:
        """Return the function for Numba code."""
        texts = iter(self._expressions())

        def packed(structure: Any) -> str:
            if isinstance(structure, (tuple, list)):
                return f"({''.join(f'{packed(item)}, ' for item in structure)})"
            if structure is OutputMark:
                return next(texts)
            raise UnsupportedCodeError(
                f"{self.name} returns {type(structure).__name__}: a program for Numba code returns "
                "arrays, numbers, and tuples of these"
            )

        return self._compile(packed(self.structure))

    def _compile(self, result: str) -> Any:
        backend = service.numba_callable()
        text, scope = self.program.text(result), self.program.scope
        return backend.compile_callable(text, dict(scope), self.program.title, self.arguments)

    def c_function(self) -> Any:
        """Return the C function."""
        texts = self._expressions()
        flat = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
        function = self._compile(flat)
        backend = service.numba_callable()
        return backend.compile_c_function(
            function, self.program.title, self.arguments, self.results
        )


class AnySize:
    """A `Function` for arguments that fit specifications with unknown sizes.

    Each size has its own program. The programs share their kernels.
    """

    def __init__(self, function: Callable[..., Any], args: Sequence, kwargs: Mapping):
        self._function = function
        self._names = sorted(kwargs)
        arguments = (*args, *[kwargs[name] for name in self._names])
        self._specs = tuple(nest.map_structure(_specification, argument) for argument in arguments)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if sorted(kwargs) != self._names or len(args) + len(kwargs) != len(self._specs):
            raise ArgumentTypeError(
                f"{self!r} was made for {len(self._specs) - len(self._names)} arguments by "
                f"position and {self._names} by name, got {len(args)} and {sorted(kwargs)}"
            )
        arguments = (*args, *[kwargs[name] for name in self._names])
        checked = check_signature(self._specs, arguments, {}, statics=True)
        named = dict(zip(self._names, checked[len(args) :], strict=True))
        return self._function(*checked[: len(args)], **named)

    @property
    def inputs(self) -> list[TensorSpec]:
        """Return the specifications of the arguments."""
        return [spec for spec in nest.flatten(self._specs) if isinstance(spec, TensorSpec)]

    def _refuse(self) -> NoReturn:
        """Raise ValueError: there is one for each size."""
        shapes = ", ".join(str(spec.shape) for spec in self.inputs)
        raise ValueError(
            f"{self._function.__name__}: `graph`, `kernels`, `numba` and `cfunc` need fixed "
            f"sizes, but the shapes are {shapes}: pass tensors, or specifications such as "
            "TensorSpec((3,))"
        )

    graph = kernels = property(_refuse)
    numba = cfunc = _refuse

    def __repr__(self) -> str:
        return f"<{self._function!r} for {', '.join(map(repr, self._specs))}>"


def example(leaf: Any) -> Any:
    """Return a tensor that fits a specification; any other leaf is returned as it is."""
    return Tensor(np.zeros(leaf.shape or (), leaf.dtype)) if isinstance(leaf, TensorSpec) else leaf


def _specification(leaf: Any) -> Any:
    return TensorSpec.from_tensor(leaf) if isinstance(leaf, (ArrayLike, np.ndarray)) else leaf
