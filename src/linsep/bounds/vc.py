"""Vapnik-Chervonenkis theory of halfspaces: dimension, sample size, bounds on the error.

The theorems with proven constants hold for every distribution. S is the growth function of the class (Sauer: at most
sum_{k <= D} binom(2n, k) labellings of 2n rows):

* uniform: P(some h has error - empirical error >= t) <= 2 S(2n) exp(-n t^2/8)
  (Vapnik and Chervonenkis 1971; Bousquet, Boucheron and Lugosi 2004);
* realizable: P(some h without errors on the rows has error > eps) <= 2 S(2n) 2^(-n eps/2) for
  n >= 8/eps (Blumer, Ehrenfeucht, Haussler and Warmuth 1989).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

from linsep.bounds.binomial import log_growth
from linsep.bounds.bound import Bound, confidence, count, guess, share
from linsep.bounds.rounding import raised
from linsep.errors import BadInput

Constants = Literal["printed", "proven"]
IID = "rows drawn independently from one distribution"
VC = "Vapnik and Chervonenkis 1971; Bousquet, Boucheron and Lugosi 2004"
BEHW = "Blumer, Ehrenfeucht, Haussler and Warmuth 1989"


def vc_dimension(d: int, homogeneous: bool = False) -> int:
    """VC dimension of halfspaces: d + 1 in R^d, d if the boundary passes through the origin.

    ``shattering_witness(d)`` proves that it is no smaller, ``radon`` that it is no larger.

    Parameters
    ----------
    d : int
        Number of features.
    homogeneous : bool, default False
        Only halfspaces whose boundary passes through the origin.

    Returns
    -------
    int

    Raises
    ------
    BadInput
        If ``d`` is not a whole number of at least 1.

    See Also
    --------
    shattering_witness : Proves the lower bound.
    radon : Proves the upper bound.

    References
    ----------
    Vapnik and Chervonenkis, On the uniform convergence of relative frequencies of events to their probabilities, Theory
    of Probability and its Applications 16, 1971.

    Examples
    --------
    >>> from linsep.bounds import vc_dimension
    >>> vc_dimension(3)
    4
    """
    return count("d", d) + (not homogeneous)


def rows_needed(
    d: int,
    eps: float,
    delta: float = 0.05,
    setting: Literal["agnostic", "realizable"] = "agnostic",
    constants: Constants = "proven",
    homogeneous: bool = False,
) -> Bound:
    """Compute how many rows suffice to learn a halfspace of R^d.

    Parameters
    ----------
    d : int
    eps : float
        Agnostic: the halfspace with the fewest errors on the rows has an error at most eps above the best one.
        Realizable: a halfspace without errors on the rows has an error of at most eps.
    delta : float
        One minus the confidence level.
    setting : {"agnostic", "realizable"}
    constants : {"proven", "printed"}
        "printed" evaluates (D + log(1/delta))/eps^2 and (d + log(1/delta))/eps, the orders of
        magnitude in lecture notes with constant 1; it is not a guarantee.
    homogeneous : bool

    Returns
    -------
    Bound
        A number of rows.

    Raises
    ------
    BadInput
        If an argument is out of range, or ``setting`` or ``constants`` is unknown.

    See Also
    --------
    vc_bound : The error for a given number of rows.

    References
    ----------
    Blumer, Ehrenfeucht, Haussler and Warmuth, Learnability and the Vapnik-Chervonenkis dimension, Journal of the ACM
    36, 1989.

    Vapnik and Chervonenkis, On the uniform convergence of relative frequencies of events to their probabilities, Theory
    of Probability and its Applications 16, 1971.

    Examples
    --------
    >>> from linsep.bounds import rows_needed
    >>> int(rows_needed(10, eps=0.1, setting="realizable"))
    2275
    """
    D = vc_dimension(d, homogeneous)
    eps, delta = share("eps", eps, low_open=True), share("delta", delta, low_open=True)
    if setting not in ("agnostic", "realizable"):
        raise BadInput(f'setting must be "agnostic" or "realizable", got {setting!r}.')
    size, power = (D, 2) if setting == "agnostic" else (d, 1)
    at_least = _countable(math.floor(1 / Fraction(eps) ** power))
    if _is_printed(constants):
        value = _countable(math.ceil(Fraction(size - math.log(delta)) / Fraction(eps) ** power))
        note = "an order of magnitude with constant 1, not a guarantee"
        return Bound("rows needed", value, "rows", confidence(delta), note, setting)
    if setting == "agnostic":
        n = _smallest(lambda n: _excess(n, D, delta) <= eps, at_least)
        note = f"{IID}; the fewest errors on the rows are really found (NP-hard in general)"
        return Bound("rows needed", n, "rows", confidence(delta), note, f"{VC}; Hoeffding 1963")
    log = math.log(2) - math.log(delta)
    n = _smallest(
        lambda n: raised(log_growth(2 * n, D) + log) <= n * eps / 2 * math.log(2), at_least
    )
    n = _countable(max(n, math.ceil(8 / Fraction(eps))))
    note = f"{IID}; some halfspace makes no error on the distribution"
    return Bound("rows needed", n, "rows", confidence(delta), note, BEHW)


def vc_bound(
    empirical_error: float,
    n: int,
    vc_dim: int,
    delta: float = 0.05,
    constants: Constants = "printed",
    minority: float | None = None,
) -> Bound:
    """Bound the error of any member of a class of VC dimension D by its error on n training rows.

    Parameters
    ----------
    empirical_error : float
        Fraction of errors on the training rows.
    n, vc_dim : int
    delta : float
    constants : {"printed", "proven"}
        "printed": R + sqrt((D (log(2n/D) + 1) + log(4/delta))/n), the constant of lecture notes.
        "proven": R + 2 sqrt(2 (log S(2n) + log(2/delta))/n), S the growth function.
    minority : float, optional
        Fraction of the rarer class; a bound above it is reported as vacuous.

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If an argument is out of range, or ``constants`` is unknown.

    See Also
    --------
    vc_dimension : D of halfspaces.
    clopper_pearson : From held-out rows; tighter.

    References
    ----------
    Vapnik, Statistical Learning Theory, 1998.

    Examples
    --------
    >>> from linsep.bounds import vc_bound
    >>> print(vc_bound(0.1, n=10_000, vc_dim=3))
    VC bound (printed constants): error <= 0.1582 at confidence 0.95
    """
    risk, delta = share("empirical_error", empirical_error), share("delta", delta, low_open=True)
    n, D = count("n", n), count("vc_dim", vc_dim)
    if _is_printed(constants):
        D = min(D, 2 * n)  # for larger D all labellings are possible and the formula decreases
        width = math.sqrt((D * (math.log(2 * n / D) + 1) + math.log(4) - math.log(delta)) / n)
        note = f"{IID}; the class is fixed before they are seen; constant 1, which is optimistic"
    else:
        width = 2 * math.sqrt(2 * (log_growth(2 * n, D) + math.log(2) - math.log(delta)) / n)
        note = f"{IID}; the class is fixed before they are seen"
    name = f"VC bound ({constants} constants)"
    value = math.nextafter(risk + raised(width), math.inf)
    return Bound(name, value, "error", confidence(delta), note, VC, guess(minority))


def margin_dimension(d: int, radius: float, margin: float) -> int:
    """Compute 1 + min(d, R^2/rho^2), which bounds the VC dimension of hyperplanes of margin rho on a ball of radius R.

    Parameters
    ----------
    d : int
        Number of features.
    radius : float
        Radius R of a ball around all points (:func:`minimum_enclosing_ball`).
    margin : float
        Distance rho from the hyperplane to the closest point.

    Returns
    -------
    int

    Raises
    ------
    BadInput
        If ``d`` is not a whole number of at least 1, ``radius`` is negative or ``margin`` is not positive.

    See Also
    --------
    minimum_enclosing_ball : The radius.
    margin_bound : Uses it.

    References
    ----------
    Vapnik, Statistical Learning Theory, 1998.

    Examples
    --------
    >>> from linsep.bounds import margin_dimension
    >>> margin_dimension(100, radius=1.0, margin=0.5)
    5
    """
    d = count("d", d)
    if not (radius >= 0 and margin > 0 and math.isfinite(radius)):
        raise BadInput(f"radius >= 0 and margin > 0 are needed, got {radius!r} and {margin!r}.")
    return (
        1 + min(math.floor((Fraction(radius) / Fraction(margin)) ** 2), d)
        if margin < math.inf
        else 1
    )


def margin_bound(
    empirical_error: float,
    n: int,
    d: int,
    radius: float,
    margin: float,
    delta: float = 0.05,
    constants: Constants = "printed",
    minority: float | None = None,
) -> Bound:
    """Evaluate :func:`vc_bound` with D = 1 + min(d, R^2/rho^2), as lecture notes do for large margins.

    The theorem requires a class that is fixed before the rows are seen, but R and rho are computed from the rows.
    Therefore this bound explains why margins help but is not a guarantee, which its caveat states. For a guarantee
    from margins use :func:`pac_bayes_margin`.

    Parameters
    ----------
    empirical_error : float
        Fraction of errors on the training rows.
    n, d : int
        Numbers of rows and features.
    radius, margin : float
        R and rho, as in :func:`margin_dimension`.
    delta : float, default 0.05
        One minus the confidence level.
    constants : {"printed", "proven"}
        Constants of :func:`vc_bound`.
    minority : float, optional
        Fraction of the rarer class; a bound above it is reported as vacuous.

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If an argument is out of range, or ``constants`` is unknown.

    See Also
    --------
    margin_dimension : The dimension it uses.
    pac_bayes_margin : A guarantee from margins.

    References
    ----------
    Vapnik, Statistical Learning Theory, 1998.

    Examples
    --------
    >>> from linsep.bounds import margin_bound
    >>> margin_bound(0.0, n=10_000, d=500, radius=1.0, margin=0.3).vacuous
    False
    """
    D = margin_dimension(d, radius, margin)
    plain = vc_bound(empirical_error, n, D, delta, constants, minority)
    return replace(
        plain,
        name=f"margin bound (D = {D}, {constants} constants)",
        assumptions=f"{IID}; radius {radius:g} and margin {margin:g} fixed before they are seen",
        reference=f"Vapnik 1995, theorem 5.1; {VC}",
        caveat="an explanation, not a guarantee: radius and margin are read from the same rows",
    )


def discretisation_bound(
    empirical_risk: float,
    n: int,
    d: int,
    delta: float = 0.05,
    bits: int = 64,
    loss_range: float = 1.0,
) -> Bound:
    """Bound the risk of a linear predictor whose d + 1 coefficients are stored in ``bits`` bits each.

    There are at most 2^(bits (d + 1)) such predictors, a finite class. By Hoeffding's inequality, simultaneously for
    all of them, risk <= empirical risk + range sqrt((bits (d + 1) log 2 + log(1/delta))/(2n)).

    Parameters
    ----------
    empirical_risk : float
        Mean loss on the training rows, for a loss with values in an interval of length ``loss_range``.
    n, d : int
    delta : float
    bits : int, default 64
    loss_range : float, default 1

    Returns
    -------
    Bound

    Raises
    ------
    BadInput
        If an argument is out of range.

    See Also
    --------
    vc_bound : For classes with infinitely many members.

    References
    ----------
    Shalev-Shwartz and Ben-David, Understanding Machine Learning, 2014, remark 4.1.

    Examples
    --------
    >>> from linsep.bounds import discretisation_bound
    >>> print(discretisation_bound(0.1, n=1_000_000, d=3))
    discretisation bound (2^256 predictors): risk <= 0.1095 at confidence 0.95
    """
    n, d, bits = count("n", n), count("d", d), count("bits", bits)
    delta = share("delta", delta, low_open=True)
    if not (math.isfinite(empirical_risk) and 0 < loss_range < math.inf):
        raise BadInput(
            f"empirical_risk must be finite and loss_range positive and finite (the loss must be "
            f"bounded), got {empirical_risk!r} and {loss_range!r}."
        )
    log_size = bits * (d + 1) * math.log(2)
    width = loss_range * math.sqrt((log_size - math.log(delta)) / (2 * n))
    note = f"{IID}; the loss stays within an interval of length {loss_range:g}"
    return Bound(
        f"discretisation bound (2^{bits * (d + 1)} predictors)",
        math.nextafter(empirical_risk + raised(width), math.inf),
        "risk",
        confidence(delta),
        note,
        "Hoeffding 1963 with a union over the class",
        loss_range,
    )


def _excess(n: int, D: int, delta: float) -> float:
    """Excess error of the empirical minimiser: uniform bound for it, Hoeffding for the best, delta/2 each."""
    log = -math.log(delta)
    uniform = math.sqrt(8 * (log_growth(2 * n, D) + math.log(4) + log) / n)
    return raised(uniform + math.sqrt((math.log(2) + log) / (2 * n)))


def _smallest(enough: Callable[[int], bool], low: int) -> int:
    """Return the smallest n for which the monotone predicate ``enough`` holds; it does not hold for ``low`` >= 1."""
    high = low
    while not enough(high):
        low, high = high, _countable(2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _countable(n: int) -> int:
    """Return a number of rows, or raise if it is too large for a float."""
    if n > 2**1000:
        raise BadInput("eps is too small: more than 1e301 rows would be needed.")
    return n


def _is_printed(constants: str) -> bool:
    if constants not in ("printed", "proven"):
        raise BadInput(f'constants must be "printed" or "proven", got {constants!r}.')
    return constants == "printed"
