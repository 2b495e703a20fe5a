"""F13: the command line."""

from __future__ import annotations

from collections.abc import Iterator

from scoreboard import through_fit
from scoreboard.harness import Case


def cases() -> Iterator[Case]:
    yield from through_fit.cases()
