"""Pilot and band for losses with a kink: the same answers as all rows give, with fewer passes over them."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from catalogue import KINKED, Sample, fit, labels, naming, objective, plain
from duality import assert_optimal

from linsep import _kernels
from linsep.errors import ConvergenceWarning
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers.interior import sifting
from linsep.solvers.interior.active_band import Band, Wrong
from linsep.solvers.run import Run

each_kinked = pytest.mark.parametrize("loss", KINKED, ids=naming)


@pytest.fixture(autouse=True)
def small_counts_as_large(tuned):
    """Pilots of a few hundred rows, and blocks that are a fraction of the data."""
    tuned(sifting_entries=10_000, block_bytes=64_000)


def many(n=20_000, d=5, seed=0):
    rng = np.random.default_rng(seed)
    sample = plain(n, d, seed)
    return replace(sample, offset=0.1 * rng.normal(size=n))


@each_kinked
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
def test_the_answer_is_that_of_all_rows(loss, C):
    sample = many()
    assert sifting.worthwhile(sample.problem(loss))
    found, whole = (fit(sample, loss, C, name) for name in ("sifting", "interior"))
    assert_optimal(found, loss, C, sample, 1e-6)
    np.testing.assert_allclose(found.certificate.primal, whole.certificate.primal, rtol=1e-6)
    assert found.n_passes < whole.n_passes


def test_it_is_chosen_for_many_dense_rows_only():
    sample = many(25_000, 20)
    assert fit(sample, "hinge").solver == "sifting"
    assert fit(sample.in_storage("csr64-int32"), "hinge").solver != "sifting"
    assert fit(plain(300, 5), "hinge").solver == "interior"


def hostile():
    rng = np.random.default_rng(3)
    base = plain(20_000, 4)
    heavy = rng.standard_cauchy(size=(20_000, 3))
    grid = rng.integers(-2, 3, size=(20_000, 3)).astype(float)
    onehot = np.hstack([np.eye(k)[rng.integers(0, k, 20_000)] for k in (5, 3)])
    sign = -np.ones(20_000)
    sign[rng.permutation(20_000)[:20]] = 1.0
    yield "heavy tails", Sample(heavy, labels(heavy, rng, 5.0))
    yield "integer grid", Sample(grid, labels(grid, rng, 1.0))
    yield "one-hot", Sample(onehot, labels(onehot, rng, 0.5))
    yield "0.1 % positive", Sample(base.X, sign)
    yield "separable", Sample(base.X, labels(base.X, rng, 0.0))
    yield "nearly separable", Sample(base.X, labels(base.X, rng, 0.01))
    yield "unscaled", Sample(base.X * np.logspace(-6, 6, 4), base.sign)
    yield "constant column", Sample(np.hstack([base.X, np.full((20_000, 1), 7.0)]), base.sign)
    yield "sorted by class", Sample(base.X[np.argsort(base.sign)], np.sort(base.sign))
    yield "one class", Sample(base.X, np.ones(20_000))


@pytest.mark.slow
def test_hostile_problems():
    hinge = get("hinge")
    for name, sample in hostile():
        for C in (1e-4, 1.0, 1e6):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = fit(sample, hinge, C, "sifting")
            assert found.certificate.certified, (name, C)
            assert_optimal(found, hinge, C, sample, 1e-6)


@each_kinked
def test_sample_weights(loss):
    """Weight 2 is the row twice, weight 0 the row left out."""
    rng = np.random.default_rng(1)
    base = replace(many(12_000, 3), weight=rng.integers(0, 3, 12_000).astype(float))
    times = base.weight.astype(int)
    twice = Sample(*(np.repeat(a, times, axis=0) for a in (base.X, base.sign, base.offset)))
    a, b = (fit(sample, loss, 0.1, "sifting", tol=1e-9) for sample in (base, twice))
    np.testing.assert_allclose(a.certificate.primal, b.certificate.primal, rtol=1e-8)
    assert_optimal(a, loss, 0.1, base, 1e-9)


@pytest.mark.parametrize("storage", ["dense64", "dense32", "fortran64"])
def test_the_number_of_threads_does_not_change_a_bit(storage, tuned):
    tuned(converted_bytes=0)
    sample = many().in_storage(storage)
    first, *others = (fit(sample, "hinge", 1.0, "sifting", n_threads=k) for k in (1, 2, 8))
    assert first.certificate.certified
    for other in others:
        assert (first.W == other.W).all() and (first.dual.u == other.dual.u).all()
        assert first.certificate == other.certificate and first.n_passes == other.n_passes


def test_another_pilot_gives_the_same_optimum():
    sample = many()
    a, b = (fit(sample, "hinge", 1.0, "sifting", seed=k) for k in (1, 2))
    np.testing.assert_allclose(a.certificate.primal, b.certificate.primal, rtol=1e-9)
    np.testing.assert_allclose(a.W, b.W, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("limit", [{"max_passes": 1}, {"max_passes": 6}, {"time_limit": 1e-9}])
def test_limits_end_with_an_honest_gap(limit):
    sample = many()
    with pytest.warns(ConvergenceWarning):
        found = fit(sample, "hinge", 1.0, "sifting", **limit)
    assert found.status in (Status.PASS_LIMIT, Status.TIME_LIMIT)
    best = fit(sample, "hinge", 1.0).certificate.primal
    assert found.certificate.dual <= best <= found.certificate.primal
    assert not found.certificate.certified


def test_a_warm_start():
    sample = many()
    cold = fit(sample, "hinge", 1.0, "sifting")
    warm = fit(sample, "hinge", 1.1, "sifting", start=cold.W)
    assert warm.certificate.certified and warm.n_passes <= cold.n_passes + 10


@each_kinked
def test_rows_are_sorted_as_a_numpy_text_sorts_them(loss):
    sample = replace(many(5000, 3), weight=np.random.default_rng(0).integers(0, 3, 5000) / 2.0)
    problem = Problem(loss, ElasticNet(1.0), sample.memory())
    run = Run(problem, Stop())
    mu, scale = np.array([0.1, -0.2, 0.3]), np.array([1.0, 2.0, 0.0])
    band = Band(run, mu, scale)
    theta = np.array([0.5, -0.3, 0.2, 0.1])
    value = band.sort(theta, 0.4)
    low, high = loss.domain
    kink = 0.0 if loss.name == "perceptron" else 1.0
    v = sample.sign * (sample.X @ theta[:-1] + theta[-1]) + sample.offset - kink
    near = np.abs(v) <= 0.4 * np.sqrt(1.0 + (sample.X - mu) ** 2 @ scale)
    near &= sample.weight > 0
    np.testing.assert_allclose(problem.data.row_state("kink-distance"), v, atol=1e-12)
    assert (band.rows == np.flatnonzero(near)).all()
    np.testing.assert_allclose(band.v, v[near], atol=1e-12)
    u = np.where((v < 0) & (sample.weight > 0), high, low)
    assert (problem.data.row_state("kink-dual")[~near] == u[~near]).all()
    np.testing.assert_allclose(value, objective(loss, 1.0, sample, theta)[0], rtol=1e-12)
    mass = np.where(near, 0.0, sample.weight * u)
    A = np.column_stack([sample.X, np.ones(5000)])
    np.testing.assert_allclose(band.linear, A.T @ (mass * sample.sign), atol=1e-8)
    np.testing.assert_allclose(band.constant, mass @ (kink - sample.offset), atol=1e-8)
    more = np.flatnonzero(~near)[::50]
    band.path()
    band.admit(Wrong(more, u[more]))
    mass[more] = 0.0
    np.testing.assert_allclose(band.linear, A.T @ (mass * sample.sign), atol=1e-8)
    np.testing.assert_allclose(band.constant, mass @ (kink - sample.offset), atol=1e-8)


@each_kinked
def test_a_judged_point_has_the_sums_of_its_closing_pass(loss):
    sample = replace(many(5000, 3), weight=np.random.default_rng(0).integers(0, 3, 5000) / 2.0)
    problem = Problem(loss, ElasticNet(1.0), sample.memory())
    band = Band(Run(problem, Stop()), np.zeros(3), np.ones(3))
    theta = np.array([0.5, -0.3, 0.2, 0.1])
    band.sort(theta, 0.4)
    band.path()
    fixed = problem.data.row_state("kink-dual").copy()
    low, high = loss.domain
    middle = np.full(len(band.rows), 0.5 * (low + high))
    other = theta + np.array([0.0, 1.2, 0.0, 0.0])
    primal, wrong, sums = band.evaluate(other, middle)
    u = band.dual().u
    outside = np.setdiff1d(np.arange(5000), band.rows)
    assert (u[outside] == fixed[outside]).all() and (low <= u).all() and (u <= high).all()
    excess = np.sum(sample.weight * sample.sign * u)
    moved = np.sum(sample.weight[band.rows] * np.abs(u[band.rows] - middle))
    # Balanced, or more was needed than the band can give.
    assert abs(excess) <= 1e-9 or moved == 0.0
    np.testing.assert_array_equal(sums, problem.closing(other, band.dual()))
    margins = sample.sign * (sample.X @ other[:-1] + other[-1]) + sample.offset
    assert np.isclose(primal, 0.5 * other[:-1] @ other[:-1] + sample.weight @ loss.value(margins))
    v = margins - (0.0 if loss.name == "perceptron" else 1.0)
    assert len(wrong.rows)
    against = np.where(v < 0, fixed == low, fixed == high) & (sample.weight > 0)
    assert (wrong.rows == np.flatnonzero(against)).all()


def test_kernels_refuse_other_losses():
    block = plain().memory().whole
    with pytest.raises(ValueError, match="hinge, absolute and perceptron"):
        _kernels.kink_margins(
            block.rows,
            block.targets,
            _kernels.Loss("logistic"),
            *(0, 60, np.zeros(5), np.zeros(60), np.zeros(1)),
        )
