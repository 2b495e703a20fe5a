"""What leaves this machine and what is shipped: no network, one version, a complete bill of materials."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Runs in an interpreter of its own: an audit hook sees every socket and cannot be removed.
OFFLINE = """
import importlib, pkgutil, sys, tempfile, warnings
from pathlib import Path

FORBIDDEN = {"connect", "bind", "getaddrinfo", "gethostbyname", "gethostbyaddr", "sendto", "sendmsg"}

def refuse(event, arguments):
    package, _, name = event.partition(".")
    if package in {"urllib", "http", "ftplib", "smtplib"} or (package == "socket" and name in FORBIDDEN):
        raise AssertionError(f"network: {event} {arguments}")

sys.addaudithook(refuse)
warnings.simplefilter("ignore")
import linsep
for module in pkgutil.walk_packages(linsep.__path__, "linsep."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as fault:  # an extra that is not installed
            assert not str(fault.name).startswith("linsep"), fault
for name in linsep.__all__:
    getattr(linsep, name)

from linsep.cli import main
from sklearn.datasets import load_breast_cancer

X, y = load_breast_cancer(return_X_y=True)
model = linsep.LogisticRegression().fit(X, y)
assert linsep.verify(model, X, y)
with tempfile.TemporaryDirectory() as folder:
    linsep.save(model, Path(folder, "m.linsep"))
    linsep.load(Path(folder, "m.linsep"))
    linsep.write_report(model, X, y, Path(folder, "m.html"))
    assert main(["demo", folder]) == 0

import socket
try:
    socket.create_connection(("127.0.0.1", 9))
except AssertionError:
    print("offline", len([name for name in sys.modules if name.startswith("linsep")]))
"""


@pytest.mark.slow
def test_nothing_connects_on_import_fit_report_or_command():
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    word, modules = done.stdout.split()[-2:]
    assert word == "offline" and int(modules) > 200


def test_one_version_everywhere():
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    version = re.search(r'^version = "(.+)"$', pyproject, re.M)[1]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "thing-1.0-py3-none-any.whl"
    metadata = """Metadata-Version: 2.4
Name: thing
Version: 1.0
Summary: A thing.
License-Expression: BSD-3-Clause
Requires-Dist: numpy>=1.24
Requires-Dist: dask[array]>=2024.8; extra == 'dask'
Requires-Dist: numpy>=2; extra == 'dask'
Requires-Dist: pytest>=8; extra == 'dev'
"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("thing/__init__.py", "")
        archive.writestr("thing-1.0.dist-info/METADATA", metadata)
    return path


def test_the_bill_of_materials_lists_packages_and_files(wheel):
    command = [sys.executable, str(ROOT / ".ci" / "sbom.py"), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    text = wheel.with_suffix(".cdx.json").read_text("utf-8")
    bill = json.loads(text)
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/thing@1.0"
    scope = {part["name"]: part.get("scope", part["type"]) for part in bill["components"]}
    assert scope == {
        "nanobind": "required",
        "robin-map": "required",
        "numpy": "required",
        "dask": "optional",
        "thing/__init__.py": "file",
        "thing-1.0.dist-info/METADATA": "file",
    }
    subprocess.run(command, check=True, capture_output=True)
    assert wheel.with_suffix(".cdx.json").read_text("utf-8") == text


def test_a_verb_names_the_programs_and_packages_that_are_missing(tmp_path):
    for name in ("bash", "id"):  # without apt-get, which might install the package
        (tmp_path / name).symlink_to(shutil.which(name))
    command = ["bash", ROOT / ".ci" / "need", "some-verb", "bash=bash", "no-such-program=package"]
    done = subprocess.run(
        command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "some-verb needs no-such-program. On Debian: sudo apt-get install package\n"
    )
