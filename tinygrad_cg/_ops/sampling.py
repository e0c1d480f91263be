"""Random tensors from NumPy's Philox generator. A seed gives the same numbers everywhere.

Ranges, means and deviations may be tensors: the gradient flows to them, with the draws held.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from math import prod
from numbers import Integral
from typing import Any

import numpy as np

from tinygrad_cg_kernels.runtime import promotion
from tinygrad_cg_kernels.runtime.errstate import cast as cast_array
from tinygrad_cg_kernels.runtime.locks import ForkLock

from .._core import devices
from .._core.conversion import FLOAT32, FLOAT64, any_tensor, as_dtype, convert, is_tensor, to_array
from .._core.kinds import is_floating, is_integer
from .._core.levels import state
from .._core.suggestions import reads_own_arguments
from .._core.tensor import Tensor
from ..errors import InvalidArgumentError
from .comparison import equal
from .elementwise import where
from .shape import cast
from .validation import as_int, as_sizes

_lock = ForkLock()
_generator = np.random.Generator(np.random.Philox())
# Methods of NumPy's generator whose sizes stand last there, and first in what is drawn here.
_SIZES_LAST = ("beta", "binomial", "gumbel", "poisson", "standard_gamma")

if hasattr(os, "register_at_fork"):  # NumPy's generator has a lock of its own: none may be
    # drawing at a fork, or the child could never draw. There the lock here is renewed.
    os.register_at_fork(before=_lock.__enter__, after_in_parent=_lock.__exit__)


def set_seed(seed: int) -> None:
    """Set the seed of all later draws without their own seed.

    Modelled on ``tf.random.set_seed``. TypeError for other types,
    InvalidArgumentError for a negative one.

    Examples
    --------
    >>> tf.random.set_seed(7)
    >>> first = tf.random.normal((2,))
    >>> tf.random.set_seed(7)
    >>> bool(tf.reduce_all(first == tf.random.normal((2,))))
    True
    """
    global _generator
    generator = _seed_generator("set_seed", seed)
    with _lock:
        _generator = generator


@devices.on_device_of_operands
@reads_own_arguments
def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from [minval, maxval); integers need `maxval`, floats have 1 by default.

    With `seed` the result is always the same; without, see `set_seed`. Modelled on
    ``tf.random.uniform``: floating bounds broadcast to `shape`, and get gradients where they are
    tensors. Raises TypeError for dtypes that are neither floats nor integers, and
    InvalidArgumentError for bounds that do not fit.

    Examples
    --------
    >>> tf.random.uniform((2, 3), maxval=10, dtype=tf.int32).shape
    TensorShape([2, 3])
    """
    wanted, sizes = as_dtype(dtype), sizes_of_draws("uniform", shape, minval)
    if is_integer(wanted):
        return _integers(sizes, minval, maxval, wanted, seed)
    _check_float("uniform", wanted, "cast(uniform(shape, 0, 2, int32), bool), for example")
    bounds = {"minval": minval, "maxval": 1 if maxval is None else maxval}
    low, high = _parameters("uniform", sizes, bounds)
    if _drawn_by_gpu():
        if not isinstance(low, Tensor) and not isinstance(high, Tensor):
            return _uniform_on_gpu(sizes, low, high, wanted, seed)
        draws = _numbers_on_gpu("uniform", "numbers", seed, sizes, FLOAT64)
    else:
        draws = _draw("uniform", "random", seed, sizes)
    if isinstance(draws, Tensor) and not isinstance(low, Tensor) and not isinstance(high, Tensor):
        values = cast(low + draws * (high - low), wanted)
        return where(equal(values, cast_array(high, wanted)), cast_array(low, wanted), values)
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        low, high = cast(low, wanted), cast(high, wanted)
        values = low + _as_tensor(draws, wanted) * (high - low)
        return where(equal(values, high), low, values)
    with np.errstate(all="ignore"):
        values = np.asarray(low + draws * (high - low)).astype(wanted)
        rounded_up = values == high.astype(wanted)
        if rounded_up.any():  # the largest draws: they begin again at the lower end
            values = np.where(rounded_up, low.astype(wanted), values)
    return Tensor(devices.to_current(values))


@devices.on_device_of_operands
@reads_own_arguments
def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = FLOAT32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return draws from the normal distribution of the given mean and standard deviation.

    Modelled on ``tf.random.normal``: `mean` and `stddev` broadcast with `shape`, and get gradients
    where they are tensors. `seed` as for `uniform`. Raises TypeError for a dtype that is not a
    float, InvalidArgumentError for shapes that do not broadcast.

    Examples
    --------
    >>> tf.random.normal((2, 3)).shape
    TensorShape([2, 3])
    """
    wanted, sizes = as_dtype(dtype), sizes_of_draws("normal", shape, mean)
    _check_float("normal", wanted, "cast(normal(shape), dtype)")
    center, scale = _parameters("normal", sizes, {"mean": mean, "stddev": stddev})
    draws = _draw("normal", "standard_normal", seed, sizes)
    if isinstance(center, Tensor) or isinstance(scale, Tensor):
        return _as_tensor(draws, wanted) * cast(scale, wanted) + cast(center, wanted)
    if isinstance(draws, Tensor):
        return cast(center + draws * scale, wanted)
    with np.errstate(all="ignore"):
        return Tensor(devices.to_current(np.asarray(center + draws * scale).astype(wanted)))


def sizes_of_draws(name: str, shape: Any, second: Any) -> tuple[int, ...]:
    """Return the sizes in a shape; TypeError for a number, which may be the first of the sizes."""
    if isinstance(shape, Integral):
        sizes = (shape, second) if isinstance(second, Integral) and second else (shape,)
        raise TypeError(
            f"{name}: shape must be a tuple or a list, got the number {shape}: write {sizes}, as "
            f"in tf.random.{name}({sizes})"
        )
    return as_sizes(name, shape)


def _integers(sizes: tuple, minval: Any, maxval: Any, dtype: np.dtype, seed: Any) -> Tensor:
    if maxval is None:
        raise InvalidArgumentError(f"uniform: maxval is missing: pass maxval= for {dtype}")
    low, high = as_int("uniform", "minval", minval), as_int("uniform", "maxval", maxval)
    limits = np.iinfo(dtype)
    if not limits.min <= low < high <= int(limits.max) + 1:
        raise InvalidArgumentError(
            f"uniform: minval must be below maxval, and both within {dtype}: got {low} and {high}"
        )
    if _drawn_by_gpu():
        from tinygrad_cg_kernels.cuda.draws import bits_of

        if bits_of(low, high, dtype) is not None:
            numbers = _numbers_on_gpu("uniform", "integers", seed, sizes, low, high, dtype)
            return Tensor(numbers)
    return _as_tensor(_draw("uniform", "integers", seed, low, high, sizes, dtype), dtype)


def _drawn_by_gpu() -> bool:
    """Return whether uniform numbers are drawn where they are to be, on a GPU.

    Those of a traced function, and of a generator with a state of its own, come from the CPU.
    """
    return state.device == devices.GPU and state.draws is None


def _numbers_on_gpu(
    name: str, kind: str, seed: Any, sizes: tuple[int, ...], *arguments: Any
) -> Any:
    """Return an array of the GPU: the numbers that the CPU would draw, by a function for them."""
    from tinygrad_cg_kernels.cuda import draws

    draw = getattr(draws, kind)
    with devices.memory_for(name):
        if seed is not None:
            own = _seed_generator(name, seed)
            return draw(own.bit_generator, prod(sizes), *arguments).reshape(sizes)
        with _lock:
            return draw(_generator.bit_generator, prod(sizes), *arguments).reshape(sizes)


def _uniform_on_gpu(
    sizes: tuple[int, ...], low: np.ndarray, high: np.ndarray, dtype: np.dtype, seed: Any
) -> Tensor:
    """Return what `uniform` computes of bounds that are arrays of the CPU."""
    if dtype in (FLOAT32, FLOAT64) and not low.any() and (high == 1).all():
        numbers = _numbers_on_gpu("uniform", "numbers", seed, sizes, dtype)
        return Tensor(numbers)
    draws = _numbers_on_gpu("uniform", "numbers", seed, sizes, FLOAT64)
    with np.errstate(all="ignore"):
        bounds = low, high - low, cast_array(low, dtype), cast_array(high, dtype)
    with devices.memory_for("uniform"):
        start, width, first, end = [
            devices.move(np.asarray(bound), devices.GPU) for bound in bounds
        ]
        values = (start + draws * width).astype(dtype)  # each rounds, as on the CPU
        return Tensor(devices.library().where(values == end, first, values))


def _as_tensor(draws: Any, dtype: np.dtype) -> Tensor:
    if isinstance(draws, Tensor):
        return cast(draws, dtype)
    if isinstance(draws, devices.array_types):
        return Tensor(draws.astype(dtype, copy=False))
    return Tensor(devices.to_current(cast_array(draws, dtype)))


def _check_float(name: str, dtype: np.dtype, remedy: str) -> None:
    if not is_floating(dtype):
        kinds = "floats or integers" if name == "uniform" else "floats"
        raise TypeError(f"{name}: draws are {kinds}, dtype cannot be {dtype}: use {remedy}")


def _parameters(name: str, sizes: tuple[int, ...], values: dict[str, Any]) -> list[Any]:
    """Return each parameter: a Tensor if a gradient can flow to it, else an array."""
    parameters = [_parameter(value) for value in values.values()]
    shapes = [tuple(parameter.shape) for parameter in parameters]
    if not any(shapes):
        return parameters
    try:
        promotion.broadcast_shapes(sizes, *shapes)
    except ValueError:
        listed = " and ".join(f"{key} {shape}" for key, shape in zip(values, shapes, strict=True))
        raise InvalidArgumentError(
            f"{name}: the shapes of {listed} do not broadcast with shape {sizes}: give numbers, or "
            "tensors of that shape"
        ) from None
    return parameters


def _parameter(value: Any) -> Any:
    if is_tensor(value) or (isinstance(value, (list, tuple)) and any_tensor(value)):
        value = convert(value)
        if is_floating(value.dtype):
            return value
        value = np.asarray(value)
    return to_array(value, FLOAT64, copy=False)


def _seed_generator(name: str, seed: Any) -> np.random.Generator:
    """Return a generator that starts at `seed`; anywhere if it is None."""
    if seed is not None:
        seed = as_int(name, "seed", seed)
        if seed < 0:
            raise InvalidArgumentError(
                f"{name}: seed must not be negative, got {seed}: use its abs"
            )
    return np.random.Generator(np.random.Philox(seed))


def _draw(name: str, method: str, seed: int | None, *arguments: Any) -> Any:
    """Return an array of random numbers; a tensor where a function is traced, or run again."""
    if seed is not None:
        return _numbers(_seed_generator(name, seed), method, arguments)
    if state.draws is not None:
        return state.draws(method, arguments)
    return draw(method, arguments)


def draw(method: str, arguments: tuple) -> np.ndarray:
    """Return the next numbers of the generator that all draws without a seed share."""
    with _lock:
        return _numbers(_generator, method, arguments)


def keep_draws(kept: list[Any], following: Callable | None) -> Callable:
    """Return a function that draws by `following`, and appends to `kept` what `replay` needs.

    Of the shared generator it keeps the state before the draw, which takes less memory than the
    numbers.
    """

    def draw_and_keep(method: str, arguments: tuple) -> Any:
        if following is not None:
            numbers = following(method, arguments)
            kept.append(numbers)
            return numbers
        with _lock:
            kept.append(_generator.bit_generator.state)
            return _numbers(_generator, method, arguments)

    return draw_and_keep


def replay(draws: Sequence[Any], following: Callable | None) -> Callable:
    """Return a function that returns these random numbers again, and draws new ones after them.

    Each of `draws` is a tensor, an array, or the state of a generator.
    """
    remaining = iter(draws)

    def replay(method: str, arguments: tuple) -> Any:
        again = next(remaining, None)
        if again is None:
            return (following or draw)(method, arguments)
        if not isinstance(again, dict):
            return again
        generator = np.random.Generator(np.random.Philox(0))
        generator.bit_generator.state = again
        return _numbers(generator, method, arguments)

    return replay


def _numbers(generator: np.random.Generator, method: str, arguments: tuple) -> np.ndarray:
    if method == "truncated_normal":
        return _truncated_normal(generator, *arguments)
    if method == "permutation":
        return generator.permutation(*arguments[0]).astype(np.float64)
    if method in _SIZES_LAST:
        sizes, *parameters = arguments
        return np.asarray(getattr(generator, method)(*parameters, sizes), np.float64)
    return np.asarray(getattr(generator, method)(*arguments))


def _truncated_normal(generator: np.random.Generator, sizes: tuple[int, ...]) -> np.ndarray:
    """Return normal draws within two standard deviations: those outside are drawn again."""
    draws = generator.standard_normal(sizes)
    flat = draws.reshape(-1)
    while (outside := np.flatnonzero(np.abs(flat) >= 2)).size:
        flat[outside] = generator.standard_normal(outside.size)
    return flat.reshape(sizes)
