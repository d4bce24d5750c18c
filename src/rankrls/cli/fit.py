"""``rankrls fit``: choose, learn, judge and save."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankrls.cli import _options as options
from rankrls.cli._columns import NOT_SAID, Columns, takes_columns
from rankrls.cli._methods import MethodName, with_method_options
from rankrls.cli._report import Report

if TYPE_CHECKING:
    from rankrls.cli._training import Trained

EXAMPLES = (
    "Example: rankrls fit train.txt --vali vali.txt --test test.txt --scale minmax --metric map --model m.rankrls   "
    "(or from preferences: rankrls fit items.txt --pairs votes.csv --ids docid --model m.rankrls)"
)
_INTERRUPTED = 130

Model = Annotated[
    Path, typer.Option("--model", "-m", metavar="FILE", show_default=False, help="Where the model is saved (.rankrls).")
]
Test = Annotated[
    Path | None, typer.Option("--test", metavar="FILE", help="Judge the model on these data, which it never sees.")
]


@takes_columns
@with_method_options
def command(
    train: options.Train,
    model: Model,
    method: MethodName = "rankrls",
    vali: options.Vali = None,
    test: Test = None,
    pairs: options.Pairs = None,
    vali_pairs: options.ValiPairs = None,
    test_pairs: options.TestPairs = None,
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
    everything: options.Everything = False,
    columns: Columns = NOT_SAID,
    as_json: options.Json = False,
    threads: options.Threads = None,
    verbose: options.Verbose = False,
    quiet: options.Quiet = False,
    **method_options: Any,
) -> None:
    """Choose, fit, judge and save a model.

    Every value of alpha is judged, by validation data or by leaving out each query in turn, at about the price of one
    fit. The model file says where it comes from (see rankrls info). A method that goes step by step keeps its best
    model where it is interrupted (Ctrl-C): it is saved, and the exit status is 130.
    """
    report = Report(as_json, verbose, quiet)
    from rankrls.cli import _data, _findings, _training
    from rankrls.cli._models import Learning

    metric = metric or ("disagreement" if pairs is None else "pair_accuracy")
    learning = Learning(
        *(kernel, gamma, degree, coef0, alphas, ties, balance, regression_weight, scale, metric, convention, rule),
        *(folds, method, method_options),
    )
    with _data.limited_threads(threads):
        ids = columns.item_ids(ids)
        files = _training.PairFiles(pairs, vali_pairs, test_pairs, ids)
        plan = _training.plan(learning, vali=vali, measures=metrics, pairs=files)
        _data.check_target(model, train, vali, test, pairs, vali_pairs, test_pairs)
        data = _training.read_data(
            report, {"train": train, "validation": vali, "test": test}, plan, everything, columns
        )
        trained = _training.train(plan, data, report)
        judged: Any = {}
        if trained.interrupted:
            _say_what_is_kept(trained, report)
        else:
            with report.working("judging", "judging"):
                judged = _training.judge_all(plan, data, trained)
        _save(model, plan, data, trained, judged, report)
    if as_json:
        report.print_json(_findings.as_dict("fit", plan, data, trained, judged, report) | {"model": str(model)})
    elif not quiet:
        _findings.print_data(report, data)
        _findings.print_choice(report, plan, trained)
        _findings.print_measures(report, judged)
        took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
        print(f"Saved {model}   ({took})")
    if trained.interrupted:
        raise typer.Exit(_INTERRUPTED)


def _say_what_is_kept(trained: Trained, report: Report) -> None:
    n_iter = getattr(trained.estimator, "n_iter_", None)
    what = "" if n_iter is None else f", alpha {trained.estimator.alpha_:.3g} after {n_iter} iterations"
    report.note(f"interrupted: the best model found so far is kept{what}; it is saved without further judgement.")


def _how_it_was_read(table: Any) -> dict[str, Any]:
    """What later files have to agree with."""
    if not hasattr(table, "feature_names"):
        return {"zero_based": bool(table.zero_based)}
    called = {"label": table.label, "qid": table.qid_name, "id": table.id_name}
    return {"columns": {role: name for role, name in called.items() if name is not None}}


def _save(path: Path, plan: Any, data: Any, trained: Trained, judged: Any, report: Report) -> None:
    from rankrls.cli import _findings
    from rankrls.cli._report import plain_json
    from rankrls.persistence import save

    given = {
        **_findings.described(data),
        **_how_it_was_read(data.tables["train"]),
        **({} if data.ids is None else {"ids": data.ids}),
        "method": plan.learning.method,
        "scale": plan.learning.scale,
        "measures": _findings.measured(judged),
    }
    if trained.interrupted:
        given["interrupted"] = True
    with report.working("saving", f"saving {path}"):
        save(trained.model, path, provenance=plain_json(given))
