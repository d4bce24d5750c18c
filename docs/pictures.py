"""Pictures of measured tables of the guide, drawn from the tables themselves: ``python docs/pictures.py``."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

DOCS = Path(__file__).parent
BLUE, ORANGE, GREY = "#2a6fb0", "#c8620a", "#6b7280"


def table_of(page: str, first: str) -> list[list[str]]:
    """The rows of the simple table of a page whose heading row begins with a word."""
    text = (DOCS / "guide" / f"{page}.rst").read_text("utf-8")
    found = re.search(rf"(?m)^(=[= ]+)\n{first}.*\n\1\n((?:.+\n)+?)\1$", text)
    assert found, f"no table of {page} begins with {first}"
    return [re.split(r"\s{2,}", row.strip()) for row in found[2].splitlines()]


def embeddings() -> None:
    """NDCG by the number of training queries."""
    rows = table_of("embeddings", "training queries")
    queries = [int(row[0].split()[0]) for row in rows]
    fig, ax = plt.subplots(figsize=(5.6, 3.2), layout="constrained")
    styles = {"cosine": (GREY, ":"), "linear": (BLUE, "-"), "Gaussian": (BLUE, "--"), "LightGBM": (ORANGE, "-")}
    for k, (name, (color, line)) in enumerate(styles.items(), 1):
        ax.plot(queries, [float(row[k]) for row in rows], line, color=color, marker="o", markersize=4, label=name)
    ax.set(xscale="log", xlabel="training queries", ylabel="NDCG@10 on new queries")
    ax.set_xticks(queries, [str(q) for q in queries])
    ax.minorticks_off()
    ax.legend(frameon=False)
    save(fig, "embeddings.png")


def comparison() -> None:
    """What AutoRankRLS with trees gains over LightGBM."""
    rows = table_of("comparison", "data  ")
    fig, ax = plt.subplots(figsize=(6.4, 2.4), layout="constrained")
    for k, row in enumerate(reversed(rows)):
        value, error = map(float, row[-1].split(" ± "))
        ax.errorbar(value, k, xerr=1.96 * error, fmt="o", color=BLUE, capsize=3)
    ax.set_yticks(np.arange(len(rows)), [row[0] for row in reversed(rows)])
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.set(xlabel="difference in NDCG@10", ylim=(-0.6, len(rows) - 0.4))
    save(fig, "comparison.png")


def save(fig: plt.Figure, name: str) -> None:
    for ax in fig.axes:
        ax.spines[["top", "right"]].set_visible(False)
    fig.savefig(DOCS / "_static" / name, dpi=150, metadata={"Software": None})


if __name__ == "__main__":
    embeddings()
    comparison()
