"""Which column of a table is the label, the query id, the item's id, and which are features."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = ["ColumnTable", "Roles", "TableError", "Wanted", "assign"]

Labels = Literal["required", "optional", "ignored"]
_USUAL = {"label": "label", "qid": "qid", "id": "docid"}
_SHOWN = 8
_INDEX = re.compile(r"__index_level_\d+__")  # what pandas calls an index without a name when it writes Parquet


class TableError(ValueError):
    """A table holds something that a learner cannot use: ``file:line: what is wrong``."""


@dataclass(frozen=True, eq=False)
class ColumnTable:
    """Rows of a table with named columns.

    Attributes
    ----------
    X : ndarray of shape (m, n), C-contiguous
        Features.
    y : ndarray of shape (m,), float64, or None
        Labels; None where there is no such column, or none was asked for.
    qid : ndarray of shape (m,) or None
        Query ids: int64 where every id is a whole number, otherwise strings. None where there is no such column.
    ids : ndarray of shape (m,) or None
        The items' ids, likewise.
    feature_names : tuple of str
        Names of the columns of ``X``.
    label, qid_name, id_name : str or None
        Names of the columns of ``y``, ``qid`` and ``ids``.
    path : str
        Where the table came from, as errors name it.
    sha256 : str
        Of the file's bytes as they lie on disk.
    """

    X: NDArray[Any]
    y: NDArray[np.float64] | None
    qid: NDArray[Any] | None
    ids: NDArray[Any] | None
    feature_names: tuple[str, ...]
    label: str | None
    qid_name: str | None
    id_name: str | None
    path: str
    sha256: str

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    @property
    def n_features(self) -> int:
        """Number of columns of ``X``."""
        return int(self.X.shape[1])

    def __repr__(self) -> str:
        queries = "no qid" if self.qid is None else f"{len(np.unique(self.qid))} queries"
        return f"<ColumnTable {self.path}: {self.n_rows} rows, {self.n_features} features, {queries}>"


@dataclass(frozen=True)
class Wanted:
    """What the caller says about columns; None is the usual name, where there is such a column."""

    label: str | None
    qid: str | None
    id: str | None
    features: tuple[str, ...] | None
    ignore: tuple[str, ...]
    labels: Labels
    usual: tuple[tuple[str, str], ...] = ()

    @property
    def usual_names(self) -> dict[str, str]:
        """What holds where nothing is given."""
        return _USUAL | dict(self.usual)

    @staticmethod
    def checked(label: Any, qid: Any, id: Any, features: Any, ignore: Any, labels: Any) -> Wanted:
        """The arguments of :func:`load_table`, checked."""
        for name, value in (("label", label), ("qid", qid), ("id", id)):
            if value is not None and not isinstance(value, str):
                raise ValueError(f"{name} must be the name of a column, or None; got {value!r}.")
        if labels not in ("required", "optional", "ignored"):
            raise ValueError(f"labels must be 'required', 'optional' or 'ignored'; got {labels!r}.")
        if features is not None:
            features = _names("features", features)
            if not features:
                raise ValueError("features is empty: there is nothing to learn from.")
        return Wanted(label, qid, id, features, _names("ignore", ignore), labels)


def _names(what: str, value: Any) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"{what} must hold names of columns; got {value!r}.")
    return names


@dataclass(frozen=True)
class Roles:
    """Places of columns in the file's header."""

    label: int | None
    qid: int | None
    id: int | None
    features: tuple[int, ...]


def assign(where: str, header: Sequence[str], wanted: Wanted) -> Roles:
    """Give each column its role.

    Parameters
    ----------
    where : str
        How errors name the place of the header.
    header : sequence of str
        Names of all columns.
    wanted : Wanted

    Raises
    ------
    TableError
        For a name that is there twice, a column that is asked for and not there, or that has two roles, and where no
        feature is left.
    """
    place: dict[str, int] = {}
    for k, name in enumerate(header):
        if name in place:
            both = f"columns {place[name] + 1} and {k + 1}"
            _fail(where, f"{both} are both called {name!r}; names must differ." if name else f"{both} have no name.")
        place[name] = k
    roles: dict[str, str] = {}
    for role, usual in wanted.usual_names.items():
        given = getattr(wanted, role)
        if given is not None and given not in place:
            _fail(where, f"there is no column {given!r} for the {_word(role)}{_hint(given, header)}")
        name = usual if given is None else given
        if name not in place or (given is None and _is_asked_for(name, wanted.features)):
            continue
        if given is None and name in roles.values():
            continue  # the usual name of one role, given to another
        if name in roles.values():
            other = next(r for r, n in roles.items() if n == name)
            _fail(where, f"the column {name!r} cannot be both the {_word(other)} and the {_word(role)}.")
        roles[role] = name
    if wanted.labels == "required" and "label" not in roles:
        usual = wanted.usual_names["label"]
        _fail(where, f"there is no column {usual!r}; say which one holds the labels{_listed(header)}")
    taken = {name: role for role, name in roles.items()}
    ignored = {name for pattern in wanted.ignore for name in _matching(where, pattern, header, "ignore")}
    if wanted.features is None:
        chosen = [n for n in header if n not in taken and n not in ignored and not _INDEX.fullmatch(n)]
        if "" in chosen:
            _fail(
                where,
                f"column {place[''] + 1} has no name. Name it, or leave it out: pandas writes its index so unless told "
                "index=False.",
            )
    else:
        chosen = _chosen(where, header, wanted.features, taken, ignored)
    if not chosen:
        _fail(where, f"no column is left for the features{_listed(header)}")
    at = {role: place[name] for role, name in roles.items()}
    label = None if wanted.labels == "ignored" else at.get("label")
    return Roles(label, at.get("qid"), at.get("id"), tuple(place[name] for name in chosen))


def _chosen(
    where: str, header: Sequence[str], features: tuple[str, ...], taken: dict[str, str], ignored: set[str]
) -> list[str]:
    chosen: dict[str, None] = {}
    missing = [name for name in features if not _is_pattern(name) and name not in header]
    if missing:
        several = f"there are no columns {', '.join(map(repr, missing[:_SHOWN]))}" + (
            f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        )
        one = f"there is no column {missing[0]!r}"
        _fail(where, f"{one if len(missing) == 1 else several}{_hint(missing[0], header)}")
    for name in features:
        if name in header:
            if name in taken:
                _fail(where, f"the column {name!r} cannot be both the {_word(taken[name])} and a feature.")
            chosen[name] = None
            continue
        found = _matching(where, name, header, "features")
        chosen.update(dict.fromkeys(n for n in found if n not in taken))
    return [name for name in chosen if name not in ignored]


def _matching(where: str, pattern: str, header: Sequence[str], option: str) -> list[str]:
    if pattern in header:
        return [pattern]
    if _is_pattern(pattern):
        found = [name for name in header if _matches(pattern, name)]
        if found:
            return found
        _fail(where, f"no column is called like {pattern!r} ({option}){_listed(header)}")
    _fail(where, f"there is no column {pattern!r} to {option}{_hint(pattern, header)}")


def _is_asked_for(name: str, features: tuple[str, ...] | None) -> bool:
    return features is not None and name in features


def _is_pattern(name: str) -> bool:
    return "*" in name or "?" in name


def _matches(pattern: str, name: str) -> bool:
    """``*`` is any text and ``?`` one sign; brackets are themselves, since features are often called bm25[title]."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), name, re.DOTALL) is not None


def _word(role: str) -> str:
    return {"label": "label", "qid": "query id", "id": "item's id"}[role]


def _hint(name: str, header: Sequence[str]) -> str:
    lower = {other.lower(): other for other in header}
    near = [lower[n] for n in get_close_matches(name.lower(), lower, n=3, cutoff=0.6)]
    return f"; there is {' and '.join(map(repr, near))}." if near else _listed(header)


def _listed(header: Sequence[str]) -> str:
    shown = ", ".join(header[:_SHOWN]) + (f" and {len(header) - _SHOWN} more" if len(header) > _SHOWN else "")
    return f" (columns: {shown})."


def _fail(where: str, message: str) -> NoReturn:
    raise TableError(f"{where}: {message}")
