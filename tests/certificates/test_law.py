"""The law of certificates on hostile problems.

Whatever a fit claims is true by an independent judge: the objective at its coefficients lies where it says, no point
beats its lower bound, no point beats the coefficients by more than the gap. What is certified passes ``verify``, in
floats and in exact arithmetic.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hostile import answers, coefficients, dense, draw
from judge import REGRESSION, judge, judge_errors
from lawful import assert_verified

from linsep import LinearClassifier, verify
from linsep.errors import CertificateError, ConvergenceWarning, LinsepError
from linsep.solution import Explicit

FAST = range(75)
SLOW = range(75, 750)
REACH = range(150)
BLOCK = 15


def complaints(seed, modes=()):
    """Everything that is false or refused about one problem; none if the library refuses the problem itself."""
    case = draw(seed, modes=modes)
    try:
        model, claims = answers(case)
    except LinsepError:
        return []
    found = []
    if case.mode == "zero_one":
        found += judge_errors(dense(case.X), case.y, case.weight, model.certificate_)
    for answer in claims:
        found += judge(answer.task, answer.W, answer.claim)[0]
    if model is not None and model.certificate_.certified:
        try:
            assert_verified(model, case.X, case.y, case.weight)
        except (LinsepError, AssertionError) as error:
            found.append(("verify", str(error)))
    return [f"{case.describe()}\n    {kind}: {detail}" for kind, detail in found]


def blocks(seeds):
    return [range(start, start + BLOCK) for start in range(seeds.start, seeds.stop, BLOCK)]


def by_start(block):
    return f"{block.start}-{block.stop - 1}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("block", blocks(FAST), ids=by_start)
def test_certified_means_certified(block):
    found = [text for seed in block for text in complaints(seed)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "seed", [81381, 90680, 91911, 803245, 803967, 807040, 824565, 861927, 880626, 2101031]
)
def test_exact_arithmetic_finds_a_dual_point_of_its_own(seed):
    """Where the stored point is far from feasible, or columns are nearly dependent."""
    assert not complaints(seed)


@pytest.mark.parametrize("seed", [2400114, 2405033, 2512608])
def test_probabilities_that_sum_to_more_than_1_are_reduced(seed):
    """Of Crammer-Singer fits with huge columns, along which an excess of 1e-16 costs more than the rounding stated."""
    assert not complaints(seed)


@pytest.mark.parametrize("seed", [2600245, 2600433])
def test_differences_of_scores_are_rounded(seed):
    """Rows on the kink of Crammer-Singer, whose 1 + z_c - z_y cancels: the rounding of 1 + z_c is all that is left."""
    assert not complaints(seed, ("crammer_singer", "multinomial"))


def test_digits_of_coupled_dual_variables_beyond_float64_are_all_used():
    """A certificate without them may claim a smaller gap than exact arithmetic proves with them."""
    assert not complaints(2610033, ("crammer_singer", "multinomial"))


def test_classes_that_share_too_few_rows_are_corrected_jointly():
    """Class 0 and the largest class overlap on 6 rows of weights over 15 decades, fewer than the 9 columns."""
    assert not complaints(939562)


@pytest.mark.slow
def test_a_penalty_below_rounding_beside_an_exact_proof():
    """Of the problem without the penalty: what is added is rounded, so that the whole is not exact."""
    assert not complaints(1007527)


def test_an_exact_objective_is_compared_to_the_last_bits():
    """Nearly all of it is the penalty: other weights change its last digit, and with it the gap."""
    case = draw(1501032)
    model, _ = answers(case)
    assert verify(model, case.X, case.y, case.weight).kind == "exact"
    with pytest.raises(CertificateError, match="objective"):
        verify(model, case.X, case.y, 2.0 * case.weight)


def test_exact_objectives_agree_to_the_last_bit():
    """Rows that count twice move the objective of a Crammer-Singer fit by three units in its last place."""
    case = draw(2100160)
    model, _ = answers(case)
    assert model.certificate_.kind == verify(model, case.X, case.y, case.weight).kind == "exact"
    with pytest.raises(CertificateError, match="objective"):
        verify(model, case.X, case.y, 2.0 * case.weight)


def test_a_row_is_missed_if_its_loss_exceeds_the_rounding_claimed():
    """The last row holds 5.7e-15 of the objective, the claim states a rounding of 5.4e-15: two roundoffs decide."""
    case = draw(2302328)
    model, _ = answers(case)
    assert verify(model, case.X, case.y, case.weight).certified
    with pytest.raises(CertificateError, match="fitted to 25 rows, but 24"):
        verify(model, case.X[:-1], case.y[:-1], case.weight[:-1])
    for exact in (False, True):
        with pytest.raises(CertificateError, match="is not the one claimed"):
            verify(model, case.X, case.y, np.append(case.weight[:-1], 0.0), exact=exact)


def test_an_exact_objective_shows_that_the_classes_were_swapped():
    """w is nearly 0: the objective changes by little more than the rounding that the claim states."""
    case = draw(1604704)
    model, _ = answers(case)
    model.classes_ = model.classes_[::-1].copy()
    with pytest.raises(CertificateError):
        verify(model, case.X, case.y, case.weight)


def test_a_bound_above_an_objective_that_newton_attains_is_rejected():
    """Another label lowers the minimum by 1e-14 of itself, less than exact dual points may fall short."""
    case = draw(1702496)
    model, _ = answers(case)
    moved = case.y.copy()
    moved[0] = case.y[1]
    with pytest.raises(CertificateError, match="attained"):
        verify(model, case.X, moved, case.weight)


@pytest.mark.parametrize("seed", [1401168, 1401433])
def test_exact_proofs_that_say_less_than_the_claim(seed):
    """They know no error of w without a penalty, and their dual point may be a few roundings behind."""
    assert not complaints(seed)


def test_other_bits_of_the_scores_do_not_shake_an_elastic_net():
    """Entries of 5e11 cancel in a row on the kink: one bit of its margin moves v by 11, where 0.5 is allowed."""
    assert not complaints(1609257)


@pytest.mark.parametrize("seed", [1701459, 2004034])
def test_an_exact_fit_may_have_an_objective_that_underflows(seed):
    """Squares of what rounding leaves of residuals near 1e-300, or weights of 5e-324."""
    assert not complaints(seed)


def test_a_dual_point_whose_sums_overflow_is_not_corrected():
    """The exponential loss without a penalty: v is beyond float64, and a step towards 0 has no number."""
    assert not complaints(2316061)


@pytest.mark.parametrize("seed", [930577, 932004])
def test_a_hard_margin_whose_objective_overflows_is_not_certified(seed):
    """Features near 1e-200: |w|^2 is beyond every number, and exact arithmetic finds that too."""
    assert not complaints(seed)


@pytest.mark.parametrize("seed", [820936, 1303668, pytest.param(842102, marks=pytest.mark.slow)])
def test_an_objective_that_underflows_is_not_called_zero(seed):
    """Weights of 3e-321 times a width of 9e-4, or times a C of 4e-5 in the units of targets near 1e300."""
    assert not complaints(seed)


def test_an_objective_of_few_digits_is_not_certified():
    """4e-319 has five digits: the float64 numbers next to it differ by more than tol, though w = 0 is optimal."""
    X = np.array([[-6.4], [112.0], [84.0], [131.0], [-94.0], [106.0]])
    y = np.array([1, -1, 1, 1, -1, 1])
    with pytest.warns(ConvergenceWarning):
        model = LinearClassifier("squared_hinge", C=14.6, l1_ratio=1.0).fit(
            X, y, np.full(6, 3e-321)
        )
    assert not model.certificate_.certified


@pytest.mark.parametrize("seed", [809395, 843556])
def test_a_hard_margin_that_rounding_left_a_little_short_passes(seed):
    """|w|^2/2 may then be below the lower bound, or its distance from it below the gap."""
    assert not complaints(seed)


@pytest.mark.parametrize("seed", [840061, 840508, 840733, 843682])
def test_exact_arithmetic_reaches_the_bound_of_a_proof_by_curvature(seed):
    assert not complaints(seed)


def first_label_changed(case):
    y = case.y.copy()
    y[0] = y[1]
    return y, case.weight


def last_row_dropped(case):
    weight = case.weight.copy()
    weight[-1] = 0.0
    return case.y, weight


def weights_doubled(case):
    weight = np.ones(len(case.y)) if case.weight is None else case.weight
    return case.y, 2.0 * weight


@pytest.mark.parametrize(
    ("seed", "change"),
    [
        pytest.param(805320, first_label_changed, marks=pytest.mark.slow),
        (806168, weights_doubled),
        (807960, weights_doubled),
        (824624, first_label_changed),
        (824768, last_row_dropped),
    ],
)
def test_small_differences_of_the_objective_are_noticed(seed, change):
    """Other rows with an optimum so near that the gap claimed hides the difference, but not the rounding claimed."""
    case = draw(seed)
    model, _ = answers(case)
    verify(model, case.X, case.y, case.weight)
    y, weight = change(case)
    with pytest.raises(CertificateError):
        verify(model, case.X, y, weight)


def claim_instead(model, claim):
    """Let the model and its fit claim something else."""
    model.certificate_ = claim
    model._fits = [replace(model._fits[0], certificate=claim)]


def test_a_relative_gap_of_zero_is_for_exact_fits_alone():
    case = draw(91928)
    model, _ = answers(case)
    assert model.certificate_.certified and model.certificate_.relative_gap > 0.0
    claim_instead(model, replace(model.certificate_, relative_gap=0.0))
    with pytest.raises(CertificateError):
        verify(model, case.X, case.y, case.weight)


def test_an_exact_claim_is_compared_without_an_allowance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 40))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0, 1, -1)
    model = LinearClassifier("squared_hinge", C=1.0, tol=0.05).fit(X, y)
    claim = verify(model, X, y, exact=True)
    assert claim.kind == "exact" and claim.relative_gap > 0.01
    claim_instead(model, claim)
    assert verify(model, X, y).certified
    sharper = {"dual": claim.primal, "gap": 0.0, "relative_gap": 0.0, "coef_error": 0.0}
    claim_instead(model, replace(claim, **sharper))
    with pytest.raises(CertificateError, match="smaller than the one that can be proven"):
        verify(model, X, y)


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks(SLOW), ids=by_start)
def test_certified_means_certified_on_many_more(block):
    found = [text for seed in block for text in complaints(seed)]
    assert not found, "\n".join(found)


def dual_numbers(model, task, m):
    """The dual numbers of the answer: those stored, or the slopes of the loss at its margins."""
    fit = model._fits[0]
    if isinstance(fit.dual, Explicit):
        return np.asarray(fit.dual.u, dtype=np.float64).reshape(-1)
    with np.errstate(all="ignore"):
        return -np.asarray(fit.recipe.loss.slope(m))


def reached(case, model, task):
    """Which of the regimes that break certificates the answer of a fit is in."""
    theta = coefficients(model)[:, 0]
    X, s = task.X, np.ones(len(task.X)) if task.weight is None else task.weight
    with np.errstate(all="ignore"):
        z, size = X @ theta[:-1] + theta[-1], np.abs(X) @ np.abs(theta[:-1]) + abs(theta[-1])
        target = task.y if task.regression else 1.0
        m = (z if task.regression else task.y * z) - target  # 0 on the kink
        error = (X.shape[1] + 8) * 2.0**-53 * (size + np.abs(target))
        kinked = task.loss in ("hinge", "absolute", "squared_hinge", "huberised_hinge")
        if kinked and (np.abs(m) <= error)[s > 0].any():
            yield "kink"
        u = dual_numbers(model, task, m + 1.0)
        sign = 1.0 if task.regression else task.y
        v, a = (s * sign * u) @ X, (s * np.abs(u)) @ np.abs(X)
        if (np.abs(v) <= 1e-10 * a)[a > 0].any():
            yield "cancellation"
        low, high = model._fits[0].recipe.loss.domain
        if ((u == low) | (u == high))[s > 0].any():
            yield "end of the domain"
    if np.linalg.matrix_rank(X) < min(X.shape):
        yield "rank"
    if not task.penalised:
        yield "no penalty"


@pytest.mark.slow
def test_the_problems_reach_what_breaks_certificates():
    """Rows on kinks, sums that cancel, dual numbers at the ends of their domain, rank deficiency: all occur often."""
    count = Counter()
    for seed in REACH:
        case = draw(seed)
        if case.mode not in ("two", "regression") or case.entry != "fit":
            continue
        try:
            model, (answer,) = answers(case)
        except LinsepError:
            count["refused"] += 1
            continue
        count["fits"] += 1
        count["regression"] += answer.task.loss in REGRESSION and answer.task.regression
        count.update(reached(case, model, answer.task))
    assert count["fits"] >= 60
    for regime in ("kink", "cancellation", "end of the domain", "rank", "no penalty"):
        assert count[regime] >= 8, count
