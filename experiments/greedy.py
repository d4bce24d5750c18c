"""Few features: GreedyRankRLS beside ranking pursuit and forward selection (``python experiments/greedy.py``).

The disagreement error of test queries after 1, 2, ... features, averaged over the folds of OHSUMED and MQ2008, and on
made-up data of 2000 features and 150 rows of which five features matter; and the time of the path. Forward selection
by refits takes the same features by definition, so that only its time is of interest: it is measured on the first
stages and grown to all of them by the number of fits.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from rankrls import GreedyRankRLS, RankingPursuit, RankRLS, RankRLSCV
from rankrls.io import load_letor
from rankrls.metrics import disagreement_error
from rankrls.model_selection import leave_query_out
from rankrls.preprocessing import QueryStandardScaler

FOLDERS = {
    "OHSUMED": ("ohsumed_letor1", "trainingset.txt", "testset.txt"),
    "MQ2008": ("mq2008_letor4", "train.txt", "test.txt"),
}
SIZES = (1, 2, 3, 5, 8, 12, 20)


def folds(name: str, data: Path) -> Iterator[tuple[np.ndarray, ...]]:
    """Training and test parts: X, y, qid of each."""
    if name == "2000 features":
        for seed in range(5):
            rng = np.random.default_rng(seed)
            X, qid = rng.normal(size=(650, 2000)), np.repeat(np.arange(65), 10)
            y = X[:, :5] @ [2.0, -1.5, 1.0, 1.0, -1.0] + 2.0 * rng.normal(size=650)
            yield X[:150], y[:150], qid[:150], X[150:], y[150:], qid[150:]
        return
    folder, *names = FOLDERS[name]
    for fold in range(1, 6):
        parts = []
        for part in (load_letor(data / folder / f"Fold{fold}" / file) for file in names):
            X = part.X.toarray() if hasattr(part.X, "toarray") else part.X
            parts += [QueryStandardScaler().fit_transform(X, qid=part.qid), part.y, part.qid]
        yield tuple(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKRLS_DATA"), help="folder of the collections")
    options = parser.parse_args()
    for name in (*(FOLDERS if options.data else ()), "2000 features"):
        errors: dict[str, list[list[float]]] = {"greedy": [], "pursuit": []}
        every, seconds, chosen = [], np.zeros(3), []
        for X, y, qid, X_test, y_test, qid_test in folds(name, options.data):
            most = min(max(SIZES), X.shape[1])
            start = time.perf_counter()
            model = GreedyRankRLS(most, alphas=[1.0]).fit(X, y, qid=qid)
            seconds[0] += time.perf_counter() - start
            start = time.perf_counter()
            rival = RankingPursuit(most, dictionary="features").fit(X, y, qid=qid)
            seconds[1] += time.perf_counter() - start
            seconds[2] += by_refits(X, y, qid, most, model.selected_[:1])
            judged = partial(error, y_test, qid_test)
            errors["greedy"].append([judged(X_test @ weights(model.path_, X.shape[1], k)) for k in SIZES])
            errors["pursuit"].append([judged(X_test @ weights(rival.path_, X.shape[1], k)) for k in SIZES])
            every.append(judged(RankRLSCV().fit(X, y, qid=qid).predict(X_test)))
            model = GreedyRankRLS(max_features=max(SIZES), rule="one_se").fit(X, y, qid=qid)
            chosen.append((model.n_features_, judged(model.predict(X_test))))
        print(f"\n{name}; all features {np.mean(every):.4f}")
        print("features  " + "".join(f"{k:>9}" for k in SIZES))
        for method, found in errors.items():
            print(f"{method:10}" + "".join(f"{value:9.4f}" for value in np.mean(found, axis=0)))
        sizes, values = np.array(chosen).T
        print(f"chosen by folds (one_se): {sizes.tolist()} features, {values.mean():.4f}")
        print(
            "seconds a path: greedy {:.2f}, pursuit {:.2f}, forward selection by refits about {:.0f}".format(
                *(seconds / 5)
            )
        )


def error(y: np.ndarray, qid: np.ndarray, scores: np.ndarray) -> float:
    """Of test queries."""
    return float(disagreement_error(y, scores, qid=qid))


def weights(path: object, n: int, k: int) -> np.ndarray:
    """Weights of the features after k stages."""
    part, out = path.at(min(k, path.n_stages)), np.zeros(n)
    out[part.indices] = part.coefficients[-1]
    return out


def by_refits(X: np.ndarray, y: np.ndarray, qid: np.ndarray, most: int, taken: np.ndarray) -> float:
    """What a path takes that judges every candidate by leave-query-out of a model of its own, from some of them."""
    some = np.setdiff1d(np.arange(X.shape[1]), taken)[:10]
    start = time.perf_counter()
    for j in some:
        leave_query_out(RankRLS(1.0), X[:, [*taken, j]], y, qid=qid)
    fits = sum(X.shape[1] - k for k in range(most))
    return (time.perf_counter() - start) / len(some) * fits


if __name__ == "__main__":
    main()
