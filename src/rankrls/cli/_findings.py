"""What ``fit`` and ``cv`` found, for people and for machines."""

from __future__ import annotations

from typing import Any

from rankrls.cli._data import describe, describe_rows
from rankrls.cli._judging import Judgement, show
from rankrls.cli._pairs import describe_pairs, pair_rows
from rankrls.cli._report import Report
from rankrls.cli._training import Data, Plan, Trained
from rankrls.selection.search import choices_at_edges

__all__ = ["as_dict", "chosen", "described", "measured", "print_choice", "print_data", "print_measures"]

Judged = dict[str, dict[str, Judgement]]


def described(data: Data) -> dict[str, Any]:
    """What was read: ``data``, and where there are preferences ``pairs``."""
    out = {"data": {role: describe(table) for role, table in data.tables.items()}}
    if data.pairs:
        out["pairs"] = {role: describe_pairs(pairs) for role, pairs in data.pairs.items()}
    return out


def chosen(plan: Plan, estimator: Any) -> dict[str, Any]:
    """What was chosen."""
    out = dict(getattr(estimator, "best_params_", {}))
    for name in plan.method.reports:
        if hasattr(estimator, name):
            out.setdefault(name.rstrip("_"), getattr(estimator, name))
    return out


def measured(judged: Judged) -> dict[str, Any]:
    """The measures of each role."""
    return {role: {name: j.as_dict() for name, j in found.items()} for role, found in judged.items()}


def as_dict(command: str, plan: Plan, data: Data, trained: Trained, judged: Judged, report: Report) -> dict[str, Any]:
    """Everything, for JSON."""
    estimator = trained.estimator
    out = {
        "command": command,
        **described(data),
        "method": plan.learning.method,
        "scale": plan.learning.scale,
        "chosen": chosen(plan, estimator),
        **{f"{name}_at_edge": at_edge for name, at_edge in choices_at_edges(estimator).items()},
        "selection": {
            "how": getattr(estimator, "selection_", None),
            "rule": getattr(estimator, "rule", None),
            "measure": plan.learning.metric,
            "convention": plan.learning.convention,
            "value": getattr(estimator, "best_score_", None),
            "standard_error": getattr(estimator, "best_score_error_", None),
        },
        "measures": {role.replace(" ", "_"): found for role, found in measured(judged).items()},
        "seconds": report.seconds,
        "notes": report.notes,
    }
    return out | {"interrupted": True} if trained.interrupted else out


def print_data(report: Report, data: Data) -> None:
    """What was read."""
    found = described(data)
    columns = ["", "file", "labels", "rows", "queries", "features"]
    report.print_table("Data", columns, describe_rows(found["data"]), left=3)
    if data.pairs:
        columns = ["", "file", "number", "ties", "items compared", "groups"]
        report.print_table("Preferences", columns, pair_rows(found["pairs"]), left=2)


def print_choice(report: Report, plan: Plan, trained: Trained) -> None:
    """What was chosen, and by what."""
    estimator = trained.estimator
    rows = [
        [name.replace("_", " "), f"{v:.6g}" if isinstance(v, float) else str(v)]
        for name, v in chosen(plan, estimator).items()
    ]
    if plan.learning.scale != "none":
        where = "by all training rows" if plan.learning.scale.endswith("-all") else "inside each query"
        rows.append(["scale", f"{plan.learning.scale.removesuffix('-all')}, {where}"])
    value = getattr(estimator, "best_score_", None)
    if value is None:
        report.print_table("Fitted", ["", ""], rows, left=2)
        return
    rows.append([plan.learning.metric, show(value, getattr(estimator, "best_score_error_", None))])
    grid = len(estimator.cv_results_["mean_score"])
    report.print_table(f"Chosen by {estimator.selection_}, from {grid} candidates", ["", ""], rows, left=2)


def print_measures(report: Report, judged: Judged) -> None:
    """One line a measure, one column a set of rankings."""
    if not judged:
        return
    names = list(dict.fromkeys(name for found in judged.values() for name in found))
    units = list(dict.fromkeys(j.unit for found in judged.values() for j in found.values()))
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
    report.print_table(f"Measures, ± standard error over {' or '.join(units)}", ["", *judged], rows)
