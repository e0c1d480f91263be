"""What Python decides stays Python's own, and what is shown is the user's text."""

import inspect
import linecache
import re
import sys
import traceback

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg.autograph import _convert as convert
from tinygrad_cg.autograph._detection import has_branches

pytestmark = pytest.mark.quick


def line_of(text):
    """The number of the first line of this file with a text."""
    lines = linecache.getlines(__file__)
    return next(i for i, line in enumerate(lines, 1) if text in line)


def test_without_control_flow_nothing_is_transformed():
    def helper(x):
        return tf.sin(x) * 2.0

    def f(x, scale=3.0):
        y = helper(x) + x.mean()
        return {"y": y.sum() * scale}

    compiled = tf.function(f)
    compiled(tf.constant([1.0, 2.0]))
    assert compiled._python() is f
    assert convert.reason(f.__code__).startswith("`f` is not transformed")


def test_functions_that_are_called_count():
    def relu(x):
        return x if x > 0 else 0.0 * x

    def f(x):
        return relu(x) * 2.0

    assert has_branches(f)
    assert tf.function(f)._python() is not f
    assert tf.function(f, autograph=False)._python() is f


def test_a_function_is_traced_once_and_transformed_once():
    traces = []

    @tf.function
    def f(x):
        traces.append(1)
        if x > 0:
            return x * 2.0
        return x

    assert [float(f(tf.constant(3.0))) for _ in range(3)] == [6.0] * 3
    assert len(traces) == 1
    before = f._python()
    f(tf.constant([1.0]))
    assert f._python() is before


def test_what_a_callback_decides_is_found_at_the_first_trace():
    def branch(x):
        return x * 2.0 if x > 0 else x

    class Holder:
        pass

    holder = Holder()
    holder.call = branch

    @tf.function
    def f(x):
        return holder.call(x) + 1.0

    assert float(f(tf.constant(3.0))) == 7.0


def python_semantics(n, log):
    def step(i):
        log.append(i)
        return i

    steps = []
    while (i := step(len(log))) < n and step(i) >= 0:
        if i == 2:
            continue
        steps.append(i)
    else:
        steps.append("else")
    for a, *b in [(1, 2, 3), (4,)]:
        steps.append((a, b) if b else a)
        if a == 4:
            break
    else:
        steps.append("never")
    steps.append(n - n or steps[:0] or "last")
    steps.append(1 < n < 100 < 1000)
    steps.append(not n)
    assert steps, "there is something"
    try:
        del a
        steps.append(a)  # noqa: F821 # pyright: ignore[reportUnboundVariable]
    except UnboundLocalError as error:
        steps.append(str(error))
    with pytest.raises(ZeroDivisionError):
        _ = n and 1 // 0
    return steps


def test_python_values_keep_python_semantics():
    transformed = convert.convert(python_semantics)
    assert transformed is not python_semantics
    logs = [], []
    assert transformed(9, logs[0]) == python_semantics(9, logs[1])
    assert logs[0] == logs[1]
    with pytest.raises(TypeError) as caught:
        transformed(None, [])
    with pytest.raises(TypeError) as expected:
        python_semantics(None, [])
    assert str(caught.value) == str(expected.value)


def test_assertions_and_their_messages():
    def check(n, log):
        assert n > 0, log.append("asked") or f"{n} is too small"
        return n

    transformed, log = convert.convert(check), []
    assert transformed(1, log) == 1
    assert not log
    with pytest.raises(AssertionError, match="-1 is too small"):
        transformed(-1, log)
    assert log == ["asked"]


def test_generators_and_their_methods():
    def pieces(n):
        got = []
        try:
            for i in range(n):
                if i % 2:
                    got.append((yield i))
        finally:
            got.append("end")
        return got

    transformed = convert.convert(pieces)
    for f in (pieces, transformed):
        run = f(6)
        assert [next(run), run.send("a"), run.send("b")] == [1, 3, 5]
        with pytest.raises(StopIteration) as caught:
            run.send("c")
        assert caught.value.value == ["a", "b", "c", "end"]


def test_cells_are_shared_and_signatures_kept():
    count = 0

    def f(a, /, b=2, *args, c, d: int = 4, **kwargs):
        """Text."""
        nonlocal count
        count += 1
        if a:
            return a, b, args, c, d, kwargs
        return None

    transformed = convert.convert(f)
    assert transformed(1, c=3) == (1, 2, (), 3, 4, {})
    assert transformed(1, 5, 6, 7, c=3, e=8) == (1, 5, (6, 7), 3, 4, {"e": 8})
    assert count == 2
    assert inspect.signature(transformed) == inspect.signature(f)
    assert transformed.__doc__ == "Text."
    assert transformed.__qualname__ == f.__qualname__
    assert transformed.__code__.co_firstlineno == f.__code__.co_firstlineno
    assert transformed.__code__.co_filename == __file__


def test_tracebacks_name_the_users_lines():
    def inner(x):
        if x > 0:
            y = x * 2.0
            return y + "text"  # raises
        return x

    @tf.function
    def f(x):
        for _ in range(2):
            x = inner(x)  # calls
        return x

    with pytest.raises(TypeError) as caught:
        f(tf.constant(2.0))
    frames = [
        (frame.name, frame.lineno)
        for frame in traceback.extract_tb(caught.value.__traceback__)
        if frame.filename == __file__
    ]
    assert ("f", line_of("# calls")) in frames
    assert frames[-1] == ("inner", line_of("# raises"))


def test_debuggers_and_coverage_see_the_users_lines():
    def f(n):
        total = 0  # first
        while n > 0:  # second
            if n % 2:  # third
                total += n  # fourth
            n -= 1  # fifth
        return total  # sixth

    def lines_of(g):
        seen = set()

        def trace(frame, event, argument):
            if frame.f_code.co_filename == __file__ and frame.f_code.co_name == "f":
                seen.add(frame.f_lineno)
                return trace
            return None

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            g(3)
        finally:
            sys.settrace(before)
        return seen

    transformed = convert.convert(f)
    assert lines_of(transformed) == lines_of(f)
    assert {line for line in transformed.__code__.co_lines() if line[2]} >= set()
    executable = {line for _, _, line in transformed.__code__.co_lines() if line}
    assert executable == {line for _, _, line in f.__code__.co_lines() if line}


def test_private_names_and_properties_of_classes():
    class Secret:
        __factor = 3.0

        def __init__(self):
            self.__value = 2.0

        @tf.function
        def apply(self, x):
            if x > 0:
                return self.__scale(x)
            return x

        def __scale(self, x):
            return x * self.__value if x < 100 else x * self.__factor

    assert float(Secret().apply(tf.constant(4.0))) == 8.0
    assert float(Secret().apply(tf.constant(400.0))) == 1200.0
    assert float(Secret().apply(tf.constant(-4.0))) == -4.0


def test_opting_out():
    @tf.autograph.experimental.do_not_convert
    def left(x):
        if x > 0:
            return x
        return -x

    with pytest.raises(TypeError, match="`left` is not transformed"):
        tf.function(lambda x: left(x) if x is not None else x)(tf.constant(1.0))
    with pytest.raises(TypeError, match="has no value while"):
        tf.function(lambda x: x if x > 0 else -x, autograph=False)(tf.constant(1.0))
    assert tf.autograph.experimental.do_not_convert()(left) is left
    with pytest.raises(TypeError, match="do_not_convert decorates a function, got int"):
        tf.autograph.experimental.do_not_convert(3)


def test_print_is_at_each_call(capsys):
    @tf.function
    def f(x):
        print("once")
        print("x =", x, [x], sep=" ", end=";\n")
        return x + 1.0

    f(tf.constant(1.0))
    f(tf.constant(2.0))
    assert capsys.readouterr().out == "once\nx = 1 [1];\nx = 2 [2];\n"


def test_assert_is_checked_at_each_call():
    @tf.function
    def f(x):
        assert x > 0, ("x is", x)
        return x * 2.0

    assert float(f(tf.constant(2.0))) == 4.0
    where = re.escape(f"line {line_of('assert x > 0, (')}")
    with pytest.raises(AssertionError, match=f"x is -1.0 .*test_semantics.py.*{where}"):
        f(tf.constant(-1.0))
    with pytest.raises(tf.errors.InvalidArgumentError):
        f(tf.constant(-1.0))


def test_a_changed_file_is_noticed(tmp_path):
    path = tmp_path / "changes.py"
    path.write_text("def f(x):\n    if x > 0:\n        return x\n    return -x\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    path.write_text("\n\ndef g(y):\n    if y > 0:\n        return y\n    return -y\n")
    assert convert.convert(names["f"]) is names["f"]
    with pytest.raises(TypeError, match="source of `f` has changed since it was compiled"):
        tf.function(names["f"])(tf.constant(1.0))


def test_lambdas_of_one_line_are_told_apart():
    pair = (lambda x: x * 2.0 if x > 0 else x), (lambda x: x * 3.0 if x > 0 else x)
    assert [float(tf.function(f)(tf.constant(1.0))) for f in pair] == [2.0, 3.0]


def test_both_cases_run_without_seeing_each_other():
    class Box:
        value = 1.0

    box, values = Box(), {"a": 1.0}

    def f(x):
        if x > 0:
            box.value = x * 2.0
            values["a"] = x
        else:
            assert box.value == 1.0
            box.value = x * 3.0
        return box.value + values["a"]

    assert float(tf.function(f)(tf.constant(2.0))) == 6.0
    box.value, values["a"] = 1.0, 1.0
    assert float(tf.function(f)(tf.constant(-2.0))) == -5.0


def test_floats_keep_their_digits():
    @tf.function
    def f(x):
        k = 0.1 if x > 0 else 0.7
        s = 0.1
        while s < k + 1.0:
            s = s * 3.0
        return k * x + s

    x = tf.constant(2.0, tf.float64)
    assert f(x).dtype == np.float64
    np.testing.assert_allclose(float(f(x)), 0.2 + 0.1 * 27, rtol=1e-15)
