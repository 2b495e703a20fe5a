"""Export to SQL: one SELECT that scores a table inside the database, encoder included."""

from __future__ import annotations

import math
from typing import Any

from linsep.errors import BadInput, Refused
from linsep.export.formula import Formula, Table, Writer, formula
from linsep.pipelines import expressions as ex


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


def _inputs(f: Formula) -> tuple[list[str], list[str]]:
    """Return expressions for the terms and the table columns with short aliases, and the aliases of the terms."""
    writer = _SqlWriter()
    made = [writer.write(x) for x in f.terms]
    names = [quote(f"x{j + 1}") for j in range(len(made))]
    looked_up = [
        f"{writer.write(table.x, key=table.of_texts)} AS {quote(f's{j + 1}')}"
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


class _SqlWriter(Writer):
    """Expressions in terms of the columns."""

    def _column(self, x: ex.Column, key: bool) -> str:
        return quote(x.name) if key else f"CAST({quote(x.name)} AS DOUBLE PRECISION)"

    def _constant(self, x: ex.Constant, key: bool) -> str:
        return _number(x.value)

    def _level(self, x: ex.Level, key: bool) -> str:
        return f"TRIM({quote(x.x.name)})"

    def _truth(self, x: ex.Truth, key: bool) -> str:
        column = self.write(x.x, key=True)
        return f"CASE WHEN {column} THEN 1e0 WHEN {column} IS NULL THEN NULL ELSE 0e0 END"

    def _affine(self, x: ex.Affine, key: bool) -> str:
        moved = f"({self.write(x.x)} - {_number(x.centre)}) / {_number(x.divisor)}"
        return f"({moved} + {_number(x.shift)})" if x.shift else f"({moved})"

    def _clipped(self, x: ex.Clipped, key: bool) -> str:
        inner, low, high = self.write(x.x), _number(x.low), _number(x.high)
        return f"CASE WHEN {inner} < {low} THEN {low} WHEN {inner} > {high} THEN {high} ELSE {inner} END"

    def _product(self, x: ex.Product, key: bool) -> str:
        return "(" + " * ".join(map(self.write, x.factors)) + ")"

    def _lookup(self, x: ex.Lookup, key: bool) -> str:
        looked_up = self.write(x.x, key=x.of_texts)
        return f"({_case(looked_up, x.keys, x.values, x.default, x.missing)})"

    def _normalised(self, x: ex.Normalised, key: bool) -> str:
        if x.norm == "max":
            raise Refused(
                "Normalizer(norm='max') cannot be written in portable SQL; use norm='l1' or 'l2', or another export."
            )
        parts = [self.write(part) for part in x.row]
        if x.norm == "l1":
            norm = _nest_sum([f"ABS({part})" for part in parts])
        else:
            norm = f"SQRT({_nest_sum([f'{part} * {part}' for part in parts])})"
        return f"({self.write(x.x)} / CASE WHEN {norm} = 0 THEN 1e0 ELSE {norm} END)"

    def _missing(self, x: ex.Missing, key: bool) -> str:
        inner = self.write(x.x, key=isinstance(x.marker, str | None))
        return f"CASE WHEN {_is_marker(inner, x.marker)} THEN 1e0 ELSE 0e0 END"

    def _filled(self, x: ex.Filled, key: bool) -> str:
        inner = self.write(x.x, key)
        return f"CASE WHEN {_is_marker(inner, x.marker)} THEN {literal(x.value)} ELSE {inner} END"


def _is_marker(x: str, marker: Any) -> str:
    return f"{x} IS NULL" if marker is None else f"{x} = {literal(marker)}"


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
