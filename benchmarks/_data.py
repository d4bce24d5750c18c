"""Ranking problems of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

__all__ = ["Problem", "problem", "query_lengths"]


@dataclass(frozen=True)
class Problem:
    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray

    @property
    def name(self) -> str:
        return f"{self.X.shape[0]} x {self.X.shape[1]}, {self.qid[-1] + 1} queries"


def query_lengths(rows: int, queries: int, seed: int = 0) -> np.ndarray:
    """Lengths that spread as in web search data: some a tenth of the mean, some three times it."""
    rng = np.random.default_rng(seed)
    shares = rng.gamma(4.0, size=queries)
    return 1 + rng.multinomial(rows - queries, shares / shares.sum())


def problem(
    rows: int,
    columns: int,
    queries: int,
    *,
    seed: int = 0,
    offset: float = 0.0,
    dtype: str = "float64",
    even: bool = False,
    hard: bool = True,
) -> Problem:
    """Labels 0 to 4; no second array of X's size.

    ``hard``: features of very different scales, some nearly copies of others; otherwise independent, of unit scale.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((rows, columns), dtype=dtype)
    rng.standard_normal(out=X, dtype=dtype)
    utility = X @ rng.standard_normal(columns).astype(dtype) / np.sqrt(columns) + rng.standard_normal(rows)
    y = np.searchsorted([0.0, 0.7, 1.5, 2.3], utility).astype(np.float64)
    if hard:
        for j in range(columns // 8):
            X[:, columns - 1 - j] *= 1e-3
            X[:, columns - 1 - j] += X[:, j]
        X *= np.exp(2.0 * rng.standard_normal(columns)).astype(dtype)
    X += np.asarray(offset, dtype=dtype)
    lengths = np.full(queries, rows // queries) if even else query_lengths(rows, queries, seed)
    return Problem(X, y, np.repeat(np.arange(queries), lengths))
