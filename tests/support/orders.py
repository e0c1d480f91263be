"""Derivatives of any order, numbers of a result, and what must hold after an error."""

import contextlib
import gc
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinygrad_cg as tf
from tinygrad_cg._core.levels import state


def derivative(
    function: Callable[..., Any], value: float, order: int = 1, dtype: str = "float32"
) -> Any:
    """The order-th derivative of a scalar function by nested tapes: a float, or None."""
    x = tf.constant(value, dtype=dtype)

    def differentiate(remaining):
        if remaining == 0:
            return function(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = differentiate(remaining - 1)
        return None if result is None else tape.gradient(result, x)

    result = differentiate(order)
    return None if result is None else float(result)


def gradient(
    function: Callable[..., Any], *inputs: Any, sources: Any = None, **options: Any
) -> Any:
    """One gradient of function(*inputs), as numbers, with every input watched."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    return numbers(tape.gradient(result, inputs if sources is None else sources, **options))


def second_gradient(function: Callable[..., Any], x: Any) -> Any:
    """The gradient by x of the gradient of function(x), by one tape around another."""
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        first = inner.gradient(y, x)
    return outer.gradient(first, x)


def slope(function: Callable[..., Any], x: Any) -> Any:
    """Return the gradient of function(x) by x, as a Tensor."""
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


def slope_of_sum(function: Callable[..., Any], at: float = 3.0) -> Any:
    """Return the derivative of the sum of a function's elements, as an array."""
    gradient = slope(lambda x: tf.reduce_sum(function(x)), tf.constant(at))
    return None if gradient is None else gradient.numpy()


def run_in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """Return the results of functions that run at the same time, each in a thread of its own.

    An error of theirs is raised here.
    """
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []

    def run(k: int) -> None:
        try:
            results[k] = functions[k]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    return results


def run_in_a_thread(function: Callable[[], Any]) -> Any:
    """Return the result of a function that runs in another thread; its error is raised here."""
    return run_in_threads(function)[0]


def assert_raises(
    error: type[Exception],
    words: str,
    function: Callable[..., Any],
    *arguments: Any,
    **keywords: Any,
) -> None:
    """Call a function, which has to raise an error with these words."""
    with pytest.raises(error, match=words):
        function(*arguments, **keywords)


def assert_nothing_is_kept_alive(function: Callable[..., Any], value: Any) -> None:
    """After a second derivative its tensors are freed at once, without the collector."""
    gc.disable()
    try:
        x = tf.constant(value)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            first = tape.gradient(y, x)
        outer.gradient(first, x)
        references = [weakref.ref(tensor) for tensor in (x, y, first)]
        del x, y, first, tape, outer
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def numbers(structure: Any) -> Any:
    """Python numbers and lists for a structure of Tensors; None stays None."""
    if structure is None:
        return None
    if isinstance(structure, dict):
        return {key: numbers(value) for key, value in structure.items()}
    if isinstance(structure, list | tuple):
        return [numbers(entry) for entry in structure]
    return structure.numpy().tolist()


def values(gradients: Any) -> Any:
    """Return Python numbers and lists in the structure of the gradients; None stays None."""
    return tf.nest.map_structure(
        lambda gradient: None if gradient is None else gradient.numpy().tolist(), gradients
    )


def assert_next_gradient_is_right() -> None:
    """The gradient after an error: nothing of the failed call may be left behind."""
    assert gradient(lambda x: x * x * x, tf.constant(2.0)) == [12.0]


@contextlib.contextmanager
def custom_gradient_warnings() -> Iterator[list[str]]:
    """The CustomGradientWarnings of the block, as a list of their texts."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts.extend(
        str(entry.message)
        for entry in caught
        if issubclass(entry.category, tf.CustomGradientWarning)
    )
    others = [entry for entry in caught if str(entry.message) not in texts]
    assert not others, [str(entry.message) for entry in others]


def assert_clean_state() -> None:
    """Nothing records, and the next gradients are right."""
    assert (state.frame, state.listeners) == (None, [])
    x, v = tf.constant(2.0), tf.Variable(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = x * x * v
        first, second = tape.gradient(z, [x, v])
    assert (first.numpy(), second.numpy()) == (12.0, 4.0)
    assert outer.gradient(first, x).numpy() == 6.0
    assert [variable is v for variable in outer.watched_variables()] == [True]


def gradient_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a function of one tensor, by a tape; zeros where it does not depend on it."""

    def differentiated(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            result = function(x)
        return tape.gradient(result, x, unconnected_gradients="zero")

    return differentiated


def tangent_function(function: Callable[..., Any], way: Any) -> Callable[..., Any]:
    """The derivative of a function of one tensor in a direction, by an accumulator."""

    def pushed(x):
        with tf.autodiff.ForwardAccumulator(x, way) as accumulator:
            result = function(x)
        return accumulator.jvp(result, "zero")

    return pushed
