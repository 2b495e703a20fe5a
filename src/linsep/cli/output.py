"""What is said, and where: words on standard error, results on standard output."""

from __future__ import annotations

import json
import math
import sys
from dataclasses import dataclass, field
from typing import Any

from linsep.certificates import Optimality


@dataclass(frozen=True)
class Outcome:
    """How a verb ended: its exit code, and the facts that ``--json`` prints."""

    facts: dict[str, Any] = field(default_factory=dict)
    code: int = 0


def say(options: Any, text: str = "") -> None:
    """A line for people."""
    if not options.quiet:
        print(text, file=sys.stderr, flush=True)


def fail(options: Any, error: BaseException, code: int) -> int:
    """One line for people, and with ``--json`` one object for programs."""
    kind = type(error).__name__
    print(f"linsep: {error}", file=sys.stderr)
    if options.json:
        print(
            json.dumps({"verb": options.verb, "error": kind, "message": str(error), "code": code})
        )
    return code


def certificate_facts(certificate: Optimality) -> dict[str, Any]:
    """A certificate as plain values; what is not finite is null."""
    names = ("primal", "dual", "gap", "relative_gap", "coef_error", "tol", "rounding")
    facts: dict[str, Any] = {name: _finite(getattr(certificate, name)) for name in names}
    return {**facts, "certified": certificate.certified, "kind": certificate.kind}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def table(heads: list[str], rows: list[list[str]]) -> str:
    """Aligned columns: the first to the left, the others to the right."""
    lines = [heads, *rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(heads))]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        ).rstrip()
        for line in lines
    )
