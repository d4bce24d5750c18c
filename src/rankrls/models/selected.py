"""The features that a model selected, as a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls._shown import Shown, table_text
from rankrls.metrics import resolve_measure
from rankrls.models._pipelines import fitted_ranker, names_of_features


@dataclass(frozen=True, eq=False, repr=False)
class SelectedFeatures(Shown):
    """Features in the order in which they were selected; made by :func:`selected_features`, prints as a table.

    Attributes
    ----------
    feature : ndarray of shape (k,), intp
        Columns of X.
    name : ndarray of shape (k,)
    weight : ndarray of shape (k,)
        In the fitted model.
    held_out : ndarray of shape (k,)
        The held-out measure of the model with this feature and those before it; NaN if nothing was held out.
    gain : ndarray of shape (k,)
        By how much this feature made it better; NaN if it is not known without any feature.
    measure : str
        What ``held_out`` is.
    """

    feature: NDArray[np.intp]
    name: NDArray[Any]
    weight: NDArray[np.float64]
    held_out: NDArray[np.float64]
    gain: NDArray[np.float64]
    measure: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """The table by rows, such as ``pandas.DataFrame`` takes; None for NaN."""
        names = ("feature", "name", "weight", "held_out", "gain")
        values = zip(*(getattr(self, name).tolist() for name in names), strict=True)
        return [
            {name: None if value != value else value for name, value in zip(names, row, strict=True)} for row in values
        ]

    @property
    def head(self) -> list[str]:
        """The names of the columns of :attr:`rows`."""
        return ["", "feature", "weight", self.measure, "gain"]

    @property
    def rows(self) -> list[list[str]]:
        """The table as text, row by row."""
        shown = lambda value, form: "" if np.isnan(value) else f"{value:{form}}"
        columns = zip(self.name, self.weight, self.held_out, self.gain, strict=True)
        return [
            [f"{k}", f"{name}", f"{weight:+.4g}", shown(held_out, ".4f"), shown(gain, "+.4f")]
            for k, (name, weight, held_out, gain) in enumerate(columns, 1)
        ]

    def __str__(self) -> str:
        return table_text(self.head, self.rows, left=2)


def selects_features(final: Any) -> bool:
    """Whether a fitted ranker selected features one by one."""
    path = getattr(final, "path_", None)
    of_features = hasattr(final, "selected_") or getattr(final, "dictionary", None) == "features"
    return path is not None and of_features and path.indices.ndim == 1


def selected_features(model: Any, *, feature_names: Sequence[str] | None = None) -> SelectedFeatures:
    """The features that a model selected, with their weights and what each did for the held-out measure.

    Parameters
    ----------
    model : GreedyRankRLS, RankingPursuit or RankingPursuitCV with ``dictionary="features"``
        Fitted; or a pipeline that ends in one.
    feature_names : sequence of str, optional
        Names of X's columns; by default those of the fit.

    Returns
    -------
    SelectedFeatures
        Of GreedyRankRLS the held-out measure is the squared error that is left, as a share of that without features:
        the error by which it selects. Of RankingPursuitCV it is that by which the number of features was chosen, each
        fold with a selection of its own.

    Examples
    --------
    >>> import numpy as np
    >>> from rankrls import GreedyRankRLS
    >>> from rankrls.inspection import selected_features
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(300, 40)), np.repeat(np.arange(30), 10)
    >>> y = X[:, 3] - 2 * X[:, 11] + 0.5 * X[:, 30] + rng.normal(size=300)
    >>> model = GreedyRankRLS(rule="one_se").fit(X, y, qid=qid)
    >>> selected_features(model)
       feature   weight  held-out error     gain
    1  x11       -1.977          0.3710  +0.6290
    2  x3       +0.9531          0.2065  +0.1644
    3  x30      +0.5056          0.1554  +0.0512
    """
    final: Any = fitted_ranker(model)
    if not selects_features(final):
        raise InputError(f"This {type(final).__name__} does not select features.", parameter="model")
    path = final.path_
    feature, stage = np.unique(path.indices, return_index=True)
    order = np.argsort(stage)
    feature, stage = feature[order], stage[order]
    held_out, measure, sign = np.full(path.n_stages + 1, np.nan), "held out", -1.0
    if hasattr(path, "held_out"):
        held_out, measure = path.held_out / path.held_out[0], "held-out error"
    elif hasattr(final, "cv_results_"):
        chosen = {name: value for name, value in final.best_params_.items() if name != "n_basis"}
        same = [all(of[name] == chosen[name] for name in chosen) for of in _rows(final.cv_results_)]
        held_out[1:] = final.cv_results_["mean_score"][same][: path.n_stages]
        found = resolve_measure(final.scoring)
        measure, sign = f"held-out {found.name}", 1.0 if found.greater_is_better else -1.0
    names = names_of_features(model, feature_names, final.n_features_in_)
    gain = sign * np.diff(held_out)
    weight = final.coef_[feature]
    return SelectedFeatures(feature, np.array(names)[feature], weight, held_out[stage + 1], gain[stage], measure)


def _rows(columns: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
