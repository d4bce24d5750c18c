"""Features of very different spread, where a solver cannot keep them apart: say so."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputWarning
from rankrls.equations.graded import MOST_GRADED
from rankrls.equations.holdout import holdout_alphas
from rankrls.graph import ScoredGraph
from rankrls.holdout.pair_holdout import LEVERAGE
from rankrls.problems.problem import Problem
from rankrls.selection.search import Chosen

__all__ = ["warn_of_lost_equations", "warn_of_lost_features"]

_CLEAR = 100.0


def warn_of_lost_features(
    problem: Problem | Chosen, X: Any, alphas: NDArray[np.float64] | None, names: Any, *, pairs_held_out: bool = False
) -> None:
    """Warn where a feature should count, by its spread and alpha, but rounding of another one hides it.

    Parameters
    ----------
    problem : Problem or Chosen
        Of the first target and a linear kernel. The primal of up to 300 features loses none, except to an outlier when
        pairs are held out.
    X : dense, shape (m, n)
        Nothing is said of sparse features, which are centred elsewhere.
    alphas : ndarray, or None for a grid that is chosen by the spectrum
    names : ndarray of str, or None
    pairs_held_out : bool
        Whether scores came from pairs held out, under alphas of at least 1e-10 of the largest eigenvalue.

    Notes
    -----
    O(m n). A feature counts where its part of the diagonal of ``X'LX`` is larger than the smallest alpha.
    """
    exact = problem.rounding == "graded"
    if not isinstance(X, np.ndarray) or problem.rounding is None or (exact and not pairs_held_out):
        return
    graph = problem.graph
    energy = graph.factor_rows(X).energies()
    most, largest = float(energy.max(initial=0.0)), int(np.argmax(energy))
    least = 0.0 if alphas is None else float(alphas.min())
    noise = _CLEAR * float(np.finfo(np.float64).eps) * max(X.shape) * most
    if pairs_held_out:
        noise = max(noise, float(holdout_alphas(np.array([max(least, 1e-300)]), most)[0]))
    lost = np.flatnonzero((energy < noise) & (energy > least))
    if not len(lost) or (isinstance(graph, ScoredGraph) and exact and not _stands_alone(X[:, largest], graph)):
        return
    _say(energy, lost, X.shape[1], names, pairs_held_out=pairs_held_out, exact=exact)


def warn_of_lost_equations(problem: Any, alphas: NDArray[np.float64] | None, names: Any) -> None:
    """The same for a problem of which only the normal equations are known. O(n)."""
    if problem.rounding != "plain":
        return
    energy = problem.equations.gram.diagonal()
    least = 0.0 if alphas is None else float(alphas.min())
    noise = _CLEAR * float(np.finfo(np.float64).eps) * problem.size * float(energy.max(initial=0.0))
    lost = np.flatnonzero((energy < noise) & (energy > least))
    if len(lost):
        _say(energy, lost, len(energy), names, pairs_held_out=False, exact=False)


def _say(
    energy: NDArray[np.float64],
    lost: NDArray[np.intp],
    n: int,
    names: Any,
    *,
    pairs_held_out: bool,
    exact: bool,
) -> None:
    largest, smallest = int(np.argmax(energy)), int(lost[np.argmin(energy[lost])])
    ratio = float(np.sqrt(energy[largest] / energy[smallest]))
    others = f" ({len(lost)} features are as small)" if len(lost) > 1 else ""
    dual = not exact and n <= MOST_GRADED and not pairs_held_out
    warnings.warn(
        InputWarning(
            "Feature {0} has {1:.1g} times the spread of feature {2}{3}: rounding of the large one hides what the "
            "small one says.",
            *(_called(largest, names), ratio, _called(smallest, names), others),
            remedy="Scale the features, as StandardScaler does" + (" or take {solver='primal'}." if dual else "."),
            parameter="X",
            column=smallest if names is None else str(names[smallest]),
        ),
        stacklevel=5,
    )


def _stands_alone(column: NDArray[np.floating], graph: ScoredGraph) -> bool:
    """Whether two items alone determine a feature's weight, so that alpha was raised for pairs."""
    rows = graph.factor_rows(column[:, None])
    squares = np.concatenate([rows.factor(piece)[:, 0] ** 2 for piece in rows.pieces(slice(0, rows.n_rows))])
    leverage = squares / squares.sum() + graph.weights / graph.query_weight[graph.layout.codes]
    return bool(np.sort(leverage)[-2:].sum() > LEVERAGE)


def _called(j: int, names: Any) -> str:
    return f"{j}" if names is None else f"{j} ({names[j]!r})"
