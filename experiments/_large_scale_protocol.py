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
from scipy.sparse.linalg import LinearOperator, eigsh

from rankrls import CGRankRLS
from rankrls.metrics import disagreement_error

__all__ = [
    "ALPHAS",
    "FIGURE_ALPHAS",
    "METHODS",
    "Bounds",
    "Method",
    "Outcome",
    "Training",
    "bounds",
    "figure",
    "first_single_step",
    "run_method",
    "training_of",
    "warm_up",
]

ALPHAS = tuple(2.0**k for k in range(-10, 11))
FIGURE_ALPHAS = (0.0, *(2.0**k for k in (-10, -5, 0, 5, 10)))
MAX_ITER, TOL, PATIENCE = 500, 1e-5, 10
_SETTLED = ("converged", "stagnated")


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
            given = {"X_val": validation.X, "y_val": validation.y, "qid_val": validation.qid}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # not converged within the paper's 500 iterations: reported in the tables
            if self.pairs is None:
                return model.fit(self.items.X, self.items.y, qid=self.items.qid, **given)
            return model.fit_pairs(self.items.X, *self.pairs, **given)

    def product(self) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
        """The function from p to X'LXp, as plainly as it can be written."""
        X, XT = self.items.X, self.items.X.T  # no copy
        if self.pairs is not None:
            i, j = self.pairs
            m = X.shape[0]

            def laplacian(scores: NDArray[np.float64]) -> NDArray[np.float64]:
                lead = scores[i] - scores[j]
                return np.bincount(i, lead, minlength=m) - np.bincount(j, lead, minlength=m)
        else:
            query = self._queries()
            counts = np.bincount(query)

            def laplacian(scores: NDArray[np.float64]) -> NDArray[np.float64]:
                return scores - (np.bincount(query, scores) / counts)[query]

        return lambda p: XT @ laplacian(X @ np.ravel(p))

    def rank_bound(self) -> int:
        """What the rank of X'LX is at most."""
        m, n = self.items.X.shape
        if self.pairs is not None:
            m = len(np.unique(np.concatenate(self.pairs)))
            return min(m - 1, len(self.pairs[0]), n)
        return min(m - len(np.unique(self._queries())), n)

    def _queries(self) -> NDArray[np.intp]:
        if self.items.qid is None:
            return np.zeros(len(self.items.y), dtype=np.intp)
        return np.unique(self.items.qid, return_inverse=True)[1]


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
    selection_iterations : int
        Products with the data of the former; the latter has ``n_iter``.
    same_seconds : float
        A run with one alpha (the smallest) for as many iterations as the selection took, judged by the validation
        data after each: what the further alphas cost.
    separate_seconds : float or None
        A run of its own for every alpha, as in 2010.
    separate_gap : float or None
        The best validation error of those runs minus that of the one run.
    """

    method: Method
    alpha: float
    n_iter: int
    validation_error: float
    test_error: float
    selection_seconds: float
    training_seconds: float
    selection_iterations: int
    same_seconds: float
    separate_seconds: float | None
    separate_gap: float | None
    iterations_of: dict[float, tuple[int, bool]]


def run_method(method: Method, task: Task, training: Training, *, separate: bool) -> Outcome:
    """Choose, train alone with what was chosen, and judge."""
    seconds, model = _timed(lambda: training.fit(_learner(method.alphas, method.selection), task.validation))
    surface = np.atleast_2d(model.validation_surface_)
    limit = MAX_ITER if method.selection == "tikhonov" else max(int(model.n_iter_), 1)
    alone, _ = _timed(lambda: training.fit(_learner((model.alpha_,), "tikhonov", max_iter=limit), None))
    same = CGRankRLS(
        (min(method.alphas),), selection="early_stopping", max_iter=surface.shape[1], tol=0.0, patience=surface.shape[1]
    )
    same_seconds, _ = _timed(lambda: training.fit(same, task.validation))
    separate_seconds = gap = None
    if separate and len(method.alphas) > 1:
        separate_seconds, errors = _timed(lambda: [_one_run(method, alpha, task, training) for alpha in method.alphas])
        gap = min(errors) - float(model.best_score_)
    return Outcome(
        method,
        float(model.alpha_),
        int(model.n_iter_),
        float(model.best_score_),
        _error(model, task.test),
        seconds,
        alone,
        surface.shape[1],
        same_seconds,
        separate_seconds,
        gap,
        {
            float(a): (int(t), status in _SETTLED)
            for a, t, status in zip(model.alphas_, model.iterations_, model.status_, strict=True)
        },
    )


def _one_run(method: Method, alpha: float, task: Task, training: Training) -> float:
    """Validation error of one alpha by a run of its own."""
    if method.selection == "tikhonov":
        return _error(training.fit(_learner((alpha,), "tikhonov"), None), task.validation)
    return float(training.fit(_learner((alpha,), "early_stopping"), task.validation).best_score_)


def figure(task: Task, training: Training) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """Validation error against iterations for some alphas, run until 500 iterations or convergence."""
    model = training.fit(_learner(FIGURE_ALPHAS, "tikhonov"), task.validation)
    return tuple(float(a) for a in model.alphas_), np.atleast_2d(model.validation_surface_)


@dataclass(frozen=True)
class Bounds:
    """What the 2010 paper says of the number of iterations, section 3.3."""

    rank: int
    largest_eigenvalue: float

    def by_rank(self) -> int:
        """One more than the rank."""
        return self.rank + 1

    def by_condition(self, alpha: float) -> float:
        """``1/2 sqrt(kappa) ln(2 / eps)``, with 0 for the smallest eigenvalue."""
        if alpha == 0.0:
            return np.inf
        return 0.5 * np.sqrt((self.largest_eigenvalue + alpha) / alpha) * np.log(2.0 / TOL)


def bounds(training: Training) -> Bounds:
    """The bounds' ingredients."""
    n = training.items.X.shape[1]
    operator = LinearOperator((n, n), matvec=training.product(), dtype=np.float64)
    start = np.random.default_rng(0).normal(size=n)
    (largest,) = eigsh(operator, 1, which="LA", tol=1e-6, v0=start, return_eigenvectors=False)
    return Bounds(training.rank_bound(), float(largest))


def first_single_step(task: Task, training: Training, found: Bounds) -> float | None:
    """The smallest power of two, from the largest eigenvalue on, that converges in one iteration."""
    lowest = int(np.ceil(np.log2(found.largest_eigenvalue)))
    alphas = tuple(2.0**k for k in range(lowest, lowest + 30))
    model = training.fit(_learner(alphas, "tikhonov", max_iter=60), task.validation)
    settled = np.array([status in _SETTLED for status in model.status_])
    single = model.alphas_[(model.iterations_ <= 1) & settled]
    return float(single.min()) if len(single) else None


def _learner(alphas: tuple[float, ...], selection: str, max_iter: int = MAX_ITER) -> CGRankRLS:
    return CGRankRLS(alphas, selection=selection, max_iter=max_iter, tol=TOL, patience=PATIENCE)


def _error(model: CGRankRLS, items: Items) -> float:
    return float(disagreement_error(items.y, model.predict(items.X), qid=items.qid))


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result
