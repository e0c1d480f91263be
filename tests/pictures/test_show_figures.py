"""Pictures of tapes: constants, backward passes, loops, modules, steps, options and PDF."""

import re
import sys
from itertools import combinations, pairwise, product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import pyplot

import tinygrad_cg as tf
from tests.support.pictures import (
    Dense,
    constants,
    decorated,
    find,
    frame,
    groups,
    nested,
    network,
    third_order,
    wrapped,
)
from tinygrad_cg.debugging._pictures.drawing import Drawing
from tinygrad_cg.debugging._pictures.fonts import text_width
from tinygrad_cg.debugging._pictures.plotting import FigureCanvas

SVG = "{http://www.w3.org/2000/svg}"


# Constants ------------------------------------------------------------------------------------


def test_operands_that_no_tape_watches_are_constants():
    x, scale, other = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([5.0, 6.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        scaled = x * scale
        power = scaled**3
        twice = 2.5 * power
        moved = twice + other
    picture = tf.show(moved)
    assert constants(find(picture, name="scaled")) == ["scale"]
    assert constants(find(picture, name="power")) == ["3"]
    assert constants(find(picture, name="twice")) == ["2.5"]
    assert constants(find(picture, name="moved")) == ["constant"]  # a rule of + needs no value
    (scale_item,) = [item for item in picture.items if item.title == "scale"]
    assert scale_item.detail == "float32 (2,)"
    assert "twice = multiply(2.5, power)" in str(picture)
    assert "moved = add(twice, constant)" in str(picture)
    assert "not watched" in picture.svg
    assert scale_item not in frame(picture, "tape").items  # the tape knows nothing of it


def test_one_constant_is_drawn_once_and_lies_where_all_that_uses_it_does():
    x, w = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * w
            z = tf.sin(y) ** 2
        g = inner.gradient(z, x)
    picture = tf.show(z, g)
    (w_item,) = [item for item in picture.items if item.title == "w"]
    assert picture._sketch.home[w_item] is frame(picture, "tape outer")
    (two,) = [operand for operand in find(picture, name="z").operands if operand.kind == "constant"]
    assert picture._sketch.home[two] is frame(picture, "tape inner")


def test_a_loop_with_a_constant_is_one_operation():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(100):
            y = y * 1.001
        z = y
        for n in range(30):
            z = z * float(n)
    picture = tf.show(y, z)
    assert find(picture, name="y").title == "y = multiply \u00d7100"
    assert constants(find(picture, name="y")) == ["1.001"]
    assert constants(find(picture, name="z")) == ["constant"]  # it differs


# Backward passes ------------------------------------------------------------------------------


def test_a_backward_pass_is_a_group_and_its_result_a_derivative():
    picture = nested(wrapped)
    (band,) = groups(picture, "backward")
    assert band.title == "backward pass of inner"
    assert band.parent is frame(picture, "tape outer")
    g, z = find(picture, name="g"), find(picture, name="z")
    assert {g, find(picture, "slope")} <= band.items
    assert z not in band.items
    assert g.derivative_of == {z: "dz/dx"}
    texts = [element.text for element in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]
    assert "dz/dx" in texts
    assert "backward pass of inner" in texts
    assert re.search(r'n\d+ == "dz#47;dx" ==> n\d+\n', picture.mermaid)
    assert "is dz/dx" in str(picture)


def test_derivatives_by_several_sources_and_of_several_orders():
    u, v = tf.constant(2.0), tf.constant(3.0)
    with tf.GradientTape() as first:
        first.watch([u, v])
        with tf.GradientTape() as second:
            second.watch([u, v])
            with tf.GradientTape() as third:
                third.watch([u, v])
                loss = u * u * v
            du, dv = third.gradient(loss, [u, v])
        duv = second.gradient(du, v)
    picture = tf.show(loss, du, dv, duv)
    labels = {
        item.name: list(item.derivative_of.values()) for item in picture.items if item.derivative_of
    }
    assert labels == {"du": ["d(loss)/du"], "dv": ["d(loss)/dv"], "duv": ["d(du)/dv"]}
    titles = {group.title for group in groups(picture, "backward")}
    assert titles == {"backward pass of third", "backward pass of second"}


def test_a_gradient_of_several_targets_has_no_one_quotient():
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y, z = tf.sin(x), tf.exp(x)
        g = inner.gradient([y, z], x)
    picture = tf.show(y, z, g)
    assert not any(item.derivative_of for item in picture.items)
    assert len(groups(picture, "backward")) == 1


def test_the_transpose_of_a_rule_is_no_backward_pass():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        _, tangent = tf.jvp(wrapped, (x,), (tf.constant(1.0),))
    assert groups(tf.show(tangent), "backward") == []


# Loops ----------------------------------------------------------------------------------------


def test_what_a_loop_carries_has_a_line_back():
    x, w = tf.constant(1.0), tf.constant(0.9)
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = x
        for _ in range(50):
            y = tf.tanh(y * w) + w
    picture = tf.show(y)
    ((source, target, body),) = picture._sketch.loops()
    assert (source.name, target.operation, body.count) == ("y", "multiply", 50)
    assert '-- "next" -->' in picture.mermaid
    assert "to the next repetition" in picture.svg
    for sideways in (False, True):
        layout = Drawing(picture._sketch, sideways).layout
        ((_, _, _, points),) = layout.loops
        left, top, width, height = layout.boxes[body]
        assert all(left <= x <= left + width and top <= y <= top + height for x, y in points)
        assert all(a[0] == b[0] or a[1] == b[1] for a, b in pairwise(points))


def test_an_operation_on_its_own_result_has_a_line_back_and_independent_ones_have_none():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(40):
            y = tf.sin(y)
        parts = tf.stack([tf.exp(x) for _ in range(6)])
    picture = tf.show(y, parts, fold=True)
    ((source, target, body),) = picture._sketch.loops()
    assert source is target is find(picture, "sin")
    assert body is None


# Modules and optimizers -----------------------------------------------------------------------


class Network(tf.Module):
    def __init__(self):
        super().__init__()
        self.layers = [Dense(4, 8, tf.tanh), Dense(8, 3, tf.exp)]
        self.last = Dense(3, 1, tf.sin)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.last(x)


@pytest.fixture
def trained():
    net, x = Network(), tf.constant(np.ones((5, 4), "f"))
    optimizer = tf.optimizers.SGD(0.25)
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(net(x) ** 2)
    variables = net.trainable_variables[:-1]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
    return net, tape, loss, optimizer


def test_modules_are_groups(trained):
    net, tape, loss, _ = trained  # noqa: RUF059 - its name is in the picture
    picture = tf.show(loss, tape)
    modules = {group.name: group for group in groups(picture, "module")}
    assert set(modules) == {"net", "net.layers[0]", "net.layers[1]", "net.last"}
    assert {module.remark for module in modules.values()} == {"Network", "Dense"}
    operations = {
        name: {item.operation for item in module.items} - {""} for name, module in modules.items()
    }
    assert operations["net.layers[0]"] == {"matmul", "add", "tanh"}  # tanh leads to the next layer
    assert operations["net.last"] == {"matmul", "add"}  # what follows may be the loss's
    assert operations["net"] == {"matmul", "add", "tanh", "exp"}
    assert modules["net.last"].parent is modules["net"]
    assert modules["net"].parent is frame(picture, "tape")
    assert find(picture, name="net.last.b") in modules["net.last"].items
    assert find(picture, "mean") not in modules["net"].items
    assert "net.last" in picture.svg


def test_modules_without_names_and_without_variables_are_no_groups(trained):
    _, tape, loss, _ = trained
    assert groups(tf.show(loss, names={"tape": tape}), "module") == []


def test_the_last_step_of_an_optimizer(trained):
    net, _, loss, optimizer = trained
    picture = tf.show(loss, optimizer)
    (step,) = groups(picture, "step")
    assert step.title == "SGD"
    assert step.detail == "learning rate 0.25, 1 step done"
    names = [path for path, variable in net.named_variables.items()]
    assert sorted(item.name for item in step.items) == sorted(f"net.{name}" for name in names[:-1])
    loss_item = find(picture, name="loss")
    assert all(list(item.derivative_of) == [loss_item] for item in step.items)
    assert "net.last.b updated by the derivative of loss" in str(picture)
    with pytest.raises(ValueError, match=r"show: the optimizer adam has not updated any Variable"):
        tf.show(loss, tf.optimizers.Adam())


# Lines and titles -----------------------------------------------------------------------------


def looped():
    """A loop of two operations that carries two results, under two tapes."""
    x, w = tf.constant(1.0), tf.constant(0.9)
    with tf.GradientTape() as outer:
        outer.watch([x, w])
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x
            for _ in range(50):
                y = tf.tanh(y * w) + w
        g = inner.gradient(y, x)
    return tf.show(y, g)


@pytest.mark.parametrize(
    "draw", [lambda: nested(wrapped), lambda: nested(decorated), third_order, network, looped]
)
def test_no_line_crosses_the_title_of_a_frame(draw):
    picture = draw()
    drawing = Drawing(picture._sketch)
    layout = drawing.layout
    texts = ElementTree.fromstring(picture.svg).iter(f"{SVG}text")
    places = {(text.text, float(text.get("y"))): float(text.get("x")) for text in texts}
    for region in picture._sketch.frames:
        _, y, _, _ = layout.boxes[region]
        width, _ = drawing._heading(region)
        if region.kind == "repeat":
            right = places[region.title, round(y + 18, 1)]
            left, right = right - width + 8, right
        else:
            left = places[region.title, round(y + 20, 1)]
            right = left + width
        for *_, points in layout.paths:
            for (x0, y0), (x1, y1) in pairwise(points):
                beside = max(x0, x1) <= left or min(x0, x1) >= right
                assert beside or max(y0, y1) <= y + 8 or min(y0, y1) >= y + 24, region.title


@pytest.mark.parametrize("op", [wrapped, decorated])
def test_lines_of_the_nesting_examples_cross_nowhere(op):
    layout = Drawing(nested(op)._sketch).layout
    paths = [path for path in layout.paths if path[0].kind != "constant"]
    for (source, _, _, points), (other, _, _, others) in combinations(paths, 2):
        if source is not other:
            for line, second in product(pairwise(points), pairwise(others)):
                assert not _cross((*line[0], *line[1]), (*second[0], *second[1]))


def _cross(line, other):
    """Whether two straight lines cross, apart from common ends."""

    def side(line, x, y):
        return (line[2] - line[0]) * (y - line[1]) - (line[3] - line[1]) * (x - line[0])

    return (
        side(line, *other[:2]) * side(line, *other[2:]) < 0
        and side(other, *line[:2]) * side(other, *line[2:]) < 0
    )


def test_results_that_a_loop_carries_share_a_line_and_stay_clear_of_boxes():
    u, v = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])
    with tf.GradientTape() as tape:
        tape.watch([u, v])
        a, b = u, v
        for _ in range(20):
            a = tf.tanh(a) * b
            b = tf.sigmoid(a + b) * a
    picture = tf.show(a, b)
    layout = Drawing(picture._sketch).layout
    columns: dict = {}
    for source, _, body, points in layout.loops:
        if body is not None:
            columns.setdefault((body, source), set()).add(round(points[2][0], 3))
    assert len(layout.loops) > len(columns)  # one result is used twice
    assert all(len(places) == 1 for places in columns.values())
    for source, target, _, points in layout.loops:
        for item, (x, y, width, height) in layout.boxes.items():
            if item in (source, target) or item not in picture.items:
                continue
            for (x0, y0), (x1, y1) in pairwise(points):
                beside = max(x0, x1) <= x or min(x0, x1) >= x + width
                assert beside or max(y0, y1) <= y or min(y0, y1) >= y + height


def test_a_line_back_to_one_operation_keeps_clear_of_the_lines_around():
    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x
        for _ in range(10):
            for _ in range(6):
                y = tf.sin(y)
            y = tf.exp(y)
    layout = Drawing(tf.show(y, names={})._sketch).layout
    (own,) = [points for *_, body, points in layout.loops if body is None]
    (around,) = [points for *_, body, points in layout.loops if body is not None]
    assert max(x for x, _ in own) < max(x for x, _ in around) - 5


def test_the_updates_of_a_step_stand_in_rows():
    picture = network()
    (step,) = groups(picture, "step")
    boxes = Drawing(picture._sketch).layout.boxes
    rows = [round(boxes[item][1]) for item in picture.items if item in step.items]
    assert [rows.count(row) for row in sorted(set(rows))] == [2, 2, 2]


# Options --------------------------------------------------------------------------------------


def record():
    x = tf.constant([[2.0]])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(x) * 3.0)
    return y, tape


def test_dtypes_values_and_the_legend_can_be_left_out():
    y, tape = record()
    names = {"y": y}
    assert find(tf.show(y, tape, names=names), name="y").detail == "22.1672 · float32"
    assert find(tf.show(y, names=names, dtype=False), name="y").detail == "22.1672"
    assert find(tf.show(y, names=names, values=False), name="y").detail == "float32"
    bare = tf.show(y, names=names, dtype=False, values=False)
    assert find(bare, name="y").detail == ""
    assert find(bare, "exp").detail == "(1, 1)"
    assert "float32" not in bare.svg + bare.mermaid + str(bare)
    assert "watched tensor" in tf.show(y).svg
    assert "watched tensor" not in tf.show(y, legend=False).svg


def test_direction():
    y, _ = record()
    down, right = tf.show(y), tf.show(y, direction="LR")
    assert down.mermaid.startswith("flowchart TB")
    assert right.mermaid.startswith("flowchart LR")
    assert "direction LR" in right.mermaid
    for picture, along in ((down, 1), (right, 0)):
        drawing = Drawing(picture._sketch, along == 0)
        boxes = drawing.layout.boxes
        for source, target, _, points in drawing.layout.paths:
            assert boxes[source][along] + boxes[source][along + 2] <= boxes[target][along]
            assert points[0][along] == boxes[source][along] + boxes[source][along + 2]
            assert points[-1][along] == boxes[target][along]


def test_size():
    y, _ = record()

    def measure(picture):
        root = ElementTree.fromstring(picture.svg)
        return float(root.get("width")), float(root.get("height"))

    width, height = measure(tf.show(y))
    assert measure(tf.show(y, size=2 * width)) == pytest.approx((2 * width, 2 * height), abs=2)
    small = measure(tf.show(y, size=(width, height / 2)))
    assert small == pytest.approx((width / 2, height / 2), abs=2)
    box = re.search(rb"/MediaBox \[ ?0 0 (\S+) ([\d.]+)", tf.show(y, size=(width, height / 2)).pdf)
    assert float(box[2]) == pytest.approx(0.75 * height / 2, abs=1)


@pytest.mark.parametrize("size", [0, -3, (3,), (1, 2, 3), "wide", (100, 0)])
def test_bad_sizes(size):
    y, _ = record()
    with pytest.raises(ValueError, match=r"show: size must be a width in pixels.*size=600"):
        tf.show(y, size=size)


def test_bad_direction():
    y, _ = record()
    with pytest.raises(ValueError, match=r"show: direction must be 'TB'.*'LR'.*got 'up'"):
        tf.show(y, direction="up")


# The pictures of docs/howto/pictures.md -----------------------------------------------------------


@pytest.mark.parametrize(("name", "draw"), [("third_order", third_order), ("network", network)])
def test_pictures_of_the_readme_are_up_to_date(name, draw):
    def content(svg):
        root = ElementTree.fromstring(svg)
        return [element.text for element in root.iter(f"{SVG}text")], len(list(root.iter()))

    kept = Path(__file__).resolve().parents[2] / "examples" / f"{name}.svg"
    assert content(draw().svg) == content(kept.read_text(encoding="utf-8"))


# PDF and PNG ----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [wrapped, decorated])
def test_pdf(op, tmp_path):
    picture = nested(op)
    picture.save(tmp_path / "tape.pdf")
    data = (tmp_path / "tape.pdf").read_bytes()
    assert data == picture.pdf == nested(op).pdf
    assert data.startswith(b"%PDF-1.4\n")
    assert data.endswith(b"%%EOF\n")
    assert data.count(b"/FontFile2") >= 2  # plain and bold letters are in the file
    picture.save(tmp_path / "tape.png")
    pixels = pyplot.imread(tmp_path / "tape.png")
    root = ElementTree.fromstring(picture.svg)
    assert pixels.shape[0] == pytest.approx(2 * float(root.get("height")), abs=2)
    assert pixels.shape[1] == pytest.approx(2 * float(root.get("width")), abs=2)
    assert len(np.unique(pixels.reshape(-1, 4), axis=0)) > 50


def test_figures_draw_what_svg_does():
    picture = nested(wrapped)
    canvas = FigureCanvas(picture._drawing.width, picture._drawing.height, 1.0)
    picture._drawing.draw(canvas)
    root = ElementTree.fromstring(picture.svg)
    assert [text.get_text() for text in canvas.figure.texts] == [
        text.text for text in root.iter(f"{SVG}text")
    ]
    shapes = [shape for kind in ("path", "rect", "circle") for shape in root.iter(f"{SVG}{kind}")]
    filled = sum(patch.get_facecolor()[3] > 0 for patch in canvas.figure.artists)
    lined = sum(patch.get_edgecolor()[3] > 0 for patch in canvas.figure.artists)
    assert filled == sum(shape.get("fill") != "none" for shape in shapes)
    assert lined == sum(shape.get("stroke") is not None for shape in shapes)
    width, height = canvas.figure.get_size_inches() * 72
    for text in canvas.figure.texts:
        box = text.get_window_extent().transformed(canvas.figure.dpi_scale_trans.inverted())
        assert 0 <= box.x0 * 72 <= box.x1 * 72 <= width
        assert 0 <= box.y0 * 72 <= box.y1 * 72 <= height


def test_letters_that_a_pdf_has_and_lacks():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x)
    assert tf.show(y, tape, names={"θ": x, "потеря": y, "a $b$": tape}).pdf
    with pytest.raises(ValueError, match=r"lacks the letter '数' \(U\+6570\).*names=\{"):
        _ = tf.show(y, names={"数": x}).pdf


def test_pdf_and_png_need_matplotlib(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    y, tape = record()
    with pytest.raises(ImportError, match=r"need matplotlib: pip install matplotlib"):
        _ = tf.show(y, tape).pdf
    with pytest.raises(ImportError, match=r"or save the picture as .svg"):
        tf.show(y, tape).save(tmp_path / "tape.png")
    assert not list(tmp_path.iterdir())


def test_widths_are_those_of_the_fonts():
    afm = pytest.importorskip("matplotlib._afm")
    from matplotlib import get_data_path

    for name, bold in (("Helvetica", False), ("Helvetica-Bold", True)):
        with open(f"{get_data_path()}/fonts/pdfcorefonts/{name}.afm", "rb") as file:
            metrics = afm.AFM(file)._metrics
        codes = [*range(32, 39), *range(40, 96), *range(97, 127)]
        assert [text_width(chr(code), 1000, bold) for code in codes] == [
            metrics[code].width for code in codes
        ]


def test_texts_are_as_wide_as_the_layout_says_in_any_font():
    font_manager = pytest.importorskip("matplotlib.font_manager")
    from tinygrad_cg.debugging._pictures.plotting import FONT_SCALES

    for text in ElementTree.fromstring(nested(decorated).svg).iter(f"{SVG}text"):
        weight, size = text.get("font-weight", "normal"), float(text.get("font-size"))
        width = text_width(text.text, size, weight == "bold")
        assert float(text.get("textLength")) == pytest.approx(width, abs=0.06)
        properties = font_manager.FontProperties(family="DejaVu Sans", weight=weight)
        font = font_manager.get_font(font_manager.findfont(properties))
        font.set_size(100 * FONT_SCALES[weight], 72)
        font.set_text(text.text, 0)
        wide = font.get_width_height()[0] / 64
        assert wide <= 1.03 * text_width(text.text, 100, weight == "bold"), text.text


def test_pictures_of_many_sweeps_in_both_directions():
    start, w = tf.constant(0.5), tf.constant([1.0, 2.0])
    with tf.GradientTape() as outer:
        outer.watch(start)
        v = start
        for _ in range(4):
            with tf.GradientTape() as inner:
                inner.watch(v)
                loss = tf.reduce_sum((wrapped(v) * w - 1.0) ** 2)
            v = v - 0.1 * inner.gradient(loss, v)
    for fold in (False, True):
        for direction in ("TB", "LR"):
            picture = tf.show(v, fold=fold, direction=direction)
            assert 1 <= len(groups(picture, "backward")) <= (2 if fold else 4)
            boxes = Drawing(picture._sketch, direction == "LR").layout.boxes
            for item, around in picture._sketch.home.items():
                x, y, width, height = boxes[item]
                left, top, wide, high = boxes[around]
                assert left <= x <= x + width <= left + wide
                assert top <= y <= y + height <= top + high
            assert ElementTree.fromstring(picture.svg) is not None
            assert picture.pdf.endswith(b"%%EOF\n")
