"""RLScore, where it is importable. Its PyPI release builds on no current Python; its repository's head does."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._data import Problem

NAME = "RLScore"


def missing() -> str | None:
    """Why RLScore cannot be used, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            import rlscore.learner
            import rlscore.measure  # noqa: F401
        except ImportError as error:
            return f"rlscore is not importable ({error})"
    return None


def leave_query_out(p: Problem, alphas: np.ndarray, **kernel: Any) -> np.ndarray:
    """Its concordance index of each alpha by leave-query-out; every document weighs the same, as in our "examples"."""
    from rlscore.learner import LeaveQueryOutRankRLS
    from rlscore.measure import cindex

    model = LeaveQueryOutRankRLS(p.X, p.y, p.qid.tolist(), regparams=list(alphas), measure=cindex, **kernel)
    return np.asarray(model.cv_performances, dtype=np.float64)


def leave_pair_out(X: np.ndarray, y: np.ndarray, alphas: np.ndarray) -> np.ndarray:
    """Its concordance index of each alpha by leave-pair-out; every pair weighs the same, as in our "pairs"."""
    from rlscore.learner import LeavePairOutRankRLS

    return np.asarray(LeavePairOutRankRLS(X, y, regparams=list(alphas)).cv_performances, dtype=np.float64)


def check_same(theirs: np.ndarray, our_errors: np.ndarray) -> None:
    """A rival that computes something else is no rival. It breaks predicted ties its own way, hence the tolerance."""
    worst = float(np.abs(1.0 - theirs - our_errors).max())
    if worst > 1e-3:
        raise RuntimeError(f"RLScore's cross-validated error differs from ours by {worst:.2g}: not the same job.")


def cg(X: Any, y: np.ndarray, alpha: float, iterations: int) -> np.ndarray:
    """Its coefficients after that many iterations of conjugate gradients; one ranking of all rows."""
    from rlscore.learner import cg_rankrls

    class Counter:
        left = iterations

        def callback(self, learner: Any) -> None:
            self.left -= 1
            if self.left <= 0:
                raise cg_rankrls.Finished("enough")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner = cg_rankrls.CGRankRLS(X, y, regparam=alpha, callbackfun=Counter())
    return np.asarray(learner.A).ravel()


def pair_iteration(X: Any, winners: np.ndarray, losers: np.ndarray) -> Any:
    """One product of its conjugate gradients for pairs, as ``PCGRankRLS`` writes it (it cannot be stopped early)."""
    from scipy import sparse

    p = len(winners)
    XT = sparse.csc_matrix(X.T).tocsr()
    ends = np.concatenate((winners, losers))
    signs = np.repeat([1.0, -1.0], p)
    M = sparse.coo_matrix((signs, (np.tile(np.arange(p), 2), ends)), shape=(p, X.shape[0]))
    M_csr, M_csc = M.tocsr(), M.tocsc()

    def product(v: np.ndarray) -> np.ndarray:
        return XT @ (M_csc.T @ (M_csr @ (X @ v)))

    return product
