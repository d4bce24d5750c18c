"""``rankrls fit``: choose, learn, judge and save."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli import _findings, _fit_in_parts, _learned, _training
from rankrls.cli._datasets import streams
from rankrls.cli._encoding import columns_table, described_columns
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, plain_json
from rankrls.cli._votes import rating_table, ratings
from rankrls.io._atomic import check_target
from rankrls.io.data import how_read
from rankrls.persistence import save

__all__ = ["run"]

_INTERRUPTED = 130


def run(options: Options, report: Report) -> Result:
    """Choose, fit, judge and save."""
    in_parts = streams(options)
    if options.checkpoint is not None and not in_parts:
        raise InputError("{checkpoint} is for data that are read a part at a time.", parameter="checkpoint")
    plan = _training.plan(options)
    check_target(options.save, options.items, *plan.files.values(), *plan.pair_files.values())
    way: Any = _fit_in_parts if in_parts else _training
    data = way.read_data(plan, report)
    trained = _training.train(plan, data, report, way.learn)
    judged = {} if trained.interrupted else way.judge_all(plan, data, report)
    used = described_columns(plan.encoder)
    given = {
        **_learned.described(data),
        **how_read(data.tables["train"]),
        **data.about,
        **({} if data.ids is None else {"ids": data.ids}),
        "method": options.method,
        "scale": options.scale,
        **used,
        "measures": _learned.measured(judged),
        **({"interrupted": True} if trained.interrupted else {}),
    }
    with report.working("saving", f"saving {options.save}"):
        save(trained.model, options.save, provenance=plain_json(given))
    found = _learned.as_dict("fit", plan, data, trained, judged, report) | {"model": str(options.save), **data.found}
    rated = []
    if options.votes:
        rated = ratings(data.encoder, trained.estimator, data.tables["train"], data.pairs["train"])
        found |= {"ratings": rated} if rated else {}
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    return Result(
        found | used,
        [
            *_findings.file_tables(_learned.described(data)),
            *columns_table(used.get("columns_used", [])),
            *_learned.model_tables(plan, trained),
            _learned.choice_table(plan, data, trained),
            *rating_table(rated),
            *_findings.measure_tables(judged),
        ],
        (f"Saved {options.save}   ({took})\n",),
        optional=True,
        status=_INTERRUPTED if trained.interrupted else 0,
    )
