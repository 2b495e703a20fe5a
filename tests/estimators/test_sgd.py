"""Stochastic sub-gradient descent: what it minimises, what it keeps, and what it says about it."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import CONVEX, in_python, naming
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

from linsep import LinearClassifier, SGDClassifier, check_schedule, losses, verify
from linsep.errors import BadInput, CertificateError, Refused
from linsep.losses import Loss
from linsep.online import StepSizes

CANCER = load_breast_cancer(return_X_y=True)
SCALED = StandardScaler().fit_transform(CANCER[0]), CANCER[1]
IRIS = load_iris(return_X_y=True)
LOSSES = [loss for loss in CONVEX if loss.classification]


def objective(loss, C, X, y, model, weight=None):
    s = np.ones(len(X)) if weight is None else weight
    w, b = model.coef_[0], model.intercept_[0]
    total = s @ loss.value((2 * y - 1) * (X @ w + b))
    return total if math.isinf(C) else w @ w / 2 + C * total


@pytest.mark.parametrize("loss", LOSSES, ids=naming)
def test_the_certificate_is_that_of_the_stated_objective(loss):
    X, y = SCALED
    model = SGDClassifier(loss, C=0.01).fit(X, y)
    P = objective(loss, 0.01, X, y, model)
    certificate = model.certificate_
    assert certificate.primal == pytest.approx(P, rel=1e-12)
    assert model.history_.best[-1] == pytest.approx(P, rel=1e-9)
    assert certificate.dual <= P
    if loss.smooth:
        optimum = LinearClassifier(loss, C=0.01).fit(X, y).certificate_
        assert certificate.dual <= optimum.primal * (1 + 1e-12)
        assert P <= optimum.primal * 1.02
        assert certificate.gap >= P - optimum.primal


def test_more_epochs_come_to_be_certified():
    X, y = SCALED
    model = SGDClassifier("logistic", C=0.01, epochs=3000, schedule="inverse").fit(X, y)
    assert model.certificate_.certified
    assert model.n_steps_ < 3000 * len(X)  # and end there
    assert verify(model, X, y).certified
    hasty = SGDClassifier("logistic", C=0.01, epochs=1).fit(X, y)
    assert not hasty.certificate_.certified
    with pytest.raises(CertificateError, match="not proven optimal"):
        verify(hasty, X, y)


@pytest.mark.parametrize("keep", ["best", "last", "average"])
def test_the_point_kept_is_the_one_asked_for(keep):
    X, y = SCALED
    model = SGDClassifier("hinge", keep=keep, epochs=7, random_state=3).fit(X, y)
    history = model.history_
    assert (np.diff(history.best) <= 0).all()
    assert (history.best <= history.last).all()
    assert history.best == pytest.approx(np.minimum.accumulate(history.last))
    assert (np.diff(history.steps) > 0).all()
    assert history.steps[-1] == model.n_steps_ == 7 * len(X)
    curve = {"best": history.best, "last": history.last, "average": history.averaged}[keep]
    assert objective(losses.get("hinge"), 1.0, X, y, model) == pytest.approx(curve[-1], rel=1e-9)
    assert (history.averaged is None) == (keep != "average")


def test_averaging_beats_the_last_point_of_a_constant_schedule():
    X, y = SCALED
    options = {"loss": "logistic", "schedule": "constant", "eta0": 0.05}
    last, mean = (SGDClassifier(keep=keep, **options).fit(X, y) for keep in ("last", "average"))
    assert mean.certificate_.primal < last.certificate_.primal


@dataclass(frozen=True)
class Text:
    """Draw, step, shrink by eta/(n C): the method as in the notes, in a few lines of numpy."""

    loss: Loss
    C: float
    eta: StepSizes

    def run(self, X, y, rows):
        w, b, n = np.zeros(X.shape[1]), 0.0, len(X)
        eta = self.eta.table(0, len(rows))[:, 0]
        for i, step in zip(rows, eta, strict=True):
            sign = 2.0 * y[i] - 1.0
            m = sign * (X[i] @ w + b)
            push = step * sign * float(self.loss.slope(np.array([m - 1e-12]))[0])
            w = (1 - step / (n * self.C)) * w - push * X[i]
            b -= push
        return w, b


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_partial_fit_is_the_method_of_the_notes(loss):
    X, y = SCALED
    model = SGDClassifier(loss, schedule="inverse", eta0=0.1, decay=0.5, C=2.0)
    model.partial_fit(X, y, classes=[0, 1])
    eta = StepSizes("inverse", np.array([0.1]), np.array([0.5]))
    w, b = Text(losses.get(loss), 2.0, eta).run(X, y, np.arange(len(X)))
    assert model.coef_[0] == pytest.approx(w, rel=1e-8, abs=1e-10)
    assert model.intercept_[0] == pytest.approx(b, rel=1e-8, abs=1e-10)


def test_the_whole_as_batch_is_sub_gradient_descent():
    X, y = SCALED
    model = SGDClassifier(
        "hinge", batch_size="all", schedule=lambda k: 0.5 / (k + 1), epochs=30, keep="last"
    ).fit(X, y)
    A, sign, u = np.column_stack([X, np.ones(len(X))]), 2 * y - 1, np.zeros(31)
    ridge = np.append(np.full(30, 1 / len(X)), 0.0)
    for k in range(30):
        wrong = sign * (A @ u) <= 1
        u = u - 0.5 / (k + 1) * (ridge * u - (sign * wrong) @ A / len(X))
    assert np.append(model.coef_, model.intercept_) == pytest.approx(u, rel=1e-9, abs=1e-12)
    assert model.n_steps_ == 30


def test_the_tie_updates():
    """At margin exactly 1 the hinge still pushes, as does the perceptron loss at 0."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    for loss, first in (("hinge", 2.0), ("perceptron", 1.0)):
        model = SGDClassifier(loss, eta0=1.0, schedule="constant", C=math.inf, fit_intercept=False)
        model.partial_fit(X[:1], y[:1], classes=[0, 1])
        assert model.coef_[0, 0] == 1.0
        model.partial_fit(X[:1], y[:1])
        assert model.coef_[0, 0] == first


@pytest.mark.parametrize("loss", LOSSES, ids=naming)
def test_the_stochastic_gradient_is_unbiased(loss):
    """The mean of the steps at single rows is the step at all rows: exactly what the theory asks for."""
    X, y = SCALED[0][:50], SCALED[1][:50]
    start = SGDClassifier(loss, eta0=0.01, schedule="constant").partial_fit(X, y, classes=[0, 1])

    def step(rows, batch):
        """How far one more step goes, with a penalty of strength 1/50 whatever the rows."""
        model = copy.deepcopy(start).set_params(batch_size=batch, C=50.0 / len(rows))
        model._stream.seen = 0.0
        model.partial_fit(X[rows], y[rows])
        return np.append(model.coef_ - start.coef_, model.intercept_ - start.intercept_)

    singles = np.mean([step([i], 1) for i in range(50)], axis=0)
    assert singles == pytest.approx(step(np.arange(50), "all"), abs=1e-13)
    A = np.column_stack([X, np.ones(50)])
    sign, theta = 2.0 * y - 1.0, np.append(start.coef_, start.intercept_)
    gradient = (sign * loss.slope(sign * (A @ theta))) @ A / 50
    gradient[:-1] += theta[:-1] / 50
    assert singles == pytest.approx(-0.01 * gradient, abs=1e-13)


class TestWhatDoesNotMatter:
    @given(st.integers(0, 10**6))
    @settings(max_examples=15, deadline=None)
    def test_weight_two_is_the_row_twice_wherever_it_stands(self, seed):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 4)), rng.integers(0, 2, size=30)
        y[:2] = 0, 1
        weight = rng.integers(0, 4, size=30)
        weight[:2] = 1, 2
        order = rng.permutation(weight.sum())
        model = SGDClassifier("logistic", epochs=4, random_state=seed)
        one = model.fit(X, y, sample_weight=weight)
        coef, certificate = one.coef_, one.certificate_
        two = model.fit(X.repeat(weight, axis=0)[order], y.repeat(weight)[order])
        assert two.coef_ == pytest.approx(coef, rel=1e-9, abs=1e-12)
        assert two.certificate_.primal == pytest.approx(certificate.primal, rel=1e-9)

    @pytest.mark.parametrize("y", [CANCER[1], np.arange(569) % 3], ids=["two", "three"])
    def test_storage(self, y):
        X = np.round(SCALED[0], 1)
        X[np.abs(X) < 0.5] = 0.0
        model = SGDClassifier("hinge", epochs=3)
        dense = model.fit(X, y).coef_
        for kind in (np.asfortranarray, sp.csr_matrix, sp.csc_array):
            assert model.fit(kind(X), y).coef_ == pytest.approx(dense, rel=1e-9, abs=1e-12)

    def test_the_number_of_threads_and_the_repetition(self):
        X, y = SCALED
        models = [SGDClassifier(n_threads=t, random_state=1).fit(X, y) for t in (1, 2, 5)]
        for model in models[1:]:
            assert (model.coef_ == models[0].coef_).all()
            assert model.certificate_ == models[0].certificate_
        assert (SGDClassifier(random_state=2).fit(X, y).coef_ != models[0].coef_).any()

    def test_a_loss_written_in_python(self):
        X, y = SCALED
        for batch in (8, "all"):
            options = {"epochs": 3, "batch_size": batch, "keep": "average"}
            for y_now in (y, np.arange(569) % 3):
                fast, slow = (
                    SGDClassifier(loss, **options).fit(X, y_now)
                    for loss in (losses.get("logistic"), in_python(losses.get("logistic")))
                )
                assert slow.coef_ == pytest.approx(fast.coef_, rel=1e-7, abs=1e-10)
                assert slow.history_.best == pytest.approx(fast.history_.best, rel=1e-9)


def test_classes_are_problems_of_their_own():
    """One pass for all classes gives each what it would have had alone, with the same draws."""
    X, y = IRIS
    model = SGDClassifier("logistic", epochs=5, eta0=0.01, keep="last").fit(X, y)
    assert model.coef_.shape == (3, 4)
    assert model.history_.last.shape == (len(model.history_.steps), 3)
    assert len(model.certificate_.parts) == 3
    for c in range(3):
        theta = np.append(model.coef_[c], model.intercept_[c])
        P = (
            0.5 * theta[:-1] @ theta[:-1]
            + losses.get("logistic")
            .value(np.where(y == c, 1.0, -1.0) * (X @ theta[:-1] + theta[-1]))
            .sum()
        )
        assert model.certificate_.parts[c].primal == pytest.approx(P, rel=1e-12)
        assert model.history_.last[-1, c] == pytest.approx(P, rel=1e-9)
    P = model.predict_proba(X)
    assert P.sum(axis=1) == pytest.approx(1)
    assert (P.argmax(axis=1) == model.predict(X)).all()
    assert np.exp(model.predict_log_proba(X)) == pytest.approx(P)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared_hinge", "huberised_hinge"])
def test_defaults_do_at_the_first_try(loss):
    for (X, y), least in ((CANCER, 0.9), (SCALED, 0.97), (load_digits(return_X_y=True), 0.95)):
        assert SGDClassifier(loss).fit(X, y).score(X, y) > least


def test_every_epoch_goes_through_all_rows_without_replacement():
    X, y = SCALED
    options = {"schedule": "constant", "eta0": 0.1, "C": math.inf, "fit_intercept": False}
    model = SGDClassifier("squared", epochs=1, replacement=False, keep="last", **options)
    eye = np.eye(40)
    model.fit(eye, np.arange(40) % 2)
    assert np.abs(model.coef_[0]) == pytest.approx(0.2)  # one step of 2 eta for each
    again = model.set_params(replacement=True).fit(eye, np.arange(40) % 2)
    assert len(np.unique(np.abs(again.coef_[0]).round(6))) > 1
    assert SGDClassifier(replacement=False).fit(X, y).score(X, y) > 0.97


def test_class_weights():
    X, y = SCALED
    plain = SGDClassifier("logistic", epochs=5).fit(X, y)
    tilted = SGDClassifier("logistic", epochs=5, class_weight={0: 20}).fit(X, y)
    assert (tilted.predict(X) == 0).sum() > (plain.predict(X) == 0).sum()
    weight = np.where(y == 0, 20.0, 1.0)
    assert tilted.certificate_.primal == pytest.approx(
        objective(losses.get("logistic"), 1.0, X, y, tilted, weight), rel=1e-12
    )
    assert SGDClassifier(class_weight="balanced").fit(X, y).score(X, y) > 0.95


class TestStandardise:
    """Steps in other variables, the same problem."""

    def test_raw_columns_come_close_to_the_optimum_of_raw_columns(self):
        X, y = CANCER
        optimum = LinearClassifier("logistic", C=0.01).fit(X, y).certificate_.primal
        plain, scaled = (
            SGDClassifier("logistic", C=0.01, standardise=flag).fit(X, y) for flag in (False, True)
        )
        P = objective(losses.get("logistic"), 0.01, X, y, scaled)
        assert scaled.certificate_.primal == pytest.approx(P, rel=1e-9)
        assert scaled.certificate_.dual <= optimum <= P
        assert P < 1.1 * optimum
        assert plain.certificate_.primal > 1.5 * optimum

    @pytest.mark.parametrize("weight", [None, CANCER[1] + 1.0], ids=["plain", "weighted"])
    def test_rows_in_many_blocks(self, weight, tuned):
        model = SGDClassifier("logistic", C=0.01, standardise=True, epochs=2)
        whole = model.fit(*CANCER, sample_weight=weight).coef_
        tuned(block_bytes=1 << 14)
        parts = model.fit(*CANCER, sample_weight=weight).coef_
        np.testing.assert_allclose(parts, whole, rtol=1e-6, atol=1e-9 * np.abs(whole).max())

    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
    @pytest.mark.parametrize("options", [{}, {"batch_size": 7}, {"batch_size": "all"}])
    def test_without_penalty_units_do_not_matter(self, storage, options):
        X, y = CANCER
        units = 2.0 ** np.arange(-15, 15)
        common = {"C": math.inf, "standardise": True, "epochs": 3, "keep": "last", "eta0": 0.1}
        one, other = (
            SGDClassifier("logistic", **common, **options, replacement=False) for _ in range(2)
        )
        # portions are taken in their order, so that the draws cannot differ
        one.partial_fit(storage(X), y, classes=[0, 1])
        other.partial_fit(storage(X * units), y, classes=[0, 1])
        assert other.coef_ * units == pytest.approx(one.coef_, rel=1e-9)
        assert other.intercept_ == pytest.approx(one.intercept_, rel=1e-9)

    def test_steps_are_those_of_the_scaled_rows(self):
        X, y = CANCER[0][:, :5], CANCER[1]
        model = SGDClassifier(
            "hinge", C=math.inf, schedule="inverse", eta0=0.1, decay=0.5, standardise=True
        ).partial_fit(X, y, classes=[0, 1])
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        eta = StepSizes("inverse", np.array([0.1]), np.array([0.5]))
        v, c = Text(losses.get("hinge"), math.inf, eta).run(Z, y, np.arange(len(X)))
        assert model.coef_[0] == pytest.approx(v / X.std(axis=0), rel=1e-8)
        assert model.decision_function(X) == pytest.approx(Z @ v + c, rel=1e-7, abs=1e-7)

    @pytest.mark.parametrize("copied", [1 << 20, 0])
    def test_a_full_batch_is_a_scaled_gradient_step(self, tuned, copied):
        tuned(scaling_copied=copied)  # 0: rows are read where they lie
        X, y = CANCER[0][:, :5], CANCER[1]
        model = SGDClassifier(
            "squared",
            C=math.inf,
            batch_size="all",
            eta0=0.1,
            epochs=1,
            keep="last",
            standardise=True,
        ).fit(X, y)
        sign, Z = 2.0 * y - 1.0, (X - X.mean(axis=0)) / X.std(axis=0)
        v, c = 0.2 * (sign @ Z) / len(X), 0.2 * sign.mean()
        assert model.decision_function(X) == pytest.approx(Z @ v + c, rel=1e-8, abs=1e-9)

    def test_constant_columns_and_averages(self):
        X = np.column_stack([SCALED[0], np.full(len(SCALED[0]), 1e6)])
        model = SGDClassifier("hinge", C=0.1, standardise=True, keep="average").fit(X, SCALED[1])
        assert model.score(X, SCALED[1]) > 0.97
        assert abs(model.coef_[0, -1]) * 1e6 < 1.0

    def test_a_loss_written_in_python(self):
        X, y = CANCER
        fits = [
            SGDClassifier(loss, C=0.1, eta0=0.05, standardise=True, epochs=2).fit(X, y)
            for loss in (losses.get("logistic"), in_python(losses.get("logistic")))
        ]
        assert fits[1].coef_ == pytest.approx(fits[0].coef_, rel=1e-6)

    def test_portions_keep_the_scaling_of_the_first(self):
        X, y = CANCER
        model = SGDClassifier("logistic", eta0=0.05, standardise=True)
        for part in np.array_split(np.random.default_rng(0).permutation(len(X)), 5):
            model.partial_fit(X[part], y[part], classes=[0, 1])
        assert model.score(X, y) > 0.95
        with pytest.raises(BadInput, match="standardise"):
            SGDClassifier(standardise="yes").fit(X, y)


class TestPartialFit:
    def test_portions_add_up(self):
        X, y = SCALED
        options = {"schedule": "inverse_sqrt", "eta0": 0.05, "decay": 0.1, "C": math.inf}
        for keep in ("last", "average"):
            whole = SGDClassifier("logistic", keep=keep, **options).partial_fit(
                X, y, classes=[0, 1]
            )
            parts = SGDClassifier("logistic", keep=keep, **options)
            for start in range(0, len(X), 100):
                part = slice(start, start + 100)
                parts.partial_fit(X[part], y[part], classes=[0, 1])
            assert parts.coef_ == pytest.approx(whole.coef_, rel=1e-9, abs=1e-12)
            assert parts.n_steps_ == whole.n_steps_ == len(X)

    def test_batches_and_the_rest(self):
        X, y = SCALED
        model = SGDClassifier(batch_size=100, eta0=0.1).partial_fit(X, y, classes=[0, 1])
        assert model.n_steps_ == 6
        assert SGDClassifier(batch_size="all").partial_fit(X, y, classes=[0, 1]).n_steps_ == 1

    def test_goes_on_from_fit_and_forgets_what_no_longer_holds(self):
        X, y = SCALED
        for keep in ("best", "last", "average"):
            model = SGDClassifier("logistic", keep=keep, epochs=2).fit(X, y)
            steps, score = model.n_steps_, model.score(X, y)
            model.partial_fit(X, y)
            assert model.n_steps_ == steps + len(X)
            assert model.score(X, y) > score - 0.02
            assert not hasattr(model, "certificate_")
            assert model.predict_proba(X).shape == (569, 2)

    def test_weights_multiply_steps(self):
        X, y = SCALED
        options = {"eta0": 0.1, "schedule": "constant", "C": math.inf}
        heavy = SGDClassifier("logistic", class_weight={1: 3.0}, **options)
        given_ = SGDClassifier("logistic", **options)
        heavy.partial_fit(X, y, classes=[0, 1])
        given_.partial_fit(X, y, classes=[0, 1], sample_weight=np.where(y == 1, 3.0, 1.0))
        assert heavy.coef_ == pytest.approx(given_.coef_)

    def test_refusals(self):
        X, y = SCALED
        with pytest.raises(BadInput, match="classes must be passed on the first call"):
            SGDClassifier().partial_fit(X, y)
        with pytest.raises(BadInput, match="needs all labels at once"):
            SGDClassifier(class_weight="balanced").partial_fit(X, y, classes=[0, 1])
        model = SGDClassifier("squared", eta0=1e200).fit  # a step beyond all bounds
        with pytest.raises(BadInput, match="too large"):
            model(X, y)
        stream = SGDClassifier("squared", eta0=10.0, schedule="constant")
        stream.partial_fit(X[:1], y[:1], classes=[0, 1])
        before = stream.coef_.copy()
        with pytest.raises(BadInput, match="as it was before"):
            stream.partial_fit(X, y)
        assert (stream.coef_ == before).all()


class TestSchedules:
    @pytest.mark.parametrize(
        ("schedule", "diverge", "converge"),
        [
            ("constant", True, False),
            ("inverse", True, True),
            ("inverse_sqrt", True, False),
            (lambda k: 1 / (k + 1), True, True),
            (lambda k: (k + 1) ** -0.6, True, True),
            (lambda k: (k + 1) ** -0.5, True, False),
            (lambda k: (k + 1.0) ** -1.2, False, True),
            (lambda k: 0.1, True, False),
            (lambda k: 1 / math.sqrt(k + 1), True, False),
            (lambda k: 0.5**k if k < 100 else 0.0, False, True),
        ],
    )
    def test_robbins_and_monro(self, schedule, diverge, converge):
        found = check_schedule(schedule)
        assert (found.steps_diverge, found.squares_converge) == (diverge, converge)
        assert found.satisfied == (diverge and converge)
        assert found.proven == isinstance(schedule, str)
        assert ("suggested" in str(found)) != found.proven

    @pytest.mark.parametrize("name", ["optimal", "invscaling", "adaptive"])
    def test_learning_rates_of_scikit_learn_are_translated(self, name):
        with pytest.raises(BadInput, match=f"got '{name}', a learning rate of scikit-learn: use "):
            SGDClassifier(schedule=name).fit(*SCALED)

    def test_functions_of_one_number_and_of_arrays_agree(self):
        X, y = SCALED
        coefs = [
            SGDClassifier(schedule=schedule, epochs=2).fit(X, y).coef_
            for schedule in (lambda k: 0.1 / (1 + 0.01 * k), lambda k: 0.1 / (1 + 0.01 * float(k)))
        ]
        named = SGDClassifier(schedule="inverse", eta0=0.1, decay=0.01, epochs=2).fit(X, y)
        assert (coefs[0] == coefs[1]).all()
        assert coefs[0] == pytest.approx(named.coef_, rel=1e-9, abs=1e-12)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                {"schedule": "cosine"},
                "schedule must be one of 'constant', 'inverse', 'inverse_sqrt'",
            ),
            ({"schedule": 3}, "schedule must be a name or a function"),
            ({"schedule": lambda k: -1.0}, "got -1.0 at step k = 0"),
            ({"schedule": lambda k: 1 / (k + 1), "eta0": 2.0}, "belong to the named schedules"),
            ({"eta0": 0}, "eta0 must be a positive finite number or 'auto'"),
            ({"eta0": "big"}, "eta0 must be a positive finite number or 'auto', got 'big'"),
            ({"decay": -1}, "decay must be"),
            ({"batch_size": 0}, "batch_size must be a whole number of rows, or 'all'"),
            ({"batch_size": "none"}, "batch_size must be"),
            ({"keep": "worst"}, "keep must be one of 'best', 'last', 'average'"),
            ({"epochs": 0}, "epochs must be a whole number"),
            ({"C": 0}, "C must lie in"),
            ({"tol": 0}, "tol must be a number between 0 and 1"),
            ({"replacement": 1}, "replacement must be True or False"),
            ({"loss": "huber"}, "not a loss for class labels"),
            ({"loss": "nothing"}, "Unknown loss"),
        ],
    )
    def test_bad_parameters_are_named(self, options, message):
        with pytest.raises(BadInput, match=message):
            SGDClassifier(**options).fit(*SCALED)

    def test_a_loss_without_slopes_is_refused(self):
        with pytest.raises(Refused, match=r"not convex.*ZeroOneClassifier"):
            SGDClassifier("zero_one").fit(*SCALED)


def test_without_penalty():
    X, y = SCALED[0][:, [1, 4, 9]], SCALED[1]
    model = SGDClassifier("logistic", C=math.inf).fit(X, y)
    best = LinearClassifier("logistic", C=math.inf).fit(X, y).certificate_
    assert best.primal <= model.certificate_.primal <= best.primal * 1.01
    assert SGDClassifier("hinge", C=math.inf, epochs=2).fit(X, y).certificate_.primal > 0


def test_bad_rows_are_found():
    X, y = SCALED[0].copy(), SCALED[1]
    X[7, 3] = np.inf
    with pytest.raises(BadInput, match=r"row 7, column 3"):
        SGDClassifier().fit(X, y)
    X[7, 3] = 1e308
    X[7, 4] = 1e308
    X[7, 5] = -1e308
    with pytest.raises(BadInput, match="too large"):
        SGDClassifier().fit(X, y)


def test_probabilities_only_where_the_loss_has_them():
    assert not hasattr(SGDClassifier("hinge"), "predict_proba")
    assert hasattr(SGDClassifier("logistic"), "predict_proba")
    assert not hasattr(SGDClassifier("nothing"), "predict_proba")


class TestEarlyStopping:
    @pytest.mark.parametrize("keep", ["best", "last", "average"])
    @pytest.mark.parametrize(("X", "y"), [SCALED, IRIS], ids=["two", "three"])
    def test_it_ends_when_held_out_rows_gain_nothing(self, keep, X, y):
        model = SGDClassifier(early_stopping=True, keep=keep, epochs=60, n_iter_no_change=3)
        held = model.fit(X, y).validation_rows_
        assert len(held) == round(0.1 * len(y)) and model.n_iter_ < 60
        assert len(model.validation_scores_) == model.n_iter_
        shown = model.validation_scores_.max() if keep == "best" else model.validation_scores_[-1]
        assert model.score(X[held], y[held]) == pytest.approx(shown)

    def test_the_certificate_is_that_of_the_other_rows(self):
        X, y = SCALED
        model = SGDClassifier(early_stopping=True, C=0.01, epochs=5).fit(X, y)
        rest = np.ones(len(y))
        rest[model.validation_rows_] = 0.0
        P = objective(losses.get("hinge"), 0.01, X, y, model, rest)
        assert model.certificate_.primal == pytest.approx(P, rel=1e-12)
        model.set_params(tol=0.99).fit(X, y)
        assert verify(model, X, y).certified
        with pytest.raises(BadInput, match="held out"):
            verify(model, X[:200], y[:200])

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"validation_fraction": 1.5}, "between 0 and 1"),
            ({"validation_fraction": 1e-4}, "cannot hold out"),
            ({"n_iter_no_change": 0}, "at least 1"),
            ({"early_stopping": 1}, "True or False"),
        ],
    )
    def test_refusals(self, options, message):
        with pytest.raises(BadInput, match=message):
            SGDClassifier(**{"early_stopping": True, **options}).fit(*IRIS)

    def test_a_later_fit_without_it_forgets(self):
        model = SGDClassifier(early_stopping=True, epochs=2).fit(*IRIS)
        model.set_params(early_stopping=False).fit(*IRIS)
        assert not hasattr(model, "validation_scores_") and not len(model.validation_rows_)


def test_american_spelling():
    model = SGDClassifier(standardize=True)
    assert model.standardise and model.get_params()["standardise"]
    assert not model.set_params(standardize=False).standardise
    with pytest.raises(TypeError, match="the same parameter"):
        SGDClassifier(standardize=True, standardise=True)
