"""Where tensors are, how they get there, and what is said where they cannot meet."""

import copy
import pickle
import threading

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import devices
from tinygrad_cg.errors import DeviceError

NAMES = ("/GPU:0", "GPU", "gpu:0", "cuda", "cuda:0", "/device:GPU:0", "/job:localhost/task:0/GPU:0")


def here():
    """A tensor in the processor's memory."""
    return tf.constant([1.0, 2.0, 3.0])


def there():
    """The same on the GPU."""
    return here().gpu()


@pytest.mark.parametrize("name", NAMES)
def test_new_tensors_are_where_device_says(name):
    with tf.device(name):
        tensors = [
            *(tf.constant(1.0), tf.constant([1, 2]), tf.constant(np.ones(2)), tf.zeros((2, 3))),
            *(tf.ones((2,)), tf.fill((2,), 3.0), tf.eye(2), tf.range(3), tf.linspace(0.0, 1.0, 3)),
            *(tf.Variable([1.0]), tf.sin(0.5), tf.convert_to_tensor((1.0, 2.0))),
        ]
        assert {tensor.device for tensor in tensors} == {"gpu:0"}
    assert tf.zeros((2,)).device == "cpu"


def test_devices_nest_and_belong_to_a_thread():
    devices = []
    with tf.device("GPU"):
        with tf.device("/CPU:0"):
            devices.append(tf.ones(1).device)
        with tf.device(None):
            devices.append(tf.ones(1).device)
        thread = threading.Thread(target=lambda: devices.append(tf.ones(1).device))
        thread.start()
        thread.join()
        devices.append(tf.ones(1).device)
        with pytest.raises(ZeroDivisionError), tf.device("cpu"):
            _ = 1 // 0
        devices.append(tf.ones(1).device)
    assert devices == ["cpu", "cpu", "cpu", "gpu:0", "gpu:0"]


def test_like_another_tensor():
    for tensor in (tf.zeros_like(there()), tf.ones_like(there()), tf.fill((3,), there()[0])):
        assert tensor.device == "gpu:0"
    x = here()
    with tf.device("GPU"):
        assert tf.zeros_like(x).device == tf.ones_like(x).device == "cpu"


def test_transfers():
    x = here()
    y = x.gpu()
    assert (x.device, y.device, y.cpu().device) == ("cpu", "gpu:0", "cpu")
    assert y.gpu() is y
    assert x.cpu() is x
    assert y.to_device("cpu").numpy().tolist() == [1.0, 2.0, 3.0]
    assert x.to_device("cuda:0").device == "gpu:0"
    assert type(y._data) in devices.array_types


def test_readers_copy_back():
    x = there()
    assert type(x.numpy()) is np.ndarray
    assert x.numpy().tolist() == x.tolist() == np.asarray(x).tolist() == [1.0, 2.0, 3.0]
    assert (float(x[1]), int(x[2]), bool(x[0] > 0), len(x), x[1].item()) == (2.0, 3, True, 3, 2.0)
    assert [float(element) for element in x] == [1.0, 2.0, 3.0]
    assert (x.shape, x.dtype, x.ndim, x.size, x.nbytes) == ((3,), np.float32, 1, 3, 12)
    assert repr(x) == repr(here())
    assert str(x) == str(here())
    assert f"{x[1]:.2f}" == "2.00"
    with pytest.raises(ValueError, match="is ambiguous"):
        bool(x)


def test_copies_and_pickles():
    x = there()
    assert copy.deepcopy(x) is x
    assert pickle.loads(pickle.dumps(x)).numpy().tolist() == [1.0, 2.0, 3.0]
    v = tf.Variable(x, name="v")
    again = pickle.loads(pickle.dumps(v))
    assert (again.numpy().tolist(), again.name) == ([1.0, 2.0, 3.0], "v:0")


def test_numbers_and_single_values_go_along():
    x = there()
    for y in (x + 1, 1.0 - x, x * tf.constant(2.0), np.float32(2) * x, tf.maximum(x, 2)):
        assert y.device == "gpu:0"
        assert y.dtype == np.float32
    assert (x * tf.constant(2.0)).numpy().tolist() == [2.0, 4.0, 6.0]


def test_arrays_and_lists_go_along():
    x = there()
    for total in (
        x * np.ones(3, "f"),
        np.ones(3, "f") * x,
        x * [1.0, 1.0, 1.0],
        tf.add([0, 0, 0], x),
    ):
        assert (total.device, total.dtype) == ("gpu:0", "float32")
        np.testing.assert_array_equal(total.numpy(), x.numpy())


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        (lambda: there() + here(), r"add: .*: x of shape \(3,\) is on 'gpu:0', y .* on 'cpu'"),
        (lambda: here() * there(), r"multiply: .* x of shape \(3,\) is on 'cpu'"),
        (lambda: tf.concat([there(), here()], 0), r"tensors\[1\] of shape \(3,\) is on 'cpu'"),
        (lambda: tf.where(here() > 0, there(), here()), "condition .* is on 'cpu', x .* 'gpu:0'"),
        (lambda: tf.Variable(here()).assign(there()), r"is on 'cpu': .* tensor\.cpu\(\)"),
        (lambda: tf.Variable(there()).assign(here()), r"is on 'gpu:0': .* tensor\.gpu\(\)"),
    ],
)
def test_tensors_on_different_devices(mix, words):
    with pytest.raises((TypeError, ValueError), match=words):
        mix()


def test_names_of_devices():
    with pytest.raises(DeviceError, match="The only GPU is 'gpu:0'; 'gpu:3' does not exist"):
        here().to_device("cuda:3")
    with pytest.raises(ValueError, match="'here' is not the name of a device"):
        here().to_device("here")
    with pytest.raises(DeviceError, match="there is no device 'tpu'"):
        here().to_device("tpu")


def test_indices_and_slices():
    x = tf.reshape(tf.range(12.0), (3, 4)).gpu()
    host = x.numpy()
    for key in (1, (slice(None), 2), (Ellipsis, None, slice(3, 0, -1)), np.array([2, 0]), [1, 1]):
        assert x[key].device == "gpu:0"
        np.testing.assert_array_equal(x[key].numpy(), host[key])
    index = tf.constant([2, 0]).gpu()
    np.testing.assert_array_equal(x[index].numpy(), host[[2, 0]])
    np.testing.assert_array_equal(x[x > 5.0].numpy(), host[host > 5])
    for key in (3, [0, 3], (0, [-5])):
        with pytest.raises(IndexError, match="out of bounds"):
            x[key]


def test_a_function_runs_on_one_device():
    x = there()
    for function in (lambda x: x.cpu() * 2.0, lambda x: tf.sin(x).cpu()):
        with pytest.raises(DeviceError, match=r"^cpu: .* runs on 'gpu:0' .* write \.cpu\(\) for"):
            tf.function(function)(x)
    with pytest.raises(DeviceError, match=r"^gpu: .* runs on 'cpu' .* write \.gpu\(\) for"):
        tf.function(lambda x: x.gpu() * 2.0)(here())
    for function in (
        lambda x: x.gpu() * 2.0,
        lambda x: tf.vectorized_map(lambda row: row.gpu() * 2.0, x),
        lambda x: x * tf.constant([2.0, 2.0, 2.0]).gpu(),
    ):
        result = tf.function(function)(x)
        assert result.device == "gpu:0"
        assert result.numpy().tolist() == [2.0, 4.0, 6.0]
    assert tf.function(lambda x: x.cpu() * 2.0)(here()).device == "cpu"


def test_what_a_loop_without_rounds_returns_is_beside_its_operands():
    x, start = tf.zeros((0, 3)).gpu(), there()
    spec = tf.TensorSpec((3,), tf.float32)
    for result in (
        tf.map_fn(lambda row: row * 2.0, x),
        tf.map_fn(lambda row: row * 2.0, x, fn_output_signature=spec),
        tf.scan(lambda a, row: a + row, x, start),
        tf.function(lambda x, start: tf.scan(lambda a, row: a + row, x, start))(x, start),
        tf.keras.ops.scan(lambda a, row: (a + row, a), start, x)[1],
    ):
        assert (result.device, result.shape) == ("gpu:0", (0, 3))


class Foreign:
    """An array of another library on a GPU."""

    def __init__(self, tensor):
        self.array = tensor._data
        self.__cuda_array_interface__ = self.array.__cuda_array_interface__

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def address(x):
    return x.__cuda_array_interface__["data"][0]


def test_arrays_of_other_libraries_come_in():
    x = there()
    for foreign in (x._data, Foreign(x)):
        tensor = tf.constant(foreign)
        assert (tensor.device, tensor.dtype, tensor.numpy().tolist()) == (
            "gpu:0",
            np.float32,
            [1, 2, 3],
        )
        assert address(tensor) != address(x)  # its owner may write to it
        assert (x + foreign).numpy().tolist() == [2.0, 4.0, 6.0]
        assert tf.Variable(foreign).device == "gpu:0"
        assert tf.constant(foreign, tf.float64).dtype == np.float64
        shared = tf.numpy.from_dlpack(foreign, copy=False)
        assert address(shared) == address(x)
        copied = tf.numpy.from_dlpack(foreign)
        assert copied.device == "gpu:0"
        assert address(copied) != address(x)
        assert tf.numpy.from_dlpack(foreign, device="cpu").device == "cpu"
    with pytest.raises(BufferError, match="needs a copy"):
        tf.numpy.from_dlpack(Foreign(x), device="cpu", copy=False)


def test_numpy_function_copies_no_operand_of_the_host_to_the_device(monkeypatch):
    x, y = there(), tf.ones((5, 3))
    copies, move = [], devices.move

    def counted(data, device):
        copies.append((data.shape, device))
        return move(data, device)

    monkeypatch.setattr(devices, "move", counted)
    for call in (tf.numpy_function, tf.py_function):
        result = call(lambda x, y: np.asarray(x) + np.asarray(y), [x, y], tf.float32)
        assert result.numpy().tolist() == [[2.0, 3.0, 4.0]] * 5
    assert tf.numpy_function(np.add, [x, y], tf.float32).device == "gpu:0"
    assert copies == [((5, 3), "gpu:0")] * 2


class ByCapsule:
    """An array of a library that knows DLPack only, on a device of a type and a number."""

    def __init__(self, tensor, kind=2, number=0):
        self.array, self.device = tensor._data, (kind, number)

    def __dlpack__(self, *, stream):  # before version 1.0 of the protocol
        return self.array.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.device


class ByInterface:
    """An array of a library that knows the interface of such arrays alone."""

    def __init__(self, tensor):
        self.array = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


@pytest.mark.parametrize("kind", [2, 13], ids=["cuda", "managed"])
def test_arrays_that_know_dlpack_only_come_in(kind):
    x = there()
    foreign = ByCapsule(x, kind)
    tensor = tf.constant(foreign)
    assert (tensor.device, tensor.dtype, tensor.numpy().tolist()) == (
        "gpu:0",
        np.float32,
        [1, 2, 3],
    )
    assert address(tensor) != address(x)
    assert (x + foreign).numpy().tolist() == [2.0, 4.0, 6.0]
    v = tf.Variable(foreign)
    assert (v.device, v.dtype) == ("gpu:0", np.float32)
    v.assign(foreign)
    assert v.device == "gpu:0"
    assert tf.constant(foreign, tf.float64).dtype == np.float64
    assert address(tf.numpy.from_dlpack(foreign, copy=False)) == address(x)
    assert address(tf.numpy.from_dlpack(foreign)) != address(x)


def test_arrays_of_a_second_gpu_are_refused(monkeypatch):
    x, v = there(), tf.Variable(there())
    words = "the array is on a GPU. It is 'gpu:1', tensors need 'gpu:0': copy it there first"
    attributes = type("Attributes", (), {"device": 1})
    runtime = devices.library().cuda.runtime
    monkeypatch.setattr(runtime, "pointerGetAttributes", lambda pointer: attributes, raising=False)
    for foreign in (ByCapsule(x, 2, 1), ByCapsule(x, 13, 1), ByInterface(x)):
        for use in (tf.constant, tf.Variable, v.assign, lambda foreign: x + foreign):
            with pytest.raises(tf.errors.DeviceError, match=words):
                use(foreign)
        assert v.numpy().tolist() == [1.0, 2.0, 3.0]
    with pytest.raises(BufferError, match=f"from_dlpack: {words}"):
        tf.numpy.from_dlpack(ByCapsule(x, 2, 1), copy=False)


def test_a_copy_to_the_host_is_refused_where_none_is_wanted():
    x = there()
    for of in (x, tf.Variable(x)):
        with pytest.raises(ValueError, match=r"__array__: .* makes a copy: leave out copy=False"):
            np.asarray(of, copy=False)
        with pytest.raises(ValueError, match="__array__"):
            np.array(of, np.float64, copy=False)
    with pytest.raises(BufferError, match=r"__dlpack__: .* makes a copy: leave out copy=False"):
        np.from_dlpack(x, device="cpu", copy=False)
    for wanted in (None, True):
        assert np.asarray(x, copy=wanted).tolist() == [1.0, 2.0, 3.0]
        assert np.from_dlpack(x, device="cpu", copy=wanted).tolist() == [1.0, 2.0, 3.0]
    assert np.array(x).flags.writeable


def test_tensors_go_out():
    x = there()
    library = devices.library()
    assert x.__dlpack_device__()[0] == 2
    assert here().__dlpack_device__() == (1, 0)
    assert not hasattr(here(), "__cuda_array_interface__")
    for array in (library.asarray(x), library.from_dlpack(x)):
        assert type(array) is library.ndarray
        assert address(array) == address(x)
    assert tf.numpy.from_dlpack(np.ones(2), device="gpu:0").device == "gpu:0"
    assert tf.numpy.from_dlpack(x) is x


def test_what_functions_make_themselves_is_beside_their_operands():
    x, ids = tf.constant([3.0, 1.0, 2.0, 5.0]).gpu(), np.array([0, 1, 1, 2])
    condition = tf.constant([True, False, True, False])
    for function in (
        lambda x: tf.gather(x, tf.constant([2, 0])),
        lambda x: tf.gather(x[None], [1, 1], axis=1),
        lambda x: tf.where(condition, x, 0.0),
        lambda x: tf.tile(x, [2]),
        lambda x: tf.roll(x, 1, 0),
        lambda x: tf.math.segment_sum(x, tf.constant([0, 0, 1, 1])),
        lambda x: tf.linalg.band_part(tf.reshape(x, (2, 2)), 0, 1),
        lambda x: x.at[0].set(9.0),
        lambda x: x.at[[0, 2]].add(1.0),
        lambda x: tf.math.unsorted_segment_prod(x, ids, 4),
        lambda x: tf.math.segment_max(x, ids),
        lambda x: tf.signal.stft(x, 2, 1),
        lambda x: tf.keras.ops.sparsemax(x),
        lambda x: tf.numpy.convolve(x, [1.0, 2.0]),
        lambda x: tf.numpy.gradient(x),
        lambda x: tf.numpy.nanquantile(x, 0.3),
        lambda x: tf.numpy.polyadd(x, [1.0, 2.0]),
        lambda x: tf.numpy.zeros_like(x),
        lambda x: tf.nn.dropout(x, 0.5, seed=1),
        lambda x: tf.random.normal((4,), x, seed=1),
        lambda x: tf.random.uniform((4,), 0.0, x, seed=1),
        lambda x: tf.random.truncated_normal((4,), x, seed=1),
        lambda x: tf.random.poisson((3,), x, seed=1),
        lambda x: tf.random.categorical(tf.reshape(x, (1, 4)), 3, seed=1),
    ):
        result, want = function(x), function(x.cpu())
        assert (result.device, result.dtype, result.shape) == ("gpu:0", want.dtype, want.shape)
        np.testing.assert_allclose(result.numpy(), want.numpy(), 1e-6)


def test_random_numbers_are_those_of_the_cpu_where_the_device_or_a_parameter_says():
    for draw in (
        lambda: tf.random.normal((3,), seed=1),
        lambda: tf.random.uniform((3,), seed=1),
        lambda: tf.random.uniform((3,), maxval=9, dtype=tf.int32, seed=1),
        lambda: tf.random.truncated_normal((3,), seed=1),
        lambda: tf.random.poisson((3,), 2.0, seed=1),
        lambda: tf.random.stateless_normal((3,), (1, 2)),
    ):
        with tf.device("/GPU:0"):
            numbers = draw()
        want = draw()
        assert (numbers.device, want.device) == ("gpu:0", "cpu")
        np.testing.assert_allclose(numbers.numpy(), want.numpy(), 1e-6)


def test_what_reads_values_gives_results_beside_its_operands():
    assert tf.bitcast(there(), tf.int32).device == "gpu:0"
    np.testing.assert_array_equal(tf.bitcast(there(), tf.int32), tf.bitcast(here(), tf.int32))
    assert tf.bitcast(here(), tf.int32).device == "cpu"
    assert tf.range(tf.constant(3.0).gpu()).device == "gpu:0"


def test_arrays_of_other_libraries_are_arguments_of_compiled_functions():
    doubled = tf.function(lambda z: z * 2)(ByInterface(there()))
    assert doubled.device == "gpu:0"
    np.testing.assert_array_equal(doubled, [2.0, 4.0, 6.0])


# Code of users -----------------------------------------------------------------------------------


def test_print_and_assertions_take_tensors_of_any_device(capsys):
    tf.print(there(), here(), 2.0)
    assert capsys.readouterr().err == "[1 2 3] [1 2 3] 2.0\n"
    tf.debugging.assert_equal(there(), there())
    tf.debugging.assert_near(there(), here())
    with pytest.raises(tf.errors.InvalidArgumentError, match="3 of 3 elements"):
        tf.debugging.assert_equal(there(), there() + 1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        tf.Assert(tf.reduce_all(there() > 5.0), [there()])


@pytest.mark.parametrize("within", [lambda f: f, tf.function], ids=["eager", "function"])
def test_a_function_of_numpy_gets_copies_on_the_host(within):
    seen = []

    def total(x):
        seen.append(type(x))
        return np.cumsum(x)

    called = within(lambda x: tf.numpy_function(total, [x], tf.float32) * 2.0)
    for _ in range(2):
        got = called(there())
        assert got.device == "gpu:0"
        np.testing.assert_array_equal(got, [2.0, 6.0, 12.0])
    assert set(seen) == {np.ndarray}
    rows = tf.vmap(lambda x: tf.numpy_function(np.cumsum, [x], tf.float32))(tf.stack([there()] * 2))
    assert rows.device == "gpu:0"
    np.testing.assert_array_equal(rows, [[1.0, 3.0, 6.0]] * 2)


@pytest.mark.parametrize("within", [lambda f: f, tf.function], ids=["eager", "function"])
def test_python_on_tensors_has_gradients(within):
    weights = there()  # on the GPU, as the argument is

    def cube(x):
        return x**3 if float(tf.reduce_sum(x)) > 0 else x

    def loss(x):
        return tf.reduce_sum(weights * tf.py_function(cube, [x], tf.float32))

    got = within(tf.grad(loss))(there())
    assert got.device == "gpu:0"
    np.testing.assert_array_equal(got, [3.0, 24.0, 81.0])
