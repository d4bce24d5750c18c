"""``rankrls fit``: choose, learn, judge and save."""

from __future__ import annotations

from rankrls._errors import InputError
from rankrls.cli import _fit_in_parts, _learned, _training
from rankrls.cli._datasets import streams
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, plain_json
from rankrls.cli._supervisor import INTERRUPTED
from rankrls.cli._votes import rating_table, ratings
from rankrls.io._atomic import check_target
from rankrls.persistence import save

_SAVED = ("data", "items", "pairs", "method", "scale", "columns_used", "interrupted")
"""What the model's file says of what was found, beside the measures."""


def run(options: Options, report: Report) -> Result:
    """Choose, fit, judge and save."""
    in_parts = streams(options)
    if options.checkpoint is not None and not in_parts:
        raise InputError("{checkpoint} is for data that are read a part at a time.", parameter="checkpoint")
    found = _training.study(options)
    check_target(options.save, options.items, *found.files.values(), *found.pair_files.values())
    _training.carry_out(found, report, _fit_in_parts if in_parts else _training)
    result = _learned.as_dict("fit", found, report) | {"model": str(options.save), **found.found}
    given = {name: result[name] for name in _SAVED if name in result} | found.about
    given["measures"] = _learned.measured(found)
    with report.working("saving", f"saving {options.save}"):
        save(found.model, options.save, provenance=plain_json(given))
    rated = ratings(found.encoder, found.estimator, found.training, found.pairs["train"]) if options.votes else []
    result |= {"ratings": rated} if rated else {}
    choice = [*_learned.model_tables(found), _learned.choice_table(found), *rating_table(rated)]
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    saved = f"Saved {options.save}   ({took})\n"
    status = INTERRUPTED if found.interrupted else 0
    return Result(result, _learned.tables(found, *choice), (saved,), optional=True, status=status)
