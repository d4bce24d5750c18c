"""Which columns of a table are what, on the command line."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rankrls._errors import InputError
from rankrls.cli._values import names

__all__ = ["NOT_SAID", "Columns"]


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
            raise InputError(
                "{features} is a number for LETOR text (names are for tables); got {0!r}.", self.features
            ) from None
        if count < 1:
            raise InputError("{features} must be at least 1; got {0}.", count)
        return count

    def names(self, option: str) -> tuple[str, ...] | None:
        """``--features`` or ``--ignore`` of tables."""
        text = getattr(self, option)
        return None if text is None else names(f"--{option}", text)

    def of_tables(self) -> str | None:
        """An option that was given and means something for tables only."""
        return next((f"--{name}" for name in ("label", "qid", "id", "ignore") if getattr(self, name) is not None), None)

    def like(self, usual: dict[str, str]) -> Columns:
        """The same, with the training data's names as the usual ones."""
        return replace(self, usual=tuple((dict(self.usual) | usual).items()))


NOT_SAID = Columns()
"""No option was given."""
