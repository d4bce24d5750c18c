"""``rankrls fit``: choose, learn, judge and save."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._report import Report

EXAMPLES = "Example: rankrls fit train.txt --vali vali.txt --test test.txt --scale minmax --metric map --model m.skops"

Model = Annotated[
    Path, typer.Option("--model", "-m", metavar="FILE", show_default=False, help="Where the model is saved (.skops).")
]
Test = Annotated[
    Path | None, typer.Option("--test", metavar="FILE", help="Judge the model on these data, which it never sees.")
]


def command(
    train: options.Train,
    model: Model,
    vali: options.Vali = None,
    test: Test = None,
    kernel: options.Kernel = "linear",
    gamma: options.Gamma = "auto",
    degree: options.Degree = "3",
    coef0: options.Coef0 = "1",
    alphas: options.Alphas = "auto",
    ties: options.Ties = "include",
    balance: options.Balance = "examples",
    regression_weight: options.RegressionWeight = 0.0,
    scale: options.Scale = "none",
    metric: options.Metric = "disagreement",
    metrics: options.Measures = None,
    convention: options.Convention = "letor",
    rule: options.Rule = "best",
    folds: options.Folds = None,
    everything: options.Everything = False,
    features: options.Features = None,
    as_json: options.Json = False,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
) -> None:
    """Choose, fit, judge and save a model.

    Every value of alpha is judged, by validation data or by leaving out each query in turn, at about the price of one
    fit. The model file says where it comes from (see rankrls info).
    """
    report = Report(as_json, verbose, quiet)
    from rankrls.cli import _data, _training
    from rankrls.cli._models import Learning

    learning = Learning(
        kernel, gamma, degree, coef0, alphas, ties, balance, regression_weight, scale, metric, convention, rule, folds
    )
    with _data.limited_threads(threads):
        plan = _training.plan(learning, vali=vali, measures=metrics)
        _data.check_target(model)
        tables = _training.read_tables(
            report, {"train": train, "validation": vali, "test": test}, plan, everything, features
        )
        trained = _training.train(plan, tables, report)
        judged = _training.judge_all(plan, tables, trained, report)
        _save(model, plan, tables, trained, judged, report)
    if as_json:
        report.print_json(_training.as_dict("fit", plan, tables, trained, judged, report) | {"model": str(model)})
    elif not quiet:
        _training.print_data(report, tables)
        _training.print_choice(report, plan, trained)
        _training.print_measures(report, trained, judged)
        took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
        print(f"Saved {model}   ({took})")


def _save(path: Path, plan: Any, tables: Any, trained: Any, judged: Any, report: Report) -> None:
    from rankrls.cli._data import describe
    from rankrls.cli._report import plain_json
    from rankrls.persistence import save

    given = {
        "data": {role: describe(table) for role, table in tables.items()},
        "zero_based": bool(tables["train"].zero_based),
        "scale": plan.learning.scale,
        "measures": {role: {name: j.as_dict() for name, j in found.items()} for role, found in judged.items()},
    }
    with report.working("saving", f"saving {path}"):
        save(trained.model, path, provenance=plain_json(given))
