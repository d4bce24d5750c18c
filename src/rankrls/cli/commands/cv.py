"""``rankrls cv``: the whole curve, every alpha and combination."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli import _learned, _training
from rankrls.cli._findings import show
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.holdout.concordance import CONFIDENCE, METHOD

_INTERVAL = {"confidence": CONFIDENCE, "interval_method": METHOD}
_SAID = (f"Interval: {METHOD}.\n",)
_JUDGED = ("mean_score", "c_index", "standard_error", "low", "high")


def run(options: Options, report: Report) -> Result:
    """Judge every candidate."""
    found = _training.study(options)
    if found.method.has("needs_vali") and options.vali is None:
        raise InputError("--method {0} chooses by validation data: give {vali=FILE}.", options.method, parameter="vali")
    by_pairs = options.leave_pair_out
    if by_pairs and options.scale != "none" and options.everything:
        report.note("the features were scaled with the held-out rows in view.")
    if by_pairs and options.basis == "pursuit":
        report.note("the basis was chosen with the labels of the held-out rows in view.")
    _training.carry_out(found, report, _training)
    if found.interrupted:
        raise KeyboardInterrupt
    how = found.estimator.selection_
    value, metric = ("c_index", "C-index") if by_pairs else ("mean_score", found.chosen_by)
    curve, best = _curve(found.estimator, value)
    result = _learned.as_dict("cv", found, report) | {"curve": curve, "best_index": best}
    tables = _learned.tables(found, _curve_table(metric, value, how, curve, best))
    if not by_pairs:
        return Result(result, tables)
    return Result(result | {"how": how, **_INTERVAL}, tables, _SAID)


def _curve(estimator: Any, value: str) -> tuple[list[dict[str, Any]], int]:
    """One entry for every combination and alpha, and which one was chosen."""
    columns = {value if name == "mean_score" else name: v.tolist() for name, v in estimator.cv_results_.items()}
    entries = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found = getattr(estimator, "best_index_", None)
    return entries, columns["alpha"].index(estimator.alpha_) if found is None else int(found)


def _curve_table(metric: str, value: str, how: str, curve: list[dict[str, Any]], best: int) -> Table:
    names = [name for name in curve[0] if name not in _JUDGED]
    several = [name for name in names if len({entry[name] for entry in curve}) > 1 or name == "alpha"]
    rows = []
    for k, entry in enumerate(curve):
        row = ["chosen" if k == best else "", *(_cell(entry[name]) for name in several)]
        row += [show(entry[value]), show(entry["standard_error"])]
        rows.append(row + [f"{entry['low']:.4f} to {entry['high']:.4f}"] if "low" in entry else row)
    fixed = ", ".join(f"{name} {_cell(curve[0][name])}" for name in names if name not in several)
    title = f"{metric} by {how}" + (f" ({fixed})" if fixed else "")
    interval = [f"{100 * CONFIDENCE:g} % interval"] if "low" in curve[0] else []
    return Table(title, ["", *several, metric, "std. error", *interval], rows, marked=best)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
