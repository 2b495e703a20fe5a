"""Targets keep their digits, at any scale."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import Quartic
from hostile import answers, draw

from linsep import LinearRegressor, load, save, tune, verify
from linsep.certificates import Optimality, TargetUnits
from linsep.errors import CertificateError, ConvergenceWarning, NonFinite
from linsep.losses import (
    Absolute,
    EpsilonInsensitive,
    Huber,
    Loss,
    Scaled,
    Squared,
    SquaredEpsilonInsensitive,
    zero_margin,
)
from linsep.penalties import ElasticNet

X = np.random.default_rng(0).normal(size=(100, 3))
NOISE = np.random.default_rng(1).normal(size=100)
T = X @ [1.0, -2.0, 0.5] + 0.1 * NOISE + 0.3
RESIDUAL = [Squared(), Absolute(), Huber(2.0)]


def rational_least_squares(X, t, lam=0):
    """argmin |t - X w - b|^2 + lam |w|^2 in rational numbers, (w, b)."""
    A = [[Fraction(x) for x in row] + [Fraction(1)] for row in X.tolist()]
    y = [Fraction(x) for x in t.tolist()]
    p = len(A[0])
    M = [
        [sum(row[i] * row[j] for row in A) for j in range(p)]
        + [sum(row[i] * v for row, v in zip(A, y, strict=True))]
        for i in range(p)
    ]
    for i in range(p - 1):
        M[i][i] += lam
    for i in range(p):
        M[i] = [x / M[i][i] for x in M[i]]
        for k in range(p):
            if k != i:
                M[k] = [a - M[k][i] * b for a, b in zip(M[k], M[i], strict=True)]
    return [row[-1] for row in M]


# --- losses of the residual


@pytest.mark.parametrize("loss", RESIDUAL, ids=lambda loss: loss.name)
def test_a_centre_moves_the_loss_along_the_margins(loss):
    m = np.linspace(-5.0, 5.0, 41)
    moved = loss.for_targets()
    assert zero_margin(loss) == 1.0
    assert zero_margin(moved) == 0.0
    for name in ("value", "slope", "curvature"):
        np.testing.assert_array_equal(getattr(moved, name)(m), getattr(loss, name)(m + 1.0))
    u = np.linspace(*np.clip(loss.domain, -3.0, 3.0), 13)
    np.testing.assert_allclose(moved.conjugate(-u), loss.conjugate(-u) + u, atol=1e-15)
    assert loss.params == (() if loss.name != "huber" else (2.0,))
    assert moved.params == (2.0 if loss.name == "huber" else 1.0, 0.0)


def test_the_centre_is_told_where_it_is_not_1():
    assert repr(Squared()) == "Squared()"
    assert repr(Huber(2.0)) == "Huber(width=2.0)"
    assert repr(Huber(2.0, centre=0.0)) == "Huber(width=2.0, centre=0.0)"
    assert Squared() != Squared(centre=0.0)
    with pytest.raises(ValueError, match="centre must be a finite number"):
        Absolute(centre=np.inf)


def test_a_scaled_loss_has_the_centre_of_the_loss():
    loss = Scaled(Huber(2.0), 3.0).for_targets()
    assert loss == Scaled(Huber(2.0, centre=0.0), 3.0)
    assert zero_margin(loss) == 0.0


@dataclass(frozen=True)
class CentredSquare(Loss):
    name = "centred square"
    regression = True
    centre: float = 1.0

    def value(self, m):
        return (self.centre - m) ** 2

    def slope(self, m):
        return -2 * (self.centre - m)

    def curvature(self, m):
        return np.full(np.shape(m), 2.0)

    def conjugate(self, q):
        return q * (self.centre + 0.25 * q)


def test_a_loss_of_the_user_without_a_centre_is_a_function_of_1_minus_m():
    model = LinearRegressor(Quartic(), C=1.0).fit(X, T)
    ((loss, *_, offset, _, _, _, _, _),) = model._verification_parts(X, T, None)
    assert loss == Quartic()
    np.testing.assert_array_equal(offset, 1.0 - T)
    assert verify(model, X, T).certified


def test_a_loss_of_the_user_with_a_centre_keeps_the_digits():
    t = 1e-12 * T
    mine = LinearRegressor(CentredSquare(), C=1.0).fit(X, t)
    text = LinearRegressor("squared", C=1.0).fit(X, t)
    assert mine.certificate_.certified
    np.testing.assert_allclose(mine.coef_, text.coef_, rtol=1e-9)


# --- digits


@pytest.mark.parametrize("C", [1.0, 1e6, np.inf])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_charges_in_coulomb(loss, C):
    t = 1.6e-19 * (X @ [1.0, -2.0, 0.5] + 0.1 * NOISE)
    model = LinearRegressor(loss, C=C).fit(X, t)
    assert model.score(X, t) > 0.99
    assert model.certificate_.primal > 0.0
    assert verify(model, X, t).certified


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, np.float32], ids=str)
def test_targets_of_mixed_scale_keep_their_digits(storage):
    """Rows of the first feature have targets near 1, those of the second near 1e-12."""
    rng = np.random.default_rng(3)
    A = np.zeros((40, 2))
    A[:20, 0], A[20:, 1] = rng.normal(size=20), rng.normal(size=20)
    A = A.astype(np.float32).astype(np.float64)
    t = np.where(np.arange(40) < 20, 1.0, 1e-12) * (A.sum(axis=1) + 0.1 * rng.normal(size=40))
    model = LinearRegressor("squared", C=2.0, fit_intercept=False).fit(storage(A), t)
    for j in range(2):
        x, y = [Fraction(v) for v in A[:, j]], [Fraction(v) for v in t]
        best = sum(a * b for a, b in zip(x, y, strict=True)) / (
            sum(a * a for a in x) + Fraction(1, 4)
        )
        assert model.coef_[j] == pytest.approx(float(best), rel=1e-14)
    assert verify(model, storage(A), t).certified
    assert verify(model, storage(A), t, exact=True).certified


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_least_squares_has_the_digits_of_rational_numbers(scale):
    t = scale * T[:25]
    model = LinearRegressor().fit(X[:25], t)
    best = rational_least_squares(X[:25], t)
    np.testing.assert_allclose([*model.coef_, model.intercept_], list(map(float, best)), rtol=1e-12)
    assert model.certificate_.certified
    assert verify(model, X[:25], t).certified


def test_the_offset_is_the_target_itself():
    """Beside a 1 a target would lose what lies below 1e-16."""
    t = np.ldexp(T, -80)
    model = LinearRegressor("squared", C=1.0).fit(X, t)
    ((loss, *_, offset, _, _, _, _, _),) = model._verification_parts(X, t, None)
    assert loss.centre == 0.0
    np.testing.assert_array_equal(offset, -t)


def test_a_saved_model_knows_its_centre(tmp_path):
    t = 1e-18 * T
    model = LinearRegressor("huber", C=1.0).fit(X, t)
    save(model, tmp_path / "model.linsep")
    again = load(tmp_path / "model.linsep")
    assert again._fits[0].recipe.loss == Huber(centre=0.0)
    assert verify(again, X, t).certified


# --- units: any scale from 1e-300 to 1e300


def scaled(k, loss="squared", *, C=1.0, l1_ratio=0.0, weight=None, rows=X, **settings):
    """A fit to T * 2^k, and these targets."""
    t = np.ldexp(T, k)
    model = LinearRegressor(loss, C=C, l1_ratio=l1_ratio, **settings)
    return model.fit(rows, t, weight), t


@pytest.mark.parametrize("k", [-510, -345, -340, -60, 60, 340, 345, 500])
@pytest.mark.parametrize("C", [1.0, 1e6, np.inf])
def test_least_squares_follows_the_units_of_its_targets_bit_for_bit(k, C):
    one, _ = scaled(0, C=C)
    other, t = scaled(k, C=C)
    np.testing.assert_array_equal(other.coef_, np.ldexp(one.coef_, k))
    assert other.intercept_ == np.ldexp(one.intercept_, k)
    a, b = one.certificate_, other.certificate_
    assert b.certified
    assert (b.primal, b.dual) == (np.ldexp(a.primal, 2 * k), np.ldexp(a.dual, 2 * k))
    assert b.relative_gap == a.relative_gap
    assert b.coef_error == np.ldexp(a.coef_error, k)
    assert verify(other, X, t).certified
    assert other._fits[0].recipe.penalty.C == C


@pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")
@pytest.mark.parametrize("k", [-1015, -990, 990])
@pytest.mark.parametrize("loss", [Squared(), Absolute(), Huber(1e-3)], ids=lambda loss: loss.name)
def test_the_coefficients_are_right_where_squares_are_no_numbers(loss, k):
    one, _ = scaled(0, loss, C=np.inf)
    if isinstance(loss, Huber):
        loss = Huber(np.ldexp(loss.width, k))
    other, _ = scaled(k, loss, C=np.inf)
    np.testing.assert_allclose(np.ldexp(other.coef_, -k), one.coef_, rtol=1e-9)


@pytest.mark.parametrize("k", [-990, 990])
def test_an_objective_that_is_no_number_is_not_certified(k):
    with pytest.warns(ConvergenceWarning, match=r"no certificate can state it.*Change the units"):
        model, t = scaled(k)
    found = model.certificate_
    assert not found.certified
    assert found.primal == (0.0 if k < 0 else np.inf)
    assert found.dual <= found.primal
    assert found.gap > 0.0
    with pytest.raises(CertificateError):
        verify(model, X, t)


@pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")
def test_no_long_decimals_for_an_objective_that_cannot_be_certified(monkeypatch):
    """Targets of 1e-300 that are fitted exactly: a penalty of 1e-600 beside losses would take 340 digits."""
    monkeypatch.setattr("linsep.refinement.solve", lambda *_: pytest.fail("solved in decimals"))
    model = LinearRegressor("absolute", C=0.002).fit(X[:8].T, np.ldexp(T[:3], -1000))
    assert model.certificate_.primal < 2.0**-1022
    assert not model.certificate_.certified


def test_short_decimals_improve_coefficients_whose_objective_cannot_be_certified():
    rows = np.column_stack([1e9 * X[:30, 0], 1e9 * X[:30, 0] + X[:30, 1]])
    with pytest.warns(ConvergenceWarning, match="The coefficients are optimal to tol"):
        model = LinearRegressor("squared", C=1e6).fit(rows, np.ldexp(T[:30], -900))
    one = LinearRegressor("squared", C=1e6).fit(rows, T[:30])
    assert one.certificate_.certified
    np.testing.assert_array_equal(np.ldexp(model.coef_, 900), one.coef_)


def test_coefficients_that_are_no_numbers_are_refused():
    with pytest.raises(NonFinite, match=r"larger than 1\.8e308"):
        LinearRegressor().fit(np.ldexp(X, -200), np.ldexp(T, 1000))


@pytest.mark.sampled(14)
@pytest.mark.parametrize("k", [-996, -345, -200, -64, -40, 40, 200, 345, 996])
@pytest.mark.parametrize("C", [1.0, 1e6, np.inf])
def test_absolute_residuals_at_any_scale(C, k):
    model, t = scaled(k, "absolute", C=C)
    assert model.certificate_.certified
    assert verify(model, X, t).certified
    # the same problem with targets near 1, unless C is no number there
    alike = np.ldexp(C, -k) if abs(k) < 900 else np.inf
    if k < 0:
        one, _ = scaled(0, "absolute", C=min(alike, 1e9))
        np.testing.assert_allclose(np.ldexp(model.coef_, -k), one.coef_, rtol=1e-3)
    primal = 0.5 * np.ldexp(model.coef_, -k // 2) @ np.ldexp(model.coef_, -k // 2)
    if np.isfinite(C):
        total = C * np.abs(np.ldexp(t - model.predict(X), -k)).sum() + np.ldexp(primal, -(k % 2))
        assert np.ldexp(model.certificate_.primal, -k) == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("k", [54, 100, 200, 345, 996])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_huber_far_beyond_its_width_is_the_absolute_loss(C, k):
    model, t = scaled(k, "huber", C=C)
    text, _ = scaled(k, "absolute", C=1.345 * C)
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(
        text.certificate_.primal * (1.345 if np.isinf(C) else 1.0), rel=1e-6
    )
    assert verify(model, X, t).certified


@pytest.mark.sampled(4)
@pytest.mark.parametrize("k", [-500, -345, 40, 200, 345, 500])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_the_absolute_penalty_at_any_scale(l1_ratio, k):
    model, t = scaled(k, "squared", l1_ratio=l1_ratio)
    assert model.certificate_.certified
    assert verify(model, X, t).certified
    if k < 0:
        assert not model.coef_.any()
    else:
        text = LinearRegressor(C=2.0 if l1_ratio < 1.0 else np.inf).fit(X, T)
        np.testing.assert_allclose(np.ldexp(model.coef_, -k), text.coef_, rtol=1e-9)


@pytest.mark.parametrize("k", [-400, 400])
def test_weights_sparse_rows_and_exact_numbers_in_other_units(k):
    weight = np.random.default_rng(5).integers(0, 3, 100) / 2.0
    rows = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    one, _ = scaled(0, weight=weight, rows=rows)
    model, t = scaled(k, weight=weight, rows=rows)
    np.testing.assert_array_equal(model.coef_, np.ldexp(one.coef_, k))
    found = verify(model, rows, t, weight)
    exact = verify(model, rows, t, weight, exact=True)
    assert found.certified
    assert exact.certified
    assert exact.primal == pytest.approx(found.primal, rel=1e-13)
    assert exact.kind == "exact"


def test_exact_numbers_know_the_elastic_net_in_other_units():
    model, t = scaled(345, l1_ratio=0.5)
    assert verify(model, X, t, exact=True).certified


def test_a_warm_start_and_grids_in_other_units():
    model, t = scaled(400, "huber", C=2.0, warm_start=True)
    before = model.coef_.copy()
    model.fit(X, t)
    np.testing.assert_allclose(model.coef_, before, rtol=1e-6)
    many = np.vstack([X, X])
    curve = tune(LinearRegressor(), many, np.ldexp(np.append(T, T), 400), [0.1, 10.0], cv=2)
    assert curve.certified
    text = tune(LinearRegressor(), many, np.append(T, T), [0.1, 10.0], cv=2)
    assert curve.best_C == text.best_C


def test_a_tampered_model_in_other_units_is_refused():
    model, t = scaled(400)
    model.coef_ = model.coef_ * 1.01
    with pytest.raises(CertificateError):
        verify(model, X, t)


@pytest.mark.parametrize("exponent", [-400, 400])
def test_certificates_are_rounded_to_the_safe_side(exponent):
    units = TargetUnits(Squared(centre=0.0), ElasticNet(1.0), exponent, 2 * exponent)
    bound = Optimality(1e-80, 0.9e-80, 0.1e-80, 0.1, 1e-40, 1.0, True, 1e-82)
    found = units.certificate(bound)
    exact = [Fraction(x) * Fraction(2) ** (2 * exponent) for x in (bound.dual, bound.gap)]
    assert Fraction(found.dual) <= exact[0]
    assert Fraction(found.gap) >= exact[1]
    assert found.certified == (exponent > 0)  # 1e-80 / 4^400 is 1e-321


@pytest.mark.parametrize("seed", [70010, 80004, 80826, 82085])
def test_certified_models_of_hostile_problems_are_verified(seed):
    """Bounds from a simpler problem (70010, 80004, 82085), and one in doubled precision below tol (80826)."""
    case = draw(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model, _ = answers(case)
    given = (model, case.X, case.y, case.weight)
    # Here; other instruction sets may round such problems otherwise.
    certified = model.certificate_.certified
    assert not certified or all(verify(*given, exact=exact).certified for exact in (False, True))


def test_an_objective_of_zero_with_penalty_factors_is_verified():
    X, t = np.arange(6.0).reshape(3, 2), np.full(3, 1.7e29)
    model = LinearRegressor(C=1e-6, penalty_factor=[0.5, 0.0]).fit(X, t)
    assert model.certificate_.gap == 0.0
    assert verify(model, X, t).certified and verify(model, X, t, exact=True).certified


def test_scaled_losses_of_huge_targets_are_verified_exactly():
    rng = np.random.default_rng(0)
    X, t = rng.normal(size=(20, 2)), 9e300 * rng.normal(size=20)
    model = LinearRegressor(Scaled(Absolute(), 1.44), C=1 / 3).fit(X, t)
    assert model.certificate_.certified
    assert verify(model, X, t, exact=True).certified


def test_a_gap_below_the_normal_numbers_is_verified():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6, 6))
    t = 1e-150 * (X[:, 0] + rng.normal(size=6))
    model = LinearRegressor("huber", C=2e-4).fit(X, t)
    assert 0.0 < model.certificate_.gap < 2.2e-308
    assert verify(model, X, t).certified and verify(model, X, t, exact=True).certified


@pytest.mark.parametrize("loss", [EpsilonInsensitive, SquaredEpsilonInsensitive])
def test_a_tube_far_wider_than_the_targets_is_an_exact_fit(loss):
    rng = np.random.default_rng(0)
    X, t = rng.standard_normal((30, 3)), 1e-300 * rng.standard_normal(30)
    model = LinearRegressor(loss(1e10)).fit(X, t)
    assert model.certificate_.certified and model.certificate_.primal == 0.0
    assert verify(model, X, t).certified
