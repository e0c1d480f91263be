"""Checkpoints: a file with the values of Variables, named by their paths.

Modelled on ``tf.train``.
"""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime.store import write_complete

from ._core.suggestions import refuse_name
from ._ops.validation import as_count
from ._reverse.generator import Generator
from ._reverse.variable import Variable
from .errors import InvalidArgumentError, warn
from .module import Module
from .optimizers import Optimizer

__all__ = ["Checkpoint", "CheckpointManager", "latest_checkpoint"]
__dir__ = __all__.copy  # what dir() shows
__getattr__ = partial(refuse_name, __name__)


class Checkpoint:
    """A group of objects whose Variables are saved to a file and restored from it.

    Parameters
    ----------
    root:
        An object whose own attributes are saved by their names.
    objects:
        Variables, modules, optimizers, metrics, other checkpoints, and lists and dicts of them, by
        their names in the file. You can set more as attributes.

    A file is NumPy's ``.npz``: an array for each Variable, named by the path to it, such as
    ``model/layers/0/kernel``. `numpy.load` can read it; TensorFlow cannot. An
    optimizer's slots for a Variable are named by the path to that Variable: both belong in the same
    checkpoint.

    Examples
    --------
    >>> import tempfile
    >>> w = tf.Variable([1.0, 2.0])
    >>> checkpoint = tf.train.Checkpoint(w=w)
    >>> path = checkpoint.write(tempfile.mkdtemp() + "/first")
    >>> _ = w.assign([0.0, 0.0])
    >>> _ = checkpoint.read(path)
    >>> w.numpy()
    array([1., 2.], dtype=float32)
    """

    def __init__(self, root: Any = None, **objects: Any):
        for name, value in {"root": root, **objects}.items():
            if not (_is_saved(value) or value is None):
                raise ValueError(
                    f"Checkpoint: {name} must be a Variable, a module, an optimizer, a metric, or "
                    f"a list or dict of them, got {type(value).__name__}: save numbers as Variables"
                )
        self._root = root
        self.save_counter: Variable = Variable(0, trainable=False, dtype=np.int64)
        vars(self).update(objects)

    def _variables(self) -> dict[str, Variable]:
        """Return all Variables by path."""
        variables: dict[str, Variable] = {}
        optimizers: list[tuple[str, Optimizer]] = []
        if self._root is not None:
            variables.update(_paths("", self._root, optimizers, ()))
        for name, value in vars(self).items():
            variables.update(_paths(name, value, optimizers, ()))
        paths = {id(variable): path for path, variable in reversed(variables.items())}
        for path, optimizer in optimizers:
            for number, (key, kept) in enumerate(optimizer._kept.items()):
                of = paths.get(id(key.deref()), str(number))
                slots = zip(optimizer.slots, kept, strict=True)
                variables.update(
                    {f"{path}/slots/{of}/{slot}": variable for slot, variable in slots}
                )
        return {path.lstrip("/"): variable for path, variable in variables.items()}

    def _build(self, names: Mapping[str, Any]) -> None:
        """Create what optimizers keep for Variables, where a file has it."""
        optimizers: list[tuple[str, Optimizer]] = []
        own = {f"/{path}": variable for path, variable in self._variables().items()}
        for name, value in {"": self._root, **vars(self)}.items():
            list(_paths(name, value, optimizers, ()))
        for path, optimizer in optimizers:
            for slot in optimizer.slots[:1]:
                for of, variable in own.items():
                    if f"{path}/slots/{of[1:]}/{slot}".lstrip("/") in names:
                        optimizer.build([variable])

    def write(self, file_prefix: Any, options: Any = None) -> str:
        """Write the current values to the file `file_prefix` + ".npz"; returns `file_prefix`."""
        prefix = os.fspath(file_prefix)
        path = Path(f"{prefix}.npz")
        values = {name: variable.numpy() for name, variable in self._variables().items()}

        def write(file: Any) -> None:
            with zipfile.ZipFile(file, "w") as archive:  # savez has a parameter `file`
                for name, value in values.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, value, allow_pickle=False)

        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_complete(path, write)
        except OSError as error:
            words = f"Checkpoint.write: cannot write {path}: {error.strerror}"
            raise OSError(error.errno, words) from None
        return prefix

    def save(self, file_prefix: Any, options: Any = None) -> str:
        """Write a file whose name ends with a number, one more each time; returns its prefix."""
        self.save_counter.assign_add(1)
        prefix = self.write(f"{os.fspath(file_prefix)}-{int(self.save_counter)}")
        _note(Path(prefix).parent, [Path(prefix).name])
        return prefix

    def read(self, save_path: Any, options: Any = None) -> CheckpointLoadStatus:
        """Assign the values in a file, by its prefix. If some do not fit, nothing is assigned.

        The result checks whether both sides have the same names; it warns if you do not call it and
        the file has more. FileNotFoundError without the file; InvalidArgumentError for another
        shape or dtype, and for a file that is not complete.
        """
        if save_path is None:
            return CheckpointLoadStatus([], [])
        path = Path(f"{os.fspath(save_path)}.npz")
        if not path.is_file():
            raise FileNotFoundError(f"Checkpoint: there is no file {path}")
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                values = {name: file[name] for name in file.files}
        except (zipfile.BadZipFile, EOFError, ValueError) as error:
            raise InvalidArgumentError(
                f"Checkpoint: {path} is not a complete checkpoint: {error}"
            ) from None
        self._build(values)
        own = self._variables()
        for name in own.keys() & values.keys():
            here, there = (
                (tuple(variable.shape), variable.dtype) for variable in (own[name], values[name])
            )
            if here != there:
                raise InvalidArgumentError(
                    f"Checkpoint: {name} has shape {here[0]} and dtype {here[1]}, and in "
                    f"{path} {there[0]} and {there[1]}"
                )
        for name in own.keys() & values.keys():
            own[name].assign(values[name])
        return CheckpointLoadStatus(sorted(values.keys() - own), sorted(own.keys() - values.keys()))

    restore = read


def _is_saved(value: Any) -> bool:
    if isinstance(value, (list, tuple, Mapping)):
        parts = value.values() if isinstance(value, Mapping) else value
        return all(map(_is_saved, parts))
    kinds = (Variable, Module, Checkpoint, Generator)
    return isinstance(value, kinds) or hasattr(value, "variables")


def _paths(
    path: str, value: Any, optimizers: list[tuple[str, Optimizer]], above: tuple[int, ...]
) -> Iterator[tuple[str, Variable]]:
    """Yield the Variables in a value with their paths; optimizers are collected in a list."""
    if isinstance(value, Variable):
        yield path, value
        return
    if id(value) in above or isinstance(value, (str, bytes)):
        return
    parts: Mapping[Any, Any] = {}
    if isinstance(value, Optimizer):
        optimizers.append((path, value))
        slots = {id(slot) for kept in value._kept.values() for slot in kept}
        parts = {
            k: variable for k, variable in enumerate(value.variables) if id(variable) not in slots
        }
    elif isinstance(value, (Module, Checkpoint, Generator)):
        parts = {name: part for name, part in vars(value).items() if name != "_root"}
    elif isinstance(value, Mapping):
        parts = value
    elif isinstance(value, (list, tuple)):
        parts = dict(enumerate(value))
    elif isinstance(getattr(value, "variables", None), (list, tuple)):
        parts = dict(enumerate(value.variables))
    for name, part in parts.items():
        yield from _paths(f"{path}/{name}", part, optimizers, (*above, id(value)))


class CheckpointLoadStatus:
    """What was in a file alone, and among the objects alone, when a checkpoint was read."""

    def __init__(self, unused: list[str], missing: list[str]):
        self._unused, self._missing = unused, [name for name in missing if name != "save_counter"]
        self._is_asked = False

    def assert_consumed(self) -> CheckpointLoadStatus:
        """Raise AssertionError unless the file and the objects have the same names."""
        self._is_asked = True
        if self._unused:
            raise AssertionError(
                f"the file has values without an object: {', '.join(self._unused)}"
            )
        return self.assert_existing_objects_matched()

    def assert_existing_objects_matched(self) -> CheckpointLoadStatus:
        """Raise AssertionError unless each Variable has its value from the file."""
        self._is_asked = True
        if self._missing:
            raise AssertionError(f"the file has no values of {', '.join(self._missing)}")
        return self

    def expect_partial(self) -> CheckpointLoadStatus:
        """Return this: nothing is said of values that were not used."""
        self._is_asked = True
        return self

    def __del__(self) -> None:
        if self._unused and not self._is_asked:
            warn(
                "Checkpoint: the file has values without an object: "
                f"{', '.join(self._unused)}. Create the Variables first "
                "(optimizer.build(variables) creates an optimizer's), or call "
                "restore(path).expect_partial()",
                UserWarning,
            )


class CheckpointManager:
    """Saves numbered checkpoints in a directory, and keeps the latest `max_to_keep` files.

    None keeps all files. Files of earlier processes in the directory count.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        directory: Any,
        max_to_keep: int | None,
        checkpoint_name: str = "ckpt",
    ):
        if max_to_keep is not None:
            as_count("CheckpointManager", "max_to_keep", max_to_keep, 1)
        if not isinstance(checkpoint, Checkpoint):
            kind = type(checkpoint).__name__
            raise TypeError(f"CheckpointManager: checkpoint must be a Checkpoint, got {kind}")
        self.checkpoint = checkpoint
        self.directory: str = os.fspath(directory)
        self._name, self._most = checkpoint_name, max_to_keep

    @property
    def checkpoints(self) -> list[str]:
        """Return the prefixes of the files, the latest last."""
        return _noted(Path(self.directory))

    @property
    def latest_checkpoint(self) -> str | None:
        """Return the prefix of the latest file; None without files."""
        return latest_checkpoint(self.directory)

    def save(self, checkpoint_number: Any = None) -> str:
        """Save a file, remove the oldest if there are too many, and return its prefix."""
        folder = Path(self.directory)
        if checkpoint_number is not None:
            self.checkpoint.save_counter.assign(int(checkpoint_number) - 1)
        before = [Path(prefix).name for prefix in self.checkpoints]
        prefix = self.checkpoint.save(folder / self._name)
        names = [*dict.fromkeys([*before, Path(prefix).name])]
        kept = names if self._most is None else names[-self._most :]
        _note(folder, kept)
        for name in set(names) - set(kept):
            (folder / f"{name}.npz").unlink(missing_ok=True)
        return prefix

    def restore_or_initialize(self) -> str | None:
        """Read the latest file, if any exists; returns its prefix."""
        self.checkpoint.restore(self.latest_checkpoint)
        return self.latest_checkpoint


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the prefix of the latest file in a directory; None without files."""
    noted = _noted(Path(os.fspath(checkpoint_dir)), latest_filename or "checkpoint")
    return noted[-1] if noted else None


def _noted(folder: Path, file: str = "checkpoint") -> list[str]:
    """Return the prefixes in the text file that lists the checkpoints."""
    try:
        text = (folder / file).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    names = re.findall(r'^all_model_checkpoint_paths: "(.*)"$', text, re.MULTILINE)
    return [str(folder / name) for name in names if (folder / f"{name}.npz").is_file()]


def _note(folder: Path, names: list[str]) -> None:
    """Write the text file that lists the checkpoints, as TensorFlow does."""
    lines = [f'model_checkpoint_path: "{names[-1]}"']
    lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
    text = "\n".join([*lines, ""]).encode()
    write_complete(folder / "checkpoint", lambda file: file.write(text))
