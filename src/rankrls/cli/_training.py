"""What ``fit`` and ``cv`` have in common: reading, choosing, judging, printing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankrls.cli import _options
from rankrls.cli._data import describe, describe_rows, read
from rankrls.cli._judging import Judgement, judge, measures_for, show
from rankrls.cli._models import Learning, with_scaler
from rankrls.cli._report import Report
from rankrls.metrics import resolve_measure

if TYPE_CHECKING:
    from rankrls.io import LetorTable

__all__ = [
    "Plan",
    "Trained",
    "as_dict",
    "judge_all",
    "plan",
    "print_choice",
    "print_data",
    "print_measures",
    "read_tables",
    "train",
]

Tables = dict[str, "LetorTable"]


@dataclass(frozen=True)
class Plan:
    """The options, checked: nothing has been read yet."""

    learning: Learning
    estimator: Any
    scaler: Any
    measures: tuple[str, ...] | None


@dataclass(frozen=True)
class Trained:
    """The fitted estimator, and the model to save: the same, or a pipeline that ends in it."""

    estimator: Any
    model: Any


def plan(learning: Learning, *, vali: Path | None, measures: str | None) -> Plan:
    """Check the options before any file is read."""
    if vali is not None and learning.folds is not None:
        raise ValueError("--vali and --cv exclude each other: choose by validation data or by folds.")
    names = None if measures is None else _options.parse_names("--metrics", measures)
    for name in names or ():
        resolve_measure(name, learning.convention)
    return Plan(learning, learning.estimator(), learning.scaler(), names)


def read_tables(
    report: Report, files: dict[str, Path | None], plan: Plan, everything: bool, features: int | None
) -> Tables:
    """Read and scale the files that are there; all take the shape of the training data, which come first."""
    if features is not None and features < 1:
        raise ValueError(f"--features must be at least 1; got {features}.")
    out: Tables = {}
    dense: Any = "auto" if plan.scaler is None else True  # scaling fills what was 0
    zero_based: Any = "auto"
    for role, path in files.items():
        if path is None:
            continue
        queries: Any = "ignored" if everything else "required"
        try:
            table = read(path, report, queries=queries, n_features=features, zero_based=zero_based, dense=dense)
        except ValueError as error:
            if not out:
                raise
            had = f"{files['train']} has {features} features; --features N sets another number"
            raise ValueError(f"{error} ({had}.)") from error
        features, zero_based, dense = table.n_features, table.zero_based, isinstance(table.X, np.ndarray)
        if plan.scaler is not None:
            with report.working("scaling", f"scaling {path}"):
                # the raw features are given back: only one copy of large data stays
                table = replace(table, X=_scaled(plan.scaler, table, first=not out))
        out[role] = table
    return out


def _scaled(scaler: Any, table: LetorTable, *, first: bool) -> Any:
    return (scaler.fit_transform if first else scaler.transform)(table.X, qid=table.qid)


def train(plan: Plan, tables: Tables, report: Report) -> Trained:
    """Choose and fit."""
    data, vali = tables["train"], tables.get("validation")
    estimator = plan.estimator
    with report.working("fitting", "choosing and fitting"):
        if vali is None:
            estimator.fit(data.X, data.y, qid=data.qid)
        else:
            estimator.fit(data.X, data.y, qid=data.qid, X_val=vali.X, y_val=vali.y, qid_val=vali.qid)
    if estimator.alpha_at_edge_:
        report.note(
            f"the chosen alpha, {estimator.alpha_:.3g}, is the {_edge(estimator)} of its grid: a wider one "
            "(--alphas lo:hi:n) may do better."
        )
    return Trained(estimator, with_scaler(plan.scaler, estimator))


def _edge(estimator: Any) -> str:
    tried = estimator.cv_results_["alpha"]
    middle = float(tried.min()) * float(tried.max())
    return "largest" if estimator.alpha_**2 > middle else "smallest"


def judge_all(plan: Plan, tables: Tables, trained: Trained, report: Report) -> dict[str, dict[str, Judgement]]:
    """The measures on validation data or held-out training queries, and on the test data."""
    metric, convention = plan.learning.metric, plan.learning.convention
    out: dict[str, dict[str, Judgement]] = {}
    with report.working("judging", "judging"):
        for role, table in tables.items():
            if role == "train" and "validation" in tables:
                continue
            held_out = role == "train"
            scores = trained.estimator.held_out_scores_ if held_out else trained.estimator.predict(table.X)
            if scores is None:
                continue
            names = plan.measures if plan.measures is not None else measures_for(table.y, (metric,))
            out["held out" if held_out else role] = judge(
                names, convention, table, scores, must_judge=plan.measures or ()
            )
    return out


def as_dict(
    command: str, plan: Plan, tables: Tables, trained: Trained, judged: dict[str, dict[str, Judgement]], report: Report
) -> dict[str, Any]:
    """Everything, for JSON."""
    estimator = trained.estimator
    return {
        "command": command,
        "data": {role: describe(table) for role, table in tables.items()},
        "scale": plan.learning.scale,
        "chosen": {**estimator.best_params_, "alpha": estimator.alpha_},
        "alpha_at_edge": bool(estimator.alpha_at_edge_),
        "selection": {
            "how": estimator.selection_,
            "rule": estimator.rule,
            "measure": plan.learning.metric,
            "convention": plan.learning.convention,
            "value": estimator.best_score_,
            "standard_error": estimator.best_score_error_,
        },
        "measures": {
            role.replace(" ", "_"): {name: j.as_dict() for name, j in found.items()} for role, found in judged.items()
        },
        "seconds": report.seconds,
        "notes": report.notes,
    }


def print_data(report: Report, tables: Tables) -> None:
    """What was read."""
    rows = describe_rows({role: describe(table) for role, table in tables.items()})
    report.print_table("Data", ["", "file", "labels", "rows", "queries", "features"], rows, left=3)


def print_choice(report: Report, plan: Plan, trained: Trained) -> None:
    """What was chosen, and by what."""
    estimator = trained.estimator
    chosen = {**estimator.best_params_, "alpha": estimator.alpha_}
    rows = [[name, f"{v:.6g}" if isinstance(v, float) else str(v)] for name, v in chosen.items()]
    if plan.learning.scale != "none":
        rows.append(["scale", f"{plan.learning.scale}, inside each query"])
    rows.append([plan.learning.metric, show(estimator.best_score_, estimator.best_score_error_)])
    grid = len(estimator.cv_results_["alpha"])
    report.print_table(f"Chosen by {estimator.selection_}, from {grid} candidates", ["", ""], rows, left=2)


def print_measures(report: Report, trained: Trained, judged: dict[str, dict[str, Judgement]]) -> None:
    """One line a measure, one column a set of rankings."""
    if not judged:
        return
    names = list(dict.fromkeys(name for found in judged.values() for name in found))
    rows = [
        [
            name,
            *(
                show(found[name].value, found[name].standard_error) if name in found else ""
                for found in judged.values()
            ),
        ]
        for name in names
    ]
    report.print_table("Measures, ± standard error over queries", ["", *judged], rows)
