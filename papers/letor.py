"""RankRLS, RLS and later methods on the LETOR collections: tables 1 to 7 of the 2007 paper.

Section 3.1 of Pahikkala, Tsivtsivadze, Airola, Boberg, Salakoski: Learning to Rank with Pairwise Regularized
Least-Squares (SIGIR 2007 workshop on learning to rank for information retrieval): features scaled to 0..1 inside each
query, the five official folds, everything chosen by the MAP of the validation queries. Every pair of methods is tested
over the test queries. Where a collection's folder holds official_results/RankSVM or RankBoost, with files
1_Prediction... to 5_Prediction... of one score a line, these are judged too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from papers._tables import MissingDataError, Table, paper_figures
from rankrls import RankBoost, RankRLSCV, RankSVMCV, SparseRankRLSCV
from rankrls.comparison import compare_per_query
from rankrls.io import load_letor
from rankrls.metrics import Measure, evaluate
from rankrls.preprocessing import QueryMinMaxScaler

FOLDERS = {
    "ohsumed": ("ohsumed",),
    "trec2003": ("trec2003", "td2003"),
    "trec2004": ("trec2004", "td2004"),
    "mq2008": ("mq2008",),
}
"""A collection is the folder of Fold1, Fold2, ... that is named after it, or stands in one that is."""
_FILES = (("trainingset.txt", "validationset.txt", "testset.txt"), ("train.txt", "vali.txt", "test.txt"))
"""LETOR renamed its files between versions."""
MEASURES = ("map", *(f"ndcg@{k}" for k in range(1, 11)), *(f"p@{k}" for k in range(1, 11)))

CHOICE = Measure("map", convention="letor")
"""What everything is chosen by, on the validation queries."""
ALPHAS = tuple(2.0**k for k in range(-15, 26))
"""The paper does not give its grid: from where regularization has no effect to beyond the largest eigenvalue."""
CS = tuple(2.0**k for k in range(-26, 11))
SPARSE_ALPHAS, GAMMAS, N_BASIS = tuple(2.0**k for k in range(-12, 23, 2)), tuple(2.0**k for k in range(-5, 2)), 600
ROUNDS, TREES, PATIENCE = 500, 1000, 100
TREE_GRID = {"num_leaves": (4, 15, 31), "min_data_in_leaf": (20, 100), "learning_rate": (0.05,)}
TIES = ("include", "exclude")


@dataclass(frozen=True)
class Rows:
    """Documents of queries, which stand together."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    qid: NDArray[Any]


@dataclass(frozen=True)
class Fold:
    number: int
    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True)
class Collection:
    name: str
    folder: Path

    @property
    def folds(self) -> tuple[int, ...]:
        return tuple(sorted(int(path.name[4:]) for path in self.folder.glob("Fold[0-9]")))

    def load(self, number: int, *, scaled: bool = True) -> Fold:
        """Features are scaled by the documents of their own query only, so nothing leaks between parts."""
        folder = self.folder / f"Fold{number}"
        names = next((names for names in _FILES if (folder / names[0]).is_file()), _FILES[0])
        parts: list[Rows] = []
        for name in names:
            width = {"n_features": parts[0].X.shape[1]} if parts else {}
            table = load_letor(folder / name, dense=True, zero_based=False, **width)
            X = QueryMinMaxScaler().fit_transform(table.X, qid=table.qid) if scaled else table.X
            parts.append(Rows(X, table.y, table.qid))
        return Fold(number, *parts)


def find(data: Path, name: str) -> Collection:
    """A collection below a folder, or the folder itself."""
    for first in sorted(data.rglob("Fold1")):
        folder = first.parent
        named = (data.resolve().name, *folder.relative_to(data).parts)
        if any(word in part.lower() for part in named for word in FOLDERS[name]):
            return Collection(name, folder)
    raise MissingDataError(f"no folder named after {name} with Fold1, Fold2, ... in it")


def joined(first: Rows, second: Rows) -> Rows:
    """Both, one after the other."""
    return Rows(*(np.concatenate((getattr(first, name), getattr(second, name))) for name in ("X", "y", "qid")))


Fitted = tuple[Callable[[Any], Any], dict[str, Any]]
"""A function from features to scores, and what was chosen."""


def _validated(model: Any, fold: Fold, *chosen: str, one_ranking: bool = False) -> Fitted:
    """Fit on the training queries and choose on the validation queries."""
    train, held = fold.train, fold.validation
    qid = None if one_ranking else train.qid
    model.fit(train.X, train.y, qid=qid, X_val=held.X, y_val=held.y, qid_val=held.qid)
    return model.predict, {name.rstrip("_"): getattr(model, name) for name in chosen}


def _rankrls(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE, balance="pairs", ties=TIES), fold, "alpha_", "best_params_")


def _rls(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE, balance="pairs", regression_weight=1.0), fold, "alpha_")


def _rls_with_intercept(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE), fold, "alpha_", one_ranking=True)


def _without_split(fold: Fold) -> Fitted:
    rows = joined(fold.train, fold.validation)
    model = RankRLSCV(ALPHAS, scoring=CHOICE, balance="pairs", ties=TIES).fit(rows.X, rows.y, qid=rows.qid)
    return model.predict, model.best_params_


def _gaussian(fold: Fold) -> Fitted:
    rows = joined(fold.train, fold.validation)
    graphs = {"balance": ("pairs", "examples", "queries"), "ties": TIES}
    model = SparseRankRLSCV(SPARSE_ALPHAS, scoring=CHOICE, n_basis=N_BASIS, kernel="rbf", gamma=GAMMAS, **graphs)
    return model.fit(rows.X, rows.y, qid=rows.qid).predict, model.best_params_


def _ranksvm(fold: Fold) -> Fitted:
    return _validated(RankSVMCV(CS, scoring=CHOICE, balance="pairs"), fold, "C_")


def _rankboost(fold: Fold) -> Fitted:
    return _validated(RankBoost(ROUNDS, scoring=CHOICE, balance="pairs"), fold, "n_estimators_")


def _lambdamart(fold: Fold) -> Fitted:
    import lightgbm

    held = fold.validation
    fixed = {"objective": "lambdarank", "metric": "None", "seed": 0, "num_threads": 1, "verbosity": -1}

    def validation_map(scores: Any, data: Any) -> tuple[str, float, bool]:
        return "map", CHOICE(held.y, scores, qid=held.qid), True

    def run(choice: dict[str, Any]) -> Any:
        data = lightgbm.Dataset(fold.train.X, fold.train.y, group=_sizes(fold.train))
        valid = lightgbm.Dataset(held.X, held.y, group=_sizes(held), reference=data)
        stop = lightgbm.early_stopping(PATIENCE, verbose=False)
        settings = {**fixed, "deterministic": True, "force_row_wise": True, **choice}
        return lightgbm.train(settings, data, TREES, valid_sets=[valid], feval=validation_map, callbacks=[stop])

    choices = [dict(zip(TREE_GRID, values, strict=True)) for values in product(*TREE_GRID.values())]
    runs = [run(choice) for choice in choices]
    best = max(range(len(runs)), key=lambda k: runs[k].best_score["valid_0"]["map"])
    return runs[best].predict, {"trees": runs[best].best_iteration, **choices[best]}


def _sizes(rows: Rows) -> NDArray[np.intp]:
    """Documents of each query."""
    starts = np.flatnonzero(np.append(True, rows.qid[1:] != rows.qid[:-1]))
    return np.diff(np.append(starts, len(rows.qid)))


def _published(folder: Path) -> Callable[[Fold], Fitted]:
    """LETOR's own predictions."""

    def read(fold: Fold) -> Fitted:
        (path,) = folder.glob(f"{fold.number}_Prediction*")
        scores = np.loadtxt(path)
        if len(scores) != len(fold.test.y):
            raise ValueError(f"{path} has {len(scores)} scores; fold {fold.number} has {len(fold.test.y)} documents.")
        return (lambda X: scores), {"file": path.name}

    return read


PAPER_METHODS = {"RankRLS": _rankrls, "RLS": _rls, "RankSVM": _ranksvm, "RankBoost": _rankboost}
"""Every pair weighs the same, as in the paper. RankRLS has ties in or out; RLS no intercept; RankSVM the squared hinge
(the paper: the hinge)."""
RIVALS = {"RLS + b": _rls_with_intercept, "no split": _without_split, "Gaussian": _gaussian, "LambdaMART": _lambdamart}
"""Beside the paper: RLS with an intercept; RankRLS, and sparse RankRLS on random documents, by leave-query-out on
training and validation queries together; LightGBM's trees."""


def methods_of(collection: Collection, *, later_methods: bool) -> dict[str, Callable[[Fold], Fitted]]:
    """The paper's, LETOR's own predictions where they are there, and later methods that are installed."""
    known = dict(PAPER_METHODS)
    for name in ("RankSVM", "RankBoost"):
        folder = collection.folder / "official_results" / name
        if folder.is_dir():
            known[f"LETOR {name}"] = _published(folder)
    if later_methods:
        known |= {name: fit for name, fit in RIVALS.items() if name != "LambdaMART" or find_spec("lightgbm")}
    return known


@dataclass(frozen=True)
class Outcome:
    """One method on one fold: what was chosen, seconds, and each measure of each test query."""

    chosen: dict[str, Any]
    seconds: float
    per_query: dict[str, NDArray[np.float64]]


def judge(fit: Callable[[Fold], Fitted], fold: Fold) -> Outcome:
    """Fit one method on one fold."""
    start = time.perf_counter()
    predict, chosen = fit(fold)
    seconds = time.perf_counter() - start
    scores = np.asarray(predict(fold.test.X), dtype=float)
    options: dict[str, Any] = {"measures": MEASURES, "convention": "letor", "per_query": True}
    return Outcome(chosen, seconds, evaluate(fold.test.y, scores, qid=fold.test.qid, **options))


def run(collection: Collection, *, quick: bool = False, later_methods: bool = False) -> Iterator[Table]:
    """Averages over the folds, as in the paper; tests over the test queries of all folds."""
    numbers = collection.folds[:1] if quick else collection.folds
    methods = methods_of(collection, later_methods=later_methods)
    if quick:
        methods.pop("RankSVM")
    outcomes: dict[str, list[Outcome]] = {name: [] for name in methods}
    for number in numbers:
        fold = collection.load(number)
        for name, fit in methods.items():
            outcomes[name].append(judge(fit, fold))
    yield table_of(collection.name, numbers, outcomes)


def table_of(name: str, numbers: tuple[int, ...], outcomes: dict[str, list[Outcome]]) -> Table:
    ours = {
        measure: {
            method: float(np.mean([o.per_query[measure].mean() for o in runs])) for method, runs in outcomes.items()
        }
        for measure in MEASURES
    }
    paper = paper_figures("letor", name)
    for row in paper.values():
        row |= {f"LETOR {method}": row[method] for method in ("RankSVM", "RankBoost")}
    seconds = ", ".join(f"{method} {np.mean([o.seconds for o in runs]):.2f}" for method, runs in outcomes.items())
    values = {method: np.concatenate([o.per_query["map"] for o in runs]) for method, runs in outcomes.items()}
    tests = f"Pairs of methods, MAP:\n{compare_per_query(values, random_state=0)}"
    title = f"LETOR {name}, test queries of folds {', '.join(map(str, numbers))}"
    return Table(title, ours, paper, 3, (f"Seconds of a fit: {seconds}.",), tests)
