"""Where coordinate ascent sets out: the centre of the rows, the start from class sums, the order of an epoch."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from ascent import LOSSES, epoch, many, text
from catalogue import STORAGES, Sample, dense, naming

from linsep import LinearSVC, LogisticRegression, verify
from linsep import _kernels as K  # noqa: N812
from linsep.certificates import certify
from linsep.losses import get
from linsep.solution import Status, Stop
from linsep.solvers.dual_ascent import native as ascent
from linsep.solvers.dual_ascent import solve as dual_cd

CLASSES = ["logistic", "squared", "squared_hinge", "huberised_hinge", "hinge"]


def shifted(n=300, d=40, seed=1):
    """Rows of zeros and ones most of which share many columns: their mean is far from 0."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < np.linspace(0.95, 0.1, d)).astype(float)
    z = (X - X.mean(axis=0)) @ rng.normal(size=d)
    sign = np.where(z + rng.normal(size=n) > np.quantile(z, 0.6), 1.0, -1.0)
    return Sample(sp.csr_matrix(X), sign)


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("loss", LOSSES, ids=naming)
def test_centred_rows_are_never_made_but_visited(loss, kind, instructions):
    """The kernel on x with x.c and |c|^2 is the plain loop on x - c."""
    sample = many()
    n, d = sample.X.shape
    c = np.random.default_rng(0).normal(size=d)
    centred = Sample(sample.X - c, sample.sign, sample.offset, sample.weight)
    along, size, lam, stiffness = sample.X @ c, float(c @ c), 2.0, 0.3
    norms = (centred.X**2).sum(axis=1)
    order = np.arange(n, dtype=np.int64)
    u, theta, state = np.zeros(n), np.zeros(d + 1), np.zeros(4)
    want_u, want_theta, e = np.zeros(n), np.zeros(d + 1), 0.0
    z, seen = np.zeros(n), np.zeros(n)
    data = sample.in_storage(kind).memory().whole
    for seed in range(3):
        K.shuffle(order, seed)
        K.dual_cd(
            *(data.rows, data.targets, K.Loss(loss.native, *loss.params), 0, n, order, 1),
            *(None, math.inf, lam, stiffness, norms, u, z, seen, theta, state, along, size),
        )
        e = epoch(centred, loss, lam, stiffness, order, want_u, want_theta, e)
    assert np.abs(u - want_u).max() <= 1e-10 * max(1.0, np.abs(want_u).max())
    assert state[0] == pytest.approx(e, abs=1e-10)
    assert state[3] == pytest.approx((sample.weight * sample.sign * u) @ along, abs=1e-10)
    w = theta[:-1] - state[0] / lam * c
    assert np.abs(w - want_theta[:-1]).max() <= 1e-9 * max(1.0, np.abs(w).max())
    i = next(i for i in order[::-1] if sample.weight[i] > 0)
    assert z[i] == pytest.approx(centred.X[i] @ w, abs=1e-9)


@pytest.mark.parametrize("C", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", CLASSES)
def test_the_start_is_the_best_multiple_of_the_slopes_at_zero(name, fit_intercept, C):
    loss = get(name)
    weight = np.random.default_rng(2).choice([0.0, 1.0, 2.5], size=400)
    sample = Sample(text().X, text().sign, weight=weight)
    problem = sample.problem(loss, C, fit_intercept)
    begun = ascent.Ascent(problem, np.zeros(problem.order), 0).native
    X, positive = dense(sample.X), sample.sign > 0
    norms, sums, block = np.zeros(400), np.zeros(2 * X.shape[1]), problem.data.whole
    K.class_sums(block.rows, block.targets, 0, 400, norms, sums)
    assert norms == pytest.approx((X**2).sum(axis=1))
    assert sums[: X.shape[1]] == pytest.approx(X[positive].T @ weight[positive])
    assert sums[X.shape[1] :] == pytest.approx(X[~positive].T @ weight[~positive])
    zeros, kernel = np.zeros(400), K.Loss(name)
    b, _ = K.best_intercept(block.targets, kernel, fit_intercept, zeros, 0.0, np.inf, 1e-6)
    start = begun.class_start
    if name == "hinge" and (C == 1.0 or not fit_intercept):
        assert start is None, "the hinge begins there only if that is near"
        return
    plus, minus, value, near = start

    def dual(t):
        u = t * np.where(positive, plus, minus)
        v = X.T @ (weight * sample.sign * u)
        return -weight @ loss.conjugate(-u) - 0.5 * C * v @ v

    slopes = -loss.slope(np.array([b, -b])) if loss.smooth else np.ones(2)
    whole = max(plus / slopes[0], minus / slopes[1])
    assert dual(1.0) == pytest.approx(value, rel=1e-9)
    assert dual(1.0) >= dual(0.97) and 0.0 < whole <= 1.0 + 1e-6
    if whole < 0.98:  # a part of the slopes, and the best one
        assert dual(1.0) >= dual(1.02)
    mass = weight * sample.sign * np.where(positive, plus, minus)
    if fit_intercept:
        assert abs(mass.sum()) <= 1e-12 * np.abs(mass).sum()
    if loss.smooth:  # the hinge goes on from there
        assert begun.theta[:-1] == pytest.approx(C * X.T @ mass, abs=1e-12)
    assert near == (whole >= 0.5 and C * np.sum((X.T @ mass) ** 2) <= value)


def test_regression_and_single_classes_start_from_zero():
    rows = text()
    for sample in (
        Sample(rows.X, np.ones(400), offset=np.zeros(400)),
        Sample(rows.X, np.ones(400)),
        Sample(rows.X, rows.sign, weight=np.where(rows.sign > 0, 1.0, 0.0)),
        Sample(sp.csr_matrix((400, 5)), rows.sign),
    ):
        problem = sample.problem(get("squared_hinge"), 0.01)
        assert ascent.Ascent(problem, np.zeros(problem.order), 0).native.class_start is None


@pytest.mark.parametrize("name", CLASSES)
def test_strong_penalties_take_few_passes(name):
    """The start is near: an epoch or two, if any, finish it, and a coarse tolerance is met by the start alone."""
    uneven = text(3000, 3000)
    rows = np.argsort(uneven.sign, kind="stable")[-1700:]  # 900 of them positive
    sample = Sample(uneven.X[rows], uneven.sign[rows])
    problem = sample.problem(get(name), 0.001)
    begun = ascent.Ascent(problem, np.zeros(problem.order), 0).native
    assert begun.started_near and len(begun.along) == len(sample.sign)
    again = sample.problem(get(name), 0.001)
    found = dual_cd.solve(again, np.zeros(problem.order), Stop(1e-6))
    assert certify(again, found, 1e-6).certified and again.passes <= 8.0
    coarse = sample.problem(get(name), 1e-4)
    found = dual_cd.solve(coarse, np.zeros(problem.order), Stop(1e-2))
    assert certify(coarse, found, 1e-2).certified and coarse.passes == 2.5, "no epoch at all"


@pytest.mark.parametrize(
    "name", ["hinge", "squared_hinge", "logistic", "huberised_hinge", "squared"]
)
def test_a_mean_far_from_zero_does_not_hold_up_the_intercept(name):
    sample, loss = shifted(), get(name)
    for C in (0.003, 0.1):
        problem = sample.problem(loss, C)
        found = dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6), epochs=500)
        proof = certify(problem, found, 1e-6)
        assert found.status is Status.CERTIFIED and proof.certified
        warm = sample.problem(loss, C)
        near = dual_cd.solve(warm, found.W[:, 0], Stop(1e-6), epochs=500)
        assert certify(warm, near, 1e-6).certified
        assert near.W == pytest.approx(found.W, abs=4 * proof.coef_error + 1e-3)


def test_the_answer_is_that_of_rows_moved_by_any_vector():
    """A free intercept makes the problem blind to where the rows lie: x + a has the same w."""
    sample, moved = shifted(), dense(shifted().X) + 2.0
    for model in (LinearSVC(0.01, tol=1e-9), LogisticRegression(0.01, tol=1e-9)):
        model.set_params(solver="dual-cd")
        here = model.fit(dense(sample.X), sample.sign).coef_.copy()
        there = model.fit(moved, sample.sign)
        verify(there, moved, sample.sign)
        assert there.coef_ == pytest.approx(here, abs=3e-4)


def test_an_order_keeps_rows_of_a_length_together():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, size=4000)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    X = sp.csr_matrix(
        (np.ones(starts[-1]), rng.integers(0, 50, size=starts[-1]).astype(np.int32), starts)
    )
    rows = K.Rows(X.data, X.indices, X.indptr, 50)
    order, again = np.arange(4000), np.arange(4000)
    K.arrange(rows, order, 5)
    K.arrange(rows, again, 5)
    assert np.array_equal(order, again) and np.array_equal(np.sort(order), np.arange(4000))
    for lo in range(0, 4000, 100):
        assert (np.diff(lengths[order[lo : lo + 100]]) >= 0).all()
    listed = np.flatnonzero(lengths > 20)
    places = np.arange(len(listed))
    K.arrange(rows, places, 1, listed)
    assert np.array_equal(np.sort(places), np.arange(len(listed)))
    plain = np.arange(10)
    K.shuffle(plain, 3)
    few = np.arange(10)
    K.arrange(rows, few, 3)
    assert np.array_equal(plain, few), "few rows are shuffled and no more"
    for wrong in (np.array([4000]), np.array([-1])):
        with pytest.raises(ValueError, match="beyond"):
            K.arrange(rows, wrong, 0)
        with pytest.raises(ValueError, match="beyond"):
            K.arrange(rows, np.array([0]), 0, wrong)


@pytest.mark.parametrize("loss", LOSSES, ids=naming)
def test_the_best_intercept_of_some_rows_leaves_the_others_alone(loss):
    """With the u of the others fixed: where the slopes of the list and those u add up to 0."""
    sample, rng = many(), np.random.default_rng(1)
    n = len(sample.sign)
    targets, kernel = sample.memory().whole.targets, K.Loss(loss.native, *loss.params)
    z, listed = rng.normal(size=n), np.flatnonzero(rng.random(n) < 0.7)
    u = -loss.slope(sample.sign * (z + 0.2) + sample.offset)
    e = float((sample.weight * sample.sign) @ u)
    b, _ = K.best_among(targets, kernel, True, listed, z, u, e, 0.0, 1.0, 1e-12)
    rest = e - float((sample.weight * sample.sign * u)[listed].sum())

    def slope(at):
        m = sample.sign[listed] * (z[listed] + at) + sample.offset[listed]
        return float((sample.weight * sample.sign)[listed] @ loss.slope(m)) - rest

    assert slope(b - 1e-6) <= 1e-6 and slope(b + 1e-6) >= -1e-6
    every = np.arange(n)
    full, value = K.best_intercept(targets, kernel, True, z, 0.0, 1.0, 1e-12)
    same, again = K.best_among(targets, kernel, True, every, z, u, e, 0.0, 1.0, 1e-12)
    assert same == pytest.approx(full, abs=1e-9) and again == pytest.approx(value, rel=1e-9)
    for wrong in (np.array([n]), np.array([-1])):
        with pytest.raises(ValueError, match="beyond"):
            K.best_among(targets, kernel, True, wrong, z, u, e, 0.0, 1.0, 1e-12)
    for short in ((z[1:], u), (z, u[1:])):
        with pytest.raises(ValueError, match="n entries"):
            K.best_among(targets, kernel, True, every, *short, e, 0.0, 1.0, 1e-12)


def test_the_kernels_of_the_first_pass_check_what_they_are_given():
    block = many().memory().whole
    n, d = block.rows.n, block.rows.d
    norms, out = np.zeros(n), np.zeros(2 * d)
    for wrong in ((0, n + 1, norms, out), (0, n, norms[1:], out), (0, n, norms, out[1:])):
        with pytest.raises(ValueError, match=r"range|entries"):
            K.class_sums(block.rows, block.targets, *wrong)
    w = np.zeros(d)
    for a, b, za, zb in ((w[1:], w, norms, norms), (w, w[1:], norms, norms), (w, w, out, norms)):
        with pytest.raises(ValueError, match="entries"):
            K.two_scores(block.rows, 0, n, a, b, za, zb)
