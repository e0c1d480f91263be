"""function: a Python function becomes one compiled program for each signature.

Modelled on ``tf.function`` of TensorFlow 2.21. Unlike there, a new float argument needs no new
program.
"""

from __future__ import annotations

import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from tinygrad_cg_kernels.runtime.locks import ForkLock

from ... import nest
from ..._core.levels import state
from ..._rules.pickling import travels
from ...errors import AutographError, FunctionWarning, OperatorNotAllowedInGraphError, warn
from ..codegen.executable import build as fused
from ..graph.interpret import interpreter
from ..graph.values import FuncGraph
from .compiled import MAX_OPERATIONS, Build
from .concrete import AnySize, ConcreteFunction, example
from .signature import FunctionCall, Statics, TensorSpec, check_signature, has_unknown_sizes
from .specialization import Specialization
from .trace import leaves_behind

_MAX_PROGRAMS = 64  # kept by one function
_STREAK = 5  # consecutive calls with a new program that cause a warning
_MAX_ENTRIES = 4  # entries that a call tries: those of the latest forms

P = ParamSpec("P")
Q = ParamSpec("Q")
Y = TypeVar("Y")


class Function(Generic[P, Y]):
    """A function that is traced at its first call with each signature, and compiled.

    Made by `function`, which says what it takes. `python_function` is what it was made of.
    """

    def __init__(
        self,
        python: Callable,
        statics: Statics,
        signature: Any,
        build: Build,
        relaxed: bool,
        autograph: bool = True,
    ):
        self._build = build
        self._autograph = autograph
        self._runs: Any = None  # what is traced, once that is known
        functools.update_wrapper(self, python, updated=())
        self.python_function = python
        self._name = getattr(python, "__name__", type(python).__name__)
        self._statics = statics
        self._signature = signature
        self._programs: OrderedDict[Any, Specialization] = OrderedDict()
        self._lock = ForkLock()
        self._enters: tuple[Callable[[tuple], Any], ...] = ()  # entries of programs
        self._records: tuple[Callable[[Any, tuple], Any], ...] = ()  # the same, under tapes
        self._streak = 0
        self._relaxed = relaxed or has_unknown_sizes(signature)
        self._has_created = False
        self._length_varies = False
        self._bound: dict[int, tuple[Any, Function]] = {}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y:
        if not kwargs:  # nearly always a form of a recent call
            frame = state.frame
            if frame is None:
                for enter in self._enters:
                    result = enter(args)
                    if result is not None:
                        self._streak = 0
                        return result
            else:
                for record in self._records:
                    result = record(frame, args)
                    if result is not None:
                        self._streak = 0
                        return result
        return self._call(args, kwargs)

    def _call_eagerly(self, *args: Any, **kwargs: Any) -> Any:
        return self.python_function(*args, **kwargs)

    def _call(self, args: tuple, kwargs: dict) -> Any:
        frame = state.frame
        if self._signature is not None:
            args, kwargs = check_signature(self._signature, args, kwargs), {}
        if frame is not None and (frame.level is not None or frame.natural):
            return self._python()(*args, **kwargs)  # that level processes each operation
        if self._length_varies:
            return self._call_eagerly(*args, **kwargs)
        try:
            call, traced = self._find(FunctionCall(args, kwargs, self._statics))
        except AutographError as error:
            if not error.length_varies or self._build is fused:
                raise
            self._length_varies = True
            warn(
                f"{error}. A list whose length varies cannot be compiled, so `{self._name}` runs "
                "operation by operation",
                FunctionWarning,
            )
            return self._call_eagerly(*args, **kwargs)
        result = traced.call(call)
        if frame is None:
            self._enters = _first(traced.enter(call), self._enters)
        else:
            self._records = _first(traced.enter_recorded(call), self._records)
        return result

    def _find(
        self, call: FunctionCall, has_values: bool = True
    ) -> tuple[FunctionCall, Specialization]:
        """Return the call and the program for its signature, which is traced if it is new.

        If sizes depend on the values of arguments, these values become part of the signature.
        """
        with self._lock:
            traced = self._programs.get(call.key)
            if traced is not None:
                self._programs.move_to_end(call.key)
                self._streak = 0
        if traced is None:
            try:
                traced = self._trace(call, call.leaves if has_values else ())
            except OperatorNotAllowedInGraphError as error:
                size = error.size_of
                positions = leaves_behind(size) if has_values and size is not None else None
                if not positions or positions <= call.statics.values:
                    raise
                self._statics = self._statics.with_values(positions)
                return self._find(FunctionCall(call.args, call.kwargs, self._statics))
            with self._lock:
                traced = self._programs.setdefault(call.key, traced)
                if len(self._programs) > _MAX_PROGRAMS:
                    self._programs.popitem(last=False)
            self._streak += 1
            if self._streak == _STREAK and not self._relaxed:
                warn(
                    f"{_STREAK} out of the last {_STREAK} calls to {self!r} triggered tf.function "
                    "retracing. Tracing is expensive. Pass floats or tensors instead of Python "
                    "integers, use tensors of the same shape and dtype, and create the function "
                    "once, outside loops",
                    FunctionWarning,
                )
        return call, traced

    def _trace(self, call: FunctionCall, leaves: Sequence) -> Specialization:
        try:
            return self._trace_as(self._python(), call, leaves)
        except OperatorNotAllowedInGraphError:
            before, after = self._python(), self._python(transformed=True)
            if after is before:
                raise
        return self._trace_as(after, call, leaves)

    def _trace_as(self, python: Callable, call: FunctionCall, leaves: Sequence) -> Specialization:
        traced = Specialization(python, self._name, self._derive, call, self._build)
        if not traced.trace(not self._has_created, leaves):
            self._has_created = True
            traced.trace(False, leaves)
        return traced

    def _python(self, transformed: bool = False) -> Callable:
        """Return the function to trace: the Python function, transformed if it has control flow.

        With `transformed` it is transformed in any case, since a function that it calls needs that.
        """
        if self._runs is None or transformed:
            python = self.python_function
            if self._autograph:
                from ...autograph._detection import has_branches

                seen, rest = python, ()
                if isinstance(python, functools.partial) and python.func is _call_method:
                    reference, inside, owner = python.args
                    seen, rest = inside.__get__(reference(), owner), python.args
                if transformed or has_branches(seen):
                    from ...autograph import _convert  # most programs do without

                    if rest:
                        inside = _convert.convert(rest[1])
                        if inside is not rest[1]:
                            python = functools.partial(_call_method, rest[0], inside, rest[2])
                    else:
                        python = _convert.convert(python)
            self._runs = python
        return self._runs

    def _derive(self, python: Callable[..., Any]) -> Function:
        """Return a compiled function for a gradient of this one."""
        statics = Statics(python, None, None)
        derived = Function(python, statics, None, self._build, relaxed=True, autograph=False)
        derived._name = f"the gradient of {self._name}"
        return derived

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program for these arguments, which may be `TensorSpec`s, as a callable.

        Without arguments: that of `input_signature`. Where sizes are not known: a callable for
        all sizes, which has a program for each, with the same kernels.
        """
        if not args and not kwargs and self._signature is not None:
            args = self._signature
        if has_unknown_sizes((args, kwargs)):
            return AnySize(self, args, kwargs)
        has_values = not any(isinstance(leaf, TensorSpec) for leaf in nest.flatten((args, kwargs)))
        args, kwargs = nest.map_structure(example, (args, kwargs))
        if self._signature is not None:
            args, kwargs = check_signature(self._signature, args, kwargs), {}
        call, traced = self._find(FunctionCall(args, kwargs, self._statics), has_values)
        return ConcreteFunction(self, call.statics, traced)

    def graph(self, *args: Any, **kwargs: Any) -> FuncGraph:
        """Return the graph of the program for these arguments; print it to read it."""
        return self.get_concrete_function(*args, **kwargs).graph

    def kernels(self, *args: Any, **kwargs: Any) -> list[str]:
        """Return the texts of the program for these arguments: of its call, then of its kernels.

        Sizes and literals are parameters of kernels; comments in the call say what literals are.
        """
        return self.get_concrete_function(*args, **kwargs).kernels

    def numba(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program for these arguments as a function that Numba code calls.

        Arguments are examples or `TensorSpec`s. The function takes arrays of their shapes and
        dtypes, and numbers where a shape is ``()``; it returns arrays, numbers, tuples of these.
        Code compiled by ``numba.njit`` calls it without the interpreter, also in parallel. Tensors
        and Variables that the function captures have the values that they have now. Raises
        `UnsupportedCodeError` for operations that have no form in Numba code.

        Examples
        --------
        >>> loss = tf.function(tf.value_and_grad(lambda x: tf.reduce_sum(x ** 3)))
        >>> compiled = loss.numba(tf.TensorSpec((2,), tf.float64))
        >>> value, gradient = compiled(np.array([1.0, 2.0]))  # Numba code calls it in the same way
        >>> value, gradient
        (9.0, array([ 3., 12.]))
        """
        return self.get_concrete_function(*args, **kwargs).numba()

    def cfunc(self, *args: Any, **kwargs: Any) -> Any:
        """Return the program for these arguments as a C function, made by ``numba.cfunc``.

        It has `address`, `ctypes` and `native_name`. Numbers are passed by value, arrays as
        pointers to their elements in row-major order. If the result is one number, the function
        returns it; other results are written to arrays, whose pointers are the last parameters.
        ``scipy.LowLevelCallable(f.cfunc(...).ctypes)`` is a function of numbers for SciPy.

        Examples
        --------
        >>> slope = tf.function(tf.grad(lambda x: tf.sin(x) * x))
        >>> compiled = slope.cfunc(tf.TensorSpec((), tf.float64))
        >>> round(compiled.ctypes(1.0), 6)
        1.381773
        """
        return self.get_concrete_function(*args, **kwargs).cfunc()

    @property
    def cache_size(self) -> int:
        """Return the number of programs kept."""
        return len(self._programs)

    def experimental_get_tracing_count(self) -> int:
        """Return how many programs it keeps; the name that TensorFlow has."""
        return self.cache_size

    def clear(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._programs.clear()
            self._enters = self._records = ()

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Function[P, Y]: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], Y], instance: Any, owner: Any = None
    ) -> Method[Q, Y]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function as a method: programs are those of the instance."""
        if instance is None or not hasattr(self.python_function, "__get__"):
            return self
        return Method(instance, self, owner)

    def _of(self, instance: Any, owner: Any) -> Function:
        """Return the function with `instance` as its first argument, without keeping that alive."""
        key = id(instance)
        cached = self._bound.get(key)
        if cached is not None:
            return cached[1]
        try:
            reference: Any = weakref.ref(instance, lambda _: self._bound.pop(key, None))
        except TypeError:
            reference = lambda: instance  # noqa: E731 (it keeps the instance, and so its id)
        method = functools.partial(_call_method, reference, self.python_function, owner)
        functools.update_wrapper(method, self.python_function)
        statics = self._statics.without_first()
        bound = Function(
            method, statics, self._signature, self._build, self._relaxed, self._autograph
        )
        return self._bound.setdefault(key, (reference, bound))[1]

    def __repr__(self) -> str:
        how = "runs operation by operation" if self._length_varies else "compiled"
        return f"<function {getattr(self, '__qualname__', self._name)}, {how}>"

    def __reduce__(self) -> Any:
        """Return its parts. Programs are made again, with kernels from the cache."""
        compiled = next(key for key, build in _BUILDS.items() if build is self._build)
        made_of = (
            *(self.python_function, self._statics, self._signature, compiled),
            *(self._relaxed, self._autograph),
        )
        # a state, because the Python function may refer to this one
        return object.__new__, (Function,), made_of

    def __setstate__(self, made_of: tuple) -> None:
        python, statics, signature, compiled, relaxed, autograph = made_of
        self.__init__(python, statics, signature, _BUILDS[compiled], relaxed, autograph)

    def __deepcopy__(self, memo: Any) -> Function[P, Y]:
        return self


_CALLS = (Function.__call__, Function._call_eagerly)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Make each `function` run its Python code, for a debugger, or its compiled program again.

    Modelled on ``tf.config.run_functions_eagerly``. Compiled programs are kept.
    """
    call: Any = _CALLS[bool(run_eagerly)]
    type.__setattr__(Function, "__call__", call)  # costs other calls nothing


def functions_run_eagerly() -> bool:
    """Return whether calls of each `function` run its Python code."""
    return Function.__call__ is _CALLS[True]


def _call_method(reference: Callable, python: Any, owner: Any, *args: Any, **kwargs: Any) -> Any:
    return python.__get__(reference(), owner)(*args, **kwargs)


travels(Function)


def _fuse_unless_long(graph: FuncGraph) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a program; a very long one runs operation by operation, with a warning."""
    count = sum(bool(value.name) for value in graph.values())
    if count <= MAX_OPERATIONS:
        return fused(graph)
    warn(
        f"a program of {count} operations would take about {count // 250} seconds of CPU time "
        "to compile, so it runs operation by operation, as function(jit_compile=False) does "
        "without this warning. A Python loop becomes a loop of the program if its rounds have "
        "the same operations on the same shapes, apart from numbers and x[i]; here too many "
        "other operations remain. Use scan or while_loop, move long loops out of the function, "
        "or compile it anyway with function(jit_compile=True)",
        FunctionWarning,
    )
    return interpreter(graph)


_BUILDS: dict[bool | None, Build] = {None: _fuse_unless_long, True: fused, False: interpreter}


def _first(entry: Any, entries: tuple) -> tuple:
    """Return the latest entries with `entry` as the first, unless it is None."""
    others = [other for other in entries if other is not entry]
    return entries if entry is None else (entry, *others[: _MAX_ENTRIES - 1])


class Method(Generic[P, Y]):
    """A `Function` of a class, bound to an instance."""

    __slots__ = ("__self__", "_function", "_owner")

    def __init__(self, instance: Any, function: Function[..., Y], owner: Any):
        self.__self__, self._function, self._owner = instance, function, owner

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Y:
        return self._function._of(self.__self__, self._owner)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function._of(self.__self__, self._owner), name)

    def __reduce__(self) -> Any:
        return getattr, (self.__self__, self._function.python_function.__name__)

    def __repr__(self) -> str:
        return f"<bound {self._function!r} of {self.__self__!r}>"


@overload
def function(
    func: Callable[P, Y],
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Function[P, Y]: ...
@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: Any = None,
    experimental_follow_type_hints: Any = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[P, Y]], Function[P, Y]]: ...
def function(
    func: Any = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: Any = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: Any = None,
    experimental_compile: Any = None,
    experimental_follow_type_hints: Any = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Compile a function of tensors: Python runs once for each signature, compiled kernels at each
    call.

    Parameters
    ----------
    func:
        A callable of nested tensors that returns nested tensors. Tapes, Jacobians and custom
        gradients inside become part of the program.
    input_signature:
        A `TensorSpec` for each argument; calls must match it (TypeError). If a size is None, each
        actual size is traced, but compiled kernels are shared.
    static_argnums, static_argnames:
        Arguments for Python's decisions: each of their values has its own program.
    jit_compile:
        By default the program is fused into kernels, which the first call compiles (tenths of a
        second to some seconds) and keeps on disk. Programs that differ only in constants share
        them. If a program has more than 1000 operations, Python loops with equal rounds become
        loops of the program; if more than 1000 operations are left, it runs operation by operation,
        with a warning. True always fuses; False runs operation by operation and compiles nothing.
    reduce_retracing:
        Do not warn if each call has other sizes. Kernels are always shared between sizes.
    autograph:
        Whether Python's control flow may depend on tensors: by default `if`, `while`, `for`, `and`,
        `or`, `not`, conditional expressions, `assert` and `print` become operations if a tensor
        decides, in the function and in your functions that it calls. See docs/behaviour.md, 6.9.
    experimental_...:
        Accepted as in TensorFlow; they have no effect.

    The signature includes the shape and dtype of tensors and arrays, the values of small integer
    tensors that sizes depend on (``x[:n]``, ``zeros([n])``), integers, bools, strings, None, other
    objects, and Variables. A Python float is an input: another value needs no new program.
    Arguments and captured Variables are read and assigned at each call. Python's side effects
    (appending to a list, reading a global) happen only while the function is traced. The result is
    differentiable at every order with respect to arguments, captured tensors and Variables. In
    `vmap` and forward mode the operations run one by one.

    The program runs on the device of its tensors: CPU and GPU have separate programs. Tensors
    created inside are on this device, too, even inside `tf.device`; without any tensor, `tf.device`
    around the call decides.

    Raises OperatorNotAllowedInGraphError (a TypeError) if Python needs a value: `float(x)`,
    `x.numpy()`; AutographError (one of them) for control flow that cannot become operations. If the
    length of a list or TensorArray depends on values, calls run operation by operation, with a
    FunctionWarning; with ``jit_compile=True`` this is an error. For code that needs values, use
    `numpy_function`, `py_function`, `primitive` or `custom_derivatives`. Raises ValueError if later
    calls create Variables. If each call needs a new program, a `FunctionWarning` appears. Modelled
    on ``tf.function``.

    Examples
    --------
    >>> @tf.function
    ... def norm(x):
    ...     return tf.sqrt(tf.reduce_sum(x * x))
    >>> norm(tf.constant([3.0, 4.0])).numpy()
    np.float32(5.0)
    """

    def decorate(python: Any) -> Function:
        if not callable(python):
            raise TypeError(f"function decorates a function, got {type(python).__name__}")
        if isinstance(python, Function):
            python = python.python_function
        signature = None if input_signature is None else tuple(input_signature)
        statics = Statics(python, static_argnums, static_argnames)
        compiled = experimental_compile if jit_compile is None else jit_compile
        build = _BUILDS[None if compiled is None else bool(compiled)]
        relaxed = bool(reduce_retracing or experimental_relax_shapes)
        return Function(python, statics, signature, build, relaxed, bool(autograph))

    return decorate if func is None else decorate(func)
