"""The items of each query of a data set, best first, a part at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankrls._checks import check_count
from rankrls.io.rankings import trec_ranking
from rankrls.ranking import Ranking, rank_scores
from rankrls.streaming.engine import answers
from rankrls.streaming.holdout_sums import predicted
from rankrls.streaming.parts import query_names
from rankrls.streaming.scoring import stream_of, unnamed

if TYPE_CHECKING:
    from rankrls.io.datasets import Part


@dataclass(frozen=True, eq=False, repr=False)
class NamedRanking(Ranking):
    """The best items of some queries; ``rows`` are running numbers over the data set, ``qid`` the queries' names.

    Attributes
    ----------
    ids : ndarray or None
        The items' ids, if the data set has some.
    """

    ids: NDArray[Any] | None = None


@dataclass(frozen=True)
class RankJob:
    """The best items of the queries of a part, or of a piece of one query.

    Attributes
    ----------
    model : estimator
    k : int or None
    as_trec : bool
        Whether scores are told apart in single precision, and equal ones by the items' ids, as trec_eval does.
    """

    model: Any
    k: int | None = None
    as_trec: bool = False

    names = True

    def leaf(self, part: Part) -> tuple[NamedRanking, int]:
        """Those of a part, and how many pieces of its last query are still to come."""
        piece = part.piece
        return self._best_of(part), 0 if piece is None else piece.n_pieces - 1 - piece.index

    def _best_of(self, part: Part) -> NamedRanking:
        scores, ids = predicted(self.model, part), part.ids
        query = np.asarray(part.query)
        rows = part.first_row + np.arange(len(query))
        if not len(query):
            return NamedRanking(rows, rows, scores, np.zeros(0, dtype=object), ids)
        called = np.empty(int(query[-1] - query[0]) + 1, dtype=object)
        called[:] = query_names(part)
        return self.best(rows, scores, called[query - query[0]], ids)

    def best(self, rows: Any, scores: Any, qid: Any, ids: Any) -> NamedRanking:
        """The best of some rows, query by query in their order."""
        number = np.concatenate(([0], np.cumsum(qid[1:] != qid[:-1])))
        if self.as_trec:
            found = trec_ranking(scores, number, [str(row) for row in rows] if ids is None else ids, self.k)
        else:
            found = rank_scores(scores, qid=number, k=self.k)
        at = found.rows
        return NamedRanking(rows[at], found.positions, scores[at], qid[at], None if ids is None else ids[at])

    def together(self, pieces: Sequence[NamedRanking]) -> NamedRanking:
        """The best of one query, of which each piece has given its own."""
        rows, scores, qid = (np.concatenate([getattr(p, name) for p in pieces]) for name in ("rows", "scores", "qid"))
        order = np.argsort(rows)
        ids = None if pieces[0].ids is None else np.concatenate([p.ids for p in pieces])[order]
        return self.best(rows[order], scores[order], qid[order], ids)


def rank(
    model: Any, data: Any, *, k: int | None = None, executor: Any = None, memory: Any = None
) -> Iterator[NamedRanking]:
    """The items of each query of a data set, best first.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Of one target.
    data : Dataset
        Its features are those that the model has learned from, in their order; labels are not looked at.
    k : int, optional
        How many items of each query to keep. All by default.
    executor, memory : as in :meth:`rankrls.RankRLS.fit_dataset`

    Yields
    ------
    Ranking
        Of the whole queries of a part, or of one query that is longer than a part, in the order of the data. ``rows``
        are running numbers over the data set, ``qid`` the names of the queries as text, and ``ids`` the items' ids, if
        there are some.

    Raises
    ------
    InputError
        As :func:`predict`.

    Notes
    -----
    O(rows) for the scores and O(m log m) for each query. Of a query that is longer than a part each piece gives its
    best k, which are held together: all of its scores if there is no k.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, pyarrow.parquet as pq, tempfile, os
    >>> from rankrls import RankRLS
    >>> from rankrls.io import open_dataset
    >>> from rankrls.streaming import rank
    >>> X = np.array([[0.0], [1.0], [2.0], [0.0], [3.0]])
    >>> model = RankRLS().fit(X, [0, 1, 2, 0, 1], qid=[1, 1, 1, 2, 2])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "rows.parquet")
    ...     pq.write_table(pa.table({"qid": [1, 1, 1, 2, 2], "label": [0.0, 1, 2, 0, 1], "x": X[:, 0]}), path)
    ...     best = [(r.qid.tolist(), r.rows.tolist()) for r in rank(model, open_dataset(path), k=1)]
    >>> best
    [(['1', '2'], [2, 4])]
    """
    if k is not None:
        check_count("k", k, none="all")
    return ranked(model, data, RankJob(unnamed(model), k), executor=executor, memory=memory)


def ranked(model: Any, data: Any, job: RankJob, *, executor: Any = None, memory: Any = None) -> Iterator[NamedRanking]:
    """The rankings of a job, with the pieces of each query together."""
    stream = stream_of([model], data, executor=executor, memory=memory)
    return _joined(job, answers(job, data, executor=executor, workers=stream.workers))


def _joined(job: RankJob, found: Iterator[tuple[int, tuple[NamedRanking, int]]]) -> Iterator[NamedRanking]:
    pieces: list[NamedRanking] = []
    for _, (ranking, to_come) in found:
        pieces.append(ranking)
        if not to_come:
            yield ranking if len(pieces) == 1 else job.together(pieces)
            pieces = []
