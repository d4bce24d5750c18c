"""The methods of the LETOR experiment: each is fitted on one fold and returns scores of the test documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _letor_data import Collection, Fold, Rows, joined
from numpy.typing import NDArray

from rankrls import RankBoost, RankRLSCV, RankSVMCV, SparseRankRLSCV
from rankrls.metrics import Measure, evaluate

CHOICE = Measure("map", convention="letor")
"""What everything is chosen by, on the validation queries."""
ALPHAS = tuple(2.0**k for k in range(-15, 26))
"""The paper does not give its grid: from where regularization has no effect to beyond the largest eigenvalue."""
CS = tuple(2.0**k for k in range(-26, 11))
SPARSE_ALPHAS, GAMMAS, N_BASIS = tuple(2.0**k for k in range(-12, 23, 2)), tuple(2.0**k for k in range(-5, 2)), 600
ROUNDS, TREES, PATIENCE = 500, 1000, 100
TREE_GRID = {"num_leaves": (4, 15, 31), "min_data_in_leaf": (20, 100), "learning_rate": (0.05,)}
TIES = ("include", "exclude")

Fitted = tuple[Callable[[Any], Any], dict[str, Any]]


@dataclass(frozen=True)
class Method:
    """One row of the tables.

    Attributes
    ----------
    name, what : str
    fit : callable
        Given a fold, returns a function from features to scores, and what was chosen.
    paper : str, optional
        The name in the paper's tables.
    """

    name: str
    what: str
    fit: Callable[[Fold], Fitted]
    paper: str | None = None


def _validated(model: Any, fold: Fold, chosen: tuple[str, ...], *, one_ranking: bool = False) -> Fitted:
    """Fit on the training queries and choose on the validation queries."""
    train, held = fold.train, fold.validation
    qid = None if one_ranking else train.qid
    model.fit(train.X, train.y, qid=qid, X_val=held.X, y_val=held.y, qid_val=held.qid)
    return model.predict, {name.rstrip("_"): getattr(model, name) for name in chosen}


def _rankrls(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE, balance="pairs", ties=TIES), fold, ("alpha_", "best_params_"))


def _rls(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE, balance="pairs", regression_weight=1.0), fold, ("alpha_",))


def _rls_with_intercept(fold: Fold) -> Fitted:
    return _validated(RankRLSCV(ALPHAS, scoring=CHOICE), fold, ("alpha_",), one_ranking=True)


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
    return _validated(RankSVMCV(CS, scoring=CHOICE, balance="pairs"), fold, ("C_",))


def _rankboost(fold: Fold) -> Fitted:
    return _validated(RankBoost(ROUNDS, scoring=CHOICE, balance="pairs"), fold, ("n_estimators_",))


def _lambdamart(fold: Fold) -> Fitted:
    import lightgbm

    held = fold.validation
    fixed = {"objective": "lambdarank", "metric": "None", "seed": 0, "num_threads": 1, "verbosity": -1}

    def validation_map(scores: Any, data: Any) -> tuple[str, float, bool]:
        return "map", evaluate(held.y, scores, qid=held.qid, measures=["map"], convention="letor")["map"], True

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
    """Documents of each query, which stand together in LETOR's files."""
    starts = np.flatnonzero(np.append(True, rows.qid[1:] != rows.qid[:-1]))
    return np.diff(np.append(starts, len(rows.qid)))


METHODS = (
    Method("RankRLS", "every pair weighs the same, as in the paper; ties in or out", _rankrls, "RankRLS"),
    Method("RLS", "regularized least squares on the labels, no intercept", _rls, "RLS"),
    Method("RLS + b", "the same with an intercept: RankRLS on all documents as one ranking", _rls_with_intercept),
    Method("no split", "RankRLS by leave-query-out on the training and validation queries together", _without_split),
    Method("Gaussian", f"sparse RankRLS on {N_BASIS} documents, leave-query-out on the same queries", _gaussian),
    Method("RankSVM", "squared hinge, every pair weighs the same; the paper has the hinge", _ranksvm, "RankSVM"),
    Method("RankBoost", "every pair weighs the same, as in the paper", _rankboost, "RankBoost"),
    Method("LambdaMART", "LightGBM, objective lambdarank, a grid of 6", _lambdamart),
)


def known_methods() -> dict[str, Method]:
    """Those whose packages are installed, by name."""
    return {m.name: m for m in METHODS if m.name != "LambdaMART" or find_spec("lightgbm")}


def published(collection: Collection) -> list[Method]:
    """LETOR's own predictions, where they are beside the folds in ``official_results/NAME``: a score a line."""
    out = []
    for name in ("RankSVM", "RankBoost"):
        folder = collection.folder / "official_results" / name
        if all(len(list(folder.glob(f"{number}_Prediction*"))) == 1 for number in collection.folds):
            what = f"the predictions of {name} that LETOR published"
            out.append(Method(f"LETOR {name}", what, _reader(folder), name))
    return out


def _reader(folder: Path) -> Callable[[Fold], Fitted]:
    def read(fold: Fold) -> Fitted:
        (path,) = folder.glob(f"{fold.number}_Prediction*")
        scores = np.loadtxt(path)
        if scores.shape != fold.test.y.shape:
            raise ValueError(f"{path} has {len(scores)} scores; fold {fold.number} has {len(fold.test.y)} documents.")
        return (lambda X: scores), {"file": path.name}

    return read
