"""State that a region may change: names, cells, attributes and containers, saved and restored.

A branch that a tensor decides runs at once for both cases, and a body for all rounds: what one of
them changes must not be seen by the other.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from .._core.conversion import Weak, is_tensor
from .._core.tensor import Aval, Tensor
from .._transforms.tensor_array import TensorArray
from .merging import undefined
from .units import Effects

_CONTAINERS = (list, dict, set, tuple, np.ndarray, TensorArray)
_LARGEST = 1_000_000  # elements of an array that is looked at


def read_cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return undefined


def write_cell(cell: CellType, value: Any) -> None:
    if value is not undefined:
        cell.cell_contents = value
    else:
        with contextlib.suppress(ValueError):
            del cell.cell_contents


class Location(ABC):
    """Something outside of a region that it may change; `text` is what the user calls it.

    `owner` has the value under `name`: they say whether two locations are the same.
    """

    def __init__(self, text: str, owner: Any, name: str = ""):
        self.text, self.owner, self.name = text, owner, name

    @abstractmethod
    def get(self) -> Any:
        """Return the value there, or `undefined`."""

    @abstractmethod
    def set(self, value: Any) -> None:
        """Make it hold a value, or none if that is `undefined`."""


class CellLocation(Location):
    """A name that functions inside, or outside, share."""

    def get(self) -> Any:
        return read_cell(self.owner)

    def set(self, value: Any) -> None:
        write_cell(self.owner, value)


class GlobalLocation(Location):
    """A global name, in the dictionary of them."""

    def get(self) -> Any:
        return self.owner.get(self.name, undefined)

    def set(self, value: Any) -> None:
        if value is undefined:
            self.owner.pop(self.name, None)
        else:
            self.owner[self.name] = value


class AttributeLocation(Location):
    """An attribute of an object."""

    def get(self) -> Any:
        return getattr(self.owner, self.name, undefined)

    def set(self, value: Any) -> None:
        if value is not undefined:
            if self.get() is not value:
                setattr(self.owner, self.name, value)
        elif self.get() is not undefined:
            delattr(self.owner, self.name)


class ContainerLocation(Location):
    """The elements of a list, dictionary or array; those of a set are compared only."""

    def get(self) -> Any:
        return self.owner.copy()

    def set(self, value: Any) -> None:
        if isinstance(self.owner, np.ndarray):
            if not is_same(self.owner, value):
                self.owner[...] = value
        elif isinstance(self.owner, list):
            self.owner[:] = value
        else:
            self.owner.clear()
            self.owner.update(value)


class ElementsLocation(AttributeLocation):
    """The elements of a TensorArray: its state."""

    def __init__(self, text: str, array: TensorArray):
        super().__init__(text, array, "state")


@contextlib.contextmanager
def restoring(locations: Iterable[Location]) -> Iterator[None]:
    """Return a context after which locations hold what they held before."""
    present = [(one, one.get()) for one in locations]
    try:
        yield
    finally:
        for one, value in present:
            one.set(value)


def is_same(one: Any, other: Any) -> bool:
    """Return whether nothing was assigned in between."""
    if one is other:
        return True
    if type(one) is not type(other) or not isinstance(one, (list, dict, set, np.ndarray)):
        return False
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, set):
        return one == other
    if len(one) != len(other):
        return False
    if isinstance(one, dict):
        return all(key in other and other[key] is one[key] for key in one)
    return all(a is b for a, b in zip(one, other, strict=True))


def matters(before: Any, after: Any) -> bool:
    """Return whether a change is one that a program would have to do: of a number or a tensor.

    All else is done while tracing: a layer notes that it is built, a list what was called.
    """
    if isinstance(before, (list, tuple, set, dict)) or isinstance(after, (list, tuple, set, dict)):
        old = {id(one) for one in _elements(before)}
        new = [one for one in _elements(after) if id(one) not in old]
        return any(matters(undefined, one) for one in new if is_tensor(one))
    if isinstance(after, np.ndarray):
        return isinstance(before, np.ndarray)
    numbers = (int, float, complex, Weak, np.generic)
    counts = isinstance(after, numbers) and not isinstance(after, bool)
    counted = isinstance(before, numbers) or is_tensor(before)
    if isinstance(after, Tensor):  # a new one that is known is the weight of a layer, say
        return counted or isinstance(after._data, Aval)
    return counts and counted


def _elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def locations_of(
    site: Effects, values: Mapping[str, Any], cells: Mapping[str, CellType], names: dict
) -> list[Location]:
    """Return all that a region may change, but for its own names."""
    found: list[Location] = [CellLocation(one, cells[one]) for one in site.changed_cells]
    found += [GlobalLocation(one, names, one) for one in site.globals]

    def find(text: str, evaluate: bool = False) -> Any:
        root, *path = text.split(".")
        owner = values.get(root, undefined)
        if owner is undefined and root in cells:
            owner = read_cell(cells[root])
        if owner is undefined:
            owner = names.get(root, undefined)
        for part in path:
            known = getattr(owner, "__dict__", {}).get(part, undefined)
            if known is undefined and evaluate and owner is not undefined:
                known = getattr(owner, part, undefined)
            owner = known
        return owner

    for text in site.attributes:
        path, _, last = text.rpartition(".")
        owner = find(path, evaluate=True)
        if owner is not undefined:
            found.append(AttributeLocation(text, owner, last))
    seen: set[int] = set()
    for name in (*site.mentioned, *site.cells, *site.paths, *site.outer):
        for one in _containers(find(name), seen):
            if isinstance(one, np.ndarray) and name in site.outer:
                continue  # a table, most likely
            if isinstance(one, TensorArray):
                found.append(ElementsLocation(name, one))
            else:
                found.append(ContainerLocation(name, one))
    return found


def _containers(value: Any, seen: set[int]) -> Iterator[Any]:
    if not isinstance(value, _CONTAINERS) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, TensorArray):
        yield value
        return
    if type(value) is np.ndarray and value.size <= _LARGEST:
        yield value
    if type(value) in (list, dict, set):
        yield value
    if isinstance(value, (set, np.ndarray)):
        return
    for one in value.values() if isinstance(value, dict) else value:
        yield from _containers(one, seen)


_HOME = __name__.rpartition(".")[0]
_MOST_OBJECTS = 20_000
_PLAIN = (str, bytes, int, float, complex, type, ModuleType, np.ndarray, type(None))


def reachable(roots: Iterable[Any]) -> dict[int, Any]:
    """Return by identity the objects that can be reached from some: a region has not made these.

    The nearest come first, since a test session, say, holds more objects than are worth a look.
    """
    found: dict[int, Any] = {}
    pending = deque(roots)
    while pending and len(found) < _MOST_OBJECTS:
        one = pending.popleft()
        if id(one) in found or isinstance(one, _PLAIN):
            continue
        if type(one).__module__.startswith(_HOME):
            continue  # the helper of a transformed function, say
        found[id(one)] = one
        pending += _held_by(one)
    return found


def _held_by(value: Any) -> list[Any]:
    """Return the objects that a value refers to, as far as that is followed."""
    if isinstance(value, Mapping):
        return [*value.values()]
    if isinstance(value, (list, tuple, set, frozenset)):
        return [*value]
    if isinstance(value, CellType):
        return [read_cell(value)]
    if isinstance(value, FunctionType):
        return [*(value.__closure__ or ()), *(value.__defaults__ or ())]
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    inside = None if is_tensor(value) else getattr(value, "__dict__", None)
    return [*inside.values()] if isinstance(inside, dict) else []


class Snapshot:
    """The numbers and tensors that objects hold now, for code that is traced again later."""

    def __init__(self, roots: Iterable[Any], names: dict, outer: Iterable[str] = ()):
        used = [one for one in outer if one in names]
        places: list[Location] = [GlobalLocation(one, names, one) for one in used]
        for one in reachable([*roots, *[names[key] for key in used]]).values():
            if isinstance(one, CellType):
                places.append(CellLocation("", one))
            elif type(one) is list:
                places.append(ContainerLocation("", one))
            else:
                inside = one if type(one) is dict else getattr(one, "__dict__", None)
                if type(inside) is dict:
                    places += [GlobalLocation(key, inside, key) for key in inside]
        pairs = [(one, one.get()) for one in places]
        self._held = [(one, value) for one, value in pairs if _is_held(value)]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context in which objects hold what they held."""
        changed = [(one, value) for one, value in self._held if not is_same(one.get(), value)]
        with restoring([one for one, _ in changed]):
            for one, value in changed:
                one.set(value)
            yield


def _is_held(value: Any) -> bool:
    if type(value) is list:
        return any(map(_is_held, value))
    return value is None or is_tensor(value) or isinstance(value, (Weak, int, float))
