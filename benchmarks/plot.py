"""The picture of the race: seconds to a certified suboptimality of 1e-6, linsep and the best rival, C = 1.

python benchmarks/plot.py [results/full.csv] [docs/benchmark.png]
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import report

HERE = Path(__file__).resolve().parent
TARGET, STRENGTH = 1e-6, 1.0
OURS, RIVAL = "#0072B2", "#D55E00"  # blue and vermilion, colour-blind safe (Okabe and Ito)
TITLES = {"logistic": "logistic regression", "squared_hinge": "SVM (squared hinge)"}
#: Data sets in words; the page of benchmarks has their sizes, the fastest library and its settings.
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
TEXT = 11  # points: on a phone the figure is about 360 pixels wide, and its letters 9 high


def _draw(ax: plt.Axes, duels: dict[str, report.Duel], order: list[str]) -> None:
    for k, data in enumerate(order):
        duel = duels.get(data)
        if duel is None or duel.ours is None:
            continue
        mine = duel.ours["seconds"]
        certified = duel.ours["status"] == "certified"
        ax.plot(mine, k, "o", color=OURS, markersize=7, fillstyle="full" if certified else "none")
        if duel.best is None:
            _write(ax, "none in time", mine, k, "right")
            continue
        x = duel.best["seconds"]
        ax.plot([mine, x], [k, k], "-", color="0.75", zorder=0)
        ax.plot(x, k, "D", color=RIVAL, markersize=6)
        ratio = x / mine
        _write(ax, f"{ratio:.{1 if ratio < 10 else 0}f}\u00d7", max(x, mine), k, "left")


def _write(ax: plt.Axes, text: str, x: float, y: float, side: Literal["left", "right"]) -> None:
    """Write beside a point; ``side`` is the end of the text that is next to it."""
    shift = 8 if side == "left" else -8
    ax.annotate(text, (x, y), (shift, 0), textcoords="offset points", va="center", ha=side)


def main() -> None:
    recorded = HERE / "results" / "full.csv"
    if not recorded.exists():
        recorded = HERE / "results" / "quick.csv"
    source = Path(sys.argv[1]) if len(sys.argv) > 1 else recorded
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else HERE.parent / "docs" / "benchmark.png"
    _, rows = report.read(source)
    rows = [r for r in rows if r["target"] == TARGET and r["C"] == STRENGTH]
    sizes = {r["data"]: (r["kind"], r["entries"]) for r in rows}
    order = sorted(sizes, key=lambda data: sizes[data], reverse=True)
    found = report.duels(rows)
    names = [DATA.get(data, data) for data in order]
    sparse = sum(sizes[data][0] == "sparse" for data in order)
    plt.rcParams["font.size"] = TEXT
    fig, axes = plt.subplots(
        1, 2, figsize=(6.8, 1.5 + 0.27 * len(order)), sharey=True, layout="constrained"
    )
    for ax, (loss, title) in zip(axes, TITLES.items(), strict=True):
        duels = {key[0]: by[TARGET] for key, by in found.items() if key[1] == loss and TARGET in by}
        _draw(ax, duels, order)
        ax.set_xscale("log")
        low, high = ax.get_xlim()
        ax.set_xlim(low, high * (high / low) ** 0.3)  # room for the ratios
        ax.set_title(title, fontsize=TEXT)
        ax.grid(axis="x", color="0.9")
        ax.spines[["top", "right"]].set_visible(False)
        ax.axhline(sparse - 0.5, color="0.6", linewidth=1, linestyle=":")
    beside = axes[1].get_yaxis_transform()
    for word, at in (("sparse", (sparse - 1) / 2), ("dense", (sparse + len(order) - 1) / 2)):
        axes[1].text(1.02, at, word, transform=beside, rotation=270, va="center", color="0.4")
    axes[0].set_yticks(range(len(order)), names)
    axes[0].plot([], [], "o", color=OURS, label="linsep")
    axes[0].plot([], [], "D", color=RIVAL, label="fastest of seven other libraries")
    fig.legend(loc="outside upper left", ncols=2, frameon=False, columnspacing=1)
    fig.supxlabel("seconds until the objective is within 1e-6 of the minimum", fontsize=TEXT)
    fig.savefig(target, dpi=200)
    print(f"drawn from {source} to {target}")


if __name__ == "__main__":
    main()
