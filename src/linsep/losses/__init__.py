"""Losses as functions of the margin, in numpy; kernels and certificates are tested against these formulas.

A pointwise loss ``l`` acts on the margin ``m = sigma z + offset`` of a score ``z = x.w + b``:

* classification, y in {-1, +1}: ``sigma = y``, ``offset = 0``;
* regression on a target t: ``sigma = 1``, ``offset = centre - t``, so that ``centre - m = t - z``.

A loss with a field ``centre`` is a function of the residual ``centre - m``. Regression sets it to 0: the offset is then
``-t``, and no digits of the target are lost, however small it is. A loss without that field is a function of ``1 - m``,
which rounds targets to 1e-16.

Every loss has minimum 0 and depends on the margin only: data, penalty and intercept are no part of it. ``conjugate`` is
the convex conjugate ``l*(q) = sup_m (q m - l(m))``, closed at the ends of its domain and +inf outside. At a kink
``slope`` is the subgradient nearest to zero.

A loss of your own takes a few lines::

    @dataclass(frozen=True)
    class Quartic(Loss):
        name = "quartic"
        def value(self, m): return (1 - m) ** 4
        def slope(self, m): return -4 * (1 - m) ** 3
        def curvature(self, m): return 12 * (1 - m) ** 2
        def conjugate(self, q): return q + 3 * (np.abs(q) / 4) ** (4 / 3)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from linsep.errors import BadInput
from linsep.losses.checks import ConvexityCheck, DominationCheck, dominates_zero_one, is_convex
from linsep.losses.coupled import CoupledLoss, CrammerSinger, Multinomial
from linsep.losses.laws import check_laws
from linsep.losses.loss import Loss, zero_margin
from linsep.losses.piecewise_linear import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Perceptron,
    Pinball,
    ZeroOne,
)
from linsep.losses.piecewise_quadratic import (
    Huber,
    HuberisedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from linsep.losses.receding import Exponential, Logistic
from linsep.losses.scaled import LOGISTIC_BASE_2, Scaled

__all__ = [
    "LOGISTIC_BASE_2",
    "NAMES",
    "Absolute",
    "ConvexityCheck",
    "CoupledLoss",
    "CrammerSinger",
    "DominationCheck",
    "EpsilonInsensitive",
    "Exponential",
    "Hinge",
    "Huber",
    "HuberisedHinge",
    "Logistic",
    "Loss",
    "Multinomial",
    "Perceptron",
    "Pinball",
    "Scaled",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "ZeroOne",
    "dominates_zero_one",
    "get",
    "is_convex",
    "names_with",
    "zero_margin",
]

_TYPES: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in (
        ZeroOne,
        Squared,
        Absolute,
        Logistic,
        Hinge,
        Perceptron,
        Exponential,
        SquaredHinge,
        HuberisedHinge,
        Huber,
        Pinball,
        EpsilonInsensitive,
        SquaredEpsilonInsensitive,
    )
}
#: Names of the losses.
NAMES: tuple[str, ...] = tuple(_TYPES)
_DEFAULTS = {name: kind() for name, kind in _TYPES.items()}
#: Aliases from scikit-learn and American spelling, which :func:`get` also accepts. Values are scikit-learn's:
#: "squared_error" is half of "squared", "modified_huber" is max(0, 1 - m)^2, continued by -4 m below -1.
ALIASES: dict[str, Loss] = {
    "log_loss": _DEFAULTS["logistic"],
    "absolute_error": _DEFAULTS["absolute"],
    "huberized_hinge": _DEFAULTS["huberised_hinge"],
    "modified_huber": Scaled(HuberisedHinge(2.0), 4.0),
    "squared_error": Scaled(Squared(), 0.5),
    "quantile": _DEFAULTS["pinball"],
}


def names_with(fact: str) -> tuple[str, ...]:
    """Return the names of the losses for which ``fact``, an attribute of :class:`Loss`, is true.

    Parameters
    ----------
    fact : str
        An attribute of :class:`Loss`, such as "smooth".

    Returns
    -------
    tuple of str

    See Also
    --------
    get : A loss by its name.

    Examples
    --------
    >>> from linsep import losses
    >>> "logistic" in losses.names_with("smooth")
    True
    """
    return tuple(name for name, loss in _DEFAULTS.items() if getattr(loss, fact))


def get(loss: str | Loss, listed: Iterable[str] = NAMES) -> Loss:
    """Return the loss of a given name with its default parameters, or a loss unchanged.

    Parameters
    ----------
    loss : str or Loss
        A name in ``NAMES``, a name of scikit-learn for the same loss, or a loss.
    listed : list of str
        Names that the error for an unknown name lists.

    Returns
    -------
    Loss

    Raises
    ------
    BadInput
        If there is no such loss (the message lists them), or if the formulas or facts of a user-defined loss contradict
        each other.

    See Also
    --------
    names_with : Names of the losses with a property.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.get("hinge").value([0.0, 3.0])
    array([1., 0.])
    """
    if isinstance(loss, str):
        found = _DEFAULTS.get(loss) or ALIASES.get(loss)
        if found is not None:
            return found
    if isinstance(loss, Loss):
        check_laws(loss)
        return loss
    name = getattr(loss, "__name__", None)
    if name in __all__:
        raise BadInput(f"The loss must be an instance, got the class: write {name}().")
    near = get_close_matches(loss, [*NAMES, *ALIASES], 1) if isinstance(loss, str) else []
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise BadInput(
        f"Unknown loss {loss!r}{hint} Known names: {', '.join(listed)}; or pass an instance of linsep.losses.Loss."
    )
