"""Dual coordinate ascent as a plain loop, and problems it is for: what the kernel is compared with."""

import math

import numpy as np
import scipy.sparse as sp
from catalogue import Sample, dense

from linsep.losses import Huber, HuberisedHinge, get, names_with

LOSSES = [get(name) for name in names_with("native_ascent")] + [HuberisedHinge(0.25), Huber(0.3)]


def move(loss, margin, u, q):
    """The solution u of  u = -l'(c + q u),  c = margin - q u_now."""
    c = margin - q * u
    if loss.name != "logistic":
        ridge = 1.0 / loss.curvature_bound if loss.smooth else 0.0
        if ridge + q == 0.0:  # nothing but the margin decides
            return float(loss.domain[int(c < 1.0)])
        return float(np.clip((1.0 - c) / (ridge + q), *loss.domain))
    v = u * (1.0 - u)
    if v > 1e-12:  # a small step is made in u, to second order
        scale = 1.0 / (q + 1.0 / v)
        step = (math.log((1.0 - u) / u) - margin) * scale
        if abs(step) <= 0.03 * v:
            return u + step * (1.0 + 0.5 * scale * (1.0 - 2.0 * u) / v**2 * step)
    flip = c + 0.5 * q < 0.0
    if flip:
        c, margin = -c - q, -margin
    m = min(max(margin, c, 0.0), c + 0.5 * q)
    while True:  # Newton's method, its last step to second order
        e = math.exp(-m)
        p, h = e / (1.0 + e), q * e / (1.0 + e) ** 2
        step = (c + q * p - m) / (1.0 + h)
        if abs(step) <= 0.05:
            bend = 0.5 - p
            step += bend * h / (1.0 + h) * step**2
            p -= p * (1.0 - p) * step * (1.0 - bend * step)
            return 1.0 - p if flip else p
        m = max(m + step, c, 0.0)


def epoch(sample, loss, lam, stiffness, rows, u, theta, e):
    """One visit to the given rows; u and theta change in place, e is returned."""
    X = dense(sample.X)
    for i in rows:
        s = 1.0 if sample.weight is None else sample.weight[i]
        if s == 0.0:
            continue
        b = theta[-1] + stiffness * e
        margin = sample.sign[i] * (X[i] @ theta[:-1] + b)
        margin += 0.0 if sample.offset is None else sample.offset[i]
        new = move(loss, margin, u[i], s * (X[i] @ X[i] / lam + stiffness))
        mass = s * sample.sign[i] * (new - u[i])
        u[i], e = new, e + mass
        theta[:-1] += mass / lam * X[i]
    return e


def many(n=83, d=9, seed=3):
    """Weights (some zero), offsets, an empty row, and more rows than a bucket."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    X[5] = 0.0
    X = X.astype(np.float32).astype(float)  # so that every storage holds the same numbers
    sign = np.where(rng.random(n) < 0.3, 1.0, -1.0)
    return Sample(X, sign, 0.3 * rng.normal(size=n), rng.choice([0.0, 0.5, 1.0, 3.0], size=n))


def text(n=400, d=900, seed=0, noise=0.1, words=12):
    """Short rows of unit length with few common features, one class rarer: what this solver is for."""
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, d + 1)
    columns = rng.choice(d, size=(n, words), p=share / share.sum())
    start = np.arange(0, words * n + 1, words)
    X = sp.csr_matrix((np.ones(words * n), columns.ravel(), start), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))))
    z = X @ rng.normal(size=d)
    sign = np.where(z + noise * rng.normal(size=n) > np.quantile(z, 0.7), 1.0, -1.0)
    return Sample(X, sign)
