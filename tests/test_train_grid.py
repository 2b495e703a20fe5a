"""Models of a grid are fits like any other: what each claims, its rows confirm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearRegressor, LinearSVC, LogisticRegression
from linsep.certificates import Part, recheck_part
from linsep.solution import Status
from linsep.solvers.grid import ENGINES
from linsep.solvers.grid.problem import HeldOut
from linsep.train_grid import fit_grid

CS = [1e-2, 1.0, 30.0]
FOLDS = 3


def table(n, d, density=None, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if density is not None:
        X = sp.csr_matrix(X * (rng.uniform(size=(n, d)) < density))
    score = X @ rng.normal(size=d) + 0.5 * np.sqrt(d) * rng.normal(size=n)
    return X, score


#: One grid for each engine: estimator, rows, name of the solver that its fits bear.
GRIDS = {
    "smooth": (LogisticRegression(), table(600, 5), "grid"),
    "smooth, squared hinge": (LinearSVC(loss="squared_hinge"), table(600, 5), "grid"),
    "smooth, regression": (LinearRegressor("huber"), table(600, 5), "grid"),
    "gram, hinge": (LinearSVC(), table(60, 150), "span"),
    "gram, logistic": (LogisticRegression(), table(60, 150), "span"),
    "gram, regression": (LinearRegressor("huber"), table(60, 150), "span"),
    "hinge": (LinearSVC(), table(6600, 4), "band"),
    "hinge, no intercept": (LinearSVC(fit_intercept=False), table(6600, 4), "band"),
}


@pytest.fixture(autouse=True)
def _small_tables_too(tuned):
    tuned(hinge_grid_entries=1)


def posed(name, weighted=False):
    model, (X, score), solver = GRIDS[name]
    y = score if isinstance(model, LinearRegressor) else np.where(score > 0.0, 1.0, -1.0)
    weight = 0.5 + np.arange(len(y)) % 3 if weighted else None
    return model._grid_problem(X, y, weight).with_grid(CS, np.arange(len(y)) % FOLDS), solver


def recheck(problem, fit, f):
    outside = problem.training_rows(f)
    vectors = (problem.sigma, problem.offset, problem.weight)
    kept = [None if v is None else v[outside] for v in vectors]
    recipe = fit.recipe
    return recheck_part(
        Part(
            *(recipe.loss, recipe.penalty, recipe.fit_intercept, problem.rows[outside], *kept),
            *(None, fit.W, fit.dual, recipe.tol),
        )
    )


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", GRIDS)
def test_every_fit_of_a_grid_is_confirmed_by_its_rows(name, weighted):
    problem, solver = posed(name, weighted)
    fits = fit_grid(problem)
    if weighted and name.startswith("hinge"):
        assert fits is None  # its bands know no weights
        return
    assert set(fits) == {(c, f) for c in range(len(CS)) for f in range(FOLDS)}
    assert solver is None or any(fit.solver == solver for fit in fits.values())
    for (c, f), fit in fits.items():
        assert fit.status is Status.CERTIFIED and fit.certificate.certified
        assert fit.recipe.penalty.C == CS[c]
        found = recheck(problem, fit, f)
        assert found.certified
        room = found.rounding + fit.certificate.rounding
        assert abs(found.primal - fit.certificate.primal) <= room
        assert fit.certificate.dual <= found.primal + room


@pytest.mark.parametrize("name", GRIDS)
def test_a_claim_that_is_too_good_is_not_confirmed(name):
    problem, _ = posed(name)
    fit = fit_grid(problem)[1, 0]
    moved = fit.W.copy()
    moved[0] += 1.0
    assert not recheck(problem, replace(fit, W=moved), 0).certified


def test_every_engine_has_a_grid_here():
    asked = {name: [e.applies(posed(name)[0]) for e in ENGINES] for name in GRIDS}
    assert all(any(column) for column in zip(*asked.values(), strict=True))


@pytest.mark.parametrize("name", ["smooth", "gram, hinge", "hinge"])
def test_held_out_scores_are_those_of_the_coefficients(name):
    problem, _ = posed(name)
    held = HeldOut(np.zeros((len(problem.part), len(CS))), np.zeros((len(CS), FOLDS), dtype=int))
    for (c, f), fit in fit_grid(problem, held).items():
        inside = problem.part == f
        z = problem.rows[inside] @ fit.W[:-1, 0] + fit.W[-1, 0]
        assert np.allclose(held.scores[inside, c], z, rtol=1e-9, atol=1e-9 * np.abs(z).max())
        wrong = (held.scores[inside, c] >= 0.0) != (problem.sigma[inside] > 0.0)
        assert held.errors[c, f] == wrong.sum()
