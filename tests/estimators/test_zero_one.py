"""The fewest errors of a hyperplane, against brute force that shares nothing with the solver."""

import copy
import itertools
import pickle
from dataclasses import replace
from fractions import Fraction
from time import perf_counter

import numpy as np
import pytest
import scipy.sparse as sp
from fewest_errors import fewest, total
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from linsep import LinearSVC, LogisticRegression, ZeroOneClassifier, load, save, summary, verify
from linsep.errors import BadInput, CertificateError, ConvergenceWarning, Refused
from linsep.exact.dyadic import below
from linsep.separability.rows import exact_margins
from linsep.zero_one import distinct
from linsep.zero_one.master import greedy, lighter_cover, relaxation_bound

KINDS = (
    "lattice",
    "gaussian",
    "rank one",
    "line",
    "repeated",
    "last bits",
    "column sizes",
    "sizes",
)
WEIGHTS = ("ones", "whole", "real", "1e-12", "1e-300", "12 decades", "400 decades", "subnormal")


def draw(seed, kind, n, d):
    rng = np.random.default_rng(seed)
    X = {
        "lattice": lambda: rng.integers(-2, 3, (n, d)).astype(float),
        "gaussian": lambda: rng.normal(size=(n, d)),
        "rank one": lambda: np.outer(rng.integers(-5, 6, n), rng.integers(1, 4, d)).astype(float),
        "line": lambda: rng.normal(size=d) + np.outer(rng.normal(size=n), rng.normal(size=d)),
        "repeated": lambda: rng.normal(size=(3, d))[rng.integers(0, 3, n)],
        "last bits": lambda: 1.0 + rng.integers(0, 4, (n, d)) * 2.0**-52,
        "column sizes": lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, d),
        "sizes": lambda: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, (n, d)),
    }[kind]()
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return X, sign


def draw_weights(seed, kind, n):
    rng = np.random.default_rng(seed)
    return {
        "ones": lambda: np.ones(n),
        "whole": lambda: rng.integers(1, 4, n).astype(float),
        "real": lambda: rng.uniform(0.1, 2.0, n),
        "1e-12": lambda: np.full(n, 1e-12),
        "1e-300": lambda: np.full(n, 1e-300),
        "12 decades": lambda: 10.0 ** rng.uniform(-12, 0, n),
        "400 decades": lambda: 10.0 ** rng.uniform(-320, 90, n),
        "subnormal": lambda: rng.integers(1, 5, n) * 5e-324,
    }[kind]()


def noisy(n, d, flips, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = X @ rng.standard_normal(d) + 0.3 > 0
    y[rng.choice(n, flips, replace=False)] ^= True
    return X, y.astype(int)


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    n=st.integers(3, 11),
    d=st.integers(1, 3),
    weights=st.sampled_from(WEIGHTS),
)
@pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")
def test_equals_brute_force(seed, kind, n, d, weights):
    X, sign = draw(seed, kind, n, d)
    s = draw_weights(seed, weights, n)
    model = ZeroOneClassifier().fit(X, sign, sample_weight=s)
    least = fewest(X, sign, s)
    count = total(s, model.predict(X) != sign)
    assert model.errors_ == float(count)
    assert total(s, model.certificate_.wrong) == count
    assert model.proven_ == (count == least)
    if model.proven_:
        assert verify(model, X, sign, s) is verify(model, X, sign, s, exact=True)
    else:  # coefficients in floats do not reach the optimum
        assert kind in ("line", "last bits", "column sizes", "sizes")
        assert d > 1
        assert model.lower_bound_ == below(least)
        assert model.certificate_.check(X, sign, s)
        assert model.certificate_.check(X, sign, s, exact=True)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("weight", [1.0, 1e-10, 1e-12, 1e-300, 5e-324, 1e90, 1.0 / 3.0])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_unit_of_the_weights_does_not_matter(d, weight):
    X, y = noisy(20, d, 8)
    plain = ZeroOneClassifier().fit(X, y)
    model = ZeroOneClassifier().fit(X, y, sample_weight=np.full(20, weight))
    assert model.proven_
    assert len(model.certificate_.wrong) == plain.errors_ > 2
    assert model.errors_ == float(Fraction(weight) * int(plain.errors_))
    assert verify(model, X, y, np.full(20, weight), exact=True).proven


def test_a_last_bit_of_weight_decides():
    X = np.array([[0.0], [0.0], [1.0]])
    s = np.array([1.0 + 2.0**-52, 1.0, 1e-300])
    model = ZeroOneClassifier().fit(X, [0, 1, 1], sample_weight=s)
    assert model.certificate_.wrong.tolist() == [1]
    model = ZeroOneClassifier().fit(X, [1, 0, 1], sample_weight=s)
    assert model.certificate_.wrong.tolist() == [1]
    assert verify(model, X, [1, 0, 1], s, exact=True).proven


@pytest.mark.parametrize("d", [2, 3])
def test_rounding_does_not_change_what_is_predicted(d):
    """Points on a line but for rounding: scores of the order of their rounding errors, any order of summation."""
    for seed in range(4):
        X, sign = draw(seed, "line", 11, d)
        model = ZeroOneClassifier().fit(X, sign)
        counts = [
            (model.predict(rows) != sign).sum()
            for rows in (X, np.asfortranarray(X), sp.csr_matrix(X), X.tolist())
        ]
        assert counts == [model.errors_] * 4
        exact = exact_margins(X, np.ones(11), np.append(model.coef_, model.intercept_))
        scores = model.decision_function(X)
        assert [z >= 0 for z in exact] == [z >= 0 for z in scores]


def test_neighbouring_floats_are_told_apart():
    x = np.nextafter(1.0, 2.0)
    for labels in ([0, 1], [1, 0]):
        model = ZeroOneClassifier().fit([[1.0], [x]], labels)
        assert model.errors_ == 0.0
        assert model.predict([[1.0], [x]]).tolist() == labels
    largest = np.finfo(float).max
    model = ZeroOneClassifier().fit([[-largest], [largest], [0.0]], [0, 1, 0])
    assert model.predict([[-largest], [largest], [0.0]]).tolist() == [0, 1, 0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["lattice", "gaussian"])
def test_two_ways_to_the_optimum_of_two_features_agree(seed, kind):
    X, sign = draw(seed, kind, 22, 2)
    X = np.round(X * 1024) / 1024  # so that differences are not rounded
    swept = ZeroOneClassifier().fit(X, sign)
    # Three columns of rank two: witnesses are covered.
    lifted = np.column_stack([X, X[:, 0] - X[:, 1]])
    covered = ZeroOneClassifier().fit(lifted, sign)
    assert swept.certificate_.method == "sweep"
    assert covered.certificate_.method == "cover"
    assert swept.errors_ == covered.errors_


def test_columns_that_depend_on_each_other_but_for_rounding():
    X, sign = draw(0, "gaussian", 14, 2)
    # Numbers are taken as they are: a thin slab in space.
    thin = np.column_stack([X, X[:, 0] - X[:, 1]])
    with pytest.warns(ConvergenceWarning, match="float64 has too few digits"):
        model = ZeroOneClassifier().fit(thin, sign)
    assert 1 <= model.lower_bound_ < model.errors_ <= ZeroOneClassifier().fit(X, sign).errors_
    assert model.certificate_.check(thin, sign, exact=True)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_weight_two_is_the_row_twice_and_weight_zero_the_row_left_out(d):
    X, y = noisy(40, d, 6)
    s = np.random.default_rng(1).integers(0, 3, 40)
    weighted = ZeroOneClassifier().fit(X, y, sample_weight=s)
    repeated = ZeroOneClassifier().fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    assert weighted.errors_ == repeated.errors_
    assert weighted.proven_


def test_the_certificate_fails_when_tampered_with():
    X, y = noisy(60, 3, 5)
    certificate = ZeroOneClassifier().fit(X, y).certificate_
    assert certificate.method == "cover"
    assert certificate.check(X, y)
    assert certificate.check(X, y, exact=True)
    rows, weights = certificate.witnesses[0]
    others = certificate.witnesses[1:]
    for forged in (
        replace(certificate, errors=certificate.errors - 1),
        replace(certificate, lower_bound=certificate.lower_bound - 1),  # then it is not proven
        replace(certificate, lower_bound=certificate.lower_bound + 1, proven=True),
        replace(certificate, b=certificate.b + 10.0),
        replace(certificate, wrong=certificate.wrong[1:]),
        replace(certificate, witnesses=certificate.witnesses[:1]),
        replace(certificate, witnesses=((rows, weights[::-1] ** 2), *others)),
        replace(
            certificate, witnesses=((rows, weights * (1 + 1e-9 * np.arange(len(rows)))), *others)
        ),
        replace(certificate, witnesses=((rows, weights * np.nan), *others)),
        replace(certificate, witnesses=((rows[:-1], weights[:-1]), *others)),
        replace(certificate, witnesses=()),
        replace(certificate, method="sweep"),
    ):
        assert not forged.check(X, y)
        assert not forged.check(X, y, exact=True)
    assert not certificate.check(X, 1 - y)


@pytest.mark.parametrize("d", [1, 2])
def test_an_enumerated_bound_is_enumerated_again(d):
    X, y = noisy(30, d, 6)
    certificate = ZeroOneClassifier().fit(X, y).certificate_
    assert certificate.check(X, y)
    higher = replace(certificate, lower_bound=certificate.errors, errors=certificate.errors)
    assert higher.check(X, y)
    flipped = y.copy()
    flipped[certificate.wrong[0]] ^= 1  # one error less is possible now
    assert not certificate.check(X, flipped)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("exact", [False, True])
def test_verify_rejects_what_was_altered(d, exact):
    X, y = noisy(30, d, 6)
    s = np.random.default_rng(0).uniform(0.5, 1.5, 30)

    original = ZeroOneClassifier(class_weight={0: 1.0, 1: 1.5}).fit(X, y, sample_weight=s)

    def fitted():
        return copy.deepcopy(original)

    assert verify(fitted(), X, y, s, exact=exact).proven
    certificate = fitted().certificate_
    attributes = {
        "classes_": [fitted().classes_[::-1], np.array([0, 2])],
        "errors_": [0.0, np.nan, np.nextafter(certificate.errors, 0.0)],
        "lower_bound_": [0.0, np.nan],
        "proven_": [False],
        "coef_": [-fitted().coef_, fitted().coef_ * np.nan, fitted().coef_ * 2.0],
        "intercept_": [fitted().intercept_ + 1.0],
        "class_weight": [None, {0: 1.0, 1: 1.6}, "balanced"],
        "_class_weight": [None],
        "certificate_": [
            None,
            *(
                replace(certificate, **{name: value})
                for name, values in {
                    "errors": [0.0, np.nan, np.inf, -1.0, "7", np.nextafter(certificate.errors, 9)],
                    "lower_bound": [0.0, np.nan, np.inf, None],
                    "proven": [False, None, "yes"],
                    "w": [certificate.w * 2.0, certificate.w * np.nan],
                    "b": [np.nan, certificate.b + 1.0],
                    "wrong": [certificate.wrong[1:], certificate.wrong[::-1], np.arange(30)],
                    "classes": [certificate.classes[::-1], None],
                    "method": ["separable", "guess"],
                }.items()
                for value in values
            ),
        ],
    }
    for name, values in attributes.items():
        for value in values:
            model = fitted()
            setattr(model, name, value)
            with pytest.raises(CertificateError):
                verify(model, X, y, s, exact=exact)
    model = fitted()
    model.classes_ = model.classes_[::-1]
    model.certificate_ = replace(model.certificate_, classes=model.classes_)
    with pytest.raises(CertificateError):
        verify(model, X, y, s, exact=exact)
    with pytest.raises(CertificateError):
        verify(fitted(), X, y, np.nextafter(s, 2.0), exact=exact)


def test_verify_takes_it():
    X, y = noisy(50, 3, 4)
    model = ZeroOneClassifier().fit(X, y)
    assert verify(model, X, y) is model.certificate_
    assert verify(model, X, y, exact=True).proven
    with pytest.raises(Refused, match="no standard errors"):
        summary(model, X, y)
    model.coef_ = model.coef_ * 1.5
    with pytest.raises(CertificateError, match="altered"):
        verify(model, X, y)


def test_separable_rows_need_no_error():
    X, y = noisy(50, 3, 0)
    model = ZeroOneClassifier().fit(X, y)
    assert (model.errors_, model.lower_bound_, model.proven_) == (0.0, 0.0, True)
    assert (model.predict(X) == y).all()
    assert "separable" in str(model.certificate_)


def test_one_class_may_be_the_best_answer():
    X = np.zeros((5, 2))
    model = ZeroOneClassifier().fit(X, [0, 0, 0, 1, 1])
    assert model.errors_ == 2.0
    assert (model.predict(X) == 0).all()
    assert not model.coef_.any()
    assert model.certificate_.check(X, [0, 0, 0, 1, 1], exact=True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
@pytest.mark.parametrize("d", [2, 3])
def test_features_of_any_size(scale, d):
    X, y = noisy(40, d, 5)
    plain = ZeroOneClassifier().fit(X, y)
    scaled = ZeroOneClassifier().fit(X * np.append(scale, np.ones(d - 1)) + 0.0, y)
    assert scaled.proven_
    assert plain.errors_ == scaled.errors_


def test_time_is_respected_and_the_gap_told():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((600, 6)), rng.integers(0, 2, 600)
    with pytest.warns(ConvergenceWarning, match="at least") as caught:
        model = ZeroOneClassifier(time_limit=0.5).fit(X, y)
    assert model.certificate_.seconds < 20.0  # a busy machine may be late, a hang would be later
    assert not model.proven_
    assert 0 <= model.lower_bound_ < model.errors_
    assert model.errors_ == (model.predict(X) != y).sum()
    assert caught[0].message.certificate is model.certificate_
    began = perf_counter()
    with pytest.raises(CertificateError, match="not proven"):
        verify(model, X, y)
    assert perf_counter() - began < 10.0  # a bound that was found in time is proven again in time


@pytest.mark.slow
def test_rounds_do_not_look_at_the_clock():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 5)), rng.integers(0, 2, 90)
    found = []
    for _ in range(2):
        with pytest.warns(ConvergenceWarning, match="at least"):
            found.append(ZeroOneClassifier(None, max_rounds=1).fit(X, y))
    assert np.array_equal(found[0].coef_, found[1].coef_)
    assert 0 < found[0].lower_bound_ == found[1].lower_bound_ < found[0].errors_
    assert found[0].certificate_.check(X, y)


def test_never_more_errors_than_the_surrogates():
    X, y = noisy(120, 4, 8)
    model = ZeroOneClassifier().fit(X, y)
    price = model.price(X, y)
    own = {
        "logistic": (LogisticRegression().fit(X, y).predict(X) != y).sum(),
        "hinge": (LinearSVC().fit(X, y).predict(X) != y).sum(),
    }
    assert all(price.errors[name] == count for name, count in own.items())
    assert min(price.errors.values()) >= price.minimum == model.errors_
    assert "fewest possible" in str(price)
    with pytest.raises(BadInput, match="fitted to"):
        model.price(X[::-1], y)


def test_sparse_and_dense_agree_and_the_seed_decides():
    X, y = noisy(60, 3, 5)
    X[np.abs(X) < 0.5] = 0.0
    dense = ZeroOneClassifier(random_state=3).fit(X, y)
    again = clone(dense).fit(X, y)
    sparse = ZeroOneClassifier(random_state=3).fit(sp.csr_matrix(X), y)
    assert np.array_equal(dense.coef_, again.coef_)
    assert np.array_equal(dense.coef_, sparse.coef_)
    assert sparse.certificate_.check(sp.csr_matrix(X), y)
    assert pickle.loads(pickle.dumps(dense)).certificate_.check(X, y)


def test_a_model_file_holds_the_proof(tmp_path):
    X, y = noisy(60, 3, 5)
    model = ZeroOneClassifier().fit(X, y)
    save(model, tmp_path / "fewest.linsep")
    loaded = load(tmp_path / "fewest.linsep")
    assert np.array_equal(loaded.coef_, model.coef_)
    assert str(loaded.certificate_) == str(model.certificate_)
    assert verify(loaded, X, y, exact=True).proven


def test_class_weight_is_the_cost_of_an_error():
    X, y = noisy(60, 2, 10)
    model = ZeroOneClassifier(class_weight={1: 100.0}).fit(X, y)
    assert (model.predict(X)[y == 1] == 1).all()
    assert verify(model, X, y).proven


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"y": [0, 1, 2]}, "Only binary"),
        ({"y": [0, 0, 0]}, "one class only"),
        ({"X": [[0.0], [np.nan], [1.0]]}, "NaN"),
        ({"time_limit": 0}, "time_limit must be"),
        ({"time_limit": "long"}, "time_limit must be"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"sample_weight": [1, -1, 1]}, "negative"),
        ({"sample_weight": [0, 1, 1]}, "zero"),
    ],
)
def test_bad_input_is_refused(changed, message):
    X = changed.get("X", [[0.0], [1.0], [2.0]])
    y = changed.get("y", [0, 1, 1])
    model = ZeroOneClassifier(changed.get("time_limit", 60), max_rounds=changed.get("max_rounds"))
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=changed.get("sample_weight"))


@pytest.mark.parametrize("seed", range(10))
def test_covers_are_least(seed):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, 12).astype(float)
    sets = [np.sort(rng.choice(12, 4, replace=False)) for _ in range(15)]
    truth_by_force = min(
        weight[list(rows)].sum()
        for k in range(13)
        for rows in itertools.combinations(range(12), k)
        if all(set(rows) & set(one.tolist()) for one in sets)
    )
    units = np.array([int(x) for x in weight], dtype=object)
    least = int(truth_by_force)
    assert lighter_cover(sets, units, least).exists is False
    found = lighter_cover(sets, units, least + 1)
    assert found.exists is True
    assert all(np.isin(one, found.cover).any() for one in sets)
    assert weight[found.cover].sum() == least
    assert lighter_cover(sets, units, least, nodes=0).exists is None
    assert 0 < relaxation_bound(sets, units) <= least
    quick = greedy(sets, weight)
    assert all(np.isin(one, quick).any() for one in sets)


def test_equal_rows_are_one_point():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [2.0, 1.0]])
    points = distinct(X, np.array([1.0, 1.0, -1.0, 1.0]), np.array([1.0, 2.0, 3.0, 0.0]))
    assert points.weight.tolist() == [3.0, 3.0]
    assert points.place.tolist() == [0, 0, 1, -1]
