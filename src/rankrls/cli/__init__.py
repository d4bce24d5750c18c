"""The command ``rankrls``: parse, call, print.

Each command is a module of :mod:`rankrls.cli.commands` with a function ``run``, listed in :mod:`rankrls.cli._commands`.
Nothing here imports a scientific library before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name. By default those of the process, and the command then runs in a process of
        its own, so that an interruption ends it within a second.

    Returns
    -------
    int
        Exit status: 0, or 2 for bad input (said in one line on standard error), 130 where the user interrupted, 1 for
        anything else.

    Examples
    --------
    >>> from rankrls.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    rankrls ...
    0
    """
    try:
        if argv is not None:
            from rankrls.cli._run import run

            return run(list(argv))
        from rankrls.cli._supervisor import leave, supervise

        status = supervise()
        if status is None:
            from rankrls.cli._run import run

            status = run(sys.argv[1:])
            leave(status)
        return status
    except KeyboardInterrupt:  # while the program itself is being imported
        from rankrls.cli._supervisor import interrupted

        return interrupted()
