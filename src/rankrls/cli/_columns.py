"""Which columns of a table are what, on the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from rankrls.cli import _options as options

__all__ = ["FORMATS", "NOT_SAID", "Columns", "takes_columns"]

FORMATS = ("letor", "csv", "parquet", "arrow")


@dataclass(frozen=True)
class Columns:
    """The options that say how a file is to be read, as they were given; None was not given.

    ``usual`` are names of the label's, the query id's and the items' ids' columns that hold where there are such
    columns and nothing else is said: those of the training data.
    """

    label: str | None = None
    qid: str | None = None
    id: str | None = None
    features: str | None = None
    ignore: str | None = None
    input_format: str | None = None
    usual: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.input_format is not None:
            options.check_choice("--input-format", self.input_format, FORMATS)

    def format_of(self, path: object) -> str:
        """``letor``, ``csv``, ``parquet`` or ``arrow``: as was said, or by the file's name."""
        from rankrls.io.tables.formats import table_format

        return self.input_format or table_format(path) or "letor"

    @property
    def feature_count(self) -> int | None:
        """``--features`` of LETOR text: how many."""
        if self.features is None:
            return None
        try:
            count = int(self.features)
        except ValueError:
            raise ValueError(
                f"--features is a number for LETOR text (names are for tables); got {self.features!r}."
            ) from None
        if count < 1:
            raise ValueError(f"--features must be at least 1; got {count}.")
        return count

    def names(self, option: str) -> tuple[str, ...] | None:
        """``--features`` or ``--ignore`` of tables."""
        text = getattr(self, option)
        return None if text is None else options.parse_names(f"--{option}", text)

    def of_tables(self) -> str | None:
        """An option that was given and means something for tables only."""
        return next((f"--{name}" for name in ("label", "qid", "id", "ignore") if getattr(self, name) is not None), None)

    def item_ids(self, ids: str | None) -> str | None:
        """``--ids``, where ``--id`` alone says it too; None where neither is given."""
        if ids is not None:
            return options.check_choice("--ids", ids, options.IDS)
        return "docid" if self.id is not None else None

    def like(self, usual: dict[str, str]) -> Columns:
        """The same, with the training data's names as the usual ones."""
        return replace(self, usual=tuple((dict(self.usual) | usual).items()))


NOT_SAID = Columns()
"""No option was given."""

_OPTIONS: dict[str, tuple[str, str]] = {
    "label": ("COLUMN", "Of tables: the labels' column; 'label' where there is one."),
    "qid": ("COLUMN", "The query ids' column; 'qid' where there is one."),
    "id": ("COLUMN", "The column of the items' ids, which --ids docid means; 'docid' where there is one."),
    "features": (
        "NAME,...|N",
        "Columns of features, price* for all that begin so; by default all others. A column of lists is all their "
        "numbers; a name with a comma stands in quotes. Of LETOR text: how many.",
    ),
    "ignore": ("NAME,...", "Columns that are no features, by names or patterns."),
    "input_format": (
        "WORD",
        "letor, csv (or TSV), parquet or arrow (Feather); by default what the file's name ends in.",
    ),
}


def takes_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of :class:`Columns`, in the place of its parameter ``columns``."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name != "columns":
            parameters.append(parameter)
            continue
        for name, (metavar, text) in _OPTIONS.items():
            option = typer.Option("--" + name.replace("_", "-"), metavar=metavar, help=text)
            annotation = Annotated[str | None, option]
            parameters.append(parameter.replace(name=name, default=None, annotation=annotation))

    @functools.wraps(command)
    def wrapper(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in _OPTIONS}
        command(columns=Columns(**given), **arguments)

    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {p.name: p.annotation for p in parameters}
    return wrapper
