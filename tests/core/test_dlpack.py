"""DLPack and the array API: memory shared with NumPy, PyTorch and JAX where that is safe."""

import gc

import numpy as np
import pytest

import tinygrad_cg as tf

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)

SHOWS_FLAGS = np.from_dlpack(np.ones(1)).flags.writeable
"""Whether NumPy tells memory that may be written; NumPy 2.1 shows all as read-only."""


def address(array):
    return array.__array_interface__["data"][0]


class Old:
    """A producer as before version 1.0 of the protocol, which knows no keyword arguments."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_numpy_shares_a_tensors_memory(dtype, shape):
    tensor = tf.constant(np.ones(shape, dtype))
    array = np.from_dlpack(tensor)
    assert (array.dtype, array.shape) == (dtype, shape)
    assert address(array) == address(np.asarray(tensor))
    assert not array.flags.writeable


def test_strides_are_kept():
    numbers = np.arange(10_000.0).reshape(2, 5000)
    array = np.from_dlpack(tf.transpose(tf.constant(numbers))[::-1])
    np.testing.assert_array_equal(array, numbers.T[::-1])
    assert array.strides == (-8, 40_000)


def test_a_copy_is_the_consumers_own():
    tensor = tf.constant([1.0, 2.0])
    array = np.from_dlpack(tensor, copy=True)
    assert array.flags.writeable == SHOWS_FLAGS
    assert address(array) != address(np.asarray(tensor))


def test_a_capsule_keeps_the_memory():
    array = np.from_dlpack(tf.constant([1.0, 2.0]) * 3.0)
    gc.collect()
    for _ in range(20):
        _ = tf.constant([5.0, 6.0]) * 7.0
    assert array.tolist() == [3.0, 6.0]
    tensor = tf.numpy.from_dlpack(np.arange(3.0) + 1.0, copy=False)
    gc.collect()
    for _ in range(20):
        _ = np.arange(3.0) * 7.0
    assert tensor.numpy().tolist() == [1.0, 2.0, 3.0]


def test_variables_hand_out_the_present_value():
    variable = tf.Variable([1.0, 2.0])
    array = np.from_dlpack(variable)
    variable.assign([3.0, 4.0])
    assert array.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("wrap", [lambda array: array, Old], ids=["1.0", "before"])
def test_what_may_be_written_is_copied(wrap):
    """docs/behaviour.md 5.2 and 4.4: a mutated operand must not change a gradient."""
    array = np.array([1.0, 2.0])
    x = tf.numpy.from_dlpack(wrap(array))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    array[:] = 100.0
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


def test_what_is_read_only_is_shared():
    array = np.array([1.0, 2.0])
    array.flags.writeable = False
    tensor = tf.numpy.from_dlpack(array)
    assert (address(np.asarray(tensor)) == address(array)) == SHOWS_FLAGS
    again = tf.numpy.from_dlpack(array, copy=True)
    assert address(np.asarray(again)) != address(array)
    assert (tensor * 2.0 + tf.exp(tensor)).dtype == np.float64


def test_sharing_on_the_callers_word():
    array = np.array([1.0, 2.0])
    tensor = tf.numpy.from_dlpack(array, copy=False)
    assert address(np.asarray(tensor)) == address(array)
    assert not np.asarray(tensor).flags.writeable


def test_tensors_stay_and_keep_their_gradient():
    x = tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.numpy.from_dlpack(x) * tf.numpy.from_dlpack(x, copy=True)
    assert tf.numpy.from_dlpack(x) is x
    assert tape.gradient(y, x).numpy() == 4.0


def test_capsules():
    """tf.experimental.dlpack: to_dlpack and from_dlpack."""
    capsule = tf.experimental.dlpack.to_dlpack(tf.constant([1, 2, 3]))
    tensor = tf.experimental.dlpack.from_dlpack(capsule)
    assert tensor.numpy().tolist() == [1, 2, 3]
    assert tensor.dtype == np.int32


def test_what_is_refused():
    with pytest.raises(TypeError, match="list has no __dlpack__"):
        tf.numpy.from_dlpack([1.0, 2.0])
    with pytest.raises(BufferError, match="from_dlpack: there is no device 'tpu'"):
        tf.numpy.from_dlpack(np.ones(2), device="tpu")
    with pytest.raises(ValueError, match="to_device: there is no device 'mps:0'"):
        tf.constant(1.0).to_device("mps:0")
    read_only = np.ones(2)
    read_only.flags.writeable = False
    tensor = tf.numpy.from_dlpack(read_only, copy=False)
    with pytest.raises(BufferError, match="readonly"):
        tensor.__dlpack__(copy=False)
    assert np.from_dlpack(Old(tensor)).tolist() == [1.0, 1.0]


class TestPyTorch:
    def test_out(self):
        torch = pytest.importorskip("torch")
        tensor = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        theirs = torch.from_dlpack(tensor)
        assert theirs.data_ptr() == address(np.asarray(tensor))
        assert theirs.tolist() == [[1.0, 2.0], [3.0, 4.0]]
        assert torch.utils.dlpack.from_dlpack(tensor.__dlpack__()).tolist() == theirs.tolist()

    def test_in(self):
        torch = pytest.importorskip("torch")
        theirs = torch.arange(6.0).reshape(2, 3).T
        shared = tf.numpy.from_dlpack(theirs, copy=False)
        assert address(np.asarray(shared)) == theirs.data_ptr()
        assert shared.numpy().tolist() == theirs.tolist()
        copied = tf.numpy.from_dlpack(theirs)
        theirs[0, 0] = 100.0
        assert (float(shared[0, 0]), float(copied[0, 0])) == (100.0, 0.0)

    def test_refused(self):
        torch = pytest.importorskip("torch")
        with pytest.raises(BufferError, match="detach"):
            tf.numpy.from_dlpack(torch.ones(2, requires_grad=True))
        with pytest.raises(TypeError, match="bfloat16"):
            tf.numpy.from_dlpack(torch.ones(2, dtype=torch.bfloat16))

    def test_as_an_operand(self):
        torch = pytest.importorskip("torch")
        x = tf.constant([1.0, 2.0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * tf.numpy.from_dlpack(torch.tensor([3.0, 4.0]))
        assert tape.gradient(y, x).numpy().tolist() == [3.0, 4.0]


class TestJax:
    def test_out(self):
        jnp = pytest.importorskip("jax.numpy")
        tensor = tf.constant(np.arange(64, dtype=np.float32))
        theirs = jnp.from_dlpack(tensor)
        assert theirs.tolist() == tensor.numpy().tolist()
        if address(np.asarray(tensor)) % 64 == 0:  # as JAX wants its memory; else it copies
            assert theirs.unsafe_buffer_pointer() == address(np.asarray(tensor))

    def test_in(self):
        jnp = pytest.importorskip("jax.numpy")
        theirs = jnp.arange(6.0)
        tensor = tf.numpy.from_dlpack(theirs)
        assert address(np.asarray(tensor)) == theirs.unsafe_buffer_pointer()
        del theirs
        gc.collect()
        assert tensor.numpy().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


class TestArrayApi:
    """https://data-apis.org/array-api/2024.12: what a consumer asks for first."""

    def test_the_namespace(self):
        x = tf.constant([1.0, 2.0])
        assert x.__array_namespace__() is tf.numpy
        assert tf.Variable(1.0).__array_namespace__(api_version="2024.12") is tf.numpy
        with pytest.raises(ValueError, match=r"2031\.12 is not supported"):
            x.__array_namespace__(api_version="2031.12")

    def test_a_function_of_any_array(self):
        """Code that never heard of us: standardised columns, and their gradient."""

        def standardised(x):
            xp = x.__array_namespace__()
            mean = xp.mean(x, axis=0, keepdims=True)
            deviation = xp.sqrt(xp.mean(xp.square(x - mean), axis=0, keepdims=True))
            return xp.sum(xp.where(x > mean, (x - mean) / deviation, xp.zeros_like(x)))

        array = np.random.default_rng(0).normal(size=(5, 2))
        x = tf.constant(array)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = standardised(x)
        assert float(y) == pytest.approx(float(standardised(array)))
        assert abs(tape.gradient(y, x).numpy().sum()) < 1e-12

    def test_attributes(self):
        x = tf.constant([[[1.0, 2.0]], [[3.0, 4.0]]])
        assert x.device == "cpu"
        assert x.to_device("cpu") is x
        assert x.mT.numpy().tolist() == [[[1.0], [2.0]], [[3.0], [4.0]]]
        with pytest.raises(ValueError, match="mT: needs at least 2 dimensions"):
            _ = tf.constant(1.0).mT
        assert tf.numpy.isdtype(x.dtype, "real floating")
        assert tf.numpy.result_type(x, np.float64) == np.float64
        assert tf.numpy.finfo(x.dtype).bits == 32

    def test_names_of_the_standard(self):
        assert [name for name in NAMES.split() if not hasattr(tf.numpy, name)] == []
        assert tf.numpy.__array_namespace_info__().default_dtypes()["real floating"] == np.float64


# Of the standard 2024.12; without nextafter, and what works on the bits of integers.
NAMES = """
e inf nan newaxis pi bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32
float64 complex64 complex128 arange asarray empty empty_like eye from_dlpack full
full_like linspace meshgrid ones ones_like tril triu zeros zeros_like astype can_cast
finfo iinfo isdtype result_type cumulative_prod cumulative_sum std var
abs acos acosh add asin asinh atan atan2 atanh cosh log10 log2
sinh tan ceil clip conj copysign cos divide equal exp
expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less
less_equal log log1p logaddexp logical_and logical_not logical_or logical_xor maximum
minimum multiply negative not_equal positive pow real reciprocal remainder round sign
signbit sin sqrt square subtract tanh trunc matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat
reshape roll squeeze stack tile unstack take take_along_axis argmax argmin
count_nonzero nonzero searchsorted where unique_all unique_counts unique_inverse
unique_values argsort sort max mean min prod sum all any diff
__array_namespace_info__
"""
