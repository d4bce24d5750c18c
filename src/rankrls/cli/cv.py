"""``rankrls cv``: the whole curve, every alpha and combination."""

from __future__ import annotations

from typing import Any

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._methods import MethodName, with_method_options
from rankrls.cli._report import Report

EXAMPLES = "Example: rankrls cv train.txt --scale minmax --metric ndcg@10 --ties both --alphas 1e-3:1e3:13"


@takes_columns
@with_method_options
def command(
    train: options.Train,
    method: MethodName = "rankrls",
    vali: options.Vali = None,
    pairs: options.Pairs = None,
    vali_pairs: options.ValiPairs = None,
    ids: options.Ids = None,
    kernel: options.Kernel = "linear",
    gamma: options.Gamma = "auto",
    degree: options.Degree = "3",
    coef0: options.Coef0 = "1",
    alphas: options.Alphas = "auto",
    ties: options.Ties = "include",
    balance: options.Balance = "examples",
    regression_weight: options.RegressionWeight = 0.0,
    scale: options.Scale = "none",
    metric: options.Metric = None,
    metrics: options.Measures = None,
    convention: options.Convention = "letor",
    rule: options.Rule = "best",
    folds: options.Folds = None,
    leave_pair_out: options.LeavePairOut = False,
    everything: options.Everything = False,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    **method_options: Any,
) -> None:
    """Judge every candidate model, save none.

    By leaving out each query (or preference) in turn, exactly and without refitting, by --cv K folds of them, by
    --vali, or by --leave-pair-out: for a few precious rows with --global, or the pairs inside queries.
    """
    report = Report(as_json, verbose, quiet)
    from rankrls.cli import _data, _findings, _training
    from rankrls.cli._models import Learning

    if leave_pair_out:
        from rankrls.cli import _leave_pair_out

        signs = method_options.get("positive")  # there is no shortcut under constraints
        _leave_pair_out.check(
            method,
            {
                **{"--vali": vali, "--cv": folds, "--pairs": pairs, "--metric": metric, "--metrics": metrics},
                "--positive": signs,
            },
        )
    metric = metric or ("disagreement" if pairs is None else "pair_accuracy")
    learning = Learning(
        *(kernel, gamma, degree, coef0, alphas, ties, balance, regression_weight, scale, metric, convention, rule),
        *(folds, method, method_options),
    )
    with _data.limited_threads(threads):
        ids = columns.item_ids(ids)
        files = _training.PairFiles(pairs, vali_pairs, None, ids)
        plan = _training.plan(learning, vali=vali, measures=metrics, pairs=files)
        if plan.method.needs_vali and vali is None:
            raise ValueError(f"--method {method} chooses by validation data: give --vali FILE.")
        data = _training.read_data(report, {"train": train, "validation": vali}, plan, everything, columns)
        if leave_pair_out:
            _leave_pair_out.run(learning, data, report)
            return
        trained = _training.train(plan, data, report)
        if trained.interrupted:
            raise KeyboardInterrupt
        with report.working("judging", "judging"):
            judged = _training.judge_all(plan, data, trained)
    curve, best = _curve(trained.estimator)
    if as_json:
        result = _findings.as_dict("cv", plan, data, trained, judged, report)
        report.print_json(result | {"curve": curve, "best_index": best})
        return
    _findings.print_data(report, data)
    _print_curve(report, plan, trained.estimator, curve, best)
    _findings.print_measures(report, judged)


def _curve(estimator: Any) -> tuple[list[dict[str, Any]], int]:
    """One entry for every combination and alpha, and which one was chosen."""
    columns = {name: values.tolist() for name, values in estimator.cv_results_.items()}
    entries = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    found = getattr(estimator, "best_index_", None)
    return entries, columns["alpha"].index(estimator.alpha_) if found is None else int(found)


def _print_curve(report: Report, plan: Any, estimator: Any, curve: list[dict[str, Any]], best: int) -> None:
    from rankrls.cli._judging import show

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
    title = f"{plan.learning.metric} by {estimator.selection_}" + (f" ({fixed})" if fixed else "")
    columns = ["", *several, plan.learning.metric, "std. error"]
    report.print_table(title, columns, rows, marked=best)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
