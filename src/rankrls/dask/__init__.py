"""Learning from Dask data frames and arrays: the extra ``rankrls[dask]``.

The estimators have the parameters and attributes of those in :mod:`rankrls`. Sums are merged on the workers in one
fixed tree; nothing is scattered or pinned, so that a worker that is lost costs its tasks and changes no bit.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Self

import numpy as np

from rankrls._extras import needed
from rankrls.models import cg_rankrls, rankrls, sparse_rankrls
from rankrls.models.inputs.parameters import choice, estimator, parameter

needed("rankrls.dask", "dask", "dask", "distributed")

from dask import array  # noqa: E402

from rankrls.dask._cluster import executor_of  # noqa: E402
from rankrls.dask._collections import check_chunks, collected  # noqa: E402
from rankrls.dask._parts import scores  # noqa: E402

__all__ = ["CGRankRLS", "RankRLS", "RankRLSCV", "SparseRankRLS", "SparseRankRLSCV", "executor_of"]


@estimator
class _OnDask:
    """Learns from Dask collections."""

    straddling: str = parameter(default="join", check=choice("join", "shuffle"))

    def fit(self, X: Any, y: Any, *, qid: Any, sample_weight: Any = None, checkpoint: Any = None) -> Self:
        """Learn from a Dask data frame or array.

        Parameters
        ----------
        X : dask data frame, or dask array in chunks of rows
            Features; the chunks of an array may be sparse (scipy, CSR). A data frame may hold the labels and query ids
            too.
        y, qid, sample_weight : dask series or array in the partitions of X; or the name of a column of X
            Labels, query ids and weights.
        checkpoint : path, optional
            A folder of this process for finished sums: of each pass up to sixteen come back to it as they are ready,
            and a fit that is given the folder again goes on from there. The collection must have the same name in Dask
            as then, which what is read from files has as long as these do not change.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For what is no Dask collection; for workers without rankrls, or with another version; for partitions that
            differ; for rows that are not grouped by query, with ``straddling="join"``; and as ``fit_dataset`` of the
            estimator of the same name.
        """
        data = collected(X, y, qid, sample_weight, self.straddling)
        return self.fit_dataset(data, checkpoint=checkpoint)  # type: ignore[attr-defined]

    def predict(self, X: Any) -> Any:
        """Scores, lazily of a Dask collection: a series or an array in the partitions of X."""
        if not hasattr(X, "__dask_graph__"):
            return super().predict(X)  # type: ignore[misc]
        local = self.to_local()
        if isinstance(X, array.Array):
            check_chunks(X)
            blocks: Any = X
            return blocks.map_blocks(scores, local, dtype=np.float64, drop_axis=1, meta=np.zeros(0))
        names = getattr(self, "feature_names_in_", None)
        X = X if names is None else X[list(names)]
        return X.map_partitions(scores, local, meta=("score", np.float64))

    def to_local(self) -> Any:
        """The ordinary estimator, which is saved, exported and explained as ever."""
        cls = next(base for base in type(self).__mro__ if base.__module__ == "rankrls")
        known = {f.name for f in fields(cls)}
        out = cls(**{name: value for name, value in self.get_params().items() if name in known})  # type: ignore[attr-defined]
        out.__dict__.update({name: value for name, value in vars(self).items() if name != "straddling"})
        return out


@estimator
class RankRLS(_OnDask, rankrls.RankRLS):  # type: ignore[misc]
    """:class:`rankrls.RankRLS` of Dask collections, linear.

    Parameters
    ----------
    straddling : {"join", "shuffle"}, default="join"
        What becomes of queries in several partitions. "join": their rows are brought together, and of a query that is
        longer than a partition only sums travel; the rows of most queries have to lie in one partition. "shuffle":
        every row travels to the partition of its query; data frames only.
    others : as in :class:`rankrls.RankRLS`
    """


@estimator
class RankRLSCV(_OnDask, rankrls.RankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.RankRLSCV` of Dask collections, linear: two passes, exact leave-query-out of every alpha.

    Parameters
    ----------
    straddling : as in :class:`rankrls.dask.RankRLS`
    others : as in :class:`rankrls.RankRLSCV`; ``cv`` None or an int

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
    >>> model.selection_, model.predict(X), type(model.to_local())
    ('leave-query-out over 60 queries', dask.array<scores, ...>, <class 'rankrls.RankRLSCV'>)
    """


@estimator
class CGRankRLS(_OnDask, cg_rankrls.CGRankRLS):  # type: ignore[misc]
    """:class:`rankrls.CGRankRLS` of Dask collections: one pass an iteration.

    The data are read in each iteration: persist them if the workers' memory holds them.

    Parameters
    ----------
    straddling : as in :class:`rankrls.dask.RankRLS`
    others : as in :class:`rankrls.CGRankRLS`
    """


@estimator
class SparseRankRLS(_OnDask, sparse_rankrls.SparseRankRLS):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLS` of Dask collections, over a random basis.

    Parameters
    ----------
    straddling : as in :class:`rankrls.dask.RankRLS`
    others : as in :class:`rankrls.SparseRankRLS`
    """


@estimator
class SparseRankRLSCV(_OnDask, sparse_rankrls.SparseRankRLSCV):  # type: ignore[misc]
    """:class:`rankrls.SparseRankRLSCV` of Dask collections, over a random basis.

    Parameters
    ----------
    straddling : as in :class:`rankrls.dask.RankRLS`
    others : as in :class:`rankrls.SparseRankRLSCV`
    """
