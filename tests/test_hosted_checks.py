"""The hosted checks, the Makefile, the package's classifiers and pre-commit agree with each other."""

import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = (ROOT / "pyproject.toml").read_text("utf-8")
JOBS = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]


def matrix(job):
    return JOBS[job]["strategy"]["matrix"]


def test_hosted_checks_run_every_verb_that_a_release_needs():
    verbs = set(re.findall(r"^([a-z0-9-]+):.*## ", (ROOT / "Makefile").read_text("utf-8"), re.M))
    hosted = {verb.split()[0] for verb in matrix("verbs")["verb"]} | {"oldest"}
    assert hosted <= verbs
    checklist = (ROOT / "docs/releasing.md").read_text("utf-8").partition("\n## ")[0]
    needed = set(re.findall(r"`make ([a-z0-9-]+)`", checklist))
    assert needed <= verbs
    by_people = {"bench"}  # on a quiet machine
    by_wheels = {"wheel", "sdist", "sbom"}  # .github/workflows/wheels.yml
    assert needed - by_people - by_wheels <= hosted


def test_hosted_checks_cover_the_versions_that_the_package_names():
    named = set(re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PYPROJECT))
    lowest = re.search(r'requires-python = ">=(3\.\d+)"', PYPROJECT)[1]
    assert min(named, key=lambda version: int(version[2:])) == lowest
    own = re.match(r"python:(3\.\d+)-", JOBS["checks"]["container"])[1]
    assert {own} | {
        version for version in matrix("versions")["python"] if version[-1] != "t"
    } == named


def test_ruff_leaves_the_generated_stub_alone_when_it_is_named_as_by_pre_commit():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0][
        "hooks"
    ]
    entries = [hook["entry"].split() for hook in hooks if "/ruff " in hook["entry"]]
    assert [words[1] for words in entries] == ["format", "check"]
    for _, verb, *_ in entries:
        command = [sys.executable, "-m", "ruff", verb, *["--check"] * (verb == "format")]
        done = subprocess.run(
            [*command, "src/linsep/_kernels.pyi"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
