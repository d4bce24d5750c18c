"""``rankrls export``: a model in a search engine's format."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from rankrls import export
from rankrls._errors import InputError
from rankrls.cli._data import read_names
from rankrls.cli._models import StoredModel, load_model
from rankrls.cli._options import Options, flag_of
from rankrls.cli._output import check_target
from rankrls.cli._report import Report, Result
from rankrls.cli._spelling import said

__all__ = ["run"]

_OF_ALL_BUT_ONNX = ("names", "target", "fold")
_OF_ONE = {"store": "solr", "phase": "vespa"}


def run(options: Options, report: Report) -> Result:
    """Write a model in another format."""
    engine = options.engine
    for name in options.changed():
        if (name in _OF_ALL_BUT_ONNX and engine == "onnx") or engine != _OF_ONE.get(name, engine):
            raise InputError(flag_of(name) + " means nothing to --format {0}.", engine)
    check_target(options.file, options.model, options.names, options.offset)
    stored = load_model(options.model, report)
    try:
        exported = _exported(options, stored, report)
    except InputError as error:
        if error.parameter != "scale":
            raise
        raise InputError("{0} (Here: rankrls fit {scale=standard-all} or minmax-all.)", said(error)) from error
    if options.file != "-":
        exported.save(options.file)
    for note in exported.notes:
        report.note(note)
    content = exported.content if options.file == "-" else b""
    return Result(text=content.encode() if isinstance(content, str) else content)


def _exported(options: Options, stored: StoredModel, report: Report) -> export.Exported:
    arguments: dict[str, Any] = {"offset": _offset(options.offset, stored, report)}
    if options.engine != "onnx":
        arguments |= {
            "feature_names": None if options.names is None else read_names(options.names),
            "target": options.target,
            "scaler": "fold" if options.fold else "beside",
        }
    arguments |= {name: getattr(options, name) for name, engine in _OF_ONE.items() if engine == options.engine}
    return getattr(export, f"to_{options.engine}")(stored.model, options.name, **arguments)


def _offset(text: str | None, stored: StoredModel, report: Report) -> float | None:
    """A number, or what makes the scores of a file's items positive."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        if not Path(text).exists():
            raise InputError("{offset} must be a number or a file of items; {0!r} is neither.", text) from None
        table = stored.read(Path(text), report, queries="optional")
        return export.positive_offset(stored.model, table.X)
    if not math.isfinite(value):
        raise InputError("{offset} must be a finite number or a file of items; got {0!r}.", text)
    return value
