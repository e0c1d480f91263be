"""`cond` and `while_loop` of a trace that decide by the values that it is made for.

Such a program is right for the arguments of its first call, so the transformation of control flow
can be compared with an eager run by itself: both branches are traced and must agree in shapes and
dtypes, as must all rounds of a loop.
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


def cond(test, true_fn, false_fn):
    found = true_fn(), false_fn()
    agree(*found)
    return found[0] if holds(test) else found[1]


def while_loop(test, body, values):
    for _ in range(ROUNDS):
        if not holds(test(*values)):
            break
        found = body(*values)
        agree(values, found)
        values = found
    return values
