"""Which solver runs, what is refused, how limits end, and that the machine does not matter."""

import warnings

import numpy as np
import pytest
from catalogue import (
    CONVEX,
    MAKERS,
    Sample,
    able,
    fit,
    in_python,
    naming,
    objective,
    plain,
)
from tuned import tuning

from linsep import losses
from linsep.data import memory
from linsep.errors import BadInput, ConvergenceWarning, Refused
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers import SOLVERS, choose
from linsep.solvers import sampling as pilot
from linsep.solvers.newton import native as small


@pytest.mark.parametrize("loss", CONVEX, ids=naming)
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
@pytest.mark.parametrize("C", [1.0, np.inf])
def test_a_refusal_names_what_takes_the_problem(loss, storage, C):
    sample = plain().in_storage(storage)
    takers = able(sample, loss, C)
    others = [solver for solver in SOLVERS if solver not in takers]
    assert others
    for solver in others:
        with pytest.raises(Refused) as refusal:
            fit(sample, loss, C, solver)
        text = str(refusal.value)
        if not takers:  # then the reason lies in the problem, whatever solver was named
            assert loss.native in text and "C=inf" in text
            continue
        assert solver in text and all(name in text for name in takers)
        assert all(need in text for need in SOLVERS[solver].missing(sample.problem(loss, C)))


@pytest.mark.parametrize("loss", [loss for loss in CONVEX if not loss.smooth], ids=naming)
def test_one_solver_takes_a_kink_with_an_absolute_penalty(loss, tuned):
    sample = plain()
    assert able(sample, loss, l1_ratio=1.0) == ["absolute-rows"]
    assert fit(sample, loss, l1_ratio=1.0).solver == "absolute-rows"
    tuned(gram_largest=3)
    with pytest.raises(Refused, match="kink; with an L1 penalty it needs rows in memory"):
        fit(sample, loss, l1_ratio=1.0)


@pytest.mark.parametrize(
    "solver", sorted({*SOLVERS} - {*able(plain(), l1_ratio=0.5), "absolute-rows"})
)
def test_an_absolute_penalty_is_refused_by_solvers_of_smooth_problems(solver):
    with pytest.raises(Refused, match="l1_ratio=0"):
        fit(plain(), "logistic", solver=solver, l1_ratio=0.5)


def test_losses_that_are_not_convex_are_refused():
    with pytest.raises(Refused, match="convex"):
        fit(MAKERS["plain"](), losses.ZeroOne())


def test_a_former_name_of_a_solver_is_accepted():
    sample = plain(3_000, 4)
    former, present = (fit(sample, "hinge", solver=name) for name in ("globbing", "sifting"))
    assert former.solver == present.solver == "sifting"
    assert (former.W == present.W).all()


def test_an_unknown_solver_is_named_with_the_known_ones():
    with pytest.raises(BadInput) as error:
        fit(MAKERS["plain"](), "logistic", solver="gradient-descent")
    assert "gradient-descent" in str(error.value)
    assert all(name in str(error.value) for name in ("auto", *SOLVERS))


def test_needs_are_computed(tuned):
    sample = plain(60, 4)
    tuned(native_entries=100)
    with pytest.raises(Refused, match=r"one block in memory.*newton"):
        fit(sample, "logistic", solver="small")
    with pytest.raises(Refused, match="dense rows"):
        fit(sample.in_storage("csr64-int32"), "logistic", solver="newton-pilot")
    with pytest.raises(Refused, match="finite C"):
        fit(sample, "logistic", np.inf, solver="newton-pilot")
    with pytest.raises(Refused, match="compiled loss"):
        fit(sample, in_python(get("logistic")), solver="small")


@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
@pytest.mark.parametrize(
    ("options", "native"),
    [
        ({}, True),
        ({"max_passes": 1000, "time_limit": 10.0}, True),
        ({"max_passes": 100}, False),
        ({"time_limit": 0.5}, False),
    ],
)
def test_a_native_fit_is_for_limits_that_it_surely_keeps(options, native, storage):
    found = fit(plain(100, 5).in_storage(storage), "logistic", 0.01, **options)
    assert (found.solver == "small") is native and found.certificate.certified


# Limits.


#: Solvers of the logistic loss that can be stopped on their way: "small" is one native call.
STOPPED = [solver for solver in able(plain(400, 5)) if solver != "small"]


@pytest.mark.parametrize(
    ("solver", "storage"),
    [
        (solver, storage)
        for storage in ("dense64", "csr64-int32")
        for solver in ("auto", *able(plain(400, 5).in_storage(storage)))
        if solver != "small"
    ],
)
@pytest.mark.parametrize(
    ("limit", "status"),
    [({"max_passes": 2}, Status.PASS_LIMIT), ({"time_limit": 0.0}, Status.TIME_LIMIT)],
    ids=["passes", "time"],
)
def test_limits_end_with_the_gap_so_far(solver, limit, status, storage):
    sample = plain(400, 5).in_storage(storage)
    with pytest.warns(ConvergenceWarning) as caught:
        found = fit(sample, "logistic", 1e4, solver, **limit)
    assert len(caught) == 1
    proof = found.certificate
    assert caught[0].message.certificate is proof
    assert found.status is status and status.message in str(caught[0].message)
    assert not proof.certified and np.isfinite(proof.gap) and proof.gap > 0
    value = objective(get("logistic"), 1e4, sample, found.W[:, 0])[0]
    best = fit(sample, "logistic", 1e4, "small").certificate
    np.testing.assert_allclose(proof.primal, value, rtol=1e-11)
    assert proof.dual <= best.primal and value <= best.primal + proof.gap


@pytest.mark.parametrize("solver", able(plain(400, 5)))
def test_limits_that_are_not_reached_change_nothing(solver):
    sample = plain(400, 5)
    free = fit(sample, "logistic", solver=solver)
    bound = fit(sample, "logistic", solver=solver, time_limit=100.0, max_passes=10_000)
    assert (free.W == bound.W).all() and bound.status is Status.CERTIFIED


@pytest.mark.parametrize("solver", STOPPED)
def test_more_passes_never_raise_the_gap(solver):
    sample, gaps = plain(400, 5), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for limit in (1, 3, 6, 10, 20, 60):
            found = fit(sample, "logistic", 10.0, solver, max_passes=limit)
            assert found.n_passes <= limit + 10  # a pass in progress is finished, then certified
            gaps.append(found.certificate.gap)
    assert gaps[-1] < gaps[0] and gaps[-1] <= 1e-6 * found.certificate.primal


# The same bits, whatever the machine is doing.


@pytest.fixture
def many_blocks(tuned):
    """Blocks of 256 rows; and small problems count as large, so that pilots are drawn."""
    tuned(block_bytes=4_000, native_entries=10_000)


#: Blocks of 256 rows, and layouts that are converted block by block.
BLOCKS = {"block_bytes": 4_000, "converted_bytes": 0}
with tuning(**BLOCKS):
    THREADED = [
        (solver, loss, storage)
        for storage in ("dense64", "dense32", "csr64-int32", "fortran64")
        for loss in ("logistic", "squared_hinge")
        for solver in ("auto", *able(plain(5000, 6, seed=2).in_storage(storage), loss))
    ]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("solver", "loss", "storage"), THREADED)
def test_the_number_of_threads_does_not_change_a_bit(solver, loss, storage, many_blocks, tuned):
    tuned(**BLOCKS)
    if solver == "small":
        tuned(native_entries=100_000)
    sample = plain(5000, 6, seed=2).in_storage(storage)
    found = [fit(sample, loss, 3.0, solver, n_threads=k) for k in (1, 2, 8)]
    assert found[0].certificate.certified
    for other in found[1:]:
        assert (found[0].W == other.W).all()
        assert found[0].certificate == other.certificate
        assert found[0].n_passes == other.n_passes


@pytest.mark.parametrize("solver", ["newton", "newton-pilot"])
@pytest.mark.parametrize("share", [0.5, 0.02])
def test_pilots_are_drawn_the_same_way_twice(solver, share, many_blocks):
    sample = plain(6000, 5, seed=1)
    if share < 0.1:
        sample = Sample(sample.X, np.where(np.arange(6000) % 50 == 0, 1.0, -1.0))
    first, again = (fit(sample, "logistic", 1.0, solver, seed=7) for _ in range(2))
    other = fit(sample, "logistic", 1.0, solver, seed=8)
    assert (first.W == again.W).all() and first.certificate == again.certificate
    assert first.certificate.certified and other.certificate.certified
    assert (first.W != other.W).any()  # the pilot does matter
    apart = np.linalg.norm(first.W[:-1] - other.W[:-1])
    assert apart <= first.certificate.coef_error + other.certificate.coef_error


@pytest.mark.parametrize("rare", [0, 3, 40, 2500])
def test_a_pilot_stands_for_all_rows(rare):
    sign = -np.ones(5000)
    sign[np.linspace(0, 4999, rare).astype(int)] = 1.0
    rows, share = pilot.draw(memory.Memory(np.zeros((5000, 1)), sign), 500, 0)
    assert (np.diff(rows) > 0).all() and rows[0] >= 0 and rows[-1] < 5000
    assert 250 <= len(rows) <= 500 and (share > 0).all()
    np.testing.assert_allclose(share.sum(), 5000)
    if 0 < rare < 500:
        assert np.count_nonzero(sign[rows] > 0) >= min(rare, 200)
        np.testing.assert_allclose(share[sign[rows] > 0].sum(), rare)


@pytest.mark.parametrize(
    ("loss", "C", "rows"),
    [
        ("logistic", 1e-3, 20),
        ("logistic", 1.0, 60),
        ("logistic", 1e3, 0),
        ("squared_hinge", 1e3, 60),
    ],
)
def test_a_sparse_pilot_has_more_rows_where_the_penalty_is_weak(loss, C, rows):
    sample = plain(3200, 20).in_storage("csr64-int32")
    assert small._pilot_rows(sample.problem(get(loss), C)) == max(rows * 20, 1000 * (rows > 0))
    dense = plain(3200, 20).problem(get(loss), C)
    assert small._pilot_rows(dense) == 0  # not 200 rows per feature


def _choice(n, d, C, scale=1.0):
    """What "auto" takes for the hinge on dense rows of this size, without fitting them."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=scale, size=(n, d)).astype(np.float32)
    data = memory.Memory(X, np.where(rng.random(n) < 0.5, 1.0, -1.0))
    problem = Problem(get("hinge"), ElasticNet(C), data)
    return choose(problem, "auto", Stop(1e-6)).name


def test_bands_are_for_many_rows_per_feature():
    assert _choice(25_000, 20, C=1.0) == "sifting"
    assert _choice(2_000, 300, C=1.0) != "sifting"  # a band would hold most rows


def test_strong_penalties_are_for_coordinate_ascent():
    assert _choice(8_000, 100, C=0.001) == "dual-cd"
    assert _choice(30_000, 20, C=10.0) != "dual-cd"
