"""The fewest errors of a hyperplane by enumeration in fractions: it shares nothing with linsep.

A hyperplane that has points strictly on its sides can be moved, without a point changing sides, until as many
points lie on it as determine it. So all hyperplanes through points are tried, both ways round; the points on one
are split by turning it a little, which is the same question in one dimension less.
"""

import itertools
from fractions import Fraction


def fewest(X, sign, weight):
    """Least total weight of the rows on the wrong side, exactly."""
    rows = [[Fraction(x) for x in row] + [Fraction(1)] for row in X.tolist()]
    costs = zip(sign.tolist(), weight.tolist(), strict=True)
    return _fewest(rows, [Fraction(w) if s > 0 else -Fraction(w) for s, w in costs])


def total(weight, rows):
    """The exact sum of some weights."""
    return sum((Fraction(x) for x in weight[rows].tolist()), Fraction(0))


def _fewest(rows, signed):
    positive = sum((c for c in signed if c > 0), Fraction(0))
    best = min(positive, positive - sum(signed))  # one side for all
    columns = _pivots(rows)
    if len(columns) < 2:
        return best
    rows = [[row[j] for j in columns] for row in rows]  # as many numbers as dimensions
    for chosen in itertools.combinations(rows, len(columns) - 1):
        normal = _normal(chosen)
        if normal is None:
            continue
        scores = [sum(a * b for a, b in zip(row, normal, strict=True)) for row in rows]
        pairs = list(zip(signed, scores, strict=True))
        wrong = sum((abs(c) for c, z in pairs if c * z < 0), Fraction(0))
        right = sum((abs(c) for c, z in pairs if c * z > 0), Fraction(0))
        if min(wrong, right) < best:
            on = [i for i, z in enumerate(scores) if z == 0]
            split = _fewest([rows[i] for i in on], [signed[i] for i in on])
            best = min(best, min(wrong, right) + split)
    return best


def _reduce(rows):
    """Reduced echelon form and its pivot columns."""
    rows, pivots = [list(row) for row in rows], []
    for column in range(len(rows[0]) if rows else 0):
        at = next((i for i in range(len(pivots), len(rows)) if rows[i][column] != 0), None)
        if at is None:
            continue
        top = len(pivots)
        rows[top], rows[at] = rows[at], rows[top]
        rows[top] = [x / rows[top][column] for x in rows[top]]
        for i in range(len(rows)):
            if i != top and rows[i][column] != 0:
                factor = rows[i][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[top], strict=True)]
        pivots.append(column)
    return rows, pivots


def _pivots(rows):
    return _reduce(rows)[1]


def _normal(rows):
    """A vector orthogonal to k rows of k + 1 numbers; None if they are dependent."""
    form, pivots = _reduce(rows)
    if len(pivots) < len(rows):
        return None
    free = next(j for j in range(len(rows) + 1) if j not in pivots)
    normal = [Fraction(0)] * (len(rows) + 1)
    normal[free] = Fraction(1)
    for i, j in enumerate(pivots):
        normal[j] = -form[i][free]
    return normal
