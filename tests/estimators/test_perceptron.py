"""The perceptron: the theorems about it, its budget, and its manners as an estimator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_iris

from linsep import Perceptron, verify
from linsep.bounds import best_mistake_bounds
from linsep.bounds import mistake_bounds as mistakes
from linsep.errors import BadInput, Refused
from linsep.online import ORDERS, UPDATES

IRIS = load_iris(return_X_y=True)
TWO = IRIS[0][:100], IRIS[1][:100]  # the first two kinds are separable


def separable(seed, n=40, d=3, margin=0.1):
    """Rows on both sides of a random hyperplane, none nearer than ``margin``."""
    rng = np.random.default_rng(seed)
    w, b = rng.normal(size=d), rng.normal()
    w /= np.linalg.norm(w)
    X = rng.normal(size=(n, d)) * rng.uniform(0.2, 3.0)
    side = np.where(X @ w + b > 0, 1.0, -1.0)
    side[:2] = 1.0, -1.0
    score = X @ w + b
    X += np.outer(side * np.maximum(margin - side * score, 0.0) * 1.001, w)
    return X, side.astype(int)


def shortest(Z):
    """Least |u| with Z u >= 1, by scipy: a reference that shares nothing with linsep."""
    start = scipy.optimize.linprog(
        np.zeros(Z.shape[1]), -Z, -np.ones(len(Z)), bounds=(None, None)
    ).x
    found = scipy.optimize.minimize(
        lambda u: 0.5 * u @ u,
        start,
        jac=lambda u: u,
        constraints={"type": "ineq", "fun": lambda u: Z @ u - 1, "jac": lambda u: Z},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    return found.x / (Z @ found.x).min()


def homogeneous(X, y, normalised=False):
    Z = y[:, None] * np.column_stack([X, np.ones(len(X))])
    return Z / np.linalg.norm(Z, axis=1, keepdims=True) if normalised else Z


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("order", ORDERS)
def test_it_ends_with_a_separator(update, order):
    X, y = TWO
    model = Perceptron(update=update, order=order).fit(X, y)
    assert model.separated_
    score = X @ model.coef_[0] + model.intercept_[0]
    assert ((2 * y - 1) * score > 0).all()
    assert model.n_updates_ == model.history_.n_updates == len(model.history_.rows)
    assert model.score(X, y) == 1.0
    assert model.certificate_.separable
    assert model.certificate_.hyperplane.w.tolist() == model.coef_[0].tolist()
    assert model.certificate_.check(X, y, exact=True)
    assert not model.certificate_.check(X, 1 - y)


def test_inseparable_rows_end_with_a_witness():
    X, y = IRIS[0][50:], IRIS[1][50:] == 2  # the other two kinds overlap
    model = Perceptron(max_passes=30).fit(X, y)
    witness = model.certificate_
    assert not model.separated_
    assert not witness.separable
    assert len(witness.rows) <= X.shape[1] + 2
    assert witness.check(X, y, exact=True)
    sign = np.where(y[witness.rows], 1.0, -1.0)
    balance = (sign * witness.weights) @ np.column_stack([X[witness.rows], np.ones(len(sign))])
    assert np.abs(balance).max() <= 1e-14


def test_out_of_budget_on_separable_rows_the_proof_says_so():
    model = Perceptron(max_updates=1).fit(*TWO)
    assert not model.separated_
    assert model.certificate_.separable
    assert model.certificate_.check(*TWO)


def test_a_dear_proof_is_left_to_the_user():
    """Whether large rows that were not separated could be takes longer than the run; it was not asked for."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30_000, 30)), rng.integers(0, 2, size=30_000)
    model = Perceptron(max_passes=2).fit(X, y)
    assert not model.separated_
    assert model.certificate_ is None
    y = X[:, 0] + 3 * np.sign(X[:, 0]) > 0
    model = Perceptron().fit(X + 3 * np.sign(X[:, :1]) * np.eye(30)[0], y)
    assert model.separated_
    assert model.certificate_.separable


def test_each_class_has_its_proof():
    X, y = IRIS
    model = Perceptron(max_passes=20).fit(X, y)
    assert [proof.separable for proof in model.certificate_] == [True, False, False]
    for c, proof in enumerate(model.certificate_):
        assert proof.check(X, y == c)


@given(st.integers(0, 10**6), st.sampled_from(ORDERS), st.sampled_from(UPDATES))
@settings(max_examples=60, deadline=None)
def test_the_invariants_of_the_proof_hold_at_every_update(seed, order, update):
    """<w*, w_t> >= gamma t, |w_t| <= R sqrt(t), cos(w*, w_t) >= sqrt(t)/(R B), and so t <= (R B)^2."""
    X, y = separable(seed)
    model = Perceptron(order=order, update=update, random_state=seed).fit(X, y)
    assert model.separated_
    Z = homogeneous(X, y, update == "normalised")
    u = shortest(Z)
    R, B, t = np.linalg.norm(Z, axis=1).max(), np.linalg.norm(u), np.arange(1, model.n_updates_ + 1)
    inner, cosine = model.history_.against(u[:-1], u[-1], X, y)
    slack = 1e-9 * (1 + t)
    assert (inner >= t - slack).all()
    assert (model.history_.norms <= R * np.sqrt(t) * (1 + 1e-9)).all()
    assert (cosine >= np.sqrt(t) / (R * B) - 1e-9).all()
    assert (cosine <= 1 + 1e-9).all()
    assert model.n_updates_ <= (R * B) ** 2 * (1 + 1e-9)
    w = np.append(model.coef_, model.intercept_)
    assert model.history_.norms[-1] == pytest.approx(np.linalg.norm(w), rel=1e-9)
    assert inner[-1] == pytest.approx(u @ w, rel=1e-9)


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_bounds_are_those_of_a_quadratic_programme(seed):
    X, y = separable(seed)
    bounds = Perceptron().fit(X, y).bounds(X, y)
    for normalised, found in ((False, bounds.radius_norm), (True, bounds.normalised)):
        Z = homogeneous(X, y, normalised)
        R = np.linalg.norm(Z, axis=1).max()
        assert found == pytest.approx((R * np.linalg.norm(shortest(Z))) ** 2, rel=1e-5)
    assert bounds.radius_margin == pytest.approx(bounds.radius_norm, rel=1e-12)
    # (iv) is the same argument with a hyperplane that is best for something else
    assert bounds.novikoff >= bounds.radius_norm * (1 - 1e-9)


def test_bounds_agree_with_those_of_a_given_separator():
    """``linsep.bounds`` evaluates the formulas at any separator; the best separators give these numbers."""
    X, y = separable(11)
    found = Perceptron().fit(X, y).bounds(X, y)
    u, v = shortest(homogeneous(X, y)), shortest(homogeneous(X, y, normalised=True))
    assert mistakes(u[:-1], u[-1], X, y)["norm"].value == pytest.approx(found.radius_norm, rel=1e-5)
    assert mistakes(v[:-1], v[-1], X, y)["angular"].value == pytest.approx(
        found.normalised, rel=1e-5
    )
    widest = scipy.optimize.minimize(  # the norm of w alone, without that of the intercept
        lambda u: 0.5 * u[:-1] @ u[:-1],
        1.5 * u,
        jac=lambda u: np.append(u[:-1], 0.0),
        constraints={"type": "ineq", "fun": lambda u: homogeneous(X, y) @ u - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    of_widest = mistakes(widest.x[:-1], widest.x[-1], X, y)
    assert of_widest["novikoff"].value == pytest.approx(found.novikoff, rel=1e-5)
    assert of_widest["novikoff_printed"].value == pytest.approx(found.printed, rel=1e-5)


def test_the_printed_bound_with_an_intercept_is_false():
    """x = 0.11 (+1) and x = 0.09 (-1): 921 updates, where (2 R/gamma)^2 promises 484."""
    X, y = np.array([[0.11], [0.09]]), np.array([1, -1])
    model = Perceptron().fit(X, y)
    bounds = model.bounds(X, y)
    assert model.separated_
    assert model.n_updates_ == 921
    assert bounds.printed == pytest.approx(484)
    assert model.n_updates_ > bounds.printed
    assert bounds.novikoff == pytest.approx((0.11**2 + 1) * (1 + 0.1**2) / 0.01**2)
    assert model.n_updates_ <= bounds.novikoff


def test_bounds_are_refused_where_nothing_separates():
    X, y = IRIS
    rest = Perceptron(max_passes=3).fit(X, y == 1)
    with pytest.raises(Refused, match="no proven bound: inseparable"):
        rest.bounds(X, y == 1)
    with pytest.raises(Refused, match="no proven bound"):
        best_mistake_bounds(np.array([[0.0], [1.0]]), np.array([1.0, -1.0]), fit_intercept=False)


def test_bounds_hold_where_the_best_separator_is_lost_in_rounding():
    """The breast cancer rows are separable, by so little that only the proof of it is left."""
    X, y = load_breast_cancer(return_X_y=True)
    model = Perceptron(max_passes=3).fit(X, y)
    assert model.certificate_.check(X, y, exact=True)
    bounds, plane = model.bounds(X, y), model.certificate_.hyperplane
    given_ = mistakes(plane.w, plane.b, X, y)
    assert bounds.radius_norm <= given_["norm"].value * (1 + 1e-6)
    assert bounds.normalised <= given_["angular"].value * (1 + 1e-6)
    assert model.n_updates_ <= bounds.radius_norm < np.inf


def test_bounds_of_sparse_rows_and_of_several_classes():
    X, y = TWO
    dense, sparse = (Perceptron().fit(A, y).bounds(A, y) for A in (X, sp.csr_matrix(X)))
    for name in ("normalised", "radius_norm", "novikoff", "printed"):
        assert getattr(dense, name) == pytest.approx(getattr(sparse, name), rel=1e-6)
    X = np.eye(3)
    many = Perceptron().fit(X, [0, 1, 2])
    assert len(many.bounds(X, [0, 1, 2])) == len(many.history_) == 3
    for bound, history in zip(many.bounds(X, [0, 1, 2]), many.history_, strict=True):
        assert history.n_updates <= bound.radius_norm


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("limit", "reached"),
    [
        ({"max_updates": 17}, lambda m: m.n_updates_ == 17),
        ({"max_passes": 2.5}, lambda m: m.n_passes_ <= 2.5 + 16 / 5),
        ({"time_limit": 1e-9}, lambda m: m.n_passes_ <= 1000),
    ],
)
def test_it_ends_at_its_budget(order, limit, reached):
    """Four points that no line separates."""
    X, y = [[0, 0], [1, 1], [0, 1], [1, 0], [2, 2]], [0, 0, 1, 1, 0]
    model = Perceptron(order=order, **limit).fit(X, y)
    assert not model.separated_
    assert reached(model)


def test_the_default_budget_ends_on_classes_that_nearly_meet():
    X, y = load_breast_cancer(return_X_y=True)
    model = Perceptron().fit(X, y)
    assert not model.separated_
    assert model.n_passes_ <= 1001
    assert model.score(X, y) > 0.8


def test_the_history_is_bounded():
    X, y = [[0.0], [1.0], [2.0]], [0, 1, 0]
    model = Perceptron(max_updates=150_000, max_passes=None).fit(X, y)
    assert model.n_updates_ == 150_000
    assert len(model.history_.rows) == len(model.history_.norms) == 100_000


def test_zero_rows_without_intercept_are_skipped_and_noted():
    X, y = [[0.0, 0.0], [1.0, 2.0], [-1.0, -3.0]], [0, 1, 0]
    model = Perceptron(fit_intercept=False).fit(X, y)
    assert model.skipped_.tolist() == [0]
    assert not model.separated_  # nothing separates a row that lies on every hyperplane
    assert model.n_updates_ == 1
    assert model.intercept_.tolist() == [0.0]
    assert Perceptron().fit(X, y).skipped_.tolist() == []


def test_storages_make_the_same_updates():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(200, 6))
    y = X @ [1, -2, 3, 0, 1, -1] > 0
    for order, update in itertools.product(ORDERS, UPDATES):
        model = Perceptron(order=order, update=update, max_updates=300)
        first = model.fit(X.astype(float), y).history_.rows.tolist()
        for kind in (
            np.asfortranarray,
            sp.csr_matrix,
            sp.csc_array,
            lambda A: A.astype(np.float32),
        ):
            again = model.fit(kind(X), y).history_.rows.tolist()
            if update == "raw":  # sums of integers are exact in any order
                assert again == first


def test_random_order_depends_on_the_seed_alone():
    X, y = TWO
    runs = [
        Perceptron(order="random", random_state=seed).fit(X, y).history_.rows.tolist()
        for seed in (0, 0, None, 1, 2, 3)
    ]
    assert runs[0] == runs[1] == runs[2]
    assert len({tuple(run) for run in runs}) > 1


def test_average_is_the_mean_over_rows_looked_at():
    X, y = load_breast_cancer(return_X_y=True)
    model = Perceptron(average=True, max_passes=2).fit(X, y)
    A, sign, w = np.column_stack([X, np.ones(len(X))]), 2 * y - 1, np.zeros(31)
    total = np.zeros(31)
    for i in itertools.islice(itertools.cycle(range(len(X))), 2 * len(X)):
        if sign[i] * (A[i] @ w) <= 0:
            w = w + sign[i] * A[i]
        total += w
    assert np.append(model.coef_, model.intercept_) == pytest.approx(total / (2 * len(X)), rel=1e-9)


class TestPartialFit:
    def test_updates_exactly_where_the_prediction_is_wrong(self):
        """The prediction at 0 is +1: with w = 0 the first negative row makes the first update."""
        rng = np.random.default_rng(1)
        X, y = rng.normal(size=(60, 4)), rng.choice([-1, 1], size=60)
        model = Perceptron()
        w, updates = np.zeros(5), 0
        for start in range(0, 60, 7):
            part = slice(start, start + 7)
            for x, label in zip(X[part], y[part], strict=True):
                predicted = 1 if x @ w[:-1] + w[-1] >= 0 else -1
                if predicted != label:
                    w += label * np.append(x, 1.0)
                    updates += 1
            model.partial_fit(X[part], y[part], classes=[-1, 1])
            assert np.append(model.coef_, model.intercept_) == pytest.approx(w)
            assert model.n_updates_ == updates

    def test_portions_add_up(self):
        rng = np.random.default_rng(2)
        X, y = rng.normal(size=(60, 4)), rng.choice([-1, 1], size=60)
        for average in (False, True):
            whole = Perceptron(average=average).partial_fit(X, y, classes=[-1, 1])
            parts = Perceptron(average=average)
            for start in range(0, 60, 7):
                part = slice(start, start + 7)
                parts.partial_fit(X[part], y[part], classes=[-1, 1])
            assert parts.coef_ == pytest.approx(whole.coef_)
            assert parts.n_updates_ == whole.n_updates_
        with pytest.raises(BadInput, match="average was changed"):
            parts.set_params(average=False).partial_fit(X, y)

    def test_strict_rule_would_never_leave_zero(self):
        """With y g < 0 in place of prediction != y no row is wrong at w = 0; the online rule does move."""
        X, y = TWO
        assert not ((2 * y - 1) * (X @ np.zeros(4)) < 0).any()
        assert Perceptron().partial_fit(X, y, classes=[0, 1]).n_updates_ > 0

    def test_goes_on_from_fit_and_forgets_what_no_longer_holds(self):
        X, y = TWO
        model = Perceptron(max_updates=1).fit(X, y)
        model.partial_fit(X, y)
        assert not hasattr(model, "separated_")
        assert not hasattr(model, "history_")

    def test_several_classes_are_as_many_perceptrons(self):
        mixed = np.random.default_rng(0).permutation(150)
        X, names = IRIS[0][mixed], np.array(["a", "b", "c"])[IRIS[1][mixed]]
        model = Perceptron().partial_fit(X[:70], names[:70], classes=["a", "b", "c"])
        model.partial_fit(X[70:], names[70:])
        for c, name in enumerate("abc"):
            one = Perceptron().partial_fit(X, names == name, classes=[False, True])
            assert model.coef_[c] == pytest.approx(one.coef_[0])
            assert model.intercept_[c] == pytest.approx(one.intercept_[0])

    @pytest.mark.parametrize(
        ("model", "options", "message"),
        [
            (Perceptron(), {}, "classes must be passed on the first call"),
            (Perceptron(), {"classes": [0]}, "at least 2 classes"),
            (Perceptron(), {"classes": [5, 6]}, "not one of the classes"),
        ],
    )
    def test_refusals(self, model, options, message):
        with pytest.raises(BadInput, match=message):
            model.partial_fit(*TWO, **options)

    def test_other_classes_later_are_refused(self):
        model = Perceptron().partial_fit(*TWO, classes=[0, 1])
        with pytest.raises(BadInput, match="same in every call"):
            model.partial_fit(*TWO, classes=[0, 1, 2])
        with pytest.raises(BadInput, match="not one of the classes"):
            model.partial_fit(TWO[0][:1], [2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update": "big"}, "update must be one of 'raw', 'normalised'"),
        ({"order": "best"}, "order must be one of"),
        ({"max_updates": 0}, "max_updates must be a whole number"),
        ({"max_updates": 1.5}, "max_updates must be a whole number"),
        ({"max_passes": -1}, "max_passes must be a positive number"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
        ({"average": "yes"}, "average must be True or False"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises(BadInput, match=message):
        Perceptron(**options).fit(*TWO)


def test_bad_rows_are_found():
    X, y = TWO[0].copy(), TWO[1]
    X[3, 2] = np.nan
    with pytest.raises(BadInput, match=r"row 3, column 2"):
        Perceptron().fit(X, y)
    X[3, 2] = 1e200
    with pytest.raises(BadInput, match="too large to square"):
        Perceptron().fit(X, y)


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y = TWO
    model = Perceptron().fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(BadInput):
        model.fit(np.full_like(X, np.nan), y)
    assert (model.coef_ == before).all()


def by_hand(X, y, weight, normalised):
    """Cyclic updates s y (x, 1), or that over |(x, 1)|, of the rows of positive weight; and the norms on the way."""
    rows = weight > 0.0
    A = np.column_stack([X, np.ones(len(X))])[rows]
    step = (np.where(y > 0, 1.0, -1.0) * weight)[rows]
    theta, norms, clean, i = np.zeros(A.shape[1]), [], 0, 0
    while clean < len(A):
        clean += 1
        if step[i] * (A[i] @ theta) <= 0.0:
            theta = theta + step[i] * A[i] / (np.linalg.norm(A[i]) if normalised else 1.0)
            norms.append(np.linalg.norm(theta))
            clean = 0
        i = (i + 1) % len(A)
    return theta, np.array(norms)


class TestWeights:
    X, y = separable(7)
    weight = np.where(np.arange(40) % 7 == 3, 0.0, np.linspace(0.2, 3.0, 40))

    @pytest.mark.parametrize("update", ["raw", "normalized"])
    @pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
    def test_they_multiply_the_updates(self, update, storage):
        model = Perceptron(update).fit(storage(self.X), self.y, self.weight)
        theta, norms = by_hand(self.X, self.y, self.weight, update == "normalized")
        np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theta, rtol=1e-9)
        np.testing.assert_allclose(model.history_.norms, norms, rtol=1e-9)
        assert model.separated_ and (self.weight[model.history_.rows] > 0.0).all()
        inner, cosine = model.history_.against(theta[:-1], theta[-1], self.X, self.y * self.weight)
        assert inner[-1] == pytest.approx(theta @ theta) and cosine[-1] == pytest.approx(1.0)

    def test_weights_of_classes(self):
        factors = {-1: 0.5, 1: 2.0}
        model = Perceptron(class_weight=factors).fit(self.X, self.y)
        other = Perceptron().fit(self.X, self.y, np.where(self.y > 0, 2.0, 0.5))
        np.testing.assert_array_equal(model.coef_, other.coef_)
        streamed = Perceptron(class_weight=factors).partial_fit(self.X, self.y, [-1, 1])
        assert streamed.n_updates_ > 0
        with pytest.raises(BadInput, match="balanced"):
            Perceptron(class_weight="balanced").partial_fit(self.X, self.y, [-1, 1])

    def test_bounds_are_for_updates_without_weights(self):
        model = Perceptron().fit(self.X, self.y, self.weight)
        with pytest.raises(Refused, match="without weights"):
            model.bounds(self.X, self.y)
        assert model.fit(self.X, self.y).bounds(self.X, self.y) is not None

    def test_adaboost(self):
        from sklearn.ensemble import AdaBoostClassifier

        model = AdaBoostClassifier(Perceptron(max_passes=5), n_estimators=3)
        assert model.fit(*IRIS).score(*IRIS) > 0.6


@pytest.mark.parametrize(("X", "y"), [TWO, IRIS], ids=["separable", "not separable"])
def test_a_saved_one_keeps_its_proof(X, y, tmp_path):
    import linsep

    model = Perceptron(max_passes=20).fit(X, y)
    linsep.save(model, tmp_path / "model.linsep")
    again = linsep.load(tmp_path / "model.linsep")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert str(again.certificate_) == str(model.certificate_)


def test_verify_points_to_the_proof_of_separability():
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    model = Perceptron().fit(X, y)
    with pytest.raises(BadInput, match=r"no optimum to verify; .*certificate_\.check\(X, y\)"):
        verify(model, X, y)
    assert model.certificate_.check(X, y)
