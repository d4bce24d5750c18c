"""Leave-pair-out of right-censored times: each comparable pair of items held out of the others' comparable pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import PreferredItems
from rankrls._errors import InputError
from rankrls.holdout.preferred_pairs import held_out_leads
from rankrls.models.inputs.validation import preferred_items
from rankrls.survival import survival_pairs

__all__ = ["checked_comparable", "comparable_items", "held_out_times", "pairs_of_rows"]

_NEAR = 1e-10  # of the largest lead: a tie


def comparable_items(model: Any, X: Any, time: Any, event: Any, qid: Any, sample_weight: Any) -> PreferredItems:
    """The comparable pairs of the items, for a model whose pairs can be held out."""
    if not hasattr(model, "solver") or model._constrained():
        raise InputError(
            "Pairs of censored times are held out of RankRLS without constraints on signs.", parameter="estimator"
        )
    if sample_weight is not None:
        raise InputError("{event} is for rows that count the same: leave out {sample_weight}.")
    winners, losers = survival_pairs(time, event, qid=qid)
    return preferred_items(model, X, winners, losers, None, None, kernel=model.kernel)


def pairs_of_rows(pairs: Any) -> NDArray[Any]:
    """Two whole numbers each; whether they are rows is not looked at."""
    given = np.asarray(pairs)
    if given.ndim != 2 or given.shape[1] != 2 or not len(given) or given.dtype.kind not in "iu":
        problem = "{pairs} must hold two row numbers each, shape (p, 2); got shape {0} of dtype {1}."
        raise InputError(problem, given.shape, given.dtype)
    return given


def checked_comparable(data: PreferredItems, pairs: Any) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The winners and the losers of the pairs to hold out: those that were given, or all."""
    graph = data.graph
    if pairs is None:
        return graph.winners, graph.losers
    given = pairs_of_rows(pairs)
    m = graph.n_items
    known = np.sort(graph.winners * m + graph.losers)
    inside = ((given >= 0) & (given < m)).all(axis=1)
    found = [inside & np.isin(given[:, a] * m + given[:, b], known) for a, b in ((0, 1), (1, 0))]
    bad = ~(found[0] | found[1])
    if bad.any():
        k = int(np.argmax(bad))
        problem = "Pair {0}, rows {1} and {2}, is not comparable: it is not known which lasted longer."
        raise InputError(problem, k, *given[k].tolist(), parameter="pairs", row=int(given[k, 0]))
    first, second = given.T.astype(np.intp)
    return np.where(found[0], first, second), np.where(found[0], second, first)


def held_out_times(
    model: Any, data: PreferredItems, alphas: NDArray[np.float64], i: NDArray[np.intp], j: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Held-out scores of items ``i`` less those of items ``j``, (pairs, alphas); 0 for ties."""
    graph = data.graph
    known = np.bincount(np.concatenate((graph.winners, graph.losers)), minlength=graph.n_items)
    alone = known[i] + known[j] - 1 == graph.n_rows
    if alone.any():
        k = int(np.argmax(alone))
        problem = "Without rows {0} and {1} no comparable pair is left to learn from."
        raise InputError(problem, j[k], i[k], parameter="event", row=int(j[k]))
    Z = _features(model._candidate(data).kernel, data.X)
    out = np.stack([held_out_leads(Z, graph, float(alpha), i, j) for alpha in alphas], axis=1)
    out[np.abs(out) <= _NEAR * np.abs(out).max(axis=0, initial=0.0)] = 0.0
    return out


def _features(kernel: Any, X: Any) -> NDArray[np.float64]:
    """At most as many features as items, in which the kernel's functions are linear with the same penalty."""
    if kernel.is_linear and X.shape[1] <= X.shape[0]:
        Z = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        return np.asarray(Z - Z.mean(axis=0))
    K = kernel(X)
    K = K - K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]  # constants order nothing
    values, vectors = np.linalg.eigh(K)
    kept = values > len(values) * np.finfo(np.float64).eps * max(values[-1], 0.0)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))
