"""What MkDocs calls while it builds the site: pages from outside of docs/, links to them, lists."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import functions
import notebooks
import reference
from latex2mathml.converter import convert
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(
    (ROOT / "examples").glob("*.ipynb"), key=lambda path: int(path.stem.partition("_")[0])
)
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
PICTURES = ("examples/*.svg", "examples/*.png", "benchmarks/*.svg")
LINK = re.compile(r'(\]\(|(?:src|href)=")([^)"\s#:]+)(#[^)"\s]*)?(?=[)"\s])')
FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\s](?:[^$]*[^$\s])?)\$", re.DOTALL)
UNSEARCHED = {
    "changelog.md",
    "architecture.md",
    "frontend.md",
    "process.md",
    "modules.md",
    "contributing.md",
}
FIGURE = re.compile(r'<img alt="([^"]*)" src="([^"]*benchmarks/figure\.svg)" ?/?>')
GUIDES = {}  # the guides that use a name: their addresses and titles
ITEM = re.compile(r"([-*]|\d+\.) +")


def on_config(config):
    """Put the notebooks, and the modules of the reference, into the navigation."""
    for entry in config.nav:
        if "Examples" in entry:
            entry["Examples"][1:1] = [f"examples/{path.stem}.md" for path in NOTEBOOKS]
        elif "API" in entry:
            entry["API"] = navigation()
    return config


def navigation():
    """Return the modules of the reference: those that most programs use, then groups."""

    def entry(name):
        return {name.replace("tinygrad_cg", "tf", 1): f"reference/api/{name}.md"}

    groups = {"Keras": [], "NumPy": [], "autograd": [], "More modules": []}
    for name in reference.modules():
        if name not in functions.PAGED:
            part = name.split(".")[1]
            title = {"keras": "Keras", "numpy": "NumPy"}.get(part, part)
            groups.get(title, groups["More modules"]).append(entry(name))
    return [*map(entry, functions.PAGED), *[{title: names} for title, names in groups.items()]]


def on_files(files, config):
    """Add what stands elsewhere in the repository, and what is generated."""

    def add(path, content):
        files.append(File.generated(config, path, content=content))

    for source, page in PAGES.items():
        add(page, (ROOT / source).read_text(encoding="utf-8"))
    for pattern in PICTURES:
        for path in ROOT.glob(pattern):
            add(path.relative_to(ROOT).as_posix(), path.read_bytes())
    for path in NOTEBOOKS:
        text, pictures = notebooks.page(path)
        add(f"examples/{path.stem}.md", text)
        for name, content in pictures.items():
            add(f"examples/{name}", content)
    add("examples/guides.md", notebooks.programs(ROOT / "examples/guides"))
    for name in reference.modules():
        page = functions.index if name in functions.PAGED else reference.page
        add(f"reference/api/{name}.md", page(name))
    add("style.css", (ROOT / "docs/site/style.css").read_text(encoding="utf-8"))
    return files


def on_page_markdown(markdown, page, config, files):
    """Change links to files outside of docs/, and indent lists as Python-Markdown wants it."""
    here = page.file.src_uri
    page.meta["search"] = searched(here)
    is_notebook = here in {f"examples/{path.stem}.md" for path in NOTEBOOKS}
    home = here if is_notebook else f"docs/{here}"
    home = {new: old for old, new in PAGES.items()}.get(here, home)

    def change(match):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(home), match[2]))
        site = _on_site(target)
        if site is None:
            return f"{match[1]}{config.repo_url}/blob/main/{target}{match[3] or ''}"
        return f"{match[1]}{posixpath.relpath(site, posixpath.dirname(here))}{match[3] or ''}"

    if is_notebook:
        markdown = _without_formulas(markdown, page.meta.setdefault("formulas", []))
    parts = re.split(r"(^ *```.*?^ *```$|`[^`\n]+`)", markdown, flags=re.M | re.S)
    parts[::2] = [LINK.sub(change, part) for part in parts[::2]]
    return indented("".join(parts))


def on_page_content(html, page, config, files):
    """Put the formulas of notebooks in, as MathML, which browsers render by themselves."""
    for index, (formula, display) in enumerate(page.meta.get("formulas", ())):
        html = html.replace(
            f"FORMULA{index}.", convert(formula, display="block" if display else "inline")
        )
    html = FIGURE.sub(panels, html)
    here = page.file.src_uri
    if here.startswith("reference/api/") or here in UNSEARCHED:
        return html
    used = set()
    html = functions.linked(html, here, used)
    if here.startswith(functions.GUIDES):
        for name in used:
            GUIDES.setdefault(name, []).append((page.url, page.title or here))
    return html


def panels(match):
    """Return the figure of times as two pictures, of which narrow screens stack the panels."""
    alt, address = match[1], match[2]
    text = (ROOT / "benchmarks/figure.svg").read_text(encoding="utf-8")
    *_, width, height = map(float, re.findall(r'viewBox="(.*?)"', text)[0].split())
    axes = re.findall(r'<g id="axes_\d">\s*<g id="patch_\d+">\s*<path d="M ([\d.]+) ', text)
    first, second = map(float, axes)
    title = re.findall(r">([^<>]*custom gradient[^<>]*)</text>", text)
    top, cut = 18.0, second - 4.0

    def part(left, right, kind=""):
        view = f"svgView(viewBox({left:.1f},{top},{right - left:.1f},{height - top:.1f}))"
        style = f"--wide:{right - left:.0f};aspect-ratio:{right - left:.0f}/{height - top:.0f}"
        return f'<img{kind} alt="{alt}" src="{address}#{view}" style="{style}">'

    right = part(0.0, first - 1.0, ' class="axis"') + part(cut, width)
    caption = f"<em>{title[0]}</em>" if title else ""
    row = f'{part(0.0, cut)}<span style="--wide:{width - cut:.0f}">{right}</span>'
    return f'{caption}<span class="panels">{row}</span>'


def searched(here):
    """Return how the search treats a page: guides rank before the reference."""
    if here in UNSEARCHED or here.removeprefix("reference/api/")[:-3] in functions.PAGED:
        return {"exclude": True}
    is_low = "/api/" in here or here.startswith(("behaviour", "differences"))
    return {"boost": 3 if here.startswith(functions.GUIDES) else 0.2 if is_low else 1}


@event_priority(-100)  # after the plugin that writes the index of the search
def on_post_build(config):
    """Write the pages of single functions."""
    functions.write(Path(config.site_dir), GUIDES)


def _without_formulas(markdown, formulas):
    """Return Markdown with a word for each formula between dollars, and append it to the list."""

    def take(match):
        formulas.append(((match[1] or match[2]).strip(), match[1] is not None))
        return f"FORMULA{len(formulas) - 1}."

    parts = re.split(r"(^```.*?^```$|`[^`\n]+`)", markdown, flags=re.M | re.S)
    parts[::2] = [FORMULA.sub(take, part) for part in parts[::2]]
    return "".join(parts)


def _on_site(target):
    """Return where a file of the repository stands on the site, if it does."""
    if target in PAGES:
        return PAGES[target]
    if target.startswith("docs/"):
        return target.removeprefix("docs/")
    if target == "examples/guides":
        return "examples/guides.md"
    if target.startswith("examples/") and target.endswith(".ipynb"):
        return target.replace(".ipynb", ".md")
    return target if any(Path(target).match(pattern) for pattern in PICTURES) else None


def indented(markdown):
    """Return Markdown with items' further lines indented by 4, and an empty line before lists."""
    lines, width, fence, before, loose = [], 0, False, "", False
    for line in markdown.splitlines():
        item = ITEM.match(line)
        if not fence and line and not line.startswith(" "):
            if item and before.strip() and (loose or not width):
                lines.append("")
            width = len(item[0]) if item else 0 if not before.strip() or line[0] in "#|`" else width
        loose = width > 0 and (loose or not line)  # an item has paragraphs
        if line.strip().startswith("```"):
            fence = not fence
        deep = width and line.startswith(" " * width)
        lines.append(" " * (4 - width) + line if deep and width < 4 else line)
        before = line
    return "\n".join(lines) + "\n"
