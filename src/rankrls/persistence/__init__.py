"""Model files: written atomically, and read without executing anything in them."""

from rankrls.models.fitted import FORMAT_VERSION
from rankrls.persistence._files import load, read_info, save

__all__ = ["FORMAT_VERSION", "load", "read_info", "save"]
