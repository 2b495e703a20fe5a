"""Compile the kernels with clang for Linux, macOS and Windows, and run the check program where this machine can.

    python .ci/platforms.py [target ...]

The compiler is the clang of the package ziglang, which brings the C++ library and headers of every target. Programs for
x86-64 Linux run as they are, those for aarch64 Linux under qemu-aarch64 if it is there; the others are compiled and
linked only, without optimisation.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

#: target of zig -> name of the system as CMake knows it
TARGETS = {
    "x86_64-linux-gnu.2.28": "Linux",
    "x86_64-linux-musl": "Linux",
    "aarch64-linux-musl": "Linux",
    "aarch64-macos": "Darwin",
    "x86_64-macos": "Darwin",
    "x86_64-windows-gnu": "Windows",
    "aarch64-windows-gnu": "Windows",
}
FOLDER = Path("build/platforms").resolve()
#: zig takes what follows a minus sign in the name of a processor for a feature: it is x86_64_v2 there.
WRAPPER = """#!/bin/sh
for word; do
  shift
  case $word in -march=x86-64-*) word=-march=$(echo "${{word#-march=}}" | tr - _) ;; esac
  set -- "$@" "$word"
done
exec {call} "$@"
"""


def tool(name: str, arguments: str) -> Path:
    """A script that calls a tool of zig, because CMake wants programs without arguments."""
    path = FOLDER / "tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(WRAPPER.format(call=f'"{sys.executable}" -m ziglang {arguments}'))
    path.chmod(0o755)
    return path


def build(target: str) -> Path:
    """The check program for a target."""
    folder, processor = FOLDER / target, target.split("-", maxsplit=1)[0]
    compiler = tool(f"c++-{target}", f"c++ -target {target}")
    configure = ["cmake", "-S", ".", "-B", str(folder), "-G", "Ninja", "-DLINSEP_CHECK=ON"]
    configure += [f"-DCMAKE_SYSTEM_NAME={TARGETS[target]}", f"-DCMAKE_SYSTEM_PROCESSOR={processor}"]
    configure += [f"-DCMAKE_CXX_COMPILER={compiler}", f"-DCMAKE_AR={tool('ar', 'ar')}"]
    configure += [f"-DCMAKE_RANLIB={tool('ranlib', 'ranlib')}", "-DLINSEP_WERROR=ON"]
    configure += ["-DCMAKE_CXX_COMPILER_WORKS=ON", "-DCMAKE_OSX_SYSROOT="]
    configure += ["-DLINSEP_MORE_FLAGS=" + ("-O0" if runner(target) is None else "")]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    # zig takes the "-o -" of CMake's probe for the name of a file.
    Path("-").unlink(missing_ok=True)
    subprocess.run(["cmake", "--build", str(folder)], check=True)
    (program,) = (path for path in folder.glob("check_kernels*") if path.suffix in {"", ".exe"})
    return program


def runner(target: str) -> list[str] | None:
    """The command that runs a program of a target, or None."""
    if TARGETS[target] != "Linux":
        return None
    if target.startswith(platform.machine()):
        return []
    emulator = shutil.which(f"qemu-{target.split('-', maxsplit=1)[0]}")
    return [emulator] if emulator else None


if __name__ == "__main__":
    os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(FOLDER / "cache"))
    os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", str(FOLDER / "cache"))
    report = {}
    for target in sys.argv[1:] or TARGETS:
        program, run = build(target), runner(target)
        if run is not None:
            subprocess.run([*run, str(program)], check=True)
        report[target] = "compiled and run" if run is not None else "compiled, not run"
    for target, outcome in report.items():
        print(f"{target:24} {outcome}")
