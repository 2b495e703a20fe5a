"""Export to SQL: one SELECT that scores a table inside the database, encoder included."""

from __future__ import annotations

import math
from typing import Any

from linsep.errors import BadInput, Refused
from linsep.export.formula import Formula, Table, formula
from linsep.pipelines import expressions as ex
from linsep.tables.encodings import Boolean, Category, Encoding, Number


def sql(
    model: Any,
    table: str,
    *,
    key: str | None = None,
    proba: bool = True,
    class_column: str = "prediction",
) -> str:
    """Write the model as a SELECT in standard SQL: scores, class and probabilities of each row of ``table``.

    Numbers, booleans, categories and missing values of an :class:`~linsep.Encoder`, and the scalers, imputers,
    encoders and polynomials of a scikit-learn pipeline, are written as CASE expressions and sums; models with texts,
    times or hashed columns are refused. A NULL that no step imputes, or a level that the encoder refuses, makes the
    prediction NULL. The statement uses only CAST, CASE, TRIM, ABS, EXP and (for ``Normalizer``) SQRT; it is tested in
    SQLite and DuckDB.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
    table : str
        Name of the table or view; quoted as an identifier.
    key : str, optional
        A column to include in the result.
    proba : bool, default True
        Whether to include the probabilities, if the model has any.
    class_column : str
        Name of the column of predictions.

    Returns
    -------
    str
        The statement.

    Raises
    ------
    Refused
        If a step of the pipeline cannot be expressed.

    See Also
    --------
    python : A Python module.
    onnx : An ONNX graph.

    Examples
    --------
    >>> import linsep
    >>> from linsep import export
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> print(export.sql(model, "people", proba=False).splitlines()[0])
    SELECT "score", CASE WHEN "score" IS NULL THEN NULL WHEN "score" >= 0 THEN 'yes' ELSE 'no' END AS "prediction"
    """
    f = formula(model)
    if f.documents:
        raise Refused(
            "A text vectorizer cannot be written in portable SQL, which has no way to split a text into words; use "
            "export.python as a function of the database, or export.c or export.onnx."
        )
    scores = ["score"] if len(f.b) == 1 else [f"score_{c + 1}" for c in range(len(f.b))]
    inputs, terms = _inputs(f)
    carried = [] if key is None else [quote(key)]
    answers = [*carried, *map(quote, scores)]
    if f.classes is not None:
        answers.append(f"{_class(f, scores)} AS {quote(class_column)}")
    else:
        answers.append(f"{quote('score')} AS {quote(class_column)}")
    if proba and f.link is not None:
        answers += _probabilities(f, scores)
    sums = [
        f"{_sum(terms, f.W[c].tolist(), float(f.b[c]), _levels(f.tables, c))} AS {quote(name)}"
        for c, name in enumerate(scores)
    ]
    source = quote(table)
    inner = [*carried, *inputs]
    return "\n".join(
        [
            f"SELECT {', '.join(answers)}",
            f"FROM (SELECT {', '.join([*carried, *sums])}",
            f"      FROM (SELECT {', '.join(inner)}",
            f'            FROM {source}) AS "encoded") AS "scored"',
        ]
    )


def quote(name: str) -> str:
    """Quote an identifier."""
    if "\0" in name:
        raise BadInput(f"a name in SQL cannot hold a NUL: {name!r}.")
    return '"' + name.replace('"', '""') + '"'


def literal(value: Any) -> str:
    """Write a string, truth value or number as a SQL literal."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    text = str(value)
    if "\0" in text:
        raise BadInput(f"a string in SQL cannot hold a NUL: {text!r}.")
    return "'" + text.replace("'", "''") + "'"


def _number(x: float) -> str:
    """Write a number with 17 digits and an exponent, which is double precision in every dialect."""
    return f"({x:.17e})" if math.copysign(1.0, x) < 0 else f"{x:.17e}"


def _double(expression: str) -> str:
    return f"CAST({expression} AS DOUBLE PRECISION)"


def _inputs(f: Formula) -> tuple[list[str], list[str]]:
    """Return expressions for the terms and the table columns with short aliases, and the aliases of the terms."""
    if f.encoder is None:
        made = [_expression(x) for x in f.terms]
    else:
        made = [text for encoding in f.encoder.encodings_ for text in _encoding_terms(encoding)]
    names = [quote(f"x{j + 1}") for j in range(len(made))]
    looked_up = [
        f"{_expression(table.x, text=table.of_texts)} AS {quote(f's{j + 1}')}"
        for j, table in enumerate(f.tables)
    ]
    return [f"{text} AS {name}" for text, name in zip(made, names, strict=True)] + looked_up, names


def _levels(tables: list[Table], c: int) -> list[str]:
    """Return the contributions of the tables to score c."""
    return [
        _case(quote(f"s{j + 1}"), t.keys, t.values[:, c].tolist(), t.default[c], t.missing[c])
        for j, t in enumerate(tables)
    ]


def _case(x: str, keys: Any, values: Any, default: float, missing: float) -> str:
    """Write a CASE expression for the value of a key; NULL where it is undefined."""
    known = [
        f"WHEN {x} = {literal(key)} THEN {_value(v)}" for key, v in zip(keys, values, strict=True)
    ]
    cases = " ".join([f"WHEN {x} IS NULL THEN {_value(missing)}", *known])
    return f"CASE {cases} ELSE {_value(default)} END"


def _value(x: float) -> str:
    return "NULL" if math.isnan(x) else _number(x)


def _expression(x: ex.Expression, text: bool = False) -> str:
    """Write an expression in terms of the columns; a ``text`` is not cast to a number."""
    if isinstance(x, ex.Column):
        return quote(x.name) if text else _double(quote(x.name))
    if isinstance(x, ex.Truth):
        return _truth(_expression(x.x, text=True))
    if isinstance(x, ex.Affine):
        moved = f"({_expression(x.x)} - {_number(x.centre)}) / {_number(x.divisor)}"
        return f"({moved} + {_number(x.shift)})" if x.shift else f"({moved})"
    if isinstance(x, ex.Product):
        return "(" + " * ".join(map(_expression, x.factors)) + ")"
    if isinstance(x, ex.Lookup):
        of_texts = any(isinstance(key, str) for key in x.keys)
        return f"({_case(_expression(x.x, of_texts), x.keys, x.values, x.default, x.missing)})"
    if isinstance(x, ex.Clipped):
        inner, low, high = _expression(x.x), _number(x.low), _number(x.high)
        return f"CASE WHEN {inner} < {low} THEN {low} WHEN {inner} > {high} THEN {high} ELSE {inner} END"
    if isinstance(x, ex.Normalised):
        return _normalise(x)
    return _gap(x, text)


def _truth(column: str) -> str:
    return f"CASE WHEN {column} THEN 1e0 WHEN {column} IS NULL THEN NULL ELSE 0e0 END"


def _gap(x: ex.Expression, text: bool) -> str:
    """Write an imputed value, or the indicator of a missing value."""
    if isinstance(x, ex.Missing):
        inner = _expression(x.x, text=isinstance(x.marker, str | None))
        return f"CASE WHEN {_is_marker(inner, x.marker)} THEN 1e0 ELSE 0e0 END"
    assert isinstance(x, ex.Filled)
    inner = _expression(x.x, text)
    return f"CASE WHEN {_is_marker(inner, x.marker)} THEN {literal(x.value)} ELSE {inner} END"


def _is_marker(x: str, marker: Any) -> str:
    return f"{x} IS NULL" if marker is None else f"{x} = {literal(marker)}"


def _normalise(x: ex.Normalised) -> str:
    if x.norm == "max":
        raise Refused(
            "Normalizer(norm='max') cannot be written in portable SQL; use norm='l1' or 'l2', or another export."
        )
    parts = [_expression(part) for part in x.row]
    if x.norm == "l1":
        norm = _nest_sum([f"ABS({part})" for part in parts])
    else:
        norm = f"SQRT({_nest_sum([f'{part} * {part}' for part in parts])})"
    return f"({_expression(x.x)} / CASE WHEN {norm} = 0 THEN 1e0 ELSE {norm} END)"


def _encoding_terms(encoding: Encoding) -> list[str]:
    if encoding.type == "drop":
        return []
    column = quote(encoding.name)
    absent = f"CASE WHEN {column} IS NULL THEN 1e0 ELSE 0e0 END"
    if isinstance(encoding, Number):
        value = (
            f"CASE WHEN {column} THEN 1e0 ELSE 0e0 END"
            if isinstance(encoding, Boolean)
            else _double(column)
        )
        x = f"CASE WHEN {column} IS NULL THEN {_number(encoding.fill)} ELSE {value} END"
        if encoding.mean != 0.0 or encoding.scale != 1.0:
            x = f"({x} - {_number(encoding.mean)}) / {_number(encoding.scale)}"
        return [x, *([absent] if encoding.indicator else [])]
    if isinstance(encoding, Category):
        return _categories(encoding, column, absent)
    raise Refused(
        f"The column {encoding.name!r} is encoded as {encoding.type}, which portable SQL cannot express: "
        "fit without that column (linsep fit --ignore), or score the rows with linsep predict."
    )


def _categories(encoding: Category, column: str, absent: str) -> list[str]:
    text = f"TRIM({column})"
    made = [
        f"CASE WHEN {text} = {literal(level)} THEN 1e0 ELSE 0e0 END" for level in encoding.levels
    ]
    if encoding.other:
        known = ", ".join(map(literal, encoding.levels))
        unknown = f"{column} IS NOT NULL" + (f" AND {text} NOT IN ({known})" if known else "")
        if not encoding.indicator:
            unknown = f"{column} IS NULL OR ({unknown})"
        made.append(f"CASE WHEN {unknown} THEN 1e0 ELSE 0e0 END")
    return [*made, *([absent] if encoding.indicator else [])]


def _sum(terms: list[str], row: list[float], b: float, more: list[str]) -> str:
    products = (f"{_number(w)} * {x}" for w, x in zip(row, terms, strict=True))
    return _nest_sum([_number(b), *products, *more])


def _nest_sum(parts: list[str]) -> str:
    """Write a sum as a balanced tree, so that the nesting stays within the limits of parsers."""
    while len(parts) > 1:
        parts = [f"({' + '.join(parts[at : at + 8])})" for at in range(0, len(parts), 8)]
    return parts[0]


def _class(f: Formula, scores: list[str]) -> str:
    assert f.classes is not None
    names = [quote(score) for score in scores]
    if len(names) == 1:
        first, second = map(literal, f.classes)
        return f"CASE WHEN {names[0]} IS NULL THEN NULL WHEN {names[0]} >= 0 THEN {second} ELSE {first} END"
    first_wins = _first_largest(names, f.classes)
    return f"CASE WHEN {' + '.join(names)} IS NULL THEN NULL {first_wins} END"


def _first_largest(names: list[str], classes: list[Any]) -> str:
    """Write the first class whose score is the maximum."""
    cases = []
    for name, label in zip(names[:-1], classes, strict=False):
        others = " AND ".join(f"{name} >= {other}" for other in names if other != name)
        cases.append(f"WHEN {others} THEN {literal(label)}")
    return f"{' '.join(cases)} ELSE {literal(classes[-1])}"


def _logistic(score: str, sign: str = "") -> str:
    """Write 1 / (1 + e^-z) without overflow."""
    z = f"{sign}{score}"
    return (
        f"CASE WHEN {score} IS NULL THEN NULL WHEN {z} >= 0 THEN 1e0 / (1e0 + EXP(-ABS({score}))) "
        f"ELSE EXP(-ABS({score})) / (1e0 + EXP(-ABS({score}))) END"
    )


def _probabilities(f: Formula, scores: list[str]) -> list[str]:
    assert f.classes is not None
    labels = [quote(f"probability_{c + 1}") for c in range(len(f.classes))]
    names = [quote(score) for score in scores]
    if f.link == "logistic":
        made = [_logistic(names[0], "-"), _logistic(names[0])]
    elif f.link == "softmax":
        # p_c = 1 / sum_a e^(z_a - z_c): an overflowing term would mean p_c = 0
        made = [
            "1e0 / (" + " + ".join(_bounded_exp(f"{other} - {name}") for other in names) + ")"
            for name in names
        ]
    else:
        parts = [f"({_logistic(name)})" for name in names]
        total = " + ".join(parts)
        made = [f"{part} / ({total})" for part in parts]
    return [f"{text} AS {label}" for text, label in zip(made, labels, strict=True)]


def _bounded_exp(z: str) -> str:
    return f"EXP(CASE WHEN {z} > 700 THEN 700e0 ELSE {z} END)"
