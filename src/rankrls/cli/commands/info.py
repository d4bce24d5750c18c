"""``rankrls info``: where a model comes from."""

from __future__ import annotations

import json
from typing import Any

from rankrls.cli._encoding import columns_table
from rankrls.cli._findings import file_rows
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.persistence import read_info

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Show a model's metadata."""
    found = read_info(options.model)
    info = dict(found)
    given = dict(info.pop("given", {}))
    selection = info.pop("selection", None)
    used = given.pop("columns_used", [])
    data, pairs, measures = given.pop("data", {}), given.pop("pairs", {}), given.pop("measures", {})
    tables = [Table(str(options.model), ["", ""], _rows(info) + _rows(given), left=2)]
    if selection:
        tables.append(Table("Selection", ["", ""], _rows(selection), left=2))
    tables += columns_table(used) if all(isinstance(use, dict) for use in used) else []
    tables += _files("Data", data, ["rows", "queries", "features"])
    tables += _files("Preferences", pairs, ["preferences", "items", "groups"])
    if isinstance(measures, dict):
        tables += [_measures(role, entries) for role, entries in measures.items()]
    return Result({"file": str(options.model), **found}, tables)


def _files(title: str, files: Any, columns: list[str]) -> list[Table]:
    if not files:
        return []
    if not isinstance(files, dict) or not all(isinstance(part, dict) for part in files.values()):
        return [Table(title, ["", ""], _rows({title.lower(): files}), left=2)]
    rows = [
        [*row, str(part.get("sha256"))[:16]]
        for row, part in zip(file_rows(files, *columns), files.values(), strict=True)
    ]
    return [Table(title, ["", "file", *columns, "sha256 begins"], rows, left=2)]


def _measures(role: str, found: Any) -> Table:
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        return Table("Measures", ["", ""], _rows({role: found}), left=2)
    rows = [
        [name, *("-" if (v := entry.get(key)) is None else f"{v:.4f}" for key in ("value", "standard_error"))]
        for name, entry in found.items()
    ]
    return Table(f"Measures, {role}", ["", "mean", "std. error"], rows)


def _rows(values: dict[str, Any]) -> list[list[str]]:
    return [[name.replace("_", " "), _text(value)] for name, value in values.items() if value not in (None, [], {})]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_text(v)}" for k, v in value.items() if v is not None)
    if isinstance(value, list):
        return ", ".join(_text(v) for v in value)
    if isinstance(value, float):
        return f"{value:.6g}"
    return value if isinstance(value, str) else json.dumps(value)
