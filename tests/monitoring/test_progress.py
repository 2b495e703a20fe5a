"""``linsep.progress``: bars and lines tell where a computation is, and change nothing about it."""

from __future__ import annotations

import io
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

import linsep
from linsep.monitoring import Job, advance, bars, current, note
from linsep.monitoring.jobs import BOARD, Board

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)


@pytest.fixture
def board():
    """A board without a display."""
    mine = Board()
    token = BOARD.set(mine)
    yield mine
    BOARD.reset(token)


class Seen(Board):
    """Keeps what the outermost job wrote down when it ended, and the names of all that were under way."""

    def __init__(self):
        super().__init__()
        self.last, self.names = [], set()
        self.ending = lambda: self.last.append(self.jobs[0])
        seen, names = self, self.names

        class Jobs(list):
            def append(self, job):
                names.add(job.text)
                super().append(job)

        seen.jobs = Jobs()


COMPUTATIONS = {
    "fit": (lambda X, y: linsep.LogisticRegression().fit(X, y), {"fit"}),
    "svm": (lambda X, y: linsep.LinearSVC().fit(X, y), {"fit"}),
    "tune together": (
        lambda X, y: linsep.tune(linsep.LogisticRegression(), X[:, :5], y, Cs=3, cv=3),
        {"tune"},
    ),
    "tune one by one": (
        lambda X, y: linsep.tune(linsep.LinearSVC(), X[:, :5], y, Cs=2, cv=2, refit=False),
        {"tune", "fit"},
    ),
    "path together": (
        lambda X, y: linsep.path(linsep.LogisticRegression(), X[:, :5], y, Cs=2),
        {"path"},
    ),
    "path one by one": (
        lambda X, y: linsep.path(linsep.LinearSVC(), X[:, :5], y, Cs=2),
        {"path", "fit"},
    ),
    "separate": (linsep.separate, {"separate"}),
    "fewest errors": (
        lambda X, y: linsep.ZeroOneClassifier().fit(X[:80, 20:24], y[:80]),
        {"fewest errors"},
    ),
    "perceptron": (lambda X, y: linsep.Perceptron(max_updates=99).fit(X, y), {"perceptron"}),
    "sgd": (lambda X, y: linsep.SGDClassifier(epochs=2).fit(X, y), {"descent"}),
}


@pytest.mark.filterwarnings("ignore::linsep.ConvergenceWarning")
@pytest.mark.parametrize("case", COMPUTATIONS)
def test_every_computation_is_a_job(case):
    compute, names = COMPUTATIONS[case]
    seen = Seen()
    token = BOARD.set(seen)
    try:
        compute(*CANCER)
    finally:
        BOARD.reset(token)
    assert names <= seen.names and seen.jobs == []
    job = seen.last[0]
    if job.total and case != "sgd":  # which may end early
        assert job.done == job.total
    if case in ("fit", "svm"):
        assert job.passes >= 1 and job.gap <= 1e-6 and job.share == 1.0
    if case in ("separate", "perceptron"):
        assert job.passes > 0


def test_one_vs_rest_counts_its_problems():
    seen = Seen()
    token = BOARD.set(seen)
    try:
        linsep.LinearSVC().fit(*IRIS)
    finally:
        BOARD.reset(token)
    (job,) = seen.last
    assert (job.text, job.done, job.total) == ("one-vs-rest", 3, 3)


def test_nothing_changes_and_nothing_is_left(capsys):
    plain = linsep.LogisticRegression().fit(*CANCER)
    before = threading.active_count()
    with linsep.progress():
        assert BOARD.get() is not None and current() is None
        shown = linsep.LogisticRegression().fit(*CANCER)
    assert BOARD.get() is None and threading.active_count() == before
    assert np.array_equal(shown.coef_, plain.coef_) and shown.n_passes_ == plain.n_passes_
    said = capsys.readouterr()
    assert said.out == said.err == ""  # shorter than a second


def test_an_error_passes_through():
    with pytest.raises(linsep.errors.BadInput), linsep.progress():
        linsep.LogisticRegression(C=-1.0).fit(*CANCER)
    assert BOARD.get() is None


def test_plain_lines_where_there_is_no_terminal(monkeypatch, tuned):
    tuned(bars_first=0.0, bars_look=0.001)
    file = io.StringIO()
    drawn = threading.Event()
    draw = bars.Lines.draw
    monkeypatch.setattr(bars.Lines, "draw", lambda *words: (draw(*words), drawn.set()))
    with linsep.progress(file), linsep.progress(file), Job("tune", total=4) as job:
        job.done = 1
        with Job("fit", tol=1e-6):
            note(3, 2.0, 1.0)
            assert drawn.wait(10)
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("linsep: tune 0/4") or lines[0].startswith("linsep: tune 1/4")
    assert lines[-1].startswith("linsep: tune 1/4, ") and lines[-1].endswith(" s, done")


def test_a_reader_that_has_gone_is_no_error():
    file = io.StringIO()
    lines = bars.Lines(file)
    file.close()
    job = Job("fit")
    lines.draw([job], 1.0)
    lines.draw([job], 100.0)


def test_lines_come_ever_more_rarely_but_once_a_minute():
    file = io.StringIO()
    lines = bars.Lines(file)
    for tick in range(10, 4000):
        lines.draw([Job("fit")], tick / 10)
    times = [int(line.split()[-2]) for line in file.getvalue().splitlines()]
    assert times[:6] == [1, 2, 4, 8, 16, 32]
    assert np.diff(times).max() <= 61


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    bar = bars._display(file)
    assert isinstance(bar, bars.Bar)
    outer, inner = Job("[bold]tune", total=2), Job("fit", tol=1e-6)
    inner.passes, inner.primal, inner.dual = 7.0, 1.001, 1.0
    bar.draw([outer, inner], 1.5)
    outer.done = 2
    bar.finish([outer], 2.5)
    text = file.getvalue()
    assert "[bold]tune 0/2" in text and "7 passes, gap 1.0e-03" in text  # no markup in names
    assert "[bold]tune 2/2" in text and "\n" in text


def test_without_rich_there_are_lines(monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert isinstance(bars._display(Terminal()), bars.Lines)
    monkeypatch.undo()
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(bars._display(Terminal()), bars.Lines)


def test_how_much_is_done(board):
    outer, inner = Job("tune", total=4), Job("fit", tol=1e-6)
    assert bars.completed_fraction([outer]) == 0.0 and bars.completed_fraction([inner]) is None
    inner.primal, inner.dual = 1.001, 1.0
    assert bars.completed_fraction([inner]) == pytest.approx(0.5, abs=1e-3)
    outer.done = 2
    assert bars.completed_fraction([outer, inner]) == pytest.approx(0.625, abs=1e-3)
    assert bars.completed_fraction([Job("report"), inner]) is None
    inner.primal = inner.dual = 0.0
    assert inner.gap == 0.0 and inner.share == 1.0


def test_bounds_of_other_problems_are_not_taken(board):
    with Job("fit", tol=1e-6) as job:
        job.owner = mine = object()
        note(1, 5.0, 1.0, mine)
        note(9, 0.1, 4.0, object())
        note(2, np.nan, np.nan, mine)
        advance(3)
    assert (job.passes, job.primal, job.dual, job.done) == (2, 5.0, 1.0, 3)
    note(1)  # no job: nothing happens
    advance(1)


def test_reading_counts_bytes(tmp_path, board):
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n" + b"1.5,0\n" * 5000)
    shares = []
    board.ending = lambda: shares.append(board.jobs[0].share)
    linsep.read_table(path, "y")
    assert shares == [1.0]


@pytest.mark.parametrize(("words", "expected"), [([], True), (["--quiet"], False)])
def test_the_command_line_watches_on_a_terminal(tmp_path, monkeypatch, words, expected):
    from linsep.cli import main, separating

    seen = []
    run = separating.run
    monkeypatch.setattr(separating, "run", lambda o: (seen.append(BOARD.get()), run(o))[1])
    path = tmp_path / "t.csv"
    path.write_text("a,y\n0,0\n1,1\n")
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["separate", str(path), "-t", "y", *words]) == 0
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["separate", str(path), "-t", "y", *words]) == 0
    assert [board is not None for board in seen] == [expected, False]
