"""Where an error is: the lines of a notebook's cells, and tracebacks without the library."""

import re

import pytest

import tinygrad_cg as tf
from tests.support.python import run_python
from tinygrad_cg import errors

pytest.importorskip("IPython")

SESSION = """
import sys
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="nocolor")
shell.run_cell("import tinygrad_cg as tf")
"""


def session(*cells, after=""):
    """What IPython shows when these cells run."""
    program = SESSION + "".join(f"shell.run_cell({cell!r}, store_history=True)\n" for cell in cells)
    done = run_python(program + after)
    return done.stdout + done.stderr


def test_a_notebook_shows_the_users_frames_alone():
    library = str(errors.__file__).removesuffix("errors.py")
    said = session(
        "def f(x):\n    return tf.matmul(x, x)",
        "tf.grad(f)(tf.ones((2, 3)))",
        "%xmode --show\nprint('SHOWN')",
        "tf.grad(f)(tf.ones((2, 3)))",
        after="print('LAST', sys.last_traceback.tb_next.tb_next.tb_frame.f_code.co_filename)",
    )
    hidden, shown = said.split("SHOWN")[0], said.split("SHOWN", 1)[1]
    assert "Cell In[1]" in hidden
    assert "skipping hidden" in hidden
    assert "matmul: shapes (2, 3)" in hidden
    assert library not in hidden
    assert "functional.py" not in hidden
    assert "functional.py" in shown
    assert f"LAST {library}" in shown  # what %debug goes through


def test_an_error_whose_last_frame_is_the_users_keeps_it():
    said = session("def f(x):\n    raise KeyError('mine')", "tf.grad(f)(1.0)")
    assert "raise KeyError('mine')" in said
    assert "functional.py" not in said


def test_lines_of_cells_are_named_as_ipython_names_them():
    said = session(
        "x = tf.constant(2.0)",
        "@tf.custom_gradient\ndef f(x):\n    def grad(dy):\n        return dy, dy\n"
        "    return x * x, grad",
        "with tf.GradientTape() as t:\n    t.watch(x)\n    y = f(x)\nt.gradient(y, x)",
        "@tf.function\ndef g(x):\n    return float(x)\ng(x)",
        "report = tf.check_gradients(lambda x: f(x), (1.0,), raise_exception=False)\nprint(report)",
    )
    assert "Cell In[4], line 3: `return float(x)`" in said
    assert "contextlib" not in said  # which stands between frames of the library
    assert "ipykernel" not in said.replace("ipykernel_", "")


@pytest.mark.quick
def test_lines_of_files_are_named_as_in_tracebacks():
    assert errors.location_of("a/b.py", 3) == 'File "a/b.py", line 3'
    assert errors.location_of("Cell In[2]", 3) == "Cell In[2], line 3"


SCRIPT = """
import tinygrad_cg as tf

@tf.custom_gradient
def f(x):
    def grad(dy):
        return {fails}
    return x**2, grad

def user(x):
    return f(x) + 1

{call}
"""


@pytest.mark.quick
@pytest.mark.parametrize("fails", ["1 / 0", "tf.matmul(tf.ones((2, 3)), tf.ones((2, 3)))"])
@pytest.mark.parametrize(
    "call",
    [
        "tf.grad(user)(2.0)",
        "tf.function(tf.hessian(user))(2.0)",
        "tf.vmap(tf.grad(user))(tf.ones(3))",
        "tf.jvp(user, (2.0,), (1.0,))",
    ],
)
def test_a_script_shows_the_users_frames_and_at_most_five_of_the_librarys(fails, call, capsys):
    code = compile(SCRIPT.format(fails=fails, call=call), "script.py", "exec")
    with pytest.raises(Exception, match=r"zero|fit") as caught:
        exec(code, {"__name__": "script"})
    whole = caught.value.__traceback__
    errors._print_short(caught.type, caught.value, whole)
    said = capsys.readouterr().err
    files = re.findall(r'^  File "(.*)", line', said, re.M)
    assert 1 <= sum(map(errors.is_ours, files)) <= 5
    assert files.count("script.py") >= 2
    assert "In the gradient function of `f`" in said
    assert re.search(rf"\(hidden frames of tinygrad_cg: \d+\. .*: {re.escape(SHOWS_ALL)}\)$", said)


SHOWS_ALL = "import sys; sys.excepthook = sys.__excepthook__"


@pytest.mark.quick
def test_the_line_that_a_traceback_names_shows_all_frames():
    code = "import tinygrad_cg as tf\n{}\ntf.matmul(tf.ones(2), tf.ones(3))"
    short, whole = (run_python(code.format(line), check=False).stderr for line in ("", SHOWS_ALL))
    hidden = int(re.search(r"hidden frames of tinygrad_cg: (\d+)", short)[1])
    assert whole.count('  File "') == short.count('  File "') + hidden
    assert "hidden frames" not in whole


CALLS = """
import math
import tinygrad_cg as tf

@tf.custom_gradient
def f(x, y):
    return x * y, {rule}

def g(x):
    if x > 0:
        y = x
    return y

def user():
    {call}

user()
"""


@pytest.mark.quick
@pytest.mark.parametrize(
    ("rule", "call"),
    [
        *((rule, "tf.grad(f)(1.0, 2.0)") for rule in ("lambda dy: dy", "lambda: (1.0, 2.0)")),
        ("lambda dy: (tf.ones(2), dy)", "tf.grad(f)(1.0, 2.0)"),
        ("lambda dy: ('a', 'b')", "tf.grad(f)(1.0, 2.0)"),
        *(
            (None, f"tf.function({call})(tf.constant(1.0))")
            for call in (
                "lambda x: x.numpy()",
                "lambda x: float(x)",
                "lambda x: math.exp(x)",
                "lambda x: tf.Variable(1.0) * x",
                "lambda x: tf.cond(x > 0, lambda: x, lambda: tf.constant(1))",
                "g",
            )
        ),
        (None, "tf.check_gradients(f)"),
        (None, "tf.check_gradients(f, (2.0, 3.0))"),
        (None, "tf.linalg.solve(tf.zeros((2, 2)), tf.ones((2, 1)))"),
    ],
)
def test_errors_of_the_library_show_few_of_its_frames(rule, call, capsys):
    code = compile(CALLS.format(rule=rule, call=call), "script.py", "exec")
    with pytest.raises(Exception) as caught:  # noqa: PT011
        exec(code, {"__name__": "script"})
    errors._print_short(caught.type, caught.value, caught.tb)
    files = re.findall(r'^  File "(.*)", line', capsys.readouterr().err, re.M)
    assert files.count("script.py") >= 2
    assert sum(map(errors.is_ours, files)) <= 5


def test_a_program_of_its_own_prints_short_tracebacks():
    said = run_python(
        SCRIPT.format(fails="1 / 0", call="tf.hessian(user)(2.0)"), check=False
    ).stderr
    assert said.count("\n") <= 15, said
    assert "ZeroDivisionError" in said


@pytest.mark.quick
def test_frames_are_hidden_in_causes_too():
    def fails(x):
        raise KeyError("mine")

    def fails_again():
        try:
            tf.grad(fails)(1.0)
        except KeyError as error:
            raise ValueError("again") from error

    with pytest.raises(ValueError, match="again") as caught:
        fails_again()
    errors.hide_frames(caught.value)
    trace, marks = caught.value.__cause__.__traceback__, {}
    while trace is not None:
        frame = trace.tb_frame
        marks[frame.f_code.co_filename] = frame.f_locals.get("__tracebackhide__", False)
        trace = trace.tb_next
    assert len(marks) > 1
    assert all(hidden == errors.is_ours(file) for file, hidden in marks.items())
