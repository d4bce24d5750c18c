"""RankSVM as a problem of the search: its parameter is C."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._comparisons import Comparisons, LabelledItems, PreferredItems, Setting
from rankrls._compiled.threads import blas_threads_for
from rankrls.learners.graphs import graph_of, pair_factors
from rankrls.learners.ranksvm import LabelPairs, Minimum, Pairs, Preconditioner, PreferencePairs, centred, minimise
from rankrls.learners.solutions import PathSolutions
from rankrls.numerics.basis import Basis
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.scorer import Scorer
from rankrls.numerics.smoother import normal_equations

_FEW_FEATURES = 1024
"""Up to here RankRLS's matrix costs less than the conjugate gradient iterations that it saves."""
_ROWS = 2048
_GRID = 15
_DECADES = 7.0


class RankSVMProblem:
    """Minimise ``1/2 |w|^2 + C sum_pairs c max(0, s - margin)^2``.

    Parameters
    ----------
    data : LabelledItems or PreferredItems
    balance : str
        Of the pairs of labelled items.
    tol, max_iter
        As of :func:`rankrls.learners.ranksvm.minimise`.
    basis : Basis, optional
        Functions over items in the place of the features of X: orthonormal features, (m, rank), are held.
    """

    parameter = "C"

    def __init__(
        self, data: Comparisons, balance: Any, *, tol: float, max_iter: int, basis: Basis | None = None
    ) -> None:
        self.basis, self.tol, self.max_iter = basis, tol, max_iter
        self.graph = graph_of(data, Setting("exclude", balance))
        self._X = centred(data.X if basis is None else basis_features(basis, data.X))
        self.pairs: Pairs
        if isinstance(data, PreferredItems):
            g = data.graph
            self.pairs = PreferencePairs(g.winners, g.losers, g.n_items, g.strength, g.weight)
        else:
            assert isinstance(data, LabelledItems)
            assert isinstance(self.graph, LabelledGraph)
            self.pairs = LabelPairs(*pair_factors(data, self.graph))

    def minimum(self, C: float, start: NDArray[np.float64] | None = None) -> Minimum:
        """The minimum for one C, from the weights ``start`` (zero by default)."""
        m, n = self._X.shape
        with blas_threads_for(float(m) * n**2):
            how: Any = {"tol": self.tol, "max_iter": self.max_iter, "preconditioner": self._preconditioner}
            return minimise(self._X, self.pairs, C, start=start, **how)

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        """The solutions of some values of C, whose minima are the details: from the smallest up, each starts at the
        one before.
        """
        minima: list[Any] = [None] * len(values)
        w = None
        for k in np.argsort(values, kind="stable"):
            minima[k] = self.minimum(float(values[k]), w)
            w = minima[k].w
        W = np.stack([minimum.w for minimum in minima])
        if self.basis is None:
            return PathSolutions(W[:, :, None], Scorer, minima)
        return PathSolutions((W @ self.basis.to_items.T)[:, :, None], partial(_read, self.basis), minima)

    def axis(self) -> NDArray[np.float64]:
        """Values of C, ascending, around the one for which loss and penalty weigh the same."""
        v = np.random.default_rng(0).standard_normal(self._X.shape[1])
        top = 0.0
        for _ in range(10):  # power iteration: a few digits will do
            norm = float(np.linalg.norm(v))
            if not norm > 0.0:
                break
            v = self._times_gram(v / norm)
            top = float(np.linalg.norm(v))
        if not top > 0.0:
            return np.full(1, 0.5)
        return np.asarray(0.05 / top * np.geomspace(1.0, 10.0**_DECADES, _GRID))

    def _times_gram(self, v: NDArray[np.float64]) -> NDArray[np.float64]:
        """``X'LX v`` over all pairs."""
        f = np.asarray(self._X @ v)
        if isinstance(self.graph, LabelledGraph):
            out = np.zeros(len(f))
            out[self.graph.rows] = self.graph.laplacian(f[self.graph.rows])
            return np.asarray(self._X.T @ out)
        return np.asarray(self._X.T @ self.graph.laplacian(f))

    @cached_property
    def _preconditioner(self) -> Preconditioner | None:
        if self._X.shape[1] > _FEW_FEATURES:
            return None
        graph = self.graph
        weight = float(graph.weights.sum())
        if isinstance(graph, LabelledGraph):  # each item's pairs weigh w e1, which counts every pair twice
            weight = 0.5 * float(graph.weights @ np.repeat(graph.e1, np.diff(graph.class_starts)))
        return Preconditioner.of(normal_equations(graph, self._X).gram, weight)


def _read(basis: Basis, a: NDArray[np.float64]) -> Scorer:
    """Coefficients (r, columns) of the items of a basis as functions."""
    if basis.kernel.name == "precomputed":
        return Scorer(None, a, basis.kernel, None, basis.numbers)
    return Scorer(None, a, basis.kernel, basis.items)


def basis_features(basis: Basis, X: Any) -> NDArray[np.float64]:
    """Orthonormal features of the functions over a basis, ``K_MR T`` with ``T'K_RR T = I``: (m, rank), held whole.

    The squared norm of such a function is the squared length of its weights w; its coefficients are
    ``basis.to_items @ w``. Newton steps read the features some dozens of times, so they are not evaluated anew.
    O(m r (features + rank)).
    """
    columns, whitening = basis.features(X), basis.whitening
    m = columns.shape[0]
    blocks = (columns[first : min(first + _ROWS, m)] for first in range(0, m, _ROWS))
    return np.vstack([block if whitening is None else block @ whitening for block in blocks])
