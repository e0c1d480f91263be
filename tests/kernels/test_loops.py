"""How elementwise kernels take their operands: shapes, strides, dtypes, in place."""

import warnings

import numpy as np
import pytest

from tinygrad_cg_kernels import elementary
from tinygrad_cg_kernels.loops.engine import Elementwise
from tinygrad_cg_kernels.runtime import threads
from tinygrad_cg_kernels.runtime.promotion import promote

add = Elementwise("add", elementary.add, 2)
divide = Elementwise("divide", elementary.divide, 2, "float")
exp = Elementwise("exp", elementary.exp, 1, "float")
less = Elementwise("less", elementary.less, 2, "compare")
negative = Elementwise("negative", elementary.negative, 1)
sin = Elementwise("sin", elementary.sin, 1, "float")
subtract = Elementwise("subtract", elementary.subtract, 2)
where = Elementwise("where", elementary.where, 3, "select")
clip = Elementwise("clip", elementary.clip, 3)


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((), ()),
        ((5,), ()),
        ((), (5,)),
        ((5,), (1,)),
        ((1,), (5,)),
        ((3, 4), (4,)),
        ((3, 4), (3, 1)),
        ((3, 1), (1, 4)),
        ((2, 3, 4), (3, 1)),
        ((1, 1), (1,)),
        ((0,), ()),
        ((0, 3), (3,)),
        ((2, 1, 3, 1, 2), (1, 4, 1, 5, 1)),
        ((2, 1, 2, 1, 2, 3), (2, 1, 2, 1, 1)),
    ],
)
def test_broadcasting(left, right):
    x, y = numbers(*left), numbers(*right)
    for a, b in ((x, y), (y, x)):
        got = subtract(a, b)
        assert type(got) is np.ndarray
        assert got.shape == np.broadcast_shapes(left, right)
        assert got.flags.c_contiguous
        np.testing.assert_array_equal(got, a - b)


def layouts(x):
    """The same kind of array, arranged in memory in many ways."""
    yield x
    yield x[::-1]
    yield x[:, ::-2]
    yield x.T
    yield np.asfortranarray(x)
    yield x[1:, 2:]
    yield x[:, :1]
    yield np.broadcast_to(x[0], x.shape)
    yield np.broadcast_to(np.array(1.5), x.shape)
    yield x[None, :, None, ::3]


@pytest.mark.parametrize("position", range(10))
def test_strides(position):
    x = list(layouts(numbers(6, 700)))[position]
    np.testing.assert_array_equal(negative(x), -x)
    np.testing.assert_allclose(sin(x), np.sin(x), rtol=1e-15)
    np.testing.assert_array_equal(add(x, x), x + x)
    np.testing.assert_array_equal(subtract(x, x[..., :1]), x - x[..., :1])
    np.testing.assert_array_equal(where(x > 0, x, 2 * x), np.where(x > 0, x, 2 * x))
    np.testing.assert_array_equal(negative(x.astype(np.float16)), -x.astype(np.float16))


def test_many_dimensions_that_do_not_merge():
    x = np.arange(2.0**7 * 3).reshape(2, 2, 2, 2, 2, 2, 2, 3).transpose(6, 4, 7, 2, 0, 5, 1, 3)
    np.testing.assert_array_equal(add(x, x[:1, :, :, :1]), x + x[:1, :, :, :1])


def test_misaligned_and_foreign_byte_order():
    raw = np.zeros(8 * 6 + 1, np.uint8)
    odd = raw[1:].view(np.float64)
    odd[:] = np.arange(6.0)
    assert not odd.flags.aligned
    for x in (odd, odd[::2], odd[1:2].reshape(()), np.arange(6.0).astype(">f8")):
        y = np.array(x, np.float64)
        for _ in range(2):
            np.testing.assert_array_equal(add(x, x), y + y)
            np.testing.assert_array_equal(add(x, np.array(2.0)), y + 2)
    odd += 1
    np.testing.assert_array_equal(add(odd, odd, out=odd), 2 * np.arange(1.0, 7.0))


def test_read_only_operands_need_no_second_compilation():
    x, y = numbers(5), numbers(5)
    subtract(x, y)
    before = len(subtract.dispatchers)
    x.flags.writeable = y.flags.writeable = False
    got = subtract(x, y)
    assert got.flags.writeable
    np.testing.assert_array_equal(got, x - y)
    assert len(subtract.dispatchers) == before


@pytest.mark.parametrize("repeat", range(2))
def test_in_place(repeat):
    for x, y in ((numbers(50), numbers(50) + 9), (numbers(5, 7), numbers(5, 7))):
        for scalar in (y, np.array(3.0), y.ravel()[:1]):
            a = x.copy()
            assert subtract(a, scalar, out=a) is a
            np.testing.assert_array_equal(a, x - scalar)
            a = y.copy()
            assert subtract(x, a, out=a) is a
            np.testing.assert_array_equal(a, x - y)
        a = x.copy()
        assert add(a, a, out=a) is a
        np.testing.assert_array_equal(a, x + x)
        for unary, reference in ((exp, np.exp), (sin, np.sin)):
            a = x.copy()
            assert unary(a, out=a) is a
            np.testing.assert_allclose(a, reference(x), rtol=1e-14)
        a = x.copy()
        assert clip(a, np.array(-1.0), np.array(1.0), out=a) is a
        np.testing.assert_array_equal(a, np.clip(x, -1, 1))


def test_in_place_on_zero_dimensions():
    x = np.array(2.0)
    assert add(x, np.array(3.0), out=x) is x
    assert negative(x, out=x) is x
    assert x == -5.0


def test_output_that_overlaps_an_input():
    base = np.arange(10.0)
    for out, other in ((slice(1, 10), slice(0, 9)), (slice(0, 9), slice(1, 10))):
        x = base.copy()
        want = x[other] + x[other]
        add(x[other], x[other], out=x[out])
        np.testing.assert_array_equal(x[out], want)
        x = base.copy()
        target = x[out]
        want = x[out] + x[other]
        for _ in range(2):
            x[:] = base
            add(target, x[other], out=target)
            np.testing.assert_array_equal(target, want)
    x = base.copy()
    np.testing.assert_array_equal(negative(x, out=x[::-1]), -base)


def test_output_of_another_layout_or_dtype():
    x = numbers(4, 6)
    out = np.zeros((6, 4)).T
    assert add(x, x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    single = np.zeros((4, 6), np.float32)
    add(x, x, out=single)
    np.testing.assert_array_equal(single, (2 * x).astype(np.float32))
    flags = np.zeros((4, 6), bool)
    assert less(x, x, out=flags) is flags
    assert not flags.any()


def test_outputs_that_do_not_fit_are_refused():
    x = numbers(3)
    with pytest.raises(ValueError, match=r"add: out has shape \(4,\), the result \(3,\)"):
        add(x, x, out=np.zeros(4))
    with pytest.raises(TypeError, match="add: out has dtype int64, the result float64"):
        add(x, x, out=np.zeros(3, np.int64))
    x.flags.writeable = False
    for _ in range(2):
        with pytest.raises(ValueError, match="add: out is read-only"):
            add(x, np.ones(3), out=x)


@pytest.mark.parametrize("kernel", [exp, add, where])
def test_a_wrong_number_of_operands(kernel):
    x = numbers(3)
    for args in ((), (x,) * (kernel.inputs + 1)):
        for out in (None, x):
            message = f"{kernel.name} takes {kernel.inputs} arrays, got {len(args)}"
            with pytest.raises(TypeError, match=message):
                kernel(*args, out=out)


def test_shapes_that_do_not_broadcast():
    for _ in range(2):
        with pytest.raises(ValueError, match=r"add: shapes \(2,\) and \(3,\) do not broadcast"):
            add(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match=r"clip: shapes \(2,\) and \(\) and \(3,\)"):
        clip(np.ones(2), np.ones(()), np.ones(3))


@pytest.mark.parametrize("code", ["O", "U3", "S3", "M8[s]", "m8[s]", "g", "V8"])
def test_unsupported_dtypes(code):
    x = np.zeros(2, code)
    with pytest.raises(TypeError, match=r"negative: dtype .* is not supported"):
        negative(x)
    with pytest.raises(TypeError, match=r"add: dtype .* is not supported"):
        add(x, np.ones(2))
    with pytest.raises(TypeError, match="is not supported"):
        add.result_dtype(x.dtype, x.dtype)


def test_dtypes_without_a_kernel():
    remedy = "less: no kernel for dtype complex128, complex128: take abs, real or imag of"
    with pytest.raises(TypeError, match=remedy):
        less(np.ones(2, complex), np.ones(2, complex))
    pair = (np.dtype(complex),) * 2
    with pytest.raises(TypeError, match=remedy):
        less.check_loop(pair)
    assert add.refusal(pair) is None
    assert negative.refusal((np.dtype(float),)) is None


@pytest.mark.parametrize(
    ("dtypes", "result"),
    [
        ("ff", "f"),
        ("fd", "d"),
        ("fl", "f"),
        ("el", "e"),
        ("ef", "f"),
        ("dF", "D"),
        ("lF", "F"),
        ("?f", "f"),
        ("bl", "l"),
        ("?b", "b"),
        ("Bb", "h"),
        ("??", "?"),
        ("lL", "d"),
    ],
)
def test_promotion(dtypes, result):
    assert promote(*map(np.dtype, dtypes)) == np.dtype(result)
    x, y = (np.array([1, 2]).astype(code) for code in dtypes)
    got = add(x, y)
    assert got.dtype == np.dtype(result) == add.result_dtype(x.dtype, y.dtype)
    if result != "?":
        np.testing.assert_array_equal(got, [2, 3 if "?" in dtypes else 4])


def test_kinds():
    integers, flags = np.array([0, 2, 4]), np.array([True, False, True])
    assert divide(integers, np.array([1, 4, 2])).tolist() == [0.0, 0.5, 2.0]
    assert divide(flags, flags | True).dtype == np.float64
    assert exp(integers.astype(np.float16)).dtype == np.float16
    assert less(integers, np.array(3)).tolist() == [True, True, False]
    assert where(integers, np.array(1.0), np.array(2, np.float32)).tolist() == [2.0, 1.0, 1.0]
    assert where(flags, np.array(1, np.float32), np.array([1, 2, 3])).dtype == np.float32
    both = Elementwise("logical_and", elementary.logical_and, 2, "logical")
    assert both(np.array([0.0, np.nan, -1.0]), integers + 1).tolist() == [False, True, True]
    size = Elementwise("absolute", elementary.absolute, 1, "real")
    assert size(np.array([3 + 4j], np.complex64)).dtype == np.float32
    assert size.result_dtype(np.dtype(complex)) == np.float64


def test_arguments_of_the_class():
    with pytest.raises(ValueError, match="odd: kind 'other' is not one of same, float"):
        Elementwise("odd", elementary.add, 2, "other")
    with pytest.raises(ValueError, match="takes 1 to 4 inputs, not 5"):
        Elementwise("odd", elementary.add, 5)
    assert repr(add) == "<kernel add>"
    assert add.function is elementary.add
    assert (add.name, add.inputs, add.kind) == ("add", 2, "same")


def test_floating_point_never_warns():
    log = Elementwise("log", elementary.log, 1, "float")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(log(np.array([-1.0]))).all()
        assert divide(np.array(1.0), np.array(0.0)) == np.inf
        assert exp(np.array(1000.0)) == np.inf


def test_large_arrays_take_the_same_values():
    x = numbers(threads.MIN_BLOCKED * 2 + 77)
    np.testing.assert_array_equal(add(x, x), x + x)
    np.testing.assert_array_equal(add(x, np.array(2.0)), x + 2)
    np.testing.assert_array_equal(subtract(np.array(2.0), x), 2 - x)
    np.testing.assert_allclose(sin(x), np.sin(x), rtol=1e-15)
    np.testing.assert_array_equal(clip(x, np.array(0.0), np.array(1.0)), np.clip(x, 0, 1))
    np.testing.assert_array_equal(where(x > 0, x, -x), np.abs(x))
    matrix = x[: threads.MIN_BLOCKED * 2].reshape(-1, 256)
    np.testing.assert_array_equal(add(matrix, matrix[0]), matrix + matrix[0])
    a = x.copy()
    assert add(a, x, out=a) is a
    np.testing.assert_array_equal(a, 2 * x)
    a = x.copy()
    add(a, np.array(2.0), out=a)
    np.testing.assert_array_equal(a, x + 2)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_one_value_repeated_by_strides_of_zero(count):
    """A single element's stride says nothing; one value for many is a scalar operand."""
    multiply = Elementwise("multiply", elementary.multiply, 2)
    exponential = Elementwise("exp", elementary.exp, 1, "float")
    value, y = np.array(2.0), np.linspace(0.5, 0.7, count)
    repeated = np.ndarray((count,), value.dtype, value, 0, (0,))
    for _ in range(2):
        assert multiply(repeated, y).tolist() == (2.0 * y).tolist()
        assert multiply(y, repeated).tolist() == (2.0 * y).tolist()
        assert multiply(repeated, repeated).tolist() == [4.0] * count
        np.testing.assert_allclose(exponential(repeated), np.exp([2.0] * count), rtol=1e-15)


@pytest.mark.parametrize("shape", [(), (3,), (2, 2)])
def test_what_is_too_large_for_float16_is_infinite_without_a_warning(shape):
    large = np.full(shape, 60000, np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        total = add(large, large)
    assert total.dtype == np.float16
    assert np.isposinf(total).all()
