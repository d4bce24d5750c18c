"""RankRLS beside scikit-survival on its data sets: C-index of new patients, seconds, and own estimates.

    python -m comparisons.survival --splits 10    # needs scikit-survival

In each split two thirds of the patients are fitted and the others are the test. Every method chooses on the training
patients alone: RankRLS by its held-out folds of patients, the others by five folds and the C-index. Seconds include the
choice. "estimate" is what the training data say less the test value: for RankRLS ``best_score_ - optimism_``, for the
others the mean over the folds of the chosen setting. The cause of death of flchain (``chapter``) is left out.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls import RankRLSCV, SparseRankRLSCV, survival_pairs
from rankrls.metrics import preference_accuracy, uno_concordance

Array = NDArray[np.float64]
WIDTHS = (0.001, 0.01, 0.1, 1.0)
STRATUM = 500
"""Of more patients only those of the same random stratum are compared in training."""
STUDIES = ("veterans", "breast cancer", "whas500", "gbsg2", "flchain")


def cohorts() -> Iterator[tuple[str, Array, Array, Array]]:
    """Features, times and events of the patients of each study; missing values are medians."""
    import pandas as pd
    from sksurv import datasets

    loaders = {
        "veterans": datasets.load_veterans_lung_cancer,
        "breast cancer": datasets.load_breast_cancer,
        "whas500": datasets.load_whas500,
        "gbsg2": datasets.load_gbsg2,
        "flchain": datasets.load_flchain,
    }
    for name, load in loaders.items():
        table, outcome = load()
        event, time = (outcome[column].astype(float) for column in outcome.dtype.names)
        table = pd.get_dummies(table.drop(columns="chapter", errors="ignore"), drop_first=True).astype(float)
        # a few patients of flchain died on the first day, which Cox models refuse
        yield name, table.fillna(table.median()).to_numpy(), np.maximum(time, 0.5), event


def rank_rls(model: Any, X: Array, time: Array, event: Array) -> tuple[Callable[[Array], Array], float]:
    strata = np.random.default_rng(0).permutation(len(X)) // STRATUM
    model.fit_pairs(X, *survival_pairs(time, event, qid=strata))
    return model.predict, model.best_score_ - np.nan_to_num(model.optimism_)


def linear(*data: Array) -> tuple[Callable[[Array], Array], float]:
    return rank_rls(RankRLSCV(scoring="pair_accuracy"), *data)


def gaussian(*data: Array) -> tuple[Callable[[Array], Array], float]:
    if len(data[0]) > 1000:
        return rank_rls(SparseRankRLSCV(scoring="pair_accuracy", gamma=WIDTHS, n_basis=200), *data)
    return rank_rls(RankRLSCV(scoring="pair_accuracy", kernel="rbf", gamma=WIDTHS), *data)


def searched(model: Any, grid: dict[str, Any], X: Array, time: Array, event: Array) -> tuple[Any, float]:
    from sklearn.model_selection import GridSearchCV, KFold
    from sksurv.util import Surv

    search = GridSearchCV(model, grid, cv=KFold(5, shuffle=True, random_state=0), error_score=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Surv.from_arrays(event == 1.0, time))
    return lambda new: -search.predict(new), float(search.best_score_)


def coxnet(X: Array, time: Array, event: Array) -> tuple[Any, float]:
    from sksurv.linear_model import CoxnetSurvivalAnalysis
    from sksurv.util import Surv

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = CoxnetSurvivalAnalysis(l1_ratio=0.9, alpha_min_ratio=0.01, n_alphas=20)
        alphas = path.fit(X, Surv.from_arrays(event == 1.0, time)).alphas_
    return searched(CoxnetSurvivalAnalysis(l1_ratio=0.9), {"alphas": [[alpha] for alpha in alphas]}, X, time, event)


def forest(X: Array, time: Array, event: Array) -> tuple[Any, float]:
    from sksurv.ensemble import RandomSurvivalForest

    model = RandomSurvivalForest(100, random_state=0, low_memory=True)
    return searched(model, {"min_samples_leaf": [5, 20]}, X, time, event)


def machine(X: Array, time: Array, event: Array) -> tuple[Any, float]:
    from sksurv.svm import FastSurvivalSVM

    grid = {"alpha": 4.0 ** np.arange(-5, 6, 2)}
    return searched(FastSurvivalSVM(rank_ratio=1.0, max_iter=50, random_state=0), grid, X, time, event)


METHODS = {
    "RankRLSCV, linear": linear,
    "RankRLSCV, Gaussian": gaussian,
    "Coxnet": coxnet,
    "FastSurvivalSVM": machine,
    "RandomSurvivalForest": forest,
}


def split(fit: Callable[..., Any], X: Array, time: Array, event: Array, seed: int) -> list[float]:
    """Harrell's and Uno's C of the test patients, the estimate, and seconds."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: 2 * len(X) // 3], order[2 * len(X) // 3 :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    scaled = (X - mean) / np.where(spread > 0.0, spread, 1.0)
    start = process_time()
    predict, estimate = fit(scaled[train], time[train], event[train])
    seconds = process_time() - start
    scores = predict(scaled[test])
    harrell = preference_accuracy(scores, *survival_pairs(time[test], event[test]))
    tau = float(np.quantile(time[event == 1.0], 0.9))
    return [harrell, uno_concordance(scores, time[test], event[test], tau=tau), estimate, seconds]


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--studies", nargs="+", choices=STUDIES, default=STUDIES)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    arguments = parser.parse_args()
    print("study          method                  C-index        Uno's C  estimate       seconds")
    for name, X, time, event in cohorts():
        if name not in arguments.studies:
            continue
        for method in arguments.methods:
            found = np.array([split(METHODS[method], X, time, event, seed) for seed in range(arguments.splits)])
            harrell, uno, estimate, seconds = found.T
            error = harrell.std(ddof=1) / len(harrell) ** 0.5
            gap = estimate - harrell
            value = f"{harrell.mean():.3f} ± {error:.3f}  {uno.mean():.3f}    {gap.mean():+.3f} ± {gap.std():.3f}"
            print(f"{name:15s}{method:24s}{value}  {seconds.mean():.2f}", flush=True)


if __name__ == "__main__":
    main()
