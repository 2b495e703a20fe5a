"""Conversion of values to JSON and back. A model file contains only the kinds listed here; none of them is code.

=============================== ==========================================================
null, true, 1, 1.5, "x", [...]  None, bool, int, finite float, str, list
{"float": "inf"}                inf, -inf, nan
{"tuple": [...]}                tuple
{"dict": [[key, value], ...]}   dict
{"array": 3}                    the fourth array of the file
{"csr": [data, indices, ...]}   sparse matrix: data, indices, indptr, shape
{"strings": [...], "dtype": t}  array of strings; t is "object" or "str"
{"status": "CERTIFIED"}         solution.Status
{"record": name, "fields": {}}  one of RECORDS
=============================== ==========================================================
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import types
import typing
from collections.abc import Iterable
from typing import Any, Literal, Union

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import losses
from linsep.certificates import Optimality
from linsep.data.cluster import Traffic
from linsep.errors import BadModelFile, LinsepError, Refused
from linsep.losses import Loss
from linsep.model_files.container import MOST_DIMENSIONS, Arrays
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.solution import Explicit, Linearised, Status, TraceRecord
from linsep.train import Fit, Recipe
from linsep.zero_one import ZeroOne

#: Dataclasses that a model file may contain, by name. Every field is checked against its annotation.
_SAVED = (Optimality, Recipe, Fit, ElasticNet, GroupElasticNet, Linearised, Explicit, TraceRecord)
RECORDS: dict[str, type[Any]] = {kind.__name__: kind for kind in (*_SAVED, ZeroOne, Traffic)}
RECORDS.update(
    (f"loss:{kind.__name__}", kind)
    for kind in (getattr(losses, name) for name in losses.__all__)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type) and hasattr(kind, "convex")
)
_NONFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_ROOM = 64 << 20  # bytes that are always allowed for arrays that are referenced repeatedly
_KINDS = {"f": "<f8", "i": "<i8", "u": "<i8", "b": "|b1"}


def _records(more: Iterable[type[Any]]) -> dict[str, type[Any]]:
    return {**RECORDS, **{kind.__name__: kind for kind in more}}


class Writer:
    """Converter of values to JSON; arrays are collected separately, equal ones once."""

    def __init__(self, more: Iterable[type[Any]] = ()) -> None:
        self.arrays: Arrays = []
        self._names = {kind: name for name, kind in _records(more).items()}
        self._known: dict[tuple[str, tuple[int, ...], bytes], int] = {}

    def value(self, value: Any, where: str) -> Any:
        """Return JSON for one value; raise ``Refused`` if it cannot be saved, naming ``where``."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, list):
            return [self.value(item, where) for item in value]
        if isinstance(value, tuple):
            return {"tuple": [self.value(item, where) for item in value]}
        if isinstance(value, dict):
            pairs = [[self.value(k, where), self.value(v, where)] for k, v in value.items()]
            return {"dict": pairs}
        return self._object(value, where)

    def _object(self, value: Any, where: str) -> Any:
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sp.issparse(value):
            csr = sp.csr_array(value)
            parts = [csr.data, csr.indices, csr.indptr, list(csr.shape)]
            return {"csr": [self.value(part, where) for part in parts]}
        if isinstance(value, Status):
            return {"status": value.name}
        return self._record(value, where)

    def _record(self, value: Any, where: str) -> Any:
        name = self._names.get(type(value))
        if name is None:
            if isinstance(value, Loss):
                raise Refused(
                    f"{where}: the loss {type(value).__name__} is written in Python, and a model "
                    "file "
                    "holds no code. Save coef_ and intercept_ yourself, or use one of "
                    f"{', '.join(losses.NAMES)}."
                )
            raise Refused(
                f"{where} is a {type(value).__name__}, which a model file cannot hold; set it to a "
                "plain value (number, string, None) before fitting."
            )
        fields = {
            field.name: self.value(getattr(value, field.name), f"{where}.{field.name}")
            for field in dataclasses.fields(value)
        }
        return {"record": name, "fields": fields}

    def _array(self, array: npt.NDArray[Any], where: str) -> Any:
        if array.dtype.kind in "OU":
            if array.ndim == 1 and all(isinstance(item, str) for item in array.tolist()):
                dtype = "object" if array.dtype.kind == "O" else "str"
                return {"strings": array.tolist(), "dtype": dtype}
            raise Refused(f"{where} is an array of objects, which a model file cannot hold.")
        if array.dtype.kind not in _KINDS or array.ndim > MOST_DIMENSIONS:
            raise Refused(f"{where} is an array of {array.dtype}, which a model file cannot hold.")
        small = array.dtype.str if array.dtype.str in ("<f4", "<i4") else _KINDS[array.dtype.kind]
        plain = np.ascontiguousarray(array).astype(small, copy=False).reshape(array.shape)
        key = (plain.dtype.str, plain.shape, hashlib.sha256(plain.data).digest())
        if key not in self._known:
            self._known[key] = len(self.arrays)
            self.arrays.append(plain)
        return {"array": self._known[key]}


class Reader:
    """Converter of JSON to values; raises ``BadModelFile`` for anything unexpected."""

    def __init__(self, arrays: Arrays, more: Iterable[type[Any]] = ()) -> None:
        self._arrays = arrays
        self._kinds = _records(more)
        self.used: set[int] = set()
        # Prevents a small file from using much memory by referencing one array many times.
        self._room = 16 * sum(array.nbytes for array in arrays) + _ROOM

    def value(self, node: Any) -> Any:
        """Return the value of a JSON node."""
        if node is None or isinstance(node, bool | int | float | str):
            return node
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if len(node) == 1:
            ((key, inner),) = node.items()
            return self._single(key, inner)
        if set(node) == {"dtype", "strings"}:
            return self._strings(node["strings"], node["dtype"])
        if set(node) == {"record", "fields"}:
            return self._record(node["record"], node["fields"])
        raise _unknown(sorted(node))

    def _single(self, key: str, inner: Any) -> Any:
        if key == "float" and isinstance(inner, str) and inner in _NONFINITE:
            return _NONFINITE[inner]
        if key == "array" and type(inner) is int and 0 <= inner < len(self._arrays):
            self.used.add(inner)
            self._room -= self._arrays[inner].nbytes
            if self._room < 0:
                raise BadModelFile("it refers to its arrays too many times.")
            return self._arrays[inner].copy()
        if key == "status" and isinstance(inner, str) and inner in Status.__members__:
            return Status[inner]
        if isinstance(inner, list):
            if key == "tuple":
                return tuple(self.value(item) for item in inner)
            if key == "dict":
                return self._dict(inner)
            if key == "csr" and len(inner) == 4:
                return self._csr(*map(self.value, inner))
        raise _unknown([key])

    def _csr(self, data: Any, indices: Any, starts: Any, shape: Any) -> Any:
        try:
            rows = sp.csr_array((data, indices, starts), shape=tuple(shape))
            rows.check_format()
        except (ValueError, TypeError, IndexError) as error:
            raise BadModelFile(f"a sparse matrix is damaged: {error}.") from error
        return rows

    def _dict(self, pairs: list[Any]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2:
                raise BadModelFile("a dictionary is not a list of pairs.")
            key, value = map(self.value, pair)
            if not isinstance(key, str | int | float | bool | None) or key in found:
                raise BadModelFile("a dictionary has an odd or repeated key.")
            found[key] = value
        return found

    def _strings(self, values: Any, dtype: Any) -> npt.NDArray[Any]:
        if dtype not in ("object", "str") or not isinstance(values, list):
            raise BadModelFile("an array of strings is not a list of them.")
        if not all(isinstance(value, str) for value in values):
            raise BadModelFile("an array of strings holds something else.")
        if dtype == "str" and 4 * len(values) * max(map(len, values), default=0) > _ROOM:
            raise BadModelFile("an array of strings of fixed width would take more than 64 MB.")
        return np.array(values, dtype=object if dtype == "object" else str)

    def _record(self, name: Any, fields: Any) -> Any:
        kind = self._kinds.get(name) if isinstance(name, str) else None
        if kind is None or not isinstance(fields, dict):
            raise BadModelFile(f"a record of unknown kind {name!r:.60}.")
        hints = _annotations(kind)
        known = {field.name for field in dataclasses.fields(kind)}
        if not set(fields) <= known:
            raise BadModelFile(
                f"{name} has unknown fields "
                f"{sorted(set(fields) - known)!r:.80}; a "
                "newer linsep may know them."
            )
        values = {key: self.value(node) for key, node in fields.items()}
        for key, value in values.items():
            if not conforms(value, hints[key]):
                raise BadModelFile(f"{name}.{key} is not what it must be: {value!r:.60}.")
        try:
            return kind(**values)
        except (TypeError, LinsepError) as error:
            raise BadModelFile(f"{name} is not sound: {error}") from error


_ANNOTATIONS: dict[type[Any], dict[str, Any]] = {}


def _annotations(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields of a dataclass, cached because this is the slowest part of loading."""
    if kind not in _ANNOTATIONS:
        _ANNOTATIONS[kind] = typing.get_type_hints(kind)
    return _ANNOTATIONS[kind]


def _unknown(keys: list[str]) -> BadModelFile:
    return BadModelFile(f"a value of unknown kind: {', '.join(keys)!r:.80}.")


def conforms(value: Any, hint: Any) -> bool:
    """Return whether a value has the annotated type; an int is accepted for a float."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, types.UnionType):
        return any(conforms(value, one) for one in inner)
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and (
            all(conforms(item, inner[0]) for item in value)
            if inner[-1] is Ellipsis
            else len(value) == len(inner) and all(map(conforms, value, inner))
        )
    if origin is np.ndarray or origin is npt.NDArray:  # an alias of its own since numpy 2.5
        labels = Any in (inner[-1], *typing.get_args(inner[-1]))  # class labels may be strings
        return isinstance(value, np.ndarray) and value.dtype.kind in ("fibUO" if labels else "fib")
    if hint is float:
        return isinstance(value, float | int) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, type(None) if hint is None else hint)
