"""The methods by which estimators take labelled items or preferences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from rankrls._comparisons import Comparisons
from rankrls.kernels import Kernel
from rankrls.metrics import Measure, resolve_measure
from rankrls.models import fitting
from rankrls.models.inputs.parameters import check_parameters
from rankrls.models.ranker import Ranker
from rankrls.selection.folds import few_folds
from rankrls.selection.plans import Plan

_LINEAR = Kernel("linear")


@dataclass(frozen=True, eq=False)
class Candidate:
    """What a search compares.

    Attributes
    ----------
    choices : dict
        What is chosen with it, by parameter.
    problem : callable
        Makes the problem of some data.
    kernel : Kernel
    basis : object
        The items that its functions expand over, if not all.
    square : bool
        Whether X is a kernel matrix with a column for each training item.
    """

    choices: dict[str, Any]
    problem: Callable[..., Any]
    kernel: Kernel = _LINEAR
    basis: Any = None
    square: bool = False


class Fits(Ranker):
    """Fits one model to labelled items or to preferences. A subclass defines ``_solve``."""

    def fit(self, X: Any, y: Any, *, qid: Any = None, sample_weight: Any = None) -> Self:
        """Fit items with labels.

        Parameters
        ----------
        X, y, qid, sample_weight : as in :meth:`RankRLS.fit`

        Returns
        -------
        self
        """
        check_parameters(self)
        return self._solve(fitting.labelled(self, X, y, qid, sample_weight))

    def fit_pairs(self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None) -> Self:
        """Fit preferences.

        Parameters
        ----------
        X, winners, losers, strength, weight : as in :meth:`RankRLS.fit_pairs`

        Returns
        -------
        self
        """
        check_parameters(self)
        return self._solve(fitting.preferred(self, X, winners, losers, strength, weight))

    def _solve(self, data: Comparisons) -> Self:
        raise NotImplementedError


class Chooses(Ranker):
    """Chooses a model by held-out queries or preferences. A subclass defines ``_search``."""

    scoring: Any
    cv: Any

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Choose by held-out queries or validation data, then fit all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight, X_val, y_val, qid_val : as in :meth:`RankRLSCV.fit`

        Returns
        -------
        self
        """
        self._check()
        measure = self._measure(preferred=False)
        data = fitting.labelled(self, X, y, qid, sample_weight)
        plan = fitting.validation(self, measure, data, X_val, y_val, qid_val)
        return self._search(data, plan or self._folds(measure, data))

    def fit_pairs(
        self, X: Any, winners: Any, losers: Any, *, strength: Any = None, weight: Any = None, groups: Any = None
    ) -> Self:
        """Choose by folds of preferences, or of groups of them; then fit all.

        Parameters
        ----------
        X, winners, losers, strength, weight, groups : as in :meth:`RankRLSCV.fit_pairs`

        Returns
        -------
        self
        """
        self._check()
        measure = self._measure(preferred=True)
        data = fitting.preferred(self, X, winners, losers, strength, weight, groups)
        return self._search(data, self._folds(measure, data))

    def _check(self) -> None:
        check_parameters(self, several=True)

    def _measure(self, *, preferred: bool) -> Measure:
        return resolve_measure(self.scoring)

    def _folds(self, measure: Measure, data: Comparisons) -> Plan | None:
        return few_folds(self.cv, measure, data, float(getattr(self, "regression_weight", 0.0)))

    def _search(self, data: Comparisons, plan: Plan | None) -> Self:
        raise NotImplementedError


class ChoosesByClicks(Chooses):
    """Chooses from labels or from clicks."""

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        qid: Any = None,
        sample_weight: Any = None,
        position: Any = None,
        impressions: Any = None,
        propensities: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        qid_val: Any = None,
    ) -> Self:
        """Choose by held-out queries or validation data, then fit all rows of X.

        Parameters
        ----------
        X, y, qid, sample_weight, position, impressions, propensities, X_val, y_val, qid_val : as in
            :meth:`RankRLSCV.fit`

        Returns
        -------
        self
        """
        self._check()
        measure = self._measure(preferred=False)
        data = fitting.labelled(self, X, y, qid, sample_weight, shown=(position, impressions, propensities))
        plan = fitting.validation(self, measure, data, X_val, y_val, qid_val)
        return self._search(data, plan or self._folds(measure, data))
