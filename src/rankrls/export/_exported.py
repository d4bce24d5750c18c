"""What an export gives: a file's content, and what whoever deploys it has to know."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any

from rankrls.io import atomic_write

__all__ = ["Exported", "json_text"]


@dataclass(frozen=True)
class Exported:
    """A model in another system's format.

    Attributes
    ----------
    format : str
        The name of the format, such as ``"solr"``.
    content : str or bytes
        What belongs into the file or the request; bytes for ONNX.
    notes : tuple of str
        What to know before it is deployed: what the system cannot express, and what has to be defined there.
    """

    format: str
    content: str | bytes
    notes: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the content to a file, whole or not at all.

        Parameters
        ----------
        path : path

        Raises
        ------
        OSError
            Where the file cannot be written; one of the same name keeps its old content.
        """
        data = self.content.encode() if isinstance(self.content, str) else self.content
        with atomic_write(path) as file:
            file.write(data)

    def json(self) -> Any:
        """The content as Python objects, for a client that posts it; formats that are JSON only."""
        return json.loads(self.content)


def json_text(value: Any) -> str:
    """Indented JSON with a line end, as people read and compare it."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
