"""Hinge on many rows whose columns nobody has scaled: pilot and bands need few passes, whatever these are like."""

import numpy as np
import pytest
from catalogue import Sample, fit
from duality import assert_optimal

from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers.interior.active_band import Band
from linsep.solvers.interior.subsampling import Pilot, Thinning
from linsep.solvers.run import Run

N, D = 60_000, 20


def table(kind, n=N, d=D):
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(n, d)), rng.normal(size=d) / np.sqrt(d)
    size, noise = np.ones(d), 0.5
    z, Y = X @ w, X
    if kind == "scales":
        size = np.logspace(-3, 3, d)
    elif kind == "lognormal":
        Y = np.exp(X)
        z = Y @ w
    elif kind == "offsets":
        Y = X + 1000.0 * rng.normal(size=d)
    elif kind == "offsets and scales":
        Y, size = X + 30.0 * rng.normal(size=d), np.logspace(-2, 2, d)
    elif kind == "correlated":
        Y = X @ (rng.normal(size=(d, d)) * np.logspace(0, -3, d))
        z = Y @ w
    elif kind == "1 % positive":
        size, z = np.logspace(-1, 2, d), z + rng.normal(size=n)
        z, noise = np.where(z > np.quantile(z, 0.99), 1.0, -1e-6), 0.0
    elif kind == "heavy tails":
        Y = rng.standard_cauchy(size=(n, d))
        z = np.clip(Y, -5, 5) @ w
    elif kind == "columns twice":
        Y = np.hstack([X[:, ::2], 10.0 * X[:, ::2]])
    elif kind == "nearly separable":
        size, noise = np.logspace(-1, 2, d), 0.02
    else:
        assert kind == "no relation"
        size, z = np.logspace(-1, 1, d), rng.normal(size=n)
    centre = 0.0 if kind == "1 % positive" else np.median(z)
    z = (z - centre) / np.abs(z - centre).mean() + noise * rng.normal(size=n)
    return Sample(Y * size, np.where(z > 0, 1.0, -1.0))


KINDS = {
    "scales": 20,
    "lognormal": 20,
    "offsets": 20,
    "offsets and scales": 20,
    "correlated": 20,
    "1 % positive": 20,
    "heavy tails": 36,  # 17 to 34 for the seeds 0 to 5, whichever way the pilot is drawn
    "columns twice": 20,
    "nearly separable": 28,
    "no relation": 40,  # 24 to 64, likewise
}


@pytest.mark.parametrize("kind, most", KINDS.items(), ids=KINDS)
@pytest.mark.sampled(4)
def test_few_passes_whatever_the_columns_are_like(kind, most):
    sample, hinge = table(kind), get("hinge")
    for C in (0.1, 1e4):
        found = fit(sample, hinge, C)
        assert found.solver == "sifting" and found.certificate.certified
        assert found.n_passes <= most
        assert_optimal(found, hinge, C, sample, 1e-6)


@pytest.mark.parametrize("n", [4000, 60_000])
def test_labels_without_relation_to_five_columns(n):
    """The step of the predictor collapses here without centrality correctors."""
    sample, hinge = table("no relation", n, 5), get("hinge")
    for C in (1.0, 100.0):
        assert_optimal(fit(sample, hinge, C, "interior"), hinge, C, sample, 1e-6)


def thinned(loss, weighted):
    sample = table("lognormal", 6000, 4)
    rng = np.random.default_rng(1)
    offset = 0.1 * rng.normal(size=6000)
    weight = rng.integers(0, 3, 6000) / 2.0 if weighted else None
    sample = Sample(sample.X, sample.sign, offset, weight)
    return sample, Problem(loss, ElasticNet(2.0), sample.memory())


@pytest.mark.parametrize("loss", ["hinge", "absolute", "perceptron"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_thinned_band_has_value_and_gradient_of_all_rows(loss, weighted):
    sample, problem = thinned(get(loss), weighted)
    band = Band(Run(problem, Stop()), np.zeros(4), np.ones(4))
    theta = np.array([0.3, -0.2, 0.1, 0.05, 0.4])
    value = band.sort(theta, 0.5, Thinning((0.3, 0.6), np.array([7, 8, 4000]), seed=3))
    path = band.path()
    assert 500 < len(band.rows) < 4000
    path.place(theta, 1e-9)  # u at the ends, by the side
    path.measure()
    assert path.value == pytest.approx(value, rel=1e-12)
    low, high = problem.loss.domain
    weight = np.ones(6000) if sample.weight is None else sample.weight
    kink = 0.0 if loss == "perceptron" else 1.0
    v = sample.sign * (sample.X @ theta[:-1] + theta[-1]) + sample.offset - kink
    mass = weight * sample.sign * np.where(v < 0, high, low)
    A = np.column_stack([sample.X, np.ones(6000)])
    np.testing.assert_allclose(path._sums[3:8], A.T @ mass, rtol=1e-5, atol=0.5)


def test_thinning_looks_at_the_number_of_a_row_alone():
    rng = np.random.default_rng(0)
    thin = Thinning((0.1, 0.5), np.array([5, 77, 90_000]), seed=2)
    rows, sign = np.arange(100_000), np.where(rng.random(100_000) < 0.3, 1.0, -1.0)
    taken, share = thin.of(rows, sign)
    for part in (slice(0, 40_000), slice(40_000, 100_000)):
        some, _ = thin.of(rows[part], sign[part])
        assert np.isin(rows[part][some], rows[taken]).all()
    assert (
        np.isin(thin.always, rows[taken]).all() and (share[np.isin(taken, thin.always)] == 1).all()
    )
    for side, rate in ((-1.0, 0.1), (1.0, 0.5)):
        kept = np.sum(sign[taken] == side) / np.sum(sign == side)
        assert abs(kept - rate) < 0.01
    assert abs(share.sum() / len(rows) - 1.0) < 0.02


def test_a_pilot_of_heavy_tails_has_the_rows_that_are_far_out():
    sample = table("heavy tails", 30_000, 5)
    problem = Problem(get("hinge"), ElasticNet(1.0), sample.memory())
    first = Pilot(Run(problem, Stop()), np.zeros(6), 2000, 0)
    q = np.sqrt(1.0 + (sample.X - first.mu) ** 2 @ first.scale)
    farthest = np.argsort(q)[-len(first.always) :]
    assert 200 < len(first.always) < 4000
    assert set(farthest) == set(first.always)
    normal = table("scales", 30_000, 5)
    problem = Problem(get("hinge"), ElasticNet(1.0), normal.memory())
    assert not len(Pilot(Run(problem, Stop()), np.zeros(6), 2000, 0).always)


@pytest.mark.slow
def test_progress_of_a_tenth_in_two_iterations_is_not_given_up():
    """Random labels of Cauchy rows: nearly a hundred iterations, each of which gains less than a tenth."""
    rng = np.random.default_rng(0)
    sample = Sample(
        rng.standard_cauchy((40_000, 15)), np.where(rng.random(40_000) < 0.5, 1.0, -1.0)
    )
    hinge = get("hinge")
    assert_optimal(fit(sample, hinge, 1.0), hinge, 1.0, sample, 1e-6)
