"""Products ``X'L(Xp)`` over a data set: what conjugate gradients need, one pass an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems, Setting
from rankrls.features.feature_rows import feature_rows
from rankrls.graph.scored import label_varies
from rankrls.metrics import RankingMeasure
from rankrls.problems.scorer import Scorer
from rankrls.streaming.cut_queries import Levels
from rankrls.streaming.equation_sums import fold_of, fold_rows, query_names
from rankrls.streaming.holdout_sums import ScoreJob
from rankrls.streaming.parts import labelled
from rankrls.streaming.tree import Together

if TYPE_CHECKING:
    from rankrls.equations.krylov import KrylovRun
    from rankrls.io.datasets import Part
    from rankrls.streaming.stream import Stream

__all__ = ["Means", "ProductJob", "RightSideJob", "RightSides", "StreamedSystem", "WatchedData", "right_sides"]

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class Means:
    """Sums over neighbouring pieces of one query: of the weighted rows of each class, and of the squared weights."""

    query: int
    sums: _Array
    squares: float


@dataclass(frozen=True)
class RightSides:
    """What is known before the first iteration.

    Attributes
    ----------
    right : ndarray of shape (n,)
        ``X'Ly`` over whole queries; of cut ones without the factor that the squared weights have a part in.
    rows, queries, varied : int
        As in :class:`rankrls.streaming.EquationSums`.
    cut : tuple of Means
    """

    right: _Array
    rows: int
    queries: int
    varied: int
    cut: tuple[Means, ...] = ()

    has_qid = True
    one_target = True

    @property
    def n_queries(self) -> int:
        """Queries with a row of positive weight."""
        return self.queries

    def __add__(self, other: RightSides) -> RightSides:
        cut, rest = list(self.cut), list(other.cut)
        if cut and rest and cut[-1].query == rest[0].query:
            more = rest.pop(0)
            cut[-1] = Means(more.query, cut[-1].sums + more.sums, cut[-1].squares + more.squares)
        counts = (self.rows + other.rows, self.queries + other.queries, self.varied + other.varied)
        return RightSides(self.right + other.right, *counts, (*cut, *rest))


@dataclass(frozen=True)
class _Job:
    setting: Setting
    folds: int = 1

    @property
    def names(self) -> bool:
        """Folds are told by the names of queries."""
        return self.folds > 1

    def kept(self, part: Part) -> LabelledItems | None:
        """The part's rows, without those of the first of several folds; None if there are none."""
        data = labelled(part)
        if self.folds > 1 and data.n_rows:
            if part.piece is not None:
                return None if self.leaves_out(part) else data
            kept = [rows for rows in fold_rows(part, data, self.folds)[1:] if rows is not None]
            data = data.take(np.sort(np.concatenate(kept)))
        return data if data.n_rows else None

    def leaves_out(self, part: Part) -> bool:
        """Whether a piece is of a query in the first of several folds."""
        return self.folds > 1 and fold_of(query_names(part)[0], self.folds) == 0

    def merge(self, a: Any, b: Any) -> Any:
        """The sums of two neighbouring nodes."""
        return a + b


@dataclass(frozen=True)
class RightSideJob(_Job):
    """The means of the queries that are cut, and ``X'Ly`` over the others."""

    def leaf(self, part: Part) -> RightSides:
        """Those of a part."""
        data, n = self.kept(part), int(part.X.shape[1])
        piece, queries, varied = part.piece, 0, 0
        if piece is not None and piece.index == 0 and not self.leaves_out(part):
            queries, varied = int(np.any(piece.weights)), int(np.count_nonzero(piece.weights) > 1)
        if data is None:
            return RightSides(np.zeros(n), 0, queries, varied)
        if piece is None:
            (comparison,) = data.graphs(self.setting)
            right = comparison.graph.laplacian_product(data.X).right_side(comparison.target[:, 0])
            return RightSides(right, data.n_rows, data.n_queries, int(label_varies(data.Y, data.layout).sum()))
        w = data.row_weights
        classes = _classes(part, data, self.setting)
        count = len(piece.labels) if self.setting.ties == "exclude" else 1
        averaging = sparse.csr_array((w, (classes, np.arange(len(w)))), shape=(count, len(w)))
        sums = averaging @ data.X
        sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums, dtype=np.float64)
        means = Means(int(piece.query), sums, float(w @ w))
        return RightSides(np.zeros(n), data.n_rows, queries, varied, (means,))


@dataclass(frozen=True)
class ProductJob(_Job):
    """``X'L(Xp)``, or of the queries that are cut ``X'Ly``.

    Attributes
    ----------
    p : ndarray of shape (n,) or None
        None for the labels.
    cut : dict
        Of each query that is cut: the weighted sums of its classes, (classes, n), and of its squared weights.
    """

    p: _Array | None = None
    cut: Any = None

    def leaf(self, part: Part) -> _Array:
        """That of a part."""
        data, n = self.kept(part), int(part.X.shape[1])
        p = self.p
        if data is None or (p is None and part.piece is None):
            return np.zeros(n)
        if part.piece is None:
            assert p is not None
            (comparison,) = data.graphs(self.setting)
            product: _Array = comparison.graph.laplacian_product(data.X) @ p
            return product
        sums, squares = self.cut[int(part.piece.query)]
        S = np.asarray(part.piece.weights, dtype=np.float64)
        labels = np.asarray(part.piece.labels, dtype=np.float64)
        excluded, classes = self.setting.ties == "exclude", _classes(part, data, self.setting)
        if not excluded:
            labels, S = np.array([S @ labels / S.sum()]), np.array([S.sum()])
        means = np.divide(sums, S[:, None], out=np.zeros_like(sums), where=S[:, None] > 0.0)
        source, every = feature_rows(data.X, centred=False), np.arange(data.n_rows, dtype=np.intp)
        middle = labels if p is None else means @ p
        z = data.Y[:, 0] if p is None else source.dot(every, p)
        zq = float(S @ middle / S.sum())
        levels, beta = Levels.of(part.piece, self.setting), float(self.setting.regression_weight)
        e2 = beta + (1.0 - beta) * levels.rho(levels.own if excluded else squares) * levels.weight
        e1 = np.full(1, e2) if levels.classes is None else levels.classes
        v = e1[classes] * (z - middle[classes]) + e2 * (middle[classes] - zq) + beta * zq
        return np.asarray(source.combine(every, data.row_weights * v))


def _classes(part: Part, data: LabelledItems, setting: Setting) -> NDArray[np.intp]:
    """The class of each row of a piece among those of the whole query; one class if tied pairs are included."""
    assert part.piece is not None
    if setting.ties == "include":
        return np.zeros(data.n_rows, dtype=np.intp)
    return np.searchsorted(np.asarray(part.piece.labels), data.Y[:, 0]).astype(np.intp)


class StreamedSystem:
    """``A = X'LX`` over a data set; each product is a pass."""

    n_watched = 0

    def __init__(self, stream: Stream, job: ProductJob, size: int) -> None:
        self.stream, self.job, self.size = stream, job, size
        self._ready: tuple[_Array, _Array] | None = None

    def product(self, p: _Array) -> ProductJob:
        """The job whose answer is ``A p``."""
        return replace(self.job, p=p)

    def expect(self, p: _Array, product: _Array) -> None:
        """Keep a product that another pass has brought along, until it is asked for."""
        self._ready = p.copy(), product

    def apply(self, p: _Array) -> tuple[_Array, None]:
        """``A p``."""
        ready, self._ready = self._ready, None
        if ready is not None and np.array_equal(ready[0], p):
            return ready[1], None
        return self.stream.run(self.product(p), "product"), None


class WatchedData:
    """What a run's iterates are worth on held-out queries, as :class:`rankrls.selection.surface.Surface` looks at them.

    Parameters
    ----------
    run : KrylovRun
        Whose iterates are judged.
    measure : RankingMeasure
    stream : Stream
        The data to judge by.
    folds : int
        1 to judge all queries; otherwise those of the first of so many folds are judged, and the same pass brings the
        products that the next iteration of ``ahead`` needs.
    ahead : sequence of KrylovRun
        Runs on the same stream.
    """

    values = None
    late = False

    def __init__(
        self, run: KrylovRun, measure: RankingMeasure, stream: Stream, *, folds: int = 1, ahead: Sequence[Any] = ()
    ) -> None:
        self.runs, self.measure, self.stream, self.folds, self.ahead = [run], measure, stream, folds, ahead
        self.mean, self.error, self.size = np.full((3, len(run.alphas)), np.nan)
        self._looked = False

    def look(self, moved: NDArray[np.bool_]) -> None:
        """Judge anew the alphas that have moved."""
        which = np.flatnonzero(moved | (not self._looked))
        running = [run for run in self.ahead if not run.done]
        jobs: list[Any] = [run.system.product(run.p) for run in running]
        if len(which):
            scorer = Scorer(np.ascontiguousarray(self.runs[0].solutions()[:, which]))
            jobs.append(ScoreJob(self.measure, ((scorer, *[None] * (self.folds - 1)),)))
        if not jobs:
            return
        answers = self.stream.run(Together(tuple(jobs)), "iteration")
        for run, product in zip(running, answers, strict=False):
            run.system.expect(run.p, product)
        if len(which):
            curve = answers[-1].judged[0].curve()
            self.mean[which], self.error[which], self.size[which] = curve.mean, curve.error, curve.size
            self._looked = True


def right_sides(stream: Stream, setting: Setting, folds: int = 1) -> tuple[StreamedSystem, RightSides, _Array]:
    """A system, what was found on the way, and its right side: one pass, or two if queries are cut."""
    found: RightSides = stream.run(RightSideJob(setting, folds), "right-side")
    cut = {query.query: (query.sums, query.squares) for query in found.cut}
    job = ProductJob(setting, folds, None, cut)
    right = found.right + stream.run(job, "right-side-of-pieces") if cut else found.right
    return StreamedSystem(stream, job, len(right)), found, right
