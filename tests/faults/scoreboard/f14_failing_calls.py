"""F14: the k-th call to the system fails while a file is written; the old file stays, and nothing is left behind."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from functools import partial
from typing import Any
from unittest import mock

import linsep
from scoreboard.f04_arrays import X, Y
from scoreboard.harness import Case, check

CALLS = ("open", "fsync", "replace", "fdopen")


class _Failing:
    """A function whose k-th call fails."""

    def __init__(self, name: str, k: int, code: int) -> None:
        self.real, self.left, self.code = getattr(os, name), k, code

    def __call__(self, *words: Any, **more: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise OSError(self.code, os.strerror(self.code), "m.linsep")
        return self.real(*words, **more)


def _write(call: str, k: int, code: int, library: Any) -> None:
    model = linsep.LogisticRegression().fit(X, Y)
    linsep.save(model, "m.linsep")
    with open("m.linsep", "rb") as file:
        before = file.read()
    failing = _Failing(call, k, code)
    other = linsep.LogisticRegression(C=7.0).fit(X, Y)
    with mock.patch.object(os, call, failing):
        try:
            linsep.save(other, "m.linsep")
        except OSError:
            failed = True
        else:
            failed = False
    with open("m.linsep", "rb") as file:
        after = file.read()
    check(os.listdir(".") == ["m.linsep"], f"left behind: {os.listdir('.')}")
    linsep.load("m.linsep")
    if failed:
        check(after == before, "the old file changed although save failed")
    else:
        check(after != before, "save said nothing and wrote nothing")


def cases() -> Iterator[Case]:
    for call in CALLS:
        for k in (1, 2, 3):
            for code in (errno.ENOSPC, errno.EIO, errno.EACCES):
                yield Case(
                    f"save, {call} {k}, {errno.errorcode[code]}", partial(_write, call, k, code)
                )
