"""Programs whose launches are captured and replayed, with the streams of the stand-in for CuPy."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

import tinygrad_cg as tf
from tests.cuda.on_device.test_launches import Driver
from tests.cuda.on_device.test_programs import executable
from tinygrad_cg._core import devices
from tinygrad_cg_kernels.cuda import adapter, graphs

RNG = np.random.default_rng(3)
POINTS = [RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(5)]
REPLAYED = "replayed as a CUDA graph"

simulated = pytest.mark.skipif(
    devices.count_gpus() > 0 and not adapter.simulated(), reason="replaces streams"
)


def standardise(x):
    x = x - tf.reduce_mean(x, 0)
    return x / tf.sqrt(tf.reduce_mean(x * x, 0) + 1e-3)


def layers(x):
    """A program of some 10 launches: sums of columns need two each."""
    return tf.reduce_sum(standardise(tf.tanh(standardise(x)))), tf.reduce_max(x * x)


@pytest.fixture(autouse=True)
def wanted(monkeypatch):
    monkeypatch.setenv("TINYGRAD_CG_CUDA_GRAPHS", "1")


@pytest.fixture
def cuda(monkeypatch):
    """The namespace of streams, to replace parts of it."""
    return adapter.array_module().cuda


def text(program, *points):
    return program.kernels(*[tf.constant(point).gpu() for point in points])[0]


def check(program, reference, *points):
    """Compare a program on the device with one of the processor; return its results."""
    results = tf.nest.flatten(program(*[tf.constant(point).gpu() for point in points]))
    wanted = tf.nest.flatten(reference(*[tf.constant(point) for point in points]))
    for got, want in zip(results, wanted, strict=True):
        assert got.device == "gpu:0"
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), 1e-5, 1e-5)
    return results


def test_replays_compute_new_values_and_leave_old_results():
    compiled, held = tf.function(layers), []
    for point in POINTS:
        results = check(compiled, layers, point)
        held.append((results, [result.cpu().numpy() for result in results]))
    assert REPLAYED in text(compiled, POINTS[0])
    for results, values in held:
        for result, value in zip(results, values, strict=True):
            np.testing.assert_array_equal(result.cpu().numpy(), value)


def test_replays_have_the_bits_of_single_launches(monkeypatch):
    replayed = tf.function(layers)
    monkeypatch.delenv("TINYGRAD_CG_CUDA_GRAPHS")
    plain = tf.function(layers)
    plain(tf.constant(POINTS[0]).gpu())
    monkeypatch.setenv("TINYGRAD_CG_CUDA_GRAPHS", "1")
    for point in POINTS[:3]:
        x = tf.constant(point).gpu()
        for result, other in zip(replayed(x), plain(x), strict=True):
            assert result.numpy().tobytes() == other.numpy().tobytes()
    assert REPLAYED in text(replayed, POINTS[0])
    assert "launches" not in text(plain, POINTS[0])


@pytest.mark.parametrize("chosen", [None, "", "0"])
def test_graphs_are_used_only_if_they_are_wanted(monkeypatch, chosen):
    monkeypatch.delenv("TINYGRAD_CG_CUDA_GRAPHS")
    if chosen is not None:
        monkeypatch.setenv("TINYGRAD_CG_CUDA_GRAPHS", chosen)
    program = executable(layers, POINTS[0])
    assert [segment.repeated for segment in program.dispatchers] == [None]


def test_few_launches_are_made_one_by_one():
    compiled = tf.function(lambda x: x - tf.reduce_mean(x))
    for point in POINTS[:3]:
        check(compiled, lambda x: x - tf.reduce_mean(x), point)
    assert "launches: with 2 copies a CUDA graph would save too few" in text(compiled, POINTS[0])


@simulated
def test_a_replay_launches_the_graph_alone(monkeypatch, cuda):
    compiled, launched = tf.function(layers), []
    x = tf.constant(POINTS[0]).gpu()
    run, launch = cuda.Stream.run, cuda.Graph.launch
    monkeypatch.setattr(cuda.Stream, "run", lambda *args: launched.append("kernel") or run(*args))
    monkeypatch.setattr(
        cuda.Graph, "launch", lambda *args: launched.append("graph") or launch(*args)
    )
    compiled(x)
    count = len(launched)
    assert launched == ["kernel"] * count
    compiled(x)
    assert launched[count:] == ["kernel"] * count + ["graph"]  # the capture, and its first launch
    launched.clear()
    compiled(x)
    assert launched == ["graph"]


def test_gradients_of_higher_order_are_replayed():
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layers(x)[0]
        return tape.gradient(y, x)

    compiled = tf.function(slope)

    def curvature(function, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(function(x) ** 2)
        return tape.gradient(y, x)

    for point in POINTS[:3]:
        check(lambda x: curvature(compiled, x), lambda x: curvature(slope, x), point)
    check(compiled, slope, POINTS[3])
    for point in POINTS[:3]:
        check(compiled, slope, point)
    assert REPLAYED in text(compiled, POINTS[0])


def test_a_custom_gradient_is_replayed():
    @tf.custom_gradient
    def bounded(x):
        return layers(x)[0], lambda upstream: upstream * standardise(tf.tanh(x))

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = bounded(x)
        return y, tape.gradient(y, x)

    compiled = tf.function(slope)
    for point in POINTS[:4]:
        check(compiled, slope, point)
    assert REPLAYED in text(compiled, POINTS[0])


def test_variables_are_read_and_assigned_at_each_replay():
    def steps(v):
        def step(x):
            y = layers(x * v)[0]
            v.assign_add(tf.reduce_sum(x) * tf.ones_like(v))
            return y, layers(x)

        return step

    with tf.device("/GPU:0"):
        there = tf.Variable(np.ones(4, np.float32))
    here = tf.Variable(np.ones(4, np.float32))
    compiled = tf.function(steps(there))
    for point in POINTS:
        check(compiled, steps(here), point)
        np.testing.assert_allclose(there.numpy(), here.numpy(), 1e-5, 1e-5)
    assert REPLAYED in text(compiled, POINTS[0])


def test_strided_arguments_and_numbers_of_the_processor():
    def scaled(x, k):
        return layers(x * k)

    compiled = tf.function(scaled)
    for point, k in zip(POINTS, (2.0, 0.5, -1.0, 3.0), strict=False):
        turned = tf.transpose(tf.constant(point.T.copy()).gpu())
        for number in (k, tf.constant(k)):
            results = compiled(turned, number)
            want = scaled(tf.constant(point), tf.constant(k))
            for result, other in zip(results, want, strict=True):
                np.testing.assert_allclose(result.cpu().numpy(), other.numpy(), 1e-5, 1e-5)


def test_each_shape_has_a_graph_of_its_own():
    compiled = tf.function(layers)
    for _ in range(3):
        for point in (POINTS[0], POINTS[1][:2], POINTS[2].astype(np.float64)):
            check(compiled, layers, point)


# Operations on arrays between launches ----------------------------------------------------------


def test_operations_between_launches_run_at_each_call():
    def program(x, i):
        y = layers(x)[0] + tf.linalg.matmul(x, x, transpose_b=True)
        return layers(tf.gather(y, i))

    def indices(*numbers):
        return np.array(numbers)

    compiled = tf.function(program)
    for point, i in zip(POINTS, [(0, 1), (2, 2), (1, 0), (2, 0)], strict=False):
        check(compiled, program, point, indices(*i))
    assert REPLAYED in text(compiled, POINTS[0], indices(0, 1))
    wrong = compiled(tf.constant(POINTS[0]).gpu(), tf.constant(indices(0, 3)).gpu())
    with pytest.raises(IndexError, match="gather"):
        tf.nest.flatten(wrong)[0].numpy()
    check(compiled, program, POINTS[4], indices(1, 2))


def test_random_numbers_are_new_at_each_call():
    def program(x):
        return layers(x + tf.random.uniform((3, 4))), layers(x)

    compiled = tf.function(program)
    tf.random.set_seed(7)
    results = [tf.nest.flatten(compiled(tf.constant(point).gpu())) for point in POINTS[:4]]
    tf.random.set_seed(7)
    wanted = [tf.nest.flatten(program(tf.constant(point))) for point in POINTS[:4]]
    for result, other in zip(results, wanted, strict=True):
        for got, want in zip(result, other, strict=True):
            np.testing.assert_allclose(got.numpy(), want.numpy(), 1e-5, 1e-5)


def test_a_loop_whose_count_depends_on_values():
    def program(x):
        while tf.reduce_max(x * x) > 1.0:
            x = x * 0.5 + 0.0 * layers(x)[0]
        return x

    compiled = tf.function(program)
    for point in POINTS[:3]:
        check(compiled, program, point * 3)


# Refusals and errors ----------------------------------------------------------------------------


class Failing:
    """Replaces a method, which raises an error at some call and does its work at the others."""

    def __init__(self, monkeypatch, owner, name, when, error):
        self.method, self.when, self.error, self.calls = getattr(owner, name), when, error, 0
        monkeypatch.setattr(owner, name, lambda *args, **named: self(*args, **named))

    def __call__(self, *args, **named):
        self.calls += 1
        if self.calls == self.when:
            raise self.error
        return self.method(*args, **named)


@simulated
@pytest.mark.parametrize(
    ("owner", "name", "when"),
    [
        ("Stream", "begin_capture", 1),
        ("Stream", "end_capture", 1),
        ("Stream", "__init__", 1),
        ("Graph", "launch", 1),
        ("Graph", "launch", 2),
        ("Event", "record", 1),
        ("Event", "__init__", 1),
    ],
)
def test_after_an_error_programs_launch_one_by_one(monkeypatch, cuda, owner, name, when):
    error = RuntimeError("cudaErrorStreamCaptureInvalidated\nand more")
    Failing(monkeypatch, getattr(cuda, owner), name, when, error)
    compiled = tf.function(layers)
    for point in POINTS:
        check(compiled, layers, point)
    said = "no CUDA graph (RuntimeError: cudaErrorStreamCaptureInvalidated)"
    assert said in text(compiled, POINTS[0])
    assert not cuda.get_current_stream().is_capturing()


@simulated
def test_an_error_in_the_midst_of_a_capture_ends_it(monkeypatch, cuda):
    compiled, streams = tf.function(layers), []
    check(compiled, layers, POINTS[0])
    init = cuda.Stream.__init__

    def keep(stream, *args, **named):
        init(stream, *args, **named)
        streams.append(stream)

    monkeypatch.setattr(cuda.Stream, "__init__", keep)
    fails = Failing(monkeypatch, cuda.Stream, "run", 3, NotImplementedError("not captured"))
    for point in POINTS:
        check(compiled, layers, point)
    assert fails.calls > 10
    (stream,) = streams
    assert not stream.is_capturing()
    assert stream.is_non_blocking
    assert cuda.get_current_stream().ptr == 0
    assert "no CUDA graph (NotImplementedError: not captured)" in text(compiled, POINTS[0])


@simulated
def test_an_interrupt_ends_the_capture_and_the_next_call_captures_again(monkeypatch, cuda):
    compiled = tf.function(layers)
    check(compiled, layers, POINTS[0])
    Failing(monkeypatch, cuda.Stream, "run", 2, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        compiled(tf.constant(POINTS[1]).gpu())
    assert cuda.get_current_stream().ptr == 0
    check(compiled, layers, POINTS[2])
    assert REPLAYED in text(compiled, POINTS[0])


def test_without_memory_for_a_graph_programs_launch_one_by_one(monkeypatch):
    compiled = tf.function(layers)
    check(compiled, layers, POINTS[0])
    (program,) = [
        program.program.outputs.program
        for program in compiled._programs.values()
        if program.device != "cpu"
    ]
    (segment,) = program.dispatchers

    def make():
        raise MemoryError("Out of memory allocating 512 bytes")

    monkeypatch.setattr(segment.repeated, "_make", make)
    monkeypatch.setattr(segment.repeated, "_launch", lambda arrays, own: None)
    x = tf.constant(POINTS[1]).gpu()
    with pytest.raises(tf.errors.ResourceExhaustedError):  # of the launches one by one
        compiled(x)
    monkeypatch.undo()
    check(compiled, layers, POINTS[2])
    assert "no CUDA graph (MemoryError: Out of memory" in text(compiled, POINTS[0])


@simulated
def test_what_the_caller_captures_is_launched_one_by_one(cuda):
    compiled = tf.function(layers)
    points = [tf.constant(point).gpu() for point in POINTS[:2]]
    for point in points:
        compiled(point)
    with cuda.Stream(non_blocking=True) as stream:
        stream.begin_capture()
        result = compiled(points[0])
        with pytest.raises(RuntimeError, match="memory that was freed"):
            stream.end_capture().launch()  # arrays between the launches were the program's
    assert len(result) == 2
    assert REPLAYED in text(compiled, POINTS[0])
    check(compiled, layers, POINTS[2])


# Threads and memory -----------------------------------------------------------------------------


@contextmanager
def own_stream():
    """Send this thread's work to a stream of its own, and wait for it at the end."""
    with adapter.array_module().cuda.Stream() as own:
        yield
        own.synchronize()


def test_threads_replay_one_after_another():
    compiled = tf.function(layers)
    points = [RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(12)]

    def call(point):
        with own_stream():
            return [result.numpy() for result in compiled(tf.constant(point).gpu())]

    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(call, points))
    for point, results in zip(points, outputs, strict=True):
        for result, other in zip(results, layers(tf.constant(point)), strict=True):
            np.testing.assert_allclose(result, other.numpy(), 1e-5, 1e-5)
    assert REPLAYED in text(compiled, POINTS[0])


@simulated
def test_a_replay_waits_for_the_one_before_on_its_own_stream(monkeypatch, cuda):
    compiled, order = tf.function(layers), []
    x = tf.constant(POINTS[0]).gpu()
    compiled(x)
    compiled(x)

    def note(owner, name, seen):
        method = getattr(owner, name)
        changed = lambda owner, *args: order.append(seen(owner, *args)) or method(owner, *args)
        monkeypatch.setattr(owner, name, changed)

    note(cuda.Stream, "wait_event", lambda stream, event: ("wait", stream.ptr, id(event)))
    note(cuda.Graph, "launch", lambda graph, stream: ("launch", stream.ptr))
    note(cuda.Event, "record", lambda event, stream: ("record", stream.ptr, id(event)))
    with own_stream():
        compiled(x)
        number = cuda.get_current_stream().ptr
    assert number
    compiled(x)
    event = order[0][2]
    assert order == [
        step
        for at in (number, 0)
        for step in (("wait", at, event), ("launch", at), ("record", at, event))
    ]


def graph_of(compiled):
    (program,) = [
        segment.repeated._graph
        for traced in compiled._programs.values()
        if traced.device != "cpu"
        for segment in traced.program.outputs.program.dispatchers
    ]
    return program


def test_graphs_are_freed_with_their_program():
    compiled = tf.function(layers)
    for point in POINTS[:2]:
        check(compiled, layers, point)
    graph = weakref.ref(graph_of(compiled))
    arrays = [weakref.ref(array) for array in graph()._own.values()]
    assert arrays
    assert graph() is not None
    del compiled
    gc.collect()
    assert graph() is None
    assert [array() for array in arrays] == [None] * len(arrays)


def test_clear_cache_frees_graphs_and_later_calls_capture_anew():
    compiled = tf.function(layers)
    for point in POINTS[:2]:
        check(compiled, layers, point)
    first = weakref.ref(graph_of(compiled))
    tf.clear_cache()
    assert first() is None
    assert graph_of(compiled) is None
    for point in POINTS[2:4]:
        check(compiled, layers, point)
    assert graph_of(compiled) is not None


@simulated
def test_a_graph_that_is_freed_waits_for_its_last_launch(monkeypatch, cuda):
    waited = []
    monkeypatch.setattr(cuda.Event, "synchronize", lambda event: waited.append(event))
    compiled = tf.function(layers)
    for point in POINTS[:2]:
        check(compiled, layers, point)
    event = graph_of(compiled)._done
    assert event not in waited
    tf.clear_cache()
    assert event in waited


@simulated
def test_kernels_that_are_kept_ready_are_captured(monkeypatch):
    driver = Driver()
    monkeypatch.setattr(adapter, "driver", lambda: driver)
    compiled = tf.function(layers)
    for point in POINTS[:4]:
        check(compiled, layers, point)
    assert REPLAYED in text(compiled, POINTS[0])
    check(compiled, layers, POINTS[4])
    count = len(driver.launched)
    check(compiled, layers, POINTS[1])
    assert len(driver.launched) == count


def test_a_changed_constant_or_shape_is_never_replayed():
    launched = []

    def launch(arrays, own):
        launched.append([array.shape for array in arrays])

    library = adapter.array_module()
    constant, other = library.ones(3), library.ones(3)
    for changed in ([library.ones(4), constant], [library.ones(3), other]):
        repeated = graphs.Repeated(launch, dict, ["read", "constant"], 9)
        for _ in range(3):
            repeated([library.ones(3), constant])
        count = len(launched)
        repeated(changed)
        assert len(launched) == count + 1
        assert "no CUDA graph (ValueError" in repeated.note


# The stand-in -----------------------------------------------------------------------------------


@simulated
def test_streams_of_the_stand_in_refuse_what_those_of_cupy_refuse(cuda):
    default, stream = cuda.Stream(null=True), cuda.Stream()
    with pytest.raises(RuntimeError, match="default"):
        default.begin_capture()
    with pytest.raises(RuntimeError, match="not capturing"):
        stream.end_capture()
    stream.begin_capture()
    with pytest.raises(RuntimeError, match="is capturing"):
        stream.begin_capture()
    with pytest.raises(RuntimeError, match="is capturing"):
        stream.synchronize()
    stream.end_capture().launch()
