"""Functions over arrays in the style of code for Numba, and arguments for each: `CASES`."""

import math

import numpy as np
from numba import prange

from benchmarks.array_functions import kalman as kalman_of_velocity
from benchmarks.array_functions import thomas

RNG = np.random.default_rng(7)


def r(*shape):
    return RNG.normal(size=shape) * 0.6


def p(*shape):
    return np.abs(r(*shape)) + 0.3


def box_filter(image):
    n, m = image.shape
    out = np.zeros_like(image)
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            total = 0.0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    total += image[i + di, j + dj]
            out[i, j] = total / 9.0
    return out


def sobel(image):
    n, m = image.shape
    out = np.zeros((n, m))
    for i in prange(1, n - 1):
        for j in range(1, m - 1):
            gx = image[i - 1, j + 1] + 2 * image[i, j + 1] + image[i + 1, j + 1]
            gx -= image[i - 1, j - 1] + 2 * image[i, j - 1] + image[i + 1, j - 1]
            gy = image[i + 1, j] - image[i - 1, j]
            out[i, j] = math.sqrt(gx * gx + gy * gy + 1e-3)
    return out


def bilateral(image, sigma):
    n = len(image)
    out = np.empty(n)
    for i in range(n):
        weight = total = 0.0
        for j in range(max(0, i - 2), min(n, i + 3)):
            w = math.exp(-((image[i] - image[j]) ** 2) / sigma - (i - j) ** 2 / 4.0)
            weight += w
            total += w * image[j]
        out[i] = total / weight
    return out


def heat(u, steps, c):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] += c * (v[2:] - 2.0 * v[1:-1] + v[:-2])
    return v


def upwind(u, a, steps):
    v = u.copy()
    n = len(u)
    for _ in range(steps):
        flux = np.empty(n)
        for i in range(n):
            flux[i] = a * v[i - 1] if a > 0.0 else a * v[(i + 1) % n]
        for i in range(n):
            v[i] -= 0.1 * (flux[(i + 1) % n] - flux[i])
    return v


def burgers_volumes(u, steps):
    v = u.copy()
    for _ in range(steps):
        new = v.copy()
        for i in range(1, len(v) - 1):
            left = 0.25 * (v[i - 1] ** 2 + v[i] ** 2) - 0.3 * (v[i] - v[i - 1])
            right = 0.25 * (v[i] ** 2 + v[i + 1] ** 2) - 0.3 * (v[i + 1] - v[i])
            new[i] = v[i] - 0.2 * (right - left)
        v = new
    return v


def n_body_energy(x, m):
    energy = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            d2 = 1e-2
            for k in range(x.shape[1]):
                d2 += (x[i, k] - x[j, k]) ** 2
            energy -= m[i] * m[j] / math.sqrt(d2)
    return energy


def soft_min(a, b, c, gamma):
    low = min(a, min(b, c))
    total = math.exp((low - a) / gamma) + math.exp((low - b) / gamma) + math.exp((low - c) / gamma)
    return low - gamma * math.log(total)


def soft_dtw(x, y, gamma):
    n, m = len(x), len(y)
    table = np.full((n + 1, m + 1), 1e3)
    table[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            best = soft_min(table[i - 1, j], table[i, j - 1], table[i - 1, j - 1], gamma)
            table[i, j] = (x[i - 1] - y[j - 1]) ** 2 + best
    return table[n, m]


def kalman(z, q, s):
    x, v, ll = 0.0, 1.0, 0.0
    for k in range(len(z)):
        v += q
        gain = v / (v + s)
        ll -= 0.5 * (math.log(v + s) + (z[k] - x) ** 2 / (v + s))
        x += gain * (z[k] - x)
        v *= 1.0 - gain
    return ll


def path_action(x, dt):
    action = 0.0
    for i in range(len(x) - 1):
        v = (x[i + 1] - x[i]) / dt
        action += dt * (0.5 * v * v - 0.25 * x[i] ** 4)
    return action


def spline(knots, values, t):
    i = 0
    while i < len(knots) - 2 and t > knots[i + 1]:
        i += 1
    h = knots[i + 1] - knots[i]
    s = (t - knots[i]) / h
    return (1 - s) * values[i] + s * values[i + 1] + s * (1 - s) * (values[i] - values[i + 1]) * h


def kernel_histogram(x, centers, width):
    out = np.zeros(len(centers))
    for value in x:
        for k, center in enumerate(centers):
            out[k] += math.exp(-0.5 * ((value - center) / width) ** 2)
    return out / len(x)


def ray_march(density, step):
    light, transmitted = 0.0, 1.0
    for d in density:
        alpha = 1.0 - math.exp(-abs(d) * step)
        light += transmitted * alpha * d
        transmitted *= 1.0 - alpha
        if transmitted < 1e-6:
            break
    return light


def potts(cells, energy, target):
    n, m = cells.shape
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += energy[cells[i, j], cells[(i + 1) % n, j]]
            total += energy[cells[i, j], cells[i, (j + 1) % m]]
    for c in range(len(target)):
        count = 0
        for i in range(n):
            for j in range(m):
                if cells[i, j] == c:
                    count += 1
        total += 0.1 * (count - target[c]) ** 2
    return total


def hmm_forward(start, move, emit, seen):
    alpha = start * emit[:, seen[0]]
    ll = 0.0
    for t in range(1, len(seen)):
        alpha = (alpha @ move) * emit[:, seen[t]]
        total = alpha.sum()
        ll += math.log(total)
        alpha = alpha / total
    return ll


def ising(spins, coupling, field):
    energy, n = 0.0, len(spins)
    for i in range(n):
        energy -= coupling * math.tanh(spins[i]) * math.tanh(spins[i - 1]) + field[i] * spins[i]
    return energy


def lattice_boltzmann(f, omega):
    q, n = f.shape
    rho, new = np.zeros(n), np.empty((q, n))
    for k in range(q):
        for i in range(n):
            rho[i] += f[k, i]
    for i in range(n):
        u = (f[1, i] - f[2, i]) / rho[i]
        for k in range(q):
            e = 0 if k == 0 else (1 if k == 1 else -1)
            equilibrium = rho[i] / 3.0 * (1.0 + 3.0 * e * u + 1.5 * u * u)
            new[k, (i + e) % n] = f[k, i] - omega * (f[k, i] - equilibrium)
    return new


def random_walk(noise, drift, sigma):
    x, peak = 0.0, 0.0
    for e in noise:
        x += drift + sigma * e
        peak = max(peak, x)
    return x, peak


def convolution(x, kernel):
    n, k = len(x), len(kernel)
    out = np.zeros(n - k + 1)
    for i in range(n - k + 1):
        for j in range(k):
            out[i] += x[i + j] * kernel[k - 1 - j]
    return out


def page_rank(links, damping, rounds):
    n = len(links)
    rank = np.full(n, 1.0 / n)
    for _ in range(rounds):
        new = np.full(n, (1.0 - damping) / n)
        for i in range(n):
            total = links[i].sum()
            for j in range(n):
                new[j] += damping * rank[i] * links[i, j] / total
        rank = new
    return rank


def gauss_seidel(a, b, rounds):
    x = np.zeros_like(b)
    for _ in range(rounds):
        for i in range(len(b)):
            s = b[i]
            for j in range(len(b)):
                if j != i:
                    s -= a[i, j] * x[j]
            x[i] = s / a[i, i]
    return x


def jacobi(a, b, rounds):
    x, y = np.zeros_like(b), np.zeros_like(b)
    for _ in range(rounds):
        for i in range(len(b)):
            y[i] = (b[i] - np.dot(a[i], x) + a[i, i] * x[i]) / a[i, i]
        x, y = y, x
    return x


def lu(a):
    n = a.shape[0]
    m = a.copy()
    for k in range(n):
        for i in range(k + 1, n):
            m[i, k] /= m[k, k]
            for j in range(k + 1, n):
                m[i, j] -= m[i, k] * m[k, j]
    return m


def cholesky(a):
    n = a.shape[0]
    low = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            s = a[i, j]
            for k in range(j):
                s -= low[i, k] * low[j, k]
            low[i, j] = math.sqrt(s) if i == j else s / low[j, j]
    return low


def triangular_solve(low, b):
    x = b.copy()
    for i in range(len(b)):
        x[i] = (x[i] - np.dot(low[i, :i], x[:i])) / low[i, i]
    return x


def gram_schmidt(a):
    m = a.shape[1]
    q = a.copy()
    for j in range(m):
        for k in range(j):
            q[:, j] -= np.dot(q[:, k], q[:, j]) * q[:, k]
        q[:, j] /= math.sqrt(np.sum(q[:, j] ** 2))
    return q


def power_iteration(a, rounds):
    x = np.ones(a.shape[0])
    for _ in range(rounds):
        x = a @ x
        x /= np.linalg.norm(x)
    return x @ a @ x


def butterflies(re, im):
    re, im = re.copy(), im.copy()
    half = len(re) // 2
    while half >= 1:
        for start in range(0, len(re), 2):
            for k in range(1):
                i, j = start + k, (start + k + half) % len(re)
                angle = math.pi * k / half
                tr = re[j] * math.cos(angle) - im[j] * math.sin(angle)
                ti = re[j] * math.sin(angle) + im[j] * math.cos(angle)
                re[j], im[j] = re[i] - tr, im[i] - ti
                re[i], im[i] = re[i] + tr, im[i] + ti
        half //= 2
    return re, im


def verlet(x, v, dt, steps):
    q, w = x.copy(), v.copy()
    force = -np.sin(q)
    for _ in range(steps):
        w += 0.5 * dt * force
        q += dt * w
        force = -np.sin(q)
        w += 0.5 * dt * force
    return q, w


def lotka(x, y, a, b):
    return a * x - b * x * y, b * x * y - y


def runge_kutta(x, y, a, b, steps):
    h = 0.1
    for _ in range(steps):
        k1, l1 = lotka(x, y, a, b)
        k2, l2 = lotka(x + h / 2 * k1, y + h / 2 * l1, a, b)
        k3, l3 = lotka(x + h / 2 * k2, y + h / 2 * l2, a, b)
        k4, l4 = lotka(x + h * k3, y + h * l3, a, b)
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        y += h / 6 * (l1 + 2 * l2 + 2 * l3 + l4)
    return x, y


def logistic_growth(rate, start, steps):
    x = start
    out = np.empty(steps)
    for k in range(steps):
        x = rate * x * (1.0 - x)
        out[k] = x
    return out


def monte_carlo(normals, s, k, sigma):
    total = 0.0
    for path in normals:
        price = s
        for z in path:
            price *= math.exp(-0.5 * sigma**2 * 0.1 + sigma * math.sqrt(0.1) * z)
        if price > k:
            total += price - k
    return total / len(normals)


def normal_cdf(x):
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


def black_scholes(s, k, sigma):
    out = np.empty_like(s)
    for i in prange(len(s)):
        d1 = (math.log(s[i] / k[i]) + 0.5 * sigma**2) / sigma
        out[i] = s[i] * normal_cdf(d1) - k[i] * normal_cdf(d1 - sigma)
    return out


def garch(returns, omega, alpha, beta):
    variance, ll = omega / (1 - alpha - beta), 0.0
    for i in range(len(returns)):
        ll -= 0.5 * (math.log(variance) + returns[i] ** 2 / variance)
        variance = omega + alpha * returns[i] ** 2 + beta * variance
    return ll


def exponential_smoothing(x, alpha):
    out = np.empty_like(x)
    out[0] = x[0]
    for i in range(1, x.size):
        out[i] = alpha * x[i] + (1 - alpha) * out[i - 1]
    return out


def crf(scores, moves):
    n, m = scores.shape
    alpha = scores[0].copy()
    for t in range(1, n):
        new = np.empty(m)
        for j in range(m):
            top = (alpha + moves[:, j]).max()
            new[j] = top + math.log(np.sum(np.exp(alpha + moves[:, j] - top))) + scores[t, j]
        alpha = new
    return math.log(np.exp(alpha).sum())


def attention(q, k, v):
    n, d = q.shape
    out = np.zeros((n, v.shape[1]))
    for i in range(n):
        weights = np.empty(n)
        for j in range(n):
            weights[j] = math.exp(np.dot(q[i], k[j]) / math.sqrt(d))
        weights /= weights.sum()
        for j in range(n):
            out[i] += weights[j] * v[j]
    return out


def layer_norm(x, scale, shift):
    out = np.empty_like(x)
    for i in range(x.shape[0]):
        row = x[i]
        out[i] = (row - row.mean()) / np.sqrt(row.var() + 1e-3) * scale + shift
    return out


def softmax_rows(x):
    out = x.copy()
    for row in out:
        row -= row.max()
        row[:] = np.exp(row)
        row /= row.sum()
    return out


def soft_assignment(x, centers, beta):
    out = np.empty((len(x), len(centers)))
    for i in range(len(x)):
        for c in range(len(centers)):
            out[i, c] = math.exp(-beta * np.sum((x[i] - centers[c]) ** 2))
        out[i] /= np.sum(out[i])
    return out


def sinkhorn(cost, rounds):
    n, m = cost.shape
    kernel = np.exp(-cost)
    u, v = np.ones(n), np.ones(m)
    for _ in range(rounds):
        u = 1.0 / (kernel @ v)
        v = 1.0 / (kernel.T @ u)
    total = 0.0
    for i in range(n):
        for j in range(m):
            total += u[i] * kernel[i, j] * v[j] * cost[i, j]
    return total


def level_set(phi, dt):
    out = phi.copy()
    for i in range(1, phi.shape[0] - 1):
        for j in range(1, phi.shape[1] - 1):
            dx = (phi[i + 1, j] - phi[i - 1, j]) * 0.5
            dy = (phi[i, j + 1] - phi[i, j - 1]) * 0.5
            out[i, j] -= dt * math.sqrt(dx * dx + dy * dy + 1e-4)
    return out


def fade(t):
    return t * t * t * (t * (t * 6 - 15) + 10)


def perlin(gradients, x):
    i = int(np.floor(x))
    f = x - i
    left = gradients[i % len(gradients)] * f
    right = gradients[(i + 1) % len(gradients)] * (f - 1.0)
    return left + fade(f) * (right - left)


def rotate(q, v):
    w, x, y, z = q
    tx, ty = 2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2])
    tz = 2 * (x * v[1] - y * v[0])
    out = np.empty(3)
    out[0] = v[0] + w * tx + y * tz - z * ty
    out[1] = v[1] + w * ty + z * tx - x * tz
    out[2] = v[2] + w * tz + x * ty - y * tx
    return out


def bundle_residuals(cameras, points, seen, which):
    out = np.empty((len(which), 2))
    for k in range(len(which)):
        camera, point = cameras[which[k, 0]], points[which[k, 1]]
        depth = point[2] + camera[2] + 4.0
        out[k, 0] = camera[3] * (point[0] + camera[0]) / depth - seen[k, 0]
        out[k, 1] = camera[3] * (point[1] + camera[1]) / depth - seen[k, 1]
    return out


def mesh_area(vertices, faces):
    area = 0.0
    for a, b, c in faces:
        u, v = vertices[b] - vertices[a], vertices[c] - vertices[a]
        nx, ny = u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2]
        nz = u[0] * v[1] - u[1] * v[0]
        area += 0.5 * math.sqrt(nx * nx + ny * ny + nz * nz)
    return area


def messages(x, edges, weights, rounds):
    state = x.copy()
    for _ in range(rounds):
        inbox = np.zeros_like(state)
        for k, edge in enumerate(edges):
            inbox[edge[1]] += weights[k] * state[edge[0]]
        state = np.tanh(state + inbox)
    return state


def segment_sums(x, starts, out):
    for s in range(len(starts) - 1):
        for i in range(starts[s], starts[s + 1]):
            out[s] += x[i] * x[i]


def table_lookup(xs, ys, at):
    total = 0.0
    for t in at:
        low, high = 0, len(xs) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if xs[middle] > t:
                high = middle
            else:
                low = middle
        total += ys[low] + (ys[high] - ys[low]) * (t - xs[low]) / (xs[high] - xs[low])
    return total


def first_crossing(x, level):
    for i in range(1, len(x)):
        if x[i] < 0.05:
            continue
        if x[i] >= level:
            return i - 1 + (level - x[i - 1]) / (x[i] - x[i - 1])
    return -1.0


def median_free(x, rounds):
    y = x.copy()
    for _ in range(rounds):
        z = y.copy()
        for i in range(1, len(x) - 1):
            z[i] = max(min(y[i - 1], y[i]), min(max(y[i - 1], y[i]), y[i + 1]))
        y = z
    return y


def weighted_pairs(xs, pair, scale=2.0):
    total = 0.0
    for x, y in zip(xs, xs[::-1]):  # noqa: B905, which Numba does not know
        total += pair[0] * x * y + pair[1] * math.cos(scale * x)
    return total


def short_forms(a, b, m):
    total = np.sum(np.diff(a) ** 2) + np.trace(m) * np.vdot(a, b)
    for x in b:
        total += np.interp(x, np.array((-1.0, -0.2, 0.3, 1.0)), a)
    normal = np.cross(np.concatenate((a[:2], b[:1])), m[1])
    return total + np.dot(normal, normal) + np.sum(np.linalg.norm(m, axis=1))


def wave_history(start, speed, steps):
    n, m = start.shape
    u = np.zeros((steps + 1, n, m))
    u[0], u[1] = start, start
    misfit = 0.0
    for t in range(1, steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                around = u[t, i - 1, j] + u[t, i + 1, j] + u[t, i, j - 1] + u[t, i, j + 1]
                change = speed[i, j] ** 2 * (around - 4.0 * u[t, i, j])
                u[t + 1, i, j] = 2.0 * u[t, i, j] - u[t - 1, i, j] + change
        misfit += u[t + 1, n // 2, m // 2] ** 2
    return misfit


def wave_in_turns(start, speed, steps):
    old, now, new = start.copy(), start.copy(), start.copy()
    for _ in range(steps):
        for i in range(1, len(now) - 1):
            change = speed[i] * now[i] * (now[i - 1] - 2.0 * now[i] + now[i + 1])
            new[i] = 2.0 * now[i] - old[i] + change
        old, now, new = now, new, old
    return now


def tridiagonal_likelihood(diagonal, off, x):
    """A Gaussian whose precision matrix is tridiagonal."""
    pivot = diagonal[0]
    result = math.log(pivot) - diagonal[0] * x[0] ** 2
    for i in range(1, len(x)):
        pivot = diagonal[i] - off[i - 1] ** 2 / pivot
        result += math.log(pivot) - diagonal[i] * x[i] ** 2 - 2.0 * off[i - 1] * x[i] * x[i - 1]
    return 0.5 * result


def natural_spline(knots, values, at):
    n = len(knots)
    second, gamma = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        left, right = knots[i] - knots[i - 1], knots[i + 1] - knots[i]
        slope = (values[i + 1] - values[i]) / right - (values[i] - values[i - 1]) / left
        scale = 2.0 * (left + right) - left * gamma[i - 1]
        gamma[i] = right / scale
        second[i] = (6.0 * slope - left * second[i - 1]) / scale
    for i in range(n - 2, 0, -1):
        second[i] -= gamma[i] * second[i + 1]
    total = 0.0
    for t in at:
        i = 0
        while i < n - 2 and t > knots[i + 1]:
            i += 1
        h = knots[i + 1] - knots[i]
        a, b = (knots[i + 1] - t) / h, (t - knots[i]) / h
        bend = (a**3 - a) * second[i] + (b**3 - b) * second[i + 1]
        total += (a * values[i] + b * values[i + 1] + bend * h * h / 6.0) ** 2
    return total


def shortest_path(cost, gamma):
    n, m = cost.shape
    far = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            if i == 0 and j == 0:
                far[i, j] = cost[i, j]
            elif i == 0:
                far[i, j] = cost[i, j] + far[i, j - 1]
            elif j == 0:
                far[i, j] = cost[i, j] + far[i - 1, j]
            else:
                best = soft_min(far[i - 1, j], far[i, j - 1], far[i - 1, j - 1], gamma)
                far[i, j] = cost[i, j] + best
    return far[n - 1, m - 1]


def ising_lattice(spins, coupling):
    n, m = spins.shape
    energy = 0.0
    for i in range(n):
        for j in range(m):
            around = spins[(i + 1) % n, j] + spins[i, (j + 1) % m]
            energy -= coupling[i, j] * math.tanh(spins[i, j]) * around
    return energy


WEIGHTS = np.array([4 / 9] + [1 / 9] * 4 + [1 / 36] * 4)
SPEEDS = np.array([[0, 0], [1, 0], [0, 1], [-1, 0], [0, -1], [1, 1], [-1, 1], [-1, -1], [1, -1]])


def lattice_boltzmann_step(f, omega):
    _, n, m = f.shape
    new = np.empty_like(f)
    for i in range(n):
        for j in range(m):
            rho = ux = uy = 0.0
            for k in range(9):
                rho += f[k, i, j]
                ux += SPEEDS[k, 0] * f[k, i, j]
                uy += SPEEDS[k, 1] * f[k, i, j]
            ux, uy = ux / rho, uy / rho
            for k in range(9):
                e = 3.0 * (SPEEDS[k, 0] * ux + SPEEDS[k, 1] * uy)
                equal = WEIGHTS[k] * rho * (1.0 + e + 0.5 * e * e - 1.5 * (ux * ux + uy * uy))
                out = f[k, i, j] - omega * (f[k, i, j] - equal)
                new[k, (i + SPEEDS[k, 0]) % n, (j + SPEEDS[k, 1]) % m] = out
    return new


def mixture(points, centers, width):
    likelihood = 0.0
    for x in points:
        density = 0.0
        for c in range(len(centers)):
            z = (x - centers[c]) / width
            density += math.exp(-0.5 * z * z) * (1.0 + 0.1 * math.sin(z))
        likelihood += math.log(density / (len(centers) * width))
    return likelihood


def running_peaks(x, n):
    """Sums of few or no terms, at places that only loops with terms may touch."""
    out = np.zeros(len(x))
    for i in range(n):
        for j in range(i - 1):
            out[i - 2] += x[j] * x[i]
    return out


def rounded(a, x):
    total = np.sum(np.clip(a, -0.5, 0.4)) + np.sign(x) * np.sum(np.floor(a) * a) + x**2
    total += np.trunc(3 * x) * x + np.rint(x * 2) + np.fix(-2.5 * x) * x + np.sum(np.sinc(a))
    total += math.fmod(5.0 * x, 0.7) + np.fmod(-5.0 * x, 0.7) + np.floor_divide(x, 0.3) * x
    total += math.copysign(x, -2.0) * x + np.copysign(x, 3.0) + np.heaviside(x, 0.5) * np.sinc(x)
    total += np.fmax(x, a[0]) * np.fmin(x * x, a[1]) + np.degrees(x) + math.radians(x)
    inner = np.logical_and(a > 0.0, np.logical_not(a > 0.9))
    total += np.sum(np.where(np.logical_xor(inner, a < 0.2), a, a * a))
    if np.isfinite(x) and not (np.isnan(x) or math.isinf(x)):
        total += np.square(x)
    return total


def stacked(a, x, n):
    pair = np.stack((a, a[::-1] * x))
    total = np.sum(np.diag(pair @ pair.T)) + np.sum(np.diag(a) @ a) + np.sum(np.eye(n) * x)
    levels = np.array((-1.0, 0.0, 0.5))
    for y in a:
        total += y * np.searchsorted(levels, y) * x
    total += x * np.searchsorted(levels, 0.5, side="right") + np.argmin(a * x) * a[1]
    total += np.argmax(a) * x + np.sum(np.cumsum(a) * np.cumprod(a)) + x * np.arange(5).cumsum()[3]
    return total + np.sum(np.linspace(x, 2.0, 5) ** 2) + np.sum(np.outer(a, a * x)) + a.std()


def toeplitz_solve(t, b):
    """Levinson's recursion, whose vectors grow from round to round."""
    n = len(b)
    forward, x = np.zeros(n), np.zeros(n)
    forward[0], x[0] = 1.0 / t[0], b[0] / t[0]
    for k in range(1, n):
        old = forward[:k].copy()
        error = np.dot(t[1 : k + 1][::-1], old)
        scale = 1.0 / (1.0 - error * error)
        new = np.zeros(k + 1)
        new[:k] += scale * old
        new[1:] -= scale * error * old[::-1]
        forward[: k + 1] = new
        x[: k + 1] += (b[k] - np.dot(t[1 : k + 1][::-1], x[:k])) * new[::-1]
    return x


def windows(a, x, n):
    total = 0.0
    for k in range(n, -1, -1):
        size = k - 1 if k > 2 else 2 * k
        part = np.full((size, 2), x) * a[: k % 3].sum()
        tail = np.cumsum(a[k % len(a) :]) + x
        tail[0] *= math.tanh(total)
        for j in range(k // 2):
            tail += np.ones(k % 2 + j)[:1].sum()
        total += np.sum(part**2) + np.sum(tail * tail)
    return total


def crossing(x, level):
    for i in range(1, len(x)):
        if x[i] >= level:
            return i - 1 + (level - x[i - 1]) / (x[i] - x[i - 1]), x[i] * x[i - 1]
    return -level, x[0]


def pair_of_states(x, rounds):
    pair, last = (x, 1.0), (0.0, x)
    while True:
        for _ in range(rounds):
            pair = (pair[1] * 0.5, pair[0] + math.sin(last[1]))
        last = pair
        rounds += 1
        if pair[1] > 1.7 or rounds > 6:
            return last[1], pair[0] * pair[1]


def filtered_states(z, move, noise):
    """A Kalman filter of two states, with matrices."""
    x, cov, total = np.zeros(2), np.eye(2), 0.0
    for k in range(len(z)):
        x = move @ x
        cov = move @ cov @ move.T + noise * np.eye(2)
        spread = cov + 0.5 * np.eye(2)
        miss = z[k] - x
        total += miss @ np.linalg.solve(spread, miss)
        gain = cov @ np.linalg.inv(spread)
        x = x + gain @ miss
        cov = (np.eye(2) - gain) @ cov
    return total, cov


def process_likelihood(x, y, width):
    """A Gaussian process, by a Cholesky factor."""
    n = len(x)
    cov = np.eye(n) * 0.1
    for i in range(n):
        for j in range(n):
            cov[i, j] += math.exp(-((x[i] - x[j]) ** 2) / width)
    low = np.linalg.cholesky(cov)
    white = np.linalg.solve(low, y)
    return white @ white + 2.0 * np.sum(np.log(np.diag(low)))


def ranked(x, weights):
    order = np.argsort(x)
    total = np.median(x) ** 2 + np.median(x[1:])
    for k in range(len(order)):
        total += weights[k] * x[order[k]] ** 2
    return total, np.sort(x) * np.flip(weights)


def smoothed(x, w):
    inner, outer = np.convolve(x, w, "valid"), np.convolve(w, x)
    area = np.trapezoid(inner, dx=0.5) + np.trapezoid(x * x, np.cumsum(x * x))
    return np.convolve(x, w, mode="same") * np.roll(x, -2), area * np.sum(outer**2)


def at_indices(x, m, order):
    near = x[order] * x[order[::-1] - 1] + x[-1 - order % 2]
    rows, columns = m[order], m[1:, order]
    return near, rows[::2] * np.sum(columns) + m[INDICES[:, 0], :2].sum(axis=1)[0]


SQUARE = p(4, 4) * 0.3 + 2.0 * np.eye(4)
INDICES = np.array([[0, 1], [1, 2], [2, 0], [1, 0]])


def running_sum(a, b):
    s, total = 0.0, 0.0
    for i in range(1, len(a)):
        s += a[i] - 0.5 * a[i - 1]
        total += s * b[i]
    s = 0.0
    for i in range(1, len(a)):
        s += a[i] + a[i - 1]
        total += s * b[i]
    return total


def steps_of_a_counter(a):
    """Adds at places that a counter tells, not the loop's index."""
    out, k = np.zeros(2 * len(a) + 2), 0
    for i in range(len(a)):
        out[k] += a[i]
        out[k + 1] += a[i] * a[i]
        k += 2 if a[i] > 0 else 1
    return out


def reloaded(a, n):
    """Quotients that are read again where they are stored, and others that change later."""
    u, v = np.zeros((n + 2, len(a))), np.empty(len(a))
    u[0] = a
    total = 0.0
    for k in range(1, n):
        for i in range(1, len(a) - 1):
            v[i] = u[k - 1, i - 1] / (1.0 + a[i] ** 2)
            q = v[i] / (2.0 + math.cos(a[i + 1]))
            u[k + 1, i] = q
            u[k, i] += math.exp(q * v[i])
            total += u[k + 1, i] ** 2 + v[i]
    return total


CASES = [
    (box_filter, (r(5, 4),)),
    (sobel, (r(4, 5),)),
    (bilateral, (r(6), 0.8)),
    (heat, (r(6), 3, 0.2)),
    (upwind, (r(5), 0.7, 2)),
    (burgers_volumes, (r(6), 2)),
    (n_body_energy, (r(4, 3), p(4))),
    (soft_dtw, (r(4), r(3), 0.5)),
    (kalman, (r(5), 0.3, 0.7)),
    (thomas, (r(5) * 0.3, p(5) + 1.5, r(5) * 0.3, r(5))),
    (path_action, (r(6), 0.3)),
    (spline, (np.array([0.0, 0.5, 1.2, 2.0]), r(4), 0.8)),
    (kernel_histogram, (r(5), np.linspace(-1, 1, 4), 0.5)),
    (ray_march, (p(5), 0.4)),
    (potts, (np.array([[0, 1], [2, 1], [0, 0]]), r(3, 3), p(3))),
    (hmm_forward, (p(3), p(3, 3), p(3, 2), np.array([0, 1, 1, 0]))),
    (ising, (r(5), 0.4, r(5))),
    (lattice_boltzmann, (p(3, 4), 0.8)),
    (random_walk, (r(6), 0.2, 0.5)),
    (convolution, (r(6), r(3))),
    (page_rank, (p(4, 4), 0.85, 2)),
    (gauss_seidel, (SQUARE, r(4), 2)),
    (jacobi, (SQUARE, r(4), 3)),
    (lu, (SQUARE,)),
    (cholesky, (SQUARE @ SQUARE.T,)),
    (triangular_solve, (SQUARE, r(4))),
    (filtered_states, (r(3, 2), r(2, 2), 0.4)),
    (process_likelihood, (r(4), r(4), 0.7)),
    (ranked, (r(6), r(6))),
    (at_indices, (r(5), r(4, 3), np.array([2, -1, 0, 2]))),
    (smoothed, (r(6), r(3))),
    (gram_schmidt, (SQUARE[:, :3],)),
    (power_iteration, (SQUARE, 2)),
    (butterflies, (r(4), r(4))),
    (verlet, (r(3), r(3), 0.1, 3)),
    (runge_kutta, (0.7, 0.4, 1.1, 0.6, 2)),
    (logistic_growth, (2.9, 0.3, 5)),
    (monte_carlo, (r(4, 3), 1.0, 0.95, 0.3)),
    (black_scholes, (p(4), p(4), 0.4)),
    (garch, (r(5), 0.1, 0.2, 0.6)),
    (exponential_smoothing, (r(6), 0.3)),
    (crf, (r(4, 3), r(3, 3))),
    (attention, (r(3, 2), r(3, 2), r(3, 2))),
    (layer_norm, (r(2, 4), r(4), r(4))),
    (softmax_rows, (r(3, 3),)),
    (soft_assignment, (r(3, 2), r(2, 2), 0.9)),
    (sinkhorn, (p(3, 2), 3)),
    (level_set, (r(4, 4), 0.1)),
    (perlin, (r(4), 1.3)),
    (rotate, ((0.8, 0.2, -0.4, 0.3), r(3))),
    (bundle_residuals, (r(3, 4), r(3, 3), r(4, 2), INDICES)),
    (mesh_area, (r(4, 3), np.array([[0, 1, 2], [1, 2, 3]]))),
    (messages, (r(3), INDICES, r(4), 2)),
    (segment_sums, (r(6), np.array([0, 2, 5, 6]), r(3))),
    (table_lookup, (np.array([0.0, 0.4, 1.0, 1.7]), r(4), np.array([0.2, 1.1, 1.6]))),
    (first_crossing, (np.array([0.1, 0.02, 0.3, 0.9, 1.5]), 0.8)),
    (median_free, (r(6), 2)),
    (short_forms, (r(4), r(4), r(3, 3))),
    (wave_history, (r(5, 5), p(5, 5), 3)),
    (wave_in_turns, (r(6), p(6), 3)),
    (kalman_of_velocity, (r(6), 0.4, 0.5, 0.7)),
    (tridiagonal_likelihood, (p(6) + 1.5, r(5) * 0.5, r(6))),
    (natural_spline, (np.array([0.0, 0.5, 1.2, 2.0, 2.4]), r(5), np.array([0.2, 1.3, 2.2]))),
    (shortest_path, (p(4, 3), 0.5)),
    (ising_lattice, (r(3, 4), r(3, 4))),
    (lattice_boltzmann_step, (p(9, 3, 4), 0.7)),
    (mixture, (r(4), r(5), 0.6)),
    (running_peaks, (r(5), 5)),
    # Loops of more rounds than a vector has, or a chunk of terms
    (sobel, (r(4, 30),)),
    (heat, (r(300), 2, 0.2)),
    (burgers_volumes, (r(280), 2)),
    (n_body_energy, (r(24, 3), p(24))),
    (kernel_histogram, (r(3), np.linspace(-1, 1, 600), 0.5)),
    (wave_history, (r(4, 30), p(4, 30), 3)),
    (wave_in_turns, (r(300) * 0.3, p(300) * 0.2, 2)),
    (mixture, (r(3), r(600), 0.6)),
    (convolution, (r(40), r(17))),
    (soft_dtw, (r(20), r(19), 0.5)),
    (thomas, (r(40) * 0.3, p(40) + 1.5, r(40) * 0.3, r(40))),
    (exponential_smoothing, (r(40), 0.3)),
    (path_action, (r(40) * 0.1, 0.3)),
    (shortest_path, (p(18, 20), 0.5)),
    (upwind, (r(30), 0.7, 2)),
    (level_set, (r(4, 30), 0.1)),
    (median_free, (r(30), 2)),
    (lattice_boltzmann, (p(3, 30), 0.8)),
    (gauss_seidel, (np.eye(20) * 3 + r(20, 20) * 0.2, r(20), 2)),
    (cholesky, (np.eye(20) * 3 + 0.1 * np.ones((20, 20)),)),
    (hmm_forward, (p(18), p(18, 18), p(18, 2), np.array([0, 1, 1]))),
    (black_scholes, (p(40), p(40), 0.4)),
    (rounded, (np.array([0.3, -0.7, 1.1, 0.45]), 0.37)),
    (stacked, (np.array([0.3, -0.7, 1.1, 0.45]), 0.37, 3)),
    (toeplitz_solve, (np.array([2.0, 0.5, -0.3, 0.2]), r(4))),
    (windows, (r(4), 0.4, 6)),
    (crossing, (np.array([0.1, 0.02, 0.3, 0.9, 1.5]), 0.8)),
    (crossing, (np.array([0.1, 0.02, 0.3, 0.9, 1.5]), 8.0)),
    (pair_of_states, (0.9, 3)),
    (weighted_pairs, (r(4), (0.3, 0.8))),
    (running_sum, (r(40), r(40))),
    (steps_of_a_counter, (r(40),)),
    (reloaded, (r(20), 4)),
]
