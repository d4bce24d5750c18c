r"""Matching pursuit in the inner product of a preference graph.

Tsivtsivadze and Heskes, "Semi-supervised ranking pursuit", section 3. With residual ``r = y - f`` a stage takes the
column k and step a that minimise ``(r - a k)' L (r - a k)``:

.. math::

    a = \frac{k' L r}{k' L k} , \qquad \text{gain} = \frac{(k' L r)^2}{k' L k} ,

and then fits the coefficients of all columns taken so far anew ("backfitting"). In the coordinates ``F k`` and
``F y``, with ``F'F = L``, that is orthogonal matching pursuit: the columns are made orthonormal as they come, so that
the new fit is one more projection, and never a refit. ``L = I`` is kernel matching pursuit (Vincent and Bengio 2002).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankrls.greedy.dictionaries import Dictionary
from rankrls.greedy.walk import CoPursuitPath, PursuitPath, StackedViews, View, Walk


def pursue(dictionary: Dictionary, target: NDArray[np.float64], n_basis: int, *, backfit: bool = True) -> PursuitPath:
    """Approximate ``target`` greedily by columns of a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
        N columns, seen through F.
    target : ndarray of shape (rows of F,)
        ``F y``, or the weighted strengths of the preferences.
    n_basis : int
        Stages at most.
    backfit : bool
        Whether all coefficients are fitted again at each stage; False is plain matching pursuit.

    Returns
    -------
    PursuitPath
        Shorter than ``n_basis`` where nothing improves any more: where no column's correlation with the residual
        exceeds rounding, or all columns lie in the span of those taken.

    Notes
    -----
    One product with the dictionary a stage, O(n N) for n rows, and O(n p) at stage p for the backfitting: O(P n N) for
    P stages. Equal gains (correlations within 1e-10) go to the lowest index.
    """
    return pursue_in_turn([View(dictionary, target)], n_basis, backfit=backfit).view(0)


def pursue_in_turn(
    views: Sequence[View],
    n_basis: int,
    nu: float = 0.0,
    *,
    backfit: bool = True,
    ids: Sequence[NDArray[np.intp]] | None = None,
) -> CoPursuitPath:
    """Lower the objective of :mod:`rankrls.greedy.walk` greedily, the views one after the other.

    A stage takes the column of the first view that lowers the objective most, then that of the second, and so on; all
    coefficients are fitted anew at each.

    Parameters
    ----------
    views, n_basis, nu, backfit : as of :func:`rankrls.greedy.copursuit.co_pursue`
    ids : sequence of M arrays of intp, optional
        What the columns of each view are called. A column that one view has taken is closed to the others.

    Notes
    -----
    O(M N (n + l)) a stage and O(p M^2 (n + l)) to backfit: linear in columns and rows. A view to which nothing is left
    to gain repeats its last column, whose coefficient stays.
    """
    problem = StackedViews(views, nu)
    walk = Walk(problem, n_basis, backfit=backfit)
    energies = problem.energies()
    scales = [np.divide(1.0, np.sqrt(e), out=np.zeros(len(e)), where=e > 0.0) for e in energies]
    last = [0] * len(views)
    while walk.n_stages < n_basis:
        found = False
        for v, scale in enumerate(scales):
            b = problem.product(v, walk.u)
            gains = np.abs(b) * scale
            while (best := walk.best(gains)) is not None:
                if backfit:
                    scale[best] = gains[best] = 0.0  # taken, or in the span of those taken
                    if not walk.project(v, best):
                        continue
                else:
                    walk.step(v, best, b[best] / energies[v][best])
                last[v], found = best, True
                if ids is not None:
                    for u in set(range(len(views))) - {v}:
                        scales[u][ids[u] == ids[v][best]] = 0.0
                break
        if not found:
            break
        walk.end_stage(last)
    return walk.path()
