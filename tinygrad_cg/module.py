"""Module: an object that finds the Variables in its attributes. Modelled on ``tf.Module``."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ._core.suggestions import MODULES, absent_attributes
from ._reverse.name_scope import name_scope
from ._reverse.variable import Variable

__all__ = ["Module"]
__dir__ = __all__.copy  # what dir() shows


@absent_attributes(MODULES)
class Module:
    """Base of objects that hold Variables in attributes, lists, dicts and other modules.

    Parameters
    ----------
    name:
        Shown in the names of `named_variables`; by default the class's name in snake case.

    Variables and modules are found once each: an object's own in the order of its attributes'
    names, then those in its modules. Tapes watch all `trainable` Variables.

    Examples
    --------
    >>> class Line(tf.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.slope = tf.Variable(3.0)
    >>> [v.numpy() for v in Line().trainable_variables]
    [np.float32(3.0)]
    """

    _name: str | None = None
    _scope: str | None = None

    def __init__(self, name: str | None = None):
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"{name!r} is not a valid module name: it must be an identifier")
        self._name = name
        with name_scope(self.name) as scope:
            self._scope = scope

    @property
    def name(self) -> str:
        if self._name is not None:
            return self._name
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(self).__name__)
        return words.lower()

    @property
    def name_scope(self) -> name_scope:
        """Return the `name_scope` of this module, nested in the scope of its construction."""
        return name_scope(self._scope or f"{self.name}/")

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method: names of Variables that it makes begin with the module's name."""

        @functools.wraps(method)
        def method_with_name_scope(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return method_with_name_scope

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Return all Variables of this module and of those in it."""
        return tuple(self.named_variables.values())

    @property
    def trainable_variables(self) -> tuple[Variable, ...]:
        """Return the `variables` that tapes watch automatically."""
        return tuple([variable for variable in self.variables if variable.trainable])

    @property
    def non_trainable_variables(self) -> tuple[Variable, ...]:
        """Return the `variables` that tapes do not watch automatically."""
        return tuple([variable for variable in self.variables if not variable.trainable])

    @property
    def submodules(self) -> tuple[Module, ...]:
        """Return all modules inside this module, at any depth."""
        return tuple([module for _, module in _modules("", self)][1:])

    @property
    def named_variables(self) -> dict[str, Variable]:
        """Return the `variables` by the path to each, such as ``layers[0].kernel``."""
        named: dict[int, tuple[str, Variable]] = {}
        for path, module in _modules("", self):
            for step, leaf in _members(module):
                if isinstance(leaf, Variable):
                    named.setdefault(id(leaf), (f"{path}.{step}".removeprefix("."), leaf))
        return dict(named.values())

    def __repr__(self) -> str:
        return f"<tg.Module {self.name!r}: {len(self.variables)} variables>"


def _modules(path: str, module: Module) -> Iterator[tuple[str, Module]]:
    """Return a module and the modules in it, each once, with its path."""
    seen = {id(module)}
    waiting = [(path, module)]
    while waiting:
        path, module = waiting.pop()
        yield path, module
        inside = []
        for step, leaf in _members(module):
            if isinstance(leaf, Module) and id(leaf) not in seen:
                seen.add(id(leaf))
                inside.append((f"{path}.{step}".removeprefix("."), leaf))
        waiting.extend(reversed(inside))


def _members(module: Module) -> Iterator[tuple[str, Any]]:
    """Return the values of a module's attributes by name, with the steps that lead to them."""
    for name in sorted(vars(module)):
        yield from _leaves(name, vars(module)[name], ())


def _leaves(step: str, value: Any, above: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    """Return the Variables and modules in a value; recursive containers end the search."""
    if isinstance(value, (Variable, Module)):
        yield step, value
    elif id(value) in above or isinstance(value, (str, bytes)):
        return
    elif isinstance(value, Mapping):
        for key in value:
            yield from _leaves(f"{step}[{key!r}]", value[key], (*above, id(value)))
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _leaves(f"{step}[{i}]", part, (*above, id(value)))
