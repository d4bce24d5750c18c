"""Searches on a device of torch (``--device cuda``), beside numpy on the same machine's processors; transfers count.

Without a GPU, torch's arrays are read in place by numpy: the two must take the same time.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from benchmarks._data import problem
from benchmarks._harness import alternate, at_most, faster, skipped
from rankrls import RankRLSCV, SparseRankRLSCV

_ALPHAS = tuple(2.0 ** np.arange(-12, 9))
_WIDTHS = tuple(np.geomspace(1e-4, 1e-1, 12))


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    device = os.environ.get("RANKRLS_BENCHMARK_DEVICE", "cpu")
    rows = (800, 3000, 6000) if quick else (16_000, 1_000_000, 723_000)
    basis = 100 if quick else 2000
    return [
        _line("Gaussian kernel", RankRLSCV(_ALPHAS, kernel="rbf"), (rows[0], 20, rows[0] // 40), device, 10.0),
        _line(
            f"basis of {basis}, {len(_WIDTHS)} widths",
            SparseRankRLSCV(_ALPHAS, n_basis=basis, gamma=_WIDTHS),
            (rows[1], 136, rows[1] // 120),
            device,
            10.0,
        ),
        _line("linear", RankRLSCV(_ALPHAS), (rows[2], 136, rows[2] // 120), device, 2.0),
    ]


def _line(what: str, model: Any, shape: tuple[int, int, int], device: str, goal: float) -> dict[str, Any]:
    p = problem(*shape, hard=False)
    job = f"{what}, leave-query-out of {len(_ALPHAS)} alphas, {p.name}, on {device}"
    try:
        import torch
    except ImportError:
        return skipped(job, "numpy", "torch is not installed")
    from sklearn import config_context

    os.environ.setdefault("SCIPY_ARRAY_API", "1")

    def moved() -> None:
        with config_context(array_api_dispatch=True):
            model.fit(torch.asarray(p.X, device=device), p.y, qid=p.qid)

    own, numpys = alternate(moved, lambda: model.fit(p.X, p.y, qid=p.qid), repeats=1)
    if device == "cpu":
        return at_most(job, own, "numpy", numpys, 1.3)
    return faster(job, own, "numpy", numpys, goal)
