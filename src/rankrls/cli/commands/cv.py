"""``rankrls cv``: the whole curve, every alpha and combination."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli import _findings, _learned, _training
from rankrls.cli._findings import show
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli.commands import _leave_pair_out

__all__ = ["run"]


def run(options: Options, report: Report) -> Result:
    """Judge every candidate."""
    if options.leave_pair_out:
        _leave_pair_out.check(options)
    plan = _training.plan(options)
    if plan.method.needs_vali and options.vali is None:
        raise InputError("--method {0} chooses by validation data: give {vali=FILE}.", options.method)
    data = _training.read_data(plan, report)
    if options.leave_pair_out:
        return _leave_pair_out.run(options, data, report)
    trained = _training.train(plan, data, report)
    if trained.interrupted:
        raise KeyboardInterrupt
    judged = _training.judge_all(plan, data, trained, report)
    curve, best = _curve(trained.estimator)
    found = _learned.as_dict("cv", plan, data, trained, judged, report) | {"curve": curve, "best_index": best}
    tables = [
        *_findings.file_tables(_learned.described(data)),
        _curve_table(plan.metric, trained.estimator.selection_, curve, best),
        *_findings.measure_tables(judged),
    ]
    return Result(found, tables)


def _curve(estimator: Any) -> tuple[list[dict[str, Any]], int]:
    """One entry for every combination and alpha, and which one was chosen."""
    columns = {name: values.tolist() for name, values in estimator.cv_results_.items()}
    entries = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found = getattr(estimator, "best_index_", None)
    return entries, columns["alpha"].index(estimator.alpha_) if found is None else int(found)


def _curve_table(metric: str, how: str, curve: list[dict[str, Any]], best: int) -> Table:
    names = [name for name in curve[0] if name not in ("mean_score", "standard_error")]
    several = [name for name in names if len({entry[name] for entry in curve}) > 1 or name == "alpha"]
    rows = [
        [
            "chosen" if k == best else "",
            *(_cell(entry[name]) for name in several),
            show(entry["mean_score"]),
            show(entry["standard_error"]),
        ]
        for k, entry in enumerate(curve)
    ]
    fixed = ", ".join(f"{name} {_cell(curve[0][name])}" for name in names if name not in several)
    title = f"{metric} by {how}" + (f" ({fixed})" if fixed else "")
    return Table(title, ["", *several, metric, "std. error"], rows, marked=best)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
