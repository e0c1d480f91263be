"""The API reference: examples of docstrings run, and each function of arrays has an example."""

import builtins
import doctest
import importlib
import importlib.util
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

import tinygrad_cg as tf

SITE = Path(__file__).resolve().parents[2] / "docs/site"
_SPEC = importlib.util.spec_from_file_location("site_reference", SITE / "reference.py")
assert _SPEC is not None
assert _SPEC.loader is not None
reference = importlib.util.module_from_spec(_SPEC)
_path = [*sys.path]
_SPEC.loader.exec_module(reference)
sys.path[:] = _path  # the site's build finds the library by itself

OF_ARRAYS = ("", ".math", ".linalg", ".nn", ".signal", ".bitwise", ".keras.ops", ".numpy")
OF_ARRAYS += (".numpy.fft", ".numpy.linalg", ".keras.losses", ".nest")
WITHOUT = """
    Assert NotDifferentiable assert_equal assert_greater assert_less
    assert_rank clear_cache control_dependencies debug_nans device get_logger
    group guarantee_const hessians keras.ops.ctc_loss keras.ops.empty
    keras.ops.empty_like keras.ops.istft nn.all_candidate_sampler
    nn.batch_norm_with_global_normalization nn.compute_accidental_hits nn.ctc_loss
    nn.depthwise_conv2d_backprop_filter nn.depthwise_conv2d_backprop_input nn.nce_loss
    nn.sampled_softmax_loss nn.with_space_to_batch no_gradient no_op numpy.empty
    numpy.empty_like set_num_threads signal.inverse_stft signal.inverse_stft_window_fn
    timestamp
"""
"""What acts on the process, a block or a graph, or needs more arguments than a line holds."""


def functions():
    """Yield the library's own public functions and classes, with their module and name."""
    for name in reference.modules():
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if reference._kind(value) in ("Functions", "Classes") and reference._is_own(value):
                yield module, public, value


def documented():
    """Yield objects with examples in their docstrings, once each, and the module they are of."""
    seen = set()
    for module, name, value in functions():
        members = reference._methods(value) if inspect.isclass(value) else {}
        for label, member in [(name, value), *((f"{name}.{k}", v) for k, v in members.items())]:
            text = inspect.getdoc(member) or ""
            if ">>> " in text and text not in seen:
                seen.add(text)
                yield module, f"{module.__name__}.{label}", text


def test_examples_of_docstrings_run(tmp_path, monkeypatch):
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner, parser = doctest.DocTestRunner(optionflags=flags), doctest.DocTestParser()
    monkeypatch.chdir(tmp_path)  # some write files
    wrong: list[str] = []
    count = 0
    for module, label, text in documented():
        own = {name: value for name, value in vars(module).items() if not hasattr(builtins, name)}
        names = {**own, "tf": tf, "np": np}
        runner.run(parser.get_doctest(text, names, label, None, 0), out=wrong.append)
        count += 1
    assert not wrong, "".join(wrong)
    assert count >= 180


def test_each_function_of_arrays_has_an_example():
    """The site computes what the lines of examples.txt return, and fails where one raises."""
    examples = reference.examples()
    lines = (SITE / "examples.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(examples)  # one for each function
    missing = {
        f"{module.__name__.removeprefix('tinygrad_cg').lstrip('.')}.{name}".lstrip(".")
        for module, name, value in functions()
        if module.__name__ in {f"tinygrad_cg{suffix}" for suffix in OF_ARRAYS}
        and not inspect.isclass(value)
        and ">>> " not in (inspect.getdoc(value) or "")
        and id(value) not in examples
    }
    assert missing == {*WITHOUT.split()}


@pytest.mark.parametrize("name", ["tinygrad_cg.nest", "tinygrad_cg.errors"])
def test_a_page_has_each_name_of_its_module(name):
    page = reference.page(name)
    for public in importlib.import_module(name).__all__:
        assert public.startswith("__") or f"### {public} {{" in page or f"`{public}`" in page, (
            public
        )
    assert "\n>>> " in page or name != "tinygrad_cg.nest"


def test_methods_are_those_that_users_call():
    methods = reference._methods(tf.Tensor)
    assert {"numpy", "item", "sum", "T"} <= methods.keys()
    assert not {"backward", "detach", "unsqueeze"} & methods.keys()  # errors that say what to use
    assert {"watch", "gradient", "explain"} <= reference._methods(tf.GradientTape).keys()
    assert "variable_read" not in reference._methods(tf.GradientTape)


PARTS = ("tinygrad_cg._", "._core", "._ops", "_tinygrad")


def functions_of_root():
    site = [str(SITE)]
    sys.path[:0] = site
    try:
        return importlib.import_module("functions")
    finally:
        sys.path.remove(*site)


@pytest.fixture(scope="module")
def single():
    """The module of the site that writes a page for each function; it needs Markdown."""
    pytest.importorskip("markdown")
    sys.modules["reference"] = reference
    yield functions_of_root()
    del sys.modules["reference"], sys.modules["functions"]


def test_each_name_of_the_root_has_a_page_with_example_and_source(single):
    for name, value in single.names("tinygrad_cg").items():
        text = single.text(name, value, {"tf.grad": [("faq.html", "Questions")]})
        title = single.pages()[id(value)].replace("tinygrad_cg", "tf", 1)
        assert text.startswith(f"# {title}\n\n```python\n{title}("), name
        assert '">Source</a>' in text, name
        assert single.source(name, value).partition("#L")[2], name
        assert ">>> " in text or name in WITHOUT.split() or inspect.isclass(value), name
        assert "**See also**" in text, name
        shown = text.replace(single.source(name, value), "")
        assert not any(part in shown for part in PARTS), (name, shown)
        assert name != "grad" or '<a href="../../faq.html">Questions</a>' in text
    types = single.typed("tf.exp", tf.exp)
    assert types == "tf.exp(x: TensorLike, name: str | None = None) -> Tensor"


def test_each_name_in_a_guide_is_a_link(single):
    used = set()
    html = "<p><code>stop_gradient(x)</code> <code>tf.nest</code></p><pre><code>tf.exp</code></pre>"
    linked = single.linked(html, "howto/x.md", used)
    assert used == {"tf.nest", "tf.stop_gradient"}
    assert '<a href="../reference/api/tinygrad_cg.nest.html"><code>tf.nest</code></a>' in linked
    assert "<pre><code>tf.exp</code></pre>" in linked
    for name in (
        "tf.grad",
        "tf.math.erf",
        "tf.train.Checkpoint",
        "tf.float32",
        "tf.keras.ops.scan",
    ):
        assert name in single.addresses(), name


def test_guides_name_what_is_there(single):
    unknown = set()
    for path in (SITE.parent).rglob("*.md"):
        page = path.relative_to(SITE.parent).as_posix()
        if page.startswith(single.GUIDES):
            text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.S)
            names = re.findall(r"`(tf(?:\.\w+)+)(?:\([^`]*\))?`", text)
            html = "".join(f"<code>{name}</code>" for name in names)
            linked = single.linked(html, page, set())
            unknown |= {name for name in names if f"<code>{name}</code></a>" not in linked}
    assert unknown == {"tf.save"}  # which a page says is not there


def test_names_are_in_groups_without_private_ones(single):
    for module in single.PAGED:
        text = single.index(module)
        assert text.count("\n## ") >= 4 or module == "tinygrad_cg.linalg"
        assert not any(part in text for part in PARTS), module
        others = text.partition("## Other functions")[2].partition("\n## ")[0]
        assert others.count("\n- ") <= 40, module


def test_a_list_in_a_paragraph_is_found(tmp_path):
    spec = importlib.util.spec_from_file_location("site_links", SITE / "links.py")
    assert spec is not None
    assert spec.loader is not None
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    page = tmp_path / "page.html"
    page.write_text("<p>All of these.\n- <code>beyond</code>: the rule</p><ul><li>\n- x</li></ul>")
    assert links.broken(tmp_path) == ["page.html: a list in a paragraph: - beyond: the rule"]
    page.write_text('<p>5 -\n3</p><a href="#none">x</a>')
    assert links.broken(tmp_path) == ["page.html: #none"]


def test_parameters_after_a_paragraph_of_another_are_items():
    text = reference.rendered(
        "Do it.\n\nParameters\n----------\na:\n    One.\n\n    Two.\nb:\n    Three."
    )
    assert "\n\n- `b`:" in text
