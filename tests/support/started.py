"""Programs in processes of their own, which tests may kill."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap


def start(program, *arguments):
    """A Python program, begun."""
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def output(process):
    """What it has printed, once it has ended well."""
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out.strip()
