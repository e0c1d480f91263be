"""Random generators as objects: the state is a Variable. Modelled on ``tf.random``.

They are loaded with `tinygrad_cg.random`. A draw is an operation on the state, so that a compiled
function draws other numbers at each call, and goes on where the one before has stopped.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import devices
from .._core.conversion import FLOAT32, as_dtype, convert
from .._core.kinds import is_integer
from .._core.levels import state as thread
from .._core.primitive import Primitive, apply
from .._core.tensor import Aval, Tensor
from .._ops.creation import constant
from .._ops.distributions import binomial_draws, truncated_normal
from .._ops.elementwise import add
from .._ops.sampling import _numbers, normal, uniform
from .._ops.shape import stack
from .._ops.validation import as_int
from ..errors import InvalidArgumentError
from .variable import Variable

_LARGEST = 2**64
_ALGORITHMS = (None, "philox", "auto_select", 1, 3)


def _run(state: np.ndarray, method: str, arguments: tuple) -> np.ndarray:
    if not is_integer(state.dtype):
        raise TypeError(f"Generator: a state must be three integers, got {state.dtype}")
    low, high, key = (int(word) % _LARGEST for word in state.tolist())
    generator = np.random.Generator(np.random.Philox(counter=[0, 0, low, high], key=key))
    return devices.library_of(state).asarray(_numbers(generator, method, arguments))


def _aval(state: Aval, method: str, arguments: tuple) -> Aval:
    if method == "integers":
        return Aval(arguments[2], np.dtype(arguments[3]))
    return Aval(arguments[0], np.dtype(np.float64))


# Not an operation that users call by name.
_draws = Primitive("generator_draws", _run, ("state",), _aval, kind="contraction")


def _check_algorithm(alg: Any) -> None:
    if alg not in _ALGORITHMS:
        raise InvalidArgumentError(
            f"Generator: alg must be 'philox', 'auto_select' or None, got {alg!r}"
        )


def create_rng_state(seed: Any, alg: Any = None) -> Tensor:
    """Return the state of a generator that starts at the integer `seed`: three integers (int64).

    Modelled on ``tf.random.create_rng_state``: a counter of two words, and the seed.
    """
    _check_algorithm(alg)
    number = as_int("create_rng_state", "seed", seed) % _LARGEST
    return constant(np.array([0, 0, number], np.uint64).view(np.int64))


class Generator:
    """A generator of random numbers with its own state, by NumPy's Philox.

    Modelled on ``tf.random.Generator``; make one by `from_seed`, `from_state` or
    `from_non_deterministic_state`. Each draw advances the state, also inside a `function`. A seed
    gives the same numbers on each machine; TensorFlow draws others. Means, deviations and bounds
    may be tensors with gradients. Threads that draw at the same time may get the same numbers.

    Examples
    --------
    >>> import tinygrad_cg as tf
    >>> first, second = (tf.random.Generator.from_seed(7) for _ in range(2))
    >>> bool(tf.reduce_all(first.normal([2]) == second.normal([2])))
    True
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None):
        _check_algorithm(alg)
        if (copy_from is None) == (state is None):
            raise InvalidArgumentError("Generator: give either copy_from or state")
        words = copy_from.state if copy_from is not None else state
        self._state = Variable(_words(words), trainable=False, name="StateVar")

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """Return a generator that starts at an integer."""
        return cls(state=create_rng_state(seed, alg), alg=alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """Return a generator that continues from the state of another."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Return a generator with a random state."""
        return cls.from_seed(secrets.randbits(64), alg)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any = None) -> Generator:
        """Return a generator from a key and a counter of two integers."""
        return cls(state=_of_key(key, counter), alg=alg)

    @property
    def state(self) -> Variable:
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: Philox."""
        return 1

    @property
    def key(self) -> Tensor:
        """The last word of the state: the seed."""
        return self._state[2]

    def reset(self, state: Any) -> None:
        """Continue from `state`."""
        self._state.assign(_words(state))

    def reset_from_seed(self, seed: Any) -> None:
        """Restart from an integer seed."""
        self._state.assign(create_rng_state(seed))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Continue from a key and a counter of two integers."""
        self._state.assign(_of_key(key, counter))

    def skip(self, delta: Any) -> Tensor:
        """Skip the numbers of `delta` draws; return the state before."""
        before = self._state.value()
        self._state.assign(add(before, np.array([as_int("skip", "delta", delta), 0, 0])))
        return before

    def _draw(self, method: str, arguments: tuple) -> Tensor:
        result = apply(_draws, (self._state.value(),), {"method": method, "arguments": arguments})
        self.skip(1)
        return result

    def _with(self, draw: Callable[..., Tensor], *args: Any) -> Tensor:
        """Return the result of a function that draws, with the numbers of this generator."""
        before, thread.draws = thread.draws, self._draw
        try:
            return draw(*args)
        finally:
            thread.draws = before

    def normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = FLOAT32, name: Any = None
    ) -> Tensor:
        """Return draws from the normal distribution, as ``random.normal``."""
        return self._with(normal, shape, mean, stddev, dtype)

    def truncated_normal(
        self, shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = FLOAT32, name: Any = None
    ) -> Tensor:
        """Return normal draws within two standard deviations, as ``random.truncated_normal``."""
        return self._with(truncated_normal, shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = FLOAT32,
        name: Any = None,
    ) -> Tensor:
        """Return draws from [minval, maxval), as ``random.uniform``."""
        return self._with(uniform, shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = np.uint64, name: Any = None) -> Tensor:
        """Return draws from all integers of `dtype`."""
        wanted = as_dtype(dtype)
        if not is_integer(wanted):
            raise TypeError(f"uniform_full_int: dtype must be an integer one, got {wanted}")
        limits = np.iinfo(wanted)
        return self._with(uniform, shape, int(limits.min), int(limits.max) + 1, wanted)

    def binomial(
        self, shape: Any, counts: Any, probs: Any, dtype: Any = np.int32, name: Any = None
    ) -> Tensor:
        """Return how many of `counts` trials with probability `probs` succeed."""
        return self._with(binomial_draws, shape, counts, probs, dtype, None)

    def make_seeds(self, count: Any = 1) -> Tensor:
        """Return `count` seeds for stateless draws, as columns: (2, count), int64."""
        numbers = self.uniform_full_int((as_int("make_seeds", "count", count),), np.int64)
        return stack([numbers, np.zeros(numbers.shape, np.int64)])

    def split(self, count: Any = 1) -> list[Generator]:
        """Return `count` new generators, whose numbers are independent of this one's."""
        keys = self.uniform_full_int((as_int("split", "count", count),), np.int64)
        return [Generator.from_key_counter(int(key), (0, 0)) for key in keys.numpy()]


def _words(value: Any) -> Tensor:
    words = convert(value)
    if tuple(words.shape) != (3,) or not is_integer(words.dtype):
        raise InvalidArgumentError(
            f"Generator: a state must be three integers, got {words.dtype} of shape "
            f"{tuple(words.shape)}: see create_rng_state"
        )
    return words


def _of_key(key: Any, counter: Any) -> np.ndarray:
    words = [
        *np.asarray(convert(counter)._values()).reshape(-1).tolist(),
        int(convert(key)._values()),
    ]
    if len(words) != 3:
        raise InvalidArgumentError(f"Generator: counter must be two integers, got {counter}")
    return np.array([word % _LARGEST for word in words], np.uint64).view(np.int64)


_global: list[Generator] = []


def get_global_generator() -> Generator:
    """Return the generator that the whole program shares; its first state is random.

    Modelled on ``tf.random.get_global_generator``. `set_seed` does not affect it.
    """
    if not _global:
        _global.append(Generator.from_non_deterministic_state())
    return _global[0]


def set_global_generator(generator: Generator) -> None:
    """Make `get_global_generator` return `generator`.

    Modelled on ``tf.random.set_global_generator``.
    """
    if not isinstance(generator, Generator):
        raise TypeError(f"set_global_generator: needs a Generator, got {type(generator).__name__}")
    _global[:] = [generator]
