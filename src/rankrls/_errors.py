"""Errors and warnings that contain their facts as attributes, in addition to a message for users."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Self

__all__ = ["InputError", "InputWarning"]

_LONG = 60.0
"""Expected duration, in seconds, beyond which a job is announced before it starts."""


@dataclass(eq=False, repr=False)
class Located(Exception):  # noqa: N818
    """A message with its facts as attributes.

    Parameters
    ----------
    message : str
        Problem and remedy. The text of the error is ``file:line: `` followed by this message.
    parameter : str, optional
        Python name of the wrong parameter.
    row : int, optional
        Row number, from 0.
    column : int or str, optional
        Number or name of the column.
    file : str, optional
        Path of the file.
    line : int, optional
        Line of the file, from 1.
    settings : mapping of str to object, optional
        Parameters that the message advises to set, in the form of :func:`format_setting`; the command line replaces
        them by its options.
    """

    message: str
    parameter: str | None = None
    row: int | None = None
    column: int | str | None = None
    file: str | None = None
    line: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.args = (self.message,)  # from which pickle makes a copy

    def __str__(self) -> str:
        if self.file is None:
            return self.message
        line = "" if self.line is None else f":{self.line}"
        return f"{self.file}{line}: {self.message}"

    def replace(self, **facts: Any) -> Self:
        """A copy with another message or other facts."""
        return replace(self, **facts)

    def with_setting(self, name: str, value: Any) -> Self:
        """A copy that advises another value of a parameter."""
        message = self.message.replace(format_setting(name, self.settings[name]), format_setting(name, value))
        return self.replace(message=message, settings={**self.settings, name: value})


class InputError(Located, ValueError):
    """Invalid input. The message says what is wrong, where, and what to do; attributes contain the same facts.

    Examples
    --------
    >>> from rankrls import InputError
    >>> error = InputError("y is empty. Give one label per row.", parameter="y", file="train.csv", line=2)
    >>> print(error)
    train.csv:2: y is empty. Give one label per row.
    >>> error.parameter, error.line
    ('y', 2)
    """

    __module__ = "rankrls"


class InputWarning(Located, UserWarning):
    """Input that can be used, but probably not as intended; it has the attributes of :class:`InputError`."""

    __module__ = "rankrls"


def warn_of_cost(seconds: float, job: str, remedy: str, parameter: str) -> None:
    """Warn before a job that is expected to take more than a minute, with its duration and a faster alternative."""
    if seconds > _LONG:
        message = f"{job} will take about {max(1.0, seconds / 60.0):.0f} min. {remedy}"
        warn_user(InputWarning(message, parameter=parameter))


def format_setting(name: str, value: Any) -> str:
    """A parameter and its value in Python syntax, as used in messages."""
    return f"{name}={value!r}"


def did_you_mean(given: Any, words: Iterable[str]) -> str:
    """Question about a similar word, after a space; empty if no word is similar."""
    near = get_close_matches(str(given).lower(), [*words], n=1, cutoff=0.6)
    return f" Did you mean {near[0]!r}?" if near else ""


class MissingPackageError(ImportError):
    """A package of an extra is not installed; the message contains the command that installs it."""


def require_extra(what: str, extra: str, *modules: str) -> Any:
    """Import some modules, and return the first one.

    Parameters
    ----------
    what : str
        Task that needs the modules, the beginning of the message.
    extra : str
        Extra of this package that installs them.
    *modules : str
        Names of the modules; the first one is returned.

    Raises
    ------
    MissingPackageError
        If one is not installed, with the command to install it.
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


def warn_user(warning: Warning) -> None:
    """Issue a warning at the line of the user's code, outside the frames of this library and of scikit-learn."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("rankrls.", "sklearn.")):
        frame = frame.f_back
        level += 1
    warnings.warn(warning, stacklevel=level)
