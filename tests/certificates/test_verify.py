"""verify: what a model claims about itself, against the data."""

import copy
import dataclasses
import math
import warnings
from dataclasses import replace
from types import SimpleNamespace

import everyday
import numpy as np
import pytest
import scipy.sparse
import sklearn
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from small_problems import (
    SMOOTH,
    certificate,
    duals_for,
    naming,
    optimum,
    problem,
    softmax_optimum,
    softmax_problem,
)

import linsep
from linsep import LinearClassifier, LinearRegressor, LogisticRegression, losses
from linsep.certificates import Part, combine, recheck_part, verification, verify
from linsep.errors import BadInput, CertificateError, ConvergenceWarning, Refused
from linsep.losses import Absolute, Hinge, Logistic, Multinomial, Squared, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised


def model_of(*parts):
    """A fitted model as verify sees it; its W may be tampered with afterwards."""
    model = SimpleNamespace(parts=list(parts), fit=None)
    model.certificate_ = combine([recheck_part(part) for part in parts])
    model._verification_parts = lambda X, y, sample_weight: list(model.parts)
    return model


def solved(loss=None, seed=0, **settings):
    part = problem(loss or Logistic(), seed, **settings)
    best = optimum(part)
    return part._replace(W=best[:, None], dual=duals_for(part, best)["newton"])


class TestVerify:
    @pytest.mark.parametrize("C", [0.1, 10.0, math.inf])
    @pytest.mark.parametrize("loss", SMOOTH, ids=naming)
    def test_true_claims_pass(self, loss, C):
        found = verify(model_of(solved(loss, 7, n=60, C=C)), None, None)
        assert found.certified
        assert (found.kind == "local") or math.isfinite(C)

    def test_the_better_of_two_bounds_is_reported(self):
        part = solved(SquaredHinge(), 7, C=1e4)
        slopes = part._replace(dual=Linearised(part.W, 0 * part.W))
        by_duality = certificate(slopes)
        assert recheck_part(slopes).gap <= by_duality.gap
        assert recheck_part(slopes).certified

    def test_several_parts(self):
        found = verify(model_of(solved(seed=1), solved(seed=2)), None, None)
        assert len(found.parts) == 2
        assert found.certified

    def test_other_rows_are_rejected_without_exact_arithmetic(self, monkeypatch):
        """Rational arithmetic takes seconds, and could not make another objective of these rows."""
        X, y = load_iris(return_X_y=True)
        model = LogisticRegression().fit(X, y)
        monkeypatch.setattr("linsep.certificates.verification.exact_certificate", None)
        with pytest.raises(CertificateError, match="objective at the coefficients"):
            verify(model, X, np.append(2, y[1:]))

    def test_a_model_without_its_fit_is_refused(self):
        X, y = load_iris(return_X_y=True)
        model = LogisticRegression().fit(X, y)
        del model._fits
        with pytest.raises(BadInput, match="the fit they come from is missing"):
            verify(model, X, y)

    def test_coefficients_that_were_altered_are_found(self):
        model = model_of(solved())
        for change in (1.001, 0.0, -1.0, math.nan, math.inf):
            model.parts = [solved()._replace(W=solved().W * change)]
            with pytest.raises(CertificateError) as caught:
                verify(model, None, None)
            assert caught.value.certificate is not None

    def test_other_data_are_found(self):
        model, part = model_of(solved()), solved()
        model.parts = [part._replace(X=part.X[::-1])]
        with pytest.raises(CertificateError, match="same rows, order, targets and weights"):
            verify(model, None, None)

    def test_another_target_is_found_where_squares_of_coefficients_overflow(self):
        """The line through all points stays the best one when a target is doubled, but its objective is another."""
        x = np.linspace(-1.0, 1.0, 9)
        X, y = 1e-200 * x[:, None], 1e100 * (x + 0.25)
        model = linsep.LinearRegressor("absolute", C=math.inf).fit(X, y)
        assert verify(model, X, y).certified
        y[0] *= 2.0
        with pytest.raises(CertificateError, match="objective at the coefficients"):
            verify(model, X, y)

    @pytest.mark.parametrize(
        "lie",
        [
            {"primal": 1.0},
            {"dual": 1e9, "gap": 0.0},
            {"tol": 1e-30},
            {"gap": 0.0, "dual": 1.0, "relative_gap": 0.0},
        ],
        ids="-".join,
    )
    def test_claims_that_were_altered_are_found(self, lie):
        model = model_of(solved())
        model.certificate_ = dataclasses.replace(model.certificate_, **lie)
        with pytest.raises(CertificateError, match="altered") as caught:
            verify(model, None, None)
        assert "Claimed:" in str(caught.value)
        assert "Found:" in str(caught.value)

    def test_a_gap_too_good_to_be_true_is_found(self):
        part = problem(Squared(), 3)
        theta = optimum(part) + 0.1
        part = part._replace(W=theta[:, None], dual=duals_for(part, theta)["newton"], tol=0.5)
        model = model_of(part)
        assert verify(model, None, None).gap > 0.1
        claimed = model.certificate_
        model.certificate_ = dataclasses.replace(
            claimed, dual=claimed.primal, gap=0.0, relative_gap=0.0, coef_error=0.0, rounding=0.0
        )
        with pytest.raises(CertificateError, match="smaller than the one that can be proven"):
            verify(model, None, None)

    def test_a_model_that_is_not_fitted(self):
        with pytest.raises(NotFittedError):
            verify(LogisticRegression(), None, None)

    def test_an_unfinished_model_is_not_verified(self):
        part = solved()
        model = model_of(part._replace(W=part.W + 0.1))
        with pytest.raises(CertificateError, match="not proven optimal"):
            verify(model, None, None)

    def test_a_dual_point_of_another_fit_proves_less_but_no_lie(self):
        """The dual point is only a proposal: the curvature still proves the answer."""
        part = solved()
        swapped = part._replace(dual=Explicit(np.full(len(part.X), 0.5)))
        assert not certificate(swapped).certified
        assert recheck_part(swapped).certified

    def test_losses_without_duality_are_refused(self):
        with pytest.raises(Refused, match="not convex"):
            recheck_part(solved()._replace(loss=losses.ZeroOne()))

    def test_multinomial(self):
        X, labels, s = softmax_problem(5)
        W = softmax_optimum(X, labels, s, 0.5).x.reshape(3, 3)
        dual = Linearised(W, 0 * W)
        part = Part(Multinomial(3), ElasticNet(2.0), True, X, None, None, s, labels, W, dual, 1e-6)
        assert verify(model_of(part), None, None).certified
        bare = part._replace(penalty=ElasticNet(math.inf))
        assert not recheck_part(bare).certified

    def test_median_with_explicit_dual(self):
        """min_b sum |t - b| over 0, 1, 5, no penalty: the signs of the residuals prove the median."""
        part = problem(Absolute())._replace(
            X=np.zeros((3, 1)),
            sigma=np.ones(3),
            offset=1 - np.array([0.0, 1.0, 5.0]),
            weight=None,
            penalty=ElasticNet(math.inf),
            W=np.array([[0.0], [1.0]]),
            dual=Explicit(np.array([-1.0, 0.0, 1.0])),
        )
        assert verify(model_of(part), None, None).certified
        assert not recheck_part(part._replace(W=np.array([[0.0], [1.1]]))).certified

    def test_hinge_with_explicit_dual(self):
        """Two points, hard by hand: w = 1, b = 0, alpha = 1/2 each, objective 1/2."""
        part = problem(Hinge())._replace(
            X=np.array([[1.0], [-1.0]]),
            sigma=np.array([1.0, -1.0]),
            weight=None,
            W=np.array([[1.0], [0.0]]),
            dual=Explicit(np.array([0.5, 0.5])),
        )
        found = recheck_part(part)
        assert found.primal == 0.5
        assert found.certified
        assert found.gap < 1e-13
        assert not recheck_part(part._replace(dual=Explicit(np.array([0.5, 0.4])))).certified


def test_a_model_of_another_library_is_not_called_unfitted():
    from sklearn.linear_model import LogisticRegression as Other
    from sklearn.pipeline import make_pipeline

    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 1, 0, 1])
    for model in (Other().fit(X, y), make_pipeline(Other()).fit(X, y)):
        for check in (verify, linsep.summary):
            with pytest.raises(BadInput, match=r"needs a fitted estimator of linsep.*got Logistic"):
                check(model, X, y)


def _rows(k=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, np.argmax(X @ rng.normal(size=(3, k)) + rng.normal(size=(40, k)), axis=1)


class TestCopies:
    """What a model says twice it has to say alike: an alteration within rounding is one all the same."""

    MODELS = (
        (linsep.LinearSVC(), 2),
        (linsep.LinearSVC(multiclass="crammer_singer"), 3),
        (LogisticRegression(multiclass="ovr"), 3),
        (linsep.LinearClassifier("squared_hinge", class_weight={0: 2.0}), 2),
        (linsep.LinearRegressor("huber", C=1.0), 3),
        (linsep.LogisticRegressionCV([0.1, 1.0], cv=2), 2),
    )

    @pytest.fixture(params=MODELS, ids=lambda made: type(made[0]).__name__)
    def fitted(self, request):
        estimator, k = request.param
        X, y = _rows(k)
        model = sklearn.clone(estimator).fit(X, y)
        assert verify(model, X, y).certified and verify(copy.deepcopy(model), X, y).certified
        return model, X, y

    @staticmethod
    def assert_rejected(model, X, y, **altered):
        forged = copy.deepcopy(model)
        vars(forged).update(altered)
        with pytest.raises(CertificateError):
            verify(forged, X, y)

    def test_coefficients(self, fitted):
        model = fitted[0]
        self.assert_rejected(*fitted, coef_=np.nextafter(model.coef_, np.inf))
        self.assert_rejected(*fitted, intercept_=np.nextafter(model.intercept_, np.inf))

    @pytest.mark.parametrize(
        "name", ["primal", "dual", "gap", "relative_gap", "coef_error", "rounding", "tol"]
    )
    def test_certificates(self, fitted, name):
        claim = fitted[0].certificate_
        for end in (0.0, math.inf):
            lie = {name: math.nextafter(getattr(claim, name), end)}
            self.assert_rejected(*fitted, certificate_=dataclasses.replace(claim, **lie))

    def test_parameters(self, fitted):
        model = fitted[0]
        others = {"C": 3.0, "C_": 3.0, "loss": "absolute", "class_weight": "balanced"}
        others["multiclass"] = "neither"
        for name, value in others.items():
            if name in vars(model):
                self.assert_rejected(*fitted, **{name: value})

    def test_truth_values_in_the_place_of_equal_numbers(self, fitted):
        model = fitted[0]
        for name in ("l1_ratio", "C"):
            number = getattr(model, name, None)
            if number in (0, 1):
                self.assert_rejected(*fitted, **{name: bool(number)})

    def test_a_chosen_strength_hides_no_other(self, fitted):
        if "C" in vars(fitted[0]):
            self.assert_rejected(*fitted, C=5.0, C_=5.0)


def _claiming(model, **lie):
    """A model, and its fit, with other fields in its certificate."""
    forged = copy.deepcopy(model)
    forged.certificate_ = replace(model.certificate_, **lie)
    forged._fits = type(model._fits)(
        [replace(model._fits[0], certificate=forged.certificate_), *model._fits[1:]]
    )
    return forged


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=1.0, tol=0.1),
        LinearClassifier("squared_hinge", tol=0.1),
        LinearRegressor("huber", C=1.0, tol=0.1),
        LinearRegressor("absolute", C=1.0, tol=0.1),
        LogisticRegression(C=np.inf),
        LinearRegressor(),
    ],
    ids=lambda model: f"{getattr(model, 'loss', 'logistic')}, C={model.C}",
)
@pytest.mark.parametrize("exact", [False, True])
def test_an_error_of_w_by_curvature_is_not_believed(model, exact):
    """The bound of a dual proof follows from its gap; one by curvature has to be found anew."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    t = X[:, 0] + rng.normal(size=200)
    y = t if isinstance(model, LinearRegressor) else (t > 0).astype(int)
    model.fit(X, y)
    verify(model, X, y, exact=exact)
    # A thousandth of the error of least squares, which is all rounding, is proven in doubled precision.
    for share in (1e-8,) if math.isinf(model.C) else (1e-3, 1e-8):
        error = share * model.certificate_.coef_error
        with pytest.raises(CertificateError, match="error of w"):
            verify(_claiming(model, kind="local", coef_error=error), X, y, exact=exact)


def test_a_bound_by_curvature_is_not_believed_where_finding_it_takes_long(tuned):
    """A table so large that the second bound is left out where the first one suffices."""
    tuned(second_bound_work=0.0, exactly_verified=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = (X[:, 0] + rng.normal(size=200) > 0).astype(int)
    model = LogisticRegression(tol=0.1, max_passes=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    claim = model.certificate_
    assert claim.certified and claim.gap > 1e-5 * claim.primal
    gap = 1e-9 * claim.primal
    sharper = {"gap": gap, "dual": claim.primal - gap, "relative_gap": 1e-9, "rounding": gap / 2}
    for kind in ("local", "dual"):
        error = {"coef_error": np.sqrt(2.0 * gap) if kind == "dual" else claim.coef_error}
        with pytest.raises(CertificateError, match="can be proven"):
            verify(_claiming(model, kind=kind, **sharper, **error), X, y)


# --- ordinary tables


def test_a_claim_that_is_reached_asks_for_no_other_proof(monkeypatch):
    """The proof by curvature factorises a matrix of the order of the features: minutes for texts."""
    rng = np.random.default_rng(0)
    X = scipy.sparse.random_array((2000, 1500), density=0.005, format="csr", rng=rng)
    y = X @ rng.standard_normal(1500) + rng.standard_t(2, 2000)
    model = LinearRegressor(losses.Huber(0.2), C=4e3).fit(X, y)
    assert model.certificate_.certified and model.certificate_.relative_gap > 1e-9

    def asked(*_, **__):
        raise AssertionError("duality suffices")

    monkeypatch.setattr(verification, "local_certificate", asked)
    assert verify(model, X, y).certified


def test_few_rows_of_many_features_are_verified_without_a_matrix_of_their_order(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 1200)), rng.choice([-1, 1], 50)
    model = LinearClassifier("squared_hinge").fit(X, y)
    monkeypatch.setattr(verification, "local_certificate", None)
    assert verify(model, X, y).certified


def test_a_constant_column_under_an_l1_penalty():
    """The dual point is stored row by row where a margin recomputed in other bits would prove less."""
    case = everyday.draw(145)
    model = case.model.fit(case.X, case.y)
    assert model.certificate_.certified
    assert verify(model, case.X, case.y).certified


@pytest.mark.parametrize("factor", [2.0**-30, 1.0, 2628.2])
def test_an_objective_of_zero_with_a_factor(factor):
    """All losses are 0, up to underflow: the bound on its errors is scaled, too, and stays the whole gap."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 20)), np.arange(20) % 2
    model = LinearClassifier(losses.Scaled(losses.SquaredHinge(), factor), C=math.inf).fit(X, y)
    assert model.certificate_.primal == 0.0
    assert verify(model, X, y).certified and verify(model, X, y, exact=True).certified
