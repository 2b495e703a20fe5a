"""Command line: ``python -m linsep.accel [--audit] [--verbose] [--quiet] (script.py | -m module) [arguments]``."""

from __future__ import annotations

import argparse
import logging
import os
import runpy
import sys

from linsep import accel


def main(words: list[str]) -> None:
    """Run a script or module with linsep's classes, then print the report to standard error."""
    ours, target, rest, module = _split_arguments(words)
    parser = argparse.ArgumentParser(
        prog="python -m linsep.accel",
        description="Run a program written for scikit-learn with the classes of linsep.sklearn.",
        usage="%(prog)s [--audit] [--verbose] [--quiet] (script.py | -m module) [arguments]",
    )
    parser.add_argument(
        "--audit",
        action="store_true",
        help="also fit scikit-learn's own classes, and say how far they are from the optimum",
    )
    parser.add_argument("--verbose", action="store_true", help="tell what runs where as it happens")
    parser.add_argument("--quiet", action="store_true", help="no summary at the end")
    options = parser.parse_args(ours)
    if target is None:
        parser.error("say which script or module to run")
    if not module and not os.path.exists(target):
        parser.error(f"there is no file {target}")
    if options.verbose:
        _tell()
    report = accel.install(audit=options.audit)
    sys.argv = [target, *rest]
    try:
        if module:
            sys.path[0] = os.getcwd()
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(target))
            runpy.run_path(target, run_name="__main__")
    finally:
        if not options.quiet:
            sys.stdout.flush()
            print(report, file=sys.stderr)


def _split_arguments(words: list[str]) -> tuple[list[str], str | None, list[str], bool]:
    """Options for accel, the script or module, its own arguments, and whether it is a module."""
    for number, word in enumerate(words):
        if word == "-m" and number + 1 < len(words):
            return words[:number], words[number + 1], words[number + 2 :], True
        if not word.startswith("-"):
            return words[:number], word, words[number + 1 :], False
    return words, None, [], False


def _tell() -> None:
    """Write the log of fits to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("linsep.accel: %(message)s"))
    accel.recording.log.addHandler(handler)
    accel.recording.log.setLevel(logging.INFO)
    accel.recording.log.propagate = False


if __name__ == "__main__":
    main(sys.argv[1:])
