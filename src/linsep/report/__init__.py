"""HTML report about a model: its quality, the uncertainty of that estimate, and whether it is proven optimal.

The page is self-contained and works offline: figures are inline SVG, the script is a few lines, and a
content-security policy forbids everything else. All text from the data is escaped and truncated, so that no
input makes the page larger than two megabytes.

A section is a function from ``Content`` to the values of its template, and a line in ``writing.SECTIONS``.

========== ======================================================
subject    the model and its rows as numbers
columns    statistics of the columns
evaluation predictions, margins and losses of the rows
ranking    thresholds, ROC, precision-recall, calibration
several    confusion and one-vs-rest figures of many classes
residuals  errors of a regression
influence  coefficients, intervals, worst rows
assurance  certificate and error bounds
health     problems of the data
repeats    rows that occur more than once
recipe     how C was chosen, how to reproduce the model
verdict    four questions, four answers
svg        figures
page       template and content-security policy
========== ======================================================
"""

from linsep.report.writing import write_report

__all__ = ["write_report"]
