"""What a user pays besides time: seconds to import, and memory above the data during a fit."""

from __future__ import annotations

import subprocess
import sys

import tables

COLUMNS = ("what", "who", "value", "unit")

IMPORTS = {
    "python alone": "pass",
    "import numpy": "import numpy",
    "import linsep": "import linsep",
    "linsep.LogisticRegression": "from linsep import LogisticRegression",
    "sklearn's LogisticRegression": "from sklearn.linear_model import LogisticRegression",
}

_MEMORY = """
import ctypes, gc, sys, warnings
sys.path.insert(0, {here!r})
import generators
from {module} import LogisticRegression
warnings.simplefilter("ignore")
X, y = {data}
LogisticRegression({options}).fit(X[:1000], y[:1000])
gc.collect()
ctypes.CDLL(None).malloc_trim(0)  # what the making of the data left behind is not free room for the fit
with open("/proc/self/clear_refs", "w") as f:
    f.write("5")
def status(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))
before = status("VmRSS")
LogisticRegression({options}).fit(X, y)
size = X.data.nbytes + X.indices.nbytes if hasattr(X, "indptr") else X.nbytes
print((status("VmHWM") - before) / 1024, size / 2**20)
"""

FITS = {
    "linsep": ("linsep", "C=1.0"),
    "scikit-learn lbfgs": ("sklearn.linear_model", "C=1.0, tol=1e-6, max_iter=300"),
    "scikit-learn newton-cholesky": ("sklearn.linear_model", 'C=1.0, solver="newton-cholesky"'),
    "scikit-learn liblinear": ("sklearn.linear_model", 'C=1.0, solver="liblinear"'),
}


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def main() -> None:
    asked = tables.options(__doc__, quick="smaller data")
    table = tables.Table("footprint", COLUMNS, asked)
    for name, code in IMPORTS.items():
        table.add("import time", name, tables.best(run, code, at_least=5), "s")
    n = 100_000 if asked.quick else 1_000_000
    made = {
        f"{n:,} x 28": f"generators.tall({n}, 28)",
        f"{n // 10:,} x 20,000 sparse": f"generators.text({n // 10}, 20_000)",
    }
    for size, data in made.items():
        for who, (module, options) in FITS.items():
            if "sparse" in size and "cholesky" in who:
                continue  # d x d would not be memory above the data, but instead of it
            code = _MEMORY.format(here=str(tables.HERE), module=module, data=data, options=options)
            answer = run(code).split()
            if answer:
                held = f"MiB above {float(answer[1]):.0f} MiB of X"
                table.add(f"peak memory {size}", who, float(answer[0]), held)
    table.write()


if __name__ == "__main__":
    main()
