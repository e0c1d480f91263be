"""Side effects of a region: the cells, attributes and containers that it may change.

Both cases of a branch are run, and a loop's body stands for all rounds. So the side effects of a
run must be undone before the next one.
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
from ._merging import undefined
from ._units import Effects

_CONTAINERS = (list, dict, set, tuple, np.ndarray, TensorArray)
_MAX_SIZE = 1_000_000  # elements of an array that is compared


def read_cell(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return undefined


class Location(ABC):
    """Something outside of a region that it may change; `text` is its name in the user's code.

    `owner` holds the value under `name`; both identify the location.
    """

    def __init__(self, text: str, owner: Any, name: str = ""):
        self.text, self.owner, self.name = text, owner, name

    @abstractmethod
    def get(self) -> Any:
        """Return the value, or `undefined`."""

    @abstractmethod
    def set(self, value: Any) -> None:
        """Set the value, or delete it if that is `undefined`."""


class CellLocation(Location):
    """A variable shared with functions inside or outside."""

    def get(self) -> Any:
        return read_cell(self.owner)

    def set(self, value: Any) -> None:
        if value is not undefined:
            self.owner.cell_contents = value
        else:
            with contextlib.suppress(ValueError):
                del self.owner.cell_contents


class GlobalLocation(Location):
    """A global name, in its dictionary."""

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
    """The elements of a list, dictionary or array; those of a set are only compared."""

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

    def __init__(self, text: str, array: Any):
        super().__init__(text, array, "state")


@contextlib.contextmanager
def restoring(locations: Iterable[Location]) -> Iterator[None]:
    """Return a context that restores the values of locations at its end."""
    present = [(location, location.get()) for location in locations]
    try:
        yield
    finally:
        for location, value in present:
            location.set(value)


def is_same(value: Any, other: Any) -> bool:
    """Return whether two states are equal, element by element by identity."""
    if value is other:
        return True
    if type(value) is not type(other) or not isinstance(value, (list, dict, set, np.ndarray)):
        return False
    if isinstance(value, np.ndarray):
        return value.shape == other.shape and value.tobytes() == other.tobytes()
    if isinstance(value, set):
        return value == other
    if len(value) != len(other):
        return False
    if isinstance(value, dict):
        return all(key in other and other[key] is value[key] for key in value)
    return all(a is b for a, b in zip(value, other, strict=True))


def matters(before: Any, after: Any) -> bool:
    """Return whether a program would have to repeat a change: of a number or a tensor.

    Other changes happen once, while tracing: a layer notes that it is built, a list records calls.
    """
    if isinstance(before, (list, tuple, set, dict)) or isinstance(after, (list, tuple, set, dict)):
        old = {id(element) for element in _elements(before)}
        new = [element for element in _elements(after) if id(element) not in old]
        return any(matters(undefined, element) for element in new if is_tensor(element))
    if isinstance(after, np.ndarray):
        return isinstance(before, np.ndarray)
    numbers = (int, float, complex, Weak, np.generic)
    counts = isinstance(after, numbers) and not isinstance(after, bool)
    counted = isinstance(before, numbers) or is_tensor(before)
    if isinstance(after, Tensor):  # a new one with a value may be a layer's weight
        return counted or isinstance(after._data, Aval)
    return counts and counted


def _elements(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple, set)) else [value]


def locations_of(
    site: Effects, values: Mapping[str, Any], cells: Mapping[str, CellType], names: dict
) -> list[Location]:
    """Return everything that a region may change, except its own names."""
    locations: list[Location] = [CellLocation(name, cells[name]) for name in site.changed_cells]
    locations += [GlobalLocation(name, names, name) for name in site.globals]

    def find(text: str, evaluate: bool = False) -> Any:
        root, *path = text.split(".")
        owner = values.get(root, undefined)
        if owner is undefined and root in cells:
            owner = read_cell(cells[root])
        if owner is undefined:
            owner = names.get(root, undefined)
        for part in path:
            value = getattr(owner, "__dict__", {}).get(part, undefined)
            if value is undefined and evaluate and owner is not undefined:
                value = getattr(owner, part, undefined)
            owner = value
        return owner

    for text in site.attributes:
        path, _, last = text.rpartition(".")
        owner = find(path, evaluate=True)
        if owner is not undefined:
            locations.append(AttributeLocation(text, owner, last))
    seen: set[int] = set()
    for name in (*site.mentioned, *site.cells, *site.paths, *site.outer):
        for container in _containers(find(name), seen):
            if isinstance(container, np.ndarray) and name in site.outer:
                continue  # probably a table
            is_array = isinstance(container, TensorArray)
            locations.append((ElementsLocation if is_array else ContainerLocation)(name, container))
    return locations


def _containers(value: Any, seen: set[int]) -> Iterator[Any]:
    if not isinstance(value, _CONTAINERS) or id(value) in seen:
        return
    seen.add(id(value))
    is_table = type(value) is np.ndarray and value.size <= _MAX_SIZE
    if is_table or isinstance(value, TensorArray) or type(value) in (list, dict, set):
        yield value
    if not isinstance(value, (set, np.ndarray, TensorArray)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _containers(item, seen)


_HOME = __name__.rpartition(".")[0]
_MAX_OBJECTS = 20_000
_PLAIN = (str, bytes, int, float, complex, type, ModuleType, np.ndarray, type(None))


def reachable(roots: Iterable[Any]) -> dict[int, Any]:
    """Return the objects that can be reached from the roots, by identity: those existed before.

    The nearest come first, and their number is limited: a test session holds very many objects.
    """
    objects: dict[int, Any] = {}
    pending = deque(roots)
    while pending and len(objects) < _MAX_OBJECTS:
        item = pending.popleft()
        if id(item) in objects or isinstance(item, _PLAIN):
            continue
        if type(item).__module__.startswith(_HOME):
            continue  # such as a helper
        objects[id(item)] = item
        pending += _held_by(item)
    return objects


def _held_by(value: Any) -> list[Any]:
    """Return the objects that a value refers to, as far as references are followed."""
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
        used = [name for name in outer if name in names]
        places: list[Location] = [GlobalLocation(name, names, name) for name in used]
        for holder in reachable([*roots, *[names[key] for key in used]]).values():
            if isinstance(holder, CellType):
                places.append(CellLocation("", holder))
            elif type(holder) is list:
                places.append(ContainerLocation("", holder))
            else:
                inside = holder if type(holder) is dict else getattr(holder, "__dict__", None)
                if type(inside) is dict:
                    places += [GlobalLocation(key, inside, key) for key in inside]
        pairs = [(place, place.get()) for place in places]
        self._held = [(place, value) for place, value in pairs if _is_held(value)]

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Return a context in which the objects hold the values of the snapshot."""
        changed = [(place, value) for place, value in self._held if not is_same(place.get(), value)]
        with restoring([place for place, _ in changed]):
            for place, value in changed:
                place.set(value)
            yield


def _is_held(value: Any) -> bool:
    if type(value) is list:
        return any(map(_is_held, value))
    return value is None or is_tensor(value) or isinstance(value, (Weak, int, float))
