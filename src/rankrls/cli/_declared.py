"""How an option or an argument of a command is declared: a field of a dataclass with metadata."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any

import click

from rankrls.cli._values import Reader


@dataclass(frozen=True)
class Option:
    """How an option or an argument is written and read; its help is in the docstring of ``Options``.

    Attributes
    ----------
    metavar : str
        What help shows for its value.
    commands : str
        The commands that have it, between blanks.
    default : object
        As it would be written; None if nothing is a value of its own.
    kind : type
        What is made of the text before it is read.
    reads : callable or None
        The value, from the flag and from what was given. It refuses what cannot be.
    flags : tuple of str
        How it is written; by default two dashes and the field's name.
    argument, required : bool
        Whether it stands without a flag, and whether it has to be there.
    nargs : int
        How many values an argument has; -1 for any number, but one at least.
    """

    metavar: str
    commands: str
    default: Any = None
    kind: Any = str
    reads: Reader | None = None
    flags: tuple[str, ...] = ()
    argument: bool = False
    required: bool = False
    nargs: int = 1


def option(metavar: str, commands: str, default: Any = None, kind: Any = str, **details: Any) -> Any:
    """A field that is an option."""
    return field(default=None, metadata={"option": Option(metavar, commands, default, kind, **details)})


def argument(metavar: str, commands: str, kind: Any = Path, *, required: bool = True, nargs: int = 1) -> Any:
    """A field that is an argument."""
    return option(metavar, commands, kind=kind, argument=True, required=required, nargs=nargs)


def switch(commands: str, *flags: str) -> Any:
    """A field that is an option without a value."""
    return option("", commands, False, bool, flags=flags)


def declared(options: type) -> dict[str, Option]:
    """The options of a dataclass, by field: its own, then those of its bases."""
    own = vars(options)["__annotations__"]
    return {each.name: each.metadata["option"] for each in sorted(fields(options), key=lambda f: f.name not in own)}


def flags_of(name: str, each: Option) -> tuple[str, ...]:
    """How an option is written, in full first."""
    return each.flags or ("--" + name.replace("_", "-"),)


def parameters_of(
    options: type, command: str, texts: Mapping[str, str], notes: Mapping[str, str]
) -> list[click.Parameter]:
    """The options and arguments of a command.

    Parameters
    ----------
    options : type
        The dataclass.
    command : str
    texts : mapping of str to str
        What stands for ``{name}`` in the help.
    notes : mapping of str to str
        What the help of a field begins with.
    """
    helps, out = _helps(options), list[click.Parameter]()
    for name, each in declared(options).items():
        if command not in each.commands.split():
            continue
        text = notes.get(name, "") + helps.get(name, "").format(**texts)
        about: Any = {"metavar": each.metavar or None, "type": each.kind, "required": each.required, "help": text}
        if each.argument:
            out.append(_Argument([name], nargs=each.nargs, **about))
            continue
        about |= {} if each.required else {"default": each.default, "show_default": True, "is_flag": each.kind is bool}
        out.append(click.Option([name, *flags_of(name, each)], **about))
    return out


class _Argument(click.Argument):
    """An argument that has a help, as click's own have since 8.5."""

    def __init__(self, names: list[str], *, help: str, **about: Any) -> None:
        super().__init__(names, **about)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:
        """What the list of arguments, or of options, says of it."""
        return self.make_metavar(ctx), self.help or ""


def _helps(options: type) -> dict[str, str]:
    """The help of each option: its lines under "Attributes" in the docstring of its class."""
    texts = (inspect.cleandoc(c.__doc__ or "").partition("----------\n")[2] for c in options.__mro__ if is_dataclass(c))
    text = "\n".join(texts)
    return {name: " ".join(lines.split()) for name, lines in re.findall(r"(?m)^(\w+)\n((?: {4}.*(?:\n|$))+)", text)}
