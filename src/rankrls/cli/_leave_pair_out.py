"""``rankrls cv --leave-pair-out``: the C-index of every candidate, each pair of rows held out in its turn."""

from __future__ import annotations

from itertools import product
from typing import Any

from rankrls.cli._findings import described, print_data
from rankrls.cli._methods import METHODS, method_of
from rankrls.cli._models import Learning
from rankrls.cli._report import Report
from rankrls.cli._training import Data
from rankrls.cli._words import in_options

__all__ = ["check", "run"]

_CHOICES = ("kernel", "gamma", "degree", "coef0", "ties", "balance")


def check(method: str, others: dict[str, Any]) -> None:
    """Refuse methods that would need a refit for each pair and options that ask for another way to judge.

    Before any file is read.
    """
    if method in METHODS and METHODS[method].one is None:
        names = " and ".join(name for name, known in METHODS.items() if known.one is not None)
        raise ValueError(
            f"--leave-pair-out holds out pairs without refitting, which --method {names} can do; {method} would need "
            "a refit for each pair. Judge it by --cv or --vali."
        )
    for flag, value in others.items():
        if value is not None:
            raise ValueError(
                f"--leave-pair-out and {flag} exclude each other: it judges by the C-index of held-out pairs."
            )


def run(learning: Learning, data: Data, report: Report) -> None:
    """Judge every combination and alpha, and print them."""
    if learning.rule != "best":
        raise ValueError("--rule means nothing to --leave-pair-out, which chooses no model: look at its intervals.")
    if learning.scale != "none" and data.tables["train"].qid is None:
        report.note("the features were scaled with the held-out rows in view.")
    if learning.own.get("basis") == "pursuit":
        report.note("the basis was chosen with the labels of the held-out rows in view.")
    with report.working("judging", "leaving out pairs"):
        curve, result = _curve(learning, data)
    best = _best(curve)
    how = f"leave-pair-out over {result.n_pairs} pairs"
    if report.as_json:
        report.print_json(
            {
                "command": "cv",
                **described(data),
                "scale": learning.scale,
                "how": how,
                "confidence": result.confidence,
                "interval_method": result.interval_method,
                "curve": curve,
                "best_index": best,
                "seconds": report.seconds,
                "notes": report.notes,
            }
        )
        return
    print_data(report, data)
    _print(report, curve, best, how, result)


def _best(curve: list[dict[str, Any]]) -> int:
    """The largest C-index; of equal ones the largest alpha, then the earliest combination."""
    import numpy as np

    from rankrls.models._choice import best_within_rounding

    equal = best_within_rounding(np.array([entry["c_index"] for entry in curve]), np.ones(len(curve)))
    return int(max(np.flatnonzero(equal), key=lambda k: curve[k]["alpha"]))


def _curve(learning: Learning, data: Data) -> tuple[list[dict[str, Any]], Any]:
    """One entry for every combination and alpha."""
    from rankrls.model_selection import leave_pair_out

    table = data.tables["train"]
    method, own = method_of(learning.method, learning.own)
    assert method.one is not None
    parsed = [learning.parsed(name) for name in _CHOICES]
    curve, result = [], None
    for values in product(*(v if isinstance(v, tuple) else (v,) for v in parsed)):
        chosen = dict(zip(_CHOICES, values, strict=True))
        model = method.one(**chosen, **own, regression_weight=learning.regression_weight)
        with in_options():
            result = leave_pair_out(model, table.X, table.y, qid=table.qid, alphas=learning.parsed("alphas"))
        columns = (result.alpha, result.score, result.standard_error, *result.interval)
        for alpha, score, error, low, high in zip(*(c.tolist() for c in columns), strict=True):
            curve.append(
                {**chosen, "alpha": alpha, "c_index": score, "standard_error": error, "low": low, "high": high}
            )
    return curve, result


def _print(report: Report, curve: list[dict[str, Any]], best: int, how: str, result: Any) -> None:
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
    level = f"{100 * result.confidence:g} % interval"
    report.print_table(f"C-index by {how}", ["", *several, "alpha", "C-index", "std. error", level], rows, marked=best)
    print(f"Interval: {result.interval_method}.")
