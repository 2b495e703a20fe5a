"""
The compiled loops (kernels/README.md is the map).

All release the lock of the interpreter and add to their outputs unless they say otherwise. Outputs are written in place: an array of another type is refused, never converted.
"""

from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


def instruction_set() -> str:
    """Name of the instruction set in use."""

def instruction_sets() -> list[str]:
    """
    Names of the instruction sets that this build and this machine have, the plainest first.
    """

def use_instruction_set(name: str) -> None:
    """Switch all kernels of this process to another instruction set."""

def poll_every(seconds: float) -> None:
    """
    Time between two calls of `linsep.interrupts.check` from long loops of a thread; 0.05 s at first.
    """

class MappedFile:
    """
    Bytes of a memory-mapped file. While the object lives, a page that the file has lost reads as NaN instead of ending the process.
    """

    def __init__(self, mapped: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def cut(self) -> bool:
        """Whether a lost page was read."""

class NoMemory(MemoryError):
    """
    Scratch memory that a kernel cannot have; the words say how much, not for what.
    """

class Rows:
    """
    Rows of data: a dense array, or the three arrays of a CSR matrix, which it holds.
    """

    @overload
    def __init__(self, x: Annotated[NDArray, dict(order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, data: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], indptr: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], n_columns: int) -> None: ...

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def d(self) -> int:
        """Number of columns."""

class Targets:
    """
    Signs, offsets and weights of the rows: row i has margin sign (x.w + b) + offset and counts weight times.
    """

    def __init__(self, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Loss:
    """A native loss by its name, with its two parameters."""

    def __init__(self, name: str, width: float = 1.0, centre: float = 1.0) -> None: ...

class Classes:
    """Labels 0 .. k - 1 and weights of the rows."""

    def __init__(self, labels: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, k: int) -> None: ...

    @property
    def padded(self) -> int:
        """k, padded to a multiple of 8: the columns of a weight matrix."""

def libsvm_count(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> tuple[int, int]:
    """
    Numbers of line feeds and of colons: upper bounds of further rows and of entries.
    """

@overload
def libsvm_read(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], qid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, int, int, int, int]: ...

@overload
def libsvm_read(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], qid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, int, int, int, int]: ...

@overload
def libsvm_read(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], qid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, int, int, int, int]: ...

@overload
def libsvm_read(text: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, labels: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], qid: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, int, int, int, int]:
    """
    Parse LIBSVM text into the given arrays. Returns fault, byte, detail, rows, entries, rows with a qid, lowest and highest index as written.
    """

@overload
def csr_repeats(indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int) -> bool: ...

@overload
def csr_repeats(indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int) -> bool:
    """Whether a row of a CSR matrix with d columns has a column twice."""

def sound(starts: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], indices: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], bound: int) -> bool:
    """
    Whether the pointers of a CSR or CSC matrix begin with 0, never fall and end within what is stored, and all indices are at least 0 and below the bound.
    """

def two_classes(y: Annotated[NDArray, dict(order='C', device='cpu', writable=False)], sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
    """
    First rows with the smaller and with the larger of two labels; sign becomes -1 and +1. Returns (-1, -1) if there are not exactly two labels, or y has an unusual type.
    """

def sweep(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None, gradient: bool = True, blend: float = 0.0) -> None:
    """
    Losses and their gradient at theta in one pass over rows [lo, hi): out [d + 2] += sum s l, sum s sign l' (x, 1). curvature [n] becomes s l'', blended with the secant curvature by `blend` in [0, 1].
    """

def closing(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], step: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], found: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
    """
    Sums of a certificate in one pass over rows [lo, hi): out [8 + 2 d], laid out as kernels/sums/closing.hpp states. The dual point is `dual`, or the Newton-dual one of base and step; found [n] receives it.
    """

def enclose(sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lam: float, intercept: bool, rows: float) -> tuple[float, float, float]:
    """
    Primal value, lower bound of the minimum, and rounding allowance, from the sums of `closing`.
    """

def gram(rows: Rows, lo: int, hi: int, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], single: bool = False) -> None:
    """
    Weighted Gram matrix: out [(d + 1)^2] += sum h (x - mu, 1)(x - mu, 1)', upper triangle. `single` multiplies in float32.
    """

def hess_vec(rows: Rows, lo: int, hi: int, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Product with the Hessian of the losses: out [d + 1] += sum h (x, 1) (x, 1).v. One pass.
    """

def combine(rows: Rows, lo: int, hi: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Linear combination: out [d + 1] += sum a (x, 1)."""

def moments(rows: Rows, lo: int, hi: int, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Weighted moments of the columns: out [2 d + 1] += sum h x, sum h x^2, sum h; h = 1 if None.
    """

def ray(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Losses along a ray: out [2 per step t] += sum s l and its derivative by t, at theta + t delta.
    """

def scores(rows: Rows, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> bool:
    """Scores z [hi - lo] = x.w + b. Returns whether all are finite."""

def scores_k(rows: Rows, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Scores z [(hi - lo) K] = (x, 1)'W of K columns, K a multiple of 8."""

def sigmoids(rows: Rows, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """
    Probabilities p [hi - lo, 2] of both classes. Returns whether all scores are finite.
    """

def softmaxes(rows: Rows, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> bool:
    """
    Probabilities p [hi - lo, k] of k classes. Returns whether all scores are finite.
    """

def reaches(rows: Rows, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Magnitudes z [hi - lo] = |x|.|w| + |b|, by which the rounding errors of scores are bounded.
    """

def row_norms(rows: Rows, lo: int, hi: int, norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Squared norms: norms[i] = |x_i|^2 for rows [lo, hi). One pass."""

def all_finite(rows: Rows) -> bool:
    """Whether all stored numbers are finite. One pass."""

def pointwise(loss: Loss, m: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], value: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], conjugate: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Loss l(m), l'(m), l''(m) and conjugate l*(-m) of every entry of m, the conjugate infinite outside its domain.
    """

def spd_factor(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], drop: bool, U: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Cholesky factor U'U of A scaled to unit diagonal. Returns the least pivot; `drop` replaces pivots that are lost to rounding.
    """

def spd_apply(U: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Solve A x = b by a factor of `spd_factor`."""

def spd_solve(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], drop: bool, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Solve A x = b, A symmetric and positive definite, with one step of refinement. Returns the least pivot.
    """

def nnls(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], f: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, max_steps: int, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int]:
    """
    Non-negative least squares min |A'x - f| over x >= 0, from the start x. r becomes the residual. Returns status and steps.
    """

def newton(rows: Rows, targets: Targets, loss: Loss, lam: float, tol: float, max_steps: int, intercept: bool, polish: bool, two: bool, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], step: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, float, float]:
    """
    Fit min lam/2 |w|^2 + sum s l(m) by Newton's method, from the start theta. base, step and sums describe the dual point as `closing` does. A second thread helps if `two`; the bits are the same. Returns status, steps, sweeps, Gram matrices, primal and dual value.
    """

def kink_margins(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Distances v [n] of the margins at theta from the kink, for rows [lo, hi); out [1] += sum s l.
    """

def sort_rows(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tau: float, mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Distances v and dual variables u of the rows beyond a band of half-width tau around the kink, in one pass with their loss and sums: out [2 d + 5].
    """

def ipm_central(loss: Loss, lo: int, hi: int, mu: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')]) -> None:
    """Dual variables on the central path at mu for the margins of the state."""

def ipm_gather(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, step: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Take the step, and sum what the next Newton system needs: weights h [n] of its Gram matrix, out [2 d + 5].
    """

def ipm_predict(rows: Rows, targets: Targets, lo: int, hi: int, delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    Directions of the predictor for the rows. Returns the longest step; out [2 d + 3] has the sums of the corrector.
    """

def ipm_correct(rows: Rows, targets: Targets, lo: int, hi: int, delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int) -> float:
    """Directions of the corrector for the rows. Returns the longest step."""

def ipm_recentre(rows: Rows, targets: Targets, lo: int, hi: int, step: float, mu: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Right-hand side out [d + 1] of a further centrality correction (Gondzio 1996).
    """

def ipm_attempt(rows: Rows, targets: Targets, lo: int, hi: int, delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], step: float, mu: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int) -> float:
    """Directions with the further correction. Returns the longest step."""

def ipm_adopt(rows: Rows, targets: Targets, lo: int, hi: int, step: float, mu: float, state: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')], first: int) -> None:
    """Keep the directions of `ipm_attempt`."""

def crossover(rows: Rows, targets: Targets, loss: Loss, lam: float, intercept: bool, linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, rounds: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> bool:
    """
    Move theta, u and the margins v from near the optimum to the optimum itself. Returns whether it was found.
    """

def make_feasible(targets: Targets, loss: Loss, intercept: bool, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Move u into its box, and to sum s sign u = 0 if there is an intercept."""

def interior(rows: Rows, targets: Targets, loss: Loss, lam: float, tol: float, max_steps: int, intercept: bool, warm: bool, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, bool]:
    """
    Fit a loss with one kink by Mehrotra's method and crossover; theta is the start if `warm`. u and sums describe the dual point as `closing` does. Returns status, steps, sweeps, Gram matrices, and whether the end is exact.
    """

class Ascent:
    """
    A fit by dual coordinate ascent, from its start to its end (kernels/dual/ascent.hpp).
    """

    def __init__(self, rows: Rows, targets: Targets, loss: Loss, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lam: float, tol: float, intercept: bool, two: bool, seed: int, large: float, leave: float) -> None: ...

    def advance(self, entries: float, limit: float) -> int:
        """
        Continue until the caller must act: 0 look at limits after about so many entries, 1 close the gap at point(), 2 decide about slow progress, 3 end, 4 a number has overflowed.
        """

    def report_gap(self, gap: float) -> None:
        """Report that the proven gap is wider than asked for."""

    def halt(self) -> None:
        """End an epoch that was cut short."""

    def epoch(self) -> None:
        """Make one whole epoch."""

    def improve(self) -> None:
        """Make one whole round on the free rows."""

    def point(self, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Write theta [d + 1] with the best intercept known, and u [n] moved to sum s sign u = 0.
        """

    def restart(self, u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float) -> None:
        """Continue from these dual variables and this multiplier."""

    def predicted_gap(self) -> float:
        """Duality gap now, as predicted from the slacks of the last epochs."""

    def free(self) -> int:
        """Number of rows whose dual variable is inside its interval."""

    @staticmethod
    def stalled(slacks: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lately: int) -> bool:
        """Whether the slacks of the epochs no longer shrink."""

    @staticmethod
    def jump(first: float, second: float, third: float) -> float:
        """
        Extrapolated rest of a geometric sequence of steps, or 0 where they are not steady.
        """

    @property
    def class_start(self) -> tuple[float, float, float, bool] | None:
        """
        Start from the class sums: u of either class, dual value, whether it is near; or None.
        """

    @property
    def listed(self) -> int:
        """Number of rows that epochs visit."""

    @property
    def epochs(self) -> int: ...

    @property
    def primal(self) -> float: ...

    @property
    def hardness(self) -> float: ...

    @property
    def stiffness(self) -> float: ...

    @property
    def started_near(self) -> bool: ...

    @property
    def overflown(self) -> bool: ...

    @property
    def passes(self) -> float:
        """Passes over the rows so far."""

    @passes.setter
    def passes(self, arg: float, /) -> None: ...

    @property
    def budget(self) -> float:
        """Budget in passes: ascent ends if more are predicted."""

    @budget.setter
    def budget(self, arg: float, /) -> None: ...

    @property
    def most(self) -> int:
        """Maximum number of epochs, or -1; if given, the budget is ignored."""

    @most.setter
    def most(self, arg: int, /) -> None: ...

    @property
    def e(self) -> float:
        """The sum of s sign u."""

    @property
    def u(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Dual variables [n]."""

    @property
    def theta(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Weights and intercept [d + 1]."""

    @property
    def z(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Scores [n] as each row last saw them."""

    @property
    def along(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """Products of the rows with the centre [n], or empty."""

    @property
    def centre(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """The centre of the rows [d], or empty."""

def sampled_mean(rows: Rows, targets: Targets) -> float:
    """Mean of s |x|^2 over a sample of the rows."""

def kept_share(rows: Rows) -> float:
    """Share of nonzero numbers in a sample of dense rows."""

def closed_values(sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lam: float, intercept: bool) -> tuple[float, float]:
    """
    Primal and dual value from the sums of `closing`, without a rounding allowance.
    """

def dual_cd(rows: Rows, targets: Targets, loss: Loss, k0: int, k1: int, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')] | None, far: float, lam: float, stiffness: float, norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], state: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], along: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, centre: float = 0.0, two: bool = False) -> None:
    """
    Visit the buckets order[k0:k1] of `bucket` entries of the list each (of all rows, if None); move u, z, b, theta = (w, b0) and state = (e, slack, largest slope, f). Entries of the list below 0 have left it.
    """

def class_sums(rows: Rows, targets: Targets, lo: int, hi: int, norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Squared norms of rows [lo, hi), and the sums of s x of either sign: out [2 d]. One pass.
    """

def two_scores(rows: Rows, lo: int, hi: int, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], za: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], zb: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Products of rows [lo, hi) with two vectors in one pass: za [n], zb [n].
    """

def remaining(list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Move the entries that are not negative to the front of the list. Returns their number.
    """

def best_intercept(targets: Targets, loss: Loss, free: bool, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float, reach: float, fine: float) -> tuple[float, float]:
    """
    The intercept that minimises the losses at the scores z, and their sum there.
    """

def best_among(targets: Targets, loss: Loss, free: bool, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], e: float, b: float, reach: float, fine: float) -> tuple[float, float]:
    """
    The best intercept while only the rows of the list may follow it; e is the sum of s sign u over all rows.
    """

def arrange(rows: Rows, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], seed: int, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
    """
    Shuffle the entries of the order, places in the list (or rows, if None), short rows of a length side by side.
    """

def balance(targets: Targets, loss: Loss, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seen: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Move u to sum s sign u = 0 where that costs the dual value least."""

def shifted_sums(targets: Targets, loss: Loss, lo: int, hi: int, z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], b: float, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Sums at the scores z + b: out [3] += sum s l, sum s sign l', sum s l''.
    """

def shuffle(order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], seed: int) -> None:
    """Permute the entries in place by a seed."""

def list_dots(rows: Rows, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Products out[k] = x.v of the listed rows."""

def list_add(rows: Rows, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Combination of the listed rows: v [d] += sum a x."""

def quantile(x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], target: float) -> float:
    """
    The least x with at least `target` weight at or below it, or NaN if the search meets one. Permutes both arrays.
    """

def quadratic_cd(S: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], l1: float, tol: float, max_sweeps: int, x: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    Minimise a quadratic with Hessian S plus l1 |x|_1 by coordinate descent; moves x and slope, the gradient of the quadratic at x. Returns the sweeps made.
    """

def lasso_newton(rows: Rows, targets: Targets, loss: Loss, l1: float, l2: float, tol: float, max_steps: int, intercept: bool, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], step: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, float, float]:
    """
    Fit min sum s l(m) + l2/2 |w|^2 + l1 |w|_1 by prox-Newton steps, from the start theta. base, step and sums describe the dual point as `closing` does. Returns status, steps, sweeps, Gram matrices, primal and dual value.
    """

def column_newton(columns: Rows, targets: Targets, loss: Loss, list: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], ridges: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tol: float, max_steps: int, intercept: bool, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], z: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], base: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], step: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, float, float]:
    """
    Fit the listed columns with the penalty sum_g weights_g |w_g| + ridges_g/2 |w_g|^2 by prox-Newton steps; group g has the positions first[g] to first[g + 1] of the list. Moves theta [count + 1] and the scores z [n]. Returns status, steps, sweeps, gradients, primal value and gap.
    """

def softmax_sweep(rows: Rows, classes: Classes, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu')] | None = None, cross: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None, single: bool = False) -> None:
    """
    Softmax losses and their gradient at W (d + 1, K) in one pass: out [3 + (d + 1) K]. p (k, n) receives the probabilities, cross [K K] += sum s p p' (K, K) in single precision. `single`: products through packed panels are in single precision.
    """

def softmax_hess_vec(rows: Rows, classes: Classes, lo: int, hi: int, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Product of the Hessian at the probabilities p with V (d + 1, K): out [(d + 1) K]. One pass.
    """

def softmax_product(rows: Rows, classes: Classes, lo: int, hi: int, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)] | None, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], V: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], single: bool, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Product of the Hessian with V (d + 1, K) through packed panels, in single or double precision: out [(d + 1) K]. The probabilities are p (k, n), or, if p is None (dense rows), those at W. One pass.
    """

def softmax_is_packed(rows: Rows, k: int) -> bool:
    """
    Whether passes of the softmax loss over these rows go through packed panels.
    """

def softmax_ray(rows: Rows, classes: Classes, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], D: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Softmax losses along a ray: out [2 per step t] += value and derivative by t, at W + t D.
    """

def softmax_cross(classes: Classes, lo: int, hi: int, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Second moments of the probabilities: out [K K] += sum s p p'."""

def softmax_hessian(rows: Rows, classes: Classes, lo: int, hi: int, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Hessian of the softmax losses, a block of order d + 1 for each pair of classes, in coordinates centred at mu.
    """

def softmax_closing(rows: Rows, classes: Classes, lo: int, hi: int, base: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, step: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bound: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Sums of a certificate of the softmax loss in one pass, laid out as kernels/softmax/closing.hpp states. The dual point is `dual` (n, k), or the Newton-dual one of base and step; base None stands for W - step.
    """

def softmax_chunk(rows: Rows, k: int) -> int:
    """
    Number of rows that the softmax passes add up in registers before they add to their outputs.
    """

def softmax_steps(rows: Rows, classes: Classes, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), device='cpu', writable=False)], lam: float, intercept: bool, mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], U: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], scale: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], accuracy: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], most: int, two: bool, g: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], D: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], R: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], first: float) -> tuple[int, float, bool]:
    """
    Continue D and its residual R = -g - H D by conjugate gradients, preconditioned by the factors U, scale of blocks at mu. accuracy: objective, tol, near, rough, fine, to the end. Returns the products made, the first rho, and whether it is done.
    """

def softmax_newton(rows: Rows, classes: Classes, lam: float, max_steps: int, intercept: bool, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], base: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], step: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[int, int, int, int, float]:
    """
    Fit the softmax loss with lam/2 |W|^2 by Newton's method, from the start W. base, step and sums describe the dual point as `softmax_closing` does. Returns status, steps, sweeps, Gram matrices and primal value.
    """

def crammer_singer_step(classes: Classes, lo: int, hi: int, z: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], dz: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, t: float, p0: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], sigma: float, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Dual variables p (n, K) of the smoothed multiclass hinge at the scores z + t dz, and its value and derivatives by t: out [4].
    """

def crammer_singer_gradient(rows: Rows, classes: Classes, lo: int, hi: int, p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Gradient of the multiclass hinge with dual variables p (n, K): out [(d + 1) K].
    """

def crammer_singer_ascend(rows: Rows, classes: Classes, k0: int, k1: int, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bucket: int, lam: float, stiffness: float, norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], p: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], state: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Visit the buckets order[k0:k1] by dual coordinate ascent; moves p (n, K), W (d + 1, K) and state (class sums, slack).
    """

def crammer_singer_closing(rows: Rows, classes: Classes, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], bound: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Sums of a certificate of the multiclass hinge, in the layout of `softmax_closing`.
    """

def part_sweep(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, part: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: int, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], curvature: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], moments: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None:
    """
    Losses and gradients of each part of the rows (part -1: the first sums): out [(parts + 1)(d + 2)]. curvature [n] becomes s l'', moments [(parts + 1)(d + 1)] the sums of s l'' (x, 1).
    """

def part_gram(rows: Rows, lo: int, hi: int, part: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], parts: int, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], single: bool = False) -> None:
    """
    Weighted Gram matrix of each part of the rows: out [(parts + 1)(d + 1)^2].
    """

def grid_closing(rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, part: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], bases: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], steps: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], base_of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], part_of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], reach: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], held: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None, slot_of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Sums of the certificates of many models in one pass (kernels/grid/closing.hpp states the layout of out). Model q is bases[base_of] + steps[q], trained without part part_of; held receives the scores of the rows in that part.
    """

def perceptron(rows: Rows, sign: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lengths: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], select: str, normalised: bool, intercept: bool, online: bool, max_updates: int, budget: int, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, theta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], numbers: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], updated: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], norms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None) -> None:
    """
    Perceptron updates of theta, until a limit or a pass without one; counts and numbers carry the state from call to call, updated and norms record the updates (kernels/online/passes.hpp).
    """

def sgd(rows: Rows, classes: Classes, loss: Loss, schedule: str, eta0: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], decay: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], lam: float, total: float, batch: int, first: int, intercept: bool, draws: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')] | None) -> None:
    """
    Stochastic subgradient steps first, first + 1, ... at batches of the drawn rows; moves W (columns, d + 1), and adds every iterate to sums.
    """

def losses_k(rows: Rows, classes: Classes, loss: Loss, lo: int, hi: int, W: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], of: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Losses of K weight vectors in one pass: out[j] += the losses of column j of W (d + 1, K), which is for class of[j].
    """
