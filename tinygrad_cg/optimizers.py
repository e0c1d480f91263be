"""Optimizers: they update Variables with gradients.

Modelled on ``tf.keras.optimizers`` of Keras 3.15.

The steps are Keras's, in its order of operations and in the dtype of each Variable.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from . import schedules
from ._core import devices
from ._core.conversion import IndexedSlices, convert, is_tensor
from ._core.levels import before_traces
from ._core.suggestions import OPTIMIZERS, absent_attributes, refuse_arguments
from ._core.tensor import ArrayLike, Tensor
from ._ops.elementwise import (
    absolute,
    add,
    clip,
    divide,
    maximum,
    multiply,
    power,
    rsqrt,
    sign,
    sqrt,
    square,
    subtract,
)
from ._ops.normalizations import clip_by_global_norm, clip_by_norm
from ._ops.shape import cast
from ._reverse.variable import Variable, recorded_assignments
from .errors import ArgumentTypeError, InvalidArgumentError, TapeWarning, warn

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Ftrl",
    "Lion",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "schedules",
]
__dir__ = __all__.copy  # what dir() shows


@absent_attributes(OPTIMIZERS)
class Optimizer(ABC):
    """Base of optimizers: learning rate, count of steps, clipping, weight decay.

    A subclass defines ``update_step(gradient, variable, learning_rate)``; otherwise its constructor
    raises TypeError. Steps are differentiable inside ``experimental.recorded_assignments``, and by
    `stateless_apply`.

    Parameters
    ----------
    learning_rate:
        A number, a Variable, or a function of the number of steps done, called at each step.
    weight_decay:
        Each step first subtracts this share of a Variable, times the learning rate.
    clipnorm, clipvalue, global_clipnorm:
        At most one: the largest norm of each gradient, the largest size of each element, or the
        largest norm of all gradients together.
    sums_rows:
        Whether the rows of `tf.IndexedSlices` with the same index are added up before they are
        clipped or squared. False gives Keras's numbers: each row is treated separately.
    """

    slots: tuple[str, ...] = ()  # the names of what is kept for each Variable

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        name: str | None = None,
        sums_rows: bool = True,
        **others: Any,
    ):
        if others:
            refuse_arguments(type(self).__name__, ("learning_rate",), others)
        limits = [limit for limit in (clipnorm, clipvalue, global_clipnorm) if limit is not None]
        if len(limits) > 1:
            raise ValueError(
                f"{type(self).__name__}: only one of clipnorm, clipvalue and global_clipnorm can "
                f"be given, got {len(limits)}: pass None for the others"
            )
        self.name: str = type(self).__name__.lower() if name is None else name
        self.weight_decay = weight_decay
        self.clipnorm = clipnorm
        self.clipvalue = clipvalue
        self.global_clipnorm = global_clipnorm
        self.sums_rows = sums_rows
        self._rows: IndexedSlices | None = None  # of the gradient of this step, if it has its own
        with devices.on(devices.CPU):  # single values, which go along with Variables on a GPU
            self.iterations: Variable = Variable(
                0, trainable=False, name="iteration", dtype=np.int64
            )
        self._schedule: Callable[[Any], Any] | None = None
        self.learning_rate = learning_rate
        self._shared: list[Variable] = []  # kept for all Variables together
        self._kept: dict[Any, list[Variable]] = {}
        self._stepped: list[Variable] = []  # at the last step

    @property
    def learning_rate(self) -> Any:
        """Return the current learning rate: a Variable, or the schedule's value for this step."""
        return self._rate if self._schedule is None else self._schedule(self.iterations)

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._schedule = None
        if isinstance(value, Variable) and not value.shape:
            self._rate = value
        elif callable(value) and not is_tensor(value):
            self._schedule = value
        elif not isinstance(value, (Real, Tensor, np.ndarray)) or getattr(value, "shape", ()):
            came = f"{type(value).__name__} {value!r:.40}"
            if isinstance(value, (Tensor, Variable, np.ndarray)):
                came = f"{type(value).__name__} of shape {tuple(value.shape)}"
            if isinstance(value, (list, tuple)):
                came = f"a {type(value).__name__}: pass Variables to apply_gradients"
            raise ArgumentTypeError(
                f"{type(self).__name__}: learning_rate must be a number or a schedule, got {came}"
            )
        else:
            dtype = None if is_tensor(value) else np.float32
            with devices.on(devices.CPU):
                self._rate = Variable(value, trainable=False, name="learning_rate", dtype=dtype)

    @property
    def variables(self) -> list[Variable]:
        """Return the optimizer's own Variables: count of steps, learning rate, and slots."""
        rate = [self._rate] if self._schedule is None else []
        slots = [slot for kept in self._kept.values() for slot in kept]
        return [self.iterations, *rate, *self._shared, *slots]

    def build(self, variables: Iterable[Variable]) -> None:
        """Create the slots for `variables` now; otherwise the first step does."""
        for variable in variables:
            self._slots(variable)

    def _slots(self, variable: Variable) -> list[Variable]:
        key = variable.ref()
        if key not in self._kept:
            with devices.on(variable.device), before_traces():
                self._kept[key] = [
                    Variable(
                        np.full(variable.shape, self._start(slot), variable.dtype),
                        trainable=False,
                        name=f"{variable._name}_{slot}",
                    )
                    for slot in self.slots
                ]
        return self._kept[key]

    def _start(self, slot: str) -> float:
        """Return the initial value of a slot."""
        return 0.0

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Variable]], name: str | None = None
    ) -> Variable:
        """Update each Variable with its gradient, and return the number of steps, `iterations`.

        `grads_and_vars` are pairs; a gradient has the shape of its Variable, and is cast to its
        dtype. A Variable whose gradient is None is not changed, with a warning. ValueError if all
        are None, InvalidArgumentError for another shape, TypeError for pairs without a Variable.
        """
        is_bare = isinstance(grads_and_vars, ArrayLike)
        pairs = _check_pairs([grads_and_vars] if is_bare else [*grads_and_vars], self.sums_rows)
        gradients = self._clip(
            [part.values if isinstance(part, IndexedSlices) else part for part, _ in pairs]
        )
        rate = self.learning_rate
        for shared, value in zip(self._shared, self._next_shared(), strict=True):
            shared.assign(value)
        for gradient, (original, variable) in zip(gradients, pairs, strict=True):
            self._rows = None
            if isinstance(original, IndexedSlices):
                self._rows = IndexedSlices(gradient, original.indices, original.dense_shape)
                gradient = self._rows.dense()
            rate_here = cast(rate, variable.dtype)
            if self.weight_decay is not None:
                variable.assign_sub(multiply(multiply(variable, self.weight_decay), rate_here))
            self.update_step(gradient, variable, rate_here)
            if variable.constraint is not None:
                variable.assign(variable.constraint(variable.value()))
        self.iterations.assign_add(1)
        self._stepped = [variable for _, variable in pairs]
        return self.iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable]) -> None:
        """Call `apply_gradients` for gradients and Variables in two lists."""
        self.apply_gradients(zip(grads, trainable_variables, strict=True))

    def stateless_apply(
        self, optimizer_variables: Sequence[Any], grads: Sequence[Any], trainable_variables: Any
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the values of `apply_gradients`, as tensors, and change no Variable.

        As in Keras, the result is a pair of lists: the new values of the trainable Variables, and
        of the optimizer's own (`variables`), from their values in `trainable_variables` and
        `optimizer_variables`. Gradients flow to these, to `grads`, and to the learning rate if that
        is a Variable, as in meta-learning. Call `build` for the Variables first, in this order;
        ValueError for another number of values.
        """
        own, trained = self.variables, [key.deref() for key in self._kept]
        values = list(trainable_variables)
        for name, variables, new_values in (
            ("optimizer_variables", own, optimizer_variables),
            ("trainable_variables", trained, values),
            ("grads", trained, grads),
        ):
            if len(variables) != len(new_values):
                raise ValueError(
                    f"stateless_apply: {name} has {len(new_values)} values, the optimizer was "
                    f"built for {len(variables)}: call build(trainable_variables) first"
                )
        with recorded_assignments(restore=True):
            for variable, value in zip(
                [*own, *trained], [*optimizer_variables, *values], strict=True
            ):
                variable.assign(value)
            self.apply_gradients(zip(grads, trained, strict=True))
            return [variable.value() for variable in trained], [
                variable.value() for variable in self.variables
            ]

    def _next_shared(self) -> Sequence[Any]:
        """Return the next values of what is kept for all Variables together."""
        return ()

    @abstractmethod
    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        """Update a Variable; all three arguments have its dtype. Optimizers define this."""

    def _by_rows(self, function: Callable[[Tensor], Tensor], gradient: Tensor) -> Tensor:
        """Return a function of this step's gradient, or the sum of the function over its rows."""
        rows = self._rows
        if rows is None:
            return function(gradient)
        return IndexedSlices(function(rows.values), rows.indices, rows.dense_shape).dense()

    def _clip(self, gradients: list[Tensor]) -> list[Tensor]:
        if self.clipvalue is not None:
            return [clip(gradient, -self.clipvalue, self.clipvalue) for gradient in gradients]
        if self.clipnorm is not None:
            return [clip_by_norm(gradient, self.clipnorm) for gradient in gradients]
        if self.global_clipnorm is not None:
            return clip_by_global_norm(gradients, self.global_clipnorm)[0]
        return gradients

    def __repr__(self) -> str:
        return f"<tg.optimizers.{type(self).__name__}: {int(self.iterations)} steps>"


def _check_pairs(pairs: list, sums_rows: bool) -> list[tuple[Any, Variable]]:
    """Return the pairs that have a gradient: a tensor like the Variable, or rows of it."""
    for k, pair in enumerate(pairs):
        parts = pair if isinstance(pair, (tuple, list)) else (pair,)
        if len(parts) != 2 or not isinstance(parts[1], Variable):
            came = ", ".join(type(part).__name__ for part in parts)
            remedy = "If you have two lists, write apply(gradients, variables)"
            if len(parts) == 2:
                remedy = "The second part must be a tf.Variable. For a single one, write "
                remedy += "apply_gradients([(gradient, variable)])"
            raise TypeError(
                "apply_gradients: each entry must be a pair, (gradient, variable), but entry "
                f"{k} is {f'({came})' if parts is pair else came}. {remedy}"
            )
    names = [variable.name for gradient, variable in pairs if gradient is None]
    if names and len(names) == len(pairs):
        raise ValueError(
            f"No gradients provided for any variable: {', '.join(map(repr, names))}. "
            "tape.explain(loss, variable) says why"
        )
    if names:
        warn(
            f"Gradients do not exist for variables {', '.join(names)}: tape.explain(loss, "
            "variable) says why",
            TapeWarning,
        )
    checked = []
    for gradient, variable in pairs:
        if isinstance(gradient, IndexedSlices) and gradient.dense_shape is None:
            gradient = IndexedSlices(gradient.values, gradient.indices, variable.shape)
        if gradient is None:
            continue
        tensor = cast(gradient, variable.dtype)
        if tensor.shape != variable.shape:
            raise InvalidArgumentError(
                f"apply_gradients: the gradient has shape {tuple(tensor.shape)}, variable "
                f"{variable.name!r} has shape {tuple(variable.shape)}"
            )
        if isinstance(gradient, IndexedSlices) and not sums_rows:
            values = cast(gradient.values, variable.dtype)
            tensor = IndexedSlices(values, gradient.indices, gradient.dense_shape)
        checked.append((tensor, variable))
    return checked


class SGD(Optimizer):
    """Gradient descent: ``w -= learning_rate * g``.

    With `momentum` it is ``velocity = momentum * velocity - learning_rate * g`` and
    ``w += velocity``; with `nesterov` ``w += momentum * velocity - learning_rate * g``.
    See `Optimizer` for the other parameters. ValueError for a `momentum` outside [0, 1]. After
    I. Sutskever et al., "On the importance of initialization and momentum in deep learning" (2013).

    Examples
    --------
    >>> v = tf.Variable(1.0)
    >>> _ = tf.optimizers.SGD(0.5).apply_gradients([(tf.constant(2.0), v)])
    >>> v.numpy()
    np.float32(0.0)
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        if not 0 <= momentum <= 1:
            raise ValueError(f"SGD: momentum must be between 0 and 1, got {momentum}")
        self.momentum = momentum
        self.nesterov = nesterov
        self.slots = ("momentum",) if momentum else ()

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        step = multiply(gradient, learning_rate)
        if not self.momentum:
            variable.assign_sub(step)
            return
        (velocity,) = self._slots(variable)
        velocity.assign(subtract(multiply(velocity, self.momentum), step))
        ahead = subtract(multiply(velocity, self.momentum), step) if self.nesterov else velocity
        variable.assign_add(ahead)


class _OfMoments(Optimizer):
    """Base of optimizers with running means of the gradient and of its size."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        self.beta_1 = beta_1
        self.beta_2 = beta_2
        self.epsilon = epsilon

    def _add_moments(self, gradient: Tensor, first: Variable, second: Variable) -> None:
        """Add a gradient to the running means of gradients and of their squares."""
        first.assign_add(multiply(subtract(gradient, first), 1 - self.beta_1))
        squares = self._by_rows(square, gradient)
        second.assign_add(multiply(subtract(squares, second), 1 - self.beta_2))


class Adam(_OfMoments):
    """Steps of about `learning_rate`, by running means of the gradient and of its square.

    ``m += (1 - beta_1) (g - m)``, ``v += (1 - beta_2) (g**2 - v)`` and, in the t-th step,
    ``w -= learning_rate sqrt(1 - beta_2**t) / (1 - beta_1**t) m / (sqrt(v) + epsilon)``: the
    `epsilon` here is the "epsilon hat" before section 2.1 of D. Kingma and J. Ba, "Adam: a method
    for stochastic optimization" (2015). With `amsgrad` the largest v so far takes the place of
    v. See `Optimizer` for the other parameters.

    Examples
    --------
    >>> v = tf.Variable(1.0)
    >>> optimizer = tf.optimizers.Adam(0.1)
    >>> for _ in range(100):
    ...     with tf.GradientTape() as tape:
    ...         loss = v * v
    ...     _ = optimizer.apply_gradients([(tape.gradient(loss, v), v)])
    >>> bool(abs(v) < 0.1)
    True
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        **options: Any,
    ):
        super().__init__(learning_rate, beta_1, beta_2, epsilon, **options)
        self.amsgrad = amsgrad
        self.slots = ("momentum", "velocity", "velocity_hat")[: 3 if amsgrad else 2]

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        first_moment, second_moment, *largest = self._slots(variable)
        self._add_moments(gradient, first_moment, second_moment)
        if largest:
            largest[0].assign(maximum(largest[0], second_moment))
            (second_moment,) = largest
        count = cast(add(self.iterations, 1), variable.dtype)  # the means start at zero
        first, second = (subtract(1, _power(beta, count)) for beta in (self.beta_1, self.beta_2))
        scale = multiply(learning_rate, divide(sqrt(second), first))
        step = divide(multiply(first_moment, scale), add(sqrt(second_moment), self.epsilon))
        variable.assign_sub(step)


class AdamW(Adam):
    """`Adam` with weight decay: each step also subtracts ``weight_decay * learning_rate * w``.

    After I. Loshchilov and F. Hutter, "Decoupled weight decay regularization" (2019).
    """

    def __init__(self, learning_rate: Any = 0.001, weight_decay: float = 0.004, **options: Any):
        super().__init__(learning_rate, weight_decay=weight_decay, **options)


class Adamax(_OfMoments):
    """`Adam` with the largest recent size of the gradient in place of its mean square.

    ``m += (1 - beta_1) (g - m)``, ``u = max(beta_2 u, abs(g))`` and, in the t-th step,
    ``w -= learning_rate m / ((1 - beta_1**t) (u + epsilon))``. See `Optimizer` for the other
    parameters. After D. Kingma and J. Ba (2015), section 7.1.
    """

    slots = ("momentum", "norm")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        mean, largest = self._slots(variable)
        mean.assign_add(multiply(subtract(gradient, mean), 1 - self.beta_1))
        largest.assign(maximum(multiply(largest, self.beta_2), self._by_rows(absolute, gradient)))
        count = cast(add(self.iterations, 1), variable.dtype)
        started = subtract(1, _power(self.beta_1, count))
        scale = multiply(started, add(largest, self.epsilon))
        variable.assign_sub(divide(multiply(learning_rate, mean), scale))


class Nadam(_OfMoments):
    """`Adam` with the momentum of Nesterov: the step looks ahead by the next momentum.

    ``u_t = beta_1 (1 - 0.96**t / 2)`` is the momentum of the t-th step, and ``U_t`` the product
    ``u_1 ... u_t``. ``m += (1 - beta_1) (g - m)``, ``v += (1 - beta_2) (g**2 - v)``,
    ``d = u_{t+1} m / (1 - U_{t+1}) + (1 - u_t) g / (1 - U_t)`` and
    ``w -= learning_rate d / (sqrt(v / (1 - beta_2**t)) + epsilon)``. See `Optimizer` for the other
    parameters. After T. Dozat, "Incorporating Nesterov momentum into Adam" (2016).
    """

    slots = ("momentum", "velocity")

    def __init__(self, *args: Any, **options: Any):
        super().__init__(*args, **options)
        with devices.on(devices.CPU):
            product = Variable(1.0, trainable=False, name="momentum_product", dtype=np.float64)
        self._shared = [product]

    def _momentum(self, steps: int, dtype: Any) -> Tensor:
        """Return the momentum a number of steps after the last one."""
        count = cast(add(self.iterations, steps), dtype)
        return multiply(self.beta_1, subtract(1, multiply(_power(0.96, count), 0.5)))

    def _next_shared(self) -> Sequence[Any]:
        (product,) = self._shared
        return [multiply(product, self._momentum(1, product.dtype))]

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        first_moment, second_moment = self._slots(variable)
        dtype = variable.dtype
        now, ahead = (self._momentum(steps, dtype) for steps in (1, 2))
        product = cast(self._shared[0], dtype)
        count = cast(add(self.iterations, 1), dtype)
        started = subtract(1, _power(self.beta_2, count))
        self._add_moments(gradient, first_moment, second_moment)
        direction = add(
            divide(multiply(ahead, first_moment), subtract(1, multiply(product, ahead))),
            divide(multiply(subtract(1, now), gradient), subtract(1, product)),
        )
        scale = add(sqrt(divide(second_moment, started)), self.epsilon)
        variable.assign_sub(divide(multiply(direction, learning_rate), scale))


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of the gradient's square.

    ``v = rho v + (1 - rho) g**2`` and ``w -= learning_rate g / sqrt(v + epsilon)``. With `centered`
    the square of a running mean of g is first subtracted from v, which makes it a variance; with
    `momentum` the steps accumulate: ``s = momentum s + step``, ``w -= s``. See `Optimizer` for the
    other parameters. After T. Tieleman and G. Hinton, "Lecture 6.5: rmsprop" (2012).
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        if not 0 <= momentum <= 1:
            raise ValueError(f"RMSprop: momentum must be between 0 and 1, got {momentum}")
        self.rho = rho
        self.momentum = momentum
        self.epsilon = epsilon
        self.centered = centered
        kept = {"velocity": True, "momentum": momentum, "average_gradient": centered}
        self.slots = tuple(slot for slot, is_kept in kept.items() if is_kept)

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        squares, *more = self._slots(variable)
        squares.assign(_running_mean(squares, self._by_rows(square, gradient), self.rho))
        scale = add(squares, self.epsilon)
        if self.centered:
            mean = more[-1]
            mean.assign(_running_mean(mean, gradient, self.rho))
            scale = add(subtract(squares, square(mean)), self.epsilon)
        step = multiply(multiply(learning_rate, gradient), rsqrt(scale))
        if self.momentum:
            more[0].assign(add(multiply(more[0], self.momentum), step))
            step = more[0]
        variable.assign_sub(step)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of the gradient's squares so far.

    ``v += g**2`` and ``w -= learning_rate g / sqrt(v + epsilon)``; v begins at
    `initial_accumulator_value`. See `Optimizer` for the other parameters. After J. Duchi,
    E. Hazan and Y. Singer, "Adaptive subgradient methods for online learning and stochastic
    optimization" (2011).
    """

    slots = ("accumulator",)

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        self.initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon

    def _start(self, slot: str) -> float:
        return self.initial_accumulator_value

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        (total,) = self._slots(variable)
        total.assign_add(self._by_rows(square, gradient))
        step = divide(multiply(learning_rate, gradient), sqrt(add(total, self.epsilon)))
        variable.assign_sub(step)


class Adadelta(Optimizer):
    """Steps of the size of earlier steps: ``rms(steps) / rms(gradients)`` times the gradient.

    Both are roots of running means of squares, plus `epsilon`; the mean of n squares is
    ``rho mean + (1 - rho) square``. See `Optimizer` for the other parameters. After M. Zeiler,
    "Adadelta: an adaptive learning rate method" (2012).
    """

    slots = ("accumulated_grad", "accumulated_delta_var")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-7,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        self.rho = rho
        self.epsilon = epsilon

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        gradients, steps = self._slots(variable)
        gradients.assign(_running_mean(gradients, self._by_rows(square, gradient), self.rho))
        above, below = (sqrt(add(average, self.epsilon)) for average in (steps, gradients))
        step = divide(multiply(above, gradient), below)
        size = square(step)
        if self._rows is not None:
            size = multiply(square(divide(above, below)), self._by_rows(square, gradient))
        steps.assign(_running_mean(steps, size, self.rho))
        variable.assign_sub(multiply(learning_rate, step))


class Lion(Optimizer):
    """Steps of `learning_rate` in each element, in the direction of a running mean.

    ``w -= learning_rate sign(beta_1 m + (1 - beta_1) g)``, then ``m = beta_2 m + (1 - beta_2) g``.
    See `Optimizer` for the other parameters. After X. Chen et al., "Symbolic discovery of
    optimization algorithms" (2023).
    """

    slots = ("momentum",)

    def __init__(
        self, learning_rate: Any = 0.001, beta_1: float = 0.9, beta_2: float = 0.99, **options: Any
    ):
        super().__init__(learning_rate, **options)
        if not 0 < beta_1 <= 1:
            raise ValueError(f"beta_1 must be larger than 0 and at most 1, got {beta_1}")
        self.beta_1 = beta_1
        self.beta_2 = beta_2

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        (mean,) = self._slots(variable)
        direction = sign(_running_mean(mean, gradient, self.beta_1))
        variable.assign_sub(multiply(learning_rate, direction))
        mean.assign(_running_mean(mean, gradient, self.beta_2))


class Ftrl(Optimizer):
    """Follow the regularized leader: elements whose gradients stay small become exactly 0.

    ``n = v + g**2``, ``z += g + 2 s w - (n**-p - v**-p) w / learning_rate``, then ``v = n`` and ``w
    = (clip(z, -a, a) - z) / (n**-p / learning_rate + 2 b + beta / learning_rate)``. Here p is
    `learning_rate_power`, a and b are `l1_regularization_strength` and
    `l2_regularization_strength`, and s is `l2_shrinkage_regularization_strength`; v begins at
    `initial_accumulator_value`. Raises ValueError if p is above 0, or another of these below 0. See
    `Optimizer` for the other parameters. After H. B. McMahan et al., "Ad click prediction: a view
    from the trenches" (2013).
    """

    slots = ("accumulator", "linear")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **options: Any,
    ):
        super().__init__(learning_rate, **options)
        if learning_rate_power > 0:
            raise ValueError(f"learning_rate_power must be at most 0, got {learning_rate_power}")
        self.learning_rate_power = learning_rate_power
        self.initial_accumulator_value = initial_accumulator_value
        self.l1_regularization_strength = l1_regularization_strength
        self.l2_regularization_strength = l2_regularization_strength
        self.l2_shrinkage_regularization_strength = l2_shrinkage_regularization_strength
        self.beta = beta
        for name in (
            "initial_accumulator_value",
            "l1_regularization_strength",
            "l2_regularization_strength",
            "l2_shrinkage_regularization_strength",
        ):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")

    def _start(self, slot: str) -> float:
        return self.initial_accumulator_value if slot == "accumulator" else 0.0

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        squares, linear = self._slots(variable)
        shrinkage = 2 * self.l2_shrinkage_regularization_strength
        total = add(squares, self._by_rows(square, gradient))
        below, above = (power(value, -self.learning_rate_power) for value in (squares, total))
        grown = multiply(divide(subtract(above, below), learning_rate), variable)
        linear.assign_add(subtract(add(gradient, multiply(shrinkage, variable)), grown))
        ridge = add(2 * self.l2_regularization_strength, divide(self.beta, learning_rate))
        limit = self.l1_regularization_strength
        curvature = add(divide(above, learning_rate), ridge)
        variable.assign(divide(subtract(clip(linear, -limit, limit), linear), curvature))
        squares.assign(total)


def _power(base: float, count: Tensor) -> Tensor:
    """Return the power of a number that is rounded to float32 first, as in Keras."""
    return power(cast(convert(base), count.dtype), count)


def _running_mean(mean: Variable, value: Tensor, kept: float) -> Tensor:
    return add(multiply(mean, kept), multiply(value, 1 - kept))
