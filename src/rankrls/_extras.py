"""Packages that are needed for one thing each, and come with an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class MissingPackageError(ImportError):
    """A package that only an extra brings is not installed; the message has the command that installs it."""


def needed(what: str, extra: str, *modules: str) -> Any:
    """The first of some modules, with all of them imported.

    Parameters
    ----------
    what : str
        What cannot be done without, to begin the message with.
    extra : str
        The extra of this package that brings them.
    *modules : str
        Their names; the first is the one that is returned.

    Raises
    ------
    MissingPackageError
        Where one is not installed, with the command that installs it.
    """
    try:
        for name in modules[1:]:
            import_module(name)
        return import_module(modules[0])
    except ImportError:
        package = modules[0].partition(".")[0]
        raise MissingPackageError(
            f"{what} needs {package}, which is not installed: python -m pip install 'rankrls[{extra}]'."
        ) from None
