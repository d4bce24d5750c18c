"""``rankrls cv``: the held-out score of every candidate."""

from __future__ import annotations

from typing import Any

from rankrls._errors import InputError
from rankrls.cli import _tables
from rankrls.cli._learning import study
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.numerics.concordance import CONFIDENCE, METHOD

_SCORES = ("mean_score", "standard_error", "low", "high")


def run(options: Options, report: Report) -> Result:
    """Evaluate every candidate."""
    if options.method == "rankboost" and options.vali is None:
        raise InputError("RankBoost chooses by validation data: give vali.", parameter="vali")
    found = study(options, report)
    estimator = found.estimator
    columns = {name: values.tolist() for name, values in estimator.cv_results_.items()}
    curve = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    index = getattr(estimator, "best_index_", None)
    best = columns["alpha"].index(estimator.alpha_) if index is None else int(index)
    table = _curve_table(_tables.measure_name(found), estimator.selection_, curve, best)
    result = _tables.as_dict("cv", found, report) | {"curve": curve, "best_index": best}
    text = _tables.bias_line(found)
    if "low" in columns:
        result |= {"confidence": CONFIDENCE, "interval_method": METHOD}
        text.append(f"Interval: {METHOD}.\n")
    return Result(result, _tables.tables(found, table, _tables.choice_table(found)), text)


def _curve_table(metric: str, how: str, curve: list[dict[str, Any]], best: int) -> Table:
    names = [name for name in curve[0] if name not in _SCORES]
    several = [name for name in names if len({str(entry[name]) for entry in curve}) > 1 or name == "alpha"]
    rows = []
    for k, entry in enumerate(curve):
        row = ["chosen" if k == best else "", *(_tables.cell(entry[name]) for name in several)]
        row += [_tables.show(entry["mean_score"]), _tables.show(entry["standard_error"])]
        rows.append(row + [f"{entry['low']:.4f} to {entry['high']:.4f}"] if "low" in entry else row)
    fixed = ", ".join(f"{name} {_tables.cell(curve[0][name])}" for name in names if name not in several)
    title = f"{metric} by {how}" + (f" ({fixed})" if fixed else "")
    interval = [f"{100 * CONFIDENCE:g} % interval"] if "low" in curve[0] else []
    return Table(title, ["", *several, metric, "std. error", *interval], rows, marked=best)
