"""``rankrls info``: where a model comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._report import Report

EXAMPLES = "Example: rankrls info m.rankrls --json"

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]


def command(model: Model, as_json: options.Json = False) -> None:
    """Print what a model file says of itself.

    Data, versions, parameters, how they were chosen, and measures. The model itself is not loaded.
    """
    report = Report(as_json)
    from rankrls.cli._data import shortened
    from rankrls.persistence import read_info

    info = read_info(model)
    if as_json:
        report.print_json({"file": str(model), **info})
        return
    given = info.pop("given", {})
    selection = info.pop("selection", None)
    data, pairs, measures = given.pop("data", {}), given.pop("pairs", {}), given.pop("measures", {})
    report.print_table(str(model), ["", ""], _rows(info) + _rows(given), left=2)
    if selection:
        report.print_table("Selection", ["", ""], _rows(selection), left=2)
    for title, files, columns in (
        ("Data", data, ["rows", "queries", "features"]),
        ("Preferences", pairs, ["preferences", "items", "groups"]),
    ):
        if isinstance(files, dict) and all(isinstance(part, dict) for part in files.values()) and files:
            rows = [
                [role, shortened(str(part.get("path"))), *(_cell(part.get(name)) for name in columns)]
                + [str(part.get("sha256"))[:16]]
                for role, part in files.items()
            ]
            report.print_table(title, ["", "file", *columns, "sha256 begins"], rows, left=2)
        elif files:
            report.print_table(title, ["", ""], _rows({title.lower(): files}), left=2)
    if isinstance(measures, dict):
        for role, found in measures.items():
            _print_measures(report, role, found)


def _print_measures(report: Report, role: str, found: Any) -> None:
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        report.print_table("Measures", ["", ""], _rows({role: found}), left=2)
        return
    rows = [
        [name, *("-" if (v := entry.get(key)) is None else f"{v:.4f}" for key in ("value", "standard_error"))]
        for name, entry in found.items()
    ]
    report.print_table(f"Measures, {role}", ["", "mean", "std. error"], rows)


def _cell(value: Any) -> str:
    return "-" if value is None else str(value)


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
