"""The result of `get_concrete_function`: a function for arguments of one form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from ... import nest
from ..._core.tensor import ArrayLike, Tensor
from ...errors import ArgumentTypeError
from ..graph.values import FuncGraph
from .compiled import Traced
from .signature import FunctionCall, Statics, TensorSpec, check_signature


class ConcreteFunction:
    """One program of a `Function`. Arguments must have the signature it was made for."""

    def __init__(self, function: Callable[..., Any], statics: Statics, traced: Traced):
        self._function, self._statics, self._traced = function, statics, traced

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = FunctionCall(args, kwargs, self._statics)
        if call.key != self._traced.key:
            raise TypeError(
                f"{self!r} was made for other arguments: call the function itself, which "
                "has a program for each signature"
            )
        return self._function(*args, **kwargs)

    @property
    def graph(self) -> FuncGraph:
        """Return the graph of what is computed."""
        return self._traced.program.graph

    @property
    def kernels(self) -> list[str]:
        """Return the source texts of the kernels."""
        return self._traced.program.outputs.sources

    @property
    def inputs(self) -> list[TensorSpec]:
        """Return the inputs of the graph: arguments, captured tensors, Variables."""
        return [TensorSpec(value.shape, value.dtype) for value in self.graph.inputs]

    def __repr__(self) -> str:
        return f"<program of {self._function!r}>"


class AnySize:
    """A `Function` for arguments that fit specifications with sizes that are not known.

    Each size has a program of its own, and these share their kernels.
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
        """Raise ValueError: there is more than one."""
        raise ValueError(
            f"{self!r} has a program for each size: ask the function for that of some tensors, "
            "f.graph(x) or f.kernels(x)"
        )

    graph = kernels = property(_refuse)

    def __repr__(self) -> str:
        return f"<{self._function!r} for {', '.join(map(repr, self._specs))}>"


def example(leaf: Any) -> Any:
    """Return a tensor that a specification describes; any other leaf as it is."""
    return Tensor(np.zeros(leaf.shape or (), leaf.dtype)) if isinstance(leaf, TensorSpec) else leaf


def _specification(leaf: Any) -> Any:
    return TensorSpec.from_tensor(leaf) if isinstance(leaf, (ArrayLike, np.ndarray)) else leaf
