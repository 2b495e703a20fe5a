"""Build the wheel twice, in folders with different names, and compare the bytes.

Both builds start from the files of the last commit. SOURCE_DATE_EPOCH is the time of that commit unless it is set.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path


def built(folder: Path, environment: dict[str, str]) -> Path:
    """The wheel of the last commit, built in a folder."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], check=True, input=archive)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps"]
    command += ["--wheel-dir", str(folder / "out"), *sys.argv[1:], str(folder)]
    subprocess.run(command, check=True, env=environment)
    (wheel,) = (folder / "out").glob("*.whl")
    return wheel


def members(wheel: Path) -> dict[str, str]:
    """The hash of each file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


if __name__ == "__main__":
    commit = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.run(commit, check=True, capture_output=True, text=True).stdout.strip()
    environment = {"SOURCE_DATE_EPOCH": epoch} | os.environ
    with tempfile.TemporaryDirectory() as scratch:
        first = built(Path(scratch, "a"), environment)
        second = built(Path(scratch, "another", "and longer name"), environment)
        digests = [hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in (first, second)]
        if first.name != second.name or digests[0] != digests[1]:
            one, two = members(first), members(second)
            differ = sorted(name for name in one | two if one.get(name) != two.get(name))
            sys.exit(f"two builds differ in {differ or 'the order or the dates of their files'}")
        print(f"two builds, the same bytes: {first.name} sha256 {digests[0]}")
