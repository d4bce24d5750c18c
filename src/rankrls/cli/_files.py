"""Reading and writing of files: rows, votes, shards, models and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from rankrls._errors import InputError
from rankrls._typing import Array
from rankrls.cli._options import Options, flag
from rankrls.cli._report import Report, Result
from rankrls.io import PairTable, Rows, atomic_write, load_votes
from rankrls.io.files import expanded_paths
from rankrls.io.formats import is_table
from rankrls.io.preferences import load_sides
from rankrls.io.reading import ReadOptions, read_scores
from rankrls.io.rows import Schema, stack_rows
from rankrls.io.writing import write_blocks
from rankrls.metrics._scorer import scales_by_query
from rankrls.models._pipelines import check_target
from rankrls.persistence.stored import StoredModel, encoder_of_items
from rankrls.survival import survival_pairs

Columns: TypeAlias = Mapping[str, Any]
"""Arrays of one length by the names of columns; None for a column that is not there."""
_IN_MEMORY = (
    "all_rows",
    "group",
    "event",
    "pairs",
    "unlabelled",
    "left",
    "right",
    "preferred",
    "position",
    "impressions",
    "device",
)
_MOST_PAIRS = 1_000_000
"""Comparable pairs of patients, of which a fit takes about 0.2 gigabytes."""


def read(path: Path, reading: ReadOptions, report: Report, model: StoredModel | None = None) -> Rows:
    """Rows of a file, with the features of a model if one is given; "-" is standard input."""
    with report.working("reading", path):
        if str(path) != "-":
            path.stat()  # a file that is not there has no format that options could suit
        return reading.read(path, report.note) if model is None else model.read(path, reading, report.note)


def is_dataset(path: Path) -> bool:
    """Whether a path is a folder or a pattern of files."""
    return path.is_dir() or (not path.exists() and any(sign in str(path) for sign in "*?["))


def check_streamed(options: Options, path: Path) -> None:
    """Refuse what needs all rows of a data set in memory."""
    for name in options.given(*_IN_MEMORY):
        raise InputError(
            f"{flag(name)} needs all rows in memory, so {path} cannot be a folder or a pattern.", parameter=name
        )


def chunks(options: Options, reading: ReadOptions, report: Report, model: StoredModel) -> Iterator[Rows]:
    """The rows of DATA for a model: those of a file at once, those of shards in chunks.

    The chunks are whole queries if the model scales by query, and else whole files if it encodes tables.
    """
    if not is_dataset(options.data):
        yield read(options.data, reading, report, model)
        return
    check_streamed(options, options.data)
    whole_queries = scales_by_query(model.model)
    if model.encoder is not None and not whole_queries:
        for file in expanded_paths(options.data):
            yield read(Path(file), reading, report, model)
        return
    opened = model.open(options.data, **options.roles, labels=reading.labels, whole_queries=whole_queries)
    for part in opened.parts:
        yield part.read()


def score_parts(parts: Iterable[Rows], score: Callable[[Rows], Array], path: Path) -> tuple[Rows, Array]:
    """The rows of a data set without their features, and their scores; only one part has its features in memory."""
    seen = []
    scores = []
    for part in parts:
        scores.append(score(part))
        seen.append(replace(part, X=part.X[:, :0].copy()))  # a view would keep the features
    return replace(stack_rows(seen), path=str(path)), np.concatenate(scores)


def score_rows(stored: StoredModel, table: Rows, report: Report) -> Array:
    """A model's scores of rows, (rows, targets)."""
    with report.working("scoring", stored.path):
        return stored.scores(table).reshape(table.n_rows, -1)


def score_target(stored: StoredModel, report: Report, target: int | None, table: Rows) -> Array:
    """A model's scores of rows for one target."""
    scores = score_rows(stored, table, report)
    return scores[:, check_target(target, scores.shape[1])]


def read_and_score(
    options: Options, models: Sequence[StoredModel], files: Sequence[Path], reading: ReadOptions, report: Report
) -> tuple[Any, dict[Path, Array]]:
    """The rows of DATA without their features, and their scores by models of one target and from files of scores.

    Columns that no option names are called as in the data of the models.
    """
    _check_columns(options.data, models, reading)
    known = reading.known
    for stored in models:
        known = replace(known, columns={**stored.schema.columns, **known.columns})
    reading = replace(reading, known=replace(known, features=()) if files else known)
    table: Any = None
    scores: dict[Path, Array] = {}
    for stored in models:
        score = partial(score_target, stored, report, None)
        rows, scores[stored.path] = score_parts(chunks(options, reading, report, stored), score, options.data)
        table = rows if table is None else table
    if table is None:
        table = read(options.data, reading, report)
    return table, scores | {path: read_scores(path, reading, table) for path in files}


def _check_columns(data: Path, models: Sequence[StoredModel], reading: ReadOptions) -> None:
    """Refuse models that were fitted with other columns of a table, if no option says which ones are meant here."""
    for role in ("label", "qid", "id") if is_table(data) else ():
        names = {stored.schema.columns[role]: str(stored.path) for stored in models if role in stored.schema.columns}
        if len(names) > 1 and vars(reading)[role] is None:
            fitted = " and ".join(f"{path} with {role}={name!r}" for name, path in names.items())
            raise InputError(f"These were fitted: {fitted}. Name the column of {data} ({role}).", parameter=role)


def read_votes(path: Path, options: Options, encoder: Any, report: Report) -> tuple[Rows, PairTable, Any]:
    """The items of a file of votes, the votes, and the encoder of their names or texts.

    ``encoder`` is that of the training votes, if these are others.
    """
    group = None if options.group is None else str(options.group)
    with report.working("reading", path):
        votes = load_votes(path, left=options.left, right=options.right, preferred=options.preferred, group=group)
    if votes.n_left_out:
        report.note(f"{path}: {votes.n_left_out} votes between equal items are left out.")
    if encoder is None:
        encoder, kind = encoder_of_items(votes)
        report.note(f"the sides of {path} are read as {kind}.")
    if encoder.categorical == "item" and "" in votes.items:
        load_sides(path, options.left, options.right)  # refuses empty cells, with their row
    X = encoder.transform({"item": votes.items})
    names = tuple(encoder.get_feature_names_out().tolist())
    table = Rows(X=X, y=None, qid=None, path=votes.path, sha256=votes.sha256, schema=Schema(names))
    return table, votes, encoder


def comparable_pairs(table: Rows, report: Report) -> PairTable:
    """The pairs of right-censored times that can be compared, or a sample of very many."""
    assert table.event is not None
    assert table.y is not None
    try:
        winners, losers = survival_pairs(table.y, table.event, qid=table.qid, max_pairs=_MOST_PAIRS)
    except InputError as error:
        raise error.replace(file=table.path, line=table.line_of(error.row)) from None
    if len(winners) == _MOST_PAIRS:
        report.note(f"{table.path}: {_MOST_PAIRS:,} of the comparable pairs of patients are drawn.")
    return PairTable(winners, losers, None, None, None, table.path, table.sha256)


def write_columns(output: str, report: Report, parts: Iterable[Columns], lines: Callable[[Columns], str]) -> Result:
    """Write columns as lines, or as a table if the file's name is that of a table; "-" is standard output."""
    parts = iter(parts)
    first = next(parts)  # nothing is written before the first part is there
    parts = chain([first], parts)
    text = map(lines, parts)
    if output == "-":
        return Result(text=text)
    with report.working("writing", output):
        if is_table(output):
            names = [name for name, values in first.items() if values is not None]
            write_blocks(output, names, ([part[name] for name in names] for part in parts))
        else:
            with atomic_write(output, "w") as file:
                file.writelines(text)
    return Result()
