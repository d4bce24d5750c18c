"""Explanations: contributions of features to an item's score and to score differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from rankrls._cached import cached_property
from rankrls._errors import InputError
from rankrls._queries import QueryLayout, query_layout
from rankrls._shown import Shown, table_text
from rankrls._typing import Array, IdsLike, ItemsLike, Values
from rankrls.metrics._scorer import final_step_inputs, unwrapped
from rankrls.models._pipelines import fitted_ranker, linear_weights, names_of_features
from rankrls.models.intake import check_matrix, check_qid_given
from rankrls.numerics.runs import dense_rows


def explain(
    model: BaseEstimator,
    X: ItemsLike,
    *,
    qid: IdsLike | None = None,
    feature_names: Sequence[str] | None = None,
    target: int | None = None,
) -> Explanation:
    r"""Compute the contribution of each feature to the scores of a linear model.

    A linear model's score is :math:`\sum_j w_j z_j` over the features :math:`z` after the pipeline's scalers. The score
    of item i is ``contributions[i].sum()``, up to rounding.

    Parameters
    ----------
    model : fitted estimator of rankrls with ``coef_``, or a Pipeline that ends in one
        The features are the inputs of the last step: after a scaler, contributions and values are in scaled units.
        ``qid`` is passed to a scaler that works within queries; X should then contain whole queries.
    X : as for ``predict``
    qid : array-like of shape (m,), optional
        One query id per row; required if the model was fitted with qid.
    feature_names : sequence of str, optional
        One name per column of X. By default the names of the fit, else x0, x1, ...
    target : int, optional
        Number of the target, for a model with several.

    Returns
    -------
    Explanation

    Raises
    ------
    ValueError
        If the model is not linear, or the data are invalid, as in ``predict``.

    Notes
    -----
    O(m n), or O(stored entries) for sparse X.

    Examples
    --------
    >>> from rankrls import RankRLS
    >>> from rankrls.inspection import explain
    >>> X = [[1.0, 1.0], [2.0, 5.0], [4.0, 1.0]]
    >>> model = RankRLS(alpha=1e-9).fit(X, [1, -1, 7])
    >>> found = explain(model, X, feature_names=["fresh", "long"])
    >>> found.contributions.round(6)
    array([[ 2., -1.],
           [ 4., -5.],
           [ 8., -1.]])
    >>> print(found.pair(0, 1))
    row 0 ranks above row 1 by 2
           contribution  row 0  row 1  weight
    long             +4      1      5      -1
    fresh            -2      1      2       2
    """
    final = fitted_ranker(model)
    weights = linear_weights(final, target, "there are no contributions of features to add up.")
    check_qid_given(final.fitted_with_qid_, qid, "explain")
    names = names_of_features(model, feature_names, len(weights))
    _, Z = final_step_inputs(model, X, qid)
    Z = check_matrix(final, Z, final._accepts)

    steps = [type(step).__name__ for step in unwrapped(model)[0]]
    units = f"after {', then '.join(steps)}" if steps else "as given"
    return Explanation(names, weights, Z, query_layout(qid, Z.shape[0]), qid is not None, final.fitted_with_qid_, units)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Scores of items as sums over features; returned by :func:`explain`.

    Attributes
    ----------
    feature_names : tuple of str
    weights : ndarray of shape (n,)
        Weight of each feature in the model.
    values : ndarray or csr_array of shape (m, n)
        Features after the scalers.
    layout : QueryLayout
        Rows of each query.
    has_qid : bool
    by_query : bool
        Whether scores of different queries cannot be compared.
    units : str
        Units of the values: as given, or after scalers.
    """

    feature_names: tuple[str, ...]
    weights: Array
    values: Any
    layout: QueryLayout
    has_qid: bool
    by_query: bool
    units: str

    @cached_property
    def contributions(self) -> Any:
        """``w_j z_j``, ndarray or sparse array of shape (m, n); the scores are the sums of its rows."""
        return self.values * self.weights

    def pair(self, a: int, b: int | None = None, *, names: Sequence[str] = ()) -> PairExplanation:
        """Explain why row ``a`` is ranked above or below row ``b``, or the mean of its query.

        Parameters
        ----------
        a : int
            Row number.
        b : int, optional
            Row number, of the same query if the model compares only within queries. By default the mean item of the
            query of ``a``.
        names : sequence of str, optional
            Names of the items in tables; by default their row numbers.

        Returns
        -------
        PairExplanation

        Notes
        -----
        O(n), or O(rows of the query x n) for the mean. Adding a constant to a feature within a query has no effect, so
        no baseline is needed.
        """
        first = self._values(a)
        query = self._query(a)
        default = [f"row {a}", "the mean" if b is None else f"row {b}"]
        if b is None:
            rows = self.layout.rows(self.layout.codes[a])
            second = np.ravel(self.values[rows].mean(axis=0, dtype=np.float64))
        else:
            second = self._values(b)
            other = self._query(b)
            if other != query and self.by_query:
                problem = f"Row {a} belongs to query {query}, row {b} to query {other}"
                raise InputError(f"{problem}, whose scores this model cannot compare.", parameter="b", row=b)
            query = query if other == query else None
        # Differences before products: a shared offset cancels before it is rounded.
        parts = self.weights * (first - second)
        order = np.argsort(-np.abs(parts), kind="stable")
        return PairExplanation(
            a=int(a),
            b=None if b is None else int(b),
            names=(*names, *default[len(names) :]),
            query=query,
            feature_names=tuple(self.feature_names[j] for j in order),
            contributions=parts[order],
            values=np.column_stack((first, second))[order],
            weights=self.weights[order],
            units=self.units,
        )

    def _query(self, row: int) -> Any:
        return self.layout.ids[self.layout.codes[[row]]].tolist()[0] if self.has_qid else None

    def _values(self, row: int) -> Array:
        return np.asarray(dense_rows(self.values, [row])[0])


@dataclass(frozen=True, eq=False, repr=False)
class PairExplanation(Shown):
    """Difference of two items' scores as a sum over features, sorted by decreasing magnitude.

    Attributes
    ----------
    a : int
        Row number.
    b : int or None
        Row number; None for the mean item of the query.
    names : tuple of two str
        Names of both items in tables.
    query : object
        Their query; None for a model without queries, or rows of different queries.
    feature_names : tuple of str
        Names, sorted by decreasing magnitude of the contribution.
    contributions : ndarray of shape (n,)
        Contribution of each feature to the score of a minus the score of b.
    values : ndarray of shape (n, 2)
        Values of the feature in a and in b, after the scalers.
    weights : ndarray of shape (n,)
    units : str
        Units of the values: as given, or after scalers.
    """

    a: int
    b: int | None
    names: Sequence[str]
    query: Any
    feature_names: tuple[str, ...]
    contributions: Array
    values: Array
    weights: Array
    units: str

    @property
    def difference(self) -> float:
        """Score of a minus the score of b."""
        return float(self.contributions.sum())

    def rows(self, top: int | None = None) -> list[tuple[str, float, float, float, float]]:
        """(feature, contribution, value in a, value in b, weight) of the ``top`` largest contributions.

        Features without a contribution are left out. If ``top`` leaves out others, a last row contains their sum, with
        NaN for values.
        """
        used = int(np.count_nonzero(self.contributions))
        kept = used if top is None else min(top, used)
        numbers = np.column_stack((self.contributions, self.values, self.weights))[:kept]
        out = [(name, *row) for name, row in zip(self.feature_names, numbers.tolist(), strict=False)]
        if kept < used:
            out.append((f"{used - kept} others", float(self.contributions[kept:].sum()), np.nan, np.nan, np.nan))
        return out

    def as_dict(self, *, top: int | None = None) -> Values:
        """Plain values for JSON, with the ``top`` largest contributions."""
        keys = ("feature", "contribution", "a", "b", "weight")
        parts = [dict(zip(keys, row, strict=True)) for row in self.rows(top)]
        about = {"a": self.a, "b": self.b, "query": self.query, "difference": self.difference, "units": self.units}
        return {**about, "contributions": parts}

    def table(self, top: int | None = 10) -> str:
        """The ``top`` largest contributions as text; None for all."""
        cells = []
        for name, contribution, *others in self.rows(top):
            cells.append([name, f"{contribution:+.4g}", *("" if np.isnan(x) else f"{x:.4g}" for x in others)])
        units = "" if self.units == "as given" else f" (features {self.units})"
        return f"{self.title}{units}\n{table_text(['', 'contribution', *self.names, 'weight'], cells)}"

    @property
    def title(self) -> str:
        """The result as a sentence."""
        one, other = self.names
        where = "" if self.query is None else f" in query {self.query!s}"
        gap = self.difference
        if gap == 0.0:
            return f"{one} and {other}{where} have the same score"
        return f"{one} ranks {'above' if gap > 0 else 'below'} {other}{where} by {abs(gap):.4g}"

    def __str__(self) -> str:
        return self.table()
