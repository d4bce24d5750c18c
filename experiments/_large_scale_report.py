"""Tables and figures of the large scale experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from _large_scale_data import Task
from _large_scale_protocol import Outcome
from _text import aligned, headed
from numpy.typing import NDArray

PAPER = {
    ("parse", "scored"): {1: (0.2185, 11.0, 1743.0), 2: (0.2180, 6.0, 9.0), 3: (0.2185, 7.0, 137.0)},
    ("rcv1", "scored"): {1: (0.01472, 352.0, 17186.0), 2: (0.01531, 65.0, 97.0), 3: (0.01473, 155.0, 2120.0)},
    ("rcv1", "pairs"): {1: (0.01530, 226.0, 15295.0), 2: (0.01621, 52.0, 78.0), 3: (0.01530, 94.0, 1695.0)},
}
"""Table 1: test error, training seconds, parameter selection seconds of methods 1, 2, 3, on a processor of 2006. (Its
column of errors for RCV1 is printed with five digits, as here.)"""


@dataclass(frozen=True)
class Part:
    """What was measured on one data set, fitted on labels or on pairs."""

    task: Task
    pairs: int | None
    outcomes: tuple[Outcome, ...]
    figure: tuple[tuple[float, ...], NDArray[np.float64]]

    @property
    def kind(self) -> str:
        return "scored" if self.pairs is None else "pairs"

    @property
    def paper(self) -> dict[int, tuple[float, float, float]] | None:
        return PAPER.get((self.task.name, self.kind))


def as_text(part: Part) -> str:
    X = part.task.train.X
    what = "labelled data" if part.pairs is None else f"{part.pairs} sampled pairs"
    held, test = part.task.validation.X.shape[0], part.task.test.X.shape[0]
    sizes = f"{X.shape[0]} training, {held} validation, {test} test items"
    rows = [["method", "alpha", "iterations", "validation error", "test error", "training s", "selection s"]]
    rows[0] += ["paper: error", "training s", "selection s"] if part.paper else []
    for o in part.outcomes:
        row = [f"{o.method.number} {o.method.name}", _power(o.alpha), str(o.n_iter)]
        row += [f"{o.validation_error:.5f}", f"{o.test_error:.5f}"]
        row += [f"{o.training_seconds:.2f}", f"{o.selection_seconds:.2f}"]
        if part.paper:
            error, training, selection = part.paper[o.method.number]
            row += [f"{error:.5f}", f"{training:.0f}", f"{selection:.0f}"]
        rows.append(row)
    title = headed(f"{part.task.title}, {what}", "=")
    methods = [f"  {o.method.number}: {o.method.what}" for o in part.outcomes]
    shape = f"{sizes}, {X.shape[1]} features, {X.nnz} non-zeros"
    return "\n".join([title, shape, *part.task.how, "", aligned(rows), *methods, ""])


def as_json(part: Part) -> dict[str, Any]:
    alphas, surface = part.figure
    return {
        "data": part.task.name,
        "kind": part.kind,
        "pairs": part.pairs,
        "methods": [{**vars(o), "method": o.method.number, "name": o.method.name} for o in part.outcomes],
        "paper": part.paper,
        "figure": {str(a): [None if np.isnan(v) else v for v in row] for a, row in zip(alphas, surface, strict=True)},
    }


def draw(part: Part, folder: Path) -> Path:
    """The paper's figure: validation error against iterations."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    alphas, surface = part.figure
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for alpha, errors in zip(alphas, surface, strict=True):
        known = ~np.isnan(errors)
        iterations = np.arange(1, len(errors) + 1)[known]
        axes.plot(iterations, errors[known], label=f"alpha = {_power(alpha)}")
    scale = "log" if np.nanmin(surface) > 0.0 else "linear"
    axes.set(xscale="log", yscale=scale, xlabel="iterations", ylabel="ranking error on validation data")
    axes.set_title(f"{part.task.title}, {'labels' if part.pairs is None else 'pairs'}")
    axes.legend()
    path = folder / f"{part.task.name}-{part.kind}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _power(alpha: float) -> str:
    if alpha == 0.0:
        return "0"
    exponent = np.log2(alpha)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"{alpha:.3g}"
