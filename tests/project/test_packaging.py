"""What the project's files promise each other."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

import tinygrad_cg

pytestmark = pytest.mark.quick

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def yaml():
    return pytest.importorskip("yaml", reason="the extra docs brings it")


@pytest.mark.parametrize("name", ["test", "tour"])
def test_the_readme_has_its_two_one_line_commands(name):
    block = re.search(rf"<!-- command: {name} -->\n```sh\n(.*)\n```\n", README)
    assert block, f"no marked command {name!r} in one line"
    assert block[1].startswith("python3 -m venv .venv && ")
    assert {"test": "-m pytest", "tour": "-m tinygrad_cg"}[name] in block[1]


def test_links_on_the_page_for_package_indexes_are_absolute(monkeypatch):
    interface = SimpleNamespace(MetadataHookInterface=object)
    monkeypatch.setitem(sys.modules, "hatchling.metadata.plugin.interface", interface)
    path = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["path"]
    hook = runpy.run_path(str(ROOT / path))["ReadmeHook"]()
    hook.root, metadata = str(ROOT), {"urls": {"Repository": "https://github.com/own/er"}}
    hook.update(metadata)
    text = metadata["readme"]["text"]
    assert text.count("(https://github.com/own/er/blob/main/docs/") == README.count("](docs/") > 8
    assert "](docs/" not in text


def test_the_checks_run_the_commands_of_the_readme():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "readme_command test" in script
    assert "readme_command tour" in script
    assert "-m pytest -q benchmarks" in script
    subprocess.run(["bash", "-n", str(ROOT / ".ci" / "run")], check=True)


def test_both_packages_are_built_and_typed():
    packages = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    plugin = "benchmarks/plugin/pytest_tinygrad_cg"
    kernels = ["kernels/tinygrad_cg_frontend", "kernels/tinygrad_cg_kernels"]
    assert packages == ["tinygrad_cg", *kernels, plugin]
    for package in packages:
        assert (ROOT / package / "py.typed").is_file()


def test_the_oldest_python_agrees_everywhere():
    assert PROJECT["project"]["requires-python"] == ">=3.11"
    assert PROJECT["tool"]["ruff"]["target-version"] == "py311"
    assert PROJECT["tool"]["pyright"]["pythonVersion"] == "3.11"
    assert "Programming Language :: Python :: 3.11" in PROJECT["project"]["classifiers"]


def test_the_version_is_the_same_everywhere():
    version = PROJECT["project"]["version"]
    assert tinygrad_cg.__version__ == version
    assert f"\nversion: {version}\n" in read("CITATION.cff")
    assert f'\n  version: "{version}"\n' in read(".conda/recipe.yaml")
    assert f"\n## [{version}]" in read("CHANGELOG.md")


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = yaml().safe_load(read(".conda/recipe.yaml"))
    needed = [requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]]
    assert sorted(needed[1:]) == sorted(PROJECT["project"]["dependencies"])
    assert f">={recipe['context']['python_min']}" == PROJECT["project"]["requires-python"]
    backend = PROJECT["build-system"]["requires"]
    assert backend[0] in [
        requirement.replace(" ", "") for requirement in recipe["requirements"]["host"]
    ]


def test_the_citation_and_the_workflows_are_read():
    citation = yaml().safe_load(read("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["repository-code"] == PROJECT["project"]["urls"]["Repository"]
    tests = yaml().safe_load(read(".github/workflows/tests.yml"))
    matrix = tests["jobs"]["tests"]["strategy"]["matrix"]
    assert [name.split("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    commands = [step.get("run", "") for step in tests["jobs"]["tests"]["steps"]]
    of_readme = re.search(r"\.venv/bin/(python -m pytest .*)\n", README)
    assert of_readme
    assert of_readme[1] in commands
    for path in (ROOT / ".github/workflows").glob("*.yml"):
        jobs = yaml().safe_load(path.read_text(encoding="utf-8"))["jobs"]
        for job in jobs.values():
            assert all(("run" in step) != ("uses" in step) for step in job["steps"]), path
            for script in re.findall(r"(?:bash|python) ([.\w]+/[\w./]+)", str(job)):
                assert (ROOT / script).is_file(), script


def test_the_changelog_has_a_section_for_what_comes():
    assert "## [Unreleased]" in read("CHANGELOG.md")


def test_the_data_name_their_source_and_licence():
    note = (ROOT / "tinygrad_cg/_tour/data/breast_cancer.txt").read_text(encoding="utf-8")
    assert "UCI Machine Learning" in note
    assert "CC BY 4.0" in note


def test_the_tests_have_the_rooms_of_the_library_and_each_has_some_that_are_quick():
    library = {room.name[1:] for room in (ROOT / "tinygrad_cg").glob("_*") if room.is_dir()}
    library |= {"autograph", "debugging", "distributed"}  # public, and made of private modules
    rooms = {room.name for room in (ROOT / "tests").iterdir() if room.is_dir()} - {"__pycache__"}
    assert rooms == library - {"_pycache__"} | {
        "cuda",
        "kernels",
        "project",
        "spellings",
        "pictures",
        "support",
    }
    for room in rooms - {"support"}:
        files = (ROOT / "tests" / room).glob("test_*.py")
        assert any("pytest.mark.quick" in path.read_text(encoding="utf-8") for path in files), room


def test_the_files_that_begin_first_are_there():
    text = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    names = re.findall(r'"(\w+/test_\w+)"', text)
    assert len(names) > 10
    assert all((ROOT / "tests" / f"{name}.py").is_file() for name in names)
