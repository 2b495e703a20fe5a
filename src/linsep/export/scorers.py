"""Scorers without dependencies: plain Python and C99."""

from __future__ import annotations

import re
from typing import Any

from linsep.errors import BadInput
from linsep.export.formula import Formula, plain

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def python(model: Any) -> str:
    """A Python module without imports but ``math``: ``score``, ``predict``, ``predict_proba``.

    Each takes one row, a sequence of numbers in the order of ``COLUMNS``.

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
    lines = [
        '"""Scores of a linear model, exported by linsep."""',
        "import math",
        "",
        f"COLUMNS = {f.columns!r}",
        f"COEF = {f.W.tolist()!r}",
        f"INTERCEPT = {f.b.tolist()!r}",
        *([f"CLASSES = {f.classes!r}"] if f.classes is not None else []),
        "",
        "",
        "def score(row):",
        "    if len(row) != len(COLUMNS):",
        '        raise ValueError(f"{len(COLUMNS)} numbers are needed, got {len(row)}")',
        "    return [math.fsum(map(float.__mul__, w, map(float, row))) + b for w, b in zip(COEF, INTERCEPT)]",
        "",
        "",
        "def predict(row):",
        "    z = score(row)",
        f"    return {_python_answer(f)}",
    ]
    if f.link is not None:
        lines += ["", "", "def predict_proba(row):", "    z = score(row)", *_PYTHON_LINKS[f.link]]
    return "\n".join(lines) + "\n"


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
    """A C99 file with ``name_score``, ``name_predict`` and ``name_proba``, in need of ``math.h`` alone.

    ``name_score(x, z)`` writes the k scores of the d numbers x; ``name_predict(x)`` returns the position of
    the class in ``name_classes`` (of a regression, the predicted number); ``name_proba(x, p)`` writes
    one probability for each class. Column and class names stand in the file as strings.
    """
    if not _IDENTIFIER.fullmatch(name):
        raise BadInput(f"name must be a C identifier, got {name!r}.")
    f = plain(model, "a C scorer")
    k, d = f.W.shape
    coef = ",\n".join("    {" + ", ".join(map(_c_number, row)) + "}" for row in f.W.tolist())
    lines = [
        "/* Scores of a linear model, exported by linsep. */",
        "#include <math.h>",
        "",
        f"enum {{ {name}_columns = {d}, {name}_scores = {k} }};",
        f"const char *const {name}_names[{d}] = {{{', '.join(map(_c_string, f.columns))}}};",
        *_c_classes(f, name),
        f"static const double {name}_coef[{k}][{d}] = {{\n{coef}}};",
        f"static const double {name}_intercept[{k}] = {{{', '.join(map(_c_number, f.b.tolist()))}}};",
        "",
        f"void {name}_score(const double *x, double *z) {{",
        f"    for (int c = 0; c < {k}; ++c) {{",
        f"        z[c] = {name}_intercept[c];",
        f"        for (int j = 0; j < {d}; ++j) z[c] += {name}_coef[c][j] * x[j];",
        "    }",
        "}",
        "",
        *_c_predict(f, name),
    ]
    if f.link is not None:
        lines += ["", *_c_proba(f.link, k, name)]
    return "\n".join(lines) + "\n"


def _c_classes(f: Formula, name: str) -> list[str]:
    if f.classes is None:
        return []
    shown = ", ".join(_c_string(str(label)) for label in f.classes)
    return [f"const char *const {name}_classes[{len(f.classes)}] = {{{shown}}};"]


def _c_predict(f: Formula, name: str) -> list[str]:
    k = len(f.b)
    if f.classes is None:
        return [
            f"double {name}_predict(const double *x) {{",
            "    double z[1];",
            f"    {name}_score(x, z);",
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
    head = [f"int {name}_predict(const double *x) {{", f"    double z[{k}];"]
    return [*head, f"    {name}_score(x, z);", *choose, "}"]


def _c_proba(link: str, k: int, name: str) -> list[str]:
    logistic = [
        f"static double {name}_logistic(double t) {{",
        "    const double e = exp(-fabs(t));",
        "    return (t >= 0 ? 1.0 : e) / (1.0 + e);",
        "}",
        "",
    ]
    head = [f"void {name}_proba(const double *x, double *p) {{", f"    double z[{k}], sum = 0;"]
    score = f"    {name}_score(x, z);"
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


def _c_number(x: float) -> str:
    return float(x).hex()  # every bit


def _c_string(text: str) -> str:
    r"""A C string: everything but plain ASCII as octal bytes, which no trigraph or quote survives."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        plain_char = 32 <= byte < 127 and char not in '"\\?'
        out.append(char if plain_char else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'
