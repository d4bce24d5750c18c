"""What ``fit`` and ``cv`` found, for people and for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls.cli._findings import columns_table, described_columns, file_tables, measure_tables, show
from rankrls.cli._report import Report, Table
from rankrls.cli._training import Data, Learned, Plan
from rankrls.io.data import few
from rankrls.selection.search import choices_at_edges

__all__ = ["as_dict", "choice_table", "described", "measured", "model_tables", "tables"]

_SELECTION = {"how": "selection_", "rule": "rule", "value": "best_score_", "standard_error": "best_score_error_"}

_REACHED = "alpha C n_features n_iter n_support n_estimators stopped optimism nested_score nested_score_error"
"""Fitted attributes that say what a learner has come to, beside what it chose."""


def described(data: Data) -> dict[str, Any]:
    """What was read: ``data``, and where there are preferences ``pairs``."""
    out: dict[str, Any] = {"data": {role: table.summary() for role, table in data.tables.items()}}
    if data.items is not None:
        about = data.items
        out["items"] = {"path": about.path, "sha256": about.sha256, "features": [*about.feature_names]}
    if data.pairs:
        out["pairs"] = {role: pairs.summary() for role, pairs in data.pairs.items()}
    return out


def chosen(plan: Plan) -> dict[str, Any]:
    """What was chosen."""
    estimator = plan.estimator
    out = dict(getattr(estimator, "best_params_", {}))
    for name in _REACHED.split():
        if hasattr(estimator, f"{name}_"):
            out.setdefault(name, getattr(estimator, f"{name}_"))
    return out


def measured(found: Learned) -> dict[str, Any]:
    """The measures of each role."""
    return {role: {name: j.as_dict() for name, j in judged.items()} for role, judged in found.judged.items()}


def as_dict(command: str, found: Learned, report: Report) -> dict[str, Any]:
    """Everything, for JSON."""
    estimator, options = found.estimator, found.plan.options
    out = {
        "command": command,
        **described(found.data),
        "method": options.method,
        "scale": options.scale,
        "chosen": chosen(found.plan),
        **{f"{name}_at_edge": at_edge for name, at_edge in choices_at_edges(estimator).items()},
        "selection": {
            **{key: getattr(estimator, name, None) for key, name in _SELECTION.items()},
            "measure": found.plan.chosen_by,
            "convention": options.convention,
        },
        "measures": {role.replace(" ", "_"): measures for role, measures in measured(found).items()},
        "seconds": report.seconds,
        "notes": report.notes,
        **described_columns(found.plan.encoder),
    }
    if hasattr(estimator, "results_"):
        out["models"] = [dict(zip(estimator.results_, row, strict=True)) for row in _rows(estimator.results_)]
        out["skipped"] = estimator.skipped_
    return out | {"interrupted": True} if found.interrupted else out


def tables(found: Learned, *middle: Table) -> list[Table]:
    """What was read and what it was used as, what a command has to say, and the measures."""
    uses = described_columns(found.plan.encoder).get("columns_used", [])
    return [*file_tables(described(found.data)), *columns_table(uses), *middle, *measure_tables(measured(found))]


def model_tables(plan: Plan) -> list[Table]:
    """What each model reached that an estimator chose among, if it did."""
    found = getattr(plan.estimator, "results_", None)
    if found is None:
        return []
    names = ["", "model", "scale", plan.metric, "behind", "seconds", "export"]
    rows = [
        ["chosen" if chosen else "", model, scale, show(mean, error), show(behind, apart), f"{seconds:.1f}", export]
        for model, scale, _, _, mean, error, behind, apart, seconds, export, chosen in _rows(found)
    ]
    title = "Models, with what each reached on held-out queries and by how much it is behind the best"
    return [Table(title, names, rows, left=3, marked=[row[0] for row in rows].index("chosen"))]


def _rows(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def choice_table(plan: Plan, data: Data) -> Table:
    """What was chosen, of which features, and by what."""
    estimator, scale = plan.estimator, plan.options.scale
    names = data.tables["train"].feature_names
    rows = [] if names is None else [["features", few(names)]]
    rows += [
        [name.replace("_", " "), f"{v:.6g}" if isinstance(v, float) else str(v)] for name, v in chosen(plan).items()
    ]
    if scale != "none":
        where = "by all training rows" if scale.endswith("-all") else "inside each query"
        rows.append(["scale", f"{scale.removesuffix('-all')}, {where}"])
    value = getattr(estimator, "best_score_", None)
    if value is None:
        return Table("Fitted", ["", ""], rows, left=2)
    measure = plan.options.pair_measure if plan.options.by_pairs else plan.chosen_by
    if np.isfinite(getattr(estimator, "optimism_", np.nan)):
        measure += ", less optimism"
    rows.append([measure, show(value, getattr(estimator, "best_score_error_", None))])
    grid = len(estimator.cv_results_["mean_score"])
    return Table(f"Chosen by {estimator.selection_}, from {grid} candidates", ["", ""], rows, left=2)
