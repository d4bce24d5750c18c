"""What learns from rows with labels and rows without."""

from __future__ import annotations

from typing import Any, Self

from rankrls.models.inputs.parameters import check_parameters
from rankrls.models.inputs.unscored import PartlyScored, partly_scored
from rankrls.models.inputs.validation import check_comparable
from rankrls.models.ranker import Ranker


class PartlyScoredRanker(Ranker):
    """Learns from rows of which some have a label."""

    _learns_unscored = True
    _single_target = True
    regression_weight: float

    def _check(self) -> None:
        """Check the parameters, as far as that is possible without data."""
        check_parameters(self)

    def _learn(self, rows: PartlyScored) -> None:
        raise NotImplementedError

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_unscored: Any = None,
        qid_unscored: Any = None,
    ) -> Self:
        """Learn from rows with labels and rows without; what there is to choose, by held-out scored queries.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, n)
        y : array-like of shape (m,)
            Labels, higher is better; NaN marks an unscored row.
        qid : array-like of shape (m,), optional
            One query id per row. None makes everything one global ranking.
        sample_weight : array-like of shape (m,), optional
            Row weights, not negative; rows of X_unscored weigh 1.
        X_unscored : array-like, sparse matrix or data frame of shape (l, n), optional
            Further unscored rows.
        qid_unscored : array-like of shape (l,), optional
            Their queries, needed where there is a qid. An id of a row of X is the same query.

        Returns
        -------
        self
        """
        self._check()
        rows = partly_scored(self, X, y, qid, sample_weight, X_unscored, qid_unscored)
        check_comparable(rows.known, float(self.regression_weight))
        self._learn(rows)
        return self
