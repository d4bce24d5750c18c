"""``rankrls info``: where a model comes from."""

from __future__ import annotations

from typing import Any

from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.persistence import read_info


def info(options: Options, report: Report) -> Result:
    """Show a model's metadata."""
    found = read_info(options.about)
    values = {**found, **found["given"]}
    del values["given"]
    parts = {name: values.pop(name) for name in [*values] if isinstance(values[name], dict)}
    tables = [_table(str(options.about), values)]
    tables += [_table(name.replace("_", " ").capitalize(), part) for name, part in parts.items() if part]
    return Result({"file": str(options.about), **found}, tables)


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
