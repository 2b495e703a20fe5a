"""The theorems of the lecture notes, as laws that random data must obey."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    Perceptron,
    SGDClassifier,
    ZeroOneClassifier,
    bounds,
    losses,
    separate,
)
from linsep.basis import Interactions
from linsep.online import ORDERS, UPDATES

SEEDS = st.integers(0, 10**6)
FEW = settings(max_examples=12, deadline=None)


def separable(seed, n=30, d=3):
    """Rows at some distance from a hyperplane that is drawn at random, with an intercept."""
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=d), rng.normal()
    X = rng.normal(size=(4 * n, d)) * 10.0 ** rng.uniform(-1, 1)
    z = X @ w + b
    far = np.argsort(-np.abs(z))[:n]
    y = np.where(z[far] > 0, 1, -1)
    if abs(y.sum()) == n:
        y[0] = -y[0]
        X[far[0]] -= 2 * (z[far[0]] / (w @ w)) * w
    return X[far], y


def overlapping(seed, n=40, d=2):
    """Two Gaussian clouds, with each class at least twice."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    y[:4] = [1, 1, -1, -1]
    return rng.normal(size=(n, d)) + 0.5 * y[:, None], y


class TestPerceptron:
    @given(SEEDS, st.sampled_from(ORDERS), st.sampled_from(UPDATES), st.booleans())
    @settings(max_examples=25, deadline=None)
    def test_no_more_updates_than_the_theorem_allows(self, seed, order, update, curved):
        X, y = separable(seed)
        if curved:
            X = Interactions().fit_transform(X)  # what separates the rows separates their images
        model = Perceptron(order=order, update=update, max_updates=10**6).fit(X, y)
        allowed = model.bounds(X, y)
        if model.separated_:
            assert (y * model.decision_function(X) > 0).all()
        assert model.n_updates_ <= (
            allowed.normalised if update == "normalised" else allowed.radius_norm
        )
        if update == "raw":
            assert model.n_updates_ <= allowed.novikoff

    @given(SEEDS)
    @FEW
    def test_it_ends_if_and_only_if_the_rows_are_separable(self, seed):
        X, y = overlapping(seed, n=8)
        model = Perceptron(max_updates=20_000, max_passes=10_000).fit(X, y)
        answer = separate(X, y)
        assert answer.check(X, y, exact=True)
        assert not model.separated_ or answer.separable


class TestDimension:
    @given(SEEDS, st.integers(1, 3))
    @FEW
    def test_no_d_plus_2_points_are_shattered_and_d_plus_1_in_general_position_are(self, seed, d):
        points = np.random.default_rng(seed).normal(size=(d + 2, d))
        assert not bounds.shatters(points)
        assert bounds.radon(points).check()
        assert bounds.shatters(points[: d + 1])
        assert len(points) == bounds.vc_dimension(d) + 1

    @given(SEEDS, st.integers(2, 4))
    @FEW
    def test_points_shattered_with_a_margin_are_few(self, seed, n):
        """n points that every labelling separates by a margin m lie in no ball of radius below m sqrt(n - 1)."""
        X = np.random.default_rng(seed).normal(size=(n, n))
        radius, least = bounds.minimum_enclosing_ball(X).radius, math.inf
        assert (
            np.linalg.norm(X - bounds.minimum_enclosing_ball(X).centre, axis=1)
            <= radius * (1 + 1e-9)
        ).all()
        for rest in itertools.product([1, -1], repeat=n - 1):
            y = np.array([1, *rest])
            if len(set(y)) == 2:
                least = min(least, LinearSVC(C=math.inf).fit(X, y).margin_)
        assert n <= bounds.margin_dimension(n, radius=radius, margin=least * (1 - 1e-6))


class TestSurrogates:
    @given(SEEDS)
    @FEW
    def test_errors_are_at_most_the_risk_of_a_dominating_loss(self, seed):
        X, y = overlapping(seed, n=25)
        fewest = ZeroOneClassifier().fit(X, y)
        assert fewest.proven_
        for loss in (
            losses.Hinge(),
            losses.SquaredHinge(),
            losses.Squared(),
            losses.LOGISTIC_BASE_2,
        ):
            assert losses.dominates_zero_one(loss)
            model = LinearClassifier(loss, C=1.0).fit(X, y)
            margins = y * model.decision_function(X)
            wrong = int((model.predict(X) != y).sum())
            assert fewest.errors_ <= wrong <= loss.value(margins).sum() * (1 + 1e-12)

    @given(SEEDS)
    @FEW
    def test_maximum_likelihood_matches_the_moments(self, seed):
        """At the maximum sum (p - [y = 1]) (x, 1) = 0: the mean probability is the share of the class."""
        X, y = overlapping(seed, n=60)
        assume(not separate(X, y).separable)
        model = LogisticRegression(C=math.inf, tol=1e-10).fit(X, y)
        p = model.predict_proba(X)[:, 1]
        residual = p - (y == 1)
        assert p.mean() == pytest.approx((y == 1).mean(), abs=1e-4)
        assert np.abs(residual @ X).max() <= 1e-4 * len(X)
        odds = np.log(p / (1 - p))
        assert odds == pytest.approx(model.decision_function(X), rel=1e-6, abs=1e-6)


class TestSupportVectors:
    @given(SEEDS, st.sampled_from([0.05, 1.0, 20.0]))
    @FEW
    def test_w_is_a_combination_of_rows_and_the_dual_equals_the_primal(self, seed, C):
        X, y = overlapping(seed)
        model = LinearSVC(C=C, tol=1e-9).fit(X, y)
        a, w = model.alpha_, model.coef_[0]
        slack = np.maximum(0.0, 1.0 - y * model.decision_function(X))
        primal, dual = w @ w / 2 + C * slack.sum(), a.sum() - np.sum(((a * y) @ X) ** 2) / 2
        assert (a >= 0).all()
        assert (a <= C * (1 + 1e-12)).all()
        assert a @ y == pytest.approx(0, abs=1e-9 * C * len(y))
        assert w == pytest.approx((a * y) @ X, rel=1e-3, abs=1e-4 * max(1.0, np.abs(w).max()))
        assert dual <= primal * (1 + 1e-9)
        assert dual == pytest.approx(primal, rel=1e-6)

    @given(SEEDS)
    @FEW
    def test_a_larger_strength_never_widens_the_margin_nor_raises_the_loss(self, seed):
        X, y = overlapping(seed)
        fits = [LinearSVC(C=C, tol=1e-9).fit(X, y) for C in (0.01, 0.1, 1.0, 10.0)]
        widths = [fit.margin_width_ for fit in fits]
        slacks = [np.maximum(0, 1 - y * fit.decision_function(X)).sum() for fit in fits]
        assert all(b <= a * (1 + 1e-5) for a, b in itertools.pairwise(widths))
        assert all(b <= a * (1 + 1e-5) for a, b in itertools.pairwise(slacks))

    @given(SEEDS)
    @FEW
    def test_the_hard_margin_is_half_the_distance_of_the_hulls(self, seed):
        """1/|w| = 1/2 |p - q|, p and q the points that alpha makes of the two classes."""
        X, y = separable(seed, n=15, d=2)
        model = LinearSVC(C=math.inf).fit(X, y)
        a = model.alpha_ / model.alpha_[y > 0].sum()
        p, q = a[y > 0] @ X[y > 0], a[y < 0] @ X[y < 0]
        assert a[y < 0].sum() == pytest.approx(1.0, rel=1e-6)
        assert model.margin_ == pytest.approx(np.linalg.norm(p - q) / 2, rel=1e-4)
        geometric = y * model.decision_function(X) / np.linalg.norm(model.coef_)
        assert geometric.min() == pytest.approx(model.margin_, rel=1e-4)


class TestDescent:
    @given(SEEDS, st.sampled_from([0.02, 0.1, 0.5]), st.sampled_from(["constant", "inverse_sqrt"]))
    @FEW
    def test_the_best_sub_gradient_step_obeys_its_bound(self, seed, eta0, schedule):
        """min_k f(w_k) - f(u) <= (|u|^2 + G^2 sum eta^2)/(2 sum eta) for every u, G the longest row."""
        X, y = overlapping(seed)
        steps = 40
        model = SGDClassifier(
            *("hinge",),
            C=math.inf,
            batch_size="all",
            schedule=schedule,
            eta0=eta0,
            decay=1.0,
            epochs=steps,
            tol=1e-12,
        ).fit(X, y)
        k = np.arange(steps)
        eta = eta0 / (np.sqrt(1.0 + k) if schedule == "inverse_sqrt" else np.ones(steps))
        G2 = (X**2).sum(axis=1).max() + 1.0
        start = 1.0  # f(0) of the hinge
        best = min(start, model.history_.best[-1] / len(y))
        aim = LinearSVC(C=10.0).fit(X, y)
        for scale in (0.3, 1.0):
            w, b = scale * aim.coef_[0], scale * aim.intercept_[0]
            f = np.maximum(0, 1 - y * (X @ w + b)).mean()
            assert best - f <= (w @ w + b * b + G2 * (eta**2).sum()) / (2 * eta.sum()) + 1e-12

    @given(SEEDS)
    @FEW
    def test_a_step_is_the_gradient_of_the_mean_on_average(self, seed):
        """One step from the same point at each row in turn: the mean of the moves is the move of all rows."""
        X, y = overlapping(seed, n=12)
        job = {"C": 2.0, "schedule": "constant", "eta0": 0.1}
        begun = SGDClassifier("logistic", **job).partial_fit(X, y, classes=[-1, 1])
        state = begun._stream
        moves = []
        for rows in ([i] for i in range(len(X))):
            one = SGDClassifier("logistic", **job)
            vars(one).update(vars(begun))
            # as if these had been all rows so far, so that the penalty is the same in each
            one._stream = type(state)(
                state.W, None, state.steps, state.seen - 1.0, state.step_sizes, state.scaling
            )
            one.partial_fit(X[rows], y[rows])
            moves.append(np.append(one.coef_, one.intercept_))
        theta = state.W[0]
        m = y * (X @ theta[:-1] + theta[-1])
        slope = y * losses.Logistic().slope(m)
        gradient = np.append(slope @ X, slope.sum()) / len(X)
        gradient[:-1] += theta[:-1] / (2.0 * state.seen)
        assert np.mean(moves, axis=0) == pytest.approx(theta - 0.1 * gradient, rel=1e-9, abs=1e-12)


@given(SEEDS, st.booleans())
@FEW
def test_least_squares_leaves_a_residual_orthogonal_to_the_columns(seed, deficient):
    rng = np.random.default_rng(seed)
    X, t = rng.normal(size=(20, 4)), rng.normal(size=20)
    if deficient:  # exactly: sums of numbers with few digits are not rounded
        X = np.round(X, 0) + np.arange(4) / 8
        X[:, 3] = X[:, 0] - 2 * X[:, 1]
    model = LinearRegressor().fit(X, t)
    residual = t - model.predict(X)
    assert np.abs(residual @ np.column_stack([X, np.ones(20)])).max() < 1e-7
    if deficient:  # the shortest of all: no part in the null space of the columns
        null = np.array([1.0, -2.0, 0.0, -1.0])
        assert abs(model.coef_.ravel() @ null) < 1e-7
