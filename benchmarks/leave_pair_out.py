"""One global ranking, every pair of items left out in its turn without refitting, and permutation tests of that.

At 500 items half of the time goes to 21 products of 500 x 50 matrices; the threads share the alphas, and BLAS has one
thread, for its own would spin in their way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks import _rlscore
from benchmarks._harness import alternate, context, faster, skipped, timed, within
from rankrls import RankRLSCV
from rankrls.model_selection import permutation_test

FEATURES = 50
PATIENTS, GENES = 150, 3000


def ranking(rows: int, features: int = FEATURES) -> tuple[np.ndarray, np.ndarray]:
    """Real-valued utilities, all of them different."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, features))
    return X, X @ rng.standard_normal(features) + 5.0 * rng.standard_normal(rows)


def jobs(quick: bool = False) -> list[dict[str, Any]]:
    small, large = (100, 500) if quick else (500, 5000)
    X, y = ranking(small)
    alphas = 2.0 ** np.arange(-5, 16)
    ours = lambda: RankRLSCV(tuple(alphas), balance="pairs").fit(X, y)
    job = f"leave-pair-out of 21 alphas, {small} x {FEATURES}"
    why = _rlscore.missing()
    if why:
        (own,) = alternate(ours, repeats=5)
        lines = [context(job, own, _rlscore.NAME, None), skipped(job, _rlscore.NAME, why)]
    else:
        theirs, scores = timed(lambda: _rlscore.leave_pair_out(X, y, alphas))
        _rlscore.check_same(scores, ours().cv_results_["mean_score"][::-1])
        (own,) = alternate(ours, repeats=5)
        lines = [faster(job, own, _rlscore.NAME, theirs, 250.0)]
    X, y = ranking(large)
    (linear,) = alternate(lambda: RankRLSCV((1.0,)).fit(X, y), repeats=3)
    lines.append(within(f"leave-pair-out of one alpha, {large} x {FEATURES}", linear, 1.0))
    genes, permutations = (300, 100) if quick else (GENES, 1000)
    X, y = ranking(PATIENTS, genes)
    test, fit = alternate(
        lambda: permutation_test(RankRLSCV(), X, y, n_permutations=permutations),
        lambda: RankRLSCV().fit(X, y),
        repeats=5,
    )
    job = f"permutation test, {permutations} permutations, {PATIENTS} x {genes}"
    lines.append(faster(job, test, f"{permutations} refits", permutations * fit, 50.0))
    return lines
