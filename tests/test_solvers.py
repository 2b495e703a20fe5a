"""Every solver on every small problem: it ends with a proof, at the minimum, or it says why not."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import (
    FALLING,
    KINKED,
    MAKERS,
    SMOOTH,
    Sample,
    dense,
    in_python,
    makers,
    naming,
    objective,
    plain,
    reference,
)
from sklearn.datasets import load_breast_cancer

from linsep import losses
from linsep.data import memory
from linsep.errors import BadInput, ConvergenceWarning, Refused, SeparableData
from linsep.losses import Loss, get
from linsep.penalties import ElasticNet
from linsep.solution import Status
from linsep.solvers import NAMES, SOLVERS, pilot, small
from linsep.train import Recipe, train

each_solver = pytest.mark.parametrize("solver", SOLVERS)
each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=naming)
PAIRS = [(loss, maker) for loss in SMOOTH for maker in makers(loss)]
each_pair = pytest.mark.parametrize(("loss", "maker"), PAIRS, ids=naming)
SEPARABLE = ("wide", "separable")


def fit(sample, loss, C=1.0, solver="auto", n_threads=None, **options):
    data = sample.memory(n_threads=n_threads)
    try:
        return train(Recipe(get(loss), ElasticNet(C), solver=solver, **options), data)
    finally:
        data.close()


def takes(solver, sample, loss, C=1.0):
    """Whether the solver's needs are met; if not, the refusal must say what takes the problem."""
    problem = sample.problem(get(loss), C)
    if not SOLVERS[solver].missing(problem):
        return True
    with pytest.raises(Refused) as refusal:
        fit(sample, loss, C, solver)
    able = [name for name, one in SOLVERS.items() if not one.missing(problem)]
    assert able and all(name in str(refusal.value) for name in (solver, *able))
    return False


def check(found, sample, loss, C, want, fit_intercept=True):
    """Certified, and the claims are true: of the objective, of the gap, of the bound."""
    proof = found.certificate
    assert proof.certified and found.status is Status.CERTIFIED, str(proof)
    assert proof.relative_gap <= proof.tol
    value = objective(get(loss), C, sample, found.W[:, 0], fit_intercept)[0]
    assert abs(proof.primal - value) <= 1e-11 * abs(value) + proof.rounding
    noise = 1e-12 * abs(want)
    assert value <= want + proof.gap + noise, "above the minimum by more than the gap"
    assert proof.dual <= want + noise, "the lower bound lies above an objective"
    assert value >= want - proof.gap - 1e-8 * abs(want), "the reference of this test is poor"


@each_pair
@each_solver
def test_every_solver_ends_certified_at_the_minimum(solver, loss, maker):
    sample = MAKERS[maker]()
    for C in (1e-4, 1.0, 1e6):
        if takes(solver, sample, loss, C):
            found = fit(sample, loss, C, solver)
            assert found.solver == solver
            check(found, sample, loss, C, reference(loss, maker, C))


@each_smooth
@each_solver
@pytest.mark.parametrize("maker", ["plain", "weighted", "far_away", "wide", "imbalanced"])
def test_without_an_intercept(solver, loss, maker):
    sample = MAKERS[maker]()
    for C in (0.1, 100.0):
        if takes(solver, sample, loss, C):
            found = fit(sample, loss, C, solver, fit_intercept=False)
            assert found.W[-1, 0] == 0.0
            check(found, sample, loss, C, reference(loss, maker, C, False), False)


@pytest.mark.parametrize(
    "storage", ["dense32", "csr64-int32", "csr64-int64", "csr32-int64", "fortran32", "csr-array"]
)
@each_solver
def test_every_storage(solver, storage, monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(memory, "CONVERT_BYTES", 0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 8)) * (rng.random((900, 8)) < 0.5)
    X = X.astype(np.float32).astype(float)  # so that every storage holds the same numbers
    sample = Sample(X, np.where(X[:, 0] + rng.normal(size=900) > 0.2, 1.0, -1.0))
    stored = sample.stored(storage)
    for loss in ("logistic", "squared_hinge"):
        if takes(solver, stored, loss):
            want = fit(sample, loss, solver="small", tol=1e-10).certificate
            found = fit(stored, loss, solver=solver)
            assert found.certificate.certified
            check(found, sample, loss, 1.0, want.primal)


@each_smooth
@pytest.mark.parametrize("maker", ["tall", "unscaled", "nearly_separable"])
def test_a_small_tolerance_is_met(loss, maker):
    sample = MAKERS[maker]()
    for solver in ("small", "newton", "newton-cg"):
        proof = fit(sample, loss, 1.0, solver, tol=1e-10).certificate
        assert proof.certified and proof.relative_gap <= 1e-10


# Without a penalty.


@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
@each_pair
@pytest.mark.parametrize("solver", ["auto", "small", "newton", "newton-cg"])
def test_without_a_penalty(solver, loss, maker, storage):
    """Falling losses have no minimiser on separable rows; all others end certified at theirs."""
    sample = MAKERS[maker]().stored(storage)
    if not takes("newton" if solver == "auto" else solver, sample, loss, np.inf):
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


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("loss", FALLING, ids=naming)
def test_quasi_separable_rows_have_no_minimiser(solver, loss):
    """One feature tells the classes apart where it is not 0; the rows where it is 0 overlap."""
    base = plain(80, 2, seed=3)
    flag = np.zeros(80)
    flag[:20] = base.sign[:20]
    sample = Sample(np.column_stack([base.X, flag]), base.sign)
    with pytest.raises(SeparableData) as found:
        fit(sample, loss, np.inf, solver)
    w, b = found.value.direction
    moved = sample.sign * (sample.X @ w + b)
    assert moved.min() >= -1e-8 and (moved > 1e-3).sum() >= 20


@pytest.mark.parametrize("solver", ["auto", "small", "newton"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_least_squares_of_least_norm(solver, fit_intercept, storage):
    """On dependent columns the answer is that of the pseudo-inverse, for centred rows."""
    rng = np.random.default_rng(1)
    for n, d, rank in ((40, 6, 3), (12, 30, 12), (30, 4, 4)):
        X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + 0.5
        target = rng.normal(size=n)
        sample = Sample(X, np.ones(n), 1 - target).stored(storage)
        found = fit(sample, "squared", np.inf, solver, fit_intercept=fit_intercept)
        mean = X.mean(axis=0) if fit_intercept else np.zeros(d)
        level = target.mean() if fit_intercept else 0.0
        w = np.linalg.pinv(X - mean, rcond=1e-10) @ (target - level)
        np.testing.assert_allclose(found.W[:-1, 0], w, atol=1e-7 * np.abs(w).max())
        np.testing.assert_allclose(found.W[-1, 0], level - mean @ w, atol=1e-6 * (1 + abs(level)))


# Hard cases.


@pytest.mark.parametrize("solver", ["auto", "small", "newton", "newton-pilot", "newton-cg"])
def test_squared_hinge_with_a_weak_penalty_needs_the_exact_line_search(solver):
    X, y = load_breast_cancer(return_X_y=True)
    sample = Sample((X - X.mean(axis=0)) / X.std(axis=0), 2.0 * y - 1)
    for loss in ("squared_hinge", "huberised_hinge"):
        found = fit(sample, loss, 1e6, solver)
        assert found.certificate.certified
        again = fit(sample, loss, 1e6, "small", tol=1e-9).certificate
        assert found.certificate.primal <= again.dual + again.gap + found.certificate.gap


@each_solver
def test_raw_breast_cancer(solver):
    X, y = load_breast_cancer(return_X_y=True)
    sample = Sample(X, 2.0 * y - 1)
    for C in (1e-2, 1.0, 1e4):
        if takes(solver, sample, "logistic", C):
            assert fit(sample, "logistic", C, solver).certificate.certified


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_targets_that_are_fitted_exactly(solver, loss):
    """A constant target: the minimum is 0, and nothing is left to be relative to."""
    X = plain(50, 3).X
    for target in (0.0, 0.3, 1 / 3):
        sample = Sample(X, np.ones(50), np.full(50, 1 - target))
        found = fit(sample, loss, 1.0, solver)
        assert found.certificate.certified
        np.testing.assert_allclose(found.W[:, 0], [0, 0, 0, target], atol=1e-9)


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("loss", ["squared_hinge", "huberised_hinge"])
def test_one_class_costs_nothing(solver, loss):
    """The intercept alone reaches the minimum 0, whatever the penalty."""
    sample = Sample(plain(50, 3).X, np.ones(50))
    for C in (1.0, 1e6):
        proof = fit(sample, loss, C, solver).certificate
        assert proof.certified and proof.primal <= 1e-12


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("size", [1e3, 1e12])
def test_a_row_of_weight_zero_is_not_there(solver, size):
    sample = plain(60, 3)
    with_outlier = Sample(
        np.vstack([sample.X, np.full((1, 3), size)]),
        np.append(sample.sign, -1.0),
        None,
        np.append(np.ones(60), 0.0),
    )
    for loss in ("logistic", "squared", "squared_hinge"):
        found = fit(with_outlier, loss, 10.0, solver)
        want = fit(sample, loss, 10.0, solver)
        assert found.certificate.certified
        assert abs(found.certificate.primal - want.certificate.primal) <= (
            found.certificate.gap + want.certificate.gap
        )


# Losses written in Python.


@dataclass(frozen=True)
class Quartic(Loss):
    name = "quartic"

    def value(self, m):
        return (1 - m) ** 4

    def slope(self, m):
        return -4 * (1 - m) ** 3

    def curvature(self, m):
        return 12 * (1 - m) ** 2

    def conjugate(self, q):
        return q + 3 * (np.abs(q) / 4) ** (4 / 3)


@dataclass(frozen=True)
class Tempered(Loss):
    """T log(1 + e^(-m/T)): an exponential tail, and u in [0, 1] as for the logistic loss."""

    name = "tempered"
    T: float = 0.5

    def value(self, m):
        return self.T * get("logistic").value(m / self.T)

    def slope(self, m):
        return get("logistic").slope(m / self.T)

    def curvature(self, m):
        return get("logistic").curvature(m / self.T) / self.T

    def conjugate(self, q):
        return self.T * get("logistic").conjugate(q)


@pytest.mark.parametrize("solver", ["auto", "newton", "newton-pilot", "newton-cg"])
@pytest.mark.parametrize("loss", [Quartic(), Tempered()], ids=lambda loss: loss.name)
def test_a_loss_of_your_own(solver, loss, monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_BYTES", 4_000)
    for maker in ("plain", "weighted", "tall", "imbalanced"):
        sample = MAKERS[maker]()
        for C in (0.01, 1.0, 100.0):
            check(fit(sample, loss, C, solver), sample, loss, C, reference(loss, maker, C))


@each_smooth
def test_the_python_twin_of_a_kernel_gives_the_same_answer(loss):
    sample, options = MAKERS["weighted"](), {"solver": "newton", "tol": 1e-10}
    native, python = (fit(sample, one, 1.0, **options) for one in (loss, in_python(loss)))
    np.testing.assert_allclose(native.W, python.W, atol=1e-4 * np.abs(native.W).max())
    assert python.certificate.certified and native.certificate.certified


# Refusals and choices.


@pytest.mark.parametrize("loss", KINKED, ids=naming)
@pytest.mark.parametrize("solver", NAMES)
def test_losses_with_a_kink_are_refused_until_a_solver_takes_them(loss, solver):
    sample = MAKERS["plain"]()
    problem = sample.problem(loss)
    able = [name for name, one in SOLVERS.items() if not one.missing(problem)]
    if solver in able or (solver == "auto" and able):
        return
    with pytest.raises(Refused) as refusal:
        fit(sample, loss, solver=solver)
    text = str(refusal.value)
    assert "smooth loss" in text
    assert loss.name in text if solver == "auto" else solver in text
    assert all(name in text for name in able)


@pytest.mark.parametrize("solver", NAMES)
def test_an_absolute_penalty_is_refused_until_a_solver_takes_it(solver):
    sample = MAKERS["plain"]()
    data = sample.memory()
    recipe = Recipe(get("logistic"), ElasticNet(1.0, l1_ratio=0.5), solver=solver)
    with pytest.raises(Refused, match="l1_ratio=0"):
        train(recipe, data)


def test_losses_that_are_not_convex_are_refused():
    with pytest.raises(Refused, match="convex"):
        fit(MAKERS["plain"](), losses.ZeroOne())


def test_an_unknown_solver_is_named_with_the_known_ones():
    with pytest.raises(BadInput) as error:
        fit(MAKERS["plain"](), "logistic", solver="gradient-descent")
    assert "gradient-descent" in str(error.value)
    assert all(name in str(error.value) for name in ("auto", *SOLVERS))


def test_needs_are_computed(monkeypatch):
    sample = plain(60, 4)
    monkeypatch.setattr(small, "ENTRIES", 100)
    with pytest.raises(Refused, match=r"one block in memory.*newton"):
        fit(sample, "logistic", solver="small")
    with pytest.raises(Refused, match="dense rows"):
        fit(sample.stored("csr64-int32"), "logistic", solver="newton-pilot")
    with pytest.raises(Refused, match="finite C"):
        fit(sample, "logistic", np.inf, solver="newton-pilot")
    with pytest.raises(Refused, match="compiled loss"):
        fit(sample, in_python(get("logistic")), solver="small")


@pytest.mark.parametrize(
    ("n", "d", "storage", "options", "expected"),
    [
        (100, 5, "dense64", {}, "small"),
        (100, 5, "dense64", {"max_passes": 1000}, "newton"),
        (100, 5, "csr64-int32", {}, "small"),
        (100, 400, "dense64", {}, "newton-cg"),
        (1000, 400, "dense64", {}, "newton-pilot"),
    ],
)
def test_the_automatic_choice(n, d, storage, options, expected):
    sample = plain(n, d).stored(storage)
    found = fit(sample, "logistic", 0.01, **options)
    assert found.solver == expected and found.certificate.certified


# Limits.


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
@pytest.mark.parametrize(
    ("limit", "status"),
    [({"max_passes": 2}, Status.PASS_LIMIT), ({"time_limit": 0.0}, Status.TIME_LIMIT)],
    ids=["passes", "time"],
)
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_limits_end_with_the_gap_so_far(solver, limit, status, storage):
    sample = plain(400, 5).stored(storage)
    if solver == "small" or (solver != "auto" and not takes(solver, sample, "logistic", 1e4)):
        return
    with pytest.warns(ConvergenceWarning) as caught:
        found = fit(sample, "logistic", 1e4, solver, **limit)
    assert len(caught) == 1
    proof = found.certificate
    assert caught[0].message.certificate is proof
    assert found.status is status and status.message in str(caught[0].message)
    assert not proof.certified and np.isfinite(proof.gap) and proof.gap > 0
    value = objective(get("logistic"), 1e4, sample, found.W[:, 0])[0]
    best = fit(sample, "logistic", 1e4, "small").certificate
    np.testing.assert_allclose(proof.primal, value, rtol=1e-11)
    assert proof.dual <= best.primal and value <= best.primal + proof.gap


@each_solver
def test_limits_that_are_not_reached_change_nothing(solver):
    sample = plain(400, 5)
    if takes(solver, sample, "logistic"):
        free = fit(sample, "logistic", solver=solver)
        bound = fit(sample, "logistic", solver=solver, time_limit=100.0, max_passes=10_000)
        assert (free.W == bound.W).all() and bound.status is Status.CERTIFIED


@each_solver
def test_more_passes_never_raise_the_gap(solver):
    sample, gaps = plain(400, 5), []
    if solver == "small" or not takes(solver, sample, "logistic"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for limit in (1, 3, 6, 10, 20, 60):
            found = fit(sample, "logistic", 10.0, solver, max_passes=limit)
            assert found.n_passes <= limit + 10  # a pass in progress is finished, then certified
            gaps.append(found.certificate.gap)
    assert gaps[-1] < gaps[0] and gaps[-1] <= 1e-6 * found.certificate.primal


# The same bits, whatever the machine is doing.


@pytest.fixture
def many_blocks(monkeypatch):
    """Blocks of 256 rows; and small problems count as large, so that pilots are drawn."""
    monkeypatch.setattr(memory, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(small, "ENTRIES", 10_000)


@pytest.mark.parametrize("storage", ["dense64", "dense32", "csr64-int32", "fortran64"])
@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_the_number_of_threads_does_not_change_a_bit(solver, storage, many_blocks, monkeypatch):
    monkeypatch.setattr(memory, "CONVERT_BYTES", 0)
    if solver == "small":
        monkeypatch.setattr(small, "ENTRIES", 100_000)
    sample = plain(5000, 6, seed=2).stored(storage)
    for loss in ("logistic", "squared_hinge"):
        if solver != "auto" and not takes(solver, sample, loss):
            continue
        found = [fit(sample, loss, 3.0, solver, n_threads=k) for k in (1, 2, 8)]
        assert found[0].certificate.certified
        for other in found[1:]:
            assert (found[0].W == other.W).all()
            assert found[0].certificate == other.certificate
            assert found[0].n_passes == other.n_passes


@pytest.mark.parametrize("solver", ["newton", "newton-pilot"])
@pytest.mark.parametrize("share", [0.5, 0.02])
def test_pilots_are_drawn_the_same_way_twice(solver, share, many_blocks):
    sample = plain(6000, 5, seed=1)
    if share < 0.1:
        sample = Sample(sample.X, np.where(np.arange(6000) % 50 == 0, 1.0, -1.0))
    first, again = (fit(sample, "logistic", 1.0, solver, seed=7) for _ in range(2))
    other = fit(sample, "logistic", 1.0, solver, seed=8)
    assert (first.W == again.W).all() and first.certificate == again.certificate
    assert first.certificate.certified and other.certificate.certified
    assert (first.W != other.W).any()  # the pilot does matter
    apart = np.linalg.norm(first.W[:-1] - other.W[:-1])
    assert apart <= first.certificate.coef_error + other.certificate.coef_error


@pytest.mark.parametrize("rare", [0, 3, 40, 2500])
def test_a_pilot_stands_for_all_rows(rare):
    sign = -np.ones(5000)
    sign[np.linspace(0, 4999, rare).astype(int)] = 1.0
    rows, share = pilot.draw(sign, 500, 0)
    assert (np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < 5000
    assert 250 <= len(rows) <= 500 and (share > 0).all()
    np.testing.assert_allclose(share.sum(), 5000)
    if 0 < rare < 500:
        assert np.count_nonzero(sign[rows] > 0) >= min(rare, 200)
        np.testing.assert_allclose(share[sign[rows] > 0].sum(), rare)
