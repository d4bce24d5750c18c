"""What was read, chosen and measured, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankrls.cli._learning import Study
from rankrls.cli._report import Report, Table
from rankrls.io._rows import few
from rankrls.selection.search import choices_at_edges

_REACHED = ("alpha", "C", "n_features", "n_iter", "n_support", "n_estimators")
"""Fitted attributes that say what an estimator came to, beside what it chose."""
_BIAS = "The printed score is the held-out score minus the estimated selection bias"


def described(found: Study) -> dict[str, Any]:
    """What was read."""
    out: dict[str, Any] = {"data": {role: table.summary() for role, table in found.tables.items()}}
    if (items := found.items) is not None:
        out["items"] = {"path": items.path, "sha256": items.sha256, "features": [*items.feature_names]}
    if found.pairs:
        out["pairs"] = {role: pairs.summary() for role, pairs in found.pairs.items()}
    if found.encoder is not None and not found.options.votes:
        out["columns_used"] = [vars(use) for use in found.encoder.columns_]
    return out


def held_out(found: Study) -> tuple[float, float]:
    """The held-out score minus the estimated selection bias, and that bias; NaN if there is none.

    ``best_score_`` of AutoRankRLS is corrected already.
    """
    estimator = found.estimator
    score, bias = float(getattr(estimator, "best_score_", np.nan)), float(getattr(estimator, "optimism_", np.nan))
    if np.isnan(bias) or found.options.method == "auto":
        return score, bias
    measure = getattr(estimator, "scoring", None)
    return score - bias if getattr(measure, "greater_is_better", False) else score + bias, bias


def chosen(estimator: Any) -> dict[str, Any]:
    """What was chosen."""
    out = dict(getattr(estimator, "best_params_", {}))
    for name in _REACHED:
        if hasattr(estimator, f"{name}_"):
            out.setdefault(name, getattr(estimator, f"{name}_"))
    return out


def measured(found: Study) -> dict[str, Any]:
    """The measures of each role."""
    return {role: {name: j.as_dict() for name, j in judged.items()} for role, judged in found.judged.items()}


def as_dict(command: str, found: Study, report: Report) -> dict[str, Any]:
    """Everything, for --json."""
    estimator, options = found.estimator, found.options
    score, bias = held_out(found)
    selection = {
        "how": getattr(estimator, "selection_", None),
        "measure": measure_name(found),
        "convention": options.convention,
        "rule": getattr(estimator, "rule", None),
        "value": score,
        "standard_error": getattr(estimator, "best_score_error_", None),
        "optimism": bias,
    }
    out = {
        "command": command,
        **described(found),
        "method": options.method,
        "scale": options.scale or "none",
        "chosen": chosen(estimator),
        **{f"{name}_at_edge": at_edge for name, at_edge in choices_at_edges(estimator).items()},
        "selection": selection,
        "measures": {role.replace(" ", "_"): measures for role, measures in measured(found).items()},
        "seconds": report.seconds,
        "notes": report.notes,
    }
    if hasattr(estimator, "results_"):
        out["models"] = [dict(zip(estimator.results_, row, strict=True)) for row in _rows(estimator.results_)]
        out["skipped"] = estimator.skipped_
    return out


def measure_name(found: Study) -> str:
    """The measure that chooses."""
    pairwise = found.options.by_pairs or found.options.cv == "leave_pair_out"
    event = found.options.event is not None or found.options.cv == "leave_pair_out"
    return found.metric if not pairwise else "C-index" if event else "pair_accuracy"


def tables(found: Study, *middle: Table) -> list[Table]:
    """What was read, what a command has to say, and the measures."""
    about = described(found)
    return [
        *file_tables(about),
        *columns_table(about.get("columns_used", [])),
        *middle,
        *measure_tables(measured(found)),
    ]


def model_tables(found: Study) -> list[Table]:
    """What each model reached that AutoRankRLS chose among."""
    results = getattr(found.estimator, "results_", None)
    if results is None:
        return []
    names = ["", "model", "scale", found.metric, "behind", "seconds", "export"]
    rows = [
        ["chosen" if best else "", model, scale, show(mean, error), show(behind, apart), f"{seconds:.1f}", export]
        for model, scale, _, _, mean, error, behind, apart, seconds, export, best in _rows(results)
    ]
    title = "Models: held-out score, and how far it is behind the best"
    return [Table(title, names, rows, left=3, marked=[row[0] for row in rows].index("chosen"))]


def _rows(columns: dict[str, Any]) -> list[tuple[Any, ...]]:
    return list(zip(*(column.tolist() for column in columns.values()), strict=True))


def choice_table(found: Study) -> Table:
    """What was chosen, from which candidates, and its held-out score."""
    estimator, scale = found.estimator, found.options.scale or "none"
    names = found.training.feature_names
    rows = [] if names is None else [["features", few(names)]]
    rows += [[name.replace("_", " "), cell(value, 6)] for name, value in chosen(estimator).items()]
    if scale != "none":
        where = "over all training rows" if scale.endswith("-all") else "in each query"
        rows.append(["scale", f"{scale.removesuffix('-all')}, {where}"])
    score = held_out(found)[0]
    if np.isnan(score):
        return Table("Fitted", ["", ""], rows, left=2)
    rows.append([f"held-out {measure_name(found)}", show(score, getattr(estimator, "best_score_error_", None))])
    title = f"Chosen by {estimator.selection_}, from {len(estimator.cv_results_['mean_score'])} candidates"
    return Table(title, ["", ""], rows, left=2)


def bias_line(found: Study) -> list[str]:
    """A sentence about the printed score, if a selection bias was subtracted."""
    bias = held_out(found)[1]
    return [] if np.isnan(bias) else [f"{_BIAS} ({bias:.4f}).\n"]


def file_tables(found: dict[str, Any]) -> list[Table]:
    """Tables of the files that were described, ``data`` and perhaps ``pairs``."""
    parts = {
        role: part
        | {
            "labels": labels_shown(part.get("labels") or {}, part.get("items")),
            "queries": "one ranking" if part["queries"] is None else part["queries"],
            "features": f"{part['features']}{' sparse' if part.get('sparse') else ''}",
        }
        for role, part in found["data"].items()
    }
    counted = any(part["labels"] for part in parts.values())  # they are not, of shards
    names = (*(("labels",) if counted else ()), "rows", "queries", "features")
    out = [Table("Data", ["", "file", *names], file_rows(parts, *names), left=len(names) - 1)]
    if "pairs" in found:
        columns = ["", "file", "number", "ties", "items compared", "groups"]
        rows = file_rows(found["pairs"], "preferences", "ties", "items", "groups")
        out.append(Table("Preferences", columns, rows, left=2))
    return out


def file_rows(parts: dict[str, dict[str, Any]], *names: str) -> list[list[str]]:
    """Rows of a table of files that were described: the role, the path, and some of what is known."""
    return [
        [role, _shortened(str(part.get("path"))), *(cell(part.get(n), "-") for n in names)]
        for role, part in parts.items()
    ]


def labels_shown(found: Mapping[str, Any], items: int | None) -> str:
    """How often each label occurs."""
    of = "" if items is None else f"of {items} items"
    if "distinct" in found:
        without = "rows without" if items is None else "empty"
        none = f", {found['none']} {without}" if "none" in found else ""
        return f"{found['distinct']} from {found['min']:g} to {found['max']:g} {of}".rstrip() + none
    return "  ".join([*([of] if of else []), *(f"{label}: {count}" for label, count in found.items())])


def _shortened(path: str) -> str:
    """A path that leaves room in a table for the rest."""
    parts = Path(path).parts
    return path if len(path) <= 40 or len(parts) < 3 else str(Path("...", *parts[-2:]))


def measure_tables(measures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Table]:
    """One line a measure, one column a set of rankings, from what --json has of them."""
    every = [each for found in measures.values() for each in found.values()]
    units = dict.fromkeys(unit for each in every for unit in ("queries", "preferences") if unit in each)
    names = dict.fromkeys(name for found in measures.values() for name in found)
    rows = [[name, *(_measure(found.get(name)) for found in measures.values())] for name in names]
    title = f"Measures, ± standard error over {' or '.join(units)}"
    return [Table(title, ["", *measures], rows)] if measures else []


def _measure(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else show(found.get("value"), found.get("standard_error"))


def show(value: float | None, error: float | None = None) -> str:
    """A measure and its standard error; a dash if there is none."""
    if value is None or np.isnan(value):
        return "-"
    return f"{value:.4f}" + ("" if error is None or np.isnan(error) else f" ± {error:.4f}")


def cell(value: Any, digits: Any = 4) -> str:
    """A value in a table; None is ``digits`` if that is text, else nothing."""
    if value is None:
        return digits if isinstance(digits, str) else ""
    return f"{value:.{digits if isinstance(digits, int) else 4}g}" if isinstance(value, float) else str(value)


def columns_table(uses: Sequence[Mapping[str, Any]]) -> list[Table]:
    """What the columns of a table are used as; no table if nothing was encoded."""
    cells = ("name", "kind", "reason", "n_missing", "n_features")
    rows = [[str(use.get(name, "")) for name in cells] for use in uses]
    return [] if not rows else [Table("Columns", ["", "used as", "because", "missing", "features"], rows, left=3)]
