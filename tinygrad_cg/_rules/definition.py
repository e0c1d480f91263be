"""Definitions of custom gradients, and the signatures of their rules."""

from __future__ import annotations

import contextlib
import inspect
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import CodeType, FrameType, FunctionType
from typing import TYPE_CHECKING, Any

from .._core.levels import Frame, stack, state, tokens_of
from .._core.record import find_tokens
from .._core.tensor import ArrayLike
from ..errors import CustomGradientWarning, location_of, users_line
from .user_code import only_decides

if TYPE_CHECKING:
    from .._reverse.variable import Variable


def source_line(function: Any) -> tuple[str, int]:
    """Return the file and line where `function` was written."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        code = getattr(getattr(function, "func", type(function).__call__), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("<unknown>", 0)


def closure(function: Any) -> dict[str, Any]:
    """Return what a function captures, by the names that it has for it."""
    function = getattr(function, "__func__", function)
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    values = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        with contextlib.suppress(ValueError):  # a cell that nothing was assigned to yet
            values[name] = cell.cell_contents
    return values


_BY_KEYWORD = ("variables", "needs_input_grad")
_ANY_NUMBER = inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)


def _parameters(function: Any, unknown: Sequence[inspect.Parameter] = ()) -> Sequence:
    """Return the parameters of a callable; `unknown` if it has no signature, as `max`."""
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return unknown


class RuleSignature:
    """The signature of a `grad_fn`, kept, for reading it costs more than an operation."""

    __slots__ = (
        *("fewest", "keras", "missing", "most", "nested", "special", "takes_needs"),
        "takes_variables",
    )

    def __init__(self, grad_fn: Any):
        if type(grad_fn) is FunctionType and not hasattr(grad_fn, "__wrapped__"):
            code = grad_fn.__code__
            names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            positional = list(names[: code.co_argcount])
            optional = len(grad_fn.__defaults__ or ())
            keyword_only = names[code.co_argcount :]
            required = [name for name in keyword_only if name not in (grad_fn.__kwdefaults__ or {})]
            any_number = bool(code.co_flags & inspect.CO_VARARGS)
            any_keyword = bool(code.co_flags & inspect.CO_VARKEYWORDS)
        else:
            kinds: dict[str, list[inspect.Parameter]] = defaultdict(list)
            for parameter in _parameters(grad_fn, [_ANY_NUMBER]):
                kinds[parameter.kind.name].append(parameter)
            by_keyword = kinds["KEYWORD_ONLY"]
            keyword_only = [parameter.name for parameter in by_keyword]
            required = [
                parameter.name for parameter in by_keyword if parameter.default is parameter.empty
            ]
            any_number, any_keyword = bool(kinds["VAR_POSITIONAL"]), bool(kinds["VAR_KEYWORD"])
            by_position = kinds["POSITIONAL_ONLY"] + kinds["POSITIONAL_OR_KEYWORD"]
            positional = [parameter.name for parameter in by_position]
            optional = sum(parameter.default is not parameter.empty for parameter in by_position)
        self.takes_variables = any_keyword or "variables" in (*positional, *keyword_only)
        self.takes_needs = "needs_input_grad" in (*positional, *keyword_only)
        self.most = float("inf") if any_number else len(positional)
        self.fewest = len(positional) - optional
        needed = positional[: self.fewest]
        for name in _BY_KEYWORD:
            self.most -= name in positional
            self.fewest -= name in needed
        self.missing = [name for name in required if name not in ("upstream", *_BY_KEYWORD)]
        self.keras = "upstream" in required  # grad_fn(*inputs, upstream=dys), Keras on PyTorch
        self.nested = getattr(grad_fn, "own_definition", None)  # where it is a custom gradient
        self.special = self.keras or self.takes_needs or self.nested is not None

    def run(self, call: Any, dys: Sequence[Any], targets: Sequence) -> Any:
        keywords: dict[str, Any] = {"variables": list(call.variables)} if call.variables else {}
        if self.takes_needs:
            inputs = targets[: call.count]
            keywords["needs_input_grad"] = tuple([tensor is not None for tensor in inputs])
        if not self.keras:
            return call.grad_fn(*dys, **keywords)
        upstream = dys[0] if len(dys) == 1 else tuple(dys)
        return call.grad_fn(*(call.values or ()), upstream=upstream, **keywords)


class Definition:
    """One decorated function: its name, its source line, and the signature of its rule."""

    role = "the rule of"

    def __init__(self, function: Any, name: str | None = None, outer: Definition | None = None):
        self.function = function
        self.name = (
            name
            or getattr(function, "__name__", None)
            or getattr(getattr(function, "func", type(function)), "__name__", "function")
        )
        # the code and number of outputs of the latest rule, and of nearly every next one
        self._known: tuple[Any, int, Any] = (None, 0, None)
        # a rule that is decorated again at each call of an outer function warns once
        self._warned: set[str] = set() if outer is None else outer._warned
        self._keywords: list[str] | None = None

    def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Return ``function(*args, **options)``, which warnings then call this one's rule."""
        frame = state.frame
        state.rules.append(self)
        try:
            result = function(*args, **options)
        finally:
            state.rules.pop()
        if state.frame is not frame:
            self.warn_entered(frame)
        return result

    # The rule --------------------------------------------------------------------------------

    def rule(self, grad_fn: Any, outputs: int, variables: list[Variable] | None) -> RuleSignature:
        """Return the signature of `grad_fn`; TypeError if it cannot take its arguments."""
        code, count, cached = self._known
        bare = type(grad_fn) is FunctionType and not (
            grad_fn.__defaults__ or grad_fn.__kwdefaults__
        )
        if bare and grad_fn.__code__ is code and count == outputs and variables is None:
            return cached
        cached = RuleSignature(grad_fn)
        if cached.missing or not (cached.keras or cached.fewest <= outputs <= cached.most):
            self._refuse_arity(grad_fn, outputs, cached)
        if variables:
            self._check_variables(variables, cached)
        elif bare and not hasattr(grad_fn, "__wrapped__"):  # the code determines the signature
            self._known = (grad_fn.__code__, outputs, cached)
        return cached

    def _refuse_arity(self, grad_fn: Any, outputs: int, rule: RuleSignature) -> None:
        takes = f"{rule.fewest}" if rule.fewest == rule.most else f"{rule.fewest} to {rule.most}"
        if rule.missing:
            takes += f" and needs keyword arguments ({', '.join(rule.missing)})"
        wanted = f"1 argument, the upstream gradient of the output of `{self.name}`"
        if outputs != 1:
            wanted = f"{outputs} arguments, an upstream gradient for each output of `{self.name}`"
        if not outputs:
            takes += f": {self.name} returned no tensor as its output: return (tensor, grad_fn)"
        name = getattr(grad_fn, "__name__", "<lambda>")
        rule_name = "the rule" if name == "<lambda>" else f"the rule `{name}`"
        raise TypeError(
            f"{self.name}: {rule_name} must take {wanted}, but the rule takes {takes} "
            f"({self.where(grad_fn)})"
        )

    def _check_variables(self, variables: list[Variable], rule: RuleSignature) -> None:
        if any(not variable.resource for variable in variables):
            raise TypeError(
                f"All variables used by `{self.name}` with @custom_gradient must be "
                "`ResourceVariable`s. Ensure that no `variable_scope` is created with "
                "`use_resource=False`."
            )
        if not rule.takes_variables:
            names = ", ".join(f"{v.name!r} of shape {tuple(v.shape)}" for v in variables)
            raise TypeError(
                f"`{self.name}` uses Variables that are not its arguments ({names}): give its rule "
                "the parameter `variables=None`, and return a pair: (gradients of the inputs, list "
                f"of the gradients of the Variables) ({self.where()}) (TensorFlow raises this as "
                "\"@tf.custom_gradient grad_fn must accept keyword argument 'variables', since "
                'function uses variables: [...]")'
            )

    def keyword_order(self, kwargs: dict[str, Any]) -> list[str]:
        """Return the names in `kwargs`: those in the signature, in its order, then the others."""
        if self._keywords is None:
            self._keywords = [parameter.name for parameter in _parameters(self.function)]
        ordered = [name for name in self._keywords if name in kwargs]
        return ordered + [name for name in kwargs if name not in ordered]

    def input_names(self, paths: Sequence[tuple]) -> list[str]:
        """Return names for inputs at `paths`: (position or keyword, path inside it)."""
        parameters = _parameters(self.function)
        names = []
        for root, path in paths:
            if isinstance(root, int):
                variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
                first = parameters.index(variadic[0]) if variadic else len(parameters)
                if root < first:
                    root = parameters[root].name
                elif variadic:
                    root = f"{variadic[0].name}[{root - first}]"
                else:
                    root = f"argument {root}"
            names.append(f"{root}{path}")
        return names

    # Words -----------------------------------------------------------------------------------

    def refuse_context(self, error: TypeError) -> None:
        """Raise TypeError if a call failed because the function takes PyTorch's ``ctx``."""
        trace: Any = error.__traceback__
        parameters = () if trace.tb_next else _parameters(self.function)  # it never began to run
        if "missing" in str(error) and parameters and parameters[0].name == "ctx":
            raise TypeError(
                f"{error}. A custom gradient takes no ctx: write `def {self.name}(x, ...)`, which "
                f"returns (y, grad_fn); grad_fn can use all values of its function ({self.where()})"
            ) from None

    def add_note(self, error: Exception, grad_fn: Any) -> None:
        """Say in an exception of the user's rule whose rule it is, and where that stands."""
        note = f"In the gradient function of `{self.name}` ({self.where(grad_fn)})"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)

    def where(self, grad_fn: Any = None) -> str:
        """Return the source line of the rule (or else of the function), for messages."""
        return location_of(*source_line(grad_fn if grad_fn is not None else self.function))

    def warn(self, kind: str, message: str, number: str = "") -> None:
        """Warn at the definition's line, once for each kind of warning and number of a gradient."""
        if any(observer.notice(self, kind, message) for observer in state.observers):
            return
        file, line = source_line(self.function)
        key = f"{file}:{line} {self.name} {kind} {number}"
        if key in self._warned:
            return
        self._warned.add(key)
        scope = getattr(inspect.unwrap(self.function), "__globals__", {})
        fields = {"kind": kind, "function": self.name, "line": (file, line)}
        warning = CustomGradientWarning(f"{message} ({self.where()})", **fields)
        warnings.warn_explicit(warning, CustomGradientWarning, file, line, scope.get("__name__"))

    def warn_bypassed(self) -> None:
        self.warn(
            "bypassed",
            f"the rule of `{self.name}` is not used: a tape watches only tensors that "
            f"`{self.name}` captured, not its arguments. The operations of `{self.name}` are "
            "differentiated instead. Pass the captured tensors as arguments, or watch an argument",
        )

    def warn_unused(self, outer: str) -> None:
        """Warn that this rule of the rule of `outer` serves no tape that records the sweep."""
        self.warn(
            "bypassed",
            f"the custom gradient of `{self.name}`, which is the rule of `{outer}`, is not used on "
            "a tape that does not watch its arguments: its upstream gradient does not depend on "
            "watched tensors, and it did not capture any, so its result has no derivative there. "
            "Pass "
            f"the inputs of `{outer}` as arguments to a custom gradient inside the rule",
        )

    def warn_entered(self, frame: Frame | None) -> None:
        """Warn if a tape, or another level, that was entered since `frame` has not been left."""
        if len(stack(state.frame)) > len(stack(frame)):
            self.warn(
                "entered",
                f"{self.role} `{self.name}` entered a GradientTape, or another recording context, "
                "and did not leave it: it records everything that follows, which takes memory "
                "and time. Write `with tf.GradientTape() as tape:`, or call its __exit__()",
            )

    def warn_detached(self, record: Any) -> None:
        """Warn, once for each line, that this rule takes values out of a tensor.

        Not where nothing records what is made of them, as in the last sweep, nor where they only
        decide what is computed: ``while float(x) > 1.``
        """
        recording = find_tokens(record)
        tokens = tokens_of(stack(state.frame))
        if not any(token in recording and token.alive and not token.silent for token in tokens):
            return
        file, line, depth = users_line()
        if only_decides(sys._getframe(depth - 1)):
            return
        if any(observer.detach(self, file, line) for observer in state.observers):
            return
        if _is_replaced(sys._getframe(depth - 1)):
            return
        key = f"detached {file}:{line}"
        if key not in self._warned:
            self._warned.add(key)
            message = (
                f"{self.role} `{self.name}` takes NumPy or Python values out of a recorded "
                "tensor, by numpy(), float(), np.asarray() or numpy_function. Derivatives do not "
                "see these values. Use tensor operations, or declare the derivative by "
                "custom_gradient or custom_derivatives"
            )
            fields = {"kind": "detached", "function": self.name, "line": (file, line)}
            warnings.warn(CustomGradientWarning(message, **fields), stacklevel=depth)


# The functions of the library that call users' functions: True if a rule replaces the derivatives,
# False if the derivatives are needed.
runs: dict[CodeType, bool] = {Definition.run.__code__: False}


def _is_replaced(frame: FrameType) -> bool:
    """Return whether a rule stands for the derivatives of what `frame` computes."""
    codes = (outer.f_code for outer, _ in traceback.walk_stack(frame))
    return next((runs[code] for code in codes if code in runs), False)


def check_result(definition: Definition, result: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the pair (y, grad_fn) that a decorated function must return."""
    name = definition.name
    if not isinstance(result, (tuple, list)):
        kind, words = type(result).__name__, ""  # TensorFlow's words
        if result is None:
            words = "cannot unpack non-iterable NoneType object"
        elif isinstance(result, ArrayLike):
            kind = f"Tensor of shape {tuple(result.shape)}"
            pair = "unsupported callable" if result.shape == (2,) else ""
            words = pair if result.ndim else "Cannot iterate over a scalar tensor."
        theirs = f' (TensorFlow raises this as "{words}")' if words else ""
        raise TypeError(
            f"{name} must return (output, grad_fn), got {kind}: add the rule, `return y, grad_fn` "
            f"({definition.where()}){theirs}"
        )
    if len(result) != 2:
        words = "too many values to unpack (expected 2)"
        if len(result) < 2:
            words = f"not enough values to unpack (expected 2, got {len(result)})"
        raise ValueError(
            f"{words}: {name} must return (output, grad_fn), got {len(result)} values; several "
            f"outputs go into one tuple, `return (y, z), grad_fn` ({definition.where()})"
        )
    if not callable(result[1]):
        remedy = "write a function of the upstream gradient, such as `lambda dy: dy`"
        remedy = "put the output first" if callable(result[0]) else remedy
        raise TypeError(
            f"{name} must return (output, grad_fn), and grad_fn must be callable, got "
            f"{type(result[1]).__name__}: {remedy} ({definition.where()}). In TensorFlow, the "
            'message is "unsupported callable"'
        )
    return result[0], result[1]
