"""``rankrls explain``, ``export`` and ``info``: what a stored model is, and why it ranks as it does."""

from __future__ import annotations

import math
from inspect import signature

from rankrls import export as engines, inspection
from rankrls._cells import cell_number
from rankrls._errors import InputError
from rankrls.cli._files import read
from rankrls.cli._options import Options, given
from rankrls.cli._report import Report, Result, features_table, values_table
from rankrls.io._text import few
from rankrls.io.files import read_names
from rankrls.io.rows import row_of
from rankrls.persistence import read_info
from rankrls.persistence.stored import StoredModel, stored_model

_NAMES = 50  # --json has all


def explain(options: Options, report: Report) -> Result:
    """Say why item A is ranked above item B."""
    stored = stored_model(options.model)
    table = read(options.data, options.reading(), report, stored)
    stored.check_queries(table)
    names = None if options.names is None else read_names(options.names)
    if names is None and (stored.encoder is not None or stored.schema.features is None):
        names = table.feature_ids
    items = [item for item in (options.first, options.second) if item is not None]
    rows = [row_of(item, table, options.query) for item in items]
    explained = inspection.explain(stored.model, table.X, qid=table.qid, feature_names=names, target=options.target)
    called = [] if table.docids is None else items
    pair = explained.pair(*rows, names=called)
    top = options.top or None
    found = {"items": called or None, **pair.as_dict(top=top)}
    return Result(found, text=[f"{pair.table(top)}\n"])


def export(options: Options, report: Report) -> Result:
    """Write a model in another format."""
    function = getattr(engines, f"to_{options.engine.replace('-', '_')}")
    names = None if options.names is None else read_names(options.names)
    places = {"store": options.store, "dialect": options.dialect}
    arguments = given({"feature_names": names, "target": options.target, **places})
    for name in arguments:
        if name not in signature(function).parameters:
            raise InputError(f"--{name.removeprefix('feature_')} cannot be used for {options.engine}.", parameter=name)
    stored = stored_model(options.model)
    exported = function(stored.whole, options.name, offset=_offset(options, stored, report), **arguments)
    for note in exported.notes:
        report.note(note)
    if options.out == "-":
        return Result(text=(exported.content,))
    exported.save(options.out)
    if exported.files:
        report.note(f"the folder of {options.out} has {' and '.join(exported.files)} too.")
    return Result()


def _offset(options: Options, stored: StoredModel, report: Report) -> float | None:
    """A number, or the offset that makes the scores of a file's items positive."""
    if options.offset is None:
        return None
    value = cell_number(str(options.offset))
    if math.isfinite(value):
        return value
    table = read(options.offset, options.reading(), report, stored)
    return engines.positive_offset(stored.model, table.X, options.target)


def info(options: Options, report: Report) -> Result:
    """Show a model's metadata."""
    found = read_info(options.about)
    values = found | {name: value for name, value in found["given"].items() if name not in found}
    values.pop("selected_features", None)  # of the provenance or the model
    chosen = found.get("selected_features", ())
    parts = {name: values.pop(name) for name in [*values] if isinstance(values[name], dict)}
    del parts["given"]
    values["feature_names"] = few(values["feature_names"] or [], _NAMES)
    features = features_table(chosen)
    others = [values_table(name.replace("_", " ").capitalize(), part) for name, part in parts.items()]
    return Result({"file": str(options.about), **found}, [values_table(str(options.about), values), features, *others])
