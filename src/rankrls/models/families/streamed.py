"""Estimators that learn from data sets that no memory holds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankrls._comparisons import Setting
from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls.kernels import Kernel
from rankrls.models.families.base import KernelRanker
from rankrls.models.families.selecting import AUTO_VALUES, SelectingRanker
from rankrls.models.inputs.parameters import options
from rankrls.models.inputs.spreads import warn_of_lost_equations
from rankrls.problems.primal import EquationsProblem
from rankrls.problems.scorer import Scorer
from rankrls.problems.signed import solve_signed
from rankrls.selection.progress import reporter
from rankrls.selection.search import Results
from rankrls.streaming.fitting import (
    curves_by_folds,
    curves_by_queries,
    curves_on,
    leaf_bytes,
    read_equations,
)
from rankrls.streaming.stream import Stream, check_streams

__all__ = ["StreamedRanker", "StreamedSelection"]

_LINEAR = Kernel("linear")


class StreamedRanker(KernelRanker):
    """Learns linear functions from a data set, for one regularization value."""

    def fit_dataset(  # type: ignore[override]
        self, data: Any, *, executor: Any = None, memory: Any = None, checkpoint: Any = None
    ) -> Self:
        """Learn from a data set that no memory holds, in one pass: the same model as :meth:`fit` on all its rows.

        Parameters
        ----------
        data : Dataset
            As :func:`rankrls.io.open_dataset` returns it.
        executor : concurrent.futures.Executor, optional
            Where the parts are worked on; threads of this machine by default.
        memory : str or float, optional
            What the parts that are worked on at once may take beside the process itself, such as "4G". What is free,
            by default.
        checkpoint : path, optional
            A folder for finished sums. A fit that is given it again goes on where the last one ended.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For bad input, with the running number of the row; for a kernel that is not linear; and where no query
            holds two different labels.

        Notes
        -----
        O(m n^2 + n^3), memory O(n^2) and some parts. The same parts give the same bits, whatever works on them; other
        parts, or another machine, agree up to rounding. What ``partial_fit`` needs is not kept.
        """
        alpha = self._checked_alpha()
        self._check_streamed()
        stream = Stream(
            data,
            executor=executor,
            memory=memory,
            leaf_bytes=leaf_bytes(data.n_features, 1),
            checkpoint=checkpoint,
        )
        summed = read_equations(stream, [Setting(self.ties, self.balance, float(self.regression_weight))])
        _take_columns(self, data)
        with one_thread():
            problem = summed.problem(0)
            scorer = self._solved(problem, alpha)
        self._begin(summed)  # type: ignore[arg-type]
        self._take(scorer, _LINEAR)
        self.alpha_ = alpha
        warn_of_lost_equations(problem, np.array([alpha]), getattr(self, "feature_names_in_", None))
        return self

    def _checked_alpha(self) -> float:
        raise NotImplementedError

    def _solved(self, problem: EquationsProblem, alpha: float) -> Scorer:
        signs = self._signs(_Shape((0, len(problem.equations.gram))))
        if signs is None:
            return problem.path(np.array([alpha]))[0]
        return Scorer(solve_signed(problem.equations, np.array([alpha]), signs)[0][0])

    def _check_streamed(self) -> None:
        check_linear(self)


class StreamedSelection(SelectingRanker):
    """Chooses among linear functions by held-out queries of a data set, then learns from all of it."""

    def fit_dataset(  # type: ignore[override]
        self,
        data: Any,
        *,
        validation: Any = None,
        executor: Any = None,
        memory: Any = None,
        checkpoint: Any = None,
    ) -> Self:
        """Choose, then learn, from a data set that no memory holds: the same as :meth:`fit` on all its rows.

        Parameters
        ----------
        data, executor, memory, checkpoint : as in :meth:`RankRLS.fit_dataset`
        validation : Dataset, optional
            Another data set to choose by, instead of ``cv``.

        Returns
        -------
        self

        Raises
        ------
        InputError
            As in :meth:`RankRLS.fit_dataset`; for a ``cv`` that needs all rows at once; and where fewer than two
            queries hold different labels.

        Notes
        -----
        Two passes over the data, whatever the number of alphas, ``ties`` and ``balance``: the normal equations, then
        the exact held-out scores of each query, judged at once. ``cv`` as an int holds out that many folds of whole
        queries, told by a hash of their names: the same whatever the files. Validation data are read once.

        ``held_out_scores_`` and ``query_scores_`` are None: they stay where they arise.
        """
        self._check()
        check_linear(self)
        if self._constrained():
            raise InputError(
                "{0}.fit_dataset does not choose under constraints on signs.",
                type(self).__name__,
                remedy="{RankRLS} takes {positive} with one alpha.",
                parameter="positive",
            )
        measure, grid = self._measure(), self._grid()
        check_streams(measure)
        folds = _folds(self.cv)
        if validation is not None and folds is not None:
            raise InputError("Give either {cv} or validation data ({validation}), not both.", parameter="cv")
        beta = float(self.regression_weight)
        ties, balances = options(self.ties, "ties"), options(self.balance, "balance")
        settings = [Setting(t, b, beta) for t, b in product(ties, balances)]
        report = reporter(self.verbose, type(self).__name__)
        values = AUTO_VALUES if grid is None else len(grid)
        size = leaf_bytes(data.n_features, len(settings), values=values * len(settings), folds=folds or 1)
        given: dict[str, Any] = {"executor": executor, "memory": memory, "leaf_bytes": size, "report": report}
        stream = Stream(data, **given, passes=1 if validation is not None else 2, checkpoint=checkpoint)
        summed = read_equations(stream, settings, folds=folds or 1)
        _take_columns(self, data)
        with one_thread():
            problems = [summed.problem(k) for k in range(len(settings))]
            grids = [problem.axis() if grid is None else grid for problem in problems]
        if validation is not None:
            description = f"validation data with {_count(validation.n_queries)}"
            own = None if checkpoint is None else Path(checkpoint) / "validation"
            other = Stream(validation, **given, passes=1, checkpoint=own)
            curves = curves_on(other, problems, grids, measure)
        elif folds is not None:
            description = f"{folds} folds of {_count(summed.n_queries)}"
            curves = curves_by_folds(stream, summed, grids, measure, folds)
        else:
            description = f"leave-query-out over {_count(summed.n_queries)}"
            curves = curves_by_queries(stream, summed, problems, grids, measure)
        results = Results(measure.greater_is_better, self.rule)
        for setting, problem, alphas, curve in zip(settings, problems, grids, curves, strict=True):
            choices = {"kernel": "linear", "ties": setting.ties, "balance": setting.balance}
            if results.add(choices, alphas, curve):
                results.best_state = problem
        with one_thread():
            scorer = results.best_state.path(np.array([results.best_value]))[0]
        self._begin(summed)  # type: ignore[arg-type]
        self._take(scorer, _LINEAR)
        warn_of_lost_equations(results.best_state, grid, getattr(self, "feature_names_in_", None))
        self._publish(results, description, summed)
        return self


@dataclass(frozen=True)
class _Shape:
    """Features of which nothing but their number is known."""

    shape: tuple[int, int]


def _take_columns(model: Any, data: Any) -> None:
    """Keep what scikit-learn keeps of the features."""
    model.n_features_in_ = int(data.n_features)
    model.__dict__.pop("feature_names_in_", None)
    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)


def check_linear(model: Any) -> None:
    """Refuse what needs all rows at once."""
    name = type(model).__name__
    kernels = options(model.kernel, "kernel")
    if kernels != ("linear",):
        raise InputError(
            "{0}.fit_dataset learns linear functions; other kernels need all rows at once. Got {kernel} {1!r}.",
            *(name, model.kernel),
            remedy="Take {SparseRankRLSCV}, which has a basis of some items.",
            parameter="kernel",
        )
    if model.solver not in ("auto", "primal"):
        raise InputError(
            "{0}.fit_dataset adds up normal equations, which {solver} {1!r} does not use.",
            *(name, model.solver),
            remedy="Take {solver='primal'}, or {CGRankRLS} for conjugate gradients.",
            parameter="solver",
        )


def _folds(cv: Any) -> int | None:
    """How many folds of queries; None for leave-query-out."""
    if cv is None:
        return None
    if isinstance(cv, Integral) and not isinstance(cv, bool) and int(cv) >= 2:
        return int(cv)
    raise InputError(
        "A streamed fit holds out each query ({cv=None}) or folds of queries ({cv} as a number of at least 2); "
        "{0!r} needs all rows at once.",
        cv if isinstance(cv, str | int) else type(cv).__name__,
        remedy="Take {cv=None}, or validation data ({validation}).",
        parameter="cv",
    )


def _count(queries: int) -> str:
    return f"{queries} {'query' if queries == 1 else 'queries'}"
