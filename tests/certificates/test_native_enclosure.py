"""Every term of the compiled enclosure is there: kernels/sums/, grid/ and softmax/closing.hpp against their formulas.

Each case is one in which a single term decides, so that a kernel without it fails here. ``python .ci/mutants.py``
compiles kernels that lack one term each and shows which test notices; docs/certificates.md has the table.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from enclosure_terms import SAFETY, pieces

from linsep import _kernels
from linsep.certificates.softmax import softmax_sums_numpy
from linsep.data import Memory
from linsep.losses import (
    Absolute,
    CrammerSinger,
    Hinge,
    Logistic,
    Multinomial,
    Squared,
    SquaredHinge,
)
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.problem.closing_rows import ROUNDOFF, TINY, score_share
from linsep.problem.coupled import CoupledProblem
from linsep.problem.duality import ClosingSums, CoupledSums
from linsep.problem.max_margin import MaxMarginProblem
from linsep.solution import Explicit
from linsep.solvers.grid.newton import Grid, Plan


def flat(conj=(0.0, 0.0), mass=(1.0, 1.0), sizes=(0.0, 0.0, 0.0), v=((0.0,), (0.0,))):
    """Sums of a closing pass: magnitude, absolute and spread are ``sizes``."""
    return np.array([0.0, *conj, *mass, *sizes, *v[0], *v[1]])


MANY = 1e9  # rows: adding up costs more than the scores do
#: name: (the term of ``pieces``, sums, w, lam, rows, intercept)
DECISIVE = {
    "score": ("score", flat(sizes=(1.0, 0.0, 0.0)), [0.0], 1.0, 0.0, False),
    "chain": ("chain", flat(sizes=(0.0, 1.0, 0.0)), [0.0], 1.0, 0.0, False),
    "v, along the minimiser": (
        "v, first order",
        flat(sizes=(9.0, 0.0, 1.0), v=((1.0,), (0.0,))),
        [-9.0],
        *(1.0, MANY, False),
    ),
    "v, along w": (
        "v, first order",
        flat(sizes=(1.0, 0.0, 1.0), v=((1e3,), (0.0,))),
        [1e3],
        *(1.0, MANY, False),
    ),
    "v, off w": (
        "v, first order",
        flat(sizes=(0.0, 0.0, 1.0), v=((2.0,), (0.0,))),
        [1.0],
        *(1.0, MANY, False),
    ),
    "v, second order": (
        "v, second order",
        flat(sizes=(0.0, 0.0, 1.0)),
        [0.0],
        *(1e-30, MANY, False),
    ),
    "balance of conjugates": ("balance", flat(conj=(-1.0, 0.0)), [0.0], 1.0, MANY, True),
    "balance of other conjugates": ("balance", flat(conj=(0.0, -1.0)), [0.0], 1.0, MANY, True),
    "balance of v": ("balance", flat(v=((1.0,), (0.0,))), [0.0], 1.0, MANY, True),
    "balance, second order": (
        "v, second order",
        flat(v=((1e3,), (-1e3,))),
        [0.0],
        *(1e-30, MANY, True),
    ),
    "penalty": ("penalty", flat(), [1.0], 1.0, 0.0, False),
    "penalty of v": ("penalty", flat(v=((1.0,), (0.0,))), [0.0], 1.0, 0.0, False),
    "underflow of w": ("underflow", flat(), [0.0], 1e300, 0.0, False),
    "underflow of v": ("underflow", flat(), [0.0], 1e-300, 0.0, False),
    "underflow of the rest": ("underflow", flat(v=((), ())), [], 1.0, 0.0, False),
}


class TestEnclosed:
    @pytest.mark.parametrize("name", DECISIVE)
    def test_the_allowance_holds_every_term(self, name):
        term, sums, w, lam, rows, intercept = DECISIVE[name]
        w = np.array(w)
        parts = pieces(
            *(ClosingSums.from_flat(sums, len(w)), w), lam=lam, rows=rows, fit_intercept=intercept
        )
        whole = math.fsum(parts.values())
        assert parts[term] >= 0.4 * whole
        _, _, rounding = _kernels.enclose(sums, np.append(w, 0.0), lam, intercept, rows)
        assert rounding >= SAFETY * whole * (1 - 1e-9)
        assert rounding <= SAFETY * whole * (1 + 1e-9)

    @pytest.mark.parametrize("place", [1, 2, 5, 6, 7, 8, 9])  # masses are sums of |s u|
    def test_what_is_not_finite_is_not_bounded(self, place):
        sums = flat(conj=(-1.0, -1.0), sizes=(1.0, 1.0, 1.0), v=((1.0,), (-0.5,)))
        sums[place] = math.nan
        primal, bound, rounding = _kernels.enclose(sums, np.zeros(2), 1.0, True, 10.0)
        assert not math.isfinite(primal - bound + rounding)

    @pytest.mark.parametrize("conj", [-0.1, -3.0, 0.5])
    def test_the_bound_is_that_of_a_balanced_point(self, conj):
        """Sides of mass 2 and 1: the first is halved. Then the best multiple is taken."""
        sums = flat(conj=(2.0 * conj, conj), mass=(2.0, 1.0), v=((4.0, 0.0), (1.0, 1.0)))
        _, bound, _ = _kernels.enclose(sums, np.zeros(3), 2.0, True, 10.0)
        total, square = 2.0 * conj, 3.0**2 + 1.0
        share = min(1.0, -total * 2.0 / square) if total < 0.0 else 1.0
        assert bound == pytest.approx(-share * total - share**2 * square / 4.0, rel=1e-14)


# --- the sums ---------------------------------------------------------------------------------------------------


def layouts(X):
    """The rows in every storage that holds these numbers."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    sparse = sp.csr_matrix(X)
    yield _kernels.Rows(X)
    yield _kernels.Rows(sparse.data, sparse.indices, sparse.indptr, X.shape[1])
    with np.errstate(over="ignore", under="ignore"):
        single = X.astype(np.float32)
    if np.array_equal(single, X):
        yield _kernels.Rows(single)


def headers(loss, X, theta, *, u=None, offset=None, weight=None, base=None, step=None):
    """[magnitude, absolute, spread] for each storage; one class, so that sigma is 1."""
    n, d = np.shape(X)
    theta = np.array(theta)
    for rows in layouts(X):
        out = np.zeros(8 + 2 * d)
        targets = _kernels.Targets(
            np.ones(n), *(None if a is None else np.array(a) for a in (offset, weight))
        )
        start = theta if base is None else np.array(base)
        move = np.zeros(d + 1) if step is None else np.array(step)
        dual = None if u is None else np.array(u)
        kernel = _kernels.Loss(loss.native, *loss.params)
        _kernels.closing(rows, targets, kernel, 0, n, start, move, theta, dual, out)
        yield out[5:8]


def dot(x, w):
    return sum((abs(Fraction(a) * Fraction(b)) for a, b in zip(x, w, strict=True)), Fraction(0))


def at_least(found, exact):
    """Whether a float is at least the number, up to the rounding of a few positive terms."""
    return Fraction(float(found)) >= exact * (1 - Fraction(1, 10**12)) and found > 0.0


#: Rows of two features with w = (1, 1), b = 0 unless the case says otherwise; the number is the least magnitude.
MAGNITUDES = {
    "features": (Hinge(), {"X": [[3.0, -5.0]], "theta": [1.0, 1.0, 0.0]}, 8),
    "intercept": (Hinge(), {"X": [[0.5, 0.0]], "theta": [1.0, 1.0, -1e10]}, 10**10),
    "offset": (Hinge(), {"X": [[0.5, 0.0]], "theta": [1.0, 1.0, 0.0], "offset": [-1e10]}, 10**10),
    "weight": (Hinge(), {"X": [[3.0, -5.0]], "theta": [1.0, 1.0, 0.0], "weight": [64.0]}, 512),
    "slope, though u is 0": (
        Hinge(),
        {"X": [[3.0, -5.0]], "theta": [1.0, 1.0, 0.0], "u": [0.0]},
        8,
    ),
    "u, though the slope is 0": (
        Hinge(),
        {"X": [[3.0, 5.0]], "theta": [1.0, 1.0, 0.0], "u": [0.5]},
        4,
    ),
    "on the kink": (Hinge(), {"X": [[9.0, -8.0]], "theta": [1.0, 1.0, 0.0], "u": [0.0]}, 17),
    "beyond the kink by rounding alone": (
        Hinge(),
        {"X": [[9.0 + 2.0**-48, -8.0]], "theta": [1.0, 1.0, 0.0], "u": [0.0]},
        17,
    ),
    "squared hinge, beyond the kink": (
        SquaredHinge(),
        {"X": [[2.0**60, -(2.0**60)]], "theta": [1.0, 1.0, 1.0], "u": [0.0]},
        Fraction(2**122 * 18, 2**53),
    ),
    "squared, at its minimum": (
        Squared(),
        {"X": [[2.0**60, -(2.0**60)]], "theta": [1.0, 1.0, 1.0], "u": [0.0]},
        Fraction(2**122 * 18, 2**53),
    ),
    "logistic, a margin that rounding hides": (
        Logistic(),
        {"X": [[2.0**60, -(2.0**60) + 2.0**8]], "theta": [1.0, 1.0, 0.0], "u": [0.0]},
        2**60,
    ),
    "absolute, at its minimum": (
        Absolute(),
        {"X": [[2.0**60, -(2.0**60)]], "theta": [1.0, 1.0, 1.0], "u": [0.0]},
        2**61,
    ),
    "a step that cancels its base": (
        Hinge(),
        {
            "X": [[1.0, 0.0]],
            "theta": [0.5, 0.0, 0.0],
            "base": [1e10, 0.0, 0.0],
            "step": [0.5 - 1e10, 0.0, 0.0],
        },
        2 * 10**10 - 1,
    ),
    "an intercept that cancels its base": (
        Hinge(),
        {
            "X": [[1.0, 0.0]],
            "theta": [0.0, 0.0, 0.5],
            "base": [0.0, 0.0, 1e10],
            "step": [0.0, 0.0, 0.5 - 1e10],
        },
        2 * 10**10 - 1,
    ),
    "products that underflow": (
        Hinge(),
        {"X": [[1e-200, 0.0]], "theta": [1e-200, 0.0, 0.0]},
        Fraction(1, 10**400),
    ),
}


class TestClosingSums:
    @pytest.mark.parametrize("name", MAGNITUDES)
    def test_magnitude(self, name):
        """sum s max(|u|, steepest slope) (|x|.|w| + |b| + |offset|)."""
        loss, given, least = MAGNITUDES[name]
        for magnitude, _, _ in headers(loss, **given):
            assert at_least(magnitude, Fraction(least))

    @pytest.mark.parametrize(
        ("loss", "given", "least"),
        [
            (Hinge(), {"theta": [-7.0, 0.0, 0.0], "u": [0.0]}, 8.0),  # the loss alone
            (Hinge(), {"theta": [7.0, 0.0, 0.0], "u": [0.75]}, 0.75),  # the conjugate alone
            (Hinge(), {"theta": [7.0, 0.0, 0.0], "u": [0.5], "offset": [1e9]}, 5e8),  # u offset
            (Hinge(), {"theta": [-7.0, 0.0, 0.0], "u": [0.0], "weight": [0.25]}, 2.0),
            (Hinge(), {"theta": [7.0, 0.0, 0.0], "u": [0.0]}, 2 * TINY),  # s + 1 of them
            (Hinge(), {"theta": [7.0, 0.0, 0.0], "u": [0.0], "weight": [1e100]}, 1e100 * TINY),
            (Hinge(), {"theta": [7.0, 0.0, 0.0], "u": [0.0], "weight": [5e-324]}, TINY),
        ],
        ids=["loss", "conjugate", "offset", "weight", "tiny", "tiny with a weight", "tiny weight"],
    )
    def test_absolute(self, loss, given, least):
        """sum s (|l| + |l*| + |u offset|), and 2^-960 (1 + s) for each row."""
        for _, absolute, _ in headers(loss, [[1.0, 0.0]], **given):
            assert at_least(absolute, Fraction(least))

    @pytest.mark.parametrize(
        ("X", "u", "weight", "least"),
        [
            ([[3.0, 4.0]], 0.5, 1.0, 2.5),
            ([[3.0, 4.0]], 0.5, 8.0, 20.0),
            ([[3e-170, 4e-170]], 1.0, 1.0, 5e-170),  # squares that underflow
            ([[1e-200, 0.0]], 1.0, 1e-60, 1e-260),
            ([[1.0, 0.0]], 1e-300, 1.0, TINY),  # a u that is set to 0
            ([[0.0, 0.0]], 0.5, 1.0, TINY),
        ],
    )
    def test_spread(self, X, u, weight, least):
        """sum s |u| |x|, and 2^-960 for each row."""
        for _, _, spread in headers(Hinge(), X, [0.0, 0.0, 0.0], u=[u], weight=[weight]):
            assert at_least(spread, Fraction(least))

    def test_rows_of_weight_zero_are_not_there(self):
        for found in headers(Squared(), [[1e200, 0.0]], [1e200, 0.0, 0.0], weight=[0.0]):
            assert np.all(found <= 16 * TINY)  # of the padding of a vector

    @pytest.mark.parametrize("proposed", [1.5, -0.5, math.inf, math.nan])
    def test_a_dual_number_outside_the_domain_is_not_used(self, proposed):
        for rows in layouts([[1.0]]):
            out, found = np.zeros(10), np.zeros(1)
            targets, theta = _kernels.Targets(np.ones(1), None, None), np.zeros(2)
            _kernels.closing(
                *(rows, targets, _kernels.Loss("hinge"), 0, 1, theta, theta, theta),
                *(np.array([proposed]), out, found),
            )
            assert 0.0 <= found[0] <= 1.0
            assert -out[1] - out[2] <= 1.0

    @pytest.mark.parametrize("seed", range(8))
    def test_the_rounding_of_the_losses_is_within_the_allowance(self, seed):
        """Cancelling margins near the kink: the sum of the losses, in fractions, beside what the sums allow."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(0, 14, 3)
        theta = np.append(rng.normal(size=3) / np.abs(X).max(axis=0), rng.normal())
        offset = rng.normal(size=40) * 10.0 ** rng.integers(-3, 9)
        exact = Fraction(0)
        for x, o in zip(X.tolist(), offset.tolist(), strict=True):
            pairs = zip([*x, 1.0, o], [*theta.tolist(), 1.0], strict=True)
            margin = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
            exact += max(1 - margin, Fraction(0))
        for rows in layouts(X):
            out = np.zeros(14)
            targets = _kernels.Targets(np.ones(40), offset, None)
            start = np.zeros(4)
            _kernels.closing(
                rows, targets, _kernels.Loss("hinge"), 0, 40, theta, start, theta, np.zeros(40), out
            )
            allowed = score_share(3) * out[5] + (40 + 40) * ROUNDOFF * out[6]
            assert abs(Fraction(float(out[0])) - exact) <= Fraction(float(allowed))


# --- many models at once ----------------------------------------------------------------------------------------


def grid_header(loss, x, base, step, offset=None, weight=1.0):
    """[magnitude, absolute, spread] of one row and its mirror image, which has weight 0, in a grid of one model."""
    X = np.array([x, [-a for a in x]])
    offset = None if offset is None else np.array([offset, 0.0])
    data = Memory(X, np.array([1.0, -1.0]), offset, np.array([weight, 0.0]))
    grid = Grid(Problem(loss, ElasticNet(1.0), data), np.full(2, -1), [1.0])
    (model,) = grid.close([Plan(0, -1, np.array(base), np.array(step))], 1e-6, None)
    return model.sums[5:8]


class TestGridSums:
    @pytest.mark.parametrize(
        ("loss", "x", "base", "step", "offset", "least"),
        [
            (Hinge(), [3.0, -4.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0], None, 5),
            (Hinge(), [0.5, 0.0], [1.0, 0.0, -1e10], [0.0, 0.0, 0.0], None, 10**10),
            (Hinge(), [0.5, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], -1e10, 10**10),
            (Hinge(), [1.0, 0.0], [2.0, 0.0, 0.0], [-4.0, 0.0, 0.0], None, 6),  # u = 0, slope 1
            (Hinge(), [1.0, 0.0], [-2.0, 0.0, 0.0], [6.0, 0.0, 0.0], None, 8),  # u = 1, slope 0
            (Hinge(), [1.0, 0.0], [2.0, 0.0, 0.0], [-1.0, 0.0, 0.0], None, 3),  # on the kink
            (Hinge(), [2.0**60, 0.0], [2.0**-59, 0.0, 0.0], [0.0, 0.0, -1.0], None, 3),
            (
                *(SquaredHinge(), [2.0**40, 0.0], [1.0, 0.0, 1.0], [-1.0, 0.0, 0.0]),
                *(None, Fraction(2**82 * 18, 2**53)),
            ),
        ],
        ids=["features", "intercept", "offset", "slope", "u", "kink", "error", "squared hinge"],
    )
    def test_magnitude(self, loss, x, base, step, offset, least):
        assert at_least(grid_header(loss, x, base, step, offset)[0], Fraction(least))

    @pytest.mark.parametrize(
        ("base", "step", "offset", "weight", "least"),
        [
            ([2.0, 0.0, 0.0], [-9.0, 0.0, 0.0], None, 1.0, 8.0),  # u = 0: the loss alone
            ([-2.0, 0.0, 0.0], [9.0, 0.0, 0.0], None, 1.0, 1.0),  # loss 0: the conjugate alone
            ([-2.0, 0.0, 0.0], [2e9, 0.0, 0.0], -1e9, 1.0, 1e9 + 1.0),  # u offset
            ([7.0, 0.0, 0.0], [0.0, 0.0, 0.0], None, 1e100, 1e100 * TINY),
            ([7.0, 0.0, 0.0], [0.0, 0.0, 0.0], None, 5e-324, 2 * TINY),
        ],
        ids=["loss", "conjugate", "offset", "tiny with a weight", "tiny"],
    )
    def test_absolute(self, base, step, offset, weight, least):
        found = grid_header(Hinge(), [1.0, 0.0], base, step, offset, weight)
        assert at_least(found[1], Fraction(least))

    @pytest.mark.parametrize(
        ("x", "weight", "least"),
        [([3.0, 4.0], 2.0, 10.0), ([3e-170, 4e-170], 1.0, 5e-170), ([0.0, 0.0], 1e-300, 2 * TINY)],
    )
    def test_spread(self, x, weight, least):
        found = grid_header(Hinge(), x, [0.0, 0.0, 0.0], [0.0, 0.0, 0.0], None, weight)
        assert at_least(found[2], Fraction(least))

    @pytest.mark.parametrize("margin", [-40.0, -1.0, 0.0, 1.0, 40.0])
    def test_series_near_a_base(self, margin):
        """The logistic loss at a step of 1/8: sums of series bound those of the terms."""
        for step in (-0.12, 0.0, 0.12):
            base, move = [margin, 0.0, 0.0], [step, 0.0, 0.0]
            found = grid_header(Logistic(), [1.0, 0.0], base, move)
            alone = grid_header(Logistic(), [0.0, 1.0], [0.0, 0.0, margin], [0.0, 0.0, step])
            m = margin + step
            p, value = 1.0 / (1.0 + math.exp(margin)), float(np.logaddexp(0.0, -m))
            u = p - p * (1.0 - p) * step
            steep = max(u, 1.0 / (1.0 + math.exp(m)))
            conj = abs(u * math.log(u) + (1.0 - u) * math.log1p(-u)) if u < 1.0 else 0.0
            for each in (found, alone):
                assert each[0] >= steep * (abs(margin) + abs(step)) * (1 - 1e-9)
                assert each[1] >= (value + conj) * (1 - 1e-9)
            assert found[2] >= u * (1 - 1e-9)


# --- several classes --------------------------------------------------------------------------------------------


def coupled(kind, X, y, s, W, U):
    """Sums by the kernels and by numpy."""
    data = Memory(np.array(X), weight=np.array(s), labels=np.array(y))
    problem = MaxMarginProblem if kind is CrammerSinger else CoupledProblem
    k, d = W.shape[1], W.shape[0] - 1
    native = problem(kind(k), ElasticNet(1.0), data).closing(W, Explicit(U))
    text = softmax_sums_numpy(kind(k), np.array(X), np.array(y), np.array(s), W, Explicit(U))
    return CoupledSums.from_flat(native, d, k), text


def dual_rows(y, p):
    """U = onehot(y) - p for rows p of which the entries off the label are given."""
    U = -np.array(p)
    for i, label in enumerate(y):
        U[i, label] = 0.0
        U[i, label] = -U[i].sum()
    return U


#: Two rows of class 0 and one of each other class; the scores at W, and p off the label.
LEADS = {
    "u = 0, large losses": (-30.0, 0.0),
    "no losses, large u": (60.0, 0.3),
    "p_y near 0": (60.0, 0.4999),
    "at the kink": (1.0, 0.0),
    "ordinary": (0.3, 0.2),
}


@pytest.mark.parametrize("kind", [Multinomial, CrammerSinger])
class TestCoupledSums:
    @pytest.mark.parametrize("name", LEADS)
    def test_sums_bound_those_of_the_rows(self, kind, name):
        lead, p = LEADS[name]
        y = [0, 0, 1, 2]
        X = np.eye(3)[y] * [[1.0, 1.0, 1.0]]
        W = np.vstack([np.eye(3) * lead, np.zeros((1, 3))])
        native, text = coupled(kind, X, y, np.ones(4), W, dual_rows(y, np.full((4, 3), p)))
        for field in ("magnitude", "absolute", "spread", "bulk"):
            assert getattr(native, field) >= getattr(text, field) * (1 - 1e-9), field

    def test_a_lead_that_rounding_may_have_made(self, kind):
        """Scores of 2^60 that cancel: the row may lie on either side."""
        X = [[2.0**60, 2.0**60, 0.0]] * 2
        W = np.array([[1.0, 1.0], [-1.0, -1.0], [0.0, 0.0], [50.0, -50.0]])
        native, _ = coupled(kind, X, [0, 1], [1.0, 0.0], W, np.zeros((2, 2)))
        assert native.magnitude >= 2.0**61

    @pytest.mark.parametrize(
        ("x", "s", "p", "least"),
        [
            (1e-170, 1.0, 0.5, 0.5e-170),  # squares of x underflow
            (1e100, 1.0, 1e-170, 1e-70),  # squares of U underflow
            (1e150, 1e-200, 1e-150, 1e-200),  # s U underflows
            (1.0, 1.0, 0.5, 0.5),
        ],
    )
    def test_spread(self, kind, x, s, p, least):
        y = [0, 1]
        U = dual_rows(y, [[0.0, p], [p, 0.0]])
        native, _ = coupled(kind, [[x], [x]], y, [s, s], np.zeros((2, 2)), U)
        assert native.spread >= least
        assert native.bulk >= s * x * (1 - 1e-9)

    @pytest.mark.parametrize("outside", [[[0.5, -0.5], [0.0, 0.0]], [[-1.5, 1.5], [0.0, 0.0]]])
    def test_points_outside_the_simplex_are_not_used(self, kind, outside):
        native, _ = coupled(
            kind, [[1.0], [1.0]], [1, 0], [1.0, 1.0], np.zeros((2, 2)), np.array(outside)
        )
        assert native.entropy <= 2.0 * (1.0 if kind is CrammerSinger else math.log(2.0)) * (
            1 + 1e-12
        )
        assert np.abs(native.v).max() <= 1.0
