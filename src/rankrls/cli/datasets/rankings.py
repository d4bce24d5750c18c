"""``rankrls rank`` and ``rankrls compare`` of data that are read a part at a time."""

from __future__ import annotations

import sys
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
from rankrls.comparison import RankingReport, compare_dataset
from rankrls.io import atomic_write
from rankrls.io.rankings import HEAD, ranking_rows, trec_rows
from rankrls.io.tables.formats import table_format
from rankrls.streaming.ranked import NamedRanking, RankJob, ranked
from rankrls.streaming.scoring import unnamed

__all__ = ["about", "compare", "rank"]


def rank(options: Options, report: Report) -> Result:
    """List the items of each query of a data set, a part at a time."""
    for name in ("everything", "target"):
        if name in options.changed():
            problem = f"{{{name}}} needs all rows in memory, and DATA is read a part at a time."
            raise InputError(problem, parameter=name)
    trec = options.layout == "trec"
    to_table = options.output != "-" and not trec and table_format(options.output) is not None
    if to_table and table_format(options.output) != "parquet":
        raise InputError(
            "Rankings of data that are read a part at a time go into a .parquet file or into text.", parameter="output"
        )
    stored = load_model(options.model, report)
    data = open_for(stored, options.data, options, report, labels="ignored")
    job = RankJob(unnamed(stored.model), options.top_items, trec)
    parts = (_called(part, options) for part in ranked(stored.model, data, job, memory=options.memory))
    if to_table:
        with report.working("writing", f"writing {options.output}"):
            _write_parquet(options.output, parts)
        return Result()
    lines = (trec_rows(part, part.ids, options.run) if trec else ranking_rows(part, part.ids) for part in parts)
    if options.output == "-":
        sys.stdout.writelines(_headed(lines, trec))
        return Result()
    with report.working("writing", f"writing {options.output}"), atomic_write(options.output, "w") as file:
        file.writelines(_headed(lines, trec))
    return Result()


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


def _write_parquet(path: str, parts: Iterable[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"query": pa.string(), "rank": pa.int64(), "item": pa.string(), "score": pa.float64(), "row": pa.int64()}
    schema = pa.schema(list(types.items()))
    with atomic_write(path) as file, pq.ParquetWriter(file, schema) as writer:
        for part in parts:
            columns = (part.qid.tolist(), part.positions, part.ids.astype(str).tolist(), part.scores, part.rows)
            writer.write_table(pa.table(dict(zip(types, columns, strict=True)), schema=schema))


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
