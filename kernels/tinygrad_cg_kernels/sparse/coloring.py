"""Colourings of sparse matrices, and the entries that are alone in their colours.

Patterns are tables of `index_sets`. Vertices are columns, and lines are rows; with both patterns
swapped, rows are coloured. Colours are int32, from 1; 0 is none.
The algorithms are those of Gebremedhin, Manne and Pothen, "What color is your Jacobian?", SIAM
Review 47 (2005), and of Gebremedhin, Tarafdar, Manne and Pothen, "New acyclic and star coloring
algorithms with application to computing Hessians", SIAM J. Sci. Comput. 29 (2007).
"""

import numpy as np

from tinygrad_cg_kernels.runtime.compile import jitable
from tinygrad_cg_kernels.runtime.promotion import INT64
from tinygrad_cg_kernels.sparse.index_sets import INT32, TABLE, Table, compiled

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
    """Give vertices without a colour the first one after `base` that is free, if a word has it.

    `used` has the colours of each line, as bits.
    """
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
    others = np.concatenate([[0], np.cumsum(sizes[vertices[1]])])
    return np.diff(others[vertices[0]]).astype(INT32)


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


def _greedy_star(
    indptr, indices, reverse, order, colors, stamps, first, edges, treated, stars, hubs, sizes
):
    """Colour a symmetric graph so that each path of four vertices has three colours.

    Vertices of two colours form stars. `stars` has the star of each edge, `hubs` the centre of each
    star, -1 for a single edge. `first` and `edges` have for a colour the last vertex that has a
    neighbour of it, and the edge there.
    """
    (count,) = sizes
    made = np.uintp(0)
    for i in range(np.uintp(count)):
        v = np.uintp(order[i])
        start, end = np.uintp(indptr[v]), np.uintp(indptr[v + np.uintp(1)])
        for a in range(start, end):
            w = np.uintp(indices[a])
            if w != v:
                stamps[np.uintp(colors[w])] = v
        for a in range(start, end):
            w = np.uintp(indices[a])
            color = np.uintp(colors[w])
            if w != v and color > 0:
                if first[color] == np.int64(v):
                    for turn in range(2):
                        u = w if turn == 1 else np.uintp(indices[np.uintp(edges[color])])
                        if treated[u] != np.int64(v):
                            treated[u] = v
                            for b in range(np.uintp(indptr[u]), np.uintp(indptr[u + np.uintp(1)])):
                                x = np.uintp(indices[b])
                                if x != v:
                                    stamps[np.uintp(colors[x])] = v
                else:
                    first[color], edges[color] = v, a
                    for b in range(np.uintp(indptr[w]), np.uintp(indptr[w + np.uintp(1)])):
                        x = np.uintp(indices[b])
                        if x != v and x != w and colors[x] > 0:
                            hub = hubs[np.uintp(stars[b])]
                            if hub == np.int64(x):
                                stamps[np.uintp(colors[x])] = v
        own = np.uintp(1)
        while stamps[own] == np.int64(v):
            own += np.uintp(1)
        colors[v] = own
        for a in range(start, end):
            w = np.uintp(indices[a])
            color = np.uintp(colors[w])
            if w != v and color > 0:
                star = np.int64(-1)
                for b in range(np.uintp(indptr[w]), np.uintp(indptr[w + np.uintp(1)])):
                    x = np.uintp(indices[b])
                    if x != v and x != w and np.uintp(colors[x]) == own:
                        star = stars[b]
                        break
                if star >= 0:
                    hubs[np.uintp(star)] = w
                elif np.uintp(edges[color]) != a:
                    star = stars[np.uintp(edges[color])]
                    hubs[np.uintp(star)] = v
                else:
                    star = np.int64(made)
                    made += np.uintp(1)
                stars[a] = star
                stars[np.uintp(reverse[a])] = star


_star_kernel = compiled(
    _greedy_star,
    "greedy_star",
    *(*TABLE, INT64, INT32, INT32, INT32, INT32, INT64, INT32, INT64, INT32),
)


def color_star(pattern: Table, reverse: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return a star colouring of a symmetric pattern; `reverse` has the places of its transpose."""
    count, edges = pattern[0].size - 1, pattern[1].size
    colors, treated = np.zeros(count, INT32), np.full(count, -1, INT32)
    stamps, first = np.full(count + 2, -1, INT32), np.full(count + 2, -1, INT32)
    of_color, stars = np.zeros(count + 2, INT64), np.zeros(edges, INT64)
    hubs = np.full(max(edges, 1), -1, INT32)
    marks = colors, stamps, first, of_color, treated, stars, hubs
    _star_kernel(*pattern, reverse, order, *marks, (count,))
    return colors


# Entries that are alone ------------------------------------------------------------------------


def _mark_unique(indptr, indices, colors, seen, counts, unique, sizes):
    (rows,) = sizes
    for i in range(np.uintp(rows)):
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
