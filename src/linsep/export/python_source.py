"""Export to a Python module without dependencies: scikit-learn's preprocessing and text analysis in plain Python."""

from __future__ import annotations

import math
from typing import Any

from linsep.export.formula import Document, Formula, Writer, formula
from linsep.pipelines import expressions as ex


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
    f = formula(model)
    what = "numbers" if f.plain else "values"
    lines = [
        '"""Scores of a linear model, exported by linsep."""',
        "import math",
        *_imports(f),
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
        lines.append(f"    ({_literal(known)}, {_literal(rest[0])}, {_literal(rest[1])}),")
    lines.append("]")
    for number, document in enumerate(f.documents):
        lines += _vocabulary(document, number)
    return [*lines, "", "", *_HELPERS, *(_TEXT_HELPERS if f.documents else [])]


def _python_score(f: Formula) -> list[str]:
    if f.plain:
        return [
            "    return [math.fsum(map(float.__mul__, w, map(float, row))) + b for w, b in zip(COEF, INTERCEPT)]"
        ]
    writer = _PythonWriter(set(f.texts))
    keys = [writer.write(table.x, key=True) for table in f.tables]
    return [
        f"    t = [{', '.join(map(writer.write, f.terms))}]",
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


class _PythonWriter(Writer):
    """Expressions in terms of ``row``; ``texts`` are the positions of the text columns."""

    def __init__(self, texts: set[int]) -> None:
        self._texts = texts

    def _column(self, x: ex.Column, key: bool) -> str:
        return f"row[{x.at}]" if key and x.at in self._texts else f"number(row[{x.at}])"

    def _constant(self, x: ex.Constant, key: bool) -> str:
        return repr(x.value)

    def _level(self, x: ex.Level, key: bool) -> str:
        return f"level(row[{x.x.at}])"

    def _truth(self, x: ex.Truth, key: bool) -> str:
        return self.write(x.x)

    def _affine(self, x: ex.Affine, key: bool) -> str:
        return f"(({self.write(x.x)} - {x.centre!r}) / {x.divisor!r} + {x.shift!r})"

    def _clipped(self, x: ex.Clipped, key: bool) -> str:
        return f"min(max({self.write(x.x)}, {x.low!r}), {x.high!r})"

    def _product(self, x: ex.Product, key: bool) -> str:
        return "(" + " * ".join(map(self.write, x.factors)) + ")"

    def _lookup(self, x: ex.Lookup, key: bool) -> str:
        known = _literal(dict(zip(x.keys, x.values, strict=True)))
        rest = f"{_literal(x.default)}, {_literal(x.missing)}"
        return f"look_up({self.write(x.x, key=True)}, {known}, {rest})"

    def _normalised(self, x: ex.Normalised, key: bool) -> str:
        return f"({self.write(x.x)} / norm([{', '.join(map(self.write, x.row))}], {x.norm!r}))"

    def _missing(self, x: ex.Missing, key: bool) -> str:
        return f"float(is_marker({self.write(x.x, key=True)}, {x.marker!r}))"

    def _filled(self, x: ex.Filled, key: bool) -> str:
        inner = self.write(x.x, key)
        return f"({x.value!r} if is_marker({inner}, {x.marker!r}) else {inner})"


def _literal(value: Any) -> str:
    """Write a value as a Python literal; NaN becomes ``math.nan``."""
    if isinstance(value, float) and math.isnan(value):
        return "math.nan"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(k)}: {_literal(v)}" for k, v in value.items()) + "}"
    return repr(value)


def _imports(f: Formula) -> list[str]:
    """Return the imports from the standard library needed for the analysis of texts."""
    if not f.documents:
        return []
    accents = any(document.words.analysis.accents for document in f.documents)
    return ["import re", *(["import unicodedata"] if accents else [])]


def _vocabulary(document: Document, number: int) -> list[str]:
    """Write the arguments of ``text_scores`` after the text as the constant TEXT_number."""
    words, k = document.words, document.W.shape[1]
    a, low, high = words.analysis, *words.analysis.ngrams
    analysis = (a.kind, a.lowercase, a.accents, a.pattern, set(a.stop_words), low, high)
    hashed = words.vocabulary is None
    given = (
        words.width if hashed else 0,
        words.signed,
        words.binary,
        words.sublinear,
        words.norm,
    )
    names = {j: j for j in range(words.width)} if hashed else _terms(document)
    lines = [
        f"TEXT_{number} = (",
        f"    {_analysis(analysis)},",
        *(f"    {value!r}," for value in given),
        "    {",
        *(
            f"        {names[at]!r}: ({factor!r}, {_literal(weights)}),"
            for at, factor, weights in document.entries()
        ),
        "    },",
        f"    ({document.other!r}, {[0.0] * k!r}),",
        ")",
    ]
    return lines


def _terms(document: Document) -> dict[int, str]:
    return {at: term for term, at in (document.words.vocabulary or {}).items()}


def _analysis(given: tuple[object, ...]) -> str:
    """Write the parameters of ``analysed``, with stop words in a deterministic order."""
    shown = [
        f"{{{', '.join(map(repr, sorted(value)))}}}"
        if isinstance(value, set) and value
        else repr(value)
        for value in given
    ]
    return "(" + ", ".join(shown) + ")"


#: Source of the functions that the expressions call.
_HELPERS = [
    "def missing(v):",
    "    return v is None or v != v",
    "",
    "",
    "def number(v):",
    "    return math.nan if v is None else float(v)",
    "",
    "",
    "def is_marker(v, marker):",
    "    return missing(v) if marker is None else v == marker",
    "",
    "",
    "def look_up(v, known, other, none):",
    "    return none if missing(v) else known.get(v, other)",
    "",
    "",
    "def level(v):",
    "    if missing(v):",
    "        return None",
    "    if isinstance(v, str):",
    "        return v.strip()",
    "    return str(int(v)) if float(v).is_integer() else repr(float(v))",
    "",
    "",
    "def norm(row, kind):",
    "    sizes = [abs(v) for v in row]",
    '    total = {"l1": math.fsum, "l2": lambda a: math.sqrt(math.fsum(v * v for v in a)), "max": max}[kind](sizes)',
    "    return total if total != 0 else 1.0",
]

#: Source of the functions that compute the contribution of a text to the scores.
_TEXT_HELPERS = '''

def analysed(text, kind, lowercase, accents, pattern, stop_words, low, high):
    if lowercase:
        text = text.lower()
    if accents is not None and not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c for c in text if (ord(c) < 128 if accents == "ascii" else not unicodedata.combining(c)))
    if kind == "word":
        words = [word for word in re.findall(pattern, text) if word not in stop_words]
        return [" ".join(words[i : i + n]) for n in range(low, high + 1) for i in range(len(words) - n + 1)]
    text = re.sub(r"\\s\\s+", " ", text)
    if kind == "char":
        return [text[i : i + n] for n in range(low, high + 1) for i in range(len(text) - n + 1)]
    found = []
    for word in (f" {word} " for word in text.split()):
        for n in range(low, high + 1):
            found += [word[i : i + n] for i in range(max(1, len(word) - n + 1))]
            if n >= len(word):
                break
    return found


def hash_value(term):
    """MurmurHash3 (x86, 32 bits, seed 0), signed."""
    data, h, mask = term.encode(), 0, 0xFFFFFFFF
    for at in range(0, len(data), 4):
        part = data[at : at + 4]
        k = int.from_bytes(part, "little") * 0xCC9E2D51 & mask
        h ^= ((k << 15 | k >> 17) & mask) * 0x1B873593 & mask
        if len(part) == 4:
            h = (h << 13 | h >> 19) & mask
            h = h * 5 + 0xE6546B64 & mask
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def text_scores(text, analysis, width, signed, binary, sublinear, norm, known, other):
    """Sums of the weights of the terms; ``width`` is 0 for a vocabulary, else the number of hash values."""
    if missing(text):
        return [math.nan] * len(other[1])
    counts = {}
    for term in analysed(text, *analysis):
        sign = 1.0
        if width:
            h = hash_value(term)
            sign = -1.0 if signed and h < 0 else 1.0
            term = abs(h) % width
        elif term not in known:
            continue
        counts[term] = counts.get(term, 0.0) + sign
    parts = []
    for term, count in counts.items():
        factor, weights = known.get(term, other)
        count = 1.0 if binary else count
        parts.append(((1.0 + math.log(count) if sublinear else count) * factor, weights))
    total = norm_of([value for value, _ in parts], norm)
    return [math.fsum(value * weights[c] for value, weights in parts) / total for c in range(len(other[1]))]


def norm_of(row, kind):
    return norm(row, kind) if kind and row else 1.0'''.splitlines()
