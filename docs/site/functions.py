"""A page for each function and class of the root, math, linalg, nn and NumPy's namespace.

MkDocs would take a tenth of a second for each. So they are rendered after the build, into the frame
of a page that it has written, and added to the index of the search.
"""

from __future__ import annotations

import ast
import html
import importlib
import inspect
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import markdown
import reference

PAGED = {
    "tinygrad_cg": "tf",
    "tinygrad_cg.math": "tf.math",
    "tinygrad_cg.linalg": "tf.linalg",
    "tinygrad_cg.nn": "tf.nn",
    "tinygrad_cg.numpy": "tf.numpy",
}
"""Modules whose names have pages of their own, and how users write these modules."""

BY_NAME = {  # a group, and the names that are in it wherever they are defined
    "Making arrays": r"arange|array$|as\w*array|empty|eye|full|identity|linspace|ones|zeros|tri$"
    r"|copy$|bartlett|blackman|hamming|hanning|kaiser|fill$|range$|constant|convert_to_tensor|meshgrid",
    "Shapes and selection": r"append|\w*split|\w*stack|atleast|broadcast|concat|delete|diagflat|"
    r"expand_dims|flip|permute|ravel|repeat|reshape|resize|roll|rot90|squeeze|take|tile|transpose|"
    r"unstack|pad$|\w*partition|\w*sort|searchsorted|extract|compress|nonzero|unique|union|isin$|"
    r"shape|size$|ndim|choose|reverse|gather|top_k|in_top_k|approx|strided_slice|unravel|one_hot",
    "Reductions": r"reduce_|arg(max|min)|nan(sum|mean|max|min|prod|std|var)|(count_nonzero|norm)$"
    r"|(sum|mean|prod|max|min|amax|amin|all|any|std|var|average|median|ptp|moments)$",
    "Segments": r"(unsorted_)?segment_|bincount|histogram",
    "Bessel functions": r"bessel|i0|j0|j1",
    "Comparison and logic": r"(not_)?equal|greater|less|logical_|is_|is(nan|inf|finite|close|real)"
    r"|allclose|array_equal|sign(bit)?$|where$",
    "Trigonometry": r"(arc|a)?(sin|cos|tan)h?2?$|arctan2|sinc|deg2rad|rad2deg|hypot|unwrap",
    "Exponentials and powers": r"exp|log|pow|sqrt|rsqrt|cbrt|square|reciprocal|xlog|float_power",
    "Convolutions and pooling": r".*conv(?!ert)|.*pool|.*dilation|.*erosion|space_to|batch_to"
    r"|depth_to",
    "Losses": r".*loss|.*cross_entropy|ctc|nce|.*sampl|compute_acc|.*hits",
    "Activations": r"relu|.*elu|sigmoid|soft|swish|silu|hard|tanh|log_soft|crelu|glu",
    "Elementwise": r"abs|add|angle|ceil|clip|conj|divide|floor|fm|gcd|imag|invert|lcm|bitwise"
    r"|\w*_shift|maximum|minimum|mod|multiply|negative|nextafter|positive|real|remainder|rint|round|around"
    r"|subtract|true_divide|degrees|radians|truncate|cast|saturate_cast|scalar|zeta|polygamma|\w*gamma",
    "Normalization": r".*norm|.*moments|dropout|.*dropout",
}
BY_HOME = {  # a group, and the modules that define what is in it
    "Derivatives": r"_transforms\.(tape|functional|jacobians|diagonal|forward|batching)|_reverse",
    "Your own rules": r"_rules|_transforms\.custom|_transforms\.recompute",
    "Checks and debugging": r"_check|debugging|pictures|_debug|errors",
    "Programs and loops": r"\._function\.|autograph|_transforms\.(control_flow|tensor_array)",
    "Sparse derivatives": r"_sparse",
    "Elementwise": r"elementwise|special_functions|trigonometry|comparison|_pointwise",
    "Products": r"_products|linalg|_fits",
    "Shapes and selection": r"arrays|_manipulation|_along_axes|creation",
    "Statistics": r"_totals|_quantiles",
}
RULES = re.compile(r"^(\w+)(?:: [\w\[\], .]+)? = \w+\($", re.M)
REPOSITORY = "https://github.com/tinygrad-cg/tinygrad_cg/blob/main"
GUIDES = ("tutorials/", "howto/", "coming_from/", "faq.md", "quickstart.md", "index.md")
EXTENSIONS = ["attr_list", "tables", "pymdownx.superfences", "pymdownx.highlight"]


def names(module: str) -> dict[str, Any]:
    """Return the functions and classes of the library's own that a module has."""
    home = importlib.import_module(module)
    values = {name: getattr(home, name) for name in sorted(home.__all__, key=str.lower)}
    return {
        name: value
        for name, value in values.items()
        if not name.startswith("_")
        and reference._kind(value) in ("Functions", "Classes")
        and reference._is_own(value)
    }


@cache
def pages() -> dict[int, str]:
    """Return, by identity, the page of each function and class: that of its first name."""
    own: dict[int, str] = {}
    for module in PAGED:
        for name, value in names(module).items():
            own.setdefault(id(value), f"{module}.{name}")
    return own


@cache
def spellings() -> dict[int, list[str]]:
    """Return, by identity, the names by which users write each function and class."""
    ways: dict[int, list[str]] = {}
    for module, written in PAGED.items():
        for name, value in names(module).items():
            ways.setdefault(id(value), []).append(f"{written}.{name}")
    return ways


@cache
def addresses() -> dict[str, str]:
    """Return the page of every public name, as guides write it: `tf.nest.flatten`, say."""
    where: dict[str, str] = {}
    for module in reference.modules():
        written = module.replace("tinygrad_cg", "tf", 1)
        where[written] = f"{module}.html"
        own = names(module)
        for name in importlib.import_module(module).__all__:
            anchor = f"#{name}" if name in own and module not in PAGED else ""
            where.setdefault(f"{written}.{name}", f"{module}.html{anchor}")
        for name, value in own.items():
            if id(value) in pages():
                where[f"{written}.{name}"] = f"{pages()[id(value)]}.html"
    return where


def group(name: str, value: Any) -> str:
    """Return the title of the group of a name."""
    home = getattr(value, "__module__", "") or ""
    if home.endswith(".linalg"):
        return "Linear algebra"
    for title, pattern in BY_HOME.items():
        if title == "Elementwise":
            break
        if re.search(pattern, home):
            return title
    if inspect.isclass(value):
        return "Classes"
    for title, pattern in BY_NAME.items():
        if re.match(pattern, name):
            return title
    for title, pattern in BY_HOME.items():
        if re.search(pattern, home):
            return title
    return "Other functions"


def index(module: str) -> str:
    """Return a page with the names of a module in groups, each with a sentence and a link."""
    home, written = importlib.import_module(module), PAGED[module]
    groups: dict[str, list[str]] = {}
    for name, value in names(module).items():
        page, summary = pages()[id(value)], reference._plain(reference._summary(value))
        line = f'- <a href="{page}.html"><code>{written}.{name}</code></a>: {summary}'
        groups.setdefault(group(name, value), []).append(line)
    order = [*BY_HOME, "Linear algebra", "Classes", *BY_NAME, "Other functions"]
    parts = [f"# {module}", reference.rendered(inspect.getdoc(home) or "")]
    for title in sorted(groups, key=order.index):
        parts += [f"## {title}", "\n".join(groups[title])]
    return "\n\n".join([*parts, *reference.rest(module)]) + "\n"


def typed(name: str, value: Any) -> str:
    """Return the signature of a function, with the types of its parameters and of its result."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return f"{name}(...)"
    is_record = hasattr(value, "primitive")

    def type_of(parameter: inspect.Parameter) -> str:
        kind = parameter.annotation
        if kind is parameter.empty and is_record:
            kind = "str | None" if parameter.name == "name" else "TensorLike"
        return "" if kind is parameter.empty else _type(kind)

    shown = reference.parameters(signature, type_of)
    result = signature.return_annotation
    result = "Tensor" if result is signature.empty and is_record else result
    arrow = "" if result is signature.empty or inspect.isclass(value) else f" -> {_type(result)}"
    line = f"{name}({', '.join(shown)}){arrow}"
    return line if len(line) < 90 else f"{name}(\n    " + ",\n    ".join(shown) + f",\n){arrow}"


def _type(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)*_?(\w+)", r"\1", text)


@cache
def _lines() -> dict[str, tuple[str, int]]:
    """Return the file and line of each operation's record, by its name."""
    places = {}
    for path in sorted((reference.ROOT / "tinygrad_cg/_ops").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for match in RULES.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            places.setdefault(match[1].lstrip("_"), (str(path), line))
    return places


@cache
def _definitions(file: str) -> dict[str, int]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return {node.name: node.lineno for node in classes}


def source(name: str, value: Any) -> str:
    """Return the address of the line that defines a function or class; empty if there is none."""
    code = getattr(inspect.unwrap(value), "__code__", None)
    file, line = (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)
    if inspect.isclass(value):
        file = inspect.getsourcefile(value) or ""
        line = _definitions(file).get(value.__name__, 1)
    if not file.startswith(str(reference.ROOT)):
        record = getattr(value, "primitive", None)
        ways = [getattr(record, "name", ""), name, getattr(value, "__name__", "")]
        places = [_lines()[way] for way in ways if way in _lines()]
        module = inspect.getmodule(value)
        file, line = places[0] if places else (getattr(module, "__file__", None) or "", 1)
    if not file.startswith(str(reference.ROOT)):
        return ""
    return f"{REPOSITORY}/{Path(file).relative_to(reference.ROOT).as_posix()}#L{line}"


def shapes(value: Any) -> str:
    """Return a sentence on the shapes of an elementwise operation or a reduction."""
    record = getattr(value, "primitive", None)
    if record is None:
        return ""
    operands = [name for name in inspect.signature(value).parameters if name != "name"]
    names = " and ".join(f"`{name}`" for name in operands)
    if "axis" in operands:
        return f"The result has the shape of `{operands[0]}` without the axes `axis`."
    if len(operands) == 1:
        return f"The result has the shape of {names}."
    return f"{names} broadcast, and the result has their common shape."


def errors(value: Any) -> list[str]:
    """Return what a function raises, for operations: by their operands' shapes and dtypes."""
    record = getattr(value, "primitive", None)
    if record is None:
        return []
    operands = [
        name for name in inspect.signature(value).parameters if name not in ("name", "axis")
    ]
    lines = ["- `ArgumentTypeError`: an operand does not hold numbers, for example a string."]
    if len(operands) > 1:
        lines.append("- `InvalidArgumentError`: the shapes do not broadcast.")
    return [*lines, "- `TypeError`: the operation has no kernel for the dtype."]


def text(name: str, value: Any, guides: dict[str, list[tuple[str, str]]]) -> str:
    """Return the page of a function or class as Markdown."""
    module, _, public = pages()[id(value)].rpartition(".")
    written = f"{PAGED[module]}.{public}"
    doc = reference.rendered(inspect.getdoc(value) or "")
    parts = [f"# {written}", f"```python\n{typed(written, value)}\n```", doc]
    if shapes(value) and "shape" not in doc:
        parts += ["**Shapes**", shapes(value)]
    if errors(value) and "Raises" not in doc:
        parts += ["**Raises**", "\n".join(errors(value))]
    if ">>> " not in doc:
        parts.append(reference._example(value))
    if inspect.isclass(value):
        for method, member in sorted(reference._methods(value).items()):
            parts.append(reference._entry(method, member, "##"))
    if module == "tinygrad_cg.numpy" and ">>> np." in "".join(parts):
        parts.append("The example uses `import tinygrad_cg.numpy as np`.")
    others = [f"`{way}`" for way in spellings()[id(value)] if way != written]
    others += [
        f'<a href="{page}.html"><code>{way}</code></a>'
        for way, page in _namesakes(public)
        if way != written and page != pages()[id(value)] and f"`{way}`" not in others
    ]
    others += [
        f'<a href="../../{page}">{html.escape(title)}</a>'
        for way in spellings()[id(value)]
        for page, title in guides.get(way, ())
    ][:6]
    home = f'<a href="{module}.html">{PAGED[module]}, all names</a>'
    parts.append("**See also**\n\n" + ", ".join([*dict.fromkeys(others), home]))
    if address := source(public, value):
        parts.append(f'<a href="{address}">Source</a>')
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def _namesakes_by_name() -> dict[str, list[tuple[str, str]]]:
    same: dict[str, list[tuple[str, str]]] = {}
    for module, written in PAGED.items():
        for name, value in names(module).items():
            same.setdefault(name, []).append((f"{written}.{name}", pages()[id(value)]))
    return same


def _namesakes(name: str) -> list[tuple[str, str]]:
    return _namesakes_by_name().get(name, [])


def linked(content: str, here: str, used: set[str]) -> str:
    """Return the HTML of a guide with links from each ``tf.name``; add them to `used`."""
    up = "../" * here.count("/")

    def link(match: re.Match[str]) -> str:
        name = match[1] if match[1].startswith("tf.") else f"tf.{match[1]}"
        while name not in addresses() and name.count(".") > 1:  # a method, say
            name = name.rpartition(".")[0]
        if name not in addresses():
            return match[0]
        used.add(name)
        return f'<a href="{up}reference/api/{addresses()[name]}">{match[0]}</a>'

    parts = re.split(r"(<pre.*?</pre>|<a .*?</a>|<h\d.*?</h\d>)", content, flags=re.S)
    pattern = r"<code>(tf(?:\.\w+)+|[a-z]+_\w+)(?:\([^<]*\))?</code>"  # check_gradients(f, x), too
    parts[::2] = [re.sub(pattern, link, part) for part in parts[::2]]
    return "".join(parts)


def frame(page: str) -> tuple[str, str]:
    """Return what stands before and after the content of a page of the site, without menus."""
    before, _, rest = page.partition('<div class="md-sidebar md-sidebar--primary"')
    rest = rest[rest.index('<div class="md-content"') :]
    start = rest.index("<h1")
    end = rest.index("</article>")
    after = rest[end:]
    before += rest[:start]
    footer = after.index('<nav class="md-footer__inner')
    after = after[:footer] + after[after.index("</nav>", footer) + len("</nav>") :]
    before = before.replace('<div class="md-content"', '<div class="md-content function"', 1)
    before = re.sub(r'\s*<link rel="(?:canonical|prev|next)".*?>', "", before)
    before = re.sub(r"<title>.*?</title>", "<title>TITLE</title>", before)
    before = re.sub(r'<a href="#[^"]*" class="md-skip">', '<a href="#top" class="md-skip">', before)
    return before, after


def write(site: Path, guides: dict[str, list[tuple[str, str]]]) -> None:
    """Write the pages into a site that has been built, and into the index of its search."""
    folder = site / "reference/api"
    before, after = frame((folder / "tinygrad_cg.bitwise.html").read_text(encoding="utf-8"))
    convert = markdown.Markdown(extensions=EXTENSIONS)
    entries = []
    for module, written in PAGED.items():
        for name, value in names(module).items():
            page = pages()[id(value)]
            if page != f"{module}.{name}":
                continue
            title = f"{written}.{name}"
            content = convert.reset().convert(text(name, value, guides))
            content = content.replace("<h1", '<h1 id="top"', 1)
            whole = before.replace("TITLE", f"{title} - tinygrad_cg", 1) + content + after
            (folder / f"{page}.html").write_text(whole, encoding="utf-8")
            summary = html.escape(reference._summary(value), quote=False)
            ways = " ".join(spellings()[id(value)])
            entry = {"location": f"reference/api/{page}.html", "title": title}
            entries.append({**entry, "text": f"<p>{summary} {ways}</p>", "boost": 0.2})
    path = site / "search/search_index.json"
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] += entries
    path.write_text(json.dumps(index, separators=(",", ":")), encoding="utf-8")
