"""The local certificate of multinomial models with many unknowns: one block for each edge of a tree of the classes."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from tuned import tuning

from linsep import LogisticRegression, verify
from linsep.certificates.curvature import softmax as softmax_local
from linsep.certificates.parts import Part
from linsep.losses import Multinomial
from linsep.penalties import ElasticNet


@pytest.fixture(autouse=True)
def form_no_hessian():
    with tuning(softmax_hessian=15):
        yield


def chain(n=3000, k=9, seed=0):
    """Classes in a row along one feature: a row is of its nearest class or one next to it."""
    rng = np.random.default_rng(seed)
    position = rng.uniform(0.0, k - 1.0, n)
    y = np.clip(np.rint(position + rng.normal(0.0, 0.5, n)), 0, k - 1).astype(np.int64)
    return position[:, None] - (k - 1) / 2, y


def cloud(n=2000, d=9, k=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    return 0.4 * rng.standard_normal((k, d))[y] + rng.standard_normal((n, d)), y


def part_of(X, y, W, weight=None, tol=1e-6):
    k = W.shape[1]
    return Part(
        loss=Multinomial(k),
        penalty=ElasticNet(np.inf),
        fit_intercept=True,
        X=X,
        sigma=None,
        offset=None,
        weight=weight,
        labels=y,
        W=W,
        dual=None,
        tol=tol,
    )


def objective(X, y, W):
    Z = X @ W[:-1] + W[-1]
    return -float(log_softmax(Z, axis=1)[np.arange(len(y)), y].sum())


def fitted(X, y):
    model = LogisticRegression(C=np.inf).fit(X, y)
    return model, np.vstack([model.coef_.T, model.intercept_])


@pytest.mark.parametrize("make", [chain, cloud])
def test_many_unknowns_are_certified_and_verified(make):
    X, y = make()
    model, W = fitted(X, y)
    assert W.size > softmax_local.LARGEST >= len(W)
    assert model.certificate_.certified
    assert model.certificate_.relative_gap <= 1e-9
    assert verify(model, X, y).certified


def test_columns_that_are_combinations_of_others_are_left_out():
    X, y = cloud()
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X[:, :2] = np.rint(4 * X[:, :2])  # so that the sum is exact
    X[:, -1] = X[:, 0] + X[:, 1]
    model, _ = fitted(X, y)
    assert model.certificate_.certified
    assert model.certificate_.coef_error == np.inf


@pytest.mark.parametrize("make", [chain, cloud])
@pytest.mark.parametrize("size", [1e-5, 1e-4, 1e-3])
def test_bound_is_at_least_the_excess(make, size):
    X, y = make()
    _, W = fitted(X, y)
    least, k = objective(X, y, W), W.shape[1]
    rng = np.random.default_rng(1)
    tilted = np.zeros_like(W)
    tilted[-1] = (
        np.arange(k) - k / 2
    )  # equal differences along a chain: a gradient at its ends alone
    for D in (tilted, rng.standard_normal(W.shape), np.outer(np.ones(len(W)), np.arange(k))):
        at = W + size * D / np.abs(D).max()
        found = softmax_local.softmax_local_certificate(part_of(X, y, at))
        excess = objective(X, y, at) - least
        assert found.gap >= excess * (1 - 1e-6) - 1e-9
        assert found.gap <= 1000.0 * excess or size > 1e-4


def inspected(X, y, W, weight=None, change=lambda at: None):
    """Return mu, and r = max r_ic from kappa, of the certificate."""
    seen = {}

    def spy(mu, kappa_at):
        seen["mu"] = mu
        seen["r"] = 0.5 * np.log(kappa_at(0.0) / kappa_at(1e-6)) / 1e-6

    visit = softmax_local._visit

    def visited(*args):
        at = visit(*args)
        change(at)
        return at

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(softmax_local, "bound", spy)
        patch.setattr(softmax_local, "_visit", visited)
        softmax_local.softmax_local_certificate(part_of(X, y, W, weight))
    return seen["mu"], seen["r"]


def test_norms_are_those_of_the_derivation():
    """mu sums the gradients below each edge, and r adds up along the path: on a chain both span all classes."""
    X, y = chain()
    _, W = fitted(X, y)
    k = W.shape[1]
    W[-1] += 1e-4 * np.arange(k)
    mu, r = inspected(X, y, W)
    A = np.column_stack([X - X.mean(), np.ones(len(X))])
    P = softmax(X @ W[:-1] + W[-1], axis=1)
    g = A.T @ (P - np.eye(k)[y])
    wanted, path = 0.0, np.zeros(len(X))
    for c in range(1, k):
        M = A.T @ ((P[:, c - 1] * P[:, c])[:, None] * A)
        below = g[:, c:].sum(axis=1)
        wanted += below @ np.linalg.solve(M, below)
        path += np.einsum("ij,ij->i", A, np.linalg.solve(M, A.T).T)
    assert mu == pytest.approx(np.sqrt(wanted), rel=1e-6)
    assert r == pytest.approx(np.sqrt(path.max()), rel=1e-3)


def test_errors_of_slopes_and_sums_enter_the_bound():
    X, y = chain()
    _, W = fitted(X, y)
    plain, _ = inspected(X, y, W)

    def blur_slopes(at):
        at.slope_error += 1e-6

    def blur_sums(at):
        at.sum_error[-1] += 1e-6

    assert inspected(X, y, W, change=blur_slopes)[0] >= plain + 1e-4
    assert inspected(X, y, W, change=blur_sums)[0] >= plain + 1e-8


def test_probabilities_that_underflow_prove_nothing():
    """Products of probabilities near 1e-320 have few digits; weights of 1e250 must not make them count."""
    n, k = 60, 11
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 1)), np.zeros(n, dtype=np.int64)
    y[:k] = np.arange(k)
    W = np.zeros((2, k))
    W[-1, 1:] = -738.0  # p = 1e-320: the products with p_0 are denormal
    found = softmax_local.softmax_local_certificate(part_of(X, y, W, np.full(n, 1e250)))
    assert found.dual == 0.0
