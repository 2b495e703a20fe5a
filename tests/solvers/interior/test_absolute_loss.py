"""Least absolute deviations without a penalty: the vertex of a linear programme, and its certificate."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.datasets import load_diabetes

from linsep import LinearClassifier, LinearRegressor, _kernels, verify
from linsep.errors import CertificateError, ConvergenceWarning, Refused
from linsep.solution import Explicit

SEED = 20


def least(X, t, weight=None, fit_intercept=True):
    """The least sum of weighted absolute residuals, by HiGHS."""
    n = len(t)
    s = np.ones(n) if weight is None else weight
    A = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    free, sides = [(None, None)] * A.shape[1], [(0.0, None)] * (2 * n)
    equations = sp.hstack([sp.csr_matrix(A), sp.eye(n), -sp.eye(n)])
    costs = np.concatenate([np.zeros(A.shape[1]), s, s])
    found = linprog(costs, A_eq=equations, b_eq=t, bounds=free + sides, method="highs")
    assert found.status == 0
    return found.fun


def noisy(n, d, seed=SEED):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d) + rng.standard_t(2, size=n)


def integers(n, d, seed=SEED):
    """Many rows on the kink: degenerate vertices."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 3, (n, d)).astype(float), rng.integers(0, 5, n).astype(float)


def deficient():
    X, t = noisy(100, 3)
    X = np.round(X * 1024) / 1024  # so that the sum is exact
    return np.column_stack([X, X[:, 0], X @ np.ones(3), np.ones(100)]), t


def repeated():
    X, t = noisy(60, 3)
    return np.repeat(X, 3, axis=0), np.repeat(t, 3)


def unscaled():
    X, t = noisy(150, 4)
    return X * np.array([1.0, 1e3, 1e-3, 1e5]) + np.array([0.0, 1e4, 0.0, 1e6]), t


PROBLEMS = {
    "noisy": noisy(80, 4),
    "more rows": noisy(1500, 12),
    "integers": integers(200, 4),
    "dependent columns": deficient(),
    "repeated rows": repeated(),
    "unscaled": unscaled(),
    "one column": noisy(50, 1),
    "diabetes": load_diabetes(return_X_y=True),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_least_sum_of_absolute_residuals(name, fit_intercept):
    X, t = PROBLEMS[name]
    model = LinearRegressor("absolute", fit_intercept=fit_intercept).fit(X, t)
    proof = model.certificate_
    expected = least(X, t, fit_intercept=fit_intercept)
    assert np.abs(t - model.predict(X)).sum() == pytest.approx(expected, rel=1e-9)
    assert proof.certified
    assert proof.primal == pytest.approx(expected, rel=1e-9)
    assert proof.dual <= expected * (1.0 + 1e-12)
    assert proof.kind == "dual"
    assert verify(model, X, t).certified


def test_a_vertex_passes_through_as_many_rows_as_there_are_coefficients():
    X, t = PROBLEMS["more rows"]
    model = LinearRegressor("absolute").fit(X, t)
    residual = np.abs(t - model.predict(X))
    assert np.count_nonzero(residual <= 1e-10) == 13
    assert model.certificate_.relative_gap <= 1e-10


def test_the_median_is_the_best_constant():
    t = np.random.default_rng(SEED).standard_normal(101)
    model = LinearRegressor("absolute").fit(np.zeros((101, 1)), t)
    assert model.intercept_ == pytest.approx(np.median(t), rel=1e-12)
    assert model.certificate_.certified


@pytest.mark.parametrize("rows", [6, 11])
def test_as_many_coefficients_as_rows_leave_nothing(rows):
    rng = np.random.default_rng(SEED)
    X, t = rng.standard_normal((rows, 10)), rng.standard_normal(rows)
    model = LinearRegressor("absolute").fit(X, t)
    np.testing.assert_allclose(model.predict(X), t, atol=1e-10)
    assert model.certificate_.certified
    assert verify(model, X, t).certified


def test_an_exact_fit():
    X, _ = noisy(100, 4)
    t = X @ [1.0, 2.0, 3.0, 4.0] + 5.0
    model = LinearRegressor("absolute").fit(X, t)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0, 4.0], rtol=1e-10)
    assert model.certificate_.certified


def test_more_features_than_rows_that_contradict_each_other():
    rng = np.random.default_rng(SEED)
    X = np.repeat(rng.standard_normal((5, 20)), 2, axis=0)
    t = rng.standard_normal(10)
    model = LinearRegressor("absolute").fit(X, t)
    pairs = np.abs(t[::2] - t[1::2]).sum()  # the best for each pair is anything between its targets
    assert np.abs(t - model.predict(X)).sum() == pytest.approx(pairs, rel=1e-9)
    assert model.certificate_.certified


def test_weight_two_is_the_row_twice():
    X, t = noisy(120, 4)
    weight = np.random.default_rng(1).integers(0, 4, len(t)).astype(float)
    again = np.repeat(np.arange(len(t)), weight.astype(int))
    one = LinearRegressor("absolute").fit(X, t, weight)
    two = LinearRegressor("absolute").fit(X[again], t[again])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-7, atol=1e-9)
    assert one.certificate_.primal == pytest.approx(least(X, t, weight), rel=1e-9)
    assert one.certificate_.certified
    assert verify(one, X, t, weight).certified


def test_the_layout_and_the_type_of_the_rows_do_not_matter():
    X, t = noisy(200, 5)
    X = np.where(np.abs(X) > 0.4, X, 0.0)
    one = LinearRegressor("absolute").fit(X, t)
    for other in (sp.csr_array(X), np.asfortranarray(X)):
        two = LinearRegressor("absolute").fit(other, t)
        np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-8, atol=1e-10)
        assert verify(two, other, t).certified
    small = X.astype(np.float32)
    three = LinearRegressor("absolute").fit(small, t)
    assert three.certificate_.primal == pytest.approx(least(small.astype(float), t), rel=1e-9)
    assert three.certificate_.certified


def test_the_equations_of_regression_hold():
    """A shift of the targets along the columns shifts the coefficients; a scale scales them (Koenker and Bassett)."""
    X, t = noisy(300, 4)
    shift, c = np.array([1.0, -2.0, 0.5, 3.0]), 2.5
    one = LinearRegressor("absolute").fit(X, t)
    two = LinearRegressor("absolute").fit(X, c * t + X @ shift + 7.0)
    np.testing.assert_allclose(two.coef_, c * one.coef_ + shift, rtol=1e-7)
    assert two.intercept_ == pytest.approx(c * one.intercept_ + 7.0, rel=1e-7)


def test_labels_as_targets():
    X, t = noisy(150, 3)
    y = t > 0.0
    model = LinearClassifier("absolute", C=np.inf).fit(X, y)
    assert model.certificate_.primal == pytest.approx(least(X, 2.0 * y - 1.0), rel=1e-9)
    assert model.certificate_.certified
    assert verify(model, X, y).certified


def test_many_rows_by_pilot_and_band():
    X, t = noisy(60_000, 10)
    model = LinearRegressor("absolute").fit(X, t)
    assert model._fits[0].solver == "sifting"
    assert model.certificate_.certified
    assert np.count_nonzero(np.abs(t - model.predict(X)) <= 1e-10) == 11
    whole = LinearRegressor("absolute", solver="interior").fit(X, t)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d"), [(200_000, 50), (1_000_000, 10)])
def test_the_vertex_among_very_many_rows(n, d):
    X, t = noisy(n, d, seed=2)
    model = LinearRegressor("absolute").fit(X, t)
    assert np.count_nonzero(np.abs(t - model.predict(X)) <= 1e-10) == d + 1
    assert model.certificate_.relative_gap <= 1e-8


@pytest.mark.parametrize("seed", range(5))
def test_crossover_drops_rows_that_no_plane_passes_through(seed):
    """From u = 0 nearly all rows are taken for free; the drift of u fixes them one by one until a vertex is left."""
    X, t = noisy(25, 2, seed)
    sign, offset = np.ones(25), 1.0 - t
    theta = np.linalg.lstsq(np.c_[X, np.ones(25)], t, rcond=None)[0]
    u, v = np.zeros(25), np.c_[X, np.ones(25)] @ theta - t
    rows, targets = _kernels.Rows(X), _kernels.Targets(sign, offset, None)
    found = _kernels.crossover(
        rows, targets, _kernels.Loss("absolute"), 0.0, True, np.zeros(3), 200, theta, u, v
    )
    residual = np.abs(t - X @ theta[:2] - theta[2])
    assert found
    assert np.count_nonzero(residual <= 1e-12) == 3
    assert residual.sum() == pytest.approx(least(X, t), rel=1e-12)
    assert np.abs(np.c_[X, np.ones(25)].T @ u).max() <= 1e-10
    assert np.abs(u).max() <= 1.0 + 1e-12


def test_the_same_bits_for_any_number_of_threads(tuned):
    tuned(block_bytes=1 << 14)
    X, t = noisy(4000, 6)
    one, *others = (LinearRegressor("absolute", n_threads=k).fit(X, t) for k in (1, 2, 5))
    assert one.certificate_.certified
    for other in others:
        assert np.array_equal(one.coef_, other.coef_)
        assert one.intercept_ == other.intercept_


def test_a_tampered_certificate_fails():
    X, t = noisy(100, 4)
    model = LinearRegressor("absolute").fit(X, t)
    forged = copy.deepcopy(model)
    forged.coef_ = forged.coef_ * 1.001
    with pytest.raises(CertificateError):
        verify(forged, X, t)
    forged = copy.deepcopy(model)
    u = -np.sign(1.0 - t)  # a point of the box that is far from feasible
    forged._fits = [copy.copy(forged._fits[0])]
    object.__setattr__(forged._fits[0], "dual", Explicit(u))
    # It proves nothing, but the claim is true: verify finds a point of its own.
    again = verify(forged, X, t)
    assert again.certified and again.dual <= least(X, t) * (1.0 + 1e-12)
    claim = replace(model.certificate_, dual=1.001 * model.certificate_.dual)
    forged.certificate_ = claim
    object.__setattr__(forged._fits[0], "certificate", claim)
    with pytest.raises(CertificateError):
        verify(forged, X, t)


def test_a_limit_ends_with_an_honest_certificate():
    X, t = noisy(3000, 6)
    with pytest.warns(ConvergenceWarning) as caught:
        model = LinearRegressor("absolute", max_passes=12).fit(X, t)
    assert not model.certificate_.certified
    assert model.certificate_.dual <= least(X, t) <= model.certificate_.primal * (1.0 + 1e-12)
    assert caught[0].message.certificate == model.certificate_


@pytest.mark.parametrize("solver", ["auto", "interior", "sifting"])
def test_the_perceptron_loss_without_a_penalty_is_refused_with_the_reason(solver):
    X, t = noisy(20, 2)
    with pytest.raises(Refused, match=r"its minimum, 0, at w = 0 and b = 0.*LinearSVC\(C=inf\)"):
        LinearClassifier("perceptron", C=np.inf, solver=solver).fit(X, t > 0.0)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_a_face_of_minimisers_ends_at_a_vertex(seed, fit_intercept):
    """Few rows and whole numbers: the minimisers form a face, and the model passes through as many rows as it can."""
    rng = np.random.default_rng(seed)
    n, d = 4 + seed % 7, 1 + seed % 3
    X, t = rng.integers(-3, 4, (n, d)).astype(float), rng.integers(-5, 6, n).astype(float)
    model = LinearRegressor("absolute", fit_intercept=fit_intercept).fit(X, t)
    assert model.certificate_.certified
    rows = np.column_stack([X, np.ones(n)]) if fit_intercept else X
    touched = rows[np.abs(model.predict(X) - t) <= 1e-12 * (1 + np.abs(t))]
    assert np.linalg.matrix_rank(touched) == np.linalg.matrix_rank(rows)
