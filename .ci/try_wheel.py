"""Use the installed wheel as a stranger would: fit, verify, the command line with its report and its bundled table."""

import re
import subprocess
import sys
import tempfile
from importlib.metadata import metadata
from pathlib import Path

from sklearn.datasets import load_breast_cancer

import linsep

X, y = load_breast_cancer(return_X_y=True)
model = linsep.LogisticRegression(C=10.0).fit(X, y)
assert model.certificate_.certified, model.certificate_
print(linsep.__file__)
print(linsep.verify(model, X, y))

page = metadata("linsep")["Description"] or metadata("linsep").get_payload()
assert page.startswith("# linsep"), page[:80]
assert not re.search(r"\]\((?!https?:)", page), "links that lead nowhere outside the repository"

command = Path(sys.executable).with_name("linsep")
with tempfile.TemporaryDirectory() as folder:
    subprocess.run([command, "--help"], check=True, stdout=subprocess.DEVNULL)
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True)
    assert linsep.__version__ in version.stdout, version.stdout
    subprocess.run([command, "demo", folder], check=True)
    page = Path(folder, "penguins.html").read_text("utf-8")
    assert page.endswith("</html>") and "Proven optimal" in page and "<svg" in page
    data, saved = Path(folder, "penguins.csv"), Path(folder, "penguins.linsep")
    subprocess.run([command, "verify", saved, data, "--target", "species"], check=True)
