"""Conversion of the steps of a scikit-learn pipeline to values of a model file, and back.

=================================================== =====================================================
{"step": name, "params": {...}, "fitted": {...}}    one of ``step_kinds``, with its parameters and fitted attributes
{"encoder": {...}}                                  linsep.Encoder, as returned by ``Encoder.to_dict``
{"model": null}                                     position of the model, which is stored elsewhere in the file
{"objects": [...]}                                  array of strings, numbers, None and nan
{"dtype": "<f8"}, {"type": "float64"}               numpy's dtype and scalar type
{"slice": [start, stop, step]}, {"set": [...]}      slice and set
=================================================== =====================================================

Class names are looked up only in ``step_kinds``, so a file cannot refer to arbitrary code.
"""

from __future__ import annotations

import re
import warnings
from collections import UserList
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from linsep import basis
from linsep.errors import BadModelFile, Refused
from linsep.model_files.codec import Reader, Writer
from linsep.model_files.container import Arrays
from linsep.tables import Encoder

#: Modules of scikit-learn, and their classes that a model file may contain.
_STEPS = {
    "compose": "ColumnTransformer",
    "decomposition": "PCA TruncatedSVD",
    "feature_extraction": "FeatureHasher",
    "feature_selection": "VarianceThreshold",
    "impute": "MissingIndicator SimpleImputer",
    "pipeline": "FeatureUnion Pipeline",
    "preprocessing": "Binarizer FunctionTransformer MaxAbsScaler MinMaxScaler Normalizer OneHotEncoder OrdinalEncoder "
    "PolynomialFeatures PowerTransformer QuantileTransformer RobustScaler StandardScaler",
    "feature_extraction.text": "CountVectorizer HashingVectorizer TfidfTransformer TfidfVectorizer",
}
#: Attributes that are not saved: meaningless in another process, or only used to call ``fit``.
_NOT_SAVED = {"_stop_words_id", "_metadata_request"}
#: Parameters with only one safe value: caches contain pickles, and rows must not be names of files to open.
_FIXED = {"memory": None, "input": "content"}
_DTYPE = re.compile(r"[<>|=]?(?:[fiub][1248]|O|U\d{0,4})")
_TYPES = {name: getattr(np, name) for name in ("float64", "float32", "int64", "int32", "bool_")}
_BUILTINS = {"object": object, "str": str, "float": float, "int": int}


@cache
def step_kinds() -> dict[str, type[Any]]:
    """Return the steps that a model file may contain, by name. Their modules, 15 MB, are imported on first use."""
    own = {name: getattr(basis, name) for name in basis.__all__}
    theirs = (
        (name, getattr(import_module(f"sklearn.{module}"), name))
        for module, names in _STEPS.items()
        for name in names.split()
    )
    return {**dict(theirs), **own}


class StepWriter(Writer):
    """Converter of steps and their attributes to JSON; ``model`` is the model at the end of the pipeline."""

    def __init__(self, model: Any, more: Iterable[type[Any]] = ()) -> None:
        super().__init__(more)
        self._model = model

    def value(self, value: Any, where: str) -> Any:
        """Return JSON for one value; raise ``Refused`` with the name of a step that cannot be saved."""
        if value is self._model:
            return {"model": None}
        if isinstance(value, type):
            known = {kind: name for name, kind in (_TYPES | _BUILTINS).items()}
            if value in known:
                return {"type": known[value]}
        return super().value(value, where)

    def _object(self, value: Any, where: str) -> Any:
        if isinstance(value, UserList):
            return self.value(list(value), where)
        if hasattr(value, "to_numpy"):
            return self.value(value.to_numpy(), where)
        if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.ndim == 1:
            if not all(isinstance(item, str) for item in value.tolist()):
                return {"objects": [self.value(item, where) for item in value.tolist()]}
        if hasattr(value, "get_params"):
            return self._step(value, where)
        plain = self._encode_value(value, where)
        return super()._object(value, where) if plain is None else plain

    def _encode_value(self, value: Any, where: str) -> Any:
        """Return JSON for kinds of values that occur only in steps, or None for any other."""
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return {"slice": [self.value(part, where) for part in parts]}
        if isinstance(value, set | frozenset):
            return {"set": [self.value(item, where) for item in sorted(value)]}
        return None

    def _step(self, step: Any, where: str) -> Any:
        if type(step) is Encoder:
            return {"encoder": step.to_dict()}
        name = type(step).__name__
        if step_kinds().get(name) is not type(step):
            raise Refused(
                f"{where} has a step that a model file cannot hold: {name}. It holds "
                f"{', '.join(step_kinds())} and Encoder. Save the last step of the pipeline alone, and "
                "this one your own way."
            )
        params = step.get_params(deep=False) | _resolved_columns(step)
        for key in params.keys() & _FIXED.keys():
            if params[key] != _FIXED[key]:
                raise Refused(
                    f"{where}: {name}({key}={params[key]!r:.60}) cannot be saved; set {key}={_FIXED[key]!r}."
                )
        fitted = {k: v for k, v in vars(step).items() if k not in params and k not in _NOT_SAVED}
        return {
            "step": name,
            "params": {k: self.value(v, f"{name}.{k}") for k, v in sorted(params.items())},
            "fitted": {k: self.value(v, f"{name}.{k}") for k, v in sorted(fitted.items())},
        }


def _resolved_columns(step: Any) -> dict[str, Any]:
    """Return the ``transformers`` of a ColumnTransformer with functions replaced by the columns they selected."""
    if not isinstance(step, step_kinds()["ColumnTransformer"]) or not hasattr(step, "_columns"):
        return {}
    found = [
        (name, kind, chosen if callable(columns) else columns)
        for (name, kind, columns), chosen in zip(step.transformers, step._columns, strict=True)
    ]
    return {"transformers": found}


class StepReader(Reader):
    """Converter of JSON to steps; ``model`` is inserted at the end of the pipeline."""

    def __init__(self, arrays: Arrays, more: Iterable[type[Any]] = ()) -> None:
        super().__init__(arrays, more)
        self.model: Any = None

    def value(self, node: Any) -> Any:
        """Return the value of a JSON node."""
        if isinstance(node, dict):
            if node == {"model": None}:
                return self.model
            if set(node) == {"step", "params", "fitted"}:
                return self._step(node["step"], node["params"], node["fitted"])
        return super().value(node)

    def _single(self, key: str, inner: Any) -> Any:
        if key == "dtype" and isinstance(inner, str) and _DTYPE.fullmatch(inner):
            return np.dtype(inner)
        if key == "type" and isinstance(inner, str) and inner in _TYPES | _BUILTINS:
            return (_TYPES | _BUILTINS)[inner]
        if key == "encoder":
            return Encoder.from_dict(inner)
        if isinstance(inner, list):
            if (
                key == "slice"
                and len(inner) == 3
                and all(type(i) in (int, type(None)) for i in inner)
            ):
                return slice(*inner)
            if key == "set" and all(isinstance(item, str) for item in inner):
                return frozenset(inner)
            if key == "objects":
                return self._objects([self.value(item) for item in inner])
        return super()._single(key, inner)

    def _objects(self, values: list[Any]) -> Any:
        if not all(isinstance(value, str | int | float | None) for value in values):
            raise BadModelFile("an array of objects holds something else than text and numbers.")
        found = np.empty(len(values), dtype=object)
        found[:] = values
        return found

    def _step(self, name: Any, params: Any, fitted: Any) -> Any:
        kind = step_kinds().get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(params, dict) or not isinstance(fitted, dict):
            raise BadModelFile(f"a step of unknown kind {name!r:.60}.")
        known = kind._get_param_names()
        if not set(params) <= set(known):
            raise BadModelFile(
                f"{name} has parameters that scikit-learn {sklearn.__version__} does not know: "
                f"{sorted(set(params) - set(known))!r:.80}."
            )
        values = {key: self.value(node) for key, node in params.items()}
        if any(values[key] != _FIXED[key] for key in values.keys() & _FIXED.keys()):
            raise BadModelFile(f"{name} has a parameter that no linsep would have written.")
        try:
            step = kind(**values)
        except (TypeError, ValueError) as error:
            raise BadModelFile(f"{name} is not sound: {error}") from error
        state = {key: self.value(node) for key, node in fitted.items()}
        check_attribute_names(state)
        vars(step).update(state)
        return step


def check_attribute_names(state: dict[str, Any]) -> None:
    """Raise if a name cannot be that of a fitted attribute."""
    for key in state:
        if not key.isidentifier() or not (key.endswith("_") or key.startswith("_")) or "__" in key:
            raise BadModelFile("an attribute has a name that no estimator would give it.")


def warn_of_version(written: Any) -> None:
    """Warn if the steps were saved under another version of scikit-learn."""
    if not isinstance(written, str):
        raise BadModelFile("scikit_learn is not a version.")
    if written != sklearn.__version__:
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name="Pipeline",
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=written[:40],
            ),
            stacklevel=5,
        )
