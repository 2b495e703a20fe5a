"""Tables on which the choice of a solver is calibrated, and others on which it is judged. y is in {-1, +1}.

The two lists share no generator. ``CALIBRATION`` holds tables of a few families over a grid of sizes, with two sets
that come with scikit-learn. ``HELD_OUT`` holds other families and other sets. Sets of the directory LINSEP_BENCH_DATA
join either list if they are there; nothing depends on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import datasets
import generators
import numpy as np
import scipy.fft
import scipy.sparse as sp

Made = tuple[Any, np.ndarray]


def _labels(rng: np.random.Generator, scores: np.ndarray, noise: float = 1.0) -> np.ndarray:
    """Labels of the logistic model of the scores, scaled to standard deviation 2 / noise."""
    z = (scores - np.median(scores)) * (2.0 / (noise * max(float(scores.std()), 1e-300)))
    return np.where(z + rng.logistic(size=len(z)) > 0, 1.0, -1.0)


def decaying(
    n: int, d: int, power: float, noise: float = 1.0, mean: float = 0.0, seed: int = 0
) -> Made:
    """Gaussian rows whose covariance has the eigenvalues j^(-2 power), of mean |x|^2 = d, plus a common mean."""
    rng = np.random.default_rng(seed)
    size = np.arange(1.0, d + 1.0) ** -power
    G = rng.standard_normal((n, d)) * (size * np.sqrt(d / np.sum(size**2)))
    z = G @ rng.standard_normal(d)
    X = scipy.fft.dct(G, axis=1, norm="ortho") + mean
    return np.ascontiguousarray(X), _labels(rng, z, noise)


def unscaled(n: int, d: int, decades: float, seed: int = 0) -> Made:
    """Positive skewed columns with common factors, whose sizes span so many decades."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    z = X @ rng.standard_normal(d)
    X = np.exp(0.3 * X) * 10.0 ** rng.uniform(-decades / 2, decades / 2, d)
    return X, _labels(rng, z)


def indicators(
    n: int, d: int, per_row: int, noise: float, dense: bool = False, seed: int = 0
) -> Made:
    """One-hot groups: every row has one 1 in each of ``per_row`` groups of columns, of geometric frequency."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0, d, per_row + 1).astype(int)
    taste = rng.standard_normal((n, 2))
    columns = []
    for lo, hi in pairwise(edges):
        base = -0.4 * np.arange(hi - lo) + rng.standard_normal(hi - lo)
        pull = taste @ rng.standard_normal((2, hi - lo))
        columns.append(lo + (base + pull + rng.gumbel(size=(n, hi - lo))).argmax(axis=1))
    index = np.stack(columns, axis=1).astype(np.int32)
    X = sp.csr_matrix(
        (np.ones(n * per_row), index.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d)
    )
    y = _labels(rng, X @ rng.standard_normal(d), noise)
    return (X.toarray() if dense else X), y


def _pictures(n: int, seed: int) -> Made:
    X, y = generators.pictures(n, seed=seed)
    return X, np.where(y == 3, 1.0, -1.0)


def _stored(name: str) -> Callable[[], Made]:
    return lambda: datasets.load(name)


_CALIBRATION: dict[str, Callable[[], Made]] = {
    "digits": _stored("digits"),
    "cancer": _stored("cancer"),
    "decaying 500 x 30": lambda: decaying(500, 30, 0.5),
    "decaying 2,000 x 20": lambda: decaying(2_000, 20, 0.0),
    "decaying 1,000 x 100": lambda: decaying(1_000, 100, 0.5),
    "decaying 4,000 x 50": lambda: decaying(4_000, 50, 1.0, noise=0.3),
    "decaying 50,000 x 10": lambda: decaying(50_000, 10, 0.3),
    "decaying 100,000 x 30": lambda: decaying(100_000, 30, 0.5),
    "decaying 20,000 x 60": lambda: decaying(20_000, 60, 0.0),
    "decaying 20,000 x 100": lambda: decaying(20_000, 100, 0.7, noise=0.5),
    "decaying 20,000 x 150": lambda: decaying(20_000, 150, 0.0),
    "decaying 6,000 x 200": lambda: decaying(6_000, 200, 0.0, noise=0.5),
    "decaying 10,000 x 200": lambda: decaying(10_000, 200, 0.3),
    "decaying 12,000 x 256": lambda: decaying(12_000, 256, 0.7, seed=1),
    "decaying 5,000 x 300": lambda: decaying(5_000, 300, 1.0),
    "decaying 1,500 x 400": lambda: decaying(1_500, 400, 0.5),
    "decaying 400 x 150": lambda: decaying(400, 150, 0.0),
    "decaying 1,500 x 80": lambda: decaying(1_500, 80, 0.0, noise=0.5),
    "decaying 1,000 x 400": lambda: decaying(1_000, 400, 0.0),
    "decaying 4,000 x 500": lambda: decaying(4_000, 500, 0.0, noise=2.0),
    "decaying 2,500 x 800": lambda: decaying(2_500, 800, 0.7, noise=0.3),
    "decaying 4,000 x 1,000": lambda: decaying(4_000, 1_000, 1.0, mean=0.5),
    "decaying 1,000 x 1,000": lambda: decaying(1_000, 1_000, 0.7),
    "decaying 500 x 2,000": lambda: decaying(500, 2_000, 0.0),
    "decaying 800 x 2,500": lambda: decaying(800, 2_500, 1.0),
    "decaying 200 x 5,000": lambda: decaying(200, 5_000, 0.5),
    "decaying 1,200 x 3,000": lambda: decaying(1_200, 3_000, 0.7, seed=2),
    "decaying 300,000 x 25": lambda: decaying(300_000, 25, 0.3, noise=2.0),
    "unscaled 250,000 x 20": lambda: unscaled(250_000, 20, 3.0),
    "unscaled 30,000 x 40": lambda: unscaled(30_000, 40, 3.0),
    "unscaled 3,000 x 300": lambda: unscaled(3_000, 300, 2.0),
    "unscaled 1,000 x 2,000": lambda: unscaled(1_000, 2_000, 2.0),
    "pictures 2,500 x 784": lambda: _pictures(2_500, 0),
    "indicators 6,000 x 85, dense": lambda: indicators(6_000, 85, 12, 1.0, dense=True),
    "indicators 3,000 x 400, dense": lambda: indicators(3_000, 400, 30, 0.5, dense=True),
    "indicators 20,000 x 120": lambda: indicators(20_000, 120, 14, 1.0),
    "indicators 5,000 x 500": lambda: indicators(5_000, 500, 40, 0.3),
    "indicators 40,000 x 300": lambda: indicators(40_000, 300, 10, 0.3),
    "indicators 10,000 x 3,000": lambda: indicators(10_000, 3_000, 25, 1.0),
    "text 5,000 x 9,000": lambda: generators.text(5_000, 9_000, 15),
    "text 8,000 x 15,000": lambda: generators.text(8_000, 15_000, 60),
    "text 3,000 x 30,000": lambda: generators.text(3_000, 30_000, 150),
    "text 40,000 x 5,000": lambda: generators.text(40_000, 5_000, 20),
    "text 1,000 x 10,000": lambda: generators.text(1_000, 10_000, 40),
}
_CALIBRATION_STORED = ("spambase", "spambase_raw", "a9a", "sms")


def factors(n: int, d: int, k: int, noise: float, heavy: bool = False, seed: int = 0) -> Made:
    """Rows of k common factors plus noise of the given size; with heavy tails if asked (Student, 4 degrees)."""
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((n, k))
    X = F @ rng.standard_normal((k, d)) / np.sqrt(k) + noise * (
        rng.standard_t(4, (n, d)) if heavy else rng.standard_normal((n, d))
    )
    return X, _labels(rng, F @ rng.standard_normal(k) + 0.3 * X[:, : min(d, 5)].sum(axis=1))


def spectra(n: int, d: int, seed: int = 0) -> Made:
    """Smooth positive curves, as spectrometers record them: neighbouring columns are nearly the same."""
    rng = np.random.default_rng(seed)
    at = np.linspace(0.0, 1.0, d)
    centre, width = rng.uniform(0, 1, 12), rng.uniform(0.02, 0.15, 12)
    peaks = np.exp(-0.5 * ((at - centre[:, None]) / width[:, None]) ** 2)
    amount = rng.gamma(2.0, 1.0, (n, 12))
    X = amount @ peaks + 0.01 * rng.standard_normal((n, d)).cumsum(axis=1) / np.sqrt(d)
    return X + 0.02 * rng.standard_normal((n, d)), _labels(
        rng, amount @ rng.standard_normal(12), 0.5
    )


def embeddings(n: int, d: int, seed: int = 0) -> Made:
    """Unit rows: a mixture of twenty centres with anisotropic noise."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 20, n)
    scale = np.exp(-np.arange(d) / (0.3 * d))
    X = 0.6 * rng.standard_normal((20, d))[kind] + rng.standard_normal((n, d)) * scale + 0.3
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(kind < 8, 1.0, -1.0)
    return X, np.where(rng.random(n) < 0.05, -y, y)


def counts(n: int, d: int, words: int, topics: int = 10, seed: int = 0) -> Made:
    """Raw word counts of documents that mix topics (CSR): rows of unlike length, not normalised."""
    rng = np.random.default_rng(seed)
    zipf = 1.0 / (np.arange(d) + 5.0)
    mix = rng.dirichlet(np.full(topics, 0.3), n)
    shift = rng.permuted(np.tile(zipf, (topics, 1)), axis=1) + 0.2 * zipf
    shift = np.cumsum(shift / shift.sum(axis=1, keepdims=True), axis=1)
    length = 1 + rng.geometric(1.0 / words, n)
    topic = np.concatenate([rng.choice(topics, m, p=p) for m, p in zip(length, mix, strict=True)])
    row = np.repeat(np.arange(n), length)
    column = np.empty(len(row), dtype=np.int64)
    for t in range(topics):
        at = topic == t
        column[at] = np.minimum(np.searchsorted(shift[t], rng.random(int(at.sum()))), d - 1)
    X = sp.csr_matrix((np.ones(len(row)), (row, column)), (n, d))
    X.sum_duplicates()
    return X, _labels(rng, mix @ rng.standard_normal(topics))


def rare(n: int, d: int, share: float, seed: int = 0) -> Made:
    """A dense table with a rare class: two overlapping normal distributions with unequal covariances."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < share, 1.0, -1.0)
    X = rng.standard_normal((n, d)) * np.where(y[:, None] > 0, 1.5, 1.0)
    X[:, : d // 3] += 0.8 * (y[:, None] > 0)
    return X, y


def surveys(n: int, d: int, seed: int = 0) -> Made:
    """Dense columns of integers 0 to 4 with a common tendency of the row, half of them 0/1, unscaled."""
    rng = np.random.default_rng(seed)
    lean = rng.standard_normal((n, 2)) @ rng.standard_normal((2, d))
    X = np.clip(np.round(2.0 + lean + rng.standard_normal((n, d))), 0, 4)
    X[:, : d // 2] = X[:, : d // 2] > 3
    return X, _labels(rng, X @ rng.standard_normal(d), 2.0)


def _wine() -> Made:
    from sklearn.datasets import load_wine

    X, y = load_wine(return_X_y=True)
    return np.ascontiguousarray((X - X.mean(0)) / X.std(0)), np.where(y == 1, 1.0, -1.0)


def _diabetes() -> Made:
    from sklearn.datasets import load_diabetes

    X, t = load_diabetes(return_X_y=True)
    return X, np.where(t > np.median(t), 1.0, -1.0)


_HELD_OUT: dict[str, Callable[[], Made]] = {
    "wine": _wine,
    "diabetes": _diabetes,
    "cancer_raw": _stored("cancer_raw"),
    "rare 3,000 x 24": lambda: rare(3_000, 24, 0.05),
    "rare 60,000 x 40": lambda: rare(60_000, 40, 0.02),
    "factors 19,000 x 10": lambda: factors(19_000, 10, 3, 1.0, heavy=True),
    "factors 3,000 x 400": lambda: factors(3_000, 400, 20, 0.5),
    "factors 6,000 x 600": lambda: factors(6_000, 600, 30, 1.0),
    "factors 800 x 2,500": lambda: factors(800, 2_500, 15, 0.5),
    "factors 300 x 1,500": lambda: factors(300, 1_500, 40, 0.3, heavy=True),
    "factors 20,000 x 150": lambda: factors(20_000, 150, 10, 1.0),
    "spectra 1,500 x 700": lambda: spectra(1_500, 700),
    "spectra 400 x 1,200": lambda: spectra(400, 1_200),
    "embeddings 6,000 x 384": lambda: embeddings(6_000, 384),
    "embeddings 2,000 x 768": lambda: embeddings(2_000, 768),
    "surveys 5,800 x 85": lambda: surveys(5_800, 85),
    "surveys 2,500 x 300": lambda: surveys(2_500, 300),
    "tall 30,000 x 28": lambda: generators.tall(30_000, 28),
    "wide 500 x 6,000": lambda: generators.wide(500, 6_000),
    "counts 10,000 x 18,000": lambda: counts(10_000, 18_000, 20),
    "counts 4,000 x 2,000": lambda: counts(4_000, 2_000, 60),
    "counts 20,000 x 400": lambda: counts(20_000, 400, 12),
}
_HELD_OUT_STORED = (
    "german",
    "higgs7k",
    "w8a",
    "phishing",
    "mushrooms",
    "news20_5k",
    "imdb_5k",
    "flights",
)


def _with_stored(
    made: dict[str, Callable[[], Made]], names: tuple[str, ...]
) -> dict[str, Callable[[], Made]]:
    there = datasets.catalogue()
    absent = [name for name in names if name not in there]
    if absent:
        print(f"absent, see LINSEP_BENCH_DATA: {', '.join(absent)}", file=sys.stderr)
    return made | {name: _stored(name) for name in names if name in there}


def calibration() -> dict[str, Callable[[], Made]]:
    """Tables by name on which prices and laws are fitted."""
    return _with_stored(_CALIBRATION, _CALIBRATION_STORED)


def held_out() -> dict[str, Callable[[], Made]]:
    """Tables by name on which the choice is judged: calibration has not seen them."""
    return _with_stored(_HELD_OUT, _HELD_OUT_STORED)


def load(name: str) -> Made:
    """X (float64, C order or CSR with sorted int32 indices) and y."""
    X, y = (calibration() | held_out())[name]()
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        X.sort_indices()
        return X, y
    return np.ascontiguousarray(X, dtype=np.float64), y
