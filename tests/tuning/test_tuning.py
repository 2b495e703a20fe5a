"""tune and path: the same numbers as separate fits, every model certified, clear choices and errors."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegressionCV as SklearnCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from versions import needs_sklearn

import linsep
from linsep import (
    ConvergenceWarning,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    path,
    tune,
    verify,
)
from linsep.data.entrance.labels import code_strings
from linsep.errors import BadInput
from linsep.solvers.grid import smooth
from linsep.tuning import ValidationCurve, splits

CS = [1e-3, 0.1, 10.0]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:, :10], np.where(y == 1, "benign", "malignant")


def separately(model, X, y, pairs, score, weight=None):
    """The reference: one cold fit for each C and fold."""
    out = np.empty((len(CS), len(pairs)))
    for f, (train, held) in enumerate(pairs):
        for c, C in enumerate(CS):
            own = None if weight is None else weight[train]
            model.set_params(C=C).fit(X[train], y[train], sample_weight=own)
            assert model.certificate_.certified
            out[c, f] = score(model, X[held], y[held])
    return out


def error(model, X, y):
    return np.mean(model.predict(X) != y)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge", "squared"])
def test_curve_equals_that_of_separate_fits(cancer, loss):
    X, y = cancer
    tuning = tune(LinearClassifier(loss), X, y, CS)
    pairs = list(StratifiedKFold(5).split(X, y))
    expected = separately(LinearClassifier(loss), X, y, pairs, error)
    assert np.array_equal(tuning.curve.scores, expected)
    assert tuning.certified
    assert tuning.best_C == CS[int(np.argmin(expected.mean(axis=1)))]
    assert tuning.certificates.shape == (3, 5)
    assert verify(tuning.best_estimator_, X, y).certified
    assert tuning.best_estimator_.C == tuning.best_C


@pytest.mark.parametrize("seed", [None, 3])
@pytest.mark.parametrize("kind", ["names", "numbers", "signs", "flags"])
def test_a_number_of_folds_means_those_of_scikit_learn(kind, seed):
    rng = np.random.default_rng(5)
    labels = {
        "names": np.array(["b", "a", "c"]),
        "numbers": np.arange(7),
        "signs": np.array([1.0, -1.0]),
        "flags": np.array([True, False]),
    }[kind]
    for n, cv in ((97, 2), (200, 5), (301, 7)):
        y = np.concatenate([np.repeat(labels, cv), rng.choice(labels, size=n)])
        asked = {"cv": cv, "validation": None, "groups": None, "classifier": True, "seed": seed}
        made = splits.make(y, test=None, **asked)
        assert made.fold is not None
        folds = StratifiedKFold(cv, shuffle=seed is not None, random_state=seed).split(y, y)
        for (train, held), mine, size in zip(folds, made.pairs, made.sizes, strict=True):
            assert np.array_equal(train, mine[0]) and np.array_equal(held, mine[1])
            assert len(held) == size
        aside = splits.make(y, test=0.2, **asked)
        for (train, held), inner in zip(aside.pairs, aside.renumber().pairs, strict=True):
            assert np.array_equal(np.sort(np.concatenate([train, held])), aside.rest)
            assert np.array_equal(aside.rest[inner[0]], train)


def test_the_shared_engine_is_used_and_agrees_with_the_other(cancer, monkeypatch):
    X, y = cancer
    part = np.arange(len(y)) % 5
    assert smooth.applies(LogisticRegression()._grid_problem(X, y, None).with_grid(CS, part))
    together = tune(LogisticRegression(), X, y, CS, scoring="log_loss")
    monkeypatch.setattr(smooth, "applies", lambda *given: False)
    apart = tune(LogisticRegression(), X, y, CS, scoring="log_loss")
    assert np.allclose(together.curve.scores, apart.curve.scores, rtol=1e-4)
    for a, b in zip(together.certificates.flat, apart.certificates.flat, strict=True):
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-12)


def test_log_loss_and_auc_are_those_of_scikit_learn(cancer):
    X, y = cancer
    pairs = list(StratifiedKFold(5).split(X, y))
    model = LogisticRegression()
    logs = separately(
        model, X, y, pairs, lambda m, X, y: log_loss(y, m.predict_proba(X), labels=m.classes_)
    )
    areas = separately(model, X, y, pairs, lambda m, X, y: roc_auc_score(y, m.decision_function(X)))
    assert np.allclose(tune(model, X, y, CS, scoring="log_loss").curve.scores, logs, rtol=1e-4)
    by_area = tune(model, X, y, CS, scoring="auc")
    assert np.allclose(by_area.curve.scores, areas, rtol=1e-4)
    assert by_area.curve.greater_is_better
    assert by_area.best_C == CS[int(np.argmax(areas.mean(axis=1)))]


def test_any_scorer_of_scikit_learn_serves(cancer):
    X, y = cancer
    named = tune(LogisticRegression(), X, y, CS, scoring="balanced_accuracy")
    own = tune(LogisticRegression(), X, y, CS, scoring=lambda m, X, y: -error(m, X, y))
    plain = tune(LogisticRegression(), X, y, CS)
    assert named.curve.greater_is_better and 0.5 < named.curve.mean.max() <= 1.0
    assert np.allclose(own.curve.scores, -plain.curve.scores)
    assert own.best_C == plain.best_C


@pytest.mark.parametrize(
    "cv",
    [
        3,
        KFold(4, shuffle=True, random_state=1),
        ShuffleSplit(3, random_state=0),
        TimeSeriesSplit(3),
        [(np.arange(0, 300), np.arange(300, 569)), (np.arange(200, 569), np.arange(0, 150))],
    ],
    ids=["int", "kfold", "shuffle", "time", "pairs"],
)
def test_splitters(cancer, cv):
    X, y = cancer
    tuning = tune(LogisticRegression(), X, y, CS, cv=cv)
    pairs = (
        cv
        if isinstance(cv, list)
        else list((StratifiedKFold(cv) if isinstance(cv, int) else cv).split(X, y))
    )
    assert np.array_equal(tuning.curve.scores, separately(LogisticRegression(), X, y, pairs, error))


@pytest.mark.parametrize("classes", [1, 2, 5, 40])
@pytest.mark.parametrize("share", [0.1, 0.25, 0.37, 0.5])
def test_held_out_rows_are_those_of_scikit_learn(classes, share):
    """The same rows as ``train_test_split(stratify=y)``, for strings, their codes and numbers, without its memory."""
    rng = np.random.default_rng(classes)
    for seed, n in ((0, 400), (1, 501), (7, 997)):
        numbers = np.append(np.repeat(np.arange(classes), 2), rng.integers(0, classes, n))
        strings = np.array([f"class {c}" for c in range(classes)], object)[numbers]
        for y in (numbers, strings, code_strings(strings)):
            how = {"cv": 2, "test": None, "groups": None, "classifier": True}
            found = splits.make(y, validation=share, seed=seed, **how).pairs[0]
            given = train_test_split(
                np.arange(len(y)), test_size=share, stratify=np.asarray(y), random_state=seed
            )
            assert [part.tolist() for part in found] == [np.sort(part).tolist() for part in given]


def test_a_part_needs_a_row_of_every_class():
    y = np.repeat(np.arange(6), 2)
    with pytest.raises(BadInput, match="each side needs a row of every class"):
        tune(LogisticRegression(), np.eye(12), y, CS, validation=0.25)


def test_groups_stay_together(cancer):
    X, y = cancer
    groups = np.arange(len(y)) // 7
    tuning = tune(LogisticRegression(), X, y, CS, cv=GroupKFold(4), groups=groups)
    pairs = list(GroupKFold(4).split(X, y, groups))
    assert np.array_equal(tuning.curve.scores, separately(LogisticRegression(), X, y, pairs, error))


@pytest.mark.parametrize("scoring", ["error", "log_loss"])
def test_folds_without_weight_are_refused(cancer, scoring):
    X, y = cancer
    weight = np.ones(len(y))
    weight[:200] = 0.0
    folds = [(np.arange(200, 569), np.arange(200)), (np.arange(300), np.arange(300, 569))]
    with pytest.raises(BadInput, match="200 held-out rows of fold 0 have sample_weight 0"):
        tune(LogisticRegression(), X, y, [1.0], cv=folds, sample_weight=weight, scoring=scoring)


def test_sample_and_class_weights(cancer):
    X, y = cancer
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, len(y))
    for class_weight in (None, {"benign": 3.0, "malignant": 1.0}, "balanced"):
        model = LogisticRegression(class_weight=class_weight)
        tuning = tune(model, X, y, CS, sample_weight=weight)
        expected = np.empty((3, 5))
        for f, (train, held) in enumerate(StratifiedKFold(5).split(X, y)):
            for c, C in enumerate(CS):
                model.set_params(C=C).fit(X[train], y[train], sample_weight=weight[train])
                wrong = model.predict(X[held]) != y[held]
                expected[c, f] = np.average(wrong, weights=weight[held])
        assert np.allclose(tuning.curve.scores, expected)


def test_several_classes_sparse_rows_and_frames():
    pd = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    pairs = list(StratifiedKFold(5).split(X, y))
    several = tune(LogisticRegression(), X, y, CS)
    assert np.array_equal(
        several.curve.scores, separately(LogisticRegression(), X, y, pairs, error)
    )
    sparse = tune(LogisticRegression(), sp.csr_matrix(X), y == 1, CS)
    plain = tune(LogisticRegression(), X, y == 1, CS)
    assert np.array_equal(sparse.curve.scores, plain.curve.scores)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "e"])
    named = tune(LogisticRegression(), frame, y == 1, CS)
    assert np.array_equal(named.curve.scores, plain.curve.scores)
    assert list(named.best_estimator_.feature_names_in_) == ["a", "b", "c", "e"]


def test_regression():
    X, t = load_diabetes(return_X_y=True)
    tuning = tune(LinearRegressor(), X, t, [0.1, 10.0, 1000.0])
    assert tuning.curve.scoring == "mean_squared_error"
    for f, (train, held) in enumerate(KFold(5).split(X)):
        for c, C in enumerate([0.1, 10.0, 1000.0]):
            model = LinearRegressor(C=C).fit(X[train], t[train])
            expected = np.mean((model.predict(X[held]) - t[held]) ** 2)
            assert np.isclose(tuning.curve.scores[c, f], expected, rtol=1e-4)


def test_train_validation_test(cancer):
    X, y = cancer
    tuning = tune(LogisticRegression(), X, y, CS, validation=0.25, test=0.2, random_state=3)
    assert tuning.curve.scores.shape == (3, 1)
    assert np.isnan(tuning.curve.standard_error).all()
    assert 0.0 <= tuning.test_score <= tuning.test_bound <= 1.0
    n = round(0.2 * len(y))
    wrong = round(tuning.test_score * n)
    # Clopper-Pearson: at the bound, so few errors or fewer have probability 0.05
    assert np.isclose(binom.cdf(wrong, n, tuning.test_bound), 0.05)
    assert f"{tuning.test_score:.6g}" in str(tuning)
    again = tune(LogisticRegression(), X, y, CS, validation=0.25, test=0.2, random_state=3)
    assert np.array_equal(again.curve.scores, tuning.curve.scores)


def test_one_standard_error_rule():
    curve = ValidationCurve(
        np.array([0.1, 1.0, 10.0]),
        np.array([[0.30, 0.32], [0.21, 0.23], [0.20, 0.22]]),
        "error",
        False,
    )
    assert curve.best == 2
    assert np.allclose(curve.standard_error, 0.01)
    assert curve.within_one_error == 1
    up = ValidationCurve(curve.Cs, 1.0 - curve.scores, "auc", True)
    assert up.best == 2 and up.within_one_error == 1
    assert "0.310000" in str(curve)


def test_a_random_state_shuffles_the_folds(cancer):
    X, y = cancer
    a = tune(LogisticRegression(), X, y, CS, random_state=1)
    b = tune(LogisticRegression(), X, y, CS, random_state=1)
    c = tune(LogisticRegression(), X, y, CS, random_state=2)
    assert np.array_equal(a.curve.scores, b.curve.scores)
    assert not np.array_equal(a.curve.scores, c.curve.scores)


def test_what_is_not_certified_is_said(cancer):
    X, y = cancer
    with pytest.warns(
        ConvergenceWarning, match=r"of 15 models of the grid are not certified"
    ) as seen:
        tuning = tune(LogisticRegression(max_passes=2.0), X, y, CS, refit=False)
    assert not tuning.certified
    assert not seen[0].message.certificate.certified
    assert tuning.best_estimator_ is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"Cs": [1.0, -2.0]}, "every C must be positive"),
        ({"Cs": []}, "list of numbers"),
        ({"Cs": ["a"]}, "must be a list of numbers"),
        ({"Cs": 1}, "at least 2 values"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": 300}, "rarest class has"),
        ({"cv": "five"}, "gives no splits"),
        ({"validation": 1.5}, "validation must be a fraction"),
        ({"test": 0.0}, "test must be a fraction"),
        ({"scoring": "beauty"}, "Unknown scoring"),
        ({"rule": "worst"}, "rule must be one of"),
        ({"random_state": "x"}, "random_state"),
    ],
)
def test_bad_requests(cancer, options, words):
    X, y = cancer
    with pytest.raises(BadInput, match=words):
        tune(LogisticRegression(), X, y, **{"Cs": CS, **options})


def test_estimators_without_a_strength_are_refused(cancer):
    X, y = cancer
    for ask in (tune, path):
        for model in (StandardScaler(), make_pipeline(StandardScaler(), Perceptron())):
            with pytest.raises(BadInput, match="parameter C"):
                ask(model, X, y)
    with pytest.raises(BadInput, match="needs probabilities"):
        tune(LinearClassifier("squared_hinge"), X, y, CS, scoring="log_loss")


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_path_is_certified_at_every_strength(cancer, loss):
    X, y = cancer
    found = path(LinearClassifier(loss), X, y, [100.0, 1e-3, 1.0])
    assert found.Cs.tolist() == [1e-3, 1.0, 100.0] and len(found) == 3
    for C, coef, b, proof in zip(
        found.Cs, found.coefs, found.intercepts, found.certificates, strict=True
    ):
        model = LinearClassifier(loss, C=C, tol=1e-10).fit(X, y)
        assert proof.certified
        assert proof.primal >= model.certificate_.dual
        assert proof.dual <= model.certificate_.primal
        distance = np.linalg.norm(coef - model.coef_)
        assert distance <= proof.coef_error + model.certificate_.coef_error
        assert b.shape == (1,)
    several = path(LogisticRegression(), *load_iris(return_X_y=True), [0.1, 1.0])
    assert several.coefs.shape == (2, 3, 4)
    assert "2 certified" in str(several)


def test_the_estimator_that_tunes_itself(cancer):
    X, y = cancer
    model = LogisticRegressionCV(CS).fit(X, y)
    tuning = tune(LogisticRegression(), X, y, CS)
    assert model.C_ == tuning.best_C
    assert np.array_equal(model.scores_, 1.0 - tuning.curve.scores.T)
    assert np.array_equal(model.coef_, tuning.best_estimator_.coef_)
    assert model.predict_proba(X).shape == (len(y), 2)
    assert verify(model, X, y).certified
    nested = cross_val_score(make_pipeline(StandardScaler(), LogisticRegressionCV(CS)), X, y, cv=3)
    assert nested.min() > 0.85


@needs_sklearn("1.8", "no use_legacy_attributes")
@pytest.mark.parametrize("several", [False, True], ids=["two-classes", "three-classes"])
def test_attributes_are_those_of_scikit_learn(cancer, several):
    X, y = load_iris(return_X_y=True) if several else cancer
    X = StandardScaler().fit_transform(X)
    theirs = SklearnCV(
        Cs=CS, cv=3, scoring="neg_log_loss", use_legacy_attributes=False, l1_ratios=(0.0,),
        tol=1e-8, max_iter=10_000,
    ).fit(X, y)  # fmt: skip
    ours = LogisticRegressionCV(CS, cv=3, scoring="neg_log_loss").fit(X, y)
    assert theirs.C_ == ours.C_ and np.array_equal(theirs.Cs_, ours.Cs_)
    np.testing.assert_allclose(ours.scores_, theirs.scores_[:, 0], rtol=1e-4)
    np.testing.assert_allclose(ours.coefs_paths_, theirs.coefs_paths_[:, 0], rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-2, atol=1e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), rel=1e-4)  # by scoring


def test_the_score_is_what_the_model_was_chosen_by(cancer):
    X, y = cancer
    weight = np.linspace(0.5, 2.0, len(y))
    model = LogisticRegressionCV(CS, cv=3, scoring="log_loss", fit_intercept=False).fit(X, y)
    assert model.coefs_paths_.shape == (3, len(CS), 1, X.shape[1])
    expected = -log_loss(y, model.predict_proba(X), sample_weight=weight)
    assert model.score(X, y, weight) == pytest.approx(expected)
    model.set_params(scoring="auc")
    assert model.score(X, y) == pytest.approx(roc_auc_score(y, model.decision_function(X)))
    model.set_params(scoring=None)
    assert model.score(X, y) == (model.predict(X) == y).mean()
    svm = LinearSVCCV([0.01, 0.1], cv=3, scoring="roc_auc").fit(X, y)
    assert svm.score(X, y) == pytest.approx(roc_auc_score(y, svm.decision_function(X)))


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_models_of_the_grid_can_be_kept(cancer, loss):
    X, y = cancer
    estimator = LinearClassifier(loss)
    tuning = tune(estimator, X, y, CS, cv=3, refit=False, keep=True)
    assert tuning.coefs.shape == (len(CS), 3, 1, X.shape[1])
    assert tuning.intercepts.shape == (len(CS), 3, 1)
    folds = StratifiedKFold(3).split(X, y)
    for f, (_, held) in enumerate(folds):
        z = X[held] @ tuning.coefs[:, f, 0].T + tuning.intercepts[:, f, 0]
        wrong = ((z >= 0) != (y[held] == "malignant")[:, None]).mean(axis=0)
        np.testing.assert_allclose(wrong, tuning.curve.scores[:, f])
    assert tune(estimator, X, y, CS, cv=3, refit=False).coefs is None


def test_the_support_vector_machine_that_tunes_itself(cancer):
    X, y = cancer
    X = StandardScaler().fit_transform(X)
    model = LinearSVCCV([0.01, 0.1, 1.0], cv=3).fit(X, y)
    plain = LinearSVC(model.C_).fit(X, y)
    assert model.tuning_.certified
    assert model.scores_.shape == (3, 3)
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-6, atol=1e-9)
    assert np.array_equal(model.support_, plain.support_)
    assert model.margin_ == pytest.approx(plain.margin_)
    assert model.kkt(X, y).complementarity <= 1e-6
    assert verify(model, X, y).certified
    rising = path(LinearSVC(), X, y, [0.01, 0.1])
    assert all(proof.certified for proof in rising.certificates)
    with pytest.raises(BadInput, match="log_loss"):
        LinearSVCCV([0.1], scoring="log_loss").fit(X, y)


def test_the_curve_can_be_drawn(cancer):
    pytest.importorskip("matplotlib").use("Agg")
    X, y = cancer
    tuning = tune(LogisticRegression(), X, y, CS)
    ax = tuning.curve.plot()
    line = ax.lines[0]
    assert np.array_equal(line.get_xdata(), CS)
    assert np.allclose(line.get_ydata(), tuning.curve.mean)
    assert ax.get_xscale() == "log" and ax.get_ylabel() == tuning.curve.scoring.replace("_", " ")
    scores = np.array([[0.31, 0.29], [0.21, 0.19], [0.18, 0.20], [0.4, 0.4]])
    curve = replace(tuning.curve, Cs=np.array([0.1, 1.0, 10.0, 100.0]), scores=scores)
    drawn = {line.get_label(): line.get_xdata()[0] for line in curve.plot().lines[1:]}
    assert drawn == {"best C = 10": 10.0, "within one standard error: C = 1": 1.0}


def test_without_matplotlib_the_curve_says_what_to_install(cancer, monkeypatch):
    X, y = cancer
    tuning = tune(LogisticRegression(), X, y, CS, cv=2)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        tuning.curve.plot()


@pytest.mark.parametrize("scoring", ["error", "log_loss", "auc"])
def test_scores_of_many_rows_are_computed_fold_by_fold(scoring, tuned):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    y = X[:, 0] + rng.normal(size=6000) > 0
    Cs = [0.01, 1.0, 100.0]
    kept = tune(LogisticRegression(), X, y, Cs, scoring=scoring, random_state=0)
    tuned(grid_search_held=0)
    again = tune(LogisticRegression(), X, y, Cs, scoring=scoring, random_state=0)
    np.testing.assert_allclose(again.curve.scores, kept.curve.scores, rtol=1e-12)


class TestRatios:
    ratios = (0.0, 0.5, 1.0)

    @needs_sklearn("1.8", "no use_legacy_attributes")
    @pytest.mark.parametrize("several", [False, True], ids=["two-classes", "three-classes"])
    def test_attributes_are_those_of_scikit_learn(self, cancer, several):
        X, y = load_iris(return_X_y=True) if several else cancer
        X = StandardScaler().fit_transform(X)[:, :4]
        common = {"cv": 3, "scoring": "neg_log_loss", "l1_ratios": self.ratios}
        theirs = SklearnCV(
            Cs=[0.1, 1.0], **common, solver="saga", use_legacy_attributes=False, tol=1e-6,
            max_iter=10_000,
        ).fit(X, y)  # fmt: skip
        ours = LogisticRegressionCV([0.1, 1.0], **common).fit(X, y)
        assert (ours.C_, ours.l1_ratio_) == (theirs.C_, theirs.l1_ratio_)
        np.testing.assert_allclose(ours.scores_, theirs.scores_, atol=1e-3)
        paths = ours.coefs_paths_, theirs.coefs_paths_
        if several:  # a number added to all intercepts changes nothing
            paths = tuple(path[..., :-1] for path in paths)
        np.testing.assert_allclose(*paths, atol=1e-2)
        assert ours.tuning_.certified and verify(ours, X, y).certified

    def test_the_result_of_tune(self, cancer):
        X, y = cancer
        cv = StratifiedKFold(3, shuffle=True, random_state=1)
        steps = make_pipeline(StandardScaler(), LogisticRegression())
        found = tune(steps, X[:, :5], y, [0.1, 1.0], l1_ratios=self.ratios, cv=cv)
        table = found.cv_results_
        search = GridSearchCV(
            steps,
            {"logisticregression__l1_ratio": self.ratios, "logisticregression__C": [0.1, 1.0]},
            cv=cv,
        ).fit(X[:, :5], y)
        theirs = {
            (one["logisticregression__C"], one["logisticregression__l1_ratio"]): score
            for one, score in zip(
                search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
            )
        }
        for one, score in zip(table["params"], table["mean_test_score"], strict=True):
            assert score == pytest.approx(theirs[one["C"], one["l1_ratio"]])
        assert found.best_score_ == pytest.approx(search.best_score_)
        assert table["rank_test_score"][found.best_index_] == 1
        assert found.best_estimator_[-1].get_params()["l1_ratio"] == found.best_l1_ratio
        assert f"l1_ratio = {found.best_l1_ratio:g}" in str(found)

    def test_a_saved_model_keeps_its_scores(self, cancer, tmp_path):
        X, y = cancer
        model = LogisticRegressionCV([0.1, 1.0], l1_ratios=[0.0, 1.0], cv=3).fit(X, y)
        linsep.save(model, tmp_path / "model.linsep")
        again = linsep.load(tmp_path / "model.linsep")
        assert again.cv_results_["params"] == model.cv_results_["params"]
        model.set_params(l1_ratios=None).fit(X, y)
        assert model.scores_.shape == (3, 2) and not hasattr(model, "l1_ratio_")
        assert not hasattr(LogisticRegressionCV(), "cv_results_")

    def test_refusals(self, cancer):
        with pytest.raises(BadInput, match="from 0 to 1"):
            tune(LogisticRegression(), *cancer, l1_ratios=[2.0])
        with pytest.raises(BadInput, match="no parameter l1_ratio"):
            tune(LinearSVC(), *cancer, l1_ratios=[0.0])
