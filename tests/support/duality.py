"""Optimal by its own dual point: the dual problem of losses with a kink in numpy, and verify's own text."""

import numpy as np
from catalogue import dense, precise_objective

from linsep.certificates import Part, recheck_part
from linsep.solution import Explicit

#: Ends of the interval of u, and the margin of the kink.
BOX = {"hinge": (0.0, 1.0, 1.0), "absolute": (-1.0, 1.0, 1.0), "perceptron": (0.0, 1.0, 0.0)}


def dual_value(loss, C, sample, u, fit_intercept=True):
    """Reported dual value; asserts that u is feasible, to the last digits."""
    low, high, kink = BOX[loss.name]
    assert (u >= low).all() and (u <= high).all()
    X, n = dense(sample.X), len(u)
    s = np.ones(n) if sample.weight is None else sample.weight
    o = np.zeros(n) if sample.offset is None else sample.offset
    alpha = C * s * u
    if fit_intercept:
        assert abs(alpha @ sample.sign) <= 1e-12 * max(np.abs(alpha).sum(), 1e-300)
    v = X.T @ (alpha * sample.sign)
    return float(alpha @ (kink - o) - v @ v / 2)


def assert_optimal(found, loss, C, sample, tol, fit_intercept=True):
    """Assert that the dual point of a fit with a kinked loss proves its coefficients optimal to a share tol."""
    assert isinstance(found.dual, Explicit) and found.certificate.certified
    primal = precise_objective(loss, C, sample, found.W[:, 0], fit_intercept)
    lower = dual_value(loss, C, sample, found.dual.u, fit_intercept)
    assert primal - lower <= 1.1 * tol * abs(primal) + 1e-300
    atol = 1e-14 + found.certificate.rounding
    np.testing.assert_allclose(found.certificate.primal, primal, rtol=1e-10, atol=atol)


def recheck(found, sample):
    """The certificate of a fit, from its coefficients and dual point by the numpy text that verify trusts."""
    recipe, rows = found.recipe, (sample.X, sample.sign, sample.offset, sample.weight, None)
    return recheck_part(
        Part(
            recipe.loss,
            recipe.penalty,
            recipe.fit_intercept,
            *rows,
            found.W,
            found.dual,
            recipe.tol,
        )
    )
