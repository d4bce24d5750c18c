"""Ratings of items by users: Jester and MovieLens files, and the samples that the protocol draws from them."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ratings", "find_jester", "read_ratings"]

_NOT_RATED = 99.0


@dataclass(frozen=True)
class Ratings:
    """Who rated what, user by user.

    Attributes
    ----------
    starts : ndarray of shape (users + 1,)
        The ratings of user u are ``items[starts[u]:starts[u + 1]]`` and ``values[...]``.
    items : ndarray of shape (ratings,)
    values : ndarray of shape (ratings,)
    n_items : int
    """

    name: str
    starts: NDArray[np.int64]
    items: NDArray[np.int64]
    values: NDArray[np.float64]
    n_items: int

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of ratings of each user."""
        return np.diff(self.starts)

    def of(self, user: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Items that a user rated, and the ratings."""
        rows = slice(self.starts[user], self.starts[user + 1])
        return self.items[rows], self.values[rows]

    def features(self, users: NDArray[np.int64]) -> NDArray[np.float64]:
        """What these users think of every item, (items, users): a rating, or the user's median where there is none."""
        out = np.empty((self.n_items, len(users)))
        for column, user in enumerate(users):
            items, values = self.of(user)
            out[:, column] = np.median(values)
            out[items, column] = values
        return out


def find_jester(folder: Path) -> Path:
    """The Jester file below a folder of data."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder. Give a file with --ratings, or a folder with --data.")
    for place in (folder, folder / "jester"):
        for name in ("jester-data-1.csv.gz", "jester-data-1.csv"):
            if (place / name).is_file():
                return place / name
    raise ValueError(f"No jester-data-1.csv or .csv.gz in {folder} or {folder / 'jester'}; see --help.")


def read_ratings(path: Path) -> Ratings:
    """Read a Jester table, MovieLens ``ratings.dat``, or a file of user, movie, rating (and more columns, ignored).

    Raises
    ------
    ValueError
        Naming file and line, where a line cannot be read, or a user rates an item twice.
    """
    with _opened(path) as file:
        first = file.readline()
    if not first.strip():
        raise ValueError(f"{path} is empty.")
    if "::" not in first and len(first.split(",")) > 50:
        return _read_jester(path)
    return _read_triples(path, "::" if "::" in first else None)


def _opened(path: Path) -> IO[str]:
    return gzip.open(path, "rt") if path.suffix == ".gz" else path.open(encoding="utf-8-sig")


def _read_jester(path: Path) -> Ratings:
    try:
        with _opened(path) as file:
            table = np.loadtxt(file, delimiter=",", ndmin=2)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    ratings = table[:, 1:]  # the first column is the number of ratings
    users, items = np.nonzero(ratings != _NOT_RATED)
    starts = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=len(ratings)))))
    return Ratings("Jester", starts, items, ratings[users, items], ratings.shape[1])


def _read_triples(path: Path, separator: str | None) -> Ratings:
    users, movies, values = [], [], []
    for number, fields in _lines(path, separator):
        try:
            user, movie, value = fields[:3]
            values.append(float(value))
        except ValueError:
            if number == 1:  # a header
                continue
            raise ValueError(
                f"{path}:{number}: expected user, movie and rating (the last a number); got {fields[:3]}."
            ) from None
        users.append(user)
        movies.append(movie)
    if not users:
        raise ValueError(f"{path} holds no ratings.")
    _, user_codes = np.unique(users, return_inverse=True)
    names, movie_codes = np.unique(movies, return_inverse=True)
    order = np.lexsort((movie_codes, user_codes))
    user_codes, movie_codes = user_codes[order], movie_codes[order]
    twice = np.flatnonzero((np.diff(user_codes) == 0) & (np.diff(movie_codes) == 0))
    if len(twice):
        row = order[twice[0]]
        raise ValueError(f"{path}: user {users[row]} rates movie {movies[row]} more than once.")
    starts = np.concatenate(([0], np.cumsum(np.bincount(user_codes))))
    return Ratings(path.name, starts, movie_codes, np.asarray(values)[order], len(names))


def _lines(path: Path, separator: str | None) -> Iterator[tuple[int, list[str]]]:
    with _opened(path) as file:
        rows = (line.rstrip("\n").split(separator) for line in file) if separator else csv.reader(file)
        for number, fields in enumerate(rows, start=1):
            if any(field.strip() for field in fields):
                yield number, fields
