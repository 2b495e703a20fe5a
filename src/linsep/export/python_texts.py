"""Text vectorizers in plain Python: scikit-learn's text analysis, counts, weights and norm."""

from __future__ import annotations

from linsep.export.formula import Document, Formula
from linsep.export.python_terms import literal

#: Source of the functions that compute the contribution of a text to the scores.
TEXT_HELPERS = '''

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


def imports(f: Formula) -> list[str]:
    """Return the imports from the standard library needed for the analysis of texts."""
    if not f.documents:
        return []
    accents = any(document.words.analysis.accents for document in f.documents)
    return ["import re", *(["import unicodedata"] if accents else [])]


def vocabulary(document: Document, number: int) -> list[str]:
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
            f"        {names[at]!r}: ({factor!r}, {literal(weights)}),"
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
