"""The data of the race: bundled with scikit-learn, made from a seed, or read from a directory if there is one.

The environment variable LINSEP_BENCH_DATA names the directory of extra sets (``<name>.npz`` with X and y, or with
the CSR arrays data, indices, indptr, shape and y; labels -1 and +1). Nothing depends on it: sets that are not there
are left out.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import generators
import numpy as np
import scipy.sparse as sp

Arrays = tuple[Any, np.ndarray]


@dataclass(frozen=True)
class Entry:
    """One data set. ``quick``: part of the short race; ``quick_strengths``: the values of C there."""

    name: str
    make: Callable[[], Arrays]
    note: str
    sparse: bool = False
    quick: bool = False
    quick_strengths: tuple[float, ...] = (0.01, 1.0, 100.0)
    full: bool = True
    file: str = ""  # in the directory of extra sets


def directory() -> Path | None:
    named = os.environ.get("LINSEP_BENCH_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def _standardised(X: np.ndarray) -> np.ndarray:
    scale = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0))


def _iris() -> Arrays:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    return X, np.where(y == 2, 1.0, -1.0)


def _cancer(standardised: bool) -> Arrays:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return (_standardised(X) if standardised else X), np.where(y == 1, 1.0, -1.0)


def _digits() -> Arrays:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return X, np.where(y % 2 == 0, 1.0, -1.0)


def _read(file: Path) -> Arrays:
    with np.load(file) as z:
        y = z["y"].astype(np.float64)
        if "indptr" in z:
            X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), tuple(z["shape"]))
            X = X.astype(np.float64)
            X.sort_indices()
            return X, y
        return np.ascontiguousarray(z["X"], dtype=np.float64), y


def _stored(name: str, standardised: bool = False) -> Arrays:
    folder = directory()
    if folder is None:
        raise FileNotFoundError(f"{name}: no directory of data sets, see LINSEP_BENCH_DATA")
    X, y = _read(folder / f"{name}.npz")
    return (_standardised(X) if standardised else X), y


def _mnist() -> Arrays:
    X, y = _stored("mnist_10k")
    return X / 255.0, y


_ONE: dict[str, Any] = {"quick": True, "quick_strengths": (1.0,)}

_ALWAYS = (
    Entry("iris", _iris, "150 x 4, virginica against the rest", quick=True),
    Entry("cancer", lambda: _cancer(True), "569 x 30, standardised", **_ONE),
    Entry(
        "cancer_raw", lambda: _cancer(False), "569 x 30, raw: scales from 1e-3 to 1e3", quick=True
    ),
    Entry("digits", _digits, "1797 x 64, even against odd", **_ONE),
    Entry(
        "gen_tall_small",
        lambda: generators.tall(200_000, 28),
        "200,000 x 28, made",
        full=False,
        **_ONE,
    ),
    Entry("gen_tall", lambda: generators.tall(1_000_000, 28), "1,000,000 x 28, made"),
    Entry("gen_tall_100", lambda: generators.tall(1_000_000, 100), "1,000,000 x 100, made"),
    Entry("gen_wide", generators.wide, "2,000 x 20,000, made"),
    Entry("gen_embeddings", generators.embeddings, "6,000 x 768, decaying spectrum, made"),
    Entry("gen_spectra", generators.spectra, "2,000 x 600, smooth curves, made"),
    Entry("gen_factors", generators.factors, "1,000 x 3,000, common factors, unscaled, made"),
    Entry(
        "gen_factors_scaled",
        lambda: generators.factors(800, 2_500, scaled=True),
        "800 x 2,500, common factors, standardised, made",
    ),
    Entry(
        "gen_short_text",
        lambda: generators.text(10_000, 18_000, words=20),
        "10,000 x 18,000, twenty words a row, made",
        sparse=True,
    ),
    Entry(
        "gen_text_small",
        lambda: generators.text(20_000, 20_000),
        "20,000 x 20,000, made",
        sparse=True,
        full=False,
        **_ONE,
    ),
    Entry(
        "gen_text",
        generators.text,
        "200,000 x 50,000, Zipf frequencies, noisy labels, made",
        sparse=True,
    ),
)


def _file(file: str, note: str, name: str = "", **more: Any) -> Entry:
    """A stored set; ``name`` where it is not raced as it is stored."""
    make = more.pop("make", lambda: _stored(file))
    return Entry(name or file, make, note, file=f"{file}.npz", **more)


_STORED = (
    _file("german", "1,000 x 24"),
    _file("higgs7k", "7,000 x 28", **_ONE),
    _file("spambase_raw", "4,601 x 57, raw", **_ONE),
    _file(
        "spambase_raw",
        "4,601 x 57, standardised",
        "spambase",
        make=lambda: _stored("spambase_raw", True),
        **_ONE,
    ),
    _file("flights_raw", "327,346 x 28, raw, rank deficient", **_ONE),
    _file(
        "flights_raw",
        "327,346 x 28, standardised",
        "flights",
        make=lambda: _stored("flights_raw", True),
    ),
    _file("mnist_10k", "10,000 x 784, even against odd", make=_mnist),
    _file("a9a", "32,561 x 123", sparse=True, quick=True),
    _file("w8a", "49,749 x 300", sparse=True, **_ONE),
    _file("phishing", "8,404 x 68", sparse=True),
    _file("mushrooms", "6,513 x 126, separable", sparse=True),
    _file("sms", "5,574 x 8,712 tf-idf", sparse=True, quick=True),
    _file("news20_5k", "5,000 x 74,828 tf-idf", sparse=True, **_ONE),
    _file("imdb_5k", "5,000 x 34,568 tf-idf", sparse=True, **_ONE),
)


def catalogue() -> dict[str, Entry]:
    """All sets that can be had here."""
    folder = directory()
    stored = [e for e in _STORED if folder is not None and (folder / e.file).exists()]
    return {entry.name: entry for entry in (*_ALWAYS, *stored)}


def load(name: str) -> Arrays:
    """X float64 (C order or CSR with int32 indices) and y in {-1.0, +1.0}: the same for everybody.

    LINSEP_BENCH_MADE names a directory in which what has once been made or read is kept for the next process.
    """
    folder = os.environ.get("LINSEP_BENCH_MADE")
    kept = Path(folder) / f"{name}.npz" if folder else None
    if kept is not None and kept.exists():
        return _read(kept)
    X, y = catalogue()[name].make()
    X = sp.csr_matrix(X) if sp.issparse(X) else np.ascontiguousarray(X, dtype=np.float64)
    if kept is not None:
        parts = (
            {"data": X.data, "indices": X.indices, "indptr": X.indptr}
            if sp.issparse(X)
            else {"X": X}
        )
        np.savez(kept, y=y, shape=X.shape, **parts)
    return X, y
