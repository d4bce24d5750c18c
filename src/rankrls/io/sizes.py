"""Files beside the rows, as LightGBM and XGBoost keep them: the number of rows of each query, and positions."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankrls._errors import InputError
from rankrls.io._rows import quoted

_ENDS = (".query", ".group")
_POSITION = ".position"


def sizes_beside(
    path: Path, given: Path | None, name: str, rows: int, has_ids: bool, note: Callable[[str], object]
) -> tuple[list[int], str] | None:
    """The sizes of the queries of rows without query ids, from the file that is given or stands beside them.

    Parameters
    ----------
    path : path
        Of the rows.
    given : path or None
        By default the file beside them that is called the same with ``.query`` or ``.group`` behind, if there is one.
    name : str
        What errors call the rows.
    rows : int
        How many there are.
    has_ids : bool
        Whether they have query ids, which come first.
    note : callable
        Is told where the queries come from if nobody has said it.

    Returns
    -------
    tuple or None
        The number of rows of each query, and what the name of such a file has behind that of the rows.

    Raises
    ------
    InputError
        If the sizes are of another number of rows, or are given for rows that have query ids.
    """
    if has_ids and given is not None:
        raise InputError("the rows have query ids already.", parameter="group", file=name)
    found = given or _first_beside(path, _ENDS)
    if found is None or has_ids:
        return None
    counts = _numbers(found, "[0-9]{0,12}", "a number of rows; it needs the size of each query, one a line", "group")
    if sum(counts) != rows:
        message = f"the sizes add up to {sum(counts)}, but {name} has {rows} rows."
        raise InputError(message, file=str(found), parameter="group")
    if given is None:
        note(f"the queries of {path} are those of {found}.")
    return counts, found.suffix if found.suffix in _ENDS else _ENDS[0]


def positions_beside(path: Path, rows: int, note: Callable[[str], object]) -> NDArray[np.float64] | None:
    """The position of each row, from the file beside them that is called the same with ``.position`` behind."""
    found = _first_beside(path, (_POSITION,))
    if found is None:
        return None
    positions = _numbers(found, "[0-9]{1,12}", "a position; it needs that of each row, one a line", "position")
    if len(positions) != rows:
        message = f"there are {len(positions)} positions, but {path} has {rows} rows."
        raise InputError(message, file=str(found), parameter="position")
    note(f"the labels of {path} are clicks, at the positions of {found}.")
    return np.array(positions, dtype=np.float64)


def beside(path: str, ends: tuple[str, ...] = (*_ENDS, _POSITION)) -> list[str]:
    """Where files that belong to a file of rows are looked for."""
    stems = [] if path == "-" else dict.fromkeys((path, path.removesuffix(".gz")))
    return [f"{stem}{end}" for stem in stems for end in ends]


def _first_beside(path: Path, ends: tuple[str, ...]) -> Path | None:
    return next((Path(file) for file in beside(str(path), ends) if Path(file).is_file()), None)


def _numbers(file: Path, pattern: str, what: str, parameter: str) -> list[int]:
    """Whole numbers, one a line; empty lines are left out if the pattern allows them."""
    lines = [line.strip() for line in file.read_text("utf-8-sig", errors="replace").splitlines()]
    for number, word in enumerate(lines, 1):
        if not re.fullmatch(pattern, word):
            raise InputError(f"{quoted(word)} is not {what}.", file=str(file), line=number, parameter=parameter)
    return [int(word) for word in lines if word]
