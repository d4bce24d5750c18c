"""``rankrls export``: a model in the format of a search engine, or as ONNX."""

from __future__ import annotations

import math
from inspect import signature
from pathlib import Path

from rankrls import export
from rankrls._errors import InputError
from rankrls.cli._options import Options
from rankrls.cli._reading import load_model, read
from rankrls.cli._report import Report, Result
from rankrls.io.data import read_names
from rankrls.persistence.stored import StoredModel

_PARAMETERS = {"names": "feature_names", "target": "target", "store": "store"}
"""The options that the functions of some formats take, and the names of their parameters."""


def run(options: Options, report: Report) -> Result:
    """Write a model in another format."""
    function = getattr(export, f"to_{options.engine}")
    arguments = {to: value for name, to in _PARAMETERS.items() if (value := getattr(options, name))}
    if options.target is not None:
        arguments["target"] = options.target
    for name in arguments:
        if name not in signature(function).parameters:
            raise InputError(f"{name} has no meaning for {options.engine}.", parameter=name)
    if options.names is not None:
        arguments["feature_names"] = read_names(options.names)
    stored = load_model(options.model, report)
    exported = function(stored.whole, options.name, offset=_offset(options, stored, report), **arguments)
    to_file = options.out != "-"
    definitions = options.definitions or (Path(options.out).parent / "features.json" if to_file else None)
    if exported.definitions is not None and definitions is not None:
        if definitions.resolve() == Path(options.out).resolve():
            problem = f"{definitions} would hold both the model and its feature definitions."
            raise InputError(problem, parameter="definitions")
        exported.save_definitions(definitions)
        report.note(f"the features are defined in {definitions}: upload that first.")
    elif options.definitions is not None:
        raise InputError("definitions has no meaning here: no features need a definition.", parameter="definitions")
    for note in exported.notes:
        report.note(note)
    if to_file:
        exported.save(options.out)
        return Result()
    return Result(text=(exported.content,))


def _offset(options: Options, stored: StoredModel, report: Report) -> float | None:
    """A number, or what makes the scores of a file's items positive."""
    if options.offset is None:
        return None
    try:
        value = float(options.offset)
    except ValueError:
        if not Path(options.offset).exists():
            problem = f"offset must be a number or a file of items; {options.offset!r} is neither."
            raise InputError(problem, parameter="offset") from None
        table = read(Path(options.offset), options.reading(queries="optional", labels="ignored"), report, stored)
        return export.positive_offset(stored.model, table.X)
    if not math.isfinite(value):
        raise InputError(f"offset must be finite; got {options.offset!r}.", parameter="offset")
    return value
