"""``rankrls predict`` and ``rankrls evaluate`` of data that are read a part at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from rankrls.cli import _findings
from rankrls.cli._models import load_model
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli.datasets.opened import Opened, open_for
from rankrls.cli.datasets.writing import is_table, write_lines, write_table
from rankrls.comparison.judgement import CountedJudgement
from rankrls.metrics import resolve_measure
from rankrls.streaming import predict as predict_parts
from rankrls.streaming.scoring import judged

__all__ = ["USUAL", "evaluate", "judgements", "predict"]

USUAL = ("map", "ndcg@10", "p@10", "mrr", "disagreement")
"""What is judged if nothing is said."""


def predict(options: Options, report: Report) -> Result:
    """Score the rows of a data set, a part at a time."""
    stored = load_model(options.model, report)
    data = open_for(stored, options.data, options, report, labels="ignored")
    to_table = is_table(options.output, "Scores")
    parts = predict_parts(stored.model, data, memory=options.memory)
    if to_table:
        return write_table(options.output, report, {"row": "int64", "score": "float64"}, _numbered(parts))
    return write_lines(options.output, report, map(_lines, parts))


def evaluate(options: Options, report: Report) -> Result:
    """Judge a model's ranking of a data set."""
    stored = load_model(options.files[0], report)
    data = open_for(stored, options.files[1], options, report)
    with report.working("judging", "judging"):
        found = judgements(stored.model, data, options, USUAL)
    table = Opened(str(options.files[1]), data)
    measures = {name: {**j.as_dict(), "interval": j.interval(), "confidence": 0.95} for name, j in found.items()}
    ends = {name: "-" if (i := j.interval()) is None else f"{i[0]:.4f} to {i[1]:.4f}" for name, j in found.items()}
    rows = [[name, _findings.show(j.value), ends[name], str(j.judged)] for name, j in found.items()]
    title = f"{stored.path} on {table.path}, {options.convention} measures"
    result = {"command": "evaluate", "scores_of": str(stored.path), "data": table.summary()}
    return Result(
        result | {"convention": options.convention, "measures": measures},
        [Table(title, ["", "mean", "95 % interval", "queries"], rows)],
    )


def judgements(model: Any, data: Any, options: Options, usual: tuple[str, ...]) -> dict[str, CountedJudgement]:
    names = [_findings.measure_of(name, options) for name in options.metrics or dict.fromkeys(usual)]
    measures = [resolve_measure(name, options.convention) for name in names]
    curves, counts = judged(model, data, measures, memory=options.memory)
    return {
        str(name): CountedJudgement(float(curve.mean[0]), float(curve.error[0]), np.zeros(0), count=count)
        for name, curve, count in zip(names, curves, counts, strict=True)
    }


def _lines(scores: Any) -> str:
    return "".join(f"{score!r}\n" for score in scores.tolist())


def _numbered(parts: Iterator[Any]) -> Iterator[tuple[Any, Any]]:
    """Scores with the running numbers of their rows."""
    row = 0
    for scores in parts:
        yield np.arange(row, row + len(scores)), scores
        row += len(scores)
