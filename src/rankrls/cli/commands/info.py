"""``rankrls info``: where a model comes from, or what is in data."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli._files import is_dataset
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table, labels_shown
from rankrls.io.datasets.files import has_data_ending
from rankrls.io.datasets.overview import overview
from rankrls.persistence import read_info

_NAMED = 6


def info(options: Options, report: Report) -> Result:
    """Show a model's metadata, or what is in data."""
    if is_dataset(options.about) or has_data_ending(str(options.about)):
        return _data(options, report)
    asked = next((name for name, value in options.roles.items() if value), None)
    if asked is not None:
        raise InputError(f"{asked} is about data, and this is read as a model.", parameter=asked)
    found = read_info(options.about)
    values = {**found, **found["given"]}
    del values["given"]
    parts = {name: values.pop(name) for name in [*values] if isinstance(values[name], dict)}
    tables = [_table(str(options.about), values)]
    tables += [_table(name.replace("_", " ").capitalize(), part) for name, part in parts.items() if part]
    return Result({"file": str(options.about), **found}, tables)


def _data(options: Options, report: Report) -> Result:
    """What is in files of data."""
    with report.working("opening", f"opening {options.about}"):
        found = overview(options.about, options.reading(labels="optional", queries="optional"))
    shown, sizes, names = dict(found), found["rows_per_query"], found["feature_names"] or []
    shown["bytes"] = f"{found['bytes']:,}"
    shown["rows_per_query"] = f"{sizes['least']} to {sizes['most']}, median {sizes['median']:g}"
    shown["labels"] = labels_shown(found["labels"], None)
    shown["feature_names"] = [*names[:_NAMED], *["..."] * (len(names) > _NAMED)]
    return Result({"file": str(options.about), **found}, [_table(str(options.about), shown)])


def _table(title: str, values: dict[str, Any]) -> Table:
    empty: Any = (None, [], {})
    rows = [[name.replace("_", " "), _text(value)] for name, value in values.items() if value not in empty]
    return Table(title, ["", ""], rows, left=2)


def _text(value: Any) -> str:
    """Whatever JSON can hold, in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{name.replace('_', ' ')} {_text(part)}" for name, part in value.items() if part is not None)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else str(value)
