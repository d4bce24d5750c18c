"""``rankrls export``: a model in a search engine's format."""

from __future__ import annotations

import math
from inspect import signature
from pathlib import Path

from rankrls import export
from rankrls._errors import InputError
from rankrls.cli._files import load_model, read
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.io._atomic import check_target
from rankrls.io.data import Reading, read_names
from rankrls.persistence.stored import StoredModel

_PARAMETERS = {"names": "feature_names", "target": "target", "fold": "scaler", "store": "store", "phase": "phase"}
"""The options that the functions of some formats take, and the names of their parameters."""


def run(options: Options, report: Report) -> Result:
    """Write a model in another format."""
    function = getattr(export, f"to_{options.engine}")
    given = [name for name in options.changed() if name in _PARAMETERS]
    for name in given:
        if _PARAMETERS[name] not in signature(function).parameters:
            raise InputError(f"{{{name}}} means nothing to --format {{0}}.", options.engine, parameter=name)
    check_target(options.file, options.model, options.names, options.offset)
    stored = load_model(options.model, report)
    try:
        offset = _offset(options.offset, stored, report)
        arguments = {_PARAMETERS[name]: getattr(options, name) for name in given}
        if options.names is not None:
            arguments["feature_names"] = read_names(options.names)
        if options.fold:
            arguments["scaler"] = "fold"
        exported = function(stored.whole, options.name, offset=offset, **arguments)
    except InputError as error:
        if error.parameter != "model" or not stored.scales_by_query:
            raise
        raise error.followed("(Here: rankrls fit {scale=standard-all} or minmax-all.)") from error
    definitions = options.definitions or (None if options.file == "-" else Path(options.file).parent / "features.json")
    if exported.definitions is not None and definitions is not None:
        check_target(definitions, options.model, options.names, options.offset)
        if definitions.resolve() == Path(options.file).resolve():
            problem = "{0} would hold both the model and the definitions of its features."
            raise InputError(
                problem, definitions, remedy="Name another file by {definitions}.", parameter="definitions"
            )
        exported.save_definitions(definitions)
        report.note(f"the features are defined in {definitions}: upload that first.")
    elif options.definitions is not None:
        raise InputError("{definitions} means nothing here: no features are to be defined.", parameter="definitions")
    if options.file != "-":
        exported.save(options.file)
    for note in exported.notes:
        report.note(note)
    content = exported.content if options.file == "-" else b""
    return Result(text=(content.encode() if isinstance(content, str) else content,))


def _offset(text: str | None, stored: StoredModel, report: Report) -> float | None:
    """A number, or what makes the scores of a file's items positive."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        if not Path(text).exists():
            problem = "{offset} must be a number or a file of items; {0!r} is neither."
            raise InputError(problem, text, parameter="offset") from None
        table = read(Path(text), Reading(queries="optional", labels="ignored"), report, stored)
        return export.positive_offset(stored.model, table.X)
    if not math.isfinite(value):
        raise InputError("{offset} must be a finite number or a file of items; got {0!r}.", text, parameter="offset")
    return value
