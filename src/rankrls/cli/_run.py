"""The program put together, and what becomes of errors and warnings."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import click

from rankrls import __version__
from rankrls._errors import InputError
from rankrls._extras import MissingPackageError
from rankrls._kernel_table import KERNELS, PARAMETERS, kernels_with
from rankrls._nearest import did_you_mean
from rankrls.cli._commands import COMMANDS
from rankrls.cli._declared import parameters_of
from rankrls.cli._methods import METHODS, able_to
from rankrls.cli._options import Options, names_of_options
from rankrls.cli._report import Report, Result, tell
from rankrls.cli._spelling import said
from rankrls.cli._supervisor import INTERRUPTED, interrupted
from rankrls.export import ENGINES
from rankrls.selection.rules import RULES

BAD_INPUT, FAILED = 2, 1
VARIABLE = "RANKRLS_DEBUG"
_TOO_LARGE = "numbers overflowed: features as large or as far apart as these need scaling (see --scale)."

_INSIDE = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
"""What concerns who maintains this package, not who runs it: files that an interruption left open, too."""


class InOrder(click.Group):
    """A program whose help lists the commands in their own order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return [*self.commands]


@click.group(
    cls=InOrder, invoke_without_command=True, epilog="Example: rankrls fit train.txt --test test.txt --model m.rankrls"
)
@click.option("--debug", is_flag=True, envvar=VARIABLE, show_envvar=True, help="Show the whole traceback of an error.")
@click.version_option(__version__, message="rankrls %(version)s", help="Print the version and exit.")
@click.pass_context
def root(context: click.Context, debug: bool) -> None:
    """Learn to rank by pairwise regularized least squares: files in, a chosen and judged model out."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@cache  # a process may run several commands
def build() -> click.Group:
    """The program with all its commands."""
    lists = {"kernels": KERNELS, "rules": RULES, "engines": ENGINES}
    texts = {name: ", ".join(words) for name, words in lists.items()} | {
        name: kernels_with(name) for name in PARAMETERS
    }
    able = {name: able_to(name) for name, default in names_of_options().items() if default is None}
    notes = {name: f"{', '.join(known)}: " for name, known in able.items() if 0 < len(known) < len(METHODS)}
    for name, text in COMMANDS.items():
        text, _, example = text.rpartition("\n\n")
        parameters = parameters_of(Options, name, texts, notes)
        callback = partial(_carry_out, name)
        root.add_command(click.Command(name, callback=callback, params=parameters, help=text, epilog=example))
    return root


def _carry_out(command: str, **given: Any) -> int:
    """Run a command, beside what it has to compile, and show what it finds."""
    from rankrls.cli.startup.ahead import compiling_ahead

    options = Options.read(given)
    with compiling_ahead(command):  # before anything slow is imported
        return _shown(command, options, Report(options.as_json, options.verbose, options.quiet))


def _shown(command: str, options: Options, report: Report) -> int:
    """Run a command on as many threads as were asked for, and show what it finds; overflowing numbers are said once."""
    import numpy as np

    from rankrls._compiled.threads import limited_threads
    from rankrls.cli.startup.lean import imported

    def overflowed(kind: str, flags: int) -> None:
        warnings.warn(_TOO_LARGE, RuntimeWarning, stacklevel=2)

    numbers = np.errstate(over="call", invalid="call", divide="call", call=overflowed)
    try:
        with limited_threads(options.threads), numbers:
            result: Result = imported(f"rankrls.cli.commands.{command}").run(options, report)
            report.show(result)
            return result.status
    except np.linalg.LinAlgError as error:
        raise InputError(_TOO_LARGE + " ({0})", error) from error


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
    debug = "--debug" in argv or os.environ.get(VARIABLE, "") not in ("", "0")
    argv = [word for word in argv if word != "--debug"]  # it may stand behind the command too
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            for category in _INSIDE:
                warnings.simplefilter("ignore", category)
            warnings.showwarning = _noting()
            # arrays without names go into models that know theirs: columns are matched where files are read
            warnings.filterwarnings("ignore", message=".* does not have valid feature names")
            with build().make_context("rankrls", argv) as context:
                status = build().invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return _reader_left()
    except click.exceptions.Exit as ended:  # after --help and --version
        return ended.exit_code
    except Exception as error:
        return _failed(error, debug)
    return interrupted() if status == INTERRUPTED else status or 0


def _noting() -> Callable[..., None]:
    """Tells a warning at once, since it may be about how long what follows will take; each text once."""
    told: set[str] = set()

    def note(message: Warning | str, *_: Any, **__: Any) -> None:
        text = said(message)
        if text not in told:
            told.add(text)
            tell(f"note: {text}")

    return note


def _failed(error: Exception, debug: bool) -> int:
    if debug and sys.stderr is not None:
        traceback.print_exception(error)
    status, text = BAD_INPUT, said(error)
    if isinstance(error, click.UsageError):  # a wrong option or argument, found while parsing
        text = error.format_message().rstrip(".")
        if isinstance(error, click.NoSuchOption) and error.possibilities:
            text = f"No such option: {error.option_name}. {did_you_mean(error.option_name, error.possibilities)}"
        text = f"{text} (see {error.ctx.command_path if error.ctx else 'rankrls'} --help)"
    elif isinstance(error, OSError):
        name = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        text = f"{name}{error.strerror or error}"
    elif isinstance(error, MemoryError):
        status, text = FAILED, f"not enough memory: {text or 'the data are too large for this machine'}"
    elif not isinstance(error, ValueError | MissingPackageError):
        remedy = f"run with {VARIABLE}=1 to see where, and please report it"
        status, text = FAILED, f"internal error: {type(error).__name__}: {error}; {remedy}"
    tell(f"error: {text}")
    return status


def _reader_left() -> int:
    """Whoever read the output (``| head``) has seen enough: no message, and none at exit either."""
    with contextlib.suppress(OSError, ValueError):  # standard output is no file, or closed already
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return FAILED
