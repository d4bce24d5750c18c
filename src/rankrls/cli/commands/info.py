"""``rankrls info``: where a model comes from, or what is in data."""

from __future__ import annotations

import json
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._reading import is_dataset
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._tables import columns_table, file_rows, labels_shown, measure_tables
from rankrls.io.datasets.files import has_data_ending
from rankrls.io.datasets.overview import overview
from rankrls.persistence import read_info

_NAMED = 6
_NESTED = {"data": 1, "pairs": 1, "measures": 2}
"""What ``fit`` says of files and of measures: dictionaries of dictionaries."""
_FILES = (
    ("data", "Data", ("rows", "queries", "features")),
    ("pairs", "Preferences", ("preferences", "items", "groups")),
)


def run(options: Options, report: Report) -> Result:
    """Show a model's metadata, or what is in data."""
    if is_dataset(options.about) or has_data_ending(str(options.about)):
        return _data(options, report)
    told = next((name for name, value in options.roles.items() if value), None)
    if told is not None:
        raise InputError(f"{told} is about data, and this is read as a model.", parameter=told)
    found = read_info(options.about)
    info = dict(found)
    given, selection = dict(info.pop("given", {})), info.pop("selection", None)
    used, known = given.get("columns_used"), {}
    if isinstance(used, list) and all(isinstance(use, dict) for use in used):
        known["columns_used"] = given.pop("columns_used")
    for name, depth in _NESTED.items():
        if _nested(given.get(name), depth):
            known[name] = given.pop(name)
    tables = [Table(str(options.about), ["", ""], _rows(info) + _rows(given), left=2)]
    tables += [Table("Selection", ["", ""], _rows(selection), left=2)] if selection else []
    tables += columns_table(known.get("columns_used", []))
    for name, title, columns in _FILES:
        parts = {role: part | {"sha256": str(part.get("sha256"))[:16]} for role, part in known.get(name, {}).items()}
        rows = file_rows(parts, *columns, "sha256")
        tables += [Table(title, ["", "file", *columns, "sha256 begins"], rows, left=2)] * bool(rows)
    tables += measure_tables(known.get("measures", {}))
    return Result({"file": str(options.about), **found}, tables)


def _data(options: Options, report: Report) -> Result:
    """What is in files of data."""
    with report.working("opening", f"opening {options.about}"):
        found = overview(options.about, options.reading(labels="optional", queries="optional"))
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


def _nested(found: Any, depth: int) -> bool:
    """Whether a value, which anybody may have saved, is a dictionary of dictionaries, so deep, and measures numbers."""
    if not isinstance(found, dict):
        return False
    if depth:
        return all(_nested(part, depth - 1) for part in found.values())
    return all(isinstance(found.get(name), int | float | None) for name in ("value", "standard_error"))


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
