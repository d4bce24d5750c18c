"""The result of an export: a file's content, and notes for its deployment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any

from rankrls._errors import InputError
from rankrls._public import publish
from rankrls.io import atomic_write


@dataclass(frozen=True)
class Exported:
    """A model in another system's format.

    Attributes
    ----------
    format : str
        The name of the format, such as ``"solr"``.
    content : str or bytes
        The content of the file or the request; bytes for ONNX.
    notes : tuple of str
        Facts to know before it is deployed: what the system cannot express, and what has to be defined there.
    definitions : str or None
        The content of a second file, which defines the features: of models behind a
        :class:`~rankrls.preprocessing.TableEncoder`, for systems that keep definitions apart.
    """

    format: str
    content: str | bytes
    notes: tuple[str, ...]
    definitions: str | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a file, whole or not at all.

        Parameters
        ----------
        path : path

        Raises
        ------
        OSError
            If the file cannot be written; a file of the same name keeps its old content.
        """
        data = self.content.encode() if isinstance(self.content, str) else self.content
        with atomic_write(path) as file:
            file.write(data)

    def save_definitions(self, path: str | os.PathLike[str]) -> None:
        """Write the features' definitions to a file, whole or not at all.

        Parameters
        ----------
        path : path

        Raises
        ------
        ValueError
            If there are none.
        OSError
            As :meth:`save`.
        """
        if self.definitions is None:
            problem = "This export defines no features: the model takes features that the system has to know already."
            raise InputError(problem, remedy="Definitions are written for models behind a TableEncoder.")
        replace(self, content=self.definitions).save(path)

    def json(self) -> Any:
        """The content as Python objects, for a client that posts it; only for formats that are JSON."""
        return json.loads(self.content)


def json_text(value: Any) -> str:
    """Indented JSON that ends with a newline."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


publish("rankrls.export", {"__name__": "rankrls.export", "__all__": ["Exported"], "Exported": Exported})
