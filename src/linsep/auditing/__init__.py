"""How far a fitted linear model, of any library, is from the optimum of its own problem."""

from linsep.auditing.verdict import Audit, audit

__all__ = ["Audit", "audit"]
