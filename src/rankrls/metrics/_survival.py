"""Measures of scores for right-censored times, corrected for censoring."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from rankrls._checks import check_finite, vector_of
from rankrls._errors import InputError
from rankrls._typing import Array, Mask
from rankrls.metrics._table import ratio
from rankrls.survival import checked_times


def uno_concordance(
    y_score: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    *,
    train: tuple[ArrayLike, ArrayLike] | None = None,
    tau: float | None = None,
) -> float:
    r"""Uno's C: the share of comparable pairs that scores order correctly, weighted for censoring.

    .. math::

        \frac{\sum_{i, j} \delta_i \hat G(t_i)^{-2} [t_i < t_j, t_i < \tau] H(f_j - f_i)}
        {\sum_{i, j} \delta_i \hat G(t_i)^{-2} [t_i < t_j, t_i < \tau]}, \qquad
        H(a) = 1, \tfrac12, 0 \text{ for } a > 0, a = 0, a < 0,

    with the Kaplan-Meier estimate :math:`\hat G` of the probability that an item is not censored up to a time. An item
    censored at the time of an event counts as later. Unlike that of Harrell's C-index (:func:`preference_accuracy` of
    :func:`~rankrls.survival_pairs`), its limit does not depend on how items are censored.

    Parameters
    ----------
    y_score : array-like of shape (m,)
        Scores, greater for items that last longer; pass the negative of a risk.
    time, event : array-like of shape (m,)
        Times and events, as in :func:`~rankrls.survival_pairs`.
    train : tuple of (time, event), optional
        Data from which :math:`\hat G` is estimated; by default, the items themselves.
    tau : float, optional
        Time from which events are left out, because few items remain to estimate :math:`\hat G`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the input is invalid, no pair is comparable, or :math:`\hat G` is 0 or unknown at the time of an event.

    Notes
    -----
    Equals ``concordance_index_ipcw`` of scikit-survival, whose estimate is the negative score. O(m log m).

    References
    ----------
    Uno, Cai, Pencina, D'Agostino, Wei: On the C-statistics for evaluating overall adequacy of risk prediction
    procedures with censored survival data. Statistics in Medicine 30, 2011.

    Examples
    --------
    >>> from rankrls.metrics import uno_concordance
    >>> round(uno_concordance([3.0, 1.0, 2.0, 4.0], time=[5, 2, 9, 4], event=[1, 1, 0, 0]), 3)
    0.571
    """
    from rankrls.metrics._loops import count_by_rows

    scores, t, observed = _checked(y_score, time, event)
    used = observed & (t < (np.inf if tau is None else tau))
    weights = _weights(t, used, (t, observed) if train is None else checked_times(*train)) ** 2
    label = np.unique(np.column_stack([t, ~observed]), axis=0, return_inverse=True)[1]
    order = np.argsort(label, kind="stable")
    label = label[order]
    weights = weights[order]
    longer = len(t) - np.searchsorted(label, label, side="right")
    total = float(weights @ longer)
    if total == 0.0:
        raise InputError("No pair is comparable: no event came before the time of another item.", parameter="event")
    above, not_below, _ = count_by_rows(scores[order], label, weights)
    return 1.0 - float(above.sum() + not_below.sum()) / (2.0 * total)


def time_dependent_auc(
    y_score: ArrayLike,
    time: ArrayLike,
    event: ArrayLike,
    at: ArrayLike,
    *,
    train: tuple[ArrayLike, ArrayLike] | None = None,
) -> Array:
    r"""AUC at several times: how well scores separate items with an event by then from items that last longer.

    .. math::

        \frac{\sum_{i, j} \delta_i \hat G(t_i)^{-1} [t_i \le t < t_j] H(f_j - f_i)}
        {\sum_{i, j} \delta_i \hat G(t_i)^{-1} [t_i \le t < t_j]}

    with H and :math:`\hat G` as in :func:`uno_concordance`. Items censored by time t are left out; the weights of the
    items with an event compensate for them.

    Parameters
    ----------
    y_score, time, event, train : as in :func:`uno_concordance`
    at : array-like of shape (k,)
        Times t.

    Returns
    -------
    ndarray of shape (k,)
        AUC at each time; NaN if no item had an event by then, or none lasts longer.

    Raises
    ------
    InputError
        If the input is invalid, or :math:`\hat G` is 0 or unknown at the time of an event.

    Notes
    -----
    Equals ``cumulative_dynamic_auc`` of scikit-survival, whose estimate is the negative score. O(k m log m).

    References
    ----------
    Uno, Cai, Tian, Wei: Evaluating prediction rules for t-year survivors with censored regression models. Journal of
    the American Statistical Association 102, 2007.

    Examples
    --------
    >>> from rankrls.metrics import time_dependent_auc
    >>> time_dependent_auc([3.0, 1.0, 2.0, 4.0], [5, 2, 9, 4], [1, 1, 0, 0], at=[3, 6])
    array([1. , 0.4])
    """
    scores, t, observed = _checked(y_score, time, event)
    times = vector_of("at", at, "one time each")
    used = observed & (t <= times.max(initial=-np.inf))
    weights = _weights(t, used, (t, observed) if train is None else checked_times(*train))
    values = []
    for moment in times:
        cases = used & (t <= moment)
        controls = np.sort(scores[t > moment])
        not_above = np.searchsorted(controls, scores[cases], side="right")
        below = np.searchsorted(controls, scores[cases])
        right = weights[cases] @ (len(controls) - 0.5 * (not_above + below))
        values.append((right, weights[cases].sum() * len(controls)))
    right, total = np.reshape(values, (-1, 2)).T
    return ratio(right, total)


def _checked(y_score: ArrayLike, time: ArrayLike, event: ArrayLike) -> tuple[Array, Array, Mask]:
    t, observed = checked_times(time, event)
    scores = vector_of("y_score", y_score, "one score for each item")
    check_finite("y_score", scores, "score")
    if len(scores) != len(t):
        raise InputError(f"y_score has {len(scores)} entries but time has {len(t)}.", parameter="y_score")
    return scores, t, observed


def _weights(t: Array, used: Mask, train: tuple[Array, Mask]) -> Array:
    """One over the probability that an item is not censored up to the time of its event; 0 for unused items."""
    from scipy.stats import CensoredData, ecdf  # slow to import and rarely needed

    times, observed = train
    if not len(times):
        raise InputError("time is empty: censoring cannot be estimated without items.", parameter="time")
    later = np.nextafter(times, np.inf)  # events precede censoring at the same time
    lasting = ecdf(CensoredData.right_censored(np.where(observed, times, later), observed)).sf
    free = lasting.evaluate(np.nextafter(t[used], np.inf))
    known = (free > 0.0) & (t[used] <= times.max())
    if not known.all():
        row = int(np.flatnonzero(used)[~known][0])
        problem = f"The probability of not being censored until time {t[row]:g} (row {row}) is 0 or unknown."
        raise InputError(f"{problem} Leave out later events (tau, at).", parameter="time", row=row)
    out = np.zeros(len(t))
    out[used] = 1.0 / free
    return out
