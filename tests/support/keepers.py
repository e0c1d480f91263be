"""Ways to keep an upstream gradient: `python -m tests.support.keepers [tracer]`.

A sweep overwrites large arrays that it made itself. Nothing that a rule or a user has may change,
whatever watches the process: a tracer, a profiler or a debugger, during the import, too. Prints the
number of ways and the names of those whose arrays changed.
"""

import asyncio
import collections
import contextvars
import copy
import dataclasses
import functools
import itertools
import queue
import sys
import threading
import types
import weakref


def _look(frame):
    """Read the variables as debuggers do, which copies them (Python 3.12 loses some thereby)."""
    return frame.f_locals if sys.version_info[:2] != (3, 12) else frame.f_lineno


def _trace(frame, event, argument):
    _look(frame)
    return _trace


def _profile(frame, event, argument):
    _look(frame)


TRACERS = {
    "none": (lambda: None, lambda: None),
    "settrace": (lambda: sys.settrace(_trace), lambda: sys.settrace(None)),
    "setprofile": (lambda: sys.setprofile(_profile), lambda: sys.setprofile(None)),
}
MODE = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else "none"
start, stop = TRACERS[MODE]
start()
import numpy as np  # noqa: E402

import tinygrad_cg as tf  # noqa: E402

stop()

SIZE = 150_000  # 1.2 MB of float64
KEPT: list = []


class Holder:
    """Keeps what it is given, as an attribute."""

    def keep(self, value):
        self.value = value


@dataclasses.dataclass
class Record:
    value: object


Pair = collections.namedtuple("Pair", "first second")
variable = contextvars.ContextVar("kept")


def _raised(dy):
    try:
        raise ValueError(dy)
    except ValueError as error:
        return error


def _with_traceback(dy):
    try:
        return 1 / 0
    except ZeroDivisionError as error:
        return error


def _generator(dy):
    yield dy
    yield dy


def _started(dy):
    kept = _generator(dy)
    next(kept)
    return kept


async def _coroutine(dy):
    await asyncio.sleep(0)
    return dy


def _waiting(dy):
    kept = _coroutine(dy)
    kept.send(None)
    weakref.finalize(kept, lambda: None)
    return kept


def _in_thread(dy):
    kept = []
    thread = threading.Thread(target=lambda: kept.append(dy * 1.0 if dy is None else dy))
    thread.start()
    thread.join()
    return kept


def _queued(dy):
    kept = queue.Queue()
    kept.put(dy)
    return kept


def _attribute(dy):
    kept = Holder()
    kept.keep(dy)
    return kept


def _context(dy):
    context = contextvars.copy_context()
    context.run(variable.set, dy)
    return context


# What a rule keeps of its upstream gradient: anything that leads to it.
CONTAINERS = {
    "tensor": lambda dy: dy,
    "list": lambda dy: [dy],
    "dict": lambda dy: {"dy": dy},
    "ref in a set": lambda dy: {dy.ref()},
    "tuple in tuple": lambda dy: ((dy,),),
    "deque": lambda dy: collections.deque([dy]),
    "named tuple": lambda dy: Pair(dy, dy),
    "dataclass": Record,
    "attribute": _attribute,
    "namespace": lambda dy: types.SimpleNamespace(dy=dy),
    "closure": lambda dy: lambda: dy,
    "default": lambda dy: lambda dy=dy: dy,
    "partial": lambda dy: functools.partial(tf.sin, dy),
    "bound method": lambda dy: dy.__add__,
    "cycle": lambda dy: itertools.cycle([dy]),
    "generator": _started,
    "coroutine": _waiting,
    "exception": _raised,
    "traceback": _with_traceback,
    "frame": lambda dy: sys._getframe(),
    "queue": _queued,
    "thread": _in_thread,
    "context": _context,
    "shallow copy": copy.copy,
}
# The same memory by another object.
VIEWS = {
    "numpy": lambda dy: dy.numpy(),
    "asarray": np.asarray,
    "memoryview": lambda dy: memoryview(dy.numpy()),
    "dlpack": np.from_dlpack,
    "buffer of a slice": lambda dy: dy.numpy()[1:],
    "reshape": lambda dy: tf.reshape(dy, (3, -1)),
    "slice": lambda dy: dy[1:],
    "transpose": lambda dy: tf.transpose(tf.reshape(dy, (3, -1))),
    "identity": tf.identity,
    "stop_gradient": tf.stop_gradient,
    "expand_dims": lambda dy: tf.expand_dims(dy, 0),
    "split": lambda dy: tf.split(dy, 3),
}


def keep(dy, way):
    KEPT.append((way(dy), dy.numpy(), dy.numpy().copy()))


def through(rule, x, after=lambda x: tf.tanh(tf.sin(x)), before=tf.exp):
    """The gradient of a chain with a rule in the middle of it."""
    op = tf.custom_gradient(lambda x: (tf.cos(x), rule))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(before(op(after(x))))
    return tape.gradient(y, x)


def rule_of(way, result=lambda dy: dy):
    def rule(dy):
        keep(dy, way)
        return result(dy)

    return rule


def keep_all(*gradients):
    for gradient in gradients:
        keep(gradient, lambda dy: dy)


def results_of_two_sweeps(x):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(tf.tanh(x)))
    keep_all(tape.gradient(y, x))
    keep_all(tape.gradient(y, x))


def intermediate_sources(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = tf.tanh(x)
        b = tf.sin(a)
        y = tf.reduce_sum(tf.exp(b))
    keep_all(*tape.gradient(y, [b, a, x]))


def upstream_of_the_user(x):
    dy = tf.exp(x)
    keep_all(dy)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sin(tf.tanh(x))
    keep_all(tape.gradient(y, x, output_gradients=dy))


def gradient_into_a_gradient(x):
    pull = tf.vjp(lambda x: tf.sin(tf.tanh(x)), x)[1]
    first = pull(tf.exp(x))
    keep_all(first if not isinstance(first, (tuple, list)) else first[0])
    second = pull(KEPT[-1][0])
    keep_all(second if not isinstance(second, (tuple, list)) else second[0])


def two_inputs_get_one_array(x):
    op = tf.custom_gradient(lambda a, b: (a + b, lambda dy: (dy, dy)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        a, b = tf.sin(x), tf.tanh(x)
        y = tf.reduce_sum(tf.exp(op(a, b)))
    gradients = tape.gradient(y, [a, b])
    keep_all(*gradients)
    np.testing.assert_array_equal(gradients[0], gradients[1])
    np.testing.assert_allclose(gradients[0], np.exp(np.sin(x) + np.tanh(x)), 1e-12)


def fan_out(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = tf.tanh(x)
        y = tf.reduce_sum(tf.exp(a) + tf.sin(a) + a * 2.0 + (a + a))
    da, dx = tape.gradient(y, [a, x])
    keep_all(da, dx)
    t = np.tanh(x.numpy())
    np.testing.assert_allclose(da, np.exp(t) + np.cos(t) + 4.0, 1e-12)
    np.testing.assert_allclose(dx, (1 - t * t) * da.numpy(), 1e-8)


def second_order(x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.reduce_sum(tf.exp(tf.sin(x)))
        first = inner.gradient(y, x)
        z = tf.reduce_sum(tf.tanh(first))
    keep_all(first, outer.gradient(z, x))


def nested_rule(x):
    inner = tf.custom_gradient(lambda dy: (tf.sin(dy), rule_of(lambda ddy: ddy)))
    with tf.GradientTape() as outer:
        outer.watch(x)
        first = through(inner, x)
        z = tf.reduce_sum(tf.exp(tf.sin(first)))
    keep_all(first)
    outer.gradient(z, x)


def recomputed(x):
    op = tf.custom_gradient(lambda x: (tf.cos(x), rule_of(lambda dy: dy)))
    block = tf.recompute_grad(lambda x: tf.exp(op(tf.sin(x))))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(block(tf.tanh(x))))
    keep_all(tape.gradient(y, x))


def primitive(x):
    op = tf.primitive("KeptCosine", lambda x: np.cos(x), replace=True)
    tf.RegisterGradient("KeptCosine", replace=True)(lambda op, dy: rule_of(list_of)(dy))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(op(tf.sin(tf.tanh(x)))))
    keep_all(tape.gradient(y, x))


def compiled(x):
    run = tf.function(lambda x: tf.exp(tf.sin(x)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.tanh(run(tf.tanh(x))))
    keep_all(tape.gradient(y, x))


def in_threads(x):
    threads = [threading.Thread(target=through, args=(rule_of(list_of), x)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def list_of(dy):
    return [dy]


PROGRAMS = (
    *(results_of_two_sweeps, intermediate_sources, upstream_of_the_user, gradient_into_a_gradient),
    *(two_inputs_get_one_array, fan_out, second_order, nested_rule, recomputed, primitive),
    *(compiled, in_threads),
)
WAYS = {
    **{name: functools.partial(through, rule_of(way)) for name, way in CONTAINERS.items()},
    **{name: functools.partial(through, rule_of(way)) for name, way in VIEWS.items()},
    "result is a view": functools.partial(through, rule_of(list_of, lambda dy: dy[:])),
    "result is new": functools.partial(through, rule_of(list_of, lambda dy: dy * 2.0)),
    **{program.__name__.replace("_", " "): program for program in PROGRAMS},
}


def changed() -> tuple[int, list[str]]:
    """Return the number of arrays kept, and the ways that keep one which has changed."""
    x = tf.constant(np.linspace(-2, 2, SIZE))
    count, names = 0, []
    for name, way in WAYS.items():
        KEPT.clear()
        way(x)
        assert KEPT, name
        count += len(KEPT)
        if any(not np.array_equal(array, before) for _, array, before in KEPT):
            names.append(name)
    return count, names


if __name__ == "__main__":
    if MODE == "setprofile":
        start()  # the others only watch the import: all of it takes minutes under a tracer
    count, names = changed()
    print(f"{MODE}: {len(WAYS)} ways, {count} arrays kept, changed: {names}")
    sys.exit(bool(names))
