"""Grids in the span of the rows: the models, the proofs from inner products, and who goes there."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from linsep import (
    ConvergenceWarning,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    path,
    train_grid,
    tune,
)
from linsep.certificates import closing_sums_numpy, from_sums
from linsep.certificates.gram import from_gram
from linsep.losses import NAMES, get
from linsep.penalties import ElasticNet
from linsep.problem.gram import GramRows
from linsep.solution import Explicit
from linsep.solvers.grid import gram as spanned
from linsep.solvers.newton import gram_space as span_newton

CS = [1e-3, 0.1, 10.0]
LOSSES = ("logistic", "squared_hinge", "huberised_hinge", "squared", "hinge", "absolute")


def wide(n=60, d=150, seed=0, common=2, shift=0.0):
    """Rows with some directions in common, on which the label depends."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, common))
    X = rng.normal(size=(n, d)) + F @ rng.normal(size=(common, d)) + shift
    y = np.where(F[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def gram(X, y, weight=None):
    mu = X.mean(axis=0)
    K = (X - mu) @ (X - mu).T
    return mu, GramRows(K, X.shape[1], float(np.linalg.norm(mu)), y, None, weight)


def span_of(loss, rows, intercept=True):
    n = len(rows.K)
    weight = np.ones(n) if rows.weight is None else rows.weight
    return span_newton.Span(get(loss), rows.K, rows.sigma, np.zeros(n), weight, intercept)


@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("loss", [name for name in NAMES if span_newton.applies(get(name))])
def test_newton_in_the_span_is_proven_by_the_rows_themselves(loss, C):
    X, y = wide()
    mu, rows = gram(X, y)
    found = span_newton.solve(span_of(loss, rows), 1.0 / C, 1e-7)
    # of an interpolation by the absolute loss rounding leaves residuals, which count C times
    assert found.gap <= (1e-7 if loss != "absolute" else 1e-7 * max(1.0, C))
    low, high = get(loss).domain
    assert (found.u >= low).all() and (found.u <= high).all()
    assert abs(np.sum(y * found.u)) <= 1e-10 * max(1.0, np.abs(found.u).sum())
    w = (X - mu).T @ (found.stretch * C * y * found.u)
    W = np.append(w, found.stretch * found.b - mu @ w).reshape(-1, 1)
    sums = closing_sums_numpy(get(loss), X, y, None, None, W, Explicit(found.u))
    proof = from_sums(sums, w, ElasticNet(C), fit_intercept=True, tol=1e-6, rows_per_sum=60.0)
    assert proof.certified or loss == "absolute"


@pytest.mark.parametrize("C", [1e-3, 0.03, 5.0])
def test_the_hinge_is_that_of_libsvm(C):
    X, y = wide()
    _, rows = gram(X, y)
    found = span_newton.solve(span_of("hinge", rows), 1.0 / C, 1e-9)
    other = SVC(kernel="linear", C=C, tol=1e-8).fit(X, y)
    alpha = np.zeros(len(y))
    alpha[other.support_] = np.abs(other.dual_coef_.ravel())

    def dual(a):
        return a.sum() - 0.5 * (y * a) @ rows.K @ (y * a)

    assert np.isclose(dual(C * found.u), dual(alpha), rtol=1e-6)


def test_a_solution_that_rounding_has_touched_is_made_exact_for_every_larger_c():
    X, y = wide()
    _, rows = gram(X, y)
    span = span_of("hinge", rows)
    found = span_newton.solve(span, 1.0, 1e-9)
    assert np.abs(found.u).max() < 1.0  # no row at the end of its interval: the classes are parted
    touched = found.u * (1.0 + 1e-8 * np.random.default_rng(1).normal(size=len(found.u)))
    for C in (1.0, 10.0):
        assert span_newton.reuse_if_optimal(span, 1.0 / C, 1e-9, touched, found.b) is None
        again = span_newton.polish_if_close(span, 1.0 / C, 1e-9, touched, found.b)
        assert again is not None and again.gap <= 1e-9
        assert np.allclose(C * again.u, found.u, rtol=1e-4, atol=1e-6 * np.abs(found.u).max())
    far = np.zeros_like(found.u)
    assert span_newton.polish_if_close(span, 1.0, 1e-9, far, 0.0) is None


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shift", [0.0, 1e3])
def test_the_proof_from_inner_products_encloses_that_from_the_rows(loss, shift):
    X, y = wide(shift=shift)
    mu, rows = gram(X, y)
    rng = np.random.default_rng(1)
    best = LinearClassifier(loss, C=0.5, tol=1e-8).fit(X, y).certificate_
    for u in (rng.uniform(0.1, 0.9, len(y)), np.full(len(y), 3.0), np.full(len(y), np.nan)):
        made = from_gram(
            get(loss), rows, u, 0.3, penalty=ElasticNet(0.5), fit_intercept=True, tol=1e-6
        )
        w = (X - mu).T @ made.a
        m = y * (X @ w + (made.b - mu @ w))
        primal = 0.5 * w @ w + 0.5 * get(loss).value(m).sum()
        assert abs(primal - made.certificate.primal) <= made.certificate.rounding
        assert made.certificate.dual <= best.primal * (1 + 1e-12)
        assert made.certificate.gap >= primal - best.primal


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression(), LinearSVC(loss="squared_hinge")],
                         ids=["hinge", "logistic", "squared hinge"])  # fmt: skip
def test_the_grid_is_made_of_separate_fits(model):
    X, y = wide(90, 200, seed=3)
    tuning = tune(model, X, y, CS, scoring="auc", refit=False)
    assert tuning.certified and all(r.passes < 60 for r in tuning.trace)
    for f, (train, _) in enumerate(StratifiedKFold(5).split(X, y)):
        for c, C in enumerate(CS):
            alone = model.set_params(C=C).fit(X[train], y[train]).certificate_
            proof = tuning.certificates[c, f]
            assert alone.dual <= proof.primal * (1 + 1e-12)
            assert proof.dual <= alone.primal * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_path_has_coefficients_that_anyone_can_check(loss):
    X, y = wide()
    rising = path(LinearClassifier(loss), X, y, CS)
    assert all(proof.certified for proof in rising.certificates)
    for C, w, b, proof in zip(
        CS, rising.coefs, rising.intercepts, rising.certificates, strict=True
    ):
        m = y * (X @ w[0] + b)
        value = 0.5 * w[0] @ w[0] + C * get(loss).value(m).sum()
        assert abs(value - proof.primal) <= proof.rounding + 1e-12 * value


@pytest.mark.parametrize("intercept", [True, False])
def test_a_row_twice_is_a_row_of_weight_two(intercept):
    X, y = wide(50, 130)
    twice = np.arange(0, 50, 3)
    weight = np.ones(50)
    weight[twice] = 2.0
    model = LinearSVC(tol=1e-8, fit_intercept=intercept)
    one = path(model, X, y, CS, sample_weight=weight)
    two = path(model, np.vstack([X, X[twice]]), np.append(y, y[twice]), CS)
    assert np.allclose(one.coefs, two.coefs, atol=1e-5 * np.abs(one.coefs).max())
    for a, b in zip(one.certificates, two.certificates, strict=True):
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)


def test_equal_rows_and_constant_columns_are_no_obstacle():
    X, y = wide(40, 90)
    X = np.vstack([X, X, X[:5]])[:, :]
    X = np.hstack([X, np.ones((85, 30))])
    y = np.concatenate([y, y, -y[:5]])
    for model in (LinearSVC(), LogisticRegression()):
        assert tune(model, X, y, [0.01, 1.0, 100.0], refit=False).certified


@pytest.mark.parametrize("few", [10, 600], ids=["ascent first", "Newton alone"])
@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression()], ids=["hinge", "logistic"])
def test_any_number_of_threads_gives_the_same_bits(model, few, tuned):
    tuned(gram_grid_few=few)
    X, y = wide(80, 160)
    found = [
        tune(model.set_params(n_threads=k), X, y, CS, scoring="auc", refit=False) for k in (1, 2)
    ]
    model.set_params(n_threads=None)
    assert found[0].certified
    assert np.array_equal(found[0].curve.scores, found[1].curve.scores)
    primal = [[proof.primal for proof in tuning.certificates.flat] for tuning in found]
    assert primal[0] == primal[1]


def test_what_the_inner_products_cannot_prove_gets_a_fit_of_its_own(monkeypatch):
    X, y = wide()
    real, asked = train_grid.from_gram, []

    def doubtful(*args, **kwargs):
        made = real(*args, **kwargs)
        asked.append(made)
        return replace(made, certificate=replace(made.certificate, certified=False))

    monkeypatch.setattr(train_grid, "from_gram", doubtful)
    tuning = tune(LinearSVC(), X, y, CS, cv=3, refit=False)
    assert len(asked) == 18 and tuning.certified  # each was stretched once more in vain
    monkeypatch.undo()
    again = tune(LinearSVC(), X, y, CS, cv=3, refit=False)
    assert np.abs(again.curve.scores - tuning.curve.scores).max() <= 0.051


def test_a_huge_row_that_is_held_out_spoils_no_proof():
    X, y = wide()
    X[0, 0] = 1e8
    part = np.arange(len(y)) % 3
    given = LinearSVC()._grid_problem(X, y, None)
    fits = train_grid.fit_grid(given.with_grid(CS, part))
    for c, C in enumerate(CS):
        alone = LinearSVC(C=C).fit(X[part != 0], y[part != 0]).certificate_
        assert alone.certified and fits[c, 0].certificate.certified
        assert np.isclose(fits[c, 0].certificate.primal, alone.primal, rtol=2e-6)


def test_regressions_go_there_too():
    X, _ = wide()
    t = X[:, 0] - X[:, 1]
    for loss in ("squared", "absolute", "huber"):
        tuning = tune(LinearRegressor(loss), X, t, CS, cv=3, refit=False)
        assert tuning.certified
        alone = LinearRegressor(loss, C=CS[1]).fit(X[20:], t[20:]).certificate_
        assert np.isclose(tuning.certificates[1, 0].primal, alone.primal, rtol=2e-6)


@pytest.mark.parametrize(
    ("change", "goes"),
    [
        ({}, True),
        ({"solver": "dual-cd"}, False),
        ({"time_limit": 10.0}, False),
        ({"max_passes": 100}, False),
        ({"l1_ratio": 0.5}, False),
    ],
)
def test_who_goes_there(change, goes):
    X, y = wide()
    model = LogisticRegression(**change)
    given = model._grid_problem(X, y, None)
    part = np.arange(60) % 3
    assert spanned.applies(given.with_grid(CS, part)) is goes
    assert not spanned.applies(replace(given, rows=X[:, :50]).with_grid(CS, part))


@pytest.mark.parametrize("kind", ["constant", "tiny", "outlier", "scales"])
def test_hostile_rows_end_in_a_proof_or_a_word_and_nothing_else(kind):
    X, y = wide(40, 90)
    if kind == "constant":
        X[:] = 1.0
    elif kind == "tiny":
        X *= 1e-150
    elif kind == "outlier":
        X[3, 5] = 1e8
    else:
        X *= 10.0 ** np.linspace(-3, 3, 90)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        tuning = tune(LinearSVC(), X, y, [1e-6, 1.0, 1e8], cv=3, refit=False)
    assert {w.category for w in heard} <= {ConvergenceWarning}
    assert bool(heard) is not tuning.certified
    assert tuning.certified or kind == "outlier"
