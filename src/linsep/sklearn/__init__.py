"""scikit-learn's linear models, minimised by linsep: same signatures, defaults, objectives and attributes.

Each class is a subclass of scikit-learn's class of the installed version, so that parameters, validation, warnings,
tags, metadata routing and prediction are scikit-learn's own. Only the numerical routine inside ``fit`` is replaced:
linsep minimises scikit-learn's objective and stores its proof in ``certificate_``. What linsep does not support is left
to scikit-learn's routine, and the reason is logged to ``logging.getLogger("linsep.sklearn")`` at level INFO.

>>> from linsep.sklearn import LogisticRegression    # instead of sklearn.linear_model
"""

try:
    import sklearn as _scikit_learn  # noqa: F401
except ImportError as error:
    raise ImportError(
        "linsep.sklearn needs scikit-learn, whose classes it extends: pip install scikit-learn"
    ) from error

from linsep.sklearn.descent import Perceptron, SGDClassifier, SGDRegressor
from linsep.sklearn.huber import HuberRegressor
from linsep.sklearn.logistic import LogisticRegression, LogisticRegressionCV
from linsep.sklearn.regression import ElasticNet, Lasso, LinearRegression, QuantileRegressor
from linsep.sklearn.ridge import Ridge, RidgeClassifier
from linsep.sklearn.svm import LinearSVC, LinearSVR

__all__ = [
    "ElasticNet",
    "HuberRegressor",
    "Lasso",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "LogisticRegression",
    "LogisticRegressionCV",
    "Perceptron",
    "QuantileRegressor",
    "Ridge",
    "RidgeClassifier",
    "SGDClassifier",
    "SGDRegressor",
]
