"""The geometry of a hyperplane, against the formulas written out and against its own laws."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from linsep import Hyperplane
from linsep.errors import BadInput

finite = st.floats(-1e3, 1e3)
points = hnp.arrays(np.float64, (5, 3), elements=finite)
normals = hnp.arrays(np.float64, 3, elements=st.floats(-10, 10)).filter(
    lambda w: np.abs(w).max() > 1e-3
)
Y = np.array([0, 1, 1, 0, 1])
SIGNS = np.array([-1, 1, 1, -1, 1])


@given(points, normals, finite)
def test_distance_is_that_to_the_projection(X, w, b):
    plane = Hyperplane(w, b)
    there = plane.project(X)
    size = np.abs(X).max() + plane.distance_to_origin + 1
    np.testing.assert_allclose(plane.distance(there), 0, atol=1e-12 * size)
    np.testing.assert_allclose(
        plane.distance(X), np.linalg.norm(X - there, axis=1), atol=1e-11 * size
    )
    step = X - there  # orthogonal to the hyperplane: along w
    np.testing.assert_allclose(
        np.abs(step @ w), np.linalg.norm(step, axis=1) * np.linalg.norm(w), atol=1e-9 * size
    )


@given(points, normals, finite)
def test_scores_sides_and_margins(X, w, b):
    plane = Hyperplane(w, b)
    z = X @ w + b
    np.testing.assert_allclose(plane.score(X), z)
    assert (plane.predict(X) == np.where(plane.score(X) >= 0, 1, -1)).all()
    np.testing.assert_allclose(plane.functional_margins(X, Y), SIGNS * plane.score(X))
    geometric = SIGNS * plane.score(X) / np.linalg.norm(w)
    np.testing.assert_allclose(plane.geometric_margins(X, Y), geometric)
    assert plane.margin(X, Y) == pytest.approx(geometric.min())


@given(points, normals, finite, st.floats(0.01, 100))
def test_scaling_changes_scores_but_not_the_hyperplane(X, w, b, t):
    plane, scaled = Hyperplane(w, b), Hyperplane(t * w, t * b)
    np.testing.assert_allclose(plane.distance(X), scaled.distance(X), rtol=1e-9, atol=1e-9)
    assert plane.distance_to_origin == pytest.approx(scaled.distance_to_origin)
    if np.abs(plane.score(X)).min() > 1e-6:
        canonical = plane.canonical(X)
        assert np.abs(canonical.score(X)).min() == pytest.approx(1)
        assert plane.distance(X).min() == pytest.approx(1 / canonical.norm)


@given(points, normals, finite)
def test_homogeneous_forms(X, w, b):
    plane = Hyperplane(w, b)
    last, first = plane.homogeneous(), plane.homogeneous(first=True)
    one = np.ones((len(X), 1))
    np.testing.assert_allclose(np.hstack([X, one]) @ last, X @ w + b)
    np.testing.assert_allclose(np.hstack([one, X]) @ first, X @ w + b)
    for again in (
        Hyperplane.from_homogeneous(last),
        Hyperplane.from_homogeneous(first, first=True),
    ):
        assert (again.w == plane.w).all() and again.b == plane.b


def test_angular_margins_are_cosines():
    X = np.array([[3.0, 4.0], [0.0, 2.0], [0.0, 0.0]])
    found = Hyperplane([0.0, 5.0]).angular_margins(X, [1, 0, 1])
    np.testing.assert_allclose(found, [0.8, -1.0, 0.0])
    with pytest.raises(BadInput, match="through the origin"):
        Hyperplane([1.0, 0.0], 1.0).angular_margins(X, [1, 0, 1])


def test_a_score_of_zero_is_the_positive_side():
    assert Hyperplane([1.0], -1.0).predict([[1.0], [0.5]]).tolist() == [1, -1]


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, pd.DataFrame, pl.DataFrame, list])
def test_tables_of_any_kind(kind):
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    plane = Hyperplane([1.0, -1.0], 0.5)
    given = kind(X.tolist()) if kind is list else kind(X)
    assert plane.score(given).tolist() == [1.5, -1.5, 0.5]
    np.testing.assert_allclose(plane.project(given), plane.project(X))
    assert plane.margin(given, ["b", "a", "b"]) == pytest.approx(0.5 / np.sqrt(2))


def test_a_hyperplane_does_not_change():
    w = np.array([1.0, 2.0])
    plane = Hyperplane(w, 1.0)
    w[0] = 7.0
    assert plane.w.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        plane.w[0] = 3.0
    with pytest.raises(AttributeError):
        plane.b = 2.0
    assert str(plane) == "hyperplane w.x + b = 0 with w = (1, 2), b = 1"


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Hyperplane([0.0, 0.0], 1.0), "w is zero"),
        (lambda: Hyperplane([1.0, np.nan]), "finite"),
        (lambda: Hyperplane(np.ones((2, 2))), "one normal vector"),
        (lambda: Hyperplane(["a"]), "numbers"),
        (lambda: Hyperplane.from_homogeneous([1.0]), "at least two"),
        (lambda: Hyperplane([1.0, 2.0]).score([[1.0]]), "1 columns"),
        (lambda: Hyperplane([1.0]).score([1.0, 2.0]), "two dimensions"),
        (lambda: Hyperplane([1.0]).score([[np.inf]]), "NaN or infinity"),
        (lambda: Hyperplane([1.0]).score([["x"]]), "table of numbers"),
        (lambda: Hyperplane([1.0]).canonical([[0.0]]), "lies on the hyperplane"),
        (lambda: Hyperplane([1.0]).margin([[0.0], [1.0]], [1, 1]), "two classes"),
        (lambda: Hyperplane([1.0]).margin([[0.0]], [1, 0]), "one label for each row"),
    ],
)
def test_bad_input_is_refused(make, match):
    with pytest.raises(BadInput, match=match):
        make()
