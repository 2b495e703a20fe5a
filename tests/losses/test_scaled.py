"""Scaled losses: c l with C is l with c C, in every solver, penalty, grid, storage and file."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import CONVEX, naming, plain, separable, takes
from hypothesis import given
from hypothesis import strategies as st

import linsep
from linsep import LinearClassifier, LinearRegressor, SGDClassifier, losses, path, tune, verify
from linsep.certificates import Optimality, loss_factor
from linsep.errors import BadInput, ConvergenceWarning, Refused, SeparableData
from linsep.losses import LOGISTIC_BASE_2, Hinge, Logistic, Scaled, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.solution import Explicit
from linsep.solvers import SOLVERS
from linsep.solvers.grid import gram, hinge, smooth
from linsep.solvers.grid.problem import HeldOut
from linsep.train_grid import fit_grid

FACTORS = [0.5, 3.0, 1 / math.log(2)]
CS = [1e-3, 1.0, 1e4, math.inf]
LOSSES = [loss for loss in CONVEX if not isinstance(loss, Scaled)]


def rows_for(loss, C):
    """Rows on which the loss has a minimiser, with labels or targets."""
    if loss.soft_margin and math.isinf(C):
        sample = separable()
        return sample.X, sample.sign > 0
    sample = plain()
    if loss.classification:
        return sample.X, sample.sign > 0
    return sample.X, sample.X @ np.array([1.0, -2.0, 0.5, 3.0]) + sample.sign


def fitted(loss, C, X, y, **options):
    kind = LinearClassifier if loss.classification else LinearRegressor
    return kind(loss, C=C, **options).fit(X, y)


def solvers_for(loss, C):
    sample = separable() if loss.soft_margin and math.isinf(C) else plain()
    return ["auto", *(name for name in SOLVERS if takes(name, sample, loss, C))]


CASES = [
    (loss, C, solver)
    for loss in LOSSES
    for C in CS
    if not (loss.zero_at_origin and math.isinf(C))
    for solver in solvers_for(loss, C)
]


@pytest.mark.sampled(150)
@pytest.mark.parametrize("factor", FACTORS, ids=lambda c: f"{c:.3g}")
@pytest.mark.parametrize(("loss", "C", "solver"), CASES, ids=naming)
def test_it_is_the_plain_loss_with_another_c(loss, C, solver, factor):
    X, y = rows_for(loss, C)
    scaled = fitted(Scaled(loss, factor), C, X, y, solver=solver)
    same = fitted(loss, factor * C, X, y, solver=solver)
    assert scaled.certificate_.certified
    assert scaled.solver_ == same.solver_
    np.testing.assert_allclose(scaled.coef_, same.coef_, rtol=1e-6, atol=1e-9)
    objective = factor if math.isinf(C) and not loss.soft_margin else 1.0
    assert scaled.certificate_.primal == pytest.approx(objective * same.certificate_.primal)
    assert verify(scaled, X, y).certified
    if solver == "auto":
        assert verify(scaled, X, y, exact=True).certified


@pytest.mark.parametrize("factor", [0.5, 1 / math.log(2)])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss.smooth], ids=naming)
def test_with_absolute_penalties(loss, l1_ratio, factor):
    X, y = rows_for(loss, 0.3)
    scaled = fitted(Scaled(loss, factor), 0.3, X, y, l1_ratio=l1_ratio)
    same = fitted(loss, 0.3 * factor, X, y, l1_ratio=l1_ratio)
    assert scaled.solver_ == same.solver_
    np.testing.assert_allclose(scaled.coef_, same.coef_, rtol=1e-5, atol=1e-9)
    assert verify(scaled, X, y).certified and verify(scaled, X, y, exact=True).certified


@pytest.mark.parametrize(
    "penalty",
    [
        {"penalty_factor": [0.0, 1.0, 2.0, 0.5]},
        {"feature_groups": [0, 0, 1, 1], "l1_ratio": 0.5},
        {"feature_groups": [0, 0, 1, 1], "l1_ratio": 1.0},
    ],
    ids=["factors", "groups", "group lasso"],
)
def test_with_factors_and_groups_of_features(penalty):
    sample = plain()
    scaled = LinearClassifier(LOGISTIC_BASE_2, C=0.3, **penalty).fit(sample.X, sample.sign)
    same = LinearClassifier("logistic", C=0.3 / math.log(2), **penalty).fit(sample.X, sample.sign)
    assert scaled.certificate_.certified
    np.testing.assert_allclose(scaled.coef_, same.coef_, rtol=1e-4, atol=1e-7)
    assert verify(scaled, sample.X, sample.sign).certified
    assert verify(scaled, sample.X, sample.sign, exact=True).certified


class TestWithoutMinimiser:
    def test_separable_rows_are_refused_as_for_the_plain_loss(self):
        sample = separable()
        for loss in (Scaled(Logistic(), 2.0), LOGISTIC_BASE_2, Scaled(losses.Exponential(), 0.1)):
            with pytest.raises(SeparableData):
                LinearClassifier(loss, C=math.inf).fit(sample.X, sample.sign)

    def test_losses_that_are_flat_beyond_the_margin_reach_zero(self):
        sample = separable()
        model = LinearClassifier(Scaled(SquaredHinge(), 2.0), C=math.inf).fit(sample.X, sample.sign)
        assert model.certificate_.primal == 0.0
        assert model.certificate_.certified and model.coef_.any()

    def test_the_perceptron_loss_is_refused(self):
        sample = plain()
        with pytest.raises(Refused, match="0, at w = 0"):
            LinearClassifier(Scaled(losses.Perceptron(), 2.0), C=math.inf).fit(
                sample.X, sample.sign
            )


class TestGrids:
    """Every engine of a grid sees the plain loss, and gives back fits of the scaled one."""

    CS = (0.02, 0.5, 4.0)

    def compare(self, loss, factor, X, y, engine):
        part, own = np.arange(len(y)) % 3, [factor * C for C in self.CS]
        given = LinearClassifier(Scaled(loss, factor))._grid_problem(X, y, None)
        same = LinearClassifier(loss)._grid_problem(X, y, None).with_grid(own, part)
        assert engine.applies(same)
        held, expected = np.zeros((len(y), len(own))), np.zeros((len(y), len(own)))
        fits = fit_grid(given.with_grid(self.CS, part), HeldOut(held))
        plain_fits = fit_grid(same, HeldOut(expected))
        np.testing.assert_allclose(held, expected, rtol=1e-3, atol=1e-3)
        assert fits.keys() == plain_fits.keys()
        for (c, f), fit in fits.items():
            assert fit.certificate.certified
            assert fit.recipe.loss == Scaled(loss, factor)
            assert fit.recipe.penalty.C == self.CS[c]
            assert fit.solver == plain_fits[c, f].solver
            assert fit.certificate.primal == pytest.approx(plain_fits[c, f].certificate.primal)

    @pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()], ids=naming)
    def test_dense_rows(self, loss):
        sample = plain(300, 5)
        self.compare(loss, 1 / math.log(2), sample.X, sample.sign > 0, smooth)

    @pytest.mark.parametrize("loss", [Logistic(), Hinge()], ids=naming)
    def test_sparse_rows(self, loss):
        sample = plain(300, 5)
        X, Cs = sp.csr_array(np.where(np.abs(sample.X) > 0.5, sample.X, 0.0)), np.array(self.CS)
        scaled = tune(LinearClassifier(Scaled(loss, 3.0)), X, sample.sign, Cs, cv=3)
        same = tune(LinearClassifier(loss), X, sample.sign, 3.0 * Cs, cv=3)
        assert scaled.certified and 3.0 * scaled.best_C == same.best_C

    @pytest.mark.parametrize("loss", [Logistic(), Hinge()], ids=naming)
    def test_more_features_than_rows(self, loss):
        sample = plain(40, 90)
        self.compare(loss, 1 / math.log(2), sample.X, sample.sign > 0, gram)

    def test_many_rows_of_a_hinge(self):
        sample = plain(20_000, 10)
        self.compare(Hinge(), 0.7, sample.X, sample.sign > 0, hinge)

    @pytest.mark.parametrize("cv", [4, "loo-approximate"])
    def test_tune_chooses_the_same_model(self, cv):
        sample, Cs = plain(200, 4), np.array([0.01, 0.1, 1.0])
        scaled = tune(LinearClassifier(Scaled(Logistic(), 4.0)), sample.X, sample.sign, Cs, cv=cv)
        same = tune(LinearClassifier("logistic"), sample.X, sample.sign, 4.0 * Cs, cv=cv)
        assert 4.0 * scaled.best_C == same.best_C

    def test_path_has_the_same_models(self):
        sample, Cs = plain(200, 4), np.array([0.01, 0.1, 1.0])
        scaled = path(LinearClassifier(LOGISTIC_BASE_2), sample.X, sample.sign, Cs)
        same = path(LinearClassifier("logistic"), sample.X, sample.sign, Cs / math.log(2))
        np.testing.assert_allclose(scaled.coefs, same.coefs, rtol=1e-5)
        assert all(proof.certified for proof in scaled.certificates)
        for a, b in zip(scaled.certificates, same.certificates, strict=True):
            assert a.primal == pytest.approx(b.primal)


class TestElsewhere:
    def test_rows_on_disk(self, tmp_path):
        sample = plain(500, 4)
        table = np.column_stack([sample.X, sample.sign > 0])
        names = ",".join([*(f"x{j}" for j in range(4)), "label"])
        np.savetxt(
            tmp_path / "rows.csv", table, delimiter=",", header=names, comments="", fmt="%.17g"
        )
        rows = linsep.scan(tmp_path / "rows.csv", target="label")
        scaled = LinearClassifier(Scaled(Logistic(), 0.5), C=0.6).fit(rows)
        same = LinearClassifier("logistic", C=0.3).fit(rows)
        assert scaled.certificate_.certified
        assert scaled.solver_ == same.solver_
        np.testing.assert_allclose(scaled.coef_, same.coef_, rtol=1e-6)
        assert verify(scaled, rows).certified

    @pytest.mark.parametrize("C", [0.3, math.inf])
    def test_stochastic_descent_takes_the_same_steps(self, C):
        sample, options = plain(), {"epochs": 5, "random_state": 0}
        scaled = SGDClassifier(Scaled(Logistic(), 4.0), C=C, **options).fit(sample.X, sample.sign)
        same = SGDClassifier("logistic", C=4.0 * C, **options).fit(sample.X, sample.sign)
        np.testing.assert_array_equal(scaled.coef_, same.coef_)
        objective = 4.0 if math.isinf(C) else 1.0
        np.testing.assert_allclose(scaled.history_.best, objective * same.history_.best, rtol=1e-15)
        assert scaled.certificate_.primal == objective * same.certificate_.primal

    def test_probabilities_and_intervals_are_those_of_the_plain_loss(self):
        sample = plain()
        scaled = LinearClassifier(LOGISTIC_BASE_2, C=math.inf).fit(sample.X, sample.sign)
        same = LinearClassifier("logistic", C=math.inf).fit(sample.X, sample.sign)
        for method in ("predict_proba", "predict_log_proba"):
            np.testing.assert_array_equal(
                getattr(scaled, method)(sample.X), getattr(same, method)(sample.X)
            )
        found = linsep.summary(scaled, sample.X, sample.sign)
        assert found.valid
        assert found.coefficients == linsep.summary(same, sample.X, sample.sign).coefficients

    @pytest.mark.parametrize("C", [0.7, math.inf])
    @pytest.mark.parametrize("target", [1e-120, 1e120])
    def test_targets_of_extreme_size(self, target, C):
        sample = plain()
        t = target * (sample.X @ np.array([1.0, -2.0, 0.5, 3.0]) + sample.sign)
        scaled = LinearRegressor(Scaled(losses.Squared(), 3.0), C=C).fit(sample.X, t)
        same = LinearRegressor("squared", C=3.0 * C).fit(sample.X, t)
        np.testing.assert_allclose(scaled.coef_, same.coef_, rtol=1e-6)
        assert scaled.certificate_.relative_gap <= 1e-6 or not same.certificate_.certified

    @pytest.mark.parametrize("loss", [Scaled(LOGISTIC_BASE_2, 0.3), Scaled(Hinge(), 0.3)])
    def test_model_files(self, loss, tmp_path):
        sample = plain()
        model = LinearClassifier(loss, C=0.9).fit(sample.X, sample.sign)
        linsep.save(model, tmp_path / "model.linsep")
        again = linsep.load(tmp_path / "model.linsep")
        assert again.loss == loss
        assert again.certificate_ == model.certificate_
        assert verify(again, sample.X, sample.sign, exact=True).certified


class TestNested:
    def test_factors_multiply(self):
        assert Scaled(Scaled(Hinge(), 2.0), 3.0) == Scaled(Hinge(), 6.0)
        assert Scaled(LOGISTIC_BASE_2, 2.0).plain == Logistic()

    def test_products_out_of_range_are_refused(self):
        with pytest.raises(BadInput, match="factor must be positive and finite"):
            Scaled(Scaled(Hinge(), 1e300), 1e300)
        with pytest.raises(BadInput, match="times the factor"):
            loss_factor(Scaled(Hinge(), 1e300), ElasticNet(1e300))
        assert loss_factor(Scaled(Hinge(), 1.0), ElasticNet(2.0)).loss == Hinge()


class TestCertificate:
    """What was proven of the plain problem, against exact arithmetic on two points of the scaled one."""

    numbers = st.floats(2.0**-30, 2.0**30)

    @staticmethod
    def claim(P, best):
        """The tightest certificate that float64 numbers state."""
        primal, dual = float(P), float(best)
        dual = dual if Fraction(dual) <= best else math.nextafter(dual, 0.0)
        gap = float(P - best)
        gap = gap if Fraction(gap) >= P - best else math.nextafter(gap, math.inf)
        share = gap / primal
        return Optimality(primal, dual, gap, share, 1.0, 1e-6, share <= 1e-6, primal * 2.0**-53)

    @given(R=numbers, L=numbers, near=st.floats(0.0, 1e-12), c=numbers, C=numbers)
    def test_the_rounding_of_c_times_is_paid_for(self, R, L, near, c, C):
        factor = loss_factor(Scaled(Hinge(), c), ElasticNet(C))
        points = [(Fraction(R), Fraction(L)), (Fraction(R) * (1 + Fraction(near)), Fraction(L))]
        points[1] = points[1][0], Fraction(L) * (1 - Fraction(near))
        rounded = [r + Fraction(factor.penalty.C) * loss for r, loss in points]
        true = [r + Fraction(c) * Fraction(C) * loss for r, loss in points]
        found = factor.certificate(self.claim(rounded[0], min(rounded)), 1e-6)
        assert true[0] - min(true) <= Fraction(found.gap)
        assert Fraction(found.dual) <= min(true)
        assert abs(Fraction(found.primal) - true[0]) <= Fraction(found.rounding)
        assert found.relative_gap >= found.gap / found.primal * (1 - 1e-15)

    @given(L=numbers, share=st.floats(0.0, 1.0), c=numbers)
    def test_without_a_penalty_all_is_multiplied(self, L, share, c):
        factor = loss_factor(Scaled(SquaredHinge(), c), ElasticNet(math.inf))
        best = Fraction(L) * Fraction(share)
        found = factor.certificate(self.claim(Fraction(L), best), 1e-6)
        assert Fraction(c) * (Fraction(L) - best) <= Fraction(found.gap)
        assert Fraction(found.dual) <= Fraction(c) * best
        assert found.primal == c * L

    def test_a_product_without_rounding_changes_nothing(self):
        factor = loss_factor(Scaled(Hinge(), 0.5), ElasticNet(3.0))
        claim = self.claim(Fraction(2), Fraction(2))
        assert factor.certificate(claim, 1e-6) == claim

    def test_an_unproven_gap_stays_unproven(self):
        factor = loss_factor(Scaled(Hinge(), 0.3), ElasticNet(0.7))
        claim = replace(self.claim(Fraction(2), Fraction(1)), gap=math.inf, certified=False)
        assert not factor.certificate(claim, 1e-6).certified


def test_an_objective_out_of_range_stays_uncertified():
    """Squares of 1e-160 underflow: neither a relative gap nor an error of w of 0 may be claimed."""
    x, t = np.arange(12.0)[:, None], 1e-160 * np.sin(np.arange(12.0))
    loss = Scaled(losses.Squared(), 26973.465631903226)
    for l1_ratio in (0.0, 0.01):
        model = LinearRegressor(loss, C=0.7578733903801788, l1_ratio=l1_ratio)
        with pytest.warns(ConvergenceWarning, match="range of full float64 precision"):
            model.fit(x, t)
        found = model.certificate_
        assert not found.certified and math.isinf(found.relative_gap) and found.coef_error > 0.0


@pytest.mark.parametrize("c", [1.1931578380862854e-06, 3.0, 2.0**-20])
def test_dual_variables_of_a_scaled_loss_keep_every_bit(c):
    """c u / c is not u in float64, and beside columns of 1e9 the last bit of u changes the bound."""
    factor = loss_factor(Scaled(Hinge(), c), ElasticNet(1.0))
    u = np.random.default_rng(0).random(1000)
    back = factor._plain_dual(factor.user_dual(Explicit(u)))
    rest = np.zeros(1000) if back.rest is None else back.rest
    apart = [
        Fraction(a) + Fraction(b) - Fraction(x) for a, b, x in zip(back.u, rest, u, strict=True)
    ]
    assert max(map(abs, apart)) <= 2.0**-100
    assert (back.rest is None) == (c == 2.0**-20)
