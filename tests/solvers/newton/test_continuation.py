"""C = inf: a minimiser with a proof, or the direction that proves there is none."""

import numpy as np
import pytest
from catalogue import (
    FALLING,
    MAKERS,
    SMOOTH,
    Sample,
    dense,
    fit,
    makers,
    naming,
    objective,
    plain,
    reference,
)
from separation_truth import truth

from linsep import LogisticRegression
from linsep.errors import Refused, SeparableData

PAIRS = [(loss, maker) for loss in SMOOTH for maker in makers(loss)]
each_pair = pytest.mark.parametrize(("loss", "maker"), PAIRS, ids=naming)
SEPARABLE = ("wide", "separable")


@pytest.mark.sampled(60)
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
@each_pair
@pytest.mark.parametrize("solver", ["auto", "small", "newton", "newton-cg"])
def test_without_a_penalty(solver, loss, maker, storage):
    """Falling losses have no minimiser on separable rows; all others end certified at theirs."""
    sample = MAKERS[maker]().in_storage(storage)
    if solver == "small" and not loss.native:
        with pytest.raises(Refused, match="compiled loss"):
            fit(sample, loss, np.inf, solver)
        return
    if loss in FALLING and maker in SEPARABLE:
        with pytest.raises(SeparableData) as found:
            fit(sample, loss, np.inf, solver)
        w, b = found.value.direction
        assert (sample.sign * (dense(sample.X) @ w + b) > 0).all()
        return
    found = fit(sample, loss, np.inf, solver)
    proof = found.certificate
    assert proof.certified, str(proof)
    value = objective(loss, np.inf, sample, found.W[:, 0])[0]
    at_zero = objective(loss, np.inf, sample, 0 * found.W[:, 0])[0]
    assert value <= reference(loss, maker, np.inf) + proof.gap + 1e-9 * at_zero
    assert abs(proof.primal - value) <= 1e-11 * value + proof.rounding


def signed_flag():
    """One feature tells the classes apart where it is not 0; the rows where it is 0 overlap."""
    base = plain(80, 2, seed=3)
    flag = np.where(np.arange(80) < 20, base.sign, 0.0)
    return Sample(np.column_stack([base.X, flag]), base.sign)


def pure_category():
    """A category, coded as 0 and 1 beside others, whose rows are all of one class."""
    rng = np.random.default_rng(4)
    category = rng.integers(0, 4, 90)
    sign = rng.choice([-1.0, 1.0], 90)
    sign[category == 2] = 1.0
    return Sample(np.eye(4)[category], sign)


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("loss", FALLING, ids=naming)
@pytest.mark.parametrize("make", [signed_flag, pure_category], ids=lambda f: f.__name__)
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_quasi_separable_rows_have_no_minimiser(solver, loss, make, storage):
    sample = make()
    with pytest.raises(SeparableData) as found:
        fit(sample.in_storage(storage), loss, np.inf, solver)
    w, b = found.value.direction
    moved = sample.sign * (sample.X @ w + b)
    assert moved.min() >= -1e-8 and (moved > 1e-3).sum() >= 15


@pytest.mark.parametrize("solver", ["auto", "small", "newton"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_least_squares_of_least_norm(solver, fit_intercept, storage):
    """On dependent columns the answer is that of the pseudo-inverse, for centred rows."""
    rng = np.random.default_rng(1)
    for n, d, rank in ((40, 6, 3), (12, 30, 12), (30, 4, 4)):
        # small multiples of 1/16: the columns are dependent exactly, not only to working precision
        X = (rng.integers(-9, 10, (n, rank)) @ rng.integers(-3, 4, (rank, d))) / 16 + 0.5
        target = rng.normal(size=n)
        sample = Sample(X, np.ones(n), 1 - target).in_storage(storage)
        found = fit(sample, "squared", np.inf, solver, fit_intercept=fit_intercept)
        mean = X.mean(axis=0) if fit_intercept else np.zeros(d)
        level = target.mean() if fit_intercept else 0.0
        w = np.linalg.pinv(X - mean, rcond=1e-10) @ (target - level)
        np.testing.assert_allclose(found.W[:-1, 0], w, atol=1e-7 * np.abs(w).max())
        np.testing.assert_allclose(found.W[-1, 0], level - mean @ w, atol=1e-6 * (1 + abs(level)))


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
def test_random_flags_against_linear_programmes(seed):
    """A minimiser is found, with its proof, iff there is one; a hundred problems for each seed."""
    rng = np.random.default_rng(seed)
    seen = set()
    for _ in range(100):
        n, d = rng.integers(4, 50), rng.integers(1, 8)
        X = rng.integers(0, 2, (n, d)).astype(float)
        noise = rng.choice([0.3, 1.0, 3.0]) * rng.normal(size=n)
        sign = np.where(X @ rng.normal(size=d) + noise > 0, 1.0, -1.0)
        sign[:2] = 1.0, -1.0
        expected = truth(X, sign)
        seen.add(expected)
        for loss in FALLING:
            _minimiser_or_direction(Sample(X, sign), loss, expected)
    assert seen == {"separable", "quasi", "overlap"}


def _minimiser_or_direction(sample, loss, expected):
    if expected == "overlap":
        assert fit(sample, loss, np.inf).certificate.certified
        return
    with pytest.raises(SeparableData) as found:
        fit(sample, loss, np.inf)
    w, b = found.value.direction
    moved = sample.sign * (sample.X @ w + b)
    assert moved.min() > (0 if expected == "separable" else -1e-12)
    assert moved.max() > 1e-3
    if expected == "quasi":
        assert (np.flatnonzero(moved > 1e-9) == found.value.rows).all()


def test_many_rows_begin_at_a_penalised_pilot():
    """The pilot is penalised, the answer is not; separable classes are refused as ever."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30_000, 20))
    z = X @ rng.normal(size=20)
    y = z + rng.logistic(size=len(z)) > 0
    model = LogisticRegression(C=np.inf, solver="newton").fit(X, y)
    assert model.certificate_.certified
    # The last pass makes sure that no direction recedes beyond rounding.
    assert model.n_passes_ < 21
    p = 1.0 / (1.0 + np.exp(-model.decision_function(X)))
    g = np.c_[X, np.ones(len(X))].T @ (p - y)
    assert np.abs(g).max() < 1e-8 * len(X)
    with pytest.raises(SeparableData):
        LogisticRegression(C=np.inf, solver="newton").fit(X, z > 0)
