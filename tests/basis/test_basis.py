"""Basis functions: the formulas, the laws of each family, and manners among scikit-learn's tools."""

import inspect
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import linsep
from linsep import LinearRegressor, LogisticRegression, basis
from linsep.basis import (
    FourierBasis,
    HaarWavelet,
    Interactions,
    Polynomial,
    RadialBasis,
    RectifiedBasis,
)
from linsep.errors import BadInput

ALL = [
    Polynomial(3),
    Interactions(),
    Interactions(squares=False),
    RadialBasis(n_centres=4),
    RectifiedBasis(6, random_state=0),
    FourierBasis(2),
    HaarWavelet(3),
]
X = np.random.default_rng(0).normal(size=(40, 2))


def named(transformer):
    return repr(transformer)


every = pytest.mark.parametrize("transformer", ALL, ids=named)


@pytest.mark.sampled(120)
@parametrize_with_checks([*ALL, HaarWavelet(2, sparse_output=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_module_offers_what_it_names():
    assert linsep.basis is basis
    assert {type(t).__name__ for t in ALL} == set(basis.__all__)
    assert all(inspect.getdoc(getattr(basis, name)) for name in basis.__all__)


@every
def test_float32_is_kept_and_close(transformer):
    double = clone(transformer).fit(X)
    single = clone(transformer).fit(X.astype(np.float32)).transform(X.astype(np.float32))
    assert single.dtype == np.float32
    assert double.transform(X).dtype == np.float64
    if not isinstance(transformer, HaarWavelet):  # a step may fall on the other side
        np.testing.assert_allclose(single, double.transform(X), atol=2e-5)


@every
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_in_and_frames_out(transformer, frame):
    columns = frame({"age": X[:, 0], "dose": X[:, 1]})
    plain = clone(transformer).fit(X).transform(X)
    kind = "pandas" if frame is pd.DataFrame else "polars"
    model = clone(transformer).set_output(transform=kind).fit(columns)
    out = model.transform(columns)
    assert isinstance(out, frame)
    assert list(out.columns) == list(model.get_feature_names_out())
    assert len(set(out.columns)) == plain.shape[1]
    np.testing.assert_allclose(out.to_numpy(), plain, rtol=1e-12, atol=1e-15)
    with pytest.raises(ValueError, match="input_features"):
        model.get_feature_names_out(["one"])


@every
def test_names_before_fit_are_refused(transformer):
    with pytest.raises(NotFittedError):
        clone(transformer).get_feature_names_out()


@every
def test_every_learner_runs_on_the_basis(transformer):
    y = X[:, 0] ** 2 + X[:, 1] > 0.5
    model = make_pipeline(clone(transformer), StandardScaler(), LogisticRegression()).fit(X, y)
    assert model[-1].certificate_.certified
    assert linsep.verify(model[-1], model[:-1].transform(X), y).certified


class TestPolynomial:
    def test_monomials(self):
        out = Polynomial(3).fit(X)
        a, b = X.T
        expected = [a, b, a * a, a * b, b * b, a**3, a * a * b, a * b * b, b**3]
        np.testing.assert_allclose(out.transform(X), np.column_stack(expected), rtol=1e-13)
        assert out.get_feature_names_out(["a", "b"])[6] == "a^2 b"
        assert Polynomial((2, 3), interaction_only=True).fit_transform(X).shape[1] == 1
        assert (Polynomial(1, include_bias=True).fit_transform(X)[:, 0] == 1).all()

    @pytest.mark.parametrize(
        "transformer", [Polynomial(2), Polynomial(5), Interactions(), Interactions(squares=False)]
    )
    @pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
    def test_sparse_stays_csr(self, transformer, kind):
        S = sp.random(30, 4, density=0.4, random_state=0, format="csr")
        out = clone(transformer).fit_transform(kind(S))
        assert out.format == "csr"
        np.testing.assert_allclose(out.toarray(), clone(transformer).fit_transform(S.toarray()))

    def test_interactions_are_the_quadratic_model(self):
        d = 5
        M = np.random.default_rng(1).normal(size=(d, d))
        v, x = np.arange(d) / 3.0, np.random.default_rng(2).normal(size=(7, d))
        g = np.einsum("ni,ij,nj->n", x, M, x) + x @ v
        phi = Interactions().fit(x)
        assert phi.n_output_features_ == d + d * (d + 1) // 2
        weights = []
        for p in phi.powers_:
            at = np.repeat(np.arange(d), p)
            if len(at) == 1:
                weights.append(v[at[0]])
            else:
                i, j = at
                weights.append(M[i, i] if i == j else M[i, j] + M[j, i])
        np.testing.assert_allclose(phi.transform(x) @ weights, g, rtol=1e-12)
        assert Interactions(squares=False).fit(x).n_output_features_ == d + d * (d - 1) // 2

    def test_changing_squares_changes_the_next_fit(self):
        model = Interactions().fit(X)
        assert model.set_params(squares=False).fit(X).transform(X).shape[1] == 3

    def test_polynomial_regression_recovers_the_polynomial(self):
        t = np.linspace(-1, 1, 30)[:, None]
        p = 3 - 2 * t[:, 0] + 0.5 * t[:, 0] ** 3
        model = make_pipeline(Polynomial(3), LinearRegressor()).fit(t, p)
        np.testing.assert_allclose(model[-1].coef_, [-2, 0, 0.5], atol=1e-9)
        assert model[-1].intercept_ == pytest.approx(3)
        assert model[-1].certificate_.certified
        straight = make_pipeline(Polynomial(1), LinearRegressor()).fit(t, p)
        assert straight.score(t, p) < 0.999 < model.score(t, p)

    def test_a_curved_boundary_separates_the_exclusive_or(self):
        grid = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        y = [0, 1, 1, 0]
        assert (
            make_pipeline(Interactions(), LogisticRegression(C=100)).fit(grid, y).score(grid, y)
            == 1
        )
        assert LogisticRegression(C=100).fit(grid, y).score(grid, y) < 1


class TestRadial:
    def test_formula(self):
        m = np.array([[0.0, 0.0], [1.0, -2.0], [3.0, 1.0]])
        out = RadialBasis(m, width=1.7).fit_transform(X)
        for k in range(3):
            np.testing.assert_allclose(out[:, k], np.exp(-((X - m[k]) ** 2).sum(axis=1) / 1.7))

    def test_far_from_the_origin_distances_keep_their_digits(self):
        far = X + 1e7
        np.testing.assert_allclose(
            RadialBasis(n_centres=3).fit_transform(far),
            RadialBasis(n_centres=3).fit_transform(X),
            atol=1e-6,
        )

    def test_farthest_centres_are_rows_and_spread(self):
        model = RadialBasis(n_centres=5).fit(X)
        gaps = np.linalg.norm(model.centres_[:, None] - model.centres_, axis=2)
        reach = np.linalg.norm(X[:, None] - model.centres_, axis=2).min(axis=1).max()
        assert all((X == c).all(axis=1).any() for c in model.centres_)
        assert gaps[~np.eye(5, dtype=bool)].min() >= reach  # what makes it a 2-approximation
        nearest = np.where(np.eye(5), math.inf, gaps**2).min(axis=1)
        assert model.width_ == pytest.approx(nearest.mean())

    def test_quantiles_of_one_feature(self):
        x = np.arange(101.0)[:, None]
        model = RadialBasis("quantiles", n_centres=4).fit(x)
        np.testing.assert_allclose(model.centres_[:, 0], [12.5, 37.5, 62.5, 87.5])
        with pytest.raises(BadInput, match='for one feature, X has 2; use centres="farthest"'):
            RadialBasis("quantiles").fit(X)

    def test_constant_data(self):
        model = RadialBasis().fit(np.ones((5, 2)))
        assert model.centres_.shape == (1, 2)
        assert model.width_ == 1.0
        assert (model.transform(np.ones((3, 2))) == 1).all()

    def test_bumps_separate_a_disc(self):
        y = (X**2).sum(axis=1) < 1
        model = make_pipeline(RadialBasis(n_centres=8), LogisticRegression(C=100)).fit(X, y)
        assert model.score(X, y) > LogisticRegression(C=100).fit(X, y).score(X, y) + 0.1


class TestRectified:
    def test_formula(self):
        a, b = np.array([[1.0, -2.0], [0.0, 3.0]]), np.array([0.5, -1.0])
        out = RectifiedBasis(a=a, b=b).fit_transform(X)
        for k in range(2):
            np.testing.assert_allclose(out[:, k], np.maximum(0, X @ a[k] + b[k]))

    def test_every_kink_passes_through_a_row(self):
        model = RectifiedBasis(9, random_state=1).fit(X)
        assert np.abs(X @ model.a_.T + model.b_).min(axis=0) == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(np.linalg.norm(model.a_ * X.std(axis=0), axis=1), 1)

    def test_sparse_agrees_with_dense(self):
        S = sp.random(30, 6, density=0.3, random_state=0, format="csr")
        sparse = RectifiedBasis(5, random_state=0).fit(S)
        dense = RectifiedBasis(5, random_state=0).fit(S.toarray())
        np.testing.assert_allclose(sparse.a_, dense.a_)
        np.testing.assert_allclose(sparse.transform(S), dense.transform(S.toarray()), atol=1e-14)

    def test_the_seed_decides(self):
        one, two = (RectifiedBasis(random_state=3).fit_transform(X) for _ in range(2))
        np.testing.assert_array_equal(one, two)


class TestFourier:
    def test_orthogonal_on_a_regular_grid(self):
        t = np.arange(16)[:, None] / 16 * 5.0 + 2.0
        F = FourierBasis(3, period=5.0).fit_transform(t)
        np.testing.assert_allclose(F.T @ F / 8, np.eye(6), atol=1e-14)
        np.testing.assert_allclose(F.sum(axis=0), 0, atol=1e-13)

    def test_periods(self):
        x = np.array([[0.0, 10.0], [3.0, 10.0], [6.0, 10.0]])
        assert FourierBasis().fit(x).period_.tolist() == [6.0, 1.0]
        assert FourierBasis(period=[24.0, 7.0]).fit(x).period_.tolist() == [24.0, 7.0]
        model = FourierBasis(2, period=2.5).fit(x)
        np.testing.assert_allclose(model.transform(x + 2.5), model.transform(x), atol=1e-14)

    def test_names(self):
        names = FourierBasis(2).fit(X).get_feature_names_out(["a", "b"])
        assert names.tolist()[:5] == ["a_cos1", "a_sin1", "a_cos2", "a_sin2", "b_cos1"]


class TestHaar:
    def test_orthonormal_on_its_cells(self):
        cells = (np.arange(8)[:, None] + 0.5) / 8
        model = HaarWavelet(3).fit([[0.0], [1.0]])
        H = model.transform(cells)
        np.testing.assert_allclose(H.T @ H / 8, np.eye(7), atol=1e-15)
        np.testing.assert_allclose(H.sum(axis=0), 0, atol=1e-15)

    def test_formula(self):
        def psi(t):
            return np.where((t >= 0) & (t < 0.5), 1.0, np.where((t >= 0.5) & (t < 1), -1.0, 0.0))

        t = np.random.default_rng(0).uniform(size=50)
        H = HaarWavelet(4).fit([[0.0], [1.0]]).transform(t[:, None])
        at = 0
        for level in range(4):
            for k in range(2**level):
                np.testing.assert_allclose(H[:, at], 2 ** (level / 2) * psi(2**level * t - k))
                at += 1

    def test_ends_outside_and_constant(self):
        model = HaarWavelet(2).fit([[0.0, 5.0], [1.0, 5.0]])
        assert model.transform([[1.0, 5.0]])[0, :3] == pytest.approx([-1, 0, -math.sqrt(2)])
        assert (model.transform([[1.5, 5.0], [-0.1, 6.0]]) == 0).all()
        assert (model.transform([[0.5, 5.0]])[:, 3:] == 0).all()

    def test_sparse_output_is_the_same_matrix(self):
        sparse = HaarWavelet(5, sparse_output=True).fit(X)
        out = sparse.transform(X)
        assert sp.issparse(out)
        assert out.format == "csr"
        assert np.diff(out.indptr).max() == 2 * 5
        np.testing.assert_array_equal(out.toarray(), HaarWavelet(5).fit_transform(X))

    def test_step_functions_are_spanned(self):
        x = (np.arange(64)[:, None] + 0.5) / 64
        steps = np.repeat([3.0, -1.0, 2.0, 7.0], 16)
        model = make_pipeline(HaarWavelet(2), LinearRegressor()).fit(x, steps)
        np.testing.assert_allclose(model.predict(x), steps, atol=1e-9)


@pytest.mark.parametrize(
    ("transformer", "message"),
    [
        (RadialBasis("centre"), "one of 'farthest', 'quantiles', got 'centre'"),
        (RadialBasis([[1.0]]), "1 coordinates, X has 2 features"),
        (
            RadialBasis(n_centres=0),
            "n_centres must be a whole number of centres, at least 1, got 0",
        ),
        (RadialBasis(width=-1.0), "width must be a positive finite number, got -1.0"),
        (
            RectifiedBasis(2.5),
            "n_functions must be a whole number of functions, at least 1, got 2.5",
        ),
        (RectifiedBasis(b=[1.0]), "b is given without a"),
        (RectifiedBasis(a=[[1.0]]), "a has 1 columns, X has 2 features"),
        (RectifiedBasis(a=[[1.0, 2.0]], b=[1.0, 2.0]), "one offset for each of 1 rows"),
        (FourierBasis(period=[1.0, 2.0, 3.0]), "one for each of 2 features"),
        (FourierBasis(period=0.0), "period must be a positive number"),
        (FourierBasis(True), "n_frequencies must be a whole number"),
        (Polynomial(-1), "of Polynomial must be an int"),
        (
            HaarWavelet(21),
            "levels must be a whole number of levels, at least 1 and at most 20, got 21",
        ),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_bad_parameters_say_what_is_wanted(transformer, message):
    with pytest.raises(BadInput, match=message):
        transformer.fit(X)


def test_one_basis_for_each_column():
    columns = make_column_transformer(
        (FourierBasis(1, period=24.0), [0]), (RadialBasis("quantiles", n_centres=3), [1])
    )
    assert columns.fit_transform(X).shape == (40, 5)
    assert columns.get_feature_names_out()[0] == "fourierbasis__x0_cos1"


def test_a_number_of_centres_is_not_an_array_of_centres():
    with pytest.raises(
        BadInput, match=r"centres must be an array .* got 3; n_centres sets the number"
    ):
        RadialBasis(3).fit([[1.0], [2.0]])


@pytest.mark.parametrize("kind", [basis.Polynomial, basis.Interactions, RadialBasis])
def test_a_basis_that_is_not_fitted_says_so(kind):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        kind().transform([[1.0]])


def test_a_value_that_is_not_finite_is_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, np.nan]})
    with pytest.raises(BadInput, match=r"NaN\.\nThe first is at row 1, column 1 \('b'\)"):
        basis.Interactions().fit(frame)
    with pytest.raises(BadInput, match="infinity"):
        basis.Polynomial(2).fit([[1.0]]).transform(sp.csr_array([[np.inf]]))
