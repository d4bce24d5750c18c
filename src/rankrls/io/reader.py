"""Opened files of rows, of any format."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

from rankrls._errors import InputError
from rankrls._typing import Mask
from rankrls.io.columns import ColumnRoles
from rankrls.io.rows import Lines, Rows, Schema


class Reader(ABC):
    """A file whose columns are known and whose rows have not been read.

    Attributes
    ----------
    name : str
        Name of the file in errors.
    types : dict of str to DataType
        Type of each column; empty for LETOR text.
    lines : Lines or None
        Lines of the rows that have been read from text.
    """

    name: str
    types: Mapping[str, Any] = {}
    lines: Lines | None = None

    @abstractmethod
    def schema(self, roles: ColumnRoles) -> Schema:
        """Column of each role, determined without reading rows.

        Raises
        ------
        InputError
            If a requested column does not exist or has two roles, or no feature is left.
        """

    @abstractmethod
    def scan(self, roles: ColumnRoles) -> Schema:
        """Schema for :meth:`parts`, with the types of columns; LETOR text is read for it."""

    @abstractmethod
    def read(self, schema: Schema) -> Rows:
        """Read all rows.

        Raises
        ------
        InputError
            For the first row with a value that cannot be read, with its line in text.
        """

    @abstractmethod
    def parts(self, schema: Schema) -> Iterator[Rows]:
        """Read all rows in parts; a query may continue in the next part."""

    def cells(self, schema: Schema, missing: tuple[str, ...]) -> Rows:
        """Read all rows with a table of pyarrow as X, which contains the cells unchanged, for an encoder.

        Parameters
        ----------
        schema : Schema
        missing : tuple of str
            Cell texts of text files that become null, in any case, in addition to empty ones; by default ``MISSING``.

        Raises
        ------
        InputError
            For LETOR text, which has numbers only.
        """
        raise self.refuse("cells that are not numbers need a table, but by its ending this file is LETOR text.")

    @abstractmethod
    def stored(self, kept: Mask) -> Iterator[Any]:
        """The selected rows, unchanged, for :attr:`Format.write`."""

    def refuse(self, message: str, **facts: Any) -> InputError:
        """Error about the file."""
        return InputError(message, file=self.name, **facts)

    def refuse_row(self, row: int, message: str, **facts: Any) -> InputError:
        """Error about a row, from 0, which names its line in text."""
        line = None if self.lines is None else self.lines.of(row)
        return self.refuse(f"{'' if line else f'row {row}, counted from 0: '}{message}", row=row, line=line, **facts)
