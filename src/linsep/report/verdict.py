"""Answers to the four questions of the report: quality, uncertainty, features, proof of optimality."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.bounds import clopper_pearson
from linsep.report import formatting as words
from linsep.report.assurance import Proof
from linsep.report.columns import Columns
from linsep.report.evaluation import UNKNOWN, Content, Evaluation
from linsep.report.influence import strongest
from linsep.report.residuals import Residuals
from linsep.report.subject import Subject


@dataclass(frozen=True)
class Answer:
    """A card: a question, a short answer, a sentence or two, and a tone for its border."""

    question: str
    short: str
    text: str
    tone: str  # "good", "fair", "bad", "plain"


def answers(content: Content, proof: Proof, regression: Residuals | None) -> list[Answer]:
    """Return the cards at the top of the report."""
    subject, evaluated = content.subject, content.evaluated
    if regression is None:
        first = [_quality(subject, evaluated), _confidence(evaluated, content.tuning)]
    else:
        first = [_how_close(evaluated, regression), _how_sure_of_distance(evaluated, regression)]
    return [*first, _features(subject, content.columns), _optimal(proof)]


def _rows_used(evaluated: Evaluation) -> str:
    rows = words.plural(
        len(evaluated.rows), "held-out row" if evaluated.held_out else "training row"
    )
    return rows if evaluated.rows.weight is None else f"{rows}, weighted"


def _quality(subject: Subject, evaluated: Evaluation) -> Answer:
    label, guess = _majority(subject, evaluated)
    wrong = float(evaluated.weight @ evaluated.wrong)
    text = (
        f"{words.count(wrong)} wrong of {_rows_used(evaluated)}. "
        f"Always predicting “{label}” errs on {words.percent(guess)}."
    )
    beats = evaluated.error < guess
    if not beats:
        text += " The model is no better than that."
    tone = "bad" if not beats else "good" if evaluated.error < 0.5 * guess else "fair"
    return Answer("How good is it?", f"{words.percent(evaluated.error)} error", text, tone)


def _confidence(evaluated: Evaluation, tuning: Any) -> Answer:
    question = "How sure are we?"
    if evaluated.held_out:
        wrong, n = int(evaluated.wrong.sum()), len(evaluated.wrong)
        bound = clopper_pearson(wrong, n)
        low, high = (float(clopper_pearson(wrong, n, 0.025, side)) for side in ("lower", "upper"))
        return Answer(
            question,
            f"≤ {words.percent_above(float(bound))}",
            f"95 % upper confidence bound on the true error: {words.percent_above(float(bound))}; 95 % confidence "
            f"interval: {words.percent_below(low)} to {words.percent_above(high)} (exact binomial, independent rows "
            "that played no part in fitting).",
            "good" if high - low < 0.1 else "fair",
        )
    if tuning is not None and tuning.test_bound is not None:
        return Answer(
            question,
            f"≤ {words.percent_above(tuning.test_bound)}",
            f"On the test rows of the tuning the error was {words.percent(tuning.test_score)}, 95 % upper "
            f"confidence bound {words.percent_above(tuning.test_bound)}.",
            "good",
        )
    if tuning is not None:
        at = tuning.curve.Cs.tolist().index(tuning.best_C)
        text = (
            f"Over {words.plural(tuning.curve.scores.shape[1], 'fold')} the mean "
            f"{words.name(tuning.curve.scoring)} was {words.number(float(tuning.curve.mean[at]))}, "
            "which is slightly optimistic because it was used to choose C."
        )
        return Answer(question, "by validation only", text, "fair")
    return Answer(
        question,
        "not known",
        "Only training rows were given, and the error on them is too optimistic. Pass test=(X_test, y_test) for a "
        "bound on the true error.",
        "bad",
    )


def _how_close(evaluated: Evaluation, r: Residuals) -> Answer:
    text = (
        f"Mean absolute error {words.number(r.mae)}, root mean square {words.number(r.rmse)} on "
        f"{_rows_used(evaluated)}. Always predicting the mean: {words.number(r.baseline_mae)} and "
        f"{words.number(r.baseline_rmse)}."
    )
    tone = "good" if r.rmse < 0.7 * r.baseline_rmse else "fair"
    tone = "bad" if r.rmse >= r.baseline_rmse else tone
    return Answer("How good is it?", f"R² = {words.number(r.r2, 3)}", text, tone)


def _how_sure_of_distance(evaluated: Evaluation, r: Residuals) -> Answer:
    question = "How sure are we?"
    if not evaluated.held_out or math.isnan(r.mae_error):
        text = "Only training rows were given, and errors on them are too optimistic. Pass test=(X_test, y_test)."
        return Answer(question, "not known", text, "bad")
    low, high = r.mae - 1.96 * r.mae_error, r.mae + 1.96 * r.mae_error
    return Answer(
        question,
        f"± {words.number(1.96 * r.mae_error, 2)}",
        f"95 % confidence interval for the mean absolute error on new rows: {words.number(low)} to "
        f"{words.number(high)} (normal approximation, independent rows).",
        "good",
    )


def _features(subject: Subject, found: Columns) -> Answer:
    question = "Which features matter?"
    names = strongest(subject, found)
    used = int((subject.coef != 0).any(axis=0).sum())
    if not names:
        return Answer(
            question, "none", "All coefficients are zero: the model predicts a constant.", "bad"
        )
    text = (
        f"Largest influence per standard deviation of the column: {', '.join(names)}. "
        f"{words.count(used)} of {words.plural(len(subject.names), 'coefficient')} differ from zero."
    )
    return Answer(question, names[0], text, "plain")


def _optimal(proof: Proof) -> Answer:
    short = {"proven": "yes", "open": "not to tol", "broken": "no", "none": "no claim"}
    tone = {"proven": "good", "open": "fair", "broken": "bad", "none": "plain"}
    text = proof.headline + "." + (f" {proof.sentences[0]}" if proof.state == "broken" else "")
    return Answer("Is it proven optimal?", short[proof.state], text, tone[proof.state])


def _majority(subject: Subject, evaluated: Evaluation) -> tuple[str, float]:
    """Return the most frequent class of the training rows, and the error of always predicting it."""
    assert subject.classes is not None
    place = {label: code for code, label in enumerate(subject.classes.tolist())}
    labels, inverse = subject.train.labels
    best = labels[int(np.bincount(inverse, subject.train.weight).argmax())]
    wrong = evaluated.truth != place.get(best, UNKNOWN)
    return words.name(best), float(evaluated.weight @ wrong) / float(evaluated.weight.sum())
