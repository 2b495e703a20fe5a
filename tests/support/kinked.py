"""The dual problem of losses with a kink, written out in numpy: an answer is optimal by its own dual point."""

import numpy as np
from catalogue import dense, objective

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
    assert isinstance(found.dual, Explicit) and found.certificate.certified
    primal = objective(loss, C, sample, found.W[:, 0], fit_intercept)[0]
    lower = dual_value(loss, C, sample, found.dual.u, fit_intercept)
    assert primal - lower <= 1.1 * tol * abs(primal) + 1e-300
    np.testing.assert_allclose(found.certificate.primal, primal, rtol=1e-10, atol=1e-14)
