"""Colourings of random patterns are valid, and give back all entries."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tinygrad_cg as tf
from tinygrad_cg.errors import InvalidArgumentError
from tinygrad_cg_kernels.runtime import service
from tinygrad_cg_kernels.sparse import coloring as kernels

SIZES = st.integers(0, 14)
ORDERS = ["best", *kernels.ORDERS]


@st.composite
def patterns(draw, square=False):
    height = draw(SIZES)
    shape = (height, height if square else draw(SIZES))
    density = draw(st.sampled_from([0.1, 0.3, 0.6, 1.0]))
    seed = draw(st.integers(0, 2**20))
    pattern = np.random.default_rng(seed).random(shape) < density
    if draw(st.booleans()) and pattern.size:  # a long row and column
        pattern[draw(st.integers(0, shape[0] - 1))] = True
        pattern[:, draw(st.integers(0, shape[1] - 1))] = True
    return pattern | pattern.T if square else pattern


def is_distance2(pattern, colors):
    """That columns which share a row have different colours."""
    return all(len(set(colors[row])) == row.sum() for row in pattern.astype(bool))


def is_star(pattern, colors):
    """That neighbours have different colours, and each path of four vertices has three."""
    graph = pattern & ~np.eye(len(pattern), dtype=bool)
    for b, c in np.argwhere(graph):
        if colors[b] == colors[c]:
            return False
        for a in np.flatnonzero(graph[b]):
            for d in np.flatnonzero(graph[c]):
                apart = len({a, b, c, d}) == 4
                if apart and colors[a] == colors[c] and colors[b] == colors[d]:
                    return False
    return True


def compressed(matrix, colors):
    """The sums of the columns of each colour."""
    return np.array([matrix[:, colors == k].sum(1) for k in range(colors.max(initial=-1) + 1)])


def recovered(coloring, matrix):
    """The matrix, from the products that a colouring asks for."""
    products = []
    for colors, values in ((coloring.columns, matrix), (coloring.rows, matrix.T)):
        products += [] if colors is None else list(compressed(values, colors))
    assert len(products) == coloring.count
    pairs = zip(coloring.products(), coloring.lines(), strict=True)
    data = [products[product][line] for product, line in pairs]
    dense = np.zeros(matrix.shape)
    dense[coloring.pattern.rows(), coloring.pattern.indices] = data
    return dense


def values_of(pattern):
    matrix = np.random.default_rng(0).integers(1, 100, pattern.shape).astype(float)
    return matrix * pattern


@settings(max_examples=150, deadline=None)
@given(patterns(), st.sampled_from(["auto", "forward", "reverse", "both"]), st.sampled_from(ORDERS))
def test_colorings_of_jacobians(pattern, mode, order):
    coloring = tf.jacobian_coloring(pattern, mode, order)
    if mode != "auto":
        assert coloring.mode == mode
    if coloring.mode == "forward":
        assert is_distance2(pattern, coloring.columns)
        assert coloring.count >= pattern.sum(1).max(initial=0)
    if coloring.mode == "reverse":
        assert is_distance2(pattern.T, coloring.rows)
    matrix = values_of(pattern)
    np.testing.assert_array_equal(recovered(coloring, matrix), matrix)


@settings(max_examples=150, deadline=None)
@given(patterns(square=True), st.sampled_from(ORDERS))
def test_colorings_of_hessians(pattern, order):
    coloring = tf.hessian_coloring(pattern, order)
    assert coloring.mode == "symmetric"
    matrix = values_of(pattern)
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    np.testing.assert_array_equal(recovered(coloring, matrix), matrix)


@settings(max_examples=150, deadline=None)
@given(patterns(square=True), st.sampled_from(kernels.ORDERS))
def test_star_colorings(pattern, order):
    rows = tf.SparsityPattern.of(pattern).table
    numbers = kernels.order_vertices(rows, rows, order, kernels.degrees(rows, rows))
    assert sorted(numbers) == list(range(len(pattern)))
    assert is_star(pattern, kernels.color_star(rows, numbers))


@settings(max_examples=200, deadline=None)
@given(patterns(), st.data())
def test_a_coloring_is_refused_or_gives_all_entries(pattern, data):
    """Whatever the colours are."""
    height, width = pattern.shape
    mode = data.draw(st.sampled_from(["columns", "rows", "both", "symmetric"]))
    if mode == "symmetric":
        size = min(height, width)
        pattern = pattern[:size, :size] | pattern[:size, :size].T
        height = width = size
    colors = [
        data.draw(arrays.arrays(np.int64, count, elements=st.integers(-1, 6)))
        for count in (width, height)
    ]
    matrix = values_of(pattern)
    if mode == "symmetric":
        matrix = np.triu(matrix) + np.triu(matrix, 1).T
    arguments = {
        "columns": {"columns": colors[0]},
        "rows": {"rows": colors[1]},
        "both": {"columns": colors[0], "rows": colors[1]},
        "symmetric": {"columns": colors[0], "symmetric": True},
    }[mode]
    alone = np.zeros(pattern.shape, bool)
    if mode != "rows":
        alone |= are_alone(pattern, colors[0])
    if mode in ("rows", "both"):
        alone |= are_alone(pattern.T, colors[1]).T
    if mode == "symmetric":
        alone |= alone.T
    if (pattern & ~alone).any():
        with pytest.raises(InvalidArgumentError, match="cannot be read from a product"):
            tf.Coloring(pattern, **arguments)
    else:
        coloring = tf.Coloring(pattern, **arguments)
        assert coloring.count <= sum(len(set(part[part >= 0])) for part in colors)
        np.testing.assert_array_equal(recovered(coloring, matrix), matrix)


def are_alone(pattern, colors):
    """Whether each entry's column has a colour that no other one of its row has."""
    same = (colors[:, None] == colors) & (colors >= 0)
    return pattern & (pattern.astype(int) @ same == 1)


def test_the_best_order_needs_the_fewest_colors():
    generator = np.random.default_rng(3)
    for _ in range(20):
        pattern = generator.random((60, 60)) < 0.08
        counts = [tf.jacobian_coloring(pattern, "forward", order).count for order in ORDERS]
        assert counts[0] == min(counts)


def brusselator(n):
    """Two species on a periodic grid: each depends on five values of its own and on the other."""
    cell = np.arange(n * n).reshape(n, n)
    near = [cell, *(np.roll(cell, step, axis) for step in (1, -1) for axis in (0, 1))]
    rows = np.stack([x.ravel() for x in near] + [cell.ravel() + n * n], 1)
    columns = np.concatenate([rows, (rows + n * n) % (2 * n * n)])
    return tf.SparsityPattern.of(
        (np.arange(0, columns.size + 1, 6), columns.ravel(), (2 * n * n,) * 2)
    )


@pytest.mark.parametrize(("size", "most"), [(10, 12), (32, 11), (100, 10)])
def test_colors_of_the_brusselator(size, most):
    """Six are a bound; the order of largest degrees, after asdex and others, takes 12."""
    assert 6 <= tf.jacobian_coloring(brusselator(size)).count <= most
    assert tf.hessian_coloring(brusselator(size)).count <= 9


def test_large_arrowheads_are_colored_without_pairs_of_their_entries():
    """The long row and column are set apart: no step of the algorithms sees pairs of them."""
    n = 200_000
    ends = np.concatenate([[0, n], n + 2 * np.arange(1, n)])
    columns = np.concatenate(
        [np.arange(n), np.stack([np.zeros(n - 1), np.arange(1, n)], 1).ravel()]
    )
    pattern = tf.SparsityPattern.of((ends, columns.astype(int), (n, n)))
    assert tf.jacobian_coloring(pattern).count == 3
    assert tf.hessian_coloring(pattern).count == 2


def test_colors_are_numbered_in_their_order():
    coloring = tf.Coloring(np.eye(3), [40, 40, 7])
    assert coloring.columns.tolist() == [1, 1, 0]
    dropped = tf.Coloring(np.eye(3)[:2], [0, 1, 2])
    assert (dropped.columns.tolist(), dropped.count) == ([0, 1, -1], 2)
    assert repr(dropped) == "<Coloring forward, 2 colors for 2 x 3>"


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: tf.Coloring(np.eye(2)), TypeError, "expected colours of columns or rows"),
        (lambda: tf.Coloring(np.eye(2), rows=[0, 0], symmetric=True), TypeError, "and no rows"),
        (lambda: tf.Coloring(np.eye(2), [0.0, 1.0]), TypeError, "must be integers, got float64"),
        (lambda: tf.Coloring(np.eye(2), [0]), InvalidArgumentError, r"shape \(2,\), got \(1,\)"),
        (lambda: tf.Coloring(np.ones((2, 2)), [0, 0]), InvalidArgumentError, r"entry \(0, 0\)"),
        (
            lambda: tf.Coloring(np.triu(np.ones((2, 2))), [0, 1], symmetric=True),
            InvalidArgumentError,
            "symmetric pattern",
        ),
        (lambda: tf.hessian_coloring(np.ones((2, 3))), InvalidArgumentError, "square pattern"),
        (lambda: tf.hessian_coloring(np.eye(2), "fast"), ValueError, "order must be one of 'best'"),
        (lambda: tf.jacobian_coloring(np.eye(2), "fwd"), ValueError, "mode must be one of 'auto'"),
    ],
)
def test_bad_arguments(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_front_end_compiles_all_kernels():
    tf.hessian_coloring(brusselator(4))
    tf.jacobian_coloring(brusselator(4))
    assert not [text for text in service.fallbacks if "greedy" in text or "order" in text]
