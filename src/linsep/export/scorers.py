"""Export to source code without dependencies: plain Python and C99."""

from __future__ import annotations

import re
from typing import Any

from linsep.errors import BadInput
from linsep.export import c_texts
from linsep.export.c_terms import CTerms, c_number, c_string
from linsep.export.formula import Formula, plain
from linsep.export.python_terms import HELPERS, literal, term
from linsep.export.python_texts import TEXT_HELPERS, imports, vocabulary

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def python(model: Any) -> str:
    """Write the model as a Python module without dependencies: ``score``, ``predict``, ``predict_proba``.

    It imports ``math``, and for texts ``re`` and ``unicodedata``. Each function takes one row: a sequence of numbers in
    the order of ``COLUMNS``; for a pipeline, the input of its first step, with None for a missing value; for a pipeline
    of texts, the text. A row without a score (a missing value that no step imputes, a level that the encoder refuses)
    raises ValueError.

    Parameters
    ----------
    model : fitted estimator, or Pipeline that ends in one

    Returns
    -------
    str
        Source of the module.

    Raises
    ------
    Refused
        If a step of the pipeline cannot be expressed.

    See Also
    --------
    sql : One SQL statement.
    onnx : An ONNX graph.

    Examples
    --------
    >>> import linsep
    >>> from linsep import export
    >>> model = linsep.LogisticRegression().fit([[0.0], [1.0]], ["no", "yes"])
    >>> scorer = {}
    >>> exec(export.python(model), scorer)
    >>> scorer["predict"]([2.0])
    'yes'
    """
    f = plain(model, "a Python scorer")
    what = "numbers" if f.plain else "values"
    lines = [
        '"""Scores of a linear model, exported by linsep."""',
        "import math",
        *imports(f),
        "",
        f"COLUMNS = {f.columns!r}",
        f"COEF = {f.W.tolist()!r}",
        f"INTERCEPT = {f.b.tolist()!r}",
        *([f"CLASSES = {f.classes!r}"] if f.classes is not None else []),
        *_python_tables(f),
        "",
        "",
        "def score(row):",
        *(["    row = [row] if isinstance(row, str) else row"] if f.documents else []),
        "    if len(row) != len(COLUMNS):",
        f'        raise ValueError(f"{{len(COLUMNS)}} {what} are needed, got {{len(row)}}")',
        *_python_score(f),
        "",
        "",
        "def predict(row):",
        "    z = score(row)",
        f"    return {_python_answer(f)}",
    ]
    if f.link is not None:
        lines += ["", "", "def predict_proba(row):", "    z = score(row)", *_PYTHON_LINKS[f.link]]
    return "\n".join(lines) + "\n"


def _python_tables(f: Formula) -> list[str]:
    """Write the contributions of each column to the scores: a dictionary of levels, unknown levels, missing values."""
    if f.plain:
        return []
    lines = ["TABLES = ["]
    for table in f.tables:
        known = dict(zip(table.keys, table.values.tolist(), strict=True))
        rest = (table.default.tolist(), table.missing.tolist())
        lines.append(f"    ({literal(known)}, {literal(rest[0])}, {literal(rest[1])}),")
    lines.append("]")
    for number, document in enumerate(f.documents):
        lines += vocabulary(document, number)
    return [*lines, "", "", *HELPERS, *(TEXT_HELPERS if f.documents else [])]


def _python_score(f: Formula) -> list[str]:
    if f.plain:
        return [
            "    return [math.fsum(map(float.__mul__, w, map(float, row))) + b for w, b in zip(COEF, INTERCEPT)]"
        ]
    texts = set(f.texts)
    keys = [term(table.x, texts, key=True) for table in f.tables]
    return [
        f"    t = [{', '.join(term(x, texts) for x in f.terms)}]",
        "    z = [math.fsum(map(float.__mul__, w, t)) + b for w, b in zip(COEF, INTERCEPT)]",
        f"    for key, (known, other, none) in zip([{', '.join(keys)}], TABLES):",
        "        z = [a + b for a, b in zip(z, none if missing(key) else known.get(key, other))]",
        *(
            f"    z = [a + b for a, b in zip(z, text_scores(row[{document.words.x.at}], *TEXT_{number}))]"
            for number, document in enumerate(f.documents)
        ),
        "    if any(a != a for a in z):",
        '        raise ValueError("the row has no value: a number is missing, or a level is unknown")',
        "    return z",
    ]


def _python_answer(f: Formula) -> str:
    if f.classes is None:
        return "z[0]"
    return "CLASSES[int(z[0] >= 0)]" if len(f.b) == 1 else "CLASSES[z.index(max(z))]"


_SIGMOID = [
    "    def logistic(t):",
    "        e = math.exp(-abs(t))",
    "        return (1.0 if t >= 0 else e) / (1.0 + e)",
    "",
]
_PYTHON_LINKS = {
    "logistic": [*_SIGMOID, "    return [logistic(-z[0]), logistic(z[0])]"],
    "softmax": [
        "    e = [math.exp(t - max(z)) for t in z]",
        "    return [t / math.fsum(e) for t in e]",
    ],
    "ovr": [
        *_SIGMOID,
        "    p = [logistic(t) for t in z]",
        "    if not any(p):",
        "        return [float(t == max(z)) for t in z]",
        "    return [t / math.fsum(p) for t in p]",
    ],
}


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
    f = plain(model, "a C scorer")
    k, d = f.W.shape
    terms = CTerms(f, name)
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


def _c_predict(f: Formula, name: str, terms: CTerms) -> list[str]:
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


def _c_proba(link: str, k: int, name: str, terms: CTerms) -> list[str]:
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
