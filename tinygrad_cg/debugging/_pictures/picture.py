"""show: pictures of what tapes have recorded."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from functools import cached_property
from html import escape
from inspect import CO_OPTIMIZED
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from ... import nest
from ..._core.conversion import is_tensor
from ..._core.levels import Token, is_alive
from ..._core.record import Node, is_leaf
from ..._transforms.tape import GradientTape
from ...errors import ArgumentTypeError
from ...optimizers import Optimizer
from . import collapse, text
from .drawing import Drawing
from .plotting import plotted
from .reading import RecordWalk, UserNames, known_nodes, live_nodes, token_of
from .sketch import Sketch
from .svg import svg_text

FOLD_FROM = 25  # items; smaller pictures show each
MAX_ITEMS = 120  # items in one picture


class Options(NamedTuple):
    """Options of a picture: see `show`."""

    direction: str = "TB"
    legend: bool = True
    size: tuple[float, float] | None = None
    dtype: bool = True
    values: bool = True


class Picture:
    """The result of `show`: it draws itself in a notebook, and prints itself elsewhere.

    ``svg`` and ``mermaid`` are its texts, ``pdf`` its bytes, ``save`` writes one of them.
    ``items``, ``frames`` and ``groups`` are what it shows. It is data only, and keeps no tensor
    alive.
    """

    def __init__(self, sketch: Sketch, title: str, options: Options):
        self._sketch = sketch
        self._title = title
        self._options = options

    @property
    def items(self) -> list:
        return list(self._sketch.items)

    @property
    def frames(self) -> list:
        return [frame for frame in self._sketch.frames if frame.kind in ("tape", "repeat")]

    @property
    def groups(self) -> list:
        """Return the frames of backward passes, modules and steps of optimizers."""
        return [frame for frame in self._sketch.frames if frame.kind not in ("tape", "repeat")]

    @cached_property
    def svg(self) -> str:
        """Return an SVG document."""
        return svg_text(self._drawing, self._title, self._scale)

    @cached_property
    def pdf(self) -> bytes:
        """Return a PDF document of one page: vectors, with the letters of DejaVu Sans in it.

        Raises ImportError without matplotlib, ValueError for letters that the font lacks.
        """
        return plotted(self._drawing, self._title, self._scale, "pdf")

    @cached_property
    def _drawing(self) -> Drawing:
        return Drawing(self._sketch, self._options.direction == "LR", self._options.legend)

    @property
    def _scale(self) -> float:
        """Return the factor by which the picture is enlarged to fit its size."""
        if self._options.size is None:
            return 1.0
        width, height = self._options.size
        return min(width / self._drawing.width, height / self._drawing.height)

    @property
    def _page(self) -> str:
        """Return an HTML page that shows the picture and needs no other file."""
        title = escape(self._title)
        return (
            f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>'
            f"</head>\n<body>\n{self.svg}\n</body>\n</html>\n"
        )

    @cached_property
    def mermaid(self) -> str:
        """Return a Mermaid flowchart, as JupyterLab and GitHub draw it in Markdown."""
        sideways = self._options.direction == "LR"
        return "\n".join(text.Flowchart(self._sketch, sideways).lines()) + "\n"

    def save(self, path: Any) -> None:
        """Write the picture: SVG for ``.svg``, PDF for ``.pdf``, PNG for ``.png``, a page for
        ``.html``, Mermaid for ``.mmd``, Markdown for ``.md``, lines for ``.txt``. Raises
        ValueError for other endings, and what `pdf` raises, for a PNG too.
        """
        path = Path(path)
        writers = {
            ".svg": lambda: self.svg,
            ".pdf": lambda: self.pdf,
            ".png": lambda: plotted(self._drawing, self._title, self._scale, "png"),
            ".mmd": lambda: self.mermaid,
            ".md": lambda: f"```mermaid\n{self.mermaid}```\n",
            ".html": lambda: self._page,
            ".txt": lambda: f"{self}\n",
        }
        if path.suffix not in writers:
            raise ValueError(
                f"Picture.save: {path.name!r} must end in {', '.join(writers)}: save an SVG and "
                "convert it for others"
            )
        content = writers[path.suffix]()
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))

    def __str__(self) -> str:
        return text.lines(self._sketch)

    def __repr__(self) -> str:
        return f"<Picture of {self._title}, {len(self._sketch.items)} items>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # as an image inside HTML, for notebooks show no SVG by others until they are trusted
        data = base64.b64encode(self.svg.encode()).decode()
        image = f'<img alt="{escape(self._title)}" src="data:image/svg+xml;base64,{data}">'
        return {"text/html": image, "image/svg+xml": self.svg, "text/plain": str(self)}


def show(
    *what: Any,
    names: Mapping[str, Any] | None = None,
    fold: bool | None = None,
    dtype: bool = True,
    values: bool = True,
    direction: str = "TB",
    legend: bool = True,
    size: float | tuple[float, float] | None = None,
) -> Picture:
    """Return a picture of the records of tapes: how `what` was computed, and which tapes watch it.

    Parameters
    ----------
    what:
        Tensors and Variables (nested or not), drawn with everything they were computed from,
        and tapes. If tapes are passed, only their records are drawn; tapes without tensors draw all
        named tensors. An optimizer adds its last step.
    names:
        Names for tensors and tapes: ``{"x": x, "outer": outer}``. By default those of the
        caller's variables.
    fold:
        True to draw repetitions once, with their number. By default large pictures are.
    dtype, values:
        False to leave out the dtypes, or the values of scalars.
    direction:
        "TB" draws from top to bottom, "LR" from left to right.
    legend:
        False to leave out the legend.
    size:
        The width in pixels, or the largest width and height; 4/3 pixels are a point of a PDF. By
        default letters are 13 pixels high.

    A frame is a tape with its watched tensors and its operations. Operands that no tape watches are
    small and grey; they have values if a rule keeps them. A dotted frame is the backward pass of a
    tape, as the tape around it recorded it, and a dotted line leads from the differentiated value
    to the derivative. A custom gradient shows the orders at which its rule is used. Dashed lines
    lead to it from tensors that it uses but is not differentiated with respect to. A dashed frame
    is a repetition, drawn once. A non-persistent tape discards its record when you call `gradient`,
    so draw it before, or make it persistent.

    Raises TypeError for other objects, ValueError if nothing is recorded,
    for another direction, and for a size that is not positive.

    >>> x = tf.constant(2.0)
    >>> with tf.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = tf.exp(x) * 3.0
    >>> tf.show(y, direction="LR", legend=False).save("tape.svg")
    """
    options = Options(direction, legend, _check_size(size), dtype, values)
    if direction not in ("TB", "LR"):
        raise ValueError(
            "show: direction must be 'TB' (top to bottom) or 'LR' (left to right), got "
            f"{direction!r}"
        )
    if names is None:
        return _picture(what, _callers_names(sys._getframe(1)), fold, options)
    if not isinstance(names, Mapping):
        raise TypeError(
            f"show: names must map names to tensors and tapes, got {type(names).__name__}: "
            'write names={"x": x}'
        )
    return _picture(what, UserNames([names]), fold, options)


def _check_size(size: Any) -> tuple[float, float] | None:
    """Return a width and height, infinite where none is given."""
    if size is None:
        return None
    pair = size if isinstance(size, (tuple, list)) else (size, inf)
    numbers = [number for number in pair if isinstance(number, (int, float)) and number > 0]
    if len(numbers) != 2 or len(pair) != 2:
        raise ValueError(
            "show: size must be a width in pixels, or a width and a height, all positive, got "
            f"{size!r}: write size=600 or size=(600, 800)"
        )
    return float(numbers[0]), float(numbers[1])


def tape_bundle(tape: GradientTape) -> dict[str, str]:
    """Return the picture of a tape by MIME type, or a text if there is no picture."""
    main = sys.modules.get("__main__")
    try:
        names = UserNames([vars(main) if main else {}])
        return _picture((tape,), names, None, Options())._repr_mimebundle_()
    except ValueError as error:
        return {"text/plain": f"{tape!r}\n{error}"}


def _picture(what: tuple, names: UserNames, fold_items: bool | None, options: Options) -> Picture:
    tapes, tensors, optimizers = [], [], []
    for leaf in nest.flatten(what):
        if isinstance(leaf, GradientTape):
            tapes.append(leaf)
        elif is_tensor(leaf):
            tensors.append(leaf)
        elif isinstance(leaf, Optimizer):
            optimizers.append(leaf)
        else:
            got = f"{type(leaf).__name__}: pass the result of a computation under a tape"
            if callable(leaf):
                got = "a function: call it under a tape, and pass its result"
            raise ArgumentTypeError(f"show: draws Tensors, Variables and GradientTapes, got {got}")
    if not (tapes or tensors):
        raise ValueError("show: nothing to draw: pass tensors that a tape recorded, or the tape")
    wanted = frozenset(token for tape in tapes if (token := token_of(tape)) is not None)
    if tapes and not wanted:
        raise ValueError("show: the tape has recorded nothing: enter it, and compute under it")
    nodes = [node for tensor in tensors for node in known_nodes(tensor._rec)]
    roots = [n for n in nodes if not _is_freed(n) and (not wanted or n.group & wanted)]
    if not tensors:
        roots = _all(names, wanted)
    is_spent = bool(tapes) and not any(tape._token for tape in tapes)
    if not roots or (is_spent and all(is_leaf(node) for node in roots)):
        raise ValueError(
            "show: nothing is recorded here. Tensors carry a record while a tape watches their "
            "sources: `with tf.GradientTape() as tape: tape.watch(x); y = f(x)`, and then "
            "`tf.show(y)`. A non-persistent tape discards its record when you call gradient(): "
            "draw it before, or use GradientTape(persistent=True)"
        )
    reading = RecordWalk(roots, names, wanted)
    items, frames = reading.all_items(), reading.frames
    for optimizer in optimizers:
        updates, frame = reading.last_step(optimizer, tensors)
        items, frames = [*items, *updates], [*frames, frame]
    operations = sum(item.kind != "constant" for item in items)
    if fold_items or (fold_items is None and operations > FOLD_FROM):
        items, repeats = collapse.collapse_repeats(items)
        frames = [*frames, *repeats]
    for item in items:
        item.dtype = item.dtype if options.dtype else ""
        item.value = item.value if options.values else ""
    title = ", ".join(item.name for item in items[-1:] if item.name) or "a record"
    return Picture(Sketch(collapse.shorten(items, frames, MAX_ITEMS), frames), title, options)


def _is_freed(node: Node) -> bool:
    """Return whether a finished tape dropped the record, or the node watches a tensor."""
    return node.rule is None and not is_alive(node.group)


def _all(names: UserNames, wanted: frozenset[Token]) -> list[Node]:
    """Return the nodes of named tensors; if none has a name, all nodes that are alive."""
    nodes = [node for node in names.of_node if node.group & wanted and node.rule is not None]
    return nodes or [node for node in live_nodes(wanted) if not _is_freed(node)]


_READ_LOCALS = {"dir", "eval", "exec", "locals", "vars"}
_OF_PYTEST = "@py_builtins"  # in whose assertions `locals` is read and forgotten


def _callers_names(frame: Any) -> UserNames:
    here = frame.f_locals
    names = UserNames([here, frame.f_globals])
    used = {*frame.f_code.co_names}
    may_have = _READ_LOCALS & used and _OF_PYTEST not in used
    if frame.f_code.co_flags & CO_OPTIMIZED and type(here) is dict and not may_have:
        here.clear()  # before Python 3.13 the frame keeps this copy of its variables alive
    return names
