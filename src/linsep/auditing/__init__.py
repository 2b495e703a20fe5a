"""Audit fitted linear models of any library: how far each is from the optimum of its own problem."""

from linsep.auditing.comparing import audit
from linsep.auditing.verdict import Audit, PerceptronAudit

__all__ = ["Audit", "PerceptronAudit", "audit"]
