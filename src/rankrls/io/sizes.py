"""Files with the number of rows of each query, as LightGBM and XGBoost keep them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._rows import quoted

_ENDS = (".query", ".group")


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
    found = given or next((Path(file) for file in beside(str(path)) if Path(file).is_file()), None)
    if found is None or has_ids:
        return None
    counts = []
    for number, line in enumerate(found.read_text("utf-8-sig", errors="replace").splitlines(), 1):
        word = line.strip()
        if not re.fullmatch("[0-9]{0,12}", word):
            message = f"{quoted(word)} is not a number of rows; it needs the size of each query, one a line."
            raise InputError(message, file=str(found), line=number, parameter="group")
        counts += [int(word)] if word else []
    if sum(counts) != rows:
        message = f"the sizes add up to {sum(counts)}, but {name} has {rows} rows."
        raise InputError(message, file=str(found), parameter="group")
    if given is None:
        note(f"the queries of {path} are those of {found}.")
    return counts, found.suffix if found.suffix in _ENDS else _ENDS[0]


def beside(path: str) -> list[str]:
    """Where the sizes of a file's queries are looked for if nobody names them."""
    stems = [] if path == "-" else dict.fromkeys((path, path.removesuffix(".gz")))
    return [f"{stem}{end}" for stem in stems for end in _ENDS]
