"""Targets keep their digits, at any scale."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearRegressor, load, save, verify
from linsep.losses import Absolute, Huber, Loss, Scaled, Squared, zero_margin

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
class Quartic(Loss):
    name = "quartic"
    regression = True

    def value(self, m):
        return (1 - m) ** 4

    def slope(self, m):
        return -4 * (1 - m) ** 3

    def curvature(self, m):
        return 12 * (1 - m) ** 2

    def conjugate(self, q):
        return q + 3 * (np.abs(q) / 4) ** (4 / 3)


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


@pytest.mark.parametrize("C", [1.0, np.inf])
@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_charges_in_coulomb(loss, C):
    t = 1.6e-19 * (X @ [1.0, -2.0, 0.5] + 0.1 * NOISE)
    model = LinearRegressor(loss, C=C).fit(X, t)
    assert model.score(X, t) > 0.99
    assert model.certificate_.primal > 0.0


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
