"""Comparable pairs of right-censored times: pairs of items for which it is known which lasted longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls._checks import check_count, check_memory, refuse_where, vector_of
from rankrls._errors import InputError
from rankrls._queries import query_layout
from rankrls._typing import Array, Index, Mask

__all__ = ["survival_pairs"]

_BYTES = 250.0
"""Maximum number of bytes per pair, here and in a fit."""


def survival_pairs(
    time: Any,
    event: Any,
    *,
    qid: Any = None,
    max_pairs: int | None = None,
    random_state: int | np.random.Generator | None = 0,
) -> tuple[Index, Index]:
    r"""Return the comparable pairs of survival analysis as preferences: the item with the longer time wins.

    Item i is worse than item j if its event was observed and j had no event until that time:

    .. math::

        i \prec j \iff \delta_i = 1 \wedge \left( t_i < t_j \vee (t_i = t_j \wedge \delta_j = 0) \right) .

    A model of these pairs therefore assigns **higher scores to longer times**; a risk is the negative score. The share
    of correctly ordered pairs, :func:`~rankrls.metrics.preference_accuracy`, is Harrell's C-index.

    Parameters
    ----------
    time : array-like of shape (m,)
        Time of the event or of censoring.
    event : array-like of shape (m,)
        1 or True if the event was observed, 0 or False if the item was censored.
    qid : array-like of shape (m,), optional
        Strata, such as hospitals; only items of the same stratum are compared. By default, all items are compared.
    max_pairs : int, optional
        Maximum number of pairs. If more are comparable, so many are drawn, evenly over the losers in order of time. By
        default, all comparable pairs are returned.
    random_state : None, int or Generator, default=0
        Source of the draws.

    Returns
    -------
    winners, losers : ndarray of shape (p,), intp
        Row numbers, as accepted by ``fit_pairs``: ``losers`` had their event first.

    Raises
    ------
    InputError
        If a time is missing or infinite or an event is neither 0 nor 1, with its row; if no pair is comparable; and if
        the pairs and their fit would not fit into memory.

    Notes
    -----
    O(m log m + p); p is at most m (m - 1) / 2, or ``max_pairs``. An item censored at the time of another item's event
    has the longer time, as in R's ``survival`` and scikit-survival. Two events at the same time are not compared.

    An estimator with cross-validation holds out folds of items and evaluates pairs of held-out items.

    References
    ----------
    Harrell, Califf, Pryor, Lee, Rosati: Evaluating the yield of medical tests. JAMA 247, 1982.

    Examples
    --------
    >>> from rankrls import survival_pairs
    >>> winners, losers = survival_pairs(time=[5, 2, 9, 4], event=[1, 1, 0, 0])
    >>> [*zip(winners.tolist(), losers.tolist())]  # item 3 was censored at 4: it may have outlasted items 0 and 2
    [(3, 1), (0, 1), (2, 1), (2, 0)]
    """
    t, observed = checked_times(time, event)
    layout = query_layout(qid, len(t))
    # The events at one time are followed by the items censored then, and by all later items of the stratum.
    group = np.unique(np.column_stack([layout.codes, t, ~observed]), axis=0, return_inverse=True)[1]
    order = np.argsort(group, kind="stable")
    first_longer = np.searchsorted(group[order], group[order], side="right")
    end = layout.starts[layout.codes[order] + 1]
    counts = np.where(observed[order], end - first_longer, 0)
    if not counts.any():
        problem = f"No pair is comparable: none of {int(observed.sum())} events came before the time of another item."
        raise InputError(problem, parameter="event")
    pairs = int(counts.sum())
    drawn = pairs if max_pairs is None else min(pairs, check_count("max_pairs", max_pairs, none="all pairs"))
    remedy = "Draw a sample of them (max_pairs), or compare within strata (qid)."
    check_memory(_BYTES * drawn, f"{drawn} comparable pairs need", remedy, parameter="time")
    runs = np.arange(drawn + 1) * pairs // drawn  # one pair of each run, which has about as many pairs as the others
    shares = np.random.default_rng(random_state).random(drawn)
    numbers = runs[:-1] + (shares * np.diff(runs)).astype(np.intp)
    ends = np.cumsum(counts)
    losing = np.searchsorted(ends, numbers, side="right")
    winners = order[first_longer[losing] + numbers - (ends - counts)[losing]]
    return winners, order[losing]


def checked_times(time: Any, event: Any) -> tuple[Array, Mask]:
    """Times, and a mask of those that are events; see :func:`survival_pairs`."""
    t = vector_of("time", time, "one for each item")
    refuse_where(
        ~np.isfinite(t), "time", lambda row: f"time must be finite; row {row} has {t[row]}. Leave out rows without one."
    )
    known = vector_of("event", event, "one for each item")
    if len(known) != len(t):
        raise InputError(f"event has {len(known)} entries but time has {len(t)}.", parameter="event")
    refuse_where(
        (known != 0.0) & (known != 1.0),
        "event",
        lambda row: f"event must be 1 if the event was observed and 0 otherwise; row {row} has {known[row]:g}.",
    )
    return t, known == 1.0
