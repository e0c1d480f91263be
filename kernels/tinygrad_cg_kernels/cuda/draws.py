"""Random numbers on the device, those of NumPy's Philox generator: the same bits, the same state.

The generator numbers its blocks of four words by a counter. A block is a function of its number and
the key, so threads compute blocks independently. Afterwards, the generator on the host is advanced
as if it had drawn these words.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinygrad_cg_kernels.cuda import adapter
from tinygrad_cg_kernels.cuda.elementwise import launch
from tinygrad_cg_kernels.runtime.promotion import FLOAT32, FLOAT64

LANES = 4  # words in a block
_ROUNDS = 10
_COUNTERS = 1 << 256
_LOW_HALF = (1 << 32) - 1

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_HALF, _MASK = np.uint64(32), np.uint64(_LOW_HALF)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_FIRST_STEP, _SECOND_STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_FRACTION, _STEP = np.uint64(11), 2.0**-53  # a number from 0 to 1 has 53 of a word's 64 bits


def _high_product(x: Any, y: Any) -> Any:
    """Return the upper 64 bits of a product of two words."""
    x0, x1, y0, y1 = x & _MASK, x >> _HALF, y & _MASK, y >> _HALF
    first, second = x0 * y1, x1 * y0
    middle = (x0 * y0 >> _HALF) + (first & _MASK) + (second & _MASK)
    return x1 * y1 + (first >> _HALF) + (second >> _HALF) + (middle >> _HALF)


def _block(number: Any, seed: Any) -> Any:
    """Return the four words of a block, counted from the generator's current block.

    `seed` has the current counter (four words) and the key (two words), each as two halves.
    """
    c0 = (np.uint64(seed[1]) << _HALF | np.uint64(seed[0])) + np.uint64(number)
    c1 = np.uint64(seed[3]) << _HALF | np.uint64(seed[2])
    c2 = np.uint64(seed[5]) << _HALF | np.uint64(seed[4])
    c3 = np.uint64(seed[7]) << _HALF | np.uint64(seed[6])
    if c0 < np.uint64(number):  # carry
        c1 = c1 + _ONE
        if c1 == _ZERO:
            c2 = c2 + _ONE
            if c2 == _ZERO:
                c3 = c3 + _ONE
    k0 = np.uint64(seed[9]) << _HALF | np.uint64(seed[8])
    k1 = np.uint64(seed[11]) << _HALF | np.uint64(seed[10])
    for _ in range(_ROUNDS):
        high0, low0 = high_product(_FIRST_FACTOR, c0), _FIRST_FACTOR * c0
        high1, low1 = high_product(_SECOND_FACTOR, c2), _SECOND_FACTOR * c2
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = k0 + _FIRST_STEP, k1 + _SECOND_STEP
    return c0, c1, c2, c3


def _double(word: Any, shift: Any, low: Any) -> Any:
    return np.float64(word >> _FRACTION) * _STEP


def _single(word: Any, shift: Any, low: Any) -> Any:
    """Return a number below 1. One that would be rounded to 1 becomes 0."""
    number = np.float32(np.float64(word >> _FRACTION) * _STEP)
    return number if number < np.float32(1) else np.float32(0)


high_product = adapter.device_function(_high_product)
block = adapter.device_function(_block)

_SOURCE = """
def kernel(out, units, before, count, shift, kept, low, seed):
    skipped = 1 if kept >= 0 else 0
    if cuda.grid(1) == 0 and skipped:
        out[0] = value(np.uint64(kept), shift, low)
    for unit in range(cuda.grid(1), units, cuda.gridsize(1)):
        first = parts * (4 * unit - before) + skipped
        words = block(unit, seed)
        for lane in range(4 * parts):
            i = first + lane
            if i >= skipped and i < count:
                word = words[lane // parts]
                if parts == 2:
                    word = word >> half if lane % 2 else word & mask
                out[i] = value(word, shift, low)
"""
"""Numbers take a word, or half a word if there are two `parts`. `kept` is half a word that was
drawn before, or negative."""


def _integer(word: Any, shift: Any, low: Any) -> Any:
    """Return `low` plus the upper bits of a word, modulo 2**64."""
    return (word >> np.uint64(shift)) + (np.uint64(low[1]) << _HALF | np.uint64(low[0]))


def numbers(generator: Any, count: int, dtype: np.dtype) -> Any:
    """Return `count` numbers in [0, 1), those of ``Generator.random``, cast to a dtype.

    `generator` is NumPy's bit generator Philox, which is advanced as by NumPy. The dtype is float64
    or float32. A float32 that would be rounded to 1 is 0.
    """
    if dtype not in (FLOAT32, FLOAT64):
        raise TypeError(f"random numbers on the device are float64 or float32, not {dtype}")
    out = adapter.array_module().empty(count, dtype=dtype)
    if count:
        value = _double if dtype == FLOAT64 else _single
        _draw(generator, value, 1, count, out, [0, -1, (0, 0)])
    return out


def bits_of(low: int, high: int, dtype: np.dtype) -> int | None:
    """Return how many bits of a word an integer from `low` to `high` - 1 takes.

    None if NumPy draws otherwise: it rejects words unless the range is a power of two, and it
    divides words further for integers of one or two bytes.
    """
    span = high - low
    return span.bit_length() - 1 if span & (span - 1) == 0 and dtype.itemsize >= 4 else None


def integers(generator: Any, count: int, low: int, high: int, dtype: np.dtype) -> Any:
    """Return `count` integers as ``Generator.integers`` does, for a range with `bits_of`."""
    bits = bits_of(low, high, dtype)
    if bits is None:
        raise ValueError(f"integers from {low} to {high} of {dtype} are not drawn on the device")
    library = adapter.array_module()
    if not bits or not count:
        return library.full(count, low, dtype=dtype)
    out, state = library.empty(count, dtype=np.uint64), generator.state
    start = tuple(_halves(low % (1 << 64), 1))
    if bits > 32:
        _draw(generator, _integer, 1, count, out, [64 - bits, -1, start])
    else:
        # An integer takes half a word. The generator keeps the other half for the next integer.
        kept = state["uinteger"] if state["has_uint32"] else -1
        halves = count - state["has_uint32"]
        words = -(-halves // 2)
        last = _draw(generator, _integer, 2, words, out, [32 - bits, kept, start])
        last = last >> 32 if words else kept
        generator.state = {**generator.state, "has_uint32": halves % 2, "uinteger": last}
    return out.astype(dtype, copy=False)


def _draw(generator: Any, value: Any, parts: int, words: int, out: Any, rest: Sequence[Any]) -> int:
    """Fill `out` from the generator's next words, advance it, and return the last word, if any."""
    state = generator.state
    used, position = divmod(state["buffer_pos"], LANES)  # 1 and 0 if the block is used up
    units = max(1, -(-(position + words) // LANES))
    counter = (_number(state["state"]["counter"]) + used) % _COUNTERS
    seed = (*_halves(counter, 4), *_halves(_number(state["state"]["key"]), 2))
    numbers = [units, position, out.size, *rest, seed]
    names = {"value": adapter.device_function(value), "parts": parts, "half": _HALF, "mask": _MASK}
    launch(_SOURCE, units, (out,), numbers, block=block, **names)
    if not words:
        return 0
    blocks, lane = divmod(state["buffer_pos"] + words - 1, LANES)
    if blocks:  # to the end of the block before the last word's
        generator.advance(blocks - 1)
        kept = {name: state[name] for name in ("has_uint32", "uinteger")}
        generator.state = {**generator.state, **kept}
        words = lane + 1
    return int(generator.random_raw(words)[-1])


def _number(words: Any) -> int:
    """Return the number with these words, lowest first."""
    return sum(int(word) << 64 * i for i, word in enumerate(words))


def _halves(number: int, count: int) -> list[int]:
    return [number >> 32 * i & _LOW_HALF for i in range(2 * count)]
