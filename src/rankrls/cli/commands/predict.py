"""``rankrls predict``: one score a line."""

from __future__ import annotations

from typing import Any

from rankrls.cli._files import written
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result
from rankrls.cli.datasets.opened import is_dataset
from rankrls.cli.datasets.scores import predict
from rankrls.io._atomic import check_target

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Score the rows of a file."""
    check_target(options.output, options.model, options.data)
    if is_dataset(options.data):
        return predict(options, report)
    stored = load_model(options.model, report)
    table = stored.read(options.data, options.reading(queries="optional", labels="ignored"), report)
    scores = stored.scores(table, report)

    def columns() -> dict[str, Any]:
        parts = scores.reshape(len(scores), -1).T
        names = ["score"] if len(parts) == 1 else [f"score_{k}" for k in range(len(parts))]
        names = list(stored.items) or names
        return {
            table.qid_name or "qid": table.qid,
            table.id_name or "docid": table.docids,
            **dict(zip(names, parts, strict=True)),
        }

    def text() -> str:
        lines = (row if isinstance(row, list) else [row] for row in scores.tolist())
        return "".join("\t".join(map(repr, line)) + "\n" for line in lines)

    return written(options.output, report, text, columns)
