"""Memory, disk and cluster give the same bits, for every solver, any number of threads and of workers.

Partitions of the cluster are the blocks of the array. The solver is named: ``auto`` may prefer another one where passes
are dear.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, scan, separate
from linsep.errors import Refused
from linsep.solvers import SOLVERS

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

D, BLOCK = 40, 3264  # a MiB of float64 is 3276 rows of 40
N = 4 * BLOCK  # more blocks may share an accumulator in memory, which partitions cannot

CASES = {
    "small": LogisticRegression(solver="small"),
    "newton": LogisticRegression(solver="newton"),
    "newton, no intercept": LinearClassifier("squared_hinge", solver="newton", fit_intercept=False),
    "newton, C=inf": LogisticRegression(solver="newton", C=np.inf),
    "newton-rounds, several": LogisticRegression(solver="newton-rounds"),
    "newton, one-vs-rest": LogisticRegression(
        solver="newton", multiclass="ovr", class_weight="balanced"
    ),
    "newton, numbers": LinearRegressor("huber", C=10.0, solver="newton"),
    "newton-rounds": LogisticRegression(C=10.0, solver="newton-rounds"),
    "newton-rounds, huberised": LinearClassifier("huberised_hinge", solver="newton-rounds"),
    "newton-pilot": LogisticRegression(solver="newton-pilot"),
    "newton-cg": LogisticRegression(solver="newton-cg"),
    "small-l1": LogisticRegression(C=0.01, l1_ratio=0.7, solver="small-l1"),
    "working-set": LogisticRegression(C=0.01, l1_ratio=0.7, solver="working-set"),
    "working-set, several": LogisticRegression(C=0.01, l1_ratio=0.7),
    "proximal-newton, several": LinearSVC(C=0.01, multiclass="crammer_singer"),
    "sifting": LinearSVC(C=0.1, solver="sifting"),
    "sifting, numbers": LinearRegressor("absolute", C=1.0, solver="sifting"),
    "interior": LinearSVC(C=0.1, solver="interior"),
    "dual-cd": LinearSVC(C=1e-4, solver="dual-cd"),
    "hard-margin": LinearSVC(C=np.inf, solver="hard-margin"),
}
NEED_MEMORY = ("small", "small-l1", "interior", "dual-cd")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D))
    z = X @ rng.normal(size=D)
    path = tmp_path_factory.mktemp("rows") / "X.npy"
    np.save(path, X)
    return path, X, z, z + 2.0 * rng.logistic(size=N)


def target(name, table):
    _, _, z, noisy = table
    if "numbers" in name:
        return noisy
    if "several" in name or "one-vs-rest" in name:
        return np.digitize(noisy, [-3.0, 3.0])
    return np.where((z if name == "hard-margin" else noisy) > 0, "up", "down")


def fitted(name, *data, **options):
    model = CASES[name]
    return type(model)(**{**model.get_params(), **options}).fit(*data)


def assert_same(a, b):
    assert np.array_equal(a.coef_, b.coef_) and np.array_equal(a.intercept_, b.intercept_)
    assert a.certificate_.certified and a.certificate_.primal == b.certificate_.primal
    assert a.n_passes_ == b.n_passes_
    if isinstance(a, LinearSVC):
        assert np.array_equal(a.alpha_, b.alpha_) and np.array_equal(a.support_, b.support_)


def test_every_solver_is_among_the_cases():
    apart = {"absolute-rows", "hinge-rows"}  # the next test: they take rows in memory alone
    assert {name.split(",")[0] for name in CASES} | apart == {*SOLVERS, "proximal-newton"}


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("solver", ["absolute-rows", "hinge-rows", "auto"])
@pytest.mark.parametrize("loss", ["pinball", "epsilon_insensitive"])
def test_straight_losses_are_fitted_in_memory(table, client, solver, loss, tuned):
    """Rows on a cluster are copied to the client, and so are rows on disk unless the solver is named."""
    path, X, _, t = table
    model = LinearRegressor(loss, C=1.0, solver=solver)
    one, three = (clone(model).set_params(n_threads=k).fit(X, t) for k in (1, 3))
    assert_same(one, three)
    there = da.from_array(X, chunks=(BLOCK, D)), da.from_array(t, chunks=BLOCK)
    assert_same(one, clone(model).fit(*there))
    tuned(few_on_disk=0)
    with scan(path, target=t) as rows:
        if solver == "auto":
            assert_same(one, clone(model).fit(rows))
        else:
            with pytest.raises(Refused, match="in memory"):
                model.fit(rows)
    tuned(memory_entries=1000)
    with pytest.raises(Refused, match="too many for its memory"):
        model.fit(*there)


@pytest.mark.sampled(5)
@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("name", CASES)
def test_memory_disk_and_cluster_agree(name, table, client):
    path, X, _, _ = table
    y = target(name, table)
    here = fitted(name, X, y, n_threads=1)
    assert_same(here, fitted(name, X, y, n_threads=3))
    there = fitted(
        name, da.from_array(X, chunks=(BLOCK, D)), da.from_array(y, chunks=BLOCK), n_threads=2
    )
    assert_same(here, there)
    with scan(path, target=y) as rows:
        if name in NEED_MEMORY:
            with pytest.raises(Refused, match="in memory"):
                fitted(name, rows)
        else:
            for threads in (1, 3):
                assert_same(here, fitted(name, rows, n_threads=threads))


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("separable", [True, False])
def test_separability_agrees(separable, table, client):
    path, X, z, noisy = table
    y = (z if separable else noisy) > 0
    with scan(path, target=y) as rows:
        answers = [
            separate(X, y, n_threads=1),
            separate(X, y, n_threads=3),
            separate(rows),
            separate(da.from_array(X, chunks=(BLOCK, D)), da.from_array(y, chunks=BLOCK)),
        ]
    assert all(answer.separable is separable for answer in answers)
    facts = [a.hyperplane.w if separable else a.weights for a in answers]
    assert all(np.array_equal(fact, facts[0]) for fact in facts)
    assert answers[0].check(X, y)
