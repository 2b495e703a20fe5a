"""Separable, quasi-separable, overlapping: against linear programmes, and proofs that tampering breaks."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fewest_errors import fewest
from separation_truth import KINDS, draw, signed_rows, truth

from linsep import Hyperplane, separate
from linsep.data import Memory
from linsep.errors import BadInput
from linsep.separability import Undecided, decide, simplex, wide, witness_or_separator
from linsep.separability.rows import SignedRows


def name(answer):
    if answer.separable:
        return "separable"
    return "quasi" if answer.quasi else "overlap"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "lp"])
def test_agrees_with_linear_programmes(kind, method):
    """And every answer passes its check, in floats and in exact arithmetic."""
    rng = np.random.default_rng(KINDS.index(kind))
    seen = set()
    for _ in range(90 if method == "auto" else 20):
        X, sign = draw(rng, kind)
        through_origin = bool(rng.integers(0, 4) == 0)
        answer = separate(X, sign, method=method, fit_intercept=not through_origin)
        assert name(answer) == truth(X, sign, not through_origin)
        assert answer.check(X, sign)
        assert answer.check(X, sign, exact=True)
        seen.add(name(answer))
    assert seen >= {"separable", "overlap"}


def test_a_separator_is_one_by_rational_arithmetic():
    rng = np.random.default_rng(0)
    for _ in range(20):
        X, sign = draw(rng, "gaussian")
        sign = np.where(X[:, 0] > 0.1, 1.0, -1.0)
        if abs(sign.sum()) == len(sign):
            continue
        plane = separate(X, sign).hyperplane
        w = [Fraction(x) for x in plane.w.tolist()]
        for x, s in zip(X.tolist(), sign.tolist(), strict=True):
            score = sum(map(Fraction.__mul__, w, map(Fraction, x))) + Fraction(plane.b)
            assert int(s) * score > 0


def test_a_witness_is_a_common_point_of_at_most_d_plus_2_rows():
    rng = np.random.default_rng(1)
    for d in (1, 2, 5, 12):
        X = rng.normal(size=(40 + 20 * d, d))
        y = rng.integers(0, 2, len(X))
        answer = separate(X, y)
        rows, weights = answer.rows, answer.weights
        assert len(rows) <= d + 2 and answer.proven
        for side in (0, 1):
            ours = y[rows] == side
            assert weights[ours].sum() == pytest.approx(0.5, rel=1e-12)
            np.testing.assert_allclose(2 * weights[ours] @ X[rows[ours]], answer.point, atol=1e-12)


def overlapping():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    return X, rng.integers(0, 2, 60)


def quasi():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 50)
    flag = np.where(np.arange(50) < 12, 2.0 * y - 1, 0.0)
    return np.column_stack([rng.normal(size=(50, 2)).round(2), flag]), y


@pytest.mark.parametrize("exact", [False, True])
def test_a_tampered_witness_is_rejected(exact):
    X, y = overlapping()
    answer = separate(X, y)
    assert answer.check(X, y, exact)
    k = len(answer.rows)
    weights = answer.weights.copy()
    weights[:2] += 1e-6 * np.array([1, -1])
    other = np.setdiff1d(np.arange(60), answer.rows)[:1]
    for forged in (
        replace(answer, weights=weights),
        replace(answer, weights=-answer.weights),
        replace(answer, weights=np.roll(answer.weights, 1)),
        replace(answer, weights=answer.weights[:-1]),
        replace(answer, weights=np.full(k, np.nan)),
        replace(answer, weights=2 * answer.weights),
        replace(answer, rows=answer.rows[::-1]),
        replace(answer, rows=np.concatenate([other, answer.rows[1:]])),
        replace(answer, rows=np.repeat(answer.rows[:1], k)),
        replace(answer, rows=answer.rows + 60),
        replace(answer, point=answer.point + 1e-6),
        replace(answer, direction=(np.array([1.0, 0, 0]), 0.0), rows_on=np.array([0])),
    ):
        assert not forged.check(X, y, exact)
    moved = X.copy()
    moved[answer.rows[0], 0] += 1e-7
    assert not answer.check(moved, y, exact)
    assert not answer.check(X, 1 - y[::-1], exact)


@pytest.mark.parametrize("exact", [False, True])
def test_a_tampered_separator_is_rejected(exact):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] > 0.2
    answer = separate(X, y)
    plane = answer.hyperplane
    assert answer.check(X, y, exact)
    assert answer.margin == pytest.approx(plane.margin(X, y), rel=1e-9)
    assert answer.margin <= plane.margin(X, y) * (1 + 1e-15)
    for forged in (
        replace(answer, hyperplane=Hyperplane(-plane.w, -plane.b)),
        replace(answer, hyperplane=Hyperplane(plane.w, plane.b + 2 * plane.norm * answer.margin)),
        replace(answer, hyperplane=Hyperplane(plane.w[::-1], plane.b)),
        replace(answer, margin=1.0001 * answer.margin),
    ):
        assert not forged.check(X, y, exact)
    flipped = y.copy()
    flipped[7] ^= True
    assert not answer.check(X, flipped, exact)


@pytest.mark.parametrize("exact", [False, True])
def test_quasi_separation_shows_its_direction_and_the_rows_on_it(exact):
    X, y = quasi()
    answer = separate(X, y)
    assert answer.quasi and answer.check(X, y, exact)
    w, b = answer.direction
    moved = np.where(y, 1, -1) * (X @ w + b)
    assert moved.min() >= -1e-12
    assert answer.rows_on.tolist() == list(range(12, 50))
    assert (moved[:12] > 0.1).all()
    assert answer.diverging.tolist() == [2]
    for forged in (
        replace(answer, direction=(-w, -b)),
        replace(answer, direction=(w, b + 1e-3)),
        replace(answer, direction=(np.array([0.1, 0.0, 1.0]), 0.0)),
        replace(answer, rows_on=answer.rows_on[1:]),
        replace(answer, rows_on=np.arange(50)),
    ):
        assert not forged.check(X, y, exact)


def test_floats_a_rounding_error_apart():
    """(0.1, 0.3), (0.2, 0.6), (0.3, 0.9) are not on one line: the numbers as they are decide."""
    X = np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9]])
    answer = separate(X, [0, 1, 0])
    assert answer.separable and 0 < answer.margin < 1e-16
    assert answer.check(X, [0, 1, 0], exact=True)
    tidy = separate(np.array([[1.0, 3.0], [2.0, 6.0], [3.0, 9.0]]), [0, 1, 0])
    assert not tidy.separable and len(tidy.rows) == 3


def test_rational_simplex_decides():
    rng = np.random.default_rng(5)
    for kind in ("flags", "integers", "scales"):
        for _ in range(15):
            X, sign = draw(rng, kind)
            A = signed_rows(X, sign)
            theta, weights = simplex.decide(A)
            exact = [[Fraction(x) for x in row] for row in A.tolist()]
            if theta is not None:
                assert truth(X, sign) == "separable"
                assert all(sum(map(Fraction.__mul__, row, theta)) > 0 for row in exact)
            else:
                assert truth(X, sign) != "separable"
                assert len(weights) <= A.shape[1] + 1 and min(weights.values()) > 0
                assert sum(weights.values()) == 1
                for j in range(A.shape[1]):
                    assert sum(a * exact[i][j] for i, a in weights.items()) == 0


def test_undecided_says_so():
    answer = Undecided(margin=-1e-17, residual=1e-14, passes=3)
    assert answer.separable is None and "undecided" in str(answer) and "-1.0e-17" in str(answer)


@pytest.mark.parametrize(
    ("X", "y", "expected"),
    [
        ([[1.0], [1.0]], [0, 1], "overlap"),  # the same row with both labels
        ([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]], [0, 1, 1], "quasi"),
        ([[0.0, 5.0], [1.0, 5.0]], [0, 1], "separable"),  # a constant column
        ([[0.0], [1.0], [0.0], [1.0]], ["a", "b", "a", "b"], "separable"),
        ([[0.0], [1.0], [2.0]], [True, False, True], "overlap"),
        ([[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1], "quasi"),
    ],
)
def test_degenerate_data(X, y, expected):
    answer = separate(X, y)
    assert name(answer) == expected
    assert answer.check(X, y) and answer.check(X, y, exact=True)


def test_without_an_intercept_a_zero_row_is_its_own_witness():
    answer = separate([[0.0, 0.0], [1.0, 2.0]], [0, 1], fit_intercept=False)
    assert answer.rows.tolist() == [0] and answer.weights.tolist() == [1.0]
    assert answer.point is None and answer.quasi and answer.rows_on.tolist() == [0]


@pytest.mark.parametrize("scale", [1e-150, 1e-6, 1e6, 1e150])
def test_scales_and_offsets(scale):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(100, 3)) * [1.0, scale, 1.0] + [0.0, 0.0, 1e6]
    y = X[:, 0] + X[:, 1] / scale > 0.1
    assert separate(X, y).check(X, y, exact=True)
    y[5] ^= True
    X[5, 0] *= 3
    answer = separate(X, y)
    assert name(answer) == truth(X - X.mean(axis=0), np.where(y, 1.0, -1.0))
    assert answer.check(X, y, exact=True)


@pytest.mark.parametrize("kind", ["csr", "csr32", "float32", "fortran", "frame", "int"])
def test_tables_of_any_kind(kind):
    eye = np.eye(4)[[0, 1, 2, 3, 3]], np.array([0, 0, 1, 1, 1])
    for real, y in (overlapping(), quasi(), eye):
        X = (10 * real).round()
        given = {
            "csr": lambda X=X: sp.csr_matrix(X),
            "csr32": lambda X=X: sp.csr_array(X.astype(np.float32)),
            "float32": lambda X=X: X.astype(np.float32),
            "fortran": lambda X=X: np.asfortranarray(X),
            "frame": lambda X=X: pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])]),
            "int": lambda X=X: X.astype(int),
        }[kind]()
        labels = np.where(y, "yes", "no")
        answer, plain = separate(given, labels), separate(X, y)
        assert name(answer) == name(plain)
        assert answer.check(given, labels) and answer.check(X, labels, exact=True)


@pytest.mark.parametrize("flip", [False, True])
def test_many_rows_and_threads(flip):
    """Few passes, and the same bits for any number of threads."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(120_000, 20))
    y = X @ rng.normal(size=20) > 0.5
    y[60_000] ^= flip
    one, *others = (separate(X, y, n_threads=k) for k in (1, 2, 3))
    assert one.separable is not flip and one.passes < 10 and one.check(X, y)
    for other in others:
        if flip:
            assert (other.rows == one.rows).all() and (other.weights == one.weights).all()
        else:
            assert (other.hyperplane.w == one.hyperplane.w).all() and other.margin == one.margin


def test_many_features():
    rng = np.random.default_rng(8)
    X = sp.random(300, 5000, density=0.01, format="csr", random_state=0)
    y = rng.integers(0, 2, 300)
    answer = separate(X, y)
    assert answer.separable and answer.check(X, y)
    twin = sp.vstack([X, X[7]]).tocsr()
    answer = separate(twin, np.append(y, 1 - y[7]))
    assert answer.rows.tolist() == [7, 300] and answer.check(twin, np.append(y, 1 - y[7]), True)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_perceptron_answers_for_many_features(fit_intercept):
    """Few passes where the margin is wide; the same bits again; the others take over where it cannot answer."""
    rng = np.random.default_rng(11)
    X = sp.random(400, 3000, density=0.02, format="csr", random_state=1)
    y = np.where(X @ rng.normal(size=3000) > 0.0, 1, 0)
    one, two = (separate(X, y, fit_intercept=fit_intercept) for _ in range(2))
    assert one.separable and one.check(X, y, True) and one.passes <= 30
    assert (one.hyperplane.w == two.hyperplane.w).all() and one.margin == two.margin
    sign = np.where(y, 1.0, -1.0)
    asked = SignedRows(Memory(X, sign), fit_intercept)
    assert wide.perceptron(asked, 0) is not None and asked.passes <= 30
    some = Memory(X, sign, weight=(np.arange(400) > 0).astype(float))
    assert wide.perceptron(SignedRows(some, fit_intercept), 0) is None
    assert decide(some, fit_intercept=fit_intercept).separable
    both = Memory(sp.vstack([X, X[0]]).tocsr(), np.append(sign, -sign[0]))
    again = SignedRows(both, fit_intercept)
    assert wide.perceptron(again, 0) is None and again.passes == 100
    assert not decide(both, fit_intercept=fit_intercept).separable


def test_weights_of_zero_do_not_count():
    X, y = overlapping()
    sign = np.where(y, 1.0, -1.0)
    keep = X[:, 0] * sign > 0.1
    answer = decide(Memory(X, sign, weight=keep.astype(float)))
    assert answer.separable and answer.check(X[keep], y[keep])


def test_the_small_question():
    rng = np.random.default_rng(9)
    A = rng.normal(size=(200, 6))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    split = witness_or_separator(A)
    assert not split.separated and (split.weights > 0).sum() <= 7
    np.testing.assert_allclose(split.weights @ A, 0, atol=1e-12)
    A *= np.sign(A @ rng.normal(size=6))[:, None]
    split = witness_or_separator(A)
    assert split.separated and (A @ split.theta).min() >= split.residual**2 * (1 - 1e-9)


@pytest.mark.parametrize(
    ("X", "y", "options", "match"),
    [
        ([[0.0], [1.0]], [1, 1], {}, "one class only"),
        ([[0.0], [1.0], [2.0]], [0, 1, 2], {}, r"separate\(X, y == 0\)"),
        ([[0.0], [np.nan]], [0, 1], {}, "NaN"),
        ([[0.0], [1.0]], [0, 1], {"method": "svm"}, "method must be one of"),
        ([[0.0], [1.0]], [0, 1], {"n_threads": 0}, "n_threads"),
        ([[0.0], [1.0]], [0, 1], {"fit_intercept": 1}, "True or False"),
    ],
)
def test_bad_input_is_refused(X, y, options, match):
    with pytest.raises(BadInput, match=match):
        separate(X, y, **options)


def test_an_answer_is_about_its_columns_and_classes():
    X, y = quasi()
    for answer in (separate(X, y), separate(X[:, :1], X[:, 0] > 0)):
        with pytest.raises(BadInput, match="label"):
            answer.check(X, y + 5)
    with pytest.raises(BadInput, match="3 columns"):
        separate(X[:, :1], X[:, 0] > 0).check(X, X[:, 0] > 0)
    assert not separate(X, y).check(X[:, :2], y)


def test_answers_read_aloud():
    X, y = quasi()
    assert str(separate(X, y)).startswith(
        "inseparable: the convex hulls of the classes share a point"
    )
    assert "quasi-separable" in str(separate(X, y))
    answer = separate([[0.0], [1.0]], [0, 1])
    assert 0.499 < answer.margin < 0.5  # rounded down, and so is what is printed
    assert str(answer) == (
        "separable: a hyperplane separates the classes, every row at distance >= 0.499 (1 pass)"
    )


HOSTILE = {
    "any size": lambda rng, n, d: rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, (n, d)),
    "rows of any size": lambda rng, n, d: (
        rng.integers(-2, 3, (n, d)) * 10.0 ** rng.choice([-300, -150, 0, 150, 300], (n, 1))
    ),
    "columns of any size": lambda rng, n, d: (
        rng.normal(size=(n, d)) * 10.0 ** rng.integers(-300, 300, d)
    ),
    "subnormal": lambda rng, n, d: rng.integers(-5, 6, (n, d)) * 5e-324,
    "last bits": lambda rng, n, d: 1.0 + rng.integers(0, 4, (n, d)) * 2.0**-52,
    "line": lambda rng, n, d: np.outer(rng.normal(size=n), rng.normal(size=d)),
    "huge": lambda rng, n, d: 1.7e308 * rng.uniform(-1.0, 1.0, (n, d)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_rows_are_answered_rightly_or_not_at_all(kind):
    """Against an enumeration in fractions; the margin, too, is compared in fractions."""
    answered = 0
    for seed in range(25):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
        X = HOSTILE[kind](rng, n, d)
        y = rng.integers(0, 2, n)
        y[:2] = 0, 1
        answer = separate(X, y)
        if answer.separable is None:
            continue
        answered += 1
        assert answer.separable == (fewest(X, 2.0 * y - 1.0, np.ones(n)) == 0)
        assert answer.check(X, y)
        assert answer.check(X, y, exact=True)
        if answer.separable:
            w = [Fraction(x) for x in answer.hyperplane.w.tolist()]
            limit = Fraction(answer.margin) ** 2 * sum(x * x for x in w)
            for row, label in zip(X.tolist(), y.tolist(), strict=True):
                z = sum(Fraction(x) * c for x, c in zip(row, w, strict=True))
                z += Fraction(answer.hyperplane.b)
                assert (z > 0) == label
                assert z * z >= limit
    assert answered >= 20


@pytest.mark.parametrize("offset", [0.0, 1e9, 1.6e18])
def test_classes_that_touch_are_never_said_to_overlap(offset):
    """Columns that vary by little beside their size: 256 ns in a timestamp."""
    x = np.array([0.0, 1.0, 1.0, 2.0])
    X, y = offset + 256.0 * x[:, None], np.array([-1.0, -1.0, 1.0, 1.0])
    answer = separate(X, y)
    assert not answer.separable
    assert answer.quasi is not False
    assert separate(X[[0, 3, 1, 2]], y).quasi is False


def test_the_last_bit_of_a_column_may_part_two_rows():
    """Rows (a, a) and one that differs in its last bit: all are on one side, or on the hyperplane w = (1, -1)."""
    a = np.array([0.3, -1.2, 0.7, 2.1, -0.4, 1.5])
    X = np.column_stack([a, a])
    y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    assert separate(X, y).quasi is False
    X[0, 0] = np.nextafter(X[0, 0], np.inf)
    assert separate(X, y).quasi is not False


def test_half_spaces_by_rational_arithmetic():
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(60):
        X, sign = draw(rng, "integers")
        A = signed_rows(X[:20], sign[:20])
        theta = simplex.half_space(A)
        kind = truth(X[:20], sign[:20])
        assert (theta is None) == (kind == "overlap")
        if theta is not None:
            scores = simplex.scores(A, theta)
            assert min(scores) >= 0 < max(scores)
        seen.add(kind)
    assert seen == {"separable", "quasi", "overlap"}


def dependent_columns(kind, n=6000):
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(n, 3))
    dummies = np.eye(5)[rng.integers(0, 5, n)]
    counts = rng.integers(0, 50, size=(n, 3)).astype(float)
    return {
        "dummies": np.column_stack([dummies, Z]),
        "copy and constant": np.column_stack([Z, Z[:, 0], np.full(n, 3.7)]),
        "totals": np.column_stack([counts, counts.sum(axis=1), counts @ [1.0, -2.5, 3.0]]),
        "sparse dummies": sp.csr_matrix(np.column_stack([dummies, counts])),
    }[kind], rng.random(n) < 0.5


@pytest.mark.parametrize("kind", ["dummies", "copy and constant", "totals", "sparse dummies"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_dependent_columns_of_a_large_table_are_proven(kind, fit_intercept):
    X, y = dependent_columns(kind)
    assert separate(X, y, fit_intercept=fit_intercept).quasi is False


def test_a_row_that_rounding_hides_in_a_large_table():
    """One entry differs from its copy in the 12th digit: the classes touch, on all rows but that one."""
    X, y = dependent_columns("copy and constant")
    X[17, 3] += 1e-12
    assert separate(X, y).quasi is not False


def test_without_an_intercept_the_witness_is_a_combination_of_signed_rows():
    """The hulls {1} and {2} share no point, but no hyperplane through the origin parts them."""
    answer = separate([[1.0], [2.0]], [-1, 1], fit_intercept=False)
    assert answer.point is None
    assert str(answer).startswith(
        "inseparable: the origin lies in the convex hull of the signed rows y x, as 2 rows prove; "
    )
    assert "origin in the convex hull" in answer._repr_html_()
    zero = separate([[0.0], [2.0]], [-1, 1], fit_intercept=False)
    assert "as 1 row proves; " in str(zero)
