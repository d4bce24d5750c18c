"""The command ``rankrls``: parse, call, print.

Nothing here imports a scientific library before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process. An interruption (Ctrl-C) then ends the
        process at once.

    Returns
    -------
    int
        Exit status: 0; 2 for bad input, with one line on standard error; 1 for anything else.

    Examples
    --------
    >>> from rankrls.cli import main
    >>> main(["--version"])  # doctest: +ELLIPSIS
    rankrls ...
    0
    """
    if argv is None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # also while LAPACK runs; files are replaced whole or not at all
        gc.disable()  # until the command has its modules
    from rankrls.cli._program import run

    return run(sys.argv[1:] if argv is None else [*argv])
