"""Every term of the enclosure is needed: without it there is a problem on which the certificate is false.

``enclosure_terms.pieces`` writes the rounding allowance of ``certificates/closing.py`` out once more, term by term, and
must add up to the library's. Sums are then made as wrong as the stated error bounds permit, in the harmful direction
(an adversary in the place of rounding), or real rounding is provoked by rows made for it. With all terms the claim is
true; without the term in question it is not.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from enclosure_terms import SAFETY, pieces
from flint import arb
from judge import Precision, Problem, Task, improve

from linsep.certificates import closing_sums_numpy
from linsep.certificates.closing import BoundedSums, _values
from linsep.certificates.optimality import enclose
from linsep.losses import Hinge, Logistic, Squared, SquaredHinge
from linsep.problem.closing_rows import (
    ROUNDOFF,
    TINY,
    TINY_NORM,
    score_share,
    steepest_slope,
)
from linsep.problem.duality import ClosingSums
from linsep.solution import Explicit


@dataclass
class Scene:
    """A problem with margins sigma (x.w + b), a point (w, b) that is not optimal, and an optimal dual point u."""

    loss: object
    X: np.ndarray
    sigma: np.ndarray
    u: np.ndarray
    w: np.ndarray
    b: float
    lam: float
    rows: float
    fit_intercept: bool
    weight: np.ndarray | None = None

    def sums(self):
        W = np.append(self.w, self.b)[:, None]
        return closing_sums_numpy(
            self.loss, self.X, self.sigma, None, self.weight, W, Explicit(self.u)
        )

    def problem(self):
        task = Task(self.loss.name, self.X, self.sigma, 1.0 / self.lam, weight=self.weight)
        return Problem(replace(task, fit_intercept=self.fit_intercept))

    def claim(self, sums, without=None):
        """Primal, lower bound and allowance in internal units, perhaps without one of the terms."""
        settings = {"lam": self.lam, "fit_intercept": self.fit_intercept}
        primal, bound, rounding = _values(
            BoundedSums.of(sums, self.rows), self.w, l1=0.0, **settings
        )
        terms = pieces(sums, self.w, **settings, rows=self.rows)
        assert rounding == pytest.approx(SAFETY * sum(terms.values()), rel=1e-9, abs=1e-320)
        return primal, bound, SAFETY * sum(v for name, v in terms.items() if name != without)

    def truth(self):
        """The objective at (w, b) and the minimum, in internal units and with many bits."""
        problem = self.problem()
        W = np.append(self.w, self.b)
        best = improve(problem, W[:, None])
        return problem.value(problem.point(W)).low * arb(self.lam), best.value * arb(self.lam)

    def is_false(self, claim):
        """Whether the true objective or the true minimum lies outside of what is claimed."""
        with Precision(300):
            primal, bound, rounding = map(arb, claim)
            here, least = self.truth()
            return bool(
                abs(here - primal) > rounding
                or bound - rounding > least
                or here - least > primal - bound + rounding
            )


def ridge(fit_intercept, rows, shift=3.0, lam=1.0):
    """Squared loss on one column: every bound of ``pieces`` is attained by some rounding."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=30) + shift
    sigma = np.where(x - shift + rng.normal(size=30) > 0, 1.0, -1.0)
    task = Task("squared", x[:, None], sigma, 1.0 / lam, fit_intercept=fit_intercept)
    best = improve(Problem(task), np.zeros((2, 1))).theta
    w, b = float(best[0, 0].mid()), float(best[1, 0].mid())
    u = 2.0 * (1.0 - sigma * (x * w + b))
    point = np.array([w * 1.01])
    return Scene(Squared(), x[:, None], sigma, u, point, b, lam, rows, fit_intercept)


def adversary(scene):
    """The sums of a scene, every one nearly as wrong as its bound permits, so that primal falls and dual rises.

    Five per cent are left to the rounding of these lines themselves.
    """
    sums, chain = scene.sums(), 0.95 * (scene.rows + 40) * ROUNDOFF
    x, score = np.abs(scene.X), 0.95 * score_share(len(scene.w))
    m = scene.sigma * (scene.X @ scene.w + scene.b)
    q = x @ np.abs(scene.w) + abs(scene.b)
    value, conj = scene.loss.value(m), scene.loss.conjugate(-scene.u)
    loss = value.sum() * (1 - chain) - score * np.sum(np.abs(scene.loss.slope(m)) * q)
    loss -= score * 0.5 * scene.lam * scene.w @ scene.w
    v = sums.v_plus + sums.v_minus
    shift = chain * np.sum(np.abs(scene.u)[:, None] * x, axis=0) * np.sign(v)
    plus = scene.sigma * scene.u >= 0
    at = (v - shift) / scene.lam
    pay = score * 0.5 * scene.lam * at @ at  # the penalty of the dual point, rounded down
    wrong = replace(
        sums,
        loss=float(loss),
        conj_plus=float(sums.conj_plus - chain * np.abs(conj[plus]).sum() - pay),
        conj_minus=float(sums.conj_minus - chain * np.abs(conj[~plus]).sum()),
        v_plus=sums.v_plus - shift,
    )
    if not scene.fit_intercept:
        return wrong
    both = [
        replace(
            wrong,
            mass_plus=wrong.mass_plus * (1 + side * chain),
            mass_minus=wrong.mass_minus * (1 - side * chain),
        )
        for side in (1, -1)
    ]
    return max(both, key=lambda one: scene.claim(one)[1])


class TestAdversary:
    @pytest.mark.parametrize("term", ["score", "chain", "v, first order"])
    def test_without_an_intercept(self, term):
        scene = ridge(False, rows=2.0, shift=0.0, lam=16.0)
        wrong = adversary(scene)
        assert not scene.is_false(scene.claim(wrong))
        assert scene.is_false(scene.claim(wrong, without=term))

    @pytest.mark.parametrize("term", ["v, first order", "balance"])
    def test_with_an_intercept(self, term):
        scene = ridge(True, rows=1e9, shift=50.0)
        wrong = adversary(scene)
        assert not scene.is_false(scene.claim(wrong))
        assert scene.is_false(scene.claim(wrong, without=term))


def cancelling_scene():
    """Rows of size 2^56 in both classes, whose sum v loses the small rows: w = 0 looks optimal, (1, -1) is better."""
    n, size = 64, 2.0**56
    sigma = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    X = np.column_stack([sigma, -sigma])
    for c in (1, -1):
        rows = np.flatnonzero(sigma == c)
        X[rows[:8]], X[rows[-8:]] = size, -size
    return Scene(Hinge(), X, sigma, np.ones(n), np.zeros(2), 0.0, 1.0, float(n), True)


class TestRealRounding:
    def test_spread_of_the_dual_point(self):
        """v is computed as 0: only the square of its error bound knows about the rows that were lost."""
        scene = cancelling_scene()
        sums = scene.sums()
        assert not np.any(sums.v_plus + sums.v_minus)
        assert not scene.is_false(scene.claim(sums))
        assert scene.is_false(scene.claim(sums, without="v, second order"))
        assert scene.is_false(scene.claim(replace(sums, spread=0.0)))

    def test_adding_up(self):
        """Losses of 0.1 and weights of many sizes: nothing but the sum itself is rounded."""
        rng = np.random.default_rng(0)
        X, sigma = np.zeros((999, 1)), np.ones(999)
        weight = 10.0 ** rng.uniform(-3, 3, 999)
        u, w = np.zeros(999), np.zeros(1)
        scene = Scene(Logistic(), X, sigma, u, w, 0.0, 1.0, 999.0, False, weight)
        assert not scene.is_false(scene.claim(scene.sums()))
        assert scene.is_false(scene.claim(scene.sums(), without="chain"))

    def test_penalty(self):
        """Rows far beyond the margin leave nothing but |w|^2, whose sum is rounded."""
        rng = np.random.default_rng(0)
        w, sigma = 1.0 + rng.random(20), np.ones(5)
        scene = Scene(Hinge(), np.ones((5, 20)), sigma, np.zeros(5), w, 0.0, 0.1, 5.0, False)
        assert not scene.is_false(scene.claim(scene.sums()))
        assert scene.is_false(scene.claim(scene.sums(), without="penalty"))

    @pytest.mark.parametrize("loss", [Hinge(), SquaredHinge()], ids=lambda loss: loss.name)
    def test_steepest_slope(self, loss):
        """A row on the kink with u = 0, whose margin is all rounding: |u| alone would give its loss for free."""
        false = 0
        for seed in range(2):
            rng = np.random.default_rng(seed)
            X = np.array([[1e17, 1.0, -1e17]]) * (1 + rng.random((40, 3)) * [[1e-17, 3.0, 1e-17]])
            X[:, 1] = -X[:, 1] * 8
            w, sigma = np.ones(3), np.ones(40)
            scene = Scene(loss, X, sigma, np.zeros(40), w, 0.0, 1e-3, 40.0, True)
            sums = scene.sums()
            assert not scene.is_false(scene.claim(sums))
            margin_free = replace(sums, magnitude=self.with_u_alone(scene))
            false += scene.is_false(scene.claim(margin_free))
        assert false > 0

    @pytest.mark.parametrize("m", [1.0, 1.0 + 2.0**-52, -1e17])
    def test_steepest_slope_within_less_than_a_unit_of_the_margin(self, m):
        """m - e rounds to m itself; the loss falls there all the same."""
        e = 1e-3 * np.spacing(abs(m)) if m <= 1.0 else 1.001 * (m - 1.0)
        assert steepest_slope(Hinge(), np.array([m]), np.array([e]))[0] == 1.0

    @staticmethod
    def with_u_alone(scene):
        reach = np.abs(scene.X) @ np.abs(scene.w) + abs(scene.b)
        return float(np.sum(np.abs(scene.u) * reach))

    def test_underflow_of_the_penalty(self):
        """w^2 underflows, lam w^2 does not."""
        X, sigma = np.array([[1.0], [1.0]]), np.array([1.0, -1.0])
        weight, w = np.full(2, 1e-30), np.array([1e-170])
        scene = Scene(Hinge(), X, sigma, np.zeros(2), w, 0.0, 1e300, 2.0, False, weight)
        assert not scene.is_false(scene.claim(scene.sums()))
        assert scene.is_false(scene.claim(scene.sums(), without="underflow"))

    def test_underflow_of_the_terms(self):
        """s l(m) rounds to the smallest number there is, or to twice that: wrong by a third."""
        n = 400
        rng = np.random.default_rng(0)
        X, sigma = rng.normal(size=(n, 1)), np.ones(n)
        weight = np.full(n, 5e-324)
        scene = Scene(Logistic(), X, sigma, np.zeros(n), np.zeros(1), 0.0, 1.0, n, False, weight)
        sums = scene.sums()
        assert not scene.is_false(scene.claim(sums))
        value = float(np.sum(weight * Logistic().value(np.zeros(n))))
        bare = replace(sums, absolute=value, magnitude=0.0, spread=0.0)
        assert sums.absolute >= n * TINY
        assert sums.spread >= n * TINY
        assert TINY_NORM > 0.0
        assert scene.is_false(scene.claim(bare))


class TestFeasibility:
    """A dual number outside the domain proves nothing, whoever proposes it."""

    @pytest.mark.parametrize("proposed", [1.5, -0.5, math.inf, math.nan])
    @pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=lambda loss: loss.name)
    def test_proposals_outside_the_domain(self, loss, proposed):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(30, 2))
        sigma = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
        u = np.full(30, proposed)
        scene = Scene(loss, X, sigma, u, np.zeros(2), 0.0, 1.0, 30.0, False)
        assert not scene.is_false(scene.claim(scene.sums()))

    def test_what_an_infeasible_point_would_prove(self):
        """u = 1.5 for the hinge: -sum l*(-u) is 1.5 per row, more than any row can lose at w = 0."""
        X, sigma = np.zeros((4, 1)), np.ones(4)
        scene = Scene(Hinge(), X, sigma, np.ones(4), np.zeros(1), 0.0, 1.0, 4.0, False)
        sums = scene.sums()
        assert not scene.is_false(scene.claim(sums))
        taken = replace(sums, loss=6.0, conj_plus=1.5 * sums.conj_plus)
        assert scene.is_false(scene.claim(taken))


class TestReportedUnits:
    """What is certified is certified in the units that users read."""

    def conclude(self, primal, bound, rounding, scale):
        return enclose(
            primal, bound, rounding, scale=scale, tol=1e-6, distance=math.inf, kind="dual"
        )

    def test_overflow_is_not_certified(self):
        found = self.conclude(2.0, 2.0, 1e-15, 1e308)
        assert not found.certified
        assert found.dual <= 0.0 or math.isfinite(found.dual)

    @pytest.mark.parametrize("primal", [2.0, 1e-5])
    def test_underflow_is_not_certified(self, primal):
        """Not even where all of it is lost, and 0 is what is read."""
        found = self.conclude(primal, primal, 1e-15 * primal, 1e-320)
        assert not found.certified
        assert found.dual <= primal * 1e-320

    @pytest.mark.parametrize("scale", [1.0, 3.0, 1 / 3, 1e7 / 3])
    def test_products_are_rounded_outwards(self, scale):
        rng = np.random.default_rng(0)
        for primal in rng.random(200):
            bound, rounding = primal * (1 - 1e-9), 1e-12 * primal
            found = self.conclude(primal, bound, rounding, scale)
            with Precision(300):
                low, high = arb(bound) - arb(rounding), arb(primal) + arb(rounding)
                assert arb(found.dual) <= arb(scale) * low
                assert arb(found.gap) >= arb(scale) * (high - arb(bound))
                assert arb(found.rounding) >= arb(scale) * arb(rounding)


def test_sums_know_nothing_by_default():
    """A sum without its spread cannot be made: nobody may forget it."""
    with pytest.raises(TypeError):
        ClosingSums(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, np.zeros(1), np.zeros(1))
