"""The picture of the race: seconds to a certified suboptimality of 1e-6, linsep and the best rival, C = 1.

python benchmarks/plot.py [results/full.csv] [docs/benchmark.png]
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import report

HERE = Path(__file__).resolve().parent
TARGET, STRENGTH = 1e-6, 1.0
OURS, RIVAL = "#0072B2", "#D55E00"  # blue and vermilion, colour-blind safe (Okabe and Ito)
TITLES = {"logistic": "Logistic regression", "squared_hinge": "Linear SVM (squared hinge)"}
#: Data sets and libraries in words; the page of benchmarks has the settings.
DATA = {
    "cancer": "breast cancer, scaled",
    "cancer_raw": "breast cancer",
    "higgs7k": "Higgs",
    "spambase": "spam, scaled",
    "spambase_raw": "spam",
    "gen_tall_small": "synthetic",
    "flights_raw": "flights",
    "sms": "text messages",
    "a9a": "census (a9a)",
    "w8a": "web pages (w8a)",
    "imdb_5k": "film reviews",
    "news20_5k": "newsgroups",
    "gen_text_small": "synthetic text",
}
LIBRARIES = {
    "liblinear-official": "LIBLINEAR",
    "scikit-learn": "scikit-learn",
    "snapml": "Snap ML",
    "glum": "glum",
}


def _label(rows: list[report.Row], data: str) -> str:
    row = next(r for r in rows if r["data"] == data)
    sparse = ", sparse" if row["kind"] == "sparse" else ""
    return f"{DATA.get(data, data)}\n{row['n']:,.0f} x {row['d']:,.0f}{sparse}"


def _library(who: str) -> str:
    """Name of the library without its settings."""
    return LIBRARIES.get(who.split(maxsplit=1)[0], who)


def _draw(ax: plt.Axes, duels: dict[str, report.Duel], order: list[str]) -> None:
    for k, data in enumerate(order):
        duel = duels.get(data)
        if duel is None or duel.ours is None:
            continue
        mine = duel.ours["seconds"]
        certified = duel.ours["status"] == "certified"
        ax.plot(mine, k, "o", color=OURS, markersize=7, fillstyle="full" if certified else "none")
        if duel.best is None:
            text, x = "no other library within the time limit", mine
        else:
            x = duel.best["seconds"]
            ax.plot([mine, x], [k, k], "-", color="0.75", zorder=0)
            ax.plot(x, k, "D", color=RIVAL, markersize=6)
            ratio = x / mine
            text = f"{ratio:.{1 if ratio < 10 else 0}f} times  {_library(duel.best['who'])}"
        ax.annotate(
            text, (max(x, mine), k), (8, 0), textcoords="offset points", va="center", fontsize=8
        )


def main() -> None:
    recorded = HERE / "results" / "full.csv"
    if not recorded.exists():
        recorded = HERE / "results" / "quick.csv"
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else recorded
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "docs" / "benchmark.png"
    facts, rows = report.read(source)
    rows = [r for r in rows if r["target"] == TARGET and r["C"] == STRENGTH]
    sizes = {r["data"]: (r["kind"], r["entries"]) for r in rows}
    order = sorted(sizes, key=lambda data: sizes[data], reverse=True)
    found = report.duels(rows)
    fig, axes = plt.subplots(1, 2, figsize=(12, 1.2 + 0.42 * len(order)), sharey=True)
    for ax, (loss, title) in zip(axes, TITLES.items(), strict=True):
        duels = {key[0]: by[TARGET] for key, by in found.items() if key[1] == loss and TARGET in by}
        _draw(ax, duels, order)
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xlim(low, high * math.sqrt(high / low))  # room for the names
        ax.set_title(title, fontsize=11)
        ax.set_xlabel("seconds until the objective is within 1e-6 of the minimum")
        ax.grid(axis="x", color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(order)), [_label(rows, data) for data in order], fontsize=8)
    axes[0].plot([], [], "o", color=OURS, label="linsep")
    axes[0].plot(
        [], [], "D", color=RIVAL, label="the fastest of seven other libraries, at its best setting"
    )
    fig.legend(loc="upper left", fontsize=8, frameon=False)
    where = f"{facts['cpu']}, {facts['threads']} threads, {facts['date'].split()[0]}"
    fig.text(0.99, 0.985, where, ha="right", va="top", fontsize=8, color="0.4")
    fig.tight_layout(rect=(0, 0, 1, 0.95))
    fig.savefig(target, dpi=200)
    print(f"drawn from {source} to {target}")


if __name__ == "__main__":
    main()
