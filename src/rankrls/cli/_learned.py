"""What ``fit`` and ``cv`` found, for people and for machines."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankrls.cli._findings import columns_table, file_tables, measure_tables, show
from rankrls.cli._report import Report, Table
from rankrls.cli._training import Study
from rankrls.io._rows import few
from rankrls.selection.search import choices_at_edges

_SELECTION = {"how": "selection_", "rule": "rule", "value": "best_score_", "standard_error": "best_score_error_"}

_REACHED = "alpha C n_features n_iter n_support n_estimators stopped optimism nested_score nested_score_error"
"""Fitted attributes that say what a learner has come to, beside what it chose."""


def described(found: Study) -> dict[str, Any]:
    """What was read: ``data``, and where there are preferences ``pairs``."""
    out: dict[str, Any] = {"data": {role: table.summary() for role, table in found.tables.items()}}
    if (items := found.items) is not None:
        out["items"] = {"path": items.path, "sha256": items.sha256, "features": [*items.feature_names]}
    if found.pairs:
        out["pairs"] = {role: pairs.summary() for role, pairs in found.pairs.items()}
    return out


def chosen(estimator: Any) -> dict[str, Any]:
    """What was chosen."""
    out = dict(getattr(estimator, "best_params_", {}))
    for name in _REACHED.split():
        if hasattr(estimator, f"{name}_"):
            out.setdefault(name, getattr(estimator, f"{name}_"))
    return out


def _columns(found: Study) -> dict[str, Any]:
    """What each column of tables is used as, for JSON and for the model's provenance."""
    told = found.encoder is not None and not found.options.votes
    return {"columns_used": [vars(use) for use in found.encoder.columns_]} if told else {}


def measured(found: Study) -> dict[str, Any]:
    """The measures of each role."""
    return {role: {name: j.as_dict() for name, j in judged.items()} for role, judged in found.judged.items()}


def as_dict(command: str, found: Study, report: Report) -> dict[str, Any]:
    """Everything, for JSON."""
    estimator, options = found.estimator, found.options
    out = {
        "command": command,
        **described(found),
        "method": options.method,
        "scale": options.scale,
        "chosen": chosen(estimator),
        **{f"{name}_at_edge": at_edge for name, at_edge in choices_at_edges(estimator).items()},
        "selection": {
            **{key: getattr(estimator, name, None) for key, name in _SELECTION.items()},
            "measure": found.chosen_by,
            "convention": options.convention,
        },
        "measures": {role.replace(" ", "_"): measures for role, measures in measured(found).items()},
        "seconds": report.seconds,
        "notes": report.notes,
        **_columns(found),
    }
    if hasattr(estimator, "results_"):
        out["models"] = [dict(zip(estimator.results_, row, strict=True)) for row in _rows(estimator.results_)]
        out["skipped"] = estimator.skipped_
    return out | {"interrupted": True} if found.interrupted else out


def tables(found: Study, *middle: Table) -> list[Table]:
    """What was read and what it was used as, what a command has to say, and the measures."""
    used = columns_table(_columns(found).get("columns_used", []))
    return [*file_tables(described(found)), *used, *middle, *measure_tables(measured(found))]


def model_tables(found: Study) -> list[Table]:
    """What each model reached that an estimator chose among, if it did."""
    results = getattr(found.estimator, "results_", None)
    if results is None:
        return []
    names = ["", "model", "scale", found.metric, "behind", "seconds", "export"]
    rows = [
        ["chosen" if chosen else "", model, scale, show(mean, error), show(behind, apart), f"{seconds:.1f}", export]
        for model, scale, _, _, mean, error, behind, apart, seconds, export, chosen in _rows(results)
    ]
    title = "Models, with what each reached on held-out queries and by how much it is behind the best"
    return [Table(title, names, rows, left=3, marked=[row[0] for row in rows].index("chosen"))]


def _rows(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def choice_table(found: Study) -> Table:
    """What was chosen, of which features, and by what."""
    estimator, scale = found.estimator, found.options.scale
    names = found.training.feature_names
    rows = [] if names is None else [["features", few(names)]]
    rows += [
        [name.replace("_", " "), f"{v:.6g}" if isinstance(v, float) else str(v)]
        for name, v in chosen(estimator).items()
    ]
    if scale != "none":
        where = "by all training rows" if scale.endswith("-all") else "inside each query"
        rows.append(["scale", f"{scale.removesuffix('-all')}, {where}"])
    value = getattr(estimator, "best_score_", None)
    if value is None:
        return Table("Fitted", ["", ""], rows, left=2)
    measure = found.options.pair_measure if found.options.by_pairs else found.chosen_by
    if np.isfinite(getattr(estimator, "optimism_", np.nan)):
        measure += ", less optimism"
    rows.append([measure, show(value, getattr(estimator, "best_score_error_", None))])
    grid = len(estimator.cv_results_["mean_score"])
    return Table(f"Chosen by {estimator.selection_}, from {grid} candidates", ["", ""], rows, left=2)
