"""Pictures of tapes: what they show, and that they keep nothing alive."""

import gc
import weakref

import pytest

import tinygrad_cg as tf
from tests.support.pictures import decorated, find, frame, nested, wrapped

pytestmark = pytest.mark.quick

# What is shown --------------------------------------------------------------------------------


def test_one_tape():
    x, w = tf.constant([1.0, 2.0]), tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = tf.exp(x) * w
    picture = tf.show(y)
    assert [item.kind for item in picture.items] == ["watched", "watched", "operation", "operation"]
    y_item = find(picture, name="y")
    assert y_item.operation == "multiply"
    assert y_item.shape == (2,)
    assert y_item.dtype == "float32"
    assert [operand.operation or operand.name for operand in y_item.operands] == ["exp", "w"]
    assert find(picture, name="w").value == "3"
    (only,) = picture.frames
    assert (only.name, only.order, only.items) == ("tape", 1, frozenset(picture.items))


def test_nested_tapes_are_nested_frames():
    picture = nested(wrapped)
    outer, inner = frame(picture, "tape outer"), frame(picture, "tape inner")
    assert inner.parent is outer
    assert outer.parent is None
    assert (outer.order, inner.order) == (2, 1)
    assert {item.name for item in inner.items} == {"x", "y", "z"}
    assert find(picture, "slope") in outer.items - inner.items


def test_custom_nodes_say_which_orders_their_rule_serves():
    picture = nested(wrapped)
    assert find(picture, "wrapped").serves == [("tape outer", 2), ("tape inner", 1)]
    assert find(picture, "slope").serves == [("tape outer", 2)]
    assert find(picture, "wrapped").role == "rule serves order 1 and 2"
    assert find(picture, "square").role == ""


def test_a_path_that_a_rule_loses_is_seen():
    lost = find(nested(decorated), "grad_fn")
    assert [item.name for item in lost.captured] == ["x"]
    assert all(item.name != "x" for item in lost.operands)
    kept = find(nested(wrapped), "slope")
    assert kept.captured == []
    assert [item.name for item in kept.operands] == ["x"]
    assert "-.->" in nested(decorated).mermaid
    assert "-.->" not in nested(wrapped).mermaid


captured = tf.constant(3.0)


def test_what_counts_as_used_is_what_the_function_itself_reads():
    inner_only, both = tf.constant(2.0), tf.constant(5.0)

    @tf.custom_gradient
    def function(x):
        captured = x * both  # a local variable, and not the global one

        def grad(dy):
            return dy * inner_only * captured

        return captured * 1.0, grad

    @tf.custom_gradient
    def reads_global(x):
        return x * captured, lambda dy: dy

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, inner_only, both, captured])
        y = function(x) + reads_global(x)
        y = y + (inner_only + both + captured)
    picture = tf.show(y)
    assert [item.name for item in find(picture, "function").captured] == ["both"]
    assert [item.name for item in find(picture, "reads_global").captured] == ["captured"]
    with tf.GradientTape() as tape:
        tape.watch(captured)
        y = reads_global(captured)  # which is differentiated as its argument
    assert find(tf.show(y), "reads_global").captured == []


def test_third_order():
    x = tf.constant(0.5)
    with tf.GradientTape() as first:
        first.watch(x)
        with tf.GradientTape() as second:
            second.watch(x)
            with tf.GradientTape() as third:
                third.watch(x)
                y = tf.tanh(x)
            d1 = third.gradient(y, x)
        d2 = second.gradient(d1, x)
    picture = tf.show(y, d1, d2)
    assert [frame.order for frame in picture.frames] == [3, 2, 1]
    assert [frame.name for frame in picture.frames] == [
        f"tape {n}" for n in ("first", "second", "third")
    ]
    assert [find(picture, name=n).order for n in ("y", "d1", "d2")] == [0, 1, 2]


def test_a_step_of_an_outer_computation_is_of_the_first_order_each_time():
    a, z = tf.constant(2.0), tf.constant(1.0)
    with tf.GradientTape() as outer:
        outer.watch(a)
        for _ in range(4):
            with tf.GradientTape() as step:
                step.watch(z)
                value = z * z * z - a
            z = z - value / step.gradient(value, z)
    picture = tf.show(z, fold=False)
    assert frame(picture, "tape outer").order == 2
    steps = [frame for frame in picture.frames if frame.name != "tape outer"]
    assert [step.order for step in steps] == [1] * 4


def test_orders_after_more_sweeps_than_are_noted():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = tf.exp(x)
        early = inner.gradient(y, x)
        for _ in range(100):
            second = inner.gradient(y, x)
    assert frame(tf.show(second), "tape outer").order == 2
    picture = tf.show(early, second)  # nobody knows any more where early is from
    assert [frame.order for frame in picture.frames] == [None, None]
    assert "order unknown" in str(picture)


def test_what_is_recomputed_in_a_rule_is_of_no_higher_order():
    x = tf.constant(0.5)
    again = tf.recompute_grad(lambda x: tf.sin(tf.exp(x)))
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = again(x)
        g = inner.gradient(y, x)
    picture = tf.show(y, g)
    assert frame(picture, "tape inner").order == 1
    assert frame(picture, "tape outer").order == 2


def test_a_bypassed_rule_is_marked():
    x = tf.constant(2.0)

    @tf.custom_gradient
    def scaled(q):
        return q * x, lambda dy: 100.0 * dy

    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.warns(tf.CustomGradientWarning):
            y = scaled(tf.constant(3.0))
    item = find(tf.show(y), name="y")
    assert (item.kind, item.operation, item.role) == ("bypassed", "scaled", "rule not used")


def test_tapes_that_overlap():
    u, v = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as left, tf.GradientTape() as right:
        left.watch(u)
        right.watch(v)
        r = tf.exp(u) * tf.sin(v)
    picture = tf.show(r)
    assert {frame.parent for frame in picture.frames} == {None}
    item = find(picture, name="r")
    assert item in frame(picture, "tape left").items & frame(picture, "tape right").items
    assert "<circle" in picture.svg  # r is drawn in one of the frames
    assert [item.operation for item in tf.show(r, left).items] == ["", "exp", "multiply"]


def test_a_tape_that_does_not_watch_what_an_inner_one_does():
    x, w = tf.constant(0.5), tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(w)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = tf.sin(x) * tf.exp(w)
        g = inner.gradient(y, x)
    picture = tf.show(y, g)
    assert frame(picture, "tape inner").parent is frame(picture, "tape outer")
    assert find(picture, name="x") not in frame(picture, "tape outer").items
    assert "only tape inner" in picture.svg


def test_a_tape_shows_what_has_names():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        others = tf.exp(y)
    assert [item.name for item in tf.show(tape).items] == ["x", "y", "others"]
    assert [item.name for item in tf.show(tape, names={"end": y}).items] == ["", "end"]
    assert len(tf.show(tape, names={}).items) == 3
    assert others.shape == ()


def test_several_outputs_variables_and_stacks():
    @tf.custom_gradient
    def both(x):
        return (x * 2.0, x * 3.0), lambda da, db: da * 2.0 + db * 3.0

    v = tf.Variable([1.0, 2.0], name="weights")
    with tf.GradientTape() as tape:
        two, three = both(v * 1.0)
        y = tf.stack([two, three])
    picture = tf.show(y, tape)
    assert find(picture, name="v").kind == "watched"
    assert find(picture, "both").name == "two, three"
    assert find(picture, "both").kind == "custom"
    assert find(picture, "stack").operands == [find(picture, "both")]


def test_a_user_s_primitive_and_a_compiled_function_have_their_names():
    double = tf.primitive("ShowDouble", kernel=lambda x: 2 * x, replace=True)
    tf.RegisterGradient("ShowDouble", replace=True)(lambda op, dy: 2.0 * dy)

    @tf.function
    def halve(x):
        return x * 0.5

    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = halve(double(x))
    assert [item.operation for item in tf.show(y).items] == ["", "ShowDouble", "halve"]


def test_graph_mode():
    with tf.Graph().as_default():
        x = tf.constant(2.0)
        y = tf.exp(x)
        g = tf.gradients(y * y, x)[0]
        picture = tf.show(y, g)
    assert [frame.name for frame in picture.frames] == ["graph"]


def test_names_in_containers_and_modules():
    class Line(tf.Module):
        def __init__(self):
            super().__init__()
            self.slope = tf.Variable(2.0)

    line, parts = Line(), {"w": [tf.Variable(1.0), tf.Variable(3.0)]}
    with tf.GradientTape() as tape:
        y = (line.slope * parts["w"][0] + parts["w"][1]) * tf.Variable(1.0, name="free")
    names = [item.name for item in tf.show(y, tape).items if item.kind == "watched"]
    assert sorted(names) == ["free", "line.slope", "parts['w'][0]", "parts['w'][1]"]


def test_a_tensor_that_inner_tapes_watch_is_met_in_any_order():
    w = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as outer:
        outer.watch(w)
        z = tf.exp(w)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(z)
            alone = tf.sin(z)
            both = z * w
    for targets in ((alone, both), (both, alone)):
        for tapes in ((), (inner,), (outer,)):
            picture = tf.show(*targets, *tapes, names={"inner": inner, "outer": outer, "z": z})
            kinds = [item.kind for item in picture.items if item.name == "z"]
            assert "watched" in kinds or tapes == (outer,)
            assert picture.svg


def test_complex_values():
    z = tf.constant(1.0 + 2.0j)
    with tf.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    assert find(tf.show(y), name="y").value == "-3+4j"


# Nothing is kept, nothing changes -------------------------------------------------------------


def test_a_picture_keeps_nothing_alive():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = wrapped(tf.exp(x))
    ends = [weakref.ref(y), weakref.ref(x)]
    gc.disable()
    try:
        picture = tf.show(y, tape)
        assert picture.svg
        assert picture.mermaid
        del x, y, tape
        assert [end() for end in ends] == [None, None]
    finally:
        gc.enable()
    assert len(picture.items) == 3


def test_showing_changes_no_gradient():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = wrapped(x) ** 2
            tf.show(y, fold=True)
        first = inner.gradient(y, x)
        tf.show(first, outer)
    assert float(first) == 192.0
    assert float(outer.gradient(first, x)) == 480.0


# Bad input ------------------------------------------------------------------------------------


def test_bad_input():
    x = tf.constant(2.0)
    with pytest.raises(ValueError, match=r"show: nothing is recorded here.*persistent=True"):
        tf.show(x)
    with pytest.raises(
        TypeError, match="show: draws Tensors, Variables and GradientTapes, got flo"
    ):
        tf.show(3.0)
    rule = tf.custom_gradient(lambda x: (x, lambda dy: dy))
    for function in (rule, tf.sin):
        with pytest.raises(TypeError, match=r"got a function: call it under a tape, and pass"):
            tf.show(function)
    with pytest.raises(ValueError, match="show: nothing to draw"):
        tf.show()
    with pytest.raises(ValueError, match="show: the tape has recorded nothing"):
        tf.show(tf.GradientTape())
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    with pytest.raises(
        TypeError, match="show: names must map names to tensors and tapes, got list"
    ):
        tf.show(y, names=[y])
    tape.gradient(y, x)
    with pytest.raises(ValueError, match=r"show: nothing is recorded here\. .*tape\.watch\(x\)"):
        tf.show(y)


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_a_tape_that_has_given_its_gradient_says_that_it_keeps_nothing(make):
    x = make([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    assert "sum" in str(tf.show(tape))
    tape.gradient(y, x)
    with pytest.raises(ValueError, match=r"discards its record .*: draw it before"):
        tf.show(tape)
    with tf.GradientTape() as tape:
        tape.watch(x)
    assert "watched by" in str(tf.show(tape))  # it still watches


def test_a_page_is_written_and_a_gif_is_not(tmp_path):
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    picture = tf.show(y)
    picture.save(tmp_path / "tape.html")
    page = (tmp_path / "tape.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert picture.svg in page
    with pytest.raises(ValueError, match=r"'tape.gif' must end in .* save an SVG"):
        picture.save(tmp_path / "tape.gif")
