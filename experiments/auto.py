"""What AutoRankRLS reaches on queries it never saw, against RankRLSCV, and how optimistic its own held-out value is.

    python -m experiments.auto --data DIR                 # LETOR's folds: train on trainingset, judge on testset
    python -m experiments.auto --data DIR --splits 10     # repeated halves of the queries: own value, corrected, test
    python -m experiments.auto --sizes DIR                # LightGBM's example (examples/lambdarank in its sources)
    python -m experiments.auto --documentation 250        # so many queries of make demo to learn from, 400 to judge on
    python -m experiments.auto --tables                   # scikit-learn's tables, one ranking each, ten halves
    python -m experiments.auto --samples 40               # the same as --splits, on samples of 30 synthetic queries

Everything is chosen on training queries by their held-out NDCG@10 (of the tables by leave-pair-out); test queries judge
and nothing else. Differences are over test queries, with the standard error of their mean. DIR holds LETOR collections
in folders named after them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from experiments._tables import MissingDataError
from experiments.letor import FOLDERS, Collection, Rows, find
from rankrls import AutoRankRLS, RankRLSCV, group_to_qid
from rankrls.io import load_letor
from rankrls.metrics import Measure, resolve_measure

METHODS: dict[str, Callable[[str], Any]] = {
    "RankRLSCV": lambda scoring: RankRLSCV(scoring=scoring),
    "auto": lambda scoring: AutoRankRLS(scoring=scoring),
    "auto, in queries": lambda scoring: AutoRankRLS(scoring=scoring, within_query=True),
    "the same, best": lambda scoring: AutoRankRLS(scoring=scoring, within_query=True, rule="best"),
}
TABLES = {"diabetes": load_diabetes, "breast cancer": load_breast_cancer, "wine": load_wine}


def scores_of(model: Any, rows: Rows) -> np.ndarray:
    """What a model says of test rows."""
    return np.asarray(model.predict(rows.X, qid=rows.qid) if isinstance(model, AutoRankRLS) else model.predict(rows.X))


def judged(rows: Rows, scores: np.ndarray) -> np.ndarray:
    """NDCG@10 of each test query that has two labels."""
    return resolve_measure("ndcg@10")(rows.y, scores, qid=rows.qid, per_query=True)


def chosen(model: Any) -> str:
    """What was chosen, in a few words."""
    return (
        f"{model.best_params_['model']}/{model.best_params_['scale']}" if isinstance(model, AutoRankRLS) else "linear"
    )


def collections(data: Path, wanted: str) -> Iterator[Collection]:
    """Those that are there, or the one that is named."""
    for name in FOLDERS if wanted == "auto" else (wanted,):
        try:
            yield find(data, name)
        except MissingDataError as error:
            print(error, file=sys.stderr)


def folds(data: Path, wanted: str) -> None:
    """Train on each fold's training queries, judge on its test queries."""
    for collection in collections(data, wanted):
        parts = (collection.load(number, scaled=False) for number in collection.folds)
        compare(collection.name, ((fold.train, fold.test) for fold in parts))


def sized(folder: Path) -> tuple[Rows, Rows]:
    """rank.train and rank.test, whose queries are in files of sizes beside them."""
    parts: list[Rows] = []
    for name in ("rank.train", "rank.test"):
        like: Any = {"n_features": parts[0].X.shape[1]} if parts else {}
        table = load_letor(folder / name, dense=True, zero_based=False, **like)
        sizes = np.loadtxt(folder / f"{name}.query", dtype=int)
        parts.append(Rows(table.X, table.y, group_to_qid(sizes, n_rows=len(table.y))))
    return parts[0], parts[1]


def documentation(count: int) -> tuple[Rows, Rows]:
    """Some training queries of the demo and 400 of its unseen ones, with all features."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from search_documentation import read_documentation

    data, found = read_documentation(), []
    for table, size in ((data.train, count), (data.test, 400)):
        taken = np.random.default_rng(0).permutation(len(table.queries))[:size]
        found.append(Rows(*table.of(np.isin(np.arange(len(table.queries)), taken)).rows()))
    return found[0], found[1]


def compare(title: str, parts: Iterable[tuple[Rows, Rows]]) -> None:
    """Every method learns from the first of each pair, and is judged on the second."""
    values: dict[str, list[np.ndarray]] = {name: [] for name in METHODS}
    seconds, choices = dict.fromkeys(METHODS, 0.0), {name: [] for name in METHODS}
    for train, test in parts:
        for name, make in METHODS.items():
            start = time.perf_counter()
            model = make("ndcg@10").fit(train.X, train.y, qid=train.qid)
            seconds[name] += time.perf_counter() - start
            values[name].append(judged(test, scores_of(model, test)))
            choices[name].append(chosen(model))
    report(title, values, seconds, choices, len(choices["auto"]))


def report(
    title: str,
    values: dict[str, list[np.ndarray]],
    seconds: dict[str, float],
    choices: dict[str, list[str]],
    fits: int,
) -> None:
    """One line a method: its mean, what it is ahead of the default, seconds of a fit, and what it chose."""
    print(title)
    base = np.concatenate(values["RankRLSCV"])
    for name, found in values.items():
        every = np.concatenate(found)
        ahead = every - base
        known = ~np.isnan(ahead)
        error = ahead[known].std(ddof=1) / np.sqrt(known.sum())
        ahead_by = f"{np.nanmean(ahead):+.4f} ± {error:.4f}"
        took = f"{seconds[name] / fits:6.1f} s"
        print(f"  {name:18s} {np.nanmean(every):.4f}  {ahead_by}  {took}  {' '.join(choices[name])}", flush=True)


def splits(data: Path, wanted: str, count: int) -> None:
    """Halves of a collection's queries: the chosen model's own value, the same corrected, and what it reaches."""
    for collection in collections(data, wanted):
        fold = collection.load(collection.folds[0], scaled=False)
        parts = (fold.train, fold.validation, fold.test)
        X, y, qid = (np.concatenate([getattr(part, name) for part in parts]) for name in ("X", "y", "qid"))
        found = []
        for seed in range(count):
            ids = np.random.default_rng(seed).permutation(np.unique(qid))
            first = np.isin(qid, ids[: len(ids) // 2])
            model = AutoRankRLS().fit(X[first], y[first], qid=qid[first])
            test = Rows(X[~first], y[~first], qid[~first])
            reached = np.nanmean(judged(test, scores_of(model, test)))
            found.append((model.best_score_ + model.optimism_, model.best_score_, reached))
        print(f"{collection.name}, {count} halves of {len(ids)} queries")
        optimism(found)


def optimism(found: list[tuple[float, float, float]]) -> None:
    """The chosen model's own value and the corrected one, against what it reached."""
    own, corrected, reached = np.array(found).T
    for name, values in (("own held-out value", own), ("less its optimism", corrected)):
        apart = values - reached
        error = apart.std(ddof=1) / np.sqrt(len(apart))
        gap = f"{apart.mean():+.4f} ± {error:.4f} against {reached.mean():.4f} on the rest"
        print(f"  {name:20s} {values.mean():.4f}, {gap}")


def synthetic(rng: np.random.Generator, queries: int) -> Rows:
    """Ten items a query, three grades, a line and a product of features under noise."""
    X = rng.normal(size=(queries * 10, 5))
    hidden = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 1.5 * rng.normal(size=len(X))
    return Rows(X, np.digitize(hidden, [0.3, 1.2]).astype(float), np.repeat(np.arange(queries), 10))


def samples(count: int) -> None:
    """Choices on 30 synthetic queries, judged on 600 others."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        train = synthetic(rng, 30)
        model = AutoRankRLS().fit(train.X, train.y, qid=train.qid)
        test = synthetic(rng, 600)
        reached = float(np.nanmean(judged(test, scores_of(model, test))))
        found.append((model.best_score_ + model.optimism_, model.best_score_, reached))
    print(f"{count} samples of 30 synthetic queries")
    optimism(found)


def table_splits() -> Iterator[tuple[str, Rows, Rows]]:
    """Ten halves of each table."""
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        for seed in range(10):
            order = np.random.default_rng(seed).permutation(len(y))
            first, second = order[: len(y) // 2], order[len(y) // 2 :]
            yield name, Rows(X[first], y[first], None), Rows(X[second], y[second], None)


def tables() -> None:
    """One ranking of all rows: pairs of test rows in the right order."""
    found: dict[str, dict[str, list[float]]] = {}
    for table, train, test in table_splits():
        for name in ("RankRLSCV", "auto"):
            model = METHODS[name]("pair_accuracy").fit(train.X, train.y)
            found.setdefault(table, {}).setdefault(name, []).append(
                Measure("pair_accuracy")(test.y, model.predict(test.X))
            )
    for table, values in found.items():
        base, auto = (np.array(values[name]) for name in ("RankRLSCV", "auto"))
        error = (auto - base).std(ddof=1) / np.sqrt(len(base))
        print(f"{table:14s} {base.mean():.4f} {auto.mean():.4f}  {(auto - base).mean():+.4f} ± {error:.4f}", flush=True)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKRLS_DATA"), help="folder of collections")
    parser.add_argument("--collection", default="auto", help="one collection only, by its name")
    parser.add_argument("--splits", type=int, default=0, help="so many halves of the queries, for the optimism")
    parser.add_argument("--samples", type=int, default=0, help="so many samples of synthetic queries")
    parser.add_argument("--sizes", type=Path, help="folder of rank.train and rank.test with sizes beside them")
    parser.add_argument("--documentation", type=int, default=0, help="so many queries of the demo to learn from")
    parser.add_argument("--tables", action="store_true", help="scikit-learn's tables")
    options = parser.parse_args()
    if options.samples:
        samples(options.samples)
    elif options.tables:
        tables()
    elif options.sizes is not None:
        compare("LightGBM's example", [sized(options.sizes)])
    elif options.documentation:
        compare("documentation search", [documentation(options.documentation)])
    elif options.data is None:
        parser.error("give --data DIR, or --tables")
    elif options.splits:
        splits(Path(options.data), options.collection, options.splits)
    else:
        folds(Path(options.data), options.collection)


if __name__ == "__main__":
    main()
