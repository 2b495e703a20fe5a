"""Compile the kernels under a sanitizer, each time into a directory of their own, and run the tests that use them.

    python .ci/sanitize.py address            # AddressSanitizer and UndefinedBehaviorSanitizer, on x86-64-v2
    python .ci/sanitize.py address --all      # on every instruction set and vector width in turn
    python .ci/sanitize.py thread             # ThreadSanitizer, for the tests with two threads

Python itself is not compiled so, and need not be: the library of the sanitizer is loaded before it, and takes the place
of malloc and of the functions of threads. Words after -- go to pytest in place of the tests named here.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETS = {
    "base": "-march=x86-64-v2",
    "avx2": "-march=x86-64-v3",
    "avx512": "-march=x86-64-v4",
    "lanes8": "-march=x86-64-v3;-DLINSEP_LANES=8",  # the loops of AVX-512 in AVX2 registers
}
FUZZ = "tests/fuzz"
TESTS = {
    "address": ["tests/kernels", "tests/sanitizers", "tests/tables/test_libsvm.py", FUZZ],
    "thread": ["tests/sanitizers/test_threads.py"],
}
LIBRARY = {"address": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {
    # The allocations of Python and of libraries end with the process; memory of the C++ library may be freed by ours.
    "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"halt_on_error=1:suppressions={ROOT}/tests/sanitizers/threads.supp",
    "PYTHONMALLOC": "malloc",
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
}


def sets_of_machine() -> list[str]:
    """Instruction sets that this machine runs."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ["native"]
    flags = Path("/proc/cpuinfo").read_text()
    return ["base", "avx2", "avx512" if "avx512vl" in flags else "lanes8"]


def build(kind: str, arch: str, jobs: str) -> Path:
    """Compile, and give back the module."""
    nanobind = subprocess.check_output(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], text=True
    ).strip()
    folder = ROOT / "build" / f"sanitize-{kind}-{arch}"
    facts = ["-DLINSEP_NATIVE=ON", "-DLINSEP_WERROR=ON", f"-DLINSEP_SANITIZE={kind}"]
    facts += [f"-DLINSEP_MORE_FLAGS={SETS.get(arch, '')}"]
    facts += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]
    subprocess.run(
        ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", *facts],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["ninja", "-C", folder, f"-j{jobs}", "--quiet"], check=True)
    return next(folder.glob("_kernels*.so"))


def library(name: str) -> str:
    """The path of a library of the compiler."""
    return subprocess.check_output(
        [os.environ.get("CXX", "g++"), f"-print-file-name={name}"], text=True
    ).strip()


def test(kind: str, module: Path, words: list[str]) -> int:
    """Run pytest with the module in the place of the installed one."""
    # The sanitizer looks for the functions of exceptions when it is loaded: Python alone does not bring them along.
    preload = f"{library(LIBRARY[kind])} {library('libstdc++.so.6')}"
    command = [sys.executable, __file__, "--run", str(module), *words]
    if kind == "thread":  # its shadow memory wants the addresses that it knows
        command = ["setarch", platform.machine(), "--addr-no-randomize", *command]
    return subprocess.call(command, cwd=ROOT, env={**os.environ, **OPTIONS, "LD_PRELOAD": preload})


def run(module: str, words: list[str]) -> int:
    """Load the module as linsep._kernels before anything else does, then run pytest in this process."""
    os.environ.pop("LD_PRELOAD")  # programs that tests start are not watched
    spec = importlib.util.spec_from_file_location("linsep._kernels", module)
    assert spec is not None and spec.loader is not None
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    sys.modules["linsep._kernels"] = kernels
    import pytest  # noqa: PLC0415

    return int(pytest.main(["-q", "-m", "not slow", "-p", "no:cacheprovider", *words]))


def main() -> int:
    """Build and test one instruction set after the other."""
    if sys.argv[1:2] == ["--run"]:
        return run(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=[*LIBRARY])
    parser.add_argument("--set", action="append", choices=[*SETS, "native"], dest="sets")
    parser.add_argument("--all", action="store_true", help="every instruction set of this machine")
    parser.add_argument("--jobs", default=os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL", "2"))
    own, _, words = " ".join(sys.argv[1:]).partition(" -- ")
    options = parser.parse_args(own.split())
    known = sets_of_machine()
    for arch in known if options.all else options.sets or known[:1]:
        print(f"{options.kind} sanitizer, {arch}", flush=True)
        module = build(options.kind, arch, options.jobs)
        code = test(options.kind, module, words.split() or TESTS[options.kind])
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
