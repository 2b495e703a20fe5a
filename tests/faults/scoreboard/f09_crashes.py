"""F9: killed in mid-write or mid-fit, and disks that are full: the old file or the new one, and the same bits after."""

from __future__ import annotations

import os
import resource
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp

import linsep
from linsep.data import mapped_files
from linsep.data.entrance import inputs
from linsep.data.memory import Memory
from linsep.estimators import scoring
from scoreboard.f04_arrays import X, Y
from scoreboard.harness import Case, check, same

ROWS = np.random.default_rng(5).normal(size=(40_000, 8))
SIDE = (ROWS[:, 0] + np.random.default_rng(6).normal(size=len(ROWS)) > 0).astype(int)


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """Run work in a child and kill it; whether it was killed before it ended."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def _killed_save(seconds: float, library: Any) -> None:
    model = linsep.LogisticRegression().fit(X, Y)
    linsep.save(model, "m.linsep")

    def save_again() -> None:
        while True:
            linsep.save(model, "m.linsep")

    check(killed_after(seconds, save_again), "it ended by itself")
    same(linsep.load("m.linsep").coef_, model.coef_)


def _fit_scan(solver: str) -> Any:
    with linsep.scan("rows.npy", target=SIDE) as rows, linsep.checkpoint("fit.checkpoint"):
        return linsep.LogisticRegression(solver=solver, tol=1e-9).fit(rows).coef_


def _killed_fit(seconds: float, library: Any) -> None:
    np.save("rows.npy", ROWS)
    killed_after(seconds, partial(_fit_scan, "auto"))
    resumed = _fit_scan("auto")
    if os.path.exists("fit.checkpoint"):
        os.remove("fit.checkpoint")
    same(resumed, _fit_scan("auto"))


def _killed_cache(seconds: float, library: Any) -> None:
    """A cache that was being written is built again."""
    with open("rows.csv", "w") as file:
        file.write(
            "a,b,y\n"
            + "".join(
                f"{a:.6f},{b:.6f},{y}\n" for (a, b), y in zip(ROWS[:20_000, :2], SIDE, strict=False)
            )
        )
    killed_after(seconds, lambda: linsep.scan("rows.csv", target="y", cache="cache"))
    with linsep.scan("rows.csv", target="y", cache="cache") as rows:
        check(rows.shape == (20_000, 2), rows.shape)
        check(
            np.allclose(rows.rows[:20_000], np.round(ROWS[:20_000, :2], 6), 0, 1e-9), "other rows"
        )


def _limited(work: Callable[[], object], size: int = 2000) -> None:
    """With files of at most so many bytes, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    work()


def _full_save(library: Any) -> None:
    model = linsep.LogisticRegression().fit(X, Y)
    linsep.save(model, "m.linsep")
    before = open("m.linsep", "rb").read()
    other = linsep.LogisticRegression(C=7.0).fit(X, Y)
    try:
        _limited(lambda: linsep.save(other, "m.linsep"), 100)
    finally:
        check(open("m.linsep", "rb").read() == before, "the old file changed")
        check(os.listdir(".") == ["m.linsep"], f"left behind: {os.listdir('.')}")


def _full_cache(library: Any) -> None:
    np.savez("rows.npz", X=ROWS, y=SIDE)
    try:
        _limited(lambda: linsep.scan("rows.npz", target="y", cache="cache"), 1 << 16)
    finally:
        check(not os.path.exists("cache") or not os.listdir("cache"), "something was kept")


def _cache_limit(library: Any) -> None:
    np.savez("rows.npz", X=ROWS, y=SIDE)
    linsep.scan("rows.npz", target="y", cache="cache", cache_limit=1000)


def _cache_altered(library: Any) -> None:
    """A cache with another byte is built again, or refused; it is never used."""
    np.savez("rows.npz", X=ROWS[:1000], y=SIDE[:1000])
    with linsep.scan("rows.npz", target="y", cache="cache") as rows:
        truth = linsep.LogisticRegression().fit(rows).coef_
    for folder, _, names in os.walk("cache"):
        for name in names:
            path = os.path.join(folder, name)
            with open(path, "r+b") as file:
                raw = file.read()
                file.seek(len(raw) // 2)
                file.write(bytes([raw[len(raw) // 2] ^ 1]))
            try:
                with linsep.scan("rows.npz", target="y", cache="cache") as rows:
                    same(linsep.LogisticRegression().fit(rows).coef_, truth)
            except linsep.errors.LinsepError as error:
                check("cache" in str(error), error)
            with open(path, "wb") as file:
                file.write(raw)


def _source_changed(library: Any) -> None:
    """The source has another content, but the size and the time of the old one."""
    write = partial(np.savez, "rows.npz")
    write(X=ROWS[:1000], y=SIDE[:1000])
    when = os.stat("rows.npz")
    with linsep.scan("rows.npz", target="y", cache="cache") as rows:
        first = linsep.LogisticRegression().fit(rows).coef_
    write(X=-ROWS[:1000], y=SIDE[:1000])
    os.utime("rows.npz", ns=(when.st_atime_ns, when.st_mtime_ns))
    with linsep.scan("rows.npz", target="y", cache="cache") as rows:
        second = linsep.LogisticRegression().fit(rows).coef_
    check(first[0, 0] > 0 > second[0, 0], "the old rows were used")


def _mapped(dtype: str, order: str) -> Any:
    """ROWS in a file, mapped."""
    np.save("rows.npy", np.asarray(10 * ROWS, dtype=dtype, order=order))
    return np.load("rows.npy", mmap_mode="r")


def _cut(size: int) -> None:
    with open("rows.npy", "r+b") as file:
        file.truncate(size)


def _cut_during_fit(dtype: str, order: str, again: bool, library: Any) -> None:
    """The file loses most of its pages in the second pass of a fit; ``again``: and is written anew at once."""
    given = _mapped(dtype, order)
    whole = os.path.getsize("rows.npy")
    passes = Memory.sums
    count = 0

    def cutting(self: Any, *wanted: Any, **notes: Any) -> Any:
        nonlocal count
        count += 1
        if count == 2:
            _cut(1000)
        try:
            return passes(self, *wanted, **notes)
        finally:
            if again:
                _cut(whole)

    model = linsep.LogisticRegression(solver="newton")
    with mock.patch.object(Memory, "sums", cutting):
        try:
            model.fit(given, SIDE)
        finally:
            check(count >= 2, "one pass only")
            check(not hasattr(model, "coef_"), "fitted")


def _cut_during_prediction(dtype: str, library: Any) -> None:
    """The file is cut between the check of its size and the product."""
    given = _mapped(dtype, "C")
    model = linsep.LogisticRegression().fit(10 * ROWS[:1000], SIDE[:1000])

    def cutting(X: Any) -> Any:
        found = mapped_files.watch(X)
        _cut(1000)
        return found

    with mock.patch.object(inputs, "watch", cutting), mock.patch.object(scoring, "watch", cutting):
        model.predict(given)


def _cut_sparse(library: Any) -> None:
    """The values of a CSR matrix are in a file that is cut."""
    rows = sp.csr_matrix(ROWS)
    np.save("rows.npy", rows.data)
    values = np.load("rows.npy", mmap_mode="r")
    given = mapped_files.watch(sp.csr_matrix((values, rows.indices, rows.indptr), rows.shape))
    _cut(1000)
    check(np.isnan(given.data[-70_000:]).any(), "no mark")
    mapped_files.require_untruncated(given)


def _cut_elsewhere(library: Any) -> None:
    """A map that no fit reads is left alone: its reader gets the signal, as without linsep."""
    watched = _mapped("f8", "C")
    linsep.LogisticRegression().fit(watched[:100], SIDE[:100])
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        _cut(1000)
        float(watched[-1, -1])
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    check(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGBUS, f"status {status}")


def cut_maps() -> Iterator[Case]:
    words = ("mapped from a file", "short", "linsep.scan")
    for dtype in ("f8", "f4", "i4", "u1", "f2"):
        for order in "CF":
            yield Case(
                f"map of {dtype} in {order} order cut during a fit",
                partial(_cut_during_fit, dtype, order, False),
                words,
                apart=True,
                slow=(dtype, order) not in (("f8", "C"), ("i4", "C")),
            )
        yield Case(
            f"map of {dtype} cut during a prediction",
            partial(_cut_during_prediction, dtype),
            words,
            apart=True,
            slow=dtype != "f8",
        )
    yield Case(
        "map cut and written again during a fit",
        partial(_cut_during_fit, "f8", "C", True),
        words,
        apart=True,
    )
    yield Case("map of a sparse matrix cut", _cut_sparse, words, apart=True)
    yield Case("map cut when no fit reads it", _cut_elsewhere, apart=True)


def cases() -> Iterator[Case]:
    yield from cut_maps()
    for seconds in (0.02, 0.05, 0.1, 0.2, 0.4):
        yield Case(
            f"save killed after {seconds:g} s",
            partial(_killed_save, seconds),
            apart=True,
            slow=seconds > 0.1,
        )
    for seconds in (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0):
        yield Case(
            f"fit killed after {seconds:g} s",
            partial(_killed_fit, seconds),
            apart=True,
            slow=True,
            limit=120,
        )
    for seconds in (0.02, 0.05, 0.1, 0.2):
        yield Case(
            f"cache killed after {seconds:g} s",
            partial(_killed_cache, seconds),
            apart=True,
            slow=True,
            limit=120,
        )
    yield Case("save on a full disk", _full_save, ("File too large",), apart=True)
    yield Case("cache on a full disk", _full_cache, ("no room", "cache"), apart=True)
    yield Case("cache beyond its limit", _cache_limit, ("cache_limit", "1,000"))
    yield Case("cache altered", _cache_altered)
    yield Case("source changed behind the cache", _source_changed)
