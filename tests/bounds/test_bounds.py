"""Bounds: proofs that check themselves, laws, coverage, and numbers worked out by other means."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import binom

import linsep
from linsep import LogisticRegression, bounds
from linsep.bounds import NotShattered, Shattered
from linsep.bounds.binomial import log_growth
from linsep.errors import BadInput


def separable(X, y, homogeneous=False):
    """By linear programming: does some halfspace, closed on the + side, label X by y?"""
    rows = X if homogeneous else np.column_stack([X, np.ones(len(X))])
    y = np.asarray(y)
    limit = np.where(y > 0, 0.0, -1.0)  # y g >= 0 for +, g <= -1 for -
    found = linprog(
        np.zeros(rows.shape[1]), -y[:, None] * rows, limit, bounds=(None, None), method="highs"
    )
    return found.status == 0


class TestShattering:
    @pytest.mark.parametrize("homogeneous", [True, False])
    @pytest.mark.parametrize("d", [1, 2, 3, 5])
    def test_witness_has_as_many_points_as_the_vc_dimension(self, d, homogeneous):
        witness = bounds.shattering_witness(d, homogeneous)
        assert witness
        assert witness.check()
        assert len(witness.points) == bounds.vc_dimension(d, homogeneous) == d + (not homogeneous)
        seen = 0
        for y, w, b in witness.labellings():
            assert (np.array(y) * (witness.points @ w + b) > 0).all()
            assert b == 0 or not homogeneous
            seen += 1
        assert seen == 2 ** len(witness.points)

    def test_the_choice_of_the_lecture_works_too(self):
        """w = (y_1 ... y_d), b = y_{d+1}/2 on {e_1 ... e_d, 0}."""
        points = bounds.shattering_witness(4).points
        for y in itertools.product((-1, 1), repeat=5):
            assert (np.array(y) * (points @ y[:4] + y[4] / 2) > 0).all()

    @pytest.mark.parametrize("homogeneous", [True, False])
    @pytest.mark.parametrize("seed", range(6))
    def test_agrees_with_linear_programming_on_all_labellings(self, seed, homogeneous):
        rng = np.random.default_rng(seed)
        n, d = rng.integers(1, 6), rng.integers(1, 4)
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
        answer = bounds.shatters(X, homogeneous)
        labellings = list(itertools.product((-1, 1), repeat=int(n)))
        assert bool(answer) == all(separable(X, y, homogeneous) for y in labellings)
        assert answer.check()
        if not answer:
            assert not separable(X, answer.labelling, homogeneous)

    @pytest.mark.parametrize("d", [1, 2, 4, 8])
    def test_no_set_of_d_plus_2_points_is_shattered(self, d):
        X = np.random.default_rng(d).normal(size=(d + 2, d))
        answer = bounds.shatters(X)
        assert isinstance(answer, NotShattered)
        assert answer.check()
        assert not separable(X, answer.labelling)
        assert not bounds.shatters(X[:-1], homogeneous=True)
        assert bounds.shatters(X[:-1])

    def test_tampered_proofs_fail(self):
        no = bounds.shatters([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
        assert not replace(no, labelling=(1, 1, -1, 1)).check()
        assert not replace(no, dependence=(*no.dependence[:-1], Fraction(2))).check()
        yes = bounds.shatters([[1.0, 2.0], [3.0, 4.0]])
        assert not replace(yes, points=yes.points + 1e-9).check()

    def test_nearly_dependent_points_are_decided_exactly(self):
        line = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])
        assert not bounds.shatters(line)
        line[2, 1] = math.nextafter(0.3, 1)
        answer = bounds.shatters(line)
        assert answer
        assert answer.check()

    def test_the_origin_alone_defeats_homogeneous_halfspaces(self):
        answer = bounds.shatters([[0.0, 0.0]], homogeneous=True)
        assert answer.labelling == (-1,)
        assert answer.check()

    def test_many_points_cost_no_more_than_a_few(self):
        X = np.random.default_rng(0).normal(size=(20_000, 3))
        answer = bounds.shatters(X)
        assert len(answer.labelling) == len(X)
        assert not any(answer.dependence[5:])
        assert replace(
            answer, points=X[:5], labelling=answer.labelling[:5], dependence=answer.dependence[:5]
        ).check()
        assert len(bounds.radon(X).dependence) == len(X)

    def test_labels_are_checked(self):
        answer = bounds.shattering_witness(2)
        assert isinstance(answer, Shattered)
        with pytest.raises(BadInput, match="3 numbers -1 or"):
            answer.separator([1, 0, 1])


class TestRadon:
    @pytest.mark.parametrize("exact", [True, False])
    @pytest.mark.parametrize(("n", "d"), [(3, 1), (4, 2), (5, 3), (9, 2), (12, 10)])
    def test_two_groups_share_a_point(self, n, d, exact):
        X = np.random.default_rng(n).normal(size=(n, d))
        split = bounds.radon(X, exact=exact)
        assert split.check()
        assert not set(split.positive) & set(split.negative)
        a = np.array([float(s) for s in split.dependence])
        left = a[list(split.positive)] @ X[list(split.positive)]
        right = -a[list(split.negative)] @ X[list(split.negative)]
        np.testing.assert_allclose(left, right, atol=1e-9)
        np.testing.assert_allclose(split.point, left)
        assert a[a > 0].sum() == pytest.approx(1)
        assert -a[a < 0].sum() == pytest.approx(1)
        y = np.where(a > 0, 1, -1)
        used = np.nonzero(a)[0]
        assert not separable(X[used], y[used])
        if exact:
            assert sum(split.dependence) == 0

    def test_repeated_points(self):
        split = bounds.radon([[1.0], [1.0], [5.0]], exact=True)
        assert (split.positive, split.negative) == ((0,), (1,))
        assert bounds.radon([[0.0], [0.0], [0.0]]).check()

    def test_too_few_points(self):
        with pytest.raises(BadInput, match=r"d \+ 2 = 4 points in 2 dimensions, got 3"):
            bounds.radon(np.eye(3)[:, :2])

    def test_tampered_weights_fail(self):
        split = bounds.radon([[0.0], [1.0], [2.0]], exact=True)
        assert not replace(split, dependence=(Fraction(1), Fraction(-1), Fraction(0))).check()


class TestBall:
    @pytest.mark.parametrize(("n", "d"), [(1, 2), (2, 3), (50, 1), (200, 2), (300, 10), (40, 60)])
    def test_certified_and_not_larger_than_a_direct_search(self, n, d):
        X = np.random.default_rng(n).normal(size=(n, d)) + 100
        ball = bounds.minimum_enclosing_ball(X)
        assert ball.check(X)
        assert ball.radius <= (1 + 1e-9) * ball.lower_bound or n == 1
        assert np.linalg.norm(X - ball.centre, axis=1).max() <= ball.radius * (1 + 1e-12)
        np.testing.assert_allclose(ball.weights @ X[ball.support], ball.centre)
        assert len(ball.support) <= d + 1

    @pytest.mark.parametrize(
        ("X", "radius"),
        [
            (np.array(list(np.ndindex(2, 2, 2))), math.sqrt(3) / 2),
            (np.c_[np.cos(np.arange(360.0)), np.sin(np.arange(360.0))], 1.0),
            (np.c_[np.arange(20.0), 3 * np.arange(20.0)], 9.5 * math.sqrt(10)),
            (np.ones((4, 2)), 0.0),
            (np.eye(7), math.sqrt(6 / 7)),
        ],
        ids=["cube", "circle", "line", "one point", "simplex"],
    )
    def test_known_balls(self, X, radius):
        ball = bounds.minimum_enclosing_ball(X)
        assert ball.radius == pytest.approx(radius, rel=1e-4 if len(X) == 360 else 1e-12)
        assert ball.check(X)

    def test_moving_and_scaling(self):
        X = np.random.default_rng(0).normal(size=(30, 3))
        ball, moved = bounds.minimum_enclosing_ball(X), bounds.minimum_enclosing_ball(5 * X - 7)
        assert moved.radius == pytest.approx(5 * ball.radius)
        np.testing.assert_allclose(moved.centre, 5 * ball.centre - 7)

    @pytest.mark.parametrize("shift", [0.0, 1e6, 1e12])
    @pytest.mark.parametrize("d", [1, 3, 8, 150])
    def test_rounding_puts_no_point_outside_and_proves_no_false_radius(self, d, shift):
        for seed in range(3):
            X = np.random.default_rng([d, seed]).normal(size=(d + 3, d)) * 1e-3 + shift
            ball = bounds.minimum_enclosing_ball(X)
            centre = [Fraction(c) for c in ball.centre.tolist()]
            far = max(
                sum((Fraction(x) - c) ** 2 for x, c in zip(row, centre, strict=True))
                for row in X.tolist()
            )
            assert Fraction(ball.radius) ** 2 >= far
            assert ball.radius <= math.sqrt(far) * (1 + 1e-13)
            lam = [Fraction(x) for x in ball.weights.tolist()]
            rows = [[Fraction(x) for x in X[i].tolist()] for i in ball.support]
            total = sum(lam)
            mean = [
                sum(a * x for a, x in zip(lam, col, strict=True)) for col in zip(*rows, strict=True)
            ]
            sizes = (a * sum(x * x for x in row) for a, row in zip(lam, rows, strict=True))
            dual = sum(sizes) / total - sum(x * x for x in mean) / total**2
            assert Fraction(ball.lower_bound) ** 2 <= dual
            assert ball.lower_bound >= math.sqrt(dual) * (1 - 1e-12)

    def test_tampering_is_noticed(self):
        X = np.random.default_rng(0).normal(size=(30, 3))
        ball = bounds.minimum_enclosing_ball(X)
        assert not replace(ball, radius=0.99 * ball.radius).check(X)
        assert not replace(ball, lower_bound=1.01 * ball.lower_bound).check(X)
        assert not ball.check(2 * X)


class TestClopperPearson:
    @pytest.mark.parametrize("side", ["upper", "lower"])
    @pytest.mark.parametrize("p", [0.001, 0.03, 0.2, 0.5, 0.9])
    @pytest.mark.parametrize("n", [1, 12, 60])
    def test_coverage_by_exact_binomial_sums(self, n, p, side):
        k = np.arange(n + 1)
        limits = [bounds.clopper_pearson(int(e), n, 0.1, side).value for e in k]
        holds = np.array(limits) >= p if side == "upper" else np.array(limits) <= p
        assert binom.pmf(k, n, p)[holds].sum() >= 0.9 - 1e-12

    @given(n=st.integers(1, 500), share=st.floats(0, 1), delta=st.floats(1e-6, 0.5))
    def test_the_tail_at_the_bound_is_delta(self, n, share, delta):
        errors = int(share * (n - 1))
        upper = bounds.clopper_pearson(errors, n, delta)
        assert binom.cdf(errors, n, float(upper)) == pytest.approx(delta, rel=1e-6)
        assert upper.value > bounds.clopper_pearson(errors, n, delta, side="lower").value

    def test_ends(self):
        assert float(bounds.clopper_pearson(0, 100)) == pytest.approx(1 - 0.05**0.01)
        assert float(bounds.clopper_pearson(100, 100)) == 1
        assert float(bounds.clopper_pearson(0, 100, side="lower")) == 0

    @pytest.mark.parametrize("delta", [0.999, 0.05, 1e-10, 1e-300, 5e-324])
    @pytest.mark.parametrize("n", [1, 3, 1000, 10**9, 10**12, 10**18])
    @pytest.mark.parametrize("errors", [0, 1, 2, 50])
    def test_never_rounded_in_its_own_favour(self, errors, n, delta):
        """Also where quantiles of scipy are wrong by a factor or not a number."""
        if errors > n:
            return
        upper = bounds.clopper_pearson(errors, n, delta).value
        lower = bounds.clopper_pearson(n - errors, n, delta, side="lower").value
        assert 0 <= lower <= 1 and 0 < upper <= 1
        for p in (upper, 1 - Fraction(lower)):
            assert p == 1 or tail(errors, n, p) <= Decimal(delta)
        if errors < n and delta > 1e-300:  # and no more than a little in the other direction
            assert tail(errors, n, Fraction(upper) * (1 - Fraction(1, 10**6))) > Decimal(delta)

    @pytest.mark.parametrize("n", [10**6, 10**9, 10**18])
    def test_half_of_many_rows(self, n):
        """The normal approximation is right to 1e-3 of a standard deviation."""
        upper, lower = (bounds.clopper_pearson(n // 2, n, side=s).value for s in ("upper", "lower"))
        deviation = 0.5 / math.sqrt(n)
        assert (upper - 0.5) / deviation == pytest.approx(1.6449, abs=3e-3)
        assert (0.5 - lower) / deviation == pytest.approx(1.6449, abs=3e-3)

    def test_confidence_stays_below_one(self):
        assert bounds.clopper_pearson(1, 10, 1e-300).holds_with < 1


def tail(errors, n, p):
    """P(Binomial(n, p) <= errors) of a few errors, in decimal arithmetic."""
    with localcontext() as context:
        context.prec, context.Emin = 400, -(10**9)
        p = Fraction(p)
        p = Decimal(p.numerator) / Decimal(p.denominator)
        term = total = (n * (1 - p).ln()).exp()
        for i in range(1, errors + 1):
            term *= (n - i + 1) * p / i / (1 - p)
            total += term
        return total


class TestCompression:
    def test_consistent_separators(self):
        """Without errors the bound is 1 - (delta/(n binom(n, k)))^(1/(n-k))."""
        n, k = 200, 3
        expected = 1 - (0.05 / (n * math.comb(n, k))) ** (1 / (n - k))
        assert float(bounds.sample_compression(k, 0, n)) == pytest.approx(expected)

    def test_union_over_the_choices_is_paid_for(self):
        alone = bounds.sample_compression(0, 5, 100)
        assert float(alone) == pytest.approx(float(bounds.clopper_pearson(5, 100, 0.05 / 100)))

    @pytest.mark.parametrize("n", [10**9, 10**15, 10**18])
    @pytest.mark.parametrize("kept", [1, 10, 300])
    def test_the_choices_among_many_rows_are_all_paid_for(self, n, kept):
        value = bounds.sample_compression(kept, 2, n).value
        choices = Decimal(math.comb(n, kept)) * n
        assert tail(2, n - kept, value) <= Decimal.from_float(0.05) / choices

    def test_the_chernoff_bound_is_a_little_larger(self):
        n, k, errors = 4000, 120, 40
        exact = float(bounds.sample_compression(k, errors, n))
        log = math.log(0.05 / n / math.comb(n, k))
        chernoff = bounds.kl_inverse(errors / (n - k), -log / (n - k))
        assert exact <= chernoff <= 1.1 * exact
        assert float(bounds.sample_compression(1500, errors, n)) > exact

    @given(k=st.integers(0, 40), errors=st.integers(0, 20))
    def test_more_rows_kept_or_more_errors_is_worse(self, k, errors):
        value = float(bounds.sample_compression(k, errors, 300))
        assert value <= float(bounds.sample_compression(k + 1, errors, 300))
        assert value <= float(bounds.sample_compression(k, errors + 1, 300))


class TestRowsNeeded:
    def test_printed_formulas(self):
        agnostic = bounds.rows_needed(10, 0.1, 0.05, "agnostic", "printed")
        realizable = bounds.rows_needed(10, 0.1, 0.05, "realizable", "printed")
        assert int(agnostic) == math.ceil((11 + math.log(20)) / 0.01)
        assert int(realizable) == math.ceil((10 + math.log(20)) / 0.1)
        assert "not a guarantee" in agnostic.assumptions
        assert f": {int(agnostic)} at confidence 0.95" in str(agnostic)

    @pytest.mark.parametrize("d", [1, 10, 100])
    @pytest.mark.parametrize("eps", [0.3, 0.05])
    def test_proven_rows_suffice_and_one_less_does_not(self, d, eps):
        n = int(bounds.rows_needed(d, eps, 0.05, "agnostic"))

        def excess(n):
            growth = math.log(sum(math.comb(2 * n, k) for k in range(d + 2)))
            return math.sqrt(8 * (growth + math.log(80)) / n) + math.sqrt(math.log(40) / (2 * n))

        assert excess(n) <= eps + 1e-9
        assert excess(n - 1) > eps - 1e-9
        n = int(bounds.rows_needed(d, eps, 0.05, "realizable"))
        growth = sum(math.comb(2 * n, k) for k in range(d + 2))
        assert math.log(2 * growth) - n * eps / 2 * math.log(2) <= math.log(0.05) + 1e-9

    @pytest.mark.parametrize("setting", ["agnostic", "realizable"])
    def test_laws(self, setting):
        def rows(d=5, eps=0.1, delta=0.05, **more):
            return bounds.rows_needed(d, eps, delta, setting, **more).value

        assert rows(d=6) > rows() > rows(homogeneous=True)
        assert rows(eps=0.05) > rows() > rows(delta=0.1)
        assert rows() > rows(constants="printed")
        assert rows() == int(rows())
        realizable = bounds.rows_needed(5, 0.1, setting="realizable")
        assert float(realizable) < float(bounds.rows_needed(5, 0.1, setting="agnostic"))


class TestVC:
    def test_printed_formula(self):
        N, D, delta = 1000, 21, 0.05
        width = math.sqrt((D * (math.log(2 * N / D) + 1) + math.log(4 / delta)) / N)
        assert float(bounds.vc_bound(0.225, N, D, delta)) == pytest.approx(0.225 + width)

    @given(n=st.integers(1, 10**6), D=st.integers(1, 500))
    def test_laws(self, n, D):
        printed = bounds.vc_bound(0.1, n, D)
        proven = bounds.vc_bound(0.1, n, D, constants="proven")
        assert printed.value <= proven.value
        assert bounds.vc_bound(0.1, 2 * n, D).value <= printed.value
        assert bounds.vc_bound(0.1, 2 * n, D, constants="proven").value <= proven.value
        assert bounds.vc_bound(0.1, n, D, delta=0.01).value >= printed.value
        assert bounds.vc_bound(0.2, n, D).value == pytest.approx(printed.value + 0.1)
        assert printed.vacuous == (printed.value >= 0.5)

    @pytest.mark.parametrize(("n", "D"), [(1, 3), (10, 3), (40, 20), (1000, 5), (30, 30)])
    def test_growth_function(self, n, D):
        exact = sum(math.comb(n, k) for k in range(D + 1))
        assert log_growth(n, D) == pytest.approx(math.log(exact), rel=1e-10)

    def test_growth_function_of_large_classes_is_bounded(self):
        n, D = 10**8, 2_000_000
        assert 0.99 < log_growth(n, D) / (D * math.log(math.e * n / D)) < 1

    @pytest.mark.parametrize("n", [10**6, 10**12, 10**15, 10**18])
    @pytest.mark.parametrize("D", [1, 3, 30])
    def test_growth_function_of_many_rows_is_not_rounded_down(self, n, D):
        exact = Decimal(sum(math.comb(n, k) for k in range(D + 1))).ln()
        assert exact <= Decimal(log_growth(n, D)) <= exact + Decimal("1e-9")

    @pytest.mark.parametrize("n", [7, 10**6, 10**18])
    @pytest.mark.parametrize("delta", [0.05, 1e-300, 5e-324])
    def test_never_rounded_down(self, n, delta):
        with localcontext() as context:
            context.prec = 50
            log = -Decimal(delta).ln()
            growth = Decimal(sum(math.comb(2 * n, k) for k in range(4))).ln()
            vc = Decimal.from_float(0.3) + 2 * (2 * (growth + Decimal(2).ln() + log) / n).sqrt()
            finite = Decimal.from_float(0.3) + ((256 * Decimal(2).ln() + log) / (2 * n)).sqrt()
        assert Decimal(bounds.vc_bound(0.3, n, 3, delta, constants="proven").value) >= vc
        assert Decimal(bounds.discretisation_bound(0.3, n, 3, delta).value) >= finite

    @pytest.mark.parametrize("eps", [1e-6, 1e-9])
    @pytest.mark.parametrize("setting", ["agnostic", "realizable"])
    def test_rows_for_a_small_excess_suffice(self, eps, setting):
        n = int(bounds.rows_needed(3, eps, setting=setting))
        with localcontext() as context:
            context.prec = 50
            growth = Decimal(sum(math.comb(2 * n, k) for k in range(5))).ln()
            log = -Decimal.from_float(0.05).ln()
            if setting == "agnostic":
                uniform = (8 * (growth + Decimal(4).ln() + log) / n).sqrt()
                assert uniform + ((Decimal(2).ln() + log) / (2 * n)).sqrt() <= Decimal(eps)
            else:
                assert growth + Decimal(2).ln() + log <= n * Decimal(eps) / 2 * Decimal(2).ln()
        for constants in ("printed", "proven"):
            with pytest.raises(BadInput, match="eps is too small"):
                bounds.rows_needed(3, 1e-310, setting="agnostic", constants=constants)

    def test_margin_dimension(self):
        assert bounds.margin_dimension(10, radius=2.0, margin=1.0) == 5
        assert bounds.margin_dimension(10, radius=1.0, margin=1e-200) == 11
        assert bounds.margin_dimension(10, radius=1.0, margin=3.0) == 1

    def test_margin_bound_prints_its_caveat(self):
        bound = bounds.margin_bound(0.0, 5000, 1000, radius=2.0, margin=1.0)
        assert float(bound) == float(bounds.vc_bound(0.0, 5000, 5))
        assert "an explanation, not a guarantee" in str(bound)
        assert float(bound) < float(bounds.vc_bound(0.0, 5000, 1001))

    def test_discretisation(self):
        n, d = 10**6, 9
        width = math.sqrt((math.log(2 ** (64 * (d + 1))) + math.log(20)) / (2 * n))
        bound = bounds.discretisation_bound(0.1, n, d, loss_range=4.0)
        assert float(bound) == pytest.approx(0.1 + 4 * width)
        assert "2^640 predictors" in bound.name
        assert not bound.vacuous
        assert bounds.discretisation_bound(0.1, 10, d).vacuous


@pytest.fixture(scope="module")
def fits():
    """Logistic fits on overlapping and on easy classes; a test set of the same size."""
    found = []
    for n, d, strength in ((1000, 20, 0.5), (10_000, 20, 0.5), (10_000, 20, 4.0)):
        rng = np.random.default_rng(d)
        w = rng.normal(size=d)
        X = rng.normal(size=(2 * n, d))
        y = X @ w * strength + rng.logistic(size=2 * n) > 0
        model = LogisticRegression().fit(X[:n], y[:n])
        found.append((model, X[:n], y[:n], X[n:], y[n:]))
    return found


class TestPacBayes:
    @given(q=st.floats(0, 1), budget=st.floats(0, 3))
    def test_kl_inverse(self, q, budget):
        p = bounds.kl_inverse(q, budget)

        def kl(p):
            left = q * math.log(q / p) if q else 0.0
            return left + ((1 - q) * math.log((1 - q) / (1 - p)) if q < 1 else 0.0)

        assert q <= p <= 1
        assert kl(max(q, p - 1e-9)) <= budget + 1e-12
        if p < 1 - 1e-9:
            assert kl(p + 1e-9) >= budget - 1e-12
        assert p >= min(bounds.kl_inverse(q, budget / 2), 1)

    @given(q=st.floats(1e-6, 0.99), exponent=st.floats(-16, 0))
    def test_kl_inverse_is_never_rounded_down(self, q, exponent):
        """kl(q, p) in 60 digits is at least the budget, although it is about (p - q)^2."""
        budget = 10.0**exponent
        p = bounds.kl_inverse(q, budget)
        with localcontext() as context:
            context.prec = 60
            given, found = Decimal(q), Decimal(p)
            if found < 1:
                kl = given * (given / found).ln() + (1 - given) * ((1 - given) / (1 - found)).ln()
                assert kl >= Decimal(budget)

    def test_kl_inverse_at_the_ends(self):
        assert bounds.kl_inverse(0.0, 0.2) == pytest.approx(1 - math.exp(-0.2))
        assert bounds.kl_inverse(1.0, 0.2) == 1
        assert bounds.kl_inverse(0.3, 0.0) == pytest.approx(0.3)

    def test_order_of_the_bounds(self, fits):
        for model, X, y, X_test, y_test in fits:
            n, d = X.shape
            w, b = model.coef_[0], model.intercept_[0]
            train, errors = 1 - model.score(X, y), int((model.predict(X_test) != y_test).sum())
            held_out = bounds.clopper_pearson(errors, n)
            gibbs = bounds.pac_bayes_margin(w, b, X, y, classifier="gibbs")
            sure = bounds.pac_bayes_margin(w, b, X, y)
            vc = bounds.vc_bound(train, n, d + 1, constants="proven")
            assert errors / n < float(held_out) < float(gibbs) < float(vc)
            assert float(sure) == pytest.approx(min(1, 2 * float(gibbs)))
            assert not held_out.vacuous
        values = [
            float(bounds.pac_bayes_margin(m.coef_, m.intercept_, X, y)) for m, X, y, *_ in fits
        ]
        assert values[0] > values[1] > values[2]

    def test_independent_of_length_and_of_the_lengths_of_rows(self, fits):
        model, X, y, *_ = fits[0]
        value = float(bounds.pac_bayes_margin(model.coef_, None, X, y))
        scaled = X * np.random.default_rng(0).uniform(0.1, 10, size=(len(X), 1))
        assert float(bounds.pac_bayes_margin(7 * model.coef_, None, scaled, y)) == pytest.approx(
            value
        )

    def test_the_gibbs_error_is_what_sampling_finds(self, fits):
        """At the bound kl(empirical Gibbs error, bound) n = mu^2/2 + log(2 sqrt(n)/delta) for some mu."""
        model, X, y, *_ = fits[0]
        n = len(X)
        u = np.append(model.coef_[0], model.intercept_)
        u /= np.linalg.norm(u)
        Z = np.column_stack([X, np.ones(n)])
        s = np.where(y, 1, -1)
        drawn = s[:, None] * (Z @ np.random.default_rng(0).normal(size=(len(u), 4000)))
        mean = s * (Z @ u)
        values = []
        for mu in np.geomspace(0.5, 60, 25):
            error = (drawn <= -mu * mean[:, None]).mean()
            values.append(
                bounds.kl_inverse(error, (mu**2 / 2 + math.log(2 * math.sqrt(n) / 0.05)) / n)
            )
        gibbs = float(bounds.pac_bayes_margin(u[:-1], u[-1], X, y, classifier="gibbs"))
        assert min(values) == pytest.approx(gibbs, abs=0.01)

    def test_a_prior_from_the_other_half_helps(self, fits):
        _, X, y, *_ = fits[2]
        half = len(X) // 2
        one = LogisticRegression().fit(X[:half], y[:half])
        two = LogisticRegression().fit(X, y)
        prior = (one.coef_[0], one.intercept_[0])
        plain = bounds.pac_bayes_margin(two.coef_, two.intercept_, X, y)
        split = bounds.pac_bayes_margin(two.coef_, two.intercept_, X[half:], y[half:], prior=prior)
        assert float(split) < float(plain)

    def test_coverage_on_small_samples(self):
        """100 samples of 50 rows: the bound fails at most rarely (delta is 0.05)."""
        rng = np.random.default_rng(3)
        failures = 0
        for _ in range(100):
            X = rng.normal([1.0, 0.0], size=(50, 2))
            y = np.where(X[:, 0] + 0.3 * rng.normal(size=50) > 0, 1, -1)
            true = rng.normal([1.0, 0.0], size=(2000, 2))
            labels = np.where(true[:, 0] + 0.3 * rng.normal(size=2000) > 0, 1, -1)
            w = (y[:, None] * X).mean(axis=0)
            error = (np.where(true @ w >= 0, 1, -1) != labels).mean()
            failures += error > float(bounds.pac_bayes_margin(w, None, X, y))
        assert failures <= 5


class TestPacBayesAtTheEndsOfFloats:
    @pytest.mark.parametrize("scale", [1e-200, 1e200])
    def test_the_length_of_rows_and_separators_does_not_matter(self, scale):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(200, 3))
        w = np.array([1.0, -1.0, 0.5])
        y = np.where(X @ w + rng.normal(size=200) > 0, 1, -1)
        plain = bounds.pac_bayes_margin(w, None, X, y).value
        assert bounds.pac_bayes_margin(w, None, X * scale, y).value == pytest.approx(plain)
        assert bounds.pac_bayes_margin(w * scale, None, X, y).value == pytest.approx(plain)

    def test_rows_on_every_boundary_count_as_errors(self):
        X, y = np.zeros((100, 2)), np.where(np.arange(100) < 50, 1, -1)
        assert bounds.pac_bayes_margin([1.0, 0.0], None, X, y, classifier="gibbs").value == 1.0


class TestMistakes:
    @staticmethod
    def updates(Z, y, normalised=False):
        """Cyclic perceptron on rows Z, written down from the lecture."""
        w, count = np.zeros(Z.shape[1]), 0
        while True:
            before = count
            for z, s in zip(Z, y, strict=True):
                if s * (w @ z) <= 0:
                    w = w + s * (z / np.linalg.norm(z) if normalised else z)
                    count += 1
            if count == before:
                return count

    def test_the_printed_bound_with_intercept_is_false(self):
        X, y = np.array([[0.11], [0.09]]), np.array([1, -1])
        found = bounds.mistake_bounds([1.0], -0.1, X, y)
        took = self.updates(np.column_stack([X, np.ones(2)]), y)
        assert took == 921
        assert float(found["novikoff_printed"]) == pytest.approx(484)
        assert took > float(found["novikoff_printed"])
        assert took <= float(found["novikoff"])
        assert "FALSE" in str(found["novikoff_printed"])
        assert "FALSE" not in str(found["novikoff"])

    @pytest.mark.parametrize("seed", range(5))
    def test_updates_stay_within_every_bound(self, seed):
        rng = np.random.default_rng(seed)
        w, b = rng.normal(size=3), 0.3
        X = rng.normal(size=(60, 3))
        X = X[np.abs(X @ w + b) > 0.4 * np.linalg.norm(w)]
        y = np.where(X @ w + b > 0, 1, -1)
        Z = np.column_stack([X, np.ones(len(X))])
        found = bounds.mistake_bounds(w, b, X, y)
        assert self.updates(Z, y) <= min(float(found["norm"]), float(found["novikoff"]))
        assert self.updates(Z, y, normalised=True) <= float(found["angular"])
        assert float(found["margin"]) == pytest.approx(float(found["norm"]))
        assert float(found["novikoff"]) == pytest.approx(float(found["norm"]))
        again = bounds.mistake_bounds(10 * w, 10 * b, X, y)  # the length of (w, b) does not matter
        assert all(float(again[k]) == pytest.approx(float(found[k])) for k in found)

    def test_without_intercept(self):
        X, y = np.array([[1.0, 0.0], [-2.0, 1.0]]), np.array([1, -1])
        found = bounds.mistake_bounds([1.0, 0.0], None, X, y)
        assert set(found) == {"angular", "norm", "margin"}
        assert float(found["norm"]) == pytest.approx(5)
        assert self.updates(X, y) <= 5

    def test_constant_r_makes_the_printed_bound_true(self):
        X, y = np.array([[0.11], [0.09]]), np.array([1, -1])
        R = 0.11
        took = self.updates(np.column_stack([X, np.full(2, R)]), y)
        assert took <= float(bounds.mistake_bounds([1.0], -0.1, X, y)["novikoff_printed"])

    @pytest.mark.parametrize("n", range(2, 30))
    def test_a_bound_that_is_attained_is_not_rounded_down(self, n):
        """Orthogonal rows cause n updates, and the bounds are n."""
        X, y = np.eye(n), np.where(np.arange(n) % 2, 1, -1)
        found = bounds.mistake_bounds(y, None, X, y)
        assert self.updates(X, y) == n
        assert all(float(one) == int(one) == n for one in found.values())
        best = bounds.best_mistake_bounds(X, y, fit_intercept=False)
        assert n <= best.radius_norm < n + 1e-6
        assert n <= best.normalised < n + 1e-6

    @pytest.mark.parametrize("seed", range(40))
    def test_rounding_makes_no_bound_smaller(self, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(12, 3)) * 10.0 ** rng.integers(-12, 13, 3)
        X = X + rng.choice([0.0, 1e6, 1e12]) * (rng.random() < 0.5)
        w, b = rng.normal(size=3) / np.abs(X).max(axis=0), float(rng.normal())
        rows = [[*map(Fraction, x), Fraction(1)] for x in X.tolist()]
        v = [*map(Fraction, w.tolist()), Fraction(b)]
        scores = [sum(p * q for p, q in zip(row, v, strict=True)) for row in rows]
        y = np.array([1 if score > 0 else -1 for score in scores])
        y[0] = -y[0] if len(set(y.tolist())) == 1 else y[0]
        if any(s * int(g) <= 0 for s, g in zip(scores, y, strict=True)):
            with pytest.raises(BadInput, match="does not separate"):
                bounds.mistake_bounds(w, b, X, y)
            return
        sizes, length = [sum(x * x for x in row) for row in rows], sum(x * x for x in v)
        norm = max(sizes) * length / min(abs(s) for s in scores) ** 2
        angular = max(size / s**2 for size, s in zip(sizes, scores, strict=True)) * length
        found = bounds.mistake_bounds(w, b, X, y)
        for name, exact in (("norm", norm), ("angular", angular), ("novikoff", norm)):
            assert exact <= Fraction(found[name].value) <= exact * (1 + Fraction(1, 2**52))

    def test_many_rows_of_one_length(self):
        """Too many for rational arithmetic: the bound on the rounding errors is added."""
        rng = np.random.default_rng(0)
        X = rng.choice([-1.0, 1.0], size=(9_000, 3)) * [3.0, 1.0, 1.0]
        y = X[:, 0]
        found = bounds.mistake_bounds([1.0, 0.0, 0.0], None, X, y)["norm"].value
        assert 11 / 9 <= found <= 11 / 9 * (1 + 1e-13)

    def test_a_hyperplane_that_separates_after_rounding_only(self):
        X = [[1e17, 9.0, -1e17, -10.0], [-1.0, -1.0, -1.0, -1.0]]  # the first score is -1
        with pytest.raises(BadInput, match="does not separate"):
            bounds.mistake_bounds([1.0, 1.0, 1.0, 1.0], None, X, [1, -1])

    def test_what_does_not_separate_is_refused(self):
        with pytest.raises(BadInput, match=r"does not separate the rows: y g\(x\) = -1 at row 1"):
            bounds.mistake_bounds([1.0], 0.0, [[1.0], [1.0]], [1, -1])


def test_a_bound_is_a_number_with_small_print():
    bound = bounds.clopper_pearson(30, 100, minority=0.3)
    assert float(bound) == bound.value
    assert bound.vacuous
    assert str(bound).startswith("Clopper-Pearson: error <= 0.384")
    assert "vacuous: the trivial bound is 0.3" in str(bound)
    assert "played no part" in bound.explain()
    assert bound.explain().endswith("Clopper and Pearson 1934")
    assert not bounds.clopper_pearson(30, 100).vacuous
    assert linsep.bounds is bounds


def test_printed_digits_are_never_in_favour_of_the_bound():
    for errors in range(20):
        upper, lower = (bounds.clopper_pearson(errors, 77, side=s) for s in ("upper", "lower"))
        assert float(str(upper).split()[3]) >= upper.value
        assert float(str(lower).split()[3]) <= lower.value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bounds.clopper_pearson(5, 4), "5 errors among 4 rows"),
        (lambda: bounds.clopper_pearson(1, 4, side="both"), "side must be"),
        (lambda: bounds.clopper_pearson(1, 4, delta=1.0), r"delta must lie in \(0, 1\), got 1.0"),
        (lambda: bounds.vc_dimension(0), "d must be a whole number of at least 1, got 0"),
        (lambda: bounds.vc_bound(1.5, 10, 3), r"empirical_error must lie in \[0, 1\]"),
        (lambda: bounds.vc_bound(0.5, 10, 3, constants="mine"), '"printed" or "proven"'),
        (lambda: bounds.rows_needed(3, 0.1, setting="easy"), '"agnostic" or "realizable"'),
        (lambda: bounds.margin_dimension(3, 1.0, 0.0), "margin > 0"),
        (lambda: bounds.discretisation_bound(0.1, 5, 2, loss_range=math.inf), "must be bounded"),
        (lambda: bounds.sample_compression(5, 1, 5), "got kept=5, errors=1, n=5"),
        (lambda: bounds.vc_dimension(math.nan), "d must be a whole number"),
        (lambda: bounds.minimum_enclosing_ball(sp.eye(3)), "dense array of numbers, got dia"),
        (lambda: bounds.shatters([1.0, 2.0]), r"shape \(n, d\)"),
        (lambda: bounds.shatters([[1.0], [math.nan]]), "row 1 is not"),
        (lambda: bounds.minimum_enclosing_ball([[1.0]], tol=0.0), "tol must lie in"),
        (lambda: bounds.pac_bayes_margin([0.0], None, [[1.0]], [1]), "not all zero"),
        (lambda: bounds.pac_bayes_margin([1.0, 2.0], 0.0, [[1.0]], [1]), "must have 1 numbers"),
        (lambda: bounds.pac_bayes_margin([1.0], 0.0, [[1.0]], [1, 2]), "one label for each of 1"),
        (lambda: bounds.pac_bayes_margin([1.0], 0.0, [[1.0]] * 3, [1, 2, 3]), "it has 3"),
        (
            lambda: bounds.pac_bayes_margin([1.0], 0.0, [[1.0]], [1], prior=([1.0], None)),
            "both have an intercept",
        ),
        (lambda: bounds.mistake_bounds([1.0, 1.0], 0.0, [[1.0]], [1]), "must have 1 numbers"),
        (lambda: bounds.kl_inverse(0.5, -1.0), "budget must be at least 0"),
    ],
)
def test_bad_arguments_say_what_is_wanted(call, message):
    with pytest.raises(BadInput, match=message):
        call()


def test_answers_about_points_print_as_sentences():
    square = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    assert repr(bounds.shatters(square[:3])) == (
        "shattered: halfspaces realise all 8 labellings of the 3 points in 2 dimensions"
    )
    assert str(bounds.shatters(square)) == (
        "not shattered: halfspaces cannot label the 4 points in 2 dimensions as +--+"
    )
    assert str(bounds.shatters([[1.0], [2.0]], homogeneous=True)) == (
        "not shattered: halfspaces through the origin cannot label the 2 points in 1 dimension as +-"
    )
    assert str(bounds.shatters([[float(k)] for k in range(40)])).endswith(
        "as +-++++++++++++++++++..."
    )
    assert str(bounds.radon(square, exact=True)) == (
        "the convex hulls of rows (0, 3) and rows (1, 2) share the point (0.5, 0.5)"
    )


def test_a_single_point_has_a_ball_of_radius_zero():
    ball = bounds.minimum_enclosing_ball([[1.0, 2.0]])
    assert str(ball) == "smallest enclosing ball: radius 0, lower bound 0, 1 support point"


def test_without_an_intercept_no_bound_of_novikoff_is_printed():
    X, sign = np.array([[2.0], [-2.0]]), np.array([1.0, -1.0])
    alone = bounds.best_mistake_bounds(X, sign, False)
    assert str(alone) == "at most 1 normalised or 1 raw updates"
    assert "largest margin" in str(bounds.best_mistake_bounds(X, sign, True))
