"""Grids of sparse rows, model after model on one data set: the numbers of separate fits, each proven."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, path, tune
from linsep.certificates import Part, recheck_part
from linsep.solvers.grid import warm_start as successive
from linsep.solvers.grid.problem import HeldOut
from linsep.train_grid import ENGINES, fit_grid
from linsep.tuning import pruning as rejecting

CS = [1e-3, 0.3, 30.0]
LOSSES = ["logistic", "squared_hinge", "hinge"]


def text(n=240, d=400, seed=3):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.05, random_state=rng, format="csr")
    X.data += 0.1
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X, y


def grid(model, X, y, weight=None, folds=4, Cs=CS):
    part = np.arange(len(y)) % folds
    problem = model._grid_problem(X, y, weight).on(Cs, part)
    assert successive.applies(problem) and not any(engine.applies(problem) for engine in ENGINES)
    held, errors = np.zeros((len(y), len(Cs))), np.zeros((len(Cs), folds), dtype=np.int64)
    return fit_grid(problem, HeldOut(held, errors)), part, held, errors


@pytest.mark.parametrize("loss", LOSSES)
def test_every_model_is_proven_by_code_that_shares_nothing_with_it(loss):
    X, y = text()
    model = LinearClassifier(loss)
    fits, part, held, errors = grid(model, X, y)
    for (c, f), fit in fits.items():
        train = part != f
        proof = recheck_part(
            Part(
                model._grid_problem(X, y, None).recipe.loss,
                fit.recipe.penalty,
                True,
                X[train],
                y[train],
                None,
                None,
                None,
                fit.W,
                fit.dual,
                1e-6,
            )
        )
        assert proof.certified
        assert fit.certificate.dual <= proof.primal * (1 + 1e-12)
        z = X[~train] @ fit.W[:-1, 0] + fit.W[-1, 0]
        assert np.allclose(held[~train, c], z, rtol=1e-12, atol=1e-12)
        assert errors[c, f] == ((z >= 0.0) != (y[~train] > 0.0)).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_of_two_is_the_row_twice(loss):
    X, y = text()
    weight = 1.0 + (np.arange(len(y)) % 3 == 0)
    once = grid(LinearClassifier(loss, tol=1e-8), X, y, weight)[0]
    twice = np.flatnonzero(weight == 2.0)
    part = np.arange(len(y)) % 4
    model = LinearClassifier(loss, tol=1e-8)
    given = model._grid_problem(sp.vstack([X, X[twice]]).tocsr(), np.append(y, y[twice]), None)
    again = fit_grid(given.on(CS, np.append(part, part[twice])))
    for key, fit in once.items():
        a, b = fit.certificate, again[key].certificate
        assert a.dual <= b.primal * (1 + 1e-12) and b.dual <= a.primal * (1 + 1e-12)
        assert np.linalg.norm((fit.W - again[key].W)[:-1]) <= a.coef_error + b.coef_error


def test_regression_has_no_classes():
    X, _ = text()
    t = X @ np.linspace(-1.0, 1.0, X.shape[1])
    model = LinearRegressor("huber")
    tuning = tune(model, X, t, CS, cv=3, refit=False)
    assert tuning.certified
    given = model._grid_problem(X, t, None)
    assert successive.applies(given.on(CS, np.arange(len(t)) % 3))


def test_a_path_goes_the_same_way():
    X, y = text()
    rising = path(LinearClassifier("logistic"), X, y, CS)
    for C, proof, coef in zip(CS, rising.certificates, rising.coefs, strict=True):
        alone = LinearClassifier("logistic", C=C).fit(X, y)
        assert proof.certified
        room = proof.coef_error + alone.certificate_.coef_error
        assert np.linalg.norm(coef - alone.coef_) <= room


def test_models_that_may_be_rejected_go_another_way(monkeypatch):
    X, y = text()
    seen = []
    models = rejecting.models
    monkeypatch.setattr(rejecting, "models", lambda *given: (seen.append(1), models(*given))[1])
    tuning = tune(LinearClassifier("logistic"), X, y, CS, cv=3, reject=True, refit=False)
    assert seen and tuning.best_C in CS


def test_what_it_leaves_to_others():
    X, y = text()
    part = np.arange(len(y)) % 3
    for model in (
        LinearClassifier("logistic", l1_ratio=0.5),
        LinearClassifier("logistic", time_limit=9.0),
        LinearClassifier("logistic", max_passes=9),
    ):
        assert not successive.applies(model._grid_problem(X, y, None).on(CS, part))
    given = LinearClassifier("logistic")._grid_problem(X, y, None)
    assert not successive.applies(given.on([*CS, np.inf], part))
    assert not successive.applies(given.on(CS, np.where(y > 0, 0, 1)))  # a model of one class
    dense = LinearClassifier("logistic")._grid_problem(X.toarray(), y, None)
    assert not successive.applies(dense.on(CS, part))
