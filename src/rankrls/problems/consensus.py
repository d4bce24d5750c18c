r"""Co-regularised RankRLS in its consensus form: views that agree with one function on scored and unscored rows.

With the kernels :math:`K_v` of M views on all rows Z, scored or not, C the centring of Z inside its queries and h the
consensus,

.. math::

    \min_{h, f_v} \; \lVert F ( y - h_S ) \rVert^2 + \frac{\alpha}{M} \sum_v \left[ \lVert f_v \rVert^2
    + \mu \lVert C ( f_v(Z) - h ) \rVert^2 \right]

is RankRLS on the scored rows S with the kernel :math:`M [ \sum_v A_v ]^{-1}`, :math:`A_v = (C K_v C + I / \mu)^{-1}`.
What is predicted, on Z too, is :math:`f(x) = \frac1M \sum_v K_v(x, Z) \, C A_v C h`, which on scored rows is not h. So
the scores of held-out rows U are those of f: h without U, on all of Z, by the shortcut of the dual, and then f of U.
The rows of U stay in Z as unscored rows, which makes that a transductive estimate.

Views with linear kernels of N features in all, fewer than rows, need no matrix of the size of Z: with ``Z_v = C X_v``
and a triangle ``R_v' R_v = Z_v'Z_v + I / mu`` each :math:`A_v = \mu ( I - U_v U_v' )`, ``U_v = Z_v R_v^-1``, and the
sum of them is inverted by Woodbury's identity, O(Z N^2 + N^3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from rankrls._cached import cached_property
from rankrls._compiled.group_pass import weighted_sums
from rankrls._compiled.jit import compiled
from rankrls._compiled.threads import map_threads, n_threads
from rankrls.equations.dual_holdout import dual_holdout_scores
from rankrls.equations.spectrum import check_semidefinite
from rankrls.features.blocks import mirror, row_slices
from rankrls.graph import Graph, ScoredGraph
from rankrls.kernels import Kernel
from rankrls.problems.dual import DualProblem, factored_kernel
from rankrls.problems.scorer import Scorer

Array = NDArray[np.float64]
_FAINT = 1e-3
"""Of views whose mean eigenvalue is less than this share of 1 / mu the predictions are multiplied out."""


class Consensus(ABC):
    """What the views make of all rows Z for one weight of their agreement."""

    @abstractmethod
    def columns(self, rows: NDArray[np.intp]) -> Array:
        """Columns of the kernel of the consensus h, (Z, rows)."""

    @abstractmethod
    def predictions(self, rows: NDArray[np.intp], h: Array) -> Array:
        """Values of f on some rows from h, (Z, columns)."""

    @abstractmethod
    def view_coefficients(self, h: Array) -> list[Array]:
        """Coefficients of the rows of Z in each view from h, both (Z, columns)."""


class Views(ABC):
    """The views' kernels on all rows Z. ``graph`` compares all rows of a query; its F is ``T W^1/2`` with the row
    weights W and the centring T of ``W^1/2 z``, so that what stands above holds of weighted rows for ``W^1/2 K W^1/2``,
    T and ``W^1/2 h``.
    """

    @property
    @abstractmethod
    def scale(self) -> float:
        """The mean diagonal entry of the centred kernels."""

    @abstractmethod
    def agree(self, mu: float) -> Consensus: ...

    @staticmethod
    def of(kernels: Sequence[Kernel], features: Sequence[Any], graph: ScoredGraph, judged: NDArray[np.intp]) -> Views:
        """By features if all kernels are linear and the features are fewer than the rows."""
        if all(kernel.is_linear for kernel in kernels) and sum(X.shape[1] for X in features) < graph.n_items:
            return FeatureViews([np.asarray(X.toarray() if sparse.issparse(X) else X) for X in features], graph)
        return KernelViews([partial(kernel, X) for kernel, X in zip(kernels, features, strict=True)], graph, judged)


@dataclass(frozen=True, eq=False)
class KernelViews(Views):
    """By functions that make the kernel matrices, one at a time; f is asked for at the rows ``judged`` only."""

    kernels: Sequence[Callable[[], Array]]
    graph: ScoredGraph
    judged: NDArray[np.intp]

    @cached_property
    def scale(self) -> float:
        traces = [_Centred.of(make(), self.graph).trace for make in self.kernels]
        return float(np.mean(traces) / self.graph.weights.sum())

    def agree(self, mu: float) -> Consensus:
        """O(M Z^3), and 8 M Z^2 bytes.

        What f is of h on scored rows takes no product of their kernel with A: but for means over queries, which are
        few rows, ``C K A C`` is the centred ``I - A / mu``. Where ``mu K`` is so small that this cancels, it does.
        """
        graph, count = self.graph, len(self.kernels)
        root, m = np.sqrt(graph.weights), len(graph.weights)
        queries, query = np.unique(graph.layout.codes[self.judged], return_inverse=True)
        total, agreed = np.zeros((m, m)), np.zeros((len(self.judged), m))
        across, reach = np.zeros((len(self.judged), m)), np.zeros((len(queries), m))
        views: list[Array] = []
        for v, make in enumerate(self.kernels):
            centred = _Centred.of(make(), graph)
            faint = mu * centred.trace < _FAINT * graph.weights.sum()
            rows = centred.K[self.judged] if faint else None
            A = _inverse(centred.overwritten(1.0 / mu), f"in views[{v}]")
            total += A
            views.append(A)
            if rows is not None:
                across += _through(graph, A, rows)
                continue
            agreed -= A[self.judged]
            agreed[np.arange(len(self.judged)), self.judged] += mu
            reach += _through(graph, A, centred.means[queries])
        agreed *= root / mu
        agreed /= root[self.judged, None]
        across += agreed
        across += reach[query]
        across /= count
        place = np.full(m, m, dtype=np.intp)  # no row of across, so that another row is an error
        place[self.judged] = np.arange(len(self.judged))
        kernel = _inverse_columns(total, self.judged)
        kernel *= count / root[self.judged]
        kernel /= root[:, None]
        return _OfKernels(kernel, across, place, views, graph)


@dataclass(frozen=True, eq=False)
class _OfKernels(Consensus):
    kernel: Array  # columns of the judged rows
    reach: Array  # f of the judged rows from h
    place: NDArray[np.intp]
    views: list[Array]  # A
    graph: ScoredGraph

    def columns(self, rows: NDArray[np.intp]) -> Array:
        return self.kernel[:, self.place[rows]]

    def predictions(self, rows: NDArray[np.intp], h: Array) -> Array:
        return np.asarray(self.reach[self.place[rows]] @ h)

    def view_coefficients(self, h: Array) -> list[Array]:
        return [_through(self.graph, A, h.T).T / len(self.views) for A in self.views]


@dataclass(frozen=True, eq=False)
class _Centred:
    """``F K F'`` of a kernel matrix K of all rows, from the means of its rows over each query."""

    K: Array
    graph: ScoredGraph
    means: Array
    rest: Array  # means of columns over each query, less the means of both

    @classmethod
    def of(cls, K: Array, graph: ScoredGraph) -> _Centred:
        layout, weights = graph.layout, graph.weights
        mean = lambda Z: weighted_sums(Z, layout.order, layout.starts, weights, threads=n_threads())
        means = mean(K) / graph.query_weight[:, None]
        columns = np.ascontiguousarray(means.T)
        return cls(K, graph, means, columns - (mean(columns) / graph.query_weight[:, None])[layout.codes])

    @property
    def trace(self) -> float:
        codes, rows = self.graph.layout.codes, np.arange(len(self.K))
        inside = (self.K.diagonal() - self.means[codes, rows]) - self.rest[rows, codes]
        return float(self.graph.weights @ inside)

    def overwritten(self, ridge: float) -> Array:
        """``F K F' + ridge I`` in the place of K: new memory would take longer than the arithmetic."""
        root, codes = np.sqrt(self.graph.weights), self.graph.layout.codes

        def run(rows: slice) -> None:
            _centre(self.K, codes, self.means, self.rest, root, rows.start, rows.stop)

        map_threads(run, row_slices(0, len(self.K)))
        self.K[np.diag_indices_from(self.K)] += ridge
        return self.K


@compiled
def _centre(K, codes, means, rest, root, first, last):  # type: ignore[no-untyped-def]
    for i in range(np.uint64(first), np.uint64(last)):
        query, scale = np.uint64(codes[i]), root[i]
        for j in range(np.uint64(K.shape[1])):
            K[i, j] = scale * root[j] * ((K[i, j] - means[query, j]) - rest[i, np.uint64(codes[j])])


def _through(graph: ScoredGraph, A: Array, rows: Array) -> Array:
    """``rows F'A F`` of a symmetric A, by the product with few rows, which is faster than that with few columns."""
    return np.asarray((graph.F.T @ ((graph.F @ rows.T).T @ A).T).T)


@dataclass(frozen=True, eq=False)
class FeatureViews(Views):
    """By the features of each view, dense."""

    features: Sequence[Array]
    graph: ScoredGraph

    @cached_property
    def _centred(self) -> list[Array]:
        return [self.graph.F @ np.asarray(X, dtype=np.float64) for X in self.features]

    @cached_property
    def scale(self) -> float:
        return float(np.mean([np.vdot(Z, Z) for Z in self._centred]) / self.graph.weights.sum())

    def agree(self, mu: float) -> Consensus:
        triangles = []
        for Z in self._centred:
            gram = Z.T @ Z
            gram[np.diag_indices_from(gram)] += 1.0 / mu
            triangles.append(linalg.cholesky(gram, check_finite=False))
        solved = [
            linalg.solve_triangular(R, Z.T, trans="T", check_finite=False).T
            for R, Z in zip(triangles, self._centred, strict=True)
        ]
        U = np.hstack(solved)
        rest = -(U.T @ U)
        rest[np.diag_indices_from(rest)] += len(solved)
        return _OfFeatures(self, mu, triangles, U, U @ _inverse(rest))


@dataclass(frozen=True, eq=False)
class _OfFeatures(Consensus):
    views: FeatureViews
    mu: float
    triangles: list[Array]
    U: Array
    raised: Array  # U (M I - U'U)^-1

    def columns(self, rows: NDArray[np.intp]) -> Array:
        root = np.sqrt(self.views.graph.weights)
        out = self.raised @ self.U[rows].T
        out[rows, np.arange(len(rows))] += 1.0
        return np.asarray(out / (self.mu * root[:, None]) / root[rows])

    def _parts(self, h: Array) -> list[tuple[Array, Array]]:
        """``U_v`` and ``U_v' F h`` of each view."""
        Fh = self.views.graph.F @ h
        ends = np.cumsum([len(R) for R in self.triangles])[:-1]
        return [(U, U.T @ Fh) for U in np.split(self.U, ends, axis=1)]

    def predictions(self, rows: NDArray[np.intp], h: Array) -> Array:
        scores = [
            X[rows] @ linalg.solve_triangular(R, part, check_finite=False)
            for X, R, (_, part) in zip(self.views.features, self.triangles, self._parts(h), strict=True)
        ]
        return np.asarray(np.mean(scores, axis=0))

    def view_coefficients(self, h: Array) -> list[Array]:
        F, M = self.views.graph.F, len(self.triangles)
        Fh = F @ h
        return [self.mu / M * (F.T @ (Fh - U @ part)) for U, part in self._parts(h)]


def _inverse(A: Array, of: str = "") -> Array:
    """Of a positive definite matrix, by Cholesky; an indefinite one is refused if it is that ``of`` something.

    A is overwritten.
    """
    diagonal = A.diagonal().copy()
    # A row of A is a column to LAPACK: its upper triangle is the lower one here.
    factor, failed = linalg.lapack.dpotrf(A.T, clean=0, overwrite_a=1)
    if failed:
        return _pseudo_inverse(A, diagonal, of)
    inverse: Array = linalg.lapack.dpotri(factor, overwrite_c=1)[0].T
    mirror(inverse)
    return inverse


def _pseudo_inverse(A: Array, diagonal: Array, of: str = "") -> Array:
    """Of a symmetric matrix, from what an attempt at Cholesky has left: the triangle above the diagonal."""
    mirror(A.T)
    A[np.diag_indices_from(A)] = diagonal
    if of:
        check_semidefinite(linalg.eigvalsh(A, check_finite=False), of)
    return np.asarray(linalg.pinvh(A))


def _inverse_columns(A: Array, columns: NDArray[np.intp]) -> Array:
    """Some columns of the inverse of a positive definite matrix, which is overwritten."""
    if 3 * len(columns) >= len(A):
        return _inverse(A)[:, columns]
    diagonal = A.diagonal().copy()
    rights = np.zeros((len(A), len(columns)), order="F")
    rights[columns, np.arange(len(columns))] = 1.0
    _, found, failed = linalg.lapack.dposv(A.T, rights, overwrite_a=1, overwrite_b=1)
    return np.asarray(_pseudo_inverse(A, diagonal)[:, columns] if failed else found)


class ConsensusProblem(DualProblem):
    """RankRLS with the consensus kernel on the rows ``scored`` of Z; its functions are those of the views' mean.

    Items are numbers of rows of Z, as a matrix of one column.
    """

    def __init__(self, consensus: Consensus, scored: NDArray[np.intp], graph: Graph, target: Array) -> None:
        across = consensus.columns(scored)
        read = partial(_read, across, consensus)
        # Held-out scores are read off the image, and so nothing is asked of what F does not see.
        super().__init__(graph, target, factored_kernel(across[scored], graph), np.empty((0, graph.n_rows)), read)
        self._image = (graph.F @ consensus.predictions(scored, across).T).T

    def holdout(self, blocks: list[Any], alphas: Array) -> Array:
        return dual_holdout_scores(self.graph, self.spectrum, self.target, None, blocks, alphas, image=self._image)


def _read(across: Array, consensus: Consensus, a: Array) -> Scorer:
    """Functions of rows of Z by their numbers. No method: a problem that holds one of its own is freed late."""
    return _RowScorer(coefficients=across @ a, consensus=consensus)


@dataclass(frozen=True, eq=False)
class _RowScorer(Scorer):
    """f of rows of Z from h, the coefficients, for items that are numbers of rows of Z."""

    consensus: Any = None

    def __call__(self, X: Any) -> Array:
        assert self.coefficients is not None
        return np.asarray(self.consensus.predictions(np.asarray(X)[:, 0].astype(np.intp), self.coefficients))
