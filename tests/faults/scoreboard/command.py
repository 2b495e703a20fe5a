"""The command line as a case sees it: an exit code and what was said."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any

from linsep.cli import main
from scoreboard.harness import Said, check

FAST = ("--C", "1", "--test", "0", "--no-report")


def linsep(*words: str, code: int | None = None) -> str:
    """Run a command; what it printed. An exit code that is not 0 raises Said, unless it is the expected one."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        found = main(list(words))
    said = err.getvalue()
    check("Traceback" not in said, said)
    if code is not None:
        check(found == code, f"exit code {found}, not {code}: {said}")
    if found:
        raise Said(f"exit code {found}: {said}")
    return said + out.getvalue()


def fit(
    name: str, content: bytes | None, *words: str, says: str = "", code: int | None = None
) -> None:
    """``linsep fit`` on a file with that content; a model that is certified, and says something."""
    if content is not None:
        with open(name, "wb") as file:
            file.write(content)
    said = linsep("fit", name, *FAST, "--json", *words, code=code)
    check(says in said, f"{says!r} not in {said}")
    facts: dict[str, Any] = json.loads(said[said.index('{"') :])
    check(facts["certificate"]["certified"], "not certified")
