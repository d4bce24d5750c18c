"""Products ``X'L(Xp)`` over a data set: what conjugate gradients need, one pass an iteration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rankrls._comparisons import LabelledItems, Setting
from rankrls.features.feature_rows import feature_rows
from rankrls.metrics import RankingMeasure
from rankrls.problems.scorer import Scorer
from rankrls.streaming.cut_queries import Levels, classes_of
from rankrls.streaming.holdout_sums import ScoreJob
from rankrls.streaming.parts import counts, fold_of, labelled, query_names, row_folds
from rankrls.streaming.sums import Adding, Counted, CutQueries
from rankrls.streaming.tree import Together

if TYPE_CHECKING:
    from rankrls.equations.krylov import KrylovRun
    from rankrls.io.datasets import Part
    from rankrls.streaming.stream import Stream

_Array = NDArray[np.float64]


@dataclass(frozen=True)
class RightSides(Counted):
    """What is known before the first iteration.

    Attributes
    ----------
    rows, queries, varied : int
        As in :class:`rankrls.streaming.EquationSums`.
    right : ndarray of shape (n,)
        ``X'Ly`` over whole queries; of cut ones without the factor that the squared weights have a part in.
    cut : CutQueries
        Of each query that is cut the sums of the weighted rows of each class, and of the squared weights.
    """

    right: _Array
    cut: CutQueries = field(default_factory=CutQueries)


@dataclass(frozen=True)
class _Job(Adding):
    setting: Setting
    folds: int = 1

    @property
    def names(self) -> bool:
        """Folds are told by the names of queries."""
        return self.folds > 1

    def kept(self, part: Part) -> LabelledItems:
        """The part's rows, without those of the first of several folds."""
        data = labelled(part)
        return data if self.folds == 1 else data.take(np.flatnonzero(row_folds(part, data, self.folds)))


@dataclass(frozen=True)
class RightSideJob(_Job):
    """The means of the queries that are cut, and ``X'Ly`` over the others."""

    def leaf(self, part: Part) -> RightSides:
        """Those of a part."""
        data, piece = self.kept(part), part.piece
        if piece is None:
            (comparison,) = data.graphs(self.setting)
            right = comparison.graph.laplacian_product(data.X).right_side(comparison.target[:, 0])
            return RightSides(*counts(part, data), right)
        nothing = np.zeros(part.X.shape[1])
        if self.folds > 1 and fold_of(query_names(part)[0], self.folds) == 0:
            return RightSides(0, 0, 0, nothing)
        classes, labels, *_ = classes_of(piece, data.Y[:, 0], self.setting)
        w = data.row_weights
        averaging = sparse.csr_array((w, (classes, np.arange(len(w)))), shape=(len(labels), len(w)))
        sums = averaging @ data.X
        sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums, dtype=np.float64)
        cut = CutQueries((int(piece.query),), ((sums, float(w @ w)),))
        return RightSides(*counts(part, data), nothing, cut)


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
        p, piece, data = self.p, part.piece, self.kept(part)
        nothing = np.zeros(part.X.shape[1])
        if piece is None:
            (comparison,) = data.graphs(self.setting)
            return nothing if p is None else comparison.graph.laplacian_product(data.X) @ p
        if not data.n_rows:
            return nothing
        sums, squares = self.cut[int(piece.query)]
        classes, labels, _, S = classes_of(piece, data.Y[:, 0], self.setting)
        means = np.divide(sums, S[:, None], out=np.zeros_like(sums), where=S[:, None] > 0.0)
        source, every = feature_rows(data.X, centred=False), np.arange(data.n_rows, dtype=np.intp)
        middle = labels if p is None else means @ p
        z = data.Y[:, 0] if p is None else source.dot(every, p)
        zq = float(S @ middle / S.sum())
        levels, beta = Levels(self.setting, S), float(self.setting.regression_weight)
        e1, e2 = levels.within(squares), levels.between(squares)
        v = e1[classes] * (z - middle[classes]) + e2 * (middle[classes] - zq) + beta * zq
        return np.asarray(source.combine(every, data.row_weights * v))


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
            jobs.append(ScoreJob(self.measure, ((scorer,),), self.folds))
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
    cut = dict(found.cut)
    job = ProductJob(setting, folds, None, cut)
    right = found.right + stream.run(job, "right-side-of-pieces") if cut else found.right
    return StreamedSystem(stream, job, len(right)), found, right
