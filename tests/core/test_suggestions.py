"""What errors suggest for other libraries' names, methods and arguments."""

import importlib
import inspect
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import mpmath
import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.suggestions import ARGUMENTS, METHODS, NAMES
from tinygrad_cg._core.tensor import Tensor

pytestmark = pytest.mark.quick


ROOT = Path(__file__).resolve().parents[2]


def environment():
    return {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'kernels'}"}


def find(path):
    found = tf
    for name in path.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("", "expit", "tf.sigmoid"),
        (".math", "gammaln", "tf.math.lgamma"),
        (".numpy", "expit", "tf.sigmoid"),
        (".nn", "gammaln", "tf.math.lgamma"),
        (".keras.ops", "psi", "tf.math.digamma"),
        (".linalg", "mm", "tf.matmul"),
        ("", "erf", "tf.math.erf"),  # the same name elsewhere
        ("", "interp", "tf.numpy.interp"),
        (".math", "matmul", "tf.matmul"),
        ("", "jit", "tf.function"),
        ("", "tree", "tf.nest"),
        (".autograd", "Function", "tf.custom_gradient"),
        (".autograd", "gradcheck", "tf.check_gradients"),
    ],
)
def test_a_name_is_suggested_by_its_meaning(module, name, instead):
    home = importlib.import_module(f"tinygrad_cg{module}")
    words = f"module 'tinygrad_cg{module}' has no attribute '{name}': use {instead}"
    with pytest.raises(AttributeError, match=f"^{re.escape(words)}$") as caught:
        getattr(home, name)
    assert caught.value.name is None  # Python would add what is spelled alike
    assert not hasattr(home, name)


def test_an_unknown_name_is_left_to_pythons_own_suggestions():
    for home in (tf, tf.math, tf.numpy, tf.linalg):
        with pytest.raises(AttributeError, match=r"has no attribute 'functoin'$"):
            home.functoin  # noqa: B018


def test_suggestions_are_there_and_what_they_replace_is_not():
    """Every ``tf.name`` in the tables exists; no entry stands for a name that the root has."""
    for texts in (NAMES, METHODS):
        for name, text in texts.items():
            for path in re.findall(r"\btf\.([\w.]*\w)", text):
                assert find(path) is not None, (name, path)
    assert not set(NAMES) & set(tf.__all__)


def test_formulas_that_are_suggested_are_right():
    a, b, x, y, p, n = (np.array([v]) for v in (0.7, 1.3, 0.4, 0.9, 0.3, 5.0))
    space = {"tf": tf, "a": a, "b": b, "x": x, "y": y, "p": p, "n": n, "v": 3.0}
    values = {
        "beta": mpmath.beta(0.7, 1.3),
        "betaln": mpmath.log(mpmath.beta(0.7, 1.3)),
        "chdtr": mpmath.gammainc(1.5, 0, 0.2, regularized=True),
        "entr": -0.4 * mpmath.log(0.4),
        "factorial": 120,
        "logit": mpmath.log(0.3 / 0.7),
        "ndtr": mpmath.ncdf(0.4),
        "rel_entr": 0.4 * mpmath.log(0.4 / 0.9),
    }
    for name, expected in values.items():
        found = eval(NAMES[name], space).numpy()
        np.testing.assert_allclose(found, float(expected), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_methods_of_other_libraries_say_what_to_use(make):
    x = make([1.0, 2.0])
    for name, words in METHODS.items():
        assert not hasattr(x, name)
        assert name not in dir(x)
        with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': {words}")):
            getattr(x, name)
    with pytest.raises(AttributeError, match=r"^type 'Tensor' has no attribute 'detach'"):
        Tensor.detach  # noqa: B018


def test_an_argument_of_another_library_names_ours():
    x = tf.constant([[1.0, 2.0]])
    square = lambda x: tf.reduce_sum(x * x)  # noqa: E731
    calls = [
        (lambda: tf.reduce_sum(x, dim=0), "reduce_sum", "dim"),
        (lambda: tf.math.reduce_std(x, dim=0), "reduce_std", "dim"),
        (lambda: tf.nn.softmax(x, dim=0), "softmax", "dim"),
        (lambda: tf.stack([x, x], dim=0), "stack", "dim"),
        (lambda: tf.grad(square, argnum=0), "grad", "argnum"),
        (lambda: tf.jacobian(square, argnum=0), "jacobian", "argnum"),
        (lambda: tf.hvp(square, argnum=0), "hvp", "argnum"),
        (lambda: tf.vmap(square, in_dims=0), "vmap", "in_dims"),
    ]
    for call, function, name in calls:
        words = f"{function}() got an unexpected keyword argument '{name}': use {ARGUMENTS[name]}="
        with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
            call()
    with pytest.raises(TypeError, match=r"^grad\(\) got an unexpected keyword argument 'argn'$"):
        tf.grad(square, argn=0)


def test_arguments_of_pytorch_in_all_namespaces():
    x = tf.constant([[1.0, 2.0]])
    calls = [
        (lambda: x.sum(keepdim=True), r"sum\(\) .* 'keepdim': use keepdims="),
        (lambda: x.mean(dim=0), r"mean\(\) .* 'dim': use axis="),
        (lambda: x.max(dim=0), r"max\(\) .* 'dim': use axis="),
        (lambda: x.std(dim=0), r"std\(\) .* 'dim': use axis="),
        (lambda: x.all(dim=0), r"all\(\) .* 'dim': use axis="),
        (lambda: x.argmax(dim=0), r"argmax\(\) .* 'dim': use axis="),
        (lambda: tf.numpy.sum(x, dim=0), r"sum\(\) .* 'dim': use axis="),
        (lambda: tf.numpy.median(x, keepdim=True), r"median\(\) .* 'keepdim': use keepdims="),
        (lambda: tf.numpy.concatenate([x, x], dim=0), r"concat\(\) .* 'dim': use axis="),
        (lambda: tf.keras.ops.sum(x, dim=0), r"sum\(\) .* 'dim': use axis="),
        (lambda: tf.keras.ops.softmax(x, dim=0), r"softmax\(\) .* 'dim': use axis="),
        (lambda: tf.reduce_sum(x, keepdim=True), r"'keepdim': use keepdims="),
        (
            lambda: tf.constant([1.0], requires_grad=True),
            r"constant\(\) .*: a tape .*tape.watch\(x\)",
        ),
        (lambda: tf.ones([2], requires_grad=True), r"ones\(\) .*: a tape .*tape.watch\(x\)"),
    ]
    for call, words in calls:
        with pytest.raises(TypeError, match=words):
            call()
    for function in (tf.constant, tf.ones, tf.numpy.sum, tf.numpy.mean, tf.numpy.concatenate):
        assert not {"dim", "keepdim", "requires_grad"} & {*inspect.signature(function).parameters}
    assert "dims" in inspect.signature(tf.fill).parameters  # our own


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_what_cannot_be_set_says_what_to_use(make):
    x = make([1.0, 2.0])
    with pytest.raises(
        AttributeError, match=r"no attribute 'requires_grad' to set: a tape .*watch"
    ):
        x.requires_grad = True
    with pytest.raises(AttributeError, match=r"no attribute 'grad' to set: gradients are returned"):
        x.grad = None


def test_rules_of_jax_and_pytorch_say_what_to_write():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    for name, words in (
        ("defvjp", r"returns \(y, grad_fn\)"),
        ("defjvp", "tf.custom_derivatives"),
        ("apply", "call it"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{words}"):
            getattr(square, name)

    class Square:
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy

    for given in (Square, Square()):
        with pytest.raises(TypeError, match=r"got Square with `forward` and `backward`: write one"):
            tf.custom_gradient(given)


def test_sizes_that_are_not_one_list_are_named():
    for make in (tf.zeros, tf.ones, tf.random.normal):
        with pytest.raises(TypeError, match=r"4 is not .* dtype: sizes go into one list"):
            make(3, dtype=4)
    with pytest.raises(TypeError, match="sizes go into one list"):
        tf.zeros(3, 4)


def test_signatures_have_our_arguments_alone():
    found = str(inspect.signature(tf.reduce_sum))
    assert found == "(input_tensor, axis=None, keepdims=False, name=None)"
    assert list(inspect.signature(tf.grad).parameters) == ["f", "argnums", "has_aux"]
    for function in (tf.grad, tf.reduce_sum, tf.vmap):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_gradient_of_one_element_says_how_to_make_it_a_scalar():
    square = lambda x: x * x  # noqa: E731
    with pytest.raises(ValueError, match=r"shape \(1,\); .* y\[0\], or reduce_sum\(y\)"):
        tf.grad(square)(tf.constant([3.0]))
    with pytest.raises(ValueError, match=r"shape \(1, 1\); .* y\[0, 0\], or reduce_sum"):
        tf.grad(square)(tf.constant([[3.0]]))
    with pytest.raises(ValueError, match=r"shape \(2,\); use jacobian or vjp, or .* reduce_sum"):
        tf.grad(square)(tf.constant([3.0, 1.0]))


@pytest.mark.parametrize("module", ["_pictures.picture", "optimizers", "keras", "warm", "numpy"])
def test_each_module_can_be_the_first_that_is_loaded(module):
    """An import asks a package for the module first, which must not load others meanwhile."""
    command = [sys.executable, "-c", f"from tinygrad_cg import {module.partition('.')[0]}"]
    if "." in module:
        command[-1] = f"import tinygrad_cg.{module}"
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert (done.returncode, done.stderr) == (0, "")


def test_a_name_that_is_asked_for_during_an_import_is_no_suggestion():
    program = "import tinygrad_cg as tf; print(hasattr(tf, 'schedules'), hasattr(tf, 'erf'))"
    command = [sys.executable, "-c", f"{program}; tf.show, tf.optimizers"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    assert (done.stdout.split(), done.stderr) == (["False", "False"], "")
