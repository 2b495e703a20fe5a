"""Run a case and say how it ended: good, or one of six kinds of fault.

============ ========================================================================================
good         the right answer, or a typed error whose message has the words that the case asks for
silent wrong an answer that is not right, or any answer where there is none
vague        a typed error whose message lacks those words
internal     an exception that is about the inside of the library
refused      a typed error where the input is valid
crash        the process ended
hang         no answer within the limit
============ ========================================================================================

A case runs in this process if it is safe, else in a forked child with a limit of time and memory.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

GOOD, WRONG, VAGUE, INTERNAL, REFUSED, CRASH, HANG = KINDS = (
    *("good", "silent wrong", "vague", "internal", "refused", "crash", "hang"),
)
MEMORY = 6 << 30  # bytes that a child may take beyond those of its parent


class WrongAnswer(Exception):
    """A check of an answer failed."""


class Said(Exception):
    """A command line that ended with an error; the text is what it printed."""


@dataclass(frozen=True)
class Case:
    """One input with its expected outcome.

    ``act(library)`` returns after it has checked the answer. ``words`` None: the input is valid. Otherwise it must be
    refused with all these words in the message. ``either``: both will do, as long as the answer is right.
    """

    name: str
    act: Callable[[Any], object]
    words: tuple[str, ...] | None = None
    either: bool = False
    apart: bool = False  #: never in this process
    slow: bool = False
    limit: float = 30.0  #: seconds
    memory: int = MEMORY


def check(holds: object, what: object = "") -> None:
    """Raise WrongAnswer unless it holds."""
    if not holds:
        raise WrongAnswer(str(what))


def close(found: Any, expected: Any, rtol: float = 1e-9, atol: float = 1e-12) -> None:
    """Raise WrongAnswer unless two arrays have the same shape and nearly the same entries."""
    found, expected = np.asarray(found), np.asarray(expected)
    check(found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}")
    check(np.allclose(found, expected, rtol, atol), f"{found!r:.100}, not {expected!r:.100}")


def same(found: Any, expected: Any) -> None:
    """Raise WrongAnswer unless two objects are equal."""
    equal = np.array_equal(found, expected) if isinstance(found, np.ndarray) else found == expected
    check(equal, f"{found!r:.200}, not {expected!r:.200}")


def run(case: Case, library: Any, apart: bool = False) -> tuple[str, str]:
    """How the case ended, and in what words."""
    return _apart(case, library) if apart or case.apart else _here(case, library)


def _here(case: Case, library: Any) -> tuple[str, str]:
    with _elsewhere(), warnings.catch_warnings():
        library.set_warnings()
        try:
            case.act(library)
        except WrongAnswer as wrong:
            return WRONG, str(wrong)
        except library.typed as error:
            return _judge_refusal(case, library, error)
        except Exception as error:
            if case.words and library.words and all(word in str(error) for word in case.words):
                return GOOD, str(error)  # scikit-learn's rules ask for TypeError here and there
            return INTERNAL, "".join(traceback.format_exception(error))
    if case.words is None or case.either:
        return GOOD, ""
    return WRONG, "accepted"


def _judge_refusal(case: Case, library: Any, error: BaseException) -> tuple[str, str]:
    text = str(error)
    if case.words is None:
        return (GOOD if case.either else REFUSED), f"{type(error).__name__}: {text}"
    lacking = [word for word in case.words if word not in text] if library.words else []
    return (VAGUE if lacking or not text.strip() else GOOD), f"{text} [lacks {lacking}]"


@contextmanager
def _elsewhere() -> Any:
    """A directory of its own: a case writes files by plain names."""
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


def _apart(case: Case, library: Any) -> tuple[str, str]:
    """Run the case in a child; in a second one if there is no answer.

    A child that is forked beside other threads may inherit a lock that nobody releases: pytest's workers have such
    threads. That is rare and does not repeat, whereas a hang of the library does.
    """
    outcome = _in_child(case, library)
    return _in_child(case, library) if outcome[0] == HANG else outcome


def _in_child(case: Case, library: Any) -> tuple[str, str]:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks beside threads
        child = os.fork()
    if child == 0:
        os.close(reader)
        _answer(case, library, writer)
    os.close(writer)
    try:
        outcome = _awaited(reader, case.limit)
        if outcome is None:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(reader)
    if outcome is None:
        return HANG, f"no answer within {case.limit:g} s"
    if not outcome:
        return CRASH, f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "it exited"
    kind, text = json.loads(outcome)
    return kind, text


def _answer(case: Case, library: Any, writer: int) -> None:
    """In the child: the outcome goes through the pipe, and nothing else happens."""
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        with open("/proc/self/statm") as now:
            used = int(now.read().split()[0]) * os.sysconf("SC_PAGESIZE")
        resource.setrlimit(resource.RLIMIT_AS, (used + case.memory,) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        kind, text = _here(case, library)
        os.write(writer, json.dumps([kind, text[:4000]]).encode())
    finally:
        os._exit(0)


def _awaited(reader: int, limit: float) -> bytes | None:
    """All that the child writes before it ends; None if it does not end in time."""
    found = b""
    while select.select([reader], [], [], limit)[0]:
        piece = os.read(reader, 1 << 16)
        if not piece:
            return found
        found += piece
    return None
