"""custom_gradient: functions that bring their own gradient rule, nested to any order.

Follows ``tf.custom_gradient`` of TensorFlow 2.21 and ``keras.ops.custom_gradient`` of
Keras 3.15. The function runs while tapes record its inner operations, for its rule may close
over them; then its outputs get a new producer, the rule, on exactly the tapes that watch one
of its inputs. On any other tape the inner operations stand.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from .. import nest
from .._core import devices
from .._core.conversion import convert, convert_result, is_tensor, is_weak
from .._core.kinds import is_differentiable
from .._core.levels import Listener, remove_listener, state
from .._core.suggestions import RULES, absent_attributes, reads_own_arguments
from .._core.tensor import Tensor
from .._core.transformed import returns_transformed
from .._ops.validation import as_count
from .._reverse.variable import Variable
from .calls import Call, one_output
from .definition import Definition, RuleSignature, check_result, runs
from .max_order import limit
from .outside_runs import finish_run, pack_present, start_run
from .rebinding import copy, rebind_outputs

P = ParamSpec("P")
Y = TypeVar("Y")


class Bind:
    """A decorated function that is also a method when it stands in a class.

    ``Bind.decorator(d)`` makes a decorator of ``d(function, args, kwargs)``; `function` is
    bound to the instance where there is one.
    """

    __slots__ = ("__dict__", "__weakref__", "made_by")  # as `Transformed` has

    def __init__(self, function: Any, decorated: Callable[[Any, tuple, dict], Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self._decorated = decorated

    @classmethod
    def decorator(cls, decorated: Callable[[Any, tuple, dict], Any]) -> Callable[[Any], Bind]:
        return lambda function: cls(function, decorated)

    def __get__(self, instance: Any, owner: Any = None) -> Bind:
        if hasattr(self._function, "__get__"):
            bound = self._function.__get__(instance, owner)
            if bound is not self._function:
                return Bind(bound, self._decorated)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._decorated(self._function, args, kwargs)

    @property
    def own_definition(self) -> Definition | None:
        """The definition of a custom gradient; None for what another decorator made."""
        return getattr(getattr(self._decorated, "__self__", None), "definition", None)

    def __repr__(self) -> str:
        return f"<custom gradient {getattr(self, '__qualname__', self._function)!r}>"


absent_attributes(RULES, "the custom gradient")(Bind)


@overload
def custom_gradient(
    f: Callable[P, tuple[Y, Any]], *, max_order: int | None = None
) -> Callable[P, Y]: ...
@overload
def custom_gradient(
    f: None = None, *, max_order: int | None = None
) -> Callable[[Callable[P, tuple[Y, Any]]], Callable[P, Y]]: ...
@reads_own_arguments
def custom_gradient(f: Any = None, *, max_order: int | None = None) -> Any:
    """Decorate a function that returns its value together with its gradient rule.

    Parameters
    ----------
    f:
        ``f(*args, **kwargs)`` returns ``(y, grad_fn)``. `y` is a nested structure of tensors, of
        any shapes and dtypes; ``grad_fn(*dys)`` takes their upstream gradients, flattened, and
        returns the gradient of each input, flattened: tensors of the inputs' shapes and dtypes, or
        None. If f uses trainable Variables that are not among its arguments, ``grad_fn(*dys,
        variables=[...])`` returns a pair: these gradients and the list of the Variables' gradients.
        ``grad_fn(*inputs, upstream)`` is called as in Keras.
    max_order:
        The highest order at which the rule is right, if it is limited. A derivative of a higher
        order raises a DerivativeOrderError.

    Returns
    -------
    A `Bind`: calling it returns y, and gradients through y use the rule. Rules
    written in operations can be differentiated again; a rule may itself be a custom gradient.

    Inputs are all numbers, arrays and tensors among the positional arguments, and tensors passed by
    keyword. Raises TypeError if f is not callable, or at the call if it does not return a pair with
    a fitting rule; ValueError at the gradient if the rule returns a wrong number of gradients or
    wrong shapes. A `CustomGradientWarning` appears if a tape bypasses the rule.

    Both f and its rule may read values (``x.numpy()``, ``if float(x) > 0``). They are then called
    once for each example or row of a batch (`vmap`, `jacobian`, `hessian`), and at each call of the
    program in a `function`; code that consists of operations is called once. Tapes do not see NumPy
    code: a rule in NumPy has a derivative only if it is a custom gradient itself.

    Modelled on ``tf.custom_gradient`` and ``keras.ops.custom_gradient``.

    Examples
    --------
    >>> @tf.custom_gradient
    ... def log1pexp(x):
    ...     e = tf.exp(x)
    ...     return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> tf.grad(log1pexp)(100.0).numpy()  # without the rule: nan
    np.float32(1.0)
    """
    if max_order is not None:
        as_count("custom_gradient", "max_order", max_order, 1)
    if f is None:
        return functools.partial(custom_gradient, max_order=max_order)
    if hasattr(f, "forward") and hasattr(f, "backward"):
        name = getattr(f, "__name__", type(f).__name__)
        raise TypeError(
            f"custom_gradient decorates a function, got {name} with `forward` and `backward`: "
            "write one function that computes `forward` and returns (y, grad_fn). grad_fn(dy) is "
            "`backward`; it can read the local names of this function, so nothing must be saved"
        )
    if not callable(f):
        raise TypeError(f"custom_gradient decorates a function, got {type(f).__name__} {f!r}")
    around = running_functions()
    decorated = _Decorated(Definition(f, outer=around[-1] if around else None), max_order)
    return Bind(f, decorated.call if max_order is None else decorated.call_limited)


class _Accessed(dict, Listener):
    """Listens while a decorated function runs: the trainable Variables that it uses, by id."""

    __slots__ = ("created", "definition")
    created: set[int]  # the ids of those made while it listens, where there are any

    def variable_created(self, variable: Variable) -> None:
        self.created = getattr(self, "created", set()) | {id(variable)}

    def variable_read(self, variable: Variable) -> None:
        if variable.trainable and is_differentiable(variable._data.dtype):
            self[id(variable)] = variable

    variable_assigned = variable_read


def running_functions() -> list[Definition]:
    """Return the decorated functions that are running in this thread, innermost last."""
    return [listener.definition for listener in state.listeners if isinstance(listener, _Accessed)]


class _Decorated:
    """One decorated function, and what its calls do."""

    def __init__(self, definition: Definition, most: Any):
        self.definition = definition
        self.most = most  # the highest order at which its rule is right

    def call(self, function: Any, args: tuple, kwargs: dict) -> Any:
        definition = self.definition
        frame = state.frame
        run = None if frame is None or frame.level is None else start_run()
        accessed = _Accessed()
        accessed.definition = definition
        listeners = state.listeners
        listeners.append(accessed)
        try:
            if run is not None:
                with run:
                    result = function(*args, **kwargs)
            else:
                result = function(*args, **kwargs) if kwargs else function(*args)
        except TypeError as error:
            definition.refuse_context(error)
            raise
        finally:
            if listeners[-1] is accessed:
                listeners.pop()
            else:
                remove_listener(accessed)
        if type(result) is not tuple or len(result) != 2 or not callable(result[1]):
            result = check_result(definition, result)
        y, grad_fn = result
        if run is not None and run.values:  # it needs values, so it is called for each example
            call = functools.partial(self.call, function)
            return finish_run(definition, run, call, (args, kwargs), y, function)
        single = type(y) is Tensor
        outputs: Sequence[Tensor] = (y,)
        if not single:
            leaves = [leaf for leaf in nest.flatten(y) if leaf is not None]
            try:
                outputs = [convert_result(leaf, (args, kwargs)) for leaf in leaves]
            except TypeError as error:
                error.add_note(
                    f"The function `{definition.name}` returned it ({definition.where()})"
                )
                raise
        variables = _own_variables(accessed, args, kwargs, grad_fn) if accessed else None
        rule = definition.rule(grad_fn, 1 if single else len(outputs), variables)
        if frame is None:
            return copy(y) if single else pack_present(y, map(copy, outputs))
        inputs: Any
        if kwargs:
            inputs, paths = flat_inputs(definition, args, kwargs)
        else:
            inputs, paths = args, None
            for leaf in args:
                if type(leaf) is not Tensor:
                    inputs, paths = flat_inputs(definition, args, kwargs)
                    break
        kept = inputs if rule.keras else None
        if paths is not None:
            inputs = [convert(leaf) if is_tensor(leaf) else None for leaf in inputs]
        homes = devices.homes(inputs) if devices.array_types else None
        parts = rule, definition, grad_fn, len(inputs), paths, kept, variables, homes
        call = _new_call(Call, parts)
        if single and paths is None and variables is None and frame.level is None:
            return one_output(frame, call, inputs, y)
        if frame.level is not None:
            frame.level.custom_called(call, function, args, kwargs)
        if variables:
            inputs = [*inputs, *[variable._read() for variable in variables]]
        results = rebind_outputs(frame, call, inputs, outputs)
        return results[0] if single else pack_present(y, results)

    def call_limited(self, function: Any, args: tuple, kwargs: dict) -> Any:
        return self.call(limit(function, self.definition, self.most), args, kwargs)


runs[_Decorated.call.__code__] = True
_new_call: Any = tuple.__new__


def _own_variables(
    accessed: _Accessed, args: tuple, kwargs: dict, grad_fn: Any
) -> list[Variable] | None:
    """Return the Variables that the rule has to give gradients of; None for none.

    Those that the function made itself only if the rule takes Variables.
    """
    for leaf in nest.flatten((args, kwargs)):
        accessed.pop(id(leaf), None)
    if accessed and hasattr(accessed, "created") and not RuleSignature(grad_fn).takes_variables:
        for variable in accessed.created:
            accessed.pop(variable, None)
    return sorted(accessed.values(), key=lambda variable: variable._serial) or None


def flat_inputs(definition: Definition, args: tuple, kwargs: dict) -> tuple[list, list[tuple]]:
    """Return the inputs of a call, one for each gradient its rule must return, and their paths."""
    names = definition.keyword_order(kwargs) if kwargs else ()
    leaves = [
        (leaf, (root, path))
        for root, argument in (*enumerate(args), *[(name, kwargs[name]) for name in names])
        for path, leaf in nest.flatten_paths(argument)
        if is_tensor(leaf)
        or (type(root) is int and (is_weak(leaf) or isinstance(leaf, np.ndarray)))
    ]
    return [leaf for leaf, _ in leaves], [path for _, path in leaves]


@returns_transformed
def grad_pass_through(f: Callable[P, Y]) -> Callable[P, Y]:
    """Decorate a function so that gradients pass through it unchanged.

    Each input must have the shape of the output at its position. Variables that f
    uses get None. Modelled on ``tf.grad_pass_through``.

    Examples
    --------
    >>> rounded = tf.grad_pass_through(tf.round)
    >>> tf.grad(lambda x: 2.0 * rounded(x))(1.7).numpy()
    np.float32(2.0)
    """

    def through(*args: Any, **kwargs: Any) -> Any:
        def grad(*dys: Any, variables: Any = None) -> Any:
            return dys if variables is None else (dys, [None] * len(variables))

        return f(*args, **kwargs), grad

    functools.update_wrapper(through, f, updated=())
    decorated: Any = custom_gradient(through)
    decorated.__wrapped__ = f
    return decorated
