"""Count stiff phrases in what users read: ``python -m tests.support.words`` prints them by page.

Users read pages, docstrings of public names, texts of errors, warnings, reports and the tour,
notebooks and the changelog. Strings of more than three words in the library count as texts.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOUNS = r"(?:gradient|derivative|slope|Jacobian|Hessian|differentia[tb]\w+|derive\w*)s?"
LIBRARIES = r"(?:jax|keras|tensorflow|numpy|pytorch|hips|autograd)\b"
PATTERNS = {
    "derivative by x": rf"\b{NOUNS}(?: of \S+)? by (?:(?:its|the|their|all|an?|each|one|both) )?"
    r"(?:(?:complex|first|second|last|upstream|other|real) )?(?:`\w+`|[a-z]{1,2}\b|arguments?|"
    r"parameters?|Variables?|inputs?|sources?|upstreams?|gradient|divisor|elements?|rows)",
    "the original": r"\bthe original\b",
    "a negated noun": r"(?<!here) (?:is|are|was|were|be) no (?!longer|more\b|other)\w+",
    "what as a subject": r"(?:^|[.:;] +)What (?!if\b)[^?]*?[.]",
    "a clause without its noun": r"\b(?:of|by|from|with|to|and|but|for) what "
    r"(?:is|are|was|has|no?)\b",
    "of which": r"\b(?:of|to|from|by) which\b|(?:[,;.] |^)(?:but |and |not )?[Tt]h(?:at|ose) of\b",
    "room": r"\brooms?\b",
    "one, such as nouns": r"\b(?:of one|none such|such)[.,;:]",
    "after a library": rf"\bAfter `*{LIBRARIES}",
    "counterpart": r"\bcounterparts?\b",
    "true, false": r"\b(?:[Ff]alse|[Tt]rue) (?:rule|gradient|derivative|row|verdict|code|word)s?\b",
    "nobody": r"\b[Nn]obody\b",
    "some forty": r"\bsome (?:\d+|ten|twenty|thirty|forty)\b",
    "alone": r"\b[`\w]+ alone[.,;]",
    "from order 2 on": r"\bfrom (?!now)(?:order )?[`\d.\w]+ (?:\w+ )?on[.,;:]|\bfrom which on\b",
    "is told": r"\b(?:is|are) told\b|\bsays it\b",
    "is asked for": r"\b(?:is|are|was|were) asked (?:for|of|by)\b|\bif asked\b",
    "their kin": r"\b(?:its|their) kin\b",
    "what does not fit": r"\bfor what (?:does|cannot|they|it|you)\b|\band what (?:they|it|he) ",
    "so many": r"\b[Ss]o (?:many|much) (?!that\b|as\b)|\bbut for\b",
    "cannot be made": r"\b(?:cannot|can) be made: [A-Z]\w+Error\b",
    "After tf.f": r"\bAfter `{2}(?:tf|jax|np|numpy|torch|keras|autograd|scipy)\.",
    "works as it is": r"\b(?:returned|used|left|run|runs) as (?:it is|they are|it stands)\b",
    "it is none": r"\b(?:that|which|who|it|there) (?:is|are) none\b|\b(?:has|needs|watches) none\b",
    "goes on, mends": r"\b(?:mends?|mended|refuses|anew|goes on|go on|going on)\b",
    "is that of": r"\b(?:is|are|be|than|like|has) (?:that|those) of\b",
    "of its own": r"\bof (?:its|their|your|our) own(?=[.,;:)]|$)|\b(?:rule|gradient) of your own\b",
    "so does": r"\band so (?:do|does|is|are|has|have)\b|[.;] [Ss]o do(?:es)?\b",
    "such a": r"\b[Ss]uch an?\b|\b(?:of|as) such\b",
    "anything but": r"\b(?:anything|everything) but\b",
    "stands": r"\bstands?\b(?! for)",
    "has to be": r"\b(?:has|have) to be\b|\btakes? part\b|\btakes? place\b",
    "a tensor decides": r"\bthat (?:a )?tensors? decides?\b|\btensor decides which\b",
    "forgotten?": r"\b[Ww](?:as|ere) [^.?]* (?:forgotten|left out)\?",
    "each of them": r"\beach of (?:them|it)\b|\bthe one (?:before|after)\b",
    "as x has it": r"\bas (?:SciPy|NumPy|TensorFlow|JAX) (?:has|writes) ",
    "there is no": r"\b[Tt]here (?:is|are) no (?!file|device|GPU)",
    "one shape": r"\b(?:of|have|has) one (?:shape|size|length|structure)\b|\bin no order\b",
}
COMPILED = {name: re.compile(pattern, re.MULTILINE) for name, pattern in PATTERNS.items()}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the pages that users read, without code, as name and text."""
    files = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")}
    for path in sorted(files - {ROOT / "docs/modules.md"}):  # it is generated
        yield path.relative_to(ROOT).as_posix(), _prose(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "examples").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        yield path.relative_to(ROOT).as_posix(), _prose("\n\n".join(texts))


def _prose(markdown: str) -> str:
    """Return the sentences of a page: no code blocks, no headings; paragraphs in one line."""
    text = re.sub(r"^ *```(?s:.*?)^ *```$|^#.*$|^    .*$", "", markdown, flags=re.M)
    return re.sub(r"(?<!\n)\n(?![\n|])(?! *(?:[-*]|\d+\.) ) *", " ", text)


def texts() -> Iterator[tuple[str, str]]:
    """Yield the texts of errors, warnings, reports and the tour, by file."""
    for folder in ("tinygrad_cg", "kernels", "benchmarks/plugin"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            silent = _silent(tree)
            found = [
                _text(node)
                for node in ast.walk(tree)
                if isinstance(node, (ast.Constant, ast.JoinedStr)) and id(node) not in silent
            ]
            yield (
                path.relative_to(ROOT).as_posix(),
                "\n\n".join(" ".join(text.split()) for text in found if len(text.split()) > 3),
            )
    path = ROOT / "tinygrad_cg/_core/suggestions.txt"
    yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def _silent(tree: ast.AST) -> set[int]:
    """Return the ids of docstrings, and of the parts of f-strings."""
    ids: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            ids.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            ids.update(id(part) for part in ast.walk(node) if part is not node)
    return ids


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node.value, str) else ""


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield the docstrings of public names, by module."""
    import importlib
    import inspect

    import tinygrad_cg

    for name in sorted(_public_modules()):
        module = importlib.import_module(name)
        found = [inspect.getdoc(module) or ""]
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if getattr(value, "__module__", "").startswith(tinygrad_cg.__name__):
                found.append(inspect.getdoc(value) or "")
                members = vars(value).items() if inspect.isclass(value) else ()
                found += [inspect.getdoc(member) or "" for key, member in members if key[0] != "_"]
        texts = (re.sub(r"^ +(?!>|\.\.\.)", "", text, flags=re.M) for text in dict.fromkeys(found))
        yield name, "\n\n".join(map(_prose, texts))


def _public_modules() -> Iterator[str]:
    for path in (ROOT / "tinygrad_cg").rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if not any(part.startswith("_") for part in parts):
            yield ".".join(parts)


def count() -> dict[tuple[str, str], list[str]]:
    """Return the phrases by pattern and place."""
    found: dict[tuple[str, str], list[str]] = {}
    for source in (pages, texts, docstrings):
        for place, text in source():
            for name, pattern in COMPILED.items():
                hits = [
                    text[max(match.start() - 40, 0) : match.end() + 40].replace("\n", " ")
                    for match in pattern.finditer(text)
                ]
                if hits:
                    found[name, f"{place} ({source.__name__})"] = hits
    return found


def main() -> None:
    found = count()
    for (name, place), hits in found.items():
        print(f"{len(hits):4}  {name:26} {place}")
        if "-v" in sys.argv:
            print("\n".join(f"            ...{hit}..." for hit in hits))
    totals = Counter(dict.fromkeys(PATTERNS, 0))
    for (name, _), hits in found.items():
        totals[name] += len(hits)
    for name, total in totals.most_common():
        print(f"{total:4}  {name}")
    print(f"{totals.total():4}  in all")


if __name__ == "__main__":
    main()
