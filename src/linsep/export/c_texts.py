"""Text vectorizers in C99, which analyse UTF-8 texts like scikit-learn.

Tables in the file list the word characters and the results of lowercasing and accent stripping, as computed by the
exporting Python version. A vocabulary needs only the characters that occur in it.
"""

from __future__ import annotations

import functools
import math
import unicodedata
from collections.abc import Callable, Iterator

from linsep.errors import Refused
from linsep.export.formula import Document, Formula
from linsep.pipelines.texts import DEFAULT_PATTERN, Analysis

#: Word patterns that need no regular expressions -> minimum number of characters.
_PATTERNS = {DEFAULT_PATTERN: 2, r"\b\w\w+\b": 2, r"(?u)\b\w+\b": 1, r"\b\w+\b": 1, r"\w+": 1}
_KINDS = {"word": 0, "char": 1, "char_wb": 2}
_NORMS = {None: 0, "l1": 1, "l2": 2, "max": 3}


def headers(f: Formula) -> list[str]:
    """Return the headers needed for the analysis of texts."""
    return ["#include <stdint.h>", "#include <stdlib.h>"] if f.documents else []


def functions(f: Formula, name: str) -> list[str]:
    """Return the tables and functions of all documents."""
    if not f.documents:
        return []
    ranges = ", ".join(f"{{{low}, {high}}}" for low, high in _word_ranges())
    spaces = ", ".join(f"{{{low}, {high}}}" for low, high in _ranges(str.isspace))
    source = _C.replace("WORD_RANGES", ranges).replace("SPACE_RANGES", spaces)
    lines = source.replace("NAME", name).splitlines()
    for number, document in enumerate(f.documents):
        lines += _vectorizer(document, f"{name}_text{number}", name)
    return lines


def _vectorizer(document: Document, table: str, name: str) -> list[str]:
    """Return the constant that describes one vectorizer."""
    words, analysis = document.words, document.words.analysis
    if analysis.kind == "word" and analysis.pattern not in _PATTERNS:
        raise Refused(
            f"token_pattern={analysis.pattern!r} needs regular expressions, which C does not have; use the default "
            f"{DEFAULT_PATTERN!r}, or export.python."
        )
    hashed = words.vocabulary is None
    terms = {at: term for term, at in (words.vocabulary or {}).items()}
    entries = document.entries()
    if not hashed:
        entries = sorted(entries, key=lambda entry: terms[entry[0]].encode())
    alphabet = None if hashed else set("".join([*terms.values(), *analysis.stop_words]))
    folded = list(_replacements(analysis, alphabet))
    grow = max((-(-len(new.encode()) // len(old.encode())) for old, new in folded), default=1)
    sigma = analysis.lowercase and (alphabet is None or not alphabet.isdisjoint("σς"))
    stop = sorted(analysis.stop_words, key=str.encode)
    low, high = analysis.ngrams
    values = [
        *(_KINDS[analysis.kind], _PATTERNS.get(analysis.pattern, 1), low, high, grow, int(sigma)),
        int(analysis.accents == "ascii"),
        *(words.width if hashed else 0, int(words.signed), int(words.binary)),
        *(int(words.sublinear), _NORMS[words.norm], c_number(document.other)),
    ]
    counts = [len(folded), len(stop), len(entries)]
    arrays = [
        ("uint32_t", "from", [str(ord(old)) for old, _ in folded]),
        ("char *const", "to", [c_string(new) for _, new in folded]),
        ("char *const", "stop", [c_string(word) for word in stop]),
        ("char *const", "terms", [] if hashed else [c_string(terms[at]) for at, _, _ in entries]),
        ("uint32_t", "places", [str(at) for at, _, _ in entries] if hashed else []),
        ("double", "factor", [c_number(factor) for _, factor, _ in entries]),
        ("double", "weights", [c_number(w) for *_, row in entries for w in row]),
    ]
    lines = [
        f"static const {kind} {table}_{what}[] = {{{', '.join(items) or '0'}}};"
        for kind, what, items in arrays
    ]
    given = ", ".join(
        [*map(str, values), *map(str, counts), *(f"{table}_{a}" for _, a, _ in arrays)]
    )
    return [*lines, f"static const {name}_vectorizer {table} = {{{given}}};"]


def _replacements(analysis: Analysis, alphabet: set[str] | None) -> Iterator[tuple[str, str]]:
    """Iterate over the characters that lowercasing or accent stripping changes, with their replacements.

    A character whose replacement is a single character outside the alphabet can be omitted, because neither occurs in
    the vocabulary. With ``strip_accents="ascii"`` a million characters vanish: the C code drops all characters beyond
    ASCII that are not listed.
    """
    to_ascii = analysis.accents == "ascii"
    for old, new in _changes(analysis.lowercase, analysis.accents):
        if to_ascii:
            if new:
                yield old, new
        elif (
            alphabet is None
            or alphabet.issuperset(new)
            or len(new) != 1
            or _is_word(old) != _is_word(new)
            or old.isspace() != new.isspace()
        ):
            yield old, new


@functools.cache
def _changes(lowercase: bool, accents: str | None) -> list[tuple[str, str]]:
    """Return all characters that change, with their replacements."""
    if not lowercase and accents is None:
        return []
    every = map(chr, [*range(1, 0xD800), *range(0xE000, 0x110000)])
    pairs = ((old, _fold(old, lowercase, accents)) for old in every)
    return [(old, new) for old, new in pairs if new != old]


def _fold(character: str, lowercase: bool, accents: str | None) -> str:
    text = character.lower() if lowercase else character
    if accents is None or text.isascii():
        return text
    parts = unicodedata.normalize("NFKD", text)
    ascii_only = accents == "ascii"
    return "".join(
        c for c in parts if (ord(c) < 128 if ascii_only else not unicodedata.combining(c))
    )


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@functools.cache
def _word_ranges() -> list[tuple[int, int]]:
    return _ranges(_is_word)


def _ranges(holds: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Return the first and last code points of the runs of characters for which ``holds`` is true."""
    found: list[tuple[int, int]] = []
    for code in range(0x110000):
        if holds(chr(code)):
            if found and found[-1][1] == code - 1:
                found[-1] = (found[-1][0], code)
            else:
                found.append((code, code))
    return found


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


_C = r"""
typedef struct {
    int kind, shortest, low, high, grow, sigma, ascii;
    uint32_t width;
    int is_signed, binary, sublinear, norm;
    double other;
    int folded, stops, entries;
    const uint32_t *from;
    const char *const *to, *const *stop, *const *terms;
    const uint32_t *places;
    const double *factor, *weights;
} NAME_vectorizer;
typedef struct { const char *at; size_t length; } NAME_piece;
typedef struct { uint32_t place; double value; } NAME_count;
typedef struct { NAME_count *items; size_t used, held; char *key; } NAME_counts;

static int NAME_within(uint32_t c, const uint32_t (*ranges)[2], int n) {
    int low = 0;
    while (low < n) {
        const int middle = (low + n) / 2;
        if (c > ranges[middle][1]) low = middle + 1;
        else if (c < ranges[middle][0]) n = middle;
        else return 1;
    }
    return 0;
}

static int NAME_is_word(uint32_t c) {
    static const uint32_t ranges[][2] = {WORD_RANGES};
    return NAME_within(c, ranges, (int)(sizeof ranges / sizeof *ranges));
}

static int NAME_is_space(uint32_t c) {
    static const uint32_t ranges[][2] = {SPACE_RANGES};
    return NAME_within(c, ranges, (int)(sizeof ranges / sizeof *ranges));
}

/* One character of UTF-8: its number of bytes, 0 if it is not valid. */
static size_t NAME_character(const unsigned char *s, uint32_t *c) {
    const size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    *c = n == 1 ? s[0] : n ? s[0] & (0xFFu >> (n + 1)) : 0;
    for (size_t i = 1; i < n; ++i) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        *c = *c << 6 | (s[i] & 0x3F);
    }
    return n;
}

static int NAME_find(const char *word, const char *const *sorted, int n) {
    int low = 0;
    while (low < n) {
        const int middle = (low + n) / 2, order = strcmp(word, sorted[middle]);
        if (order == 0) return middle;
        if (order > 0) low = middle + 1;
        else n = middle;
    }
    return -1;
}

static int NAME_find_number(uint32_t x, const uint32_t *sorted, int n) {
    int low = 0;
    while (low < n) {
        const int middle = (low + n) / 2;
        if (x == sorted[middle]) return middle;
        if (x > sorted[middle]) low = middle + 1;
        else n = middle;
    }
    return -1;
}

/* The text in lower case and without accents, as far as asked; NULL without memory or a valid text. */
static char *NAME_fold(const NAME_vectorizer *v, const char *s) {
    char *out = malloc(strlen(s) * (size_t)v->grow + 1), *end = out;
    while (out && *s) {
        uint32_t c;
        const size_t n = NAME_character((const unsigned char *)s, &c);
        if (n == 0 || (v->sigma && c == 0x3A3)) { free(out); return NULL; }
        const int at = NAME_find_number(c, v->from, v->folded);
        const char *piece = at >= 0 ? v->to[at] : v->ascii && c >= 128 ? "" : s;
        const size_t length = piece == s ? n : strlen(piece);
        memcpy(end, piece, length);
        end += length;
        s += n;
    }
    if (out) *end = 0;
    return out;
}

/* MurmurHash3 (x86, 32 bits, seed 0). */
static int64_t NAME_hash(const char *term) {
    const size_t n = strlen(term);
    uint32_t h = 0;
    for (size_t at = 0; at < n; at += 4) {
        uint32_t k = 0;
        const size_t m = n - at < 4 ? n - at : 4;
        for (size_t i = 0; i < m; ++i) k |= (uint32_t)(unsigned char)term[at + i] << 8 * i;
        k *= 0xCC9E2D51u;
        k = k << 15 | k >> 17;
        h ^= k * 0x1B873593u;
        if (m == 4) h = (h << 13 | h >> 19) * 5 + 0xE6546B64u;
    }
    h ^= (uint32_t)n;
    h = (h ^ h >> 16) * 0x85EBCA6Bu;
    h = (h ^ h >> 13) * 0xC2B2AE35u;
    h ^= h >> 16;
    return h >> 31 ? (int64_t)h - 4294967296 : (int64_t)h;
}

static int NAME_push(const NAME_vectorizer *v, NAME_counts *counts) {
    NAME_count one = {0, 1.0};
    if (v->width) {
        const int64_t h = NAME_hash(counts->key);
        one.place = (uint32_t)((h < 0 ? -h : h) % v->width);
        one.value = v->is_signed && h < 0 ? -1.0 : 1.0;
    } else {
        const int at = NAME_find(counts->key, v->terms, v->entries);
        if (at < 0) return 1;
        one.place = (uint32_t)at;
    }
    if (counts->used == counts->held) {
        const size_t held = 2 * counts->held + 64;
        NAME_count *items = realloc(counts->items, held * sizeof *items);
        if (!items) return 0;
        counts->items = items;
        counts->held = held;
    }
    counts->items[counts->used++] = one;
    return 1;
}

/* All n-grams of some pieces. */
static int NAME_grams(const NAME_vectorizer *v, const NAME_piece *pieces, size_t count, NAME_counts *counts) {
    for (size_t n = (size_t)v->low; n <= (size_t)v->high; ++n) {
        const int whole = v->kind == 2 && n >= count;
        const size_t width = whole ? count : n;
        for (size_t i = 0; i + width <= count; ++i) {
            char *end = counts->key;
            for (size_t j = i; j < i + width; ++j) {
                if (v->kind == 0 && j > i) *end++ = ' ';
                memcpy(end, pieces[j].at, pieces[j].length);
                end += pieces[j].length;
            }
            *end = 0;
            if (!NAME_push(v, counts)) return 0;
        }
        if (whole) break;
    }
    return 1;
}

/* Words that are no stop words; characters, white space run together; or the characters of every word. */
static int NAME_analyse(const NAME_vectorizer *v, const char *text, NAME_piece *pieces, NAME_counts *counts) {
    static const NAME_piece blank = {" ", 1};
    size_t count = 0;
    int length = 0;
    const char *start = text;
    for (const char *at = text;;) {
        uint32_t c = 0;
        const size_t n = *at ? NAME_character((const unsigned char *)at, &c) : 0;
        const int space = n && NAME_is_space(c);
        if (v->kind == 0) {
            if (n && NAME_is_word(c)) {
                if (length++ == 0) start = at;
            } else {
                if (length >= v->shortest && length) {
                    const size_t bytes = (size_t)(at - start);
                    memcpy(counts->key, start, bytes);
                    counts->key[bytes] = 0;
                    if (NAME_find(counts->key, v->stop, v->stops) < 0) {
                        pieces[count].at = start;
                        pieces[count++].length = bytes;
                    }
                }
                length = 0;
            }
        } else if (v->kind == 1) {
            if (space && length) pieces[count - 1] = blank;
            else if (n) { pieces[count].at = at; pieces[count++].length = n; }
            length = space;
        } else if (n && !space) {
            if (count == 0) pieces[count++] = blank;
            pieces[count].at = at;
            pieces[count++].length = n;
        } else if (count) {
            pieces[count++] = blank;
            if (!NAME_grams(v, pieces, count, counts)) return 0;
            count = 0;
        }
        if (!n) break;
        at += n;
    }
    return v->kind == 2 || NAME_grams(v, pieces, count, counts);
}

static int NAME_by_place(const void *a, const void *b) {
    const uint32_t x = ((const NAME_count *)a)->place, y = ((const NAME_count *)b)->place;
    return (x > y) - (x < y);
}

/* Add the weights of the terms to z, divided by the norm. */
static void NAME_weigh(const NAME_vectorizer *v, NAME_counts *counts, double *z) {
    size_t used = 0;
    double total = 0;
    if (counts->used) qsort(counts->items, counts->used, sizeof *counts->items, NAME_by_place);
    for (size_t i = 0; i < counts->used; ++i) {
        if (used && counts->items[used - 1].place == counts->items[i].place)
            counts->items[used - 1].value += counts->items[i].value;
        else
            counts->items[used++] = counts->items[i];
    }
    for (size_t i = 0; i < used; ++i) {
        NAME_count *one = counts->items + i;
        const int at = v->width ? NAME_find_number(one->place, v->places, v->entries) : (int)one->place;
        double x = v->binary ? 1 : one->value;
        if (v->sublinear) x = 1 + log(x);
        one->value = x *= at < 0 ? v->other : v->factor[at];
        one->place = (uint32_t)(at + 1);
        total = v->norm == 1 ? total + fabs(x) : v->norm == 2 ? total + x * x : fabs(x) > total ? fabs(x) : total;
    }
    if (v->norm == 2) total = sqrt(total);
    if (v->norm == 0 || total == 0) total = 1;
    for (size_t i = 0; i < used; ++i) {
        if (counts->items[i].place == 0) continue; /* a hash value without weights */
        const double *w = v->weights + (size_t)(counts->items[i].place - 1) * NAME_scores;
        for (int c = 0; c < NAME_scores; ++c) z[c] += counts->items[i].value / total * w[c];
    }
}

/* What a text adds to the scores; NaN if it is missing, not valid UTF-8, or memory is. */
static void NAME_text(const NAME_vectorizer *v, const char *s, double *z) {
    NAME_counts counts = {NULL, 0, 0, NULL};
    char *text = s ? NAME_fold(v, s) : NULL;
    const size_t length = text ? strlen(text) : 0;
    NAME_piece *pieces = text ? malloc((length + 3) * sizeof *pieces) : NULL;
    counts.key = text ? malloc(2 * length + 4) : NULL;
    if (pieces && counts.key && NAME_analyse(v, text, pieces, &counts)) NAME_weigh(v, &counts, z);
    else
        for (int c = 0; c < NAME_scores; ++c) z[c] = NAN;
    free(counts.key);
    free(counts.items);
    free(pieces);
    free(text);
}
"""
