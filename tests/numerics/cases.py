"""Random ranking problems for the numerical core: every balance, ties, weights, mixtures, queries of one item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.smoother import DualSmoother
from tests.oracles import explicit_laplacian


@dataclass(frozen=True)
class Case:
    X: np.ndarray
    y: np.ndarray
    q: np.ndarray
    w: np.ndarray | None
    setting: dict[str, Any]

    @property
    def graph(self) -> LabelledGraph:
        return LabelledGraph.build(self.y, self.q, weights=self.w, **self.setting)

    def laplacian(self, rows=slice(None)):
        """Of some rows, in the order of X."""
        w = None if self.w is None else self.w[rows]
        ties, balance, beta = (self.setting[k] for k in ("ties", "balance", "regression_weight"))
        return explicit_laplacian(self.y[rows], self.q[rows], w, ties=ties, balance=balance, beta=beta)

    def centred(self, scores, rows=slice(None)):
        """Scores, (..., rows), less the mean of their query."""
        codes = np.unique(self.q[rows], return_inverse=True)[1]
        return scores - ((scores @ np.eye(codes.max() + 1)[codes]) / np.bincount(codes))[..., codes]


@st.composite
def cases(draw, most=30, features=6, offset=0.0, regression=(0.0, 0.0, 0.3, 1.0)):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = draw(st.lists(st.integers(1, 6), min_size=2, max_size=6))
    q = rng.permutation(np.repeat(np.arange(len(lengths)), lengths))
    m, n = len(q), draw(st.integers(1, features))
    y = rng.integers(0, draw(st.integers(1, 4)), m).astype(float)
    y[q == 0] = y[q == 0][0]  # nothing but ties
    if draw(st.booleans()):
        y = y + rng.normal(size=m) * (rng.random(m) < 0.5)
    X = rng.normal(size=(m, n)) + offset
    if draw(st.booleans()):
        X[:, draw(st.integers(0, n - 1))] = 3.0  # a constant column
    if draw(st.booleans()) and m > 2:
        X[rng.integers(0, m, 3)] = X[0]  # duplicates
    w = rng.uniform(0.2, 3.0, m) if draw(st.booleans()) else None
    setting = {
        "ties": draw(st.sampled_from(["include", "exclude"])),
        "balance": draw(st.sampled_from(["pairs", "examples", "queries"])),
        "regression_weight": draw(st.sampled_from(regression)),
    }
    return Case(X, y, q, w, setting)


def pairwise_equations(X, y, L):
    """``X'LX`` and ``X'Ly`` in extended precision, pair by pair: an offset costs nothing."""
    X, y, L = (np.asarray(a, dtype=np.longdouble) for a in (X, y, L))
    i, j = np.triu_indices(len(y), 1)
    W, own = -L[i, j], np.where(np.abs(L.sum(axis=1)) > 1e-9 * np.abs(L).max(initial=0.0), L.sum(axis=1), 0.0)
    D, d = X[i] - X[j], y[i] - y[j]
    return D.T @ (W[:, None] * D) + X.T @ (own[:, None] * X), D.T @ (W * d) + X.T @ (own * y)


def solve_extended(A, b):
    """Gaussian elimination of a positive definite matrix in extended precision, features scaled to the same spread."""
    units = 1 / np.sqrt(A.diagonal())
    A, b = A * units * units[:, None], b * units
    for k in range(len(b)):
        for r in range(k + 1, len(b)):
            factor = A[r, k] / A[k, k]
            A[r, k:] -= factor * A[k, k:]
            b[r] -= factor * b[k]
    x = np.zeros_like(b)
    for k in range(len(b))[::-1]:
        x[k] = (b[k] - A[k, k + 1 :] @ x[k + 1 :]) / A[k, k]
    return x * units


def refitted_weights(case, train, alpha):
    """Weights of the model of some rows, in extended precision."""
    A, b = pairwise_equations(case.X[train], case.y[train], case.laplacian(train))
    A[np.diag_indices(len(b))] += alpha
    return solve_extended(A, b)


def rounding(case, smoother, train, alpha, *weights):
    """What rounding may make of the scores of a model of some rows that is found from all rows.

    Relative to the size of scores, and of what the labels may contribute to them before they cancel.

    The primal is as exact as features of one spread would make it: by how much alpha and the rows determine each
    direction, beside what is subtracted of it. Where only held-out rows determine one, alpha is all that is left. The
    dual does not know features: 1 / alpha bounds it. What hold-outs in the primal add to a first approximation is at
    most 1e-3 of the scores then, and found in single precision.
    """
    eps = float(np.finfo(np.float64).eps)
    condition, base = (smoother.top + alpha) / alpha, 1e-12
    if not isinstance(smoother, DualSmoother):
        everything = np.ones(len(case.y), dtype=bool)
        whole, left = (
            pairwise_equations(case.X[rows], case.y[rows], case.laplacian(rows))[0].astype(float)
            for rows in (everything, train)
        )
        spread = left.diagonal() + alpha
        correlations = (left + alpha * np.eye(len(left))) / np.sqrt(np.outer(spread, spread))
        condition = np.linalg.cond(correlations) * ((whole.diagonal() + alpha) / spread).max()
        base = 1e-12 if train.all() else 3e-10
    X = case.X if case.setting["regression_weight"] else case.X - case.X[0]
    sizes = [np.abs(X) @ np.abs(w) for w in weights]
    size = max(np.max(sizes), np.abs(case.y).max() * smoother.top / (smoother.top + alpha))
    return (base + 50.0 * eps * condition) * size
