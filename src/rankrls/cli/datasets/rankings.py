"""``rankrls rank`` and ``rankrls compare`` of data that are read a part at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from rankrls._errors import InputError
from rankrls.cli._findings import measure_of
from rankrls.cli._models import StoredModel, load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.cli.datasets.opened import open_for
from rankrls.cli.datasets.scores import USUAL
from rankrls.cli.datasets.writing import is_table, write_lines, write_table
from rankrls.comparison import RankingReport, compare_dataset
from rankrls.io.rankings import HEAD, ranking_rows, trec_rows
from rankrls.streaming.ranked import NamedRanking, RankJob, ranked
from rankrls.streaming.scoring import unnamed

__all__ = ["about", "compare", "rank"]

_COLUMNS = {"query": "string", "rank": "int64", "item": "string", "score": "float64", "row": "int64"}


def rank(options: Options, report: Report) -> Result:
    """List the items of each query of a data set, a part at a time."""
    for name in ("everything", "target"):
        if name in options.changed():
            problem = f"{{{name}}} needs all rows in memory, and DATA is read a part at a time."
            raise InputError(problem, parameter=name)
    trec = options.layout == "trec"
    to_table = not trec and is_table(options.output, "Rankings")
    stored = load_model(options.model, report)
    data = open_for(stored, options.data, options, report, labels="ignored")
    job = RankJob(unnamed(stored.model), options.top_items, trec)
    parts = (_called(part, options) for part in ranked(stored.model, data, job, memory=options.memory))
    if to_table:
        return write_table(options.output, report, _COLUMNS, map(_columns, parts))
    lines = (trec_rows(part, part.ids, options.run) if trec else ranking_rows(part, part.ids) for part in parts)
    return write_lines(options.output, report, _headed(lines, trec))


def _headed(lines: Iterable[str], trec: bool) -> Iterable[str]:
    if not trec:
        yield HEAD
    yield from lines


def _called(part: NamedRanking, options: Options) -> Any:
    """A ranking whose ids are what names the items."""
    wanted = options.names_in_ranking
    if wanted == "comment" or (wanted == "docid" and part.ids is None):
        problem = f"{{ids={wanted}}}: the data have no such ids, or they need all rows in memory."
        raise InputError(problem, remedy="Name the column of ids by {id}.", parameter="ids")
    if wanted == "row" or part.ids is None:
        return replace(part, ids=np.array([str(row) for row in part.rows.tolist()], dtype=object))
    return part


def _columns(part: Any) -> tuple[Any, ...]:
    return part.qid.tolist(), part.positions, part.ids.astype(str).tolist(), part.scores, part.rows


def compare(
    models: Mapping[str, StoredModel], baseline: str | None, options: Options, report: Report
) -> tuple[Any, RankingReport]:
    """The data set, and its models compared."""
    first = next(iter(models.values()))
    data = open_for(first, options.data, options, report)
    for stored in models.values():
        if stored.encoder is not None or stored.items or stored.n_features != data.n_features:
            problem = "the models have to take the same features, as numbers, where DATA is read a part at a time."
            raise InputError(problem, file=str(stored.path))
    with report.working("comparing", "comparing"):
        found = compare_dataset(
            {name: stored.model for name, stored in models.items()},
            data,
            measures=[measure_of(name, options) for name in options.metrics or USUAL],
            convention=options.convention,
            baseline=baseline,
            memory=options.memory,
        )
    return data, found


def about(path: Path, data: Any) -> str:
    """What a page says of a data set."""
    files = data.describe()["files"]
    return f"{path}, {data.n_rows} rows in {len(files)} file{'s' * (len(files) != 1)}"
