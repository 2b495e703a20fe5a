"""Output of the command: messages on standard error, results on standard output."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sys
from dataclasses import dataclass, field
from typing import Any

from linsep.certificates import Optimality
from linsep.paths import no_such_file


@dataclass(frozen=True)
class Outcome:
    """The result of a verb: its exit code, and the facts that ``--json`` prints."""

    facts: dict[str, Any] = field(default_factory=dict)
    code: int = 0


def say(options: Any, text: str = "") -> None:
    """Print a line on standard error."""
    if not options.quiet:
        print(plain(text), file=sys.stderr, flush=True)


def fail(options: Any, error: BaseException, code: int) -> int:
    """Print an error as one line, and with ``--json`` as one object; return the exit code."""
    kind, message = type(error).__name__, as_options(str(error))
    if isinstance(error, MemoryError):
        message = f"not enough memory: {message or 'none is left'}; use fewer rows or columns."
    elif isinstance(error, KeyboardInterrupt):
        message = "interrupted"
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        absent = error.strerror.lower().startswith("no such file")
        reason = no_such_file(os.fsdecode(error.filename)) if absent else error.strerror
        message = f"{error.filename}: {reason}."
    with contextlib.suppress(BrokenPipeError):
        print(plain(f"linsep: {message}"), file=sys.stderr)
        if options.json:
            facts = {"verb": options.verb, "error": kind, "message": message, "code": code}
            print(json.dumps(facts), flush=True)
    return code


def plain(text: str) -> str:
    """Remove terminal control characters: names come from untrusted files."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


#: Parameters in messages of the library -> options of the command line.
_OPTIONS = (
    (r"types=\{'([^']*)': '?(\w+|\.\.\.)'?\}", r"--type '\1=\2'"),
    (r"types\['([^']*)'\] must", r"--type '\1=...': the type must"),
    (r"; for one split use validation=0\.25", ""),
    (r"ignore=\['([^']*)'\]", r"--ignore '\1'"),
    (r"missing=\[\.\.\.\]", "--missing TEXT"),
    (r"decimal=','", "--decimal ','"),
    (r"thousands=(['\"])(.+?)\1", r"--thousands \1\2\1"),
    (r"target='NAME'", "--target NAME"),
    (r"encoding='([^']*)'", r"--encoding \1"),
    (r"header=False", "--no-header"),
    (r"unlabelled='drop'", "--drop-unlabelled"),
    (r"quote=None", "--no-quotes"),
    (
        r"use a smaller cv, or validation=0\.25",
        "give a smaller --cv, fix --C, or leave the class out",
    ),
    (
        r"for instance separate\(X, y == '?([^')]*)'?\), or for the rows of two classes",
        r"for instance --of '\1'",
    ),
    (
        r"hold out no rows, or predict numbers instead of classes",
        "or hold out no rows with --test 0",
    ),
    (r"use a regressor to predict numbers", "give --task regress to predict numbers"),
    (
        r"export model\[-1\], and encode the rows with model\[0\]",
        "give --numeric to export that, and encode rows with linsep convert --like MODEL",
    ),
)


def as_options(message: str) -> str:
    """Replace parameters in a message of the library by the corresponding command-line options."""
    for pattern, option in _OPTIONS:
        message = re.sub(pattern, option, message)
    return message


def certificate_facts(certificate: Optimality) -> dict[str, Any]:
    """Return a certificate as plain values; values that are not finite become null."""
    names = ("primal", "dual", "gap", "relative_gap", "coef_error", "tol", "rounding")
    facts: dict[str, Any] = {name: _finite(getattr(certificate, name)) for name in names}
    return {**facts, "certified": certificate.certified, "kind": certificate.kind}


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
