"""What ``rankrls fit`` does in its own way where data are read a part at a time: reading, learning, judging."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rankrls._errors import InputError
from rankrls.cli._datasets import check_parts, open_data
from rankrls.cli._findings import asked_measures
from rankrls.cli._options import Options
from rankrls.cli._report import Report
from rankrls.cli._training import Study
from rankrls.comparison.judgement import Judgement, judge_dataset
from rankrls.streaming.engine import arithmetic_here
from rankrls.streaming.scaled import Scaled, fit_scaler

_TAKES = (
    "train save method vali test kernel gamma degree coef0 alphas ties balance regression_weight scale metric metrics "
    "convention tied_labels rule cv selection max_iter tol patience label qid id features ignore input_format as_json "
    "threads verbose quiet positive random_state n_basis basis memory checkpoint scheduler insecure"
)
"""The options of ``fit`` that data which are read a part at a time can do with."""


def read_data(found: Study, report: Report) -> None:
    """Open the data, which all have the features of the training data, and are scaled as these are."""
    options, scaler = found.options, found.scaler
    check_parts(options, "TRAIN", lambda name: name in _TAKES.split())
    if isinstance(options.positive, tuple):
        raise InputError("{positive} of some features needs all rows in memory.", parameter="positive")
    opened = {role: open_data(path, options, report) for role, path in found.files.items()}
    train = opened["train"]
    if cut := {address.piece.query for address in train.parts if address.piece is not None}:
        several = "queries are" if len(cut) > 1 else "query is"
        report.note(f"{len(cut)} {several} longer than a part: exact all the same; all scores of one are held at once.")
    for parameter, other in (("vali", opened.get("validation")), ("test", opened.get("test"))):
        if other is not None and other.n_features != train.n_features:
            problem = f"{{{parameter}}} has {{0}} features, TRAIN {{1}}."
            raise InputError(problem, other.n_features, train.n_features, parameter=parameter)
    streamed = {"parts": len(train.parts), "engine": options.scheduler or "threads", **arithmetic_here()}
    source = train.source
    called = {role: name for role, name in zip(("label", "qid", "id"), source.roles, strict=True) if name}
    how = {"zero_based": source.shape.zero_based} if source.feature_names is None else {"columns": called}
    found.about = how | {"files": {role: data.describe() for role, data in opened.items()}, "streamed": streamed}
    if scaler is not None:
        own = None if options.checkpoint is None else options.checkpoint / "scaler"
        with report.working("scaling", f"scaling {options.train}"), _engine(options) as executor:
            fit_scaler(scaler, train, executor=executor, memory=options.memory, checkpoint=own)
        opened = {role: Scaled(data, scaler) for role, data in opened.items()}
    found.tables, found.found = opened, {"parts": len(train.parts)}


def learn(found: Study) -> None:
    """Fit the estimator, on threads of this machine or on a cluster."""
    options = found.options
    given: dict[str, Any] = {"memory": options.memory, "checkpoint": options.checkpoint}
    if "validation" in found.tables:
        given["validation"] = found.tables["validation"]
    with _engine(options) as executor:
        found.estimator.fit_dataset(found.training, executor=executor, **given)


def judge_all(found: Study) -> dict[str, dict[str, Judgement]]:
    """The measures on the test data."""
    test, options = found.tables.get("test"), found.options
    if test is None:
        return {}
    names = asked_measures(options, (found.metric, "disagreement"))
    return {"test": judge_dataset(found.estimator, test, names, options.convention, options.memory)}


def _engine(options: Options) -> AbstractContextManager[Any]:
    """Threads of this machine, or a cluster."""
    if options.scheduler is None:
        return nullcontext()
    from rankrls.dask import executor_of

    return executor_of(options.scheduler, insecure=options.insecure)
