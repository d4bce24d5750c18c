"""The commands put together, and what becomes of errors and warnings."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import traceback
import warnings
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rankrls import __version__
from rankrls.cli import compare, convert, cv, evaluate, explain, export, fit, info, predict, rank, split
from rankrls.cli._supervisor import INTERRUPTED, interrupted

__all__ = ["run"]

COMMANDS: dict[str, Any] = {
    "fit": fit,
    "cv": cv,
    "predict": predict,
    "rank": rank,
    "explain": explain,
    "evaluate": evaluate,
    "compare": compare,
    "export": export,
    "convert": convert,
    "split": split,
    "info": info,
}
BAD_INPUT, FAILED = 2, 1
DEBUG_VARIABLE = "RANKRLS_DEBUG"


@dataclass
class Run:
    """What holds for one run of the program, whatever the command."""

    debug: bool = False


class Command(TyperCommand):
    """A command whose help shows arguments by the names that this package gives them, whatever typer adds to them."""

    def get_help(self, ctx: Any) -> str:
        """The text of ``--help``."""
        usage, *rest = super().get_help(ctx).split("\n\n")
        usage = re.sub(r"\{([^{}]+)\}(?:\.\.\.)?|\[(\[\w+\])\]", r"\1\2", usage)
        blank = lambda found: " " * len(found.group())  # the texts beside stay in their column
        return "\n\n".join([usage, *(re.sub(r" <(?:path|str|list\[\w+\])>", blank, part) for part in rest)])


def root(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG_VARIABLE, help="Show the whole traceback of an error.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Learn to rank by pairwise regularized least squares: files in, a chosen and judged model out."""
    context.obj.debug |= debug
    if version:
        print(f"rankrls {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


def build() -> typer.Typer:
    """The program with all its commands."""
    # Plain help: rich's takes a third of the time that --help may take.
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback(
        invoke_without_command=True, epilog="Example: rankrls fit train.txt --test test.txt --model m.rankrls"
    )(root)
    for name, module in COMMANDS.items():
        app.command(name, epilog=module.EXAMPLES, cls=Command)(module.command)
    return app


def run(argv: list[str]) -> int:
    """Run the program; returns the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a sign that the terminal does not have is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    state = Run(debug="--debug" in argv or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0"))
    argv = [word for word in argv if word != "--debug"]  # it may stand behind the command too
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            # arrays without names go into models that know theirs: columns are matched where files are read
            warnings.filterwarnings("ignore", message=".* does not have valid feature names")
            status = build()(args=argv, prog_name="rankrls", obj=state, standalone_mode=False)
        for text in dict.fromkeys(_one_line(str(w.message)) for w in caught if _concerns_the_user(w.category)):
            print(f"rankrls: note: {text}", file=sys.stderr)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as error:  # how typer ends where the reader of its output has left
        _reader_left()
        return error.code if isinstance(error.code, int) else FAILED
    except Exception as error:
        return _failed(error, argv, state.debug)
    if status == INTERRUPTED:  # typer turns a KeyboardInterrupt into this status
        return interrupted()
    return status if isinstance(status, int) else 0


def _concerns_the_user(category: type[Warning]) -> bool:
    """Deprecations concern whoever maintains this package, not who runs it."""
    return not issubclass(category, (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning))


def _failed(error: Exception, argv: list[str], debug: bool) -> int:
    if isinstance(error, typer.Abort):
        return interrupted()
    if debug:
        traceback.print_exception(error)
    if hasattr(error, "format_message"):  # a wrong option or argument, found while parsing
        command = next((word for word in argv if word in COMMANDS), None)
        about = f"rankrls {command} --help" if command else "rankrls --help"
        return _say(f"{str(error.format_message()).rstrip('.')} (see {about})", BAD_INPUT)
    if isinstance(error, OSError):
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return _say(f"{name}{error.strerror or error}", BAD_INPUT)
    if isinstance(error, ValueError):
        return _say(str(error), BAD_INPUT)
    if isinstance(error, MemoryError):
        return _say(f"not enough memory: {error or 'the data are too large for this machine'}", FAILED)
    return _say(
        f"internal error: {type(error).__name__}: {error}; run with {DEBUG_VARIABLE}=1 to see where, and please "
        "report it",
        FAILED,
    )


def _say(message: str, status: int) -> int:
    print(f"rankrls: error: {_one_line(message)}", file=sys.stderr)
    return status


def _one_line(text: str) -> str:
    """A message without line ends, and with a name for what a terminal might obey: a file can hold anything."""
    line = " ".join(text.split())
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def _reader_left() -> int:
    """Whoever read the output (``| head``) has seen enough: no message, and none at exit either."""
    with contextlib.suppress(OSError, ValueError):  # standard output is no file, or closed already
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return FAILED
