"""Model files: written whole or not at all, read without running anything that they say."""

from rankrls.persistence._files import load, read_info, save
from rankrls.persistence._format import FORMAT_VERSION

__all__ = ["FORMAT_VERSION", "load", "read_info", "save"]
