"""Export to a C99 file that needs only the standard library."""

from __future__ import annotations

import re
from typing import Any

from linsep.errors import BadInput
from linsep.export import c_texts
from linsep.export.c_texts import c_number, c_string
from linsep.export.formula import Formula, Writer, formula
from linsep.pipelines import expressions as ex

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def c(model: Any, name: str = "linsep") -> str:
    """Write the model as a C99 file with ``name_score``, ``name_predict`` and ``name_proba``; it needs only ``math.h``.

    ``name_score(x, z)`` writes the k scores of the d numbers x; ``name_predict(x)`` returns the position of
    the class in ``name_classes`` (for a regression, the predicted number); ``name_proba(x, p)`` writes
    one probability for each class. The file contains column and class names as strings.

    For a pipeline, x holds the input of its first step; NaN is a missing value. If some columns hold texts
    (``name_texts``), the functions take them as a second argument ``s``, an array of UTF-8 strings in which a null
    pointer is a missing value. A row without a score has NaN for scores, and ``name_predict`` returns -1.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one
    name : str, default "linsep"
        Prefix of the functions.

    Returns
    -------
    str
        Source of the file.

    Raises
    ------
    Refused
        If a step of the pipeline cannot be expressed.

    See Also
    --------
    python : A Python module.

    Examples
    --------
    >>> import linsep
    >>> from linsep import export
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> "linsep_score" in export.c(model)
    True
    """
    if not _IDENTIFIER.fullmatch(name):
        raise BadInput(f"name must be a C identifier, got {name!r}.")
    f = formula(model)
    k, d = f.W.shape
    terms = _CWriter(f, name)
    body = terms.score_body()
    coef = ",\n".join("    {" + ", ".join(map(c_number, row)) + "}" for row in f.W.tolist())
    shown = [f.columns[j] for j in terms.numbers]
    lines = [
        "/* Scores of a linear model, exported by linsep. */",
        "#include <math.h>",
        *(["#include <string.h>"] if f.texts else []),
        *c_texts.headers(f),
        "",
        f"enum {{ {name}_columns = {len(shown)}, {name}_scores = {k} }};",
        f"const char *const {name}_names[{max(1, len(shown))}] = {{{', '.join(map(c_string, shown or ['']))}}};",
        *terms.text_names(),
        *_c_classes(f, name),
        *([f"static const double {name}_coef[{k}][{d}] = {{\n{coef}}};"] if d else []),
        f"static const double {name}_intercept[{k}] = {{{', '.join(map(c_number, f.b.tolist()))}}};",
        *terms.helpers(),
        *c_texts.functions(f, name),
        "",
        f"void {name}_score({terms.arguments}, double *z) {{",
        *body,
        "}",
        "",
        *_c_predict(f, name, terms),
    ]
    if f.link is not None:
        lines += ["", *_c_proba(f.link, k, name, terms)]
    return "\n".join(lines) + "\n"


def _c_classes(f: Formula, name: str) -> list[str]:
    if f.classes is None:
        return []
    shown = ", ".join(c_string(str(label)) for label in f.classes)
    return [f"const char *const {name}_classes[{len(f.classes)}] = {{{shown}}};"]


def _c_predict(f: Formula, name: str, terms: _CWriter) -> list[str]:
    k = len(f.b)
    if f.classes is None:
        return [
            f"double {name}_predict({terms.arguments}) {{",
            "    double z[1];",
            f"    {name}_score({terms.passed}, z);",
            "    return z[0];",
            "}",
        ]
    choose = (
        ["    return z[0] >= 0;"]
        if k == 1
        else [
            "    int best = 0;",
            f"    for (int c = 1; c < {k}; ++c)",
            "        if (z[c] > z[best]) best = c;",
            "    return best;",
        ]
    )
    head = [f"int {name}_predict({terms.arguments}) {{", f"    double z[{k}];"]
    undefined = [f"    for (int c = 0; c < {k}; ++c)", "        if (isnan(z[c])) return -1;"]
    return [
        *head,
        f"    {name}_score({terms.passed}, z);",
        *([] if f.plain else undefined),
        *choose,
        "}",
    ]


def _c_proba(link: str, k: int, name: str, terms: _CWriter) -> list[str]:
    logistic = [
        f"static double {name}_logistic(double t) {{",
        "    const double e = exp(-fabs(t));",
        "    return (t >= 0 ? 1.0 : e) / (1.0 + e);",
        "}",
        "",
    ]
    head = [f"void {name}_proba({terms.arguments}, double *p) {{", f"    double z[{k}], sum = 0;"]
    score = f"    {name}_score({terms.passed}, z);"
    if link == "logistic":
        body = [f"    p[0] = {name}_logistic(-z[0]);", f"    p[1] = {name}_logistic(z[0]);", "}"]
        return [*logistic, head[0], "    double z[1];", score, *body]
    most = [
        "    int best = 0;",
        f"    for (int c = 1; c < {k}; ++c)",
        "        if (z[c] > z[best]) best = c;",
    ]
    each = "exp(z[c] - z[best])" if link == "softmax" else f"{name}_logistic(z[c])"
    return [
        *(logistic if link == "ovr" else []),
        *head,
        score,
        *most,
        f"    for (int c = 0; c < {k}; ++c) sum += p[c] = {each};",
        "    if (sum == 0) sum = p[best] = 1; /* all underflow: the largest takes everything */",
        f"    for (int c = 0; c < {k}; ++c) p[c] /= sum;",
        "}",
    ]


class _CWriter(Writer):
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
        made = [f"    const double t[{count}] = {{{', '.join(map(self.write, f.terms))}}};"]
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

    def _column(self, x: ex.Column, key: bool) -> str:
        text = x.at in self.texts
        return f"s[{self.texts.index(x.at)}]" if text else f"x[{self.numbers.index(x.at)}]"

    def _constant(self, x: ex.Constant, key: bool) -> str:
        return c_number(x.value)

    def _level(self, x: ex.Level, key: bool) -> str:
        return self.write(x.x)

    def _truth(self, x: ex.Truth, key: bool) -> str:
        return self.write(x.x)

    def _affine(self, x: ex.Affine, key: bool) -> str:
        moved = f"({self.write(x.x)} - {c_number(x.centre)}) / {c_number(x.divisor)}"
        return f"({moved} + {c_number(x.shift)})"

    def _clipped(self, x: ex.Clipped, key: bool) -> str:
        bounds = f"{c_number(x.low)}, {c_number(x.high)}"
        return f"{self._helper('clip')}({self.write(x.x)}, {bounds})"

    def _product(self, x: ex.Product, key: bool) -> str:
        return "(" + " * ".join(map(self.write, x.factors)) + ")"

    def _lookup(self, x: ex.Lookup, key: bool) -> str:
        rows = [[value] for value in (*x.values, x.default, x.missing)]
        return f"{self._row(x.x, x.keys, rows)}[0]"

    def _normalised(self, x: ex.Normalised, key: bool) -> str:
        row = ", ".join(map(self.write, x.row))
        norm = f"{self._helper(x.norm)}((const double[]){{{row}}}, {len(x.row)})"
        return f"({self.write(x.x)} / {norm})"

    def _missing(self, x: ex.Missing, key: bool) -> str:
        return f"({self._is_marker(x.x, x.marker)} ? 1.0 : 0.0)"

    def _filled(self, x: ex.Filled, key: bool) -> str:
        return f"({self._is_marker(x.x, x.marker)} ? {c_number(x.value)} : {self.write(x.x)})"

    def _is_marker(self, x: ex.Expression, marker: Any) -> str:
        inner = self.write(x)
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
        of_texts = ex.looks_up_texts(x, keys)
        kind = "const char *" if of_texts else "double "
        listed = ", ".join(map(c_string, keys) if of_texts else map(c_number, keys))
        same = "!strcmp(key, keys[j])" if of_texts else "key == keys[j]"
        if isinstance(x, ex.Level) and keys:
            same = f"{self._helper('same')}(key, keys[j])"
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
        return f"{row}({self.write(x)})"


_HELPERS = {
    "same": [
        "/* Whether a text is a level, blanks around it aside. */",
        "static int {name}_same(const char *text, const char *level) {{",
        "    const size_t n = strlen(level);",
        '    text += strspn(text, " \\t\\n\\v\\f\\r");',
        "    if (strncmp(text, level, n)) return 0;",
        '    return !text[n + strspn(text + n, " \\t\\n\\v\\f\\r")];',
        "}}",
    ],
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
