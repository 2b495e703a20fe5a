"""Online learning, one row at a time: the perceptron and stochastic sub-gradient descent.

Both need random access to the rows, so the data must be in memory. Neither guarantees an optimum; a certificate
states how far the result is from it.
"""

from __future__ import annotations

from linsep.online.perceptron import (
    ORDERS,
    UPDATES,
    PerceptronHistory,
    PerceptronRun,
    Stream,
    begin,
    lengths_of,
    stream,
    train_perceptron,
)
from linsep.online.scaling import Scaling, make_steps
from linsep.online.schedules import ScheduleCheck, StepSizes, check_schedule
from linsep.online.sgd import KEEPS, Curves, Descent, Plan, choose_steps, descend

__all__ = [
    "KEEPS",
    "ORDERS",
    "UPDATES",
    "Curves",
    "Descent",
    "PerceptronHistory",
    "PerceptronRun",
    "Plan",
    "Scaling",
    "ScheduleCheck",
    "StepSizes",
    "Stream",
    "begin",
    "check_schedule",
    "choose_steps",
    "descend",
    "lengths_of",
    "make_steps",
    "stream",
    "train_perceptron",
]
