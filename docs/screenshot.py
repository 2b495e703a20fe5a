"""Write docs/report.png: the top of a report on the breast cancer data, as Chromium shows it.

Run it again whenever the words or the layout of the report change.
"""

import subprocess
import tempfile
from pathlib import Path

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from linsep import LogisticRegression, tune, write_report

WIDTH, HEIGHT, SCALE = 1100, 1420, 1.5


def main() -> None:
    """Fit, write the report, and take the picture."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    X, X_test, y, y_test = train_test_split(data.data, labels, random_state=0)
    tuning = tune(LogisticRegression(), X, y, scoring="error")
    with tempfile.TemporaryDirectory() as folder:
        page = write_report(
            tuning.best_estimator_,
            X,
            y,
            Path(folder, "report.html"),
            test=(X_test, y_test),
            tuning=tuning,
            title="Breast cancer: benign or malignant?",
            source="sklearn.datasets.load_breast_cancer",
        )
        picture = Path(__file__).with_name("report.png")
        command = [
            *("chromium", "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"),
            f"--window-size={WIDTH},{HEIGHT}",
            f"--force-device-scale-factor={SCALE}",
            f"--screenshot={picture}",
            page.as_uri(),
        ]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    print(f"wrote {picture}")


if __name__ == "__main__":
    main()
