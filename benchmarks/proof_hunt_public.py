"""Second hunt for false certificates: structured problems through the public estimators, and a judge of its own.

    python benchmarks/proof_hunt_public.py --problems 500 --seed 0 --seconds 600 --out hunt.jsonl
    python benchmarks/proof_hunt_public.py --replay 1234

It shares nothing with proof_hunt.py. Rows come from structured families (Hilbert and Vandermonde matrices, incidence
matrices, lattices, one-hot codes, powers of two, ...), labels and targets from hyperplanes with small rational
coefficients, so that margins tie and lie on kinks. The judge evaluates objectives in ball arithmetic from their
definition and looks for better points on smoothed objectives: |t| becomes sqrt(t^2 + mu^2), and mu falls to 2^-130
while a primal-dual Newton method (Chan, Golub and Mulet 1999) follows. Any point bounds the minimum from above.
Every certified model has to pass verify, verify(exact=True) and checker/linsep_check.py, and altered ones to fail.
Claims about objectives that are no float64 number of full precision (below 2^-1000 or above 1.8e308) are judged, but
not counted among those that are meant to be certified.
"""

from __future__ import annotations

import argparse
import collections
import copy
import importlib.util
import itertools
import json
import math
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from flint import arb, arb_mat, ctx

import linsep
from linsep.errors import CertificateError, LinsepError, Refused
from linsep.losses import Huber, HuberisedHinge

_CHECKER = Path(__file__).resolve().parent.parent / "checker" / "linsep_check.py"
_BITS = 420
_WIDTHS = (2, 5, 8, 11, 14, 17, 20, 23, 26, 30, 34, 38, 42, 48, 54, 60, 70, 80, 100, 130)
_TINY = arb(2) ** -300
Rng = np.random.Generator


def _load_checker() -> Any:
    spec = importlib.util.spec_from_file_location("linsep_check", _CHECKER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["linsep_check"] = module
    spec.loader.exec_module(module)
    return module


checker = _load_checker()


# --- the judge --------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Objective:
    """(1 - r)/2 |w|^2 + r |w|_1 + C sum_i s_i loss_i of one problem with one score, in balls; C = inf: no penalty."""

    loss: str
    X: Any
    y: Any  # +-1, or targets if ``target``
    s: Any
    C: float
    r: float = 0.0
    intercept: bool = True
    target: bool = False
    width: float = 1.0
    rows: Any = field(init=False)

    def __post_init__(self) -> None:
        ctx.prec = _BITS
        kept = np.flatnonzero(self.s)
        self.X, self.y, self.s = self.X[kept], np.asarray(self.y)[kept], self.s[kept]
        self.n, self.d = self.X.shape
        last = 1.0 if self.intercept else 0.0
        entries = [arb(float(v)) for row in self.X for v in (*row, last)]
        self.rows = arb_mat(self.n, self.d + 1, entries)
        self.penalised = math.isfinite(self.C)
        scale = arb(self.C) if self.penalised else arb(1)
        self.weights = [scale * arb(float(v)) for v in self.s]
        self.t = [arb(float(v)) for v in self.y]
        self.ridge = 1 - arb(self.r) if self.penalised else arb(0)
        self.l1 = arb(self.r) if self.penalised else arb(0)
        self.kinked = self.loss in ("hinge", "absolute")
        self.duals: list[Any] = []
        self.own: list[Any] = []

    def _residual(self, i: int, z: Any) -> tuple[Any, Any]:
        """r = t - z or 1 - y z, and its derivative by z."""
        return (self.t[i] - z, arb(-1)) if self.target else (1 - self.t[i] * z, -self.t[i])

    def _row(self, i: int, z: Any, mu: Any) -> tuple[Any, Any, Any]:
        """Loss of a row, its slope and its curvature by z; of the smoothed loss unless mu is None."""
        r, by = self._residual(i, z)
        if self.loss in ("logistic", "exponential"):
            return self._receding(i, self.t[i] * z)
        if self.kinked:
            size = abs(r) if mu is None else (r * r + mu * mu).sqrt()
            half = 2 if self.loss == "hinge" else 1
            value = (r + size) / 2 if half == 2 else size
            if mu is None:
                return value, arb(0), arb(0)
            slope = (1 + r / size) / 2 if half == 2 else r / size
            return value, slope * by, (1 - self.duals[i] * r / size) / size / half
        c = arb(self.width)
        if self.loss in ("squared_hinge", "huberised_hinge") and not r > 0:
            return ((r + abs(r)) / 2) ** 2, arb(0), arb(0)
        if self.loss in ("squared", "squared_hinge"):
            return r * r, 2 * r * by, arb(2)
        factor = c if self.loss == "huberised_hinge" else arb(1)
        if abs(r) <= c:
            return r * r / (2 * factor), r / factor * by, 1 / factor
        end = c / factor if r > 0 else -c / factor
        return c * (abs(r) - c / 2) / factor, end * by, arb(0)

    def _receding(self, i: int, m: Any) -> tuple[Any, Any, Any]:
        if self.loss == "exponential":
            e = (-m).exp()
            return e, -e * self.t[i], e
        e = (-abs(m)).exp()
        log = (1 + e).log() if e > _TINY else e * arb(1, arb(2) ** -290)
        share = (e if m > 0 else arb(1)) / (1 + e)
        return (log if m > 0 else log - m), -share * self.t[i], e / (1 + e) ** 2

    def value(self, W: Any, mu: Any = None) -> Any:
        """The objective, smoothed unless mu is None."""
        Z, total = self.rows * W, arb(0)
        for i in range(self.n):
            total += self.weights[i] * self._row(i, Z[i, 0], mu)[0]
        for j in range(self.d):
            size = abs(W[j, 0]) if mu is None else (W[j, 0] ** 2 + mu * mu).sqrt()
            total += self.ridge * W[j, 0] ** 2 / 2 + self.l1 * size
        return total

    def _step(self, W: Any, mu: Any) -> tuple[Any, Any]:
        """Newton's direction and decrement; the dual variables of the kinks move along."""
        size, Z = self.d + 1, self.rows * W
        found = [self._row(i, Z[i, 0], mu) for i in range(self.n)]
        slopes = [s * row[1] for s, row in zip(self.weights, found, strict=True)]
        bends = [s * row[2] for s, row in zip(self.weights, found, strict=True)]
        scaled = [self.rows[i, j] * bends[i] for i in range(self.n) for j in range(size)]
        G = self.rows.transpose() * arb_mat(self.n, 1, slopes)
        H = self.rows.transpose() * arb_mat(self.n, size, scaled)
        for j in range(self.d):
            w, q = W[j, 0], (W[j, 0] ** 2 + mu * mu).sqrt() if self.l1 > 0 else arb(1)
            G[j, 0] += self.ridge * w + self.l1 * w / q
            H[j, j] += self.ridge + self.l1 * (1 - self.own[j] * w / q) / q
        for j in range(size):
            H[j, j] = H[j, j] * (1 + arb(2) ** -220) + arb(2) ** -1400
        step = H.mid().solve((-G).mid(), algorithm="approx").mid()
        along = self.rows * step
        for i in range(self.n if self.kinked else 0):
            r, by = self._residual(i, Z[i, 0])
            self.duals[i] = _moved(r, by * along[i, 0], self.duals[i], mu)
        for j in range(self.d if self.l1 > 0 else 0):
            self.own[j] = _moved(W[j, 0], step[j, 0], self.own[j], mu)
        return step, -sum((G[j, 0] * step[j, 0] for j in range(size)), arb(0))

    def descend(self, W: Any, seconds: float) -> tuple[Any, Any, bool]:
        """The least objective found from W, where it is, and whether the method converged."""
        end = time.process_time() + seconds
        W = W.mid()
        best, at = self.value(W), W
        scale = max([abs(v) for v in self.t], key=lambda v: float(v.log()) if v > 0 else -math.inf)
        scale = scale if self.target and scale > 0 else arb(1)
        bent = self.kinked or self.l1 > 0
        self.duals, self.own = [arb(0)] * self.n, [arb(0)] * self.d
        for mu in [scale * arb(2) ** -e for e in _WIDTHS] if bent else [arb(0)]:
            now, last = self.value(W, mu), mu < scale * arb(2) ** -120 or not bent
            for _ in range(40):
                if time.process_time() > end:
                    return best, at, False
                try:
                    step, decrement = self._step(W, mu)
                except ZeroDivisionError:
                    return best, at, False
                new = self._line(W, step, now, mu) if decrement > 0 else None
                if new is None:
                    break
                gain, W, now = now.mid() - new[1].mid(), *new
                true = self.value(W) if bent else now
                if true.is_finite() and true.mid() < best.mid():
                    best, at = true, W
                if gain <= abs(now.mid()) * arb(2) ** (-100 if last else -12):
                    break
        return best, at, True

    def _line(self, W: Any, step: Any, now: Any, mu: Any) -> tuple[Any, Any] | None:
        t = arb(1)
        for _ in range(60):
            new = (W + t * step).mid()
            value = self.value(new, mu)
            if value.is_finite() and value.mid() < now.mid():
                return new, value
            t /= 2
        return None


def _moved(t: Any, dt: Any, p: Any, mu: Any) -> Any:
    """The dual variable p ~ t/q after a step dt, by the linearised q p = t, inside (-1, 1)."""
    q = (t * t + mu * mu).sqrt()
    new = (t / q + (1 - p * t / q) / q * dt).mid()
    return new if abs(new) < 1 else (new / abs(new) * (1 - _TINY)).mid()


def judge(o: Objective, W: Any, claim: Any, seconds: float = 1.5) -> list[tuple[str, str]]:
    """What is false in a claim about W, an array (d + 1,)."""
    ctx.prec = _BITS
    if bool(claim.certified) != (claim.relative_gap <= claim.tol):
        return [("certified", repr(claim.relative_gap))]
    if not (np.isfinite(W).all() and math.isfinite(claim.primal)):
        return [("not finite", "")] if claim.certified else []
    at = arb_mat(o.d + 1, 1, [arb(float(v)) for v in W])
    true, primal = o.value(at), arb(claim.primal)
    ulp = abs(primal) * arb(2) ** -52 + arb(2) ** -1073
    best, where, converged = o.descend(at, seconds)
    if not converged:
        zero, there, ended = o.descend(arb_mat(o.d + 1, 1), seconds)
        if zero.mid() < best.mid():
            best, where, converged = zero, there, ended
    found = []
    if math.isfinite(claim.rounding) and abs(true - primal) > arb(claim.rounding) + ulp:
        found.append(("objective", f"{true} is claimed to be {claim.primal!r}"))
    if math.isfinite(claim.dual) and arb(claim.dual) > best:
        found.append(("lower bound", f"{claim.dual!r} is above {best}"))
    if math.isfinite(claim.gap) and primal - best > arb(claim.gap) + ulp:
        found.append(("gap", f"{primal - best} > {claim.gap!r}"))
    if claim.certified and true > 0:
        least = o.value(arb_mat(o.d + 1, 1)) * arb(claim.tol) * arb("1e-5")
        small = not o.penalised and true <= least  # an exact fit, as documented
        if not small and (true - best) / true > arb(claim.tol) * (1 + arb("1e-9")):
            found.append(("certificate", f"the relative gap is {(true - best) / true}"))
    if converged and math.isfinite(claim.coef_error) and o.penalised and o.r < 1:
        apart = [(where[j, 0] - at[j, 0]) ** 2 for j in range(o.d)]
        size = sum((where[j, 0] ** 2 for j in range(o.d)), arb(0)).sqrt()
        noise = size * arb(2) ** -40 + arb(2) ** -1000
        if sum(apart, arb(0)).sqrt() > arb(claim.coef_error) * (1 + arb(2) ** -30) + noise:
            found.append(("coef_error", f"{sum(apart, arb(0)).sqrt()} > {claim.coef_error!r}"))
    return found


# --- structured rows --------------------------------------------------------------------------------------------


def _incidence(g: Rng, n: int, d: int) -> Any:
    X = np.zeros((n, max(d, 2)))
    for row in X:
        row[g.choice(len(row), 2, replace=False)] = 1.0, -1.0
    return X


def _lattice(g: Rng, n: int, d: int) -> Any:
    points = list(itertools.product(range(2 + int(g.integers(3))), repeat=min(d, 4)))
    return np.array(points, dtype=float)[g.integers(len(points), size=n)]


def _near_ties(g: Rng, n: int, d: int) -> Any:
    X = g.integers(-2, 3, size=(n, d)).astype(float)
    return np.where(g.random(X.shape) < 0.5, np.nextafter(X, g.choice([-9.0, 9.0])), X)


def _opposites(g: Rng, n: int, d: int) -> Any:
    X, size = g.normal(size=(n, max(d, 2))), 2.0 ** g.integers(20, 60)
    X[::3] += size
    X[1::3] -= size
    return X


FAMILIES: dict[str, Callable[[Rng, int, int], Any]] = {
    "plain": lambda g, n, d: g.normal(size=(n, d)),
    "hilbert": lambda g, n, d: 1.0 / (np.arange(n)[:, None] + np.arange(d) + 1.0),
    "vandermonde": lambda g, n, d: np.vander(np.linspace(-1, 1, n), min(d, 8)),
    "incidence": _incidence,
    "lattice": _lattice,
    "parity": lambda g, n, d: (np.arange(n)[:, None] >> np.arange(d) & 1).astype(float),
    "one_hot": lambda g, n, d: np.eye(max(d, 2))[g.integers(max(d, 2), size=n)],
    "powers": lambda g, n, d: g.choice([-1.0, 1.0], (n, d)) * 2.0 ** g.integers(-30, 31, d),
    "walk": lambda g, n, d: np.cumsum(g.normal(size=(n, d)), axis=0) + g.choice([0, 1e3, 1e7]),
    "triangle": lambda g, n, d: np.tril(np.ones((max(n, d),) * 2))[:n, :d],
    "money": lambda g, n, d: np.round(np.exp(g.normal(3, 2, size=(n, d))), 2),
    "subnormal": lambda g, n, d: g.integers(-8, 9, size=(n, d)) * 5e-324 * 2.0 ** g.choice([0, 60]),
    "near_ties": _near_ties,
    "opposites": _opposites,
}


def _store(g: Rng, X: Any) -> Any:
    kind = int(g.integers(7))
    if kind == 0:
        return np.asfortranarray(X)
    if kind == 1 and np.isfinite(X.astype(np.float32)).all():
        return X.astype(np.float32)
    if kind == 2:
        return sp.csc_matrix(X)
    if kind == 3:  # explicit zeros, 64-bit indices
        start = np.arange(0, X.size + 1, X.shape[1], dtype=np.int64)
        columns = np.tile(np.arange(X.shape[1], dtype=np.int64), X.shape[0])
        return sp.csr_array((X.ravel(), columns, start), shape=X.shape)
    return X


def _weights(g: Rng, n: int) -> Any:
    return [
        *[None] * 5,
        g.integers(0, 4, size=n) + (np.arange(n) < 2.0),
        np.where(g.random(n) < 0.3, 1e-300, 1.0),
        np.full(n, float(g.choice([1e-300, 1e-20, 1e20]))),
        10.0 ** g.integers(-20, 21, size=n).astype(float),
    ][g.integers(9)]


def _targets(g: Rng, X: Any, plain: bool) -> Any:
    z, n = np.nan_to_num(X @ (g.integers(-2, 3, X.shape[1]) / 2)), len(X)
    kinds = [
        z + g.normal(size=n),
        g.integers(0, 3, n).astype(float),
        z,
        z + 1e6 * (np.arange(n) == 0),
    ]
    t = kinds[g.integers(4)]
    return t * 10.0 ** g.choice([-300, -150, -20, 20, 150]) if g.random() < 0.2 and not plain else t


# --- one problem ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Case:
    """A model, its data, and the objectives it claims to minimise, each with coefficients and claim."""

    facts: dict[str, Any]
    model: Any = None
    data: tuple[Any, ...] = ()
    claims: list[tuple[Objective, Any, Any]] = field(default_factory=list)


def _draw(seed: int) -> tuple[dict[str, Any], Callable[[Case], None]]:
    """The facts of a problem, and the function that fits it."""
    g = np.random.default_rng([77, seed])
    plain = bool(g.random() < 0.2)
    family = "plain" if plain else str(g.choice(list(FAMILIES)))
    n, d = int(g.integers(4, 26)), int(g.integers(1, 7))
    X = np.ascontiguousarray(FAMILIES[family](g, n, d), dtype=float)
    given = X if plain else _store(g, X)
    dense = np.asarray(given.toarray() if sp.issparse(given) else given, dtype=float)
    s = None if plain else _weights(g, n)
    regression, entry = bool(g.random() < 0.4), str(g.choice(["fit", "fit", "fit", "path"]))
    losses = ("logistic", "hinge", "squared_hinge", "squared", "huberised_hinge", "exponential")
    loss = str(g.choice(["squared", "absolute", "huber"] if regression else losses))
    width = 1.0 if plain else float(g.choice([1.0, 0.5, 1e-3, 1e3]))
    C = float(10.0 ** (g.uniform(-3, 3) if plain else g.uniform(-9, 9)))
    C = math.inf if not plain and loss != "hinge" and entry == "fit" and g.random() < 0.15 else C
    r = 0.0
    if not plain and math.isfinite(C) and loss not in ("hinge", "absolute") and g.random() < 0.3:
        r = float(g.choice([1.0, 0.5, 0.1]))
    intercept = plain or bool(g.random() < 0.8)
    t = _targets(g, dense, plain)
    if not regression:
        t = np.where(t > np.median(t), 1.0, -1.0)
        t[:2] = 1.0, -1.0
    facts = {"seed": seed, "family": family, "plain": plain, "entry": entry, "loss": loss, "C": C}
    facts |= {"l1_ratio": r, "intercept": intercept, "n": n, "d": dense.shape[1]}

    def fit(case: Case) -> None:
        spec = {"huber": Huber(width), "huberised_hinge": HuberisedHinge(width)}.get(loss, loss)
        kind = linsep.LinearRegressor if regression else linsep.LinearClassifier
        model = kind(spec, C=C, l1_ratio=r, fit_intercept=intercept)
        weight = np.ones(n) if s is None else s
        common = {"r": r, "intercept": intercept, "target": regression, "width": width}

        def claim(C: float, w: Any, b: Any, certificate: Any) -> None:
            problem = Objective(loss, dense, t, weight, C, **common)
            case.claims.append((problem, np.append(np.ravel(w), b), certificate))

        if entry == "path":
            found = linsep.path(model, given, t, C * np.array([0.125, 1.0, 8.0]), sample_weight=s)
            columns = found.Cs.tolist(), found.coefs, found.intercepts, found.certificates
            for one in zip(*columns, strict=True):
                claim(*one)
            return
        case.model, case.data = model.fit(given, t, s), (given, t, s)
        claim(C, model.coef_, model.intercept_, model.certificate_)

    return facts, fit


def _alterations(model: Any) -> Iterator[tuple[str, Any]]:
    """Models that differ in one number, each of which has to be rejected."""
    claim = model.certificate_
    for name in ("primal", "dual", "gap", "relative_gap", "coef_error", "rounding"):
        value = getattr(claim, name)
        for new in (math.nextafter(value, math.inf), -value, 2 * value, math.nan):
            if new != value and (math.isfinite(value) or math.isnan(new)):
                yield f"{name}={new!r}", {"certificate_": replace(claim, **{name: new})}
    for name in ("coef_", "intercept_"):
        yield f"{name} by one bit", {name: np.nextafter(getattr(model, name), np.inf)}
    others = {
        "C": 2.0 * min(model.C, 1e300),
        "l1_ratio": 0.25,
        "loss": "squared_hinge",
        "tol": 1e-5,
    }
    for name, new in others.items():
        if getattr(model, name) != new:
            yield f"another {name}", {name: new}


def _verified(model: Any, data: tuple[Any, ...], exact: bool) -> str:
    try:
        linsep.verify(model, *data, exact=exact)
    except CertificateError as error:
        return f"rejected: {error}"[:400]
    except Refused:
        return "refused"
    return "passed"


def _checked(model: Any, data: tuple[Any, ...]) -> str:
    X, y, s = data
    X = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=float)
    weight = {} if s is None else {"sample_weight": s}
    with tempfile.TemporaryDirectory() as folder:
        linsep.save(model, f"{folder}/model.linsep")
        np.savez(f"{folder}/rows.npz", X=X, y=y, **weight)
        try:
            checker.check(f"{folder}/model.linsep", f"{folder}/rows.npz")
        except (checker.Rejected, checker.Unusable) as error:
            return f"rejected: {error}"
    return "passed"


def examine(seed: int) -> dict[str, Any]:
    """Fit, judge, verify and alter one problem."""
    facts, fit = _draw(seed)
    case, found = Case(facts), list[tuple[str, str]]()
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fit(case)
        except LinsepError as error:
            return facts | {"outcome": type(error).__name__, "message": str(error)[:200]}
        except Exception:
            return facts | {
                "outcome": "crash",
                "findings": [("crash", traceback.format_exc()[-900:])],
            }
        facts["seconds"] = round(time.process_time() - began, 3)
        for claim in case.claims:
            found += judge(*claim)
        tried = 0
        if case.model is not None and case.model.certificate_.certified:
            for exact in (False, True):
                verdict = _verified(case.model, case.data, exact)
                found += [(f"verify(exact={exact})", verdict)] * verdict.startswith("rejected")
            verdict = _checked(case.model, case.data)
            found += [("checker", verdict)] * (verdict != "passed")
            for name, change in _alterations(case.model) if seed % 4 == 0 else ():
                forged, tried = copy.copy(case.model), tried + 1
                vars(forged).update(change)
                if _verified(forged, case.data, exact=False) == "passed":
                    found.append((f"accepted: {name.split('=')[0]}", name))
    certified = sum(bool(claim.certified) for *_, claim in case.claims)
    beyond = sum(
        not (claim.certified or 2.0**-1000 <= claim.primal < math.inf) for *_, claim in case.claims
    )
    counts = {"claims": len(case.claims) - beyond, "certified": certified, "altered": tried}
    counts["out_of_range"] = beyond
    return facts | {"outcome": "fitted", **counts, "findings": found}


def summarise(records: list[dict[str, Any]]) -> str:
    """The table that is printed at the end."""

    def count(some: list[dict[str, Any]], key: str) -> int:
        return sum(record.get(key, 0) for record in some)

    plain = [record for record in records if record["plain"]]
    ends = collections.Counter(record["outcome"] for record in records)
    lines = [
        f"{len(records)} problems, {count(records, 'claims')} claims that are meant to be certified, "
        f"{count(records, 'certified')} certified; {count(records, 'out_of_range')} others with objectives out of "
        f"range; {count(records, 'altered')} alterations tried",
        f"certified on plain data: {count(plain, 'certified')} of {count(plain, 'claims')}",
        "outcomes: " + ", ".join(f"{name} {number}" for name, number in ends.most_common()),
    ]
    seeds = collections.defaultdict(list)
    for record in records:
        for kind in dict.fromkeys(kind for kind, _ in record.get("findings", ())):
            seeds[kind].append(record["seed"])
    lines += [f"{kind:30s} {len(where):5d}  {where[:8]}" for kind, where in sorted(seeds.items())]
    return "\n".join(lines if seeds else [*lines, "nothing false was found"])


def main() -> None:
    """Read the command line and hunt."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=3600.0, help="no new problem after this")
    parser.add_argument("--out", default="proof_hunt_public.jsonl")
    parser.add_argument("--replay", type=int, help="examine this seed alone and print everything")
    given = parser.parse_args()
    if given.replay is not None:
        print(json.dumps(examine(given.replay), default=str, indent=1))
        return
    end, records = time.monotonic() + given.seconds, []
    with open(given.out, "a") as out:
        for seed in range(given.seed, given.seed + given.problems):
            if time.monotonic() > end:
                break
            records.append(examine(seed))
            out.write(json.dumps(records[-1], default=str) + "\n")
            out.flush()
    print(summarise(records))


if __name__ == "__main__":
    main()
