"""Linear models for scikit-learn with a proof of optimality: every fit ends with a certificate that others can check.

>>> from linsep import LogisticRegression
>>> model = LogisticRegression(C=1.0).fit(X, y)                     # doctest: +SKIP
>>> print(model.certificate_)                                       # doctest: +SKIP
certified optimum: objective ..., relative gap ... <= tol 1e-06, ...

Public names are loaded on first use, which keeps ``import linsep`` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linsep import basis, bounds, datasets, errors, export, losses, plot
    from linsep.auditing import audit
    from linsep.certificates import screen, verify
    from linsep.data import checkpoint, scan
    from linsep.errors import ConvergenceWarning
    from linsep.estimators import (
        LinearClassifier,
        LinearRegressor,
        LinearSVC,
        LinearSVCCV,
        LogisticRegression,
        LogisticRegressionCV,
        Perceptron,
        SGDClassifier,
        ZeroOneClassifier,
        separate,
    )
    from linsep.hyperplane import Hyperplane
    from linsep.inference import summary
    from linsep.model_files import load, save
    from linsep.monitoring import progress
    from linsep.online import check_schedule
    from linsep.report import write_report
    from linsep.tables import Encoder, read_libsvm, read_table
    from linsep.tuning import path, tune

    __version__: str

__all__ = [
    "ConvergenceWarning",
    "Encoder",
    "Hyperplane",
    "LinearClassifier",
    "LinearRegressor",
    "LinearSVC",
    "LinearSVCCV",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "SGDClassifier",
    "ZeroOneClassifier",
    "__version__",
    "audit",
    "basis",
    "bounds",
    "check_schedule",
    "checkpoint",
    "datasets",
    "errors",
    "export",
    "load",
    "losses",
    "path",
    "plot",
    "progress",
    "read_libsvm",
    "read_table",
    "save",
    "scan",
    "screen",
    "separate",
    "summary",
    "tune",
    "verify",
    "write_report",
]

# Public name -> the module that defines it, or the module itself.
_HOME = {
    "ConvergenceWarning": "linsep.errors",
    "Hyperplane": "linsep.hyperplane",
    "Encoder": "linsep.tables",
    "LinearClassifier": "linsep.estimators",
    "LinearRegressor": "linsep.estimators",
    "LinearSVC": "linsep.estimators",
    "LinearSVCCV": "linsep.estimators",
    "LogisticRegression": "linsep.estimators",
    "LogisticRegressionCV": "linsep.estimators",
    "Perceptron": "linsep.estimators",
    "SGDClassifier": "linsep.estimators",
    "ZeroOneClassifier": "linsep.estimators",
    "audit": "linsep.auditing",
    "basis": "linsep.basis",
    "bounds": "linsep.bounds",
    "check_schedule": "linsep.online",
    "checkpoint": "linsep.data",
    "datasets": "linsep.datasets",
    "errors": "linsep.errors",
    "export": "linsep.export",
    "load": "linsep.model_files",
    "losses": "linsep.losses",
    "path": "linsep.tuning",
    "plot": "linsep.plot",
    "progress": "linsep.monitoring",
    "separate": "linsep.estimators",
    "read_libsvm": "linsep.tables",
    "read_table": "linsep.tables",
    "save": "linsep.model_files",
    "scan": "linsep.data",
    "screen": "linsep.certificates",
    "summary": "linsep.inference",
    "tune": "linsep.tuning",
    "verify": "linsep.certificates",
    "write_report": "linsep.report",
}
#: Classes that exist only in linsep.sklearn.
_DROP_IN = (
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVR",
    "QuantileRegressor",
    "Ridge",
    "RidgeClassifier",
    "SGDRegressor",
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("linsep")
    elif name in _HOME:
        try:
            module = import_module(_HOME[name])
        except AttributeError as error:  # Python would report that linsep has no such name
            raise ImportError(f"cannot load {_HOME[name]}: {error}") from error
        value = module if module.__name__ == f"linsep.{name}" else getattr(module, name)
    else:
        hint = _hint(name)
        raise AttributeError(f"module 'linsep' has no attribute {name!r}{hint}")
    globals()[name] = value
    return value


def _hint(name: str) -> str:
    """Return advice on where to find a name that linsep does not export."""
    from difflib import get_close_matches

    if name in _DROP_IN:
        return f"; linsep.sklearn has a {name}"
    near = get_close_matches(name, __all__, 1)
    return f"; did you mean {near[0]!r}?" if near else ""


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
