"""Conjugate gradients on a data set that no memory holds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from rankrls._compiled.threads import one_thread
from rankrls._errors import InputError
from rankrls._queries import in_words
from rankrls.equations.krylov import MultiShiftCG, largest_eigenvalue
from rankrls.equations.spectrum import auto_alphas
from rankrls.metrics import resolve_measure
from rankrls.models.families.base import KernelRanker
from rankrls.models.families.selecting import AUTO_VALUES
from rankrls.models.families.streamed import LINEAR, take_columns
from rankrls.selection.progress import reporter
from rankrls.selection.surface import Reading, Surface
from rankrls.streaming.krylov_sums import WatchedData, right_sides
from rankrls.streaming.parts import check_varied
from rankrls.streaming.stream import Stream, check_streams

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
        self._check()
        alphas = self._grid()
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
        setting = self._setting()
        values = AUTO_VALUES if alphas is None else len(alphas)
        row = (16.0 * data.n_features if data.n_features < 4096 else 800.0) + 200.0 + 32.0 * values
        how: dict[str, Any] = {"executor": executor, "memory": memory, "leaf_bytes": lambda rows: rows * row}
        cg, report = MultiShiftCG(float(self.tol), int(self.max_iter)), reporter(self.verbose, type(self).__name__)
        stream = Stream(data, **how, passes=0, report=report, checkpoint=checkpoint)
        system, found, right = right_sides(stream, setting)
        check_varied(found, [setting])
        with one_thread():
            if alphas is None:
                alphas = np.ascontiguousarray(auto_alphas(np.array([largest_eigenvalue(system, right)]))[::-1])
            take_columns(self, data)
            self._begin(found)  # type: ignore[arg-type]
            start = lambda: cg.init(system, right, alphas)
            final, parts, description = start(), [], "nothing held out"
            if validation is not None:
                description = f"validation data with {in_words(validation.n_queries)}"
                parts = [WatchedData(final, measure, Stream(validation, **how))]
            elif self._selects:
                other, kept, of_kept = right_sides(stream, setting, _HELD_OUT)
                run = cg.init(other, of_kept, alphas)
                description = f"{found.queries - kept.queries} of {found.queries} queries held out"
                parts = [WatchedData(run, measure, stream, folds=_HELD_OUT, ahead=(run, final))]
            iterates = self.selection != "tikhonov"
            surface = Surface(
                cg=cg,
                alphas=alphas,
                final=[final],
                parts=parts,  # type: ignore[arg-type]
                reading=Reading(iterates, int(self.patience), only_ends=not iterates),
                greater_is_better=measure.greater_is_better,
                report=report,
            )
            self._conclude(surface, lambda: [start()], found, description, LINEAR)
        return self
