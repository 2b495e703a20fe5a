"""The compiled loops (kernels/). All are single-threaded, release the GIL and add to their outputs."""

from typing import Any, overload

import numpy as np
import numpy.typing as npt

_F = npt.NDArray[np.float64]

class Rows:
    @overload
    def __init__(self, x: npt.NDArray[Any]) -> None: ...
    @overload
    def __init__(
        self,
        data: npt.NDArray[Any],
        indices: npt.NDArray[Any],
        indptr: npt.NDArray[Any],
        n_columns: int,
    ) -> None: ...
    @property
    def n(self) -> int: ...
    @property
    def d(self) -> int: ...

class Targets:
    def __init__(self, sign: _F, offset: _F | None = None, weight: _F | None = None) -> None: ...

class Loss:
    def __init__(self, name: str, width: float = 1.0, centre: float = 1.0) -> None: ...

class Ascent:
    """Dual coordinate ascent as a whole: kernels/dual/ascent.hpp."""

    def __init__(
        self,
        rows: Rows,
        targets: Targets,
        loss: Loss,
        theta: _F,
        lam: float,
        tol: float,
        intercept: bool,
        two: bool,
        seed: int,
        large: float,
        leave: float,
    ) -> None: ...
    def advance(self, entries: float, limit: float) -> int: ...
    def missed(self, gap: float) -> None: ...
    def halt(self) -> None: ...
    def epoch(self) -> None: ...
    def improve(self) -> None: ...
    def point(self, theta: _F, u: _F) -> None: ...
    def restart(self, u: _F, b: float) -> None: ...
    def predicted_gap(self) -> float: ...
    def free(self) -> int: ...
    @staticmethod
    def stalled(slacks: _F, lately: int) -> bool: ...
    @staticmethod
    def jump(first: float, second: float, third: float) -> float: ...
    passes: float
    patience: float
    most: int
    @property
    def class_start(self) -> tuple[float, float, float, bool] | None: ...
    @property
    def listed(self) -> int: ...
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
    def e(self) -> float: ...
    @property
    def u(self) -> _F: ...
    @property
    def theta(self) -> _F: ...
    @property
    def z(self) -> _F: ...
    @property
    def along(self) -> _F: ...
    @property
    def centre(self) -> _F: ...
    @property
    def slacks(self) -> _F: ...

def sampled_mean(rows: Rows, targets: Targets) -> float: ...
def kept_share(rows: Rows) -> float: ...
def closed_values(sums: _F, theta: _F, lam: float, intercept: bool) -> tuple[float, float]: ...
def sweep(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    theta: _F,
    out: _F,
    curvature: _F | None = None,
    gradient: bool = True,
    blend: float = 0.0,
) -> None: ...
def closing(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    base: _F,
    step: _F,
    theta: _F,
    dual: _F | None,
    out: _F,
    found: _F | None = None,
) -> None: ...
def all_finite(rows: Rows) -> bool: ...
def csr_repeats(indices: Any, indptr: Any, d: int) -> bool: ...
def two_classes(y: npt.NDArray[Any], sign: _F) -> tuple[int, int]: ...
def gram(rows: Rows, lo: int, hi: int, h: _F, mu: _F, out: _F, single: bool = False) -> None: ...
def hess_vec(rows: Rows, lo: int, hi: int, h: _F, v: _F, out: _F) -> None: ...
def combine(rows: Rows, lo: int, hi: int, a: _F, out: _F) -> None: ...
def moments(rows: Rows, lo: int, hi: int, h: _F | None, out: _F) -> None: ...
def reaches(rows: Rows, lo: int, hi: int, theta: _F, z: _F) -> None: ...
def scores(rows: Rows, lo: int, hi: int, theta: _F, z: _F) -> bool: ...
def sigmoids(rows: Rows, lo: int, hi: int, theta: _F, p: _F) -> bool: ...
def softmaxes(rows: Rows, lo: int, hi: int, W: _F, p: _F) -> bool: ...
def ray(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    theta: _F,
    delta: _F,
    steps: _F,
    out: _F,
) -> None: ...
def row_norms(rows: Rows, lo: int, hi: int, norms: _F) -> None: ...
def pointwise(loss: Loss, m: _F, value: _F, slope: _F, curvature: _F, conjugate: _F) -> None: ...
def nnls(A: _F, f: _F, tol: float, max_steps: int, x: _F, r: _F) -> tuple[int, int]: ...
def spd_factor(A: _F, drop: bool, U: _F, scale: _F) -> float: ...
def spd_apply(U: _F, scale: _F, b: _F, x: _F) -> None: ...
def spd_solve(A: _F, b: _F, drop: bool, x: _F) -> float: ...
def newton(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lam: float,
    tol: float,
    max_steps: int,
    intercept: bool,
    polish: bool,
    two: bool,
    theta: _F,
    base: _F,
    step: _F,
    sums: _F,
) -> tuple[int, int, int, int, float, float]: ...
def sound(starts: Any, indices: Any, bound: int) -> bool: ...
def enclosed(
    sums: _F, theta: _F, lam: float, intercept: bool, rows: float
) -> tuple[float, float, float]: ...
def kink_margins(
    rows: Rows, targets: Targets, loss: Loss, lo: int, hi: int, theta: _F, v: _F, out: _F
) -> None: ...
def sort_rows(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    theta: _F,
    tau: float,
    mu: _F,
    scale: _F,
    v: _F,
    u: _F,
    out: _F,
) -> None: ...
def ipm_central(loss: Loss, lo: int, hi: int, mu: float, state: _F) -> None: ...
def ipm_gather(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    step: float,
    state: _F,
    first: int,
    h: _F,
    out: _F,
) -> None: ...
def ipm_predict(
    rows: Rows, targets: Targets, lo: int, hi: int, delta: _F, state: _F, first: int, out: _F
) -> float: ...
def ipm_correct(
    rows: Rows, targets: Targets, lo: int, hi: int, delta: _F, mu: float, state: _F, first: int
) -> float: ...
def ipm_recentre(
    rows: Rows,
    targets: Targets,
    lo: int,
    hi: int,
    step: float,
    mu: float,
    state: _F,
    first: int,
    out: _F,
) -> None: ...
def ipm_attempt(
    rows: Rows,
    targets: Targets,
    lo: int,
    hi: int,
    delta: _F,
    step: float,
    mu: float,
    state: _F,
    first: int,
) -> float: ...
def ipm_adopt(
    rows: Rows,
    targets: Targets,
    lo: int,
    hi: int,
    step: float,
    mu: float,
    state: _F,
    first: int,
) -> None: ...
def crossover(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lam: float,
    intercept: bool,
    linear: _F | None,
    rounds: int,
    theta: _F,
    u: _F,
    v: _F,
) -> bool: ...
def make_feasible(targets: Targets, loss: Loss, intercept: bool, u: _F) -> None: ...
def interior(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lam: float,
    tol: float,
    max_steps: int,
    intercept: bool,
    warm: bool,
    theta: _F,
    u: _F,
    sums: _F,
) -> tuple[int, int, int, int, bool]: ...
def dual_cd(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    k0: int,
    k1: int,
    order: npt.NDArray[np.int64],
    bucket: int,
    list: npt.NDArray[np.int64] | None,
    far: float,
    lam: float,
    stiffness: float,
    norms: _F,
    u: _F,
    z: _F,
    b: _F,
    theta: _F,
    state: _F,
    along: _F | None = None,
    centre: float = 0.0,
    two: bool = False,
) -> None: ...
def class_sums(rows: Rows, targets: Targets, lo: int, hi: int, norms: _F, out: _F) -> None: ...
def two_scores(rows: Rows, lo: int, hi: int, a: _F, b: _F, za: _F, zb: _F) -> None: ...
def remaining(list: npt.NDArray[np.int64]) -> int: ...
def best_intercept(
    targets: Targets, loss: Loss, free: bool, z: _F, b: float, reach: float, fine: float
) -> tuple[float, float]: ...
def best_among(
    targets: Targets,
    loss: Loss,
    free: bool,
    list: npt.NDArray[np.int64],
    z: _F,
    u: _F,
    e: float,
    b: float,
    reach: float,
    fine: float,
) -> tuple[float, float]: ...
def arrange(
    rows: Rows,
    order: npt.NDArray[np.int64],
    seed: int,
    list: npt.NDArray[np.int64] | None = None,
) -> None: ...
def balance(targets: Targets, loss: Loss, z: _F, seen: _F, u: _F) -> None: ...
def shifted(targets: Targets, loss: Loss, lo: int, hi: int, z: _F, b: float, out: _F) -> None: ...
def shuffle(order: npt.NDArray[np.int64], seed: int) -> None: ...
def list_dots(rows: Rows, list: npt.NDArray[np.int64], v: _F, out: _F) -> None: ...
def list_add(rows: Rows, list: npt.NDArray[np.int64], a: _F, v: _F) -> None: ...
def quantile(x: _F, weight: _F, target: float) -> float: ...
def perceptron(
    rows: Rows,
    sign: _F,
    lengths: _F,
    select: str,
    normalised: bool,
    intercept: bool,
    online: bool,
    max_updates: int,
    budget: int,
    order: npt.NDArray[np.int64] | None,
    theta: _F,
    counts: npt.NDArray[np.int64],
    numbers: _F,
    updated: npt.NDArray[np.int64],
    norms: _F,
    sum: _F | None,
) -> None: ...
def sgd(
    rows: Rows,
    classes: Classes,
    loss: Loss,
    schedule: str,
    eta0: _F,
    decay: _F,
    lam: float,
    total: float,
    batch: int,
    first: int,
    intercept: bool,
    draws: npt.NDArray[np.int64],
    W: _F,
    sums: _F | None,
) -> None: ...
def losses_k(
    rows: Rows,
    classes: Classes,
    loss: Loss,
    lo: int,
    hi: int,
    W: _F,
    of: npt.NDArray[np.int64],
    out: _F,
) -> None: ...

class Classes:
    def __init__(self, labels: npt.NDArray[np.int64], weight: _F | None, k: int) -> None: ...
    @property
    def padded(self) -> int: ...

def scores_k(rows: Rows, lo: int, hi: int, W: _F, z: _F) -> None: ...
def softmax_sweep(
    rows: Rows, classes: Classes, lo: int, hi: int, W: _F, out: _F, p: _F | None = None
) -> None: ...
def softmax_hess_vec(
    rows: Rows, classes: Classes, lo: int, hi: int, p: _F, V: _F, out: _F
) -> None: ...
def softmax_ray(
    rows: Rows, classes: Classes, lo: int, hi: int, W: _F, D: _F, steps: _F, out: _F
) -> None: ...
def softmax_cross(classes: Classes, lo: int, hi: int, p: _F, out: _F) -> None: ...
def softmax_hessian(
    rows: Rows, classes: Classes, lo: int, hi: int, p: _F, mu: _F, out: _F
) -> None: ...
def softmax_closing(
    rows: Rows,
    classes: Classes,
    lo: int,
    hi: int,
    base: _F,
    step: _F,
    W: _F,
    bound: _F,
    dual: _F | None,
    out: _F,
) -> None: ...
def softmax_chunk(rows: Rows, k: int) -> int: ...
def softmax_newton(
    rows: Rows,
    classes: Classes,
    lam: float,
    max_steps: int,
    intercept: bool,
    W: _F,
    base: _F,
    step: _F,
    sums: _F,
) -> tuple[int, int, int, int, float]: ...
def softmax_steps(
    rows: Rows,
    classes: Classes,
    p: _F,
    lam: float,
    intercept: bool,
    mu: _F,
    U: _F,
    scale: _F,
    accuracy: _F,
    most: int,
    two: bool,
    g: _F,
    D: _F,
    R: _F,
    first: float,
) -> tuple[int, float, bool]: ...
def lasso_newton(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    l1: float,
    l2: float,
    tol: float,
    max_steps: int,
    intercept: bool,
    theta: _F,
    base: _F,
    step: _F,
    sums: _F,
) -> tuple[int, int, int, int, float, float]: ...
def column_newton(
    columns: Rows,
    targets: Targets,
    loss: Loss,
    list: npt.NDArray[np.int64],
    l1: float,
    l2: float,
    tol: float,
    max_steps: int,
    intercept: bool,
    theta: _F,
    z: _F,
    base: _F,
    step: _F,
) -> tuple[int, int, int, int, float, float]: ...
def quadratic_cd(S: _F, l1: float, tol: float, max_sweeps: int, x: _F, slope: _F) -> int: ...
def part_sweep(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    part: npt.NDArray[np.int64],
    parts: int,
    theta: _F,
    out: _F,
    curvature: _F,
    moments: _F | None = None,
) -> None: ...
def part_gram(
    rows: Rows,
    lo: int,
    hi: int,
    part: npt.NDArray[np.int64],
    parts: int,
    h: _F,
    mu: _F,
    out: _F,
    single: bool = False,
) -> None: ...
def grid_closing(
    rows: Rows,
    targets: Targets,
    loss: Loss,
    lo: int,
    hi: int,
    part: npt.NDArray[np.int64],
    bases: _F,
    steps: _F,
    base_of: npt.NDArray[np.int64],
    part_of: npt.NDArray[np.int64],
    reach: _F,
    held: _F | None,
    slot_of: npt.NDArray[np.int64],
    out: _F,
) -> None: ...
def crammer_singer_step(
    classes: Classes,
    lo: int,
    hi: int,
    z: _F,
    dz: _F | None,
    t: float,
    p0: _F,
    sigma: float,
    p: _F,
    out: _F,
) -> None: ...
def crammer_singer_gradient(
    rows: Rows, classes: Classes, lo: int, hi: int, p: _F, out: _F
) -> None: ...
def crammer_singer_ascend(
    rows: Rows,
    classes: Classes,
    k0: int,
    k1: int,
    order: npt.NDArray[np.int64],
    bucket: int,
    lam: float,
    stiffness: float,
    norms: _F,
    p: _F,
    W: _F,
    state: _F,
) -> None: ...
def crammer_singer_closing(
    rows: Rows, classes: Classes, lo: int, hi: int, W: _F, bound: _F, dual: _F, out: _F
) -> None: ...
def libsvm_count(text: npt.NDArray[np.uint8]) -> tuple[int, int]: ...
def libsvm_read(
    text: npt.NDArray[np.uint8],
    limit: int,
    labels: _F,
    qid: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    indices: npt.NDArray[Any],
    values: npt.NDArray[Any],
) -> tuple[int, int, int, int, int, int, int, int]: ...
def instruction_set() -> str: ...
def use_instruction_set(name: str) -> None: ...
