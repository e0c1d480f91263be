"""Twelve problems with sparse derivatives, at any size: a function to vectors, and a scalar one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tinygrad_cg as tf


class Problem(NamedTuple):
    """A vector function for Jacobians, a scalar function for Hessians, and a point."""

    residuals: Callable[[Any], Any]
    energy: Callable[[Any], Any]
    x: np.ndarray


def _least_squares(residuals: Callable[[Any], Any], x: np.ndarray) -> Problem:
    return Problem(residuals, lambda x: 0.5 * tf.reduce_sum(residuals(x) ** 2), x)


def _random(size: int) -> np.ndarray:
    return np.random.default_rng(size).uniform(0.5, 1.5, size)


def brusselator(n: int) -> Problem:
    """Two species on a periodic grid, n by n, with diffusion."""

    def laplacian(w: Any) -> Any:
        rows = tf.roll(w, 1, 0) + tf.roll(w, -1, 0)
        return rows + tf.roll(w, 1, 1) + tf.roll(w, -1, 1) - 4.0 * w

    def residuals(y: Any) -> Any:
        u, v = tf.unstack(tf.reshape(y, (2, n, n)))
        reaction = u * u * v
        du = 1.0 + reaction - 4.4 * u + laplacian(u)
        dv = 3.4 * u - reaction + laplacian(v)
        return tf.reshape(tf.stack([du, dv]), (-1,))

    return _least_squares(residuals, _random(2 * n * n))


def heat(n: int) -> Problem:
    """A step of the heat equation, implicit, with a conductivity that depends on the heat."""
    before = np.linspace(0.0, 1.0, n)

    def residuals(u: Any) -> Any:
        ends = tf.pad(u, [[1, 1]])
        conductivity = 1.0 + 0.25 * (ends[1:] + ends[:-1]) ** 2
        flux = conductivity * (ends[1:] - ends[:-1])
        return u - before - 0.1 * (flux[1:] - flux[:-1])

    return _least_squares(residuals, _random(n))


def arrowhead(n: int) -> Problem:
    """The first row, the first column and the diagonal."""

    def residuals(x: Any) -> Any:
        first = tf.reshape(tf.reduce_sum(x**3), (1,))
        return tf.concat([first, x[0] * x[1:] + tf.sin(x[1:])], 0)

    return Problem(residuals, lambda x: tf.reduce_sum(x[0] * x[1:] ** 2) + x[0] ** 4, _random(n))


def bundle_adjustment(n: int, cameras: int = 4) -> Problem:
    """Cameras of nine parameters see n points; Agarwal et al., "Bundle adjustment in the large".

    The measurements are those of a scene, with noise, and x is a scene that differs from it.
    """
    generator = np.random.default_rng(0)
    seen = np.repeat(np.arange(n), 2)
    by = (seen + np.tile([0, 1], n)) % cameras

    def image(x: Any) -> Any:
        camera = tf.gather(tf.reshape(x[: 9 * cameras], (cameras, 9)), by)
        point = tf.gather(tf.reshape(x[9 * cameras :], (n, 3)), seen)
        axis, shift = camera[:, :3], camera[:, 3:6]
        angle = tf.sqrt(tf.reduce_sum(axis * axis, 1, keepdims=True))
        unit = axis / angle
        cross = tf.stack(
            [
                unit[:, 1] * point[:, 2] - unit[:, 2] * point[:, 1],
                unit[:, 2] * point[:, 0] - unit[:, 0] * point[:, 2],
                unit[:, 0] * point[:, 1] - unit[:, 1] * point[:, 0],
            ],
            1,
        )
        along = tf.reduce_sum(unit * point, 1, keepdims=True) * (1.0 - tf.cos(angle))
        moved = point * tf.cos(angle) + cross * tf.sin(angle) + unit * along + shift
        flat = -moved[:, :2] / moved[:, 2:]
        square = tf.reduce_sum(flat * flat, 1, keepdims=True)
        distortion = 1.0 + square * (camera[:, 7:8] + square * camera[:, 8:9])
        return tf.reshape(camera[:, 6:7] * distortion * flat, (-1,))

    poses = generator.normal(0.0, 0.1, (cameras, 9))
    poses[:, 5] = -5.0
    poses[:, 6] = 1.0
    poses[:, 7:] *= 0.01
    points = generator.normal(0.0, 0.5, (n, 3))
    scene = np.concatenate([poses.ravel(), points.ravel()])
    measured = image(tf.constant(scene)).numpy() + 0.01 * generator.normal(size=4 * n)
    start = scene + 0.02 * generator.normal(size=scene.size)
    return _least_squares(lambda x: image(x) - measured, start)


def optimal_control(n: int) -> Problem:
    """A pendulum that n controls swing up: the states of neighbouring times are coupled."""

    def parts(x: Any) -> tuple:
        angle, speed, control = tf.unstack(tf.reshape(x, (n, 3)), axis=1)
        return angle, speed, control

    def residuals(x: Any) -> Any:
        angle, speed, control = parts(x)
        turned = angle[1:] - angle[:-1] - 0.1 * speed[:-1]
        pushed = speed[1:] - speed[:-1] + 0.1 * (tf.sin(angle[:-1]) - control[:-1])
        return tf.reshape(tf.stack([turned, pushed], 1), (-1,))

    def energy(x: Any) -> Any:
        return tf.reduce_sum(residuals(x) ** 2) + 0.01 * tf.reduce_sum(parts(x)[2] ** 2)

    return Problem(residuals, energy, _random(3 * n))


def rosenbrock(n: int) -> Problem:
    """The chained Rosenbrock function: a tridiagonal Hessian."""

    def residuals(x: Any) -> Any:
        return tf.concat([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]], 0)

    return _least_squares(residuals, _random(n))


def chained_wood(n: int) -> Problem:
    """The chained Wood function, of 2 n + 2 variables; Conn, Gould and Toint (1988)."""

    def residuals(x: Any) -> Any:
        a, b, c, d = x[0:-3:2], x[1:-2:2], x[2:-1:2], x[3::2]
        terms = [
            10.0 * (b - a**2),
            1.0 - a,
            np.sqrt(90.0) * (d - c**2),
            1.0 - c,
            np.sqrt(10.0) * (b + d - 2.0),
            np.sqrt(0.1) * (b - d),
        ]
        return tf.concat(terms, 0)

    return _least_squares(residuals, _random(2 * n + 2))


def power_flow(n: int) -> Problem:
    """The balance of active and reactive power at n buses on a ring with some chords."""
    ends = [(k, (k + 1) % n) for k in range(n)] + [(k, (k + n // 3) % n) for k in range(0, n, 4)]
    first, second = (np.array(side) for side in zip(*ends, strict=True))
    sources, targets = np.concatenate([first, second]), np.concatenate([second, first])

    def residuals(x: Any) -> Any:
        angle, voltage = x[:n], x[n:]
        difference = tf.gather(angle, sources) - tf.gather(angle, targets)
        scale = tf.gather(voltage, sources) * tf.gather(voltage, targets)
        active = scale * (0.5 * tf.cos(difference) + 4.0 * tf.sin(difference))
        reactive = scale * (0.5 * tf.sin(difference) - 4.0 * tf.cos(difference))
        sums = [tf.math.unsorted_segment_sum(part, sources, n) for part in (active, reactive)]
        return tf.concat([sums[0] - 0.1, sums[1] + 8.0 * voltage**2], 0)

    return _least_squares(residuals, _random(2 * n))


def spring_network(n: int) -> Problem:
    """Masses in a plane, n of them, each held by springs to the next and the one after."""
    first = np.concatenate([np.arange(n - 1), np.arange(n - 2)])
    second = np.concatenate([np.arange(1, n), np.arange(2, n)])

    def stretch(x: Any) -> Any:
        places = tf.reshape(x, (n, 2))
        way = tf.gather(places, second) - tf.gather(places, first)
        return tf.sqrt(tf.reduce_sum(way * way, 1)) - 1.0

    return _least_squares(stretch, np.arange(2.0 * n) + _random(2 * n))


def pde_least_squares(n: int) -> Problem:
    """A coefficient and a state, n by n each, from a state that was measured: all-at-once."""
    measured = np.linspace(0.0, 1.0, n * n).reshape(n, n)

    def residuals(x: Any) -> Any:
        coefficient, state = tf.unstack(tf.reshape(x, (2, n, n)))
        wide = tf.pad(state, [[1, 1], [1, 1]])
        laplacian = (
            wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4.0 * state
        )
        equation = laplacian + tf.exp(coefficient) * state
        smooth = 0.1 * (coefficient[1:] - coefficient[:-1])
        parts = [equation, state - measured, smooth]
        return tf.concat([tf.reshape(part, (-1,)) for part in parts], 0)

    return _least_squares(residuals, _random(2 * n * n))


def poisson_editing(n: int) -> Problem:
    """An image of three channels, n by n, whose slopes shall be given ones; Perez et al. (2003)."""
    down = np.random.default_rng(1).normal(size=(n - 1, n, 3))
    right = np.random.default_rng(2).normal(size=(n, n - 1, 3))

    def residuals(x: Any) -> Any:
        image = tf.reshape(x, (n, n, 3))
        slopes = [image[1:] - image[:-1] - down, image[:, 1:] - image[:, :-1] - right]
        return tf.concat([tf.reshape(slope, (-1,)) for slope in slopes], 0)

    return _least_squares(residuals, _random(3 * n * n))


def minimal_surface(n: int) -> Problem:
    """The area over an n by n grid whose border is fixed; MINPACK-2."""
    side = np.linspace(0.0, 1.0, n + 2)
    border = np.sin(np.pi * side)[:, None] * np.ones(n + 2)
    border[1:-1, 1:-1] = 0.0

    def areas(x: Any) -> Any:
        height = tf.pad(tf.reshape(x, (n, n)), [[1, 1], [1, 1]]) + border
        scale = float(n + 1)
        a = scale * (height[1:, 1:] - height[:-1, :-1])
        b = scale * (height[1:, :-1] - height[:-1, 1:])
        return tf.reshape(tf.sqrt(1.0 + 0.5 * (a * a + b * b)) / scale**2, (-1,))

    return Problem(areas, lambda x: tf.reduce_sum(areas(x)), _random(n * n))


PROBLEMS: dict[str, tuple[Callable[[int], Problem], int]] = {
    "Brusselator": (brusselator, 5),
    "heat equation": (heat, 12),
    "arrowhead": (arrowhead, 12),
    "bundle adjustment": (bundle_adjustment, 6),
    "optimal control": (optimal_control, 8),
    "Rosenbrock": (rosenbrock, 12),
    "chained Wood": (chained_wood, 6),
    "power flow": (power_flow, 9),
    "spring network": (spring_network, 8),
    "PDE least squares": (pde_least_squares, 5),
    "Poisson editing": (poisson_editing, 4),
    "minimal surface": (minimal_surface, 5),
}
"""The problems by name, with a small size for comparisons with dense derivatives."""
