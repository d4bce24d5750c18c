r"""The problem of RankSVM: pairwise hinge losses of linear functions, for one C or a path of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._cached import cached_property
from rankrls._compiled.threads import blas_threads_for
from rankrls.equations.normal_equations import normal_equations
from rankrls.features.blocks import row_slices
from rankrls.features.feature_products import FeatureProducts
from rankrls.graph import OrderedPairs, PairGraph
from rankrls.hinge.edge_loss import EdgeSums
from rankrls.hinge.hinge import PairSums
from rankrls.hinge.newton import Preconditioner, Solution, gram_preconditioner, minimise
from rankrls.hinge.ordered_loss import OrderedSums
from rankrls.problems.problem import PathSolutions, Problem
from rankrls.problems.scorer import Scorer
from rankrls.problems.subset import Basis

LOSSES = ("squared_hinge", "hinge")
_FEW_FEATURES = 1024
"""Up to here RankRLS's matrix costs less than the conjugate gradient iterations that it saves."""
_FAR = 1e100
"""A margin that every pair misses."""
_ROWS = 2048
_GRID = 15
_DECADES = 7.0


class HingeProblem(Problem):
    """Minimise ``1/2 |w|^2 + C sum_pairs c loss(slack)``. Its parameter is C.

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

    parameter = "C"

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
        self.sums: PairSums = pair_sums(pairs)

    def minimum(self, C: float, start: NDArray[np.float64] | None = None) -> Solution:
        """The minimum for one C, from the weights ``start`` (zero by default)."""
        products = self.products
        with blas_threads_for(float(products.n_rows) * products.n_features**2):
            return minimise(
                products,
                self.sums,
                C,
                squared=self.loss == "squared_hinge",
                start=start,
                tol=self.tol,
                max_iter=self.max_iter,
                precondition=self._preconditioner,
            )

    def weights(self, Cs: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[Solution]]:
        """Weights of every C, (Cs, n), and the last minimum: from the smallest C up, each starts at the one before."""
        out = np.empty((len(Cs), self.products.n_features))
        w, last = None, []
        for k in np.argsort(Cs, kind="stable"):
            last = [self.minimum(float(Cs[k]), w)]
            w = out[k] = last[0].w
        return out, last

    def path(self, values: NDArray[np.float64]) -> PathSolutions:
        """The solutions of some values of C; of a single one the minimum is among the details."""
        W, last = self.weights(values)
        details = last if len(values) == 1 else []
        if self.basis is None:
            return PathSolutions(W[:, :, None], Scorer, details)
        return PathSolutions((W @ self.basis.to_items.T)[:, :, None], self.basis.read, details)

    def holdout(self, blocks: list[Any], values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Scores of the rows of each block (leads of its preferences) without it, (rows, Cs, 1): one path a block.

        Blocks hold whole queries. Rows in no block stay NaN.
        """
        pairs = self.pairs
        out = np.full((pairs.n_units, len(values), 1), np.nan)
        for block in blocks:
            rest = np.delete(np.arange(pairs.n_units), block)
            features = self.features[pairs.items_of_part(rest)]
            part = HingeProblem(features, pairs.part(rest), self.loss, tol=self.tol, max_iter=self.max_iter)
            out[block, :, 0] = pairs.leads(self.features, block, part.weights(values)[0].T)
        return out

    def axis(self, values: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Values of C, ascending, around the one for which loss and penalty weigh the same."""
        top = self.largest_eigenvalue()
        if not top > 0.0:
            return np.full(1, 0.5)
        return np.asarray(0.05 / top * np.geomspace(1.0, 10.0**_DECADES, _GRID))

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
    def _preconditioner(self) -> Preconditioner | None:
        if self.products.n_features > _FEW_FEATURES:
            return None
        graph = self.pairs.graph()
        equations = normal_equations(graph.factor_rows(self.products.X), np.empty((graph.n_rows, 0)))
        return gram_preconditioner(equations.gram, self.pairs.total_weight)


def pair_sums(pairs: OrderedPairs | PairGraph) -> PairSums:
    """Sums over pairs in the form that suits where they come from."""
    return EdgeSums(pairs) if isinstance(pairs, PairGraph) else OrderedSums(pairs)


def basis_features(basis: Basis, X: Any) -> NDArray[np.float64]:
    """Orthonormal features of the functions over a basis, ``K_MR T`` with ``T'K_RR T = I``: (m, rank), held whole.

    The squared norm of such a function is the squared length of its weights w; its coefficients are
    ``basis.to_items @ w``. Newton steps read the features some dozens of times, so they are not evaluated anew.
    O(m r (features + rank)).
    """
    columns = basis.columns(X, orthonormal=True)
    out = np.empty(columns.shape)
    for rows in row_slices(0, len(out), _ROWS):
        out[rows] = columns.block(rows)
    return out
