"""Model files: written whole or not at all, read without running anything that they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rankrls._public import publish
from rankrls.persistence._archive import FORMAT_VERSION, ModelFileError, read_info

if TYPE_CHECKING:
    from rankrls.persistence._files import load, save

__all__ = ["FORMAT_VERSION", "ModelFileError", "load", "read_info", "save"]


def __getattr__(name: str) -> Any:
    # Reading what a file says about itself does not wait for scikit-learn; making a model of it does.
    if name in ("load", "save"):
        from rankrls.persistence import _files

        return getattr(_files, name)
    raise AttributeError(f"module 'rankrls.persistence' has no attribute {name!r}")


publish(__name__, globals())
