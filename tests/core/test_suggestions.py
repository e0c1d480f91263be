"""What errors suggest for other libraries' names, methods and arguments."""

import functools
import importlib
import inspect
import pickle
import pydoc
import re
from itertools import takewhile
from pathlib import Path

import mpmath
import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.python import run_python
from tinygrad_cg._core.suggestions import ARGUMENTS, DATASETS, METHODS, NAMES
from tinygrad_cg._core.tensor import Tensor

pytestmark = pytest.mark.quick

TABLES = Path(tf.__file__).parent / "_core/suggestions.txt"


def find(path):
    value = tf
    for name in path.split("."):
        value = getattr(value, name)
    return value


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
        (".math", "bessel_j0", "tf.math.special.bessel_j0"),
        (
            "",
            "odeint",
            "tinygrad_cg.autograd.scipy.integrate.odeint after "
            "`import tinygrad_cg.autograd.scipy.integrate`",
        ),
        (
            "",
            "optimize",
            "scipy.optimize, with tf.value_and_grad(f) and jac=True, or tf.optimizers",
        ),
        (
            "",
            "gammasgn",
            "tinygrad_cg.autograd.scipy.special.gammasgn after "
            "`import tinygrad_cg.autograd.scipy.special`",
        ),
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


def test_a_module_that_is_not_loaded_is_imported_first():
    code = """
import tinygrad_cg as tf
try:
    tf.autograd.scipy
except AttributeError as error:
    print(error)
from tinygrad_cg.autograd import scipy
print(tf.autograd.scipy is scipy)
"""
    out = run_python(code)
    assert out.stdout.splitlines() == [
        "module 'tinygrad_cg.autograd' has no attribute 'scipy': write "
        "`import tinygrad_cg.autograd.scipy` first",
        "True",
    ]


def test_a_function_of_another_order_is_not_suggested():
    words = "module 'tinygrad_cg.math' has no attribute 'bessel_i2'"
    with pytest.raises(AttributeError, match=f"^{re.escape(words)}$"):
        tf.math.bessel_i2  # noqa: B018
    words = "module 'tinygrad_cg.math.special' has no attribute 'j1': use tf.math.special.bessel_j1"
    with pytest.raises(AttributeError, match=f"^{re.escape(words)}$"):
        tf.math.special.j1  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name", "words"),
    [
        ("", "optim", "tf.optimizers"),
        ("", "cuda", "`with tf.device('/GPU:0'):` around the code"),
        ("", "randint", "tf.random.uniform(shape, low, high, tf.int32)"),
        ("", "compile", "tf.function"),
        (".nn", "functional", "tf.nn for activations and losses"),
        (".nn", "Linear", "tf.Module with its own Variables"),
        (".keras", "layers", "tf.Module with its own Variables"),
        (".random", "key", "tf.random.set_seed(seed)"),
        ("", "sparse", "a dense tensor"),
        (".autograd", "detect_anomaly", "tf.debug_nans()"),
    ],
)
def test_a_namespace_of_another_library_names_ours(module, name, words):
    home = importlib.import_module(f"tinygrad_cg{module}")
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}': use {words}")):
        getattr(home, name)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("strings", "Python's strings"),
        ("keras.datasets", "sklearn.datasets"),
        ("ragged", "a padded tensor"),
        ("data.DataLoader", "tf.data.Dataset.from_tensor_slices((x, y)).shuffle("),
        ("data.TFRecordDataset", "tf.data.Dataset.from_generator"),
        ("image.flip_left_right", "tf.reverse(x, [-2])"),
        ("train.Saver", "tf.train.Checkpoint"),
        ("train.AdamOptimizer", "tf.optimizers.Adam"),
        ("losses.absolute_difference", "tf.reduce_mean(tf.abs(labels - predictions))"),
        ("keras.utils.plot_model", "tf.show(y)"),
        ("keras.utils.get_file", "urllib.request.urlretrieve"),
        ("compat.v1.Session", "the values themselves"),
        ("compat.v1.train", "tf.train"),
    ],
)
def test_parts_of_tensorflow_that_are_absent_say_what_to_use(path, words):
    module, _, name = path.rpartition(".")
    home = find(module) if module else tf
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute '{name}': use {words}")):
        getattr(home, name)


def test_a_misspelled_name_is_found_and_an_unknown_one_is_not():
    for home in (tf, tf.math, tf.numpy, tf.linalg):
        with pytest.raises(
            AttributeError, match=r"attribute 'functoin': did you mean tf.function\?$"
        ):
            home.functoin  # noqa: B018
        with pytest.raises(AttributeError, match=r"has no attribute 'zebra'$"):
            home.zebra  # noqa: B018


def test_suggestions_are_there_and_what_they_replace_is_not():
    """Every ``tf.name`` in the tables exists; no entry stands for a name that the root has."""
    for texts in (NAMES, METHODS):
        for name, text in texts.items():
            for path in re.findall(r"\btf\.([\w.]*\w)", text):
                assert find(path) is not None, (name, path)
    assert not set(NAMES) & set(tf.__all__)
    lines = TABLES.read_text().splitlines()
    for start in (i for i, line in enumerate(lines) if line.startswith("[")):
        names = [line.partition(" = ")[0] for line in takewhile(str.strip, lines[start + 1 :])]
        assert len(names) == len(set(names)), lines[start]


def test_replacements_give_the_numbers_of_the_name_that_they_replace():
    """By NumPy, from the definitions in PyTorch's and TensorFlow 1's documentation."""
    x = np.array([[1.0, 2.5, 4.0], [3.0, -1.0, 0.5]])
    y = np.array([[2.0, 2.0, 0.0], [1.0, 5.0, 0.0]])
    labels, index = np.array([2, 0]), np.array([[2, 0, 2], [1, 1, 0]])
    log_p = x - np.log(np.sum(np.exp(x), 1, keepdims=True))
    ones, p = (y > 1.5) * 1.0, 1 / (1 + np.exp(-x))
    cross_entropy = -np.mean(ones * np.log(p) + (1 - ones) * np.log(1 - p))
    distance = np.abs(x - y)
    huber = np.mean(np.where(distance < 1, distance**2 / 2, distance - 0.5))
    set_to, added = x.copy(), x.copy()
    np.put_along_axis(set_to, index[:, :1], y[:, :1], 1)
    np.add.at(added, (np.arange(2)[:, None], index), y)
    grey = np.sum(x * [0.2989, 0.587, 0.114], -1, keepdims=True)
    space = {"tf": tf, "x": tf.constant(x), "y": y, "labels": labels, "n": 2, "log_p": log_p}
    expected = [
        ("l1_loss", np.mean(distance), {}),
        ("mse_loss", np.mean((x - y) ** 2), {}),
        ("smooth_l1_loss", huber, {}),
        ("huber_loss", huber, {"labels": y, "predictions": x}),
        ("absolute_difference", np.mean(distance), {"labels": y, "predictions": x}),
        ("nll_loss", -np.mean(log_p[[0, 1], labels]), {}),
        ("cross_entropy", -np.mean(log_p[[0, 1], labels]), {"logits": x}),
        ("binary_cross_entropy", cross_entropy, {"labels": ones, "p": p}),
        ("log_loss", cross_entropy, {"labels": ones, "predictions": p}),
        ("binary_cross_entropy_with_logits", cross_entropy, {"labels": ones, "logits": x}),
        ("prelu", np.where(x > 0, x, 0.2 * x), {"weight": 0.2}),
        ("dist", np.sqrt(np.sum(distance**2)), {}),
        ("embedding", x[index[:1, :2] % 2], {"table": x, "ids": index[:1, :2] % 2}),
        ("rgb_to_grayscale", grey, {}),
        ("gather", np.take_along_axis(x, index, 1), {"index": index, "axis": 1}),
        ("scatter_", set_to, {"index": index[:, :1], "value": y[:, :1]}),
        ("scatter_add_", added, {"index": index}),
    ]
    for name, value, others in expected:
        text = METHODS[name] if name in METHODS else NAMES[name]
        code = text.split("use ")[-1].split("for a vector, ")[-1].split(" along axis 1")[0]
        result = eval(code.split(": tf.")[0], space | others)
        np.testing.assert_allclose(result, value, rtol=1e-6, err_msg=name)
    with pytest.raises(AttributeError, match=r"use tf.reduce_mean\(tf.abs\(x - y\)\)$"):
        tf.nn.l1_loss  # noqa: B018


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
        result = eval(NAMES[name], space).numpy()
        np.testing.assert_allclose(result, float(expected), rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_methods_of_other_libraries_say_what_to_use(make):
    x = make([1.0, 2.0])
    for name, words in METHODS.items():
        if name in vars(tf.Variable) and make is tf.Variable:
            continue
        assert not hasattr(x, name)
        assert name not in dir(x)
        with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': {words}")):
            getattr(x, name)
    with pytest.raises(AttributeError, match=r"^type 'Tensor' has no attribute 'detach'"):
        Tensor.detach  # noqa: B018


def test_datasets_say_what_to_use():
    data = tf.data.Dataset.range(3)
    for name, words in DATASETS.items():
        for owner in (data, tf.data.Dataset):
            with pytest.raises(AttributeError, match=re.escape(f"no attribute '{name}': {words}")):
                getattr(owner, name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add", [[5, 8], [3, 4], [12, 14]]),
        ("sub", [[-3, -4], [3, 4], [-2, -2]]),
        ("mul", [[3, 10], [3, 4], [35, 48]]),
        ("div", [[1 / 3, 2 / 5], [3, 4], [5 / 7, 3 / 4]]),
        ("max", [[3, 5], [3, 4], [7, 8]]),
        ("min", [[1, 1], [3, 4], [5, 6]]),
        ("update", [[1, 1], [3, 4], [7, 8]]),
    ],
)
def test_scattered_updates_are_right(name, expected):
    """The numbers are those of TensorFlow's methods; of equal indices the last update counts."""
    updates, indices = [[3.0, 5.0], [1.0, 1.0], [7.0, 8.0]], [[0], [0], [2]]
    slices = tf.IndexedSlices(updates, [0, 0, 2])
    for method, arguments in (("scatter", (slices,)), ("scatter_nd", (indices, updates))):
        for run in (lambda f: f, tf.function(jit_compile=False)):
            v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
            assert run(lambda: getattr(v, f"{method}_{name}")(*arguments))() is not None  # noqa: B023
            np.testing.assert_allclose(v.numpy(), expected, rtol=1e-6)


def test_scattered_updates_of_variables_follow_their_rules():
    v, x = tf.Variable([1.0, 2.0, 3.0]), tf.constant(4.0)
    assert v.scatter_max(tf.IndexedSlices(9.0, 2)) is v
    assert v.numpy().tolist() == [1, 2, 9]
    with tf.GradientTape() as tape, tf.experimental.recorded_assignments():
        tape.watch(x)
        v.scatter_nd_update([[0]], [x * x])
        y = v[0]
    assert float(tape.gradient(y, x)) == 8.0
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="tensor_scatter_nd_add: updates must have"
    ):
        v.scatter_nd_add([[0]], [1.0, 2.0])
    with pytest.raises(TypeError, match=r"scatter_add: needs tf\.IndexedSlices\(values, indices\)"):
        v.scatter_add([0])
    assert {"scatter_add", "scatter_nd_sub", "assign"} <= set(dir(v))
    assert not {"scatter_add", "scatter_nd_sub"} & set(dir(x))


def test_what_is_no_number_has_a_remedy():
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(2))
    x = tf.constant([[1.0, 2.0]])
    for make in (lambda: x @ sparse, lambda: x * sparse, lambda: tf.constant(sparse)):
        with pytest.raises(TypeError, match=r"Write value\.toarray\(\) for a sparse array"):
            make()
    with pytest.raises(TypeError, match="Tensors cannot hold text"):
        tf.constant("text")
    with pytest.raises(ValueError, match=r"has shape \(1, 2\), not \(None, 2\); a Variable keeps"):
        tf.Variable(x, shape=[None, 2])


def test_an_argument_of_another_library_names_ours():
    x = tf.constant([[1.0, 2.0]])
    square = lambda x: tf.reduce_sum(x * x)
    calls = [
        (lambda: tf.reduce_sum(x, dim=0), "reduce_sum", "dim"),
        (lambda: tf.math.reduce_std(x, dim=0), "reduce_std", "dim"),
        (lambda: tf.nn.softmax(x, dim=0), "softmax", "dim"),
        (lambda: tf.stack([x, x], dim=0), "stack", "dim"),
        (lambda: tf.grad(square, argnum=0), "grad", "argnum"),
        (lambda: tf.jacobian(square, argnum=0), "jacobian", "argnum"),
        (lambda: tf.hvp(square, argnum=0), "hvp", "argnum"),
        (lambda: tf.vmap(square, in_dims=0), "vmap", "in_dims"),
        (lambda: tf.nn.dropout(x, p=0.5), "dropout", "p"),
        (lambda: tf.random.normal([2], scale=2.0), "normal", "scale"),
        (lambda: tf.random.normal(size=[2]), "normal", "size"),
        (lambda: tf.random.uniform([2], low=2.0), "uniform", "low"),
    ]
    for call, function, name in calls:
        words = f"{function}() got an unexpected keyword argument '{name}': use {ARGUMENTS[name]}="
        with pytest.raises(TypeError, match=f"^{re.escape(words)}$"):
            call()
    with pytest.raises(TypeError, match=r"'step': leave it out: step sizes and tolerances are"):
        tf.check_gradients(square, 1.0, step=1e-5)
    for function in (tf.nn.relu, tf.nn.relu6, tf.nn.elu, tf.nn.silu, tf.nn.softplus):
        words = f"^{function.__name__}\\(\\) got .* 'inplace': leave it out: functions return new"
        with pytest.raises(TypeError, match=words):
            function(x, inplace=True)
        assert "others" not in inspect.signature(function).parameters
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
        AttributeError, match=r"cannot set 'requires_grad' of a \w+: tapes watch a tf.Variable"
    ):
        x.requires_grad = True
    with pytest.raises(AttributeError, match=r"cannot set 'grad' of a \w+: gradients are returned"):
        x.grad = None


def test_rules_of_jax_and_pytorch_say_what_to_write():
    @tf.custom_gradient
    def square(x):
        return x * x, lambda dy: dy * 2.0 * x

    for name, words in (
        ("defvjp", r"return the rule from the decorated function, `return y, grad_fn`"),
        ("defjvp", "tf.custom_derivatives"),
        ("apply", "call the custom gradient"),
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

    for rule in (Square, Square()):
        with pytest.raises(TypeError, match=r"got Square with `forward` and `backward`: write one"):
            tf.custom_gradient(rule)


@pytest.mark.parametrize(
    "make",
    [
        lambda **other: tf.constant([1.0], **other),
        lambda **other: tf.convert_to_tensor([1.0], **other),
        lambda **other: tf.Variable([1.0], **other),
        lambda **other: tf.zeros([2], **other),
        lambda **other: tf.ones_like([2.0], **other),
        lambda **other: tf.fill([2], 1.0, **other),
        lambda **other: tf.eye(2, **other),
        lambda **other: tf.range(3, **other),
        lambda **other: tf.linspace(0.0, 1.0, 3, **other),
        lambda **other: tf.random.normal([2], **other),
        lambda **other: tf.random.uniform([2], **other),
        lambda **other: tf.random.truncated_normal([2], **other),
        lambda **other: tf.random.gamma([2], 1.0, **other),
    ],
)
def test_makers_answer_the_arguments_of_pytorch(make):
    value = make()  # it is the argument that is wrong
    assert isinstance(value, (Tensor, tf.Variable))
    with pytest.raises(TypeError, match=r"'requires_grad': leave it out: .* tape.watch\(x\)"):
        make(requires_grad=True)
    with pytest.raises(TypeError, match=r"'device': .* write `with tf.device\(name\):`"):
        make(device="cuda")
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'dim'$"):  # it has no axis
        make(dim=0)


def test_makers_of_the_array_api_have_one_device():
    for name in ("zeros", "ones", "arange", "eye"):
        make = getattr(tf.numpy, name)
        np.testing.assert_array_equal(make(2, device="cpu"), make(2))
        with pytest.raises(ValueError, match=f"{name}: device must be 'cpu', .* got 'cuda'"):
            make(2, device="cuda")
        with pytest.raises(TypeError, match=r"'requires_grad': leave it out: a tape"):
            make(2, requires_grad=True)


def test_every_function_with_an_axis_answers_dim():
    count = 0
    for home in (tf, tf.math, tf.nn, tf.linalg, tf.numpy, tf.keras.ops):
        for name in home.__all__:
            function = getattr(home, name)
            if not inspect.isfunction(function):
                continue
            own = inspect.signature(function).parameters
            if (
                "axis" not in own
                or "axes" in own
                or any(parameter.kind == 4 for parameter in own.values())
            ):
                continue
            positional = [
                parameter
                for parameter in own.values()
                if parameter.kind < 2 and parameter.default is parameter.empty
            ]
            args = [tf.ones([2, 2]) for parameter in positional if parameter.name != "axis"]
            with pytest.raises(TypeError, match="'dim': use axis="):
                function(*args, dim=0)
            count += 1
    assert count > 150


def test_an_axis_that_is_missing_is_an_error_as_in_python():
    x = tf.ones([2])
    for make in (tf.concat, tf.expand_dims, tf.reverse):
        words = rf"^{make.__name__}\(\) missing 1 required positional argument: 'axis'$"
        with pytest.raises(TypeError, match=words):
            make(x)
        assert inspect.signature(make).parameters["axis"].default is inspect.Parameter.empty


def test_older_names_of_arguments():
    x = tf.ones([2, 2])
    for call, words in (
        (lambda: tf.reduce_sum(x, keep_dims=True), "'keep_dims': use keepdims="),
        (lambda: tf.reduce_sum(x, reduction_indices=0), "'reduction_indices': use axis="),
        (lambda: tf.argmax(x, dimension=0), "'dimension': use axis="),
        (lambda: tf.optimizers.SGD(lr=0.1), r"SGD\(\) .* 'lr': use learning_rate="),
        (lambda: tf.check_gradients(tf.sin, 1.0, orders=2), "'orders': use order="),
        (lambda: tf.check_gradients(tf.sin, 1.0, eps=1e-3), "'eps': leave it out"),
        (lambda: tf.grad(tf.sin, holomorphic=True), "'holomorphic': leave it out"),
    ):
        with pytest.raises(TypeError, match=words):
            call()


def test_transforms_that_are_given_the_point_too_say_how_they_are_called():
    x = tf.constant([1.0, 2.0])
    square = lambda x: tf.reduce_sum(x * x)
    for name in ("grad", "value_and_grad", "jacobian", "hessian", "hvp"):
        with pytest.raises(TypeError, match=rf"{name}: argnums must be .* {name}\(f\)\(x\)"):
            getattr(tf, name)(square, x)
    with pytest.raises(TypeError, match=r"hvp\(\) takes at most 2 .* write hvp\(f\)\(\.\.\.\)"):
        tf.hvp(square, x, x)


def test_tapes_optimizers_and_modules_say_what_to_use():
    for value, name, words in (
        (tf.GradientTape(), "backward", r"use tape.gradient\(y, x\)"),
        (tf.GradientTape(), "grad", r"use tape.gradient\(y, x\)"),
        (tf.optimizers.SGD(), "zero_grad", "leave it out"),
        (tf.optimizers.SGD(), "step", "use apply_gradients"),
        (tf.Module(), "parameters", "use trainable_variables"),
    ):
        expected = f"{type(value).__name__!r} object has no attribute '{name}': {words}"
        with pytest.raises(AttributeError, match=expected):
            getattr(value, name)

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.weights = tf.Variable([1.0])

    assert Model().weights.shape == (1,)  # a name that a class of one's own may use
    assert len(Model().trainable_variables) == 1


def test_help_lists_the_names_of_other_libraries_apart():
    text = pydoc.render_doc(tf.Tensor, renderer=pydoc.plaintext)
    own, _, others = text.partition("inherited from tinygrad_cg._core.suggestions.NamesOf")
    assert "backward" in others
    assert "backward" not in own
    assert "reshape(" in own


@pytest.mark.parametrize("name", tf.keras.losses.__all__)
def test_a_loss_names_its_own_class(name):
    loss = getattr(tf.keras.losses, name)
    if isinstance(loss, type) and name != "Loss":
        with pytest.raises(
            TypeError, match=rf"^{name}(\.__init__)?\(\) got an unexpected .*'logit'"
        ):
            loss(logit=True)


def test_arguments_that_are_no_lists_are_named():
    x = tf.constant([1.0])
    with pytest.raises(TypeError, match=r"^concat: the first argument must be a list .* int"):
        tf.concat(0, [x, x])
    with pytest.raises(
        TypeError, match=r"apply_gradients: each entry must be a pair, .* entry 0 is Tensor"
    ):
        tf.optimizers.SGD().apply_gradients(x)
    with pytest.raises(ValueError, match=r"axis -1 of the first .* tf.linalg.matvec"):
        tf.matmul(tf.ones([4, 2, 3]), tf.ones([4, 3]))


def test_sizes_that_are_not_one_list_are_named():
    for make in (tf.zeros, tf.ones, tf.random.normal):
        with pytest.raises(TypeError, match=r"4 is not .* dtype: pass sizes as one list"):
            make(3, dtype=4)
    with pytest.raises(TypeError, match="pass sizes as one list"):
        tf.zeros(3, 4)


def test_signatures_have_our_arguments_alone():
    parameters = inspect.signature(tf.reduce_sum).parameters.values()
    shown = [str(parameter.replace(annotation=parameter.empty)) for parameter in parameters]
    assert shown == ["input_tensor", "axis=None", "keepdims=False", "name=None"]
    assert list(inspect.signature(tf.grad).parameters) == ["f", "argnums", "has_aux"]
    for function in (tf.grad, tf.reduce_sum, tf.vmap):
        assert pickle.loads(pickle.dumps(function)) is function


def test_a_gradient_of_one_element_says_how_to_make_it_a_scalar():
    square = lambda x: x * x
    with pytest.raises(ValueError, match=r"shape \(1,\); .* y\[0\], or reduce_sum\(y\)"):
        tf.grad(square)(tf.constant([3.0]))
    with pytest.raises(ValueError, match=r"shape \(1, 1\); .* y\[0, 0\], or reduce_sum"):
        tf.grad(square)(tf.constant([[3.0]]))
    with pytest.raises(ValueError, match=r"shape \(2,\); use jacobian or vjp, or .* reduce_sum"):
        tf.grad(square)(tf.constant([3.0, 1.0]))


@pytest.mark.parametrize(
    "module", ["debugging._pictures.picture", "optimizers", "keras", "warm", "numpy"]
)
def test_each_module_can_be_the_first_that_is_loaded(module):
    """An import asks a package for the module first, which must not load others meanwhile."""
    command = f"from tinygrad_cg import {module.partition('.')[0]}"
    if "." in module:
        command = f"import tinygrad_cg.{module}"
    assert run_python(command).stderr == ""


def test_a_name_that_is_asked_for_during_an_import_is_no_suggestion():
    program = "import tinygrad_cg as tf; print(hasattr(tf, 'schedules'), hasattr(tf, 'erf'))"
    done = run_python(f"{program}; tf.show, tf.optimizers")
    assert (done.stdout.split(), done.stderr) == (["False", "False"], "")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "from tinygrad_cg import expit",
            "cannot import name 'expit' from 'tinygrad_cg': use tf.sigmoid",
        ),
        ("from tinygrad_cg import matmul, expit", "use tf.sigmoid"),
        ("from tinygrad_cg.math import gammaln as g", "use tf.math.lgamma"),
        ("from tinygrad_cg.numpy import expit", "use tf.sigmoid"),
        ("from tinygrad_cg.autograd.extend import vspace", "'tinygrad_cg.autograd.extend': use "),
        ("from tinygrad_cg import RaggedTensor", "use a padded tensor"),
        ("from tinygrad_cg import nothing_like_it", "cannot import name 'nothing_like_it'"),
    ],
)
def test_an_import_of_an_absent_name_says_what_to_use(statement, words):
    with pytest.raises(ImportError) as error:
        exec(statement, {})
    assert words in str(error.value)
    assert not isinstance(error.value, AttributeError)


def test_an_absent_name_is_no_attribute_within_an_import_of_another():
    assert not hasattr(tf, "expit")
    assert getattr(tf.autograd, "vspace", None) is None
    space = {}
    exec("from tinygrad_cg import autograd, keras", space)
    assert space["autograd"] is tf.autograd


def test_dir_shows_the_names_of_private_modules():
    """Tools that look for doctests ask every module."""
    from tinygrad_cg.numpy import _fits

    assert "polyfit" in dir(_fits)


def scaled(x, *, eps=1e-5):
    return x / eps


@pytest.mark.parametrize(
    "function", [tf.check_gradients, tf.assert_gradients, tf.jacobian, tf.grad, tf.vmap]
)
def test_a_keyword_of_the_function_is_passed_by_partial_or_a_lambda(function):
    name = function.__name__
    words = (
        f"^{name}\\(\\) got an unexpected keyword argument 'eps': to pass it to `scaled`, write "
        f"{name}\\(functools.partial\\(scaled, eps=...\\), ...\\), or use a lambda$"
    )
    for f in (scaled, tf.custom_gradient(scaled)):
        with pytest.raises(TypeError, match=words):
            function(f, tf.ones(2), eps=0.1)
    with pytest.raises(TypeError, match="to pass it to `f`"):
        function(lambda x, temperature: x * temperature, temperature=2.0)
    with pytest.raises(TypeError, match=r"unexpected keyword argument '\w+'(: leave it out.*)?$"):
        function(lambda x: x, atol=0.1)
    assert tf.check_gradients(functools.partial(scaled, eps=0.1), tf.ones(2)).ok


def test_code_of_other_libraries_that_calls_differently_says_what_to_write():
    class Layer(tf.Module):
        def forward(self, x):
            return x

    class Doubled(Layer):
        def __call__(self, x):
            return 2.0 * self.forward(x)

    @tf.custom_gradient
    def relu(ctx, x):
        return tf.nn.relu(x)

    @tf.custom_gradient
    def raises(ctx, x):
        raise TypeError("missing data")

    w, sgd = tf.Variable([1.0, 2.0]), tf.optimizers.SGD(0.1)
    calls = [
        (lambda: Layer()(w), "'Layer' object is not callable$"),
        (lambda: relu(w), r"missing 1 required .* takes no ctx: write `def relu\(x, \.\.\.\)`"),
        (lambda: raises(w, w), "^missing data$"),
        (
            lambda: sgd.apply_gradients([w], [w]),
            r"entry 0 is Variable\. .* write apply\(gradients, ",
        ),
        (
            lambda: sgd.apply_gradients([(w, w[0])]),
            r"VariableSlice\)\. The second .* tf.Variable\. For a",
        ),
        (lambda: tf.numpy_function(np.sin, [w]), "^numpy_function: Tout is missing: pass the dt"),
        (lambda: tf.py_function(tf.sin, [w]), "^py_function: Tout is missing: pass the dtype of"),
        (
            lambda: [*zip(tf.constant(1.0), w, strict=True)],
            r"write \[x\], for example in zip\(\[x\], \[y\]\)",
        ),
    ]
    for call, words in calls:
        with pytest.raises(TypeError, match=words):
            call()
    assert float(Doubled()(3.0)) == 6.0
    assert not callable(Layer())
    parameters = inspect.signature(tf.optimizers.SGD.apply_gradients).parameters
    assert [*parameters] == ["self", "grads_and_vars", "name"]  # as in TensorFlow
    cross_entropy, logits = tf.nn.softmax_cross_entropy_with_logits, tf.ones((2, 3))
    with pytest.raises(
        ValueError, match=r"numbers of classes, use tf.nn.sparse_softmax_cross_entropy"
    ):
        cross_entropy(tf.constant([1, 2]), logits)
    with pytest.raises(ValueError, match=r"do not broadcast$"):
        cross_entropy(tf.constant([1, 2, 0, 0]), logits)
    with pytest.raises(AttributeError, match=r"'experimental': use tf.data; for CSV files numpy"):
        tf.data.experimental.make_csv_dataset("a.csv")
    with pytest.raises(AttributeError, match=r"'list_files': use a loop over sorted\(pathlib"):
        tf.data.Dataset.list_files("*.csv")
