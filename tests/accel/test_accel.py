"""linsep.accel: programs run unchanged, the log names their lines, and everything can be undone."""

import copy
import logging
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import sklearn.base
import sklearn.ensemble
import sklearn.linear_model
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from versions import construct

import linsep.accel
import linsep.sklearn
from linsep.accel.__main__ import main

SOURCE = str(Path(linsep.accel.__file__).parents[2])
THEIRS = sklearn.linear_model.LogisticRegression
OURS = linsep.sklearn.LogisticRegression
CANCER = load_breast_cancer(return_X_y=True)


@pytest.fixture
def report():
    found = linsep.accel.install()
    yield found
    linsep.accel.uninstall()


def run(folder, text, *words, script="train.py", code=0):
    """Run a program under accel and return what it printed on both streams."""
    (folder / "train.py").write_text(textwrap.dedent(text))
    path = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore",
            "-m",
            "linsep.accel",
            *words,
            *([script] if script else []),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr
    return done.stdout, done.stderr


PROGRAM = """
    import sys
    from sklearn.datasets import load_breast_cancer
    from sklearn.linear_model import LogisticRegression
    import sklearn.linear_model as models

    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit(X, y)
    again = models.LogisticRegression(max_iter=2).fit(X, y)
    print(type(model).__module__, sys.argv, __name__)
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "say which script or module to run"),
        (["--audit", "absent.py"], "there is no file absent.py"),
    ],
)
def test_without_a_program_it_says_what_is_missing(words, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert said in capsys.readouterr().err


def test_a_script_with_its_arguments(tmp_path):
    out, err = run(tmp_path, PROGRAM, "train.py", "--C", "3", script=None)
    assert out == "linsep.sklearn.logistic ['train.py', '--C', '3'] __main__\n"
    assert "linsep.accel: 1 fit in linsep, all certified; 1 left to scikit-learn" in err
    assert "  train.py:8  LogisticRegression: 1 fit in linsep, relative gap at most " in err
    assert "  train.py:9  LogisticRegression: 1 fit left to scikit-learn: max_iter=2 asks" in err


@pytest.mark.slow
def test_a_module_quiet_and_verbose(tmp_path):
    out, err = run(tmp_path, PROGRAM, "--quiet", "-m", "train", "more", script=None)
    assert out.startswith("linsep.sklearn.logistic") and "'more'] __main__" in out and err == ""
    out, err = run(tmp_path, PROGRAM, "--verbose")
    assert err.startswith("linsep.accel: train.py:8: LogisticRegression runs in linsep\n")
    assert "linsep.accel: train.py:9: LogisticRegression is left to scikit-learn: max_iter=2" in err


@pytest.mark.slow
def test_scikit_learn_is_audited(tmp_path):
    text = PROGRAM.replace("max_iter=2", "tol=1e-10, max_iter=100000")
    _, err = run(tmp_path, text, "--audit")
    assert "scikit-learn's fit on line 8 was 3" in err and "% above the optimum" in err


@pytest.mark.slow
def test_errors_and_exit_codes_of_the_program_are_its_own(tmp_path):
    _, err = run(tmp_path, "import sys\nsys.exit(7)", code=7)
    assert err == "linsep.accel: 0 fits in linsep\n"
    _, err = run(tmp_path, "raise KeyError('mine')", code=1)
    assert "KeyError: 'mine'" in err and 'train.py", line 1' in err


@pytest.mark.slow
def test_pickles_are_read_without_accel(tmp_path):
    text = """
        import pickle
        from sklearn.datasets import load_breast_cancer
        from sklearn.linear_model import LogisticRegression
        model = LogisticRegression().fit(*load_breast_cancer(return_X_y=True))
        open("model.pkl", "wb").write(pickle.dumps(model))
    """
    run(tmp_path, text)
    model = pickle.loads((tmp_path / "model.pkl").read_bytes())
    assert type(model) is OURS and isinstance(model, THEIRS)
    assert model.certificate_.certified and model.score(*CANCER) > 0.9


def test_install_and_uninstall(report):
    assert "LogisticRegression" in report.replaced
    assert sklearn.linear_model.LogisticRegression is OURS
    assert linsep.accel.install() is report
    model = sklearn.linear_model.LogisticRegression().fit(*CANCER)
    assert isinstance(model, THEIRS) and model.certificate_.certified
    assert sklearn.base.clone(model).__class__ is OURS
    assert linsep.accel.uninstall() is report and linsep.accel.uninstall() is None
    assert sklearn.linear_model.LogisticRegression is THEIRS
    count = report.entries[0].fits
    OURS().fit(*CANCER)
    assert report.entries[0].fits == count
    assert not hasattr(OURS.fit, "_own")
    assert logging.getLogger("linsep.sklearn").level == logging.NOTSET


def test_models_of_both_classes_are_pickled(report):
    before = THEIRS(C=2.0)
    assert type(pickle.loads(pickle.dumps(before))) is THEIRS
    after = sklearn.linear_model.LogisticRegression(C=2.0)
    assert type(pickle.loads(pickle.dumps(after))) is OURS
    assert type(copy.deepcopy(after)) is OURS


def test_defaults_inside_scikit_learn(report):
    X, y = CANCER
    stack = sklearn.ensemble.StackingClassifier([("one", THEIRS(C=0.1, max_iter=5000))], cv=2)
    stack.fit(StandardScaler().fit_transform(X), y)
    assert type(stack.final_estimator_) is OURS
    assert [entry.name for entry in report.entries] == ["LogisticRegression"]


def test_the_line_is_the_callers_through_pipelines_and_searches(report):
    X, y = CANCER
    pipeline = make_pipeline(StandardScaler(), sklearn.linear_model.LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2)
    search.fit(X, y)
    (entry,) = report.entries
    text = Path(__file__).read_text().splitlines()
    assert text[entry.line - 1].strip() == "search.fit(X, y)"
    assert Path(entry.file).name == Path(__file__).name
    assert entry.fits == 5 and entry.certified == 5 and entry.gap < 1e-6
    assert "5 fits in linsep" in str(report)


def test_the_audit_of_a_program():
    report = linsep.accel.install(audit=True)
    try:
        with np.errstate(all="ignore"):
            sklearn.linear_model.LogisticRegression(random_state=0).fit(*CANCER)
    finally:
        linsep.accel.uninstall()
    (entry,) = report.entries
    assert entry.audited == 1 and entry.excess > 0.05
    assert f"scikit-learn's fit on line {entry.line} was " in str(report)


def test_modules_that_imported_before_are_named():
    module = type(sys)("early")
    module.LogisticRegression = THEIRS
    sys.modules["early"] = module
    try:
        report = linsep.accel.install()
        assert report.too_early["early"] == ("LogisticRegression",)
        assert "early (LogisticRegression)" in str(report)
    finally:
        linsep.accel.uninstall()
        del sys.modules["early"]


def test_the_log_goes_on_as_it_was(report, caplog):
    with pytest.warns(UserWarning, match="converge"):
        sklearn.linear_model.LogisticRegression(max_iter=2).fit(*CANCER)
    assert not caplog.records
    (entry,) = report.entries
    assert entry.fits == 0 and sum(entry.left.values()) == 1


def test_the_extension_of_ipython(capsys):
    linsep.accel.load_ipython_extension(None)
    try:
        assert sklearn.linear_model.LogisticRegression is OURS
        assert "LogisticRegression" in capsys.readouterr().out
    finally:
        linsep.accel.unload_ipython_extension(None)
    assert sklearn.linear_model.LogisticRegression is THEIRS
    assert "linsep.accel: 0 fits in linsep" in capsys.readouterr().out


@pytest.mark.slow
def test_load_ext_in_a_session_of_ipython(tmp_path):
    pytest.importorskip("IPython")
    program = """
    %load_ext linsep.accel
    from sklearn.linear_model import LogisticRegression
    model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    print(type(model).__module__, model.certificate_.certified)
    %unload_ext linsep.accel
    import sklearn.linear_model
    print(sklearn.linear_model.LogisticRegression.__module__)
    """
    (tmp_path / "session.ipy").write_text(textwrap.dedent(program))
    path = os.pathsep.join([SOURCE, os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--no-banner", "session.ipy"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "linsep.sklearn.logistic True" in done.stdout
    assert "linsep.accel: 1 fit in linsep, all certified" in done.stdout
    assert done.stdout.rstrip().endswith("sklearn.linear_model._logistic")


def test_a_perceptron_has_no_optimum_to_be_compared_with():
    """Its loss is 0 at w = 0, so "at the optimum" would be wrong for one that still makes mistakes."""
    X, y = CANCER
    report = linsep.accel.install(audit=True)
    try:
        sklearn.linear_model.Perceptron().fit(X[:60], y[:60])
    finally:
        linsep.accel.uninstall()
    text = str(report)
    assert "Perceptron: 1 fit in linsep, 1 without a certificate of optimality" in text
    assert "optimum" not in text and report.entries[0].audited == 0


def test_only_a_model_with_a_certificate_counts_as_certified(report):
    X, y = CANCER
    sklearn.linear_model.Perceptron().fit(X[:60], y[:60])
    model = construct(
        sklearn.linear_model.LogisticRegressionCV,
        Cs=2,
        cv=2,
        refit=False,
        l1_ratios=(0,),
        scoring="accuracy",
        use_legacy_attributes=True,
    )
    model.fit(X[:60, :3], y[:60])
    fits = sum(entry.fits for entry in report.entries)
    certified = sum(entry.certified for entry in report.entries)
    assert (fits > 0, certified) == (True, 0)
    assert "all certified" not in str(report)


@pytest.mark.slow
def test_the_page_shows_what_the_program_prints(tmp_path):
    root = Path(__file__).resolve().parents[2]
    program = (root / "examples" / "accel" / "train.py").read_text()
    _, said = run(tmp_path, program)
    page = (root / "docs" / "accel.md").read_text()
    shown = page[page.index("linsep.accel: 17") :].partition("```")[0]
    gap = re.compile(r"\d\.\de-\d+")  # its size depends on the machine
    assert gap.sub("gap", shown).strip() in gap.sub("gap", said)
