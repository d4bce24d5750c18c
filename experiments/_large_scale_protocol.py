"""The 2010 paper's protocol, section 4: three ways to choose by validation data, timed and judged on test data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from _large_scale_data import Items, Task, sampled_pairs
from numpy.typing import NDArray
from scipy import sparse

from rankrls import CGRankRLS
from rankrls.metrics import Measure

ALPHAS = tuple(2.0**k for k in range(-10, 11))
FIGURE_ALPHAS = (0.0, *(2.0**k for k in (-10, -5, 0, 5, 10)))
MAX_ITER, TOL, PATIENCE = 500, 1e-5, 10


@dataclass(frozen=True)
class Method:
    """One row of the paper's table."""

    number: int
    name: str
    what: str
    selection: str
    alphas: tuple[float, ...]


METHODS = (
    Method(1, "Tikhonov", "alpha by validation, each run to convergence", "tikhonov", ALPHAS),
    Method(2, "early stopping", "alpha = 0, iterations by validation", "early_stopping", (0.0,)),
    Method(3, "hybrid", "alpha and iterations by validation", "hybrid", ALPHAS),
)


@dataclass(frozen=True)
class Training:
    """What is learnt from: labels, or pairs sampled from them."""

    items: Items
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]] | None

    def fit(self, model: CGRankRLS, validation: Items | None) -> CGRankRLS:
        """Fit, choosing by the validation items where there are any."""
        given: dict[str, Any] = {}
        if validation is not None:
            given = {"X_val": validation.X, "y_val": validation.y}
            if validation.qid is not None:
                given["qid_val"] = validation.qid
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged within the paper's 500 iterations: reported in the tables
            if self.pairs is None:
                return model.fit(self.items.X, self.items.y, qid=self.items.qid, **given)
            return model.fit_pairs(self.items.X, *self.pairs, **given)


def warm_up(task: Task) -> None:
    """Compile what is timed later: nothing of the data set is looked at but its number formats."""
    data = task.train.X
    X = sparse.csr_array(np.arange(240.0).reshape(30, 8) % 7).astype(data.dtype)
    X.indices, X.indptr = X.indices.astype(data.indices.dtype), X.indptr.astype(data.indptr.dtype)
    y = np.arange(30.0) % 3
    for training in (Training(Items(X, y, None), None), Training(Items(X, y, None), (np.arange(5), np.arange(5, 10)))):
        training.fit(_learner(ALPHAS, "hybrid", max_iter=3), Items(X, y, None))


def training_of(task: Task, number_of_pairs: int | None) -> Training:
    """Learn from the labels, or from that many sampled pairs."""
    pairs = None if number_of_pairs is None else sampled_pairs(task.train, number_of_pairs)
    return Training(task.train, pairs)


@dataclass(frozen=True)
class Outcome:
    """One method on one data set.

    Attributes
    ----------
    selection_seconds : float
        The one run that chooses, whose model is the result.
    training_seconds : float
        A run with the chosen alpha alone, to convergence or for the chosen number of iterations.
    """

    method: Method
    alpha: float
    n_iter: int
    validation_error: float
    test_error: float
    selection_seconds: float
    training_seconds: float


def run_method(method: Method, task: Task, training: Training) -> Outcome:
    """Choose, fit again with what was chosen, and evaluate on the test items."""
    seconds, model = _timed(lambda: training.fit(_learner(method.alphas, method.selection), task.validation))
    limit = MAX_ITER if method.selection == "tikhonov" else max(int(model.n_iter_), 1)
    alone, _ = _timed(lambda: training.fit(_learner((model.alpha_,), "tikhonov", max_iter=limit), None))
    return Outcome(
        method=method,
        alpha=float(model.alpha_),
        n_iter=int(model.n_iter_),
        validation_error=float(model.best_score_),
        test_error=_error(model, task.test),
        selection_seconds=seconds,
        training_seconds=alone,
    )


def figure(task: Task, training: Training) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """Validation error against iterations for some alphas, run until 500 iterations or convergence."""
    model = training.fit(_learner(FIGURE_ALPHAS, "tikhonov"), task.validation)
    return tuple(float(a) for a in model.alphas_), np.atleast_2d(model.validation_surface_)


def _learner(alphas: tuple[float, ...], selection: str, max_iter: int = MAX_ITER) -> CGRankRLS:
    return CGRankRLS(alphas, selection=selection, max_iter=max_iter, tol=TOL, patience=PATIENCE)


def _error(model: CGRankRLS, items: Items) -> float:
    return float(Measure("disagreement")(items.y, model.predict(items.X), qid=items.qid))


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
