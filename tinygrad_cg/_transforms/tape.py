"""GradientTape: watched tensors, and gradients from the record.

Follows ``tf.GradientTape`` of TensorFlow 2.21.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn

from .. import nest
from .._core import levels
from .._core.conversion import is_tensor
from .._core.devices import on_device_of
from .._core.kinds import is_differentiable
from .._core.levels import Token, add_level, state
from .._core.record import Node, find, held_nodes, is_leaf, watch_tensor
from .._core.suggestions import TAPES, absent_attributes
from .._core.tensor import Aval, Tensor
from .._ops.creation import fill_zeros, zeros
from .._reverse.arguments import (
    UnconnectedGradients,
    check_source,
    check_upstream,
    flat_targets,
    wants_zeros,
)
from .._reverse.sweep import NEVER_ENTERED, differentiate, release
from .._reverse.variable import Variable
from ..errors import ArgumentTypeError, InvalidArgumentError, TapeWarning, warn
from .explanation import explain, mistake, operation_name, reason_by_text
from .jacobians import example_rows, rows

_KINDS = 6  # operations that `repr` names
_NONE = UnconnectedGradients.NONE


_ONE_SET = (
    "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"
)


@absent_attributes(TAPES)
class GradientTape(levels.Listener):
    """Records operations on watched tensors and differentiates them in reverse mode.

    Parameters
    ----------
    persistent:
        Whether `gradient` may be called more than once.
    watch_accessed_variables:
        True to watch trainable Variables as soon as they are read.

    Use it as a context manager. While a tape is active, it records operations on watched tensors,
    including the gradients of inner tapes. Tapes nest to any depth. A tape belongs to the thread
    that entered it. In a notebook, a tape is drawn; see `show`.

    Examples
    --------
    >>> x = tf.constant(3.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x).numpy()
    np.float32(6.0)
    """

    __slots__ = ("_consumed", "_persistent", "_recording", "_token", "_watch_accessed", "_watched")

    _pictures: ClassVar[Callable[..., Any]]  # loads the module; set by the package

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True):
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._token: Token | None = None
        self._recording = False
        self._consumed: Token | None = None  # the last token, once the tape has used it up
        self._watched: dict[int, Variable] = {}

    # What is recorded ------------------------------------------------------------------------

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise ValueError(
                "Tape is still recording, This can happen if you try to re-enter an "
                "already-active tape."
            )
        token = self._token
        if token is None:  # like `_ready`, without a call
            token = self._token = Token()
            if self._watched:
                self._watched = {}
        elif not token.entered:
            token.entered = True
        here = state.__dict__  # of this thread, looked for once
        here["frame"] = add_level(here["frame"], token)
        if self._watch_accessed:
            here["listeners"].append(self)
        self._recording = True
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._recording:
            self._stop(self._token)

    def _stop(self, token: Any) -> int:
        here = state.__dict__
        frame = here["frame"]
        if frame is not None and frame.top is token:
            here["frame"] = frame.outer
            index = 0
        else:
            index = levels.remove(token)
        if self._watch_accessed:
            listeners = here["listeners"]
            if listeners[-1] is self:
                listeners.pop()
            else:
                levels.remove_listener(self)
        self._recording = False
        return index

    def _ready(self) -> Token:
        self._token = token = Token()
        token.entered = self._recording  # True after `reset`
        if self._watched:
            self._watched = {}
        return token

    def __del__(self) -> None:
        try:
            token = self._token
        except AttributeError:  # the call had wrong arguments
            return
        if token is not None:
            token.alive = False
            if self._recording and token in levels.stack(state.frame):
                levels.remove(token)  # entered, but not left

    def watch(self, tensor: Any) -> None:
        """Record all later operations on `tensor` (or Variable, or nested structure).

        Raises TypeError for anything else. Integers have no gradient: they give a warning.
        """
        if type(tensor) is Tensor and tensor._data.dtype.kind == "f":
            token = self._token or self._ready()
            token.watches = True
            watch_tensor(tensor, token)
            return
        flat = nest.flatten(tensor)
        for leaf in flat:
            if not is_tensor(leaf):
                raise ArgumentTypeError(
                    f"GradientTape.watch needs a tensor, got {leaf!r}: write x = tf.constant(...), "
                    "and compute with that x (TensorFlow raises this as "
                    f'"Passed in object {leaf!r} of type {type(leaf).__name__!r}, not tf.Tensor or '
                    'tf.Variable or ExtensionType")'
                )
        token = self._token or self._ready()
        token.watches = True
        for leaf in flat:
            if not is_differentiable(leaf._data.dtype):
                warn(
                    "The dtype of the watched tensor must be floating (e.g. tf.float32), "
                    f"got tf.{leaf.dtype}: write x = tf.cast(x, tf.float32), watch that x and "
                    "compute with it",
                    TapeWarning,
                )
            else:
                self._watch(leaf, token)

    def _watch(self, tensor: Any, token: Token) -> None:
        if (
            self._recording
            and type(tensor._data) is Aval
            and token not in levels.stack(state.frame)
        ):
            warn(
                "GradientTape.watch was called inside a traced function, but its tape is outside "
                "and does not see the tensors inside: watch the argument before the call",
                TapeWarning,
            )
        token.watches = True
        watch_tensor(tensor, token)
        if isinstance(tensor, Variable):
            self._watched[id(tensor)] = tensor

    def variable_read(self, variable: Variable) -> None:
        """Take note that a Variable is about to be read."""
        token = self._token
        if token is None or not variable.trainable or id(variable) in self._watched:
            return
        if is_differentiable(variable.dtype):
            self._watch(variable, token)

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the Variables that this tape watches, in order of their construction."""
        return tuple(sorted(self._watched.values(), key=lambda variable: variable._serial))

    @contextlib.contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Return a context in which this tape records nothing."""
        token = self._token
        if token is None:
            raise RuntimeError("Trying to stop recording a tape which is not recording.")
        if not self._recording:
            raise ValueError("Tape is not recording.")
        before = state.frame
        was_unrecorded = state.frame.outer is levels.UNRECORDED
        index = self._stop(token)
        token.paused = True
        if state.frame is None:
            state.frame = levels.UNRECORDED
        try:
            yield
        finally:
            token.paused = False
            if self._token is token and not self._recording:
                levels.insert(token, index)
                if self._watch_accessed:
                    state.listeners.append(self)
                self._recording = True
                if levels.stack(state.frame) == levels.stack(before):
                    state.frame = before
            elif state.frame is levels.UNRECORDED and not was_unrecorded:
                state.frame = None

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Refuse a copy, which would have no records: they belong to the tensors."""
        raise TypeError(
            "GradientTape: a tape cannot be copied or pickled: compute its gradients where it "
            "recorded (persistent=True for several), and copy these"
        )

    def reset(self) -> None:
        """Discard the record and the watched tensors, and continue recording."""
        if not self._recording or self._token is None:
            raise ValueError("Tape is not recording.")
        index = levels.remove(self._token)
        self._token.alive = False
        self._token = None
        levels.insert(self._ready(), index)

    def __repr__(self) -> str:
        """Return what this tape watches and has recorded, as far as it is still referenced."""
        state = "recording" if self._recording else "closed"
        words = [state, "persistent"] if self._persistent else [state]
        parts = [", ".join(words)]
        nodes = [] if self._token is None else held_nodes([self._token])
        watched = self._watched_texts([node for node in nodes if is_leaf(node)])
        if watched:
            parts.append(f"watches {', '.join(watched)}")
        names = [operation_name(node) for node in sorted(nodes, key=lambda node: node.serial)]
        counts = Counter(filter(None, names))
        if counts:
            total = counts.total()
            kinds = [f"{count} {name}" for name, count in counts.most_common(_KINDS)]
            kinds += ["..."] if len(counts) > _KINDS else []
            operations = "operation" if total == 1 else "operations"
            parts.append(f"recorded {total} {operations} ({', '.join(kinds)})")
        elif self._token is None and self._consumed is not None:
            parts.append("gradient() has freed its record")
        else:
            parts.append("recorded nothing")
        return f"<tg.GradientTape: {'; '.join(parts)}>"

    def _watched_texts(self, leaves: list[Node]) -> list[str]:
        variables = self.watched_variables()
        variable_leaves = (
            [find(variable._rec, self._token) for variable in variables] if self._token else []
        )
        tensors = sorted(
            (leaf for leaf in leaves if leaf not in variable_leaves), key=lambda leaf: leaf.serial
        )
        texts = [f"{tensor.dtype} of shape {tuple(tensor.shape)}" for tensor in tensors]
        texts = [f"{text}" if n == 1 else f"{n} x {text}" for text, n in Counter(texts).items()]
        return texts + [f"Variable {variable.name!r}" for variable in variables]

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the picture of what this tape has recorded, for a notebook; see `show`."""
        return GradientTape._pictures().tape_bundle(self)

    # Gradients -------------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradient of `target` with respect to `sources`, in their structure.

        Parameters
        ----------
        target:
            Tensors to differentiate, nested or not. Several, or a target that is not a
            scalar, are summed.
        sources:
            Tensors or Variables, nested or not.
        output_gradients:
            The upstream gradient of each target, of its shape or (); ones by default.
        unconnected_gradients:
            The gradient if the target does not depend on a source: None, or zeros ("zero").

        Each result has the shape and dtype of its source. Raises RuntimeError at the second
        call unless the tape is persistent, TypeError for other types, ValueError for
        output gradients that do not fit.
        """
        token = self._token or self._refuse()
        zero = unconnected_gradients is not _NONE and wants_zeros(unconnected_gradients)
        targets = [target] if type(target) is Tensor else flat_targets(target)
        flat_sources = [sources] if type(sources) is Tensor else nest.flatten(sources)
        for source in flat_sources:
            if type(source) is not Tensor or source._data.dtype.kind != "f":
                check_source(source)
        upstream = None
        if output_gradients is not None:
            upstream = check_upstream(output_gradients, targets)
        if self._recording:
            self._stop_or_warn(token)
        results, visited = differentiate(
            token, targets, upstream, flat_sources, explain=reason_by_text
        )
        if not visited and not zero:
            self._warn_missing("gradient", token, targets, flat_sources, results)
        if not self._persistent and self._consume(token, visited):
            release(visited, results)
        if zero:
            results = fill_zeros(flat_sources, results)
        if type(sources) is Tensor:
            return results[0]
        return nest.pack_sequence_as(sources, results)

    def _consume(self, token: Token, visited: Sequence[Node] = ()) -> bool:
        """Use the tape up, and return whether no other traced case shares the visited nodes."""
        token.alive = False
        self._token = None
        self._consumed = token
        if state.consumed is None:
            return True
        since, used = state.consumed
        used.append((self, token))
        return all(node.serial > since for node in visited)

    def _warn_missing(
        self, name: str, token: Token, targets: list, sources: list, results: list
    ) -> None:
        """Warn if all gradients are None, and would be None whatever the tape recorded."""
        is_none = all(result is None for result in results)
        if is_none and (reason := mistake(self, token, targets, sources)):
            warn(f"GradientTape.{name}: {reason}", TapeWarning)

    def _refuse(self) -> NoReturn:
        raise RuntimeError(
            f"{_ONE_SET}. Use GradientTape(persistent=True) for more, or a second tape around this "
            "one for a second derivative."
            if self._consumed
            else f'GradientTape.gradient: {NEVER_ENTERED} (TensorFlow raises this as "{_ONE_SET}")'
        )

    def _stop_or_warn(self, token: Token) -> None:
        """Stop recording, or warn, when a gradient is asked for while the tape records."""
        if state.consumed is not None and token not in levels.stack(state.frame):
            raise RuntimeError(
                "GradientTape.gradient was called inside a function, or a branch or loop on a "
                "tensor, but its tape records outside: leave the tape's context first, or enter "
                "the tape inside"
            )
        if self._persistent:
            warn(
                "Calling GradientTape.gradient on a persistent tape inside its context is "
                "significantly less efficient than calling it outside the context: the "
                "backward operations are recorded too. Do it only for higher derivatives.",
                TapeWarning,
            )
        else:
            self._stop(token)

    def explain(self, target: Any, source: Any) -> str:
        """Explain why the gradient of `target` with respect to `source` is None, or that it is not.

        `target` and `source` are Tensors or Variables, or nested structures, which give a line for
        each pair. It finds these causes: the source was never watched, or too late; the target was
        computed before or after the tape recorded; integers; values that left the record
        (`stop_gradient`, ``numpy()``, ``float()``, NumPy arrays that were written into, assignment
        to a Variable), with the line; rules that return None, and tensors that they capture.

        It reads the tape's record, and the source of the calling function and of the functions
        called there. Call it before or after `gradient`, which frees the record of a non-persistent
        tape. Raises TypeError for other types, RuntimeError for an unused tape.

        >>> def why(x):
        ...     with tf.GradientTape() as tape:
        ...         tape.watch(x)
        ...         y = 2.0 * tf.stop_gradient(x)
        ...     return tape.explain(y, x)
        >>> print(why(tf.constant(1.0)))
        The gradient of `y` with respect to `x` is None: `tf.stop_gradient(x)` detaches its
        result (File "...", line 4).
        """
        token = self._token or self._consumed or self._refuse()
        targets, sources = flat_targets(target), nest.flatten(source)
        for variable in sources:
            if not is_tensor(variable):
                check_source(variable)
        frame = sys._getframe(1)
        return "\n".join([explain(self, token, a, b, frame) for a in targets for b in sources])

    # Jacobians -------------------------------------------------------------------------------

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the Jacobian of one tensor `target` with respect to `sources`, in the structure of
        `sources`.

        Each has shape ``target.shape + source.shape``, and the dtype of its source. All rows are
        computed in one sweep. A rule that takes values (``dy.numpy()``, ``if float(x) > 0``) is
        called for each row in it. With ``experimental_use_pfor=False`` there is a sweep for each
        row, which needs a persistent tape.
        `parallel_iterations` has no effect. Otherwise as `gradient`.
        """
        token = self._token or self._refuse()
        zero = wants_zeros(unconnected_gradients)
        output = self._single("jacobian", "target", target)
        flat_sources = nest.flatten(sources)
        for source in flat_sources:
            check_source(source)
        results = self._rows("jacobian", token, rows, output, flat_sources, experimental_use_pfor)
        if not zero:
            self._warn_missing("jacobian", token, [output], flat_sources, results)
        else:
            results = [
                _zeros((*output._data.shape, *source._data.shape), source) if row is None else row
                for source, row in zip(flat_sources, results, strict=True)
            ]
        return nest.pack_sequence_as(sources, results)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Tensor:
        """Return the Jacobian of each slice of `target` with respect to the same slice of `source`.

        Slices are taken along the first axis.

        The shape is ``(batch, *target.shape[1:], *source.shape[1:])``; zeros where the target does
        not depend on the source. Each slice of the target may depend only on the same slice of the
        source. Raises ValueError for tensors of rank 0 or 1, and where the first axes differ.
        Otherwise as `jacobian`.
        """
        token = self._token or self._refuse()
        wants_zeros(unconnected_gradients)
        output = self._single("batch_jacobian", "target", target)
        by = self._single("batch_jacobian", "source", source)
        check_source(by)
        for tensor in (output, by):
            if len(tensor._data.shape) < 2:
                raise InvalidArgumentError(
                    f"Shape {tuple(tensor._data.shape)} must have rank at least 2: "
                    "batch_jacobian works on a batch of vectors or more; use jacobian"
                )
        if output._data.shape[0] != by._data.shape[0]:
            raise InvalidArgumentError(
                "Need first dimension of target shape "
                f"({tuple(output.shape)}) and source shape ({tuple(by.shape)}) to match."
            )
        rows = self._rows("batch_jacobian", token, example_rows, output, by, experimental_use_pfor)
        return _zeros((*output._data.shape, *by._data.shape[1:]), by) if rows is None else rows

    def _rows(
        self, name: str, token: Token, compute: Callable, target: Any, by: Any, batched: bool
    ) -> Any:
        if not batched and not self._persistent:
            raise RuntimeError(
                f"GradientTape must be created with persistent=True to compute the {name} with "
                "eager execution enabled and with  experimental_use_pfor set to False."
            )
        if self._recording:
            self._stop_or_warn(token)
        rows = compute(token, target, by, batched)
        if not self._persistent:
            self._consume(token)
        return rows

    @staticmethod
    def _single(name: str, role: str, value: Any) -> Any:
        if not is_tensor(value):
            raise TypeError(
                f"GradientTape.{name}: {role} must be one Tensor or Variable, got "
                f"{type(value).__name__}"
            )
        return value


@contextlib.contextmanager
def keep_tapes() -> Iterator[None]:
    """Return a context for one of several cases, in which it finds the tapes unused by others."""
    before, frame, listeners = state.consumed, state.frame, list(state.listeners)
    state.consumed = levels.next_serial(), []
    try:
        yield
    finally:
        (_, used), state.consumed = state.consumed, before
        recording = levels.stack(frame) if used else []
        for tape, token in used:
            tape._token, tape._consumed, token.alive = token, None, True
            if token in recording and not tape._recording:
                tape._recording, state.frame, state.listeners = True, frame, listeners


def _zeros(shape: tuple[int, ...], source: Any) -> Tensor:
    """Return zeros with a given shape, and with the dtype and device of a source."""
    with on_device_of(source):
        return zeros(shape, source.dtype)
