"""Grids of the hinge by one band for all folds: the same numbers as separate fits, on kind and on hostile rows."""

from __future__ import annotations

import numpy as np
import pytest

from linsep import LinearSVC, tune
from linsep.solvers.grid import hinge as banded
from linsep.solvers.grid.problem import HeldOut
from linsep.train_grid import fit_by_engine

CS = [1e-4, 0.03, 3.0, 100.0]


@pytest.fixture(autouse=True)
def _small_tables_too(tuned):
    tuned(hinge_grid_entries=1)


def rows(kind, n=6600, d=4):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, d))
    score = X @ rng.normal(size=d) + 0.3 + rng.normal(size=n)
    if kind == "unrelated":
        score = rng.normal(size=n)
    elif kind == "rare":
        score -= np.quantile(score, 0.98)
    elif kind == "tails":
        X = rng.standard_t(1.5, size=(n, d))
        score = X @ rng.normal(size=d) + rng.standard_t(2, size=n)
    elif kind == "counts":
        X = rng.poisson(1.0, size=(n, d)).astype(float)
        score = X @ rng.normal(size=d) + rng.normal(size=n)
        score -= np.median(score)
    elif kind == "scales":
        X = X * [1e-3, 1.0, 30.0, 1e3] + [0.0, 100.0, 0.0, -3.0]
    elif kind == "separable":
        score = X[:, 0] - X[:, 1]
    elif kind == "single":
        X = X.astype(np.float32)
    return X, np.where(score > 0, 1.0, -1.0)


def grid(X, y, model=None, folds=3):
    model = LinearSVC() if model is None else model
    part = np.arange(len(y)) % folds
    problem = model._grid_problem(X, y, None).with_grid(CS, part)
    assert banded.applies(problem)
    held, errors = np.zeros((len(y), len(CS))), np.zeros((len(CS), folds), dtype=np.int64)
    return fit_by_engine(problem, banded, HeldOut(held, errors)), part, held, errors


KINDS = ["plain", "unrelated", "rare", "tails", "counts", "scales", "separable", "single"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_model_is_that_of_a_separate_fit(kind):
    X, y = rows(kind)
    fits, part, held, errors = grid(X, y)
    for (c, f), fit in fits.items():
        assert fit.certificate.certified
        train, w, b = part != f, fit.W[:-1, 0], fit.W[-1, 0]
        m = y[train] * (X[train].astype(float) @ w + b)
        primal = 0.5 * w @ w + CS[c] * np.maximum(1.0 - m, 0.0).sum()
        assert np.isclose(primal, fit.certificate.primal, rtol=1e-9)
        z = X[~train].astype(float) @ w + b
        assert np.allclose(held[~train, c], z, rtol=1e-9, atol=1e-9 * np.abs(z).max())
        assert errors[c, f] == np.sum((held[~train, c] >= 0.0) != (y[~train] > 0.0))
        if f == 0:
            alone = LinearSVC(C=CS[c]).fit(X[train], y[train]).certificate_
            assert alone.certified
            assert alone.dual <= fit.certificate.primal * (1 + 1e-12)
            assert fit.certificate.dual <= alone.primal * (1 + 1e-12)


def test_most_models_come_from_a_band():
    fits, *_ = grid(*rows("plain"))
    assert sum(fit.solver == "band" for fit in fits.values()) >= 9
    assert all(fit.n_passes < 15 for fit in fits.values() if fit.solver == "band")


def test_the_curve_is_that_of_the_other_engine(monkeypatch):
    X, y = rows("plain")
    shared = tune(LinearSVC(tol=1e-9), X, y, CS, refit=False)
    by_area = tune(LinearSVC(tol=1e-9), X, y, CS, scoring="auc", refit=False)
    monkeypatch.setattr(banded, "applies", lambda *a: False)
    alone = tune(LinearSVC(tol=1e-9), X, y, CS, refit=False)
    # the largest C have their exact solution either way; of the others a row may be on the other side of zero
    assert np.array_equal(shared.curve.scores[1:], alone.curve.scores[1:])
    assert np.abs(shared.curve.scores - alone.curve.scores).max() <= 2 / 1320
    assert shared.best_C == alone.best_C and shared.certified
    area = tune(LinearSVC(tol=1e-9), X, y, CS, scoring="auc", refit=False)
    assert np.allclose(by_area.curve.scores, area.curve.scores, atol=1e-5)


@pytest.mark.parametrize("spare", [0.02, 0.3], ids=["far too narrow", "too narrow"])
def test_rows_on_the_other_side_join_a_band_that_is_too_narrow(spare, tuned):
    tuned(hinge_grid_spare=spare, hinge_grid_least=1)
    X, y = rows("plain")
    fits, *_ = grid(X, y)
    assert all(fit.certificate.certified for fit in fits.values())


def test_any_number_of_threads_gives_the_same_bits():
    X, y = rows("plain")
    one, two = (grid(X, y, LinearSVC(n_threads=k))[0] for k in (1, 2))
    assert all(np.array_equal(one[key].W, two[key].W) for key in one)


def test_without_an_intercept():
    X, y = rows("plain")
    fits, *_ = grid(X, y, LinearSVC(fit_intercept=False))
    assert all(fit.certificate.certified and fit.W[-1, 0] == 0.0 for fit in fits.values())


def test_weights_limits_and_other_losses_go_elsewhere():
    X, y = rows("plain")
    part = np.arange(len(y)) % 3
    for model, weight in (
        (LinearSVC(), np.ones(len(y))),
        (LinearSVC(class_weight={-1.0: 2.0, 1.0: 1.0}), None),
        (LinearSVC(loss="squared_hinge"), None),
        (LinearSVC(time_limit=5.0), None),
        (LinearSVC(solver="sifting"), None),
    ):
        assert not banded.applies(model._grid_problem(X, y, weight).with_grid(CS, part))
    given = LinearSVC()._grid_problem(X, y, None)
    assert not banded.applies(given.with_grid([*CS, np.inf], part))
    assert not banded.applies(given.with_grid(CS))
