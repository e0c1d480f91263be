"""tape.explain: why a gradient is None, from the records and the text of the program."""

import math

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.orders import assert_next_gradient_is_right

pytestmark = pytest.mark.quick

CASES = {}


def case(*words):
    """Register a function that returns a tape, a target and sources, and what is said of them."""

    def add(f):
        CASES[f.__name__] = (f, words)
        return f

    return add


def three():
    return tf.constant(3.0)


@case("`x` was never watched. Call tape.watch() on `x` before `x` is used")
def never_watched():
    x = three()
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`x` was never watched by this tape, only by another one")
def watched_by_another():
    x = three()
    with tf.GradientTape() as tape, tf.GradientTape() as other:
        other.watch(x)
        y = x * x
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`y = x * x` is computed before tape.watch is called, at line")
def watched_too_late():
    x = three()
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`y` was computed before `x` was watched")
def watched_too_late_with_another_source():
    x, z = three(), three()
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = x * z
        tape.watch(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`y = x * x` is computed before the tape records")
def computed_before():
    x = three()
    y = x * x
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`y = x * x` is computed inside tape.stop_recording()")
def computed_in_a_pause():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tape.stop_recording():
            y = x * x
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`y` has the dtype int32, and integers and bools have no gradient")
def integer_target():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x, tf.int32)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`tf.cast(x, tf.int32)` has the dtype int32, which has no gradient")
def integer_on_the_way():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        count = tf.cast(x, tf.int32)
        y = tf.cast(count, tf.float32) * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`x.astype(int)` has the dtype int")
def integer_by_a_method():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x.astype(int) * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`x > 0` is a comparison, which has no derivative")
def comparison():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(x > 0, tf.float32)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`tf.round(2.0 * x)` has no derivative")
def rounded():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.round(2.0 * x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`tf.stop_gradient(a)` detaches its result")
def detached():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = x * 2.0
        b = tf.stop_gradient(a)
        y = b * b
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`tf.stop_gradient(z)` detaches its result")
def detached_beside_another_way():
    x, w = three(), three()
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        z = x * x
        y = tf.stop_gradient(z) * w
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`x.numpy()` takes the value out of the record")
def by_numpy():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(x.numpy()) ** 2
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`float(x)` takes the value out of the record")
def by_float_in_a_loop():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.constant(0.0)
        for i in range(2):
            total = total + tf.constant(float(x) * i)
        y = total * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`math.sin(x)` takes the value as a number")
def by_math():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(1.0) * math.sin(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`np.asarray(x)` takes the value as a NumPy array")
def by_asarray():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(1.0) * np.asarray(x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`out[i] = x * i` writes values into the NumPy array `out`")
def written_into_an_array():
    x = three()
    out = np.zeros(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        for i in range(3):
            out[i] = x * i
        y = tf.reduce_sum(out)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`v.assign(x * 2.0)` assigns to the Variable `v`, which is not differentiated")
def assigned_to_a_variable():
    x, v = three(), tf.Variable(0.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        v.assign(x * 2.0)
        y = v * v
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


class Holder:
    """An object that holds a Variable."""

    def __init__(self):
        self.w = tf.Variable(1.0, name="w")


@case("the Variable 'w:0' is None", "`a.item()` takes the value out")
def attribute():
    model = Holder()
    with tf.GradientTape() as tape:
        a = model.w * 2.0
        model.y = tf.constant(a.item())
    assert tape.gradient(model.y, model.w) is None
    return tape.explain(model.y, model.w)


@case("`tf.stop_gradient(element)` detaches its result")
def element_of_a_list():
    xs = [three(), three()]
    with tf.GradientTape() as tape:
        tape.watch(xs)
        outs = []
        for element in xs:
            outs.append(tf.stop_gradient(element))
        y = tf.stack(outs)
    assert tape.gradient(y, xs[0]) is None
    return tape.explain(y, xs[0])


class Layer:
    """A layer whose call loses the gradient of its weight, and keeps that of its bias."""

    def __init__(self):
        self.w, self.b = tf.Variable(2.0, name="w"), tf.Variable(1.0, name="b")

    def __call__(self, x):
        return tf.stop_gradient(x * self.w) + self.b


class Model:
    """A model with one layer."""

    def __init__(self):
        self.layer = Layer()

    def apply(self, x):
        return self.layer(x) * 2.0

    def explain(self, x):
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(self.apply(x) ** 2)
        assert tape.gradient(loss, self.layer.w) is None
        assert tape.gradient(loss, self.layer.b) is not None
        kept = tape.explain(loss, self.layer.b)
        assert "The gradient of `loss` with respect to the Variable 'b:0'" in kept
        return tape.explain(loss, self.layer.w)


@case(
    "with respect to the Variable 'w:0' is None: `tf.stop_gradient(x * self.w)` detaches its result"
)
def in_a_method_of_an_object():
    return Model().explain(tf.constant([1.0, 2.0]))


@case("`np.floor(x)` has no derivative")
def by_a_function_of_numpy():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = np.floor(x) * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`x` was never watched. Call")
def reset():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


def helper(a, scale=2.0):
    b = a * scale
    values = b.numpy()
    return tf.constant(values)


@case("`b.numpy()` takes the value out of the record")
def in_a_function_of_the_users():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = helper(x, scale=3.0) * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`tf.cast(a, 'int32')` has the dtype int32")
def in_a_compiled_function():
    @tf.function
    def rounded_down(a):
        return tf.cast(tf.cast(a, "int32"), "float32")

    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = rounded_down(x) * 2.0
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("was never watched, as watch_accessed_variables=False demands. Call tape.watch() on the")
def variables_not_watched():
    v = tf.Variable(1.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = v * v
    assert tape.gradient(y, v) is None
    return tape.explain(y, v)


@case("the Variable 'frozen:0' is not trainable, and was never watched")
def not_trainable():
    v = tf.Variable(1.0, trainable=False, name="frozen")
    with tf.GradientTape() as tape:
        y = v * v
    assert tape.gradient(y, v) is None
    return tape.explain(y, v)


@case("the Variable 'idle:0' was never read while this tape recorded")
def variable_never_read():
    v, w = tf.Variable(1.0, name="idle"), tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = w * w
    assert tape.gradient(y, v) is None
    return tape.explain(y, v)


@case("the rule of `weighted` returns None for its input `b`")
def none_from_a_rule():
    @tf.custom_gradient
    def weighted(a, b):
        return a * b, lambda dy: (dy * b, None)

    x = three()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = weighted(tf.constant(1.0), x * x)
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`inside` captures `w`, as `w`", "Pass `w` as an argument")
def captured_by_a_rule():
    w = three()

    @tf.custom_gradient
    def inside(a):
        return a * w, lambda dy: dy * w

    x = three()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, w])
        y = inside(x)
    assert tape.gradient(y, w) is None
    return tape.explain(y, w)


@case("a rule raises ZeroDivisionError: by zero")
def raised_by_a_rule():
    @tf.custom_gradient
    def failing(a):
        def grad(dy):
            raise ZeroDivisionError("by zero")

        return a * 1.0, grad

    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = failing(x)
    return tape.explain(y, x)


@case("`y` was computed from `x`. Swap the two arguments: the result comes first")
def swapped():
    x = three()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(x, y) is None
    return tape.explain(x, y)


@case("no operation that this tape recorded leads from `x` to `y`, which depends on `z`")
def unrelated():
    x, z = three(), three()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = z * z
    assert tape.gradient(y, x) is None
    return tape.explain(y, x)


@case("`g` is itself a gradient, and does not depend on `x`")
def second_order_of_a_line():
    x = three()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * 2.0
        g = inner.gradient(y, x)
    assert outer.gradient(g, x) is None
    return outer.explain(g, x)


@case("`tf.stop_gradient(g)` detaches its result")
def second_order_detached():
    x = three()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        g = inner.gradient(y, x)
        h = tf.stop_gradient(g) * 2.0
    assert outer.gradient(h, x) is None
    return outer.explain(h, x)


@case("The gradient of `y` with respect to `x` is not None.")
def connected():
    x = three()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * tf.stop_gradient(x)
    assert tape.gradient(y, x) is not None
    return tape.explain(y, x)


@case("The gradient of `g` with respect to `x` is not None.")
def connected_at_second_order():
    x = three()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x**3
        g = inner.gradient(y, x)
    return outer.explain(g, x)


@case("`x` is the source itself: its gradient is 1.")
def itself():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
    return tape.explain(x, x)


@case("Whether `y` has a gradient with respect to `x` is no longer known: gradient() has freed")
def asked_after_the_record_was_freed():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    assert float(tape.gradient(y, x)) == 6.0
    return tape.explain(y, x)


@pytest.mark.filterwarnings("ignore::tinygrad_cg.errors.TapeWarning")
@pytest.mark.parametrize("name", CASES)
def test_the_reason(name):
    compute, words = CASES[name]
    text = compute()
    assert "\n" not in text
    for word in words:
        assert word in text, text
    if "(File" in text:
        assert f'File "{__file__}", line ' in text
    assert_next_gradient_is_right()


def test_the_line_is_the_right_one():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        a = x * 2.0
        line = test_the_line_is_the_right_one.__code__.co_firstlineno + 6
        b = tf.stop_gradient(a)
        y = b * b
    assert f'`tf.stop_gradient(a)` detaches its result (File "{__file__}", line {line})' in (
        tape.explain(y, x)
    )


def test_a_line_for_each_pair():
    x, z = three(), three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * z
    first, second = tape.explain(y, {"a": x, "b": z}).split("\n")
    assert first.startswith("The gradient of `y` with respect to `x` is not None.")
    assert second.startswith(
        "The gradient of `y` with respect to `z` is None: `z` was never watched"
    )


def test_in_a_batch():
    said = []

    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.stop_gradient(x) * 2.0
            z = x * x
        said.append(tape.explain(y, x))
        said.append(tape.explain(z, x))
        return y

    tf.vmap(f)(tf.constant([1.0, 2.0]))
    assert "`tf.stop_gradient(x)` detaches its result" in said[0]
    assert "is not None" in said[1]


def test_while_a_function_is_traced():
    said = []

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.stop_gradient(x) * 2.0
            z = x * x
        said.append(tape.explain(y, x))
        said.append(tape.explain(z, x))
        return tape.gradient(z, x)

    assert float(f(tf.constant(3.0))) == 6.0
    assert "`tf.stop_gradient(x)` detaches its result" in said[0]
    assert "is not None" in said[1]


def test_without_the_source_the_records_answer():
    space = {"tf": tf}
    text = """
x = tf.constant(3.0)
with tf.GradientTape() as tape:
    tape.watch(x)
    y = tf.stop_gradient(x)
said = tape.explain(y, x)
"""
    exec(compile(text, "<no file>", "exec"), space)
    assert "this tape recorded nothing that leads to `y`" in space["said"]


def run_cells(*cells):
    """Run the cells as a notebook does, and return what the last one says."""
    space = {"tf": tf, "get_ipython": None, "In": [""]}
    for cell in cells:
        space["In"].append(cell)
        python = "\n".join("" if line.startswith("%") else line for line in cell.split("\n"))
        exec(compile(python, f"<ipython-input-{len(space['In'])}>", "exec"), space)
    return space["said"]


def test_the_cells_of_a_notebook_are_read_in_their_order():
    said = run_cells(
        "x = tf.constant(3.0)",
        "%matplotlib inline\nwith tf.GradientTape() as tape:\n    tape.watch(x)\n"
        "    y = tf.stop_gradient(x)\n    z = y * 2.0",
        "\nsaid = tape.explain(z, x)\nz = None",
    )
    assert "`tf.stop_gradient(x)` detaches its result (Cell In[2], line 4)" in said
    said = run_cells(
        "x = tf.constant(3.0)\ny = x * x",
        "with tf.GradientTape() as tape:\n    tape.watch(x)",
        "said = tape.explain(y, x)",
    )
    assert "`y = x * x` is computed before the tape records (Cell In[1], line 2)" in said


def test_asking_changes_nothing():
    """Neither the record nor what outer tapes have of it."""
    x = three()
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x**3
            first = tape.explain(y, x)
            y = y * 1.0
        assert tape.explain(y, x) == first
        gradient = tape.gradient(y, x)
    assert (float(gradient), float(outer.gradient(gradient, x))) == (27.0, 18.0)


def test_the_warning_says_where():
    """Decision 23, and 4.2: a target that was computed too late."""
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
    y = x * x
    words = r"computed after the tape closed.*`y = x \* x` is computed after the tape closed \(File"
    with pytest.warns(tf.errors.TapeWarning, match=words):
        assert tape.gradient(y, x) is None
    assert "`y = x * x` is computed after the tape closed" in tape.explain(y, x)


def of_a_number():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant(float(x * x)) + 1.0
    return tape.gradient(y, x)


def of_an_array():
    x = three()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.constant((x * x).numpy()) + 1.0
    return tape.gradient(y, x)


def watched_afterwards():
    x = three()
    with tf.GradientTape() as tape:
        y = x * x
        tape.watch(x)
    return tape.gradient(y, x)


def of_an_array_that_is_written():
    x, out = three(), np.zeros(2, np.float32)
    with tf.GradientTape() as tape:
        tape.watch(x)
        out[0] = x * 2.0
        y = tf.reduce_sum(out)
    return tape.gradient(y, x)


def of_an_integer(method):
    def program():
        x = tf.constant([3.0, 4.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.argmax(x)
        return getattr(tape, method)(y, x)

    return program


def swapped_arguments(method, several=False):
    def program():
        w = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            y = w * w * 2.0
        return getattr(tape, method)([w, w] if several else w, y)

    return program


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (of_a_number, r"target has no gradient, because `float\(x \* x\)` takes the value out "),
        (
            of_an_array,
            r"`\(x \* x\)\.numpy\(\)` takes the value out of .*\. Use operations on tensors",
        ),
        (watched_afterwards, r"`y = x \* x` is computed before tape\.watch .*\. Call tape\.watch"),
        (
            of_an_array_that_is_written,
            r"`out\[0\] = .* array `out` \(File .*\. Use operations on tensors",
        ),
        (
            of_an_integer("gradient"),
            r"GradientTape.gradient: .* None, because `y` has the dtype int64, and",
        ),
        (
            of_an_integer("jacobian"),
            r"GradientTape.jacobian: .* None, because `y` has the dtype int64, and",
        ),
        (swapped_arguments("gradient"), "`y` was computed from the Variable `w`. Swap the two arg"),
        (
            swapped_arguments("gradient", True),
            "`y` was computed from the Variable `w`. Swap the two arguments: the re",
        ),
        (swapped_arguments("jacobian"), "`y` was computed from the Variable `w`. Swap the two arg"),
    ],
)
def test_a_gradient_that_is_none_by_mistake_warns(program, words):
    """Nobody asks for these on purpose: the gradient is None whatever the tape recorded."""
    with pytest.warns(tf.errors.TapeWarning, match=words) as caught:
        assert program() is None
    assert [warning.filename for warning in caught] == [__file__]


def test_a_gradient_that_may_be_none_on_purpose_is_silent():
    """Zeros were asked for, other targets have gradients, or the target is a constant."""
    x, b = tf.constant([3.0, 4.0]), three()
    with tf.GradientTape(persistent=True) as outer:
        outer.watch([x, b])
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, b])
            count, loss = tf.argmax(x), tf.reduce_sum(x * x)
            line = 2.0 * b + float(loss)
            ones = tf.ones([int(tf.shape(x)[0])]) * float(tf.size(x))
            detached = tf.stop_gradient(loss) + tf.cast(loss > 3.0, tf.float32)
        slope = tape.gradient(line, b)
        assert float(slope) == 2.0
    assert tape.gradient(count, x, unconnected_gradients="zero").numpy().tolist() == [0.0, 0.0]
    assert float(tape.gradient(x, loss, unconnected_gradients="zero")) == 0.0
    assert tape.gradient([loss, count], x).numpy().tolist() == [6.0, 8.0]
    assert tape.gradient([x, loss], [x, loss])[0].numpy().tolist() == [7.0, 9.0]
    assert outer.gradient(slope, b) is None
    for target in (ones, detached, three(), b, line):
        assert tape.gradient(target, x) is None


@pytest.mark.parametrize(
    ("target", "source", "words"),
    [(1.0, tf.constant(1.0), "is float, not a Tensor"), (tf.constant(1.0), 1.0, "source must be")],
)
def test_what_is_no_tensor_is_refused(target, source, words):
    with tf.GradientTape() as tape:
        pass
    with pytest.raises(TypeError, match=words):
        tape.explain(target, source)


def test_a_tape_that_never_recorded_has_nothing_to_say():
    with pytest.raises(RuntimeError, match="never entered"):
        tf.GradientTape().explain(three(), three())
