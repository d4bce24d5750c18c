"""Finding and reading the LETOR collections with their official folds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankrls.io import load_letor
from rankrls.preprocessing import QueryMinMaxScaler

__all__ = ["COLLECTIONS", "Collection", "Fold", "Rows", "find_collections", "joined", "load_fold"]

COLLECTIONS = {
    "ohsumed": "LETOR 1.0 OHSUMED",
    "trec2003": "LETOR 1.0 TREC2003",
    "trec2004": "LETOR 1.0 TREC2004",
    "mq2008": "LETOR 4.0 MQ2008",
}
_FOLDER_NAMES = {
    "ohsumed": ("ohsumed",),
    "trec2003": ("trec2003", "td2003"),
    "trec2004": ("trec2004", "td2004"),
    "mq2008": ("mq2008",),
}
# LETOR renamed its files between versions.
_FILES = (("trainingset.txt", "validationset.txt", "testset.txt"), ("train.txt", "vali.txt", "test.txt"))
_DEPTH = 4


@dataclass(frozen=True)
class Rows:
    """Documents with features scaled to 0..1 inside each query."""

    X: NDArray[np.float64]
    y: NDArray[np.float64]
    qid: NDArray[np.int64]


@dataclass(frozen=True)
class Fold:
    number: int
    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True)
class Collection:
    """A collection's folder and the folds in it."""

    name: str
    folder: Path
    folds: tuple[int, ...]

    @property
    def title(self) -> str:
        return COLLECTIONS[self.name]


def find_collections(data: Path, wanted: str) -> list[Collection]:
    """The collections below a folder; ``wanted`` names one of them, or is "auto" for all that are there.

    Raises
    ------
    ValueError
        Where nothing is found, or a single folder of folds does not say which collection it is.
    """
    if not data.is_dir():
        raise ValueError(f"{data} is not a folder. Give the folder of the LETOR files with --data.")
    found = [
        Collection(name, folder, folds)
        for folder, folds in _folders_of_folds(data)
        if (name := _name_of(folder, data, wanted)) is not None and wanted in ("auto", name)
    ]
    if not found:
        what = "LETOR collection" if wanted == "auto" else COLLECTIONS[wanted]
        raise ValueError(
            f"No {what} found in {data}: it must hold Fold1, Fold2, ... with trainingset.txt, validationset.txt and "
            "testset.txt (or train.txt, vali.txt, test.txt), in a folder named after the collection "
            f"({', '.join(n for names in _FOLDER_NAMES.values() for n in names)}), or be that folder, with --dataset."
        )
    order = list(COLLECTIONS)
    return sorted(found, key=lambda c: order.index(c.name))


def _folders_of_folds(data: Path) -> Iterable[tuple[Path, tuple[int, ...]]]:
    level = [data]
    for _ in range(_DEPTH):
        below = []
        for folder in level:
            children = sorted(child for child in folder.iterdir() if child.is_dir())
            folds = tuple(sorted(int(c.name[4:]) for c in children if _is_fold(c)))
            if folds:
                yield folder, folds
            else:
                below += children
        level = below


def _is_fold(folder: Path) -> bool:
    number = folder.name[4:]
    return folder.name.startswith("Fold") and number.isdigit() and _files_in(folder) is not None


def _files_in(folder: Path) -> tuple[Path, ...] | None:
    for names in _FILES:
        paths = tuple(folder / name for name in names)
        if all(path.is_file() for path in paths):
            return paths
    return None


def _name_of(folder: Path, data: Path, wanted: str) -> str | None:
    """The collection that a folder is named after (it, or one above it), or the wanted one where --data is it."""
    for part in reversed((data.resolve().name, *folder.relative_to(data).parts)):
        for name, words in _FOLDER_NAMES.items():
            if any(word in part.lower() for word in words):
                return name
    return wanted if folder == data and wanted != "auto" else None


def load_fold(collection: Collection, number: int) -> Fold:
    """Read one fold. Features are scaled by the documents of their own query only, so nothing leaks between parts."""
    paths = _files_in(collection.folder / f"Fold{number}")
    if paths is None:
        raise ValueError(f"{collection.folder} has no fold {number}; there are {collection.folds}.")
    train = load_letor(paths[0], dense=True)
    others = [load_letor(p, dense=True, n_features=train.n_features, zero_based=train.zero_based) for p in paths[1:]]
    parts = []
    for table in (train, *others):
        if table.qid is None:
            raise ValueError(f"{table.path} has no query ids; it is no LETOR file.")
        parts.append(Rows(QueryMinMaxScaler().fit_transform(table.X, qid=table.qid), table.y, table.qid))
    return Fold(number, *parts)


def joined(first: Rows, second: Rows) -> Rows:
    """Both, one after the other."""
    return Rows(
        np.concatenate((first.X, second.X)),
        np.concatenate((first.y, second.y)),
        np.concatenate((first.qid, second.qid)),
    )
