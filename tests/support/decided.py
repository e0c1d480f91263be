"""A `while_loop` of a trace that decides by the values that it is made for.

Such a program is right for the arguments of its first call, so the transformation of loops can be
compared with an eager run by itself: all rounds must agree in shapes and dtypes.
"""

from tinygrad_cg import Tensor, nest

ROUNDS = 60


def holds(test):
    level = getattr(test, "level", None)
    if isinstance(test, Tensor) and level is not None:
        return bool(level.example(test.value))
    return bool(test)


def agree(some, others):
    for one, other in zip(nest.flatten(some), nest.flatten(others), strict=True):
        assert one.dtype == other.dtype
        assert tuple(one.shape) == tuple(other.shape)


def while_loop(test, body, values):
    for _ in range(ROUNDS):
        if not holds(test(*values)):
            break
        found = body(*values)
        agree(values, found)
        values = found
    return values
