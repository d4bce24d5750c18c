"""Held-out preferences, without refitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls.model_selection._estimators import affordable_candidate, checked_model
from rankrls.models.inputs.validation import preferred_items
from rankrls.selection.folds import preference_blocks
from rankrls.selection.plans import held_out_scores

__all__ = ["leave_preference_out"]


def leave_preference_out(
    estimator: Any,
    X: Any,
    winners: Any,
    losers: Any,
    *,
    strength: Any = None,
    weight: Any = None,
    groups: Any = None,
    alphas: Any = None,
) -> NDArray[np.float64]:
    """Predict each preference by the model that never saw it, nor others of its group.

    Equal to refitting :meth:`RankRLS.fit_pairs` without each preference or group, for every alpha, from one
    factorisation.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Its parameters are used; it need not be fitted and is not changed.
    X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`
    groups : array-like of shape (p,), optional
        Preferences of one group (an annotator, a prompt, a query, a fold) are held out together. By default each
        preference is held out alone.
    alphas : sequence of float, optional
        Positive regularization values; the estimator's own alpha by default.

    Returns
    -------
    ndarray of shape (p,) or (p, alphas)
        The held-out score of each winner less that of its loser: positive where the preference is predicted rightly.
        NaN for preferences of weight zero.

    Raises
    ------
    ValueError
        Where alpha is not positive, or there are fewer than two preferences, or groups, with a strength other than 0.

    Notes
    -----
    Primal: O(p n^2 + n^3) once, then O(p n) for single preferences and O(u n^2) for a group of u, for all alphas
    together. Dual: O(min(p, m)^3) once. Other preferences between the same two items stay: hold them out together by
    giving them one group.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.model_selection import leave_preference_out
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(30, 3))
    >>> winners, losers = rng.integers(30, size=(2, 100))
    >>> winners, losers = winners[winners != losers], losers[winners != losers]
    >>> swap = X[winners, 0] + rng.normal(size=len(winners)) < X[losers, 0]
    >>> winners, losers = np.where(swap, losers, winners), np.where(swap, winners, losers)
    >>> lead = leave_preference_out(RankRLS(), X, winners, losers, alphas=[0.1, 10.0])
    >>> (lead > 0).mean(axis=0).round(2)
    array([0.73, 0.72])
    """
    model, grid = checked_model(estimator, alphas, "leave_preference_out")
    data = preferred_items(model, X, winners, losers, strength, weight, kernel=model.kernel, groups=groups)
    blocks, _ = preference_blocks(data)
    candidate = affordable_candidate(model, data, len(grid), blocks)
    lead = held_out_scores(data, candidate, candidate.problem(data), blocks, grid)[:, :, 0]
    if np.ndim(weight) == 1:
        kept = np.asarray(weight, dtype=np.float64) > 0.0
        full = np.full((len(kept), len(grid)), np.nan)
        full[kept] = lead
        lead = full
    return lead[:, 0] if alphas is None else lead
