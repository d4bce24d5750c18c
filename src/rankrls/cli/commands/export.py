"""``rankrls export``: a model in the format of a search engine, or as ONNX."""

from __future__ import annotations

import math
from inspect import signature
from pathlib import Path

from rankrls import export as engines
from rankrls._errors import InputError
from rankrls.cli._files import load_model, read
from rankrls.cli._options import Options, given
from rankrls.cli._report import Report, Result
from rankrls.io.data import read_names
from rankrls.persistence.stored import StoredModel


def export(options: Options, report: Report) -> Result:
    """Write a model in another format."""
    function = getattr(engines, f"to_{options.engine}")
    names = None if options.names is None else read_names(options.names)
    arguments = given({"feature_names": names, "target": options.target, "store": options.store})
    for name in arguments:
        if name not in signature(function).parameters:
            raise InputError(f"{name} has no meaning for {options.engine}.", parameter=name)
    stored = load_model(options.model, report)
    exported = function(stored.whole, options.name, offset=_offset(options, stored, report), **arguments)
    if exported.definitions is None and options.definitions is not None:
        raise InputError("definitions has no meaning here: no features need a definition.", parameter="definitions")
    definitions = options.definitions or (Path(options.out).parent / "features.json" if options.out != "-" else None)
    if exported.definitions is not None and definitions is not None:
        if definitions.resolve() == Path(options.out).resolve():
            problem = f"{definitions} would hold both the model and its feature definitions."
            raise InputError(problem, parameter="definitions")
        exported.save_definitions(definitions)
        report.note(f"the features are defined in {definitions}: upload that first.")
    for note in exported.notes:
        report.note(note)
    if options.out == "-":
        return Result(text=(exported.content,))
    exported.save(options.out)
    return Result()


def _offset(options: Options, stored: StoredModel, report: Report) -> float | None:
    """A number, or what makes the scores of a file's items positive."""
    if options.offset is None:
        return None
    if options.offset.exists():
        table = read(options.offset, options.reading(queries="optional", labels="ignored"), report, stored)
        return engines.positive_offset(stored.model, table.X)
    try:
        value = float(str(options.offset))
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        problem = f"offset must be a finite number or a file of items; {str(options.offset)!r} is neither."
        raise InputError(problem, parameter="offset")
    return value
