"""The tour: its mathematics, its data, and what it prints."""

import itertools
import os
import re
from pathlib import Path

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.python import PATH, run_python
from tinygrad_cg.__main__ import main
from tinygrad_cg._tour import custom_rules as rules
from tinygrad_cg._tour import (
    documents,
    fitting,
    logistic,
    measurements,
    nesting,
    peers,
    speed,
    timing,
)


@pytest.fixture(scope="module")
def problem():
    return logistic.make_problem(measurements.load_bundled())


@pytest.fixture(scope="module")
def output():
    """What the whole tour prints, in a process of its own."""
    done = run_python("-m", "tinygrad_cg")
    assert done.stderr == ""
    return done.stdout


@pytest.fixture(scope="module")
def prose(output):
    """The same without line breaks."""
    return " ".join(output.split())


def row(output: str, start: str, occurrence: int = 0) -> list[str]:
    """The cells of the table row that starts with a text."""
    rows = [line.strip() for line in output.splitlines() if line.strip().startswith(start)]
    return re.split(r"\s{2,}", rows[occurrence])[1:]


# What it prints -------------------------------------------------------------------------------


def test_lines_fit(output):
    assert max(len(line) for line in output.splitlines()) <= 100


def test_nan_becomes_one(output, prose):
    assert "inf / inf, is nan" in prose
    assert "it is 1." in prose
    assert row(output, "as written, x = 100") == ["inf", "nan", "nan", "nan"]
    assert row(output, "the documents' rule, x = 100") == ["inf", "1", "nan", "nan"]
    assert row(output, "a rule for every order, x = 100")[:3] == ["100", "1", "3.783506e-44"]


def test_first_nesting_example(output, prose):
    assert row(output, "op(x), K = 1000") == ["12", "12", "12"]
    assert row(output, "op(x)**2, K = 1000") == ["192", "24000", "480"]
    assert row(output, "op(x)**2, K = 12") == ["192", "288", "480"]
    assert "d(gradient)/d(dy) = 1000" in prose
    assert "the library warns about it" in prose.lower()


def test_second_nesting_example(output, prose):
    assert row(output, "one argument, 6 * x") == ["12", "12", "480", "6"]
    assert row(output, "two arguments, correct") == ["12", "12", "480", "6"]
    assert row(output, "one argument, 1000") == ["12", "1000", "16288", "None"]
    assert row(output, "as printed") == ["12", "ValueError", "ValueError", "ValueError"]
    assert "return 1 gradients, but returned 2" in prose


def test_the_naive_loss_fails_and_the_fit_does_not(output, prose):
    assert row(output, "as written", 2) == ["inf", "31 of 31 nan", "961 of 961 nan"]
    assert row(output, "the documents' rule", 2) == ["inf", "finite", "961 of 961 nan"]
    assert row(output, "softplus with its rule")[1:] == ["finite", "finite"]
    accuracy = re.search(r"rows held out\s+\((\d+\.\d)%\)", prose)
    assert accuracy
    assert float(accuracy[1]) > 92
    assert "naive loss, on the same unscaled data: it stops at step 0" in prose


def test_source_and_licence_are_named(prose):
    assert "UCI Machine Learning" in prose
    assert "CC BY 4.0" in prose


def test_timings_are_ratios(output):
    for name in ("value and gradient, n = 1 ", "a Newton step, 31 x 31"):
        ours, _, theirs, *others, ratio = row(output, name)
        assert float(ratio) == pytest.approx(float(theirs) / float(ours), abs=0.02, rel=0.08)
        assert all(cell == "-" or float(cell) > 0 for cell in others)


def test_a_wrong_rule_is_found_and_drawn(output, prose):
    assert "op: wrong from order 2 onwards" in output
    assert "The gradient of order 2 is wrong: for op(x)**2, expected 480, got 288." in prose
    assert "def grad_fn(dy): return 3 * x**2 * dy return x**3, grad_fn" in prose
    assert "tape inner: computes gradients of order 1, inside tape outer" in output
    assert "uses x, but is not differentiated with respect to it is dy/dx" in prose


@pytest.mark.quick
def test_parts_alone(capsys):
    assert main(["--part", "2"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^(\d)\. ", printed, re.MULTILINE) == ["2"]
    with pytest.raises(SystemExit) as stop:
        main(["--part", "6"])
    assert stop.value.code == 2


def test_several_parts_in_their_order(capsys):
    assert main(["--part", "3", "--part", "1"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^(\d)\. [A-Z].*\n=", printed, re.MULTILINE) == ["1", "3"]


@pytest.mark.quick
def test_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"tinygrad_cg {tf.__version__}\n"


@pytest.mark.quick
def test_ctrl_c_ends_quietly(monkeypatch, capsys):
    def interrupted():
        print("begun")
        raise KeyboardInterrupt

    monkeypatch.setattr(documents, "show", interrupted)
    assert main([]) == 130
    assert capsys.readouterr() == ("begun\n\n", "")


def test_ctrl_c_while_modules_are_loaded_ends_quietly(tmp_path):
    (tmp_path / "llvmlite.py").write_text("raise KeyboardInterrupt")
    paths = os.pathsep.join([str(tmp_path), PATH])
    outputs = {}
    for name, command in (
        ("tour", ["-m", "tinygrad_cg"]),
        ("import", ["-c", "import tinygrad_cg"]),
    ):
        run = run_python(*command, check=False, PYTHONPATH=paths)
        assert run.returncode != 0
        outputs[name] = run.stdout + run.stderr
    assert outputs["tour"] == "\n"
    assert "KeyboardInterrupt" in outputs["import"]  # a program's own is Python's to show


def test_the_first_run_says_that_kernels_are_compiled(tmp_path):
    command = ("-m", "tinygrad_cg", "--part", "2")
    first, second = (
        run_python(*command, TINYGRAD_CG_CACHE_DIR=str(tmp_path)).stdout for _ in range(2)
    )
    assert "This is the first run: it compiles" in first
    assert str(tmp_path) in first.replace("\n", "")
    assert "first run" not in second


def test_peers_that_are_installed_give_the_same_numbers():
    x = np.array([-2.0, 0.5, 3.0])
    names = dict(peers.installed())
    assert set(names) <= set(peers.MAKERS)
    for make in names.values():
        value, gradient = make(x)()
        np.testing.assert_allclose(np.asarray(value), np.logaddexp(0, x).sum(), rtol=1e-12)
        np.testing.assert_allclose(np.asarray(gradient), sigmoid(x), rtol=1e-12)


def test_a_library_that_cannot_be_loaded_is_left_out(monkeypatch):
    def fails(x):
        raise OSError("no such processor")

    works = lambda x: lambda: speed.by_hand(x)
    makers = {"works": ("numpy", works), "broken": ("numpy", fails), "absent": ("nope", fails)}
    monkeypatch.setattr(peers, "MAKERS", makers)
    assert [name for name, _ in peers.installed()] == ["works"]


# Its mathematics ------------------------------------------------------------------------------


def sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


@pytest.mark.quick
def test_softplus_is_right_at_every_order():
    x = np.array([-800.0, -30.0, -1.0, 0.5, 2.0, 40.0, 800.0])
    s = sigmoid(x)
    t = s * sigmoid(-x)
    wanted = (np.logaddexp(0, x), s, t, t * (1 - 2 * s), t * (1 - 6 * t))
    for order, values in enumerate(wanted):
        got = rules.derivative(rules.softplus, order)(tf.constant(x))
        np.testing.assert_allclose(got, values, rtol=1e-11, atol=1e-15)


def test_derivatives_of_the_loss_against_paper(problem):
    for weights in (problem.start, np.full(problem.start.size, 1e-4)):
        moved = logistic.LogisticProblem(problem.fitted, problem.held_out, problem.ridge, weights)
        for root in (speed.newton_by_tape(moved), speed.newton_by_function(moved)()):
            for got, wanted in zip(root, speed.newton_by_hand(moved), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-9)


def test_newton_arrives_where_the_gradient_is_zero(problem):
    steps, trouble = fitting.run_newton(problem, rules.softplus)
    assert not trouble
    assert steps[-1].end == "done"
    assert all(a.value > b.value for a, b in itertools.pairwise(steps))
    last = logistic.LogisticProblem(
        problem.fitted, problem.held_out, problem.ridge, steps[-1].weights
    )
    _, gradient, hessian = speed.newton_by_hand(last)
    assert np.max(np.abs(gradient) / np.sqrt(np.diag(hessian))) < 1e-4


def test_newton_says_what_was_not_finite(problem):
    steps, trouble = fitting.run_newton(problem, rules.naive_log1pexp)
    assert steps == []
    assert trouble == "not finite: loss, gradient, Hessian"
    _, trouble = fitting.run_newton(problem, rules.log1pexp)
    assert trouble == "not finite: loss, Hessian"


def test_a_singular_hessian_is_said():
    here = logistic.Derivatives(0.0, np.array([1.0, 1.0]), np.ones((2, 2)))
    with pytest.raises(FloatingPointError, match="singular"):
        logistic.newton_direction(here)


def test_the_warning_of_the_first_nesting_example_is_caught():
    op = nesting.make_op(1000.0)
    value, messages = nesting.run_and_catch(nesting.at_point, op, 2)
    assert value == "12"
    assert len(messages) == 1


def test_medians_alternate(monkeypatch):
    now, calls = 0.0, []

    def takes(name: str, seconds: float):
        def run():
            nonlocal now
            now += seconds
            calls.append(name)

        return run

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now)
    monkeypatch.setattr(timing, "settle", lambda function: calls.append("settle"))
    functions = {"slow": takes("slow", 0.002), "quick": takes("quick", 0.00025)}
    taken = timing.medians(functions, 0.0, rounds=5)
    assert taken == pytest.approx({"slow": 0.002, "quick": 0.00025})
    assert calls[:2] == ["settle"] * 2
    assert calls[2:8] == ["slow"] * 3 + ["quick"] * 3  # to see how many calls fill a turn
    slow, quick = ["slow"] * 2, ["quick"] * 5  # the first of each does not count
    assert calls[8:] == slow + quick + quick + slow + slow + quick  # back and forth


def test_settling_waits_for_the_better_kernels(monkeypatch):
    calls = []
    monkeypatch.setattr(timing.time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(timing.tiers, "wait", lambda: calls.append("wait"))
    timing.settle(lambda: calls.append("run"))
    assert calls[-2:] == ["wait", "run"]
    assert calls.count("run") > timing.tiers.TIER_UP_CALLS


def test_settling_a_slow_function_ends(monkeypatch):
    now, calls = 0.0, []

    def run():
        nonlocal now
        now += 0.06
        calls.append("run")

    monkeypatch.setattr(timing.time, "perf_counter", lambda: now)
    timing.settle(run)
    assert len(calls) == 3  # two in a tenth of a second, and one with the better kernels


# Its data -------------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_bundled_data_are_all_there():
    dataset = measurements.load_bundled()
    assert dataset.measurements.shape == (569, 30)
    assert dataset.classes == ("benign", "malignant")
    assert dataset.labels.sum() == 212
    assert dataset.measurements.max() == 4254
    assert dataset.constant == ()
    assert dataset.features[0] == "mean_radius"
    np.testing.assert_allclose(dataset.measurements[:, 0].mean(), 14.127292, rtol=1e-6)


def test_held_out_rows_are_apart(problem):
    assert problem.fitted.labels.size + problem.held_out.labels.size == 569
    assert 0 < problem.held_out.labels.sum() < problem.held_out.labels.size


def own_file(folder: Path, text: str | bytes) -> str:
    path = folder / "own.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


@pytest.mark.quick
def test_own_data_with_names_of_classes_and_a_constant_column(tmp_path, capsys):
    random = np.random.default_rng(1)
    lines = ["size,always,kind"]
    for number in range(60):
        kind = number % 2
        lines.append(f"{random.normal(kind):.6f},7,{'yes' if kind else 'no'}")
    path = own_file(tmp_path, "\ufeff" + "\r\n".join(lines) + "\r\n\r\n")
    assert main(["--data", path, "--target", "kind"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "Class 1 is 'yes'" in printed
    assert "they are constant: always" in printed
    assert "naive loss, on the same unscaled data: it converges" in printed
    assert "A gradient that was NaN" not in printed  # straight to the data
    assert "How long it takes" not in printed


def test_classes_that_are_numbers_sort_as_numbers():
    text = "x,y\n" + "\n".join(f"{n},{9 + n % 2}" for n in range(10))
    dataset = measurements.parse(text, "y", "title", "")
    assert dataset.classes == ("9", "10")
    assert dataset.labels.sum() == 5


ROWS = "".join(f"{n},{n % 2}\n" for n in range(10))
UNUSABLE = [
    ("", "is empty"),
    ("x,y\n", "must have two different values, has 0"),
    ("x,z\n1,2\n", "no column 'y'; its columns are x, z"),
    ("y\n1\n", "no column other than 'y'"),
    ("x,x,y\n1,1,0\n", "names the column 'x' more than once"),
    ("x,y\n" + ROWS + "1\n", "line 12 has 1 fields, the header has 2"),
    ("x,y\n" + ROWS + "one,1\n", "line 12, column 'x': 'one' is not a number"),
    ("x,y\n" + ROWS + ",1\n", "line 12, column 'x': '' is not a number"),
    ("x,y\n" + ROWS + "nan,1\n", "line 12, column 'x': nan is not finite"),
    ("x,y\n" + ROWS + "1e300,1\n", "1e300 is not finite or huge"),
    ("x,y\n" + ROWS + "1,\n", "column 'y' has empty cells"),
    ("x,y\n" + ROWS + "1,2\n", "must have two different values, has 3"),
    ("x,y\n1,0\n2,0\n3,1\n", "has '1' 1 times; 4 are needed"),
    ("x,y\n" + "".join(f"5,{n % 2}\n" for n in range(10)), "more than one value"),
    ('x,y\n"1,2\n', "unexpected end of data"),
    (b"\xff\xfe\x00x", "is not text in UTF-8"),
]


@pytest.mark.quick
@pytest.mark.parametrize(("text", "words"), UNUSABLE, ids=[words for _, words in UNUSABLE])
def test_an_unusable_file_is_one_line_and_exit_code_2(tmp_path, capsys, text, words):
    assert main(["--data", own_file(tmp_path, text), "--target", "y"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "own.csv: " in printed.err
    assert words in printed.err


def test_a_missing_file_or_a_folder_is_one_line_and_exit_code_2(tmp_path, capsys):
    for path, words in ((tmp_path / "none.csv", "No such file"), (tmp_path, "s a directory")):
        assert main(["--data", str(path), "--target", "y"]) == 2
        printed = capsys.readouterr().err
        assert printed.count("\n") == 1
        assert words in printed


@pytest.mark.parametrize("options", [["--data", "own.csv"], ["--target", "y"]])
def test_half_of_the_options_is_one_line_and_exit_code_2(capsys, options):
    assert main(options) == 2
    assert "go together" in capsys.readouterr().err


@pytest.mark.quick
def test_help(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    assert "--target COLUMN" in capsys.readouterr().out
