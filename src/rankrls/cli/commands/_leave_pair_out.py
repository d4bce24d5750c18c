"""``rankrls cv --leave-pair-out``: the C-index of every candidate, each pair of rows held out in its turn."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from rankrls import models
from rankrls._errors import InputError
from rankrls.cli._findings import file_tables
from rankrls.cli._learned import described
from rankrls.cli._methods import METHODS
from rankrls.cli._options import Options
from rankrls.cli._report import Report, Result, Table
from rankrls.cli._training import Data
from rankrls.model_selection import leave_pair_out
from rankrls.selection.choice import best_within_rounding

__all__ = ["check", "run"]

_CHOICES = ("kernel", "gamma", "degree", "coef0", "ties", "balance")
_OWN = ("n_basis", "basis", "random_state")


def check(options: Options) -> None:
    """Refuse methods that would need a refit for each pair, before any file is read."""
    if options.method in METHODS and not METHODS[options.method].one:
        able = " and ".join(name for name, known in METHODS.items() if known.one)
        raise InputError(
            "{leave_pair_out} holds out pairs without refitting, which --method {0} can do; {1} would need a refit for "
            "each pair. Judge it by {cv} or {vali}.",
            *(able, options.method),
        )


def run(options: Options, data: Data, report: Report) -> Result:
    """Judge every combination and alpha."""
    if options.rule != "best":
        raise InputError("{rule} means nothing to {leave_pair_out}, which chooses no model: look at its intervals.")
    if options.scale != "none" and data.tables["train"].qid is None:
        report.note("the features were scaled with the held-out rows in view.")
    if options.basis == "pursuit":
        report.note("the basis was chosen with the labels of the held-out rows in view.")
    with report.working("judging", "leaving out pairs"):
        curve, result = _curve(options, data)
    best = _best(curve)
    how = f"leave-pair-out over {result.n_pairs} pairs"
    found = {
        "command": "cv",
        **described(data),
        "scale": options.scale,
        "how": how,
        "confidence": result.confidence,
        "interval_method": result.interval_method,
        "curve": curve,
        "best_index": best,
        "seconds": report.seconds,
        "notes": report.notes,
    }
    table = _table(curve, best, how, f"{100 * result.confidence:g} % interval")
    return Result(found, [*file_tables(described(data)), table], f"Interval: {result.interval_method}.\n")


def _best(curve: list[dict[str, Any]]) -> int:
    """The largest C-index; of equal ones the largest alpha, then the earliest combination."""
    equal = best_within_rounding(np.array([entry["c_index"] for entry in curve]), np.ones(len(curve)))
    return int(max(np.flatnonzero(equal), key=lambda k: curve[k]["alpha"]))


def _curve(options: Options, data: Data) -> tuple[list[dict[str, Any]], Any]:
    """One entry for every combination and alpha."""
    table = data.tables["train"]
    kind = getattr(models, METHODS[options.method].one)
    own = {name: getattr(options, name) for name in _OWN if getattr(options, name) is not None}
    curve, result = [], None
    given = (getattr(options, name) for name in _CHOICES)
    for values in product(*(v if isinstance(v, tuple) else (v,) for v in given)):
        chosen = dict(zip(_CHOICES, values, strict=True))
        model = kind(**chosen, **own, regression_weight=options.regression_weight)
        result = leave_pair_out(model, table.X, table.y, qid=table.qid, alphas=options.alphas)
        columns = (result.alpha, result.score, result.standard_error, *result.interval)
        for alpha, score, error, low, high in zip(*(c.tolist() for c in columns), strict=True):
            curve.append(
                {**chosen, "alpha": alpha, "c_index": score, "standard_error": error, "low": low, "high": high}
            )
    return curve, result


def _table(curve: list[dict[str, Any]], best: int, how: str, level: str) -> Table:
    several = [name for name in _CHOICES if len({entry[name] for entry in curve}) > 1]
    rows = [
        [
            "best" if k == best else "",
            *(str(entry[name]) for name in several),
            f"{entry['alpha']:.4g}",
            f"{entry['c_index']:.4f}",
            f"{entry['standard_error']:.4f}",
            f"{entry['low']:.4f} to {entry['high']:.4f}",
        ]
        for k, entry in enumerate(curve)
    ]
    columns = ["", *several, "alpha", "C-index", "std. error", level]
    return Table(f"C-index by {how}", columns, rows, marked=best)
