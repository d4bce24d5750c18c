"""``rankrls fit`` of data that are read a part at a time."""

from __future__ import annotations

import platform
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rankrls._errors import InputError
from rankrls.cli import _findings, _learned, _training
from rankrls.cli._options import Options, flag_of
from rankrls.cli._report import Report, Result, plain_json
from rankrls.cli.datasets.opened import Opened, open_data
from rankrls.cli.datasets.scores import judgements
from rankrls.io._atomic import check_target
from rankrls.persistence import save
from rankrls.streaming.scaled import Scaled, fit_scaler

__all__ = ["fit"]

_TAKES = frozenset(
    [
        "train",
        "save",
        "method",
        "vali",
        "test",
        "kernel",
        "gamma",
        "degree",
        "coef0",
        "alphas",
        "ties",
        "balance",
        "regression_weight",
        "scale",
        "metric",
        "metrics",
        "convention",
        "tied_labels",
        "rule",
        "cv",
        "selection",
        "max_iter",
        "tol",
        "patience",
        "label",
        "qid",
        "id",
        "features",
        "ignore",
        "input_format",
        "as_json",
        "threads",
        "verbose",
        "quiet",
        "positive",
        "random_state",
        "n_basis",
        "basis",
        "memory",
        "checkpoint",
        "scheduler",
        "insecure",
    ]
)
"""The options of ``fit`` that data which are read a part at a time can do with."""


def fit(options: Options, report: Report) -> Result:
    """Choose, fit, judge and save."""
    for name in options.changed():
        if name not in _TAKES:
            raise InputError(
                flag_of(name) + " needs all rows in memory, and TRAIN is read a part at a time.", parameter=name
            )
    plan = _training.plan(options)
    check_target(options.save, *plan.files.values())
    opened = {role: open_data(path, options, report) for role, path in plan.files.items() if path is not None}
    data, scaler = opened["train"], plan.scaler
    if cut := {address.piece.query for address in data.parts if address.piece is not None}:
        several = "queries are" if len(cut) > 1 else "query is"
        report.note(f"{len(cut)} {several} longer than a part: exact all the same; all scores of one are held at once.")
    estimator = plan.estimator
    if isinstance(estimator.get_params().get("positive"), tuple):
        raise InputError("{positive} of some features needs all rows in memory.", parameter="positive")
    given: dict[str, Any] = {"memory": options.memory, "checkpoint": options.checkpoint}
    with _engine(options) as executor:
        if scaler is not None:
            own = None if options.checkpoint is None else options.checkpoint / "scaler"
            with report.working("scaling", f"scaling {options.train}"):
                data = fit_scaler(scaler, data, executor=executor, memory=options.memory, checkpoint=own)
        if "validation" in opened:
            given["validation"] = _like(opened["validation"], data, scaler)
        with report.working("fitting", "choosing and fitting") as say:
            estimator.verbose = _training.progress(say, plan.chosen_by)
            try:
                estimator.fit_dataset(data, executor=executor, **given)
            finally:
                estimator.verbose = 0
    _training.note_edges(plan.method, estimator, report)
    model = estimator
    if scaler is not None:
        from sklearn.pipeline import Pipeline

        model = Pipeline([("scale", scaler), ("rank", estimator)])
        if (names := estimator.__dict__.pop("feature_names_in_", None)) is not None:
            scaler.feature_names_in_ = names
    found: dict[str, dict[str, Any]] = {}
    with report.working("judging", "judging"):
        if "test" in opened:
            found["test"] = judgements(model, opened["test"], options, (plan.metric, "disagreement"))
    tables = {role: Opened(str(plan.files[role]), data) for role, data in opened.items()}
    described = {"data": {role: table.summary() for role, table in tables.items()}}
    provenance = {
        **described,
        **_columns(opened["train"], options),
        "files": {role: data.describe() for role, data in opened.items()},
        "streamed": {"parts": len(data.parts), "engine": options.scheduler or "threads", **_versions()},
        "method": options.method,
        "scale": options.scale,
        "measures": _learned.measured(found),
    }
    with report.working("saving", f"saving {options.save}"):
        save(model, options.save, provenance=plain_json(provenance))
    trained = _training.Trained(estimator, model)
    loaded: Any = _training.Data(tables, {})  # type: ignore[arg-type]
    result = _learned.as_dict("fit", plan, loaded, trained, found, report) | {"model": str(options.save)}
    took = ", ".join(f"{part} {seconds:.2f} s" for part, seconds in report.seconds.items())
    return Result(
        result | {"parts": len(data.parts)},
        [
            *_findings.file_tables(described),
            _learned.choice_table(plan, loaded, trained),
            *_findings.measure_tables(found),
        ],
        f"Saved {options.save}   ({took})\n",
        optional=True,
    )


def _engine(options: Options) -> AbstractContextManager[Any]:
    """Threads of this machine, or a cluster."""
    if options.scheduler is None:
        return nullcontext()
    from rankrls.dask import executor_of

    return executor_of(options.scheduler, insecure=options.insecure)


def _like(other: Any, data: Any, scaler: Any) -> Any:
    """Validation data with the features of the training data, scaled by the same scaler."""
    if other.n_features != data.n_features:
        raise InputError("{vali} has {0} features, TRAIN {1}.", other.n_features, data.n_features, parameter="vali")
    return other if scaler is None else Scaled(other, scaler)


def _columns(data: Any, options: Options) -> dict[str, Any]:
    """What later files have to agree with."""
    source = data.source
    if data.feature_names is None:
        return {"zero_based": getattr(source, "zero_based", "auto")}
    called = {"label": options.label or "label", "qid": source.qid_name, "id": options.id}
    return {"columns": {role: name for role, name in called.items() if name is not None}}


def _versions() -> dict[str, str]:
    import numpy
    import scipy
    from threadpoolctl import threadpool_info

    blas = [f"{info['internal_api']} {info.get('version')}" for info in threadpool_info() if info["user_api"] == "blas"]
    return {
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "blas": ", ".join(sorted(set(blas))),
        "machine": platform.machine(),
    }
