"""Marks of tests that need a newer version than the lowest that linsep supports."""

import inspect

import pytest
import sklearn
from sklearn.utils.fixes import parse_version


def needs_sklearn(version, why):
    """Skip a test on scikit-learn before ``version``; ``make oldest`` runs there."""
    older = parse_version(sklearn.__version__) < parse_version(version)
    return pytest.mark.skipif(older, reason=f"scikit-learn before {version}: {why}")


def construct(kind, **options):
    """An estimator of ``kind`` with those options that this version of scikit-learn has."""
    names = inspect.signature(kind).parameters
    return kind(**{name: value for name, value in options.items() if name in names})
