"""show: pictures of what tapes have recorded."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from functools import cached_property
from html import escape
from inspect import CO_OPTIMIZED
from pathlib import Path
from sys import getrefcount
from typing import Any

from .. import nest
from .._core.conversion import is_tensor
from .._core.levels import Token
from .._core.record import Node
from .._transforms.tape import GradientTape
from ..errors import ArgumentTypeError
from . import collapse, text
from .reading import RecordWalk, UserNames, known_nodes, live_nodes, token_of
from .sketch import Sketch
from .svg import Drawing

FOLD_FROM = 25  # items; smaller pictures show each
MOST = 120  # items in one picture


class Picture:
    """The result of `show`: it draws itself in a notebook, and prints itself elsewhere.

    ``svg`` and ``mermaid`` are its texts, ``save`` writes one of them; ``items`` and ``frames``
    are what it shows. It is data only, and keeps no tensor alive.
    """

    def __init__(self, sketch: Sketch, title: str):
        self._sketch = sketch
        self._title = title

    @property
    def items(self) -> list:
        return list(self._sketch.items)

    @property
    def frames(self) -> list:
        return list(self._sketch.frames)

    @cached_property
    def svg(self) -> str:
        """Return an SVG document."""
        return Drawing(self._sketch, self._title).text()

    @cached_property
    def mermaid(self) -> str:
        """Return a Mermaid flowchart, as JupyterLab and GitHub draw it in Markdown."""
        return "\n".join(text.Flowchart(self._sketch).lines()) + "\n"

    def save(self, path: Any) -> None:
        """Write the picture: SVG for ``.svg``, Mermaid for ``.mmd``, Markdown for ``.md``,
        lines for ``.txt``. Raises ValueError for other endings.
        """
        path = Path(path)
        writers = {
            ".svg": lambda: self.svg,
            ".mmd": lambda: self.mermaid,
            ".md": lambda: f"```mermaid\n{self.mermaid}```\n",
            ".txt": lambda: f"{self}\n",
        }
        if path.suffix not in writers:
            raise ValueError(
                f"Picture.save: {path.name!r} must end in {', '.join(writers)}; for other formats "
                "convert the SVG"
            )
        path.write_text(writers[path.suffix](), encoding="utf-8")

    def __str__(self) -> str:
        return text.lines(self._sketch)

    def __repr__(self) -> str:
        return f"<Picture of {self._title}, {len(self._sketch.items)} items>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        # as an image inside HTML, for notebooks show no SVG by others until they are trusted
        data = base64.b64encode(self.svg.encode()).decode()
        image = f'<img alt="{escape(self._title)}" src="data:image/svg+xml;base64,{data}">'
        return {"text/html": image, "image/svg+xml": self.svg, "text/plain": str(self)}


def show(*what: Any, names: Mapping[str, Any] | None = None, fold: bool | None = None) -> Picture:
    """Return a picture of what tapes have recorded: how `what` was computed, who watches what.

    Parameters
    ----------
    what:
        Tensors and Variables (nested as you like), drawn with all that they were computed from;
        and tapes. With tapes among them only what these recorded is drawn. Tapes alone: all
        that they recorded of the tensors that have names.
    names:
        Names for tensors and tapes: ``{"x": x, "outer": outer}``. By default those of the
        caller's variables.
    fold:
        True to draw repetitions once, with their number. By default large pictures are.

    A frame stands for a tape, and holds what it recorded: the operations, and what it watches.
    Operations with a rule of their own (`custom_gradient`) say at which orders of
    differentiation it serves, and dashed lines lead to them from tensors that the function used
    without differentiating it by them. A dashed frame is what was repeated, drawn once. A
    tape that has given its only gradient keeps nothing, so take the picture before, or make it
    persistent.

    Raises TypeError for what is neither tensor nor tape, ValueError if nothing is recorded.
    """
    if names is None:
        return _picture(what, _callers_names(sys._getframe(1)), fold)
    if not isinstance(names, Mapping):
        raise TypeError(
            f"show: names must map names to tensors and tapes, got {type(names).__name__}: "
            'write names={"x": x}'
        )
    return _picture(what, UserNames([names]), fold)


def tape_bundle(tape: GradientTape) -> dict[str, str]:
    """Return the picture of a tape by MIME type; a text if there is none."""
    main = sys.modules.get("__main__")
    try:
        return _picture((tape,), UserNames([vars(main) if main else {}]), None)._repr_mimebundle_()
    except ValueError as error:
        return {"text/plain": f"{tape!r}\n{error}"}


def _picture(what: tuple, names: UserNames, fold_items: bool | None) -> Picture:
    tapes, tensors = [], []
    for one in nest.flatten(what):
        if isinstance(one, GradientTape):
            tapes.append(one)
        elif is_tensor(one):
            tensors.append(one)
        else:
            raise ArgumentTypeError(
                f"show: draws Tensors, Variables and GradientTapes, got {type(one).__name__}: pass "
                "the result of a computation under a tape"
            )
    if not (tapes or tensors):
        raise ValueError("show: nothing to draw: pass tensors that a tape recorded, or the tape")
    wanted = frozenset(token for tape in tapes if (token := token_of(tape)) is not None)
    if tapes and not wanted:
        raise ValueError("show: the tape has recorded nothing: enter it, and compute under it")
    found = [node for tensor in tensors for node in known_nodes(tensor._rec)]
    roots = [n for n in found if not _is_freed(n) and (not wanted or n.group & wanted)]
    if not tensors:
        roots = _all(names, wanted)
    if not roots:
        raise ValueError(
            "show: nothing is recorded here. Tensors carry a record while a tape watches what they "
            "are computed from; a tape that is not persistent frees it with its gradient: take "
            "the picture before, or use GradientTape(persistent=True)"
        )
    reading = RecordWalk(roots, names, wanted)
    items, frames = list(reading.items.values()), reading.frames
    if fold_items or (fold_items is None and len(items) > FOLD_FROM):
        items, repeats = collapse.collapse_repeats(items)
        frames = [*frames, *repeats]
    title = ", ".join(item.name for item in items[-1:] if item.name) or "a record"
    return Picture(Sketch(collapse.shorten(items, frames, MOST), frames), title)


def _is_freed(node: Node) -> bool:
    """Return whether a finished tape has dropped the record (or watches the tensor)."""
    return node.rule is None and not any(token.alive for token in node.group)


def _all(names: UserNames, wanted: frozenset[Token]) -> list[Node]:
    """Return the nodes of tensors that have names; if none has, all that are alive."""
    known = [node for node in names.of_node if node.group & wanted and node.rule is not None]
    return known or [node for node in live_nodes(wanted) if not _is_freed(node)]


def _callers_names(frame: Any) -> UserNames:
    here = frame.f_locals
    names = UserNames([here, frame.f_globals])
    if frame.f_code.co_flags & CO_OPTIMIZED and type(here) is dict and getrefcount(here) == 3:
        here.clear()  # before Python 3.13 the frame keeps this copy of its variables alive
    return names
