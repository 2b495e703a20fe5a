"""Exceptions and warnings of linsep.

::

    ValueError
      LinsepError
        BadInput           the data or a parameter cannot be used as given
          NonFinite        NaN or infinity among the numbers
          NotNumbers       an object that is not a number; also a TypeError
          BadFile          a data file cannot be read; the error has the file, line and column
        BadModelFile       a model file is damaged, malformed or from a newer version
        SeparableData      C = inf and no minimiser exists; the direction proves it
        InseparableData    C = inf (hard margin) and no hyperplane separates the classes; the witness proves it
        Refused            the combination of loss, penalty, data and solver is not supported
        ClusterError       the cluster cannot continue: no workers, a partition that kills them, another version
        CertificateError   a certificate does not hold for this model and these data
    sklearn.exceptions.ConvergenceWarning
      ConvergenceWarning   a limit stopped the fit; the exception holds the certificate reached so far

A message says what was given, what is required and what to do. Every extra argument has a default,
so that exceptions can be pickled between processes.
"""

from __future__ import annotations

from numbers import Real
from typing import Any

import sklearn.exceptions

__all__ = [
    "BadFile",
    "BadInput",
    "BadModelFile",
    "CertificateError",
    "ClusterError",
    "ConvergenceWarning",
    "InseparableData",
    "LinsepError",
    "NonFinite",
    "NotNumbers",
    "Refused",
    "SeparableData",
]


class LinsepError(ValueError):
    """Base class of all linsep errors."""


class ClusterError(LinsepError):
    """A cluster cannot continue a fit.

    Attributes
    ----------
    partitions : tuple of int
        Numbers of the partitions that failed, counting from 0.
    """

    def __init__(self, message: str = "", partitions: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.partitions = partitions


class BadInput(LinsepError):
    """The data or a parameter cannot be used as given."""


class NonFinite(BadInput):
    """NaN or infinity in the data, detected in a solver's first pass."""


class NotNumbers(BadInput, TypeError):
    """An object that is not a number where numbers are needed."""


class BadFile(BadInput):
    """A data file cannot be read.

    Attributes
    ----------
    path : str
        The file, or ``<stdin>``.
    line, column : int or None
        Where in it, counting from 1; None if the whole file is meant.
    """

    def __init__(
        self, message: str = "", path: str = "", line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.path = path
        self.line = line
        self.column = column


class BadModelFile(LinsepError):
    """A file is not a model file, is damaged, or contains something that this version does not know."""


class Refused(LinsepError):
    """The requested combination is not supported; the message says why and what to do."""


class SeparableData(LinsepError):
    """No minimiser exists: a hyperplane separates the rows and no penalty bounds the coefficients.

    Attributes
    ----------
    direction : tuple (w, b) or None
        Along ``t * (w, b)`` the empirical risk decreases forever as t grows.
    rows : sequence of int or None
        Rows whose loss tends to its infimum along the direction.
    """

    def __init__(self, message: str = "", direction: Any = None, rows: Any = None) -> None:
        super().__init__(message)
        self.direction = direction
        self.rows = rows


class InseparableData(LinsepError):
    """The hard margin does not exist, because no hyperplane separates the classes.

    Attributes
    ----------
    witness : Inseparable or None
        Rows and weights of a point that lies in the convex hulls of both classes; see ``linsep.separate``.
    """

    def __init__(self, message: str = "", witness: Any = None) -> None:
        super().__init__(message)
        self.witness = witness


class CertificateError(LinsepError):
    """A certificate does not hold for the model and the data.

    Attributes
    ----------
    certificate : Optimality or None
        Result of the independent computation.
    """

    def __init__(self, message: str = "", certificate: Any = None) -> None:
        super().__init__(message)
        self.certificate = certificate


class ConvergenceWarning(sklearn.exceptions.ConvergenceWarning):  # type: ignore[misc]
    """Warning that a fit ended with a gap above ``tol``; ``certificate`` holds the gap proven so far."""

    def __init__(self, message: str = "", certificate: Any = None) -> None:
        super().__init__(message)
        self.certificate = certificate


def require_certificate(model: Any, caller: str) -> Any:
    """Return the certificate of a fitted model; raise if its class computes none."""
    proof = getattr(model, "certificate_", None)
    if proof is None:
        raise BadInput(
            f"{caller} needs an estimator whose fits are certified; {type(model).__name__} left no certificate. Use "
            "linsep's own estimator of that kind, or scikit-learn's GridSearchCV."
        )
    return proof


def require_tolerance(tol: Any) -> None:
    """Raise unless ``tol`` is a number strictly between 0 and 1; a relative gap of 1 or more proves nothing."""
    known = type(tol) is float or (isinstance(tol, Real) and not isinstance(tol, bool))
    if not known or not 0.0 < float(tol) < 1.0:
        raise BadInput(
            f"tol must be a number between 0 and 1, got {tol!r}: it is the relative gap to prove, for instance 1e-6 of "
            "the objective; a gap of 1 or more proves nothing, and 0 is out of reach."
        )


def require_fitted(model: Any, caller: str) -> None:
    """Raise unless ``model`` is a fitted estimator of linsep; ``caller`` is the function that needs one."""
    if hasattr(model, "certificate_"):
        return
    kind = model if isinstance(model, type) else type(model)
    if any(base.__module__.startswith("linsep.") for base in kind.__mro__):
        raise sklearn.exceptions.NotFittedError(
            f"This {kind.__name__} is not fitted: call fit before {caller}."
        )
    raise BadInput(
        f"{caller} needs a fitted estimator of linsep, or a Pipeline that ends in one; got {kind.__name__}. "
        "Use linsep.audit for models of other libraries."
    )
