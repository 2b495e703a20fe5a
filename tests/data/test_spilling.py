"""Rows of a cluster that are too many for the client's memory: on its disk for as long as the fit takes."""

from __future__ import annotations

import errno
import importlib
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

import linsep
from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, separate
from linsep.errors import Refused

da = pytest.importorskip("dask.array")
delayed = importlib.import_module("dask.delayed").delayed

N, D = 24_000, 21
CUTS = (3000, 1, 8000, 2999, 10_000)


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.arange(1, D + 1)
    z = X @ rng.normal(size=D) / 3
    return X, z, np.where(z + rng.logistic(size=N) > 0, "yes", "no")


def parts(a, cuts=CUTS):
    return [delayed(a[lo:hi]) for lo, hi in pairwise(np.cumsum([0, *cuts]))]


def spilling(tuned, folder, **more):
    """A client whose memory holds a thousand numbers."""
    dask = importlib.import_module("dask")
    tuned(memory_entries=1000, spilled_entries=50_000)
    return dask.config.set({"linsep.spill-directory": str(folder), **more})


SPILLED = {
    "l1": LogisticRegression(l1_ratio=1.0, C=0.01),
    "elastic net": LinearClassifier("squared_hinge", l1_ratio=0.5, C=0.01),
    "no penalty": LogisticRegression(C=np.inf),
    "sparse hinge": LinearSVC(C=0.1),
    "hard margin": LinearSVC(C=np.inf),
    "least absolute": LinearRegressor("absolute"),
    "several, l1": LogisticRegression(l1_ratio=1.0, C=0.01),
    "bands that fail": LinearSVC(C=0.1),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", SPILLED)
def test_rows_too_many_for_the_client_are_fitted_from_its_disk(
    client, kind, monkeypatch, tuned, tmp_path
):
    X, z, y = table()
    cuts, model = CUTS, SPILLED[kind]
    if kind == "hard margin":
        y = np.where(z > 0, "yes", "no")
        X = X + np.outer(np.sign(z), np.linalg.lstsq(X, z, rcond=None)[0])
    if kind == "several, l1":
        y = np.digitize(z, [-3.0, 3.0])
    if kind == "bands that fail":
        for name in ("MAX_BANDS", "FEW_ROUNDS"):
            monkeypatch.setattr(importlib.import_module("linsep.solvers.interior.sifting"), name, 0)
    if kind == "least absolute":
        X, y, cuts = X[:4000], z[:4000] + np.random.default_rng(2).laplace(size=4000), (3000, 1000)
    given = X
    if kind == "sparse hinge":
        given = sp.csr_matrix(np.where(np.abs(X) < 1.5 * np.arange(1, D + 1), 0.0, X))
    place = tmp_path / "a" / "disk"
    with spilling(tuned, place):
        found = clone(model).fit(parts(given, cuts), parts(y, cuts))
    assert found.certificate_.certified and list(place.iterdir()) == []
    stored = tmp_path / ("rows.svm" if kind == "sparse hinge" else "rows.npy")
    if kind == "sparse hinge":
        dump_svmlight_file(given, y == "yes", str(stored))
    else:
        np.save(stored, X)
    with linsep.scan(stored) as scanned:
        scanned.y = y
        on_disk = clone(model).fit(scanned)
    if kind == "sparse hinge":  # the text of the file is rounded
        assert np.allclose(found.coef_, on_disk.coef_, rtol=1e-9)
    else:
        assert (found.coef_ == on_disk.coef_).all()
        assert np.all(found.intercept_ == on_disk.intercept_)


def test_a_disk_without_room_is_told_before_or_while_it_is_filled(
    client, monkeypatch, tuned, tmp_path
):
    X, z, _ = table()
    y = z > 0
    model = LogisticRegression(l1_ratio=1.0, C=0.01)
    with spilling(tuned, tmp_path, **{"linsep.spill-limit": "1 MB"}):
        with pytest.raises(
            Refused, match=r"take 4,536,000 bytes .* linsep.spill-limit is 1,000,000"
        ):
            model.fit(parts(X), parts(y))
    spill = importlib.import_module("linsep.data.cluster.spill")
    usage = type("usage", (), {"free": 4_500_000})
    with spilling(tuned, tmp_path), monkeypatch.context() as patch:
        patch.setattr(spill.shutil, "disk_usage", lambda path: usage)
        with pytest.raises(Refused, match="has room for 4,500,000"):
            model.fit(parts(X), parts(y))
    writer = importlib.import_module("linsep.data.pieces").PieceWriter
    write = writer.write

    def full(self, values):
        if self.size > 2_000_000:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(self, values)

    monkeypatch.setattr(writer, "write", full)
    with spilling(tuned, tmp_path), pytest.raises(Refused, match="no room to write in"):
        model.fit(parts(X), parts(y))
    assert list(tmp_path.iterdir()) == []


def test_separability_of_sparse_rows_too_many_for_the_client(client, tuned, tmp_path):
    X, z, _ = table()
    sparse = sp.csr_matrix(X)
    with spilling(tuned, tmp_path):
        found = separate(parts(sparse), parts(z > 0))
    assert found.separable and found.check(X, z > 0) and list(tmp_path.iterdir()) == []
