"""Restoring of encodings from plain values of untrusted model files; every value is validated."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from linsep.data.files.formats import Reading
from linsep.errors import BadInput, BadModelFile
from linsep.tables.encodings import ENCODINGS, Encoding, Text, Time

#: Largest number of columns of a hashed column or a text.
LARGEST_HASH = 1 << 26


def check_reading(data: Any) -> dict[str, Any]:
    """Return what an encoder knows of the file it was fitted to; raise unless ``read_table`` accepts it."""
    if not isinstance(data, dict) or set(data) != {"target", "decimal", "thousands", "missing"}:
        raise BadModelFile("reading must have the keys target, decimal, thousands and missing.")
    texts = data["missing"]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise BadModelFile("missing in reading is not a list of texts.")
    if not isinstance(data["target"], str | None):
        raise BadModelFile("target in reading is not the name of a column.")
    try:
        values = {name: value for name, value in data.items() if name != "target"}
        return Reading.of(**values).meaning(data["target"])
    except BadInput as error:
        raise BadModelFile(f"reading is not usable: {error}") from error


def encoding_from_dict(data: Any) -> Encoding:
    """Return the encoding that ``to_dict`` described; raise for anything else."""
    kind = ENCODINGS.get(str(data.get("type"))) if isinstance(data, dict) else None
    if kind is None:
        raise BadModelFile(f"a column has no known type: one of {', '.join(ENCODINGS)} is needed.")
    wanted = {field.name: str(field.type) for field in fields(kind)}
    if set(data) != {"type", *wanted}:
        raise BadModelFile(
            f"a column of type {kind.type!r} must have the keys {', '.join(wanted)}."
        )
    values = {key: _checked(key, data[key], wanted[key]) for key in wanted}
    if values.get("scale") == 0.0 or not 1 <= values.get("size", 1) <= LARGEST_HASH:
        raise BadModelFile(f"column {data['name']!r}: scale or size is out of range.")
    if kind is Time:
        try:
            np.datetime64(values["origin"], "us")
        except ValueError as error:
            raise BadModelFile(f"column {data['name']!r}: {error}.") from error
    if kind is Text and not (
        values["analyzer"] in ("word", "char", "char_wb")
        and 1 <= values["shortest"] <= values["longest"] <= 10
    ):
        raise BadModelFile(f"column {data['name']!r}: the n-grams are out of range.")
    return kind(**values)


def _checked(key: str, value: Any, wanted: str) -> Any:
    if wanted == "tuple[str, ...]":
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif wanted == "float":
        if isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    elif type(value).__name__ == wanted:
        return value
    raise BadModelFile(f"{key!r} of a column must be {wanted}, got {value!r:.60}.")
