"""Nested structures of values: lists, tuples, namedtuples and mappings.

Modelled on `tf.nest`. Everything that is not a container is a leaf: tensors, arrays, numbers,
strings, sets and None. A mapping's leaves are in the order of its sorted keys.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence
from functools import lru_cache
from typing import Any

__all__ = [
    "assert_same_structure",
    "flatten",
    "flatten_paths",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
]
__dir__ = __all__.copy  # what dir() shows


_SEQUENCE_LEAVES = (str, bytes, bytearray, memoryview)


@lru_cache(maxsize=1024)
def _is_container(kind: type) -> bool:
    """Return whether instances of `kind` hold leaves; kept per type, since ABCs answer slowly."""
    if issubclass(kind, _SEQUENCE_LEAVES):
        return False
    return issubclass(kind, (Sequence, Mapping, MappingView))


def _is_namedtuple(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _sorted_keys(mapping: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError as error:
        raise TypeError(f"nest: the keys of a dictionary must be sortable: {error}") from None


def _children(structure: Any) -> Iterable[Any]:
    kind = type(structure)
    if kind is not list and kind is not tuple and isinstance(structure, Mapping):
        return [structure[key] for key in _sorted_keys(structure)]
    return structure


def _rebuild(structure: Any, children: list[Any]) -> Any:
    """Return a container like `structure` with other children, in the order of `_children`."""
    kind: Any = type(structure)
    if kind is list:
        return children
    if isinstance(structure, Mapping):
        by_key = dict(zip(_sorted_keys(structure), children, strict=True))
        items = {key: by_key[key] for key in structure}
        if isinstance(structure, defaultdict):
            return kind(structure.default_factory, items)
        return items if kind is dict else kind(items)
    if _is_namedtuple(structure):
        return kind(*children)
    if isinstance(structure, MappingView | range):
        return children
    return kind(children)


def is_nested(structure: Any) -> bool:
    """Return whether `structure` is a container (list, tuple, mapping, ...) rather than a leaf.

    Examples
    --------
    >>> tf.nest.is_nested((1, 2)), tf.nest.is_nested(1)
    (True, False)
    """
    return _is_container(type(structure))


def _collect(structure: Any, leaves: list[Any]) -> None:
    for child in _children(structure):
        if _is_container(type(child)):
            _collect(child, leaves)
        else:
            leaves.append(child)


def flatten(structure: Any) -> list[Any]:
    """Return the leaves of `structure` in order; `[structure]` if it is itself a leaf.

    Raises TypeError if the keys of a mapping cannot be sorted.

    Examples
    --------
    >>> tf.nest.flatten({"b": [1, 2], "a": 3})
    [3, 1, 2]
    """
    if not _is_container(type(structure)):
        return [structure]
    leaves: list[Any] = []
    _collect(structure, leaves)
    return leaves


def flatten_paths(structure: Any, root: str = "") -> list[tuple[str, Any]]:
    """Return each leaf with the expression that reaches it, such as `("x[0]['w']", leaf)`.

    For error messages; in the order of `flatten`.

    Examples
    --------
    >>> tf.nest.flatten_paths({"a": [1, 2]})
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    if not _is_container(type(structure)):
        return [(root, structure)]
    if isinstance(structure, Mapping):
        steps = [f"[{key!r}]" for key in _sorted_keys(structure)]
    elif _is_namedtuple(structure):
        steps = [f".{field}" for field in structure._fields]
    else:
        steps = [f"[{index}]" for index in range(len(structure))]
    children = zip(steps, _children(structure), strict=True)
    return [leaf for step, child in children for leaf in flatten_paths(child, root + step)]


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    children = [
        _pack(child, leaves) if _is_container(type(child)) else next(leaves)
        for child in _children(structure)
    ]
    return _rebuild(structure, children)


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Return `structure` with its leaves replaced, in the order of `flatten`, by `flat_sequence`.

    Raises TypeError if `flat_sequence` is not a sequence, ValueError if it has another number of
    items than `structure` has leaves.

    Examples
    --------
    >>> tf.nest.pack_sequence_as({"a": 0, "b": (0, 0)}, [1, 2, 3])
    {'a': 1, 'b': (2, 3)}
    """
    if not is_nested(flat_sequence):
        message = f"Attempted to pack value:\n  {flat_sequence}\ninto a structure, but found "
        raise TypeError(f"{message}incompatible type `{type(flat_sequence)}` instead.")
    if len(flat_sequence) == 1 and not _is_container(type(structure)):
        return next(iter(flat_sequence))
    leaf_count = len(flatten(structure))
    if leaf_count != len(flat_sequence):
        raise ValueError(
            f"Could not pack sequence. Structure had {leaf_count} atoms, but flat_sequence had "
            f"{len(flat_sequence)} items.  Structure: {structure}, "
            f"flat_sequence: {flat_sequence}."
        )
    leaves = iter(flat_sequence)
    return _pack(structure, leaves) if is_nested(structure) else next(leaves)


def map_structure(func: Callable[..., Any], *structures: Any, check_types: bool = True) -> Any:
    """Return calls `func` on the corresponding leaves of `structures`; the structure of the first.

    Raises TypeError or ValueError, as `assert_same_structure`, if the structures differ.

    Examples
    --------
    >>> tf.nest.map_structure(lambda x: x + 1, {"a": 1, "b": (2, 3)})
    {'a': 2, 'b': (3, 4)}
    """
    if not callable(func):
        raise TypeError(f"func must be callable, got: {func}")
    if not structures:
        raise ValueError("Must provide at least one structure")
    first, *others = structures
    if not others and not _is_container(type(first)):
        return func(first)
    for other in others:
        assert_same_structure(first, other, check_types=check_types)
    results = [func(*leaves) for leaves in zip(*map(flatten, structures), strict=True)]
    return pack_sequence_as(first, results)


def _describe(value: Any) -> str:
    return f"type={type(value).__name__} str={value}"


def _same_type(first: Any, second: Any) -> bool:
    if type(first) is type(second):
        return True
    if _is_namedtuple(first) and _is_namedtuple(second):
        names_agree = type(first).__name__ == type(second).__name__
        return names_agree and first._fields == second._fields
    return any(isinstance(first, kind) and isinstance(second, kind) for kind in (list, Mapping))


def _difference(first: Any, second: Any, check_types: bool) -> Exception | None:
    """Return the first difference of two structures as an error to raise; None if there is none."""
    if is_nested(first) != is_nested(second):
        nested, leaf = (first, second) if is_nested(first) else (second, first)
        return ValueError(
            f'Substructure "{_describe(nested)}" is a sequence, '
            f'while substructure "{_describe(leaf)}" is not'
        )
    if not is_nested(first):
        return None
    if check_types and not _same_type(first, second):
        return TypeError(
            "The two structures don't have the same sequence type. First structure "
            f"{_describe(first)} has type {type(first).__name__}, while second structure "
            f"{_describe(second)} has type {type(second).__name__}"
        )
    if len(first) != len(second):
        return ValueError(
            "The two structures don't have the same number of elements. "
            f"First structure: {_describe(first)}. Second structure: {_describe(second)}"
        )
    if isinstance(first, Mapping) and isinstance(second, Mapping) and set(first) != set(second):
        return ValueError(
            "The two dictionaries don't have the same set of keys. First structure has keys "
            f"{list(first)}, while second structure has keys {list(second)}"
        )
    pairs = zip(_children(first), _children(second), strict=True)
    return next(filter(None, (_difference(a, b, check_types) for a, b in pairs)), None)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise an error unless the two structures are nested in the same way; leaves are not compared.

    TypeError if containers at the same position are of different kinds (such as list and tuple; all
    mappings are the same kind), ValueError if their lengths, keys or nesting differ.
    `check_types=False` ignores the kinds of containers.

    Examples
    --------
    >>> tf.nest.assert_same_structure((1, [2]), (3, [4]))
    """
    difference = _difference(nest1, nest2, check_types)
    if difference is not None:
        raise type(difference)(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: {_describe(nest1)}\n\nSecond structure: {_describe(nest2)}\n\n"
            f"More specifically: {difference}"
        )
