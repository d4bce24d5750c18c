r"""Labels for queries that have none: those with the lowest cross-validation error.

Let V be the rows of the queries without labels and S all others. The queries U are held out in turn, and the labels of
V minimize

.. math::

    J(y_V) = \sum_U \lVert F_U ( y_U - f_{U \setminus U} ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

where :math:`f_{U \setminus U}` are the scores of U by the model of all other rows, with :math:`y_V` among their labels,
and :math:`f_V` those of V by the model of S (Pahikkala, Suominen, Boberg, Salakoski 2007, equation 11). Held-out errors
are linear in the labels: with H the smoother of :math:`F y` and :math:`Q` block diagonal with the blocks
:math:`(I - H_{UU})^{-1}`, they are :math:`R y`, :math:`R = Q (I - H) F`, so that

.. math:: ( R_V' R_V + \gamma I ) \, y_V = \gamma f_V - R_V' R_S y_S

(theorem 2 there). It is solved by conjugate gradients: the eigenvalues of ``R_V'R_V`` equal those of the graph's
Laplacian, except for as many as there are features. The graph must not depend on labels: tied pairs are included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg

from rankrls._cached import cached_property
from rankrls._comparisons import Data, KnownItems, LabelledItems
from rankrls._problems import Candidate, Problem
from rankrls._rows import take_items
from rankrls._typing import Array, Index, Mask, Matrix
from rankrls.numerics.eigen import definite_inverse
from rankrls.numerics.graph import LabelledGraph
from rankrls.numerics.holdout import hold_out
from rankrls.numerics.scorer import Basis, Scorer
from rankrls.numerics.smoother import DualSmoother, Smoother

_GOAL = 1e-14
_STEPS = 5000
_EVERY = 3
"""Step through an automatic grid, of which every third value is tried: each requires a solution in each fold."""


@dataclass(frozen=True, eq=False)
class Transduction:
    """Estimated labels, and the model of all rows with them.

    Attributes
    ----------
    rows : ndarray of intp
        Rows of X without labels.
    labels, supervised : ndarray of shape (rows, targets)
        Estimated labels, and ``f_V``: the scores by the model of the other rows.
    coefficients : ndarray
        Coefficients in the format of the smoother's path.
    """

    rows: Index
    labels: Array
    supervised: Array
    coefficients: Array


def transduce(
    smoother: Smoother, graph: LabelledGraph, X: Matrix, alpha: float, penalty: float, n_hidden: int
) -> Transduction:
    """Estimate the labels of the first queries of a graph.

    Parameters
    ----------
    smoother : Smoother
        Smoother of the graph and X, with any labels for the hidden queries.
    graph : LabelledGraph
        Graph that includes tied pairs.
    X : as for ``hold_out``
    alpha, penalty : float
        Positive regularization parameters; ``penalty`` is gamma.
    n_hidden : int
        Number of queries without labels, which come first.

    Notes
    -----
    O(m k) per step of conjugate gradients with k eigenvectors, and O(u^2 (u + k)) once for a query of u rows; m k
    numbers are stored.
    """
    cut = int(graph.starts[n_hidden])
    hidden = graph.part(0, n_hidden)
    t = graph.target.copy()
    t[:cut] = 0.0
    rest = _Rest.of(smoother, graph, X, alpha)
    known = replace(smoother, right=rest.Z.T @ t)
    held = replace(hidden, y=np.zeros_like(hidden.y))
    found = hold_out(known, held, X, np.array([alpha]), units=np.array([0, n_hidden]))
    supervised = found[:, 0].T

    def back(e: Array) -> Array:
        """``R_V'e``."""
        return hidden.transposed((rest @ rest.held_out(e))[:cut])

    def product(v: Array) -> Array:
        labels = v.reshape(supervised.shape)
        z = np.zeros(t.shape)
        z[:cut] = hidden.factored(labels)
        return np.ravel(back(rest.held_out(rest @ z)) + penalty * labels)

    right = penalty * supervised - back(rest.held_out(rest @ t))
    A = LinearOperator((right.size, right.size), matvec=product, dtype=np.float64)
    solution, _ = cg(A, right.ravel(), supervised.ravel(), rtol=_GOAL, maxiter=_STEPS)
    labels = solution.reshape(right.shape)
    t[:cut] = hidden.factored(labels)
    solved = replace(smoother, right=rest.Z.T @ t)
    return Transduction(hidden.rows, labels, supervised, solved.path(np.array([alpha]))[0])


@dataclass(frozen=True, eq=False)
class _Rest:
    """``I - H`` and Q for one alpha; H is ``W W'``, or in the dual ``I - W W'``, where no cancellation occurs."""

    Z: Array
    W: Array
    dual: bool
    queries: list[slice]
    inverses: list[Array]

    @classmethod
    def of(cls, smoother: Smoother, graph: LabelledGraph, X: Matrix, alpha: float) -> _Rest:
        dual = isinstance(smoother, DualSmoother)
        if isinstance(smoother, DualSmoother):
            Z = smoother.directions[smoother.graph.place[graph.rows]]
            W = Z * np.sqrt(alpha / (np.maximum(smoother.values, 0.0) + alpha))
        else:
            D, means = graph.read(X)
            Z = graph.factor(D @ smoother.directions, means @ smoother.directions)
            W = Z * np.sqrt(smoother.inverse(np.array([alpha]))[:, 0])
        queries = [slice(*ends) for ends in pairwise(graph.starts)]
        inverses = []
        for own in queries:
            part = W[own] @ W[own].T
            inverses.append(definite_inverse(part if dual else np.eye(len(part)) - part, "kernel"))
        return cls(Z, W, dual, queries, inverses)

    def __matmul__(self, z: Array) -> Array:
        """``(I - H) z``."""
        product = self.W @ (self.W.T @ z)
        return product if self.dual else z - product

    def held_out(self, e: Array) -> Array:
        """``Q e``: errors of each query by the model of the others."""
        return np.concatenate([inverse @ e[own] for own, inverse in zip(self.queries, self.inverses, strict=True)])


class WholeModel(Protocol):
    """Model to solve on all rows: RankRLS as a candidate of a search."""

    @property
    def square(self) -> bool: ...

    @property
    def basis(self) -> Basis | None: ...

    def problem(self, data: LabelledItems) -> Any: ...


@dataclass(frozen=True, eq=False, kw_only=True)
class TransductiveCandidate(Candidate["TransductiveSolutions"]):
    """RankRLS on all rows, with the labels for unlabelled rows that minimize the cross-validation error.

    Attributes
    ----------
    model : WholeModel
    penalty : float
    """

    model: WholeModel
    penalty: float

    @property
    def square(self) -> bool:
        return False  # items are row numbers

    @property
    def basis(self) -> Basis | None:
        return self.model.basis

    def problem(self, data: Data) -> TransductiveProblem:
        assert isinstance(data, KnownItems)
        return TransductiveProblem(self, data)


class TransductiveProblem(Problem["TransductiveSolutions"]):
    """Problem of a candidate for some rows with labels; the parameter is alpha.

    Unlabelled rows of partly labelled queries are left out: they cannot be labelled by themselves.
    """

    parameter = "alpha"

    def __init__(self, candidate: TransductiveCandidate, known: KnownItems) -> None:
        data = known.all_items
        rows = known.numbers
        codes = data.layout.codes
        model = candidate.model
        labels = np.zeros((data.n_rows, known.Y.shape[1]))
        labels[rows] = known.Y
        kept = ~np.isin(codes, codes[rows])
        kept[rows] = True
        part = np.flatnonzero(kept)
        whole = replace(data, Y=labels)
        if len(part) < len(kept):
            whole = whole.take(part, square=model.square)
        self._X = data.X
        self._columns = part if model.square else None
        self._penalty = candidate.penalty
        self._labels = whole.Y
        self._hidden = ~np.isin(part, rows)
        self._problem = model.problem(whole)
        (self._solver,) = self._problem.solvers

    def unresolved(self, values: Array) -> Mask:
        return np.asarray(self._problem.unresolved(values))

    def axis(self) -> Array:
        """An automatic grid with the largest alpha first."""
        return np.asarray(self._solver.smoother.grid()[::_EVERY])

    def path(self, values: Array) -> TransductiveSolutions:
        """Functions for several alphas; details are the given or estimated labels of all rows, and the functions."""
        solver = self._solver
        if not self._hidden.any():
            found = [(self._labels, solver.read(c)) for c in solver.path(values)]
            return TransductiveSolutions(found, self._X, self._columns)
        graph, count = self._hidden_first
        found = []
        for alpha in values.tolist():
            one = transduce(solver.smoother, graph, solver.features, alpha, self._penalty, count)
            labels = self._labels.copy()
            labels[one.rows] = one.labels
            found.append((labels, solver.read(one.coefficients)))
        return TransductiveSolutions(found, self._X, self._columns)

    @cached_property
    def _hidden_first(self) -> tuple[LabelledGraph, int]:
        """The graph with the hidden queries first, and the number of hidden queries."""
        graph = self._solver.graph
        of_query = self._hidden[graph.rows[graph.starts[:-1]]]
        order = np.argsort(~of_query, kind="stable")
        return graph.take(order), int(of_query.sum())


@dataclass(frozen=True, eq=False)
class TransductiveSolutions:
    """Labels and functions for several values of alpha; items are row numbers of X.

    Functions weigh some columns of a kernel matrix X; None means all columns.
    """

    details: Sequence[tuple[Array, Scorer]]
    X: Matrix
    columns: Index | None

    def scores(self, numbers: Any) -> Array:
        """Scores of rows, (rows, values, targets)."""
        items = take_items(self.X, numbers[:, 0].astype(np.intp))
        items = items if self.columns is None else items[:, self.columns]
        return np.stack([function(items) for _, function in self.details], axis=1)
