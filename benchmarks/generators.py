"""Data made from a seed, for sizes that no bundled set has. Every generator returns X, y with y in {-1, +1}."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def _labels(rng: np.random.Generator, scores: np.ndarray) -> np.ndarray:
    """Labels drawn from the logistic model of the scores: noisy, never separable for long."""
    return np.where(scores + rng.logistic(size=len(scores)) > 0, 1.0, -1.0)


def tall(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Tables as physics makes them: half Gaussian columns, half positive and skewed, all correlated.

    x = (g + 0.5 c) or exp(0.5 (g + 0.5 c)) with one common Gaussian c per row; true weights Gaussian of norm 2.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X += 0.5 * rng.standard_normal((n, 1))
    skewed = X[:, d // 2 :]
    skewed *= 0.5
    np.exp(skewed, out=skewed)
    w = rng.standard_normal(d)
    z = X @ (2.0 / np.linalg.norm(w) * w)
    return X, _labels(rng, z - np.median(z))


def wide(n: int = 2_000, d: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Far more columns than rows: Gaussian columns of which one hundred matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    w = np.zeros(d)
    w[rng.choice(d, 100, replace=False)] = 0.3 * rng.standard_normal(100)
    return X, _labels(rng, X @ w)


def embeddings(
    n: int = 6_000, d: int = 768, decay: float = 0.7, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Standardised columns of embeddings: the variance of component k falls like k^(-2 decay), in rotated axes."""
    rng = np.random.default_rng(seed)
    axes, _ = np.linalg.qr(rng.standard_normal((d, d)))
    X = (rng.standard_normal((n, d)) * np.arange(1.0, d + 1.0) ** -decay) @ axes
    X = np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0))
    z = X @ rng.standard_normal(d)
    return X, _labels(rng, 3.0 / z.std() * (z - z.mean()))


def spectra(
    n: int = 2_000, d: int = 600, peaks: int = 40, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Smooth curves: peaks at fixed places with random heights, a sloping baseline, one per cent of noise."""
    rng = np.random.default_rng(seed)
    at = np.linspace(0.0, 1.0, d)
    centre, width = rng.uniform(0.0, 1.0, (peaks, 1)), rng.uniform(0.01, 0.06, (peaks, 1))
    heights = rng.gamma(2.0, 0.5, (n, peaks))
    X = heights @ np.exp(-0.5 * ((at - centre) / width) ** 2)
    X += rng.uniform(0.5, 1.5, (n, 1)) * (1.0 + 0.5 * at) + 0.01 * rng.standard_normal((n, d))
    z = (heights - heights.mean(axis=0)) @ rng.standard_normal(peaks)
    return X, _labels(rng, 3.0 / z.std() * z)


def factors(
    n: int = 1_000, d: int = 3_000, scaled: bool = False, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Columns that share fifty factors, as gene expression does; unscaled, their sizes are lognormal."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 50))
    X = common @ (rng.standard_normal((50, d)) * np.arange(1.0, 51.0)[:, None] ** -0.5)
    X += 0.5 * rng.standard_normal((n, d))
    z = common[:, :10] @ rng.standard_normal(10)
    y = _labels(rng, 2.0 / z.std() * z)
    if scaled:
        return np.ascontiguousarray((X - X.mean(axis=0)) / X.std(axis=0)), y
    return X * np.exp(rng.standard_normal(d)) + 3.0 * rng.standard_normal(d), y


def text(
    n: int = 200_000, d: int = 50_000, words: int = 60, seed: int = 0
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Documents: word r of the dictionary has frequency 1/(r + 10), rows are tf-idf of unit length.

    The label is drawn from the logistic model of a score of standard deviation 2, so it is wrong for about
    one document in five.
    """
    rng = np.random.default_rng(seed)
    lengths = np.maximum(3, rng.poisson(words, size=n))
    zipf = np.cumsum(1.0 / (np.arange(d) + 10.0))
    column = np.searchsorted(zipf / zipf[-1], rng.random(int(lengths.sum())))
    row = np.repeat(np.arange(n), lengths)
    counts = sp.csr_matrix((np.ones(len(row)), (row, np.minimum(column, d - 1))), shape=(n, d))
    counts.sum_duplicates()
    documents = np.bincount(counts.indices, minlength=d)
    X = counts
    X.data = (1.0 + np.log(X.data)) * (1.0 + np.log((1 + n) / (1.0 + documents)))[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(norms, np.diff(X.indptr))
    z = X @ rng.standard_normal(d)
    z = (z - z.mean()) * (2.0 / z.std())
    order = rng.permutation(d)  # frequent words anywhere in the dictionary, as in real data
    X.indices = order[X.indices].astype(np.int32)
    X.sort_indices()
    return X, _labels(rng, z)


def classes(
    n: int = 100_000, d: int = 50, k: int = 10, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """k classes drawn from the softmax model of Gaussian columns; y in 0 .. k-1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    Z = X @ (rng.standard_normal((d, k)) * (2.0 / np.sqrt(d))) + rng.gumbel(size=(n, k))
    return X, Z.argmax(axis=1)


def pictures(
    n: int = 10_000, side: int = 28, k: int = 10, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Small grey pictures of k kinds, 8 bits a pixel: most of one is 0, and neighbouring pixels go together.

    A picture is the mean of its kind and a mixture of forty smooth patterns, plus noise, cut off at 0 and 1. One
    label in thirty is drawn anew.
    """
    rng = np.random.default_rng(seed)
    at = np.arange(side)

    def smooth(count: int) -> np.ndarray:
        """Sums of six Gaussian bumps of either sign."""
        centres = rng.uniform(0.2 * side, 0.8 * side, (count, 6, 2, 1))
        radius = rng.uniform(1.5, 4.0, (count, 6, 1, 1))
        bumps = np.exp(-0.5 * ((at - centres) / radius) ** 2) * rng.standard_normal(
            (count, 6, 2, 1)
        )
        return np.einsum("cby,cbx->cyx", bumps[:, :, 0], bumps[:, :, 1]).reshape(count, -1)

    y = rng.integers(0, k, n)
    kinds, patterns = smooth(k), smooth(40)
    X = kinds[y] + (0.25 * rng.standard_normal((n, 40))) @ patterns
    X += 0.2 * rng.standard_normal(X.shape)
    X[X < 0.2] = 0.0
    again = rng.random(n) < 1 / 30
    y[again] = rng.integers(0, k, int(again.sum()))
    return np.round(255.0 * np.minimum(X, 1.0)) / 255.0, y


def topics(
    n: int = 10_000, d: int = 20_000, k: int = 8, seed: int = 0
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Documents as ``text`` makes them, of k topics drawn from the softmax model of scores of deviation 3."""
    X, _ = text(n, d, seed=seed)
    rng = np.random.default_rng(seed + 1)
    Z = X @ rng.standard_normal((d, k))
    Z = (Z - Z.mean(axis=0)) * (3.0 / Z.std(axis=0))
    return X, (Z + rng.gumbel(size=Z.shape)).argmax(axis=1)


def class_embeddings(
    n: int, d: int = 384, k: int = 100, seed: int = 0, distance: float = 5.0
) -> tuple[np.ndarray, np.ndarray]:
    """Unit rows in single precision, as a network's last layer gives them, of k classes.

    Noise has a spectrum 1/j in a random basis. Means of classes lie about ``distance`` standard deviations of it apart,
    those of about five classes nearer to each other; at 5 a linear model names 3 of 4 rows of 100 classes correctly.
    """
    rng = np.random.default_rng(seed)
    scale = (1.0 + np.arange(d)) ** -0.5
    basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
    groups = max(2, k // 5)
    kind = rng.integers(0, groups, k)
    means = rng.standard_normal((groups, d))[kind] + 0.7 * rng.standard_normal((k, d))
    means *= scale * distance / np.sqrt(2 * d)
    y = rng.integers(0, k, n)
    X = np.empty((n, d), np.float32)
    for low in range(0, n, 8192):
        here = y[low : low + 8192]
        rows = (means[here] + rng.standard_normal((len(here), d)) * scale) @ basis.T
        X[low : low + 8192] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return X, y
