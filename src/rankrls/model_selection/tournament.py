"""Tournament leave-pair-out: ROC curves from held-out pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._shown import Shown
from rankrls.holdout.pair_holdout import tournament_wins
from rankrls.model_selection._estimators import affordable_candidate, checked_model, labelled_data
from rankrls.model_selection.pair_holdout import check_pairs_can_be_held_out
from rankrls.selection.plans import pair_problems


@dataclass(frozen=True, eq=False, repr=False)
class Tournament(Shown):
    """What :func:`tournament_leave_pair_out` found.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        How many of the other items each one beats where the two are held out together; a tie is half a win. With
        ``sample_weight`` their weight. NaN for rows of weight zero.
    fpr, tpr, thresholds : ndarray
        The ROC curve of the scores, as :func:`sklearn.metrics.roc_curve` gives it.
    auc : float
        The area under it.
    """

    scores: NDArray[np.float64]
    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    auc: float

    def __str__(self) -> str:
        return (
            f"Tournament of {np.count_nonzero(~np.isnan(self.scores))} items, every pair held out: AUC {self.auc:.4f}"
        )


def tournament_leave_pair_out(
    estimator: Any, X: Any, y: Any, *, alpha: float | None = None, sample_weight: Any = None
) -> Tournament:
    r"""ROC curve by tournament leave-pair-out cross-validation.

    Every pair of items plays, pairs of equal labels too: :math:`s_i = \sum_{j \ne i} [ f_i > f_j ] + \frac12 [ f_i =
    f_j ]`, f trained without i and j. Leave-pair-out itself gives an AUC but no curve, because each pair has a model of
    its own; the tournament's scores order all items at once.

    Parameters
    ----------
    estimator : RankRLS or SparseRankRLS
        Its parameters are used; it need not be fitted and is not changed. ``ties="include"``.
    X, sample_weight : as in :meth:`RankRLS.fit`
    y : array-like of shape (m,)
        Two labels; the larger is the positive one.
    alpha : float, optional
        Positive; the estimator's own by default.

    Returns
    -------
    Tournament

    Raises
    ------
    ValueError
        Where y does not hold exactly two labels, each in two rows or more, or the pairs of the estimator's graph cannot
        be held out without refitting.

    Notes
    -----
    Costs and memory are those of :func:`leave_pair_out` for one alpha. Where no three items beat each other in a circle
    the area equals the leave-pair-out AUC.

    References
    ----------
    Montoya Perez, Airola, Boström, Jambor, Pahikkala: Tournament leave-pair-out cross-validation for receiver operating
    characteristic analysis. Statistical Methods in Medical Research 28, 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import RankRLS
    >>> from rankrls.model_selection import tournament_leave_pair_out
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=40)
    >>> X = rng.normal(size=(40, 200))
    >>> X[:, :20] += 0.5 * y[:, None]
    >>> result = tournament_leave_pair_out(RankRLS(alpha=10.0), X, y)
    >>> round(result.auc, 3), float(result.scores.sum())
    (0.807, 780.0)
    """
    model, grid = checked_model(estimator, None if alpha is None else [alpha], "tournament_leave_pair_out")
    data = labelled_data(model, X, y, None, sample_weight)
    labels = data.Y[:, 0]
    values, counts = np.unique(labels, return_counts=True)
    if len(values) != 2:
        raise InputError("A ROC curve needs exactly two labels; {y} has {0}.", len(values))
    if counts.min() < 2:
        raise InputError(
            "Only one row has label {0:g}: without it there is nothing to learn from.",
            values[np.argmin(counts)],
            parameter="y",
        )
    check_pairs_can_be_held_out(model, data, "tournament_leave_pair_out")
    from sklearn.metrics import auc, roc_curve  # which import scipy.stats

    ((problem, factor, _),) = pair_problems(affordable_candidate(model, data, 1), data)
    scores = tournament_wins(problem, labels, grid * factor)[:, 0]
    fpr, tpr, thresholds = roc_curve(labels == values[1], scores, sample_weight=data.weights, drop_intermediate=False)
    return Tournament(data.given_rows(scores), fpr, tpr, thresholds, float(auc(fpr, tpr)))
