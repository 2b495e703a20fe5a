"""The Hessian that follows the curvatures at a distance: what its sums are, what it saves, who gets the same bits."""

import numpy as np
import pytest
from catalogue import Sample, fit

from linsep import LinearClassifier, scan, verify
from linsep.losses import get
from linsep.problem.gram import symmetric
from linsep.problem.pointwise import CURVATURE
from linsep.solvers.newton.lazy_hessian import FACTOR, NEGLIGIBLE, LazyHessian

LOSSES = ("logistic", "squared_hinge")


def correlated(n: int = 900, d: int = 140, seed: int = 0) -> Sample:
    """Common factors and noise, as spectra and embeddings have them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12)) @ rng.normal(size=(12, d)) + 0.3 * rng.normal(size=(n, d))
    y = np.sign(X @ rng.normal(size=d) + 10.0 * rng.normal(size=n))
    return Sample(X, y)


def outdated(hessian, problem):
    kept, h = hessian._weights, problem.data.row_state(CURVATURE)
    floor = NEGLIGIBLE * h.max()
    return np.count_nonzero((h > FACTOR * kept + floor) | (kept > FACTOR * h + floor))


def products_until_renewed(hessian, problem, most=2_000):
    """Products after which M is made or brought up to date; None if that is not worth it."""
    return next((k for k in range(1, most) if hessian.renew(problem, k) is not None), None)


@pytest.mark.parametrize("loss", LOSSES)
def test_its_sums_are_those_of_its_weights(loss):
    problem = correlated().problem(get(loss), 1.0)
    hessian, rng = LazyHessian(problem), np.random.default_rng(1)
    theta = np.zeros(problem.order)
    problem.value_gradient(theta)
    assert hessian(problem) is None
    first = products_until_renewed(hessian, problem)
    assert first is not None and first <= hessian.price
    assert hessian(problem) is not None and outdated(hessian, problem) == 0
    assert hessian.renew(problem, 1) is None
    for size in (0.01, 0.02, 0.05):  # few rows out of date, then many
        problem.value_gradient(size * rng.normal(size=problem.order))
        before = outdated(hessian, problem)
        after = products_until_renewed(hessian, problem)
        assert (after is None) == (before == 0) and outdated(hessian, problem) == 0
        kept = hessian._weights
        assert hessian._mu is not None
        want = symmetric(problem.gram(kept, hessian._mu), sparse=False)
        found = symmetric(hessian._sums, sparse=False)
        assert np.abs(found - want).max() <= 1e-5 * np.diag(want).max()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_correlated_features_are_certified_in_few_passes(loss, C):
    sample = correlated()
    found = fit(sample, loss, C, solver="newton-pilot")
    assert found.certificate.certified and found.n_passes < 250
    model = LinearClassifier(loss, C=C, solver="newton-pilot").fit(sample.X, sample.sign)
    assert verify(model, sample.X, sample.sign).relative_gap <= 1e-6


def test_columns_of_any_size_with_a_weak_penalty():
    sample = correlated()
    sample = Sample(sample.X * np.logspace(-6, 6, 140), sample.sign)
    for loss in LOSSES:
        assert fit(sample, loss, 1e4, solver="newton-pilot").certificate.certified


@pytest.mark.parametrize("loss", LOSSES)
def test_the_bits_do_not_depend_on_the_threads(loss):
    one, two = (fit(correlated(), loss, solver="newton-pilot", n_threads=k).W for k in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_on_disk_have_the_bits_of_rows_in_memory(loss, tmp_path):
    sample = correlated()
    np.save(tmp_path / "X.npy", sample.X)
    there = LinearClassifier(loss, solver="newton-pilot")
    there.fit(scan(tmp_path / "X.npy"), sample.sign)
    here = LinearClassifier(loss, solver="newton-pilot").fit(sample.X, sample.sign)
    assert np.array_equal(here.coef_, there.coef_)


def test_a_matrix_beyond_single_precision_is_made_in_double():
    sample = correlated(300, 140)
    X = np.hstack([sample.X, sample.X[:, :60] + 1e-5])
    problem = Sample(X, sample.sign).problem(get("squared_hinge"), 1e8)
    hessian = LazyHessian(problem)
    problem.value_gradient(np.zeros(problem.order))
    assert products_until_renewed(hessian, problem) is not None
    assert not hessian._single
    assert np.isfinite(hessian._sums).all()
