"""Export of fitted models to SQL, C, plain Python, ONNX and scikit-learn.

Every export agrees with ``decision_function``, ``predict`` and ``predict_proba`` up to rounding.
"""

from linsep.export.c_source import c
from linsep.export.onnx_graph import onnx
from linsep.export.python_source import python
from linsep.export.queries import sql
from linsep.export.scikit_learn import to_sklearn

__all__ = ["c", "onnx", "python", "sql", "to_sklearn"]
