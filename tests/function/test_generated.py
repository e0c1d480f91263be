"""Texts that Numba compiles."""

import inspect
import re
import sys

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.graph_cases import arrays_for, assert_same, log1pexp
from tinygrad_cg._function.codegen.executable import build
from tinygrad_cg_kernels.runtime import generated, service, threads


@pytest.fixture(autouse=True)
def by_numba(monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_COMPILER", "numba")


@pytest.fixture(autouse=True)
def modules(monkeypatch):
    modules = {}
    monkeypatch.setattr(generated, "_modules", modules)
    return modules


def test_one_text_for_all_sizes(modules):
    for n in (5, 60, 700):
        build(log1pexp(n))
    assert len(modules) == 1


def test_texts_are_readable(modules):
    program = build(log1pexp(40))
    ((name, module),) = modules.items()
    assert name.startswith(generated.GENERATED)
    assert inspect.getsource(module) == program.sources[1]
    assert "logarithm.log1p(exp_" in program.sources[1]
    assert not re.search(r"\b40\b", program.sources[1])


def test_clear_cache(modules):
    program = build(log1pexp(40))
    service.clear_programs()
    assert not modules
    graph = log1pexp(40)
    assert_same(program, graph, arrays_for(graph, np.random.default_rng(0)))


@pytest.mark.skipif(sys.platform != "linux", reason="reads the assembly of x86 and GNU names")
def test_loops_are_vectorised_and_call_nothing():
    (dispatcher,) = build(log1pexp(1000)).dispatchers
    (text,) = dispatcher.inspect_asm().values()
    assert not re.search(r"\b(exp|log1p|log|expm1)@?\w*\b\s*$", text, re.MULTILINE)
    if "xmm" in text:
        assert re.search(r"vmulpd|mulpd|vfmadd\w+pd", text)
        assert "vector.memcheck" not in dispatcher.inspect_llvm(dispatcher.signatures[0])


@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: tf.exp(tf.sin(x)), True),
        (lambda x: tf.concat([tf.sin(x), tf.cos(x)], 0), True),
        (lambda x: tf.exp(tf.ones((32, 64)) @ tf.sin(tf.reshape(x, (64, -1)))), True),
        (lambda x: tf.exp(tf.ones((2**11, 64)) @ tf.sin(tf.reshape(x, (64, -1)))), False),
        (lambda x: tf.exp(tf.linalg.matvec(tf.ones((2, 2**17)), tf.sin(x))), False),
    ],
)
def test_threads_are_told_of_programs_of_kernels_alone(monkeypatch, f, expected):
    tasks = []
    carry_out = threads.carry_out
    monkeypatch.setattr(
        threads, "carry_out", lambda task, *arrays: (tasks.append(task), carry_out(task, *arrays))
    )
    tf.function(f)(np.linspace(0, 1, 2**17))
    assert {task.is_alone for task in tasks} == {expected}
