"""get_variable and variable_scope of ``tf.compat.v1``: named Variables, in scopes.

In a Graph a name stands for one Variable, shared where `reuse` allows it; in eager mode each
call makes a new one, as in TensorFlow, so that a notebook's cell can run again.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._core.conversion import FLOAT32, as_dtype
from .._core.kinds import is_inexact
from .._core.levels import state
from .._ops import sampling as random
from .._ops.validation import as_shape
from .graph_mode import default_graph
from .variable import Variable


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


AUTO_REUSE = _ReuseMode.AUTO_REUSE


class VariableScope:
    """A prefix for names, and defaults, as `variable_scope` sets them."""

    def __init__(
        self, name: str, reuse: Any, use_resource: bool, initializer: Any, constraint: Any
    ):
        self.name = name
        self.reuse = reuse
        self.use_resource = use_resource
        self.initializer, self.constraint = initializer, constraint


_OUTERMOST = VariableScope("", False, True, None, None)


def get_variable_scope() -> VariableScope:
    """Return the innermost variable scope of this thread."""
    return state.scopes[-1] if state.scopes else _OUTERMOST


@contextlib.contextmanager
def variable_scope(
    name_or_scope: str | VariableScope,
    default_name: str | None = None,
    values: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    custom_getter: Any = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Any = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Return a context in which `get_variable` prefixes names with ``name_or_scope/``.

    `use_resource=False` makes Variables that a custom gradient does not accept, as in TensorFlow.
    Arguments that are None are inherited from the enclosing scope.
    """
    outer = get_variable_scope()
    name = name_or_scope if name_or_scope is not None else default_name
    if isinstance(name, VariableScope):
        full = name.name
        use_resource = name.use_resource if use_resource is None else use_resource
    elif isinstance(name, str):
        full = f"{outer.name}/{name}" if outer.name else name
    else:
        raise TypeError(f"variable_scope: name_or_scope must be a string, got {name!r}")
    scope = VariableScope(
        full,
        outer.reuse if reuse is None else reuse,
        outer.use_resource if use_resource is None else use_resource,
        outer.initializer if initializer is None else initializer,
        outer.constraint if constraint is None else constraint,
    )
    state.scopes.append(scope)
    try:
        yield scope
    finally:
        state.scopes.remove(scope)


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Variable:
    """Return a Variable by name: a new one, or in a Graph the existing one if `reuse` is set.

    `initializer` is a value, a function of (shape, dtype), or None: Glorot's uniform draws for
    floats, zeros for other dtypes. Raises ValueError if a name must not exist but does, or must
    exist but does not, and if the shape is missing.
    """
    scope, graph = get_variable_scope(), default_graph()
    full = f"{scope.name}/{name}" if scope.name else name
    if graph is not None:
        existing = graph._variables.get(full)
        if existing is not None:
            return _reused(existing, full, shape, scope)
        if scope.reuse is True:
            raise ValueError(
                f"Variable {full} does not exist, or was not created with get_variable(). Did "
                "you mean to set reuse=AUTO_REUSE in VarScope?"
            )
    value = _initial_value(full, shape, dtype, initializer or scope.initializer)
    constraint = scope.constraint if constraint is None else constraint
    variable = Variable(value, trainable, name=full, dtype=dtype, constraint=constraint)
    variable.resource = scope.use_resource if use_resource is None else use_resource
    if graph is not None:
        graph._variables[full] = variable
    return variable


def _reused(variable: Variable, name: str, shape: Any, scope: VariableScope) -> Variable:
    if not scope.reuse:
        raise ValueError(
            f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
            "reuse=AUTO_REUSE in VarScope?"
        )
    if shape is not None and as_shape("get_variable", shape) != variable.shape:
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {tuple(shape)} and found "
            f"shape {tuple(variable.shape)}."
        )
    return variable


def _initial_value(name: str, shape: Any, dtype: Any, initializer: Any) -> Any:
    wanted = FLOAT32 if dtype is None else as_dtype(dtype)
    if initializer is not None and not callable(initializer):
        return initializer
    if shape is None:
        raise ValueError(
            f"Shape of a new variable ({name}) must be fully defined, but it is None: pass "
            "shape=, or a value as initializer="
        )
    sizes = as_shape("get_variable", shape)
    if initializer is not None:
        return initializer(sizes, dtype=wanted)
    if not is_inexact(wanted):
        return np.zeros(sizes, wanted)
    fans = (sizes[0], sizes[-1]) if sizes else (1, 1)
    limit = float(np.sqrt(6.0 / sum(fans)))
    return random.uniform(sizes, -limit, limit, wanted)
