"""Pictures of tapes: how loops fold, where things stand, and the texts that draw them."""

import base64
import contextlib
import re
import warnings
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.pictures import decorated, find, frame, nested, wrapped
from tinygrad_cg.debugging._pictures.collapse import collapse_repeats
from tinygrad_cg.debugging._pictures.layout import LayeredLayout
from tinygrad_cg.debugging._pictures.sketch import Item

SVG = "{http://www.w3.org/2000/svg}"

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
    assert {operand.name for operand in item.operands} == {"x", "w"}
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
    repeats = [frame for frame in picture.frames if frame.kind == "repeat"]
    forward = next(repeat for repeat in repeats if find(picture, name="y") in repeat.items)
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
    (repeat,) = [frame for frame in picture.frames if frame.kind == "repeat"]
    assert repeat.count == 10
    assert {item.title for item in repeat.items} == {"sin \u00d76", "y = exp"}


def test_operations_side_by_side_are_no_chain():
    items = [Item("operation", name, (), "float32", i) for i, name in enumerate("abcexeee")]
    for i in (5, 6, 7):
        items[i].operands = [items[i - 5]]
    kept, frames = collapse_repeats(items)
    assert kept == items
    assert frames == []


def test_a_result_and_operations_on_it_are_no_chain():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(tf.sin(x))
        parts = tf.stack([tf.exp(y) for _ in range(6)])
    picture = tf.show(y, parts, fold=True)
    assert find(picture, name="y").title == "y = exp"
    (many,) = [item for item in picture.items if item.count == 6]
    assert many.operands == [find(picture, name="y")]
    assert many.carried == []


def test_what_does_not_repeat_stays():
    items = [Item("operation", name, (), "float32", i) for i, name in enumerate("abcabdabe")]
    for before, after in pairwise(items):
        after.operands = [before]
    kept, frames = collapse_repeats(items)
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
    texts = ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]
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
    assert sum(line.startswith("subgraph") for line in lines) == 3 == lines.count("end")
    edges = [line for line in lines if "-->" in line]
    assert len(edges) == sum(len(item.operands) for item in picture.items)
    assert lines.count("direction TB") == 1  # of the outer one, whose border no line crosses


def test_plain_text():
    text = str(nested(decorated))
    assert "tape inner: computes gradients of order 1, inside tape outer" in text
    assert "y = decorated(x)" in text
    assert "rule serves order 1 and 2" in text
    assert "uses x, but is not differentiated with respect to it" in text


def test_boxes_lie_in_their_frames_and_do_not_overlap():
    picture = nested(wrapped)
    shapes = boxes(picture)
    frames, items = shapes[:3], shapes[3 : 3 + len(picture.items)]
    outer, inner, backward = frames

    assert lies_in(inner, outer)
    assert lies_in(backward, outer)
    assert not overlap(inner, backward)
    of_z = find(picture, name="z").operands  # and the constants that it uses
    in_inner = [item.name in ("x", "y", "z") or item in of_z for item in picture.items]
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
        layout = LayeredLayout(
            picture._sketch, lambda item: (60.0, 30.0), lambda frame: (80.0, 20.0)
        )
        for item, around in picture._sketch.home.items():
            if around is not None:
                assert lies_in(layout.boxes[item], layout.boxes[around])
        for group in picture.frames:
            if group.parent is not None and group in layout.boxes:
                assert lies_in(layout.boxes[group], layout.boxes[group.parent])
        things = [layout.boxes[item] for item in picture.items]
        assert not any(overlap(a, b) for i, a in enumerate(things) for b in things[:i])
        for source, target, _, points in layout.paths:
            assert points[0][1] == pytest.approx(layout.boxes[source][1] + 30.0)
            assert points[-1][1] == pytest.approx(layout.boxes[target][1])
        ElementTree.fromstring(picture.svg)
        assert picture.mermaid.count("subgraph") == len(picture.frames) + len(picture.groups)
        assert len(str(picture).splitlines()) >= len(picture.items)


def lies_in(box, around):
    return (
        around[0] <= box[0]
        and around[1] <= box[1]
        and box[0] + box[2] <= around[0] + around[2] + 1e-6
        and box[1] + box[3] <= around[1] + around[3] + 1e-6
    )


def overlap(a, b):
    separate = a[0] + a[2] <= b[0] + 1e-6 or b[0] + b[2] <= a[0] + 1e-6
    return not (separate or a[1] + a[3] <= b[1] + 1e-6 or b[1] + b[3] <= a[1] + 1e-6)


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
    with pytest.raises(ValueError, match=r"'tape.gif' must end in .svg"):
        picture.save(tmp_path / "tape.gif")


def boxes(picture):
    """The boxes of a picture's SVG: (x, y, width, height) by class, frames first."""
    root = ElementTree.fromstring(picture.svg)
    return [
        tuple(float(rect.get(key)) for key in ("x", "y", "width", "height"))
        for rect in root.iter(f"{SVG}rect")
        if rect.get("x") is not None
    ]
