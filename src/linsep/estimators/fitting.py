"""Steps of ``fit`` that all linear estimators share, from subproblems to fitted attributes.

An estimator solves one subproblem (two classes, coupled classes, a regression) or several that share
the rows (one-vs-rest). Attributes are stored only after everything has been computed, so a fit that
raises leaves the estimator unchanged.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from linsep import _kernels, certificates
from linsep.arrays import FloatArray, IntArray, n_entries
from linsep.certificates import LossFactor, TargetUnits
from linsep.certificates.curvature.dependence import describe_near_dependence
from linsep.data import Dataset, Location, Opened, dataset, location_of, recorded
from linsep.data.entrance.dataframes import Names
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.data.mapped_files import require_untruncated
from linsep.data.mapped_vectors import moved
from linsep.errors import (
    BadInput,
    ConvergenceWarning,
    InseparableData,
    NonFinite,
    SeparableData,
)
from linsep.estimators.scoring import dense_coef
from linsep.interrupts import seconds_left, time_limit
from linsep.losses import CoupledLoss, Loss
from linsep.monitoring import Job, advance
from linsep.penalties import ElasticNet
from linsep.small_dense import fit_small
from linsep.solution import Status, TraceRecord
from linsep.solvers.cluster_prefetch import pilot_rows
from linsep.train import Fit, Recipe, reproducible_fields, to_scaled_loss, train

# Largest binary exponents of weights and of C whose squares and products with the data neither overflow nor underflow.
_ORDINARY_WEIGHT, _ORDINARY_C = 340, 900
_SCAN_LIMIT = 1_000_000  # entries: up to here the search for NaN costs little compared with the fit


class Subproblem(NamedTuple):
    """A loss with its targets: margins m_i = sigma_i z_i + offset_i, or the labels of a coupled loss.

    ``title`` identifies it in error messages if there are several subproblems.
    """

    loss: Loss | CoupledLoss
    sigma: FloatArray | None = None
    offset: FloatArray | None = None
    labels: IntArray | None = None
    title: str = ""

    @property
    def width(self) -> int:
        """Number of columns of the coefficient matrix W."""
        return self.loss.k if isinstance(self.loss, CoupledLoss) else 1

    def at(self, location: Location) -> Subproblem:
        """Return the subproblem with its vectors in mapped files if the rows are on disk."""
        if location is not Location.DISK:
            return self
        sigma, offset, labels = (
            None if v is None else moved(v) for v in (self.sigma, self.offset, self.labels)
        )
        return self._replace(sigma=sigma, offset=offset, labels=labels)


def first_rows(recipe: Recipe, sizes: Sequence[int], d: int) -> Any:
    """Return the numbers of the rows that a fit on a cluster requests first, given the sizes of the partitions."""
    loss, seed = recipe.loss.plain, recipe.seed or 0
    return pilot_rows(loss, recipe.penalty, recipe.solver, sizes, d, seed)


def solve(
    recipe: Recipe,
    subproblems: Iterable[Subproblem],
    count: int,
    X: Any,
    names: Names | None,
    weight: FloatArray | None,
    start: FloatArray | None,
) -> list[Fit]:
    """Fit ``count`` subproblems on the same rows; ``names`` are the column names, if any.

    ``start`` is the (d+1, k) matrix of an earlier fit, or None. The user's limits apply to all subproblems
    together: each may use an equal share of the remaining budget.

    A small X is searched for NaN and infinity beforehand. To avoid reading a large X twice, it is searched only
    if the first value of the objective is not finite.
    """
    asked, (weight, penalty) = recipe.penalty, _ordinary_weights(weight, recipe.penalty)
    recipe = recipe if penalty is asked else replace(recipe, penalty=penalty)
    # On a cluster the workers searched for NaN when the rows were opened.
    already_checked = location_of(X) is Location.CLUSTER
    if not already_checked and n_entries(X) <= _SCAN_LIMIT:
        refuse_nonfinite(X, names)
    try:
        if count > 1:
            with Job("one-vs-rest", total=count), time_limit(recipe.time_limit):
                fits = _train(recipe, subproblems, count, X, weight, start)
        else:
            fits = _train(recipe, subproblems, count, X, weight, start)
        require_untruncated(X)
    except NonFinite:
        if not already_checked:
            refuse_nonfinite(X, names)
        raise  # X is finite, but the objective overflows
    except MemoryError as error:
        raise _explain(error, X) from error
    except SeparableData as error:
        raise SeparableData(_name_features(error, names), error.direction, error.rows) from None
    except Exception:
        # missing pages of a truncated file read as NaN, which may be the cause
        require_untruncated(X)
        raise
    if penalty is not asked:
        fits = [replace(fit, recipe=replace(fit.recipe, penalty=asked)) for fit in fits]
    short = [fit for fit in fits if not fit.certificate.certified]
    if short:
        whole = certificates.combine([fit.certificate for fit in fits])
        which = f"{len(short)} of {count} one-vs-rest problems: " if count > 1 else ""
        late, near = short[0].status is Status.TIME_LIMIT, ""
        if recipe.penalty.absent and not late and location_of(X) is not Location.CLUSTER:
            near = describe_near_dependence(X, weight, recipe.fit_intercept, names)
        text = which + certificates.explain(short[0].status, whole, X, names, near)
        warnings.warn(ConvergenceWarning(text, whole), stacklevel=3)
    return fits


def _explain(error: MemoryError, X: Any) -> MemoryError:
    """Return the error if its message says what the memory was for, otherwise one with the size of X and advice."""
    kernel = isinstance(error, _kernels.NoMemory)
    if str(error) and not kernel:
        return error
    asked = f"{error}. " if kernel else ""
    n, d = X.shape
    return MemoryError(
        f"{asked}Not enough memory to fit {n:,} rows of {d:,} features; with very many classes multiclass='ovr' needs "
        "less. Otherwise use fewer rows, features or classes, or keep the rows in files (linsep.scan)."
    )


def _name_features(error: SeparableData, names: Names | None) -> str:
    """Return the message of the error, extended by the features with the largest entries in its direction."""
    if names is None or error.direction is None:
        return str(error)
    w = np.abs(np.ravel(error.direction[0]))
    largest = [str(names[j]) for j in np.argsort(-w, kind="stable")[:3] if w[j] > 0.01 * w.max()]
    return f"{error} The largest entries belong to {', '.join(map(repr, largest))}."


def _ordinary_weights(weight: Any, penalty: ElasticNet) -> tuple[Any, ElasticNet]:
    """Divide weights of extreme magnitude by a power of two and multiply C by it; return both.

    Only the product of weights and C matters, and scaling by a power of two is exact. Without it, squares of sums of
    weights of 1e-200 underflow to 0 in float64.
    """
    if not isinstance(weight, np.ndarray) or not math.isfinite(penalty.C):
        return weight, penalty
    exponent, own = (math.frexp(x)[1] for x in (float(weight.max(initial=0.0)), penalty.C))
    if abs(exponent) <= _ORDINARY_WEIGHT:
        return weight, penalty
    shift = max(min(exponent, _ORDINARY_C - own), -_ORDINARY_C - own)
    return np.ldexp(weight, -shift), replace(penalty, C=math.ldexp(penalty.C, shift))


def _train(
    recipe: Recipe,
    subproblems: Iterable[Subproblem],
    count: int,
    X: Any,
    weight: FloatArray | None,
    start: FloatArray | None,
) -> list[Fit]:
    fits: list[Fit] = []
    at = 0
    for done, part in enumerate(map(Subproblem.at, subproblems, repeat(location_of(X)))):
        share = recipe
        if count > 1 and (recipe.time_limit or recipe.max_passes):
            share = _share_limits(recipe, fits, count - done)
        before = None
        if start is not None:
            before, at = start[:, at : at + part.width], at + part.width
        factor = certificates.loss_factor(part.loss, recipe.penalty)
        units = certificates.target_units(factor.loss, factor.penalty, part.offset)
        own, offset = _recipe_in(units, factor, share), units.offset(part.offset)
        before = units.start(before)
        found = None
        if before is None:
            found = fit_small(own, X, part.sigma, offset, weight)
        if found is None:
            data = dataset(X, part.sigma, offset, weight, part.labels, recipe.n_threads)
            X = data.X  # a small X in another layout is converted once for all subproblems
            found = _train_on(own, data, before, part.title, units.smallest)
        if offset is not None and not found.certificate.certified:
            found = _certify_by_relaxation(found, X, (part.sigma, offset, weight), units.smallest)
        fits.append(to_scaled_loss(factor, _in_user_units(units, found, own), share))
        if count > 1:
            advance(len(fits))
    return fits


def _recipe_in(units: TargetUnits, factor: LossFactor, recipe: Recipe) -> Recipe:
    if units.plain and factor.plain:
        return recipe
    tol = factor.tol(recipe.tol)
    return replace(recipe, loss=units.loss, penalty=units.penalty, tol=tol)


def _in_user_units(units: TargetUnits, found: Fit, recipe: Recipe) -> Fit:
    """Convert a fit from the scaled units of the targets to the user's units."""
    if units.plain:
        return found
    certificate = units.user_certificate(found.certificate, found.W)
    out_of_range = found.certificate.certified and not certificate.certified
    return replace(
        found,
        recipe=recipe,
        W=units.user_coefficients(found.W),
        dual=units.user_dual(found.dual),
        certificate=certificate,
        status=Status.OUT_OF_RANGE if out_of_range else found.status,
        trace=units.user_trace(found.trace),
    )


def _certify_by_relaxation(
    found: Fit, X: Any, vectors: tuple[Any, Any, Any], smallest: float
) -> Fit:
    """Certify an uncertified regression by a simpler problem (a relaxation); return ``found`` if that fails too."""
    recipe = found.recipe
    unlimited = found.status in (Status.CERTIFIED, Status.WORKING_PRECISION, Status.GIVEN_UP)
    if isinstance(recipe.loss, CoupledLoss) or recipe.solver != "auto" or not unlimited:
        return found
    if location_of(X) is Location.CLUSTER:
        return found
    weight = vectors[2]
    mass = float(X.shape[0]) if weight is None else float(np.sum(weight))
    for simple in certificates.relaxations(recipe.loss, recipe.penalty):
        data = dataset(X, *vectors, None, recipe.n_threads)
        own = replace(recipe, loss=simple.loss, penalty=simple.penalty)
        other = _train_on(own, data, None, "", smallest)
        certificate = simple.certificate(other.certificate, other.W, mass)
        dual = simple.original_dual(other.dual)
        if certificate.certified and dual is not None:
            passes, seconds = found.n_passes + other.n_passes, found.seconds + other.seconds
            line = TraceRecord(passes, seconds, certificate.primal, certificate.dual)
            return replace(
                other,
                recipe=recipe,
                dual=dual,
                certificate=certificate,
                status=Status.CERTIFIED,
                n_passes=passes,
                seconds=seconds,
                trace=(*found.trace, line),
            )
    return found


def _train_on(
    recipe: Recipe, data: Dataset, start: FloatArray | None, title: str, smallest: float
) -> Fit:
    try:
        with closing(data):
            rows = _record(data, recipe, start)
            return train(recipe, rows, start, warn=False, smallest=smallest)
    except SeparableData as error:
        if not title:
            raise
        raise SeparableData(f"{title}: {error}", error.direction, error.rows) from None
    except InseparableData as error:
        if not title:
            raise
        raise InseparableData(f"{title}: {error}", error.witness) from None


def _record(data: Dataset, recipe: Recipe, start: FloatArray | None) -> Dataset:
    """Return the data set, wrapped so that its passes are recorded if a checkpoint is in use."""
    return (
        data
        if data.location is Location.MEMORY
        else recorded(data, reproducible_fields(recipe), start)
    )


def refuse_offset(model: Any, opened: Opened, k: int = 2) -> None:
    """Raise if offsets are meaningless or not supported for this model and data; k is the number of classes."""
    owner = type(model).__name__
    if opened.location is Location.CLUSTER:
        raise BadInput("offset needs the rows in memory or on disk, not on a cluster.")
    if k > 2:
        raise BadInput(
            f"offset is a known part of the score of two classes, but y has {k}: fit one {owner} for each class "
            "against the others, with its own offset."
        )
    if getattr(model, "_no_offset", ""):
        raise BadInput(model._no_offset)


def need_offset(model: Any, offset: Any) -> None:
    """Raise if the model was fitted with offsets and none are given, or the other way round."""
    had = vars(model).get("_has_offset") is True
    if had and offset is None:
        raise BadInput(
            f"this {type(model).__name__} was fitted with offset=...: pass the same offset to verify or "
            "summary; no other function takes one."
        )
    if offset is not None and not had:
        raise BadInput(f"this {type(model).__name__} was fitted without offset; leave it out.")


def store(model: Any, fits: list[Fit], names: Names | None, **others: Any) -> None:
    """Write all fitted attributes at once; those in ``others`` are added and take precedence."""
    if len(fits) == 1:
        fit = fits[0]
        W, certificate, passes = fit.W, fit.certificate, fit.n_passes
        solver, trace = fit.solver, fit.trace
    else:
        W = np.hstack([fit.W for fit in fits])
        certificate = certificates.combine([fit.certificate for fit in fits])
        passes = sum(fit.n_passes for fit in fits)
        solver = ", ".join(dict.fromkeys(fit.solver for fit in fits))
        trace = _join_traces(fits)
    attributes = {
        "coef_": np.ascontiguousarray(W[:-1].T),
        "intercept_": W[-1].copy(),
        "n_features_in_": W.shape[0] - 1,
        "certificate_": certificate,
        "n_passes_": passes,
        "solver_": solver,
        "trace_": trace,
        "n_iter_": np.array([max(1, math.ceil(fit.n_passes)) for fit in fits], dtype=np.int32),
        "_fits": fits,
        **others,
    }
    state = vars(model)
    state.pop("traffic_", None)  # left by an earlier fit on a cluster
    if names is None:
        state.pop("feature_names_in_", None)
    else:
        attributes["feature_names_in_"] = names
    state.update(attributes)


def coefficient_matrix(model: Any) -> FloatArray:
    """Return W (d+1, k) of a fitted model, rebuilt from ``coef_`` and ``intercept_``."""
    return np.vstack([np.atleast_2d(dense_coef(model)).T, np.atleast_1d(model.intercept_)])


def warm_start_matrix(model: Any, shape: tuple[int, int]) -> FloatArray | None:
    """Return W of the previous fit for a warm start, or None if ``warm_start`` is not set or the shape differs."""
    if not model.warm_start or "coef_" not in vars(model):
        return None
    W = coefficient_matrix(model)
    return W if W.shape == shape else None


def verification_parts(
    model: Any, subproblems: Iterable[Subproblem], X: Any, weight: FloatArray | None
) -> Iterator[tuple[Any, ...]]:
    """Yield the fields of a ``Part`` for each subproblem.

    These are loss, penalty, fit_intercept, X, sigma, offset, weight, labels, W, dual and tol.
    """
    W = coefficient_matrix(model)
    at = 0
    stored = map(Subproblem.at, subproblems, repeat(location_of(X)))
    for part, fit in zip(stored, model._fits, strict=True):
        columns = slice(at, at + part.width)
        weights, penalty = _ordinary_weights(weight, fit.recipe.penalty)
        yield (
            part.loss,
            penalty,
            fit.recipe.fit_intercept,
            X,
            part.sigma,
            part.offset,
            weights,
            part.labels,
            W[:, columns],
            fit.dual,
            fit.recipe.tol,
        )
        at = columns.stop


def _share_limits(recipe: Recipe, fits: list[Fit], left: int) -> Recipe:
    """Return the recipe with an equal share of the remaining time and passes, at least one pass."""
    seconds, max_passes = seconds_left(), recipe.max_passes
    if seconds is not None:
        seconds /= left
    if max_passes is not None:
        max_passes = max((max_passes - sum(fit.n_passes for fit in fits)) / left, 1.0)
    return replace(recipe, time_limit=seconds, max_passes=max_passes)


def _join_traces(fits: list[Fit]) -> tuple[TraceRecord, ...]:
    """Concatenate the traces of the subproblems, with cumulative passes and seconds."""
    joined: list[TraceRecord] = []
    passes = seconds = 0.0
    for fit in fits:
        joined += [
            replace(line, passes=line.passes + passes, seconds=line.seconds + seconds)
            for line in fit.trace
        ]
        passes += fit.n_passes
        seconds += fit.seconds
    return tuple(joined)
