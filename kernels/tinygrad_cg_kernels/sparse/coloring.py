"""Colourings of sparse matrices, and the entries that are alone in their colours.

Patterns are tables of `index_sets`. Vertices are columns, and lines are rows; with both patterns
swapped, rows are coloured. Colours are int32, from 1; 0 is none.
The algorithms are those of Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM
Review 47 (2005), and of Gebremedhin, Tarafdar, Manne and Pothen, "New acyclic and star coloring
algorithms with application to computing Hessians", SIAM J. Sci. Comput. 29 (2007).
"""

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.sparse.index_sets import INT32, TABLE, Table, compiled, starts

INT8, UINT64 = np.dtype(np.int8), np.dtype(np.uint64)
PHASE = 64
"""Colours that one pass of the greedy algorithm gives: a bit of a word for each."""

# Distance-2 colouring ------------------------------------------------------------------------


def _dynamic_order(
    vertex_ptr, vertex_lines, line_ptr, lines, degrees, order, heads, nexts, before, sizes
):
    """Order vertices by degrees that change: smallest last, or by incidence degrees.

    Neighbours count once for each line that they share. Vertices of equal degree are a list with
    two links. A vertex that is ordered has degree -1.
    """
    count, is_last = order.size, sizes[0]
    for i in range(np.uintp(count)):
        v = np.uintp(count) - np.uintp(1) - i
        _link(v, np.uintp(degrees[v]), heads, nexts, before)
    step = 1 if is_last == 1 else -1
    top = np.int64(heads.size) - 1
    at = 0 if is_last == 1 else top
    for i in range(np.uintp(count)):
        while heads[np.uintp(at)] < 0:
            at += step
        v = np.uintp(heads[np.uintp(at)])
        _unlink(v, np.uintp(at), heads, nexts, before)
        degrees[v] = -1
        order[np.uintp(count) - np.uintp(1) - i if is_last == 1 else i] = v
        start, end = np.uintp(vertex_ptr[v]), np.uintp(vertex_ptr[v + np.uintp(1)])
        for a in range(start, end):
            line = np.uintp(vertex_lines[a])
            for b in range(np.uintp(line_ptr[line]), np.uintp(line_ptr[line + np.uintp(1)])):
                w = np.uintp(lines[b])
                degree = np.int64(degrees[w])
                if degree >= 0:
                    _unlink(w, np.uintp(degree), heads, nexts, before)
                    _link(w, np.uintp(degree - step), heads, nexts, before)
                    degrees[w] = degree - step
        at = min(max(at - step * np.int64(end - start), 0), top)


@jitable
def _link(v, degree, heads, nexts, before):
    """Put a vertex at the head of the list of a degree."""
    head = heads[degree]
    nexts[v], before[v] = head, -1
    if head >= 0:
        before[np.uintp(head)] = v
    heads[degree] = v


@jitable
def _unlink(v, degree, heads, nexts, before):
    """Take a vertex out of the list of its degree."""
    previous, following = before[v], nexts[v]
    if previous >= 0:
        nexts[np.uintp(previous)] = following
    else:
        heads[degree] = following
    if following >= 0:
        before[np.uintp(following)] = previous


_dynamic_kernel = compiled(_dynamic_order, "dynamic_order", *TABLE, *TABLE, *(INT32,) * 5)


def _greedy_distance2(vertex_ptr, vertex_lines, order, used, base, colors, sizes):
    """Give vertices without a colour the first after `base` that no line has in `used`, as bits."""
    for i in range(np.uintp(sizes[0])):
        v = np.uintp(order[i])
        start, end = np.uintp(vertex_ptr[v]), np.uintp(vertex_ptr[v + np.uintp(1)])
        taken = np.uint64(0)
        for a in range(start, end):
            taken |= used[np.uintp(vertex_lines[a])]
        bit = (taken | (taken + np.uint64(1))) ^ taken  # the first that is not set
        if colors[v] == 0 and bit != np.uint64(0):
            for a in range(start, end):
                used[np.uintp(vertex_lines[a])] |= bit
            color = np.int64(base[0])
            while bit != np.uint64(0):
                bit >>= np.uint64(1)
                color += 1
            colors[v] = color


_greedy_kernel = compiled(
    _greedy_distance2, "greedy_distance2", *TABLE, INT32, UINT64, INT32, INT32
)

ORDERS = ("natural", "smallest_last", "largest_first", "incidence_degree")


def degrees(vertices: Table, lines: Table) -> np.ndarray:
    """Return how many vertices share lines with each vertex, once for each line: int32."""
    sizes = np.diff(lines[0]) - 1
    if sizes.size and sizes.min() == sizes.max():
        return (np.diff(vertices[0]) * sizes[0]).astype(INT32)
    return np.diff(starts(sizes[vertices[1]])[vertices[0]]).astype(INT32)


def order_vertices(vertices: Table, lines: Table, name: str, degrees: np.ndarray) -> np.ndarray:
    """Return an order of the vertices, one of ORDERS, by `degrees`."""
    count = vertices[0].size - 1
    if name == "natural":
        return np.arange(count, dtype=INT32)
    if name == "largest_first":
        return np.argsort(-degrees, kind="stable").astype(INT32)
    is_last, most = name == "smallest_last", int(degrees.max(initial=0))
    degrees = degrees.copy() if is_last else np.zeros_like(degrees)
    heads = np.full(most + 2, -1, INT32)
    order, *links = (np.empty(count, INT32) for _ in range(3))
    _dynamic_kernel(*vertices, *lines, degrees, order, heads, *links, (int(is_last),))
    return order


def color_distance2(vertices: Table, lines: int, order: np.ndarray) -> np.ndarray:
    """Return colours of the vertices in an order: two that share a line have different ones."""
    colors, base = np.zeros(order.size, INT32), np.zeros(1, INT32)
    while base[0] == 0 or not colors.all():
        _greedy_kernel(*vertices, order, np.zeros(lines, UINT64), base, colors, (order.size,))
        base += PHASE
    return colors


# Star colouring ------------------------------------------------------------------------------


@jitable
def _has(bits, place):
    word = bits[np.uintp(place >> np.uint64(6))]
    return (word >> (place & np.uint64(63))) & np.uint64(1) != np.uint64(0)


@jitable
def _add(bits, place):
    bits[np.uintp(place >> np.uint64(6))] |= np.uint64(1) << (place & np.uint64(63))


def _greedy_star(indptr, indices, order, once, twice, taken, colors, sizes):
    """Colour a symmetric graph so that each path of four vertices has three colours.

    `once` and `twice` have bits for each vertex: the colours of its neighbours, and those of two
    neighbours or more. A vertex for which there are too few bits gets no colour.
    """
    words = np.uint64(sizes[0])
    width = words * np.uint64(64)
    for i in range(np.uintp(order.size)):
        v = np.uint64(order[i])
        start, end = np.uintp(indptr[np.uintp(v)]), np.uintp(indptr[np.uintp(v) + np.uintp(1)])
        for k in range(words):
            taken[np.uintp(k)] = once[np.uintp(v * words + k)]
        for a in range(start, end):
            w = np.uint64(indices[a])
            color = np.uint64(colors[np.uintp(w)])
            if w != v and color > np.uint64(0):
                color -= np.uint64(1)
                if _has(twice, v * width + color):
                    for k in range(words):
                        taken[np.uintp(k)] |= once[np.uintp(w * words + k)]
                else:
                    first, last = indptr[np.uintp(w)], indptr[np.uintp(w) + np.uintp(1)]
                    for b in range(np.uintp(first), np.uintp(last)):
                        x = np.uint64(indices[b])
                        of_x = np.uint64(colors[np.uintp(x)])
                        is_other = x != v and x != w and of_x > np.uint64(0)
                        if is_other and _has(twice, x * width + color):
                            _add(taken, of_x - np.uint64(1))
        own = np.uint64(0)
        while own < width and _has(taken, own):
            own += np.uint64(1)
        if own < width:
            colors[np.uintp(v)] = own + np.uint64(1)
            for a in range(start, end):
                w = np.uint64(indices[a])
                if w != v:
                    if _has(once, w * width + own):
                        _add(twice, w * width + own)
                    _add(once, w * width + own)


_star_kernel = compiled(_greedy_star, "greedy_star", *TABLE, INT32, *(UINT64,) * 3, INT32)


def color_star(pattern: Table, order: np.ndarray) -> np.ndarray:
    """Return a star colouring of a symmetric pattern, of the vertices in an order."""
    words, colors = 1, np.zeros(order.size, INT32)
    while not colors.all():
        colors[:] = 0
        once, twice = np.zeros((2, order.size * words), UINT64)
        _star_kernel(*pattern, order, once, twice, np.zeros(words, UINT64), colors, (words,))
        words *= 2
    return colors


# Entries that are alone ------------------------------------------------------------------------


def _mark_unique(indptr, indices, colors, seen, counts, unique, sizes):
    for i in range(np.uintp(sizes[0])):
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])):
            color = np.uintp(colors[np.uintp(indices[k])])
            counts[color] = counts[color] + 1 if seen[color] == np.int64(i) else 1
            seen[color] = i
        for k in range(np.uintp(indptr[i]), np.uintp(indptr[i + np.uintp(1)])):
            color = np.uintp(colors[np.uintp(indices[k])])
            unique[k] = 1 if color > 0 and counts[color] == 1 else 0


_unique_kernel = compiled(_mark_unique, "mark_unique", *TABLE, *(INT32,) * 3, INT8)


def mark_unique(pattern: Table, colors: np.ndarray) -> np.ndarray:
    """Return for each entry whether its column's colour occurs once in its row: int8, 0 or 1."""
    size = int(colors.max(initial=0)) + 1
    seen, unique = np.full(size, -1, INT32), np.empty(pattern[1].size, INT8)
    _unique_kernel(*pattern, colors, seen, np.zeros(size, INT32), unique, (pattern[0].size - 1,))
    return unique
