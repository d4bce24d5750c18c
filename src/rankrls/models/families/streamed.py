"""Estimators that learn from data sets that no memory holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np

from rankrls._comparisons import Setting
from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.kernels import Kernel
from rankrls.models.families.base import KernelRanker, SingleRanker
from rankrls.models.families.basis import BasisRanker, generator
from rankrls.models.families.selecting import AUTO_VALUES, SelectingRanker
from rankrls.models.inputs.parameters import options
from rankrls.models.inputs.spreads import warn_of_lost_features
from rankrls.problems.scorer import Scorer
from rankrls.problems.subset import Basis
from rankrls.selection.progress import reporter
from rankrls.selection.search import Results
from rankrls.streaming.basis_rows import BasisJob
from rankrls.streaming.fitting import (
    Summed,
    curves_by_queries,
    curves_by_sums,
    curves_on,
    leaf_bytes,
    read_equations,
    with_judging,
)
from rankrls.streaming.stream import Stream, check_streams

LINEAR = Kernel("linear")


class Streamed(KernelRanker):
    """Which functions are learned from a data set."""

    def _check_streamed(self) -> None:
        """Refuse, before anything is read, what needs all rows at once."""
        name = type(self).__name__
        kernels = options(self.kernel, "kernel")
        if kernels != ("linear",):
            raise InputError(
                "{0}.fit_dataset learns linear functions; other kernels need all rows at once. Got {kernel} {1!r}.",
                *(name, self.kernel),
                remedy="Take {SparseRankRLSCV}, which has a basis of some items.",
            )
        if self.solver not in ("auto", "primal"):
            raise InputError(
                "{0}.fit_dataset adds up normal equations, which {solver} {1!r} does not use.",
                *(name, self.solver),
                remedy="Take {solver='primal'}, or {CGRankRLS} for conjugate gradients.",
            )

    def _streamed_columns(self, data: Any) -> int:
        """How many weights or coefficients are learned."""
        return int(data.n_features)

    def _passes(self, held_out: bool) -> int:
        """How often the data are read."""
        return 2 if held_out else 1

    def _streamed_kernels(self, stream: Stream) -> Iterator[tuple[Kernel, dict[str, Any], Basis | None]]:
        """Every kernel with what it chooses, and the basis whose columns stand for the features."""
        yield LINEAR, {"kernel": "linear"}, None

    def _keep_streamed(self, summed: Summed, scorer: Scorer, kernel: Kernel) -> None:
        """Keep a function that was learned from a data set."""
        self._begin(summed.sums)  # type: ignore[arg-type]
        self._take(scorer, kernel)


class StreamedBasis(Streamed, BasisRanker):
    """Functions over a basis of rows that are drawn by a hash."""

    def _check_streamed(self) -> None:
        name = type(self).__name__
        if "precomputed" in options(self.kernel, "kernel"):
            problem = "{0}.fit_dataset evaluates the kernel: a matrix of it needs all rows at once."
            raise InputError(problem, name, remedy="Give {kernel} by its name.", parameter="kernel")
        for parameter, given in (("basis", self.basis != "random"), ("basis_indices", self.basis_indices is not None)):
            if given:
                raise InputError(
                    f"{{0}}.fit_dataset draws its basis at random; {{{parameter}}} needs all rows at once.",
                    name,
                    remedy="Take {basis='random'}, with as many items as you like ({n_basis}).",
                )
        if getattr(self, "solver", "auto") == "cg":
            problem = "{0}.fit_dataset adds up normal equations, which {solver='cg'} does not use."
            raise InputError(problem, name, remedy="Take {solver='direct'}.")

    def _streamed_columns(self, data: Any) -> int:
        return self._basis_size(int(data.n_rows))

    def _streamed_kernels(self, stream: Stream) -> Iterator[tuple[Kernel, dict[str, Any], Basis | None]]:
        seed = self.random_state
        if isinstance(seed, bool) or not isinstance(seed, Integral):
            seed = generator(seed).integers(2**31)
        drawn = stream.run(BasisJob(self._streamed_columns(stream.data), int(seed)), "basis")
        for kernel, choices in self._kernels(np.empty((0, stream.data.n_features))):
            yield kernel, choices, replace(Basis.build(kernel, drawn.items), numbers=drawn.numbers)

    def _passes(self, held_out: bool) -> int:
        each = super()._passes(held_out)
        return 1 + sum(each for _ in self._kernels(np.empty((0, 1))))

    def _keep_streamed(self, summed: Summed, scorer: Scorer, kernel: Kernel) -> None:
        super()._keep_streamed(summed, scorer, kernel)
        self.basis_indices_ = summed.columns.numbers


class StreamedRanker(Streamed, SingleRanker):
    """Learns functions from a data set, for one regularization value."""

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
        self._check()
        alpha = float(self.alpha)
        self._check_streamed()
        size = leaf_bytes(data.n_features, 1, columns=self._streamed_columns(data))
        stream = Stream(data, executor=executor, memory=memory, leaf_bytes=size, checkpoint=checkpoint)
        kernel, _, basis = next(self._streamed_kernels(stream))
        settings = [self._setting()]
        summed = read_equations(stream, settings, columns=basis)
        take_columns(self, data)
        with one_thread():
            problem = summed.problem(0)
            scorer = problem.read(self._solution(problem, alpha))
        self._keep_streamed(summed, scorer, kernel)
        self.alpha_ = alpha
        warn_of_lost_features(self, problem.spreads, np.array([alpha]))
        return self


class StreamedSelection(Streamed, SelectingRanker):
    """Chooses among functions by held-out queries of a data set, then learns from all of it."""

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
        queries, told by a hash of their names: the same whatever the files. Validation data are read once. With folds
        and ``scoring="pair_squared_error"`` one pass is enough, since the sums of each fold tell its error; the
        standard error is then that of the folds, not of the queries.

        ``held_out_scores_`` and ``query_scores_`` are None: they stay where they arise.
        """
        self._check()
        self._check_streamed()
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
            raise InputError("Give either {cv} or validation data ({validation}), not both.")
        beta = float(self.regression_weight)
        ties, balances = options(self.ties, "ties"), options(self.balance, "balance")
        settings = [Setting(t, b, beta) for t, b in product(ties, balances)]
        report = reporter(self.verbose, type(self).__name__)
        values = len(settings) * (AUTO_VALUES if grid is None else len(grid))
        columns, by_sums = self._streamed_columns(data), folds is not None and measure.quadratic
        added = with_judging(settings) if by_sums else settings
        size = leaf_bytes(data.n_features, len(added), values=values, folds=folds or 1, columns=columns)
        given: dict[str, Any] = {"executor": executor, "memory": memory, "leaf_bytes": size, "report": report}
        stream = Stream(data, **given, passes=self._passes(validation is None and not by_sums), checkpoint=checkpoint)
        results, description = Results(measure.greater_is_better, self.rule), ""
        for kernel, choices, basis in self._streamed_kernels(stream):
            summed = read_equations(stream, added, folds=folds or 1, columns=basis)
            with one_thread():
                problems = [summed.problem(k) for k in range(len(settings))]
                grids = [problem.axis() if grid is None else grid for problem in problems]
            if validation is not None:
                description = f"validation data with {in_words(validation.n_queries)}"
                own = None if checkpoint is None else Path(checkpoint) / "validation"
                judges = Stream(validation, **given, checkpoint=own)
                curves = curves_on(judges, [[problem] for problem in problems], grids, measure)
            elif folds is not None:
                description = f"{folds} folds of {in_words(summed.sums.n_queries)}"
                curves = (
                    curves_by_sums(summed, grids, folds)
                    if by_sums
                    else curves_on(stream, summed.without_folds(len(settings)), grids, measure)
                )
            else:
                description = f"leave-query-out over {in_words(summed.sums.n_queries)}"
                curves = curves_by_queries(stream, summed, problems, grids, measure)
            for setting, problem, alphas, curve in zip(settings, problems, grids, curves, strict=True):
                chosen = {**choices, "ties": setting.ties, "balance": setting.balance}
                if results.add(chosen, alphas, curve):
                    results.best_state = problem, summed, kernel
        problem, summed, kernel = results.best_state
        with one_thread():
            scorer = problem.path(np.array([results.best_value]))[0]
        take_columns(self, data)
        self._keep_streamed(summed, scorer, kernel)
        warn_of_lost_features(self, problem.spreads, grid)
        self._publish(results, description, summed.sums)
        return self


def take_columns(model: Any, data: Any) -> None:
    """Keep what scikit-learn keeps of the features."""
    model.n_features_in_ = int(data.n_features)
    model.__dict__.pop("feature_names_in_", None)
    if data.feature_names is not None:
        model.feature_names_in_ = np.array(data.feature_names, dtype=object)


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
    )
