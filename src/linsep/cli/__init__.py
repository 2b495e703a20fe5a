"""The ``linsep`` command: read files, write files.

Every verb is a module with ``add(parser)`` and ``run(options) -> Outcome``. Messages for people go to standard error,
results for programs to standard output: predictions, or with ``--json`` one object. Exit codes:

=== ==========================================
0   done, and certified if the verb certifies
2   the command line is wrong
3   finished, but not certified to tol
4   the data are wrong
5   the model file is wrong
6   a limit set by the user was reached
130 interrupted
=== ==========================================
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
from typing import NoReturn

from linsep.cli.commands import run
from linsep.cli.pandas_import import hide_pandas

__all__ = ["command", "main"]


def main(argv: list[str] | None = None) -> int:
    """Run one command line and return the exit code."""
    return run(sys.argv[1:] if argv is None else argv)


def command() -> NoReturn:
    """Run the console command, flush the streams, and exit immediately.

    Reader threads of pyarrow may outlive the table they read; an ordinary exit would then abort or hang.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):  # write UTF-8 in any locale
        sys.stdout.reconfigure(encoding="utf-8")
    if not any(word.startswith("--cluster") for word in sys.argv):
        hide_pandas()
    code = 1
    try:
        code = main()
    except BaseException:  # a bug in linsep; use the exit code of Python
        traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
