"""The one road from data and recipe to a fit: what comes out, and laws that any fit obeys."""

import dataclasses
import itertools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import MAKERS, SMOOTH, Sample, able, fit, naming, objective, plain, takes
from hypothesis import assume, given
from hypothesis import strategies as st

from linsep.errors import BadInput, ConvergenceWarning, LinsepError, NonFinite
from linsep.losses import Huber, get
from linsep.penalties import ElasticNet
from linsep.solution import Linearised, Status
from linsep.train import Fit, Recipe, train

each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=naming)
#: The solvers of the logistic loss, and of every loss like it.
each_able = pytest.mark.parametrize("solver", able(plain()))


def test_what_comes_out():
    sample = plain()
    recipe = Recipe(get("logistic"), ElasticNet(2.0))
    found = train(recipe, sample.memory())
    assert isinstance(found, Fit) and found.recipe is recipe
    assert found.W.shape == (5, 1) and found.W.dtype == np.float64
    assert isinstance(found.dual, Linearised)
    assert found.dual.base.shape == found.dual.step.shape == (5, 1)
    assert found.status is Status.CERTIFIED and found.certificate.certified
    assert found.certificate.tol == 1e-6 and found.certificate.kind == "dual"
    assert found.n_passes >= 2 and found.seconds > 0 and found.solver == "small"
    value = objective(get("logistic"), 2.0, sample, found.W[:, 0])[0]
    np.testing.assert_allclose(found.certificate.primal, value, rtol=1e-13)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.W = None


@each_able
def test_the_trace_tells_the_story(solver):
    sample = plain(500, 4)
    found = fit(sample, C=1e3, solver=solver)
    trace = found.trace
    assert trace
    for a, b in itertools.pairwise(trace):
        assert a.passes <= b.passes and a.seconds <= b.seconds and a.dual <= b.dual
    assert trace[-1].passes <= found.n_passes and trace[-1].seconds <= found.seconds
    assert all(line.dual <= line.primal for line in trace)
    np.testing.assert_allclose(trace[-1].primal, found.certificate.primal, rtol=1e-5)
    assert trace[0].primal >= trace[-1].primal * (1 - 1e-12)


def test_nothing_that_was_given_is_changed():
    sample = MAKERS["weighted"]()
    sample = dataclasses.replace(sample, offset=np.linspace(-1, 1, len(sample.sign)))
    start = np.full((5, 1), 0.3)
    for storage in ("dense64", "csr64-int32"):
        stored = sample.in_storage(storage)
        X = stored.X.copy()
        before = [a.copy() for a in (stored.sign, stored.offset, stored.weight, start)]
        for a in (stored.sign, stored.offset, stored.weight, start):
            a.flags.writeable = False
        (stored.X.data if sp.issparse(stored.X) else stored.X).flags.writeable = False
        for solver in able(stored):
            fit(stored, solver=solver, start=start)
        after = (stored.sign, stored.offset, stored.weight, start)
        assert all((a == b).all() for a, b in zip(before, after, strict=True))
        assert abs(X - stored.X).max() == 0


@each_able
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_a_fit_goes_on_from_its_own_answer(solver, loss):
    sample = plain(500, 4)
    cold = fit(sample, loss, 100.0, solver=solver)
    warm = fit(sample, loss, 100.0, solver=solver, start=cold.W)
    assert warm.certificate.certified
    assert warm.n_passes < cold.n_passes
    apart = np.linalg.norm(warm.W[:-1] - cold.W[:-1])
    assert apart <= warm.certificate.coef_error + cold.certificate.coef_error


@each_able
def test_a_bad_start_is_no_obstacle(solver):
    sample = plain(200, 4)
    for size in (100.0, 1e4, 1e8):
        assert fit(sample, solver=solver, start=np.full((5, 1), size)).certificate.certified


@pytest.mark.parametrize(
    "start", [np.zeros((4, 1)), np.zeros(5), np.zeros((5, 2)), np.full((5, 1), np.nan)]
)
def test_a_start_of_another_shape_is_refused(start):
    with pytest.raises(BadInput, match=r"\(5, 1\)"):
        fit(plain(), start=start)


def test_without_an_intercept_it_stays_zero():
    start = np.ones((5, 1))
    for solver in able(plain()):
        found = fit(plain(), solver=solver, fit_intercept=False, start=start)
        assert found.W[-1, 0] == 0.0 and found.certificate.certified
        if isinstance(found.dual, Linearised):
            assert found.dual.base[-1, 0] == 0.0 and found.dual.step[-1, 0] == 0.0
    assert (start == 1.0).all()


@each_able
def test_below_working_precision_the_warning_carries_the_proof(solver):
    sample = plain(5000, 4)  # more rows than decimal arithmetic takes
    with pytest.warns(ConvergenceWarning, match="rounding") as caught:
        found = fit(sample, solver=solver, tol=1e-16)
    assert len(caught) == 1 and caught[0].message.certificate is found.certificate
    assert found.status is Status.WORKING_PRECISION
    assert not found.certificate.certified and found.certificate.relative_gap < 1e-9


def test_a_limit_that_is_met_in_time_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(plain(), tol=0.5, max_passes=50, time_limit=60.0)
    assert found.status is Status.CERTIFIED


@pytest.mark.parametrize(
    ("loss", "storage", "solver"),
    [
        (loss, storage, solver)
        for loss in SMOOTH
        for storage in ("dense64", "csr64-int32")
        for solver in able(plain(300, 4).in_storage(storage), loss)
    ],
    ids=naming,
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(loss, solver, storage, bad):
    sample = plain(300, 4)
    X = sample.X.copy()
    X[123, 1] = bad
    sample = Sample(X, sample.sign).in_storage(storage)
    with pytest.raises(NonFinite):
        fit(sample, loss, solver=solver)


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
def test_targets_that_are_not_finite_are_refused(solver):
    offset = np.zeros(60)
    offset[7] = np.nan
    for loss in ("squared", "huber", "logistic"):
        with pytest.raises(LinsepError):
            fit(Sample(plain().X, np.ones(60), offset), loss, solver=solver)


# Laws. The answers compared are certified, so they may differ by what the certificates allow.


def assert_same(a, b, scale=1.0):
    """Equal up to the coefficient errors that the two certificates admit."""
    allowed = 1.001 * (a.certificate.coef_error + b.certificate.coef_error)
    assert np.linalg.norm(a.W[:-1] - scale * b.W[:-1]) <= allowed
    assert a.certificate.certified and b.certificate.certified


solvers = st.sampled_from(["small", "newton", "newton-pilot", "newton-cg"])
smooth = st.sampled_from([loss for loss in SMOOTH if loss.native])
seeds = st.integers(0, 10_000)
strengths = st.sampled_from([1e-3, 1.0, 1e3])


def random_sample(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 60)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-2, 3, d)
    sign = rng.choice([-1.0, 1.0], n)
    sign[:2] = 1.0, -1.0
    return Sample(X, sign, 0.3 * rng.normal(size=n), rng.integers(1, 4, n).astype(float))


@given(seed=seeds, loss=smooth, solver=solvers, C=strengths)
def test_weight_two_is_the_row_twice(seed, loss, solver, C):
    a = random_sample(seed)
    times = a.weight.astype(int)
    parts = (np.repeat(part, times, axis=0) for part in (a.X, a.sign, a.offset))
    assert_same(fit(a, loss, C, solver=solver), fit(Sample(*parts), loss, C, solver=solver))


@given(seed=seeds, loss=smooth, solver=solvers, C=strengths)
def test_the_order_of_rows_and_columns_does_not_matter(seed, loss, solver, C):
    a = random_sample(seed)
    rng = np.random.default_rng(seed)
    rows, columns = rng.permutation(len(a.sign)), rng.permutation(a.X.shape[1])
    b = Sample(a.X[np.ix_(rows, columns)], a.sign[rows], a.offset[rows], a.weight[rows])
    first, second = fit(a, loss, C, solver=solver), fit(b, loss, C, solver=solver)
    back = np.append(np.argsort(columns), a.X.shape[1])
    assert_same(first, dataclasses.replace(second, W=second.W[back]))


@given(seed=seeds, loss=smooth, solver=solvers)
def test_weights_and_strength_are_one_thing(seed, loss, solver):
    """Twice the weights is twice C."""
    a = random_sample(seed)
    b = dataclasses.replace(a, weight=2 * a.weight)
    assert_same(fit(a, loss, 2.0, solver=solver), fit(b, loss, 1.0, solver=solver))


@given(seed=seeds, loss=smooth, solver=solvers, C=strengths)
def test_exchanged_classes_turn_the_weights_round(seed, loss, solver, C):
    a = random_sample(seed)
    b = dataclasses.replace(a, sign=-a.sign)
    assert_same(fit(a, loss, C, solver=solver), fit(b, loss, C, solver=solver), -1.0)


@given(seed=seeds, solver=solvers)
def test_huber_with_a_wide_core_is_half_the_squared_loss(seed, solver):
    a = random_sample(seed)
    assert_same(fit(a, Huber(1e6), 2.0, solver=solver), fit(a, "squared", 1.0, solver=solver))


@given(seed=seeds, loss=smooth, solver=solvers, C=strengths)
def test_dense_and_sparse_rows_have_one_answer(seed, loss, solver, C):
    a = random_sample(seed)
    b = a.in_storage("csr64-int32")
    assume(takes(solver, b, loss))
    assert_same(fit(a, loss, C, solver=solver), fit(b, loss, C, solver=solver))
