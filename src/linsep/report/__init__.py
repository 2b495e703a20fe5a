"""A report: one HTML file that says how good a model is, how sure that is, and whether it is proven optimal.

The page is self-contained and works offline: figures are inline SVG, the script is a few lines, a
content-security policy forbids everything else. Everything that comes from the data is escaped and cut to a
sensible length, so that no input makes the page larger than two megabytes.

========== ======================================================
opening    the model and its rows, ready to be judged
health     what can be said about the columns
repeats    rows that occur more than once
judging    predictions, margins and losses of the rows
ranking    thresholds, ROC, precision-recall, calibration
several    confusion and one-vs-rest figures of many classes
residuals  the same for a regression
influence  coefficients, intervals, worst rows
assurance  certificate and error bounds
recipe     how to reproduce the model
verdict    four questions, four answers
figures    SVG
page       the template, the policy, the file
========== ======================================================
"""

from linsep.report.writing import write_report

__all__ = ["write_report"]
