"""The program put together, and what becomes of errors and warnings."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from rankrls import __version__
from rankrls._errors import InputError
from rankrls._extras import MissingPackageError
from rankrls._kernel_table import KERNELS, PARAMETERS, kernels_with
from rankrls._nearest import did_you_mean
from rankrls.cli._commands import COMMANDS
from rankrls.cli._declared import parameters_of
from rankrls.cli._methods import METHODS, takers
from rankrls.cli._options import Options, names_of_options
from rankrls.cli._report import Report, Result, tell
from rankrls.cli._spelling import said
from rankrls.cli._supervisor import INTERRUPTED, interrupted
from rankrls.export import ENGINES
from rankrls.selection.rules import RULES

__all__ = ["run"]

BAD_INPUT, FAILED = 2, 1
DEBUG_VARIABLE = "RANKRLS_DEBUG"
_TOO_LARGE = "numbers overflowed: features as large or as far apart as these need scaling (see --scale)."


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
    if version:
        print(f"rankrls {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@cache  # a process may run several commands
def build() -> Any:
    """The program with all its commands."""
    # Plain help: rich's takes a third of the time that --help may take.
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    example = "Example: rankrls fit train.txt --test test.txt --model m.rankrls"
    app.callback(invoke_without_command=True, epilog=example)(root)
    texts = {
        "methods": "; ".join(f"{method.name}: {method.summary}" for method in METHODS.values()),
        "kernels": ", ".join(KERNELS),
        **{name: kernels_with(name) for name in PARAMETERS},
        "rules": ", ".join(RULES),
        "engines": ", ".join(ENGINES),
    }
    own = [
        name for name, default in names_of_options().items() if default is None and 0 < len(takers(name)) < len(METHODS)
    ]
    notes = {name: f"{', '.join(takers(name))}: " for name in own}
    for name, text in COMMANDS.items():
        text, _, example = text.rpartition("\n\n")
        command = _as_function(name, parameters_of(Options, name, texts, notes))
        app.command(name, help=text, epilog=example, cls=Command)(command)
    return typer.main.get_command(app)


def _as_function(name: str, parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """A function with these parameters, as typer looks at them, that runs a command."""

    def command(**given: Any) -> None:
        options = Options.read(given)
        report = Report(options.as_json, options.verbose, options.quiet)
        status = _carry_out(name, options, report)
        if status:
            raise typer.Exit(status)

    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _carry_out(name: str, options: Options, report: Report) -> int:
    """Run a command, beside what it has to compile, and show what it finds."""
    from rankrls.cli.startup.ahead import compiling_ahead

    with compiling_ahead(name):  # before anything slow is imported
        return _shown(name, options, report)


def _shown(name: str, options: Options, report: Report) -> int:
    """Run a command on as many threads as were asked for, and show what it finds; overflowing numbers are said once."""
    import numpy as np

    from rankrls._compiled.threads import limited_threads
    from rankrls.cli.startup.lean import imported

    def overflowed(kind: str, flags: int) -> None:
        warnings.warn(_TOO_LARGE, RuntimeWarning, stacklevel=2)

    numbers = np.errstate(over="call", invalid="call", divide="call", call=overflowed)
    try:
        with limited_threads(options.threads), numbers:
            result: Result = imported(f"rankrls.cli.commands.{name}").run(options, report)
            report.show(result)
            return result.status
    except np.linalg.LinAlgError as error:
        raise InputError(_TOO_LARGE + " ({0})", error) from error
    except EOFError as error:  # typer would take it for an interruption
        raise RuntimeError(f"EOFError: {error}") from error


def run(argv: list[str]) -> int:
    """Run the program; returns the exit status."""
    for descriptor in range(3):  # a standard stream that is closed must not become the number of a file of data
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a sign that the terminal does not have is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    debug = "--debug" in argv or os.environ.get(DEBUG_VARIABLE, "") not in ("", "0")
    argv = [word for word in argv if word != "--debug"]  # it may stand behind the command too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.showwarning = _noting()
            # arrays without names go into models that know theirs: columns are matched where files are read
            warnings.filterwarnings("ignore", message=".* does not have valid feature names")
            status = build()(args=argv, prog_name="rankrls", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return _reader_left()
    except SystemExit as error:  # how typer ends where the reader of its output has left
        _reader_left()
        return error.code if isinstance(error.code, int) else FAILED
    except Exception as error:
        return _failed(error, argv, debug)
    if status == INTERRUPTED:  # typer turns a KeyboardInterrupt into this status
        return interrupted()
    return status if isinstance(status, int) else 0


def _noting() -> Callable[..., None]:
    """Tells a warning at once, since it may be about how long what follows will take; each text once."""
    told: set[str] = set()

    def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        text = said(message)
        if text not in told and _concerns_the_user(category):
            told.add(text)
            tell(f"note: {text}")

    return note


def _concerns_the_user(category: type[Warning]) -> bool:
    """Deprecations, and files that an interruption left open, concern who maintains this package, not who runs it."""
    inside = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
    return not issubclass(category, inside)


def _failed(error: Exception, argv: list[str], debug: bool) -> int:
    if isinstance(error, typer.Abort):
        return interrupted()
    if debug and sys.stderr is not None:
        traceback.print_exception(error)
    status, text = BAD_INPUT, said(error)
    if hasattr(error, "format_message"):  # a wrong option or argument, found while parsing
        command = next((f"{word} " for word in argv if word in COMMANDS), "")
        text = str(error.format_message()).rstrip(".")
        near, unknown = getattr(error, "possibilities", None), getattr(error, "option_name", None)
        if near and unknown is not None:
            text = f"No such option: {unknown}. {did_you_mean(unknown, near)}"
        text = f"{text} (see rankrls {command}--help)"
    elif isinstance(error, OSError):
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        text = f"{name}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        status, text = FAILED, f"not enough memory: {text or 'the data are too large for this machine'}"
    elif not isinstance(error, ValueError | MissingPackageError):
        remedy = f"run with {DEBUG_VARIABLE}=1 to see where, and please report it"
        status, text = FAILED, f"internal error: {type(error).__name__}: {error}; {remedy}"
    tell(f"error: {text}")
    return status


def _reader_left() -> int:
    """Whoever read the output (``| head``) has seen enough: no message, and none at exit either."""
    with contextlib.suppress(OSError, ValueError):  # standard output is no file, or closed already
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return FAILED
