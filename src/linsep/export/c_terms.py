"""Expressions of preprocessing steps in C99, and C literals."""

from __future__ import annotations

import math
from typing import Any

from linsep.export.formula import Formula
from linsep.pipelines import expressions as ex

_HELPERS = {
    "clip": [
        "static double {name}_clip(double v, double low, double high) {{",
        "    return v < low ? low : v > high ? high : v;",
        "}}",
    ],
    "l1": [
        "static double {name}_l1(const double *v, int n) {{",
        "    double sum = 0;",
        "    for (int j = 0; j < n; ++j) sum += fabs(v[j]);",
        "    return sum == 0 ? 1 : sum;",
        "}}",
    ],
    "l2": [
        "static double {name}_l2(const double *v, int n) {{",
        "    double sum = 0;",
        "    for (int j = 0; j < n; ++j) sum += v[j] * v[j];",
        "    return sum == 0 ? 1 : sqrt(sum);",
        "}}",
    ],
    "max": [
        "static double {name}_max(const double *v, int n) {{",
        "    double most = 0;",
        "    for (int j = 0; j < n; ++j) most = fabs(v[j]) > most ? fabs(v[j]) : most;",
        "    return most == 0 ? 1 : most;",
        "}}",
    ],
}


class CTerms:
    """The terms and tables of a formula as C code, with the functions and arrays they need."""

    def __init__(self, f: Formula, name: str) -> None:
        self.f, self.name = f, name
        self.texts = f.texts
        self.numbers = [j for j in f.used if j not in self.texts]
        self._used: dict[str, None] = {}
        self._tables: list[str] = []

    @property
    def arguments(self) -> str:
        """Parameter list of a function that takes a row."""
        return "const double *x, const char *const *s" if self.texts else "const double *x"

    @property
    def passed(self) -> str:
        """Argument list that passes a row in a call."""
        return "x, s" if self.texts else "x"

    def text_names(self) -> list[str]:
        """Return the names of the text columns."""
        if not self.texts:
            return []
        shown = ", ".join(c_string(self.f.columns[j]) for j in self.texts)
        return [f"const char *const {self.name}_texts[{len(self.texts)}] = {{{shown}}};"]

    def score_body(self) -> list[str]:
        """Return the lines that compute the scores z."""
        (k, count), name, f = self.f.W.shape, self.name, self.f
        each = [f"    for (int c = 0; c < {k}; ++c) {{", f"        z[c] = {name}_intercept[c];"]
        add = f"        for (int j = 0; j < {count}; ++j) z[c] += {name}_coef[c][j] * "
        if f.plain:
            return [*each, f"{add}x[j];", "    }"]
        made = [f"    const double t[{count}] = {{{', '.join(map(self.term, f.terms))}}};"]
        lines = [
            "    (void)x;",
            *(made if count else []),
            *each,
            *([f"{add}t[j];"] if count else []),
        ]
        lines.append("    }")
        for table in f.tables:
            rows = [*table.values.tolist(), table.default.tolist(), table.missing.tolist()]
            found = self._row(table.x, table.keys, rows)
            lines.append(
                f"    {{ const double *v = {found}; for (int c = 0; c < {k}; ++c) z[c] += v[c]; }}"
            )
        for number, document in enumerate(f.documents):
            text = self.texts.index(document.words.x.at)
            lines.append(f"    {name}_text(&{name}_text{number}, s[{text}], z);")
        return lines

    def helpers(self) -> list[str]:
        """Return the functions and arrays that ``score_body`` uses; call that first."""
        functions = [line.format(name=self.name) for kind in self._used for line in _HELPERS[kind]]
        return [*functions, *self._tables]

    def term(self, x: ex.Expression) -> str:
        """Write an expression in terms of x and s."""
        if isinstance(x, ex.Column):
            text = x.at in self.texts
            return f"s[{self.texts.index(x.at)}]" if text else f"x[{self.numbers.index(x.at)}]"
        if isinstance(x, ex.Truth):
            return self.term(x.x)
        if isinstance(x, ex.Affine):
            moved = f"({self.term(x.x)} - {c_number(x.centre)}) / {c_number(x.divisor)}"
            return f"({moved} + {c_number(x.shift)})"
        if isinstance(x, ex.Clipped):
            return (
                f"{self._helper('clip')}({self.term(x.x)}, {c_number(x.low)}, {c_number(x.high)})"
            )
        if isinstance(x, ex.Product):
            return "(" + " * ".join(map(self.term, x.factors)) + ")"
        if isinstance(x, ex.Lookup):
            rows = [[value] for value in (*x.values, x.default, x.missing)]
            return f"{self._row(x.x, x.keys, rows)}[0]"
        if isinstance(x, ex.Normalised):
            row = ", ".join(map(self.term, x.row))
            return f"({self.term(x.x)} / {self._helper(x.norm)}((const double[]){{{row}}}, {len(x.row)}))"
        return self._gap(x)

    def _gap(self, x: ex.Expression) -> str:
        if isinstance(x, ex.Missing):
            return f"({self._is_marker(x.x, x.marker)} ? 1.0 : 0.0)"
        assert isinstance(x, ex.Filled)
        return f"({self._is_marker(x.x, x.marker)} ? {c_number(x.value)} : {self.term(x.x)})"

    def _is_marker(self, x: ex.Expression, marker: Any) -> str:
        inner = self.term(x)
        if isinstance(x, ex.Column) and x.at in self.texts:
            return (
                f"!{inner}"
                if marker is None
                else f"({inner} && !strcmp({inner}, {c_string(marker)}))"
            )
        return f"isnan({inner})" if marker is None else f"{inner} == {c_number(marker)}"

    def _helper(self, kind: str) -> str:
        self._used[kind] = None
        return f"{self.name}_{kind}"

    def _row(self, x: ex.Expression, keys: tuple[Any, ...], rows: list[list[float]]) -> str:
        """Write a call that finds the row of a key; ``rows`` ends with those of other keys and of a missing value."""
        number, m, k = len(self._tables), len(keys), len(rows[0])
        row = f"{self.name}_row{number}"
        of_texts = any(isinstance(key, str) for key in keys)
        kind = "const char *" if of_texts else "double "
        listed = ", ".join(map(c_string, keys) if of_texts else map(c_number, keys))
        same = "!strcmp(key, keys[j])" if of_texts else "key == keys[j]"
        values = ", ".join("{" + ", ".join(map(c_number, values)) + "}" for values in rows)
        keyed = f"    static {kind}const keys[{m}] = {{{listed}}};" if m else ""
        search = (
            f"    for (int j = 0; j < {m}; ++j)\n        if ({same}) return rows[j];" if m else ""
        )
        lines = [
            f"static const double *{row}({kind}key) {{",
            f"    static const double rows[{m + 2}][{k}] = {{{values}}};",
            keyed,
            f"    if ({'!key' if of_texts else 'isnan(key)'}) return rows[{m + 1}];",
            search,
            f"    return rows[{m}];",
            "}",
        ]
        self._tables.append("\n".join(line for line in lines if line))
        return f"{row}({self.term(x)})"


def c_number(x: float) -> str:
    """Write a number as a C literal without rounding."""
    return "NAN" if math.isnan(x) else float(x).hex()


def c_string(text: str) -> str:
    r"""Write a C string literal; quotes, backslashes, ``?`` (trigraphs) and all but printable ASCII become octal."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        plain_char = 32 <= byte < 127 and char not in '"\\?'
        out.append(char if plain_char else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'
