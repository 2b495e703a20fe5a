"""Remove the terms of the compiled enclosure one by one and show that a test notices each time.

    python .ci/mutants.py                 # all of them: one build, then a short test run for each
    python .ci/mutants.py 3 17            # these alone

All mutants are compiled into one module, for this machine only, in build/mutants; the variable LINSEP_MUTANT chooses
one when the module is imported (0: none, which must pass). Prints a line for each, and fails if one survives.
"""

# ruff: noqa: E501
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "build" / "mutants"
TESTS = ["tests/certificates/test_native_enclosure.py"]
HEADER = """#pragma once
#include <cstdlib>
inline int chosen_mutant() { const char* text = std::getenv("LINSEP_MUTANT"); return text ? std::atoi(text) : 0; }
inline const int linsep_mutant = chosen_mutant();
#define MUTANT(k, with, without) (linsep_mutant == (k) ? (without) : (with))
"""
ENCLOSURE, CLOSING = "sums/enclosure.hpp", "sums/closing.hpp"
LOSSES, GRID = "core/losses.hpp", "grid/closing.hpp"
SOFTMAX, HINGES = "softmax/closing.hpp", "softmax/crammer_singer.hpp"
#: file, what is removed, the text around it, the text that is replaced, and what is left of it
MUTANTS: list[tuple[str, str, str, str, str]] = [
    (ENCLOSURE, "margins: (d + 16) eps magnitude", "double rounding = {};", "(size + 16) * roundoff * magnitude + chain * absolute", "chain * absolute"),
    (ENCLOSURE, "adding up: chain absolute", "double rounding = {};", "(size + 16) * roundoff * magnitude + chain * absolute", "(size + 16) * roundoff * magnitude"),
    (ENCLOSURE, "v along its minimiser: error |at|", "std::min({}, chain", "error * std::sqrt(believed)", "0.0"),
    (ENCLOSURE, "v along w: chain magnitude", "{} + error * std::sqrt(total(offs))", "chain * magnitude", "0.0"),
    (ENCLOSURE, "v off w: error |at - w|", "chain * magnitude + {})", "error * std::sqrt(total(offs))", "0.0"),
    (ENCLOSURE, "v, second order", "rounding += {};", "0.5 * moved * moved / lam", "0.0"),
    (ENCLOSURE, "error of v in the second order", "double moved = {};", "error", "0.0"),
    (ENCLOSURE, "balance, first order", "rounding += {};", "dearest", "0.0"),
    (ENCLOSURE, "balance: conjugates", "({} + std::fabs(total(alongs[s])))", "std::fabs(scale[s] * sums[1 + s])", "0.0"),
    (ENCLOSURE, "balance: v", "std::fabs(scale[s] * sums[1 + s]) + {})", "std::fabs(total(alongs[s]))", "0.0"),
    (ENCLOSURE, "balance, second order", "moved += {};", "farthest", "0.0"),
    (ENCLOSURE, "penalty of w", "({} + conjugate)", "penalty", "0.0"),
    (ENCLOSURE, "penalty of v", "(penalty + {})", "conjugate", "0.0"),
    (ENCLOSURE, "underflow of squares", "{} * (size * (lam + 1.0 / lam) + 1.0)", "underflow", "0.0"),
    (ENCLOSURE, "underflow of squares of w", "({} + 1.0 / lam)", "lam", "0.0"),
    (ENCLOSURE, "underflow of squares of v", "(lam + {})", "1.0 / lam", "0.0"),
    (ENCLOSURE, "underflow of the rest", "(lam + 1.0 / lam) + {})", "1.0", "0.0"),
    (ENCLOSURE, "rounding of the allowance itself", "rounding * {}", "(1.0 + 0x1p-10)", "1.0"),
    (CLOSING, "offset in the margin error", "load(c.q + i) + {} + kTiny", "vabs(load(c.offset + i))", "vd{}"),
    (CLOSING, "underflow of the margin", "vabs(load(c.offset + i)) + {};", "kTiny", "0.0"),
    (CLOSING, "margin error where the steepest slope is sought", "store(c.error + i, {});", "score_error * q", "vd{}"),
    (CLOSING, "steepest slope", "s * {} * load(c.q + i)", "vmax(vabs(u), load(c.steepest + i))", "vabs(u)"),
    (CLOSING, "|u|", "s * {} * load(c.q + i)", "vmax(vabs(u), load(c.steepest + i))", "load(c.steepest + i)"),
    (CLOSING, "losses in absolute", "({} + vabs(conj) + vabs(shift)", "value", "vd{}"),
    (CLOSING, "conjugates in absolute", "value + {} + vabs(shift)", "vabs(conj)", "vd{}"),
    (CLOSING, "u offset in absolute", "vabs(conj) + {} + kTiny)", "vabs(shift)", "vd{}"),
    (CLOSING, "underflow of a term times its weight", "vabs(shift) + {}) + kTiny", "kTiny", "0.0"),
    (CLOSING, "underflow of a term", "vabs(shift) + kTiny) + {};", "kTiny", "0.0"),
    (CLOSING, "spread of v", "amount * ({} + kTinyNorm)", "vsqrt(load(c.square + i))", "vd{}"),
    (CLOSING, "underflow of norms", "vsqrt(load(c.square + i)) + {})", "kTinyNorm", "0.0"),
    (CLOSING, "underflow of v", "+ kTinyNorm), vd{{}}) + {};", "kTiny", "0.0"),
    (CLOSING, "|base| + |step| at the end of a step", "room[j] = {};", "__builtin_fabs(base[j]) + __builtin_fabs(step[j])", "__builtin_fabs(theta[j])"),
    (CLOSING, "domain of the conjugate", "return {} || !(c.conj[i]", "c.inside[i] == 0.0", "false"),
    (CLOSING, "conjugates that are not finite", "c.inside[i] == 0.0 || {};", "!(c.conj[i] - c.conj[i] == 0.0)", "false"),
    (LOSSES, "logistic: steepest slope", "return vmin({} - p.slope, splat(1.0)); }}\n    static Conjugate conjugate(vd u, Shape) {{\n        // (1 - u)", "0.25 * e", "vd{}"),
    (LOSSES, "squared: steepest slope", "vabs(p.slope) + {}; }}", "2.0 * e", "vd{}"),
    (LOSSES, "squared hinge: steepest slope", "vd{{}}, {} - p.slope", "2.0 * e", "vd{}"),
    (LOSSES, "hinge: steepest slope", "steepest(const Point&, vd m, vd e, Shape) {{ return select({} >= 1.0, vd{{}}, splat(1.0))", "m - e", "m"),
    (GRID, "features in the margin error", "reach += {};", "select(live, steep * norm, vd{})", "vd{}"),
    (GRID, "intercept in the margin error", "steepness += {};", "steep", "vd{}"),
    (GRID, "offset in the margin error", "shifted += {};", "steep * vabs(offset)", "vd{}"),
    (GRID, "losses in absolute", "absolute += {} + weight", "value", "vd{}"),
    (GRID, "conjugates in absolute", "weight * ({} + vabs(shift)", "vabs(at.conj)", "vd{}"),
    (GRID, "u offset in absolute", "vabs(at.conj) + {} + kTiny", "vabs(shift)", "vd{}"),
    (GRID, "underflow of a term times its weight", "vabs(shift) + {});", "kTiny", "0.0"),
    (GRID, "underflow of a term", "header[6] += {} * (double)rows", "kTiny", "0.0"),
    (GRID, "underflow of v", "header[7] = spread + {} * (double)rows", "kTiny", "0.0"),
    (GRID, "spread of v", "header[7] = {} + kTiny", "spread", "0.0"),
    (GRID, "steepest slope", "c.value, {}}};", "vmax(vabs(u), L::steepest(p, m1, error, shape))", "vabs(u)"),
    (GRID, "|u|", "c.value, {}}};", "vmax(vabs(u), L::steepest(p, m1, error, shape))", "L::steepest(p, m1, error, shape)"),
    (GRID, "margin error where the steepest slope is sought", "error = {};", "margin.of(norm, offset)", "vd{}"),
    (GRID, "series: steepest slope, features", "add(5, {} * (load(once + 3 * VL)", "1.35", "1.0"),
    (GRID, "series: steepest slope, intercept", "add(8, {} * (load(once + 2 * VL)", "1.35", "1.0"),
    (GRID, "series: parts of the sums", "add(6, {} - term", "4.0 * value", "vd{}"),
    (GRID, "series: conjugates in absolute", "add(6, 4.0 * value - {} + splat", "term", "vd{}"),
    (SOFTMAX, "p off the label in magnitude", "vmax(slope, {})", "load(c.rest + i)", "vd{}"),
    (SOFTMAX, "slope in magnitude", "vmax({}, load(c.rest + i))", "slope", "vd{}"),
    (SOFTMAX, "slopes within the margin error", "vexp({});", "2.0 * score_error * far", "vd{}"),
    (SOFTMAX, "losses in absolute", "store(rest1 + i, {} + vabs(load(entropy + i))", "load(loss + i)", "vd{}"),
    (SOFTMAX, "entropies in absolute", "load(loss + i) + {} + count * rest", "vabs(load(entropy + i))", "vd{}"),
    (SOFTMAX, "1 - p_y in absolute", "vabs(load(entropy + i)) + {});", "count * rest", "vd{}"),
    (SOFTMAX, "spread of V", "x * (s * ({} + of_u)", "__builtin_sqrt(u_squared)", "0.0"),
    (SOFTMAX, "underflow of norms of rows", "__builtin_sqrt(x_squared) + {};", "of_x", "0.0"),
    (SOFTMAX, "underflow of norms of U", "__builtin_sqrt(u_squared) + {})", "of_u", "0.0"),
    (SOFTMAX, "underflow of s U", "+ of_u) + {});", "lost", "0.0"),
    (SOFTMAX, "bulk", "*bulk += {};", "s * x", "0.0"),
    (SOFTMAX, "the simplex", "bits({});", "(least >= 0.0) & (sum <= 1.0)", "(least == least)"),
    (HINGES, "slopes within the margin error", "lead > {} ? 1.0", "-2.0 * score_error * far", "0.0"),
    (HINGES, "slope in magnitude", "far * {};", "(rest > slope ? rest : slope)", "rest"),
    (HINGES, "p off the label in magnitude", "far * {};", "(rest > slope ? rest : slope)", "slope"),
    (HINGES, "losses in absolute", "s * ({} + rest);", "loss", "0.0"),
    (HINGES, "p off the label in absolute", "s * (loss + {});", "rest", "0.0"),
    (HINGES, "the simplex", "inside = {};", "least >= 0.0 && rest <= most", "true"),
]  # fmt: skip


def place(file: str, around: str, old: str, text: str) -> int:
    """Where the text that is replaced begins; it must be there once."""
    whole = around.format(old)
    if text.count(whole) != 1:
        raise SystemExit(
            f"{file} has {text.count(whole)} places like {whole!r}: mend the list of mutants"
        )
    return text.index(whole) + around.format("\0").index("\0")


def mutated(file: str, text: str) -> str:
    """A file of kernels with all its mutants."""
    found: dict[tuple[int, str], list[tuple[int, str]]] = {}
    for number, (name, _, around, old, new) in enumerate(MUTANTS, 1):
        if name == file:
            found.setdefault((place(file, around, old, text), old), []).append((number, new))
    for (at, old), changes in sorted(found.items(), reverse=True):
        inside = old
        for number, new in changes:
            inside = f"MUTANT({number}, {inside}, {new})"
        text = text[:at] + inside + text[at + len(old) :]
    return text


def build() -> Path:
    """Compile all mutants into one module."""
    source = HOME / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT / "kernels", source / "kernels")  # with the times of its files
    shutil.copy2(ROOT / "CMakeLists.txt", source)
    (source / "mutant.hpp").write_text(HEADER)
    for file in {name for name, *_ in MUTANTS}:
        path = source / "kernels" / file
        path.write_text(mutated(file, path.read_text()))
    nanobind = subprocess.check_output(
        [sys.executable, "-m", "nanobind", "--cmake_dir"], text=True
    ).strip()
    facts = ["-DLINSEP_NATIVE=ON", f"-DCMAKE_CXX_FLAGS=-include {source / 'mutant.hpp'}"]
    facts += [f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"]
    subprocess.run(
        ["cmake", "-S", source, "-B", HOME / "native", "-G", "Ninja", *facts],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run(["ninja", "-C", HOME / "native", "-j2", "--quiet"], check=True)
    return next((HOME / "native").glob("_kernels*.so"))


def first_failure(number: int, module: Path) -> str | None:
    """The first test that fails with this mutant, if one does."""
    done = subprocess.run(
        [sys.executable, __file__, "--run", str(module), *TESTS],
        cwd=ROOT,
        env={**os.environ, "LINSEP_MUTANT": str(number), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAILED")]
    if done.returncode not in (0, 1):
        raise SystemExit(done.stdout[-3000:] + done.stderr[-3000:])
    return failed[0].split()[1].split("/")[-1] if failed else None


def run(module: str, words: list[str]) -> int:
    """Load the module as linsep._kernels before anything else does, then run pytest in this process."""
    spec = importlib.util.spec_from_file_location("linsep._kernels", module)
    assert spec is not None and spec.loader is not None
    kernels = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(kernels)
    sys.modules["linsep._kernels"] = kernels
    import pytest  # noqa: PLC0415

    return int(pytest.main(["-q", "-x", "--tb=no", "-rf", "-p", "no:cacheprovider", *words]))


def main() -> int:
    """Build once, and test one mutant after the other."""
    if sys.argv[1:2] == ["--run"]:
        return run(sys.argv[2], sys.argv[3:])
    module = build()
    unchanged = first_failure(0, module)
    if unchanged:
        raise SystemExit(f"{unchanged} fails without any mutant")
    survivors = 0
    for number in map(int, sys.argv[1:] or range(1, len(MUTANTS) + 1)):
        file, what, *_ = MUTANTS[number - 1]
        failed = first_failure(number, module)
        survivors += failed is None
        print(f"{number:3d}  {file:28s} {what:52s} {failed or 'SURVIVES'}", flush=True)
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
