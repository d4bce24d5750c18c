"""Errors and warnings that carry their facts as data beside a sentence for people."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from rankrls._public import publish

__all__ = ["InputError", "InputWarning", "Parameter", "Stated"]

Speller = Callable[["Parameter"], str]


class Parameter(str):
    """A parameter that a message names, and the value that the message gives it, if any: ``cv`` or ``cv=5``."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """The parameter without its value."""
        return self.partition("=")[0]

    @property
    def value(self) -> str | None:
        """The text behind the equals sign; None if there is none."""
        _, sign, value = self.partition("=")
        return value if sign else None


class Stated(Exception):  # noqa: N818
    """A message made of a template, and its facts as attributes.

    Parameters
    ----------
    problem : str
        What is wrong. ``{0}``, ``{1!r}`` and ``{2:.3g}`` stand for ``values``; ``{alpha}`` and ``{cv=5}`` name
        parameters, so that the command line can show its own options in their place.
    *values : object
        What the template shows. They are turned into text at once; a :class:`Parameter` stays one.
    remedy : str
        What to do about it, as a template of the same form with the same values.
    parameter : str, optional
        The parameter that is wrong: the first one that the problem names, if nothing else is said. None for none.
    row : int, optional
        The row, counted from 0.
    column : int or str, optional
        The number or the name of the column.
    file : str, optional
        The file. The message begins with it.
    line : int, optional
        The line of the file, counted from 1.
    """

    def __init__(
        self,
        problem: str,
        *values: Any,
        remedy: str = "",
        parameter: str | None = "",
        row: int | None = None,
        column: int | str | None = None,
        file: str | None = None,
        line: int | None = None,
    ) -> None:
        self._problem = tuple(_parts(problem, values))
        self._remedy = tuple(_parts(remedy, values))
        if parameter == "":
            parameter = next((part.name for part in self._problem if isinstance(part, Parameter)), None)
        self.parameter, self.row, self.column, self.file, self.line = parameter, row, column, file, line
        super().__init__(str(self))

    @property
    def problem(self) -> str:
        """What is wrong, without the place in a file and without the remedy."""
        return "".join(self._problem)

    @property
    def remedy(self) -> str:
        """What to do about it; empty if the message does not say."""
        return "".join(self._remedy)

    @property
    def place(self) -> str:
        """``file:line``, ``file``, or nothing."""
        if self.file is None:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    def render(self, spell: Speller) -> str:
        """The whole message, with every parameter spelled by a function."""
        problem, remedy = (
            "".join(spell(part) if isinstance(part, Parameter) else part for part in parts)
            for parts in (self._problem, self._remedy)
        )
        text = f"{problem} {remedy}" if remedy else problem
        return f"{self.place}: {text}" if self.place else text

    def located(self, **facts: Any) -> Self:
        """The same message with other facts: a file, a line, a row, a column or a parameter."""
        kind: Any = type(self)
        out = kind.__new__(kind)
        out.__dict__.update(self.__dict__ | facts)
        out.args = (str(out),)
        return out

    def renamed(self, names: dict[str, str]) -> Self:
        """The same message about other parameters, for a function that hands its own parameters on."""
        swap = lambda part: _renamed(part, names) if isinstance(part, Parameter) else part
        parameter = None if self.parameter is None else names.get(self.parameter, self.parameter)
        problem, remedy = (tuple(map(swap, parts)) for parts in (self._problem, self._remedy))
        return self.located(_problem=problem, _remedy=remedy, parameter=parameter)

    def prefixed(self, words: str, *values: Any) -> Self:
        """The same message behind words that say what it belongs to, such as ``"ranking {0!r}: "``."""
        return self.located(_problem=(*_parts(words, values), *self._problem))

    def joined(self, others: Sequence[Stated]) -> Self:
        """One message of this one and others, with the facts of this one; a remedy that several have is said once."""
        problems = [part for other in others for part in (" ", *other._problem)]
        messages: list[Stated] = [self, *others]
        remedies = dict.fromkeys(message._remedy for message in messages if message._remedy)
        remedy = [part for parts in remedies for part in (" ", *parts)]
        return self.located(_problem=(*self._problem, *problems), _remedy=tuple(remedy[1:]))

    def then(self, other: Stated) -> Self:
        """The same message, and behind it the whole of another one about something else."""
        first, *rest = other._problem
        first = first if isinstance(first, Parameter) else first[:1].upper() + first[1:]
        return self._with_remedy(first, *rest, *[" "] * bool(other._remedy), *other._remedy)

    def followed(self, words: str, *values: Any) -> Self:
        """The same message with more to know or to do behind it."""
        return self._with_remedy(*_parts(words, values))

    def _with_remedy(self, *parts: str) -> Self:
        return self.located(_remedy=(*self._remedy, *[" "] * bool(self._remedy), *parts))

    def __str__(self) -> str:
        return self.render(str)

    def __reduce__(self) -> Any:
        return _restored, (type(self), self.__dict__, self.args)


class InputError(Stated, ValueError):
    """Bad input: one sentence that says what is wrong, where, and what to do, and the same facts as attributes.

    Examples
    --------
    >>> from rankrls import InputError
    >>> error = InputError("{alpha} must not be negative; got {0}.", -1.0, remedy="Give 0 or more.", parameter="alpha")
    >>> print(error)
    alpha must not be negative; got -1.0. Give 0 or more.
    >>> print(error.render(lambda parameter: "--" + parameter.name))
    --alpha must not be negative; got -1.0. Give 0 or more.
    >>> error.parameter, error.remedy
    ('alpha', 'Give 0 or more.')
    """


class InputWarning(Stated, UserWarning):
    """Input that can be used, but probably not as its owner thinks; it has the attributes of :class:`InputError`."""


def _parts(template: str, values: tuple[Any, ...]) -> Iterator[str]:
    for text, field, spec, conversion in string.Formatter().parse(template):
        if text:
            yield text
        if field is None:
            continue
        if not field.isdigit():
            yield Parameter(field)
            continue
        value = values[int(field)]
        if isinstance(value, Parameter):
            yield value
            continue
        yield format(repr(value) if conversion == "r" else value, spec or "")


def _renamed(parameter: Parameter, names: dict[str, str]) -> Parameter:
    name = names.get(parameter.name, parameter.name)
    return Parameter(name if parameter.value is None else f"{name}={parameter.value}")


def _restored(kind: Any, facts: dict[str, Any], args: tuple[Any, ...]) -> Any:
    out = kind.__new__(kind)
    out.__dict__.update(facts)
    out.args = args
    return out


publish("rankrls", {**globals(), "__name__": "rankrls", "__all__": ["InputError", "InputWarning"]})
