"""``rankrls export``: a model in a search engine's format."""

from __future__ import annotations

import math
import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._report import Report
from rankrls.cli._words import in_options
from rankrls.export import ENGINES

if TYPE_CHECKING:
    from rankrls.cli._models import StoredModel

EXAMPLES = "Example: rankrls export m.rankrls model.json --format solr --names features.txt --name my_model"
_HINTS = {
    "columns without names": "Here: --names FILE, one name a line",
    "scales by query": "Here: rankrls fit --scale standard-all or minmax-all",
}
_FLAGS = {"feature_names": "--names", "target": "--target", "offset": "--offset", "phase": "--phase"}
FORMATS = tuple(ENGINES)
_OWN = {"feature_names": "--names", "target": "--target", "scaler": "--fold", "store": "--store", "phase": "--phase"}

Model = Annotated[
    Path, typer.Argument(metavar="MODEL", show_default=False, help="A model that rankrls fit or rankrls.save wrote.")
]
Output = Annotated[
    str, typer.Argument(metavar="FILE", show_default=False, help="Where the export goes; - is standard output.")
]
Format = Annotated[str, typer.Option("--format", metavar="WORD", show_default=False, help=", ".join(FORMATS) + ".")]
Name = Annotated[str, typer.Option("--name", metavar="NAME", help="The model's name in the engine.")]
Names = Annotated[
    Path | None,
    typer.Option("--names", metavar="FILE", help="The features' names in the engine, one a line, in column order."),
]
Store = Annotated[str | None, typer.Option("--store", metavar="NAME", help="Solr's feature store.")]
Phase = Annotated[
    str, typer.Option("--phase", metavar="WORD", help="Vespa's phase: first-phase, second-phase, global-phase.")
]
Fold = Annotated[
    bool, typer.Option("--fold", help="Fold the scaler into the weights, instead of the engine's normalizers.")
]
Offset = Annotated[
    str | None,
    typer.Option(
        "--offset", metavar="NUMBER|FILE", help="Add to every score; a file of items: as much as makes theirs positive."
    ),
]
Target = Annotated[
    int | None, typer.Option("--target", metavar="K", help="Which target (from 0) of a model of several.")
]


def command(
    model: Model,
    output: Output,
    format: Format,
    name: Name = "rankrls",
    names: Names = None,
    store: Store = None,
    phase: Phase = "second-phase",
    fold: Fold = False,
    offset: Offset = None,
    target: Target = None,
    quiet: options.Quiet = False,
) -> None:
    """Write a model in the format of a search engine or of ONNX.

    The engines' own formats hold linear models, behind scalers that treat every document alike; ONNX holds kernels
    too. What the engine has to know besides goes to standard error.
    """
    report = Report(False, False, quiet)
    options.check_choice("--format", format, FORMATS)
    from rankrls.cli._data import check_target, read_names
    from rankrls.cli._models import load_model

    if output != "-":
        check_target(output, model, names, offset)
    from rankrls import export

    function = getattr(export, f"to_{format}")
    given: dict[str, Any] = {"feature_names": names, "target": target, "store": store}
    given |= {"scaler": "fold" if fold else None, "phase": None if phase == "second-phase" else phase}
    arguments = {parameter: value for parameter, value in given.items() if value is not None}
    for parameter in arguments:
        if parameter not in signature(function).parameters:
            raise ValueError(f"{_OWN[parameter]} means nothing to --format {format}.")
    stored = load_model(model, report)
    if names is not None:
        arguments["feature_names"] = read_names(names)
    with in_options(_FLAGS, hints=_HINTS):
        arguments["offset"] = _offset(offset, stored, report)
        exported = function(stored.model, name, **arguments)
    if output != "-":
        exported.save(output)
    elif isinstance(exported.content, str):
        sys.stdout.write(exported.content)
    else:
        sys.stdout.buffer.write(exported.content)
    for note in exported.notes:
        report.note(note.replace("see offset", "see --offset"))


def _offset(text: str | None, stored: StoredModel, report: Report) -> float | None:
    """A number, or what makes the scores of a file's items positive."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = None
    if value is not None:
        if not math.isfinite(value):
            raise ValueError(f"--offset must be a finite number or a file of items; got {text!r}.")
        return value
    from rankrls.export import positive_offset

    path = Path(text)
    if not path.exists():
        raise ValueError(f"--offset must be a number or a file of items; {text!r} is neither.")
    table = stored.read(path, report, queries="optional")
    return positive_offset(stored.model, table.X)
