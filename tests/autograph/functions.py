"""Sixty functions with Python's control flow, as users write them, and arguments for each.

`CASES` has each function with the calls to try. Everything is written for eager execution; the
tests ask that `function` gives the same values and gradients.
"""

from __future__ import annotations

import functools

import tinygrad_cg as tf

CASES: list[tuple] = []


def case(*calls):
    """Note a function with arguments, each call a tuple; floats become tensors."""

    def note(f):
        CASES.append((f, calls))
        return f

    return note


BOTH = ((2.0,), (-1.5,))

# Branches ---------------------------------------------------------------------------------------


@case(*BOTH)
def if_else(x):
    if x > 0:
        y = x * x
    else:
        y = -3.0 * x
    return y


@case(*BOTH)
def if_alone(x):
    y = tf.sin(x)
    if x > 0:
        y = y * 2.0
    return y + x


@case((2.0,), (0.5,), (-1.0,))
def elif_chain(x):
    if x > 1:
        y = x**3
    elif x > 0:
        y = x**2
    else:
        y = tf.exp(x)
    return y


@case(*BOTH)
def early_return(x):
    if x > 0:
        return x * x
    return tf.exp(x)


@case((2.0,), (0.5,), (-1.0,), (-4.0,))
def many_returns(x):
    if x > 1:
        return 3.0 * x
    if x > 0:
        return x * x
    if x > -2:
        y = tf.cos(x)
        return y * x
    return -x


@case((2.0, 1.0), (2.0, -1.0), (-2.0, 1.0), (-2.0, -1.0))
def nested_branches(x, y):
    if x > 0:
        if y > 0:
            return x * y
        z = x - y
    else:
        z = x * x
        if y > 0:
            z = z + y
    return z * y


@case((2.0, True), (2.0, False), (-2.0, True))
def python_inside_tensor(x, double):
    if x > 0:
        y = x * 2.0 if double else x
    else:
        y = x**2
    return y


@case((2.0, True), (2.0, False), (-2.0, True))
def tensor_inside_python(x, early):
    if early:
        if x > 0:
            return x * 5.0
    return x * x


@case(*BOTH)
def dead_names_of_other_shapes(x):
    if x > 0:
        parts = tf.stack([x, x * x])
        y = tf.reduce_sum(parts)
    else:
        parts = tf.stack([x, x, x])
        y = tf.reduce_prod(parts)
    return y


@case(*BOTH)
def numbers_stay_weak(x):
    scale = 0.1 if x > 0 else 0.7
    if x > 1:
        scale = 0.3
    return scale * tf.cast(x, tf.float64)


@case(*BOTH)
def structures(x):
    state = {"a": x, "b": (x, 1.0)}
    if x > 0:
        state = {"a": x * 2.0, "b": (x * x, 3.0)}
    return state["a"] * state["b"][0] + state["b"][1]


@case(*BOTH)
def item_assignment(x):
    cache = {"h": x, "name": "cell"}
    values = [x, x]
    if x > 0:
        cache["h"] = x * 3.0
        values[1] = x * x
    return cache["h"] + values[0] * values[1]


@case(*BOTH)
def tensor_array(x):
    array = tf.TensorArray(tf.float32, size=3)
    for i in range(3):
        if x > i:
            array = array.write(i, x * (i + 1.0))
        else:
            array = array.write(i, 2.0)
    return tf.reduce_prod(array.stack()) + x


@case(*BOTH)
def unpacking(x):
    a, b = x, x * 2.0
    if a < b:
        a, b = b, a
    return a - 2.0 * b


@case(*BOTH)
def augmented(x):
    y = x
    if x > 0:
        y += 3.0 * x
        y *= y
    return y


@case((2.0,), (-1.5,), (0.0,))
def sign_by_none(x):
    y = None
    if x > 0:
        y = x * 2.0
    else:
        y = x * 3.0
    assert y is not None
    return y


# Expressions ------------------------------------------------------------------------------------


@case(*BOTH)
def conditional_expression(x):
    return x * x if x > 0 else tf.sin(x)


@case((2.0,), (0.5,), (-1.0,))
def nested_conditional(x):
    return x**3 if x > 1 else (x**2 if x > 0 else -x)


@case((2.0, 1.0), (2.0, -1.0), (-2.0, 1.0))
def and_or(x, y):
    if x > 0 and y > 0:
        return x * y
    if x < 0 or y < -5:
        return x - y
    return x + 2.0 * y


@case(*BOTH)
def not_(x):
    if not x > 0:
        return x * 4.0
    return x


@case((0.5,), (2.0,), (-2.0,))
def chained_comparison(x):
    if -1.0 < x < 1.0:
        return x**2
    return x


@case((2.0, 3.0), (0.0, 3.0), (2.0, 0.0))
def truth_of_numbers(x, y):
    if x and y:
        return x * y
    return x - y


@case((4.0,), (0.25,))
def short_circuit(x):
    items = []
    if len(items) > 0 and items[0] > x:
        return x
    if x > 1.0 or items:
        return tf.sqrt(x)
    return x


@case((2.0,), (0.3,))
def inside_comprehension(x):
    weights = [0.5, 1.5, 2.5]
    return tf.add_n([w * x if x > w else x for w in weights])


# While ------------------------------------------------------------------------------------------


@case((1.5,), (20.0,))
def while_doubling(x):
    while x < 10.0:
        x = x * 2.0
    return x


@case((2.0,), (9.0,))
def newton(a):
    x = a
    while tf.abs(x * x - a) > 1e-4:
        x = 0.5 * (x + a / x)
    return x


@case((1.3,))
def counted_while(x):
    i = 0
    total = 0.0
    while i < 5:
        total = total + x**i
        i += 1
    return total


@case((1.5, 3), (1.5, 0))
def tensor_counter(x, n):
    i = tf.constant(0)
    y = x
    while i < tf.cast(n, tf.int32) + tf.cast(x * 0.0, tf.int32):
        y = y * x
        i = i + 1
    return y


@case((1.1,), (3.0,))
def while_break(x):
    y = x
    while y < 100.0:
        y = y * y
        if y > 20.0:
            break
        y = y + 1.0
    return y


@case((1.1,), (3.0,))
def while_true(x):
    y = x
    steps = 0
    while True:
        y = y * 1.5
        steps = steps + 1
        if y > 10.0:
            break
    return y * tf.cast(steps, tf.float32)


@case((3.0,), (120.0,))
def while_true_returns(x):
    steps = 0
    while True:
        if x > 100.0:
            return x * tf.cast(steps, tf.float32)
        x = x * 2.0
        steps = steps + 1


@case((2.0,), (0.5,))
def while_true_newton(x):
    y = x
    while True:
        new = 0.5 * (y + x / y)
        if tf.abs(new - y) < 1e-5:
            return new
        y = new


@case((3.0,), (-3.0,), (150.0,))
def while_true_in_while_true(x):
    while True:
        while True:
            x = x * 2.0
            if x > 1000.0 or x < -1000.0:
                return x
            if x > 100.0:
                break
        x = x + 1.0


@case((3.0,), (60.0,), (700.0,))
def while_true_in_a_branch(x):
    if x < 500.0:
        while True:
            x = x * 3.0
            if x > 100.0:
                return x
            if x > 50.0:
                return -x
    return x / 2.0


@case((1.1,), (7.0,))
def while_continue(x):
    y = x
    k = x * 0.0
    while k < 6.0:
        k = k + 1.0
        if y > 5.0:
            continue
        y = y * 2.0
    return y + k


@case((1.1,), (12.0,))
def while_return(x):
    while x < 50.0:
        if x > 10.0:
            return x * x
        x = x * 3.0
    return -x


@case((1.1,), (60.0,))
def while_else(x):
    y = x
    while y < 50.0:
        y = y * 3.0
        if y > 30.0:
            break
    else:
        y = y - 1.0
    return y


@case((1.1, 5.0))
def ranges_that_begin_empty(x, n):
    """The inner loop has no round in the first round of the outer one, and has some later."""
    total = x
    for i in tf.range(tf.cast(n, tf.int32)):
        for j in tf.range(i):
            total = total * x + tf.cast(j, x.dtype)
        if i > 2:
            total = total - x
    return total


@case((1.5, 2.0))
def nested_while(x, y):
    total = x
    while total < 30.0:
        z = y
        while z < total:
            z = z * 2.0
        total = total + z
    return total


@case((1.5,), (-1.5,))
def branch_in_while(x):
    y = x
    k = x * 0.0
    while k < 4.0:
        if y > 0:
            y = y - 1.0
        else:
            y = y * x
        k += 1.0
    return y


@case((1.5,), (-1.5,))
def while_in_branch(x):
    y = x
    if x > 0:
        while y < 8.0:
            y = y * 2.0
    else:
        y = x * x
    return y


@case((3.0,))
def temporary_in_while(x):
    h = x
    while h > 0.1:
        step = tf.tanh(h)
        h = h - 0.5 * step
    return h


@case((2.0,))
def float_state_becomes_tensor(x):
    err, y = 10.0, x
    while err > 0.01:
        new = tf.cos(y)
        err = tf.abs(new - y)
        y = new
    return y


# For --------------------------------------------------------------------------------------------


@case((1.5,), (-1.5,))
def branch_in_for(x):
    y = x
    for k in range(4):
        if y > k:
            y = y * 0.5
        else:
            y = y + x
    return y


@case((1.5,), (4.0,))
def break_in_for(x):
    y = x
    for k in range(6):
        if y > 5.0:
            break
        y = y * 1.7 + k
    return y


@case((1.5,), (4.0,))
def continue_in_for(x):
    y = x
    for k in range(4):
        if y > 5.0:
            continue
        y = y * 2.0 + k
    return y


@case((1.5,), (4.0,), (0.1,))
def return_in_for(x):
    y = x
    for k in range(4):
        if y > 5.0:
            return y * k
        y = y * 2.0
    return -y


@case((1.5,), (0.1,))
def for_else(x):
    y = x
    for _ in range(3):
        y = y * 2.0
        if y > 5.0:
            break
    else:
        y = y + 100.0
    return y


@case((1.5,), (3.0,))
def target_after_break(x):
    y = x
    for k in (1.0, 2.0, 3.0):
        if y * k > 4.0:
            break
    return y * k


@case((1.5,), (0.2,))
def rows(x):
    total = x * 0.0
    for row in tf.stack([x, x * 2.0, x * 3.0]):
        if row > 1.0:
            total = total + row * row
    return total


@case((3.4,), (0.0,))
def dynamic_range(x):
    y = x
    for i in tf.range(tf.cast(x, tf.int32)):
        y = y * 1.5 + tf.cast(i, tf.float32)
    return y


@case((3.4,), (5.0,))
def dynamic_range_break(x):
    y = x
    for i in range(tf.cast(x, tf.int32)):
        if i > 2:
            break
        y = y * 2.0
    return y


@case((1.5,))
def zip_and_enumerate(x):
    y = x
    for i, (a, b) in enumerate(zip([1.0, 2.0], [x, -x], strict=True)):
        if b > 0 and i < 5:
            y = y + a * b
    return y


# Functions --------------------------------------------------------------------------------------


def relu(x):
    if x > 0:
        return x
    return x * 0.0


@case(*BOTH)
def calls_another(x):
    return relu(x) + 2.0 * relu(-x)


@case(*BOTH)
def nested_function(x):
    bias = x * 0.5

    def activate(v, *, scale=2.0):
        if v > bias:
            return scale * v
        return v - bias

    return activate(x) + activate(x * 0.1, scale=3.0)


@case(*BOTH)
def nonlocal_state(x):
    total = 0.0

    def add(v):
        nonlocal total
        if v > 0:
            total = total + v
        else:
            total = total - 2.0 * v

    add(x)
    add(x * x)
    return total


@case(*BOTH)
def lambdas(x):
    pick = lambda v, k=3.0: v * k if v > 0 else v / k
    return pick(x) + pick(-x, k=2.0)


class Cell:
    """A layer with a private helper, a property and state."""

    def __init__(self, weight):
        self.weight = weight
        self.state = None

    @property
    def doubled(self):
        return self.weight * 2.0

    def __gate(self, x):
        if x > 0:
            return x * self.doubled
        return x

    def __call__(self, x):
        self.state = x
        if x > 1.0:
            self.state = x * x
        return self.__gate(x) + self.state

    @staticmethod
    def shift(x):
        return x + 1.0 if x > 0 else x - 1.0


class Scaled(Cell):
    """A layer that calls its base."""

    def __call__(self, x):
        y = super().__call__(x)
        if y > 3.0:
            y = super().__call__(y * 0.1)
        return y


@case(*BOTH)
def methods(x):
    return Cell(0.5)(x) + Cell.shift(x)


@case(*BOTH)
def inheritance(x):
    return Scaled(0.5)(x)


def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(f(*args, **kwargs), **kwargs)

    return wrapper


@twice
def decorated_step(x, scale=2.0):
    if x > 0:
        return scale * x
    return x - 1.0


@case(*BOTH)
def decorated(x):
    return decorated_step(x) + decorated_step(x, scale=-1.0)


@case((5.0, 3), (0.5, 3))
def global_recursion(x, depth):
    if depth == 0:
        return x
    return global_recursion(x * 0.5 if x > 1.0 else x + 1.0, depth - 1)


@case((5.0,), (0.5,))
def recursion(x):
    def down(v, depth):
        if depth == 0:
            return v
        if v > 1.0:
            v = v * 0.5
        return down(v, depth - 1)

    return down(x, 4)


@case((1.0,), (-1.0,))
def generators(x):
    def pieces(n):
        for i in range(n):
            if i % 2:
                yield x * i
            else:
                yield -x

    total = sum(pieces(4))
    return total if x > 0 else total * 2.0


@case(*BOTH)
def python_exceptions(x):
    y = x
    try:
        if abs(3) > 2:
            raise KeyError("k")
    except KeyError:
        y = x * 2.0
    finally:
        z = x
    if y > 0:
        y = y * z
    return y


@case(*BOTH)
def inner_tape(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        if x > 0:
            y = x**3
        else:
            y = x**2
    return tape.gradient(y, x) + x


# Custom gradients -------------------------------------------------------------------------------


@tf.custom_gradient
def clipped(x):
    def grad(dy):
        return dy * 10.0

    return tf.minimum(x, 1.0), grad


@case(*BOTH)
def custom_in_branch(x):
    if x > 0:
        return clipped(x) * x
    return clipped(x)


@case((0.5,), (4.0,))
def custom_in_while(x):
    y = x
    k = x * 0.0
    while k < 3.0:
        y = clipped(y) + 0.1 * y
        k += 1.0
    return y


@tf.custom_gradient
def decides(x):
    if x > 0:
        y = x * 2.0
    else:
        y = x * 3.0

    def grad(dy):
        if dy > 0:
            return dy * 7.0
        return dy

    return y, grad


@case(*BOTH)
def custom_that_decides(x):
    return decides(x) * 1.5


@case((0.3,), (3.0,))
def local_custom(x):
    @tf.custom_gradient
    def scaled(v):
        return v * 2.0, lambda dy: dy * 5.0

    y = scaled(x)
    if y > 1.0:
        y = scaled(y) * y
    return y


@case((0.5,), (-0.5,))
def map_over(x):
    def signed_square(v):
        if v > 0:
            return v * v
        return -v

    return tf.reduce_sum(tf.map_fn(signed_square, tf.stack([x, -x, x * 2.0])))
