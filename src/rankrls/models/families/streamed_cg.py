"""Conjugate gradients on a data set that no memory holds."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Setting
from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.equations.krylov import KrylovRun, MultiShiftCG, Status, largest_eigenvalue
from rankrls.equations.spectrum import auto_alphas
from rankrls.metrics import resolve_measure
from rankrls.models.families.base import KernelRanker, NotConverged
from rankrls.models.families.streamed import LINEAR, take_columns
from rankrls.problems.scorer import Scorer
from rankrls.selection.judging import Curve
from rankrls.selection.progress import reporter
from rankrls.selection.search import Results
from rankrls.selection.surface import Progress
from rankrls.streaming.holdout_sums import ScoreJob
from rankrls.streaming.krylov_sums import right_sides
from rankrls.streaming.parts import check_varied
from rankrls.streaming.stream import Stream, check_streams

__all__ = ["StreamedCG"]

_HELD_OUT = 5
"""One fold of so many is held out if nothing else is said."""


class StreamedCG(KernelRanker):
    """Learns from a data set by conjugate gradients, whose products are passes over it."""

    def fit_dataset(  # type: ignore[override]
        self, data: Any, *, validation: Any = None, executor: Any = None, memory: Any = None, checkpoint: Any = None
    ) -> Self:
        """Learn from a data set that no memory holds: one pass over it an iteration.

        Parameters
        ----------
        data, executor, memory, checkpoint : as in :meth:`rankrls.RankRLS.fit_dataset`
        validation : Dataset, optional
            Another data set to choose by. Without it a fifth of the queries, told by a hash of their names, is held out
            of a first run, and a second run is on all of them.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For a ``selection`` other than "tikhonov": the others look at all held-out scores after each iteration.

        Notes
        -----
        All alphas share the passes. An automatic grid takes ten passes more. Memory for a few vectors of the features
        for each alpha; nothing is squared.
        """
        alphas = self._checked_alphas()
        needed = {"selection": "tikhonov", "kernel": "linear", "cv": None}
        wrong = next((name for name, value in needed.items() if getattr(self, name) != value), None)
        if wrong is not None:
            raise InputError(
                f"{{0}}.fit_dataset reads where the runs of a linear function end; {{{wrong}}} {{1!r}} needs all rows.",
                *(type(self).__name__, getattr(self, wrong)),
                remedy="Take {selection='tikhonov'}, {kernel='linear'} and {cv=None}.",
                parameter=wrong,
            )
        measure = resolve_measure(self.scoring)
        check_streams(measure)
        setting = Setting(self.ties, self.balance, float(self.regression_weight))
        of_rows = lambda rows: rows * (16.0 * data.n_features + 200.0) if data.n_features < 4096 else 1e3 * rows
        given: dict[str, Any] = {"executor": executor, "memory": memory, "leaf_bytes": of_rows}
        stream = Stream(data, **given, checkpoint=checkpoint)
        report = reporter(self.verbose, type(self).__name__)
        several = alphas is None or len(alphas) > 1
        cg = MultiShiftCG(float(self.tol), int(self.max_iter))
        system, found, right = right_sides(stream, setting)
        check_varied(found, [setting])
        with one_thread():
            if alphas is None:
                alphas = np.ascontiguousarray(auto_alphas(np.array([largest_eigenvalue(system, right)]))[::-1])
            curve, description = None, "nothing held out"
            if several and validation is None:
                part, held, right_of_part = right_sides(stream, setting, _HELD_OUT)
                run = _solved(cg, part, right_of_part, alphas, report)
                description = f"{found.queries - held.queries} of {found.queries} queries held out"
                curve = _curve(stream, measure, Scorer(run.solutions()), held_out=True)
            run = _solved(cg, system, right, alphas, report)
            if several and validation is not None:
                description = f"validation data with {in_words(validation.n_queries)}"
                curve = _curve(Stream(validation, **given), measure, Scorer(run.solutions()), held_out=False)
        take_columns(self, data)
        self._begin(found)  # type: ignore[arg-type]
        k = 0
        if curve is not None:
            order = np.argsort(-alphas, kind="stable")
            results = Results(measure.greater_is_better, self.rule)
            ordered = Curve(curve.mean[order], curve.error[order], scale=curve.size[order])
            results.add({}, alphas[order], ordered)
            k = int(order[results.best_index])
        self._publish_streamed(run, alphas, k, curve, description)
        self._take(Scorer(run.solution(k)[:, None]), LINEAR)
        with one_thread():
            status = cg.verify(run, k)
        if status is not Status.CONVERGED:
            problem = "{CGRankRLS}: alpha={0:g} ended with {1!r} after {2} iterations; raise {max_iter} or {tol}."
            warnings.warn(NotConverged(problem, alphas[k], str(status), self.n_iter_), stacklevel=2)
        return self

    def _publish_streamed(
        self, run: KrylovRun, alphas: NDArray[np.float64], k: int, curve: Curve | None, description: str
    ) -> None:
        nothing = np.full(len(alphas), np.nan)
        scores, errors = (nothing, nothing) if curve is None else (curve.mean, curve.error)
        self.alphas_, self.alpha_, self.n_iter_ = alphas, float(alphas[k]), int(run.iterations[k])
        self.validation_surface_ = np.empty((len(alphas), 0))
        self.status_, self.iterations_ = [str(word) for word in run.status], run.iterations
        self.best_score_, self.best_score_error_ = float(scores[k]), float(errors[k])
        self.best_params_ = {"alpha": self.alpha_, "n_iter": self.n_iter_}
        self.cv_results_ = {
            "alpha": alphas,
            "mean_score": scores,
            "standard_error": errors,
            "n_iter": run.iterations,
        }
        self.alpha_at_edge_ = bool(len(alphas) > 2 and self.alpha_ in (alphas.min(), alphas.max()))
        self.selection_ = description
        self.held_out_scores_ = None
        self.interrupted_ = False


def _curve(stream: Stream, measure: Any, scorer: Scorer, *, held_out: bool) -> Curve:
    """The measure of each value, by all queries or by those of the first fold."""
    others = [None] * (_HELD_OUT - 1) if held_out else []
    job = ScoreJob(measure, ((scorer, *others),))
    sums = stream.run(job, "judged").judged[0]
    out: Curve = sums.curve()
    return out


def _solved(cg: MultiShiftCG, system: Any, right: NDArray[np.float64], alphas: Any, report: Any) -> KrylovRun:
    run = cg.init(system, right, alphas)
    while not run.done:
        cg.step(run)
        if report is not None:
            running, residual = int(run.running.sum()), float(run.residuals.max())
            report(Progress(run.iteration, cg.max_iter, running, float(alphas.min()), run.iteration, np.nan, residual))
    return run
