"""Estimators for Dask data frames and arrays: the extra ``rankrls[dask]``.

They have the parameters and attributes of those in :mod:`rankrls`. Partitions hold whole queries; data frames in which
they do not are shuffled by query first.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

from rankrls._errors import needed
from rankrls.models import rankrls, sparse_rankrls
from rankrls.models.inputs.parameters import estimator

needed("rankrls.dask", "dask", "dask", "distributed")

from dask import array  # noqa: E402

from rankrls.dask._collections import check_chunks, collected, held  # noqa: E402

__all__ = ["RankRLS", "RankRLSCV", "SparseRankRLS", "SparseRankRLSCV"]


@estimator
class _OnDask:
    """Fits Dask collections."""

    def fit(self, X: Any, y: Any, *, qid: Any, sample_weight: Any = None) -> Self:
        """Fit a Dask data frame or array, larger than memory.

        Parameters
        ----------
        X : dask data frame, or dask array in chunks of rows
            Features; the chunks of an array may be sparse (scipy, CSR). A data frame may hold the labels and query ids
            too.
        y, qid, sample_weight : dask series or array in the partitions of X; or the name of a column of X
            Labels, query ids and weights.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For what is no Dask collection; for workers without rankrls, or with another version; for partitions that
            differ; for arrays with a query in two chunks; and as ``fit_dataset`` of the estimator of the same name.

        Notes
        -----
        The query ids are computed first. Data frames with a query in two partitions are shuffled by query: every row
        travels to the partition of its query, in each pass.
        """
        data = collected(X, y, qid, sample_weight)
        return self.fit_dataset(data, executor=data.executor)  # type: ignore[attr-defined]

    def predict(self, X: Any) -> Any:
        """Scores, lazily of a Dask collection: a series or an array in the partitions of X."""
        if not hasattr(X, "__dask_graph__"):
            return super().predict(X)  # type: ignore[misc]
        local = self.to_local()
        if isinstance(X, array.Array):
            check_chunks(X)
            blocks: Any = X
            return blocks.map_blocks(_scores, local, dtype=np.float64, drop_axis=1, meta=np.zeros(0))
        names = getattr(self, "feature_names_in_", None)
        X = X if names is None else X[list(names)]
        return X.map_partitions(_scores, local, meta=("score", np.float64))

    def to_local(self) -> Any:
        """The ordinary estimator, which is saved, exported and explained as ever."""
        cls = next(base for base in type(self).__mro__ if base.__module__.startswith("rankrls.models."))
        known = {f.name for f in fields(cls)}
        out = cls(**{name: value for name, value in self.get_params().items() if name in known})  # type: ignore[attr-defined]
        out.__dict__.update(vars(self))
        return out


@estimator
class RankRLS(_OnDask, rankrls.RankRLS):  # type: ignore[misc]
    """:class:`rankrls.RankRLS` of Dask collections, linear.

    Parameters
    ----------
    all : as in :class:`rankrls.RankRLS`
    """


@estimator
class RankRLSCV(_OnDask, rankrls.RankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.RankRLSCV` of Dask collections, linear: two passes, exact leave-query-out of every alpha.

    Parameters
    ----------
    all : as in :class:`rankrls.RankRLSCV`; ``cv`` None

    Examples
    --------
    >>> import numpy as np
    >>> from dask import array
    >>> from rankrls.dask import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(600, 4)), np.repeat(np.arange(60), 10)
    >>> y = np.digitize(X @ [2.0, 1.0, 0.0, 0.0] + rng.normal(size=600), [-1.0, 1.0])
    >>> X, y, qid = (array.from_array(a, chunks=(150, *a.shape[1:])) for a in (X, y, qid))
    >>> model = RankRLSCV(scoring="ndcg@5").fit(X, y, qid=qid)
    >>> model.selection_, model.predict(X), model.to_local()
    ('leave-query-out over 60 queries', dask.array<_scores, ...>, RankRLSCV(scoring='ndcg@5'))
    """


@estimator
class SparseRankRLS(_OnDask, sparse_rankrls.SparseRankRLS):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLS` of Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLS`
    """


@estimator
class SparseRankRLSCV(_OnDask, sparse_rankrls.SparseRankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLSCV` of Dask collections, over a random basis.

    Parameters
    ----------
    all : as in :class:`rankrls.SparseRankRLSCV`
    """


def _scores(X: Any, model: Any) -> Any:
    scores = model.scorer_(held(X).astype(np.float64))[:, 0]
    if not hasattr(X, "index"):
        return scores
    import pandas as pd

    return pd.Series(scores, index=X.index, name="score")
