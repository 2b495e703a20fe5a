"""The result of ``summary``, with conversions to text, plain values and HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any

from linsep import notebook


@dataclass(frozen=True)
class Coefficient:
    """One line of the table of coefficients; statistics that are not available are None."""

    name: str
    value: float
    standard_error: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    low: float | None = None
    high: float | None = None
    odds_ratio: float | None = None
    odds_low: float | None = None
    odds_high: float | None = None


@dataclass(frozen=True, eq=False)
class Summary:
    """Result of :func:`linsep.summary`; ``print`` it, or use ``to_dict()`` or ``to_html()``.

    Attributes
    ----------
    title : str
        Model, loss and C.
    rows : float
        Number of rows, or sum of the weights.
    objective : str
        The certificate in one line.
    coefficients : dict {title of the table: tuple of Coefficient}
        One table, or one for each of k >= 3 classes.
    level : float
        Confidence level of the intervals.
    inference : str
        Kind of the intervals, or why there are none.
    valid : bool
        Whether there are standard errors.
    facts : dict {str: float}
        Error on these rows, R squared, residual standard error, log-likelihood, AIC and BIC, as far as they apply.
    """

    title: str
    rows: float
    objective: str
    coefficients: dict[str, tuple[Coefficient, ...]]
    level: float
    inference: str
    valid: bool
    facts: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain Python values for JSON."""
        return {
            "title": self.title,
            "rows": self.rows,
            "objective": self.objective,
            "level": self.level,
            "inference": self.inference,
            "valid": self.valid,
            "facts": dict(self.facts),
            "coefficients": {
                part: [vars(line).copy() for line in lines]
                for part, lines in self.coefficients.items()
            },
        }

    def _table(self) -> tuple[list[str], dict[str, list[list[str]]]]:
        odds = any(c.odds_ratio is not None for lines in self.coefficients.values() for c in lines)
        percent = f"{100 * self.level:g}%"
        heads = ["", "coefficient"]
        if self.valid:
            heads += ["std. error", "z" if odds else "t", "p", f"{percent} low", f"{percent} high"]
        heads += ["odds ratio"] if odds else []
        body = {}
        for part, lines in self.coefficients.items():
            body[part] = [
                [c.name, _number(c.value)]
                + (
                    [
                        _number(c.standard_error),
                        _number(c.statistic),
                        _p(c.p_value),
                        _number(c.low),
                        _number(c.high),
                    ]
                    if self.valid
                    else []
                )
                + ([_number(c.odds_ratio)] if odds else [])
                for c in lines
            ]
        return heads, body

    def __str__(self) -> str:
        heads, body = self._table()
        out = [self.title, f"{self.rows:g} rows. {self.objective}"]
        out += [f"{name}: {value:.6g}" for name, value in self.facts.items()]
        for part, lines in body.items():
            out += [f"\n{part}" if part else "", *notebook.text_table(heads, lines)]
        out += ["", self.inference]
        return "\n".join(out)

    __repr__ = __str__

    def to_html(self) -> str:
        """Return the summary as an HTML fragment; all names are escaped."""
        heads, body = self._table()
        out = [f"<div><strong>{html.escape(self.title)}</strong></div>"]
        out.append(f"<div>{self.rows:g} rows. {html.escape(self.objective)}</div>")
        if self.facts:
            facts = (f"{html.escape(k)}: {v:.6g}" for k, v in self.facts.items())
            out.append(f"<div>{'; '.join(facts)}</div>")
        for part, lines in body.items():
            out.append(f"<div>{html.escape(part)}</div>" if part else "")
            out.append(notebook.table(heads, lines))
        out.append(f"<div>{html.escape(self.inference)}</div>")
        return "\n".join(out)

    _repr_html_ = to_html


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def _p(value: float | None) -> str:
    if value is None:
        return ""
    return "<1e-300" if value == 0.0 else f"{value:.3g}"
