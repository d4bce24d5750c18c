"""What ``fit`` and ``cv`` have in common: reading, choosing, judging."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rankrls.cli._columns import Columns
from rankrls.cli._data import feature_names, labels_of, names_of, read
from rankrls.cli._judging import Judgement, judge, measure_names, measures_for
from rankrls.cli._methods import METHODS, Method
from rankrls.cli._models import Learning, with_scaler
from rankrls.cli._pairs import MEASURE, judge_pairs, read_pairs
from rankrls.cli._report import Report
from rankrls.cli._signs import positive_columns
from rankrls.cli._supervisor import keeping_its_best
from rankrls.cli._words import in_options
from rankrls.selection.search import choices_at_edges

if TYPE_CHECKING:
    from rankrls.io import ColumnTable, LetorTable, PairTable

__all__ = ["Data", "PairFiles", "Plan", "Trained", "judge_all", "plan", "read_data", "train"]

_OF_LABELS = ("ties", "balance", "regression_weight")
_SAME_DATA = {
    "validation": "the choice is that of the closest fit, which new queries need not bear out.",
    "test": "the measures on them say how close the fit is, not how well new queries are ranked.",
}
_OVERFLOW = re.compile(
    r"Input (X|X_val) holds values whose products overflow,.*: row (\d+), column (\d+)\b.*", re.DOTALL
)


@dataclass(frozen=True)
class PairFiles:
    """Where preferences come from, and what names an item there."""

    train: Path | None = None
    validation: Path | None = None
    test: Path | None = None
    ids: str | None = None


@dataclass(frozen=True)
class Plan:
    """The options, checked: nothing has been read yet."""

    learning: Learning
    estimator: Any
    scaler: Any
    measures: tuple[str, ...] | None
    pair_files: PairFiles

    @property
    def method(self) -> Method:
        """The learner."""
        return METHODS[self.learning.method]


@dataclass(frozen=True)
class Data:
    """What was read, by its role: train, validation, test. The preferences of a role may be between train's rows.

    ``ids`` is what names an item in all of them; None where that was said by nobody, and there were no ids to name it.
    """

    tables: dict[str, LetorTable | ColumnTable]
    pairs: dict[str, PairTable]
    ids: str | None = None

    def rows_of(self, role: str) -> LetorTable | ColumnTable:
        """The items that a role's preferences are between."""
        return self.tables.get(role, self.tables["train"])


@dataclass(frozen=True)
class Trained:
    """The fitted estimator; the model to save, which is the same or a pipeline that ends in it; was it cut short."""

    estimator: Any
    model: Any
    interrupted: bool = False


def plan(learning: Learning, *, vali: Path | None, measures: str | None, pairs: PairFiles | None = None) -> Plan:
    """Check the options before any file is read."""
    pairs = pairs or PairFiles()
    if learning.folds is not None and vali is not None:
        raise ValueError("--vali and --cv exclude each other: choose by validation data or by folds.")
    names = measure_names(measures, learning.convention)
    with in_options():
        out = Plan(learning, learning.estimator(), learning.scaler(), names, pairs)
    _check_pairs(out, vali)
    return out


def _check_pairs(plan: Plan, vali: Path | None) -> None:
    files, learning = plan.pair_files, plan.learning
    if files.train is None:
        if files.validation is not None:
            raise ValueError("--vali-pairs needs --pairs: a model of labels is chosen by --vali or --cv.")
        return
    if not plan.method.learns_pairs:
        able = ", ".join(m.name for m in METHODS.values() if m.learns_pairs)
        raise ValueError(f"--method {learning.method} does not learn from --pairs; these do: {able}.")
    if (vali is not None or files.validation is not None) and not plan.method.validates_pairs:
        able = ", ".join(m.name for m in METHODS.values() if m.validates_pairs)
        if plan.method.needs_vali:
            raise ValueError(f"--method {learning.method} takes --pairs without validation data: give its options.")
        raise ValueError(
            f"--method {learning.method} chooses among --pairs by leaving some out; validation data are for --method "
            f"{able}."
            if able
            else f"--method {learning.method} chooses among --pairs by leaving some out, not by validation data."
        )
    if plan.method.needs_vali and learning.own.get("patience") is not None:
        raise ValueError(f"--patience needs validation data, and --method {learning.method} takes --pairs without.")
    if learning.folds is not None and files.validation is not None:
        raise ValueError("--vali-pairs and --cv exclude each other: choose by validation data or by folds.")
    for name in _OF_LABELS:
        if getattr(learning, name) != getattr(Learning(), name):
            raise ValueError(f"--{name.replace('_', '-')} is about labels, and means nothing with --pairs.")


def read_data(report: Report, files: dict[str, Path | None], plan: Plan, everything: bool, columns: Columns) -> Data:
    """Read and scale the files that are there; all take the shape of the training data, which come first."""
    tables: dict[str, LetorTable | ColumnTable] = {}
    dense: Any = "auto" if plan.scaler is None else True  # scaling fills what was 0
    zero_based: Any = "auto"
    names: tuple[str, ...] | None = None
    n_features: int | None = None
    for role, path in files.items():
        if path is None:
            continue
        queries: Any = "ignored" if everything else "optional" if plan.pair_files.train else "required"
        try:
            table = read(
                path,
                report,
                queries=queries,
                columns=columns,
                labels="required" if getattr(plan.pair_files, role) is None else "ignored",
                names=names,
                n_features=None if names is not None and columns.format_of(path) != "letor" else n_features,
                zero_based=zero_based,
                dense=dense,
            )
        except ValueError as error:
            if not tables or "beyond the" not in str(error):
                raise
            had = f"{files['train']} has {n_features} features; --features N sets another number"
            raise ValueError(f"{error} ({had}.)") from error
        names, n_features = names_of(table) if not tables else names, table.n_features
        zero_based, dense = getattr(table, "zero_based", zero_based), isinstance(table.X, np.ndarray)
        if plan.scaler is not None:
            with report.working("scaling", f"scaling {path}"):
                # the raw features are given back: only one copy of large data stays
                table = replace(table, X=_scaled(plan.scaler, table, first=not tables))
        tables[role] = table
        if role != "train" and plan.pair_files.train is None and table.sha256 == tables["train"].sha256:
            report.note(f"{path} holds the same data as {files['train']}: {_SAME_DATA[role]}")
    data, ids = Data(tables, {}), plan.pair_files.ids
    for role in ("train", "validation", "test"):
        path = getattr(plan.pair_files, role)
        if path is not None:
            data.pairs[role], ids = read_pairs(path, data.rows_of(role), ids, report)
    known = ids if data.pairs and (ids != "row" or plan.pair_files.ids is not None) else None
    return replace(data, ids=known)


def _scaled(scaler: Any, table: LetorTable | ColumnTable, *, first: bool) -> Any:
    scale = scaler.fit_transform if first else scaler.transform
    return scale(table.X, qid=table.qid) if scaler.__module__.startswith("rankrls.") else scale(table.X)


def train(plan: Plan, data: Data, report: Report) -> Trained:
    """Choose and fit. Where the user interrupts and the estimator has kept its best model so far, that is it."""
    estimator, interrupted = plan.estimator, False
    if getattr(estimator, "positive", False):
        estimator.positive = positive_columns(estimator.positive, data.tables["train"])
    with report.working("fitting", "choosing and fitting") as say:
        if hasattr(estimator, "verbose"):
            estimator.verbose = _progress(say, plan.learning.metric)
        name = {type(estimator).__name__: f"--method {plan.learning.method}"}
        try:
            with in_options(plan.method.flags, name), keeping_its_best() if plan.method.keeps_best else nullcontext():
                _fit(estimator, data)
        except ValueError as error:
            found = _OVERFLOW.fullmatch(str(error))
            if found is None:
                raise
            raise ValueError(_too_large(found, data)) from error
        except KeyboardInterrupt:
            if not getattr(estimator, "interrupted_", False):
                raise
            interrupted = True
        finally:
            if hasattr(estimator, "verbose"):
                estimator.verbose = 0
    if not interrupted:
        _note_edges(plan.method, estimator, report)
    names = names_of(data.tables["train"])
    if names is not None:  # arrays went in; who loads the model finds the names where data frames would have left them
        first = estimator if plan.scaler is None else plan.scaler
        first.feature_names_in_ = np.array(names, dtype=object)
    return Trained(estimator, with_scaler(plan.scaler, estimator), interrupted)


def _too_large(found: re.Match[str], data: Data) -> str:
    """The value of a file that cannot be multiplied, by its place."""
    table = data.tables["train" if found[1] == "X" else "validation"]
    row, column = int(found[2]), int(found[3])
    name = repr(feature_names(table)[column]) if names_of(table) else feature_names(table)[column]
    return (
        f"{table.path}: row {row}, counted from 0: the value {table.X[row, column]:g} of feature {name} is so large "
        "that products overflow. Scale the features (see --scale), or leave this one out."
    )


def _fit(estimator: Any, data: Data) -> None:
    given: dict[str, Any] = {}
    if "validation" in data.tables:
        vali = data.tables["validation"]
        given["X_val"] = vali.X
        if "validation" not in data.pairs:
            given |= {"y_val": vali.y, "qid_val": vali.qid}
    table = data.tables["train"]
    if "train" not in data.pairs:
        estimator.fit(table.X, table.y, qid=table.qid, **given)
        return
    pairs, judging = data.pairs["train"], data.pairs.get("validation")
    given |= {"strength": pairs.strength, "weight": pairs.weight}
    if pairs.groups is not None and "groups" in inspect.signature(estimator.fit_pairs).parameters:
        given["groups"] = pairs.groups
    if judging is not None:
        given |= {"winners_val": judging.winners, "losers_val": judging.losers}
        given |= {"strength_val": judging.strength, "weight_val": judging.weight}
    estimator.fit_pairs(table.X, pairs.winners, pairs.losers, **given)


def _progress(say: Callable[[str], None], metric: str) -> Callable[[Any], None]:
    """What a learner that goes step by step tells after each step."""

    def tell(step: Any) -> None:
        found = "" if np.isnan(step.score) else f", {metric} so far {step.score:.4f}"
        say(f"iteration {step.iteration}{found}")

    return tell


def _note_edges(method: Method, estimator: Any, report: Report) -> None:
    """What was chosen from a grid, and may be better outside of it."""
    for name, at_edge in choices_at_edges(estimator).items():
        if not at_edge:
            continue
        value, tried = estimator.best_params_[name], estimator.cv_results_[name]
        low, high = float(tried.min()), float(tried.max())  # of all combinations: an automatic grid is each one's own
        end = "largest" if value == high or value**2 > low * high else "smallest"
        report.note(
            f"the chosen {name.replace('_', ' ')}, {value:.3g}, is the {end} of its grid: a wider one "
            f"({method.widen}) may do better."
        )


def judge_all(plan: Plan, data: Data, trained: Trained) -> dict[str, dict[str, Judgement]]:
    """The measures on validation data or held-out training queries, and on the test data."""
    metric, convention = plan.learning.metric, plan.learning.convention
    out: dict[str, dict[str, Judgement]] = {}
    for role in ("train", "validation", "test"):
        if role == "train":
            if {"train", "validation"} & data.pairs.keys() or "validation" in data.tables:
                continue
            scores = getattr(trained.estimator, "held_out_scores_", None)
            if scores is None:
                continue
        elif role in data.pairs:
            table = data.rows_of(role)
            qid = table.qid if "train" not in data.pairs else None
            out[role] = {MEASURE: judge_pairs(data.pairs[role], trained.estimator.predict(table.X), qid)}
            continue
        elif role in data.tables:
            scores = trained.estimator.predict(data.tables[role].X)
        else:
            continue
        table = data.rows_of(role)
        names = plan.measures if plan.measures is not None else measures_for(labels_of(table), (metric,))
        out["held out" if role == "train" else role] = judge(
            names, convention, table, scores, must_judge=plan.measures or ()
        )
    return out
