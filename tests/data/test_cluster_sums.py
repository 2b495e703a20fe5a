"""Rows that the client has no room for: L1 penalties and more features than rows are fitted by sums on the workers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from partitioned import Partitioned
from scattered import Scattered
from sklearn.base import clone

import linsep
from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, separate
from linsep.certificates.parts import Part
from linsep.certificates.precise import precise_certificate
from linsep.certificates.softmax_precise import precise_coupled_certificate
from linsep.data import Location, Memory
from linsep.data.cluster import Cluster, PersistedRows
from linsep.data.entrance import partitions
from linsep.errors import Refused, SeparableData
from linsep.losses import Huber, Multinomial, get
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised
from linsep.train import Recipe, train

pytest.importorskip("distributed")
delayed = pytest.importorskip("dask.delayed").delayed

CUTS = (900, 1, 1100, 999)
N = sum(CUTS)


def table(d, sparse, n=N):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.1 if sparse else 1.0)
    z = X[:, :6].sum(axis=1)
    return (sp.csr_matrix(X) if sparse else X), z + rng.logistic(size=n) / 2.0


def pieces(a, cuts=CUTS):
    return [delayed(a[lo:hi]) for lo, hi in pairwise(np.cumsum([0, *cuts]).tolist())]


CASES = {
    "lasso": (LogisticRegression(C=0.1, l1_ratio=1.0, tol=1e-6), 21, False, 8),
    "elastic net": (LogisticRegression(C=0.05, l1_ratio=0.5, tol=1e-6), 260, False, 8),
    "sparse": (LinearClassifier("squared_hinge", C=0.05, l1_ratio=1.0, tol=1e-6), 700, True, 15),
}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.sampled(1)
def test_absolute_penalties_on_the_workers(client, kind, tuned):
    model, d, sparse, most = CASES[kind]
    X, z = table(d, sparse)
    tuned(memory_entries=1000, cluster_pilot_entries=3000, cluster_pilot_rows=5)
    model.fit(pieces(X), pieces(z > 0))
    assert model.solver_ == "working-set" and model.traffic_.rounds <= most
    name = getattr(model, "loss", "logistic")
    recipe = Recipe(get(name), ElasticNet(model.C, model.l1_ratio), tol=model.tol)
    here = train(recipe, Partitioned(X, CUTS, np.where(z > 0, 1.0, -1.0)), warn=False)
    assert (np.append(model.coef_, model.intercept_) == here.W[:, 0]).all()
    assert linsep.verify(model, X, z > 0).certified and 0 < (model.coef_ != 0).sum() < d


def test_numbers_with_an_absolute_penalty(client, tuned):
    X, z = table(30, sparse=False)
    tuned(memory_entries=1000)
    model = LinearRegressor("huber", C=0.02, l1_ratio=1.0).fit(pieces(X), pieces(z))
    here = train(Recipe(Huber(centre=0.0), ElasticNet(0.02, 1.0)), Partitioned(X, CUTS, offset=-z))
    np.testing.assert_allclose(model.coef_.ravel(), here.W[:-1, 0], atol=1e-3)
    assert linsep.verify(model, X, z).certified


WEAK = {
    "logistic": (LogisticRegression(C=1e5, l1_ratio=1.0), 2),
    "squared": (LinearRegressor("squared", C=1e5, l1_ratio=1.0), 0),
    "softmax": (LogisticRegression(C=1e5, l1_ratio=1.0), 3),
}


@pytest.mark.parametrize("kind", WEAK)
def test_weak_absolute_penalties_are_certified_in_doubled_precision(client, kind, tuned):
    """With C times the number of rows far above 10^6, rounding hides the optimum from sums in float64."""
    model, classes = WEAK[kind]
    X, z = table(12, sparse=False)
    y = np.digitize(z, np.quantile(z, np.arange(1, classes) / classes)) if classes else z
    tuned(memory_entries=1000)
    model.fit(pieces(X), pieces(y))
    assert model.certificate_.certified and model.traffic_.rounds <= 15
    assert linsep.verify(model, pieces(X), pieces(y)).certified
    assert linsep.verify(model, X, y).certified
    parts = [X[lo:hi] for lo, hi in pairwise(np.cumsum([0, *CUTS]))]
    elsewhere = clone(model).fit(PersistedRows(Scattered(len(CUTS), 3), parts, len(CUTS)), y)
    assert (elsewhere.coef_ == model.coef_).all()
    assert elsewhere.certificate_ == model.certificate_


@pytest.mark.parametrize("kind", WEAK)
@pytest.mark.parametrize("explicit", [False, True])
def test_doubled_precision_has_the_same_bits_for_one_partition(kind, explicit):
    """Scalars are exact sums, and so do not depend on the partitions at all."""
    classes = WEAK[kind][1]
    X, z = table(5, sparse=False)
    X[:, 0] += 1e6
    rng = np.random.default_rng(1)
    labels = np.digitize(z, [-0.5, 0.5]) if classes == 3 else (z > 0).astype(int)
    loss = Multinomial(3) if classes == 3 else get("logistic" if classes else "squared")
    k = 3 if classes == 3 else 1
    W, step = 0.1 * rng.normal(size=(6, k)), 0.01 * rng.normal(size=(6, k))
    dual = Linearised(W, step)
    if explicit:
        U = rng.uniform(0.1, 0.2, size=(N, k))
        if k == 3:
            U[np.arange(N), labels] = 0.0
            U = -U
            U[np.arange(N), labels] = -U.sum(axis=1)
        dual = Explicit(U if k == 3 else U[:, 0])
    bounds = {}
    for cuts in ((N,), CUTS):
        parts = [X[lo:hi] for lo, hi in pairwise(np.cumsum([0, *cuts]))]
        rows = PersistedRows(Scattered(len(cuts), 3), parts, len(cuts))
        opened = partitions.open_partitions(
            rows, labels if classes else z, None, "test", numbers=not classes
        )
        known = partitions.encode(opened, "test") if classes else None
        there = Cluster(
            opened,
            known.signs() if classes == 2 else None,
            None if classes else opened.offsets(0.0),
            labels=known.codes if classes == 3 else None,
        )
        vectors = (None if v is None else np.asarray(v) for v in there.targets.vectors())
        here = Memory(X, *vectors)
        for data in (here, there):
            part = Part(
                loss, ElasticNet(1e5, 1.0), True, data.X, *data.targets.vectors(), W, dual, 1e-6
            )
            precise = precise_coupled_certificate if k == 3 else precise_certificate
            bounds[len(cuts), data.location] = precise(part)
    one, whole, several = (
        bounds[key]
        for key in ((1, Location.CLUSTER), (1, Location.MEMORY), (len(CUTS), Location.CLUSTER))
    )
    assert one == whole
    assert several.primal == whole.primal or classes == 3
    assert np.isclose(several.gap, whole.gap, rtol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_more_features_than_rows(client, sparse, tuned):
    cuts = (150, 100, 50)
    X, z = table(900, sparse, n=300)
    tuned(memory_entries=1000)
    model = LogisticRegression(C=0.1, solver="newton-cg").fit(pieces(X, cuts), pieces(z > 0, cuts))
    recipe = Recipe(get("logistic"), ElasticNet(0.1), solver="newton-cg", tol=model.tol)
    here = train(recipe, Partitioned(X, cuts, np.where(z > 0, 1.0, -1.0)))
    assert (model.coef_[0] == here.W[:-1, 0]).all()
    assert linsep.verify(model, X, z > 0).certified
    assert model.traffic_.received < 8 * X.shape[0] * X.shape[1] / 2  # vectors, and no rows


@pytest.mark.parametrize("numbers", [False, True])
def test_no_penalty_on_the_workers(client, numbers, tuned):
    """The certificate is made of sums as well, and as sharp as that of the rows in memory."""
    X, z = table(7, sparse=False)
    y, kind = (z, LinearRegressor) if numbers else (z > 0, LogisticRegression)
    here = kind(C=np.inf).fit(X, y)
    tuned(memory_entries=1000)
    model = kind(C=np.inf).fit(pieces(X), pieces(y))
    assert model.certificate_.certified and model.certificate_.kind == "local"
    assert model.solver_ == "newton" and model.traffic_.rounds <= 20
    assert model.traffic_.received < X.nbytes / 2
    np.testing.assert_allclose(model.coef_, here.coef_, atol=1e-7)
    assert model.certificate_.dual <= here.certificate_.primal
    assert here.certificate_.dual <= model.certificate_.primal
    assert linsep.verify(model, X, y).certified
    assert linsep.verify(model, pieces(X), pieces(y)).certified


def test_separable_classes_without_a_penalty_on_the_workers(client, tuned):
    X, _ = table(5, sparse=False)
    tuned(memory_entries=1000)
    with pytest.raises(SeparableData) as error:
        LogisticRegression(C=np.inf).fit(pieces(X), pieces(X[:, 0] > 0.1))
    w, b = error.value.direction
    assert (np.where(X[:, 0] > 0.1, 1, -1) * (X @ w + b) > 0).all()


def test_dependent_columns_without_a_penalty_are_not_certified_on_the_workers(client, tuned):
    X, z = table(5, sparse=False)
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    tuned(memory_entries=1000)
    with pytest.warns(linsep.ConvergenceWarning):
        model = LinearRegressor("squared", C=np.inf).fit(pieces(X), pieces(z))
    assert not model.certificate_.certified and model.certificate_.gap > 0.0


SEVERAL = {
    "lasso": (LogisticRegression(C=0.02, l1_ratio=1.0), 12, False, N, 10),
    "wide": (LogisticRegression(C=0.01), 330, False, 300, 60),
    "sparse": (LogisticRegression(C=0.1), 400, True, 300, 150),
}


@pytest.mark.parametrize(
    "kind", ["lasso", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("wide", "sparse"))]
)
def test_several_classes_on_the_workers(client, kind, tuned):
    """Softmax with an L1 penalty, or with more features than rows."""
    model, d, sparse, n, most = SEVERAL[kind]
    X, z = table(d, sparse, n)
    y, cuts = np.digitize(z, [-1.5, 1.5]), (n // 2, n - n // 2)
    tuned(memory_entries=1000)
    model.fit(pieces(X, cuts), pieces(y, cuts))
    assert model.certificate_.certified and model.traffic_.rounds <= most
    assert linsep.verify(model, X, y).certified


GROUPS = np.arange(6) // 2
AT_THE_CLIENT = {
    "hinge with L1": (LinearClassifier("hinge", C=0.1, l1_ratio=1.0), False),
    "hinge, wide": (LinearSVC(), True),
    "hinge, several classes": (LinearSVC(multiclass="crammer_singer"), False),
    "hard margin": (LinearSVC(C=np.inf), False),
    "no penalty, straight tails": (LinearRegressor("huber", C=np.inf), False),
    "no penalty, several classes": (LogisticRegression(C=np.inf), False),
    "groups": (LogisticRegression(C=0.1, l1_ratio=1.0, feature_groups=GROUPS), False),
    "factors": (LinearRegressor("squared", C=0.1, penalty_factor=1.0 + GROUPS), False),
    "separate": (None, True),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", AT_THE_CLIENT)
def test_what_the_client_must_hold_is_refused_above_a_stated_size(client, kind, tuned):
    """Rows that fit are copied to the client; more of them are refused with the number allowed and a remedy."""
    model, wide = AT_THE_CLIENT[kind]
    X, z = table(400 if wide else 6, sparse=wide, n=200)
    if "several" in kind:
        y = np.digitize(z, [-1.5, 1.5])
    elif kind == "hard margin":
        y = X[:, 0] > 0
    else:
        y = z if isinstance(model, LinearRegressor) else z > 0
    cuts = (120, 80)
    rows = pieces(X, cuts), pieces(y, cuts)
    answer = separate(*rows) if model is None else model.fit(*rows)
    assert answer.separable if model is None else answer.certificate_.certified
    tuned(memory_entries=1000)
    with pytest.raises(Refused, match=r"entries are too many .*at most .*(Let linsep|Load them)"):
        separate(*rows) if model is None else model.fit(*rows)


@pytest.mark.parametrize("kind", ["groups", "factors"])
def test_groups_from_disk(kind, tuned, tmp_path):
    """Rows on disk are copied to memory, as those of a cluster are."""
    model, _ = AT_THE_CLIENT[kind]
    X, z = table(6, sparse=False)
    y = z if kind == "factors" else z > 0
    np.save(tmp_path / "rows.npy", X)
    tuned(few_on_disk=0)
    with linsep.scan(tmp_path / "rows.npy", target=y) as rows:
        coef = model.fit(rows).coef_.copy()
        assert (coef == model.fit(X, y).coef_).all()
        tuned(memory_entries=1000)
        with pytest.raises(Refused, match="18,000 entries are too many"):
            model.fit(rows)
