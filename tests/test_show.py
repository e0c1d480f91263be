"""Pictures of tapes: what they show, how they fold, and that they keep nothing alive."""

import base64
import contextlib
import gc
import re
import warnings
import weakref
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.show.folding import fold
from tinygrad_cg.show.layout import Layout
from tinygrad_cg.show.sketch import Item

SVG = "{http://www.w3.org/2000/svg}"


@tf.custom_gradient
def wrapped(x):
    def grad_fn(dy):
        @tf.custom_gradient
        def slope(x):
            def curvature(ddy):
                return 6 * x * ddy

            return 3 * x**2, curvature

        return dy * slope(x)

    return x**3, grad_fn


@tf.custom_gradient
def decorated(x):
    @tf.custom_gradient
    def grad_fn(dy):
        def grad_grad_fn(ddy):
            return 3 * x**2 * ddy

        return 3 * x**2 * dy, grad_grad_fn

    return x**3, grad_fn


def nested(op):
    """The picture of a gradient under another tape."""
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = op(x)
            z = tf.square(y)
        g = inner.gradient(z, x)
    return tf.show(z, g)


def find(picture, operation=None, name=None):
    """The one item with this operation, or name."""
    found = [
        item
        for item in picture.items
        if operation in (None, item.operation) and name in (None, item.name)
    ]
    assert len(found) == 1, found
    return found[0]


def frame(picture, name):
    (found,) = [one for one in picture.frames if one.name == name]
    return found


def boxes(picture):
    """The boxes of a picture's SVG: (x, y, width, height) by class, frames first."""
    root = ElementTree.fromstring(picture.svg)
    return [
        tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("x") is not None
    ]


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
    assert [one.operation or one.name for one in y_item.operands] == ["exp", "w"]
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


held = tf.constant(3.0)


def test_what_counts_as_used_is_what_the_function_itself_reads():
    inner_only, both = tf.constant(2.0), tf.constant(5.0)

    @tf.custom_gradient
    def function(x):
        held = x * both  # a local variable, and not the global one

        def grad(dy):
            return dy * inner_only * held

        return held * 1.0, grad

    @tf.custom_gradient
    def reads_global(x):
        return x * held, lambda dy: dy

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch([x, inner_only, both, held])
        y = function(x) + reads_global(x)
        y = y + (inner_only + both + held)
    picture = tf.show(y)
    assert [item.name for item in find(picture, "function").captured] == ["both"]
    assert [item.name for item in find(picture, "reads_global").captured] == ["held"]


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
    steps = [one for one in picture.frames if one.name != "tape outer"]
    assert [one.order for one in steps] == [1] * 4


def test_orders_after_more_sweeps_than_are_noted():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape(persistent=True) as inner:
            inner.watch(x)
            y = tf.exp(x)
        early = inner.gradient(y, x)
        for _ in range(100):
            late = inner.gradient(y, x)
    assert frame(tf.show(late), "tape outer").order == 2
    picture = tf.show(early, late)  # nobody knows any more where early is from
    assert [one.order for one in picture.frames] == [None, None]
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
    assert {one.parent for one in picture.frames} == {None}
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


# Folding --------------------------------------------------------------------------------------


def test_a_long_chain_is_one_item():
    x, w = tf.constant(1.0), tf.constant(1.001)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = x
        for _ in range(1000):
            y = y * w
    picture = tf.show(y)
    item = find(picture, name="y")
    assert item.title == "y = multiply \u00d71,000"
    assert {one.name for one in item.operands} == {"x", "w"}
    assert len(picture.items) == 3
    assert len(tf.show(y, fold=False).items) <= 125


def test_the_body_of_a_loop_is_a_frame():
    x, w = tf.constant(1.0), tf.constant(0.9)
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x
            for _ in range(50):
                y = tf.tanh(y * w) + w
        g = inner.gradient(y, x)
    picture = tf.show(y, g)
    repeats = [one for one in picture.frames if one.kind == "repeat"]
    forward = next(one for one in repeats if find(picture, name="y") in one.items)
    assert forward.count == 50
    assert forward.parent.name == "tape inner"
    assert sorted(item.operation for item in forward.items) == ["add", "multiply", "tanh"]
    assert len(picture.items) < 20


def test_layers_with_weights_of_their_own():
    weights = [tf.Variable(np.eye(3, dtype="f")) for _ in range(20)]
    with tf.GradientTape():
        h = tf.ones((2, 3))
        for weight in weights:
            h = tf.tanh(h @ weight)
    picture = tf.show(h)
    assert len(picture.items) < 10
    assert sum(item.operation == "tanh" for item in picture.items) <= 2
    total = sum(
        next((f.count for f in picture.frames if f.kind == "repeat" and item in f.items), 1)
        for item in picture.items
        if item.operation == "tanh"
    )
    assert total == 20


def test_loops_in_loops():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(10):
            for _ in range(6):
                y = tf.sin(y)
            y = tf.exp(y)
    picture = tf.show(y)
    (repeat,) = [one for one in picture.frames if one.kind == "repeat"]
    assert repeat.count == 10
    assert {item.title for item in repeat.items} == {"sin \u00d76", "y = exp"}


def test_operations_side_by_side_are_no_chain():
    items = [Item("operation", name, (), "float32", i) for i, name in enumerate("abcexeee")]
    for i in (5, 6, 7):
        items[i].operands = [items[i - 5]]
    kept, frames = fold(items)
    assert kept == items
    assert frames == []


def test_what_does_not_repeat_stays():
    items = [Item("operation", name, (), "float32", i) for i, name in enumerate("abcabdabe")]
    for before, after in pairwise(items):
        after.operands = [before]
    kept, frames = fold(items)
    assert kept == items
    assert frames == []


def test_large_pictures_leave_the_earliest_out():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for i in range(400):
            y = tf.reshape(tf.sin(y) if i % 3 else tf.exp(y), (1,) * (i % 7))
    picture = tf.show(y, fold=False)
    (rest,) = [item for item in picture.items if item.kind == "earlier"]
    assert rest.operation == "680 earlier operations"
    assert len(picture.items) == 121
    assert rest in frame(picture, "tape").items
    assert find(picture, name="y").operation == "reshape"


# Texts ----------------------------------------------------------------------------------------

NASTY = '</svg><script>alert(1)</script>"]; --> `a` & #35; %%{init}'


@pytest.fixture
def nasty():
    @tf.custom_gradient
    def function(x):
        return tf.exp(x), lambda dy: dy

    x = tf.constant(1.0)
    function_name = function.__wrapped__ if hasattr(function, "__wrapped__") else function
    function_name.__name__ = NASTY
    renamed = tf.custom_gradient(function_name)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = renamed(x)
    return tf.show(y, names={NASTY: x, f"tape {NASTY}": tape})


def test_svg_is_well_formed_whatever_the_names(nasty):
    root = ElementTree.fromstring(nasty.svg)
    texts = ["".join(one.itertext()) for one in root.iter(f"{SVG}text")]
    assert NASTY in texts
    assert not list(root.iter(f"{SVG}script"))
    assert "<script" not in nasty.svg + nasty._repr_mimebundle_()["text/html"]


def test_mermaid_escapes_names(nasty):
    labels = re.findall(r'"([^"]*)"', nasty.mermaid)
    assert len(labels) == nasty.mermaid.count('"') // 2 == 3
    for label in labels:
        assert not re.search(r"[<>&`;%\[\]]", re.sub(r"<br>|#\d+;", "", label))
    assert "script" in nasty.mermaid


def test_mermaid_has_a_node_for_each_item_and_a_subgraph_for_each_frame():
    picture = nested(wrapped)
    lines = [line.strip() for line in picture.mermaid.splitlines()]
    assert lines[0] == "flowchart TB"
    assert sum(":::" in line for line in lines) == len(picture.items)
    assert sum(line.startswith("subgraph") for line in lines) == 2 == lines.count("end")
    edges = [line for line in lines if "-->" in line]
    assert len(edges) == sum(len(item.operands) for item in picture.items)


def test_plain_text():
    text = str(nested(decorated))
    assert "tape inner: its gradient is of order 1, inside tape outer" in text
    assert "y = decorated(x)" in text
    assert "rule serves order 1 and 2" in text
    assert "uses x, and is not differentiated by it" in text


def test_boxes_lie_in_their_frames_and_do_not_overlap():
    picture = nested(wrapped)
    found = boxes(picture)
    frames, items = found[:2], found[2 : 2 + len(picture.items)]
    outer, inner = frames

    assert lies_in(inner, outer)
    in_inner = [item.name in ("x", "y", "z") for item in picture.items]
    assert [lies_in(box, inner) for box in items] == in_inner
    assert all(lies_in(box, outer) for box in items)
    assert not any(overlap(a, b) for i, a in enumerate(items) for b in items[:i])


def random_record(rng):
    """Tensors that tapes in tapes recorded: operations, rules and gradients, at random."""
    pool = [tf.constant(1.5), tf.constant(0.5)]
    with contextlib.ExitStack() as stack:
        tapes = [stack.enter_context(tf.GradientTape())]
        tapes[0].watch(pool)
        for _ in range(rng.integers(5, 40)):
            x, y = (pool[-1 - rng.integers(0, min(8, len(pool)))] for _ in range(2))
            match rng.integers(0, 8):
                case 0 if len(tapes) < 5:
                    tapes.append(stack.enter_context(tf.GradientTape(rng.random() < 0.5)))
                case 1:
                    tapes[rng.integers(0, len(tapes))].watch(x)
                case 2:
                    pool.append(wrapped(x))
                case 3 if len(tapes) > 1:
                    tape = tapes.pop(rng.integers(1, len(tapes)))
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        pool += [g for g in tape.gradient(y, [x, *pool[:2]]) if g is not None]
                case 4:
                    pool.append(tf.tanh(x))
                case 5:
                    pool += tf.unstack(tf.stack([x, y]))
                case _:
                    pool.append(x * y)
    return tapes, pool


@pytest.mark.parametrize("seed", range(12))
def test_any_record_can_be_drawn(seed):
    tapes, pool = random_record(np.random.default_rng(seed))
    for fold_it in (False, True):
        picture = tf.show(pool, fold=fold_it, names={"outermost": tapes[0]})
        assert frame(picture, "tape outermost").items
        layout = Layout(picture._sketch, lambda item: (60.0, 30.0), lambda frame: (80.0, 20.0))
        for item, around in picture._sketch.home.items():
            if around is not None:
                assert lies_in(layout.boxes[item], layout.boxes[around])
        for one in picture.frames:
            if one.parent is not None and one in layout.boxes:
                assert lies_in(layout.boxes[one], layout.boxes[one.parent])
        things = [layout.boxes[item] for item in picture.items]
        assert not any(overlap(a, b) for i, a in enumerate(things) for b in things[:i])
        for source, target, _, points in layout.paths:
            assert points[0][1] == pytest.approx(layout.boxes[source][1] + 30.0)
            assert points[-1][1] == pytest.approx(layout.boxes[target][1])
        ElementTree.fromstring(picture.svg)
        assert picture.mermaid.count("subgraph") == len(picture.frames)
        assert len(str(picture).splitlines()) >= len(picture.items)


def lies_in(box, around):
    return (
        around[0] <= box[0]
        and around[1] <= box[1]
        and box[0] + box[2] <= around[0] + around[2] + 1e-6
        and box[1] + box[3] <= around[1] + around[3] + 1e-6
    )


def overlap(a, b):
    apart = a[0] + a[2] <= b[0] + 1e-6 or b[0] + b[2] <= a[0] + 1e-6
    return not (apart or a[1] + a[3] <= b[1] + 1e-6 or b[1] + b[3] <= a[1] + 1e-6)


def test_notebooks_get_svg_and_text():
    picture = nested(wrapped)
    bundle = picture._repr_mimebundle_()
    image = bundle.pop("text/html")
    assert base64.b64decode(image.split("base64,")[1].split('"')[0]).decode() == picture.svg
    assert bundle == {"image/svg+xml": picture.svg, "text/plain": str(picture)}
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    assert tape._repr_mimebundle_()["image/svg+xml"].startswith("<svg")
    assert float(tape.gradient(y, x)) == pytest.approx(np.e)
    words = tape._repr_mimebundle_()
    assert set(words) == {"text/plain"}
    assert "GradientTape(persistent=True)" in words["text/plain"]


def test_save(tmp_path):
    picture = nested(wrapped)
    expected = {
        "svg": picture.svg,
        "mmd": picture.mermaid,
        "md": f"```mermaid\n{picture.mermaid}```\n",
        "txt": f"{picture}\n",
    }
    for ending, content in expected.items():
        picture.save(tmp_path / f"tape.{ending}")
        assert (tmp_path / f"tape.{ending}").read_text(encoding="utf-8") == content
    with pytest.raises(ValueError, match=r"'tape.png' must end in .svg"):
        picture.save(tmp_path / "tape.png")


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
    with pytest.raises(ValueError, match="show: nothing is recorded here"):
        tf.show(y)


# Curves ---------------------------------------------------------------------------------------


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def test_plot_derivatives(pyplot):
    figure = tf.plot_derivatives(tf.sin, 0.0, 3.0, references=(np.sin, np.cos), points=31)
    (axes,) = figure.axes
    curves = {line.get_label(): line.get_ydata() for line in axes.lines}
    x = np.linspace(0.0, 3.0, 31)
    np.testing.assert_allclose(curves["f''"], -np.sin(x), atol=1e-14)
    np.testing.assert_allclose(curves["reference of f'"], np.cos(x))
    assert any(re.fullmatch(r"f', off by at most \d\.\de-\d\d", label) for label in curves)
    assert len(curves) == 5


def test_plot_derivatives_marks_what_is_not_finite(pyplot):
    _, axes = pyplot.subplots()
    figure = tf.plot_derivatives(tf.sqrt, -1.0, 1.0, order=1, points=5, axes=axes)
    assert figure is axes.figure
    marks = {line.get_label(): line.get_xdata() for line in axes.lines}
    np.testing.assert_array_equal(marks["f is not finite"], [-1.0, -0.5])
    np.testing.assert_array_equal(marks["f' is not finite"], [-1.0, -0.5, 0.0])


def test_plot_derivatives_refuses():
    with pytest.raises(TypeError, match="plot_derivatives: f must be a function, got float"):
        tf.plot_derivatives(1.0, 0.0, 1.0)
    with pytest.raises(ValueError, match="low must be below high, got 1"):
        tf.plot_derivatives(tf.sin, 1.0, 0.0)
    with pytest.raises(ValueError, match="order must be 0 or more, got -1"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, order=-1)
    with pytest.raises(ValueError, match="points must be 2 or more, got 1"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, points=1)
    with pytest.raises(ValueError, match="2 references for 1 curves"):
        tf.plot_derivatives(tf.sin, 0.0, 1.0, order=0, references=(np.sin, np.cos))
    pytest.importorskip("matplotlib").use("agg")
    with pytest.raises(ValueError, match=r"must be elementwise.*got shape \(\)"):
        tf.plot_derivatives(tf.reduce_sum, 0.0, 1.0)
