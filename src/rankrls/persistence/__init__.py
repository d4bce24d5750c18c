"""Model files: written whole or not at all, read without running anything that they say."""

from rankrls.models.fitted import FORMAT_VERSION
from rankrls.persistence._files import load, read_info, save

__all__ = ["FORMAT_VERSION", "load", "read_info", "save"]
