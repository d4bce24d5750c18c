"""Model files: written whole or not at all, read without running anything that they say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rankrls._public import on_first_use, publish
from rankrls.persistence._archive import FORMAT_VERSION, ModelFileError, read_info

if TYPE_CHECKING:
    from rankrls.persistence._files import load, save

__all__ = ["FORMAT_VERSION", "ModelFileError", "load", "read_info", "save"]


# Reading what a file says about itself does not wait for scikit-learn; making a model of it does.
__getattr__, __dir__ = on_first_use(__name__, dict.fromkeys(("load", "save"), "rankrls.persistence._files"))
publish(__name__, globals())
