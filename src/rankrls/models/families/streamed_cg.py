"""Conjugate gradients on a data set that no memory holds."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rankrls._comparisons import Setting
from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.equations.krylov import KrylovRun, MultiShiftCG, Status, largest_eigenvalue
from rankrls.equations.spectrum import auto_alphas
from rankrls.metrics import RankingMeasure, resolve_measure
from rankrls.models.families.base import KernelRanker, NotConverged
from rankrls.models.families.selecting import AUTO_VALUES
from rankrls.models.families.streamed import LINEAR, take_columns
from rankrls.problems.scorer import Scorer
from rankrls.selection.judging import Curve
from rankrls.selection.progress import reporter
from rankrls.selection.search import Results
from rankrls.selection.surface import Progress, Reading, Surface
from rankrls.streaming.holdout_sums import ScoreJob
from rankrls.streaming.krylov_sums import RightSides, StreamedSystem, WatchedData, right_sides
from rankrls.streaming.parts import check_varied
from rankrls.streaming.stream import Stream, check_streams

__all__ = ["StreamedCG"]

_HELD_OUT = 5
"""One fold of so many is held out if nothing else is said."""


@dataclass(frozen=True)
class _Given:
    """A data set and what is asked of it.

    Attributes
    ----------
    stream : Stream
    validation : Stream or None
    setting : Setting
    measure : RankingMeasure
    cg : MultiShiftCG
    system, found, right
        Of all queries, as :func:`right_sides` gives them.
    alphas : ndarray
    report : callable or None
    """

    stream: Stream
    validation: Stream | None
    setting: Setting
    measure: RankingMeasure
    cg: MultiShiftCG
    system: StreamedSystem
    found: RightSides
    right: NDArray[np.float64]
    alphas: NDArray[np.float64]
    report: Any

    def start(self) -> KrylovRun:
        """A run on all queries."""
        return self.cg.init(self.system, self.right, self.alphas)

    def start_without(self) -> tuple[KrylovRun, str]:
        """A run without the queries of the first fold, and what is held out, in words."""
        system, kept, right = right_sides(self.stream, self.setting, _HELD_OUT)
        words = f"{self.found.queries - kept.queries} of {self.found.queries} queries held out"
        return self.cg.init(system, right, self.alphas), words

    @property
    def validated(self) -> str:
        """What validation data there are, in words."""
        assert self.validation is not None
        return f"validation data with {in_words(self.validation.data.n_queries)}"


@dataclass(frozen=True)
class _HeldOut:
    """What a model was chosen by, in words."""

    description: str


class StreamedCG(KernelRanker):
    """Learns from a data set by conjugate gradients, whose products are passes over it."""

    def fit_dataset(  # type: ignore[override]
        self, data: Any, *, validation: Any = None, executor: Any = None, memory: Any = None, checkpoint: Any = None
    ) -> Self:
        """Learn from a data set that no memory holds: one pass over it an iteration.

        Parameters
        ----------
        data, executor, memory, checkpoint : as in :meth:`rankrls.RankRLS.fit_dataset`
            In the checkpoint each pass keeps a vector of the features: a fit that was killed reads nothing again that
            had been finished.
        validation : Dataset, optional
            Another data set to choose by. Without it a fifth of the queries is held out, told by a hash of their names.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For ``cv`` and a kernel that need all rows at once.

        Notes
        -----
        All alphas share the passes. An automatic grid takes ten passes more. Memory for a few vectors of the features
        for each alpha; nothing is squared.

        With ``selection="tikhonov"`` the held-out fifth is judged when a first run has ended, and a second run is on
        all queries. With "hybrid" and "early_stopping" every iterate is judged, and one pass an iteration does
        everything: it judges the present iterates by the held-out fifth, and multiplies for the next step of the run
        without that fifth and of the run on all queries. Validation data take a pass of their own each iteration. What
        goes to a worker for each part are then the weights of every alpha that still moves.
        """
        alphas = self._checked_alphas()
        needed = {"kernel": "linear", "cv": None}
        wrong = next((name for name, value in needed.items() if getattr(self, name) != value), None)
        if wrong is not None:
            raise InputError(
                f"{{0}}.fit_dataset learns a linear function by one fold or validation data; {{{wrong}}} {{1!r}} needs "
                "all rows.",
                *(type(self).__name__, getattr(self, wrong)),
                remedy="Take {kernel='linear'} and {cv=None}.",
            )
        measure = resolve_measure(self.scoring)
        check_streams(measure)
        setting = Setting(self.ties, self.balance, float(self.regression_weight))
        values = AUTO_VALUES if alphas is None else len(alphas)
        row = (16.0 * data.n_features if data.n_features < 4096 else 800.0) + 200.0 + 32.0 * values
        how: dict[str, Any] = {"executor": executor, "memory": memory, "leaf_bytes": lambda rows: rows * row}
        cg, report = MultiShiftCG(float(self.tol), int(self.max_iter)), reporter(self.verbose, type(self).__name__)
        stream = Stream(data, **how, passes=0, report=report, checkpoint=checkpoint)
        judged = None if validation is None else Stream(validation, **how)
        system, found, right = right_sides(stream, setting)
        check_varied(found, [setting])
        several = self.selection != "tikhonov" or alphas is None or len(alphas) > 1
        with one_thread():
            if alphas is None:
                alphas = np.ascontiguousarray(auto_alphas(np.array([largest_eigenvalue(system, right)]))[::-1])
            given = _Given(stream, judged, setting, measure, cg, system, found, right, alphas, report)
            take_columns(self, data)
            self._begin(found)  # type: ignore[arg-type]
            if self.selection == "tikhonov":
                self._read_ends(given, several)
            else:
                self._read_iterates(given)
        return self

    def _read_iterates(self, given: _Given) -> None:
        """Choose among all iterates."""
        final = given.start()
        if given.validation is None:
            run, description = given.start_without()
            watched = WatchedData(run, given.measure, given.stream, folds=_HELD_OUT, ahead=(run, final))
        else:
            description = given.validated
            watched = WatchedData(final, given.measure, given.validation)
        surface = Surface(
            cg=given.cg,
            alphas=given.alphas,
            final=[final],
            parts=[watched],  # type: ignore[list-item]
            reading=Reading(True, int(self.patience)),
            greater_is_better=given.measure.greater_is_better,
            report=given.report,
        )
        publish = lambda stopped: self._publish(
            surface, given.found, _HeldOut(description), LINEAR, interrupted=stopped
        )
        try:
            surface.run()
            surface.choose_by(self.rule, lambda: [given.start()])
        except KeyboardInterrupt:
            if surface.best[0] >= 0:
                publish(True)
            raise
        publish(False)
        self._warn(surface, given.cg)

    def _read_ends(self, given: _Given, several: bool) -> None:
        """Choose among the solutions of the alphas, where their runs have ended."""
        curve, description, alphas = None, "nothing held out", given.alphas
        if several and given.validation is None:
            part, description = given.start_without()
            _to_the_end(given, part)
            curve = _curve(given.stream, given.measure, Scorer(part.solutions()), held_out=True)
        run = _to_the_end(given, given.start())
        if several and given.validation is not None:
            description = given.validated
            curve = _curve(given.validation, given.measure, Scorer(run.solutions()), held_out=False)
        k = 0
        if curve is not None:
            order = np.argsort(-alphas, kind="stable")
            results = Results(given.measure.greater_is_better, self.rule)
            ordered = Curve(curve.mean[order], curve.error[order], scale=curve.size[order])
            results.add({}, alphas[order], ordered)
            k = int(order[results.best_index])
        self._publish_streamed(run, alphas, k, curve, description)
        self._take(Scorer(run.solution(k)[:, None]), LINEAR)
        status = given.cg.verify(run, k)
        if status is not Status.CONVERGED:
            problem = "{CGRankRLS}: alpha={0:g} ended with {1!r} after {2} iterations; raise {max_iter} or {tol}."
            warnings.warn(NotConverged(problem, alphas[k], str(status), self.n_iter_, parameter="alpha"), stacklevel=3)

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
    job = ScoreJob(measure, ((scorer,),), _HELD_OUT if held_out else 1)
    sums = stream.run(job, "judged").judged[0]
    out: Curve = sums.curve()
    return out


def _to_the_end(given: _Given, run: KrylovRun) -> KrylovRun:
    cg, least = given.cg, float(given.alphas.min())
    while not run.done:
        cg.step(run)
        if given.report is not None:
            running, residual = int(run.running.sum()), float(run.residuals.max())
            given.report(Progress(run.iteration, cg.max_iter, running, least, run.iteration, np.nan, residual))
    return run
