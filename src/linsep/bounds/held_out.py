"""Bounds from the number of errors on rows that were not used for fitting."""

from __future__ import annotations

import math
from typing import Literal

from linsep.bounds import binomial
from linsep.bounds.bound import Bound, confidence, count, guess, share
from linsep.errors import BadInput


def clopper_pearson(
    errors: int,
    n: int,
    delta: float = 0.05,
    side: Literal["upper", "lower"] = "upper",
    minority: float | None = None,
) -> Bound:
    """Exact binomial bound on the error from ``errors`` among ``n`` held-out rows.

    The upper bound is the largest p with P(Binomial(n, p) <= errors) >= delta, the lower bound the smallest p with
    P(Binomial(n, p) >= errors) >= delta. For a two-sided interval, use delta/2 on each side.

    Parameters
    ----------
    errors, n : int
        Number of errors among n rows that were not used for fitting.
    delta : float, default 0.05
        One minus the confidence level.
    side : {"upper", "lower"}
        Which bound.
    minority : float, optional
        Fraction of the rarer class; a bound above it is reported as vacuous.

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If an argument is out of range, such as more errors than rows.

    See Also
    --------
    sample_compression : Without held-out rows, from the number of support vectors.

    References
    ----------
    Clopper and Pearson, The use of confidence or fiducial limits illustrated in the case of the binomial, Biometrika
    26, 1934.

    Examples
    --------
    >>> from linsep.bounds import clopper_pearson
    >>> print(clopper_pearson(0, 100))
    Clopper-Pearson: error <= 0.0296 at confidence 0.95
    """
    n, errors = count("n", n), count("errors", errors, low=0)
    delta = share("delta", delta, low_open=True)
    if errors > n:
        raise BadInput(f"errors must be at most n, got {errors} errors among {n} rows.")
    if side not in ("upper", "lower"):
        raise BadInput(f'side must be "upper" or "lower", got {side!r}.')
    limit = binomial.upper_limit if side == "upper" else binomial.lower_limit
    value = limit(errors, n, binomial.log(delta))
    note = "the rows are independent of each other and played no part in building the classifier"
    trivial = guess(minority) if side == "upper" else math.inf
    sign = "<=" if side == "upper" else ">="
    return Bound(
        "Clopper-Pearson",
        value,
        "error",
        confidence(delta),
        note,
        "Clopper and Pearson 1934",
        trivial,
        sign,
    )


def sample_compression(
    kept: int, errors: int, n: int, delta: float = 0.05, minority: float | None = None
) -> Bound:
    """Bound the error of a classifier that could be reconstructed from ``kept`` of its n training rows.

    A hard-margin separator can be reconstructed from its support vectors, any separator found by a linear
    programme from at most d + 1 active rows. The other n - kept rows then act as a test set, with a union
    bound over the choices of rows: an exact binomial bound with delta/(n binom(n, kept)).

    Parameters
    ----------
    kept : int
        Number of rows from which the same learner would return the same classifier.
    errors : int
        Number of errors among the other rows.
    n : int
        Number of training rows.
    delta : float, default 0.05
        One minus the confidence level.
    minority : float, optional
        Fraction of the rarer class; a bound above it is reported as vacuous.

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    clopper_pearson : From held-out rows.

    References
    ----------
    Floyd and Warmuth, Sample compression, learnability, and the Vapnik-Chervonenkis dimension, Machine Learning 21,
    1995.

    Examples
    --------
    >>> from linsep.bounds import sample_compression
    >>> print(sample_compression(kept=3, errors=0, n=1000))
    sample compression (3 of 1000 rows): error <= 0.0286 at confidence 0.95
    """
    n, kept = count("n", n), count("kept", kept, low=0)
    errors, delta = count("errors", errors, low=0), share("delta", delta, low_open=True)
    rest = n - kept
    if rest < 1 or errors > rest:
        raise BadInput(
            f"kept + errors must be at most n, and kept below n; got kept={kept}, errors={errors}, n={n}."
        )
    with_choice = binomial.log(delta) - binomial.log_choices(n, kept) - binomial.log(n)
    value = binomial.upper_limit(errors, rest, with_choice)
    note = (
        "rows drawn independently; the learner returns the same classifier from the kept rows alone"
    )
    return Bound(
        f"sample compression ({kept} of {n} rows)",
        value,
        "error",
        confidence(delta),
        note,
        "Littlestone and Warmuth 1986; Langford 2005",
        guess(minority),
    )
