"""What was read and measured, as tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._report import Table
from rankrls.metrics import Measure, resolve_measure

_SHORT_PATH = 40


def check_measures(names: Iterable[str] | None, options: Options) -> None:
    """Refuse measures, and a convention, that are none; and a choice of tied labels that none of the measures has."""
    found = [measure_of(name, options) for name in names or ("map",)]
    if options.tied_labels is not None and names and found == [*names]:
        raise InputError(
            "{tied_labels} is for disagreement and pair_accuracy, which count pairs of labels; got {0}.",
            ", ".join(names),
            parameter="tied_labels",
        )


def asked_measures(options: Options, usual: Iterable[str]) -> list[str | Measure]:
    """The measures that were asked for, or the usual ones."""
    return [measure_of(name, options) for name in options.metrics or dict.fromkeys(usual)]


def measure_of(name: str, options: Options) -> str | Measure:
    """A measure with ``--tied-labels``, if that is given and the measure has the choice; else its name."""
    measure = resolve_measure(name, options.convention)
    if options.tied_labels is None or not isinstance(measure, Measure):
        return name
    try:
        return replace(measure, tied_labels=options.tied_labels)
    except InputError:
        return name


def file_tables(found: dict[str, Any]) -> list[Table]:
    """Tables of the files that were described, ``data`` and perhaps ``pairs``."""
    parts = {
        role: part
        | {
            "labels": labels_shown(part["labels"], part.get("items")),
            "queries": "one ranking" if part["queries"] is None else part["queries"],
            "features": f"{part['features']}{' sparse' if part['sparse'] else ''}",
        }
        for role, part in found["data"].items()
    }
    counted = any(part["labels"] for part in parts.values())  # they are not, if rows are read a part at a time
    names = (*(("labels",) if counted else ()), "rows", "queries", "features")
    tables = [Table("Data", ["", "file", *names], file_rows(parts, *names), left=len(names) - 1)]
    if "pairs" in found:
        columns = ["", "file", "number", "ties", "items compared", "groups"]
        rows = file_rows(found["pairs"], "preferences", "ties", "items", "groups")
        tables.append(Table("Preferences", columns, rows, left=2))
    return tables


def file_rows(parts: dict[str, dict[str, Any]], *names: str) -> list[list[str]]:
    """Rows of a table of files that were described: the role, the path, and some of what is known."""
    cell = lambda value: "-" if value is None else str(value)
    return [
        [role, _shortened(str(part.get("path"))), *(cell(part.get(name)) for name in names)]
        for role, part in parts.items()
    ]


def labels_shown(found: dict[str, Any], items: int | None) -> str:
    """How often each label occurs, as people read it."""
    if "distinct" in found:
        of, without = ("", "rows without") if items is None else (f" of {items} items", "empty")
        none = f", {found['none']} {without}" if "none" in found else ""
        return f"{found['distinct']} from {found['min']:g} to {found['max']:g}{of}{none}"
    of = "" if items is None else f"of {items} items  "
    return of + "  ".join(f"{label}: {count}" for label, count in found.items())


def _shortened(path: str) -> str:
    """A path that leaves room in a table for the rest."""
    parts = Path(path).parts
    return path if len(path) <= _SHORT_PATH or len(parts) < 3 else str(Path("...", *parts[-2:]))


def measure_tables(measured: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Table]:
    """One line a measure, one column a set of rankings, from what JSON has of them."""
    every = [each for found in measured.values() for each in found.values()]
    units = dict.fromkeys(unit for each in every for unit in ("queries", "preferences") if unit in each)
    names = dict.fromkeys(name for found in measured.values() for name in found)
    rows = [[name, *(_measure(found.get(name)) for found in measured.values())] for name in names]
    title = f"Measures, ± standard error over {' or '.join(units)}"
    return [Table(title, ["", *measured], rows)] if measured else []


def _measure(found: Mapping[str, Any] | None) -> str:
    return "" if found is None else show(found.get("value"), found.get("standard_error"))


def show(value: float | None, error: float | None = None) -> str:
    """A measure as people read it; a dash if there is none."""
    if value is None or np.isnan(value):
        return "-"
    return f"{value:.4f}" + ("" if error is None or np.isnan(error) else f" ± {error:.4f}")


def columns_table(uses: Sequence[Mapping[str, Any]]) -> list[Table]:
    """The same for people; no table if nothing was encoded."""
    cells = ("name", "kind", "reason", "n_missing", "n_features")
    rows = [[str(use.get(cell, "")) for cell in cells] for use in uses]
    return [] if not rows else [Table("Columns", ["", "used as", "because", "missing", "features"], rows, left=3)]
