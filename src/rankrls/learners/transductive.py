r"""Labels for queries that have none: those under which cross-validation goes best.

Let V be the rows of the queries without labels, S all others. Whole folds U of queries are held out in their turn, and
the labels of V minimise

.. math::

    J(y_V) = \sum_U \lVert F_U ( y_U - f_{U \setminus U} ) \rVert^2 + \gamma \lVert y_V - f_V \rVert^2 ,

where :math:`f_{U \setminus U}` are the scores of U by the model of all other rows, with :math:`y_V` among their labels,
and :math:`f_V` those of V by the model of S (Pahikkala, Suominen, Boberg, Salakoski 2007, equation 11). Held-out errors
are linear in the labels: with H the smoother of :math:`F y` and :math:`Q` block diagonal with the blocks
:math:`(I - H_{UU})^{-1}`, they are :math:`R y`, :math:`R = Q (I - H) F`, so that

.. math:: ( R_V' R_V + \gamma I ) \, y_V = \gamma f_V - R_V' R_S y_S

(theorem 2 there). It is solved by conjugate gradients: the eigenvalues of ``R_V'R_V`` are those of the graph's
Laplacian but for as many as there are features. The graph must not look at labels: tied pairs are included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import linalg

from rankrls.numerics.graph import Array, Index, LabelledGraph
from rankrls.numerics.holdout import hold_out
from rankrls.numerics.smoother import DualSmoother, Smoother

_GOAL = 1e-14
_STEPS = 5000


@dataclass(frozen=True, eq=False)
class Transduction:
    """Labels found, and the model of all rows with them.

    Attributes
    ----------
    rows : ndarray of intp
        Rows of X without labels.
    labels, supervised : ndarray of shape (rows, targets)
        The labels found, and ``f_V``: the scores by the model of the other rows.
    coefficients : ndarray
        As of the smoother's path.
    """

    rows: Index
    labels: Array
    supervised: Array
    coefficients: Array


def transduce(
    smoother: Smoother, graph: LabelledGraph, X: Any, alpha: float, penalty: float, n_hidden: int, folds: list[Index]
) -> Transduction:
    """Find the labels of the first queries of a graph.

    Parameters
    ----------
    smoother : Smoother
        Of the graph and X, with any labels in the hidden queries.
    graph : LabelledGraph
        Tied pairs are included.
    X : as for ``hold_out``
    alpha, penalty : float
        Positive; ``penalty`` is gamma.
    n_hidden : int
        The first so many queries have no labels.
    folds : list of ndarray of intp
        Rows of the graph that are held out together: whole queries, each row in one fold.

    Notes
    -----
    O(m k) for each step of conjugate gradients with k eigenvectors, and O(u k min(u, k)) once for a fold of u rows; m k
    numbers are held.
    """
    m, cut = graph.n_rows, int(graph.starts[n_hidden])
    hidden = graph.part(0, n_hidden)
    t = graph.target.copy()
    t[:cut] = 0.0
    rest = _Rest.of(smoother, graph, X, alpha, folds)
    known = replace(smoother, right=rest.Z.T @ t)
    held = replace(hidden, y=np.zeros_like(hidden.y))
    supervised = hold_out(known, held, X, np.array([alpha]), units=np.array([0, n_hidden]), means=True).scores[:, 0].T

    def errors(labels: Array) -> Array:
        """``R_V y_V``."""
        z = np.zeros((m, labels.shape[1]))
        z[:cut] = hidden.factored(labels)
        return rest.held_out(rest @ z)

    def back(e: Array) -> Array:
        """``R_V'e``."""
        return hidden.transposed((rest @ rest.held_out(e))[:cut])

    right = penalty * supervised - back(rest.held_out(rest @ t))
    labels = _conjugate_gradients(lambda v: back(errors(v)) + penalty * v, right, supervised)
    t[:cut] = hidden.factored(labels)
    solved = replace(smoother, right=rest.Z.T @ t)
    return Transduction(hidden.rows, labels, supervised, solved.path(np.array([alpha]))[0])


def _conjugate_gradients(product: Any, right: Array, start: Array) -> Array:
    """Solve for each column of the right side."""
    x = start.copy()
    r = right - product(x)
    p, squared = r.copy(), np.einsum("ij,ij->j", r, r)
    goal = _GOAL**2 * np.einsum("ij,ij->j", right, right)
    for _ in range(_STEPS):
        if (squared <= goal).all():
            break
        q = product(p)
        curvature = np.einsum("ij,ij->j", p, q)
        step = np.divide(squared, curvature, out=np.zeros_like(squared), where=(squared > goal) & (curvature > 0.0))
        if not step.any():
            break
        x += step * p
        r -= step * q
        new = np.einsum("ij,ij->j", r, r)
        p = r + np.divide(new, squared, out=np.zeros_like(new), where=squared > 0.0) * p
        squared = new
    return x


@dataclass(frozen=True, eq=False)
class _Rest:
    """``I - H`` and Q for one alpha; ``rest @ z`` and ``held_out(e)``.

    ``I - H`` is ``I - W W'``, or in the dual ``W W'`` (base 0), where nothing cancels.
    """

    Z: Array
    W: Array
    base: float
    folds: list[tuple[Index, Any, bool]]

    @classmethod
    def of(cls, s: Smoother, graph: LabelledGraph, X: Any, alpha: float, folds: list[Index]) -> _Rest:
        if isinstance(s, DualSmoother):
            Z, W, base = s.directions, s.directions * np.sqrt(alpha / (np.maximum(s.values, 0.0) + alpha)), 0.0
        else:
            D, means = graph.read(X)
            Z = graph.factor(D @ s.directions, means @ s.directions)
            W, base = Z * np.sqrt(s.inverse(np.array([alpha]))[:, 0]), 1.0
        factors = []
        for rows in folds:
            own = W[rows]
            small = base == 0.0 or len(own) <= own.shape[1]
            A = (own @ own.T if small else own.T @ own) * (1.0 - 2.0 * base)
            if base:
                A.flat[:: len(A) + 1] += 1.0
            factors.append((rows, _factor(A), small))
        return cls(Z, W, base, factors)

    def __matmul__(self, z: Array) -> Array:
        """``(I - H) z``."""
        product = self.W @ (self.W.T @ z)
        return z - product if self.base else product

    def held_out(self, e: Array) -> Array:
        """``Q e``: each fold's errors by the model of the others."""
        out = np.empty_like(e)
        for rows, solve, small in self.folds:
            own = e[rows]
            if small:
                out[rows] = solve(own)
            else:  # (I - W W')^-1 = I + W (I - W'W)^-1 W'
                W = self.W[rows]
                out[rows] = own + W @ solve(W.T @ own)
        return out


def _factor(A: Array) -> Any:
    """What solves with a matrix that is positive definite but for rounding."""
    try:
        factor = linalg.cho_factor(A, lower=True, check_finite=False)
    except linalg.LinAlgError:
        inverse = linalg.pinvh(A)
        return lambda b: inverse @ b
    return lambda b: linalg.cho_solve(factor, b, check_finite=False)
