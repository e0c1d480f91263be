"""Operands that the CPU refuses: a device refuses them, too, in the same words."""

import os

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.cuda.comparison import VECTORS
from tests.support import op_cases
from tinygrad_cg._core import device_runs, devices
from tinygrad_cg._core.primitive import OPS

DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
TOLERANCES = {"float16": 1e-3, "float32": 1e-5, "complex64": 1e-5}


def small_example(name):
    """The first example of an operation; of one element if it is elementwise."""
    primitive = OPS[name]
    if not op_cases.is_elementwise(primitive):
        return op_cases.examples(name)[0]
    shapes = ((1,),) * len(primitive.inputs)
    return op_cases.elementwise_example(primitive, op_cases.generator(primitive), shapes)


def result(call, operands):
    """The arrays that a call gives, or the type and the words of its error."""
    try:
        result = call(*operands)
    except Exception as error:
        return type(error), str(error)
    return [value.numpy() for value in (result if isinstance(result, (list, tuple)) else [result])]


@pytest.mark.parametrize("name", op_cases.names())
def test_every_dtype_is_computed_or_refused_as_on_the_cpu(name):
    example = small_example(name)
    for dtype in DTYPES[:-2] if name == "rfft" else DTYPES:  # its callers refuse complex numbers
        # out of an unsigned integer's range there is no one meaning
        cast = example._replace(operands=tuple(map(np.abs, example.operands)))
        operands = (cast if dtype == "uint64" else example).cast(dtype)
        operands = [tf.constant(operand) for operand in operands]
        moved = [operand.gpu() for operand in operands]
        want, actual = result(example.call, operands), result(example.call, moved)
        if isinstance(want, list):
            assert isinstance(actual, list), (dtype, actual)
            tolerance = TOLERANCES.get(dtype, 1e-9)
            for value, other in zip(want, actual, strict=True):
                assert (other.dtype, other.shape) == (value.dtype, value.shape)
                if name in VECTORS:
                    value, other = np.abs(value), np.abs(other)
                np.testing.assert_allclose(other, value, tolerance, tolerance, err_msg=dtype)
        else:
            assert actual == want, dtype
            for these in (operands, moved):
                assert result(tf.function(example.call), these) == want, dtype


COMPLEX = np.array([-1 + 2j, 3])
REFUSED = {
    "relu": (tf.nn.relu, COMPLEX),
    "in a chain": (lambda x: tf.nn.relu(x * 2.0) + 1.0, COMPLEX),
    "less": (lambda x: x < x, COMPLEX),
    "erf": (tf.math.erf, COMPLEX),
    "floor": (tf.floor, COMPLEX),
    "floor_divide": (lambda x: x // x, np.array([True, True])),
    "fused floor_divide": (lambda x: tf.cast(x // x, "float32") + 1.0, np.array([True, True])),
    "max": (tf.reduce_max, COMPLEX),
    "argmax": (tf.argmax, COMPLEX),
    "argmin along columns": (lambda x: tf.argmin(x, 0), np.ones((2, 3), complex)),
    "reduce_min of one element": (tf.reduce_min, COMPLEX[:1]),
    "softmax": (tf.nn.softmax, COMPLEX),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_refusals_are_type_errors_in_the_words_of_the_cpu(name, compiled):
    call, array = REFUSED[name]
    x = tf.constant(array)
    want = result(call, [x])
    assert want[0] is TypeError
    assert "no kernel for dtype" in want[1]
    call = tf.function(call) if compiled else call
    assert result(call, [x.gpu()]) == result(call, [x]) == want


@pytest.mark.parametrize("axis", [(), (0,), (1,)])
def test_extremes_of_complex_numbers_over_axes_without_extent(axis):
    for shape in [(1, 2), (2, 1), (1, 1), (0, 2), (2, 0)]:
        x = tf.zeros(shape, tf.complex128)
        for reduce in (tf.reduce_max, tf.reduce_min):
            want = result(lambda x: reduce(x, axis), [x])  # noqa: B023
            actual = result(lambda x: reduce(x, axis), [x.gpu()])  # noqa: B023
            if isinstance(want, list):
                np.testing.assert_array_equal(actual, want)
            else:
                assert actual == want


LACKING = {
    "a function": lambda x, **_: devices.library().nowhere(x),
    "a method": lambda x, **_: x.nowhere(),
    "a keyword": lambda x, **_: devices.library().sum(x, where=True),
    "arrays of the host": lambda x, **_: x + np.ones(3),
}
MISTAKES = {
    "an attribute": (AttributeError, lambda x, **_: None.nowhere),
    "a call": (TypeError, lambda x, **_: len(3)),
    "a compiler": (NotImplementedError, lambda x, **_: eval("refuse()", {"refuse": refuse})),
}


def refuse():
    raise NotImplementedError("this machine")


@pytest.mark.parametrize("run", LACKING.values(), ids=LACKING)
def test_what_the_library_of_arrays_lacks_is_refused(run, monkeypatch):
    checked = device_runs._checked(OPS["sort"], run)
    monkeypatch.setattr(device_runs, "_implementation", {OPS["sort"]: checked}.get)
    with pytest.raises(tf.errors.DeviceError, match="GPUs are not supported"):
        tf.sort(tf.ones(3).gpu())


def test_a_compiled_function_of_the_library_of_arrays_leaves_no_frame_in_its_error():
    for name, is_of_library in (("sum", True), ("nowhere", False)):
        with pytest.raises(TypeError) as caught:
            raise TypeError(f"{name}() got an unexpected keyword argument 'where'")
        assert device_runs.is_of_library(caught.value) is is_of_library


def test_errors_of_the_gpu_name_the_operation_where_each_waits(monkeypatch):
    def fail():
        raise RuntimeError("an illegal address was read")

    x = tf.ones(3).gpu()
    program = tf.function(lambda x: tf.exp(x) + 1.0)
    program(x)
    monkeypatch.setattr("tinygrad_cg_kernels.cuda.adapter.synchronize", fail)
    for run in (tf.exp, program):  # without it, errors come later
        run(x)
    monkeypatch.setattr(devices, "WAITS", True)
    for name, run in (("exp", tf.exp), ("function", program)):
        with pytest.raises(tf.errors.DeviceError, match=f"{name}: .* an illegal address was read"):
            run(x)


def test_a_forked_process_says_that_it_cannot_use_the_gpu():
    x = tf.ones(3).gpu()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        told = ""
        for run in (lambda: tf.exp(x), lambda: tf.ones(3).gpu()):
            try:
                run()
            except tf.errors.DeviceError as error:
                told += str(error)
        os.write(write, told.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 9999).decode().count("spawn") == 2


@pytest.mark.parametrize("mistake", MISTAKES)
def test_other_errors_are_not_taken_for_refusals(mistake, monkeypatch):
    error, run = MISTAKES[mistake]
    checked = device_runs._checked(OPS["sort"], run)
    monkeypatch.setattr(device_runs, "_implementation", {OPS["sort"]: checked}.get)
    with pytest.raises(error):
        tf.sort(tf.ones(3).gpu())


@pytest.mark.parametrize("kernel", [lambda x: x.nowhere, eval("lambda x: nowhere(x)")])
def test_a_function_that_no_device_can_compile_is_refused_in_the_words_of_the_cpu(kernel):
    user = tf.primitive("RefusedOnDevices", kernel=kernel, elementwise=True, replace=True)
    x = tf.constant([1.0, 2.0])
    want = result(user, [x])
    assert want[0] is TypeError
    assert result(user, [x.gpu()]) == want


HERE = tf.constant([1.0, 2.0, 3.0])
ROWS = tf.constant([[0], [1]])
TWO = tf.constant([4.0, 5.0])
MIXED = {
    **{
        f"at {how}": ("at", lambda x, how=how: getattr(x.at[:2], how)(TWO))
        for how in ("set", "add", "subtract", "multiply", "divide", "power", "max", "min")
    },
    "at of an index": ("at", lambda x: x.at[tf.constant([0, 1])].set(TWO)),
    **{
        name: (name, lambda x, name=name: getattr(tf, name)(x, ROWS, TWO))
        for name in (f"tensor_scatter_nd_{how}" for how in ("update", "add", "sub", "max", "min"))
    },
    "add": ("add", lambda x: x + HERE),
    "stack": ("stack", lambda x: tf.stack([x, HERE])),
    "concat": ("concat", lambda x: tf.concat([x, HERE], 0)),
    "clip_by_value": ("clip_by_value", lambda x: tf.clip_by_value(x, HERE, HERE)),
    "where": ("where", lambda x: tf.where(HERE > 1.0, x, HERE)),
    "einsum": ("einsum", lambda x: tf.einsum("i,i->", x, HERE)),
    "set_diag": ("set_diag", lambda x: tf.linalg.set_diag(tf.stack([x, x, x]), HERE)),
    "squared_difference": ("squared_difference", lambda x: tf.math.squared_difference(x, HERE)),
    "bias_add": ("bias_add", lambda x: tf.nn.bias_add(tf.stack([x, x]), HERE)),
    "sigmoid_cross_entropy_with_logits": (
        "sigmoid_cross_entropy_with_logits",
        lambda x: tf.nn.sigmoid_cross_entropy_with_logits(HERE, x),
    ),
    "a loss": ("mean_squared_error", lambda x: tf.keras.losses.MeanSquaredError()(HERE, x)),
    "average": ("average", lambda x: tf.numpy.average(x, weights=HERE)),
    "append by NumPy": ("append", lambda x: np.append(x, HERE)),
}


@pytest.mark.parametrize("name", MIXED)
def test_operands_on_different_devices_are_refused_by_the_function_that_was_called(name):
    called, call = MIXED[name]
    words = (
        f"^{called}: (its operands|operands of `[a-z]+`) are on different devices: .* is on 'cpu'"
    )
    with pytest.raises(tf.errors.ArgumentTypeError, match=words) as caught:
        call(HERE.gpu())
    assert "is on 'gpu:0'" in str(caught.value)


def test_the_operands_that_a_user_gave_are_named():
    words = r"x of shape \(3,\) is on 'gpu:0', values of shape \(2,\) is on 'cpu'"
    with pytest.raises(tf.errors.ArgumentTypeError, match=words):
        HERE.gpu().at[:2].set(TWO)
    words = r"tensor of shape \(3,\) is on 'cpu', updates of shape \(2,\) is on 'gpu:0'"
    with pytest.raises(tf.errors.ArgumentTypeError, match=words):
        tf.tensor_scatter_nd_max(HERE, ROWS, TWO.gpu())
    assert HERE.gpu().at[:2].set(tf.constant(4.0)).device == "gpu:0"


# Indices out of range --------------------------------------------------------------------------


def at(*indices):
    return tf.constant(indices, tf.int64).gpu()


WRONG = {
    "gather": (lambda x: tf.gather(x, at(0, 3)), "gather: index 3 is out of bounds for size 3"),
    "second": (lambda x: [tf.gather(x, at(k)) for k in (1, -4, 5)], "gather: index -4 is"),
    "gather_nd": (lambda x: tf.gather_nd(x, at(7)), r"gather_nd: indices\[\] = \[7\] does not"),
    "segments": (
        lambda x: tf.math.unsorted_segment_sum(x, at(0, 2, 1), 2),
        r"unsorted_segment_sum: segment_ids\[1\] = 2 is not below the 2 segments",
    ),
    "many": (lambda x: [tf.gather(x, at(9 if k == 90 else 0)) for k in range(140)], "index 9"),
    "gradient": (lambda x: tf.grad(lambda y: tf.reduce_sum(tf.gather(y, at(8))))(x), "index 8"),
    "nothing": (lambda x: tf.gather(x[:0], at(0)), "gather: index 0 is out of bounds for size 0"),
}


@pytest.mark.parametrize("name", WRONG)
def test_indices_out_of_range_raise_when_data_are_read(name):
    call, message = WRONG[name]
    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    with pytest.raises((IndexError, tf.errors.InvalidArgumentError), match=message):
        _ = call(x), x.numpy()
    np.testing.assert_array_equal(x.numpy(), [1, 2, 3])
    np.testing.assert_array_equal(tf.gather(x, at(-1, 0)).numpy(), [3, 1])


def test_an_operation_does_not_wait_for_its_indices():
    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    y = tf.gather(x, at(3))
    assert y.device == "gpu:0"
    assert y.shape == (1,)
    with pytest.raises(IndexError, match="gather: index 3"):
        float(tf.reduce_sum(x))


def test_a_condition_is_not_computed_from_wrong_indices():
    def rounds(x, i):
        return tf.while_loop(lambda y: tf.gather(y, i)[0] < 9.0, lambda y: [y + 1.0], [x])[0]

    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    compiled = tf.function(rounds)
    np.testing.assert_array_equal(compiled(x, at(2)).numpy(), [7, 8, 9])
    with pytest.raises(IndexError, match="gather: index 3"):
        compiled(x, at(3))


def test_indices_of_many_bytes_are_not_kept(monkeypatch):
    from tinygrad_cg_kernels.cuda import bounds

    monkeypatch.setattr(bounds, "MAX_KEPT", 100)
    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    with pytest.raises(IndexError, match="gather: index 3"):
        [tf.gather(x, at(*[3] * 10 if k == 2 else [0] * 10)) for k in range(10)]
