r"""The problem of RankSVM: pairwise hinge losses of linear functions, for one C or a path of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls.graph import OrderedPairs, PairGraph
from rankrls.solvers.edge_loss import EdgeSums
from rankrls.solvers.feature_products import FeatureProducts
from rankrls.solvers.hinge import PairSums
from rankrls.solvers.newton import (
    Preconditioner,
    Solution,
    gram_preconditioner,
    minimise_hinge,
    minimise_squared_hinge,
)
from rankrls.solvers.normal_equations import normal_equations
from rankrls.solvers.ordered_loss import OrderedSums
from rankrls.solvers.rows import factor_rows, row_slices
from rankrls.solvers.subset import Basis

__all__ = ["LOSSES", "HingeProblem", "basis_features"]

LOSSES = ("squared_hinge", "hinge")
_FEW_FEATURES = 1024
"""Up to here RankRLS's matrix costs less than the conjugate gradient iterations that it saves."""
_FAR = 1e100
"""A margin that every pair misses."""
_ROWS = 2048


class HingeProblem:
    """Minimise ``1/2 |w|^2 + C sum_pairs c loss(slack)``.

    Parameters
    ----------
    X : dense (float32 or float64) or CSR, shape (m, n)
    pairs : OrderedPairs or PairGraph
        Labelled items, with margin 1 for each ordered pair; or preferences, whose strengths are the margins.
    loss : {"squared_hinge", "hinge"}
    tol : float
        A solution's value is within this share of the minimum, by its duality gap.
    max_iter : int
        Newton steps for one C.
    basis : Basis, optional
        Functions over items in the place of the features of X.

    Notes
    -----
    Up to 1024 features RankRLS's matrix ``X'LX`` preconditions the Newton systems: O(m n^2 + n^3) once.
    """

    def __init__(
        self,
        X: Any,
        pairs: OrderedPairs | PairGraph,
        loss: str,
        *,
        tol: float,
        max_iter: int,
        basis: Basis | None = None,
    ) -> None:
        self.pairs = pairs
        self.loss = loss
        self.tol = tol
        self.max_iter = max_iter
        self.basis = basis
        self.features = X if basis is None else basis_features(basis, X)
        self.products = FeatureProducts(self.features)
        self.sums: PairSums = EdgeSums(pairs) if isinstance(pairs, PairGraph) else OrderedSums(pairs)

    def solve(self, alpha: float, start: NDArray[np.float64] | None = None) -> Solution:
        """The minimum for ``C = 1 / (2 alpha)``, from the weights ``start`` (zero by default)."""
        minimise = minimise_hinge if self.loss == "hinge" else minimise_squared_hinge
        return minimise(
            self.products,
            self.sums,
            0.5 / alpha,
            start=start,
            tol=self.tol,
            max_iter=self.max_iter,
            precondition=self._preconditioner,
        )

    def coefficients(self, w: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of the basis items for weights w of its features; the weights themselves without a basis. Last axis."""
        return w if self.basis is None else np.asarray(w @ self.basis.to_items.T)

    def weights(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weights of every alpha, (alphas, n): from the largest down, each starts where the one before ended."""
        out = np.empty((len(alphas), self.products.n_features))
        w = None
        for k in np.argsort(-alphas, kind="stable"):
            w = out[k] = self.solve(float(alphas[k]), w).w
        return out

    def path(self, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Coefficients of every alpha, (alphas, n or basis items, 1)."""
        return self.coefficients(self.weights(alphas))[:, :, None]

    def holdout(self, blocks: list[Any], alphas: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the rows of each block (leads of its preferences) without it, (rows, alphas, 1): one path a block.

        Blocks hold whole queries. Rows in no block stay NaN.
        """
        pairs = self.pairs
        size = pairs.n_rows if isinstance(pairs, PairGraph) else pairs.n_items
        out = np.full((size, len(alphas), 1), np.nan)
        for block in blocks:
            kept = np.ones(size, dtype=bool)
            kept[block] = False
            rest = np.flatnonzero(kept)
            features = self.features if isinstance(pairs, PairGraph) else self.features[rest]
            part = HingeProblem(features, pairs.part(rest), self.loss, tol=self.tol, max_iter=self.max_iter)
            W = part.weights(alphas).T
            if isinstance(pairs, PairGraph):
                items, where = np.unique([pairs.winners[block], pairs.losers[block]], return_inverse=True)
                scores = self.features[items] @ W
                where = where.reshape(2, -1)
                out[block, :, 0] = scores[where[0]] - scores[where[1]]
            else:
                out[block, :, 0] = self.features[block] @ W
        return out

    @property
    def values(self) -> NDArray[np.float64]:
        """What an automatic grid looks at."""
        return np.array([self.largest_eigenvalue()])

    def largest_eigenvalue(self) -> float:
        """Of ``X'LX`` over all pairs, to a few digits: ten rounds of power iteration."""
        everything = self.sums.sweep(np.zeros(self.sums.n_items), shift=-_FAR)
        v = np.random.default_rng(0).standard_normal(self.products.n_features)
        top = 0.0
        for _ in range(10):
            norm = float(np.linalg.norm(v))
            if not norm > 0.0:
                break
            v = self.products.combine(self.sums.product(everything, self.products.scores(v / norm)))
            top = float(np.linalg.norm(v))
        return top

    @cached_property
    def _total_weight(self) -> float:
        pairs = self.pairs
        return float(pairs.weight.sum()) if isinstance(pairs, PairGraph) else pairs.total_weight

    @cached_property
    def _preconditioner(self) -> Preconditioner | None:
        if self.products.n_features > _FEW_FEATURES:
            return None
        graph = self.pairs if isinstance(self.pairs, PairGraph) else self.pairs.graph()
        equations = normal_equations(factor_rows(self.products.X, graph), np.empty((graph.n_rows, 0)))
        return gram_preconditioner(equations.gram, self._total_weight)


def basis_features(basis: Basis, X: Any) -> NDArray[np.float64]:
    """Orthonormal features of the functions over a basis, ``K_MR T`` with ``T'K_RR T = I``: (m, rank), held whole.

    The squared norm of such a function is the squared length of its weights w; its coefficients are
    ``basis.to_items @ w``. Newton steps read the features some dozens of times, so they are not evaluated anew.
    O(m r (features + rank)).
    """
    columns = basis.columns(X)
    T = basis.whitening
    out = np.empty((columns.shape[0], basis.to_items.shape[1]))
    for rows in row_slices(0, len(out), _ROWS):
        block = columns.block(rows)
        out[rows] = block if T is None else block @ T
    return out
