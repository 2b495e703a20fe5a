"""A subproblem with its claimed solution (``Part``), and the sums of its closing pass in plain numpy.

``verify`` uses them instead of the kernels.

Written for independence and clarity, not for speed. Rows are read in chunks of bounded memory and converted to float64;
dense and CSR rows give the same sums up to rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, squares
from linsep.data import Location, location_of
from linsep.data.mapped_vectors import release
from linsep.data.row_access import is_sparse
from linsep.interrupts import check
from linsep.losses import CoupledLoss, Loss, zero_margin
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import close_rows, feasible
from linsep.problem.duality import ClosingSums
from linsep.solution import Explicit, Linearised

Dual = Linearised | Explicit
Sums = TypeVar("Sums", bound=Any)

#: Stored entries of X per chunk.
_CHUNK = 1 << 20
#: Minimum number of rows per chunk, memory permitting.
_SHORT = 256


class Part(NamedTuple):
    """One subproblem, with the coefficients and the dual point that claim to solve it."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    fit_intercept: bool
    X: Any
    sigma: Any
    offset: FloatArray | None
    weight: FloatArray | None
    labels: Any
    W: FloatArray
    dual: Dual
    tol: float

    def vectors(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Signs, offsets and weights of all rows of a pointwise loss."""
        every, defaults = slice(0, self.X.shape[0]), (1.0, 0.0, 1.0)
        given = zip((self.sigma, self.offset, self.weight), defaults, strict=True)
        sigma, offset, weight = (vector_or_default(v, every, default) for v, default in given)
        return sigma, offset, weight


def in_memory(part: Part) -> Part:
    """Return the part with its rows and vectors loaded into memory."""
    if location_of(part.X) is Location.MEMORY:
        return part
    sigma, offset, weight, labels = (
        None if vector is None else np.asarray(vector)
        for vector in (part.sigma, part.offset, part.weight, part.labels)
    )
    X = part.X[0 : part.X.shape[0]]
    if sigma is None and labels is None:  # regression on a cluster
        sigma = np.ones(part.X.shape[0])
    return part._replace(X=X, sigma=sigma, offset=offset, weight=weight, labels=labels)


def chunk_height(X: Any) -> int:
    """Rows per chunk: memory is bounded, and sums over the rows have short chains of additions."""
    n, d = X.shape
    if not is_sparse(X):
        return _height(n, d)
    return _height(n, (X.nnz if sp.issparse(X) else X.n_entries) / max(n, 1))


def _height(n: int, per_row: float) -> int:
    return int(max(1, min(n, _CHUNK // max(per_row, 1), max(_SHORT, 2 * math.isqrt(n)))))


def longest_sum(X: Any) -> float:
    """Longest chain of additions in a sum over the rows: within a chunk, over chunks, and over partitions."""
    if location_of(X) is not Location.CLUSTER:
        height = chunk_height(X)
        return float(height + math.ceil(X.shape[0] / height))
    heights = [(part.n, _height(part.n, part.entries / part.n)) for part in X.facts]
    return float(max(h for _, h in heights) + sum(math.ceil(n / h) + 1 for n, h in heights))


def chunks(X: Any, *along: Any) -> Iterator[tuple[slice, Any]]:
    """Yield (rows, X[rows] in float64) for all rows in order.

    ``along`` are vectors with an entry for each row; if they are in files mapped by linsep, memory holds one chunk.
    """
    height = chunk_height(X)
    for start in range(0, X.shape[0], height):
        check()
        rows = slice(start, min(start + height, X.shape[0]))
        yield rows, X[rows].astype(np.float64)
        for vector in along:
            if isinstance(vector, np.ndarray):
                release(vector[rows])


def add_up(scalars: list[tuple[float, ...]]) -> list[float]:
    """Correctly rounded column sums."""
    return [math.fsum(column) for column in zip(*scalars, strict=True)]


def add_sums(found: Sequence[Sums]) -> Sums:
    """Add partial sums over the rows: scalars correctly rounded, vectors sequentially."""
    total = {}
    for field in fields(found[0]):
        values = [getattr(one, field.name) for one in found]
        scalar = isinstance(values[0], float)
        total[field.name] = math.fsum(values) if scalar else np.sum(values, axis=0)
    made: Sums = type(found[0])(**total)
    return made


def partition_sums(part: Part, sums: Callable[..., Sums]) -> list[Sums]:
    """Sums over the rows of each partition, computed on the workers; rows that are not on a cluster are one partition.

    ``sums`` is called with the loss, the rows, the signs and offsets (the labels, if the loss is coupled), the weights,
    the coefficients and the dual point.
    """
    coupled = isinstance(part.loss, CoupledLoss)
    if location_of(part.X) is not Location.CLUSTER:
        vectors = (part.labels,) if coupled else (part.sigma, part.offset)
        return [sums(part.loss, part.X, *vectors, part.weight, part.W, part.dual)]
    along: list[FloatArray] = []
    if isinstance(part.dual, Explicit):
        along = [v.T for v in (part.dual.u, part.dual.rest) if v is not None]
    on_worker = _OnWorker(sums, coupled, part.loss, part.W, None if along else part.dual)
    found: list[Sums] = part.X.apply(
        on_worker, part.sigma, part.offset, part.weight, part.labels, *along
    )
    return found


@dataclass(frozen=True, eq=False)
class _OnWorker:
    """Computes the sums of one partition, with its part of the dual point."""

    sums: Callable[..., Any]
    coupled: bool
    loss: Loss | CoupledLoss
    W: FloatArray
    dual: Dual | None

    def __call__(self, X: Any, sigma: Any, offset: Any, weight: Any, labels: Any, *u: Any) -> Any:
        dual = self.dual if self.dual is not None else Explicit(*(v.T for v in u))
        vectors = (labels,) if self.coupled else (sigma, offset)
        return self.sums(self.loss, X, *vectors, weight, self.W, dual)


def row_norms(block: Any) -> FloatArray:
    """Euclidean norm of each row."""
    return np.sqrt(np.asarray(squares(block).sum(axis=1), dtype=np.float64).ravel())


def score(block: Any, W: FloatArray) -> FloatArray:
    """x.w + b for each row and column of W; the last row of W holds the intercepts."""
    return np.asarray(block @ W[:-1] + W[-1])


def vector_or_default(values: Any, rows: slice, default: float) -> FloatArray:
    """Entries of an optional vector, or its default value."""
    if values is None:
        return np.full(rows.stop - rows.start, default)
    return np.asarray(values[rows], dtype=np.float64)


def weigh(s: FloatArray, values: FloatArray) -> FloatArray:
    """s * values; 0 where s = 0, even if the value is not finite."""
    return np.multiply(s, values, out=np.zeros_like(values), where=s > 0.0)


def nothing_to_fit(loss: Loss, sigma: Any, offset: Any, W: FloatArray) -> bool:
    """Return whether the objective is exactly zero at w = 0, without any rounding.

    With w = 0 the margins are sigma b + offset. Whether such a sum m is rounded can be decided exactly, and rounding
    never moves it across a float64 number. The loss is zero at its zero margin, in the dead zone around it, and beyond
    it if the loss does not increase with the margin (its dual variables are nonnegative).
    """
    kink, b = zero_margin(loss), float(W[-1, 0])
    if W[:-1].any() or loss.value(np.array([kink]))[0] != 0.0:
        return False
    offsets = np.zeros(1) if offset is None else offset
    if not (isinstance(offsets, np.ndarray) and (b == 0.0 or isinstance(sigma, np.ndarray))):
        return False  # rows on a cluster
    shift = sigma * b if b else np.zeros(1)
    m = shift + offsets
    part = m - shift
    exact = (shift - (m - part)) + (offsets - part) == 0.0  # Knuth's two-sum error is zero
    low, high = zero_interval(loss, kink)
    return bool(np.where(exact, (low <= m) & (m <= high), (low < m) & (m < high)).all())


def zero_interval(loss: Loss, kink: float) -> tuple[float, float]:
    """Margins around the zero margin at which the loss is exactly 0, rounded inwards."""
    low = high = kink
    if loss.dead_zone is not None and loss.dead_zone[1] > 0.0:
        ends = kink - loss.dead_zone[1], kink + loss.dead_zone[1]
        low, high = ends if kink == 0.0 else (np.nextafter(e, kink) for e in ends)
    return low, math.inf if loss.domain[0] == 0.0 else high


def dual_point(
    loss: Loss,
    dual: Dual,
    rows: slice,
    block: Any,
    sigma: FloatArray,
    offset: FloatArray,
    m: FloatArray,
    s: FloatArray | None = None,
) -> FloatArray:
    """Dual variables of a chunk, all inside the domain of the conjugate (see ``feasible``)."""
    if isinstance(dual, Explicit):
        u = np.array(dual.u[rows], dtype=np.float64).reshape(m.shape)
    else:
        base = sigma * score(block, dual.base)[:, 0] + offset
        change = sigma * score(block, dual.step)[:, 0]
        with np.errstate(over="ignore", invalid="ignore"):
            u = -(loss.slope(base) + loss.curvature(base) * change)
    return feasible(loss, u, m, np.ones_like(m) if s is None else s)


def closing_sums_numpy(
    loss: Loss,
    X: Any,
    sigma: FloatArray,
    offset: FloatArray | None,
    weight: FloatArray | None,
    W: FloatArray,
    dual: Dual,
) -> ClosingSums:
    """Compute the sums of the closing pass for a pointwise loss; W is (d+1, 1)."""
    d = X.shape[1]
    headers: list[tuple[float, ...]] = []
    v_plus, v_minus = np.zeros(d), np.zeros(d)
    for rows, block in chunks(X, sigma, offset):
        s, o = vector_or_default(weight, rows, 1.0), vector_or_default(offset, rows, 0.0)
        sign = np.asarray(sigma[rows], dtype=np.float64)
        m = sign * score(block, W)[:, 0] + o
        u = dual_point(loss, dual, rows, block, sign, o, m, s)
        sizes = score(abs(block), np.abs(W))[:, 0], row_norms(block)
        header, mass = close_rows(loss, (s, sign, o), m, u, sizes, d)
        headers.append(tuple(header.tolist()))
        v_plus += block.T @ np.maximum(mass, 0.0)
        v_minus += block.T @ np.minimum(mass, 0.0)
    head: tuple[float, float, float, float, float, float, float, float]
    head = tuple(add_up(headers))  # type: ignore[assignment]
    return ClosingSums(*head, v_plus, v_minus)
