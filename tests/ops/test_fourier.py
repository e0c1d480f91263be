"""Transforms under NumPy's, TensorFlow's and Keras's names: values, derivatives, errors."""

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.support.compiled import unfused
from tests.support.modes import assert_right_in_all_modes
from tests.support.op_cases import numeric_gradients
from tests.support.orders import assert_raises

INVALID = tf.errors.InvalidArgumentError
REAL = np.array([[[1.0, -2.0, 0.5, 3.0], [0.25, 1.5, -1.0, 2.0], [-0.5, 0.75, 1.0, -3.0]]] * 2)
REAL[1] = REAL[0].T.reshape(3, 4)[::-1] * 0.5
COMPLEX = REAL + 1j * REAL[::-1, :, ::-1]
ONE_AXIS = ({}, {"n": 3}, {"n": 6, "axis": 1}, {"n": 5, "norm": "ortho"}, {"norm": "forward"})
AXES = ({}, {"s": (3, 6), "axes": (0, 2)}, {"axes": (1, 0), "norm": "ortho"})
ONE_DIMENSION = ("fft", "ifft", "hfft", "irfft", "rfft", "ihfft")
CALLS = [
    *[(name, options) for name in ONE_DIMENSION for options in ONE_AXIS],
    *[(name, options) for name in ("fftn", "ifftn", "rfftn", "irfftn") for options in AXES],
    *[(name, {}) for name in ("fft2", "ifft2", "rfft2", "irfft2")],
    *[(name, {"axes": axes}) for name in ("fftshift", "ifftshift") for axes in (None, 1, (0, -1))],
    ("fftn", {"axes": (1, 1)}),
]


def operand(name):
    return REAL if name in ("rfft", "ihfft", "rfftn", "rfft2") else COMPLEX


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_those_of_numpy(dtype):
    for name, options in CALLS:
        x = operand(name).astype(np.result_type(dtype, operand(name).dtype.type(0).real * 0j))
        x = operand(name).astype(dtype) if operand(name) is REAL else x
        expected = getattr(np.fft, name)(x, **options)
        for gradient in (
            getattr(tf.numpy.fft, name)(x, **options),
            getattr(np.fft, name)(tf.constant(x), **options),
        ):
            assert gradient.dtype == expected.dtype, name
            rtol = 1e-14 if dtype is np.float64 else 1e-6
            np.testing.assert_allclose(gradient.numpy(), expected, rtol=rtol, atol=20 * rtol)


def test_gradients_are_finite_differences_in_all_modes():
    """Of a function that is not linear, so that the second order is none of zeros."""
    rng = np.random.default_rng(0)
    for name, options in CALLS:
        x, function = operand(name), getattr(tf.numpy.fft, name)

        def loss(x, function=function, options=options):
            y = function(x, **options)
            return tf.reduce_sum(tf.math.real(y * y * y)) + tf.reduce_sum(tf.math.imag(y) ** 2)

        slope = tf.grad(loss)
        expected = numeric_gradients(lambda x: loss(x).numpy(), (x,), [0], 1e-6)[0]
        np.testing.assert_allclose(np.asarray(slope(x)), expected, rtol=1e-6, atol=1e-6)
        way = rng.normal(size=x.shape) * (1 if x.dtype == "d" else 1j)
        curved = np.asarray(slope(x + 1e-6 * way) - slope(x - 1e-6 * way)) / 2e-6
        _, forward = tf.jvp(slope, (tf.constant(x),), (tf.constant(way.astype(x.dtype)),))
        np.testing.assert_allclose(forward.numpy(), curved, rtol=1e-5, atol=2e-5)
        with tf.GradientTape() as tape:
            tape.watch(primal := tf.constant(x))
            product = tf.reduce_sum(tf.math.real(slope(primal) * np.conj(way)))
        np.testing.assert_allclose(tape.gradient(product, primal).numpy(), forward, rtol=1e-10)


def test_batches_and_compiled_functions():
    for name, options in CALLS[::3]:
        x, function = operand(name), getattr(tf.numpy.fft, name)
        expected = np.stack([getattr(np.fft, name)(signal, **options) for signal in (x, 2 * x)])
        call = lambda x, f=function, options=options: f(x, **options)
        batch = tf.constant(np.stack([x, 2 * x]))
        for result in (tf.vmap(call)(batch), unfused(tf.vmap(call))(batch)):
            np.testing.assert_allclose(result.numpy(), expected, rtol=1e-13, atol=1e-13)


def test_frequencies():
    for size in (1, 4, 7):
        np.testing.assert_array_equal(tf.numpy.fft.fftfreq(size, 0.5), np.fft.fftfreq(size, 0.5))
        np.testing.assert_array_equal(tf.numpy.fft.rfftfreq(size, 2), np.fft.rfftfreq(size, 2))
    spacing = tf.constant(0.5)
    np.testing.assert_allclose(
        tf.jacobian(lambda d: tf.numpy.fft.fftfreq(4, d))(spacing), [0, -1, 2, 1], rtol=1e-6
    )


@pytest.mark.quick
def test_names_of_tensorflow_and_keras():
    signal, ops = tf.signal, tf.keras.ops
    for count, suffix in ((1, ""), (2, "2d"), (3, "3d")):
        axes, sizes = tuple(range(-count, 0)), (2, 4, 6)[-count:]
        for name in ("fft", "ifft"):
            expected = getattr(np.fft, name + "n")(COMPLEX, axes=axes)
            result = getattr(signal, name + suffix)(COMPLEX)
            np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)
        expected = np.fft.rfftn(REAL, sizes, axes)
        half = getattr(signal, "rfft" + suffix)(REAL, sizes)
        np.testing.assert_allclose(half, expected, rtol=1e-13, atol=1e-13)
        expected = np.fft.irfftn(half.numpy(), sizes, axes)
        result = getattr(signal, "irfft" + suffix)(half, tf.constant(sizes))
        np.testing.assert_allclose(result, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(signal.irfftnd(signal.rfftnd(REAL)), REAL, atol=1e-14)
    np.testing.assert_allclose(signal.ifftnd(signal.fftnd(COMPLEX)), COMPLEX, atol=1e-14)
    np.testing.assert_array_equal(signal.fftshift(REAL, 1), np.fft.fftshift(REAL, 1))
    pair = COMPLEX.real, COMPLEX.imag
    for name, expected in (("fft", np.fft.fft), ("fft2", np.fft.fft2), ("ifft2", np.fft.ifft2)):
        result = getattr(ops, name)(pair)
        np.testing.assert_allclose(result[0] + 1j * result[1], expected(COMPLEX), atol=1e-13)
    result = ops.rfft(REAL, 6)
    np.testing.assert_allclose(result[0] + 1j * result[1], np.fft.rfft(REAL, 6), atol=1e-13)
    np.testing.assert_allclose(ops.irfft(ops.rfft(REAL)), REAL, atol=1e-13)


@pytest.mark.quick
def test_errors_say_what_is_wrong():
    fft = tf.numpy.fft
    assert_raises(INVALID, "fft: axis 3 is out of range", fft.fft, REAL, axis=3)
    assert_raises(INVALID, "fft: norm must be one of None, 'backward'", fft.fft, REAL, norm="none")
    assert_raises(INVALID, "ifft: a transform needs at least 1 element", fft.ifft, REAL, 0)
    assert_raises(INVALID, "irfft: the result needs at least 1", fft.irfft, np.ones(1))
    assert_raises(INVALID, "fftn: 1 sizes are given for 2 axes", fft.fftn, REAL, (2,), (0, 1))
    assert_raises(TypeError, "rfft: x must be real numbers, got complex128", fft.rfft, COMPLEX)
    assert_raises(TypeError, "fft: x must be complex numbers, got float64", tf.signal.fft, REAL)
    assert_raises(INVALID, "fft2d: needs at least 2 dimensions", tf.signal.fft2d, COMPLEX[0, 0])
    assert_raises(INVALID, "rfft: fft_length must have 1 sizes", tf.signal.rfft, REAL, [2, 3])
    assert_raises(TypeError, "a pair of tensors", tf.keras.ops.fft, REAL)


# Cosine transforms, frames and spectra over time ------------------------------------------------

keras = tf.keras.ops
ENDS = np.array([150.0, 3500.0])
SIGNAL = np.random.default_rng(3).normal(size=(2, 11))


def cosines(x, kind):
    """The transform by its definition, without a norm."""
    size = x.shape[-1]
    k, n = np.arange(size)[:, None], np.arange(size)
    if kind == 1:
        matrix = np.cos(np.pi * k * n / (size - 1)) * np.where((n == 0) | (n == size - 1), 1, 2)
    elif kind == 2:
        matrix = 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * size))
    elif kind == 3:
        matrix = np.cos(np.pi * (2 * k + 1) * n / (2 * size)) * np.where(n == 0, 1, 2)
    else:
        matrix = 2 * np.cos(np.pi * (2 * k + 1) * (2 * n + 1) / (4 * size))
    return x @ matrix.T


@pytest.mark.quick
def test_cosine_transforms():
    for kind in (1, 2, 3, 4):
        result = tf.signal.dct(SIGNAL, kind)
        np.testing.assert_allclose(result, cosines(SIGNAL, kind), rtol=1e-12, atol=1e-12)
        if kind > 1:
            both = tf.signal.idct(tf.signal.dct(SIGNAL, kind, norm="ortho"), kind, norm="ortho")
            np.testing.assert_allclose(both, SIGNAL, rtol=1e-12, atol=1e-12)
    for size in (6, 15):
        fitted = np.pad(SIGNAL, [(0, 0), (0, 9)])[:, :size]
        np.testing.assert_allclose(
            tf.signal.dct(SIGNAL, n=size), cosines(fitted, 2), rtol=1e-12, atol=1e-12
        )
    assert_raises(INVALID, "dct: type must be one of 1, 2, 3 or 4", tf.signal.dct, SIGNAL, 5)
    assert_raises(INVALID, "dct: x must be real numbers", tf.signal.dct, COMPLEX)
    assert_raises(INVALID, "dct: type 1 of 1 elements is not", tf.signal.dct, SIGNAL[:, :1], 1)
    assert_raises(INVALID, "dct: type 2 of 0 elements is not", tf.signal.dct, SIGNAL[:, :0])


@pytest.mark.quick
def test_frames_and_spectra_over_time():
    signal = tf.signal
    result = signal.frame(SIGNAL, 4, 3, pad_end=True, pad_value=7.0)
    wide = np.pad(SIGNAL, [(0, 0), (0, 4)], constant_values=7.0)
    expected = np.stack([wide[:, i : i + 4] for i in (0, 3, 6, 9)], 1)
    np.testing.assert_array_equal(result, expected[:, :, :4])
    frames = np.stack([SIGNAL[:, i : i + 5] for i in (0, 2, 4, 6)], 1)
    np.testing.assert_array_equal(signal.frame(SIGNAL, 5, 2), frames)
    total = np.zeros((2, 11))
    for i in range(4):
        total[:, 2 * i : 2 * i + 5] += frames[:, i]
    np.testing.assert_allclose(signal.overlap_and_add(frames, 2), total, rtol=1e-14)
    window = 0.5 - 0.5 * np.cos(np.pi / 2 * np.arange(4))
    expected = np.fft.rfft(np.stack([SIGNAL[:, i : i + 4] for i in (0, 2, 4, 6)], 1) * window, 8)
    result = signal.stft(SIGNAL, 4, 2, fft_length=8)
    np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-6)
    whole = signal.inverse_stft(signal.stft(SIGNAL, 4, 4, window_fn=None), 4, 4, window_fn=None)
    np.testing.assert_allclose(whole, SIGNAL[:, :8], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(signal.hamming_window(3), [0.08, 1.0, 0.08], atol=1e-6)
    np.testing.assert_allclose(signal.kaiser_window(5), np.kaiser(5, 12), atol=1e-6)
    assert_raises(INVALID, "frame_step must be at least 1", signal.frame, SIGNAL, 2, 0)


def test_windows_and_the_mel_scale_in_all_modes():
    assert_right_in_all_modes(
        lambda beta: tf.signal.kaiser_bessel_derived_window(6, beta[0], tf.float64), [2.5]
    )
    weights = lambda ends: tf.signal.linear_to_mel_weight_matrix(
        3, 9, 8000, ends[0], ends[1], tf.float64
    )
    expected = numeric_gradients(
        lambda ends: float(tf.reduce_sum(weights(ends) ** 3)), (ENDS,), [0], 1e-3
    )[0]
    gradient = tf.grad(lambda ends: tf.reduce_sum(weights(ends) ** 3))(ENDS)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.quick
def test_signals_come_back():
    signal, x = tf.signal, np.pad(SIGNAL, [(0, 0), (4, 7)])
    for window in (None, signal.vorbis_window, signal.kaiser_bessel_derived_window):
        for norm in (None, "ortho"):
            both = signal.inverse_mdct(signal.mdct(x, 8, window, norm=norm), window, norm)
            np.testing.assert_allclose(both[:, 4:-4], x[:, 4:16], atol=1e-6)
    window = signal.inverse_stft_window_fn(2)
    both = signal.inverse_stft(signal.stft(x, 8, 2), 8, 2, window_fn=window)
    np.testing.assert_allclose(both[:, 6:-6], x[:, 6:-6], atol=1e-6)
    for options in ({}, {"window": "hamming"}, {"window": np.linspace(0.5, 1, 5)}):
        both = keras.istft(keras.stft(SIGNAL, 5, 2, 6, **options), 5, 2, 6, length=9, **options)
        np.testing.assert_allclose(both, SIGNAL[:, :9], atol=1e-6)


@pytest.mark.quick
def test_spectra_of_integers_are_those_of_floats():
    """Not those of windows that are cut to integers."""
    whole = np.arange(16)
    result = tf.signal.stft(whole, 8, 4)
    assert result.dtype == tf.complex128
    np.testing.assert_array_equal(result, tf.signal.stft(whole.astype(float), 8, 4))
    np.testing.assert_array_equal(tf.signal.mdct(whole, 8), tf.signal.mdct(whole + 0.0, 8))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("error", "words", "call"),
    [
        (TypeError, "stft: x must be real numbers", lambda: tf.signal.stft(COMPLEX, 2, 1)),
        (TypeError, "must be complex", lambda: tf.signal.inverse_stft(SIGNAL, 2, 1)),
        (INVALID, "frame_step must be at least 1", lambda: tf.signal.overlap_and_add(SIGNAL, 0)),
        (INVALID, "frame_step must be", lambda: tf.signal.inverse_stft_window_fn(0)),
        (INVALID, "multiple of 4, got 6", lambda: tf.signal.mdct(SIGNAL, 6)),
        (INVALID, "even size", lambda: tf.signal.inverse_mdct(SIGNAL[:, :3])),
        (INVALID, "at least 1, got 0", lambda: tf.signal.vorbis_window(0)),
        (TypeError, "floating one", lambda: tf.signal.vorbis_window(3, tf.int32)),
        (
            INVALID,
            "lower_edge_hertz < upper_edge_hertz",
            lambda: tf.signal.linear_to_mel_weight_matrix(upper_edge_hertz=100.0),
        ),
        (INVALID, "no more than fft_length", lambda: keras.stft(SIGNAL, 5, 2, 4)),
        (INVALID, "window must be 'hann'", lambda: keras.stft(SIGNAL, 4, 2, 4, "bartlett")),
        (INVALID, "sequence_length = 4", lambda: keras.stft(SIGNAL, 4, 2, 4, np.ones(3))),
    ],
)
def test_what_does_not_fit_spectra_is_refused(error, words, call):
    assert_raises(error, words, call)


def test_their_gradients_are_finite_differences():
    signal = tf.signal
    for function in (
        *[lambda x, kind=kind: signal.dct(x, kind) for kind in (1, 2, 3, 4)],
        lambda x: tf.abs(signal.stft(x, 4, 3, pad_end=True)),
        lambda x: signal.inverse_stft(signal.stft(x, 4, 2) ** 2, 4, 2),
        lambda x: signal.inverse_mdct(signal.mdct(x, 4, pad_end=True) ** 2, None),
        lambda x: signal.mfccs_from_log_mel_spectrograms(x),
        lambda x: keras.istft(keras.stft(x, 4, 2, 6), 4, 2, 6, window="hamming"),
        lambda x: keras.stft(x, 3, 2, 4, None, False)[1],
    ):
        loss = lambda x, f=function: tf.reduce_sum(f(x) ** 3)
        expected = numeric_gradients(lambda x, f=loss: f(x).numpy(), (SIGNAL,), [0], 1e-5)[0]
        result = np.asarray(tf.grad(loss)(SIGNAL))
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=0, atol=1e-8 * scale)
