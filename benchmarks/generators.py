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
