"""Every solver on every small problem: it ends with a proof, at the minimum, or it says why not."""

import itertools
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from catalogue import (
    MAKERS,
    SMOOTH,
    Quartic,
    Sample,
    able,
    cases,
    fit,
    in_python,
    naming,
    objective,
    plain,
    precise_objective,
    reference,
)
from duality import assert_optimal, recheck
from sklearn.datasets import load_breast_cancer
from tuned import tuning

from linsep.errors import ConvergenceWarning
from linsep.losses import Loss, get
from linsep.problem import Problem
from linsep.solution import Status
from linsep.solvers import SOLVERS

each_smooth = pytest.mark.parametrize("loss", SMOOTH, ids=naming)
CASES = ("solver", "loss", "maker", "l1_ratio")
#: What separates the solvers of one problem: size, shape, scale, weights.
WITHOUT_INTERCEPT = ("plain", "weighted", "far_away", "wide", "imbalanced")


def claimed(found, sample, loss, C, fit_intercept=True, l1_ratio=0.0):
    """The objective in extended precision; asserts that the fit is certified and states it."""
    proof = found.certificate
    assert proof.certified and found.status is Status.CERTIFIED, str(proof)
    assert proof.relative_gap <= proof.tol
    value = precise_objective(get(loss), C, sample, found.W[:, 0], fit_intercept, l1_ratio)
    assert abs(proof.primal - value) <= 1e-11 * abs(value) + proof.rounding
    return value


def check(found, sample, loss, C, want, fit_intercept=True, l1_ratio=0.0):
    """Certified, and the claims are true: of the objective, of the gap, of the bound."""
    value, proof = claimed(found, sample, loss, C, fit_intercept, l1_ratio), found.certificate
    noise = 1e-12 * abs(want)
    assert value <= want + proof.gap + noise, "above the minimum by more than the gap"
    assert proof.dual <= want + noise, "the lower bound lies above an objective"
    assert value >= want - proof.gap - 1e-8 * abs(want), "the reference of this test is poor"


def check_minimum(solver, loss, maker, C, l1_ratio, fit_intercept=True):
    """The fit of one case is certified at the minimum: that of scipy, or by its own dual point in numpy."""
    sample = MAKERS[maker]()
    found = fit(sample, loss, C, solver, l1_ratio=l1_ratio, fit_intercept=fit_intercept)
    assert found.solver == solver
    assert fit_intercept or found.W[-1, 0] == 0.0
    if not loss.smooth and solver not in ("absolute-rows", "hinge-rows"):
        assert_optimal(found, loss, C, sample, 1e-6, fit_intercept)
    elif l1_ratio or not loss.smooth:
        claimed(found, sample, loss, C, fit_intercept, l1_ratio)
        again = recheck(found, sample)
        assert (
            again.certified and abs(again.gap - found.certificate.gap) <= again.tol * again.primal
        )
    else:
        check(found, sample, loss, C, reference(loss, maker, C, fit_intercept), fit_intercept)


#: Problems with entries so large that rounding of a gradient exceeds an absolute penalty of strength 1e-6.
ROUNDED = ("unscaled", "far_away", "outlier")


def too_weak(loss, maker, l1_ratio):
    """Whether an absolute penalty of strength 1e-6 is below rounding, or all that is left of the objective.

    Losses that are 0 in a zone or have a kink interpolate wide rows: then the penalty alone is to be minimised.
    """
    flat = not loss.smooth or loss.dead_zone is not None
    return bool(l1_ratio) and (maker in ROUNDED or (flat and maker == "wide"))


@pytest.mark.sampled(140)
@pytest.mark.parametrize(CASES, cases())
def test_every_solver_ends_certified_at_the_minimum(solver, loss, maker, l1_ratio):
    for C in (1e-4, 1.0) if too_weak(loss, maker, l1_ratio) else (1e-4, 1.0, 1e6):
        check_minimum(solver, loss, maker, C, l1_ratio)


@pytest.mark.sampled(24)
@pytest.mark.parametrize(CASES, cases(problems=ROUNDED, penalties=["elastic", "lasso"]))
def test_a_lasso_below_rounding_is_certified_or_says_how_far_it_is(solver, loss, maker, l1_ratio):
    sample = MAKERS[maker]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = fit(sample, loss, 1e6, solver, l1_ratio=l1_ratio)
    proof, again = found.certificate, recheck(found, sample)
    value = objective(loss, 1e6, sample, found.W[:, 0], l1_ratio=l1_ratio)[0]
    above = value + 1e-11 * value  # the objective of this test is itself rounded
    assert abs(proof.primal - value) <= 1e-11 * value + proof.rounding
    assert 0.0 <= proof.dual <= above + proof.rounding and again.dual <= above + again.rounding
    assert proof.certified is (proof.relative_gap <= 1e-6)


@pytest.mark.sampled(50)
@pytest.mark.parametrize(CASES, cases(problems=WITHOUT_INTERCEPT))
def test_without_an_intercept(solver, loss, maker, l1_ratio):
    for C in (0.1, 100.0):
        check_minimum(solver, loss, maker, C, l1_ratio, fit_intercept=False)


def test_every_solver_is_in_the_catalogue():
    """But hard-margin, whose only problem is the hinge at C = inf."""
    assert {case.values[0] for case in cases()} == {*SOLVERS} - {"hard-margin"}


def spread():
    """Many zeros, and numbers that every storage holds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 8)) * (rng.random((900, 8)) < 0.5)
    X = X.astype(np.float32).astype(float)
    return Sample(X, np.where(X[:, 0] + rng.normal(size=900) > 0.2, 1.0, -1.0))


#: Many blocks, and layouts that are converted one block at a time.
BLOCKS = {"block_bytes": 4_000, "converted_bytes": 0}
with tuning(**BLOCKS):
    STORED = [
        (solver, loss, l1_ratio, storage)
        for storage in (
            "dense32",
            "csr64-int32",
            "csr32-int64",
            "fortran32",
            "csr-array",
        )
        for loss, l1_ratio in itertools.product(("logistic", "squared_hinge", "hinge"), (0.0, 1.0))
        for solver in able(spread().in_storage(storage), loss, l1_ratio=l1_ratio)
    ]


@pytest.mark.parametrize(("solver", "loss", "l1_ratio", "storage"), STORED)
def test_every_storage(solver, loss, l1_ratio, storage, tuned):
    tuned(**BLOCKS)
    sample = spread()
    found = fit(sample.in_storage(storage), loss, solver=solver, l1_ratio=l1_ratio)
    assert found.solver == solver
    if solver == "absolute-rows":
        assert recheck(found, sample).certified
    elif get(loss).smooth:
        here = "working-set" if l1_ratio else "newton"
        want = fit(sample, loss, solver=here, l1_ratio=l1_ratio, tol=1e-10).certificate
        check(found, sample, loss, 1.0, want.primal, l1_ratio=l1_ratio)
    else:
        assert_optimal(found, get(loss), 1.0, sample, 1e-6)


@each_smooth
@pytest.mark.parametrize("maker", ["tall", "unscaled", "nearly_separable"])
def test_a_small_tolerance_is_met(loss, maker):
    sample = MAKERS[maker]()
    for solver in ("small", "newton", "newton-cg")[0 if loss.native else 1 :]:
        proof = fit(sample, loss, 1.0, solver, tol=1e-10).certificate
        assert proof.certified and proof.relative_gap <= 1e-10


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


def raw_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return Sample(X, 2.0 * y - 1)


@pytest.mark.parametrize("solver", able(raw_breast_cancer()))
def test_raw_breast_cancer(solver):
    for C in (1e-2, 1.0, 1e4):
        assert fit(raw_breast_cancer(), "logistic", C, solver).certificate.certified


@pytest.mark.parametrize("solver", ["small", "newton", "newton-cg"])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_targets_that_are_fitted_exactly(solver, loss):
    """A constant target: the minimum is 0, and nothing is left to be relative to."""
    X = plain(50, 3).X
    for target in (0.0, 0.3, 1 / 3):
        sample = Sample(X, np.ones(50), np.full(50, -target))
        found = fit(sample, get(loss).for_targets(), 1.0, solver)
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
def test_a_loss_of_your_own(solver, loss, tuned):
    tuned(block_bytes=4_000)
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


def test_steps_in_single_precision_are_refined(monkeypatch):
    """Columns of very different sizes: the gap would show the error of a Hessian in single precision."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 20)) * np.logspace(-2, 3, 20) + np.logspace(3, -2, 20)
    z = (X - X.mean(0)) / X.std(0) @ rng.normal(size=20)
    sample = Sample(X, np.where(z + rng.logistic(size=len(z)) > 0, 1.0, -1.0))
    exact = []
    made = Problem.hessian
    monkeypatch.setattr(
        Problem,
        "hessian",
        lambda self, mu, single=False: (exact.append(not single), made(self, mu, single))[1],
    )
    for C in (0.01, 1.0):
        found = fit(sample, "logistic", C, "newton", tol=1e-9)
        assert found.certificate.certified and found.certificate.relative_gap <= 1e-9
        value = objective(get("logistic"), C, sample, found.W[:, 0])[0]
        assert found.certificate.primal == pytest.approx(value, rel=1e-11)
    assert exact and not any(exact)
