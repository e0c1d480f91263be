"""The stand-in for CuPy: what it shares with NumPy, and what it refuses as CuPy does."""

import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tests.support.stand_ins import cupy as simulated
from tinygrad_cg_kernels.cuda import adapter, launches

pytestmark = pytest.mark.quick
HOST = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    "mix",
    [
        lambda x: np.asarray(x),
        lambda x: x + HOST,
        lambda x: HOST + x,
        lambda x: np.add(HOST, x),
        lambda x: np.concatenate([x, HOST]),
        lambda x: simulated.matmul(x, HOST.T),
        lambda x: x[np.array([0])],
        lambda x: x.__setitem__(0, HOST[0]),
    ],
)
def test_arrays_of_the_host_are_refused(mix):
    with pytest.raises(TypeError, match=r"Unsupported type|Implicit conversion"):
        mix(simulated.asarray(HOST))


def test_functions_are_those_of_numpy():
    x = simulated.asarray(HOST)
    assert type(np.sum(x)) is simulated.ndarray
    assert float(np.sum(x, axis=None)) == 15
    np.testing.assert_array_equal(simulated.concatenate([x, x], 1).get(), np.c_[HOST, HOST])
    np.testing.assert_array_equal((2 * x.T - x.T[::-1]).get(), 2 * HOST.T - HOST.T[::-1])
    q, r = simulated.linalg.qr(x.T)
    np.testing.assert_allclose((q @ r).get(), HOST.T, atol=1e-12)
    assert x.shape == (2, 3)
    assert x.nbytes == 48
    assert x.astype("f").dtype == np.float32
    assert int(x[1, 2]) == 5
    assert bool(x[0, 0]) is False


def test_views_share_memory_and_copies_do_not():
    host = HOST.copy()
    x = simulated.asarray(host)
    x[:, 1] = 7
    assert host[0, 1] == 1
    x.T[0] = 3
    np.testing.assert_array_equal(x.get()[:, 0], [3, 3])
    y = x
    y += 1
    assert y is x
    assert float(x[0, 0]) == 4


def test_other_arrays_of_the_device_come_in_without_a_copy():
    x = simulated.asarray(HOST)

    class Foreign:
        __cuda_array_interface__ = x.T.__cuda_array_interface__

    y = simulated.asarray(Foreign())
    y[0] = 9
    np.testing.assert_array_equal(x.get()[:, 0], [9, 9])
    y = simulated.from_dlpack(x.T)
    y[0] = 8
    np.testing.assert_array_equal(x.get()[:, 0], [8, 8])
    with pytest.raises(TypeError, match="Unsupported array type: 1"):
        simulated.from_dlpack(HOST)


def test_device_code_may_not_look_outside():
    part = simulated.Memory(simulated.asarray(HOST), 8, 3)
    assert [part[i] for i in range(3)] == [1, 2, 3]
    for index in (-1, 3):
        with pytest.raises(IndexError, match=f"element {index} of 3"):
            part[index]
        with pytest.raises(IndexError, match=f"element {index} of 3"):
            part[index] = 0


def test_places_tell_kernels_where_elements_are():
    x = simulated.asarray(HOST)
    for view in (x, x.T[::-1], x[:, ::-2], x[1:, 1], x[:0], x[1, 2]):
        place = launches.place_of(*launches.layout_of([view])[0])
        memory = simulated.Memory(view, place.offset, place.size)
        at = [place.first + int(np.dot(place.steps, index)) for index in np.ndindex(view.shape)]
        np.testing.assert_array_equal([memory[k] for k in at], view.get().ravel())
        assert place.size == (max(at) - min(at) + 1 if at else 0)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: x.max(initial=0), "max"),
        (lambda x: x.min(-1, initial=0), "min"),
        (lambda x: np.max(x, initial=0), "max"),
        (lambda x: np.amin(x, initial=0), "amin"),
        (lambda x: np.sum(x, initial=1), "sum"),
        (lambda x: x.prod(initial=1), "prod"),
        (lambda x: np.add.reduce(x, initial=1), "reduce"),
        (lambda x: simulated.max(x, initial=0), "max"),
    ],
)
def test_totals_have_no_start(call, name):
    message = rf"{name}\(\) got an unexpected keyword argument 'initial'"
    with pytest.raises(TypeError, match=message):
        call(simulated.asarray(HOST))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: np.multiply(x, x, order="C"), "Wrong arguments {'order': 'C'}"),
        (lambda x: simulated.exp(x, where=True), "Wrong arguments {'where': True}"),
        (lambda x: np.mean(x, where=True), "unexpected keyword argument 'where'"),
        (lambda x: x.std(correction=1), "unexpected keyword argument 'correction'"),
        (lambda x: x.argsort(stable=True), "unexpected keyword argument 'stable'"),
        (lambda x: np.linalg.svd(x, hermitian=True), "unexpected keyword argument 'hermitian'"),
        (lambda x: np.flip(m=x), "unexpected keyword argument 'm'"),
        (lambda x: np.linalg.matrix_power(a=x, n=2), "unexpected keyword argument 'a'"),
    ],
)
def test_keywords_that_cupy_lacks_are_refused(call, message):
    with pytest.raises(TypeError, match=message):
        call(simulated.asarray(HOST))


INTEGERS = np.arange(6, dtype=np.int32)
AT = np.array([0, 0, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, at: np.maximum.reduce(x),
        lambda x, at: np.logical_and.reduce(x, axis=0),
        lambda x, at: np.maximum.accumulate(x),
        lambda x, at: np.multiply.reduceat(x, at),
        lambda x, at: np.multiply.at(x, at, 2),
    ],
)
def test_methods_of_ufuncs_that_cupy_lacks_are_refused(call):
    x, at = simulated.asarray(INTEGERS), simulated.asarray(AT)
    with pytest.raises(NotImplementedError, match=r"`cupy_\w+\.\w+` is not supported yet"):
        call(x, at)
    np.testing.assert_array_equal(x.get(), INTEGERS)


def test_ufuncs_at_indices_have_few_dtypes():
    at = simulated.asarray(AT)
    for ufunc, dtype in [(np.add, "int64"), (np.subtract, "float32"), (np.maximum, "float16")]:
        x = simulated.asarray(INTEGERS.astype(dtype))
        with pytest.raises(TypeError, match=f"cupy.{ufunc.__name__}.at only supports"):
            ufunc.at(x, at, x[:3])
    x = simulated.asarray(INTEGERS.astype(np.float32))
    np.add.at(x, at, 1.0)
    np.testing.assert_array_equal(x.get(), [2, 2, 2, 3, 4, 5])


def test_methods_of_ufuncs_that_cupy_has():
    x, at = simulated.asarray(HOST), simulated.asarray(AT[:2])
    np.testing.assert_array_equal(np.add.reduce(x, axis=1, keepdims=True).get(), [[3], [12]])
    np.testing.assert_array_equal(np.multiply.accumulate(x, 1).get(), np.cumprod(HOST, 1))
    np.testing.assert_array_equal(np.add.reduceat(x[0], at).get(), [0, 3])
    np.testing.assert_array_equal(np.hypot.outer(x[0], x[1]).get(), np.hypot.outer(*HOST))


def test_keywords_that_cupy_has_are_taken():
    x = simulated.asarray(HOST)
    out = simulated.empty((2, 3))
    np.multiply(x, 2, out=out, dtype=np.float64, casting="same_kind")
    np.testing.assert_array_equal(out.get(), 2 * HOST)
    np.testing.assert_array_equal(x.max(axis=1, keepdims=True).get(), [[2], [5]])
    np.testing.assert_array_equal(np.sum(x, axis=0, dtype=np.float32).get(), [3, 5, 7])
    assert x.copy(order="F").flags.f_contiguous


MATRICES = [
    lambda x: np.linalg.inv(x),
    lambda x: simulated.linalg.inv(simulated.stack([x, x])),
    lambda x: np.linalg.solve(x, simulated.ones((2, 1))),
    lambda x: np.linalg.cholesky(x - 2),
]


@pytest.fixture
def device(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupyx", simulated.errors)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("find", MATRICES)
def test_linear_algebra_raises_where_it_is_told_to(find):
    x = simulated.ones((2, 2))
    assert np.isnan(find(x).get()).all()
    with adapter.linalg_errors():
        with pytest.raises(np.linalg.LinAlgError):
            find(x)
        with ThreadPoolExecutor(1) as others:
            assert np.isnan(others.submit(find, x).result().get()).all()
    assert np.isnan(find(x).get()).all()


def test_linear_algebra_of_wrong_shapes_raises_always():
    for shape in ((3,), (2, 3)):
        with pytest.raises(np.linalg.LinAlgError):
            np.linalg.inv(simulated.ones(shape))
    x = simulated.asarray([[np.nan, 1.0], [1.0, 2.0]])
    values, vectors = np.linalg.eig(x)
    assert np.isnan(values.get()).all()
    assert vectors.shape == (2, 2)
