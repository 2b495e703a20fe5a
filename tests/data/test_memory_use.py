"""A fit needs little memory beside the data, whatever their layout."""

import json
import os
import subprocess
import sys
import textwrap
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc"),
]
ALLOWED = 150.0  # MB beside the data, which take up to 640 MB
ROWS, COLUMNS = 800_000, 100

#: Fills X in slices of bounded size, so that nothing before the fit counts; y follows the first columns.
SCRIPT = """
import gc, json, sys
import numpy as np
import scipy.sparse as sp
from linsep import LinearRegressor, LogisticRegression, LinearClassifier

def resident(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name))

def reset_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")

n, d = {rows}, {columns}
rng = np.random.default_rng(0)
pool = rng.normal(size=(10_000, d))
y = np.empty(n, bool)
X = {make}
for lo in range(0, n, 10_000):
    part = pool * rng.choice([-1.0, 1.0], size=(1, d))
    {fill}
    y[lo : lo + 10_000] = part[:, 0] - part[:, 1] + rng.normal(size=10_000) > 0.5
{finish}
small = pool[:500]
{model}.fit(small, y[:500])  # imports and thread pools are not the data's fault
gc.collect()
before = resident("VmRSS")
reset_peak()
model = {model}.fit(X, y)
peak = resident("VmHWM")
print(json.dumps(dict(extra=peak - before, before=before, proof=str(model.certificate_),
                      certified=bool(model.certificate_.certified))))
"""

#: Runs a command and says the peak of its memory in KiB. What forks counts as well, so it must be small.
PEAK = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
"""

DENSE = {"fill": "X[lo : lo + 10_000] = part", "finish": ""}
INT8 = {
    "make": "np.empty((n, d), np.int8)",
    "fill": "X[lo : lo + 10_000] = np.clip(40 * part, -127, 127)",
    "finish": "",
}
#: Every second column, stored in arrays made beforehand: the indices alone take 160 MB.
CSR = {
    "make": "None; k = 50; values = np.empty(n * k); indices = np.empty(n * k, np.int32)",
    "fill": "c = lo // 10_000 % 2 + 2 * np.arange(k); part = part[:, c]; "
    "values[lo * k : (lo + 10_000) * k] = part.ravel(); "
    "indices[lo * k : (lo + 10_000) * k] = np.tile(c, 10_000)",
    "finish": "X = sp.csr_matrix((values, indices, np.arange(n + 1, dtype=np.int32) * k), (n, d))",
}
CASES = {
    "C order": {**DENSE, "make": "np.empty((n, d))"},
    "Fortran order": {**DENSE, "make": "np.empty((n, d), order='F')"},
    "float32": {**DENSE, "make": "np.empty((n, d), np.float32)"},
    "int8": INT8,
    "CSR": CSR,
}


def measure(model, **case):
    script = textwrap.dedent(SCRIPT).format(rows=ROWS, columns=COLUMNS, model=model, **case)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("layout", CASES)
def test_logistic_regression(layout):
    found = measure("LogisticRegression()", **CASES[layout])
    print(f"\n{layout}: {found['extra']:.0f} MB beside {found['before']:.0f} MB; {found['proof']}")
    assert found["certified"]
    assert found["extra"] <= ALLOWED


@pytest.mark.parametrize(
    ("model", "allowed"),
    [
        ("LinearClassifier(loss='squared_hinge')", ALLOWED),
        ("LinearRegressor(loss='squared')", ALLOWED),
        ("LogisticRegression(C=np.inf)", 200.0),  # its proof looks at every row in several ways
    ],
)
def test_other_models(model, allowed):
    found = measure(model, **CASES["C order"])
    print(f"\n{model}: {found['extra']:.0f} MB beside {found['before']:.0f} MB; {found['proof']}")
    assert found["certified"]
    assert found["extra"] <= allowed


def test_the_command_line_holds_a_table_once(tmp_path):
    """A CSV with default options (a quarter of the rows set aside, C tuned, a report) needs its numbers plus 300 MB."""
    rng = np.random.default_rng(0)
    n, d, block = 400_000, 40, 10_000
    X = rng.integers(-999_999, 999_999, size=(block, d))
    label = np.where(X[:, 0] - X[:, 1] + rng.normal(0, 5e5, block) > 0, "yes", "no")
    lines = (",".join([*map(str, row), t]) for row, t in zip(X.tolist(), label, strict=True))
    text = "\n".join(lines) + "\n"
    with open(tmp_path / "large.csv", "w") as file:
        file.write(",".join([*(f"c{j}" for j in range(d)), "y"]) + "\n")
        for _ in range(n // block):
            file.write(text)
    command = [sys.executable, "-c", "from linsep.cli import command; command()"]
    words = ["fit", str(tmp_path / "large.csv"), "--target", "y", "--json", "--quiet"]
    with open(tmp_path / "out", "w") as out:
        done = subprocess.run(
            [sys.executable, "-c", PEAK, *command, *words],
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    facts = json.loads((tmp_path / "out").read_text())
    peak = int(done.stderr.split()[-1]) * 1024
    print(f"\n{peak / 1e6:.0f} MB for {8 * n * d / 1e6:.0f} MB of numbers")
    assert done.returncode == 0 and facts["rows"] == n and facts["test"]["rows"] == n // 4
    assert peak <= 8 * n * d + 300e6


@pytest.mark.parametrize("size", [1, 20.5e6])
def test_the_command_line_fits_a_mixed_table_eight_times_its_memory_limit(size, tmp_path):
    """Strings and texts are hashed to 524,362 columns; model and report are made within the limit and 300 MB.

    The tables have 20,000 and 140,000 rows: rows take no memory, and 20 vectors as long as the columns are too many.
    """
    spec = spec_from_file_location(
        "any_size", Path(__file__).parents[2] / "benchmarks" / "any_size.py"
    )
    any_size = module_from_spec(spec)
    spec.loader.exec_module(any_size)
    path = tmp_path / "mixed.csv"
    n = any_size.write(path, size)
    limit = path.stat().st_size // 8
    facts = any_size.fit(path, limit, "--C", "0.1")
    print(f"\n{facts['peak'] / 1e6:.0f} MB with a limit of {limit / 1e6:.1f} MB")
    assert facts["rows"] == n and facts["certificate"]["certified"] and facts["reads"] > 0
    assert Path(facts["model_file"]).exists() and Path(facts["report"]).stat().st_size > 10_000
    assert facts["peak"] <= limit + 300e6
