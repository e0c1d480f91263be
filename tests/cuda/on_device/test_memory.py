"""Which devices there are, and what happens when memory runs out."""

import gc

import numpy as np
import pytest

import tinygrad_cg as tf
from tinygrad_cg._core import devices
from tinygrad_cg.errors import DeviceError, InvalidArgumentError, ResourceExhaustedError

config = tf.config


@pytest.fixture
def visible():
    yield
    config.set_visible_devices(config.list_physical_devices())


@pytest.fixture
def limited():
    """A limit of 1 MB beyond what is used."""
    gpu = config.list_physical_devices("GPU")[0]
    used = devices.library().get_default_memory_pool().used_bytes() / 2**20
    config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration(used + 1)])
    yield
    config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration()])


@pytest.mark.usefixtures("visible")
def test_devices():
    processor, gpu = config.list_physical_devices()
    assert (processor.device_type, gpu.device_type) == ("CPU", "GPU")
    assert gpu.name == "/physical_device:GPU:0"
    assert config.list_physical_devices("GPU") == [gpu]
    assert config.list_physical_devices("TPU") == []
    assert [device.name for device in config.list_logical_devices()] == [
        "/device:CPU:0",
        "/device:GPU:0",
    ]
    with tf.device(config.list_logical_devices("GPU")[0].name):
        assert tf.ones(1).device == "gpu:0"
    x = tf.ones(2).gpu()
    config.set_visible_devices([], "GPU")
    assert config.get_visible_devices() == [processor]
    assert config.list_physical_devices() == [processor, gpu]
    with tf.device("GPU"):
        assert tf.ones(1).device == "cpu"
    with pytest.raises(DeviceError, match="GPUs are hidden by set_visible_devices"):
        tf.ones(1).gpu()
    assert (x + 1.0).numpy().tolist() == [2.0, 2.0]
    config.set_visible_devices(gpu, "GPU")
    assert config.get_visible_devices("GPU") == [gpu]


@pytest.mark.usefixtures("visible")
def test_tensors_on_a_hidden_gpu_go_on_to_work():
    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    v = tf.Variable(x)
    compiled = tf.function(lambda x: tf.sin(x) * tf.constant([1.0, 2.0, 3.0]))
    config.set_visible_devices([], "GPU")
    assert x.gpu() is x
    assert x.to_device("cuda:0") is x
    assert x.cpu().device == "cpu"
    v.assign_add(x)
    v.assign(np.ones(3, np.float32))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.exp(x) * tf.reduce_mean(v)
    tf.keras.optimizers.Adam(0.1).apply_gradients([(tape.gradient(y, v, tf.constant(2.0)), v)])
    results = [
        *(v.gpu(), x * 2.0 + np.ones(3), compiled(x), tf.zeros_like(x), tf.vmap(tf.exp)(x)),
        *(tf.Variable(x), x.at[0].set(4.0), tf.grad(lambda x: tf.reduce_sum(x * v))(x)),
        tf.numpy_function(np.cumsum, [x], tf.float32),
        tf.numpy.searchsorted(x, x, sorter=tf.range(3)),
        tf.numpy.histogram(x, 4)[1],
    ]
    assert {result.device for result in results} == {"gpu:0"}


@pytest.mark.usefixtures("visible")
def test_nothing_new_goes_to_a_hidden_gpu():
    x = tf.constant([1.0, 2.0, 3.0]).gpu()
    config.set_visible_devices([], "GPU")
    words = r"GPUs are hidden by set_visible_devices: config.set_visible_devices\(.*\) shows them"
    for move in (
        lambda: x.cpu().gpu(),
        lambda: x.cpu().to_device("gpu:0"),
        lambda: tf.Variable(1.0).gpu(),
        lambda: tf.constant(x._data),
        lambda: tf.Variable(x._data),
        lambda: x + x._data,
    ):
        with pytest.raises(DeviceError, match=words):
            move()
    with pytest.raises(BufferError, match=words):
        tf.numpy.from_dlpack(x._data)


def test_what_is_no_device():
    with pytest.raises(InvalidArgumentError, match="set_visible_devices: 'GPU' is not one of"):
        config.set_visible_devices(["GPU"])
    with pytest.raises(DeviceError, match="there is no GPU"):
        config.set_logical_device_configuration(config.list_physical_devices("CPU")[0], [])
    gpu = config.list_physical_devices("GPU")[0]
    with pytest.raises(InvalidArgumentError, match="a GPU is one logical device, got 2"):
        config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration(1)] * 2)


@pytest.mark.usefixtures("limited")
def test_out_of_memory_and_after():
    x = tf.constant([1.0, 2.0]).gpu()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tf.exp(x)
        with pytest.raises(ResourceExhaustedError, match=r"broadcast_to|multiply") as caught:
            _ = tf.broadcast_to(x, (2**18, 2)) * 3.0
    assert isinstance(caught.value, MemoryError)
    assert "the memory of 'gpu:0' is too small" in str(caught.value)
    assert "clear_cache()" in str(caught.value)
    assert tape.gradient(y, x).numpy().tolist() == y.numpy().tolist()
    with pytest.raises(ResourceExhaustedError, match="gpu"):
        tf.zeros((2**19,)).gpu()
    with pytest.raises(MemoryError), tf.device("GPU"):
        tf.zeros((2**19,))


MANY = 2**19


@pytest.mark.usefixtures("limited")
@pytest.mark.parametrize(
    ("name", "create"),
    [
        ("zeros", lambda x: tf.zeros((MANY,))),
        ("ones", lambda x: tf.ones((MANY,))),
        ("full", lambda x: tf.fill((MANY,), 2.0)),
        ("eye", lambda x: tf.eye(2**10)),
        ("gpu", lambda x: tf.range(MANY)),
        ("gpu", lambda x: tf.Variable(np.zeros(MANY))),
        ("zeros_like", lambda x: tf.zeros_like(x, tf.complex128)),
        ("ones_like", lambda x: tf.ones_like(x, tf.complex128)),
        ("Variable", lambda x: tf.Variable(x, dtype=tf.float64)),
        ("constant", lambda x: tf.constant(x._data, tf.complex128)),
        ("function", tf.function(lambda x: tf.sin(x) * tf.constant([[1.0], [2.0]]))),
    ],
)
def test_out_of_memory_where_arrays_are_made(name, create):
    with tf.device("GPU"):
        x = tf.constant(np.linspace(0, 1, 2**16, dtype=np.float32))
        _rest = tf.zeros(2**17)  # of 1 MB, 3/4 are taken
        with pytest.raises(
            ResourceExhaustedError, match=f"^{name}: the memory of 'gpu:0' is too small"
        ):
            create(x)
        with tf.GradientTape() as tape:
            few = x[:3]
            tape.watch(few)
            y = tf.reduce_sum(few * few)
        np.testing.assert_array_equal(tape.gradient(y, few).numpy(), 2.0 * few.numpy())


def test_the_processors_memory_is_another():
    with pytest.raises(MemoryError) as caught, tf.device("CPU"):
        tf.zeros((2**50,))
    assert not isinstance(caught.value, ResourceExhaustedError)


def test_memory_grows():
    gpu = config.list_physical_devices("GPU")[0]
    assert config.experimental.get_memory_growth(gpu) is True
    config.experimental.set_memory_growth(gpu, True)
    with pytest.raises(
        InvalidArgumentError, match="set_memory_growth: memory of a GPU is allocated"
    ):
        config.experimental.set_memory_growth(gpu, False)
    with pytest.raises(DeviceError, match="set_memory_growth: there is no GPU 'GPU'"):
        config.experimental.set_memory_growth("GPU", True)


def test_the_limit_can_be_read():
    gpu = config.list_physical_devices("GPU")[0]
    assert config.get_logical_device_configuration(gpu) is None
    limit = config.LogicalDeviceConfiguration(memory_limit=64)
    config.set_logical_device_configuration(gpu, [limit])
    assert config.get_logical_device_configuration(gpu) == [limit]
    config.set_logical_device_configuration(gpu, [config.LogicalDeviceConfiguration()])
    assert config.get_logical_device_configuration(gpu) is None


@pytest.mark.parametrize("limit", [-1, "5", float("nan"), True])
def test_a_limit_is_a_number_of_megabytes(limit):
    gpu = config.list_physical_devices("GPU")[0]
    with pytest.raises(InvalidArgumentError, match=r"memory_limit must be .*, got "):
        config.set_logical_device_configuration(
            gpu, [config.LogicalDeviceConfiguration(memory_limit=limit)]
        )
    assert config.get_logical_device_configuration(gpu) is None


def test_the_devices_that_are_used():
    gpus = config.list_physical_devices("GPU")
    config.set_visible_devices(tuple(gpus), "GPU")
    assert config.get_visible_devices("GPU") == gpus
    with pytest.raises(InvalidArgumentError, match="device_type must be 'CPU' or 'GPU', got 'FOO'"):
        config.set_visible_devices([], "FOO")


def test_the_cache_is_cleared():
    x = tf.ones(3).gpu()
    y = x * 2.5
    del x
    gc.collect()
    tf.clear_cache()
    assert y.numpy().tolist() == [2.5, 2.5, 2.5]
    assert (y * 2.5 + 0.25).numpy().tolist() == [6.5, 6.5, 6.5]
