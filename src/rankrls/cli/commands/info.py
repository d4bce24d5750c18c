"""``rankrls info``: where a model comes from, or what is in data."""

from __future__ import annotations

import json
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._datasets import is_dataset
from rankrls.cli._findings import columns_table, file_rows, labels_shown
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.io.datasets.files import has_data_ending
from rankrls.io.datasets.overview import overview
from rankrls.io.tables.columns import Wanted
from rankrls.persistence import read_info

__all__ = ["run"]

_NAMED = 6


def run(options: Options, report: Report) -> Result:
    """Show a model's metadata, or what is in data."""
    if is_dataset(options.about) or has_data_ending(str(options.about)):
        return _data(options, report)
    told = next((name for name in options.changed() if name not in ("about", "as_json")), None)
    if told is not None:
        raise InputError(f"{{{told}}} is about data, and this is read as a model.", parameter=told)
    found = read_info(options.about)
    info = dict(found)
    given = dict(info.pop("given", {}))
    selection = info.pop("selection", None)
    used = given.pop("columns_used", [])
    data, pairs, measures = given.pop("data", {}), given.pop("pairs", {}), given.pop("measures", {})
    tables = [Table(str(options.about), ["", ""], _rows(info) + _rows(given), left=2)]
    if selection:
        tables.append(Table("Selection", ["", ""], _rows(selection), left=2))
    tables += columns_table(used) if all(isinstance(use, dict) for use in used) else []
    tables += _files("Data", data, ["rows", "queries", "features"])
    tables += _files("Preferences", pairs, ["preferences", "items", "groups"])
    if isinstance(measures, dict):
        tables += [_measures(role, entries) for role, entries in measures.items()]
    return Result({"file": str(options.about), **found}, tables)


def _data(options: Options, report: Report) -> Result:
    """What is in files of data."""
    wanted = Wanted.checked(options.label, options.qid, options.id, options.features, options.ignore or (), "optional")
    with report.working("opening", f"opening {options.about}"):
        found = overview(options.about, wanted, options.input_format or "auto")
    shown = dict(found)
    sizes, names = shown.pop("rows_per_query"), shown.pop("feature_names")
    shown["bytes"] = f"{found['bytes']:,}"
    shown["labels"] = labels_shown(found["labels"], None)
    shown["features"] = str(found["features"])
    if names is not None:
        shown["features"] += ": " + ", ".join([*names[:_NAMED], *["..."] * (len(names) > _NAMED)])
    rows = _rows(shown)
    rows.insert(5, ["rows of a query", f"{sizes['least']} to {sizes['most']}, median {sizes['median']:g}"])
    return Result({"file": str(options.about), **found}, [Table(str(options.about), ["", ""], rows, left=2)])


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
