"""GradientTape: what is watched, and gradients of what was recorded.

Follows ``tf.GradientTape`` of TensorFlow 2.21.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from . import levels, nest
from .convert import FLOAT32, convert, is_differentiable, is_tensor
from .errors import ArgumentTypeError, InvalidArgumentError, TapeWarning, warn
from .levels import Late, Token, find, state, watch_tensor
from .ops.creation import ones_like, zeros_like
from .ops.elementwise import add
from .ops.shape import broadcast_to, cast
from .sweep import release, sweep
from .tensor import Tensor
from .variable import Variable


class UnconnectedGradients(enum.Enum):
    """What the gradient is where no path leads from the target to a source."""

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records operations on watched tensors, to differentiate them in reverse.

    Parameters
    ----------
    persistent:
        Whether `gradient` may be called more than once.
    watch_accessed_variables:
        Whether trainable Variables are watched as soon as they are read.

    Use it as a context manager. Tapes nest to any depth: each records what is computed while
    it is active from what it watches, gradients of inner tapes included. A tape belongs to
    the thread that entered it.
    """

    __slots__ = ("_persistent", "_recording", "_token", "_watch_accessed", "_watched")

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._token: Token | None = None
        self._recording = False
        self._watched: dict[int, Variable] = {}

    # What is recorded ------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                "already-active tape."
            )
        levels.push(self._token or self._ready())
        if self._watch_accessed:
            state.listeners.append(self)
        self._recording = True
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._recording:
            self._stop(self._token)

    def _stop(self, token: Any) -> int:
        place = levels.remove(token)
        if self._watch_accessed:
            listeners = state.listeners
            if listeners[-1] is self:
                listeners.pop()
            else:
                levels.remove_listener(self)
        self._recording = False
        return place

    def _ready(self) -> Token:
        if self._token is None:
            self._token = Token()
            self._watched = {}
        return self._token

    def __del__(self) -> None:
        token = getattr(self, "_token", None)
        if token is not None:
            token.alive = False

    def watch(self, tensor: Any) -> None:
        """Record what is computed from `tensor` (or Variable, or nested structure) from now on.

        Raises TypeError for anything else. Integers have no gradient: they give a warning.
        """
        if type(tensor) is Tensor and tensor._data.dtype.kind == "f":
            watch_tensor(tensor, self._token or self._ready())
            return
        flat = nest.flatten(tensor)
        for one in flat:
            if not is_tensor(one):
                raise ArgumentTypeError(
                    f"Passed in object {one!r} of type {type(one).__name__!r}, not tf.Tensor or "
                    "tf.Variable or ExtensionType: GradientTape.watch needs a Tensor; wrap the "
                    "value in constant() before it is used"
                )
        token = self._ready()
        for one in flat:
            if not is_differentiable(one._data.dtype):
                warn(
                    "The dtype of the watched tensor must be floating (e.g. float32), "
                    f"got {one.dtype}",
                    TapeWarning,
                )
            else:
                self._watch(one, token)

    def _watch(self, one: Any, token: Token) -> None:
        watch_tensor(one, token)
        if isinstance(one, Variable):
            self._watched[id(one)] = one

    def variable_read(self, variable: Variable) -> None:
        """A listener's call: a Variable is about to be read."""
        token = self._token
        if variable.trainable and token is not None and id(variable) not in self._watched:
            if is_differentiable(variable.dtype):
                self._watch(variable, token)

    def variable_assigned(self, variable: Variable) -> None:
        """A listener's call: assigning is not differentiated."""

    def watched_variables(self) -> tuple[Variable, ...]:
        """The Variables that this tape watches, in order of their construction."""
        return tuple(sorted(self._watched.values(), key=lambda variable: variable._serial))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A context in which this tape records nothing."""
        token = self._token
        if token is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        if not self._recording:
            raise ValueError("Tape is not recording.")
        place = self._stop(token)
        token.paused = True
        if state.frame is None:
            state.frame = levels.QUIET
        try:
            yield
        finally:
            token.paused = False
            if self._token is token and not self._recording:
                levels.insert(token, min(place, len(state.levels)))
                if self._watch_accessed:
                    state.listeners.append(self)
                self._recording = True

    def reset(self) -> None:
        """Forget everything recorded and watched, and go on recording."""
        if not self._recording or self._token is None:
            raise ValueError("Tape is not recording.")
        place = levels.remove(self._token)
        self._token.alive = False
        self._token = None
        levels.insert(self._ready(), place)

    # Gradients -------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """The gradient of `target` by each of `sources`, in the structure of `sources`.

        Parameters
        ----------
        target:
            Tensors to differentiate, nested as you like. Several, or a target that is not a
            scalar, are summed.
        sources:
            Tensors or Variables to differentiate by, nested as you like.
        output_gradients:
            The upstream gradient of each target, of its shape or (); ones by default.
        unconnected_gradients:
            What a source gets that the target does not depend on: None, or zeros ("zero").

        Each result has the shape and dtype of its source. Raises RuntimeError at the second
        call unless the tape is persistent, TypeError for what is not a tensor, ValueError for
        output gradients that do not fit.
        """
        token = self._token
        if token is None:
            raise RuntimeError(
                "A non-persistent GradientTape can only be used to compute one set of "
                "gradients (or jacobians). Use GradientTape(persistent=True) for more."
            )
        zero = wants_zeros(unconnected_gradients)
        targets = flat_targets(target)
        flat_sources = [sources] if type(sources) is Tensor else nest.flatten(sources)
        for source in flat_sources:
            if type(source) is not Tensor or source._data.dtype.kind != "f":
                check_source(source)
        upstream = None
        if output_gradients is not None:
            upstream = check_upstream(output_gradients, targets)
        if self._recording:
            if self._persistent:
                warn(
                    "Calling GradientTape.gradient on a persistent tape inside its context is "
                    "significantly less efficient than calling it outside the context: the "
                    "backward operations are recorded too. Do it only for higher derivatives.",
                    TapeWarning,
                )
            else:
                self._stop(token)
        results, visited = differentiate(token, targets, upstream, flat_sources)
        if not self._persistent:
            token.alive = False
            self._token = None
            release(visited)
        if zero:
            results = fill_zeros(flat_sources, results)
        if type(sources) is Tensor:
            return results[0]
        return nest.pack_sequence_as(sources, results)


def differentiate(
    token: Token,
    targets: list,
    upstream: Sequence | None,
    sources: list,
    stopped: Sequence = (),
) -> tuple:
    """The gradient by each source (None where unconnected), and the nodes visited."""
    seeds, unrecorded = [], []
    for i, target in enumerate(targets):
        node = find(target._rec, token)
        gradient = None if upstream is None else upstream[i]
        if node is not None:
            seeds.append((node, _seed(target, gradient)))
        elif is_differentiable(target._data.dtype):
            unrecorded.append((target, gradient))
    nodes = [find(source._rec, token) for source in sources]
    constants = {find(one._rec, token) for one in stopped} if stopped else ()
    totals, visited = sweep(token, seeds, set(nodes), constants)
    results = [totals.get(node) for node in nodes]
    for target, gradient in unrecorded:
        _add_directly(token, target, gradient, sources, results)
    return results, visited


def _add_directly(token: Token, target: Any, gradient: Any, sources: list, results: list) -> None:
    """A target that was not recorded depends on itself alone: on a source that it is."""
    places = [i for i, source in enumerate(sources) if source is target]
    for i in places:
        known, seed = results[i], _seed(target, gradient)
        results[i] = seed if known is None else add(known, seed)
    if not places and _is_late(target._rec, token):
        warn(
            "target was computed after the tape closed (or in a thread where it does not "
            "record), so it has no gradient: compute it inside the tape's context",
            TapeWarning,
        )


def _is_late(record: Any, token: Token) -> bool:
    """Whether a tensor without a node for `token` was computed from one that has one."""
    pending, seen = [record], set()
    while pending:
        one = pending.pop()
        while one is not None and one not in seen:
            seen.add(one)
            if type(one) is Late:
                if token in one.late:
                    return True
            elif token in one.group:
                return True
            else:
                pending += one.inputs
            one = one.next
    return False


_ones: dict = {}


def _seed(target: Any, gradient: Any) -> Tensor:
    if gradient is None:
        data = target._data
        if data.shape:
            return ones_like(target)
        one = _ones.get(data.dtype)
        if one is None:
            one = _ones[data.dtype] = ones_like(target)._data
        return Tensor(one)
    if gradient.dtype != target.dtype:
        gradient = cast(gradient, target.dtype)
    return broadcast_to(gradient, target.shape) if gradient.shape != target.shape else gradient


def flat_targets(target: Any) -> list:
    if target is None:
        raise TypeError(
            "Argument `target` should be a list or nested structure of Tensors, Variables or "
            "CompositeTensors to be differentiated, but received None."
        )
    if type(target) is Tensor:
        return [target]
    flat = nest.flatten(target)
    for one in flat:
        if not is_tensor(one):
            _refuse("target", one, "; did the function leave the library?")
    return flat


def check_source(source: Any) -> None:
    if not is_tensor(source):
        _refuse("source", source, "; wrap it in constant() and watch it before it is used")
    if not is_differentiable(source._data.dtype):
        warn(
            "The dtype of the source tensor must be floating (e.g. float32) when calling "
            f"GradientTape.gradient, got {source.dtype}: its gradient is None",
            TapeWarning,
        )


def _refuse(role: str, value: Any, remedy: str) -> NoReturn:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    words = ""
    if value is None:
        name = "None"
        words = "Cannot convert the argument `type_value`: None to a TensorFlow DType. "
    raise TypeError(
        f"{words}{role} must be a Tensor or Variable, got {name}: {role} is {name}, not a "
        f"Tensor{remedy}"
    )


def check_upstream(output_gradients: Any, targets: list) -> list:
    """One upstream gradient per target, checked."""
    flat = nest.flatten(output_gradients)
    if len(flat) != len(targets):
        raise ValueError(
            f"{_count(len(targets), 'target')}, {_count(len(flat), 'output gradient')}: "
            "output_gradients needs one entry for each target (wrap the values for one target "
            "in constant())"
        )
    checked = []
    for i, (gradient, target) in enumerate(zip(flat, targets, strict=True)):
        if gradient is None:
            raise ValueError(
                f"output_gradients[{i}]: Attempt to convert a value (None) with an unsupported "
                "type to a Tensor; pass ones_like(target) for the default"
            )
        dtype = target.dtype if is_differentiable(target.dtype) else FLOAT32
        tensor = convert(gradient, dtype)
        if tensor.shape not in (target.shape, ()):
            raise InvalidArgumentError(
                f"output_gradients[{i}] has shape {tuple(tensor.shape)}, target has shape "
                f"{tuple(target.shape)}"
            )
        checked.append(tensor)
    return checked


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)


def fill_zeros(sources: Sequence, results: Sequence) -> list:
    """`results` with zeros, of the sources' shapes and dtypes, in place of None."""
    return [
        zeros_like(source) if result is None else result
        for source, result in zip(sources, results, strict=True)
    ]


def wants_zeros(choice: Any) -> bool:
    if choice is UnconnectedGradients.NONE:
        return False
    try:
        return UnconnectedGradients(choice) is UnconnectedGradients.ZERO
    except ValueError:
        raise ValueError(
            f"Unknown value for unconnected_gradients: {choice!r}: use 'none' or 'zero'"
        ) from None
