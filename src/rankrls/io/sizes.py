"""Files with the number of rows of each query, as LightGBM and XGBoost keep them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rankrls._errors import InputError
from rankrls.io._rows import quoted

_ENDS = (".query", ".group")

_DIGITS = 13  # of a number of rows, and one more


@dataclass(frozen=True)
class Sizes:
    """The number of rows of each query, and the file that says it.

    ``end`` is what such a file's name has behind that of the rows.
    """

    path: Path
    counts: list[int]
    end: str


def sizes_beside(
    path: Path, given: Path | None, name: str, rows: int, has_ids: bool, note: Callable[[str], object]
) -> Sizes | None:
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

    Raises
    ------
    InputError
        If the sizes are of another number of rows, or are given for rows that have query ids.
    """
    if has_ids:
        if given is not None:
            raise InputError("the rows have query ids already, so {group} has nothing to say.", file=name)
        return None
    names = [] if str(path) == "-" else [str(path), str(path).removesuffix(".gz")]
    beside = [Path(f"{stem}{end}") for stem in names for end in _ENDS]
    found = given or next((file for file in beside if file.is_file()), None)
    if found is None:
        return None
    counts = read_sizes(found)
    if sum(counts) != rows:
        problem = "the sizes add up to {0}, but {1} has {2} rows."
        raise InputError(problem, sum(counts), name, rows, file=str(found), parameter="group")
    if given is None:
        note(f"the queries of {path} are those of {found}.")
    return Sizes(found, counts, found.suffix if found.suffix in _ENDS else _ENDS[0])


def read_sizes(path: Path) -> list[int]:
    """Numbers of rows from a file, one a line."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        lines = ["?"]
    out = []
    for number, line in enumerate(lines, 1):
        word = line.strip()
        if word and not (word.isascii() and word.isdigit() and len(word) < _DIGITS):
            problem = "{0} is not a number of rows;"
            remedy = "it needs the size of each query, one a line."
            raise InputError(problem, quoted(word), remedy=remedy, file=str(path), line=number, parameter="group")
        out += [int(word)] if word else []
    return out
