"""Whether held-out values are those of new data: on noise, and on the survival data of scikit-survival.

    python -m comparisons.honesty noise --sets 300
    python -m comparisons.honesty survival --splits 10    # needs scikit-survival

On noise every value is one half in the mean. A fixed alpha and the nested estimate have that value themselves, and a
choice has it together with its optimism. On real data half of the patients choose and fit a model, and the others are
the test: what is printed is the value less its optimism, minus the test value.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankrls import (
    AutoRankRLS,
    CGRankRLS,
    GreedyRankRLS,
    InputWarning,
    RankingPursuitCV,
    RankRLSCV,
    RankSVMCV,
    SparseRankRLSCV,
    survival_pairs,
)
from rankrls.metrics import preference_accuracy
from rankrls.model_selection import nested_estimate

Array = NDArray[np.float64]
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]
WIDTHS = (0.001, 0.01, 0.1, 1.0)
CHOOSERS: dict[str, Callable[[], Any]] = {
    "RankRLSCV, linear": lambda: RankRLSCV(),
    "RankRLSCV, three widths": lambda: RankRLSCV(kernel="rbf", gamma=WIDTHS[1:]),
    "RankRLSCV, three widths, 5 folds": lambda: RankRLSCV(kernel="rbf", gamma=WIDTHS[1:], cv=5),
    "SparseRankRLSCV": lambda: SparseRankRLSCV(gamma=WIDTHS[1:], n_basis=50),
    "CGRankRLS": lambda: CGRankRLS(),
    "CGRankRLS, 5 folds": lambda: CGRankRLS(cv=5),
    "RankingPursuitCV": lambda: RankingPursuitCV(30, gamma=0.1),
    "RankingPursuitCV, features": lambda: RankingPursuitCV(30, dictionary="features"),
    "GreedyRankRLS": lambda: GreedyRankRLS(scoring="disagreement"),
    "RankSVMCV": lambda: RankSVMCV(),
    "AutoRankRLS": lambda: AutoRankRLS(scoring="disagreement"),
}


def of_queries(name: str, seed: int, features: int) -> tuple[float, float]:
    """The disagreement that a choice reports on noise of 20 queries of 6 rows, and its optimism."""
    rng = np.random.default_rng(seed)
    X, y, qid = rng.normal(size=(120, features)), rng.normal(size=120), np.repeat(np.arange(20), 6)
    model = CHOOSERS[name]().fit(X, y, qid=qid)
    subtracted = isinstance(model, AutoRankRLS)
    return model.best_score_, 0.0 if subtracted else model.optimism_


def noise_pairs(kind: str, seed: int) -> tuple[Array, Pairs, tuple[Array, Array] | None]:
    """Items without any relation to their preferences; for times also these and the events."""
    rng = np.random.default_rng(seed)
    if kind == "all pairs":
        X, y = rng.normal(size=(60, 300)), rng.normal(size=60)
        first, second = np.triu_indices(60, 1)
        turn = y[first] < y[second]
        return X, (np.where(turn, second, first), np.where(turn, first, second)), None
    if kind == "votes":
        first = rng.integers(60, size=360)
        return rng.normal(size=(60, 20)), (first, (first + rng.integers(1, 60, size=360)) % 60), None
    X = rng.normal(size=(120, 300)) if kind == "genes" else rng.normal(size=(100, 5))
    lasted, seen = rng.exponential(size=len(X)), 1.5 * rng.exponential(size=len(X))
    time, event = np.minimum(lasted, seen), (lasted <= seen).astype(float)
    return X, survival_pairs(time, event), (time, event)


def of_items(kind: str, options: dict[str, Any], seed: int) -> list[float]:
    """The value of a fixed alpha, whether its interval has one half, that of a choice, its optimism, and nested."""
    X, pairs, times = noise_pairs(kind, seed)
    fixed = RankRLSCV((10.0,), scoring="pair_accuracy", kernel=options.get("kernel", "linear")).fit_pairs(X, *pairs)
    inside = fixed.cv_results_["low"][0] <= 0.5 <= fixed.cv_results_["high"][0]
    model = RankRLSCV(scoring="pair_accuracy", **options).fit_pairs(X, *pairs)
    nested = np.nan
    if times is not None:
        nested = nested_estimate(model, X, times[0], event=times[1], random_state=seed).score
    return [fixed.best_score_, float(inside), model.best_score_, model.optimism_, nested]


def noise(sets: int) -> None:
    """Print both tables."""
    print(f"Disagreement on noise, 20 queries of 6 rows, mean of {sets} sets: value + optimism, standard error")
    for name in CHOOSERS:
        for features in (3, 10, 50):
            found = np.array([of_queries(name, seed, features) for seed in range(sets)])
            value, optimism = found.mean(axis=0)
            error = found.sum(axis=1).std() / np.sqrt(sets)
            row = f"{value:.4f} + {optimism:.4f} = {value + optimism:.4f}  ± {error:.4f}"
            print(f"  {name:34s}{features:4d} features  {row}", flush=True)
    print(f"Share of right pairs on noise, mean of {sets} sets")
    print("                       fixed alpha  in interval   choice  optimism  difference    nested")
    for kind in ("all pairs", "votes", "genes", "times"):
        for options in ({}, {"kernel": "rbf", "gamma": WIDTHS[1:]}):
            found = np.array([of_items(kind, options, seed) for seed in range(sets)])
            fixed, inside, choice, optimism, nested = found.mean(axis=0)
            name = f"{kind}, {options.get('kernel', 'linear')}"
            row = f"{fixed:11.4f} {inside:12.3f} {choice:8.4f} {optimism:9.4f} {choice - optimism:11.4f} {nested:9.4f}"
            print(f"  {name:20s} {row}", flush=True)


def cohorts() -> Iterator[tuple[str, Array, Array, Array]]:
    """Features, times and events of the patients of each study."""
    import pandas as pd
    from sksurv import datasets

    loaders = {
        "whas500": datasets.load_whas500,
        "veterans": datasets.load_veterans_lung_cancer,
        "breast cancer": datasets.load_breast_cancer,
        "gbsg2": datasets.load_gbsg2,
    }
    for name, load in loaders.items():
        table, outcome = load()
        event, time = (outcome[column].astype(float) for column in outcome.dtype.names)
        yield name, pd.get_dummies(table, drop_first=True).to_numpy(dtype=np.float64), time, event


def apart(X: Array, time: Array, event: Array, options: dict[str, Any], held_out: dict[str, Any], seed: int) -> Array:
    """The reported C-index of half of the patients, and that of the model on the others."""
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: len(X) // 2], order[len(X) // 2 :]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    scaled = (X - mean) / np.where(spread > 0.0, spread, 1.0)
    winners, losers = survival_pairs(time[train], event[train])
    given = {"groups": losers} if "groups" in held_out else held_out
    model = RankRLSCV(scoring="pair_accuracy", **options).fit_pairs(scaled[train], winners, losers, **given)
    reached = preference_accuracy(model.predict(scaled[test]), *survival_pairs(time[test], event[test]))
    return np.array([model.best_score_ - np.nan_to_num(model.optimism_), reached])


def survival(splits: int) -> None:
    """Print what is reported for each study, and for comparison what other hold-outs would report."""
    print(f"C-index, mean of {splits} splits: reported, test, difference and its standard error over splits")
    ways: dict[str, dict[str, Any]] = {"items": {}, "events": {"groups": None}, "votes": {"new": "votes"}}
    for name, X, time, event in cohorts():
        for options in ({}, {"kernel": "rbf", "gamma": WIDTHS}):
            for way, held_out in ways.items():
                found = np.array([apart(X, time, event, options, held_out, seed) for seed in range(splits)])
                reported, reached = found.mean(axis=0)
                difference = found[:, 0] - found[:, 1]
                row = f"{reported:.3f}  {reached:.3f}  {difference.mean():+.3f}  ± {difference.std() / splits**0.5:.3f}"
                print(f"  {name:15s}{options.get('kernel', 'linear'):8s}{way:8s}{row}", flush=True)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("noise", "survival"))
    parser.add_argument("--sets", type=int, default=300, help="sets of noise")
    parser.add_argument("--splits", type=int, default=10, help="splits of each study")
    given = parser.parse_args()
    warnings.simplefilter("ignore", InputWarning)
    if given.study == "noise":
        noise(given.sets)
    else:
        survival(given.splits)


if __name__ == "__main__":
    main()
